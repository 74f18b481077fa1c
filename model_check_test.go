package convo_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// printOf shows all that a snapshot shows.
func printOf(s *convo.Snapshot) string {
	var b strings.Builder
	for i, e := range s.All() {
		fmt.Fprintln(&b, i, e.ID, e.Turn, e.Tokens, e.Pinned, printMessage(e.Message))
	}
	sum, ok := s.Summary()
	fmt.Fprintln(&b, sum.Text, sum.Covers, sum.Updates, ok, s.Pinned(), s.Tokens(), s.Version())
	for _, m := range s.Messages() {
		fmt.Fprintln(&b, printMessage(m))
	}
	for x := range s.Exchanges() {
		fmt.Fprintln(&b, x.First, x.Last, x.Floor, x.Open, x.Tokens, x.Turn)
	}
	return b.String()
}

func printMessage(m convo.Message) string {
	var b strings.Builder
	b.WriteString(string(m.Role))
	for _, p := range m.Parts {
		switch p := p.(type) {
		case convo.Text:
			b.WriteString(" " + string(p))
		case convo.ToolCall:
			b.WriteString(" call " + p.ID + p.Name + p.Arguments)
		case convo.ToolResult:
			b.WriteString(printResult(p.CallID, p.Name, p.Text(), p.IsError, p.Cleared))
		}
	}
	return b.String()
}

func printResult(id, name, text string, isErr, cleared bool) string {
	s := " result " + id + " " + name + " " + text
	if isErr {
		s += " error"
	}
	if cleared {
		s += " cleared"
	}
	return s
}

func (m mMsg) print() string {
	var b strings.Builder
	b.WriteString(string(m.role))
	if m.text != "" {
		b.WriteString(" " + m.text)
	}
	for _, id := range m.calls {
		b.WriteString(" call " + id + toolOf(id) + mArgs)
	}
	for _, r := range m.results {
		b.WriteString(printResult(r.id, toolOf(r.id), r.text, r.isErr, r.cleared))
	}
	return b.String()
}

// compare looks at the History and at the model, and at the invariants.
func (d *driver) compare() {
	d.t.Helper()
	s := d.h.Snapshot()
	m := d.m
	if s != d.h.Snapshot() {
		d.fail("two snapshots without a change between")
	}
	if s.Len() != m.lenAll() || d.h.Len() != m.lenAll() {
		d.fail("%d entries, want %d", s.Len(), m.lenAll())
	}
	entries := slices.Concat(m.sys, m.list)
	for i, e := range s.All() {
		want := entries[i]
		if e.ID != want.id || e.Turn != want.turn || e.Tokens != want.msg.tokens() || e.Pinned != m.pinned(want) {
			d.fail("entry %d is %d, turn %d, %d tokens, pinned %v; want %d, %d, %d, %v", i, e.ID, e.Turn, e.Tokens, e.Pinned,
				want.id, want.turn, want.msg.tokens(), m.pinned(want))
		}
		if got, want := printMessage(e.Message), want.msg.print(); got != want {
			d.fail("entry %d is %s, want %s", i, got, want)
		}
	}
	if s.Tokens() != m.raw() {
		d.fail("%d raw tokens, want %d", s.Tokens(), m.raw())
	}
	sum, ok := s.Summary()
	if ok != (m.sum != "") || sum.Text != m.sum || ok && (sum.Updates != m.updates || !coversAll(sum.Covers, m.covers)) {
		d.fail("summary %+v, want %q covering %v, %d updates", sum, m.sum, m.covers, m.updates)
	}
	d.compareMessages(s)
	d.compareExchanges(s)
	var pinned []convo.ID
	for _, e := range m.list {
		if m.pinned(e) {
			pinned = append(pinned, e.id)
		}
	}
	if !slices.Equal(d.h.Pinned(), pinned) {
		d.fail("pinned %v, want %v", d.h.Pinned(), pinned)
	}
	d.compareNumbers()
}

func coversAll(ranges []convo.Range, ids []convo.ID) bool {
	var all []convo.ID
	for _, r := range ranges {
		for id := r.First; id <= r.Last; id++ {
			all = append(all, id)
		}
	}
	return slices.Equal(all, ids)
}

func (d *driver) compareMessages(s *convo.Snapshot) {
	m := d.m
	var want []string
	for _, e := range m.sys {
		want = append(want, e.msg.print())
	}
	msgs := s.Messages()
	if m.sum != "" {
		i := len(want)
		if i >= len(msgs) || !strings.Contains(msgs[i].Text(), "\n"+m.sum+"\n") || msgs[i].Role != convo.RoleUser {
			d.fail("no summary at %d of %v", i, msgs)
		}
		want = append(want, printMessage(msgs[i]))
	}
	users := 0
	for i, e := range m.list {
		if e.msg.role == convo.RoleUser && e.turn == m.list[len(m.list)-1].turn {
			users = i
			break
		}
	}
	for i := 0; i <= len(m.list); i++ {
		if i == users {
			for _, t := range m.eph {
				want = append(want, "user "+t)
			}
		}
		if i < len(m.list) {
			want = append(want, m.list[i].msg.print())
		}
	}
	for i, msg := range msgs {
		if i >= len(want) || printMessage(msg) != want[i] {
			d.fail("message %d is %s, want of %q", i, printMessage(msg), want)
		}
	}
	if len(msgs) != len(want) {
		d.fail("%d messages, want %d", len(msgs), len(want))
	}
}

func (d *driver) compareExchanges(s *convo.Snapshot) {
	m, at := d.m, 0
	all := slices.Concat(m.sys, m.list)
	for x := range s.Exchanges() {
		first := all[at]
		tokens := 0
		var ids []convo.ID
		for at < len(all) && all[at].head == first.head {
			tokens += all[at].msg.tokens()
			ids = append(ids, all[at].id)
			at++
		}
		floor := first.msg.role == convo.RoleSystem || m.hardFloor(first) || m.pinned(first)
		open := at == len(all) && len(m.open()) > 0
		if !slices.Equal(x.IDs(), ids) || x.First != ids[0] || x.Last != ids[len(ids)-1] || x.Tokens != tokens || x.Floor != floor || x.Open != open || x.Turn != first.turn {
			d.fail("exchange %+v %v, want %v, %d tokens, floor %v, open %v", x, x.IDs(), ids, tokens, floor, open)
		}
	}
	if at != len(all) {
		d.fail("exchanges end at %d of %d", at, len(all))
	}
}

func (d *driver) compareNumbers() {
	m := d.m
	st := d.h.Status()
	if st.Entries != m.lenAll() || st.System != len(m.sys) || st.Turns != m.turns() || st.OpenCalls != len(m.open()) || st.Appended != m.appended {
		d.fail("status %+v, want %d entries, %d system, %d turns, %d open, %d appended", st, m.lenAll(), len(m.sys), m.turns(), len(m.open()), m.appended)
	}
	e := d.h.Tokens()
	w := m.scale(d.limits)
	if e.Tokens != w.tokens() || e.Upper != w.upper() || e.Measured != m.measured(d.limits) || st.Tokens != e.Tokens || st.Upper != e.Upper {
		d.fail("estimate %+v, want %d, at most %d, measured %d", e, w.tokens(), w.upper(), m.measured(d.limits))
	}
}

// oldSnapshots looks whether the snapshots that were kept have changed.
func (d *driver) oldSnapshots() {
	snaps := d.snaps
	if d.other != nil {
		snaps = append(snaps[:len(snaps):len(snaps)], d.other)
	}
	for _, s := range snaps {
		if got := printOf(s.real); got != s.print {
			d.fail("snapshot %d has changed from\n%s\nto\n%s", s.seq, s.print, got)
		}
	}
}

var modelOps = flag.Int("convo.ops", 20_000, "operations of TestHistory_Model")

// opsPerHistory makes histories of a length that is hard and still quick to
// compare whole after each operation.
const opsPerHistory = 220

func TestHistory_Model(t *testing.T) {
	var count hard
	for seed := uint64(1); count.ops < *modelOps; seed++ {
		func() {
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			rng := rand.New(rand.NewPCG(seed, 2))
			checkModel(t, nil, rng, opsPerHistory, &count)
		}()
	}
	slices.Sort(count.lengths)
	median := count.lengths[len(count.lengths)/2]
	share := func(n int) float64 { return 100 * float64(n) / float64(count.histories) }
	t.Logf("%d operations in %d histories, median length %d; %.0f %% reduced three times or more, %.0f %% with a pin in a dropped span, "+
		"%.0f %% cut inside a turn, %.0f %% rolled back across an edit, %.0f %% with a stale edit, %.0f %% reloaded",
		count.ops, count.histories, median, share(count.reduced3), share(count.pinInSpan), share(count.cutInTurn),
		share(count.acrossEdit), share(count.stale), share(count.reloaded))
	require.GreaterOrEqual(t, median, 60, "cases are too short to be hard")
	assert.GreaterOrEqual(t, share(count.reduced3), 10.0)
	assert.GreaterOrEqual(t, share(count.pinInSpan), 5.0)
	assert.GreaterOrEqual(t, share(count.cutInTurn), 5.0)
	assert.GreaterOrEqual(t, share(count.acrossEdit), 5.0)
	assert.GreaterOrEqual(t, share(count.stale), 1.0)
	assert.GreaterOrEqual(t, share(count.reloaded), 5.0)
}

func FuzzHistory_Model(f *testing.F) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 3))
		data := make([]byte, 400)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = data[:min(len(data), 4000)] // longer than a case needs to be
		checkModel(t, data, nil, 0, new(hard))
	})
}

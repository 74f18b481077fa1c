package modeltest

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// compare fails the test unless the History and the model show the same.
func (d *driver) compare() {
	d.t.Helper()
	s := d.h.Snapshot()
	m := d.m
	if s != d.h.Snapshot() {
		d.fail("two snapshots, and nothing has changed in between")
	}
	if s.Len() != m.len() || d.h.Len() != m.len() {
		d.fail("%d entries, want %d", s.Len(), m.len())
	}
	entries := slices.Concat(m.sys, m.list)
	for i, e := range s.All() {
		want := entries[i]
		if e.ID != want.id || e.Turn != want.turn || e.Tokens != want.msg.tokens(m.count) || e.Pinned != m.isPinned(want) {
			d.fail("entry %d is %d, turn %d, %d tokens, pinned %v; want %d, %d, %d, %v", i, e.ID, e.Turn, e.Tokens, e.Pinned,
				want.id, want.turn, want.msg.tokens(m.count), m.isPinned(want))
		}
		if got, want := PrintMessage(e.Message), want.msg.print(); got != want {
			d.fail("entry %d is %s, want %s", i, got, want)
		}
		if e.Missing != want.missing {
			d.fail("entry %d lacks %d tokens, want %d", i, e.Missing, want.missing)
		}
	}
	if s.Tokens() != m.raw() {
		d.fail("%d raw tokens, want %d", s.Tokens(), m.raw())
	}
	sum, ok := s.Summary()
	if ok != (m.summary != "") || shownSummary(sum) != m.summary || ok && (sum.Updates != m.updates || !slices.Equal(idsIn(sum.Covers), m.covers) || !slices.Equal(idsIn(sum.Read), m.reads)) {
		d.fail("summary %+v, want %q covering %v, %d updates, has read %v", sum, m.summary, m.covers, m.updates, m.reads)
	}
	d.compareOlder(s)
	if title, meta := s.Meta(); title != m.title || meta != m.meta {
		d.fail("title %q and data %q, want %q and %q", title, meta, m.title, m.meta)
	}
	d.compareMessages(s)
	d.compareExchanges(s)
	var pinned []convo.ID
	for _, e := range m.list {
		if m.isPinned(e) {
			pinned = append(pinned, e.id)
		}
	}
	if !slices.Equal(d.h.Snapshot().Pinned(), pinned) {
		d.fail("pinned %v, want %v", d.h.Snapshot().Pinned(), pinned)
	}
	d.compareNumbers()
	if d.stats.Operations%64 == 0 { // writing and reading JSON takes long
		opts := d.opts
		opts.Limits = d.limits
		d.checkSaved(d.t, d.h, &opts)
	}
}

// idsIn returns all IDs in the ranges.
func idsIn(ranges []convo.Range) (ids []convo.ID) {
	for _, r := range ranges {
		for id := r.First; id <= r.Last; id++ {
			ids = append(ids, id)
		}
	}
	return ids
}

// compareOlder compares what was before the summary, as it is saved. It sets how the texts go on
// that the model cannot know.
func (d *driver) compareOlder(s *convo.Snapshot) {
	if d.m.summaryUID == d.older {
		return
	}
	d.older = d.m.summaryUID
	type saved struct {
		Text, Names  string
		Covers, Read []convo.Range
		Updates      int
		Before       *saved
	}
	var real struct{ Summary saved }
	data, err := s.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(data, &real)
	}
	if err != nil {
		d.fail("the JSON of a snapshot: %v", err)
	}
	older, next := slices.Clone(d.m.placed.older), real.Summary.Before
	if len(older) > 0 && older[0].goesOn { // a link of a chain may have removed the summary, and the next one written another
		switch {
		case next == nil:
			older = nil
		case next.Before == nil && len(next.Read) == 0 && !strings.HasPrefix(next.Text, beginningOf(older[0].summary)):
			older = older[:1]
			older[0].summary, older[0].reads = "", nil
		}
	}
	for i := range older {
		if next == nil {
			d.fail("%d summaries before the present one, want %d", i, len(older))
		}
		p, text := &older[i], shownSummary(convo.Summary{Text: next.Text, Names: next.Names})
		beginning := beginningOf(p.summary)
		names := strings.TrimPrefix(p.summary[len(beginning):], namesLine)
		if p.goesOn && strings.HasPrefix(next.Text, beginning) && len(next.Text) > len(beginning) && next.Names == names {
			p.summary, p.goesOn = text, false
		}
		if p.summary != text || text != "" && (p.updates != next.Updates || !slices.Equal(p.covers, idsIn(next.Covers)) || !slices.Equal(p.reads, idsIn(next.Read))) {
			d.fail("before the summary was %+v, want %+v", *next, *p)
		}
		next = next.Before
	}
	if next != nil {
		d.fail("more than %d summaries before the present one: %+v", len(older), *next)
	}
	d.m.placed.older = older
}

// beginningOf returns the text of a summary, without the names.
func beginningOf(summary string) string {
	text, _, _ := strings.Cut(summary, namesLine)
	return text
}

// compareMessages compares the messages that would be sent.
func (d *driver) compareMessages(s *convo.Snapshot) {
	m := d.m
	var want []string
	for _, e := range m.sys {
		want = append(want, e.msg.print())
	}
	msgs := s.Messages()
	if m.summary != "" {
		i := len(want)
		if i >= len(msgs) || !strings.Contains(msgs[i].Text(), "\n"+m.summary+"\n") || msgs[i].Role != convo.RoleUser {
			d.fail("no summary at %d of %v", i, msgs)
		}
		want = append(want, PrintMessage(msgs[i]))
	}
	place := 0 // after the user messages with which the newest turn begins, and notes
	for i, e := range m.list {
		if newest := e.turn == m.list[len(m.list)-1].turn; !newest {
			continue
		} else if e.msg.role != convo.RoleUser && (!e.msg.note || place == 0) {
			break
		}
		place = i + 1
	}
	for i := 0; i <= len(m.list); i++ {
		if i == place {
			for _, e := range m.ephemeral {
				want = append(want, e.print())
			}
		}
		if i < len(m.list) {
			want = append(want, m.list[i].msg.print())
		}
	}
	for i, msg := range msgs {
		if i >= len(want) || PrintMessage(msg) != want[i] {
			d.fail("message %d is %s, want %q", i, PrintMessage(msg), want)
		}
	}
	if len(msgs) != len(want) {
		d.fail("%d messages, want %d", len(msgs), len(want))
	}
	d.compareShown(s, msgs)
}

// compareShown checks the last messages that would be sent, and the messages that are the
// same as in the previous snapshot.
func (d *driver) compareShown(s *convo.Snapshot, msgs []convo.Message) {
	from, next := int(s.Version())%(s.Len()+2), 0
	var end []convo.Message
	for i, m := range s.MessagesFrom(from, nil) {
		if i < from || i < next {
			d.fail("a message of entry %d after %d, in those from %d on", i, next, from)
		}
		next, end = i, append(end, m)
	}
	if len(end) > len(msgs) || len(end) < s.Len()-from || !reflect.DeepEqual(end, append([]convo.Message(nil), msgs[len(msgs)-len(end):]...)) {
		d.fail("from entry %d on the messages are %v, and all are %v", from, end, msgs)
	}
	prev := d.shown
	d.shown = s
	same := s.Same(prev)
	if prev == nil && same > 0 || same > s.Len() || prev != nil && same != prev.Same(s) || s.Same(s) != s.Len() {
		d.fail("Same is %d", same)
	}
	if prev == nil {
		return
	}
	before := func(s *convo.Snapshot) []convo.Message {
		n := 0
		for range s.MessagesFrom(same, nil) {
			n++
		}
		all := s.Messages()
		return all[:len(all)-n]
	}
	if a, b := before(s), before(prev); same > 0 && (len(a) < same || !reflect.DeepEqual(a, b)) {
		d.fail("Same is %d for %v and %v", same, a, b)
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
			tokens += all[at].msg.tokens(m.count)
			ids = append(ids, all[at].id)
			at++
		}
		floor := first.isSystem() || m.isFloor(first) || m.isPinned(first)
		open := at == len(all) && len(m.open()) > 0
		if !slices.Equal(x.IDs(), ids) || x.First != ids[0] || x.Last != ids[len(ids)-1] || x.Tokens != tokens || x.Floor != floor || x.Open != open || x.Turn != first.turn {
			d.fail("exchange %+v %v, want %v, %d tokens, floor %v, open %v", x, x.IDs(), ids, tokens, floor, open)
		}
	}
	if at != len(all) {
		d.fail("the exchanges end at entry %d of %d", at, len(all))
	}
}

func (d *driver) compareNumbers() {
	m := d.m
	st := d.h.Status()
	if st.Entries != m.len() || st.System != len(m.sys) || st.Turns != m.turns() || st.OpenCalls != len(m.open()) || st.Queued != len(m.queue) || st.Appended != m.appended {
		d.fail("status %+v, want %d entries, %d system, %d turns, %d open, %d queued, %d appended", st, m.len(), len(m.sys), m.turns(), len(m.open()), len(m.queue), m.appended)
	}
	e := d.h.Tokens()
	s := m.scale(d.limits)
	if e.Tokens != s.tokens() || e.Upper != s.upper() || e.Measured != m.measured(d.limits) || st.Tokens != e.Tokens || st.Upper != e.Upper {
		d.fail("estimate %+v, want %d, at most %d, measured %d", e, s.tokens(), s.upper(), m.measured(d.limits))
	}
}

// checkKept fails the test if a snapshot has changed since it was taken.
func (d *driver) checkKept() {
	kept := d.kept
	if d.forked != nil {
		kept = append(kept[:len(kept):len(kept)], d.forked)
	}
	for _, s := range kept {
		if got := Print(s.real); got != s.print {
			d.fail("snapshot %d has changed from\n%s\nto\n%s", s.time, s.print, got)
		}
	}
}

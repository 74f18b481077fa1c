package convo_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
)

func itoa(n int) string { return strconv.Itoa(n) }

// byteLen is a tokenizer whose sums anyone can check.
var byteLen = convo.TokenizerFunc(func(s string) int { return len(s) })

// wrapperText is what stands around a summary. The key of another History is
// of the same length, and all letters.
var wrapperText = func() [2]string {
	s, _ := convo.NewSnapshot(nil).With(convo.Edit{Summary: &convo.Summary{Text: "x"}})
	open, end, _ := strings.Cut(s.Messages()[0].Text(), "\nx\n")
	return [2]string{open + "\n", "\n" + end}
}()

// hard counts what makes the cases of a run hard.
type hard struct {
	ops, histories                                       int
	lengths                                              []int
	reduced3, pinInSpan, cutInTurn, acrossEdit           int
	stale, reloaded                                      int
	edits                                                int // of the history at hand
	sawPin, sawCut, sawAcross, sawStale, sawReload, saw3 bool
}

func (h *hard) begin() {
	h.histories++
	h.edits = 0
	h.sawPin, h.sawCut, h.sawAcross, h.sawStale, h.sawReload, h.saw3 = false, false, false, false, false, false
}

func (h *hard) end(length int) {
	h.lengths = append(h.lengths, length)
	for _, c := range []struct {
		saw bool
		n   *int
	}{{h.edits >= 3, &h.reduced3}, {h.sawPin, &h.pinInSpan}, {h.sawCut, &h.cutInTurn}, {h.sawAcross, &h.acrossEdit}, {h.sawStale, &h.stale}, {h.sawReload, &h.reloaded}} {
		if c.saw {
			*c.n++
		}
	}
}

// A driver runs one sequence of operations on a History and on the model.
type driver struct {
	t     testing.TB
	data  []byte     // what to do, while it lasts
	rng   *rand.Rand // then this, nil: nothing
	h     *convo.History
	m     *model
	snaps []*mSnap
	log   []string
	hard  *hard
	opts  convo.Options
	other *mSnap // of a History that this one was forked from, and that went on
}

// n returns a number below limit.
func (d *driver) n(limit int) int {
	if limit <= 1 {
		return 0
	}
	if d.rng != nil {
		return d.rng.IntN(limit)
	}
	if len(d.data) == 0 {
		return 0
	}
	b := int(d.data[0])
	d.data = d.data[1:]
	return b % limit
}

func (d *driver) more(done, ops int) bool {
	if d.rng != nil {
		return done < ops
	}
	return len(d.data) > 0
}

func (d *driver) say(format string, args ...any) {
	d.log = append(d.log, fmt.Sprintf(format, args...))
}

func (d *driver) fail(format string, args ...any) {
	d.t.Helper()
	tail := d.log[max(len(d.log)-40, 0):]
	d.t.Fatalf("%s\nafter %d operations:\n%s", fmt.Sprintf(format, args...), len(d.log), strings.Join(tail, "\n"))
}

// checkModel runs operations on a History and on the model, and compares after
// each. It is what the test and the fuzz target share.
func checkModel(t testing.TB, data []byte, rng *rand.Rand, ops int, count *hard) {
	d := &driver{t: t, data: data, rng: rng, hard: count}
	count.begin()
	relaxed, pinFirst := d.n(2) == 1, d.n(3) == 0
	d.m = newModel(relaxed, pinFirst)
	d.opts = convo.Options{PinFirstUser: pinFirst}
	modelCount = convo.Heuristic{}.CountTokens
	if d.n(2) == 0 {
		d.opts.Tokenizer, modelCount = byteLen, byteLen
	}
	if relaxed {
		d.opts.Roles = convo.Relaxed()
	}
	h, err := convo.New(&d.opts)
	if err != nil {
		t.Fatal(err)
	}
	d.h = h
	for i := 0; d.more(i, ops); i++ {
		d.m.seq++
		d.step()
		count.ops++
		d.compare()
	}
	d.oldSnapshots()
	if err := d.h.Close(); err != nil {
		d.fail("Close: %v", err)
	}
	if _, err := d.h.Append(convo.User("late")); !errors.Is(err, convo.ErrClosed) {
		d.fail("Append after Close: %v", err)
	}
	d.compare()
	count.end(d.h.Len())
}

func kindOf(err error) string {
	role, _ := errors.AsType[*convo.RoleError](err)
	edit, _ := errors.AsType[*convo.EditError](err)
	switch {
	case err == nil:
		return ""
	case role != nil:
		return "role"
	case errors.Is(err, convo.ErrNoOpenCall):
		return "no open call"
	case errors.Is(err, convo.ErrAnswered):
		return "answered"
	case errors.Is(err, convo.ErrOpenCalls):
		return "open calls"
	case edit != nil:
		return "edit"
	case errors.Is(err, convo.ErrStale):
		return "stale"
	case errors.Is(err, convo.ErrNotFound):
		return "not found"
	}
	return err.Error()
}

func (d *driver) want(op string, err error, kind string) {
	d.t.Helper()
	d.say("%s: %q", op, kind)
	if got := kindOf(err); got != kind {
		d.fail("%s: got %q (%v), want %q", op, got, err, kind)
	}
}

func (d *driver) step() {
	switch op := d.n(64); {
	case op < 20:
		d.append(d.sensible())
	case op < 30:
		d.append(d.round())
	case op < 33:
		d.append(d.anything())
	case op < 36:
		d.pin()
	case op < 40:
		d.keep()
	case op < 41:
		d.splice()
	case op < 43:
		d.edit()
	case op < 44:
		d.takeBack()
	case op < 46:
		d.system()
	case op < 48:
		d.ephemeral()
	case op < 49:
		d.answerOpen()
	case op < 51:
		d.usage()
	case op < 52:
		d.model()
	case op < 53:
		d.reload()
	default:
		d.append(d.sensible())
		d.append(d.sensible())
	}
}

func (d *driver) takeBack() {
	if d.n(2) == 0 {
		d.rewind()
	} else {
		d.rollback()
	}
	if d.n(2) == 0 {
		d.dropNewFloor()
	}
}

// dropNewFloor applies an edit of an old snapshot to what a rollback has made
// floor again.
func (d *driver) dropNewFloor() {
	for _, at := range d.snaps {
		for _, x := range d.m.list {
			old, ok := at.view.find(x.id)
			if !ok || !d.m.hardFloor(x) || at.view.hardFloor(old) || at.view.pinned(old) {
				continue
			}
			e := mEditOf{drop: at.view.exchange(x.head)}
			_, kind := d.m.apply(at, e)
			d.hard.sawStale = d.hard.sawStale || kind == "stale"
			_, err := d.h.Apply(at.real, convo.Edit{Drop: e.drop})
			d.want(fmt.Sprintf("drop new floor %v of %d", e.drop, at.seq), err, kind)
			return
		}
	}
}

// Generators of batches.

func (d *driver) text() string { return strings.Repeat("x", d.n(12)+1) }

func (d *driver) user() mMsg { return mMsg{role: convo.RoleUser, text: d.text()} }

func (d *driver) assistant(calls int) mMsg {
	m := mMsg{role: convo.RoleAssistant}
	if calls == 0 || d.n(3) == 0 {
		m.text = d.text()
	}
	first := d.n(4) // ids come again in later exchanges
	for i := range calls {
		m.calls = append(m.calls, "c"+itoa((first+i)%6))
	}
	return m
}

func (d *driver) result(id string) mResult {
	r := mResult{id: id, isErr: d.n(5) == 0, noName: d.n(3) == 0}
	if d.n(8) > 0 {
		r.text = strings.Repeat("r", d.n(60)+1)
	}
	return r
}

// results answers some of the open calls, in any order, in one message or
// several.
func (d *driver) results(open []string, all bool) []mMsg {
	var msgs []mMsg
	open = slices.Clone(open)
	for n := len(open); n > 0; n-- {
		i := d.n(len(open))
		r := d.result(open[i])
		if i == 0 && d.n(4) == 0 {
			r.noID, r.noName = true, true
		}
		open = slices.Delete(open, i, i+1)
		if k := len(msgs); k > 0 && d.n(3) == 0 {
			msgs[k-1].results = append(msgs[k-1].results, r)
		} else {
			msgs = append(msgs, mMsg{role: convo.RoleTool, results: []mResult{r}})
		}
		if !all && d.n(2) == 0 {
			break
		}
	}
	return msgs
}

// sensible is a batch that mostly fits what is there.
func (d *driver) sensible() []mMsg {
	if open := d.m.open(); len(open) > 0 {
		return d.results(open, d.n(2) == 0)
	}
	if len(d.m.list) == 0 {
		if d.n(2) == 0 && len(d.m.sys) == 0 {
			return []mMsg{{role: convo.RoleSystem, text: d.text()}, d.user()}
		}
		return []mMsg{d.user()}
	}
	switch last := d.m.list[len(d.m.list)-1].msg.role; {
	case last == convo.RoleUser:
		return []mMsg{d.assistant(max(d.n(6)-2, 0))}
	case last == convo.RoleTool:
		return []mMsg{d.assistant(max(d.n(5)-1, 0))}
	default:
		if d.n(6) == 0 {
			return []mMsg{d.user(), d.user()}
		}
		return []mMsg{d.user()}
	}
}

// round is a whole tool round in one batch, where the model is to speak.
func (d *driver) round() []mMsg {
	if len(d.m.open()) > 0 || len(d.m.list) == 0 || d.m.list[len(d.m.list)-1].msg.role == convo.RoleAssistant {
		return d.sensible()
	}
	a := d.assistant(d.n(4) + 1)
	return append([]mMsg{a}, d.results(a.calls, true)...)
}

// anything is a batch that mostly does not fit.
func (d *driver) anything() []mMsg {
	var batch []mMsg
	for range d.n(4) {
		switch d.n(5) {
		case 0:
			batch = append(batch, mMsg{role: convo.RoleSystem, text: d.text()})
		case 1:
			batch = append(batch, d.user())
		case 2:
			batch = append(batch, d.assistant(d.n(3)))
		default:
			r := d.result("c" + itoa(d.n(7)))
			if d.n(4) == 0 {
				r.noID, r.noName = true, true
			}
			batch = append(batch, mMsg{role: convo.RoleTool, results: []mResult{r}})
		}
	}
	return batch
}

func (m mMsg) real() convo.Message {
	switch m.role {
	case convo.RoleSystem:
		return convo.System(m.text)
	case convo.RoleUser:
		return convo.User(m.text)
	case convo.RoleAssistant:
		var calls []convo.ToolCall
		for _, id := range m.calls {
			calls = append(calls, convo.ToolCall{ID: id, Name: toolOf(id), Arguments: mArgs})
		}
		return convo.Assistant(m.text, calls...)
	}
	out := convo.Message{Role: convo.RoleTool}
	for _, r := range m.results {
		p := convo.ToolResult{CallID: r.id, Name: toolOf(r.id), IsError: r.isErr}
		if r.noID {
			p.CallID = ""
		}
		if r.noName {
			p.Name = ""
		}
		if r.text != "" {
			p.Parts = []convo.Part{convo.Text(r.text)}
		}
		out.Parts = append(out.Parts, p)
	}
	return out
}

// Operations.

func (d *driver) append(batch []mMsg) {
	var msgs []convo.Message
	for _, m := range batch {
		msgs = append(msgs, m.real())
	}
	kind := d.m.append(batch)
	id, err := d.h.Append(msgs...)
	d.want(fmt.Sprintf("append %v", msgs), err, kind)
	if err == nil && len(batch) > 0 && id != d.m.last {
		d.fail("Append returned %d, want %d", id, d.m.last)
	}
}

func (d *driver) anyID() convo.ID { return convo.ID(d.n(int(d.m.last)+3) + 1) }

// listID is mostly the ID of an entry in the view.
func (d *driver) listID() convo.ID {
	if len(d.m.list) == 0 || d.n(8) == 0 {
		return d.anyID()
	}
	return d.m.list[d.n(len(d.m.list))].id
}

func (d *driver) pin() {
	if d.n(4) == 0 {
		want := ""
		if len(d.m.list) == 0 {
			want = "not found"
		} else {
			d.m.pin([]convo.ID{d.m.list[len(d.m.list)-1].id}, true)
		}
		d.want("pin last", d.h.PinLast(), want)
		return
	}
	ids := []convo.ID{d.listID()}
	if d.n(4) == 0 {
		ids = append(ids, d.listID())
	}
	if d.n(3) == 0 {
		d.want(fmt.Sprintf("unpin %v", ids), d.h.Unpin(ids...), d.m.pin(ids, false))
	} else {
		d.want(fmt.Sprintf("pin %v", ids), d.h.Pin(ids...), d.m.pin(ids, true))
	}
}

func (d *driver) keep() {
	s := &mSnap{real: d.h.Snapshot(), view: d.m.mView.copy(), seq: d.m.seq, model: d.m.model}
	s.print = printOf(s.real)
	if len(d.snaps) >= 6 {
		d.snaps = slices.Delete(d.snaps, 0, 1)
	}
	d.snaps = append(d.snaps, s)
	d.say("keep snapshot %d", s.seq)
}

// snapshot is a kept snapshot, or one of now.
func (d *driver) snapshot() *mSnap {
	if len(d.snaps) == 0 || d.n(3) == 0 {
		d.keep()
		return d.snaps[len(d.snaps)-1]
	}
	return d.snaps[d.n(len(d.snaps))]
}

func (d *driver) splice() {
	at := d.snapshot()
	n := d.n(at.view.lenAll()/2 + 3)
	sum := ""
	if d.n(3) > 0 {
		sum = "sum " + itoa(d.m.seq)
	}
	e := at.splice(n, sum)
	before := d.m.mView.copy()
	r, kind := mReport{}, ""
	if len(e.drop) > 0 {
		r, kind = d.m.apply(at, e)
	}
	dropped, err := d.h.SplicePrefix(at.real, n, sum)
	d.want(fmt.Sprintf("splice %d of %d, %q", n, at.seq, sum), err, kind)
	if err == nil && dropped != len(r.gone) {
		d.fail("dropped %d, want %d", dropped, len(r.gone))
	}
	d.note(before, r, kind)
}

func (v mView) lenAll() int { return len(v.sys) + len(v.list) }

func (d *driver) edit() {
	at := d.snapshot()
	var e mEditOf
	if n := len(at.view.list); n > 0 {
		from := d.n(n)
		for _, x := range at.view.list[from:min(from+d.n(8), n)] {
			bad := d.n(40) == 0
			if bad || !at.view.hardFloor(x) && !at.view.pinned(x) {
				if len(x.msg.results) > 0 && d.n(3) == 0 {
					c := convo.Clear{ID: x.id}
					if d.n(2) == 0 {
						c.CallID = x.msg.results[d.n(len(x.msg.results))].id
					}
					if d.n(3) == 0 {
						c.Text = "cleared"
					}
					e.clear = append(e.clear, c)
				} else if d.n(3) > 0 {
					e.drop = append(e.drop, at.view.exchange(x.head)...)
				}
			}
		}
	}
	if d.n(30) == 0 {
		e.drop = append(e.drop, d.anyID())
	}
	if d.n(30) == 0 && len(e.drop) > 0 {
		e.drop = e.drop[1:]
	}
	slices.Sort(e.drop)
	e.drop = slices.Compact(e.drop)
	real := convo.Edit{Drop: slices.Clone(e.drop), Clear: slices.Clone(e.clear)}
	switch d.n(4) {
	case 0:
		e.setSum, e.sum = true, "text "+itoa(d.m.seq)
		real.Summary = &convo.Summary{Text: e.sum}
	case 1:
		if d.n(4) == 0 {
			e.setSum = true
			real.Summary = &convo.Summary{}
		}
	}
	if d.n(2) == 0 {
		slices.Reverse(real.Drop)
	}
	before := d.m.mView.copy()
	r, kind := d.m.apply(at, e)
	report, err := d.h.Apply(at.real, real)
	d.want(fmt.Sprintf("apply drop %v clear %v summary %v of %d", e.drop, e.clear, e.setSum, at.seq), err, kind)
	if err == nil {
		gone := slices.Concat(report.Dropped, report.Summarised)
		if report.Outcome != r.outcome || !slices.Equal(gone, r.gone) && report.Outcome == convo.Applied ||
			!slices.Equal(report.Cleared, r.cleared) || !slices.Equal(report.Kept, r.kept) {
			d.fail("report %+v, want %+v", report, r)
		}
	}
	d.note(before, r, kind)
}

// note counts what made an edit hard.
func (d *driver) note(before mView, r mReport, kind string) {
	if kind == "stale" {
		d.hard.sawStale = true
	}
	if r.outcome != convo.Applied || kind != "" {
		return
	}
	d.hard.edits++
	if len(r.gone) == 0 {
		return
	}
	first, last := r.gone[0], r.gone[len(r.gone)-1]
	for _, e := range before.list {
		d.hard.sawPin = d.hard.sawPin || e.id > first && e.id < last && before.pinned(e)
	}
	lastGone, _ := before.find(last)
	for _, e := range d.m.list {
		if e.id > last && e.turn == lastGone.turn {
			d.hard.sawCut = true
		}
	}
}

func (d *driver) rollback() {
	at := d.snapshot()
	across := slices.ContainsFunc(d.m.edits, func(e mEdit) bool { return e.seq > at.seq })
	kind := d.m.rollback(at)
	d.want(fmt.Sprintf("rollback to %d", at.seq), d.h.Rollback(at.real), kind)
	d.hard.sawAcross = d.hard.sawAcross || across && kind == ""
}

func (d *driver) rewind() {
	n := d.n(3)
	want := d.m.rewind(n)
	taken, err := d.h.Rewind(n)
	d.want(fmt.Sprintf("rewind %d", n), err, "")
	if taken != want {
		d.fail("rewound %d, want %d", taken, want)
	}
}

func (d *driver) system() {
	var msgs []convo.Message
	d.m.sys = nil
	for range d.n(3) {
		m := mMsg{role: convo.RoleSystem, text: d.text()}
		msgs = append(msgs, m.real())
		d.m.last++
		d.m.sys = append(d.m.sys, mEntry{id: d.m.last, head: d.m.last, uid: d.m.newUID(), msg: m})
	}
	d.want(fmt.Sprintf("set system %d", len(msgs)), d.h.SetSystem(msgs...), "")
}

func (d *driver) ephemeral() {
	var msgs []convo.Message
	d.m.eph, d.m.ephUID = nil, d.m.newUID()
	for range d.n(3) {
		d.m.eph = append(d.m.eph, d.text())
		msgs = append(msgs, convo.User(d.m.eph[len(d.m.eph)-1]))
	}
	d.want(fmt.Sprintf("set ephemeral %d", len(msgs)), d.h.SetEphemeral(msgs...), "")
}

func (d *driver) answerOpen() {
	open := d.m.open()
	for _, id := range open {
		if kind := d.m.append([]mMsg{{role: convo.RoleTool, results: []mResult{{id: id, text: "gave up", isErr: true}}}}); kind != "" {
			d.fail("model: %s", kind)
		}
	}
	n, err := d.h.AnswerOpenCalls("gave up")
	d.want("answer open calls", err, "")
	if n != len(open) {
		d.fail("answered %d, want %d", n, len(open))
	}
}

func (d *driver) usage() {
	at := d.snapshot()
	input := d.n(2 * (at.view.raw() + 50))
	d.say("usage %d of %d", input, at.seq)
	if err := d.h.RecordUsage(at.real, convo.Usage{Input: input}); err != nil {
		d.fail("RecordUsage: %v", err)
	}
	if input == 0 || d.m.sent != nil && at.real.Version() < d.m.sent.real.Version() {
		return
	}
	raw := at.view.raw()
	cal := mCal{input - raw, 1}
	if input < raw {
		cal = mCal{0, float64(input) / float64(raw)}
	}
	d.m.cals[at.model] = cal
	if at.model == d.m.model {
		d.m.sent = at
	}
}

func (d *driver) model() {
	if d.n(2) == 0 {
		d.m.guess = d.n(500)
		d.want("set limits", d.h.SetLimits(convo.Limits{Overhead: d.m.guess}), "")
		return
	}
	name := []string{"", "large", "small"}[d.n(3)]
	d.want("set model "+name, d.h.SetModel(name), "")
	if name != d.m.model {
		d.m.model, d.m.sent = name, nil
	}
}

// reload goes on with a History made of the JSON of this one, or with a fork.
func (d *driver) reload() {
	s := d.h.Snapshot()
	if d.n(2) == 0 {
		data, err := json.Marshal(s)
		if err != nil {
			d.fail("marshal: %v", err)
		}
		s = new(convo.Snapshot)
		if err := json.Unmarshal(data, s); err != nil {
			d.fail("unmarshal: %v\n%s", err, data)
		}
	}
	d.oldSnapshots()
	opts := d.opts
	opts.Limits.Overhead = d.m.guess
	h, err := convo.Restore(s, &opts)
	d.want("reload", err, "")
	if batch := d.sensible(); d.m.mView.accepts(d.m, batch) {
		// The old one goes on by itself; neither must see the other.
		if _, err := d.h.Append(batch[0].real()); err != nil {
			d.fail("append before a fork went on: %v", err)
		}
	}
	d.other = &mSnap{real: d.h.Snapshot(), print: printOf(d.h.Snapshot())}
	d.snaps = nil
	d.h = h
	d.m.edits, d.m.gone, d.m.sent = nil, map[convo.ID]bool{}, nil
	d.m.eph = nil
	for _, list := range [][]mEntry{d.m.sys, d.m.list} {
		for i := range list {
			list[i].uid = d.m.newUID()
		}
	}
	d.m.sumUID = d.m.newUID()
	d.hard.sawReload = true
}

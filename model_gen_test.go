package convo_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
)

func itoa(n int) string { return strconv.Itoa(n) }

// byteLen is a tokenizer whose sums anyone can check.
var byteLen = convo.TokenizerFunc(func(s string) int { return len(s) })

// wrapperText is what stands around a summary, with the key that is counted in
// place of the History's.
var wrapperText = func() [2]string {
	s, _ := convo.NewSnapshot(nil).With(convo.Edit{Summary: &convo.Summary{Text: "x"}})
	text := regexp.MustCompile(`key="\w+"`).ReplaceAllString(s.Messages()[0].Text(), `key="qmzvkrtx"`)
	open, end, _ := strings.Cut(text, "\nx\n")
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

	// Of compactions.
	strategy scripted
	limits   convo.Limits
	attempts []planned // of the flight under way
	told     []convo.Report
	calls    int // of the strategy, ever
	runs     int // of the strategy, in the flight under way
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
	d.strategy = scripted{d: d, inner: convo.Truncate{}}
	d.opts.Strategy = &d.strategy
	d.opts.OnCompaction = func(r convo.Report) { d.told = append(d.told, r) }
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
	d.landHeld()
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
	switch op := d.n(68); {
	case op < 52:
		d.act(op)
	case op < 53:
		d.landHeld()
		d.reload()
	case op < 56:
		if d.strategy.held == nil {
			d.compact()
		}
	case op < 57:
		d.background()
	default:
		d.append(d.sensible())
		d.append(d.sensible())
	}
}

// act does what may be done at any time.
func (d *driver) act(op int) {
	switch {
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
	default:
		d.model()
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

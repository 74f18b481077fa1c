package modeltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// An edit is an edit of the model.
type edit struct {
	drop  []convo.ID    // ascending, each once
	clear []convo.Clear // entries that are dropped are ignored

	rewrite    []convo.Rewrite // entries that are dropped are ignored
	byStrategy bool            // the edit may not rewrite the floor

	// The summary. An empty one removes the current one.
	setSummary bool
	summary    string
	covers     []convo.ID // ascending; nil: all entries that the edit drops
	reads      []convo.ID // ascending; what it has read besides
	goesBack   bool       // it knows what the summary before the reading says of what it stands for

	cuts map[convo.ID][]result // cuts by the History: the new results of an entry

	refused  convo.ID // an entry, the arguments of whose call at index removes are refused; 0: none
	removes  int
	removing string // what takes their place
}

// A change describes what an edit did. An edit that changed nothing may still have kept
// some entries.
type change struct {
	applied             bool
	dropped, summarised []convo.ID
	cleared, kept, cut  []convo.ID
	rewritten           []convo.ID
	forgotten, read     []convo.ID
	left                []string // the expected result of Report.Originals, printed
}

// leave adds x to the expected result of Report.Originals.
func (c *change) leave(x entry) {
	o := x.before()
	c.left = append(c.left, printLeft(x.id, o.msg.print(), o.missing))
}

func printLeft(id convo.ID, msg string, missing int) string {
	return fmt.Sprint(id, " ", msg, " missing ", missing)
}

// withCuts returns v with the results of some entries cut. The entries get a uid that no
// entry of the model has.
func (v view) withCuts(cuts map[convo.ID][]result) view {
	v = v.clone()
	for i := range v.list {
		if results, ok := cuts[v.list[i].id]; ok {
			v.list[i].uid, v.list[i].msg.results = -1, results
		}
	}
	return v
}

// gone returns the IDs of all entries that left the view.
func (c change) gone() []convo.ID {
	ids := slices.Concat(c.dropped, c.summarised)
	slices.Sort(ids)
	return ids
}

// apply applies an edit of the snapshot at. If the edit cannot be applied, it returns the
// failure and leaves m unchanged.
func (m *model) apply(at *snapshot, e edit) (change, failure) {
	if len(e.drop) == 0 && len(e.clear) == 0 && len(e.rewrite) == 0 && len(e.cuts) == 0 && !e.setSummary && e.refused == 0 {
		return change{}, noGain
	}
	if !at.view.allows(e) {
		return change{}, badEdit
	}
	if e.setSummary && !m.sameSummary(at.view) {
		return change{}, stale
	}
	for _, id := range e.drop {
		x, ok := m.find(id)
		was, _ := at.view.find(id)
		isCovered := e.summary != "" && (e.covers == nil || slices.Contains(e.covers, id))
		if !ok || isCovered && x.reads != was.reads {
			return change{}, stale
		}
	}
	for _, was := range at.view.list {
		if x, ok := m.find(was.id); e.summary != "" && slices.Contains(e.reads, was.id) && (!ok || x.reads != was.reads) {
			return change{}, stale
		}
	}
	for _, c := range e.clear {
		if _, ok := m.find(c.ID); !ok && !slices.Contains(e.drop, c.ID) {
			return change{}, stale
		}
	}
	for _, r := range e.rewrite {
		was, _ := at.view.find(r.ID)
		x, ok := m.find(r.ID)
		if (r.Forget || !slices.Contains(e.drop, r.ID)) && (!ok || x.uid != was.uid && !m.isPinned(x)) {
			return change{}, stale
		}
	}
	for id := range e.cuts {
		if _, ok := m.find(id); !ok {
			return change{}, stale
		}
	}
	if e.refused != 0 {
		was, _ := at.view.find(e.refused)
		if x, ok := m.find(e.refused); !ok || x.uid != was.uid && !m.isPinned(x) {
			return change{}, stale
		}
	}
	next := m.view.clone()
	next.list = nil
	before := m.view.clone()
	var did change
	var touched []convo.ID
	for i, x := range m.list {
		dropped := slices.Contains(e.drop, x.id)
		cleared := slices.ContainsFunc(e.clear, func(c convo.Clear) bool { return c.ID == x.id })
		cut, isCut := e.cuts[x.id]
		rewritten := slices.IndexFunc(e.rewrite, func(r convo.Rewrite) bool { return r.ID == x.id })
		switch {
		case !dropped && !cleared && !isCut && rewritten < 0 && x.id != e.refused:
		case m.isPinned(x):
			did.kept = append(did.kept, x.id)
		case x.id == e.refused: // the floor as well
			msg := x.msg
			msg.removed = make([]string, len(msg.calls))
			copy(msg.removed, x.msg.removed)
			msg.removed[e.removes] = e.removing
			if msg.print() == x.msg.print() {
				break
			}
			did.leave(x)
			did.rewritten = append(did.rewritten, x.id)
			touched = append(touched, x.id)
			x = m.changed(x, msg, msg)
			x.reads = m.newUID()
		case isCut:
			did.leave(x)
			did.cut = append(did.cut, x.id)
			touched = append(touched, x.id)
			msg := x.msg
			msg.results = cut
			x = m.changed(x, msg, x.before().read)
		case m.isFloor(x) && (dropped || cleared || e.byStrategy):
			return change{}, stale
		case dropped:
			if rewritten >= 0 && e.rewrite[rewritten].Forget {
				if y, ok := m.rewritten(x, e.rewrite[rewritten]); ok {
					before.list[i] = y // for Left and Undo
					did.forgotten = append(did.forgotten, x.id)
				}
			}
			did.leave(before.list[i])
			did.dropped = append(did.dropped, x.id)
			touched = append(touched, x.id)
			next.touched = max(next.touched, x.turn)
			continue
		case rewritten >= 0:
			y, ok := m.rewritten(x, e.rewrite[rewritten])
			if !ok {
				break
			}
			if e.rewrite[rewritten].Forget {
				before.list[i] = y // for Left and Undo
				did.forgotten = append(did.forgotten, x.id)
			}
			did.leave(before.list[i])
			x = y
			did.rewritten = append(did.rewritten, x.id)
			touched = append(touched, x.id)
		default:
			if y, ok := m.cleared(x, e.clear); ok {
				did.leave(x)
				x = y
				did.cleared = append(did.cleared, x.id)
				touched = append(touched, x.id)
				next.touched = max(next.touched, x.turn)
			}
		}
		next.list = append(next.list, x)
	}
	did.applied = len(touched) > 0
	before.placed, next.placed = before.without(did.forgotten), next.without(did.forgotten)
	if e.setSummary && (len(e.drop) == 0 || len(did.dropped) > 0) && m.summarize(&next, e, &did) {
		did.applied = true
	}
	if !did.applied {
		return did, noGain
	}
	for _, id := range did.forgotten {
		m.forgotten[id] = m.time
	}
	next.appended = 0
	m.view = next
	uid := m.newUID()
	m.edits = append(m.edits, uid)
	after := map[convo.ID]int{}
	for _, x := range m.list {
		after[x.id] = x.uid
	}
	m.applied = append(m.applied, appliedEdit{uid, m.time, touched, did.gone(), before, after})
	return did, success
}

// allows reports whether an edit keeps the rules by the view it was made of.
func (v view) allows(e edit) bool {
	for _, id := range e.drop {
		x, ok := v.find(id)
		if !ok || x.isSystem() || v.isFloor(x) || v.isPinned(x) {
			return false
		}
		for _, member := range v.exchange(x.head) {
			if !slices.Contains(e.drop, member) {
				return false
			}
		}
	}
	for _, c := range e.clear {
		x, ok := v.find(c.ID)
		if !ok || v.isFloor(x) || v.isPinned(x) {
			return false
		}
		if !slices.ContainsFunc(x.msg.results, func(r result) bool { return c.CallID == "" || c.CallID == r.id }) {
			return false
		}
	}
	if x, ok := v.find(e.refused); e.refused != 0 && (!ok || v.isPinned(x)) {
		return false
	}
	seen := map[convo.ID]bool{}
	for _, r := range e.rewrite {
		x, ok := v.find(r.ID)
		if !ok || x.isSystem() || v.isPinned(x) || e.byStrategy && v.isFloor(x) || seen[r.ID] {
			return false
		}
		if slices.ContainsFunc(e.clear, func(c convo.Clear) bool { return c.ID == r.ID }) && !slices.Contains(e.drop, r.ID) {
			return false
		}
		if _, ok := x.msg.withParts(r.Parts); !ok {
			return false
		}
		seen[r.ID] = true
	}
	return e.summary == "" || strings.TrimSpace(e.summary) != ""
}

// sameSummary reports whether two views show the same summary, or none.
func (v view) sameSummary(w view) bool {
	if v.summary == "" || w.summary == "" {
		return v.summary == w.summary
	}
	return v.summaryUID == w.summaryUID
}

// summarize sets the summary of next, and reports whether that changed it. It
// moves what the summary covers from the dropped entries to the summarised ones.
func (m *model) summarize(next *view, e edit, did *change) bool {
	if e.summary == "" {
		had := next.summary != ""
		if had {
			next.placed = placed{}
		}
		return had
	}
	covers := slices.Clone(e.covers)
	if covers == nil {
		covers = slices.Clone(e.drop)
	}
	isCovered := func(id convo.ID) bool { return slices.Contains(covers, id) }
	isLeft := func(id convo.ID) bool { return !isCovered(id) }
	summarised := slices.DeleteFunc(slices.Clone(did.dropped), isLeft)
	if len(summarised) == 0 && slices.ContainsFunc(e.drop, isCovered) {
		return false // everything that it covers was pinned
	}
	did.dropped, did.summarised = slices.DeleteFunc(did.dropped, isCovered), summarised
	covers = slices.DeleteFunc(covers, func(id convo.ID) bool { return slices.Contains(did.kept, id) })
	was := next.placed
	next.covers = next.united(was.covers, covers)
	next.reads = next.united(was.reads, e.reads)
	next.updates = 0
	if was.summary != "" {
		next.updates = was.updates + 1
	}
	next.summary, next.summaryUID = e.summary, m.newUID()
	next.older = m.olderThan(was, next.placed, e, *did)
	for _, x := range next.list {
		if slices.Contains(e.reads, x.id) && !slices.Contains(did.kept, x.id) {
			did.read = append(did.read, x.id)
		}
	}
	return true
}

// olderThan returns what is before the new summary now, in the place of was.
func (m *model) olderThan(was, now placed, e edit, did change) []placed {
	isUnread := func(id convo.ID) bool { return !slices.Contains(now.covers, id) }
	wasRead := func(id convo.ID) bool { return slices.Contains(was.reads, id) }
	switch {
	case !slices.ContainsFunc(now.reads, isUnread):
		return nil // it stands for all that it has read
	case len(did.summarised) == 0 && !slices.ContainsFunc(did.forgotten, wasRead):
		return m.before(was)
	case !e.goesBack || len(e.drop) == 0:
		return nil
	}
	older := was.older
	if len(e.reads) > 0 {
		older = m.before(was)
	}
	older = slices.Clone(older)
	for i := range older { // each goes on with what Extract says of what has left
		p := &older[i]
		p.covers, p.updates, p.summaryUID, p.goesOn = now.covers, now.updates, m.newUID(), true
	}
	return older
}

// united returns the IDs in a and b, and those between them that are not in the view.
func (v *view) united(a, b []convo.ID) []convo.ID {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return v.withGaps(slices.Compact(all))
}

// withGaps adds to ascending IDs the IDs in between that no entry of the view has,
// because the ranges of a summary include them.
func (v *view) withGaps(ids []convo.ID) (all []convo.ID) {
	for i, id := range ids {
		if i > 0 {
			between := func(e entry) bool { return ids[i-1] < e.id && e.id < id }
			if !slices.ContainsFunc(v.list, between) && !slices.ContainsFunc(v.sys, between) {
				for gap := ids[i-1] + 1; gap < id; gap++ {
					all = append(all, gap)
				}
			}
		}
		all = append(all, id)
	}
	return all
}

// cleared returns x with results cleared, and whether that changed it.
func (m *model) cleared(x entry, clears []convo.Clear) (_ entry, changed bool) {
	msg, o := x.msg, x.before()
	msg.results, o.read.results = slices.Clone(msg.results), slices.Clone(o.read.results)
	for i := range msg.results {
		r, whole := &msg.results[i], o.read.results[i].text
		for _, c := range slices.Backward(clears) { // if there are several, the last counts
			if c.ID != x.id || c.CallID != "" && c.CallID != r.id {
				continue
			}
			if c.Text == "" && r.cleared {
				break
			}
			text := c.Text
			if text == "" {
				text = "[result of " + toolName(r.id) + " cleared: " + strconv.Itoa(len(whole)) + " bytes]"
			}
			r.text, r.cleared, changed = text, true, true
			if c.Text != "" {
				o.read.results[i] = *r
				x.reads = m.newUID()
			}
			break
		}
	}
	if changed {
		x = m.changed(x, msg, o.read)
	}
	return x, changed
}

// withParts returns m with other parts, and whether they may replace its own.
func (m message) withParts(parts []convo.Part) (_ message, ok bool) {
	m.text, m.thought = "", ""
	var calls []string
	var results []result
	for _, p := range parts {
		switch p := p.(type) {
		case convo.Text:
			m.text += string(p)
		case convo.Reasoning:
			m.thought += p.Text
		case convo.ToolCall:
			if n := len(calls); p.Name != toolName(p.ID) || p.Arguments != m.arguments(n) {
				return m, false
			}
			calls = append(calls, p.ID)
		case convo.ToolResult:
			results = append(results, result{id: p.CallID, text: p.Text(), isErr: p.IsError, cleared: p.Cleared})
		}
	}
	if m.role == convo.RoleTool && results == nil && len(m.results) == 1 {
		r := m.results[0]
		results = []result{{id: r.id, text: m.text, isErr: r.isErr}}
		m.text = ""
	}
	if len(results) != len(m.results) || m.role == convo.RoleTool && m.text != "" || calls != nil && !slices.Equal(calls, m.calls) {
		return m, false
	}
	for i, r := range results {
		if r.id != m.results[i].id || r.isErr != m.results[i].isErr {
			return m, false
		}
	}
	m.results = results
	return m, m.text != "" || len(m.calls)+len(m.results) > 0
}

// rewritten returns x with other parts, and whether that changed it.
func (m *model) rewritten(x entry, r convo.Rewrite) (_ entry, changed bool) {
	msg, _ := x.msg.withParts(r.Parts)
	read := msg
	read.results = slices.Clone(msg.results)
	same := msg.text == x.msg.text && msg.thought == x.msg.thought
	for i, r := range msg.results {
		old := x.msg.results[i]
		if r.text == old.text && r.cleared == old.cleared {
			read.results[i] = x.before().read.results[i]
		} else {
			same = false
		}
	}
	if same && (!r.Forget || x.original == nil) {
		return x, false
	}
	y := m.changed(x, msg, read)
	y.reads = m.newUID()
	if r.Forget {
		y.original = nil
	}
	if same {
		y.like = x.looks()
	}
	return y, true
}

// splice returns the edit that History.SplicePrefix makes of its arguments.
func (at *snapshot) splice(n int, summary string) edit {
	n = min(n-len(at.view.sys), len(at.view.list))
	for n > 0 && n < len(at.view.list) && at.view.list[n].head == at.view.list[n-1].head {
		n--
	}
	var e edit
	for i := range max(n, 0) {
		if x := at.view.list[i]; !at.view.isFloor(x) && !at.view.isPinned(x) {
			e.drop = append(e.drop, x.id)
		}
	}
	if len(e.drop) > 0 && summary != "" {
		e.summary, e.setSummary = summary, true
	}
	return e
}

// errRefused is the error of a provider that refuses a part of a request.
var errRefused = errors.New("refused")

// refuse has a provider refuse a part of an entry. A text is never cleared for it, and nothing
// that is pinned. The arguments of a call are, until the provider refuses the request again.
func (d *driver) refuse() {
	at := d.snapshot()
	id, part := d.anyID(), 0
	if n := len(at.view.list); n > 0 && d.n(8) > 0 {
		id = at.view.list[d.n(n)].id
	}
	real, _ := at.real.Find(id)
	parts := real.Message.Parts
	if part = d.n(len(parts) + 1); part < len(parts) {
		switch parts[part].(type) {
		case convo.Reasoning, convo.ToolResult:
			return // nothing of them shows in the model
		}
	}
	cause := &convo.PartError{Parts: []convo.RefusedPart{{ID: id, Part: part, Inside: -1}}, Err: errRefused}
	before, want := d.m.view.clone(), badEdit
	did := change{}
	if x, ok := at.view.find(id); ok && !x.isSystem() && part < len(parts) {
		if call, ok := parts[part].(convo.ToolCall); ok {
			text := fmt.Sprintf(`{"removed":"the arguments, %d bytes, which the provider refused: refused"}`, len(call.Arguments))
			did, want = d.m.apply(at, edit{refused: id, removes: slices.Index(x.msg.calls, call.ID), removing: text})
		}
	}
	ctx := context.Background()
	retry, r, err := d.h.Recover(ctx, at.real, cause)
	isCurrent := at.real.Version() == d.h.Snapshot().Version()
	switch {
	case want == stale && !isCurrent: // the next request tells whether it is still refused
		d.want(fmt.Sprintf("refuse part %d of %d in %d, which has changed", part, id, at.time), err, success)
		if !retry {
			d.fail("no retry, although the conversation has changed")
		}
		return
	case want != success:
		d.m.requestFailed(nil)
		d.want(fmt.Sprintf("refuse part %d of %d in %d", part, id, at.time), err, want)
		if retry || !errors.Is(err, errRefused) {
			d.fail("retry %v, %v", retry, err)
		}
		return
	}
	d.want(fmt.Sprintf("refuse part %d of %d in %d", part, id, at.time), err, want)
	d.told, d.mayBeTold = false, false
	d.checkChange(r, did)
	if !retry || len(r.Refused) != 1 || r.Refused[0].ID != id || r.Refused[0].Part != part || r.Outcome != convo.OutcomeApplied {
		d.fail("retry %v, report %+v", retry, r)
	}
	d.compare()
	d.note(before, did, want)
	d.stats.saw.refused = true
	d.m.time++
	if d.n(2) == 0 {
		retry, r, err = d.h.Recover(ctx, d.h.Snapshot(), cause)
		d.say("refused again")
		if retry || !errors.Is(err, errRefused) || r.Outcome != convo.OutcomeFailed {
			d.fail("after it was refused again: retry %v, %v, %v", retry, r, err)
		}
		d.m.undo()
		d.undoneAt = d.m.time
	} else if _, _, err = d.h.Recover(ctx, d.h.Snapshot(), io.ErrUnexpectedEOF); err != io.ErrUnexpectedEOF {
		d.fail("after another error: %v", err)
	}
	d.m.requestFailed(nil)
}

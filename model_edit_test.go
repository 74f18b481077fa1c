package convo_test

import (
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// mReport is what the model says an edit did.
type mReport struct {
	outcome             convo.Outcome
	gone, cleared, kept []convo.ID
}

// mEditOf is an edit of the model. Clears have the standard marker when text is
// empty.
type mEditOf struct {
	drop   []convo.ID
	clear  []convo.Clear
	sum    string
	setSum bool

	covers      []convo.ID // of the new summary, where the model cannot know
	coversKnown bool
}

func (m *model) apply(at *mSnap, e mEditOf) (r mReport, kind string) {
	if len(e.drop) == 0 && len(e.clear) == 0 && !e.setSum {
		return mReport{outcome: convo.Declined}, ""
	}
	// By the snapshot it was made of.
	for _, id := range e.drop {
		x, ok := at.view.find(id)
		if !ok || x.msg.role == convo.RoleSystem || at.view.hardFloor(x) || at.view.pinned(x) {
			return r, "edit"
		}
		for _, member := range at.view.exchange(x.head) {
			if !slices.Contains(e.drop, member) {
				return r, "edit"
			}
		}
	}
	for _, c := range e.clear {
		x, ok := at.view.find(c.ID)
		if !ok || at.view.hardFloor(x) || at.view.pinned(x) {
			return r, "edit"
		}
		if !slices.ContainsFunc(x.msg.results, func(r mResult) bool { return c.CallID == "" || c.CallID == r.id }) {
			return r, "edit"
		}
	}
	if e.sum != "" && strings.TrimSpace(e.sum) == "" {
		return r, "edit"
	}
	// By the rules of now.
	if e.setSum && (m.sum != "") != (at.view.sum != "") || e.setSum && m.sum != "" && m.sumUID != at.view.sumUID {
		return r, "stale"
	}
	next := m.mView.copy()
	next.list = nil
	left := len(m.list)
	named := func(id convo.ID) (drop, clear bool) {
		drop = slices.Contains(e.drop, id)
		clear = !drop && slices.ContainsFunc(e.clear, func(c convo.Clear) bool { return c.ID == id })
		return drop, clear
	}
	for _, id := range e.drop {
		if _, ok := m.find(id); !ok {
			return r, "stale"
		}
	}
	for _, c := range e.clear {
		if _, ok := m.find(c.ID); !ok && !slices.Contains(e.drop, c.ID) {
			return r, "stale"
		}
	}
	var touched []convo.ID
	for _, x := range m.list {
		drop, clear := named(x.id)
		switch {
		case !drop && !clear:
		case m.pinned(x):
			r.kept = append(r.kept, x.id)
		case m.hardFloor(x):
			return r, "stale"
		case drop:
			r.gone = append(r.gone, x.id)
			touched = append(touched, x.id)
			next.touched = max(next.touched, x.turn)
			continue
		default:
			if x = m.cleared(x, e.clear, &r); slices.Contains(r.cleared, x.id) {
				touched = append(touched, x.id)
				next.touched = max(next.touched, x.turn)
			}
		}
		next.list = append(next.list, x)
	}
	changed := len(touched) > 0
	if e.setSum && (len(e.drop) == 0 || len(next.list) < left) {
		switch {
		case e.sum != "":
			next.covers = slices.Concat(next.covers, r.gone)
			if e.coversKnown {
				next.covers = slices.Clone(e.covers)
			}
			slices.Sort(next.covers)
			next.covers = slices.Compact(next.covers)
			if next.sum != "" {
				next.updates++
			} else {
				next.updates = 0
			}
			next.sum, next.sumUID = e.sum, m.newUID()
			changed = true
		case next.sum != "":
			next.sum, next.covers, next.updates = "", nil, 0
			changed = true
		}
	}
	if !changed {
		r.outcome = convo.Declined
		return r, ""
	}
	next.appended = 0
	m.mView = next
	m.edits = append(m.edits, mEdit{m.seq, touched})
	r.outcome = convo.Applied
	return r, ""
}

func (m *model) cleared(x mEntry, clears []convo.Clear, r *mReport) mEntry {
	x.msg.results = slices.Clone(x.msg.results)
	changed := false
	for i := range x.msg.results {
		res := &x.msg.results[i]
		for _, c := range slices.Backward(clears) {
			if c.ID != x.id || c.CallID != "" && c.CallID != res.id {
				continue
			}
			if c.Text == "" && res.cleared {
				break
			}
			text := c.Text
			if text == "" {
				text = "[result of " + toolOf(res.id) + " cleared: " + itoa(len(res.text)) + " bytes]"
			}
			res.text, res.cleared, changed = text, true, true
			break
		}
	}
	if changed {
		x.uid = m.newUID()
		r.cleared = append(r.cleared, x.id)
	}
	return x
}

// splice returns the edit that SplicePrefix means.
func (at *mSnap) splice(n int, sum string) mEditOf {
	n = min(n-len(at.view.sys), len(at.view.list))
	for n > 0 && n < len(at.view.list) && at.view.list[n].head == at.view.list[n-1].head {
		n--
	}
	var e mEditOf
	for i := range max(n, 0) {
		if x := at.view.list[i]; !at.view.hardFloor(x) && !at.view.pinned(x) {
			e.drop = append(e.drop, x.id)
		}
	}
	if len(e.drop) > 0 && sum != "" {
		e.sum, e.setSum = sum, true
	}
	return e
}

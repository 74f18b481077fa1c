package convo

import (
	"slices"
	"strconv"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
)

// A request is what a view knows of a request that was made of an earlier view: how much of it
// stands at the start of the view too. It never changes, and holds no messages but system
// messages. See Report.PrefixKept.
type request struct {
	requestHeads
	requestFigures
	lost   []fingerprint.Sum // of the entries that are gone; nil: none, or they are not known
	sys    []*entry          // nil: none, or they are not known
	tools  *toolset          // nil: none, or they are not known
	name   string            // of the model; empty: none, or it is not known
	after  uint64            // 1 more than the version of its view; 0: another History made that
	logged loggedEnds
}

// loggedEnds are the ends of the prefix that were logged: the last one since an answer, and what
// is logged once.
type loggedEnds struct {
	end              string
	model, ephemeral bool
}

// requestHeads are fingerprints of what stands around the list; 0: there is none.
type requestHeads struct{ model, tools, sys, summary, eph fingerprint.Sum }

// requestFigures say what became of the entries of a request.
type requestFigures struct {
	kept, raw, gone, goneRaw             int64 // entries at the start of the list that are the same, those after them that are others now, and the raw tokens of both
	toolsRaw, sysRaw, summaryRaw, ephRaw int64 // raw tokens
	place, placeRaw                      int64 // index in the list of the entry after the ephemeral messages, and raw tokens of those before it
	rolledBack                           int64 // 1: entries are gone because of a rollback
}

// requestHeads returns the fingerprints of what stands around the list.
func (s *state) requestHeads() requestHeads {
	f := s.frame()
	h := requestHeads{tools: f.tools, sys: fingerprint.Sum(f.sys), eph: f.eph}
	if r := s.request; r != nil && r.name == s.known().model && r.name != "" {
		h.model = r.model // as computed before
	} else {
		h.model = fingerprint.Sum(0).String(s.known().model)
	}
	if s.summary != nil {
		h.summary = s.summary.content
	}
	return h
}

// asRequest returns the view, which has that version, as a request.
func (s *state) asRequest(version uint64) *request {
	r := &request{requestHeads: s.requestHeads(), sys: slices.Clip(s.sys), tools: s.tools, name: s.known().model, after: version + 1, requestFigures: requestFigures{
		kept: int64(len(s.list)), raw: s.listRaw, toolsRaw: s.tools.tokens(), sysRaw: s.sysRaw, summaryRaw: s.summary.tokens(), ephRaw: s.eph.tokens(),
	}}
	if s.eph != nil {
		place := s.ephemeralPlace()
		r.place, r.placeRaw = int64(place), s.listRaw-rawOf(s.list[place:])
	}
	return r
}

// answered records that a request made of the snapshot was answered.
func (s *state) answered(at *Snapshot) {
	if orNil(s.request).after <= at.version {
		s.setAnswered(at.asRequest(at.version).moved(at.list, s.list))
	}
	if orNil(s.asked).after <= at.version+1 {
		s.asked = nil
	}
}

// setAnswered makes r the last request that was answered.
func (s *state) setAnswered(r *request) {
	if was := s.request; was != nil {
		r = r.withLogged(was.logged)
		r.logged.end = ""
	}
	s.request, s.asked = r, nil
}

// sumSent returns the fingerprint of what is sent of e.
func (e *entry) sumSent() fingerprint.Sum {
	sum := e.content
	for _, p := range e.msg.Parts {
		if r, ok := p.(Reasoning); ok {
			sum = sum.String(r.Text).String(r.Signature).String(r.Encrypted)
		}
	}
	return sum
}

// moved returns r for a view with the list now in place of was. r may be nil.
func (r *request) moved(was, now []*entry) *request {
	if r == nil {
		return nil
	}
	n, most := samePart(was, now), min(int(r.kept), len(was), len(now))
	if n < most {
		n += sameStart(was[n:most], now[n:most], func(a, b *entry) bool { return a.sumSent() == b.sumSent() })
	}
	return r.cut(was, min(n, most)).joined(now)
}

// counted returns r for another History, which may count tokens in another way. Its list is now
// in place of was. r may be nil.
func (r *request) counted(was, now []*entry) *request {
	if r == nil {
		return nil
	}
	own := *r
	own.after = 0
	if raw := rawOf(now[:min(int(r.kept), len(now))]); raw != r.raw && r.raw > 0 && raw > 0 {
		for _, n := range [...]*int64{&own.raw, &own.goneRaw, &own.toolsRaw, &own.sysRaw, &own.summaryRaw, &own.ephRaw, &own.placeRaw} {
			*n = int64(min(float64(*n)*float64(raw)/float64(r.raw), maxTotal))
		}
	}
	return own.moved(was, now)
}

// cut returns r for a view with the first n entries of a list. r may be nil.
func (r *request) cut(list []*entry, n int) *request {
	if r == nil || n >= int(r.kept) {
		return r
	}
	own, gone := *r, list[n:r.kept]
	sums := make([]fingerprint.Sum, 0, len(gone)+len(r.lost))
	for _, e := range gone {
		sums = append(sums, e.sumSent())
	}
	own.lost = nil
	if int64(len(r.lost)) == r.gone {
		own.lost = append(sums, r.lost...)
	}
	raw := rawOf(gone)
	own.kept, own.gone, own.rolledBack = int64(n), min(r.gone+int64(len(gone)), maxTotal), 0
	own.raw, own.goneRaw = max(r.raw-raw, 0), min(r.goneRaw+raw, maxTotal)
	return &own
}

// joined returns r for a list that begins with the kept entries, and may go on as the request
// did. r may be nil.
func (r *request) joined(list []*entry) *request {
	if r == nil || len(r.lost) == 0 {
		return r
	}
	more := list[r.kept:]
	n := sameStart(more, r.lost, func(e *entry, sum fingerprint.Sum) bool { return e.sumSent() == sum })
	if n == 0 {
		return r
	}
	own, raw := *r, rawOf(more[:n])
	own.kept, own.gone, own.lost = r.kept+int64(n), r.gone-int64(n), r.lost[n:]
	own.raw, own.goneRaw = min(r.raw+raw, maxTotal), max(r.goneRaw-raw, 0)
	if own.gone == 0 {
		own.rolledBack = 0
	}
	return &own
}

// released returns r for a view in which the reasoning of list[n:] is no longer sent. r may be
// nil.
func (r *request) released(list []*entry, n int) *request {
	own := r.cut(list, n)
	if own != r {
		own.lost = nil // the entries are there, and not sent as they were
	}
	return own
}

// back returns r after a rollback has changed the list. r may be nil.
func (r *request) back() *request {
	if r == nil || r.gone == 0 {
		return r
	}
	own := *r
	own.rolledBack = 1
	return &own
}

// What may end the part of the last request that the next one begins with; see
// Report.PrefixEnd.
const (
	endModel     = "model"
	endTools     = "tools"
	endSystem    = "system"
	endEdit      = "edit"
	endRollback  = "rollback"
	endEphemeral = "ephemeral"
)

// prefixKept returns the fraction of the last request that is also the start of the next one,
// what that start ends at, and how many raw tokens of the last request may follow it.
func (s *state) prefixKept() (kept float64, end string, again int64) {
	r := s.request
	if r == nil {
		return 1, "", 0
	}
	total := r.toolsRaw + r.sysRaw + r.summaryRaw + r.ephRaw + r.raw + r.goneRaw
	same, end := s.sameAs(r)
	if end == "" || same >= total {
		return 1, "", 0
	}
	return float64(same) / float64(total), end, max(min(total, s.raw())-same, 0)
}

// notesLoss reports whether a log line is due because more than least raw tokens of the last
// request have to be read again. It then notes that the line was written.
func (s *state) notesLoss(again, least int64, end string) bool {
	if again <= least || s.request == nil {
		return false
	}
	logged := s.request.logged
	if !logged.isNew(end) {
		return false
	}
	s.request = s.request.withLogged(logged)
	return true
}

// sameAs returns how many raw tokens at the start of r the next request begins with, and what
// ends them; empty: it begins with all of r.
func (s *state) sameAs(r *request) (same int64, end string) {
	now, edited := s.requestHeads(), endEdit
	if r.rolledBack != 0 {
		edited = endRollback
	}
	heads := r.toolsRaw + r.sysRaw
	switch {
	case now.model != r.model:
		return 0, endModel
	case now.tools != r.requestHeads.tools:
		return portion(r.toolsRaw, sameTools(r.tools, s.tools), toolBytes(orNil(r.tools).tools)), endTools + changedTools(r.tools, s.tools)
	case now.sys != r.requestHeads.sys:
		n := sameStart(r.sys, s.sys, func(a, b *entry) bool { return a.content == b.content })
		return r.toolsRaw + rawOf(r.sys[:n]), endSystem
	case now.summary != r.summary:
		return heads, edited
	}
	heads += r.summaryRaw
	place := int64(len(s.list))
	if s.eph != nil {
		place = int64(s.ephemeralPlace())
	}
	switch {
	case now.eph == r.eph && (r.eph == 0 || place == r.place):
		if r.place <= r.kept {
			heads += r.ephRaw
		}
	case r.eph != 0 && r.place <= min(place, r.kept):
		return heads + r.placeRaw, endEphemeral
	case now.eph != 0 && (place < r.kept || place == r.kept && r.gone > 0):
		return heads + r.raw - rawOf(s.list[place:r.kept]), endEphemeral
	}
	if r.gone > 0 {
		return heads + r.raw, edited
	}
	return heads + r.raw, ""
}

// sameTools returns the bytes of the tools at the start of both sets.
func sameTools(was, now *toolset) int64 {
	a := orNil(was).tools
	n := sameStart(a, orNil(now).tools, func(t, u Tool) bool { return t == u })
	return toolBytes(a[:n])
}

// sameStart returns how many elements at the start of two lists are the same.
func sameStart[A, B any](a []A, b []B, same func(A, B) bool) int {
	n := 0
	for n < len(a) && n < len(b) && same(a[n], b[n]) {
		n++
	}
	return n
}

func toolBytes(list []Tool) (n int64) {
	for _, t := range list {
		n += int64(len(t.Name) + len(t.Description) + len(t.Schema) + len(t.Opaque.JSON))
	}
	return n
}

// changedTools names the tools that were added, changed or taken away, after a colon.
func changedTools(was, now *toolset) string {
	if was == nil || now == nil || len(was.tools) == 0 || len(now.tools) == 0 {
		return ""
	}
	var names []string
	add := func(list, other []Tool) {
		for _, t := range list {
			if !slices.Contains(other, t) && !slices.Contains(names, t.Name) {
				names = append(names, t.Name)
			}
		}
	}
	add(was.tools, now.tools)
	add(now.tools, was.tools)
	const most = 8
	if n := len(names) - most; n > 0 {
		names = append(names[:most], strconv.Itoa(n)+" more")
	}
	if len(names) == 0 {
		return ""
	}
	return ": " + strings.Join(names, ", ")
}

// isNew reports whether an end of the prefix is to be logged, and notes that it is. Edits and
// rollbacks are not; models that change and ephemeral messages that move are logged once.
func (t *loggedEnds) isNew(end string) bool {
	was := *t
	switch end {
	case "", endEdit, endRollback:
	case endModel:
		t.model = true
	case endEphemeral:
		t.ephemeral = true
	default:
		t.end = end
	}
	return *t != was
}

// withLogged returns r with t.
func (r *request) withLogged(t loggedEnds) *request {
	own := *r
	own.logged = t
	return &own
}

// requestOf returns the request that was read with a state.
func (s *state) requestOf(h *requestHeads, f *requestFigures) *request {
	if h == nil || *h == (requestHeads{}) {
		return nil
	}
	r := &request{requestHeads: *h, requestFigures: orNil(f)}
	if n := int64(len(s.list)); r.kept > n { // the entries were taken back
		raw := portion(r.raw, n, r.kept) // the list may not be counted yet
		r.gone, r.goneRaw, r.rolledBack = min(r.gone+r.kept-n, maxTotal), min(r.goneRaw+r.raw-raw, maxTotal), 1
		r.kept, r.raw = n, raw
	}
	if s.frame().tools == h.tools {
		r.tools = s.tools
	}
	if fingerprint.Sum(s.sysFold) == h.sys {
		r.sys = s.sys
	}
	return r
}

// numbers returns the fields.
func (f *requestFigures) numbers() [11]*int64 {
	return [...]*int64{&f.kept, &f.raw, &f.sysRaw, &f.toolsRaw, &f.summaryRaw, &f.gone, &f.goneRaw, &f.ephRaw, &f.place, &f.placeRaw, &f.rolledBack}
}

package convo

import (
	"slices"
	"strconv"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
)

// A request is what a view knows of the request that was answered last: how much of it
// stands at the start of the view too. It never changes and holds no message. See
// Report.PrefixKept.
type request struct {
	requestHeads
	requestFigures
	raw   int64             // raw tokens of the kept entries
	lost  []fingerprint.Sum // of the entries that are gone; nil: none, or they are not known
	tools *toolset          // nil: none, or they are not known
	name  string            // of the model; empty: none, or it is not known
	after uint64            // 1 more than the version of its view; 0: another History made that
	told  string            // the end of the prefix that was logged last
}

// requestHeads are fingerprints of what stands around the list. 0: none
type requestHeads struct{ model, tools, sys, summary, eph fingerprint.Sum }

// requestFigures say what became of the entries of a request.
type requestFigures struct {
	kept, gone, goneRaw                  int64 // entries at the start of the list that are the same, and those after them, which are others now
	toolsRaw, sysRaw, summaryRaw, ephRaw int64 // raw tokens
	place, placeRaw                      int64 // index in the list of the entry after the ephemeral messages, and raw tokens of those before it
	rolledBack                           int64 // 1: entries are gone because of a rollback
}

// heads returns the fingerprints of what stands around the list.
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

// asRequest returns the view as a request.
func (s *state) asRequest() *request {
	r := &request{requestHeads: s.requestHeads(), raw: s.listRaw, tools: s.tools, name: s.known().model, requestFigures: requestFigures{
		kept: int64(len(s.list)), toolsRaw: s.tools.tokens(), sysRaw: s.sysRaw, summaryRaw: s.summary.tokens(), ephRaw: s.eph.tokens(),
	}}
	if s.eph != nil {
		place := s.ephemeralPlace()
		r.place, r.placeRaw = int64(place), s.listRaw-rawOf(s.list[place:])
	}
	return r
}

// answered records that a request made of the view at, with that version, was answered.
func (s *state) answered(at *state, version uint64) {
	if orNil(s.request).after <= version {
		s.request = at.asRequest().moved(at.list, s.list)
		s.request.after = version + 1
	}
}

// sumSent returns the fingerprint of what is sent of e. Of reasoning it knows only the lengths.
func (e *entry) sumSent() fingerprint.Sum {
	sum := e.content
	for _, p := range e.msg.Parts {
		if r, ok := p.(Reasoning); ok {
			sum = sum.Uint64(uint64(len(r.Text))).Uint64(uint64(len(r.Signature) + len(r.Encrypted)))
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
	for n < most && was[n].sumSent() == now[n].sumSent() {
		n++
	}
	return r.cut(was, min(n, most)).joined(now)
}

// counted returns r for another History, which may count tokens in another way. Its list is now
// in place of was. r may be nil.
func (r *request) counted(was, now []*entry) *request {
	if r == nil {
		return nil
	}
	own := *r.moved(was, now)
	own.raw, own.after = rawOf(now[:own.kept]), 0
	return &own
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
	own.kept, own.gone, own.rolledBack = int64(n), r.gone+int64(len(gone)), 0
	own.raw, own.goneRaw = r.raw-raw, r.goneRaw+raw
	return &own
}

// joined returns r for a list that begins with the kept entries, and may go on as the request
// did. r may be nil.
func (r *request) joined(list []*entry) *request {
	if r == nil || len(r.lost) == 0 {
		return r
	}
	more := list[r.kept:]
	n := 0
	for n < len(more) && n < len(r.lost) && more[n].sumSent() == r.lost[n] {
		n++
	}
	if n == 0 {
		return r
	}
	own, raw := *r, rawOf(more[:n])
	own.kept, own.gone, own.lost = r.kept+int64(n), r.gone-int64(n), r.lost[n:]
	own.raw, own.goneRaw = r.raw+raw, r.goneRaw-raw
	return &own
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

// What the start of the next request that is the same may end at; see Report.PrefixEnd.
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

// sameAs returns how many raw tokens at the start of r the next request begins with, and what
// they end at; empty: it begins with all of r.
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
		return 0, endTools + changedTools(r.tools, s.tools)
	case now.sys != r.sys:
		return r.toolsRaw, endSystem
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

// changedTools names the tools that were added, changed or taken away, after a colon.
func changedTools(was, now *toolset) string {
	if was == nil || now == nil {
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

// tell reports whether an end of the prefix is to be logged. r may be nil.
func (r *request) tell(end string) bool {
	return r != nil && end != "" && end != endEdit && end != r.told
}

// withTold returns r after an end of the prefix was logged.
func (r *request) withTold(end string) *request {
	own := *r
	own.told = end
	return &own
}

// requestOf returns the request that was read with a state.
func (s *state) requestOf(h *requestHeads, f *requestFigures) *request {
	if h == nil || *h == (requestHeads{}) {
		return nil
	}
	r := &request{requestHeads: *h, requestFigures: orNil(f)}
	if n := int64(len(s.list)); r.kept > n { // the entries were taken back
		r.kept, r.gone, r.rolledBack = n, r.gone+r.kept-n, 1
	}
	r.raw = rawOf(s.list[:r.kept])
	if s.frame().tools == h.tools {
		r.tools = s.tools
	}
	return r
}

// numbers returns the fields.
func (f *requestFigures) numbers() [10]*int64 {
	return [...]*int64{&f.kept, &f.sysRaw, &f.toolsRaw, &f.summaryRaw, &f.gone, &f.goneRaw, &f.ephRaw, &f.place, &f.placeRaw, &f.rolledBack}
}

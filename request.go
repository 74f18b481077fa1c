package convo

import (
	"slices"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
	"github.com/seed-c1b73e60/convo/internal/sums"
	"github.com/seed-c1b73e60/convo/internal/wording"
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
	h.summary = orNil(s.summary).content
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
		return sums.Portion(r.toolsRaw, sameTools(r.tools, s.tools), toolBytes(orNil(r.tools).tools)), endTools + changedTools(r.tools, s.tools)
	case now.sys != r.requestHeads.sys:
		n := sameStart(r.sys, s.sys, func(a, b *entry) bool { return a.content == b.content })
		return r.toolsRaw + rawOf(r.sys[:n]), endSystem
	case now.summary != r.summary:
		return heads, edited
	}
	heads += r.summaryRaw
	place := int64(s.beforeEphemeral())
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

// changedTools names the tools that were added, changed or taken away, after a colon.
func changedTools(was, now *toolset) string {
	return wording.Changed(orNil(was).tools, orNil(now).tools, func(t Tool) string { return t.Name })
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
		raw := sums.Portion(r.raw, n, r.kept) // the list may not be counted yet
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

// Some providers sign reasoning together with everything that stood before it, and refuse
// a request in which something else stands there. So each assistant entry with signed
// reasoning has a fingerprint of the view that its request was made of. It is bound while
// the fingerprint of what stands before it is the same.

// Unbound returns the IDs, ascending, of the assistant entries whose signed reasoning no longer
// belongs where it stands. An entry is bound while what precedes it is what its request was
// made of, and no provider has refused its reasoning; see [History.Recover]. A format of
// package wire leaves signed reasoning out of a request if its entry is not bound and the model
// checks this, or is not known.
//
// An entry is bound to what was sent for it: to the snapshot given to [History.AppendReply], or
// sent by [History.Do]. An entry added by [History.Append] is bound to the snapshot last
// returned by Prepare or Recover or given to RecordUsage, if no answer was appended since;
// otherwise to the view before it. An entry whose request had an open tool call, and one that
// was rewritten or was imported without Options.AsSent, are not bound.
//
// A cut, a cleared result, a rewritten message, a summary, SetSystem and messages set by
// SetEphemeral before the entry, or other tools, end the bond. A Rollback or an Undo that
// restores what was there restores it, but reasoning that an Undo restores is not bound if an
// answer that is bound was made without it. A rewritten answer ends the bonds after it even if
// only its reasoning was left out, unless no signed reasoning is left before it, as with
// ClearThinking. A summary whose Native covers what the entry was made after does not end it,
// since the provider made it; see [Snapshot.AsText] for a request without Native.
func (s *Snapshot) Unbound() (ids []ID) {
	for i, bound := range s.signed {
		if !bound {
			ids = append(ids, s.list[i].id)
		}
	}
	return ids
}

// Released returns the newest entry whose signed reasoning a provider has refused, or 0. No
// Undo, Rollback or load makes reasoning up to it bound again.
func (s *Snapshot) Released() ID { return s.released }

// isSigned reports whether m has reasoning that its provider has signed.
func (m *Message) isSigned() bool {
	return m.Role == RoleAssistant && slices.ContainsFunc(m.Parts, func(p Part) bool {
		r, ok := p.(Reasoning)
		return ok && (r.Signature != "" || r.Encrypted != "")
	})
}

// seals returns what providers have signed of m with, or the empty string.
func (m *Message) seals() (all string) {
	for _, p := range m.Parts {
		if r, ok := p.(Reasoning); ok && m.Role == RoleAssistant {
			all += r.Signature + r.Encrypted
		}
	}
	return all
}

// A prefix is what fingerprints of a part of a view are made of.
type prefix struct {
	heads     fingerprint.Sum  // of the tools, the system entries and the summary
	list      fingerprint.List // of the entries
	ephemeral fingerprint.Sum  // of the ephemeral messages and what stands before them; 0: none
}

// sum returns the fingerprint, which is not 0.
func (p prefix) sum() fingerprint.Sum {
	return max(p.heads.Uint64(uint64(p.list)).Uint64(uint64(p.ephemeral)), 1)
}

// A frame identifies what stands around the list of a view, besides the summary.
type frame struct {
	sys   fingerprint.List // of the system entries
	tools fingerprint.Sum  // 0: none
	eph   fingerprint.Sum  // of the ephemeral messages; 0: none
}

// frame returns the frame of the view.
func (s *state) frame() frame {
	return frame{sys: s.sysFold, tools: orNil(s.tools).content, eph: orNil(s.eph).content}
}

// whole returns the prefix that is the whole view.
func (s *state) whole() prefix { return s.wholeIn(s.frame()) }

// wholeIn returns the prefix that is the whole view with the frame f in place of its own.
func (s *state) wholeIn(f frame) prefix {
	p := prefix{heads: s.headsIn(f), list: s.fold}
	if f.eph != 0 {
		front := s.fold
		for _, e := range slices.Backward(s.list[s.ephemeralPlace():]) {
			front = front.Remove(e.content)
		}
		p.ephemeral = f.eph.Uint64(uint64(front))
	}
	return p
}

// at returns the fingerprint of the ephemeral messages after a list.
func (e *ephemeral) at(front fingerprint.List) fingerprint.Sum {
	return e.content.Uint64(uint64(front))
}

// signed yields the index in list of each assistant entry with signed reasoning that was
// made for a view, and whether it is bound.
func (s *state) signed(yield func(i int, bound bool) bool) {
	p, place := prefix{heads: s.heads()}, s.ephemeralPlace()
	covered := s.covered()
	for i, e := range s.list {
		if i == place && s.eph != nil {
			p.ephemeral = s.eph.at(p.list)
			for k := range covered {
				covered[k].ephemeral = s.eph.at(covered[k].list)
			}
		}
		if e.msg.isSigned() {
			made := e.made()
			bound := made != 0 && e.id > s.released &&
				(made == p.sum() || slices.ContainsFunc(covered, func(c coveredView) bool { return made == c.sum() }))
			if !yield(i, bound) {
				return
			}
		}
		p.add(e)
		for k := range covered {
			covered[k].add(e)
		}
	}
}

// heads returns the fingerprint of what stands before the list.
func (s *state) heads() fingerprint.Sum { return s.headsIn(s.frame()) }

// headsIn is heads with the frame f in place of that of the view.
func (s *state) headsIn(f frame) fingerprint.Sum {
	sum := f.front()
	if s.summary != nil {
		sum = sum.Uint64(uint64(s.summary.content))
	}
	return sum
}

// front returns the fingerprint of the system entries and the tools.
func (f frame) front() fingerprint.Sum {
	sum := fingerprint.Sum(f.sys)
	if f.tools != 0 {
		sum = sum.Uint64(uint64(f.tools))
	}
	return sum
}

// setContent sets what is read of the content of e once, its fingerprint and how large its
// images are. It is not in a view yet.
func (e *entry) setContent() {
	if e.content != 0 {
		return
	}
	e.content = e.contentSum()
	side := 0
	for m := range e.msg.allMedia {
		side = max(side, m.side())
	}
	e.marks.set(wide, side > 2000)
	e.marks.set(huge, side > 4096)
}

// contentSum returns the fingerprint of the content of e, which is not 0.
func (e *entry) contentSum() fingerprint.Sum {
	sum := e.msg.content()
	if e.final && !e.marks.has(bare) && e.msg.Role == RoleAssistant {
		sum = sum.Uint64(8) // its reasoning is not sent, and what was made after it needs that
	}
	return max(sum, 1)
}

// unmade returns a copy of e that is not bound.
func (e *entry) unmade() *entry {
	own := *e
	own.setMade(0)
	return &own
}

// bindAll binds each entry with signed reasoning that has no fingerprint to what stands
// before it.
func (s *state) bindAll() {
	p, list := prefix{heads: s.heads()}, slices.Clone(s.list)
	for i, e := range list {
		if e.made() == 0 && e.msg.isSigned() {
			own := *e
			own.setMade(p.sum())
			list[i] = &own
		}
		p.add(e)
	}
	s.replace(s.sys, list, s.originals, s.turn)
}

// add adds an entry at the end.
func (p *prefix) add(e *entry) {
	p.list = p.list.Add(e.content)
}

// releasedSince returns how many entries are bound in before and not in s, which holds them too.
func (s *state) releasedSince(before *state) (n int) {
	were := before.bound()
	if len(were) == 0 {
		return 0
	}
	for i, bound := range s.signed {
		if _, was := slices.BinarySearch(were, s.list[i].id); was && !bound {
			n++
		}
	}
	return n
}

// bound returns the IDs of the entries that are bound, ascending.
func (s *state) bound() (ids []ID) {
	for i, bound := range s.signed {
		if bound {
			ids = append(ids, s.list[i].id)
		}
	}
	return ids
}

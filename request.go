package convo

import (
	"slices"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
	"github.com/seed-c1b73e60/convo/internal/kept"
	"github.com/seed-c1b73e60/convo/internal/sums"
	"github.com/seed-c1b73e60/convo/internal/wording"
)

// A request is what a view knows of a request that was made of an earlier view: how much of it
// stands at the start of the view too. It never changes, and holds no messages but system
// messages. See Report.PrefixKept.
type request = kept.Request[*entry, *toolset]

// A frame identifies what stands around the list of a view, besides the summary.
type frame = kept.Frame

// requestHeads returns the fingerprints of what stands around the list.
func (s *state) requestHeads() kept.Heads {
	model := fingerprint.Sum(0).String(s.known().model)
	return kept.Heads{Frame: s.frame(), Model: model, Summary: orNil(s.summary).content}
}

// asRequest returns the view, which has that version, as a request.
func (s *state) asRequest(version uint64) *request {
	r := &request{Heads: s.requestHeads(), System: slices.Clip(s.sys), Set: s.tools, After: version + 1, Figures: kept.Figures{
		Kept: int64(len(s.list)), Raw: s.listRaw, ToolsRaw: s.tools.tokens(), SysRaw: s.sysRaw, SummaryRaw: s.summary.tokens(), EphRaw: s.eph.tokens(),
	}}
	if s.eph != nil {
		place := s.ephemeralPlace()
		r.Place, r.PlaceRaw = int64(place), s.listRaw-rawOf(s.list[place:])
	}
	return r
}

// answered records that a request made of the snapshot was answered.
func (s *state) answered(at *Snapshot) {
	if orNil(s.request).After <= at.version {
		s.setAnswered(at.asRequest(at.version).Moved(at.list, s.list))
	}
	if orNil(s.asked).After <= at.version+1 {
		s.asked = nil
	}
}

// setAnswered makes r the last request that was answered.
func (s *state) setAnswered(r *request) {
	if was := s.request; was != nil {
		r = r.WithLogged(was.Logged)
		r.Logged.End = ""
	}
	s.request, s.asked = r, nil
}

// Sent returns the fingerprint of what is sent of e.
func (e *entry) Sent() fingerprint.Sum {
	sum := e.content
	for r := range eachOf[Reasoning](e.msg.Parts) {
		sum = sum.String(r.Text).String(r.Signature).String(r.Encrypted)
	}
	return sum
}

// Sum returns the fingerprint of the content of e; see setContent.
func (e *entry) Sum() fingerprint.Sum { return e.content }

// Raw returns the raw tokens of e.
func (e *entry) Raw() int64 { return e.tokens }

// prefixKept returns the fraction of the last request that is also the start of the next one,
// what that start ends at, and how many raw tokens of the last request may follow it.
func (s *state) prefixKept() (share float64, end string, again int64) {
	r := s.request
	if r == nil {
		return 1, "", 0
	}
	same, end := r.Same(s.requestHeads(), s.sys, s.list, int64(s.beforeEphemeral()))
	if end == kept.EndTools {
		was, is := orNil(r.Set).tools, orNil(s.tools).tools
		n := kept.SameStart(was, is, func(t, u Tool) bool { return t == u })
		same = sums.Portion(r.ToolsRaw, toolBytes(was[:n]), toolBytes(was))
		end += wording.Changed(was, is, func(t Tool) string { return t.Name })
	}
	total := r.ToolsRaw + r.SysRaw + r.SummaryRaw + r.EphRaw + r.Raw + r.GoneRaw
	if end == "" || same >= total {
		return 1, "", 0
	}
	return float64(same) / float64(total), end, max(min(total, s.raw())-same, 0)
}

// notesLoss reports whether a log line is due because more than least raw tokens of the last
// request have to be read again. It then notes that the line was written.
func (s *state) notesLoss(again, least int64, end string) bool {
	if again <= least || s.request == nil || s.request.Logged.With(end) == s.request.Logged {
		return false
	}
	s.request = s.request.WithLogged(s.request.Logged.With(end))
	return true
}

func toolBytes(list []Tool) (n int64) {
	for _, t := range list {
		n += int64(len(t.Name) + len(t.Description) + len(t.Schema) + len(t.Opaque.JSON))
	}
	return n
}

// requestOf returns the request that was read with a state.
func (s *state) requestOf(h *kept.Heads, f *kept.Figures) *request {
	if h == nil || *h == (kept.Heads{}) {
		return nil
	}
	r := (&request{Heads: *h, Figures: orNil(f)}).Shortened(int64(len(s.list)))
	if s.frame().Tools == h.Tools {
		r.Set = s.tools
	}
	if s.sysFold == h.Sys {
		r.System = s.sys
	}
	return r
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
// otherwise to the view before it. An entry is not bound if its request had an open tool call,
// or if it was rewritten or was imported without Options.AsSent.
//
// A cut, a cleared result, a rewritten message, a summary, SetSystem and messages set by
// SetEphemeral before the entry, or other tools, end the bond. A Rollback or an Undo that
// restores what was there restores it, but reasoning that an Undo restores is not bound if an
// answer that is bound was made without it. A rewritten answer ends the bonds after it even if
// only its reasoning was left out, unless no signed reasoning is left before it, as with
// ClearThinking. A summary whose Native covers what the entry was made after does not end it,
// since the provider made it; see [Snapshot.AsText] for a request without Native.
func (s *Snapshot) Unbound() (ids []ID) { return s.signedIDs(false) }

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

// frame returns the frame of the view.
func (s *state) frame() frame {
	return frame{Sys: s.sysFold, Tools: orNil(s.tools).content, Eph: orNil(s.eph).content}
}

// whole returns the prefix that is the whole view.
func (s *state) whole() prefix { return s.wholeIn(s.frame()) }

// wholeIn returns the prefix that is the whole view with the frame f in place of its own.
func (s *state) wholeIn(f frame) prefix {
	p := prefix{heads: s.headsIn(f), list: s.fold}
	if f.Eph != 0 {
		front := s.fold
		for _, e := range slices.Backward(s.list[s.ephemeralPlace():]) {
			front = front.Remove(e.content)
		}
		p.ephemeral = f.Eph.Uint64(uint64(front))
	}
	return p
}

// signed yields the index in list of each assistant entry with signed reasoning that was
// made for a view, and whether it is bound.
func (s *state) signed(yield func(i int, bound bool) bool) {
	f, place, covered := s.frame(), s.ephemeralPlace(), s.covered()
	p := prefix{heads: s.headsIn(f)}
	for i, e := range s.list {
		if i == place && s.eph != nil {
			p.ephemeral = f.Eph.Uint64(uint64(p.list))
			for k := range covered {
				covered[k].ephemeral = f.Eph.Uint64(uint64(covered[k].list))
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

// headsIn returns the fingerprint of what stands before the list, with the frame f in place of
// that of the view.
func (s *state) headsIn(f frame) fingerprint.Sum {
	sum := f.Front()
	if s.summary != nil {
		sum = sum.Uint64(uint64(s.summary.content))
	}
	return sum
}

// setContent sets what is read of the content of e once, its fingerprint and how large its
// images are. It is not in a view yet.
func (e *entry) setContent() {
	if e.content != 0 {
		return
	}
	sum, side := e.msg.content(), 0
	if e.final && !e.marks.has(bare) && e.msg.Role == RoleAssistant {
		sum = sum.Uint64(8) // its reasoning is not sent, and what was made after it needs that
	}
	e.content = max(sum, 1)
	for m := range e.msg.allMedia {
		side = max(side, m.side())
	}
	e.marks.set(wide, side > 2000)
	e.marks.set(huge, side > 4096)
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
	p, list := prefix{heads: s.headsIn(s.frame())}, slices.Clone(s.list)
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

// releasedSince returns how many entries of both states are bound in before and not in s.
func (s *state) releasedSince(before *state) (n int) {
	were := before.signedIDs(true)
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

// signedIDs returns the IDs of the entries with signed reasoning that are bound, or of those that
// are not, ascending.
func (s *state) signedIDs(areBound bool) (ids []ID) {
	for i, bound := range s.signed {
		if bound == areBound {
			ids = append(ids, s.list[i].id)
		}
	}
	return ids
}

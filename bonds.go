package convo

import (
	"slices"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
)

// Some providers sign reasoning together with everything that stood before it, and refuse
// a request in which something else stands there. So each assistant entry with signed
// reasoning has a fingerprint of the view that its request was made of. It is bound while
// the fingerprint of what stands before it is the same.

// Unbound returns the IDs, ascending, of the assistant entries whose signed reasoning no
// longer belongs where it stands. An entry is bound while what precedes it is what its
// request was made of, and no provider has refused its reasoning; see [History.Recover]. A
// format of package wire leaves signed reasoning out of a request if its entry is not bound
// and the model checks this, or is not known.
//
// An entry is bound to what was sent for it: to the snapshot given to
// [History.AppendReply], or sent by [History.Do]. An entry added by [History.Append] is
// bound to the snapshot last returned by Prepare or Recover or given to RecordUsage, if
// no answer was appended since; otherwise to the view before it. An entry whose request
// had an open tool call, and one that was rewritten or was imported without
// Options.AsSent, are not bound.
//
// A cut, a cleared result, a rewritten message, a summary, SetSystem and messages set by
// SetEphemeral before the entry, or other tools, end the bond. A Rollback or an Undo that
// restores what was there restores it. Reasoning that an Undo restores is not bound if an
// answer that is bound was made without it. A rewritten answer ends the bonds after it even if
// only its reasoning was left out, unless no signed reasoning is left before it, as with
// ClearThinking. A summary whose Native covers what the entry was made after does not end
// it, since the provider made it; see [Snapshot.AsText] for a request without Native.
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
	f := frame{sys: s.sysFold}
	if s.tools != nil {
		f.tools = s.tools.content
	}
	if s.eph != nil {
		f.eph = s.eph.content
	}
	return f
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
	var were []ID
	for i, bound := range before.signed {
		if bound {
			were = append(were, before.list[i].id)
		}
	}
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

// bonds returns how many entries are bound.
func (s *state) bonds() (n int) {
	for _, bound := range s.signed {
		if bound {
			n++
		}
	}
	return n
}

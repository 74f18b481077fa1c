package wire

import (
	"slices"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/models"
)

// A SealCheck says whether a model checks that signed reasoning is where it was made: after
// the same system text, tools and messages. Such a model refuses a request in which
// something else precedes it. For a model that checks, Encode leaves out the signed
// reasoning of entries that are not bound (see [convo.Snapshot.Unbound]), names it in Lost,
// and never sets NoThinking. Text and calls of these entries are sent. It does the same with
// signed reasoning that would not be where the model made it. That is after a part that is
// left out or sent in another place, and at the end of a message. It is also after a call
// that waits for the provider's result, and in an answer to no message of a user.
//
// For a model that is not known, Encode does the same, but sets NoThinking if the newest
// answer, which still waits for results, loses the reasoning before its calls.
type SealCheck uint8

const (
	// SealsByModel means that the name of the model decides. The models known to check are
	// Claude Fable and Mythos since 5.1, Claude Opus, Sonnet and Haiku since 5.5, and all
	// later ones. Other models with a version of Claude in their names are known not to
	// check. All other names, and the empty one, are not known.
	SealsByModel   SealCheck = iota
	SealsChecked             // the model checks
	SealsUnchecked           // the model does not check
)

// Checks reports whether a model with a name is known to check, as c says.
func (c SealCheck) Checks(model string) bool { return c.of(model) == SealsChecked }

// of returns SealsChecked or SealsUnchecked for a model, or SealsByModel if it is not
// known which.
func (c SealCheck) of(model string) SealCheck {
	if c != SealsByModel {
		return c
	}
	_, major, _ := models.Claude(model)
	switch {
	case checksSeals(model):
		return SealsChecked
	case major > 0:
		return SealsUnchecked
	}
	return SealsByModel
}

// checksSeals reports whether the model with a name is known to check.
func checksSeals(model string) bool {
	family, major, minor := models.Claude(model)
	since := 5
	if family == "fable" || family == "mythos" {
		since = 1
	}
	return major > 5 || major == 5 && minor >= since
}

// isUnbound reports whether the reasoning of an entry must be left out. An answer to no
// message of a user, and to no paused answer, is unbound: the request for it ended with a
// marker, which later requests do not have.
func (p *projector) isUnbound(at int, m *convo.Message) bool {
	if !slices.ContainsFunc(m.Parts, isReasoning) {
		return false
	}
	e, _ := p.lost.s.At(at)
	switch {
	case e.ID <= p.released: // a provider has refused it
		return true
	case p.seals == SealsUnchecked:
		return false
	}
	if w, ok := p.writer.(sealWriter); ok && !w.asked() {
		return true
	}
	p.setBonds(p.lost.s)
	_, found := slices.BinarySearch(p.unbound, e.ID)
	return found
}

// A sealWriter is the writer of a format that puts a marker after an answer.
type sealWriter interface {
	// asked reports whether a request with the messages so far needs no marker at its end.
	asked() bool
}

// A messageSeal decides which signed reasoning of a message stands where the model made
// it, when the other parts are sent as keep sends them.
type messageSeal struct {
	checked bool // false: all reasoning may be sent
	tagged  bool // the message begins with the tag of its author, which the model did not write
	last    int  // index of the last part that is sent and not reasoning
	calls   bool // there was a call; calls are sent last
	changed bool // something else stands before the next part
}

func (p *projector) sealOf(t *message, parts []convo.Part) messageSeal {
	m := messageSeal{checked: p.seals != SealsUnchecked && t.thinks, tagged: t.tag > 0, last: -1}
	for i, part := range parts {
		if text, ok := part.(convo.Text); ok && !isBlank(string(text)) || !ok && !isReasoning(part) {
			m.last = i
		}
	}
	return m
}

// allows reports whether reasoning at an index may be sent.
func (m *messageSeal) allows(at int) bool {
	return !m.checked || !m.changed && !m.calls && at < m.last
}

// read records the next part, and whether it is sent before the calls.
func (m *messageSeal) read(part convo.Part, kept bool) {
	_, mark := isMark(part)
	switch {
	case mark:
	case isCall(part):
		m.calls = true
	default:
		m.changed = m.changed || !kept || m.tagged && !isReasoning(part)
	}
}

// withoutEmpty removes the empty texts of an answer, which cannot be sent back. One that
// stands before reasoning stays, since the reasoning was made after it.
func withoutEmpty(parts []convo.Part) []convo.Part {
	reasoning := len(parts)
	for reasoning > 0 && !isReasoning(parts[reasoning-1]) {
		reasoning--
	}
	kept := parts[:0]
	for i, p := range parts {
		if p != convo.Part(convo.Text("")) || i < reasoning {
			kept = append(kept, p)
		}
	}
	return kept
}

// sameBonds returns how many of the first n entries of s were bound, and not bound, when
// they were read.
func (p *projector) sameBonds(s *convo.Snapshot, n int) int {
	if now := s.Released(); now != p.released {
		n = entryAfter(s, min(now, p.released), n)
	}
	if p.seals == SealsUnchecked || !p.reasons {
		return n
	}
	before := p.unbound
	p.setBonds(s)
	now, k := p.unbound, 0
	for k < len(now) && k < len(before) && now[k] == before[k] {
		k++
	}
	for _, list := range [][]convo.ID{now, before} {
		if k == len(list) {
			continue
		}
		n = entryAfter(s, list[k]-1, n)
	}
	return n
}

// entryAfter returns the index of the first of n entries that is newer than one with an ID, or n.
func entryAfter(s *convo.Snapshot, id convo.ID, n int) int {
	for i := range n {
		if e, _ := s.At(i); e.ID > id && e.Message.Role != convo.RoleSystem {
			return i
		}
	}
	return n
}

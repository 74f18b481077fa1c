package cost

import (
	"context"
	"errors"

	"github.com/seed-c1b73e60/convo"
)

// A layout is a conversation in the form in which the modelled policies and the
// optimum work on it: system messages, then exchanges, here called atoms. A user
// message is also an atom.
//
// Two numbers define what such a policy sends: a cut, and how many results are
// cleared. See view.
type layout struct {
	full    []Item // by message
	cleared []Item // the same, with every result cleared for which that saves tokens
	system  int    // number of system messages

	atoms []atom
	sys   int   // tokens of the system messages
	upTo  []int // by atom: tokens of all atoms before it
	clear []int // by atom: number of clearable exchanges before it
	gain  []int // by number of cleared exchanges: tokens that clearing them frees
	at    []int // by clearable exchange: its atom
	lead  []int // by clearable exchange: its tokens before the first result that is cleared

	requests []request
}

type atom struct {
	from, to int // its messages
	turn     int
	users    [2]int // the user messages of its turn
	head     int    // their tokens, if a cut at this atom keeps them
	canCut   bool   // a cut may fall before this atom
	user     bool   // it is a user message
}

type request struct {
	atoms  int // number of atoms so far
	newest int // the last atom at which a cut may fall
	clears int // the highest number of exchanges that may be cleared
	output int // tokens of the answer
}

// newLayout returns the layout of a conversation. It uses ClearToolResults itself
// to find out what clearing leaves of each message.
func newLayout(c *Conversation) (*layout, error) {
	l := &layout{full: c.items(c.Messages)}
	cleared, err := clearAll(c.Messages)
	if err != nil {
		return nil, err
	}
	l.cleared = c.items(cleared)

	for l.system < len(c.Messages) && c.Messages[l.system].Role == convo.RoleSystem {
		l.sys += l.full[l.system].Tokens
		l.system++
	}
	l.upTo, l.clear, l.gain = []int{0}, []int{0}, []int{0}
	turn, users := 0, [2]int{l.system, l.system}
	for i := l.system; i < len(c.Messages); {
		a := atom{from: i, to: i + 1, user: c.Messages[i].Role == convo.RoleUser}
		first := !a.user && i == l.system
		if a.user && (i == l.system || c.Messages[i-1].Role != convo.RoleUser) {
			turn++
			users = [2]int{i, i}
			first = true
		}
		if a.user {
			users[1]++
		}
		if c.Messages[i].Role == convo.RoleAssistant {
			l.requests = append(l.requests, l.request(l.full[i].Tokens))
			for a.to < len(c.Messages) && c.Messages[a.to].Role == convo.RoleTool {
				a.to++
			}
		}
		a.turn, a.users = turn, users
		a.canCut = first || !a.user
		if !a.user {
			a.head = sum(l.full[users[0]:users[1]])
		}
		l.add(a)
		i = a.to
	}
	return l, nil
}

// request returns the request that is sent after the atoms so far.
func (l *layout) request(output int) request {
	r := request{atoms: len(l.atoms), output: output}
	if r.atoms == 0 {
		return r
	}
	r.newest = r.atoms - 1
	r.clears = l.clear[r.newest]
	for !l.atoms[r.newest].canCut {
		r.newest--
	}
	return r
}

func (l *layout) add(a atom) {
	l.upTo = append(l.upTo, l.upTo[len(l.atoms)]+sum(l.full[a.from:a.to]))
	n := l.clear[len(l.atoms)]
	for i := a.from; i < a.to; i++ {
		if l.full[i].Key != l.cleared[i].Key {
			l.gain = append(l.gain, l.gain[n]+sum(l.full[a.from:a.to])-sum(l.cleared[a.from:a.to]))
			l.at = append(l.at, len(l.atoms))
			l.lead = append(l.lead, sum(l.full[a.from:i]))
			n++
			break
		}
	}
	l.clear = append(l.clear, n)
	l.atoms = append(l.atoms, a)
}

func sum(items []Item) int {
	n := 0
	for _, it := range items {
		n += it.Tokens
	}
	return n
}

// clearAll returns the messages as ClearToolResults would leave them.
func clearAll(msgs []convo.Message) ([]convo.Message, error) {
	h, err := convo.New(&convo.Options{Roles: convo.Relaxed()})
	if err != nil {
		return nil, err
	}
	defer h.Close()
	if len(msgs) > 0 {
		if _, err := h.Append(msgs...); err != nil {
			return nil, err
		}
	}
	if _, err := h.Append(convo.User("after")); err != nil { // the newest exchange would not be cleared
		return nil, err
	}
	s := h.Snapshot()
	e, err := convo.ClearToolResults{KeepLast: -1, MinFree: -1}.Compact(context.Background(), s, convo.Goal{})
	if err != nil && !errors.Is(err, convo.ErrNoGain) {
		return nil, err
	}
	if s, err = s.With(e); err != nil {
		return nil, err
	}
	all := s.Messages()
	return all[:len(all)-1], nil
}

// tokens returns the size of a request. It holds the system messages, the user
// messages of the turn if the cut falls inside one, and the atoms from the cut on.
// The first cleared exchanges, counted from the beginning of the conversation,
// are sent in their cleared form.
func (l *layout) tokens(atoms, cut, cleared int) int {
	if atoms == 0 {
		return l.sys
	}
	return l.sys + l.atoms[cut].head + l.upTo[atoms] - l.upTo[cut] - l.gain[cleared] + l.gain[l.clear[cut]]
}

// view returns the request whose size tokens returns.
func (l *layout) view(atoms, cut, cleared int) []Item {
	out := append([]Item(nil), l.full[:l.system]...)
	if atoms == 0 {
		return out
	}
	a := l.atoms[cut]
	if !a.user {
		out = append(out, l.full[a.users[0]:a.users[1]]...)
	}
	for i := cut; i < atoms; i++ {
		from := l.full
		if l.clear[i] < cleared {
			from = l.cleared
		}
		out = append(out, from[l.atoms[i].from:l.atoms[i].to]...)
	}
	return out
}

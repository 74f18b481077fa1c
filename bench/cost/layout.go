package cost

import (
	"context"
	"errors"

	"github.com/seed-c1b73e60/convo"
)

// A layout is a conversation as the modelled policies and the optimum see it:
// system messages, then atoms, which stay or go as a whole.
//
// What such a policy sends is named by two numbers, a cut and how many results
// are cleared: see view.
type layout struct {
	full    []Item // by message
	cleared []Item // the same, with every result cleared that is worth it
	system  int    // messages

	atoms []atom
	sys   int   // tokens
	upTo  []int // tokens of all atoms before one
	clear []int // exchanges before an atom that clearing makes smaller
	gain  []int // tokens that clearing so many frees
	at    []int // atom of a clearable exchange
	lead  []int // tokens of it before the first result that is cleared

	requests []request
}

type atom struct {
	from, to int // messages
	turn     int
	users    [2]int // messages: the user messages of the turn
	head     int    // their tokens, when a cut at the atom keeps them
	canCut   bool
	user     bool
}

type request struct {
	atoms  int // that there are
	newest int // the last place for a cut
	clears int // the most that may be cleared
	output int
}

// newLayout asks the library itself what clearing would make of each message.
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

// request is the one that is sent with the atoms that there are.
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
	if _, err := h.Append(convo.User("after")); err != nil { // so that the last exchange is not the newest
		return nil, err
	}
	s := h.Snapshot()
	e, err := convo.ClearToolResults{KeepLast: -1, MinFreed: -1}.Compact(context.Background(), s, convo.Goal{})
	if err != nil && !errors.Is(err, convo.ErrNoGain) {
		return nil, err
	}
	if s, err = s.With(e); err != nil {
		return nil, err
	}
	all := s.Messages()
	return all[:len(all)-1], nil
}

// tokens is what a request weighs: the system messages; inside a turn the
// user messages that began it; the atoms from the cut on, of which exchanges
// are cleared up to the given number, counted from the conversation's start.
func (l *layout) tokens(atoms, cut, cleared int) int {
	if atoms == 0 {
		return l.sys
	}
	return l.sys + l.atoms[cut].head + l.upTo[atoms] - l.upTo[cut] - l.gain[cleared] + l.gain[l.clear[cut]]
}

// view returns what tokens weighs.
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

// Package facts examines what a model still sees of the facts that were said 10 to 200 turns
// ago, in conversations of several kinds and for several policies, and what that costs.
//
// A fact is a literal string, in most kinds in plain words: what a user said, what an answer
// promised, a claim in a result. Where it is needed, the request is searched for it: its
// messages, its summary, its results. Nothing is found by a search in what left. A value that
// changed counts with its newest value, and a rule that was revoked with its revocation.
//
// No model is called. The summarizers know which facts there are, and write a share of those
// that stand in what they are given to read: an ideal one all, a mediocre one about half.
package facts

import (
	"slices"

	"github.com/seed-c1b73e60/convo"
)

// A Fact is a literal string that is needed later.
type Fact struct {
	Text string
	Due  []int // the answers for which it is needed, as indices of messages, ascending
}

// needed reports whether the fact is needed at a message or after it.
func (f *Fact) needed(at int) bool { return len(f.Due) > 0 && f.Due[len(f.Due)-1] >= at }

// A Talk is a conversation with facts.
type Talk struct {
	Messages []convo.Message
	Facts    []Fact
}

// soonest and latest are how many answers after a fact it is needed.
const soonest, latest = 10, 200

// A slot holds the newest of facts that replace each other.
type slot struct{ fact int }

// A script writes a talk.
type script struct {
	*words
	Talk
	turns int             // how many answers there will be
	turn  int             // how many there are
	due   map[int][]*slot // by turn
	calls int
}

func newScript(seed uint64, turns int) *script {
	return &script{words: newWords(seed), turns: turns, due: map[int][]*slot{}}
}

// learn adds a fact that is needed once more. The caller says it in the next message.
func (s *script) learn(text string) *slot {
	s.Facts = append(s.Facts, Fact{Text: text})
	f := &slot{len(s.Facts) - 1}
	s.need(f)
	return f
}

// need plans when a fact is needed, if there is still time.
func (s *script) need(f *slot) {
	if last := min(latest, s.turns-s.turn-1); last >= soonest {
		at := s.turn + s.between(soonest, last)
		s.due[at] = append(s.due[at], f)
	}
}

// replace puts another fact in the place of one.
func (s *script) replace(f *slot, text string) {
	s.Facts = append(s.Facts, Fact{Text: text})
	f.fact = len(s.Facts) - 1
}

// asked reports whether anything is needed for the next answer.
func (s *script) asked() bool { return len(s.due[s.turn]) > 0 }

func (s *script) add(m convo.Message) { s.Messages = append(s.Messages, m) }

// answer adds an answer, and notes which facts it needs.
func (s *script) answer(text string, calls ...convo.ToolCall) {
	for _, f := range s.due[s.turn] {
		due := &s.Facts[f.fact].Due
		if at := len(s.Messages); !slices.Contains(*due, at) {
			*due = append(*due, at)
		}
	}
	s.turn++
	s.add(convo.Assistant(text, calls...))
}

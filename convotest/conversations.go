package convotest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// A conversation is a case for a strategy.
type conversation struct {
	name string
	fill func(*filler)
}

// history returns a History that holds the conversation.
func (c conversation) history(opts convo.Options) (*convo.History, error) {
	opts.Roles = convo.Relaxed()
	h, err := convo.New(&opts)
	if err != nil {
		return nil, err
	}
	f := filler{h: h}
	c.fill(&f)
	if f.err != nil {
		return nil, fmt.Errorf("convotest: cannot make case %q, which is an error in convotest: %w", c.name, f.err)
	}
	return h, nil
}

// A filler appends messages to a History. After the first error it does
// nothing.
type filler struct {
	h      *convo.History
	err    error
	rounds int
}

func (f *filler) append(msgs ...convo.Message) {
	if f.err == nil {
		_, f.err = f.h.Append(msgs...)
	}
}

func (f *filler) do(change func(h *convo.History) error) {
	if f.err == nil {
		f.err = change(f.h)
	}
}

func (f *filler) pin() { f.do((*convo.History).PinLast) }

// turns appends turns of one question and one answer.
func (f *filler) turns(n int) {
	for range n {
		f.rounds++
		f.append(
			convo.User(fmt.Sprintf("Question %d: %s", f.rounds, numbered("how far is it from here to there", 6))),
			convo.Assistant(fmt.Sprintf("Answer %d: %s", f.rounds, numbered("it is some way along the river", 8))),
		)
	}
}

// numbered returns a sentence n times, each time with its number, so that a summary that
// copies the text does not repeat itself.
func numbered(sentence string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s, %d. ", sentence, i+1)
	}
	return b.String()
}

// tools appends tool rounds with a number of parallel calls each. The calls are
// answered in reverse order.
func (f *filler) tools(rounds, parallel int) {
	for range rounds {
		f.rounds++
		var calls []convo.ToolCall
		for i := range parallel {
			calls = append(calls, toolCall(fmt.Sprintf("c%d-%d", f.rounds, i)))
		}
		f.append(convo.Assistant(fmt.Sprintf("Round %d.", f.rounds), calls...))
		for i := range calls {
			f.append(convo.Result(calls[parallel-1-i], numbered(fmt.Sprintf("src/main_%d.go: ok", f.rounds), 20)))
		}
	}
}

func toolCall(id string) convo.ToolCall {
	return convo.ToolCall{ID: id, Name: "search", Arguments: `{"path":"src/main.go"}`}
}

// recalled is the ephemeral message in the case that has one.
const recalled = "Recalled: the user lives by the river."

var errNoFile = errors.New("no such file: src/main.go")

// mixedLarge is the minimum number of tokens of the large exchanges of mixed. The
// small exchanges have fewer.
const mixedLarge = 100

// mixed returns a case in which the age of an exchange is independent of its kind and
// size. It has eight small and eight large exchanges of each kind. No two exchanges of a
// kind have the same size, and the sizes do not rise or fall with the age.
func mixed() conversation {
	return conversation{"exchanges of many sizes", func(f *filler) {
		f.append(convo.System("You are a guide."))
		words := func(i, n int) string { return fmt.Sprintf("Note %02d: ", i) + strings.Repeat("river ", n) }
		for i, more := range []int{3, 6, 1, 4, 7, 0, 5, 2} {
			small, large := 20+more, 160+5*more
			if i%2 == 1 {
				small, large = large, small
			}
			call, other := toolCall(fmt.Sprint("m", i)), toolCall(fmt.Sprint("n", i))
			call.Arguments, other.Arguments = fmt.Sprintf(`{"path":"a%02d.go"}`, i), fmt.Sprintf(`{"path":"b%02d.go"}`, i)
			f.append(
				convo.User(words(i, small)), convo.Assistant(words(i, large)),
				convo.Assistant("", call), convo.Result(call, words(i, small)),
				convo.User(words(i, large)), convo.Assistant(words(i, small)),
				convo.Assistant("", other), convo.Result(other, words(i, large)),
			)
		}
		f.append(convo.User("And what is next?"))
	}}
}

// conversations returns all cases.
func conversations() []conversation {
	system := convo.System("You are a guide.")
	return []conversation{
		{"empty", func(*filler) {}},
		{"system messages alone", func(f *filler) { f.append(system, system) }},
		{"one user message", func(f *filler) { f.append(convo.User("Where am I?")) }},
		{"only floor", func(f *filler) {
			f.append(system, convo.User(numbered("Window seats only", 100)))
			f.pin()
			f.append(convo.Assistant("Noted."))
			f.pin()
			f.append(convo.User("Where to?"), convo.User("And when?"))
		}},
		{"many turns", func(f *filler) {
			f.append(system)
			f.turns(16)
		}},
		{"tool rounds", func(f *filler) {
			f.append(system, convo.User("Find it, and do not stop before."))
			f.tools(14, 1)
		}},
		{"parallel calls", func(f *filler) {
			f.append(system)
			for range 4 {
				f.turns(1)
				f.append(convo.User("Look there too."))
				f.tools(2, 3)
			}
			f.append(convo.Assistant("Nothing."))
		}},
		{"pinned exchanges", func(f *filler) {
			f.append(system)
			f.turns(4)
			f.pin()
			f.append(convo.User("Look again."))
			f.tools(3, 2)
			f.pin()
			f.tools(3, 1)
			f.turns(4)
		}},
		{"standing summary", func(f *filler) {
			f.append(system)
			f.turns(12)
			f.do(func(h *convo.History) error {
				_, err := h.SplicePrefix(h.Snapshot(), 9, "They spoke about the way to the river. "+numbered("It is far", 20))
				return err
			})
			f.turns(3)
		}},
		{"summary beside the floor", func(f *filler) {
			f.turns(3)
			f.do(func(h *convo.History) error {
				s := h.Snapshot()
				_, err := h.SplicePrefix(s, s.Len(), numbered("They spoke about the way", 30))
				return err
			})
		}},
		{"open calls", func(f *filler) {
			f.append(system)
			f.turns(6)
			f.tools(4, 1)
			a, b := toolCall("open-a"), toolCall("open-b")
			f.append(convo.Assistant("", a, b), convo.Result(b, numbered("found", 40)))
		}},
		{"empty results", func(f *filler) {
			f.append(convo.User("Find it."))
			for i := range 10 {
				c := toolCall(fmt.Sprint("e", i))
				f.append(convo.Assistant("", c), convo.Result(c, ""))
				f.append(convo.Assistant("", c), convo.ResultError(c, errNoFile))
				f.append(convo.Assistant(""), convo.User(""))
			}
			f.turns(2)
		}},
		{"error at the end", func(f *filler) {
			f.turns(4)
			f.tools(2, 1)
			c := toolCall("failed")
			f.append(convo.Assistant("", c), convo.ResultError(c, errNoFile))
		}},
		{"reused call ids", func(f *filler) {
			f.append(system)
			c := toolCall("same")
			for i := range 4 {
				f.append(convo.User(fmt.Sprint("Find number ", i)))
				for range 4 {
					f.append(convo.Assistant("", c), convo.Result(c, numbered("a line of the file", 30)))
				}
			}
		}},
		{"cleared results", func(f *filler) {
			f.append(system, convo.User("Find it."))
			f.tools(10, 2)
			f.do(func(h *convo.History) error {
				var e convo.Edit
				s := h.Snapshot()
				for i, entry := range s.All() {
					if i < s.Len()/2 && entry.Message.Role == convo.RoleTool {
						e.Clear = append(e.Clear, convo.Clear{ID: entry.ID})
					}
				}
				_, err := h.Apply(s, e)
				return err
			})
			f.turns(1)
		}},
		{"ephemeral messages", func(f *filler) {
			f.append(system)
			f.turns(10)
			f.tools(3, 1)
			f.do(func(h *convo.History) error { return h.SetEphemeral(convo.User(recalled)) })
		}},
		{"notes", func(f *filler) {
			f.append(system)
			for range 5 {
				f.append(convo.User("Look there."), convo.System(numbered("It is raining", 12)), convo.User("And there."))
				f.tools(2, 1)
				f.append(convo.System("Be brief."), convo.Assistant("Nothing."), convo.System("It is late."))
			}
			f.pin()
			f.append(convo.User("And now?"))
		}},
		{"a note behind results", func(f *filler) {
			f.turns(6)
			f.append(convo.User("Look there."))
			f.tools(3, 1)
			f.append(convo.System(numbered("It is raining", 12)), convo.User("Well?"))
		}},
		{"system messages", func(f *filler) {
			f.append(system)
			f.turns(10)
			f.do(func(h *convo.History) error {
				return h.SetSystem(system, convo.System("You speak French."), convo.System(numbered("Be kind", 50)))
			})
			f.turns(1)
		}},
		{"speakers and reasoning", func(f *filler) {
			for i := range 6 {
				u, a := convo.User(numbered("What do you all say", 10)), convo.Assistant(numbered("I do not know", 20))
				u.Author, a.Author = "Ann", "Bob"
				f.append(u, convo.User("Well?"), a, a)
				f.append(convo.User("See.", convo.Media{MIME: "image/png", URL: fmt.Sprint("https://example.com/", i)}), convo.Assistant("I see."))
			}
			c := toolCall("signed")
			signed := convo.Assistant("", c)
			signed.Parts = append([]convo.Part{convo.Reasoning{Text: "Let me look.", Signature: "sig"}}, signed.Parts...)
			f.append(convo.User("Think."), signed, convo.Result(c, numbered("a leaf", 50)))
			f.tools(8, 1)
		}},
	}
}

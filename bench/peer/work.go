package peer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Text is the text of every message in a [Cell]. It has 400 bytes.
var Text = strings.Repeat("The quick brown fox jumps over the lazy dog. ", 9)[:textBytes]

// PerMessage is LenFour(Text).
const PerMessage = 100

// LenFour counts a token for every four bytes. All libraries use it wherever they
// accept a tokenizer.
func LenFour(s string) int { return len(s) / 4 }

// IsUser reports whether message i is the user's. Users and assistants take
// turns.
func IsUser(i int) bool { return i%2 == 0 }

// ErrOver is returned by a cell whose conversation was reduced although it is
// within the limit.
var ErrOver = errors.New("over the limit")

// ErrIdle is returned by a cell whose conversation was not reduced although it
// should have been.
var ErrIdle = errors.New("nothing was reduced")

// WrongSize returns an error for a cell that left the wrong number of messages.
func WrongSize(n int) error { return fmt.Errorf("wrong number of messages: %d are left", n) }

// A Message is a message in a form that belongs to no library.
type Message struct {
	N       int    `json:"n"`    // its number in the conversation, or Made
	Role    string `json:"role"` // "system", "user", "assistant", "tool"
	Text    string `json:"text,omitempty"`
	Calls   []Call `json:"calls,omitempty"`   // of an assistant message
	Answers string `json:"answers,omitempty"` // the id of the call that a tool message answers
	Tool    string `json:"tool,omitempty"`    // the name of the tool, in a tool message
}

// Made is the number of a message that a library wrote itself.
const Made = -1

// A Call is a tool call.
type Call struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"`
}

func (m Message) equal(o Message) bool {
	return m.N == o.N && m.Role == o.Role && m.Text == o.Text && m.Answers == o.Answers && m.Tool == o.Tool && slices.Equal(m.Calls, o.Calls)
}

// A Measure is a way to count the tokens of a message.
type Measure string

const (
	MeasureLenFour Measure = "len/4" // LenFour of each string of the message, including ids
	MeasureBytes   Measure = "bytes" // a token for every four bytes of text, names and arguments, and five more
)

// Weigh returns the tokens of a message.
func (way Measure) Weigh(m Message) int {
	if way == MeasureBytes {
		n := len(m.Text) + len(m.Tool)
		for _, c := range m.Calls {
			n += len(c.Name) + len(c.Args)
		}
		return 5 + (n+3)/4
	}
	n := LenFour(m.Text) + LenFour(m.Answers)
	for _, c := range m.Calls {
		n += LenFour(c.ID) + LenFour(c.Name) + LenFour(c.Args)
	}
	return n
}

// WeighAll returns the tokens of all messages together.
func (way Measure) WeighAll(list []Message) int {
	n := 0
	for _, m := range list {
		n += way.Weigh(m)
	}
	return n
}

// A Job is a conversation to be kept within a limit.
type Job struct {
	Messages []Message `json:"messages"`
	Asks     []int     `json:"asks"` // the numbers of messages after which a request is made, ascending
	Limit    int       `json:"limit"`
	Measure  Measure   `json:"measure"`           // how tokens are counted for the limit
	Summary  string    `json:"summary,omitempty"` // the answer of the model that writes summaries
}

// A Request is what a Keep would send to a model.
type Request struct {
	View []Message
	// TooLong says that the library itself reported the request as too long.
	TooLong bool
	// Apart lists the separate requests for summaries that the library made for
	// this request.
	Apart []Apart
}

// An Apart is a separate request for a summary, with its tokens and those of the
// answer.
type Apart struct {
	Input  int `json:"input"`
	Output int `json:"output"`
}

// A Keep keeps the conversation of one job within its limit. Add is called for
// each message in order, and Request whenever a model would be called.
type Keep interface {
	Add(Message) error
	Request() (Request, error)
}

// Do runs a job and returns one request for each of its Asks.
func (k Keeper) Do(job Job) ([]Request, error) {
	run, err := k.New(job)
	if err != nil {
		return nil, err
	}
	out := make([]Request, 0, len(job.Asks))
	said := 0
	for _, ask := range job.Asks {
		if ask < said || ask > len(job.Messages) {
			return nil, fmt.Errorf("a request after %d messages of %d: want ascending numbers up to the number of messages", ask, len(job.Messages))
		}
		for ; said < ask; said++ {
			if err := run.Add(job.Messages[said]); err != nil {
				return nil, fmt.Errorf("message %d: %w", said, err)
			}
		}
		r, err := run.Request()
		if err != nil {
			return nil, fmt.Errorf("request after %d messages: %w", ask, err)
		}
		out = append(out, r)
	}
	return out, nil
}

package provider

import (
	"fmt"
	"unicode/utf8"
)

// An Answer is what the model says to one request.
type Answer struct {
	Blocks []Block

	// Stop is why the answer ends, in the words of the format, such as "max_tokens" or
	// "length". Empty: it ends for the calls that it holds, or because it is done.
	Stop string

	// Usage is reported as it is. Nil: the tokens of the request, of its cached
	// beginning, and of the answer, by Options.Count.
	Usage *Usage

	// Fault is what goes wrong with the answer. Nil: nothing does.
	Fault *Fault
}

// Usage is what an answer reports. Input is everything that was sent, with what came from
// the cache and what was written to it. In Gemini and Chat Completions, writing to the
// cache is not reported.
type Usage struct{ Input, CacheRead, CacheWrite, Output int }

// A Block is a part of an answer: a Text, a Thinking, a Call, a Served or a Raw.
type Block interface {
	withID(c *call, i int) Block
}

// Text is a text.
type Text string

// Thinking is the text of reasoning. It is signed where the format has signatures.
type Thinking string

// A Call is a call of a tool of the application.
type Call struct {
	ID        string // empty: a new one
	Name      string
	Arguments string // a JSON object; empty: {}

	// Caller is the ID of the Served whose code makes the call, in Anthropic's format.
	// Empty: the model calls.
	Caller string
}

// A Served is a call of a tool that the provider runs, with its result. In the Responses
// API it is one item, whose action is Input. Chat Completions and Gemini leave it out.
type Served struct {
	ID     string // empty: a new one
	Name   string // such as "web_search"
	Input  string // a JSON object; empty: the block is the result of a call in an earlier answer, with its ID
	Result string // JSON; empty: the answer is paused before the result
	Caller string // as in Call
}

// Raw is the JSON of a block, an item or a part in the words of the format, which is sent
// as it is. Chat Completions leaves it out.
type Raw string

func (t Text) withID(*call, int) Block     { return t }
func (t Thinking) withID(*call, int) Block { return t }
func (r Raw) withID(*call, int) Block      { return r }

func (b Call) withID(c *call, i int) Block {
	if b.ID == "" {
		b.ID = c.newID("call_", i)
		if c.req.Format == FormatAnthropic {
			b.ID = c.newID("toolu_", i)
		}
	}
	if b.Arguments == "" {
		b.Arguments = "{}"
	}
	return b
}

func (b Served) withID(c *call, i int) Block {
	if b.ID == "" {
		b.ID = c.newID("srvtoolu_", i)
	}
	return b
}

// newID returns an ID for the block at an index.
func (c *call) newID(prefix string, i int) string { return fmt.Sprintf("%s%d_%d", prefix, c.id, i) }

// calls reports whether an answer calls tools of the application.
func (a Answer) calls() bool {
	for _, b := range a.Blocks {
		if _, ok := b.(Call); ok {
			return true
		}
	}
	return false
}

// value returns the value of a JSON text of a script.
func value(text string) (v any) {
	if err := decode([]byte(text), &v); err != nil {
		panic(fmt.Sprintf("provider: a scripted answer holds %q, which is not JSON: %v", text, err))
	}
	return v
}

// pieces cuts a text into the pieces of a stream.
func pieces(text string) (list []string) {
	for len(text) > 0 {
		n := min(len(text), 8)
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		list, text = append(list, text[:n]), text[n:]
	}
	return list
}

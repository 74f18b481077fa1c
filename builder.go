package convo

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Builder assembles an assistant message from the deltas of a stream. The
// zero Builder is empty and ready. It is not safe for concurrent use.
//
// Text and reasoning are appended in the order they come. A tool call is found
// by its index in the stream: id and name overwrite, arguments append. Calls
// that never got a name are dropped.
type Builder struct {
	origin Origin
	parts  []*building
	calls  map[int]*building
}

// building is a part that grows.
type building struct {
	part Part // Text, Reasoning or ToolCall, without the text
	text strings.Builder
}

// Origin sets what produces the message.
func (b *Builder) Origin(o Origin) { b.origin = o }

// Text appends to the text.
func (b *Builder) Text(delta string) {
	if delta != "" {
		b.growing(Text("")).text.WriteString(delta)
	}
}

// Reasoning appends to the reasoning: the text grows, an ID, a signature or an
// encrypted form that is not empty overwrites. After a signature or an
// encrypted form a new block begins.
func (b *Builder) Reasoning(delta Reasoning) {
	if delta == (Reasoning{}) {
		return
	}
	g := b.growing(Reasoning{})
	r := g.part.(Reasoning)
	if sealed := r.Signature != "" || r.Encrypted != ""; sealed {
		g = b.begin(Reasoning{})
		r = Reasoning{}
	}
	g.text.WriteString(delta.Text)
	r.ID = overwrite(r.ID, delta.ID)
	r.Signature = overwrite(r.Signature, delta.Signature)
	r.Encrypted = overwrite(r.Encrypted, delta.Encrypted)
	g.part = r
}

// ToolCall adds a delta to the call with this index: ID and Name overwrite
// when they are not empty, Arguments append.
func (b *Builder) ToolCall(index int, delta ToolCall) {
	g := b.calls[index]
	if g == nil {
		g = b.begin(ToolCall{})
		if b.calls == nil {
			b.calls = make(map[int]*building)
		}
		b.calls[index] = g
	}
	c := g.part.(ToolCall)
	c.ID = overwrite(c.ID, delta.ID)
	c.Name = overwrite(c.Name, delta.Name)
	g.part = c
	g.text.WriteString(delta.Arguments)
}

// Part adds a part that came whole: media, an opaque block.
func (b *Builder) Part(p Part) {
	switch p := p.(type) {
	case Text:
		b.Text(string(p))
	case Reasoning:
		b.Reasoning(p)
	case ToolCall:
		b.ToolCall(-1-len(b.parts), p) // an index that no stream has
	default:
		b.begin(p)
	}
}

// Reset makes b empty, for the next round.
func (b *Builder) Reset() { *b = Builder{} }

// Messages returns what to append, nothing when the round was empty: the
// assistant message and, for each call whose arguments are no JSON object, an
// error result that holds at most 1 KiB of what came; such a call is recorded
// with empty arguments. A call without an id, or with one that an earlier call
// of the message has, is left for [History.Append] to name.
//
// Run the calls of the first message that the other messages do not answer,
// and append their results after these.
func (b *Builder) Messages() []Message {
	m := Message{Role: RoleAssistant, Origin: b.origin}
	var results []Message
	seen := make(map[string]bool)
	for _, g := range b.parts {
		text := validText(g.text.String())
		switch p := g.part.(type) {
		case Text:
			m.Parts = append(m.Parts, Text(text))
		case Reasoning:
			p.Text = text
			m.Parts = append(m.Parts, p)
		case ToolCall:
			if p.Name == "" {
				continue
			}
			if p.ID = validText(p.ID); p.ID == "" || seen[p.ID] {
				p.ID, p.Minted = newCallID(), true
			}
			seen[p.ID] = true
			p.Arguments = text
			if !isArguments(text) {
				p.Arguments = "{}"
				results = append(results, ResultError(p, badArguments(text)))
			}
			m.Parts = append(m.Parts, p)
		default:
			m.Parts = append(m.Parts, p)
		}
	}
	if m.isEmpty() {
		return nil
	}
	return slices.Insert(results, 0, m)
}

// maxBadArguments is how much is shown of arguments that are no JSON object.
const maxBadArguments = 1024

func badArguments(text string) error {
	shown := text[:runeStart(text, maxBadArguments)]
	if shown == text {
		return fmt.Errorf("arguments are not a JSON object: %s", text)
	}
	return errors.New("arguments are not a JSON object; they begin: " + shown)
}

// growing returns the last part when it is of the kind of p, or begins one.
func (b *Builder) growing(p Part) *building {
	if n := len(b.parts); n > 0 {
		last := b.parts[n-1]
		switch last.part.(type) {
		case Text:
			if _, ok := p.(Text); ok {
				return last
			}
		case Reasoning:
			if _, ok := p.(Reasoning); ok {
				return last
			}
		}
	}
	return b.begin(p)
}

func (b *Builder) begin(p Part) *building {
	g := &building{part: p}
	b.parts = append(b.parts, g)
	return g
}

func overwrite(old, new string) string {
	if new == "" {
		return old
	}
	return new
}

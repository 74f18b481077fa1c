package convo

import (
	"cmp"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// A Builder assembles an assistant message from the deltas of a stream. The zero Builder
// is empty and ready to use. It is not safe for concurrent use. Parts are in the order of
// their first deltas. Successive deltas of text form one part, and so do those of
// reasoning, unless EndPart is called between them. Deltas of tool calls are assigned to
// calls by index, ID and name. Calls without a name are dropped.
type Builder struct {
	origin Origin
	usage  Usage
	stop   Stop
	ended  bool // Stop was called
	parts  []*partBuilder
	calls  map[int]*partBuilder    // the newest one with an index
	byID   map[string]*partBuilder // the newest call with an ID
}

// A partBuilder is a part whose text is not complete yet.
type partBuilder struct {
	part   Part            // for Text, Reasoning and ToolCall, without the text collected in the field text
	text   strings.Builder // the text of a Text or a Reasoning, or the arguments of a ToolCall
	sign   strings.Builder // the signature of a Reasoning
	ended  bool            // the provider has marked the part as complete
	minted string          // the new ID of a call; empty: none was needed yet
}

// String describes b by the number of its parts.
func (b *Builder) String() string {
	return "builder(" + counted(len(b.parts), "part", "parts") + ")"
}

// Origin sets the Origin of the message.
func (b *Builder) Origin(o Origin) { b.origin = o }

// Usage sets the usage of the request, for Reply.
func (b *Builder) Usage(u Usage) { b.usage = u }

// Stop sets why the answer ended; StopOf of package wire translates the providers'
// names. If s is neither StopDone nor StopToolCall, or Stop is not called, a last
// call that was cut off is in Reply.CutOff and not in the messages. If a stream
// breaks off, do not call Stop; return the error.
func (b *Builder) Stop(s Stop) { b.stop, b.ended = s, true }

// Text appends delta to the text of the message.
func (b *Builder) Text(delta string) {
	if delta != "" {
		b.lastOrNew(Text("")).text.WriteString(delta)
	}
}

// Reasoning adds delta to the reasoning: Text and Signature are appended; ID and
// Encrypted replace the earlier values if they are not empty. A signature or an
// encrypted form ends a block: any later delta, except the next piece of the
// signature, begins another block. So does a delta with another ID.
func (b *Builder) Reasoning(delta Reasoning) {
	if delta == (Reasoning{}) {
		return
	}
	pb := b.lastOrNew(Reasoning{})
	if !pb.takes(delta) {
		pb = b.add(Reasoning{})
	}
	pb.addReasoning(delta)
}

func (pb *partBuilder) addReasoning(delta Reasoning) {
	r := pb.part.(Reasoning)
	pb.text.WriteString(delta.Text)
	pb.sign.WriteString(delta.Signature)
	r.ID = cmp.Or(delta.ID, r.ID)
	r.Encrypted = cmp.Or(delta.Encrypted, r.Encrypted)
	pb.part = r
}

// takes reports whether a delta belongs to the reasoning of pb.
func (pb *partBuilder) takes(delta Reasoning) bool {
	r := pb.part.(Reasoning)
	switch {
	case r.Encrypted != "":
		return false
	case pb.sign.Len() > 0:
		return delta.Text == "" && delta.Encrypted == "" && (delta.ID == "" || delta.ID == r.ID)
	}
	return delta.ID == "" || r.ID == "" || delta.ID == r.ID
}

// ToolCall adds delta to the call with this index in the stream: Arguments are appended,
// and so is a Name that comes in pieces before them.
//
// If a provider gives parallel calls no index, pass 0. A delta with another ID than the
// call begins a new call or, without a Name, continues the call that has this ID. Without
// IDs, a Name begins a new call if the present call was ended, has arguments and another
// Name, or has a JSON object as arguments and more arguments come.
func (b *Builder) ToolCall(index int, delta ToolCall) {
	pb := b.calls[index]
	if pb == nil || pb.isOtherCall(delta) {
		if pb = b.calledBefore(pb, delta); pb == nil {
			pb = b.add(ToolCall{})
		}
		if b.calls == nil {
			b.calls, b.byID = make(map[int]*partBuilder), make(map[string]*partBuilder)
		}
		b.calls[index] = pb
	}
	c := pb.part.(ToolCall)
	c.ID = cmp.Or(delta.ID, c.ID)
	if c.ID != "" {
		b.byID[c.ID] = pb
	}
	switch {
	case delta.Name == "" || delta.Name == c.Name:
	case strings.TrimSpace(pb.text.String()) == "":
		c.Name += delta.Name
	default:
		c.Name = delta.Name
	}
	pb.part = c
	pb.text.WriteString(delta.Arguments)
}

// isOtherCall reports whether a delta belongs to another call than pb.
func (pb *partBuilder) isOtherCall(delta ToolCall) bool {
	own := pb.part.(ToolCall)
	if delta.ID != "" && own.ID != "" {
		return delta.ID != own.ID
	}
	if delta.ID != "" || own.ID != "" || delta.Name == "" || own.Name == "" {
		return false
	}
	written := strings.TrimSpace(pb.text.String())
	return pb.ended || written != "" && delta.Name != own.Name ||
		strings.TrimSpace(delta.Arguments) != "" && strings.HasSuffix(written, "}") && ToolCall{Arguments: written}.Valid()
}

// calledBefore returns the earlier call to which a delta without a name
// belongs, if it is not pb, the newest call with its index.
func (b *Builder) calledBefore(pb *partBuilder, delta ToolCall) *partBuilder {
	if pb == nil || delta.Name != "" {
		return nil
	}
	return b.byID[delta.ID]
}

// EndPart marks the newest part as complete: the next delta of text or reasoning
// begins another part, and a call is ended as by EndToolCall. Call it when the
// provider ends a block.
func (b *Builder) EndPart() {
	if n := len(b.parts); n > 0 {
		b.parts[n-1].ended = true
	}
}

// EndToolCall marks the newest call with this index as complete. It matters for a
// last call whose arguments are empty or not a JSON object, see Stop, and for calls
// without IDs, see ToolCall.
func (b *Builder) EndToolCall(index int) {
	if pb := b.calls[index]; pb != nil {
		pb.ended = true
	}
}

// Part adds a part that is complete, such as Media or an Opaque block. Text is added as a
// delta; Reasoning and a ToolCall become separate parts. A signature of the next part,
// such as Gemini's of a call, is Reasoning without text, with the ID of the call if it
// has one.
func (b *Builder) Part(p Part) {
	switch p := p.(type) {
	case Text:
		b.Text(string(p))
	case Reasoning:
		if p != (Reasoning{}) {
			pb := b.add(Reasoning{})
			pb.addReasoning(p)
			pb.ended = true
		}
	case ToolCall:
		index := -1 - len(b.parts) // no stream uses it
		b.ToolCall(index, p)
		b.EndToolCall(index)
	default:
		b.add(p)
	}
}

// Reset makes b empty, for the next message.
func (b *Builder) Reset() { *b = Builder{} }

// Messages returns the assistant message as a list of one, or nil if it would be empty. A
// call without an ID, or with the ID of an earlier call, gets a new one and is marked as
// Minted. Arguments are not changed; [ToolCall.Valid] reports whether a call can be run.
//
// Messages may be called before the stream ends; new IDs stay the same. A last call with
// incomplete arguments is left out; see [Builder.Stop].
func (b *Builder) Messages() []Message {
	m := Message{Role: RoleAssistant, Origin: b.origin}
	seen := make(map[string]bool)
	cut := b.cutCall()
	for _, pb := range b.parts {
		if pb == cut {
			continue
		}
		content := text.Valid(pb.text.String())
		switch p := pb.part.(type) {
		case Text:
			m.Parts = append(m.Parts, Text(content))
		case Reasoning:
			p.Text, p.Signature = content, pb.sign.String()
			m.Parts = append(m.Parts, p)
		case ToolCall:
			if p.Name == "" {
				continue
			}
			p.ID = text.Valid(p.ID)
			if p.ID == "" || seen[p.ID] {
				if pb.minted == "" {
					pb.minted = NewCallID()
				}
				p.ID, p.Minted = pb.minted, true
			}
			seen[p.ID] = true
			p.Arguments = content
			m.Parts = append(m.Parts, p)
		default:
			m.Parts = append(m.Parts, p)
		}
	}
	if m.isEmpty() {
		return nil
	}
	return []Message{m}
}

// Reply returns the messages, the call that was cut off, the usage and the stop
// reason, for [History.Do].
func (b *Builder) Reply() Reply {
	r := Reply{Messages: b.Messages(), Usage: b.usage, Stop: b.stop}
	if pb := b.cutCall(); pb != nil {
		c := pb.part.(ToolCall)
		c.Arguments = pb.text.String()
		r.CutOff = &c
	}
	return r
}

// cutCall returns the call that was cut off, or nil. That is the last part of an
// unfinished answer, if it is a call whose arguments are empty or not a JSON
// object. Blank text and opaque parts after it are ignored.
func (b *Builder) cutCall() *partBuilder {
	if b.ended && (b.stop == StopDone || b.stop == StopToolCall) {
		return nil
	}
	for _, last := range slices.Backward(b.parts) {
		content := strings.TrimSpace(last.text.String())
		switch last.part.(type) {
		case ToolCall:
			if last.ended || content != "" && (ToolCall{Arguments: content}).Valid() {
				return nil
			}
			return last
		case Opaque:
		case Text:
			if content != "" {
				return nil
			}
		default:
			return nil
		}
	}
	return nil
}

// lastOrNew returns the last part if it is text or reasoning like p and has not
// ended. Otherwise it adds p.
func (b *Builder) lastOrNew(p Part) *partBuilder {
	if n := len(b.parts); n > 0 && !b.parts[n-1].ended {
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
	return b.add(p)
}

func (b *Builder) add(p Part) *partBuilder {
	pb := &partBuilder{part: p}
	b.parts = append(b.parts, pb)
	return pb
}

package convo

import (
	"cmp"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// A Builder assembles an assistant message from the deltas of a stream. The
// zero Builder is empty and ready to use. It is not safe for concurrent use.
//
// Parts are in the order in which their first deltas arrive. Successive deltas
// of text are one part, and so are successive deltas of reasoning, unless EndPart
// comes between them. The deltas of tool calls are told apart by the index in the
// stream, by the ID and by the name. Calls that never got a name are dropped.
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
	ended  bool            // the provider has said that the part is whole
	minted string          // the new ID of a call; empty: it needed none yet
}

// String says how many parts there are.
func (b *Builder) String() string {
	return "builder(" + counted(len(b.parts), "part", "parts") + ")"
}

// Origin sets the Origin of the message.
func (b *Builder) Origin(o Origin) { b.origin = o }

// Usage sets the usage of the request, for Reply.
func (b *Builder) Usage(u Usage) { b.usage = u }

// Stop sets why the answer ended; StopOf of package wire knows the providers'
// words. If that is neither StopDone nor StopToolCall, or Stop is not called, a last
// call that was cut off is in Reply.CutOff and not among the messages. A stream that
// broke off has no reason: do not call Stop, and return its error.
func (b *Builder) Stop(s Stop) { b.stop, b.ended = s, true }

// Text appends delta to the text of the message.
func (b *Builder) Text(delta string) {
	if delta != "" {
		b.lastOrNew(Text("")).text.WriteString(delta)
	}
}

// Reasoning adds delta to the reasoning: Text and Signature are appended; ID and
// Encrypted replace the earlier values if they are not empty. A signature or an
// encrypted form ends a block, so a delta that is more than the next piece of the
// signature begins another one, as does a delta with another ID.
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

// ToolCall adds delta to the call with this index in the stream: Arguments are
// appended, and so is a Name that comes in pieces before them.
//
// Some providers give all parallel calls the index 0, or none, for which 0 is as
// good. So a delta with an ID other than that of the call begins a new one with
// the same index, or goes on with the one that has this ID, if it has no Name. Where
// there are no IDs, a Name begins a new call unless the one so far has that Name, or
// no arguments yet; and if its arguments are a JSON object and more come.
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
	if c.ID = cmp.Or(delta.ID, c.ID); c.ID != "" {
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

// calledBefore returns an earlier call to which a delta without a name belongs,
// although the newest call with its index is pb.
func (b *Builder) calledBefore(pb *partBuilder, delta ToolCall) *partBuilder {
	if pb == nil || delta.Name != "" {
		return nil
	}
	return b.byID[delta.ID]
}

// EndPart notes that the provider has said that the newest part is whole: the next
// delta of text or reasoning begins another part, and a call is ended as by
// EndToolCall. Call it where a provider ends a block.
func (b *Builder) EndPart() {
	if n := len(b.parts); n > 0 {
		b.parts[n-1].ended = true
	}
}

// EndToolCall notes that the provider has said that the newest call with this index
// is whole. It matters only for a call with empty arguments, or none that are a
// JSON object, at the end of an answer; see Stop.
func (b *Builder) EndToolCall(index int) {
	if pb := b.calls[index]; pb != nil {
		pb.ended = true
	}
}

// Part adds a part that is complete, such as [Media] or an [Opaque] block. [Text] is
// added as a delta. [Reasoning] and a [ToolCall] are parts of their own: a signature
// that belongs to the part after it, as Gemini's on a call does, is Reasoning
// without text, with the ID of the call, if it has one.
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
		index := -1 - len(b.parts) // no stream has it
		b.ToolCall(index, p)
		b.EndToolCall(index)
	default:
		b.add(p)
	}
}

// Reset makes b empty, for the next message.
func (b *Builder) Reset() { *b = Builder{} }

// Messages returns the assistant message, as a list of one to append, or nil if
// it would be empty. A call without an ID, or with the ID of an earlier call, gets
// a new one and is marked as Minted. Arguments are kept as they came:
// [ToolCall.Valid] tells which calls can be run.
//
// Messages may be called while deltas are still to come. A new ID stays the same. A
// last call whose arguments are not complete yet is left out, as one that was cut
// off is; see Stop.
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
			if p.ID = text.Valid(p.ID); p.ID == "" || seen[p.ID] {
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

// Reply returns the messages, the call that was cut off, the usage and the reason
// of the end, for [History.Do].
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
// answer that the model did not finish, if its arguments are empty or no JSON
// object. Blank text and opaque parts after it do not count.
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

// lastOrNew returns the last part if it is text or reasoning like p which has not
// ended, and otherwise adds p.
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

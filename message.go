package convo

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
)

// A Role says who a message is from.
type Role string

// The roles. RoleNone stands for "no message" where a [RolePolicy] or a
// [RoleError] speaks of what comes before the first one.
const (
	RoleNone      Role = ""
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// A Message is what the model sees: a role and ordered parts.
//
// A Message is a plain value and is not safe for concurrent change. A
// [History] copies what it is given and hands out copies, so neither side
// can change the other's.
type Message struct {
	Role Role

	// Author says who speaks when it is not the one user or the one
	// assistant: the writer of a user message in a group, a guest agent on an
	// assistant message. The model is told, in a form that no text can forge.
	Author string

	// Origin is the model and format that produced an assistant message.
	Origin Origin

	// Parts are the content, in order. Which parts a role may hold:
	// system: Text, Opaque; user: Text, Media, Opaque; assistant: all but
	// ToolResult; tool: one or more ToolResult and nothing else.
	Parts []Part

	// Meta belongs to the host: saved with the message, never sent to a
	// model, never counted.
	Meta string
}

// An Origin names what produced an assistant message, so that reasoning and
// signatures are replayed only to the provider and model that made them.
type Origin struct {
	Format string `json:"format,omitempty"` // a wire format, such as "anthropic"
	Model  string `json:"model,omitempty"`
}

// A Part is a piece of a message: [Text], [Reasoning], [ToolCall],
// [ToolResult], [Media] or [Opaque], as a value, not a pointer. No other type
// is accepted.
type Part interface {
	part()
}

// Text is plain text.
type Text string

// Reasoning is what a model thought before or between its answers. Providers
// want it back byte for byte, together with its signature.
type Reasoning struct {
	ID        string // the provider's name for the block, if it has one
	Text      string
	Signature string // proves to the provider that the text is its own
	Encrypted string // the whole block in a form that only the provider reads
}

// A ToolCall is a request of the model to run a tool.
type ToolCall struct {
	// ID names the call within its message. One that is empty is given a
	// value by Append, and Minted is set.
	ID   string
	Name string

	// Arguments is a JSON object as the model wrote it. Its bytes are kept:
	// 1.0 stays 1.0 and keys keep their order. Empty means no arguments.
	Arguments string

	// Minted says that ID was made by this package, not by a provider.
	Minted bool
}

// A ToolResult answers a [ToolCall].
type ToolResult struct {
	// CallID is the ID of the call. One that is empty answers the first open
	// call named Name, or with no Name either the first open call; Append
	// fills both in.
	CallID string
	Name   string

	// Parts are the content: Text, Media and Opaque. None is legal.
	Parts []Part

	IsError bool

	// Cleared says that the content was given up and Parts hold a marker.
	Cleared bool
}

// Media is an image, a sound, a document or another file, by its content or
// by its address.
type Media struct {
	MIME string
	Data string // base64, standard encoding; see [NewMedia]
	URL  string // used when Data is empty
}

// Opaque is a block that only one wire format knows. It is kept byte for byte
// and sent only in that format.
type Opaque struct {
	Format string
	JSON   string
}

func (Text) part()       {}
func (Reasoning) part()  {}
func (ToolCall) part()   {}
func (ToolResult) part() {}
func (Media) part()      {}
func (Opaque) part()     {}

// NewMedia makes a [Media] of raw bytes.
func NewMedia(mime string, data []byte) Media {
	return Media{MIME: mime, Data: base64.StdEncoding.EncodeToString(data)}
}

// System makes a system message.
func System(text string) Message {
	return Message{Role: RoleSystem, Parts: textParts(text)}
}

// User makes a user message of a text and further parts, such as [Media].
func User(text string, more ...Part) Message {
	return Message{Role: RoleUser, Parts: append(textParts(text), more...)}
}

// Assistant makes an assistant message: the text, if there is any, then the
// calls.
func Assistant(text string, calls ...ToolCall) Message {
	parts := textParts(text)
	for _, c := range calls {
		parts = append(parts, c)
	}
	return Message{Role: RoleAssistant, Parts: parts}
}

// Result makes the tool message that answers call with text. An empty text is
// legal.
func Result(call ToolCall, text string) Message {
	return resultMessage(call, text, false)
}

// ResultError makes the tool message that answers call with an error. A nil
// err reads as "unknown error".
func ResultError(call ToolCall, err error) Message {
	if err == nil {
		err = errors.New("unknown error")
	}
	return resultMessage(call, err.Error(), true)
}

func resultMessage(call ToolCall, text string, isError bool) Message {
	return Message{Role: RoleTool, Parts: []Part{ToolResult{
		CallID:  call.ID,
		Name:    call.Name,
		Parts:   textParts(text),
		IsError: isError,
	}}}
}

func textParts(text string) []Part {
	if text == "" {
		return nil
	}
	return []Part{Text(text)}
}

// Text returns the text parts of m, joined by newlines. For a tool message it
// is the text of its results.
func (m Message) Text() string {
	var texts []string
	for _, p := range m.Parts {
		switch p := p.(type) {
		case Text:
			texts = append(texts, string(p))
		case ToolResult:
			if t := p.Text(); t != "" {
				texts = append(texts, t)
			}
		}
	}
	return strings.Join(texts, "\n")
}

// Reasoning returns the text of the reasoning parts of m, joined by newlines.
func (m Message) Reasoning() string {
	var texts []string
	for _, p := range m.Parts {
		if r, ok := p.(Reasoning); ok && r.Text != "" {
			texts = append(texts, r.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// ToolCalls returns the tool calls of m, in order.
func (m Message) ToolCalls() []ToolCall { return partsOf[ToolCall](m) }

// ToolResults returns the tool results of m, in order.
func (m Message) ToolResults() []ToolResult { return partsOf[ToolResult](m) }

func partsOf[P Part](m Message) []P {
	var found []P
	for _, p := range m.Parts {
		if p, ok := p.(P); ok {
			found = append(found, p)
		}
	}
	return found
}

// Text returns the text parts of r, joined by newlines.
func (r ToolResult) Text() string {
	var texts []string
	for _, p := range r.Parts {
		if t, ok := p.(Text); ok {
			texts = append(texts, string(t))
		}
	}
	return strings.Join(texts, "\n")
}

// clone returns m with part slices of its own. What parts hold are strings,
// which nobody can change.
func (m Message) clone() Message {
	m.Parts = cloneParts(m.Parts)
	return m
}

func cloneParts(parts []Part) []Part {
	parts = slices.Clone(parts)
	for i, p := range parts {
		if r, ok := p.(ToolResult); ok && len(r.Parts) > 0 {
			r.Parts = slices.Clone(r.Parts)
			parts[i] = r
		}
	}
	return parts
}

// isTagged reports whether the model is told who speaks.
func (m *Message) isTagged() bool { return m.Author != "" && m.Role != RoleTool }

// isEmpty reports whether m holds nothing but empty text.
func (m Message) isEmpty() bool {
	for _, p := range m.Parts {
		if t, ok := p.(Text); !ok || t != "" {
			return false
		}
	}
	return true
}

package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// A Format translates between conversations and the JSON of one provider. The formats of
// this package are plain values and safe for concurrent use; their fields describe
// differences between models or servers of one provider.
//
// Each format of this package is also a [Streamer], a [ToolWriter] and a [Patcher]. If the provider is
// chosen at run time, an interface can combine them:
//
//	type provider interface {
//		wire.Format
//		wire.Streamer
//		wire.ToolWriter
//		wire.Patcher
//	}
type Format interface {
	// Encode returns the request for a snapshot. The same snapshot always gives the same
	// bytes. The only error is ErrEmpty, if the snapshot is nil or holds nothing to send.
	Encode(s *convo.Snapshot) (Request, error)

	// Decode reads a request, a response, or one message of either. A call without an ID,
	// or with the ID of an earlier call in its message, gets a new ID, as does the result
	// that answers it. Arguments are kept as the model wrote them, even if they are not a
	// JSON object; Encode sends such arguments inside an object, from which Decode
	// extracts them again. Transcript.Lost lists what has no place in a message. If data
	// is malformed or reports an error of the provider, Decode returns a *DecodeError and
	// no messages; the error of a provider is wrapped as a *ProviderError. Only a Stream
	// keeps the part of an answer that precedes an error. An empty answer gives no
	// message, but its usage and why it stopped.
	Decode(data []byte) (Transcript, error)

	// Check returns the reasons for which the provider would refuse a request,
	// or nothing if the request is valid. The request need not come from
	// Encode.
	Check(request []byte) []Finding
}

// The formats, as [convo.Origin] and [convo.Opaque] name them. Content that is specific
// to one format, such as signed reasoning and opaque blocks, is not sent in another. If
// OpenAIChat has a Host, an Origin names the format, an @, and the Host. The values are
// saved with conversations and never change.
const (
	FormatOpenAIChat      = "openai-chat"      // OpenAIChat with the dialect OpenAI, StrictAlternation or Gemma
	FormatDeepSeek        = "deepseek"         // OpenAIChat with the dialect DeepSeek
	FormatMistral         = "mistral"          // OpenAIChat with the dialect Mistral
	FormatOllama          = "ollama"           // OpenAIChat with the dialect Ollama
	FormatOpenAIResponses = "openai-responses" // OpenAIResponses
	FormatAnthropic       = "anthropic"        // Anthropic
	FormatGemini          = "gemini"           // Gemini
	FormatConverse        = "converse"         // Converse
)

// A formatRule says what the code that all formats share must know of one.
type formatRule struct {
	keyed     bool     // a block has one field, whose name is its kind; else a field type
	mark      string   // the kind of a block that is a cache mark
	tools     string   // the field of a request with an object that holds the tools
	object    string   // the block after the text of a result that came as an object
	citations []string // the path of the citations in the block after a text that they belong to
}

// formatRules are the rules of the formats that are not like Chat Completions.
var formatRules = map[string]formatRule{
	FormatAnthropic:       {citations: []string{"citations"}},
	FormatConverse:        {keyed: true, mark: "cachePoint", tools: "toolConfig", object: `{"json":{}}`, citations: []string{"citationsContent", "citations"}},
	FormatGemini:          {keyed: true, object: `{"response":{}}`},
	FormatOpenAIResponses: {citations: []string{"annotations"}},
}

// ErrEmpty is returned by Encode when there is nothing to send.
var ErrEmpty = errors.New("wire: nothing to send: append a message with content first")

// A Request is the part of a provider's request that comes from the
// conversation. The caller adds the model and its parameters, see Request.With.
type Request struct {
	// Tools are the definitions of the tools. Encode writes those of
	// [convo.History.SetTools]. For others, set them to the result of the Tools method of
	// the format, see [ToolWriter].
	Tools json.RawMessage

	System   json.RawMessage   // the system text, if it is not among the messages; else nil
	Messages []json.RawMessage // or the items of Responses, or the contents of Gemini

	// Headers are HTTP headers, and Fields are further fields of the body, that the request
	// needs, in the provider's names. Encode sets them where an option of the format, such as
	// Betas of [Anthropic], allows it, and sets the container in which code of an answer
	// waits. Body and With write Fields; the caller sends the headers, and joins those that
	// have several values, such as anthropic-beta, with its own by a comma.
	Headers map[string]string
	Fields  map[string]json.RawMessage

	// NeedsTools is set if the messages hold tool calls or results. Send the definitions
	// of the tools with them, because some providers refuse the request otherwise.
	NeedsTools bool

	// NoThinking is set if reasoning that the provider needs back cannot be sent. Turn
	// thinking off for this request.
	NoThinking bool

	// CacheTTL is how long the provider keeps the messages in its prompt cache, for
	// [convo.Usage].CacheTTL. For Anthropic and Converse, it is what the longest of the marks on
	// messages asks for. For Gemini and for OpenAI's models, by their name, it is what the
	// provider documents; a parameter of OpenAI may say otherwise. 0: they are not kept, or no
	// time is documented.
	CacheTTL time.Duration

	// Lost lists what the request leaves out of the messages of the snapshot, in the
	// order of the entries and their parts. It is nil if nothing is lost.
	Lost []Omission

	names      *names
	references []reference
}

// String returns the number of messages, the size, and the number of losses, without any
// of the content.
func (r Request) String() string {
	lost := ""
	if n := len(r.Lost); n > 0 {
		lost = fmt.Sprintf(", %d parts lost", n)
	}
	return fmt.Sprintf("request(%d messages, %d bytes%s)", len(r.Messages), r.size(), lost)
}

// GoString returns the same as String.
func (r Request) GoString() string { return r.String() }

// names are the provider's names for the fields of a request.
type names struct{ tools, system, messages string }

// namesOrDefault returns the names. For a Request that Encode did not make, it returns
// the names that most providers use.
func (r Request) namesOrDefault() names {
	if r.names == nil {
		return names{"tools", "system", "messages"}
	}
	return *r.names
}

// With returns a complete request: the fields of params, which is a struct or a map that
// marshals as a JSON object, followed by the fields of Body:
//
//	body, err := req.With(map[string]any{"model": "claude-opus-5", "max_tokens": 1024, "stream": true})
//
// Equal params give equal bytes, with the names of a map in order. With returns a
// [*convo.ValueError] if params is not an object, has a field twice, or has a field of
// the request, and if Tools or a field of Fields is not JSON. A container in params stays;
// if it is an object without an id, it gets that of Fields. References to tools in params are
// sent as they are. Parameters that belong in one object with the
// tools, such as the toolChoice of Converse, must be added to Tools. If params is nil,
// With returns Body.
//
// The request is copied once, into memory of the right size. AppendWith can reuse memory.
func (r Request) With(params any) ([]byte, error) { return r.AppendWith(nil, params) }

// AppendWith appends the result of With to b, and returns the extended slice. A program
// that sends many requests can keep the slice, and reuse it when the previous request was
// sent:
//
//	buf, err = req.AppendWith(buf[:0], params)
//
// If there is an error, b is returned unchanged.
func (r Request) AppendWith(b []byte, params any) ([]byte, error) {
	data, err := json.Marshal(params)
	if err != nil {
		return b, fmt.Errorf("wire: the parameters of a request: %w", err)
	}
	if len(r.Tools) > 0 && !strictjson.Valid(r.Tools) {
		return b, &convo.ValueError{Name: "Request.Tools", Value: fmt.Sprintf("%.40s", r.Tools), Want: "JSON, such as the Tools method of the format returns"}
	}
	n := r.namesOrDefault()
	for name, value := range r.Fields {
		switch {
		case !strictjson.Valid(value):
			return b, &convo.ValueError{Name: "Request.Fields[" + strconv.Quote(name) + "]", Value: fmt.Sprintf("%.40s", value), Want: "JSON"}
		case name == n.tools || name == n.system || name == n.messages:
			return b, &convo.ValueError{Name: "Request.Fields", Value: "a map with the field " + name, Want: "only fields that the request does not have besides"}
		}
	}
	if isNull(data) {
		r.Messages = r.referring(nil)
		return r.appendBody(slices.Grow(b, r.size())), nil
	}
	all, err := fields("", data)
	if err != nil {
		return b, &convo.ValueError{Name: "params", Value: kindName(data), Want: "a struct or a map that is a JSON object"}
	}
	if name, twice := strictjson.Repeated(data); twice {
		return b, &convo.ValueError{Name: "params", Value: "an object with the field " + name + " twice", Want: "each field once"}
	}
	for _, name := range []string{n.tools, n.system, n.messages} {
		empty := name == n.tools && len(r.Tools) == 0 || name == n.system && len(r.System) == 0
		if _, given := all[name]; given && !empty {
			return b, &convo.ValueError{Name: "params", Value: "an object with the field " + name, Want: "only fields that the request does not have"}
		}
	}
	if own, given := all[containerField]; given && r.Fields[containerField] != nil {
		id := r.Fields[containerField]
		r.Fields = maps.Clone(r.Fields)
		delete(r.Fields, containerField)
		if containerID(own) == "" {
			if kindOf(own) == '{' {
				id = json.RawMessage(withFields(string(own), map[string]json.RawMessage{"id": id}))
			}
			data = []byte(withFields(string(data), map[string]json.RawMessage{containerField: id}))
		}
	}
	for name := range r.Fields {
		if _, given := all[name]; given {
			return b, &convo.ValueError{Name: "params", Value: "an object with the field " + name, Want: "only fields that the request does not have"}
		}
	}
	r.Messages = r.referring(all["tools"])
	b = slices.Grow(b, len(data)-1+r.size())
	if len(all) == 0 {
		return r.appendBody(b), nil
	}
	b = append(b, data[:len(data)-1]...)
	at := len(b)
	b = r.appendBody(b)
	b[at] = ',' // the bracket of the body
	return b, nil
}

// containerField is the field of a request and of an answer that names a container.
const containerField = "container"

// containerID returns the ID of a container, which a request may give as a text, or "".
func containerID(raw json.RawMessage) string {
	if kindOf(raw) == '"' {
		return stringOf(raw)
	}
	return inner(raw, "id")
}

// Body returns Fields, Tools, System and Messages as one JSON object with the provider's
// names, which is the input of Check. Body does not check them. With adds the model and
// parameters.
func (r Request) Body() []byte {
	r.Messages = r.referring(nil)
	return r.appendBody(make([]byte, 0, r.size()))
}

// size returns the length of Body.
func (r Request) size() int {
	n := r.namesOrDefault()
	size := len(`{"":[]}`) + len(n.messages)
	if len(r.Tools) > 0 {
		size += len(`"":,`) + len(n.tools) + len(r.Tools)
	}
	if len(r.System) > 0 {
		size += len(`"":,`) + len(n.system) + len(r.System)
	}
	for name, value := range r.Fields {
		size += len(`"":,`) + len(name) + len(value)
	}
	for _, m := range r.Messages {
		size += len(m) + 1
	}
	return size - min(len(r.Messages), 1)
}

func (r Request) appendBody(b []byte) []byte {
	n := r.namesOrDefault()
	b = append(b, '{')
	if len(r.Fields) > 0 {
		for _, name := range slices.Sorted(maps.Keys(r.Fields)) {
			b = append(strictjson.AppendString(strictjson.Next(b), name), ':')
			b = append(b, r.Fields[name]...)
		}
	}
	if len(r.Tools) > 0 {
		b = append(strictjson.Key(b, n.tools), r.Tools...)
	}
	if len(r.System) > 0 {
		b = append(strictjson.Key(b, n.system), r.System...)
	}
	b = append(strictjson.Key(b, n.messages), '[')
	for i, m := range r.Messages {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, m...)
	}
	return append(b, "]}"...)
}

// A Transcript is the result of Decode.
type Transcript struct {
	Messages []convo.Message // for History.Append, or NewSnapshot; none for an empty response
	Lost     []Loss          // what has no place in the messages: at most 64, and a last Loss without a Path if there are more

	// The following fields describe a response, and are zero if the input does not state
	// them, as in a request.

	CutOff *convo.ToolCall // see [convo.Reply]
	Usage  convo.Usage     // converted to the terms of convo
	Stop   convo.Stop      // why it ended; see StopOf

	// Cleared is how many tokens of the request the provider left out before the model read
	// it, because of a parameter that asks for that, such as context_management of
	// Anthropic. They are not part of Usage. Unless each request asks for the same, the next
	// one weighs so much more.
	Cleared int

	// The following are in the provider's words.
	StopReason string // the reason that Stop was derived from; for Responses, the status if it is completed
	Model      string // the model that answered, which may differ from the model of the request
	ID         string // the ID of the response
}

// Format prints t with the messages in their own format, and long names cut.
func (t Transcript) Format(f fmt.State, verb rune) {
	type plain Transcript
	for _, s := range []*string{&t.StopReason, &t.Model, &t.ID} {
		if len(*s) > 64 {
			*s = fmt.Sprintf("%.64s…", *s)
		}
	}
	fmt.Fprintf(f, fmt.FormatString(f, verb), plain(t))
}

// A Loss is something in the input of Decode that has no place in a [convo.Message].
// Decode keeps an unknown field of a message in [convo.Message.Meta], as an object,
// unless it is in an answer or several messages share the field; such a field is not sent
// again.
type Loss struct {
	Path string // the path in the input, such as "messages[2].content[0].cache_control"
	What string // what is lost, in a few words
}

// String returns where it is and what is lost.
func (l Loss) String() string { return l.Path + ": " + l.What }

// A Finding is one reason for which a provider would refuse a request, or, from
// CheckHistory, read less of it from its cache.
type Finding struct {
	Rule    string // a short name that stays the same, such as "unanswered-call"
	Path    string // where in the request, such as "messages[3].tool_calls[0].id"
	ID      string // the ID of the call or result at fault, if any
	Problem string // what is wrong
	Fix     string // how to fix it
	Error   string // what the provider answers, if known
}

// String returns the rule, the path, the problem and the fix.
func (f Finding) String() string {
	if f.Path == "" {
		return f.Rule + ": " + f.Problem + "; " + f.Fix
	}
	return f.Rule + " at " + f.Path + ": " + f.Problem + "; " + f.Fix
}

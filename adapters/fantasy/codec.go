package convofantasy

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"charm.land/fantasy"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/mirror"
	"github.com/seed-c1b73e60/convo/wire"
)

// Codec translates fantasy's messages. Names of files, options for a provider and data of
// the client stay in the host's values, which the view holds. What a provider has run is
// [convo.Opaque]: in Anthropic's own form where the options say that it is Anthropic's,
// and otherwise of the format "fantasy". Such a result is not cleared; it leaves together
// with its message. Signed reasoning that is no longer where it was made is left out for
// the models that are known to refuse it.
//
// Messages of fantasy have no names, so each is known by its place in the list, unless
// Key is set.
func Codec() mirror.Codec[fantasy.Message] {
	return mirror.Codec[fantasy.Message]{Decode: decode, Encode: encode, Same: same, Seals: wire.SealsByModel.Checks}
}

// same compares what decode reads. fantasy does not change the parts of a message.
func same(was, now fantasy.Message) bool {
	return was.Role == now.Role && slices.EqualFunc(was.Content, now.Content, samePart)
}

func samePart(was, now fantasy.MessagePart) bool {
	switch a := was.(type) {
	case fantasy.TextPart:
		b, ok := now.(fantasy.TextPart)
		return ok && a.Text == b.Text
	case fantasy.ToolCallPart:
		b, ok := now.(fantasy.ToolCallPart)
		return ok && a.ToolCallID == b.ToolCallID && a.ToolName == b.ToolName && a.Input == b.Input && a.ProviderExecuted == b.ProviderExecuted
	case fantasy.ToolResultPart:
		b, _ := now.(fantasy.ToolResultPart)
		said, isText := a.Output.(fantasy.ToolResultOutputContentText)
		says, isStill := b.Output.(fantasy.ToolResultOutputContentText)
		if isText && isStill && len(a.ProviderOptions)+len(b.ProviderOptions) == 0 {
			return a.ToolCallID == b.ToolCallID && said == says
		}
	}
	return reflect.DeepEqual(was, now)
}

func decode(m fantasy.Message) ([]convo.Message, error) {
	msg := convo.Message{Role: convo.Role(m.Role)}
	for _, p := range m.Content {
		msg.Parts = append(msg.Parts, partsOf(m, p)...)
	}
	return []convo.Message{msg}, nil
}

// partsOf returns what a part of m is for convo: nothing, if there is none.
func partsOf(m fantasy.Message, p fantasy.MessagePart) []convo.Part {
	if t, ok := fantasy.AsMessagePart[fantasy.TextPart](p); ok {
		return []convo.Part{convo.Text(t.Text)}
	}
	if f, ok := fantasy.AsMessagePart[fantasy.FilePart](p); ok {
		return []convo.Part{mirror.File(f.MediaType, base64.StdEncoding.EncodeToString(f.Data), "")}
	}
	if r, ok := fantasy.AsMessagePart[fantasy.ReasoningPart](p); ok {
		return []convo.Part{reasoningOf(r)}
	}
	if c, ok := fantasy.AsMessagePart[fantasy.ToolCallPart](p); ok {
		if c.ProviderExecuted {
			return []convo.Part{serverCall(m, c)}
		}
		return []convo.Part{convo.ToolCall{ID: c.ToolCallID, Name: c.ToolName, Arguments: c.Input}}
	}
	if r, ok := fantasy.AsMessagePart[fantasy.ToolResultPart](p); ok {
		if m.Role != fantasy.MessageRoleTool {
			return []convo.Part{serverResult(r)}
		}
		return []convo.Part{resultOf(r)}
	}
	if p == nil {
		return nil
	}
	return []convo.Part{opaque("fantasy", map[string]any{"type": p.GetType(), "part": p})}
}

func resultOf(r fantasy.ToolResultPart) convo.ToolResult {
	result := convo.ToolResult{CallID: r.ToolCallID}
	text := ""
	if t, ok := fantasy.AsToolResultOutputType[fantasy.ToolResultOutputContentText](r.Output); ok {
		text = t.Text
	} else if e, ok := fantasy.AsToolResultOutputType[fantasy.ToolResultOutputContentError](r.Output); ok {
		result.IsError = true
		if e.Error != nil {
			text = e.Error.Error()
		}
	} else if m, ok := fantasy.AsToolResultOutputType[fantasy.ToolResultOutputContentMedia](r.Output); ok {
		result.Parts = append(result.Parts, mirror.File(m.MediaType, m.Data, ""))
		text = m.Text
	} else if r.Output != nil {
		result.Parts = append(result.Parts, opaque("fantasy", map[string]any{"type": r.Output.GetType(), "output": r.Output}))
	}
	if text != "" {
		result.Parts = append(result.Parts, convo.Text(text))
	}
	return result
}

// The data in which fantasy's providers keep what belongs to reasoning and to a result of
// a search. The types themselves are in packages that import the providers' SDKs.
type partData struct {
	Signature        string          `json:"signature"`
	RedactedData     string          `json:"redacted_data"`
	EncryptedContent *string         `json:"encrypted_content"`
	ItemID           string          `json:"item_id"`
	Results          json.RawMessage `json:"results"`
	ErrorCode        string          `json:"error_code"`
}

func dataOf(options fantasy.ProviderOptionsData) (d partData) {
	if v := reflect.ValueOf(options); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return d
	}
	raw, err := json.Marshal(options)
	if err != nil {
		return d
	}
	var typed struct{ Data partData }
	if json.Unmarshal(raw, &typed) != nil {
		return d
	}
	return typed.Data
}

func reasoningOf(p fantasy.ReasoningPart) convo.Reasoning {
	r := convo.Reasoning{Text: p.Text}
	for _, name := range providers(p.ProviderOptions) {
		d := dataOf(p.ProviderOptions[name])
		r.ID, r.Signature, r.Encrypted = d.ItemID, d.Signature, d.RedactedData
		if d.EncryptedContent != nil {
			r.Encrypted = *d.EncryptedContent
		}
		if r.Signature+r.Encrypted != "" {
			break
		}
	}
	return r
}

// providers returns the names in options, in a fixed order.
func providers(options fantasy.ProviderOptions) (names []string) {
	for name := range options {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

const anthropic = "anthropic" // the name of the provider, and of the format of package wire

func serverCall(m fantasy.Message, c fantasy.ToolCallPart) convo.Part {
	for _, p := range m.Content {
		r, ok := fantasy.AsMessagePart[fantasy.ToolResultPart](p)
		if _, theirs := r.ProviderOptions[anthropic]; ok && theirs && r.ToolCallID == c.ToolCallID {
			input := json.RawMessage(c.Input)
			if !json.Valid(input) {
				input = json.RawMessage("{}")
			}
			return opaque(anthropic, map[string]any{"type": "server_tool_use", "id": c.ToolCallID, "name": c.ToolName, "input": input})
		}
	}
	return opaque("fantasy", map[string]any{"type": "tool-call", "id": c.ToolCallID, "name": c.ToolName, "input": c.Input})
}

func serverResult(r fantasy.ToolResultPart) convo.Part {
	options, theirs := r.ProviderOptions[anthropic]
	if d := dataOf(options); theirs && (len(d.Results) > 0 || d.ErrorCode != "") {
		var content any = map[string]string{"type": "web_search_tool_result_error", "error_code": d.ErrorCode}
		var found []map[string]any
		if json.Unmarshal(d.Results, &found) == nil && len(found) > 0 {
			for _, f := range found {
				f["type"] = "web_search_result"
			}
			content = found
		}
		return opaque(anthropic, map[string]any{"type": "web_search_tool_result", "tool_use_id": r.ToolCallID, "content": content})
	}
	said := resultOf(r)
	return opaque("fantasy", map[string]any{"type": "tool-result", "id": r.ToolCallID, "error": said.IsError, "text": said.Text()})
}

func opaque(format string, block map[string]any) convo.Part {
	data, err := json.Marshal(block)
	if err != nil {
		data = []byte("{}") // a part that fantasy does not know
	}
	return convo.Opaque{Format: format, JSON: string(data)}
}

func encode(msg convo.Message, was *fantasy.Message) (fantasy.Message, error) {
	m := fantasy.Message{Role: fantasy.MessageRole(msg.Role)}
	var old []fantasy.MessagePart // those that convo knows, one for each part of theirs
	var theirs []convo.Part
	if was != nil {
		m.ProviderOptions = was.ProviderOptions
		for _, p := range was.Content {
			if is := partsOf(*was, p); len(is) > 0 {
				old, theirs = append(old, p), append(theirs, is...)
			}
		}
	}
	for i, k := range mirror.Kept(theirs, msg.Parts) {
		if k >= 0 {
			m.Content = append(m.Content, old[k])
			continue
		}
		part, err := newPart(msg.Parts[i])
		if err != nil {
			return m, err
		}
		if at := mirror.Changed(theirs, msg.Parts, i); at >= 0 {
			r := part.(fantasy.ToolResultPart)
			is, _ := fantasy.AsMessagePart[fantasy.ToolResultPart](old[at])
			is.ToolCallID, is.Output = r.ToolCallID, r.Output
			part = is
		}
		if part != nil {
			m.Content = append(m.Content, part)
		}
	}
	return m, nil
}

// ordered returns view with reasoning before the text of each answer, where the model has
// written it. Hosts that store them in two fields put the text first, which providers refuse.
func ordered(view []fantasy.Message) []fantasy.Message {
	rank := func(p fantasy.MessagePart) int {
		switch p.GetType() {
		case fantasy.ContentTypeReasoning:
			return 0
		case fantasy.ContentTypeText:
			return 1
		}
		return 2
	}
	for i, m := range view {
		from := slices.IndexFunc(m.Content, func(p fantasy.MessagePart) bool { return rank(p) != 1 })
		if m.Role == fantasy.MessageRoleAssistant && from > 0 && rank(m.Content[from]) == 0 {
			view[i].Content = slices.Clone(m.Content)
			slices.SortStableFunc(view[i].Content, func(a, b fantasy.MessagePart) int { return rank(a) - rank(b) })
		}
	}
	return view
}

// outputOf returns the content of a result. fantasy has one text and one file in it.
func outputOf(r convo.ToolResult) fantasy.ToolResultOutputContent {
	if r.IsError {
		return fantasy.ToolResultOutputContentError{Error: errors.New(r.Text())}
	}
	for _, p := range r.Parts {
		if m, ok := p.(convo.Media); ok {
			return fantasy.ToolResultOutputContentMedia{Data: m.Data, MediaType: m.MIME, Text: r.Text()}
		}
	}
	return fantasy.ToolResultOutputContentText{Text: r.Text()}
}

func newPart(p convo.Part) (fantasy.MessagePart, error) {
	switch p := p.(type) {
	case convo.Text:
		return fantasy.TextPart{Text: string(p)}, nil
	case convo.Media:
		if p.Data == "" {
			return fantasy.TextPart{Text: p.URL}, nil // a file in fantasy has no address
		}
		data, err := base64.StdEncoding.DecodeString(p.Data)
		return fantasy.FilePart{Data: data, MediaType: p.MIME}, err
	case convo.ToolResult:
		return fantasy.ToolResultPart{ToolCallID: p.CallID, Output: outputOf(p)}, nil
	case convo.ToolCall:
		return fantasy.ToolCallPart{ToolCallID: p.ID, ToolName: p.Name, Input: p.Arguments}, nil
	}
	return nil, nil // reasoning and opaque blocks that fantasy has not given cannot be sent by it
}

package convoeino

import (
	"encoding/json"
	"strings"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/schema"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/mirror"
)

// Codec translates eino's messages. Each is known by its message ID, see
// adk.GetMessageID, and gets one if it has none; system messages may get a new one each
// run. A list that is made of the events of a run needs the results of parallel calls in
// the order of the calls: the events have them in the order in which the tools end.
//
// It has no Same: middlewares of eino, such as those that clear results, change messages in place.
func Codec() mirror.Codec[*schema.Message] {
	return mirror.Codec[*schema.Message]{Decode: decode, Encode: encode, Key: func(m *schema.Message) string {
		if adk.GetMessageID(m) == "" { // EnsureMessageID always writes, and other agents may read m
			adk.EnsureMessageID(m)
		}
		return adk.GetMessageID(m)
	}}
}

func decode(m *schema.Message) ([]convo.Message, error) {
	msg := convo.Message{Role: convo.Role(m.Role), Author: m.Name, Parts: contentOf(m)}
	if m.Role == schema.Tool {
		msg.Author = ""
		msg.Parts = []convo.Part{convo.ToolResult{CallID: m.ToolCallID, Name: m.ToolName, Parts: msg.Parts}}
	} else if m.ReasoningContent != "" {
		msg.Parts = append([]convo.Part{convo.Reasoning{Text: m.ReasoningContent}}, msg.Parts...)
	}
	for _, c := range m.ToolCalls {
		msg.Parts = append(msg.Parts, convo.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
	}
	return []convo.Message{msg}, nil
}

// contentOf returns the parts of one of the four lists in m, one for one, or its text.
func contentOf(m *schema.Message) (parts []convo.Part) {
	for _, p := range m.UserInputMultiContent {
		parts = append(parts, partOf(p))
	}
	for _, p := range m.AssistantGenMultiContent {
		parts = append(parts, partOf(p))
	}
	for _, p := range m.MultiContent {
		parts = append(parts, partOf(p))
	}
	if len(parts) == 0 && m.Content != "" {
		parts = []convo.Part{convo.Text(m.Content)}
	}
	return parts
}

// partOf reads a part of any list by its JSON, whose fields have the same names in all.
func partOf(p any) convo.Part {
	type file struct {
		URL  string `json:"url"`
		Data string `json:"base64data"`
		MIME string `json:"mime_type"`
	}
	var v struct {
		Type  schema.ChatMessagePartType
		Text  string
		Image file `json:"image"`
		Audio file `json:"audio"`
		Video file `json:"video"`
		File  file `json:"file"`
		Old   file `json:"image_url"`
	}
	data, err := json.Marshal(p)
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err == nil && v.Type == schema.ChatMessagePartTypeText {
		return convo.Text(v.Text)
	}
	for _, f := range []file{v.Image, v.Audio, v.Video, v.File, v.Old} {
		if f != (file{}) {
			return mirror.File(f.MIME, f.Data, f.URL)
		}
	}
	if err != nil || v.Type == "" {
		data = []byte("{}")
	}
	return convo.Opaque{Format: "eino", JSON: string(data)}
}

func encode(msg convo.Message, was **schema.Message) (*schema.Message, error) {
	m := &schema.Message{Role: schema.RoleType(msg.Role), Extra: map[string]any{}}
	if was != nil {
		*m = **was
	}
	now, calls := []convo.Part{}, m.ToolCalls
	m.ToolCalls, m.ReasoningContent = nil, msg.Reasoning()
	for _, p := range msg.Parts {
		switch p := p.(type) {
		case convo.ToolResult:
			m.ToolCallID, m.ToolName, now = p.CallID, p.Name, p.Parts
		case convo.ToolCall:
			c := schema.ToolCall{ID: p.ID, Type: "function"}
			if n := len(m.ToolCalls); n < len(calls) { // an edit keeps the calls
				c = calls[n]
			}
			c.Function = schema.FunctionCall{Name: p.Name, Arguments: p.Arguments}
			m.ToolCalls = append(m.ToolCalls, c)
		case convo.Reasoning:
		default:
			now = append(now, p)
		}
	}
	old := contentOf(m)
	m.UserInputMultiContent = rebuild(m.UserInputMultiContent, old, now, func(p convo.Part) schema.MessageInputPart {
		return schema.MessageInputPart{Type: schema.ChatMessagePartTypeText, Text: text(p)}
	})
	m.AssistantGenMultiContent = rebuild(m.AssistantGenMultiContent, old, now, func(p convo.Part) schema.MessageOutputPart {
		return schema.MessageOutputPart{Type: schema.ChatMessagePartTypeText, Text: text(p)}
	})
	m.MultiContent = rebuild(m.MultiContent, old, now, func(p convo.Part) schema.ChatMessagePart {
		return schema.ChatMessagePart{Type: schema.ChatMessagePartTypeText, Text: text(p)}
	})
	if len(m.UserInputMultiContent)+len(m.AssistantGenMultiContent)+len(m.MultiContent) == 0 {
		m.Content = convo.Message{Parts: now}.Text()
	}
	if was == nil {
		for _, p := range now {
			if f, ok := p.(convo.Media); ok {
				common := schema.MessagePartCommon{MIMEType: f.MIME, URL: &f.URL}
				if f.Data != "" {
					common.URL, common.Base64Data = nil, &f.Data
				}
				part := schema.MessageInputPart{Type: schema.ChatMessagePartTypeFileURL, File: &schema.MessageInputFile{MessagePartCommon: common}}
				if strings.HasPrefix(f.MIME, "image/") {
					part = schema.MessageInputPart{Type: schema.ChatMessagePartTypeImageURL, Image: &schema.MessageInputImage{MessagePartCommon: common}}
				}
				m.UserInputMultiContent = append(m.UserInputMultiContent, part)
			}
		}
		if len(m.UserInputMultiContent) > 0 && m.Content != "" {
			m.UserInputMultiContent = append([]schema.MessageInputPart{{Type: schema.ChatMessagePartTypeText, Text: m.Content}}, m.UserInputMultiContent...)
		}
	}
	return m, nil
}

// rebuild returns a list with the parts that are as they were, and others as text.
func rebuild[P any](list []P, was, now []convo.Part, text func(convo.Part) P) (parts []P) {
	if len(list) == 0 || len(list) != len(was) {
		return list
	}
	for i, k := range mirror.Kept(was, now) {
		if k >= 0 {
			parts = append(parts, list[k])
		} else {
			parts = append(parts, text(now[i]))
		}
	}
	return parts
}

func text(p convo.Part) string { return convo.Message{Parts: []convo.Part{p}}.Text() }

package convogenkit

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/firebase/genkit/go/ai"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/mirror"
	"github.com/seed-c1b73e60/convo/wire"
)

// Codec translates genkit's messages. Metadata, custom parts and the input of calls in
// its own form stay in the framework's values. Signed reasoning that is no longer where
// it was made is left out for the models that are known to refuse it, by the name given
// to SetModel, since a middleware of genkit does not get the name of the model.
//
// It has no Same: genkit puts instructions and downloaded files into messages in place.
func Codec() mirror.Codec[*ai.Message] {
	return mirror.Codec[*ai.Message]{Decode: decode, Encode: encode, Seals: wire.SealsByModel.Checks}
}

// signatureOf returns the signature of a part, which JSON makes a string.
func signatureOf(p *ai.Part) []byte {
	if text, ok := p.Metadata["signature"].(string); ok {
		signature, _ := base64.StdEncoding.DecodeString(text)
		return signature
	}
	signature, _ := p.Metadata["signature"].([]byte)
	return signature
}

// signed returns m with the signatures that the plugins of genkit read. They do not read
// those of a message that was JSON.
func signed(m *ai.Message) *ai.Message {
	for i, p := range m.Content {
		if _, isText := p.Metadata["signature"].(string); !isText {
			continue
		}
		part, message := *p, *m
		part.Metadata = maps.Clone(p.Metadata)
		part.Metadata["signature"] = signatureOf(p)
		message.Content = slices.Clone(m.Content)
		message.Content[i], m = &part, &message
	}
	return m
}

func decode(m *ai.Message) ([]convo.Message, error) {
	msg := convo.Message{Role: convo.Role(m.Role)}
	if m.Role == ai.RoleModel {
		msg.Role = convo.RoleAssistant
	}
	for _, p := range m.Content { // one for one
		msg.Parts = append(msg.Parts, partOf(p))
	}
	return []convo.Message{msg}, nil
}

func partOf(p *ai.Part) convo.Part {
	switch {
	case p.IsText() || p.IsData():
		return convo.Text(p.Text)
	case p.IsMedia():
		mime, data, ok := strings.Cut(strings.TrimPrefix(p.Text, "data:"), ";base64,")
		if ok && strings.HasPrefix(p.Text, "data:") {
			return mirror.File(mime, data, "")
		}
		return mirror.File(p.ContentType, "", p.Text)
	case p.IsReasoning():
		return convo.Reasoning{Text: p.Text, Signature: string(signatureOf(p))}
	case p.IsToolRequest():
		return convo.ToolCall{ID: p.ToolRequest.Ref, Name: p.ToolRequest.Name, Arguments: written(p.ToolRequest.Input)}
	case p.IsToolResponse():
		r := convo.ToolResult{CallID: p.ToolResponse.Ref, Name: p.ToolResponse.Name}
		if text, ok := p.ToolResponse.Output.(string); ok {
			r.Parts = append(r.Parts, convo.Text(text))
		} else if p.ToolResponse.Output != nil {
			r.Parts = append(r.Parts, convo.Text(written(p.ToolResponse.Output)))
		}
		for _, more := range p.ToolResponse.Content {
			r.Parts = append(r.Parts, partOf(more))
		}
		return r
	}
	return convo.Opaque{Format: "genkit", JSON: written(p)}
}

// written returns v as JSON.
func written(v any) string {
	data, err := json.Marshal(v)
	if err != nil || v == nil {
		return "{}"
	}
	return string(data)
}

func encode(msg convo.Message, was **ai.Message) (*ai.Message, error) {
	m := &ai.Message{Role: ai.Role(msg.Role)}
	if msg.Role == convo.RoleAssistant {
		m.Role = ai.RoleModel
	}
	var old []convo.Part
	var theirs []*ai.Part
	if was != nil {
		m.Role, m.Metadata, theirs = (*was).Role, (*was).Metadata, (*was).Content
		msgs, _ := decode(*was)
		old = msgs[0].Parts
	}
	for i, k := range mirror.Kept(old, msg.Parts) {
		if k >= 0 {
			m.Content = append(m.Content, theirs[k])
			continue
		}
		switch p := msg.Parts[i].(type) {
		case convo.Text:
			m.Content = append(m.Content, ai.NewTextPart(string(p)))
		case convo.Media:
			if p.Data != "" {
				p.URL = "data:" + p.MIME + ";base64," + p.Data
			}
			m.Content = append(m.Content, ai.NewMediaPart(p.MIME, p.URL))
		case convo.ToolCall:
			m.Content = append(m.Content, ai.NewToolRequestPart(&ai.ToolRequest{Ref: p.ID, Name: p.Name, Input: json.RawMessage(p.Arguments)}))
		case convo.ToolResult:
			part := ai.NewToolResponsePart(&ai.ToolResponse{Ref: p.CallID, Name: p.Name, Output: p.Text()})
			if at := mirror.Changed(old, msg.Parts, i); at >= 0 {
				part.ToolResponse.Ref, part.Metadata = theirs[at].ToolResponse.Ref, theirs[at].Metadata
			}
			for _, more := range p.Parts {
				if f, ok := more.(convo.Media); ok {
					mm, _ := encode(convo.Message{Parts: []convo.Part{f}}, nil)
					part.ToolResponse.Content = append(part.ToolResponse.Content, mm.Content...)
				}
			}
			m.Content = append(m.Content, part)
		}
	}
	return m, nil
}

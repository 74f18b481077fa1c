// Package convolangchaingo keeps the conversations of programs made with github.com/tmc/langchaingo inside
// the context window of a model.
//
//	model := convolangchaingo.New(mirror.New(h, convolangchaingo.Codec()), llm)
//
// The list of the framework does not change. Store what Decisions of the Mirror returns along
// with it, and call mirror.Resume after a restart.
package convolangchaingo

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/tmc/langchaingo/llms"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/mirror"
)

// A Model is a model whose requests stay inside the window of a History. It is for one
// conversation: each call of GenerateContent gets the whole list, which only grows, and the
// model beneath gets the view. Call passes its prompt on as it is.
//
// The tools are options of the call, and are counted when a provider has reported usage.
// Until then, set Limits.Tools for them.
type Model struct {
	llms.Model
	mirror *mirror.Mirror[llms.MessageContent]
}

// New returns a Model that calls beneath, and keeps the conversation in the History of m,
// whose limits are those of beneath. m has [Codec], and comes from mirror.New, or from
// mirror.Resume after a restart. What the user types while a run is under way goes to its
// Add.
func New(m *mirror.Mirror[llms.MessageContent], beneath llms.Model) *Model {
	return &Model{beneath, m}
}

// GenerateContent implements llms.Model.
func (m *Model) GenerateContent(ctx context.Context, list []llms.MessageContent, o ...llms.CallOption) (*llms.ContentResponse, error) {
	return mirror.Send(ctx, m.mirror, list, func(view []llms.MessageContent, s *convo.Snapshot) (*llms.ContentResponse, error) {
		r, err := m.Model.GenerateContent(ctx, view, o...)
		if err == nil && r != nil && len(r.Choices) > 0 {
			_ = m.mirror.History().RecordUsage(s, usageOf(r.Choices[0].GenerationInfo)) // figures that cannot be true change nothing
		}
		return r, err
	})
}

// usageOf reads the names that the packages of llms use. Those of Anthropic leave what was
// read from a cache, or written to it, out of InputTokens.
func usageOf(info map[string]any) (u convo.Usage) {
	number := func(name string) int {
		if v := reflect.ValueOf(info[name]); v.IsValid() && v.CanInt() {
			return int(v.Int())
		}
		return 0
	}
	u.CacheRead = max(number("CacheReadInputTokens"), number("PromptCachedTokens"))
	u.CacheWrite = number("CacheCreationInputTokens")
	if u.Input = number("PromptTokens"); u.Input == 0 {
		u.Input = number("InputTokens") + u.CacheRead + u.CacheWrite
	}
	u.Output = max(number("CompletionTokens"), number("OutputTokens"))
	return u
}

// Codec translates messages of package llms. They have no names, so each is known by its
// place in the list.
func Codec() mirror.Codec[llms.MessageContent] {
	return mirror.Codec[llms.MessageContent]{Decode: decode, Encode: encode, Same: same}
}

// same compares messages. Their parts are values, which package llms does not change.
func same(was, now llms.MessageContent) bool {
	return was.Role == now.Role && slices.EqualFunc(was.Parts, now.Parts, func(a, b llms.ContentPart) bool { return reflect.DeepEqual(a, b) })
}

var roles = map[llms.ChatMessageType]convo.Role{
	llms.ChatMessageTypeSystem: convo.RoleSystem, llms.ChatMessageTypeAI: convo.RoleAssistant,
	llms.ChatMessageTypeTool: convo.RoleTool, llms.ChatMessageTypeFunction: convo.RoleTool,
}

func decode(m llms.MessageContent) ([]convo.Message, error) {
	msg := convo.Message{Role: convo.RoleUser}
	if r, ok := roles[m.Role]; ok {
		msg.Role = r
	}
	for _, p := range m.Parts { // one for one
		switch p := p.(type) {
		case llms.TextContent:
			msg.Parts = append(msg.Parts, convo.Text(p.Text))
		case llms.ImageURLContent:
			msg.Parts = append(msg.Parts, mirror.File("image/*", "", p.URL))
		case llms.BinaryContent:
			msg.Parts = append(msg.Parts, mirror.File(p.MIMEType, base64.StdEncoding.EncodeToString(p.Data), ""))
		case llms.ToolCall:
			c := convo.ToolCall{ID: p.ID}
			if p.FunctionCall != nil {
				c.Name, c.Arguments = p.FunctionCall.Name, p.FunctionCall.Arguments
			}
			msg.Parts = append(msg.Parts, c)
		case llms.ToolCallResponse:
			msg.Parts = append(msg.Parts, convo.ToolResult{CallID: p.ToolCallID, Name: p.Name, Parts: []convo.Part{convo.Text(p.Content)}})
		default:
			data, err := json.Marshal(p)
			if err != nil {
				return nil, err
			}
			msg.Parts = append(msg.Parts, convo.Opaque{Format: "langchaingo", JSON: string(data)})
		}
	}
	return []convo.Message{msg}, nil
}

func encode(msg convo.Message, was *llms.MessageContent) (llms.MessageContent, error) {
	m := llms.MessageContent{Role: llms.ChatMessageTypeHuman}
	for theirs, ours := range roles {
		if ours == msg.Role && theirs != llms.ChatMessageTypeFunction {
			m.Role = theirs
		}
	}
	var old []convo.Part
	if was != nil {
		m.Role = was.Role
		msgs, err := decode(*was)
		if err != nil {
			return m, err
		}
		old = msgs[0].Parts
	}
	for i, k := range mirror.Kept(old, msg.Parts) {
		if k >= 0 {
			m.Parts = append(m.Parts, was.Parts[k])
			continue
		}
		switch p := msg.Parts[i].(type) {
		case convo.Text:
			m.Parts = append(m.Parts, llms.TextContent{Text: string(p)})
		case convo.ToolCall:
			m.Parts = append(m.Parts, llms.ToolCall{ID: p.ID, Type: "function", FunctionCall: &llms.FunctionCall{Name: p.Name, Arguments: p.Arguments}})
		case convo.ToolResult:
			m.Parts = append(m.Parts, llms.ToolCallResponse{ToolCallID: p.CallID, Name: p.Name, Content: p.Text()})
		case convo.Media:
			if p.Data != "" {
				p.URL = "data:" + p.MIME + ";base64," + p.Data
			}
			m.Parts = append(m.Parts, llms.ImageURLContent{URL: p.URL})
		}
	}
	return m, nil
}

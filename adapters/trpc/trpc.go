// Package convotrpc keeps the conversations of agents made with trpc-agent-go inside
// the context window of a model.
//
//	m := convotrpc.New(mirror.New(h, convotrpc.Codec()), model) // the model of an agent
//
// The list of the framework does not change. Store what Decisions of the Mirror returns along
// with it, and call mirror.Resume after a restart.
package convotrpc

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"trpc.group/trpc-go/trpc-agent-go/model"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/mirror"
)

// A Model is a model whose requests stay inside the window of a History. It is for one
// conversation, and each request has the whole list of it, which only grows: the agent's
// own ways to shorten a session have to be off.
//
// The tools are part of the request, and are counted when a provider has reported usage.
// Until then, set Limits.Tools for them.
type Model struct {
	model.Model
	mirror *mirror.Mirror[model.Message]
}

// New returns a Model that calls beneath, and keeps the conversation in the History of m,
// whose limits are those of beneath. m has [Codec], and comes from mirror.New, or from
// mirror.Resume after a restart. What the user types while a run is under way goes to its Add.
func New(m *mirror.Mirror[model.Message], beneath model.Model) *Model { return &Model{beneath, m} }

// GenerateContent implements model.Model.
func (m *Model) GenerateContent(ctx context.Context, req *model.Request) (<-chan *model.Response, error) {
	return mirror.Send(ctx, m.mirror, req.Messages, func(view []model.Message, s *convo.Snapshot) (<-chan *model.Response, error) {
		r := *req
		r.Messages = view
		answers, err := m.Model.GenerateContent(ctx, &r)
		if err != nil {
			return nil, err
		}
		var first *model.Response // an error comes as an answer
		var ok bool
		select {
		case first, ok = <-answers:
		case <-ctx.Done():
			go drain(answers)
			return nil, ctx.Err()
		}
		if ok && first != nil && first.Error != nil && convo.IsOverflow(errors.New(first.Error.Message)) {
			go drain(answers)
			return nil, errors.New(first.Error.Message)
		}
		out := make(chan *model.Response)
		go func() {
			defer close(out)
			defer drain(answers)
			for a := first; ok; a, ok = <-answers {
				if a != nil && a.Usage != nil && !a.IsPartial {
					u := a.Usage
					_ = m.mirror.History().RecordUsage(s, convo.Usage{Input: u.PromptTokens, CacheRead: u.PromptTokensDetails.CachedTokens, Output: u.CompletionTokens}) // figures that cannot be true change nothing
				}
				select {
				case out <- a:
				case <-ctx.Done():
					return
				}
			}
		}()
		return out, nil
	})
}

func drain(answers <-chan *model.Response) {
	for range answers {
	}
}

// Codec translates messages of package model. They have no names, so each is known by its
// place in the list.
func Codec() mirror.Codec[model.Message] {
	return mirror.Codec[model.Message]{Decode: decode, Encode: encode, Same: same}
}

// same compares what decode reads. The framework changes copies of messages only.
func same(was, now model.Message) bool {
	sameCall := func(a, b model.ToolCall) bool {
		return a.ID == b.ID && a.Function.Name == b.Function.Name && bytes.Equal(a.Function.Arguments, b.Function.Arguments)
	}
	return was.Role == now.Role && was.Content == now.Content && was.ReasoningContent == now.ReasoningContent &&
		was.ToolID == now.ToolID && was.ToolName == now.ToolName && slices.EqualFunc(was.ToolCalls, now.ToolCalls, sameCall) &&
		slices.EqualFunc(was.ContentParts, now.ContentParts, func(a, b model.ContentPart) bool { return reflect.DeepEqual(a, b) })
}

func decode(m model.Message) ([]convo.Message, error) {
	msg := convo.Message{Role: convo.Role(m.Role), Parts: contentOf(m)}
	if m.Role == model.RoleTool {
		msg.Parts = []convo.Part{convo.ToolResult{CallID: m.ToolID, Name: m.ToolName, Parts: msg.Parts}}
	}
	if m.ReasoningContent != "" && m.Role == model.RoleAssistant {
		msg.Parts = append([]convo.Part{convo.Reasoning{Text: m.ReasoningContent}}, msg.Parts...)
	}
	for _, c := range m.ToolCalls {
		msg.Parts = append(msg.Parts, convo.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: string(c.Function.Arguments)})
	}
	return []convo.Message{msg}, nil
}

// contentOf returns the text of m, and its ContentParts, one for one.
func contentOf(m model.Message) (parts []convo.Part) {
	if m.Content != "" {
		parts = append(parts, convo.Text(m.Content))
	}
	for _, p := range m.ContentParts {
		parts = append(parts, partOf(p))
	}
	return parts
}

func partOf(p model.ContentPart) convo.Part {
	switch {
	case p.Text != nil:
		return convo.Text(*p.Text)
	case p.Image != nil && len(p.Image.Data) == 0:
		return mirror.File("image/*", "", p.Image.URL)
	case p.Image != nil:
		return convo.NewMedia("image/"+p.Image.Format, p.Image.Data)
	case p.Audio != nil:
		return mirror.File("audio/"+p.Audio.Format, base64.StdEncoding.EncodeToString(p.Audio.Data), "")
	case p.File != nil && len(p.File.Data) > 0:
		return mirror.File(p.File.MimeType, base64.StdEncoding.EncodeToString(p.File.Data), "")
	}
	data, err := json.Marshal(p)
	if err != nil {
		data = []byte("{}")
	}
	return convo.Opaque{Format: "trpc", JSON: string(data)}
}

func encode(msg convo.Message, was *model.Message) (model.Message, error) {
	m := model.Message{Role: model.Role(msg.Role)}
	if was != nil {
		m = *was
	}
	parts, calls, old := m.ContentParts, m.ToolCalls, contentOf(m)
	skip := len(old) - len(parts)
	m.Content, m.ContentParts, m.ToolCalls, m.ReasoningContent = "", nil, nil, msg.Reasoning()
	var now []convo.Part
	for _, p := range msg.Parts {
		switch p := p.(type) {
		case convo.ToolResult:
			m.ToolID, m.ToolName, now = p.CallID, p.Name, p.Parts
		case convo.ToolCall:
			c := model.ToolCall{Type: "function", ID: p.ID}
			if n := len(m.ToolCalls); n < len(calls) { // an edit keeps the calls
				c = calls[n]
			} else {
				c.Function = model.FunctionDefinitionParam{Name: p.Name, Arguments: []byte(p.Arguments)}
			}
			m.ToolCalls = append(m.ToolCalls, c)
		case convo.Reasoning:
		default:
			now = append(now, p)
		}
	}
	for i, k := range mirror.Kept(old, now) {
		if k >= skip && k >= 0 {
			m.ContentParts = append(m.ContentParts, parts[k-skip])
			continue
		}
		switch p := now[i].(type) {
		case convo.Text:
			if i == 0 {
				m.Content = string(p)
				continue
			}
			text := string(p)
			m.ContentParts = append(m.ContentParts, model.ContentPart{Type: model.ContentTypeText, Text: &text})
		case convo.Media:
			if p.Data != "" {
				p.URL = "data:" + p.MIME + ";base64," + p.Data
			}
			m.ContentParts = append(m.ContentParts, model.ContentPart{Type: model.ContentTypeImage, Image: &model.Image{URL: p.URL}})
		}
	}
	return m, nil
}

// Package convoadk keeps the conversations of agents made with google.golang.org/adk inside
// the context window of a model.
//
//	m := convoadk.New(mirror.New(h, convoadk.Codec()), model) // the model of an agent
//
// The session of ADK does not change. Store what Decisions of the Mirror returns along
// with it, and call mirror.Resume after a restart.
package convoadk

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"iter"
	"reflect"
	"slices"

	"google.golang.org/adk/v2/model"
	"google.golang.org/genai"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/mirror"
	"github.com/seed-c1b73e60/convo/wire"
)

// A Model is a model whose requests stay inside the window of a History. It is for one
// branch of one session: give each agent of a session a Model of its own.
//
// The instruction and the tools are part of the request's config, and are counted when a
// provider has reported usage. Until then, set Limits.Tools for them.
type Model struct {
	model.LLM

	// OnFollow is called when the contents do not continue those of the last request, such
	// as where ADK has moved the results of a tool that runs long, and entries were taken
	// back; nil: not called. Set it before the first request.
	OnFollow func(mirror.Followed)

	mirror *mirror.Mirror[*genai.Content]
}

// New returns a Model that calls beneath, and keeps the conversation in the History of m,
// whose limits are those of beneath, and whose roles should be [convo.Relaxed]: an agent may
// answer twice. m has [Codec], and comes from mirror.New, or from mirror.Resume after a
// restart. What the user types while a run is under way goes to its Add.
//
// If the History names no model yet, it gets the name of beneath.
func New(m *mirror.Mirror[*genai.Content], beneath model.LLM) *Model {
	if h := m.History(); h.Snapshot().Model() == "" {
		_ = h.SetModel(beneath.Name(), convo.Limits{}) // the limits stay as they are
	}
	return &Model{LLM: beneath, mirror: m}
}

// GenerateContent implements model.LLM. It follows contents that have changed, as Follow of
// the Mirror does, and calls OnFollow.
func (m *Model) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		done, err := m.mirror.Follow(req.Contents)
		if err != nil {
			yield(nil, err)
			return
		}
		if done.Past != nil && m.OnFollow != nil {
			m.OnFollow(done)
		}
		shown, stopped := false, false
		_, err = mirror.Send(ctx, m.mirror, req.Contents, func(view []*genai.Content, s *convo.Snapshot) (any, error) {
			r := *req
			r.Contents = view
			for answer, err := range m.LLM.GenerateContent(ctx, &r, stream) {
				if err != nil && !shown {
					return nil, err
				}
				shown = true
				m.record(s, answer)
				if stopped = !yield(answer, err); stopped {
					break
				}
			}
			return nil, nil
		})
		if err != nil && !stopped {
			yield(nil, err)
		}
	}
}

func (m *Model) record(s *convo.Snapshot, r *model.LLMResponse) {
	if r != nil && !r.Partial && r.UsageMetadata != nil {
		u := r.UsageMetadata
		_ = m.mirror.History().RecordUsage(s, convo.Usage{ // figures that cannot be true change nothing
			Input: int(u.PromptTokenCount), CacheRead: int(u.CachedContentTokenCount),
			Output: int(u.CandidatesTokenCount + u.ThoughtsTokenCount), Reasoning: int(u.ThoughtsTokenCount),
		})
	}
}

// goOn is what ADK puts behind an answer that ends the contents.
const goOn = "Continue processing previous requests as instructed. Exit or provide a summary if no more outputs are needed."

// Codec translates contents. They have no names, so each is known by its place in the
// list. Signed reasoning that is no longer where it was made is left out for the models
// that are known to refuse it.
func Codec() mirror.Codec[*genai.Content] {
	return mirror.Codec[*genai.Content]{Decode: decode, Encode: encode, Same: same, Seals: wire.SealsByModel.Checks, Once: func(c *genai.Content) bool {
		return len(c.Parts) == 1 && c.Parts[0].Text == goOn
	}}
}

// same compares what decode reads. ADK makes new contents for each request.
func same(was, now *genai.Content) bool {
	return was.Role == now.Role && slices.EqualFunc(was.Parts, now.Parts, samePart)
}

func samePart(a, b *genai.Part) bool {
	if isText(a) && isText(b) {
		return a.Text == b.Text && a.Thought == b.Thought && bytes.Equal(a.ThoughtSignature, b.ThoughtSignature)
	}
	if a == nil || b == nil {
		return a == b
	}
	call, result, nextCall, nextResult := a.FunctionCall, a.FunctionResponse, b.FunctionCall, b.FunctionResponse
	switch {
	case call != nil && nextCall != nil && result == nil && nextResult == nil:
		return call.ID == nextCall.ID && call.Name == nextCall.Name && reflect.DeepEqual(call.Args, nextCall.Args)
	case result != nil && nextResult != nil && call == nil && nextCall == nil && len(result.Parts)+len(nextResult.Parts) == 0:
		return result.ID == nextResult.ID && result.Name == nextResult.Name && reflect.DeepEqual(result.Response, nextResult.Response)
	}
	return reflect.DeepEqual(a, b)
}

// isText reports whether p is a text or a thought.
func isText(p *genai.Part) bool {
	return p != nil && (p.Text != "" || p.Thought) && p.FunctionCall == nil && p.FunctionResponse == nil && p.InlineData == nil && p.FileData == nil &&
		p.ExecutableCode == nil && p.CodeExecutionResult == nil && p.ToolCall == nil && p.ToolResponse == nil
}

func decode(c *genai.Content) (msgs []convo.Message, err error) {
	for _, role := range []convo.Role{convo.RoleTool, roleOf(c)} {
		msg := convo.Message{Role: role}
		for _, p := range partsOf(c, role) {
			part, err := partOf(p)
			if err != nil {
				return nil, err
			}
			msg.Parts = append(msg.Parts, part)
		}
		if len(msg.Parts) > 0 {
			msgs = append(msgs, msg)
		}
	}
	return msgs, nil
}

func roleOf(c *genai.Content) convo.Role {
	if c.Role == genai.RoleModel {
		return convo.RoleAssistant
	}
	return convo.RoleUser
}

// partsOf returns the results in c, or everything else.
func partsOf(c *genai.Content, role convo.Role) (parts []*genai.Part) {
	for _, p := range c.Parts {
		if p != nil && (p.FunctionResponse != nil) == (role == convo.RoleTool) {
			parts = append(parts, p)
		}
	}
	return parts
}

func partOf(p *genai.Part) (convo.Part, error) {
	switch {
	case p.Thought && isText(p):
		return convo.Reasoning{Text: p.Text, Signature: string(p.ThoughtSignature)}, nil
	case p.FunctionCall != nil:
		args, err := json.Marshal(p.FunctionCall.Args)
		if p.FunctionCall.Args == nil {
			args = nil
		}
		return convo.ToolCall{ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Arguments: string(args)}, err
	case p.FunctionResponse != nil:
		r := p.FunctionResponse
		said, err := json.Marshal(r.Response)
		_, failed := r.Response["error"]
		parts := []convo.Part{convo.Text(said)}
		for _, f := range r.Parts {
			switch {
			case f != nil && f.InlineData != nil:
				parts = append(parts, mirror.File(f.InlineData.MIMEType, base64.StdEncoding.EncodeToString(f.InlineData.Data), ""))
			case f != nil && f.FileData != nil:
				parts = append(parts, mirror.File(f.FileData.MIMEType, "", f.FileData.FileURI))
			}
		}
		return convo.ToolResult{CallID: r.ID, Name: r.Name, IsError: failed, Parts: parts}, err
	case p.InlineData != nil:
		return mirror.File(p.InlineData.MIMEType, base64.StdEncoding.EncodeToString(p.InlineData.Data), ""), nil
	case p.FileData != nil:
		return mirror.File(p.FileData.MIMEType, "", p.FileData.FileURI), nil
	case p.Text != "":
		return convo.Text(p.Text), nil
	}
	data, err := json.Marshal(p)
	return convo.Opaque{Format: "gemini", JSON: string(data)}, err
}

func encode(msg convo.Message, was **genai.Content) (*genai.Content, error) {
	c := &genai.Content{Role: genai.RoleUser}
	if msg.Role == convo.RoleAssistant {
		c.Role = genai.RoleModel
	}
	var theirs []*genai.Part
	var old []convo.Part
	if was != nil {
		c.Role, theirs = (*was).Role, partsOf(*was, msg.Role)
		msgs, err := decode(*was)
		if err != nil {
			return nil, err
		}
		for _, m := range msgs {
			if m.Role == msg.Role {
				old = m.Parts
			}
		}
	}
	for i, k := range mirror.Kept(old, msg.Parts) {
		if k >= 0 {
			c.Parts = append(c.Parts, theirs[k])
			continue
		}
		part, err := newPart(msg.Parts[i])
		if err != nil {
			return nil, err
		}
		if at := mirror.Changed(old, msg.Parts, i); at >= 0 {
			same, response := *theirs[at], *theirs[at].FunctionResponse
			response.Response, response.Parts, same.FunctionResponse = part.FunctionResponse.Response, nil, &response
			part = &same
		}
		if part != nil {
			c.Parts = append(c.Parts, part)
		}
	}
	return c, nil
}

func newPart(p convo.Part) (*genai.Part, error) {
	switch p := p.(type) {
	case convo.Text:
		return &genai.Part{Text: string(p)}, nil
	case convo.Media:
		if p.Data == "" {
			return &genai.Part{FileData: &genai.FileData{MIMEType: p.MIME, FileURI: p.URL}}, nil
		}
		data, err := base64.StdEncoding.DecodeString(p.Data)
		return &genai.Part{InlineData: &genai.Blob{MIMEType: p.MIME, Data: data}}, err
	case convo.ToolCall:
		call := &genai.FunctionCall{ID: p.ID, Name: p.Name}
		if p.Arguments == "" {
			p.Arguments = "{}"
		}
		err := json.Unmarshal([]byte(p.Arguments), &call.Args)
		return &genai.Part{FunctionCall: call}, err
	case convo.ToolResult:
		name := "output"
		if p.IsError {
			name = "error"
		}
		return &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: p.CallID, Name: p.Name, Response: map[string]any{name: p.Text()}}}, nil
	}
	return nil, nil // what ADK has not given and a text cannot say
}

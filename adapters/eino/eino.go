// Package convoeino keeps the conversations of agents made with github.com/cloudwego/eino inside
// the context window of a model.
//
//	w := convoeino.New(mirror.New(h, convoeino.Codec()))
//	config := &adk.ChatModelAgentConfig{Handlers: []adk.ChatModelAgentMiddleware{w}}
//
// The list of the framework does not change. Store what Decisions of the Mirror returns along
// with it, and call mirror.Resume after a restart.
package convoeino

import (
	"context"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/mirror"
)

// A Window keeps the requests of a ChatModelAgent inside the window of a History: it goes
// into Handlers of its config. The agent's own messages stay as they are; each call of the
// model gets the view. The conversation has one run at a time. What the user types while it
// is under way goes to Add of the Mirror.
//
// The tools are options of the model, and are counted when a provider has reported usage.
// Until then, set Limits.Tools for them.
type Window struct {
	*adk.BaseChatModelAgentMiddleware
	mirror *mirror.Mirror[*schema.Message]
}

// New returns a Window for the History of m, whose limits are those of the model. m has
// [Codec], and comes from mirror.New, or from mirror.Resume after a restart.
func New(m *mirror.Mirror[*schema.Message]) *Window {
	return &Window{&adk.BaseChatModelAgentMiddleware{}, m}
}

// WrapModel implements adk.ChatModelAgentMiddleware.
func (w *Window) WrapModel(_ context.Context, m model.BaseChatModel, _ *adk.ModelContext) (model.BaseChatModel, error) {
	return &wrapped{m, w}, nil
}

type wrapped struct {
	model.BaseChatModel
	w *Window
}

func (m *wrapped) Generate(ctx context.Context, list []*schema.Message, o ...model.Option) (*schema.Message, error) {
	return mirror.Send(ctx, m.w.mirror, list, func(view []*schema.Message, s *convo.Snapshot) (*schema.Message, error) {
		answer, err := m.BaseChatModel.Generate(ctx, view, o...)
		m.w.record(s, answer)
		return answer, err
	})
}

func (m *wrapped) Stream(ctx context.Context, list []*schema.Message, o ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	return mirror.Send(ctx, m.w.mirror, list, func(view []*schema.Message, s *convo.Snapshot) (*schema.StreamReader[*schema.Message], error) {
		answer, err := m.BaseChatModel.Stream(ctx, view, o...)
		if err != nil {
			return nil, err
		}
		return schema.StreamReaderWithConvert(answer, func(chunk *schema.Message) (*schema.Message, error) {
			m.w.record(s, chunk)
			return chunk, nil
		}), nil
	})
}

func (w *Window) record(s *convo.Snapshot, m *schema.Message) {
	if m != nil && m.ResponseMeta != nil && m.ResponseMeta.Usage != nil {
		u := m.ResponseMeta.Usage
		_ = w.mirror.History().RecordUsage(s, convo.Usage{ // figures that cannot be true change nothing
			Input: u.PromptTokens, CacheRead: u.PromptTokenDetails.CachedTokens,
			Output: u.CompletionTokens, Reasoning: u.CompletionTokensDetails.ReasoningTokens,
		})
	}
}

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
// model gets the view. The conversation has one run at a time.
type Window struct {
	*adk.BaseChatModelAgentMiddleware
	h      *convo.History
	mirror *mirror.Mirror[*schema.Message]
}

// New returns a Window for h, whose limits are those of the model. Messages are known by
// their message ID, see adk.GetMessageID; those of the system may get a new one each run.
func New(h *convo.History) *Window {
	return &Window{&adk.BaseChatModelAgentMiddleware{}, h, mirror.New(h, Codec())}
}

// Add appends messages while a run is under way; see [mirror.Mirror.Add].
func (w *Window) Add(msgs ...*schema.Message) error { return w.mirror.Add(msgs...) }

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
		_ = w.h.RecordUsage(s, convo.Usage{ // figures that cannot be true change nothing
			Input: u.PromptTokens, CacheRead: u.PromptTokenDetails.CachedTokens,
			Output: u.CompletionTokens, Reasoning: u.CompletionTokensDetails.ReasoningTokens,
		})
	}
}

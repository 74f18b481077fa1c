package convogenkit

import (
	"context"

	"github.com/firebase/genkit/go/ai"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/mirror"
)

// A Window keeps the requests of one conversation inside the window of a History. The
// messages of genkit stay as they are; each call of the model gets the view.
type Window struct {
	h      *convo.History
	mirror *mirror.Mirror[*ai.Message]
}

// New returns a Window for h, whose limits are those of the model. Messages are known by
// their place in the list, which grows within a Generate, and by History of its response
// into the next one.
func New(h *convo.History) *Window { return &Window{h, mirror.New(h, Codec())} }

// Add appends messages while a run is under way; see [mirror.Mirror.Add].
func (w *Window) Add(msgs ...*ai.Message) error { return w.mirror.Add(msgs...) }

// Middleware is for ai.WithUse.
func (w *Window) Middleware() ai.MiddlewareFunc {
	return func(context.Context) (*ai.Hooks, error) { return &ai.Hooks{WrapModel: w.call}, nil }
}

func (w *Window) call(ctx context.Context, p *ai.ModelParams, next ai.ModelNext) (*ai.ModelResponse, error) {
	return mirror.Send(ctx, w.mirror, p.Request.Messages, func(view []*ai.Message, s *convo.Snapshot) (*ai.ModelResponse, error) {
		params, req := *p, *p.Request
		params.Request, req.Messages = &req, view
		r, err := next(ctx, &params)
		if err == nil && r != nil && r.Usage != nil {
			u := r.Usage
			_ = w.h.RecordUsage(s, convo.Usage{ // figures that cannot be true change nothing
				Input: u.InputTokens, CacheRead: min(u.CachedContentTokens, u.InputTokens),
				Output: u.OutputTokens + u.ThoughtsTokens, Reasoning: u.ThoughtsTokens,
			})
		}
		if r != nil && r.Request == &req {
			r.Request = p.Request // History of the response goes on from the whole list
		}
		return r, err
	})
}

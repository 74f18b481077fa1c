// Package convogenkit keeps the conversations of programs made with github.com/firebase/genkit/go inside
// the context window of a model.
//
//	w := convogenkit.New(mirror.New(h, convogenkit.Codec()))
//	resp, err := genkit.Generate(ctx, g, ai.WithUse(w.Middleware()))
//
// The list of the framework does not change. Store what Decisions of the Mirror returns along
// with it, and call mirror.Resume after a restart.
package convogenkit

import (
	"context"

	"github.com/firebase/genkit/go/ai"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/mirror"
)

// A Window keeps the requests of one conversation inside the window of a History. The
// messages of genkit stay as they are; each call of the model gets the view.
// Signatures of reasoning that have been JSON are given to the model as genkit has made them.
//
// The tools are part of the request, and are counted when a provider has reported usage.
// Until then, set Limits.Tools for them.
type Window struct {
	mirror *mirror.Mirror[*ai.Message]
}

// New returns a Window for the History of m, whose limits are those of the model. m has
// [Codec], and comes from mirror.New, or from mirror.Resume after a restart. What the user
// types while a run is under way goes to its Add.
func New(m *mirror.Mirror[*ai.Message]) *Window { return &Window{m} }

// Middleware is for ai.WithUse.
func (w *Window) Middleware() ai.MiddlewareFunc {
	return func(context.Context) (*ai.Hooks, error) { return &ai.Hooks{WrapModel: w.call}, nil }
}

func (w *Window) call(ctx context.Context, p *ai.ModelParams, next ai.ModelNext) (*ai.ModelResponse, error) {
	return mirror.Send(ctx, w.mirror, p.Request.Messages, func(view []*ai.Message, s *convo.Snapshot) (*ai.ModelResponse, error) {
		for i, m := range view {
			view[i] = signed(m)
		}
		params, req := *p, *p.Request
		params.Request, req.Messages = &req, view
		r, err := next(ctx, &params)
		if err == nil && r != nil && r.Usage != nil {
			u := r.Usage
			_ = w.mirror.History().RecordUsage(s, convo.Usage{ // figures that cannot be true change nothing
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

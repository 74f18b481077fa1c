package convofantasy

import (
	"context"
	"strings"

	"charm.land/fantasy"

	"github.com/seed-c1b73e60/convo"
)

// Summarizer returns a summarizer that asks a model of fantasy, such as for Summarize.With. A
// request holds the prompt alone, without tools. Its output limit is the provider's default,
// or twice SummaryRequest.MaxTokens if that is more than 4,096, a common default.
func Summarizer(m fantasy.LanguageModel) convo.Summarizer {
	if w, ok := m.(*model); ok {
		m = w.LanguageModel // a call of w is a request of the conversation
	}
	return convo.SummarizerFunc(func(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		call := fantasy.Call{Prompt: fantasy.Prompt{fantasy.NewUserMessage(req.Prompt)}}
		if most := 2 * int64(req.MaxTokens); most > 4096 {
			call.MaxOutputTokens = &most
		}
		s := convo.Summary{Model: m.Model()}
		r, err := m.Generate(ctx, call)
		if err != nil {
			return s, err
		}
		var text strings.Builder
		for _, c := range r.Content {
			if t, ok := fantasy.AsContentType[fantasy.TextContent](c); ok {
				text.WriteString(t.Text)
			}
		}
		s.Text, s.Usage = text.String(), Usage(m.Provider(), r.Usage)
		switch r.FinishReason {
		case fantasy.FinishReasonLength:
			s.Stop = convo.StopLength
		case fantasy.FinishReasonToolCalls:
			s.Stop = convo.StopToolCall
		case fantasy.FinishReasonContentFilter, fantasy.FinishReasonError:
			s.Stop = convo.StopRefused
		}
		return s, nil
	})
}

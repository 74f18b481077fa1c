package convotest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

// An ownSummarize is convo.Summarize written anew, on the exported API alone. It
// makes one call, without a bound in time.
type ownSummarize struct {
	with                  convo.Summarizer
	keepTokens, maxTokens int
}

func (ownSummarize) Name() string { return "summarize" }

func (z ownSummarize) Compact(ctx context.Context, s *convo.Snapshot, g convo.Goal) (e convo.Edit, err error) {
	e.Effort = new(convo.Effort)
	if g.NoModel != nil {
		return e, g.NoModel
	}
	count := g.Count
	if count == nil {
		count = func(text string) int { return s.SummaryTokens(text) - s.SummaryTokens("") }
	}
	total, target := s.Tokens(), max(g.Target, 0)
	if g.Reason == convo.ReasonTrigger && g.Target <= 0 {
		target = cmp.Or(g.Low, total/2)
	}
	maxTokens := z.maxTokens
	if maxTokens <= 0 {
		maxTokens = max(cmp.Or(g.Low, target)/8, 500)
	}
	maxTokens = min(maxTokens, max(target/2, 500))
	if total <= target {
		return e, convo.ErrNoGain
	}
	old, _ := s.Summary()
	frame, free := s.SummaryTokens(""), min(max(g.MinFree, 1), total+1)

	// Truncate cuts in the right place if the target leaves room for the summary.
	kept := total // in any case
	for x := range s.Exchanges() {
		if !x.Floor {
			kept -= x.Tokens
		}
	}
	goal := convo.Goal{Target: max(min(target, total-free)+old.Tokens-maxTokens-frame, 0)}
	switch {
	case z.keepTokens > 0:
		goal.Target = min(goal.Target, kept+z.keepTokens)
	case z.keepTokens < 0:
		goal.Target = 0
	}
	cut, err := convo.Truncate{}.Compact(ctx, s, goal)
	if err != nil {
		return e, err
	}
	without, err := s.With(cut)
	if err != nil {
		return e, err
	}
	room := total - without.Tokens() + old.Tokens - frame - free
	if room < min(maxTokens, 64) {
		return e, convo.ErrNoGain
	}

	req := convo.SummaryRequest{Previous: old.Text, Focus: g.Focus, MaxTokens: min(maxTokens, room), Count: count}
	for _, id := range cut.Drop {
		entry, _ := s.Find(id)
		if g.Original != nil {
			if before, ok := g.Original(ctx, id); ok {
				entry = before
			}
		}
		req.Messages = append(req.Messages, entry.Message)
		e.Effort.Unread += entry.Missing
	}
	for _, id := range s.Pinned() {
		entry, _ := s.Find(id)
		req.Pinned = append(req.Pinned, entry.Message)
	}
	if err := context.Cause(ctx); err != nil {
		return e, err
	}
	e.Effort.Calls++
	sum, err := z.with.Summarize(ctx, req)
	e.Effort.Usage = sum.Usage
	sum.Text = strings.TrimSpace(strings.ToValidUTF8(sum.Text, "\uFFFD"))
	switch {
	case err != nil:
		return e, fmt.Errorf("summarizer: %w", err)
	case sum.Stop != convo.StopDone, sum.Text == "", count(sum.Text) > req.MaxTokens:
		return e, errors.New("the summary cannot be used")
	}
	e.Drop, e.Summary = cut.Drop, &convo.Summary{Text: sum.Text, Usage: sum.Usage, Model: sum.Model}
	return e, nil
}

func TestStrategy_OwnSummarize(t *testing.T) {
	convotest.TestStrategy(t, ownSummarize{with: convotest.Echo{}})
	convotest.TestStrategy(t, ownSummarize{with: convotest.Echo{}, keepTokens: 50, maxTokens: 100})
}

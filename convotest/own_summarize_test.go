package convotest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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

// A strategy on the exported API can do all that Summarize does: nothing tells
// them apart, whatever the summarizer returns.
func TestOwnSummarize_BehavesAsSummarize(t *testing.T) {
	outcomes := map[convo.Outcome]int{}
	for seed := range uint64(200) {
		var did [2]string
		for i := range did {
			did[i] = ownConversation(t, seed, i == 0, outcomes)
		}
		require.Equal(t, did[0], did[1], "seed %d", seed)
	}
	for _, o := range []convo.Outcome{convo.OutcomeApplied, convo.OutcomeDeclined, convo.OutcomeFailed} {
		require.Greater(t, outcomes[o], 50, "%v in %v", o, outcomes)
	}
}

// ownConversation holds a random conversation, and returns what was asked of the
// summarizer and what compactions did. It counts their outcomes.
func ownConversation(t *testing.T, seed uint64, own bool, outcomes map[convo.Outcome]int) string {
	var did strings.Builder
	calls := 0
	with := convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		calls++
		fmt.Fprintf(&did, "asked to summarise %v, pinned %v, previous %q, in %d, focus %q\n", req.Messages, req.Pinned, req.Previous, req.MaxTokens, req.Focus)
		switch (calls + int(seed)) % 9 {
		case 0:
			return convo.Summary{}, errors.New("down")
		case 1:
			return convo.Summary{Usage: convo.Usage{Input: 5}}, fmt.Errorf("a History inside: %w", convo.ErrNoGain)
		case 2:
			return convo.Summary{}, fmt.Errorf("a History inside: %w", convo.ErrBreaker)
		case 3:
			panic("boom")
		case 4:
			return convo.Summary{Text: "cut", Stop: convo.StopLength}, nil
		}
		return convo.Summary{Text: strings.Repeat("so ", min(20+calls, req.MaxTokens/2)), Usage: convo.Usage{Input: 10, Output: 3}, Model: "m"}, nil
	})
	keep, most := []int{0, 200, -1}[seed%3], []int{0, 150}[seed%2]
	var c convo.CompactionStrategy = convo.Summarize{With: with, KeepTokens: keep, MaxTokens: most, Window: -1}
	if own {
		c = ownSummarize{with: with, keepTokens: keep, maxTokens: most}
	}
	if seed%4 >= 2 {
		c = convo.Chain(convo.ClearToolResults{KeepLast: 1}, c, convo.Truncate{})
	}
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 2000, High: 1000}, Strategy: c, Roles: convo.Relaxed()})
	require.NoError(t, err)

	rnd := rand.New(rand.NewPCG(seed, 13))
	text := func(most int) string { return strings.Repeat("hello there ", rnd.IntN(most)+1) }
	call := convo.ToolCall{ID: "c", Name: "f", Arguments: "{}"}
	sealed := convo.Reasoning{Text: "hm", Signature: "s"}
	for range 80 {
		var r convo.Report
		var err error
		switch rnd.IntN(8) {
		case 0, 1:
			_, err = h.Append(convo.User(text(40)))
		case 2, 3:
			_, err = h.Append(convo.Assistant(text(40)))
		case 4:
			_, err = h.Append(convo.User("q"), convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{sealed, call}}, convo.Result(call, text(100)), convo.Assistant("a"))
		case 5:
			if err = h.SetEphemeral(convo.User(text(10))); rnd.IntN(6) == 0 && h.Len() > 0 {
				err = h.PinLast()
			}
		case 6:
			_, r, err = h.Prepare(t.Context())
		case 7:
			if rnd.IntN(2) == 0 {
				r, err = h.Compact(t.Context(), []string{"", "river"}[rnd.IntN(2)])
			} else {
				h.CompactInBackground(t.Context())
				r, err = h.Wait(t.Context())
			}
		}
		outcomes[r.Outcome]++
		fmt.Fprintf(&did, "%v (%v): %v, fits %v, error %v, no gain %v, breaker %v; %d to %d tokens, dropped %v, summarised %v, cleared %v; %d calls, %v, %q, %d unread\n",
			r.Outcome, r.Reason, r.Strategy, r.Fits, err != nil, errors.Is(r.Cause, convo.ErrNoGain), errors.Is(r.Cause, convo.ErrBreaker),
			r.TokensBefore, r.TokensAfter, r.Dropped, r.Summarised, r.Cleared, r.Calls, r.Usage, r.Model, r.Unread)
		for _, l := range r.Links {
			fmt.Fprintf(&did, "  %s %v, %d calls\n", l.Strategy, l.Outcome, l.Calls)
		}
	}
	return did.String()
}

package keep

import (
	"context"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// The policies of others, rebuilt on the same exam. They start where convo does, at
// Limits.High. Sizes that are meant for windows of 128k and more are at most a share of a
// smaller window. None of these policies tries again after a failure.

// trimmed drops the oldest exchanges until the request fits, as LangChain's trim_messages
// does with the strategy "last".
func trimmed() convo.CompactionStrategy {
	return convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		return convo.Edit{Drop: oldest(s, g.Limit)}, nil
	}).Named("trim by tokens")
}

// oldest returns the oldest exchanges to drop so that at most target tokens stay.
func oldest(s *convo.Snapshot, target int) (drop []convo.ID) {
	left := s.Tokens()
	for x := range s.Exchanges() {
		if left > target && !x.Floor {
			drop = append(drop, x.IDs()...)
			left -= x.Tokens
		}
	}
	return drop
}

// cleared clears all results but the newest three, as Anthropic's context editing does with
// clear_tool_uses_20250919, and drops the oldest exchanges where that is not enough.
func cleared() convo.CompactionStrategy {
	return convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		return pruned(s, g, 3, 0), nil
	}).Named("all but 3 results")
}

// pruned clears the results before the newest ones: keep of them, or as many as have the
// given tokens. If that does not reach the limit, it drops the oldest exchanges instead.
func pruned(s *convo.Snapshot, g convo.Goal, keep, tokens int) (e convo.Edit) {
	var results []convo.Entry
	for x := range s.Exchanges() {
		for _, id := range x.IDs() {
			if entry, _ := s.Find(id); entry.Message.Role == convo.RoleTool && !x.Floor {
				results = append(results, entry)
			}
		}
	}
	left := s.Tokens()
	for i, seen := len(results)-1, 0; i >= 0; i-- {
		if seen += results[i].Tokens; len(results)-i <= keep || seen <= tokens || results[i].Message.ToolResults()[0].Cleared {
			continue
		}
		e.Clear = append(e.Clear, convo.Clear{ID: results[i].ID})
		left -= max(results[i].Tokens-20, 0)
	}
	if left > g.Limit {
		e.Clear, e.Drop = nil, oldest(s, g.Limit-max(s.Tokens()-left, 0)/2)
	}
	return e
}

// summarised replaces by a summary what drop names.
func summarised(name string, with convo.SummarizerFunc, drop func(*convo.Snapshot, convo.Goal) []convo.ID) convo.CompactionStrategy {
	return convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		ids := drop(s, g)
		if len(ids) == 0 {
			return convo.Edit{}, convo.ErrNoGain
		}
		previous, _ := s.Summary()
		req := convo.SummaryRequest{Previous: previous.Text, MaxTokens: min(g.Window/16, 12_000), Count: s.SummaryTokens}
		for _, id := range ids {
			e, _ := s.Find(id)
			req.Messages = append(req.Messages, e.Message)
		}
		sum, err := with(ctx, req)
		if err != nil {
			return convo.Edit{Drop: ids}, nil
		}
		return convo.Edit{Drop: ids, Summary: &sum}, nil
	}).Named(name)
}

// tailOf returns what to drop so that the system prompt, the first exchange and the newest
// messages stay. tail says how many tokens these have with a window.
func tailOf(tail func(window int) int) func(*convo.Snapshot, convo.Goal) []convo.ID {
	return func(s *convo.Snapshot, g convo.Goal) []convo.ID {
		var first []convo.ID
		left := 0
		for x := range s.Exchanges() {
			if e, _ := s.Find(x.First); len(first) < 2 && !x.Floor && e.Message.Role != convo.RoleSystem {
				first = append(first, x.First)
			}
			left += x.Tokens
		}
		var drop []convo.ID
		for x := range s.Exchanges() {
			e, _ := s.Find(x.First)
			if left > tail(g.Window) && !x.Floor && e.Message.Role != convo.RoleSystem && (!slices.Contains(first, x.First) || x.Tokens > g.Low/4) {
				drop = append(drop, x.IDs()...)
			}
			left -= x.Tokens
		}
		return drop
	}
}

// newestFifth is the tail of hermes-agent in its legacy mode: target_ratio 0.2 of the
// threshold, which is three quarters of a window below 512k.
func newestFifth(window int) int { return window * 3 / 4 / 5 }

// lean is the tail of hermes-agent in its lean mode: 2.5 % of the window, from 10,000 to
// 25,000 tokens, and at most 20 % of the window.
func lean(window int) int { return min(max(window/40, 10_000), 25_000, window/5) }

// recentTokens is the tail of pi: keepRecentTokens, here at most a third of the window.
func recentTokens(window int) int { return min(20_000, window/3) }

// withAnchors returns a summarizer that adds to a model's summary what hermes-agent's lean
// mode adds by code: the newest user messages word for word, and the identifiers in the
// messages. Each has a third of the room.
func withAnchors(model convo.SummarizerFunc) convo.SummarizerFunc {
	const users, names = "\n## User messages\n", "\n## Anchors\n"
	return func(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		before, oldNames, _ := strings.Cut(req.Previous, names)
		before, oldUsers, _ := strings.Cut(before, users)
		var said, found []string
		for _, m := range req.Messages {
			if m.Role == convo.RoleUser {
				said = append(said, m.Text())
			}
			for _, at := range identifiers(key(m)) {
				found = append(found, at.word)
			}
		}
		third := req
		third.Previous, third.MaxTokens = before, req.MaxTokens/3
		sum, err := model(ctx, third)
		if err != nil {
			return sum, err
		}
		sum.Text += users + newestThat(append(strings.Split(oldUsers, "\n"), said...), "\n", third) +
			names + newestThat(append(strings.Fields(oldNames), found...), " ", third)
		return sum, nil
	}
}

// newestThat returns the newest of some texts that fit into a summary, each once.
func newestThat(texts []string, between string, req convo.SummaryRequest) string {
	seen := map[string]bool{}
	var kept []string
	size := 0
	for _, text := range slices.Backward(texts) {
		text = strings.ReplaceAll(text, "\n", " ")
		if text == "" || seen[text] {
			continue
		}
		seen[text] = true
		if size += req.Count(text + between); size > req.MaxTokens {
			break
		}
		kept = append(kept, text)
	}
	slices.Reverse(kept)
	return strings.Join(kept, between)
}

// usersOnly returns what Codex drops: all but the newest user messages of 20,000 tokens,
// here of at most a sixth of the window.
func usersOnly(s *convo.Snapshot, g convo.Goal) (drop []convo.ID) {
	all := slices.Collect(s.Exchanges())
	left := min(20_000, g.Window/6)
	for _, x := range slices.Backward(all) {
		e, _ := s.Find(x.First)
		if e.Message.Role == convo.RoleUser {
			if left -= x.Tokens; left >= 0 {
				continue
			}
		}
		if !x.Floor && e.Message.Role != convo.RoleSystem {
			drop = append(drop, x.IDs()...)
		}
	}
	slices.Reverse(drop)
	return drop
}

// onePrune clears the results before the newest ones of 40,000 tokens if that frees 20,000,
// and otherwise replaces everything by a summary, as opencode does. In a small window these
// are a fifth and a tenth of it.
func onePrune(with convo.SummarizerFunc) convo.CompactionStrategy {
	all := summarised("", with, func(s *convo.Snapshot, _ convo.Goal) []convo.ID { return oldest(s, 0) })
	return convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		e := pruned(s, g, 0, min(40_000, g.Window/5))
		frees := 0
		for _, c := range e.Clear {
			entry, _ := s.Find(c.ID)
			frees += entry.Tokens
		}
		if len(e.Drop) == 0 && frees >= min(20_000, g.Window/10) {
			return e, nil
		}
		return all.Compact(ctx, s, g)
	}).Named("one prune, then a summary of all")
}

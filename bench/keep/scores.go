package keep

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/internal/measure"
)

// A Policy is a strategy on the exam, with the source that it is rebuilt from.
type Policy struct {
	Name     string
	Source   string // empty: of convo
	Strategy func() convo.CompactionStrategy
}

// Policies returns all policies of the exam.
func Policies() []Policy {
	ladder := func(s convo.Summarizer) func() convo.CompactionStrategy {
		return func() convo.CompactionStrategy {
			return convo.Chain(convo.ClearMedia{}, convo.ClearToolResults{}, convo.Summarize{With: s}, convo.Truncate{})
		}
	}
	tail := func(name string, tail func(int) int, with convo.SummarizerFunc) func() convo.CompactionStrategy {
		return func() convo.CompactionStrategy { return summarised(name, with, tailOf(tail)) }
	}
	extract := convo.Extract{}.Summarize
	return []Policy{
		{"convo, default", "", func() convo.CompactionStrategy { return nil }},
		{"convo, a model", "", ladder(convo.SummarizerFunc(Mediocre))},
		{"convo, a model that fails", "", func() convo.CompactionStrategy { return ladder(Failing())() }},
		{"convo, no summary", "", func() convo.CompactionStrategy {
			return convo.Chain(convo.ClearMedia{}, convo.ClearToolResults{}, convo.Truncate{})
		}},
		{"newest 40 messages", "the window memories of LangChain and langchaingo: the newest messages, as many as are set", func() convo.CompactionStrategy {
			return convo.Chain(convo.SlidingWindow{KeepLast: 40, TriggerAt: 80}, trimmed())
		}},
		{"trim by tokens", `LangChain, trim_messages with strategy "last"`, trimmed},
		{"all but 3 results", "Anthropic's context editing, clear_tool_uses_20250919: older results are cleared, nothing else", cleared},
		{"newest fifth, a model", "hermes-agent, tail_mode legacy: the first exchange, a summary, and a fifth of its threshold", tail("newest fifth", newestFifth, Mediocre)},
		{"newest fifth, Extract", "hermes-agent, tail_mode legacy, with Extract of convo as its summarizer", tail("newest fifth", newestFifth, extract)},
		{"lean tail, a model", "hermes-agent, tail_mode lean: 10,000 to 25,000 tokens, and a summary with identifiers and user messages that code adds", tail("lean tail", lean, withAnchors(Mediocre))},
		{"newest 20,000, a model", "pi, keepRecentTokens: the newest 20,000 tokens, at most a third of the window here", tail("newest 20,000", recentTokens, Mediocre)},
		{"newest 20,000, Extract", "pi, keepRecentTokens, with Extract of convo as its summarizer", tail("newest 20,000", recentTokens, extract)},
		{"user messages, a model", "Codex: the newest user messages of 20,000 tokens, at most a sixth of the window here, and a summary of all", func() convo.CompactionStrategy {
			return summarised("user messages", Mediocre, usersOnly)
		}},
		{"one prune, a model", "opencode: older results are pruned if that frees enough, otherwise all becomes a summary", func() convo.CompactionStrategy { return onePrune(Mediocre) }},
	}
}

// A Result is the score of a policy with a window.
type Result struct {
	Kind   string // of conversations
	Policy string
	Window int
	Score
}

// Exam has each policy sit the exam with each window. talks returns the conversations for
// a window.
func Exam(kind string, windows []int, talks func(window int) []Talk) (all []Result, err error) {
	for _, window := range windows {
		ts := talks(window)
		for _, p := range Policies() {
			r := Result{Kind: kind, Policy: p.Name, Window: window}
			for _, t := range ts {
				if err := r.Sit(t, window, p.Strategy()); err != nil {
					return nil, fmt.Errorf("%s, window of %d: %w", p.Name, window, err)
				}
			}
			all = append(all, r)
		}
	}
	return all, nil
}

// Generated returns n talks for a window, each with six times its tokens.
func Generated(n int) func(window int) []Talk {
	return func(window int) (talks []Talk) {
		for seed := range n {
			talks = append(talks, NewTalk(uint64(seed), 6*window*4))
		}
		return talks
	}
}

// Agents returns the talks of coding agents that make one, two and three calls a step.
func Agents(steps int) func(window int) []Talk {
	return func(window int) (talks []Talk) {
		for calls := 1; calls <= 3; calls++ {
			talks = append(talks, Agent{Steps: steps, Calls: calls, Users: 30, Window: window, Seed: 1}.Talk())
		}
		return talks
	}
}

// writeScores writes the table.
func writeScores(w io.Writer, all []Result) error {
	header := []string{"window", "policy", "needles", "kept", "view", "summary", "recall 1", "5", "10", "view after", "too large", "input", "cost"}
	var rows [][]string
	for _, r := range all {
		rows = append(rows, []string{
			fmt.Sprintf("%dk", r.Window/1000), r.Policy, fmt.Sprint(r.Needles), percent(r.Kept()), percent(share(r.View, r.Needles)), percent(share(r.Summary, r.Needles)),
			percent(r.Recalled(0)), percent(r.Recalled(1)), percent(r.Recalled(2)),
			fmt.Sprintf("%.1fk", r.Retained()/1000), fmt.Sprint(r.Over), fmt.Sprintf("%.1f M", float64(r.Input)/1e6), fmt.Sprintf("%.2f M", r.Units/1e6),
		})
	}
	fmt.Fprintf(w, "### Needles in %s\n\n", all[0].Kind)
	if err := measure.Table(w, header, rows); err != nil {
		return err
	}
	for _, window := range windowsOf(all) {
		if _, err := fmt.Fprintf(w, "On the front with %dk, for view and summary over the size of the view: %s.\n\n", window/1000, strings.Join(Front(all, window), "; ")); err != nil {
			return err
		}
	}
	return nil
}

// writeNotes writes what the columns mean, and what the policies of others are rebuilt
// after.
func writeNotes(w io.Writer) error {
	notes := []string{
		"kept: in the view or in the summary. A needle in both counts for the view.",
		"recall: of what is not kept, how much stands in the first 1, 5 and 10 hits of package recall.",
		"view after: tokens of a view after a compaction, on average. too large: requests that do not fit, and are not sent.",
		"input, cost: tokens of all requests, and their price in uncached tokens, where a read from the cache costs 0.1 and a write 1.25. What summarizers are sent is not part of it.",
		"All policies start a compaction at the same size. A model writes what Mediocre writes.",
	}
	for _, p := range Policies() {
		if p.Source != "" {
			notes = append(notes, p.Name+": rebuilt after "+p.Source+".")
		}
	}
	for _, note := range notes {
		if _, err := fmt.Fprintf(w, "- %s\n", note); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}

// windowsOf returns the windows of results, in their order.
func windowsOf(all []Result) (windows []int) {
	for _, r := range all {
		if !slices.Contains(windows, r.Window) {
			windows = append(windows, r.Window)
		}
	}
	return windows
}

// Front returns the policies that no other one beats with a window: none keeps at least as
// much in view and summary at no more tokens retained.
func Front(all []Result, window int) (front []string) {
	for _, r := range all {
		beaten := slices.ContainsFunc(all, func(o Result) bool {
			return r.Window == window && o.Window == window && o.Kept() >= r.Kept() && o.Retained() <= r.Retained() && (o.Kept() > r.Kept() || o.Retained() < r.Retained())
		})
		if r.Window == window && !beaten {
			front = append(front, r.Policy)
		}
	}
	return front
}

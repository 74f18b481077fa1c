package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/cli"
)

// A compacted is what compact -json writes for each conversation, in one line.
type compacted struct {
	At         string          `json:"at"`
	Format     string          `json:"format"`
	Outcome    string          `json:"outcome"`
	Report     string          `json:"report"`
	Before     int             `json:"tokens_before"`
	After      int             `json:"tokens_after"`
	Dropped    int             `json:"dropped"`
	Summarised int             `json:"summarised"`
	Cleared    int             `json:"cleared"`
	Shortened  int             `json:"shortened"`
	Rewritten  int             `json:"rewritten"`
	Lost       []loss          `json:"lost"`
	Request    json.RawMessage `json:"request"`
}

// strategies are the values of -strategy. Nil: the default of convo.
var strategies = map[string]convo.CompactionStrategy{
	"ladder":    nil,
	"clear":     convo.Chain(convo.ClearMedia{}, convo.ClearToolResults{}),
	"summarize": convo.Summarize{With: convo.Extract{}},
	"truncate":  convo.Truncate{},
}

func compact(ctx context.Context, env *cli.Env, args []string) int {
	flags := cli.NewFlags("compact", "[FILE...]", `Writes a conversation with less in it, as a request that the provider takes, one a line, and a report on the standard error. No model is called: summaries are extracts.

The parameters of the request stay as they are. Without -target, it is brought down to half of what the window leaves, or to half of its size if no window is known. Sizes are upper bounds, some percent above the estimates of "convo show". The exit code is 1 if a request does not fit into the window or misses the target.`)
	flags.More = `Examples:
  convo compact -window 128000 request.json > smaller.json
  convo compact -target 20000 -to anthropic session.jsonl > request.json`
	var o reader
	o.addFlags(flags, "format", readable())
	to := flags.String("to", "", "the `FORMAT` to write; that of the input if absent")
	window := flags.Int("window", 0, "the context window of the model, in `TOKENS`; the recorded one if absent")
	reserve := flags.Int("reserve", 0, "the `TOKENS` of the window to keep free for the answer; an eighth, at most 16,000, if absent")
	target := flags.Int("target", 0, "how many `TOKENS` the result is to have at most")
	strategy := flags.String("strategy", "ladder", "what to remove: `NAME` is clear (media and old tool results), summarize (old messages, an extract takes their place), truncate (old messages), or ladder (each of these in turn, until it is enough)")
	flags.StringVar(&o.model, "model", "", "the `MODEL` that gets the request; the recorded one if absent")
	asJSON := flags.Bool("json", false, "write an object with the request, the figures of the report and what was lost")
	names, code, ok := flags.Parse(env, args)
	if !ok {
		return code
	}
	if err := o.check(); err != nil {
		return flags.Misused(env, "%w", err)
	}
	chosen, known := strategies[*strategy]
	switch {
	case !known:
		return flags.Misused(env, "there is no strategy %q; want ladder, clear, summarize or truncate", *strategy)
	case *window < 0, *reserve < 0, *target < 0:
		return flags.Misused(env, "-window, -reserve and -target want a number of tokens")
	case *window > 0 && *reserve >= *window:
		return flags.Misused(env, "-reserve %d leaves nothing of a window of %d", *reserve, *window)
	case *reserve > 0 && *window == 0:
		return flags.Misused(env, "-reserve needs -window")
	}
	if *to != "" {
		if _, err := newFormat(*to, ""); err != nil {
			return flags.Misused(env, "%w", err)
		}
	}
	worst := cli.OK
	for c, err := range o.read(ctx, env, names) {
		if err != nil {
			worst = max(worst, fail(env, "compact", err))
			continue
		}
		worst = max(worst, c.tell(env))
		c.tellUnseen(env)
		if *window > 0 {
			c.window = *window
		}
		k := compaction{c: c, to: *to, reserve: *reserve, target: *target, strategy: chosen, json: *asJSON}
		worst = max(worst, k.run(ctx, env))
	}
	return worst
}

// A compaction is that of one conversation.
type compaction struct {
	c        *conversation
	to       string
	reserve  int
	target   int
	strategy convo.CompactionStrategy
	json     bool
}

func (k *compaction) run(ctx context.Context, env *cli.Env) int {
	c := k.c
	to := k.to
	if to == "" {
		if to = c.format; !slices.Contains(formatNames, to) {
			return env.Fail(cli.Usage, "compact: %s: this is in the format %s, which cannot be written; say with -to in which format to write: %s", c.at, c.format, strings.Join(formatNames, ", "))
		}
	}
	opts := convo.Options{Strategy: k.strategy, Overheads: c.overheads()}
	h, faults, err := c.history(opts)
	if err != nil {
		return fail(env, "compact", err)
	}
	size := h.Tokens().Upper
	limits := convo.Limits{Window: c.window, Reserve: k.reserve, Tools: c.toolTokens}
	target := k.target
	if c.window > 0 {
		if err := h.SetLimits(limits); err != nil {
			return env.Fail(cli.Usage, "compact: %w", err)
		}
		limit := h.Status().Limit
		if target == 0 {
			target = max(limit/2, 1)
		}
		target = min(target, limit)
	}
	if target == 0 {
		target = size / 2
	}
	limits.Low = max(target-1, 1)
	limits.Soft, limits.High, limits.MinFree = target, target, 1
	if limits.Low >= limits.Soft {
		if k.target > 0 || c.window > 0 {
			return env.Fail(cli.Findings, "%s: about %s cannot be brought down to %s", c.at, cli.Plural(size, "token"), cli.Plural(target, "token"))
		}
		return env.Fail(cli.Findings, "%s: %s is too little to compact", c.at, cli.Plural(size, "token"))
	}
	if err := h.SetLimits(limits); err != nil {
		return env.Fail(cli.Usage, "compact: %w", err)
	}
	_, report, err := h.Prepare(ctx)
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return cli.Interrupted
		}
		return env.Fail(cli.Findings, "%s: the result would not fit, so it is not written: %s", c.at, tooLarge(err))
	}
	e, code := c.encode(env, "compact", to, h.Snapshot())
	if e == nil {
		return code
	}
	tellFaults(env, c, faults)
	if !k.json {
		env.Note("%s: %s", c.at, said(report))
		e.tellLost(env, c)
	}
	after := h.Tokens().Upper
	var wrap func() any
	if k.json {
		wrap = func() any {
			return compacted{
				At: c.at, Format: to, Outcome: report.Outcome.String(), Report: said(report), Before: size, After: after,
				Dropped: len(report.Dropped), Summarised: len(report.Summarised), Cleared: len(report.Cleared),
				Shortened: len(report.Shortened), Rewritten: len(report.Rewritten), Lost: append([]loss{}, e.lost...), Request: e.body,
			}
		}
	}
	if code = e.write(env, c, to, wrap); code == cli.OK && k.target > 0 && after > target {
		return env.Fail(cli.Findings, "%s: about %s tokens are left, and the target is %s; nothing more can be removed", c.at, cli.Number(after), cli.Number(target))
	}
	return code
}

// said returns what a report says, in one line. Each reason for a decline stands once, also if
// several strategies have given it.
func said(report convo.Report) string {
	var reasons []string
	for reason := range strings.SplitSeq(strings.ReplaceAll(fmt.Sprint(report), "\n", "; "), "; ") {
		if reason != "" && !slices.ContainsFunc(reasons, func(had string) bool { return had == reason || strings.HasSuffix(had, ": "+reason) }) {
			reasons = append(reasons, reason)
		}
	}
	return strings.Join(reasons, "; ")
}

// tooLarge says why a conversation cannot be made to fit.
func tooLarge(err error) string {
	floor, ok := errors.AsType[*convo.FloorError](err)
	if !ok {
		return strings.TrimPrefix(err.Error(), "convo: ")
	}
	var shares []string
	for _, s := range []struct {
		name   string
		tokens int
	}{
		{"system text", floor.System}, {"tools", floor.Tools}, {"the newest exchange", floor.Newest}, {"results that are not answered yet", floor.Round},
		{"calls in these", floor.Calls}, {"the newest user messages", floor.Users}, {"pinned messages", floor.Pinned},
	} {
		if s.tokens > 0 {
			shares = append(shares, s.name+" "+cli.Number(s.tokens))
		}
	}
	return "what a compaction never removes takes " + cli.Number(floor.Floor) + " tokens, and the limit is " + cli.Number(floor.Limit) + ": " + strings.Join(shares, ", ")
}

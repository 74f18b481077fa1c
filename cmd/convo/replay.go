package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-c1b73e60/convo/cmd/convo/internal/cli"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/replay"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/session"
)

const replayHelp = `Replays recorded sessions: what each request would have held and cost as recorded, with
nothing removed, with a plain trim, and with convo. The recorded answers stay as they were, so
it does not say what the model would have done.

The window is that of -window, or else that of the file. Sizes are estimates unless they are
called measured. Exit code 1: more than 1 % of the records of a file were not understood.`

const replayMore = `A file of prices is a JSON object. The prices are for so many tokens as "per"
says, of models whose names begin with the keys:

  {"currency": "USD", "per": 1000000, "models": {
    "": {"new": 1, "cached": 0.1, "written": 1.25, "output": 5}}}

A price that is left out is 0.

Examples:
  convo replay -window 200000 session.jsonl
  convo replay -html page.html rollout-*.jsonl`

// maxOverhead bounds what a request is said to carry beside its messages.
const maxOverhead = 1_000_000_000

// replaying are the flags of replay, and what it has found so far.
type replaying struct {
	env     *cli.Env
	options replay.Options
	reports []*replay.Report
	known   map[sessionKey]string // the file that each session was in
	several bool                  // inputs
	partly  bool                  // more than 1 % of the records of an input were not understood
	code    int
}

func replaySessions(ctx context.Context, env *cli.Env, args []string) int {
	flags := cli.NewFlags("replay", "[FILE...]", replayHelp)
	flags.More = replayMore
	r := replaying{env: env, known: map[sessionKey]string{}}
	flags.IntVar(&r.options.Window, "window", 0, "the context window of the model, in `TOKENS`; the recorded one if absent")
	flags.IntVar(&r.options.Overhead, "overhead", -1, "what each request carries that the file does not hold, such as tools, in `TOKENS`; negative: the first measured request less the estimate of its messages, or 0 if none is measured")
	flags.IntVar(&r.options.CacheMin, "cache-min", 1024, "a provider caches nothing shorter than these `TOKENS`")
	flags.DurationVar(&r.options.CacheTTL, "cache-ttl", 0, "a provider's cache is empty after a longer `PAUSE`, such as 5m; never if absent")
	flags.Lookup("cache-ttl").DefValue = "" // 0s says nothing
	prices := flags.String("prices", "", "a `FILE` of prices; without it no money is shown")
	asJSON := flags.Bool("json", false, "write JSON: the total, and each session with the size of each request")
	var page pageFile
	page.addFlag(flags, "a page with plots")
	files, code, ok := flags.Parse(env, args)
	if !ok {
		return code
	}
	switch {
	case r.options.Window < 0:
		return flags.Misused(env, "-window is %d; want the tokens of the window", r.options.Window)
	case r.options.Overhead > maxOverhead:
		return flags.Misused(env, "-overhead is %d; want at most %d", r.options.Overhead, maxOverhead)
	case r.options.CacheMin < 0:
		return flags.Misused(env, "-cache-min is %d; want 0 or more", r.options.CacheMin)
	case r.options.CacheTTL < 0:
		return flags.Misused(env, "-cache-ttl is %v; want 0 or more", r.options.CacheTTL)
	}
	if err := page.check(); err != nil {
		return flags.Misused(env, "%w", err)
	}
	if *prices != "" {
		p, err := readPrices(*prices)
		if err != nil {
			return env.Fail(cli.Unreadable, "replay: %w", err)
		}
		r.options.Prices = p
	}
	files = r.distinct(files)
	r.several = len(files) > 1
	for in, err := range inputs(env, files) {
		if err == nil {
			err = r.input(ctx, in)
		}
		if ctx.Err() != nil {
			return cli.Interrupted
		}
		if _, ok := errors.AsType[*replay.WindowError](err); ok {
			return flags.Misused(env, "%s: the context window is not in the file; set it with -window", in.name)
		}
		if err != nil {
			r.code = max(r.code, fail(env, "replay", err))
		}
	}
	total := replay.Total(r.reports)
	if len(r.reports) == 0 && r.code != cli.OK {
		return r.code
	}
	if total.Requests == 0 && r.code == cli.OK && total.Warning() == "" {
		return env.Fail(cli.Unreadable, "replay: %s: there is no answer in it, so there is no request to replay", inputNames(files))
	}
	if err := page.write(func(w io.Writer) error { return replay.WriteHTML(w, total, r.reports) }); err != nil {
		return env.Fail(cli.Unreadable, "replay: the page cannot be written: %w", err)
	}
	if err := r.print(total, *asJSON); err != nil {
		return env.Fail(cli.Unreadable, "replay: the output cannot be written: %w", err)
	}
	if r.code == cli.OK && (r.partly || total.NotUnderstood()) {
		r.code = cli.Findings
	}
	return r.code
}

// distinct returns the names of files without those of a file that is named before.
func (r *replaying) distinct(names []string) (kept []string) {
	first := map[string]string{} // by the path: the name
	for _, name := range names {
		path := name
		if real, err := filepath.EvalSymlinks(name); err == nil {
			path = real
		}
		if abs, err := filepath.Abs(path); err == nil && name != "-" {
			path = abs
		}
		if before, ok := first[path]; ok {
			r.env.Note("%s is the same file as %s, and is counted once", name, before)
			continue
		}
		first[path] = name
		kept = append(kept, name)
	}
	return kept
}

// input replays the sessions of an input. A session that goes on in the next one is replayed
// there.
func (r *replaying) input(ctx context.Context, in *input) error {
	var counts session.Counts // of the input
	var waiting *session.Session
	repeated := 0
	for s, err := range session.Read(in.r, in.name, session.Options{}) {
		if err != nil {
			return errors.Join(r.replay(ctx, in, waiting), in.sessionError(err))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		counts.Records += s.Counts.Records
		counts.Unknown += s.Counts.Unknown
		if r.isKnown(s, in.name) {
			continue
		}
		if goesOn(waiting, s) {
			takeOver(waiting, s)
			repeated++
		} else if err := r.replay(ctx, in, waiting); err != nil {
			return err
		}
		waiting = s
	}
	if err := r.replay(ctx, in, waiting); err != nil {
		return err
	}
	if r.env.StderrTerminal {
		fmt.Fprint(r.env.Stderr, "\r\x1b[K")
	}
	if repeated > 0 {
		r.env.Note("%s: %s that the next one repeats, as in a log of requests, counted once", in.name, cli.Plural(repeated, "conversation"))
	}
	if counts.Doubtful() {
		r.partly = true
		if r.several { // the sum of all may hide it
			r.env.Note("%s: %s, so much may be missing", in.name, notUnderstood(counts))
		}
	}
	return nil
}

// replay replays a session, unless it is nil.
func (r *replaying) replay(ctx context.Context, in *input, s *session.Session) error {
	if s == nil {
		return nil
	}
	report, err := replay.Run(ctx, s, r.options)
	if err != nil {
		return fmt.Errorf("%s: %w", in.name, err)
	}
	report.Name = filepath.Base(in.name)
	r.reports = append(r.reports, report)
	if r.env.StderrTerminal {
		fmt.Fprintf(r.env.Stderr, "\r\x1b[K%s replayed", cli.Plural(len(r.reports), "session"))
	}
	return nil
}

// A sessionKey names a session among all that programs have recorded.
type sessionKey struct{ format, parent, id string }

// isKnown reports whether a session was in another file before, as in a copy. IDs in requests
// and answers name no session.
func (r *replaying) isKnown(s *session.Session, name string) bool {
	if s.ID == "" || slices.Contains(formatNames, s.Format) {
		return false
	}
	key := sessionKey{s.Format, s.Parent, s.ID}
	if before, ok := r.known[key]; ok {
		r.env.Note("%s: session %s was in %s, and is counted once", name, s.ID, before)
		return true
	}
	r.known[key] = name
	return false
}

func (r *replaying) print(total *replay.Report, asJSON bool) error {
	if !asJSON {
		return replay.WriteText(r.env.Stdout, total, min(r.env.Width, 80))
	}
	writeJSON(r.env, struct {
		Warning  string           `json:"warning,omitempty"`
		Notes    []string         `json:"notes"` // what the figures mean
		Total    *replay.Report   `json:"total"`
		Sessions []*replay.Report `json:"sessions"`
	}{total.Warning(), total.Notes(), total, r.reports})
	return nil
}

func readPrices(name string) (*replay.Prices, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := replay.ReadPrices(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

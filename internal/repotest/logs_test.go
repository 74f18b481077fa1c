package repotest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/filestore"
)

// logLines causes all lines of the log, and returns them as they are printed.
func logLines(t *testing.T) []string {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "duration" || a.Key == "stack" {
				return slog.Attr{} // differs from run to run
			}
			if a.Key == "offset" {
				return slog.Int(a.Key, 504) // depends on the digits of a time
			}
			return a
		},
	}))
	ctx := t.Context()
	of := func(limits convo.Limits, s convo.CompactionStrategy) *convo.Options {
		return &convo.Options{Limits: limits, Strategy: s, Logger: log}
	}
	mine := func(f func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error)) convo.CompactionStrategy {
		return convo.StrategyFunc(f).Named("mine")
	}
	failing := func(err error) convo.CompactionStrategy {
		return mine(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { return convo.Edit{}, err })
	}
	window := convo.Limits{Window: 4_000, High: 1_000}

	// Compactions.
	for _, s := range []convo.CompactionStrategy{convo.Truncate{}, failing(convo.ErrNoGain), failing(errors.New("no idea")),
		convo.Chain(failing(errors.New("no idea")), convo.Truncate{})} {
		_, _, _ = historyOf(t, of(window, s), talk(60)...).Prepare(ctx) // the report says how it went
	}
	var h *convo.History
	h = historyOf(t, of(convo.Limits{Window: 4_000, Soft: 1_000, Low: 500}, mine(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		_, err := h.Rewind(59)
		require.NoError(t, err)
		return convo.Truncate{}.Compact(ctx, s, g)
	})), talk(60)...)
	require.True(t, h.CompactInBackground(ctx))
	_, err := h.Wait(ctx)
	require.NoError(t, err)
	opts := of(convo.Limits{Window: 4_000, Soft: 1_000, Low: 500}, convo.Truncate{})
	opts.CacheTTL = time.Hour
	h = historyOf(t, opts, talk(60)...)
	require.True(t, h.CompactInBackground(ctx))
	_, err = h.Wait(ctx)
	require.NoError(t, err)
	opts = of(window, nil)
	opts.MaxResult = 100
	historyOf(t, opts, convo.User("q"), convo.Assistant("", callOf("c")), convo.Result(callOf("c"), strings.Repeat("word ", 500)))

	// Limits and usage.
	_, _, err = historyOf(t, of(convo.Limits{}, nil), convo.User("q")).Prepare(ctx)
	require.NoError(t, err)
	historyOf(t, of(convo.Ratios(0, 0, 0), nil))
	h = historyOf(t, of(convo.Limits{Window: 10_000}, nil), talk(1)...)
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 20_000}))
	h = historyOf(t, of(convo.Limits{Window: 1_000_000}, nil))
	for input := 100; input < 2_000; input += 100 {
		mustAppend(t, h, talk(1)...)
		require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: input * input / 100}))
	}

	h = historyOf(t, of(convo.Limits{Window: 10_000, MinFree: 100}, nil), convo.User(strings.Repeat("word ", 1_000)))
	at, _, err := h.Prepare(ctx)
	require.NoError(t, err)
	_, err = h.AppendReply(at, convo.Reply{Messages: []convo.Message{convo.Assistant("a")}})
	require.NoError(t, err)
	require.NoError(t, h.SetSystem(convo.System("guide")))
	_, _, err = h.Prepare(ctx)
	require.NoError(t, err)

	h = historyOf(t, of(convo.Limits{Window: 10_000}, convo.Truncate{}), talk(60)...)
	_, _, err = h.Recover(ctx, h.Snapshot(), errors.New("Request too large for m on tokens per min (TPM): Limit 1000, Requested 1400"))
	require.NoError(t, err)

	// Tools.
	_, err = historyOf(t, of(window, nil), convo.User("q"), convo.Assistant("", callOf("c"))).Run(ctx, func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		return convo.Reply{Messages: []convo.Message{convo.Assistant("a")}}, nil
	}, convo.RunOptions{Tools: []convo.Handler{{Tool: convo.Tool{Name: "tool"}, Run: func(context.Context, convo.ToolCall) ([]convo.Part, error) { panic("boom") }}}})
	require.NoError(t, err)

	// An agent whose files do not fit.
	opts = of(convo.Limits{Window: 2000}, nil)
	opts.MaxResult = -1
	readAgain(t, opts)

	// Stores.
	store := &full{MemStore: new(convotest.MemStore)}
	var both [2]*convo.History
	for i := range both {
		both[i], err = convo.Open(ctx, store, "chat", of(window, nil))
		require.NoError(t, err)
		if i == 0 {
			mustAppend(t, both[0], convo.User("q"), convo.Assistant("", callOf("c")))
			require.NoError(t, both[0].Save(ctx))
		}
	}
	for _, h := range both {
		mustAppend(t, h, convo.Result(callOf("c"), "r"))
	}
	require.NoError(t, both[0].Save(ctx))
	_, refused, err := both[1].Reload(ctx)
	require.NoError(t, err)
	require.Len(t, refused, 1)
	opts = of(window, nil)
	opts.PruneAbove = 1
	h, err = convo.Open(ctx, store, "chat 2", opts)
	require.NoError(t, err)
	mustAppend(t, h, convo.User("q"))
	require.NoError(t, h.Save(ctx))
	require.ErrorContains(t, h.Prune(ctx, time.Time{}), "no room")
	mustAppend(t, h, convo.Assistant("a"))
	require.ErrorContains(t, h.Prune(ctx, time.Time{}), "no room")
	files := &filestore.Store{Dir: t.TempDir(), Logger: log}
	h, err = convo.Open(ctx, files, "chat", nil)
	require.NoError(t, err)
	mustAppend(t, h, convo.User("q"))
	require.NoError(t, h.SetMeta("", ""))
	require.NoError(t, h.Save(ctx))
	cutOff(t, files.Dir)
	h, err = convo.Open(ctx, files, "chat", nil)
	require.NoError(t, err)
	mustAppend(t, h, convo.Assistant("a"))
	require.NoError(t, h.Save(ctx))
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// readAgain reads three files in turn, of which two fill the view, through three compactions.
func readAgain(t *testing.T, opts *convo.Options) {
	h, compactions := historyOf(t, opts, convo.User("q")), 0
	for n := 0; compactions < 5; n++ {
		_, r, err := h.Prepare(t.Context())
		require.NoError(t, err)
		if r.Outcome == convo.OutcomeApplied {
			compactions++
		}
		c := convo.ToolCall{ID: fmt.Sprint("c", n), Name: "read", Arguments: fmt.Sprintf(`{"n":%d}`, n%3)}
		mustAppend(t, h, convo.Assistant("", c), convo.Result(c, strings.Repeat("line ", 450)))
	}
}

// A full is a Store that cannot remove records.
type full struct{ *convotest.MemStore }

func (*full) Prune(context.Context, string, uint64) error { return errors.New("no room") }

// cutOff adds the beginning of a record to the file of a store.
func cutOff(t *testing.T, dir string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		if data, err := os.ReadFile(path); err == nil && len(data) > 0 {
			require.NoError(t, os.WriteFile(path, append(data, "0123"...), 0o600))
		}
	}
}

// The page shows each line of the log as it is printed, and no others. A line that ends
// with … is the beginning of one.
func TestPages_LogShowsEachLine(t *testing.T) {
	lines, r := logLines(t), readRepo(t)
	page := r.text["docs/logging.md"]
	var shown []string
	for _, m := range regexp.MustCompile("(?ms)^```text\n(.*?)\n```$").FindAllStringSubmatch(page, -1) {
		shown = append(shown, strings.Split(m[1], "\n")...)
	}
	shows := func(s, l string) bool {
		start, short := strings.CutSuffix(s, "…")
		return s == l || short && strings.HasPrefix(l, start)
	}
	for _, s := range shown {
		assert.True(t, slices.ContainsFunc(lines, func(l string) bool { return shows(s, l) }), "nothing prints this:\n%s", s)
	}
	for _, l := range lines {
		assert.True(t, slices.ContainsFunc(shown, func(s string) bool { return shows(s, l) }), "docs/logging.md does not show:\n%s", l)
	}
	for o := convo.OutcomeApplied; !strings.HasPrefix(o.String(), "convo.Outcome("); o++ {
		assert.Contains(t, page, ` msg="convo: compaction `+o.String()+`" `, "the page shows no compaction with this outcome")
	}
	calls, found := regexp.MustCompile(`(?i)\b(logger|slog)\.(Debug|Info|Warn|Error|Log|LogAttrs)(Context)?\(|\bh\.warn\(`), 0
	text := regexp.MustCompile(`^[^"\n;]*"([^"\n]*)["\n]`) // the first literal of a call, of which others may follow
	for path := range r.forUsers() {
		code := r.text[path]
		for _, at := range calls.FindAllStringIndex(code, -1) {
			if path == "report.go" && strings.HasPrefix(code[at[1]:], "text, ") {
				continue // in History.warn
			}
			found++
			if m := text.FindStringSubmatch(code[at[1]:]); assert.NotNil(t, m, "%s: a log line whose text is not a literal, so that no page can show it: %.60s", path, code[at[0]:]) {
				assert.Contains(t, page, " msg="+strconv.Quote(m[1])[:len(m[1])+1], "%s logs a line that the page does not show", path)
			}
		}
	}
	assert.GreaterOrEqual(t, found, 8)
}

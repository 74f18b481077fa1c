package repotest_test

import (
	"bytes"
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
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
		_, _ = historyOf(t, of(window, s), talk(60)...).CompactIfNeeded(ctx) // the report says how it went
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
	_, err = historyOf(t, of(convo.Limits{}, nil), convo.User("q")).CompactIfNeeded(ctx)
	require.NoError(t, err)
	historyOf(t, of(convo.Ratios(0, 0, 0), nil))
	h = historyOf(t, of(convo.Limits{Window: 10_000}, nil), talk(1)...)
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 20_000}))
	h = historyOf(t, of(convo.Limits{Window: 1_000_000}, nil))
	for input := 100; input < 2_000; input += 100 {
		mustAppend(t, h, talk(1)...)
		require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: input * input / 100}))
	}

	// Tools.
	_, err = historyOf(t, of(window, nil), convo.User("q"), convo.Assistant("", callOf("c"))).Run(ctx, func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		return convo.Reply{Messages: []convo.Message{convo.Assistant("a")}}, nil
	}, convo.RunOptions{Tools: []convo.Handler{{Tool: convo.Tool{Name: "tool"}, Run: func(context.Context, convo.ToolCall) ([]convo.Part, error) { panic("boom") }}}})
	require.NoError(t, err)

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
	opts.NoArchive = true
	h, err = convo.Open(ctx, store, "chat 2", opts)
	require.NoError(t, err)
	mustAppend(t, h, convo.User("q"))
	require.NoError(t, h.Save(ctx))
	require.NoError(t, h.SaveFull(ctx))
	mustAppend(t, h, convo.Assistant("a"))
	require.NoError(t, h.SaveFull(ctx))
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

// The page shows each line of the log as it is printed, and no others.
func TestPages_LogShowsEachLine(t *testing.T) {
	lines := logLines(t)
	inRoot(t)
	page := read(t, "docs/logging.md")
	var shown []string
	for rest := page; strings.Contains(rest, "```text\n"); {
		var body string
		body, rest = block(t, rest, "```text\n")
		for line := range strings.Lines(body) {
			shown = append(shown, strings.TrimSuffix(line, "\n"))
		}
	}
	for _, line := range shown {
		start, short := strings.CutSuffix(line, "…")
		assert.True(t, slices.ContainsFunc(lines, func(l string) bool { return l == line || short && strings.HasPrefix(l, start) }), "nothing prints this:\n%s", line)
	}
	for _, line := range lines {
		assert.True(t, slices.ContainsFunc(shown, func(l string) bool {
			start, short := strings.CutSuffix(l, "…")
			return l == line || short && strings.HasPrefix(line, start)
		}), "docs/logging.md does not show:\n%s", line)
	}
	for o := convo.OutcomeApplied; !strings.HasPrefix(o.String(), "convo.Outcome("); o++ {
		assert.Contains(t, page, ` msg="convo: compaction `+o.String()+`" `, "the page shows no compaction with this outcome")
	}
	for _, text := range loggedTexts(t) {
		assert.Contains(t, page, " msg="+strconv.Quote(text)[:len(text)+1], "the page does not show a line that the code logs")
	}
}

// loggedTexts returns the literal texts, or the beginnings of texts, of all calls of loggers
// in the code of the module.
func loggedTexts(t *testing.T) (texts []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "internal" || path == "bench" || path == "examples" || path == "cmd" || path == "ci" || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || !isLog(call) || f.Name.Name == "warn" && path == "report.go" {
					return true
				}
				text := textOf(call)
				assert.NotEmpty(t, text, "%v logs a text that is not a literal, so that no page can show it", set.Position(call.Pos()))
				texts = append(texts, text)
				return true
			})
		}
		return nil
	})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(texts), 8)
	return texts
}

// isLog reports whether a call is one of a slog.Logger, of package slog, or of
// History.warn.
func isLog(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of := ""
	switch x := f.X.(type) {
	case *ast.SelectorExpr:
		of = x.Sel.Name
	case *ast.Ident:
		of = x.Name
	}
	switch strings.TrimSuffix(f.Sel.Name, "Context") {
	case "Debug", "Info", "Warn", "Error", "Log", "LogAttrs":
		return strings.EqualFold(of, "logger") || of == "slog"
	case "warn":
		return of == "h"
	}
	return false
}

// textOf returns the first literal text among the arguments of a call, also one at the
// start of a sum.
func textOf(call *ast.CallExpr) string {
	for _, arg := range call.Args {
		for {
			sum, ok := arg.(*ast.BinaryExpr)
			if !ok {
				break
			}
			arg = sum.X
		}
		if text, ok := arg.(*ast.BasicLit); ok && text.Kind == token.STRING {
			s, _ := strconv.Unquote(text.Value)
			return s
		}
	}
	return ""
}

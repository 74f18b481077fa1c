package repotest_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/mirror"
	"github.com/seed-c1b73e60/convo/wire"
)

// An errorRow is an exported error as a user meets it.
type errorRow struct {
	err    error
	value  string // the part of it that names the value or the place at fault
	remedy string // the part of it that says what to do
	other  string // why it has no value or no remedy
}

// errorRows are all exported errors, most of them made by what a user would do wrong.
func errorRows(t *testing.T) map[string]errorRow {
	ctx := t.Context()
	small := func(strategy convo.CompactionStrategy, msgs ...convo.Message) *convo.History {
		return historyOf(t, &convo.Options{Limits: convo.Limits{Window: 500}, Strategy: strategy}, msgs...)
	}
	called := func(ids ...string) *convo.History {
		answer := convo.Assistant("")
		for _, id := range ids {
			answer.Parts = append(answer.Parts, callOf(id))
		}
		return historyOf(t, nil, convo.User("q"), answer)
	}
	appended := func(h *convo.History, msgs ...convo.Message) error {
		_, err := h.Append(msgs...)
		return err
	}
	strategy := func(f func(context.Context) error) error {
		h := historyOf(t, &convo.Options{Strategy: convo.StrategyFunc(func(ctx context.Context, _ *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
			return convo.Edit{}, f(ctx)
		}).Named("mine")}, talk(6)...)
		_, err := h.Compact(ctx, "")
		return err
	}
	summarised := func(s convo.Summary, err error, calls int) error {
		h := small(convo.Summarize{Window: -1, With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) { return s, err })}, talk(30)...)
		for range calls {
			var r convo.Report
			if r, err = h.CompactIfNeeded(ctx); err == nil {
				err = r.Cause
			}
		}
		return err
	}

	closed := historyOf(t, nil)
	require.NoError(t, closed.Close())
	store := new(convotest.MemStore)
	saved := func() *convo.History {
		h, err := convo.Open(ctx, store, "chat", nil)
		require.NoError(t, err)
		mustAppend(t, h, convo.User("q"))
		return h
	}
	first, second := saved(), saved()
	require.NoError(t, first.Save(ctx))
	conflict := second.Save(ctx)
	_, notFound := convo.Load(ctx, store, "chat", 9)
	later := new(convo.Snapshot).UnmarshalJSON([]byte(`{"version":9}`))
	broken := new(convo.Snapshot).UnmarshalJSON([]byte(`{"version":1,"entries":[{"id":"x"}]}`))
	_, damage := convo.Load(ctx, damaged{store}, "chat", 0)

	_, badLimit := convo.New(&convo.Options{Limits: convo.Limits{Window: 100, Reserve: -7, Tools: -3}})
	h := historyOf(t, nil, talk(6)...)
	_, badEdit := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{99}})
	var reentrant error
	inner := historyOf(t, nil, convo.User("q"))
	_, err := inner.Do(ctx, func(ctx context.Context, _ *convo.Snapshot) (convo.Reply, error) {
		_, reentrant = inner.Do(ctx, func(context.Context, *convo.Snapshot) (convo.Reply, error) { return convo.Reply{}, nil })
		return convo.Reply{Messages: []convo.Message{convo.Assistant("a")}}, nil
	})
	require.NoError(t, err)

	unset := historyOf(t, nil, convo.User("q"))
	noWindow, err := unset.CompactIfNeeded(ctx)
	require.NoError(t, err)
	_, floor := small(nil, convo.User(strings.Repeat("word ", 2000))).CompactIfNeeded(ctx)
	_, limit := small(convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		return convo.Edit{}, convo.ErrNoGain
	}), talk(60)...).CompactIfNeeded(ctx)
	_, budget := convo.NewBudget(10).Reserve(20)
	run := func(max int, reply convo.Reply) error {
		h := historyOf(t, nil, convo.User("q"))
		_, err := h.Run(ctx, func(context.Context, *convo.Snapshot) (convo.Reply, error) { return reply, nil }, convo.RunOptions{MaxRequests: max,
			Tools: []convo.Handler{{Tool: convo.Tool{Name: "tool"}, Run: func(context.Context, convo.ToolCall) ([]convo.Part, error) { return nil, nil }}}})
		return err
	}
	twice := historyOf(t, nil, convo.User("q"), convo.Assistant("", callOf("c"), convo.ToolCall{ID: "d", Name: "tool", Arguments: "{}"}))
	mustAppend(t, twice, convo.Result(callOf("c"), "r"))

	keyed := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 500}})
	q := convo.User("q")
	q.Key = "row 1"
	mustAppend(t, keyed, q)
	decisions, err := keyed.Decisions()
	require.NoError(t, err)
	d, err := convo.ReadDecisions(decisions)
	require.NoError(t, err)
	_, row := convo.Resume(d, func(func(convo.Message, error) bool) {}, nil)

	m := mirror.New(historyOf(t, nil), mirror.Codec[string]{Decode: func(s string) ([]convo.Message, error) { return []convo.Message{convo.User(s)}, nil }})
	require.NoError(t, m.Sync([]string{"one"}))
	past := m.Sync([]string{"two"})

	_, params := clients.Body(wire.Request{}, map[string]any{"messages": []int{1}})
	_, empty := wire.OpenAIChat{}.Encode(historyOf(t, nil).Snapshot())
	_, tool := wire.OpenAIChat{}.Tools(convo.Tool{Name: "weather", Schema: `{"type":"string"}`})
	_, decode := wire.OpenAIChat{}.Decode([]byte(`{"choices":[{"message":{"role":"robot"}}]}`))
	_, provider := wire.OpenAIChat{}.Decode([]byte(`{"error":{"code":"429","message":"slow down"}}`))

	const part = "it is a part of the text of another error, which names the value"
	return map[string]errorRow{
		"convo.ErrClosed":        {err: appended(closed, convo.User("q")), remedy: "make another with New, Open or Restore", other: "it is about the History"},
		"convo.ErrNotFound":      {err: notFound, value: "record 9", remedy: "Archive shows those that it has"},
		"convo.ErrNoKey":         {err: convo.ErrNoKey, remedy: "give the function open of Sealed the key", other: part},
		"convo.ErrStale":         {err: h.Rollback(inner.Snapshot()), value: "another History made it", remedy: "take one of this History"},
		"convo.ErrVersion":       {err: later, value: "9, want 1", remedy: "use the release of convo that wrote it"},
		"convo.ErrBudget":        {err: budget, value: "20 tokens, 10 are free", remedy: "release a Reservation"},
		"convo.ErrNoWindow":      {err: noWindow.Cause, value: "Limits.Window", remedy: "set Limits.Window"},
		"convo.ErrNoStore":       {err: h.Save(ctx), remedy: "use Open, or call Attach", other: "it is about the History"},
		"convo.ErrReentrant":     {err: reentrant, remedy: "call it when that has returned", other: "it is about the call"},
		"convo.ErrNoGain":        {err: convo.ErrNoGain, remedy: "go on with the conversation as it is", other: "it is about the conversation"},
		"convo.ErrBreaker":       {err: summarised(convo.Summary{}, errors.New("the model is down"), 2), value: "the model is down", remedy: "History.Compact calls it anyway"},
		"convo.ErrDuplicateCall": {err: appended(historyOf(t, nil, convo.User("q")), convo.Assistant("", callOf("c"), callOf("c"))), value: `"c"`, remedy: "leave the ID empty"},
		"convo.ErrNoOpenCall":    {err: appended(called("c"), convo.Result(callOf("x"), "r")), value: `"x"`, remedy: "make it with Result"},
		"convo.ErrAnswered":      {err: appended(twice, convo.Result(callOf("c"), "r")), value: `"c"`, remedy: "leave it out"},
		"convo.ErrAmbiguous":     {err: appended(called("c", "d"), convo.Result(convo.ToolCall{}, "r")), value: `["c" "d"]`, remedy: "make it with Result"},
		"convo.ErrOpenCalls":     {err: appended(called("c"), convo.User("q")), value: `"c"`, remedy: "give it up with AnswerOpenCalls"},

		"convo.ValueError":       {err: badLimit, value: "Limits.Tools is -3", remedy: "want 0 or more"},
		"convo.MessageError":     {err: appended(h, convo.Message{Role: convo.RoleTool}), value: `message 0 ("tool")`, remedy: "make it with Result"},
		"convo.RoleError":        {err: appended(inner, convo.Assistant("again")), value: `"assistant"`, remedy: "put both into one message"},
		"convo.PairError":        {err: appended(called("c"), convo.System("s")), value: `"c"`, remedy: "append its result first"},
		"convo.MaxRequestsError": {err: run(1, convo.Reply{Messages: []convo.Message{convo.Assistant("", callOf("c"))}, Stop: convo.StopToolCall}), value: "1 request", remedy: "call Run again"},
		"convo.AnswerError":      {err: run(1, convo.Reply{Stop: convo.StopLength}), value: "stop: length", remedy: "let the model write more tokens"},
		"convo.StaleError":       {err: h.Rollback(nil), value: "it is nil", remedy: "take one with History.Snapshot"},
		"convo.EditError":        {err: badEdit, value: "(entry 99)", remedy: "Snapshot.All lists those that it holds"},
		"convo.BudgetError":      {err: budget, value: "20 tokens, 10 are free", remedy: "release a Reservation"},
		"convo.FloorError":       {err: floor, value: "exceed limit 438", remedy: "Rewind takes it back"},
		"convo.LimitError":       {err: limit, value: "exceed limit 438", remedy: "raise Limits.Window"},
		"convo.RefusedError":     {err: summarised(convo.Summary{Text: " "}, nil, 1), value: "the summary is empty", remedy: "use another model to summarise"},
		"convo.SnapshotError":    {err: broken, value: "snapshot entry 0", remedy: "pass the data as it was written"},
		"convo.ConflictError":    {err: conflict, value: `"chat"`, remedy: "choose another key"},
		"convo.DamageError":      {err: damage, value: `"chat"`, remedy: "Salvage copies what can be read"},
		"convo.PanicError":       {err: strategy(func(context.Context) error { panic("boom") }), value: "CompactionStrategy: boom", remedy: "PanicError.Stack says where"},
		"convo.RowError":         {err: row, value: `"row 1"`, remedy: "give it"},

		"wire.ErrEmpty":      {err: empty, remedy: "append a message with content first", other: "it is about the History"},
		"wire.ToolError":     {err: tool, value: `"weather"`, remedy: "object"},
		"wire.DecodeError":   {err: decode, value: "choices[0].message.role", remedy: "check that the input is complete and in this format"},
		"wire.ProviderError": {err: provider, value: "429", remedy: "wait, and send the request again"},

		"mirror.PastError":     {err: past, value: "message 0", remedy: "RewindTo(0) takes back what followed"},
		"clients.ErrTransport": {err: clients.ErrTransport, value: "HTTP client", remedy: "make it with &http.Client"},
		"clients.ErrStop":      {err: clients.ErrStop, other: "an application gives it as a cause"},
		"clients.ParamsError":  {err: params, value: `"messages"`, remedy: "leave it empty"},
		"convotest.ErrScript":  {err: convotest.ErrScript, value: "this request", remedy: "add one"},
		"convotest.ErrFake":    {err: convotest.ErrFake, remedy: "set its Err", other: "a fake returns it on purpose"},
	}
}

// Each exported error says what is wrong, with which value, and what to do.
func TestErrors_SayWhatToDo(t *testing.T) {
	rows := errorRows(t)
	inRoot(t)
	var page strings.Builder
	for _, name := range exportedErrors(t) {
		row, ok := rows[name]
		if !assert.True(t, ok, "%s has no row in errorRows", name) {
			continue
		}
		delete(rows, name)
		if !assert.Error(t, row.err, name) {
			continue
		}
		text := row.err.Error()
		pkg, _, _ := strings.Cut(name, ".")
		assert.True(t, strings.HasPrefix(text, pkg+": "), "%s: %s", name, text)
		assert.Contains(t, text, row.value, name)
		assert.Contains(t, text, row.remedy, name)
		assert.True(t, row.value != "" && row.remedy != "" || row.other != "", "%s: a row without a value or a remedy says why", name)
		assert.NotContains(t, text, "\n", name)
		page.WriteString(name + "\n\t" + text + "\n")
	}
	for name := range rows {
		t.Errorf("%s has a row and is no exported error", name)
	}
	golden(t, "internal/repotest/testdata/errors.txt", page.String())
}

// exportedErrors returns the exported errors of the module and of its nested modules, as
// "package.Name", by package and place in it.
func exportedErrors(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "internal" || path == "bench" || path == "examples" || path == "cmd" || path == "ci" || d.Name() == "testdata" || d.Name() == "internal"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, name := range errorsIn(file) {
			names = append(names, file.Name.Name+"."+name)
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, len(names), 40)
	return names
}

// errorsIn returns the exported variables named Err in a file, and the exported types that
// have a method Error.
func errorsIn(file *ast.File) (names []string) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				v, ok := spec.(*ast.ValueSpec)
				if !ok || d.Tok != token.VAR {
					continue
				}
				for _, name := range v.Names {
					if strings.HasPrefix(name.Name, "Err") {
						names = append(names, name.Name)
					}
				}
			}
		case *ast.FuncDecl:
			if d.Recv == nil || d.Name.Name != "Error" || d.Type.Params.NumFields() > 0 {
				continue
			}
			of := d.Recv.List[0].Type
			if star, ok := of.(*ast.StarExpr); ok {
				of = star.X
			}
			if name, ok := of.(*ast.Ident); ok && name.IsExported() {
				names = append(names, name.Name)
			}
		}
	}
	return names
}

// A damaged is a Store whose records have lost their ends, from the year of the first time on:
// how many digits a time has differs from run to run.
type damaged struct{ *convotest.MemStore }

func (s damaged) Records(ctx context.Context, key string, from uint64) iter.Seq2[convo.Record, error] {
	return func(yield func(convo.Record, error) bool) {
		for r, err := range s.MemStore.Records(ctx, key, from) {
			r.Data = r.Data[:24] // the same bytes each time, without a time or a random ID
			if !yield(r, err) {
				return
			}
		}
	}
}

// golden compares got with a file, and writes the file if GOLDEN is set.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if os.Getenv("GOLDEN") != "" {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	assert.Equal(t, read(t, path), got, "GOLDEN=1 go test writes %s anew", path)
}

// talk returns n turns of a question and an answer.
func talk(n int) (msgs []convo.Message) {
	for range n {
		msgs = append(msgs, convo.User("a question of some words"), convo.Assistant("an answer that is a bit longer than that"))
	}
	return msgs
}

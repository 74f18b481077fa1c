package repotest_test

import (
	"context"
	"errors"
	"go/ast"
	"go/token"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/logs"
	"github.com/seed-c1b73e60/convo/mirror"
	"github.com/seed-c1b73e60/convo/wire"
)

// errorRows are all exported errors, most of them made by what a user would do wrong.
func errorRows(t *testing.T) map[string]error {
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
			if _, r, err = h.Prepare(ctx); err == nil {
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

	_, _, floor := small(nil, convo.User(strings.Repeat("word ", 2000))).Prepare(ctx)
	_, _, limit := small(convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		return convo.Edit{}, convo.ErrNoGain
	}), talk(60)...).Prepare(ctx)
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

	_, params := clients.Body(t.Context(), wire.Request{}, map[string]any{"messages": []int{1}})
	_, empty := wire.OpenAIChat{}.Encode(historyOf(t, nil).Snapshot())
	_, tool := wire.OpenAIChat{}.Tools(convo.Tool{Name: "weather", Schema: `{"type":"string"}`})
	_, decode := wire.OpenAIChat{}.Decode([]byte(`{"choices":[{"message":{"role":"robot"}}]}`))
	_, provider := wire.OpenAIChat{}.Decode([]byte(`{"error":{"code":"429","message":"slow down"}}`))

	return map[string]error{
		"convo.ErrClosed":     appended(closed, convo.User("q")),
		"convo.ErrNotFound":   notFound,
		"logs.ErrNoKey":       logs.ErrNoKey,
		"convo.ErrStale":      h.Rollback(inner.Snapshot()),
		"convo.ErrVersion":    later,
		"convo.ErrBudget":     budget,
		"convo.ErrNoStore":    h.Save(ctx),
		"convo.ErrReentrant":  reentrant,
		"convo.ErrNoGain":     convo.ErrNoGain,
		"convo.ErrBreaker":    summarised(convo.Summary{}, errors.New("the model is down"), 2),
		"convo.ErrNoOpenCall": appended(called("c"), convo.Result(callOf("x"), "r")),
		"convo.ErrOpenCalls":  appended(called("c"), convo.User("q")),

		"convo.ValueError":     badLimit,
		"convo.MessageError":   appended(h, convo.Message{Role: convo.RoleTool}),
		"convo.RoleError":      appended(inner, convo.Assistant("again")),
		"convo.PairError":      appended(called("c"), convo.System("s")),
		"convo.ErrMaxRequests": run(1, convo.Reply{Messages: []convo.Message{convo.Assistant("", callOf("c"))}, Stop: convo.StopToolCall}),
		"convo.AnswerError":    run(1, convo.Reply{Stop: convo.StopLength}),
		"convo.EditError":      badEdit,
		"convo.FloorError":     floor,
		"convo.LimitError":     limit,
		"convo.RefusedError":   summarised(convo.Summary{Text: " "}, nil, 1),
		"convo.SnapshotError":  broken,
		"convo.ConflictError":  conflict,
		"convo.DamageError":    damage,
		"convo.PartError":      &convo.PartError{Parts: []convo.RefusedPart{{ID: 3}}, Err: errors.New("400 Bad Request: Could not process image")},
		"convo.PanicError":     strategy(func(context.Context) error { panic("boom") }),
		"convo.RowError":       row,

		"wire.ErrEmpty":      empty,
		"wire.ToolError":     tool,
		"wire.DecodeError":   decode,
		"wire.ProviderError": provider,

		"mirror.PastError":     past,
		"clients.ErrTransport": clients.ErrTransport,
		"clients.ErrStop":      clients.ErrStop,
		"clients.ParamsError":  params,
		"convotest.ErrScript":  convotest.ErrScript,
		"convotest.ErrFake":    convotest.ErrFake,
	}
}

// testdata/errors.txt has the text of each exported error, which says what is wrong, with which
// value, and what to do.
func TestErrors_SayWhatToDo(t *testing.T) {
	rows := errorRows(t)
	names := exportedErrors(readRepo(t))
	require.Greater(t, len(names), 35)
	var page strings.Builder
	for _, name := range names {
		require.Error(t, rows[name], "errorRows does not make a %s", name)
		text := rows[name].Error()
		delete(rows, name)
		pkg, _, _ := strings.Cut(name, ".")
		assert.True(t, strings.HasPrefix(text, pkg+": ") && !strings.Contains(text, "\n"), "%s: %s", name, text)
		page.WriteString(name + "\n\t" + text + "\n")
	}
	assert.Empty(t, rows, "rows of what is no exported error")
	const golden = "internal/repotest/testdata/errors.txt"
	if os.Getenv("GOLDEN") != "" {
		require.NoError(t, os.WriteFile(golden, []byte(page.String()), 0o600))
	}
	assert.Equal(t, read(t, golden), page.String(), "GOLDEN=1 go test writes %s anew", golden)
}

// exportedErrors returns the exported variables named Err and the exported types with a method
// Error, as "package.Name", by path and place in the file.
func exportedErrors(r *repo) (names []string) {
	files := r.forUsers()
	for _, path := range slices.Sorted(maps.Keys(files)) {
		add := func(name string) { names = append(names, files[path].Name.Name+"."+name) }
		for _, decl := range files[path].Decls {
			switch d := decl.(type) {
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.VAR && strings.HasPrefix(v.Names[0].Name, "Err") {
						add(v.Names[0].Name)
					}
				}
			case *ast.FuncDecl:
				if d.Recv != nil && d.Name.Name == "Error" && d.Type.Params.NumFields() == 0 && ast.IsExported(receiver(d)) {
					add(receiver(d))
				}
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

// talk returns n turns of a question and an answer.
func talk(n int) (msgs []convo.Message) {
	for range n {
		msgs = append(msgs, convo.User("a question of some words"), convo.Assistant("an answer that is a bit longer than that"))
	}
	return msgs
}

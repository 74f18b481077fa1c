package convo_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/internal/modeltest"
)

// changesOf returns all ways to change a History. Each is valid for a History that is
// open and holds entry 1.
func changesOf(h *convo.History) map[string]func() error {
	at := h.Snapshot()
	return map[string]func() error{
		"Append":          func() error { _, err := h.Append(convo.User("u")); return err },
		"Append nothing":  func() error { _, err := h.Append(); return err },
		"AnswerOpenCalls": func() error { _, err := h.AnswerOpenCalls(""); return err },
		"SetSystem":       func() error { return h.SetSystem(convo.System("s")) },
		"SetSystem again": func() error { return h.SetSystem() },
		"SetMeta":         func() error { return h.SetMeta("t", "d") },
		"SetMeta again":   func() error { return h.SetMeta("", "") },
		"SetEphemeral":    func() error { return h.SetEphemeral(convo.User("e")) },
		"SetLimits":       func() error { return h.SetLimits(convo.Limits{}) },
		"SetModel":        func() error { return h.SetModel("m", convo.Limits{}) },
		"Pin":             func() error { return h.Pin(1) },
		"Unpin":           func() error { return h.Unpin(1) },
		"PinLast":         func() error { return h.PinLast() },
		"Rollback":        func() error { return h.Rollback(at) },
		"Rewind":          func() error { _, err := h.Rewind(1); return err },
		"Queue":           func() error { return h.Queue(convo.User("q")) },
		"Do":              func() error { _, err := h.Do(context.Background(), saying(convo.Assistant("a"))); return err },
		"Apply":           func() error { _, err := h.Apply(at, convo.Edit{Drop: []convo.ID{1}}); return err },
		"SplicePrefix":    func() error { _, err := h.SplicePrefix(at, 1, "s"); return err },
		"RecordUsage":     func() error { return h.RecordUsage(at, convo.Usage{Input: 1}) },
	}
}

func TestHistory_ZeroIsEmptyAndClosed(t *testing.T) {
	var h convo.History
	for name, change := range changesOf(&h) {
		t.Run(name, func(t *testing.T) { assert.ErrorIs(t, change(), convo.ErrClosed) })
	}
	assert.Zero(t, h.Len())
	assert.Zero(t, h.Status())
	assert.Zero(t, h.Tokens())
	assert.Empty(t, h.Snapshot().Pinned())
	assert.Empty(t, h.Snapshot().Messages())
	assert.NotEmpty(t, h.String())
	assert.NoError(t, h.Close())
	fork, err := convo.Restore(h.Snapshot(), nil)
	require.NoError(t, err)
	mustAppend(t, fork, convo.User("u"))
}

func TestHistory_Closed(t *testing.T) {
	h := tour(t, nil)
	require.NoError(t, h.Pin(2))
	changes := changesOf(h)
	before := stateOf(t, h)
	require.NoError(t, h.Close())
	require.NoError(t, h.Close())
	for name, change := range changes {
		t.Run(name, func(t *testing.T) { assert.ErrorIs(t, change(), convo.ErrClosed) })
	}
	assert.Equal(t, before, stateOf(t, h))
	assert.Equal(t, []convo.ID{2}, h.Snapshot().Pinned())
	_, err := convo.Restore(h.Snapshot(), nil)
	assert.NoError(t, err)
}

// A panic in any code of the caller is returned as a PanicError, and changes
// nothing.
func TestHistory_PanicsChangeNothing(t *testing.T) {
	boom := errors.New("boom")
	armed := false
	fuse := func() {
		if armed {
			panic(boom)
		}
	}
	image := convo.User("look", convo.NewMedia("image/png", []byte("x")))
	count := convo.TokenizerFunc(func(s string) int { fuse(); return len(s) })
	for _, tt := range []struct {
		name   string
		opts   convo.Options
		change func(h *convo.History) error
	}{
		{"tokenizer, Append", convo.Options{Tokenizer: count}, func(h *convo.History) error { _, err := h.Append(convo.Assistant("x")); return err }},
		{"media, Append", convo.Options{Overheads: convo.Overheads{Media: func(convo.Media) int { fuse(); return 1 }}},
			func(h *convo.History) error { _, err := h.Append(convo.Assistant("x"), image); return err }},
		{"pin, Append", convo.Options{Pin: func(convo.Message) bool { fuse(); return true }}, func(h *convo.History) error { _, err := h.Append(convo.Assistant("x")); return err }},
		{"tokenizer, SetSystem", convo.Options{Tokenizer: count}, func(h *convo.History) error { return h.SetSystem(convo.System("x")) }},
		{"tokenizer, SetEphemeral", convo.Options{Tokenizer: count}, func(h *convo.History) error { return h.SetEphemeral(convo.User("x")) }},
		{"tokenizer, AnswerOpenCalls", convo.Options{Tokenizer: count}, func(h *convo.History) error { _, err := h.AnswerOpenCalls("x"); return err }},
		{"tokenizer, summary", convo.Options{Tokenizer: count}, func(h *convo.History) error {
			_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2}, Summary: &convo.Summary{Text: "x"}})
			return err
		}},
		{"tokenizer, clear", convo.Options{Tokenizer: count}, func(h *convo.History) error {
			_, err := h.Apply(h.Snapshot(), convo.Edit{Clear: []convo.Clear{{ID: 4}}})
			return err
		}},
		{"tokenizer, With", convo.Options{Tokenizer: count}, func(h *convo.History) error {
			_, err := h.Snapshot().With(convo.Edit{Clear: []convo.Clear{{ID: 4}}})
			return err
		}},
		{"tokenizer, Restore", convo.Options{Tokenizer: count}, func(h *convo.History) error {
			_, err := convo.Restore(h.Snapshot(), &convo.Options{Tokenizer: count})
			return err
		}},
		{"spill, Append", convo.Options{MaxResult: 256, Spill: func(context.Context, convo.ToolResult) (string, error) { fuse(); return "", nil }}, func(h *convo.History) error {
			_, err := h.Append(convo.Assistant("", callOf("c")), convo.Result(callOf("c"), strings.Repeat("word ", 500)))
			return err
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			armed = false
			h := tour(t, &tt.opts)
			unchanged(t, h, func() {
				armed = true
				err := tt.change(h)
				armed = false
				var p *convo.PanicError
				require.ErrorAs(t, err, &p)
				assert.Equal(t, boom, p.Value)
				assert.ErrorIs(t, err, boom)
				assert.NotEmpty(t, p.In)
			})
			mustAppend(t, h, convo.Assistant("goes on"))
		})
	}
	t.Run("New", func(t *testing.T) {
		armed = true
		h, err := convo.New(&convo.Options{Tokenizer: count})
		armed = false
		assert.Nil(t, h)
		assert.ErrorIs(t, err, boom)
	})
}

// No lock is held while code of the caller runs.
func TestHistory_CallbacksMayCallBack(t *testing.T) {
	var h *convo.History
	calls := 0
	read := func() {
		if h != nil {
			calls++
			h.Status()
			h.Snapshot().Messages()
			_ = h.SetModel(fmt.Sprint("model ", calls), convo.Limits{})
		}
	}
	opts := &convo.Options{
		Tokenizer:    convo.TokenizerFunc(func(s string) int { read(); return len(s) }),
		Pin:          func(convo.Message) bool { read(); return false },
		Spill:        func(context.Context, convo.ToolResult) (string, error) { read(); return "ref", nil },
		Overheads:    convo.Overheads{Media: func(convo.Media) int { read(); return 1 }},
		OnCompaction: func(convo.Report) { read() },
	}
	h = tour(t, opts)
	mustAppend(t, h, convo.Assistant("x"), convo.User("y", convo.NewMedia("image/png", []byte("z"))))
	require.NoError(t, h.SetSystem(convo.System("s")))
	require.NoError(t, h.SetEphemeral(convo.User("e")))
	_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2}, Clear: []convo.Clear{{ID: 4}}, Summary: &convo.Summary{Text: "s"}})
	require.NoError(t, err)
	require.NoError(t, h.Rollback(h.Snapshot()))
	_, err = h.AnswerOpenCalls("x")
	require.NoError(t, err)
	assert.Greater(t, calls, 10)
}

func TestHistory_StrangeCounts(t *testing.T) {
	for _, tt := range []struct {
		name  string
		count int
		over  convo.Overheads
	}{
		{name: "negative", count: -5},
		{name: "smallest", count: math.MinInt},
		{name: "largest", count: math.MaxInt},
		{name: "huge overheads", over: convo.Overheads{Message: math.MaxInt, Call: math.MaxInt, Result: math.MaxInt}},
		{name: "negative media", over: convo.Overheads{Media: func(convo.Media) int { return math.MinInt }}},
		{name: "huge media", over: convo.Overheads{Media: func(convo.Media) int { return math.MaxInt }}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opts := &convo.Options{
				Tokenizer: convo.TokenizerFunc(func(string) int { return tt.count }), Overheads: tt.over,
				Limits: convo.Limits{Window: 1000, Tools: math.MaxInt}, Budget: convo.NewBudget(100),
			}
			h := tour(t, opts)
			last := h.Status()
			for range 100 {
				mustAppend(t, h, convo.Assistant("x"), convo.User("y", convo.NewMedia("image/png", []byte("z"))))
				s := h.Status()
				require.GreaterOrEqual(t, s.Tokens, last.Tokens)
				require.GreaterOrEqual(t, s.Upper, s.Tokens)
				require.GreaterOrEqual(t, s.Appended, 0)
				require.GreaterOrEqual(t, opts.Budget.Used(), 0)
				last = s
			}
			require.NoError(t, h.Close())
			assert.Zero(t, opts.Budget.Used())
		})
	}
}

func TestNew_ReportsAllFaultsAtOnce(t *testing.T) {
	h, err := convo.New(&convo.Options{
		Limits:     convo.Limits{Window: -1, Soft: -1},
		Roles:      convo.RolePolicy{UserAfter: []convo.Role{"robot"}},
		MaxResult:  63,
		PruneAbove: -1,
	})
	assert.Nil(t, h)
	assert.ElementsMatch(t, []string{"Limits.Window", "Limits.Soft", "Options.Roles.UserAfter", "Options.MaxResult", "Options.PruneAbove"}, valueErrors(t, err))
}

func TestNew_KeepsNoHoldOfTheOptions(t *testing.T) {
	opts := bare()
	h := historyOf(t, opts)
	opts.Tokenizer, opts.Roles = nil, convo.Relaxed()
	mustAppend(t, h, convo.User("12345"))
	assert.Equal(t, 5, h.Tokens().Tokens)
	_, err := h.Append(convo.User("12345"))
	assert.Error(t, err)
	assert.Zero(t, opts.Limits)
}

func TestStatus(t *testing.T) {
	opts := bare()
	opts.Limits = convo.Limits{Window: 1000, Reserve: 100, High: 800, Low: 300, Soft: 500, MinFree: 50}
	h := historyOf(t, opts)
	assert.Equal(t, convo.Status{Window: 1000, Limit: 900, High: 800, Low: 300, Soft: 500, MinFree: 50}, h.Status())

	start := time.Now()
	c, d := callOf("c"), callOf("d")
	mustAppend(t, h, convo.System("sys"), convo.User("12345"), convo.Assistant("", c, d), convo.Result(c, "12"))
	s := h.Status()
	assert.Equal(t, []int{4, 1, 1, 1}, []int{s.Entries, s.System, s.Turns, s.OpenCalls})
	assert.Equal(t, h.Snapshot().Tokens(), s.Appended)
	assert.WithinDuration(t, start, s.LastAppend, time.Minute)
	assert.True(t, s.LastEdit.IsZero())

	mustAppend(t, h, convo.Result(d, "12"), convo.User("v"), convo.Assistant("a"), convo.User("w"))
	assert.Equal(t, []int{8, 3, 0}, []int{h.Status().Entries, h.Status().Turns, h.Status().OpenCalls})
	_, err := h.SplicePrefix(h.Snapshot(), 5, "s")
	require.NoError(t, err)
	s = h.Status()
	assert.Equal(t, []int{4, 2, 0}, []int{s.Entries, s.Turns, s.Appended})
	assert.False(t, s.LastEdit.IsZero())

	mustAppend(t, h, convo.Assistant("1234567"), convo.User("123"))
	assert.Equal(t, 10, h.Status().Appended)
	rewind(t, h)
	assert.Equal(t, 7, h.Status().Appended, "what was taken back was not appended")
	require.NoError(t, h.SetEphemeral(convo.User("e")))
	assert.Equal(t, 7, h.Status().Appended)
	e := h.Tokens()
	assert.Equal(t, []int{e.Tokens, e.Upper}, []int{h.Status().Tokens, h.Status().Upper})
}

// A run of user messages is one turn, and a compaction never merges two turns.
func TestStatus_Turns(t *testing.T) {
	h := historyOf(t, &convo.Options{Roles: convo.Relaxed()},
		convo.Assistant("before"), convo.User("u"), convo.User("v"), convo.Assistant("a"), convo.User("w"), convo.Assistant("b"), convo.User("x"))
	turns := func() (list []int) {
		for _, e := range h.Snapshot().All() {
			list = append(list, e.Turn)
		}
		return list
	}
	assert.Equal(t, []int{0, 1, 1, 1, 2, 2, 3}, turns())
	assert.Equal(t, 3, h.Status().Turns)
	mustAppend(t, h, convo.User("still the same"))
	assert.Equal(t, 3, h.Status().Turns)
	apply(t, h, convo.Edit{Drop: []convo.ID{4, 6}})
	assert.Equal(t, []int{0, 1, 1, 2, 3, 3}, turns())
	assert.Equal(t, 3, h.Status().Turns)
	apply(t, h, convo.Edit{Drop: []convo.ID{5}})
	assert.Equal(t, 2, h.Status().Turns)
}

func TestHistory_StringIsShort(t *testing.T) {
	h := historyOf(t, nil, convo.User(strings.Repeat("secret ", 1000)))
	for _, s := range []string{h.String(), fmt.Sprint(h.Snapshot()), h.Snapshot().LogValue().String()} {
		assert.NotEmpty(t, s)
		assert.Less(t, len(s), 100)
		assert.NotContains(t, s, "secret")
	}
}

func TestSetSystem_ReplacesTheSet(t *testing.T) {
	h := tour(t, bare())
	old := h.Snapshot()
	require.NoError(t, h.SetSystem(convo.System("one"), convo.System("two")))
	assert.Equal(t, []convo.ID{10, 11, 2, 3, 4, 5, 6, 7, 8, 9}, idsOf(h.Snapshot()))
	assert.Equal(t, []string{"one", "two"}, textsOf(h.Snapshot())[:2])
	assert.Equal(t, old.Tokens()-len("guide")+len("onetwo"), h.Snapshot().Tokens())
	assert.Equal(t, 2, h.Status().System)

	require.NoError(t, h.SetSystem())
	assert.Zero(t, h.Status().System)
	assert.EqualValues(t, 2, idsOf(h.Snapshot())[0])
	assert.EqualValues(t, 12, mustAppend(t, h, convo.Assistant("ok")))
	assert.Equal(t, 9, old.Len(), "the snapshot stays")
}

// The messages that are in place already keep their entries and the snapshot.
func TestSetSystem_SameMessages(t *testing.T) {
	h := historyOf(t, nil)
	guide := convo.Message{Role: convo.RoleSystem, Author: "a\xff", Meta: "m", Parts: []convo.Part{convo.Text("guide"), convo.Opaque{Format: "f", JSON: "{}"}}}
	require.NoError(t, h.SetSystem(guide, convo.System("two")))
	before := h.Snapshot()
	require.NoError(t, h.SetSystem(guide, convo.System("two")))
	assert.Same(t, before, h.Snapshot())

	meta, author, format := guide, guide, guide
	meta.Meta, author.Author = "n", "b"
	format.Parts = []convo.Part{convo.Text("guide"), convo.Opaque{Format: "g", JSON: "{}"}}
	for i, msgs := range [][]convo.Message{
		{meta, convo.System("two")}, {author, convo.System("two")}, {format, convo.System("two")},
		{convo.System("two"), format}, {convo.System("two")}, {},
	} {
		before = h.Snapshot()
		require.NoError(t, h.SetSystem(msgs...))
		assert.NotSame(t, before, h.Snapshot(), i)
	}
	before = h.Snapshot()
	require.NoError(t, h.SetSystem())
	assert.Same(t, before, h.Snapshot())
	assert.EqualValues(t, 12, mustAppend(t, h, convo.User("u")), "no ID is used for what stays")
}

func TestSetSystem_WhileCallsAreOpen(t *testing.T) {
	c := callOf("c")
	h := historyOf(t, nil, convo.User("u"), convo.Assistant("", c))
	require.NoError(t, h.SetSystem(convo.System("s")))
	assert.Equal(t, 1, h.Status().OpenCalls)
	mustAppend(t, h, convo.Result(c, "r"), convo.Assistant("a"))
	assert.Equal(t, []convo.ID{3, 1, 2, 4, 5}, idsOf(h.Snapshot()))
}

func TestSetSystem_OlderSnapshotsStayGood(t *testing.T) {
	t.Run("Rollback", func(t *testing.T) {
		h := tour(t, nil)
		at := h.Snapshot()
		mustAppend(t, h, convo.Assistant("a"))
		require.NoError(t, h.SetSystem(convo.System("new")))
		require.NoError(t, h.Rollback(at))
		assert.Equal(t, []convo.ID{11, 2, 3, 4, 5, 6, 7, 8, 9}, idsOf(h.Snapshot()), "system entries stay as they are now")
	})
	t.Run("Apply", func(t *testing.T) {
		h := tour(t, nil)
		at := h.Snapshot()
		require.NoError(t, h.SetSystem(convo.System("new")))
		r, err := h.Apply(at, convo.Edit{Drop: []convo.ID{2}, Summary: &convo.Summary{Text: "s"}})
		require.NoError(t, err)
		assert.Equal(t, []convo.ID{2}, r.Summarised)
	})
	t.Run("SplicePrefix counts by the snapshot", func(t *testing.T) {
		h := tour(t, nil)
		at := h.Snapshot()
		require.NoError(t, h.SetSystem(convo.System("new"), convo.System("more")))
		n, err := h.SplicePrefix(at, 2, "s")
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		assert.Equal(t, []convo.ID{10, 11, 3, 4, 5, 6, 7, 8, 9}, idsOf(h.Snapshot()))
	})
	t.Run("RecordUsage", func(t *testing.T) {
		h := tour(t, bare())
		at := h.Snapshot()
		require.NoError(t, h.SetSystem(convo.System("a longer guide")))
		require.NoError(t, h.RecordUsage(at, convo.Usage{Input: at.Tokens() + 100}))
		assert.Equal(t, h.Snapshot().Tokens()+100, h.Tokens().Tokens)
	})
}

func TestSetSystem_Refuses(t *testing.T) {
	h := tour(t, nil)
	for name, msgs := range map[string][]convo.Message{
		"user":  {convo.System("s"), convo.User("u")},
		"empty": {convo.System("s"), convo.System("")},
	} {
		t.Run(name, func(t *testing.T) {
			unchanged(t, h, func() {
				err := h.SetSystem(msgs...)
				var fault *convo.MessageError
				require.ErrorAs(t, err, &fault)
				assert.Equal(t, 1, fault.Index)
			})
		})
	}
}

func TestSetEphemeral_Placement(t *testing.T) {
	c := callOf("c")
	for _, tt := range []struct {
		name string
		msgs []convo.Message
		edit func(h *convo.History)
		want []string
	}{
		{name: "empty", want: []string{"E", "F"}},
		{name: "system alone", msgs: []convo.Message{convo.System("s")}, want: []string{"s", "E", "F"}},
		{name: "newest is the user", msgs: []convo.Message{convo.System("s"), convo.User("u"), convo.Assistant("a"), convo.User("v")}, want: []string{"s", "u", "a", "v", "E", "F"}},
		{name: "run of users", msgs: []convo.Message{convo.User("u"), convo.Assistant("a"), convo.User("v"), convo.User("w")}, want: []string{"u", "a", "v", "w", "E", "F"}},
		{name: "in a tool round", msgs: []convo.Message{convo.User("u"), convo.Assistant("a"), convo.User("v"), convo.Assistant("b", c), convo.Result(c, "r")}, want: []string{"u", "a", "v", "E", "F", "b", "r"}},
		{name: "notes behind the user", msgs: []convo.Message{convo.User("u"), convo.System("m"), convo.User("v"), convo.System("n"), convo.System("o"), convo.Assistant("b"), convo.System("p")}, want: []string{"u", "m", "v", "n", "o", "E", "F", "b", "p"}},
		{name: "no user at all", msgs: []convo.Message{convo.System("s"), convo.Assistant("a"), convo.Assistant("b")}, want: []string{"s", "E", "F", "a", "b"}},
		{name: "behind the summary", msgs: []convo.Message{convo.System("s"), convo.User("u"), convo.Assistant("a"), convo.User("v")},
			edit: func(h *convo.History) { _, _ = h.SplicePrefix(h.Snapshot(), 3, "sum") }, want: []string{"s", "sum", "v", "E", "F"}},
		{name: "newest turn has no user left", msgs: []convo.Message{convo.Assistant("x"), convo.User("u"), convo.Assistant("a")},
			edit: func(h *convo.History) { _, _ = h.Rewind(1) }, want: []string{"E", "F", "x"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := historyOf(t, &convo.Options{Roles: convo.Relaxed()}, tt.msgs...)
			require.NoError(t, h.SetEphemeral(convo.User("E"), convo.User("F")))
			if tt.edit != nil {
				tt.edit(h)
			}
			got := textsOf(h.Snapshot())
			for i, text := range got {
				if strings.Contains(text, "\nsum\n") {
					got[i] = "sum"
				}
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestSetEphemeral_IsCountedAndNotSaved(t *testing.T) {
	h := tour(t, bare())
	before, length := h.Snapshot(), h.Len()
	data, err := json.Marshal(before)
	require.NoError(t, err)
	require.NoError(t, h.SetEphemeral(convo.User("rain"), convo.User("wind")))
	now := h.Snapshot()
	assert.Equal(t, before.Tokens()+8, now.Tokens())
	assert.Equal(t, now.Tokens(), h.Tokens().Tokens)
	assert.Equal(t, length, h.Len())
	assert.Equal(t, idsOf(before), idsOf(now))
	again, err := json.Marshal(now)
	require.NoError(t, err)
	assert.JSONEq(t, string(data), string(again))
	fork, err := convo.Restore(now, bare())
	require.NoError(t, err)
	assert.Equal(t, before.Tokens(), fork.Snapshot().Tokens())

	mustAppend(t, h, convo.Assistant("a"))
	require.NoError(t, h.Rollback(before))
	assert.Contains(t, textsOf(h.Snapshot()), "wind", "untouched by rollback")
	_, err = h.Rewind(99)
	require.NoError(t, err)
	assert.Equal(t, []string{"guide", "rain", "wind"}, textsOf(h.Snapshot()))

	require.NoError(t, h.SetEphemeral(convo.User("sun")))
	assert.Equal(t, []string{"guide", "sun"}, textsOf(h.Snapshot()), "replaced as a set")
	require.NoError(t, h.SetEphemeral())
	assert.Equal(t, len("guide"), h.Tokens().Tokens)
	assert.Contains(t, textsOf(now), "wind", "the snapshot stays")
}

func TestSetEphemeral_Refuses(t *testing.T) {
	h := tour(t, nil)
	for name, m := range map[string]convo.Message{
		"empty":  convo.User(""),
		"a call": {Role: convo.RoleUser, Parts: []convo.Part{callOf("c")}},
		"a role": {Role: "x", Parts: []convo.Part{convo.Text("x")}},
	} {
		t.Run(name, func(t *testing.T) {
			unchanged(t, h, func() {
				var fault *convo.MessageError
				assert.ErrorAs(t, h.SetEphemeral(convo.User("ok"), m), &fault)
			})
		})
	}
}

// Ephemeral messages may have any role, as long as their calls and results pair among
// themselves. A system message is shown where it stands.
func TestSetEphemeral_AnyRole(t *testing.T) {
	c := callOf("c1")
	h := tour(t, bare())
	before := h.Snapshot()
	set := []convo.Message{convo.System("night"), convo.Assistant("look", c), convo.Result(c, "dark"), convo.Assistant("so"), convo.User("rain")}
	require.NoError(t, h.SetEphemeral(set...))
	s := h.Snapshot()
	msgs := s.Messages()
	require.Len(t, msgs, before.Len()+len(set))
	for i, m := range set {
		assert.Equal(t, m.Role, msgs[9+i].Role)
		assert.Equal(t, m.Text(), msgs[9+i].Text())
	}
	assert.Equal(t, 1, h.Status().System)
	assert.Equal(t, before.Len(), h.Len())
	assert.Equal(t, s.Tokens()-before.Tokens(), s.Breakdown().Ephemeral)
	require.NoError(t, h.SetSystem(convo.System("another guide")))
	assert.Contains(t, textsOf(h.Snapshot()), "night")
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	assert.NotContains(t, string(data), "night")
	_, err = h.Compact(t.Context(), "")
	require.NoError(t, err)
	assert.Contains(t, textsOf(h.Snapshot()), "night", "part of the floor")

	for name, wrong := range map[string][]convo.Message{
		"an open call":             {convo.Assistant("", c)},
		"an open call before":      {convo.Assistant("", c), convo.User("u")},
		"a result of nothing":      {convo.Result(c, "r")},
		"a result of an entry's":   {convo.User("u"), convo.Result(callOf("c2"), "r")},
		"two results for one call": {convo.Assistant("", c), convo.Result(c, "r"), convo.Result(c, "r")},
	} {
		unchanged(t, h, func() {
			var pair *convo.PairError
			assert.ErrorAs(t, h.SetEphemeral(wrong...), &pair, name)
		})
	}
}

// However many ephemeral messages come and go, every real message is saved, and
// rolling back takes back the real messages alone.
func TestSetEphemeral_HidesNoMessage(t *testing.T) {
	for _, tt := range []struct{ before, now int }{{3, 1}, {2, 0}, {0, 3}, {5, 5}} {
		t.Run(fmt.Sprintf("%d then %d", tt.before, tt.now), func(t *testing.T) {
			inject := func(h *convo.History, n int) {
				var set []convo.Message
				for i := range n {
					set = append(set, convo.User("recalled "+itoa(i)))
				}
				require.NoError(t, h.SetEphemeral(set...))
			}
			h := historyOf(t, nil)
			inject(h, tt.before)
			mustAppend(t, h, convo.User("first"), convo.Assistant("one"))
			run := h.Snapshot()
			inject(h, tt.now)
			mustAppend(t, h, convo.User("second"))
			failed := h.Snapshot()
			mustAppend(t, h, convo.Assistant("two"))

			saved := textsOf(reload(t, h, nil).Snapshot())
			assert.Equal(t, []string{"first", "one", "second", "two"}, saved)
			assert.Len(t, h.Snapshot().Messages(), 4+tt.now)
			require.NoError(t, h.Rollback(failed))
			require.NoError(t, h.Rollback(run))
			assert.Equal(t, []string{"first", "one"}, textsOf(reload(t, h, nil).Snapshot()))
		})
	}
}

// What was dropped is neither kept in memory nor saved.
func TestHistory_FreesWhatWasDropped(t *testing.T) {
	const size = 100_000
	inUse := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := inUse()
	h := historyOf(t, windowOf(20*size, convo.Truncate{}))
	for range 100 {
		mustAppend(t, h, convo.User(strings.Repeat("u", size)), convo.Assistant(strings.Repeat("a", size)))
		s := prepare(t, h)
		require.NoError(t, h.RecordUsage(s, convo.Usage{Input: s.Tokens()}))
	}
	assert.Less(t, inUse()-before, int64(60*size), "200 of them were appended")
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	assert.Less(t, len(data), 21*size)
	runtime.KeepAlive(h)
}

// Without Options.Logger nothing is written to the process's own log.
func TestHistory_SilentWithoutALogger(t *testing.T) {
	var out bytes.Buffer
	logger, flags, writer := slog.Default(), log.Flags(), log.Writer()
	defer func() {
		slog.SetDefault(logger)
		log.SetFlags(flags)
		log.SetOutput(writer)
	}()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	log.Print("heard")
	require.Contains(t, out.String(), "heard")
	out.Reset()

	h := toolTurn(t, windowOf(1000, convo.Chain(convo.Summarize{With: broken(new(int)), Window: -1}, convo.Truncate{})), 20)
	requireNoFailure(t)(reportOf(h.Prepare(t.Context())))
	_, err := h.Append(convo.Assistant("refused"))
	require.Error(t, err)
	_, _, _ = (toolTurn(t, windowOf(0, nil), 2).Prepare(t.Context())) // nothing will ever be compacted
	assert.Empty(t, out.String())
}

func TestStatus_Times(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := tour(t, nil)
		appended := time.Now()
		assert.True(t, h.Status().LastAppend.Equal(appended))
		assert.True(t, h.Status().LastEdit.IsZero())
		last, _ := h.Snapshot().Find(9)
		assert.True(t, last.Time.Equal(appended))
		time.Sleep(time.Hour)
		apply(t, h, convo.Edit{Drop: []convo.ID{2}})
		assert.True(t, h.Status().LastAppend.Equal(appended))
		assert.True(t, h.Status().LastEdit.Equal(appended.Add(time.Hour)))
	})
}

// A Status says in one line how full the window is.
func TestStatus_String(t *testing.T) {
	for want, s := range map[string]convo.Status{
		"0 tokens: 0 entries in 0 turns":                                                               {},
		"1,200 tokens: 1 entry in 1 turn, 1 open call; compacts above 5,000":                           {Upper: 1200, Entries: 1, Turns: 1, OpenCalls: 1, High: 5000},
		"41,200 of 112,000 tokens (36 %): 30 entries in 15 turns, 2 open calls; compacts above 98,000": {Upper: 41_200, Limit: 112_000, High: 98_000, Entries: 30, Turns: 15, OpenCalls: 2},
		"90 of 80 tokens (112 %): 2 entries in 1 turn":                                                 {Upper: 90, Limit: 80, High: 80, Entries: 2, Turns: 1},
	} {
		assert.Equal(t, want, s.String())
		assert.Equal(t, want, fmt.Sprintf("%+v", s))
	}
}

// The model and its limits change in one step.
func TestHistory_SetModel(t *testing.T) {
	h := tour(t, windowOf(10_000, nil))
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 300}))
	mustAppend(t, h, convo.Assistant("x"))

	require.NoError(t, h.SetModel("small", convo.Limits{Window: 100, Reserve: -1}))
	assert.Equal(t, 100, h.Status().Limit)
	assert.Zero(t, h.Tokens().Measured, "nothing is known of it")
	_, r, err := h.Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome, "Prepare makes it fit")
	assert.LessOrEqual(t, h.Tokens().Upper, 100)

	require.NoError(t, h.SetModel("other", convo.Limits{}))
	assert.Equal(t, 100, h.Status().Limit, "zero limits keep those in force")
	require.NoError(t, h.SetModel("other", convo.Limits{Window: 200}))
	assert.Equal(t, 175, h.Status().Limit, "those of the same model may change too")

	unchanged(t, h, func() {
		var wrong *convo.ValueError
		require.ErrorAs(t, h.SetModel("large", convo.Limits{Window: -1}), &wrong)
		assert.Equal(t, "Limits.Window", wrong.Name)
		require.NoError(t, h.SetModel("other", convo.Limits{}), "as it is")
	})
	assert.Zero(t, h.Tokens().Measured, "the model stays with limits that are wrong")
}

// What is called in each turn reads a few of the entries of a long conversation, and not
// all: the newest ones, and those that a binary search meets.
func TestHistory_ReadsFewEntries(t *testing.T) {
	const few = 10
	n, samples := long.Or(1000, 4000), long.Or(50, 200)
	all := func(convo.Message) bool { return true }
	report := func(h *convo.History) {
		s := h.Snapshot()
		require.NoError(t, h.RecordUsage(s, convo.Usage{Input: s.Tokens()*11/10 + 100}))
	}
	grow := func(h *convo.History, n int) {
		for i := range n / 2 {
			mustAppend(t, h, convo.User("question "+itoa(i)), convo.Assistant("answer "+itoa(i)))
		}
	}
	pinned := func() *convo.History {
		h := historyOf(t, &convo.Options{Limits: convo.Limits{High: 1000}, Pin: all}, convo.System("guide"))
		grow(h, n)
		return h
	}
	for name, build := range map[string]func() *convo.History{
		"below the marks": func() *convo.History {
			h := historyOf(t, windowOf(1<<30, nil), convo.System("guide"))
			grow(h, n)
			report(h)
			return h
		},
		"a trigger that is not due": func() *convo.History {
			h := historyOf(t, &convo.Options{Strategy: convo.SlidingWindow{KeepLast: 1 << 20}})
			grow(h, n)
			return h
		},
		"all pinned, above high": pinned,
		"all pinned, above high, reported": func() *convo.History {
			h := pinned()
			report(h)
			return h
		},
		"all pinned, above high, reported long ago": func() *convo.History {
			h := historyOf(t, &convo.Options{Limits: convo.Limits{High: 1000}, Pin: all}, convo.System("guide"))
			grow(h, n/2)
			report(h)
			grow(h, n/2)
			return h
		},
		"all pinned, above high, edited after the report": func() *convo.History {
			h := pinned()
			report(h)
			require.NoError(t, h.Unpin(3))
			apply(t, h, convo.Edit{Drop: []convo.ID{3}})
			return h
		},
		"all pinned in one turn, above high": func() *convo.History {
			h := historyOf(t, &convo.Options{Limits: convo.Limits{High: 1000}, Pin: all}, convo.User("the task"))
			for i := range n / 2 {
				c := callOf("c" + itoa(i))
				mustAppend(t, h, convo.Assistant("", c), convo.Result(c, "done"))
			}
			report(h)
			mustAppend(t, h, convo.Assistant("all done"))
			return h
		},
		"all pinned, above the limit": func() *convo.History {
			h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 2000}, Pin: all}, convo.System("guide"))
			grow(h, n)
			return h
		},
		"a long system prompt": func() *convo.History {
			h := historyOf(t, &convo.Options{Limits: convo.Limits{High: 1000}, Pin: all})
			for i := range n {
				mustAppend(t, h, convo.System("rule "+itoa(i)))
			}
			grow(h, 20)
			report(h)
			return h
		},
	} {
		t.Run(name, func(t *testing.T) {
			for op, f := range map[string]func(h *convo.History) error{
				"Append":  func(h *convo.History) error { _, err := h.Append(convo.User("u"), convo.Assistant("a")); return err },
				"Prepare": func(h *convo.History) error { _, _, err := h.Prepare(t.Context()); return err },
				"a turn": func(h *convo.History) error {
					mustAppend(t, h, convo.User("u"))
					s, _, _ := h.Prepare(t.Context())
					mustAppend(t, h, convo.Assistant("a"))
					return h.RecordUsage(s, convo.Usage{Input: s.Tokens() * 12 / 10})
				},
				"Queue": func(h *convo.History) error {
					c := callOf("c")
					mustAppend(t, h, convo.User("u"), convo.Assistant("", c))
					require.NoError(t, h.Queue(convo.User("wait")))
					mustAppend(t, h, convo.Result(c, "r"), convo.Assistant("a")) // which is followed by the queue
					mustAppend(t, h, convo.Assistant("b"))
					return nil
				},
				"the getters": func(h *convo.History) error {
					_, _, _, _ = h.Status(), h.Tokens(), h.Len(), h.Snapshot()
					return nil
				},
				"PinLast":      func(h *convo.History) error { return h.PinLast() },
				"SetEphemeral": func(h *convo.History) error { return h.SetEphemeral(convo.User("a fact")) },
				"SetLimits":    func(h *convo.History) error { return h.SetLimits(convo.Limits{Window: 1 << 30}) },
				"SetMeta":      func(h *convo.History) error { return h.SetMeta("title", "") },
			} {
				fresh := func() *convo.History {
					h := build()
					_ = f(h) // what follows an edit or a report once does not count
					return h
				}
				h := fresh()
				last := h.Len()
				read := 0
				for i := range samples {
					if convo.Reads(h, (i*(last-300))/samples+7*(i%3), func() error { return f(h) }) {
						if read++; read > few {
							break
						}
						h = fresh()
					}
				}
				assert.LessOrEqual(t, read, few, "%s read more than %d of %d old entries", op, few, samples)
			}
		})
	}
}

var modelOps = flag.Int("convo.ops", 0, "operations of TestHistory_Model; 0: as many as the form of the tests has")
var modelSeed = flag.Uint64("convo.seed", 1, "seed of the first History of TestHistory_Model")

func modelOptions() modeltest.Options {
	return modeltest.Options{Operations: cmp.Or(*modelOps, long.Or(20_000, 60_000)), Seed: *modelSeed, CheckSaved: checkSaved}
}

func TestHistory_Model(t *testing.T) { modeltest.Run(t, modelOptions()) }

func FuzzHistory_Model(f *testing.F) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 3))
		data := make([]byte, 400)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = data[:min(len(data), 4000)] // longer than a case needs to be
		modeltest.Replay(t, data, modelOptions())
	})
}

// A panic in a part leaves the lock free and the view as it was, whatever changes it.
func TestHistory_PanicsInParts(t *testing.T) {
	image := convo.User("3", convo.NewMedia("image/png", []byte("x")))
	refused := &convo.PartError{Parts: []convo.RefusedPart{{ID: 4, Part: 1, Inside: -1}}, Err: errors.New("no")}
	for name, change := range map[string]func(h *convo.History) error{
		"Append": func(h *convo.History) error { _, err := h.Append(convo.Assistant("6")); return err },
		"AppendReply": func(h *convo.History) error {
			_, err := h.AppendReply(h.Snapshot(), convo.Reply{Messages: []convo.Message{convo.Assistant("6")}})
			return err
		},
		"AppendRows":   func(h *convo.History) error { _, err := h.AppendRows(convo.User("6")); return err },
		"Pin":          func(h *convo.History) error { return h.Pin(4) },
		"Unpin":        func(h *convo.History) error { return h.Unpin(2) },
		"PinLast":      func(h *convo.History) error { return h.PinLast() },
		"Queue":        func(h *convo.History) error { return h.Queue(convo.User("later")) },
		"Unqueue":      func(h *convo.History) error { h.Unqueue(); return nil },
		"SetSystem":    func(h *convo.History) error { return h.SetSystem(convo.System("other")) },
		"SetTools":     func(h *convo.History) error { return h.SetTools(convo.Tool{Name: "f"}) },
		"SetEphemeral": func(h *convo.History) error { return h.SetEphemeral(convo.User("now")) },
		"SetMeta":      func(h *convo.History) error { return h.SetMeta("title", "") },
		"SetModel":     func(h *convo.History) error { return h.SetModel("m", convo.Limits{}) },
		"SetLimits":    func(h *convo.History) error { return h.SetLimits(convo.Limits{Window: 5000}) },
		"RecordUsage":  func(h *convo.History) error { return h.RecordUsage(h.Snapshot(), convo.Usage{Input: 50}) },
		"Reload":       func(h *convo.History) error { _, _, err := h.Reload(t.Context()); return err },
		"Recover":      func(h *convo.History) error { _, _, err := h.Recover(t.Context(), h.Snapshot(), refused); return err },
	} {
		for _, shared := range []bool{false, true} {
			store := new(convotest.MemStore)
			h, err := convo.Open(t.Context(), store, "key", nil)
			require.NoError(t, err)
			mustAppend(t, h, convo.System("guide"), convo.User("2"), convo.Assistant("2"), image, convo.Assistant("4"))
			require.NoError(t, h.Pin(2))
			require.NoError(t, h.Save(t.Context()))
			other, err := convo.Open(t.Context(), store, "key", nil)
			require.NoError(t, err)
			mustAppend(t, other, convo.User("elsewhere"))
			require.NoError(t, other.Save(t.Context()))
			mustAppend(t, h, convo.User("5"))
			require.NoError(t, h.Queue(convo.User("queued")))
			if shared {
				h.Snapshot()
			}
			before, mend := convo.PartsOf(h), convo.BreakBudget(h)
			assert.Panics(t, func() { _ = change(h) }, name)
			mend()
			assert.True(t, reflect.DeepEqual(before, convo.PartsOf(h)), name)
			require.NoError(t, change(h), name)
			assert.False(t, reflect.DeepEqual(before, convo.PartsOf(h)), name)
			checkPairs(t, h.Snapshot())
		}
	}
}

const secret = "sk-live-4f9a8b7c6d5e"

// hide is an Options.Redact that removes the secret.
func hide(m convo.Message) convo.Message {
	for i, p := range m.Parts {
		switch p := p.(type) {
		case convo.Text:
			m.Parts[i] = convo.Text(strings.ReplaceAll(string(p), secret, "[hidden]"))
		case convo.ToolCall:
			p.Arguments = strings.ReplaceAll(p.Arguments, secret, "[hidden]")
			m.Parts[i] = p
		case convo.ToolResult:
			for k, part := range p.Parts {
				if s, ok := part.(convo.Text); ok {
					p.Parts[k] = convo.Text(strings.ReplaceAll(string(s), secret, "[hidden]"))
				}
			}
			m.Parts[i] = p
		}
	}
	return m
}

// The prompt quotes the first message that stays as Options.Redact shows it.
func TestRedact_Border(t *testing.T) {
	var prompts []string
	opts := windowOf(3000, convo.Summarize{With: convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		prompts = append(prompts, req.Prompt, req.Instruction)
		return convo.Summary{Text: "- so far"}, nil
	}), Window: -1, KeepLast: 2})
	opts.Redact = hide
	h := historyOf(t, opts, convo.User("the task"))
	for range 10 {
		mustAppend(t, h, convo.Assistant(strings.Repeat("a", 200)), convo.User("my key is "+secret+", use it"))
	}
	_, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	require.NotEmpty(t, prompts)
	for _, p := range prompts {
		assert.False(t, strings.Contains(p, secret), "a prompt holds the secret")
	}
}

// So it does where that message is a call.
func TestRedact_BorderCall(t *testing.T) {
	var prompts []string
	opts := windowOf(3000, convo.Summarize{With: convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		prompts = append(prompts, req.Prompt, req.Instruction)
		return convo.Summary{Text: "- so far"}, nil
	}), Window: -1, KeepLast: 2})
	opts.Redact = hide
	h := historyOf(t, opts, convo.User("the task"))
	for i := range 10 {
		c := callOf(fmt.Sprint("c", i))
		c.Arguments = `{"key":"` + secret + `"}`
		mustAppend(t, h, convo.Assistant("", c), convo.Result(c, strings.Repeat("a", 200)))
	}
	_, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	for _, p := range prompts {
		assert.False(t, strings.Contains(p, secret), "a prompt holds the secret")
	}
}

// Names of what came up while a summary was written are those that Options.Redact shows.
func TestRedact_NamesOfWhatCameUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := windowOf(4000, convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
			time.Sleep(time.Second)
			return convo.Summary{Text: "- " + prose(200)}, nil
		}), Window: -1})
		opts.Limits.High, opts.Limits.Soft, opts.Limits.Low = 3500, 2000, 1000
		opts.Redact = hide
		h := historyOf(t, opts, convo.User("the task"), convo.Assistant("the key is "+secret))
		for range 11 {
			mustAppend(t, h, convo.User("go on"), convo.Assistant(strings.Repeat("a", 200)))
		}
		require.True(t, h.CompactInBackground(t.Context()))
		time.Sleep(time.Millisecond)
		mustAppend(t, h, convo.User("and now?"), convo.Assistant("I use "+secret+" again"))
		r, err := h.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, convo.OutcomeApplied, r.Outcome, "%v", r)
		sum, _ := h.Snapshot().Summary()
		assert.NotContains(t, sum.Names, secret)
	})
}

// A Prepare whose ctx has ended leaves the edit that waits for the next one.
func TestCacheTTL_EndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _, calls := waiting(t, time.Minute)
		time.Sleep(2 * time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, _, err := h.Prepare(ctx)
		t.Log(err)
		_, r, err := h.Prepare(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeApplied, r.Outcome, "%v", r)
		assert.EqualValues(t, 1, calls.Load(), "the summary was written already")
	})
}

// What left unread is in the report of the edit when it is applied, and only there.
func TestCacheTTL_UnreadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unread := 0
		opts := windowOf(4000, convo.Summarize{With: canned("- so far"), MaxResult: 64, Window: -1})
		opts.Limits.High, opts.Limits.Soft, opts.Limits.Low = 3500, 2000, 1000
		opts.CacheTTL = time.Minute
		opts.OnCompaction = func(r convo.Report) { unread += r.Unread; t.Log(r) }
		h := toolTurn(t, opts, 20)
		require.True(t, h.CompactInBackground(t.Context()))
		r, err := h.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, convo.OutcomeReady, r.Outcome)
		assert.Zero(t, r.Unread, "nothing has left yet")
		time.Sleep(2 * time.Minute)
		_, r, err = h.Prepare(t.Context())
		require.NoError(t, err)
		require.Equal(t, convo.OutcomeApplied, r.Outcome)
		assert.Equal(t, r.Unread, unread, "counted once")
	})
}

// Only the very first message of the user is called that.
func TestReport_FirstMessage(t *testing.T) {
	opts := windowOf(2000, convo.Truncate{})
	opts.Roles = convo.Relaxed()
	h := historyOf(t, opts, convo.User("the task"), convo.User(strings.Repeat("d", 600)))
	for range 5 {
		mustAppend(t, h, convo.Assistant(strings.Repeat("a", 200)), convo.User("go on"))
	}
	r, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	t.Log(r)
	require.Contains(t, textsOf(h.Snapshot()), "the task")
	assert.NotContains(t, fmt.Sprint(r), "the user's first")
}

// Extract is never shown an image.
func TestExtract_MediaAreUnread(t *testing.T) {
	for _, usage := range []bool{false, true} {
		opts := windowOf(6000, convo.Summarize{})
		opts.Overheads.Media = func(convo.Media) int { return 500 }
		h := historyOf(t, opts, convo.User("the task"), convo.Assistant("yes"))
		for i := range 4 {
			mustAppend(t, h, convo.Message{Role: convo.RoleUser, Parts: []convo.Part{convo.Text(fmt.Sprint("look ", i)), convo.Media{MIME: "image/png", URL: fmt.Sprint("https://x.test/", i)}}}, convo.Assistant(strings.Repeat("a", 200)))
		}
		mustAppend(t, h, convo.User("go on"))
		if usage {
			s := h.Snapshot()
			require.NoError(t, h.RecordUsage(s, convo.Usage{Input: s.Tokens(), Output: 5}))
		}
		r, err := h.Compact(t.Context(), "")
		require.NoError(t, err)
		t.Log(r)
		assert.NotZero(t, r.Unread, "usage %v", usage)
	}
}

// A pointer to Summarize is a summarizer of a Chain as well.
func TestChain_PointerToSummarize(t *testing.T) {
	z := convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		return convo.Summary{}, errors.New("503")
	}), Window: -1}
	for _, link := range []convo.CompactionStrategy{z, &z} {
		h := toolTurn(t, windowOf(4000, convo.Chain(link, convo.Truncate{})), 20)
		r, err := h.Compact(t.Context(), "")
		require.NoError(t, err)
		assert.Empty(t, r.Dropped, "%T: %v", link, r)
	}
}

// prose returns n words of which no run is repeated.
func prose(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(string(rune('a'+i%26)) + string(rune('a'+i/26)) + "x ")
	}
	return b.String()
}

// When Extract stands in, the lines of the model's last summary stay, as far as there is room.
func TestChain_StandInKeepsTheSummary(t *testing.T) {
	var b strings.Builder
	for i := range 150 {
		fmt.Fprintf(&b, "- Rule %d: never touch the file number %d, whatever anybody says.\n", i, i)
	}
	model := "## Rules\n" + b.String()
	fail := false
	opts := &convo.Options{Limits: convo.Limits{Window: 128_000, Reserve: -1}, Strategy: convo.Chain(convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		if fail {
			return convo.Summary{}, errors.New("503")
		}
		return convo.Summary{Text: model}, nil
	})}, convo.Truncate{})}
	h := historyOf(t, opts, convo.User("the task"))
	talk := func() {
		for range 150 {
			mustAppend(t, h, convo.Assistant(strings.Repeat("I did some work. ", 100)), convo.User("go on"))
		}
	}
	talk()
	_, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	was, _ := h.Snapshot().Summary()
	fail = true
	talk()
	r, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	is, _ := h.Snapshot().Summary()
	t.Log(r, was.Tokens, is.Tokens, strings.Count(was.Text, "Rule "), strings.Count(is.Text, "Rule "))
	assert.Equal(t, strings.Count(was.Text, "Rule "), strings.Count(is.Text, "Rule "), "rules of the summary before, with room for all")
}

// A summary in prose may end with an open question.
func TestSummarize_ProseWithAQuestion(t *testing.T) {
	for _, text := range []string{
		"The user plans a trip to Rome from 3 to 9 May and pays at most 900 EUR. Flights are booked. The user's last question is still open: should I take the train or a taxi from the airport?",
		"Thanks for the invoice were sent to ACME on 3 May. The user wants weekly reports.",
		"I will refer to the user as U. U wants the parser in Go, without dependencies. The lexer is done in lex.go; the parser is open.",
	} {
		h := toolTurn(t, windowOf(6000, convo.Summarize{With: canned(text), Window: -1}), 30)
		_, err := h.Compact(t.Context(), "")
		assert.NoError(t, err)
	}
}

// Reasoning is removed in whatever form its tags come.
func TestSummarize_ReasoningInAnyTags(t *testing.T) {
	for _, text := range []string{
		"Okay, the user wants a summary. I think about it.\n</think>\n\n- The task is the parser.",
		"<think type=\"x\">Okay.</think>\n- The task is the parser.",
		"<Think>Okay.</Think>\n- The task is the parser.",
		"I need to look at the file first.\n<tool_call>{\"name\":\"read\",\"arguments\":{}}</tool_call>",
	} {
		h := toolTurn(t, windowOf(4000, convo.Summarize{With: canned(text), Window: -1}), 20)
		if _, err := h.Compact(t.Context(), ""); err != nil {
			continue
		}
		sum, _ := h.Snapshot().Summary()
		assert.NotContains(t, strings.ToLower(sum.Text), "think")
		assert.NotContains(t, sum.Text, "tool_call")
	}
}

// Without a limit, a Chain drops nothing unread after a summarizer that works.
func TestChain_NoLimit(t *testing.T) {
	opts := bare()
	opts.Limits = convo.Limits{High: 3000, Low: 1500}
	opts.Strategy = convo.Chain(convo.Summarize{With: canned("- so far"), KeepLast: 30}, convo.Truncate{})
	h := toolTurn(t, opts, 30)
	_, r, err := h.Prepare(t.Context())
	require.NoError(t, err)
	require.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Empty(t, r.Dropped, "%v", r)
}

// The summary before is shown as Options.Redact shows it, and so are its names.
func TestRedact_PreviousSummary(t *testing.T) {
	var prompt string
	opts := windowOf(4000, convo.Summarize{With: convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		prompt = req.Prompt + req.Previous
		return convo.Summary{Text: "- so far, the key is " + secret}, nil
	}), Window: -1})
	h := toolTurn(t, opts, 20)
	_, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	opts.Redact = hide
	h, err = convo.Restore(h.Snapshot(), opts)
	require.NoError(t, err)
	mustAppend(t, h, convo.User("go on"))
	for i := range 20 {
		c := callOf(fmt.Sprint("d", i))
		mustAppend(t, h, convo.Assistant("", c), convo.Result(c, strings.Repeat("x", 92)))
	}
	_, err = h.Compact(t.Context(), "")
	require.NoError(t, err)
	assert.Contains(t, prompt, "so far, the key is [hidden]")
	assert.NotContains(t, prompt, secret)
}

// MaxTokens also bounds the summary of a stand-in.
func TestChain_StandInMaxTokens(t *testing.T) {
	opts := &convo.Options{Limits: convo.Limits{Window: 32_000}, Strategy: convo.Chain(convo.Summarize{MaxTokens: 300, With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		return convo.Summary{}, errors.New("503")
	})}, convo.Truncate{})}
	h := historyOf(t, opts, convo.User("the task"))
	for i := range 300 {
		mustAppend(t, h, convo.Assistant(strings.Repeat(fmt.Sprint("I did step ", i, ". "), 12)), convo.User(fmt.Sprint("go on with src/file_", i, ".go")))
	}
	_, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	sum, _ := h.Snapshot().Summary()
	assert.LessOrEqual(t, convo.Heuristic{}.CountTokens(sum.Text), 300)
	assert.NotEmpty(t, sum.Text)
}

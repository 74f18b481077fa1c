package convo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

func TestApply_EditErrors(t *testing.T) {
	sum := func(ranges ...convo.Range) *convo.Summary { return &convo.Summary{Text: "s", Covers: ranges} }
	for _, tt := range []struct {
		name   string
		edit   convo.Edit
		id     convo.ID
		callID string
	}{
		{"drops part of an exchange", convo.Edit{Drop: []convo.ID{2, 3, 4}}, 3, ""},
		{"drops a result alone", convo.Edit{Drop: []convo.ID{5}}, 3, ""},
		{"drops a system entry", convo.Edit{Drop: []convo.ID{1, 2}}, 1, ""},
		{"drops a pinned exchange", convo.Edit{Drop: []convo.ID{6}}, 6, ""},
		{"drops a user message of the newest turn", convo.Edit{Drop: []convo.ID{9}}, 9, ""},
		{"drops the newest exchange", convo.Edit{Drop: []convo.ID{10, 11}}, 10, ""},
		{"drops what is not there", convo.Edit{Drop: []convo.ID{2, 99}}, 99, ""},
		{"drops ID 0", convo.Edit{Drop: []convo.ID{0, 2}}, 0, ""},
		{"drops one that went before", convo.Edit{Drop: []convo.ID{7}}, 7, ""},
		{"clears what is not there", convo.Edit{Clear: []convo.Clear{{ID: 99}}}, 99, ""},
		{"clears a system entry", convo.Edit{Clear: []convo.Clear{{ID: 1}}}, 1, ""},
		{"clears a user message", convo.Edit{Clear: []convo.Clear{{ID: 2}}}, 2, ""},
		{"clears the calls", convo.Edit{Clear: []convo.Clear{{ID: 3}}}, 3, ""},
		{"clears a result of another entry", convo.Edit{Clear: []convo.Clear{{ID: 4, CallID: "c2"}}}, 4, "c2"},
		{"clears in the newest exchange", convo.Edit{Clear: []convo.Clear{{ID: 11}}}, 11, ""},
		{"clears in a pinned exchange", convo.Edit{Clear: []convo.Clear{{ID: 13}}}, 13, ""},
		{"blank summary", convo.Edit{Drop: []convo.ID{2}, Summary: &convo.Summary{Text: " \n"}}, 0, ""},
		{"covers from 0", convo.Edit{Summary: sum(convo.Range{First: 0, Last: 2})}, 0, ""},
		{"covers backwards", convo.Edit{Summary: sum(convo.Range{First: 3, Last: 2})}, 0, ""},
		{"covers what was not given", convo.Edit{Summary: sum(convo.Range{First: 1, Last: 99})}, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tour(t, nil)
			_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{7}})
			require.NoError(t, err)
			d := callOf("d")
			mustAppend(t, h, convo.Assistant("", d), convo.Result(d, "r"))
			if tt.id == 13 {
				mustAppend(t, h, convo.Assistant("", d), convo.Result(d, "r"), convo.Assistant("x"), convo.User("v"))
				require.NoError(t, h.Pin(12))
			}
			require.NoError(t, h.Pin(6))
			at := h.Snapshot()
			unchanged(t, h, func() {
				r, err := h.Apply(at, tt.edit)
				var edit *convo.EditError
				require.ErrorAs(t, err, &edit)
				assert.Equal(t, tt.id, edit.ID)
				assert.Equal(t, tt.callID, edit.CallID)
				assert.NotEmpty(t, edit.Rule)
				assert.Equal(t, convo.OutcomeFailed, r.Outcome)
				assert.Equal(t, err, r.Cause)
				_, err = at.With(tt.edit)
				require.ErrorAs(t, err, &edit, "With keeps the same rules")
			})
		})
	}
}

func apply(t *testing.T, h *convo.History, e convo.Edit) convo.Report {
	t.Helper()
	r, err := h.Apply(h.Snapshot(), e)
	require.NoError(t, err)
	require.Equal(t, convo.OutcomeApplied, r.Outcome)
	return r
}

// A summary that its model had not finished stands for nothing.
func TestApply_UnfinishedSummary(t *testing.T) {
	h := tour(t, nil)
	at := h.Snapshot()
	for stop := convo.StopLength; stop <= convo.StopRefused+1; stop++ {
		for _, text := range []string{"They went", ""} {
			e := convo.Edit{Drop: []convo.ID{2}, Summary: &convo.Summary{Text: text, Stop: stop}}
			unchanged(t, h, func() {
				_, err := h.Apply(at, e)
				require.ErrorAs(t, err, new(*convo.RefusedError))
				_, err = at.With(e)
				require.ErrorAs(t, err, new(*convo.RefusedError))
			})
		}
	}
}

func TestApply_ZeroEditDeclines(t *testing.T) {
	h := tour(t, nil)
	unchanged(t, h, func() {
		r, err := h.Apply(h.Snapshot(), convo.Edit{})
		require.ErrorIs(t, err, convo.ErrNoGain)
		assert.EqualError(t, err, "convo: the edit is empty; name entries to drop, results to clear, entries to rewrite, or a summary")
		assert.Equal(t, convo.OutcomeDeclined, r.Outcome)
		assert.True(t, r.Fits)
	})
}

func TestApply_DoesNotKeepTheEdit(t *testing.T) {
	h := tour(t, nil)
	e := convo.Edit{Drop: []convo.ID{6, 2}, Clear: []convo.Clear{{ID: 5}, {ID: 4}}, Summary: &convo.Summary{Text: "s"}}
	apply(t, h, e)
	assert.Equal(t, convo.Edit{Drop: []convo.ID{6, 2}, Clear: []convo.Clear{{ID: 5}, {ID: 4}}, Summary: &convo.Summary{Text: "s"}}, e)
}

func TestApply_Report(t *testing.T) {
	opts := bare()
	opts.Limits = convo.Limits{Window: 300, Reserve: -1}
	h := tour(t, opts)
	require.NoError(t, h.SetEphemeral(convo.User("rain")))
	before := h.Snapshot()
	require.NoError(t, h.RecordUsage(before, convo.Usage{Input: before.Tokens()}))
	r := apply(t, h, convo.Edit{Drop: []convo.ID{6}, Summary: &convo.Summary{Text: "s", Usage: convo.Usage{Output: 3}}})
	now := h.Snapshot()
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, convo.ReasonManual, r.Reason)
	assert.NoError(t, r.Cause)
	assert.Equal(t, len(before.Messages()), r.MessagesBefore)
	assert.Equal(t, len(now.Messages()), r.MessagesAfter)
	assert.Equal(t, before.Tokens(), r.TokensBefore, "measured")
	assert.Equal(t, h.Tokens().Upper, r.TokensAfter)
	assert.False(t, r.Fits)
	assert.Equal(t, convo.Usage{Output: 3}, r.Usage)
	assert.GreaterOrEqual(t, r.Duration.Nanoseconds(), int64(0))
	assert.InDelta(t, float64(len("guide"))/float64(before.Tokens()), r.PrefixKept, 1e-9, "system entries, then another summary")

	r = apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 4, Text: "x"}}})
	assert.Equal(t, []convo.ID{4}, r.Cleared)
	assert.True(t, r.Fits)
	assert.Zero(t, h.Status().Appended)
	assert.False(t, h.Status().LastEdit.IsZero())
}

func TestApply_ObserverAndLoggerAreTold(t *testing.T) {
	var seen []convo.Report
	var log bytes.Buffer
	opts := &convo.Options{
		OnCompaction: func(r convo.Report) {
			seen = append(seen, r)
			for i := range r.Dropped {
				r.Dropped[i] = 0
			}
			panic("dropped")
		},
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	h := tour(t, opts)
	r := apply(t, h, convo.Edit{Drop: []convo.ID{2}})
	assert.Equal(t, []convo.ID{2}, r.Dropped, "the observer has a copy")
	_, err := h.SplicePrefix(h.Snapshot(), 5, "secret words")
	require.NoError(t, err)
	_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{99}})
	require.Error(t, err)
	_, err = h.Apply(h.Snapshot(), convo.Edit{})
	require.ErrorIs(t, err, convo.ErrNoGain)
	_, err = h.Apply(nil, convo.Edit{Drop: []convo.ID{6}})
	require.Error(t, err)
	var outcomes []convo.Outcome
	for _, r := range seen {
		outcomes = append(outcomes, r.Outcome)
	}
	assert.Equal(t, []convo.Outcome{convo.OutcomeApplied, convo.OutcomeApplied, convo.OutcomeFailed, convo.OutcomeDeclined, convo.OutcomeStale}, outcomes)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	require.Len(t, lines, 5)
	for i, level := range []string{"INFO", "INFO", "WARN", "DEBUG", "DEBUG"} {
		assert.Contains(t, lines[i], "level="+level)
	}
	assert.NotContains(t, log.String(), "secret")
}

// panicky is a log handler that panics.
type panicky struct{ slog.Handler }

func (panicky) Enabled(context.Context, slog.Level) bool  { return true }
func (panicky) Handle(context.Context, slog.Record) error { panic("log") }

func TestApply_PanickingLoggerIsDropped(t *testing.T) {
	h := tour(t, &convo.Options{Logger: slog.New(panicky{slog.DiscardHandler})})
	apply(t, h, convo.Edit{Drop: []convo.ID{2}})
	assert.Equal(t, 8, h.Len())
}

func TestSplicePrefix(t *testing.T) {
	for _, tt := range []struct {
		name    string
		n       int
		pin     []convo.ID
		want    []convo.ID
		dropped int
	}{
		{"negative", -1, nil, []convo.ID{1, 2, 3, 4, 5, 6, 7, 8, 9}, 0},
		{"smallest", math.MinInt, nil, []convo.ID{1, 2, 3, 4, 5, 6, 7, 8, 9}, 0},
		{"zero", 0, nil, []convo.ID{1, 2, 3, 4, 5, 6, 7, 8, 9}, 0},
		{"system counts and stays", 1, nil, []convo.ID{1, 2, 3, 4, 5, 6, 7, 8, 9}, 0},
		{"one", 2, nil, []convo.ID{1, 3, 4, 5, 6, 7, 8, 9}, 1},
		{"into the calls", 3, nil, []convo.ID{1, 3, 4, 5, 6, 7, 8, 9}, 1},
		{"into the results", 4, nil, []convo.ID{1, 3, 4, 5, 6, 7, 8, 9}, 1},
		{"the whole exchange", 5, nil, []convo.ID{1, 6, 7, 8, 9}, 4},
		{"into a turn", 7, nil, []convo.ID{1, 8, 9}, 6},
		{"all but the floor", 9, nil, []convo.ID{1, 9}, 7},
		{"clamped", 1000, nil, []convo.ID{1, 9}, 7},
		{"largest", math.MaxInt, nil, []convo.ID{1, 9}, 7},
		{"pinned stays", 9, []convo.ID{4, 8}, []convo.ID{1, 3, 4, 5, 8, 9}, 3},
		{"all pinned", 3, []convo.ID{2}, []convo.ID{1, 2, 3, 4, 5, 6, 7, 8, 9}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tour(t, nil)
			require.NoError(t, h.Pin(tt.pin...))
			at := h.Snapshot()
			mustAppend(t, h, convo.Assistant("later"))
			dropped, err := h.SplicePrefix(at, tt.n, "s")
			require.NoError(t, err)
			assert.Equal(t, tt.dropped, dropped)
			want := append(tt.want[:len(tt.want):len(tt.want)], 10)
			assert.Equal(t, want, idsOf(h.Snapshot()))
			_, ok := h.Snapshot().Summary()
			assert.Equal(t, tt.dropped > 0, ok, "when nothing goes the slot is left alone")
			assert.Equal(t, rawTotal(h.Snapshot()), h.Snapshot().Tokens())
		})
	}
}

func TestSplicePrefix_EmptySummaryLeavesTheSlot(t *testing.T) {
	for _, blank := range []string{"", " \t\n"} {
		h := tour(t, nil)
		_, err := h.SplicePrefix(h.Snapshot(), 2, "one")
		require.NoError(t, err)
		n, err := h.SplicePrefix(h.Snapshot(), 4, blank)
		require.NoError(t, err)
		assert.Equal(t, 3, n)
		sum, ok := h.Snapshot().Summary()
		require.True(t, ok)
		assert.Equal(t, "one", sum.Text)
	}
}

func TestWith_IsPure(t *testing.T) {
	spilled := 0
	h := tour(t, &convo.Options{Tokenizer: byBytes, Spill: func(context.Context, convo.ToolResult) (string, error) { spilled++; return "", nil }})
	require.NoError(t, h.Pin(8))
	at := h.Snapshot()
	e := convo.Edit{Drop: []convo.ID{2, 6}, Clear: []convo.Clear{{ID: 4}}, Summary: &convo.Summary{Text: "s"}}
	picture := pictureOf(t, at)
	var next *convo.Snapshot
	unchanged(t, h, func() {
		var err error
		next, err = at.With(e)
		require.NoError(t, err)
	})
	assert.Equal(t, picture, pictureOf(t, at))
	assert.Zero(t, spilled)
	apply(t, h, e)
	assert.Equal(t, idsOf(h.Snapshot()), idsOf(next))
	assert.Equal(t, textsOf(h.Snapshot()), textsOf(next))
	assert.Equal(t, h.Snapshot().Tokens(), next.Tokens())
	assert.Equal(t, h.Snapshot().Pinned(), next.Pinned())
	_, err := h.Apply(next, convo.Edit{Drop: []convo.ID{7}})
	assert.ErrorIs(t, err, convo.ErrStale, "it belongs to none")

	again, err := next.With(convo.Edit{Drop: []convo.ID{7}})
	require.NoError(t, err)
	assert.Equal(t, next.Len()-1, again.Len())
	fork, err := convo.Restore(again, nil)
	require.NoError(t, err)
	mustAppend(t, fork, convo.Assistant("on"))
	var zero convo.Snapshot
	_, err = zero.With(convo.Edit{Summary: &convo.Summary{Text: "s"}})
	require.NoError(t, err)
}

// Two writers splice by the same snapshot. The second is refused: it would drop what
// the first left.
func TestSplicePrefix_TwoWriters(t *testing.T) {
	for _, summary := range []string{"second", ""} {
		h := historyOf(t, nil)
		for range 7 {
			mustAppend(t, h, convo.User("u"), convo.Assistant("a"))
		}
		at := h.Snapshot()
		mustAppend(t, h, convo.User("new"), convo.Assistant("newer"))
		n, err := h.SplicePrefix(at, 12, "first")
		require.NoError(t, err)
		require.Equal(t, 12, n)
		unchanged(t, h, func() {
			_, err := h.SplicePrefix(at, 12, summary)
			require.ErrorIs(t, err, convo.ErrStale)
		})
		assert.Equal(t, []convo.ID{13, 14, 15, 16}, idsOf(h.Snapshot()))
	}
}

// A tokenizer that panics with ErrStale does not make the edit stale.
func TestApply_ErrStaleOfATokenizer(t *testing.T) {
	opts, stale := bare(), false
	opts.Tokenizer = convo.TokenizerFunc(func(s string) int {
		if stale {
			panic(convo.ErrStale)
		}
		return len(s)
	})
	h := toolTurn(t, opts, 3)
	stale = true
	r, err := h.Apply(h.Snapshot(), convo.Edit{Summary: &convo.Summary{Text: "x"}})
	require.ErrorIs(t, err, convo.ErrStale)
	assert.Equal(t, convo.OutcomeFailed, r.Outcome)
}

// rewriteOf returns an edit that rewrites one entry.
func rewriteOf(id convo.ID, parts ...convo.Part) convo.Edit {
	return convo.Edit{Rewrite: []convo.Rewrite{{ID: id, Parts: parts}}}
}

// forgetting returns an edit that rewrites one entry and keeps nothing of it.
func forgetting(id convo.ID, parts ...convo.Part) convo.Edit {
	return convo.Edit{Rewrite: []convo.Rewrite{{ID: id, Parts: parts, Forget: true}}}
}

func find(t *testing.T, h *convo.History, id convo.ID) convo.Entry {
	t.Helper()
	e, ok := h.Snapshot().Find(id)
	require.True(t, ok)
	return e
}

// sealedTalk is a conversation with sealed reasoning, an image, two results in one
// message and open calls at the end:
//
//	1 system | 2 user, image | 3 reasoning, calls c and d | 4 results of c and d | 5 assistant || 6 user | 7 call c
func sealedTalk(t *testing.T, opts *convo.Options) *convo.History {
	t.Helper()
	c, d := callOf("c"), callOf("d")
	c.Minted = true
	asks := convo.Message{Role: convo.RoleAssistant, Author: "Ann", Meta: "m", Origin: convo.Origin{Format: "f", Model: "x"}, Parts: []convo.Part{
		convo.Reasoning{Text: "one", Signature: "s1"}, convo.Text("let me see"), convo.Reasoning{Text: "two", Encrypted: "e2"}, c, d,
	}}
	answers := convo.Message{Role: convo.RoleTool, Parts: []convo.Part{
		convo.ToolResult{CallID: "c", Parts: []convo.Part{convo.Text(strings.Repeat("road ", 20))}},
		convo.ToolResult{CallID: "d", IsError: true, Parts: []convo.Part{convo.Text("no map")}},
	}}
	return historyOf(t, opts, convo.System("guide"), convo.User("look", convo.NewMedia("image/png", []byte("x"))), asks, answers,
		convo.Assistant("there"), convo.User("how far"), convo.Assistant("", c))
}

func TestRewrite_Parts(t *testing.T) {
	c, d := callOf("c"), callOf("d")
	minted := c
	minted.Minted = true
	one, two := convo.Reasoning{Text: "one", Signature: "s1"}, convo.Reasoning{Text: "two", Encrypted: "e2"}
	results := func(first, second string) []convo.Part {
		return []convo.Part{
			convo.ToolResult{CallID: "c", Name: "tool", Parts: []convo.Part{convo.Text(first)}},
			convo.ToolResult{CallID: "d", Name: "tool", IsError: true, Parts: []convo.Part{convo.Text(second)}},
		}
	}
	for _, tt := range []struct {
		name  string
		id    convo.ID
		parts []convo.Part
		want  []convo.Part // nil: the same
	}{
		{"an image less", 2, []convo.Part{convo.Text("look")}, nil},
		{"invalid UTF-8", 2, []convo.Part{convo.Text("a\xff")}, []convo.Part{convo.Text("a\uFFFD")}},
		{"another text beside the calls", 3, []convo.Part{one, convo.Text("x"), two, c, d}, []convo.Part{one, convo.Text("x"), two, minted, d}},
		{"calls that were left out", 3, []convo.Part{convo.Text("x")}, []convo.Part{convo.Text("x"), minted, d}},
		{"nothing but the calls", 3, nil, []convo.Part{minted, d}},
		{"calls in another place", 3, []convo.Part{c, convo.Text("x"), d}, []convo.Part{minted, convo.Text("x"), d}},
		{"one seal less", 3, []convo.Part{two}, []convo.Part{two, minted, d}},
		{"reasoning without a seal", 3, []convo.Part{convo.Reasoning{Text: "other"}}, []convo.Part{convo.Reasoning{Text: "other"}, minted, d}},
		{"both results", 4, results("a", "b"), nil},
		{"results without names", 4, []convo.Part{convo.ToolResult{}, convo.ToolResult{IsError: true}}, []convo.Part{
			convo.ToolResult{CallID: "c", Name: "tool"}, convo.ToolResult{CallID: "d", Name: "tool", IsError: true},
		}},
		{"an answer", 5, []convo.Part{convo.Text("x"), convo.NewMedia("image/png", []byte("y"))}, nil},
		{"the newest user message", 6, []convo.Part{convo.Text("how far is it, in all the detail there is?")}, nil},
		{"open calls", 7, []convo.Part{convo.Text("x")}, []convo.Part{convo.Text("x"), minted}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := sealedTalk(t, nil)
			before := find(t, h, tt.id)
			edit := rewriteOf(tt.id, tt.parts...)
			next, err := h.Snapshot().With(edit)
			require.NoError(t, err)
			r := apply(t, h, edit)
			assert.Equal(t, []convo.ID{tt.id}, r.Rewritten)
			want := before.Message
			if want.Parts = tt.want; want.Parts == nil {
				want.Parts = tt.parts
			}
			after := find(t, h, tt.id)
			assert.Equal(t, want, after.Message)
			planned, _ := next.Find(tt.id)
			assert.Equal(t, after, planned, "as With said")
			assert.Equal(t, before.Turn, after.Turn)
			assert.Equal(t, before.Time, after.Time)
			assert.Zero(t, after.Missing)
			s := h.Snapshot()
			assert.Equal(t, rawTotal(s), s.Tokens())
			checkSaved(t, h, nil)

			left := r.Originals()
			require.Len(t, left, 1)
			assert.Equal(t, before, left[0])
			require.NoError(t, h.Undo(r))
			assert.Equal(t, before, find(t, h, tt.id))
			mustAppend(t, h, convo.Result(minted, "r"))
		})
	}
}

func TestRewrite_CopiesParts(t *testing.T) {
	h := sealedTalk(t, nil)
	inner := []convo.Part{convo.Text("short")}
	parts := []convo.Part{convo.ToolResult{CallID: "c", Parts: inner}, convo.ToolResult{CallID: "d", IsError: true}}
	apply(t, h, rewriteOf(4, parts...))
	inner[0], parts[0] = convo.Text("changed"), nil
	assert.Equal(t, "short", find(t, h, 4).Message.Text())
}

func TestRewrite_EditErrors(t *testing.T) {
	c, d := callOf("c"), callOf("d")
	text := convo.Text("x")
	with := func(change func(c *convo.ToolCall)) convo.Edit {
		other := d
		change(&other)
		return rewriteOf(3, c, other)
	}
	for _, tt := range []struct {
		name string
		edit convo.Edit
		rule string
	}{
		{"a system entry", rewriteOf(1, text), "names a system entry; SetSystem replaces them"},
		{"what is not there", rewriteOf(99, text), "names an entry that the snapshot does not hold; Snapshot.All lists those that it holds"},
		{"what is pinned", rewriteOf(5, text), "rewrites a pinned exchange; Unpin it first"},
		{"twice", convo.Edit{Rewrite: []convo.Rewrite{{ID: 2, Parts: []convo.Part{text}}, {ID: 6, Parts: []convo.Part{text}}, {ID: 2, Parts: []convo.Part{text}}}}, "rewrites an entry twice"},
		{"what is cleared", convo.Edit{Clear: []convo.Clear{{ID: 4}}, Rewrite: []convo.Rewrite{{ID: 4, Parts: []convo.Part{convo.ToolResult{}, convo.ToolResult{IsError: true}}}}}, "rewrites an entry and clears a result in it"},
		{"to nothing", rewriteOf(2), "leaves an entry empty; put a text in it, or drop its exchange"},
		{"to empty text", rewriteOf(2, convo.Text("")), "leaves an entry empty; put a text in it, or drop its exchange"},
		{"a part of another role", rewriteOf(2, text, convo.Reasoning{}), "rewrites part 1 of an entry: reasoning belongs in an assistant message; leave it out"},
		{"a nil part", rewriteOf(2, nil), "rewrites part 0 of an entry: nil part; leave it out"},
		{"text beside results", rewriteOf(4, convo.ToolResult{}, text), "rewrites part 1 of an entry: text in a tool message must be inside a ToolResult"},
		{"a call more", rewriteOf(3, c, d, callOf("e")), "adds a tool call; the entry has 2"},
		{"a call in an entry without", rewriteOf(2, text, c), "rewrites part 1 of an entry: a tool call belongs in an assistant message"},
		{"a call less", rewriteOf(3, c), "leaves out a tool call; name all of them, or none to keep them"},
		{"calls in another order", rewriteOf(3, d, c), `changes the tool calls; call 0 must be "c"`},
		{"another call", with(func(c *convo.ToolCall) { c.ID = "e" }), `changes the tool calls; call 1 must be "d"`},
		{"a call without its ID", with(func(c *convo.ToolCall) { c.ID = "" }), `changes the tool calls; call 1 must be "d"`},
		{"another tool", with(func(c *convo.ToolCall) { c.Name = "e" }), `changes the tool of a call to "e"; it must be "tool"`},
		{"other arguments", with(func(c *convo.ToolCall) { c.Arguments = "{ }" }), "changes the arguments of a call"},
		{"another seal", rewriteOf(3, convo.Reasoning{Text: "changed", Signature: "s1"}), "puts in sealed reasoning that the entry does not hold, block 0; its maker would refuse it: keep it as it is, or leave it out"},
		{"seals in another order", rewriteOf(3, convo.Reasoning{Text: "two", Encrypted: "e2"}, convo.Reasoning{Text: "one", Signature: "s1"}), "puts in sealed reasoning that the entry does not hold, block 1; its maker would refuse it: keep it as it is, or leave it out"},
		{"one content for two results", rewriteOf(4, text), "does not say which of the 2 results it rewrites; name all of them as ToolResult parts"},
		{"a result less", rewriteOf(4, convo.ToolResult{CallID: "c"}), "changes the results; the entry has 2, and the rewrite 1 parts"},
		{"results in another order", rewriteOf(4, convo.ToolResult{CallID: "d", IsError: true}, convo.ToolResult{CallID: "c"}), `changes which call a result answers; result 0 must be of call "c" of tool "tool"`},
		{"a result of another tool", rewriteOf(4, convo.ToolResult{Name: "e"}, convo.ToolResult{IsError: true}), `changes which call a result answers; result 0 must be of call "c" of tool "tool"`},
		{"an error more", rewriteOf(4, convo.ToolResult{IsError: true}, convo.ToolResult{IsError: true}), "changes whether a result is an error; IsError must be false"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := sealedTalk(t, nil)
			require.NoError(t, h.Pin(5))
			at := h.Snapshot()
			unchanged(t, h, func() {
				r, err := h.Apply(at, tt.edit)
				var wrong *convo.EditError
				require.ErrorAs(t, err, &wrong)
				assert.Equal(t, tt.rule, wrong.Rule)
				assert.NotZero(t, wrong.ID)
				assert.Equal(t, convo.OutcomeFailed, r.Outcome)
				_, err = at.With(tt.edit)
				require.ErrorAs(t, err, &wrong, "With keeps the same rules")
			})
		})
	}
}

// With checks the edit of a snapshot that was not checked, and does not panic.
func TestRewrite_WithoutAHistory(t *testing.T) {
	text := convo.Text("x")
	odd := convo.NewSnapshot([]convo.Message{
		convo.User("u"), {Role: "odd", Parts: []convo.Part{text}}, {Role: convo.RoleTool, Parts: []convo.Part{text, convo.ToolResult{CallID: "c"}, nil}},
		{Role: convo.RoleTool}, {Role: convo.RoleAssistant, Parts: []convo.Part{callOf("c"), callOf("c")}}, convo.User(""),
	})
	for id := range convo.ID(8) {
		for _, parts := range [][]convo.Part{nil, {nil}, {text}, {convo.ToolResult{}}, {callOf("c"), callOf("c")}, {(*convo.ToolResult)(nil)}} {
			next, err := odd.With(rewriteOf(id, parts...))
			if err != nil {
				require.ErrorAs(t, err, new(*convo.EditError))
				continue
			}
			_, _ = next.With(convo.Edit{Clear: []convo.Clear{{ID: id}}})
			_, _ = next.With(convo.Edit{Clear: []convo.Clear{{ID: id, Forget: true}}})
			_, _ = next.With(forgetting(id, text))
		}
	}
	next, err := new(convo.Snapshot).With(rewriteOf(1, text))
	require.Error(t, err)
	assert.Nil(t, next)
}

func TestRewrite_Stale(t *testing.T) {
	for name, since := range map[string]func(h *convo.History) convo.Edit{
		"cleared":   func(*convo.History) convo.Edit { return convo.Edit{Clear: []convo.Clear{{ID: 4}}} },
		"rewritten": func(*convo.History) convo.Edit { return rewriteOf(4, convo.Text("other")) },
		"dropped":   func(*convo.History) convo.Edit { return convo.Edit{Drop: []convo.ID{3, 4, 5}} },
	} {
		t.Run(name, func(t *testing.T) {
			h := tour(t, nil)
			at := h.Snapshot()
			r := apply(t, h, since(h))
			unchanged(t, h, func() {
				r, err := h.Apply(at, convo.Edit{Drop: []convo.ID{2}, Rewrite: rewriteOf(4, convo.Text("x")).Rewrite})
				var stale *convo.StaleError
				require.ErrorAs(t, err, &stale)
				assert.Equal(t, convo.ID(4), stale.ID)
				assert.Equal(t, convo.OutcomeStale, r.Outcome)
			})
			require.NoError(t, h.Undo(r))
			_, err := h.Apply(at, rewriteOf(4, convo.Text("x")))
			require.NoError(t, err, "it is again what the snapshot shows")
		})
	}
}

// An edit rewrites what it was made for, also if that is restored only while the edit is applied.
func TestRewrite_RestoredMeanwhile(t *testing.T) {
	restore := func() {}
	h := tour(t, &convo.Options{Tokenizer: convo.TokenizerFunc(func(text string) int {
		if text == "y" {
			restore()
		}
		return len(text)
	})})
	at := h.Snapshot()
	edit := convo.Edit{Rewrite: slices.Concat(forgetting(4, find(t, h, 4).Message.Parts...).Rewrite, rewriteOf(6, convo.Text("y")).Rewrite)}
	cleared := apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 4}}})
	restore = sync.OnceFunc(func() { assert.NoError(t, h.Undo(cleared)) })
	r, err := h.Apply(at, edit)
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{6}, r.Rewritten, "entry 4 is again what the edit makes of it")
}

func TestRewrite_PinnedMeanwhile(t *testing.T) {
	h := tour(t, nil)
	at := h.Snapshot()
	require.NoError(t, h.Pin(6))
	edit := convo.Edit{Rewrite: []convo.Rewrite{{ID: 6, Parts: []convo.Part{convo.Text("x")}}, {ID: 8, Parts: []convo.Part{convo.Text("y")}}}}
	r, err := h.Apply(at, edit)
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{6}, r.Spared)
	assert.Equal(t, []convo.ID{8}, r.Rewritten)
	assert.Equal(t, "there", find(t, h, 6).Message.Text())

	_, err = h.Apply(at, rewriteOf(6, convo.Text("x")))
	require.ErrorIs(t, err, convo.ErrNoGain, "nothing but what is kept")
}

// What is already there is no change, and nothing is reported.
func TestRewrite_ToTheSame(t *testing.T) {
	h := sealedTalk(t, nil)
	unchanged(t, h, func() {
		for _, id := range []convo.ID{2, 3, 4} {
			for _, edit := range []convo.Edit{rewriteOf(id, find(t, h, id).Message.Parts...), forgetting(id, find(t, h, id).Message.Parts...)} {
				r, err := h.Apply(h.Snapshot(), edit)
				require.ErrorIs(t, err, convo.ErrNoGain)
				assert.Empty(t, r.Rewritten)
			}
		}
	})
}

// A rewrite of an entry that is dropped as well is ignored, once it is checked.
func TestRewrite_Dropped(t *testing.T) {
	h := tour(t, nil)
	r := apply(t, h, convo.Edit{Drop: []convo.ID{6}, Rewrite: rewriteOf(6, convo.Text("x")).Rewrite})
	assert.Empty(t, r.Rewritten)
	assert.Equal(t, "there", r.Originals()[0].Message.Text())
}

// What is dropped and to be forgotten comes back as it was to be rewritten or cleared.
func TestRewrite_DroppedAndForgotten(t *testing.T) {
	clear := convo.Edit{Clear: []convo.Clear{{ID: 4}}}
	for name, tt := range map[string]struct {
		edit convo.Edit
		want string
	}{
		"rewrite":  {convo.Edit{Rewrite: forgetting(4, convo.Text("x")).Rewrite}, "x"},
		"clear":    {convo.Edit{Clear: []convo.Clear{{ID: 4, CallID: "c1", Forget: true}}}, "[result of tool cleared: 100 bytes]"},
		"text":     {convo.Edit{Clear: []convo.Clear{{ID: 4, Forget: true}, {ID: 4, Text: "x"}, {ID: 4, Text: "y", Forget: true}}}, "y"},
		"both":     {convo.Edit{Rewrite: forgetting(4, convo.Text("x")).Rewrite, Clear: []convo.Clear{{ID: 4, Forget: true}}}, "x"},
		"one only": {convo.Edit{Rewrite: rewriteOf(4, convo.Text("x")).Rewrite, Clear: []convo.Clear{{ID: 4, Forget: true}}}, "[result of tool cleared: 100 bytes]"},
	} {
		for _, cleared := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", cleared), func(t *testing.T) {
				h := tour(t, &convo.Options{Spill: func(context.Context, convo.ToolResult) (string, error) { return "", nil }})
				if cleared {
					apply(t, h, clear)
				}
				tt.edit.Drop = []convo.ID{3, 4, 5}
				r := apply(t, h, tt.edit)
				assert.Equal(t, tt.edit.Drop, r.Dropped)
				assert.Empty(t, r.Rewritten)
				assert.Empty(t, r.Cleared)
				assert.Equal(t, tt.want, r.Originals()[1].Message.Text())
				assert.Zero(t, h.Status().Originals)
				require.NoError(t, h.Undo(r))
				assert.Equal(t, tt.want, find(t, h, 4).Message.Text())
				assert.Equal(t, rawTotal(h.Snapshot()), h.Snapshot().Tokens())
			})
		}
	}
}

// What is forgotten does not stay in memory through a text that was cut out of it.
func TestRewrite_ForgetsTheMemory(t *testing.T) {
	const kept = "kept"
	opts := bare()
	opts.Spill = func(context.Context, convo.ToolResult) (string, error) { panic("called") }
	h := historyOf(t, opts)
	c := callOf("c")
	text := func() convo.Text { return convo.Text(strings.Repeat(kept+" secret ", 20)) }
	mustAppend(t, h, convo.User(string(text())), convo.Assistant("", c), convo.Result(c, string(text())), convo.Assistant("a"),
		convo.User("q"), convo.Assistant("", c), convo.Result(c, string(text())), convo.Assistant("a"), convo.User("q"))
	first := string(find(t, h, 1).Message.Parts[0].(convo.Text))
	second := string(find(t, h, 3).Message.ToolResults()[0].Parts[0].(convo.Text))
	third := string(find(t, h, 7).Message.ToolResults()[0].Parts[0].(convo.Text))
	apply(t, h, convo.Edit{
		Rewrite: append(forgetting(1, convo.Text(first[:len(kept)])).Rewrite, forgetting(3, convo.Text(second[:len(kept)])).Rewrite...),
		Clear:   []convo.Clear{{ID: 7, Text: third[:len(kept)], Forget: true}},
	})
	assert.NotSame(t, unsafe.StringData(first), unsafe.StringData(find(t, h, 1).Message.Text()))
	for id, was := range map[convo.ID]string{3: second, 7: third} {
		text := string(find(t, h, id).Message.ToolResults()[0].Parts[0].(convo.Text))
		require.Equal(t, kept, text)
		assert.NotSame(t, unsafe.StringData(was), unsafe.StringData(text))
	}
}

// A strategy may not rewrite the floor, nor make the view larger, although one
// entry may grow. By hand, one may.
func TestRewrite_ByAStrategy(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit convo.Edit
		want any // nil: applied
	}{
		{"the newest user message", rewriteOf(9, convo.Text("x")), new(*convo.EditError)},
		{"a larger view", rewriteOf(8, convo.Text("a mile and a bit more")), new(*convo.RefusedError)},
		{"a larger entry", convo.Edit{Rewrite: []convo.Rewrite{{ID: 8, Parts: []convo.Part{convo.Text("a mile and more")}}, {ID: 4, Parts: []convo.Part{convo.Text("x")}}}}, nil},
	} {
		for _, chained := range []bool{false, true} {
			t.Run(fmt.Sprint(tt.name, chained), func(t *testing.T) {
				var s convo.CompactionStrategy = convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { return tt.edit, nil })
				if chained {
					s = convo.Chain(s)
				}
				h := tour(t, windowOf(0, s))
				r, err := h.Compact(t.Context(), "")
				if tt.want == nil {
					require.NoError(t, err)
					assert.Equal(t, []convo.ID{4, 8}, r.Rewritten)
					return
				}
				require.ErrorAs(t, err, tt.want)
				r = apply(t, h, tt.edit)
				assert.Len(t, r.Rewritten, 1)
			})
		}
	}
}

// A rewritten entry is summarised as it stands. Its original serves Left.
func TestRewrite_IsSummarisedAsItStands(t *testing.T) {
	for name, opts := range map[string]*convo.Options{"kept": {}, "not kept": {KeepOriginals: -1}} {
		t.Run(name, func(t *testing.T) {
			with := new(reader)
			opts.Strategy = convo.Summarize{With: with, KeepTokens: -1, MaxTokens: 20, Window: -1}
			h := tour(t, opts)
			apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 4}}})
			apply(t, h, rewriteOf(4, convo.Text("the short way")))
			apply(t, h, rewriteOf(6, convo.Text("over there")))
			apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 4}}})
			assert.Equal(t, "[result of tool cleared: 13 bytes]", find(t, h, 4).Message.Text())
			r := compactAll(t, h)
			assert.NotContains(t, with.shown, "road road")
			assert.Contains(t, with.shown, "over there")
			left := r.Originals()
			if name == "kept" {
				assert.Contains(t, with.shown, "the short way")
				assert.Zero(t, r.Unread)
				assert.Contains(t, left[2].Message.Text(), "road road")
				assert.Equal(t, "there", left[4].Message.Text())
			}
		})
	}
}

// A result next to a rewritten result keeps its original and its reference.
func TestRewrite_OneOfTwoResults(t *testing.T) {
	var spilled []string
	opts := bare()
	opts.Spill = func(_ context.Context, r convo.ToolResult) (string, error) {
		spilled = append(spilled, r.CallID+": "+r.Text()[:4])
		return "f", nil
	}
	with := new(reader)
	opts.Strategy = convo.Summarize{With: with, KeepTokens: -1, MaxTokens: 20, Window: -1}
	h := sealedTalk(t, opts)
	apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 4, CallID: "c"}}})
	parts := find(t, h, 4).Message.Parts
	missing := find(t, h, 4).Missing
	require.Positive(t, missing)
	second := parts[1].(convo.ToolResult)
	second.Parts = []convo.Part{convo.Text(strings.Repeat("a map that is quite long ", 5))}
	parts[1] = second
	apply(t, h, rewriteOf(4, parts...))
	assert.Equal(t, missing, find(t, h, 4).Missing, "of the first result")
	apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 4, CallID: "d"}}})
	assert.Equal(t, []string{"c: road", "d: a ma"}, spilled, "as it was rewritten")
	mustAppend(t, h, convo.Result(callOf("c"), "r"))
	compactAll(t, h)
	assert.Contains(t, with.shown, "road road")
	assert.Contains(t, with.shown, "quite long")
	assert.NotContains(t, with.shown, "no map")
}

// A result that is cut after it was rewritten is cut to a piece of what it was
// rewritten to.
func TestRewrite_ThenCut(t *testing.T) {
	c := callOf("c")
	opts := windowOf(1000, convo.Truncate{})
	opts.MaxResult = 600
	h := historyOf(t, opts, convo.User("u"), convo.Assistant("", c), convo.Result(c, strings.Repeat("old ", 100)))
	apply(t, h, rewriteOf(3, convo.Text(strings.Repeat("new ", 300))))
	assert.Equal(t, strings.Repeat("new ", 300), find(t, h, 3).Message.Text(), "MaxResult is for Append")
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	require.Equal(t, []convo.ID{3}, r.Shortened)
	assert.Contains(t, find(t, h, 3).Message.Text(), "new")
	assert.NotContains(t, find(t, h, 3).Message.Text(), "old")
	assert.Contains(t, r.Originals()[0].Message.Text(), "old", "as it was appended")
}

// With Forget nothing is kept of what an entry held, in memory or in the report,
// and Undo leaves the entry as it is.
func TestRewrite_Forget(t *testing.T) {
	opts := bare()
	opts.Spill = func(context.Context, convo.ToolResult) (string, error) { panic("called") }
	h := historyOf(t, opts)
	c := callOf("c")
	texts := appendWatched(t, h, 1, func(_ int, text string) convo.Message { return convo.User(text) })
	mustAppend(t, h, convo.Assistant("", c))
	texts = append(texts, appendWatched(t, h, 1, func(_ int, text string) convo.Message { return convo.Result(c, text) })...)
	mustAppend(t, h, convo.Assistant("a"))
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 100}))
	apply(t, h, rewriteOf(3, convo.Text("r")))
	require.Equal(t, 2, inMemory(texts))

	edit := convo.Edit{Rewrite: append(forgetting(1, convo.Text("u")).Rewrite, forgetting(3, convo.Text("r")).Rewrite...)}
	before := h.Tokens()
	r := apply(t, h, edit)
	assert.Zero(t, inMemory(texts))
	assert.Equal(t, []convo.ID{1, 3}, r.Rewritten)
	assert.Zero(t, h.Status().Originals)
	assert.NotEqual(t, before, h.Tokens())
	left := r.Originals()
	require.Len(t, left, 2)
	assert.Equal(t, "u", left[0].Message.Text())
	assert.Equal(t, "r", left[1].Message.Text())
	require.NoError(t, h.Undo(r))
	assert.Equal(t, "u", find(t, h, 1).Message.Text())
	assert.Equal(t, "r", find(t, h, 3).Message.Text())
	runtime.KeepAlive(r)
	runtime.KeepAlive(h)
}

// An older report does not bring back what was forgotten since.
func TestRewrite_ForgetOutlivesUndo(t *testing.T) {
	h := tour(t, nil)
	first := apply(t, h, rewriteOf(6, convo.Text("one")))
	second := apply(t, h, forgetting(6, convo.Text("two")))
	require.NoError(t, h.Undo(second))
	require.NoError(t, h.Undo(first))
	assert.Equal(t, "two", find(t, h, 6).Message.Text())

	// What only lost its original looks the same to the model.
	h = tour(t, nil)
	apply(t, h, rewriteOf(6, convo.Text("one")))
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 300}))
	before := h.Tokens()
	r := apply(t, h, forgetting(6, convo.Text("one")))
	assert.Equal(t, before, h.Tokens())
	assert.InDelta(t, 1, r.PrefixKept, 0)
	assert.Equal(t, "one", r.Originals()[0].Message.Text())
}

// A turn that was rewritten can be taken back, and a rollback to a snapshot in which
// the entry was floor brings it back as it was.
func TestRewrite_TakenBack(t *testing.T) {
	h := tour(t, nil)
	apply(t, h, rewriteOf(9, convo.Text("x")))
	taken, err := h.Rewind(1)
	require.NoError(t, err)
	assert.Equal(t, 1, taken)

	h = tour(t, nil)
	at := h.Snapshot()
	apply(t, h, rewriteOf(6, convo.Text("x")))
	mustAppend(t, h, convo.Assistant("a"))
	require.NoError(t, h.Rollback(at))
	assert.Equal(t, "x", find(t, h, 6).Message.Text(), "the edit changed no floor")

	at = h.Snapshot()
	r := apply(t, h, rewriteOf(9, convo.Text("y")))
	require.NoError(t, h.Rollback(at))
	assert.Equal(t, "let us go", find(t, h, 9).Message.Text())
	require.ErrorIs(t, h.Undo(r), convo.ErrStale)
}

// A fork shares rewritten entries, and neither History sees what the other does.
func TestRewrite_Fork(t *testing.T) {
	h := tour(t, nil)
	apply(t, h, rewriteOf(6, convo.Text("x")))
	fork, err := convo.Restore(h.Snapshot(), nil)
	require.NoError(t, err)
	apply(t, fork, rewriteOf(8, convo.Text("y")))
	assert.Equal(t, "a mile", find(t, h, 8).Message.Text())
	r := apply(t, fork, convo.Edit{Drop: []convo.ID{6}})
	assert.Equal(t, "there", r.Originals()[0].Message.Text(), "with its original")

	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	assert.NotContains(t, string(data), "there")
}

// In a Chain the later link wins, and what a link forgets stays forgotten.
func TestChain_Rewrites(t *testing.T) {
	link := func(e convo.Edit) convo.CompactionStrategy {
		return convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { return e, nil })
	}
	clearAll := convo.Edit{Clear: []convo.Clear{{ID: 4}}}
	clearFirst := convo.Edit{Clear: []convo.Clear{{ID: 4, CallID: "c"}}}
	both := func(first, second string) []convo.Part {
		return []convo.Part{
			convo.ToolResult{CallID: "c", Parts: []convo.Part{convo.Text(first)}},
			convo.ToolResult{CallID: "d", IsError: true, Parts: []convo.Part{convo.Text(second)}},
		}
	}
	for _, tt := range []struct {
		name               string
		links              []convo.Edit
		want, read, before string
		rewritten          bool
	}{
		{"a later rewrite", []convo.Edit{rewriteOf(4, both("one", "two")...), rewriteOf(4, both("x", "y")...)}, "x\ny", "x\ny", "road", true},
		{"a rewrite of what was cleared", []convo.Edit{clearAll, rewriteOf(4, both("x", "y")...)}, "x\ny", "x\ny", "road", true},
		{"a clear of what was rewritten", []convo.Edit{rewriteOf(4, both(strings.Repeat("x", 50), strings.Repeat("y", 50))...), clearAll}, "[result of tool cleared: 100 bytes]\n[result of tool cleared: 6 bytes]", "road", "road", false},
		{"a clear of one of two", []convo.Edit{rewriteOf(4, both(strings.Repeat("x", 50), strings.Repeat("y", 50))...), clearFirst}, "[result of tool cleared: 50 bytes]\n" + strings.Repeat("y", 50), "xxx", "road", true},
		{"forgotten, then rewritten", []convo.Edit{forgetting(4, both("one", "two")...), rewriteOf(4, both("x", "y")...)}, "x\ny", "x\ny", "x\ny", true},
		{"cleared and forgotten, then rewritten", []convo.Edit{{Clear: []convo.Clear{{ID: 4, CallID: "c", Forget: true}}}, rewriteOf(4, both("x", "y")...)}, "x\ny", "x\ny", "x\ny", true},
		{"forgotten, then cleared in part", []convo.Edit{forgetting(4, both(strings.Repeat("x", 50), strings.Repeat("y", 50))...), clearFirst}, "[result of tool cleared: 50 bytes]\n" + strings.Repeat("y", 50), "xxx", "[result of tool cleared: 50 bytes]\ny", true},
		{"forgotten, then cleared", []convo.Edit{forgetting(4, both(strings.Repeat("x", 50), strings.Repeat("y", 50))...), clearAll}, "[result of tool cleared: 100 bytes]\n[result of tool cleared: 6 bytes]", "xxx", "[result of tool cleared: ", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var read string
			links := []convo.CompactionStrategy{}
			for _, e := range tt.links {
				links = append(links, link(e))
			}
			looks := convo.StrategyFunc(func(ctx context.Context, _ *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
				e, ok := g.Original(ctx, 4)
				require.True(t, ok)
				read = e.Message.Text()
				return convo.Edit{}, nil
			})
			h := sealedTalk(t, windowOf(0, convo.Chain(append(links, looks)...)))
			r, err := h.Compact(t.Context(), "")
			require.NoError(t, err)
			assert.Equal(t, tt.want, find(t, h, 4).Message.Text())
			assert.Contains(t, read, tt.read)
			assert.Equal(t, tt.rewritten, len(r.Rewritten) == 1)
			assert.Equal(t, !tt.rewritten, slices.Equal(r.Cleared, []convo.ID{4}))
			assert.Contains(t, r.Originals()[0].Message.Text(), tt.before)
			for _, l := range r.Links[:len(tt.links)] {
				assert.Equal(t, convo.OutcomeApplied, l.Outcome)
			}
		})
	}
}

// What has become floor since a strategy saw it is not rewritten.
func TestRewrite_FloorMeanwhile(t *testing.T) {
	var h *convo.History
	var outcomes []convo.Outcome
	calls := 0
	opts := windowOf(0, convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		if calls++; calls > 1 {
			return convo.Edit{}, convo.ErrNoGain
		}
		_, err := h.Rewind(2)
		return rewriteOf(6, convo.Text("x")), err
	}))
	opts.OnCompaction = func(r convo.Report) { outcomes = append(outcomes, r.Outcome) }
	h = tour(t, opts)
	_, err := h.Compact(t.Context(), "")
	require.ErrorIs(t, err, convo.ErrNoGain)
	assert.Equal(t, []convo.Outcome{convo.OutcomeStale, convo.OutcomeDeclined}, outcomes)
	assert.Equal(t, "there", find(t, h, 6).Message.Text())
}

// An entry is the same after it was saved and opened, also where an empty result
// stands beside one that was forgotten.
func TestRewrite_ForgetBesideAnEmptyResult(t *testing.T) {
	ctx := t.Context()
	var store convotest.MemStore
	h := historyOf(t, bare())
	require.NoError(t, h.Attach(ctx, &store, "k"))
	c, d := callOf("c"), callOf("d")
	both := convo.Result(c, "secret")
	both.Parts = append(both.Parts, convo.Result(d, "").Parts...)
	mustAppend(t, h, convo.User("q"), convo.Assistant("", c, d), both, convo.Assistant("a"))
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 100}))
	both.Parts[0] = convo.ToolResult{Parts: []convo.Part{convo.Text("gone")}}
	apply(t, h, forgetting(3, both.Parts...))
	require.NoError(t, h.Save(ctx))
	opened, err := convo.Open(ctx, &store, "k", bare())
	require.NoError(t, err)
	assert.Equal(t, find(t, opened, 3), find(t, h, 3))
	assert.Equal(t, opened.Tokens(), h.Tokens())
}

// A rollback that takes back an entry which an edit has rewritten undoes the edit.
func TestRewrite_RolledBack(t *testing.T) {
	h := historyOf(t, bare())
	mustAppend(t, h, convo.User("1"), convo.Assistant("2"), convo.User("3"))
	at := h.Snapshot()
	mustAppend(t, h, convo.Assistant("4"), convo.User("5"))
	apply(t, h, convo.Edit{Drop: []convo.ID{1, 2}, Rewrite: rewriteOf(4, convo.Text("four")).Rewrite})
	require.NoError(t, h.Rollback(at))
	assert.Equal(t, []string{"1 1", "2 2", "3 3"}, linesOf(h))
}

// A rewrite of one result leaves what a summarizer reads of the others.
func TestRewrite_OfOneResultOfThree(t *testing.T) {
	var read convo.Message
	looks := convo.StrategyFunc(func(ctx context.Context, _ *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		e, ok := g.Original(ctx, 3)
		require.True(t, ok)
		read = e.Message
		return convo.Edit{}, nil
	})
	calls := []convo.ToolCall{callOf("a"), callOf("b"), callOf("c")}
	h := historyOf(t, windowOf(0, looks), convo.User("u"), convo.Assistant("", calls...))
	long := func(s string) []convo.Part { return []convo.Part{convo.Text(strings.Repeat(s, 100))} }
	mustAppend(t, h, convo.Message{Role: convo.RoleTool, Parts: []convo.Part{
		convo.ToolResult{CallID: "a", Parts: long("A")}, convo.ToolResult{CallID: "b", Parts: long("B")}, convo.ToolResult{CallID: "c", Parts: long("C")},
	}}, convo.Assistant("so"), convo.User("v"), convo.Assistant("w"))
	_, err := h.Apply(h.Snapshot(), convo.Edit{Clear: []convo.Clear{{ID: 3}}})
	require.NoError(t, err)
	parts := slices.Clone(find(t, h, 3).Message.Parts)
	parts[1] = convo.ToolResult{CallID: "b", Parts: []convo.Part{convo.Text("new")}}
	_, err = h.Apply(h.Snapshot(), rewriteOf(3, parts...))
	require.NoError(t, err)
	mustAppend(t, h, convo.User("x"))
	_, err = h.Compact(t.Context(), "")
	require.ErrorIs(t, err, convo.ErrNoGain)
	require.Len(t, read.Parts, 3)
	for i, want := range []string{strings.Repeat("A", 100), "new", strings.Repeat("C", 100)} {
		assert.Equal(t, want, read.Parts[i].(convo.ToolResult).Text())
	}
}

// A rewrite of one result leaves the view and the references of the others, and the
// reference of the rewritten result is not used again.
func TestRewrite_References(t *testing.T) {
	var spilled []string
	opts := bare()
	opts.MaxResult = 100
	opts.Spill = func(_ context.Context, r convo.ToolResult) (string, error) {
		spilled = append(spilled, r.CallID+": "+r.Text()[:3])
		return fmt.Sprint("ref-", len(spilled)), nil
	}
	result := func(id string, n int) convo.ToolResult {
		return convo.ToolResult{CallID: id, Parts: []convo.Part{convo.Text(strings.Repeat(id, n))}}
	}
	h := historyOf(t, opts, convo.User("u"), convo.Assistant("", callOf("a"), callOf("b"), callOf("c")),
		convo.Message{Role: convo.RoleTool, Parts: []convo.Part{result("a", 300), result("b", 90), result("c", 300)}},
		convo.Assistant("so"), convo.User("v"), convo.Assistant("w"))
	require.Equal(t, []string{"a: aaa", "c: ccc"}, spilled, "cut by Append")
	texts := func() (out []string) {
		for _, p := range find(t, h, 3).Message.Parts {
			out = append(out, p.(convo.ToolResult).Text())
		}
		return out
	}
	want := texts()
	want[2] = strings.Repeat("new", 30)
	parts := find(t, h, 3).Message.Parts
	parts[2] = convo.ToolResult{CallID: "c", Parts: []convo.Part{convo.Text(want[2])}}
	apply(t, h, rewriteOf(3, parts...))
	require.Equal(t, want, texts())
	apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 3}}})
	assert.Equal(t, []string{"a: aaa", "c: ccc", "b: bbb", "c: new"}, spilled, "each original once")
	for i, ref := range []string{"ref-1", "ref-3", "ref-4"} {
		assert.Contains(t, texts()[i], ref)
	}
}

package convo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reader is a summarizer that remembers what it was shown.
type reader struct{ shown string }

func (r *reader) Summarize(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
	r.shown += req.Prompt
	return convo.Summary{Text: "sum"}, nil
}

// clearedTalk returns a conversation in which Append has cut one result and an edit
// has cleared that one and another.
func clearedTalk(t *testing.T, opts *convo.Options) *convo.History {
	t.Helper()
	return clearedIn(t, opts, new(convotest.MemStore))
}

// clearedIn is like clearedTalk, and saves in a Store under the key "k".
func clearedIn(t *testing.T, opts *convo.Options, store convo.Store) *convo.History {
	t.Helper()
	opts.MaxResult = 200
	c, d := callOf("c"), callOf("d")
	h, err := convo.Open(t.Context(), store, "k", opts)
	require.NoError(t, err)
	mustAppend(t, h, convo.User("u"), convo.Assistant("", c, d),
		convo.Result(c, strings.Repeat("long ", 400)+"middle "+strings.Repeat("long ", 400)), convo.Result(d, "short enough"),
		convo.Assistant(strings.Repeat("a ", 500)), convo.User("v"), convo.Assistant("b"), convo.User("w"))
	e, _ := h.Snapshot().Find(3)
	require.NotContains(t, e.Message.Text(), "middle")
	apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 3}, {ID: 4}}})
	return h
}

// compactAll replaces all but the floor by a summary.
func compactAll(t *testing.T, h *convo.History) convo.Report {
	t.Helper()
	r, err := h.Compact(t.Context(), "f")
	require.NoError(t, err)
	require.Equal(t, convo.OutcomeApplied, r.Outcome)
	return r
}

// A summarizer reads what was appended, and never a marker.
func TestOriginals_AreSummarised(t *testing.T) {
	with := new(reader)
	opts := windowOf(0, convo.Summarize{With: with, KeepTokens: -1, MaxTokens: 20, Window: -1})
	h := clearedTalk(t, opts)
	assert.Equal(t, h.Status().Originals, 4007+len("short enough")+2*len("c"+"tool"))
	r := compactAll(t, h)
	assert.Contains(t, with.shown, "middle")
	assert.Contains(t, with.shown, "short enough")
	assert.NotContains(t, with.shown, "[cut: ")
	assert.NotContains(t, with.shown, "cleared: ")
	assert.Zero(t, r.Unread)
	assert.Zero(t, h.Status().Originals, "the entries have left the view")

	left := r.Originals()
	assert.Equal(t, []convo.ID{2, 3, 4, 5, 7}, idsOfEntries(left))
	assert.Contains(t, left[1].Message.Text(), "middle")
	assert.Zero(t, left[1].Missing)
	left[1].Message.Parts[0] = convo.Text("changed")
	assert.Contains(t, r.Originals()[1].Message.Text(), "middle", "copies")
}

func idsOfEntries(entries []convo.Entry) (ids []convo.ID) {
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	return ids
}

// A text that an edit puts in the place of a result is what a summarizer reads. The
// original is for Left and Undo.
func TestOriginals_TextOfTheCaller(t *testing.T) {
	with := new(reader)
	opts := windowOf(0, convo.Summarize{With: with, KeepTokens: -1, MaxTokens: 20, Window: -1})
	h := clearedTalk(t, opts)
	apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 3, Text: "in short: nothing"}}})
	e, _ := h.Snapshot().Find(3)
	assert.Zero(t, e.Missing)
	r := compactAll(t, h)
	assert.Contains(t, with.shown, "in short: nothing")
	assert.NotContains(t, with.shown, "middle")
	assert.Zero(t, r.Unread)
	assert.Contains(t, r.Originals()[1].Message.Text(), "middle")
}

// Where originals were not kept, what they held counts as unread.
func TestOriginals_NotKept(t *testing.T) {
	for name, restore := range map[string]func(*convo.History, *convo.Options) *convo.History{
		"not wanted": func(h *convo.History, _ *convo.Options) *convo.History { return h },
		"saved": func(h *convo.History, opts *convo.Options) *convo.History {
			data, err := json.Marshal(h.Snapshot())
			require.NoError(t, err)
			require.NotContains(t, string(data), "middle")
			s := new(convo.Snapshot)
			require.NoError(t, json.Unmarshal(data, s))
			h, err = convo.Restore(s, opts)
			require.NoError(t, err)
			return h
		},
	} {
		t.Run(name, func(t *testing.T) {
			with := new(reader)
			opts := windowOf(0, convo.Summarize{With: with, KeepTokens: -1, MaxTokens: 20, Window: -1})
			if name == "not wanted" {
				opts.KeepOriginals = -1
			}
			h := restore(clearedTalk(t, opts), opts)
			assert.Zero(t, h.Status().Originals)
			marker := "[result of tool cleared: "
			e, _ := h.Snapshot().Find(3)
			assert.InDelta(t, 4007-len(marker), e.Missing, 20)
			r := compactAll(t, h)
			assert.Contains(t, with.shown, marker)
			assert.InDelta(t, 4007-len(marker), r.Unread, 25)
			left := r.Originals()
			assert.Contains(t, left[1].Message.Text(), marker)
			assert.Equal(t, e.Missing, left[1].Missing, "marked")
		})
	}
}

// A fork has the originals too, and neither History takes them from the other.
func TestOriginals_Fork(t *testing.T) {
	for name, count := range map[string]convo.Tokenizer{"shared": nil, "counted again": byBytes} {
		t.Run(name, func(t *testing.T) {
			with := new(reader)
			opts := &convo.Options{Strategy: convo.Summarize{With: with, KeepTokens: -1, MaxTokens: 20, Window: -1}, Tokenizer: count}
			h := clearedTalk(t, opts)
			fork, err := convo.Restore(h.Snapshot(), opts)
			require.NoError(t, err)
			assert.Equal(t, h.Status().Originals, fork.Status().Originals)
			r := compactAll(t, h)
			require.ErrorIs(t, fork.Undo(r), convo.ErrStale)
			with.shown = ""
			r = compactAll(t, fork)
			assert.Contains(t, with.shown, "middle")
			assert.Zero(t, r.Unread)
		})
	}
}

// The oldest originals go first.
func TestOriginals_Oldest(t *testing.T) {
	opts := bare()
	opts.KeepOriginals = 10_000
	opts.MaxResult = 100
	h := historyOf(t, opts, convo.User("u"))
	var ids []convo.ID
	for range 40 {
		c := callOf("c")
		ids = append(ids, mustAppend(t, h, convo.Assistant("", c), convo.Result(c, strings.Repeat("x", 995))))
		require.LessOrEqual(t, h.Status().Originals, 10_000)
	}
	mustAppend(t, h, convo.Assistant("so"), convo.User("v"))
	kept := h.Status().Originals / 1000
	assert.GreaterOrEqual(t, kept, 8)
	var e convo.Edit
	for _, id := range ids {
		e.Drop = append(e.Drop, id-1, id)
	}
	complete := 0
	r := apply(t, h, e)
	for i, x := range r.Originals() {
		if i%2 == 0 {
			continue
		}
		if x.Missing == 0 {
			complete++
		} else {
			require.Zero(t, complete, "older than one that was kept")
		}
	}
	assert.Equal(t, kept, complete)

	// A smaller window takes effect at once.
	opts.KeepOriginals, opts.Limits = 0, convo.Limits{Window: 100_000}
	h = clearedTalk(t, opts)
	require.Positive(t, h.Status().Originals)
	require.NoError(t, h.SetLimits(convo.Limits{Window: 600, Reserve: -1}))
	assert.LessOrEqual(t, h.Status().Originals, 8*600)
}

// An original leaves memory with its entry, once the report is gone.
func TestOriginals_LeaveMemory(t *testing.T) {
	const n = 10
	calls := make([]convo.Part, n)
	for i := range calls {
		calls[i] = callOf(string(rune('a' + i)))
	}
	h := historyOf(t, nil, convo.User("go"), convo.Message{Role: convo.RoleAssistant, Parts: calls})
	texts := appendWatched(t, h, n, func(i int, text string) convo.Message {
		return convo.Result(calls[i].(convo.ToolCall), text)
	})
	mustAppend(t, h, convo.Assistant("done"), convo.User("more"))
	var e convo.Edit
	drop := []convo.ID{2}
	for i := range n {
		e.Clear = append(e.Clear, convo.Clear{ID: convo.ID(3 + i)})
		drop = append(drop, convo.ID(3+i))
	}
	apply(t, h, e)
	require.Equal(t, n, inMemory(texts))
	r := apply(t, h, convo.Edit{Drop: drop})
	require.Equal(t, n, inMemory(texts), "in the report")
	runtime.KeepAlive(r)
	r = convo.Report{}
	assert.Zero(t, inMemory(texts))
	runtime.KeepAlive(h)
}

// With Forget no original stays anywhere: not in memory, not in the report, and
// Spill is not called.
func TestClear_Forget(t *testing.T) {
	opts := bare()
	opts.Spill = func(context.Context, convo.ToolResult) (string, error) { panic("called") }
	c, d, e := callOf("c"), callOf("d"), callOf("e")
	h := historyOf(t, opts, convo.User("u"), convo.Assistant("", c, d, e))
	texts := appendWatched(t, h, 1, func(_ int, text string) convo.Message { return convo.Result(c, text) })
	mustAppend(t, h, convo.Message{Role: convo.RoleTool, Parts: []convo.Part{
		convo.ToolResult{CallID: "d", Parts: []convo.Part{convo.Text(strings.Repeat("secret ", 30))}},
		convo.ToolResult{CallID: "e", Parts: []convo.Part{convo.Text(strings.Repeat("public ", 30))}},
	}}, convo.Assistant("a"), convo.User("v"))

	secret := convo.Edit{Clear: []convo.Clear{{ID: 3, Forget: true}, {ID: 4, CallID: "d", Forget: true}, {ID: 4, CallID: "e", Text: "public too"}}}
	r := apply(t, h, secret)
	assert.Zero(t, inMemory(texts))
	left := r.Originals()
	require.Len(t, left, 2)
	assert.Positive(t, left[0].Missing)
	assert.Contains(t, left[0].Message.Text(), "cleared: ")
	both := left[1].Message.ToolResults()
	assert.Equal(t, "[result of tool cleared: 210 bytes]", both[0].Text())
	assert.Contains(t, both[1].Text(), "public public")
	assert.Equal(t, 210-len(both[0].Text()), left[1].Missing)

	require.NoError(t, h.Undo(r))
	s := h.Snapshot()
	x, _ := s.Find(4)
	assert.Equal(t, both, x.Message.ToolResults())
	assert.Equal(t, left[1].Missing, x.Missing)
	assert.Equal(t, rawTotal(s), s.Tokens())
	x, _ = s.Find(3)
	assert.Contains(t, x.Message.Text(), "cleared: ")

	// What was cleared before can be forgotten later.
	h = clearedTalk(t, bare())
	r = apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 3, Forget: true}}})
	assert.NotContains(t, r.Originals()[0].Message.Text(), "middle")
	assert.Positive(t, r.Originals()[0].Missing)
	assert.Less(t, h.Status().Originals, 1000)
}

// In a snapshot that was not checked, a tool message may hold more than results. An
// edit that clears them leaves the rest.
func TestClear_BesideOtherParts(t *testing.T) {
	odd := convo.NewSnapshot([]convo.Message{
		convo.User("u"), convo.Assistant("", callOf("c")),
		{Role: convo.RoleTool, Parts: []convo.Part{convo.Text("x"), convo.ToolResult{CallID: "c", Parts: []convo.Part{convo.Text(strings.Repeat("old ", 30))}}, nil}},
		convo.Assistant("a"), convo.User("v"),
	})
	for _, forget := range []bool{false, true} {
		next, err := odd.With(convo.Edit{Clear: []convo.Clear{{ID: 3, Forget: forget}}})
		require.NoError(t, err)
		e, ok := next.Find(3)
		require.True(t, ok)
		require.Len(t, e.Message.Parts, 3)
		assert.Equal(t, convo.Part(convo.Text("x")), e.Message.Parts[0])
		assert.True(t, e.Message.Parts[1].(convo.ToolResult).Cleared)
		assert.Nil(t, e.Message.Parts[2])
	}
}

// A History that was opened reads from its log what a summarizer needs, unless it was
// forgotten or replaced since.
func TestOriginals_FromTheArchive(t *testing.T) {
	secret := "middle"
	for _, tt := range []struct {
		name   string
		keep   int // Options.KeepOriginals
		stays  bool
		edit   func(t *testing.T, h *convo.History)
		reopen bool
		want   bool // the summarizer reads the original
	}{
		{name: "opened", reopen: true, want: true},
		{name: "no room in memory", keep: -1, want: true},
		{name: "forgotten", reopen: true, edit: func(t *testing.T, h *convo.History) {
			apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 3, Forget: true}}})
		}},
		{name: "cleared with a text", reopen: true, edit: func(t *testing.T, h *convo.History) {
			apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 3, Text: "nothing"}}})
		}},
		{name: "rewritten", reopen: true, edit: func(t *testing.T, h *convo.History) {
			apply(t, h, convo.Edit{Rewrite: []convo.Rewrite{{ID: 3, Parts: []convo.Part{convo.Text("no secret")}}}})
		}},
		{name: "rewritten, then cleared", reopen: true, edit: func(t *testing.T, h *convo.History) {
			apply(t, h, convo.Edit{Rewrite: []convo.Rewrite{{ID: 3, Parts: []convo.Part{convo.Text(strings.Repeat("no secret ", 20))}}}})
			apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 3}}})
		}},
		{name: "rewritten, and undone", reopen: true, want: true, edit: func(t *testing.T, h *convo.History) {
			r := apply(t, h, convo.Edit{Rewrite: []convo.Rewrite{{ID: 3, Parts: []convo.Part{convo.Text("no secret")}}}})
			require.NoError(t, h.Undo(r))
		}},
		{name: "pruned", reopen: true, edit: func(t *testing.T, h *convo.History) {
			require.NoError(t, h.Save(t.Context()))
			require.NoError(t, h.Prune(t.Context(), time.Time{}))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			with, store := new(reader), new(convotest.MemStore)
			opts := windowOf(0, convo.Summarize{With: with, KeepTokens: -1, MaxTokens: 20, Window: -1})
			opts.KeepOriginals = tt.keep
			h := clearedIn(t, opts, store)
			require.NoError(t, h.Save(t.Context()))
			if tt.edit != nil {
				tt.edit(t, h)
			}
			require.NoError(t, h.Save(t.Context()))
			if tt.reopen {
				var err error
				h, err = convo.Open(t.Context(), store, "k", opts)
				require.NoError(t, err)
			}
			hand, err := h.Handoff(t.Context(), with, "f")
			require.NoError(t, err)
			require.NotEmpty(t, hand.Text)
			assert.Equal(t, tt.want, strings.Contains(with.shown, secret), "Handoff")
			with.shown = ""
			r := compactAll(t, h)
			assert.Equal(t, tt.want, strings.Contains(with.shown, secret))
			if tt.want {
				assert.Zero(t, r.Unread)
			}
		})
	}
}

// What another writer has saved under the ID of an entry that was not saved is not its
// original.
func TestOriginals_OfAnotherWriter(t *testing.T) {
	store, with := new(convotest.MemStore), new(reader)
	opts := windowOf(0, convo.Summarize{With: with, KeepTokens: -1, MaxTokens: 20, Window: -1})
	opts.KeepOriginals, opts.MaxResult = -1, 100
	a, b := pair(t, store, opts, convo.User("1"))
	c := callOf("c")
	long := func(word string) convo.Message { return convo.Result(c, strings.Repeat(word+" ", 1000)) }
	mustAppend(t, a, convo.Assistant("", c), long("theirs"), convo.Assistant("a4"))
	save(t, a)
	mustAppend(t, b, convo.Assistant("", c), long("ours"), convo.Assistant(strings.Repeat("b ", 500)), convo.User("b5"), convo.Assistant("b6"), convo.User("b7"))
	r := compactAll(t, b)
	assert.Contains(t, with.shown, "ours")
	assert.NotContains(t, with.shown, "theirs")
	assert.NotZero(t, r.Unread)
}

// Where the log cannot be read, a summarizer gets what is left, and it counts as unread.
func TestOriginals_ArchiveFails(t *testing.T) {
	with, store := new(reader), &brokenReads{Store: new(convotest.MemStore)}
	opts := windowOf(0, convo.Summarize{With: with, KeepTokens: -1, MaxTokens: 20, Window: -1})
	opts.KeepOriginals = -1
	h := clearedIn(t, opts, store)
	require.NoError(t, h.Save(t.Context()))
	store.isBroken = true
	r := compactAll(t, h)
	assert.Contains(t, with.shown, "[result of tool cleared: ")
	assert.Positive(t, r.Unread)
}

// brokenReads is a Store whose log cannot be read once isBroken is set.
type brokenReads struct {
	convo.Store
	isBroken bool
}

func (b *brokenReads) Records(ctx context.Context, key string, from uint64) iter.Seq2[convo.Record, error] {
	if b.isBroken {
		panic("no disk")
	}
	return b.Store.Records(ctx, key, from)
}

// A result is cut between lines where there are lines, and between words where
// there are words.
func TestMaxResult_CutsAtBorders(t *testing.T) {
	lines, words := strings.Repeat("a line of the log\n", 300), strings.Repeat("word ", 1000)
	cut := throughAppend(t, 400, []convo.Part{convo.Text(lines)})
	head, tail, ok := strings.Cut(string(cut[0].(convo.Text)), "\n[cut: ")
	require.True(t, ok)
	assert.Zero(t, len(head)%len("a line of the log\n"), "%q", head)
	_, tail, _ = strings.Cut(tail, "]\n")
	assert.Zero(t, len(tail)%len("a line of the log\n"), "%q", tail)
	assert.Greater(t, len(head), 2*len(tail), "more from the beginning")

	cut = throughAppend(t, 400, []convo.Part{convo.Text(words)})
	head, tail, _ = strings.Cut(string(cut[0].(convo.Text)), "\n[cut: ")
	_, tail, _ = strings.Cut(tail, "]\n")
	assert.True(t, strings.HasSuffix(head, " ") && strings.HasPrefix(tail, "word"), "%q and %q", head, tail)
}

// Without MaxResult, the bound is a quarter of the limit in force.
func TestMaxResult_FollowsTheWindow(t *testing.T) {
	c := callOf("c")
	for _, tt := range []struct {
		name   string
		opts   convo.Options
		limits convo.Limits // set later; zero: none
		want   int
	}{
		{"no window", convo.Options{}, convo.Limits{}, 100_000},
		{"only High", convo.Options{Limits: convo.Limits{High: 1000}}, convo.Limits{}, 100_000},
		{"a window", convo.Options{Limits: convo.Limits{Window: 8000, Reserve: 2000}}, convo.Limits{}, 1500},
		{"a small window", convo.Options{Limits: convo.Limits{Window: 200}}, convo.Limits{}, 64},
		{"set later", convo.Options{Limits: convo.Limits{Window: 8000}}, convo.Limits{Window: 4000, Reserve: -1}, 1000},
		{"none", convo.Options{MaxResult: -1, Limits: convo.Limits{Window: 8000}}, convo.Limits{}, 100_000},
		{"set", convo.Options{MaxResult: 300, Limits: convo.Limits{Window: 8000}}, convo.Limits{}, 300},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.opts.Tokenizer = byBytes
			h := historyOf(t, &tt.opts, convo.User("u"), convo.Assistant("", c))
			if tt.limits != (convo.Limits{}) {
				require.NoError(t, h.SetLimits(tt.limits))
			}
			id := mustAppend(t, h, convo.Result(c, strings.Repeat("x", 100_000)))
			e, _ := h.Snapshot().Find(id)
			assert.InDelta(t, tt.want, len(e.Message.Text()), 2)
			assert.LessOrEqual(t, len(e.Message.Text()), tt.want)
			assert.Equal(t, 100_000-len(e.Message.Text()), e.Missing)
		})
	}
}

// What Append cuts is reported, and logged as a warning.
func TestAppend_ReportsCuts(t *testing.T) {
	var reports []convo.Report
	var log strings.Builder
	opts := bare()
	opts.Limits.Window, opts.Limits.Reserve = 4000, -1
	opts.OnCompaction = func(r convo.Report) { reports = append(reports, r) }
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	c, d := callOf("c"), callOf("d")
	long := strings.Repeat("x", 3000)
	h := historyOf(t, opts, convo.User("u"), convo.Assistant("", c, d))
	require.Empty(t, reports)
	mustAppend(t, h, convo.Result(c, "short"), convo.Message{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{Parts: []convo.Part{convo.Text(long)}}}})
	require.Len(t, reports, 1)
	r := reports[0]
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, convo.ReasonAppend, r.Reason)
	assert.Equal(t, []convo.ID{4}, r.Shortened)
	assert.Equal(t, h.Status().Upper, r.TokensAfter)
	assert.InDelta(t, 3400, r.TokensBefore, 50, "what it would be without the cut")
	assert.True(t, r.Fits)
	left := r.Originals()
	require.Len(t, left, 1)
	assert.Equal(t, convo.ID(4), left[0].ID)
	assert.Equal(t, long, left[0].Message.Text())
	assert.Equal(t, "d", left[0].Message.ToolResults()[0].CallID, "paired")
	assert.Zero(t, left[0].Missing)
	assert.Contains(t, log.String(), "level=WARN")
	assert.Contains(t, log.String(), "reason=append")
	assert.Contains(t, log.String(), "shortened=1")

	// A refused append reports nothing.
	_, err := h.Append(convo.Result(c, long))
	require.Error(t, err)
	assert.Len(t, reports, 1)
	assert.ErrorIs(t, h.Undo(r), convo.ErrStale)
}

// checkCut appends a result with a bound in bytes: what stays is the beginning and
// the end of it around a marker, within the bound, and is not cut again.
func checkCut(t *testing.T, whole string, limit int) {
	t.Helper()
	limit = 64 + limit%1000
	whole = strings.ToValidUTF8(whole, "\uFFFD")
	parts := throughAppend(t, limit, []convo.Part{convo.Text(whole)})
	got := string(parts[0].(convo.Text))
	if len(whole) <= limit {
		require.Equal(t, whole, got)
		return
	}
	require.LessOrEqual(t, len(got), limit)
	require.True(t, utf8.ValidString(got))
	ok := false
	for _, m := range regexp.MustCompile(`\n\[cut: (\d+) bytes left out\]\n`).FindAllStringSubmatchIndex(got, -1) {
		head, tail := got[:m[0]], got[m[1]:]
		ok = ok || strings.HasPrefix(whole, head) && strings.HasSuffix(whole, tail) && got[m[2]:m[3]] == itoa(len(whole)-len(head)-len(tail))
	}
	require.True(t, ok, "%q is no cut of %q", got, whole)
	require.Equal(t, parts, throughAppend(t, limit, parts))
}

func TestMaxResult_Property(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 300 {
		var whole strings.Builder
		for range rng.IntN(200) {
			whole.WriteString([]string{"a", "\n", " ", "é", "😀", "\n[cut: 5 bytes left out]\n", "word ", "\xff"}[rng.IntN(8)])
		}
		checkCut(t, whole.String(), rng.IntN(1000))
	}
}

func FuzzMaxResult(f *testing.F) {
	f.Add(strings.Repeat("line\n", 100), 100)
	f.Add(strings.Repeat("😀 ", 100)+"\n[cut: 1 bytes left out]\n", 0)
	f.Fuzz(func(t *testing.T, whole string, limit int) {
		if limit >= 0 {
			checkCut(t, whole[:min(len(whole), 10_000)], limit)
		}
	})
}

// blockOf returns a block with n bytes of text that only one format understands.
func blockOf(n int) convo.Opaque {
	return convo.Opaque{Format: "anthropic", JSON: `{"type":"search_result","text":"` + strings.Repeat("word ", n/5) + `"}`}
}

// answer returns the message with a result for each list of parts, for the calls c0, c1 and so on.
func answer(results ...[]convo.Part) convo.Message {
	m := keyed("answer", convo.Message{Role: convo.RoleTool})
	for i, parts := range results {
		m.Parts = append(m.Parts, convo.ToolResult{CallID: fmt.Sprint("c", i), Name: "tool", Parts: parts})
	}
	return m
}

// askedFor returns the messages before an answer of n results.
func askedFor(n int) []convo.Message {
	var calls []convo.ToolCall
	for i := range n {
		calls = append(calls, callOf(fmt.Sprint("c", i)))
	}
	return []convo.Message{keyed("ask", convo.User("u")), keyed("call", convo.Assistant("", calls...))}
}

// A result whose bulk is no text is cut like a long text: by Append, or if that cuts nothing,
// by the compaction whose floor it is. The original is stored and reported, Undo brings it
// back, and Decisions, archives and Snapshots hold the cut.
func TestCut_Opaque(t *testing.T) {
	media := convo.NewMedia("image/png", []byte("hi"))
	big, small := blockOf(300_000), blockOf(200)
	for _, tt := range []struct {
		name    string
		results [][]convo.Part
		want    []int // how many blocks are left of each; nil: not compared
	}{
		{"one block", [][]convo.Part{{blockOf(700_000)}}, []int{0}},
		{"beside a text, an image and a small block", [][]convo.Part{{convo.Text("found"), small, big, media}}, []int{1}},
		{"beside a long text", [][]convo.Part{{convo.Text(strings.Repeat("line\n", 15_000)), big, small}}, []int{1}},
		{"several results", [][]convo.Part{{big}, {convo.Text("short")}, {small, big}, {convo.Text(strings.Repeat("line\n", 15_000))}}, []int{0, 0, 1, 0}},
		{"the same block twice", [][]convo.Part{{blockOf(20_000), convo.Text("and"), blockOf(20_000), blockOf(20_000), blockOf(20_000), blockOf(20_000), blockOf(20_000)}}, nil},
		{"many small ones", [][]convo.Part{manyBlocks(2000)}, nil},
	} {
		for _, way := range []string{"Append", "Prepare", "Recover"} {
			for _, spills := range []bool{false, true} {
				t.Run(fmt.Sprint(tt.name, "/", way, "/spills=", spills), func(t *testing.T) {
					store, stored := new(convotest.MemStore), map[string]convo.ToolResult{}
					opts := &convo.Options{Limits: convo.Limits{Window: 20_000, Reserve: 2500}}
					if spills {
						opts.Spill = func(_ context.Context, r convo.ToolResult) (string, error) {
							assert.NotContains(t, stored, r.CallID)
							stored[r.CallID] = r
							return "file-" + r.CallID, nil
						}
					}
					var reports []convo.Report
					opts.OnCompaction = func(r convo.Report) { reports = append(reports, r) }
					if way != "Append" {
						opts.MaxResult = -1
					}
					if way == "Recover" {
						opts.Limits.Window = 2_000_000
					}
					h, err := convo.Open(t.Context(), store, "k", opts)
					require.NoError(t, err)
					mustAppend(t, h, askedFor(len(tt.results))...)
					given := answer(tt.results...)
					id := mustAppend(t, h, given)
					whole := h.Snapshot()
					var s *convo.Snapshot
					if way == "Recover" {
						require.NoError(t, h.SetLimits(convo.Limits{Window: 400_000}))
						retry, _, err := h.Recover(t.Context(), h.Snapshot(), errors.New("prompt is too long: 500000 tokens > 20000 maximum"))
						require.NoError(t, err)
						require.True(t, retry)
						s = h.Snapshot()
					} else {
						var r convo.Report
						s, r, err = h.Prepare(t.Context())
						require.NoError(t, err)
						require.True(t, r.Fits)
					}
					require.Len(t, reports, 1)
					assert.Equal(t, []convo.ID{id}, reports[0].Shortened)
					left := reports[0].Originals()
					require.Len(t, left, 1)
					assert.Equal(t, given.Parts, left[0].Message.Parts)

					e, _ := s.Find(id)
					require.Len(t, e.Message.Parts, len(given.Parts), "pairs stay")
					assert.Positive(t, e.Missing)
					for i, r := range e.Message.ToolResults() {
						was := given.Parts[i].(convo.ToolResult)
						if assert.Equal(t, was.CallID, r.CallID); assert.ObjectsAreEqual(was, r) {
							continue
						}
						assert.NotContains(t, r.Parts, big)
						if spills {
							assert.Equal(t, was, stored[r.CallID])
							assert.Contains(t, r.Text(), ", kept at file-"+r.CallID+"]\n")
						} else {
							assert.Contains(t, r.Text(), " bytes left out]\n")
						}
						blocks := 0
						for _, p := range r.Parts {
							if _, ok := p.(convo.Opaque); ok {
								blocks++
							}
						}
						if tt.want != nil {
							assert.Equal(t, tt.want[i], blocks)
							if slices.Contains(was.Parts, convo.Part(big)) {
								assert.Contains(t, r.Text(), fmt.Sprintf("[block search_result]\n[cut: %d bytes left out", len(big.JSON)))
							}
						}
						assert.Equal(t, slices.Contains(was.Parts, convo.Part(media)), slices.Contains(r.Parts, convo.Part(media)), "media stay")
					}

					// What is saved makes the same view again.
					bare := *opts
					bare.OnCompaction = nil
					data, err := h.Decisions()
					require.NoError(t, err)
					assert.Less(t, len(data), 4000+200*strings.Count(string(data), `"inside"`), "the message is not in it")
					d, err := convo.ReadDecisions(data)
					require.NoError(t, err)
					again, err := convo.Resume(d, rowsOf(append(askedFor(len(tt.results)), given)...), &bare)
					require.NoError(t, err)
					assert.Equal(t, s.Messages(), again.Snapshot().Messages())
					assert.Equal(t, string(data), string(mustDecisions(t, again)))
					require.NoError(t, h.Save(t.Context()))
					opened, err := convo.Open(t.Context(), store, "k", &bare)
					require.NoError(t, err)
					assert.Equal(t, s.Messages(), opened.Snapshot().Messages())
					assert.Equal(t, given.Parts, mustRewind(t, again).Parts, "the original is the row")

					if way == "Append" {
						return
					}
					require.NoError(t, h.Undo(reports[0]))
					assert.Equal(t, whole.Messages(), h.Snapshot().Messages())
					assert.Zero(t, h.Status().Originals)
				})
			}
		}
	}
}

func manyBlocks(n int) (parts []convo.Part) {
	for i := range n {
		parts = append(parts, convo.Opaque{Format: "anthropic", JSON: fmt.Sprintf(`{"type":"search_result","text":"what number %d has found here"}`, i)})
	}
	return parts
}

func mustDecisions(t *testing.T, h *convo.History) []byte {
	t.Helper()
	data, err := h.Decisions()
	require.NoError(t, err)
	return data
}

// If Spill fails, Append appends nothing, and a compaction cuts nothing.
func TestCut_OpaqueSpillFails(t *testing.T) {
	opts := &convo.Options{Limits: convo.Limits{Window: 20_000}}
	opts.Spill = func(context.Context, convo.ToolResult) (string, error) { return "", errors.New("disk full") }
	h := historyOf(t, opts, askedFor(1)...)
	unchanged(t, h, func() {
		_, err := h.Append(answer([]convo.Part{blockOf(700_000)}))
		require.ErrorContains(t, err, "disk full")
	})

	opts.MaxResult = -1
	h = historyOf(t, opts, append(askedFor(1), answer([]convo.Part{blockOf(700_000)}))...)
	unchanged(t, h, func() {
		_, _, err := h.Prepare(t.Context())
		var floor *convo.FloorError
		require.ErrorAs(t, err, &floor)
		require.ErrorContains(t, err, "disk full")
	})
}

// What was cut by Append is cut again from its original, and not stored again; without the
// original, the reference in its marker is used.
func TestCut_OpaqueAgain(t *testing.T) {
	for _, keep := range []int{0, -1} {
		calls := 0
		opts := &convo.Options{Limits: convo.Limits{Window: 20_000, Reserve: -1}, KeepOriginals: keep}
		opts.Spill = func(_ context.Context, r convo.ToolResult) (string, error) {
			calls++
			return "file", nil
		}
		h := historyOf(t, opts, append(askedFor(1), answer([]convo.Part{blockOf(16_000), blockOf(700_000)}))...)
		require.Equal(t, 1, calls)
		require.Len(t, find(t, h, 3).Message.ToolResults()[0].Parts, 2)
		require.NoError(t, h.SetLimits(convo.Limits{Window: 1000, Reserve: -1}))
		_, _, err := h.Prepare(t.Context())
		require.NoError(t, err)
		parts := find(t, h, 3).Message.ToolResults()[0].Parts
		assert.Contains(t, parts[0], ", kept at file]")
		mustAppend(t, h, convo.Assistant("so"), convo.User("v"))
		apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 3}}})
		assert.Contains(t, find(t, h, 3).Message.Text(), ", kept at file]")
		assert.Equal(t, 1, calls)
	}
}

// However a result is made, a cut of it has at most the bound besides its media, is not cut
// again, and is made again from its row.
func TestMaxResult_OpaqueProperty(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 300 {
		var parts []convo.Part
		for range 1 + rng.IntN(6) {
			switch n := rng.IntN(1 << rng.IntN(12)); rng.IntN(3) {
			case 0:
				parts = append(parts, convo.Text(strings.Repeat("a line\n", n/7)))
			case 1:
				parts = append(parts, blockOf(n))
			default:
				data, _ := json.Marshal(strings.Repeat("x", n%50))
				parts = append(parts, convo.Opaque{Format: "f", JSON: string(data)})
			}
		}
		bound := 64 + rng.IntN(1000)
		opts := bare()
		opts.MaxResult = bound
		h := historyOf(t, opts, append(askedFor(1), answer(parts))...)
		short := find(t, h, 3).Message.ToolResults()[0]
		size := 0
		for _, p := range short.Parts {
			switch p := p.(type) {
			case convo.Text:
				size += len(p)
			case convo.Opaque:
				size += len(p.JSON)
			}
		}
		require.LessOrEqual(t, size, bound, "%v", parts)
		d := decisionsOf(t, h)
		again, err := convo.Resume(d, rowsOf(append(askedFor(1), answer(parts))...), opts)
		require.NoError(t, err)
		require.Equal(t, h.Snapshot().Messages(), again.Snapshot().Messages())
		twice := historyOf(t, opts, append(askedFor(1), answer(short.Parts))...)
		require.Equal(t, short, find(t, twice, 3).Message.ToolResults()[0])
	}
}

// What no summarizer can read any more is counted once, by the report of the edit after which
// that is so, whatever becomes of the originals.
func TestReport_UnreadOnce(t *testing.T) {
	const size = 1000
	for _, tt := range []struct {
		name  string
		keep  int    // Options.KeepOriginals
		store bool   // there is one
		load  bool   // the conversation goes through JSON after the first edit
		want  [3]int // results counted when four are cleared, when another is, and when all are dropped
	}{
		{name: "no originals", keep: -1, want: [3]int{4, 1, 0}},
		{name: "room for two", keep: 2200, want: [3]int{3, 0, 2}}, // an eighth of the room stays free
		{name: "room for all", want: [3]int{0, 0, 5}},
		{name: "a store", keep: -1, store: true, want: [3]int{0, 0, 5}},
		{name: "restored, which forgets what was counted", keep: -1, load: true, want: [3]int{4, 5, 0}},
		{name: "originals are not in JSON", load: true, want: [3]int{0, 4, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opts := bare()
			opts.KeepOriginals, opts.MaxResult = tt.keep, -1
			h := historyOf(t, opts)
			if tt.store {
				require.NoError(t, h.Attach(t.Context(), new(convotest.MemStore), "k"))
			}
			mustAppend(t, h, convo.User("task"))
			var clear []convo.Clear
			for i := range 5 {
				c := callOf(fmt.Sprint("c", i))
				clear = append(clear, convo.Clear{ID: mustAppend(t, h, convo.Assistant("", c), convo.Result(c, strings.Repeat("x", size)))})
			}
			mustAppend(t, h, convo.Assistant("done"), convo.User("next"))

			var unread [3]int
			unread[0] = apply(t, h, convo.Edit{Clear: clear[:4]}).Unread
			e, _ := h.Snapshot().Find(clear[0].ID)
			require.Positive(t, e.Missing)
			if tt.load {
				data, err := json.Marshal(h.Snapshot())
				require.NoError(t, err)
				s := new(convo.Snapshot)
				require.NoError(t, s.UnmarshalJSON(data))
				h, err = convo.Restore(s, opts)
				require.NoError(t, err)
			}
			unread[1] = apply(t, h, convo.Edit{Clear: clear[4:]}).Unread
			drop := idRange(2, 11)
			for _, id := range drop {
				e, _ := h.Snapshot().Find(id)
				unread[2] -= e.Tokens
			}
			unread[2] += apply(t, h, convo.Edit{Drop: drop}).Unread
			for i := range unread {
				assert.Equal(t, tt.want[i]*e.Missing, unread[i], "edit %d", i+1)
			}
		})
	}
}

// An entry that was counted as unread is the same for edits and rollbacks as before.
func TestReport_UnreadChangesNoEntry(t *testing.T) {
	opts := bare()
	opts.KeepOriginals, opts.MaxResult = -1, 200
	c := callOf("c")
	h := historyOf(t, opts, convo.User("1"), convo.Assistant("2"), convo.User("3"), convo.Assistant("4"), convo.User("5"),
		convo.Assistant("", c), convo.Result(c, strings.Repeat("x", 3000)))
	at := h.Snapshot()
	r := apply(t, h, convo.Edit{Drop: []convo.ID{2, 3}})
	require.Greater(t, r.Unread, 2000)
	rewritten, err := h.Apply(at, convo.Edit{Rewrite: []convo.Rewrite{{ID: 7, Parts: []convo.Part{convo.Text("short")}}}})
	require.NoError(t, err)
	assert.Zero(t, rewritten.Unread)
	require.NoError(t, h.Undo(rewritten))
	mustAppend(t, h, convo.Assistant("late"))
	require.NoError(t, h.Rollback(at))
	assert.Equal(t, 5, h.Len(), "the edit stays, since it has changed nothing in the floor of the snapshot")
	assert.Equal(t, []convo.ID{1, 4, 5, 6, 7}, idsOf(h.Snapshot()))
}

// A strategy that counts what the entries it summarises lack does not count it again.
func TestReport_UnreadOnceByAStrategy(t *testing.T) {
	opts := bare()
	opts.KeepOriginals, opts.MaxResult = -1, -1
	missing := 0
	opts.Strategy = convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		return convo.Edit{Drop: []convo.ID{2, 3, 4}, Summary: &convo.Summary{Text: "s"}, Effort: &convo.Effort{Unread: missing + 7}}, nil
	})
	c := callOf("c")
	h := historyOf(t, opts, convo.User("1"), convo.Assistant("", c), convo.Result(c, strings.Repeat("x", 3000)), convo.Assistant(strings.Repeat("4", 1000)), convo.User("5"))
	r := apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 3}}})
	e, _ := h.Snapshot().Find(3)
	missing = e.Missing
	require.Positive(t, missing)
	require.Equal(t, missing, r.Unread)
	mustAppend(t, h, convo.Assistant("6"), convo.User("7"))
	r, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []convo.ID{2, 3, 4}, r.Summarised, "%v", r)
	assert.Equal(t, 7, r.Unread)
}

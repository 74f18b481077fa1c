package convo_test

import (
	"context"
	"encoding/json"
	"iter"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
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
// forgotten or replaced meanwhile.
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

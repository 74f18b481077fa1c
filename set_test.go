package convo_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

// A bringer is a conversation whose Options.AfterCompaction returns back.
type bringer struct {
	*convo.History
	t     *testing.T
	back  func(convo.Report) []convo.Message
	asked []convo.Report // what AfterCompaction was given
	told  []convo.Report // what OnCompaction was given
	log   strings.Builder
}

func newBringer(t *testing.T, back ...convo.Message) *bringer {
	b := &bringer{t: t, back: func(convo.Report) []convo.Message { return back }}
	opts := windowOf(4000, convo.Truncate{})
	opts.AfterCompaction = func(r convo.Report) []convo.Message {
		b.asked = append(b.asked, r)
		return b.back(r)
	}
	opts.OnCompaction = func(r convo.Report) { b.told = append(b.told, r) }
	opts.Logger = slog.New(slog.NewTextHandler(&b.log, nil))
	b.History = toolTurn(t, opts, 10)
	return b
}

// returns makes AfterCompaction return messages of the user from now on.
func (b *bringer) returns(texts ...string) {
	b.back = func(convo.Report) (msgs []convo.Message) {
		for _, s := range texts {
			msgs = append(msgs, convo.User(s))
		}
		return msgs
	}
}

// grow appends until a compaction is due.
func (b *bringer) grow() {
	for b.Status().Upper <= b.Status().High {
		c := callOf(fmt.Sprint("g", b.Len()))
		mustAppend(b.t, b.History, convo.User("go on"), convo.Assistant("", c), convo.Result(c, strings.Repeat("x", 200)), convo.Assistant("done"))
	}
}

// compacted grows and returns what Prepare returns.
func (b *bringer) compacted() (text string, r convo.Report) {
	b.t.Helper()
	b.grow()
	s, r, err := b.Prepare(b.t.Context())
	require.NoError(b.t, err)
	require.Equal(b.t, convo.OutcomeApplied, r.Outcome)
	return b.text(s), r
}

func (b *bringer) text(s *convo.Snapshot) string { return strings.Join(textsOf(s), "\n") }

// The messages are in the snapshot that Prepare returns, before those of SetEphemeral, and
// in the figures of the report.
func TestAfterCompaction(t *testing.T) {
	b := newBringer(t)
	b.returns("open file: main.go", "to do: tests")
	require.NoError(t, b.SetEphemeral(convo.User("it is noon")))
	text, r := b.compacted()
	assert.Contains(t, text, "go on\nopen file: main.go\nto do: tests\nit is noon")
	require.Len(t, b.asked, 1)
	assert.Equal(t, convo.ReasonHigh, b.asked[0].Reason)
	assert.NotEmpty(t, b.asked[0].Dropped)
	assert.Equal(t, b.asked[0].MessagesAfter+2, r.MessagesAfter)
	assert.Equal(t, b.Status().Upper, r.TokensAfter)
	assert.Greater(t, r.TokensAfter, b.asked[0].TokensAfter)
	require.Len(t, b.told, 1)
	assert.Equal(t, r.TokensAfter, b.told[0].TokensAfter, "OnCompaction is told the same")
	assert.NoError(t, r.Cause)

	version := b.Snapshot().Version()
	_, r, err := b.Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
	assert.Equal(t, version, b.Snapshot().Version())
	assert.Len(t, b.asked, 1, "no compaction, no call")
}

// The next call replaces them, and SetEphemeral does not.
func TestAfterCompaction_Replaces(t *testing.T) {
	b := newBringer(t)
	b.returns("first")
	b.compacted()
	require.NoError(t, b.SetEphemeral(convo.User("it is noon")))
	assert.Contains(t, b.text(b.Snapshot()), "first\nit is noon")
	require.NoError(t, b.SetEphemeral())
	assert.Contains(t, b.text(b.Snapshot()), "first")
	assert.NotContains(t, b.text(b.Snapshot()), "noon")

	tokens := b.Snapshot().Tokens()
	require.NoError(t, b.SetEphemeral(convo.User("it is noon")))
	assert.Equal(t, tokens+len("it is noon"), b.Snapshot().Tokens())
	assert.Equal(t, len("first")+len("it is noon"), b.Snapshot().Breakdown().Ephemeral)

	b.returns("second")
	text, r := b.compacted()
	assert.Contains(t, text, "second\nit is noon")
	assert.NotContains(t, text, "first")
	assert.Equal(t, b.asked[1].MessagesAfter, r.MessagesAfter, "one took the place of one")
	b.returns()
	text, _ = b.compacted()
	assert.NotContains(t, text, "second")
	assert.Contains(t, text, "it is noon")
}

// What the view cannot take is left aside, those of the call before stay, and the report
// and the log say why.
func TestAfterCompaction_LeftAside(t *testing.T) {
	is := func(target any) func(error) bool {
		return func(err error) bool { return errors.As(err, target) }
	}
	for name, c := range map[string]struct {
		back func(convo.Report) []convo.Message
		is   func(error) bool
	}{
		"an invalid message": {func(convo.Report) []convo.Message { return []convo.Message{{Role: "x"}} }, is(new(*convo.MessageError))},
		"an open call":       {func(convo.Report) []convo.Message { return []convo.Message{convo.Assistant("", callOf("c"))} }, is(new(*convo.PairError))},
		"a panic":            {func(convo.Report) []convo.Message { panic("x") }, is(new(*convo.PanicError))},
		"too much":           {func(convo.Report) []convo.Message { return []convo.Message{convo.User(strings.Repeat("x", 3000))} }, is(new(*convo.LimitError))},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBringer(t)
			b.returns("before")
			b.compacted()
			b.back = c.back
			b.log.Reset()
			text, r := b.compacted()
			assert.Contains(t, text, "before")
			assert.True(t, r.Fits)
			assert.True(t, c.is(r.Cause), "%v", r.Cause)
			assert.Contains(t, fmt.Sprint(r), "; messages of AfterCompaction left aside: ")
			assert.True(t, strings.HasSuffix(fmt.Sprint(r), strings.TrimPrefix(r.Cause.Error(), "convo: ")), "%v", r.Cause)
			assert.NotContains(t, fmt.Sprint(r), "not all results cleared")
			assert.Contains(t, b.log.String(), "level=WARN")
			assert.Contains(t, b.log.String(), "messages of AfterCompaction left aside")
			_, r, err := b.Prepare(t.Context())
			require.NoError(t, err)
			assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
		})
	}
}

// The messages never make a request too large: where the floor does not fit with them,
// they leave, and come back if there is room.
func TestAfterCompaction_Yields(t *testing.T) {
	b := newBringer(t)
	b.returns(strings.Repeat("f", 1000))
	text, _ := b.compacted()
	require.Contains(t, text, "ffff")

	b.returns("shorter")
	mustAppend(t, b.History, convo.User(strings.Repeat("u", 2900)))
	s, r, err := b.Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.NotContains(t, b.text(s), "ffff")
	assert.Contains(t, b.text(s), "shorter")
	assert.LessOrEqual(t, r.TokensAfter, b.Status().Limit)

	// Where nothing else can leave, that alone is the edit.
	b = newBringer(t)
	b.returns(strings.Repeat("f", 1000))
	b.compacted()
	require.NoError(t, b.Pin(idsOf(b.Snapshot())...))
	room := b.Status().Limit - b.Status().Upper
	mustAppend(t, b.History, convo.User(strings.Repeat("u", room)))
	b.back = func(r convo.Report) []convo.Message {
		assert.Equal(t, "messages of AfterCompaction removed", fmt.Sprint(r)[strings.Index(fmt.Sprint(r), ": ")+2:])
		return nil
	}
	s, r, err = b.Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.NotContains(t, b.text(s), "ffff")

	// What cannot fit without them stays as it was, and the error names the other shares.
	b = newBringer(t)
	b.returns(strings.Repeat("f", 1000))
	b.compacted()
	mustAppend(t, b.History, convo.User(strings.Repeat("u", 4000)))
	_, _, err = b.Prepare(t.Context())
	floor, ok := errors.AsType[*convo.FloorError](err)
	require.True(t, ok, "%v", err)
	assert.Zero(t, floor.Ephemeral)
	assert.Contains(t, b.text(b.Snapshot()), "ffff")
}

// Each compaction asks for them, and no edit of a program does. They are not saved.
func TestAfterCompaction_When(t *testing.T) {
	b := newBringer(t, convo.User("rules"))
	_, err := b.Compact(t.Context(), "")
	require.NoError(t, err)
	assert.Len(t, b.asked, 1)
	assert.Contains(t, b.text(b.Snapshot()), "rules")
	_, err = b.Apply(b.Snapshot(), convo.Edit{Summary: &convo.Summary{Text: "s"}})
	require.NoError(t, err)
	assert.Len(t, b.asked, 1)

	b.grow()
	require.True(t, b.CompactInBackground(t.Context()))
	_, err = b.Wait(t.Context())
	require.NoError(t, err)
	assert.Len(t, b.asked, 2)

	b.grow()
	_, _, err = b.Recover(t.Context(), b.Snapshot(), errors.New("prompt is too long: 5000 tokens > 4000 maximum"))
	require.NoError(t, err)
	assert.Len(t, b.asked, 3)

	var s convo.Snapshot
	data, err := json.Marshal(b.Snapshot())
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &s))
	for _, from := range []*convo.Snapshot{&s, b.Snapshot()} {
		h, err := convo.Restore(from, windowOf(4000, convo.Truncate{}))
		require.NoError(t, err)
		assert.NotContains(t, b.text(h.Snapshot()), "rules")
		assert.Equal(t, b.Snapshot().Tokens()-len("rules"), h.Snapshot().Tokens())
	}
}

// The report is delivered and the messages before stay, even if the function ends its
// goroutine or closes the History. It may append.
func TestAfterCompaction_Hostile(t *testing.T) {
	b := newBringer(t)
	b.returns("before")
	b.compacted()
	b.back = func(convo.Report) []convo.Message {
		runtime.Goexit()
		return nil
	}
	b.grow()
	require.True(t, b.CompactInBackground(t.Context()))
	r, err := b.Wait(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Len(t, b.told, 2)
	assert.Contains(t, b.text(b.Snapshot()), "before")

	b.back = func(convo.Report) []convo.Message {
		mustAppend(t, b.History, convo.User("one more"), convo.Assistant("yes"))
		return []convo.Message{convo.User("after")}
	}
	text, _ := b.compacted()
	assert.Contains(t, text, "one more\nafter")
	assert.Contains(t, text, "one more")

	b.back = func(convo.Report) []convo.Message {
		require.NoError(t, b.Close())
		return []convo.Message{convo.User("after")}
	}
	b.grow()
	_, r, err = b.Prepare(t.Context())
	require.ErrorIs(t, err, convo.ErrClosed)
	assert.NoError(t, r.Cause)
}

var (
	searchTool = convo.Tool{Name: "search", Description: "finds " + strings.Repeat("words ", 50), Schema: `{"type":"object"}`}
	webTool    = convo.Tool{Opaque: convo.Opaque{Format: "anthropic", JSON: `{"type":"web_search_20250305","name":"web_search"}`}}
)

// Tools are counted once, whatever is appended, and leave when they are replaced.
func TestSetTools_Counts(t *testing.T) {
	h := historyOf(t, bare(), convo.User("one"), convo.Assistant("two"))
	without := h.Snapshot().Tokens()
	require.NoError(t, h.SetTools(searchTool, webTool))
	with := h.Snapshot().Tokens()
	tool := len(searchTool.Name) + len(searchTool.Description) + len(searchTool.Schema)
	assert.Equal(t, tool+len(webTool.Opaque.JSON), with-without)
	assert.Equal(t, with-without, h.Snapshot().Breakdown().Tools)
	assert.Equal(t, []convo.Tool{searchTool, webTool}, h.Snapshot().Tools())

	version := h.Snapshot().Version()
	require.NoError(t, h.SetTools(searchTool, webTool))
	assert.Equal(t, version, h.Snapshot().Version(), "the same tools")
	h.Snapshot().Tools()[0].Name = "mine"
	assert.Equal(t, "search", h.Snapshot().Tools()[0].Name, "a copy")

	require.NoError(t, h.SetToolsKey("v1"))
	assert.Equal(t, without, h.Snapshot().Tokens())
	assert.Empty(t, h.Snapshot().Tools())
	require.NoError(t, h.SetToolsKey(""))
	require.NoError(t, h.SetTools())
	assert.Equal(t, without, h.Snapshot().Tokens())
}

// A usage report measures the tools; the estimate follows when they change.
func TestSetTools_Measured(t *testing.T) {
	h := historyOf(t, bare(), convo.User(strings.Repeat("word ", 100)))
	require.NoError(t, h.SetTools(searchTool))
	s := h.Snapshot()
	require.NoError(t, h.RecordUsage(s, convo.Usage{Input: s.Tokens()}))
	before := h.Tokens().Tokens
	assert.Equal(t, s.Tokens(), before)
	require.NoError(t, h.SetTools())
	after := h.Tokens().Tokens
	assert.InDelta(t, before-(s.Tokens()-h.Snapshot().Tokens()), after, 8)
	require.NoError(t, h.SetTools(searchTool, webTool))
	assert.Greater(t, h.Tokens().Tokens, before)
}

// Tools survive JSON, stores, forks, rollbacks and Undo.
func TestSetTools_Stays(t *testing.T) {
	store := new(convotest.MemStore)
	opts := bare()
	h, err := convo.Open(t.Context(), store, "k", opts)
	require.NoError(t, err)
	mustAppend(t, h, convo.User("a"), convo.Assistant("b"), convo.User("c"))
	mark := h.Snapshot()
	require.NoError(t, h.Save(t.Context()))
	require.NoError(t, h.SetTools(searchTool, webTool))
	assert.Positive(t, h.Status().Unsaved)
	require.NoError(t, h.Save(t.Context()))
	want := h.Snapshot()
	same := func(h *convo.History, err error) {
		t.Helper()
		require.NoError(t, err)
		assert.Equal(t, want.Tools(), h.Snapshot().Tools())
		assert.Equal(t, h.Snapshot().Tokens(), rawTotal(h.Snapshot())+h.Snapshot().Breakdown().Tools)
	}
	same(convo.Open(t.Context(), store, "k", opts))
	same(convo.Restore(readBack(t, want), opts))
	same(convo.Restore(want, opts))
	r := apply(t, h, convo.Edit{Drop: []convo.ID{1}})
	require.NoError(t, h.Undo(r))
	same(h, nil)
	require.NoError(t, h.Rollback(mark))
	same(h, nil)

	other, err := convo.Open(t.Context(), store, "k", opts)
	require.NoError(t, err)
	require.NoError(t, h.SetTools(webTool))
	require.NoError(t, h.Save(t.Context()))
	_, _, err = other.Reload(t.Context())
	require.NoError(t, err)
	want = h.Snapshot()
	same(other, nil)

	require.NoError(t, h.SetTools())
	require.NoError(t, h.Save(t.Context()))
	want = h.Snapshot()
	same(convo.Open(t.Context(), store, "k", opts))
	require.NoError(t, h.SetToolsKey("v2"))
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	assert.Contains(t, string(data), `"tools":{"key":"v2"}`)
}

// Other tools end the bond of signed reasoning, and the same ones restore it.
func TestSetTools_Bound(t *testing.T) {
	for name, set := range map[string]func(h *convo.History, version string) error{
		"tools": func(h *convo.History, version string) error { return h.SetTools(convo.Tool{Name: version}) },
		"a key": func(h *convo.History, version string) error { return h.SetToolsKey(version) },
	} {
		t.Run(name, func(t *testing.T) {
			h := historyOf(t, bare())
			require.NoError(t, set(h, "v1"))
			mustAppend(t, h, convo.User("q"), signed("a"), convo.User("r"))
			assert.True(t, h.Snapshot().Bound(2))
			require.NoError(t, set(h, "v2"))
			assert.False(t, h.Snapshot().Bound(2))
			require.NoError(t, set(h, "v1"))
			assert.True(t, h.Snapshot().Bound(2))
			require.NoError(t, set(h, ""+"v3"))
			assert.False(t, readBack(t, h.Snapshot()).Bound(2))
		})
	}
}

func TestSetTools_Refuses(t *testing.T) {
	h := historyOf(t, bare(), convo.User("q"))
	require.NoError(t, h.SetTools(searchTool))
	before := h.Snapshot()
	for name, err := range map[string]error{
		"no name":        h.SetTools(searchTool, convo.Tool{Description: "d"}),
		"no format":      h.SetTools(convo.Tool{Opaque: convo.Opaque{JSON: "{}"}}),
		"no JSON":        h.SetTools(convo.Tool{Name: "a", Opaque: convo.Opaque{Format: "x", JSON: "{"}}),
		"too many":       h.SetTools(make([]convo.Tool, 10_001)...),
		"a key too long": h.SetToolsKey(strings.Repeat("k", 257)),
	} {
		var wrong *convo.ValueError
		require.ErrorAs(t, err, &wrong, name)
	}
	assert.Equal(t, before.Version(), h.Snapshot().Version())
	assert.EqualError(t, h.SetTools(searchTool, convo.Tool{}), `convo: tools[1]: Tool.Name is "", want a name, or an Opaque for a tool of the provider's`)
	require.NoError(t, h.Close())
	assert.ErrorIs(t, h.SetTools(), convo.ErrClosed)
	assert.ErrorIs(t, new(convo.History).SetTools(), convo.ErrClosed)
	assert.Nil(t, new(convo.Snapshot).Tools())
}

// A floor that tools make too large is said to be so.
func TestSetTools_Floor(t *testing.T) {
	opts := bare()
	opts.Limits = convo.Limits{Window: 400, Reserve: -1}
	h := historyOf(t, opts, convo.User("q"))
	require.NoError(t, h.SetTools(convo.Tool{Name: "big", Description: strings.Repeat("d", 1000)}))
	_, _, err := h.Prepare(t.Context())
	var floor *convo.FloorError
	require.ErrorAs(t, err, &floor)
	assert.Greater(t, floor.Tools, 1000)
	assert.Zero(t, floor.System)
	assert.Contains(t, err.Error(), "tool definitions and the like hold 1,")
}

func TestPin_AnyMemberStandsForItsExchange(t *testing.T) {
	for _, tt := range []struct {
		name string
		ids  []convo.ID
		want []convo.ID
	}{
		{"call", []convo.ID{3}, []convo.ID{3, 4, 5}},
		{"first result", []convo.ID{4}, []convo.ID{3, 4, 5}},
		{"last result", []convo.ID{5}, []convo.ID{3, 4, 5}},
		{"two of one", []convo.ID{5, 3}, []convo.ID{3, 4, 5}},
		{"several, unordered", []convo.ID{9, 2, 4}, []convo.ID{2, 3, 4, 5, 9}},
		{"system needs none", []convo.ID{1}, nil},
		{"system and other", []convo.ID{1, 6}, []convo.ID{6}},
		{"none", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tour(t, nil)
			require.NoError(t, h.Pin(tt.ids...))
			assert.Equal(t, tt.want, h.Snapshot().Pinned())
			assert.Equal(t, tt.want, h.Snapshot().Pinned())
			var marked []convo.ID
			for _, e := range h.Snapshot().All() {
				if e.Pinned {
					marked = append(marked, e.ID)
				}
			}
			assert.Equal(t, tt.want, marked)
			require.NoError(t, h.Unpin(tt.ids...))
			assert.Empty(t, h.Snapshot().Pinned())
		})
	}
}

func TestPin_AllOrNone(t *testing.T) {
	h := tour(t, nil)
	require.NoError(t, h.Pin(6))
	_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2}})
	require.NoError(t, err)
	for _, id := range []convo.ID{0, -1, 2, 10, 99} {
		for name, change := range map[string]func(...convo.ID) error{"Pin": h.Pin, "Unpin": h.Unpin} {
			t.Run(name, func(t *testing.T) {
				unchanged(t, h, func() {
					err := change(7, id, 6)
					require.ErrorIs(t, err, convo.ErrNotFound)
					assert.ErrorContains(t, err, fmt.Sprintf("entry %d is not in the view", id))
				})
			})
		}
	}
}

func TestPin_OpenExchangeHoldsResultsToCome(t *testing.T) {
	a, b := callOf("a"), callOf("b")
	h := historyOf(t, nil, convo.User("u"), convo.Assistant("", a, b), convo.Result(b, "1"))
	require.NoError(t, h.Pin(3))
	mustAppend(t, h, convo.Result(a, "2"), convo.Assistant("x"), convo.User("v"))
	assert.Equal(t, []convo.ID{2, 3, 4}, h.Snapshot().Pinned())
	n, err := h.SplicePrefix(h.Snapshot(), 6, "s")
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	assert.Equal(t, []convo.ID{2, 3, 4, 6}, idsOf(h.Snapshot()))
}

func TestPinLast(t *testing.T) {
	h := historyOf(t, nil, convo.System("s"))
	require.ErrorIs(t, h.PinLast(), convo.ErrNotFound)
	c := callOf("c")
	mustAppend(t, h, convo.User("u"), convo.Assistant("", c), convo.Result(c, "r"))
	require.NoError(t, h.PinLast())
	require.NoError(t, h.PinLast())
	assert.Equal(t, []convo.ID{3, 4}, h.Snapshot().Pinned())
}

func TestUnpin_WhatIsNotPinned(t *testing.T) {
	h := tour(t, nil)
	require.NoError(t, h.Pin(2, 6))
	require.NoError(t, h.Unpin(7, 4, 1))
	assert.Equal(t, []convo.ID{2, 6}, h.Snapshot().Pinned())
	require.NoError(t, h.Unpin(6))
	assert.Equal(t, []convo.ID{2}, h.Snapshot().Pinned())
}

// A pinned exchange keeps bytes and order through any number of edits.
func TestPin_SurvivesEdits(t *testing.T) {
	h := tour(t, nil)
	require.NoError(t, h.Pin(2, 4))
	before := textsOf(h.Snapshot())[1:5]
	for range 5 {
		mustAppend(t, h, convo.Assistant("a"), convo.User("u"))
		_, err := h.SplicePrefix(h.Snapshot(), h.Len(), "s")
		require.NoError(t, err)
		assert.Equal(t, []convo.ID{2, 3, 4, 5}, h.Snapshot().Pinned())
		assert.Equal(t, before, textsOf(h.Snapshot())[2:6])
	}
	require.NoError(t, h.Unpin(3))
	_, err := h.SplicePrefix(h.Snapshot(), h.Len(), "s")
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{2}, h.Snapshot().Pinned())
}

func TestPin_GoneWithRollback(t *testing.T) {
	h := tour(t, nil)
	require.NoError(t, h.Pin(2))
	at := h.Snapshot()
	mustAppend(t, h, convo.Assistant("a"), convo.User("u"))
	require.NoError(t, h.Pin(6, 10, 11))
	held := h.Snapshot()
	require.NoError(t, h.Rollback(at))
	assert.Equal(t, []convo.ID{2, 6}, h.Snapshot().Pinned(), "a pin of what remains stays, also a newer one")
	mustAppend(t, h, convo.Assistant("b"))
	require.NoError(t, h.PinLast())
	assert.Equal(t, []convo.ID{2, 6, 12}, h.Snapshot().Pinned())
	assert.Equal(t, []convo.ID{2, 6, 10, 11}, held.Pinned(), "the snapshot stays")
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, new(convo.Snapshot)), "no pin is left of what went")

	_, err = h.Rewind(1)
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{2, 6}, h.Snapshot().Pinned(), "a pin does not hold a turn against Rewind")
}

func TestPin_DoesNotChangeSnapshots(t *testing.T) {
	h := tour(t, nil)
	var held []*convo.Snapshot
	var pinned [][]convo.ID
	for _, id := range []convo.ID{2, 6, 8, 4, 9, 7} {
		require.NoError(t, h.Pin(id))
		held, pinned = append(held, h.Snapshot()), append(pinned, h.Snapshot().Pinned())
	}
	for _, id := range []convo.ID{9, 2, 4} {
		require.NoError(t, h.Unpin(id))
		require.NoError(t, h.Pin(8))
	}
	for i, s := range held {
		assert.Equal(t, pinned[i], s.Pinned())
	}
}

func TestPin_OnAppend(t *testing.T) {
	c := callOf("c")
	opts := &convo.Options{Pin: func(m convo.Message) bool {
		pin := m.Text() == "keep"
		if len(m.Parts) > 0 {
			m.Parts[0] = convo.Text("changed")
		}
		return pin
	}}
	h := historyOf(t, opts, convo.User("keep"), convo.Assistant("", c), convo.Result(c, "keep"), convo.Assistant("x"))
	assert.Equal(t, []convo.ID{1, 2, 3}, h.Snapshot().Pinned(), "a result pins its exchange")
	assert.Equal(t, []string{"keep", "", "keep", "x"}, textsOf(h.Snapshot()), "it is given a copy")
	unchanged(t, h, func() {
		_, err := h.Append(convo.User("keep"), convo.User("keep"))
		require.Error(t, err)
	})
}

func TestPinFirstUser(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts convo.Options
		msgs []convo.Message
		want []convo.ID
	}{
		{"first", convo.Options{}, []convo.Message{convo.System("s"), convo.User("u"), convo.Assistant("a"), convo.User("v")}, []convo.ID{2}},
		{"first of a run", convo.Options{Roles: convo.Relaxed()}, []convo.Message{convo.Assistant("x"), convo.User("u"), convo.User("v"), convo.Assistant("a"), convo.User("w")}, []convo.ID{2}},
		{"with Pin", convo.Options{Pin: func(m convo.Message) bool { return m.Role == convo.RoleAssistant }}, []convo.Message{convo.User("u"), convo.Assistant("a"), convo.User("v")}, []convo.ID{1, 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.opts.PinFirstUser = true
			h := historyOf(t, &tt.opts)
			for _, m := range tt.msgs {
				mustAppend(t, h, m)
			}
			assert.Equal(t, tt.want, h.Snapshot().Pinned())
			batch := historyOf(t, &tt.opts, tt.msgs...)
			assert.Equal(t, tt.want, batch.Snapshot().Pinned())
		})
	}
}

// A provider may give each round the same call id. A pin holds one exchange, not all
// with that id.
func TestPin_OfAReusedCallID(t *testing.T) {
	h := historyOf(t, bare(), convo.User("u"))
	c := callOf("call_0")
	for range 5 {
		mustAppend(t, h, convo.Assistant("", c), convo.Result(c, "r"))
	}
	require.NoError(t, h.Pin(7))
	assert.Equal(t, []convo.ID{6, 7}, h.Snapshot().Pinned())
	_, err := h.SplicePrefix(h.Snapshot(), 100, "s")
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{1, 6, 7, 10, 11}, idsOf(h.Snapshot()))
}

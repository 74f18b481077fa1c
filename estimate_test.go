package convo_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
)

// A usage report for a request that was sent before a compaction does not raise
// the estimate to what it was.
func TestRecordUsage_StaleUsageDoesNotRaiseTheEstimate(t *testing.T) {
	h := historyOf(t, bare())
	for range 40 {
		mustAppend(t, h, convo.User(strings.Repeat("u", 1000)), convo.Assistant(strings.Repeat("a", 1000)))
	}
	sent := h.Snapshot()
	_, err := h.SplicePrefix(sent, 78, "what went")
	require.NoError(t, err)
	spliced := h.Tokens().Tokens
	require.Less(t, spliced, 3000)
	require.NoError(t, h.RecordUsage(sent, convo.Usage{Input: 80_500}))
	assert.Equal(t, spliced+500, h.Tokens().Tokens)
	assert.Equal(t, 2000+500, h.Tokens().Measured, "two entries are still as they were sent")
}

// What was appended after the request was made stays counted.
func TestRecordUsage_WhatCameAfterTheSnapshotStaysCounted(t *testing.T) {
	h := historyOf(t, bare(), convo.User(strings.Repeat("u", 900)))
	sent := h.Snapshot()
	mustAppend(t, h, convo.Assistant(strings.Repeat("a", 10_000)))
	require.NoError(t, h.RecordUsage(sent, convo.Usage{Input: 1000}))
	assert.Equal(t, convo.Estimate{Tokens: 11_000, Upper: 11_000 + 2730, Measured: 1000}, h.Tokens())
}

func TestRecordUsage_Calibrates(t *testing.T) {
	for _, tt := range []struct {
		name  string
		usage convo.Usage
		want  int // with 100 raw tokens measured and 50 after them
	}{
		{"more is overhead", convo.Usage{Input: 130}, 180},
		{"just so", convo.Usage{Input: 100}, 150},
		{"less is a ratio", convo.Usage{Input: 80}, 120},
		{"cached ones are part of Input", convo.Usage{Input: 130, CacheRead: 100, CacheWrite: 20, Output: 77}, 180},
		{"the request alone counts", convo.Usage{Input: 630, Extra: 500}, 180},
		{"zero is ignored", convo.Usage{Output: 5}, 150},
		{"a request without tokens is ignored", convo.Usage{Input: 500, Extra: 500}, 150},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := historyOf(t, bare(), convo.User(strings.Repeat("u", 100)))
			sent := h.Snapshot()
			mustAppend(t, h, convo.Assistant(strings.Repeat("a", 50)))
			require.NoError(t, h.RecordUsage(sent, tt.usage))
			assert.Equal(t, tt.want, h.Tokens().Tokens)
			size := tt.usage.Input - tt.usage.Extra
			if size == 0 {
				assert.Equal(t, (tt.want*9+7)/8, h.Tokens().Upper)
			} else {
				assert.InDelta(t, float64(tt.want)+0.525*float64(tt.want-size), h.Tokens().Upper, 2, "what is new is in doubt")
			}
			assert.Equal(t, size, h.Tokens().Measured)
			assert.Equal(t, 150, h.Snapshot().Tokens(), "the raw total stays")
		})
	}
}

func TestRecordUsage_MeasuredFollows(t *testing.T) {
	const overhead = 1000
	var h *convo.History
	var sent *convo.Snapshot
	for _, tt := range []struct {
		name   string
		change func(t *testing.T)
		want   int // raw tokens still there of the 100 + 100 + 30 + 30 + 7
	}{
		{"nothing", func(*testing.T) {}, 267},
		{"append", func(t *testing.T) { mustAppend(t, h, convo.Assistant("x")) }, 267},
		{"drop", func(t *testing.T) { apply(t, h, convo.Edit{Drop: []convo.ID{2}}) }, 167},
		{"summary", func(t *testing.T) { apply(t, h, convo.Edit{Drop: []convo.ID{2}, Summary: &convo.Summary{Text: "s"}}) }, 167},
		{"rewind", func(t *testing.T) { rewind(t, h) }, 237},
		{"append and rewind", func(t *testing.T) {
			mustAppend(t, h, convo.Assistant("x"), convo.User("y"))
			rewind(t, h)
		}, 267},
		{"rewind and append", func(t *testing.T) { rewind(t, h); mustAppend(t, h, convo.User("y")) }, 237},
		{"append, edit and rollback", func(t *testing.T) {
			mustAppend(t, h, convo.Assistant("x"), convo.User("y"), convo.Assistant("z"))
			apply(t, h, convo.Edit{Drop: []convo.ID{2, 4}})
			require.NoError(t, h.Rollback(sent))
		}, 267},
		{"system", func(t *testing.T) { require.NoError(t, h.SetSystem(convo.System("s"))) }, 260},
		{"system twice", func(t *testing.T) {
			require.NoError(t, h.SetSystem(convo.System("s")))
			require.NoError(t, h.SetSystem(convo.System("t")))
		}, 260},
		{"ephemeral", func(t *testing.T) {
			require.NoError(t, h.SetEphemeral(convo.User("other")))
			require.NoError(t, h.SetEphemeral(convo.User("again")))
		}, 237},
		{"report again", func(t *testing.T) {
			apply(t, h, convo.Edit{Drop: []convo.ID{2}})
			require.NoError(t, h.RecordUsage(sent, convo.Usage{Input: 267 + overhead}))
		}, 167},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h = historyOf(t, bare(), convo.System("1234567"), convo.User(strings.Repeat("u", 100)), convo.Assistant(strings.Repeat("a", 100)), convo.User(strings.Repeat("v", 30)))
			require.NoError(t, h.SetEphemeral(convo.User(strings.Repeat("e", 30))))
			sent = h.Snapshot()
			require.NoError(t, h.RecordUsage(sent, convo.Usage{Input: 267 + overhead}))
			tt.change(t)
			assert.Equal(t, tt.want+overhead, h.Tokens().Measured)
			assert.Equal(t, h.Snapshot().Tokens()+overhead, h.Tokens().Tokens)
		})
	}
}

func TestRecordUsage_OlderFigureIsIgnored(t *testing.T) {
	h := tour(t, bare())
	older := h.Snapshot()
	mustAppend(t, h, convo.Assistant("x"))
	newer := h.Snapshot()
	require.NoError(t, h.RecordUsage(newer, convo.Usage{Input: newer.Tokens() + 10}))
	unchanged(t, h, func() { require.NoError(t, h.RecordUsage(older, convo.Usage{Input: 9999})) })
	require.NoError(t, h.RecordUsage(newer, convo.Usage{Input: newer.Tokens() + 20}))
	assert.Equal(t, h.Snapshot().Tokens()+20, h.Tokens().Tokens, "one for the same request counts")
}

// An older report is ignored even if another model was used in between.
func TestRecordUsage_OlderFigureIsIgnoredAfterAnotherModel(t *testing.T) {
	h := tour(t, bare())
	older := h.Snapshot()
	mustAppend(t, h, convo.Assistant("x"))
	newer := h.Snapshot()
	require.NoError(t, h.RecordUsage(newer, convo.Usage{Input: newer.Tokens() + 10}))
	require.NoError(t, h.SetModel("b", convo.Limits{}))
	require.NoError(t, h.SetModel("", convo.Limits{}))
	require.NoError(t, h.RecordUsage(older, convo.Usage{Input: 9999}))
	assert.Equal(t, h.Snapshot().Tokens()+10, h.Tokens().Tokens)
}

// fullUsage has another value in each field.
var fullUsage = convo.Usage{Input: 90, CacheRead: 2, CacheWrite: 33, CacheWriteLong: 4, InputAudio: 5, Extra: 6, Output: 70, Reasoning: 8, OutputAudio: 9}

func TestRecordUsage_Refuses(t *testing.T) {
	h := tour(t, nil)
	at := h.Snapshot()
	require.NoError(t, h.RecordUsage(at, fullUsage))
	require.Equal(t, 9+1, reflect.TypeFor[convo.Usage]().NumField(), "the tests below and fullUsage name all fields, but for CacheTTL")
	for name, u := range map[string]convo.Usage{
		"Usage.Input": {Input: -1}, "Usage.CacheRead": {Input: 5, CacheRead: -1},
		"Usage.CacheWrite": {Input: 5, CacheWrite: math.MinInt}, "Usage.Output": {Input: 5, Output: -1},
		"Usage.CacheWriteLong": {Input: 5, CacheWriteLong: -1}, "Usage.InputAudio": {Input: 5, InputAudio: -1},
		"Usage.Extra": {Input: 5, Extra: -1}, "Usage.Reasoning": {Reasoning: -1}, "Usage.OutputAudio": {OutputAudio: -1},
	} {
		t.Run(name, func(t *testing.T) {
			unchanged(t, h, func() { assert.Equal(t, []string{name}, valueErrors(t, h.RecordUsage(at, u))) })
		})
	}
	for name, u := range map[string]convo.Usage{
		"CacheWriteLong is 6, want at most 5, Usage.CacheWrite, of which it is a part":  {Input: 9, CacheWrite: 5, CacheWriteLong: 6},
		"InputAudio is 6, want at most 5, Usage.Input, of which it is a part":           {Input: 5, InputAudio: 6},
		"Extra is 6, want at most 5, Usage.Input, of which it is a part":                {Input: 5, Extra: 6},
		"Reasoning is 6, want at most 5, Usage.Output, of which it is a part":           {Output: 5, Reasoning: 6},
		"OutputAudio is 6,000, want at most 5,000, Usage.Output, of which it is a part": {Output: 5000, OutputAudio: 6000},
	} {
		t.Run(name, func(t *testing.T) {
			unchanged(t, h, func() { assert.EqualError(t, h.RecordUsage(at, u), "convo: Usage."+name) })
		})
	}
	other := tour(t, nil)
	imported := convo.NewSnapshot([]convo.Message{convo.User("u")})
	for name, s := range map[string]*convo.Snapshot{"foreign": other.Snapshot(), "nil": nil, "zero": {}, "imported": imported} {
		t.Run(name, func(t *testing.T) {
			unchanged(t, h, func() { assert.ErrorIs(t, h.RecordUsage(s, convo.Usage{Input: 5}), convo.ErrStale) })
		})
	}
}

func TestRecordUsage_Largest(t *testing.T) {
	h := tour(t, nil)
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: math.MaxInt}))
	e := h.Tokens()
	assert.Positive(t, e.Tokens)
	assert.GreaterOrEqual(t, e.Upper, e.Tokens)
	mustAppend(t, h, convo.Assistant("x"))
	assert.GreaterOrEqual(t, h.Tokens().Upper, e.Upper)
}

func TestRecordUsage_OnAnEmptyView(t *testing.T) {
	h := historyOf(t, bare())
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 300}))
	mustAppend(t, h, convo.User("12345"))
	assert.Equal(t, convo.Estimate{Tokens: 305, Upper: 308, Measured: 300}, h.Tokens())
}

// A report that lacks a part of the request says little of what is new: a long result
// after it counts nearly as before.
func TestRecordUsage_OneLowReport(t *testing.T) {
	h := historyOf(t, bounded(1_000_000))
	for range 12 {
		turns(t, h, 2)
		require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: h.Snapshot().Tokens()}))
	}
	n := h.Snapshot().Tokens()
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: n * 3 / 10}))
	before := h.Tokens().Tokens
	mustAppend(t, h, convo.User(strings.Repeat("u", 80_000)))
	assert.GreaterOrEqual(t, h.Tokens().Tokens-before, 70_000)
}

// The tools of a conversation go with it to another model, until the limits say
// otherwise, also after Open.
func TestSetModel_KeepsTheTools(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", bare())
	turns(t, h, 1)
	raw := h.Snapshot().Tokens()
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: raw + 700}))
	require.NoError(t, h.SetModel("b", convo.Limits{}))
	assert.Equal(t, raw+700, h.Tokens().Tokens)
	save(t, h)
	assert.Equal(t, raw+700, open(t, s, "k", bare()).Tokens().Tokens)
	require.NoError(t, h.SetLimits(convo.Limits{Tools: 50}))
	assert.Equal(t, raw+50, h.Tokens().Tokens)
	save(t, h)
	assert.Equal(t, raw+50, open(t, s, "k", bare()).Tokens().Tokens)
}

// Reports that are ever further above the estimate, and reports that are too low, are
// logged once.
func TestRecordUsage_Warns(t *testing.T) {
	for _, tt := range []struct {
		name  string
		usage func(n, raw int) int
		want  int
	}{
		{"in step", func(_, raw int) int { return raw + 700 }, 0},
		{"up by 3 % each time", func(n, raw int) int { return int(float64(raw) * math.Pow(1.03, float64(n))) }, 1},
		{"too low", func(_, raw int) int { return raw / 5 }, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			opts := bare()
			opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
			h := historyOf(t, opts)
			for n := range 40 {
				turns(t, h, 1)
				require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: tt.usage(n, h.Snapshot().Tokens())}))
			}
			assert.Equal(t, tt.want, strings.Count(log.String(), "level=WARN"), "%s", log.String())
		})
	}
}

func TestSetModel_KeepsCalibrationsApart(t *testing.T) {
	opts := bare()
	opts.Limits.Tools = 20
	h := tour(t, opts)
	raw := h.Snapshot().Tokens()
	ofFirst := h.Snapshot()
	require.NoError(t, h.RecordUsage(ofFirst, convo.Usage{Input: raw + 300}))
	require.NoError(t, h.SetModel("b", convo.Limits{}))
	assert.Equal(t, raw+300, h.Tokens().Tokens, "a new one starts from the prior, with the tools of the first")
	assert.Zero(t, h.Tokens().Measured)
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: raw + 50}))
	assert.Equal(t, raw+50, h.Tokens().Tokens)
	require.NoError(t, h.SetModel("", convo.Limits{}))
	assert.Equal(t, raw+300, h.Tokens().Tokens, "a known one from what was learned")
	require.NoError(t, h.SetModel("b", convo.Limits{}))
	assert.Equal(t, raw+50, h.Tokens().Tokens)
	unchanged(t, h, func() { require.NoError(t, h.SetModel("b", convo.Limits{})) })

	fork, err := convo.Restore(h.Snapshot(), bare())
	require.NoError(t, err)
	assert.Equal(t, raw+50, fork.Tokens().Tokens, "kept through Restore")
	require.NoError(t, fork.SetModel("", convo.Limits{}))
	assert.Equal(t, raw+300, fork.Tokens().Tokens)
}

// A report that arrives after SetModel belongs to the model that the request was
// sent to.
func TestRecordUsage_ForThePreviousModel(t *testing.T) {
	h := tour(t, bare())
	raw, sent := h.Snapshot().Tokens(), h.Snapshot()
	require.NoError(t, h.SetModel("b", convo.Limits{}))
	require.NoError(t, h.RecordUsage(sent, convo.Usage{Input: raw + 300}))
	assert.Equal(t, raw+300, h.Tokens().Tokens, "the tools are those of the conversation")
	require.NoError(t, h.SetModel("", convo.Limits{}))
	assert.Equal(t, raw+300, h.Tokens().Tokens)
}

func TestSetLimits_Overhead(t *testing.T) {
	opts := bare()
	opts.Limits.Tools = 20
	h := tour(t, opts)
	raw := h.Snapshot().Tokens()
	assert.Equal(t, raw+20, h.Tokens().Tokens)
	require.NoError(t, h.SetLimits(convo.Limits{Tools: 70}))
	assert.Equal(t, raw+70, h.Tokens().Tokens)
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: raw + 300}))
	require.NoError(t, h.SetLimits(convo.Limits{Tools: 5}))
	assert.Equal(t, raw+300, h.Tokens().Tokens, "a measured one takes the place of the guess")
	assert.Equal(t, raw+300, h.Tokens().Measured)
}

// A usage report for a view that a rollback took back does not keep it in
// memory.
func TestRecordUsage_KeepsNothingOfWhatWasTakenBack(t *testing.T) {
	h := historyOf(t, nil)
	texts := appendWatched(t, h, 4, turnsOf)
	at := h.Snapshot()
	rewind(t, h)
	require.NoError(t, h.RecordUsage(at, convo.Usage{Input: 10_000}))
	at = nil
	assert.Zero(t, inMemory(texts[2:]))
	assert.Equal(t, 2, inMemory(texts))
	runtime.KeepAlive(h)
}

// When a rollback restores entries that an edit took, a report that covered them
// covers them again. An entry that the edit changed is a new one, even if it
// weighs the same.
func TestRecordUsage_KnowsEntriesAgain(t *testing.T) {
	start := func() *convo.History {
		h := historyOf(t, nil, convo.User("go"), convo.Assistant("", callOf("c")), convo.Result(callOf("c"), "sunny"), convo.Assistant("done"))
		mustAppend(t, h, convo.User("more"), convo.Assistant("yes"), convo.User("and"))
		require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 100}))
		return h
	}
	t.Run("brought back", func(t *testing.T) {
		h := start()
		before, at := h.Tokens(), h.Snapshot()
		mustAppend(t, h, convo.Assistant("x"), convo.User("y"))
		r := apply(t, h, convo.Edit{Drop: []convo.ID{1, 8}})
		assert.Zero(t, r.PrefixKept)
		require.Less(t, h.Tokens().Measured, before.Measured)
		require.NoError(t, h.Rollback(at))
		assert.Equal(t, before, h.Tokens())
	})
	t.Run("in a History of its JSON", func(t *testing.T) {
		h := start()
		mustAppend(t, h, convo.Assistant("x"), convo.User("y"))
		f := decoded(t, h)
		rewind(t, f)
		rewind(t, h)
		assert.Equal(t, idsOf(h.Snapshot()), idsOf(f.Snapshot()))
		assert.Equal(t, h.Snapshot().Tokens(), f.Snapshot().Tokens())
	})
	t.Run("of the same weight", func(t *testing.T) {
		h := start()
		apply(t, h, convo.Edit{Drop: []convo.ID{6}})
		before, raw := h.Tokens(), h.Snapshot().Tokens()
		apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 3, Text: "rainy"}}})
		require.Equal(t, raw, h.Snapshot().Tokens())
		assert.Less(t, h.Tokens().Measured, before.Measured)
	})
}

func TestRecordUsage_CachedTokensAreInInput(t *testing.T) {
	h := tour(t, nil)
	unchanged(t, h, func() {
		err := h.RecordUsage(h.Snapshot(), convo.Usage{Input: 5, CacheRead: 2000})
		require.EqualError(t, err, "convo: Usage.Input is 5, want at least 2,000, CacheRead + CacheWrite, because Input includes cached tokens")
	})
	unchanged(t, h, func() {
		require.ErrorAs(t, h.RecordUsage(h.Snapshot(), convo.Usage{CacheRead: 1}), new(*convo.ValueError))
	})
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 2005, CacheRead: 2000, CacheWrite: 5}))
}

// A compaction is applied while a request is on its way. The usage of that request
// does not make the next one compact again.
func TestRecordUsage_OfARequestBeforeTheCompaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		opts := windowOf(4000, convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
			calls++
			time.Sleep(time.Second)
			return convo.Summary{Text: "short"}, nil
		}), MaxTokens: 100, Window: -1})
		opts.Limits.High, opts.Limits.Soft, opts.Limits.Low = 3000, 2000, 1000
		h := toolTurn(t, opts, 20)
		for range 5 {
			mustAppend(t, h, convo.User("go on"))
			sent := prepare(t, h)
			h.CompactInBackground(t.Context())
			time.Sleep(2 * time.Minute) // until the answer comes
			require.NoError(t, h.RecordUsage(sent, convo.Usage{Input: sent.Tokens()}))
			mustAppend(t, h, convo.Assistant("done"))
			assert.Less(t, h.Status().Upper, 1200)
		}
		assert.Equal(t, 1, calls)
	})
}

// What a figure can be goes by the window, and by High where there is none.
func TestRecordUsage_TooLargeByWhichLimit(t *testing.T) {
	for _, tt := range []struct {
		limits   convo.Limits
		input    int
		believed bool
	}{
		{convo.Limits{High: 10_000}, 9_000, true}, // 5,000, and 4 times what was counted
		{convo.Limits{High: 10_000}, 9_001, false},
		{convo.Limits{Window: 10_000, Reserve: -1}, 9_000, true},
		{convo.Limits{Window: 10_000, Reserve: -1}, 9_001, false},
		{convo.Limits{Window: 100_000, Reserve: -1, High: 10_000}, 54_000, true}, // 50,000
		{convo.Limits{Window: 100_000, Reserve: -1, High: 10_000}, 54_001, false},
		{convo.Limits{}, 600_000, true},
	} {
		opts := bare()
		opts.Limits = tt.limits
		h := historyOf(t, opts)
		turns(t, h, 1)
		before := h.Tokens().Tokens
		require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: tt.input}))
		if tt.believed {
			assert.Equal(t, tt.input, h.Tokens().Tokens, "%+v", tt)
		} else {
			assert.Equal(t, before, h.Tokens().Tokens, "%+v", tt)
		}
	}
}

// A figure that comes after the switch belongs to the model that was asked.
// What is known of a model stays, however many others are reported on, in
// whatever order.
func TestSetModel_ManyModels(t *testing.T) {
	h := tour(t, bare())
	raw := h.Snapshot().Tokens()
	want := map[string]int{}
	for round := range 2 {
		for i, model := range []string{"a", "b", "c", "d", "e"} {
			require.NoError(t, h.SetModel(model, convo.Limits{}))
			want[model] = raw + 10*i + round
			require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: want[model]}))
			assert.Equal(t, want[model], h.Tokens().Tokens)
		}
	}
	for model, tokens := range want {
		require.NoError(t, h.SetModel(model, convo.Limits{}))
		assert.Equal(t, tokens, h.Tokens().Tokens, model)
	}
}

// Another tokenizer changes no estimate, of the present model or of others.
func TestSetModel_AnotherTokenizer(t *testing.T) {
	h := tour(t, bare())
	raw := h.Snapshot().Tokens()
	want := map[string]int{"a": raw + 10, "b": raw - 20}
	for _, model := range []string{"a", "b"} {
		require.NoError(t, h.SetModel(model, convo.Limits{}))
		require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: want[model]}))
	}
	opts := bare()
	opts.Tokenizer = convo.TokenizerFunc(func(s string) int { return 2 * len(s) })
	again, err := convo.Restore(h.Snapshot(), opts)
	require.NoError(t, err)
	require.Equal(t, 2*raw, again.Snapshot().Tokens())
	for _, model := range []string{"b", "a"} {
		require.NoError(t, again.SetModel(model, convo.Limits{}))
		assert.InDelta(t, want[model], again.Tokens().Tokens, 1, model)
	}
}

// A ruler is one way to count tokens.
type ruler struct {
	perByte float64
	message int
}

var rulers = []ruler{{0.25, 4}, {0.5, 8}, {0.125, 2}, {0.4, 4}, {0.25, 12}, {0.25, -1}}

func (c ruler) options() *convo.Options {
	return &convo.Options{
		Roles:     convo.Relaxed(),
		Tokenizer: convo.TokenizerFunc(func(s string) int { return int(c.perByte*float64(len(s)) + 0.5) }),
		Overheads: convo.Overheads{Message: c.message},
		Limits:    convo.Limits{Window: 20_000, Reserve: -1, MinFree: 1},
		Strategy:  convo.Truncate{},
	}
}

// truthOf is what the simulated provider counts for a view. Each message weighs a
// little more than by any of the rulers, and tools are in each request.
func truthOf(s *convo.Snapshot) int {
	const tools = 700
	n := 0.0
	for _, e := range s.All() {
		n += 0.3*float64(len(e.Message.Text())) + 5
	}
	return tools + int(n)
}

// A writer is one process that works on the conversation.
type writer struct {
	h  *convo.History
	as ruler
	at *convo.Snapshot // what was sent, and is not answered yet

	measured map[string]bool // the texts of the view that usage was last reported for; nil: not known
}

// report reports the usage of a request.
func (w *writer) report(at *convo.Snapshot) error {
	if err := w.h.RecordUsage(at, convo.Usage{Input: truthOf(at)}); err != nil {
		return err
	}
	w.reported(at)
	return nil
}

func (w *writer) reported(at *convo.Snapshot) {
	if at.Model() != w.h.Snapshot().Model() {
		return
	}
	w.at, w.measured = nil, map[string]bool{} // a report for an earlier view is ignored
	for _, e := range at.All() {
		w.measured[e.Message.Text()] = true
	}
}

// applied returns what the view weighs by the figures of w alone: what was measured
// by what it was measured as, and the rest by the ratio.
func (w *writer) applied() float64 {
	overhead, old, fresh := convo.Rates(w.h)
	for _, e := range w.h.Snapshot().All() {
		rate := fresh
		if w.measured[e.Message.Text()] {
			rate = old
		}
		overhead += rate * float64(e.Tokens)
	}
	return overhead
}

// TestKnowledge has several writers work on one log, and checks what they hold of the
// size of a request: who opens what another has saved, and counts in the same way, gets
// the same estimate; all others are close to what the provider counts, and their bound
// is above it.
func TestKnowledge(t *testing.T) {
	for writers := 1; writers <= 3; writers++ {
		t.Run(fmt.Sprint(writers), func(t *testing.T) {
			done := map[string]int{}
			failed := 0
			for seed := range long.Or(30, 300) {
				if err := runKnowledge(t, uint64(seed), writers, done); err != nil {
					if failed++; failed <= 5 {
						t.Errorf("seed %d: %v", seed, err)
					}
				}
			}
			t.Log(failed, "seeds failed;", done)
			for _, op := range []string{"same", "other", "compaction", "model", "rewind", "recover"} {
				assert.Positive(t, done[op], op)
			}
			if writers > 1 {
				assert.Positive(t, done["reload"])
				assert.Positive(t, done["moved"])
			}
		})
	}
}

func runKnowledge(t *testing.T, seed uint64, writers int, done map[string]int) error {
	r := rand.New(rand.NewPCG(seed, 21))
	store := new(shelf)
	texts := 0
	text := func() string {
		texts++
		return fmt.Sprint(texts, strings.Repeat(" some words.", 1+r.IntN(60)))
	}
	all := make([]*writer, writers)
	first := rulers[r.IntN(len(rulers))]
	for i := range all {
		as := first
		if i > 0 && r.IntN(3) == 0 {
			as = rulers[r.IntN(len(rulers))]
		}
		all[i] = &writer{as: as, h: open(t, store, "k", as.options())}
		if i > 0 {
			all[i].measured = all[0].measured
			continue
		}
		h := all[i].h
		if r.IntN(2) == 0 {
			mustAppend(t, h, convo.System(text()))
		}
		for range 12 {
			mustAppend(t, h, convo.User(text()))
			at := h.Snapshot()
			mustAppend(t, h, convo.Assistant(text()))
			require.NoError(t, all[i].report(at))
		}
		save(t, h)
	}
	var log []string
	fault := func(format string, args ...any) error {
		return fmt.Errorf("%s\n\t%s", fmt.Sprintf(format, args...), strings.Join(log, "\n\t"))
	}
	// above checks the bound against the provider, for the model that was reported on,
	// if that of who h has its figures from was above it.
	above := func(what string, h *convo.History, was bool) error {
		truth, e := truthOf(h.Snapshot()), h.Tokens()
		if was && h.Snapshot().Model() == "" && e.Upper < truth-3 {
			return fault("%s: upper %d, truth %d", what, e.Upper, truth)
		}
		return nil
	}
	for range 30 {
		i := r.IntN(writers)
		w := all[i]
		op := r.IntN(14)
		switch op {
		case 0, 1:
			mustAppend(t, w.h, convo.User(text()))
		case 2, 3: // a whole request
			at := w.h.Snapshot()
			mustAppend(t, w.h, convo.Assistant(text()))
			require.NoError(t, w.report(at))
		case 4: // a request whose answer comes later
			mustAppend(t, w.h, convo.User(text()))
			w.at = w.h.Snapshot()
		case 5:
			if w.at != nil {
				mustAppend(t, w.h, convo.Assistant(text()))
				var stale *convo.StaleError
				if err := w.report(w.at); err != nil && !errors.As(err, &stale) {
					return fault("RecordUsage: %v", err)
				}
				w.at = nil
			}
		case 6:
			require.NoError(t, w.h.SetMeta("", text()))
		case 7:
			if w.h.Snapshot().Len() > 0 && r.IntN(2) == 0 {
				_ = w.h.PinLast()
			}
		case 8:
			_, err := w.h.Compact(t.Context(), "")
			done["compaction"]++
			log = append(log, fmt.Sprint(i, " compaction ", err))
		case 9:
			if r.IntN(2) == 0 {
				_, _ = w.h.Rewind(1)
				done["rewind"]++
			} else {
				if name := []string{"", "", "another"}[r.IntN(3)]; name != w.h.Snapshot().Model() {
					require.NoError(t, w.h.SetModel(name, convo.Limits{}))
					w.measured = nil
					done["model"]++
				}
			}
		case 10:
			if at := w.h.Snapshot(); at.Len() > 6 {
				n := truthOf(at)
				_, _, _ = w.h.Recover(t.Context(), at, tooLongOf(n-10, n, 0))
				w.reported(at)
				done["recover"]++
			}
		default:
			err := w.h.Save(t.Context())
			var conflict *convo.ConflictError
			if errors.As(err, &conflict) {
				before, was := w.h.Tokens(), isAbove(w.h)
				moved, refused, err := w.h.Reload(t.Context())
				if err != nil || len(refused) > 0 {
					return fault("Reload: %v, refused %d", err, len(refused))
				}
				done["reload"]++
				done["moved"] += len(moved)
				log = append(log, fmt.Sprint(i, " reload ", before, w.h.Tokens(), len(moved)))
				if got, want := w.h.Tokens().Tokens, w.applied(); w.measured != nil && math.Abs(float64(got)-want) > want/1000+2 {
					return fault("after Reload: %d tokens, by its own figures %.0f", got, want)
				}
				if err := above("after Reload", w.h, was); err != nil {
					return err
				}
				err = w.h.Save(t.Context())
				if err != nil {
					return fault("Save after Reload: %v", err)
				}
			} else if err != nil {
				return fault("Save: %v", err)
			}
			log = append(log, fmt.Sprint(i, " saved"))
			same := open(t, store, "k", w.as.options())
			_, seq := w.h.Saved()
			if _, newest := same.Saved(); seq != newest {
				continue // it had nothing to save, and another has saved since
			}
			want, limit := w.h.Tokens(), w.h.Status().Limit
			done["same"]++
			if got := same.Tokens(); got.Tokens != want.Tokens || got.Upper != want.Upper {
				return fault("Open with the same ruler: %+v, saved %+v", got, want)
			}
			if got := same.Status().Limit; got != limit {
				return fault("Open: a limit of %d, saved %d", got, limit)
			}
			as := rulers[r.IntN(len(rulers))]
			other := open(t, store, "k", as.options())
			done["other"]++
			got, most := other.Tokens(), want.Tokens/50+2
			if as.message != w.as.message*int(as.perByte/w.as.perByte) { // short messages weigh more or less of the whole
				most = want.Tokens/20 + 2
			}
			if want.Measured > 0 && abs(got.Tokens-want.Tokens) > most {
				return fault("Open as %v: %+v, saved %+v as %v", as, got, want, w.as)
			}
			reads := writer{h: other, measured: w.measured}
			if applied := reads.applied(); w.measured != nil && math.Abs(float64(got.Tokens)-applied) > applied/1000+2 {
				return fault("Open as %v: %d tokens, by its own figures %.0f", as, got.Tokens, applied)
			}
			if err := above(fmt.Sprint("Open as ", as), other, isAbove(w.h)); err != nil {
				return err
			}
			switch r.IntN(6) {
			case 0:
				*w = writer{h: same, as: w.as, measured: w.measured}
				log = append(log, fmt.Sprint(i, " opened the same"))
			case 1:
				*w = writer{h: other, as: as, measured: w.measured}
				log = append(log, fmt.Sprint(i, " opened as ", as))
			}
		}
		log = append(log, fmt.Sprint(i, " op ", op, w.h.Tokens(), truthOf(w.h.Snapshot()), cmp.Or(w.h.Snapshot().Model(), "-")))
	}
	return nil
}

func isAbove(h *convo.History) bool { return h.Tokens().Upper >= truthOf(h.Snapshot()) }

func abs(n int) int { return max(n, -n) }

// Several writers share a conversation, and each may count in its own way: one tokenizer
// makes twice as many tokens of a text as the other, and the overheads differ. The
// provider makes 1.4 tokens of what the first tokenizer counts as one, which all of them
// were told as a Prior, so that every true ratio of the test is the same.
type usageWriters struct {
	t     *testing.T
	r     *rand.Rand
	store *convotest.MemStore
	all   []*usageWriter
	log   []string // what was done
}

type usageWriter struct {
	*convo.History
	way  int // how it counts
	sent *convo.Snapshot
}

const (
	trueRatio = 1.4
	usageKey  = "c"
)

// usageOptions returns the options of a way to count.
func usageOptions(way int) *convo.Options {
	times := 1 + way%2
	return &convo.Options{
		Tokenizer: convo.TokenizerFunc(func(s string) int { return times * len(s) / 4 }),
		Overheads: convo.Overheads{Message: times * (1 + way/2)},
		Priors:    map[string]convo.Prior{"": {Ratio: int(100 * trueRatio / float64(times))}},
		Roles:     convo.Relaxed(),
		Strategy:  convo.Truncate{},
		Limits:    convo.Limits{Window: 1_000_000},
	}
}

// truth returns what the provider counts for a view.
func truth(s *convo.Snapshot) int {
	bytes := 0
	for _, m := range s.Messages() {
		bytes += len(m.Text()) + 4
	}
	return int(trueRatio * float64(bytes) / 4)
}

func (w *usageWriters) text() string {
	return strings.Repeat("abcd ", 200+w.r.IntN(2000))
}

func (w *usageWriters) open(way int) *usageWriter {
	h, err := convo.Open(w.t.Context(), w.store, usageKey, usageOptions(way))
	require.NoError(w.t, err)
	return &usageWriter{History: h, way: way}
}

// act does something at random with one of the writers.
func (w *usageWriters) act() {
	n := w.r.IntN(len(w.all))
	u := w.all[n]
	note := func(format string, args ...any) {
		w.log = append(w.log, fmt.Sprintf("%d: %s", n, fmt.Sprintf(format, args...)))
	}
	switch w.r.IntN(12) {
	case 0, 1:
		note("ask")
		mustAppend(w.t, u.History, convo.User(w.text()))
	case 2, 3:
		note("answer")
		if w.r.IntN(4) == 0 {
			require.NoError(w.t, u.SetEphemeral(convo.User(w.text())))
		}
		s := u.Snapshot()
		if w.r.IntN(3) > 0 {
			require.NoError(w.t, u.RecordUsage(s, convo.Usage{Input: truth(s)}))
		}
		mustAppend(w.t, u.History, convo.Assistant(w.text()))
		require.NoError(w.t, u.SetEphemeral())
	case 4:
		note("send")
		u.sent = u.Snapshot()
	case 5:
		if s := u.sent; s != nil {
			note("late usage")
			if err := u.RecordUsage(s, convo.Usage{Input: truth(s)}); err != nil {
				require.ErrorIs(w.t, err, convo.ErrStale)
			}
			u.sent = nil
		}
	case 6:
		note("title")
		require.NoError(w.t, u.SetMeta(fmt.Sprint(w.r.IntN(1000)), ""))
	case 7:
		if s := u.Snapshot(); s.Len() > 0 {
			note("pin")
			e, _ := s.At(w.r.IntN(s.Len()))
			require.NoError(w.t, u.Pin(e.ID))
		}
	case 8:
		if w.r.IntN(4) == 0 {
			note("compact")
			_, err := u.Compact(w.t.Context(), "")
			if err != nil {
				require.True(w.t, errors.Is(err, convo.ErrNoGain) || errors.As(err, new(*convo.FloorError)), "%v", err)
			}
		}
	case 9:
		if w.r.IntN(3) == 0 {
			note("model")
			require.NoError(w.t, u.SetModel([]string{"", "m"}[w.r.IntN(2)], convo.Limits{Window: 1_000_000}))
		}
	case 10:
		if w.r.IntN(3) == 0 {
			way := w.r.IntN(4)
			note("open as %d", way)
			*u = *w.open(way)
			w.check(u, "opened")
		}
	case 11:
		w.save(u, note)
	}
}

func (w *usageWriters) save(u *usageWriter, note func(string, ...any)) {
	for {
		err := u.Save(w.t.Context())
		if errors.As(err, new(*convo.ConflictError)) {
			note("reload")
			_, refused, err := u.Reload(w.t.Context())
			require.NoError(w.t, err)
			require.Empty(w.t, refused)
			w.check(u, "reloaded")
			continue
		}
		require.NoError(w.t, err)
		break
	}
	note("saved")
	got := w.open(u.way)
	if _, seq := got.Saved(); seq != savedSeq(u.History) {
		return // u had nothing to save
	}
	assert.Equal(w.t, u.Tokens().Tokens, got.Tokens().Tokens, "Tokens of an Open with the saver's options")
	assert.Equal(w.t, u.Tokens().Upper, got.Tokens().Upper, "Upper of an Open with the saver's options")
	other := w.open((u.way + 1 + w.r.IntN(3)) % 4)
	w.check(other, "opened as another")
}

func savedSeq(h *convo.History) uint64 {
	_, seq := h.Saved()
	return seq
}

// check wants the estimate within 2 % of the truth, and the bound above it.
func (w *usageWriters) check(u *usageWriter, what string) {
	is := truth(u.Snapshot())
	assert.InDelta(w.t, is, u.Tokens().Tokens, 0.02*float64(is)+2, "%s: Tokens", what)
	assert.GreaterOrEqual(w.t, u.Tokens().Upper+2, is, "%s: Upper", what)
}

// What was learned about tokens survives other writers, other tokenizers and every mix
// of Save, Reload and Open.
func TestReload_KeepsTheMeasure(t *testing.T) {
	seeds := long.Or(60, 300)
	failed := 0
	for seed := range seeds {
		ok := t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := &usageWriters{t: t, r: rand.New(rand.NewPCG(21, uint64(seed))), store: new(convotest.MemStore)}
			for range 1 + seed%3 {
				w.all = append(w.all, w.open(w.r.IntN(4)))
			}
			for range 60 {
				if w.act(); t.Failed() {
					t.Logf("after %s", strings.Join(w.log, ", "))
					return
				}
			}
		})
		if !ok {
			failed++
		}
	}
	if failed > 0 {
		t.Logf("%d of %d seeds failed", failed, seeds)
	}
}

// A provider counts tokens in its own way, with its own overhead.
type provider struct {
	overhead int
	ratio    float64 // of what bare counts
}

func (p provider) weigh(s *convo.Snapshot) int {
	return p.overhead + int(math.Round(p.ratio*float64(s.Tokens())))
}

// talk holds a conversation of the given number of turns, reports the usage of
// each request, and returns how far off the last estimate was.
func (p provider) talk(t *testing.T, h *convo.History, turns int) (off float64) {
	for range turns {
		mustAppend(t, h, convo.User(strings.Repeat("u", 300)))
		s := h.Snapshot()
		off = math.Abs(float64(h.Tokens().Tokens-p.weigh(s))) / float64(p.weigh(s))
		require.NoError(t, h.RecordUsage(s, convo.Usage{Input: p.weigh(s)}))
		mustAppend(t, h, convo.Assistant(strings.Repeat("a", 700)))
	}
	return off
}

// The ratio is learned from the differences between reports, where the overhead
// cancels out.
func TestCalibration_LearnsTheRatio(t *testing.T) {
	for name, p := range map[string]provider{
		"as counted": {0, 1}, "tools": {5000, 1}, "more": {0, 1.4}, "more, tools": {5000, 1.4}, "less": {0, 0.7}, "less, tools": {5000, 0.7}, "much more": {1000, 3},
	} {
		t.Run(name, func(t *testing.T) {
			h := historyOf(t, bare())
			p.talk(t, h, 1)
			assert.Less(t, p.talk(t, h, 1), 0.5)
			p.talk(t, h, 2)
			assert.Less(t, p.talk(t, h, 1), 0.04, "after four reports")
			p.talk(t, h, 20)
			s := h.Snapshot()
			assert.InEpsilon(t, p.weigh(s), h.Tokens().Tokens, 0.005)

			_, err := h.SplicePrefix(s, s.Len()-4, "")
			require.NoError(t, err)
			want := p.weigh(h.Snapshot())
			assert.InEpsilon(t, want, h.Tokens().Tokens, 0.05, "most of it went, the overhead stays")
			assert.GreaterOrEqual(t, h.Tokens().Upper, want)
		})
	}
}

// Upper leaves room for as much as reports were off, but only for what is new:
// what was measured is exact.
func TestCalibration_Upper(t *testing.T) {
	h := historyOf(t, bare(), convo.User(strings.Repeat("u", 10_000)))
	e := h.Tokens()
	assert.Equal(t, e.Tokens+e.Tokens/8, e.Upper, "the stated prior")

	steady, wild := historyOf(t, bare()), historyOf(t, bare())
	provider{100, 1}.talk(t, steady, 12)
	for i := range 12 {
		provider{100, 1 + 0.3*float64(i%2)}.talk(t, wild, 1)
	}
	doubt := func(h *convo.History) int {
		s := h.Snapshot()
		require.NoError(t, h.RecordUsage(s, convo.Usage{Input: h.Tokens().Tokens}))
		assert.Equal(t, h.Tokens().Tokens, h.Tokens().Upper, "just measured")
		mustAppend(t, h, convo.User(strings.Repeat("u", 10_000)))
		return h.Tokens().Upper - h.Tokens().Tokens
	}
	calm, rough := doubt(steady), doubt(wild)
	assert.Less(t, calm, 10_000/5)
	assert.Greater(t, rough, 2*calm)
}

// A report on something that is not text, such as a document that was counted as
// little, does not change the ratio of text.
func TestCalibration_Outlier(t *testing.T) {
	p := provider{500, 1}
	h := historyOf(t, bare())
	p.talk(t, h, 6)
	mustAppend(t, h, convo.User("see this", convo.NewMedia("application/pdf", []byte("%PDF"))))
	s := h.Snapshot()
	require.NoError(t, h.RecordUsage(s, convo.Usage{Input: p.weigh(s) + 90_000}))
	before := h.Tokens().Tokens
	mustAppend(t, h, convo.Assistant(strings.Repeat("a", 10_000)))
	assert.InDelta(t, 10_000, h.Tokens().Tokens-before, 1000)

	_, err := h.Rewind(1)
	require.NoError(t, err)
	assert.Less(t, h.Tokens().Tokens, before-20_000, "what was measured went in proportion")
	p.talk(t, h, 1)
	assert.InEpsilon(t, p.weigh(h.Snapshot()), h.Tokens().Tokens, 0.01, "and the next report says the rest")
}

// One large report must not make a History unusable: the weight of a document
// leaves with the document.
func TestCalibration_LargeReportDoesNotLock(t *testing.T) {
	for name, input := range map[string]int{"within the limit": 105_000, "above it": 120_000} {
		t.Run(name, func(t *testing.T) {
			h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 128_000, Reserve: 16_000}})
			require.NoError(t, err)
			mustAppend(t, h, convo.System("guide"), convo.User("read this", convo.NewMedia("application/pdf", []byte("%PDF"))))
			s := prepare(t, h)
			require.NoError(t, h.RecordUsage(s, convo.Usage{Input: input}))
			_, err = h.Rewind(1)
			require.NoError(t, err)
			mustAppend(t, h, convo.User("never mind"))
			_, report, err := h.Prepare(t.Context())
			require.NoError(t, err)
			assert.True(t, report.Fits)
		})
	}
}

func TestPriors(t *testing.T) {
	opts := bare()
	opts.Priors = map[string]convo.Prior{
		"large-": {Ratio: 120, Margin: 50}, "large-2": {Ratio: 200}, "none": {Margin: -1}, "": {Ratio: 50},
	}
	h := historyOf(t, opts, convo.User(strings.Repeat("u", 1000)))
	clear(opts.Priors) // it was copied
	for _, tt := range []struct {
		model         string
		tokens, upper int
	}{
		{"", 500, 563}, {"other", 500, 563}, {"large-1", 1200, 1800}, {"large-2.5", 2000, 2250}, {"none", 1000, 1000},
	} {
		require.NoError(t, h.SetModel(tt.model, convo.Limits{}))
		assert.Equal(t, convo.Estimate{Tokens: tt.tokens, Upper: tt.upper}, h.Tokens(), tt.model)
	}
	require.NoError(t, h.SetModel("large-1", convo.Limits{}))
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 1500}))
	mustAppend(t, h, convo.Assistant(strings.Repeat("a", 1000)))
	assert.Equal(t, 1500+1200, h.Tokens().Tokens, "the prior holds for what is new")

	fork, err := convo.Restore(h.Snapshot(), &convo.Options{Tokenizer: opts.Tokenizer, Priors: map[string]convo.Prior{"x": {Ratio: 300}}})
	require.NoError(t, err)
	require.NoError(t, fork.SetModel("x", convo.Limits{}))
	assert.Equal(t, 300+3*fork.Snapshot().Tokens(), fork.Tokens().Tokens, "with the tools that usage has shown")
}

func TestPriors_Faults(t *testing.T) {
	_, err := convo.New(&convo.Options{Priors: map[string]convo.Prior{"m": {Ratio: 24, Margin: 101}, "n": {Ratio: 401}, "o": {Ratio: -1}, "p": {Ratio: 25, Margin: 100}}})
	assert.ElementsMatch(t, []string{`Options.Priors["m"].Ratio`, `Options.Priors["m"].Margin`, `Options.Priors["n"].Ratio`, `Options.Priors["o"].Ratio`}, valueErrors(t, err))
}

// A fork, and a History that is loaded, go on with the same estimate, and the
// same ratio for what is new.
func TestCalibration_GoesOn(t *testing.T) {
	p := provider{2000, 1.5}
	h := historyOf(t, bare())
	p.talk(t, h, 5)
	require.NoError(t, h.SetEphemeral(convo.User("now")))
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	loaded := new(convo.Snapshot)
	require.NoError(t, json.Unmarshal(data, loaded))
	for name, from := range map[string]*convo.Snapshot{"fork": h.Snapshot(), "load": loaded} {
		t.Run(name, func(t *testing.T) {
			again, err := convo.Restore(from, bare())
			require.NoError(t, err)
			require.NoError(t, h.SetEphemeral())
			assert.Equal(t, h.Tokens().Tokens, again.Tokens().Tokens)
			assert.InDelta(t, h.Tokens().Upper, again.Tokens().Upper, 1)
			text, err := json.Marshal(again.Snapshot())
			require.NoError(t, err)
			assert.JSONEq(t, string(data), string(text))
			was := again.Tokens().Tokens
			mustAppend(t, again, convo.User(strings.Repeat("u", 1000)))
			assert.InDelta(t, 1500, again.Tokens().Tokens-was, 30)
			p.talk(t, again, 0)
			require.NoError(t, again.RecordUsage(again.Snapshot(), convo.Usage{Input: p.weigh(again.Snapshot())}))
			assert.Equal(t, p.weigh(again.Snapshot()), again.Tokens().Upper, "measured again")
		})
	}
}

// Two models that take turns keep separate calibrations.
func TestCalibration_ModelsTakeTurns(t *testing.T) {
	small, large := provider{100, 0.8}, provider{4000, 1.6}
	h := historyOf(t, bare())
	for range 6 {
		require.NoError(t, h.SetModel("small", convo.Limits{}))
		small.talk(t, h, 1)
		require.NoError(t, h.SetModel("large", convo.Limits{}))
		large.talk(t, h, 1)
	}
	assert.InEpsilon(t, large.weigh(h.Snapshot()), h.Tokens().Tokens, 0.02)
	require.NoError(t, h.SetModel("small", convo.Limits{}))
	assert.InEpsilon(t, small.weigh(h.Snapshot()), h.Tokens().Tokens, 0.02)
	assert.GreaterOrEqual(t, h.Tokens().Upper, small.weigh(h.Snapshot()))
}

// The usage of a summarizer's own request is in the report and does not change
// the ratio.
func TestCalibration_IgnoresTheSummarizer(t *testing.T) {
	h := historyOf(t, bare())
	provider{0, 1}.talk(t, h, 6)
	s := h.Snapshot()
	before := h.Tokens().Tokens
	var drop []convo.ID
	for _, e := range s.All() {
		if e.ID <= 4 {
			drop = append(drop, e.ID)
		}
	}
	r := apply(t, h, convo.Edit{Drop: drop, Summary: &convo.Summary{Text: "s", Usage: convo.Usage{Input: 99_999, Output: 77}}})
	assert.Equal(t, 99_999, r.Usage.Input)
	assert.Equal(t, before-(s.Tokens()-h.Snapshot().Tokens()), h.Tokens().Tokens)
}

// turns appends n turns of a thousand bytes each.
func turns(t *testing.T, h *convo.History, n int) {
	t.Helper()
	for range n {
		mustAppend(t, h, convo.User(strings.Repeat("u", 300)), convo.Assistant(strings.Repeat("a", 700)))
	}
}

func bounded(window int) *convo.Options {
	opts := bare()
	opts.Limits = convo.Limits{Window: window, Reserve: -1}
	return opts
}

// A usage report without the cached tokens must not make a full window look
// empty.
func TestRecordUsage_TooSmall(t *testing.T) {
	h := historyOf(t, bounded(128_000))
	turns(t, h, 100)
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 4}))
	assert.Equal(t, 100_000, h.Tokens().Tokens, "it is left aside")
	for range 500 {
		turns(t, h, 1)
		mustAppend(t, h, convo.User("u"))
		s, r, err := h.Prepare(t.Context())
		require.NoError(t, err)
		require.True(t, r.Fits)
		require.Less(t, s.Tokens(), 4*128_000)
		_, err = h.Rewind(1)
		require.NoError(t, err)
	}
}

// A plausible report starts the count anew: the next implausible one is ignored
// again.
func TestRecordUsage_TooLargeAgain(t *testing.T) {
	h := historyOf(t, bounded(128_000), convo.System("guide"))
	turns(t, h, 2)
	record := func(input int) {
		t.Helper()
		require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: input}))
		turns(t, h, 1)
	}
	record(100_000)
	record(5_000)
	before := h.Tokens().Tokens
	record(100_000)
	assert.InDelta(t, before, h.Tokens().Tokens, 2000)
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 100_000}))
	assert.Equal(t, 100_000, h.Tokens().Tokens, "two in a row are believed")
}

// A figure above the window of its snapshot is never believed, however often it
// comes, and it is no first of two implausible ones.
func TestRecordUsage_AboveTheWindow(t *testing.T) {
	var logged bytes.Buffer
	opts := bounded(128_000)
	opts.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	h := historyOf(t, opts, convo.System("guide"))
	require.NoError(t, h.SetModel("small", convo.Limits{}))
	turns(t, h, 2)
	for _, input := range []int{128_001, 1_280_000, math.MaxInt} {
		unchanged(t, h, func() { require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: input})) })
		assert.Zero(t, h.Tokens().Measured)
		turns(t, h, 1)
	}
	assert.Equal(t, 3, strings.Count(logged.String(), `level=WARN msg="convo: usage left aside" cause="convo: Usage.Input is `))
	assert.Contains(t, logged.String(), `is 1280000, want at most Limits.Window, which is 128000: report each request alone, or raise Limits.Window" input=1280000 raw=3005 model=small`)
	logged.Reset()
	unchanged(t, h, func() { require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 128_000})) })
	assert.Contains(t, logged.String(), `is 128000, want at most 84020 for a view of 5005 raw tokens, unless the next report says so too" input=128000 raw=5005 model=small`)

	// What counts is the window that the request was made for.
	at := h.Snapshot()
	require.NoError(t, h.SetModel("large", convo.Limits{Window: 1_000_000, Reserve: -1}))
	large := h.Snapshot()
	require.NoError(t, h.SetModel("small", convo.Limits{Window: 128_000, Reserve: -1}))
	logged.Reset()
	require.NoError(t, h.RecordUsage(large, convo.Usage{Input: 80_000}))
	require.NoError(t, h.RecordUsage(at, convo.Usage{Input: 10_000}))
	assert.Empty(t, logged.String())
	assert.Equal(t, 10_000, h.Tokens().Tokens)
	require.NoError(t, h.SetModel("large", convo.Limits{Window: 1_000_000, Reserve: -1}))
	turns(t, h, 1)
	for range 2 {
		large = h.Snapshot()
		require.NoError(t, h.SetModel("large", convo.Limits{Window: 128_000, Reserve: -1}))
		require.NoError(t, h.RecordUsage(large, convo.Usage{Input: 400_000}))
		require.NoError(t, h.SetModel("large", convo.Limits{Window: 1_000_000, Reserve: -1}))
		turns(t, h, 1)
	}
	assert.Greater(t, h.Tokens().Tokens, 300_000, "it was answered within the window that it was made for")
}

// Whatever usage is reported, a conversation whose floor is small goes on, and true
// reports make the estimate true again.
func TestRecordUsage_NeverLocks(t *testing.T) {
	for _, first := range []int{20, 3_000, 30_000, 60_000} {
		for _, input := range []int{1, 60_000, 112_000, 113_000, 127_000, 128_000, 600_000, 20_000_000, math.MaxInt} {
			opts := bare()
			opts.Limits = convo.Limits{Window: 128_000}
			h := historyOf(t, opts, convo.System("guide"))
			for i := range 12 {
				if i == 0 {
					mustAppend(t, h, convo.User(strings.Repeat("u", first)))
				} else {
					mustAppend(t, h, convo.User(strings.Repeat("u", 200)))
				}
				_, err := h.Do(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
					reply := convo.Reply{Messages: []convo.Message{convo.Assistant("ok")}, Usage: convo.Usage{Input: input}}
					if i >= 8 {
						reply.Usage.Input = s.Tokens()
					}
					return reply, nil
				})
				require.NoError(t, err, "%d, %d tokens in request %d", first, input, i)
			}
			assert.InDelta(t, h.Snapshot().Tokens(), h.Tokens().Tokens, 2, "%d, %d tokens", first, input)
		}
	}
}

// An implausible report within the window is ignored once; if the next is
// implausible too, it is accepted.
func TestRecordUsage_TooLarge(t *testing.T) {
	for _, tt := range []struct {
		name  string
		turns int
		input int
	}{{"some turns", 5, 120_000}, {"nothing yet", 0, 128_000}, {"two words", 0, 100_000}} {
		t.Run(tt.name, func(t *testing.T) {
			h := historyOf(t, bounded(128_000), convo.System("guide"))
			if tt.name == "nothing yet" {
				h = historyOf(t, bounded(128_000))
			}
			turns(t, h, tt.turns)
			before := h.Tokens()
			unchanged(t, h, func() { require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: tt.input})) })
			require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: tt.input}), "once more for the same request")
			assert.Equal(t, before, h.Tokens())
			mustAppend(t, h, convo.User("u"))
			s, r, err := h.Prepare(t.Context())
			require.NoError(t, err)
			assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)

			require.NoError(t, h.RecordUsage(s, convo.Usage{Input: tt.input}))
			assert.GreaterOrEqual(t, h.Tokens().Tokens, 64_000)
			_, err = h.Rewind(1)
			require.NoError(t, err)
			turns(t, h, 1)
			mustAppend(t, h, convo.User("u"))
			s = h.Snapshot()
			for range 2 { // the truth, and twice is not needed
				require.NoError(t, h.RecordUsage(s, convo.Usage{Input: s.Tokens()}))
				assert.Equal(t, s.Tokens(), h.Tokens().Tokens)
			}
		})
	}
}

// An imported conversation that weighs more than was estimated is cut only down
// to the target.
func TestRecordUsage_FirstOnALargeView(t *testing.T) {
	for _, ratio := range []float64{1.2, 1.5, 1.9} {
		t.Run(fmt.Sprint(ratio), func(t *testing.T) {
			p := provider{3000, ratio}
			h := historyOf(t, bounded(200_000))
			turns(t, h, int(140_000/ratio)/1000)
			require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: p.weigh(h.Snapshot())}))
			for r := (convo.Report{}); r.Outcome != convo.OutcomeApplied; {
				turns(t, h, 1)
				mustAppend(t, h, convo.User("u"))
				var err error
				_, r, err = h.Prepare(t.Context())
				require.NoError(t, err)
				mustAppend(t, h, convo.Assistant("a"))
			}
			left := p.weigh(h.Snapshot())
			assert.Greater(t, left, 70_000)
			assert.Less(t, left, 105_000, "low water")
		})
	}
}

// Saving and loading changes no estimate.
func TestCalibration_TheSameAfterRestore(t *testing.T) {
	h := historyOf(t, bounded(128_000), convo.System("guide"))
	id := mustAppend(t, h, convo.User("read", convo.NewMedia("application/pdf", []byte("%PDF"))))
	for range 2 {
		mustAppend(t, h, convo.Assistant("a"))
		require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 90_000}))
		mustAppend(t, h, convo.User("u"))
	}
	apply(t, h, convo.Edit{Drop: []convo.ID{id}})
	again, err := convo.Restore(h.Snapshot(), bounded(128_000))
	require.NoError(t, err)
	assert.InDelta(t, h.Tokens().Tokens, again.Tokens().Tokens, 1)
	assert.InDelta(t, h.Tokens().Upper, again.Tokens().Upper, 1)
}

// A ratio applies only to the tokenizer that it was learned with.
func TestCalibration_AnotherTokenizer(t *testing.T) {
	h := historyOf(t, bare())
	p := provider{500, 0.25}
	p.talk(t, h, 12)
	quarters := bare()
	quarters.Tokenizer = convo.TokenizerFunc(func(text string) int { return (len(text) + 3) / 4 })
	again, err := convo.Restore(h.Snapshot(), quarters)
	require.NoError(t, err)
	assert.Equal(t, h.Tokens().Tokens, again.Tokens().Tokens)
	before := again.Tokens().Tokens
	mustAppend(t, again, convo.User(strings.Repeat("u", 40_000)))
	assert.InDelta(t, 10_000, again.Tokens().Tokens-before, 800)
}

// Dropped entries are freed, even if they were reported on for a model that is
// no longer used.
func TestCalibration_ModelsKeepNoViews(t *testing.T) {
	inUse := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := inUse()
	h := historyOf(t, bare())
	for i := range 100 {
		require.NoError(t, h.SetModel(fmt.Sprint("model ", i), convo.Limits{}))
		mustAppend(t, h, convo.User(strings.Repeat("u", 1<<18)), convo.Assistant("a"))
		require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: h.Snapshot().Tokens()}))
		_, err := h.SplicePrefix(h.Snapshot(), h.Len()-2, "")
		require.NoError(t, err)
	}
	assert.Less(t, inUse()-before, int64(12<<18))
	require.NoError(t, h.SetModel("model 3", convo.Limits{}))
	assert.Positive(t, h.Tokens().Tokens)
	runtime.KeepAlive(h)
}

// A first report on a few bytes that is mostly tool schemas does not make all that
// follows look a hundred times too large, and a report counts by its size.
func TestCalibration_SmallReportsTeachLittle(t *testing.T) {
	h := historyOf(t, bare(), convo.User(strings.Repeat("u", 20)))
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 3000}))
	mustAppend(t, h, convo.Assistant(strings.Repeat("a", 100_000)))
	assert.Equal(t, 103_000-20+20, h.Tokens().Tokens)
	at := h.Snapshot()
	for _, input := range []int{0, 0, 0} { // no figure, not a ratio of 0
		require.NoError(t, h.RecordUsage(at, convo.Usage{Input: input}))
	}
	assert.Equal(t, 103_000, h.Tokens().Tokens)
	require.NoError(t, h.RecordUsage(at, convo.Usage{Input: 53_000}))
	assert.Equal(t, 53_000, h.Tokens().Tokens)
	mustAppend(t, h, convo.User("hi"))
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 53_007}))
	mustAppend(t, h, convo.Assistant(strings.Repeat("b", 100_000)))
	assert.InDelta(t, 103_000, h.Tokens().Tokens, 3500, "two bytes of seven tokens change little")
}

package convo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// The tests of this file are named for what was measured of other libraries,
// and for what their users report.

// Messages were told apart by their content: of equal ones some were lost.
func TestField_EqualMessagesAllStay(t *testing.T) {
	h := historyOf(t, windowOf(3000, convo.Summarize{With: canned("short"), MaxTokens: 100, Window: -1}))
	gone := 0
	for i := range 200 {
		mustAppend(t, h, convo.User("continue"), convo.Assistant("continue"))
		r, err := h.CompactIfNeeded(t.Context())
		require.NoError(t, err)
		gone += len(r.Summarised)
		require.Equal(t, 2*i+2, h.Len()+gone)
	}
	require.Positive(t, gone)
	again := reload(t, h, bare())
	assert.Equal(t, idsOf(h.Snapshot()), idsOf(again.Snapshot()))
}

// Pairs found by id went wrong where ids come again, and results without text
// were thrown away while their calls stayed.
func TestField_ReusedIDsAndEmptyResults(t *testing.T) {
	for name, c := range plainStrategies() {
		t.Run(name, func(t *testing.T) {
			h := historyOf(t, windowOf(0, c), convo.User("the task"))
			for i := range 40 {
				call := convo.ToolCall{ID: "call_0", Name: "tool", Arguments: fmt.Sprintf(`{"i":%d}`, i)}
				text := "" // of every third, and of the newest
				if i%3 > 0 {
					text = call.Arguments + strings.Repeat("x", 200)
				}
				mustAppend(t, h, convo.Assistant("", call), convo.Result(call, text))
			}
			r, err := h.Compact(t.Context(), "")
			require.NoError(t, err)
			require.Equal(t, convo.Applied, r.Outcome)
			args := ""
			rounds := 0
			for _, e := range h.Snapshot().All() {
				for _, call := range e.Message.ToolCalls() {
					require.Empty(t, args, "a call without its result")
					args = call.Arguments
				}
				for _, res := range e.Message.ToolResults() {
					require.NotEmpty(t, args, "a result without its call")
					if text := res.Text(); text != "" && !res.Cleared {
						assert.True(t, strings.HasPrefix(text, args), "%s answers %s", text[:10], args)
					}
					args = ""
					rounds++
				}
			}
			assert.Empty(t, args)
			assert.Positive(t, rounds)
			newest, _ := h.Snapshot().At(h.Len() - 1)
			assert.EqualValues(t, 81, newest.ID, "the newest message, an empty result")
		})
	}
}

// A trim down to where it began rewrote the request on every turn: 399 of 399,
// with 0.5 % of the prompt cache left.
func TestField_PromptCacheIsKept(t *testing.T) {
	for name, tt := range map[string]struct {
		c    convo.CompactionStrategy
		most int // rewrites of 400 turns
	}{
		"drop":    {convo.Truncate{}, 16},
		"default": {nil, 16},
		"clear":   {convo.Chain(convo.ClearToolResults{KeepLast: 10}, convo.Truncate{}), 30},
	} {
		t.Run(name, func(t *testing.T) {
			h := historyOf(t, windowOf(40_000, tt.c), convo.System("guide"))
			var last []string
			rewrites, sent, same := 0, 0, 0
			for i := range 500 {
				call := callOf("c" + itoa(i))
				mustAppend(t, h, convo.User("go on "+itoa(i)), convo.Assistant("", call), convo.Result(call, strings.Repeat("x", 400)), convo.Assistant("ok"))
				s, _, err := h.Prepare(t.Context())
				require.NoError(t, err)
				texts := textsOf(s)
				shared := 0
				for shared < min(len(texts), len(last)) && texts[shared] == last[shared] {
					shared++
				}
				if i >= 100 { // the window is full
					if shared < len(last) {
						rewrites++
					}
					sent += len(strings.Join(texts, ""))
					same += len(strings.Join(texts[:shared], ""))
				}
				last = texts
			}
			assert.Positive(t, rewrites)
			assert.LessOrEqual(t, rewrites, tt.most)
			assert.Greater(t, float64(same)/float64(sent), 0.93)
		})
	}
}

// 231 messages came while a summary was written, and the list that was written
// back held 2 of them; elsewhere the new user message stood before the summary.
func TestField_AppendedDuringASummary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := windowOf(100_000, convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
			time.Sleep(time.Hour)
			return convo.Summary{Text: "short"}, nil
		}), MaxTokens: 100, Window: -1})
		opts.Limits.Soft, opts.Limits.Low = 2000, 1000
		h := toolTurn(t, opts, 20)
		require.True(t, h.CompactInBackground(t.Context()))
		synctest.Wait()
		var want []string
		for i := range 231 {
			m := convo.User("new " + itoa(i))
			if i%2 == 1 {
				m = convo.Assistant("new " + itoa(i))
			}
			mustAppend(t, h, m)
			want = append(want, m.Text())
		}
		r, err := h.Wait(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, r.Summarised)
		texts := textsOf(h.Snapshot())
		assert.Equal(t, want, texts[len(texts)-231:])
		assert.Contains(t, texts[1], "short", "the summary stands right after the system entries")
	})
}

// The tool schemas alone were more than the threshold: no compaction could
// help, and each turn tried.
func TestField_WhatCannotGoIsTooMuch(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits convo.Limits
		fits   bool
	}{
		{"schemas of 29 of 32 thousand", convo.Limits{Window: 32_000, Reserve: 4000, Overhead: 29_000}, false},
		{"and just fits", convo.Limits{Window: 36_000, Reserve: -1, Overhead: 29_000, High: 20_000}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := new(recorder)
			opts := bare()
			opts.Limits, opts.Strategy = tt.limits, convo.Summarize{With: rec, MaxTokens: 100, Window: -1}
			h := toolTurn(t, opts, 5)
			for range 20 {
				r, err := h.CompactIfNeeded(t.Context())
				assert.Equal(t, tt.fits, r.Fits)
				var floor *convo.FloorError
				assert.Equal(t, !tt.fits, errors.As(err, &floor))
				if floor != nil {
					assert.GreaterOrEqual(t, floor.Overhead, 29_000, "it is named")
				}
				mustAppend(t, h, convo.User("and"), convo.Assistant("so"))
			}
			assert.Empty(t, rec.requests)
		})
	}
}

// After many compactions the first instruction, the rules and the pins were
// gone, or summaries had piled up, as messages that nothing could take away.
func TestField_WhatStaysThroughManyCompactions(t *testing.T) {
	for name, c := range map[string]convo.CompactionStrategy{
		"summary": convo.Summarize{With: new(recorder), MaxTokens: 200, Window: -1},
		"default": nil,
		"window":  convo.SlidingWindow{Keep: 6, TriggerAt: 20},
	} {
		t.Run(name, func(t *testing.T) {
			opts := windowOf(4000, c)
			opts.PinFirstUser = true
			h := historyOf(t, opts, convo.System("rules"), convo.User("the task: never delete"), convo.Assistant("I see"))
			call := callOf("c")
			pinned := mustAppend(t, h, convo.User("read it"), convo.Assistant("", call), convo.Result(call, "the key is 7"))
			require.NoError(t, h.Pin(pinned))
			mustAppend(t, h, convo.Assistant("read"))
			applied := 0
			for i := 0; applied < 20 && i < 2000; i++ {
				mustAppend(t, h, convo.User("question "+itoa(i)), convo.Assistant(strings.Repeat("a", 300)))
				r, err := h.CompactIfNeeded(t.Context())
				require.NoError(t, err)
				if r.Outcome != convo.Applied {
					continue
				}
				applied++
				msgs := h.Snapshot().Messages()
				index := func(text string) int {
					return slices.IndexFunc(msgs, func(m convo.Message) bool { return m.Text() == text })
				}
				order := []int{index("rules"), index("the task: never delete"), index("the key is 7"), index("question " + itoa(i))}
				require.Zero(t, order[0])
				require.True(t, slices.IsSorted(order), "%v", order)
				require.Positive(t, order[1])
				require.Equal(t, "c", msgs[order[2]-1].ToolCalls()[0].ID, "with its call")
				summaries := 0
				for _, m := range msgs {
					if strings.Contains(m.Text(), "<summary key=") {
						summaries++
						require.Equal(t, convo.RoleUser, m.Role)
					}
				}
				require.LessOrEqual(t, summaries, 1)
				require.Equal(t, name == "summary", summaries == 1)
			}
			assert.Equal(t, 20, applied)
		})
	}
}

// A tool was still running, or waited for an approval, and its call was
// summarised away.
func TestField_OpenCallsAreNotTouched(t *testing.T) {
	for name, c := range plainStrategies() {
		t.Run(name, func(t *testing.T) {
			h := toolTurn(t, windowOf(2000, c), 20)
			mustAppend(t, h, convo.User("deploy it"))
			a, b := callOf("approve"), callOf("build")
			mustAppend(t, h, convo.Assistant("wait", a, b), convo.Result(b, strings.Repeat("b", 300)))
			open := idsOf(h.Snapshot())[h.Len()-3:]
			r, err := h.CompactIfNeeded(t.Context()) // in the middle of the round
			require.NoError(t, err)
			require.Equal(t, convo.Applied, r.Outcome)
			ids := idsOf(h.Snapshot())
			assert.Equal(t, open, ids[len(ids)-3:])
			assert.Equal(t, 1, h.Status().OpenCalls)
			newest, _ := h.Snapshot().Find(open[2])
			assert.False(t, newest.Message.ToolResults()[0].Cleared)
			mustAppend(t, h, convo.Result(a, "approved"), convo.Assistant("deployed"))
			checkPairs(t, h.Snapshot())
		})
	}
}

// Signed reasoning came back changed, or without the calls it belongs to.
func TestField_ReasoningKeepsItsBytes(t *testing.T) {
	for name, c := range plainStrategies() {
		t.Run(name, func(t *testing.T) {
			whole := hardTalk(t, windowOf(0, c), 30)
			h, err := convo.Restore(whole.Snapshot(), windowOf(8000, c))
			require.NoError(t, err)
			r, err := h.CompactIfNeeded(t.Context())
			require.NoError(t, err)
			require.Equal(t, convo.Applied, r.Outcome)
			signed := 0
			for _, e := range h.Snapshot().All() {
				if e.Message.Role != convo.RoleAssistant {
					continue
				}
				before, _ := whole.Snapshot().Find(e.ID)
				require.Equal(t, before.Message, e.Message)
				if e.Message.Reasoning() != "" {
					signed++
				}
			}
			if name != "summary only" && name != "window" {
				assert.Positive(t, signed)
			}
		})
	}
}

// Requests far below the limit were edited all the same.
func TestField_NothingIsDoneBelowTheLimit(t *testing.T) {
	for name, c := range plainStrategies() {
		if name == "window" { // goes by count
			continue
		}
		counted := 0
		opts := windowOf(1_000_000, c)
		opts.Tokenizer = convo.TokenizerFunc(func(s string) int { counted++; return len(s) })
		h := hardTalk(t, opts, 16)
		mustAppend(t, h, convo.Assistant("", callOf("open")))
		counted = 0
		unchanged(t, h, func() {
			s, r, err := h.Prepare(t.Context())
			require.NoError(t, err)
			assert.Equal(t, convo.NotNeeded, r.Outcome)
			assert.Equal(t, h.Len(), s.Len())
			assert.False(t, h.CompactInBackground(t.Context()))
		})
		assert.Zero(t, counted, "the check counts nothing anew")
	}
}

// What a window of 190 messages had dropped was held for ever, and saved.
func TestField_WhatWentIsReleased(t *testing.T) {
	const size = 100_000
	inUse := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := inUse()
	h := historyOf(t, windowOf(20*size, convo.Truncate{}))
	for range 300 {
		mustAppend(t, h, convo.User(strings.Repeat("u", size)), convo.Assistant(strings.Repeat("a", size)))
		s, _, err := h.Prepare(t.Context())
		require.NoError(t, err)
		require.NoError(t, h.RecordUsage(s, convo.Usage{Input: s.Tokens()}))
	}
	assert.Less(t, inUse()-before, int64(60*size), "600 of them were appended")
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	assert.Less(t, len(data), 21*size)
	runtime.KeepAlive(h)
}

// A library wrote a line to the process's own log for each count.
func TestField_SilentWithoutALogger(t *testing.T) {
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
	_, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	_, err = h.Append(convo.Assistant("refused"))
	require.Error(t, err)
	_, _ = toolTurn(t, windowOf(0, nil), 2).CompactIfNeeded(t.Context()) // nothing will ever be compacted
	assert.Empty(t, out.String())
}

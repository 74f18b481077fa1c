package convo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

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

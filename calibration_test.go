package convo_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// A provider stands for one whose tokenizer and overhead are its own.
type provider struct {
	overhead int
	ratio    float64 // of what bare counts
}

func (p provider) weigh(s *convo.Snapshot) int {
	return p.overhead + int(math.Round(p.ratio*float64(s.Tokens())))
}

// talk goes on for so many turns, with a report on each request, and returns
// how far off the last expectation was.
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

// The ratio is learned from differences, in which the overhead cancels out.
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

// What is new is in doubt as far as reports were off; what was measured is not.
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

// A report that cannot be text alone, such as one on a document that was
// counted as little, teaches nothing about text.
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

// One large report must not lock a History: what was measured as a document's
// weight goes with the document.
func TestCalibration_LargeReportDoesNotLock(t *testing.T) {
	for name, input := range map[string]int{"within the limit": 105_000, "above it": 120_000} {
		t.Run(name, func(t *testing.T) {
			h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 128_000, Reserve: 16_000}})
			require.NoError(t, err)
			mustAppend(t, h, convo.System("guide"), convo.User("read this", convo.NewMedia("application/pdf", []byte("%PDF"))))
			s, _, err := h.Prepare(t.Context())
			require.NoError(t, err)
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
		require.NoError(t, h.SetModel(tt.model))
		assert.Equal(t, convo.Estimate{Tokens: tt.tokens, Upper: tt.upper}, h.Tokens(), tt.model)
	}
	require.NoError(t, h.SetModel("large-1"))
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 1500}))
	mustAppend(t, h, convo.Assistant(strings.Repeat("a", 1000)))
	assert.Equal(t, 1500+1200, h.Tokens().Tokens, "the prior holds for what is new")

	fork, err := convo.Restore(h.Snapshot(), &convo.Options{Tokenizer: opts.Tokenizer, Priors: map[string]convo.Prior{"x": {Ratio: 300}}})
	require.NoError(t, err)
	require.NoError(t, fork.SetModel("x"))
	assert.Equal(t, 3*fork.Snapshot().Tokens(), fork.Tokens().Tokens)
}

func TestPriors_Faults(t *testing.T) {
	_, err := convo.New(&convo.Options{Priors: map[string]convo.Prior{"m": {Ratio: 24, Margin: 101}, "n": {Ratio: 401}, "o": {Ratio: -1}, "p": {Ratio: 25, Margin: 100}}})
	assert.ElementsMatch(t, []string{`Options.Priors["m"].Ratio`, `Options.Priors["m"].Margin`, `Options.Priors["n"].Ratio`, `Options.Priors["o"].Ratio`}, valueErrors(t, err))
}

// What was learned goes on in a fork and after a load: the same estimate, and
// the same ratio for what is new.
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

// Calibrations of two models stay apart when they take turns.
func TestCalibration_ModelsTakeTurns(t *testing.T) {
	small, large := provider{100, 0.8}, provider{4000, 1.6}
	h := historyOf(t, bare())
	for range 6 {
		require.NoError(t, h.SetModel("small"))
		small.talk(t, h, 1)
		require.NoError(t, h.SetModel("large"))
		large.talk(t, h, 1)
	}
	assert.InEpsilon(t, large.weigh(h.Snapshot()), h.Tokens().Tokens, 0.02)
	require.NoError(t, h.SetModel("small"))
	assert.InEpsilon(t, small.weigh(h.Snapshot()), h.Tokens().Tokens, 0.02)
	assert.GreaterOrEqual(t, h.Tokens().Upper, small.weigh(h.Snapshot()))
}

// What a summarizer's own request used is in the report, and teaches nothing.
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

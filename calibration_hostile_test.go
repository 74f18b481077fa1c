package convo_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// turns appends so many turns of a thousand bytes.
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

// A figure without the cached tokens must not switch the window off.
func TestRecordUsage_TooSmall(t *testing.T) {
	h := historyOf(t, bounded(128_000))
	turns(t, h, 100)
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 4}))
	assert.Equal(t, 25_000, h.Tokens().Tokens, "a quarter of what was counted")
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

// One figure that cannot be is left aside; two in a row are believed.
func TestRecordUsage_TooLarge(t *testing.T) {
	for _, tt := range []struct {
		name  string
		turns int
		input int
	}{{"some turns", 20, 600_000}, {"summed up over a run", 20, 150_000}, {"nothing yet", 0, 200_000}, {"two words", 0, 100_000}} {
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
			assert.Equal(t, convo.NotNeeded, r.Outcome)

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

// A conversation that was imported and weighs more than it was counted keeps
// what the target leaves room for.
func TestRecordUsage_FirstOnALargeView(t *testing.T) {
	for _, ratio := range []float64{1.2, 1.5, 1.9} {
		t.Run(fmt.Sprint(ratio), func(t *testing.T) {
			p := provider{3000, ratio}
			h := historyOf(t, bounded(200_000))
			turns(t, h, int(140_000/ratio)/1000)
			require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: p.weigh(h.Snapshot())}))
			for r := (convo.Report{}); r.Outcome != convo.Applied; {
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

// A restart changes no estimate.
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

// A ratio is of the tokenizer that counted.
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

// What went is released, also when it was reported for models that are asked
// no more.
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
		require.NoError(t, h.SetModel(fmt.Sprint("model ", i)))
		mustAppend(t, h, convo.User(strings.Repeat("u", 1<<20)), convo.Assistant("a"))
		require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: h.Snapshot().Tokens()}))
		_, err := h.SplicePrefix(h.Snapshot(), h.Len()-2, "")
		require.NoError(t, err)
	}
	assert.Less(t, inUse()-before, int64(12<<20))
	require.NoError(t, h.SetModel("model 3"))
	assert.Positive(t, h.Tokens().Tokens)
	runtime.KeepAlive(h)
}

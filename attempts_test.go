package convo_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

// A counting strategy counts the attempts to summarise: the runs of another
// strategy in which its summarizer was called.
type counting struct {
	convo.CompactionStrategy
	requests *recorder
	attempts int
	most     int // calls beyond what one attempt may make, at most
}

func (c *counting) Compact(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
	before := len(c.requests.requests)
	e, err := c.CompactionStrategy.Compact(ctx, s, g)
	if made := c.requests.requests[before:]; len(made) > 0 {
		c.attempts++
		c.most = max(c.most, len(made)-c.allowed(made))
	}
	return e, err
}

// allowed is how many calls one attempt may make for what it was to fold.
func (c *counting) allowed(reqs []convo.SummaryRequest) int {
	window := convo.Limits{}.Window
	if z, ok := c.CompactionStrategy.(convo.Summarize); ok {
		window = z.Window
	}
	if window <= 0 {
		return 1
	}
	total, chunk := 0, window
	for _, req := range reqs {
		_, rest, _ := strings.Cut(req.Prompt, "<transcript key=")
		transcript := req.Count(rest)
		total += transcript
		room := window*7/8 - (req.Count(req.Prompt) - transcript) - 2*req.MaxTokens
		chunk = min(chunk, room*7/8)
	}
	return (total+chunk-1)/chunk + 1
}

// However a summarizer behaves, it is not called for ever.
func TestAttempts_Bounded(t *testing.T) {
	fakes := map[string]func() convo.Summarizer{
		"canned":    func() convo.Summarizer { return convotest.Canned{} },
		"echo":      func() convo.Summarizer { return convotest.Echo{} },
		"failing":   func() convo.Summarizer { return convotest.Failing{} },
		"flaky":     func() convo.Summarizer { return &convotest.Flaky{} },
		"flaky, 3":  func() convo.Summarizer { return &convotest.Flaky{Every: 3, With: convotest.Echo{}} },
		"panicking": func() convo.Summarizer { return convotest.Panicking{} },
		"empty":     func() convo.Summarizer { return convotest.Empty{} },
		"cut off":   func() convo.Summarizer { return convotest.CutOff{} },
		"growing":   func() convo.Summarizer { return new(convotest.Growing) },
	}
	for name, fake := range fakes {
		for _, setup := range []struct {
			name   string
			limits convo.Limits
			window int
			pins   bool
			others []convo.CompactionStrategy
		}{
			{name: "alone", limits: convo.Limits{Window: 8000, Reserve: -1}, window: -1},
			{name: "in a ladder", limits: convo.Limits{Window: 8000, Reserve: -1}, window: -1, others: []convo.CompactionStrategy{convo.Truncate{}}},
			{name: "high floor", limits: convo.Limits{Window: 8000, Reserve: -1, Low: 2000, MinFree: 100}, window: -1, pins: true},
			{name: "folding", limits: convo.Limits{Window: 16000, Reserve: -1}, window: 2600},
			{name: "small steps", limits: convo.Limits{Window: 8000, Reserve: -1, High: 4000, Low: 3800, Soft: 3900, MinFree: 20}, window: -1},
		} {
			t.Run(name+", "+setup.name, func(t *testing.T) {
				with := fake()
				rec := &recorder{answer: func(req convo.SummaryRequest) (convo.Summary, error) { return with.Summarize(t.Context(), req) }}
				c := &counting{requests: rec, CompactionStrategy: convo.Summarize{With: rec, Window: setup.window, MaxTokens: 600}}
				strategy := convo.Chain(append([]convo.CompactionStrategy{c}, setup.others...)...)
				h, err := convo.New(&convo.Options{Limits: setup.limits, Strategy: strategy})
				require.NoError(t, err)
				rng := rand.New(rand.NewPCG(1, 1))
				appended, pinned := 0, 0
				for i := range 1500 {
					text := strings.Repeat("some words of it ", rng.IntN(30))
					from := h.Snapshot().Tokens()
					id := mustAppend(t, h, convo.User("step "+itoa(i)), convo.Assistant(text+"so."))
					added := h.Snapshot().Tokens() - from
					appended += added + added/8 + 1
					if setup.pins && i%10 == 0 && pinned < 5500 {
						require.NoError(t, h.Pin(id))
						pinned += added
					}
					_, r, err := h.Prepare(t.Context())
					require.True(t, err != nil || r.Fits)
					if !r.Fits { // nothing more can be done for it here
						_, err := h.SplicePrefix(h.Snapshot(), h.Len()/2, "")
						require.NoError(t, err)
					}
				}
				minFree := h.Status().MinFree
				bound := 3*((appended+minFree-1)/minFree) + 3
				t.Logf("%d attempts, %d calls, bound %d", c.attempts, len(rec.requests), bound)
				assert.Positive(t, c.attempts)
				assert.LessOrEqual(t, c.attempts, bound)
				assert.LessOrEqual(t, c.most, 0, "calls in one attempt")
			})
		}
	}
}

// While the floor leaves less than MinFree, no summarizer is called.
func TestAttempts_FloorLeavesTooLittle(t *testing.T) {
	rec := new(convotest.Recorder)
	for _, over := range []bool{false, true} {
		h, err := convo.New(&convo.Options{
			Limits:   convo.Limits{Window: 4000, Reserve: -1, High: 3000, Low: 1000, Soft: 2900, MinFree: 900},
			Strategy: convo.Chain(convo.Summarize{With: rec, Window: -1}, convo.Truncate{}),
		})
		require.NoError(t, err)
		id := mustAppend(t, h, convo.User(strings.Repeat("the whole brief ", 800)), convo.Assistant("I see."))
		require.NoError(t, h.Pin(id-1))
		for range 200 {
			mustAppend(t, h, convo.User("and"), convo.Assistant("so"))
			s := h.Status()
			if over {
				require.NoError(t, h.SetLimits(convo.Limits{Window: s.Upper - 1, Reserve: -1, Low: 1000, MinFree: 900, Soft: s.Upper - 2}))
			}
			floor := 0
			for x := range h.Snapshot().Exchanges() {
				if x.Floor {
					floor += x.Tokens
				}
			}
			if s.Upper-floor*9/8 >= 900 {
				break
			}
			_, err := h.CompactIfNeeded(t.Context())
			require.NoError(t, err)
			h.CompactInBackground(t.Context())
			_, _ = h.Wait(t.Context())
		}
	}
	assert.Zero(t, rec.Calls())
}

package convo_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

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
	seeds := 300
	if testing.Short() {
		seeds = 60
	}
	if n := *usageSeeds; n > 0 {
		seeds = n
	}
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

var usageSeeds = flag.Int("convo.usageseeds", 0, "how many conversations TestReload_KeepsTheMeasure makes; 0: a few hundred")

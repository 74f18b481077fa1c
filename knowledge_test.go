package convo_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

var knowledgeSeeds = flag.Int("convo.knowledge", 300, "number of seeds of TestKnowledge for each number of writers")

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
			for seed := range *knowledgeSeeds {
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

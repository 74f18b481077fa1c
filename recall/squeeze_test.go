package recall_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/recall"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// After fifty compactions in a row, the bound of every request has held, pinned messages
// are in view, and what the user named in the first turn is in view, in the summary, or
// among the first five that a search finds.
func TestIndex_Squeeze(t *testing.T) {
	calls := 0
	mediocre := convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		if calls++; calls%7 == 0 {
			return convo.Summary{}, errors.New("503")
		}
		last := req.Messages[len(req.Messages)-1].Text()
		return convo.Summary{Text: fmt.Sprintf("The assistant went through %d more messages and goes on with the migration. The last of them begins %q.", len(req.Messages), last[:min(40, len(last))])}, nil
	})
	for name, strategy := range map[string]convo.CompactionStrategy{
		"the default": nil,
		"a model":     convo.Chain(convo.ClearToolResults{}, convo.Summarize{With: mediocre}, convo.Truncate{}),
		"truncate":    convo.Truncate{},
		"a window":    convo.SlidingWindow{KeepTurns: 1},
	} {
		t.Run(name, func(t *testing.T) {
			const window = 8000
			ix := new(recall.Index)
			compactions := 0
			h, err := convo.New(&convo.Options{
				Limits:   convo.Limits{Window: window},
				Strategy: strategy,
				OnCompaction: func(r convo.Report) {
					if ix.Observe(r); r.Outcome == convo.OutcomeApplied {
						compactions++
					}
				},
			})
			require.NoError(t, err)
			rng := rand.New(rand.NewPCG(5, 5))
			add := func(msgs ...convo.Message) convo.ID {
				id, err := h.Append(msgs...)
				require.NoError(t, err)
				return id
			}
			named := map[string]string{ // what the user named, and a question about it
				"eu-west-3":         "which region do we deploy to",
				"release-2026.11.4": "what release do we deploy",
				"$4,912.50":         "how large is the monthly budget",
				"billing_ledger":    "which table must never be touched",
				"ops@example.net":   "who is told when it is over",
			}
			add(convo.User("Deploy release-2026.11.4 to the region eu-west-3. The monthly budget is $4,912.50. Never touch the table billing_ledger. When it is over, tell ops@example.net."))
			add(convo.Assistant("Understood."))
			pinned := []string{"The password rotates on Mondays.", "All times are UTC.", "Ask before each restart."}
			for _, text := range pinned {
				id := add(convo.User(text))
				add(convo.Assistant("Noted."))
				require.NoError(t, h.Pin(id))
			}
			for step := 0; compactions < 50; step++ {
				require.Less(t, step, 3000)
				if step%5 == 0 {
					add(convo.User(fmt.Sprintf("Now shard-%d, please; its owner is team-%d.", step, rng.IntN(40))))
				}
				c := convo.ToolCall{ID: fmt.Sprint("c", step%7), Name: "read", Arguments: fmt.Sprintf(`{"path":"shards/%d/part_%d.sql"}`, step, rng.IntN(100))}
				add(convo.Assistant("", c), convo.Result(c, strings.Repeat(fmt.Sprintf("row %d of host-%d is fine\n", rng.IntN(1e6), rng.IntN(1e4)), 5+rng.IntN(120))))
				if step%5 == 4 {
					add(convo.Assistant(fmt.Sprintf("The shard is moved; its checksum is %x.", rng.Uint64())))
				}
				s, r, err := h.Prepare(t.Context())
				require.NoError(t, err)
				require.LessOrEqual(t, h.Status().Upper, window)
				require.True(t, r.Fits)
				for _, text := range pinned {
					require.Contains(t, viewOf(s), text)
				}
			}
			s := h.Snapshot()
			for name, question := range named {
				if strings.Contains(viewOf(s), name) {
					continue
				}
				found := false
				for _, hit := range ix.Search(question, 5) {
					found = found || strings.Contains(hit.Entry.Message.Text(), name)
				}
				assert.True(t, found, "%s is lost: %s", name, question)
			}
		})
	}
}

// viewOf returns the texts of a view, those of the summary included.
func viewOf(s *convo.Snapshot) string {
	var b strings.Builder
	for _, m := range s.Messages() {
		b.WriteString(m.Text() + "\n")
	}
	return b.String()
}

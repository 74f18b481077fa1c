package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/peer"
	"github.com/seed-c1b73e60/convo/bench/talks"
)

func TestCells(t *testing.T) {
	for _, cell := range library.Cells {
		t.Run(string(cell.Table)+"/"+cell.Name, func(t *testing.T) {
			for _, n := range []int{10, 100} {
				c := cell.New(n)
				assert.NoError(t, c.Do(max(c.Step, 1)*5), "n = %d", n)
			}
		})
	}
}

// The check notices a conversation that is one message over the limit.
func TestCheck_SeesTheLimit(t *testing.T) {
	const n = 50
	assert.NoError(t, trpcCheckSummary(n).Do(1))
	_, sess, err := trpcFilled(n)
	require.NoError(t, err)
	assert.True(t, trpcDue(n*peer.PerMessage-1)(sess))
}

func TestTalks(t *testing.T) {
	for _, k := range library.Talks {
		t.Run(k.Name, func(t *testing.T) {
			got, err := talks.Play(k.Do, 15, true)
			require.NoError(t, err)
			assert.Greater(t, got.Requests, 1000)
			assert.Greater(t, got.Trimmed, got.Requests/4, "the budget matters")
			assert.NotZero(t, got.Broken)
		})
	}
}

// The messages that are left are those of the conversation, with their numbers,
// and are within the limit.
func TestCosts(t *testing.T) {
	job := peer.Job{Limit: 2000, Measure: peer.MeasureBytes, Messages: []peer.Message{{Role: "system", Text: "be brief"}}}
	for i := range 50 {
		call := peer.Call{ID: fmt.Sprint("c", i), Name: "search", Args: `{"q":"x"}`}
		job.Messages = append(job.Messages, peer.Message{Role: "user", Text: strings.Repeat("word ", 10+i%7)}, peer.Message{Role: "assistant", Calls: []peer.Call{call}},
			peer.Message{Role: "tool", Answers: call.ID, Tool: call.Name, Text: strings.Repeat("found ", 50)}, peer.Message{Role: "assistant", Text: "there"})
		job.Asks = append(job.Asks, 4*i+2, 4*i+4)
	}
	for i := range job.Messages {
		job.Messages[i].N = i
	}
	for _, k := range library.Costs {
		requests, err := k.Do(job)
		require.NoError(t, err)
		require.Len(t, requests, len(job.Asks))
		for _, r := range requests {
			assert.False(t, r.TooLong)
			assert.LessOrEqual(t, job.Measure.WeighAll(r.View), job.Limit)
			for _, m := range r.View {
				m.Text = strings.TrimSpace(m.Text) // the library replaces an empty text with a space
				want := job.Messages[m.N]
				want.Text = strings.TrimSpace(want.Text)
				require.Equal(t, want, m)
			}
		}
		assert.Less(t, len(requests[len(requests)-1].View), 150, "the limit matters")
	}
}

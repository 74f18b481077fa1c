package main

import (
	"io"
	"log"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/peer"
	"github.com/seed-c1b73e60/convo/bench/talks"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard)
	os.Exit(m.Run())
}

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
	for limit, want := range map[int]int{n: n, n - 1: n - 1} {
		weight, err := langchainWeight(limit)
		require.NoError(t, err)
		buffer, h := langchainBuffer(n-2, weight)
		require.NoError(t, buffer.SaveContext(t.Context(), langchainIn, langchainOut))
		list, err := h.Messages(t.Context())
		require.NoError(t, err)
		assert.Len(t, list, want)
	}
}

func TestTalks(t *testing.T) {
	for _, k := range library.Talks {
		got, err := talks.Play(k.Do, 15, true)
		require.NoError(t, err)
		assert.Greater(t, got.Requests, 1000)
		assert.Greater(t, got.Trimmed, got.Requests/4, "the budget matters")
		assert.NotZero(t, got.Broken)
	}
}

// The buffer keeps the newest questions and answers, about as many as the limit
// allows. It is not exact because the buffer counts differently.
func TestCosts(t *testing.T) {
	job := peer.Job{Limit: 2000, Measure: peer.MeasureBytes, Messages: []peer.Message{{Role: "system", Text: "be brief"}}}
	for i := range 300 {
		role := "assistant"
		if peer.IsUser(i) {
			role = "user"
			job.Asks = append(job.Asks, i+2)
		}
		job.Messages = append(job.Messages, peer.Message{N: i + 1, Role: role, Text: strings.Repeat("word ", 10+i%7)})
	}
	requests, err := library.Costs[0].Do(job)
	require.NoError(t, err)
	require.Len(t, requests, 150)
	for i, r := range requests {
		weight := job.Measure.WeighAll(r.View)
		assert.Less(t, weight, job.Limit*5/4)
		assert.Equal(t, job.Messages[0], r.View[0])
		said := job.Messages[:job.Asks[i]]
		assert.Equal(t, said[len(said)-len(r.View)+1:], r.View[1:], "the newest messages, unchanged")
		if len(r.View) < len(said) {
			assert.Greater(t, weight, job.Limit/2)
		}
	}
	assert.Less(t, len(requests[149].View), 150, "the limit matters")

	_, err = library.Costs[0].Do(peer.Job{Limit: 2000, Messages: []peer.Message{{Role: "assistant"}}, Asks: []int{1}})
	assert.Error(t, err, "an answer without a question")
}

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/schema"
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
	for _, usage := range []bool{false, true} {
		for limit, calls := range map[int]int{n * peer.PerMessage: 0, n*peer.PerMessage - 1: 1} {
			mw, m, err := einoSummaries(limit, false)
			require.NoError(t, err)
			op := einoPass(mw, einoMessages(n, usage), func() bool { return m.calls > 0 })
			if calls == 0 {
				assert.NoError(t, op(0))
			} else {
				assert.ErrorIs(t, op(0), peer.ErrOver)
			}
			assert.Equal(t, calls, m.calls, "usage %v, limit %d", usage, limit)
		}
	}
}

// This is the average that the note on a step at the limit states.
func TestStep_MeanHeld(t *testing.T) {
	const n, steps = 400, 4000
	mw, _, err := einoSummaries(n*peer.PerMessage, true)
	require.NoError(t, err)
	state := &adk.ChatModelAgentState{Messages: einoMessages(n, false)}
	total := 0
	for range steps {
		state.Messages = append(state.Messages, schema.UserMessage(peer.Text))
		_, after, err := mw.BeforeModelRewriteState(t.Context(), state, nil)
		require.NoError(t, err)
		total += len(after.Messages)
		state = after
		state.Messages = append(state.Messages, schema.AssistantMessage(peer.Text, nil))
	}
	assert.InDelta(t, 0.5, float64(total)/steps/n, 0.03)
}

func TestTalks(t *testing.T) {
	for _, k := range library.Talks {
		t.Run(k.Name, func(t *testing.T) {
			got, err := talks.Play(k.Do, 15, true)
			require.NoError(t, err)
			assert.Greater(t, got.Requests, 1000)
			assert.Greater(t, got.Trimmed, got.Requests/4, "the budget matters")
			assert.Zero(t, got.Broken)
		})
	}
}

// A summary is requested when the conversation is above the limit, and its tokens
// are recorded. The messages that are left have their numbers.
func TestCosts(t *testing.T) {
	job := peer.Job{Limit: 4000, Measure: peer.MeasureBytes, Summary: "SUMMARY", Messages: []peer.Message{{Role: "system", Text: "be brief"}}}
	for i := range 150 {
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
		summaries, numbered, cleared := 0, 0, 0
		for _, r := range requests {
			for _, a := range r.Apart {
				assert.Greater(t, a.Input, job.Limit)
				assert.Equal(t, 7, a.Output)
			}
			summaries += len(r.Apart)
			made := 0
			for _, m := range r.View {
				if m.N == peer.Made {
					made++
					continue
				}
				numbered++
				assert.Equal(t, job.Messages[m.N].Role, m.Role)
				if m.Text != job.Messages[m.N].Text {
					cleared++
					assert.Equal(t, "tool", m.Role)
				}
			}
			assert.LessOrEqual(t, made, 1, "the summary")
		}
		assert.Positive(t, summaries, k.Name)
		assert.Positive(t, numbered)
		if k.Name == "eino summarization" {
			assert.Zero(t, cleared)
		} else {
			assert.Positive(t, cleared)
		}
	}
}

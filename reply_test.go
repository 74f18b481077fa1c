package convo_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
)

func replyOf(msgs ...convo.Message) convo.Reply { return convo.Reply{Messages: msgs} }

// The Reply has what the History added to the messages, as that of Do has.
func TestAppendReply_ReturnsAsAppended(t *testing.T) {
	opts := bare()
	opts.Key = func(m convo.Message) string { return "row of " + string(m.Role) }
	opts.MaxResult = 64
	h := historyOf(t, opts, convo.User("q"))
	at := h.Snapshot()
	require.NoError(t, h.Queue(convo.User("queued")))
	long := convo.Text(strings.Repeat("a long result, ", 100))
	call := convo.ToolCall{Name: "served", Arguments: "{}"}
	given := convo.Reply{
		Messages: []convo.Message{convo.Assistant("", call), {Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{Name: "served", Parts: []convo.Part{long}}}}, convo.Assistant("done")},
		IDs:      []convo.ID{99}, Queued: 99, Reports: []convo.Report{{}},
	}
	reply, err := h.AppendReply(at, given)
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{2, 3, 4}, reply.IDs)
	assert.NotEmpty(t, reply.Messages[0].ToolCalls()[0].ID)
	assert.Equal(t, "row of assistant", reply.Messages[0].Key)
	assert.Equal(t, string(long), reply.Messages[1].ToolResults()[0].Text(), "whole, also where the view has it cut")
	assert.Equal(t, 1, reply.Queued)
	require.Len(t, reply.Reports, 1)
	assert.Equal(t, convo.ReasonAppend, reply.Reports[0].Reason)
	assert.Empty(t, given.Messages[0].Key, "the caller's messages stay as they are")
	assert.Empty(t, given.Messages[0].ToolCalls()[0].ID)
	assert.True(t, h.Status().AwaitsAnswer, "the queued message waits")
}

func TestAppendReply_RecordsUsage(t *testing.T) {
	h := historyOf(t, nil, convo.User("q"))
	reply := replyOf(convo.Assistant("a"))
	reply.Usage = convo.Usage{Input: 500, Output: 3}
	_, err := h.AppendReply(h.Snapshot(), reply)
	require.NoError(t, err)
	assert.Equal(t, 500, h.Tokens().Measured)

	_, err = h.Append(convo.User("r"))
	require.NoError(t, err)
	reply.Usage.Input = -1
	_, err = h.AppendReply(h.Snapshot(), reply)
	assert.NoError(t, err, "a usage that cannot be is left aside")
	assert.Equal(t, 500, h.Tokens().Measured)

	_, err = h.AppendReply(h.Snapshot(), convo.Reply{Messages: []convo.Message{convo.User("no")}, Usage: convo.Usage{Input: 600}})
	require.ErrorAs(t, err, new(*convo.RoleError))
	assert.Equal(t, 600, h.Tokens().Measured, "the request was made, whatever became of its answer")
}

// A loop ends with an error, and not in silence, if the answer leaves nothing to go on
// with. What came whole is in the conversation.
func TestAppendReply_AnswerErrors(t *testing.T) {
	cut := &convo.ToolCall{ID: "x", Name: "write"}
	for _, test := range []struct {
		name  string
		reply convo.Reply
		text  string
		ends  []string
	}{
		{"empty", convo.Reply{}, "convo: the answer is empty (stop: done); ask the model again", []string{"user"}},
		{"reasoning", replyOf(thoughts.In(convo.Assistant(""), convo.Reasoning{Text: "hm"})), "convo: the answer is empty (stop: done); append a user message to go on, or take the answer back with RewindTo", []string{"user", "assistant"}},
		{"cut off", convo.Reply{CutOff: cut, Stop: convo.StopLength}, `convo: the answer was cut off in a call of tool "write" (stop: length); let the model write more tokens, and ask the model again`, []string{"user"}},
		{"cut off after a call", convo.Reply{Messages: []convo.Message{convo.Assistant("", callOf("c"))}, CutOff: cut}, `convo: the answer was cut off in a call of tool "write" (stop: done); append the results of the open calls, and ask the model again`, []string{"user", "assistant"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := historyOf(t, nil, convo.User("q"))
			reply, err := h.AppendReply(h.Snapshot(), test.reply)
			require.EqualError(t, err, test.text)
			require.ErrorAs(t, err, new(*convo.AnswerError))
			assert.Len(t, reply.IDs, len(test.reply.Messages))
			var roles []string
			for _, m := range h.Snapshot().Messages() {
				roles = append(roles, string(m.Role))
			}
			assert.Equal(t, test.ends, roles)
		})
	}
}

// A refused answer comes back as it was given.
func TestAppendReply_RefusedComesBack(t *testing.T) {
	h := historyOf(t, nil, convo.User("q"))
	for name, reply := range map[string]convo.Reply{
		"a user message":        replyOf(convo.Assistant("a"), convo.User("b")),
		"a system message":      replyOf(convo.System("s")),
		"a result of no call":   replyOf(convo.Result(callOf("x"), "r")),
		"two in a row":          replyOf(convo.Assistant("a"), convo.Assistant("b")),
		"a message with faults": replyOf(convo.Message{Role: convo.RoleAssistant}),
	} {
		unchanged(t, h, func() {
			reply.Stop = convo.StopLength
			got, err := h.AppendReply(h.Snapshot(), reply)
			assert.Error(t, err, name)
			assert.Equal(t, reply, got, name)
		})
	}
	require.NoError(t, h.Close())
	_, err := h.AppendReply(h.Snapshot(), replyOf(convo.Assistant("a")))
	require.ErrorIs(t, err, convo.ErrClosed)
}

// The next answer continues one that was paused, as with Do, and only that.
func TestAppendReply_Pauses(t *testing.T) {
	h := historyOf(t, nil, convo.User("q"))
	half := replyOf(convo.Assistant("one"))
	half.Stop = convo.StopPause
	_, err := h.AppendReply(h.Snapshot(), half)
	require.NoError(t, err)
	assert.True(t, h.Status().AwaitsAnswer)
	again := restoreOf(t, readBack(t, h.Snapshot()))
	assert.True(t, again.Status().AwaitsAnswer, "a paused answer stays one in a snapshot")

	paused := h.Snapshot()
	require.NoError(t, h.Queue(convo.User("typed meanwhile")))
	assert.Equal(t, 1, h.Status().Queued, "it waits for the rest of the answer")
	mustAppend(t, h, convo.System("a note"))
	assert.True(t, h.Status().AwaitsAnswer, "a note is no message of the turn")
	unchanged(t, h, func() {
		_, err = h.AppendReply(paused, replyOf(convo.Assistant("two")))
		require.ErrorAs(t, err, new(*convo.RoleError), "what was sent does not end with the note")
	})
	reply, err := h.AppendReply(h.Snapshot(), replyOf(convo.Assistant("two")))
	require.NoError(t, err)
	assert.Equal(t, 1, reply.Queued)
	assert.True(t, h.Status().AwaitsAnswer)
	unchanged(t, h, func() {
		_, err = h.AppendReply(paused, replyOf(convo.Assistant("two again"), convo.Assistant("and again")))
		require.ErrorAs(t, err, new(*convo.RoleError))
	})
	_, err = h.AppendReply(h.Snapshot(), replyOf(convo.Assistant("to what was typed")))
	require.NoError(t, err)
	assert.False(t, h.Status().AwaitsAnswer)
	_, err = h.AppendReply(h.Snapshot(), replyOf(convo.Assistant("three")))
	require.ErrorAs(t, err, new(*convo.RoleError))
	restoreOf(t, readBack(t, h.Snapshot()))
}

// An answer to a question that was taken back does not become the answer to another one.
func TestAppendReply_TakenBack(t *testing.T) {
	h := historyOf(t, nil, convo.User("one"), convo.Assistant("a"), convo.User("two"))
	at := h.Snapshot()
	_, err := h.Rewind(1)
	require.NoError(t, err)
	mustAppend(t, h, convo.User("three"))
	unchanged(t, h, func() {
		_, err := h.AppendReply(at, replyOf(convo.Assistant("to two")))
		require.EqualError(t, err, "convo: stale snapshot: entry 3 was taken back, and the answer to it is not appended; ask the model again")
		require.ErrorIs(t, err, convo.ErrStale)
	})
}

func TestStatus_AwaitsAnswer(t *testing.T) {
	h := historyOf(t, nil)
	awaits := func() bool { return h.Status().AwaitsAnswer }
	assert.False(t, awaits(), "of an empty conversation")
	require.NoError(t, h.SetSystem(convo.System("s")))
	assert.False(t, awaits(), "of one with system text")
	mustAppend(t, h, convo.User("q"))
	assert.True(t, awaits())
	mustAppend(t, h, convo.Assistant("", callOf("a"), callOf("b")))
	assert.False(t, awaits(), "calls are open")
	mustAppend(t, h, convo.Result(callOf("a"), "r"))
	assert.False(t, awaits(), "a call is open")
	mustAppend(t, h, convo.Result(callOf("b"), "r"))
	assert.True(t, awaits())
	mustAppend(t, h, convo.Assistant("a"))
	assert.False(t, awaits())
}

// A loop of one's own makes the same requests as Run, whatever the model answers, and its
// conversation ends the same.
func TestAppendReply_LoopIsRun(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var script []convo.Reply
		for range 1 + rng.IntN(8) {
			r := convo.Reply{Usage: convo.Usage{Input: 10 + rng.IntN(90)}}
			var calls []convo.ToolCall
			for range rng.IntN(3) {
				calls = append(calls, convo.ToolCall{ID: fmt.Sprint("c", len(script), len(calls)), Name: "t", Arguments: "{}"})
			}
			switch rng.IntN(8) {
			case 0:
				r.Stop = convo.StopPause
				r.Messages = []convo.Message{convo.Assistant("half")}
			case 1:
				r.Stop = convo.StopLength
				r.CutOff = &convo.ToolCall{Name: "t"}
			default:
				r.Messages = []convo.Message{convo.Assistant("text", calls...)}
			}
			script = append(script, r)
		}
		script = append(script, replyOf(convo.Assistant("end")), replyOf(convo.Assistant("answer to what was queued")))
		queue := rng.IntN(len(script) - 1)

		play := func(own bool) (requests []string, h *convo.History, err error) {
			opts := bare()
			opts.Limits = convo.Limits{Window: 400}
			h = historyOf(t, opts, convo.User("q"))
			n := 0
			send := func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
				requests = append(requests, fmt.Sprintf("%+v", s.Messages()))
				if n == queue {
					require.NoError(t, h.Queue(convo.User("typed meanwhile")))
				}
				n++
				return script[n-1], nil
			}
			if !own {
				_, err = h.Run(t.Context(), send, convo.RunOptions{Tools: []convo.Handler{{
					Tool: convo.Tool{Name: "t"},
					Run:  func(context.Context, convo.ToolCall) ([]convo.Part, error) { return []convo.Part{convo.Text("r")}, nil },
				}}})
				return requests, h, err
			}
			require.NoError(t, h.SetTools(convo.Tool{Name: "t"}))
			for h.Status().AwaitsAnswer {
				s, _, err := h.Prepare(t.Context())
				if err != nil {
					return requests, h, err
				}
				reply, err := send(t.Context(), s)
				require.NoError(t, err)
				reply, err = h.AppendReply(s, reply)
				for _, c := range reply.OpenCalls() {
					mustAppend(t, h, convo.Result(c, "r"))
				}
				if err != nil {
					return requests, h, err
				}
			}
			return requests, h, nil
		}
		want, run, runErr := play(false)
		got, own, ownErr := play(true)
		require.Equal(t, want, got, "seed %d", seed)
		require.Equal(t, run.Snapshot().Messages(), own.Snapshot().Messages(), "seed %d", seed)
		if _, ok := errors.AsType[*convo.AnswerError](runErr); ok {
			require.EqualError(t, ownErr, runErr.Error(), "seed %d", seed)
		} else {
			require.NoError(t, runErr)
			require.NoError(t, ownErr)
		}
	}
}

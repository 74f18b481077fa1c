package convo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// keysOf returns the keys of the entries of h, in order.
func keysOf(h *convo.History) (keys []string) {
	for _, e := range h.Snapshot().All() {
		keys = append(keys, e.Message.Key)
	}
	return keys
}

func keyed(key string, m convo.Message) convo.Message {
	m.Key = key
	return m
}

// The replies of Steps hold all messages that were appended, with their keys: an application
// that loops over them can store each as a row.
func TestKey_RepliesOfStepsHoldTheRows(t *testing.T) {
	rows := 0
	h, err := convo.New(&convo.Options{Key: func(m convo.Message) string {
		rows++
		return fmt.Sprint(m.Role, rows)
	}})
	require.NoError(t, err)
	mustAppend(t, h, convo.User("q"))
	stored := []string{"user1"}
	for reply, err := range h.Steps(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
		if s.Len() > 1 {
			return convo.Reply{Messages: []convo.Message{convo.Assistant("done")}}, nil
		}
		return convo.Reply{Messages: []convo.Message{convo.Assistant("", callOf("a"), callOf("b"))}}, nil
	}, convo.RunOptions{Tools: []convo.Handler{{Tool: convo.Tool{Name: "tool"}, Run: func(context.Context, convo.ToolCall) ([]convo.Part, error) { return nil, nil }}}}) {
		require.NoError(t, err)
		for _, m := range reply.Messages {
			stored = append(stored, m.Key)
		}
	}
	assert.Len(t, stored, 5)
	assert.Equal(t, keysOf(h), stored)
}

// Every way in which a message comes into the conversation keeps its key, or asks
// Options.Key for one.
func TestKey(t *testing.T) {
	rows := 0
	h, err := convo.New(&convo.Options{Key: func(m convo.Message) string {
		rows++
		return fmt.Sprint(m.Role, rows)
	}})
	require.NoError(t, err)
	mustAppend(t, h, keyed("own", convo.User("1")))
	reply, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		require.NoError(t, h.Queue(convo.User("2"), keyed("queued", convo.User("3"))))
		return convo.Reply{Messages: []convo.Message{convo.Assistant("", callOf("a"))}}, nil
	})
	require.NoError(t, err)
	assert.Equal(t, "assistant2", reply.Messages[0].Key)
	mustAppend(t, h, convo.Result(callOf("a"), "r"))
	reply, err = h.AppendReply(h.Snapshot(), convo.Reply{Messages: []convo.Message{convo.Assistant("4")}})
	require.NoError(t, err)
	assert.Equal(t, "assistant4", reply.Messages[0].Key)
	assert.Equal(t, []string{"own", "assistant2", "tool3", "user1", "queued", "assistant4"}, keysOf(h))
	require.NoError(t, h.SetSystem(convo.System("guide")))
	require.NoError(t, h.SetEphemeral(convo.User("now")))
	assert.Equal(t, 4, rows, "not for what is no message of the conversation")
	mustAppend(t, h, keyed("more", convo.User("5")))
	_, err = h.Run(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
		if e, _ := s.At(s.Len() - 1); e.Message.Role == convo.RoleUser {
			return convo.Reply{Messages: []convo.Message{convo.Assistant("", callOf("b"))}}, nil
		}
		return convo.Reply{Messages: []convo.Message{convo.Assistant("done")}}, nil
	}, convo.RunOptions{Tools: []convo.Handler{{Tool: convo.Tool{Name: "tool"}, Run: func(context.Context, convo.ToolCall) ([]convo.Part, error) { return nil, nil }}}})
	require.NoError(t, err)
	assert.Equal(t, []string{"assistant5", "tool6", "assistant7"}, keysOf(h)[8:])

	for _, m := range h.Snapshot().Messages() {
		data, err := json.Marshal(m)
		require.NoError(t, err)
		var back convo.Message
		require.NoError(t, json.Unmarshal(data, &back))
		assert.Equal(t, m.Key, back.Key)
	}
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	var s convo.Snapshot
	require.NoError(t, json.Unmarshal(data, &s))
	again, err := convo.Restore(&s, nil)
	require.NoError(t, err)
	assert.Equal(t, keysOf(h), keysOf(again))
}

// A key is no part of what the model sees, nor of what signed reasoning is bound to.
func TestKey_IsNotSeen(t *testing.T) {
	with, without := historyOf(t, nil, keyed("k", convo.User("1")), signed("2")), historyOf(t, nil, convo.User("1"), signed("2"))
	assert.Equal(t, without.Tokens(), with.Tokens())
	assert.NotContains(t, fmt.Sprintf("%+v", with.Snapshot()), "k:")
	assert.Empty(t, with.Snapshot().Unbound())
}

func TestKey_Faults(t *testing.T) {
	var wrong *convo.MessageError
	h := historyOf(t, nil)
	_, err := h.Append(keyed(strings.Repeat("k", 257), convo.User("1")))
	require.ErrorAs(t, err, &wrong)
	mustAppend(t, h, keyed(strings.Repeat("k", 256), convo.User("1")))
	h = historyOf(t, &convo.Options{Key: func(convo.Message) string { return strings.Repeat("k", 257) }})
	_, err = h.Append(convo.User("1"))
	require.ErrorAs(t, err, &wrong)
	require.ErrorAs(t, h.Queue(convo.User("1")), &wrong)
	h = historyOf(t, &convo.Options{Key: func(convo.Message) string { panic("x") }})
	var panicked *convo.PanicError
	_, err = h.Append(convo.User("1"))
	require.ErrorAs(t, err, &panicked)
	require.ErrorAs(t, h.Queue(convo.User("1")), &panicked)
	mustAppend(t, historyOf(t, &convo.Options{Key: func(convo.Message) string { return "a\xff" }}), convo.User("1"))
}

func TestOptions_Time(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)
	times := map[string]time.Time{"a": at, "late": time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)}
	h := historyOf(t, &convo.Options{Roles: convo.Relaxed(), Time: func(m convo.Message) time.Time { return times[m.Key] }})
	mustAppend(t, h, convo.User("1"), keyed("a", convo.Assistant("2")))
	assert.True(t, h.Status().LastAppend.Equal(at))
	e, _ := h.Snapshot().At(1)
	assert.True(t, e.Time.Equal(at))
	first, _ := h.Snapshot().At(0)
	assert.WithinDuration(t, time.Now(), first.Time, time.Minute)
	var wrong *convo.MessageError
	_, err := h.Append(keyed("late", convo.User("3")))
	require.ErrorAs(t, err, &wrong)
	h = historyOf(t, &convo.Options{Time: func(convo.Message) time.Time { panic("x") }})
	var panicked *convo.PanicError
	_, err = h.Append(convo.User("1"))
	require.ErrorAs(t, err, &panicked)
}

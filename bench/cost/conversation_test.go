package cost

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
)

func TestReadMessages(t *testing.T) {
	got, err := ReadMessages(strings.NewReader(`{"id":"x","messages":[{"role":"developer","content":"s"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}

[{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"r"}]
`))
	require.NoError(t, err)
	call := convo.ToolCall{ID: "1", Name: "f", Arguments: "{}"}
	assert.Equal(t, [][]convo.Message{
		{convo.System("s"), convo.User("ab")},
		{convo.Assistant("", call), convo.Result(convo.ToolCall{ID: "1"}, "r")},
	}, got)

	for _, bad := range []string{"{", `{"messages":[{"role":"nobody"}]}`, `[1]`} {
		_, err := ReadMessages(strings.NewReader("[]\n" + bad))
		assert.ErrorContains(t, err, "line 2", bad)
	}
}

// Real transcripts have calls without results, results without calls, and system
// messages in the middle.
func TestNewConversation(t *testing.T) {
	call := convo.ToolCall{ID: "1", Name: "f", Arguments: "{}"}
	c := conversation(t, []convo.Message{
		convo.System("s"), convo.User("u"), convo.Assistant("", call), convo.User("again"),
		convo.Result(convo.ToolCall{ID: "2"}, "nobody asked"), convo.System("late"), convo.Assistant("a"), convo.Assistant("", call),
	})
	var roles []convo.Role
	for _, m := range c.Messages {
		roles = append(roles, m.Role)
	}
	assert.Equal(t, []convo.Role{"system", "user", "assistant", "tool", "user", "user", "assistant", "assistant", "tool"}, roles)
	assert.Len(t, c.plan.requests, 3)

	empty := conversation(t, nil)
	tally, err := Replay(empty, Default(), limited(1000))
	require.NoError(t, err)
	assert.Equal(t, Tally{}, tally)
}

func TestChain(t *testing.T) {
	one := []convo.Message{convo.System("s"), convo.User("u"), convo.Assistant("a")}
	cs, err := Chain("x", [][]convo.Message{one, one, one}, 2)
	require.NoError(t, err)
	require.Len(t, cs, 2)
	assert.Len(t, cs[0].Messages, 5)
	assert.Len(t, cs[1].Messages, 3)
	assert.NotEqual(t, cs[0].plan.full[1].Key, cs[0].plan.full[3].Key, "equal text in two places is two messages")
}

func TestCountBytes(t *testing.T) {
	call := convo.ToolCall{ID: "ignored", Name: "name", Arguments: `{"a":1}`}
	for _, c := range []struct {
		m    convo.Message
		want int
	}{
		{convo.User(""), 5},
		{convo.User("12345678"), 7},
		{convo.User("123456789"), 8},
		{convo.Assistant("1", call), 5 + 3},
		{convo.Result(call, "12345"), 5 + 3},
		{convo.User("", convo.Media{MIME: "image/png", Data: strings.Repeat("A", 4000)}), 5 + 1600},
	} {
		assert.Equal(t, c.want, CountBytes(c.m), "%v", c.m)
	}
}

func TestGeneratorsAreSeeded(t *testing.T) {
	assert.Equal(t, AgentRun(1, 20), AgentRun(1, 20))
	assert.NotEqual(t, AgentRun(1, 20), AgentRun(2, 20))
	assert.Len(t, AgentRun(1, 20), 2+2*20+1)
	assert.Len(t, Chat(1, 400), 1+2*400)
	assert.Len(t, conversation(t, React(1, 30)).Messages, len(React(1, 30)))
}

func TestWrite(t *testing.T) {
	var out bytes.Buffer
	if long.On() {
		require.NoError(t, Write(&out, true, alone))
	} else {
		chat := scenario{name: "chat, 60 turns", cs: []*Conversation{conversation(t, Chat(1, 60))}, setup: limited(3_000)}
		require.NoError(t, writeStudies(&out, []*study{newStudy(chat, alone)}))
	}
	for _, want := range []string{"| convo, defaults | real |", "| optimum, ", "Low 50 %", "after a pause from Low", "by measured growth"} {
		assert.Contains(t, out.String(), want)
	}
	assert.NotContains(t, out.String(), "NaN")
}

func TestTranscriptFolder(t *testing.T) {
	line := `{"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"a"}]}` + "\n"
	all, err := transcripts(fstest.MapFS{
		"tau_x.jsonl": {Data: []byte(strings.Repeat(line, 41))},
		"other.jsonl": {Data: []byte(line)},
		"notes.txt":   {Data: []byte("no")},
	})
	require.NoError(t, err)
	require.Len(t, all, 2)
	assert.Equal(t, "other", all[0].name)
	assert.Len(t, all[1].cs, 3)
	assert.Equal(t, 16_000, all[1].setup.Limit())

	_, err = transcripts(fstest.MapFS{"x.jsonl": {Data: []byte("no")}})
	assert.ErrorContains(t, err, "x.jsonl: line 1")
}

package convo_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// transcripts is where real conversations lie beside the repository, one in a
// line, as OpenAI chat messages. They are other people's and not part of it.
const transcripts = "../shared/data/transcripts"

type chatMessage struct {
	Role       string `json:"role"`
	Content    string `json:"content"`
	ToolCallID string `json:"tool_call_id"`
	Name       string `json:"name"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

func (c chatMessage) message() convo.Message {
	switch c.Role {
	case "system":
		return convo.System(c.Content)
	case "user":
		return convo.User(c.Content)
	case "tool":
		return convo.Result(convo.ToolCall{ID: c.ToolCallID, Name: c.Name}, c.Content)
	}
	var calls []convo.ToolCall
	for _, t := range c.ToolCalls {
		calls = append(calls, convo.ToolCall{ID: t.ID, Name: t.Function.Name, Arguments: t.Function.Arguments})
	}
	return convo.Assistant(c.Content, calls...)
}

func eachTranscript(t *testing.T, f func(t *testing.T, msgs []convo.Message)) {
	names, _ := filepath.Glob(filepath.Join(transcripts, "*.jsonl"))
	if len(names) == 0 {
		t.Skipf("no conversations in %s", transcripts)
	}
	for _, name := range names {
		file, err := os.Open(name)
		require.NoError(t, err)
		defer file.Close()
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			var line struct{ Messages []chatMessage }
			require.NoError(t, json.Unmarshal(lines.Bytes(), &line), name)
			var msgs []convo.Message
			for _, m := range line.Messages {
				msgs = append(msgs, m.message())
			}
			f(t, msgs)
		}
		require.NoError(t, lines.Err())
	}
}

// Real conversations append message by message, with reused ids and empty
// results, and every prefix is valid. What only Repair takes is what was
// aborted.
func TestTranscripts(t *testing.T) {
	var whole, relaxed, repaired, reused, empty, cut int
	eachTranscript(t, func(t *testing.T, msgs []convo.Message) {
		seen := map[string]bool{}
		for _, m := range msgs {
			for _, c := range m.ToolCalls() {
				if seen[c.ID] {
					reused++
				}
				seen[c.ID] = true
			}
			for _, r := range m.ToolResults() {
				if r.Text() == "" {
					empty++
				}
			}
		}
		policy := convo.RolePolicy{}
		if err := appendAll(policy, msgs); err != nil {
			policy = convo.Relaxed()
			if err := appendAll(policy, msgs); err != nil {
				repaired++
			} else {
				relaxed++
			}
		} else {
			whole++
		}

		h, err := convo.Restore(convo.NewSnapshot(msgs), &convo.Options{Roles: policy, Repair: func(convo.Fault) {}})
		require.NoError(t, err)
		checkPairs(t, h.Snapshot())
		text := 0
		for _, e := range h.Snapshot().All() {
			text += len(e.Message.Text())
		}
		assert.Positive(t, text)

		// Give up the older half, again and again.
		for {
			at := h.Snapshot()
			dropped, err := h.SplicePrefix(at, at.Len()/2, "what went before")
			require.NoError(t, err)
			if dropped == 0 {
				break
			}
			cut += dropped
			checkPairs(t, h.Snapshot())
			last, _ := at.At(at.Len() - 1)
			_, there := h.Snapshot().Find(last.ID)
			assert.True(t, there, "the newest entry stays")
		}
	})
	t.Logf("%d conversations under Strict, %d under Relaxed, %d mended; %d reused ids, %d empty results, %d entries given up",
		whole, relaxed, repaired, reused, empty, cut)
	assert.Positive(t, whole)
	assert.Positive(t, reused)
	assert.Positive(t, empty)
}

func appendAll(policy convo.RolePolicy, msgs []convo.Message) error {
	h, err := convo.New(&convo.Options{Roles: policy})
	if err != nil {
		return err
	}
	for m := range slices.Values(msgs) {
		if _, err := h.Append(m); err != nil {
			return err
		}
	}
	return nil
}

package convo_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// TestMain fails when a goroutine that runs code of this module outlives the
// tests.
func TestMain(m *testing.M) {
	code := m.Run()
	if leaked := leakedGoroutines(100); code == 0 && leaked != "" {
		fmt.Fprintf(os.Stderr, "goroutines outlive the tests:\n\n%s\n", leaked)
		code = 1
	}
	os.Exit(code)
}

// leakedGoroutines returns the stacks of the goroutines other than its own
// that run code of this module. One that is about to end gets time for that:
// it looks so many times.
func leakedGoroutines(looks int) string {
	var leaked []string
	for range looks {
		buf := make([]byte, 1<<20)
		stacks := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
		leaked = nil
		for _, stack := range stacks[1:] { // the first is this one
			if strings.Contains(stack, "seed-c1b73e60/convo") {
				leaked = append(leaked, stack)
			}
		}
		if len(leaked) == 0 {
			return ""
		}
		time.Sleep(20 * time.Millisecond)
	}
	return strings.Join(leaked, "\n\n")
}

func Test_leakedGoroutines(t *testing.T) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		<-end
	}()
	require.NotEmpty(t, leakedGoroutines(1))
	close(end)
	<-ended
}

// byBytes counts a token for each byte, so that sums are plain to see.
var byBytes = convo.TokenizerFunc(func(s string) int { return len(s) })

// bare counts bytes and nothing beside them.
func bare() *convo.Options {
	return &convo.Options{Tokenizer: byBytes, Overheads: convo.Overheads{Message: -1, Call: -1, Result: -1}}
}

// historyOf makes a History that holds msgs.
func historyOf(t testing.TB, opts *convo.Options, msgs ...convo.Message) *convo.History {
	t.Helper()
	h, err := convo.New(opts)
	require.NoError(t, err)
	mustAppend(t, h, msgs...)
	return h
}

func mustAppend(t testing.TB, h *convo.History, msgs ...convo.Message) convo.ID {
	t.Helper()
	id, err := h.Append(msgs...)
	require.NoError(t, err)
	return id
}

func callOf(id string) convo.ToolCall { return convo.ToolCall{ID: id, Name: "tool", Arguments: "{}"} }

// tour is a conversation of three turns and seven exchanges:
//
//	1 system | 2 user | 3 calls c1, c2, 4 and 5 results | 6 assistant || 7 user | 8 assistant || 9 user
func tour(t testing.TB, opts *convo.Options) *convo.History {
	t.Helper()
	c1, c2 := callOf("c1"), callOf("c2")
	return historyOf(t, opts,
		convo.System("guide"),
		convo.User("where to"), convo.Assistant("", c1, c2),
		convo.Result(c1, strings.Repeat("road ", 20)), convo.ResultError(c2, errors.New("no map")),
		convo.Assistant("there"),
		convo.User("how far"), convo.Assistant("a mile"),
		convo.User("let us go"),
	)
}

// idsOf returns the IDs of a snapshot's entries, in order.
func idsOf(s *convo.Snapshot) []convo.ID {
	ids := make([]convo.ID, 0, s.Len())
	for _, e := range s.All() {
		ids = append(ids, e.ID)
	}
	return ids
}

// textsOf returns the text of each message that the model sees.
func textsOf(s *convo.Snapshot) []string {
	var texts []string
	for _, m := range s.Messages() {
		texts = append(texts, m.Text())
	}
	return texts
}

// pictureOf shows all that a snapshot shows, to compare.
func pictureOf(t testing.TB, s *convo.Snapshot) string {
	t.Helper()
	data, err := json.Marshal(s)
	require.NoError(t, err)
	msgs, err := json.Marshal(s.Messages())
	require.NoError(t, err)
	tokens := make([]int, 0, s.Len())
	for _, e := range s.All() {
		tokens = append(tokens, e.Tokens)
	}
	return fmt.Sprintf("%s\n%s\n%v %v %d", data, msgs, s.Pinned(), tokens, s.Tokens())
}

// stateOf shows all that can be read of a History, to compare.
func stateOf(t testing.TB, h *convo.History) string {
	t.Helper()
	return fmt.Sprintf("%s\n%+v\n%+v", pictureOf(t, h.Snapshot()), h.Status(), h.Tokens())
}

// unchanged runs change and checks that nothing can be read of it.
func unchanged(t testing.TB, h *convo.History, change func()) {
	t.Helper()
	before, version := stateOf(t, h), h.Snapshot().Version()
	change()
	require.Equal(t, before, stateOf(t, h))
	require.Equal(t, version, h.Snapshot().Version())
}

package convo_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/modeltest"
)

// TestMain fails when a goroutine that runs code of this module outlives the
// tests.
func TestMain(m *testing.M) {
	// A fifth of the time of the tests is garbage collection. Those that measure the heap
	// collect before they do.
	debug.SetGCPercent(400)
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

// byBytes counts a token for each byte, so that sums are easy to check.
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

// reportOf returns what Prepare has returned, without the snapshot.
func reportOf(_ *convo.Snapshot, r convo.Report, err error) (convo.Report, error) { return r, err }

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

// pictureOf returns all that a snapshot shows, as a text to compare.
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

// stateOf returns all that can be read of a History, as a text to compare.
func stateOf(t testing.TB, h *convo.History) string {
	t.Helper()
	status := h.Status()
	status.Decisions = 0 // of this History alone
	return fmt.Sprintf("%s\n%#v\n%+v", pictureOf(t, h.Snapshot()), status, h.Tokens())
}

// unchanged runs change and checks that it leaves everything that can be read of
// h as it was.
func unchanged(t testing.TB, h *convo.History, change func()) {
	t.Helper()
	before, version := stateOf(t, h), h.Snapshot().Version()
	change()
	require.Equal(t, before, stateOf(t, h))
	require.Equal(t, version, h.Snapshot().Version())
}

// measureAllocs returns allocations and bytes for each of n steps.
func measureAllocs(n int, f func()) (allocs, bytes float64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(n), float64(after.TotalAlloc-before.TotalAlloc) / float64(n)
}

// noStandIn returns z as a strategy of the caller's, for which Extract does not stand in.
func noStandIn(z convo.Summarize) convo.CompactionStrategy {
	return convo.StrategyFunc(z.Compact).Named(z.Name())
}

// toolTurn returns a conversation of one user message and n tool rounds of two
// entries each, with an answer at the end.
func toolTurn(t testing.TB, opts *convo.Options, n int) *convo.History {
	t.Helper()
	h := historyOf(t, opts, convo.System("guide"), convo.User("the task"))
	for i := range n {
		c := callOf(fmt.Sprintf("c%d", i))
		mustAppend(t, h, convo.Assistant("", c), convo.Result(c, strings.Repeat("x", 92)))
	}
	mustAppend(t, h, convo.Assistant("done"))
	return h
}

// hardTalk returns a conversation of the given number of turns with all that is
// hard in tool rounds: ids that are used again in each, parallel calls answered
// in reverse, empty results, errors, signed reasoning. The last user message is
// not answered yet.
func hardTalk(t testing.TB, opts *convo.Options, turns int) *convo.History {
	t.Helper()
	h := historyOf(t, opts, convo.System("guide"), convo.System("rules"))
	c, d := callOf("call_0"), callOf("call_1")
	for i := range turns {
		mustAppend(t, h, convo.User("task "+itoa(i)))
		for j := range i % 4 {
			thought := convo.Reasoning{Text: "think " + itoa(i), Signature: "sig " + itoa(j)}
			calls := convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{thought, c, d}}
			mustAppend(t, h, calls, convo.Result(d, ""), convo.Result(c, strings.Repeat("x", 100+10*i)))
			mustAppend(t, h, convo.Assistant("", c), convo.ResultError(c, errors.New("no route")))
		}
		mustAppend(t, h, convo.Assistant("answer "+itoa(i)))
	}
	mustAppend(t, h, convo.User("now this"))
	return h
}

// chatOf returns a conversation of n user messages, all but the last answered,
// with size bytes in each message.
func chatOf(t testing.TB, opts *convo.Options, n, size int) *convo.History {
	t.Helper()
	h := historyOf(t, opts)
	for range n - 1 {
		mustAppend(t, h, convo.User(strings.Repeat("u", size)), convo.Assistant(strings.Repeat("a", size)))
	}
	mustAppend(t, h, convo.User(strings.Repeat("u", size)))
	return h
}

// A watched text is one of which a test can tell whether its memory was freed.
type watched = weak.Pointer[byte]

// watch returns a text of n bytes and a weak pointer to it.
func watch(n int) (string, watched) {
	text := strings.Repeat("word and ", n/9+1)[:n]
	return text, weak.Make(unsafe.StringData(text))
}

// appendWatched appends a message for each of n texts of 10,000 bytes.
func appendWatched(t *testing.T, h *convo.History, n int, message func(i int, text string) convo.Message) []watched {
	t.Helper()
	var all []watched
	for i := range n {
		text, w := watch(10_000)
		mustAppend(t, h, message(i, text))
		all = append(all, w)
	}
	return all
}

// inMemory returns how many of the texts have not been freed.
func inMemory(all []watched) (n int) {
	runtime.GC()
	runtime.GC()
	for _, w := range all {
		if w.Value() != nil {
			n++
		}
	}
	return n
}

// turnsOf returns the i-th message of a conversation in which user and assistant
// take turns.
func turnsOf(i int, text string) convo.Message {
	if i%2 == 0 {
		return convo.User(text)
	}
	return convo.Assistant(text)
}

// decoded returns a History made of the JSON of another.
func decoded(t *testing.T, h *convo.History) *convo.History {
	t.Helper()
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	var s convo.Snapshot
	require.NoError(t, json.Unmarshal(data, &s))
	f, err := convo.Restore(&s, nil)
	require.NoError(t, err)
	return f
}

func itoa(n int) string { return strconv.Itoa(n) }

// printOf shows all that a snapshot shows, to compare.
func printOf(s *convo.Snapshot) string { return modeltest.Print(s) }

// printMessage shows the role, the texts, the calls and the results of a message.
func printMessage(m convo.Message) string { return modeltest.PrintMessage(m) }

// lines returns n lines, each with its number in the place of %d.
func lines(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format+"\n", i)
	}
	return b.String()
}

// checkPairs checks that a view has the order that Append leads to, apart from
// what compactions took.
func checkPairs(t testing.TB, s *convo.Snapshot) {
	t.Helper()
	if fault := orderFault(s); fault != "" {
		t.Errorf("%s in %v", fault, s)
	}
}

// orderFault says which rule of every view is broken:
// results directly behind their calls, ascending IDs. It returns an empty string
// when none is.
func orderFault(s *convo.Snapshot) string {
	var open []string
	var last convo.ID
	others := false
	for _, e := range s.All() {
		m := e.Message
		if !others && (m.Role != convo.RoleSystem || e.Turn > 0) { // a note, if that has another turn than system entries
			others, last = true, 0
		}
		if e.ID <= last {
			return fmt.Sprintf("entry %d after %d", e.ID, last)
		}
		last = e.ID
		if m.Role != convo.RoleTool && len(open) > 0 {
			return fmt.Sprintf("entry %d while calls %v are open", e.ID, open)
		}
		for _, c := range m.ToolCalls() {
			open = append(open, c.ID)
		}
		for _, r := range m.ToolResults() {
			i := slices.Index(open, r.CallID)
			if i < 0 {
				return fmt.Sprintf("entry %d answers no open call", e.ID)
			}
			open = slices.Delete(open, i, i+1)
		}
	}
	return ""
}

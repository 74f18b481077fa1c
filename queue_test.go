package convo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// policies are those under which the queue is tested.
func policies() map[string]convo.RolePolicy {
	return map[string]convo.RolePolicy{
		"strict":  convo.Strict(),
		"relaxed": convo.Relaxed(),
		"never after a result": {
			UserAfter: []convo.Role{convo.RoleNone, convo.RoleSystem, convo.RoleAssistant},
		},
	}
}

// queue queues user messages with these texts.
func queue(t testing.TB, h *convo.History, texts ...string) {
	t.Helper()
	for _, text := range texts {
		require.NoError(t, h.Queue(convo.User(text)))
	}
}

// rolesOf returns the roles of a conversation's entries, one letter each.
func rolesOf(h *convo.History) string {
	var roles []byte
	for _, e := range h.Snapshot().All() {
		roles = append(roles, e.Message.Role[0])
	}
	return string(roles)
}

// oneCall is a conversation with two open calls.
func oneCall(t testing.TB, opts *convo.Options) *convo.History {
	t.Helper()
	return historyOf(t, opts, convo.User("look"), convo.Assistant("", callOf("c1"), callOf("c2")))
}

func TestQueue_WaitsForTheBatch(t *testing.T) {
	for name, policy := range policies() {
		t.Run(name, func(t *testing.T) {
			h := oneCall(t, &convo.Options{Roles: policy})
			before, tokens := h.Snapshot(), h.Tokens()
			queue(t, h, "one", "two")
			assert.Equal(t, 2, h.Status().Queued)
			assert.Equal(t, tokens, h.Tokens(), "no count includes them")
			assert.Equal(t, printOf(before), printOf(h.Snapshot()), "no snapshot shows them, and the version stays")

			id := mustAppend(t, h, convo.Result(callOf("c1"), "r"))
			assert.Equal(t, "uat", rolesOf(h), "a call is open")
			assert.Equal(t, convo.ID(3), id)

			id = mustAppend(t, h, convo.Result(callOf("c2"), "r"))
			assert.Equal(t, convo.ID(4), id, "Append names its own messages")
			if name == "never after a result" {
				assert.Equal(t, "uatt", rolesOf(h))
				mustAppend(t, h, convo.Assistant("done"))
				assert.Equal(t, "uattauu", rolesOf(h))
			} else {
				assert.Equal(t, "uattuu", rolesOf(h))
			}
			assert.Zero(t, h.Status().Queued)
			assert.Equal(t, 2, h.Status().Turns, "both are one turn")
			texts := textsOf(h.Snapshot())
			assert.Equal(t, []string{"one", "two"}, texts[len(texts)-2:])
			mustAppend(t, h, convo.Assistant("goes on"))

			fork, err := convo.Restore(h.Snapshot(), &convo.Options{Roles: policy, Tokenizer: byBytes})
			require.NoError(t, err, "what a History writes, Restore reads")
			assert.Equal(t, idsOf(h.Snapshot()), idsOf(fork.Snapshot()))
		})
	}
}

// Whatever makes it possible delivers the queue.
func TestQueue_Delivers(t *testing.T) {
	c1, c2 := callOf("c1"), callOf("c2")
	start := func(t *testing.T) *convo.History {
		h := historyOf(t, nil, convo.System("s"), convo.User("a"), convo.Assistant("b"), convo.User("look"))
		queue(t, h, "one", "two")
		return h
	}
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, h *convo.History)
		roles  string
	}{
		{"Append of an answer", func(t *testing.T, h *convo.History) { mustAppend(t, h, convo.Assistant("x")) }, "suauauu"},
		{"Append of a whole round", func(t *testing.T, h *convo.History) {
			mustAppend(t, h, convo.Assistant("", c1, c2), convo.Result(c1, ""), convo.Result(c2, ""))
		}, "suauattuu"},
		{"AnswerOpenCalls", func(t *testing.T, h *convo.History) {
			mustAppend(t, h, convo.Assistant("", c1, c2))
			require.Equal(t, "suaua", rolesOf(h))
			n, err := h.AnswerOpenCalls("")
			require.NoError(t, err)
			require.Equal(t, 2, n)
		}, "suauattuu"},
		{"Rewind", func(t *testing.T, h *convo.History) {
			n, err := h.Rewind(1)
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}, "suauu"},
		{"Rewind of all", func(t *testing.T, h *convo.History) {
			n, err := h.Rewind(9)
			require.NoError(t, err)
			require.Equal(t, 2, n)
		}, "suu"},
		{"Restore after a crash", func(t *testing.T, h *convo.History) {
			mustAppend(t, h, convo.Assistant("", c1, c2))
			saved, err := json.Marshal(h.Snapshot())
			require.NoError(t, err)
			require.Contains(t, string(saved), `"queue":[{"role":"user","parts":[{"type":"text","text":"one"}]},`)
			var s convo.Snapshot
			require.NoError(t, json.Unmarshal(saved, &s))
			kept, err := convo.Restore(&s, nil)
			require.NoError(t, err)
			require.Equal(t, 2, kept.Status().Queued, "the calls are open")
			opened, err := convo.Restore(&s, &convo.Options{OnLoad: convo.OnLoadClose})
			require.NoError(t, err)
			assert.Equal(t, "suauattuu", rolesOf(opened))
			mustAppend(t, h, convo.Result(c1, ""), convo.Result(c2, ""))
		}, "suauattuu"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := start(t)
			tt.change(t, h)
			assert.Equal(t, tt.roles, rolesOf(h))
			assert.Zero(t, h.Status().Queued)
			checkSaved(t, h, nil)
		})
	}
}

func TestQueue_Rollback(t *testing.T) {
	h := historyOf(t, nil, convo.User("a"), convo.Assistant("b"))
	at := h.Snapshot()
	mustAppend(t, h, convo.User("c"), convo.Assistant("", callOf("c1")))
	queue(t, h, "one")
	require.NoError(t, h.Rollback(h.Snapshot()), "nothing to take back")
	assert.Equal(t, 1, h.Status().Queued)
	require.NoError(t, h.Rollback(at))
	assert.Equal(t, []string{"a", "b", "one"}, textsOf(h.Snapshot()), "what waits is not taken back")
	require.NoError(t, h.Rollback(at))
	assert.Equal(t, []string{"a", "b"}, textsOf(h.Snapshot()), "what was delivered is")
}

// Where no answer can be on its way, a message is delivered at once.
func TestQueue_AtOnce(t *testing.T) {
	for roles, msgs := range map[string][]convo.Message{
		"u":   nil,
		"su":  {convo.System("s")},
		"uau": {convo.User("a"), convo.Assistant("b")},
	} {
		h := historyOf(t, nil, msgs...)
		queue(t, h, "now")
		assert.Equal(t, roles, rolesOf(h))
		assert.Zero(t, h.Status().Queued)
	}
	// Under Relaxed a user message could follow the others, but an answer is due.
	h := historyOf(t, &convo.Options{Roles: convo.Relaxed()}, convo.User("a"))
	queue(t, h, "then")
	assert.Equal(t, "u", rolesOf(h))
	mustAppend(t, h, convo.Assistant("b"))
	assert.Equal(t, []string{"a", "b", "then"}, textsOf(h.Snapshot()))
}

func TestQueue_NeverInterrupts(t *testing.T) {
	h := oneCall(t, &convo.Options{Roles: convo.Relaxed()})
	queue(t, h, "one")
	assert.Equal(t, 2, h.Status().OpenCalls)
	mustAppend(t, h, convo.User("stop")) // interrupts, and makes room
	assert.Equal(t, "uattuu", rolesOf(h))
	assert.Equal(t, []string{"stop", "one"}, textsOf(h.Snapshot())[4:])
}

func TestQueue_Refuses(t *testing.T) {
	h := oneCall(t, nil)
	for name, msgs := range map[string][]convo.Message{
		"another role": {convo.User("fine"), convo.Assistant("no")},
		"a call":       {convo.User("fine"), {Role: convo.RoleUser, Parts: []convo.Part{callOf("c")}}},
		"empty":        {convo.User("fine"), convo.User("")},
	} {
		t.Run(name, func(t *testing.T) {
			unchanged(t, h, func() {
				var wrong *convo.MessageError
				require.ErrorAs(t, h.Queue(msgs...), &wrong)
				assert.Equal(t, 1, wrong.Index)
			})
		})
	}
	require.NoError(t, h.Queue())
	assert.Zero(t, h.Status().Queued)
}

func TestQueue_Pins(t *testing.T) {
	for _, opts := range []*convo.Options{
		{PinFirstUser: true},
		{Pin: func(m convo.Message) bool { return m.Text() == "one" }},
	} {
		h := historyOf(t, opts, convo.System("s"))
		queue(t, h, "one")
		assert.Equal(t, []convo.ID{2}, h.Pinned())
	}
}

func TestUnqueue(t *testing.T) {
	h := oneCall(t, nil)
	assert.Empty(t, h.Unqueue())
	m := convo.User("a", convo.NewMedia("image/png", []byte("x")))
	require.NoError(t, h.Queue(m, convo.User("b")))
	s := h.Snapshot()
	m.Parts[0] = convo.Text("changed")
	got := h.Unqueue()
	require.Len(t, got, 2)
	assert.Equal(t, "a", got[0].Text(), "a copy was queued")
	got[1].Parts[0] = convo.Text("changed")
	assert.Zero(t, h.Status().Queued)
	mustAppend(t, h, convo.Result(callOf("c1"), ""), convo.Result(callOf("c2"), ""))
	assert.Equal(t, "uatt", rolesOf(h))

	fork, err := convo.Restore(s, nil) // it still carries both
	require.NoError(t, err)
	require.NoError(t, fork.Close())
	got = fork.Unqueue()
	require.Len(t, got, 2, "after Close too")
	assert.Equal(t, "b", got[1].Text())
	assert.ErrorIs(t, fork.Queue(convo.User("late")), convo.ErrClosed)
}

// A queue that cannot be what Queue has taken is refused, or mended.
func TestQueue_RestoreChecks(t *testing.T) {
	h := oneCall(t, &convo.Options{Roles: convo.Relaxed()})
	require.NoError(t, h.Queue(convo.User("a"), convo.User(""), convo.User("b")))
	_, err := convo.Restore(h.Snapshot(), nil)
	var wrong *convo.SnapshotError
	require.ErrorAs(t, err, &wrong)
	assert.EqualError(t, err, `convo: snapshot: message 1 ("user"): in the queue: empty message; RolePolicy.KeepEmpty allows it`)

	var faults []convo.Fault
	mended, err := convo.Restore(h.Snapshot(), &convo.Options{Repair: func(f convo.Fault) { faults = append(faults, f) }})
	require.NoError(t, err)
	assert.Equal(t, 2, mended.Status().Queued)
	require.Len(t, faults, 1)
	assert.Equal(t, -1, faults[0].Index)
	assert.Equal(t, "dropped from the queue", faults[0].Mended)

	boom := errors.New("boom")
	_, err = convo.Restore(h.Snapshot(), &convo.Options{Roles: convo.Relaxed(), Pin: func(convo.Message) bool { panic(boom) }})
	assert.ErrorIs(t, err, boom)

	var s convo.Snapshot
	err = json.Unmarshal([]byte(`{"version":1,"key":"@bcdefgh","last":0,"turn":0,"queue":[{"role":"assistant"}]}`), &s)
	assert.ErrorContains(t, err, `queued message with role "assistant", want a user message`)
}

// Delivered messages never change what a snapshot carries.
func TestQueue_SnapshotsShare(t *testing.T) {
	h := oneCall(t, nil)
	var seen []*convo.Snapshot
	var want []string
	for i := range 20 {
		queue(t, h, itoa(i))
		s := h.Snapshot()
		data, err := json.Marshal(s)
		require.NoError(t, err)
		seen, want = append(seen, s), append(want, string(data))
	}
	_, err := h.AnswerOpenCalls("")
	require.NoError(t, err)
	require.NoError(t, h.Rollback(seen[0]))
	queue(t, h, "other")
	for i, s := range seen {
		data, err := json.Marshal(s)
		require.NoError(t, err)
		assert.Equal(t, want[i], string(data))
		fork, err := convo.Restore(s, nil)
		require.NoError(t, err)
		assert.Equal(t, i+1, fork.Status().Queued)
	}
	assert.True(t, slices.IsSorted(idsOf(h.Snapshot())))
}

// A user types while tools run. The message waits until the results are there.
func ExampleHistory_Queue() {
	h, err := convo.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	search := convo.ToolCall{ID: "c1", Name: "search", Arguments: `{"to":"Rome"}`}
	if _, err := h.Append(convo.User("Flights to Rome?"), convo.Assistant("", search)); err != nil {
		log.Fatal(err)
	}

	if err := h.Queue(convo.User("Oh, and a window seat.")); err != nil {
		log.Fatal(err)
	}
	fmt.Println(h.Status().Queued, "waits")

	if _, err := h.Append(convo.Result(search, "09:10 and 13:45")); err != nil {
		log.Fatal(err)
	}
	for _, e := range h.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// 1 waits
	// 1 user: Flights to Rome?
	// 2 assistant: call search({"to":"Rome"})
	// 3 tool: result of search(09:10 and 13:45)
	// 4 user: Oh, and a window seat.
}

// What a Do has taken out of the queue is not taken back with the turn before it: it
// waits for an answer as it did in the queue.
func TestQueue_RewindInsideASend(t *testing.T) {
	for _, tt := range []struct {
		name         string
		turns, taken int
		texts        []string
	}{
		{"the turn before", 1, 1, []string{"0", "zero", "q1", "q2"}},
		{"all", 9, 2, []string{"q1", "q2"}},
		{"none", 0, 0, []string{"0", "zero", "1", "q1", "q2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := historyOf(t, &convo.Options{Roles: convo.Relaxed()}, convo.User("0"), convo.Assistant("zero"), convo.User("1"))
			queue(t, h, "q1", "q2")
			reply, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
				require.Equal(t, []string{"0", "zero", "1", "q1", "q2"}, textsOf(h.Snapshot()))
				taken, err := h.Rewind(tt.turns)
				require.NoError(t, err)
				assert.Equal(t, tt.taken, taken)
				assert.Equal(t, tt.texts, textsOf(h.Snapshot()))
				return convo.Reply{Messages: []convo.Message{convo.Assistant("late")}}, nil
			})
			if tt.taken > 0 {
				assert.ErrorIs(t, err, convo.ErrStale)
				assert.Equal(t, "late", reply.Text())
				assert.Equal(t, tt.texts, textsOf(h.Snapshot()))
			} else {
				assert.NoError(t, err)
			}
			checkSaved(t, h, &convo.Options{Roles: convo.Relaxed()})
		})
	}
	h := historyOf(t, &convo.Options{Roles: convo.Relaxed()}, convo.User("1"))
	queue(t, h, "q")
	_, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		for want := range 2 {
			taken, err := h.Rewind(1)
			require.NoError(t, err)
			assert.Equal(t, 1-want, taken, "only the queue is left, and stays")
		}
		return convo.Reply{}, errors.New("no")
	})
	assert.Error(t, err)
	assert.Equal(t, []string{"q"}, textsOf(h.Snapshot()))
}

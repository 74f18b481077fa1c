package convo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// policies are those under which the queue is tested.
func policies() map[string]convo.RolePolicy {
	return map[string]convo.RolePolicy{
		"strict":  convo.RolePolicy{},
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
			_, err = kept.AnswerOpenCalls("")
			require.NoError(t, err)
			assert.Equal(t, "suauattuu", rolesOf(kept))
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
		assert.Equal(t, []convo.ID{2}, h.Snapshot().Pinned())
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

// A queue that cannot be what Queue has taken is refused.
func TestQueue_RestoreChecks(t *testing.T) {
	h := oneCall(t, &convo.Options{Roles: convo.Relaxed()})
	require.NoError(t, h.Queue(convo.User("a"), convo.User(""), convo.User("b")))
	strict, err := convo.Restore(h.Snapshot(), nil)
	require.NoError(t, err)
	assert.Equal(t, 3, strict.Status().Queued, "what was accepted stays")

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

// queuedIn returns the texts of the messages that wait in the queue of a snapshot.
func queuedIn(t testing.TB, s *convo.Snapshot) (texts []string) {
	t.Helper()
	data, err := s.MarshalJSON()
	require.NoError(t, err)
	if !bytes.Contains(data, []byte(`"queue":`)) {
		return nil
	}
	var in struct {
		Queue []struct{ Parts []struct{ Text string } }
	}
	require.NoError(t, json.Unmarshal(data, &in))
	for _, m := range in.Queue {
		var text strings.Builder
		for _, p := range m.Parts {
			text.WriteString(p.Text)
		}
		texts = append(texts, text.String())
	}
	return texts
}

// a and b have two messages in the queue, behind an open call. What b has done with
// them stays, unless a has saved first what became of them.
func TestReload_StoredQueue(t *testing.T) {
	result := func(t *testing.T, h *convo.History) { mustAppend(t, h, convo.Result(callOf("c"), "r")) }
	title := func(t *testing.T, h *convo.History) { require.NoError(t, h.SetMeta("title", "")) }
	say := func(text string) func(*testing.T, *convo.History) {
		return func(t *testing.T, h *convo.History) { mustAppend(t, h, convo.Assistant(text)) }
	}
	forget := func(t *testing.T, h *convo.History) {
		for _, e := range h.Snapshot().All() {
			if e.Message.Text() == "q1" {
				edit := rewriteOf(e.ID, convo.Text("[gone]"))
				edit.Rewrite[0].Forget = true
				apply(t, h, edit)
			}
		}
	}
	unqueue := func(t *testing.T, h *convo.History) { require.Len(t, h.Unqueue(), 2) }
	rewind := func(t *testing.T, h *convo.History) {
		_, err := h.Rewind(1)
		require.NoError(t, err)
	}
	more := func(text string) func(*testing.T, *convo.History) {
		return func(t *testing.T, h *convo.History) { queue(t, h, text) }
	}
	type steps []func(*testing.T, *convo.History)
	for _, tt := range []struct {
		name         string
		theirs, ours steps
		view         string // behind the call
		queued       string
	}{
		{"answered here", steps{title}, steps{result, say("both")}, "r q1 q2 both", ""},
		{"delivered here", steps{title}, steps{result}, "r q1 q2", ""},
		{"delivered here, and one more is queued there", steps{title, more("q3")}, steps{result, say("both")}, "r q1 q2 both q3", ""},
		{"forgotten here", steps{title}, steps{result, forget, say("both")}, "r [gone] q2 both", ""},
		{"unqueued here", steps{title}, steps{unqueue}, "", ""},
		{"unqueued here, and another one queued", steps{title}, steps{unqueue, more("q2, better")}, "", "q2, better"},
		{"delivered and taken back here", steps{title}, steps{result, rewind}, "r", ""},
		{"delivered there", steps{result}, steps{title}, "r q1 q2", ""},
		{"answered there", steps{result, say("theirs")}, steps{more("q3")}, "r q1 q2 theirs q3", ""},
		{"delivered by both", steps{result}, steps{result, say("both")}, "r q1 q2 both", ""},
		{"answered by both", steps{result, say("theirs")}, steps{result, say("ours")}, "r q1 q2 theirs ours", ""},
		{"forgotten there, answered here", steps{result, forget}, steps{result, say("both")}, "r [gone] q2 both", ""},
		{"unqueued there, answered here", steps{unqueue, result}, steps{result, say("both")}, "r both", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := new(shelf)
			a := open(t, s, "k", bare())
			mustAppend(t, a, convo.User("look"), convo.Assistant("", callOf("c")))
			queue(t, a, "q1", "q2")
			save(t, a)
			b := open(t, s, "k", bare())
			for _, step := range tt.theirs {
				step(t, a)
			}
			for _, step := range tt.ours {
				step(t, b)
			}
			save(t, a)
			_, refused := takeOver(t, b)
			for _, m := range refused {
				assert.Equal(t, convo.RoleTool, m.Role, "only the second result of a call is refused: %v", m)
			}
			check := func(h *convo.History) {
				assert.Equal(t, tt.view, strings.Join(textsOf(h.Snapshot())[2:], " "))
				assert.Equal(t, tt.queued, strings.Join(queuedIn(t, h.Snapshot()), " "))
			}
			check(b)
			require.NoError(t, b.SetMeta("another title", ""))
			require.NoError(t, a.SetMeta("a third title", ""))
			save(t, a)
			takeOver(t, b)
			check(b)
			save(t, b)
			check(checkOpened(t, s, "k", bare(), b))
		})
	}
}

// A message that both have delivered has the ID that the other gave it.
func TestReload_DeliveredByBoth(t *testing.T) {
	s := new(shelf)
	a := open(t, s, "k", bare())
	mustAppend(t, a, convo.User("1"))
	queue(t, a, "yes", "yes")
	save(t, a)
	b := open(t, s, "k", bare())
	mustAppend(t, a, convo.Assistant("", callOf("c")), convo.Result(callOf("c"), "r"))
	save(t, a)
	mustAppend(t, b, convo.Assistant("2"))
	require.Equal(t, []string{"1 1", "2 2", "3 yes", "4 yes"}, linesOf(b))
	moved, refused := takeOver(t, b)
	assert.Empty(t, refused)
	assert.Equal(t, []string{"1 1", "2 ", "3 r", "4 yes", "5 yes", "6 2"}, linesOf(b))
	assert.Equal(t, map[convo.ID]convo.ID{2: 6, 3: 4, 4: 5}, moved)
}

// A message that was delivered here, and appended again by a Reload, is not there twice
// when the other delivers it after that.
func TestReload_DeliveredAfterAReload(t *testing.T) {
	s := new(shelf)
	a := open(t, s, "k", bare())
	mustAppend(t, a, convo.User("1"))
	queue(t, a, "q")
	save(t, a)
	b := open(t, s, "k", bare())
	mustAppend(t, b, convo.Assistant("2"))
	require.NoError(t, a.SetMeta("title", ""))
	save(t, a)
	takeOver(t, b)
	mustAppend(t, a, convo.Assistant("theirs"))
	save(t, a)
	takeOver(t, b)
	assert.Equal(t, "1 theirs q 2", strings.Join(textsOf(b.Snapshot()), " "))
}

// A turn that was answered here stays, whatever role what another has saved ends with.
// The two can be next to each other, as after a compaction.
func TestReload_KeepsAnsweredTurns(t *testing.T) {
	c := callOf("c")
	turn := []convo.Message{convo.User("mine"), convo.Assistant("", c), convo.Result(c, "r"), convo.Assistant("answer")}
	for _, tt := range []struct {
		name                string
		first, theirs, ours []convo.Message
		roles               string
	}{
		{"a user message", nil, turn[:1], turn, "uuata"},
		{"a turn", nil, turn, turn, "uatauata"},
		{"the answer to the same question", turn[:1], turn[3:], turn[3:], "uaa"},
		{"the result of the same call", turn[:2], turn[2:], turn[2:], "uataa"},
		{"the result of the same call, and more", turn[:2], turn[2:], slices.Concat(turn[2:], turn), "uataauata"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := new(shelf)
			a := open(t, s, "k", bare())
			mustAppend(t, a, tt.first...)
			require.NoError(t, a.SetMeta("title", ""))
			save(t, a)
			b := open(t, s, "k", bare())
			mustAppend(t, a, tt.theirs...)
			save(t, a)
			mustAppend(t, b, tt.ours...)
			_, refused := takeOver(t, b)
			for _, m := range refused {
				assert.Equal(t, convo.RoleTool, m.Role)
			}
			assert.Equal(t, tt.roles, rolesOf(b))
			save(t, b)
			g := checkOpened(t, s, "k", bare(), b)
			_, err := convo.Restore(g.Snapshot(), bare())
			require.NoError(t, err)
		})
	}
}

// While calls are open in what is stored, nothing else can follow: it is handed back.
func TestReload_OpenCalls(t *testing.T) {
	c, d := callOf("c"), callOf("d")
	s := new(shelf)
	a, b := pair(t, s, bare(), convo.User("1"), convo.Assistant("2"))
	mustAppend(t, a, convo.User("theirs"), convo.Assistant("", c))
	save(t, a)
	mustAppend(t, b, convo.User("mine"), convo.Assistant("", d), convo.Result(d, "r"), convo.Assistant("answer"))
	queue(t, b, "later")
	_, refused := takeOver(t, b)
	assert.Len(t, refused, 5)
	assert.Equal(t, "uaua", rolesOf(b))

}

// A queue of its own is delivered by Reload where nothing is in its way.
func TestReload_DeliversTheQueue(t *testing.T) {
	for _, tt := range []struct {
		name   string
		theirs []convo.Message
		texts  string
		queued int
	}{
		{"an answer", []convo.Message{convo.Assistant("2")}, "1 2 q", 0},
		{"another question", []convo.Message{convo.Assistant("2"), convo.User("3")}, "1 2 3 q", 0},
		{"nothing but a title", nil, "1 q", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := new(shelf)
			a, b := pair(t, s, bare(), convo.User("1"))
			queue(t, b, "q") // joins the question, whose request has failed when b was opened
			mustAppend(t, a, tt.theirs...)
			require.NoError(t, a.SetMeta("title", ""))
			save(t, a)
			takeOver(t, b)
			assert.Equal(t, tt.texts, strings.Join(textsOf(b.Snapshot()), " "))
			assert.Equal(t, tt.queued, b.Status().Queued)
			save(t, b)
			checkOpened(t, s, "k", bare(), b)
		})
	}
}

// A message of the queue without content is recognised as well.
func TestReload_EmptyQueuedMessage(t *testing.T) {
	roles := convo.RolePolicy{KeepEmpty: true}
	opts := &convo.Options{Roles: roles}
	s := new(shelf)
	a := open(t, s, "k", opts)
	mustAppend(t, a, convo.User("1"))
	require.NoError(t, a.Queue(convo.Message{Role: convo.RoleUser}))
	save(t, a)
	b := open(t, s, "k", opts)
	mustAppend(t, b, convo.Assistant("2"))
	require.NoError(t, a.SetMeta("title", ""))
	save(t, a)
	takeOver(t, b)
	assert.Equal(t, "uau", rolesOf(b))
	assert.Zero(t, b.Status().Queued)
}

// After an old backup was put back, messages of the queue that it lacks are queued
// again, and those that were delivered since are not.
func TestReload_BackupOfAQueue(t *testing.T) {
	s := new(shelf)
	a := open(t, s, "k", bare())
	mustAppend(t, a, convo.User("1"))
	queue(t, a, "q1")
	save(t, a)
	backup := s.log("k")
	mustAppend(t, a, convo.Assistant("2")) // delivers q1
	queue(t, a, "q2")
	save(t, a)
	s.logs["k"] = backup
	takeOver(t, a)
	assert.Equal(t, "1 2 q1", strings.Join(textsOf(a.Snapshot()), " "))
	assert.Equal(t, []string{"q2"}, queuedIn(t, a.Snapshot()))
	save(t, a)
	checkOpened(t, s, "k", bare(), a)
}

// A queueWriter is one of several that work on one log. Each message has a number: "m7"
// is its text, "f7" once it was forgotten, and a summary lists the texts of what it
// stands for.
type queueWriter struct {
	name   string
	h      *convo.History
	mine   []int // appended since it was last saved or reloaded, in order
	seen   []int // the view, when mine was last brought up to date
	stored []int // the queue as it was last saved or read
	doubt  bool  // a Save has failed
	failed int   // the newest message when a request failed
}

// newest returns the newest message of the view, or 0.
func (w *queueWriter) newest() int {
	view, _ := viewOf(w.h.Snapshot())
	if len(view) == 0 {
		return 0
	}
	return view[len(view)-1]
}

// A desk has several writers, and remembers what became of each message.
type desk struct {
	t       *testing.T
	rng     *rand.Rand
	s       *shelf
	opts    *convo.Options
	writers []*queueWriter
	next    int
	log     []string

	roles     map[int]convo.Role
	gone      map[int]string // why a message need not be there any more
	answers   map[int][]int  // the messages that each answer is for
	forgotten map[int]bool   // in a record

	reloads, compared, refusals int
}

var numbers = regexp.MustCompile(`[mf](\d+)`)

// numbersIn returns the numbers of the messages in a text.
func numbersIn(text string) (ns []int) {
	for _, m := range numbers.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1])
		ns = append(ns, n)
	}
	return ns
}

// viewOf returns the numbers of the messages in a view without those that a summary
// stands for, and these.
func viewOf(s *convo.Snapshot) (view, summary []int) {
	for _, e := range s.All() {
		view = append(view, numbersIn(e.Message.Text())...)
	}
	if sum, ok := s.Summary(); ok {
		summary = numbersIn(sum.Text)
	}
	return view, summary
}

func queueOf(t testing.TB, s *convo.Snapshot) []int {
	return numbersIn(strings.Join(queuedIn(t, s), " "))
}

// openIn returns the open calls of a view.
func openIn(s *convo.Snapshot) (open []convo.ToolCall) {
	for _, e := range s.All() {
		if e.Message.Role != convo.RoleTool {
			open = e.Message.ToolCalls()
		}
		for _, r := range e.Message.ToolResults() {
			i := slices.IndexFunc(open, func(c convo.ToolCall) bool { return c.ID == r.CallID })
			open = slices.Delete(slices.Clone(open), i, i+1)
		}
	}
	return open
}

func (d *desk) fail(format string, args ...any) {
	d.t.Helper()
	require.FailNow(d.t, fmt.Sprintf(format, args...), strings.Join(d.log, "\n"))
}

func (d *desk) say(format string, args ...any) { d.log = append(d.log, fmt.Sprintf(format, args...)) }

// step lets a writer do something.
func (d *desk) step(w *queueWriter) {
	h := w.h
	d.next++
	n, text, role := d.next, fmt.Sprintf("m%d", d.next), convo.RoleUser
	var err error
	var what string
	switch k := d.rng.IntN(20); {
	case k < 2:
		what = "append user"
		_, err = h.Append(convo.User(text))
	case k < 5:
		what = "queue"
		err = h.Queue(convo.User(text))
	case k < 9:
		what, role = "answer", convo.RoleAssistant
		_, err = h.Do(d.t.Context(), func(_ context.Context, at *convo.Snapshot) (convo.Reply, error) {
			var asked []int
			for _, e := range at.All() {
				if e.Message.Role != convo.RoleUser {
					asked = nil
				}
				if e.Message.Role == convo.RoleUser {
					asked = append(asked, numbersIn(e.Message.Text())...)
				}
			}
			if d.rng.IntN(4) == 0 {
				return convo.Reply{}, errDisk
			}
			d.answers[n] = asked
			calls := []convo.ToolCall{callOf(fmt.Sprint("c", d.rng.IntN(2))), callOf("d")}
			return convo.Reply{Messages: []convo.Message{convo.Assistant(text, calls[:d.tools()]...)}}, nil
		})
		if err != nil {
			w.failed = w.newest()
		}
	case k < 12:
		what, role = "result", convo.RoleTool
		open := openIn(h.Snapshot())
		if len(open) == 0 {
			err = errDisk
			break
		}
		_, err = h.Append(convo.Result(open[d.rng.IntN(len(open))], text))
	case k < 13:
		what = "rewind"
		err = errDisk
		if _, rewound := h.Rewind(1); rewound != nil {
			d.fail("Rewind: %v", rewound)
		}
	case k < 14:
		what = "unqueue"
		err = errDisk
		for _, m := range h.Unqueue() {
			d.gone[numbersIn(m.Text())[0]] = "unqueued"
		}
	case k < 16:
		what = "forget"
		err = errDisk
		if w.doubt || len(w.mine) == 0 {
			break
		}
		n := w.mine[d.rng.IntN(len(w.mine))]
		for _, e := range h.Snapshot().All() {
			if e.Message.Role == convo.RoleUser && e.Message.Text() == fmt.Sprintf("m%d", n) && !e.Pinned {
				edit := rewriteOf(e.ID, convo.Text("f"+e.Message.Text()[1:]))
				edit.Rewrite[0].Forget = true
				_, edited := h.Apply(h.Snapshot(), edit)
				require.NoError(d.t, edited)
			}
		}
	case k < 17:
		what = "summarise"
		err = errDisk
		d.summarise(h)
	default:
		what = "pin"
		err = errDisk
		_ = h.PinLast()
	}
	if err != nil {
		delete(d.answers, n)
	} else {
		d.roles[n] = role
	}
	d.say("%s: %s %s: %v", w.name, what, text, err)
	d.follow(w)
}

// tools returns how many calls an answer has.
func (d *desk) tools() int { return max(d.rng.IntN(5)-2, 0) }

// summarise replaces the older half of a view by a summary that lists it.
func (d *desk) summarise(h *convo.History) {
	at := h.Snapshot()
	sum := "sum"
	if old, ok := at.Summary(); ok {
		sum = old.Text
	}
	var drop []convo.ID
	for x := range at.Exchanges() {
		if x.Floor || len(drop) >= h.Len()/2 {
			break
		}
		for _, id := range x.IDs() {
			e, _ := at.Find(id)
			drop, sum = append(drop, id), sum+" "+e.Message.Text()
		}
	}
	if len(drop) > 0 {
		_, err := h.Apply(at, convo.Edit{Drop: drop, Summary: &convo.Summary{Text: sum}})
		require.NoError(d.t, err)
	}
}

// follow brings w.mine up to date after a step, and checks what always holds.
func (d *desk) follow(w *queueWriter) {
	view, summary := viewOf(w.h.Snapshot())
	all := slices.Concat(summary, view)
	for _, n := range w.seen {
		if !slices.Contains(all, n) {
			d.gone[n] = "taken back"
		}
	}
	w.mine = slices.DeleteFunc(w.mine, func(n int) bool { return !slices.Contains(all, n) })
	for _, n := range view {
		if !slices.Contains(w.seen, n) {
			w.mine = append(w.mine, n)
		}
	}
	w.seen = all
	d.check(w)
}

// check checks that nothing is there twice, and no message after its answer.
func (d *desk) check(w *queueWriter) {
	d.t.Helper()
	view, summary := viewOf(w.h.Snapshot())
	queue := queueOf(d.t, w.h.Snapshot())
	all := slices.Concat(summary, view, queue)
	count := make(map[int]int)
	for _, n := range all {
		if count[n]++; count[n] > 1 {
			d.fail("%s has %d twice: %v %v %v", w.name, n, summary, view, queue)
		}
	}
	for n, asked := range d.answers {
		at := slices.Index(all, n)
		for _, q := range asked {
			if at >= 0 && slices.Index(all, q) > at {
				d.fail("%s has %d after its answer %d: %v %v %v", w.name, q, n, summary, view, queue)
			}
		}
	}
}

// save saves what a writer has, or reports that another has saved.
func (d *desk) save(w *queueWriter) (conflict bool) {
	err := w.h.Save(d.t.Context())
	d.say("%s: save: %v", w.name, err)
	conflict = errors.As(err, new(*convo.ConflictError))
	if err == nil {
		w.mine, w.stored, w.doubt = nil, queueOf(d.t, w.h.Snapshot()), false
		for _, e := range w.h.Snapshot().All() {
			if text := e.Message.Text(); strings.HasPrefix(text, "f") {
				d.forgotten[numbersIn(text)[0]] = true
			}
		}
	}
	w.doubt = w.doubt || err != nil && !conflict
	return conflict
}

// reload reloads a writer, and compares what it has then with the model: what is
// stored, and then what only the writer has.
func (d *desk) reload(w *queueWriter) {
	h := w.h
	at, err := convo.Load(d.t.Context(), d.s, "k", 0)
	if errors.Is(err, convo.ErrNotFound) {
		return
	}
	require.NoError(d.t, err)
	stored, storedSum := viewOf(at)
	storedQueue, ownQueue := queueOf(d.t, at), queueOf(d.t, h.Snapshot())
	before := h.Snapshot().Version()
	_, refused := takeOver(d.t, h)
	d.say("%s: reload %v %v with %v %v (was %v): refused %v", w.name, stored, storedQueue, w.mine, ownQueue, w.stored, refused)
	d.reloads++
	open := len(openIn(at)) > 0
	var left []int
	for _, m := range refused {
		n := numbersIn(m.Text())
		if m.Role != convo.RoleTool && !open {
			d.fail("%s: %v is refused", w.name, m)
		}
		left = append(left, n...)
		d.refusals++
		for _, n := range n {
			d.gone[n] = "refused"
		}
	}
	d.check(w)
	if h.Snapshot().Version() == before {
		return
	}
	view, summary := viewOf(h.Snapshot())
	queue := queueOf(d.t, h.Snapshot())
	if !w.doubt && !d.opts.Roles.Interrupt {
		d.compared++
		var wantQueue []int
		appended, kept := false, false
		for _, q := range storedQueue {
			if !slices.Contains(w.stored, q) || slices.Contains(ownQueue, q) || slices.Contains(w.mine, q) && !slices.Contains(view, q) {
				wantQueue = append(wantQueue, q)
			}
		}
		want := slices.Clone(stored)
		for _, n := range w.mine {
			byOthers := slices.Contains(w.stored, n) && !slices.Contains(storedQueue, n)
			if byOthers || slices.Contains(left, n) || slices.Contains(wantQueue, n) {
				continue
			}
			want, appended = append(want, n), true
		}
		for _, q := range ownQueue {
			if !slices.Contains(w.stored, q) {
				wantQueue, kept = append(wantQueue, q), true
			}
		}
		newest := convo.RoleNone
		if appended {
			newest = d.roles[want[len(want)-1]]
		} else if e, ok := at.At(at.Len() - 1); ok {
			newest = e.Message.Role
		}
		failed := len(want) > 0 && want[len(want)-1] == w.failed
		free := (newest != convo.RoleUser || failed) && (appended || kept && newest != convo.RoleTool)
		if free && h.Status().OpenCalls == 0 {
			want, wantQueue = append(want, wantQueue...), nil
		}
		if !slices.Equal(view, want) || !slices.Equal(queue, wantQueue) || !slices.Equal(summary, storedSum) {
			d.fail("%s: view %v, want %v; queue %v, want %v; summary %v, want %v", w.name, view, want, queue, wantQueue, summary, storedSum)
		}
	}
	texts := strings.Join(slices.Concat(textsOf(h.Snapshot()), queuedIn(d.t, h.Snapshot())), " ") + " "
	for n := range d.forgotten {
		if strings.Contains(texts, fmt.Sprintf("m%d ", n)) {
			d.fail("%s: %d, which was forgotten, is back", w.name, n)
		}
	}
	w.seen, w.stored, w.doubt = slices.Concat(summary, view), storedQueue, false
	w.mine = slices.DeleteFunc(slices.Clone(view), func(n int) bool { return slices.Contains(stored, n) })
}

// restart opens the log anew: what was not saved is lost.
func (d *desk) restart(w *queueWriter) {
	for _, n := range slices.Concat(w.mine, queueOf(d.t, w.h.Snapshot())) {
		d.gone[n] = "lost in a restart"
	}
	*w = queueWriter{name: w.name, h: open(d.t, d.s, "k", d.opts)}
	w.failed = w.newest()
	d.say("%s: restarted", w.name)
	if at, err := convo.Load(d.t.Context(), d.s, "k", 0); err == nil {
		stored, summary := viewOf(at)
		w.stored, w.seen = queueOf(d.t, at), slices.Concat(summary, stored)
		if !slices.Contains(stored, w.failed) {
			w.failed = 0 // it was queued, and delivered on load: nothing has requested an answer to it
		}
	}
	d.follow(w)
}

// Writers with a queue who Reload when another has saved: nothing is lost or there
// twice, no message comes after its answer, what was forgotten stays so, and nothing is
// refused but results, and what no open call lets pass.
func TestReload_QueueAgainstAModel(t *testing.T) {
	seeds := uint64(long.Or(150, 1500))
	var reloads, compared, refusals int
	for seed := range seeds {
		d := &desk{
			t: t, rng: rand.New(rand.NewPCG(seed, 21)), s: new(shelf), opts: &convo.Options{Tokenizer: byBytes},
			roles: map[int]convo.Role{}, gone: map[int]string{}, answers: map[int][]int{}, forgotten: map[int]bool{},
		}
		d.say("seed %d", seed)
		if seed%5 == 4 {
			d.opts.Roles = convo.Relaxed()
		}
		for i := range 2 + seed%2 {
			d.writers = append(d.writers, &queueWriter{name: string(rune('a' + i)), h: open(t, d.s, "k", d.opts)})
		}
		if seed%4 == 3 {
			d.s.fault = func(convo.Record) fault { return fault(max(d.rng.IntN(8)-3, 0)) }
		}
		for range 50 {
			w := d.writers[d.rng.IntN(len(d.writers))]
			switch k := d.rng.IntN(20); {
			case k < 5:
				if d.save(w) {
					d.reload(w)
				}
			case k == 5:
				d.reload(w)
			case k == 6:
				d.s.land()
			case k == 7 && d.rng.IntN(3) == 0:
				d.restart(w)
			default:
				d.step(w)
			}
		}
		d.s.fault = nil
		d.s.land()
		for range 3 {
			for _, w := range d.writers {
				for d.save(w) {
					d.reload(w)
				}
			}
		}
		for _, w := range d.writers {
			d.reload(w)
			if got, want := pictureOf(t, w.h.Snapshot()), pictureOf(t, d.writers[0].h.Snapshot()); got != want && len(d.s.log("k")) > 0 {
				d.fail("%s has %s\nand the first has %s", w.name, got, want)
			}
		}
		view, summary := viewOf(d.writers[0].h.Snapshot())
		all := slices.Concat(summary, view, queueOf(t, d.writers[0].h.Snapshot()))
		for n := range d.roles {
			if d.gone[n] == "" && !slices.Contains(all, n) {
				d.fail("%d is lost: %v", n, all)
			}
		}
		reloads, compared, refusals = reloads+d.reloads, compared+d.compared, refusals+d.refusals
	}
	t.Logf("%d reloads, %d compared with the model, %d messages refused", reloads, compared, refusals)
	assert.Greater(t, compared, int(seeds))
	assert.Greater(t, refusals, 0)
}

// No request has failed that ended with a message which AnswerOpenCalls delivered, so that after a
// Reload the next queued message waits for the answer.
func TestReload_QueueAfterAnswerOpenCalls(t *testing.T) {
	s, c := new(shelf), callOf("c")
	a := open(t, s, "k", bare())
	mustAppend(t, a, convo.User("1"), convo.Assistant("2", c))
	require.NoError(t, a.Queue(convo.User("3")))
	save(t, a)
	b := open(t, s, "k", bare())
	_, err := b.AnswerOpenCalls("")
	require.NoError(t, err)
	require.Equal(t, "3", b.Snapshot().Messages()[3].Text())
	mustAppend(t, a, convo.Result(c, "result"))
	require.NoError(t, a.Queue(convo.User("4")))
	save(t, a)
	_, refused := takeOver(t, b)
	assert.Len(t, refused, 1, "the result of AnswerOpenCalls")
	msgs := b.Snapshot().Messages()
	assert.Equal(t, "3", msgs[len(msgs)-1].Text())
	assert.Equal(t, []string{"4"}, queuedIn(t, b.Snapshot()))
	mustAppend(t, b, convo.Assistant("answer"))
	assert.Empty(t, queuedIn(t, b.Snapshot()))
}

// A result comes back with its call, and does not answer one with the same ID.
func TestReload_OpenCallWithTheSameID(t *testing.T) {
	c := callOf("c")
	a, b := pair(t, new(shelf), bare(), convo.User("1"), convo.Assistant("2"))
	mustAppend(t, a, convo.User("theirs"), convo.Assistant("", c))
	save(t, a)
	mustAppend(t, b, convo.User("mine"), convo.Assistant("", c), convo.Result(c, "of mine"))
	_, refused := takeOver(t, b)
	assert.Len(t, refused, 3)
	assert.Equal(t, linesOf(a), linesOf(b))
	assert.Equal(t, 1, b.Status().OpenCalls)
}

package convo_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// badAnswers are the ways in which a request fails, or its answer is of no use.
func badAnswers() map[string]convo.Send {
	fails := func(err error) convo.Send {
		return func(context.Context, *convo.Snapshot) (convo.Reply, error) { return convo.Reply{}, err }
	}
	returns := func(r convo.Reply) convo.Send {
		return func(context.Context, *convo.Snapshot) (convo.Reply, error) { return r, nil }
	}
	of := func(parts ...convo.Part) []convo.Message {
		return []convo.Message{{Role: convo.RoleAssistant, Parts: parts}}
	}
	cut := &convo.ToolCall{ID: "9", Name: "search", Arguments: `{"to":`}
	return map[string]convo.Send{
		"500":                           fails(errors.New("500 internal server error")),
		"network":                       fails(errors.New("connection reset by peer")),
		"ctx ended":                     fails(context.Canceled),
		"empty":                         returns(convo.Reply{}),
		"reasoning only":                returns(convo.Reply{Messages: of(convo.Reasoning{Text: "hm"})}),
		"two calls with one ID":         returns(convo.Reply{Messages: of(callOf("c"), callOf("c")), Stop: convo.StopToolCall}),
		"cut off in a call":             returns(convo.Reply{CutOff: cut, Stop: convo.StopLength}),
		"cut off behind a whole call":   returns(convo.Reply{Messages: of(callOf("c")), CutOff: cut, Stop: convo.StopLength}),
		"too long, and nothing to drop": fails(errTooLong),
		"too long, with a number":       fails(errors.New("400: prompt is too long: 5939 tokens > 1 maximum")),
	}
}

// After whatever the model or the network does, the user types again, and is answered: with
// the loop of the README, with Do and with Run, under every policy that lets a user speak,
// also if the process ends in between.
func TestFailed_UserGoesOn(t *testing.T) {
	loops := map[string]func(h *convo.History, send convo.Send, question string) error{
		"loop of the README": func(h *convo.History, send convo.Send, question string) error {
			return ask(context.Background(), h, send, question)
		},
		"Do": func(h *convo.History, send convo.Send, question string) error {
			if err := runCalls(h); err != nil {
				return err
			}
			if _, err := h.Append(convo.User(question)); err != nil {
				return err
			}
			_, err := h.Do(context.Background(), send)
			return err
		},
		"Run": func(h *convo.History, send convo.Send, question string) error {
			if _, err := h.Append(convo.User(question)); err != nil {
				return err
			}
			_, err := h.Run(context.Background(), send, convo.RunOptions{Tools: []convo.Handler{{
				Tool: convo.Tool{Name: callOf("c").Name},
				Run:  func(context.Context, convo.ToolCall) ([]convo.Part, error) { return []convo.Part{convo.Text("r")}, nil },
			}}})
			return err
		},
	}
	policies := policies()
	for loop, ask := range loops {
		for name, policy := range policies {
			for fault, send := range badAnswers() {
				if fault == "cut off behind a whole call" && loop != "Run" && !slices.Contains(policy.UserAfter, convo.RoleTool) && policy.UserAfter != nil {
					continue // under this policy the results are for the model first
				}
				for _, restart := range []bool{false, true} {
					t.Run(fmt.Sprint(loop, "/", name, "/", fault, "/restart ", restart), func(t *testing.T) {
						opts := &convo.Options{Roles: policy}
						s := new(shelf)
						h := open(t, s, "k", opts)
						for n := range 3 { // an outage of three questions
							_ = ask(h, send, fmt.Sprint("question ", n))
							if restart {
								save(t, h)
								h = open(t, s, "k", opts)
							}
						}
						require.NoError(t, ask(h, saying(convo.Assistant("answer")), "question 3"))
						texts := strings.Join(textsOf(h.Snapshot()), " ")
						for n := range 4 {
							want := 1
							if n < 3 && loop == "loop of the README" && strings.HasPrefix(fault, "too long") {
								want = 0 // the loop takes back what does not fit
							}
							assert.Equal(t, want, strings.Count(texts, fmt.Sprint("question ", n)))
						}
						assert.True(t, strings.HasSuffix(texts, "question 3 answer"), texts)
						checkPairs(t, h.Snapshot())
						checkSaved(t, h, nil)
					})
				}
			}
		}
	}
}

// Two user messages with no failed request between them stay refused, in one Append and in two.
func TestFailed_OnlyAfterARequest(t *testing.T) {
	refused := func(t *testing.T, h *convo.History, msgs ...convo.Message) {
		t.Helper()
		unchanged(t, h, func() {
			_, err := h.Append(msgs...)
			require.ErrorAs(t, err, new(*convo.RoleError))
		})
	}
	fail := func(t *testing.T, h *convo.History) {
		t.Helper()
		_, err := h.Do(t.Context(), badAnswers()["500"])
		require.Error(t, err)
	}
	u, v := convo.User("u"), convo.User("v")
	h := historyOf(t, nil, u)
	refused(t, h, v)
	fail(t, h)
	refused(t, h, v, convo.User("w"))
	mustAppend(t, h, convo.System("a note"), v)
	refused(t, h, convo.User("w"))
	mustAppend(t, h, convo.Assistant("a"), u)
	refused(t, h, v)

	// While a Do waits for its answer, nothing follows the question.
	h = historyOf(t, nil, u)
	fail(t, h)
	_, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		refused(t, h, v)
		require.NoError(t, h.Queue(v))
		assert.Equal(t, 1, h.Status().Queued)
		return convo.Reply{Messages: []convo.Message{convo.Assistant("a")}}, nil
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"u", "a", "v"}, textsOf(h.Snapshot()))
	refused(t, h, u)

	// While a request of an own loop is under way, the queue waits, and an answer ends what
	// failed before it.
	h = historyOf(t, nil, u)
	s, _, err := h.Prepare(t.Context())
	require.NoError(t, err)
	retry, _, err := h.Recover(t.Context(), s, errors.New("500"))
	require.False(t, retry, "%v", err)
	s, _, err = h.Prepare(t.Context())
	require.NoError(t, err)
	require.NoError(t, h.Queue(v))
	refused(t, h, v)
	_, err = h.AppendReply(s, convo.Reply{Messages: []convo.Message{convo.Assistant("to u")}})
	require.NoError(t, err)
	assert.Equal(t, []string{"u", "to u", "v"}, textsOf(h.Snapshot()))
	require.NoError(t, h.RewindTo(1))
	refused(t, h, v)

	// A reply to a message that was taken back says nothing of the one in its place.
	h = historyOf(t, nil, u)
	s = h.Snapshot()
	require.NoError(t, h.RewindBefore(1))
	mustAppend(t, h, v)
	_, err = h.AppendReply(s, convo.Reply{Messages: []convo.Message{convo.Assistant("to u")}})
	require.ErrorIs(t, err, convo.ErrStale)
	refused(t, h, u)

	// Nor is what was queued during a request with an empty answer one that was asked.
	h = historyOf(t, nil, u)
	_, err = h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		return convo.Reply{}, h.Queue(v)
	})
	require.NoError(t, err)
	refused(t, h, u)

	// A conversation that does not fit would not fit with another message.
	h = historyOf(t, &convo.Options{Limits: convo.Limits{Window: 600, Reserve: 100}}, convo.User(strings.Repeat("long ", 900)))
	for range 2 {
		_, _, err = h.Prepare(t.Context())
		require.ErrorAs(t, err, new(*convo.FloorError))
		refused(t, h, v)
		_, err = h.Do(t.Context(), saying(convo.Assistant("a")))
		require.ErrorAs(t, err, new(*convo.FloorError))
		refused(t, h, v)
		_, err = h.Run(t.Context(), saying(convo.Assistant("a")), convo.RunOptions{})
		require.ErrorAs(t, err, new(*convo.FloorError))
		refused(t, h, v)
	}
	rewind(t, h)
	mustAppend(t, h, v)
}

// If what was asked again and again fills the window, Rewind(1) takes the run back, as the
// error says.
func TestFailed_RunFillsTheWindow(t *testing.T) {
	h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 1000, Reserve: 100}}, convo.User("before"), convo.Assistant("a"))
	var floor *convo.FloorError
	for err := error(nil); floor == nil; errors.As(err, &floor) {
		mustAppend(t, h, convo.User(strings.Repeat("well? ", 60)))
		_, err = h.Do(t.Context(), badAnswers()["500"])
		require.Less(t, h.Len(), 30)
	}
	assert.ErrorContains(t, floor, "Rewind")
	rewind(t, h)
	assert.Equal(t, []string{"before", "a"}, textsOf(h.Snapshot()))
}

// The second message joins the turn of the first. What was queued joins it too, and a Reload
// leaves the mark where it is.
func TestFailed_TurnQueueAndReload(t *testing.T) {
	s := new(shelf)
	a, b := pair(t, s, nil, convo.User("1"), convo.Assistant("2"))
	mustAppend(t, b, convo.User("mine"))
	_, err := b.Do(t.Context(), badAnswers()["500"])
	require.Error(t, err)
	mustAppend(t, a, convo.User("theirs"), convo.Assistant("4"))
	save(t, a)
	takeOver(t, b)
	require.NoError(t, b.Queue(convo.User("queued")))
	assert.Zero(t, b.Status().Queued)
	assert.Equal(t, []string{"1 1", "2 2", "3 theirs", "4 4", "5 mine", "6 queued"}, linesOf(b))
	first, _ := b.Snapshot().Find(5)
	second, _ := b.Snapshot().Find(6)
	assert.Equal(t, first.Turn, second.Turn)
	save(t, b)
	checkOpened(t, s, "k", nil, b)

	mustAppend(t, a, convo.User("5"))
	takeOver(t, a)
	_, err = a.Append(convo.User("6"))
	require.ErrorAs(t, err, new(*convo.RoleError), "a Reload is no failed request")
}

// Rows may hold two user messages in a row, in AppendRows and Resume; all other rules hold.
func TestAppendRows(t *testing.T) {
	for name, policy := range policies() {
		h := historyOf(t, &convo.Options{Roles: policy})
		rows := []convo.Message{keyed("1", convo.User("1")), keyed("2", convo.User("2")), keyed("3", convo.Assistant("3")), keyed("4", convo.User("4"))}
		last, err := h.AppendRows(rows...)
		require.NoError(t, err, name)
		assert.Equal(t, convo.ID(4), last)
		rows = append(rows, keyed("5", convo.User("5")))
		_, err = h.AppendRows(rows[4])
		require.NoError(t, err, name)
		again, err := convo.Resume(decisionsOf(t, h), rowsOf(rows...), &convo.Options{Roles: policy})
		require.NoError(t, err, name)
		assert.Equal(t, h.Snapshot().Messages(), again.Snapshot().Messages())
		more := append(rows, keyed("6", convo.User("6")))
		again, err = convo.Resume(decisionsOf(t, h), rowsOf(more...), &convo.Options{Roles: policy})
		require.NoError(t, err, name)
		assert.Equal(t, 6, again.Len())
	}
	h := historyOf(t, nil)
	_, err := h.AppendRows(convo.Assistant("a"))
	require.ErrorAs(t, err, new(*convo.RoleError))
	mustAppend(t, h, convo.User("u"), convo.Assistant("", callOf("c")))
	_, err = h.AppendRows(convo.User("v"))
	require.ErrorIs(t, err, convo.ErrOpenCalls)
}

func TestSnapshot_OpenCallsAndQueued(t *testing.T) {
	a, b := callOf("a"), callOf("b")
	h := historyOf(t, nil, convo.User("u"), convo.Assistant("", a, b))
	assert.Equal(t, []convo.ToolCall{a, b}, h.Snapshot().OpenCalls())
	mustAppend(t, h, convo.Result(a, "r"))
	queue(t, h, "q1", "q2")
	s := reload(t, h, nil).Snapshot() // in another process
	assert.Equal(t, []convo.ToolCall{b}, s.OpenCalls())
	assert.Equal(t, []convo.Message{convo.User("q1"), convo.User("q2")}, s.Queued())
	s.Queued()[0].Parts[0] = convo.Text("changed")
	assert.Equal(t, "q1", s.Queued()[0].Text())
	mustAppend(t, h, convo.Result(b, "r"), convo.Assistant("done"))
	assert.Empty(t, h.Snapshot().OpenCalls())
	assert.Empty(t, h.Snapshot().Queued())
	assert.Empty(t, new(convo.Snapshot).OpenCalls())
	assert.Empty(t, new(convo.Snapshot).Queued())
}

func TestPrint_Usage(t *testing.T) {
	u := convo.Usage{Input: 12_400, CacheRead: 11_000, Extra: 7, Output: 310, Reasoning: 200}
	assert.Equal(t, "12,400 read (11,000 from the cache, 7 beyond the request), 310 written (200 reasoning)", fmt.Sprint(u))
	assert.Equal(t, "0 read, 0 written", fmt.Sprint(convo.Usage{}))
}

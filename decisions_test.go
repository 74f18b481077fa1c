package convo_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
)

// rowsOf yields messages as rows.
func rowsOf(msgs ...convo.Message) iter.Seq2[convo.Message, error] {
	return func(yield func(convo.Message, error) bool) {
		for _, m := range msgs {
			if !yield(m, nil) {
				return
			}
		}
	}
}

// decisionsOf returns the Decisions of h.
func decisionsOf(t testing.TB, h *convo.History) *convo.Decisions {
	t.Helper()
	data, err := h.Decisions()
	require.NoError(t, err)
	d, err := convo.ReadDecisions(data)
	require.NoError(t, err)
	return d
}

// keyedTalk returns n messages with the keys m1, m2 and so on: a user message, a call, its
// result and an answer, again and again.
func keyedTalk(n int, text func(i int) string) []convo.Message {
	var list []convo.Message
	for i := range n {
		call := callOf(fmt.Sprint("c", i-i%4))
		m := [...]convo.Message{convo.User(text(i)), convo.Assistant("", call), convo.Result(call, text(i)), convo.Assistant(text(i))}[i%4]
		list = append(list, keyed(fmt.Sprintf("m%d", i+1), m))
	}
	return list
}

func short(i int) string { return fmt.Sprintf("text number %d", i) }

// rowKeys are keys as applications have them, by name.
var rowKeys = map[string]func(i int) string{
	"short": func(i int) string { return fmt.Sprint("m", i) },
	"UUID": func(i int) string {
		h := sha256.Sum256(fmt.Append(nil, i))
		return fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
	},
}

// sumBytes is how much of Decisions each row in view takes.
const sumBytes = 11

// bytesApart is how much Decisions take for the user messages that stay while what followed
// them has left: for each a run of rows with its key, and a range of the summary.
func bytesApart(s *convo.Snapshot) (n int) {
	for _, e := range s.All() {
		if _, ok := s.Find(e.ID + 1); e.Message.Role == convo.RoleUser && !ok {
			n += 45 + len(e.Message.Key)
		}
	}
	return n
}

// What Decisions weigh besides the sums of rows in view, and the places of user messages whose
// answers have left, does not grow with the conversation.
func TestDecisions_Size(t *testing.T) {
	limits := map[string]int{"short false": 2_000, "short true": 2_000, "UUID false": 2_000, "UUID true": 3_000} // by keys and pinsTools
	for window, word := range map[int]int{8_000: 400, 32_000: 240, 128_000: 200} {
		for i := range 16 {
			spill, sealed, pinsTools, keys := i&1 != 0, i&2 != 0, i&4 != 0, "short"
			if i&8 != 0 {
				keys = "UUID"
			}
			// The short form has every three of the four settings in each of their eight
			// combinations, and the large windows with all of the settings and with none.
			if !long.On() && (bits.OnesCount(uint(i))%2 == 1 || window > 8_000 && i != 0 && i != 15) {
				continue
			}
			t.Run(fmt.Sprint(window, " spill ", spill, " signed ", sealed, " pinned tool rounds ", pinsTools, " keys ", keys), func(t *testing.T) {
				messages, compactions := long.Or(1200, 10_000), long.Or(5, 56)
				if window == 8_000 && i == 0 { // one long conversation in both forms
					messages, compactions = 10_000, 56
				}
				refs, applied := 0, 0
				opts := &convo.Options{
					Limits: convo.Limits{Window: window},
					OnCompaction: func(r convo.Report) {
						if r.Outcome == convo.OutcomeApplied && r.Reason != convo.ReasonAppend {
							applied++
						}
					},
				}
				if spill {
					opts.Spill = func(context.Context, convo.ToolResult) (string, error) {
						refs++
						return fmt.Sprintf("/var/lib/agent/results/2026-11/%08d.txt", refs), nil
					}
				}
				h, err := convo.New(opts)
				require.NoError(t, err)
				words := strings.Repeat("word ", window/word)
				talk := keyedTalk(messages, func(i int) string {
					if i%4 == 2 {
						return fmt.Sprint(i, words, words)
					}
					return fmt.Sprint(i, " ", words[:len(words)/4])
				})
				pinned, pins := messages/20, 10
				if pinsTools {
					pinned, pins = messages/20+2, 20 // a call and its result each
				}
				most, limit := 0, limits[fmt.Sprint(keys, " ", pinsTools)]
				measure := func() []byte {
					data, err := h.Decisions()
					require.NoError(t, err)
					s := h.Snapshot()
					sum, _ := s.Summary()
					own := len(data) - len(sum.Text) - len(sum.Names) - 120*strings.Count(string(data), `"ref":`)
					for _, e := range s.All() {
						if e.Message.Reasoning() != "" {
							own -= 12
						}
						if e.Message.Key != "" {
							own -= sumBytes
						}
					}
					own -= bytesApart(s)
					require.LessOrEqual(t, own, limit, "%s", data)
					most = max(most, own)
					return data
				}
				for i := range talk {
					m := &talk[i]
					m.Key = rowKeys[keys](i)
					if sealed && m.Role == convo.RoleAssistant {
						*m = thoughts.In(*m, convo.Reasoning{Text: "hm", Signature: "c2ln"})
					}
					_, err := h.Append(*m)
					require.NoError(t, err)
					if i%(messages/10) == pinned {
						require.NoError(t, h.PinLast())
					}
					if m.Role != convo.RoleAssistant {
						_, _, err = h.Prepare(t.Context())
						require.NoError(t, err)
					}
					if i > messages*9/10 && i%20 == 0 { // also when the view is at its largest
						measure()
					}
				}
				data := measure()
				t.Logf("at most %d bytes besides the summary, the sums of rows and what is listed; %d entries in view, %d pins, %d compactions", most, h.Len(), len(h.Snapshot().Pinned()), applied)
				assert.Len(t, h.Snapshot().Pinned(), pins)
				assert.GreaterOrEqual(t, applied, compactions)
				d, err := convo.ReadDecisions(data)
				require.NoError(t, err)
				again, err := convo.Resume(d, rowsNeeded(d, talk), opts)
				require.NoError(t, err)
				assert.Equal(t, h.Len(), again.Len())
			})
		}
	}
}

// Decisions have at most eleven bytes for each row in view, the places of user messages whose
// answers have left, and 2 kB besides, in each window and with rows of each size.
func TestDecisions_SizeOfWindows(t *testing.T) {
	for _, window := range []int{8_000, 32_000, 128_000, 1_000_000} {
		for _, tokens := range []int{50, 500} {
			var h *convo.History
			most, rows := 0, 0 // the largest Decisions, and the rows in view then
			measure := func() {
				data, err := h.Decisions()
				require.NoError(t, err)
				sum, _ := h.Snapshot().Summary()
				own := len(data) - len(sum.Text) - len(sum.Names)
				require.LessOrEqual(t, own, sumBytes*h.Len()+bytesApart(h.Snapshot())+2_000)
				if own > most {
					most, rows = own, h.Len()
				}
			}
			h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: window}, OnCompaction: func(r convo.Report) { measure() }})
			require.NoError(t, err)
			talk := keyedTalk(3*window/tokens, func(i int) string { return fmt.Sprint(i, strings.Repeat(" word", tokens)) })
			for i, m := range talk {
				_, err := h.Append(m)
				require.NoError(t, err)
				if tokens == 50 && i%(len(talk)/10) == 0 {
					require.NoError(t, h.PinLast())
				}
				if m.Role == convo.RoleAssistant {
					continue
				}
				if now := h.Status(); now.Upper > now.High {
					measure() // the view is at its largest
				}
				_, _, err = h.Prepare(t.Context())
				require.NoError(t, err)
			}
			t.Logf("a window of %7d tokens, rows of %3d: at most %6d bytes besides the summary, with %5d rows in view", window, tokens, most, rows)
		}
	}
}

// rowsNeeded yields those of msgs that d needs.
func rowsNeeded(d *convo.Decisions, msgs []convo.Message) iter.Seq2[convo.Message, error] {
	keys, from := d.Needs()
	begun := from == ""
	return rowsOf(slices.Collect(func(yield func(convo.Message) bool) {
		for _, m := range msgs {
			if begun = begun || m.Key == from; (begun || slices.Contains(keys, m.Key)) && !yield(m) {
				return
			}
		}
	})...)
}

// A row that does not fit is named, and what is wrong with it.
func TestResume_Faults(t *testing.T) {
	talk := keyedTalk(80, short)
	h := historyOf(t, nil, talk...)
	require.NoError(t, h.Pin(6))
	_, err := h.Apply(h.Snapshot(), convo.Edit{
		Drop:    append([]convo.ID{1, 2, 3, 4, 5}, idRange(8, 20)...),
		Summary: &convo.Summary{Text: "what was"},
	})
	require.NoError(t, err)
	_, err = h.Apply(h.Snapshot(), convo.Edit{Clear: []convo.Clear{{ID: 31}}})
	require.NoError(t, err)
	d := decisionsOf(t, h)
	keys, from := d.Needs()
	require.Equal(t, []string{"m6", "m7"}, keys)
	require.Equal(t, "m21", from)

	good := slices.Collect(func(yield func(convo.Message) bool) {
		for m := range rowsNeeded(d, talk) {
			yield(m)
		}
	})
	at := func(key string) int {
		return slices.IndexFunc(good, func(m convo.Message) bool { return m.Key == key })
	}
	without := func(key string) []convo.Message {
		return slices.Delete(slices.Clone(good), at(key), at(key)+1)
	}
	with := func(i int, m convo.Message) []convo.Message { return slices.Insert(slices.Clone(good), i, m) }
	other := func(key string, change func(*convo.Message)) []convo.Message {
		list := slices.Clone(good)
		change(&list[at(key)])
		return list
	}
	failed := errors.New("the table is locked")
	for name, tt := range map[string]struct {
		rows  []convo.Message
		key   string
		fault string
	}{
		"as they are":                        {rows: good},
		"after what stood before them":       {rows: append([]convo.Message{convo.System("guide")}, good...)},
		"in another order before those from": {rows: append([]convo.Message{good[1], good[0]}, good[2:]...)},
		"a listed row is missing":            {without("m7"), "m7", "missing"},
		"the first row is missing":           {without("m21"), "m22", "unexpected"},
		"a row is missing":                   {without("m50"), "m51", "missing"},
		"the last row is missing":            {without("m80"), "m80", "missing"},
		"nothing is given":                   {nil, "m21", "missing"},
		"a row is there twice":               {with(5, good[4]), good[4].Key, "twice"},
		"a row of another conversation":      {with(0, keyed("x", convo.User("?"))), "x", "unexpected"},
		"a row in between":                   {with(16, keyed("x", convo.User("?"))), "x", "unexpected"},
		"a row without a key":                {with(12, convo.User("?")), "", "unexpected"},
		"a text was changed":                 {other("m41", func(m *convo.Message) { m.Parts = []convo.Part{convo.Text("other")} }), "m41", "changed"},
		"a role was changed":                 {other("m41", func(m *convo.Message) { m.Role = convo.RoleAssistant }), "m41", "changed"},
		"a result was changed":               {other("m7", func(m *convo.Message) { *m = keyed("m7", convo.Result(callOf("c4"), "other")) }), "m7", "changed"},
		"a result answers another call":      {other("m7", func(m *convo.Message) { *m = keyed("m7", convo.Result(callOf("x"), short(6))) }), "m7", "changed"},
		"a row became invalid":               {other("m41", func(m *convo.Message) { m.Parts = nil; m.Role = "x" }), "m41", "changed"},
		"another row follows":                {rows: append(slices.Clone(good), keyed("m81", convo.User("81")))},
		"a result follows":                   {append(slices.Clone(good), keyed("m81", convo.Result(callOf("x"), ""))), "m81", "unexpected"},
	} {
		t.Run(name, func(t *testing.T) {
			again, err := convo.Resume(d, rowsOf(tt.rows...), nil)
			if tt.fault == "" {
				require.NoError(t, err)
				assert.Equal(t, "what was", summaryOf(again))
				assert.Equal(t, []convo.ID{6, 7}, again.Snapshot().Pinned())
				return
			}
			var wrong *convo.RowError
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, tt.fault, wrong.Fault, "%v", err)
			assert.Equal(t, tt.key, wrong.Key, "%v", err)
			assert.Contains(t, err.Error(), "convo: row ")
			assert.Nil(t, again)
		})
	}
	_, err = convo.Resume(d, func(yield func(convo.Message, error) bool) { yield(convo.Message{}, failed) }, nil)
	require.ErrorIs(t, err, failed)
	_, err = convo.Resume(nil, nil, nil)
	require.ErrorAs(t, err, new(*convo.ValueError))
	_, err = convo.Resume(new(convo.Decisions), nil, nil)
	require.ErrorAs(t, err, new(*convo.ValueError))
	_, err = convo.Resume(d, rowsOf(good...), &convo.Options{MaxResult: 3})
	require.ErrorAs(t, err, new(*convo.ValueError))
}

func idRange(from, to convo.ID) (ids []convo.ID) {
	for id := from; id <= to; id++ {
		ids = append(ids, id)
	}
	return ids
}

func summaryOf(h *convo.History) string {
	sum, _ := h.Snapshot().Summary()
	return sum.Text
}

// A row that was changed is taken as it is once it is accepted, and what was made after it
// is released.
func TestDecisions_Accept(t *testing.T) {
	talk := []convo.Message{
		keyed("1", convo.User("one")), keyed("2", signed("2")), keyed("3", convo.User("three")), keyed("4", signed("4")),
		keyed("5", convo.Assistant("", callOf("c"))), keyed("6", convo.Result(callOf("c"), "a result")),
	}
	h := historyOf(t, &convo.Options{Roles: convo.Relaxed()}, talk...)
	require.Empty(t, h.Snapshot().Unbound())
	d := decisionsOf(t, h)
	talk[2].Parts = []convo.Part{convo.Text("edited")}
	opts := &convo.Options{Roles: convo.Relaxed()}
	_, err := convo.Resume(d, rowsOf(talk...), opts)
	var wrong *convo.RowError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "3", wrong.Key)
	d.Accept(wrong.Key)
	again, err := convo.Resume(d, rowsOf(talk...), opts)
	require.NoError(t, err)
	e, _ := again.Snapshot().Find(3)
	assert.Equal(t, "edited", e.Message.Text())
	assert.Equal(t, []convo.ID{4}, again.Snapshot().Unbound(), "what was made before it stays bound")

	_, err = h.Apply(h.Snapshot(), convo.Edit{Clear: []convo.Clear{{ID: 6}}})
	if err == nil {
		t.Fatal("the floor was cleared")
	}
}

// A result that was cut is cut again at the same place, and accepting a row that has become
// too short for that keeps it as it is.
func TestResume_Cut(t *testing.T) {
	long := strings.Repeat("line of the file\n", 500)
	talk := []convo.Message{keyed("1", convo.User("1")), keyed("2", convo.Assistant("", callOf("c"))), keyed("3", convo.Result(callOf("c"), long))}
	opts := &convo.Options{MaxResult: 100}
	h := historyOf(t, opts, talk...)
	require.Equal(t, uint64(0), historyOf(t, opts, talk[:2]...).Status().Decisions)
	require.NotZero(t, h.Status().Decisions, "a cut is a decision")
	d := decisionsOf(t, h)
	again, err := convo.Resume(d, rowsOf(talk...), &convo.Options{MaxResult: 70})
	require.NoError(t, err)
	want, got := h.Snapshot(), again.Snapshot()
	for i, e := range want.All() {
		now, _ := got.At(i)
		require.Equal(t, e.Message, now.Message)
		require.Equal(t, e.Missing, now.Missing)
	}
	var read string
	again.Apply(again.Snapshot(), convo.Edit{})
	r := mustRewind(t, again)
	read = r.Text()
	assert.Equal(t, long, read, "the original is the row")

	talk[2] = keyed("3", convo.Result(callOf("c"), "short"))
	_, err = convo.Resume(d, rowsOf(talk...), opts)
	var wrong *convo.RowError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "changed", wrong.Fault)
	d.Accept("3")
	again, err = convo.Resume(d, rowsOf(talk...), opts)
	require.NoError(t, err)
	e, _ := again.Snapshot().Find(3)
	assert.Equal(t, "short", e.Message.Text())
}

// mustRewind applies an edit that drops everything that may go, and returns the original of
// the result with the ID 3.
func mustRewind(t *testing.T, h *convo.History) convo.Message {
	t.Helper()
	mustAppend(t, h, convo.Assistant("done"), convo.User("next"))
	report, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2, 3}})
	require.NoError(t, err)
	for _, e := range report.Originals() {
		if e.ID == 3 {
			return e.Message
		}
	}
	t.Fatal("no original")
	return convo.Message{}
}

// Ordinary steps are no decisions, and everything else is one.
func TestStatus_Decisions(t *testing.T) {
	opts := &convo.Options{Roles: convo.Relaxed(), Limits: convo.Limits{Window: 10_000}}
	h := historyOf(t, opts, keyed("1", convo.User("1")), keyed("2", convo.Assistant("", callOf("a"))))
	require.NoError(t, h.SetSystem(convo.System("guide")))
	require.NoError(t, h.SetEphemeral(convo.User("now")))
	last := h.Status().Decisions
	step := func(name string, decides bool, do func()) {
		t.Helper()
		do()
		now := h.Status().Decisions
		assert.Equal(t, decides, now != last, name)
		assert.GreaterOrEqual(t, now, last, name)
		last = now
	}
	step("a result", false, func() { mustAppend(t, h, keyed("3", convo.Result(callOf("a"), "r"))) })
	step("an answer and usage", false, func() {
		_, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
			return convo.Reply{Messages: []convo.Message{keyed("4", convo.Assistant("4"))}, Usage: convo.Usage{Input: 60, Output: 2}}, nil
		})
		require.NoError(t, err)
	})
	step("the same around it", false, func() {
		require.NoError(t, h.SetSystem(convo.System("guide")))
		require.NoError(t, h.SetEphemeral(convo.User("now")))
	})
	step("a message without a key", true, func() { mustAppend(t, h, convo.User("5")) })
	step("a pin", true, func() { require.NoError(t, h.PinLast()) })
	step("a queued message", true, func() {
		mustAppend(t, h, keyed("6", convo.Assistant("", callOf("b"))))
		require.NoError(t, h.Queue(keyed("7", convo.User("7"))))
	})
	step("its delivery", false, func() { mustAppend(t, h, keyed("8", convo.Result(callOf("b"), "r"))) })
	step("a title", true, func() { require.NoError(t, h.SetMeta("title", "")) })
	step("limits", true, func() { require.NoError(t, h.SetLimits(convo.Limits{Window: 9_000})) })
	step("other ephemeral messages", true, func() { require.NoError(t, h.SetEphemeral(convo.User("later"))) })
	step("an edit", true, func() {
		_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{1}})
		require.NoError(t, err)
	})
	step("a rollback", true, func() { require.NoError(t, h.RewindTo(6)) })
}

// An answer that was under way when the decisions were stored is bound to what was sent.
func TestResume_AnswerUnderWay(t *testing.T) {
	talk := keyedTalk(8, short)
	h := historyOf(t, nil, append(talk, keyed("q", convo.User("q")))...)
	_, _, err := h.Prepare(t.Context())
	require.NoError(t, err)
	_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{1}})
	require.NoError(t, err)
	d := decisionsOf(t, h)
	rows := append(slices.Clone(talk), keyed("q", convo.User("q")), keyed("a", signed("a")))
	again, err := convo.Resume(d, rowsNeeded(d, rows), nil)
	require.NoError(t, err)
	mustAppend(t, h, keyed("a", signed("a")))
	assert.Equal(t, h.Snapshot().Unbound(), again.Snapshot().Unbound())
	assert.Len(t, again.Snapshot().Unbound(), 1)
}

// A request that is made again with more messages is a decision, since the decisions stored
// before bind the answer to the first one.
func TestResume_RequestMadeAgain(t *testing.T) {
	talk := keyedTalk(8, short)
	h := historyOf(t, &convo.Options{Roles: convo.Relaxed()}, append(talk, keyed("q", convo.User("q")))...)
	_, _, err := h.Prepare(t.Context())
	require.NoError(t, err)
	last := h.Status().Decisions
	_, _, err = h.Prepare(t.Context())
	require.NoError(t, err)
	require.Equal(t, last, h.Status().Decisions, "the same request")
	mustAppend(t, h, keyed("r", convo.User("r")))
	require.Equal(t, last, h.Status().Decisions)
	_, _, err = h.Prepare(t.Context())
	require.NoError(t, err)
	require.Greater(t, h.Status().Decisions, last)

	d := decisionsOf(t, h)
	mustAppend(t, h, keyed("a", signed("a")))
	rows := append(slices.Clone(talk), keyed("q", convo.User("q")), keyed("r", convo.User("r")), keyed("a", signed("a")))
	again, err := convo.Resume(d, rowsNeeded(d, rows), nil)
	require.NoError(t, err)
	assert.Empty(t, h.Snapshot().Unbound())
	assert.Empty(t, again.Snapshot().Unbound())
}

// Queued messages stay queued, and those that were delivered since are not there twice.
func TestResume_Queue(t *testing.T) {
	h := historyOf(t, nil, keyed("1", convo.User("1")), keyed("2", convo.Assistant("", callOf("a"))))
	require.NoError(t, h.Queue(keyed("q1", convo.User("q1")), keyed("q2", convo.User("q2"))))
	d := decisionsOf(t, h)
	rows := []convo.Message{
		keyed("1", convo.User("1")), keyed("2", convo.Assistant("", callOf("a"))), keyed("3", convo.Result(callOf("a"), "r")),
		keyed("q1", convo.User("q1")), keyed("q2", convo.User("q2")),
	}
	again, err := convo.Resume(d, rowsOf(rows[:2]...), nil)
	require.NoError(t, err)
	assert.Equal(t, 2, again.Status().Queued)
	mustAppend(t, again, rows[2])
	assert.Equal(t, []string{"1", "2", "3", "q1", "q2"}, keysOf(again))
	again, err = convo.Resume(d, rowsOf(rows...), nil)
	require.NoError(t, err)
	assert.Zero(t, again.Status().Queued)
	assert.Equal(t, []string{"1", "2", "3", "q1", "q2"}, keysOf(again))
}

// The row of a queued message may be given where the user typed it, between a call and its
// results, whenever the decisions were stored.
func TestResume_QueuedRowsGivenEarly(t *testing.T) {
	typed := []convo.Message{
		keyed("1", convo.User("1")),
		keyed("2", convo.Assistant("", callOf("a"), callOf("b"))),
		keyed("q1", convo.User("q1")),
		keyed("3", convo.Result(callOf("a"), "r")),
		keyed("q2", convo.User("q2")),
		keyed("4", convo.Result(callOf("b"), "r")),
		keyed("5", convo.Assistant("5")),
		keyed("6", convo.User("6")),
	}
	order := []string{"1", "2", "3", "4", "q1", "q2", "5", "6"}
	for name, roles := range map[string]convo.RolePolicy{"strict": convo.RolePolicy{}, "relaxed": convo.Relaxed()} {
		opts := &convo.Options{Roles: roles}
		h := historyOf(t, opts)
		stored := [][]byte{}
		decide := func() {
			data, err := h.Decisions()
			require.NoError(t, err)
			stored = append(stored, data)
		}
		decide()
		given := 0
		for _, m := range typed {
			if strings.HasPrefix(m.Key, "q") {
				require.NoError(t, h.Queue(m))
			} else {
				mustAppend(t, h, m)
			}
			given++
			decide()
			for i, data := range stored {
				d, err := convo.ReadDecisions(data)
				require.NoError(t, err)
				again, err := convo.Resume(d, rowsOf(typed[:given]...), &convo.Options{Roles: roles})
				if (given == 3 || given == 5) && i < given {
					continue // the last row is not in the queue of the Decisions, and no result follows it
				}
				require.NoError(t, err, "%s: %d rows, decisions after %d", name, given, i)
				assert.Equal(t, h.Snapshot().Messages(), again.Snapshot().Messages(), "%s: %d rows, decisions after %d", name, given, i)
				assert.Equal(t, h.Status().Queued, again.Status().Queued, "%s: %d rows, decisions after %d", name, given, i)
			}
		}
		assert.Equal(t, order, keysOf(h))
	}
}

// A queued message that waits for an answer stays queued if its row is given, and follows the
// answer where it may not come before it.
func TestResume_QueuedRowsBeforeTheAnswer(t *testing.T) {
	h := historyOf(t, nil, keyed("1", convo.User("1")))
	require.NoError(t, h.Queue(keyed("q1", convo.User("q1")), keyed("q2", convo.User("q2"))))
	d := decisionsOf(t, h)
	typed := []convo.Message{keyed("1", convo.User("1")), keyed("q1", convo.User("q1")), keyed("q2", convo.User("q2")), keyed("2", convo.Assistant("2"))}
	again, err := convo.Resume(d, rowsOf(typed[:3]...), nil)
	require.NoError(t, err)
	assert.Equal(t, 2, again.Status().Queued)
	again, err = convo.Resume(d, rowsOf(typed...), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"1", "2", "q1", "q2"}, keysOf(again))

	// Once it was delivered, Decisions hold its place, and an error says that it is another.
	h = historyOf(t, nil, keyed("1", convo.User("1")))
	require.NoError(t, h.Queue(keyed("q1", convo.User("q1"))))
	mustAppend(t, h, keyed("2", convo.Assistant("", callOf("a"))), keyed("3", convo.Result(callOf("a"), "r")))
	mustAppend(t, h, keyed("4", convo.Assistant("4")))
	require.Equal(t, []string{"1", "2", "3", "q1", "4"}, keysOf(h))
	typed = []convo.Message{
		keyed("1", convo.User("1")), keyed("q1", convo.User("q1")), keyed("2", convo.Assistant("", callOf("a"))),
		keyed("3", convo.Result(callOf("a"), "r")), keyed("4", convo.Assistant("4")),
	}
	_, err = convo.Resume(decisionsOf(t, h), rowsOf(typed...), nil)
	var wrong *convo.RowError
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, "unexpected", wrong.Fault)
	assert.Equal(t, "q1", wrong.Key)
	assert.ErrorContains(t, err, `a message that was queued comes after the results or the answer that it waited for: it was given, but not where it stood, which is after "3"`)

	h = historyOf(t, nil, keyed("1", convo.User("1")))
	require.NoError(t, h.Queue(keyed("q1", convo.User("q1"))))
	mustAppend(t, h, typed[2:4]...)
	_, err = convo.Resume(decisionsOf(t, h), rowsOf(typed[:4]...), nil)
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, "unexpected", wrong.Fault)
	assert.Equal(t, "q1", wrong.Key)
	assert.ErrorContains(t, err, `2 rows stood before it that were not given before it`)
}

// A result that was stored after the row of a message that was typed before it does not matter
// if the view begins with that message.
func TestResume_ViewBeginsWithQueuedRow(t *testing.T) {
	rows := []convo.Message{
		keyed("1", convo.User("1")), keyed("2", convo.Assistant("", callOf("a"), callOf("b"))),
		keyed("q1", convo.User("q1")), keyed("q2", convo.User("q2")), keyed("3", convo.Result(callOf("a"), "r")), keyed("4", convo.Result(callOf("b"), "r")),
		keyed("5", convo.Assistant("5")), keyed("6", convo.User("6")),
	}
	h := historyOf(t, nil, rows[:2]...)
	require.NoError(t, h.Queue(rows[2:4]...))
	mustAppend(t, h, rows[4:6]...)
	early := decisionsOf(t, h)
	mustAppend(t, h, rows[6])
	_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: idRange(1, 4)})
	require.NoError(t, err)
	d := decisionsOf(t, h)
	keys, from := d.Needs()
	require.Empty(t, keys)
	require.Equal(t, "q1", from)
	again, err := convo.Resume(d, rowsNeeded(d, rows[:7]), nil)
	require.NoError(t, err)
	assert.Equal(t, h.Snapshot().Messages(), again.Snapshot().Messages())
	mustAppend(t, h, rows[7])
	again, err = convo.Resume(d, rowsNeeded(d, rows), nil)
	require.NoError(t, err)
	assert.Equal(t, h.Snapshot().Messages(), again.Snapshot().Messages())
	_, err = convo.Resume(early, rowsNeeded(early, rows[:6]), nil)
	require.NoError(t, err)
}

// Nor does it matter if the view ends with that message, because the answer was taken back.
func TestResume_ViewEndsWithQueuedRow(t *testing.T) {
	rows := []convo.Message{
		keyed("1", convo.User("1")), keyed("2", convo.Assistant("", callOf("a"))),
		keyed("q", convo.User("q")), keyed("3", convo.Result(callOf("a"), "r")),
	}
	h := historyOf(t, nil, convo.User("u"), convo.Assistant("a")) // without keys, and so without rows
	mustAppend(t, h, rows[:2]...)
	require.NoError(t, h.Queue(rows[2]))
	mustAppend(t, h, rows[3])
	mustAppend(t, h, keyed("5", convo.Assistant("5")))
	require.Equal(t, []string{"", "", "1", "2", "3", "q", "5"}, keysOf(h))
	ids := idsOf(h.Snapshot())
	apply(t, h, convo.Edit{Drop: ids[2:5]})
	require.NoError(t, h.RewindTo(ids[5]))
	d := decisionsOf(t, h)
	again, err := convo.Resume(d, rowsNeeded(d, rows), nil)
	require.NoError(t, err)
	assert.Equal(t, h.Snapshot().Messages(), again.Snapshot().Messages())
}

// Every row is needed from the calls on, if not all results have rows: that of a queued message
// may stand between them.
func TestResume_QueuedRowBeforeTheFirstRun(t *testing.T) {
	rows := []convo.Message{
		keyed("1", convo.User("1")), keyed("2", convo.Assistant("", callOf("a"), callOf("b"))),
		keyed("q", convo.User("q")), keyed("3", convo.Result(callOf("b"), "r")),
	}
	h := historyOf(t, nil, rows[:2]...)
	mustAppend(t, h, convo.Result(callOf("a"), "r")) // without a key, and so without a row
	require.NoError(t, h.Queue(rows[2]))
	mustAppend(t, h, rows[3])
	require.Equal(t, []string{"1", "2", "", "3", "q"}, keysOf(h))
	d := decisionsOf(t, h)
	again, err := convo.Resume(d, rowsNeeded(d, rows), nil)
	require.NoError(t, err)
	assert.Equal(t, h.Snapshot().Messages(), again.Snapshot().Messages())
}

// Usage stays measured after a restart, once the system text and the tools are set again.
func TestResume_Measured(t *testing.T) {
	surround := func(h *convo.History) {
		require.NoError(t, h.SetSystem(convo.System(strings.Repeat("rule ", 300))))
		require.NoError(t, h.SetTools(convo.Tool{Name: "read", Schema: `{"type":"object"}`}))
		require.NoError(t, h.SetEphemeral(convo.User("now")))
	}
	talk := keyedTalk(9, short)
	h := historyOf(t, nil, talk...)
	require.NoError(t, h.SetModel("a", convo.Limits{}))
	surround(h)
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: h.Tokens().Tokens + 321}))
	want := h.Tokens()
	require.Positive(t, want.Measured)
	again, err := convo.Resume(decisionsOf(t, h), rowsOf(talk...), nil)
	require.NoError(t, err)
	require.NotEqual(t, want, again.Tokens(), "something is missing yet")
	surround(again)
	assert.Equal(t, want, again.Tokens())
	require.NoError(t, again.SetModel("b", convo.Limits{}))
	require.NoError(t, again.SetModel("a", convo.Limits{}))
	assert.Equal(t, want.Upper, again.Tokens().Upper, "also of a model that was left in between")

	again, err = convo.Resume(decisionsOf(t, h), rowsOf(talk...), nil)
	require.NoError(t, err)
	surround(again)
	require.NoError(t, again.SetSystem(convo.System("another")))
	assert.Less(t, again.Tokens().Measured, want.Measured)
}

// Times come from the rows, and what is not known is as old as the decisions.
func TestResume_Times(t *testing.T) {
	talk := keyedTalk(9, short)
	h := historyOf(t, nil, talk[:8]...)
	d, at := decisionsOf(t, h), h.Status().LastAppend
	again, err := convo.Resume(d, rowsOf(talk[:8]...), nil)
	require.NoError(t, err)
	assert.True(t, again.Status().LastAppend.Equal(at))
	was := time.Now().Add(time.Hour).Round(time.Second)
	again, err = convo.Resume(d, rowsOf(talk...), &convo.Options{Time: func(m convo.Message) time.Time {
		if m.Key == "m9" {
			return was
		}
		return time.Time{}
	}})
	require.NoError(t, err)
	assert.True(t, again.Status().LastAppend.Equal(was))
	e, _ := again.Snapshot().At(0)
	assert.True(t, e.Time.IsZero())
}

// Nothing that is not from Decisions is read as if it were.
func TestReadDecisions_Faults(t *testing.T) {
	h := historyOf(t, nil, append(keyedTalk(40, short), convo.User("without a key"))...)
	_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: idRange(5, 8)})
	require.NoError(t, err)
	data, err := h.Decisions()
	require.NoError(t, err)
	require.Contains(t, string(data), `{"version":3,`)
	_, err = convo.ReadDecisions(data)
	require.NoError(t, err)
	_, err = convo.ReadDecisions([]byte(strings.Replace(string(data), `"version":3`, `"version":2`, 1)))
	require.ErrorIs(t, err, convo.ErrVersion)
	require.EqualError(t, err, "convo: snapshot: unknown format version 2 of Decisions, want 3; make a History of the rows with Restore, and store its Decisions")
	snapshot, err := h.Snapshot().MarshalJSON()
	require.NoError(t, err)
	var s convo.Snapshot
	require.Error(t, s.UnmarshalJSON(data), "Decisions are no snapshot")
	for name, bad := range map[string]string{
		"nothing":                    "",
		"no JSON":                    "x",
		"null":                       "null",
		"a snapshot":                 string(snapshot),
		"a later one":                strings.Replace(string(data), `"version":3`, `"version":4`, 1),
		"no version":                 strings.Replace(string(data), `"version":3,`, ``, 1),
		"a negative ID":              strings.Replace(string(data), `"places":[1,`, `"places":[-1,`, 1),
		"a large ID":                 strings.Replace(string(data), `"places":[1,`, `"places":[9007199254740993,`, 1),
		"a large number":             strings.Replace(string(data), `,32]`, `,9007199254740993]`, 1),
		"a key twice":                strings.Replace(string(data), `"m40"`, `"m1"`, 1),
		"no key":                     strings.Replace(string(data), `"m40"`, `""`, 1),
		"a place too few":            strings.Replace(string(data), `,32]`, `]`, 1),
		"a key too many":             strings.Replace(string(data), `"keys":[`, `"keys":["x",`, 1),
		"no sums":                    regexp.MustCompile(`"sums":"[^"]*"`).ReplaceAllString(string(data), `"sums":""`),
		"a sum too many":             strings.Replace(string(data), `"sums":"`, `"sums":"AAAAAAAAAAA`, 1),
		"no sum":                     regexp.MustCompile(`"sums":"[^"]*"`).ReplaceAllString(string(data), `"sums":"x"`),
		"from":                       strings.Replace(string(data), `"from":1`, `"from":7`, 1),
		"a left row in view":         strings.Replace(string(data), `"left":{"id":8,"key":"m8"}`, `"left":{"id":9,"key":"x"}`, 1),
		"a left row's key in view":   strings.Replace(string(data), `"left":{"id":8,"key":"m8"}`, `"left":{"id":8,"key":"m9"}`, 1),
		"a left row without a key":   strings.Replace(string(data), `"left":{"id":8,"key":"m8"}`, `"left":{"id":8}`, 1),
		"a left row without an ID":   strings.Replace(string(data), `"left":{"id":8,"key":"m8"}`, `"left":{"key":"m8"}`, 1),
		"no left row":                strings.Replace(string(data), `"left":{"id":8,"key":"m8"}`, `"left":{}`, 1),
		"a left row that is new":     strings.Replace(string(data), `"left":{"id":8,"key":"m8"}`, `"left":{"id":42,"key":"m8"}`, 1),
		"a left row with a long key": strings.Replace(string(data), `"key":"m8"`, `"key":"`+strings.Repeat("x", 257)+`"`, 1),
		"a store's log":              strings.Replace(string(data), `{"version":3,`, `{"version":3,"log":"x",`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			require.NotEqual(t, string(data), bad)
			d, err := convo.ReadDecisions([]byte(bad))
			require.ErrorAs(t, err, new(*convo.SnapshotError), "%s", data)
			assert.Nil(t, d)
		})
	}
	_, err = historyOf(t, nil, keyed("a", convo.User("1")), keyed("a", convo.Assistant("2"))).Decisions()
	var wrong *convo.RowError
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, "twice", wrong.Fault)
	_, err = new(convo.History).Decisions()
	require.ErrorIs(t, err, convo.ErrClosed)
}

// Rows may be yielded in one Message, whose parts are used again for the next row.
func TestResume_OneBuffer(t *testing.T) {
	talk := keyedTalk(80, short)
	h := historyOf(t, nil, talk[:60]...)
	_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: idRange(9, 12), Clear: []convo.Clear{{ID: 31}}})
	require.NoError(t, err)
	d := decisionsOf(t, h)
	mustAppend(t, h, talk[60:]...)
	var buf []convo.Part
	again, err := convo.Resume(d, func(yield func(convo.Message, error) bool) {
		for m := range rowsNeeded(d, talk) {
			buf = append(buf[:0], m.Parts...)
			m.Parts = buf
			if !yield(m, nil) {
				return
			}
		}
	}, nil)
	require.NoError(t, err)
	assert.Equal(t, h.Snapshot().Messages(), again.Snapshot().Messages())
}

// A key that is no valid UTF-8 is found, as it was appended.
func TestResume_InvalidKeys(t *testing.T) {
	rows := []convo.Message{keyed("k\xff", convo.User("1")), keyed("l\xfe", convo.Assistant("2")), keyed("m\xff", convo.User("3"))}
	h := historyOf(t, nil, rows[:2]...)
	d := decisionsOf(t, h)
	again, err := convo.Resume(d, rowsOf(rows...), nil)
	require.NoError(t, err)
	mustAppend(t, h, rows[2])
	assert.Equal(t, h.Snapshot().Messages(), again.Snapshot().Messages())

	rows[0].Parts = []convo.Part{convo.Text("edited")}
	d.Accept(rows[0].Key)
	_, err = convo.Resume(d, rowsOf(rows...), nil)
	require.NoError(t, err)
}

// What Run and Do return are rows: results that were cut in the view are whole in the Reply.
func TestResume_RepliesAreRows(t *testing.T) {
	long := strings.Repeat("line of the file\n", 500)
	for name, opts := range map[string]*convo.Options{
		"originals":    {MaxResult: 100},
		"no originals": {MaxResult: 100, KeepOriginals: -1},
		"spilled":      {MaxResult: 100, Spill: func(context.Context, convo.ToolResult) (string, error) { return "file 1", nil }},
		"odd spill":    {MaxResult: 100, Spill: func(context.Context, convo.ToolResult) (string, error) { return "file]\n2", nil }},
	} {
		t.Run(name, func(t *testing.T) {
			keys := 0
			opts.Key = func(convo.Message) string { keys++; return fmt.Sprint("k", keys) }
			rows := []convo.Message{keyed("q", convo.User("q"))}
			h := historyOf(t, opts, rows...)
			served := convo.Reply{Messages: []convo.Message{convo.Assistant("", callTo("served", "s")), convo.Result(callTo("served", "s"), long), convo.Assistant("", callTo("read", "a"), callTo("read", "b"))}}
			read := toolThat("read", func(_ context.Context, c convo.ToolCall) (string, error) { return c.ID + long, nil })
			for reply, err := range h.Steps(t.Context(), answers(t, served, says("done")), toolsOf(read)) {
				require.NoError(t, err)
				rows = append(rows, reply.Messages...)
			}
			for _, i := range []int{2, 4, 5} {
				require.Greater(t, len(rows[i].ToolResults()[0].Text()), 8000)
			}
			require.NotContains(t, fmt.Sprint(h.Snapshot().Messages()), long)
			again, err := convo.Resume(decisionsOf(t, h), rowsOf(rows...), opts)
			require.NoError(t, err)
			assert.Equal(t, h.Snapshot().Messages(), again.Snapshot().Messages())
		})
	}
}

// Rows that panic, or go on when they have been stopped, are an error, as is a Tokenizer that panics.
func TestResume_Panics(t *testing.T) {
	talk := keyedTalk(4, short)
	data, err := historyOf(t, nil, talk...).Decisions()
	require.NoError(t, err)
	d, err := convo.ReadDecisions(data)
	require.NoError(t, err)
	for name, rows := range map[string]iter.Seq2[convo.Message, error]{
		"at once": func(func(convo.Message, error) bool) { panic("boom") },
		"later":   func(yield func(convo.Message, error) bool) { yield(talk[0], nil); panic("boom") },
		"at the end": func(yield func(convo.Message, error) bool) {
			for _, m := range talk {
				yield(m, nil)
			}
			panic("boom")
		},
		"goes on": func(yield func(convo.Message, error) bool) {
			for range 3 {
				yield(talk[0], nil) // the second is refused
			}
		},
	} {
		_, err := convo.Resume(d, rows, nil)
		var broken *convo.PanicError
		require.ErrorAs(t, err, &broken, name)
		assert.Equal(t, "the rows given to Resume", broken.In)
	}
	_, err = convo.Resume(d, rowsOf(talk...), &convo.Options{Tokenizer: convo.TokenizerFunc(func(text string) int {
		if text == short(0) {
			panic("boom")
		}
		return len(text)
	})})
	var broken *convo.PanicError
	require.ErrorAs(t, err, &broken)
	assert.Equal(t, "Options.Tokenizer", broken.In)
}

// Whatever bytes are read as Decisions, and whatever rows are given, there is a History or
// an error, and what was resumed has Decisions of its own that resume.
func FuzzResume(f *testing.F) {
	talk := keyedTalk(60, short)
	h, err := convo.New(&convo.Options{Roles: convo.Relaxed()})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := h.Append(talk...); err != nil {
		f.Fatal(err)
	}
	seed := func() {
		data, err := h.Decisions()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, uint16(0), uint16(0))
		f.Add(data, uint16(7), uint16(3))
	}
	seed()
	if _, err := h.Apply(h.Snapshot(), convo.Edit{Drop: idRange(5, 20), Summary: &convo.Summary{Text: "sum"}, Clear: []convo.Clear{{ID: 23}, {ID: 27, Text: "x"}}}); err != nil {
		f.Fatal(err)
	}
	seed()
	f.Fuzz(func(t *testing.T, data []byte, drop, swap uint16) {
		d, err := convo.ReadDecisions(data)
		if err != nil {
			return
		}
		rows := slices.Clone(talk)
		i, k := int(drop)%len(rows), int(swap)%len(rows)
		rows[k], rows[0] = rows[0], rows[k]
		if drop > 0 {
			rows = slices.Delete(rows, i, i+1)
		}
		opts := &convo.Options{Roles: convo.Relaxed()}
		h, err := convo.Resume(d, rowsNeeded(d, rows), opts)
		if err != nil {
			return
		}
		again, err := h.Decisions()
		if err != nil {
			return // a key that is there twice
		}
		next, err := convo.ReadDecisions(again)
		if err != nil {
			t.Fatalf("%v\n%s", err, again)
		}
		if _, err := convo.Resume(next, rowsNeeded(next, rows), opts); err != nil {
			t.Fatalf("%v\n%s\n%s", err, data, again)
		}
	})
}

// edited returns rows with other texts for those with the keys.
func edited(rows []convo.Message, text string, keys ...string) []convo.Message {
	rows = slices.Clone(rows)
	for i := range rows {
		if slices.Contains(keys, rows[i].Key) {
			rows[i].Parts = []convo.Part{convo.Text(text + " " + rows[i].Key)}
		}
	}
	return rows
}

// No changed row passes, however alike it is, and the error names the first row that has
// changed, however many other rows were accepted.
func TestResume_EveryChange(t *testing.T) {
	talk := keyedTalk(40, short)
	h := historyOf(t, nil, talk...)
	users := []string{"m1", "m5", "m9", "m13", "m17", "m21", "m25", "m33"}
	for _, tt := range []struct{ accepted, changed []string }{
		{nil, []string{"m29"}},
		{[]string{"m9"}, []string{"m29"}},
		{[]string{"m29"}, []string{"m9"}},
		{[]string{"m29"}, []string{"m9", "m13"}},
		{nil, []string{"m9", "m13", "m37"}},
		{users[:7], []string{"m29", "m37"}},
		{users, []string{"m29"}},
		{users, []string{"m29", "m37"}},
	} {
		t.Run(fmt.Sprint(len(tt.accepted), " accepted ", len(tt.changed), " changed"), func(t *testing.T) {
			d := decisionsOf(t, h)
			for _, key := range tt.accepted {
				d.Accept(key)
			}
			d.Accept("a key that no row has")
			_, err := convo.Resume(d, rowsOf(edited(talk, "accepted", tt.accepted...)...), nil)
			require.NoError(t, err)
			for i := range long.Or(100, 1000) {
				rows := edited(edited(talk, "accepted", tt.accepted...), fmt.Sprint("other ", i), tt.changed...)
				_, err := convo.Resume(d, rowsOf(rows...), nil)
				var wrong *convo.RowError
				require.ErrorAs(t, err, &wrong)
				require.Equal(t, "changed", wrong.Fault)
				require.Equal(t, tt.changed[0], wrong.Key)
			}
		})
	}
}

// A call that was appended without an ID has the same one when its row is given again.
func TestResume_CallsWithoutIDs(t *testing.T) {
	call := convo.ToolCall{Name: "read", Arguments: "{}"}
	rows := []convo.Message{
		keyed("1", convo.User("Read.")),
		keyed("2", convo.Assistant("", call, call)),
		keyed("3", convo.Result(call, "one")), keyed("4", convo.Result(call, "two")),
		keyed("5", convo.Assistant("Read.", convo.ToolCall{Name: "list"})),
	}
	h := historyOf(t, nil, rows[:2]...)
	early := decisionsOf(t, h)
	mustAppend(t, h, rows[2:4]...)
	mustAppend(t, h, rows[4])
	want := h.Snapshot().Messages()
	ids := map[string]bool{}
	for _, m := range want {
		for _, c := range m.ToolCalls() {
			require.True(t, c.Minted)
			require.Regexp(t, "^call_[A-Z2-7]{16}$", c.ID)
			ids[c.ID] = true
		}
	}
	require.Len(t, ids, 3)
	named := slices.Clone(rows) // as Do and Steps return them
	for i := range named {
		named[i] = keyed(rows[i].Key, want[i])
	}
	for _, d := range []*convo.Decisions{early, decisionsOf(t, h)} {
		for _, list := range [][]convo.Message{rows, named} {
			again, err := convo.Resume(d, rowsOf(list...), nil)
			require.NoError(t, err)
			assert.Equal(t, want, again.Snapshot().Messages())
		}
	}
}

// A row without a key is an error that says where keys come from.
func TestResume_RowsWithoutKeys(t *testing.T) {
	keys := 0
	opts := &convo.Options{Key: func(convo.Message) string { keys++; return fmt.Sprint(keys) }}
	question, answer := keyed("q", convo.User("q")), convo.Assistant("a")
	h := historyOf(t, opts, question)
	reply, err := h.AppendReply(h.Snapshot(), replyOf(answer))
	require.NoError(t, err)
	_, err = convo.Resume(decisionsOf(t, h), rowsOf(question, answer), opts)
	require.ErrorAs(t, err, new(*convo.RowError))
	require.ErrorContains(t, err, "set Message.Key before Append, also of answers and results, or store the messages of the Reply of AppendReply, Do or Steps")
	assert.Equal(t, "1", reply.Messages[0].Key)
	again, err := convo.Resume(decisionsOf(t, h), rowsOf(question, reply.Messages[0]), opts)
	require.NoError(t, err)
	assert.Equal(t, h.Snapshot().Messages(), again.Snapshot().Messages())
}

// What is appended again is bound to what it was made of: the system text, the tools and
// the ephemeral messages count, though they are set afterwards.
func TestResume_Bound(t *testing.T) {
	surround := func(h *convo.History) {
		require.NoError(t, h.SetSystem(convo.System("guide")))
		require.NoError(t, h.SetTools(convo.Tool{Name: "read"}))
		require.NoError(t, h.SetEphemeral(convo.User("now")))
	}
	h := historyOf(t, nil)
	surround(h)
	d := decisionsOf(t, h)
	rows := []convo.Message{keyed("1", convo.User("1")), keyed("2", signed("2")), keyed("3", convo.User("3")), keyed("4", signed("4", callOf("c")))}
	for _, m := range rows {
		mustAppend(t, h, m)
	}
	again, err := convo.Resume(d, rowsOf(rows...), nil)
	require.NoError(t, err)
	assert.Len(t, again.Snapshot().Unbound(), 2, "nothing is set yet")
	surround(again)
	assert.Equal(t, h.Snapshot().Unbound(), again.Snapshot().Unbound())
	assert.Equal(t, []convo.ID{3}, h.Snapshot().Unbound(), "the ephemeral messages have moved")
	later, err := convo.Resume(decisionsOf(t, h), rowsOf(rows...), nil)
	require.NoError(t, err)
	surround(later)
	assert.Equal(t, h.Snapshot().Unbound(), later.Snapshot().Unbound())
	require.NoError(t, later.SetTools(convo.Tool{Name: "write"}))
	assert.Len(t, later.Snapshot().Unbound(), 2)
}

// A row may hold a result as Append was given it, without the ID or the name of its call, also
// where the result is cleared: the marker has the name.
func TestResume_ResultsWithoutNames(t *testing.T) {
	text := func(s string) []convo.Part { return []convo.Part{convo.Text(s + strings.Repeat(" and so on", 20))} }
	tool := func(key string, results ...convo.ToolResult) convo.Message {
		m := convo.Message{Role: convo.RoleTool, Key: key}
		for _, r := range results {
			m.Parts = append(m.Parts, r)
		}
		return m
	}
	calls := func(key string) convo.Message {
		m := convo.Assistant("", convo.ToolCall{ID: "a", Name: "read", Arguments: "{}"}, convo.ToolCall{ID: "b", Name: "read", Arguments: "{}"}, convo.ToolCall{ID: "c", Name: "list", Arguments: "{}"})
		m.Key = key
		return m
	}
	for name, results := range map[string][]convo.Message{
		"no IDs, in one message":    {tool("r", convo.ToolResult{Parts: text("1")}, convo.ToolResult{Parts: text("2")}, convo.ToolResult{Parts: text("3")})},
		"no IDs, in three messages": {tool("r", convo.ToolResult{Parts: text("1")}), tool("s", convo.ToolResult{Parts: text("2")}), tool("t", convo.ToolResult{Parts: text("3")})},
		"names alone":               {tool("r", convo.ToolResult{Name: "list", Parts: text("1")}, convo.ToolResult{Name: "read", Parts: text("2")}, convo.ToolResult{Name: "read", Parts: text("3")})},
		"IDs alone":                 {tool("r", convo.ToolResult{CallID: "c", Parts: text("1")}, convo.ToolResult{CallID: "a", Parts: text("2")}, convo.ToolResult{CallID: "b", Parts: text("3")})},
		"one ID":                    {tool("r", convo.ToolResult{Parts: text("1")}, convo.ToolResult{CallID: "a", Parts: text("2")}, convo.ToolResult{Parts: text("3")})},
	} {
		t.Run(name, func(t *testing.T) {
			question := convo.User("Read.")
			question.Key = "q"
			rows := append([]convo.Message{question, calls("a")}, results...)
			answer := convo.Assistant("Read.")
			answer.Key = "end"
			next := convo.User("Thanks.")
			next.Key = "next"
			rows = append(rows, answer, next)

			h := historyOf(t, nil, question, calls("a"))
			mustAppend(t, h, results...)
			mustAppend(t, h, answer, next)
			for _, cleared := range []bool{false, true} {
				if cleared {
					_, err := h.Apply(h.Snapshot(), convo.Edit{Clear: []convo.Clear{{ID: 3}}})
					require.NoError(t, err)
				}
				d := decisionsOf(t, h)
				for range 2 { // the Decisions may be used again
					again, err := convo.Resume(d, rowsNeeded(d, rows), nil)
					require.NoError(t, err)
					assert.Equal(t, h.Snapshot().Messages(), again.Snapshot().Messages())
					assert.Equal(t, h.Tokens(), again.Tokens())
				}
			}
		})
	}
}

// rowsLeft returns the rows of an application that has deleted those that were taken back. The
// i-th is of the entry i+1.
func rowsLeft(h *convo.History, talk []convo.Message) (rows []convo.Message) {
	for i, m := range talk {
		if !h.Snapshot().TakenBack(convo.ID(i + 1)) {
			rows = append(rows, m)
		}
	}
	return rows
}

// requireResumes fails the test unless Decisions of h, of what is opened where it is saved, and
// of its Snapshot make the same of rows, also with new rows after these.
func requireResumes(t *testing.T, h *convo.History, rows []convo.Message) (again *convo.History) {
	t.Helper()
	opts := &convo.Options{Roles: convo.Relaxed()}
	s := new(shelf)
	require.NoError(t, h.Attach(t.Context(), s, "k"))
	require.NoError(t, h.Save(t.Context()))
	opened, err := convo.Open(t.Context(), s, "k", opts)
	require.NoError(t, err)
	data, err := h.Snapshot().MarshalJSON()
	require.NoError(t, err)
	var at convo.Snapshot
	require.NoError(t, at.UnmarshalJSON(data))
	restored, err := convo.Restore(&at, opts)
	require.NoError(t, err)
	want := h.Snapshot().Messages()
	more := []convo.Message{keyed("new 1", convo.User("Is this new?")), keyed("new 2", convo.Assistant("It is."))}
	for name, from := range map[string]*convo.History{"opened": opened, "restored": restored, "": h} {
		d := decisionsOf(t, from)
		again, err = convo.Resume(d, rowsNeeded(d, rows), opts)
		require.NoError(t, err, name)
		require.Equal(t, want, again.Snapshot().Messages(), name)
		later, err := convo.Resume(d, rowsNeeded(d, slices.Concat(rows, more)), opts)
		require.NoError(t, err, name)
		require.Equal(t, slices.Concat(want, more), later.Snapshot().Messages(), name)
	}
	d := decisionsOf(t, h)
	again, err = convo.Resume(d, rowsNeeded(d, rows), opts)
	require.NoError(t, err)
	return again
}

// Rows that have left the view do not come back, whatever was taken back since, and rows that
// came later do.
func TestResume_RowsThatLeft(t *testing.T) {
	talk := keyedTalk(12, short)
	drop := func(t *testing.T, h *convo.History, from, to convo.ID) convo.Report {
		return apply(t, h, convo.Edit{Drop: idRange(from, to)})
	}
	for name, edit := range map[string]func(t *testing.T, h *convo.History) (undo func()){
		"some":  func(t *testing.T, h *convo.History) func() { drop(t, h, 4, 8); return nil },
		"all":   func(t *testing.T, h *convo.History) func() { drop(t, h, 1, 12); return nil },
		"twice": func(t *testing.T, h *convo.History) func() { drop(t, h, 5, 9); drop(t, h, 1, 3); return nil },
		"pinned": func(t *testing.T, h *convo.History) func() {
			require.NoError(t, h.Pin(1, 8))
			e, err := (convo.SlidingWindow{KeepLast: 3}).Compact(t.Context(), h.Snapshot(), convo.Goal{})
			require.NoError(t, err)
			apply(t, h, e)
			return nil
		},
		"summarised": func(t *testing.T, h *convo.History) func() {
			apply(t, h, convo.Edit{Drop: idRange(1, 5), Summary: &convo.Summary{Text: "what was"}})
			drop(t, h, 8, 12)
			return nil
		},
		"undone": func(t *testing.T, h *convo.History) func() {
			drop(t, h, 4, 5)
			r := drop(t, h, 8, 12)
			return func() { require.NoError(t, h.Undo(r)) }
		},
	} {
		for k := range convo.ID(13) {
			if k%4 == 2 {
				continue // a call without its result
			}
			t.Run(fmt.Sprint(name, " ", k), func(t *testing.T) {
				for _, undoFirst := range []bool{false, true} {
					h := historyOf(t, &convo.Options{Roles: convo.Relaxed()}, talk...)
					mustAppend(t, h, convo.User("without a key"), convo.Assistant("nor this"), convo.User("nor this"))
					undo := edit(t, h)
					requireResumes(t, h, talk)
					if undo != nil && undoFirst {
						undo()
						requireResumes(t, h, talk)
					}
					if err := h.RewindTo(k); err != nil {
						require.ErrorAs(t, err, new(*convo.ValueError), "the summary stands for it")
						return
					}
					again := requireResumes(t, h, rowsLeft(h, talk))
					if undo != nil && !undoFirst {
						undo()
						again = requireResumes(t, h, rowsLeft(h, talk))
					}
					// What was resumed knows the newest row that has left, and what it shows.
					for id := k; id > 0; id-- {
						if _, shown := h.Snapshot().Find(id); shown || h.Snapshot().TakenBack(id) {
							continue
						}
						if h.RewindTo(id) == nil {
							require.NoError(t, again.RewindTo(id))
							requireResumes(t, again, rowsLeft(h, talk))
						}
						break
					}
				}
			})
		}
	}
}

// If the view shows no row, what is new follows the newest row that has left. The key of that
// is enough, as for an application that has deleted it.
func TestResume_NoRowInView(t *testing.T) {
	talk := keyedTalk(8, short)
	h := historyOf(t, nil, talk...)
	mustAppend(t, h, convo.User("without a key"), convo.Assistant("nor this"))
	apply(t, h, convo.Edit{Drop: idRange(1, 8)})
	d := decisionsOf(t, h)
	keys, from := d.Needs()
	assert.Empty(t, keys)
	assert.Equal(t, "m8", from)

	next := keyed("m9", convo.User("9"))
	for name, tt := range map[string]struct {
		rows  []convo.Message
		key   string
		fault string
	}{
		"as they are":             {rows: []convo.Message{talk[7], next}},
		"its key alone":           {rows: []convo.Message{{Key: "m8"}, next}},
		"after what stood before": {rows: []convo.Message{convo.System("guide"), talk[7], next}},
		"it is missing":           {[]convo.Message{next}, "m9", "unexpected"},
		"nothing is given":        {nil, "m8", "missing"},
		"an older row":            {[]convo.Message{talk[6], talk[7], next}, "m7", "unexpected"},
		"it is there twice":       {[]convo.Message{talk[7], next, talk[7]}, "m8", "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			again, err := convo.Resume(d, rowsOf(tt.rows...), nil)
			if tt.fault == "" {
				require.NoError(t, err)
				assert.Equal(t, []string{"", "", "m9"}, keysOf(again))
				return
			}
			var wrong *convo.RowError
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, tt.fault, wrong.Fault, "%v", err)
			assert.Equal(t, tt.key, wrong.Key, "%v", err)
		})
	}

	// Decisions that were stored without it are read, and take all rows as before.
	data, err := h.Decisions()
	require.NoError(t, err)
	old := regexp.MustCompile(`,"left":\{[^}]*\}`).ReplaceAll(data, nil)
	require.NotEqual(t, data, old)
	d, err = convo.ReadDecisions(old)
	require.NoError(t, err)
	_, from = d.Needs()
	assert.Empty(t, from)
	again, err := convo.Resume(d, rowsNeeded(d, talk), nil)
	require.NoError(t, err)
	assert.Equal(t, 10, again.Len())
}

// Where the view ends before rows that have left, these are not new, and one of them marks
// where new ones begin.
func TestResume_RowMissingThatLeft(t *testing.T) {
	talk := keyedTalk(12, short)
	h := historyOf(t, nil, talk...)
	mustAppend(t, h, convo.User("without a key"))
	apply(t, h, convo.Edit{Drop: idRange(4, 9)})
	require.NoError(t, h.RewindTo(8))
	d := decisionsOf(t, h)
	rows := append(rowsLeft(h, talk), keyed("new", convo.User("new")))
	again, err := convo.Resume(d, rowsNeeded(d, rows), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"m1", "m2", "m3", "new"}, keysOf(again))
	again, err = convo.Resume(d, rowsOf(rows[:3]...), nil)
	require.NoError(t, err, "nothing is new")
	assert.Equal(t, []string{"m1", "m2", "m3"}, keysOf(again))
	_, err = convo.Resume(d, rowsOf(slices.Delete(slices.Clone(rows), 7, 8)...), nil)
	var wrong *convo.RowError
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, "missing", wrong.Fault)
	assert.Equal(t, "m8", wrong.Key)
	assert.ErrorContains(t, err, "a Message with its Key alone may stand for it")
}

// A row that has left and was appended again, under the key that it had, is in the view.
func TestResume_AppendedAgain(t *testing.T) {
	talk := keyedTalk(8, short)
	h := historyOf(t, nil, talk...)
	mustAppend(t, h, convo.User("without a key"), convo.Assistant("nor this"))
	apply(t, h, convo.Edit{Drop: idRange(4, 8)})
	mustAppend(t, h, talk[4])
	d := decisionsOf(t, h)
	again, err := convo.Resume(d, rowsOf(slices.Concat(talk[:3], talk[4:5])...), nil)
	require.NoError(t, err)
	assert.Equal(t, h.Snapshot().Messages(), again.Snapshot().Messages())
}

// The row of a queued message may stand before results that have left with it.
func TestResume_QueuedRowThatLeft(t *testing.T) {
	rows := []convo.Message{
		keyed("1", convo.User("1")), keyed("2", convo.Assistant("", callOf("a"))),
		keyed("q", convo.User("q")), keyed("3", convo.Result(callOf("a"), "r")),
	}
	h := historyOf(t, nil, convo.User("u"), convo.Assistant("a")) // without keys, and so without rows
	mustAppend(t, h, rows[:2]...)
	require.NoError(t, h.Queue(rows[2]))
	mustAppend(t, h, rows[3])
	mustAppend(t, h, keyed("5", convo.Assistant("5")))
	mustAppend(t, h, convo.User("x"), convo.Assistant("y"))
	ids := idsOf(h.Snapshot())
	apply(t, h, convo.Edit{Drop: ids[2:7]})
	require.NoError(t, h.RewindTo(ids[5]))
	d := decisionsOf(t, h)
	_, from := d.Needs()
	require.Equal(t, "q", from)
	again, err := convo.Resume(d, rowsNeeded(d, rows), nil)
	require.NoError(t, err)
	assert.Equal(t, h.Snapshot().Messages(), again.Snapshot().Messages())
	again, err = convo.Resume(d, rowsNeeded(d, append(rows, keyed("6", convo.User("6")))), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"", "", "6"}, keysOf(again))
}

// Decisions that go back to a row that has left know it, if it is the newest of them.
func TestDecisions_RewindToRowThatLeft(t *testing.T) {
	talk := keyedTalk(80, short)
	h := historyOf(t, nil, talk...)
	require.NoError(t, h.Pin(5))
	apply(t, h, convo.Edit{Drop: slices.Concat(idRange(1, 4), idRange(6, 20))})
	for last, want := range map[convo.ID][]string{20: {"m5", "new"}, 21: {"m5", "m21", "new"}, 5: {"m5", "new"}, 0: {"new"}} {
		d := decisionsOf(t, h)
		require.NoError(t, d.RewindTo(last))
		again, err := convo.Resume(d, rowsNeeded(d, append(slices.Clone(talk[:last]), keyed("new", convo.User("new")))), &convo.Options{Roles: convo.Relaxed()})
		require.NoError(t, err, last)
		assert.Equal(t, want, keysOf(again), last)
	}
}

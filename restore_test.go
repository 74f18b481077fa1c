package convo_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
)

var toolC = convo.ToolCall{ID: "c", Name: "f", Arguments: `{}`}

// reload is a History made of the JSON of another.
func reload(t *testing.T, h *convo.History, opts *convo.Options) *convo.History {
	t.Helper()
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	var s convo.Snapshot
	require.NoError(t, json.Unmarshal(data, &s))
	again, err := convo.Restore(&s, opts)
	require.NoError(t, err)
	return again
}

func TestRestore_KeepsEverything(t *testing.T) {
	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = h.Append(convo.System("s"), convo.User("u"), convo.Assistant("", toolC), convo.Result(toolC, "r"), convo.Assistant("a"),
		convo.User("v"), convo.Assistant("b"))
	require.NoError(t, err)
	require.NoError(t, h.Pin(2))
	require.NoError(t, h.SetModel("m", convo.Limits{}))
	_, err = h.SplicePrefix(h.Snapshot(), 5, "sum")
	require.NoError(t, err)
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 1000}))
	_, err = h.Rewind(1) // the newest IDs are given and gone
	require.NoError(t, err)
	require.NoError(t, h.SetEphemeral(convo.User("not saved")))

	again := reload(t, h, nil)
	assert.Equal(t, printMessages(h.Snapshot())[:2], printMessages(again.Snapshot())[:2], "key and summary")
	assert.NotContains(t, strings.Join(printMessages(again.Snapshot()), "|"), "not saved")
	assert.Equal(t, []convo.ID{2}, again.Snapshot().Pinned())
	want, _ := h.Snapshot().Summary()
	got, _ := again.Snapshot().Summary()
	assert.True(t, want.Time.Equal(got.Time))
	got.Time = want.Time
	want.Usage, got.Usage = convo.Usage{}, convo.Usage{}
	assert.Equal(t, want, got)
	require.NoError(t, h.SetEphemeral())
	assert.Equal(t, h.Tokens().Tokens, again.Tokens().Tokens, "calibration")
	id, err := again.Append(convo.Assistant("x"))
	require.NoError(t, err)
	assert.Equal(t, convo.ID(8), id, "7 was given before")
}

func printMessages(s *convo.Snapshot) []string {
	var out []string
	for _, m := range s.Messages() {
		out = append(out, printMessage(m))
	}
	return out
}

func TestRestore_ForkIsIndependent(t *testing.T) {
	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = h.Append(convo.User("u"))
	require.NoError(t, err)
	fork, err := convo.Restore(h.Snapshot(), nil)
	require.NoError(t, err)
	_, err = h.Append(convo.Assistant("in h"))
	require.NoError(t, err)
	mine := printOf(h.Snapshot())
	_, err = fork.Append(convo.Assistant("in the fork"))
	require.NoError(t, err)
	assert.Equal(t, mine, printOf(h.Snapshot()))
	assert.ErrorIs(t, h.Rollback(fork.Snapshot()), convo.ErrStale)
}

func TestRestore_OfNothing(t *testing.T) {
	_, err := convo.Restore(nil, nil)
	wrong, ok := errors.AsType[*convo.SnapshotError](err)
	require.True(t, ok)
	assert.Equal(t, -1, wrong.Index)
	h, err := convo.Restore(new(convo.Snapshot), nil)
	require.NoError(t, err)
	_, err = h.Append(convo.User("u"))
	assert.NoError(t, err)
}

// Each call that Repair answers is named by a SnapshotError of its own.
func TestRestore_NamesEachOpenCall(t *testing.T) {
	second := convo.ToolCall{ID: "d", Name: "g"}
	s := convo.NewSnapshot([]convo.Message{convo.User("u"), convo.Assistant("", toolC, second, convo.ToolCall{ID: "e", Name: "h"}), convo.Result(second, "r"), convo.User("v")})
	var named []string
	_, err := convo.Restore(s, &convo.Options{Repair: func(f *convo.SnapshotError) {
		if pair, ok := errors.AsType[*convo.PairError](f.Err); ok {
			assert.ErrorIs(t, f.Err, convo.ErrOpenCalls)
			assert.Equal(t, 3, pair.Index)
			assert.ErrorContains(t, f, "convo: snapshot entry -1 (ID 0): answered with an error result: ")
			named = append(named, fmt.Sprint(f.NewID, " ", pair.CallID, " ", pair.Name))
			return
		}
		assert.ErrorContains(t, f, ": new ID")
	}})
	require.NoError(t, err)
	assert.Equal(t, []string{"5 " + toolC.ID + " " + toolC.Name, "6 e h"}, named)
}

// Restore returns an error that says where each fault is. With Repair the fault
// is mended and reported, and the result loads without Repair.
func TestRestore_Faults(t *testing.T) {
	twice := convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{toolC, toolC}}
	for _, tt := range []struct {
		name  string
		msgs  []convo.Message
		index int
		is    error
		want  []string // roles afterwards
	}{
		{"open before the newest", []convo.Message{convo.User("u"), convo.Assistant("", toolC), convo.User("v")}, 2, convo.ErrOpenCalls, []string{"user", "assistant", "tool", "user"}},
		{"half answered", []convo.Message{convo.User("u"), convo.Assistant("", toolC, convo.ToolCall{ID: "d", Name: "g"}), convo.Result(toolC, "r"), convo.Assistant("a")}, 3, convo.ErrOpenCalls, []string{"user", "assistant", "tool", "tool", "assistant"}},
		{"orphan first", []convo.Message{convo.Result(toolC, "r"), convo.User("u")}, 0, convo.ErrNoOpenCall, []string{"user"}},
		{"orphan", []convo.Message{convo.User("u"), convo.Result(toolC, "r"), convo.Assistant("a")}, 1, convo.ErrNoOpenCall, []string{"user", "assistant"}},
		{"second result", []convo.Message{convo.User("u"), convo.Assistant("", toolC), convo.Result(toolC, "1"), convo.Result(toolC, "2")}, 3, convo.ErrAnswered, []string{"user", "assistant", "tool"}},
		{"call ids twice", []convo.Message{convo.User("u"), twice, convo.Result(toolC, "1"), convo.Result(toolC, "2")}, 1, convo.ErrDuplicateCall, []string{"user", "assistant", "tool", "tool"}},
		{"system between a call and its result", []convo.Message{convo.User("u"), convo.Assistant("", toolC), convo.System("s"), convo.Result(toolC, "r"), convo.Assistant("a")}, 2, nil, []string{"user", "assistant", "tool", "system", "assistant"}},
		{"unknown role", []convo.Message{convo.User("u"), {Role: "robot", Parts: []convo.Part{convo.Text("t")}}, convo.Assistant("a")}, 1, nil, []string{"user", "assistant"}},
		{"nil part", []convo.Message{convo.User("u", nil), convo.Assistant("a")}, 0, nil, []string{"user", "assistant"}},
		{"empty", []convo.Message{convo.User("u"), convo.Assistant(""), convo.Assistant("a")}, 1, nil, []string{"user", "assistant"}},
		{"role order", []convo.Message{convo.User("u"), convo.User("v"), convo.Assistant("a")}, 1, nil, []string{"user", "user", "assistant"}},
		{"assistant first", []convo.Message{convo.Assistant("a"), convo.User("u")}, 0, nil, []string{"assistant", "user"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := convo.NewSnapshot(tt.msgs)
			_, err := convo.Restore(s, nil)
			wrong, ok := errors.AsType[*convo.SnapshotError](err)
			require.True(t, ok, "%v", err)
			assert.Equal(t, tt.index, wrong.Index)
			assert.Equal(t, convo.ID(tt.index+1), wrong.ID)
			if tt.is != nil {
				assert.ErrorIs(t, err, tt.is)
			}

			var told []*convo.SnapshotError
			h, err := convo.Restore(s, &convo.Options{Repair: func(f *convo.SnapshotError) { told = append(told, f) }})
			require.NoError(t, err)
			require.NotEmpty(t, told)
			var roles []string
			ids := map[convo.ID]bool{}
			for _, e := range h.Snapshot().All() {
				roles = append(roles, string(e.Message.Role))
				ids[e.ID] = true
			}
			assert.Equal(t, tt.want, roles)
			checkPairs(t, h.Snapshot())
			for _, f := range told {
				if f.NewID != 0 {
					assert.True(t, ids[f.NewID], "not in the view: %+v", f)
					assert.True(t, f.NewID == f.ID || f.NewID > convo.ID(len(tt.msgs)), "an ID given before: %+v", f)
				}
				assert.NotEmpty(t, f.Mended)
			}
			reload(t, h, nil)
		})
	}
}

// A History that was repaired can be saved, and loaded without Repair.
func TestRestore_RepairedIsSaved(t *testing.T) {
	for _, tt := range []struct {
		name  string
		msgs  []convo.Message
		ids   []convo.ID
		turns []int
	}{
		{"a system message behind one that is dropped", []convo.Message{convo.User(""), convo.System("s"), convo.User("u")},
			[]convo.ID{2, 3}, []int{0, 1}},
		{"where IDs move", []convo.Message{convo.User("u"), convo.Assistant("", toolC), convo.User("v"), convo.Assistant("a"), convo.User(""), convo.Assistant("b")},
			[]convo.ID{1, 2, 7, 8, 9, 10}, []int{1, 1, 1, 2, 2, 2}},
		{"behind results that were put in", []convo.Message{convo.User("u"), convo.Assistant("", toolC), convo.Assistant(""), convo.User("v")},
			[]convo.ID{1, 2, 5, 6}, []int{1, 1, 1, 2}},
		{"an orphan result before an answer", []convo.Message{convo.User("u"), convo.Assistant("a"), convo.Result(toolC, "r"), convo.Assistant("b")},
			[]convo.ID{1, 2, 4}, []int{1, 1, 1}},
		{"a system message between a call and its result", []convo.Message{convo.User("u"), convo.Assistant("", toolC), convo.System("s"), convo.Result(toolC, "r"), convo.User("v")},
			[]convo.ID{1, 2, 4, 6, 7}, []int{1, 1, 1, 1, 2}},
		{"an answer that comes first then", []convo.Message{convo.Result(toolC, "r"), convo.Assistant("a")},
			[]convo.ID{2}, []int{0}},
		{"a result behind a message that is dropped", []convo.Message{convo.User("u"), convo.Assistant("", toolC), convo.User(""), convo.Result(toolC, "r"), convo.User("v")},
			[]convo.ID{1, 2, 4, 5}, []int{1, 1, 1, 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, err := convo.Restore(convo.NewSnapshot(tt.msgs), &convo.Options{Repair: func(*convo.SnapshotError) {}})
			require.NoError(t, err)
			var turns []int
			for _, e := range h.Snapshot().All() {
				turns = append(turns, e.Turn)
			}
			assert.Equal(t, tt.ids, idsOf(h.Snapshot()))
			assert.Equal(t, tt.turns, turns)
			checkSaved(t, h, nil)
		})
	}
}

// Calls that were open when a conversation was saved stay open. They can be answered, or
// taken back with their turn.
func TestRestore_OpenCalls(t *testing.T) {
	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = h.Append(convo.User("u"), convo.Assistant("a"), convo.User("v"), convo.Assistant("", toolC, convo.ToolCall{ID: "d", Name: "g"}), convo.Result(toolC, "r"))
	require.NoError(t, err)
	for _, tt := range []struct {
		len, open int
		settle    func(*convo.History) error
	}{
		{5, 1, func(*convo.History) error { return nil }},
		{6, 0, func(h *convo.History) error { _, err := h.AnswerOpenCalls(""); return err }},
		{2, 0, func(h *convo.History) error { _, err := h.Rewind(1); return err }},
	} {
		for _, again := range []*convo.History{reload(t, h, nil), forkOf(t, h, nil)} {
			require.NoError(t, tt.settle(again))
			assert.Equal(t, [2]int{tt.len, tt.open}, [2]int{again.Len(), again.Status().OpenCalls})
			checkPairs(t, again.Snapshot())
			if tt.open > 0 {
				_, err = again.Append(convo.Result(convo.ToolCall{ID: "d"}, "late"))
				assert.NoError(t, err)
			}
		}
	}
	assert.Equal(t, 5, h.Len())
}

// A view that was compacted before it was saved is not compacted again by
// Compact until something is appended.
func TestRestore_CompactAfterAnEdit(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit convo.Edit
		want convo.Outcome
	}{
		{"not edited", convo.Edit{}, convo.OutcomeApplied},
		{"entries dropped", convo.Edit{Drop: []convo.ID{3, 4}}, convo.OutcomeNotNeeded},
		{"a result cleared", convo.Edit{Clear: []convo.Clear{{ID: 4}}}, convo.OutcomeNotNeeded},
		{"a summary put in", convo.Edit{Summary: &convo.Summary{Text: "s"}}, convo.OutcomeNotNeeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opts := windowOf(0, convo.Truncate{})
			h := toolTurn(t, opts, 20)
			if _, err := h.Apply(h.Snapshot(), tt.edit); tt.name == "not edited" {
				require.ErrorIs(t, err, convo.ErrNoGain)
			} else {
				require.NoError(t, err)
			}
			for _, again := range []*convo.History{reload(t, h, opts), forkOf(t, h, opts)} {
				r, err := again.Compact(t.Context(), "")
				require.NoError(t, err)
				assert.Equal(t, tt.want, r.Outcome)
				mustAppend(t, again, convo.User("and"), convo.Assistant("so"))
				r, err = again.Compact(t.Context(), "")
				require.NoError(t, err)
				assert.Equal(t, convo.OutcomeApplied, r.Outcome)
			}
		})
	}
}

// An imported conversation has never been compacted.
func TestRestore_CompactAfterAnImport(t *testing.T) {
	msgs := toolTurn(t, nil, 20).Snapshot().Messages()
	h, err := convo.Restore(convo.NewSnapshot(msgs), windowOf(0, convo.Truncate{}))
	require.NoError(t, err)
	r, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
}

// What a History held is accepted under every policy, by whatever way it comes back. A list
// made by hand is not.
func TestRestore_PolicyIsForListsMadeByHand(t *testing.T) {
	relaxed := &convo.Options{Roles: convo.Relaxed()}
	never := &convo.Options{Roles: convo.RolePolicy{UserAfter: []convo.Role{}, AssistantAfter: []convo.Role{}}}
	for _, tt := range []struct {
		name string
		msgs []convo.Message
		want any
		text string
	}{
		{"users one after the other", []convo.Message{convo.User("u"), convo.User("v")}, new(*convo.RoleError), "Options.Roles"},
		{"an assistant first", []convo.Message{convo.Assistant("a"), convo.User("u")}, new(*convo.RoleError), "Options.Roles"},
		{"an empty user message", []convo.Message{convo.User("u"), convo.Assistant("a"), convo.User("")}, new(*convo.MessageError), "KeepEmpty"},
		{"an empty assistant message", []convo.Message{convo.User("u"), convo.Assistant("")}, new(*convo.MessageError), "KeepEmpty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := historyOf(t, relaxed, tt.msgs...)
			s, want := h.Snapshot(), h.Snapshot().Messages()
			for _, opts := range []*convo.Options{nil, relaxed, never, {Tokenizer: byBytes}, {Repair: func(f *convo.SnapshotError) { assert.Fail(t, "nothing is wrong", "%+v", f) }}} {
				again, err := convo.Restore(s, opts)
				require.NoError(t, err)
				assert.Equal(t, want, again.Snapshot().Messages())
				assert.Equal(t, want, reload(t, h, opts).Snapshot().Messages())
				checkSaved(t, h, opts)
			}
			_, err := convo.Restore(convo.NewSnapshot(tt.msgs), nil)
			require.ErrorAs(t, err, new(*convo.SnapshotError))
			require.ErrorAs(t, err, tt.want)
			assert.ErrorContains(t, err, tt.text)
			mended, err := convo.Restore(convo.NewSnapshot(tt.msgs), &convo.Options{Repair: func(*convo.SnapshotError) {}})
			require.NoError(t, err)
			reload(t, mended, nil)
		})
	}
}

// A call that was renamed, because its id was used twice in its message, has
// that name in its own exchange only.
func TestRestore_RenamedCallsEndWithTheirExchange(t *testing.T) {
	twice := convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{toolC, toolC}}
	var told []*convo.SnapshotError
	h, err := convo.Restore(convo.NewSnapshot([]convo.Message{
		convo.User("u"),
		twice, convo.Result(toolC, "1"), // the other one is still open
		twice, convo.Result(toolC, "2"), convo.Result(toolC, "3"),
		convo.Assistant("a"),
	}), &convo.Options{Repair: func(f *convo.SnapshotError) { told = append(told, f) }})
	require.NoError(t, err)
	assert.Equal(t, []string{"u", "", "1", "no result", "", "2", "3", "a"}, textsOf(h.Snapshot()))
	checkPairs(t, h.Snapshot())
	for _, f := range told {
		assert.NotEqual(t, "orphan result dropped", f.Mended)
	}
}

func forkOf(t *testing.T, h *convo.History, opts *convo.Options) *convo.History {
	t.Helper()
	f, err := convo.Restore(h.Snapshot(), opts)
	require.NoError(t, err)
	return f
}

func TestRestore_RepairMayPanic(t *testing.T) {
	s := convo.NewSnapshot([]convo.Message{convo.Assistant("a")})
	_, err := convo.Restore(s, &convo.Options{Repair: func(*convo.SnapshotError) { panic("no") }})
	p, ok := errors.AsType[*convo.PanicError](err)
	require.True(t, ok)
	assert.Equal(t, "Options.Repair", p.In)
}

// messagesOf returns messages of all kinds, valid and invalid, and options.
func messagesOf(data []byte) (msgs []convo.Message, roles convo.RolePolicy) {
	next := func() int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b)
	}
	roles = []convo.RolePolicy{convo.RolePolicy{}, convo.Relaxed(), {AssistantAfter: []convo.Role{convo.RoleUser}}}[next()%3]
	for len(data) > 0 {
		b := next()
		c1 := convo.ToolCall{ID: string(rune('a' + b%3)), Name: "n"}
		c2 := convo.ToolCall{ID: string(rune('a' + b/3%3)), Name: "n"}
		switch b % 17 {
		case 0, 1, 2:
			msgs = append(msgs, convo.User("u"))
		case 3:
			msgs = append(msgs, convo.User(""))
		case 4, 5:
			msgs = append(msgs, convo.Assistant("a"))
		case 6:
			msgs = append(msgs, convo.Assistant(""))
		case 7, 8:
			msgs = append(msgs, convo.Assistant("", c1))
		case 9:
			msgs = append(msgs, convo.Assistant("t", c1, c2))
		case 10, 11, 12:
			msgs = append(msgs, convo.Result(c1, "r"))
		case 13:
			two := convo.Result(c1, "r")
			two.Parts = append(two.Parts, convo.Result(c2, "").Parts...)
			msgs = append(msgs, two)
		case 14:
			msgs = append(msgs, convo.System("s"))
		case 15:
			msgs = append(msgs, convo.System(""))
		case 16:
			c1.Arguments = "{"
			msgs = append(msgs, convo.Assistant("", c1), convo.Message{Role: convo.RoleTool}, convo.User("u", nil))
		}
	}
	return msgs, roles
}

// checkImport checks that messages which Repair has mended can be saved and
// loaded, also after more was appended.
func checkImport(t *testing.T, data []byte) {
	msgs, roles := messagesOf(data)
	s := convo.NewSnapshot(msgs)
	opts := &convo.Options{Roles: roles}
	if h, err := convo.Restore(s, opts); err == nil {
		checkSaved(t, h, opts)
	}
	opts.Repair = func(*convo.SnapshotError) {}
	h, err := convo.Restore(s, opts)
	require.NoError(t, err)
	checkPairs(t, h.Snapshot())
	checkSaved(t, h, opts)
	at := h.Snapshot()
	_, err = h.AnswerOpenCalls("late")
	require.NoError(t, err)
	if _, err := h.Append(convo.User("next"), convo.Assistant("answer")); err != nil {
		_, _ = h.Append(convo.Assistant("answer"))
	}
	if n := at.Len(); n > 0 {
		e, _ := at.At(n / 2)
		require.NoError(t, h.Pin(e.ID))
	}
	_, err = h.SplicePrefix(h.Snapshot(), at.Len()*2/3, "sum")
	require.NoError(t, err)
	checkSaved(t, h, opts)
	require.NoError(t, h.Rollback(at))
	checkSaved(t, h, opts)
	_, err = h.Rewind(1)
	require.NoError(t, err)
	checkSaved(t, h, opts)
}

func TestImport_IsSaved(t *testing.T) {
	for seed := range uint64(long.Or(150, 500)) {
		rng := rand.New(rand.NewPCG(seed, 5))
		data := make([]byte, 2+rng.IntN(14))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		checkImport(t, data)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzImport_IsSaved(f *testing.F) {
	f.Add([]byte{0, 0, 3, 14, 0})
	f.Add([]byte{0, 0, 0, 7, 0, 4, 3, 4})
	f.Add([]byte{1, 1, 0, 9, 10, 3, 10, 0, 16, 14})
	f.Fuzz(func(t *testing.T, data []byte) { checkImport(t, data[:min(len(data), 200)]) })
}

func checkRestored(t *testing.T, h *convo.History) {
	checkPairs(t, h.Snapshot())
	total := 0
	for x := range h.Snapshot().Exchanges() {
		total += x.Tokens
	}
	if sum, ok := h.Snapshot().Summary(); ok {
		total += sum.Tokens
	}
	require.Equal(t, h.Snapshot().Tokens(), total)
	if h.Status().OpenCalls > 0 {
		_, err := h.AnswerOpenCalls("late")
		require.NoError(t, err)
	}
	if _, err := h.Append(convo.User("next")); err != nil {
		_, err = h.Append(convo.Assistant("answer"))
		require.NoError(t, err)
	}
	checkPairs(t, h.Snapshot())
}

// The author of each message is saved with it.
func TestRestore_KeepsAuthors(t *testing.T) {
	say := func(role convo.Role, who string) convo.Message {
		return convo.Message{Role: role, Author: who, Parts: []convo.Part{convo.Text("hello")}}
	}
	h := historyOf(t, nil, say(convo.RoleUser, "Ada"), say(convo.RoleAssistant, "guest"))
	again := reload(t, h, nil)
	assert.Equal(t, h.Snapshot().Messages(), again.Snapshot().Messages())
	for i, want := range []string{"Ada", "guest"} {
		e, _ := again.Snapshot().At(i)
		assert.Equal(t, want, e.Message.Author)
	}
}

// What is wrong with one part is no reason to touch another.
func TestRestore_RepairKeepsGoodParts(t *testing.T) {
	c := convo.ToolCall{ID: "c", Name: "f", Arguments: `{"x": 1.0}`}
	h, err := convo.Restore(convo.NewSnapshot([]convo.Message{
		convo.User("u"), {Role: convo.RoleAssistant, Parts: []convo.Part{convo.Text("t"), nil, c, convo.ToolCall{ID: "d", Name: "f", Arguments: "{"}}},
		convo.Result(c, "r"), convo.Result(convo.ToolCall{ID: "d"}, "s"),
	}), &convo.Options{Repair: func(*convo.SnapshotError) {}})
	require.NoError(t, err)
	e, _ := h.Snapshot().At(1)
	assert.Equal(t, []convo.Part{convo.Text("t"), c, convo.ToolCall{ID: "d", Name: "f", Arguments: "{"}}, e.Message.Parts)
}

func TestRestore_FaultyOptions(t *testing.T) {
	for _, s := range []*convo.Snapshot{new(convo.Snapshot), tour(t, nil).Snapshot()} {
		h, err := convo.Restore(s, &convo.Options{MaxResult: 1})
		var value *convo.ValueError
		require.ErrorAs(t, err, &value)
		assert.Equal(t, "Options.MaxResult", value.Name)
		assert.Nil(t, h)
	}
}

// A system message that is put after results is another entry there. In a snapshot that a
// History made, it comes between a call and its result only if its JSON was changed.
func TestRestore_MovedSystemMessageGetsAnID(t *testing.T) {
	var told []*convo.SnapshotError
	c := callOf("c")
	h := historyOf(t, nil, convo.User("u"), convo.System("s"), convo.Assistant("", c), convo.Result(c, "r"))
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	note, call := `{"role":"system","parts":[{"type":"text","text":"s"}]}`, `{"role":"assistant","parts":[{"type":"tool_call","id":"c","name":"tool","arguments":"{}"}]}`
	s := new(convo.Snapshot)
	require.NoError(t, json.Unmarshal([]byte(strings.NewReplacer(note, call, call, note).Replace(string(data))), s))
	h, err = convo.Restore(s,
		&convo.Options{Repair: func(f *convo.SnapshotError) { told = append(told, f) }})
	require.NoError(t, err)
	require.NotEmpty(t, told)
	assert.EqualValues(t, 3, told[0].ID)
	assert.Greater(t, told[0].NewID, convo.ID(3))
	assert.Equal(t, told[0].NewID, idsOf(h.Snapshot())[3])
	checkSaved(t, h, nil)
}

package convo_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
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
	require.NoError(t, h.SetModel("m"))
	_, err = h.SplicePrefix(h.Snapshot(), 5, "sum")
	require.NoError(t, err)
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 1000}))
	_, err = h.Rewind(1) // the newest IDs are given and gone
	require.NoError(t, err)
	require.NoError(t, h.SetEphemeral(convo.User("not saved")))

	again := reload(t, h, nil)
	assert.Equal(t, printMessages(h.Snapshot())[:2], printMessages(again.Snapshot())[:2], "key and summary")
	assert.NotContains(t, strings.Join(printMessages(again.Snapshot()), "|"), "not saved")
	assert.Equal(t, []convo.ID{2}, again.Pinned())
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

// Each fault is an error that says where; with Repair it is mended and told,
// and what comes out loads without Repair.
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
		{"system further on", []convo.Message{convo.User("u"), convo.System("s"), convo.Assistant("a")}, 1, nil, []string{"system", "user", "assistant"}},
		{"arguments", []convo.Message{convo.User("u"), convo.Assistant("", convo.ToolCall{ID: "c", Name: "f", Arguments: "{"}), convo.Result(toolC, "r")}, 1, nil, []string{"user", "assistant", "tool"}},
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

			var told []convo.Fault
			h, err := convo.Restore(s, &convo.Options{Repair: func(f convo.Fault) { told = append(told, f) }})
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
					assert.True(t, f.NewID == f.ID || f.NewID > convo.ID(len(tt.msgs)), "an ID given before: %+v", f)
				}
				assert.NotEmpty(t, f.Mended)
			}
			reload(t, h, nil)
		})
	}
}

// Role order is not checked where a reduction has left a gap, nor behind
// system entries that were replaced.
func TestRestore_RoleOrderOnlyBetweenDirectNeighbours(t *testing.T) {
	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = h.Append(convo.User("1"), convo.Assistant("2"), convo.User("3"))
	require.NoError(t, err)
	require.NoError(t, h.SetSystem(convo.System("4")))
	_, err = h.Append(convo.Assistant("5"), convo.User("6"), convo.Assistant("7"), convo.User("8"))
	require.NoError(t, err)
	require.NoError(t, h.Pin(6))
	_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{1, 2, 3, 7}})
	require.NoError(t, err)
	again := reload(t, h, nil) // system 4, assistant 5, user 6, user 8
	assert.Equal(t, 4, again.Len())
	_, err = convo.Restore(h.Snapshot(), nil)
	assert.NoError(t, err)
}

func TestRestore_OnLoad(t *testing.T) {
	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = h.Append(convo.User("u"), convo.Assistant("a"), convo.User("v"), convo.Assistant("", toolC, convo.ToolCall{ID: "d", Name: "g"}), convo.Result(toolC, "r"))
	require.NoError(t, err)
	for way, want := range map[convo.OnLoad][2]int{convo.OnLoadKeep: {5, 1}, convo.OnLoadClose: {6, 0}, convo.OnLoadDrop: {2, 0}} {
		for _, again := range []*convo.History{reload(t, h, &convo.Options{OnLoad: way}), forkOf(t, h, &convo.Options{OnLoad: way})} {
			assert.Equal(t, want, [2]int{again.Len(), again.Status().OpenCalls}, "%v", way)
			checkPairs(t, again.Snapshot())
			if way == convo.OnLoadKeep {
				_, err = again.Append(convo.Result(convo.ToolCall{ID: "d"}, "late"))
				assert.NoError(t, err)
			}
		}
	}
	assert.Equal(t, 5, h.Len())
}

func forkOf(t *testing.T, h *convo.History, opts *convo.Options) *convo.History {
	t.Helper()
	f, err := convo.Restore(h.Snapshot(), opts)
	require.NoError(t, err)
	return f
}

func TestRestore_RepairMayPanic(t *testing.T) {
	s := convo.NewSnapshot([]convo.Message{convo.Assistant("a")})
	_, err := convo.Restore(s, &convo.Options{Repair: func(convo.Fault) { panic("no") }})
	p, ok := errors.AsType[*convo.PanicError](err)
	require.True(t, ok)
	assert.Equal(t, "Options.Repair", p.In)
}

// Each check of the format has a case, and a failed decode leaves the snapshot
// empty.
func TestSnapshotJSON_Refuses(t *testing.T) {
	user := `{"role":"user","parts":[{"type":"text","text":"u"}]}`
	with := func(rest string) string {
		return `{"version":1,"key":"abcdefgh","last_id":9,"turn":3,` + rest + `}`
	}
	one := with(`"entries":[{"id":2,"turn":1,"message":` + user + `}]`)
	require.NoError(t, json.Unmarshal([]byte(one), new(convo.Snapshot)))
	for name, data := range map[string]string{
		"key":                 `{"version":1,"key":"<\"quote","last_id":9}`,
		"short key":           `{"version":1,"key":"abc","last_id":9}`,
		"last_id":             `{"version":1,"key":"abcdefgh","last_id":-1}`,
		"last_id too large":   `{"version":1,"key":"abcdefgh","last_id":9007199254740993}`,
		"touched after turn":  with(`"touched_turn":4`),
		"appended":            with(`"appended":-1`),
		"unknown field":       with(`"extra":1`),
		"ID beyond last":      with(`"entries":[{"id":10,"turn":1,"message":` + user + `}]`),
		"ID 0":                with(`"entries":[{"id":0,"turn":1,"message":` + user + `}]`),
		"no message":          with(`"entries":[{"id":1,"turn":1}]`),
		"IDs twice":           with(`"entries":[{"id":2,"turn":1,"message":` + user + `},{"id":2,"turn":1,"message":` + user + `}]`),
		"system among others": with(`"entries":[{"id":2,"message":{"role":"system"}}]`),
		"other among system":  with(`"system":[{"id":2,"message":` + user + `}]`),
		"one ID in both":      with(`"system":[{"id":2,"message":{"role":"system"}}],"entries":[{"id":2,"turn":1,"message":` + user + `}]`),
		"turn beyond":         with(`"entries":[{"id":2,"turn":4,"message":` + user + `}]`),
		"user without a turn": with(`"entries":[{"id":2,"message":` + user + `}]`),
		"turns descend":       with(`"entries":[{"id":2,"turn":2,"message":` + user + `},{"id":3,"turn":1,"message":` + user + `}]`),
		"pin of nothing":      with(`"pins":[1],"entries":[{"id":2,"turn":1,"message":` + user + `}]`),
		"pins unsorted":       with(`"pins":[2,1]`),
		"empty summary":       with(`"summary":{"text":""}`),
		"covers the future":   with(`"summary":{"text":"s","covers":[{"first":1,"last":10}]}`),
		"covers backwards":    with(`"summary":{"text":"s","covers":[{"first":3,"last":2}]}`),
		"calibration":         with(`"calibration":[{"model":"m","overhead":-1,"ratio":1}]`),
		"ratio":               with(`"calibration":[{"model":"m","overhead":0,"ratio":7}]`),
		"deep":                strings.Repeat("[", 100_000),
		"deep inside":         with(`"entries":` + strings.Repeat(`[`, 100_000)),
		"a long list of {}":   with(`"entries":[` + strings.Repeat(`{},`, 1_000_000) + `{}]`),
		"no JSON":             `{`,
	} {
		var s convo.Snapshot
		err := json.Unmarshal([]byte(data), &s)
		if assert.Error(t, err, name) && json.Valid([]byte(data)) {
			_, ok := errors.AsType[*convo.SnapshotError](err)
			assert.True(t, ok, "%s: %T %v", name, err, err)
		}
		assert.Zero(t, s.Len(), name)
	}
	err := json.Unmarshal([]byte(`{"version":2,"entries":"of another shape"}`), new(convo.Snapshot))
	assert.ErrorIs(t, err, convo.ErrVersion, "the version is read first")
}

func TestSnapshotJSON_DecodesOnlyIntoEmpty(t *testing.T) {
	h, err := convo.New(nil)
	require.NoError(t, err)
	s := h.Snapshot()
	data, err := json.Marshal(s)
	require.NoError(t, err)
	_, ok := errors.AsType[*convo.SnapshotError](json.Unmarshal(data, s))
	assert.True(t, ok)
}

// A snapshot that nobody has checked is safe to read and to plan with.
func TestNewSnapshot_IsSafeToRead(t *testing.T) {
	text := convo.Text("t")
	s := convo.NewSnapshot([]convo.Message{
		convo.User("u"), convo.Assistant("", toolC),
		{Role: convo.RoleTool, Parts: []convo.Part{text, convo.ToolResult{CallID: "c"}, &text, nil}},
		{Role: "robot", Parts: []convo.Part{foreignPart{text}}}, convo.System("s"), convo.User("v"),
		convo.Assistant("", toolC),
	})
	_ = printOf(s)
	next, err := s.With(convo.Edit{Clear: []convo.Clear{{ID: 3}}})
	require.NoError(t, err)
	_ = printOf(next)
	open := false
	for x := range s.Exchanges() {
		open = x.Open
	}
	assert.True(t, open, "the newest exchange")
	h, err := convo.Restore(s, &convo.Options{Repair: func(convo.Fault) {}})
	require.NoError(t, err)
	checkPairs(t, h.Snapshot())
	assert.Equal(t, 1, h.Status().OpenCalls)
	reload(t, h, nil)
}

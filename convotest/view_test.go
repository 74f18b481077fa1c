package convotest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

// The built-in conversations hold what rules can be broken on, and their floor
// is what the package says it is.
func TestViews(t *testing.T) {
	views, err := convotest.Views()
	require.NoError(t, err)
	require.Len(t, views, 17)
	require.Zero(t, views["empty"].Len())
	has := make(map[string]bool)
	for name, s := range views {
		require.NoError(t, convotest.LeftFault(s, s), name)
		floor := convotest.Floor(s)
		seen := make(map[string]bool)
		for x := range s.Exchanges() {
			first, _ := s.Find(x.First)
			for _, id := range x.IDs() {
				require.Equal(t, x.Floor, floor[id], "%s, entry %d", name, id)
			}
			calls := first.Message.ToolCalls()
			for _, c := range calls {
				has["reused id"] = has["reused id"] || seen[c.ID]
				seen[c.ID] = true
			}
			has["open call"] = has["open call"] || x.Open
			has["parallel calls"] = has["parallel calls"] || len(calls) > 1
			has["pinned tool round"] = has["pinned tool round"] || first.Pinned && len(calls) > 0
			has["system behind"] = has["system behind"] || first.Message.Role == convo.RoleSystem && x.First > 20
		}
		for _, e := range s.All() {
			for _, r := range e.Message.ToolResults() {
				has["empty result"] = has["empty result"] || len(r.Parts) == 0
				has["error result"] = has["error result"] || r.IsError
				has["cleared result"] = has["cleared result"] || r.Cleared
			}
		}
		_, ok := s.Summary()
		has["summary"] = has["summary"] || ok
		has["ephemeral"] = has["ephemeral"] || name == "ephemeral messages" && len(s.Messages()) == s.Len()+1
	}
	for what, ok := range has {
		require.True(t, ok, what)
	}
}

func TestLeftFault_Order(t *testing.T) {
	const rule = "strategy: leaves a conversation that is out of order "
	a, b := convo.ToolCall{ID: "a", Name: "t"}, convo.ToolCall{ID: "b", Name: "t"}
	for _, tt := range []struct {
		name string
		msgs []convo.Message
		want string
	}{
		{"nothing", nil, ""},
		{"open at the end", []convo.Message{convo.User("x"), convo.Assistant("", a, b), convo.Result(b, "")}, ""},
		{"reused", []convo.Message{convo.Assistant("", a), convo.Result(a, ""), convo.Assistant("", a), convo.Result(a, "")}, ""},
		{"system behind", []convo.Message{convo.User("x"), convo.System("s")}, rule + "(message 1 is a system message behind others)"},
		{"orphan", []convo.Message{convo.User("x"), convo.Result(a, "")}, rule + "(message 1 has a result for no open call)"},
		{"second result", []convo.Message{convo.Assistant("", a), convo.Result(a, ""), convo.Result(a, "")}, rule + "(message 2 has a result for no open call)"},
		{"between", []convo.Message{convo.Assistant("", a), convo.User("x"), convo.Result(a, "")}, rule + "(message 1 stands between calls and their results)"},
	} {
		requireFault(t, convotest.LeftFault(&convo.Snapshot{}, convo.NewSnapshot(tt.msgs)), tt.want, tt.name)
	}
}

func TestLeftFault_Floor(t *testing.T) {
	const rule = "strategy: takes something of the floor "
	list := func(last ...convo.Message) *convo.Snapshot {
		return convo.NewSnapshot(append([]convo.Message{convo.System("s"), convo.User("old"), convo.Assistant("older")}, last...))
	}
	before := list(convo.User("new"))
	for _, tt := range []struct {
		name  string
		after *convo.Snapshot
		want  string
	}{
		{"the same", list(convo.User("new")), ""},
		{"gone", list(), rule + "(entry 4, the newest exchange, is gone)"},
		{"changed", list(convo.User("news")), rule + "(entry 4, the newest exchange, has changed)"},
		{"system", convo.NewSnapshot([]convo.Message{convo.System("t"), convo.User("x"), convo.User("x"), convo.User("new")}), rule + "(entry 1, a system entry, has changed)"},
	} {
		requireFault(t, convotest.LeftFault(before, tt.after), tt.want, tt.name)
	}
}

// requireFault wants an error with the text want, none when that is empty.
func requireFault(t *testing.T, err error, want, name string) {
	t.Helper()
	if want == "" {
		require.NoError(t, err, name)
		return
	}
	require.ErrorContains(t, err, want, name)
}

// No strategy can make a History break these; the kit would say so.
func TestCompactFault(t *testing.T) {
	for _, tt := range []struct {
		name string
		f    func(h *convo.History) (convo.Report, error)
		want string // empty: nothing is wrong
	}{
		{"nothing", func(*convo.History) (convo.Report, error) { return convo.Report{Fits: true}, nil }, ""},
		{"failed", func(*convo.History) (convo.Report, error) {
			return convo.Report{Outcome: convo.Failed}, errors.New("no")
		}, ""},
		{"outcome", func(*convo.History) (convo.Report, error) { return convo.Report{Outcome: 9, Fits: true}, nil }, "ends with an outcome that is none"},
		{"fits", func(*convo.History) (convo.Report, error) { return convo.Report{Outcome: convo.Applied}, nil }, "leaves a request that is too long, without an error"},
		{"changed", func(h *convo.History) (convo.Report, error) {
			_, err := h.SplicePrefix(h.Snapshot(), 2, "")
			return convo.Report{Outcome: convo.Failed, Fits: true}, err
		}, "changes the conversation although nothing was applied"},
		{"floor", func(h *convo.History) (convo.Report, error) {
			_, err := h.Rewind(1)
			return convo.Report{Outcome: convo.Applied, Fits: true}, err
		}, "takes something of the floor"},
		{"ephemeral", func(h *convo.History) (convo.Report, error) {
			return convo.Report{Outcome: convo.Applied, Fits: true}, h.SetEphemeral()
		}, "takes something of the floor (the ephemeral message is gone)"},
	} {
		h, err := convo.New(nil)
		require.NoError(t, err)
		_, err = h.Append(convo.User("old"), convo.Assistant("older"), convo.User("new"))
		require.NoError(t, err)
		require.NoError(t, h.SetEphemeral(convo.User("Recalled: the user lives by the river.")))
		err = convotest.CompactFault(h, func() (convo.Report, error) { return tt.f(h) })
		requireFault(t, err, tt.want, tt.name)
	}
}

// recorded is a testing.TB that keeps what it is told.
type recorded struct {
	testing.TB
	told []string
}

func (r *recorded) Helper() {}

func (r *recorded) Error(args ...any) { r.told = append(r.told, args[0].(error).Error()) }

// Each rule that is broken is a failure of its own, and is named once.
func TestTestStrategy(t *testing.T) {
	var r recorded
	convotest.TestStrategy(&r, convo.Truncate{})
	convotest.TestSummarizer(&r, convo.Extract{})
	require.Empty(t, r.told)

	convotest.TestStrategy(&r, each(isRole(convo.RoleUser), drop))
	require.Len(t, r.told, 3)
	for i, want := range []string{"the newest exchange", "a pinned exchange", "a user message of the newest turn"} {
		require.Contains(t, strings.Join(r.told, "\n"), "drops "+want, i)
	}

	r.told = nil
	convotest.TestStrategy(&r, nil)
	convotest.TestSummarizer(&r, nil)
	require.Equal(t, []string{"strategy: is nil", "summarizer: is nil"}, r.told)
}

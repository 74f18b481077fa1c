package convotest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

// The built-in conversations cover everything that the rules are about, and the
// checks determine the same floor as package convo.
func TestViews_CoverEveryRule(t *testing.T) {
	views, err := convotest.Views()
	require.NoError(t, err)
	require.Len(t, views, 20)
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
				has["newest error"] = has["newest error"] || r.IsError && floor[e.ID] && !e.Pinned
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

func TestLeftFault_ReportsBrokenOrder(t *testing.T) {
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
		{"a note", []convo.Message{convo.User("x"), convo.System("s")}, ""},
		{"orphan", []convo.Message{convo.User("x"), convo.Result(a, "")}, rule + "(message 1 has a result that answers no open call)"},
		{"second result", []convo.Message{convo.Assistant("", a), convo.Result(a, ""), convo.Result(a, "")}, rule + "(message 2 has a result that answers no open call)"},
		{"between", []convo.Message{convo.Assistant("", a), convo.User("x"), convo.Result(a, "")}, rule + "(message 1 is between calls and their results)"},
	} {
		requireFault(t, convotest.LeftFault(&convo.Snapshot{}, convo.NewSnapshot(tt.msgs)), tt.want, tt.name)
	}
}

func TestLeftFault_ReportsMissingFloor(t *testing.T) {
	const rule = "strategy: removes or changes something of the floor "
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
		{"gone", list(), rule + "(entry 4, the newest exchange, is missing)"},
		{"changed", list(convo.User("news")), rule + "(entry 4, the newest exchange, has changed)"},
		{"system", convo.NewSnapshot([]convo.Message{convo.System("t"), convo.User("x"), convo.User("x"), convo.User("new")}), rule + "(entry 1, a system entry, has changed)"},
	} {
		requireFault(t, convotest.LeftFault(before, tt.after), tt.want, tt.name)
	}
}

// requireFault requires an error that contains want, or none if want is empty.
func requireFault(t *testing.T, err error, want, name string) {
	t.Helper()
	if want == "" {
		require.NoError(t, err, name)
		return
	}
	require.ErrorContains(t, err, want, name)
}

// A History does not let a strategy break these rules. The checks would notice.
func TestCompactFault_ReportsABrokenHistory(t *testing.T) {
	for _, tt := range []struct {
		name string
		f    func(h *convo.History) (convo.Report, error)
		want string // empty: no rule is broken
	}{
		{"nothing", func(*convo.History) (convo.Report, error) { return convo.Report{Fits: true}, nil }, ""},
		{"failed", func(*convo.History) (convo.Report, error) {
			return convo.Report{Outcome: convo.OutcomeFailed}, errors.New("no")
		}, ""},
		{"outcome", func(*convo.History) (convo.Report, error) { return convo.Report{Outcome: 9, Fits: true}, nil }, "ends with an unknown outcome"},
		{"fits", func(*convo.History) (convo.Report, error) { return convo.Report{Outcome: convo.OutcomeApplied}, nil }, "leaves a request that is too long, without an error"},
		{"changed", func(h *convo.History) (convo.Report, error) {
			_, err := h.SplicePrefix(h.Snapshot(), 2, "")
			return convo.Report{Outcome: convo.OutcomeFailed, Fits: true}, err
		}, "changes the conversation although no edit was applied"},
		{"floor", func(h *convo.History) (convo.Report, error) {
			_, err := h.Rewind(1)
			return convo.Report{Outcome: convo.OutcomeApplied, Fits: true}, err
		}, "removes or changes something of the floor"},
		{"ephemeral", func(h *convo.History) (convo.Report, error) {
			return convo.Report{Outcome: convo.OutcomeApplied, Fits: true}, h.SetEphemeral()
		}, "removes or changes something of the floor (the ephemeral message is missing)"},
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

// recorded is a testing.TB that records the arguments of Error.
type recorded struct {
	testing.TB
	told []string
}

func (r *recorded) Helper() {}

func (r *recorded) Error(args ...any) { r.told = append(r.told, args[0].(error).Error()) }

// Each broken rule is one failure of the test, and is named once.
func TestTestStrategy_FailsOncePerRule(t *testing.T) {
	var r recorded
	convotest.TestStrategy(&r, convo.Truncate{})
	convotest.TestSummarizer(&r, convo.Extract{})
	require.Empty(t, r.told)

	convotest.TestStrategy(&r, each(isRole(convo.RoleUser), drop))
	require.Len(t, r.told, 4)
	for i, want := range []string{"the newest exchange", "a pinned exchange", "a user message of the newest turn", "a user message before such a round"} {
		require.Contains(t, strings.Join(r.told, "\n"), "drops "+want, i)
	}

	r.told = nil
	convotest.TestStrategy(&r, nil)
	convotest.TestSummarizer(&r, nil)
	require.Equal(t, []string{"strategy: is nil; pass the strategy to check", "summarizer: is nil; pass the summarizer to check"}, r.told)
}

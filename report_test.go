package convo_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReport_ToldOnce(t *testing.T) {
	var told []convo.Report
	var out bytes.Buffer
	opts := windowOf(500, convo.Chain(convo.Summarize{With: canned("short"), Window: -1}, convo.Truncate{}))
	opts.OnCompaction = func(r convo.Report) { told = append(told, r) }
	opts.Logger = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h := toolTurn(t, opts, 20)
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	require.Len(t, told, 1)
	assert.Equal(t, r, told[0])
	assert.Equal(t, convo.Usage{Input: 100, Output: 10}, r.Usage)
	assert.NotEmpty(t, r.Summarised)
	assert.Empty(t, r.Dropped)
	assert.Contains(t, out.String(), "level=INFO msg=\"convo: compaction applied\" reason=high strategy=chain")
	assert.Positive(t, r.Duration)

	requireNoFailure(t)(h.CompactIfNeeded(t.Context()))
	assert.Len(t, told, 1, "what is not needed is only returned")

	mustAppend(t, h, convo.User(strings.Repeat("x", 1000)))
	out.Reset()
	_, err = h.CompactIfNeeded(t.Context())
	require.Error(t, err)
	require.Len(t, told, 2)
	assert.Equal(t, convo.OutcomeFailed, told[1].Outcome)
	assert.Contains(t, out.String(), "level=WARN")
}

func TestReport_PrefixKept(t *testing.T) {
	h := toolTurn(t, windowOf(0, convo.ClearToolResults{KeepLast: 3}), 20)
	sent := h.Snapshot()
	require.NoError(t, h.RecordUsage(sent, convo.Usage{Input: sent.Tokens()}))
	require.NoError(t, h.Pin(4, 6, 8))
	r, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.InDelta(t, float64(5+8+3*106+8)/float64(sent.Tokens()), r.PrefixKept, 0.0001, "up to the first result cleared")
}

// PrefixKept is 1 and Unread is 0 in every report of a compaction or an edit that was
// not applied.
func TestReport_NotApplied(t *testing.T) {
	work := &convo.Work{Calls: 1, Unread: 17}
	answers := func(e convo.Edit, err error) convo.CompactionStrategy {
		e.Work = work
		return convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { return e, err })
	}
	compact := func(_ *testing.T, h *convo.History) (convo.Report, error) { return h.Compact(context.Background(), "") }
	var h *convo.History
	late := convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
		e := convo.Edit{Drop: idsOf(s)[2:4]}
		_, err := h.Apply(h.Snapshot(), e) // somebody else drops the same meanwhile
		e.Work = work
		return e, err
	})
	for name, tt := range map[string]struct {
		strategy convo.CompactionStrategy
		report   func(*testing.T, *convo.History) (convo.Report, error)
		want     convo.Outcome
	}{
		"not needed":    {answers(convo.Edit{}, nil), func(t *testing.T, h *convo.History) (convo.Report, error) { return h.CompactIfNeeded(t.Context()) }, convo.OutcomeNotNeeded},
		"no background": {answers(convo.Edit{}, nil), func(t *testing.T, h *convo.History) (convo.Report, error) { return h.Wait(t.Context()) }, convo.OutcomeNotNeeded},
		"declined":      {answers(convo.Edit{}, convo.ErrNoGain), compact, convo.OutcomeDeclined},
		"zero edit":     {answers(convo.Edit{}, nil), compact, convo.OutcomeDeclined},
		"failed":        {answers(convo.Edit{}, errors.New("down")), compact, convo.OutcomeFailed},
		"wrong edit":    {answers(convo.Edit{Drop: []convo.ID{3}}, nil), compact, convo.OutcomeFailed},
		"refused edit":  {answers(convo.Edit{Drop: []convo.ID{3, 4}, Summary: &convo.Summary{Text: strings.Repeat("long", 100)}}, nil), compact, convo.OutcomeFailed},
		"stale":         {late, compact, convo.OutcomeStale},
		"panic":         {convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { panic("boom") }), compact, convo.OutcomeFailed},
		"ended ctx": {answers(convo.Edit{}, nil), func(t *testing.T, h *convo.History) (convo.Report, error) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return h.Compact(ctx, "")
		}, convo.OutcomeFailed},
		"Apply of nothing": {nil, func(_ *testing.T, h *convo.History) (convo.Report, error) {
			return h.Apply(h.Snapshot(), convo.Edit{Work: work})
		}, convo.OutcomeDeclined},
		"Apply that fails": {nil, func(_ *testing.T, h *convo.History) (convo.Report, error) {
			return h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{3}, Work: work})
		}, convo.OutcomeFailed},
		"Apply to another": {nil, func(t *testing.T, h *convo.History) (convo.Report, error) {
			return h.Apply(historyOf(t, nil).Snapshot(), convo.Edit{Drop: []convo.ID{3, 4}, Work: work})
		}, convo.OutcomeStale},
		"closed": {answers(convo.Edit{}, nil), func(t *testing.T, h *convo.History) (convo.Report, error) {
			require.NoError(t, h.Close())
			return h.Compact(t.Context(), "")
		}, convo.OutcomeFailed},
		"Fit with room": {answers(convo.Edit{}, nil), func(t *testing.T, h *convo.History) (convo.Report, error) {
			_, r, err := h.Fit(t.Context(), 1)
			return r, err
		}, convo.OutcomeNotNeeded},
	} {
		t.Run(name, func(t *testing.T) {
			var told []convo.Report
			opts := windowOf(0, tt.strategy)
			opts.OnCompaction = func(r convo.Report) { told = append(told, r) }
			h = toolTurn(t, opts, 20)
			r, _ := tt.report(t, h)
			require.Equal(t, tt.want, r.Outcome, "%v", r.Cause)
			for _, r := range append(told, r) {
				if r.Outcome == convo.OutcomeApplied {
					continue // the other edit
				}
				assert.InDelta(t, 1, r.PrefixKept, 0)
				assert.Zero(t, r.Unread)
			}
		})
	}
}

// OnCompaction has a report of its own and may change it. A slice that
// Report.clone forgets would be shared with what CompactIfNeeded returns.
func TestReport_ObserverHasACopy(t *testing.T) {
	var filled []string
	opts := bare()
	opts.OnCompaction = func(r convo.Report) {
		v := reflect.ValueOf(&r).Elem()
		for i := range v.NumField() {
			if field := v.Field(i); field.Kind() == reflect.Slice && field.Len() > 0 {
				filled = append(filled, v.Type().Field(i).Name)
				field.Index(0).SetZero()
			}
		}
	}
	drops := convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		return convo.Edit{Drop: []convo.ID{9, 10}, Clear: []convo.Clear{{ID: 12}}}, nil
	})
	var h *convo.History
	opts.Strategy = convo.Chain(fixed(convo.Edit{Drop: []convo.ID{3, 4, 5, 6}, Summary: &convo.Summary{Text: "s"}}), drops,
		convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { return convo.Edit{}, h.Pin(5) }))
	h = toolTurn(t, opts, 20)
	r, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	v := reflect.ValueOf(r)
	for i := range v.NumField() {
		if field := v.Field(i); field.Kind() == reflect.Slice {
			name := v.Type().Field(i).Name
			assert.Contains(t, filled, name, "this test has to make a report with the field")
			if field.Len() > 0 {
				assert.False(t, field.Index(0).IsZero(), "the observer wrote into %s", name)
			}
		}
	}
	assert.Equal(t, []convo.ID{9, 10}, r.Dropped)
	assert.Equal(t, []convo.ID{3, 4}, r.Summarised)
	assert.Equal(t, []convo.ID{12}, r.Cleared)
	assert.Equal(t, []convo.ID{5, 6}, r.Kept)
	require.Len(t, r.Links, 3)
	assert.Equal(t, convo.OutcomeDeclined, r.Links[2].Outcome)
	assert.Equal(t, "func", r.Links[0].Strategy)
}

// PrefixKept is a fraction of what was sent, so entries that were appended since
// do not count.
func TestReport_PrefixKeptOfWhatWasSent(t *testing.T) {
	for name, tt := range map[string]struct {
		edit convo.Edit
		kept int // raw tokens of what was sent
	}{
		"cut in what was sent": {convo.Edit{Drop: []convo.ID{5, 6}}, 5 + 8 + 106},
		"cut at its end":       {convo.Edit{Drop: []convo.ID{15, 16}}, 5 + 8 + 6*106},
		"cut behind it":        {convo.Edit{Drop: []convo.ID{17, 18}}, 5 + 8 + 6*106 + 4},
	} {
		t.Run(name, func(t *testing.T) {
			h := toolTurn(t, bare(), 6)
			sent := h.Snapshot()
			require.NoError(t, h.RecordUsage(sent, convo.Usage{Input: sent.Tokens()}))
			for i := range 10 {
				c := callOf("d" + itoa(i))
				mustAppend(t, h, convo.User("go on"), convo.Assistant("", c), convo.Result(c, strings.Repeat("y", 92)))
			}
			r := apply(t, h, tt.edit)
			assert.InDelta(t, float64(tt.kept)/float64(sent.Tokens()), r.PrefixKept, 1e-9)
		})
	}
}

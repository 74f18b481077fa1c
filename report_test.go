package convo_test

import (
	"bytes"
	"context"
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
	_, cut, err := unansweredRound(t, 1000, func(o *convo.Options) { o.OnCompaction = opts.OnCompaction }, 900, 900).Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{5, 6}, cut.Cut)
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

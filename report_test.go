package convo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"regexp"
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
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	require.Len(t, told, 1)
	assert.Equal(t, r, told[0])
	assert.Equal(t, convo.Usage{Input: 100, Output: 10}, r.Usage)
	assert.NotEmpty(t, r.Summarised)
	assert.Empty(t, r.Dropped)
	assert.Contains(t, out.String(), "level=INFO msg=\"convo: compaction applied\" outcome=applied reason=high strategy=chain cause=<nil> fits=true limit=500 ")
	assert.Positive(t, r.Duration)

	requireNoFailure(t)(reportOf(h.Prepare(t.Context())))
	assert.Len(t, told, 1, "what is not needed is only returned")

	mustAppend(t, h, convo.User(strings.Repeat("x", 1000)))
	out.Reset()
	_, _, err = h.Prepare(t.Context())
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
	work := &convo.Effort{Calls: 1, Unread: 17}
	answers := func(e convo.Edit, err error) convo.CompactionStrategy {
		e.Effort = work
		return convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { return e, err })
	}
	compact := func(_ *testing.T, h *convo.History) (convo.Report, error) { return h.Compact(context.Background(), "") }
	var h *convo.History
	late := convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
		e := convo.Edit{Drop: idsOf(s)[2:4]}
		_, err := h.Apply(h.Snapshot(), e) // another goroutine drops the same
		e.Effort = work
		return e, err
	})
	for name, tt := range map[string]struct {
		strategy convo.CompactionStrategy
		report   func(*testing.T, *convo.History) (convo.Report, error)
		want     convo.Outcome
	}{
		"not needed":    {answers(convo.Edit{}, nil), func(t *testing.T, h *convo.History) (convo.Report, error) { return reportOf(h.Prepare(t.Context())) }, convo.OutcomeNotNeeded},
		"no background": {answers(convo.Edit{}, nil), func(t *testing.T, h *convo.History) (convo.Report, error) { return h.Wait(t.Context()) }, convo.OutcomeNotNeeded},
		"a wasted call": {answers(convo.Edit{}, convo.ErrNoGain), compact, convo.OutcomeFailed},
		"zero edit":     {answers(convo.Edit{}, nil), compact, convo.OutcomeFailed},
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
			return h.Apply(h.Snapshot(), convo.Edit{Effort: work})
		}, convo.OutcomeDeclined},
		"Apply that fails": {nil, func(_ *testing.T, h *convo.History) (convo.Report, error) {
			return h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{3}, Effort: work})
		}, convo.OutcomeFailed},
		"Apply to another": {nil, func(t *testing.T, h *convo.History) (convo.Report, error) {
			return h.Apply(historyOf(t, nil).Snapshot(), convo.Edit{Drop: []convo.ID{3, 4}, Effort: work})
		}, convo.OutcomeStale},
		"closed": {answers(convo.Edit{}, nil), func(t *testing.T, h *convo.History) (convo.Report, error) {
			require.NoError(t, h.Close())
			return h.Compact(t.Context(), "")
		}, convo.OutcomeFailed},
		"MakeRoom with room": {answers(convo.Edit{}, nil), func(t *testing.T, h *convo.History) (convo.Report, error) {
			_, r, err := h.MakeRoom(t.Context(), 1)
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
				if r.Outcome != convo.OutcomeStale { // after the other edit
					assert.InDelta(t, 1, r.PrefixKept, 0)
				}
				assert.Zero(t, r.Unread)
			}
		})
	}
}

// OnCompaction has a report of its own and may change it. A slice that
// Report.clone forgets would be shared with what Prepare returns.
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
		return convo.Edit{Drop: []convo.ID{9, 10}, Clear: []convo.Clear{{ID: 12, Forget: true}}, Rewrite: rewriteOf(14, convo.Text("x")).Rewrite}, nil
	})
	var h *convo.History
	opts.Strategy = convo.Chain(fixed(convo.Edit{Drop: []convo.ID{3, 4, 5, 6}, Summary: &convo.Summary{Text: "s", Read: []convo.Range{{First: 16, Last: 16}}}}), drops,
		convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { return convo.Edit{}, h.Pin(5) }))
	h = toolTurn(t, opts, 20)
	r, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	_, cut, err := unansweredRound(t, 1000, func(o *convo.Options) { o.OnCompaction = opts.OnCompaction }, 900, 900).Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{5, 6}, cut.Shortened)
	h = historyOf(t, opts, convo.User("one", convo.NewMedia("image/png", []byte("x"))))
	_, err = h.Do(t.Context(), refuseOnce("Could not process image"))
	require.NoError(t, err)
	n := convo.ID(0)
	opts.Strategy = convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		n++
		e := convo.Edit{Drop: []convo.ID{1 + 2*n, 2 + 2*n}, Summary: &convo.Summary{Text: "s", Read: []convo.Range{{First: 16, Last: 16}}}}
		if n > 4 { // it is not known what the summary was before it has read 16
			e = convo.Edit{Drop: e.Drop, Clear: []convo.Clear{{ID: 16, Forget: true}}}
		}
		return e, nil
	})
	h = toolTurn(t, opts, 20)
	for i := range 5 {
		_, err := h.Compact(t.Context(), fmt.Sprint("focus ", i))
		require.NoError(t, err)
	}
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
	assert.Equal(t, []convo.ID{5, 6}, r.Spared)
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

// The report of a compaction says in one line what a person wants to know.
func TestReport_String(t *testing.T) {
	ids := func(n int) []convo.ID {
		list := make([]convo.ID, n)
		for i := range list {
			list[i] = convo.ID(i + 3)
		}
		return list
	}
	for _, tt := range []struct {
		want string
		r    convo.Report
	}{
		{"compacted 41,200 → 19,800 of 112,000 tokens: 12 results cleared, 30 messages summarised in 1,950 tokens (claude-haiku, 2.1 s); 3 pinned kept", convo.Report{
			Outcome: convo.OutcomeApplied, TokensBefore: 41_200, TokensAfter: 19_800, Limit: 112_000, Fits: true, Cleared: ids(12), Summarised: ids(30), Spared: ids(3),
			SummaryAfter: 1950, Model: "claude-haiku", Calls: 1, Duration: 2_090_000_000}},
		{"compacted 9,000 → 4,500 of 8,000 tokens: 2 results cut, 1 message dropped", convo.Report{
			Outcome: convo.OutcomeApplied, TokensBefore: 9000, TokensAfter: 4500, Limit: 8000, Fits: true, Shortened: ids(2), Dropped: ids(1)}},
		{"compacted 900 → 450 tokens: 1 message dropped", convo.Report{Outcome: convo.OutcomeApplied, TokensBefore: 900, TokensAfter: 450, Fits: true, Dropped: ids(1)}},
		{"compacted 900 → 450 tokens: 2 messages summarised in 80 tokens (3 calls, 0.1 s); 70 tokens not read by the summarizer", convo.Report{
			Outcome: convo.OutcomeApplied, TokensBefore: 900, TokensAfter: 450, Fits: true, Summarised: ids(2), SummaryAfter: 80, Calls: 3, Unread: 70, Duration: 60_000_000}},
		{"compacted 900 → 450 tokens: 3 messages dropped; 70 tokens not summarised", convo.Report{
			Outcome: convo.OutcomeApplied, TokensBefore: 900, TokensAfter: 450, Fits: true, Dropped: ids(3), Unread: 70}},
		{"compacted 900 → 450 tokens: 9 messages summarised in 80 tokens; 1 message that was to be kept had to go for the request to fit", convo.Report{
			Outcome: convo.OutcomeApplied, TokensBefore: 900, TokensAfter: 450, Fits: true, Summarised: ids(9), SummaryAfter: 80, NotKept: 1}},
		{"compacted 900 → 450 tokens: 2 messages summarised in 80 tokens", convo.Report{Outcome: convo.OutcomeApplied, TokensBefore: 900, TokensAfter: 450, Fits: true, Summarised: ids(2), SummaryAfter: 80}},
		{"compacted 900 → 450 of 500 tokens: 2 messages dropped; strategy summarize: 503 Service Unavailable", convo.Report{
			Outcome: convo.OutcomeApplied, TokensBefore: 900, TokensAfter: 450, Limit: 500, Fits: true, Dropped: ids(2),
			Links: []convo.Link{{Strategy: "summarize", Outcome: convo.OutcomeFailed, Cause: errors.New("convo: strategy summarize: 503 Service Unavailable")}, {Strategy: "truncate", Outcome: convo.OutcomeApplied}}}},
		{"compacted 900 → 890 of 500 tokens: summary dropped; the request must not be sent", convo.Report{Outcome: convo.OutcomeApplied, TokensBefore: 900, TokensAfter: 890, Limit: 500, SummaryDropped: true}},
		{"compacted 900 → 890 tokens: summary of 80 tokens", convo.Report{Outcome: convo.OutcomeApplied, TokensBefore: 900, TokensAfter: 890, SummaryAfter: 80, Fits: true}},
		{"compacted 900 → 890 tokens: 1 result cleared, 2 messages rewritten", convo.Report{Outcome: convo.OutcomeApplied, TokensBefore: 900, TokensAfter: 890, Cleared: ids(1), Rewritten: ids(2), Fits: true}},
		{"compacted 900 → 890 tokens: 1 result cleared; not all results cleared: disk full", convo.Report{Outcome: convo.OutcomeApplied, TokensBefore: 900, TokensAfter: 890, Cleared: ids(1), Fits: true, Cause: errors.New("disk full")}},
		{"no compaction needed at 900 of 1,000 tokens", convo.Report{TokensBefore: 900, TokensAfter: 900, Limit: 1000, Fits: true}},
		{"compaction declined at 900 of 1,000 tokens: nothing worth removing", convo.Report{Outcome: convo.OutcomeDeclined, Cause: convo.ErrNoGain, TokensAfter: 900, Limit: 1000, Fits: true}},
		{"compaction failed at 1,900 of 1,000 tokens: one two; the request must not be sent", convo.Report{Outcome: convo.OutcomeFailed, Cause: errors.Join(errors.New("one"), errors.New("two")), TokensAfter: 1900, Limit: 1000}},
		{"compaction stale at 900 tokens: stale snapshot", convo.Report{Outcome: convo.OutcomeStale, Cause: convo.ErrStale, TokensAfter: 900, Fits: true}},
	} {
		assert.Equal(t, tt.want, fmt.Sprint(tt.r))
		assert.NotContains(t, fmt.Sprintf("%+v", tt.r), "\n")
	}
}

// The figures that String prints are those of the History.
func TestReport_Figures(t *testing.T) {
	with := convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		return convo.Summary{Text: "short", Model: "tiny"}, nil
	})
	h := toolTurn(t, windowOf(1000, convo.Summarize{With: with, Window: -1, MaxTokens: 100}), 20)
	first, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	sum, _ := h.Snapshot().Summary()
	assert.Equal(t, "tiny", first.Model)
	assert.Equal(t, 1000, first.Limit)
	assert.Zero(t, first.SummaryBefore)
	assert.Equal(t, sum.Tokens, first.SummaryAfter)
	mustAppend(t, h, convo.User(strings.Repeat("x", 400)), convo.Assistant(strings.Repeat("y", 400)), convo.User("on"))
	second, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	assert.Equal(t, first.SummaryAfter, second.SummaryBefore)

	// An edit that drops, without a model, says nothing of one.
	h = toolTurn(t, windowOf(1000, nil), 20)
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Empty(t, r.Model)
}

// Each line of the log has the same keys, whatever happened, and Options.Logger
// documents each of them.
func TestReport_LogKeys(t *testing.T) {
	var out bytes.Buffer
	keys := func(strategy convo.CompactionStrategy) []string {
		out.Reset()
		opts := windowOf(1000, strategy)
		opts.Logger = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
		_, _, _ = (toolTurn(t, opts, 20).Prepare(t.Context()))
		var keys []string
		for _, m := range regexp.MustCompile(`([a-z_]+)=`).FindAllStringSubmatch(out.String(), -1) {
			keys = append(keys, m[1])
		}
		return keys
	}
	applied := keys(convo.Truncate{})
	assert.Len(t, applied, 3+30)
	assert.Equal(t, applied, keys(convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		return convo.Edit{}, errors.New("down")
	})))
	source, err := os.ReadFile("options.go")
	require.NoError(t, err)
	_, doc, _ := strings.Cut(string(source), "	// Logger gets a line")
	doc, _, _ = strings.Cut(doc, "	Logger *slog.Logger")
	for _, key := range applied[3:] {
		assert.Regexp(t, `\b`+key+`\b`, doc)
	}
}

// A link that failed is worth a warning, even if another one helped.
func TestReport_LogsAFailedLink(t *testing.T) {
	down := convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		return convo.Summary{}, errors.New("model is down")
	})
	opts := windowOf(4000, convo.Chain(convo.ClearToolResults{MinResult: 1 << 30}, convo.Summarize{With: down, Window: -1}, convo.Truncate{}))
	opts.Limits.High = 2000
	var log bytes.Buffer
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	_, r, err := toolTurn(t, opts, 20).Prepare(t.Context())
	require.NoError(t, err)
	require.Equal(t, convo.OutcomeApplied, r.Outcome)
	require.NoError(t, r.Cause)
	assert.Contains(t, log.String(), "level=WARN")
	assert.Contains(t, log.String(), `cause="convo: strategy summarize: summarizer: model is down"`)

	opts = windowOf(4000, convo.ClearToolResults{KeepLast: -1})
	opts.Limits.High = 2000
	log.Reset()
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	stored := 0
	opts.Spill = func(context.Context, convo.ToolResult) (string, error) {
		if stored++; stored == 1 {
			return "", errors.New("disk is full")
		}
		return "", nil
	}
	_, r, err = toolTurn(t, opts, 20).Prepare(t.Context())
	require.NoError(t, err)
	require.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Contains(t, log.String(), "level=WARN")
	assert.Contains(t, log.String(), "disk is full")
}

// A report names what was forgotten, whether it was cleared, rewritten or dropped with it.
func TestReport_Forgotten(t *testing.T) {
	c, d := callOf("c"), callOf("d")
	long := strings.Repeat("secret ", 50)
	h := historyOf(t, bare(), convo.User("a"), convo.Assistant("", c, d), convo.Result(c, long), convo.Result(d, long),
		convo.Assistant("b"), convo.User("my key"), convo.Assistant("c"), convo.User("d"))
	r := apply(t, h, convo.Edit{
		Clear:   []convo.Clear{{ID: 3, Forget: true}, {ID: 4}},
		Rewrite: []convo.Rewrite{{ID: 6, Parts: []convo.Part{convo.Text("no key")}, Forget: true}, {ID: 5, Parts: []convo.Part{convo.Text("B")}}},
	})
	assert.Equal(t, []convo.ID{3, 6}, r.Forgotten)
	r = apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 4, Forget: true}}})
	assert.Equal(t, []convo.ID{4}, r.Forgotten, "cleared before")
	r = apply(t, h, convo.Edit{Drop: []convo.ID{1, 2, 3, 4, 5}})
	assert.Empty(t, r.Forgotten)
}

// A report names what was forgotten and the summary may still say, and nothing else.
func TestReport_Remembered(t *testing.T) {
	model := convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		if strings.Contains(req.Prompt, "plum") {
			return convo.Summary{Text: "The word is plum."}, nil
		}
		return convo.Summary{Text: "Nothing yet."}, nil
	})
	said := map[bool]int{}
	for n := range 6 {
		h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 6000, MinFree: 1}, Strategy: convo.Summarize{With: model, KeepTurns: 1}})
		id := mustAppend(t, h, convo.User("The word is plum."))
		mustAppend(t, h, convo.Assistant(strings.Repeat("word ", 400)))
		for range n + 1 {
			mustAppend(t, h, convo.User("And now?"), convo.Assistant(strings.Repeat("word ", 400)))
			_, err := h.Compact(t.Context(), "")
			require.NoError(t, err)
		}
		r := apply(t, h, convo.Edit{Rewrite: []convo.Rewrite{{ID: id, Parts: []convo.Part{convo.Text("gone")}, Forget: true}}})
		sum, _ := h.Snapshot().Summary()
		says := strings.Contains(sum.Text, "plum")
		said[says]++
		if says {
			assert.Equal(t, []convo.ID{id}, r.Remembered)
			assert.Contains(t, fmt.Sprint(r), "the summary may still say 1 forgotten message")
		} else {
			assert.Empty(t, r.Remembered)
		}
	}
	assert.Positive(t, said[true])
	assert.Positive(t, said[false])
}

package convo

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/overflow"
)

// meterOf returns a meter for limits without their defaults.
func meterOf(t *testing.T, l Limits) meter {
	t.Helper()
	l, faults := l.withDefaults()
	require.Empty(t, faults)
	return newMeter(l)
}

// requestOf returns a snapshot of that many raw tokens, which was made for a model with a window.
func requestOf(raw int64, model string, window int, version uint64) *Snapshot {
	s := &Snapshot{state: state{listRaw: raw, version: version, knowledge: &knowledge{model: model}}}
	s.setting.window = int64(window)
	return s
}

func TestMeter_Judge(t *testing.T) {
	const low, wide, high = "at least 25 for a view of 100 raw tokens", "at most Limits.Window, which is 1000", "at most 900 for a view of 100 raw tokens"
	type report struct {
		model   string
		version uint64
		tokens  int64
		ignore  bool
		doubt   string // in the error; empty: nothing is logged
	}
	for name, c := range map[string]struct {
		limits  Limits
		window  int // when the snapshot was made
		reports []report
	}{
		"in range": {Limits{Window: 1000, Reserve: -1}, 1000, []report{{tokens: 25}, {tokens: 900}}},
		"too low, which is logged once": {Limits{Window: 1000, Reserve: -1}, 1000, []report{
			{"", 1, 24, true, low}, {"", 2, 1, true, ""}, {"other", 3, 1, true, ""}, {"", 4, 25, false, ""},
		}},
		"too low without a limit": {Limits{}, 0, []report{{"", 1, 24, true, low}}},
		"above the window": {Limits{Window: 1000, Reserve: -1}, 1000, []report{
			{"", 1, 1001, true, wide}, {"", 2, 1001, true, wide},
		}},
		"above the window of now": {Limits{Window: 1000, Reserve: -1}, 0, []report{{"", 1, 1001, true, high}}},
		"too high, until the next says so too": {Limits{Window: 1000, Reserve: -1}, 0, []report{
			{"", 1, 901, true, high}, {"", 1, 950, true, high}, {"", 2, 901, false, ""}, {"", 3, 901, false, ""},
		}},
		"too high, and then not": {Limits{Window: 1000, Reserve: -1}, 0, []report{
			{"", 1, 901, true, high}, {"", 2, 900, false, ""}, {"", 3, 901, true, high},
		}},
		"too high for two models": {Limits{Window: 1000, Reserve: -1}, 0, []report{
			{"a", 1, 901, true, high}, {"b", 2, 901, true, high}, {"a", 3, 901, true, high}, {"a", 4, 901, false, ""},
		}},
		"tools are more than half of the limit": {Limits{Window: 1000, Reserve: -1, Tools: 600}, 0, []report{{tokens: 1000}}},
		"without a limit":                       {Limits{}, 0, []report{{tokens: maxTotal}}},
	} {
		t.Run(name, func(t *testing.T) {
			m := meterOf(t, c.limits)
			for i, r := range c.reports {
				ignore, doubt := m.judge(requestOf(100, r.model, c.window, r.version), r.tokens)
				assert.Equal(t, r.ignore, ignore, "report %d", i)
				if r.doubt == "" {
					assert.NoError(t, doubt, "report %d", i)
				} else {
					assert.ErrorContains(t, doubt, r.doubt, "report %d", i)
				}
			}
		})
	}
}

func TestMeter_SetNamed(t *testing.T) {
	for name, c := range map[string]struct {
		limits  Limits
		figures overflow.Figures
		ours    int64
		named   int // what setNamed returns
		limit   int64
	}{
		"the room of the request":    {Limits{Window: 10_000, Reserve: -1}, overflow.Figures{Limit: 8000, Prompt: 9000}, 9000, 8000, 8000},
		"less what the answer needs": {Limits{Window: 10_000, Reserve: -1}, overflow.Figures{Limit: 8000, Prompt: 7500, Output: 1000}, 7500, 8000, 7000},
		"less its share of Reserve":  {Limits{Window: 10_000, Reserve: 1000}, overflow.Figures{Limit: 8000, Prompt: 9000}, 9000, 8000, 7200},
		"without a window":           {Limits{}, overflow.Figures{Limit: 8000, Prompt: 9000}, 9000, 8000, 8000},
		"no limit":                   {Limits{Window: 10_000, Reserve: -1}, overflow.Figures{Prompt: 9000}, 9000, 0, 10_000},
		"it was not exceeded":        {Limits{Window: 10_000, Reserve: -1}, overflow.Figures{Limit: 8000, Prompt: 8000}, 8000, 0, 10_000},
		"no room":                    {Limits{Window: 10_000, Reserve: -1}, overflow.Figures{Limit: 8000, Prompt: 1, Output: 8000}, 9000, 0, 10_000},
		"of a small model":           {Limits{Window: 10_000, Reserve: -1}, overflow.Figures{Limit: 4999, Prompt: 9000}, 9000, 0, 10_000},
		"of half the limit":          {Limits{Window: 10_000, Reserve: -1}, overflow.Figures{Limit: 5000, Prompt: 9000}, 9000, 5000, 5000},
		"a small quota":              {Limits{Window: 10_000, Reserve: -1}, overflow.Figures{Limit: 1000, Prompt: 9000, Quota: true}, 9000, 1000, 1000},
		"a quota by our estimate":    {Limits{Window: 10_000, Reserve: -1}, overflow.Figures{Limit: 1000, Prompt: 2000, Quota: true}, 1000, 1000, 500},
		"no less than ours":          {Limits{Window: 8000, Reserve: -1}, overflow.Figures{Limit: 8000, Prompt: 9000}, 9000, 0, 8000},
	} {
		t.Run(name, func(t *testing.T) {
			m := meterOf(t, c.limits)
			was := m.marks().limit
			assert.Equal(t, c.named, m.setNamed(c.figures, c.ours))
			if c.limits.Window > 0 || c.named > 0 {
				assert.Equal(t, c.limit, m.marks().limit)
			}
			m.setModel(nil)
			assert.Equal(t, was, m.marks().limit, "of another model")
		})
	}
}

func TestMeter_ExceedsQuota(t *testing.T) {
	type request struct {
		total     int
		raw, ours int64
		exceeds   bool
	}
	for name, requests := range map[string][]request{
		"a request that is too long":             {{2000, 1800, 1800, false}},
		"an answer as long as the quota":         {{2000, 400, 400, true}},
		"an answer shorter than the quota":       {{2000, 900, 1001, false}},
		"an estimate that may be too low":        {{1500, 700, 750, false}},
		"a shorter request of the same size":     {{2000, 1800, 1800, false}, {2000, 1799, 1799, true}},
		"the same request":                       {{2000, 1800, 1800, false}, {2000, 1800, 1800, false}},
		"a shorter request of another size":      {{2000, 1800, 1800, false}, {1900, 1700, 1700, false}},
		"the same size, but not one after other": {{2000, 1800, 1800, false}, {1900, 1700, 1700, false}, {2000, 1750, 1750, false}},
	} {
		var m meter
		for i, r := range requests {
			assert.Equal(t, r.exceeds, m.exceedsQuota(overflow.Figures{Limit: 1000, Total: r.total, Quota: true}, r.raw, r.ours), "%s, request %d", name, i)
		}
	}
}

func TestMeter_Due(t *testing.T) {
	m := meterOf(t, Limits{Window: 1000})
	assert.False(t, m.due(true).assumed, "the window is known")
	m = meterOf(t, Limits{Window: 1000, Assumed: true})
	assert.True(t, m.due(true).assumed)
	assert.False(t, m.due(true).assumed, "once")
	m.setModel(&m.now.set)
	assert.False(t, m.due(true).assumed)

	rise := func(n int) {
		for range n {
			assert.False(t, m.due(true).rising)
			m.noteReport(true)
		}
	}
	rise(manyRising - 1)
	m.noteReport(false)
	rise(manyRising)
	assert.True(t, m.due(true).rising)
	assert.False(t, m.due(true).rising, "once")
	m.noteReport(false)
	rise(2 * manyRising)
}

func TestMeter_Marks(t *testing.T) {
	for _, c := range []struct {
		limits   Limits
		reserved int
		named    int
		want     marks
	}{
		{Limits{}, 0, 0, marks{limit: noMark, high: noMark, soft: noMark, low: noMark, minFree: 1000}},
		{Limits{}, 500, 0, marks{limit: noMark, high: noMark, soft: noMark, low: noMark, minFree: 1000}},
		{Limits{High: 1000}, 0, 0, marks{limit: noMark, high: 1000, soft: 750, low: 500, minFree: 125}},
		{Limits{High: 1000}, 500, 0, marks{limit: noMark, high: 1000, soft: 750, low: 500, minFree: 125}},
		{Limits{High: 1000}, 0, 800, marks{limit: 800, high: 800, soft: 600, low: 400, minFree: 100}},
		{Limits{Window: 1000, Reserve: -1}, 0, 0, marks{limit: 1000, high: 1000, soft: 750, low: 500, minFree: 125}},
		{Limits{Window: 1000, Reserve: 200}, 0, 0, marks{limit: 800, high: 800, soft: 600, low: 400, minFree: 100}},
		{Limits{Window: 1000, Reserve: -1}, 100, 0, marks{limit: 900, high: 900, soft: 750, low: 500, minFree: 125}},
		{Limits{Window: 1000, Reserve: -1}, 600, 0, marks{limit: 400, high: 400, soft: 400, low: 400, minFree: 125}},
		{Limits{Window: 1000, Reserve: -1}, 2000, 0, marks{limit: 0, high: 0, soft: 0, low: 0, minFree: 125}},
		{Limits{Window: 1000, Reserve: -1}, 0, 800, marks{limit: 800, high: 800, soft: 600, low: 400, minFree: 100}},
		{Limits{Window: 1000, Reserve: -1}, 100, 800, marks{limit: 700, high: 700, soft: 600, low: 400, minFree: 100}},
		{Limits{Window: 1000, Reserve: -1, High: 500}, 0, 800, marks{limit: 800, high: 500, soft: 375, low: 250, minFree: 62}},
	} {
		m := meterOf(t, c.limits)
		plain := *m.marks()
		c.want.set = plain.set
		m.named = c.named
		m.reserve(c.reserved)
		assert.Equal(t, c.want, *m.marks(), "%+v", c)
		m.reserve(-c.reserved)
		m.setModel(nil)
		assert.Equal(t, plain, *m.marks(), "%+v", c)
	}
}

// Reservations that are more than all tokens together do not overflow.
func TestMeter_ReserveMuch(t *testing.T) {
	m := meterOf(t, Limits{Window: 1000, Reserve: -1})
	for range 3 {
		m.reserve(math.MaxInt)
	}
	assert.Zero(t, m.marks().limit)
	for range 3 {
		m.reserve(-math.MaxInt)
	}
	assert.EqualValues(t, 1000, m.marks().limit)
}

func TestMeter_Saved(t *testing.T) {
	m := meterOf(t, Limits{Window: 10_000, Reserve: -1})
	assert.Equal(t, meterFigures{}, m.saved(), "the limits of Options are not saved")
	require.Equal(t, 8000, m.setNamed(overflow.Figures{Limit: 8000, Prompt: 9000}, 9000))
	m.reserve(100)
	named := namedLimit{limit: 8000, of: 10_000}
	assert.Equal(t, meterFigures{named: named}, m.saved())

	for _, c := range []struct {
		limits Limits
		named  namedLimit
		limit  int64
	}{
		{Limits{Window: 10_000, Reserve: -1}, named, 8000},
		{Limits{Window: 10_000, Reserve: -1}, namedLimit{}, 10_000},
		{Limits{Window: 20_000, Reserve: -1}, named, 20_000},
		{Limits{Window: 20_000, Reserve: 10_000}, named, 8000},
		{Limits{Window: 9000, Reserve: -1}, named, 9000},
	} {
		again := meterOf(t, c.limits)
		again.adoptNamed(c.named)
		assert.Equal(t, c.limit, again.marks().limit, "%+v", c)
		if c.limit == 8000 {
			assert.Equal(t, c.named.limit, again.saved().named.limit)
		} else {
			assert.Zero(t, again.saved().named)
		}
	}

	chosen := m.marks().set
	chosen.Tools = 5
	m.setModel(&chosen)
	assert.Equal(t, meterFigures{chosen: true, limits: chosen}, m.saved(), "and no limit is named any more")
}

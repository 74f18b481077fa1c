package convo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/overflow"
	"github.com/seed-c1b73e60/convo/internal/pairs"
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
	s.setting.Window = window
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

// aMoment returns a moment in which nothing is due: the high
// mark is 800, and the limit 1000.
func aMoment(change func(m *moment)) *moment {
	m := &moment{
		past: &past{rewritten: 5, editedAt: 1}, at: &state{version: 9, knowledge: &knowledge{}}, upper: 500,
		marks: &marks{limit: 1000, high: 800, soft: 600, low: 400, minFree: 50, set: Limits{High: 800, Low: 400, MinFree: 50}},
	}
	m.at.knowledge.prior.Ratio = 1
	if change != nil {
		change(m)
	}
	return m
}

// verdictOf returns whether a compaction is due.
func verdictOf(c *compactor, now *moment, asked Reason, focus string) (v verdict) {
	c.due(now, asked, focus, &v)
	return v
}

type isAlways bool

func (is isAlways) Due(Status) bool       { return bool(is) }
func (is isAlways) isReached(*state) bool { return bool(is) }

func TestCompactor_Due(t *testing.T) {
	above := func(n int64) func(*moment) { return func(m *moment) { m.upper = n } }
	held := func(n int64) func(*moment) {
		return func(m *moment) { m.upper, m.heldSince, m.heldAt, m.appendedEver = n, 7, 100, 120 }
	}
	counted := triggers{counting: []counting{isAlways(true)}}
	ready := &readyEdit{at: &Snapshot{state: state{version: 8}}}
	for name, tt := range map[string]struct {
		c      *compactor
		change func(*moment)
		asked  Reason
		focus  string
		due    bool
		reason Reason
		target int64
	}{
		"small":                            {&compactor{}, nil, ReasonHigh, "", false, 0, 400},
		"high":                             {&compactor{}, above(801), ReasonHigh, "", true, ReasonHigh, 400},
		"soft":                             {&compactor{}, above(601), ReasonHigh, "", false, 0, 400},
		"soft, in the background":          {&compactor{}, above(601), ReasonSoft, "", true, ReasonSoft, 400},
		"just compacted":                   {&compactor{compacted: 9}, above(801), ReasonHigh, "", false, 0, 400},
		"just compacted, too long":         {&compactor{compacted: 9}, above(1001), ReasonHigh, "", true, ReasonHigh, 400},
		"held":                             {&compactor{}, held(801), ReasonHigh, "", false, 0, 400},
		"held, too long":                   {&compactor{}, held(1001), ReasonHigh, "", true, ReasonHigh, 400},
		"an edit waits":                    {&compactor{ready: ready}, above(601), ReasonHigh, "", true, ReasonSoft, 400},
		"an edit waits that was overtaken": {&compactor{ready: ready}, func(m *moment) { m.upper, m.rewritten = 601, 9 }, ReasonHigh, "", false, 0, 400},
		"counted":                          {&compactor{triggers: counted}, nil, ReasonHigh, "", true, ReasonTrigger, 0},
		"counted, declined":                {&compactor{triggers: counted, declined: 10}, nil, ReasonHigh, "", false, 0, 400},
		"by the caller, nothing new":       {&compactor{}, nil, ReasonManual, "", false, ReasonManual, 250},
		"by the caller, too long":          {&compactor{}, above(1200), ReasonManual, "", true, ReasonManual, 400},
		"by the caller, something new":     {&compactor{}, func(m *moment) { m.at.appended = 1 }, ReasonManual, "", true, ReasonManual, 250},
		"by the caller, another focus":     {&compactor{}, func(m *moment) { m.lastFocus = "a" }, ReasonManual, "b", true, ReasonManual, 250},
		"by the caller, the same focus":    {&compactor{}, func(m *moment) { m.lastFocus = "a" }, ReasonManual, "a", false, ReasonManual, 250},
		"by the caller, after an Undo":     {&compactor{}, func(m *moment) { m.heldSince = 7 }, ReasonManual, "", true, ReasonManual, 250},
		"by the model, little new":         {&compactor{}, func(m *moment) { m.at.appended = 49 }, ReasonTool, "", false, ReasonTool, 250},
		"by the model":                     {&compactor{}, func(m *moment) { m.at.appended = 50 }, ReasonTool, "", true, ReasonTool, 250},
		"by the model, high":               {&compactor{}, func(m *moment) { m.at.appended, m.upper = 50, 801 }, ReasonTool, "", true, ReasonHigh, 400},
	} {
		t.Run(name, func(t *testing.T) {
			v := verdictOf(tt.c, aMoment(tt.change), tt.asked, tt.focus)
			assert.Equal(t, tt.due, v.due)
			assert.Equal(t, tt.reason, v.reason)
			assert.Equal(t, tt.target, v.target)
			assert.Equal(t, tt.asked != ReasonManual && tt.asked != ReasonTool, v.alone)
		})
	}
}

// A Trigger of the caller is asked later, without the lock.
func TestCompactor_DueByTrigger(t *testing.T) {
	c := compactor{triggers: triggers{asked: isAlways(true)}}
	v := verdictOf(&c, aMoment(nil), ReasonHigh, "")
	assert.False(t, v.due)
	assert.Equal(t, ReasonTrigger, v.reason)
	assert.NotNil(t, v.ask)
	v = verdictOf(&c, aMoment(func(m *moment) { m.upper = 801 }), ReasonHigh, "")
	assert.Nil(t, v.ask, "it is due anyway")
}

// Without marks and without a Trigger, this is reported once.
func TestCompactor_DueWithoutMarks(t *testing.T) {
	c := compactor{triggers: triggers{byMedia: true}}
	now := aMoment(func(m *moment) { m.marks.high, m.marks.soft = noMark, noMark })
	assert.True(t, verdictOf(&c, now, ReasonHigh, "").noWindow)
	assert.False(t, verdictOf(&c, now, ReasonHigh, "").noWindow)
}

// What changes nothing after a compaction leaves nothing to compact.
func TestCompactor_Settled(t *testing.T) {
	c := compactor{compacted: noVersion}
	high := func(version uint64) bool {
		return verdictOf(&c, aMoment(func(m *moment) { m.at.version, m.upper = version, 801 }), ReasonHigh, "").due
	}
	c.settled(8, false)
	assert.True(t, high(8), "there was no compaction")
	c.settled(9, true)
	assert.False(t, high(9))
	c.settled(10, false)
	assert.False(t, high(10))
	c.settled(12, false)
	assert.True(t, high(12), "something else was between")
}

func TestCompactor_Breaker(t *testing.T) {
	var c compactor
	down := errors.New("down")
	now := aMoment(func(m *moment) { m.appendedEver = 1000 })
	noModel := func(ever int64) error {
		_, err := c.restraints(aMoment(func(m *moment) { m.appendedEver = ever }))
		return err
	}
	c.ended(now, &ending{call: notCalled})
	assert.NoError(t, noModel(1000))
	c.ended(now, &ending{call: calledInVain, cause: down})
	assert.ErrorIs(t, noModel(1024), ErrBreaker)
	assert.ErrorIs(t, noModel(1024), down)
	assert.NoError(t, noModel(1025), "half of MinFree was appended")
	c.ended(now, &ending{call: calledInVain, cause: down})
	assert.Error(t, noModel(1049), "twice as much is needed after the second failure")
	assert.NoError(t, noModel(1050))
	c.ended(now, &ending{call: calledWell})
	assert.NoError(t, noModel(1000))

	c.ended(now, &ending{call: calledInTime, at: 9, cause: down})
	assert.NoError(t, noModel(1000), "a rollback is excused once")
	c.ended(now, &ending{call: calledInTime, at: 9, cause: down})
	assert.Error(t, noModel(1000))
}

// Another process may have stored its breaker in the meantime.
func TestCompactor_Adopt(t *testing.T) {
	down := errors.New("down")
	theirs := breaker{Failures: 3, Appended: 70} // as a record holds it
	c := compactor{}
	c.adopt(breaker{}, theirs, 10)
	assert.Equal(t, theirs, c.saved())
	assert.ErrorIs(t, c.breaker.Cause, errEarlier)

	c.ended(aMoment(func(m *moment) { m.appendedEver = 90 }), &ending{call: calledInVain, cause: down})
	c.adopt(theirs, breaker{}, 10)
	assert.Equal(t, breaker{Failures: 4, Appended: 100}, c.saved(), "its own has changed since")
	assert.Equal(t, down, c.breaker.Cause)
}

// Only the first decline is reported, and the next one after an edit or after limits were set.
func TestCompactor_Declines(t *testing.T) {
	var c compactor
	decline := func(seen, version, rewritten uint64) (told bool) {
		now := aMoment(func(m *moment) { m.at.version, m.rewritten = version, rewritten })
		return c.ended(now, &ending{declined: true, at: seen})
	}
	assert.False(t, decline(9, 9, 5))
	assert.True(t, decline(10, 10, 5))
	assert.False(t, decline(11, 11, 11), "an edit")
	assert.True(t, decline(12, 13, 11))
	assert.True(t, decline(14, 14, 13), "an edit before the last decline")
	c.limitsSet()
	assert.False(t, decline(15, 15, 13), "limits were set")
	assert.True(t, decline(16, 16, 13))
}

func TestCompactor_Restraints(t *testing.T) {
	var c compactor
	held := aMoment(func(m *moment) { m.heldSince, m.heldAt, m.appendedEver = 7, 100, 149 })
	undone, _ := c.restraints(held)
	assert.EqualValues(t, 7, undone)
	held.appendedEver++
	undone, _ = c.restraints(held)
	assert.Zero(t, undone, "MinFree was appended")
}

func TestCompactor_Ready(t *testing.T) {
	var c compactor
	r := new(readyEdit)
	assert.Nil(t, c.swapReady(r))
	assert.Same(t, r, c.swapReady(nil))
	assert.Nil(t, c.swapReady(nil))
}

func TestLane(t *testing.T) {
	var s slots
	assert.True(t, s.isClosed(), "of the zero History")
	s.init()
	l := &s.compacting
	l.stop(ErrClosed) // nothing runs
	require.True(t, l.tryTake())
	ctx, err := s.flightContext(context.Background())
	require.NoError(t, err)
	_, err = l.enter(ctx)
	assert.ErrorIs(t, err, ErrReentrant)
	assert.False(t, l.tryTake())
	l.stop(ErrClosed)
	assert.ErrorIs(t, context.Cause(ctx), ErrClosed)
	l.end(nil)
	assert.True(t, l.tryTake())
	assert.False(t, s.isClosed())
	assert.True(t, s.close())
	assert.False(t, s.close())
	assert.True(t, s.isClosed())
	_, err = s.flightContext(context.Background())
	assert.ErrorIs(t, err, ErrClosed)
	assert.True(t, l.tryTake(), "it was released")
}

// References are kept for an edit that was not applied, and for entries in the view.
func TestSpills(t *testing.T) {
	in, gone := &entry{id: 1}, &entry{id: 2}
	now := aMoment(func(m *moment) { m.at.list = []*entry{in} })
	result := &ToolResult{CallID: "c"}
	var s spills
	p := s.start(now)
	assert.NoError(t, p.down)
	p.succeeded = 2
	p.added[keyOf(in, result)], p.added[keyOf(gone, result)] = "a", "b"
	s.end(now, p)
	assert.Equal(t, map[spillKey]string{keyOf(in, result): "a"}, s.refs)

	p = s.start(now)
	assert.Equal(t, s.refs, p.known)
	p.applied, p.failed, p.cause = true, 1, errors.New("down")
	s.end(now, p)
	assert.Empty(t, s.refs, "the edit was applied")
	assert.ErrorIs(t, s.start(now).down, ErrNoGain)
	later := aMoment(func(m *moment) { m.appendedEver = 25 })
	assert.NoError(t, s.start(later).down)
}

// A recordsStore keeps the records of one log. Its next Append fails with err, after it has
// stored the record if stores is set.
type recordsStore struct {
	Store
	list   []Record
	err    error
	stores bool
}

func (s *recordsStore) Append(_ context.Context, r Record) error {
	err := s.err
	s.err = nil
	if err != nil && !s.stores {
		return err
	}
	if n := len(s.list); n > 0 && s.list[n-1].ID != r.Prev {
		return &ConflictError{Key: r.Key, Have: s.list[n-1].Seq, Want: r.Seq}
	}
	s.list = append(s.list, r)
	return err
}

func (s *recordsStore) Records(_ context.Context, _ string, from uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for _, r := range s.list {
			if r.Seq >= from && !yield(r, nil) {
				return
			}
		}
	}
}

// pictureOf returns a picture of an empty view whose last ID is last.
func pictureOf(id *identity, last ID) *picture {
	return &picture{view: &Snapshot{state: state{id: id, last: last, version: uint64(last)}}, scalars: scalars{last: last}}
}

func newTestRecorder(s Store) (*recorder, *identity) {
	r := new(recorder)
	if s != nil {
		r.adopt(newLogbook(s, "key"), keepsake{})
	}
	return r, newIdentity(newCounter(nil, Overheads{}), nil, "")
}

// writeNext writes what has changed up to an ID.
func (r *recorder) writeNext(t *testing.T, id *identity, last ID) outcome {
	t.Helper()
	b := r.book()
	o := b.write(t.Context(), r.draft(pictureOf(id, last), false))
	r.wrote(o)
	return o
}

func TestRecorder_WithoutStore(t *testing.T) {
	r, id := newTestRecorder(nil)
	r.left(nil, departed{was: &entry{id: 1}})
	r.add("note", map[ID]*queued{1: nil})
	r.wentBack(0, nil, &placedSummary{})
	b := r.book()
	assert.Zero(t, b.unsaved(&state{id: id, version: 5}, breaker{}))
	assert.Empty(t, r.past)
	assert.Empty(t, r.made)
	assert.Empty(t, r.notes)
}

func TestRecorder_Write(t *testing.T) {
	s := new(recordsStore)
	r, id := newTestRecorder(s)
	r.add("first", nil)
	r.left(nil, departed{was: &entry{id: 1, msg: Message{Role: RoleUser, Parts: []Part{Text("gone")}}}})
	before := r.book()
	require.NoError(t, r.writeNext(t, id, 2).err)
	assert.Zero(t, before.seq, "a copy of the logbook does not change")
	assert.Equal(t, uint64(1), r.seq)
	assert.Empty(t, r.notes, "the record holds them")
	assert.Empty(t, r.past)
	assert.True(t, s.list[0].Full)

	o := r.writeNext(t, id, 2)
	assert.NotNil(t, o.settled, "nothing has changed")
	assert.Len(t, s.list, 1)
	r.left(nil, departed{was: &entry{id: 2}})
	assert.Empty(t, r.past, "the log has it as it was appended")

	require.NoError(t, r.writeNext(t, id, 3).err)
	assert.False(t, s.list[1].Full)
	assert.Equal(t, s.list[0].ID, s.list[1].Prev)
}

func TestRecorder_WentBack(t *testing.T) {
	first, second := new(placedSummary), new(placedSummary)
	for name, c := range map[string]struct {
		last, back ID // the last ID when the record was made, and that after the rollback
		now        *placedSummary
		undone     []Range
		summaries  int
	}{
		"what no record holds": {last: 3, back: 4, now: second, summaries: 1},
		"what a record holds":  {last: 5, back: 2, now: second, undone: []Range{{3, 5}}, summaries: 1},
		"and the summary":      {last: 5, back: 4, now: nil, undone: []Range{{5, 5}}},
	} {
		t.Run(name, func(t *testing.T) {
			r, id := newTestRecorder(new(recordsStore))
			require.NoError(t, r.writeNext(t, id, c.last).err)
			r.edited(&Report{left: &departure{gone: []departed{{was: &entry{id: 6}}}}}, first, second)
			r.add("", map[ID]*queued{6: nil})
			r.wentBack(c.back, second, c.now)
			assert.Equal(t, c.undone, r.undone)
			assert.Len(t, r.summaries, c.summaries)
			assert.Empty(t, r.past)
			assert.Empty(t, r.made)
		})
	}
}

// A record that may have been stored is looked for in the log before it is written again.
func TestRecorder_Doubt(t *testing.T) {
	for _, stores := range []bool{false, true} {
		t.Run(fmt.Sprint("stored: ", stores), func(t *testing.T) {
			s := &recordsStore{err: errors.New("the network is down"), stores: stores}
			r, id := newTestRecorder(s)
			o := r.writeNext(t, id, 1)
			require.Error(t, o.err)
			assert.NotNil(t, o.doubted)
			require.Len(t, r.drafts, 1)
			b := r.book()
			assert.Positive(t, b.unsaved(&state{id: id, version: 1}, breaker{}))

			o = r.writeNext(t, id, 1)
			require.NoError(t, o.err)
			assert.Equal(t, stores, o.isOlder, "the older draft was found")
			assert.Len(t, s.list, 1)
			assert.Equal(t, s.list[0].ID, r.id)
			assert.Empty(t, r.drafts)
		})
	}
}

func TestRecorder_Pruned(t *testing.T) {
	r, id := newTestRecorder(new(recordsStore))
	r.marks = []summaryMark{{seq: 1}, {seq: 2}, {seq: 3}}
	r.size.Before = 500
	before := r.book()
	r.wrote(outcome{pruned: 2, freed: 400})
	assert.Equal(t, []summaryMark{{seq: 2}, {seq: 3}}, r.marks)
	assert.Len(t, before.marks, 3)
	assert.EqualValues(t, 100, r.size.Before)
	r.wrote(outcome{pruned: 3, freed: 400})
	assert.Zero(t, r.size.Before, "others have removed some")
	assert.False(t, (&logbook{}).exceeds(0))
	require.NoError(t, r.writeNext(t, id, 1).err)
	assert.False(t, r.exceeds(r.size.Bytes()))
	assert.True(t, r.exceeds(r.size.Bytes()-1))
	assert.Greater(t, r.size.Bytes(), int64(300))
}

// viewWith returns a view of empty messages with these roles, whose IDs begin at 1.
func viewWith(roles ...Role) *view {
	v := new(view)
	for i, role := range roles {
		v.list = append(v.list, &entry{id: ID(i + 1), head: ID(i + 1), msg: Message{Role: role}})
	}
	return v
}

func TestTalk_Failed(t *testing.T) {
	user := &entry{id: 1, msg: Message{Role: RoleUser}}
	result := &entry{id: 2, msg: Message{Role: RoleTool}}
	answer := &entry{id: 3, msg: Message{Role: RoleAssistant}}
	cases := []struct {
		name   string
		do     func(tk *talk)
		newest *entry
		want   bool
	}{
		{"nothing was asked", func(*talk) {}, user, false},
		{"no message", func(tk *talk) { tk.note(nil, true) }, nil, false},
		{"a user message", func(tk *talk) { tk.note(user, true) }, user, true},
		{"a result", func(tk *talk) { tk.note(result, true) }, result, true},
		{"an answer", func(tk *talk) { tk.note(answer, true) }, answer, false},
		{"another message since", func(tk *talk) { tk.note(user, true) }, result, false},
		{"noted again with the same newest message", func(tk *talk) { tk.note(user, true); tk.note(user, false) }, user, true},
		{"noted again with another newest message", func(tk *talk) { tk.note(user, true); tk.note(result, false) }, user, false},
		{"another request is made", func(tk *talk) { tk.note(user, true); tk.note(nil, false) }, user, false},
		{"a Do waits", func(tk *talk) { tk.note(user, true); tk.wait(&sending{last: 1}) }, user, false},
		{"a Do has waited", func(tk *talk) { tk.note(user, true); tk.wait(&sending{last: 1}); tk.wait(nil) }, user, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var tk talk
			c.do(&tk)
			assert.Equal(t, c.want, tk.hasFailed(c.newest))
		})
	}
}

func TestTalk_MayDeliver(t *testing.T) {
	strict, relaxed := RolePolicy{}.withDefaults(), Relaxed()
	queue := []*queued{{msg: User("and then?")}}
	cases := []struct {
		name  string
		view  *view
		roles *RolePolicy
		do    func(tk *talk, v *view)
		want  bool
	}{
		{"empty conversation", viewWith(), &strict, nil, true},
		{"after an answer", viewWith(RoleUser, RoleAssistant), &strict, nil, true},
		{"after a user message", viewWith(RoleUser), &strict, nil, false},
		{"after a user message, with another policy", viewWith(RoleUser), &relaxed, nil, true},
		{"after a user message whose request has failed", viewWith(RoleUser), &strict, func(tk *talk, v *view) { tk.note(v.list[0], true) }, true},
		{"empty queue", viewWith(), &strict, func(_ *talk, v *view) { v.swapQueue(nil) }, false},
		{"an open call", viewWith(RoleUser, RoleAssistant), &strict, func(_ *talk, v *view) { v.calls = pairs.Of[ID]([]pairs.Call{{ID: "c"}}) }, false},
		{"a paused answer", viewWith(RoleUser, RoleAssistant), &strict, func(_ *talk, v *view) { v.list[1].marks.set(paused, true) }, false},
		{"a Do waits for this answer", viewWith(RoleUser), &relaxed, func(tk *talk, _ *view) { tk.wait(&sending{last: 1}) }, false},
		{"a Do waits for an earlier answer", viewWith(RoleUser, RoleAssistant), &strict, func(tk *talk, _ *view) { tk.wait(&sending{last: 1}) }, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var tk talk
			c.view.swapQueue(queue)
			if c.do != nil {
				c.do(&tk, c.view)
			}
			assert.Equal(t, c.want, tk.mayDeliver(c.view, c.roles))
		})
	}
}

func TestTalk_Renumber(t *testing.T) {
	cancelled := false
	was := talk{failed: 7, sending: &sending{last: 7, first: 6, cancel: func(error) { cancelled = true }}}
	tk := was
	tk.renumber(was, func(id ID) ID { return id + 2 })
	assert.EqualValues(t, 9, tk.failed)
	assert.False(t, tk.waits().isFor(7), "the answer is not appended")
	assert.Zero(t, tk.waits().delivered())
	tk.waits().cancel(nil)
	assert.True(t, cancelled, "Close cancels it")
	assert.EqualValues(t, 6, was.sending.first, "what was is unchanged")

	tk.wait(nil)
	tk.renumber(talk{failed: 7}, func(ID) ID { return 0 })
	assert.Zero(t, tk.failed)
	assert.Nil(t, tk.waits())
	assert.Zero(t, tk.waits().delivered())
	assert.False(t, tk.waits().isFor(0))
}

func TestTalk_ParamTools(t *testing.T) {
	var tk talk
	assert.False(t, tk.isParamTool("search"))
	tk.answered([]string{"search", "fetch"})
	assert.True(t, tk.isParamTool("search"))
	tk.answered(nil)
	assert.False(t, tk.isParamTool("search"))
}

func TestRefusals_Encoded(t *testing.T) {
	var r refusals
	at := make([]*Snapshot, mostEncodings+1)
	for i := range at {
		at[i] = &Snapshot{state: state{version: uint64(i)}}
		r.encoded(at[i], i)
	}
	format, _ := r.of(at[0])
	assert.Nil(t, format, "the oldest is forgotten")
	format, _ = r.of(at[1])
	assert.Equal(t, 1, format)

	r.encoded(at[1], "again")
	assert.Len(t, r.encodings, mostEncodings)
	format, _ = r.of(at[1])
	assert.Equal(t, "again", format)

	r.settle(2) // a request of that version was accepted
	for i := range at {
		format, _ = r.of(at[i])
		assert.Equal(t, i > 2, format != nil, i)
	}
	r.settle(newestVersion)
	assert.Empty(t, r.encodings)
}

func TestRefusals_Settle(t *testing.T) {
	c := &cure{version: 5}
	cases := []struct {
		name    string
		version uint64
		want    *cure
	}{
		{"a request from before the cure", 4, nil},
		{"the request with the cure", 5, c},
		{"a later one", 6, c},
		{"any", newestVersion, c},
		{"a request was refused for another reason", noVersion, c},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			r := refusals{encodings: []encoding{{at: &Snapshot{}}}}
			r.try(c)
			assert.Same(t, tc.want, r.settle(tc.version))
			_, inPlace := r.of(nil)
			assert.Equal(t, tc.want == nil, inPlace != nil)
			assert.Equal(t, tc.version == noVersion, len(r.encodings) == 1, "a refused request does not prove what its encodings are")
			assert.Nil(t, r.settle(tc.version), "it is told once")
		})
	}
}

// viewOf returns a view with a message of each role.
func viewOf(roles ...Role) *view {
	v := &view{state: state{id: newIdentity(newCounter(nil, Overheads{}), nil, ""), keep: keeping{most: defaultOriginals}}}
	v.grow(roles...)
	return v
}

// grow appends a message of each role, as an Append of all of them does.
func (v *view) grow(roles ...Role) {
	v.newVersion()
	for _, r := range roles {
		turn := newestTurn(v.list)
		if r == RoleUser {
			turn++
		}
		v.last++
		e := &entry{msg: Message{Role: r, Parts: []Part{Text("a text")}}, id: v.last, head: v.last, turn: turn}
		v.id.weigh(e)
		v.append(e, nil)
		v.appendedEver += e.tokens
	}
	v.calls = callsOf(v.list)
}

// checkTotals checks what a view knows about its list.
func checkTotals(t *testing.T, v *view) {
	t.Helper()
	assert.Equal(t, rawOf(v.list), v.listRaw)
	var own state
	own.replace(nil, v.list, nil, 0)
	assert.Equal(t, own.turns, v.turns)
	assert.Equal(t, own.fold, v.fold)
}

func TestView_Rewind(t *testing.T) {
	for _, seen := range []int{0, 3, 4} {
		v := viewOf(RoleUser, RoleAssistant, RoleUser, RoleAssistant)
		v.pins, v.queue, v.seen = []ID{1, 3}, []*queued{{tokens: 1}}, seen
		before, version := v.state.clipped(), v.version
		again := []*queued{{tokens: 2}}
		v.rewind(2, 2, again)
		assert.Equal(t, []ID{1, 2}, idsOf(v.list))
		assert.Equal(t, version+1, v.version)
		assert.Equal(t, []ID{1}, v.pins)
		assert.Equal(t, []*queued{again[0], before.queue[0]}, v.queue)
		assert.Equal(t, []Range{{3, 4}}, v.takenBack)
		assert.True(t, v.isTakenBack(3))
		assert.False(t, v.isTakenBack(2))
		checkTotals(t, v)
		v.grow(RoleUser)
		assert.Equal(t, []ID{1, 2, 5}, idsOf(v.list))
		if seen == 4 {
			assert.Equal(t, []ID{1, 2, 3, 4}, idsOf(before.list), "what a snapshot shows does not change")
		}
	}
}

// summarise drops entries of a view and puts a summary in their place.
func summarise(t *testing.T, v *view, drop ...ID) *departure {
	ed, err := checkEdit(&v.state, &Edit{Drop: drop, Summary: &Summary{Text: "they met"}}, false)
	require.NoError(t, err)
	was := v.state.clipped()
	done, err := v.edit(ed, v.id.prepare(&v.state, ed, nil), Report{})
	require.NoError(t, err)
	assert.Equal(t, was, v.state, "a plan changes nothing")
	require.True(t, done.changed)
	assert.Equal(t, drop, done.report.Summarised)
	v.commit(done, "their names")
	checkTotals(t, v)
	return done.report.left
}

func TestView_Undo(t *testing.T) {
	v := viewOf(RoleUser, RoleAssistant, RoleUser, RoleAssistant, RoleUser)
	whole := v.state.clipped()
	left := summarise(t, v, 1, 2)
	assert.Equal(t, []ID{3, 4, 5}, idsOf(v.list))
	assert.Equal(t, ID(2), v.summary.sum.newestCovered())
	assert.Equal(t, "their names", v.lastFocus)
	assert.Equal(t, v.version, v.rewritten)
	assert.Zero(t, v.appended)
	shown := v.state.clipped()

	require.True(t, v.undo(left, true))
	assert.Equal(t, whole.list, v.list)
	assert.Nil(t, v.summary)
	assert.Empty(t, v.lastFocus)
	assert.True(t, v.undidSince(shown.version, shown.lastEdit()))
	assert.False(t, v.undidSince(whole.version, whole.lastEdit()))
	checkTotals(t, v)
	assert.Equal(t, v.version, v.heldSince)
	assert.Equal(t, v.appendedEver, v.heldAt)
	v.grow(RoleAssistant)

	version := v.version
	assert.False(t, v.undo(left, true), "it is not in place any more")
	assert.False(t, v.undo(nil, true))
	assert.Equal(t, version, v.version)

	left = summarise(t, v, 1, 2)
	require.True(t, v.undo(left, false))
	assert.Zero(t, v.heldSince, "it was not to be held")
}

// A rollback between an edit and its Undo has taken back what must not come back.
func TestView_UndoAfterRewind(t *testing.T) {
	v := viewOf(RoleUser, RoleAssistant, RoleUser, RoleAssistant, RoleUser)
	left := summarise(t, v, 3, 4)
	v.rewind(firstAfter(v.list, 1), 1, nil)
	require.True(t, v.undo(left, false))
	assert.Equal(t, []ID{1}, idsOf(v.list))
	assert.Equal(t, []Range{{2, 5}}, v.takenBack)
}

func TestView_Revert(t *testing.T) {
	v := viewOf(RoleUser, RoleAssistant, RoleUser, RoleAssistant, RoleUser)
	whole := &Snapshot{state: v.state.clipped()}
	summarise(t, v, 1, 2)
	v.grow(RoleAssistant)
	v.pins = []ID{4, 6}
	assert.True(t, v.editsStay(whole), "it changed nothing in the floor")
	v.revert(&whole.state)
	assert.Equal(t, whole.list, v.list)
	assert.Nil(t, v.summary)
	assert.Equal(t, []ID{4}, v.pins)
	assert.Equal(t, []Range{{6, 6}}, v.takenBack)
	assert.Equal(t, ID(6), v.last)
	checkTotals(t, v)
	id, undone := v.reversedSince(whole)
	assert.Zero(t, id)
	assert.False(t, undone)
}

// An edit that no longer fits the view changes nothing.
func TestState_EditedRefuses(t *testing.T) {
	v := viewOf(RoleUser, RoleAssistant, RoleUser, RoleAssistant, RoleUser)
	ed, err := checkEdit(&v.state, &Edit{Drop: []ID{3, 4}, Summary: &Summary{Text: "they met"}}, false)
	require.NoError(t, err)
	p := v.id.prepare(&v.state, ed, nil)
	gone := viewOf(RoleUser, RoleAssistant)
	other := viewOf(RoleUser, RoleAssistant, RoleUser, RoleAssistant, RoleUser)
	summarise(t, other, 1, 2)
	for name, s := range map[string]*state{"entries have left": &gone.state, "another summary": &other.state} {
		was := s.clipped()
		_, err := s.edited(ed, p, Report{})
		assert.ErrorIs(t, err, ErrStale, name)
		assert.Equal(t, was, *s, name)
	}
}

func TestState_Rewindable(t *testing.T) {
	v := viewOf(RoleUser, RoleAssistant, RoleUser, RoleAssistant, RoleAssistant, RoleUser)
	for _, c := range []struct{ touched, most, to, taken, from int }{
		{0, 0, 6, 0, 6},
		{0, 1, 6, 1, 5},
		{0, 2, 6, 2, 2},
		{0, 9, 6, 3, 0},
		{0, 1, 5, 1, 2},
		{0, 1, 0, 0, 0},
		{2, 9, 6, 1, 5},
		{3, 2, 6, 1, 5},
		{2, 2, 5, 2, 3},
	} {
		v.touched = c.touched
		taken, from := v.rewindable(c.most, c.to)
		assert.Equal(t, []int{c.taken, c.from}, []int{taken, from}, "%+v", c)
	}
}

func TestState_UsersFrom(t *testing.T) {
	v := viewOf(RoleUser, RoleAssistant, RoleUser, RoleUser)
	v.pins = []ID{4}
	assert.Len(t, v.usersFrom(3), 2)
	assert.True(t, v.usersFrom(4)[0].pin)
	assert.Empty(t, v.usersFrom(2), "not all are user messages")
	assert.Empty(t, v.usersFrom(0))
	assert.Empty(t, v.usersFrom(5))
}

// Messages are the same only if all of their fields are, and those of their parts.
func TestMessage_SameAs(t *testing.T) {
	parts := []Part{
		Text("a"), Reasoning{}, ToolCall{}, Media{}, Opaque{}, ToolResult{}, ToolResult{Parts: []Part{Text("a"), Media{}, Opaque{}}},
	}
	m := Message{Parts: parts}
	assert.True(t, m.sameAs(&m))
	assert.True(t, (&Message{}).sameAs(&Message{Parts: []Part{}}), "no parts")
	different := func(v any, same func(changed any) bool) {
		for i := range reflect.TypeOf(v).NumField() {
			changed := reflect.New(reflect.TypeOf(v)).Elem()
			changed.Set(reflect.ValueOf(v))
			f := changed.Field(i)
			switch f.Kind() {
			case reflect.String:
				f.SetString("x")
			case reflect.Bool:
				f.SetBool(true)
			case reflect.Slice:
				f.Set(reflect.ValueOf([]Part{Text("x")}))
			default:
				f.Field(0).SetString("x")
			}
			assert.False(t, same(changed.Interface()), "%+v", changed)
		}
	}
	different(m, func(changed any) bool { n := changed.(Message); return m.sameAs(&n) })
	for i, p := range parts {
		if _, ok := p.(Text); ok {
			continue
		}
		different(p, func(changed any) bool {
			n := Message{Parts: append([]Part{}, parts...)}
			n.Parts[i] = changed.(Part)
			return m.sameAs(&n) || n.sameAs(&m)
		})
	}
	for _, p := range parts {
		for _, q := range parts {
			assert.Equal(t, reflect.DeepEqual(p, q), equalPart(p, q))
		}
	}
}

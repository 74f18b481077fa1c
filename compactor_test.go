package convo

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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

func (is isAlways) Due(Status) bool         { return bool(is) }
func (is isAlways) isReached(s *state) bool { return bool(is) }

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
	theirs := breaker{failures: 3, appended: 70} // as a record holds it
	c := compactor{}
	c.adopt(breaker{}, theirs, 10)
	assert.Equal(t, theirs, c.saved())
	assert.ErrorIs(t, c.breaker.cause, errEarlier)

	c.ended(aMoment(func(m *moment) { m.appendedEver = 90 }), &ending{call: calledInVain, cause: down})
	c.adopt(theirs, breaker{}, 10)
	assert.Equal(t, breaker{failures: 4, appended: 100}, c.saved(), "its own has changed since")
	assert.Equal(t, down, c.breaker.cause)
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

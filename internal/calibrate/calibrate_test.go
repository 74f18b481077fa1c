package calibrate

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/long"
)

var plain = Prior{Ratio: 1, Margin: 125}

// A provider counts ratio tokens for each raw token, plus an overhead.
type provider struct {
	ratio    float64
	overhead int64
}

func (p provider) count(raw int64) int64 { return p.overhead + round(p.ratio*float64(raw)) }

// reports learns from a view that grows by step raw tokens before each report.
func (p provider) reports(n int, step int64) Calibration {
	c := p.first(step)
	for range n - 1 {
		raw := c.Raw + step
		c = c.Learn(Report{Tokens: p.count(raw), Raw: raw, Last: true, Shared: c.Raw, Prior: plain})
	}
	return c
}

func (p provider) first(raw int64) Calibration {
	return (*Calibration)(nil).Learn(Report{Tokens: p.count(raw), Raw: raw, Prior: plain})
}

// after returns the scale of the view of the last report with fresh raw tokens
// added.
func after(c Calibration, fresh int64) Scale {
	return Scale{Known: &c, Prior: plain, Overhead: c.Overhead(0), Old: c.Raw, Fresh: fresh}
}

func TestScale_BeforeReports(t *testing.T) {
	s := Scale{Prior: Prior{Ratio: 1.5, Margin: 100}, Overhead: 50, Fresh: 1000}
	assert.EqualValues(t, 1550, s.Tokens())
	assert.EqualValues(t, 1705, s.Upper(), "a tenth more")
	assert.EqualValues(t, 50, s.Measured())
	assert.EqualValues(t, 1650, s.Part(1000), "no overhead")
}

func TestScale_ReportIsExact(t *testing.T) {
	p := provider{ratio: 1.3, overhead: 700}
	c := p.first(10_000)
	s := after(c, 0)
	assert.Equal(t, p.count(10_000), s.Tokens())
	assert.Equal(t, p.count(10_000), s.Upper(), "there is no doubt about what was measured")
	assert.Equal(t, p.count(10_000), s.Measured())
	assert.Greater(t, after(c, 100).Upper(), after(c, 100).Tokens(), "there is doubt about what is new")
}

// The ratio is learned from differences, in which the overhead cancels out.
func TestCalibration_Learn(t *testing.T) {
	for _, p := range []provider{{0.8, 0}, {1, 3000}, {1.4, 500}, {2.2, 20_000}} {
		c := p.reports(30, 2000)
		assert.InEpsilon(t, p.ratio, c.Ratio, 0.02, "%+v", p)
		next := after(c, 2000)
		assert.InEpsilon(t, p.count(c.Raw+2000), next.Tokens(), 0.005, "%+v", p)
		assert.GreaterOrEqual(t, next.Upper(), p.count(c.Raw+2000), "%+v", p)
	}
}

// A report that is far from the expected size changes the ratio little.
func TestCalibration_LearnOutlier(t *testing.T) {
	c := provider{ratio: 1}.reports(10, 1000)
	off := c.Learn(Report{Tokens: c.Tokens + 50_000, Raw: c.Raw + 1000, Last: true, Shared: c.Raw, Prior: plain})
	assert.Less(t, off.Ratio, 1.2)
	assert.Greater(t, off.Spread, c.Spread, "and widens the bound")
	large := c.Learn(Report{Tokens: c.Tokens + 250_000, Raw: c.Raw + 5000, Last: true, Shared: c.Raw, Prior: plain})
	assert.Equal(t, off.Ratio, large.Ratio, "however much is new")
	small := c.Learn(Report{Tokens: c.Tokens + 500, Raw: c.Raw + 10, Last: true, Shared: c.Raw, Prior: plain})
	assert.Less(t, small.Ratio, 1.02, "less if hardly anything is new")
}

// Entries that leave the view reduce the measured tokens by their share, and do not
// change the overhead.
func TestScale_WhatLeft(t *testing.T) {
	p := provider{ratio: 1.5, overhead: 4000}
	c := p.first(100)
	c = c.Learn(Report{Tokens: p.count(50_100), Raw: 50_100, Last: true, Shared: 100, Prior: plain})
	s := Scale{Known: &c, Prior: plain, Overhead: c.Overhead(0), Old: 10_000, Gone: 40_100}
	assert.InEpsilon(t, p.count(10_000), s.Tokens(), 0.02)
}

func TestCalibration_Overhead(t *testing.T) {
	c := provider{ratio: 1, overhead: 9000}.reports(5, 1000)
	assert.InDelta(t, 9000, c.Overhead(0), 600)
	assert.EqualValues(t, 500, c.Overhead(500), "at most the limit")
	empty := Calibration{Ratio: 1, Tokens: 80}
	assert.EqualValues(t, 80, empty.Overhead(0), "with an empty view, all tokens are overhead")
}

func TestCalibration_Moved(t *testing.T) {
	c := provider{ratio: 1.5}.reports(10, 1000)
	was := after(c, 2000)
	moved := c.Moved(was, 12_000)
	assert.Equal(t, was.Tokens(), moved.Tokens)
	assert.EqualValues(t, 12_000, moved.Raw)
	assert.Equal(t, round(was.drift()), moved.Doubt, "the estimated part stays in doubt")
	assert.Greater(t, after(moved, 0).Upper(), after(moved, 0).Tokens())
	assert.True(t, moved.Valid())
	gone := Scale{Known: &moved, Prior: plain, Gone: moved.Raw}
	assert.Equal(t, gone.Tokens(), gone.Upper(), "what has left takes its doubt with it")
}

func TestCalibration_Recount(t *testing.T) {
	c := provider{ratio: 1.2, overhead: 300}.reports(10, 1000)
	same := c
	same.Recount(2, 0, 0)
	assert.InEpsilon(t, c.Ratio/2, same.Ratio, 1e-9)
	assert.Equal(t, 2*c.Raw, same.Raw)
	assert.InDelta(t, after(c, 1000).Tokens(), after(same, 2000).Tokens(), 2, "the same text, counted twice as high")
}

func TestCalibration_Valid(t *testing.T) {
	good := provider{ratio: 1}.reports(3, 1000)
	assert.True(t, good.Valid())
	assert.False(t, (*Calibration)(nil).Valid())
	for name, spoil := range map[string]func(*Calibration){
		"ratio too small": func(c *Calibration) { c.Ratio = 0.2 },
		"ratio too large": func(c *Calibration) { c.Ratio = 4.1 },
		"no ratio":        func(c *Calibration) { c.Ratio = math.NaN() },
		"weight":          func(c *Calibration) { c.Weight = -1 },
		"spread":          func(c *Calibration) { c.Spread = 1.1 },
		"seen":            func(c *Calibration) { c.Seen = 1001 },
		"tokens":          func(c *Calibration) { c.Tokens = -1 },
		"raw":             func(c *Calibration) { c.Raw = MaxTotal + 1 },
		"doubt":           func(c *Calibration) { c.Doubt = -1 },
		"small tokens":    func(c *Calibration) { c.SmallTokens = -1 },
		"small raw":       func(c *Calibration) { c.SmallRaw = -1 },
	} {
		c := good
		spoil(&c)
		assert.False(t, c.Valid(), name)
	}
}

// A calibration stays within its bounds for any reports, and Learn does not change its
// receiver.
func TestCalibration_LearnStaysValid(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	size := func() int64 { return r.Int64N(1 << r.IntN(53)) }
	for range long.Or(500, 2000) {
		var c *Calibration
		for range 20 {
			rep := Report{Raw: size(), Last: r.IntN(4) > 0, Overhead: size(), MaxOverhead: size(), Prior: Prior{Ratio: 0.25 + 3.75*r.Float64(), Margin: r.Int64N(1001)}}
			rep.Tokens = max(size(), rep.Raw/MaxRatio)
			if c != nil {
				rep.Shared = r.Int64N(min(c.Raw, rep.Raw) + 1)
			}
			before := c
			var was Calibration
			if c != nil {
				was = *c
			}
			next := c.Learn(rep)
			require.True(t, next.Valid(), "%+v of %+v", next, rep)
			if before != nil {
				require.Equal(t, was, *before)
			}
			s := after(next, size())
			require.GreaterOrEqual(t, s.Upper(), s.Tokens(), "%+v", s)
			c = &next
		}
	}
}

// Weigh grows with the view, and Holds and Frees are its exact inverses, for any
// calibration and any view.
func TestScale_Inverses(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	upTo := func(n int64) int64 { return r.Int64N(max(n, 0) + 1) }
	for range long.Or(300, 1000) {
		s := Scale{
			Prior:    Prior{Ratio: []float64{1, 0.25, 1, 4}[r.IntN(4)], Margin: 10 * r.Int64N(101)},
			Overhead: upTo(50_000), Fresh: upTo(100_000),
		}
		if r.IntN(3) > 0 {
			k := &Calibration{Ratio: 0.25 + 3.75*r.Float64(), Spread: r.Float64() * r.Float64() * r.Float64(), Raw: upTo(200_000), Tokens: upTo(300_000), Doubt: upTo(5000)}
			s.Known = k
			s.Overhead = upTo(k.Tokens)
			s.Old = upTo(k.Raw)
			s.Gone = k.Raw - s.Old
		}
		s.KeptOld, s.KeptFresh = upTo(s.Old), upTo(s.Fresh)
		raw := s.Old + s.Fresh
		require.Equal(t, s.Upper(), s.Weigh(raw), "%+v", s)
		kept := s
		kept.Old, kept.Gone, kept.Fresh = s.KeptOld, s.Gone+s.Old-s.KeptOld, s.KeptFresh
		require.Equal(t, kept, s.Kept(), "%+v", s)
		require.Equal(t, kept.Upper(), s.Weigh(s.KeptOld+s.KeptFresh), "%+v", s)
		last := s.Weigh(0)
		for at := int64(0); at < raw+50_000; at += 1 + r.Int64N(5000) {
			now := s.Weigh(at)
			held := s.Holds(now)
			if now < last || held < at || s.Weigh(held) > now || s.Weigh(held+1) <= now {
				t.Fatalf("%d raw tokens weigh %d, fewer weigh %d, and Holds is %d, of %+v", at, now, last, held, s)
			}
			last = now
		}
		require.GreaterOrEqual(t, s.Frees(0), int64(0), "%+v", s)
		free := upTo(s.Upper() - s.Weigh(0))
		went := s.Frees(free)
		require.LessOrEqual(t, s.Weigh(raw-went), s.Upper()-free)
		if went > 0 {
			require.Greater(t, s.Weigh(raw-went+1), s.Upper()-free, "%d raw tokens are more than needed", went)
		}
	}
}

// No view of n raw tokens with the kept tokens weighs more than Worst(n), and the kept
// tokens alone weigh exactly their Worst.
func TestScale_Worst(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	upTo := func(n int64) int64 { return r.Int64N(max(n, 0) + 1) }
	for range 3000 {
		k := &Calibration{Ratio: 0.25 + 3.75*r.Float64(), Spread: r.Float64() * r.Float64(), Raw: upTo(3000), Tokens: upTo(9000), Doubt: upTo(500)}
		s := Scale{Prior: plain, Known: k, Overhead: upTo(k.Tokens), Old: upTo(k.Raw), Fresh: upTo(3000)}
		s.Gone = k.Raw - s.Old
		s.KeptOld, s.KeptFresh = upTo(s.Old), upTo(s.Fresh)
		require.Equal(t, s.Kept().Upper(), s.Worst(s.KeptOld+s.KeptFresh), "%+v", s)
		last := int64(0)
		for n := int64(0); n < 4000; n += 1 + r.Int64N(800) {
			worst := s.Worst(n)
			require.GreaterOrEqual(t, worst, last, "%d raw tokens of %+v", n, s)
			last = worst
			held := s.HoldsWorst(worst)
			require.GreaterOrEqual(t, held, n)
			require.LessOrEqual(t, s.Worst(held), worst)
			if n < s.KeptOld+s.KeptFresh {
				continue
			}
			any := s // any view of n raw tokens
			any.Old = s.KeptOld + upTo(min(s.Old, n-s.KeptFresh)-s.KeptOld)
			any.Gone, any.Fresh = k.Raw-any.Old, n-any.Old
			require.LessOrEqual(t, any.Upper(), worst, "%+v of %+v", any, s)
		}
	}
}

func TestScale_Without(t *testing.T) {
	s := Scale{Prior: plain, Old: 100, Fresh: 50}
	assert.Equal(t, Scale{Prior: plain, Old: 100, Fresh: 20}, s.Without(30), "the newest are removed first")
	assert.Equal(t, Scale{Prior: plain, Old: 90}, s.Without(60))
	assert.Equal(t, Scale{Prior: plain}, s.Without(1000))
	assert.Equal(t, s, s.Without(-1))
}

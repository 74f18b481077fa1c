package modeltest

import (
	"math"
	"slices"

	"github.com/seed-c1b73e60/convo"
)

// A calibration is the state learned from usage reports about one model. The fields are
// those of the JSON of a snapshot.
type calibration struct {
	ratio, weight, spread, seen float64
	tokens, raw, doubt          int
	smallTokens, smallRaw       int

	at *view // the view of the last report; nil: the view of another History
}

// overhead returns the tokens of a request in addition to its messages.
func (c *calibration) overhead(most int) int {
	if c.raw == 0 {
		return min(c.tokens, most)
	}
	small := c.smallTokens - round(c.ratio*float64(c.smallRaw))
	return max(min(small, c.tokens-round(c.ratio/2*float64(c.raw)), most), 0)
}

// mostOverhead returns the upper limit of the overhead.
func mostOverhead(l convo.Limits) int {
	if l.Window > 0 {
		return max(l.Tools, l.Window/2)
	}
	if l.High > 0 {
		return max(l.Tools, l.High/2)
	}
	return math.MaxInt / 16
}

func round(x float64) int { return int(math.Round(x)) }

// A scale weighs a view. Of its raw tokens, old were also in the view of the last report,
// and fresh were not; gone were in that view and have left since.
type scale struct {
	known            *calibration // nil: nothing was reported
	overhead         int
	old, gone, fresh int
}

// ratios returns the tokens per raw token of each kind.
func (s scale) ratios() (old, fresh float64) {
	switch {
	case s.known == nil:
		return 1, 1
	case s.known.raw == 0:
		return s.known.ratio, s.known.ratio
	}
	return float64(s.known.tokens-s.overhead) / float64(s.known.raw), s.known.ratio
}

// tokens is Estimate.Tokens.
func (s scale) tokens() int {
	old, fresh := s.ratios()
	return s.overhead + round(old*float64(s.old)+fresh*float64(s.fresh))
}

// drift returns the number of tokens added or removed since the last report.
func (s scale) drift() float64 {
	old, fresh := s.ratios()
	d := fresh*float64(s.fresh) + 0.4*old*float64(min(s.gone, s.old))
	if s.known == nil {
		return d
	}
	doubt := float64(s.known.doubt)
	if s.known.raw > 0 {
		doubt = doubt * float64(s.old) / float64(s.known.raw)
	}
	return d + doubt
}

// upper is Estimate.Upper.
func (s scale) upper() int {
	if s.known == nil {
		return s.tokens() + (s.tokens()+7)/8
	}
	old, fresh := s.ratios()
	margin := min(max(3.5*math.Sqrt(s.known.spread), 0.02), 0.45)
	n := old*float64(s.old) + fresh*float64(s.fresh) + margin*(s.drift()+min(s.drift(), 400))
	return s.overhead + int(math.Ceil(n-1e-6))
}

// without returns the scale for the view without the newest raw tokens.
func (s scale) without(raw int) scale {
	for ; raw > 0 && s.fresh > 0; raw-- {
		s.fresh--
	}
	s.old = max(s.old-max(raw, 0), 0)
	return s
}

// shared returns the raw tokens that two views have in common.
func (v *view) shared(before *view) int {
	n := 0
	entries := slices.Concat(before.sys, before.list)
	for _, e := range slices.Concat(v.sys, v.list) {
		if slices.ContainsFunc(entries, func(b entry) bool { return b.looks() == e.looks() }) {
			n += e.msg.tokens(v.count)
		}
	}
	if v.summary != "" && before.summary != "" && v.summaryUID == before.summaryUID {
		n += v.summaryTokens()
	}
	if len(v.ephemeral) > 0 && v.ephemeralUID == before.ephemeralUID {
		n += v.ephemeralTokens()
	}
	return n
}

// scale returns the scale for a view.
func (c *calibration) scale(v *view, most int) scale {
	raw := v.raw()
	if c == nil {
		return scale{fresh: raw}
	}
	old := v.shared(c.at)
	return scale{known: c, overhead: c.overhead(most), old: old, gone: c.raw - old, fresh: raw - old}
}

// scale returns the scale for the current view.
func (m *model) scale(l convo.Limits) scale { return m.scaleOf(&m.view, l) }

// floorUpper returns the upper bound of a request with only the floor.
func (m *model) floorUpper(l convo.Limits) int {
	only := m.view.floor()
	return m.scaleOf(&only, l).upper()
}

// scaleOf returns the scale for a view that was derived from the current one.
func (m *model) scaleOf(v *view, l convo.Limits) scale {
	s := m.current.scale(v, mostOverhead(l))
	if m.current == nil {
		s.overhead = m.assumed(l)
	}
	return s
}

// assumed returns the overhead to assume for a model without a report: the overhead of
// the model last reported on, but not less than in the limits. If the limits were set
// since, only they count.
func (m *model) assumed(l convo.Limits) int {
	if n := len(m.order); n > 0 && !m.toolsSet {
		return max(m.tools, m.learned[m.order[n-1]].overhead(mostOverhead(l)))
	}
	return m.tools
}

// measured is Estimate.Measured.
func (m *model) measured(l convo.Limits) int {
	if m.sent == nil {
		return 0
	}
	s := m.scale(l)
	s.fresh = 0
	return s.tokens()
}

// report learns from a usage report about the snapshot at. It returns false if the report
// is ignored because it is impossible or implausible.
func (m *model) report(at *snapshot, input int, l convo.Limits) bool {
	most := mostOverhead(l)
	raw := at.view.raw()
	if input < raw/4 {
		return false
	}
	if at.window > 0 && input > at.window {
		return false
	}
	if (l.Window > 0 || l.High > 0) && input > most+4*raw {
		first := m.implausible == nil || m.implausible.model != at.model || m.implausible.real.Version() == at.real.Version()
		if first {
			m.implausible = at
			return false
		}
	} else if m.implausible != nil && m.implausible.model == at.model {
		m.implausible = nil
	}
	last := m.learned[at.model]
	if at.model == m.name {
		last = m.current
	}
	next := calibration{ratio: 1, weight: 150, spread: 0.075 * 0.075, seen: 1, smallRaw: math.MaxInt}
	if last != nil {
		next = *last
	}
	if last != nil && last.at != nil {
		next.learn(last.scale(&at.view, most), input)
	}
	if excess := float64(input-m.assumed(l)-4000) - float64(raw); last == nil && excess > 0 && raw > 0 {
		part := float64(raw) / math.Hypot(float64(raw), 30_000)
		next.ratio = min(1+part*part*excess/float64(raw), 2)
	}
	if raw > 0 {
		most := float64(input) / float64(raw)
		if last != nil {
			most = max(most, 0.9*last.ratio)
		}
		next.ratio = max(min(next.ratio, most), 0.25)
	}
	if raw/2 <= next.smallRaw {
		next.smallTokens, next.smallRaw = input, raw
	}
	v := at.view.clone()
	next.tokens, next.raw, next.doubt, next.at = input, raw, 0, &v
	m.learned[at.model], m.toolsSet = &next, false
	// Only the two newest calibrations keep their view.
	m.order = slices.DeleteFunc(m.order, func(name string) bool { return name == at.model })
	if n := len(m.order); n > 1 {
		older := *m.learned[m.order[n-2]]
		older.at = nil
		m.learned[m.order[n-2]] = &older
	}
	m.order = append(m.order, at.model)
	if at.model == m.name {
		m.current, m.sent = &next, at
	}
	return true
}

// learn adjusts the spread and the ratio of c by the error of the estimate of a request.
// s is the scale of that request before the report.
func (c *calibration) learn(s scale, input int) {
	residual := float64(input - s.tokens())
	if d := s.drift(); d > 0 {
		z := min(max(residual/(d+min(d, 400)), -0.5), 0.5)
		c.seen = c.seen*0.95 + 1
		c.spread = (c.spread*(c.seen-1) + z*z) / c.seen
	}
	if s.fresh > 0 && s.gone <= s.fresh/10 {
		sample, weight := c.ratio+residual/float64(s.fresh), float64(s.fresh)
		if sample < c.ratio/2.5 || sample > c.ratio*2.5 {
			sample, weight = min(max(sample, c.ratio/2.5), c.ratio*2.5), min(weight, 300)
		}
		before := max(c.weight*0.97, 150)
		c.weight = before + weight
		c.ratio = min(max((c.ratio*before+sample*weight)/(before+weight), 0.25), 4)
	}
}

// moved returns c for a History that begins with the view of s.
func (c *calibration) moved(s scale, raw int) *calibration {
	next := *c
	next.tokens, next.raw, next.doubt = s.tokens(), raw, round(s.drift())
	return &next
}

// anchor applies the calibration of the model in use to the current view.
func (m *model) anchor(l convo.Limits) {
	m.current = m.learned[m.name]
	if m.current == nil || m.current.at != nil {
		return
	}
	raw := m.raw()
	m.current = m.current.moved(scale{known: m.current, overhead: m.current.overhead(mostOverhead(l)), old: raw}, raw)
	m.current.doubt = m.current.tokens
	v := m.view.clone()
	m.current.at = &v
}

// carried returns the calibrations for a History that begins with the current view.
func (m *model) carried(l convo.Limits) map[string]*calibration {
	out := map[string]*calibration{}
	for name, c := range m.learned {
		own := *c
		if name == m.name && m.current != nil {
			v := m.view.clone()
			v.ephemeral = nil
			own = *m.current.moved(m.current.scale(&v, mostOverhead(l)), v.raw())
		}
		own.at = nil
		out[name] = &own
	}
	return out
}

// resume continues with the result of carried. The entries have new uids.
func (m *model) resume(learned map[string]*calibration, l convo.Limits) {
	m.learned, m.toolsSet = learned, false
	if c := learned[m.name]; c != nil {
		v := m.view.clone()
		c.raw, c.at = m.raw(), &v
	}
	m.anchor(l)
}

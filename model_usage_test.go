package convo_test

import (
	"math"
	"slices"

	"github.com/seed-c1b73e60/convo"
)

// A mKnown is what reports have taught the model of one model.
type mKnown struct {
	ratio, weight, spread, seen float64
	tokens, raw, doubt          int
	smallTokens, smallRaw       int
	at                          *mView // nil: of another history
}

func (k *mKnown) overhead(most int) int {
	if k.raw == 0 {
		return min(k.tokens, most)
	}
	small := k.smallTokens - mRound(k.ratio*float64(k.smallRaw))
	return max(min(small, k.tokens-mRound(k.ratio/2*float64(k.raw)), most), 0)
}

// mostOverhead is the most that is taken for overhead under the limits.
func mostOverhead(l convo.Limits) int {
	if l.Window > 0 {
		return max(l.Overhead, l.Window/2)
	}
	if l.High > 0 {
		return max(l.Overhead, l.High/2)
	}
	return math.MaxInt / 16
}

// A mScale weighs a view: old of it was measured, fresh was not, gone was and
// is there no longer.
type mScale struct {
	k                *mKnown
	overhead         int
	old, gone, fresh int
}

func mRound(x float64) int { return int(math.Round(x)) }

func (w mScale) ratios() (old, fresh float64) {
	switch {
	case w.k == nil:
		return 1, 1
	case w.k.raw == 0:
		return w.k.ratio, w.k.ratio
	}
	return float64(w.k.tokens-w.overhead) / float64(w.k.raw), w.k.ratio
}

func (w mScale) tokens() int {
	old, fresh := w.ratios()
	return w.overhead + mRound(old*float64(w.old)+fresh*float64(w.fresh))
}

func (w mScale) drift() float64 {
	old, fresh := w.ratios()
	d := fresh*float64(w.fresh) + old*float64(min(w.gone, w.old))
	if w.k != nil {
		d += float64(w.k.doubt)
	}
	return d
}

func (w mScale) upper() int {
	if w.k == nil {
		return w.tokens() + (w.tokens()+7)/8
	}
	old, fresh := w.ratios()
	kappa := min(max(3.5*math.Sqrt(w.k.spread), 0.02), 0.45)
	n := old*float64(w.old) + fresh*float64(w.fresh) + kappa*(w.drift()+min(w.drift(), 400))
	return w.overhead + int(math.Ceil(n-1e-6))
}

// weigh weighs a view of so many raw tokens, of which the oldest went.
func (w mScale) weigh(raw int) int {
	for w.old+w.fresh > raw && w.old > 0 {
		w.old--
		w.gone++
	}
	w.fresh = raw - w.old
	return w.upper()
}

// without is w before so many raw tokens were appended.
func (w mScale) without(raw int) mScale {
	for ; raw > 0 && w.fresh > 0; raw-- {
		w.fresh--
	}
	w.old = max(w.old-max(raw, 0), 0)
	return w
}

// shared is the raw tokens that two views share.
func (v *mView) shared(old *mView) int {
	n := 0
	was := slices.Concat(old.sys, old.list)
	for _, e := range slices.Concat(v.sys, v.list) {
		if slices.ContainsFunc(was, func(o mEntry) bool { return o.uid == e.uid }) {
			n += e.msg.tokens()
		}
	}
	if v.sum != "" && old.sum != "" && v.sumUID == old.sumUID {
		n += v.sumTokens()
	}
	if len(v.eph) > 0 && v.ephUID == old.ephUID {
		n += v.ephTokens()
	}
	return n
}

// scale weighs a view.
func (k *mKnown) scale(v *mView, most int) mScale {
	raw := v.raw()
	if k == nil {
		return mScale{fresh: raw}
	}
	old := v.shared(k.at)
	return mScale{k: k, overhead: k.overhead(most), old: old, gone: k.raw - old, fresh: raw - old}
}

// scale weighs the view under the limits in force.
func (m *model) scale(l convo.Limits) mScale {
	w := m.now.scale(&m.mView, mostOverhead(l))
	if m.now == nil {
		w.overhead = m.guess
	}
	return w
}

func (m *model) measured(l convo.Limits) int {
	if m.sent == nil {
		return 0
	}
	w := m.scale(l)
	w.fresh = 0
	return w.tokens()
}

// report takes in a usage report on at, unless it cannot be.
func (m *model) report(at *mSnap, input int, l convo.Limits) bool {
	most := mostOverhead(l)
	input = max(input, at.view.raw()/4)
	bounded := l.Window > 0 || l.High > 0
	if bounded && (input > most+4*at.view.raw() || l.Window > 0 && input > l.Window) {
		first := m.doubted == nil || m.doubted.model != at.model || m.doubted.real.Version() == at.real.Version()
		if first {
			m.doubted = at
			return false
		}
	} else if m.doubted != nil && m.doubted.model == at.model {
		m.doubted = nil
	}
	last := m.known[at.model]
	if at.model == m.model {
		last = m.now
	}
	raw := at.view.raw()
	next := mKnown{ratio: 1, weight: 150, spread: 0.075 * 0.075, seen: 1, smallRaw: math.MaxInt}
	if last != nil {
		next = *last
	}
	if last != nil && last.at != nil {
		w := last.scale(&at.view, most)
		residual := float64(input - w.tokens())
		if d := w.drift(); d > 0 {
			z := min(max(residual/(d+min(d, 400)), -0.5), 0.5)
			next.seen = next.seen*0.95 + 1
			next.spread = (next.spread*(next.seen-1) + z*z) / next.seen
		}
		if w.fresh > 0 && w.gone <= w.fresh/10 {
			sample, weight := next.ratio+residual/float64(w.fresh), float64(w.fresh)
			if sample < next.ratio/2.5 || sample > next.ratio*2.5 {
				sample, weight = min(max(sample, next.ratio/2.5), next.ratio*2.5), min(weight, 300)
			}
			old := max(next.weight*0.97, 150)
			next.weight = old + weight
			next.ratio = min(max((next.ratio*old+sample*weight)/(old+weight), 0.25), 4)
		}
	}
	if excess := float64(input-m.guess-4000) - float64(raw); last == nil && excess > 0 && raw > 0 {
		part := float64(raw) / math.Hypot(float64(raw), 30_000)
		next.ratio = min(1+part*part*excess/float64(raw), 2)
	}
	if raw > 0 {
		next.ratio = max(min(next.ratio, float64(input)/float64(raw)), 0.25)
	}
	if raw/2 <= next.smallRaw {
		next.smallTokens, next.smallRaw = input, raw
	}
	view := at.view.copy()
	next.tokens, next.raw, next.doubt, next.at = input, raw, 0, &view
	m.known[at.model] = &next
	m.order = slices.DeleteFunc(m.order, func(name string) bool { return name == at.model })
	if n := len(m.order); n > 1 {
		older := *m.known[m.order[n-2]]
		older.at = nil
		m.known[m.order[n-2]] = &older
	}
	m.order = append(m.order, at.model)
	if at.model == m.model {
		m.now, m.sent = &next, at
	}
	return true
}

// moved is k for a history that begins with the view that w weighs.
func (k *mKnown) moved(w mScale, raw int) *mKnown {
	next := *k
	next.tokens, next.raw, next.doubt = w.tokens(), raw, mRound(w.drift())
	return &next
}

// anchor takes what is known of the model for the view as it is.
func (m *model) anchor(l convo.Limits) {
	m.now = m.known[m.model]
	if m.now == nil || m.now.at != nil {
		return
	}
	raw := m.raw()
	m.now = m.now.moved(mScale{k: m.now, overhead: m.now.overhead(mostOverhead(l)), old: raw}, raw)
	m.now.doubt = m.now.tokens
	view := m.mView.copy()
	m.now.at = &view
}

// carried is what is known, for another history that begins with the view.
func (m *model) carried(l convo.Limits) map[string]*mKnown {
	out := map[string]*mKnown{}
	for name, k := range m.known {
		own := *k
		if name == m.model && m.now != nil {
			view := m.mView.copy()
			view.eph = nil
			own = *m.now.moved(m.now.scale(&view, mostOverhead(l)), view.raw())
		}
		own.at = nil
		out[name] = &own
	}
	return out
}

// resume goes on with what was carried; the entries have new uids.
func (m *model) resume(known map[string]*mKnown, l convo.Limits) {
	m.known = known
	if k := known[m.model]; k != nil {
		view := m.mView.copy()
		k.raw, k.at = m.raw(), &view
	}
	m.anchor(l)
}

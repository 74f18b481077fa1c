package convo

import (
	"cmp"
	"fmt"

	"github.com/seed-c1b73e60/convo/internal/calibrate"
	"github.com/seed-c1b73e60/convo/internal/overflow"
)

// A meter knows how large the next request may be, and which figures of providers to believe.
// How large that request is follows from its view alone; see state.scale.
type meter struct {
	now      marks
	chosen   bool   // SetLimits or SetModel has set the limits, so they are saved
	named    int    // the limit that a provider's error named; 0: none
	reserved sum128 // by MakeRoom, in the window

	implausible *implausible // the last report, if it was implausible and ignored
	rising      int          // usage reports in a row above the estimate
	overQuota   refusedSize  // of the last request that exceeded a quota alone
	warned      warnings
}

// An implausible is a report that was ignored because it was implausible.
type implausible struct {
	model   string
	version uint64 // of the snapshot that the report was for
}

// A refusedSize is the size of a request in the error about it, and its raw tokens.
type refusedSize struct {
	total int
	raw   int64
}

// warnings are those that are given once: of a report that was too low, of many in a row above
// the estimate, and of a window that is a guess.
type warnings struct{ low, rising, assumed bool }

// meterFigures are what a record holds of a meter.
type meterFigures struct {
	chosen bool   // SetLimits or SetModel has set limits
	limits Limits // those in force, if chosen is set
	named  namedLimit
}

// A namedLimit is a limit that Recover found in an error, in tokens of the whole request, with
// the limit that was set at the time.
type namedLimit struct{ limit, of int }

// newMeter returns a meter for limits that have their defaults.
func newMeter(l Limits) meter {
	m := meter{now: marks{set: l}}
	m.update()
	return m
}

// marks returns the limits in force. They change with the next change of m.
func (m *meter) marks() *marks { return &m.now }

// setModel notes that the next requests go to another model, which ends the limit that a
// provider named. If l is not nil, it replaces the limits, and has its defaults.
func (m *meter) setModel(l *Limits) {
	if l != nil {
		m.now.set, m.chosen = *l, true
	}
	m.named = 0
	m.update()
}

// reserve lowers the limit by n tokens, or raises it by -n tokens that were reserved.
func (m *meter) reserve(n int) {
	if n > 0 {
		m.reserved.add(int64(n))
	} else {
		m.reserved.sub(-int64(n))
	}
	m.update()
}

// saved returns the figures for a record.
func (m *meter) saved() meterFigures {
	f := meterFigures{chosen: m.chosen}
	if m.chosen {
		f.limits = m.now.set
	}
	if m.named > 0 {
		f.named = namedLimit{m.named, clampInt(m.now.set.most())}
	}
	return f
}

// adoptNamed adopts a saved bound, unless the limits have changed since it was found.
func (m *meter) adoptNamed(b namedLimit) {
	if b.limit > 0 && b.of == clampInt(m.now.set.most()) {
		m.named = b.limit
		m.update()
	}
}

// update computes the marks.
func (m *meter) update() {
	limits := m.now.set
	if m.named > 0 {
		limits = limits.within(m.named)
	}
	now := marks{set: m.now.set, limit: noMark, minFree: int64(limits.MinFree)}
	if limits.Window > 0 {
		now.limit = max(int64(limits.limit())-m.reserved.int64(), 0)
	}
	now.high, now.soft, now.low = now.limit, now.limit, now.limit
	if limits.High > 0 {
		now.high = min(now.limit, int64(limits.High))
		now.soft = min(now.limit, int64(limits.Soft))
		now.low = min(now.limit, int64(limits.Low))
	}
	m.now = now
}

// judge reports whether to ignore a report of that many tokens for the request made from at.
// doubt says why, if that is to be logged.
func (m *meter) judge(at *Snapshot, tokens int64) (ignore bool, doubt error) {
	least, most := at.raw()/calibrate.MaxRatio, calibrate.MaxRatio*at.raw()+m.now.set.overheadCap()
	fault := func(format string, args ...any) (bool, error) {
		return true, &ValueError{Name: "Usage.Input", Value: min(tokens, maxTotal), Want: fmt.Sprintf(format, args...)}
	}
	switch window := at.setting.window; {
	case tokens < least && m.warned.low:
		return true, nil
	case tokens < least:
		m.warned.low = true
		return fault("at least %d for a view of %d raw tokens: include the tokens that the provider read from its cache; later figures that are too low are ignored without a warning", least, at.raw())
	case window > 0 && min(tokens, maxTotal) > window:
		return fault("at most Limits.Window, which is %d: report each request alone, or raise Limits.Window", window)
	}
	model := at.known().model
	same := m.implausible != nil && m.implausible.model == model
	switch {
	case m.now.set.most() == 0 || min(tokens, maxTotal) <= most:
		if same {
			m.implausible = nil
		}
		return false, nil
	case same && m.implausible.version != at.version:
		return false, nil // accept the second one in a row
	}
	m.implausible = &implausible{model, at.version}
	return fault("at most %d for a view of %d raw tokens, unless the next report says so too", most, at.raw())
}

// manyRising is the number of consecutive reports, each above the estimate by more than a
// hundredth, that causes a warning.
const manyRising = 12

// noteReport notes a report that was not ignored, and whether the estimate was below it.
func (m *meter) noteReport(above bool) {
	m.rising++
	if !above {
		m.rising = 0
	}
}

// due returns the warnings that are due now, each once: of reports that keep growing faster
// than the requests and, if the caller has set limits, of a window that is a guess.
func (m *meter) due(isSet bool) (due warnings) {
	due.assumed = isSet && m.now.set.Assumed && !m.warned.assumed
	due.rising = m.rising == manyRising && !m.warned.rising
	m.warned.assumed, m.warned.rising = m.warned.assumed || due.assumed, m.warned.rising || due.rising
	return due
}

// exceedsQuota reports whether no compaction helps after an error with those figures, because
// the answer that a request asks for exceeds a quota. That follows from our estimate of the
// request, which has that many raw tokens. It also follows if a longer request was refused
// with the same size.
func (m *meter) exceedsQuota(f overflow.Figures, raw, ours int64) bool {
	before, total := m.overQuota, int64(f.Total)
	m.overQuota = refusedSize{f.Total, raw}
	return f.Total == before.total && raw < before.raw || total-ours >= int64(f.Limit) && total/2 > ours
}

// setNamed bounds the marks by the limit in the figures of an error about a request of ours
// tokens by our estimate. It returns that limit, or 0 if it does not bound them.
func (m *meter) setNamed(f overflow.Figures, ours int64) (named int) {
	room := f.Limit - f.Output
	if f.Output == 0 && m.now.set.Window > f.Limit {
		room -= int(int64(m.now.set.Reserve) * int64(f.Limit) / int64(m.now.set.Window)) // the answer needs its share
	}
	if f.Quota {
		room = min(room, clampInt(int64(f.Limit)*ours/int64(f.Request()))) // the request has the tokens that the answer may have
	}
	switch {
	case f.Limit == 0, f.Limit >= f.Refused(), room <= 0:
		return 0
	case int64(f.Limit) < cmp.Or(m.now.set.most(), ours)/2 && !f.Quota: // that of a small model which a gateway fell back to
		return 0
	case int64(room) >= m.now.limit:
		return 0
	}
	m.named = room
	m.update()
	return f.Limit
}

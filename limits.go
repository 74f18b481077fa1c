package convo

import (
	"cmp"
	"math"

	"github.com/seed-c1b73e60/convo/internal/limits"
	"github.com/seed-c1b73e60/convo/internal/overflow"
	"github.com/seed-c1b73e60/convo/internal/sums"
)

// Limits says how large a request may be. All sizes are in tokens of the whole request,
// and Estimate.Upper is compared with them. With the defaults in place, Low < Soft <=
// High <= Window - Reserve and MinFree <= Soft - Low must hold. A negative value is an
// error, except for Reserve.
type Limits struct {
	Window  int // the context window of the model; 0: there is no limit
	Reserve int // kept free for the answer in Window; 0: an eighth of it, at most 16,000; negative: none

	// Tools is the size of what a request carries besides messages and the tools of SetTools,
	// such as definitions that the program hands to an SDK; ToolTokens of package wire counts
	// them. It is a first guess, which usage reports correct. The figure that they have shown
	// for one model is assumed for the next, if it is more.
	Tools int

	High int // Prepare compacts above it; 0: Window - Reserve; may be set without a Window
	Low  int // the size that a compaction aims at; 0: half of High
	Soft int // CompactInBackground compacts above it; 0: midway between Low and High

	// MinFree is the least that a compaction must free to be worth its cost. 0: a quarter of
	// High - Low, at most Soft - Low; 1,000 with neither Window nor High.
	MinFree int

	// Assumed says that Window is a guess, because that of the model is not known. Ratios
	// sets it. The log says so once, and Status always does.
	Assumed bool

	wrong *limits.Ratios // given to Ratios; nil: they were in range
}

// assumedWindow is the window that Ratios assumes for a model whose window is not
// known.
const assumedWindow = 128_000

// Ratios returns limits for a model with the given window, whose marks soft and high are shares
// of the window. 0 means 0.70 for soft and 0.85 for high, so Ratios(200_000, 0, 0) is
// Limits{Window: 200_000, Soft: 140_000, High: 170_000}. The other fields have their defaults,
// except that Low is half of Soft if half of High is not below Soft, and Reserve is no more
// than High leaves of the window. All fields may be changed: in a large window, a High and a
// Soft of fewer tokens compact earlier. For a mark below soft at which only old tool results
// are cleared, use [When].
//
// If window is 0 or less, it is taken to be 128,000, and Assumed is set. Soft must be more than
// 0 and less than high, and high at most 1; otherwise the function given the limits returns a
// [*ValueError] that names the arguments.
func Ratios(window int, soft, high float64) Limits {
	l := Limits{Window: window}
	if window <= 0 {
		l.Window, l.Assumed = assumedWindow, true
	}
	r := limits.Ratios{Soft: cmp.Or(soft, 0.70), High: cmp.Or(high, 0.85)}
	if len(r.Faults(refuse)) > 0 {
		l.wrong = &r
		return l
	}
	return l.with(r.Of(l.Window))
}

// sizes returns the sizes in l.
func (l Limits) sizes() limits.Limits {
	return limits.Limits{Window: l.Window, Reserve: l.Reserve, Tools: l.Tools, High: l.High, Low: l.Low, Soft: l.Soft, MinFree: l.MinFree}
}

// with returns l with other sizes, but with its own Tools.
func (l Limits) with(s limits.Limits) Limits {
	l.Window, l.Reserve, l.High, l.Low, l.Soft, l.MinFree = s.Window, s.Reserve, s.High, s.Low, s.Soft, s.MinFree
	return l
}

// most returns the limit, or High without a Window; 0 with neither.
func (l Limits) most() int64 { return l.sizes().Most() }

// withDefaults returns l with its defaults in place and Reserve never negative,
// and a *ValueError for each fault.
func (l Limits) withDefaults() (_ Limits, faults []error) {
	if l.wrong != nil {
		return l, l.wrong.Faults(refuse)
	}
	sizes, faults := l.sizes().WithDefaults(refuse)
	return l.with(sizes), faults
}

// within returns k for requests with these limits. If tools is true, Limits.Tools was set
// with them.
func (k knowledge) within(l Limits, tools bool) *knowledge {
	k.cap, k.tools = l.sizes().MaxOverhead(), min(int64(l.Tools), maxTotal)
	k.toolsSet = k.toolsSet || tools
	return &k
}

// marks are the limits that are compared with the size of the whole request, in tokens: those
// that were set, less what MakeRoom has reserved, and within the limit that a provider named. A
// mark that does not exist is noMark.
type marks struct {
	limit, high, soft, low int64
	minFree                int64
	set                    Limits // with defaults
}

const (
	noMark    = limits.None
	noVersion = math.MaxUint64
)

// orZero returns a mark for a Status, where 0 says that there is none. given is the
// limit that it follows from; 0: none.
func orZero(mark int64, given int) int {
	if mark == noMark && given == 0 {
		return 0
	}
	return clampInt(mark)
}

// A meter knows how large the next request may be, and which figures of providers to believe.
// How large that request is follows from its view alone; see state.scale.
type meter struct {
	now      marks
	chosen   bool     // SetLimits or SetModel has set the limits, so they are saved
	named    int      // the limit that a provider's error named; 0: none
	reserved sums.Sum // by MakeRoom, in the window

	judging   limits.Judge
	rising    int         // usage reports in a row above the estimate
	overQuota refusedSize // of the last request that exceeded a quota alone
	warned    warnings
}

// A refusedSize is the size of a request in the error about it, and its raw tokens.
type refusedSize struct {
	total int
	raw   int64
}

// warnings are those that are given once: of many reports in a row above the estimate, and of a
// window that is a guess.
type warnings struct{ rising, assumed bool }

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
	m.reserved.Add(int64(n))
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
	now := &m.now
	now.limit, now.high, now.soft, now.low, now.minFree = now.set.sizes().Marks(m.named, m.reserved.Int64())
}

// judge reports whether to ignore a report of that many tokens for the request made from at.
// doubt says why, if that is to be logged.
func (m *meter) judge(at *Snapshot, tokens int64) (ignore bool, doubt error) {
	claim := limits.Claim{Model: at.known().model, Version: at.version, Tokens: tokens, Raw: at.raw()}
	claim.Window = int64(at.setting.Window)
	ignore, want := m.judging.Ignores(claim, m.now.set.sizes())
	if want != "" {
		doubt = &ValueError{Name: "Usage.Input", Value: min(tokens, maxTotal), Want: want}
	}
	return ignore, doubt
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

// setNamed bounds the marks by the limit in the figures of an error about a request that
// weighs ours tokens by the estimate of the History. It returns that limit, or 0 if it does
// not bound them.
func (m *meter) setNamed(f overflow.Figures, ours int64) (named int) {
	room := m.now.set.sizes().Room(f, ours, m.now.limit)
	if room == 0 {
		return 0
	}
	m.named = room
	m.update()
	return f.Limit
}

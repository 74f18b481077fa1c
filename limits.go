package convo

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/calibrate"
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

	wrong *ratios // given to Ratios; nil: they were in range
}

// assumedWindow is the window that Ratios assumes for a model whose window is not
// known.
const assumedWindow = 128_000

// ratios are marks as shares of a window.
type ratios struct{ soft, high float64 }

// Ratios returns limits for a model with the given window, whose marks soft and high are
// shares of the window. 0 means 0.70 for soft and 0.85 for high, so Ratios(200_000, 0, 0)
// is Limits{Window: 200_000, Soft: 140_000, High: 170_000}. The other fields have their
// defaults, except that Low is half of Soft if half of High is not below Soft, and
// Reserve is no more than High leaves of the window. All fields may be changed: in a large
// window, a High and a Soft of fewer tokens compact earlier, because long requests cost more
// and are read less well. For a mark below soft at which only old tool results are cleared,
// use [When].
//
// If window is 0 or less, it is taken to be 128,000, and Assumed is set. Soft must be
// more than 0 and less than high, and high at most 1; otherwise the function given the
// limits returns a [*ValueError] that names the arguments.
func Ratios(window int, soft, high float64) Limits {
	l := Limits{Window: window}
	if window <= 0 {
		l.Window, l.Assumed = assumedWindow, true
	}
	r := ratios{soft: cmp.Or(soft, 0.70), high: cmp.Or(high, 0.85)}
	if len(r.faults()) > 0 {
		l.wrong = &r
		return l
	}
	share := func(ratio float64) int {
		if ratio == 1 {
			return l.Window
		}
		return int(float64(l.Window) * ratio)
	}
	l.Soft, l.High = share(r.soft), share(r.high)
	if l.High/2 >= l.Soft {
		l.Low = l.Soft / 2
	}
	l.Reserve = cmp.Or(min(defaultReserve(l.Window), l.Window-l.High), -1)
	return l
}

// faults returns a *ValueError for each ratio that is out of range.
func (r ratios) faults() (faults []error) {
	isShare := func(n float64) bool { return 0 < n && n <= 1 }
	faults = refuse(faults, !isShare(r.high), "high of Ratios", r.high, "more than 0 and at most 1, a share of the window")
	faults = refuse(faults, !isShare(r.soft), "soft of Ratios", r.soft, "more than 0 and less than high, a share of the window")
	return refuse(faults, faults == nil && !(r.soft < r.high), "soft of Ratios", r.soft, fmt.Sprintf("less than high, which is %v", r.high))
}

// defaultReserve returns the default of Limits.Reserve.
func defaultReserve(window int) int { return min(window/8, 16_000) }

// limit returns how large a request may be, 0 without a Window.
func (l Limits) limit() int { return l.Window - l.Reserve }

// most returns the limit, or High without a Window; 0 with neither.
func (l Limits) most() int64 {
	if l.Window > 0 {
		return int64(l.limit())
	}
	return int64(l.High)
}

// withDefaults returns l with its defaults in place and Reserve never negative,
// and a *ValueError for each fault.
func (l Limits) withDefaults() (_ Limits, faults []error) {
	if l.wrong != nil {
		return l, l.wrong.faults()
	}
	if faults := l.outOfRange(); len(faults) > 0 {
		return l, faults
	}
	set := l
	switch {
	case l.Reserve < 0 || l.Window == 0:
		l.Reserve = 0
	case l.Reserve == 0:
		l.Reserve = defaultReserve(l.Window)
	}
	if l.High == 0 {
		l.High = l.limit()
	}
	if l.High == 0 { // neither Window nor High is set
		faults = refuse(faults, l.Low != 0 || l.Soft != 0, "Limits", set.list(), "Window or High set too")
		l.MinFree = cmp.Or(l.MinFree, 1000)
		return l, faults
	}
	l.Low = cmp.Or(l.Low, l.High/2)
	l.Soft = cmp.Or(l.Soft, l.Low+(l.High-l.Low+1)/2)
	l.MinFree = cmp.Or(l.MinFree, max(min((l.High-l.Low)/4, l.Soft-l.Low), 0))
	if rules := l.broken(); len(rules) > 0 {
		faults = append(faults, &ValueError{Name: "Limits", Value: set.list(), Want: strings.Join(rules, "; ") + fmt.Sprint("; with its defaults it is ", l.list())})
	}
	return l, faults
}

// outOfRange returns the faults of single fields.
func (l Limits) outOfRange() (faults []error) {
	for _, f := range []struct {
		name  string
		value int
	}{{"Window", l.Window}, {"Tools", l.Tools}, {"High", l.High}, {"Low", l.Low}, {"Soft", l.Soft}, {"MinFree", l.MinFree}} {
		faults = refuse(faults, f.value < 0, "Limits."+f.name, f.value, "0 or more")
	}
	return refuse(faults, l.Window > 0 && l.Reserve >= l.Window, "Limits.Reserve", l.Reserve,
		fmt.Sprintf("less than Window, which is %s; leave it 0 if max_tokens is that large", grouped(l.Window)))
}

// broken returns the rules that l, with its defaults in place, breaks.
func (l Limits) broken() (rules []string) {
	for _, r := range []struct {
		rule  string
		holds bool
	}{
		{"Low < High", l.Low < l.High},
		{"Low < Soft", l.Low < l.Soft || l.Low >= l.High},
		{"Soft <= High", l.Soft <= l.High || l.Low >= l.High},
		{"High <= Window - Reserve", l.Window == 0 || l.High <= l.limit()},
		{"MinFree <= Soft - Low", l.Low >= l.Soft || l.MinFree <= l.Soft-l.Low},
	} {
		if !r.holds {
			rules = append(rules, r.rule)
		}
	}
	return rules
}

// A limitsText is some limits as an error prints them, without quotes.
type limitsText string

// list returns the limits that are not 0 as text, in the order of the fields.
func (l Limits) list() limitsText {
	var fields []string
	for _, f := range []struct {
		name  string
		value int
	}{{"Window", l.Window}, {"Reserve", l.Reserve}, {"High", l.High}, {"Low", l.Low}, {"Soft", l.Soft}, {"MinFree", l.MinFree}} {
		if f.value != 0 {
			fields = append(fields, fmt.Sprintf("%s: %s", f.name, grouped(f.value)))
		}
	}
	return limitsText("{" + strings.Join(fields, ", ") + "}")
}

// within returns l with a limit of at most n tokens, n being positive. If High is
// above n, it becomes n and the other marks keep their proportions to it.
func (l Limits) within(n int) Limits {
	if l.Window == 0 || l.limit() > n {
		l.Window, l.Reserve = n, 0
	}
	switch {
	case l.High == 0:
		minFree := l.MinFree
		l, _ = Limits{Window: n, Reserve: -1}.withDefaults()
		l.MinFree = min(l.MinFree, minFree)
	case l.High > n:
		share := float64(n) / float64(l.High)
		for _, mark := range []*int{&l.High, &l.Soft, &l.Low, &l.MinFree} {
			*mark = int(float64(*mark) * share)
		}
	}
	return l
}

// setting returns the setting of a History with these limits.
func (l Limits) setting() setting {
	return setting{window: int64(l.Window), reserve: int64(l.Reserve), high: int64(l.High), low: int64(l.Low), soft: int64(l.Soft)}
}

// within returns k for requests with these limits. If tools is true, Limits.Tools was set
// with them.
func (k knowledge) within(l Limits, tools bool) *knowledge {
	k.cap, k.tools = l.overheadCap(), min(int64(l.Tools), maxTotal)
	k.toolsSet = k.toolsSet || tools
	return &k
}

// overheadCap returns the largest overhead to learn. Without this bound, a document that
// was counted as far too small would look like a large overhead, and still be counted
// after it has left the view.
func (l Limits) overheadCap() int64 {
	if l.most() == 0 {
		return maxTotal
	}
	return max(min(int64(l.Tools), maxTotal), l.most()/2)
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
	noMark    = math.MaxInt64
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
		m.reserved.Add(int64(n))
	} else {
		m.reserved.Sub(-int64(n))
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
		now.limit = max(int64(limits.limit())-m.reserved.Int64(), 0)
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

// setNamed bounds the marks by the limit in the figures of an error about a request that
// weighs ours tokens by the estimate of the History. It returns that limit, or 0 if it does
// not bound them.
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

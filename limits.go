package convo

import (
	"cmp"
	"fmt"
	"math"
	"strings"
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
	check := func(ok bool, name string, value any, want string) {
		if !ok {
			faults = append(faults, &ValueError{Name: name, Value: value, Want: want})
		}
	}
	isShare := func(n float64) bool { return 0 < n && n <= 1 }
	check(isShare(r.high), "high of Ratios", r.high, "more than 0 and at most 1, a share of the window")
	check(isShare(r.soft), "soft of Ratios", r.soft, "more than 0 and less than high, a share of the window")
	if len(faults) == 0 {
		check(r.soft < r.high, "soft of Ratios", r.soft, fmt.Sprintf("less than high, which is %v", r.high))
	}
	return faults
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
		if l.Low != 0 || l.Soft != 0 {
			faults = append(faults, &ValueError{Name: "Limits", Value: set.list(), Want: "Window or High set too"})
		}
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
		if f.value < 0 {
			faults = append(faults, &ValueError{Name: "Limits." + f.name, Value: f.value, Want: "0 or more"})
		}
	}
	if l.Window > 0 && l.Reserve >= l.Window {
		faults = append(faults, &ValueError{Name: "Limits.Reserve", Value: l.Reserve,
			Want: fmt.Sprintf("less than Window, which is %s; leave it 0 if max_tokens is that large", grouped(l.Window))})
	}
	return faults
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

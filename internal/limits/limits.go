// Package limits computes with the limits of a request, in tokens.
package limits

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/calibrate"
	"github.com/seed-c1b73e60/convo/internal/overflow"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// Limits are the sizes in a Limits of package convo.
type Limits struct{ Window, Reserve, Tools, High, Low, Soft, MinFree int }

// Refuse adds a ValueError of package convo to faults if a value is wrong.
type Refuse = func(faults []error, isWrong bool, name string, value any, want string) []error

// Ratios are marks as shares of a window.
type Ratios struct{ Soft, High float64 }

// Faults returns what is out of range.
func (r Ratios) Faults(refuse Refuse) (faults []error) {
	isShare := func(n float64) bool { return 0 < n && n <= 1 }
	faults = refuse(faults, !isShare(r.High), "high of Ratios", r.High, "more than 0 and at most 1, a share of the window")
	faults = refuse(faults, !isShare(r.Soft), "soft of Ratios", r.Soft, "more than 0 and less than high, a share of the window")
	return refuse(faults, faults == nil && !(r.Soft < r.High), "soft of Ratios", r.Soft, fmt.Sprintf("less than high, which is %v", r.High))
}

// Of returns the limits for a window.
func (r Ratios) Of(window int) Limits {
	share := func(ratio float64) int {
		if ratio == 1 {
			return window
		}
		return int(float64(window) * ratio)
	}
	l := Limits{Window: window, Soft: share(r.Soft), High: share(r.High)}
	if l.High/2 >= l.Soft {
		l.Low = l.Soft / 2
	}
	l.Reserve = cmp.Or(min(defaultReserve(window), window-l.High), -1)
	return l
}

// defaultReserve returns the default of Reserve.
func defaultReserve(window int) int { return min(window/8, 16_000) }

// Limit returns how large a request may be, 0 without a Window.
func (l Limits) Limit() int { return l.Window - l.Reserve }

// Most returns the limit, or High without a Window; 0 with neither.
func (l Limits) Most() int64 {
	if l.Window > 0 {
		return int64(l.Limit())
	}
	return int64(l.High)
}

// WithDefaults returns l with its defaults in place and Reserve never negative, and an error for
// each fault.
func (l Limits) WithDefaults(refuse Refuse) (_ Limits, faults []error) {
	if faults := l.outOfRange(refuse); len(faults) > 0 {
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
		l.High = l.Limit()
	}
	if l.High == 0 { // neither Window nor High is set
		faults = refuse(faults, l.Low != 0 || l.Soft != 0, "Limits", set.list(), "Window or High set too")
		l.MinFree = cmp.Or(l.MinFree, 1000)
		return l, faults
	}
	l.Low = cmp.Or(l.Low, l.High/2)
	l.Soft = cmp.Or(l.Soft, l.Low+(l.High-l.Low+1)/2)
	l.MinFree = cmp.Or(l.MinFree, max(min((l.High-l.Low)/4, l.Soft-l.Low), 0))
	rules := l.broken()
	return l, refuse(faults, len(rules) > 0, "Limits", set.list(), strings.Join(rules, "; ")+fmt.Sprint("; with its defaults it is ", l.list()))
}

// outOfRange returns the faults of single fields.
func (l Limits) outOfRange(refuse Refuse) (faults []error) {
	for _, f := range l.fields() {
		faults = refuse(faults, f.value < 0 && f.name != "Reserve", "Limits."+f.name, f.value, "0 or more")
	}
	return refuse(faults, l.Window > 0 && l.Reserve >= l.Window, "Limits.Reserve", l.Reserve,
		fmt.Sprintf("less than Window, which is %s; leave it 0 if max_tokens is that large", text.Grouped(l.Window)))
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
		{"High <= Window - Reserve", l.Window == 0 || l.High <= l.Limit()},
		{"MinFree <= Soft - Low", l.Low >= l.Soft || l.MinFree <= l.Soft-l.Low},
	} {
		if !r.holds {
			rules = append(rules, r.rule)
		}
	}
	return rules
}

// A field is a size with its name.
type field struct {
	name  string
	value int
}

// fields returns the fields of l in their order.
func (l Limits) fields() []field {
	return []field{
		{"Window", l.Window}, {"Reserve", l.Reserve}, {"Tools", l.Tools},
		{"High", l.High}, {"Low", l.Low}, {"Soft", l.Soft}, {"MinFree", l.MinFree},
	}
}

// A printed is some limits as an error prints them, without quotes.
type printed string

// list returns the limits that are not 0 as text, without Tools.
func (l Limits) list() printed {
	var fields []string
	for _, f := range l.fields() {
		if f.value != 0 && f.name != "Tools" {
			fields = append(fields, fmt.Sprintf("%s: %s", f.name, text.Grouped(f.value)))
		}
	}
	return printed("{" + strings.Join(fields, ", ") + "}")
}

// within returns l, which has its defaults, with a limit of at most n tokens, n being positive.
// If High is above n, it becomes n and the other marks keep their proportions to it.
func (l Limits) within(n int) Limits {
	if l.Window == 0 || l.Limit() > n {
		l.Window, l.Reserve = n, 0
	}
	switch {
	case l.High == 0:
		ignore := func(faults []error, _ bool, _ string, _ any, _ string) []error { return faults }
		now, _ := Limits{Window: n, Reserve: -1}.WithDefaults(ignore)
		now.MinFree = min(now.MinFree, l.MinFree)
		return now
	case l.High > n:
		share := float64(n) / float64(l.High)
		for _, mark := range []*int{&l.High, &l.Soft, &l.Low, &l.MinFree} {
			*mark = int(float64(*mark) * share)
		}
	}
	return l
}

// MaxOverhead returns the largest overhead to learn. Without this bound, a document that
// was counted as far too small would look like a large overhead, and still be counted
// after it has left the view.
func (l Limits) MaxOverhead() int64 {
	if l.Most() == 0 {
		return calibrate.MaxTotal
	}
	return max(min(int64(l.Tools), calibrate.MaxTotal), l.Most()/2)
}

// None is the mark of a limit that was not set.
const None = math.MaxInt64

// Marks returns what the size of a whole request is compared with, for l with its defaults, if
// that many tokens of the window are reserved and a provider has named a limit, which is 0 if
// none has.
func (l Limits) Marks(named int, reserved int64) (limit, high, soft, low, minFree int64) {
	if named > 0 {
		l = l.within(named)
	}
	limit = None
	if l.Window > 0 {
		limit = max(int64(l.Limit())-reserved, 0)
	}
	if l.High == 0 {
		return limit, limit, limit, limit, int64(l.MinFree)
	}
	return limit, min(limit, int64(l.High)), min(limit, int64(l.Soft)), min(limit, int64(l.Low)), int64(l.MinFree)
}

// Room returns how large a request may be by the figures in an error. The request that the error is
// about has ours tokens by our own estimate. Room is 0 if the figures do not lower the limit.
func (l Limits) Room(f overflow.Figures, ours, limit int64) int {
	room := f.Limit - f.Output
	if f.Output == 0 && l.Window > f.Limit {
		room -= int(int64(l.Reserve) * int64(f.Limit) / int64(l.Window)) // the answer needs its share
	}
	if f.Quota { // the request has the tokens that the answer may have
		room = int(min(int64(room), int64(f.Limit)*ours/int64(f.Request())))
	}
	switch {
	case f.Limit == 0, f.Limit >= f.Refused(), room <= 0:
		return 0
	case int64(f.Limit) < cmp.Or(l.Most(), ours)/2 && !f.Quota: // that of a small model which a gateway fell back to
		return 0
	case int64(room) >= limit:
		return 0
	}
	return room
}

// A Judge decides which usage reports to believe. A copy of it does not change.
type Judge struct {
	last    *Claim // the last one, if it was implausible and ignored
	toldLow bool   // a report that is too low was doubted
}

// A Claim is a usage report that may be wrong.
type Claim struct {
	Model               string
	Version             uint64 // of the view that it is for
	Tokens, Raw, Window int64  // of the request; raw tokens of that view; of the model then, 0: not known
}

// Ignores reports whether to ignore a report under the present limits. want says what would be
// believed, if that is to be logged.
func (j *Judge) Ignores(c Claim, l Limits) (ignores bool, want string) {
	least, most := c.Raw/calibrate.MaxRatio, calibrate.MaxRatio*c.Raw+l.MaxOverhead()
	tokens := min(c.Tokens, calibrate.MaxTotal)
	switch {
	case c.Tokens < least && j.toldLow:
		return true, ""
	case c.Tokens < least:
		j.toldLow = true
		return true, fmt.Sprintf("at least %d for a view of %d raw tokens: include the tokens that the provider read from its cache; later figures that are too low are ignored without a warning", least, c.Raw)
	case c.Window > 0 && tokens > c.Window:
		return true, fmt.Sprintf("at most Limits.Window, which is %d: report each request alone, or raise Limits.Window", c.Window)
	}
	same := j.last != nil && j.last.Model == c.Model
	switch {
	case l.Most() == 0 || tokens <= most:
		if same {
			j.last = nil
		}
		return false, ""
	case same && j.last.Version != c.Version:
		return false, "" // accept the second one in a row
	}
	last := c // so that no other claim is allocated
	j.last = &last
	return true, fmt.Sprintf("at most %d for a view of %d raw tokens, unless the next report says so too", most, c.Raw)
}

package convo

import (
	"cmp"
	"slices"
	"sort"

	"github.com/seed-c1b73e60/convo/internal/calibrate"
)

// A calibration holds what usage reports have shown about one model. It is
// immutable; each report makes a new one.
type calibration struct {
	Model string
	calibrate.Calibration

	at      *reported // the view of the last report; nil if another History made that view
	version uint64    // of that view; 0 if another History made it
}

// valid reports whether all figures of c are within the bounds that usage
// reports keep.
func (c *calibration) valid() bool { return c != nil && c.Calibration.Valid() }

// figures returns the numbers of c, or nil if c is nil.
func (c *calibration) figures() *calibrate.Calibration {
	if c == nil {
		return nil
	}
	return &c.Calibration
}

// A reported is the view of a usage report. It does not hold that view's
// calibration, since that would keep all earlier views in memory.
type reported struct {
	sys, list shown
	raw       int64 // raw tokens of all but the ephemeral messages
	tools     *toolset
	summary   *placedSummary
	eph       *ephemeral
	last      ID
	version   uint64
}

// reported returns the view of s for a calibration.
func (s *state) reported() *reported {
	return &reported{
		sys: shown{entries: slices.Clip(s.sys)}, list: shown{entries: slices.Clip(s.list)},
		raw: s.raw() - s.eph.tokens(), tools: s.tools, summary: s.summary, eph: s.eph, last: s.last, version: s.version,
	}
}

// withTraces returns c, or a copy with a trace of each entry if its view shows
// an entry newer than after. The entries can then be freed.
func (c *calibration) withTraces(after ID) *calibration {
	if c == nil || c.at == nil || c.at.list.entries == nil || c.at.list.newerThan(after).len() == 0 {
		return c
	}
	own, at := *c, *c.at
	at.sys, at.list = at.sys.withTraces(), at.list.withTraces()
	own.at = &at
	return &own
}

// A shown is a list of entries that an earlier view showed: either the entries
// themselves, or a trace of each.
type shown struct {
	entries []*entry
	traces  []trace
}

// A trace identifies an entry without holding its message.
type trace struct {
	id     ID
	tokens int64
	looks  *edited
}

func (e *entry) trace() trace { return trace{e.id, e.tokens, e.looks()} }

func (v shown) len() int { return max(len(v.entries), len(v.traces)) }

func (v shown) at(i int) trace {
	if v.entries != nil {
		return v.entries[i].trace()
	}
	return v.traces[i]
}

// has reports whether e is in v.
func (v shown) has(e *entry) bool {
	n := v.len() - v.newerThan(e.id-1).len()
	return n < v.len() && v.at(n) == e.trace()
}

// withTraces returns v with traces in place of entries.
func (v shown) withTraces() shown {
	if v.entries == nil {
		return v
	}
	traces := make([]trace, len(v.entries))
	for i, e := range v.entries {
		traces[i] = e.trace()
	}
	return shown{traces: traces}
}

// newerThan returns the entries with an ID above last.
func (v shown) newerThan(last ID) shown {
	n := sort.Search(v.len(), func(i int) bool { return v.at(i).id > last })
	if v.entries != nil {
		return shown{entries: v.entries[n:]}
	}
	return shown{traces: v.traces[n:]}
}

// scale returns the scale for estimates of the request of s.
func (s *state) scale() calibrate.Scale {
	raw, k := s.raw(), s.known()
	c := k.cal
	if c == nil {
		return calibrate.Scale{Prior: k.prior, Overhead: k.assumed(), Fresh: raw}
	}
	scale := c.Scale(k.cap, min(s.measured, raw, c.Raw), raw)
	scale.Prior = k.prior
	return scale
}

// sharedWith returns the raw tokens that s shares with an older view, and how many of
// them are in pinned exchanges. rewritten says whether more than the end of the list
// has changed since.
func (s *state) sharedWith(old *reported, rewritten bool) (n, pinned int64) {
	n = s.frameShared(old)
	if s.summary == old.summary {
		n += s.summary.tokens()
	}
	if rewritten {
		raw, pinned := s.rawShared(s.list, old.list)
		return n + raw, pinned
	}
	n, pinned = n+s.listRaw, s.pinRaw // everything up to old.last is shared
	for _, e := range slices.Backward(s.list) {
		if e.id <= old.last {
			break
		}
		n -= e.tokens
		if s.isPinned(e.head) {
			pinned -= e.tokens
		}
	}
	return n, pinned
}

// frameShared returns the raw tokens of the system entries, the tools and the ephemeral
// messages that s shares with an older view.
func (s *state) frameShared(old *reported) int64 {
	n := s.sysShared(old)
	if s.tools == old.tools {
		n += s.tools.tokens()
	}
	if s.eph == old.eph {
		n += s.eph.tokens()
	}
	return n
}

// sysShared returns the raw tokens of the system entries that s shares with an older
// view.
func (s *state) sysShared(old *reported) int64 {
	if n := len(s.sys); n > 0 && len(old.sys.entries) == n && &s.sys[0] == &old.sys.entries[0] {
		return s.sysRaw // the usual case
	}
	n, _ := s.rawShared(s.sys, old.sys)
	return n
}

// isMeasured reports whether the last usage report measured e, which is in the list.
func (s *state) isMeasured(e *entry) bool {
	cal := s.known().cal
	return cal != nil && cal.at.list.has(e)
}

// rawShared returns the raw tokens of the entries that a list shares with an
// older one, and how many of them are in pinned exchanges.
func (s *state) rawShared(list []*entry, old shown) (n, pinned int64) {
	eachShared(list, old, func(e *entry) {
		n += e.tokens
		if s.isPinned(e.head) {
			pinned += e.tokens
		}
	})
	return n, pinned
}

// eachShared calls f for each entry of a list that is also in an older one.
func eachShared(list []*entry, old shown, f func(*entry)) {
	for i, k := 0, 0; i < len(list) && k < old.len(); {
		seen := old.at(k)
		switch {
		case list[i].id < seen.id:
			i++
		case list[i].id > seen.id:
			k++
		default:
			if list[i].trace() == seen {
				f(list[i])
			}
			i, k = i+1, k+1
		}
	}
}

// A knowledge holds what estimates follow from: what usage reports have shown about models,
// and what is assumed of a model without any. It is replaced, never changed.
type knowledge struct {
	model    string          // the model of the next requests
	prior    calibrate.Prior // of that model
	cal      *calibration    // of that model; nil before its first report
	learned  learned         // the calibrations of all models
	cap      int64           // the largest overhead to assume; 0 means maxTotal
	tools    int64           // Limits.Tools
	toolsSet bool            // Limits.Tools was set after the last usage report
	reported bool            // usage was reported since that model was set
	resumed  *measuredFrame  // of the Decisions that it was made from, until usage is reported; nil: none
}

// A measuredFrame is a frame, and which parts of it the last usage report has measured.
type measuredFrame struct {
	frame
	sysSeen, toolsSeen, ephemeralSeen bool
}

var noKnowledge knowledge

// assumed returns the overhead to assume for a model until usage is reported for it. This is
// the overhead of the model with the last report, since the tools belong to the conversation,
// but not less than Limits.Tools. If Limits.Tools was set after that report, it is used alone.
func (k *knowledge) assumed() int64 {
	if l := k.learned; len(l) > 0 && !k.toolsSet {
		return max(k.tools, l[len(l)-1].Overhead(k.cap))
	}
	return k.tools
}

// with returns k with what f returns for each calibration. The one in force may be nil.
func (k *knowledge) with(f func(*calibration) *calibration) *knowledge {
	next := *k
	next.cal, next.learned = f(k.cal), slices.Clone(k.learned)
	for i, c := range k.learned {
		if c == k.cal {
			next.learned[i] = next.cal
		} else {
			next.learned[i] = f(c)
		}
	}
	return &next
}

// known returns the knowledge of s. It is not nil.
func (s *state) known() *knowledge { return cmp.Or(s.knowledge, &noKnowledge) }

// A learned is a list of calibrations, at most one for each model, the one with
// the newest report last. It is replaced, never changed.
type learned []*calibration

// of returns the calibration of the model, or nil if there is none.
func (l learned) of(model string) *calibration {
	if i := slices.IndexFunc(l, func(c *calibration) bool { return c.Model == model }); i >= 0 {
		return l[i]
	}
	return nil
}

// version returns the version of the newest snapshot that a report for the
// model was applied to, or 0.
func (l learned) version(model string) uint64 { return orNil(l.of(model)).version }

// with returns l with c in place of its model's calibration.
func (l learned) with(c *calibration) learned {
	out := append(make(learned, 0, len(l)+1), l...)
	out = slices.DeleteFunc(out, func(m *calibration) bool { return m.Model == c.Model })
	// Only the two newest calibrations keep the views of their reports, and
	// only the newest maxModels are kept at all.
	if n := len(out); n > 1 && out[n-2].at != nil {
		own := *out[n-2]
		own.at = nil
		out[n-2] = &own
	}
	return append(out[max(len(out)-maxModels+1, 0):], c)
}

// maxModels is how many models a History keeps calibrations of.
const maxModels = 32

// carried returns the calibrations for another History that begins with the
// view of s.
func (s *state) carried() learned {
	if len(s.known().learned) == 0 {
		return nil
	}
	out := make(learned, len(s.known().learned))
	for i, c := range s.known().learned {
		own := *c
		if c.Model == s.known().model && s.known().cal != nil {
			saved := s.withoutEphemeral()
			own = *s.known().cal
			own.Calibration = own.Moved(saved.scale(), saved.raw())
		}
		own.at, own.version = nil, 0
		out[i] = &own
	}
	return out
}

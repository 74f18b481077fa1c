package convo

import (
	"context"
	"slices"
	"strings"
)

// Drafts returns how many records of h may have been stored or not.
func Drafts(h *History) int { return len(h.recorder.drafts) }

// The types of errors that programs know by [ErrStale], [ErrBudget] and [ErrMaxRequests].
type (
	StaleError       = staleError
	BudgetError      = budgetError
	MaxRequestsError = maxRequestsError
)

// The errors that a PairError holds, and whose text says what is wrong.
var (
	ErrDuplicateCall = errDuplicateCall
	ErrAnswered      = errAnswered
	ErrAmbiguous     = errAmbiguous
)

// ErrNoWindow is the Cause of the first report of a History without a window.
var ErrNoWindow = errNoWindow

// Rates returns what h takes for the overhead, and for the tokens of a raw token that
// was measured and of one that was not.
func Rates(h *History) (overhead, old, fresh float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.scale()
	switch {
	case s.Known == nil:
		return float64(s.Overhead), s.Prior.Ratio, s.Prior.Ratio
	case s.Known.Raw == 0:
		return float64(s.Overhead), s.Known.Ratio, s.Known.Ratio
	}
	return float64(s.Overhead), float64(s.Known.Tokens-s.Overhead) / float64(s.Known.Raw), s.Known.Ratio
}

// SaveFull is Save, but writes a full record, even if nothing has changed, unless the newest
// record is full.
func (h *History) SaveFull(ctx context.Context) error {
	ctx, b, err := h.takeOpenLog(ctx)
	if err != nil {
		return err
	}
	defer h.saving.release()
	if b.size.Count == 1 && h.unsaved() == 0 {
		return nil
	}
	return h.write(ctx, true)
}

// SetStore makes another Store that of h.
func SetStore(h *History, s Store) { h.recorder.store = s }

// SavedFields returns the names of all fields that are saved, and their marks in docs/format.md:
// S for one in the JSON of a snapshot, D for one in Decisions.
func SavedFields() map[string]string {
	fields := make(map[string]string)
	for _, f := range savedFields {
		var marks []string
		for as, mark := range map[form]string{inSnapshot: "S", inDecisions: "D"} {
			if f.in&as != 0 {
				marks = append(marks, mark)
			}
		}
		slices.Sort(marks)
		slices.Reverse(marks)
		fields[f.key] = strings.Join(marks, " ")
	}
	return fields
}

// Reads reports whether f reads the i-th entry of h. While f runs, that entry is missing
// from every view that shares memory with that of h, so that f panics, or returns the
// panic as an error, if it looks at it. After that, h is of no use.
func Reads(h *History, i int, f func() error) (reads bool) {
	list, n := h.list, i-len(h.sys)
	if n < 0 {
		list, n = h.sys, i
	}
	e := list[n]
	list[n] = nil
	defer func() {
		list[n] = e
		for _, now := range [][]*entry{h.sys, h.list} { // f may have moved them
			if n < len(now) && now[n] == nil {
				now[n] = e
			}
		}
		reads = recover() != nil || reads
	}()
	err := f()
	return err != nil && strings.Contains(err.Error(), "nil pointer")
}

// FloorOf returns the raw tokens of the floor of h, and how many of them were measured, as
// a compaction takes them, and then as they are when each entry is looked at.
func FloorOf(h *History) (total, measured, wantTotal, wantMeasured int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.floorWeight()
	only := h.clipped()
	only.summary = nil
	f, list := h.floor(), []*entry{}
	for i, e := range h.list {
		if f.has(i) {
			list = append(list, e)
		}
	}
	only.replace(h.sys, list, nil, h.turn)
	if h.known().cal != nil {
		only.sumMeasured(true)
		wantMeasured = only.measured
	}
	return w.total(), w.measured, only.raw(), wantMeasured
}

// Spoil puts something into the newest entry of h that no record can hold.
func Spoil(h *History) { h.list[len(h.list)-1].msg.Parts[0] = nil }

// A PlainSnapshot is a plain struct for the JSON of a snapshot.
type PlainSnapshot = plainSnapshot

// LongHistory returns the History that benchmarks of JSON use.
var LongHistory = longHistory

// EditMarks returns how many edits h remembers.
func EditMarks(h *History) int { return len(h.edits) }

// Forgettings returns how many times h remembers that the content of an entry was forgotten.
func Forgettings(h *History) int { return len(h.forgotten) }

// TakenBack returns the number of ranges of IDs that were taken back.
func TakenBack(h *History) int { return len(h.takenBack) }

// Reversals returns how many rollbacks h remembers, and how many it may remember.
func Reversals(h *History) (n, most int) { return len(h.reversals), maxReversals }

// Revert undoes the edits since s, as Rollback does when they cannot stay.
func Revert(h *History, s *Snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recorder.wentBack(h.revert(&s.state))
}

// ReadForSummary returns the edit of Summarize with Extract, and how many bytes it read.
func ReadForSummary(ctx context.Context, s *Snapshot, g Goal) (e Edit, read int, err error) {
	var used *writer
	e, err = (&Summarize{}).compact(ctx, s, g, func(w *writer, ctx context.Context) (Summary, error) {
		used = w
		return w.extract(ctx)
	})
	return e, used.notes.Bytes, err
}

// AsksTrigger reports whether the checks of h make a Status and call a Trigger.
func AsksTrigger(h *History) bool { return h.compactor.triggers.asked != nil }

// BreakBudget makes each change of h panic once it has been made, until mend is called.
func BreakBudget(h *History) (mend func()) {
	was := h.account
	h.account = &account{}
	return func() { h.account = was }
}

// PartsOf returns what h knows of its conversation, without what is only kept for speed.
func PartsOf(h *History) any {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.parts
	was.recorder.archive = nil // functions are never equal
	v := &was.view
	v.seen, v.snap, v.weight, v.weighed, v.prefix = 0, nil, 0, 0, keptPrefix{}
	v.list, v.reversals = slices.Clone(v.list), slices.Clone(v.reversals)
	if v.calls != nil {
		own := *v.calls
		own.List = slices.Clone(own.List)
		v.calls = &own
	}
	return was
}

// IsHosts reports whether no person wrote a user message, as far as it shows it.
func IsHosts(m Message) bool { return m.isHosts() }

// DropsAny returns what dropsAny reports for a goal, and whether a cut drops anything.
func DropsAny(s *Snapshot, g Goal, maxTail int64) (says, drops bool) {
	r := g.room(s)
	return dropsAny(s, r, maxTail), len(cutTo(s, r, maxTail, len(s.list)).drop) > 0
}

// Release ends the bond of all entries, as a provider that refuses a signature makes Recover do
// with those up to one entry. It returns how many entries were bound.
func Release(h *History) (released int) {
	h.change(func() error {
		released = len(h.signedIDs(true))
		if !h.isClosed() && h.released < h.last {
			h.release(h.last)
		}
		return nil
	})
	return released
}

// Bound reports whether the view has an assistant entry with the ID whose signed reasoning is
// bound.
func (s *Snapshot) Bound(id ID) bool {
	for i, bound := range s.signed {
		if s.list[i].id == id {
			return bound
		}
	}
	return false
}

package convo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// An Edit is a plan: entries to drop, results to clear, entries to rewrite, and a summary
// to put in place. It is made for a [Snapshot], and [History.Apply] checks it. The zero
// Edit changes nothing; a strategy returns it to decline.
type Edit struct {
	Drop []ID // entries to remove: whole exchanges, in any order

	// Clear lists tool results whose content is to be replaced. One in a dropped entry is
	// ignored, unless Forget is set: then it is cleared in the report and after Undo.
	Clear []Clear

	// Rewrite gives entries other parts, each entry at most once, and none that Clear names. An
	// entry that is also dropped is ignored, unless Forget is set: then it is rewritten in the
	// report and after Undo.
	Rewrite []Rewrite

	Summary *Summary // replaces the summary; nil leaves it as it is, and &Summary{} removes it

	// Effort says what it took to plan the edit, for the report. Nil: unknown; then a strategy
	// that fails, or whose edit has a summary, is assumed to have called a model once.
	Effort *Effort
}

// A Clear replaces the content of a tool result by a text. The call, the ID of the
// result and its error flag stay.
type Clear struct {
	ID     ID     // the entry that holds the result
	CallID string // the call that the result answers; empty: every result of the entry
	Text   string // empty: a marker that names the tool, the size, and the reference that Options.Spill returned

	// Forget keeps no original: not in memory, not in Options.Spill, and not in the report, so
	// Undo leaves the result cleared. Earlier snapshots and reports still hold it.
	Forget bool
}

// Format prints how much the edit drops, clears and rewrites, and the beginning of its
// summary; %+v prints the IDs of entries and calls instead.
func (e Edit) Format(f fmt.State, verb rune) { printTo(f, verb, e.print) }

func (e *Edit) print(ids bool) string {
	var parts []string
	add := func(what string, n int, list func() string) {
		switch {
		case n == 0:
		case ids:
			parts = append(parts, what+" "+list())
		default:
			parts = append(parts, what+" "+grouped(n))
		}
	}
	add("drop", len(e.Drop), func() string { return printRanges(rangesOf(slices.Sorted(slices.Values(e.Drop)))) })
	add("clear", len(e.Clear), func() string { return printAll(e.Clear) })
	add("rewrite", len(e.Rewrite), func() string { return printAll(e.Rewrite) })
	if e.Summary != nil {
		parts = append(parts, e.Summary.print(ids))
	}
	return "edit(" + strings.Join(parts, ", ") + ")"
}

// Format prints the ID and the beginning of the text; %+v adds the call's ID.
func (c Clear) Format(f fmt.State, verb rune) { printTo(f, verb, c.print) }

func (c *Clear) print(ids bool) string {
	return fmt.Sprintf("%d%s(%s)", c.ID, printID(c.CallID, ids), abbreviate(c.Text))
}

// isZero reports whether the edit changes nothing.
func (e Edit) isZero() bool {
	return len(e.Drop) == 0 && len(e.Clear) == 0 && len(e.Rewrite) == 0 && e.Summary == nil
}

// hasSummary reports whether the edit puts a summary in place.
func (e Edit) hasSummary() bool { return e.Summary != nil && e.Summary.Text != "" }

// Apply applies an edit that was planned for the snapshot at, as a whole or not at all,
// with two exceptions. Exchanges that were pinned since stay, and Report.Spared names
// them. Results for which Options.Spill failed are not cleared, and Report.Cause says
// why. The error is nil if anything changed. If nothing did, it matches [ErrNoGain], or
// is that of Options.Spill.
//
// Apply returns an [*EditError] for an edit that names an entry that the snapshot does not
// hold, part of an exchange or something in the floor. For a summary whose Stop is not
// StopDone it returns a [*RefusedError]; repetition is not checked. The edit may rewrite the
// floor, except pinned exchanges; see [Rewrite].
//
// The error is a [*StaleError] if an entry that the edit names has since left the view or
// become part of the floor, or an entry to rewrite was changed. An edit with a summary is
// also stale if another summary was put in place since. So it is if an entry that it stands
// for was rewritten, or a result in that entry was forgotten or cleared with a text. Append,
// SetSystem, SetEphemeral, SetLimits and RecordUsage never make an edit stale.
func (h *History) Apply(at *Snapshot, e Edit) (Report, error) {
	start := time.Now()
	r, err := h.apply(at, e)
	r.Duration = time.Since(start)
	if err != nil && r.Outcome != OutcomeDeclined {
		r.Outcome, r.Cause = OutcomeFailed, err
		r.Fits = r.Fits && err != ErrClosed // nothing may be sent
		if isStale(err) {
			r.Outcome = OutcomeStale
		}
	}
	h.deliver(r)
	return r, err
}

// SplicePrefix drops the first n entries of at, in the order of at.All, and replaces the
// summary. It returns how many entries it dropped.
//
// Entries in the floor, such as system entries, count towards n but stay. If n falls
// inside an exchange, SplicePrefix stops before that exchange; if n is out of range, it
// is clamped. The summary is not replaced if no entry is dropped, or if the given one is
// blank. Errors are those of [History.Apply], except that dropping nothing is not an
// error.
func (h *History) SplicePrefix(at *Snapshot, n int, summary string) (dropped int, err error) {
	h.locked(func() { err = h.ownsLocked(at) })
	if err != nil {
		return 0, err
	}
	n = min(max(n, 0)-len(at.sys), len(at.list))
	if n > 0 && n < len(at.list) {
		n, _ = exchangeAt(at.list, n)
	}
	n = max(n, 0)
	e := Edit{Drop: make([]ID, 0, n)}
	floor := at.floor()
	for i := range n {
		if !floor.has(i) {
			e.Drop = append(e.Drop, at.list[i].id)
		}
	}
	if len(e.Drop) == 0 {
		return 0, nil
	}
	if strings.TrimSpace(summary) != "" {
		e.Summary = &Summary{Text: summary}
	}
	r, err := h.Apply(at, e)
	if err != nil && r.Outcome != OutcomeDeclined {
		return 0, err
	}
	return len(r.Dropped) + len(r.Summarised), nil
}

// With returns a snapshot of the view as the edit would leave it. It changes nothing and
// does not call Options.Spill. A summary that the edit brings has no Time. An edit that
// breaks a rule is an [*EditError], as for [History.Apply].
func (s *Snapshot) With(e Edit) (*Snapshot, error) { return s.with(e, false) }

// with is With, for an edit that a strategy may have made.
func (s *Snapshot) with(e Edit, byStrategy bool) (_ *Snapshot, err error) {
	defer catch(&err, "Options.Tokenizer")
	checked, err := checkEdit(&s.state, &e, byStrategy)
	if err != nil {
		return nil, err
	}
	p := s.identity().prepare(&s.state, checked, nil)
	done, err := s.edited(checked, p, Report{})
	if err != nil {
		return nil, err
	}
	if p.summary != nil {
		p.summary.sum.Time = time.Time{}
	}
	return &Snapshot{setting: s.setting, state: done.state}, nil
}

// apply does the work of Apply, which then puts an error into the report.
func (h *History) apply(at *Snapshot, e Edit) (Report, error) {
	r := Report{Reason: ReasonManual}
	var err error
	h.locked(func() {
		err = h.ownsLocked(at)
		h.measureBeforeLocked(&r)
	})
	if err != nil {
		return r, err
	}
	if e.isZero() {
		err := &wordedError{"the edit is empty; name entries to drop, results to clear, entries to rewrite, or a summary", ErrNoGain}
		r.Outcome, r.Cause = OutcomeDeclined, err
		return r, err
	}
	ed, err := checkEdit(&at.state, &e, false)
	if err == nil {
		_, err = h.carryOut(context.Background(), ed, &r)
	}
	if err == nil && r.Outcome == OutcomeDeclined {
		err = r.Cause
	}
	return r, err
}

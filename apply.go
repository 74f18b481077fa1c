package convo

import (
	"errors"
	"strings"
	"time"
)

// An Edit is a plan: entries to drop, results to clear, the summary to put in
// the slot. It is made of a [Snapshot] and judged by [History.Apply]. The zero
// Edit declines.
type Edit struct {
	// Drop names entries that go, in whole exchanges, in any order.
	Drop []ID

	// Clear names results whose content goes. One in an entry that is dropped
	// too is ignored.
	Clear []Clear

	// Summary goes into the slot. Nil leaves the slot as it is, &Summary{}
	// empties it.
	Summary *Summary

	read []ID // of Drop, what the summary stands for, ascending; nil: all
}

// A Clear replaces the content of a tool result by a text. Call, result and
// error flag stay.
type Clear struct {
	ID     ID     // the entry
	CallID string // which of its results; empty: each
	Text   string // empty: a marker that names the tool, the size, and where Options.Spill kept the original
}

func (e Edit) isZero() bool { return len(e.Drop) == 0 && len(e.Clear) == 0 && e.Summary == nil }

// Apply applies an edit that was made of the snapshot at, in one step or not
// at all.
//
// It returns an [*EditError] when the edit breaks a rule by the snapshot it
// was made of: it names an entry that is not there, half an exchange, or
// floor; and [ErrStale] when what it names has changed since: an entry left
// the view or became floor, or another summary is in the slot. What was pinned
// since is kept and named in the report. Appends, SetSystem, SetEphemeral,
// SetLimits and RecordUsage never make an edit stale.
func (h *History) Apply(at *Snapshot, e Edit) (Report, error) {
	start := time.Now()
	r, err := h.apply(at, e)
	r.Duration = time.Since(start)
	if err != nil {
		r.Outcome, r.Cause = Failed, err
		if errors.Is(err, ErrStale) {
			r.Outcome = Stale
		}
	}
	h.tell(r)
	return r, err
}

// SplicePrefix drops the first n entries of at, counted as at.All gives them,
// and puts a summary in the slot. It returns how many entries went.
//
// n is clamped, and moved back to the start of the exchange it falls into.
// What is floor stays and is not counted. When nothing goes, or the summary
// is blank, the slot is left as it is. Errors are those of [History.Apply].
func (h *History) SplicePrefix(at *Snapshot, n int, summary string) (dropped int, err error) {
	h.mu.Lock()
	err = h.owns(at)
	h.mu.Unlock()
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
	if err != nil {
		return 0, err
	}
	return len(r.Dropped) + len(r.Summarised), nil
}

// With returns the view as an edit would leave it. Nothing else changes, and
// Options.Spill is not asked: the result belongs to no History. Errors are
// those of [History.Apply].
func (s *Snapshot) With(e Edit) (_ *Snapshot, err error) {
	defer catch(&err, "Options.Tokenizer")
	j, err := judge(&s.state, &e)
	if err != nil {
		return nil, err
	}
	next := s.state.clipped()
	if next.id == nil {
		next.id = newIdentity(newCounter(nil, Overheads{}), nil)
	}
	p := next.id.prepare(&s.state, j, nil)
	if _, err := next.perform(j, p); err != nil {
		return nil, err
	}
	next.version++
	next.sumMeasured(true)
	return &Snapshot{state: next}, nil
}

func (h *History) apply(at *Snapshot, e Edit) (Report, error) {
	r := Report{Reason: ReasonManual}
	h.mu.Lock()
	err := h.owns(at)
	h.measureBefore(&r)
	h.mu.Unlock()
	if err != nil {
		return r, err
	}
	if e.isZero() {
		r.Outcome, r.Cause = Declined, ErrNoGain
		return r, nil
	}
	_, err = h.carryOut(at, &e, &r, nil)
	return r, err
}

// An acceptance looks at what an edit has made of the view, under the lock and
// before it is in force; its error keeps the History as it was.
type acceptance func(before, next *state) error

// carryOut brings an edit into force, or says why not. It returns the results
// that were not cleared because their originals found no place.
func (h *History) carryOut(at *Snapshot, e *Edit, r *Report, accept acceptance) ([]Clear, error) {
	j, err := judge(&at.state, e)
	if err != nil {
		return nil, err
	}
	for {
		now := h.Snapshot()
		p, err := h.prepareEdit(now, j)
		if err != nil {
			return nil, err
		}
		again, err := h.commit(j, p, r, accept)
		if err != nil || !again {
			return p.kept, err
		}
		// A result was cleared meanwhile by another edit: once more.
	}
}

func (h *History) prepareEdit(now *Snapshot, j *judgement) (p *prepared, err error) {
	defer catch(&err, "Options.Tokenizer")
	return h.ident.prepare(&now.state, j, h.spillOnce), nil
}

// A spilled result is one whose original is kept, for an edit that is not yet
// in force.
type spilled struct {
	in     *entry
	callID string
}

// spillOnce is spill, and remembers where originals are until the next edit is
// applied: one that is refused, and planned again, asks no second time.
func (h *History) spillOnce(e *entry, r ToolResult) (string, error) {
	if h.opts.Spill == nil {
		return "", nil
	}
	key := spilled{e, r.CallID}
	h.mu.Lock()
	ref, ok := h.spilled[key]
	h.mu.Unlock()
	if ok {
		return ref, nil
	}
	ref, err := h.spill(r)
	if err != nil {
		return "", err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.spilled == nil {
		h.spilled = make(map[spilled]string)
	}
	h.spilled[key] = ref
	return ref, nil
}

// commit performs a judged and prepared edit, or says that it must be
// prepared again.
func (h *History) commit(j *judgement, p *prepared, r *Report, accept acceptance) (again bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended() {
		return false, ErrClosed
	}
	h.measureBefore(r)
	before := h.state.clipped()
	next := before
	done, err := next.perform(j, p)
	if err != nil || done.again {
		return done.again, err
	}
	r.Kept, r.Cause = done.kept, errors.Join(p.unspilled...)
	if !done.changed {
		r.Outcome = Declined
		if r.Cause == nil {
			r.Cause = ErrNoGain
		}
		return false, nil
	}
	next.version++
	next.sumMeasured(true)
	if accept != nil {
		if err := accept(&before, &next); err != nil {
			return false, err
		}
	}
	h.snap = nil
	h.state = next
	h.rewritten = h.version
	clear(h.spilled)
	h.edits = append(h.edits, editMark{h.version, done.touched})
	h.appended, h.lastEdit = 0, time.Now().UnixNano()
	if accept != nil {
		h.compacted = h.version
	}
	h.settle()

	r.Outcome = Applied
	r.Cleared, r.Dropped, r.Summarised = done.cleared, done.dropped, done.read
	r.SummaryDropped = before.slot != nil && next.slot == nil
	if p.slot != nil && r.Usage == (Usage{}) {
		r.Usage = p.slot.sum.Usage
	}
	r.MessagesAfter, r.TokensAfter = h.messages(), h.estimate().Upper
	r.Fits = h.fits()
	sent := &before
	if h.sent != nil {
		sent = &h.sent.state
	}
	r.PrefixKept = prefixKept(sent, &h.state)
	return false, nil
}

// measureBefore puts the numbers of now into a report.
func (h *History) measureBefore(r *Report) {
	h.measure(r, h.upper(), h.marks.limit)
}

func (h *History) measure(r *Report, total, limit int64) {
	r.MessagesBefore, r.TokensBefore = h.messages(), clampInt(total)
	r.MessagesAfter, r.TokensAfter = r.MessagesBefore, r.TokensBefore
	r.Fits, r.PrefixKept = total <= limit, 1
}

// fits reports whether the next request is within the limit.
func (h *History) fits() bool { return h.upper() <= h.marks.limit }

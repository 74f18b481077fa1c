package convo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// An Edit is a plan: entries to drop, results to clear, entries to rewrite, and a summary
// to put in place. It is made for a [Snapshot], and [History.Apply] checks it. The zero
// Edit changes nothing; a strategy returns it to decline.
type Edit struct {
	Drop []ID // entries to remove: whole exchanges, in any order

	// Clear lists tool results whose content is to be replaced. One in a dropped entry is
	// ignored, unless Forget is set: then it is cleared in the report and after Undo.
	Clear []Clear

	// Rewrite gives entries other parts, each entry at most once, and none that Clear names.
	// One that is also dropped is ignored, unless Forget is set: then it is rewritten in the
	// report and after Undo.
	Rewrite []Rewrite

	// Summary replaces the summary. Nil leaves it as it is, unless it has read what the edit
	// forgets (see Summary.Read), and &Summary{} removes it. It stays whatever the edit forgets,
	// so it must not say that.
	Summary *Summary

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

// isZero reports whether the edit changes nothing.
func (e Edit) isZero() bool {
	return len(e.Drop) == 0 && len(e.Clear) == 0 && len(e.Rewrite) == 0 && e.Summary == nil
}

// hasSummary reports whether the edit puts a summary in place.
func (e Edit) hasSummary() bool { return e.Summary != nil && e.Summary.Text != "" }

// Apply applies an edit that was planned for the snapshot at, as a whole or not at all, with
// two exceptions. Exchanges that were pinned since stay, and Report.Spared names them. Results
// for which Options.Spill failed are not cleared, and Report.Cause says why. The error is nil
// if anything changed. If nothing did, it matches [ErrNoGain], or is that of Options.Spill.
//
// An edit that names an entry that the snapshot does not hold, part of an exchange or something
// in the floor is an [*EditError]. A summary whose Stop is not StopDone is a [*RefusedError];
// repetition is not checked. The edit may rewrite the floor, except pinned exchanges.
//
// The error matches [ErrStale] if an entry that the edit names has since left the view or
// become part of the floor, or an entry to rewrite was changed. An edit with a summary is also
// stale if another summary was put in place since. So it is if an entry that it stands for or
// has read was rewritten, or a result in that entry was forgotten or cleared with a text. If an
// entry that it has read has left the view, it is stale too. Append, SetSystem, SetEphemeral,
// SetLimits and RecordUsage never make an edit stale.
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
		err := worded("the edit is empty; name entries to drop, results to clear, entries to rewrite, or a summary", ErrNoGain)
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

// A Rewrite replaces the parts of an entry, for example to redact a secret, to remove an image,
// or to shorten an old answer. The role, the author, the tool calls and the calls that results
// answer stay. The view may grow.
//
//	e, _ := snap.Find(id)
//	parts := slices.DeleteFunc(e.Message.Parts, func(p convo.Part) bool { _, ok := p.(convo.Media); return ok })
//	parts = append(parts, convo.Text("[an image was here]"))
//	report, err := h.Apply(snap, convo.Edit{Rewrite: []convo.Rewrite{{ID: id, Parts: parts}}})
//
// A strategy may rewrite entries outside the floor, and [History.Apply] any entry except those
// of pinned exchanges and system entries, which SetSystem replaces. Models and summarizers see
// the new parts from the next request on. [Report.Originals] returns the entry as it was, and
// [History.Undo] restores it.
//
// Everything from the entry on misses the provider's prompt cache, and signed reasoning in it
// and after it is no longer bound (see [Snapshot.Unbound]), so rewrite many entries in one
// edit.
type Rewrite struct {
	ID ID

	// Parts are the new parts of the entry. They must be valid for Append, and not empty even
	// with RolePolicy.KeepEmpty. Apply copies them. Options.MaxResult does not apply.
	//
	// The tool calls of an assistant message must be the same, in the same order; without any,
	// they are added at the end. Sealed reasoning may be left out, but not added or changed.
	//
	// The results of a tool message must answer the same calls in the same order, with the same
	// IsError. An empty CallID or Name is filled in. For one result, Parts may also be its
	// content.
	Parts []Part

	// Forget discards the old content: it is not kept in memory, in Options.Spill or in the
	// report, and Undo does not restore it. Earlier snapshots, which a Rollback may restore,
	// and reports still hold it, also the report that Wait returns, and so does what
	// Options.Spill was given earlier.
	Forget bool
}

// checkRewrite checks rewrites and adds them to ed.changes, after checkClear. A
// strategy may not rewrite the floor.
func (ed *checkedEdit) checkRewrite(rewrites []Rewrite) error {
	rewrites = slices.Clone(rewrites)
	sortByID(rewrites, func(w *Rewrite) ID { return w.ID })
	floor, clears := ed.at.floor(), ed.changes
	for k, r := range rewrites {
		i, ok := index(ed.at.list, r.ID)
		if !ok {
			return unknownEntry(ed.at, r.ID)
		}
		clear, cleared := slices.BinarySearchFunc(clears, r.ID, func(c change, id ID) int { return cmp.Compare(c.id, id) })
		dropped, rule := hasID(ed.drop, r.ID), floor.rule(i)
		switch {
		case k > 0 && rewrites[k-1].ID == r.ID:
			return &EditError{Rule: "rewrites an entry twice", ID: r.ID}
		case cleared && !dropped:
			return &EditError{Rule: "rewrites an entry and clears a result in it", ID: r.ID}
		case floor.pinned(i):
			return &EditError{Rule: "rewrites " + rule + "; Unpin it first", ID: r.ID}
		case rule != "" && ed.byStrategy:
			return &EditError{Rule: "rewrites " + rule + ", which only an edit by hand may", ID: r.ID}
		}
		from := ed.at.list[i]
		m, err := from.withParts(r.Parts)
		if err != nil {
			return err
		}
		if r.Forget {
			m = m.cloned()
		}
		c := change{id: r.ID, drop: dropped, from: from, msg: &m, forget: r.Forget}
		switch {
		case dropped && !r.Forget:
		case cleared: // it forgets less of the dropped entry
			clears[clear] = c
		default:
			ed.changes = append(ed.changes, c)
		}
	}
	ed.sort()
	return nil
}

// withParts returns the message of e with other parts, copied and checked, or an
// *EditError.
func (e *entry) withParts(parts []Part) (Message, error) {
	m := e.msg
	var wrong *EditError
	m.Parts = slices.Clone(parts)
	switch m.Role {
	case RoleTool:
		wrong = m.keepResults(e.msg.ToolResults())
	case RoleAssistant:
		wrong = m.keepCalls(e.msg.ToolCalls())
		if wrong == nil {
			wrong = m.keepSeals(&e.msg)
		}
	}
	if wrong != nil {
		wrong.ID = e.id
		return m, wrong
	}
	if err := m.checkShared(new([1]Part)); err != nil {
		rule := withoutPrefix(err)
		if wrong, ok := err.(*MessageError); ok {
			rule = fmt.Sprintf("rewrites part %d of an entry: %s", wrong.Part, wrong.Reason)
		}
		return m, &EditError{Rule: rule, ID: e.id}
	}
	if m.isEmpty() {
		return m, &EditError{Rule: "leaves an entry empty; put a text in it, or drop its exchange", ID: e.id}
	}
	return m, nil
}

// cloned returns a copy of m whose texts share no memory with others, such as the
// text that they were cut out of.
func (m *Message) cloned() Message {
	own := m.clone()
	cloneTexts(own.Parts)
	for r := range eachOf[ToolResult](own.Parts) {
		cloneTexts(r.Parts)
	}
	return own
}

// cloneTexts replaces the texts in parts by copies.
func cloneTexts(parts []Part) {
	for i, p := range parts {
		switch q := p.(type) {
		case Text:
			parts[i] = Text(strings.Clone(string(q)))
		case Reasoning:
			q.Text = strings.Clone(q.Text)
			parts[i] = q
		}
	}
}

// keepCalls replaces the calls in m by the given calls of an entry. They must be the
// same. If m has none, keepCalls adds them at the end.
func (m *Message) keepCalls(calls []ToolCall) *EditError {
	n := 0
	for i, p := range m.Parts {
		c, ok := p.(ToolCall)
		if !ok {
			continue
		}
		if n == len(calls) {
			return &EditError{Rule: fmt.Sprintf("adds a tool call; the entry has %d", len(calls)), CallID: c.ID}
		}
		was := calls[n]
		switch {
		case text.Valid(c.ID) != was.ID:
			return &EditError{Rule: fmt.Sprintf("changes the tool calls; call %d must be %q", n, was.ID), CallID: c.ID}
		case text.Valid(c.Name) != was.Name:
			return &EditError{Rule: fmt.Sprintf("changes the tool of a call to %q; it must be %q", c.Name, was.Name), CallID: c.ID}
		case text.Valid(c.Arguments) != was.Arguments:
			return &EditError{Rule: "changes the arguments of a call", CallID: c.ID}
		}
		m.Parts[i] = was
		n++
	}
	switch {
	case n == 0:
		for _, c := range calls {
			m.Parts = append(m.Parts, c)
		}
	case n < len(calls):
		return &EditError{Rule: "leaves out a tool call; name all of them, or none to keep them", CallID: calls[n].ID}
	}
	return nil
}

// keepSeals checks that the sealed reasoning in m is from was and in the same order.
// Some may be left out.
func (m *Message) keepSeals(was *Message) *EditError {
	rest := partsOf[Reasoning](was.Parts)
	for i, r := range partsOf[Reasoning](m.Parts) {
		if r.Signature == "" && r.Encrypted == "" {
			continue
		}
		n := slices.Index(rest, r)
		if n < 0 {
			return &EditError{Rule: fmt.Sprintf("puts in sealed reasoning that the entry does not hold, block %d; its maker would refuse it: keep it as it is, or leave it out", i)}
		}
		rest = rest[n+1:]
	}
	return nil
}

// keepResults fills in the calls that the results in m answer. They must match results,
// the results of the entry. If there is only one, m may also be its content.
func (m *Message) keepResults(results []ToolResult) *EditError {
	if !slices.ContainsFunc(m.Parts, isA[ToolResult]) {
		if len(results) != 1 {
			return &EditError{Rule: fmt.Sprintf("does not say which of the %d results it rewrites; name all of them as ToolResult parts", len(results))}
		}
		r := results[0]
		r.Parts, r.Cleared = m.Parts, false
		m.Parts = []Part{r}
		return nil
	}
	if len(m.Parts) != len(results) {
		return &EditError{Rule: fmt.Sprintf("changes the results; the entry has %d, and the rewrite %d parts", len(results), len(m.Parts))}
	}
	for i, p := range m.Parts {
		r, ok := p.(ToolResult)
		if !ok {
			continue // not a part of a tool message; checked reports it
		}
		was := results[i]
		r.CallID, r.Name = cmp.Or(text.Valid(r.CallID), was.CallID), cmp.Or(text.Valid(r.Name), was.Name)
		switch {
		case r.CallID != was.CallID || r.Name != was.Name:
			return &EditError{Rule: fmt.Sprintf("changes which call a result answers; result %d must be of call %q of tool %q", i, was.CallID, was.Name), CallID: r.CallID}
		case r.IsError != was.IsError:
			return &EditError{Rule: fmt.Sprintf("changes whether a result is an error; IsError must be %v", was.IsError), CallID: r.CallID}
		}
		m.Parts[i] = r
	}
	return nil
}

// rewritten returns the replacement of c.from, which c rewrites; o is its original,
// nil if there is none. If there is nothing to change, it replaces c.from by
// itself.
func (id *identity) rewritten(c *change, o *original) replacement {
	from := c.from
	same := equalParts(c.msg.Parts, from.msg.Parts)
	if same && (!c.forget || o == nil) {
		return replacement{from: from, to: from}
	}
	to, next := from.replaced(o)
	to.setReads()
	if same {
		to.own().edit.looks = from.looks()
	}
	to.msg = *c.msg
	to.setMade(0)
	to.marks.set(bare, (from.marks.has(bare) || !from.final) && from.msg.Role == RoleAssistant && equalParts(to.msg.Parts, withoutReasoning(from.msg.Parts)))
	id.weigh(to)
	next.read = to.msg
	if to.msg.Role == RoleTool {
		next.keepRead(from, to, o)
	}
	next.readTokens, _ = id.entry(to, &next.read)
	to.setMissing(next)
	if c.forget {
		return replacement{from, to, nil, departed{to, to, nil}}
	}
	return replacement{from, to, next, departed{from, to, o}}
}

// keepRead lets a summarizer go on reading originals that old holds: those of results that
// are the same in from and in to, a tool message that takes its place. o must not be in use
// yet.
func (o *original) keepRead(from, to *entry, old *original) {
	o.refs = nil
	if old == nil {
		return
	}
	o.read.Parts = slices.Clone(o.read.Parts)
	for i := range o.read.Parts {
		if !equalPart(to.msg.Parts[i], from.msg.Parts[i]) {
			continue
		}
		o.read.Parts[i] = old.read.Parts[i]
		if ref, ok := old.refs[i]; ok {
			o.setRef(i, ref)
		}
	}
}

// withoutReasoning returns parts without reasoning.
func withoutReasoning(parts []Part) []Part {
	return slices.DeleteFunc(slices.Clone(parts), isA[Reasoning])
}

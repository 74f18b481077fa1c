package convo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/internal/calibrate"
	"github.com/seed-c1b73e60/convo/internal/causes"
	"github.com/seed-c1b73e60/convo/internal/overflow"
	"github.com/seed-c1b73e60/convo/internal/text"
	"github.com/seed-c1b73e60/convo/internal/wording"
)

// Recover compacts after a provider has refused a request because it was too long. at is the
// snapshot that was sent, and cause the provider's error. Recover compacts to Limits.Low or to
// half the size of at, whichever is less, under the rules of [History.Compact]. It returns
// retry true if the view is now smaller than at, so that the next [History.Snapshot] can be
// sent. [History.Do] calls it at most twice for a request.
//
// If the provider has refused a part of the request, such as an image, Recover compacts
// nothing. A line that says what was there takes the place of media, a block or the arguments
// of a call, also in the floor, but not in pinned exchanges. Signed or encrypted reasoning is
// left out from now on. Text is never cleared. What is cleared is what the error names, in the
// words and paths of common providers; [PartError] is for formats that are not of package wire.
// Without a path it is the only such part of the request, or the only image whose header shows
// no size. The report has ReasonRefused; Undo restores all but reasoning. Options.OnCompaction
// gets it once a request was accepted or failed for another reason. If the same is refused
// again, Recover puts it back and returns the first error.
//
// If the error names a size between half and twice the estimate for at, Recover uses its
// numbers, even if it then fails. The size of the prompt counts as a usage report. A limit
// below the refused size lowers High, and the other marks in proportion, and is
// Report.NamedLimit. That is saved. It lasts until SetLimits, until SetModel gives another
// model or other limits, or until Open is given other limits. A limit below half of the set
// limit, or of the estimate if none is set, is ignored: a gateway may have fallen back to a
// small model.
//
// The error is nil if and only if retry is true. If Options.IsOverflow returns false for cause,
// the error is cause itself and the outcome is OutcomeNotNeeded. Otherwise it wraps cause and
// the reason why Recover failed: [ErrNoGain] if nothing could be removed, and an error that
// matches [ErrStale] if at is a snapshot of another History. A nil cause is a [*ValueError].
func (h *History) Recover(ctx context.Context, at *Snapshot, cause error) (retry bool, report Report, err error) {
	r := &recovery{h: h, at: at, cause: cause}
	_, entered := h.compacting.enter(ctx)
	switch {
	case cause == nil:
		err = &ValueError{Name: "Recover: cause", Want: "the error that the provider returned"}
		report, _ = h.notStarted(ReasonOverflow, err)
	case entered == ErrReentrant:
		report, err = r.notStarted(ReasonOverflow, entered)
	default:
		r.refusal = refusalIn(cause)
		if r.refusal != nil {
			report, err = r.clear(false)
		} else {
			report, err = r.compact(ctx)
		}
	}
	if err != nil {
		h.locked(func() { h.talk.note(h.newestMessage(), true) })
	}
	return err == nil, report, err
}

// A recovery is one call of Recover.
type recovery struct {
	h       *History
	at      *Snapshot
	cause   error
	refusal *refusal         // nil: the request was too long
	figures overflow.Figures // in the error of a request that was too long
	reports []Report         // to be delivered at the end
}

// compact is Recover for a request that was too long.
func (r *recovery) compact(ctx context.Context) (Report, error) {
	h := r.h
	h.prove(noVersion)
	tooLong, err := r.isOverflow()
	if err == nil && !tooLong {
		report := h.notNeededReport()
		report.Reason = ReasonOverflow
		return report, r.cause
	}
	if err == nil {
		h.locked(func() { err = h.ownsLocked(r.at) })
	}
	if err != nil {
		return r.notStarted(ReasonOverflow, err)
	}
	report, err := h.withSlot(ctx, ReasonOverflow, 1, r.compactIn)
	return report, r.outcome(report, err)
}

// compactIn is compact for the compaction that has the slot.
func (r *recovery) compactIn(f *flight) (report Report, err error) {
	h := r.h
	n := need{reason: ReasonOverflow, requested: true, named: r.learn()}
	var now calibrate.Scale
	h.locked(func() {
		now = h.scale()
		n.target = min(h.meter.marks().low, now.Weigh(r.at.raw())/2)
	})
	if now.Upper() > n.target {
		return f.try(n)
	}
	report = h.notNeededReport()
	report.Reason, report.NamedLimit = ReasonOverflow, n.named
	return report, nil
}

// outcome returns the error of Recover after a compaction. It is nil if the view is smaller
// now than the request that was too long.
func (r *recovery) outcome(report Report, err error) error {
	h := r.h
	var weight, refused int64
	isSmaller := false
	h.change(func() error {
		now := h.scale()
		weight, refused = now.Upper(), now.Weigh(r.at.raw())
		isSmaller = !h.isClosed() && h.raw() < r.at.raw()
		if isSmaller {
			h.prepare()
		}
		return nil
	})
	if err == nil {
		err = report.Cause
	}
	switch {
	case isSmaller:
		return nil
	case err != nil:
	case report.Outcome == OutcomeApplied: // more was appended in the meantime than was removed
		err = &LimitError{Need: clampInt(weight), Limit: clampInt(refused - 1), Compacted: true}
	default: // the conversation is empty
		err = ErrNoGain
	}
	return r.failure(err)
}

// notStarted returns what Recover returns for an err before any compaction.
func (r *recovery) notStarted(reason Reason, err error) (Report, error) {
	report, _ := r.h.notStarted(reason, err)
	return report, r.failure(err)
}

// failure returns the error of Recover for the reason why it failed.
func (r *recovery) failure(err error) error {
	return errorf("%w; the provider said: %w", err, r.cause)
}

// isOverflow calls Options.IsOverflow, or IsOverflow if it is not set, for the error. It returns
// a panic as fault. The request is not too long if the answer that it asks for exceeds a quota,
// so that no compaction helps. Our estimate of the request shows that, or that a longer request
// was refused with the same size.
func (r *recovery) isOverflow() (tooLong bool, fault error) {
	h, isOverflow := r.h, IsOverflow
	if h.opts.IsOverflow != nil {
		isOverflow = h.opts.IsOverflow
	}
	defer catch(&fault, "Options.IsOverflow")
	if !isOverflow(r.cause) {
		return false, nil
	}
	r.figures = overflow.Read(r.cause)
	tooLong = true
	h.locked(func() {
		if r.figures.Quota && h.ownsLocked(r.at) == nil {
			tooLong = !h.meter.exceedsQuota(r.figures, r.at.raw(), h.scale().Weigh(r.at.raw()))
		}
	})
	return tooLong, nil
}

// IsOverflow reports whether err means that a request was too long for the model, as common
// providers, gateways and model servers say it. It is the default of Options.IsOverflow.
//
// It reads at most 64 errors, err and those that it wraps: a few kilobytes at both ends of
// their texts. It also calls methods that errors of official clients have: RawJSON, ErrorCode
// and ErrorMessage, which return a string, HTTPStatusCode, an int, and IsContextTooLarge, a
// bool. Of a pointer to a struct with a field StatusCode, it reads that field, Message and
// Code.
//
// A request with more tokens than an account may use in a minute is an overflow, if the error
// has both sizes. So is the status 413, since a compaction removes bytes as well. Other errors
// about rates, quotas, files or a model that loads are none. Neither are errors about a field
// that is too long, about a length in characters, bytes or pixels, or about an answer that
// would fill the window alone. Joined errors are an overflow if any is.
func IsOverflow(err error) bool {
	return overflow.Is(err)
}

// learn applies the numbers in the error, if its size agrees with our estimate for the
// snapshot. The size of the prompt counts as a usage report, and a limit bounds the marks. It
// returns the limit in the error, or 0 if it does not bound the marks.
func (r *recovery) learn() (named int) {
	h, at, f := r.h, r.at, r.figures
	h.change(func() error {
		if h.ownsLocked(at) != nil || at.known().model != h.known().model {
			return nil
		}
		ours := h.scale().Weigh(at.raw())
		theirs := int64(f.Request())
		if theirs < ours/2 || theirs/2 > ours && !f.Quota { // the answer may be most of what exceeds a quota
			return nil // the request of another, or counted in another unit
		}
		if f.Prompt > 0 && at.version >= h.known().learned.version(at.known().model) {
			h.meter.noteReport(h.learn(at, int64(f.Prompt), h.opts.prior(at.known().model)))
			ours = h.scale().Weigh(at.raw())
		}
		named = h.meter.setNamed(f, ours)
		if named > 0 {
			h.newVersion()
		}
		return nil
	})
	if named > 0 && f.Quota {
		h.warn("convo: a request alone exceeds what the account may use in a minute, so the limit was lowered: raise the quota, and call SetLimits",
			"quota", f.Limit, "requested", f.Total, "limit", h.Status().Limit)
	}
	return named
}

// A PartError is the error of a provider that has refused parts of a request, such as an
// image. A [Send] that writes the body itself returns one, since only it knows which part a
// path belongs to; Recover finds the others.
type PartError struct {
	Parts []RefusedPart // only ID, Part and Inside are read
	Err   error         // of the provider
}

func (e *PartError) Error() string {
	return fmt.Sprintf("convo: refused at %s: %v", counted(len(e.Parts), "place", "places"), e.Err)
}

// Unwrap returns the error of the provider.
func (e *PartError) Unwrap() error { return e.Err }

func init() {
	overflow.Encoded = func(s, format any) {
		if at, ok := s.(*Snapshot); ok && at != nil && at.owner != nil {
			h := at.owner
			h.mu.Lock()
			defer h.mu.Unlock()
			h.refusals.encoded(at, format)
		}
	}
}

// refusalIn returns what an error says about a part of the request, or nil if it is about
// something else. It calls methods of the error, so no lock may be held.
func refusalIn(err error) *refusal {
	r := &refusal{Refusal: overflow.Refused(err), cause: err}
	words := err
	causes.Each(err, func(err error) {
		if e, ok := err.(*PartError); ok && e != nil {
			if r.named == nil {
				r.named = e.Parts
			}
			words = cmp.Or(e.Err, words)
		}
	})
	if r.Kind == overflow.NotRefused && r.named == nil {
		return nil
	}
	if r.Words == "" {
		r.Words = wording.Short(words)
	}
	return r
}

// clear is Recover for a provider that has refused a part of the request. If isLast is true,
// the request is not sent again, and clear only puts back what was cleared in vain.
func (r *recovery) clear(isLast bool) (report Report, err error) {
	defer func() {
		for _, report := range r.reports {
			r.h.deliver(report)
		}
	}()
	r.h.curing.Lock()
	defer r.h.curing.Unlock()
	h, at := r.h, r.at
	report = h.notNeededReport()
	report.Reason = ReasonRefused
	var format any
	var last *cure
	err = h.ifOpen(func() error {
		format, last = h.refusals.of(at)
		return h.ownsLocked(at)
	})
	if err != nil {
		return r.notStarted(ReasonRefused, err)
	}
	body := bodyOf(at, format)
	what, err := r.refusal.find(at, &body)
	isOld := last != nil && err == nil && last.covers(what.places, what.release)
	switch {
	case last != nil && at.version >= last.version && (isOld || last.isBack(r.refusal, err == nil && !what.isEmpty(), at, &body)):
		return r.giveUp(last), last.cause
	case isOld && !isLast: // another request has cured it since
		return report, nil
	}
	r.settle()
	if err == nil && (isLast || what.isEmpty()) {
		return report, r.cause
	}
	c := &cure{refusal: *r.refusal, clearing: what, report: report}
	if err == nil {
		err = r.apply(c)
	}
	switch {
	case err == nil:
		return c.report, nil
	case isStale(err) && at.version < h.Snapshot().version: // the next request tells whether it is still refused
		return report, nil
	}
	return r.notStarted(ReasonRefused, err)
}

// bodyOf returns the body that a format writes of a snapshot, or an empty one.
func bodyOf(at *Snapshot, format any) (b overflow.Body) {
	if format != nil {
		var err error // such a body has no paths
		defer catch(&err, "Encode")
		b, err = overflow.BodyOf(at, format)
	}
	return b
}

// settle ends the trial of the cure in place.
func (r *recovery) settle() {
	r.h.locked(func() {
		if c := r.h.refusals.settle(noVersion); c != nil {
			r.reports = append(r.reports, c.report)
		}
	})
}

// isBack reports whether a provider refuses the same as before c cleared it. The error then
// names the same part, the line in its place, or no place at all. finds says that there is
// something else to clear.
func (c *cure) isBack(again *refusal, finds bool, at *Snapshot, body *overflow.Body) bool {
	switch {
	case again.named != nil:
		return c.covers(again.named, 0) || slices.EqualFunc(c.named, again.named, RefusedPart.isAt)
	case again.Kind != c.Kind:
		return false
	case c.release != 0:
		return len(again.Paths) > 0 && slices.Equal(again.Paths, c.Paths) || !finds
	}
	lines := make(overflow.Texts) // where c has cleared
	for _, s := range at.spots() {
		if slices.ContainsFunc(c.places, s.isAt) {
			switch p := s.p.(type) {
			case Text:
				lines[string(p)] = true
			case ToolCall:
				lines[p.Arguments] = true
			}
		}
	}
	located, has := again.Names(body, lines)
	return has || !located && !finds
}

// isAt reports whether two places are the same.
func (p RefusedPart) isAt(q RefusedPart) bool {
	return p.ID == q.ID && p.Part == q.Part && p.Inside == q.Inside
}

// apply clears what c names. Its report stays undelivered until the trial of c ends.
func (r *recovery) apply(c *cure) error {
	start := time.Now()
	h := r.h
	if len(c.places) > 0 {
		ed := &checkedEdit{at: &r.at.state, noSpill: true}
		if err := ed.clearPlaces(r.at, c.places); err != nil {
			return err
		}
		c.report = Report{Reason: ReasonRefused}
		if _, err := h.carryOut(context.Background(), ed, &c.report); err != nil {
			return err
		}
		if c.report.Outcome == OutcomeDeclined {
			return cmp.Or(c.report.Cause, ErrNoGain)
		}
		c.places = slices.DeleteFunc(c.places, func(p RefusedPart) bool { return slices.Contains(c.report.Spared, p.ID) })
		c.report.Refused = c.places
	}
	return h.ifOpen(func() error {
		c.released = h.released
		if c.release > h.released {
			for _, e := range h.list {
				if e.id > h.released && e.id <= c.release && e.msg.isSigned() {
					c.report.Released++
				}
			}
			h.release(c.release)
		}
		c.report.PrefixKept, c.report.PrefixEnd, _ = h.keptPrefix()
		c.report.Outcome, c.report.Duration = OutcomeApplied, time.Since(start)
		c.report.Fits = h.fits(h.meter.marks())
		h.prepare()
		c.version = h.version
		h.refusals.try(c)
		return nil
	})
}

// giveUp puts back what a cure has cleared, since the provider refuses the request as before,
// and returns the report.
func (r *recovery) giveUp(c *cure) (report Report) {
	h := r.h
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refusals.settle(noVersion)
	h.unrelease(c.release, c.released)
	h.measureBeforeLocked(&report)
	report.Reason, report.Outcome, report.wasBack = ReasonRefused, OutcomeFailed, true
	report.Cause = worded("the provider refuses the request as before, and what was cleared is back", c.cause)
	if len(c.places) > 0 {
		if err := h.undoLocked(c.report.left, false); err != nil { // there was another edit
			report.Cause, report.wasBack = errorf("the provider refuses the request as before, and there was another edit since, so that what was cleared stays; %w", c.cause), false
			r.reports = append(r.reports, c.report)
		}
	}
	h.prepare()
	r.reports = append(r.reports, report)
	return report
}

func (c *clearing) isEmpty() bool { return len(c.places) == 0 && c.release == 0 }

// covers reports whether c clears one of these places, or leaves out the signed reasoning up to
// an entry, which is 0 for none.
func (c *clearing) covers(places []RefusedPart, release ID) bool {
	return release != 0 && release <= c.release || slices.ContainsFunc(places, func(p RefusedPart) bool {
		return slices.ContainsFunc(c.places, p.isAt)
	})
}

// A spot is a part of a message in view, and where it is. The message is ephemeral if its ID is 0.
type spot struct {
	RefusedPart
	p Part
}

// spots returns the parts of the messages in view but for those of system messages and the
// summary.
func (s *state) spots() (all []spot) {
	add := func(id ID, m *Message) {
		for i, p := range m.Parts {
			at := RefusedPart{ID: id, Key: m.Key, Part: i, Inside: -1}
			result, ok := p.(ToolResult)
			if !ok {
				all = append(all, spot{at, p})
			}
			for at.Inside, p = range result.Parts {
				all = append(all, spot{at, p})
			}
		}
	}
	for _, e := range s.list {
		add(e.id, &e.msg)
	}
	for _, m := range orNil(s.eph).msgs {
		add(0, &m)
	}
	return all
}

// item returns what package overflow is told of s.
func (s spot) item() (x overflow.Item) {
	switch p := s.p.(type) {
	case Media:
		x = overflow.Item{Kind: overflow.Document, Texts: []string{cmp.Or(p.Data, p.URL)}, Linked: p.Data == "", Side: p.side()}
		if p.MIME == "" || strings.HasPrefix(p.MIME, "image/") {
			x.Kind = overflow.Image
		}
	case ToolCall:
		x = overflow.Item{Kind: overflow.Arguments, Texts: []string{p.Arguments}}
	case Reasoning:
		if p.Signature+p.Encrypted != "" {
			x = overflow.Item{Kind: overflow.Seal, Texts: []string{p.Signature, p.Encrypted, p.ID}}
		}
	case Opaque:
		x = overflow.Item{Kind: overflow.Block, Fields: overflow.FieldsOf(p.JSON)}
	}
	x.Entry = int64(s.ID)
	return x
}

// find finds what a provider has refused in the request that was made of at.
func (r *refusal) find(at *Snapshot, body *overflow.Body) (c clearing, err error) {
	spots := at.spots()
	items := make([]overflow.Item, len(spots))
	for i, s := range spots {
		items[i] = s.item()
	}
	var found []int
	if r.named != nil {
		found, c.release, err = r.take(at, spots)
	} else {
		var release int64
		var isEphemeral bool
		found, release, isEphemeral = r.Choose(items, body, int64(at.released))
		c.release = ID(release)
		if isEphemeral {
			err = worded("the provider has refused a part of an ephemeral message, which SetEphemeral replaces", nil)
		}
	}
	if err == nil {
		c.places, err = r.placesOf(at, spots, overflow.WithPartners(items, found))
	}
	return c, err
}

// take returns the indices of what the caller names, and up to which entry signed reasoning is
// left out.
func (r *refusal) take(at *Snapshot, spots []spot) (found []int, release ID, err error) {
	for _, p := range r.named {
		isKnown := false
		for i, s := range spots {
			if s.ID == 0 || s.ID != p.ID || s.Part != p.Part || p.Inside >= 0 && s.Inside != p.Inside {
				continue
			}
			isKnown = true
			switch s.p.(type) {
			case Text:
				if p.Inside >= 0 || s.Inside < 0 { // it does not name a whole result
					return nil, 0, &EditError{Rule: "clears a text, which no refusal does", ID: p.ID}
				}
			case Reasoning:
				if p.ID > at.released {
					release = max(release, p.ID)
				}
			default:
				found = append(found, i)
			}
		}
		if !isKnown {
			return nil, 0, &EditError{Rule: fmt.Sprintf("clears part %d, %d, which the entry does not have; Inside is -1 for a part of the message itself", p.Part, p.Inside), ID: p.ID}
		}
	}
	return found, release, nil
}

// placesOf returns the places of the parts found, in ascending order.
func (r *refusal) placesOf(at *Snapshot, spots []spot, found []int) (places []RefusedPart, err error) {
	floor := at.floor()
	for _, i := range found {
		p := spots[i].RefusedPart
		if k, _ := index(at.list, p.ID); floor.pinned(k) {
			return nil, &EditError{Rule: "clears what the provider has refused in " + pinnedRule + "; Unpin it first", ID: p.ID}
		}
		p.Words = r.Words
		places = append(places, p)
	}
	slices.SortFunc(places, func(a, b RefusedPart) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Part, b.Part), cmp.Compare(a.Inside, b.Inside))
	})
	return slices.CompactFunc(places, RefusedPart.isAt), nil
}

// clearPlaces adds to ed the entries without what is refused in them. The places ascend.
func (ed *checkedEdit) clearPlaces(at *Snapshot, places []RefusedPart) error {
	for len(places) > 0 {
		e := at.find(places[0].ID)
		m := e.msg.clone()
		for len(places) > 0 && places[0].ID == e.id {
			parts, i := m.Parts, places[0].Part
			if result, ok := parts[i].(ToolResult); ok {
				parts, i = result.Parts, places[0].Inside
			}
			parts[i] = withoutRefused(parts[i], places[0].Words)
			places = places[1:]
		}
		if err := m.check(true); err != nil {
			return err
		}
		ed.changes = append(ed.changes, change{id: e.id, from: e, msg: &m})
	}
	return nil
}

// withoutRefused returns what takes the place of a part that a provider has refused.
func withoutRefused(p Part, words string) Part {
	words = text.Shorten(words, 200)
	what := ""
	switch p := p.(type) {
	case ToolCall:
		data, _ := json.Marshal(map[string]string{"removed": fmt.Sprintf("the arguments, %s bytes, which the provider refused: %s", grouped(len(p.Arguments)), words)})
		p.Arguments = string(data)
		return p
	case Media:
		what = p.label() + ", " + p.place()
	case Opaque:
		what = p.label()
	}
	return Text(fmt.Sprintf("[%s removed, since the provider refused it: %s]", what, words))
}

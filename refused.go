package convo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo/internal/overflow"
)

// A PlaceError is the error of a provider that has refused parts of a request. A [Send] that
// writes the body itself returns one, since only it knows which part a path belongs to.
type PlaceError struct {
	Places []Place // only ID, Part and Inside are read
	Err    error   // of the provider
}

func (e *PlaceError) Error() string {
	return fmt.Sprintf("convo: refused at %s: %v", counted(len(e.Places), "place", "places"), e.Err)
}

// Unwrap returns the error of the provider.
func (e *PlaceError) Unwrap() error { return e.Err }

func init() {
	overflow.Encoded = func(s, format any) {
		at, ok := s.(*Snapshot)
		if !ok || at == nil || at.owner == nil {
			return
		}
		h := at.owner
		h.mu.Lock()
		defer h.mu.Unlock()
		h.refusals.encodings = slices.DeleteFunc(h.refusals.encodings, func(e encoding) bool { return e.at == at })
		if n := len(h.refusals.encodings); n == mostEncodings {
			h.refusals.encodings = slices.Delete(h.refusals.encodings, 0, 1)
		}
		h.refusals.encodings = append(h.refusals.encodings, encoding{at, format})
	}
}

// recoverPlace is Recover for a provider that has refused a part of the request. If isLast is set,
// the request is not sent again, and it only puts back what was cleared in vain.
func (h *History) recoverPlace(at *Snapshot, c *cure, isLast bool) (retry bool, r Report, err error) {
	h.refusals.curing.Lock()
	retry, r, err = h.recoverPlaceAlone(at, c, isLast)
	told := h.refusals.toldCures
	h.refusals.toldCures = nil
	h.refusals.curing.Unlock()
	for _, r := range told {
		h.deliver(r)
	}
	return retry, r, err
}

// recoverPlaceAlone is recoverPlace for one caller at a time. It leaves reports in h.toldCures.
func (h *History) recoverPlaceAlone(at *Snapshot, c *cure, isLast bool) (retry bool, r Report, err error) {
	r = h.notNeededReport()
	r.Reason = ReasonRefused
	h.mu.Lock()
	err = h.ownsLocked(at)
	if h.endedLocked() {
		err = ErrClosed
	}
	var format any
	if i := slices.IndexFunc(h.refusals.encodings, func(e encoding) bool { return e.at == at }); i >= 0 {
		format = h.refusals.encodings[i].format
	}
	last := h.refusals.cure
	h.mu.Unlock()
	if err != nil {
		return h.notRecovered(ReasonRefused, err, c.cause)
	}
	body := overflow.Body{}
	if format != nil {
		body, _ = bodyOf(at, format)
	}
	if last != nil && at.version >= last.version && last.isBack(c, at, &body) {
		return false, h.giveUp(last), last.cause
	}
	switch err = c.find(at, &body); {
	case err == nil && last != nil && at.version < last.version && last.isOf(c): // another request has cured it since
		return true, r, nil
	case err == nil && last != nil && at.version >= last.version && last.isOf(c):
		return false, h.giveUp(last), last.cause
	case err == nil && len(c.places) == 0 && c.release == 0, err == nil && isLast:
		h.settle(noVersion)
		return false, r, c.cause
	}
	h.settle(noVersion)
	if err == nil {
		err = h.applyCure(at, c)
	}
	switch {
	case isStale(err) && at.version < h.Snapshot().version: // the next request tells whether it is still refused
		return true, r, nil
	case err != nil:
		return h.notRecovered(ReasonRefused, err, c.cause)
	}
	return true, c.report, nil
}

// isBack reports whether a provider refuses what c has cleared: it names the same part, or where
// the line stands that took its place, or no place at all.
func (c *cure) isBack(again *cure, at *Snapshot, body *overflow.Body) bool {
	if again.named != nil {
		return c.isOf(&cure{places: again.named}) || slices.EqualFunc(c.named, again.named, func(p, q Place) bool {
			return p.ID == q.ID && p.Part == q.Part && p.Inside == q.Inside
		})
	}
	if again.refusal.Kind != c.refusal.Kind {
		return false
	}
	if c.release != 0 {
		return len(again.refusal.Paths) > 0 && slices.Equal(again.refusal.Paths, c.refusal.Paths) || !again.finds(at, body)
	}
	located := false
	for _, path := range again.refusal.Paths {
		if within := body.At(path); within != nil {
			located = true
			for s := range overflow.Strings(within[0]) {
				if slices.ContainsFunc(c.places, func(p Place) bool { return at.partAt(p) == s }) {
					return true
				}
			}
		}
	}
	return !located && !again.finds(at, body)
}

// finds reports whether there is anything to clear in at.
func (c *cure) finds(at *Snapshot, body *overflow.Body) bool {
	own := cure{refusal: c.refusal, named: c.named}
	return own.find(at, body) == nil && (len(own.places) > 0 || own.release != 0)
}

// partAt returns the text or the arguments at a place, or the empty string.
func (s *state) partAt(p Place) string {
	for spot := range s.spots {
		if spot.e != nil && spot.e.id == p.ID && spot.part == p.Part && spot.inside == p.Inside {
			switch p := spot.p.(type) {
			case Text:
				return string(p)
			case ToolCall:
				return p.Arguments
			}
		}
	}
	return ""
}

// refusedIn returns the cure for an error if it says that a provider has refused a part of the
// request, and nil otherwise. It calls methods of the error, so no lock may be held.
func refusedIn(err error) *cure {
	c := &cure{refusal: overflow.Refused(err), named: placesIn(err), cause: err}
	if c.refusal.Kind == overflow.NotRefused && c.named == nil {
		return nil
	}
	if c.refusal.Words == "" {
		c.refusal.Words = wordsOf(err)
	}
	return c
}

// bodyOf returns the body that a format writes of a snapshot.
func bodyOf(at *Snapshot, format any) (b overflow.Body, err error) {
	defer catch(&err, "Encode")
	return overflow.BodyOf(at, format)
}

// isOf reports whether what c clears is what o clears, or a part of it.
func (c *cure) isOf(o *cure) bool {
	return o.release != 0 && o.release <= c.release || slices.ContainsFunc(o.places, func(p Place) bool {
		return slices.ContainsFunc(c.places, func(q Place) bool { return q.ID == p.ID && q.Part == p.Part && q.Inside == p.Inside })
	})
}

// applyCure clears what c names. It stays undelivered until prove or giveUp.
func (h *History) applyCure(at *Snapshot, c *cure) error {
	start := time.Now()
	c.report = h.notNeededReport()
	c.report.Reason = ReasonRefused
	if len(c.places) > 0 {
		ed := &checkedEdit{at: &at.state, oldSummary: at.summary, noSpill: true}
		if err := ed.clearPlaces(at, c.places); err != nil {
			return err
		}
		c.report = Report{Reason: ReasonRefused}
		if _, err := h.carryOut(context.Background(), ed, &c.report); err != nil {
			return err
		}
		if c.report.Outcome == OutcomeDeclined {
			return cmp.Or(c.report.Cause, ErrNoGain)
		}
		c.places = slices.DeleteFunc(c.places, func(p Place) bool { return slices.Contains(c.report.Spared, p.ID) })
		c.report.Refused = c.places
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.endedLocked() {
		return ErrClosed
	}
	c.released = h.released
	if c.release > h.released {
		c.report.Released += h.signedIn(h.released, c.release)
		h.release(c.release)
	}
	c.report.PrefixKept, c.report.PrefixEnd, _ = h.keptPrefix()
	c.report.Outcome, c.report.Duration = OutcomeApplied, time.Since(start)
	c.report.Fits = h.fitsLocked()
	h.prepare()
	c.version, h.refusals.cure = h.version, c
	return nil
}

// giveUp puts back what a cure has cleared, since the provider refuses the request as before,
// and returns the report.
func (h *History) giveUp(c *cure) Report {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refusals.cure = nil
	h.unrelease(c.release, c.released)
	var r Report
	h.measureBeforeLocked(&r)
	r.Reason, r.Outcome, r.wasBack = ReasonRefused, OutcomeFailed, true
	r.Cause = &wordedError{"the provider refuses the request as before, and what was cleared is back", c.cause}
	if len(c.places) > 0 {
		if err := h.undoLocked(c.report.left, false); err != nil { // there was another edit, and what was cleared stays
			r.Cause, r.wasBack = errorf("the provider refuses the request as before, and there was another edit since, so that what was cleared stays; %w", c.cause), false
			h.refusals.toldCures = append(h.refusals.toldCures, c.report)
		}
	}
	h.prepare()
	h.refusals.toldCures = append(h.refusals.toldCures, r)
	return r
}

// signedIn returns how many entries after one ID and up to another have signed reasoning.
func (s *state) signedIn(after, last ID) (n int) {
	for _, e := range s.list {
		if e.id > after && e.id <= last && e.msg.isSigned() {
			n++
		}
	}
	return n
}

// A spot is a part of a message in view.
type spot struct {
	e            *entry // nil: the message is ephemeral
	part, inside int
	p            Part
}

// find finds what a provider has refused in the request that was made of at.
func (c *cure) find(at *Snapshot, body *overflow.Body) error {
	if c.named != nil {
		return c.take(at, c.named)
	}
	var all, found []spot // of the kind that is refused
	for s := range at.spots {
		if isRefused(s.p, c.refusal) {
			all = append(all, s)
		}
	}
	located := false // the place is one of the body
	for _, path := range c.refusal.Paths {
		within := body.At(path)
		located = located || within != nil
		for _, in := range within {
			if here := spotsOf(all, in); len(here) > 0 {
				found = append(found, here...)
				break
			}
		}
	}
	switch c.refusal.Kind {
	case overflow.Reference:
		found = all // to this tool
	case overflow.Container:
		if c.refusal.Name != "" || isOneContainer(all) {
			found = all // in this container
		}
	case overflow.Block:
		if c.refusal.Name != "" {
			found = all // with this id
		}
	case overflow.Image:
		for _, s := range all {
			if m, ok := s.p.(Media); ok && c.refusal.Most > 0 && m.side() > c.refusal.Most {
				found = append(found, s)
			}
		}
	case overflow.Seal, overflow.Encrypted:
		return c.leaveOut(at, found, all)
	}
	if len(found) == 0 && !located {
		if len(all) > 1 { // it can be no other than what shows no size
			all = slices.DeleteFunc(all, func(s spot) bool { m, ok := s.p.(Media); return !ok || m.Data == "" || m.side() > 0 })
		}
		if len(all) == 1 {
			found = all
		}
	}
	if slices.ContainsFunc(found, func(s spot) bool { return s.e == nil }) {
		return &wordedError{"the provider has refused a part of an ephemeral message, which SetEphemeral replaces", nil}
	}
	return c.clear(at, found)
}

// placesIn returns the places that a PlaceError names, or nil.
func placesIn(err error) (places []Place) {
	left := 64
	eachError(err, &left, func(err error) {
		if e, ok := err.(*PlaceError); ok && e != nil && places == nil {
			places = e.Places
		}
	})
	return places
}

// wordsOf returns what the provider says in the error of a caller.
func wordsOf(err error) string {
	left := 64
	words := err
	eachError(err, &left, func(err error) {
		if e, ok := err.(*PlaceError); ok && e != nil && e.Err != nil {
			words = e.Err
		}
	})
	return printError(words)
}

// take takes what the caller names.
func (c *cure) take(at *Snapshot, places []Place) error {
	var found []spot
	var release ID
	for _, p := range places {
		i := -1
		for s := range at.spots {
			if s.e == nil || s.e.id != p.ID || s.part != p.Part || p.Inside >= 0 && s.inside != p.Inside {
				continue
			}
			i = 0
			switch s.p.(type) {
			case Text:
				if p.Inside < 0 && s.inside >= 0 {
					continue // it names a whole result
				}
				return &EditError{Rule: "clears a text, which no refusal does", ID: p.ID}
			case Reasoning:
				release = max(release, p.ID)
			default:
				found = append(found, s)
			}
		}
		if i < 0 {
			return &EditError{Rule: fmt.Sprintf("clears part %d, %d, which the entry does not have; Inside is -1 for a part of the message itself", p.Part, p.Inside), ID: p.ID}
		}
	}
	if c.release = release; release <= at.released {
		c.release = 0
	}
	return c.clear(at, found)
}

// spots yields the parts of the messages in view but for those of system messages and the
// summary.
func (s *state) spots(yield func(spot) bool) {
	of := func(e *entry, m *Message) bool {
		for i, p := range m.Parts {
			result, ok := p.(ToolResult)
			if !ok {
				if !yield(spot{e, i, -1, p}) {
					return false
				}
				continue
			}
			for k, p := range result.Parts {
				if !yield(spot{e, i, k, p}) {
					return false
				}
			}
		}
		return true
	}
	for _, e := range s.list {
		if !of(e, &e.msg) {
			return
		}
	}
	if s.eph != nil {
		for i := range s.eph.msgs {
			if !of(nil, &s.eph.msgs[i]) {
				return
			}
		}
	}
}

// isRefused reports whether a part is of the kind that is refused.
func isRefused(p Part, r overflow.Refusal) bool {
	switch p := p.(type) {
	case Media:
		isImage := p.MIME == "" || strings.HasPrefix(p.MIME, "image/")
		return r.Kind == overflow.Image && isImage || r.Kind == overflow.Document && !isImage
	case ToolCall:
		return r.Kind == overflow.Arguments && utf8.RuneCountInString(p.Arguments) > r.Most
	case Reasoning:
		return (r.Kind == overflow.Seal || r.Kind == overflow.Encrypted) && p.Signature+p.Encrypted != ""
	case Opaque:
		switch r.Kind {
		case overflow.Image:
			return blockOf(p).is("image")
		case overflow.Document:
			return blockOf(p).is("document")
		case overflow.Encrypted:
			return blockOf(p).is("reasoning")
		case overflow.Reference:
			return blockOf(p).refersTo(r.Name)
		case overflow.Container:
			id, ok := blockOf(p)["container_id"].(string)
			return ok && (r.Name == "" || r.Name == id)
		case overflow.Block:
			b := blockOf(p)
			return r.Name == "" || b["id"] == r.Name || b["tool_use_id"] == r.Name
		}
	}
	return false
}

// isOneContainer reports whether all of these parts ran in the same container.
func isOneContainer(all []spot) bool {
	return !slices.ContainsFunc(all, func(s spot) bool {
		return blockOf(s.p.(Opaque))["container_id"] != blockOf(all[0].p.(Opaque))["container_id"]
	})
}

// A block is the JSON of an Opaque.
type block map[string]any

// blockOf returns the block of an Opaque, or nil if it is no object.
func blockOf(o Opaque) (b block) {
	_ = json.Unmarshal([]byte(o.JSON), &b)
	return b
}

func (b block) is(kind string) bool { return b["type"] == kind }

// refersTo reports whether b holds a reference to a tool.
func (b block) refersTo(tool string) (found bool) {
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			found = found || v["type"] == "tool_reference" && v["tool_name"] == tool
			for _, in := range v {
				walk(in)
			}
		case []any:
			for _, in := range v {
				walk(in)
			}
		}
	}
	walk(map[string]any(b))
	return found
}

// leastShared is the length of a string that a block shares with a part of the body only if
// they are the same.
const leastShared = 16

// spotsOf returns the parts that an object of the body was made of.
func spotsOf(all []spot, in map[string]any) (found []spot) {
	texts := make(map[string]bool)
	for s := range overflow.Strings(in) {
		texts[s] = true
		if _, data, ok := strings.Cut(s, ";base64,"); ok {
			texts[data] = true
		}
	}
	has := func(s string) bool { return s != "" && texts[s] }
	for _, s := range all {
		var ok bool
		switch p := s.p.(type) {
		case Media:
			ok = has(cmp.Or(p.Data, p.URL))
		case ToolCall:
			ok = has(p.Arguments)
		case Reasoning:
			ok = has(p.Signature) || has(p.Encrypted) || has(p.ID)
		case Opaque:
			for t := range overflow.Strings(map[string]any(blockOf(p))) {
				ok = ok || len(t) >= leastShared && has(t)
			}
		}
		if ok {
			found = append(found, s)
		}
	}
	return found
}

// leaveOut sets up to which entry signed reasoning is left out: the one that is named, or all.
// What another server has encrypted is all of it.
func (c *cure) leaveOut(at *Snapshot, found, all []spot) error {
	var newest, named ID
	all = slices.DeleteFunc(all, func(s spot) bool { return s.e == nil })
	for _, s := range all {
		newest = max(newest, s.e.id)
	}
	for _, s := range found {
		if s.e != nil {
			named = max(named, s.e.id)
		}
	}
	if c.refusal.Kind == overflow.Encrypted || named == 0 {
		named = newest
	}
	if slices.ContainsFunc(all, func(s spot) bool { return isReasoning(s.p) && s.e.id > at.released && s.e.id <= named }) {
		c.release = named
	}
	all = slices.DeleteFunc(slices.Clone(all), func(s spot) bool { return isReasoning(s.p) })
	return c.clear(at, all) // reasoning that is kept as a block
}

func isReasoning(p Part) bool { _, ok := p.(Reasoning); return ok }

// clear sets what is cleared: the parts found, and their partners.
func (c *cure) clear(at *Snapshot, found []spot) error {
	for i := 0; i < len(found); i++ {
		s := found[i]
		if o, ok := s.p.(Opaque); ok {
			b := blockOf(o)
			for partner := range at.spots {
				if o, ok := partner.p.(Opaque); ok && partner.e != nil && b.isPartner(blockOf(o)) && !slices.Contains(found, partner) {
					found = append(found, partner)
				}
			}
		}
	}
	floor := at.floor()
	for _, s := range found {
		if i, _ := index(at.list, s.e.id); floor.pinned(i) {
			return &EditError{Rule: "clears what the provider has refused in " + pinnedRule + "; Unpin it first", ID: s.e.id}
		}
		p := Place{ID: s.e.id, Key: s.e.msg.Key, Part: s.part, Inside: s.inside, Words: c.refusal.Words}
		if !slices.Contains(c.places, p) {
			c.places = append(c.places, p)
		}
	}
	slices.SortFunc(c.places, func(a, b Place) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Part, b.Part), cmp.Compare(a.Inside, b.Inside))
	})
	return nil
}

// isPartner reports whether one of two blocks is the result of the other.
func (b block) isPartner(o block) bool {
	is := func(call, result block) bool {
		id, ok := call["id"].(string)
		return ok && id != "" && result["tool_use_id"] == id
	}
	return is(b, o) || is(o, b)
}

// clearPlaces adds to ed the entries without what is refused in them. The places ascend.
func (ed *checkedEdit) clearPlaces(at *Snapshot, places []Place) error {
	for len(places) > 0 {
		e := at.find(places[0].ID)
		m := e.msg.clone()
		for len(places) > 0 && places[0].ID == e.id {
			m.clearAt(places[0])
			places = places[1:]
		}
		if err := m.check(true); err != nil {
			return err
		}
		ed.changes = append(ed.changes, change{id: e.id, from: e, msg: m})
	}
	return nil
}

// clearAt clears a part of m, whose parts are not shared.
func (m *Message) clearAt(p Place) {
	part := &m.Parts[p.Part]
	if result, ok := (*part).(ToolResult); ok {
		result.Parts = slices.Clone(result.Parts)
		result.Parts[p.Inside] = Text(refusedMarker(result.Parts[p.Inside], p.Words))
		*part = result
		return
	}
	if call, ok := (*part).(ToolCall); ok {
		call.Arguments = refusedMarker(call, p.Words)
		*part = call
		return
	}
	*part = Text(refusedMarker(*part, p.Words))
}

// refusedMarker returns what stands in place of a part that a provider has refused.
func refusedMarker(p Part, words string) string {
	what := ""
	switch p := p.(type) {
	case Media:
		what = p.label() + ", " + p.place()
	case ToolCall:
		data, _ := json.Marshal(map[string]string{"removed": fmt.Sprintf("the arguments, %s bytes, which the provider refused: %s", grouped(len(p.Arguments)), shorten(words, 200))})
		return string(data)
	case Opaque:
		what = p.label()
	}
	return fmt.Sprintf("[%s removed, since the provider refused it: %s]", what, shorten(words, 200))
}

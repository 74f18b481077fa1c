package convo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// How an edit comes into force: judge looks at it by the snapshot it was made
// of, prepare makes and counts the texts it needs, perform applies it to the
// state of now or says why not. Only prepare runs code of the caller.

// A judgement is an edit that keeps the rules of its snapshot.
type judgement struct {
	drop   []ID       // ascending
	clears []clearing // ascending by entry, none of a dropped one
	sum    *Summary   // nil: leave the slot
	read   []ID       // of drop, what sum stands for; nil: all
	slot   *slot      // what the snapshot shows
}

// A clearing is what an edit clears in one entry.
type clearing struct {
	id    ID
	texts []Clear
}

// matches returns the Clear for a result, nil when there is none.
func (c *clearing) matches(callID string) *Clear {
	for i := range slices.Backward(c.texts) { // the last one counts
		if t := &c.texts[i]; t.CallID == "" || t.CallID == callID {
			return t
		}
	}
	return nil
}

func judge(at *state, e *Edit) (*judgement, error) {
	j := &judgement{drop: slices.Clone(e.Drop), read: e.read, slot: at.slot}
	if !slices.IsSorted(j.drop) {
		slices.Sort(j.drop)
	}
	j.drop = slices.Compact(j.drop)
	if err := j.judgeDrop(at); err != nil {
		return nil, err
	}
	if err := j.judgeClear(at, e.Clear); err != nil {
		return nil, err
	}
	if e.Summary == nil {
		return j, nil
	}
	sum := *e.Summary
	sum.Text = validText(sum.Text)
	if sum.Text != "" && strings.TrimSpace(sum.Text) == "" {
		return nil, &EditError{Rule: "the summary is blank"}
	}
	for _, r := range sum.Covers {
		if r.First < 1 || r.Last < r.First || r.Last > at.last {
			return nil, &EditError{Rule: fmt.Sprintf("the summary covers %d to %d, which is no range of IDs given so far", r.First, r.Last)}
		}
	}
	sum.Covers = slices.Clone(sum.Covers)
	if sum.Usage.fault() != nil {
		sum.Usage = Usage{}
	}
	j.sum = &sum
	return j, nil
}

func (j *judgement) judgeDrop(at *state) error {
	floor := at.floor()
	drop := j.drop
	for from := 0; from < len(at.list) && len(drop) > 0; {
		_, to := exchangeAt(at.list, from)
		named := 0
		for _, e := range at.list[from:to] {
			if len(drop) > 0 && drop[0] < e.id {
				return unknownEntry(at, drop[0])
			}
			if len(drop) > 0 && drop[0] == e.id {
				drop = drop[1:]
				named++
			}
		}
		if named > 0 {
			if named < to-from {
				return &EditError{Rule: "drops half an exchange", ID: at.list[from].id}
			}
			if rule := floor.rule(from); rule != "" {
				return &EditError{Rule: "drops " + rule, ID: at.list[from].id}
			}
		}
		from = to
	}
	if len(drop) > 0 {
		return unknownEntry(at, drop[0])
	}
	return nil
}

func unknownEntry(at *state, id ID) error {
	if _, ok := index(at.sys, id); ok {
		return &EditError{Rule: "names a system entry", ID: id}
	}
	return &EditError{Rule: "names an entry that the snapshot does not hold", ID: id}
}

func (j *judgement) judgeClear(at *state, clears []Clear) error {
	clears = slices.Clone(clears)
	slices.SortStableFunc(clears, func(a, b Clear) int { return cmp.Compare(a.ID, b.ID) })
	floor := at.floor()
	for _, c := range clears {
		i, ok := index(at.list, c.ID)
		if !ok {
			return unknownEntry(at, c.ID)
		}
		e := at.list[i]
		if !hasResult(e, c.CallID) {
			return &EditError{Rule: "clears a result that is not there", ID: c.ID, CallID: c.CallID}
		}
		if rule := floor.rule(i); rule != "" {
			return &EditError{Rule: "clears " + rule, ID: c.ID, CallID: c.CallID}
		}
		if _, dropped := slices.BinarySearch(j.drop, c.ID); dropped {
			continue
		}
		c.Text = validText(c.Text)
		if n := len(j.clears); n == 0 || j.clears[n-1].id != c.ID {
			j.clears = append(j.clears, clearing{id: c.ID})
		}
		last := &j.clears[len(j.clears)-1]
		last.texts = append(last.texts, c)
	}
	return nil
}

func hasResult(e *entry, callID string) bool {
	return slices.ContainsFunc(e.msg.Parts, func(p Part) bool {
		r, ok := p.(ToolResult)
		return ok && (callID == "" || r.CallID == callID)
	})
}

// rule names the rule that makes the i-th entry floor, empty when it is not.
func (f *floor) rule(i int) string {
	switch {
	case f.pinned(i):
		return "a pinned exchange"
	case i >= f.newest:
		return "the newest exchange"
	case f.usersFrom <= i && i < f.usersTo:
		return "a user message of the newest turn"
	}
	return ""
}

// prepared holds the texts of an edit, counted.
type prepared struct {
	clears    []replacement // beside judgement.clears
	slot      *slot         // nil: none
	unspilled []error
	kept      []Clear // results whose originals found no place
}

// A spiller keeps the original of a result of an entry, and says where.
type spiller func(*entry, ToolResult) (ref string, err error)

// A replacement is an entry with results cleared. Where from is nil there is
// nothing to do.
type replacement struct{ from, to *entry }

func (id *identity) prepare(now *state, j *judgement, spill spiller) *prepared {
	p := &prepared{clears: make([]replacement, len(j.clears))}
	for i := range j.clears {
		c := &j.clears[i]
		k, ok := index(now.list, c.id)
		if !ok {
			continue // perform finds it gone
		}
		from := now.list[k]
		if _, pinned := slices.BinarySearch(now.pins, from.head); pinned {
			continue // perform keeps it
		}
		if to := id.cleared(from, c, spill, p); to != nil {
			p.clears[i] = replacement{from, to}
		}
	}
	if j.sum != nil && j.sum.Text != "" {
		p.slot = &slot{sum: *j.sum, raw: id.summaryTokens(j.sum.Text)}
		p.slot.sum.Tokens = clampInt(p.slot.raw)
	}
	return p
}

// cleared returns a copy of an entry with results cleared, nil when there is
// nothing to clear.
func (id *identity) cleared(from *entry, c *clearing, spill spiller, p *prepared) *entry {
	to := *from
	to.msg = from.msg.clone()
	changed := false
	for i, part := range to.msg.Parts {
		r, ok := part.(ToolResult)
		if !ok {
			continue // in a snapshot that nobody has checked
		}
		t := c.matches(r.CallID)
		if t == nil || t.Text == "" && r.Cleared {
			continue
		}
		text := t.Text
		if text == "" {
			ref := ""
			var err error
			if spill != nil {
				ref, err = spill(from, r)
			}
			text = markerText(&r, ref)
			if err == nil && ref != "" && id.text(text) >= id.parts(r.Parts) {
				err = fmt.Errorf("convo: clear result of call %q: the reference that Spill returned is no shorter", r.CallID)
			}
			if err != nil {
				p.unspilled = append(p.unspilled, err)
				p.kept = append(p.kept, Clear{ID: from.id, CallID: r.CallID})
				continue
			}
		}
		r.Parts, r.Cleared = textParts(text), true
		to.msg.Parts[i] = r
		changed = true
	}
	if !changed {
		return nil
	}
	to.tokens = id.message(&to.msg)
	return &to
}

// markerText is what stands for a cleared result.
func markerText(r *ToolResult, ref string) string {
	return fmt.Sprintf("[result of %s cleared: %d bytes%s]", r.Name, textSize(r.Parts), refText(ref))
}

// performed says what an edit did.
type performed struct {
	changed                bool
	again                  bool // prepare once more
	dropped, cleared, kept []ID
	read                   []ID // dropped, and in the summary
	touched                []Range
}

// perform applies an edit to s, which must have slices of its own. On an
// error, or when it must be prepared again, s is not to be used.
func (s *state) perform(j *judgement, p *prepared) (performed, error) {
	var done performed
	if j.sum != nil && s.slot != j.slot {
		return done, ErrStale
	}
	if len(j.drop) > 0 || len(j.clears) > 0 {
		if err := s.rewrite(j, p, &done); err != nil || done.again {
			return done, err
		}
	}
	if j.sum == nil || len(j.drop) > 0 && len(done.dropped) == 0 {
		return done, nil
	}
	if p.slot == nil {
		done.changed = done.changed || s.slot != nil
		s.slot = nil
		return done, nil
	}
	if done.split(j.read); len(done.read) == 0 && len(j.drop) > 0 {
		return done, nil // all that it stands for was pinned meanwhile
	}
	sum := &p.slot.sum
	covers := j.sum.Covers
	if covers == nil {
		covers = rangesOf(done.read)
	}
	sum.Updates, sum.Time = 0, time.Now()
	if s.slot != nil {
		covers = slices.Concat(covers, s.slot.sum.Covers)
		sum.Updates = s.slot.sum.Updates + 1
	}
	sum.Covers = joinRanges(slices.Clone(covers)...)
	s.slot, done.changed = p.slot, true
	return done, nil
}

// split parts what was dropped into what the summary stands for and the rest.
func (done *performed) split(read []ID) {
	if read == nil {
		done.read, done.dropped = done.dropped, nil
		return
	}
	var rest []ID
	for _, id := range done.dropped {
		if _, ok := slices.BinarySearch(read, id); ok {
			done.read = append(done.read, id)
		} else {
			rest = append(rest, id)
		}
	}
	done.dropped = rest
}

// rewrite drops and clears in the list. What comes after the last entry that
// is named is copied unseen.
func (s *state) rewrite(j *judgement, p *prepared, done *performed) error {
	drop, clears := j.drop, j.clears
	list := make([]*entry, 0, max(len(s.list)-len(drop), 0)+min(len(drop), 64))
	done.dropped = make([]ID, 0, len(drop))
	floor := s.floor()
	turn, kept := 0, true // the turn at hand, and whether an entry of it stays
	i := 0
	for ; i < len(s.list) && len(drop)+len(clears) > 0; i++ {
		e := s.list[i]
		if e.turn != turn {
			s.lose(kept)
			turn, kept = e.turn, e.turn == 0
		}
		named := len(drop) > 0 && drop[0] == e.id
		if named {
			drop = drop[1:]
		}
		var r *replacement
		if len(clears) > 0 && clears[0].id == e.id {
			r = &p.clears[len(j.clears)-len(clears)]
			clears = clears[1:]
			named = true
		}
		if named {
			switch {
			case floor.pinned(i):
				done.kept = append(done.kept, e.id)
			case floor.has(i):
				return ErrStale
			case r == nil:
				done.dropped = append(done.dropped, e.id)
				s.listRaw -= e.tokens
				s.touch(e, done)
				continue
			case r.from == nil: // nothing to clear, or no place for the original
			case r.from != e:
				done.again = true
				return nil
			default:
				done.cleared = append(done.cleared, e.id)
				s.listRaw += r.to.tokens - e.tokens
				e = r.to
				s.touch(e, done)
			}
		}
		kept = true
		list = append(list, e)
	}
	if len(drop) > 0 || len(clears) > 0 {
		return ErrStale // it left the view
	}
	s.lose(kept || i < len(s.list) && s.list[i].turn == turn)
	s.list = append(list, s.list[i:]...)
	return nil
}

// lose counts a turn of which nothing was kept.
func (s *state) lose(kept bool) {
	if !kept {
		s.turns--
	}
}

func (s *state) touch(e *entry, done *performed) {
	done.changed = true
	if n := len(done.touched); n > 0 && done.touched[n-1].Last+1 == e.id {
		done.touched[n-1].Last = e.id
	} else {
		done.touched = append(done.touched, Range{e.id, e.id})
	}
	s.touched = max(s.touched, e.turn)
}

package convo

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/internal/callid"
	"github.com/seed-c1b73e60/convo/internal/fingerprint"
	"github.com/seed-c1b73e60/convo/internal/markers"
	"github.com/seed-c1b73e60/convo/internal/ranges"
	"github.com/seed-c1b73e60/convo/internal/runs"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// A rowList stands for the entries of a view that the application has rows of.
type rowList struct {
	runs.List[ID]
	made    []fingerprint.Sum // what each answer with signed reasoning was made for, in order; 0: it is not bound
	tools   []Range           // of entries whose turn called a tool before, where that has left the view
	paused  []Range           // of answers that the provider paused
	left    leftRow           // the newest row that has left the view; zero: none is known
	cleared []Range           // of entries with all their results cleared
	changes []rowChange       // of other results

	measuredFrame           // what the calibration in force was measured with
	sent          *sentView // what the next answer is for; nil: the view
	lastAppend    time.Time
}

// end returns the key of the row up to which the History knows all rows, if that has left the
// view, and otherwise "". All rows after the newest one in view, up to this, have left.
func (r *rowList) end() string {
	if r.Newest() > r.left.id {
		return ""
	}
	return r.left.key
}

// mostListed is how many rows a run may have whose keys are all listed.
const mostListed = 32

// rowSums computes what rows are compared by: what the model reads of each entry, and in the
// lowest bits which calls its results answer.
type rowSums struct {
	calls []ToolCall // of the newest message that is no result
}

// callBits is how many bits of the sum of a result tell which call it answers.
const callBits = 16

// of returns the sum of the next entry.
func (r *rowSums) of(e *entry) fingerprint.Sum {
	sum := fingerprint.Sum(e.msg.Sum())
	if e.msg.Role != RoleTool {
		r.calls = e.msg.ToolCalls()
		return sum
	}
	answered := 0
	for _, p := range e.msg.Parts {
		result, ok := p.(ToolResult)
		at := slices.IndexFunc(r.calls, func(c ToolCall) bool { return ok && c.ID == result.CallID })
		answered = 31*answered + at + 1
	}
	return sum>>callBits<<callBits | fingerprint.Sum(answered&(1<<callBits-1))
}

// cut removes the rows of entries newer than last.
func (r *rowList) cut(last ID) {
	r.Cut(last)
	if r.left.id > last {
		r.left = leftRow{}
	}
	r.changes = slices.DeleteFunc(r.changes, func(c rowChange) bool { return c.id > last })
	r.sent = nil
}

// A rowChange is a part that is not as the row has it: a result that was cleared or is without
// its middle, or what a text has replaced.
type rowChange struct {
	id     ID
	part   int
	inside int    // 1 more than the index of the part of the result that mark or, if that is empty, a marker of the cut replaces; 0: it replaces the part itself
	mark   string // replaces a part that is no result, or the arguments of a call; empty: a result was cleared or cut
	ref    string // in the marker
	head   int    // bytes of the text before the marker
	left   int    // bytes left out; 0: it is cleared
}

// A rowLister makes the rowList of a view.
type rowLister struct {
	*rowList
	view      *Snapshot
	others    []*entry // that no row tells
	keys      map[string]bool
	turns     runs.Turns
	summer    rowSums
	uncleared bool // a result that is not cleared stands after the last cleared one
}

// newRowList returns the rows of a view, and the entries that no row tells. An error is a
// *RowError.
func newRowList(s *Snapshot) (*rowList, []*entry, error) {
	l := &rowLister{view: s, keys: make(map[string]bool), uncleared: true}
	l.rowList = &rowList{measuredFrame: measuredFrame{frame: s.frame()}}
	for i := range s.list {
		if err := l.add(i); err != nil {
			return nil, nil, err
		}
	}
	if left := s.newestLeft(); !l.keys[left.key] { // otherwise it was appended again
		l.left = left
	}
	l.SetFrom(mostListed, func(id ID) ID { return s.find(id).head })
	return l.rowList, l.others, nil
}

// add adds the entry at an index of the view.
func (l *rowLister) add(i int) error {
	e := l.view.list[i]
	sum := l.summer.of(e)
	cleared, changes, told := rowChanges(e, l.view.original(e.id))
	l.uncleared = l.uncleared || e.msg.Role == RoleTool && !cleared
	key := e.msg.Key
	if told = told && key != ""; !told {
		l.others = append(l.others, e)
	}
	if l.keys[key] {
		return &RowError{Key: key, Fault: runs.Twice}
	}
	if key == "" {
		return nil
	}
	l.keys[key] = true
	l.Add(runs.Row[ID]{ID: e.id, Turn: e.turn, Key: key, Sum: sum}, string(e.msg.Role), &l.turns)
	if told {
		l.tell(i, cleared, changes)
	}
	return nil
}

// tell adds what a row does not show of its entry, which is at an index of the view.
func (l *rowLister) tell(i int, cleared bool, changes []rowChange) {
	e, list := l.view.list[i], l.view.list
	if n := len(l.cleared); cleared && n > 0 && !l.uncleared {
		l.cleared[n-1].Last = e.id
	} else if cleared {
		l.cleared = append(l.cleared, Range{e.id, e.id})
	}
	l.uncleared = l.uncleared && !cleared
	l.changes = append(l.changes, changes...)
	if e.msg.isSigned() {
		l.made = append(l.made, e.made())
	}
	if e.tools && e.msg.Role != RoleTool && e.calls == nil && (i == 0 || list[i-1].turn != e.turn || !list[i-1].tools) {
		l.tools = ranges.Add(l.tools, e.id)
	}
	if e.marks.has(paused) {
		l.paused = ranges.Add(l.paused, e.id)
	}
}

// isShort reports whether something was cleared in the entry of a row, or cut.
func (r *rowList) isShort(id ID) bool {
	return ranges.Has(r.cleared, id) || slices.ContainsFunc(r.changes, func(c rowChange) bool { return c.id == id })
}

// rowChanges returns how e differs from the message that was appended, whose original is
// o: in no way, with all results cleared, or with these changes. ok is false if changes
// cannot tell that.
func rowChanges(e *entry, o *original) (cleared bool, changes []rowChange, ok bool) {
	if e.marks.has(bare) {
		return false, nil, false
	}
	if !e.final && e.missing() == 0 && !hasCleared(&e.msg) && e.own().edit == nil {
		return false, nil, true
	}
	if o == nil || o.missing != 0 || len(o.msg.Parts) != len(e.msg.Parts) || len(o.read.Parts) != len(e.msg.Parts) {
		return false, nil, false
	}
	marks := marksOf(&o.msg, &o.read)
	changes, cleared = slices.Clone(marks), e.msg.Role == RoleTool
	for i, p := range e.msg.Parts {
		var list []rowChange
		now, isResult := p.(ToolResult)
		was, _ := o.read.Parts[i].(ToolResult)
		if isResult && !reflect.DeepEqual(now, was) {
			list = changesOf(&was, &now)
		}
		cleared = cleared && now.Cleared && len(list) == 1 && list[0].ref == ""
		for _, c := range list {
			c.part = i
			changes = append(changes, c)
		}
	}
	made := &entry{msg: o.msg.clone()}
	read, ok := made.replay(changes)
	if !ok || made.final != e.final || !reflect.DeepEqual(read.Parts, o.read.Parts) || !reflect.DeepEqual(made.msg.Parts, e.msg.Parts) {
		return false, nil, false
	}
	if cleared {
		changes = marks
	}
	for i := range changes {
		changes[i].id = e.id
	}
	slices.SortStableFunc(changes, func(a, b rowChange) int { return cmp.Compare(a.part, b.part) })
	return cleared, changes, true
}

// marksOf returns the texts that stand in now where was has other parts, or other arguments.
func marksOf(was, now *Message) (marks []rowChange) {
	for i, p := range was.Parts {
		switch p := p.(type) {
		case ToolCall:
			if to, ok := now.Parts[i].(ToolCall); ok && to.Arguments != p.Arguments {
				marks = append(marks, rowChange{part: i, mark: to.Arguments})
			}
		case ToolResult:
			to, ok := now.Parts[i].(ToolResult)
			for k := 0; ok && len(to.Parts) == len(p.Parts) && k < len(p.Parts); k++ {
				if t, ok := to.Parts[k].(Text); ok && !equalPart(t, p.Parts[k]) {
					marks = append(marks, rowChange{part: i, inside: k + 1, mark: string(t)})
				}
			}
		default:
			if t, ok := now.Parts[i].(Text); ok && !equalPart(t, p) {
				marks = append(marks, rowChange{part: i, mark: string(t)})
			}
		}
	}
	return marks
}

// replay makes changes to the message of e, which shares no parts: first those that a summarizer
// reads, and then the others. It returns what a summarizer reads. ok is false if the message
// lacks the place of a change.
func (e *entry) replay(changes []rowChange) (read Message, ok bool) {
	ok = true
	for _, isRead := range [...]bool{true, false} {
		for _, c := range changes {
			if isRead != (c.mark != "") {
				continue
			}
			isMade := c.id == e.id && c.apply(&e.msg)
			ok, e.final = ok && isMade, e.final || isMade && isRead
		}
		if isRead {
			read = e.msg.clone()
		}
	}
	return read, ok
}

// apply makes a change to m, which shares no parts, and reports whether m has its place.
func (c *rowChange) apply(m *Message) (ok bool) {
	if c.part >= len(m.Parts) {
		return false
	}
	switch p := m.Parts[c.part].(type) {
	case ToolResult:
		p, ok = c.applyTo(p)
		m.Parts[c.part] = p
		return ok
	case ToolCall:
		p.Arguments = c.mark
		m.Parts[c.part] = p
	default:
		m.Parts[c.part] = Text(c.mark)
	}
	return c.mark != ""
}

// applyTo makes the change to a result.
func (c *rowChange) applyTo(r ToolResult) (_ ToolResult, ok bool) {
	i := c.inside - 1
	switch {
	case i >= len(r.Parts) || i < 0 && (c.mark != "" || c.head+c.left > textSize(r.Parts)) || i >= 0 && c.mark == "" && !isA[Opaque](r.Parts[i]):
		return r, false
	case i >= 0:
		t := Text(c.mark)
		if c.mark == "" {
			t = Text(r.Parts[i].(Opaque).cutMarker(c.ref))
		}
		r.Parts = slices.Clone(r.Parts)
		r.Parts[i] = t
	case c.left == 0:
		r.Parts, r.Cleared = textParts(markerText(&r, c.ref)), true
	default:
		r.Parts = markers.WithoutBytes[Text](r.Parts, c.head, c.head+c.left, c.ref)
	}
	return r, true
}

func hasCleared(m *Message) bool {
	return slices.ContainsFunc(m.Parts, func(p Part) bool { r, ok := p.(ToolResult); return ok && r.Cleared })
}

// changesOf returns the changes that make now of the result was, if there are such changes.
func changesOf(was, now *ToolResult) (changes []rowChange) {
	if now.Cleared {
		_, after, _ := strings.Cut(now.Text(), markers.KeptAt)
		return []rowChange{{ref: strings.TrimSuffix(after, "]")}}
	}
	ref, _ := cutRef(now)
	cut := textSize(was.Parts) - textSize(now.Parts) // bytes of text that were left out, but for the marker
	left := partsOf[Opaque](now.Parts)
	for i, p := range slices.Backward(was.Parts) { // of equal parts, the first is replaced first
		o, ok := p.(Opaque)
		if n := len(left); n > 0 && ok && left[n-1] == o {
			left = left[:n-1]
		} else if ok {
			cut += len(o.cutMarker(ref))
			changes = append(changes, rowChange{inside: i + 1, ref: ref})
		}
	}
	slices.Reverse(changes)
	n := 0
	for range 3 { // the marker is longer for a longer number
		n = cut + len(markers.Cut(n, ref))
	}
	if at := strings.Index(text.Join(eachOf[Text](now.Parts), ""), markers.Cut(n, ref)); n > 0 && at >= 0 {
		changes = append(changes, rowChange{head: at, left: n, ref: ref})
	}
	return changes
}

// fields returns the members of the JSON.
func (r *rowList) fields() []strictjson.Field {
	return []strictjson.Field{
		{Key: "keys", Value: strictjson.Texts(&r.Keys)},
		{Key: "places", Value: strictjson.Ints(&r.Places)},
		{Key: "from", Value: &r.Run},
		{Key: "system_seen", Value: &r.sysSeen},
		{Key: "tools_seen", Value: &r.toolsSeen},
		{Key: "ephemeral_seen", Value: &r.ephemeralSeen},
		{Key: "time", Value: &r.lastAppend},
		{Key: "sums", Value: fingerprint.ListValue(&r.Sums)},
		{Key: "made", Value: fingerprint.ListValue(&r.made)},
		{Key: "tools", Value: rangesJSON(&r.tools)},
		{Key: "paused", Value: rangesJSON(&r.paused)},
		{Key: "cleared", Value: rangesJSON(&r.cleared)},
		{Key: "changes", Value: strictjson.Objects(&r.changes, (*rowChange).fields)},
		{Key: "frame", Value: fingerprint.Values{(*fingerprint.Sum)(&r.frame.Sys), &r.frame.Tools, &r.frame.Eph}},
		{Key: "sent", Value: strictjson.Optional(&r.sent, (*sentView).fields)},
	}
}

// fields returns the members of the JSON.
func (v *sentView) fields() []strictjson.Field {
	p := &v.prefix
	return []strictjson.Field{{Key: "view", Value: fingerprint.Values{&p.heads, (*fingerprint.Sum)(&p.list), &p.ephemeral}}, {Key: "open", Value: &v.open}}
}

// fields returns the members of the JSON.
func (c *rowChange) fields() []strictjson.Field {
	return []strictjson.Field{
		{Key: "id", Value: (*int64)(&c.id)},
		{Key: "part", Value: &c.part},
		{Key: "inside", Value: &c.inside},
		{Key: "mark", Value: &c.mark},
		{Key: "head", Value: &c.head},
		{Key: "left", Value: &c.left},
		{Key: "ref", Value: &c.ref},
	}
}

// nameCalls gives an ID to each call without one, if m has a key: the same ID each time, since
// the row that Resume is given later may still be without it.
func (m *Message) nameCalls() {
	if m.Key == "" {
		return
	}
	for i, p := range m.Parts {
		if c, ok := p.(ToolCall); ok && c.ID == "" {
			c.ID, c.Minted = callid.Of(m.Key, i), true
			m.Parts[i] = c
		}
	}
}

// check makes the rows, and returns an error if r contradicts itself.
func (r *rowList) check() error {
	if err := r.Unpack(maxID, maxTurn); err != nil {
		return err
	}
	seen := make(map[string]bool)
	for _, key := range r.Keys {
		if key == "" || len(key) > maxMessageKey || seen[key] {
			return fmt.Errorf("the key %.40q of a row is empty, too long, or there twice", key)
		}
		seen[key] = true
	}
	_, isShown := r.Find(r.left.id)
	switch {
	case seen[r.left.key] || isShown:
		return fmt.Errorf("left is row %d, %.40q, which is in the view", r.left.id, r.left.key)
	case !ranges.Ascend(r.cleared, maxID) || !ranges.Ascend(r.tools, maxID) || !ranges.Ascend(r.paused, maxID):
		return errors.New("ranges do not ascend")
	case !slices.IsSortedFunc(r.changes, func(a, b rowChange) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.part, b.part)) }):
		return errors.New("changes do not ascend")
	}
	for _, c := range r.changes {
		if c.part < 0 || c.inside < 0 || c.head < 0 || c.left < 0 || int64(c.head) > maxTotal || int64(c.left) > maxTotal {
			return errors.New("a change with a number that is out of range")
		}
	}
	return checkTime("time", r.lastAppend)
}

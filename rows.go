package convo

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// A rowList stands for the entries of a view that the application has rows of.
type rowList struct {
	runs    []rowRun
	from    int               // the index of the run from which on every row is needed
	sums    []fingerprint.Sum // of all rows, in order; see rowSums
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

// A rowRun is a run of rows whose entries have consecutive IDs.
type rowRun struct {
	first ID
	turn  int // of the first
	n     int
	keys  []string // of all rows, or of the first and the last; see isListed
}

// last returns the ID of the last entry.
func (x *rowRun) last() ID { return x.first + ID(x.n) - 1 }

// end returns the key of the row up to which the History knows all rows, if that has left the
// view, and otherwise "". All rows after the newest one in view, up to this, have left.
func (r *rowList) end() string {
	if n := len(r.runs); n > 0 && r.runs[n-1].last() > r.left.id {
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
	rows := 0
	for i := range r.runs {
		x := &r.runs[i]
		if x.first > last {
			r.runs = r.runs[:i]
			break
		}
		if x.last() > last {
			x.cut(int(last-x.first+1), r.isListed(i))
		}
		rows += x.n
	}
	r.sums = r.sums[:rows]
	if r.left.id > last {
		r.left = leftRow{}
	}
	if n := len(r.runs); n == 0 {
		r.from = 0
	} else if r.from >= n {
		r.from = n - 1
		if x := &r.runs[n-1]; x.n > 1 {
			x.keys = []string{x.keys[0], x.keys[len(x.keys)-1]}
		}
	}
	r.changes = slices.DeleteFunc(r.changes, func(c rowChange) bool { return c.id > last })
	r.sent = nil
}

// cut removes all rows but the first n, which is less than there are.
func (x *rowRun) cut(n int, isListed bool) {
	x.n = n
	switch {
	case isListed:
		x.keys = x.keys[:n]
	case n > 1:
		x.keys = append(x.keys[:1], "") // it is not known
	default:
		x.keys = x.keys[:1]
	}
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
	heads     []ID // of the exchanges that the runs begin in
	next      ID   // the ID, the turn and the role that continue the newest run
	turn      int
	role      Role
	summer    rowSums
	isNew     bool // the next row begins a run
	uncleared bool // a result that is not cleared stands after the last cleared one
}

// newRowList returns the rows of a view, and the entries that no row tells. An error is a
// *RowError.
func newRowList(s *Snapshot) (*rowList, []*entry, error) {
	l := &rowLister{view: s, keys: make(map[string]bool), isNew: true, uncleared: true}
	l.rowList = &rowList{measuredFrame: measuredFrame{frame: s.frame()}}
	for i := range s.list {
		if err := l.add(i); err != nil {
			return nil, nil, err
		}
	}
	if left := s.newestLeft(); !l.keys[left.key] { // otherwise it was appended again
		l.left = left
	}
	l.setFrom()
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
		return &RowError{Key: key, Fault: rowTwice}
	}
	if key == "" {
		l.isNew = true
		return nil
	}
	l.keys[key] = true
	l.place(e)
	l.sums = append(l.sums, sum)
	if told {
		l.tell(i, cleared, changes)
	}
	return nil
}

// place adds the row of an entry to the newest run, or begins another.
func (l *rowLister) place(e *entry) {
	if e.msg.Role == RoleUser && l.role != RoleUser {
		l.turn++
	}
	isNew := l.isNew || e.id != l.next || e.turn != l.turn
	if isNew {
		l.runs = append(l.runs, rowRun{first: e.id, turn: e.turn})
		l.heads = append(l.heads, e.head)
	}
	if isNew || !e.note {
		l.role = e.msg.Role
	}
	run := &l.runs[len(l.runs)-1]
	run.keys, run.n = append(run.keys, e.msg.Key), run.n+1
	l.next, l.turn, l.isNew = e.id+1, e.turn, false
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
		l.tools = addToRanges(l.tools, e.id)
	}
	if e.marks.has(paused) {
		l.paused = addToRanges(l.paused, e.id)
	}
}

// setFrom sets from which run on every row is needed, and shortens the keys of these runs.
func (l *rowLister) setFrom() {
	l.from = slices.IndexFunc(l.runs, func(x rowRun) bool { return x.n > mostListed })
	if l.from < 0 {
		l.from = max(len(l.runs)-1, 0)
	}
	for l.from > 0 && l.heads[l.from] < l.runs[l.from].first {
		i := l.runOf(l.heads[l.from])
		if i < 0 {
			break // its calls have no row
		}
		l.from = i // the row of a message that was queued meanwhile may stand after the calls
	}
	for i := range l.runs {
		if x := &l.runs[i]; !l.isListed(i) && x.n > 1 {
			x.keys = []string{x.keys[0], x.keys[x.n-1]}
		}
	}
}

// isShort reports whether something was cleared in the entry of a row, or cut.
func (r *rowList) isShort(id ID) bool {
	return isIn(r.cleared, id) || slices.ContainsFunc(r.changes, func(c rowChange) bool { return c.id == id })
}

// runOf returns the index of the run that an entry is in, or -1.
func (r *rowList) runOf(id ID) int {
	return slices.IndexFunc(r.runs, func(x rowRun) bool { return x.first <= id && id <= x.last() })
}

// addToRanges adds an ID above all others to ascending ranges.
func addToRanges(ranges []Range, id ID) []Range {
	if n := len(ranges); n > 0 && ranges[n-1].Last+1 == id {
		ranges[n-1].Last = id
		return ranges
	}
	return append(ranges, Range{id, id})
}

// isIn reports whether an ID is in one of ascending ranges.
func isIn(ranges []Range, id ID) bool {
	i, _ := slices.BinarySearchFunc(ranges, id, func(x Range, id ID) int { return cmp.Compare(x.Last, id) })
	return i < len(ranges) && ranges[i].First <= id
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
	changes = marksOf(&o.msg, &o.read)
	marked := o.msg.clone()
	for i := range changes {
		changes[i].id = e.id
		marked.mark(changes[i])
	}
	isEmpty := func(c rowChange) bool { return c.mark == "" } // that means another change
	if e.final != (len(changes) > 0) || slices.ContainsFunc(changes, isEmpty) || !reflect.DeepEqual(marked.Parts, o.read.Parts) {
		return false, nil, false
	}
	if e.msg.Role != RoleTool {
		return false, changes, reflect.DeepEqual(marked.Parts, e.msg.Parts)
	}
	marks := changes
	cleared = true
	for i, p := range e.msg.Parts {
		now, was := p.(ToolResult), marked.Parts[i].(ToolResult)
		if reflect.DeepEqual(now, was) {
			cleared = false
			continue
		}
		list, ok := changesOf(&was, &now)
		if !ok {
			return false, nil, false
		}
		for _, c := range list {
			c.id, c.part = e.id, i
			cleared = cleared && now.Cleared && c.ref == ""
			changes = append(changes, c)
		}
	}
	if cleared {
		changes = marks
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

// mark puts the mark of a change in its place, and reports whether m has that place. The parts
// of m are not shared.
func (m *Message) mark(c rowChange) (ok bool) {
	if c.part >= len(m.Parts) {
		return false
	}
	switch p := m.Parts[c.part].(type) {
	case ToolResult:
		if c.inside < 1 || c.inside > len(p.Parts) {
			return false
		}
		p.Parts = slices.Clone(p.Parts)
		p.Parts[c.inside-1] = Text(c.mark)
		m.Parts[c.part] = p
	case ToolCall:
		p.Arguments = c.mark
		m.Parts[c.part] = p
	default:
		m.Parts[c.part] = Text(c.mark)
	}
	return true
}

// shorten clears or cuts the result that c is about, and reports whether m has it. The parts of m
// are not shared.
func (m *Message) shorten(c rowChange) (ok bool) {
	if c.part >= len(m.Parts) {
		return false
	}
	r, ok := m.Parts[c.part].(ToolResult)
	if !ok {
		return false
	}
	if r, ok = c.apply(r); ok {
		m.Parts[c.part] = r
	}
	return ok
}

func hasCleared(m *Message) bool {
	return slices.ContainsFunc(m.Parts, func(p Part) bool { r, ok := p.(ToolResult); return ok && r.Cleared })
}

// changesOf returns the changes that make now of the result was.
func changesOf(was, now *ToolResult) (changes []rowChange, ok bool) {
	if now.Cleared {
		var c rowChange
		if _, after, found := strings.Cut(now.Text(), keptAt); found {
			c.ref = strings.TrimSuffix(after, "]")
		}
		made, _ := c.apply(*was)
		return []rowChange{c}, reflect.DeepEqual(made, *now)
	}
	made := *was
	ref, _ := cutRef(now)
	left := partsOf[Opaque](now.Parts)
	for i, p := range slices.Backward(was.Parts) { // of equal parts, the first is replaced first
		o, ok := p.(Opaque)
		if n := len(left); n > 0 && ok && left[n-1] == o {
			left = left[:n-1]
		} else if ok {
			c := rowChange{inside: i + 1, ref: ref}
			made, _ = c.apply(made)
			changes = append(changes, c)
		}
	}
	slices.Reverse(changes)
	if reflect.DeepEqual(made, *now) {
		return changes, true
	}
	all := textOf(now.Parts)
	for at := 0; ; {
		i := strings.Index(all[at:], "\n[cut: ")
		if i < 0 {
			return nil, false
		}
		at += i
		var n int
		if _, err := fmt.Sscanf(all[at:], "\n[cut: %d bytes left out", &n); err == nil && n > 0 {
			rest := all[at+len(fmt.Sprintf("\n[cut: %d bytes left out", n)):]
			if ref, _, found := strings.Cut(rest, "]\n"); found {
				c := rowChange{head: at, left: n, ref: strings.TrimPrefix(ref, keptAt)}
				if short, ok := c.apply(made); ok && reflect.DeepEqual(short, *now) {
					return append(changes, c), true
				}
			}
		}
		at++
	}
}

// textOf returns the texts among parts, joined.
func textOf(parts []Part) string {
	var b strings.Builder
	for _, p := range parts {
		if t, ok := p.(Text); ok {
			b.WriteString(string(t))
		}
	}
	return b.String()
}

// apply makes the change to the result of a row. ok is false if the result lacks its place.
func (c *rowChange) apply(r ToolResult) (_ ToolResult, ok bool) {
	if i := c.inside - 1; i >= 0 {
		if i >= len(r.Parts) || !isA[Opaque](r.Parts[i]) {
			return r, false
		}
		r.Parts = slices.Clone(r.Parts)
		r.Parts[i] = Text(r.Parts[i].(Opaque).cutMarker(c.ref))
		return r, true
	}
	if c.left == 0 {
		r.Parts, r.Cleared = textParts(markerText(&r, c.ref)), true
		return r, true
	}
	if c.head+c.left > textSize(r.Parts) {
		return r, false
	}
	return withoutBytes(r, c.head, c.head+c.left, c.ref), true
}

// isListed reports whether the keys of all rows of a run are listed.
func (r *rowList) isListed(run int) bool { return run < r.from }

// fields returns the members of the JSON.
func (r *rowList) fields() []strictjson.Field {
	return []strictjson.Field{
		{Key: "runs", Value: runsJSON{r}},
		{Key: "from", Value: &r.from},
		{Key: "system_seen", Value: &r.sysSeen},
		{Key: "tools_seen", Value: &r.toolsSeen},
		{Key: "ephemeral_seen", Value: &r.ephemeralSeen},
		{Key: "time", Value: &r.lastAppend},
		{Key: "sums", Value: sumsJSON{&r.sums}},
		{Key: "made", Value: sumsJSON{&r.made}},
		{Key: "tools", Value: rangesJSON(&r.tools)},
		{Key: "paused", Value: rangesJSON(&r.paused)},
		{Key: "cleared", Value: rangesJSON(&r.cleared)},
		{Key: "changes", Value: strictjson.Objects(&r.changes, (*rowChange).fields)},
		{Key: "frame", Value: someSums{(*fingerprint.Sum)(&r.frame.sys), &r.frame.tools, &r.frame.eph}},
		{Key: "sent", Value: strictjson.Optional(&r.sent, (*sentView).fields)},
	}
}

// fields returns the members of the JSON.
func (v *sentView) fields() []strictjson.Field {
	p := &v.prefix
	return []strictjson.Field{{Key: "view", Value: someSums{&p.heads, (*fingerprint.Sum)(&p.list), &p.ephemeral}}, {Key: "open", Value: &v.open}}
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

// A sumsJSON is the value of a list of fingerprints: a text, with eleven characters for each.
type sumsJSON struct{ list *[]fingerprint.Sum }

func (v sumsJSON) IsZero() bool { return len(*v.list) == 0 }

func (v sumsJSON) Append(dst []byte) []byte {
	dst = append(dst, '"')
	for _, sum := range *v.list {
		dst = base64.RawURLEncoding.AppendEncode(dst, binary.BigEndian.AppendUint64(nil, uint64(sum)))
	}
	return append(dst, '"')
}

func (v sumsJSON) Read(r *strictjson.Reader) {
	text := r.Text()
	if len(text)%11 != 0 {
		r.Fail(fmt.Errorf("%.40q holds no fingerprints of 11 characters", text))
		return
	}
	for ; text != ""; text = text[11:] {
		b, err := base64.RawURLEncoding.DecodeString(text[:11])
		if err != nil || len(b) != 8 {
			r.Fail(fmt.Errorf("%q is no fingerprint", text[:11]))
			return
		}
		*v.list = append(*v.list, fingerprint.Sum(binary.BigEndian.Uint64(b)))
	}
}

// someSums are as many fingerprints, with the same value as a list of them.
type someSums []*fingerprint.Sum

func (v someSums) IsZero() bool { return false }

func (v someSums) Append(dst []byte) []byte {
	list := make([]fingerprint.Sum, len(v))
	for i, sum := range v {
		list[i] = *sum
	}
	return sumsJSON{&list}.Append(dst)
}

func (v someSums) Read(r *strictjson.Reader) {
	var list []fingerprint.Sum
	sumsJSON{&list}.Read(r)
	if len(list) != len(v) {
		r.Fail(fmt.Errorf("%d fingerprints of 11 characters, want %d", len(list), len(v)))
		return
	}
	for i, sum := range list {
		*v[i] = sum
	}
}

// A runsJSON is the value of the runs: a list for each.
type runsJSON struct{ *rowList }

func (v runsJSON) IsZero() bool { return false }

func (v runsJSON) Append(dst []byte) []byte {
	dst = append(dst, '[')
	last, turn := ID(0), 0
	for i, run := range v.runs {
		dst = strictjson.AppendString(append(strictjson.Next(dst), '['), run.keys[0])
		dst = fmt.Appendf(dst, ",%d,%d", run.first-last, run.turn-turn)
		last, turn = run.last(), run.turn
		if !v.isListed(i) && run.n > 1 {
			dst = fmt.Appendf(dst, ",%d", run.n)
		}
		for _, key := range run.keys[1:] {
			dst = strictjson.AppendString(append(dst, ','), key)
		}
		dst = append(dst, ']')
	}
	return append(dst, ']')
}

func (v runsJSON) Read(r *strictjson.Reader) {
	strictjson.Array(&v.runs, nil, readRowRun).Read(r)
	v.setPlaces()
}

// setPlaces makes the first IDs and the turns of the runs, which were read as differences
// from the run before, absolute.
func (r *rowList) setPlaces() {
	last, turn := ID(0), 0
	for i := range r.runs {
		run := &r.runs[i]
		if run.first < 1 || run.first > maxID || int64(run.n) > maxID || run.turn < 0 || run.turn > maxTurn {
			run.first = 0 // check finds it
			return
		}
		run.first, run.turn = last+run.first, turn+run.turn
		last, turn = run.last(), run.turn
		if last > maxID || turn > maxTurn {
			run.first = 0
			return
		}
	}
}

func readRowRun(r *strictjson.Reader) (run rowRun) {
	for i := range r.Array {
		switch {
		case i == 1:
			run.first = ID(r.Int64())
		case i == 2:
			run.turn = r.Int()
		case i == 3 && !r.IsText():
			run.n = r.Int()
		default:
			run.keys = append(run.keys, r.Text())
		}
	}
	run.n = max(run.n, len(run.keys))
	return run
}

// nameCalls gives an ID to each call without one, if m has a key: the same ID each time, since
// the row that Resume is given later may still be without it.
func (m *Message) nameCalls() {
	if m.Key == "" {
		return
	}
	for i, p := range m.Parts {
		if c, ok := p.(ToolCall); ok && c.ID == "" {
			hash := sha256.Sum256(fmt.Appendf(nil, "call %d of %s", i, m.Key))
			c.ID, c.Minted = "call_"+base32.StdEncoding.EncodeToString(hash[:])[:16], true
			m.Parts[i] = c
		}
	}
}

// check returns an error if r contradicts itself.
func (r *rowList) check() error {
	keys, err := r.checkRuns()
	_, isTime := nanoseconds(r.lastAppend)
	switch {
	case err != nil:
		return err
	case keys[r.left.key] || r.runOf(r.left.id) >= 0:
		return fmt.Errorf("left is row %d, %.40q, which is in the view", r.left.id, r.left.key)
	case !ascend(r.cleared, maxID) || !ascend(r.tools, maxID) || !ascend(r.paused, maxID):
		return errors.New("ranges do not ascend")
	case r.from < 0 || r.from > max(len(r.runs)-1, 0):
		return fmt.Errorf("from is %d, want the index of a run", r.from)
	case !isTime:
		return fmt.Errorf("time is %v, want a year from 1678 to 2261", r.lastAppend)
	case !slices.IsSortedFunc(r.changes, func(a, b rowChange) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.part, b.part)) }):
		return errors.New("changes do not ascend")
	}
	for _, c := range r.changes {
		if c.part < 0 || c.inside < 0 || c.head < 0 || c.left < 0 || int64(c.head) > maxTotal || int64(c.left) > maxTotal {
			return errors.New("a change with a number that is out of range")
		}
	}
	return nil
}

// checkRuns returns the keys of the runs, or an error if these contradict themselves.
func (r *rowList) checkRuns() (keys map[string]bool, err error) {
	rows, last := 0, ID(0)
	keys = make(map[string]bool)
	for i, run := range r.runs {
		want := run.n
		if !r.isListed(i) {
			want = min(run.n, 2)
		}
		switch {
		case run.first <= last || run.n < 1 || run.n > len(r.sums)-rows || run.first > maxID:
			return nil, fmt.Errorf("the run of %d rows from entry %d does not ascend, or has no sums", run.n, run.first)
		case len(run.keys) != want:
			return nil, fmt.Errorf("the run from entry %d has %d keys, want %d", run.first, len(run.keys), want)
		case run.turn < 0 || run.turn > maxTurn:
			return nil, fmt.Errorf("the run from entry %d has the turn %d", run.first, run.turn)
		}
		for _, key := range run.keys {
			if key == "" || len(key) > maxMessageKey || keys[key] {
				return nil, fmt.Errorf("the run from entry %d has a key that is empty, too long, or there twice", run.first)
			}
			keys[key] = true
		}
		rows, last = rows+run.n, run.last()
	}
	if rows < len(r.sums) {
		return nil, fmt.Errorf("%d sums for %d rows", len(r.sums), rows)
	}
	return keys, nil
}

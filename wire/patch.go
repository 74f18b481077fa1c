package wire

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// A Patcher is a [Format] that writes changes of messages into the JSON from which they were
// decoded. All formats of this package are Patchers. A program that sends requests of its own
// keeps their bytes, except for what a compaction has changed.
type Patcher interface {
	Format

	// Patch returns was with the content of now. Here was holds one or more adjacent messages
	// of a request (items of Responses, contents of Gemini). And now holds the messages that
	// Decode returns for them, after changes. Changes are results that were cleared or cut,
	// other texts or arguments, a text in place of media, and parts or messages that are
	// missing.
	//
	// A block whose parts did not change keeps its bytes, and so does all of a message but its
	// changed blocks. In a changed block only the value that changed is replaced: the text, the
	// arguments of a call, the content of a result. If a part has no block in which it fits, Patch
	// writes it as Encode does. A block without its parts is removed, and so is a message without
	// its blocks. A block keeps its cache mark, also if now has none.
	//
	// Decode of what Patch returns says what now says, without blank texts that was does not have.
	// Some changes need others. Reasoning is removed with all that follows it in an answer. A call
	// of Gemini that loses its signature gets that of Encode, and an item of Responses loses its id
	// with the reasoning that led to it. Results are matched with those of was by CallID, or by
	// their order if a CallID is empty, and stay in the order of was. Names, authors and Meta are
	// those of was. Patch does not join messages: if others are missing, two of one role may follow
	// each other.
	//
	// The error is a *DecodeError if was cannot be decoded. was is not changed; what Patch returns
	// may share its bytes.
	Patch(was []json.RawMessage, now ...convo.Message) ([]json.RawMessage, error)
}

// A patchForm says where a format has what Patch changes.
type patchForm struct {
	Format
	name   string
	origin convo.Origin // of messages that Patch encodes

	// lists returns the values of a message that hold blocks.
	lists func(raw json.RawMessage, all map[string]json.RawMessage) []*patchList

	text    func(role convo.Role) string                             // the beginning of a block with a text
	call    func(block json.RawMessage) (keys []string, custom bool) // where a call has its arguments
	quotes  bool                                                     // arguments are a string
	result  func(block json.RawMessage) []string                     // where a result has its content
	failed  []string                                                 // where a result says that it is an error
	unsign  func(block json.RawMessage, part convo.Part) []byte      // removes the signature of a part
	media   string                                                   // the field of a result beside its content, for media
	without string                                                   // a content that has lost its blocks, beside calls
	needed  string                                                   // a field with reasoning that must not be missing
	leads   bool                                                     // the signature of reasoning is the id of the next item
	uncited string                                                   // what citations are in a text that has none; empty: they are missing
	last    func(was, now []json.RawMessage)                         // changes what follows messages that are missing
}

// A patchUnit is a part with the opaque parts that describe it. Cache marks are left out.
type patchUnit struct {
	role   convo.Role
	part   convo.Part
	beside []convo.Part
	fixed  bool // no text can be in its place
}

// A patchBlock is a block of a message.
type patchBlock struct {
	raw   json.RawMessage
	units []patchUnit
	first int // index of the first unit among all
}

// A patchList is a value of a message or of a result that holds blocks: a list of them, or one.
type patchList struct {
	keys    []string // where it is; empty: the message is the block, or, with some, these fields are
	some    []string
	value   json.RawMessage
	wrap    func(value []byte) []byte // a message that holds only such a value
	role    convo.Role                // of texts that are added; empty: none can be
	isSaid  func(i int) bool          // a block is opaque, whatever it looks like alone
	blocks  []patchBlock
	spans   [][2]int // of the elements in a list
	isArray bool
	extra   map[int][]patchUnit // what is added, by the index of the block before it
}

// A patcher is the state of one Patch.
type patcher struct {
	*patchForm
	old  []patchUnit
	fate []*patchUnit // what became of each of old; nil: it is missing
}

// patch is Patch of a format.
func (f *patchForm) patch(was []json.RawMessage, now []convo.Message) ([]json.RawMessage, error) {
	list := []byte{'['}
	for i, raw := range was {
		if !strictjson.Valid(raw) {
			return nil, &DecodeError{Path: atIndex("", i), Reason: "not JSON"}
		}
		list = appendElement(list, string(raw))
	}
	t, err := f.Decode(append(list, ']'))
	if err != nil {
		return nil, err
	}
	units := unitsOf(now)
	if f.sameUnits(units, unitsOf(t.Messages)) {
		return slices.Clone(was), nil
	}
	p := &patcher{patchForm: f}
	msgs := make([][]*patchList, len(was))
	for i, raw := range was {
		all, err := fields(atIndex("", i), raw)
		if err != nil {
			return nil, err
		}
		msgs[i] = f.lists(raw, all)
		for _, l := range msgs[i] {
			f.read(l, &p.old)
		}
	}
	match := f.align(p.old, units)
	p.settle(units, match)
	alone := p.place(msgs, units, match)
	out := p.messages(alone[-1])
	for i, raw := range was {
		out = append(out, p.message(raw, msgs[i])...)
		out = append(out, p.messages(alone[i])...)
	}
	if f.last != nil && len(out) < len(was) {
		f.last(was, out)
	}
	return out, nil
}

// unitsOf returns the units of messages.
func unitsOf(msgs []convo.Message) (units []patchUnit) {
	for _, m := range msgs {
		units = appendUnits(units, m.Role, m.Parts)
	}
	return units
}

func appendUnits(units []patchUnit, role convo.Role, parts []convo.Part) []patchUnit {
	from := len(units)
	for _, p := range parts {
		if o, ok := p.(convo.Opaque); ok {
			_, mark := isMark(o)
			if _, fields := fieldsOf(o); mark || fields {
				continue
			}
			if n := len(units); n > from && (isCitations(o) || isObjectMark(o)) {
				units[n-1].beside = append(units[n-1].beside, o)
				continue
			}
		}
		if p != nil && p != convo.Part(convo.Text("")) {
			units = append(units, patchUnit{role: role, part: p})
		}
	}
	return units
}

// partsOf returns the parts of units.
func partsOf(units []patchUnit) (parts []convo.Part) {
	for _, u := range units {
		parts = append(append(parts, u.part), u.beside...)
	}
	return parts
}

// read reads the blocks of a list, and appends their units to all.
func (f *patchForm) read(l *patchList, all *[]patchUnit) {
	add := func(raw, value []byte) {
		b := patchBlock{raw: raw, first: len(*all)}
		if t, err := f.Decode(l.wrap(value)); err == nil && (l.isSaid == nil || !l.isSaid(len(l.blocks))) {
			b.units = unitsOf(t.Messages)
		} else if kindOf(raw) == '{' {
			b.units = []patchUnit{{role: convo.RoleAssistant, part: convo.Opaque{Format: f.name, JSON: compact(raw)}}}
		}
		for i := range b.units {
			b.units[i].fixed = l.role == convo.RoleNone
		}
		*all = append(*all, b.units...)
		l.blocks = append(l.blocks, b)
	}
	switch {
	case isNull(l.value):
	case len(l.keys) > 0 && kindOf(l.value) == '[':
		l.isArray = strictjson.EachElement(l.value, func(from, to int) {
			l.spans = append(l.spans, [2]int{from, to})
			add(l.value[from:to], slices.Concat([]byte{'['}, l.value[from:to], []byte{']'}))
		})
	default:
		add(l.value, l.value)
	}
}

// same reports whether two units say the same.
func (f *patchForm) same(a, b *patchUnit) bool {
	return a.role == b.role && slices.Equal(a.beside, b.beside) && f.samePart(a.part, b.part)
}

func (f *patchForm) samePart(a, b convo.Part) bool {
	kind := kindOfPart(a)
	if kind.same == nil || kind != kindOfPart(b) {
		return a == b
	}
	return kind.same(f, a, b)
}

// sameUnits reports whether two lists of units say the same.
func (f *patchForm) sameUnits(a, b []patchUnit) bool {
	return slices.EqualFunc(a, b, func(a, b patchUnit) bool { return f.same(&a, &b) })
}

// sameText reports whether two texts are equal in a History, which replaces invalid UTF-8.
func sameText(a, b string) bool { return a == b || text.Valid(a) == text.Valid(b) }

// sameID reports whether two calls, or two results, may have the same ID.
func sameID(a, b convo.Part) bool {
	x, made := kindOfPart(a).id(a)
	y, minted := kindOfPart(b).id(b)
	return x == y || x == "" || y == "" || made || minted
}

// likeness returns how well a unit fits in the place of another, or 0 if it does not.
func (f *patchForm) likeness(a, b *patchUnit) int {
	kind := kindOfPart(a.part)
	_, isText := b.part.(convo.Text)
	switch {
	case a.role != b.role:
	case f.same(a, b):
		return 8
	case kind.id != nil && kind == kindOfPart(b.part) && sameID(a.part, b.part):
		return sureLikeness
	case isText && (!a.fixed || kind == &kinds.text):
		return kind.likeText
	}
	return 0
}

// maxAlign is the number of pairs of units above which align does not look for the best match.
// It then matches what is equal or has the same ID.
const maxAlign = 1 << 20

// sureLikeness is the likeness of calls and of results with one ID.
const sureLikeness = 4

// align returns for each unit of to the index of the unit of from that it was, or -1. Decode may
// put results before other parts, so that they are compared only with each other.
func (f *patchForm) align(from, to []patchUnit) []int {
	match := make([]int, len(to))
	for _, results := range []bool{false, true} {
		places := func(units []patchUnit) (at []int) {
			for i, u := range units {
				if _, ok := u.part.(convo.ToolResult); ok == results {
					at = append(at, i)
				}
			}
			return at
		}
		pick := func(units []patchUnit, at []int) []patchUnit {
			picked := make([]patchUnit, len(at))
			for i, k := range at {
				picked[i] = units[k]
			}
			return picked
		}
		fromAt, toAt := places(from), places(to)
		if results {
			orderResults(pick(from, fromAt), to, toAt)
		}
		for k, i := range f.alignInOrder(pick(from, fromAt), pick(to, toAt)) {
			match[toAt[k]] = i
			if i >= 0 {
				match[toAt[k]] = fromAt[i]
			}
		}
	}
	return match
}

// alignInOrder is align for units that are in one order in both lists.
func (f *patchForm) alignInOrder(from, to []patchUnit) []int {
	match := make([]int, len(to))
	for i := range match {
		match[i] = -1
	}
	head := 0
	for head < min(len(from), len(to)) && f.same(&from[head], &to[head]) {
		match[head] = head
		head++
	}
	a, b := from[head:], to[head:]
	for len(a) > 0 && len(b) > 0 && f.same(&a[len(a)-1], &b[len(b)-1]) {
		match[head+len(b)-1] = head + len(a) - 1
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a)*len(b) > maxAlign {
		for i, k := 0, 0; k < len(b); k++ {
			if n := slices.IndexFunc(a[i:], func(u patchUnit) bool { return f.likeness(&u, &b[k]) >= sureLikeness }); n >= 0 {
				match[head+k] = head + i + n
				i += n + 1
			}
		}
		return match
	}
	w := len(b) + 1
	best, like := make([]int, (len(a)+1)*w), make([]int, (len(a)+1)*w)
	for i := range slices.Backward(a) {
		for k := range slices.Backward(b) {
			at := i*w + k
			best[at] = max(best[at+w], best[at+1])
			like[at] = f.likeness(&a[i], &b[k])
			if like[at] > 0 {
				best[at] = max(best[at], like[at]+best[at+w+1])
			}
		}
	}
	for i, k := 0, 0; i < len(a) && k < len(b); {
		switch at := i*w + k; {
		case like[at] > 0 && best[at] == like[at]+best[at+w+1]:
			match[head+k] = head + i
			i++
			k++
		case best[at] == best[at+w]:
			i++
		default:
			k++
		}
	}
	return match
}

// orderResults puts the indices of adjacent results of to in the order that these have in from.
func orderResults(from, to []patchUnit, at []int) {
	place := make(map[string]int)
	for i, u := range from {
		place[u.part.(convo.ToolResult).CallID] = i
	}
	delete(place, "")
	idAt := func(k int) string { return to[k].part.(convo.ToolResult).CallID }
	for i := 0; i < len(at); i++ {
		begin := i
		for i < len(at) {
			if _, known := place[idAt(at[i])]; !known {
				break
			}
			i++
		}
		slices.SortStableFunc(at[begin:i], func(a, b int) int { return place[idAt(a)] - place[idAt(b)] })
	}
}

// settle sets fate.
func (p *patcher) settle(units []patchUnit, match []int) {
	p.fate = make([]*patchUnit, len(p.old))
	for k, i := range match {
		if i >= 0 {
			p.fate[i] = &units[k]
		}
	}
	p.closeAnswers()
}

// closeAnswers removes the reasoning at the end of an answer whose rest is missing, which no
// provider takes.
func (p *patcher) closeAnswers() {
	missing, left := false, false // what follows in the answer
	for i, u := range slices.Backward(p.old) {
		switch {
		case u.role != convo.RoleAssistant:
			missing, left = false, false
		case !isReasoning(u.part):
			missing, left = missing || p.fate[i] == nil, left || p.fate[i] != nil
		case missing && !left:
			p.fate[i] = nil
		}
	}
}

// place gives each new unit to the list that holds the unit before it or else after it. It
// returns the units without such a list, by the index of the message before them.
func (p *patcher) place(msgs [][]*patchList, units []patchUnit, match []int) (alone map[int][]patchUnit) {
	alone = map[int][]patchUnit{}
	spots := spotsOf(msgs)
	for k := range units {
		if match[k] >= 0 || isBlankPart(units[k].part) {
			continue
		}
		near, before := neighbour(units, match, k, -1), 0
		if near < 0 {
			near, before = neighbour(units, match, k, 1), 1
		}
		if near < 0 { // beside no unit that stays
			msg := -1
			if last := slices.Max(append(match[:k:k], -1)); last >= 0 {
				msg = spots[last].msg
			}
			alone[msg] = append(alone[msg], units[k])
			continue
		}
		at := spots[near]
		at.block -= before
		l := at.takes(msgs[at.msg])
		if l == nil || kindOfPart(units[k].part).likeText == 0 {
			alone[at.msg-before] = append(alone[at.msg-before], units[k])
			continue
		}
		if l.extra == nil {
			l.extra = map[int][]patchUnit{}
		}
		l.extra[at.block] = append(l.extra[at.block], units[k])
	}
	return alone
}

// A patchSpot is the place of a unit: its message, a list there, and a block of the list.
type patchSpot struct{ msg, list, block int }

// spotsOf returns the places of all units.
func spotsOf(msgs [][]*patchList) (spots []patchSpot) {
	for m, lists := range msgs {
		for i, l := range lists {
			for k, b := range l.blocks {
				spots = append(spots, slices.Repeat([]patchSpot{{m, i, k}}, len(b.units))...)
			}
		}
	}
	return spots
}

// takes returns the list at a place if texts can be added to it, or else the first such
// list of the message, or nil. It then moves the place there.
func (at *patchSpot) takes(lists []*patchList) *patchList {
	if lists[at.list].role != "" {
		return lists[at.list]
	}
	other := slices.IndexFunc(lists, func(l *patchList) bool { return l.role != "" })
	if other < 0 {
		return nil
	}
	at.block = -1
	if other < at.list {
		at.block = len(lists[other].blocks) - 1
	}
	return lists[other]
}

// neighbour returns the unit that the next one of the same role in a direction was, or -1.
func neighbour(units []patchUnit, match []int, k, step int) int {
	for i := k + step; i >= 0 && i < len(units) && units[i].role == units[k].role; i += step {
		if match[i] >= 0 {
			return match[i]
		}
	}
	return -1
}

// message returns what becomes of a message: mostly one, or nothing.
func (p *patcher) message(raw json.RawMessage, lists []*patchList) []json.RawMessage {
	had, left, changed := false, false, false
	pieces := make([][]patchPiece, len(lists))
	for i, l := range lists {
		same := false
		pieces[i], same, _ = p.pieces(l, true)
		changed = changed || !same
		for _, b := range l.blocks {
			had = had || len(b.units) > 0
		}
		for _, piece := range pieces[i] {
			left = left || piece.at < 0 || len(l.blocks[piece.at].units) > 0
		}
	}
	switch {
	case !changed:
		return []json.RawMessage{raw}
	case had && !left:
		return nil
	}
	out := []byte(raw)
	for i, l := range lists {
		if len(l.keys)+len(l.some) == 0 {
			list := make([]json.RawMessage, len(pieces[i]))
			for k, piece := range pieces[i] {
				list[k] = piece.raw
			}
			return list
		}
		out = p.write(out, l, pieces[i], len(lists) > 1)
	}
	return []json.RawMessage{out}
}

// write writes the pieces of a list into a message or result.
func (p *patcher) write(raw []byte, l *patchList, pieces []patchPiece, more bool) []byte {
	switch {
	case len(l.some) > 0:
		if len(pieces) == 0 {
			raw = dropFields(raw, slices.DeleteFunc(slices.Clone(l.some), func(key string) bool { return key == p.needed })...)
			if p.needed != "" {
				raw = setField(raw, []byte(`""`), p.needed)
			}
			return raw
		}
		all, _ := fields("-", pieces[0].raw)
		for _, key := range l.some {
			if v, ok := all[key]; ok {
				raw = setField(raw, v, key)
			} else {
				raw = dropFields(raw, key)
			}
		}
		return raw
	case l.isArray && (len(pieces) > 0 || !more):
		for i := range pieces {
			if pieces[i].text != nil {
				pieces[i].raw = p.textBlock(pieces[i].role, *pieces[i].text)
			}
		}
		return setField(raw, splice(l.value, l.spans, pieces), l.keys...)
	case len(pieces) == 0 && len(l.blocks) == 0:
		return raw
	case len(pieces) == 0 && l.keys[0] == "content":
		return setField(raw, []byte(p.without), l.keys...)
	case len(pieces) == 0:
		return dropFields(raw, l.keys...)
	case len(pieces) == 1 && pieces[0].text == nil:
		return setField(raw, pieces[0].raw, l.keys...)
	}
	var texts []string
	list := []byte{'['}
	for _, piece := range pieces {
		if piece.text != nil {
			texts = append(texts, string(*piece.text))
			piece.raw = p.textBlock(piece.role, *piece.text)
		} else if kindOf(piece.raw) == '"' {
			text := stringOf(piece.raw)
			texts = append(texts, text)
			piece.raw = p.textBlock(l.role, convo.Text(text))
		}
		list = appendElement(list, string(piece.raw))
	}
	if len(texts) == len(pieces) {
		return setField(raw, strictjson.AppendString(nil, strings.Join(texts, "\n")), l.keys...)
	}
	return setField(raw, append(list, ']'), l.keys...)
}

func (p *patcher) textBlock(role convo.Role, text convo.Text) []byte {
	return append(strictjson.AppendString([]byte(p.text(role)), string(text)), '}')
}

// pieces returns what becomes of the blocks of a list, and whether nothing changes. If encodes
// is not set, it returns false instead of encoding a block.
func (p *patcher) pieces(l *patchList, encodes bool) (pieces []patchPiece, same, ok bool) {
	same, ok = len(l.extra) == 0, true
	add := func(i int) {
		for _, u := range l.extra[i] {
			if text, isText := u.part.(convo.Text); isText && len(u.beside) == 0 {
				pieces = append(pieces, patchPiece{at: -1, text: &text, role: l.role})
			} else if ok = ok && encodes; ok {
				pieces = append(pieces, p.encoded(l, []patchUnit{u})...)
			}
		}
	}
	add(-1)
	gone := false // the block before was removed
	for i := range l.blocks {
		b := &l.blocks[i]
		var left []patchUnit
		kept := true
		for k := range b.units {
			u := p.fate[b.first+k]
			if u != nil {
				left = append(left, *u)
			}
			kept = kept && u != nil && p.same(&b.units[k], u)
		}
		switch {
		case len(b.units) == 0 && gone && formatRules[p.name].mark != "": // the cache mark of the block
			same = false
		case kept:
			pieces, gone = append(pieces, patchPiece{raw: b.raw, at: i}), false
		case len(left) == 0, len(left) == 1 && isBlankPart(left[0].part):
			same, gone = false, true
		default:
			same, gone = false, false
			if raw := p.edit(l, b, left); raw != nil {
				pieces = append(pieces, patchPiece{raw: raw, at: i})
			} else if ok = ok && encodes; ok {
				made := p.encoded(l, left)
				if len(made) > 0 {
					made[0].raw = withMarkOf(b.raw, made[0].raw)
					made[0].at = i
				}
				pieces = append(pieces, made...)
			}
		}
		add(i)
	}
	return pieces, same, ok
}

// withMarkOf returns a block with the cache mark of another, if it has one.
func withMarkOf(old, raw []byte) []byte {
	for _, key := range markFields {
		if mark := valueAt(old, key); !isNull(mark) && isNull(valueAt(raw, key)) {
			raw = setField(raw, mark, key)
		}
	}
	return raw
}

// edit returns a block with other units, or nil if they do not fit in it.
func (p *patcher) edit(l *patchList, b *patchBlock, to []patchUnit) []byte {
	raw, from := []byte(b.raw), b.units
	if len(l.some) > 0 {
		return nil
	}
	if len(from) == 2 && isReasoning(from[0].part) && !isReasoning(from[1].part) {
		switch {
		case len(to) == 2 && p.same(&from[0], &to[0]):
			to = to[1:]
		case len(to) == 1 && p.unsign != nil:
			raw = p.unsign(raw, from[1].part)
		default:
			return nil
		}
		from = from[1:]
	}
	if len(from) != 1 || len(to) != 1 {
		return nil
	}
	if p.same(&from[0], &to[0]) {
		return raw
	}
	switch part := to[0].part.(type) {
	case convo.Text:
		return p.editText(l, raw, &from[0], &to[0], part)
	case convo.ToolCall:
		if old, ok := from[0].part.(convo.ToolCall); ok && old.Name == part.Name {
			return p.editCall(raw, part)
		}
	case convo.ToolResult:
		if old, ok := from[0].part.(convo.ToolResult); ok {
			return p.editResult(l, raw, old, part)
		}
	}
	return nil
}

func (p *patcher) editText(l *patchList, raw []byte, from, to *patchUnit, text convo.Text) []byte {
	quoted := strictjson.AppendString(nil, string(text))
	_, isText := from.part.(convo.Text)
	key := ""
	if keys := formatRules[p.name].citations; len(keys) > 0 {
		key = keys[0]
	}
	switch {
	case isText && kindOf(raw) == '"' && len(to.beside) == 0:
		return quoted
	case !isText && len(to.beside) == 0 && l.role != "":
		return withMarkOf(raw, p.textBlock(l.role, text))
	case !isText || kindOf(valueAt(raw, "text")) != '"':
		return nil
	case len(to.beside) == 0 && p.uncited != "" && valueAt(raw, key) != nil:
		return setField(setField(raw, []byte(p.uncited), key), quoted, "text")
	case len(to.beside) == 0:
		return setField(dropFields(raw, key), quoted, "text")
	case slices.Equal(from.beside, to.beside) && !isNull(valueAt(raw, key)):
		if sent, whole := sentCitations(valueAt(raw, key), string(text)); sent != nil && !whole {
			raw = setField(raw, sent, key)
		} else if sent == nil {
			raw = dropFields(raw, key)
		}
		return setField(raw, quoted, "text")
	}
	return nil
}

func (p *patcher) editCall(raw []byte, call convo.ToolCall) []byte {
	keys, custom := p.call(raw)
	value := []byte(call.Arguments)
	if !custom {
		value = []byte(object(call.Arguments))
	}
	if old := valueAt(raw, keys...); isNull(old) && p.quotes || kindOf(old) == '"' {
		value = strictjson.AppendString(nil, string(value))
	}
	return setField(raw, value, keys...)
}

func (p *patcher) editResult(l *patchList, raw []byte, from, to convo.ToolResult) []byte {
	keys := p.result(raw)
	if from.IsError == to.IsError && p.media == "" {
		if out := p.editContent(l, raw, keys, to); out != nil {
			return out
		}
	}
	made := p.encoded(l, []patchUnit{{role: convo.RoleTool, part: to}})
	if len(made) == 0 {
		return nil
	}
	copyField := func(to []string, from ...string) {
		if v := valueAt(made[0].raw, from...); v != nil {
			raw = setField(raw, v, to...)
		} else {
			raw = dropField(raw, to...)
		}
	}
	own := p.result(made[0].raw)
	copyField(keys, own...)
	if from.IsError != to.IsError && p.failed != nil {
		copyField(p.failed, p.failed...)
	}
	if p.media != "" && !slices.Equal(mediaOnly(from.Parts), mediaOnly(to.Parts)) {
		copyField([]string{keys[0], p.media}, own[0], p.media)
	}
	return raw
}

func mediaOnly(parts []convo.Part) []convo.Part {
	return slices.DeleteFunc(slices.Clone(parts), func(p convo.Part) bool {
		_, text := p.(convo.Text)
		return text || isObjectMark(p)
	})
}

// editContent returns a result with other content, or nil if the content has to be encoded.
func (p *patcher) editContent(l *patchList, raw []byte, keys []string, to convo.ToolResult) []byte {
	in := &patchList{keys: keys, value: valueAt(raw, keys...), role: convo.RoleTool}
	in.wrap = func(value []byte) []byte {
		block := setField(raw, value, keys...)
		if l.isArray {
			block = slices.Concat([]byte{'['}, block, []byte{']'})
		}
		return l.wrap(block)
	}
	q := &patcher{patchForm: p.patchForm}
	f := *p.patchForm
	f.Format = resultReader{p.Format}
	f.read(in, &q.old)
	for i := range q.old {
		q.old[i].role = ""
	}
	for i := range in.blocks {
		in.blocks[i].units = q.old[in.blocks[i].first:][:len(in.blocks[i].units)]
	}
	units := appendUnits(nil, "", to.Parts)
	if len(units) == 0 {
		return nil
	}
	match := f.align(q.old, units)
	q.settle(units, match)
	if len(q.place([][]*patchList{{in}}, units, match)) > 0 {
		return nil
	}
	pieces, _, ok := q.pieces(in, false)
	if !ok || len(pieces) == 0 {
		return nil
	}
	return q.write(raw, in, pieces, false)
}

// A resultReader is a format whose Decode returns the parts of a result.
type resultReader struct{ Format }

func (r resultReader) Decode(data []byte) (Transcript, error) {
	t, err := r.Format.Decode(data)
	if err != nil {
		return t, err
	}
	var out Transcript
	for _, m := range t.Messages {
		for _, res := range m.ToolResults() {
			out.Messages = append(out.Messages, convo.Message{Parts: res.Parts})
		}
	}
	return out, nil
}

// messages returns new messages for units.
func (p *patcher) messages(units []patchUnit) (out []json.RawMessage) {
	for len(units) > 0 {
		n := 1
		for n < len(units) && units[n].role == units[0].role {
			n++
		}
		for _, m := range p.encode(units[:n]) {
			out = append(out, m.raw)
		}
		units = units[n:]
	}
	return out
}

// encoded returns the blocks that Encode writes for units, in the form of a list.
func (p *patcher) encoded(l *patchList, units []patchUnit) (pieces []patchPiece) {
	more := units
	if len(l.some) > 0 {
		more = append(slices.Clip(units), patchUnit{role: convo.RoleAssistant, part: convo.Text(".")})
	}
	for _, m := range p.encode(more) {
		for _, made := range m.lists {
			if !slices.Equal(made.keys, l.keys) || (len(made.some) > 0) != (len(l.some) > 0) {
				continue
			}
			for _, b := range made.blocks {
				if len(b.units) == 0 || b.units[0].role != units[0].role {
					continue
				}
				piece := patchPiece{raw: b.raw, at: -1}
				if kindOf(b.raw) == '"' {
					text := convo.Text(stringOf(b.raw))
					piece.text, piece.role = &text, l.role
				}
				pieces = append(pieces, piece)
			}
		}
	}
	return pieces
}

// An encodedMessage is a message that Encode has written.
type encodedMessage struct {
	raw   json.RawMessage
	lists []*patchList
}

// encode returns the messages that Encode writes for units of one role.
func (p *patcher) encode(units []patchUnit) (out []encodedMessage) {
	role := units[0].role
	m := convo.Message{Role: role, Parts: partsOf(units)}
	msgs := []convo.Message{m, convo.User(".")}
	switch role {
	case convo.RoleUser:
		msgs = msgs[:1]
	case convo.RoleAssistant:
		m.Origin = p.origin
		msgs = []convo.Message{convo.User("."), m}
		for _, c := range m.ToolCalls() {
			msgs = append(msgs, convo.Result(c, "."))
		}
	case convo.RoleTool:
		call := convo.Message{Role: convo.RoleAssistant}
		for i, r := range m.ToolResults() {
			if r.Name == "" {
				r.Name = "f"
			}
			m.Parts[i] = r
			call.Parts = append(call.Parts, convo.ToolCall{ID: r.CallID, Name: r.Name})
		}
		msgs = []convo.Message{convo.User("."), call, m}
	}
	r, err := p.Encode(convo.NewSnapshot(msgs))
	if err != nil {
		return nil
	}
	for i, raw := range r.Messages {
		if role == convo.RoleSystem && i == len(r.Messages)-1 {
			break
		}
		all, err := fields("-", raw)
		if err != nil {
			continue
		}
		var got []patchUnit
		lists := p.lists(raw, all)
		for _, l := range lists {
			p.read(l, &got)
		}
		if len(got) > 0 && got[0].role == role {
			out = append(out, encodedMessage{raw, lists})
		}
	}
	return out
}

// wholeMessage returns the list of a message that is one block.
func wholeMessage(raw json.RawMessage) []*patchList {
	return []*patchList{{value: raw, wrap: func(value []byte) []byte { return value }}}
}

// listIn returns the list in a field of a message.
func listIn(all map[string]json.RawMessage, key string) *patchList {
	l := &patchList{keys: []string{key}, value: all[key], role: convo.RoleUser}
	role := all["role"]
	switch stringOf(role) {
	case "system", "developer":
		l.role = convo.RoleSystem
	case "assistant", "model":
		l.role = convo.RoleAssistant
	}
	l.wrap = func(value []byte) []byte {
		b := []byte{'{'}
		if role != nil {
			b = appendRawField(b, "role", string(role))
		}
		return append(appendRawField(b, key, string(value)), '}')
	}
	return l
}

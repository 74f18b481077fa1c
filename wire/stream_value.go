package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// A streamedText is a text that arrives in pieces, which are JSON strings.
type streamedText struct {
	strings.Builder
	half halfRune
}

// add adds a JSON string, and returns what it adds to the text. Anything else adds
// nothing.
func (t *streamedText) add(raw json.RawMessage) string {
	piece := t.half.join(raw)
	t.WriteString(piece)
	return piece
}

// String returns the text. Half a character at the end becomes U+FFFD.
func (t *streamedText) String() string {
	if t.half != "" {
		return t.Builder.String() + "\uFFFD"
	}
	return t.Builder.String()
}

// Len returns 0 only if nothing was received.
func (t *streamedText) Len() int { return t.Builder.Len() + len(t.half) }

// appendTo appends the JSON string of all pieces.
func (t *streamedText) appendTo(b []byte) []byte { return strictjson.AppendString(b, t.String()) }

// A halfRune is the escape of half a character, such as \ud83d, with which a piece of a
// text ended. JSON may write a character as two escapes, and providers may cut between
// them.
type halfRune string

// join returns the text of a JSON string that follows a half. If it ends with half a
// character, the half is kept for the next string.
func (h *halfRune) join(raw json.RawMessage) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	if *h != "" {
		raw = slices.Concat([]byte{'"'}, []byte(*h), raw[1:])
		*h = ""
	}
	if end := len(raw) - 1; endsInHalf(raw[:end]) {
		*h = halfRune(raw[end-6 : end])
		raw = append(slices.Clone(raw[:end-6]), '"')
	}
	return stringOf(raw)
}

// endsInHalf reports whether the inside of a JSON string ends with the escape of the
// first half of a character.
func endsInHalf(s []byte) bool {
	n := len(s) - 6
	if n < 0 || s[n] != '\\' || s[n+1] != 'u' || s[n+2]|' ' != 'd' || !strings.Contains("89abAB", string(s[n+3])) {
		return false
	}
	before := len(s[:n]) - len(bytes.TrimRight(s[:n], `\`))
	return before%2 == 0
}

// A sequence holds the blocks or items of an answer by their indexes, which may arrive in
// any order. If an index is repeated, the new item is placed after all others so far,
// because some servers count from 0 again, or not at all.
type sequence[T any] struct {
	list   []sequenced[T]
	newest map[int]sequenced[T] // by index
	round  int                  // how often an index was repeated
	last   int                  // the highest index
}

type sequenced[T any] struct {
	item         T
	round, index int
}

// at returns the newest item with an index, or the zero value.
func (q *sequence[T]) at(index int) T { return q.newest[index].item }

// next returns the index for an item without one, which is placed after all others.
func (q *sequence[T]) next() int {
	if len(q.list) == 0 || q.last == math.MaxInt {
		return q.last
	}
	return q.last + 1
}

func (q *sequence[T]) add(index int, item T) {
	if old, again := q.newest[index]; again && old.round == q.round {
		q.round++
	}
	if q.newest == nil {
		q.newest, q.last = map[int]sequenced[T]{}, index
	}
	in := sequenced[T]{item, q.round, index}
	q.list, q.newest[index], q.last = append(q.list, in), in, max(q.last, index)
}

// inOrder returns all items in their order.
func (q *sequence[T]) inOrder() []T {
	slices.SortFunc(q.list, func(a, b sequenced[T]) int {
		return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.index, b.index))
	})
	items := make([]T, len(q.list))
	for i, in := range q.list {
		items[i] = in.item
	}
	return items
}

// A streamedValue is a JSON value that arrives in pieces: texts and lists grow, objects
// get more fields, and other values are replaced. Its zero value is null. A null piece
// does not replace a value.
type streamedValue struct {
	text   *streamedText
	fields map[string]*streamedValue
	order  []string // the names of the fields, in the order received
	list   []*streamedValue
	raw    json.RawMessage // any other value, and values that are nested deeply

	indexed map[string]*streamedValue // for a list: the elements that have an index, by index and type
}

// streamedDepth is the number of levels of a piece that are read.
const streamedDepth = 5

// addField adds a piece to the field of an object. Some texts are sent again, and do not
// grow.
func (v *streamedValue) addField(key string, piece json.RawMessage, depth int) {
	f := v.fields[key]
	if isNull(piece) && f != nil {
		return
	}
	if v.fields == nil {
		*v = streamedValue{fields: map[string]*streamedValue{}}
	}
	if f == nil {
		f = new(streamedValue)
		v.fields[key], v.order = f, append(v.order, key)
	}
	switch key {
	case "type", "id", "format", "name", "role", "status":
		if string(piece) != `""` || f.raw == nil {
			*f = streamedValue{raw: piece}
		}
		return
	}
	f.add(piece, depth)
}

// add adds a piece.
func (v *streamedValue) add(piece json.RawMessage, depth int) {
	kind := kindOf(piece)
	switch {
	case kind == 'n':
		return
	case depth >= streamedDepth:
	case kind == '"':
		if v.text == nil {
			*v = streamedValue{text: new(streamedText)}
		}
		v.text.add(piece)
		return
	case kind == '{':
		if v.fields == nil {
			*v = streamedValue{fields: map[string]*streamedValue{}}
		}
		editFields(string(piece), func(key string, raw json.RawMessage) (json.RawMessage, bool) {
			v.addField(key, raw, depth+1)
			return nil, false
		})
		return
	case kind == '[':
		var list []json.RawMessage
		_ = json.Unmarshal(piece, &list)
		if v.list == nil {
			*v = streamedValue{list: []*streamedValue{}}
		}
		for _, raw := range list {
			v.addElement(raw, depth+1)
		}
		return
	}
	*v = streamedValue{raw: piece}
}

// addElement adds a piece to a list. It adds the piece to the newest element with its
// index and type, unless both have ids that differ. A piece without an index is added to
// the last element if that is a text that the piece continues. Otherwise the piece
// becomes a new element.
func (v *streamedValue) addElement(piece json.RawMessage, depth int) {
	var e *streamedValue
	if kindOf(piece) == '{' && depth < streamedDepth {
		all, _ := fields("-", piece)
		if index := all["index"]; !isNull(index) {
			key := string(index) + string(all["type"])
			e = v.indexed[key]
			if e == nil || e.isOther(all["id"]) {
				if v.indexed == nil {
					v.indexed = map[string]*streamedValue{}
				}
				e = new(streamedValue)
				v.list, v.indexed[key] = append(v.list, e), e
			}
		} else if n := len(v.list); n > 0 && v.list[n-1].goesOn(all) {
			e = v.list[n-1]
		}
	}
	if e == nil {
		e = new(streamedValue)
		v.list = append(v.list, e)
	}
	e.add(piece, depth)
}

// goesOn reports whether an object without an index continues v, which is a text of the
// same kind. A signature ends a text.
func (v *streamedValue) goesOn(piece map[string]json.RawMessage) bool {
	text := ""
	switch stringOf(piece["type"]) {
	case "text", "reasoning.text":
		text = "text"
	case "thinking":
		text = "thinking"
	case "reasoning.summary":
		text = "summary"
	}
	if text == "" || stringOf(v.field("type")) != stringOf(piece["type"]) || v.has("index") || v.isOther(piece["id"]) {
		return false
	}
	ended := v.has("signature") || string(v.field("closed")) == "true"
	return !ended || isNull(piece[text])
}

// field returns the value of a field that is not a text, a list or an object.
func (v *streamedValue) field(key string) json.RawMessage {
	if f := v.fields[key]; f != nil {
		return f.raw
	}
	return nil
}

// has reports whether a field is present and not null.
func (v *streamedValue) has(key string) bool {
	f := v.fields[key]
	return f != nil && (f.text != nil || f.fields != nil || f.list != nil || !isNull(f.raw))
}

// isOther reports whether the id of a piece is that of another object.
func (v *streamedValue) isOther(id json.RawMessage) bool {
	own := stringOf(v.field("id"))
	return own != "" && stringOf(id) != "" && stringOf(id) != own
}

// appendTo appends the value.
func (v *streamedValue) appendTo(b []byte) []byte {
	switch {
	case v.text != nil:
		return v.text.appendTo(b)
	case v.fields != nil:
		b = append(b, '{')
		for i, key := range v.order {
			if i > 0 {
				b = append(b, ',')
			}
			b = v.fields[key].appendTo(append(strictjson.AppendString(b, key), ':'))
		}
		return append(b, '}')
	case v.list != nil:
		b = append(b, '[')
		for i, e := range v.list {
			if i > 0 {
				b = append(b, ',')
			}
			b = e.appendTo(b)
		}
		return append(b, ']')
	case v.raw != nil:
		return append(b, v.raw...)
	}
	return append(b, "null"...)
}

// keys returns the names of the fields in alphabetical order.
func (v *streamedValue) keys() []string { return slices.Sorted(slices.Values(v.order)) }

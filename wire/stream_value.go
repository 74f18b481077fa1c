package wire

import (
	"encoding/json"
	"slices"
	"strings"
)

// A streamedText is a text of which pieces come. It holds what stands between the
// quotes in JSON, so that a character whose escapes came in two pieces is whole.
type streamedText struct{ strings.Builder }

// addJSON adds a JSON string.
func (t *streamedText) addJSON(raw json.RawMessage) { t.Write(raw[1 : len(raw)-1]) }

// appendTo appends the JSON string of all pieces.
func (t *streamedText) appendTo(b []byte) []byte {
	return append(append(append(b, '"'), t.String()...), '"')
}

// A streamedValue is a JSON value of which pieces come: texts and lists grow,
// objects get more fields, and other values are replaced. Its zero value is null. A null
// stays until another piece comes.
type streamedValue struct {
	text   *streamedText
	fields map[string]*streamedValue
	order  []string // the names of the fields, as they came
	list   []*streamedValue
	raw    json.RawMessage // of any other value, and of what is nested deeply

	indexed map[string]*streamedValue // of a list: the elements that have an index, by it and their type
}

// streamedDepth is how deep pieces are looked into.
const streamedDepth = 5

// addField adds a piece to the field of an object. Some texts are given again, and
// do not grow.
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
		v.text.addJSON(piece)
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

// addElement adds a piece to a list: to the newest element with its index and type,
// unless both have an id and not the same; or, if it has no index, to the last element
// if that is text which goes on. Otherwise it is a new element.
func (v *streamedValue) addElement(piece json.RawMessage, depth int) {
	var e *streamedValue
	if kindOf(piece) == '{' && depth < streamedDepth {
		all, _ := fields("-", piece)
		if index := all["index"]; !isNull(index) {
			key := string(index) + string(all["type"])
			if e = v.indexed[key]; e == nil || e.isOther(all["id"]) {
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

// goesOn reports whether an object without an index is the next piece of v, which is
// a text of the same kind. A signature ends a text.
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

// has reports whether there is a field, and it is not null.
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
			b = v.fields[key].appendTo(append(appendString(b, key), ':'))
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

// keys returns the names of the fields in the order of the alphabet.
func (v *streamedValue) keys() []string { return slices.Sorted(slices.Values(v.order)) }

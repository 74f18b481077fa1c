package wire

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// A patchPiece is what becomes of a block.
type patchPiece struct {
	raw  []byte
	at   int         // index of the block; -1: it is new
	text *convo.Text // of a string
	role convo.Role  // of text
}

// valueAt returns the value at a path of keys in an object, or nil.
func valueAt(raw []byte, keys ...string) json.RawMessage {
	for _, key := range keys {
		var value []byte
		strictjson.EachField(raw, func(k string, _, from, to int) {
			if k == key {
				value = raw[from:to:to]
			}
		})
		if raw = value; raw == nil {
			return nil
		}
	}
	return raw
}

// setField returns an object with a value at a path of keys. All other bytes stay. A field
// that is missing is added at the end of its object.
func setField(raw, value []byte, keys ...string) []byte {
	at, end, fields := -1, -1, 0
	if len(keys) == 0 || !strictjson.EachField(raw, func(key string, _, from, to int) {
		fields++
		if key == keys[0] {
			at, end = from, to
		}
	}) {
		return raw
	}
	if at >= 0 && len(keys) > 1 && kindOf(raw[at:end]) == '{' {
		value = setField(raw[at:end], value, keys[1:]...)
	} else {
		for _, key := range slices.Backward(keys[1:]) {
			value = append(appendRawField([]byte{'{'}, key, string(value)), '}')
		}
	}
	if at >= 0 {
		return slices.Concat(raw[:at], value, raw[end:])
	}
	end = bytes.LastIndexByte(raw, '}')
	out := slices.Clone(raw[:end])
	if fields > 0 {
		out = append(out, ',')
	}
	out = append(append(strictjson.AppendString(out, keys[0]), ':'), value...)
	return append(out, raw[end:]...)
}

// dropField returns an object without the field at a path of keys. All other bytes stay.
func dropField(raw []byte, keys ...string) []byte {
	if n := len(keys); n > 1 {
		if in := valueAt(raw, keys[0]); kindOf(in) == '{' {
			return setField(raw, dropField(in, keys[1:]...), keys[0])
		}
		return raw
	}
	return dropFields(raw, keys...)
}

// dropFields returns an object without fields. All other bytes stay.
func dropFields(raw []byte, keys ...string) []byte {
	var spans [][2]int
	var kept []patchPiece
	strictjson.EachField(raw, func(key string, at, _, to int) {
		if !slices.Contains(keys, key) {
			kept = append(kept, patchPiece{raw: raw[at:to], at: len(spans)})
		}
		spans = append(spans, [2]int{at, to})
	})
	if len(kept) == len(spans) {
		return raw
	}
	return splice(raw, spans, kept)
}

// splice returns an array or object with other elements. Those that it had keep what is
// between them and the one before. spans are the places of its elements.
func splice(data []byte, spans [][2]int, elements []patchPiece) []byte {
	from := bytes.IndexAny(data, "[{") + 1
	to := from
	if n := len(spans); n > 0 {
		from, to = spans[0][0], spans[n-1][1]
	}
	out := slices.Clone(data[:from])
	for i, e := range elements {
		switch {
		case i == 0:
		case e.at > 0:
			out = append(out, data[spans[e.at-1][1]:spans[e.at][0]]...)
		default:
			out = append(out, ',')
		}
		out = append(out, e.raw...)
	}
	return append(out, data[to:]...)
}

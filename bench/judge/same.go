package judge

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/big"
	"slices"
)

// Same compares a request with what an SDK writes after it has read that request, and
// returns an objection for each field that is gone, new or another. These are the
// same: a null and nothing; two ways to write a number; the order of the keys of an
// object; and, where text is set, a string and a list with one text block.
func Same(sent, kept []byte, text bool) []Objection {
	a, errA := decode(sent)
	b, errB := decode(kept)
	if errA != nil || errB != nil {
		return []Objection{{Why: "not JSON"}}
	}
	c := comparison{text: text}
	c.compare("", a, b)
	return c.found
}

func decode(data []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

type comparison struct {
	text  bool
	found []Objection
}

func (c *comparison) object(path, why string) {
	c.found = append(c.found, Objection{path, why})
}

func (c *comparison) compare(path string, a, b any) {
	if c.text {
		a, b = blocks(a, b), blocks(b, a)
	}
	switch a := a.(type) {
	case map[string]any:
		object, ok := b.(map[string]any)
		if !ok {
			c.object(path, "an object became "+kind(b))
			return
		}
		for _, k := range slices.Sorted(maps.Keys(a)) {
			switch v, ok := object[k]; {
			case !ok && a[k] == nil:
			case !ok && empty(a[k]):
				c.object(join(path, k), "gone, it was "+kind(a[k])+" and empty")
			case !ok:
				c.object(join(path, k), "gone, it was "+kind(a[k]))
			default:
				c.compare(join(path, k), a[k], v)
			}
		}
		for _, k := range slices.Sorted(maps.Keys(object)) {
			if _, ok := a[k]; !ok && object[k] != nil {
				c.object(join(path, k), "missing")
			}
		}
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			c.object(path, "a list became another")
			return
		}
		for i := range a {
			c.compare(path+"[]", a[i], b[i])
		}
	case json.Number:
		b, ok := b.(json.Number)
		if !ok || !sameNumber(a, b) {
			c.object(path, "a number became another")
		}
	default: // a string, a bool or nil
		if a != b {
			c.object(path, kind(a)+" became another, or "+kind(b))
		}
	}
}

// blocks returns a list with a text block for a string, if other is a list.
func blocks(v, other any) any {
	s, ok := v.(string)
	if _, list := other.([]any); ok && list {
		return []any{map[string]any{"type": "text", "text": s}}
	}
	return v
}

func sameNumber(a, b json.Number) bool {
	x, ok := new(big.Rat).SetString(string(a))
	y, ok2 := new(big.Rat).SetString(string(b))
	return ok && ok2 && x.Cmp(y) == 0
}

func empty(v any) bool {
	switch v := v.(type) {
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	case bool:
		return !v
	case json.Number:
		return v == "0"
	}
	return false
}

func kind(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	case bool:
		return "a bool"
	case json.Number:
		return "a number"
	}
	return "null"
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// Numbers returns what an SDK objects to that keeps the arguments of a call as Go
// values. It is known of every such SDK.
func Numbers(field string) []Known {
	return []Known{{
		Path: field + ".n", Why: "a number became another", Wrong: "judge",
		Because: "The SDK holds numbers as float64, which changes whole numbers beyond 2^53. wire keeps the bytes.",
	}, {
		Path: field + ".twice", Why: "a number became another", Wrong: "judge",
		Because: "A key that comes twice: the SDK keeps one, and wire the bytes. JSON leaves open which counts.",
	}}
}

// Unread returns the objection of an SDK that cannot read or write a request: one of its
// own if the request holds a number above those of a float64.
func Unread(body []byte) []Objection {
	if v, err := decode(body); err == nil && huge(v) {
		return []Objection{{Why: "the SDK cannot hold a number"}}
	}
	return []Objection{{Why: "the SDK cannot read it"}}
}

// huge reports whether a value holds a number that is infinite as a float64.
func huge(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), huge)
	case []any:
		return slices.ContainsFunc(v, huge)
	case json.Number:
		_, err := v.Float64()
		return err != nil
	}
	return false
}

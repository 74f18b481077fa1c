package session

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// An object holds the fields of a JSON object. Of a field that occurs twice, it has the
// last.
type object map[string]json.RawMessage

// parseObject returns the fields of a document that is an object.
func parseObject(data []byte) (object, bool) {
	if len(data) == 0 || data[0] != '{' || !strictjson.Valid(data) {
		return nil, false
	}
	return strictjson.SplitObject(data)
}

// kind returns the first byte of the value of a field, or 0 if there is none.
func (o object) kind(key string) byte { return kindOf(o[key]) }

func kindOf(raw json.RawMessage) byte {
	if len(raw) == 0 {
		return 0
	}
	return raw[0]
}

// has reports whether a field is there and not null.
func (o object) has(key string) bool { return isThere(o[key]) }

func isThere(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] != 'n' }

// text returns the text of a field that is a string, or "".
func (o object) text(key string) string { return textOf(o[key]) }

func textOf(raw json.RawMessage) string {
	if kindOf(raw) != '"' {
		return ""
	}
	s, _ := strictjson.Unquote(raw)
	return s
}

// is reports whether a field is a string without escapes that equals s.
func (o object) is(key, s string) bool {
	raw := o[key]
	return len(raw) == len(s)+2 && raw[0] == '"' && string(raw[1:len(raw)-1]) == s
}

// flag reports whether a field is true.
func (o object) flag(key string) bool { return string(o[key]) == "true" }

// object returns the fields of a field that is an object, or nil.
func (o object) object(key string) object { return objectOf(o[key]) }

func objectOf(raw json.RawMessage) object {
	if kindOf(raw) != '{' {
		return nil
	}
	all, _ := strictjson.SplitObject(raw)
	return all
}

// list returns the elements of a field that is a list, or nil.
func (o object) list(key string) []json.RawMessage { return listOf(o[key]) }

func listOf(raw json.RawMessage) []json.RawMessage {
	if kindOf(raw) != '[' {
		return nil
	}
	list, _ := strictjson.SplitArray(raw)
	return list
}

// number returns the whole number in a field, 0 if there is no number, or -1 if the number is
// too large or not whole.
func (o object) number(key string) int {
	raw := o[key]
	if c := kindOf(raw); c != '-' && (c < '0' || c > '9') {
		return 0
	}
	if n, err := strconv.Atoi(string(raw)); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(string(raw), 64); err == nil && math.Abs(f) < 1<<31 && f == math.Trunc(f) {
		return int(f)
	}
	return -1
}

// time returns the time in a field: RFC 3339, or milliseconds since 1970. It is zero for
// anything else, and for a year that no session has.
func (o object) time(key string) time.Time {
	raw := o[key]
	var t time.Time
	if kindOf(raw) == '"' {
		t, _ = time.Parse(time.RFC3339Nano, string(raw[1:len(raw)-1]))
	} else if n := o.number(key); n > 0 {
		t = time.UnixMilli(int64(n))
	}
	if y := t.Year(); y < 1980 || y > 9000 {
		return time.Time{}
	}
	return t.UTC()
}

// tokens returns the number of tokens in a field, or 0 if there is none that can be right.
func (o object) tokens(key string) int {
	if n := o.number(key); n > 0 && n <= mostTokens {
		return n
	}
	return 0
}

// document returns the JSON of an object, with the fields in the order of their names.
func (o object) document() []byte {
	keys := make([]string, 0, len(o))
	for key := range o {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	b := []byte{'{'}
	for i, key := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(strictjson.AppendString(b, key), ':'), o[key]...)
	}
	return append(b, '}')
}

// quote returns s as a JSON string.
func quote(s string) json.RawMessage { return strictjson.AppendString(nil, s) }

// mostTokens is above any figure that a program can have recorded, and so far below what an
// int64 holds that sums do not overflow.
const mostTokens = math.MaxInt32

// isValid reports whether a provider can have reported a usage: there is input, and no figure
// is negative, above mostTokens, or greater than the figure that it is a part of.
func isValid(u convo.Usage) bool {
	for _, n := range []int{u.Input, u.CacheRead, u.CacheWrite, u.CacheWriteLong, u.InputAudio, u.Extra, u.Output, u.Reasoning, u.OutputAudio} {
		if n < 0 || n > mostTokens {
			return false
		}
	}
	return u.Input > 0 && u.CacheRead <= u.Input && u.CacheWrite <= u.Input-u.CacheRead && u.CacheWriteLong <= u.CacheWrite &&
		u.InputAudio <= u.Input && u.Extra <= u.Input && u.Reasoning <= u.Output && u.OutputAudio <= u.Output
}

// sum adds figures. It returns -1, which is no figure, if one of them is negative or the
// sum is too large.
func sum(figures ...int) int {
	total := 0
	for _, n := range figures {
		if n < 0 || n > math.MaxInt-total {
			return -1
		}
		total += n
	}
	return total
}

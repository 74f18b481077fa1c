package overflow

import (
	"encoding/json"
	"strconv"
	"strings"
)

// A Body is a request as it was written.
type Body struct {
	JSON  []byte
	Paths Paths

	decoded any
}

// Paths is how a provider writes the places of a request in its errors.
type Paths uint8

const (
	Bracketed Paths = iota // as messages[0].content
	Dotted                 // as messages.0.content
	Foreign                // they are those of another body, which this one is translated to
)

// Encoded is called by package wire with each snapshot that a format has encoded, and set by
// package convo. BodyOf writes the body again, and is set by package wire.
var (
	Encoded = func(snapshot, format any) {}
	BodyOf  = func(snapshot, format any) (Body, error) { return Body{}, nil }
)

// At returns what stands at a path of the body: the innermost element of a list on the way, and
// those that it stands in. It returns nil for a path that is not one of this body.
func (b *Body) At(path string) []map[string]any {
	names := strings.FieldsFunc(path, func(c rune) bool { return c == '.' || c == '[' || c == ']' })
	if b.Paths == Foreign || len(names) < 2 || (b.Paths == Dotted) == strings.Contains(path, "[") {
		return nil
	}
	if b.decoded == nil && json.Unmarshal(b.JSON, &b.decoded) != nil {
		return nil
	}
	v := b.decoded
	var found []map[string]any
	for _, name := range names {
		switch in := v.(type) {
		case map[string]any:
			next, ok := in[name]
			if !ok {
				next, ok = in[camel(name)]
			}
			if ok {
				v = next
			} else if _, err := strconv.Atoi(name); err == nil {
				return nil
			} // otherwise it is the type of the object
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(in) {
				return nil
			}
			v = in[i]
			if m, ok := v.(map[string]any); ok {
				found = append([]map[string]any{m}, found...)
			}
		default:
			return nil
		}
	}
	if len(found) > 1 {
		found = found[:len(found)-1] // not the whole message
	}
	return found
}

// camel returns a name such as inline_data as inlineData.
func camel(name string) string {
	words := strings.Split(name, "_")
	for i, w := range words[1:] {
		if w != "" {
			words[i+1] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "")
}

// Strings yields the strings in a JSON value, without the names of fields.
func Strings(v any) func(yield func(string) bool) {
	var walk func(v any, yield func(string) bool) bool
	walk = func(v any, yield func(string) bool) bool {
		switch v := v.(type) {
		case string:
			return yield(v)
		case []any:
			for _, in := range v {
				if !walk(in, yield) {
					return false
				}
			}
		case map[string]any:
			for name, in := range v {
				if name != "type" && !walk(in, yield) {
					return false
				}
			}
		}
		return true
	}
	return func(yield func(string) bool) { walk(v, yield) }
}

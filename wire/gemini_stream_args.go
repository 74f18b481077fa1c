package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// geminiArgs are the arguments of a call that arrives in pieces. Each piece is a value
// with its path, such as $.list[0].name. The values may arrive in any order.
type geminiArgs struct {
	root *argsNode // nil before the first value
	gaps int       // number of elements that may still be left out

	// For showing the arguments as text while they grow:
	path   []argsStep // of the newest value
	quoted bool       // the newest value is a string, still open in the text
	late   bool       // a value came for a place that the text has passed
}

// An argsNode is a value in the arguments.
type argsNode struct {
	kind   byte            // { for an object, [ for an array, " for a string, 0 for other values
	raw    json.RawMessage // other values
	text   streamedText    // of a string
	keys   []string        // of an object, in order of arrival
	fields map[string]*argsNode
	items  []*argsNode // of an array; nil for elements without a value
}

// An argsStep is the step of a path to a field of an object, or to an element of an
// array.
type argsStep struct {
	key   string
	index int // -1: the step is to a field
}

// Limits on the memory that a short path can require.
const (
	maxArgsDepth = 1000 // steps of a path
	maxArgsGap   = 100  // elements without a value in arrays, in addition to one for each byte read
)

// parseArgsPath reads a path in JSONPath syntax: $ followed by steps .name, ['name'] or
// [7].
func parseArgsPath(s string) (path []argsStep, ok bool) {
	s, ok = strings.CutPrefix(s, "$")
	for ok && s != "" && len(path) < maxArgsDepth {
		var key string
		switch {
		case strings.HasPrefix(s, "['"), strings.HasPrefix(s, `["`):
			key, s, ok = strings.Cut(s[2:], s[1:2]+"]")
			path = append(path, argsStep{key, -1})
		case s[0] == '[':
			key, s, ok = strings.Cut(s[1:], "]")
			n, err := strconv.ParseUint(key, 10, 31)
			path, ok = append(path, argsStep{index: int(n)}), ok && err == nil
		default:
			s, ok = strings.CutPrefix(s, ".")
			end := strings.IndexAny(s, ".[")
			if end < 0 {
				end = len(s)
			}
			key, s = s[:end], s[end:]
			path, ok = append(path, argsStep{key, -1}), ok && key != ""
		}
	}
	return path, ok && s == ""
}

// read reads a partialArg, and returns the text that it adds.
func (a *geminiArgs) read(at string, data json.RawMessage) (string, error) {
	all, err := fields(at, data)
	if err != nil {
		return "", err
	}
	if a.root == nil {
		a.gaps = maxArgsGap
	}
	a.gaps += len(data)
	_, raw := pickRaw(all, "", "jsonPath")
	path, ok := parseArgsPath(stringOf(raw))
	if !ok {
		return "", &DecodeError{Path: at, Reason: "no path of an argument: " + quote(stringOf(raw))}
	}
	var value json.RawMessage
	for _, key := range []string{"stringValue", "numberValue", "boolValue"} {
		if _, raw := pickRaw(all, "", key); raw != nil {
			value = raw
		}
	}
	if _, null := pick(all, "nullValue"); value == nil && null != nil {
		value = json.RawMessage("null")
	}
	if value == nil {
		return "", nil
	}
	return a.add(at, path, value)
}

// add adds a value, and returns the text that it adds. A string is appended to the string
// at its path, if there is one.
func (a *geminiArgs) add(at string, path []argsStep, value json.RawMessage) (string, error) {
	same := 0
	for same < min(len(path), len(a.path)) && path[same] == a.path[same] {
		same++
	}
	first, again := a.root == nil, same == len(path) && same == len(a.path)
	var text []byte
	switch {
	case first:
		a.root = new(argsNode)
	case !again:
		text = append(a.closing(same), ',')
		a.late = a.late || same == len(path) || same == len(a.path)
	}
	n := a.root
	for i, step := range path {
		child, skipped, isNew := n.child(step, a.gaps)
		a.gaps -= skipped
		if child == nil {
			return "", &DecodeError{Path: at, Reason: fmt.Sprintf("element %d is far behind the end of the array", step.index)}
		}
		a.late = a.late || i == same && !isNew
		n = child
		if i < same {
			continue
		}
		if i > same || first {
			text = append(text, step.bracket())
		}
		text = append(text, strings.Repeat("null,", skipped)...)
		if step.index < 0 {
			text = append(strictjson.AppendString(text, step.key), ':')
		}
	}
	piece := value
	if kindOf(value) == '"' {
		if n.kind != '"' {
			*n = argsNode{kind: '"'}
		}
		piece = strictjson.AppendString(nil, n.text.add(value))
		if again && !first {
			piece = piece[1:]
			a.late = a.late || !a.quoted
		}
		piece, a.quoted = piece[:len(piece)-1], true
	} else {
		a.late = a.late || again && !first
		a.quoted = false
		*n = argsNode{raw: value}
	}
	a.path = path
	if a.late {
		return "", nil
	}
	return string(append(text, piece...)), nil
}

// closing returns the text that ends the newest value, and all objects and arrays of its
// path that are deeper than a step.
func (a *geminiArgs) closing(step int) (text []byte) {
	if a.quoted {
		text = append(text, '"')
	}
	for i := len(a.path) - 1; i > step; i-- {
		text = append(text, a.path[i].bracket()+2) // ] and } in ASCII
	}
	return text
}

// end returns the rest of the text.
func (a *geminiArgs) end() string {
	if a.root == nil || a.late {
		return ""
	}
	a.late = true
	return string(a.closing(-1))
}

// bracket returns the opening bracket of the object or array that a step is in.
func (s argsStep) bracket() byte {
	if s.index < 0 {
		return '{'
	}
	return '['
}

// child returns the value at a step, and the number of elements that it adds to an array
// before that value, without values. It also reports, as isNew, whether there was no value
// in that place, nor a later element. child returns nil for an element that would leave
// out more than gaps elements.
func (n *argsNode) child(step argsStep, gaps int) (child *argsNode, skipped int, isNew bool) {
	if n.kind != step.bracket() {
		*n = argsNode{kind: step.bracket()}
	}
	if step.index < 0 {
		if n.fields == nil {
			n.fields = map[string]*argsNode{}
		}
		if child = n.fields[step.key]; child == nil {
			child, isNew = new(argsNode), true
			n.keys, n.fields[step.key] = append(n.keys, step.key), child
		}
		return child, 0, isNew
	}
	skipped = step.index - len(n.items)
	if skipped > gaps {
		return nil, 0, false
	}
	if isNew = skipped >= 0; isNew {
		n.items = append(n.items, make([]*argsNode, skipped+1)...)
	}
	if n.items[step.index] == nil {
		n.items[step.index] = new(argsNode)
	}
	return n.items[step.index], max(skipped, 0), isNew
}

// appendTo appends the value as JSON.
func (n *argsNode) appendTo(b []byte) []byte {
	switch {
	case n == nil || n.kind == 0 && n.raw == nil:
		return append(b, "null"...)
	case n.kind == '"':
		return n.text.appendTo(b)
	case n.kind == '{':
		b = append(b, '{')
		for i, key := range n.keys {
			if i > 0 {
				b = append(b, ',')
			}
			b = n.fields[key].appendTo(append(strictjson.AppendString(b, key), ':'))
		}
		return append(b, '}')
	case n.kind == '[':
		b = append(b, '[')
		for _, item := range n.items {
			b = item.appendTo(appendElement(b, ""))
		}
		return append(b, ']')
	}
	return append(b, n.raw...)
}

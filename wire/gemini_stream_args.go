package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// geminiArgs are the arguments of a call that comes in pieces, each of which is a
// value with the path where it belongs, such as $.list[0].name. The values may come
// in any order.
type geminiArgs struct {
	root *argsNode // nil before the first value
	gaps int       // how many more elements may be left out

	// For those who show the arguments as text while they grow:
	path   []argsStep // of the newest value
	quoted bool       // it is a string, which is still open in the text
	late   bool       // a value came for a place that the text has passed
}

// An argsNode is a value in the arguments.
type argsNode struct {
	kind   byte            // of an object {, of an array [, of a string ", and 0 for others
	raw    json.RawMessage // of other kinds
	text   streamedText    // of a string
	keys   []string        // of an object, in the order in which they came
	fields map[string]*argsNode
	items  []*argsNode // of an array; nil where no value came
}

// An argsStep is the step of a path into a field of an object, or into an element of
// an array.
type argsStep struct {
	key   string
	index int // -1: the step is into an object
}

// Bounds on what a path can ask for in a few bytes.
const (
	maxArgsDepth = 1000 // steps of a path
	maxArgsGap   = 100  // elements that arrays may lack before new ones, beside one for each byte read
)

// parseArgsPath reads a path of the JSONPath syntax: $ and then .name, ['name'] or
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

// read reads a partialArg, and returns what it adds to the text.
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

// add adds a value, and returns what it adds to the text. A string for the place of a
// string is appended to it.
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
		if a.gaps -= skipped; child == nil {
			return "", &DecodeError{Path: at, Reason: fmt.Sprintf("element %d is far behind the end of the array", step.index)}
		}
		a.late = a.late || i == same && !isNew
		if n = child; i < same {
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
		if piece = strictjson.AppendString(nil, n.text.add(value)); again && !first {
			piece = piece[1:]
			a.late = a.late || !a.quoted
		}
		piece, a.quoted = piece[:len(piece)-1], true
	} else {
		a.late = a.late || again && !first
		a.quoted = false
		*n = argsNode{raw: value}
	}
	if a.path = path; a.late {
		return "", nil
	}
	return string(append(text, piece...)), nil
}

// closing returns the text after the newest value, up to the end of all that is
// deeper than a step of its path.
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

// bracket returns how the value begins that a step is into.
func (s argsStep) bracket() byte {
	if s.index < 0 {
		return '{'
	}
	return '['
}

// child returns the value at a step, how many elements without a value are directly
// before it, and whether nothing was there or after it yet. It returns nil for an
// element that would leave out more than gaps.
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
	if skipped = step.index - len(n.items); skipped > gaps {
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

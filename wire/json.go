package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo"
)

// Writing. The output is compact JSON with keys in a fixed order.

func appendKey(b []byte, key string) []byte {
	b = append(b, '"')
	b = append(b, key...)
	return append(b, `":`...)
}

// begin begins an object that will hold so much text.
func begin(text int) []byte { return append(make([]byte, 0, text+text/16+128), '{') }

// sizeOf returns how many bytes the texts and arguments of parts have.
func sizeOf(parts []convo.Part) (n int) {
	for _, p := range parts {
		switch p := p.(type) {
		case convo.Text:
			n += len(p) + 32
		case convo.ToolCall:
			n += len(p.ID) + len(p.Name) + len(p.Arguments) + 96
		case convo.Media:
			n += len(p.Data) + 96
		case convo.Reasoning:
			n += len(p.Text) + len(p.Signature) + len(p.Encrypted) + 96
		}
	}
	return n
}

// appendField appends a comma where one is due, and the key.
func appendField(b []byte, key string) []byte {
	if last := b[len(b)-1]; last != '{' && last != '[' {
		b = append(b, ',')
	}
	return appendKey(b, key)
}

func appendStringField(b []byte, key, value string) []byte {
	return appendString(appendField(b, key), value)
}

func appendRawField(b []byte, key, value string) []byte {
	return append(appendField(b, key), value...)
}

const hexDigits = "0123456789abcdef"

// appendString appends a JSON string. Invalid UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	done := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			b = append(b, s[done:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, '\\', 'n')
			case '\r':
				b = append(b, '\\', 'r')
			case '\t':
				b = append(b, '\\', 't')
			default:
				b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			done = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			b = append(b, s[done:i]...)
			b = append(b, "\uFFFD"...)
			done = i + 1
		}
		i += size
	}
	b = append(b, s[done:]...)
	return append(b, '"')
}

// object returns arguments as a JSON object: their own bytes, {} where there
// are none. Those of a snapshot that nobody has checked may be anything; what
// is no object becomes the text of a field.
func object(arguments string) string {
	if strings.TrimSpace(arguments) == "" {
		return "{}"
	}
	if kindOf(json.RawMessage(arguments)) == '{' && json.Valid([]byte(arguments)) && utf8.ValidString(arguments) {
		return arguments
	}
	return string(append(appendString([]byte(`{"arguments":`), arguments), '}'))
}

// Reading. A document is looked through once for whether it is JSON at all;
// after that its values are cut out without another look.

// fields returns the values of a JSON object by their names. With no path it
// is the whole document, which is checked first.
func fields(path string, data []byte) (map[string]json.RawMessage, error) {
	if path == "" && !json.Valid(data) {
		var v any
		return nil, decodeError(path, "a JSON object", json.Unmarshal(data, &v))
	}
	if kindOf(data) != '{' {
		got := "null"
		if !isNull(data) {
			got = kindName(data)
		}
		return nil, &DecodeError{Path: path, Reason: "want a JSON object, got " + got}
	}
	m := make(map[string]json.RawMessage, 8)
	c := cutter{data: data}
	if !c.object(func(key string, value json.RawMessage) { m[key] = value }) {
		return nil, &DecodeError{Path: path, Reason: "not JSON"}
	}
	return m, nil
}

func kindName(data json.RawMessage) string {
	switch kindOf(data) {
	case '"':
		return "a string"
	case '[':
		return "an array"
	case 't', 'f':
		return "a boolean"
	}
	return "a number"
}

// read reads a value into to, and says where it is when it is not what is
// wanted.
func read(path, want string, data []byte, to any) error {
	switch to := to.(type) {
	case *string:
		if s, ok := plainString(data); ok {
			*to = s
			return nil
		}
	case *[]json.RawMessage:
		if path == "" && !json.Valid(data) {
			break // the slow way says where it is not JSON
		}
		var list []json.RawMessage
		c := cutter{data: data}
		if kindOf(data) == '[' && c.array(func(value json.RawMessage) { list = append(list, value) }) {
			*to = list
			return nil
		}
	}
	if err := json.Unmarshal(data, to); err != nil {
		return decodeError(path, want, err)
	}
	return nil
}

// plainString reads a JSON string. It leaves the odd cases to package json: what
// is not valid UTF-8, and halves of surrogate pairs.
func plainString(data json.RawMessage) (string, bool) {
	data = bytes.TrimSpace(data)
	if len(data) < 2 || data[0] != '"' || data[len(data)-1] != '"' || !utf8.Valid(data) {
		return "", false
	}
	data = data[1 : len(data)-1]
	i := bytes.IndexByte(data, '\\')
	if i < 0 {
		return string(data), true
	}
	out := make([]byte, 0, len(data))
	for i >= 0 {
		out = append(out, data[:i]...)
		if data = data[i+1:]; len(data) == 0 {
			return "", false
		}
		n := 1
		switch c := data[0]; c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'u':
			if n = 5; len(data) < n {
				return "", false
			}
			r, err := strconv.ParseUint(string(data[1:5]), 16, 16)
			if err != nil || utf16.IsSurrogate(rune(r)) {
				return "", false
			}
			out = utf8.AppendRune(out, rune(r))
		default:
			return "", false
		}
		data = data[n:]
		i = bytes.IndexByte(data, '\\')
	}
	return string(append(out, data...)), true
}

// A cutter cuts values out of JSON that is known to be valid; what is not ends
// the cutting, with false.
type cutter struct {
	data []byte
	at   int
}

func (c *cutter) space() {
	for c.at < len(c.data) && (c.data[c.at] == ' ' || c.data[c.at] == '\n' || c.data[c.at] == '\t' || c.data[c.at] == '\r') {
		c.at++
	}
}

// take reports whether b comes next, and goes past it.
func (c *cutter) take(b byte) bool {
	c.space()
	if c.at < len(c.data) && c.data[c.at] == b {
		c.at++
		return true
	}
	return false
}

func (c *cutter) object(f func(key string, value json.RawMessage)) bool {
	if !c.take('{') {
		return false
	}
	for first := true; !c.take('}'); first = false {
		if !first && !c.take(',') {
			return false
		}
		c.space()
		from := c.at
		if !c.text() {
			return false
		}
		raw := c.data[from:c.at]
		key, ok := plainString(raw)
		if !ok && json.Unmarshal(raw, &key) != nil || !c.take(':') {
			return false
		}
		value, ok := c.value()
		if !ok {
			return false
		}
		f(key, value)
	}
	return true
}

func (c *cutter) array(f func(value json.RawMessage)) bool {
	if !c.take('[') {
		return false
	}
	for first := true; !c.take(']'); first = false {
		if !first && !c.take(',') {
			return false
		}
		value, ok := c.value()
		if !ok {
			return false
		}
		f(value)
	}
	return true
}

// value goes past one value and returns it.
func (c *cutter) value() (json.RawMessage, bool) {
	c.space()
	from, depth := c.at, 0
	for c.at < len(c.data) {
		switch c.data[c.at] {
		case '"':
			if !c.text() {
				return nil, false
			}
			if depth == 0 {
				return c.data[from:c.at:c.at], true
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // the end of what it stands in
				return c.data[from:c.at:c.at], c.at > from
			}
			if depth--; depth == 0 {
				c.at++
				return c.data[from:c.at:c.at], true
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return c.data[from:c.at:c.at], c.at > from
			}
		}
		c.at++
	}
	return c.data[from:c.at:c.at], depth == 0 && c.at > from
}

// text goes past a string.
func (c *cutter) text() bool {
	if c.at >= len(c.data) || c.data[c.at] != '"' {
		return false
	}
	for at := c.at + 1; ; {
		i := bytes.IndexByte(c.data[at:], '"')
		if i < 0 {
			return false
		}
		at += i + 1
		back := 0 // an odd number of backslashes before it hides a quote
		for k := at - 2; k > c.at && c.data[k] == '\\'; k-- {
			back++
		}
		if back%2 == 0 {
			c.at = at
			return true
		}
	}
}

func decodeError(path, want string, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return &DecodeError{Path: path, Offset: syntax.Offset, Reason: "not JSON: " + err.Error()}
	}
	return &DecodeError{Path: path, Reason: "want " + want + ": " + strings.TrimPrefix(err.Error(), "json: ")}
}

// elements reads an array, and hands its elements on with where they stand,
// until an error.
func elements(path, want string, data []byte, f func(path string, raw json.RawMessage) error) error {
	var list []json.RawMessage
	if err := read(path, want, data, &list); err != nil {
		return err
	}
	for i, raw := range list {
		if err := f(atIndex(path, i), raw); err != nil {
			return err
		}
	}
	return nil
}

func isNull(data json.RawMessage) bool {
	return len(data) == 0 || bytes.Equal(bytes.TrimSpace(data), []byte("null"))
}

// kindOf returns the first byte of a JSON value, 0 of nothing.
func kindOf(data json.RawMessage) byte {
	if data = bytes.TrimLeft(data, " \t\r\n"); len(data) > 0 {
		return data[0]
	}
	return 0
}

func at(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

func atIndex(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// compact returns raw JSON without the space between its tokens. Numbers and
// strings keep their bytes.
func compact(data json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return string(data)
	}
	return b.String()
}

func quote(s string) string { return fmt.Sprintf("%.40q", s) }

// isBase64 reports whether a History takes s as the data of media.
func isBase64(s string) bool {
	body := strings.TrimRight(s, "=")
	if len(s)%4 != 0 || len(s)-len(body) > 2 {
		return false
	}
	for i := range len(body) {
		if c := body[i]; !isNameByte(c) && c != '+' && c != '/' || c == '-' || c == '_' {
			return false
		}
	}
	return true
}

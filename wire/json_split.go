package wire

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Decode reads a document once to see that it is JSON, and then takes it apart level
// by level. The functions of this file do so without looking into the values, which
// stay where they are. They return false for what they cannot read, which is left to
// encoding/json.

// skipSpaces returns the index of the next byte that is no white space.
func skipSpaces(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the index behind the string that begins at i, or -1.
func skipString(data []byte, i int) int {
	for i++; ; i++ {
		n := bytes.IndexByte(data[i:], '"')
		if n < 0 {
			return -1
		}
		first := i // of the backslashes before the quote
		i += n
		k := i
		for k > first && data[k-1] == '\\' {
			k--
		}
		if (i-k)%2 == 0 {
			return i + 1
		}
	}
}

// skipValue returns the index behind the value that begins at i, or -1.
func skipValue(data []byte, i int) int {
	for depth := 0; i < len(data); {
		switch data[i] {
		case '"':
			if i = skipString(data, i); i < 0 {
				return -1
			}
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			if depth--; depth < 0 {
				return -1
			}
			i++
		case ' ', '\n', '\t', '\r', ',', ':':
			if depth == 0 {
				return -1
			}
			i++
			continue
		default:
			for i++; i < len(data) && data[i] > ' ' && data[i] != ',' && data[i] != ']' && data[i] != '}'; {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
	return -1
}

// splitObject returns the fields of an object.
func splitObject(data []byte) (map[string]json.RawMessage, bool) {
	m := map[string]json.RawMessage{}
	end, ok := splitList(data, '{', func(i int) int {
		from := i
		if i >= len(data) || data[i] != '"' {
			return -1
		}
		if i = skipString(data, i); i < 0 {
			return -1
		}
		key, ok := unquote(data[from:i])
		if !ok && json.Unmarshal(data[from:i], &key) != nil {
			return -1
		}
		i = skipSpaces(data, i)
		if i >= len(data) || data[i] != ':' {
			return -1
		}
		from = skipSpaces(data, i+1)
		if i = skipValue(data, from); i >= 0 {
			m[key] = data[from:i:i]
		}
		return i
	})
	return m, ok && end == len(data)
}

// splitArray returns the elements of an array.
func splitArray(data []byte) (list []json.RawMessage, ok bool) {
	list = []json.RawMessage{}
	end, ok := splitList(data, '[', func(i int) int {
		end := skipValue(data, i)
		if end >= 0 {
			list = append(list, data[i:end:end])
		}
		return end
	})
	return list, ok && end == len(data)
}

// splitList calls element with the index of each element, between a bracket and its
// counterpart, and returns the index behind these and the white space that follows.
// element returns the index behind the element, or -1.
func splitList(data []byte, bracket byte, element func(i int) int) (end int, ok bool) {
	i := skipSpaces(data, 0)
	if i >= len(data) || data[i] != bracket {
		return 0, false
	}
	for first := true; ; first = false {
		i = skipSpaces(data, i+1)
		if first && i < len(data) && data[i] == bracket+2 { // ] and } in ASCII
			break
		}
		if i = element(i); i < 0 {
			return 0, false
		}
		i = skipSpaces(data, i)
		if i < len(data) && data[i] == bracket+2 {
			break
		}
		if i >= len(data) || data[i] != ',' {
			return 0, false
		}
	}
	return skipSpaces(data, i+1), true
}

// escaped are the bytes that a backslash and another byte stand for.
var escaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unquote returns the text of a JSON string. It leaves characters that are escaped by
// their number, and bytes that are not UTF-8, to encoding/json.
func unquote(data []byte) (string, bool) {
	if len(data) < 2 || data[0] != '"' || data[len(data)-1] != '"' {
		return "", false
	}
	inner := data[1 : len(data)-1]
	i := bytes.IndexByte(inner, '\\')
	if i < 0 {
		return string(inner), isPlain(inner)
	}
	b := make([]byte, 0, len(inner))
	for i >= 0 {
		if i+1 == len(inner) || escaped[inner[i+1]] == 0 || !isPlain(inner[:i]) {
			return "", false
		}
		b = append(append(b, inner[:i]...), escaped[inner[i+1]])
		inner = inner[i+2:]
		i = bytes.IndexByte(inner, '\\')
	}
	if !isPlain(inner) {
		return "", false
	}
	return string(append(b, inner...)), true
}

// isPlain reports whether bytes stand for themselves in a JSON string.
func isPlain(s []byte) bool {
	for i, c := range s {
		switch {
		case c < ' ' || c == '"':
			return false
		case c >= utf8.RuneSelf:
			return bytes.IndexFunc(s[i:], func(r rune) bool { return r < ' ' || r == '"' }) < 0 && utf8.Valid(s[i:])
		}
	}
	return true
}

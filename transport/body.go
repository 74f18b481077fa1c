package transport

import (
	"bytes"
	"errors"
)

// errJSON says that a body is not what the path says.
var errJSON = errors.New("the body is no JSON object, or is cut off")

const deepest = 5000 // how far values may be nested

// A span is a part of a body.
type span struct{ from, to int }

func (s span) of(b []byte) []byte { return b[s.from:s.to] }

// fields calls each with every field of the object in b. Names are as they stand there.
func fields(b []byte, each func(name string, value span)) error {
	i := skipSpace(b, 0)
	if i == len(b) || b[i] != '{' {
		return errJSON
	}
	if i = skipSpace(b, i+1); i < len(b) && b[i] == '}' {
		return nil
	}
	for {
		end := skipString(b, i)
		if end < 0 {
			return errJSON
		}
		name := string(b[i+1 : end-1])
		if i = skipSpace(b, end); i == len(b) || b[i] != ':' {
			return errJSON
		}
		i = skipSpace(b, i+1)
		if end = skipValue(b, i); end < 0 {
			return errJSON
		}
		each(name, span{i, end})
		if i = skipSpace(b, end); i == len(b) {
			return errJSON
		}
		switch b[i] {
		case '}':
			return nil
		case ',':
			i = skipSpace(b, i+1)
		default:
			return errJSON
		}
	}
}

// elements returns the elements of the array in b at s.
func elements(b []byte, s span) (list []span, err error) {
	i := s.from
	if i >= s.to || b[i] != '[' {
		return nil, errJSON
	}
	if i = skipSpace(b, i+1); i < s.to && b[i] == ']' {
		return nil, nil
	}
	for {
		end := skipValue(b, i)
		if end < 0 {
			return nil, errJSON
		}
		list = append(list, span{i, end})
		if i = skipSpace(b, end); i >= s.to {
			return nil, errJSON
		}
		switch b[i] {
		case ']':
			return list, nil
		case ',':
			i = skipSpace(b, i+1)
		default:
			return nil, errJSON
		}
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns where the string at i ends, or -1.
func skipString(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	for i++; ; {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		end := i + n
		escapes := 0
		for end-escapes > i && b[end-escapes-1] == '\\' {
			escapes++
		}
		if i = end + 1; escapes%2 == 0 {
			return i
		}
	}
}

// skipValue returns where the value at i ends, or -1. It looks at strings and brackets alone,
// and not at whether the rest is valid.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
	default:
		from := i
		for i < len(b) && !bytes.ContainsRune([]byte(" \n\t\r,:]}[{\""), rune(b[i])) {
			i++
		}
		if i == from {
			return -1
		}
		return i
	}
	var open [64]byte
	stack := open[:0]
	for i < len(b) {
		switch c := b[i]; c {
		case '"':
			if i = skipString(b, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			if stack = append(stack, c+2); len(stack) > deepest { // the bracket that closes it
				return -1
			}
		case '}', ']':
			if c != stack[len(stack)-1] {
				return -1
			}
			if stack = stack[:len(stack)-1]; len(stack) == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}

// splice returns body with list in place of what stands at s.
func splice(body []byte, s span, list [][]byte) []byte {
	size := len(body) + 2
	for _, raw := range list {
		size += len(raw) + 1
	}
	out := append(make([]byte, 0, size), body[:s.from]...)
	out = append(out, '[')
	for i, raw := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, raw...)
	}
	return append(append(out, ']'), body[s.to:]...)
}

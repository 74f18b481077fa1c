package strictjson

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// maxDepth is the nesting limit of encoding/json for objects and arrays.
const maxDepth = 10000

// Valid returns the same result as json.Valid, several times faster.
func Valid(data []byte) bool {
	var room [64]byte
	open := room[:0] // the closing brackets of all open brackets
	i := skipSpace(data, 0)
	for {
		// A value begins at i.
		if i >= len(data) {
			return false
		}
		switch c := data[i]; c {
		case '{', '[':
			open = append(open, c+2) // } and ] in ASCII
			if i = skipSpace(data, i+1); len(open) > maxDepth || i >= len(data) {
				return false
			}
			if data[i] == c+2 {
				break // closed below
			}
			if c == '{' {
				if i = skipKey(data, i); i < 0 {
					return false
				}
			}
			continue
		case '"':
			i = SkipString(data, i)
		case 't':
			i = skipWord(data, i, "true")
		case 'f':
			i = skipWord(data, i, "false")
		case 'n':
			i = skipWord(data, i, "null")
		default:
			i = skipNumber(data, i)
		}
		// A value ends at i, or the bracket at i closes an empty object or array.
		for {
			if i < 0 {
				return false
			}
			i = skipSpace(data, i)
			if len(open) == 0 || i >= len(data) {
				return len(open) == 0 && i == len(data)
			}
			last := open[len(open)-1]
			if data[i] != last {
				break
			}
			open = open[:len(open)-1]
			i++
		}
		if data[i] != ',' {
			return false
		}
		i = skipSpace(data, i+1)
		if open[len(open)-1] == '}' {
			if i = skipKey(data, i); i < 0 {
				return false
			}
		}
	}
}

// IsObject reports whether s is a JSON object in valid UTF-8.
func IsObject(s string) bool {
	return strings.HasPrefix(strings.TrimLeft(s, " \t\r\n"), "{") && utf8.ValidString(s) && Valid([]byte(s))
}

// The functions below return the index after the named syntax at i, or -1 if data does not
// have it there.

func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i
}

// skipKey skips a key, its colon and the white space after it.
func skipKey(data []byte, i int) int {
	if i = SkipString(data, i); i < 0 {
		return -1
	}
	if i = skipSpace(data, i); i >= len(data) || data[i] != ':' {
		return -1
	}
	return skipSpace(data, i+1)
}

// SkipString returns the index after the string at i, or -1 if there is none.
func SkipString(data []byte, i int) int {
	if i >= len(data) || data[i] != '"' {
		return -1
	}
	for i++; ; {
		n, _ := plain(data[i:])
		if i += n; i >= len(data) {
			return -1
		}
		switch {
		case data[i] == '"':
			return i + 1
		case data[i] != '\\' || i+1 == len(data):
			return -1
		case unescape[data[i+1]] != 0:
			i += 2
		case data[i+1] == 'u' && hex4(data[i+2:]) >= 0:
			i += 6
		default:
			return -1
		}
	}
}

// PassString returns the same result as SkipString if data is valid JSON, in less time: it
// looks only for quotes. For other data it may return any index after a quote at i or
// later, or -1.
func PassString(data []byte, i int) int {
	if i >= len(data) || data[i] != '"' {
		return -1
	}
	for from := i + 1; ; {
		n := bytes.IndexByte(data[from:], '"')
		if n < 0 {
			return -1
		}
		end := from + n
		slashes := end
		for slashes > from && data[slashes-1] == '\\' {
			slashes--
		}
		if from = end + 1; (end-slashes)%2 == 0 {
			return from
		}
	}
}

func skipWord(data []byte, i int, word string) int {
	if len(data)-i < len(word) || string(data[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}

func skipNumber(data []byte, i int) int {
	if data[i] == '-' {
		i++
	}
	switch {
	case i < len(data) && data[i] == '0':
		i++
	case skipDigits(data, i) > i:
		i = skipDigits(data, i)
	default:
		return -1
	}
	if i < len(data) && data[i] == '.' {
		from := i + 1
		if i = skipDigits(data, from); i == from {
			return -1
		}
	}
	if i < len(data) && (data[i] == 'e' || data[i] == 'E') {
		i++
		if i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		from := i
		if i = skipDigits(data, from); i == from {
			return -1
		}
	}
	return i
}

func skipDigits(data []byte, i int) int {
	for i < len(data) && '0' <= data[i] && data[i] <= '9' {
		i++
	}
	return i
}

// Unquote returns the text of a JSON string, as encoding/json does: each byte of invalid
// UTF-8 is replaced by U+FFFD, as is each unpaired surrogate. It returns false for anything
// else, including a string with white space around it.
func Unquote(data []byte) (string, bool) {
	if len(data) < 2 || data[0] != '"' {
		return "", false
	}
	rest := data[1:]
	n, ascii := plain(rest)
	if n == len(rest)-1 && rest[n] == '"' {
		return valid(rest[:n], ascii), true
	}
	b := append(make([]byte, 0, len(rest)), rest[:n]...)
	for rest = rest[n:]; len(rest) > 1 && rest[0] == '\\'; {
		if c := unescape[rest[1]]; c != 0 {
			b, rest = append(b, c), rest[2:]
		} else {
			u, n, want := numbered(rest)
			if want != "" {
				return "", false
			}
			b, rest = utf8.AppendRune(b, u), rest[n:]
		}
		before := len(b)
		b = appendPlain(b, rest)
		rest = rest[len(b)-before:]
	}
	if len(rest) != 1 || rest[0] != '"' {
		return "", false
	}
	return valid(b, false), true
}

// valid returns s as a string, with invalid UTF-8 replaced.
func valid(s []byte, ascii bool) string {
	if ascii || utf8.Valid(s) {
		return string(s)
	}
	return string([]rune(string(s)))
}

package strictjson

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"time"
	"unicode/utf8"
)

// AppendString appends s as a JSON string. Each invalid byte is replaced by U+FFFD. It
// processes eight bytes at a time.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	for len(s) >= 8 {
		x := word(s)
		b = binary.LittleEndian.AppendUint64(b, x)
		special := (ends(x) | x) & highs
		if special == 0 {
			s = s[8:]
			continue
		}
		n := bits.TrailingZeros64(special) / 8
		b, s = appendSpecial(b[:len(b)-8+n], s[n:])
	}
	for s != "" {
		if c := s[0]; ' ' <= c && c < utf8.RuneSelf && c != '"' && c != '\\' {
			b, s = append(b, c), s[1:]
		} else {
			b, s = appendSpecial(b, s)
		}
	}
	return append(b, '"')
}

// appendSpecial appends the first character of s, escaped, or all characters up to the
// next ASCII character, and returns the rest of s.
func appendSpecial(b []byte, s string) ([]byte, string) {
	switch c := s[0]; {
	case c >= utf8.RuneSelf:
		i := 0
		for i < len(s) && s[i] >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(append(b, s[:i]...), "\uFFFD"...)
				s, i = s[1+i:], 0
				continue
			}
			i += size
		}
		return append(b, s[:i]...), s[i:]
	case c == '"' || c == '\\':
		b = append(b, '\\', c)
	case c == '\n':
		b = append(b, '\\', 'n')
	case c == '\r':
		b = append(b, '\\', 'r')
	case c == '\t':
		b = append(b, '\\', 't')
	default:
		const hexDigits = "0123456789abcdef"
		b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
	}
	return b, s[1:]
}

// QuotedLen returns the approximate length of s as a JSON string, in bytes.
func QuotedLen(s string) int {
	n := len(s) + 16
	for ; len(s) >= 8; s = s[8:] {
		n += bits.OnesCount64((ends(word(s)) | word(s)) & highs)
	}
	return n
}

// Next appends a comma, unless an object or an array has just been opened.
func Next(dst []byte) []byte {
	if c := dst[len(dst)-1]; c != '{' && c != '[' {
		dst = append(dst, ',')
	}
	return dst
}

// Key appends the key of the next member of an object, with the colon. The key must
// not need escapes.
func Key(dst []byte, key string) []byte {
	dst = append(Next(dst), '"')
	dst = append(dst, key...)
	return append(dst, '"', ':')
}

// The functions below append a member of an object, or nothing if the value is zero.

// Int appends an integer.
func Int[N ~int | ~int64](dst []byte, key string, n N) []byte {
	if n == 0 {
		return dst
	}
	return strconv.AppendInt(Key(dst, key), int64(n), 10)
}

// Bool appends true.
func Bool(dst []byte, key string, b bool) []byte {
	if !b {
		return dst
	}
	return append(Key(dst, key), "true"...)
}

// Time appends a time in UTC.
func Time(dst []byte, key string, t time.Time) []byte {
	if t.IsZero() {
		return dst
	}
	dst = append(Key(dst, key), '"')
	dst = t.UTC().AppendFormat(dst, time.RFC3339Nano)
	return append(dst, '"')
}

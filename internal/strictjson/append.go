package strictjson

import (
	"strconv"
	"time"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// AppendString appends s as a JSON string. Each run of invalid UTF-8 is replaced by
// U+FFFD. Nothing is escaped that need not be.
func AppendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	n, ascii := plain(s)
	dst = append(dst, '"')
	if ascii && n == len(s) {
		dst = append(dst, s...)
		return append(dst, '"')
	}
	s = text.Valid(s)
	for {
		before := len(dst)
		dst = appendPlain(dst, s)
		n := len(dst) - before
		if n == len(s) {
			return append(dst, '"')
		}
		switch c := s[n]; c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		s = s[n+1:]
	}
}

// Next appends a comma, unless an object or an array has just been opened.
func Next(dst []byte) []byte {
	if c := dst[len(dst)-1]; c != '{' && c != '[' {
		dst = append(dst, ',')
	}
	return dst
}

// Key appends the key of the next member of an object, with the colon. The key must
// need no escape.
func Key(dst []byte, key string) []byte {
	dst = append(Next(dst), '"')
	dst = append(dst, key...)
	return append(dst, '"', ':')
}

// The functions below append a member of an object, or nothing if the value is zero.

// Text appends a string.
func Text(dst []byte, key, s string) []byte {
	if s == "" {
		return dst
	}
	return AppendString(Key(dst, key), s)
}

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

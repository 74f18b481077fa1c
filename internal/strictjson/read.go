// Package strictjson reads and writes JSON in one pass and without reflection. The
// accepted syntax does not depend on the version of encoding/json.
package strictjson

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// A Reader reads one JSON value. After the first error, every method returns the zero
// value, and loops end. It is therefore enough to check Err at the end.
//
// Methods that return a value return the zero value for null.
type Reader struct {
	data  []byte
	at    int        // index of the next byte to read
	err   error      // the first error
	field []byte     // the last key read, for errors
	text  []byte     // the content of the last string with escapes
	names [32]string // strings read by Name, by hash
}

// NewReader returns a Reader of data. data must not be changed while the Reader is used.
func NewReader(data []byte) *Reader { return &Reader{data: data} }

// Err returns the first error, if any.
func (r *Reader) Err() error { return r.err }

// Fail ends reading with an error, unless there was an earlier error.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// Unknown ends reading with an error for an unknown key.
func (r *Reader) Unknown(key []byte) { r.Fail(fmt.Errorf("unknown field %.40q", key)) }

// End ends reading with an error if anything but white space follows.
func (r *Reader) End() {
	if r.next(); r.at < len(r.data) {
		r.Fail(errors.New("unexpected data after the JSON value"))
	}
}

// want ends reading with an error that names what was expected instead of the next bytes.
func (r *Reader) want(what string) {
	if r.err != nil {
		return
	}
	found := "the end"
	if r.at < len(r.data) {
		found = strconv.QuoteToASCII(string(r.data[r.at : r.at+1]))
	}
	in := ""
	if r.field != nil {
		in = fmt.Sprintf(", in or after the field %.40q", r.field)
	}
	r.err = fmt.Errorf("byte %d is %s, want %s%s", r.at, found, what, in)
}

// wantAt is like want, for bytes that have already been read.
func (r *Reader) wantAt(at int, what string) {
	if r.err == nil {
		r.at = at
		r.want(what)
	}
}

// next skips white space and returns the byte after it, or 0 if there is none.
func (r *Reader) next() byte {
	if r.err != nil {
		return 0
	}
	for ; r.at < len(r.data); r.at++ {
		c := r.data[r.at]
		if c > ' ' || c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c
		}
	}
	return 0
}

// Null reads null, if it is next, and reports whether it was.
func (r *Reader) Null() bool { return r.next() == 'n' && r.literal("null") }

// IsText reports whether a string is next.
func (r *Reader) IsText() bool { return r.next() == '"' }

// literal reads a word, if it is next, and reports whether it was.
func (r *Reader) literal(word string) bool {
	if !bytes.HasPrefix(r.data[r.at:], []byte(word)) {
		return false
	}
	r.at += len(word)
	return true
}

// Object yields the keys of an object, or none for null. The loop must read the
// value after each key, or break. A duplicate key is an error.
//
//	for key := range r.Object {
//		switch string(key) {
//		case "name":
//			name = r.Text()
//		default:
//			r.Unknown(key)
//		}
//	}
func (r *Reader) Object(yield func(key []byte) bool) {
	if r.Null() || !r.open('{', "an object") {
		return
	}
	var room [8][]byte
	keys := room[:0]
	for r.more('}', len(keys) == 0) {
		if r.next() != '"' {
			r.want("a key")
			return
		}
		key, escaped := r.quoted()
		if escaped {
			key = bytes.Clone(key)
		}
		if r.field = key; r.next() != ':' {
			r.want("a colon")
			return
		}
		r.at++
		if !yield(key) {
			return
		}
		for _, k := range keys {
			if bytes.Equal(k, key) {
				r.Fail(fmt.Errorf("duplicate key %.40q", key))
			}
		}
		keys = append(keys, key)
	}
}

// Peek returns the string with that key in the object that is next, or nil if it has none. It
// does not read the object. The bytes are valid until the next string is read.
func (r *Reader) Peek(key string) (value []byte) {
	r.peek(key, func() { value = r.Bytes() })
	return value
}

// PeekInt is Peek for an integer, and returns 0 if there is none.
func (r *Reader) PeekInt(key string) (value int) {
	r.peek(key, func() { value = r.Int() })
	return value
}

// peek calls read at the value with that key in the object that is next.
func (r *Reader) peek(key string, read func()) {
	r.next()
	at, field := r.at, r.field
	for have := range r.Object {
		if string(have) == key {
			read()
			break
		}
		r.Skip()
	}
	if r.err == nil {
		r.at, r.field = at, field
	}
}

// Array yields the indices of the elements of an array, or none for null. The loop
// must read each element, or break.
func (r *Reader) Array(yield func(i int) bool) {
	if r.Null() || !r.open('[', "an array") {
		return
	}
	for i := 0; r.more(']', i == 0); i++ {
		if !yield(i) {
			return
		}
	}
}

func (r *Reader) open(bracket byte, what string) bool {
	if r.next() != bracket {
		r.want(what)
		return false
	}
	r.at++
	return true
}

// more reports whether another member or element follows. It reads the comma before the
// member or element, or the bracket at the end.
func (r *Reader) more(end byte, first bool) bool {
	switch c := r.next(); {
	case r.err != nil:
		return false
	case c == end:
		r.at++
		return false
	case first:
		return true
	case c == ',':
		r.at++
		return true
	}
	r.want("a comma or " + string(rune(end)))
	return false
}

// Skip skips a value. It checks only that quotes and brackets are closed.
func (r *Reader) Skip() {
	r.next()
	if r.err != nil {
		return
	}
	if end := skipValue(r.data, r.at); end >= 0 {
		r.at = end
	} else {
		r.want("a value")
	}
}

// Text reads a string. Each byte of invalid UTF-8 is replaced by U+FFFD, as is each
// unpaired surrogate.
func (r *Reader) Text() string { return string(r.Bytes()) }

// Name reads a string like Text. If Name has recently read the same string, it returns
// that string without an allocation. It is meant for short strings that repeat, such as
// the names of tools.
func (r *Reader) Name() string {
	s := r.Bytes()
	if len(s) == 0 || len(s) > 64 {
		return string(s)
	}
	hash := uint(0)
	for _, c := range s[max(len(s)-4, 0):] {
		hash = 5*hash + uint(c)
	}
	slot := &r.names[hash%uint(len(r.names))]
	if *slot != string(s) {
		*slot = string(s)
	}
	return *slot
}

// Bytes reads a string like Text. The bytes are valid until the next string is read.
func (r *Reader) Bytes() []byte {
	if r.Null() {
		return nil
	}
	s, _ := r.string()
	return s
}

func (r *Reader) string() (s []byte, escaped bool) {
	if r.next() != '"' {
		r.want("a string")
		return nil, false
	}
	return r.quoted()
}

// quoted reads a string whose quote is next, and reports whether it had escapes. If so,
// the bytes are valid until the next string is read.
func (r *Reader) quoted() (s []byte, escaped bool) {
	r.at++
	from := r.at
	n, ascii := plain(r.data[from:])
	r.at += n
	s = r.data[from:r.at]
	if escaped = r.at < len(r.data) && r.data[r.at] == '\\'; escaped {
		s, ascii = r.unescaped(from), false
	}
	if r.at >= len(r.data) || r.data[r.at] != '"' {
		r.want("a character of a string, or a quote")
		return nil, false
	}
	r.at++
	if !ascii && !utf8.Valid(s) {
		s = []byte(string([]rune(string(s))))
	}
	return s, escaped
}

// unescaped returns the text from the index from to the end of the string, with escapes
// decoded. The bytes before r.at have no escapes.
func (r *Reader) unescaped(from int) []byte {
	text, rest := append(r.text[:0], r.data[from:r.at]...), r.data[r.at:]
	for len(rest) > 1 && rest[0] == '\\' {
		if c := unescape[rest[1]]; c != 0 {
			text, rest = append(text, c), rest[2:]
		} else {
			u, n, want := numbered(rest)
			if want != "" {
				r.wantAt(len(r.data)-len(rest)+1, want)
				return nil
			}
			text, rest = utf8.AppendRune(text, u), rest[n:]
		}
		before := len(text)
		text = appendPlain(text, rest)
		rest = rest[len(text)-before:]
	}
	r.text, r.at = text, len(r.data)-len(rest)
	return text
}

// unescape maps the character of a short escape to its meaning.
var unescape = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// numbered reads a \u escape, or two that form a surrogate pair, at the beginning of s,
// and returns its length. If there is none, want names what was expected after the
// backslash.
func numbered(s []byte) (u rune, n int, want string) {
	if s[1] != 'u' {
		return 0, 0, "an escape"
	}
	if u = hex4(s[2:]); u < 0 {
		return 0, 0, "four hexadecimal digits"
	}
	if !utf16.IsSurrogate(u) {
		return u, 6, ""
	}
	if next := s[6:]; len(next) >= 6 && next[0] == '\\' && next[1] == 'u' {
		if pair := utf16.DecodeRune(u, hex4(next[2:])); pair != utf8.RuneError {
			return pair, 12, ""
		}
	}
	return utf8.RuneError, 6, ""
}

// hex4 returns the value of the first four bytes of s as hexadecimal digits, or -1.
func hex4(s []byte) rune {
	if len(s) < 4 {
		return -1
	}
	var u rune
	for _, c := range s[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		u = u<<4 | rune(c)
	}
	return u
}

// plain returns the number of bytes of s before the first quote, backslash or control
// character. If ascii is true, all these bytes are ASCII.
func plain[S string | []byte](s S) (n int, ascii bool) {
	seen := uint64(0) // the OR of all words
	for ; n+8 <= len(s); n += 8 {
		x := word(s[n : n+8])
		seen |= x
		if ends := ends(x); ends != 0 {
			return n + bits.TrailingZeros64(ends)/8, seen&highs == 0
		}
	}
	for ; n < len(s); n++ {
		c := s[n]
		if c < ' ' || c == '"' || c == '\\' {
			break
		}
		seen |= uint64(c)
	}
	return n, seen&highs == 0
}

// appendPlain appends the bytes of s before the first quote, backslash or control
// character. It is fast if there are few such bytes.
func appendPlain[S string | []byte](dst []byte, s S) []byte {
	for ; len(s) >= 8; s = s[8:] {
		x := word(s[:8])
		dst = binary.LittleEndian.AppendUint64(dst, x)
		if ends := ends(x); ends != 0 {
			return dst[:len(dst)-8+bits.TrailingZeros64(ends)/8]
		}
	}
	for i := 0; i < len(s) && s[i] >= ' ' && s[i] != '"' && s[i] != '\\'; i++ {
		dst = append(dst, s[i])
	}
	return dst
}

// highs is the high bit of each byte of a word.
const highs = 0x8080808080808080

// word returns the first eight bytes of s as a little-endian integer.
func word[S string | []byte](s S) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// ends returns the high bit of each byte of a word that is a quote, a backslash or a
// control character. Bits above the lowest set bit may be wrong, because of carries.
func ends(x uint64) uint64 {
	const ones = 0x0101010101010101
	quote, slash := x^('"'*ones), x^('\\'*ones)
	return ((x-' '*ones)&^x | (quote-ones)&^quote | (slash-ones)&^slash) & highs
}

// Bool reads true or false.
func (r *Reader) Bool() bool {
	switch {
	case r.Null():
	case r.next() == 't' && r.literal("true"):
		return true
	case r.next() == 'f' && r.literal("false"):
	default:
		r.want("true or false")
	}
	return false
}

// Int reads an integer that fits in an int, without a fraction or an exponent.
func (r *Reader) Int() int { return int(r.integer(strconv.IntSize)) }

// Int64 reads an integer that fits in an int64, without a fraction or an exponent.
func (r *Reader) Int64() int64 { return r.integer(64) }

func (r *Reader) integer(size int) int64 {
	if r.Null() {
		return 0
	}
	from := r.at
	n, err := strconv.ParseInt(string(r.number()), 10, size)
	if err != nil || r.err != nil {
		r.wantAt(from, fmt.Sprintf("an integer of %d bits", size))
		return 0
	}
	return n
}

// Float reads a number that fits in a float64.
func (r *Reader) Float() float64 {
	if r.Null() {
		return 0
	}
	from := r.at
	x, err := strconv.ParseFloat(string(r.number()), 64)
	if err != nil || r.err != nil {
		r.wantAt(from, "a number of 64 bits")
		return 0
	}
	return x
}

// number reads a number and returns its bytes.
func (r *Reader) number() []byte {
	from := r.at
	if r.next() == '-' {
		r.at++
	}
	digits := func() {
		start := r.at
		for r.at < len(r.data) && '0' <= r.data[r.at] && r.data[r.at] <= '9' {
			r.at++
		}
		if r.at == start {
			r.want("a digit")
		}
	}
	is := func(a, b byte) bool { return r.at < len(r.data) && (r.data[r.at] == a || r.data[r.at] == b) }
	if is('0', '0') {
		r.at++
	} else {
		digits()
	}
	if is('.', '.') {
		r.at++
		digits()
	}
	if is('e', 'E') {
		r.at++
		if is('+', '-') {
			r.at++
		}
		digits()
	}
	return r.data[from:r.at]
}

// Time reads a time in RFC 3339 format, without escapes.
func (r *Reader) Time() (t time.Time) {
	if r.Null() {
		return t
	}
	from := r.at
	s, escaped := r.string()
	if r.err != nil || escaped || t.UnmarshalText(s) != nil {
		r.wantAt(from, "a time as RFC 3339 writes it")
		return time.Time{}
	}
	return t
}

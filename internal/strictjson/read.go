// Package strictjson reads and writes JSON in one pass and without reflection. What
// it accepts does not depend on the version of encoding/json.
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

// A Reader reads one JSON value. The first error ends it: after that every method
// returns the zero value, and loops end. So it is enough to look at Err when all has
// been read.
//
// Methods that return a value return the zero value for null.
type Reader struct {
	data  []byte
	at    int        // where data is read next
	err   error      // the first one
	field []byte     // the key read last, for errors
	text  []byte     // the content of the last string that had escapes
	names [32]string // read by Name, by their hash
}

// NewReader returns a Reader of data, which must not change while it is used.
func NewReader(data []byte) *Reader { return &Reader{data: data} }

// Err returns the first error, if there was one.
func (r *Reader) Err() error { return r.err }

// Fail ends reading with an error, unless there was one before.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// Unknown ends reading because the loop over Object does not know a key.
func (r *Reader) Unknown(key []byte) { r.Fail(fmt.Errorf("unknown field %.40q", key)) }

// End ends reading with an error if anything but white space follows.
func (r *Reader) End() {
	if r.next(); r.at < len(r.data) {
		r.Fail(errors.New("unexpected data after the JSON value"))
	}
}

// want ends reading because the next bytes are not what was wanted.
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

// wantAt is want for bytes that were read already.
func (r *Reader) wantAt(at int, what string) {
	if r.err == nil {
		r.at = at
		r.want(what)
	}
}

// next passes over white space and returns the byte after it, 0 if there is none.
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

// Null reads null, if that is next, and reports whether it was.
func (r *Reader) Null() bool { return r.next() == 'n' && r.literal("null") }

// literal reads a word, if that is next, and reports whether it was.
func (r *Reader) literal(word string) bool {
	if !bytes.HasPrefix(r.data[r.at:], []byte(word)) {
		return false
	}
	r.at += len(word)
	return true
}

// Object yields the keys of an object, or none for null. The loop must read the
// value after each key, or leave. A key that occurs twice is an error.
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

// Array yields the indices of the elements of an array, or none for null. The loop
// must read each element, or leave.
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

// more reports whether another member or element follows, and reads the comma before
// it or the bracket at the end.
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

// Skip passes over a value, of which it checks only that quotes and brackets are
// closed.
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

// Text reads a string. What is no valid UTF-8 becomes U+FFFD, byte by byte, and so do
// halves of surrogate pairs.
func (r *Reader) Text() string { return string(r.Bytes()) }

// Name reads a string like Text. If it was read before, and not long ago, it shares
// the memory of that string: so it is for what is short and comes again, such as the
// names of tools.
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

// quoted reads a string whose quote is next. It also reports whether it had escapes:
// then the bytes are valid until the next string is read.
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

// unescaped returns what the bytes between from and r.at, and those after it up to the
// end of the string, stand for.
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

// unescape holds what an escape of one character stands for, by that character.
var unescape = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// numbered reads an escape that names a character by its number, or two of them that
// are a surrogate pair, from the beginning of s, and returns its length. If there is
// none, it says what was wanted after the backslash.
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

// hex4 returns the number that the first four bytes of s are in hexadecimal, or -1.
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

// plain returns how many bytes of s come before the first quote, backslash or control
// character. If ascii is true, all of these are ASCII.
func plain[S string | []byte](s S) (n int, ascii bool) {
	seen := uint64(0) // the bits of all bytes
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

// appendPlain appends the bytes of s that come before the first quote, backslash or
// control character. It is quick where there are few.
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

// word returns the first eight bytes as an integer, the first one lowest.
func word[S string | []byte](s S) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// ends returns the high bit of each byte of a word that is a quote, a backslash or a
// control character. Bits above the lowest one that is set may be wrong, because of
// carries.
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

// Int reads an integer that an int can hold, without a fraction or an exponent.
func (r *Reader) Int() int { return int(r.integer(strconv.IntSize)) }

// Int64 reads an integer that an int64 can hold, without a fraction or an exponent.
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

// Float reads a number that a float64 can hold.
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

// Time reads a time as RFC 3339 writes it, without escapes.
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

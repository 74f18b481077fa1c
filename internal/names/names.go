// Package names finds the words of a text that cannot be paraphrased: identifiers, paths,
// addresses, dates, amounts and codes.
package names

import (
	"iter"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"
)

// These are the maximum lengths in bytes of a name, and of a name that is a path.
const longest, longestPath = 120, 200

// A tally counts the characters of a word by class, in fields of 7 bits. A word of at most
// longest bytes does not overflow them.
type tally uint64

const (
	upper tally = 1 << (7 * iota)
	lower
	digit
	slash
	dot
	under // _ @ #
	money // $ € £ ¥ %
	equal // =
	wide  // letters that are not ASCII; in classes, bytes of what is not ASCII
)

// split is the class of what separates words.
const split = tally(1) << 63

// telling are the fields of which at least one is not 0 in each name of ASCII characters.
const telling = (upper + digit + slash + dot + under) * 127

func (t tally) of(class tally) int { return int(t / class & 127) }

// classes holds the class of each byte.
var classes = func() (of [256]tally) {
	for r := range rune(utf8.RuneSelf) {
		if of[r] = classOf(r); splits(r) {
			of[r] = split
		}
	}
	for c := utf8.RuneSelf; c < len(of); c++ {
		of[c] = wide
	}
	return of
}()

// classOf returns the class of a character of a word.
func classOf(r rune) tally {
	switch {
	case r >= 'A' && r <= 'Z':
		return upper
	case r >= 'a' && r <= 'z':
		return lower
	case r >= '0' && r <= '9':
		return digit
	case r == '/':
		return slash
	case r == '.':
		return dot
	case strings.ContainsRune("_@#", r):
		return under
	case strings.ContainsRune("$€£¥%", r):
		return money
	case r == '=':
		return equal
	case r >= utf8.RuneSelf && unicode.IsLetter(r):
		return wide
	}
	return 0
}

// splits reports whether r separates words.
func splits(r rune) bool {
	switch r {
	case '"', '\'', '`', '(', ')', '[', ']', '{', '}', '<', '>', ',', ';', '|', '*', '\\', '\uFFFD', '“', '”', '„', '’', '，', '。', '、', '：', '；', '？', '！', '（', '）', '「', '」':
		return true
	}
	return r <= ' ' || unicode.IsSpace(r)
}

// Of returns the names in a text, in order, with repetitions.
func Of(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := 0; i < len(s); {
			var w string
			if w, i = next(s, i); w == "" || !yield(w) {
				return
			}
		}
	}
}

// next returns the first name in s[i:], and where to go on. i is the beginning of a word or
// between words. Without a name, next returns an empty string.
func next(s string, i int) (name string, after int) {
	for i < len(s) {
		// A word of lower-case letters is no name, so the search is for another character: one
		// that is neither from '`' to 0x7F, among them these letters, nor a space.
		from := i
		for i+8 <= len(s) {
			const each, high = 0x0101010101010101, 0x8080808080808080
			b := s[i : i+8]
			x := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
				uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
			letter, space := x&(each*0xE0)^each*0x60, x^each*' ' // a byte is 0 where it is one
			other := (letter | letter<<1 | letter<<2) & (space&^uint64(high) + each*0x7F | space) & high
			if other != 0 {
				i += bits.TrailingZeros64(other) / 8
				break
			}
			i += 8
		}
		for i < len(s) && classes[s[i]] == lower {
			i++
		}
		if i == len(s) {
			return "", i
		}
		if classes[s[i]] == split {
			i++
			continue
		}
		begin := i
		for begin > from && classes[s[begin-1]] != split {
			begin--
		}
		var t, humps, last tally
		for i = begin; i < len(s); i++ {
			c := classes[s[i]]
			if c == split {
				break
			}
			humps |= last / lower & c
			t += c
			last = c
		}
		end := i
		if t&telling == 0 && t.of(wide) == 0 && end-begin <= longest {
			continue
		}
		if t.of(wide) > 0 || t.of(equal) > 0 || end-begin > longest {
			if name, i = closer(s, begin); name != "" {
				return name, i
			}
			continue
		}
		for end > begin && ends[s[end-1]] {
			end--
			t -= classes[s[end]]
		}
		for begin < end && begins[s[begin]] {
			begin++ // these have no class
		}
		if t&telling != 0 && isName(s[begin:end], t, humps, true) {
			return s[begin:end], i
		}
	}
	return "", i
}

// These are removed from the end and the beginning of a word.
const endMarks, beginMarks = ".:!?…-", "!?…:"

// ends and begins are the bytes of endMarks and beginMarks that are ASCII.
var ends, begins = bytesOf(endMarks), bytesOf(beginMarks)

func bytesOf(marks string) (is [256]bool) {
	for _, r := range marks {
		if r < utf8.RuneSelf {
			is[r] = true
		}
	}
	return is
}

// closer returns the name that the word at s[begin:] is or holds, if any, and where to go on.
func closer(s string, begin int) (name string, end int) {
	r, size := utf8.DecodeRuneInString(s[begin:])
	if splits(r) {
		return "", begin + size
	}
	end = len(s)
	if n := strings.IndexFunc(s[begin:], splits); n >= 0 {
		end = begin + n
	}
	w := strings.TrimLeft(strings.TrimRight(s[begin:end], endMarks), beginMarks)
	if key, value, ok := strings.Cut(w, "="); ok && value != "" && !strings.Contains(value, "=") && !strings.Contains(w, "/") {
		// a flag or an assignment: the value is the name, or the key if the value is not
		// a name
		if w = key; is(value) {
			w = value
		}
	}
	if !is(w) {
		w = ""
	}
	return w, end
}

// is reports whether a word is a name.
func is(w string) bool {
	if len(w) > longest {
		return isPath(w)
	}
	var t, humps, last tally
	ascii := true
	for _, r := range w {
		c := classOf(r)
		humps |= last / lower & c
		t += c
		last = c
		ascii = ascii && r < utf8.RuneSelf
	}
	return isName(w, t, humps, ascii)
}

// isName reports whether a word is a name: it has a digit next to a letter, the sign of an
// amount, or the form of a date, an identifier, a path, an address or a code. t is the tally
// of its characters, humps has upper set if a capital follows a small letter, and ascii says
// that it has no other characters.
func isName(w string, t, humps tally, ascii bool) bool {
	letters := t.of(lower) + t.of(upper) + t.of(wide)
	switch {
	case len(w) < 3 || len(w) > longest:
		return false
	case !ascii && letters > 24: // a sentence without spaces
		return false
	case t.of(digit) > 0 && letters > 0, humps&upper != 0:
		return true
	case t.of(digit) >= 3 || t.of(digit) > 0 && (t.of(money) > 0 || strings.ContainsAny(w[1:len(w)-1], "_/.:@#~+-&?")):
		return true
	case letters == 0:
		return false
	case t.of(under) > 0:
		return true
	case t.of(slash) > 0:
		return t.of(slash) > 1 || t.of(dot) > 0 || w[0] == '/'
	case t.of(dot) > 0 && !strings.Contains(w, ".."):
		return strings.IndexByte(w, '.') < len(w)-1 && len(w) > 4
	}
	return t.of(upper) >= 3 && letters == t.of(upper) // a code, such as ECONNREFUSED
}

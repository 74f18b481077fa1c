// Package text cuts and repairs strings without breaking a character.
package text

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Valid returns s with each run of invalid UTF-8 replaced by U+FFFD.
func Valid(s string) string {
	if IsASCII(s) || utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// IsASCII reports whether s holds ASCII characters alone.
func IsASCII(s string) bool {
	for len(s) >= 32 {
		if (Word(s)|Word(s[8:])|Word(s[16:])|Word(s[24:]))&0x8080808080808080 != 0 {
			return false
		}
		s = s[32:]
	}
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Word returns the first 8 bytes of s as a number, the first one lowest.
func Word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// Floor returns the largest index not above i at which s can be cut without
// breaking a character. If i is above len(s), it returns len(s).
func Floor(s string, i int) int {
	i = min(i, len(s))
	for i > 0 && i < len(s) && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}

// Ceil returns the smallest index not below i at which s can be cut without
// breaking a character.
func Ceil(s string, i int) int {
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return i
}

// Prefix returns the length in bytes of a prefix of s for which count returns
// at most limit. The prefix is close to the longest one, ends between
// characters, and has at least one character unless s is empty, even if that
// exceeds limit. total is count(s).
func Prefix(s string, limit, total int, count func(string) int) int {
	n, limit := len(s), max(limit, 0)
	if total > limit {
		n = int(int64(n) * int64(limit) / int64(total))
	}
	// Tokens are not spread evenly over s, so the first guess may be too long. With
	// an eighth less each time, few counts are needed, and little more is cut than
	// need be.
	for n > 0 && count(s[:n]) > limit {
		n = n * 7 / 8
	}
	if n = Floor(s, n); n == 0 && s != "" {
		_, n = utf8.DecodeRuneInString(s)
	}
	return n
}

// BorderBefore returns where to cut s, so that the part before has at most n bytes. That is
// after the last line break in its last eighth, or else after the last space there, or else
// between two characters.
func BorderBefore(s string, n int) int {
	n = Floor(s, max(n, 0))
	near := s[Ceil(s, n-n/8):n]
	i := cmp.Or(strings.LastIndexByte(near, '\n')+1, strings.LastIndexByte(near, ' ')+1, len(near))
	return n - len(near) + i
}

// BorderAfter returns where to cut s, at n or later. That is after
// the first line break in its first eighth, or else after the first space there, or else
// between two characters.
func BorderAfter(s string, n int) int {
	if n <= 0 {
		return 0
	}
	n = Ceil(s, min(n, len(s)))
	near := s[n:Floor(s, n+(len(s)-n)/8)]
	return n + cmp.Or(strings.IndexByte(near, '\n')+1, strings.IndexByte(near, ' ')+1)
}

// Shorten cuts s to at most width bytes, and adds "..." if something was cut.
func Shorten(s string, width int) string {
	if len(s) <= width {
		return s
	}
	return s[:Floor(s, width)] + "..."
}

// ShortenRunes is Shorten for a number of characters.
func ShortenRunes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i] + "..."
		}
		n--
	}
	return s
}

// OneLine returns s on one line, shortened to about 4 kB.
func OneLine(s string) string {
	s = strings.TrimSpace(Shorten(s, 4<<10))
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == ' ' && s[i+1] == ' ' {
			return strings.Join(strings.Fields(s), " ")
		}
	}
	return s
}

// IsBase64 reports whether s is standard base64 with padding. It does not decode s.
func IsBase64(s string) bool {
	body := strings.TrimRight(s, "=")
	if len(s)%4 != 0 || len(s)-len(body) > 2 {
		return false
	}
	for i := range len(body) {
		c := body[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '+' || c == '/') {
			return false
		}
	}
	return true
}

// Abbreviate returns s, or its first most bytes and how many it has.
func Abbreviate(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%s… (%s bytes)", s[:Floor(s, most)], Grouped(len(s)))
}

// AbbreviateList joins texts, or the first most of them and how many more there are.
func AbbreviateList(texts []string, between string, most int) string {
	if n := len(texts) - most; n > 0 {
		texts = append(slices.Clip(texts[:most]), fmt.Sprintf("… (%s more)", Grouped(n)))
	}
	return strings.Join(texts, between)
}

// Join returns texts, joined by sep.
func Join[S ~string](texts iter.Seq[S], sep string) string {
	var list []string
	for t := range texts {
		list = append(list, string(t))
	}
	return strings.Join(list, sep)
}

// Grouped returns a number with a comma between groups of three digits.
func Grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Counted returns a number and what it counts, in singular or plural. It is not inlined,
// because it has many callers and each copy makes programs larger.
//
//go:noinline
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Grouped(n) + " " + many
}

// Sentence returns as much of a text as has at most so many tokens. It ends with a line or
// a sentence, if one ends in its second half, or else with a word.
func Sentence(s string, tokens int, count func(string) int) string {
	weight := count(s)
	if weight <= tokens {
		return s
	}
	n := Prefix(s, tokens, weight, count)
	for count(s[:n]) > tokens && n > 0 { // the tokenizer may count a part as more
		n = Floor(s, n*7/8)
	}
	head := s[:n]
	end := 0
	for _, mark := range []string{"\n", ". ", "! ", "? ", "。", "！", "？"} {
		if i := strings.LastIndex(head, mark); i >= 0 {
			end = max(end, i+len(strings.TrimRight(mark, " \n")))
		}
	}
	if end <= n/2 {
		end = BorderBefore(s, n)
	}
	return strings.TrimSpace(s[:end])
}

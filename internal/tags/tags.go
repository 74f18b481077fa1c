// Package tags makes the tags between which a model sees summaries, notes and messages with an
// author. No text can forge these tags, because each holds the key of its conversation, and the
// key is masked in every text.
package tags

import (
	"crypto/rand"
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// mask replaces a key in a text, and follows the beginning of a key at the end of a
// text. It has no letters, so the letters around it cannot form another key.
const mask = "***"

// keyBegin begins a key, and keyLen is the length of a key: keyBegin and letters from a
// to z. Few texts end with keyBegin, so mask is rarely appended.
const (
	keyBegin = '@'
	keyLen   = 8
)

// Typical is counted in place of the key, so that histories with the same
// content have the same number of tokens.
const Typical = "qmzvkrtx"

// NewKey returns a random key.
func NewKey() string {
	var random [16]byte
	rand.Read(random[:])
	return KeyFrom(random[:])
}

// KeyFrom returns a key that is made from secret. Its first letter is rare in texts,
// so that a keyFinder has little to compare.
func KeyFrom(secret []byte) string {
	hash := sha256.Sum256(secret)
	key := hash[:keyLen]
	for i := range key {
		key[i] = 'a' + key[i]%26
	}
	key[0], key[1] = keyBegin, "jqxz"[hash[keyLen]%4]
	return string(key)
}

// IsKey reports whether s is a key.
func IsKey(s string) bool {
	return len(s) == keyLen && s[0] == keyBegin && strings.Trim(s[1:], "abcdefghijklmnopqrstuvwxyz") == ""
}

// attribute returns the attribute of a tag that holds the key.
func attribute(key string) string { return `key="` + key + `"` }

// Author returns the tags around the text of an author. name comes from Name.
func Author(key, name string) (open, end string) {
	return "<from " + attribute(key) + " name=" + name + ">", "</from " + attribute(key) + ">"
}

// Name returns the name of an author in quotes, with the key masked. It
// masks the key in the name, and again in the quoted name, because quoting may
// form a key.
func Name(key, author string) string {
	return Mask(key, strconv.Quote(Mask(key, author)))
}

// Mask returns a text with the letters of each key replaced by mask and, if there
// was a key, with tags escaped. It is for texts embedded in others, such as a name.
func Mask(key, text string) string {
	find := newKeyFinder(key, text)
	var b strings.Builder
	done := 0
	for from, to, found := find.next(0); found; from, to, found = find.next(done) {
		b.WriteString(text[done:from] + mask)
		done = to
	}
	if done == 0 {
		return text
	}
	return Escape(b.String() + text[done:])
}

// MaskPart returns a text as the model sees it. Like Mask, it masks keys. It also
// appends mask to a text that ends with the beginning of a key as it appears in a tag,
// so that no key arises when package wire or the provider joins texts.
func MaskPart(key, text string) string {
	text = Mask(key, text)
	if opensKey(key, text) {
		text += mask
	}
	return text
}

// opensKey reports whether a text ends with keyBegin and zero or more letters of the key,
// ignoring hidden characters between them.
func opensKey(key, text string) bool {
	for end := len(text); end > 0; {
		r, size := utf8.DecodeLastRuneInString(text[:end])
		end -= size
		switch c := letterOf(r); {
		case r == keyBegin || r == '\uff20' || r == '\ufe6b': // the other two look like keyBegin
			_, at := (&keyFinder{letters: key[1:], text: text}).match(end + size)
			return at == len(text)
		case !isHidden(r) && strings.IndexByte(key, c) < 0:
			return false
		}
	}
	return false
}

// A keyFinder finds the letters of a key in a text, in order, with only hidden characters
// between them. Letters that look like those of the key also match.
type keyFinder struct {
	letters, text string
	lower, upper  int  // index of the next first letter in text, in each case; len(text) if there is none
	ascii         bool // text is all ASCII
}

func newKeyFinder(key, s string) keyFinder {
	return keyFinder{letters: key[1:], text: s, lower: -1, upper: -1, ascii: text.IsASCII(s)}
}

// next returns the bounds [start, end) of the letters of the next key at or after from.
// from must not decrease between calls.
func (f *keyFinder) next(from int) (start, end int, found bool) {
	for at := f.first(from); at < len(f.text); at = f.first(at + 1) {
		if f.ascii && at+1 < len(f.text) && f.text[at+1] > ' ' && f.text[at+1] < 0x7f && f.text[at+1]|0x20 != f.letters[1] {
			continue // the usual case
		}
		if n, end := f.match(at); n == len(f.letters) {
			return at, end, true
		}
	}
	return 0, 0, false
}

// first returns the index of the next first letter of a key at or after from, or the
// length of the text.
func (f *keyFinder) first(from int) int {
	c := f.letters[0]
	if f.ascii {
		f.lower = nextByte(f.text, c, f.lower, from)
		f.upper = nextByte(f.text, c&^0x20, f.upper, from)
		return min(f.lower, f.upper)
	}
	for i, r := range f.text[min(from, len(f.text)):] {
		if letterOf(r) == c {
			return from + i
		}
	}
	return len(f.text)
}

// nextByte returns the index of the first c in text at or after from, or len(text) if
// there is none. known is the result for an earlier from, or -1.
func nextByte(text string, c byte, known, from int) int {
	if known >= from {
		return known
	}
	if i := strings.IndexByte(text[from:], c); i >= 0 {
		return from + i
	}
	return len(text)
}

// match returns the number of letters of the key that text[at:] begins with, and the
// index of the next character that is not hidden.
func (f *keyFinder) match(at int) (n, end int) {
	for end = at; end < len(f.text) && n < len(f.letters); {
		r, size := utf8.DecodeRuneInString(f.text[end:])
		switch {
		case letterOf(r) == f.letters[n]:
			n++
		case !isHidden(r):
			return n, end
		}
		end += size
	}
	return n, end
}

// isHidden reports whether r is white space, a control character, or another invisible
// character, such as one of zero width.
func isHidden(r rune) bool {
	if r < utf8.RuneSelf {
		return r <= ' ' || r == 0x7f
	}
	switch r {
	case '\u2800', '\ufffc', '\U0001d159': // the blank Braille pattern, the object replacement character, the null notehead
		return true
	}
	return unicode.IsSpace(r) || !unicode.IsGraphic(r) ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// letterOf returns the lower-case ASCII letter that r is or looks like, or another byte
// if there is none.
func letterOf(r rune) byte {
	switch {
	case r < utf8.RuneSelf:
		return byte(r) | 0x20
	case r < rune(len(alike)):
		return alike[r]
	case 0xff21 <= r && r <= 0xff5a: // full width
		return byte(r-0xff21+'A') | 0x20
	case 0x1d400 <= r && r <= 0x1d6a3: // mathematical
		return byte('a' + (r-0x1d400)%26)
	case 0x24b6 <= r && r <= 0x24e9: // circled
		return byte('a' + (r-0x24b6)%26)
	}
	return 0
}

// alike has the ASCII letter that each Cyrillic, Greek and Latin letter looks like, or 0.
var alike = func() (table ['ⅼ' + 1]byte) {
	for _, group := range [...]string{ // a letter, and those that look like it
		"aаАαΑ",
		"bВΒ",
		"cсСϲϹ",
		"dԁԀ",
		"eеЕεΕ",
		"hһҺНΗ",
		"iіІιΙıİ",
		"jјЈϳͿȷ",
		"kкКκΚ\u212a", // the last is the Kelvin sign
		"lӏӀⅼ",
		"mмМΜ",
		"nпΝ",
		"oоОοΟ",
		"pрРρΡ",
		"qԛԚ",
		"sѕЅſ",
		"tтТτΤ",
		"uυս",
		"vѵѴν",
		"wԝԜω",
		"xхХχΧ",
		"yуУүҮΥγ",
		"zΖ",
	} {
		for _, r := range group {
			table[r] = group[0]
		}
	}
	return table
}()

// Note returns the tags around a note that is sent as a user message.
func Note(key string) (open, end string) {
	return "<system " + attribute(key) + ">\n", "\n</system " + attribute(key) + ">"
}

// Summary returns the tags around a summary.
func Summary(key string) (open, end string) {
	return "<summary " + attribute(key) + ">\nWhat went before in this conversation, in short:\n",
		"\n</summary " + attribute(key) + ">"
}

// names are the names of all tags in views and in prompts for summarizers.
var names = [...]string{
	"block", "call", "from", "media", "message", "pinned", "previous-summary", "reasoning", "result", "summary", "system", "transcript",
}

// Escape returns s with "&lt;" for each "<" that begins a tag with one of our names,
// so that text which imitates a tag is not read as one.
func Escape(s string) string {
	var b strings.Builder
	done := 0
	for i := range len(s) {
		if s[i] == '<' && beginsTag(s[i+1:]) {
			b.WriteString(s[done:i] + "&lt;")
			done = i + 1
		}
	}
	return b.String() + s[done:]
}

// beginsTag reports whether s, the text after a "<", continues as one of our tags.
func beginsTag(s string) bool {
	s = strings.TrimLeft(s, " \t\r\n/")
	return slices.ContainsFunc(names[:], func(name string) bool {
		return len(s) >= len(name) && strings.EqualFold(s[:len(name)], name)
	})
}

// Quote returns s in quotes, for an attribute of a tag.
func Quote(s string) string { return `"` + strings.ReplaceAll(Escape(s), `"`, "&quot;") + `"` }

// Block returns a text between two tags that no text in it can forge, once it is masked or
// escaped.
func Block(key, name, text string) string {
	return "<" + name + " " + attribute(key) + ">\n" + text + "</" + name + " " + attribute(key) + ">"
}

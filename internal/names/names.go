// Package names finds the words of a text that cannot be paraphrased: identifiers, paths,
// addresses, dates, amounts and codes.
package names

import (
	"cmp"
	"iter"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Longest is the maximum length of a name in bytes.
const Longest = 120

// Words returns the words of a text, without the punctuation around them.
func Words(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		begin := -1
		for i := 0; i < len(s); {
			isSplit, size := splitBytes[s[i]], 1
			if s[i] >= utf8.RuneSelf {
				var r rune
				r, size = utf8.DecodeRuneInString(s[i:])
				isSplit = splits(r)
			}
			switch {
			case !isSplit && begin < 0:
				begin = i
			case isSplit && begin >= 0:
				if w := trim(s[begin:i]); w != "" && !yield(w) {
					return
				}
				begin = -1
			}
			i += size
		}
		if begin >= 0 {
			if w := trim(s[begin:]); w != "" {
				yield(w)
			}
		}
	}
}

// splits reports whether r separates words.
func splits(r rune) bool {
	switch r {
	case '"', '\'', '`', '(', ')', '[', ']', '{', '}', '<', '>', ',', ';', '|', '*', '\\', '\uFFFD', '“', '”', '„', '’', '，', '。', '、', '：', '；', '？', '！', '（', '）', '「', '」':
		return true
	}
	return r <= ' ' || unicode.IsSpace(r)
}

// splitBytes is splits for ASCII.
var splitBytes = func() (is [256]bool) {
	for r := range rune(utf8.RuneSelf) {
		is[r] = splits(r)
	}
	return is
}()

// trim removes characters at the ends of a word that are not part of it.
func trim(w string) string {
	if !isInner(w[len(w)-1]) {
		w = strings.TrimRight(w, ".:!?…-")
	}
	if w != "" && !isInner(w[0]) {
		w = strings.TrimLeft(w, "!?…:")
	}
	if key, value, ok := strings.Cut(w, "="); ok && value != "" && !strings.Contains(value, "=") && !strings.Contains(w, "/") {
		// a flag or an assignment: the value is the name, or the key if the value is not
		// a name
		if Is(value) {
			return value
		}
		return key
	}
	return w
}

// isInner reports whether a byte is a letter or a digit of ASCII, which trim never removes.
func isInner(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// Of returns the names in a text, in order, with repetitions.
func Of(s string) iter.Seq[string] {
	return func(yield func(string) bool) { yieldNames(s, yield) }
}

// yieldNames is a function of its own because the compiler would copy its loop to each
// caller of Of.
func yieldNames(s string, yield func(string) bool) {
	for w := range Words(s) {
		if Is(w) && !yield(w) {
			return
		}
	}
}

// Is reports whether a word is a name: it has a digit next to a letter, the sign of an
// amount, or the form of a date, an identifier, a path, an address or a code.
func Is(w string) bool {
	if len(w) < 3 || len(w) > Longest {
		return false
	}
	var digits, lower, upper, letters, signs, humps int
	var last rune
	for i, r := range w {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case r >= 'a' && r <= 'z':
			lower++
			letters++
		case r >= 'A' && r <= 'Z':
			upper++
			letters++
			if last >= 'a' && last <= 'z' {
				humps++
			}
		case unicode.IsLetter(r):
			letters++
		case i > 0 && i < len(w)-1 && strings.ContainsRune("_/.:@#$€£¥%~+-&?", r):
			signs++
		}
		last = r
	}
	isWide := utf8.RuneCountInString(w) < len(w)
	switch {
	case isWide && letters > 24: // a sentence without spaces
		return false
	case digits > 0 && letters > 0, humps > 0:
		return true
	case digits >= 3 || digits > 0 && (signs > 0 || strings.ContainsAny(w, "$€£¥%")):
		return true
	case letters == 0:
		return false
	case strings.ContainsAny(w, "_@#"), strings.Contains(w, "://"):
		return true
	case strings.Contains(w, "/"):
		return strings.Count(w, "/") > 1 || strings.Contains(w, ".") || strings.HasPrefix(w, "/")
	case strings.Contains(w, ".") && !strings.Contains(w, ".."):
		_, after, _ := strings.Cut(w, ".")
		return after != "" && len(w) > 4
	case upper >= 3 && lower == 0: // a code, such as ECONNREFUSED
		return true
	}
	return false
}

// A Ledger counts the names that leave a conversation, and orders them.
type Ledger struct {
	seen  map[string]*count
	order []*count
}

type count struct {
	name   string
	times  int
	weight int // the largest weight of a text with the name
	last   int // the place of the last text with the name
}

// Add records the names of a text. Names from texts with more weight are chosen first.
func (l *Ledger) Add(text string, weight, place int) {
	if l.seen == nil {
		l.seen = make(map[string]*count)
	}
	for w := range Of(text) {
		c := l.seen[w]
		if c == nil {
			if len(l.order) >= mostSeen {
				continue
			}
			c = &count{name: strings.Clone(w)}
			l.seen[c.name] = c
			l.order = append(l.order, c)
		}
		c.times++
		c.weight = max(c.weight, weight)
		c.last = place
	}
}

// mostSeen bounds the memory of a Ledger.
const mostSeen = 200_000

// Remove removes the names of a text.
func (l *Ledger) Remove(text string) {
	for w := range Of(text) {
		delete(l.seen, w)
	}
}

// Choose returns the remaining names, the most useful first: by the weight of their
// texts, then by rarity, then the newest first.
func (l *Ledger) Choose() []string {
	var all []*count
	for _, c := range l.order {
		if l.seen[c.name] == c {
			all = append(all, c)
		}
	}
	sort.SliceStable(all, func(i, j int) bool {
		a, b := all[i], all[j]
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(rarity(a.times), rarity(b.times)), cmp.Compare(b.last, a.last)) < 0
	})
	out := make([]string, len(all))
	for i, c := range all {
		out[i] = c.name
	}
	return out
}

// rarity returns a class of names that occurred about equally often. Names that occurred
// two to five times are more useful than names that occurred once, and those more than
// names that occur everywhere.
func rarity(times int) int {
	switch {
	case times == 1:
		return 1
	case times <= 5:
		return 0
	case times <= 20:
		return 2
	}
	return 3
}

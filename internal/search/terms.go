package search

import (
	"encoding/json"
	"iter"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// These bound the work for one text.
const (
	mostIndexed = 64 << 10 // bytes of a text that are indexed
	longestTerm = 100      // bytes; a longer word is found by its pieces alone
	passageSize = 4 << 10  // bytes of a passage, at least if more text follows
)

// TextOf returns the text of a message: what was said, the names and arguments of calls, and
// results. A single text is not copied.
func TextOf(m *convo.Message) string {
	var all []string
	for _, p := range m.Parts {
		switch p := p.(type) {
		case convo.Text:
			all = append(all, string(p))
		case convo.ToolCall:
			all = append(all, p.Name+" "+unescaped(p.Arguments))
		case convo.ToolResult:
			all = append(all, p.Text())
		}
	}
	said := strings.Join(all, "\n")
	if m.Author != "" {
		said = m.Author + ": " + said
	}
	return said
}

// passagesOf returns the passages of a text. They end at the end of a line or, where lines
// are long, of a word.
func passagesOf(s string) (parts []string) {
	s = s[:text.Floor(s, mostIndexed)]
	for len(s) > passageSize+passageSize/2 {
		end := text.Floor(s, passageSize)
		if i := strings.LastIndexByte(s[end/2:end], '\n'); i >= 0 {
			end = end/2 + i + 1
		} else if i := strings.LastIndexByte(s[end/2:end], ' '); i >= 0 {
			end = end/2 + i + 1
		}
		parts, s = append(parts, s[:end]), s[end:]
	}
	return append(parts, s)
}

// unescaped returns a JSON text with the escapes in its strings decoded, so that words
// begin where they do in the strings.
func unescaped(s string) string {
	if !strings.Contains(s, `\`) || !json.Valid([]byte(s)) {
		return s
	}
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			return b.String() + s
		}
		b.WriteString(s[:i])
		end := i + 2
		if s[i+1] == 'u' {
			end = i + 6
			if end+6 <= len(s) && s[end] == '\\' && s[end+1] == 'u' {
				end += 6 // perhaps the second half of a character
			}
		}
		var plain string
		_ = json.Unmarshal([]byte(`"`+s[i:end]+`"`), &plain) // it is part of a valid JSON text
		b.WriteString(plain)
		s = s[end:]
	}
}

// termsOf yields what a text is found by, in lower case: its words, the pieces of words
// that are identifiers, paths or addresses, and pairs of characters of writing without
// spaces.
func termsOf(s string) iter.Seq[string] {
	if len(s) > mostIndexed {
		s = s[:text.Floor(s, mostIndexed)]
	}
	return func(yield func(string) bool) {
		for w := range words(s) {
			if isPlain(w) { // most are
				if !yield(w) {
					return
				}
				continue
			}
			if w = strings.Trim(w, "._-/:@#+"); w != "" && !wordTerms(w, yield) {
				return
			}
		}
	}
}

// words yields the longest runs of a text for which isWordRune holds.
func words(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		begin := -1
		for i := 0; i < len(s); {
			isWord, size := wordBytes[s[i]], 1
			if s[i] >= utf8.RuneSelf {
				var r rune
				r, size = utf8.DecodeRuneInString(s[i:])
				isWord = isWordRune(r)
			}
			switch {
			case isWord && begin < 0:
				begin = i
			case !isWord && begin >= 0:
				if !yield(s[begin:i]) {
					return
				}
				begin = -1
			}
			i += size
		}
		if begin >= 0 {
			yield(s[begin:])
		}
	}
}

// wordBytes is isWordRune for ASCII.
var wordBytes = func() (is [256]bool) {
	for r := range rune(utf8.RuneSelf) {
		is[r] = isWordRune(r)
	}
	return is
}()

// isPlain reports whether a word is its own only term: lower case letters and digits.
func isPlain(w string) bool {
	for i := range len(w) {
		if c := w[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return len(w) <= longestTerm
}

// isWordRune reports whether r may be within a word, an identifier, a path or an address.
func isWordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._-/:@#+", r)
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

// wordTerms yields the terms of one word. It reports whether to go on.
func wordTerms(w string, yield func(string) bool) bool {
	lower := strings.ToLower(w)
	pieces := 0
	isWhole := true // the word is one piece
	ok := true
	eachPiece(w, func(p string) {
		if p = strings.ToLower(p); ok && p != "" {
			isWhole = isWhole && p == lower
			pieces++
			ok = pieceTerms(p, yield)
		}
	})
	if ok && !isWhole && pieces > 0 && len(lower) <= longestTerm {
		ok = yield(lower)
	}
	return ok
}

// pieceTerms yields a piece of a word, or pairs of its characters.
func pieceTerms(p string, yield func(string) bool) bool {
	first, _ := utf8.DecodeRuneInString(p)
	if !isDense(first) {
		return len(p) > longestTerm || yield(p)
	}
	runes := []rune(p)
	if len(runes) == 1 {
		return yield(p)
	}
	for i := range len(runes) - 1 {
		if !yield(string(runes[i : i+2])) {
			return false
		}
	}
	return true
}

// isDense reports whether r is of a writing without spaces.
func isDense(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// eachPiece calls f with the pieces of a word: runs of letters and digits without a sign
// between them, cut where a new word of camel case begins and where the kind of writing
// changes.
func eachPiece(w string, f func(string)) {
	begin, lastAt := 0, 0
	var last, before rune
	for i, r := range w {
		cut := false
		switch {
		case last == 0:
		case !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r):
			f(w[begin:i])
			begin, last, before = i+utf8.RuneLen(r), 0, 0
			continue
		case isDense(r) != isDense(last):
			cut = true
		case unicode.IsUpper(r) && unicode.IsLower(last):
			cut = true
		case unicode.IsLower(r) && unicode.IsUpper(last) && unicode.IsUpper(before): // HTTPServer
			f(w[begin:lastAt])
			begin = lastAt
		}
		if cut {
			f(w[begin:i])
			begin = i
		}
		before, last, lastAt = last, r, i
	}
	f(w[begin:])
}

// longestExcerpt is how many bytes an excerpt has at most.
const longestExcerpt = 400

// Excerpt returns the part of a text that holds the rarest terms of a query, in one line of at
// most 400 bytes.
func (ix *Index) Excerpt(s string, q Query) string {
	if len(s) <= longestExcerpt {
		return strings.Join(strings.Fields(s), " ")
	}
	// The best window begins a little before a word that was asked for.
	type found struct {
		at     int
		weight float64
	}
	var words []found
	at := 0
	for w := range strings.FieldsSeq(s[:text.Floor(s, mostIndexed)]) {
		at += strings.Index(s[at:], w)
		weight := 0.0
		for term := range termsOf(w) {
			if n := len(ix.list(term)); q.asked[term] && n > 0 {
				weight = math.Max(weight, math.Log1p(float64(len(ix.docs))/float64(n)))
			}
		}
		if weight > 0 {
			words = append(words, found{at, weight})
		}
		at += len(w)
	}
	const room = longestExcerpt - 2*len("...")
	begin, most := 0, 0.0
	sum, k := 0.0, 0
	for i, w := range words { // the words from k to i are in one window
		sum += w.weight
		for words[i].at-words[k].at > room*3/4 {
			sum -= words[k].weight
			k++
		}
		if sum > most {
			most, begin = sum, words[k].at
		}
	}
	begin = text.Floor(s, max(begin-room/8, 0))
	end := text.Floor(s, begin+room)
	if begin > 0 { // not inside a word
		if i := strings.IndexAny(s[begin:min(begin+40, end)], " \n\t"); i >= 0 {
			begin += i + 1
		}
	}
	line := strings.Join(strings.Fields(s[begin:end]), " ")
	if begin > 0 {
		line = "..." + line
	}
	if end < len(s) {
		line += "..."
	}
	return line
}

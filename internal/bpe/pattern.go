package bpe

import (
	"strings"
)

// next returns where the piece that begins at s[i] ends, by the encoding's
// pattern. That of cl100k_base is
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)
//	|[^\r\n\p{L}\p{N}]?\p{L}+
//	|\p{N}{1,3}
//	| ?[^\s\p{L}\p{N}]+[\r\n]*
//	|\s*[\r\n]+
//	|\s+(?!\S)
//	|\s+
//
// and o200k_base has in place of the first two lines
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//
// and [\r\n/]* in the fourth.
func (e *Encoding) next(s string, i int) int {
	c, size := classAt(s, i)
	if e.caseWords {
		if end := caseWord(s, i, c, size); end > i {
			return end + contraction(s, end)
		}
	} else {
		if n := contraction(s, i); n > 0 {
			return i + n
		}
		if end := word(s, i, c, size); end > i {
			return end
		}
	}
	switch {
	case c&number != 0:
		return numberEnd(s, i, size)
	case c&space == 0:
		return e.punctEnd(s, i+size)
	case s[i] == ' ':
		if c, size := classAt(s, i+1); size > 0 && c&(space|letter|number) == 0 {
			return e.punctEnd(s, i+1+size)
		}
	}
	return spaceEnd(s, i)
}

// contraction returns the length of (?i:'s|'t|'re|'ve|'m|'ll|'d) at s[i], or 0.
// The long s, U+017F, is an s in another case.
func contraction(s string, i int) int {
	if i+1 >= len(s) || s[i] != '\'' {
		return 0
	}
	switch s[i+1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if i+2 < len(s) && s[i+2]|0x20 == 'e' {
			return 3
		}
	case 'l':
		if i+2 < len(s) && s[i+2]|0x20 == 'l' {
			return 3
		}
	case 0xC5 | 0x20:
		if strings.HasPrefix(s[i+1:], "ſ") {
			return 3
		}
	}
	return 0
}

// word returns the end of [^\r\n\p{L}\p{N}]?\p{L}+ at s[i], or i.
func word(s string, i int, c class, size int) int {
	end := i + size
	if c&letter == 0 {
		if c&(newline|number) != 0 {
			return i
		}
		c, size := classAt(s, end)
		if c&letter == 0 {
			return i
		}
		end += size
	}
	for {
		c, size := classAt(s, end)
		if c&letter == 0 {
			return end
		}
		end += size
	}
}

// caseWord returns the end of o200k's first two alternatives, without the
// contraction behind them, at s[i], or i.
func caseWord(s string, i int, c class, size int) int {
	if c&letter != 0 {
		end, _ := caseLetters(s, i)
		return end
	}
	if c&(newline|number) != 0 {
		return i
	}
	// The first character may stand before the word. When no word in the sense
	// of the first alternative follows it, a mark may be a word by itself
	// before the second alternative gets its turn.
	end, lower := caseLetters(s, i+size)
	switch {
	case lower:
		return end
	case c&back != 0:
		end, _ = caseLetters(s, i)
		return end
	case end > i+size:
		return end
	}
	return i
}

// caseLetters returns the end of a word at s[i] with nothing before it: of the
// first alternative's letters if they match, which lower says, or else of the
// second's, or i.
func caseLetters(s string, i int) (end int, lower bool) {
	end = i
	inBoth := -1 // end of the last character in front that is also in back
	for {
		c, size := classAt(s, end)
		if c&front == 0 {
			if c&back == 0 {
				break
			}
			for end += size; ; end += size {
				if c, size = classAt(s, end); c&back == 0 {
					return end, true
				}
			}
		}
		end += size
		if c&back != 0 {
			inBoth = end
		}
	}
	if inBoth >= 0 { // the front part gives back what the back part needs
		return inBoth, true
	}
	return end, false
}

// numberEnd returns the end of \p{N}{1,3}, whose first character has a size.
func numberEnd(s string, i, size int) int {
	end := i + size
	for range 2 {
		c, size := classAt(s, end)
		if c&number == 0 {
			break
		}
		end += size
	}
	return end
}

// punctEnd returns the end of [^\s\p{L}\p{N}]*[\r\n]* at s[end], [\r\n/]* for
// o200k.
func (e *Encoding) punctEnd(s string, end int) int {
	for {
		c, size := classAt(s, end)
		if size == 0 || c&(space|letter|number) != 0 {
			break
		}
		end += size
	}
	for end < len(s) && (s[end] == '\r' || s[end] == '\n' || s[end] == '/' && e.caseWords) {
		end++
	}
	return end
}

// spaceEnd returns the end of the first of \s*[\r\n]+, \s+(?!\S) and \s+ that
// matches at s[i], where a space stands.
func spaceEnd(s string, i int) int {
	end, last, afterNewline := i, i, 0
	for {
		c, size := classAt(s, end)
		if c&space == 0 {
			break
		}
		last = end
		end += size
		if c&newline != 0 {
			afterNewline = end
		}
	}
	switch {
	case afterNewline > 0:
		return afterNewline
	case end < len(s) && last > i:
		return last // all but the one before what follows
	}
	return end
}

package bpe

import (
	"strings"
)

// next returns the end of the piece that begins at s[i], according to the
// encoding's pattern. The pattern of cl100k_base is
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)
//	|[^\r\n\p{L}\p{N}]?\p{L}+
//	|\p{N}{1,3}
//	| ?[^\s\p{L}\p{N}]+[\r\n]*
//	|\s*[\r\n]+
//	|\s+(?!\S)
//	|\s+
//
// The pattern of o200k_base has, in place of the first two lines,
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//
// and [\r\n/]* in the fourth line.
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

// contraction returns the length of (?i:'s|'t|'re|'ve|'m|'ll|'d) at s[i], or 0
// if it does not match. Case folding makes the long s, U+017F, match s.
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

// word returns the end of [^\r\n\p{L}\p{N}]?\p{L}+ at s[i], or i if it does not
// match.
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

// caseWord returns the end of the first of o200k's first two alternatives that
// matches at s[i], without the contraction after it, or i if neither does.
func caseWord(s string, i int, c class, size int) int {
	if c&letter != 0 {
		end, _ := caseLetters(s, i)
		return end
	}
	if c&(newline|number) != 0 {
		return i
	}
	// The first character may be the one before the word. If the letters after
	// it do not match the first alternative, and it is a combining mark, that
	// mark alone matches the first alternative, which is tried before the
	// second.
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

// caseLetters returns the end of the letters of an o200k word that begin at
// s[i]: by the first alternative if it matches, and then lower is true, or else
// by the second. It returns i if neither matches.
func caseLetters(s string, i int) (end int, lower bool) {
	end = i
	inBoth := -1 // the end of the last character that is in both front and back
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
	if inBoth >= 0 { // the regular expression backtracks: the back part needs a character
		return inBoth, true
	}
	return end, false
}

// numberEnd returns the end of \p{N}{1,3} at s[i], which is a number of size
// bytes.
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

// punctEnd returns the end of [^\s\p{L}\p{N}]*[\r\n]* at s[end], with [\r\n/]* at
// its end for o200k.
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
// matches at s[i], which is white space.
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
		return last // the last space belongs to the next piece
	}
	return end
}

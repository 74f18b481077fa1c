package bpe

import (
	"math/bits"
	"unicode/utf8"
)

// Count returns the number of tokens that Append would append for text. It
// takes time linear in the length of text, and allocates nothing once its
// working space is there.
func (e *Encoding) Count(text string) int {
	c := counter{e: e}
	n := c.count(text)
	if c.sc != nil {
		e.release(c.sc)
	}
	return n
}

// A counter holds the state of one call of Count.
type counter struct {
	e  *Encoding
	sc *scratch // nil until first needed
}

// Kinds of bytes.
const (
	kindPunct  = iota // other ASCII; may come before a word
	kindSpace         // ASCII white space except newlines; may come before a word
	kindLetter        // ASCII
	kindDigit         // ASCII
	kindLine          // \r and \n
	kindHigh          // not ASCII
)

// kinds holds the kind of each byte. It is a string, so that it can be a
// constant.
const kinds = "" +
	"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x04\x01\x01\x04\x00\x00" +
	"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
	"\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
	"\x03\x03\x03\x03\x03\x03\x03\x03\x03\x03\x00\x00\x00\x00\x00\x00" +
	"\x00\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02" +
	"\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x00\x00\x00\x00\x00" +
	"\x00\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02" +
	"\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x00\x00\x00\x00\x00" +
	"\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05" +
	"\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05" +
	"\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05" +
	"\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05" +
	"\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05" +
	"\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05" +
	"\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05" +
	"\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05"

// count counts text. It finds the end of an ASCII word of up to 15 bytes, with
// the space or punctuation mark before it, eight bytes at a time; for other
// pieces it calls asciiEnd or next. The zeros that loadTail adds at the end of
// text end a word like a punctuation mark.
func (c *counter) count(text string) int {
	e := c.e
	n := 0
	for i := 0; i < len(text); {
		var w uint64
		if i+8 <= len(text) {
			w = load64(text, i)
		} else {
			w = loadTail(text, i)
		}
		off := 0
		kind := kinds[byte(w)]
		if kind <= kindSpace {
			off = 1
			kind = kinds[byte(w>>8)]
		}
		if kind != kindLetter || byte(w) == '\'' && !e.caseWords {
			end := asciiEnd(text, i, w, e.caseWords)
			if end == 0 {
				end = e.next(text, i)
			}
			if end == i+1 && byte(w) < utf8.RuneSelf {
				n++ // each ASCII byte is a token
			} else {
				n += c.piece(text, i, end)
			}
			i = end
			continue
		}
		var size int
		lower := false
		if letters := letterMask(w); e.caseWords {
			size, lower = caseRun(w, letters, off, false)
		} else {
			size = bits.TrailingZeros64((letters^highs)>>(8*uint(off)))/8 + off
		}
		if size < 8 {
			stop := byte(w >> (8 * uint(size) & 63))
			if stop < utf8.RuneSelf && (stop != '\'' || !e.caseWords) {
				key := w&(1<<(8*uint(size)&63)-1) | uint64(size)<<56
				if e.isShort(key) {
					n++
				} else {
					n += c.missed(text[i:i+size], key, 0)
				}
				i += size
				continue
			}
		} else {
			w2 := loadTail(text, i+8)
			more := 0
			if letters := letterMask(w2); e.caseWords {
				more, _ = caseRun(w2, letters, 0, lower)
			} else {
				more = bits.TrailingZeros64(letters^highs) / 8
			}
			stop := byte(w2 >> (8 * uint(more) & 63))
			if more < 8 && stop < utf8.RuneSelf && (stop != '\'' || !e.caseWords) {
				key := w2&(1<<(8*uint(more)&63)-1) | uint64(8+more)<<56
				if e.isMid(w, key) {
					n++
				} else {
					n += c.missed(text[i:i+8+more], w, key)
				}
				i += 8 + more
				continue
			}
		}
		end := e.next(text, i)
		n += c.piece(text, i, end)
		i = end
	}
	return n
}

const (
	lows  = 0x0101010101010101
	highs = 0x8080808080808080
)

// letterMask returns the highest bit of each byte of w that is an ASCII letter.
func letterMask(w uint64) uint64 {
	low := w&^highs | 0x20*lows
	return (low + (0x80-'a')*lows) &^ (low + (0x80-'z'-1)*lows) &^ w & highs
}

// caseRun returns the end of the o200k word in the eight bytes of w whose
// letters begin at off, or 8 if the word may go on after them. An upper-case
// letter after a lower-case one ends the word. The argument lower reports
// whether the word had a lower-case letter before w, and the result whether it
// has one up to its end.
func caseRun(w, letters uint64, off int, lower bool) (int, bool) {
	lowers := letters & (w << 2)
	end := uint(off)
	if !lower {
		end += uint(bits.TrailingZeros64((letters&^lowers^highs)>>(8*end&63))) / 8
		if end >= 8 {
			return 8, false
		}
	}
	run := uint(bits.TrailingZeros64((lowers^highs)>>(8*end&63))) / 8
	return int(min(end+run, 8)), lower || run > 0
}

// asciiEnd returns the end of the piece that begins at s[i], an ASCII byte, and
// is not a word. It returns 0 if ASCII is not enough to find the end, which is
// then left to next. w holds the bytes from i on. slash reports whether slashes
// belong to the newlines after punctuation, as in o200k.
func asciiEnd(s string, i int, w uint64, slash bool) int {
	end := i + 1
	switch kinds[byte(w)] {
	case kindDigit:
		for end < i+3 && end < len(s) && kinds[s[end]] == kindDigit {
			end++
		}
		if end < i+3 && end < len(s) && s[end] >= utf8.RuneSelf {
			return 0
		}
		return end
	case kindPunct:
		if byte(w) == '\'' || byte(w>>8) >= utf8.RuneSelf {
			return 0
		}
		return punctRun(s, end, slash)
	case kindSpace:
		if byte(w) == ' ' && kinds[byte(w>>8)] == kindPunct && end < len(s) {
			return punctRun(s, end, slash)
		}
		return spaceRun(s, i)
	case kindLine:
		return spaceRun(s, i)
	}
	return 0
}

// punctRun returns the result of punctEnd if all bytes that it reads are ASCII,
// and 0 otherwise.
func punctRun(s string, end int, slash bool) int {
	for end < len(s) && kinds[s[end]] == kindPunct {
		end++
	}
	if end < len(s) && s[end] >= utf8.RuneSelf {
		return 0
	}
	for end < len(s) && (kinds[s[end]] == kindLine || s[end] == '/' && slash) {
		end++
	}
	return end
}

// spaceRun returns the result of spaceEnd if all bytes that it reads are ASCII,
// and 0 otherwise.
func spaceRun(s string, i int) int {
	end, afterLine := i, 0
	for end < len(s) {
		if kind := kinds[s[end]]; kind == kindLine {
			afterLine = end + 1
		} else if kind != kindSpace {
			if kind == kindHigh {
				return 0
			}
			break
		}
		end++
	}
	switch {
	case afterLine > 0:
		return afterLine
	case end < len(s) && end > i+1:
		return end - 1
	}
	return end
}

// piece returns the number of tokens of the piece text[i:end].
func (c *counter) piece(text string, i, end int) int {
	size := end - i
	switch {
	case size <= 7:
		key := loadTail(text, i)&(1<<(8*uint(size)&63)-1) | uint64(size)<<56
		if c.e.isShort(key) {
			return 1
		}
		return c.missed(text[i:end], key, 0)
	case size <= maxKey:
		head := loadTail(text, i)
		key := loadTail(text, i+8)&(1<<(8*uint(size-8)&63)-1) | uint64(size)<<56
		if c.e.isMid(head, key) {
			return 1
		}
		return c.missed(text[i:end], head, key)
	case size <= maxLong:
		return c.long(text, i, end)
	}
	return c.merged(text[i:end])
}

// missed returns the number of tokens of a piece that has a key (a, b) and is
// not itself a token.
func (c *counter) missed(s string, a, b uint64) int {
	if c.sc == nil {
		c.sc = c.e.scratch()
	}
	known := &c.sc.missed[hashMid(a, b)>>(64-missedBits)]
	if known[0] == a && known[1]&^countMask == b {
		return int(known[1] >> countShift)
	}
	n := c.merged(s)
	if n <= maxCount {
		*known = [2]uint64{a, b | uint64(n)<<countShift}
	}
	return n
}

// long returns the number of tokens of the piece text[i:end], which has 16 to 31
// bytes.
func (c *counter) long(text string, i, end int) int {
	if c.sc == nil {
		c.sc = c.e.scratch()
	}
	size := end - i
	var key longKey
	key[0], key[1] = load64(text, i), load64(text, i+8)
	if size < 24 {
		key[2] = loadTail(text, i+16) & (1<<(8*uint(size-16)&63) - 1)
		key[3] = uint64(size-16) << 56
	} else {
		key[2] = load64(text, i+16)
		key[3] = loadTail(text, i+24)&(1<<(8*uint(size-24)&63)-1) | uint64(size-16)<<56
	}
	known := &c.sc.long[hashMid(key[0]^key[2]*mixFactor, key[1]^key[3])>>(64-longBits)]
	if key[3] == known[3]&^countMask && key[0] == known[0] && key[1] == known[1] && key[2] == known[2] {
		if n := known[3] >> countShift; n != 0 {
			return int(n)
		}
	}
	n := c.merged(text[i:end])
	if n <= maxCount {
		key[3] |= uint64(n) << countShift
		*known = key
	}
	return n
}

// merged returns the number of tokens of a piece by merging it.
func (c *counter) merged(s string) int {
	if c.sc == nil {
		c.sc = c.e.scratch()
	}
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return c.segments(s)
		}
	}
	if len(s) <= maxSmall {
		return c.e.mergeASCII(c.sc, s)
	}
	ids := c.sc.ids[:0]
	for i := range len(s) {
		ids = append(ids, c.e.bytes[s[i]])
	}
	c.sc.ids = ids
	return len(c.e.mergeLarge(c.sc, ids))
}

// segments returns the number of tokens of a piece that is not all ASCII. It
// cuts the piece wherever no token spans two characters.
func (c *counter) segments(s string) int {
	e := c.e
	n, start, chars := 0, 0, 0
	var before rune
	for i := 0; i < len(s); {
		r, size := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, size = decode(s, i)
		}
		if i > start && !e.maySpan(before, r) {
			n += c.segment(s, start, i, chars, before)
			start, chars = i, 0
		}
		before = r
		chars++
		i += size
	}
	return n + c.segment(s, start, len(s), chars, before)
}

// segment returns the number of tokens of s[i:end], a part of the piece s or all
// of it. chars is the number of its characters, and last the last of them.
func (c *counter) segment(s string, i, end, chars int, last rune) int {
	switch {
	case chars > 1 && end-i < len(s):
		return c.piece(s, i, end)
	case chars == 1 && c.e.isChar(last):
		return 1
	}
	c.sc.ids = c.e.appendParts(c.sc.ids[:0], s[i:end])
	return len(c.e.merge(c.sc, c.sc.ids))
}

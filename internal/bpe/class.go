package bpe

import (
	_ "embed"
	"unicode/utf8"
)

// classData is a two-stage table of character classes by Unicode 16, written by
// internal/gen/classes. Package unicode is not used, because its tables change
// with the version of Go.
//
//go:embed classes.bin
var classData string

// A class holds the properties of a character that the patterns ask for.
type class uint8

const (
	letter  class = 1 << iota // \p{L}
	front                     // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
	back                      // [\p{Ll}\p{Lm}\p{Lo}\p{M}]
	number                    // \p{N}
	space                     // \s
	newline                   // [\r\n]; these are space as well
)

const classIndex = (utf8.MaxRune + 1) / 128

// classOf returns the class of r, which is a valid character or U+FFFD.
func classOf(r rune) class {
	block := int(classData[uint32(r)>>7])
	return class(classData[classIndex+block<<7+int(r&127)])
}

// classAt returns the class and the size in bytes of the character at s[i]. At
// the end of s both are 0. A byte that is not part of valid UTF-8 counts as one
// character.
func classAt(s string, i int) (class, int) {
	if i >= len(s) {
		return 0, 0
	}
	if c := s[i]; c < utf8.RuneSelf {
		return class(classData[classIndex+int(classData[0])<<7+int(c)]), 1
	}
	if i+2 < len(s) {
		c, c1, c2 := s[i], s[i+1], s[i+2]
		if c > 0xE0 && c < 0xED && c1&0xC0 == 0x80 && c2&0xC0 == 0x80 { // as in decode
			return classOf(rune(c&0x0F)<<12 | rune(c1&0x3F)<<6 | rune(c2&0x3F)), 3
		}
	}
	r, size := decode(s, i)
	return classOf(r), size
}

// decode returns utf8.DecodeRuneInString(s[i:]). It is faster for characters of
// two bytes and for most characters of three.
func decode(s string, i int) (rune, int) {
	if c := s[i]; i+2 < len(s) {
		c1, c2 := s[i+1], s[i+2]
		if c >= 0xC2 && c < 0xE0 && c1&0xC0 == 0x80 {
			return rune(c&0x1F)<<6 | rune(c1&0x3F), 2
		}
		if c > 0xE0 && c < 0xED && c1&0xC0 == 0x80 && c2&0xC0 == 0x80 {
			return rune(c&0x0F)<<12 | rune(c1&0x3F)<<6 | rune(c2&0x3F), 3
		}
	}
	return utf8.DecodeRuneInString(s[i:])
}

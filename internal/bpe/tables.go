package bpe

import (
	"math/bits"
	"unicode/utf8"
)

// tables are the lookup tables of an encoding.
type tables struct {
	vocab vocabulary

	bytes [256]uint32 // the token of each byte

	short      []uint64 // tokens of up to 7 bytes, by key
	shortShift int
	mid        [][2]uint64 // tokens of 8 to 15 bytes, by key
	midShift   int

	pairs     []uint64 // left<<36 | right<<18 | token
	pairShift int
	mayPair   []uint64          // a bit per hash: whether pairs may hold a pair with that hash
	ascii     [128 * 128]uint32 // the token that two ASCII bytes merge to, or 0

	chars charTable

	// spans has a bit for each hash of two characters that a token spans.
	spans [1 << spanBits / 64]uint64
	// leadSpans is for tokens that end inside the right character: it has a
	// bit for each hash of the left character and the right one's first byte.
	// endSpans is for tokens that begin inside the left character: it has a bit
	// for each pair of the left character's last byte and the right one's
	// first byte.
	leadSpans [1 << leadBits / 64]uint64
	endSpans  [256][4]uint64
}

// maxKey is the length of the longest piece that has a key. A key holds the
// bytes of a piece, and their number in its highest byte: one word for up to 7
// bytes, two words for 8 to 15.
const maxKey = 15

const (
	idBits = 18
	idMask = 1<<idBits - 1
	none   = ^uint32(0)

	hashFactor = 0x9E3779B97F4A7C15
	mixFactor  = 0xD6E8FEB86659FD93
)

// hashMid hashes a key of two words.
func hashMid(a, b uint64) uint64 { return (a ^ bits.RotateLeft64(b*mixFactor, 32)) * hashFactor }

// isShort reports whether a piece of up to 7 bytes is a token.
func (t *tables) isShort(key uint64) bool {
	mask := uint64(len(t.short) - 1)
	for i := key * hashFactor >> (t.shortShift & 63); ; i++ {
		if have := t.short[i&mask]; have == key {
			return true
		} else if have == 0 {
			return false
		}
	}
}

// isMid reports whether a piece of 8 to 15 bytes is a token.
func (t *tables) isMid(a, b uint64) bool {
	mask := uint64(len(t.mid) - 1)
	for i := hashMid(a, b) >> (t.midShift & 63); ; i++ {
		if have := &t.mid[i&mask]; have[1] == b && have[0] == a {
			return true
		} else if have[1] == 0 {
			return false
		}
	}
}

// pair returns the token that two others merge to, or none.
func (t *tables) pair(left, right uint32) uint32 {
	key := uint64(left)<<idBits | uint64(right)
	hash := key * hashFactor
	bit := hash >> ((t.pairShift - 3) & 63)
	if t.mayPair[bit/64]>>(bit&63)&1 == 0 {
		return none
	}
	mask := uint64(len(t.pairs) - 1)
	for i := hash >> (t.pairShift & 63); ; i++ {
		if have := t.pairs[i&mask]; have>>idBits == key {
			return uint32(have & idMask)
		} else if have == 0 {
			return none
		}
	}
}

const (
	spanBits = 19
	leadBits = 15
)

func spanHash(left, right rune) uint64 {
	return (uint64(left)<<21 | uint64(right)) * hashFactor >> (64 - spanBits)
}

func leadHash(left rune, lead byte) uint64 {
	return (uint64(left)<<8 | uint64(lead)) * hashFactor >> (64 - leadBits)
}

// maySpan reports whether a token can span two neighbouring characters, or
// fragments of them. It reports true for any two ASCII characters.
func (t *tables) maySpan(left, right rune) bool {
	if left|right < utf8.RuneSelf {
		return true
	}
	bit := spanHash(left, right)
	return t.spans[bit/64]>>(bit&63)&1 != 0 || t.maySplit(left, right)
}

// maySplit reports whether a token can span the border of two neighbouring
// characters and hold only a fragment of one of them.
func (t *tables) maySplit(left, right rune) bool {
	if left|right < utf8.RuneSelf {
		return false
	}
	lead, last := firstByte(right), byte(left)
	if left >= utf8.RuneSelf {
		last = 0x80 | byte(left)&0x3F
	}
	bit := leadHash(left, lead)
	return t.endSpans[last][lead>>6]>>(lead&63)&1 != 0 || t.leadSpans[bit/64]>>(bit&63)&1 != 0
}

// firstByte returns the first byte of the UTF-8 encoding of r.
func firstByte(r rune) byte {
	switch {
	case r < 0x80:
		return byte(r)
	case r < 0x800:
		return 0xC0 | byte(r>>6)
	case r < 0x10000:
		return 0xE0 | byte(r>>12)
	}
	return 0xF0 | byte(r>>18)
}

// A charTable is a two-stage table of the tokens that are a single character
// beyond ASCII.
type charTable struct {
	index  [(utf8.MaxRune + 1) >> 6]uint16
	blocks [][64]uint32 // the first block is empty
}

func (c *charTable) init() { c.blocks = make([][64]uint32, 1, 600) }

func (c *charTable) set(r rune, id uint32) {
	if c.index[r>>6] == 0 {
		c.index[r>>6] = uint16(len(c.blocks))
		c.blocks = append(c.blocks, [64]uint32{})
	}
	c.blocks[c.index[r>>6]][r&63] = id
}

// isChar reports whether a token holds exactly the character r.
func (t *tables) isChar(r rune) bool { return r < utf8.RuneSelf || t.chars.get(r) != 0 }

// get returns the token of a character beyond ASCII, or 0 if there is none.
// Token 0 itself is ASCII.
func (c *charTable) get(r rune) uint32 {
	return c.blocks[c.index[uint32(r)>>6]][r&63]
}

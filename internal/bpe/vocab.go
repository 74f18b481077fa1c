package bpe

import "math/bits"

// A vocabulary is a file written by internal/gen/vocab, whose documentation
// describes the layout.
type vocabulary string

const vocabHead = 4 + 256

func (v vocabulary) len() int {
	return int(v[0]) | int(v[1])<<8 | int(v[2])<<16 | int(v[3])<<24
}

// byteOf returns the byte of one of the first 256 tokens.
func (v vocabulary) byteOf(id uint32) byte { return v[4+id] }

// split returns the two tokens that merge to id, which is 256 or more.
func (v vocabulary) split(id uint32) (left, right uint32) {
	// The parts of the tokens up to 256 take 8 bits each, those of the tokens
	// up to 512 take 9, and so on.
	at, first, width := 0, uint32(256), bits.Len32(id-1)
	for w := 8; w < width; w++ {
		last := uint32(1) << w
		at += int(last-first+1) * 2 * w
		first = last + 1
	}
	at += int(id-first) * 2 * width
	word := load64(string(v), vocabHead+at/8) >> (at % 8)
	mask := uint32(1)<<width - 1
	return uint32(word) & mask, uint32(word>>width) & mask
}

// A splitReader yields the tokens from 256 on in order, each with its two parts.
type splitReader struct {
	data  string
	at    int // in bits
	id    uint32
	end   uint32
	width uint
}

func (v vocabulary) reader() splitReader {
	return splitReader{data: string(v), at: vocabHead * 8, id: 256, end: uint32(v.len()), width: 8}
}

// next returns a token and its parts. It returns token 0 at the end.
func (r *splitReader) next() (id uint32, left, right uint64) {
	if r.id == r.end {
		return 0, 0, 0
	}
	id = r.id
	r.id++
	if id > 1<<r.width {
		r.width++
	}
	word := load64(r.data, r.at/8) >> (r.at % 8)
	r.at += 2 * int(r.width)
	mask := uint64(1)<<r.width - 1
	return id, word & mask, word >> r.width & mask
}

// appendToken appends the bytes of a token to dst.
func (v vocabulary) appendToken(dst []byte, id uint32) []byte {
	for id >= 256 {
		left, right := v.split(id)
		dst = v.appendToken(dst, left)
		id = right
	}
	return append(dst, v.byteOf(id))
}

// load64 returns the 8 bytes s[i:i+8], with the first one lowest.
func load64(s string, i int) uint64 {
	b := s[i : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// loadTail is like load64, with zeros for the bytes beyond the end of s.
func loadTail(s string, i int) uint64 {
	switch {
	case i+8 <= len(s):
		return load64(s, i)
	case i >= len(s):
		return 0
	case len(s) >= 8:
		return load64(s, len(s)-8) >> (8 * (i + 8 - len(s)) & 63)
	}
	var w uint64
	for k := len(s) - 1; k >= i; k-- {
		w = w<<8 | uint64(s[k])
	}
	return w
}

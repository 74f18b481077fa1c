package extract

import (
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
)

// wordCounts holds how often words are in some texts, by a hash. Different words may have the
// same place, so that a word may seem less rare than it is.
type wordCounts [1 << 14]uint8

// add counts words.
func (c *wordCounts) add(words []uint16) {
	for _, hash := range words {
		if n := &c[hash]; *n < 255 {
			*n++
		}
	}
}

// rare returns how many words of one of n texts are in at most one in 50 of them.
func (c *wordCounts) rare(words []uint16, n int) (rare int) {
	most := uint8(min(max(n/50, 1), 254))
	for _, hash := range words {
		if c[hash] <= most {
			rare++
		}
	}
	return rare
}

// hashedWords appends the place of each word of a text in wordCounts. Of scripts other than
// Latin, a word is each pair of letters.
func hashedWords(words []uint16, s string) []uint16 {
	const places = uint64(len(wordCounts{}))
	word, last := uint64(0), rune(0) // 0: none
	for _, r := range s {
		isLatin := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		if isLatin {
			if word == 0 {
				word = fingerprint.FNVOffset
			}
			word = (word ^ uint64(r)) * fingerprint.FNVPrime
			last = 0
			continue
		}
		if word != 0 {
			words = append(words, uint16(word>>40%places))
		}
		word = 0
		if r < utf8.RuneSelf {
			last = 0
			continue
		}
		if last != 0 {
			words = append(words, uint16((uint64(last)<<21^uint64(r))*fingerprint.FNVPrime>>20%places))
		}
		last = r
	}
	if word != 0 {
		words = append(words, uint16(word>>40%places))
	}
	return words
}

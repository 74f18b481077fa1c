// Package bigram estimates how many tokens o200k, the tokenizer of GPT-4o and
// later models, makes of a text. It adds up a number for each byte, taken from a
// table, that depends on the byte before it. Long runs of one ASCII byte are
// counted separately, because vocabularies hold whole runs.
package bigram

import (
	_ "embed"
	"math/bits"
	"sync"
)

// table holds how many tokens a byte adds, in 255ths, given the byte before it.
// The entry for the bytes prev and cur is at cur<<8 | prev. After these 65,536
// entries there are 128 more: for each ASCII character, how many bytes one token
// covers in a long run of it. It is filled by the first Count.
var table [pairs + 128]uint8

var filled sync.Once

// packed is table without repetitions: a bit for each entry, the lowest first, that is set
// if the entry differs from the previous one, and then the entries that differ. The first
// one does. internal/gen/heuristic writes the file.
//
//go:embed table.bin
var packed string

// fill fills table.
func fill() {
	entries := packed[len(table)/8:]
	value := uint8(0)
	for i := range table {
		if packed[i/8]>>(i%8)&1 != 0 {
			value, entries = entries[0], entries[1:]
		}
		table[i] = value
	}
}

const (
	pairs   = 1 << 16
	one     = 255 // the value of a whole token in table
	longRun = 16  // runs of one byte from this length on are counted separately
)

// Count estimates the tokens of text. It does not allocate. Text that is not
// empty counts at least 1, and at most its length in bytes.
func Count(text string) int {
	if text == "" {
		return 0
	}
	filled.Do(fill)
	t := &table
	sum := uint64(one) // the first byte starts a token
	i := 1
	for i+7 <= len(text) {
		b := text[i-1 : i+7]
		x := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		if x == bits.RotateLeft64(x, 8) && b[0] < 0x80 {
			if from, to := runAround(text, i-1); to-from >= longRun {
				pair := uint64(b[0])<<8 | uint64(b[0])
				sum -= uint64(i-1-from) * uint64(t[pair]) // these were added before the run was noticed
				sum += longRunCost(b[0], to-from)
				if from == 0 {
					sum -= one
				} else {
					sum -= uint64(t[uint64(b[0])<<8|uint64(text[from-1])])
				}
				i = to
				if i < len(text) {
					sum += uint64(t[uint64(text[i])<<8|uint64(b[0])])
					i++
				}
				continue
			}
		}
		sum += uint64(t[uint16(x)]) + uint64(t[uint16(x>>8)]) + uint64(t[uint16(x>>16)]) + uint64(t[uint16(x>>24)]) +
			uint64(t[uint16(x>>32)]) + uint64(t[uint16(x>>40)]) + uint64(t[x>>48])
		i += 7
	}
	for ; i < len(text); i++ {
		sum += uint64(t[uint64(text[i])<<8|uint64(text[i-1])])
	}
	return int((sum + one/2) / one)
}

// runAround returns the bounds [from, to) of the run of equal bytes around
// text[i].
func runAround(text string, i int) (from, to int) {
	c := text[i]
	from, to = i, i+1
	for from > 0 && text[from-1] == c {
		from--
	}
	for to < len(text) && text[to] == c {
		to++
	}
	return from, to
}

// longRunCost returns the value of a run of n bytes c, which is ASCII.
func longRunCost(c byte, n int) uint64 {
	per := uint64(table[pairs+int(c)])
	return (uint64(n) + per - 1) / per * one
}

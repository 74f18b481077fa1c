// Package bigram estimates how many tokens o200k, the tokenizer of GPT-4o and
// later models, makes of a text. It adds up a number for each byte, taken from a
// table, that depends on the byte before it. Long runs of one ASCII byte are
// counted separately, because vocabularies hold whole runs.
package bigram

import (
	_ "embed"
	"sync"

	"github.com/seed-c1b73e60/convo/internal/text"
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

// Count estimates the tokens of s. It does not allocate. A text that is not
// empty counts at least 1, and at most its length in bytes.
func Count(s string) int {
	if s == "" {
		return 0
	}
	filled.Do(fill)
	t := &table
	sum := uint64(one) // the first byte starts a token
	rest := s
	for len(rest) > 8 {
		x, y := text.Word(rest), text.Word(rest[1:])
		if x == y && x>>63 == 0 {
			at := len(s) - len(rest)
			if from, to := runAround(s, at); to-from >= longRun {
				sum += longRunCost(s, from, at, to)
				rest = s[min(to, len(s)-1):]
				continue
			}
		}
		sum += uint64(t[uint16(x)]) + uint64(t[uint16(x>>16)]) + uint64(t[uint16(x>>32)]) + uint64(t[x>>48]) +
			uint64(t[uint16(y)]) + uint64(t[uint16(y>>16)]) + uint64(t[uint16(y>>32)]) + uint64(t[y>>48])
		rest = rest[8:]
	}
	for i := 1; i < len(rest); i++ {
		sum += cost(rest[i-1], rest[i])
	}
	return int((sum + one/2) / one)
}

// cost returns the value of a byte after another.
func cost(prev, cur byte) uint64 { return uint64(table[uint64(cur)<<8|uint64(prev)]) }

// runAround returns the bounds [from, to) of the run of equal bytes around
// s[i].
func runAround(s string, i int) (from, to int) {
	c := s[i]
	from, to = i, i+1
	for from > 0 && s[from-1] == c {
		from--
	}
	for to < len(s) && s[to] == c {
		to++
	}
	return from, to
}

// longRunCost returns the value of the run s[from:to] of an ASCII byte and of the byte
// after it, less what was added up to s[at], before the run was noticed. It may wrap.
func longRunCost(s string, from, at, to int) uint64 {
	c := s[from]
	per := uint64(table[pairs+int(c)])
	sum := (uint64(to-from)+per-1)/per*one - uint64(at-from)*cost(c, c)
	if from == 0 {
		sum -= one
	} else {
		sum -= cost(s[from-1], c)
	}
	if to < len(s) {
		sum += cost(c, s[to])
	}
	return sum
}

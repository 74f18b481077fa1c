package convo

import (
	_ "embed"
	"math/bits"
)

// Heuristic is the default [Tokenizer]: an estimate of what o200k, the
// tokenizer of GPT-4o and later, makes of a text. It adds up what each byte is
// worth after the byte before it, from a table of 64 KB fitted to text in all
// major scripts, to code and to data; long runs of one ASCII byte count apart.
// It needs no vocabulary and does not allocate. Text that is not empty counts
// at least 1 and at most its bytes; two texts joined count what they count
// apart, give or take two, unless a long run of one byte goes across.
//
// On the held-out half of the text it was fitted to, a message of 200 tokens
// is off by 3.7 %, the mean of all classes (95th percentile 9.5 %), and a
// conversation of 25 messages by 2.2 %: English and Chinese 3, Go 4, JSON,
// base64, UUIDs and logs 1 to 2, Russian 6, Georgian 11. On code and data of
// other origin it is 3.1 % (7 %, conversations 2.2 %), CSV 7. On prose of other
// origin, the Declaration of Human Rights in 57 languages, it is 6.0 % (13 %,
// conversations 4.3 %): Latin, Arabic and Cyrillic scripts 4 to 5, Hindi and
// Japanese 9; the worst whole texts are 20 % (Burmese) and 28 % (Georgian) too
// high. A single sentence may be off by a factor of two. Usage reports correct
// that, see [History.RecordUsage]. It is not a count, and it does not know the
// tokenizers of other vendors.
type Heuristic struct{}

// heuristicTable says in 255ths how many tokens a byte adds, given the byte
// before it: the entry for prev and cur is at cur<<8 | prev. Behind these
// 65536 entries stand 128 more: how many equal bytes a token of a long run of
// each ASCII character holds. internal/gen/heuristic makes it.
//
//go:embed heuristic.bin
var heuristicTable string

const (
	heuristicPairs = 1 << 16
	heuristicOne   = 255
	longRun        = 16 // from where on a run of one byte counts apart
)

// CountTokens estimates the tokens of text.
func (Heuristic) CountTokens(text string) int {
	if text == "" {
		return 0
	}
	t := heuristicTable
	if len(t) < heuristicPairs {
		return len(text) // not reached
	}
	sum := uint64(heuristicOne) // the first byte starts a token
	i := 1
	for i+7 <= len(text) {
		b := text[i-1 : i+7]
		x := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		if x == bits.RotateLeft64(x, 8) && b[0] < 0x80 {
			if from, to := runAround(text, i-1); to-from >= longRun {
				pair := uint64(b[0])<<8 | uint64(b[0])
				sum -= uint64(i-1-from) * uint64(t[pair]) // counted already
				sum += longRunCost(b[0], to-from)
				if from == 0 {
					sum -= heuristicOne
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
	return int((sum + heuristicOne/2) / heuristicOne)
}

// runAround is where the run of equal bytes around text[i] begins and ends.
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

// longRunCost is what a long run of an ASCII character costs: vocabularies
// hold whole runs of it.
func longRunCost(c byte, n int) uint64 {
	per := uint64(heuristicTable[heuristicPairs+int(c)])
	return (uint64(n) + per - 1) / per * heuristicOne
}

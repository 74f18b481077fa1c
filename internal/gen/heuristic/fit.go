package main

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"

	"github.com/seed-c1b73e60/convo/internal/bpe"
)

// The fit is done in whole numbers, so that every machine comes to the same
// table: unit is one token.
const unit = 1 << 32

// Constants of the fit, chosen by the errors on held-out text; see the README.
const (
	epochs   = 8
	pace     = 6    // one part in so many of an error is taken out at a time
	minChunk = 200  // bytes
	varChunk = 1200 // bytes
	classLen = 2 << 20
	maxBoost = 3
	scale    = 255
)

// A sample is a document with the places where its tokens start.
type sample struct {
	document
	starts []byte // a bit for each byte
}

func (s *sample) start(i int) int64 { return int64(s.starts[i>>3] >> (i & 7) & 1) }

// label finds the tokens of every document.
func label(docs []document) []sample {
	out := make([]sample, len(docs))
	enc := bpe.O200k()
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			var ids []uint32
			for i := w; i < len(docs); i += workers {
				text := docs[i].text
				ids = enc.Append(ids[:0], text)
				starts := make([]byte, len(text)/8+1)
				at := 0
				for _, id := range ids {
					starts[at>>3] |= 1 << (at & 7)
					token, _ := enc.Token(id)
					at += len(token)
				}
				if at != len(text) {
					panic("the tokens of " + docs[i].class + " do not spell their text")
				}
				out[i] = sample{docs[i], starts}
			}
		})
	}
	wg.Wait()
	return out
}

// weight is how much the classes count that agents meet most.
func weight(class string) int64 {
	switch class {
	case "en", "en-books", "en-manual":
		return 3
	case "go", "python", "json", "markdown", "typescript", "javascript", "zh", "de":
		return 2
	}
	return 1
}

// fit learns the table from the samples that are not held out.
func fit(samples []sample) [1 << 16]uint8 {
	var fits []*sample
	size := map[string]int64{}
	for i := range samples {
		if !samples[i].held {
			fits = append(fits, &samples[i])
			size[samples[i].class] += int64(len(samples[i].text))
		}
	}
	table := count(fits, size)
	refine(&table, fits, size)
	var out [1 << 16]uint8
	for x, v := range table {
		out[x] = uint8((v*scale + unit/2) / unit)
	}
	return out
}

// runs is how many bytes of a long run of each ASCII character make a token.
func runs() []byte {
	enc := bpe.O200k()
	per := make([]byte, 128)
	for c := range per {
		const n = 4096
		tokens := len(enc.Append(nil, strings.Repeat(string(rune(c)), n)))
		per[c] = byte((n + tokens/2) / tokens)
	}
	return per
}

// at is the place of the byte i of text, after the byte before it.
func at(text string, i int) uint16 { return uint16(text[i])<<8 | uint16(text[i-1]) }

// count gives every pair of bytes the share of its occurrences at which a
// token starts, each class weighing the same. A pair that does not occur has
// what its kind has; see prior.
func count(fits []*sample, size map[string]int64) [1 << 16]int64 {
	var num, den [1 << 16]int64
	for _, s := range fits {
		w := weight(s.class) * (1 << 30) / size[s.class]
		for i := 1; i < len(s.text); i++ {
			x := at(s.text, i)
			num[x] += w * s.start(i)
			den[x] += w
		}
	}
	var table [1 << 16]int64
	const trust = 64 // as heavy as so many bytes of a class of 1 MB
	for x := range table {
		n, d := num[x]>>8, den[x]>>8
		p := prior(byte(x), byte(x>>8))
		table[x] = (n*(unit>>16) + p>>16*trust*4) / (d + trust*4) << 16
	}
	return table
}

// prior is the guess for a pair of bytes that the samples do not hold.
func prior(prev, cur byte) int64 {
	letter := func(c byte) bool { c |= 0x20; return c >= 'a' && c <= 'z' }
	switch {
	case cur >= 0x80 && cur < 0xc0 && prev < 0x80: // invalid
		return unit
	case cur >= 0x80 && cur < 0xc0: // inside a character
		return unit * 6 / 10
	case cur >= 0x80:
		return unit * 8 / 10
	case letter(cur) && letter(prev):
		return unit * 7 / 10
	default:
		return unit * 9 / 10
	}
}

// refine takes the error out of whole chunks, which is what a count is about:
// each chunk moves the pairs in it, by how often they occur, so that the
// chunk comes nearer to its exact count (normalised least mean squares).
func refine(table *[1 << 16]int64, fits []*sample, size map[string]int64) {
	r := rand.New(rand.NewPCG(1, 2))
	order := make([]*sample, len(fits))
	copy(order, fits)
	var seen [1 << 16]int64
	for epoch := range int64(epochs) {
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, s := range order {
			w := weight(s.class) * min(maxBoost*16, 16*classLen/size[s.class])
			for from := 0; from < len(s.text); {
				end := min(from+minChunk+r.IntN(varChunk), len(s.text))
				var miss, squares int64
				for i := from + 1; i < end; i++ {
					x := at(s.text, i)
					miss += table[x] - s.start(i)*unit
					squares += 2*seen[x] + 1
					seen[x]++
				}
				step := miss / (squares + 100) * w / (16 * pace * (2 + epoch*epoch) / 2)
				for i := from + 1; i < end; i++ {
					x := at(s.text, i)
					seen[x] = 0
					table[x] = min(max(table[x]-step, unit/scale), unit)
				}
				from = end
			}
		}
	}
}

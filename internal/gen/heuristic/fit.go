package main

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"

	"github.com/seed-c1b73e60/convo/internal/bpe"
)

// unit stands for one token. The fit uses integers only, so that it gives the
// same table on every machine.
const unit = 1 << 32

// Constants of the fit. They were chosen by the errors on held-out text; see the
// README.
const (
	epochs   = 8       // passes over the samples
	pace     = 6       // the first pass removes about 1/pace of an error; later passes less
	minChunk = 200     // the shortest chunk, in bytes
	varChunk = 1200    // chunks are up to this much longer, in bytes
	classLen = 2 << 20 // a class of this size, in bytes, has weight 1
	maxBoost = 3       // the most that a smaller class is weighted up by
	scale    = 255     // the value of one token in the table
)

// A sample is a document with the positions at which its tokens start.
type sample struct {
	document
	starts []byte // a bit for each byte of the text
}

func (s *sample) start(i int) int64 { return int64(s.starts[i>>3] >> (i & 7) & 1) }

// label finds where the tokens of each document start.
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
					panic("the tokens of a document of class " + docs[i].class + " do not add up to its text")
				}
				out[i] = sample{docs[i], starts}
			}
		})
	}
	wg.Wait()
	return out
}

// weight returns the weight of a class. The classes that agents meet most have a
// higher one.
func weight(class string) int64 {
	switch class {
	case "en", "en-books", "en-manual":
		return 3
	case "go", "python", "json", "markdown", "typescript", "javascript", "zh", "de":
		return 2
	}
	return 1
}

// fit returns the table fitted to the samples that are not held out.
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

// runs returns, for each ASCII character, how many bytes one token covers in a
// long run of it.
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

// at returns the table index for byte i of text and the byte before it.
func at(text string, i int) uint16 { return uint16(text[i])<<8 | uint16(text[i-1]) }

// count returns a first table: for each pair of bytes, the fraction of its
// occurrences at which a token starts. Classes have the same total weight, times
// what weight returns. A pair that is rare or absent gets a value near its
// prior.
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
	const trust = 64 // the prior weighs as much as 64 occurrences in a class of 1 MB
	for x := range table {
		n, d := num[x]>>8, den[x]>>8
		p := prior(byte(x), byte(x>>8))
		table[x] = (n*(unit>>16) + p>>16*trust*4) / (d + trust*4) << 16
	}
	return table
}

// prior returns the value assumed for a pair of bytes without any samples.
func prior(prev, cur byte) int64 {
	letter := func(c byte) bool { c |= 0x20; return c >= 'a' && c <= 'z' }
	switch {
	case cur >= 0x80 && cur < 0xc0 && prev < 0x80: // invalid UTF-8
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

// refine reduces the error of the sum over whole chunks of text, which is what an
// estimate is judged by. For each chunk it changes the entries of the pairs in
// it, in proportion to how often they occur, so that the sum comes closer to the
// exact count. This is the normalised least mean squares filter.
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

package bpe_test

import (
	"flag"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
)

var (
	oracleMB      = flag.Float64("bpe.mb", 0, "megabytes of mixed text for each encoding in TestOracle; 0: a small amount")
	oracleStrings = flag.Int("bpe.strings", 0, "strings for each encoding in TestOracle_Random; 0: a small number")
	oracleSeed    = flag.Uint64("bpe.seed", 1, "seed of the texts that the oracle judges")
)

// amount is what a flag asks for, or else the default, a tenth of it under the
// race detector.
func amount[T int | float64](asked, normal T) T {
	switch {
	case asked > 0:
		return asked
	case raceDetector || testing.Short():
		return normal / 10
	}
	return normal
}

// sources makes a source of each kind of the generator.
func (g *generator) sources() []source {
	var sources []source
	for _, k := range g.kinds {
		sources = append(sources, source{k.name, 1, func() (string, bool) { return k.make(1 + g.IntN(longestChunk)), true }})
	}
	return sources
}

// A tally is what was judged of one class of text.
type tally struct {
	chunks, bytes, tokens, skipped, bad int
	dry                                 bool // there is no more of it
}

func (a tally) String() string {
	return fmt.Sprintf("%7.3f MB, %8d tokens, %5d texts, %4d skipped, %d mismatches", float64(a.bytes)/1e6, a.tokens, a.chunks, a.skipped, a.bad)
}

// Ids and counts are the oracle's on mixed text: the files of the Go
// installation and of the module cache and generated text of every kind, about
// four parts of each class of files to one part of each kind. Skipped are texts
// that the oracle cannot judge. More of it: -bpe.mb 40.
func TestOracle(t *testing.T) {
	forEachOracle(t, func(t *testing.T, o *oracle) {
		budget := int(amount(*oracleMB, 2) * 1e6)
		sources := append(fileSources(t, *oracleSeed), newGenerator(o, *oracleSeed).sources()...)
		tallies := make([]tally, len(sources))
		var all tally
		for all.bytes < budget {
			least := -1
			for i, s := range sources {
				if !tallies[i].dry && (least < 0 || tallies[i].bytes/s.weight < tallies[least].bytes/sources[least].weight) {
					least = i
				}
			}
			class := &tallies[least]
			chunk, ok := sources[least].next()
			class.dry = !ok
			for _, text := range tamed(chunk) {
				if unjudged(t, text) {
					class.skipped++
					all.skipped++
					continue
				}
				how := o.differs(t, text)
				for _, a := range []*tally{class, &all} {
					a.chunks++
					a.bytes += len(text)
					a.tokens += o.ours().Count(text)
					if how != "" {
						a.bad++
					}
				}
				if how != "" && all.bad <= 5 {
					t.Errorf("%s, seed %d: %s\nminimal: %s", sources[least].class, *oracleSeed, how, o.minimal(t, text))
				}
			}
		}
		for i, s := range sources {
			t.Logf("%-16s %s", s.class, tallies[i])
		}
		t.Logf("%-16s %s", "all, seed "+strconv.FormatUint(*oracleSeed, 10), all)
		assert.Zero(t, all.bad)
	})
}

// Ids and counts are the oracle's on short strings of every kind. More of
// them: -bpe.strings 500000.
func TestOracle_Random(t *testing.T) {
	forEachOracle(t, func(t *testing.T, o *oracle) {
		g := newGenerator(o, *oracleSeed)
		strings, skipped, bytes := amount(*oracleStrings, 20_000), 0, 0
		t.Logf("seed %d, %d strings", *oracleSeed, strings)
		bad := 0
		for judged := 0; judged < strings; {
			text := g.text()
			if unjudged(t, text) {
				skipped++
				continue
			}
			judged++
			bytes += len(text)
			if how := o.differs(t, text); how != "" {
				if bad++; bad <= 10 {
					t.Errorf("seed %d, string %d: %s\nminimal: %s", *oracleSeed, judged, how, o.minimal(t, text))
				}
			}
		}
		t.Logf("%.3f MB, %d more strings skipped, %d mismatches", float64(bytes)/1e6, skipped, bad)
		assert.Zero(t, bad)
	})
}

// minimal shows the smallest part of text that still differs.
func (o *oracle) minimal(t testing.TB, text string) string {
	least := minimise(text, func(s string) bool { return !unjudged(t, s) && o.differs(t, s) != "" })
	return o.differs(t, least) + " of " + quoted(least)
}

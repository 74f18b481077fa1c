package bpetest

import (
	"flag"
	"testing"
)

var (
	mixedMB = flag.Float64("bpe.mb", 0, "megabytes of mixed text to compare for each encoding; 0 means a small amount")
	random  = flag.Int("bpe.strings", 0, "number of random strings to compare for each encoding; 0 means a small number")
	seed    = flag.Uint64("bpe.seed", 1, "seed of the texts to compare")
)

// More reports whether -bpe.mb asks for more text than the default.
func More() bool { return *mixedMB > 0 }

// amount returns the value of a flag if it is set. Otherwise it returns normal,
// or a tenth of it with -short or under the race detector.
func amount[T int | float64](asked, normal T) T {
	switch {
	case asked > 0:
		return asked
	case RaceDetector || testing.Short():
		return normal / 10
	}
	return normal
}

// sources returns a source for each kind of generated text.
func (g *generator) sources() []source {
	var sources []source
	for _, k := range g.kinds {
		sources = append(sources, source{k.name, 1, func() (string, bool) { return k.text(1 + g.IntN(longestChunk)), true }})
	}
	return sources
}

// mixedText compares the texts of fileSources and generated text of every kind.
// It takes about four times as much of each class of files as of each kind. The
// flag -bpe.mb 40 makes it compare more.
func mixedText(c *checks) {
	budget := int(amount(*mixedMB, c.MB) * 1e6)
	sources := append(fileSources(c.t, *seed), newGenerator(c.Comparison, *seed).sources()...)
	tallies := make([]checks, len(sources))
	dry := make([]bool, len(sources))
	for i := range tallies {
		tallies[i] = checks{Comparison: c.Comparison, t: c.t}
	}
	for c.bytes < budget {
		least := -1
		for i, s := range sources {
			if !dry[i] && (least < 0 || tallies[i].bytes/s.weight < tallies[least].bytes/sources[least].weight) {
				least = i
			}
		}
		class := &tallies[least]
		before := *class
		chunk, ok := sources[least].next()
		dry[least] = !ok
		for _, text := range tamed(chunk) {
			class.check(text)
		}
		c.texts += class.texts - before.texts
		c.bytes += class.bytes - before.bytes
		c.tokens += class.tokens - before.tokens
		c.unjudged += class.unjudged - before.unjudged
		c.bad += class.bad - before.bad
	}
	for i, s := range sources {
		c.t.Logf("%-16s %s", s.class, &tallies[i])
	}
	c.t.Logf("seed %d", *seed)
}

// randomStrings compares short strings of every kind. The flag -bpe.strings
// 500000 makes it compare more.
func randomStrings(c *checks) {
	g := newGenerator(c.Comparison, *seed)
	for n := amount(*random, 20_000); c.texts < n; {
		c.check(g.text())
	}
	c.t.Logf("seed %d", *seed)
}

package bpetest

import "github.com/seed-c1b73e60/convo/internal/long"

// seed is the seed of the texts to compare.
const seed = 1

// sources returns a source for each kind of generated text.
func (g *generator) sources() []source {
	var sources []source
	for _, k := range g.kinds {
		sources = append(sources, source{k.name, 1, func() (string, bool) { return k.text(1 + g.IntN(longestChunk)), true }})
	}
	return sources
}

// mixedText compares the texts of fileSources and generated text of every kind.
// It takes about four times as much of each class of files as of each kind.
func mixedText(c *checks) {
	budget := int(long.Or(c.MB/16, c.MB) * 1e6)
	sources := append(fileSources(c.t, seed), newGenerator(c.Comparison, seed).sources()...)
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
}

// randomStrings compares short strings of every kind.
func randomStrings(c *checks) {
	g := newGenerator(c.Comparison, seed)
	for n := long.Or(1_000, 20_000); c.texts < n; {
		c.check(g.text())
	}
}

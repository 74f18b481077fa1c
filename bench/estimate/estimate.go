// Package estimate compares token estimates with exact o200k counts, on text to
// which convo's estimator was not fitted.
package estimate

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/bpe"
)

// A rule estimates the tokens of a text.
type rule struct {
	name  string
	count func(text string) float64
}

// rules lists convo's estimator and rules that are in use elsewhere.
var rules = []rule{
	{"convo", func(s string) float64 { return float64(convo.Heuristic{}.CountTokens(s)) }},
	{"bytes/4", func(s string) float64 { return float64(len(s)) / 4 }},
	{"runes/4", func(s string) float64 { return float64(utf8.RuneCountInString(s)) / 4 }},
	{"bytes/3.5", func(s string) float64 { return float64(len(s)) / 3.5 }},
	{"bytes/4 x 1.3", func(s string) float64 { return float64(len(s)) / 4 * 1.3 }},
	{"ASCII .25, else 1.5", func(s string) float64 { return perRune(s, 0.25, 1.5) }},
	{"ASCII .25, else 1", func(s string) float64 { return perRune(s, 0.25, 1) }},
}

func perRune(s string, ascii, other float64) float64 {
	var sum float64
	for _, r := range s {
		if r < utf8.RuneSelf {
			sum += ascii
		} else {
			sum += other
		}
	}
	return sum
}

const (
	messageTokens  = 200 // tokens of a message
	talkMessages   = 25  // messages of a conversation
	shortest       = 8   // tokens of the shortest message in a conversation
	longest        = 600 // tokens of the longest
	enoughMessages = 3   // a class with fewer messages is left out
)

// errors holds how far a rule was off, relative to the exact counts.
type errors struct {
	messages, talks []float64 // for each message and each conversation
	ratios          []float64 // of each message, its estimate divided by its exact count
	ratio           float64   // all estimates divided by all exact counts
}

func (e errors) mean() float64     { return mean(e.messages) }
func (e errors) p95() float64      { return quantile(e.messages, 0.95) }
func (e errors) talkMean() float64 { return mean(e.talks) }

// A result holds the errors of all rules for one class of text.
type result struct {
	class    string
	messages int
	bytes    int
	rules    []errors
}

// measure estimates the texts of a class, once in messages of about 200 tokens,
// and once in conversations of 25 messages of 8 to 600 tokens. It skips texts
// that are not valid UTF-8.
func measure(c class) result {
	enc := bpe.O200k()
	r := result{class: c.name, rules: make([]errors, len(rules))}
	rng := rand.New(rand.NewPCG(5, 7))
	sums := make([]float64, len(rules))
	talk := make([]float64, len(rules))
	var exact, talkExact float64
	talked := 0
	var ids []uint32
	// pieces cuts text into messages whose numbers of tokens come from size.
	pieces := func(text string, size func() int, use func(message string, tokens int)) {
		ids = enc.Append(ids[:0], text)
		from, to, n, want := 0, 0, 0, size()
		for _, id := range ids {
			token, _ := enc.Token(id)
			to += len(token)
			n++
			if n >= want && utf8.RuneStart(next(text, to)) {
				use(text[from:to], n)
				from, n, want = to, 0, size()
			}
		}
	}
	for _, text := range c.texts {
		if !utf8.ValidString(text) {
			continue
		}
		pieces(text, func() int { return messageTokens }, func(message string, tokens int) {
			r.messages++
			r.bytes += len(message)
			exact += float64(tokens)
			for i, rule := range rules {
				n := rule.count(message)
				sums[i] += n
				r.rules[i].ratios = append(r.rules[i].ratios, n/float64(tokens))
				r.rules[i].messages = append(r.rules[i].messages, math.Abs(n-float64(tokens))/float64(tokens))
			}
		})
		size := func() int {
			return int(shortest * math.Pow(float64(longest)/shortest, rng.Float64()))
		}
		pieces(text, size, func(message string, tokens int) {
			talkExact += float64(tokens)
			for i, rule := range rules {
				talk[i] += rule.count(message)
			}
			if talked++; talked%talkMessages == 0 {
				for i := range rules {
					r.rules[i].talks = append(r.rules[i].talks, math.Abs(talk[i]-talkExact)/talkExact)
					talk[i] = 0
				}
				talkExact = 0
			}
		})
	}
	for i := range rules {
		r.rules[i].ratio = sums[i] / max(exact, 1)
	}
	return r
}

// next returns text[i], or a space at the end of text.
func next(text string, i int) byte {
	if i < len(text) {
		return text[i]
	}
	return ' '
}

// results measures every class that has enough text.
func results(classes []class) []result {
	var all []result
	for _, c := range classes {
		if r := measure(c); r.messages >= enoughMessages {
			all = append(all, r)
		}
	}
	return all
}

// average returns the mean over the classes, all with the same weight.
func average(all []result, rule int, of func(errors) float64) float64 {
	var sum float64
	n := 0
	for _, r := range all {
		if v := of(r.rules[rule]); !math.IsNaN(v) {
			sum += v
			n++
		}
	}
	return sum / float64(max(n, 1))
}

func mean(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	var sum float64
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

func quantile(x []float64, q float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	x = slices.Sorted(slices.Values(x))
	return x[min(int(q*float64(len(x))), len(x)-1)]
}

// TextVar is the name of an environment variable. It may name a directory with
// more text, in one subdirectory per class, such as the held-out text that
// internal/gen/heuristic writes.
const TextVar = "CONVO_ESTIMATE_TEXT"

// Write writes the errors of the estimates as Markdown. The text comes from the
// Go installation, the module cache, seeded generators, the Declaration of Human
// Rights in 57 languages, and the directory named by TextVar. If quick is set,
// Write reads less of each.
func Write(w io.Writer, quick bool) error {
	limit := 4 << 20
	if quick {
		limit = 256 << 10
	}
	p := printer{w: w}
	p.section("Text on this machine", results(atHand(limit)))
	p.section("The Declaration of Human Rights", results(languages()))
	if dir := os.Getenv(TextVar); dir != "" {
		more, err := directory(dir, limit)
		if err != nil {
			return err
		}
		p.section("Text of "+TextVar, results(more))
	}
	return p.err
}

// A printer formats text and keeps the first error of writing.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) f(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func (p *printer) section(title string, all []result) {
	p.f("\n### %s\n\nError for messages of about %d tokens: mean / 95th percentile in %%, and the ratio of all estimates to all exact counts.\n\n", title, messageTokens)
	p.f("| class | messages |")
	for _, r := range rules {
		p.f(" %s |", r.name)
	}
	p.f("\n|---|---|")
	for range rules {
		p.f("---|")
	}
	p.f("\n")
	for _, r := range all {
		p.f("| %s | %d |", r.class, r.messages)
		for _, e := range r.rules {
			p.f(" %.1f / %.0f, %.2f |", 100*e.mean(), 100*e.p95(), e.ratio)
		}
		p.f("\n")
	}
	p.f("| **average** | |")
	for i := range rules {
		p.f(" **%.1f / %.0f** |", 100*average(all, i, errors.mean), 100*average(all, i, errors.p95))
	}
	p.f("\n\nMean error for conversations of %d messages of %d to %d tokens, in %%.\n\n| class | conversations |", talkMessages, shortest, longest)
	for _, r := range rules {
		p.f(" %s |", r.name)
	}
	p.f("\n|---|---|")
	for range rules {
		p.f("---|")
	}
	p.f("\n")
	for _, r := range all {
		if len(r.rules[0].talks) == 0 {
			continue
		}
		p.f("| %s | %d |", r.class, len(r.rules[0].talks))
		for _, e := range r.rules {
			p.f(" %.1f |", 100*e.talkMean())
		}
		p.f("\n")
	}
	p.f("| **average** | |")
	for i := range rules {
		p.f(" **%.1f** |", 100*average(all, i, errors.talkMean))
	}
	p.f("\n")
}

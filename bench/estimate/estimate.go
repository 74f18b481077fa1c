// Package estimate measures token estimates against exact o200k counts, on
// text the estimator of convo was not fitted to.
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

// rules are convo's estimator and those in use elsewhere.
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
	messageTokens  = 200 // of a message
	talkMessages   = 25  // of a conversation
	shortest       = 8   // tokens of a message in a conversation
	longest        = 600
	enoughMessages = 3 // of a class, to be quoted
)

// An errors is how far a rule was off, relative to the exact count.
type errors struct {
	messages, talks []float64
	ratio           float64 // of all estimates to all exact counts
}

func (e errors) mean() float64     { return mean(e.messages) }
func (e errors) p95() float64      { return quantile(e.messages, 0.95) }
func (e errors) talkMean() float64 { return mean(e.talks) }

// A result is what one class of text gave, rule by rule.
type result struct {
	class    string
	messages int
	bytes    int
	rules    []errors
}

// measure counts the texts of a class in messages of about 200 tokens, and in
// conversations of 25 messages of 8 to 600 tokens. Texts that are not UTF-8
// are passed over.
func measure(c class) result {
	enc := bpe.O200k()
	r := result{class: c.name, rules: make([]errors, len(rules))}
	rng := rand.New(rand.NewPCG(5, 7))
	sums := make([]float64, len(rules))
	talk := make([]float64, len(rules))
	var exact, talkExact float64
	talked := 0
	var ids []uint32
	// pieces cuts text into messages of as many tokens as size says.
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

// next is the byte of text at i; a space after its end.
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

// average is the mean over the classes, each weighing the same.
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

// TextVar names the environment variable with a directory of more text, a
// directory for each class: the held-out half that internal/gen/heuristic
// writes, say.
const TextVar = "CONVO_ESTIMATE_TEXT"

// Write prints the errors of the estimates as Markdown. Text: what Go brought
// to this machine (its standard library, the module cache), seeded generators,
// the Declaration of Human Rights in 57 languages, and what TextVar names.
// With quick it reads less of each.
func Write(w io.Writer, quick bool) error {
	limit := 4 << 20
	if quick {
		limit = 256 << 10
	}
	p := printer{w: w}
	p.section("Text at hand", results(atHand(limit)))
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

// A printer keeps the first error of writing.
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
	p.f("\n### %s\n\nError in messages of about %d tokens, mean / 95th percentile in %%, and the ratio of all estimates to the exact count.\n\n", title, messageTokens)
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
	p.f("\n\nError over a conversation of %d messages of %d to %d tokens, mean in %%.\n\n| class | conversations |", talkMessages, shortest, longest)
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

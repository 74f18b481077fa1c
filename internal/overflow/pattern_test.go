package overflow

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/long"
)

// A pair is an expression as this package reads it, and as package regexp does.
type pair struct {
	text   string
	ours   *pattern
	oracle *regexp.Regexp
}

var pairs = sync.OnceValue(func() (all []pair) {
	figures := regexp.MustCompile(`#([lpot])`)
	for _, s := range append(expressions(), figureTexts[:]...) {
		all = append(all, pair{s, compile(s), regexp.MustCompile(figures.ReplaceAllString(s, "(?P<$1>"+number+")"))})
	}
	return all
})

// expressions are those of this package that name no numbers, and a few with what is next to
// the rules of those.
func expressions() []string {
	var all []string
	for _, e := range []*expression{&answerName, &answerExceeds, &otherSubject, &fieldBefore, &otherUnit, &tooLargeStatus, &address} {
		all = append(all, e.text)
	}
	return append(all,
		`a{2,5}b`, `(?:ab?|c)+d`, `[^a-z]*?b`, `x.{0,3}?y`, `(?:a|ab)(?:c|bcd)`, `-[a-]+$`, `\b`, `^`,
	)
}

// checkPatterns checks that each expression finds in a text what package regexp finds.
func checkPatterns(t *testing.T, text string) {
	t.Helper()
	for _, p := range pairs() {
		want := p.oracle.FindStringSubmatchIndex(text)
		m, ok := p.ours.find(text, 0)
		if !ok {
			if want != nil {
				t.Fatalf("%s finds nothing in %q, and regexp %v", p.text, text, want)
			}
			continue
		}
		got := []int{m.from, m.to}
		for _, name := range p.oracle.SubexpNames()[1:] {
			at := 2 * strings.Index(figureNames, name)
			got = append(got, m.figures[at], m.figures[at+1])
		}
		require.Equal(t, want, got, "%s in %q", p.text, text)
		require.Contains(t, text, p.ours.word)
	}
}

// Texts are published errors, and random ones made of what the expressions have in them.
func TestPatterns(t *testing.T) {
	var pieces []string
	for _, b := range bodies(t) {
		text := plainText(b.Text)
		checkPatterns(t, text)
		checkPatterns(t, b.Text)
		for n := range long.Or(1, 3) {
			checkPatterns(t, text[len(text)*(n+1)/4:])
		}
	}
	for _, p := range pairs() {
		pieces = append(pieces, regexp.MustCompile(`[a-z_]+`).FindAllString(p.text, -1)...)
	}
	pieces = append(pieces, " ", " ", " ", "1", "12,000", "3.5k", "4m", "0", "_", ".", ":", "(", ")", "+", ">", "=", "`", "é", "\xff", "\n", "-", "[[", "]]", "http://", "https://a b", "413", "{", "}", "A")
	r := rand.New(rand.NewPCG(1, 2))
	rounds := long.Or(500, 3_000)
	for range rounds {
		var b strings.Builder
		if r.IntN(2) == 0 { // an expression without its signs is nearly a match
			text := pairs()[r.IntN(len(pairs()))].text
			for _, sign := range []string{"(?:", ")?", ")", "?", `\`, "{0,40}", "|"} {
				text = strings.ReplaceAll(text, sign, "")
			}
			for _, name := range figureNames {
				text = strings.ReplaceAll(text, "#"+string(name), []string{"7", "1,234", "12.5k", "3m", "", "9k9"}[r.IntN(6)])
			}
			b.WriteString(text)
		}
		for range r.IntN(12) {
			b.WriteString(pieces[r.IntN(len(pieces))])
			b.WriteString([]string{"", " "}[r.IntN(2)])
		}
		checkPatterns(t, b.String())
	}
}

func FuzzPatterns(f *testing.F) {
	f.Add("this model's maximum context length is 8,192 tokens, however you requested 9000 tokens (1k in the messages, 500 for the completion)")
	f.Add("max_tokens must be less than 4.5k \xff é bytes")
	f.Add("input tokens 12 cannot exceed the total tokens limit 1_0")
	f.Fuzz(checkPatterns)
}

// replace does what package regexp does.
func TestPattern_Replace(t *testing.T) {
	oracle := regexp.MustCompile(address.text)
	for _, text := range []string{"", "none", "https://a/b?c=d", "at http://x (https://y) and", "http://", "http://a\thttp://b http://c"} {
		assert.Equal(t, oracle.ReplaceAllString(text, " "), address.pattern().replace(text, " "))
	}
}

// The time for a text that was made to take long is about that of any other of its length.
func TestPatterns_Hostile(t *testing.T) {
	for _, piece := range []string{"1", "1,", "max_tokens ", "context length 1", "names ", "a", "11k ", "https://", "prompt_tokens (1"} {
		text := strings.Repeat(piece, maxErrorSum/len(piece))
		e := &providerError{text: text}
		begun := time.Now()
		e.isOverflow()
		e.figures()
		t.Logf("%q: %v", piece, time.Since(begun))
		checkSteps(t, text[:4<<10])
	}
}

// checkSteps checks that each search remembers no more places than its code and text have.
func checkSteps(t *testing.T, text string) {
	t.Helper()
	for _, p := range pairs() {
		r := run{pattern: p.ours, text: text}
		for at := range text {
			if r.try(0, at) {
				break
			}
		}
		splits := 0
		for _, i := range p.ours.code {
			if i.op == split {
				splits++
			}
		}
		assert.LessOrEqual(t, len(r.tried), splits*(len(text)+1), p.text)
	}
}

package bpetest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/long"
)

func Test_minimise(t *testing.T) {
	bad := func(s string) bool { return strings.Contains(s, "x") && strings.Contains(s, "y") }
	assert.Equal(t, "xy", minimise(strings.Repeat("ab", 50)+"x"+strings.Repeat("cd", 77)+"y"+strings.Repeat("e", 9), bad))
}

// A mistake of an encoder is reported, with the shortest text that shows it.
func TestComparison_Differs(t *testing.T) {
	slow, err := Cl100k()
	require.NoError(t, err)
	c := &Comparison{Ours: encoder{slow.IDs}, Tokens: slow.Tokens(), IDs: slow.IDs}
	assert.Empty(t, c.Differs("It's 15 o'clock"))
	c.Ours = encoder{func(text string) []uint32 { return slow.IDs(strings.ReplaceAll(text, "clock", "Clock")) }}
	assert.Contains(t, c.Differs("It's 15 o'clock"), "ids of 15 bytes")
	assert.Contains(t, c.minimal("It's 15 o'clock"), `of "clock"`)
}

// An encoder is an Encoder made from a function.
type encoder struct{ ids func(text string) []uint32 }

func (e encoder) Append(dst []uint32, text string) []uint32 { return append(dst, e.ids(text)...) }

func (e encoder) Count(text string) int { return len(e.ids(text)) }

// The bytes of each token merge to that token.
func TestSlow_Merge(t *testing.T) {
	for _, load := range []func() (*Slow, error){Cl100k, O200k} {
		slow, err := load()
		require.NoError(t, err)
		for id, token := range slow.Tokens() {
			if id%long.Or(10, 1) != 0 {
				continue
			}
			if ids := slow.Merge(token); len(ids) != 1 || ids[0] != uint32(id) {
				t.Fatalf("%s: %q is %d and merges to %d", slow.Name, token, id, ids)
			}
		}
	}
}

// The pattern is interpreted as package regexp would: an earlier alternative is
// preferred, and a repetition takes all it can and backtracks when it must.
func Test_compile(t *testing.T) {
	classes, err := Classes()
	require.NoError(t, err)
	for _, tt := range []struct {
		pattern, text string
		want          int // -1: no match
	}{
		{`a|ab`, "ab", 1},
		{`a?ab`, "ab", 2},
		{`a*ab`, "aaab", 4},
		{`[^ab]+`, "cdéa", 3},
		{`\p{N}{1,3}`, "1٣²4", 3},
		{`\p{Lu}\p{Lt}+`, "AǅB", 3},
		{`[\p{Ll}\p{M}]+`, "ae\u0301A", 3},
		{`\p{Lm}\p{Lo}+`, "中ʰa", 2},
		{`(?i:'s|'ll)`, "'ſ", 2},
		{`(?i:'s|'ll)`, "'Ll", 3},
		{`'s`, "'S", -1},
		{`a(?i:'s)?b`, "ab", 2},
		{`\s+(?!\S)`, " \u3000\u00a0x", 2},
		{`\s+(?!\S)`, "  ", 2},
		{`\s+(?!\S)`, " x", -1},
		{`\s*[\r\n]+`, " \n \r\n ", 5},
	} {
		m, err := compile(tt.pattern, classes)
		require.NoError(t, err)
		end := -1
		m([]rune(tt.text), 0, func(at int) bool { end = at; return true })
		assert.Equal(t, tt.want, end, "%s of %q", tt.pattern, tt.text)
	}
	for _, pattern := range []string{`a.b`, `(a)`, `a)`, `(?i:a`, `\d`, `[a`, `a{2}`, `**`, `^a`, `(?=a)`, `\p{Lu}`} {
		_, err := compile(pattern, classes)
		assert.Error(t, err, pattern)
	}
}

// A damaged vocabulary file is an error.
func TestSlow_load(t *testing.T) {
	for name, data := range map[string][]byte{
		"short":                make([]byte, 100),
		"cut":                  append([]byte{255, 255, 0, 0}, make([]byte, 400)...),
		"parts with later ids": append([]byte{2, 1, 0, 0}, append(make([]byte, 256), 255, 255, 255, 255, 255)...),
	} {
		_, err := readTokens(data)
		assert.Error(t, err, name)
	}
	s := &Slow{Name: "cl100k_base", Published: "another"}
	assert.ErrorContains(t, s.load("cl100k.bin"), "SHA-256")
}

package text

import (
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestValid(t *testing.T) {
	assert.Equal(t, "naïve 今", Valid("naïve 今"))
	assert.Equal(t, "a\uFFFDb", Valid("a\xff\xfeb"), "one replacement for a run")
	assert.Zero(t, testing.AllocsPerRun(10, func() { Valid("naïve") }))
}

func TestFloorAndCeil(t *testing.T) {
	s := "a今b" // bytes 1 to 3 are one character
	for i, want := range []struct{ floor, ceil int }{{0, 0}, {1, 1}, {1, 4}, {1, 4}, {4, 4}, {5, 5}} {
		assert.Equal(t, want.floor, Floor(s, i), i)
		assert.Equal(t, want.ceil, Ceil(s, i), i)
	}
	assert.Equal(t, 5, Floor(s, 100))
}

func TestPrefix(t *testing.T) {
	runes := func(s string) int { return utf8.RuneCountInString(s) }
	s := strings.Repeat("a今", 50)
	for limit := range 120 {
		n := Prefix(s, limit, runes(s), runes)
		assert.True(t, utf8.ValidString(s[:n]), limit)
		assert.LessOrEqual(t, runes(s[:n]), max(limit, 1))
	}
	assert.Equal(t, 3, Prefix("今b", 0, 2, runes), "at least one character")
	assert.Zero(t, Prefix("", 5, 0, runes))
	assert.Equal(t, len(s), Prefix(s, 100, 100, runes))
}

func TestIsASCII(t *testing.T) {
	assert.True(t, IsASCII(""))
	s := strings.Repeat("a", 40) + "\x7f"
	for i := range len(s) {
		assert.True(t, IsASCII(s[i:]))
		for _, c := range []string{"\x80", "é", "\xff"} {
			assert.False(t, IsASCII(s[:i]+c+s[i:]), "%d", i)
			assert.False(t, IsASCII(s[:i]+c))
		}
	}
}

func TestBorders(t *testing.T) {
	for _, c := range []struct {
		s             string
		n             int
		before, after int
	}{
		{"", 0, 0, 0},
		{"abc", 0, 0, 0},
		{"abc", -1, 0, 0},
		{"abc", 9, 3, 3},
		{strings.Repeat("x", 80), 40, 40, 40},
		{strings.Repeat("x", 38) + " " + strings.Repeat("x", 3) + " " + strings.Repeat("x", 37), 40, 39, 43},
		{strings.Repeat("x", 37) + "\n  " + strings.Repeat("x", 3) + " \n" + strings.Repeat("x", 37), 40, 38, 45},
		{strings.Repeat("x", 20) + "\n" + strings.Repeat("x", 59), 40, 40, 40},
		{strings.Repeat("今", 20), 31, 30, 33},
	} {
		assert.Equal(t, c.before, BorderBefore(c.s, c.n), "before %d of %q", c.n, c.s)
		assert.Equal(t, c.after, BorderAfter(c.s, c.n), "after %d of %q", c.n, c.s)
	}
}

func TestIsBase64(t *testing.T) {
	for s, want := range map[string]bool{"": true, "YQ==": true, "YWI=": true, "YWJj": true, "YW+/": true, "YQ": false, "Y===": false, "YW-_": false, "YW==YQ==": false, "Y Q=": false} {
		assert.Equal(t, want, IsBase64(s), s)
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -999: "-999", -1000: "-1,000", 1234567: "1,234,567", math.MinInt64: "-9,223,372,036,854,775,808"} {
		assert.Equal(t, want, Grouped(n))
	}
	assert.Equal(t, "1 entry", Counted(1, "entry", "entries"))
	assert.Equal(t, "1,000 entries", Counted(1000, "entry", "entries"))
}

func TestShorten(t *testing.T) {
	assert.Equal(t, "né", Shorten("né", 3))
	assert.Equal(t, "n...", Shorten("née", 2), "between characters")
	assert.Equal(t, "né...", ShortenRunes("née", 2))
	assert.Equal(t, "née", ShortenRunes("née", 3))
	assert.Equal(t, "n… (4 bytes)", Abbreviate("née", 2))
	assert.Equal(t, "a, b, … (2 more)", AbbreviateList([]string{"a", "b", "c", "d"}, ", ", 2))
	assert.Equal(t, "a b c", OneLine(" a\n\tb  c "))
}

func TestSentence(t *testing.T) {
	bytes := func(s string) int { return len(s) }
	assert.Equal(t, "One. Two.", Sentence("One. Two.", 9, bytes))
	assert.Equal(t, "One. Two.", Sentence("One. Two. Three more words.", 14, bytes))
	assert.Equal(t, "No sentence", Sentence("No sentence ends here", 12, bytes), "with a word")
}

func TestJoin(t *testing.T) {
	type name string
	assert.Equal(t, "a--b", Join(slices.Values([]name{"a", "", "b"}), "-"))
	assert.Empty(t, Join(slices.Values([]name(nil)), "-"))
}

package markers_test

import (
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo/internal/markers"
	"github.com/stretchr/testify/assert"
)

type words string

func TestWithoutBytes(t *testing.T) {
	parts := []any{words("one "), 1, words("two "), words("three "), 2, words("four"), words("five")}
	for _, tt := range []struct {
		from, to int
		want     []any
	}{
		{2, 3, []any{words("on\n[cut: 1 bytes left out, kept at x]\n "), 1, words("two "), words("three "), 2, words("four"), words("five")}},
		{4, 8, []any{words("one "), 1, words("\n[cut: 4 bytes left out, kept at x]\n"), words("three "), 2, words("four"), words("five")}},
		{5, 9, []any{words("one "), 1, words("t\n[cut: 4 bytes left out, kept at x]\nhree "), 2, words("four"), words("five")}},
		{5, 15, []any{words("one "), 1, words("t\n[cut: 10 bytes left out, kept at x]\n"), 2, words("our"), words("five")}},
		{0, 22, []any{words("\n[cut: 22 bytes left out, kept at x]\n"), 1, 2}},
	} {
		assert.Equal(t, tt.want, markers.WithoutBytes[words](parts, tt.from, tt.to, "x"))
	}
}

func TestWithoutMiddle(t *testing.T) {
	text := words(strings.Repeat("a line\n", 30))
	assert.Equal(t, []any{text[:56] + "\n[cut: 135 bytes left out]\n" + text[191:], 5}, markers.WithoutMiddle[words]([]any{text, 5}, 80, ""))
	assert.Equal(t, []any{"other", words("\n[cut: 210 bytes left out]\n")}, markers.WithoutMiddle[words]([]any{"other", text[:70], text[70:]}, 0, ""))
}

func TestCutter(t *testing.T) {
	type opaque string
	c := markers.Cutter[words, any]{
		Count: func(s string) int64 { return int64(len(s)) },
		Opaque: func(p any) (json string, label func() string) {
			o, ok := p.(opaque)
			if !ok {
				return "", nil
			}
			return string(o), func() string { return "block" }
		},
	}
	long := words(strings.Repeat("a line\n", 30))
	short, ok := c.Cut([]any{long, 5}, 100, "x")
	assert.True(t, ok)
	assert.Equal(t, []any{long[:44] + "\n[cut: 152 bytes left out, kept at x]\n" + long[196:], 5}, short)
	least := c.Least([]any{long, 5}, "x")
	assert.EqualValues(t, len(markers.Cut(210, "x")), least)
	short, ok = c.Cut([]any{long, 5}, least, "x")
	assert.True(t, ok)
	assert.Equal(t, []any{words(markers.Cut(210, "x")), 5}, short)
	same, ok := c.Cut([]any{long, 5}, least-1, "x")
	assert.False(t, ok, "the marker alone is longer")
	assert.Equal(t, []any{long, 5}, same)

	// The largest opaque part goes first, and texts stay if that is enough.
	small, large := opaque(strings.Repeat("s", 50)), opaque(strings.Repeat("l", 300))
	marker := words("[block]\n[cut: 300 bytes left out]\n")
	short, ok = c.Cut([]any{long[:70], small, large, 5}, 200, "")
	assert.True(t, ok)
	assert.Equal(t, []any{long[:70], small, marker, 5}, short)
	assert.EqualValues(t, len(markers.Cut(210+len(markers.Opaque("block", string(large), "")), "")), c.Least([]any{long, large, 5}, ""))
}

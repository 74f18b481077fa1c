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

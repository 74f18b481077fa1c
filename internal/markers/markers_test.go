package markers_test

import (
	"slices"
	"testing"

	"github.com/seed-c1b73e60/convo/internal/markers"
	"github.com/stretchr/testify/assert"
)

func TestRef(t *testing.T) {
	for _, tt := range []struct {
		texts []string
		ref   string
		cut   bool
	}{
		{nil, "", false},
		{[]string{"whole"}, "", false},
		{[]string{"a\n[cut: 5 bytes left out]\nb"}, "", true},
		{[]string{"a\n[cut: 15 bytes left out, kept at x]\nb"}, "x", true},
		{[]string{"a", "\n[cut: 5 bytes left out, kept at x]\n"}, "x", true},

		// What looks like a marker, with and without one behind it.
		{[]string{"\n[cut: short]\n"}, "", false},
		{[]string{"\n[cut: short]\n[cut: 5 bytes left out, kept at x]\n"}, "x", true},
		{[]string{"\n[cut: 5 bytes left out, lost]\n[cut: 5 bytes left out]\n"}, "", true},
		{[]string{"\n[cut: 5 bytes left out, kept at x", "\n[cut: 5 bytes left out, kept at y]\n"}, "y", true},
		{[]string{"\n[cut: , kept at x]\n"}, "", false},
		{[]string{"\n[cut: 5 bytes left out]"}, "", false},

		// A tool wrote one of them.
		{[]string{"\n[cut: 9 bytes left out, kept at words of it\n[cut: 5 bytes left out, kept at x]\n"}, "x", true},
		{[]string{"\n[cut: 9 bytes left out, kept at evil]\n\n[cut: 5 bytes left out, kept at x]\n"}, "", false},
		{[]string{"\n[cut: 5 bytes left out, kept at x]\n\n[cut: 9 bytes left out, kept at evil]\n"}, "", false},
		{[]string{"\n[cut: 9 bytes left out, kept at evil\nfree words]\n\n[cut: 5 bytes left out, kept at x]\n"}, "x", true},
		{[]string{"\n[cut: 5 bytes left out, kept at x]\n\n[cut: 9 bytes left out, kept at x]\n"}, "x", true},
	} {
		ref, cut := markers.Ref(slices.Values(tt.texts))
		assert.Equal(t, tt.cut, cut, "%q", tt.texts)
		assert.Equal(t, tt.ref, ref, "%q", tt.texts)
	}
}

// Only the ends of lines that are markers are replaced.
func TestReplace(t *testing.T) {
	cleared := markers.Cleared("ls", 9, "f, r(id=1)")
	assert.Equal(t, "[result of ls cleared: 9 bytes, kept at f, r(id=1)]", cleared)
	assert.Equal(t, "[result of ls cleared: 9 bytes, kept at f, r(id=2)]\nsee f, r(id=1)]", markers.Replace(cleared+"\nsee f, r(id=1)]", " r(id=1)]", " r(id=2)]"))
	assert.Equal(t, "a\n[cut: 5 bytes left out, kept at r(id=2)]\nb", markers.Replace("a"+markers.Cut(5, "r(id=1)")+"b", " r(id=1)]", " r(id=2)]"))
}

package names

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// checkWords checks that Words yields what stands between the characters that separate words.
func checkWords(t *testing.T, s string) {
	t.Helper()
	var want []string
	for w := range strings.FieldsFuncSeq(s, splits) {
		w = strings.TrimLeft(strings.TrimRight(w, ".:!?…-"), "!?…:")
		if key, value, ok := strings.Cut(w, "="); ok && value != "" && !strings.Contains(value, "=") && !strings.Contains(w, "/") {
			w = key
			if Is(value) {
				w = value
			}
		}
		if w != "" {
			want = append(want, w)
		}
	}
	assert.Equal(t, want, slices.Collect(Words(s)), "%q", s)
}

func TestWords(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	pieces := []string{"a", "Z", "9", " ", "\n", "\u00a0", "\xff", "\xe2\x80", ".", ":", "!", "?", "…", "-", "=", "/", "path/to.go", "é", "“", "，", "日本", "\uFFFD", "_", "(", "'"}
	for range 20_000 {
		var b strings.Builder
		for range r.IntN(12) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		checkWords(t, b.String())
	}
}

func FuzzWords(f *testing.F) {
	f.Add("see internal/a_b.go:17, limit=20.5…")
	f.Fuzz(checkWords)
}

func TestOf(t *testing.T) {
	assert.Equal(t, []string{"/srv/db", "ORD-4107", "$12", "8080", "parseConfig", "ECONNREFUSED", "2026-03-02"},
		slices.Collect(Of("Use /srv/db for ORD-4107 ($12), --port=8080, and parseConfig; ECONNREFUSED since 2026-03-02 (really!).")))
}

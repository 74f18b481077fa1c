package bpe_test

import (
	"testing"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo/internal/bpetest"
)

// FuzzCount compares ids and counts of any text with the slow tokenizer's.
func FuzzCount(f *testing.F) {
	for _, s := range bpetest.HardCases {
		f.Add(s)
	}
	encodings := encodings(f)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<11 {
			return // the slow tokenizer is quadratic
		}
		for _, e := range encodings {
			if how := e.comparison().Differs(text); how != "" {
				t.Fatalf("%s: %s", e.slow.Name, how)
			}
			ids := e.fast.Append(nil, text)
			if n := len(ids); n > 3*len(text) || (n == 0) != (text == "") {
				t.Fatalf("%s: %d bytes have %d ids", e.slow.Name, len(text), n)
			}
			if got := decode(e.fast, ids); utf8.ValidString(text) && got != text {
				t.Fatalf("%s: the ids decode to %q", e.slow.Name, got)
			}
		}
	})
}

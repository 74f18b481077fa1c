package wire

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

var (
	vendors   = regexp.MustCompile(`^([a-z]+(-[a-z]+)*\.){1,2}([a-z])`) // "us.anthropic." and the next letter
	revisions = regexp.MustCompile(`(-\d{8}|-\d{4}-\d{2}-\d{2}|-v\d+:\d+|-\d{3})$`)
)

// checkModel checks what is taken off a name, by regular expressions.
func checkModel(t *testing.T, name string) {
	t.Helper()
	if got, want := withoutVendor(name), vendors.ReplaceAllString(name, "$3"); got != want {
		t.Fatalf("%q without its vendor is %q, want %q", name, got, want)
	}
	if got, want := withoutRevision(name), revisions.ReplaceAllString(name, ""); got != want {
		t.Fatalf("%q without its revision is %q, want %q", name, got, want)
	}
}

func TestPlainModel(t *testing.T) {
	pieces := strings.Fields("us . - -v a gov anthropic . - 2026 08 07 -2026-09-01 -20260901 -001 -v1:0 : 1 :2 0 é A _ opus x")
	r := rand.New(rand.NewPCG(1, 1))
	for range 50_000 {
		var b strings.Builder
		for range r.IntN(8) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		checkModel(t, b.String())
	}
}

func FuzzPlainModel(f *testing.F) {
	f.Add("us.anthropic.claude-opus-4-8-20260901-v1:0")
	f.Add("-2026-09-01")
	f.Fuzz(checkModel)
}

package names

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

// slowNames returns the names of a text as the rules say, word by word.
func slowNames(s string) (list []string) {
	for w := range strings.FieldsFuncSeq(s, splits) {
		w = strings.TrimLeft(strings.TrimRight(w, ".:!?…-"), "!?…:")
		if key, value, ok := strings.Cut(w, "="); ok && value != "" && !strings.Contains(value, "=") && !strings.Contains(w, "/") {
			w = key
			if slowIs(value) {
				w = value
			}
		}
		if slowIs(w) {
			list = append(list, w)
		}
	}
	return list
}

func slowIs(w string) bool {
	if len(w) < 3 || len(w) > longest {
		return isPath(w)
	}
	var digits, lower, upper, letters, signs, humps int
	var last rune
	for i, r := range w {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case r >= 'a' && r <= 'z':
			lower++
			letters++
		case r >= 'A' && r <= 'Z':
			upper++
			letters++
			if last >= 'a' && last <= 'z' {
				humps++
			}
		case unicode.IsLetter(r):
			letters++
		case i > 0 && i < len(w)-1 && strings.ContainsRune("_/.:@#$€£¥%~+-&?", r):
			signs++
		}
		last = r
	}
	isWide := utf8.RuneCountInString(w) < len(w)
	switch {
	case isWide && letters > 24:
		return false
	case digits > 0 && letters > 0, humps > 0:
		return true
	case digits >= 3 || digits > 0 && (signs > 0 || strings.ContainsAny(w, "$€£¥%")):
		return true
	case letters == 0:
		return false
	case strings.ContainsAny(w, "_@#"):
		return true
	case strings.Contains(w, "/"):
		return strings.Count(w, "/") > 1 || strings.Contains(w, ".") || strings.HasPrefix(w, "/")
	case strings.Contains(w, ".") && !strings.Contains(w, ".."):
		_, after, _ := strings.Cut(w, ".")
		return after != "" && len(w) > 4
	}
	return upper >= 3 && letters == upper
}

func checkOf(t *testing.T, s string) {
	t.Helper()
	assert.Equal(t, slowNames(s), slices.Collect(Of(s)), "%q", s)
}

func TestOf_AsByWords(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	pieces := []string{"a", "bcd", "efghijklm", "Z", "ABC", "9", "12", " ", " ", "\n", "\u00a0", "\xff", "\xe2\x80", ".", ":", "!", "?", "…", "-", "=", "/", "path/to.go",
		"é", "“", "，", "日本", "\uFFFD", "_", "(", "'", "{", "~", "\x7f", "$", "€", "%", "@", "&", "+", "^", "..", strings.Repeat("x", 119), strings.Repeat("a/", 70), strings.Repeat("漢字", 12)}
	for range 50_000 {
		var b strings.Builder
		for range r.IntN(14) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		checkOf(t, b.String())
	}
}

func FuzzOf(f *testing.F) {
	f.Add("see internal/a_b.go:17, limit=20.5…")
	f.Fuzz(checkOf)
}

func TestOf(t *testing.T) {
	assert.Equal(t, []string{"/srv/db", "ORD-4107", "$12", "8080", "parseConfig", "ECONNREFUSED", "2026-03-02"},
		slices.Collect(Of("Use /srv/db for ORD-4107 ($12), --port=8080, and parseConfig; ECONNREFUSED since 2026-03-02 (really!).")))
}

func TestIndex(t *testing.T) {
	var x Index
	own, again := x.Read("newest ORD-1 ORD-2", Source{Place: 2, Weight: 4, Said: true})
	assert.Equal(t, []int{2, 0}, []int{own, again})
	own, again = x.Read("ORD-2 and ORD-1, ORD-3 in a/b/c.go", Source{Place: 1, Weight: 2, Paths: true})
	assert.Equal(t, []int{4, 2}, []int{own, again})
	own, again = x.Read("ORD-3", Source{Place: 0, Weight: 2})
	assert.Equal(t, []int{1, 0}, []int{own, again}, "a result does not count as said")
	assert.Equal(t, []string{"a/b/c.go"}, x.Paths(9))
	assert.Equal(t, []string{"ORD-1", "ORD-2", "ORD-3", "a/b/c.go"}, slices.Collect(x.Choose(9)))
	assert.Equal(t, []string{"ORD-1", "ORD-3", "a/b/c.go"}, slices.Collect(x.Choose(1)), "one of each kind")
	x.Remove("(ORD-2)")
	assert.Equal(t, []string{"ORD-1", "ORD-3", "a/b/c.go"}, slices.Collect(x.Choose(9)))

	for i := range mostSeen + 10 {
		x.Read("N"+strings.Repeat("x", i%7)+string(rune('0'+i%10))+strings.Repeat("y", i/70%50)+strings.Repeat("z", i/3500), Source{})
	}
	assert.LessOrEqual(t, x.n, mostSeen)
}

// An Index that grows finds the names that it had.
func TestIndex_Grows(t *testing.T) {
	const n = 5000
	var x Index
	for round := range 2 {
		for i := range n {
			_, again := x.Read(fmt.Sprint("ORD-", i), Source{Place: 1 - round, Said: true})
			assert.Equal(t, round, again)
		}
		assert.Equal(t, n, x.n)
	}
	for i := range n - 1 {
		x.Remove(fmt.Sprint("ORD-", i))
	}
	assert.Equal(t, []string{fmt.Sprint("ORD-", n-1)}, slices.Collect(x.Choose(n)))
}

func BenchmarkRead(b *testing.B) {
	prose := strings.Repeat("the quick brown fox jumps over the lazy dog, and then it sleeps. Nothing else was seen ", 12)
	code := strings.Repeat("func (s *logBook) readAll(n int) error {\n\tif err := s.next[17]; err != nil {\n\t\treturn fmt.Errorf(\"read %d\", n)\n\t}\n}\n", 9)
	for name, text := range map[string]string{"prose": prose, "code": code} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			var x Index
			for b.Loop() {
				x.Read(text, Source{})
			}
		})
	}
}

func TestSince(t *testing.T) {
	var s Since
	s.Leave("/etc/passwd")
	all := func(string) bool { return true }
	assert.Empty(t, s.Line([]string{"old.txt"}, all), "nothing was used")
	s.Use("see src/main.go, /etc/hosts and a_b_c in src/main.go")
	s.Use("and go.mod")
	s.Keep("a_b_c is here")
	s.Leave("a_b_c, go.mod and src/main.go are not")
	assert.Equal(t, "src/main.go go.mod old.txt", s.Line([]string{"old.txt"}, all), "as they were used first, and then the old ones")
	assert.Equal(t, "src/main.go", s.Line([]string{"old.txt"}, func(line string) bool { return len(line) < 14 }))
	s.Keep("src/main.go and go.mod")
	assert.Empty(t, s.Line([]string{"old.txt"}, all), "nothing is lost")
}

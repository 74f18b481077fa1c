package wire

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/long"
)

// Names are checked without regular expressions, because compiling one in a package
// variable would slow the start of every program. The checks agree with the patterns that
// the providers publish.
func TestNames_AgreeWithPatterns(t *testing.T) {
	single := regexp.MustCompile(`\s\s`)
	document := regexp.MustCompile(`^[\p{L}\p{N}\s()\[\]-]{1,200}$`)
	for _, tt := range []struct {
		name    string
		check   func(string) bool
		pattern func(string) bool
	}{
		{"document of Converse", validDocumentName, func(s string) bool { return document.MatchString(s) && !single.MatchString(s) }},
		{"tool of Converse, item of Responses", openAIToolNames, regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`).MatchString},
		{"function of Responses", anthropicToolNames, regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`).MatchString},
		{"function of Chat Completions", geminiNameBytes, regexp.MustCompile(`^[a-zA-Z0-9_.:-]{1,64}$`).MatchString},
		{"author", isMadeOfChatName, regexp.MustCompile(`^[^\s<|\\/>]+$`).MatchString},
	} {
		t.Run(tt.name, func(t *testing.T) {
			alphabet := []string{"a", "Z", "0", "9", "_", "-", ".", ":", " ", "  ", "\t", "\v", "\n", "\u00a0", "\u2028", "é", "中", "٣", "Ⅻ", "²", "\u0301", "(", ")", "[", "]", "<", ">", "|", "\\", "/", "\xff", "😀", ""}
			r := rand.New(rand.NewPCG(1, 8))
			valid := 0
			for range long.Or(8_000, 100_000) {
				var s strings.Builder
				letters := alphabet[:1+r.IntN(len(alphabet))]
				for range []int{0, 1, 2, 3, 8, 62, 64, 65, 127, 129, 199, 200, 201}[r.IntN(13)] {
					s.WriteString(letters[r.IntN(len(letters))])
				}
				ok := tt.check(s.String())
				if ok != tt.pattern(s.String()) {
					t.Fatalf("%v for %q", ok, s.String())
				}
				if ok {
					valid++
				}
			}
			require.Greater(t, valid, long.Or(160, 2000), "too few are valid")
		})
	}
}

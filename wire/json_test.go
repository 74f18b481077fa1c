package wire

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// quoted is appendString, one rune after the other.
func quoted(s string) string {
	b := []byte{'"'}
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n' || r == '\r' || r == '\t':
			b = append(b, '\\', map[rune]byte{'\n': 'n', '\r': 'r', '\t': 't'}[r])
		case r < ' ':
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return string(append(b, '"'))
}

func TestAppendString(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"\"", "\\", "\n", "\r", "\t", "\x00", "\x1f", " ", "!", "#", "[", "]", "~", "\x7f", "\x80", "\xff", "é", "日本", "\u2028", "😀", "\xe6\x97", "a", "plain text of some length"}
	for range 20_000 {
		var b strings.Builder
		for range rng.IntN(12) {
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
		s := b.String()
		got := string(appendString([]byte("x"), s))
		require.Equal(t, "x"+quoted(s), got, "%q", s)
		assert.True(t, json.Valid([]byte(got[1:])), "%q", s)
	}
	for c := range 256 { // each byte, in each place of a word
		for place := range 9 {
			s := strings.Repeat("a", place) + string([]byte{byte(c)}) + strings.Repeat("b", 8)
			require.Equal(t, quoted(s), string(appendString(nil, s)), "%q", s)
		}
	}
}

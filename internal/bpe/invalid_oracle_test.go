package bpe_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// malformed are bytes that are no UTF-8, by what is wrong with them.
var malformed = map[string][]string{
	"overlong":           {"\xc0\x80", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x80\xaf", "\xe0\x9f\xbf", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf8\x80\x80\x80\xaf", "\xfc\x80\x80\x80\x80\xaf"},
	"surrogate":          {"\xed\xa0\x80", "\xed\xad\xbf", "\xed\xae\x80", "\xed\xbf\xbf", "\xed\xa0\xbd\xed\xb8\x80", "\xed\xb8\x80\xed\xa0\xbd"},
	"beyond U+10FFFF":    {"\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf7\xbf\xbf\xbf", "\xfb\xbf\xbf\xbf\xbf"},
	"truncated":          {"\xc3", "\xe4", "\xe4\xb8", "\xf0", "\xf0\x9f", "\xf0\x9f\x98", "\xe2\x80", "\xd0", "\xe3\x83"},
	"stray":              {"\x80", "\x80\x80", "\xbf\xbf\xbf", "\xfe\xff", "\xff\xfe", "\xa9", "\xed\xa0", "\xe4\x80\xc0"},
	"truncated and more": {"\xc3\xe4\xb8\xad", "\xe4\xb8\xc3\xa9", "\xf0\x9f\x98\xf0\x9f\x98\x80", "\xe3\x83\xe3\x83\xbc", "\xd0\xd0\xbe", "\xc3\xa9\xa9"},
}

// Every bad byte or sequence counts as the oracle counts it, wherever it
// stands: at every place of texts that each take another way through the code.
func TestOracle_InvalidUTF8(t *testing.T) {
	hosts := []string{
		"", "word", " word", "Hello, world!", "it's", "don't 'sx", "12345", "a1b2", "  \n  x", "\n\n", "!?/\n", "中文字", "о о", "ーー", "naïve café", "😀😁", "e\u0301",
		"internationalization of everything", "HTTPServer", "\u00a0\u3000", "ſ's", "a\tb\r\nc", "<|endoftext|>",
	}
	forEachOracle(t, func(t *testing.T, o *oracle) {
		n, step := 0, 1
		if raceDetector {
			step = 9
		}
		check := func(text string) {
			n++
			if how := o.differs(t, text); how != "" {
				t.Errorf("%s\nof %s", how, quoted(text))
			}
		}
		for _, host := range hosts {
			for i := range len(host) + 1 {
				for c := 0x80; c <= 0xff; c += step {
					check(host[:i] + string([]byte{byte(c)}) + host[i:])
				}
				for _, parts := range malformed {
					for _, part := range parts {
						check(host[:i] + part + host[i:])
					}
				}
				check(host[:i])
				check(host[i:])
			}
		}
		for c := range 0x100 {
			one := string([]byte{byte(c)})
			for _, text := range []string{one, one + one, one + "'s", "1" + one + "23", " " + one, one + "\n", strings.Repeat(one, 40)} {
				check(text)
			}
		}
		t.Logf("%d strings", n)
	})
}

// Long texts with bad bytes here and there, beyond the sizes at which an
// implementation changes its way of merging.
func TestOracle_InvalidUTF8Long(t *testing.T) {
	forEachOracle(t, func(t *testing.T, o *oracle) {
		rng := rand.New(rand.NewPCG(*oracleSeed, 3))
		for _, unit := range []string{"a", "ab", "中", "д", "😀", " ", "\n", "=", "7", "x1", "字テ"} {
			for _, n := range []int{60, 63, 64, 65, 127, 128, 129, 255, 256, 257, 700} {
				text := []byte(strings.Repeat(unit, n/len(unit)+1)[:n])
				assert.Empty(t, o.differs(t, string(text)), "%q, %d bytes", unit, n)
				for range 3 {
					text[rng.IntN(n)] = byte(0x80 + rng.IntN(0x80))
				}
				assert.Empty(t, o.differs(t, string(text)), fmt.Sprintf("%q, %d bytes, some bad", unit, n))
			}
		}
	})
}

package bpetest

import (
	"math/rand/v2"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/long"
)

// malformed holds invalid UTF-8 by what is wrong with it.
var malformed = map[string][]string{
	"overlong":           {"\xc0\x80", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x80\xaf", "\xe0\x9f\xbf", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf8\x80\x80\x80\xaf", "\xfc\x80\x80\x80\x80\xaf"},
	"surrogate":          {"\xed\xa0\x80", "\xed\xad\xbf", "\xed\xae\x80", "\xed\xbf\xbf", "\xed\xa0\xbd\xed\xb8\x80", "\xed\xb8\x80\xed\xa0\xbd"},
	"beyond U+10FFFF":    {"\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf7\xbf\xbf\xbf", "\xfb\xbf\xbf\xbf\xbf"},
	"truncated":          {"\xc3", "\xe4", "\xe4\xb8", "\xf0", "\xf0\x9f", "\xf0\x9f\x98", "\xe2\x80", "\xd0", "\xe3\x83"},
	"stray":              {"\x80", "\x80\x80", "\xbf\xbf\xbf", "\xfe\xff", "\xff\xfe", "\xa9", "\xed\xa0", "\xe4\x80\xc0"},
	"truncated and more": {"\xc3\xe4\xb8\xad", "\xe4\xb8\xc3\xa9", "\xf0\x9f\x98\xf0\x9f\x98\x80", "\xe3\x83\xe3\x83\xbc", "\xd0\xd0\xbe", "\xc3\xa9\xa9"},
}

// invalidUTF8 compares texts with every invalid byte and sequence at every
// position. The texts around them each take another path through the code.
func invalidUTF8(c *checks) {
	hosts := []string{
		"", "word", " word", "Hello, world!", "it's", "don't 'sx", "12345", "a1b2", "  \n  x", "\n\n", "!?/\n", "中文字", "о о", "ーー", "naïve café", "😀😁", "e\u0301",
		"internationalization of everything", "HTTPServer", "\u00a0\u3000", "ſ's", "a\tb\r\nc", "<|endoftext|>",
	}
	step := long.Or(9, 1)
	for _, host := range hosts {
		for i := range len(host) + 1 {
			for b := 0x80; b <= 0xff; b += step {
				c.check(host[:i] + string([]byte{byte(b)}) + host[i:])
			}
			for _, parts := range malformed {
				for _, part := range parts {
					c.check(host[:i] + part + host[i:])
				}
			}
			c.check(host[:i])
			c.check(host[i:])
		}
	}
	for b := range 0x100 {
		one := string([]byte{byte(b)})
		for _, text := range []string{one, one + one, one + "'s", "1" + one + "23", " " + one, one + "\n", strings.Repeat(one, 40)} {
			c.check(text)
		}
	}
}

// invalidLong compares long texts with a few invalid bytes. Their lengths are
// around and beyond those at which an implementation may merge in another way.
func invalidLong(c *checks) {
	rng := rand.New(rand.NewPCG(seed, 3))
	for _, unit := range []string{"a", "ab", "中", "д", "😀", " ", "\n", "=", "7", "x1", "字テ"} {
		for _, n := range []int{60, 63, 64, 65, 127, 128, 129, 255, 256, 257, 700} {
			text := []byte(strings.Repeat(unit, n/len(unit)+1)[:n])
			c.check(string(text))
			for range 3 {
				text[rng.IntN(n)] = byte(0x80 + rng.IntN(0x80))
			}
			c.check(string(text))
		}
	}
}

package bpetest

import (
	"math/rand/v2"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/long"
)

// HardCases are strings that tokenizers have been known to count wrong.
var HardCases = []string{
	"", " ", "a", "\n", "\x00", "\x7f", "a\x7fb", "\u0080", "\u0085",
	"\n \n", "\n    \n\n", "\n\n \n1", " \n", "\n ", "\r\n\r\n", " \r\n \t\n  x", "  x", "\t\tx", "x  ", "x \n", "x\n  ", "\u3000\u3000x", "\u00a0x", "\u2028\u2029x", " \u200bx", "\ufeffx",
	"I'm I'LL don'T we'Re", "'s't're've'm'll'd", "'S'T'RE'VE'M'LL'D", "''s", "'sx", "1's", "!'s", " 's", "\n's", "'ſ", "it'ſ", "it'ſt", "'ſ'ſ", "x's's", "IT'S", "'K", "e\u0301's", ".\u0301's", "..\u0301'll", "'r", "'l", "'v", "'",
	"1", "12", "123", "1234", "12345", "123456", "1234567", "a1b22c333d4444", "١٢٣٤٥", "½¾⅓Ⅳ", "1\u0661\u0967\uff11", "1,234,567.89",
	"HTTPServer", "aAaAaA", "AAAaaaAAA", "ǅǅaǅA", "ʰaʰAʰ", "ªºAa", "中A中a", "A中a中", "\u0301A\u0301a", "ÀÉà", "ДОм", "iPhoneX", "亚洲AV", "x亚洲AVs's",
	"/\n/", "x/\n\n/", "!/\r\n//\n", "//", "/", "/\n", "!\n\n", "!\r", ".\n\n\n", " .\n", "  .", "€/", "(a)", " (", "\u20dd!", "!\u0301", "a\u0301\u0302",
	"о\xd0", "ーー", "ー\xe3\x83", "оо", "中中中", "字", "한글", "กำ", "नि", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "\U0001f600\U0001f601", "\U00020000\U0002a6d6", "\U0010ffff", "\ue000", "\u0378", "\uffff",
	"\xff", "\x80\x80", "a\xffb", "\xc3", "\xc3\xa9", "\xa9\xc3", "\xe4\xb8", "\xed\xa0\x80", "\xf0\x9f\x98", "\xf4\x90\x80\x80", "\xc0\x80", "'\xff's", "1\xff2", " \xff", "\xff\n",
	"<|endoftext|>", "<|endofprompt|>a", "<|fim_prefix|>", "a<|im_start|>b", "<|endoftext",
	"{\"a\":[1,2,null]}", "func main() {\n\tx := 1\n}\n", "| a | b |\n|---|---|\n", "6f1ed002-ab5d-4bd8-9e1c-1b5c2a8f7a10", "dGhlIHF1aWNrIGJyb3duIGZveA==", "https://a.b/c?d=e&f=%20g#h",
	strings.Repeat("a", 130), strings.Repeat(" ", 130), strings.Repeat("\n", 130), strings.Repeat("=", 130), strings.Repeat("ab", 100), strings.Repeat("中", 50), strings.Repeat("д", 70), strings.Repeat("😀", 40), strings.Repeat("\xff", 60), strings.Repeat("0", 100), strings.Repeat("a ", 60), strings.Repeat(" \n", 40), strings.Repeat("aB", 70),
}

// alike compares many pieces that differ in a few bytes only. It finds a cache
// that tells pieces apart by a part of their bytes.
func alike(c *checks) {
	rng := rand.New(rand.NewPCG(seed, 4))
	letters := func(piece []byte) {
		for i := range piece {
			piece[i] = byte('a' + rng.IntN(26))
		}
	}
	n := long.Or(200, 2000)
	for _, size := range []int{6, 14, 21, 30} {
		piece := make([]byte, size)
		for start := 0; start < size; start += 8 {
			letters(piece)
			for range n {
				letters(piece[start:min(start+8, size)])
				c.check(string(piece))
			}
		}
	}
}

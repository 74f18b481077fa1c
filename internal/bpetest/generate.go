package bpetest

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A generator makes text of many kinds. The same seed gives the same text.
type generator struct {
	*rand.Rand
	tokens  []string            // the vocabulary
	scripts map[string][]string // tokens that are letters of one script
	judges  func(text string) bool
	kinds   []kind
}

// A kind makes a text of about n bytes.
type kind struct {
	name string
	text func(n int) string
}

// scriptTables lists the scripts of generated texts.
var scriptTables = []struct {
	name  string
	table *unicode.RangeTable
}{
	{"Latin", unicode.Latin}, {"Cyrillic", unicode.Cyrillic}, {"Greek", unicode.Greek}, {"Arabic", unicode.Arabic},
	{"Hebrew", unicode.Hebrew}, {"Devanagari", unicode.Devanagari}, {"Bengali", unicode.Bengali}, {"Tamil", unicode.Tamil},
	{"Thai", unicode.Thai}, {"Georgian", unicode.Georgian}, {"Armenian", unicode.Armenian}, {"Ethiopic", unicode.Ethiopic},
	{"Myanmar", unicode.Myanmar}, {"Khmer", unicode.Khmer}, {"Han", unicode.Han}, {"Hiragana", unicode.Hiragana},
	{"Katakana", unicode.Katakana}, {"Hangul", unicode.Hangul},
}

// newGenerator returns a generator of texts for c.
func newGenerator(c *Comparison, seed uint64) *generator {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0)), tokens: c.Tokens, scripts: map[string][]string{}, judges: c.judges}
	for _, token := range g.tokens {
		word := strings.TrimPrefix(token, " ")
		first, _ := utf8.DecodeRuneInString(word)
		if first < utf8.RuneSelf || !utf8.ValidString(word) {
			continue
		}
		for _, s := range scriptTables {
			if unicode.Is(s.table, first) {
				g.scripts[s.name] = append(g.scripts[s.name], token)
			}
		}
	}
	g.kinds = g.allKinds()
	return g
}

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

// repeat joins results of part until there are n bytes.
func repeat(n int, part func() string) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(part())
	}
	return b.String()
}

func (g *generator) soup(parts ...string) func(n int) string {
	return func(n int) string { return repeat(n, func() string { return pick(g, parts...) }) }
}

func (g *generator) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	return b
}

// runeOf returns a random code point of a table.
func (g *generator) runeOf(table *unicode.RangeTable) string {
	n := len(table.R16) + len(table.R32)
	i := g.IntN(n)
	if i < len(table.R16) {
		r := table.R16[i]
		return string(rune(r.Lo) + rune(r.Stride)*rune(g.IntN(int(r.Hi-r.Lo)/int(r.Stride)+1)))
	}
	r := table.R32[i-len(table.R16)]
	return string(rune(r.Lo) + rune(r.Stride)*rune(g.IntN(int(r.Hi-r.Lo)/int(r.Stride)+1)))
}

// anyRune returns a random code point that the oracle judges. Most are rare or
// unassigned.
func (g *generator) anyRune() string {
	for {
		limit := pick(g, 0x100, 0x800, 0x3000, 0x10000, 0x20000, int(unicode.MaxRune)+1)
		if r := rune(g.IntN(limit)); utf8.ValidRune(r) && g.judges(string(r)) {
			return string(r)
		}
	}
}

// script returns a function that makes words of a script: of tokens that begin
// with its letters, and of random letters.
func (g *generator) script(name string, table *unicode.RangeTable) func(n int) string {
	frequent := g.scripts[name]
	return func(n int) string {
		return repeat(n, func() string {
			var word strings.Builder
			for range 1 + g.IntN(4) {
				if len(frequent) > 0 && g.IntN(4) > 0 {
					word.WriteString(pick(g, frequent...))
				} else {
					word.WriteString(g.runeOf(table))
				}
			}
			return word.String() + pick(g, "", "", " ", " ", ", ", ". ", "\n", "。", "'s ", "1", "-")
		})
	}
}

func (g *generator) jsonText(n int) string {
	var value func(depth int) any
	value = func(depth int) any {
		switch k := g.IntN(9); {
		case k < 3 && depth > 0:
			object := map[string]any{}
			for range g.IntN(6) {
				object[pick(g, "id", "name", "userId", "created_at", "x", "Größe", "値")] = value(depth - 1)
			}
			return object
		case k < 4 && depth > 0:
			list := make([]any, g.IntN(6))
			for i := range list {
				list[i] = value(depth - 1)
			}
			return list
		case k < 5:
			return g.Float64() * 1000
		case k < 6:
			return g.IntN(1 << pick(g, 4, 10, 20, 30))
		case k < 7:
			return pick[any](g, true, false, nil)
		default:
			return pick(g, g.tokens...) + " " + pick(g, g.tokens...)
		}
	}
	return repeat(n, func() string {
		v, indent := value(4), pick(g, "", "  ", "\t")
		if indent == "" {
			text, _ := json.Marshal(v) // never fails for these types
			return string(text)
		}
		text, _ := json.MarshalIndent(v, "", indent)
		return string(text) + "\n"
	})
}

func (g *generator) uuids(n int) string {
	return repeat(n, func() string {
		b := g.bytes(16)
		return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]) + pick(g, "\n", " ", "\",\"")
	})
}

func (g *generator) repeats(n int) string {
	return repeat(n, func() string {
		unit := pick(g, "a", "A", " ", "\n", "\t", "\r\n", "=", "-", "/", "0", "'", "ab", "aB", "中", "д", "😀", "\u0301", "\xff", " a", "'s", pick(g, g.tokens...))
		return strings.Repeat(unit, 1+g.IntN(1+g.IntN(1+400/len(unit)))) + pick(g, "", "", "x", " ", "\n")
	})
}

// long makes long pieces that are not tokens. Each repeats a few units in random
// order, so that the order of merges matters. Pieces stay short enough for the
// oracle, whose time is quadratic.
func (g *generator) long(n int) string {
	return repeat(n, func() string {
		units := pick(g, []string{"a", "b"}, []string{"a", "e", "r", "s", "t"}, []string{"A", "B", "a"}, []string{" ", "\t"}, []string{"=", "-", "*"}, []string{".", ",", "\x00"},
			[]string{"о", "д", "н"}, []string{"ー", "ン", "の"}, []string{"中", "国", "人", "的"}, []string{"e", "é"}, []string{"\xff", "😀"}, []string{"\u00a0", "\u3000"})
		if g.IntN(3) == 0 {
			for range 26 {
				units = append(units, string(rune('a'+len(units)%26)))
			}
		}
		return repeat(1+g.IntN(1400), func() string { return pick(g, units...) }) + pick(g, "\n", "1", "x", " ")
	})
}

func (g *generator) tables(n int) string {
	return repeat(n, func() string {
		columns := 2 + g.IntN(4)
		var b strings.Builder
		for row := range 2 + g.IntN(5) {
			for range columns {
				cell := strings.TrimSpace(pick(g, g.tokens...))
				if row == 1 {
					cell = pick(g, "---", ":--", "--:", "------")
				}
				fmt.Fprintf(&b, "| %-*s ", g.IntN(14), strings.ToValidUTF8(cell, ""))
			}
			b.WriteString("|\n")
		}
		return b.String() + "\n"
	})
}

// cutInRunes makes text of many scripts with some bytes missing.
func (g *generator) cutInRunes(n int) string {
	return repeat(n, func() string {
		s := scriptTables[g.IntN(len(scriptTables))]
		text := g.script(s.name, s.table)(20 + g.IntN(20))
		i := g.IntN(len(text))
		return text[:i] + text[min(len(text), i+1+g.IntN(3)):]
	})
}

// malformed makes text with much invalid UTF-8.
func (g *generator) malformed(n int) string {
	return repeat(n, func() string {
		return pick(g, "\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf", "\xed\xa0\xbd\xed\xb8\x80",
			"\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf8\x88\x80\x80\x80", "\xfe", "\xff", "\xc3", "\xe4\xb8", "\xf0\x9f\x98",
			"\xef\xbf\xbd", "a", "é", "中", "1", " ", "\n", "'s", "!", string(g.bytes(1)))
	})
}

func (g *generator) allKinds() []kind {
	tokens := func(n int) string { return repeat(n, func() string { return pick(g, g.tokens...) }) }
	contractions := g.soup("'", "'", "'s", "'T", "'re", "'VE", "'m", "'Ll", "'d", "s", "S", "x", "X", "l", "L", "r", "e", "v", "ſ", " ", "1", ".", "\u0301", "中", "\n", "ǅ")
	kinds := []kind{
		{"json", g.jsonText},
		{"base64", func(n int) string { return base64.StdEncoding.EncodeToString(g.bytes(n * 3 / 4)) }},
		{"hex", func(n int) string { return hex.EncodeToString(g.bytes((n + 1) / 2)) }},
		{"uuids", g.uuids},
		{"tables", g.tables},
		{"tokens", tokens},
		{"repeats", g.repeats},
		{"long pieces", g.long},
		{"cut in runes", g.cutInRunes},
		{"malformed", g.malformed},
		{"random bytes", func(n int) string { return string(g.bytes(n)) }},
		{"ASCII bytes", func(n int) string { return repeat(n, func() string { return string(rune(g.IntN(128))) }) }},
		{"any code point", func(n int) string { return repeat(n, g.anyRune) }},
		{"any and tokens", func(n int) string {
			return repeat(n, func() string { return g.anyRune() + pick(g, g.tokens...) + pick(g, "", " ", "'s") })
		}},
		{"white space", g.soup(" ", " ", "  ", "    ", "\n", "\n", "\r\n", "\r", "\t", "\u00a0", "\u3000", "\u2028", "\u0085", "\v", "\f", "\u200b", "\ufeff", "a", "1", "!", "/", "é", "中", "'s")},
		{"contractions", func(n int) string {
			text := contractions(n)
			if !g.judges("'ſ") {
				text = strings.ReplaceAll(text, "'ſ", "' ſ")
			}
			return text
		}},
		{"letter cases", g.soup("a", "b", "A", "B", "é", "É", "ß", "ǅ", "ʰ", "ª", "中", "ا", "\u0301", "\u0308", "д", "Д", "1", " ", "'s", "_", "\u20dd")},
		{"punctuation", g.soup("!", "\"", "#", "(", ")", "/", "/", "\n", "\r", "//", "*", "-", "=", ".", ",", " ", "a", "€", "—", "「", "”", "\u200d", "\ufe0f", "\u0301", "\x7f", "\x00")},
		{"digits", g.soup("0", "1", "22", "333", "4444", "55555", ".", ",", "-", " ", "٣", "½", "Ⅳ", "९", "１", "²", "e", "x", "\n", "𝟘")},
		{"emoji", g.soup("😀", "👨‍👩‍👧", "🏽", "🇩🇪", "\u200d", "\ufe0f", "❤", "1️⃣", "🤖", "🫠", " ", "a", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "☺")},
		{"special tokens", g.soup("<|endoftext|>", "<|endofprompt|>", "<|fim_prefix|>", "<|im_start|>", "<|", "|>", "endoftext", " ", "\n", "user", "<|im_end|>")},
		{"code", g.soup("{", "}", "(", ")", "[", "]", ";", ":=", " = ", "==", "->", "=>", "//", "/*", "\n", "\n\t", "\n\t\t", "\n    ", "\n        ", "if ", "return ", "x", "i", "0", "0x1F", "\"s\"", "'c'", ".", ", ", "fooBar", "FOO_BAR", "HTTPServer")},
	}
	for _, s := range scriptTables {
		kinds = append(kinds, kind{s.name, g.script(s.name, s.table)})
	}
	return kinds
}

// text returns a text of one kind or of two, mostly a short one.
func (g *generator) text() string {
	n := 1 + g.IntN(pick(g, 8, 40, 40, 160, 600))
	text := pick(g, g.kinds...).text(n)
	if g.IntN(4) == 0 {
		i := g.IntN(len(text) + 1)
		text = text[:i] + pick(g, g.kinds...).text(1+g.IntN(n)) + text[i:]
	}
	return text
}

// tamed cuts text where a run of one class of characters grows too long for the
// oracle, whose time is quadratic in the length of a piece.
func tamed(text string) []string {
	const longest = 1500
	var parts []string
	start, run, last := 0, 0, byte(0)
	for i := range len(text) {
		now := coarse(text[i])
		if now != last {
			run, last = i, now
		}
		if i-run >= longest {
			parts, start, run = append(parts, text[start:i]), i, i
		}
	}
	return append(parts, text[start:])
}

// coarse returns whether c is a letter, a digit, a space or something else.
func coarse(c byte) byte {
	switch {
	case c >= utf8.RuneSelf || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		return 'l'
	case c >= '0' && c <= '9':
		return 'n'
	case slices.Contains([]byte(" \t\n\v\f\r"), c):
		return 's'
	}
	return 'p'
}

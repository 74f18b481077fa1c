package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// blocks lists the ranges that emoji are taken from: first code point and length.
var blocks = [][2]int{{0x1f600, 0x50}, {0x1f600, 0x50}, {0x1f300, 0x200}, {0x1f680, 0x50}, {0x1f900, 0x100}, {0x1fa70, 0x50}, {0x2600, 0xc0}, {0x2700, 0xc0}, {0x2190, 0x70}, {0x2500, 0x100}}

func emoji(r *rand.Rand) string {
	var out strings.Builder
	for range 20 + r.IntN(60) {
		out.WriteString(phrase(r, r.IntN(8)))
		out.WriteString([]string{" ", "! ", ""}[r.IntN(3)])
		b := blocks[r.IntN(len(blocks))]
		c := rune(b[0] + r.IntN(b[1]))
		for range 1 + r.IntN(3) {
			out.WriteRune(c)
			switch r.IntN(8) {
			case 0:
				out.WriteRune(0xfe0f)
			case 1:
				out.WriteRune(rune(0x1f3fb + r.IntN(5)))
			case 2:
				c = rune(b[0] + r.IntN(b[1]))
			}
		}
		out.WriteString([]string{" ", "\n", ""}[r.IntN(3)])
	}
	return out.String()
}

func listing(r *rand.Rand) string {
	var out strings.Builder
	wide := r.IntN(3)
	for range 20 + r.IntN(60) {
		switch wide {
		case 0:
			fmt.Fprintf(&out, "-rw-r--r-- 1 root root %8d %s %s_%s.%s\n", r.IntN(1e6), stamp(r).Format("Jan _2 15:04"), word(r), word(r), []string{"go", "py", "txt", "json"}[r.IntN(4)])
		case 1:
			fmt.Fprintf(&out, "| %-12s | %-20s | %10.2f | %6d |\n", word(r), phrase(r, 2), r.Float64()*1000, r.IntN(10000))
		default:
			fmt.Fprintf(&out, "./%s/%s/%s.go:%d:%d: %s\n", word(r), word(r), word(r), r.IntN(900), r.IntN(80), phrase(r, 2+r.IntN(5)))
		}
	}
	return out.String()
}

// repeats makes repeated characters. Runs of one ASCII character stay shorter
// than those that the estimator counts separately.
func repeats(r *rand.Rand) string {
	var out strings.Builder
	for range 50 {
		out.WriteString(phrase(r, r.IntN(4)))
		const marks = "=-*#_.~+/ \n\t<>|%"
		c := marks[r.IntN(len(marks))]
		out.WriteString(strings.Repeat(string(c), 2+r.IntN(13)))
		if r.IntN(6) == 0 {
			const lines = "──━═│█░…"
			runes := []rune(lines)
			out.WriteString(strings.Repeat(string(runes[r.IntN(len(runes))]), 2+r.IntN(60)))
		}
		if r.IntN(4) == 0 {
			two := string(marks[r.IntN(len(marks))]) + string(marks[r.IntN(len(marks))])
			out.WriteString(strings.Repeat(two, 2+r.IntN(12)))
		}
	}
	return out.String()
}

// stretches lists parts of Unicode that no other class covers: first code point
// and length.
var stretches = [][2]int{{0x250, 0x120}, {0x700, 0x80}, {0x7c0, 0x140}, {0x1380, 0x400}, {0x1800, 0x100}, {0x2000, 0x700},
	{0x2c00, 0x200}, {0x3100, 0x100}, {0x3400, 0x1900}, {0xa000, 0xb00}, {0xe000, 0x1000}, {0x10000, 0x1000}, {0x1d400, 0x400}, {0x1f000, 0x300}, {0x20000, 0x2000}}

// scripts makes words of random code points from one stretch.
func scripts(r *rand.Rand) string {
	var out strings.Builder
	s := stretches[r.IntN(len(stretches))]
	from := s[0] + r.IntN(s[1]-0x60)
	for range 200 {
		for range 1 + r.IntN(9) {
			out.WriteRune(rune(from + r.IntN(0x60)))
		}
		out.WriteByte(' ')
	}
	return out.String()
}

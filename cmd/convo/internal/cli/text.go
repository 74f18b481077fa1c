package cli

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Visible returns a text that a terminal prints as it stands: control characters, invalid
// bytes and characters that change the direction of the text are shown as \x1b or \u202e.
// Line breaks and tabs stay.
func Visible(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f }) < 0 {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd"):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r < 0x80 && unicode.IsControl(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		case isHidden(r):
			if r > 0xffff {
				fmt.Fprintf(&b, `\U%08x`, r)
			} else {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isHidden reports whether a character is a control character, or a character that a terminal may not
// show but act on.
func isHidden(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs) && r != '\u200d'
}

// visibleJSON returns JSON with the characters escaped that Visible replaces, except for line
// breaks and tabs. In JSON they stand in strings only.
func visibleJSON(data []byte) []byte {
	var b strings.Builder
	for _, r := range string(data) {
		switch {
		case r == '\n', r == '\t', !isHidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return []byte(b.String())
}

// Line returns a text in one visible line of at most so many columns.
func Line(text string, columns int) string {
	cut := len(text) > 8*columns
	if cut {
		text = text[:8*columns]
		for len(text) > 0 && !utf8.ValidString(text[max(0, len(text)-4):]) && !utf8.RuneStart(text[len(text)-1]) {
			text = text[:len(text)-1]
		}
	}
	text = Visible(strings.Join(strings.Fields(text), " "))
	if Columns(text) <= columns && !cut {
		return text
	}
	var b strings.Builder
	at := 0
	for _, r := range text {
		w := runeColumns(r)
		if at+w > columns-1 {
			break
		}
		at += w
		b.WriteRune(r)
	}
	return b.String() + "…"
}

// Columns returns how many columns of a terminal a visible text takes, about. Escape sequences
// for colours take none.
func Columns(text string) (n int) {
	escape := false
	for _, r := range text {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		default:
			n += runeColumns(r)
		}
	}
	return n
}

// wide are the characters that take two columns, by and large.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1}, {Lo: 0x2e80, Hi: 0x303e, Stride: 1}, {Lo: 0x3041, Hi: 0xa4cf, Stride: 1},
		{Lo: 0xac00, Hi: 0xd7a3, Stride: 1}, {Lo: 0xf900, Hi: 0xfaff, Stride: 1}, {Lo: 0xfe30, Hi: 0xfe6f, Stride: 1},
		{Lo: 0xff01, Hi: 0xff60, Stride: 1}, {Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{{Lo: 0x1f300, Hi: 0x1f64f, Stride: 1}, {Lo: 0x1f900, Hi: 0x1f9ff, Stride: 1}, {Lo: 0x20000, Hi: 0x3fffd, Stride: 1}},
}

func runeColumns(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me) || r == '\u200d':
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// Number returns a number with commas between groups of three digits.
func Number(n int) string {
	s := strconv.Itoa(n)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Plural returns "1 message" or "2 messages". The plural ends in s.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Number(n) + " " + what + "s"
}

// Wrap breaks a text into lines of at most width columns, each after the prefix. Paragraphs
// are separated by empty lines; lines that begin with a space stay as they are.
func Wrap(text string, width int, prefix string) string {
	var b strings.Builder
	for i, paragraph := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		if i > 0 {
			b.WriteString("\n")
		}
		if strings.HasPrefix(paragraph, " ") {
			b.WriteString(paragraph + "\n")
			continue
		}
		line := prefix
		for word := range strings.FieldsSeq(paragraph) {
			if line != prefix && Columns(line)+1+Columns(word) > width {
				b.WriteString(line + "\n")
				line = prefix
			}
			if line != prefix {
				line += " "
			}
			line += word
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// A Table has rows of cells. The first column is aligned to the left, the others to the right.
type Table struct {
	Rows [][]string
	Left int // how many columns are aligned to the left; 0: one
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// String returns the rows as lines, each column as wide as its widest cell.
func (t *Table) String() string {
	var widths []int
	for _, row := range t.Rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Columns(cell))
		}
	}
	var b strings.Builder
	for _, row := range t.Rows {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			pad := strings.Repeat(" ", widths[i]-Columns(cell))
			if i < max(t.Left, 1) {
				line.WriteString(cell + pad)
			} else {
				line.WriteString(pad + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

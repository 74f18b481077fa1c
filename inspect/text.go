package inspect

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo"
	words "github.com/seed-c1b73e60/convo/internal/text"
)

// A text is what is shown of a text, and the address at which all of it is.
type text struct{ Shown, More, Href string }

const (
	mostText  = 4 << 10   // bytes of a text, unless it is requested whole
	mostPage  = 1_200_000 // bytes of the HTML of all texts on a page; the rest show their beginning only, and then none
	shortText = 120       // bytes of a name, of a preview, and of a text on a full page
)

// show returns what the page shows of a text of the element with the id.
func (v *view) show(s, id string) text {
	if v.at.whole == id && id != "" {
		return text{Shown: visible(s)}
	}
	most := mostText
	switch {
	case v.written > mostPage*3/2:
		most = 0
	case v.written > mostPage:
		most = shortText
	}
	shown := visible(first(s, most))
	v.written += len(template.HTMLEscapeString(shown)) + 4*strings.Count(shown, "+") // a template also escapes it
	if len(s) <= most {
		return text{Shown: shown}
	}
	out := text{Shown: shown, More: grouped(len(s)) + " bytes in all"}
	if !v.Alone {
		out.Href = v.at.wholly(id)
	}
	return out
}

// short returns the beginning of a name in one line, in a form that is seen.
func short(s string) string {
	name := oneLine.Replace(visible(first(s, shortText)))
	if len(s) > shortText {
		name += "…"
	}
	return name
}

var oneLine = strings.NewReplacer("\n", "␊", "\t", "␉")

// first returns at most the first bytes of s, without half a character.
func first(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// visible returns s with a visible form of the characters that have none, or that change
// the direction of the text.
func visible(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r < 0x20:
			b.WriteRune(0x2400 + r)
		case r == 0x7f:
			b.WriteRune(0x2421)
		default:
			fmt.Fprintf(&b, "[U+%04X]", r)
		}
	}
	return b.String()
}

// plain reports whether s is printable ASCII.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 0x20 || c > 0x7e) && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// hidden reports whether a reader would not see r as a character.
func hidden(r rune) bool {
	switch r {
	case '\n', '\t', 0xfe0e, 0xfe0f: // the last two choose how an emoji looks
		return false
	case 0x2028, 0x2029, 0x2800, 0x115f, 0x1160, 0x3164, 0xffa0:
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// grouped returns n with a comma for each thousand.
func grouped(n int) string { return words.Grouped(n) }

func counted(n int, one, many string) string { return words.Counted(n, one, many) }

// ranges returns ranges as a list of at most twenty.
func ranges(list []convo.Range) string {
	const most = 20
	var b strings.Builder
	for i, r := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		if i == most {
			fmt.Fprintf(&b, "and %s more", grouped(len(list)-most))
			break
		}
		if r.First == r.Last {
			fmt.Fprint(&b, r.First)
		} else {
			fmt.Fprintf(&b, "%d–%d", r.First, r.Last)
		}
	}
	return b.String()
}

// percent returns part of whole, for an attribute of SVG.
func percent(part, whole int) string {
	if whole <= 0 {
		return "0%"
	}
	return strconv.FormatFloat(100*min(float64(max(part, 0))/float64(whole), 1), 'f', 2, 64) + "%"
}

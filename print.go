package convo

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/strictjson"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// The types of this package that hold content print only the beginning of each text,
// so that logs and failing tests stay readable. The verb %+v also prints the IDs of
// calls. In a structured log, a Message and an Entry show only sizes.

// maxPrinted is the number of bytes of a text that are printed, and maxPrintedParts
// the number of parts of a message or an edit.
const (
	maxPrinted      = 64
	maxPrintedParts = 16
)

func abbreviate(s string) string {
	if len(s) <= maxPrinted {
		return s
	}
	return fmt.Sprintf("%s… (%s bytes)", s[:text.Floor(s, maxPrinted)], grouped(len(s)))
}

// abbreviateList joins texts, and omits the end of a long list.
func abbreviateList(texts []string, between string) string {
	if n := len(texts) - maxPrintedParts; n > 0 {
		texts = append(slices.Clip(texts[:maxPrintedParts]), fmt.Sprintf("… (%s more)", grouped(n)))
	}
	return strings.Join(texts, between)
}

// printTo implements Format for a type. text returns the text to print, with or
// without IDs.
func printTo(f fmt.State, verb rune, text func(ids bool) string) {
	if verb == 'v' && (f.Flag('+') || f.Flag('#')) {
		_, _ = io.WriteString(f, text(f.Flag('+')))
		return
	}
	_, _ = fmt.Fprintf(f, fmt.FormatString(f, verb), text(false))
}

// String returns the role, the author and the beginning of each part.
func (m Message) String() string { return m.print(false) }

// Format prints what String returns; %+v adds the IDs of calls and results.
func (m Message) Format(f fmt.State, verb rune) { printTo(f, verb, m.print) }

func (m *Message) print(ids bool) string {
	var b strings.Builder
	b.WriteString(abbreviate(string(m.Role)))
	if m.Author != "" {
		fmt.Fprintf(&b, " %q", abbreviate(m.Author))
	}
	b.WriteString(":")
	if len(m.Parts) > 0 {
		b.WriteString(" " + printParts(m.Parts, ids))
	}
	return b.String()
}

// LogValue returns the role, the author, and the kind and size of each part, but none of
// the content.
func (m Message) LogValue() slog.Value {
	sizes := make([]string, len(m.Parts))
	for i, p := range m.Parts {
		sizes[i] = known(p).printSize()
	}
	return slog.GroupValue(slog.String("role", abbreviate(string(m.Role))), slog.String("author", abbreviate(m.Author)),
		slog.String("parts", strings.Join(sizes, ", ")))
}

// label returns what kind of block o is.
func (o Opaque) label() string {
	kind, r := "", strictjson.NewReader([]byte(o.JSON))
	for key := range r.Object {
		if string(key) == "type" {
			kind = strings.Join(strings.Fields(r.Text()), " ")
			break
		}
		r.Skip()
	}
	return "block " + shorten(cmp.Or(kind, "of "+o.Format), 100)
}

// printID returns the ID in brackets, or "" if ids is false or the ID is empty.
func printID(id string, ids bool) string {
	if !ids || id == "" {
		return ""
	}
	return "[" + abbreviate(id) + "]"
}

// printAll prints values that have a Format method, with their IDs.
func printAll[T fmt.Formatter](list []T) string {
	texts := make([]string, len(list))
	for i, x := range list {
		texts[i] = fmt.Sprintf("%+v", x)
	}
	return abbreviateList(texts, " ")
}

func printParts(parts []Part, ids bool) string {
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = known(p).print(ids)
	}
	return abbreviateList(texts, " ")
}

// grouped returns a number with a comma between groups of three digits.
func grouped(n int) string {
	s := fmt.Sprint(n)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// counted returns a number and what it counts, in singular or plural. It is not inlined,
// because it has many callers and each copy makes programs larger.
//
//go:noinline
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + many
}

// shorten cuts s to at most width bytes, and adds "..." if something was cut.
func shorten(s string, width int) string {
	if len(s) <= width {
		return s
	}
	return s[:text.Floor(s, width)] + "..."
}

package measure

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// Table writes a Markdown table. An empty cell becomes a dash.
func Table(w io.Writer, header []string, rows [][]string) error {
	var b strings.Builder
	line := func(cells []string) {
		for _, c := range cells {
			if c == "" {
				c = "–"
			}
			b.WriteString("| " + strings.ReplaceAll(c, "|", "\\|") + " ")
		}
		b.WriteString("|\n")
	}
	line(header)
	b.WriteString(strings.Repeat("|---", len(header)) + "|\n")
	for _, r := range rows {
		line(r)
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// Notes writes the notes as a list. It writes nothing if there are none.
func Notes(w io.Writer, notes ...string) error {
	if len(notes) == 0 {
		return nil
	}
	var b strings.Builder
	for _, n := range notes {
		b.WriteString("- " + n + "\n")
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// Time formats nanoseconds with a unit and three significant digits.
func Time(ns float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}} {
		if ns >= u.size {
			return digits(ns/u.size) + " " + u.name
		}
	}
	return digits(ns) + " ns"
}

// Size formats a number with a unit prefix and three significant digits.
func Size(n float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if n >= u.size {
			return digits(n/u.size) + u.name
		}
	}
	return digits(n)
}

// Ratio formats a/b.
func Ratio(a, b float64) string {
	if b == 0 {
		return "–"
	}
	return digits(a/b) + "×"
}

// Count formats a number with commas between thousands.
func Count(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func digits(v float64) string {
	switch {
	case v == math.Trunc(v) && v < 1000 || v >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995:
		return fmt.Sprintf("%.1f", v)
	case v < 0.005:
		return "0"
	}
	return fmt.Sprintf("%.2f", v)
}

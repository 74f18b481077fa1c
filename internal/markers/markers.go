// Package markers writes and reads the lines that take the place of results, and of parts of them.
package markers

import (
	"fmt"
	"iter"
	"strings"
)

// Cut returns the text that replaces the middle of a result. bytes is the size of the omitted
// text, and ref where it is kept; empty: nowhere.
func Cut(bytes int, ref string) string {
	return fmt.Sprintf("\n[cut: %d bytes left out%s]\n", bytes, place(ref))
}

// Opaque returns the text that replaces an opaque part of a result that is cut. label says what
// kind it is.
func Opaque(label, json, ref string) string { return "[" + label + "]" + Cut(len(json), ref) }

// Cleared returns the text that replaces a result of a tool.
func Cleared(tool string, bytes int, ref string) string {
	return fmt.Sprintf("[result of %s cleared: %d bytes%s]", tool, bytes, place(ref))
}

// KeptAt begins the reference in a marker.
const KeptAt = ", kept at "

func place(ref string) string {
	if ref == "" {
		return ""
	}
	return KeptAt + ref
}

// Replace returns text with the end of each marker that ends with old replaced. What a tool
// wrote elsewhere stays.
func Replace(text, old, now string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if rest, ok := strings.CutSuffix(line, old); ok && (strings.HasPrefix(line, "[cut: ") || strings.HasPrefix(line, "[result of ")) {
			lines[i] = rest + now
		}
	}
	return strings.Join(lines, "\n")
}

// Ref returns the reference in the markers of a result that was cut, and whether there is a
// marker. If markers have different references, a tool wrote some of them, and none is believed.
func Ref[T ~string](texts iter.Seq[T]) (ref string, cut bool) {
	for t := range texts {
		lines := strings.Split(string(t), "\n")
		for i := 1; i < len(lines)-1; i++ {
			found, ok := refIn(lines[i])
			if ok && cut && found != ref {
				return "", false
			}
			if ok {
				ref, cut = found, true
			}
		}
	}
	return ref, cut
}

// refIn returns the reference in a line between others, and whether it is a marker of a cut.
func refIn(line string) (ref string, ok bool) {
	rest, ok := strings.CutPrefix(line, "[cut: ")
	if !ok {
		return "", false
	}
	rest, ok = strings.CutPrefix(strings.TrimLeft(rest, "0123456789"), " bytes left out")
	if !ok {
		return "", false
	}
	rest, ok = strings.CutSuffix(rest, "]")
	if !ok || rest == "" {
		return "", ok
	}
	return strings.CutPrefix(rest, KeptAt)
}

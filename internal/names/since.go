package names

import (
	"slices"
	"strings"
)

// mostSince bounds the work of a Since.
const mostSince = 1000

// A Since holds the names that new texts use, and says which of them would be lost with texts
// that leave. The zero Since holds none.
type Since struct {
	order []string        // as they were used first
	left  map[string]bool // whether a text that leaves holds them; those that stay elsewhere are removed
}

// Use notes the names in a new text.
func (s *Since) Use(text string) {
	if s.left == nil {
		s.left = make(map[string]bool)
	}
	for name := range Of(text) {
		if _, known := s.left[name]; !known && len(s.order) < mostSince {
			s.left[name] = false
			s.order = append(s.order, name)
		}
	}
}

// Keep removes the names in a text that stays.
func (s *Since) Keep(text string) {
	for name := range Of(text) {
		delete(s.left, name)
	}
}

// Leave notes the names in a text that leaves.
func (s *Since) Leave(text string) {
	for name := range Of(text) {
		if _, wanted := s.left[name]; wanted {
			s.left[name] = true
		}
	}
}

// Line returns the names that would be lost, and as many of the old ones as fit after them. It
// is empty if none would be lost.
func (s *Since) Line(old []string, fits func(line string) bool) (line string) {
	lost := slices.DeleteFunc(slices.Clone(s.order), func(name string) bool { return !s.left[name] })
	if len(lost) == 0 {
		return ""
	}
	for _, name := range append(lost, old...) {
		longer := strings.TrimSpace(line + " " + name)
		if !fits(longer) {
			break
		}
		line = longer
	}
	return line
}

package convo

import (
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/names"
)

// namedSince returns the summary of an edit of the view was with more Names: those that the
// messages appended since then use, and that only entries hold which leave. They take the
// place of the last of its names where there is no room for all.
func namedSince(e *Edit, was, now *Snapshot, redact func(Message) Message, count func(string) int) *Summary {
	sum := e.Summary
	defer catch(new(error), "Options.Tokenizer or Options.Redact")
	if sum == nil || sum.Text == "" || len(e.Drop) == 0 {
		return sum
	}
	from, _ := index(now.list, was.newestID()+1)
	if from >= len(now.list) {
		return sum
	}
	n := newNames{left: make(map[string]bool)}
	for _, entry := range now.list[from:] {
		m := redacted(&entry.msg, redact)
		n.add(&m)
	}
	n.remove(sum.Text)
	n.remove(sum.Names)
	for i := range was.len() {
		entry := was.at(i)
		_, leaves := slices.BinarySearch(e.Drop, entry.id)
		m, read := entry.msg, n.remove
		if leaves && !now.isPinned(entry.head) { // an exchange that was pinned in the meantime stays
			m, read = redacted(&m, redact), n.leave
		}
		for _, text := range m.texts {
			read(text)
		}
	}
	most := max(count(namesLine+sum.Names), min(mostNames, count(sum.Text)/4))
	line := n.line(strings.Fields(sum.Names), most, count)
	if line == "" {
		return sum
	}
	own := *sum
	own.Names = line
	return &own
}

// mostNewNames bounds the work of namedSince.
const mostNewNames = 1000

// The newNames are the names that new messages use.
type newNames struct {
	order []string        // as they were used first
	left  map[string]bool // whether an entry that leaves holds them; those that stay elsewhere are removed
}

func (n *newNames) add(m *Message) {
	for _, text := range m.texts {
		for name := range names.Of(text) {
			if _, known := n.left[name]; !known && len(n.order) < mostNewNames {
				n.left[name] = false
				n.order = append(n.order, name)
			}
		}
	}
}

// remove removes the names in a text that stays.
func (n *newNames) remove(text string) {
	for name := range names.Of(text) {
		delete(n.left, name)
	}
}

// leave notes the names in a text that leaves.
func (n *newNames) leave(text string) {
	for name := range names.Of(text) {
		if _, wanted := n.left[name]; wanted {
			n.left[name] = true
		}
	}
}

// line returns the names that would be lost, and as many of the old ones as there is room
// for after them. It is empty if none would be lost.
func (n *newNames) line(old []string, most int, count func(string) int) (line string) {
	lost := slices.DeleteFunc(n.order, func(name string) bool { return !n.left[name] })
	if len(lost) == 0 {
		return ""
	}
	for _, name := range append(lost, old...) {
		longer := strings.TrimSpace(line + " " + name)
		if count(namesLine+longer) > most {
			break
		}
		line = longer
	}
	return line
}

package facts

import (
	"fmt"
	"hash/crc32"
	"strings"
)

// A reader writes summaries as a model would that notices a share of the facts. It knows which
// facts are needed later, and lists no others.
type reader struct {
	facts []Fact
	skill skill
	later string // what is read and leaves later; facts in it are written last, if there is room
	calls int
	read  map[string]int // how often it has come to a fact, by its text
}

// A skill says what a reader notices.
type skill struct {
	fresh, old, wrong int // in percent: of new facts and of those of the summary before that it writes, and of what it writes that is wrong
}

// The skills of the tables. A mediocre reader writes 55 % of the new facts, changes one in
// twenty of them, and loses a tenth of the old ones each time.
var (
	ideal    = skill{fresh: 100, old: 100}
	mediocre = skill{fresh: 55, old: 90, wrong: 5}
)

// chance returns whether something of the given percentage happens to a fact. It depends on
// nothing but the fact and how often this was asked.
func (r *reader) chance(percent int, what, fact string) bool {
	if r.read == nil {
		r.read = map[string]int{}
	}
	r.read[what+fact]++
	return int(crc32.ChecksumIEEE([]byte(fmt.Sprint(what, fact, r.read[what+fact]))))%100 < percent
}

// write returns a summary of a text and of the summary before, for what is needed after a
// message. At most a third of it tells what happened, and the rest lists facts.
func (r *reader) write(previous, text string, at, most int, count func(string) int) string {
	r.calls++
	story := newWords(uint64(r.calls))
	b := "## Goal\n" + story.prose(20)
	for left := min(most/3, 400) - count(b); left > 0; {
		s := " " + story.sentence()
		b += s
		left -= count(s)
	}
	var lines, first []string
	for i := range r.facts {
		f := &r.facts[i]
		if !f.needed(at) {
			continue
		}
		line := "- " + f.Text
		switch {
		case strings.Contains(previous, f.Text):
			if !r.chance(r.skill.old, "old", f.Text) {
				continue
			}
		case strings.Contains(text, f.Text) && r.chance(r.skill.fresh, "new", f.Text):
			if r.chance(r.skill.wrong, "wrong", f.Text) {
				line = line[:strings.LastIndex(line, " ")+1] + "something else"
			}
		default:
			continue
		}
		if strings.Contains(r.later, f.Text) {
			lines = append(lines, line)
		} else {
			first = append(first, line)
		}
	}
	lines = append(lines, first...)
	left := most - count(b) - 20
	from := len(lines)
	for from > 0 {
		if left -= count("\n" + lines[from-1]); left < 0 {
			break
		}
		from--
	}
	return b + "\n\n## Facts\n" + strings.Join(lines[from:], "\n")
}

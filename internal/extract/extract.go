// Package extract chooses lines of a conversation for a summary that no model writes.
package extract

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/names"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// Notes holds what is collected in one pass over the messages of a conversation, from the newest
// to the oldest. The notes of a list are in that order. The zero Notes are empty.
type Notes struct {
	Bytes int // of the texts that were searched

	names names.Index // of all texts that were read

	before  []note  // lines of a summary that has none of our headings
	asked   []note  // what the user said
	rare    *ranked // asked but for the first, by how rare their words are; nil: not ranked yet
	said    ranked  // what the assistant said
	results ranked  // lines of results
	tools   []note
	errs    []note
	paths   []note
	answer  note // the last answer

	at       int64        // of the present message
	from     names.Source // of the present message
	isAnswer bool         // the present message is the last answer, if the assistant said it
	lines    []note       // for readLines
	free     []note       // memory for keep
	whole    int          // bytes of results that may still be read as a whole
}

// A Message is a message of the user.
type Message interface {
	Text() string // its texts
	Line() string // what a list shows of it, on one line
}

// A note is a line, and where it is from.
type note struct {
	text   string  // what the line is made of, unless msg is set
	msg    Message // of the user
	at     int64   // grows from the oldest to the newest
	nth    int     // in a ranked list
	calls  int     // of a tool
	most   int     // characters that are shown of the line; 0: all
	line   string  // made by show, with "- " and a line feed; empty: not made yet
	weight int     // of line, in tokens
}

// A ranked list holds lines by how useful they are.
type ranked struct {
	by [mostWorth + 1][]*note // the newest of each score
	n  int                    // number of lines, with those that were left out
}

// mostWorth is the best score of a line.
const mostWorth = 14

// add adds a line that is older than those before.
func (r *ranked) add(l *note, score int) {
	l.nth = r.n
	r.n++
	if len(r.by[score]) < mostNoted {
		r.by[score] = append(r.by[score], l)
	}
}

// keep returns a copy of a line.
func (n *Notes) keep(l note) *note {
	if len(n.free) == 0 {
		n.free = make([]note, 64)
	}
	own := &n.free[0]
	n.free = n.free[1:]
	*own = l
	return own
}

// best yields the lines, the best first: of lines that are as useful, the newer one is better.
func (r *ranked) best(yield func(*note) bool) {
	var next [len(r.by)]int
	for {
		best, rank := -1, 0
		for score := range r.by {
			if i := next[score]; i < len(r.by[score]) {
				if own := score*r.n - 2*r.by[score][i].nth; best < 0 || own >= rank {
					best, rank = score, own
				}
			}
		}
		if best < 0 || !yield(r.by[best][next[best]]) {
			return
		}
		next[best]++
	}
}

// Headings of the text. Text from a message always follows "- " there, so it
// cannot be mistaken for a heading.
const (
	headBefore  = "Before:"
	headAsked   = "The user said:"
	headSaid    = "The assistant said:"
	headResults = "Results:"
	headTools   = "Tools called:"
	headPaths   = "Paths:"
	headErrs    = "Errors:"
	headAnswer  = "Last answer:"
)

var headings = [...]string{headBefore, headAsked, headSaid, headResults, headTools, headPaths, headErrs, headAnswer}

// Begin makes room for the texts that follow: how many bytes people and the assistant said, and
// how many results have.
func (n *Notes) Begin(said, results int) {
	n.whole = max(mostRead-said, mostRead/8)
	n.names.Grow((said + min(n.whole, results)) / 64)
}

// Next goes on to an older message. from.Paths says whether it is a result.
func (n *Notes) Next(from names.Source) {
	n.at, n.from, n.isAnswer = int64(from.Place)<<20, from, n.answer.text == ""
}

// Link notes an address in the message.
func (n *Notes) Link(url string) {
	from := n.from
	from.Paths = false
	n.names.Read(url, from)
}

// Ask notes the message as said by the user.
func (n *Notes) Ask(m Message) {
	if len(n.asked) == mostAsked {
		n.asked = n.asked[:mostAsked-1] // the oldest one stays
	}
	n.asked = append(n.asked, note{msg: m, at: n.at})
}

// Say notes lines of a text of the assistant, unless it belongs to the last answer.
func (n *Notes) Say(s string) {
	n.readLines(&n.said, 0, s, note{at: n.at, most: 300}, n.isAnswer)
}

// Answer notes the message of the assistant, if it is the last one with a text.
func (n *Notes) Answer(m Message) {
	if n.isAnswer {
		n.answer = note{text: strings.TrimSpace(m.Text()), at: n.at}
	}
}

// Call notes the part of the message that calls a tool.
func (n *Notes) Call(part int, tool, arguments string) {
	from := n.from
	from.Paths = true
	n.Bytes += len(arguments)
	n.names.Read(arguments, from)
	n.addCalls(tool, 1, n.at+int64(part))
}

// Fail notes the part of the message that says how a call failed.
func (n *Notes) Fail(part int, tool, said string) {
	first, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
	n.errs = addOnce(n.errs, note{text: text.OneLine(tool) + ": " + text.OneLine(first), at: n.at + int64(part), most: 300})
}

// Result notes lines of a text of a result, or of its beginning if too much was read. It returns
// how many bytes were not read.
func (n *Notes) Result(s string) (unread int) {
	part := len(s)
	if most := max(n.whole, leastRead); part > most {
		part = text.BorderBefore(s, most)
	}
	n.whole = max(n.whole-part, 0)
	n.readLines(&n.results, 4, s[:part], note{at: n.at, most: 240}, false)
	return len(s) - part
}

// Search reads a text for names. It reports how many it has, and how many of them a newer
// message has said.
func (n *Notes) Search(s string) (own, again int) {
	n.Bytes += len(s)
	return n.names.Read(s, n.from)
}

// Line returns at most most tokens of names from the texts read, and from an old line of names,
// that are neither in the summary nor in texts that stay; of those it reads as many as the bound
// on the work allows. The line follows the summary and the text before it.
func (n *Notes) Line(old, summary, before string, stay iter.Seq[string], most int, count func(string) int) string {
	left := most - count(before) - 2
	if left < 4 {
		return ""
	}
	n.names.Read(old, names.Source{Place: -1, Weight: 1})
	n.names.Remove(summary)
	mayRead := max(mostRead-n.Bytes, mostRead/4)
	for t := range stay {
		t = t[:text.Floor(t, mayRead)]
		n.names.Remove(t)
		n.Bytes += len(t)
		mayRead -= len(t)
		if mayRead <= 0 {
			break
		}
	}
	var chosen []string
	for name := range n.names.Choose(most) {
		left -= count(" " + name)
		if left < 0 {
			break
		}
		chosen = append(chosen, name)
	}
	for ; len(chosen) > 0; chosen = chosen[:len(chosen)*7/8] { // together they may have more tokens than the sum
		line := strings.Join(chosen, " ")
		if count(summary+before+line) <= count(summary)+most {
			return line
		}
	}
	return ""
}

// readLines notes those lines of a text whose score is at least the given one. If skip is set,
// it only reads them.
func (n *Notes) readLines(list *ranked, least int, s string, l note, skip bool) {
	n.lines = n.lines[:0]
	for l.text = range strings.Lines(s) {
		own, again := n.Search(l.text)
		l.weight = 4*min(again, 3) + min(own, 2) // until the line is made
		if l.weight >= least && !skip && strings.TrimSpace(l.text) != "" {
			n.lines = append(n.lines, l)
		}
		l.at++
	}
	for _, l := range slices.Backward(n.lines) {
		list.add(n.keep(l), l.weight)
	}
}

// addCalls notes that a tool was called a number of times.
func (n *Notes) addCalls(name string, calls int, at int64) {
	for i := range n.tools {
		if t := &n.tools[i]; t.text == name {
			t.calls += calls
			t.at = at
			return
		}
	}
	if len(n.tools) < mostNoted {
		n.tools = append(n.tools, note{text: name, calls: calls, at: at})
	}
}

// addOnce adds a note, unless there is one with the same text: then that gets its place if it
// is older.
func addOnce(list []note, l note) []note {
	if i := slices.IndexFunc(list, func(have note) bool { return have.text == l.text }); i >= 0 {
		list[i].at = min(list[i].at, l.at)
	} else if len(list) < mostNoted {
		list = append(list, l)
	}
	return list
}

// These bound the work of a compaction.
const (
	mostNoted  = 500     // different tools, and likewise paths, errors, and lines with one score
	mostRead   = 2 << 20 // bytes of texts that are searched for names; above that, of the oldest results only the beginning
	mostAsked  = 5000    // messages of the user
	leastRead  = 100     // bytes of each result that are searched
	mostMissed = 50      // lines in a row that do not fit

	mostCompared = 1000 // newest messages of the user whose words are compared
	askedShown   = 400  // characters that are shown of a message of the user besides the first
)

// readPrevious reads a summary that Summary has written earlier, after the messages. It keeps any
// other text as it is.
func (n *Notes) readPrevious(previous string) {
	lines := strings.Split(previous, "\n")
	in := make([]string, len(lines)) // the heading above each line; its own line has none
	for i, line := range lines {
		switch {
		case slices.Contains(headings[:], line):
			in[i] = line
		case i > 0:
			in[i] = in[i-1]
		}
	}
	var paths []string
	for i, line := range slices.Backward(lines) {
		l := note{text: strings.TrimPrefix(line, "- "), at: int64(i - len(lines)), most: 300}
		if l.text == "" || line == in[i] {
			continue
		}
		switch in[i] {
		case headAsked:
			n.asked = append(n.asked, l)
		case headSaid:
			n.said.add(&l, 1)
		case headResults:
			n.results.add(&l, 4)
		case headTools:
			if i := strings.LastIndexByte(l.text, ' '); i >= 0 {
				if calls, err := strconv.Atoi(l.text[i+1:]); err == nil {
					n.addCalls(l.text[:i], calls, l.at)
				}
			}
		case headPaths:
			paths = append(paths, l.text)
		case headErrs:
			n.errs = addOnce(n.errs, l)
		case headAnswer:
			if n.answer.text == "" {
				l.most, n.answer = 0, l
			} else {
				n.said.add(&l, 1)
			}
		default:
			l.most = 0
			n.before = append(n.before, l)
		}
	}
	slices.Reverse(paths)
	listed := make(map[string]bool, len(paths))
	for i, path := range append(paths, n.names.Paths(mostNoted)...) {
		if !listed[path] {
			listed[path] = true
			n.paths = append(n.paths, note{text: path, at: int64(i), most: 300})
		}
	}
	slices.Reverse(n.paths)
}

// show makes the line of a note.
func (l *note) show(count func(string) int) {
	if l.line != "" {
		return
	}
	line := ""
	switch {
	case l.msg != nil:
		line = l.msg.Line()
	case l.calls > 0:
		line = fmt.Sprintf("%s %d", text.OneLine(l.text), l.calls)
	default:
		line = text.OneLine(l.text)
	}
	if l.most > 0 {
		line = text.ShortenRunes(line, l.most)
	}
	l.line = listed(line)
	l.weight = count(l.line)
}

// Summary returns a summary of at most limit tokens, with what Summary has returned for older
// messages.
func (n *Notes) Summary(previous string, limit int, count func(string) int) string {
	n.readPrevious(previous)
	for room := limit; ; room = room * 7 / 8 { // a text may weigh more than its lines
		summary := n.render(room, count)
		weight := count(summary)
		if weight <= limit {
			return summary
		}
		if room < 8 {
			return summary[:text.Prefix(summary, limit, weight, count)]
		}
	}
}

// listed returns the line of a list.
func listed(s string) string { return "- " + s + "\n" }

// forward yields notes, the oldest first.
func forward(list []note) iter.Seq[*note] {
	newestFirst(list)
	return func(yield func(*note) bool) {
		for i := range slices.Backward(list) {
			if !yield(&list[i]) {
				return
			}
		}
	}
}

// newestFirst sorts notes, most of which are in that order.
func newestFirst(list []note) {
	newer := func(k, l note) int { return cmp.Compare(l.at, k.at) }
	if !slices.IsSortedFunc(list, newer) {
		slices.SortStableFunc(list, newer)
	}
}

// firstThenNewest yields the first of some notes, and then the others, the newest first. Those
// are shortened to the given number of characters.
func firstThenNewest(list []note, most int) iter.Seq[*note] {
	newestFirst(list)
	return func(yield func(*note) bool) {
		last := len(list) - 1
		if last < 0 || !yield(&list[last]) {
			return
		}
		for i := range list[:last] {
			list[i].most = most
			if !yield(&list[i]) {
				return
			}
		}
	}
}

// firstThenRarest yields the first of what the user said, and then the others: those with words
// that few of the others have, and the newer of two that are as rare. Those are shortened.
func (n *Notes) firstThenRarest(yield func(*note) bool) {
	newestFirst(n.asked)
	last := len(n.asked) - 1
	if last < 0 || !yield(&n.asked[last]) {
		return
	}
	if n.rare == nil {
		n.rare = rankedByWords(n.asked[:last])
	}
	n.rare.best(yield)
}

// rankedByWords ranks what the user said, newest first, by how many rare words it has.
func rankedByWords(list []note) *ranked {
	compared := min(len(list), mostCompared)
	words, ends := make([]uint16, 0, 32*compared), make([]int, compared)
	for i := range ends {
		words = hashedWords(words, list[i].beginning(askedShown/2))
		ends[i] = len(words)
	}
	var counts wordCounts
	counts.add(words)
	best, from := new(ranked), 0
	for i := range list {
		score := 0
		if i < compared {
			score = min(2*counts.rare(words[from:ends[i]], compared), mostWorth)
			from = ends[i]
		}
		list[i].most = askedShown
		best.add(&list[i], score)
	}
	return best
}

// beginning returns about the first n bytes of what a note is made of.
func (l *note) beginning(n int) string {
	s := l.text
	if l.msg != nil {
		s = l.msg.Text()
	}
	return s[:text.Floor(s, min(n, len(s)))]
}

// render renders the notes in about the given number of tokens.
func (n *Notes) render(room int, count func(string) int) string {
	left := room
	type shown struct {
		at   int64
		line string
	}
	chosen := make(map[string][]*shown)
	used := make(map[string]*shown)
	// choose takes lines of a section, the best first, while they fit its share. A line
	// that is too long for what is left is cut there if it is the first.
	choose := func(heading string, share int, best iter.Seq[*note]) {
		share = min(share, left) - count(heading+"\n")
		missed, isFirst := 0, true
		for l := range best {
			l.show(count)
			if same := used[l.line]; same != nil {
				same.at = min(same.at, l.at) // a line that is repeated is shown where it came first
				continue
			}
			line, weight := l.line, l.weight
			if line == listed("") {
				continue
			}
			if weight > share && isFirst && share > 8 {
				said := line[2 : len(line)-1]
				line = listed(text.Shorten(said, text.Prefix(said, share-4, weight, count)))
				weight = count(line)
			}
			isFirst = false
			if weight > share {
				missed++
				if share < 4 || missed > mostMissed {
					break
				}
				continue
			}
			missed = 0
			share -= weight
			left -= weight
			chosen[heading] = append(chosen[heading], &shown{l.at, line})
			if heading != headAnswer {
				used[l.line] = chosen[heading][len(chosen[heading])-1]
			}
		}
		if chosen[heading] != nil {
			left -= count(heading + "\n")
		}
	}
	choose(headBefore, room/2, forward(n.before))
	share := room / 3
	if n.said.n+n.results.n+len(n.tools)+len(n.paths)+len(n.errs) == 0 && n.answer.text == "" {
		share = room
	}
	choose(headAsked, share, n.firstThenRarest)
	if n.answer.text != "" {
		choose(headAnswer, room/8, forward([]note{n.answer}))
	}
	choose(headTools, room/12, forward(n.tools))
	choose(headErrs, room/10, firstThenNewest(n.errs, 300))
	choose(headPaths, room/8, firstThenNewest(n.paths, 300))
	choose(headResults, left/2, n.results.best)
	choose(headSaid, left, n.said.best)

	var b strings.Builder
	for _, heading := range headings {
		lines := chosen[heading]
		slices.SortStableFunc(lines, func(k, l *shown) int { return cmp.Compare(k.at, l.at) })
		for i, l := range lines {
			if i == 0 {
				b.WriteString(heading + "\n")
			}
			b.WriteString(l.line)
		}
	}
	switch {
	case b.Len() > 0:
	case len(n.asked) > 0: // there is no room for a line
		return headAsked + "\n" + strings.TrimSuffix(n.asked[len(n.asked)-1].line, "\n")
	default:
		return "Nothing was said."
	}
	return strings.TrimSuffix(b.String(), "\n")
}

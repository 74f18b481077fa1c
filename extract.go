package convo

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/names"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// Extract is a [Summarizer] that calls no model. Its summary lists what the user said,
// what the assistant said, lines of results, the tools that were called and how often,
// the paths and errors that came up, and the last answer. It is quick, returns the same
// text for the same messages, and never exceeds SummaryRequest.MaxTokens.
//
// It fills that room. Up to a third of it goes to what the user said, the first message
// before the newest ones. Of the rest it prefers lines with names, such as paths,
// identifiers, dates and amounts, which come up again later. A repeated line is listed
// once.
type Extract struct{}

// Summarize extracts a summary from req.Messages, and adds it to req.Previous. If
// req.MaxTokens is not positive, the summary has at most 500 tokens; if req.Count
// is nil, [Heuristic] counts them. The only error is the reason why ctx ended.
func (Extract) Summarize(ctx context.Context, req SummaryRequest) (Summary, error) {
	if ctx.Err() != nil {
		return Summary{}, causeOf(ctx)
	}
	n := notes{seen: make(map[string]bool)}
	n.readPrevious(req.Previous)
	n.readAll(req.Messages)
	count := req.Count
	if count == nil {
		count = Heuristic{}.CountTokens
	}
	limit := req.MaxTokens
	if limit <= 0 {
		limit = maxSummary(0)
	}
	for room := limit; ; room = room * 7 / 8 { // a text may weigh more than its lines
		summary := n.text(room, count)
		weight := count(summary)
		if weight <= limit {
			return Summary{Text: summary}, nil
		}
		if room < 8 {
			return Summary{Text: summary[:text.Prefix(summary, limit, weight, count)]}, nil
		}
	}
}

// notes holds what Extract collects, one field for each heading of its text.
type notes struct {
	before  []note // lines of a summary that was not written by Extract
	asked   []note // what the user said
	said    []note // what the assistant said
	results []note // lines of results
	tools   []toolCount
	paths   []string
	errs    []string
	answer  lastAnswer

	seen map[string]bool // lines that were noted
}

// A lastAnswer is a message of the assistant, in one line and in its lines.
type lastAnswer struct {
	text  string
	lines []note
}

// A note is a line, and how useful it is.
type note struct {
	line  string
	score int
}

// A toolCount says how often a tool was called.
type toolCount struct {
	name  string
	calls int
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

// readAll notes what messages say.
func (n *notes) readAll(msgs []Message) {
	// The names that come up after each message say which of its lines matter.
	later := make(map[string]int) // the last message that has a name
	for i := range msgs {
		if m := &msgs[i]; m.Role != RoleTool {
			for name := range names.Of(searched(m.Text())) {
				later[name] = i
			}
			for _, c := range m.ToolCalls() {
				for name := range names.Of(searched(c.Arguments)) {
					later[name] = i
				}
			}
		}
	}
	for i := range msgs {
		n.read(&msgs[i], func(line string) (score int) {
			own, again := 0, 0
			for name := range names.Of(line) {
				if own++; later[name] > i {
					again++
				}
			}
			return 4*min(again, 3) + min(own, 2)
		})
	}
}

// read notes what a message says. worth says how useful a line is.
func (n *notes) read(m *Message, worth func(line string) int) {
	switch m.Role {
	case RoleUser, RoleSystem:
		line := oneLine(m.Text())
		for media := range m.allMedia {
			line = strings.TrimSpace(fmt.Sprintf("%s [%s: %s]", line, media.kind(), oneLine(media.place())))
		}
		if line != "" {
			if m.Author != "" {
				line = oneLine(m.Author) + ": " + line
			}
			n.asked = n.add(n.asked, line, 0)
		}
	case RoleAssistant:
		if answer := oneLine(m.Text()); answer != "" {
			n.answered(answer)
			for line := range strings.Lines(searched(m.Text())) {
				if line = oneLine(line); line != "" {
					n.answer.lines = append(n.answer.lines, note{line, worth(line)})
				}
			}
		}
		for _, c := range m.ToolCalls() {
			n.addCalls(oneLine(c.Name), 1)
			n.findPaths(c.Arguments)
		}
	case RoleTool:
		for _, r := range m.ToolResults() {
			content := r.Text()
			if r.IsError {
				first, _, _ := strings.Cut(strings.TrimSpace(content), "\n")
				n.errs = appendNew(n.errs, oneLine(r.Name)+": "+oneLine(first))
			}
			n.findPaths(content)
			for line := range strings.Lines(searched(content)) {
				if score := worth(line); score >= 4 { // it names what comes up again
					n.results = n.add(n.results, shorten(oneLine(line), 240), score)
				}
			}
		}
	}
}

// answered notes the last answer. The lines of the one before become something that the
// assistant said.
func (n *notes) answered(text string) {
	for _, old := range n.answer.lines {
		n.said = n.add(n.said, old.line, old.score)
	}
	n.answer = lastAnswer{text: text}
}

// add appends a note with a line that was not noted yet.
func (n *notes) add(list []note, line string, score int) []note {
	if line == "" || n.seen[line] || len(list) >= 10*mostNoted {
		return list
	}
	n.seen[line] = true
	return append(list, note{line, score})
}

// addCalls notes that a tool was called a number of times.
func (n *notes) addCalls(name string, calls int) {
	for i := range n.tools {
		if n.tools[i].name == name {
			n.tools[i].calls += calls
			return
		}
	}
	if len(n.tools) < mostNoted {
		n.tools = append(n.tools, toolCount{name, calls})
	}
}

// These bound the work that Extract does.
const (
	mostNoted = 500 // different tools, and likewise paths and errors; ten times as many lines
)

// findPaths notes the words of a text that look like paths: those with a slash and
// a dot after the last slash, or with two slashes.
func (n *notes) findPaths(s string) {
	words := strings.FieldsFuncSeq(searched(s), func(r rune) bool {
		return r <= ' ' || strings.ContainsRune("\"'`()[]{}<>,;|=*\\", r) || r == '\uFFFD'
	})
	for word := range words {
		word = strings.TrimRight(word, ".:!?")
		if slash := strings.LastIndexByte(word, '/'); slash >= 0 && len(word) > 3 && len(word) <= 200 &&
			(strings.Contains(word[slash:], ".") || strings.Count(word, "/") > 1 && !strings.HasSuffix(word, "/")) {
			n.paths = appendNew(n.paths, word)
		}
	}
}

// readPrevious reads a summary that Extract wrote earlier. It keeps any other text
// as it is.
func (n *notes) readPrevious(previous string) {
	heading := ""
	for line := range strings.Lines(previous) {
		line = strings.TrimRight(line, "\n")
		if slices.Contains(headings[:], line) {
			heading = line
			continue
		}
		item := strings.TrimPrefix(line, "- ")
		switch {
		case heading == headBefore || heading == "":
			if item = strings.Join(strings.Fields(searched(item)), " "); item != "" {
				n.before = append(n.before, note{item, -len(n.before)}) // the first lines are kept first
			}
		case item == "":
		case heading == headAsked:
			n.asked = n.add(n.asked, item, 0)
		case heading == headSaid:
			n.said = n.add(n.said, item, 1)
		case heading == headResults:
			n.results = n.add(n.results, item, 4)
		case heading == headTools:
			if i := strings.LastIndexByte(item, ' '); i >= 0 {
				if calls, err := strconv.Atoi(item[i+1:]); err == nil {
					n.addCalls(item[:i], calls)
				}
			}
		case heading == headPaths:
			n.paths = appendNew(n.paths, item)
		case heading == headErrs:
			n.errs = appendNew(n.errs, item)
		case heading == headAnswer:
			n.answered(item)
			n.answer.lines = []note{{item, 1}}
		}
	}
}

// text renders the notes in about the given number of tokens.
func (n *notes) text(room int, count func(string) int) string {
	left := room
	weigh := func(line string) int { return count("- " + line + "\n") }
	chosen := make(map[string][]string)
	// choose takes lines of a section, the best first, while they fit its share. A line
	// that is too long for what is left is cut there if it is the first.
	choose := func(heading string, share int, items []note) {
		share = min(share, left) - count(heading+"\n")
		order := make([]int, len(items))
		for i := range order {
			order[i] = i
		}
		sort.SliceStable(order, func(i, j int) bool { return items[order[i]].score > items[order[j]].score })
		taken := make([]bool, len(items))
		for k, i := range order {
			weight := weigh(items[i].line)
			if weight > share && k == 0 && share > 8 {
				items[i].line = shorten(items[i].line, text.Prefix(items[i].line, share-4, weight, count))
				weight = weigh(items[i].line)
			}
			if weight > share {
				if share < 4 {
					break
				}
				continue
			}
			share -= weight
			left -= weight
			taken[i] = true
		}
		for i := range items {
			if taken[i] {
				chosen[heading] = append(chosen[heading], items[i].line)
			}
		}
		if chosen[heading] != nil {
			left -= count(heading + "\n")
		}
	}
	choose(headBefore, room/2, n.before)
	asked := slices.Clone(n.asked)
	for i := range asked { // the first, then the newest
		if asked[i].score = i; i == 0 {
			asked[i].score = len(asked)
		} else {
			asked[i].line = shorten(asked[i].line, 400)
		}
	}
	share := room / 3
	if len(n.said)+len(n.results)+len(n.tools)+len(n.paths)+len(n.errs) == 0 && n.answer.text == "" {
		share = room
	}
	choose(headAsked, share, asked)
	if n.answer.text != "" {
		choose(headAnswer, room/8, []note{{n.answer.text, 0}})
	}
	var tools []note
	for i, t := range n.tools {
		tools = append(tools, note{fmt.Sprintf("%s %d", t.name, t.calls), len(n.tools) - i})
	}
	choose(headTools, room/12, tools)
	choose(headErrs, room/10, newestFirst(n.errs))
	choose(headPaths, room/8, newestFirst(n.paths))
	choose(headResults, left/2, byScore(n.results))
	choose(headSaid, left, byScore(n.said))

	var b strings.Builder
	for _, heading := range headings {
		if lines := chosen[heading]; len(lines) > 0 {
			b.WriteString(heading + "\n")
			for _, line := range lines {
				b.WriteString("- " + line + "\n")
			}
		}
	}
	switch {
	case b.Len() > 0:
	case len(n.asked) > 0: // there is no room for a line
		return headAsked + "\n- " + n.asked[0].line
	default:
		return "Nothing was said."
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// newestFirst returns notes of lines, the first and then the newest of which are the best.
func newestFirst(lines []string) []note {
	out := make([]note, len(lines))
	for i, line := range lines {
		if out[i] = (note{shorten(line, 300), i}); i == 0 {
			out[i].score = len(lines)
		}
	}
	return out
}

// byScore returns notes of which the newer is the better one where both are as useful.
func byScore(lines []note) []note {
	out := make([]note, len(lines))
	for i, l := range lines {
		out[i] = note{shorten(l.line, 300), l.score*len(lines) + 2*i}
	}
	return out
}

// appendNew appends s to a list that does not hold it yet, unless s is empty or the
// list is full.
func appendNew(list []string, s string) []string {
	if s == "" || len(list) == mostNoted || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// oneLine returns s on one line, shortened to about 4 kB.
func oneLine(s string) string { return strings.Join(strings.Fields(shorten(s, 4<<10)), " ") }

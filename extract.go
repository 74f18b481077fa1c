package convo

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// Extract is a [Summarizer] that calls no model. Its summary lists what the user
// said, the tools that were called and how often, the paths and errors that came
// up, and the last answer. It is quick, needs no network, returns the same text
// for the same messages, and never exceeds SummaryRequest.MaxTokens.
type Extract struct{}

// Summarize extracts a summary from req.Messages, and adds it to req.Previous. If
// req.MaxTokens is not positive, the summary has at most 500 tokens; if req.Count
// is nil, [Heuristic] counts them. The only error is the reason why ctx ended.
func (Extract) Summarize(ctx context.Context, req SummaryRequest) (Summary, error) {
	if ctx.Err() != nil {
		return Summary{}, context.Cause(ctx)
	}
	var n notes
	n.readPrevious(req.Previous)
	for i := range req.Messages {
		n.read(&req.Messages[i])
	}
	count := req.Count
	if count == nil {
		count = Heuristic{}.CountTokens
	}
	limit := req.MaxTokens
	if limit <= 0 {
		limit = maxSummary(0)
	}
	// Shorten the text until it fits.
	summary := ""
	for lines, width := 40, 400; ; lines, width = lines/2, max(width*2/3, 24) {
		summary = n.text(lines, width)
		if count(summary) <= limit {
			break
		}
		if lines == 0 {
			summary = summary[:text.Prefix(summary, limit, count(summary), count)]
			break
		}
	}
	return Summary{Text: summary}, nil
}

// notes is what Extract notes down, one field for each heading of its text.
type notes struct {
	before string   // a summary that was not written by Extract
	asked  []string // what the user said
	tools  []toolCount
	paths  []string
	errs   []string
	answer string // the last one
}

// A toolCount says how often a tool was called.
type toolCount struct {
	name  string
	calls int
}

// Headings of the text. Text from a message always follows "- " there, so it
// cannot be mistaken for a heading.
const (
	headBefore = "Before:"
	headAsked  = "The user said:"
	headTools  = "Tools called:"
	headPaths  = "Paths:"
	headErrs   = "Errors:"
	headAnswer = "Last answer:"
)

var headings = [...]string{headBefore, headAsked, headTools, headPaths, headErrs, headAnswer}

// read notes what a message says.
func (n *notes) read(m *Message) {
	switch m.Role {
	case RoleUser, RoleSystem:
		if line := oneLine(m.Text()); line != "" {
			if m.Author != "" {
				line = oneLine(m.Author) + ": " + line
			}
			n.asked = append(n.asked, line)
		}
	case RoleAssistant:
		if line := oneLine(m.Text()); line != "" {
			n.answer = line
		}
		for _, c := range m.ToolCalls() {
			n.addCalls(oneLine(c.Name), 1)
			n.findPaths(c.Arguments)
		}
	case RoleTool:
		for _, r := range m.ToolResults() {
			content := r.Text()
			if r.IsError {
				n.errs = appendNew(n.errs, oneLine(r.Name)+": "+oneLine(firstLine(content)))
			}
			n.findPaths(content)
		}
	}
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
	mostSearched = 64 << 10 // bytes of one text that are searched for paths
	mostNoted    = 500      // different tools, and likewise paths and errors
)

// findPaths notes the words of a text that look like paths: those with a slash and
// a dot after the last slash, or with two slashes.
func (n *notes) findPaths(s string) {
	words := strings.FieldsFuncSeq(s[:text.Floor(s, mostSearched)], func(r rune) bool {
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

// readPrevious reads a summary that Extract wrote earlier. It notes any other text
// as it is.
func (n *notes) readPrevious(previous string) {
	heading := ""
	var before []string
	for line := range strings.Lines(previous) {
		line = strings.TrimRight(line, "\n")
		if slices.Contains(headings[:], line) {
			heading = line
			continue
		}
		item := strings.TrimPrefix(line, "- ")
		switch {
		case heading == headBefore || heading == "":
			before = append(before, item)
		case item == "":
		case heading == headAsked:
			n.asked = append(n.asked, item)
		case heading == headTools:
			name, calls, _ := cutLast(item, " ")
			if count, err := strconv.Atoi(calls); err == nil {
				n.addCalls(name, count)
			}
		case heading == headPaths:
			n.paths = appendNew(n.paths, item)
		case heading == headErrs:
			n.errs = appendNew(n.errs, item)
		case heading == headAnswer:
			n.answer = item
		}
	}
	n.before = oneLine(strings.Join(before, " "))
}

// text renders the notes with at most the given number of lines under a heading,
// in addition to the first, and at most width bytes in each. If there are more
// lines, the first and the newest stay. With 0 lines, only what the user said is
// left.
func (n *notes) text(lines, width int) string {
	var b strings.Builder
	section := func(heading string, items []string) {
		if len(items) == 0 || lines == 0 && heading != headAsked {
			return
		}
		b.WriteString(heading + "\n")
		newest := max(len(items)-max(lines, 1), 0)
		for i, item := range items {
			if i == 0 || i >= newest {
				b.WriteString("- " + shorten(item, width) + "\n")
			}
		}
	}
	if n.before != "" {
		section(headBefore, []string{n.before})
	}
	section(headAsked, n.asked)
	var tools []string
	for _, t := range n.tools {
		tools = append(tools, fmt.Sprintf("%s %d", t.name, t.calls))
	}
	section(headTools, tools)
	section(headPaths, n.paths)
	section(headErrs, n.errs)
	if n.answer != "" {
		section(headAnswer, []string{n.answer})
	}
	if b.Len() == 0 {
		return "Nothing was said."
	}
	return strings.TrimSuffix(b.String(), "\n")
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

// firstLine returns the first line of s that is not blank.
func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// shorten cuts s to at most width bytes, and adds "..." if something was cut.
func shorten(s string, width int) string {
	if len(s) <= width {
		return s
	}
	return s[:text.Floor(s, width)] + "..."
}

// cutLast is strings.Cut, but around the last sep.
func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

package convo

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Extract is a [Summarizer] without a model: what the user asked, the tools
// with counts, the paths and errors met, and the last answer. It is quick,
// needs no network, gives the same text for the same messages, and is never
// longer than asked for.
type Extract struct{}

// Summarize takes the summary out of the messages.
func (Extract) Summarize(ctx context.Context, req SummaryRequest) (Summary, error) {
	if ctx.Err() != nil {
		return Summary{}, context.Cause(ctx)
	}
	var n notes
	n.recall(req.Previous)
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
	// Each round says less, until it fits.
	text := ""
	for lines, width := 40, 400; ; lines, width = lines/2, max(width*2/3, 24) {
		text = n.text(lines, width)
		if count(text) <= limit {
			break
		}
		if lines == 0 {
			text = text[:prefixOf(text, limit, count(text), count)]
			break
		}
	}
	return Summary{Text: text}, nil
}

// notes is what Extract keeps, under the headings of its text.
type notes struct {
	before string   // a summary that Extract has not written
	asked  []string // by the user
	tools  []tally
	paths  []string
	errs   []string
	answer string // the last one
}

type tally struct {
	name string
	n    int
}

// Headings of the text. A line of a message never stands at the start of a
// line there, so none can imitate them.
const (
	headBefore = "Before:"
	headAsked  = "The user said:"
	headTools  = "Tools called:"
	headPaths  = "Paths:"
	headErrs   = "Errors:"
	headAnswer = "Last answer:"
)

var headings = [...]string{headBefore, headAsked, headTools, headPaths, headErrs, headAnswer}

func (n *notes) read(m *Message) {
	switch m.Role {
	case RoleUser:
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
			n.called(oneLine(c.Name), 1)
			n.find(c.Arguments)
		}
	case RoleTool:
		for _, r := range m.ToolResults() {
			text := r.Text()
			if r.IsError {
				n.errs = appendNew(n.errs, oneLine(r.Name)+": "+oneLine(firstLine(text)))
			}
			n.find(text)
		}
	}
}

func (n *notes) called(name string, times int) {
	for i := range n.tools {
		if n.tools[i].name == name {
			n.tools[i].n += times
			return
		}
	}
	if len(n.tools) < mostNoted {
		n.tools = append(n.tools, tally{name, times})
	}
}

// Bounds of the work: how many bytes of one text are searched for paths, and
// how many different tools, paths and errors are noted.
const (
	mostSearched = 64 << 10
	mostNoted    = 500
)

// find collects what looks like a path: words with a slash and a dot in the
// last part, or with two slashes.
func (n *notes) find(text string) {
	words := strings.FieldsFuncSeq(text[:runeStart(text, min(len(text), mostSearched))], func(r rune) bool {
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

// recall reads what an earlier Extract wrote; any other text is kept as it is.
func (n *notes) recall(previous string) {
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
			name, times, _ := cutLast(item, " ")
			if count, err := strconv.Atoi(times); err == nil {
				n.called(name, count)
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

// text renders the notes with so many lines under each heading, each so long.
// The first and the newest stay longest.
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
		tools = append(tools, fmt.Sprintf("%s %d", t.name, t.n))
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

func appendNew(list []string, s string) []string {
	if s == "" || len(list) == mostNoted || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

func oneLine(s string) string { return strings.Join(strings.Fields(shorten(s, 4<<10)), " ") }

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

func shorten(s string, width int) string {
	if len(s) <= width {
		return s
	}
	return s[:runeStart(s, width)] + "..."
}

// cutLast cuts s around the last sep.
func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

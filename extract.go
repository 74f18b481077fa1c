package convo

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo/internal/names"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// Extract is a [Summarizer] that calls no model. Its summary lists what the user said,
// what the assistant said, lines of results, the tools that were called and how often,
// the paths and errors that came up, and the last answer. It is quick, returns the same
// text for the same messages, and never exceeds SummaryRequest.MaxTokens. What no person
// wrote, see [HostMeta], is read like a result.
//
// It fills that room. Up to a third of it goes to what the user said: the first message, and
// then those with words that few others have. Of the rest it prefers lines with names, such as paths,
// identifiers, dates and amounts, which come up again later. A repeated line is listed
// once. Of the oldest results above 2 MB it reads the beginning; Report.Unread counts the rest.
type Extract struct{}

// Summarize extracts a summary from req.Messages, and adds it to req.Previous. If
// req.MaxTokens is not positive, the summary has at most 500 tokens; if req.Count
// is nil, [Heuristic] counts them. The only error is the reason why ctx ended.
func (Extract) Summarize(ctx context.Context, req SummaryRequest) (Summary, error) {
	if ctx.Err() != nil {
		return Summary{}, causeOf(ctx)
	}
	sources := make([]source, len(req.Messages))
	for i := range sources {
		sources[i].msg = &req.Messages[i]
	}
	var n notes
	n.readAll(sources)
	return Summary{Text: n.summary(&req)}, nil
}

// summary returns the summary for a request whose messages were read.
func (n *notes) summary(req *SummaryRequest) string {
	n.readPrevious(req.Previous)
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
			return summary
		}
		if room < 8 {
			return summary[:text.Prefix(summary, limit, weight, count)]
		}
	}
}

// notes holds what Extract collects in one pass over the messages, from the newest to the
// oldest. The notes of a list are in that order.
type notes struct {
	names   names.Index
	before  []note  // lines of a summary that was not written by Extract
	asked   []note  // what the user said
	rare    *ranked // asked but for the first, by how rare their words are; nil: not ranked yet
	said    ranked  // what the assistant said
	results ranked  // lines of results
	tools   []note
	errs    []note
	paths   []note
	answer  note // the last answer
	alike   echoes

	lines  []note // for readLines
	free   []note // memory for keep
	read   int    // bytes of the texts that were searched
	whole  int    // bytes of results that may still be read as a whole
	unread int64  // raw tokens of results that were not read
}

// A note is a line, and where it is from.
type note struct {
	text   string   // what the line is made of, unless msg is set
	msg    *Message // of the user
	at     int64    // grows from the oldest to the newest
	nth    int      // in a ranked list
	calls  int      // of a tool
	most   int      // characters that are shown of the line; 0: all
	line   string   // made by show, with "- " and a line feed; empty: not made yet
	weight int      // of line, in tokens
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
func (n *notes) keep(l note) *note {
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

// readAll notes what messages say.
func (n *notes) readAll(sources []source) {
	said, results := 0, 0
	for i := range sources {
		for role, text := range sources[i].msg.texts {
			if role == RoleTool {
				results += len(text)
			} else {
				said += len(text)
			}
		}
	}
	n.whole = max(mostRead-said, mostRead/8)
	n.names.Grow((said + min(n.whole, results)) / 64)
	for i := range slices.Backward(sources) {
		role := n.speaker(sources[i].msg)
		n.readSource(&sources[i], role, names.Source{Place: i, Weight: nameWeight[role], Said: role != RoleTool})
	}
}

// speaker returns the role of a message, or RoleTool for a user message that no person wrote.
func (n *notes) speaker(m *Message) Role {
	if m.isHosts() || m.Role == RoleUser && n.alike.has(m) {
		return RoleTool
	}
	return m.Role
}

// readSource notes what a message says. role is its speaker.
func (n *notes) readSource(s *source, role Role, from names.Source) {
	m := s.msg
	at := int64(from.Place) << 20
	for media := range m.allMedia {
		if media.Data == "" {
			n.names.Read(media.URL, from)
		}
	}
	switch role {
	case RoleUser, RoleSystem:
		for _, text := range m.texts {
			n.search(text, from)
		}
		if m.isEmpty() {
			return
		}
		if len(n.asked) == mostAsked {
			n.asked = n.asked[:mostAsked-1] // the oldest one stays
		}
		n.asked = append(n.asked, note{msg: m, at: at})
	case RoleAssistant:
		isAnswer := n.answer.text == ""
		for i, p := range m.Parts {
			switch p := p.(type) {
			case Text:
				n.readLines(&n.said, 0, string(p), note{at: at, most: 300}, from, isAnswer)
			case ToolCall:
				paths := from
				paths.Paths = true
				n.search(p.Arguments, paths)
				n.addCalls(p.Name, 1, at+int64(i))
			}
		}
		if isAnswer {
			n.answer = note{text: strings.TrimSpace(m.Text()), at: at}
		}
	case RoleTool:
		from.Paths = true
		for i, p := range m.Parts {
			r, ok := p.(ToolResult)
			if ok && r.IsError {
				first, _, _ := strings.Cut(strings.TrimSpace(r.Text()), "\n")
				n.errs = addOnce(n.errs, note{text: oneLine(r.Name) + ": " + oneLine(first), at: at + int64(i), most: 300})
			}
			for t := range eachOf[Text](r.Parts) {
				n.readResult(s, string(t), at, from)
			}
			if t, ok := p.(Text); ok { // of a user message that no person wrote
				n.readResult(s, string(t), at, from)
			}
		}
	}
}

// readResult notes lines of a text of a result, or of its beginning if too much was read.
func (n *notes) readResult(s *source, t string, at int64, from names.Source) {
	part := len(t)
	if most := max(n.whole, leastRead); part > most {
		part = text.BorderBefore(t, most)
		n.unread += portion(s.tokens, int64(len(t)-part), int64(len(t)))
	}
	n.whole = max(n.whole-part, 0)
	n.readLines(&n.results, 4, t[:part], note{at: at, most: 240}, from, false)
}

// search reads a text for names. It reports how many it has, and how many of them a newer
// message has said.
func (n *notes) search(text string, from names.Source) (own, again int) {
	n.read += len(text)
	return n.names.Read(text, from)
}

// readLines notes those lines of a text whose score is at least the given one. If skip is set,
// it only reads them.
func (n *notes) readLines(list *ranked, least int, s string, l note, from names.Source, skip bool) {
	n.lines = n.lines[:0]
	for l.text = range strings.Lines(s) {
		own, again := n.search(l.text, from)
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
func (n *notes) addCalls(name string, calls int, at int64) {
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

// readPrevious reads a summary that Extract wrote earlier, after the messages. It keeps any
// other text as it is.
func (n *notes) readPrevious(previous string) {
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
		line = oneLine(l.msg.Text())
		for media := range l.msg.allMedia {
			line = strings.TrimSpace(fmt.Sprintf("%s [%s: %s]", line, media.label(), oneLine(media.place())))
		}
		if line != "" && l.msg.Author != "" {
			line = oneLine(l.msg.Author) + ": " + line
		}
	case l.calls > 0:
		line = fmt.Sprintf("%s %d", oneLine(l.text), l.calls)
	default:
		line = oneLine(l.text)
	}
	if l.most > 0 {
		line = shortenRunes(line, l.most)
	}
	l.line = listed(line)
	l.weight = count(l.line)
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
func (n *notes) firstThenRarest(yield func(*note) bool) {
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

// text renders the notes in about the given number of tokens.
func (n *notes) text(room int, count func(string) int) string {
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
				line = listed(shorten(said, text.Prefix(said, share-4, weight, count)))
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

// oneLine returns s on one line, shortened to about 4 kB.
func oneLine(s string) string {
	s = strings.TrimSpace(shorten(s, 4<<10))
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == ' ' && s[i+1] == ' ' {
			return strings.Join(strings.Fields(s), " ")
		}
	}
	return s
}

// shortenRunes is shorten for a number of characters.
func shortenRunes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i] + "..."
		}
		n--
	}
	return s
}

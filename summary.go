package convo

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
	"github.com/seed-c1b73e60/convo/internal/repeats"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// A Summary is a text that stands for entries removed from the view. A view has at most
// one, directly after the system entries. It is not an entry: it has no ID and no index,
// and cannot be pinned.
type Summary struct {
	// Text is the summary as written, without the tags that mark it for the model.
	Text string

	// Names is a line of names that left the view and appear nowhere else in it, such as
	// paths, identifiers, dates and amounts. The model sees it after Text. [Summarize]
	// creates it for each summary without calling a model. A summarizer need not set it,
	// and the previous summary that it receives does not include it.
	Names string

	// Covers are the IDs of the entries that the summary stands for. In an [Edit], nil
	// means all entries that the edit drops. If Covers is set, dropped entries outside it
	// are reported in Report.Dropped. The IDs covered by a replaced summary are added.
	//
	// Two ranges are joined if no entry of the view is between them. So a range may also
	// include IDs of entries that SetSystem replaced, that a rollback removed, or that
	// were dropped without being summarised.
	Covers []Range

	// How the summary was written.
	Stop  Stop   // why the model stopped; StopDone for a summary in the view
	Usage Usage  // as reported by the model's provider
	Model string // the model's name, for Report.Model; may be empty

	// The History sets these fields; their values in an Edit are ignored.
	Updates int       // how many times the first summary was updated
	Tokens  int       // raw tokens, including the tags and Options.SummaryHint
	Time    time.Time // when it was added to the view; zero for a summary from With that is in no History
}

// Format prints the beginning of the text. The verb %+v also prints the IDs that the
// summary covers.
func (s Summary) Format(f fmt.State, verb rune) { printTo(f, verb, s.print) }

func (s Summary) print(ids bool) string {
	covers := ""
	if ids && len(s.Covers) > 0 {
		covers = " of " + printRanges(s.Covers)
	}
	return fmt.Sprintf("summary(%s)%s", abbreviate(s.Text), covers)
}

// printRanges returns ranges as text, such as "3-9 12".
func printRanges(ranges []Range) string {
	texts := make([]string, len(ranges))
	for i, r := range ranges {
		if texts[i] = fmt.Sprint(r.First); r.Last != r.First {
			texts[i] = fmt.Sprintf("%d-%d", r.First, r.Last)
		}
	}
	return abbreviateList(texts)
}

// maxUpdates is the largest value of Summary.Updates.
const maxUpdates = math.MaxInt32

// A Range is a range of IDs from First to Last, inclusive.
type Range struct {
	First ID `json:"first"`
	Last  ID `json:"last"`
}

// A Stop is the reason why a model stopped writing.
type Stop uint8

// The reasons why a model stops. A summary is used only if its Stop is
// StopDone, the zero value.
const (
	StopDone     Stop = iota // the model finished
	StopLength               // it reached a limit, such as the output limit
	StopToolCall             // it called a tool
	StopRefused              // it refused, or its provider stopped the answer
	StopPause                // its provider paused, and goes on with the answer when it gets it back; see History.Do
)

// String returns the reason in lower case, such as "tool call".
func (s Stop) String() string { return nameOf(s, "done", "length", "tool call", "refused", "pause") }

// A placedSummary is the summary of a view. It never changes.
type placedSummary struct {
	sum     Summary
	raw     int64           // raw tokens, including the tags
	hint    string          // what the model sees after it, with the space before it
	content fingerprint.Sum // of the text that the model sees
}

// place returns a summary for a view.
func (id *identity) place(sum Summary) *placedSummary {
	text, hint := sum.shown(), id.summaryHint()
	return &placedSummary{sum: sum, raw: id.summaryTokens(text), hint: hint, content: fingerprint.Sum(0).String(text + hint)}
}

// summaryHint returns Options.SummaryHint as it follows a summary.
func (id *identity) summaryHint() string {
	if id.hint == "" {
		return ""
	}
	return "\n\n" + id.hint
}

// tokens returns the raw tokens of s, which may be nil.
func (s *placedSummary) tokens() int64 {
	if s == nil {
		return 0
	}
	return s.raw
}

// Summary returns a copy of the summary, and reports whether the view has one.
func (s *Snapshot) Summary() (Summary, bool) {
	if s.summary == nil {
		return Summary{}, false
	}
	sum := s.summary.sum
	sum.Covers = slices.Clone(sum.Covers)
	return sum, true
}

// summaryMessage returns the summary as the model sees it: a user message with tags that
// no text can forge.
func summaryMessage(key string, s *placedSummary) Message {
	open, end := summaryTags(key)
	return User(open + maskKey(key, s.sum.shown()+s.hint) + end)
}

// namesLine precedes Summary.Names in the message that the model sees.
const namesLine = "\n\nNames that came up before: "

// mostNames is the maximum number of tokens in Summary.Names.
const mostNames = 300

// mostSearched is how many bytes of one text are searched for names and paths.
const mostSearched = 64 << 10

// searched returns as much of a text as is searched.
func searched(s string) string { return s[:text.Floor(s, mostSearched)] }

// shown returns the text that the model sees of s, without the tags and the hint.
func (s *Summary) shown() string {
	if s.Names == "" {
		return s.Text
	}
	return s.Text + namesLine + s.Names
}

// splitNames is the inverse of shown.
func splitNames(shown string) (text, names string) {
	if i := strings.LastIndex(shown, namesLine); i > 0 && !strings.Contains(shown[i+len(namesLine):], "\n") {
		return shown[:i], shown[i+len(namesLine):]
	}
	return shown, ""
}

// summaryTokens returns the raw tokens of a summary with this text, including the tags
// and the hint.
func (id *identity) summaryTokens(text string) int64 {
	open, end := summaryTags(typicalKey)
	return int64(id.over.Message) + id.text(open) + id.text(maskKey(id.key, text+id.summaryHint())) + id.text(end)
}

// covering returns ranges in ascending order, joining two ranges if no entry of the view
// is between them. So the result has at most one range more than the view has entries. It
// may sort its argument.
func (s *state) covering(ranges []Range) []Range {
	if !slices.IsSortedFunc(ranges, byFirst) {
		slices.SortFunc(ranges, byFirst)
	}
	var out []Range
	for _, r := range ranges {
		if n := len(out); n > 0 && !s.hasWithin(out[n-1].Last+1, r.First-1) {
			out[n-1].Last = max(out[n-1].Last, r.Last)
			continue
		}
		out = append(out, r)
	}
	return out
}

// hasWithin reports whether the view has an entry with an ID from first to last.
func (s *state) hasWithin(first, last ID) bool {
	if first > last {
		return false
	}
	for _, list := range [...][]*entry{s.sys, s.list} {
		if i, ok := index(list, first); ok || i < len(list) && list[i].id <= last {
			return true
		}
	}
	return false
}

// rangesOf returns the ranges that hold exactly the given ascending IDs.
func rangesOf(ids []ID) []Range {
	var out []Range
	for _, id := range ids {
		if n := len(out); n > 0 && out[n-1].Last+1 == id {
			out[n-1].Last = id
			continue
		}
		out = append(out, Range{id, id})
	}
	return out
}

// checkUsable returns an error if the summary of a strategy's edit must not be used.
// freed is the number of raw tokens that the edit frees, and minFree the number that it
// must free. s may be nil.
func (s *Summary) checkUsable(freed, minFree int64) error {
	if s == nil || s.Text == "" && s.Stop == StopDone {
		return nil
	}
	if err := s.fault(); err != nil {
		return err
	}
	if freed < minFree {
		return &RefusedError{Reason: fmt.Sprintf("compaction would free too little: %s tokens, want at least %s", grouped(clampInt(freed)), grouped(clampInt(minFree)))}
	}
	return nil
}

// fault returns an error if the summary is not complete or has no text.
func (s *Summary) fault() error {
	switch {
	case s.Stop == StopLength:
		return &RefusedError{Reason: "the summary was cut off; raise the output limit of its model"}
	case s.Stop == StopToolCall:
		return &RefusedError{Reason: "the model called a tool instead of finishing the summary"}
	case s.Stop == StopRefused:
		return &RefusedError{Reason: "the model refused to write a summary"}
	case s.Stop == StopPause:
		return &RefusedError{Reason: "the model paused before it finished the summary"}
	case s.Stop != StopDone:
		return &RefusedError{Reason: "the summary has an unknown Stop: " + s.Stop.String()}
	case strings.TrimSpace(s.Text) == "":
		return &RefusedError{Reason: "the summary is empty"}
	}
	return nil
}

// repeats returns an error if the text repeats itself, as it may when a model finds no
// end.
func (s *Summary) repeats() error {
	if words := repeats.Of(s.Text); words != "" {
		return &RefusedError{Reason: fmt.Sprintf("the summary repeats itself, over and over: %q; if that happens again, use another model to summarise", abbreviate(words))}
	}
	return nil
}

func byFirst(a, b Range) int { return cmp.Compare(a.First, b.First) }

// within returns the IDs that are in any of the ranges. ids ascend, and ranges are sorted
// by First.
func within(ids []ID, ranges []Range) []ID {
	var in []ID
	last := ID(0) // the largest Last of the ranges that begin at or before id
	for _, id := range ids {
		for len(ranges) > 0 && ranges[0].First <= id {
			last = max(last, ranges[0].Last)
			ranges = ranges[1:]
		}
		if id <= last {
			in = append(in, id)
		}
	}
	return in
}

// without returns the ranges without the given IDs. ids ascend, and ranges are sorted by
// First.
func without(ranges []Range, ids []ID) []Range {
	out := make([]Range, 0, len(ranges)+len(ids))
	for _, r := range ranges {
		from, _ := slices.BinarySearch(ids, r.First)
		for _, id := range ids[from:] {
			if id > r.Last {
				break
			}
			if r.First < id {
				out = append(out, Range{r.First, id - 1})
			}
			r.First = id + 1
		}
		if r.First <= r.Last {
			out = append(out, r)
		}
	}
	return out
}

// redactor returns a function that changes a copy of a message as Options.Redact, which
// may be nil, says.
func redactor(redact func(Message) Message) func(Message) Message {
	return func(m Message) Message {
		if redact == nil {
			return m
		}
		out := redact(m.clone())
		out.Role = m.Role
		return out
	}
}

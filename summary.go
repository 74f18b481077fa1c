package convo

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/internal/repeats"
)

// A Summary is a text that stands for entries that were removed from the view.
// A view has at most one, directly after the system entries. It is not an
// entry: it has no ID and no index, and cannot be pinned.
type Summary struct {
	// Text is the summary as it was written, without the tags that mark it for
	// the model.
	Text string

	// Covers are the IDs of the entries that the summary stands for. In an
	// [Edit], nil means all entries that the edit drops. If Covers is set, a
	// dropped entry outside it is reported in Report.Dropped. The IDs that a
	// replaced summary covered are added.
	//
	// Two ranges are joined if no entry of the view is between them. So a range
	// may also hold IDs of entries that SetSystem replaced, that a rollback
	// removed, or that were dropped without having been summarised.
	Covers []Range

	// What is known about the writing of it.
	Stop  Stop   // why the model stopped; StopDone for a summary in place
	Usage Usage  // what the model's provider reported
	Model string // the model's name, for Report.Model; may be empty

	// The History sets these fields; their values in an Edit are ignored.
	Updates int       // how many times the first summary was updated
	Tokens  int       // raw tokens, including the tags
	Time    time.Time // when it was put into the view; zero for one that With shows and no History holds
}

// Format prints the beginning of the text.
// The verb %+v also prints what the summary
// covers.
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

// A Range is a range of IDs, from First to Last, both included.
type Range struct {
	First ID `json:"first"`
	Last  ID `json:"last"`
}

// A Stop says why a model stopped writing.
type Stop uint8

// The reasons why a model stops. A summary is used only if its Stop is
// StopDone, the zero value.
const (
	StopDone     Stop = iota // the model had finished
	StopLength               // it reached a limit, such as that of its output
	StopToolCall             // it called a tool
	StopRefused              // it refused, or its provider broke the answer off
)

// String returns the reason in lower case, such as "tool call".
func (s Stop) String() string { return nameOf(s, "done", "length", "tool call", "refused") }

// A placedSummary is the summary of a view. It never changes.
type placedSummary struct {
	sum Summary
	raw int64 // raw tokens, including the tags
}

// tokens returns the raw tokens of s, which may be nil.
func (s *placedSummary) tokens() int64 {
	if s == nil {
		return 0
	}
	return s.raw
}

// Summary returns a copy of the summary, and whether the view has one.
func (s *Snapshot) Summary() (Summary, bool) {
	if s.summary == nil {
		return Summary{}, false
	}
	sum := s.summary.sum
	sum.Covers = slices.Clone(sum.Covers)
	return sum, true
}

// summaryMessage returns the summary as the model sees it: a user message with
// tags that no text can forge.
func summaryMessage(key string, s *placedSummary) Message {
	open, end := summaryTags(key)
	return User(open + maskKey(key, s.sum.Text) + end)
}

// summaryTokens returns the raw tokens of a summary with this text, including
// the tags.
func (id *identity) summaryTokens(text string) int64 {
	open, end := summaryTags(typicalKey)
	return int64(id.over.Message) + id.text(open) + id.text(maskKey(id.key, text)) + id.text(end)
}

// covering returns ranges in ascending order, with two ranges joined if no
// entry of the view is between them. So there is at most one more than the view
// has entries. It may sort its argument.
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

// hasWithin reports whether the view has an entry with an ID from first to
// last.
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

// rangesOf returns the ranges that hold exactly the given IDs, which ascend.
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

// checkUsable returns an error if the summary of a strategy's edit may not be
// used. freed is how many raw tokens the edit frees, and minFree how many it must
// free. s may be nil.
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
	case s.Stop != StopDone:
		return &RefusedError{Reason: "the summary has an unknown Stop: " + s.Stop.String()}
	case strings.TrimSpace(s.Text) == "":
		return &RefusedError{Reason: "the summary is empty"}
	}
	return nil
}

// repeats returns an error if the text repeats itself, as that of a model may which
// does not find its end.
func (s *Summary) repeats() error {
	if words := repeats.Of(s.Text); words != "" {
		return &RefusedError{Reason: fmt.Sprintf("the summary repeats itself, over and over: %q; if that happens again, use another model to summarise", abbreviate(words))}
	}
	return nil
}

func byFirst(a, b Range) int { return cmp.Compare(a.First, b.First) }

// within returns the IDs that any of the ranges holds. ids ascend, and ranges
// are sorted by First.
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

// without returns the ranges without the given IDs. ids ascend, and ranges are
// sorted by First.
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

package convo

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Summary stands for entries that went. It is a slot of the view, not an
// entry: it has no ID and no index, and there is at most one, directly after
// the system entries.
type Summary struct {
	// Text is the summary as it was written, without the wrapper that marks
	// it for the model.
	Text string

	// Covers are the IDs of the entries it stands for. Nil in an [Edit]: all
	// that it drops. What the replaced summary covered is added.
	Covers []Range

	Stop  Stop  // why the model that wrote it stopped
	Usage Usage // what writing it cost

	// Filled in by the History.
	Updates int       // how often it was updated since the first
	Tokens  int       // raw, with the wrapper
	Time    time.Time // when it was put in place
}

// A Range is the IDs from First to Last, both included.
type Range struct {
	First ID `json:"first"`
	Last  ID `json:"last"`
}

// A Stop says why a model stopped writing.
type Stop uint8

// Reasons to stop. StopDone, the zero value, says that it had finished.
const (
	StopDone Stop = iota
	StopLength
	StopToolCall
	StopRefused
)

func (s Stop) String() string { return nameOf(s, "done", "length", "tool call", "refused") }

// nameOf names a small number.
func nameOf[N ~uint8](n N, names ...string) string {
	if int(n) < len(names) {
		return names[n]
	}
	return fmt.Sprintf("%T(%d)", n, uint8(n))
}

// A slot is a summary in place. It never changes.
type slot struct {
	sum Summary
	raw int64
}

func (s *slot) tokens() int64 {
	if s == nil {
		return 0
	}
	return s.raw
}

// Summary returns the summary, and whether there is one.
func (s *Snapshot) Summary() (Summary, bool) {
	if s.slot == nil {
		return Summary{}, false
	}
	sum := s.slot.sum
	sum.Covers = slices.Clone(sum.Covers)
	return sum, true
}

// summaryMessage is the summary as the model sees it: a user message whose
// wrapper no text can forge.
func summaryMessage(key string, s *slot) Message {
	open, end := summaryTags(key)
	return User(open + shownSummary(key, s.sum.Text) + end)
}

// shownSummary is the text of a summary as the model sees it: what imitates our
// tags, key and all, stays text.
func shownSummary(key, text string) string {
	if strings.Contains(text, key) {
		return escapeTags(text)
	}
	return text
}

func summaryTags(key string) (open, end string) {
	return fmt.Sprintf("<summary key=%q>\nWhat went before in this conversation, in short:\n", key),
		fmt.Sprintf("\n</summary key=%q>", key)
}

// summaryTokens counts a summary with its wrapper.
func (id *identity) summaryTokens(text string) int64 {
	open, end := summaryTags(typicalKey)
	return int64(id.over.Message) + id.text(open) + id.text(shownSummary(id.key, text)) + id.text(end)
}

// joinRanges returns what any of the ranges covers: ascending, apart.
func joinRanges(ranges ...Range) []Range {
	slices.SortFunc(ranges, func(a, b Range) int { return int(min(max(a.First-b.First, -1), 1)) })
	var out []Range
	for _, r := range ranges {
		if n := len(out); n > 0 && r.First <= out[n-1].Last+1 {
			out[n-1].Last = max(out[n-1].Last, r.Last)
			continue
		}
		out = append(out, r)
	}
	return out
}

// rangesOf returns the ranges that cover ascending IDs.
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

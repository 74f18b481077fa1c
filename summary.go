package convo

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/internal/answers"
	"github.com/seed-c1b73e60/convo/internal/fingerprint"
	"github.com/seed-c1b73e60/convo/internal/ranges"
	"github.com/seed-c1b73e60/convo/internal/repeats"
	"github.com/seed-c1b73e60/convo/internal/tags"
	"github.com/seed-c1b73e60/convo/internal/wording"
)

// A Summary is a text that stands for entries removed from the view. A view has at most
// one, directly after the system entries. It is not an entry: it has no ID and no index,
// and cannot be pinned.
type Summary struct {
	Text string // the summary as written, without the tags that mark it for the model

	// Names is a line of names that left the view, such as paths, identifiers, dates and
	// amounts, and are not in what stays of it, or in the newest megabyte of that. The model
	// sees it after Text. [Summarize] makes it for each summary without a model. A summarizer
	// need not set it, and does not get it with the previous summary.
	Names string

	// Covers are the IDs of the entries that the summary stands for. In an [Edit], nil means
	// all entries that the edit drops; others that it drops are in Report.Dropped. The IDs
	// covered by a replaced summary are added.
	//
	// Two ranges are joined if no entry of the view is between them. So a range may also
	// include IDs of entries that SetSystem replaced, that a rollback removed, or that were
	// dropped without being summarised.
	Covers []Range

	// Read are the IDs of entries that the summary describes although they stay: those with results
	// that a [Chain] lets [Summarize] read before they are cleared, and older words of the user.
	// The IDs read for a replaced summary are added.
	//
	// If such an entry is taken back or its content forgotten, the summary from before the reading
	// takes the place of this one, with what [Extract] makes of what has left since. If the edit
	// that forgets it has a summary, that one replaces the one from before. The two last
	// readings can be taken back, and those of Summarize, or of an edit whose summary stands for
	// nothing more. For others, RewindTo returns an error, and the summary stays; see also
	// Report.Remembered.
	Read []Range

	// Native holds the summary as the model's provider wrote it. A format of package wire for
	// the same model sends its items in place of Text; others send Text. NativeSummary of
	// package wire makes it.
	Native Native

	// How the summary was written.
	Stop  Stop   // why the model stopped; StopDone for a summary in the view
	Usage Usage  // as reported by the model's provider
	Model string // the model's name, for Report.Model; may be empty

	// The History sets these fields; their values in an Edit are ignored.
	Updates int       // how many times the first summary was updated
	Tokens  int       // raw tokens, including the tags and Options.SummaryHint
	Time    time.Time // when it was added to the view; zero for a summary from With that is in no History

	// before is the summary from before the last reading, which is not counted in an Edit. Without
	// a text, there was none. Nil: it is not known, or not needed, since Covers has all of Read.
	before *placedSummary
}

// A Native is a compaction made by a provider, for requests to the same model.
type Native struct {
	Format string   // the format of the items, such as wire.FormatAnthropic; empty: there are none
	Model  string   // the model that made them
	Items  []string // the JSON of each item, in order, as it came; at least one

	// Compacted is the snapshot that the items stand for; see [Snapshot.Before]. It is for an
	// [Edit]: a History keeps the fingerprint of what is in it, and sets Compacted to nil. The
	// entries that followed stay bound (see [Snapshot.Unbound]) while the system entries and the
	// tools are those of Compacted. If it is nil, the summary ends their bonds, as a text does.
	Compacted *Snapshot

	stoodFor []coveredView
}

// A coveredView is a view that the items of a Native stand for: what was made after the
// view is bound after the items.
type coveredView struct {
	front fingerprint.Sum // of the system entries and the tools
	prefix
}

// mostCovered is how many views the items of one Native stand for at most. There is one
// more for each compaction that an entry of the view has survived.
const mostCovered = 8

// clone returns a copy of n that shares no list with it.
func (n Native) clone() Native {
	n.Items, n.stoodFor = slices.Clone(n.Items), slices.Clone(n.stoodFor)
	return n
}

// sameAs reports whether both have the same items.
func (n *Native) sameAs(m *Native) bool {
	return n.Format == m.Format && n.Model == m.Model && slices.Equal(n.Items, m.Items)
}

// fault returns an error if n breaks a rule of its fields.
func (n *Native) fault() error { return answers.Fault(n.Format, n.Model, n.Items) }

// views returns what items stand for that a provider has made of s.
func (s *Snapshot) views() []coveredView {
	now := coveredView{front: s.frame().Front(), prefix: s.whole()}
	now.ephemeral = 0
	list := []coveredView{now}
	for _, c := range s.covered() {
		for _, e := range s.list {
			c.add(e)
		}
		list = append(list, c)
	}
	return list[:min(len(list), mostCovered)]
}

// covered returns the views that the native items of the summary stand for and that have
// the present system entries and tools.
func (s *state) covered() (list []coveredView) {
	if s.summary == nil {
		return nil
	}
	for _, c := range s.summary.sum.Native.stoodFor {
		if c.front == s.frame().Front() {
			list = append(list, c)
		}
	}
	return list
}

// AsText returns s without the native items of its summary, for a request that has the
// text of the summary instead. Entries that are bound only after these items are not
// bound in it.
func (s *Snapshot) AsText() *Snapshot {
	return &Snapshot{setting: s.setting, state: s.asText()}
}

// nativeTokens returns the raw tokens of native items: those of the texts in them, and for
// items without a text, such as encrypted ones, what the provider says that it wrote.
func (id *identity) nativeTokens(n *Native, u Usage) (tokens int64) {
	silent := false
	for _, item := range n.Items {
		texts, ok := answers.Texts(item)
		if !ok {
			continue
		}
		was := tokens
		for _, t := range texts {
			tokens += id.text(t)
		}
		silent = silent || tokens == was
		tokens += int64(id.over.Message)
	}
	if silent {
		tokens += int64(max(u.Output-u.Reasoning, 0))
	}
	return tokens
}

// Format prints the beginning of the text; %+v adds the IDs that it covers.
func (s Summary) Format(f fmt.State, verb rune) { wording.Print(f, verb, s.print) }

func (s *Summary) print(ids bool) string {
	covers := ""
	if ids && len(s.Covers) > 0 {
		covers = " of " + printRanges(s.Covers)
	}
	return fmt.Sprintf("summary(%s)%s", abbreviate(s.Text), covers)
}

// printRanges returns ranges as text, such as "3-9 12".
func printRanges(list []Range) string { return abbreviateList(ranges.Texts(list), " ") }

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
	StopDone      Stop = iota // the model finished
	StopLength                // it reached a limit, such as the output limit
	StopToolCall              // it called a tool
	StopRefused               // it refused, or its provider stopped the answer
	StopPause                 // its provider paused, and goes on with the answer when it gets it back; see History.Do
	StopCancelled             // the application stopped the answer, and kept what had come
)

// String returns the reason in lower case, such as "tool call".
func (s Stop) String() string {
	return wording.NameOf(s, "done", "length", "tool call", "refused", "pause", "cancelled")
}

// A placedSummary is the summary of a view. It never changes.
type placedSummary struct {
	sum     Summary
	raw     int64           // raw tokens, including the tags
	hint    string          // what the model sees after it, with the space before it
	content fingerprint.Sum // of the text that the model sees
}

// noSummary is a Summary.before that says that there was none.
var noSummary = new(placedSummary)

// summary returns the Summary that s has, or nil. s may be nil.
func (s *placedSummary) summary() *Summary {
	if s == nil {
		return nil
	}
	return &s.sum
}

// hasRead reports whether s has read the entry with the ID. s may be nil.
func (s *placedSummary) hasRead(id ID) bool {
	if s == nil {
		return false
	}
	_, is := ranges.Find(s.sum.Read, id)
	return is
}

// newestRead returns the newest entry in Read, or 0 if there is none.
func (s *Summary) newestRead() ID { return lastOf(s.Read).Last }

// newestCovered returns the newest entry that s stands for, or 0 if there is none.
func (s *Summary) newestCovered() ID { return lastOf(s.Covers).Last }

// readsMore reports whether s has read entries that it does not stand for.
func (s *Summary) readsMore() bool {
	return slices.ContainsFunc(s.Read, func(r Range) bool {
		return !slices.ContainsFunc(s.Covers, func(c Range) bool { return c.First <= r.First && r.Last <= c.Last })
	})
}

// unread returns s, or if s has read one of these entries, the newest one before it that has
// not, as far as that is known. s may be nil.
func (s *placedSummary) unread(ids []ID) *placedSummary {
	return s.back(func(s *placedSummary) bool { return slices.ContainsFunc(ids, s.hasRead) })
}

// back returns the newest of s and those before it of which passes does not report true, or the
// oldest that is known. It returns nil if there was none. s may be nil.
func (s *placedSummary) back(passes func(*placedSummary) bool) *placedSummary {
	for s != nil && s.sum.before != nil && passes(s) {
		s = s.sum.before
	}
	if s == noSummary {
		return nil
	}
	return s
}

// newestKept returns the newest entry that s stands for whatever is taken back: an entry that it
// covers, or has read if it is not known what it was before.
func (s *Summary) newestKept() ID {
	if s == nil {
		return 0
	}
	first := s
	for first.before != nil {
		first = &first.before.sum
	}
	return max(s.newestCovered(), first.newestRead())
}

func (s *placedSummary) newestKept() ID { return s.summary().newestKept() }

// upTo returns the newest of s and those before it that has read no entry newer than last, as
// far as that is known. It returns nil if s stands for newer ones only. s may be nil.
func (s *placedSummary) upTo(last ID) *placedSummary {
	if s == nil || len(s.sum.Covers) > 0 && s.sum.Covers[0].First > last {
		return nil
	}
	return s.back(func(s *placedSummary) bool { return s.sum.newestRead() > last })
}

// mostBefore is how many summaries before the present one are kept at most.
const mostBefore = 2

// setBefore sets Summary.before of s, for the edit that puts s in the place of was. With drops, the edit
// drops entries that s stands for, and those before s were written for it. Without, was is the
// one before.
func (s *placedSummary) setBefore(was *placedSummary, drops bool) {
	switch {
	case !s.sum.readsMore():
		s.sum.before = nil
	case !drops:
		s.sum.before = cmp.Or(was, noSummary).newest(mostBefore)
	}
	for b := s.sum.before; drops && b != nil && b != noSummary; b = b.sum.before {
		b.sum.Covers, b.sum.Updates, b.sum.Time = s.sum.Covers, s.sum.Updates, s.sum.Time
	}
}

// newest returns s with at most n summaries, itself included.
func (s *placedSummary) newest(n int) *placedSummary {
	deep := s
	for i := 0; i < n && deep != nil; i++ {
		deep = deep.sum.before
	}
	if deep == nil {
		return s
	}
	own := *s
	own.sum.before = nil
	if n > 1 {
		own.sum.before = s.sum.before.newest(n - 1)
	}
	return &own
}

// extended returns s and those before it, each with a text about what leaves, not counted.
func (s *placedSummary) extended(text string) *placedSummary {
	if s == noSummary {
		return &placedSummary{sum: Summary{Text: text}}
	}
	next := Summary{Text: s.sum.Text + "\n\n" + text, Names: s.sum.Names, Read: s.sum.Read}
	if s.sum.before != nil {
		next.before = s.sum.before.extended(text)
	}
	return &placedSummary{sum: next}
}

// place returns a summary for a view, counted.
func (id *identity) place(sum Summary) *placedSummary {
	text, hint := sum.shown(), id.summaryHint()
	p := &placedSummary{sum: sum, raw: id.summaryTokens(text), hint: hint, content: fingerprint.Sum(0).String(text + hint)}
	switch was := sum.before; {
	case was == nil:
	case was.sum.Text == "":
		p.sum.before = noSummary
	default:
		p.sum.before = id.place(was.sum)
	}
	if n := &p.sum.Native; n.Format != "" {
		if n.Compacted != nil {
			n.stoodFor, n.Compacted = n.Compacted.views(), nil
		}
		p.raw = max(p.raw, id.nativeTokens(n, sum.Usage))
		p.content = p.content.String(n.Format).String(n.Model)
		for _, item := range n.Items {
			p.content = p.content.String(item)
		}
	}
	p.sum.Tokens = clampInt(p.raw)
	return p
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
	sum.Covers, sum.Read, sum.Native, sum.before = slices.Clone(sum.Covers), slices.Clone(sum.Read), sum.Native.clone(), nil
	return sum, true
}

// summaryMessage returns the summary as the model sees it: a user message with tags that
// no text can forge.
func summaryMessage(key string, s *placedSummary) Message {
	open, end := tags.Summary(key)
	return User(open + tags.Mask(key, s.sum.shown()+s.hint) + end)
}

// namesLine precedes Summary.Names in the message that the model sees.
const namesLine = "\n\nNames that came up before: "

// mostNames is the maximum number of tokens in Summary.Names.
const mostNames = 300

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
	open, end := tags.Summary(tags.Typical)
	return int64(id.over.Message) + id.text(open) + id.text(tags.Mask(id.key, text+id.summaryHint())) + id.text(end)
}

// covering returns ranges in ascending order, joining two ranges if no entry of the view
// is between them. So the result has at most one range more than the view has entries. It
// may sort its argument.
func (s *state) covering(list []Range) []Range {
	ranges.Sort(list)
	return ranges.Join(list, func(first, last ID) bool { return !s.hasWithin(first, last) })
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
		return &RefusedError{Reason: fmt.Sprintf("compaction would free too little: %s tokens, want at least %s; lower Limits.Low or Limits.MinFree, or use a shorter summary", grouped(clampInt(freed)), grouped(clampInt(minFree)))}
	}
	return nil
}

// fault returns an error if the summary is not complete or has no text.
func (s *Summary) fault() error {
	if s.Stop != StopDone {
		return &RefusedError{Reason: wording.Unfinished(s.Stop)}
	}
	if strings.TrimSpace(s.Text) == "" {
		return &RefusedError{Reason: "the summary is empty; use another model to summarise"}
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

// redacted returns m, or a changed copy of it if there is an Options.Redact.
func redacted(m *Message, redact func(Message) Message) Message {
	if redact == nil {
		return *m
	}
	out := redact(m.clone())
	out.Role = m.Role
	return out
}

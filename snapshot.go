package convo

import (
	"cmp"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/seed-c1b73e60/convo/internal/limits"
	"github.com/seed-c1b73e60/convo/internal/sums"
	"github.com/seed-c1b73e60/convo/internal/tags"
	"github.com/seed-c1b73e60/convo/internal/wording"
)

// A Snapshot is the view of a conversation at one moment. It never changes and is safe for
// concurrent use. The zero Snapshot is empty.
//
// A snapshot belongs to the [History] that made it. Apply, SplicePrefix, Rollback, Recover and
// RecordUsage return an error that matches [ErrStale] for those of others. Snapshots from
// NewSnapshot, Load and JSON, and those made by With, Before and AsText, belong to no History,
// but Rollback accepts snapshots that Load made from its own log.
type Snapshot struct {
	owner    *History
	loaded   loaded        // zero: Load has not made it
	setting  limits.Limits // with defaults; zero: no History has made it
	imported bool          // NewSnapshot made it
	state
}

// A loaded identifies the record that Load made a snapshot from.
type loaded struct {
	key, log string
	seq      uint64
	id       string // of the record
}

// Len returns the number of entries, including system entries. The summary and
// the ephemeral messages are not entries.
func (s *Snapshot) Len() int { return s.len() }

// At returns the entry with index i, counted from 0, and whether it exists.
func (s *Snapshot) At(i int) (Entry, bool) {
	if i < 0 || i >= s.len() {
		return Entry{}, false
	}
	return s.at(i).export(s.pins, new(partRoom)), true
}

// All returns an iterator over the indices and entries, system entries first. Texts are
// shared and never copied. The lists of parts are copied, many in one allocation: a loop
// over all entries makes one for some 256 parts, and one for each tool result.
func (s *Snapshot) All() iter.Seq2[int, Entry] {
	return func(yield func(int, Entry) bool) {
		room := partRoom{next: 4}
		for i := range s.len() {
			if !yield(i, s.at(i).export(s.pins, &room)) {
				return
			}
		}
	}
}

// Find returns the entry with the ID, and whether the view has one.
func (s *Snapshot) Find(id ID) (Entry, bool) {
	e := s.find(id)
	if e == nil {
		return Entry{}, false
	}
	return e.export(s.pins, new(partRoom)), true
}

// Messages returns copies of the messages for the model: the system messages, the summary as a
// user message, and the other messages. Ephemeral messages stand after the user messages of the
// newest turn and the notes that directly follow these. If the turn begins with no user
// message, they stand before all entries but the system entries. A message with an Author
// begins and ends with tags that name the author.
//
// The tags around a summary and around what an author says contain a key: an @ and seven
// letters; see Options.TagKey. No text can forge them, even if its writer has seen the key: in
// a text that contains these letters, *** replaces them, and "&lt;" the "<" of each tag. A text
// that ends as the key begins is followed by ***, so that no key is spread over several parts
// or messages. This applies to the text of users, assistants, results and the summary, to names
// of authors, and to the type and address of media. The letters are recognised in upper and
// lower case, as letters of other alphabets and signs that look alike, and with white space and
// invisible characters between them. Other encodings and media are not searched. Everything
// else is shown byte for byte: all other text, system messages, tool names, IDs and arguments,
// opaque blocks, the data of media, and reasoning that has an ID, a signature or an encrypted
// form.
func (s *Snapshot) Messages() []Message {
	out := make([]Message, 0, s.messages())
	for _, m := range s.MessagesFrom(0, nil) {
		out = append(out, m)
	}
	return out
}

// OpenCalls returns the tool calls without a result, in order, such as those of a process
// that ended in a call. A loop runs them first, as [History.Run] does.
func (s *Snapshot) OpenCalls() (open []ToolCall) {
	c := callsOf(s.list)
	if c.Open() == 0 {
		return nil
	}
	for i, call := range s.find(c.Head).msg.ToolCalls() {
		if !c.List[i].Answered {
			open = append(open, call)
		}
	}
	return open
}

// Queued returns the messages that wait in the queue, in order; see [History.Queue].
// [History.Unqueue] takes them out.
func (s *Snapshot) Queued() []Message {
	msgs := make([]Message, len(s.queue))
	for i, q := range s.queue {
		msgs[i] = q.msg.clone()
	}
	return msgs
}

// Tokens returns the raw tokens of the view: of all entries, the tools, the summary and
// the ephemeral messages. Usage reports do not correct them, and what a request carries
// besides is not included.
func (s *Snapshot) Tokens() int { return clampInt(s.raw()) }

// SummaryTokens returns how many raw tokens a summary with this text would have in the
// view, with its tags and Options.SummaryHint.
func (s *Snapshot) SummaryTokens(text string) int {
	return clampInt(s.identity().summaryTokens(text))
}

// Version returns the version of the view. It grows with each change of the view, the
// pins, the bonds, the limits, the model and the estimate only.
func (s *Snapshot) Version() uint64 { return s.version }

// Model returns the name of the model that the snapshot was made for, as passed to
// [History.SetModel]. It is empty if no model was set.
func (s *Snapshot) Model() string { return s.known().model }

// Pinned returns the IDs of all entries of pinned exchanges, ascending.
func (s *Snapshot) Pinned() []ID { return s.pinned() }

// Format prints the version, the number of entries and the raw tokens.
func (s Snapshot) Format(f fmt.State, verb rune) { wording.Print(f, verb, s.print) }

func (s *Snapshot) print(bool) string {
	return fmt.Sprintf("Snapshot(version %d, %s, %s)", s.version, counted(s.len(), "entry", "entries"), counted(clampInt(s.raw()), "token", "tokens"))
}

// LogValue returns what Format prints.
func (s Snapshot) LogValue() slog.Value { return slog.StringValue(s.print(false)) }

// An Exchange is an assistant message with tool calls and the results that answer them,
// or any other single message. A compaction keeps or drops it whole.
type Exchange struct {
	First, Last ID   // of its entries
	Tokens      int  // raw tokens
	Floor       bool // whether it holds an entry that no compaction may drop or change
	Open        bool // whether one of its calls has no result yet
	Turn        int  // of its entries; see [Entry]

	entries []*entry
}

// IDs returns the IDs of all entries of x, as [Edit].Drop needs them.
func (x Exchange) IDs() []ID { return idsOf(x.entries) }

// Exchanges returns an iterator over the exchanges, system entries first.
func (s *Snapshot) Exchanges() iter.Seq[Exchange] {
	return func(yield func(Exchange) bool) {
		floor := s.floor()
		for n, list := range [...][]*entry{s.sys, s.list} {
			for from, to := 0, 0; from < len(list); from = to {
				_, to = exchangeAt(list, from)
				group := list[from:to:to]
				x := Exchange{
					First:   group[0].id,
					Last:    group[len(group)-1].id,
					Tokens:  clampInt(rawOf(group)),
					Floor:   n == 0 || floor.has(from),
					Open:    to == len(list) && callsOf(list).Open() > 0,
					Turn:    group[0].turn,
					entries: group,
				}
				if !yield(x) {
					return
				}
			}
		}
	}
}

// An Entry is a message inside a [History].
type Entry struct {
	ID      ID
	Message Message   // a copy, which may be changed
	Tokens  int       // raw tokens: as counted locally, not corrected by usage reports
	Turn    int       // counted from 1; 0 for system entries and before the first user message
	Pinned  bool      // whether its exchange is pinned
	Time    time.Time // when it was appended; zero if that is not known
	Missing int       // raw tokens that were cut or cleared out of results of Message
}

// export returns e as an Entry. pins are those of its view, and room is for its parts.
func (e *entry) export(pins []ID, room *partRoom) Entry {
	_, pinned := slices.BinarySearch(pins, e.head)
	return Entry{
		ID:      e.id,
		Message: room.clone(&e.msg),
		Tokens:  clampInt(e.tokens),
		Turn:    e.turn,
		Pinned:  pinned,
		Time:    e.time(),
		Missing: clampInt(e.missing()),
	}
}

// Format prints the ID and the beginning of the message; %+v adds the IDs of calls and results.
func (e Entry) Format(f fmt.State, verb rune) { wording.Print(f, verb, e.print) }

func (e *Entry) print(ids bool) string { return fmt.Sprintf("%d %s", e.ID, e.Message.print(ids)) }

// LogValue returns the ID and the LogValue of the message.
func (e Entry) LogValue() slog.Value {
	return slog.GroupValue(slog.Int64("id", int64(e.ID)), slog.Any("message", e.Message))
}

// The maximum number of bytes of a title and of its data.
const (
	maxTitle = 256
	maxMeta  = 64 << 10
)

// A meta is the application data of a conversation.
type meta struct{ title, data string }

// check returns a [*ValueError] if the title or the data is too long.
func (m meta) check() error {
	switch {
	case len(m.title) > maxTitle:
		return &ValueError{Name: "title", Value: fmt.Sprintf("%s bytes long", grouped(len(m.title))), Want: fmt.Sprintf("at most %d bytes", maxTitle)}
	case len(m.data) > maxMeta:
		return &ValueError{Name: "data", Value: fmt.Sprintf("%s bytes long", grouped(len(m.data))), Want: fmt.Sprintf("at most %s bytes", grouped(maxMeta))}
	}
	return nil
}

// Meta returns the title and the application data set by [History.SetMeta].
func (s *Snapshot) Meta() (title, data string) { return s.meta.title, s.meta.data }

// Same returns the number of identical entries at the beginning of s and prev for which
// [Snapshot.Messages] also shows the same messages before them. It returns 0 if prev is
// nil or from another conversation, or if the summaries differ. Entries after ephemeral
// messages do not count unless prev has the same ephemeral messages in that position.
//
// With [Snapshot.MessagesFrom], a format can reuse its output for prev and write only the
// new messages. Same compares no texts and does not allocate.
func (s *Snapshot) Same(prev *Snapshot) int {
	if s == nil || prev == nil || s.key() != prev.key() || s.summary != prev.summary {
		return 0
	}
	n := samePart(s.sys, prev.sys)
	if n < len(s.sys) || n < len(prev.sys) {
		return n
	}
	same, a, b := samePart(s.list, prev.list), s.beforeEphemeral(), prev.beforeEphemeral()
	if s.eph != prev.eph || a != b {
		same = min(same, a, b)
	}
	return n + same
}

// beforeEphemeral returns how many entries of list stand before the ephemeral messages: all of
// them if there are no ephemeral messages.
func (s *state) beforeEphemeral() int {
	if s.eph == nil {
		return len(s.list)
	}
	return s.ephemeralPlace()
}

// ephemeralPlace returns the index in list of the entry after ephemeral messages. It may be the
// length of list.
func (s *state) ephemeralPlace() int {
	from, to := turnUsers(s.list)
	if from == to {
		return 0 // the newest turn begins with no user message
	}
	for to < len(s.list) && s.list[to].note {
		to++
	}
	return to
}

// MessagesFrom returns an iterator over the end of what [Snapshot.Messages] returns: the
// messages from the entry with index from on, and the summary or the ephemeral messages if they
// are right before it or later. With each message comes the index of its entry; with the
// summary and the ephemeral messages, that of the entry after them. A format that names authors
// in a field passes named, which reports whether it does so for a role and an author, always
// the same: their messages come without tags. Nil names none.
func (s *Snapshot) MessagesFrom(from int, named func(role Role, author string) bool) iter.Seq2[int, Message] {
	return func(yield func(int, Message) bool) {
		heads := len(s.sys)
		place := heads + s.ephemeralPlace()
		v := viewer{key: s.key(), named: named, room: partRoom{next: s.shownParts(max(from, 0))}}
		for i := max(from, 0); i <= s.len(); i++ {
			if i == heads && s.summary != nil && !yield(i, summaryMessage(v.key, s.summary)) {
				return
			}
			if i == place && s.eph != nil {
				for j := range s.eph.msgs {
					if !yield(i, v.show(&s.eph.msgs[j])) {
						return
					}
				}
			}
			if i < s.len() && !yield(i, v.show(&s.at(i).msg)) {
				return
			}
		}
	}
}

// Before returns the view up to the entry with the ID, without the ephemeral messages:
// what a provider compacts for a [Native]. It is nil if the view has no such entry after
// the system entries.
func (s *Snapshot) Before(id ID) *Snapshot {
	n, ok := index(s.list, id)
	if !ok {
		return nil
	}
	return &Snapshot{setting: s.setting, state: s.state.before(n)}
}

// Mask returns a text as [Snapshot.Messages] would show it in a part of its own, so that
// it cannot forge the tags of speakers and of the summary. Messages masks texts, and
// leaves opaque parts, arguments and names as they are. A format that writes any of these
// as a text of the conversation masks it before, and puts a visible non-letter, such as a
// bracket, at both ends.
func (s *Snapshot) Mask(text string) string {
	if s == nil || s.key() == "" {
		return text
	}
	return tags.Mask(s.key(), text)
}

// AsUser returns a system message, as [Snapshot.Messages] shows it, as a user message, for
// a format that takes system messages in front only. Tags around its text, which no other
// text can forge, name it a message of the system. A message of another role is returned
// as it is.
func (s *Snapshot) AsUser(m Message) Message {
	if m.Role != RoleSystem {
		return m
	}
	open, end := tags.Note(s.key())
	m.Role = RoleUser
	m.Parts = slices.Concat([]Part{Text(open)}, m.Parts, []Part{Text(end)})
	return m
}

// A viewer makes the messages that the model sees.
type viewer struct {
	key    string
	named  func(Role, string) bool // whose messages come without tags; nil: none
	room   partRoom
	tagged []Part // memory for the parts of one message
}

// show returns m as the model sees it.
func (v *viewer) show(m *Message) Message {
	shown := *m
	if m.Role != RoleSystem {
		shown.Parts, _ = maskParts(v.key, m.Parts)
	}
	if m.isTagged() && (v.named == nil || !v.named(m.Role, m.Author)) {
		open, end := tags.Author(v.key, tags.Name(v.key, m.Author))
		v.tagged = append(append(append(v.tagged[:0], Text(open)), shown.Parts...), Text(end))
		shown.Parts = v.tagged
	}
	return v.room.clone(&shown)
}

// shownParts returns an upper bound for the number of parts that are shown from an
// entry on, including those of results.
func (s *state) shownParts(from int) int {
	n := 0
	count := func(m *Message) {
		for range m.allParts {
			n++
		}
		if m.isTagged() {
			n += 2
		}
	}
	for i := from; i < s.len(); i++ {
		count(&s.at(i).msg)
	}
	for _, m := range orNil(s.eph).msgs {
		count(&m)
	}
	return n
}

// A Breakdown shows what fills the window of a request, in tokens. The fields from System
// to Ephemeral add up to Estimate.Tokens; together with Free and Reserve they add up to
// Window. The raw tokens of entries and exchanges add up to Snapshot.Tokens instead.
type Breakdown struct {
	System    int // system messages
	Tools     int // the tools of SetTools, and Limits.Tools, or what usage reports have shown to be sent besides, if that may be a tool
	Summary   int // the summary
	User      int // user messages, except media
	Assistant int // assistant messages, except reasoning, calls and media
	Reasoning int // the model's reasoning
	Calls     int // tool calls
	Results   int // tool results, except media
	Media     int // images and other files in all of these messages
	Ephemeral int // ephemeral messages

	Pinned int // the share of pinned exchanges in the above

	Free    int // of the window; negative if the request is too large
	Reserve int // Limits.Reserve, for the answer
	Window  int // Limits.Window; if it is 0, so are Free and Reserve

	High, Low, Soft int // Limits, with their defaults; 0: there is none
}

// kinds returns the fields that add up to the estimate, in their order.
func (b *Breakdown) kinds() []*int {
	return []*int{&b.System, &b.Tools, &b.Summary, &b.User, &b.Assistant, &b.Reasoning, &b.Calls, &b.Results, &b.Media, &b.Ephemeral}
}

// String lists the parts that are not 0 in one line, largest first.
func (b Breakdown) String() string {
	names := []string{"system", "tools", "summary", "user", "assistant", "reasoning", "calls", "results", "media", "ephemeral"}
	out := cmp.Or(wording.Largest(names, b.kinds()), "empty")
	if b.Pinned > 0 {
		out += fmt.Sprintf(" (pinned %s)", grouped(b.Pinned))
	}
	if b.Window > 0 {
		out += fmt.Sprintf("; free %s and reserve %s of %s", grouped(b.Free), grouped(b.Reserve), grouped(b.Window))
	}
	return out
}

// Breakdown returns the parts of the request for this snapshot, with the limits and the
// estimate in force when the snapshot was made. A snapshot from [Load] has the limits
// that SetLimits or SetModel had set. Others without a History have none.
//
// It counts messages with several kinds of content again, in time linear in the view. If
// the Tokenizer panics, the message is counted by its role.
func (s *Snapshot) Breakdown() Breakdown {
	var raw Breakdown // in raw tokens
	raw.Tools, raw.System, raw.Summary, raw.Ephemeral = clampInt(s.tools.tokens()), clampInt(s.sysRaw), clampInt(s.summary.tokens()), clampInt(s.eph.tokens())
	counter := s.counter()
	for _, e := range s.list {
		raw.addEntry(e, counter)
	}
	scale := s.scale()
	if s.owner == nil && scale.Prior.Ratio == 0 { // no History has made the snapshot
		scale.Prior.Ratio = 1
	}
	var b Breakdown
	whole := s.raw()
	overhead := scale.Overhead
	if scale.Known != nil && whole > 0 && overhead < leastTool && s.tools.tokens() == 0 {
		overhead = 0 // it is a part of the messages
	}
	rest := scale.Tokens() - overhead
	// Rounding the sums, and not the shares, keeps the total.
	sum, shared := int64(0), int64(0)
	to := b.kinds()
	for i, n := range raw.kinds() {
		sum += int64(*n)
		share := sums.Portion(rest, sum, whole)
		*to[i] = clampInt(share - shared)
		shared = share
	}
	b.Tools = clampInt(int64(b.Tools) + overhead)
	b.Pinned = clampInt(sums.Portion(rest, s.pinRaw, whole))
	b.High, b.Low, b.Soft = s.setting.High, s.setting.Low, s.setting.Soft
	if s.setting.Window > 0 {
		b.Window, b.Reserve = s.setting.Window, s.setting.Reserve
		b.Free = clampInt(int64(s.setting.Limit()) - scale.Tokens())
	}
	return b
}

// leastTool is fewer tokens than any definition of a tool takes up in a request.
const leastTool = 16

// addEntry adds the raw tokens of an entry that is not a system message.
func (b *Breakdown) addEntry(e *entry, counter *counter) {
	own := &b.Assistant // for the message itself
	switch e.msg.Role {
	case RoleUser:
		own = &b.User
	case RoleTool:
		own = &b.Results
	case RoleSystem:
		own = &b.System
	}
	rest := e.tokens
	parts, err := safely("Options.Tokenizer", func() Breakdown { return partsBreakdown(&e.msg, counter) })
	if err == nil {
		if counter.over.Reasoning == ReplayTools && !e.tools {
			parts.Reasoning = 0 // it is not sent
		}
		for _, p := range []struct{ from, to *int }{{&parts.Reasoning, &b.Reasoning}, {&parts.Calls, &b.Calls}, {&parts.Media, &b.Media}} {
			n := min(int64(*p.from), rest)
			*p.to += int(n)
			rest -= n
		}
	}
	*own += clampInt(rest)
}

// partsBreakdown returns the raw tokens of the reasoning, calls and media of m.
func partsBreakdown(m *Message, counter *counter) (b Breakdown) {
	for p := range m.allParts {
		switch p.(type) {
		case Reasoning:
			b.Reasoning += clampInt(p.tokens(counter))
		case ToolCall:
			b.Calls += clampInt(p.tokens(counter))
		case Media:
			b.Media += clampInt(p.tokens(counter))
		}
	}
	return b
}

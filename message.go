package convo

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
	"github.com/seed-c1b73e60/convo/internal/hosts"
	"github.com/seed-c1b73e60/convo/internal/imagesize"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
	"github.com/seed-c1b73e60/convo/internal/text"
	"github.com/seed-c1b73e60/convo/internal/wording"
)

// An ID identifies an entry of a [History]. IDs start at 1, grow with every append up to
// 1<<53, and are never used again, even after a rollback. 0 is no entry.
type ID int64

// A Role says who a message is from.
type Role string

// The roles of messages. RoleNone is no role: a [RolePolicy] and a [RoleError] use it for
// the place before the first message.
const (
	RoleNone      Role = ""
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// roles are the roles that a message may have, common ones first.
var roles = []Role{RoleUser, RoleAssistant, RoleTool, RoleSystem}

// A Message is what the model sees: a role and ordered parts. It is a plain value without
// a lock: do not change it while another goroutine uses it. A [History] copies the
// messages it is given, and returns copies.
type Message struct {
	Role Role

	// Author names the speaker where the role alone does not: the writer of a user message in a
	// group chat, or the agent that wrote an assistant message. The model sees the name in a
	// tag that no text can forge; see [Snapshot.Messages]. That of a tool message is not shown.
	Author string

	Origin Origin // what produced an assistant message; zero: not known

	// Parts are the content, in order. A system message may hold Text and Opaque; a user
	// message Text, Media and Opaque; an assistant message everything but ToolResult; a tool
	// message one or more ToolResults and nothing else.
	Parts []Part

	// Meta and Key are for the application. They are saved with the message, but never sent to
	// a model and never counted. Key is the application's own name of the message, such as the
	// key of its row in a table, of at most 256 bytes; see [History.Decisions]. Options.Key
	// names messages that have none. The Meta of a user message may say that no person wrote
	// it; see [HostMeta].
	Meta, Key string
}

// maxMessageKey is the length of the longest Key.
const maxMessageKey = 256

// An Origin names what produced an assistant message, so that reasoning and
// signatures are sent back only to the provider and the model that made them.
type Origin struct {
	Format string `json:"format,omitempty"` // the wire format, such as "anthropic"; package wire has constants for its own
	Model  string `json:"model,omitempty"`  // the model's name, as the provider spells it

	Container string `json:"container,omitempty"` // where code of the answer runs, which the provider wants back while it waits for a result
}

// A Part is a piece of a message's content: a [Text], [Reasoning], [ToolCall],
// [ToolResult], [Media] or [Opaque], as a value and not a pointer. A [History]
// refuses a part of any other type.
type Part interface {
	kind() *kind
	check(deep bool) (_ Part, reason string) // see checkPart; nil: the part is as it should be
	tokens(*counter) int64                   // raw tokens
	sum(fingerprint.Sum) fingerprint.Sum     // adds what the model sees of it; see Message.content
	rowSum(fingerprint.Sum) fingerprint.Sum  // the same for Message.Sum
	print(ids bool) string                   // the beginning of its content
	printSize() string                       // its kind and size
	mask(key string) Part                    // see maskParts; nil: the part is not changed
	render(*strings.Builder)                 // for a summarizer, in tags that it cannot forge
	body() string                            // of a part in a result: what a cut may leave out
}

// known returns p, or a foreign part in place of what no History accepts: nil, a pointer to a
// part, or a type that embeds one. A message that was not checked may hold such parts.
func known(p Part) Part {
	switch p.(type) {
	case Text, Reasoning, ToolCall, ToolResult, Media, Opaque:
		return p
	}
	return foreign{is: p}
}

// A foreign part stands for a part that no History accepts. It has no kind, and otherwise is
// like empty reasoning, which is nothing to a model.
type foreign struct {
	Reasoning
	is Part
}

// Text is plain text.
type Text string

// Reasoning is what a model wrote while it was thinking, before or between its answers.
// Providers require it back byte for byte, with its signature.
type Reasoning struct {
	ID        string // the provider's name for the block, if it has one
	Text      string // the reasoning, or the provider's summary of it
	Signature string // proves to the provider that it wrote the text
	Encrypted string // the whole block in a form that only the provider can read
}

// A ToolCall is a model's request to run a tool.
type ToolCall struct {
	// ID identifies the call within its message. Append fills in an ID that is empty, and sets
	// Minted; Decode and streams of package wire have done so already. In a message with a
	// Key, the ID that Append fills in is always the same.
	ID   string
	Name string // of the tool

	// Arguments are what the model wrote: a JSON object, unless the model made a mistake or
	// was cut off; see Valid. Their bytes are kept: 1.0 stays 1.0 and keys keep their order.
	// Empty: no arguments. For a custom tool of OpenAI, they are its input, which may be any
	// text.
	Arguments string

	// Minted reports that this module made the ID and not a provider. A format whose calls need
	// no IDs, such as Gemini's, leaves it out.
	Minted bool
}

// A ToolResult answers a [ToolCall].
type ToolResult struct {
	// CallID is the ID of the call that the result answers, and Name is the name of its tool.
	// Without a CallID, the result answers the open call of the tool Name, or without a Name,
	// the open call. If there are several, Append takes them in order when it is given a result
	// for each of them, and otherwise returns a [*PairError]. It fills in empty fields.
	CallID string
	Name   string

	Parts   []Part // the content: Text, Media and Opaque; may be empty
	IsError bool   // whether the tool failed; then Parts say why
	Cleared bool   // whether an edit has replaced the content by a marker
}

// Media is an image, a sound, a document or another file, by content or by address.
type Media struct {
	MIME string // such as "image/png"
	Data string // the content, in standard base64; see [NewMedia]
	URL  string // the address, used when Data is empty
}

// Opaque is a block of JSON that only one wire format understands. Its bytes
// are kept, and it is sent in that format only.
type Opaque struct {
	Format string // the wire format, such as "anthropic"
	JSON   string // the block
}

// Valid reports whether the arguments are a JSON object, or blank. A call whose arguments
// are not valid cannot be run, unless its tool takes any text, but it can be appended,
// saved and sent like any other. Answer it with a [ResultError], so that the model can
// try again.
func (c ToolCall) Valid() bool {
	s := strings.TrimLeft(c.Arguments, " \t\r\n")
	return s == "" || s[0] == '{' && strictjson.Valid([]byte(s))
}

// sameAs reports whether two messages are equal.
func (m *Message) sameAs(n *Message) bool {
	return m.Role == n.Role && m.Author == n.Author && m.Origin == n.Origin && m.Meta == n.Meta && m.Key == n.Key && equalParts(m.Parts, n.Parts)
}

func equalParts(a, b []Part) bool { return slices.EqualFunc(a, b, equalPart) }

func equalPart(a, b Part) bool {
	r, ok := a.(ToolResult)
	if !ok {
		return a == b
	}
	s, ok := b.(ToolResult)
	return ok && r.CallID == s.CallID && r.Name == s.Name && r.IsError == s.IsError && r.Cleared == s.Cleared && equalParts(r.Parts, s.Parts)
}

// texts yields the texts in m, the arguments of calls and those in results included,
// with its role.
func (m *Message) texts(yield func(Role, string) bool) {
	for p := range m.allParts {
		text := ""
		switch p := p.(type) {
		case Text:
			text = string(p)
		case ToolCall:
			text = p.Arguments
		default:
			continue
		}
		if !yield(m.Role, text) {
			return
		}
	}
}

// HostMeta is the Meta of a user message that no person wrote, such as a reminder, the output
// of a hook, a description of the environment or the news that a task has ended. A space and a
// text of the application may follow it.
//
// A compaction treats such a message like a tool result: it leaves before what the user said. A
// summarizer's transcript marks it if its Meta says so. A message with an Author is what that
// person said. Without either, it counts as the host's if its text is wrapped whole in tags,
// such as <system-reminder>, unless a tag is that of a prompt, such as <task>. So does one of
// at least 100 bytes that three newer ones repeat but for numbers, paths and identifiers.
const HostMeta = "host"

// isHosts reports whether m is a user message that no person wrote, as far as the message
// itself shows it; see HostMeta.
func (m *Message) isHosts() bool {
	switch {
	case m.isMarkedHosts():
		return true
	case m.Role != RoleUser || m.Author != "":
		return false
	}
	return !m.isEmpty() && !slices.ContainsFunc(m.Parts, func(p Part) bool {
		t, ok := p.(Text)
		return !ok || t != "" && !hosts.IsWrapped(string(t))
	})
}

// isMarkedHosts reports whether the application has said that no person wrote m.
func (m *Message) isMarkedHosts() bool {
	return m.Role == RoleUser && m.Author == "" && (m.Meta == HostMeta || strings.HasPrefix(m.Meta, HostMeta+" "))
}

// repeats reports whether e knows enough newer messages that m repeats; see HostMeta. It adds m.
func (m *Message) repeats(e *hosts.Echoes) bool {
	if m.Author != "" || len(m.Parts) != 1 {
		return false
	}
	t, _ := m.Parts[0].(Text)
	return e.Has(string(t))
}

// allParts yields the parts of m and, after each result, the parts in it.
func (m *Message) allParts(yield func(Part) bool) {
	for _, p := range m.Parts {
		if !yield(p) {
			return
		}
		if r, ok := p.(ToolResult); ok {
			for _, in := range r.Parts {
				if !yield(in) {
					return
				}
			}
		}
	}
}

// allMedia yields the media of m, those in results included.
func (m *Message) allMedia(yield func(Media) bool) {
	for p := range m.allParts {
		if p, ok := p.(Media); ok && !yield(p) {
			return
		}
	}
}

// media returns how many media m holds, those in results included.
func (m *Message) media() (n int) {
	for range m.allMedia {
		n++
	}
	return n
}

// side returns the longer side of an image in pixels, or 0 if it is not known.
func (m Media) side() int {
	if m.Data == "" {
		return 0
	}
	w, h, _ := imagesize.Of(m.Data)
	return max(w, h)
}

// NewMedia returns a [Media] with the given content, which it encodes in
// base64.
func NewMedia(mime string, data []byte) Media {
	return Media{MIME: mime, Data: base64.StdEncoding.EncodeToString(data)}
}

// System returns a system message.
func System(text string) Message {
	return Message{Role: RoleSystem, Parts: textParts(text)}
}

// User returns a user message: the text, if it is not empty, followed by other parts,
// such as [Media].
func User(text string, more ...Part) Message {
	return Message{Role: RoleUser, Parts: append(textParts(text), more...)}
}

// Assistant returns an assistant message: the text, if it is not empty, followed by the
// calls.
func Assistant(text string, calls ...ToolCall) Message {
	parts := textParts(text)
	for _, c := range calls {
		parts = append(parts, c)
	}
	return Message{Role: RoleAssistant, Parts: parts}
}

// Result returns the tool message that answers call with text, which may be empty.
func Result(call ToolCall, text string) Message {
	return resultMessage(call, text, false)
}

// ResultError returns the tool message that answers call with the text of err.
// For a nil err the text is "unknown error".
func ResultError(call ToolCall, err error) Message {
	if err == nil {
		err = errors.New("unknown error")
	}
	return resultMessage(call, err.Error(), true)
}

func resultMessage(call ToolCall, text string, isError bool) Message {
	return Message{Role: RoleTool, Parts: []Part{ToolResult{
		CallID:  call.ID,
		Name:    call.Name,
		Parts:   textParts(text),
		IsError: isError,
	}}}
}

func textParts(text string) []Part {
	if text == "" {
		return nil
	}
	return []Part{Text(text)}
}

// Text returns the text parts of m, joined by newlines. For a tool message it
// returns the text of the results.
func (m Message) Text() string {
	var texts []string
	for _, p := range m.Parts {
		switch p := p.(type) {
		case Text:
			texts = append(texts, string(p))
		case ToolResult:
			texts = append(texts, p.Text())
		}
	}
	return joinTexts(texts)
}

// Reasoning returns the text of the reasoning parts of m, joined by newlines.
func (m Message) Reasoning() string {
	var texts []string
	for r := range eachOf[Reasoning](m.Parts) {
		texts = append(texts, r.Text)
	}
	return joinTexts(texts)
}

// joinTexts joins the texts that are not empty by newlines.
func joinTexts(texts []string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "\n")
}

// ToolCalls returns the tool calls of m, in order.
func (m Message) ToolCalls() []ToolCall { return partsOf[ToolCall](m.Parts) }

// ToolResults returns the tool results of m, in order.
func (m Message) ToolResults() []ToolResult { return partsOf[ToolResult](m.Parts) }

// partsOf returns the parts of one type, in order.
func partsOf[P Part](parts []Part) []P { return slices.Collect(eachOf[P](parts)) }

// eachOf yields the parts of one type, in order.
func eachOf[P Part](parts []Part) iter.Seq[P] {
	return func(yield func(P) bool) {
		for _, p := range parts {
			if p, ok := p.(P); ok && !yield(p) {
				return
			}
		}
	}
}

// isA reports whether a part is of one type.
func isA[P Part](p Part) bool { _, ok := p.(P); return ok }

// Text returns the text parts of r, joined by newlines.
func (r ToolResult) Text() string {
	if len(r.Parts) == 1 { // as most have; this allocates nothing
		t, _ := r.Parts[0].(Text)
		return string(t)
	}
	return text.Join(eachOf[Text](r.Parts), "\n")
}

// clone returns a copy of m that shares no slices with it.
func (m *Message) clone() Message {
	return new(partRoom).clone(m)
}

// A partRoom is memory for the parts of successive copies, so that not every copy
// allocates. Copies do not share parts.
type partRoom struct {
	free []Part
	next int // how much to allocate next; 0: as much as is needed
}

// clone returns a copy of m that shares no slices with it.
func (r *partRoom) clone(m *Message) Message {
	own := *m
	own.Parts = r.copy(m.Parts)
	for i, p := range own.Parts {
		if result, ok := p.(ToolResult); ok && len(result.Parts) > 0 {
			result.Parts = r.copy(result.Parts)
			own.Parts[i] = result
		}
	}
	return own
}

// copy returns a copy of parts without spare capacity.
func (r *partRoom) copy(parts []Part) []Part {
	n := len(parts)
	if n == 0 {
		return parts[:0:0]
	}
	if len(r.free) < n {
		r.free = make([]Part, max(n, r.next))
		r.next = min(2*r.next, 256)
	}
	own := r.free[:n:n]
	r.free = r.free[n:]
	copy(own, parts)
	return own
}

// isTagged reports whether the model sees m with tags that name its author, unless the
// format names the author elsewhere.
func (m *Message) isTagged() bool { return m.Author != "" && m.Role != RoleTool }

// isEmpty reports whether m holds nothing but empty text.
func (m *Message) isEmpty() bool {
	return !slices.ContainsFunc(m.Parts, func(p Part) bool { return p != Part(Text("")) })
}

func textSize(parts []Part) int {
	n := 0
	for t := range eachOf[Text](parts) {
		n += len(t)
	}
	return n
}

// A Tool is the definition of a tool that the model may call. The formats of package
// wire write it as each provider wants it.
type Tool struct {
	Name        string // every provider accepts at most 64 letters, digits, _ and -
	Description string // for the model: what the tool does, and when to call it
	Schema      string // the JSON Schema of the arguments, whose type is object; empty: no arguments

	// Opaque is the definition of a tool that the provider runs, or whose form is its own, as
	// it is written in a request. Its format writes it instead of the other fields; other
	// formats leave the tool out. Name may be empty then.
	Opaque Opaque
}

// label returns what m is, such as "image/png".
func (m Media) label() string { return cmp.Or(text.Shorten(m.MIME, 100), "media") }

// place returns the address of m, or its size if it has content.
func (m Media) place() string {
	if m.Data == "" {
		return text.Shorten(m.URL, 500)
	}
	return grouped(base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(m.Data, "=")))) + " bytes"
}

// Messages, parts, entries, summaries and reports print only the beginning of each text,
// so that logs and failing tests stay readable. The verb %+v also prints the IDs of
// calls. In a structured log, a Message and an Entry show only sizes.

// maxPrintedParts is the number of parts of a message or an edit that are printed.
const maxPrintedParts = 16

func abbreviate(s string) string { return wording.Abbreviate(s) }

// abbreviateList joins texts, and omits the end of a long list.
func abbreviateList(texts []string, between string) string {
	return text.AbbreviateList(texts, between, maxPrintedParts)
}

// Format prints the role, the author and the beginning of each part; %+v adds the IDs of calls
// and results.
func (m Message) Format(f fmt.State, verb rune) { wording.Print(f, verb, m.print) }

func (m *Message) print(ids bool) string {
	var b strings.Builder
	b.WriteString(abbreviate(string(m.Role)))
	if m.Author != "" {
		fmt.Fprintf(&b, " %q", abbreviate(m.Author))
	}
	b.WriteString(":")
	if len(m.Parts) > 0 {
		b.WriteString(" " + printParts(m.Parts, ids))
	}
	return b.String()
}

// LogValue returns the role, the author, and the kind and size of each part, but none of
// the content.
func (m Message) LogValue() slog.Value {
	sizes := make([]string, len(m.Parts))
	for i, p := range m.Parts {
		sizes[i] = known(p).printSize()
	}
	return slog.GroupValue(slog.String("role", abbreviate(string(m.Role))), slog.String("author", abbreviate(m.Author)),
		slog.String("parts", strings.Join(sizes, ", ")))
}

// label returns what kind of block o is.
func (o Opaque) label() string {
	kind := strings.Fields(string(strictjson.NewReader([]byte(o.JSON)).Peek("type")))
	return "block " + text.Shorten(cmp.Or(strings.Join(kind, " "), "of "+o.Format), 100)
}

// printID returns the ID in brackets, or "" if ids is false or the ID is empty.
func printID(id string, ids bool) string {
	if !ids || id == "" {
		return ""
	}
	return "[" + abbreviate(id) + "]"
}

func printParts(parts []Part, ids bool) string {
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = known(p).print(ids)
	}
	return abbreviateList(texts, " ")
}

// grouped returns a number with a comma between groups of three digits.
func grouped(n int) string { return text.Grouped(n) }

// counted returns a number and what it counts, in singular or plural.
func counted(n int, one, many string) string { return text.Counted(n, one, many) }

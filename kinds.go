package convo

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/callid"
	"github.com/seed-c1b73e60/convo/internal/fingerprint"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
	"github.com/seed-c1b73e60/convo/internal/tags"
	"github.com/seed-c1b73e60/convo/internal/text"
	"github.com/seed-c1b73e60/convo/internal/wording"
)

// This file has what differs between kinds of parts: for each type the methods of Part, and
// a row in kinds. To add a kind, add both, and a case in known.

// A kind is what all parts of one type have in common.
type kind struct {
	name     string // in JSON
	inResult bool   // whether a tool result may hold it
	roles    []Role // of the messages that may hold it
	misplace string // why a message of another role may not
	json     func(*messageRoom) partJSON
}

var (
	textKind = &kind{
		name: "text", inResult: true,
		roles: []Role{RoleUser, RoleAssistant, RoleSystem}, misplace: "text in a tool message must be inside a ToolResult",
		json: jsonOf(func(t *Text, _ *messageRoom) []strictjson.Field {
			return []strictjson.Field{{Key: "text", Value: strictjson.Shown((*string)(t))}}
		}),
	}
	reasoningKind = &kind{
		name:  "reasoning",
		roles: []Role{RoleAssistant}, misplace: "reasoning belongs in an assistant message; leave it out",
		json: jsonOf(func(r *Reasoning, _ *messageRoom) []strictjson.Field {
			return []strictjson.Field{
				{Key: "id", Value: (*strictjson.Name)(&r.ID)},
				{Key: "text", Value: &r.Text},
				{Key: "signature", Value: &r.Signature},
				{Key: "encrypted", Value: &r.Encrypted},
			}
		}),
	}
	callKind = &kind{
		name:  "tool_call",
		roles: []Role{RoleAssistant}, misplace: "a tool call belongs in an assistant message",
		json: jsonOf(func(c *ToolCall, _ *messageRoom) []strictjson.Field {
			return []strictjson.Field{
				{Key: "id", Value: (*strictjson.Name)(&c.ID)},
				{Key: "name", Value: (*strictjson.Name)(&c.Name)},
				{Key: "arguments", Value: &c.Arguments},
				{Key: "minted", Value: &c.Minted},
			}
		}),
	}
	resultKind = &kind{
		name:  "tool_result",
		roles: []Role{RoleTool}, misplace: "a tool result belongs in a tool message; make it with Result",
		json: jsonOf(func(t *ToolResult, r *messageRoom) []strictjson.Field {
			return []strictjson.Field{
				{Key: "call_id", Value: (*strictjson.Name)(&t.CallID)},
				{Key: "name", Value: (*strictjson.Name)(&t.Name)},
				{Key: "is_error", Value: &t.IsError},
				{Key: "cleared", Value: &t.Cleared},
				{Key: "parts", Value: partsJSON{&t.Parts, r, true}},
			}
		}),
	}
	mediaKind = &kind{
		name: "media", inResult: true,
		roles: []Role{RoleUser, RoleAssistant}, misplace: "media belongs in a user or assistant message or in a ToolResult",
		json: jsonOf(func(m *Media, _ *messageRoom) []strictjson.Field {
			return []strictjson.Field{
				{Key: "mime", Value: (*strictjson.Name)(&m.MIME)},
				{Key: "data", Value: &m.Data},
				{Key: "url", Value: &m.URL},
			}
		}),
	}
	opaqueKind = &kind{
		name: "opaque", inResult: true,
		roles: []Role{RoleUser, RoleAssistant, RoleSystem}, misplace: "an opaque block in a tool message must be inside a ToolResult",
		json: jsonOf(func(o *Opaque, _ *messageRoom) []strictjson.Field {
			return []strictjson.Field{{Key: "format", Value: (*strictjson.Name)(&o.Format)}, {Key: "json", Value: &o.JSON}}
		}),
	}
)

// kinds are all kinds.
var kinds = [...]*kind{textKind, callKind, resultKind, reasoningKind, mediaKind, opaqueKind}

func (t Text) kind() *kind { return textKind }

// ifChanged returns p, or nil if it is the same as was.
func ifChanged[P interface {
	Part
	comparable
}](p, was P) Part {
	if p == was {
		return nil
	}
	return p
}

func (t Text) check(bool) (_ Part, reason string) {
	return ifChanged(Text(text.Valid(string(t))), t), ""
}

func (t Text) tokens(c *counter) int64               { return c.text(string(t)) }
func (t Text) sum(s fingerprint.Sum) fingerprint.Sum { return s.Uint64(1).String(string(t)) }
func (t Text) rowSum(s fingerprint.Sum) fingerprint.Sum {
	return s.Uint64(1).String(text.Valid(string(t)))
}
func (t Text) print(bool) string         { return abbreviate(string(t)) }
func (t Text) printSize() string         { return "text " + grouped(len(t)) }
func (t Text) render(b *strings.Builder) { b.WriteString(tags.Escape(string(t)) + "\n") }
func (t Text) body() string              { return string(t) }
func (t Text) mask(key string) Part      { return ifChanged(Text(tags.MaskPart(key, string(t))), t) }

// Format prints the text, and with %+v and %#v only its beginning.
func (t Text) Format(f fmt.State, verb rune) {
	s := string(t)
	if verb == 'v' && (f.Flag('+') || f.Flag('#')) {
		s = abbreviate(s)
	}
	_, _ = fmt.Fprintf(f, fmt.FormatString(f, verb), s)
}

func (r Reasoning) kind() *kind { return reasoningKind }

func (r Reasoning) check(bool) (_ Part, reason string) {
	was := r
	r.ID, r.Text = text.Valid(r.ID), text.Valid(r.Text)
	r.Signature, r.Encrypted = text.Valid(r.Signature), text.Valid(r.Encrypted)
	return ifChanged(r, was), ""
}

func (r Reasoning) tokens(c *counter) int64 {
	if c.over.Reasoning == ReplayNone {
		return 0
	}
	return c.text(r.Text) + c.text(r.Signature) + c.text(r.Encrypted)
}

// Reasoning is in neither fingerprint: an answer does not depend on a signature before it.
func (r Reasoning) sum(s fingerprint.Sum) fingerprint.Sum    { return s }
func (r Reasoning) rowSum(s fingerprint.Sum) fingerprint.Sum { return s }

// Format prints the beginning of the text; %+v adds the ID.
func (r Reasoning) Format(f fmt.State, verb rune) { wording.Print(f, verb, r.print) }

func (r Reasoning) print(ids bool) string {
	return fmt.Sprintf("reasoning%s(%s)", printID(r.ID, ids), abbreviate(r.Text))
}

func (r Reasoning) printSize() string {
	return "reasoning " + grouped(len(r.Text)+len(r.Signature)+len(r.Encrypted))
}

// mask changes no reasoning that its provider can recognise.
func (r Reasoning) mask(key string) Part {
	if !r.isPlain() {
		return nil
	}
	return ifChanged(Reasoning{Text: tags.MaskPart(key, r.Text)}, r)
}

func (r Reasoning) render(b *strings.Builder) {
	if r.Text != "" {
		b.WriteString("<reasoning>" + tags.Escape(r.Text) + "</reasoning>\n")
	}
}

func (r Reasoning) body() string { return "" }

// isPlain reports whether r has nothing by which its provider could recognise it.
func (r Reasoning) isPlain() bool { return r.ID == "" && r.Signature == "" && r.Encrypted == "" }

func (c ToolCall) kind() *kind { return callKind }

func (c ToolCall) check(bool) (_ Part, reason string) {
	was := c
	c.ID, c.Name, c.Arguments = text.Valid(c.ID), text.Valid(c.Name), text.Valid(c.Arguments)
	if c.Name == "" {
		return nil, "tool call without a name; set ToolCall.Name"
	}
	if c.ID == "" {
		c.ID, c.Minted = callid.New(), true
	}
	return ifChanged(c, was), ""
}

func (c ToolCall) tokens(n *counter) int64 {
	return int64(n.over.Call) + n.text(c.ID) + n.text(c.Name) + n.text(c.Arguments)
}

func (c ToolCall) sum(s fingerprint.Sum) fingerprint.Sum {
	return s.Uint64(2).String(c.ID).String(c.Name).String(c.Arguments)
}

func (c ToolCall) rowSum(s fingerprint.Sum) fingerprint.Sum {
	return s.Uint64(2).String(text.Valid(c.Name)).String(strictjson.Canonical(cmp.Or(c.Arguments, "{}")))
}

// Format prints the tool and the beginning of the arguments; %+v adds the ID.
func (c ToolCall) Format(f fmt.State, verb rune) { wording.Print(f, verb, c.print) }

func (c ToolCall) print(ids bool) string {
	return fmt.Sprintf("call %s%s(%s)", abbreviate(c.Name), printID(c.ID, ids), abbreviate(c.Arguments))
}

func (c ToolCall) printSize() string {
	return fmt.Sprintf("call %s %s", abbreviate(c.Name), grouped(len(c.Arguments)))
}

// mask changes no arguments, because the model must get them as it wrote them.
func (c ToolCall) mask(string) Part { return nil }

func (c ToolCall) render(b *strings.Builder) {
	b.WriteString("<call tool=" + tags.Quote(c.Name) + ">" + tags.Escape(c.Arguments) + "</call>\n")
}

func (c ToolCall) body() string { return "" }

func (r ToolResult) kind() *kind { return resultKind }

func (r ToolResult) check(deep bool) (_ Part, reason string) {
	callID, name, parts := text.Valid(r.CallID), text.Valid(r.Name), r.Parts
	if !deep {
		parts = slices.Concat(parts) // nil if there are none
	}
	for i, p := range parts {
		if k := known(p).kind(); k == nil || !k.inResult {
			return nil, fmt.Sprintf("%T inside a tool result, which may hold only Text, Media and Opaque", p)
		}
		q, reason := p.check(deep)
		if reason != "" {
			return nil, reason
		}
		if q != nil {
			parts[i] = q
		}
	}
	if deep && callID == r.CallID && name == r.Name {
		return nil, ""
	}
	r.CallID, r.Name, r.Parts = callID, name, parts
	return r, ""
}

func (r ToolResult) tokens(c *counter) int64 {
	return int64(c.over.Result) + c.text(r.CallID) + c.text(r.Name) + c.parts(r.flat())
}

func (r ToolResult) sum(s fingerprint.Sum) fingerprint.Sum {
	return contentOf(s.Uint64(r.sumKind()).String(r.CallID).String(r.Name), r.Parts).Uint64(5)
}

func (r ToolResult) rowSum(s fingerprint.Sum) fingerprint.Sum {
	s = s.Uint64(r.sumKind())
	if r.Cleared {
		return s.Uint64(8).Uint64(5)
	}
	return sumOf(s, r.Parts).Uint64(5)
}

// sumKind returns what begins a fingerprint of r.
func (r ToolResult) sumKind() uint64 {
	if r.IsError {
		return 4
	}
	return 3
}

// Format prints the tool and the beginning of each part; %+v adds the ID.
func (r ToolResult) Format(f fmt.State, verb rune) { wording.Print(f, verb, r.print) }

func (r ToolResult) print(ids bool) string {
	kind := "result"
	if r.IsError {
		kind = "error"
	}
	return fmt.Sprintf("%s of %s%s(%s)", kind, abbreviate(r.Name), printID(r.CallID, ids), printParts(r.flat(), ids))
}

func (r ToolResult) printSize() string {
	return fmt.Sprintf("result of %s %s", abbreviate(r.Name), grouped(textSize(r.Parts)))
}

func (r ToolResult) mask(key string) Part {
	parts, differs := maskParts(key, r.Parts)
	if !differs {
		return nil
	}
	r.Parts = parts
	return r
}

func (r ToolResult) render(b *strings.Builder) {
	b.WriteString("<result tool=" + tags.Quote(r.Name))
	if r.IsError {
		b.WriteString(` error="true"`)
	}
	b.WriteByte('>')
	parts := r.flat()
	for i, p := range parts {
		if t, ok := p.(Text); ok && i == len(parts)-1 {
			b.WriteString(tags.Escape(string(t)))
		} else {
			known(p).render(b)
		}
	}
	b.WriteString("</result>\n")
}

func (r ToolResult) body() string { return "" }

// flat returns the parts of r without results, which only an unchecked result has: it may
// hold itself.
func (r ToolResult) flat() []Part {
	if !slices.ContainsFunc(r.Parts, isA[ToolResult]) {
		return r.Parts
	}
	return slices.DeleteFunc(slices.Clone(r.Parts), isA[ToolResult])
}

func (m Media) kind() *kind { return mediaKind }

func (m Media) check(bool) (_ Part, reason string) {
	was := m
	m.MIME, m.URL = text.Valid(m.MIME), text.Valid(m.URL)
	switch {
	case m.Data == "" && m.URL == "":
		return nil, "media with neither Data nor URL; set one of them"
	case m.Data != "" && m.MIME == "":
		return nil, "media with Data but no MIME type; set MIME, such as to image/png"
	case !text.IsBase64(m.Data):
		return nil, "media Data is not standard base64 with padding; see NewMedia"
	}
	return ifChanged(m, was), ""
}

func (m Media) tokens(c *counter) int64 { return clampTokens(c.over.Media(m)) }

func (m Media) sum(s fingerprint.Sum) fingerprint.Sum {
	return s.Uint64(6).String(m.MIME).String(m.Data).String(m.URL)
}

func (m Media) rowSum(s fingerprint.Sum) fingerprint.Sum {
	return s.Uint64(6).String(cmp.Or(m.Data, m.URL))
}

// Format prints the MIME type, and the size or the address.
func (m Media) Format(f fmt.State, verb rune) { wording.Print(f, verb, m.print) }

func (m Media) print(bool) string {
	if m.Data == "" {
		return fmt.Sprintf("media(%s %s)", abbreviate(m.MIME), abbreviate(m.URL))
	}
	return fmt.Sprintf("media(%s, %s bytes)", abbreviate(m.MIME), grouped(len(m.Data)/4*3))
}

func (m Media) printSize() string {
	return fmt.Sprintf("%s %s", abbreviate(m.MIME), grouped(len(m.Data)/4*3))
}

// mask masks the type and the address, which a format without media writes as text.
func (m Media) mask(key string) Part {
	was := m
	m.MIME, m.URL = tags.Mask(key, m.MIME), tags.Mask(key, m.URL)
	return ifChanged(m, was)
}

func (m Media) render(b *strings.Builder) {
	b.WriteString("<media type=" + tags.Quote(m.label()) + " source=" + tags.Quote(m.place()) + "/>\n")
}

func (m Media) body() string { return "" }

func (o Opaque) kind() *kind { return opaqueKind }

func (o Opaque) check(bool) (_ Part, reason string) {
	was := o
	o.Format, o.JSON = text.Valid(o.Format), text.Valid(o.JSON)
	switch {
	case o.Format == "":
		return nil, "opaque block without a Format; set it to the name of the provider's format"
	case !strictjson.Valid([]byte(o.JSON)):
		return nil, "opaque block whose JSON is not valid; give it as the provider sent it"
	}
	return ifChanged(o, was), ""
}

func (o Opaque) tokens(c *counter) int64 { return c.text(o.JSON) }

func (o Opaque) sum(s fingerprint.Sum) fingerprint.Sum {
	return s.Uint64(7).String(o.Format).String(o.JSON)
}

func (o Opaque) rowSum(s fingerprint.Sum) fingerprint.Sum {
	return s.Uint64(7).String(o.Format).String(strictjson.Canonical(o.JSON))
}

// String returns the format and the size.
func (o Opaque) String() string {
	return fmt.Sprintf("opaque(%s, %s bytes)", abbreviate(o.Format), grouped(len(o.JSON)))
}

func (o Opaque) print(bool) string { return o.String() }

func (o Opaque) printSize() string { return "opaque " + grouped(len(o.JSON)) }

// mask changes no block, which only its format understands.
func (o Opaque) mask(string) Part { return nil }

func (o Opaque) render(b *strings.Builder) {
	b.WriteString("<block format=" + tags.Quote(o.Format) + ">" + tags.Escape(o.JSON) + "</block>\n")
}

func (o Opaque) body() string { return o.JSON }

func (f foreign) kind() *kind { return nil }

func (f foreign) check(bool) (_ Part, reason string) {
	if f.is == nil {
		return nil, "nil part; leave it out"
	}
	return nil, fmt.Sprintf("part of type %T; use one of the part types of this package, not a pointer to it", f.is)
}

func (f foreign) print(bool) string { return fmt.Sprintf("%T", f.is) }
func (f foreign) printSize() string { return f.print(false) }

// An identity is the key of a conversation and the counter of its messages.
type identity struct {
	*counter
	key  string // part of all tags, so that no text can forge them
	hint string // see Options.SummaryHint
	tool string // see Options.RecallTool
}

// newIdentity returns an identity with the key and the hint of from or, if from is nil,
// with a key for tagKey.
func newIdentity(c *counter, from *identity, tagKey string) *identity {
	switch {
	case from != nil:
		return &identity{counter: c, key: from.key, hint: from.hint}
	case tagKey != "":
		return &identity{counter: c, key: tags.KeyFrom([]byte(tagKey))}
	}
	return &identity{counter: c, key: tags.NewKey()}
}

// message returns the raw tokens of m as the model sees it, including the tags
// that name its author.
func (id *identity) message(m *Message) int64 {
	n := int64(id.over.Message)
	if m.isTagged() {
		open, end := tags.Author(tags.Typical, tags.Name(id.key, m.Author))
		n += id.text(open) + id.text(end)
	}
	if m.Role == RoleSystem {
		return n + id.parts(m.Parts)
	}
	parts, _ := maskParts(id.key, m.Parts)
	return n + id.parts(parts)
}

// maskParts returns the parts of a message or of a result as the model sees them, and
// reports whether any part differs; if none does, it returns the same slice. Arguments,
// names, IDs, opaque blocks, the data of media, and reasoning that its provider can
// recognise are not changed, but that reasoning loses its signature after a part that
// differs.
func maskParts(key string, parts []Part) ([]Part, bool) {
	var own []Part
	for i, p := range parts {
		if r, ok := p.(Reasoning); ok && own != nil && !r.isPlain() {
			p, own[i] = Reasoning{Text: r.Text}, Reasoning{Text: r.Text} // it was made after other text
		}
		if q := known(p).mask(key); q != nil {
			if own == nil {
				own = slices.Clone(parts)
			}
			own[i] = q
		}
	}
	if own == nil {
		return parts, false
	}
	return own, true
}

// noteTokens returns the raw tokens of the tags of a note that is sent as a user
// message; see Snapshot.AsUser. It runs the caller's code, so no lock may be held.
func (id *identity) noteTokens() int64 {
	open, end := tags.Note(tags.Typical)
	return id.text(open) + id.text(end)
}

// idleReasoning returns the raw tokens of the reasoning in m that the model gets
// only if a tool was called before m in its turn.
func (id *identity) idleReasoning(m *Message) int64 {
	if id.over.Reasoning != ReplayTools || m.Role != RoleAssistant || hasCalls(m) {
		return 0
	}
	parts, _ := maskParts(id.key, m.Parts)
	n := int64(0)
	for r := range eachOf[Reasoning](parts) {
		n += r.tokens(id.counter)
	}
	return n
}

// weigh sets the tokens of e, whose message and fields tools and note are set.
func (id *identity) weigh(e *entry) {
	tokens, idle := id.entry(e, &e.msg)
	e.tokens, e.idle = tokens, int32(min(idle, math.MaxInt32))
}

// entry returns the raw tokens of e, whose fields tools and note are set, if its message
// were m, and how many more they are if tools changes.
func (id *identity) entry(e *entry, m *Message) (tokens, idle int64) {
	tokens, idle = id.message(m), id.idleReasoning(m)
	if !e.tools {
		tokens -= idle
	}
	if e.note {
		tokens += id.noteTokens()
	}
	return tokens, idle
}

// toolset returns a toolset that is counted, or nil if it is empty.
func (id *identity) toolset(tools []Tool, key string) *toolset {
	if len(tools) == 0 && key == "" {
		return nil
	}
	t := &toolset{tools: tools, key: key, content: fingerprint.Sum(0).String(key)}
	for _, tool := range tools {
		t.content = t.content.String(tool.Name).String(tool.Description).String(tool.Schema)
		t.raw += int64(id.counter.over.Call) + id.text(tool.Name) + id.text(tool.Description) + id.text(tool.Schema)
		if o := tool.Opaque; o != (Opaque{}) {
			t.content = t.content.String(o.Format).String(o.JSON)
			t.raw += id.text(o.JSON)
		}
	}
	t.content = max(t.content, 1)
	return t
}

package convo

import (
	"math"
	"slices"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
	"github.com/seed-c1b73e60/convo/internal/tags"
)

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

package convo

import (
	"crypto/rand"
	"crypto/sha256"
	"math"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
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
		return &identity{counter: c, key: keyFrom([]byte(tagKey))}
	}
	return &identity{counter: c, key: newKey()}
}

// typicalKey is counted in place of the key, so that histories with the same
// content have the same number of tokens.
const typicalKey = "qmzvkrtx"

// newKey returns a random key.
func newKey() string {
	var random [16]byte
	rand.Read(random[:])
	return keyFrom(random[:])
}

// keyFrom returns a key that is made from secret. Its first letter is rare in texts,
// so that a keyFinder has little to compare.
func keyFrom(secret []byte) string {
	hash := sha256.Sum256(secret)
	key := hash[:keyLen]
	for i := range key {
		key[i] = 'a' + key[i]%26
	}
	key[0], key[1] = keyBegin, "jqxz"[hash[keyLen]%4]
	return string(key)
}

// isKey reports whether s is a key.
func isKey(s string) bool {
	return len(s) == keyLen && s[0] == keyBegin && strings.Trim(s[1:], "abcdefghijklmnopqrstuvwxyz") == ""
}

// message returns the raw tokens of m as the model sees it, including the tags
// that name its author.
func (id *identity) message(m *Message) int64 {
	n := int64(id.over.Message)
	if m.isTagged() {
		open, end := authorTags(typicalKey, quotedName(id.key, m.Author))
		n += id.text(open) + id.text(end)
	}
	if m.Role == RoleSystem {
		return n + id.parts(m.Parts)
	}
	parts, _ := maskParts(id.key, m.Parts)
	return n + id.parts(parts)
}

// noteTokens returns the raw tokens of the tags of a note that is sent as a user
// message; see Snapshot.AsUser. It runs the caller's code, so no lock may be held.
func (id *identity) noteTokens() int64 {
	open, end := noteTags(typicalKey)
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

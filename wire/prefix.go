package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// Prefix returns a short hash of the tools and the system text of a request, without
// cache marks. System text among the messages counts if nothing else precedes it; with
// the dialect Gemma it is part of a user message, and does not count. While the hash
// stays the same from request to request, a provider's cache can be used, and signatures
// stay valid. [PrefixDiff] returns what has changed.
func (r Request) Prefix() string {
	h := sha256.New()
	head := r.head()
	fmt.Fprintf(h, "%d:%s", len(head.tools), head.tools)
	for _, b := range head.system {
		fmt.Fprintf(h, "%d:%s", len(b.data), b.data)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// A head is what comes before the messages of a request, without cache marks.
type head struct {
	tools    json.RawMessage
	system   []block
	messages int // how many of the messages are system text
}

// A block is a part of a request that is compared as a whole.
type block struct {
	name  string // its position in the message
	field bool   // it is a field other than the content
	data  []byte // the role of its message, its field, and its value
}

func (r Request) head() (h head) {
	h.tools, _ = withoutMarks(r.Tools)
	if len(r.System) > 0 {
		h.system = appendBlocks(nil, "content", "system", r.System)
	}
	for _, m := range r.Messages {
		if !isSystem(m) {
			break
		}
		h.system = append(h.system, blocksOf(m)...)
		h.messages++
	}
	return h
}

// isSystem reports whether a message is system text of OpenAI's formats.
func isSystem(m json.RawMessage) bool {
	var f struct{ Role, Type json.RawMessage }
	if json.Unmarshal(m, &f) != nil || !isNull(f.Type) && stringOf(f.Type) != "message" {
		return false
	}
	role := stringOf(f.Role)
	return role == "system" || role == "developer"
}

// PrefixDiff describes the first difference that keeps request b from beginning with all
// of request a, such as "the tool \"search\" has changed". If b begins with all of a, it
// returns "". Any difference in the bytes of two messages counts, except cache marks,
// white space between the fields of a message, and fields that are null. Only the first
// difference is named, because a cache does not serve what follows it.
func PrefixDiff(a, b Request) string {
	ah, bh := a.head(), b.head()
	if !bytes.Equal(ah.tools, bh.tools) {
		return toolsDiff(ah.tools, bh.tools)
	}
	for i := range max(len(ah.system), len(bh.system)) {
		switch {
		case i >= len(ah.system):
			return fmt.Sprintf("block %d of the system text is new", i)
		case i >= len(bh.system):
			return fmt.Sprintf("block %d of the system text is gone", i)
		case !bytes.Equal(ah.system[i].data, bh.system[i].data):
			return fmt.Sprintf("block %d of the system text has changed", i)
		}
	}
	others := b.Messages[bh.messages:]
	for i, m := range a.Messages[ah.messages:] {
		at := ah.messages + i
		if i >= len(others) {
			return fmt.Sprintf("message %d is gone", at)
		}
		last := at == len(a.Messages)-1 // more blocks may be merged into it
		if name, what := blocksDiff(blocksOf(m), blocksOf(others[i]), last); what != "" {
			return fmt.Sprintf("%s of message %d %s", name, at, what)
		}
	}
	return ""
}

// blocksDiff returns the name of the first block that differs between two messages, and
// how it differs. If last is set, additional blocks at the end of b are not a difference.
func blocksDiff(a, b []block, last bool) (name, what string) {
	has := func(list []block, name string) bool {
		return slices.ContainsFunc(list, func(b block) bool { return b.name == name })
	}
	for k, x := range a {
		switch {
		case k >= len(b) || !has(b, x.name):
			return x.name, "is gone"
		case bytes.Equal(x.data, b[k].data):
		case !has(a, b[k].name):
			return b[k].name, "is new"
		default:
			return x.name, "has changed"
		}
	}
	if len(b) > len(a) && !last {
		return b[len(a)].name, "is new"
	}
	return "", ""
}

// toolsDiff is PrefixDiff for the tools.
func toolsDiff(a, b json.RawMessage) string {
	as, bs := toolsByName(a), toolsByName(b)
	for i, t := range as {
		switch k := indexOfTool(bs, t.name); {
		case k < 0:
			return fmt.Sprintf("the tool %s is gone", quote(t.name))
		case bs[k].json != t.json:
			return fmt.Sprintf("the tool %s has changed", quote(t.name))
		case k != i && len(as) == len(bs):
			return fmt.Sprintf("the tool %s stands in another place", quote(t.name))
		}
	}
	for _, t := range bs {
		if indexOfTool(as, t.name) < 0 {
			return fmt.Sprintf("the tool %s is new", quote(t.name))
		}
	}
	return "the tools have changed"
}

type namedTool struct{ name, json string }

func indexOfTool(list []namedTool, name string) int {
	return slices.IndexFunc(list, func(t namedTool) bool { return t.name == name })
}

// toolsByName returns the tools in definitions of any format.
func toolsByName(data json.RawMessage) (list []namedTool) {
	tools, _, _ := toolList(data)
	for _, raw := range tools {
		all, _ := fields("", raw)
		if inner := all["functionDeclarations"]; inner != nil {
			list = append(list, toolsByName(inner)...)
			continue
		}
		for _, key := range []string{"function", "toolSpec"} {
			if kindOf(all[key]) == '{' {
				all, _ = fields("", all[key])
			}
		}
		list = append(list, namedTool{stringOf(all["name"]), compact(raw)})
	}
	return list
}

// PrefixShare returns the fraction of request a, in bytes, that request b
// begins with, and that the provider may therefore read from its prompt cache.
// It compares whole content blocks (text, calls, results, images) and other fields, as
// [PrefixDiff] does.
func PrefixShare(a, b Request) float64 {
	as, bs := a.blocks(), b.blocks()
	same, total, still := 0, 0, true
	for i, block := range as {
		still = still && i < len(bs) && bytes.Equal(block.data, bs[i].data)
		total += len(block.data)
		if still {
			same += len(block.data)
		}
	}
	if total == 0 {
		return 1
	}
	return float64(same) / float64(total)
}

// blocks returns the blocks of the whole request.
func (r Request) blocks() []block {
	h := r.head()
	list := append([]block{{data: h.tools}}, h.system...)
	for _, m := range r.Messages[h.messages:] {
		list = append(list, blocksOf(m)...)
	}
	return list
}

// blocksOf returns the blocks of a message: the elements of its lists, and each other
// field but the role. An item without a role, as in OpenAI's Responses, is one block.
func blocksOf(m json.RawMessage) (blocks []block) {
	type field struct {
		key   string
		value json.RawMessage
	}
	var all []field
	role := ""
	editFields(string(m), func(key string, value json.RawMessage) (json.RawMessage, bool) {
		switch {
		case key == "role":
			role = string(value)
		case !isNull(value) && !slices.Contains(markFields, key):
			all = append(all, field{key, value})
		}
		return nil, false
	})
	if role == "" || !strictjson.Valid(m) {
		m, _ = withoutMarks(m)
		return []block{{name: "block 0", data: m}}
	}
	for _, f := range all {
		blocks = appendBlocks(blocks, f.key, role, f.value)
	}
	if len(blocks) == 0 {
		blocks = []block{{name: "block 0", data: []byte(role)}}
	}
	return blocks
}

// appendBlocks appends a field of a message with a role: each element of a list as a
// block, and any other value as one block.
func appendBlocks(blocks []block, key, role string, value json.RawMessage) []block {
	list, ok := []json.RawMessage{value}, false
	if kindOf(value) == '[' {
		if list, ok = strictjson.SplitArray(value); !ok {
			list = []json.RawMessage{value}
		}
	}
	n := 0
	for _, b := range blocks {
		if !b.field {
			n++
		}
	}
	if ok {
		role += "[]"
	}
	isField := !ok && key != "content" && key != "parts"
	for _, raw := range list {
		raw, ok := withoutMarks(raw)
		if !ok {
			continue
		}
		name := fmt.Sprintf("block %d", n)
		if isField {
			name = "the field " + quote(key)
		}
		blocks = append(blocks, block{name, isField, slices.Concat([]byte(role), []byte(key), raw)})
		n++
	}
	return blocks
}

// withoutMarks returns a block, or a list of blocks or tools, without cache marks, and
// reports whether anything remains of it. It does not look into values that the caller or
// the model defines, such as arguments and schemas.
func withoutMarks(raw json.RawMessage) (json.RawMessage, bool) {
	if !bytes.Contains(raw, []byte("cachePoint")) && !slices.ContainsFunc(markFields, func(mark string) bool { return bytes.Contains(raw, []byte(mark)) }) {
		return raw, true
	}
	switch kindOf(raw) {
	case '[':
		list, ok := strictjson.SplitArray(raw)
		if !ok {
			return raw, true
		}
		b := []byte{'['}
		for _, element := range list {
			if element, ok = withoutMarks(element); ok {
				if len(b) > 1 {
					b = append(b, ',')
				}
				b = append(b, element...)
			}
		}
		return append(b, ']'), true
	case '{':
		if all, err := fields("-", raw); err == nil && len(all) == 1 && all["cachePoint"] != nil {
			return nil, false
		}
		return json.RawMessage(editFields(string(raw), func(key string, value json.RawMessage) (json.RawMessage, bool) {
			switch key {
			case "content", "output", "tools", "toolResult":
				value, _ = withoutMarks(value)
			}
			return value, !slices.Contains(markFields, key)
		})), true
	}
	return raw, true
}

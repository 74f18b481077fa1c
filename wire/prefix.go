package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

// Prefix returns a short hash of what comes before the messages of a request: the tools
// and the system text, without cache marks. While it stays the same from request to
// request, a provider's cache can be of use, and signatures stay valid. [PrefixDiff]
// says what has changed.
func (r Request) Prefix() string {
	h := sha256.New()
	for _, block := range r.head() {
		fmt.Fprintf(h, "%d:%s", len(block), block)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// head returns the blocks before the messages.
func (r Request) head() (blocks [][]byte) {
	if tools := unmarkedTools(r.Tools); len(tools) > 0 {
		blocks = append(blocks, append([]byte("tools"), tools...))
	}
	if len(r.System) > 0 {
		blocks = appendBlocks(blocks, []byte("system"), r.System)
	}
	return blocks
}

// PrefixDiff says in words what in request a keeps request b from beginning with all of
// it, such as "the tool \"search\" has changed", or returns "" if b does. Cache marks do
// not count. Only the first difference is named: what follows it is not read from a
// cache anyway.
func PrefixDiff(a, b Request) string {
	if a, b := unmarkedTools(a.Tools), unmarkedTools(b.Tools); !bytes.Equal(a, b) {
		return toolsDiff(a, b)
	}
	as, bs := a.head(), b.head()
	for i := range max(len(as), len(bs)) {
		switch {
		case i >= len(as):
			return fmt.Sprintf("block %d of the system text is new", i-min(len(a.Tools), 1))
		case i >= len(bs):
			return fmt.Sprintf("block %d of the system text is gone", i-min(len(a.Tools), 1))
		case !bytes.Equal(as[i], bs[i]):
			return fmt.Sprintf("block %d of the system text has changed", i-min(len(a.Tools), 1))
		}
	}
	for i, m := range a.Messages {
		if i >= len(b.Messages) {
			return fmt.Sprintf("message %d is gone", i)
		}
		am, bm := blocksOf(Request{Messages: []json.RawMessage{m}}), blocksOf(Request{Messages: b.Messages[i : i+1]})
		last := i == len(a.Messages)-1 // what follows may be merged into it
		for k, block := range am {
			switch {
			case k >= len(bm):
				return fmt.Sprintf("block %d of message %d is gone", k, i)
			case !bytes.Equal(block, bm[k]):
				return fmt.Sprintf("block %d of message %d has changed", k, i)
			}
		}
		if len(bm) > len(am) && !last {
			return fmt.Sprintf("block %d of message %d is new", len(am), i)
		}
	}
	return ""
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
// It compares whole content blocks (text, calls, results, images) and ignores
// cache marks.
func PrefixShare(a, b Request) float64 {
	as, bs := blocksOf(a), blocksOf(b)
	same, total, still := 0, 0, true
	for i, block := range as {
		still = still && i < len(bs) && bytes.Equal(block, bs[i])
		total += len(block)
		if still {
			same += len(block)
		}
	}
	if total == 0 {
		return 1
	}
	return float64(same) / float64(total)
}

// blocksOf splits a request into its content blocks, each preceded by the role
// of its message.
func blocksOf(r Request) [][]byte {
	blocks := r.head()
	for _, m := range r.Messages {
		var f struct {
			Role    json.RawMessage
			Content json.RawMessage
			Parts   json.RawMessage
			Calls   json.RawMessage `json:"tool_calls"`
			Images  json.RawMessage // Ollama
			Thought json.RawMessage `json:"reasoning_content"`
			Thinks  json.RawMessage `json:"thinking"`
			ID      json.RawMessage `json:"tool_call_id"`
		}
		if json.Unmarshal(m, &f) != nil || f.Role == nil {
			m, _ = withoutMark(m)
			blocks = append(blocks, m) // an item of OpenAI's Responses
			continue
		}
		head := append(bytes.Clone(f.Role), f.ID...)
		for _, content := range []json.RawMessage{f.Thought, f.Thinks, f.Content, f.Images, f.Parts, f.Calls} {
			if !isNull(content) {
				blocks = appendBlocks(blocks, head, content)
			}
		}
	}
	return blocks
}

// appendBlocks appends each element of an array as a block. A value that is not
// an array is one block.
func appendBlocks(blocks [][]byte, head []byte, content json.RawMessage) [][]byte {
	var list []json.RawMessage
	if json.Unmarshal(content, &list) != nil {
		list = []json.RawMessage{content}
	}
	for _, raw := range list {
		if raw, ok := withoutMark(raw); ok {
			blocks = append(blocks, append(bytes.Clone(head), raw...))
		}
	}
	return blocks
}

// withoutMark returns a block without its cache marks, and reports whether
// anything is left of it. Encode writes the mark of a block as its last field; the
// blocks in a result have marks of their own.
func withoutMark(raw json.RawMessage) (json.RawMessage, bool) {
	if bytes.Contains(raw, []byte(`"cachePoint"`)) {
		var block map[string]json.RawMessage
		if json.Unmarshal(raw, &block) == nil && len(block) == 1 && block["cachePoint"] != nil {
			return nil, false
		}
	}
	if !bytes.Contains(raw, []byte(`"cache_control"`)) && !bytes.Contains(raw, []byte(`"prompt_cache_breakpoint"`)) {
		return raw, true
	}
	inner := false
	for _, kind := range []string{"tool_result", "function_call_output", "custom_tool_call_output"} {
		inner = inner || bytes.HasPrefix(raw, []byte(`{"type":"`+kind+`"`))
	}
	for _, mark := range markFields {
		switch end := []byte(mark + "}"); {
		case inner: // strings in it hold no quotes, and opaque blocks no marks
			raw = bytes.ReplaceAll(raw, []byte(mark), nil)
		case bytes.HasSuffix(raw, end):
			raw = append(bytes.Clone(raw[:len(raw)-len(end)]), '}')
		}
	}
	return raw, true
}

// markFields are the cache marks that Encode adds to a block.
var markFields = []string{anthropicMark(false), anthropicMark(true), responsesMark(false)}

// unmarkedTools returns the definitions of tools without the cache mark at their end.
func unmarkedTools(tools json.RawMessage) json.RawMessage {
	for _, long := range []bool{false, true} {
		for mark, end := range map[string]string{anthropicMark(long): "}]", converseMark(long): "]}"} {
			if rest, ok := bytes.CutSuffix(tools, []byte(mark+end)); ok {
				return append(bytes.Clone(rest), end...)
			}
		}
	}
	return tools
}

package wire

import (
	"bytes"
	"encoding/json"
)

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
	var blocks [][]byte
	if len(r.System) > 0 {
		blocks = appendBlocks(blocks, nil, r.System)
	}
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

// withoutMark returns a block without its cache mark, and reports whether
// anything is left of it.
func withoutMark(raw json.RawMessage) (json.RawMessage, bool) {
	if bytes.Contains(raw, []byte(`"cachePoint"`)) {
		var block map[string]json.RawMessage
		if json.Unmarshal(raw, &block) == nil && len(block) == 1 && block["cachePoint"] != nil {
			return nil, false
		}
	}
	const mark = `,"cache_control":{"type":"ephemeral"}`
	if bytes.HasSuffix(raw, []byte(mark+"}")) {
		raw = append(bytes.Clone(raw[:len(raw)-len(mark)-1]), '}')
	}
	return raw, true
}

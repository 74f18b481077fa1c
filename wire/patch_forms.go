package wire

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// Patch implements [Patcher].
func (f Anthropic) Patch(was []json.RawMessage, now ...convo.Message) ([]json.RawMessage, error) {
	f.Cache, f.CacheTools = false, false
	form := patchForm{
		Format: f, name: FormatAnthropic, origin: convo.Origin{Format: FormatAnthropic, Model: f.Model},
		text:   func(convo.Role) string { return `{"type":"text","text":` },
		call:   func(json.RawMessage) ([]string, bool) { return []string{"input"}, false },
		result: func(json.RawMessage) []string { return []string{"content"} },
		failed: []string{"is_error"},
		lists: func(raw json.RawMessage, all map[string]json.RawMessage) []*patchList {
			if stringOf(all["role"]) == "system" {
				if _, ok := plainSystem(raw); !ok {
					return wholeMessage(raw)
				}
			}
			return []*patchList{listIn(all, "content")}
		},
	}
	return form.patch(was, now)
}

// Patch implements [Patcher].
func (f Converse) Patch(was []json.RawMessage, now ...convo.Message) ([]json.RawMessage, error) {
	f.Cache, f.CacheTools = false, false
	form := patchForm{
		Format: f, name: FormatConverse, origin: convo.Origin{Format: FormatConverse, Model: f.Model},
		text:   func(convo.Role) string { return `{"text":` },
		call:   func(json.RawMessage) ([]string, bool) { return []string{"toolUse", "input"}, false },
		result: func(json.RawMessage) []string { return []string{"toolResult", "content"} },
		failed: []string{"toolResult", "status"},
		lists: func(_ json.RawMessage, all map[string]json.RawMessage) []*patchList {
			l := listIn(all, "content")
			blocks, _ := converseBlocks("content", l.value)
			tools := make([]converseTool, len(blocks))
			for i, b := range blocks {
				tools[i] = converseTool{use: b.kind == "toolUse", result: b.kind == "toolResult", id: inner(b.value, "toolUseId")}
				tools[i].server = tools[i].use && inner(b.value, "type") == serverToolUse
			}
			serverTools(tools)
			l.isSaid = func(i int) bool { return l.role == convo.RoleAssistant && i < len(tools) && tools[i].server }
			return []*patchList{l}
		},
	}
	return form.patch(was, now)
}

// Patch implements [Patcher].
func (f Gemini) Patch(was []json.RawMessage, now ...convo.Message) ([]json.RawMessage, error) {
	in := func(block json.RawMessage, keys ...string) []string {
		if all, _ := strictjson.SplitObject(block); all != nil {
			keys[0], _ = pick(all, keys[0])
		}
		return keys
	}
	form := patchForm{
		Format: f, name: FormatGemini, origin: convo.Origin{Format: FormatGemini, Model: f.model()},
		text:   func(convo.Role) string { return `{"text":` },
		call:   func(block json.RawMessage) ([]string, bool) { return in(block, "functionCall", "args"), false },
		result: func(block json.RawMessage) []string { return in(block, "functionResponse", "response") },
		media:  "parts",
		unsign: func(block json.RawMessage, part convo.Part) []byte {
			if isCall(part) {
				return setField(block, strictjson.AppendString(nil, skipSignature), in(block, "thoughtSignature")...)
			}
			return dropFields(block, "thoughtSignature", "thought_signature")
		},
		lists: func(_ json.RawMessage, all map[string]json.RawMessage) []*patchList {
			return []*patchList{listIn(all, "parts")}
		},
	}
	return form.patch(was, now)
}

// Patch implements [Patcher].
func (f OpenAIResponses) Patch(was []json.RawMessage, now ...convo.Message) ([]json.RawMessage, error) {
	f.Cache = false
	form := patchForm{
		Format: f, name: FormatOpenAIResponses, origin: convo.Origin{Format: FormatOpenAIResponses, Model: f.Model},
		text: func(role convo.Role) string {
			if role == convo.RoleAssistant {
				return `{"type":"output_text","annotations":[],"text":`
			}
			return `{"type":"input_text","text":`
		},
		call: func(item json.RawMessage) ([]string, bool) {
			if inner(item, "type") == "custom_tool_call" {
				return []string{"input"}, true
			}
			return []string{"arguments"}, false
		},
		result: func(json.RawMessage) []string { return []string{"output"} },
		quotes: true,
		last:   withoutLedIDs,
		lists: func(raw json.RawMessage, all map[string]json.RawMessage) []*patchList {
			if kind := stringOf(all["type"]); kind != "" && kind != "message" {
				return wholeMessage(raw)
			}
			return []*patchList{listIn(all, "content")}
		},
	}
	return form.patch(was, now)
}

// withoutLedIDs removes the ids of items that have lost the reasoning before them, since the API
// takes such an id only after the reasoning.
func withoutLedIDs(was, now []json.RawMessage) {
	led := map[string]bool{}
	for i, raw := range was[:len(was)-1] {
		if id := inner(was[i+1], "id"); id != "" && inner(raw, "type") == "reasoning" && inner(was[i+1], "type") != "reasoning" {
			led[id] = !slices.ContainsFunc(now, func(m json.RawMessage) bool { return bytes.Equal(m, raw) })
		}
	}
	for i, raw := range now {
		if led[inner(raw, "id")] {
			now[i] = dropFields(raw, "id")
		}
	}
}

// Patch implements [Patcher].
func (f OpenAIChat) Patch(was []json.RawMessage, now ...convo.Message) ([]json.RawMessage, error) {
	form := patchForm{
		Format: f, name: f.format(), origin: convo.Origin{Format: f.origin(), Model: f.Model},
		text: func(convo.Role) string { return `{"type":"text","text":` },
		call: func(call json.RawMessage) ([]string, bool) {
			if isNull(valueAt(call, "function")) && !isNull(valueAt(call, "custom")) {
				return []string{"custom", "input"}, true
			}
			return []string{"function", "arguments"}, false
		},
		result:  func(json.RawMessage) []string { return []string{"content"} },
		unsign:  func(call json.RawMessage, _ convo.Part) []byte { return dropFields(call, extraField) },
		quotes:  f.Dialect != Ollama,
		without: `""`,
		lists: func(raw json.RawMessage, all map[string]json.RawMessage) []*patchList {
			if stringOf(all["role"]) == "tool" {
				return wholeMessage(raw)
			}
			lists := []*patchList{listIn(all, "content")}
			if lists[0].role == convo.RoleAssistant {
				some := append(slices.Clip(reasoningFields), detailsField, extraField)
				value := []byte("{}")
				for _, key := range some {
					if raw := all[key]; raw != nil {
						value = setField(value, raw, key)
					}
				}
				reasoning := &patchList{some: some, wrap: func(value []byte) []byte { return setField(value, []byte(`"assistant"`), "role") }}
				if len(value) > 2 {
					reasoning.value = value
				}
				lists = append([]*patchList{reasoning}, lists...)
			}
			for _, key := range []string{"tool_calls", "refusal", "images"} {
				if all[key] != nil {
					l := listIn(all, key)
					l.role = convo.RoleNone
					lists = append(lists, l)
				}
			}
			return lists
		},
	}
	if f.Dialect == DeepSeek {
		form.needed = "reasoning_content"
	}
	return form.patch(was, now)
}

// wholeMessage returns the list of a message that is one block.
func wholeMessage(raw json.RawMessage) []*patchList {
	return []*patchList{{value: raw, wrap: func(value []byte) []byte { return value }}}
}

// listIn returns the list in a field of a message.
func listIn(all map[string]json.RawMessage, key string) *patchList {
	l := &patchList{keys: []string{key}, value: all[key], role: convo.RoleUser}
	role := all["role"]
	switch stringOf(role) {
	case "system", "developer":
		l.role = convo.RoleSystem
	case "assistant", "model":
		l.role = convo.RoleAssistant
	}
	l.wrap = func(value []byte) []byte {
		b := []byte{'{'}
		if role != nil {
			b = appendRawField(b, "role", string(role))
		}
		return append(appendRawField(b, key, string(value)), '}')
	}
	return l
}

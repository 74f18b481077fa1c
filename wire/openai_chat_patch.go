package wire

import (
	"encoding/json"
	"slices"

	"github.com/seed-c1b73e60/convo"
)

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

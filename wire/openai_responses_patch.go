package wire

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/seed-c1b73e60/convo"
)

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
		quotes: true, leads: true, uncited: "[]",
		last: withoutLedIDs,
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

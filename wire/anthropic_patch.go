package wire

import (
	"encoding/json"

	"github.com/seed-c1b73e60/convo"
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

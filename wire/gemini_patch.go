package wire

import (
	"encoding/json"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

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

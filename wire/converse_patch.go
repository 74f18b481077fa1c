package wire

import (
	"encoding/json"

	"github.com/seed-c1b73e60/convo"
)

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

package repotest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// The table of docs/formats.md of what each format can carry is what Encode does.
func TestPages_LostTable(t *testing.T) {
	call := convo.ToolCall{ID: "call_1", Name: "read", Arguments: "{}"}
	image := convo.NewMedia("image/png", []byte("\x89PNG\r\n\x1a\n"))
	result := func(parts ...convo.Part) []convo.Message {
		return []convo.Message{convo.User("Read it."), convo.Assistant("", call), {Role: convo.RoleTool, Parts: []convo.Part{
			convo.ToolResult{CallID: call.ID, Name: call.Name, Parts: parts},
		}}}
	}
	answer := func(raw string) []convo.Message {
		in, err := wire.Anthropic{}.Decode([]byte(`{"type":"message","role":"assistant","model":"claude-opus-5-5","content":[` + raw + `],"stop_reason":"end_turn"}`))
		require.NoError(t, err)
		return append([]convo.Message{convo.User("Search.")}, in.Messages...)
	}
	named := call
	named.Name = "mcp.files.read"
	rows := []struct {
		name string
		msgs []convo.Message
	}{
		{"text, calls, results", result(convo.Text("a"))},
		{"image of the user", []convo.Message{convo.User("Look.", image)}},
		{"image in a result", result(image)},
		{"PDF of the user", []convo.Message{convo.User("Read.", convo.NewMedia("application/pdf", []byte("%PDF-1.4")))}},
		{"sound of the user", []convo.Message{convo.User("Listen.", convo.NewMedia("audio/wav", []byte("RIFF")))}},
		{"signed thinking of Claude", answer(`{"type":"thinking","thinking":"I look.","signature":"c2ln"},{"type":"text","text":"Yes."}`)},
		{"web search of Anthropic", answer(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"go"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://go.dev","title":"Go","encrypted_content":"eA=="}]},{"type":"text","text":"Found."}`)},
		{"citation of a text", answer(`{"type":"text","text":"Go is compiled.","citations":[{"type":"web_search_result_location","url":"https://go.dev","title":"Go","encrypted_index":"eA==","cited_text":"compiled"}]}`)},
		{"name of a tool with a dot", []convo.Message{convo.User("Read it."), convo.Assistant("", named), convo.Result(named, "a")}},
		{"cache mark", []convo.Message{convo.User("Read it.", wire.CacheMark(time.Hour), convo.Text("Now."))}},
	}
	formats := []wire.Format{wire.Anthropic{Model: "claude-opus-5-5"}, wire.Converse{}, wire.OpenAIChat{}, wire.OpenAIResponses{}, wire.Gemini{}}
	instead := map[string]string{ // of what is lost, by wire.Omission
		"media": "a short text", "block": "a short text", "reasoning": "left out", "cache mark": "left out", "name of a tool": "another name",
	}
	var table strings.Builder
	table.WriteString("| | Anthropic | Converse | Chat Completions | Responses | Gemini |\n|---|---|---|---|---|---|\n")
	for _, row := range rows {
		h, err := convo.Restore(convo.NewSnapshot(row.msgs, &convo.Options{AsSent: true}), &convo.Options{AsSent: true})
		require.NoError(t, err, row.name)
		table.WriteString("| " + row.name + " |")
		for _, f := range formats {
			req, err := f.Encode(h.Snapshot())
			require.NoError(t, err)
			cell := "yes"
			for _, lost := range req.Lost {
				require.Contains(t, instead, lost.What)
				cell = instead[lost.What]
			}
			table.WriteString(" " + cell + " |")
		}
		table.WriteString("\n")
	}
	assert.Contains(t, readRepo(t).text["docs/formats.md"], table.String())
}

package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// anthropicCited is an answer after the example in
// https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/web-search-tool, with
// another citation as in https://docs.anthropic.com/en/docs/build-with-claude/citations.
const anthropicCited = `{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[
	{"type":"server_tool_use","id":"srvtoolu_01","name":"web_search","input":{"query":"claude shannon birth date"}},
	{"type":"web_search_tool_result","tool_use_id":"srvtoolu_01","content":[{"type":"web_search_result","url":"https://en.wikipedia.org/wiki/Claude_Shannon","title":"Claude Shannon - Wikipedia","encrypted_content":"EqgfCioIARgB","page_age":"April 30, 2025"}]},
	{"type":"text","text":"Claude Shannon was born on ","citations":[]},
	{"type":"text","text":"April 30, 1916, in Petoskey, Michigan","citations":[
		{"type":"web_search_result_location","url":"https://en.wikipedia.org/wiki/Claude_Shannon","title":"Claude Shannon - Wikipedia","encrypted_index":"Eo8BCioIAhgB","cited_text":"Claude Elwood Shannon (April 30, 1916 – February 24, 2001) was an American mathematician"},
		{"type":"char_location","cited_text":"Born in 1916.","document_index":0,"document_title":"Lives","start_char_index":0,"end_char_index":13,"file_id":"file_1"}]}],
	"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`

// The annotations are after the example in
// https://platform.openai.com/docs/guides/tools-web-search, those of files after
// https://platform.openai.com/docs/guides/tools-file-search.
const responsesCited = `{"id":"resp_1","model":"gpt-5","output":[
	{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"news"}},
	{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"On March 6, 2025, several news.","annotations":[
		{"type":"url_citation","start_index":0,"end_index":16,"url":"https://example.com/news","title":"News..."},
		{"type":"file_citation","index":30,"file_id":"file-2d","filename":"deep_research_blog.pdf"}]}]}],"status":"completed"}`

// The citations are of the shapes in
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_CitationsContentBlock.html.
const converseCited = `{"output":{"message":{"role":"assistant","content":[
	{"text":"As the report says: "},
	{"citationsContent":{"content":[{"text":"sales "},{"text":"rose."}],"citations":[{"title":"Report","source":"r.pdf","location":{"documentPage":{"documentIndex":0,"start":1,"end":2}},"sourceContent":[{"text":"Sales rose by 3 %."}]},{"title":"A page","location":{"web":{"url":"https://a","domain":"a"}}}]}}]}},"stopReason":"end_turn"}`

// Citations stay with their text in their own format, as its requests take them.
func TestCitations_GoBackInTheirFormat(t *testing.T) {
	for _, tt := range []struct {
		f      wire.Format
		answer string
		text   string // of the message
		want   string // the message that goes back
	}{
		{wire.Anthropic{}, anthropicCited, "Claude Shannon was born on \nApril 30, 1916, in Petoskey, Michigan",
			`{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_01","name":"web_search","input":{"query":"claude shannon birth date"}},` +
				`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_01","content":[{"type":"web_search_result","url":"https://en.wikipedia.org/wiki/Claude_Shannon","title":"Claude Shannon - Wikipedia","encrypted_content":"EqgfCioIARgB","page_age":"April 30, 2025"}]},` +
				`{"type":"text","text":"Claude Shannon was born on "},{"type":"text","text":"April 30, 1916, in Petoskey, Michigan","citations":[` +
				`{"type":"web_search_result_location","cited_text":"Claude Elwood Shannon (April 30, 1916 – February 24, 2001) was an American mathematician","encrypted_index":"Eo8BCioIAhgB","title":"Claude Shannon - Wikipedia","url":"https://en.wikipedia.org/wiki/Claude_Shannon"},` +
				`{"type":"char_location","cited_text":"Born in 1916.","document_index":0,"document_title":"Lives","start_char_index":0,"end_char_index":13}]}]}`},
		{wire.OpenAIResponses{}, responsesCited, "On March 6, 2025, several news.",
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"On March 6, 2025, several news.","annotations":[` +
				`{"type":"url_citation","start_index":0,"end_index":16,"url":"https://example.com/news","title":"News..."},{"type":"file_citation","file_id":"file-2d","filename":"deep_research_blog.pdf","index":30}]}]}`},
		{wire.Converse{}, converseCited, "As the report says: \nsales rose.",
			`{"role":"assistant","content":[{"text":"As the report says: "},{"citationsContent":{"content":[{"text":"sales rose."}],"citations":[{"title":"Report","source":"r.pdf","location":{"documentPage":{"documentIndex":0,"start":1,"end":2}},"sourceContent":[{"text":"Sales rose by 3 %."}]},{"title":"A page","location":{"web":{"url":"https://a","domain":"a"}}}]}}]}`},
	} {
		in := mustDecode(t, tt.f, []byte(tt.answer))
		assert.Empty(t, in.Lost)
		require.Len(t, in.Messages, 1)
		assert.Equal(t, tt.text, in.Messages[0].Text())
		h := historyOf(t, convo.User("q"), in.Messages[0], convo.User("and?"))
		r := mustEncode(t, tt.f, h.Snapshot())
		assert.Empty(t, tt.f.Check(r.Body()))
		assert.Equal(t, tt.want, string(r.Messages[len(r.Messages)-2]))
		again := mustDecode(t, tt.f, r.Body())
		assert.Empty(t, again.Lost)
		mustAppend(t, h, convo.Assistant("so"), convo.User("x"))
		next := mustEncode(t, tt.f, h.Snapshot())
		assert.Equal(t, 1.0, wire.PrefixShare(r, next))
	}
}

// In other formats a text names its sources, without the quotations.
func TestCitations_AreTextInOtherFormats(t *testing.T) {
	for _, tt := range []struct {
		from   wire.Format
		answer string
		want   []string // texts
	}{
		{wire.Anthropic{}, anthropicCited, []string{`[Called web_search: {"query":"claude shannon birth date"}]`, "[Web search found: Claude Shannon - Wikipedia, https://en.wikipedia.org/wiki/Claude_Shannon]",
			"Claude Shannon was born on ", "April 30, 1916, in Petoskey, Michigan", "[Source: Claude Shannon - Wikipedia, https://en.wikipedia.org/wiki/Claude_Shannon; Lives]"}},
		{wire.OpenAIResponses{}, responsesCited, []string{"[Web search: news]", "On March 6, 2025, several news.", "[Source: News..., https://example.com/news; deep_research_blog.pdf]"}},
		{wire.Converse{}, converseCited, []string{"As the report says: ", "sales rose.", "[Source: Report, r.pdf; A page, https://a]"}},
	} {
		in := mustDecode(t, tt.from, []byte(tt.answer))
		msgs := append([]convo.Message{convo.User("q")}, append(in.Messages, convo.User("and?"))...)
		r := mustEncode(t, wire.Gemini{}, convo.NewSnapshot(msgs))
		var content struct{ Parts []struct{ Text string } }
		require.NoError(t, json.Unmarshal(r.Messages[1], &content))
		var texts []string
		for _, p := range content.Parts {
			texts = append(texts, p.Text)
		}
		assert.Equal(t, tt.want, texts)
		for name, f := range formats {
			r := mustEncode(t, f, convo.NewSnapshot(msgs))
			assert.Empty(t, f.Check(r.Body()), "%s: %s", name, r.Body())
			own := strings.Contains(string(r.Body()), `"citations"`) || strings.Contains(string(r.Body()), `"url_citation"`)
			assert.NotEqual(t, own, strings.Contains(string(r.Body()), "[Source: "), "%s: %s", name, r.Body())
			assert.NotContains(t, strings.ReplaceAll(string(r.Body()), `"encrypted_content":"EqgfCioIARgB"`, ""), map[bool]string{false: "EqgfCioIARgB", true: "\x00"}[own], name)
		}
	}
}

// Citations that do not fit are left out: citations of a removed or changed text, of
// positions that the text does not have, or of a type that requests do not accept.
func TestCitations_ThatDoNotFitAreLeftOut(t *testing.T) {
	url := func(start, end string) string {
		return `{"type":"url_citation","start_index":` + start + `,"end_index":` + end + `,"url":"u","title":"t"}`
	}
	note := func(list ...string) convo.Part { return item(`{"annotations":[` + strings.Join(list, ",") + `]}`) }
	cites := block(`{"citations":[{"type":"web_search_result_location","cited_text":"c","encrypted_index":"i","title":null,"url":"u"}]}`)
	pages := convo.Opaque{Format: "converse", JSON: `{"citationsContent":{"citations":[{"title":"t"}]}}`}
	call := convo.ToolCall{ID: "a", Name: "f", Arguments: "{}"}
	const sent = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"日本語","annotations":[{"type":"url_citation","start_index":0,"end_index":3,"url":"u","title":"t"}]}]}`
	for _, tt := range []struct {
		name  string
		f     wire.Format
		parts []convo.Part
		want  string
	}{
		{"within", wire.OpenAIResponses{}, []convo.Part{convo.Text("日本語"), note(url("0", "3"))}, sent},
		{"behind the end", wire.OpenAIResponses{}, []convo.Part{convo.Text("日本語"), note(url("0", "4"))}, `{"role":"assistant","content":"日本語"}`},
		{"one of two", wire.OpenAIResponses{}, []convo.Part{convo.Text("日本語"), note(url("0", "4"), url("0", "3"), url("-1", "3"), url(`"0"`, "3"))}, sent},
		{"a new type", wire.OpenAIResponses{}, []convo.Part{convo.Text("a"), note(`{"type":"new"}`, `{}`, `7`)}, `{"role":"assistant","content":"a"}`},
		{"a field is missing", wire.OpenAIResponses{}, []convo.Part{convo.Text("a"), note(`{"type":"url_citation","url":"u"}`)}, `{"role":"assistant","content":"a"}`},
		{"the text is gone", wire.OpenAIResponses{}, []convo.Part{note(url("0", "1")), convo.Text("a")}, `{"role":"assistant","content":"a"}`},
		{"the text is blank", wire.OpenAIResponses{}, []convo.Part{convo.Text("a"), convo.Text(" "), note(url("0", "1"))}, `{"role":"assistant","content":"a"}`},
		{"no list", wire.OpenAIResponses{}, []convo.Part{convo.Text("a"), item(`{"annotations":{}}`)}, `{"role":"assistant","content":"a"}`},
		{"more fields", wire.OpenAIResponses{}, []convo.Part{convo.Text("a"), item(`{"annotations":[],"more":1}`)}, `{"role":"assistant","content":"a"}`},
		{"Anthropic", wire.Anthropic{}, []convo.Part{convo.Text("a"), cites}, `{"role":"assistant","content":[{"type":"text","text":"a","citations":[{"type":"web_search_result_location","cited_text":"c","encrypted_index":"i","title":null,"url":"u"}]}]}`},
		{"Anthropic: the text is gone", wire.Anthropic{}, []convo.Part{cites, convo.Text("a"), convo.Text(""), cites}, `{"role":"assistant","content":[{"type":"text","text":"a"}]}`},
		{"Anthropic: of a picture", wire.Anthropic{}, []convo.Part{convo.Text("a"), convo.Media{MIME: "image/png", URL: "u"}, cites}, `{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"[image/png at u]"}]}`},
		{"Anthropic: of a call", wire.Anthropic{}, []convo.Part{convo.Text("a"), call, cites}, `{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"a","name":"f","input":{}}]}`},
		{"Anthropic: twice", wire.Anthropic{}, []convo.Part{convo.Text("a"), cites, cites}, `{"role":"assistant","content":[{"type":"text","text":"a","citations":[{"type":"web_search_result_location","cited_text":"c","encrypted_index":"i","title":null,"url":"u"}]}]}`},
		{"Converse", wire.Converse{}, []convo.Part{convo.Text("a"), pages}, `{"role":"assistant","content":[{"citationsContent":{"content":[{"text":"a"}],"citations":[{"title":"t"}]}}]}`},
		{"Converse: the text is gone", wire.Converse{}, []convo.Part{pages, convo.Text("a")}, `{"role":"assistant","content":[{"text":"a"}]}`},
		{"Converse: a block of before", wire.Converse{}, []convo.Part{convo.Opaque{Format: "converse", JSON: `{"citationsContent":{"content":[{"text":"a"}],"citations":[]}}`}}, `{"role":"assistant","content":[{"citationsContent":{"content":[{"text":"a"}],"citations":[]}}]}`},
		{"of nothing, elsewhere", wire.Gemini{}, []convo.Part{cites, convo.Text("a"), convo.Text(" "), note(url("0", "1"))}, `{"role":"model","parts":[{"text":"a"}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			origin := convo.Origin{}
			m := convo.Message{Role: convo.RoleAssistant, Origin: origin, Parts: tt.parts}
			msgs := []convo.Message{convo.User("q"), m}
			if len(m.ToolCalls()) > 0 {
				msgs = append(msgs, convo.Result(call, "r"))
			}
			r := mustEncode(t, tt.f, convo.NewSnapshot(append(msgs, convo.User("u"))))
			assert.Empty(t, tt.f.Check(r.Body()))
			assert.Equal(t, tt.want, string(r.Messages[1]))
		})
	}
}

// Citations that no part of a message can hold are listed in Lost.
func TestCitations_DecodeTellsWhatItLoses(t *testing.T) {
	for body, want := range map[string]string{
		`{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"text","text":"","citations":[{"type":"y"}]}]}`:                                                                                                     "content[1].citations",
		`{"role":"assistant","content":[{"type":"text","text":"x","citations":{"type":"y"}}]}`:                                                                                                                                 "content[0].citations",
		`{"system":[{"type":"text","text":"x","citations":[{}]}],"messages":[]}`:                                                                                                                                               "system[0].citations",
		`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x","citations":[{}]}]}]}]}`: "messages[1].content[0].content[0].citations",
	} {
		in := mustDecode(t, wire.Anthropic{}, []byte(body))
		assert.Equal(t, []string{want + ": the citations of a text"}, listed(in.Lost))
	}
	in := mustDecode(t, wire.OpenAIResponses{}, []byte(`{"input":[{"role":"user","content":[{"type":"input_text","text":"x","\u0061nnotations":[{}]}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"","annotations":[{}]}]}]}`))
	assert.Equal(t, []string{"input[0].content[0].annotations: the citations of a text", "input[1].content[0].annotations: the citations of a text"}, listed(in.Lost))
}

// A citation of a request or a recorded answer survives in its own format.
func TestCitations_OfRecordedStreams(t *testing.T) {
	found := 0
	for _, tt := range []struct {
		prefix string
		f      wire.Format
		key    string
	}{{"anthropic__", wire.Anthropic{}, `"citations":[{`}, {"openai__responses__openai-", wire.OpenAIResponses{}, `"annotations":[{`}} {
		recordedEvents(t, tt.prefix, streamCases[map[string]string{"anthropic__": "anthropic", "openai__responses__openai-": "responses"}[tt.prefix]].ends, func(t *testing.T, events []event) {
			got, _ := streamed(t, tt.f, events)
			notes := 0
			for _, m := range got.Messages {
				for _, p := range m.Parts {
					if o, ok := p.(convo.Opaque); ok && (strings.HasPrefix(o.JSON, `{"citations":[{`) || strings.HasPrefix(o.JSON, `{"annotations":[{`)) {
						notes++
					}
				}
			}
			if notes == 0 {
				return
			}
			found++
			for _, l := range got.Lost {
				assert.NotContains(t, l.What, "citations")
			}
			msgs := append([]convo.Message{convo.User("q")}, append(got.Messages, convo.User("u"))...)
			r := mustEncode(t, tt.f, convo.NewSnapshot(msgs))
			assert.Equal(t, notes, strings.Count(string(r.Body()), tt.key))
			assert.Empty(t, tt.f.Check(r.Body()))
			r = mustEncode(t, wire.OpenAIChat{}, convo.NewSnapshot(msgs))
			assert.Contains(t, string(r.Body()), "[Source: ")
		})
	}
	assert.GreaterOrEqual(t, found, 3)
}

// A result that was received as an object is sent back as an object, and as text in other
// formats. After an edit it is a text.
func TestResults_ThatCameAsObjects(t *testing.T) {
	// The response is that of https://ai.google.dev/gemini-api/docs/function-calling.
	gemini := func(response string) string {
		return `{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"id":"a","name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":` + response + `}}]}]}`
	}
	converse := func(content string) string {
		return `{"messages":[{"role":"user","content":[{"text":"q"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"f","input":{}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[` + content + `]}}]}]}`
	}
	for _, tt := range []struct {
		f         wire.Format
		body      string
		want      string // of the newest message
		elsewhere string // the result as OpenAI gets it
	}{
		{wire.Gemini{Model: "gemini-2.5-pro"}, gemini(`{"brightness": 25, "colorTemperature":"warm","n":12345678901234567890}`), `"response":{"brightness":25,"colorTemperature":"warm","n":12345678901234567890}`, `{"brightness":25,"colorTemperature":"warm","n":12345678901234567890}`},
		{wire.Gemini{Model: "gemini-2.5-pro"}, gemini(`{"output":{"a":1.0}}`), `"response":{"output":{"a":1.0}}`, `{"output":{"a":1.0}}`},
		{wire.Gemini{Model: "gemini-2.5-pro"}, gemini(`{"error":{"code":7}}`), `"response":{"error":{"code":7}}`, `Error: {"error":{"code":7}}`},
		{wire.Gemini{Model: "gemini-2.5-pro"}, gemini(`{"output":"{\"a\":1}"}`), `"response":{"output":"{\"a\":1}"}`, `{"a":1}`},
		{wire.Gemini{Model: "gemini-2.5-pro"}, gemini(`{"return_value":"Paris"}`), `"response":{"return_value":"Paris"}`, `{"return_value":"Paris"}`},
		{wire.Gemini{Model: "gemini-2.5-pro"}, gemini(`{}`), `"response":{}`, ``},
		{wire.Gemini{Model: "gemini-2.5-pro"}, gemini(`{"output":""}`), `"response":{"output":""}`, ``},
		{wire.Converse{}, converse(`{"json":{"a": 1.0}},{"text":"and"},{"json":{}}`), `"content":[{"json":{"a":1.0}},{"text":"and"},{"json":{}}]`, "{\"a\":1.0}\nand\n{}"},
		{wire.Converse{}, converse(`{"text":"{}"}`), `"content":[{"text":"{}"}]`, "{}"},
	} {
		in := mustDecode(t, tt.f, []byte(tt.body))
		assert.Empty(t, in.Lost)
		h, err := convo.Restore(convo.NewSnapshot(in.Messages), nil)
		require.NoError(t, err)
		r := mustEncode(t, tt.f, h.Snapshot())
		assert.Empty(t, tt.f.Check(r.Body()))
		assert.Contains(t, string(r.Messages[2]), tt.want)
		r = mustEncode(t, wire.OpenAIChat{}, h.Snapshot())
		var m struct{ Content string }
		require.NoError(t, json.Unmarshal(r.Messages[2], &m))
		assert.Equal(t, tt.elsewhere, m.Content)
	}

	object := convo.Opaque{Format: "gemini", JSON: `{"response":{}}`}
	block := convo.Opaque{Format: "converse", JSON: `{"json":{}}`}
	for _, tt := range []struct {
		parts            []convo.Part
		isError          bool
		gemini, converse string
	}{
		{[]convo.Part{convo.Text("[cleared]"), object, block}, false, `"response":{"output":"[cleared]"}`, `[{"text":"[cleared]"}]`},
		{[]convo.Part{convo.Text(`{"a":1`), object, block}, false, `"response":{"output":"{\"a\":1"}`, `[{"text":"{\"a\":1"}]`},
		{[]convo.Part{object, convo.Text(`{"a":1}`), block}, false, `"response":{"output":"{\"a\":1}"}`, `[{"json":{"a":1}}]`},
		{[]convo.Part{convo.Text(`{"a":1}`), object, convo.Text("b")}, false, `"response":{"output":"{\"a\":1}\nb"}`, `[{"text":"{\"a\":1}"},{"text":"b"}]`},
		{[]convo.Part{convo.Text("b"), convo.Text(`{"a":1}`), object, block}, false, `"response":{"output":"b\n{\"a\":1}"}`, `[{"text":"b"},{"json":{"a":1}}]`},
		{[]convo.Part{convo.Text(`{"a":1}`), object}, true, `"response":{"error":"{\"a\":1}"}`, `[{"text":"{\"a\":1}"}],"status":"error"`},
		{[]convo.Part{object, block}, true, `"response":{"error":""}`, `[{"text":"[No error message.]"}],"status":"error"`},
		{[]convo.Part{convo.Text(`{"a":1}`), convo.Opaque{Format: "converse", JSON: `{"json":{"b":2}}`}}, false, `"response":{"output":"{\"a\":1}"}`, `[{"text":"{\"a\":1}"},{"json":{"b":2}}]`},
	} {
		call := convo.ToolCall{ID: "a", Name: "f"}
		s := convo.NewSnapshot([]convo.Message{convo.User("q"), convo.Assistant("", call), results(convo.ToolResult{CallID: "a", Name: "f", Parts: tt.parts, IsError: tt.isError})})
		r := mustEncode(t, wire.Gemini{}, s)
		assert.Contains(t, string(r.Messages[2]), tt.gemini)
		r = mustEncode(t, wire.Converse{}, s)
		assert.Contains(t, string(r.Messages[2]), `"content":`+tt.converse)
		assert.Empty(t, wire.Converse{}.Check(r.Body()))
	}
}

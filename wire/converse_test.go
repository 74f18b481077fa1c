package wire_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

func converseResult(id string, isError bool, parts ...convo.Part) convo.Part {
	return convo.ToolResult{CallID: id, Name: "f", Parts: parts, IsError: isError}
}

func TestConverse_EncodeWritesWhatTheAPIAccepts(t *testing.T) {
	own := convo.Origin{Format: "converse", Model: "m1"}
	assistant := func(parts ...convo.Part) convo.Message {
		return convo.Message{Role: convo.RoleAssistant, Origin: own, Parts: parts}
	}
	tool := func(parts ...convo.Part) convo.Message { return convo.Message{Role: convo.RoleTool, Parts: parts} }
	opaque := func(s string) convo.Part { return convo.Opaque{Format: "converse", JSON: s} }
	call := convo.ToolCall{ID: "c1", Name: "f", Arguments: `{"n": 1.0, "big":12345678901234567890}`}
	wireCall := `{"toolUse":{"toolUseId":"c1","name":"f","input":{"n": 1.0, "big":12345678901234567890}}}`
	const (
		earlier = `{"role":"user","content":[{"text":"[The earlier part of this conversation is not shown.]"}]}`
		hi      = `{"role":"user","content":[{"text":"Hi"}]}`
		answer  = `{"role":"assistant","content":[{"text":"Yes?"}]}`
		goOn    = `{"role":"user","content":[{"text":"[Continue.]"}]}`
		result  = `{"role":"user","content":[{"toolResult":{"toolUseId":"c1","content":[{"text":"r"}]}}]}`
	)
	png := convo.NewMedia("image/png", []byte("x"))
	pdf := convo.NewMedia("application/pdf", []byte("x"))
	for _, tt := range []struct {
		name       string
		f          wire.Converse
		msgs       []convo.Message
		system     string
		want       []string
		needsTools bool
		noThinking bool
	}{
		{name: "system texts are one array", msgs: []convo.Message{convo.System("a"), convo.System("b"), convo.User("Hi")},
			system: `[{"text":"a"},{"text":"b"}]`, want: []string{hi}},
		{name: "only system", msgs: []convo.Message{convo.System("a")}, system: `[{"text":"a"}]`, want: []string{earlier}},
		{name: "assistant first and last", msgs: []convo.Message{convo.Assistant("Yes?")}, want: []string{earlier, answer, goOn}},
		{name: "neighbours are merged", msgs: []convo.Message{convo.User("a"), convo.User("\n"), convo.User("b"), convo.Assistant("c"), convo.Assistant("d"), convo.User("Hi")},
			want: []string{`{"role":"user","content":[{"text":"a"},{"text":"b"}]}`, `{"role":"assistant","content":[{"text":"c"},{"text":"d"}]}`, hi}},
		{name: "results stand in one message, in call order, and text after them",
			msgs: []convo.Message{convo.User("Hi"), assistant(call, convo.Text("wait"), convo.ToolCall{ID: "c2", Name: "odd name"}),
				tool(converseResult("c2", true), converseResult("c1", false)), convo.User("So?")},
			want: []string{hi, `{"role":"assistant","content":[{"text":"wait"},` + wireCall + `,{"toolUse":{"toolUseId":"c2","name":"odd_20name_xef5bac77","input":{}}}]}`,
				`{"role":"user","content":[{"toolResult":{"toolUseId":"c1","content":[]}},{"toolResult":{"toolUseId":"c2","content":[{"text":"[No error message.]"}],"status":"error"}},{"text":"So?"}]}`},
			needsTools: true},
		{name: "results alone", f: wire.Converse{ResultsAlone: true},
			msgs:       []convo.Message{convo.User("Hi"), assistant(call), tool(converseResult("c1", false, convo.Text("r"))), convo.User("So?")},
			want:       []string{hi, `{"role":"assistant","content":[` + wireCall + `]}`, result, `{"role":"assistant","content":[{"text":"[No answer.]"}]}`, `{"role":"user","content":[{"text":"So?"}]}`},
			needsTools: true},
		{name: "an open call is answered", msgs: []convo.Message{convo.User("Hi"), assistant(call)},
			want: []string{hi, `{"role":"assistant","content":[` + wireCall + `]}`,
				`{"role":"user","content":[{"toolResult":{"toolUseId":"c1","content":[{"text":"no result"}],"status":"error"}}]}`},
			needsTools: true},
		{name: "ids", msgs: []convo.Message{convo.User("Hi"), assistant(convo.ToolCall{ID: "a b", Name: "f"}), tool(converseResult("a b", false, convo.Text("r"))), assistant(convo.ToolCall{ID: "a b", Name: "f"}), tool(converseResult("a b", false))},
			want: []string{hi, `{"role":"assistant","content":[{"toolUse":{"toolUseId":"tooluse_A","name":"f","input":{}}}]}`,
				`{"role":"user","content":[{"toolResult":{"toolUseId":"tooluse_A","content":[{"text":"r"}]}}]}`,
				`{"role":"assistant","content":[{"toolUse":{"toolUseId":"tooluse_B","name":"f","input":{}}}]}`,
				`{"role":"user","content":[{"toolResult":{"toolUseId":"tooluse_B","content":[]}}]}`},
			needsTools: true},
		{name: "own reasoning", f: wire.Converse{Model: "m1"},
			msgs: []convo.Message{convo.User("Hi"), assistant(convo.Reasoning{Text: "hm", Signature: "sig"}, convo.Reasoning{Encrypted: "ZW5j"}, convo.Reasoning{Text: "unsigned"}, call), tool(converseResult("c1", false, convo.Text("r")))},
			want: []string{hi, `{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hm","signature":"sig"}}},{"reasoningContent":{"redactedContent":"ZW5j"}},` + wireCall + `]}`, result},

			needsTools: true},
		{name: "reasoning of another model", f: wire.Converse{Model: "m2"},
			msgs:       []convo.Message{convo.User("Hi"), assistant(convo.Reasoning{Text: "hm", Signature: "sig"}, call), tool(converseResult("c1", false, convo.Text("r")))},
			want:       []string{hi, `{"role":"assistant","content":[` + wireCall + `]}`, result},
			needsTools: true, noThinking: true},
		{name: "reasoning without a signature",
			msgs: []convo.Message{convo.User("Hi"), assistant(convo.Reasoning{Text: "hm"}, call), tool(converseResult("c1", false, convo.Text("r"))), convo.User("So?")},
			want: []string{hi, `{"role":"assistant","content":[` + wireCall + `]}`,
				`{"role":"user","content":[{"toolResult":{"toolUseId":"c1","content":[{"text":"r"}]}},{"text":"So?"}]}`},
			needsTools: true, noThinking: true},
		{name: "reasoning that nothing follows", msgs: []convo.Message{convo.User("Hi"), assistant(convo.Reasoning{Text: "hm", Signature: "sig"}), convo.User("Hi")},
			want: []string{`{"role":"user","content":[{"text":"Hi"},{"text":"Hi"}]}`}},
		{name: "media", msgs: []convo.Message{convo.User("Hi", png, pdf, pdf, convo.Media{MIME: "audio/wav", Data: "eA=="}, convo.Media{URL: "https://x.org/a.png"},
			convo.Media{MIME: "video/mp4", URL: "s3://b/k"}, convo.Media{MIME: "text/x-go; charset=utf-8", Data: "eA=="}), convo.Assistant("Yes?"), convo.User("", pdf)},
			want: []string{`{"role":"user","content":[{"text":"Hi"},{"image":{"format":"png","source":{"bytes":"eA=="}}},` +
				`{"document":{"format":"pdf","name":"document-A","source":{"bytes":"eA=="}}},{"document":{"format":"pdf","name":"document-B","source":{"bytes":"eA=="}}},` +
				`{"text":"[audio/wav, not shown]"},{"text":"[a file at https://x.org/a.png]"},{"video":{"format":"mp4","source":{"s3Location":{"uri":"s3://b/k"}}}},` +
				`{"document":{"format":"txt","name":"document-C","source":{"bytes":"eA=="}}}]}`,
				answer, `{"role":"user","content":[{"text":"[Document]"},{"document":{"format":"pdf","name":"document-D","source":{"bytes":"eA=="}}}]}`}},
		{name: "media of results and of the assistant",
			msgs: []convo.Message{convo.User("Hi"), assistant(png, call), tool(converseResult("c1", true, png, pdf))},
			want: []string{hi, `{"role":"assistant","content":[{"text":"[image/png, not shown]"},` + wireCall + `]}`,
				`{"role":"user","content":[{"toolResult":{"toolUseId":"c1","content":[{"image":{"format":"png","source":{"bytes":"eA=="}}},{"document":{"format":"pdf","name":"document-A","source":{"bytes":"eA=="}}}],"status":"error"}}]}`},
			needsTools: true},
		{name: "opaque blocks", msgs: []convo.Message{convo.User("Hi", opaque(`{"guardContent": {}}`), convo.Opaque{Format: "anthropic", JSON: `{}`}),
			assistant(opaque(`{"toolUse":{"toolUseId":"s","type":"server_tool_use","name":"x","input":{}}}`), opaque(`{"toolResult":{"toolUseId":"s","content":[]}}`), convo.Text("Yes?")), convo.User("Hi")},
			want: []string{`{"role":"user","content":[{"text":"Hi"},{"guardContent": {}}]}`,
				`{"role":"assistant","content":[{"toolUse":{"toolUseId":"s","type":"server_tool_use","name":"x","input":{}}},{"toolResult":{"toolUseId":"s","content":[]}},{"text":"Yes?"}]}`, hi},
			needsTools: true},
		{name: "opaque documents keep their names where they can",
			msgs: []convo.Message{convo.User("", opaque(`{"document":{"name":"A","source":{}}}`), opaque(`{"document":{"source":{"text": "x"},"name":"A"}}`), opaque(`{"document":{"name":"a.txt","source":{}}}`))},
			want: []string{`{"role":"user","content":[{"text":"[Document]"},{"document":{"name":"A","source":{}}},{"document":{"name":"document-A","source":{"text":"x"}}},{"document":{"name":"document-B","source":{}}}]}`}},
		{name: "cache", f: wire.Converse{Cache: true},
			msgs:   []convo.Message{convo.System("a"), convo.User("Hi"), convo.Assistant("Yes?"), convo.User("Hi"), convo.Assistant("Yes?"), convo.User("This:", png), convo.Assistant("Yes?")},
			system: `[{"text":"a"},{"cachePoint":{"type":"default"}}]`,
			want: []string{hi, answer, `{"role":"user","content":[{"text":"Hi"},{"cachePoint":{"type":"default"}}]}`, answer,
				`{"role":"user","content":[{"text":"This:"},{"cachePoint":{"type":"default"}},{"image":{"format":"png","source":{"bytes":"eA=="}}}]}`, answer, goOn}},
		{name: "cache behind results", f: wire.Converse{Cache: true}, msgs: []convo.Message{convo.User("", png), assistant(call), tool(converseResult("c1", false)), convo.User("So?")},
			want: []string{`{"role":"user","content":[{"image":{"format":"png","source":{"bytes":"eA=="}}}]}`, `{"role":"assistant","content":[` + wireCall + `]}`,
				`{"role":"user","content":[{"toolResult":{"toolUseId":"c1","content":[]}},{"text":"So?"},{"cachePoint":{"type":"default"}}]}`},
			needsTools: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := asSent(tt.msgs)
			r := mustEncode(t, tt.f, s)
			got := make([]string, len(r.Messages))
			for i, m := range r.Messages {
				got[i] = string(m)
			}
			assert.Equal(t, strings.Join(tt.want, "\n"), madeNames(strings.Join(got, "\n")))
			assert.Equal(t, tt.system, string(r.System))
			assert.Equal(t, tt.needsTools, r.NeedsTools, "NeedsTools")
			assert.Equal(t, tt.noThinking, r.NoThinking, "NoThinking")
			assert.Empty(t, faults(tt.f, r.Body()))
			again := mustEncode(t, tt.f, s)
			assert.Equal(t, r.Body(), again.Body())
		})
	}
	for _, msgs := range [][]convo.Message{nil, {convo.User(" ")}, {assistant(convo.Reasoning{Text: "x", Signature: "y"})}} {
		_, err := wire.Converse{}.Encode(asSent(msgs))
		require.ErrorIs(t, err, wire.ErrEmpty)
	}
}

// madeNames replaces names that were derived from a hash by letters, in order.
func madeNames(s string) string {
	letters := map[string]string{}
	pattern := regexp.MustCompile(`(tooluse_|document-)\w{8,}`)
	return pattern.ReplaceAllStringFunc(s, func(name string) string {
		if letters[name] == "" {
			letters[name] = pattern.FindStringSubmatch(name)[1] + string(rune('A'+len(letters)))
		}
		return letters[name]
	})
}

// NoThinking is set if an edit dropped the first answer of the current turn, and with it
// the reasoning that Claude needs back.
func TestConverse_EncodeReportsLostThinking(t *testing.T) {
	h := historyOf(t)
	own := convo.Origin{Format: "converse"}
	first, second := convo.ToolCall{ID: "c1", Name: "f"}, convo.ToolCall{ID: "c2", Name: "f"}
	for _, m := range []convo.Message{convo.User("Hi"),
		{Role: convo.RoleAssistant, Origin: own, Parts: []convo.Part{convo.Reasoning{Text: "hm", Signature: "sig"}, first}}, convo.Result(first, "r"),
		{Role: convo.RoleAssistant, Origin: own, Parts: []convo.Part{second}}, convo.Result(second, "r")} {
		mustAppend(t, h, m)
	}
	s := h.Snapshot()
	r := mustEncode(t, wire.Converse{}, s)
	assert.False(t, r.NoThinking)
	_, err := h.Apply(s, convo.Edit{Drop: []convo.ID{2, 3}})
	require.NoError(t, err)
	r = mustEncode(t, wire.Converse{}, h.Snapshot())
	assert.True(t, r.NoThinking)
}

// Roles, texts, calls, results and own reasoning are the same after Encode and
// Decode.
func TestConverse_DecodeReturnsWhatWasEncoded(t *testing.T) {
	msgs := []convo.Message{
		convo.System("a"),
		convo.User("Hi", convo.NewMedia("image/png", []byte("x"))),
		{Role: convo.RoleAssistant, Origin: convo.Origin{Format: "converse", Model: "m"}, Parts: []convo.Part{
			convo.Reasoning{Text: "hm\n", Signature: "sig"}, convo.Reasoning{Encrypted: "ZW5j"}, convo.Text("Wait."),
			convo.ToolCall{ID: "c1", Name: "f", Arguments: `{"n": 1.0}`}, convo.ToolCall{ID: "c2", Name: "g", Arguments: "{}"}}},
		{Role: convo.RoleTool, Parts: []convo.Part{
			convo.ToolResult{CallID: "c1", Name: "f", Parts: []convo.Part{convo.Text("r"), convo.NewMedia("application/pdf", []byte("x"))}},
			convo.ToolResult{CallID: "c2", Name: "g", Parts: []convo.Part{convo.Text("no")}, IsError: true}}},
		convo.User("So?", convo.Opaque{Format: "converse", JSON: `{"guardContent":{}}`}),
	}
	r := mustEncode(t, wire.Converse{Model: "m"}, asSent(msgs))
	in := mustDecode(t, wire.Converse{Model: "m"}, r.Body())
	assert.Equal(t, msgs, in.Messages)
}

func TestConverse_DecodeReadsRequestsResponsesAndErrors(t *testing.T) {
	in, err := wire.Converse{Model: "m1"}.Decode([]byte(`{"output":{"message":{"role":"assistant","content":[
		{"reasoningContent":{"reasoningText":{"text":"hm","signature":"sig"}}},{"text":"Hm."},{"citationsContent": {"content": []}},
		{"image":{"format":"png","source":{"bytes":"eA=="}}},
		{"toolUse":{"toolUseId":"s","name":"x","input":{}}},{"toolResult":{"toolUseId":"s","content":[{"json":{}}]}},
		{"toolUse":{"toolUseId":"c1","name":"f","input":{"n":1.0}}},{"toolUse":{"toolUseId":"c2","name":"g","input":"oops","extra":1}}]}},
		"stopReason":"tool_use","usage":{"inputTokens":10,"outputTokens":7,"totalTokens":117,"cacheReadInputTokens":60,"cacheWriteInputTokens":40},"metrics":{"latencyMs":1}}`))
	require.NoError(t, err)
	assert.Equal(t, convo.Usage{Input: 110, CacheRead: 60, CacheWrite: 40, Output: 7}, in.Usage)
	opaque := func(s string) convo.Part { return convo.Opaque{Format: "converse", JSON: s} }
	assert.Equal(t, []convo.Message{{Role: convo.RoleAssistant, Origin: convo.Origin{Format: "converse", Model: "m1"}, Parts: []convo.Part{
		convo.Reasoning{Text: "hm", Signature: "sig"}, convo.Text("Hm."), opaque(`{"citationsContent":{"content":[]}}`),
		opaque(`{"image":{"format":"png","source":{"bytes":"eA=="}}}`),
		opaque(`{"toolUse":{"toolUseId":"s","name":"x","input":{}}}`), opaque(`{"toolResult":{"toolUseId":"s","content":[{"json":{}}]}}`),
		convo.ToolCall{ID: "c1", Name: "f", Arguments: `{"n":1.0}`}, convo.ToolCall{ID: "c2", Name: "g", Arguments: `"oops"`}}}}, in.Messages)
	assert.Equal(t, []wire.Loss{
		{Path: "output.message.content[7].toolUse.extra", What: "no place for this field"},
	}, in.Lost)

	in, err = wire.Converse{}.Decode([]byte(`{"modelId":"m2","system":[{"text":"a"},{"cachePoint":{"type":"default"}},{"guardContent":{}}],"messages":[
		{"role":"assistant","content":[{"toolUse":{"toolUseId":"c","name":"f","input":{}}}]},
		{"role":"user","content":[{"text":""},{"text":"b"},{"toolResult":{"toolUseId":"c","status":"error","content":[{"json":{"n": 1.0}},{"text":"x"},
			{"document":{"name":"D","format":"md","source":{"bytes":"eA=="}}},{"video":{"format":"new","source":{"bytes":"eA=="}}}]}},
			{"document":{"name":"E","format":"txt","source":{"bytes":"eA=="},"citations":{"enabled":true}}},{"image":{"format":"png","source":{"bytes":"!"}}},
			{"video":{"format":"mp4","source":{"s3Location":{"uri":"s3://b/k"}}}},{"image":{"format":"png","source":{"s3Location":{"uri":"s3://b/k","bucketOwner":"1"}}}}]}]}`))
	require.NoError(t, err)
	assert.Equal(t, []convo.Message{
		{Role: convo.RoleSystem, Parts: []convo.Part{convo.Text("a"), wire.CacheMark(0), opaque(`{"guardContent":{}}`)}},
		{Role: convo.RoleAssistant, Origin: convo.Origin{Format: "converse", Model: "m2"}, Parts: []convo.Part{convo.ToolCall{ID: "c", Name: "f", Arguments: "{}"}}},
		{Role: convo.RoleTool, Parts: []convo.Part{converseResult("c", true, convo.Text(`{"n":1.0}`), opaque(`{"json":{}}`), convo.Text("x"),
			convo.Media{MIME: "text/markdown", Data: "eA=="}, opaque(`{"video":{"format":"new","source":{"bytes":"eA=="}}}`))}},
		{Role: convo.RoleUser, Parts: []convo.Part{convo.Text("b"),
			opaque(`{"document":{"name":"E","format":"txt","source":{"bytes":"eA=="},"citations":{"enabled":true}}}`), opaque(`{"image":{"format":"png","source":{"bytes":"!"}}}`),
			convo.Media{MIME: "video/mp4", URL: "s3://b/k"}, opaque(`{"image":{"format":"png","source":{"s3Location":{"uri":"s3://b/k","bucketOwner":"1"}}}}`)}},
	}, in.Messages)
	assert.Equal(t, []wire.Loss{
		{Path: "messages[1].content[2].toolResult.content[2].document.name", What: "the name of a document"},
	}, in.Lost)

	for input, want := range map[string]string{
		``:                            "wire: not JSON: unexpected end of JSON input",
		`null`:                        "wire: want a JSON object, got null",
		`{}`:                          "wire: not a request, response or message",
		`{"messages":7}`:              "wire: messages: want an array of messages",
		`[7]`:                         "wire: [0]: want a JSON object",
		`{"role":"tool"}`:             `wire: role: unknown role "tool"`,
		`{"role":"user","content":7}`: "wire: content: want an array of blocks",
		`{"role":"user","content":[{"text":"a","image":{}}]}`:                            "wire: content[0]: want a block, which is an object with one field",
		`{"role":"user","content":[{"text":7}]}`:                                         "wire: content[0].text: want a string",
		`{"role":"user","content":[{"toolUse":{}}]}`:                                     "wire: content[0]: a toolUse block must be in an assistant message",
		`{"role":"assistant","content":[{"toolUse":{}}]}`:                                "wire: content[0].toolUse: the call has no name",
		`{"role":"assistant","content":[{"toolUse":{"name":7}}]}`:                        "wire: content[0].toolUse.name: want a string",
		`{"role":"assistant","content":[{"toolResult":{"toolUseId":"a"}}]}`:              "wire: content[0]: the result is in an assistant message that does not hold its call",
		`{"role":"assistant","content":[{"reasoningContent":{"reasoningText":7}}]}`:      "wire: content[0].reasoningContent.reasoningText: want a JSON object",
		`{"system":[7],"messages":[]}`:                                                   "wire: system[0]: want a JSON object",
		`{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"a":1,`:    "wire: at byte 75: not JSON",
		`{"role":"user","content":[{"toolResult":{"toolUseId":7,"content":[{"a":1}]}}]}`: "wire: content[0].toolResult.toolUseId: want a string",
	} {
		err := decodeError(t, wire.Converse{}, input)
		assert.True(t, strings.HasPrefix(err.Error(), want), "%s: %v", input, err)
	}
}

// Unusual but valid requests, and rules that no recording breaks.
func TestConverse_CheckFindsEachRuleAndNoOther(t *testing.T) {
	const (
		user   = `{"role":"user","content":[{"text":"a"}]}`
		calls  = `{"role":"assistant","content":[{"toolUse":{"toolUseId":"c1","name":"f","input":{}}},{"toolUse":{"toolUseId":"c2","name":"f","input":{}}}]}`
		result = `{"toolResult":{"toolUseId":"c2","content":[{"text":" "}]}},{"toolResult":{"toolUseId":"c1","content":[],"status":"success"}}`
		both   = `{"role":"user","content":[` + result + `,{"text":"b"},{"cachePoint":{"type":"default"}}]}`
	)
	messages := func(m ...string) string { return `{"messages":[` + strings.Join(m, ",") + `]}` }
	for _, tt := range []struct {
		f    wire.Converse
		body string
		want []string
	}{
		{body: messages(user)},
		{body: messages(user, calls, both)},
		{body: messages(user, calls, both, `{"role":"assistant","content":[{"text":"c"}]}`, user, calls, both)}, // ids repeat in another turn
		{body: `{"modelId":"m","toolConfig":{},` + messages(user, calls, both)[1:]},
		{body: `{"modelId":"m",` + messages(user, calls, both)[1:], want: []string{"tool-config"}},
		{body: `{"system":null,"inferenceConfig":null,` + messages(user, calls, both)[1:]},
		{f: wire.Converse{ResultsAlone: true}, body: messages(user, calls, `{"role":"user","content":[`+result+`]}`)},
		{f: wire.Converse{ResultsAlone: true}, body: messages(user, calls, both), want: []string{"results-alone"}},
		{body: messages(user, calls), want: []string{"unanswered-call", "unanswered-call"}},
		{body: messages(user, calls, user, both), want: []string{"unanswered-call", "unanswered-call", "alternation", "orphan-result", "orphan-result"}},
		{body: messages(user, `{"role":"assistant","content":[{"toolUse":{"toolUseId":"s","name":"x","input":{},"type":"server_tool_use"}},{"text":"c"}]}`, user), want: []string{"unanswered-server-call"}},
		{body: messages(user, `{"role":"assistant","content":[{"toolUse":{"toolUseId":"s","name":"x","input":{},"type":"server_tool_use"}},{"toolResult":{"toolUseId":"s","content":[]}},{"text":"c"}]}`, user)},
		{body: messages(user, `{"role":"assistant","content":[{"toolResult":{"toolUseId":"s","content":[]}},{"text":"c"}]}`, user), want: []string{"block-role"}},
		{body: messages(`{"role":"user","content":[{"image":{"format":"new"}},{"somethingNew":7}]}`)},
		{body: messages(`{"role":"user","content":[{"text":7},{"document":7},{"document":{"name":7}},{"toolResult":7},{"text":"a"}]}`), want: []string{"shape", "shape", "shape", "shape", "results-first"}},
		{body: messages(`{"role":"user","content":[{"toolResult":{"content":7}}]}`), want: []string{"orphan-result", "shape"}},
		{body: messages(user, `{"role":"assistant","content":[{"toolUse":7},{"reasoningContent":7},{"reasoningContent":{"reasoningText":7}},
			{"reasoningContent":{"reasoningText":{"signature":"s"},"redactedContent":""}},{"reasoningContent":{"new":7}}]}`, user), want: []string{"shape", "shape", "shape", "shape"}},
		{body: messages(user, strings.Replace(calls, `"f"`, `"a.b"`, 1), `{"role":"user","content":[{"toolResult":{"toolUseId":"c1","content":[{"text":7}]}},{"toolResult":{"toolUseId":"c2","content":[{"json":"{}"}]}}]}`),
			want: []string{"name-pattern", "shape", "result-json"}},
		{body: `{}`, want: []string{"shape"}},
		{body: `[]`, want: []string{"json"}},
		{body: `{"messages":[7]}`, want: []string{"shape", "role", "content-empty"}},
	} {
		rules := rulesOf(tt.f.Check([]byte(tt.body)))
		assert.Equal(t, tt.want, rules, tt.body)
	}
}

func FuzzConverse_Decode(f *testing.F) {
	f.Add([]byte(`{"system":[{"text":"a"}],"messages":[{"role":"user","content":[{"text":"b"},{"image":{"format":"png","source":{"bytes":"eA=="}}},{"document":{"name":"D","format":"txt","source":{"text":"x"}}}]},{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"c","signature":"d"}}},{"toolUse":{"toolUseId":"e","name":"f","input":{}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"e","content":[{"json":{}}],"status":"error"}}]}]}`))
	f.Add([]byte(`{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"s","name":"x","type":"server_tool_use"}},{"toolResult":{"toolUseId":"s","content":[]}},{"text":"a"}]}},"usage":{"inputTokens":1}}`))
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"text":"q"}]},{"role":"assistant","content":[{"reasoningContent":{"redactedContent":"eA=="}},{"toolUse":{"toolUseId":"s","name":"x","input":{},"type":"server_tool_use"}},{"toolUse":{"toolUseId":"c","name":"x","input":{}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"c","content":[]}}]}]}`))
	f.Add([]byte(`[{"role":"assistant","content":[{"reasoningContent":{"redactedContent":"eA=="}},{"document":{"name":"D"}}]},{"role":"user","content":[{"document":{"name":"D"}},{"cachePoint":{}}]}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, format := range []wire.Converse{{}, {ResultsAlone: true, Cache: true}} {
			checkDecoded(t, format, data)
		}
	})
}

func FuzzConverse_Check(f *testing.F) {
	f.Add([]byte(`{"modelId":"m","messages":[{"role":"user","content":[{"toolResult":{"toolUseId":7,"content":[{"json":7}]}},{"document":7}]},{"role":"assistant","content":[{"toolUse":7},{"reasoningContent":{"reasoningText":7}}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) { checkFindings(t, wire.Converse{ResultsAlone: true}, data) })
}

// Blocks that Bedrock would refuse in their place are left out and listed in Lost: Check
// and Decode find nothing in the request.
func TestConverse_BlocksThatAreLeftOut(t *testing.T) {
	const use, result = `{"toolUse":{"toolUseId":"s","name":"n","input":{}}}`, `{"toolResult":{"toolUseId":"s","content":[]}}`
	const thought = `{"reasoningContent":{"redactedContent":"ZW5j"}}`
	block := func(list ...string) (parts []convo.Part) {
		for _, raw := range list {
			parts = append(parts, convo.Opaque{Format: wire.FormatConverse, JSON: raw})
		}
		return append(parts, convo.Text("a"))
	}
	for _, tt := range []struct {
		name   string
		role   convo.Role
		blocks []string
		lost   []int
	}{
		{"a call of the user", convo.RoleUser, []string{use}, []int{0}},
		{"a result of the user", convo.RoleUser, []string{result}, []int{0}},
		{"both of the system", convo.RoleSystem, []string{use, result}, []int{0, 1}},
		{"both in a result", convo.RoleTool, []string{use, result}, []int{0, 1}},
		{"both", convo.RoleAssistant, []string{use, result}, nil},
		{"a call", convo.RoleAssistant, []string{use}, []int{0}},
		{"a call of a tool of the provider", convo.RoleAssistant, []string{`{"toolUse":{"toolUseId":"s","name":"n","input":{},"type":"server_tool_use"}}`}, []int{0}},
		{"a call of a tool of the provider before reasoning", convo.RoleAssistant, []string{`{"toolUse":{"toolUseId":"s","name":"n","input":{},"type":"server_tool_use"}}`, thought}, []int{0, 1}},
		{"both of a tool of the provider", convo.RoleAssistant, []string{`{"toolUse":{"toolUseId":"s","name":"n","input":{},"type":"server_tool_use"}}`, `{"toolResult":{"toolUseId":"s","content":[]}}`}, nil},
		{"a type that is no string", convo.RoleAssistant, []string{`{"toolUse":{"toolUseId":"s","name":"n","input":{},"type":7}}`}, []int{0}},
		{"a result", convo.RoleAssistant, []string{result}, []int{0}},
		{"a result first", convo.RoleAssistant, []string{result, use}, []int{0, 1}},
		{"two calls", convo.RoleAssistant, []string{use, use, result}, []int{0}},
		{"two results", convo.RoleAssistant, []string{use, result, result}, []int{2}},
		{"no id", convo.RoleAssistant, []string{`{"toolUse":{"name":"n"}}`, `{"toolResult":{"toolUseId":7}}`}, []int{0, 1}},
		{"reasoning", convo.RoleAssistant, []string{thought}, nil},
		{"reasoning without signature", convo.RoleAssistant, []string{`{"reasoningContent":{"reasoningText":{"text":"hm"}}}`}, []int{0}},
		{"null and others", convo.RoleUser, []string{`{"citationsContent":null}`, `{"cachePoint":null}`, `{"image":7}`, `{}`, `{"text":"a","image":null}`, `{"text":7}`}, []int{0, 1, 2, 3, 4, 5}},
		{"null and others", convo.RoleAssistant, []string{`{"citationsContent":null}`, `{"citationsContent":7}`, `{"cachePoint":null}`, `{"document":7}`}, []int{0, 1, 2, 3}},
		{"null and others", convo.RoleTool, []string{`{"json":null}`, `{"json":7}`, `{"document":null}`}, []int{0, 1, 2}},
	} {
		m := convo.Message{Role: tt.role, Parts: block(tt.blocks...)}
		msgs := []convo.Message{convo.User("q"), m, convo.User("z")}
		if tt.role == convo.RoleTool {
			call := convo.ToolCall{ID: "c1", Name: "f", Arguments: "{}"}
			m = convo.Message{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{CallID: "c1", Name: "f", Parts: m.Parts}}}
			msgs = []convo.Message{convo.User("q"), convo.Assistant("", call), m}
		}
		f := wire.Converse{}
		r := mustEncode(t, f, asSent(msgs))
		assert.Empty(t, f.Check(r.Body()), "%s: %s", tt.name, r.Body())
		_, err := f.Decode(r.Body())
		assert.NoError(t, err, tt.name)
		var lost []int
		for _, l := range r.Lost {
			assert.Equal(t, "block", l.What, tt.name)
			lost = append(lost, max(l.Inside, 0)+l.Part)
		}
		assert.Equal(t, tt.lost, lost, "%s: %s", tt.name, r.Body())
	}

	last := convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{convo.Text("a"), convo.Opaque{Format: wire.FormatConverse, JSON: thought}}}
	r := mustEncode(t, wire.Converse{}, asSent([]convo.Message{convo.User("q"), last, convo.User("z")}))
	assert.Empty(t, wire.Converse{}.Check(r.Body()))
	assert.Len(t, r.Lost, 1, "reasoning at the end")
}

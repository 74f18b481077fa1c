package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	judge "github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// A cutJudge is a provider that judges the requests of conversations whose answers were cut
// off.
type cutJudge struct {
	t      *testing.T
	f      wire.Format
	path   string // of the provider's API; empty: Converse, which the Server does not have
	params map[string]any
	mend   func(body []byte) []byte                 // makes signatures of others readable; may be nil
	alone  func(t testing.TB, body []byte) []string // returns what lacks its counterpart; may be nil
	all    bool                                     // after each event that changes the parts, go on in all ways even in the short form
	server *judge.Server
	posted int
}

func newCutJudge(t *testing.T, f wire.Format) *cutJudge {
	j := &cutJudge{t: t, f: f, server: judge.New(judge.Options{})}
	switch f := f.(type) {
	case wire.Anthropic:
		j.alone = unservedBlocks
		j.path, j.params = "/v1/messages", map[string]any{"model": f.Model, "max_tokens": 99, "tools": []any{map[string]any{"name": "get_weather", "input_schema": map[string]any{"type": "object"}}}}
	case wire.OpenAIResponses:
		j.path, j.params = "/v1/responses", map[string]any{"model": "gpt-5.6", "store": false, "include": []string{"reasoning.encrypted_content"}}
	case wire.Gemini:
		j.path = "/v1beta/models/gemini-3-pro:generateContent"
	case wire.Converse:
		j.alone = unservedConverse
		j.params = map[string]any{"modelId": f.Model}
	default:
		t.Fatalf("no provider for %T", f)
	}
	return j
}

// post sends a request and returns the answer.
func (j *cutJudge) post(path string, body []byte) string {
	w := httptest.NewRecorder()
	j.server.ServeHTTP(w, httptest.NewRequestWithContext(j.t.Context(), http.MethodPost, path, bytes.NewReader(body)))
	return w.Body.String()
}

// body returns a request as it is sent.
func (j *cutJudge) body(s *convo.Snapshot, more map[string]any) []byte {
	req, err := j.f.Encode(s)
	require.NoError(j.t, err)
	params := map[string]any{}
	for _, fields := range []map[string]any{j.params, more} {
		maps.Copy(params, fields)
	}
	if len(req.Tools) > 0 {
		delete(params, "tools")
	}
	body, err := req.With(params)
	require.NoError(j.t, err)
	if j.mend != nil {
		body = j.mend(body)
	}
	return body
}

// accepts checks that the provider accepts a request with the conversation.
func (j *cutJudge) accepts(h *convo.History, at string) {
	body := j.body(h.Snapshot(), nil)
	j.posted++
	bad := fmt.Sprint(j.f.Check(body))
	if j.alone != nil {
		bad += fmt.Sprint(j.alone(j.t, body))
	}
	if j.path == "" {
		_, refused, err := judge.ConverseSeals.Check(body)
		require.NoError(j.t, err)
		bad += fmt.Sprint(refused)
	} else {
		j.post(j.path, body)
		all := j.server.Requests()
		bad += all[len(all)-1].Error
	}
	if strings.Trim(bad, "[]") != "" {
		j.t.Fatalf("%s: %s: %s", at, bad, body)
	}
}

// unservedConverse returns the ids of calls and results in messages of the assistant that
// Bedrock pairs and that are alone: a tool that the provider runs has both in one message,
// and another call has its result at the beginning of the next one.
func unservedConverse(t testing.TB, body []byte) (alone []string) {
	var request struct {
		Messages []struct {
			Role    string
			Content []struct {
				ToolUse    *struct{ ToolUseID, Type string }
				ToolResult *struct{ ToolUseID string }
			}
		}
	}
	require.NoError(t, json.Unmarshal(body, &request))
	for i, m := range request.Messages {
		served, own := map[string]bool{}, map[string]bool{}
		for _, b := range m.Content {
			switch {
			case m.Role != "assistant":
			case b.ToolUse != nil && b.ToolUse.Type == "server_tool_use":
				served[b.ToolUse.ToolUseID] = true
			case b.ToolUse != nil:
				own[b.ToolUse.ToolUseID] = true
			case b.ToolResult != nil && !served[b.ToolResult.ToolUseID]:
				alone = append(alone, b.ToolResult.ToolUseID)
			case b.ToolResult != nil:
				delete(served, b.ToolResult.ToolUseID)
			}
		}
		if i+1 < len(request.Messages) {
			for _, b := range request.Messages[i+1].Content {
				if b.ToolResult == nil {
					break
				}
				delete(own, b.ToolResult.ToolUseID)
			}
		}
		alone = slices.AppendSeq(slices.AppendSeq(alone, maps.Keys(served)), maps.Keys(own))
	}
	return alone
}

// goesOn checks that a conversation goes on after an answer, of which in has come: with a
// user message, or in each of some ways.
func (j *cutJudge) goesOn(start *convo.Snapshot, in []convo.Message, at string, ways ...string) {
	calls := in[len(in)-1].ToolCalls()
	for _, next := range ways {
		h, err := convo.Restore(start, &convo.Options{Roles: convo.Relaxed()})
		require.NoError(j.t, err)
		_, err = h.AppendReply(h.Snapshot(), convo.Reply{Messages: in})
		if _, ok := errors.AsType[*convo.AnswerError](err); !ok { // reasoning alone
			require.NoError(j.t, err)
		}
		if len(calls) == 0 {
			j.accepts(h, at)
		}
		for _, c := range calls {
			_, err := h.Append(convo.Result(c, "r"))
			require.NoError(j.t, err)
		}
		if len(calls) > 0 {
			j.accepts(h, at+", after the results")
		}
		switch next {
		case "note":
			_, err := h.Append(convo.System("be brief"))
			require.NoError(j.t, err)
			j.accepts(h, at+", after a note")
		case "answer":
			j.answer(h, judge.Thinking("why"), judge.Text("yes"))
			j.accepts(h, at+", after an answer")
		}
		_, err = h.Append(convo.User("go on"))
		require.NoError(j.t, err)
		j.accepts(h, at+", after the user, after "+next)
		if next == "user" {
			continue
		}
		j.answer(h, judge.Thinking("on"), judge.Text("well"))
		_, err = h.Append(convo.User("and on"))
		require.NoError(j.t, err)
		j.accepts(h, at+", a turn later, after "+next)
	}
}

// answer appends an answer of the provider.
func (j *cutJudge) answer(h *convo.History, blocks ...judge.Block) {
	at := h.Snapshot()
	s, _ := feed(j.t, j.f, j.streamed(at, blocks))
	in, err := s.Transcript()
	require.NoError(j.t, err)
	_, err = h.AppendReply(at, in.Reply())
	require.NoError(j.t, err)
}

// longer finds events that only make a text longer.
var longer = regexp.MustCompile(`"(text|thinking|input_json)_delta"|(text|arguments|code|input)\.delta"`)

// cutEverywhere feeds a stream event by event, and goes on after each. The short form does so
// after some of the events that only make a text longer, and in one way after each other.
func (j *cutJudge) cutEverywhere(start *convo.Snapshot, events []event) {
	s := j.f.(wire.Streamer).Stream()
	var before convo.Message
	changes := 0
	for i, e := range events {
		if !json.Valid([]byte(e.data)) {
			return // the recording is damaged
		}
		_, err := s.Event(e.name, []byte(e.data))
		require.NoError(j.t, err)
		if i%long.Or(128, 1) != 0 && longer.MatchString(e.data) {
			continue
		}
		in, _ := s.Transcript()
		if len(in.Messages) == 0 || slices.Equal(in.Messages[0].Parts, before.Parts) {
			continue
		}
		ways := []string{"user", "note", "answer"}
		if !long.On() && !j.all {
			changes++
			ways = ways[changes%3:][:1]
		}
		if sameKinds(before, in.Messages[0]) { // a text has become longer
			ways = ways[:1]
		}
		j.goesOn(start, in.Messages, fmt.Sprint("event ", i), ways...)
		before = in.Messages[0]
	}
}

// sameKinds reports whether two messages differ at most in the text of their parts.
func sameKinds(a, b convo.Message) bool {
	return slices.EqualFunc(a.Parts, b.Parts, func(p, q convo.Part) bool {
		switch p := p.(type) {
		case convo.Text:
			_, same := q.(convo.Text)
			return same
		case convo.Reasoning:
			r, same := q.(convo.Reasoning)
			return same && p.Signature == r.Signature && p.Encrypted == r.Encrypted
		}
		return p == q
	})
}

// signedByOthers are the fields of what another provider has signed or encrypted.
var signedByOthers = []string{`"encrypted_content":`, `"thoughtSignature":`}

// mended returns a function that makes encrypted reasoning of others readable for the
// provider.
func (j *cutJudge) mended() func([]byte) []byte {
	own := judge.New(judge.Options{})
	own.Script(judge.Answer{Blocks: []judge.Block{judge.Thinking("h")}})
	w := httptest.NewRecorder()
	own.ServeHTTP(w, httptest.NewRequestWithContext(j.t.Context(), http.MethodPost, "/v1/responses", strings.NewReader(`{"model":"gpt-5.6","input":"q","include":["reasoning.encrypted_content"]}`)))
	_, mine, ok := strings.Cut(w.Body.String(), signedByOthers[0])
	require.True(j.t, ok)
	mine, _, _ = strings.Cut(mine, ",")
	mine = strings.TrimSuffix(mine, "}")
	require.True(j.t, json.Valid([]byte(mine)), mine)
	return func(body []byte) []byte {
		for _, field := range signedByOthers {
			values := bytes.Split(body, []byte(field))
			for i, v := range values[1:] {
				if v = bytes.TrimPrefix(v, []byte(" ")); bytes.HasPrefix(v, []byte(`"`)) {
					values[i+1] = append([]byte(mine), v[bytes.IndexByte(v[1:], '"')+2:]...)
				}
			}
			body = bytes.Join(values, []byte(field))
		}
		return body
	}
}

// ledByReasoning returns the ids of the items of an answer that reasoning stands before, and
// those of the reasoning.
func ledByReasoning(events []event) map[string]string {
	led, before := map[string]string{}, ""
	for _, e := range events {
		var done struct {
			Type string
			Item struct{ ID, Type string }
		}
		if json.Unmarshal([]byte(e.data), &done) != nil || done.Type != "response.output_item.done" {
			continue
		}
		switch it := done.Item; it.Type {
		case "reasoning":
			before = it.ID
			continue
		case "message":
		default:
			led[it.ID] = before
		}
		before = ""
	}
	return led
}

// A provider refuses no request after a recorded answer with its own tools that was cut off
// at any event.
func TestCutAnswers_Recorded(t *testing.T) {
	for _, tt := range []struct {
		name, prefix, ends string
		format             wire.Format
		has                []string // one of these is in the events
	}{
		{"anthropic", "anthropic__", "anthropic", wire.Anthropic{Model: "claude-opus-5-5"}, []string{"_tool_use", "_tool_result"}},
		{"anthropic, the user last", "anthropic__", "anthropic", wire.Anthropic{Model: "claude-opus-4-8", UserLast: true}, []string{"_tool_use", "_tool_result"}},
		{"responses", "openai__responses", "responses", wire.OpenAIResponses{}, nil},
		{"responses of xai", "xai__responses", "responses", wire.OpenAIResponses{}, nil},
		{"gemini", "google__google-", "gemini", wire.Gemini{Model: "gemini-3-pro"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			posted, answers := 0, 0
			recordedEvents(t, tt.prefix, streamCases[tt.ends].ends, func(t *testing.T, events []event) {
				if tt.has != nil && !slices.ContainsFunc(events, func(e event) bool {
					return slices.ContainsFunc(tt.has, func(text string) bool { return strings.Contains(e.data, text) })
				}) {
					return
				}
				if answers++; answers%long.Or(2, 1) != 0 {
					return
				}
				j := newCutJudge(t, tt.format)
				j.mend = j.mended()
				if tt.ends == "responses" {
					led := ledByReasoning(events)
					j.alone = func(t testing.TB, body []byte) []string { return unservedItems(t, body, led) }
				}
				j.cutEverywhere(convo.NewSnapshot([]convo.Message{convo.User("hi")}), events)
				posted += j.posted
			})
			t.Logf("%d requests", posted)
			assert.Greater(t, posted, long.Or(20, 100))
		})
	}
}

// servedAnswers are answers with tools that the provider runs.
var servedAnswers = map[string]map[string][]judge.Block{
	judge.FormatAnthropic: {
		"web search": {judge.Thinking("hm"), judge.Text("I search."), judge.Served{Name: "web_search", Input: `{"query":"q"}`, Result: `[{"type":"web_search_result","url":"u","title":"t","encrypted_content":"e"}]`}, judge.Text("Found.")},
		"code execution": {judge.Thinking("hm"), judge.Served{Name: "bash_code_execution", Input: `{"command":"ls"}`, Result: `{"type":"bash_code_execution_result","stdout":"a","stderr":"","return_code":0,"content":[]}`},
			judge.Thinking("so"), judge.Served{Name: "text_editor_code_execution", Input: `{"command":"view","path":"a"}`, Result: `{"type":"text_editor_code_execution_view_result","content":"b"}`}, judge.Text("It says b.")},
		"mcp":                    {judge.Text("I ask."), judge.Raw(`{"type":"mcp_tool_use","id":"mcptoolu_1","name":"echo","server_name":"e","input":{"n":1.0}}`), judge.Raw(`{"type":"mcp_tool_result","tool_use_id":"mcptoolu_1","is_error":false,"content":[{"type":"text","text":"1"}]}`), judge.Thinking("so"), judge.Text("One.")},
		"tool search":            {judge.Served{Name: "tool_search_tool_bm25", Input: `{"query":"q"}`}, judge.Raw(`{"type":"tool_search_tool_result","tool_use_id":"srvtoolu_1_0","content":{"type":"tool_search_tool_search_result","tool_references":[]}}`), judge.Thinking("hm"), judge.Call{Name: "read"}},
		"a program and its call": {judge.Thinking("hm"), judge.Raw(`{"type":"server_tool_use","id":"srvtoolu_p","name":"code_execution","input":{"code":"read()"}}`), judge.Raw(`{"type":"tool_use","id":"toolu_p","name":"read","input":{},"caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_p"}}`)},
		"both kinds of tools":    {judge.Thinking("hm"), judge.Served{Name: "web_search", Input: `{"query":"q"}`}, judge.Call{Name: "read", Arguments: `{"n":1.0}`}, judge.Call{Name: "read"}},
		"paused":                 {judge.Thinking("hm"), judge.Text("I search."), judge.Served{Name: "web_search", Input: `{"query":"q"}`, Result: `[]`}, judge.Thinking("more"), judge.Served{Name: "web_search", Input: `{"query":"r"}`}},
	},
	judge.FormatOpenAIResponses: {
		"web search":        {judge.Thinking("hm"), judge.Served{Name: "web_search", Input: `{"type":"search","query":"q"}`}, judge.Thinking("so"), judge.Text("Found.")},
		"two searches":      {judge.Thinking("hm"), judge.Served{Name: "web_search", Input: `{"type":"search","query":"q"}`}, judge.Served{Name: "file_search", Input: `{}`}, judge.Text("Found.")},
		"code execution":    {judge.Thinking("hm"), judge.Raw(`{"type":"code_interpreter_call","id":"ci_1","status":"completed","code":"1","container_id":"c","outputs":[]}`), judge.Text("One.")},
		"mcp":               {judge.Raw(`{"type":"mcp_list_tools","id":"mcpl_1","server_label":"e","tools":[]}`), judge.Thinking("hm"), judge.Raw(`{"type":"mcp_call","id":"mcp_1","status":"completed","server_label":"e","name":"echo","arguments":"{}","output":"1"}`), judge.Text("One.")},
		"program":           {judge.Thinking("hm"), judge.Raw(`{"type":"program","id":"cm_1","status":"completed","call_id":"p","code":"read()","fingerprint":"x"}`), judge.Call{ID: "call_p", Name: "read", Arguments: `{"n":1.0}`}},
		"program that ends": {judge.Thinking("hm"), judge.Raw(`{"type":"program","id":"cm_1","status":"completed","call_id":"p","code":"1","fingerprint":"x"}`), judge.Raw(`{"type":"program_output","id":"cmo_1","call_id":"p","result":"1","status":"completed"}`), judge.Text("One.")},
		"image":             {judge.Raw(`{"type":"image_generation_call","id":"ig_1","status":"completed","result":"AA=="}`), judge.Text("There.")},
		"computer":          {judge.Thinking("hm"), judge.Raw(`{"type":"computer_call","id":"cu_1","status":"completed","call_id":"c","action":{"type":"screenshot"},"pending_safety_checks":[]}`)},
		"shell":             {judge.Thinking("hm"), judge.Raw(`{"type":"shell_call","id":"sh_1","status":"completed","call_id":"s","action":{"commands":["ls"]},"environment":{"type":"container_reference","container_id":"c"}}`), judge.Raw(`{"type":"shell_call_output","id":"sho_1","status":"completed","call_id":"s","output":[]}`), judge.Text("a")},
		"custom tool":       {judge.Thinking("hm"), judge.Raw(`{"type":"custom_tool_call","id":"ctc_1","status":"completed","call_id":"u","name":"f","input":"x"}`)},
	},
	"converse": {
		"web grounding":                     {judge.Thinking("hm"), judge.Text("I search."), judge.Raw(`{"toolUse":{"toolUseId":"s","name":"nova_grounding","type":"server_tool_use","input":{"n":1.0}}}`), judge.Raw(`{"toolResult":{"toolUseId":"s","content":[{"json":{"a":1}}]}}`), judge.Thinking("so"), judge.Text("Found.")},
		"code execution without its result": {judge.Thinking("hm"), judge.Raw(`{"toolUse":{"toolUseId":"t","name":"nova_code_interpreter","type":"server_tool_use","input":{"n":1.0}}}`), judge.Thinking("so"), judge.Text("One.")},
		"both kinds of tools":               {judge.Thinking("hm"), judge.Raw(`{"toolUse":{"toolUseId":"u","name":"nova_grounding","type":"server_tool_use","input":{"n":1.0}}}`), judge.Thinking("so"), judge.Call{Name: "read"}, judge.Call{Name: "read"}},
	},
	judge.FormatGemini: {
		"code execution":      {judge.Thinking("hm"), judge.Raw(`{"executableCode":{"language":"PYTHON","code":"1"}}`), judge.Raw(`{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}`), judge.Text("One.")},
		"both kinds of tools": {judge.Raw(`{"executableCode":{"language":"PYTHON","code":"1"}}`), judge.Raw(`{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}`), judge.Call{Name: "read"}, judge.Call{Name: "read"}},
	},
}

// mixed returns a random answer of the blocks of others.
func mixed(rng *rand.Rand, answers map[string][]judge.Block) (blocks []judge.Block) {
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		for _, b := range answers[name] {
			if rng.IntN(4) == 0 {
				blocks = append(blocks, b)
			}
		}
	}
	rng.Shuffle(len(blocks), func(i, j int) { blocks[i], blocks[j] = blocks[j], blocks[i] })
	return blocks
}

// streamed returns the events of the provider's answer to a request with the conversation.
func (j *cutJudge) streamed(s *convo.Snapshot, blocks []judge.Block) (events []event) {
	if j.path == "" {
		return j.streamedConverse(s, blocks)
	}
	j.server.Script(judge.Answer{Blocks: blocks})
	path := strings.Replace(j.path, ":generateContent", ":streamGenerateContent?alt=sse", 1)
	more := map[string]any{"stream": true}
	if path != j.path {
		more = nil
	}
	for line := range strings.Lines(j.post(path, j.body(s, more))) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
			events = append(events, event{data: data})
		}
	}
	require.NotEmpty(j.t, events)
	return events
}

// streamedConverse is streamed for the Converse API.
func (j *cutJudge) streamedConverse(s *convo.Snapshot, blocks []judge.Block) (events []event) {
	var content []json.RawMessage
	for i, b := range blocks {
		switch b := b.(type) {
		case judge.Text:
			content = append(content, json.RawMessage(`{"text":`+jsonOf(string(b))+`}`))
		case judge.Thinking:
			content = append(content, json.RawMessage(`{"reasoningContent":{"reasoningText":{"text":`+jsonOf(string(b))+`}}}`))
		case judge.Call:
			content = append(content, json.RawMessage(fmt.Sprintf(`{"toolUse":{"toolUseId":"tooluse_%d","name":%q,"input":{"n":1.0}}}`, i, b.Name)))
		case judge.Raw:
			content = append(content, json.RawMessage(b))
		}
	}
	answer, err := json.Marshal(map[string]any{"output": map[string]any{"message": map[string]any{"content": content}}})
	require.NoError(j.t, err)
	answer, err = judge.ConverseSeals.Sign(j.body(s, nil), answer)
	require.NoError(j.t, err)
	var signed struct {
		Output struct {
			Message struct{ Content []map[string]map[string]any }
		}
	}
	text := regexp.MustCompile(`\{"text":("[^"]*")\}`)
	answer = text.ReplaceAll(answer, []byte(`{"said":{"text":$1}}`)) // so that each block is an object of objects
	require.NoError(j.t, json.Unmarshal(answer, &signed), "%s", answer)
	add := func(name, format string, values ...any) {
		events = append(events, event{data: fmt.Sprintf(`{%q:`+format+`}`, append([]any{name}, values...)...)})
	}
	add("messageStart", `{"role":"assistant"}`)
	for i, b := range signed.Output.Message.Content {
		delta := func(format string, v any) {
			add("contentBlockDelta", `{"contentBlockIndex":%d,"delta":`+format+`}`, i, jsonOf(v))
		}
		start := func(kind string, without string) {
			head := maps.Clone(b[kind])
			delete(head, without)
			add("contentBlockStart", `{"contentBlockIndex":%d,"start":{%q:%s}}`, i, kind, jsonOf(head))
		}
		switch {
		case b["said"] != nil:
			delta(`{"text":%s}`, b["said"]["text"])
		case b["reasoningContent"] != nil:
			r := b["reasoningContent"]["reasoningText"].(map[string]any)
			delta(`{"reasoningContent":{"text":%s}}`, r["text"])
			delta(`{"reasoningContent":{"signature":%s}}`, r["signature"])
		case b["toolUse"] != nil:
			start("toolUse", "input")
			for _, piece := range []string{`{"n`, `":1.0}`} {
				delta(`{"toolUse":{"input":%s}}`, piece)
			}
		case b["toolResult"] != nil:
			start("toolResult", "content")
			delta(`{"toolResult":%s}`, b["toolResult"]["content"])
		}
		add("contentBlockStop", `{"contentBlockIndex":%d}`, i)
	}
	add("messageStop", `{"stopReason":"end_turn"}`)
	return events
}

// talked returns a conversation of two turns with the provider, with the question of a
// third.
func (j *cutJudge) talked() *convo.Snapshot {
	h, err := convo.New(nil)
	require.NoError(j.t, err)
	require.NoError(j.t, h.SetTools(convo.Tool{Name: "read", Schema: `{"type":"object","properties":{}}`}))
	for _, text := range []string{"one", "two"} {
		_, err := h.Append(convo.User(text))
		require.NoError(j.t, err)
		j.answer(h, judge.Thinking("about "+text), judge.Text("said "+text))
	}
	_, err = h.Append(convo.User("three"))
	require.NoError(j.t, err)
	return h.Snapshot()
}

var cutFormats = map[string]wire.Format{
	"converse":                  wire.Converse{Model: "us.anthropic.claude-opus-5-5-v1:0", Cache: true},
	judge.FormatAnthropic:       wire.Anthropic{Model: "claude-opus-5-5", Cache: true},
	judge.FormatOpenAIResponses: wire.OpenAIResponses{},
	judge.FormatGemini:          wire.Gemini{Model: "gemini-3-pro"},
}

// A provider that checks signatures refuses no request after an answer with its own tools
// that was cut off at any event.
func TestCutAnswers(t *testing.T) {
	for name, f := range cutFormats {
		answers := servedAnswers[name]
		for what, blocks := range answers {
			t.Run(name+"/"+what, func(t *testing.T) {
				j := newCutJudge(t, f)
				j.all = true
				start := j.talked()
				j.cutEverywhere(start, j.streamed(start, blocks))
				assert.Greater(t, j.posted, 10)
			})
		}
		t.Run(name+"/random", func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 9))
			posted, answered := 0, long.Or(3, 40)
			for range answered {
				blocks := mixed(rng, answers)
				if len(blocks) == 0 {
					continue
				}
				j := newCutJudge(t, f)
				start := j.talked()
				j.cutEverywhere(start, j.streamed(start, blocks))
				posted += j.posted
			}
			t.Logf("%d requests", posted)
			assert.Greater(t, posted, long.Or(4, 10)*answered)
		})
	}
}

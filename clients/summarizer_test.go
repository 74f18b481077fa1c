package clients_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/wire"
)

var long = strings.Repeat("much to summarise ", 300)

func count(s string) int { return len(s) / 4 }

// body returns the body of the request for a summary.
func body(t *testing.T, format wire.Format, model, usual, params string, r convo.SummaryRequest) string {
	t.Helper()
	var body []byte
	s := clients.Summarizer(format, model, usual, func(ctx context.Context, req wire.Request) (convo.Reply, error) {
		var err error
		body, err = clients.Body(ctx, req, json.RawMessage(params))
		return convo.Reply{Messages: []convo.Message{convo.Assistant("sum")}, Usage: convo.Usage{Input: 3}}, err
	})
	sum, err := s.Summarize(t.Context(), r)
	require.NoError(t, err)
	assert.Equal(t, convo.Summary{Text: "sum", Usage: convo.Usage{Input: 3}, Model: model}, sum)
	return string(body)
}

func TestSummarizer(t *testing.T) {
	answer := func(model string) convo.Message {
		m := convo.Assistant("answer")
		m.Origin.Model = model
		return m
	}
	for name, tt := range map[string]struct {
		made   convo.Message // the newest answer
		named  string        // what the History names
		prompt string
		params string
		rides  bool
	}{
		"its own answer":           {answer("claude-opus-5-5"), "", long, `{}`, true},
		"the same by another name": {answer("us.anthropic.claude-opus-5-5-20260918-v1:0"), "other", long, `{}`, true},
		"the History's model":      {answer(""), "claude-opus-5-5", long, `{}`, true},
		"not known":                {answer(""), "", long, `{}`, false},
		"another's answer":         {answer("claude-haiku-5-5"), "claude-opus-5-5", long, `{}`, false},
		"another History's model":  {answer(""), "claude-haiku-5-5", long, `{}`, false},
		"a short prompt":           {answer("claude-opus-5-5"), "", "p", `{}`, false},
		"a schema":                 {answer("claude-opus-5-5"), "", long, `{"output_config":{"effort":"high","format":{"type":"json_schema","schema":{}}}}`, false},
		"a schema of a gateway":    {answer("claude-opus-5-5"), "", long, `{"json_schema":{}}`, false},
		"no schema":                {answer("claude-opus-5-5"), "", long, `{"output_config":{"effort":"high","format":null}}`, true},
		"no schema of a gateway":   {answer("claude-opus-5-5"), "", long, `{"output_config":{"information":1},"text":{"format":[]}}`, true},
		"text":                     {answer("claude-opus-5-5"), "", long, `{"response_format":{"type":"text"}}`, true},
		"any call":                 {answer("claude-opus-5-5"), "", long, `{"tool_choice":{"type":"any"}}`, false},
		"a call if it likes":       {answer("claude-opus-5-5"), "", long, `{"tool_choice":{"type":"auto"}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := convo.New(nil)
			require.NoError(t, err)
			_, err = h.Append(convo.System("guide"), convo.User("question"), tt.made, convo.User("more"))
			require.NoError(t, err)
			require.NoError(t, h.SetTools(convo.Tool{Name: "read"}))
			require.NoError(t, h.SetModel(tt.named, convo.Limits{}))
			r := convo.SummaryRequest{Prompt: tt.prompt, Instruction: "Summarise.", Count: count, Sent: h.Snapshot()}
			got := body(t, wire.Anthropic{Cache: true}, "claude-opus-5-5", "claude-opus-5-5", tt.params, r)
			for _, part := range []string{"question", `"name":"read"`, "Summarise.", "cache_control"} {
				assert.Equal(t, tt.rides, strings.Contains(got, part), "%s in %s", part, got)
			}
			assert.NotContains(t, got, `"format`)
			assert.NotContains(t, got, "json_schema")
			r.Sent = nil
			assert.NotContains(t, body(t, wire.Anthropic{}, "claude-opus-5-5", "claude-opus-5-5", tt.params, r), "question")
		})
	}
	failed := errors.New("x")
	_, err := clients.Summarizer(wire.Anthropic{}, "", "", func(context.Context, wire.Request) (convo.Reply, error) { return convo.Reply{}, failed }).Summarize(t.Context(), convo.SummaryRequest{Prompt: "p", Count: count})
	require.ErrorIs(t, err, failed)
	sum, err := clients.Summarizer(wire.Anthropic{}, "", "", func(context.Context, wire.Request) (convo.Reply, error) {
		return convo.Reply{Messages: []convo.Message{convo.Assistant("", convo.ToolCall{ID: "a", Name: "read"})}, Usage: convo.Usage{Input: 7}}, nil
	}).Summarize(t.Context(), convo.SummaryRequest{Prompt: "p", Count: count})
	assert.Equal(t, convo.Summary{Usage: convo.Usage{Input: 7}}, sum, "it is paid")
	var refused *convo.RefusedError
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, `"read"`)
}

// What of the parameters is in the request for a summary.
func TestSummarizer_Params(t *testing.T) {
	chat, responses, gemini, converse := wire.OpenAIChat{}, wire.OpenAIResponses{}, wire.Gemini{}, wire.Converse{Cache: true}
	for name, tt := range map[string]struct {
		format       wire.Format
		model, usual string
		params       string
		want         string // without what req holds
	}{
		"nothing":                 {chat, "mine", "mine", `{}`, `{}`},
		"the limit is needed":     {wire.Anthropic{Cache: true}, "claude-3-7-sonnet", "", `{}`, `{"max_tokens":2000}`},
		"a limit":                 {chat, "gpt-4o", "", `{"max_tokens":1024,"max_completion_tokens":5}`, `{"max_tokens":2000,"max_completion_tokens":2000}`},
		"a large limit":           {chat, "gpt-4o", "", `{"max_tokens":10000}`, `{"max_tokens":10000}`},
		"a limit, and thinking":   {chat, "mine", "", `{"max_tokens":9}`, `{"max_tokens":10000}`},
		"more than it can write":  {wire.Anthropic{}, "claude-3-opus", "", `{"max_tokens":64000}`, `{"max_tokens":4096}`},
		"formats and stops":       {chat, "gpt-4o", "", `{"response_format":{"type":"json_object"},"stop":["x"],"n":2,"guided_json":{},"best_of":3,"functions":[],"function_call":"auto","tool_choice":"auto"}`, `{}`},
		"what stays":              {chat, "gpt-4o", "gpt-4o", `{"temperature":0.5,"user":"u","metadata":{"a":"b"},"service_tier":"flex","provider":{"order":["x"]},"chat_template_kwargs":{"a":1},"reasoning_effort":"low"}`, `{"temperature":0.5,"user":"u","metadata":{"a":"b"},"service_tier":"flex","provider":{"order":["x"]},"chat_template_kwargs":{"a":1}}`},
		"of another model":        {chat, "gpt-4o", "gpt-5.5", `{"temperature":0.5,"user":"u"}`, `{"user":"u"}`},
		"what goes":               {chat, "gpt-4o", "gpt-4o", `{"prediction":{},"modalities":["text"],"web_search_options":{},"logprobs":true,"seed":1,"verbosity":"low","plugins":[{}]}`, `{}`},
		"searches of hosts":       {chat, "gpt-4o", "gpt-4o", `{"web_search":true,"enable_search":true,"search_parameters":{"mode":"on"},"search_domain_filter":["x"],"disable_search":true,"echo":true,"prompt_logprobs":3,"research":1}`, `{"disable_search":true,"research":1}`},
		"stored":                  {chat, "gpt-4o", "gpt-4o", `{"store":true,"metadata":{"a":"b"}}`, `{"store":false}`},
		"thinking off":            {chat, "gpt-5.5", "gpt-5.5", `{"max_completion_tokens":9,"reasoning_effort":"high"}`, `{"max_completion_tokens":2000,"reasoning_effort":"none"}`},
		"an effort":               {chat, "mine", "mine", `{"max_completion_tokens":9,"reasoning_effort":"high"}`, `{"max_completion_tokens":10000,"reasoning_effort":"high"}`},
		"another's effort":        {chat, "mine", "other", `{"reasoning_effort":"high"}`, `{}`},
		"a budget of a gateway":   {chat, "mine", "mine", `{"max_tokens":9,"reasoning":{"max_tokens":3000}}`, `{"max_tokens":5000,"reasoning":{"max_tokens":3000}}`},
		"efforts of a gateway":    {chat, "gpt-5.5", "gpt-5.5", `{"max_tokens":9,"reasoning":{"effort":"high","max_tokens":3000},"reasoning_effort":"high"}`, `{"max_tokens":2000,"reasoning_effort":"none"}`},
		"an effort of a gateway":  {chat, "gpt-4o", "gpt-4o", `{"max_tokens":9,"reasoning":{"effort":"high"}}`, `{"max_tokens":2000}`},
		"stops of a server":       {chat, "gpt-4o", "gpt-4o", `{"stop_token_ids":[1],"stop_strings":["x"],"stop_regex":"x","min_tokens":5,"min_new_tokens":5,"ignore_eos":true,"options":{"stop":["x"],"num_ctx":5},"n":"2","num_generations":2}`, `{"options":{"num_ctx":5}}`},
		"limits of a server":      {chat, "gpt-4o", "gpt-4o", `{"max_new_tokens":9,"num_predict":9,"max_gen_len":9,"options":{"num_predict":9},"max_tokens":1e3,"max_completion_tokens":"12"}`, `{"max_new_tokens":2000,"num_predict":2000,"max_gen_len":2000,"options":{"num_predict":2000},"max_tokens":2000,"max_completion_tokens":2000}`},
		"no limit of a server":    {chat, "gpt-4o", "gpt-4o", `{"num_predict":-1,"max_tokens":2.5e3}`, `{"num_predict":-1,"max_tokens":2500}`},
		"limits of a model":       {converse, "amazon.nova-lite-v1:0", "", `{"additionalModelRequestFields":{"max_tokens":9,"inferenceConfig":{"max_new_tokens":9}}}`, `{"additionalModelRequestFields":{"max_tokens":10000,"inferenceConfig":{"max_new_tokens":10000}}}`},
		"words":                   {chat, "gpt-4o", "gpt-4o", `{"information":1,"performatives":1,"answerFormat":1,"json-schema":1,"guided_whitespace_pattern":"x","regex":"x","ebnf":"x","structural_tag":"x","myTools":1,"function_groups":1,"mcpServers":1,"candidates":2}`, `{"information":1,"performatives":1}`},
		"Responses":               {responses, "gpt-5.5", "gpt-5.5", `{"store":true,"max_output_tokens":9,"text":{"format":{"type":"json_schema"},"verbosity":"low"},"reasoning":{"effort":"high","summary":"auto"},"include":["x"],"prompt":{},"context_management":[],"truncation":"auto"}`, `{"store":false,"max_output_tokens":2000,"reasoning":{"effort":"none"}}`},
		"Responses, unset":        {responses, "mine", "mine", `{}`, `{"store":false}`},
		"Gemini":                  {gemini, "gemini-3.8-flash", "gemini-3.8-flash", `{"cachedContent":"c","safetySettings":[1],"generationConfig":{"maxOutputTokens":9,"responseMimeType":"application/json","responseSchema":{},"candidateCount":2,"stopSequences":["x"],"temperature":1,"topP":1,"thinkingConfig":{"includeThoughts":true,"thinkingBudget":500}}}`, `{"safetySettings":[1],"generationConfig":{"maxOutputTokens":10000,"temperature":1,"thinkingConfig":{"thinkingLevel":"MINIMAL"}}}`},
		"Gemini, thinking off":    {gemini, "gemini-2.5-flash", "", `{"generationConfig":{"maxOutputTokens":9}}`, `{"generationConfig":{"maxOutputTokens":2000,"thinkingConfig":{"thinkingBudget":0}}}`},
		"Gemini, a budget":        {gemini, "gemini-2.5-pro", "", `{"generationConfig":{"maxOutputTokens":9}}`, `{"generationConfig":{"maxOutputTokens":2128,"thinkingConfig":{"thinkingBudget":128}}}`},
		"Gemini, its own budget":  {gemini, "mine", "mine", `{"generationConfig":{"maxOutputTokens":9,"thinkingConfig":{"thinkingBudget":500}}}`, `{"generationConfig":{"maxOutputTokens":2500,"thinkingConfig":{"thinkingBudget":500}}}`},
		"Gemini, no thinking":     {gemini, "gemini-2.0-flash", "", `{"generationConfig":{"responseMimeType":"text/plain"}}`, `{}`},
		"Claude, always thinking": {wire.Anthropic{}, "claude-opus-5-5", "", `{"max_tokens":9,"thinking":{"type":"adaptive"},"output_config":{"effort":"high"},"top_k":1,"container":"c","inference_geo":"eu"}`, `{"max_tokens":10000,"output_config":{"effort":"low"},"inference_geo":"eu"}`},
		"Claude, thinking off":    {wire.Anthropic{}, "claude-haiku-5-5", "", `{"max_tokens":9,"output_config":{"effort":"max"}}`, `{"max_tokens":2000,"thinking":{"type":"disabled"}}`},
		"Claude, asked to think":  {wire.Anthropic{}, "claude-sonnet-4-5", "", `{"max_tokens":9,"thinking":{"type":"enabled","budget_tokens":5000}}`, `{"max_tokens":2000}`},
		"not known, to think":     {wire.Anthropic{}, "mine", "mine", `{"max_tokens":9,"thinking":{"type":"enabled","budget_tokens":5000}}`, `{"max_tokens":10000}`},
		"Converse":                {converse, "anthropic.claude-sonnet-5-5-v1:0", "", `{"guardrailConfig":{"a":1},"inferenceConfig":{"maxTokens":9,"stopSequences":["x"],"topP":1},"outputConfig":{"textFormat":{}},"toolConfig":{"tools":[]},"additionalModelRequestFields":{"top_k":5,"thinking":{"type":"adaptive"},"anthropic_beta":["b"]},"performanceConfig":{},"requestMetadata":{"a":"b"}}`, `{"guardrailConfig":{"a":1},"inferenceConfig":{"maxTokens":2000},"additionalModelRequestFields":{"anthropic_beta":["b"],"thinking":{"type":"between_tools"}},"requestMetadata":{"a":"b"}}`},
		"no objects":              {chat, "mine", "mine", `{"reasoning":true,"text":"x","max_tokens":"y"}`, `{"reasoning":true,"text":"x","max_tokens":"y"}`},
		"effort, no object":       {responses, "gpt-5.5", "", `{"reasoning":true}`, `{"store":false,"reasoning":{"effort":"none"}}`},
		"Converse, no parameters": {converse, "amazon.nova-lite-v1:0", "", `{"inferenceConfig":{"topP":1},"additionalModelRequestFields":{"topK":5}}`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := body(t, tt.format, tt.model, tt.usual, tt.params, convo.SummaryRequest{Prompt: "P", MaxTokens: 1000, Count: count})
			var all map[string]json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(got), &all), got)
			for _, name := range []string{"messages", "contents", "input"} {
				delete(all, name)
			}
			rest, err := json.Marshal(all)
			require.NoError(t, err)
			assert.JSONEq(t, tt.want, string(rest))
		})
	}
}

// A request that rides keeps what the cache holds, and the rest of the parameters.
func TestSummarizer_Rides(t *testing.T) {
	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = h.Append(convo.System("guide"), convo.User("question <1>"))
	require.NoError(t, err)
	require.NoError(t, h.SetTools(convo.Tool{Name: "read"}))
	for name, tt := range map[string]struct {
		format       wire.Format
		model        string
		params, want string
		messages     string // where the instruction follows
	}{
		"Anthropic": {wire.Anthropic{Cache: true}, "claude-opus-5-5", `{"max_tokens":9,"stop_sequences":["x"],"thinking":{"type":"adaptive"},"top_k":1}`, `{"max_tokens":10000,"thinking":{"type":"adaptive"},"top_k":1}`, "messages"},
		"a budget":  {wire.Anthropic{}, "claude-sonnet-4-5", `{"max_tokens":9,"thinking":{"type":"enabled","budget_tokens":5000}}`, `{"max_tokens":7000,"thinking":{"type":"enabled","budget_tokens":5000}}`, "messages"},
		"Chat":      {wire.OpenAIChat{}, "gpt-5.5", `{"max_completion_tokens":9,"n":2,"stop":"x","store":true,"reasoning_effort":"high","seed":1}`, `{"max_completion_tokens":10000,"store":true,"reasoning_effort":"high","seed":1}`, "messages"},
		"Responses": {wire.OpenAIResponses{}, "gpt-5.5", `{"max_output_tokens":9,"text":{"format":{"type":"text"}},"reasoning":{"effort":"none"}}`, `{"max_output_tokens":2000,"reasoning":{"effort":"none"}}`, "input"},
		"Gemini":    {wire.Gemini{}, "gemini-3.8-flash", `{"generationConfig":{"candidateCount":2,"maxOutputTokens":9,"topP":1}}`, `{"generationConfig":{"maxOutputTokens":10000,"topP":1}}`, "contents"},
		"Converse":  {wire.Converse{Cache: true}, "claude-opus-5-5", `{"inferenceConfig":{"maxTokens":9,"stopSequences":["x"]}}`, `{"inferenceConfig":{"maxTokens":10000}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, h.SetModel(tt.model, convo.Limits{}))
			got := body(t, tt.format, tt.model, tt.model, tt.params, convo.SummaryRequest{Prompt: long, Instruction: "Sum.", MaxTokens: 1000, Count: count, Sent: h.Snapshot()})
			req, err := tt.format.Encode(h.Snapshot())
			require.NoError(t, err)
			sent := req.Body()
			at := len(sent) - len("]}")
			if tt.messages == "" { // Converse: the instruction joins the message
				at -= len("]}")
			}
			require.Contains(t, got, string(sent[1:at]))
			assert.Contains(t, got[strings.Index(got, "question"):], "Sum.")
			var all, own map[string]json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(got), &all))
			require.NoError(t, json.Unmarshal(sent, &own))
			for name := range own {
				delete(all, name)
			}
			rest, err := json.Marshal(all)
			require.NoError(t, err)
			assert.JSONEq(t, tt.want, string(rest))
		})
	}
}

// No instruction follows a call that waits for the provider's own result.
func TestSummarizer_Paused(t *testing.T) {
	const model = "claude-opus-5-5"
	const search, read = `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}}`, `,{"type":"tool_use","id":"toolu_1","name":"read","input":{}}`
	f := wire.Anthropic{Model: model}
	for name, content := range map[string]string{"at the end": search, "before a result": search + read} {
		t.Run(name, func(t *testing.T) {
			h, err := convo.New(nil)
			require.NoError(t, err)
			_, err = h.Append(convo.User("question"))
			require.NoError(t, err)
			in, err := f.Decode(fmt.Appendf(nil, `{"model":%q,"role":"assistant","type":"message","content":[%s],"stop_reason":%q,"usage":{"input_tokens":1,"output_tokens":1}}`, model, content, map[string]string{search: "pause_turn", search + read: "tool_use"}[content]))
			require.NoError(t, err)
			reply, err := h.AppendReply(h.Snapshot(), in.Reply())
			require.NoError(t, err)
			for _, call := range reply.OpenCalls() {
				_, err := h.Append(convo.Result(call, "r"))
				require.NoError(t, err)
			}
			r := convo.SummaryRequest{Prompt: long, Instruction: "Sum.", MaxTokens: 1000, Count: count, Sent: h.Snapshot()}
			req, err := f.Encode(r.Sent)
			require.NoError(t, err)
			require.Contains(t, string(req.Body()), "srvtoolu_1")
			got := body(t, f, model, model, `{}`, r)
			assert.NotContains(t, got, "srvtoolu_1")
			assert.Contains(t, got, "much to summarise")
		})
	}
}

// Without parameters a request for a summary is that of no parameters, and no panic.
func TestSummarizer_NoParams(t *testing.T) {
	for _, format := range []wire.Format{wire.Anthropic{}, wire.Converse{}, wire.OpenAIChat{}, wire.OpenAIResponses{}, wire.Gemini{}} {
		for _, model := range []string{"mine", "claude-opus-5-5", "gpt-5.5", "gemini-3.8-flash"} {
			r := convo.SummaryRequest{Prompt: "P", MaxTokens: 1000, Count: count}
			assert.Equal(t, body(t, format, model, model, "{}", r), body(t, format, model, model, "null", r), "%T %s", format, model)
		}
	}
}

// A request does not ride if the thinking that the cache depends on leaves no room.
func TestSummarizer_Budget(t *testing.T) {
	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = h.Append(convo.System("guide"), convo.User("question"))
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		format        wire.Format
		model, params string
		rides         bool
		limit         string // in the request
		tokens        int    // 0: 1,000
	}{
		"near the most":    {wire.Anthropic{}, "claude-opus-4-1", `{"max_tokens":32000,"thinking":{"type":"enabled","budget_tokens":30001}}`, false, `"max_tokens":32000`, 0},
		"room enough":      {wire.Anthropic{}, "claude-opus-4-1", `{"max_tokens":32000,"thinking":{"type":"enabled","budget_tokens":30000}}`, true, `"max_tokens":32000`, 0},
		"not known":        {wire.Anthropic{}, "mine", `{"max_tokens":32000,"thinking":{"type":"enabled","budget_tokens":31000}}`, true, `"max_tokens":33000`, 0},
		"no budget":        {wire.Anthropic{}, "claude-3-opus", `{"max_tokens":1000}`, true, `"max_tokens":2000`, 0},
		"budget, no limit": {wire.Gemini{}, "gemini-2.5-pro", `{"generationConfig":{"thinkingConfig":{"thinkingBudget":64000}}}`, false, `"thinkingBudget":128`, 0},
		"Converse":         {wire.Converse{}, "anthropic.claude-opus-4-1-v1:0", `{"inferenceConfig":{"maxTokens":32000},"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":31000}}}`, false, `"maxTokens":32000`, 0},
		"no thinking":      {wire.Anthropic{}, "claude-3-opus", `{"max_tokens":1000}`, true, `"max_tokens":4096`, 3000},
		"a small model":    {wire.Converse{}, "amazon.nova-lite-v1:0", `{"inferenceConfig":{"maxTokens":10}}`, true, `"maxTokens":10000`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, h.SetModel(tt.model, convo.Limits{}))
			got := body(t, tt.format, tt.model, tt.model, tt.params, convo.SummaryRequest{Prompt: long, Instruction: "Sum.", MaxTokens: cmp.Or(tt.tokens, 1000), Count: count, Sent: h.Snapshot()})
			assert.Equal(t, tt.rides, strings.Contains(got, "question"), got)
			assert.Equal(t, tt.rides, !strings.Contains(got, "much to summarise"), got)
			assert.Contains(t, got, tt.limit)
		})
	}
}

// A limit of the output that a model refuses is taken back to the one that it names, or to that
// of the parameters.
func TestSummarizer_Limit(t *testing.T) {
	for name, tt := range map[string]struct {
		format       wire.Format
		params       string
		refusal      string
		first, again string // limits; empty: there is no such request
		own          string
	}{
		"DeepSeek":            {wire.OpenAIChat{}, `{"max_tokens":100}`, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", "10000", "8191", "100"},
		"Anthropic":           {wire.Anthropic{}, `{"max_tokens":100}`, "max_tokens: 10000 > 8192, which is the maximum allowed number of output tokens for mine-2024-10-22", "10000", "8191", "100"},
		"OpenAI":              {wire.OpenAIChat{}, `{"max_tokens":100}`, `POST "http://127.0.0.1:9123/v1/chat/completions": 400 Bad Request {"message":"max_tokens is too large: 10000. This model supports at most 4096 completion tokens, whereas you provided 10000."}`, "10000", "4095", "100"},
		"Bedrock":             {wire.Converse{}, `{"inferenceConfig":{"maxTokens":100}}`, "ValidationException: The maximum tokens you requested exceeds the model limit of 8192. Try again with a maximum tokens value that is lower than 8192.", "10000", "8191", "100"},
		"Gemini":              {wire.Gemini{}, `{"generationConfig":{"maxOutputTokens":100}}`, "it has a maxOutputTokens value of 10000 but the supported range is from 1 (inclusive) to 8193 (exclusive)", "10000", "8192", "100"},
		"vLLM":                {wire.OpenAIChat{}, `{"max_tokens":100}`, "'max_tokens' or 'max_completion_tokens' is too large: 10000. This model's maximum context length is 8192 tokens and your request has 500 input tokens (10000 > 8192 - 500).", "10000", "8191", "100"},
		"Groq":                {wire.OpenAIChat{}, `{"max_tokens":100}`, "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model", "10000", "8191", "100"},
		"no number":           {wire.OpenAIChat{}, `{"max_completion_tokens":100}`, "max_completion_tokens is too large", "10000", "100", ""},
		"no useful number":    {wire.OpenAIChat{}, `{"max_tokens":3000}`, "max_tokens must be at most 2,048", "10000", "3000", ""},
		"a server":            {wire.OpenAIChat{}, `{"max_new_tokens":100}`, "`max_new_tokens` must be <= 4_096", "10000", "4095", "100"},
		"no limit of its own": {wire.Anthropic{}, `{}`, "max_tokens: too large", "10000", "2000", ""},
		"output tokens":       {wire.OpenAIChat{}, `{"max_tokens":100}`, "The requested number of output tokens 10000 exceeds the limit 2000", "10000", "1999", "100"},
		"output length":       {wire.OpenAIChat{}, `{"max_tokens":100}`, "max output length 10000 exceeds 2000", "10000", "1999", "100"},
		"output, no number":   {wire.OpenAIChat{}, `{"max_tokens":100}`, "the output exceeds the limit", "10000", "100", ""},
		"output after it":     {wire.OpenAIChat{}, `{"max_tokens":100}`, "10000 exceeds the limit 2000 of the output", "10000", "1999", "100"},
		"another error":       {wire.OpenAIChat{}, `{"max_tokens":100}`, "invalid request: 8192", "10000", "", ""},
		"its own limit":       {wire.OpenAIChat{}, `{"max_tokens":50000}`, "max_tokens is too large: at most 8192", "50000", "", ""},
		"no limit":            {wire.OpenAIChat{}, `{}`, "max_tokens is too large: at most 8192", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var limits []string
			refused := errors.New(tt.refusal)
			s := clients.Summarizer(tt.format, "mine", "mine", func(ctx context.Context, req wire.Request) (convo.Reply, error) {
				body, err := clients.Body(ctx, req, json.RawMessage(tt.params))
				require.NoError(t, err)
				if m := limitIn.FindSubmatch(body); m != nil {
					limits = append(limits, string(m[1]))
				} else {
					limits = append(limits, "")
				}
				return convo.Reply{}, refused
			})
			_, err := s.Summarize(t.Context(), convo.SummaryRequest{Prompt: "P", MaxTokens: 1000, Count: count})
			require.ErrorIs(t, err, refused)
			want := []string{tt.first}
			if tt.again != "" {
				want = append(want, tt.again)
			}
			if tt.own != "" {
				want = append(want, tt.own)
			}
			assert.Equal(t, want, limits)
		})
	}
}

var limitIn = regexp.MustCompile(`"max\w*[tT]okens":(\d+)`)

// A request that is too long with the room for thinking is made without it.
func TestSummarizer_Overflow(t *testing.T) {
	overflow := errors.New("This model's maximum context length is 32768 tokens. However, you requested 34000 tokens (24000 in the messages, 10000 in the completion).")
	for name, tt := range map[string]struct {
		params string
		want   []string // limits
	}{
		"a limit":       {`{"max_tokens":9}`, []string{"10000", "2000"}},
		"its own limit": {`{"max_tokens":9000}`, []string{"10000", "9000"}},
		"a large limit": {`{"max_tokens":90000}`, []string{"90000"}},
		"a budget":      {`{"max_tokens":9,"reasoning":{"max_tokens":3000}}`, []string{"5000"}},
		"8,000":         {`{"max_tokens":9,"reasoning":{"max_tokens":8000}}`, []string{"10000"}},
		"no limit":      {`{}`, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			var limits []string
			s := clients.Summarizer(wire.OpenAIChat{}, "mine", "mine", func(ctx context.Context, req wire.Request) (convo.Reply, error) {
				body, err := clients.Body(ctx, req, json.RawMessage(tt.params))
				require.NoError(t, err)
				var all map[string]json.RawMessage
				require.NoError(t, json.Unmarshal(body, &all))
				limits = append(limits, string(all["max_tokens"]))
				return convo.Reply{}, overflow
			})
			_, err := s.Summarize(t.Context(), convo.SummaryRequest{Prompt: "P", MaxTokens: 1000, Count: count})
			require.ErrorIs(t, err, overflow)
			assert.Equal(t, tt.want, limits)
		})
	}
}

// A request for a summary is refused for what it would contain, and for nothing else.
func TestSummarizer_Refused(t *testing.T) {
	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = h.Append(convo.System("guide"), convo.User("question"))
	require.NoError(t, err)
	require.NoError(t, h.SetTools(convo.Tool{Name: "read"}))
	require.NoError(t, h.SetModel("mine", convo.Limits{}))
	for name, tt := range map[string]struct {
		format wire.Format
		params string
		field  string // at fault if the request rides; empty: none
	}{
		"a tool":                   {wire.Anthropic{}, `{"tools":[{"name":"read"}]}`, "tools"},
		"a tool, any call":         {wire.Anthropic{}, `{"tools":[{"name":"read"}],"tool_choice":{"type":"any"}}`, ""},
		"a tool of Converse":       {wire.Converse{}, `{"toolConfig":{"tools":[{"toolSpec":{"name":"read"}}]}}`, "toolConfig"},
		"Converse, any call":       {wire.Converse{}, `{"toolConfig":{"tools":[{"toolSpec":{"name":"read"}}],"toolChoice":{"any":{}}}}`, ""},
		"another tool of Converse": {wire.Converse{}, `{"toolConfig":{"tools":[{"toolSpec":{"name":"own"}}],"toolChoice":{"auto":{}}}}`, ""},
		"cached content":           {wire.Gemini{}, `{"cachedContent":"c"}`, "cachedContent"},
		"several answers":          {wire.OpenAIChat{}, `{"n":2}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := convo.SummaryRequest{Prompt: long, Instruction: "Sum.", MaxTokens: 1000, Count: count}
			got := body(t, tt.format, "mine", "mine", tt.params, r)
			for _, part := range []string{"read", "own", "cachedContent", `"n":`} {
				assert.NotContains(t, got, part)
			}
			r.Sent = h.Snapshot()
			_, err := clients.Summarizer(tt.format, "mine", "mine", func(ctx context.Context, req wire.Request) (convo.Reply, error) {
				body, err := clients.Body(ctx, req, json.RawMessage(tt.params))
				if name == "another tool of Converse" {
					assert.Contains(t, string(body), `{"tools":[{"toolSpec":{"name":"own"}},{"toolSpec":{"name":"read",`)
					assert.Contains(t, string(body), `"toolChoice":{"auto":{}}`)
				}
				return convo.Reply{Messages: []convo.Message{convo.Assistant("sum")}}, err
			}).Summarize(t.Context(), r)
			if tt.field == "" {
				require.NoError(t, err)
				return
			}
			var wrong *clients.ParamsError
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, tt.field, wrong.Field)
		})
	}
}

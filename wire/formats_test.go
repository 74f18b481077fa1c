package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// formats are all formats of the package, with all settings that change what
// they write.
var formats = map[string]wire.Format{
	"openai chat":   wire.OpenAIChat{},
	"openai chat 2": wire.OpenAIChat{Developer: true, Audio: true},
	"deepseek":      wire.OpenAIChat{Dialect: wire.DeepSeek},
	"mistral":       wire.OpenAIChat{Dialect: wire.Mistral},
	"ollama":        wire.OpenAIChat{Dialect: wire.Ollama},
	"strict":        wire.OpenAIChat{Dialect: wire.StrictAlternation},
	"gemma":         wire.OpenAIChat{Dialect: wire.Gemma},
	"responses":     wire.OpenAIResponses{},
	"responses 2":   wire.OpenAIResponses{Developer: true, Model: "m1"},
	"responses 3":   wire.OpenAIResponses{Plain: true},
	"anthropic":     wire.Anthropic{},
	"anthropic 2":   wire.Anthropic{Model: "m1", Cache: true, UserLast: true},
	"gemini":        wire.Gemini{},
	"gemini 2":      wire.Gemini{Model: "m1"},
	"gemini 3":      wire.Gemini{Model: "gemini-3-x"},
	"converse":      wire.Converse{},
	"converse 2":    wire.Converse{Model: "m1", ResultsAlone: true, Cache: true},

	"openai chat 3": wire.OpenAIChat{SystemSummary: true},
	"openai chat 4": wire.OpenAIChat{SystemSummary: true, Developer: true},
	"openai chat 6": wire.OpenAIChat{Names: true},
	"deepseek 2":    wire.OpenAIChat{Dialect: wire.DeepSeek, Reasoning: convo.ReplayAll, SystemSummary: true},
	"deepseek 3":    wire.OpenAIChat{Dialect: wire.DeepSeek, Reasoning: convo.ReplayNone},
	"mistral 2":     wire.OpenAIChat{Dialect: wire.Mistral, SystemSummary: true},
	"ollama 2":      wire.OpenAIChat{Dialect: wire.Ollama, Reasoning: convo.ReplayTools, SystemSummary: true},
	"strict 2":      wire.OpenAIChat{Dialect: wire.StrictAlternation, SystemSummary: true},
	"gemma 2":       wire.OpenAIChat{Dialect: wire.Gemma, SystemSummary: true, Host: "h", SplitCalls: true},
	"responses 4":   wire.OpenAIResponses{Reasoning: convo.ReplayTools, SystemSummary: true},
	"responses 5":   wire.OpenAIResponses{Reasoning: convo.ReplayNone, SystemSummary: true, Developer: true, Cache: true},
	"responses 6":   wire.OpenAIResponses{Plain: true, Reasoning: convo.ReplayTools, Cache: true},
	"anthropic 3":   wire.Anthropic{SystemSummary: true, Cache: true, CacheLifetime: time.Hour},
	"gemini 4":      wire.Gemini{SystemSummary: true},
	"converse 3":    wire.Converse{SystemSummary: true, Cache: true, CacheTools: true},

	"openai chat 5": wire.OpenAIChat{Model: "m1", Audio: true},
	"host":          wire.OpenAIChat{Host: "h"},
	"host 2":        wire.OpenAIChat{Host: "h", Model: "m1", Reasoning: convo.ReplayTools, SplitCalls: true},
	"mistral 3":     wire.OpenAIChat{Dialect: wire.Mistral, SplitCalls: true},
	"mistral 4":     wire.OpenAIChat{Dialect: wire.Mistral, Host: "h"},
	"strict 3":      wire.OpenAIChat{Dialect: wire.StrictAlternation, SplitCalls: true, Model: "m1"},
}

var origins = []convo.Origin{
	{}, {Format: "openai-chat", Model: "m1"}, {Format: "deepseek", Model: "m1"}, {Format: "ollama", Model: "m1"}, {Format: "mistral"},
	{Format: "openai-chat@h", Model: "m1"}, {Format: "mistral@h"}, {Format: "anthropic", Model: "m1"}, {Format: "gemini", Model: "m1"}, {Format: "converse", Model: "m1"}, {Format: "openai-responses", Model: "m1"},
}

// strategies compact the random conversations.
var strategies = []convo.CompactionStrategy{
	convo.Truncate{}, convo.When(func(s convo.Status) bool { return s.Turns > 4 }, convo.Truncate{}), convo.SlidingWindow{KeepLast: 6}, convo.ClearToolResults{KeepLast: -1, MinFree: -1}, convo.Summarize{},
	convo.Summarize{With: convotest.Echo{}, MaxTokens: 80, Window: -1},
	convo.Chain(convo.ClearToolResults{KeepLast: 1}, convo.Summarize{KeepTokens: 50}, convo.Truncate{}),
}

// After any history of a conversation, each format writes a request that its Check
// accepts, that has the same bytes each time, and that begins with the previous request.
func TestFormats_RandomConversationsGiveValidStableRequests(t *testing.T) {
	names := slices.Sorted(maps.Keys(formats))
	count := map[string]int{}
	total, seed := 0, uint64(0)
	var entries, reduced, rewritten, assistantFirst, openCalls, stable int
	for ; total < long.Or(600, 16_000); seed++ {
		rng := rand.New(rand.NewPCG(seed, 1))
		h, err := convo.New(&convo.Options{Roles: convo.Relaxed(), Strategy: strategies[rng.IntN(len(strategies))]})
		require.NoError(t, err)
		g := &generator{rng: rng, h: h, origins: origins}
		for range rng.IntN(3) {
			h.Append(g.system())
		}
		var before map[string]wire.Request
		for range 4 {
			for range 1 + rng.IntN(12) {
				g.step()
			}
			changed, ephemeral := disturb(t, g)
			s := h.Snapshot()
			entries += s.Len()
			if changed {
				reduced++
				before = nil
			}
			if h.Status().OpenCalls > 0 {
				openCalls++
			}
			if e, ok := firstOther(s); ok && e.Message.Role == convo.RoleAssistant {
				assistantFirst++
			}
			now := map[string]wire.Request{}
			for _, name := range names {
				r, err := formats[name].Encode(s)
				if err != nil {
					require.ErrorIs(t, err, wire.ErrEmpty)
					continue
				}
				body := r.Body()
				if !json.Valid(body) {
					t.Fatalf("seed %d, %s: not JSON: %s", seed, name, body)
				}
				if found := formats[name].Check(body); len(found) > 0 {
					t.Fatalf("seed %d, %s: %v\n%s", seed, name, found, body)
				}
				again, _ := formats[name].Encode(s)
				if !bytes.Equal(body, again.Body()) {
					t.Fatalf("seed %d, %s: two encodings of one snapshot", seed, name)
				}
				if old, ok := before[name]; ok {
					stable++
					if share := wire.PrefixShare(old, r); share != 1 {
						t.Fatalf("seed %d, %s: begins as the request before by %v\n%s\n%s", seed, name, share, old.Body(), body)
					}
				}
				count[name]++
				total++
				now[name] = r
			}
			before = nil
			if h.Status().OpenCalls == 0 && !ephemeral && endsWithUser(s) {
				before = now
			}
		}
		require.NoError(t, h.SetEphemeral())
		rewritten += g.rewrites
	}
	t.Logf("%d requests of %d conversations (%v): %d reduced, %d entries rewritten, %d begin with the assistant, %d with open calls, %d compared with the one before",
		total, seed, count, reduced, rewritten, assistantFirst, openCalls, stable)
	assert.Positive(t, reduced)
	assert.Positive(t, rewritten)
	assert.Positive(t, assistantFirst)
	assert.Positive(t, openCalls)
	assert.Positive(t, stable)
}

func firstOther(s *convo.Snapshot) (convo.Entry, bool) {
	for _, e := range s.All() {
		if e.Message.Role != convo.RoleSystem {
			return e, true
		}
	}
	return convo.Entry{}, false
}

// endsWithUser reports whether a snapshot ends with a user message, a note or results,
// so that no marker is needed at the end.
func endsWithUser(s *convo.Snapshot) bool {
	e, ok := s.At(s.Len() - 1)
	return ok && (e.Message.Role == convo.RoleTool || (e.Message.Role == convo.RoleUser || e.Turn > 0 && e.Message.Role == convo.RoleSystem) && strings.TrimSpace(e.Message.Text()) != "")
}

// disturb compacts or edits the conversation, or sets ephemeral messages, in half of all
// calls. It returns whether the next request may begin differently from the last, and
// whether it holds ephemeral messages.
func disturb(t *testing.T, g *generator) (changed, ephemeral bool) {
	h := g.h
	require.NoError(t, h.SetEphemeral())
	switch g.n(6) {
	case 0: // compaction by the strategy
		r, _ := h.Compact(t.Context(), "")
		return r.Outcome == convo.OutcomeApplied, false
	case 1: // an edit through Apply, after which any role may come first
		s := h.Snapshot()
		var e convo.Edit
		for x := range s.Exchanges() {
			if !x.Floor && g.n(3) == 0 {
				e.Drop = append(e.Drop, x.IDs()...)
			}
		}
		for i, entry := range s.All() {
			if i >= h.Status().System && !entry.Pinned && g.n(8) == 0 {
				e.Rewrite = append(e.Rewrite, convo.Rewrite{ID: entry.ID, Parts: g.rewritten(entry.Message)})
			}
		}
		if g.n(2) == 0 && len(e.Drop) > 0 {
			e.Summary = &convo.Summary{Text: "what went before"}
		}
		r, err := h.Apply(s, e)
		_, wrong := errors.AsType[*convo.EditError](err)
		require.False(t, wrong, "%v", err)
		g.rewrites += len(r.Rewritten)
		return r.Outcome == convo.OutcomeApplied, false
	case 2:
		require.NoError(t, h.SetEphemeral(g.ephemeral()...))
		return true, true
	}
	return false, false
}

// Anthropic and Gemini write the same bytes again from what they read of their own requests.
func TestFormats_RandomConversationsEncodeTheSameAfterDecode(t *testing.T) {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(formats)), func(name string) bool {
		return !strings.HasPrefix(name, "anthropic") && !strings.HasPrefix(name, "gemini")
	})
	n := 0
	for seed := range long.Or[uint64](120, 1500) {
		h := relaxedOf(t)
		g := &generator{rng: rand.New(rand.NewPCG(seed, 2)), h: h, origins: append(slices.Clone(origins), convo.Origin{Format: "gemini", Model: "gemini-3-pro"})}
		for range 1 + g.n(30) {
			g.step()
		}
		for _, name := range some(names, int(seed)) {
			f := formats[name]
			r, err := f.Encode(h.Snapshot())
			if errors.Is(err, wire.ErrEmpty) {
				continue
			}
			require.NoError(t, err)
			n++
			in := mustDecode(t, f, r.Body())
			assert.Empty(t, in.Lost, name)
			back := restoredOf(t, asSent(in.Messages))
			again := mustEncode(t, f, back.Snapshot())
			assert.Equal(t, string(r.Body()), string(again.Body()), "seed %d, %s", seed, name)
		}
	}
	assert.Greater(t, n, 100)
}

// The messages of a summary request can be sent in every format.
func TestFormats_RequestsOfASummarizerAreValid(t *testing.T) {
	rec := new(convotest.Recorder)
	h, err := convo.New(&convo.Options{Roles: convo.Relaxed(), Strategy: convo.Summarize{With: rec, Window: -1}})
	require.NoError(t, err)
	g := &generator{rng: rand.New(rand.NewPCG(1, 1)), h: h, origins: origins}
	for range 400 {
		g.step()
		if g.n(20) == 0 {
			require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 100}))
			_, _ = h.Compact(t.Context(), "")
		}
	}
	reqs := rec.Requests()
	require.NotEmpty(t, reqs)
	for name, f := range formats {
		for _, req := range reqs {
			lists := [][]convo.Message{{convo.User(req.Prompt)}}
			if req.Sent != nil {
				lists = append(lists, append(req.Sent.Messages(), convo.User(req.Instruction)))
			}
			for _, msgs := range lists {
				r := mustEncode(t, f, asSent(msgs))
				assert.Empty(t, f.Check(r.Body()), name)
			}
		}
	}
}

// Providers use longer names for their models in answers than in requests. The reasoning
// of these answers is also sent back.
func TestDecode_SendsReasoningBackUnderALongerModelName(t *testing.T) {
	for _, tt := range []struct {
		f      wire.Format
		answer string
	}{
		{wire.Anthropic{Model: "claude"}, `{"type":"message","role":"assistant","model":"claude-20251001","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"a"}]}`},
		{wire.OpenAIChat{Dialect: wire.DeepSeek, Model: "deepseek-chat", Reasoning: convo.ReplayAll}, `{"model":"deepseek-v4","choices":[{"message":{"role":"assistant","reasoning_content":"c2ln","content":"a"}}]}`},
		{wire.OpenAIResponses{Model: "gpt-5"}, `{"object":"response","model":"gpt-5-2025-08-07","output":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"c2ln"},{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"a"}]}]}`},
	} {
		in := mustDecode(t, tt.f, []byte(tt.answer))
		msgs := append([]convo.Message{convo.User("q")}, in.Messages...)
		r := mustEncode(t, tt.f, asSent(append(msgs, convo.User("and"))))
		assert.Contains(t, string(r.Body()), "c2ln", "%T", tt.f)
	}
}

// If calls have no ids, a result answers the next open call of the same tool.
func TestOllama_ResultsWithoutIDsArePairedByName(t *testing.T) {
	f := wire.OpenAIChat{Dialect: wire.Ollama}
	in, err := f.Decode([]byte(`{"messages":[{"role":"user","content":"q"},
		{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}},{"function":{"name":"g","arguments":{}}}]},
		{"role":"tool","tool_name":"g","content":"of g"},{"role":"tool","tool_name":"f","content":"of f"}]}`))
	require.NoError(t, err)
	h := historyOf(t)
	for _, m := range in.Messages {
		mustAppend(t, h, m)
	}
	for _, s := range []*convo.Snapshot{asSent(in.Messages), h.Snapshot()} {
		r := mustEncode(t, f, s)
		require.Len(t, r.Messages, 4)
		assert.Contains(t, string(r.Messages[2]), `"tool_name":"f","content":"of f"`)
		assert.Contains(t, string(r.Messages[3]), `"tool_name":"g","content":"of g"`)
	}
}

// If neither calls nor results have ids, a result without a name answers the next call
// that no result names.
func TestOllama_ResultsWithoutIDOrName(t *testing.T) {
	f := wire.OpenAIChat{Dialect: wire.Ollama}
	r, err := f.Encode(asSent([]convo.Message{convo.User("q"),
		convo.Assistant("", convo.ToolCall{Name: "f"}, convo.ToolCall{Name: "g"}, convo.ToolCall{Name: "h"}),
		results(convo.ToolResult{Parts: []convo.Part{convo.Text("first")}}, convo.ToolResult{Name: "g", Parts: []convo.Part{convo.Text("of g")}},
			convo.ToolResult{Parts: []convo.Part{convo.Text("second")}})}))
	require.NoError(t, err)
	require.Len(t, r.Messages, 5)
	for i, want := range []string{`"tool_name":"f","content":"first"`, `"tool_name":"g","content":"of g"`, `"tool_name":"h","content":"second"`} {
		assert.Contains(t, string(r.Messages[2+i]), want)
	}
}

func TestCheck_ReportsWhatIsNotJSON(t *testing.T) {
	for name, f := range formats {
		for _, body := range []string{``, `{`, `null`, `[]`, `{"messages":[]}}`, `{"messages":[]} x`, "\ufeff{}"} {
			found := f.Check([]byte(body))
			require.NotEmpty(t, found, "%s: %s", name, body)
			assert.Equal(t, "json", found[0].Rule, "%s: %s", name, body)
		}
	}
}

// A snapshot from NewSnapshot may hold anything. Encode nevertheless writes valid JSON,
// and no part of a message can add a field to the request.
func TestEncode_WritesValidJSONForAnySnapshot(t *testing.T) {
	msgs := []convo.Message{convo.User("q")}
	for i, arguments := range []string{"oops", `{"a":1}},"x":{`, "{\"a\":\"\xff\"}", "[]", "null", `"s"`} {
		msgs = append(msgs, convo.Assistant("", convo.ToolCall{ID: fmt.Sprint("c", i), Name: "f", Arguments: arguments}))
	}
	for _, format := range []string{"openai-chat", "deepseek", "mistral", "ollama", "openai-responses", "anthropic", "gemini", "converse"} {
		for _, raw := range []string{"oops", "null", "5", "{}", `{"a":1}},{`, `{"type":""}`, `{"text":""}`, "{\"type\":\"\xff\"}"} {
			msgs = append(msgs, convo.Message{Role: convo.RoleUser, Parts: []convo.Part{convo.Text("x"), convo.Opaque{Format: format, JSON: raw}}})
		}
	}
	s := asSent(append(msgs, convo.User("end")))
	for _, name := range slices.Sorted(maps.Keys(formats)) {
		r := mustEncode(t, formats[name], s, name)
		require.True(t, json.Valid(r.Body()), name)
		assert.Empty(t, formats[name].Check(r.Body()), "%s: %s", name, r.Body())
	}
}

// Content of an answer outside its message is listed in Lost, also for streams. Reports
// of the server on its work and empty fields are not.
func TestOpenAIChat_DecodeNamesWhatAnswersSayBeside(t *testing.T) {
	for _, tt := range []struct {
		name   string
		f      wire.OpenAIChat
		top    string // further fields of the answer
		choice string // and of its choice
		want   []string
	}{
		// https://docs.perplexity.ai/api-reference/chat-completions-post
		{"Perplexity", wire.OpenAIChat{}, `,"citations":["https://a"],"search_results":[{"title":"A"}],"images":[]`, "", []string{"citations", "search_results"}},
		// https://platform.openai.com/docs/api-reference/chat/object
		{"OpenAI", wire.OpenAIChat{}, `,"object":"chat.completion","created":1,"system_fingerprint":"fp","service_tier":"default"`, `,"logprobs":{"content":[{"token":"a","logprob":-1}],"refusal":null}`, []string{"choices[0].logprobs"}},
		{"no probabilities", wire.OpenAIChat{}, `,"system_fingerprint":""`, `,"logprobs":null`, nil},
		// https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-filter
		{"Azure", wire.OpenAIChat{}, `,"prompt_filter_results":[{"prompt_index":0}]`, `,"content_filter_results":{"hate":{"filtered":false}}`, nil},
		// https://openrouter.ai/docs/api-reference/overview
		{"OpenRouter", wire.OpenAIChat{Host: "openrouter"}, `,"provider":"P"`, `,"native_finish_reason":"end_turn"`, nil},
		{"not known", wire.OpenAIChat{}, `,"annotations":[1]`, `,"annotations":{"a":1},"blank":" "`, []string{"annotations", "choices[0].annotations", "choices[0].blank"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			whole := `{"id":"x"` + tt.top + `,"choices":[{"index":0` + tt.choice + `,"finish_reason":"stop","message":{"role":"assistant","content":"a"}}]}`
			in := mustDecode(t, tt.f, []byte(whole))
			got, _ := streamed(t, tt.f, []event{{"", strings.Replace(whole, `"message":`, `"delta":`, 1)}})
			var want []wire.Loss
			for _, path := range tt.want {
				want = append(want, wire.Loss{Path: path, What: "no place for this field"})
			}
			assert.Equal(t, want, in.Lost)
			assert.Equal(t, want, got.Lost)
		})
	}
	// https://docs.ollama.com/api/chat
	in, err := wire.OpenAIChat{Dialect: wire.Ollama}.Decode([]byte(`{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"a"},"done":true,"done_reason":"stop","logprobs":[{"token":"a"}],
		"total_duration":1,"load_duration":1,"prompt_eval_count":1,"prompt_eval_duration":1,"eval_count":1,"eval_duration":1}`))
	require.NoError(t, err)
	assert.Equal(t, []wire.Loss{{Path: "logprobs", What: "no place for this field"}}, in.Lost)
}

func TestOpenAIChat_DecodeNamesWhatIsLost(t *testing.T) {
	in, err := wire.OpenAIChat{}.Decode([]byte(`{"messages":[
		{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"image_url","image_url":{"url":"https://x/y","detail":"low"}}]},
		{"role":"assistant","content":null,"reasoning_content":"hm","reasoning":"ha","reasoning_details":[7,{"type":"reasoning.text","text":"hm"}],"audio":{},"tool_calls":[{"id":"c","type":"function","extra_content":7,"x":1,"function":{"name":"f","arguments":"{}"}}]}]}`))
	require.NoError(t, err)
	paths := pathsOf(in.Lost)
	assert.Equal(t, []string{
		"messages[0].content[0].cache_control", "messages[0].content[1].image_url.detail",
		"messages[1].reasoning", "messages[1].reasoning_details[0]", "messages[1].tool_calls[0].extra_content", "messages[1].tool_calls[0].x", "messages[1].audio",
	}, paths)
}

// An unknown field of a message is kept with the message, and is not sent.
func TestDecode_KeepsUnknownFieldsInMeta(t *testing.T) {
	for name, tt := range map[string]struct {
		f    wire.Format
		data string
		path string
	}{
		"chat":      {wire.OpenAIChat{}, `{"messages":[{"role":"user","content":"a","ts":7,"nil":null,"id":"r1"}]}`, "messages[0]"},
		"one":       {wire.OpenAIChat{}, `{"role":"user","content":"a","ts":7,"id":"r1"}`, ""},
		"result":    {wire.OpenAIChat{}, `[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f"}}]},{"role":"tool","tool_call_id":"c","content":"a","id":"r1","ts":7}]`, "[1]"},
		"responses": {wire.OpenAIResponses{}, `{"input":[{"role":"user","content":"a","ts":7,"row":"r1"}]}`, "input[0]"},
		"anthropic": {wire.Anthropic{}, `{"messages":[{"role":"assistant","content":"a","ts":7,"row":"r1"}]}`, "messages[0]"},
		"gemini":    {wire.Gemini{}, `{"contents":[{"role":"user","parts":[{"text":"a"}],"ts":7,"id":"r1"}]}`, "contents[0]"},
		"converse":  {wire.Converse{}, `{"messages":[{"role":"user","content":[{"text":"a"}],"ts":7,"id":"r1"}]}`, "messages[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			in := mustDecode(t, tt.f, []byte(tt.data))
			m := in.Messages[len(in.Messages)-1]
			id := "id"
			if strings.Contains(tt.data, "row") {
				id = "row"
			}
			assert.JSONEq(t, `{"ts":7,"`+id+`":"r1"}`, m.Meta)
			dot := strings.TrimPrefix(tt.path+".", ".")
			assert.ElementsMatch(t, []wire.Loss{{Path: dot + "ts", What: "kept in Meta alone"}, {Path: dot + id, What: "kept in Meta alone"}}, in.Lost)
			req := mustEncode(t, tt.f, asSent(in.Messages))
			assert.NotContains(t, string(req.Body()), `"ts"`)
		})
	}
	in := mustDecode(t, wire.OpenAIChat{}, []byte(`{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"a","ts":7}}]}`))
	assert.Empty(t, in.Messages[0].Meta, "the provider's, not the application's")
	assert.Equal(t, []wire.Loss{{Path: "choices[0].message.ts", What: "no place for this field"}}, in.Lost)
}

// mustEncode returns the request of a snapshot, for which Encode may not fail.
func mustEncode(t testing.TB, f interface {
	Encode(s *convo.Snapshot) (wire.Request, error)
}, s *convo.Snapshot, about ...any) wire.Request {
	t.Helper()
	r, err := f.Encode(s)
	require.NoError(t, err, about...)
	return r
}

// mustDecode returns what f reads of data, for which Decode may not fail.
func mustDecode(t testing.TB, f interface {
	Decode(data []byte) (wire.Transcript, error)
}, data []byte, about ...any) wire.Transcript {
	t.Helper()
	in, err := f.Decode(data)
	require.NoError(t, err, about...)
	return in
}

// historyOf returns a History with messages.
func historyOf(t testing.TB, msgs ...convo.Message) *convo.History {
	t.Helper()
	h, err := convo.New(nil)
	require.NoError(t, err)
	mustAppend(t, h, msgs...)
	return h
}

// relaxedOf returns a History with messages that may have any order of roles.
func relaxedOf(t testing.TB, msgs ...convo.Message) *convo.History {
	t.Helper()
	h, err := convo.New(&convo.Options{Roles: convo.Relaxed()})
	require.NoError(t, err)
	mustAppend(t, h, msgs...)
	return h
}

// mustAppend appends messages, which the History may not refuse.
func mustAppend(t testing.TB, h *convo.History, msgs ...convo.Message) {
	t.Helper()
	_, err := h.Append(msgs...)
	require.NoError(t, err)
}

// restoredOf returns a History with the entries of a snapshot, which needs no repair.
func restoredOf(t testing.TB, s *convo.Snapshot, about ...any) *convo.History {
	t.Helper()
	h, err := convo.Restore(s, &convo.Options{Roles: convo.Relaxed()})
	require.NoError(t, err, about...)
	return h
}

// mustApply makes an edit, which the History may not refuse.
func mustApply(t testing.TB, h *convo.History, e convo.Edit) {
	t.Helper()
	_, err := h.Apply(h.Snapshot(), e)
	require.NoError(t, err)
}

// linesOf returns the system text and the messages of a request, one per line.
func linesOf(r wire.Request) string {
	var lines []string
	if r.System != nil {
		lines = append(lines, string(r.System))
	}
	for _, m := range r.Messages {
		lines = append(lines, string(m))
	}
	return strings.Join(lines, "\n")
}

// listed returns what was lost in words.
func listed[L fmt.Stringer](lost []L) (list []string) {
	for _, l := range lost {
		list = append(list, l.String())
	}
	return list
}

// pathsOf returns the places of what was lost.
func pathsOf(lost []wire.Loss) (paths []string) {
	for _, l := range lost {
		paths = append(paths, l.Path)
	}
	return paths
}

// rulesOf returns the rules that Check found broken.
func rulesOf(found []wire.Finding) (rules []string) {
	for _, x := range found {
		rules = append(rules, x.Rule)
	}
	return rules
}

// checkDecoded checks that what Decode reads of any data gives a valid request, if it is
// not empty.
func checkDecoded(t *testing.T, f wire.Format, data []byte) {
	in, err := f.Decode(data)
	if err != nil {
		require.Zero(t, in)
		return
	}
	r, err := f.Encode(restored(t, in))
	if err != nil {
		require.ErrorIs(t, err, wire.ErrEmpty)
		return
	}
	require.True(t, json.Valid(r.Body()), "%s", r.Body())
	require.Empty(t, faults(f, r.Body()), "%s", r.Body())
}

// faults returns the findings of a request but those of what its media hold, which in tests
// is often one letter.
func faults(f wire.Format, body []byte) []wire.Finding {
	return slices.DeleteFunc(f.Check(body), func(f wire.Finding) bool {
		return strings.HasPrefix(f.Rule, "image-") || strings.HasPrefix(f.Rule, "pdf-")
	})
}

// checkFindings checks that Check reports whole findings for any data.
func checkFindings(t *testing.T, f wire.Format, data []byte) {
	for _, x := range f.Check(data) {
		require.NotEmpty(t, x.Rule)
		require.NotEmpty(t, x.Fix)
	}
}

// decodeError returns the error of Decode for data that it refuses.
func decodeError(t testing.TB, f wire.Format, data string) *wire.DecodeError {
	t.Helper()
	in, err := f.Decode([]byte(data))
	wrong, ok := errors.AsType[*wire.DecodeError](err)
	require.True(t, ok, "%s: %v", data, err)
	assert.Zero(t, in, data)
	return wrong
}

// toolsOf returns tools as a format sends them.
func toolsOf(t testing.TB, f any, tools ...convo.Tool) json.RawMessage {
	t.Helper()
	sent, err := f.(wire.ToolWriter).Tools(tools...)
	require.NoError(t, err)
	return sent
}

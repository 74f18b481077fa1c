package wire_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// encoded returns the system text and the messages of a request, one in each line.
func encoded(t *testing.T, f wire.Format, msgs ...convo.Message) string {
	t.Helper()
	s := asSent(msgs)
	r := mustEncode(t, f, s)
	assert.Empty(t, f.Check(r.Body()))
	got := mustEncode(t, (&wire.Encoder{Format: f}), s)
	assert.Equal(t, string(r.Body()), string(got.Body()))
	return linesOf(r)
}

// Names derived from an id or from the content of a document.
var (
	derivedID   = regexp.MustCompile(`"toolu_[A-Za-z0-9]{24}"`)
	derivedName = regexp.MustCompile(`"document-[A-Za-z0-9]{8}"`)
)

// A mark is sent in its place.
func TestCacheMark_Places(t *testing.T) {
	short, long := wire.CacheMark(5*time.Minute), wire.CacheMark(6*time.Minute)
	call := convo.ToolCall{ID: "a", Name: "f", Arguments: "{}"}
	pdf := convo.Media{MIME: "application/pdf", Data: "eA=="}
	thought := convo.Reasoning{Text: "hm", Signature: "c2ln"}
	for _, tt := range []struct {
		name string
		f    wire.Format
		msgs []convo.Message
		want string
	}{
		{"Anthropic: system, user, result, call", wire.Anthropic{}, []convo.Message{
			{Role: convo.RoleSystem, Parts: []convo.Part{convo.Text("s"), long, convo.Text("t")}},
			convo.User("u", long, convo.Text("v")), says("anthropic", convo.Text("a"), call, short), results(convo.ToolResult{CallID: "a", Name: "f", Parts: []convo.Part{convo.Text("r"), short}}),
		}, `[{"type":"text","text":"s","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":"t"}]
{"role":"user","content":[{"type":"text","text":"u","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":"v"}]}
{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"a","name":"f","input":{},"cache_control":{"type":"ephemeral"}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r","cache_control":{"type":"ephemeral"}}]}`},
		{"Anthropic: inside a result, and in front of it", wire.Anthropic{}, []convo.Message{
			convo.User("u"), says("anthropic", call), results(convo.ToolResult{CallID: "a", Name: "f", Parts: []convo.Part{convo.Text("r"), short, convo.Text("s")}}),
			users(convo.Text(" "), short, convo.Text("v")), says("anthropic", call), results(convo.ToolResult{CallID: "a", Name: "f", Parts: []convo.Part{short, convo.Text("r")}}),
			convo.User("w"), says("anthropic", call), results(convo.ToolResult{CallID: "a", Name: "f", Parts: []convo.Part{short}}),
		}, `{"role":"user","content":[{"type":"text","text":"u"}]}
{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"r","cache_control":{"type":"ephemeral"}},{"type":"text","text":"s"}]},{"type":"text","text":"v"}]}
{"role":"assistant","content":[{"type":"tool_use","id":"ID","name":"f","input":{}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"ID","content":"r"},{"type":"text","text":"w"}]}
{"role":"assistant","content":[{"type":"tool_use","id":"ID","name":"f","input":{}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"ID","cache_control":{"type":"ephemeral"}}]}`},
		{"Anthropic: not on thinking, and not without anything before it", wire.Anthropic{}, []convo.Message{
			convo.User("u"), says("anthropic", convo.Text("a"), thought, short, call), convo.Result(call, "r"),
			says("anthropic", thought, short, convo.Text("b")), {Role: convo.RoleUser, Parts: []convo.Part{convo.Text(" "), short, convo.Text("v")}},
		}, `{"role":"user","content":[{"type":"text","text":"u"}]}
{"role":"assistant","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"tool_use","id":"a","name":"f","input":{}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]}
{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"b"}]}
{"role":"user","content":[{"type":"text","text":"v"}]}`},
		{"Anthropic: on a block of its own, and on a text with citations", wire.Anthropic{}, []convo.Message{
			users(block(`{"type":"document","title":"t","source":{"type":"file","file_id":"f"}}`), short),
			says("anthropic", convo.Text("a"), block(`{"citations":[{"type":"search_result_location","cited_text":"c","search_result_index":0,"source":"s","start_block_index":0,"end_block_index":1,"title":null}]}`), short), convo.User("u"),
		}, `{"role":"user","content":[{"type":"document","title":"t","source":{"type":"file","file_id":"f"},"cache_control":{"type":"ephemeral"}}]}
{"role":"assistant","content":[{"type":"text","text":"a","citations":[{"type":"search_result_location","cited_text":"c","search_result_index":0,"source":"s","start_block_index":0,"end_block_index":1,"title":null}],"cache_control":{"type":"ephemeral"}}]}
{"role":"user","content":[{"type":"text","text":"u"}]}`},
		{"Anthropic: on a message with the role system", wire.Anthropic{}, []convo.Message{
			users(convo.Text("u"), block(`{"role":"system","content":[{"type":"text","text":"s"}]}`), long), users(block(`{"role":"system","content":"t"}`), short), convo.Assistant("a"), convo.User("v"),
		}, `{"role":"user","content":[{"type":"text","text":"u"}]}
{"role":"system","content":[{"type":"text","text":"s","cache_control":{"type":"ephemeral","ttl":"1h"}}]}
{"role":"system","content":"t"}
{"role":"assistant","content":[{"type":"text","text":"a"}]}
{"role":"user","content":[{"type":"text","text":"v"}]}`},
		{"Converse: system, user, result, call", wire.Converse{}, []convo.Message{
			{Role: convo.RoleSystem, Parts: []convo.Part{convo.Text("s"), long, convo.Text("t")}},
			convo.User("u", long, convo.Text("v")), says("converse", convo.Text("a"), call, short), results(convo.ToolResult{CallID: "a", Name: "f", Parts: []convo.Part{convo.Text("r"), short, convo.Text("s")}}),
		}, `[{"text":"s"},{"cachePoint":{"type":"default","ttl":"1h"}},{"text":"t"}]
{"role":"user","content":[{"text":"u"},{"cachePoint":{"type":"default","ttl":"1h"}},{"text":"v"}]}
{"role":"assistant","content":[{"text":"a"},{"toolUse":{"toolUseId":"a","name":"f","input":{}}},{"cachePoint":{"type":"default"}}]}
{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"r"},{"text":"s"}]}},{"cachePoint":{"type":"default"}}]}`},
		{"Converse: not behind reasoning or documents", wire.Converse{}, []convo.Message{
			convo.User("u", pdf, short), says("converse", convo.Text("a"), thought, short, convo.Text("b")),
			convo.User("v"), says("converse", convo.Text("a"), thought, short), convo.User("w"), says("converse", thought, short), convo.User("x"),
		}, `{"role":"user","content":[{"text":"u"},{"cachePoint":{"type":"default"}},{"document":{"format":"pdf","name":"NAME","source":{"bytes":"eA=="}}}]}
{"role":"assistant","content":[{"text":"a"},{"cachePoint":{"type":"default"}},{"reasoningContent":{"reasoningText":{"text":"hm","signature":"c2ln"}}},{"text":"b"}]}
{"role":"user","content":[{"text":"v"}]}
{"role":"assistant","content":[{"text":"a"},{"cachePoint":{"type":"default"}}]}
{"role":"user","content":[{"text":"w"},{"text":"x"}]}`},
		{"Responses", wire.OpenAIResponses{Cache: true, Developer: true}, []convo.Message{
			{Role: convo.RoleSystem, Parts: []convo.Part{convo.Text("s"), long, convo.Text("t")}},
			convo.User("u", short, convo.Media{MIME: "image/png", URL: "https://a"}, short), {Role: convo.RoleAssistant, Parts: []convo.Part{convo.Text("a"), short, call, short}},
			results(convo.ToolResult{CallID: "a", Name: "f", Parts: []convo.Part{convo.Text("r"), short}}), convo.User("v"),
		}, `{"role":"developer","content":[{"type":"input_text","text":"s","prompt_cache_breakpoint":{"mode":"explicit"}}]}
{"role":"developer","content":"t"}
{"role":"user","content":[{"type":"input_text","text":"u","prompt_cache_breakpoint":{"mode":"explicit"}},{"type":"input_image","detail":"auto","image_url":"https://a","prompt_cache_breakpoint":{"mode":"explicit"}}]}
{"role":"assistant","content":"a"}
{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}
{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"r","prompt_cache_breakpoint":{"mode":"explicit"}}]}
{"role":"user","content":"v"}`},
		{"Responses: four of them, and the system text first", wire.OpenAIResponses{Cache: true, Developer: true}, []convo.Message{
			{Role: convo.RoleSystem, Parts: []convo.Part{convo.Text("s"), short, convo.Text("t"), short}},
			convo.User("u", short), convo.User("v", short), convo.User("w", short),
		}, `{"role":"developer","content":[{"type":"input_text","text":"s","prompt_cache_breakpoint":{"mode":"explicit"}}]}
{"role":"developer","content":[{"type":"input_text","text":"t","prompt_cache_breakpoint":{"mode":"explicit"}}]}
{"role":"user","content":[{"type":"input_text","text":"u"}]}
{"role":"user","content":[{"type":"input_text","text":"v","prompt_cache_breakpoint":{"mode":"explicit"}}]}
{"role":"user","content":[{"type":"input_text","text":"w","prompt_cache_breakpoint":{"mode":"explicit"}}]}`},
		{"other formats have none", wire.OpenAIChat{}, []convo.Message{convo.User("u", short)}, `{"role":"user","content":"u"}`},
		{"other formats have none, Gemini", wire.Gemini{}, []convo.Message{convo.User("u", short)}, `{"role":"user","parts":[{"text":"u"}]}`},
		{"other formats have none, Responses", wire.OpenAIResponses{}, []convo.Message{convo.User("u", short)}, `{"role":"user","content":"u"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := encoded(t, tt.f, tt.msgs...)
			got = derivedID.ReplaceAllString(got, `"ID"`)
			got = derivedName.ReplaceAllString(got, `"NAME"`)
			assert.Equal(t, tt.want, got)
		})
	}
}

// The requests are after the examples in
// https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching and
// https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html.
func TestCacheMark_DecodeReturnsMarks(t *testing.T) {
	for _, tt := range []struct {
		f       wire.Format
		request string
		want    []convo.Message
		lost    []string
	}{
		{wire.Anthropic{},
			`{"system":[{"type":"text","text":"You are an AI assistant."},{"type":"text","text":"<book>","cache_control":{"type":"ephemeral","ttl":"1h"}}],"messages":[{"role":"user","content":[{"type":"text","text":"Analyze it.","cache_control":{"type":"ephemeral"}}]}]}`,
			[]convo.Message{{Role: convo.RoleSystem, Parts: []convo.Part{convo.Text("You are an AI assistant."), convo.Text("<book>"), wire.CacheMark(time.Hour)}}, users(convo.Text("Analyze it."), wire.CacheMark(0))}, nil},
		{wire.Converse{},
			`{"system":[{"text":"Be brief."},{"cachePoint":{"type":"default","ttl":"1h"}}],"messages":[{"role":"user","content":[{"text":"Summarize it."},{"cachePoint":{"type":"default"}}]}]}`,
			[]convo.Message{{Role: convo.RoleSystem, Parts: []convo.Part{convo.Text("Be brief."), wire.CacheMark(time.Hour)}}, users(convo.Text("Summarize it."), wire.CacheMark(0))}, nil},
		{wire.Anthropic{},
			`{"messages":[{"role":"user","content":[{"type":"text","text":"u"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{},"cache_control":{"type":"ephemeral"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"r","cache_control":{"type":"ephemeral"}},{"type":"text","text":"s"}],"cache_control":{"type":"ephemeral"}}]}]}`,
			[]convo.Message{convo.User("u"), {Role: convo.RoleAssistant, Origin: convo.Origin{Format: "anthropic"}, Parts: []convo.Part{convo.ToolCall{ID: "a", Name: "f", Arguments: "{}"}, wire.CacheMark(0)}},
				results(convo.ToolResult{CallID: "a", Name: "f", Parts: []convo.Part{convo.Text("r"), wire.CacheMark(0), convo.Text("s"), wire.CacheMark(0)}})}, nil},
		{wire.Converse{},
			`{"messages":[{"role":"user","content":[{"text":"u"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"f","input":{}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"r"}]}},{"cachePoint":{"type":"default"}},{"text":"v"}]}]}`,
			[]convo.Message{convo.User("u"), {Role: convo.RoleAssistant, Origin: convo.Origin{Format: "converse"}, Parts: []convo.Part{convo.ToolCall{ID: "a", Name: "f", Arguments: "{}"}}},
				results(convo.ToolResult{CallID: "a", Name: "f", Parts: []convo.Part{convo.Text("r"), wire.CacheMark(0)}}), convo.User("v")}, nil},
		// https://platform.openai.com/docs/guides/prompt-caching
		{wire.OpenAIResponses{Cache: true},
			`{"input":[{"role":"user","content":[{"type":"input_text","text":"u","prompt_cache_breakpoint":{"mode":"explicit"}},{"type":"input_text","text":"v"}]}]}`,
			[]convo.Message{users(convo.Text("u"), wire.CacheMark(0), convo.Text("v"))}, nil},
		{wire.OpenAIResponses{Cache: true},
			`{"input":[{"role":"assistant","content":[{"type":"output_text","text":"u","prompt_cache_breakpoint":{"mode":"explicit"}}]},{"role":"user","content":[{"type":"input_text","text":"u","prompt_cache_breakpoint":7}]}]}`,
			nil, []string{"input[0].content[0].prompt_cache_breakpoint: a cache mark", "input[1].content[0].prompt_cache_breakpoint: a cache mark"}},
		// Marks that CacheMark cannot express, and marks that the API refuses.
		{wire.Anthropic{},
			`{"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral","ttl":"24h"}}],"messages":[{"role":"user","content":[{"type":"text","text":"","cache_control":{"type":"ephemeral"}},{"type":"text","text":"u","cache_control":{"type":"ephemeral","scope":"global"}}]},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s","cache_control":{"type":"ephemeral"}},{"type":"redacted_thinking","data":"d","cache_control":{"type":"ephemeral"}},{"type":"text","text":"a"}]}]}`,
			nil, []string{"system[0].cache_control: a cache mark", "messages[0].content[0].cache_control: a cache mark", "messages[0].content[1].cache_control: a cache mark",
				"messages[1].content[0].cache_control: a cache mark", "messages[1].content[1].cache_control: a cache mark"}},
		{wire.Converse{}, `{"messages":[{"role":"user","content":[{"cachePoint":{"type":"default"}},{"text":"u"},{"cachePoint":{"type":"new","ttl":"2h"}}]}]}`,
			[]convo.Message{convo.User("u")}, []string{"messages[0].content[0]: a cache mark", "messages[0].content[2]: a cache mark"}},
	} {
		in := mustDecode(t, tt.f, []byte(tt.request))
		assert.Equal(t, tt.lost, listed(in.Lost), tt.request)
		if tt.want != nil {
			assert.Equal(t, tt.want, in.Messages)
		}
		h := restoredOf(t, asSent(in.Messages))
		r := mustEncode(t, tt.f, h.Snapshot())
		if tt.lost == nil {
			assert.JSONEq(t, strings.ReplaceAll(tt.request, `,"ttl":"5m"`, ""), string(r.Body()))
		}
	}
}

// A request has at most four marks: first the caller's, those of the system text before
// those of messages and the newest first, and then the marks of the format.
func TestCacheMark_AtMostFour(t *testing.T) {
	mark, hour := wire.CacheMark(0), wire.CacheMark(time.Hour)
	system := func(marks int) convo.Message {
		m := convo.Message{Role: convo.RoleSystem}
		for i := range 6 {
			m.Parts = append(m.Parts, convo.Text(fmt.Sprint("s", i)))
			if i < marks {
				m.Parts = append(m.Parts, mark)
			}
		}
		return m
	}
	talk := func(marks int, mark convo.Part) (msgs []convo.Message) {
		for i := range 6 {
			m := convo.User(fmt.Sprint("u", i))
			if i < marks {
				m.Parts = append(m.Parts, mark)
			}
			msgs = append(msgs, m, convo.Assistant(fmt.Sprint("a", i)))
		}
		return append(msgs, convo.User("end"))
	}
	with := func(sys convo.Message, msgs []convo.Message) []convo.Message {
		return append([]convo.Message{sys}, msgs...)
	}
	for _, tt := range []struct {
		name string
		f    wire.Anthropic
		msgs []convo.Message
		want string // the texts with marks; a ! marks an hour
	}{
		{"those of the format", wire.Anthropic{Cache: true}, with(system(0), talk(0, mark)), "s5 u5 end"},
		{"for an hour", wire.Anthropic{Cache: true, CacheLifetime: time.Hour}, with(system(0), talk(0, mark)), "s5! u5! end!"},
		{"beside one of the caller", wire.Anthropic{Cache: true}, with(system(0), talk(1, mark)), "s5 u0 u5 end"},
		{"the system text gives way last", wire.Anthropic{Cache: true}, with(system(0), talk(2, mark)), "s5 u0 u1 end"},
		{"room for one", wire.Anthropic{Cache: true}, with(system(0), talk(3, mark)), "u0 u1 u2 end"},
		{"room for none", wire.Anthropic{Cache: true}, with(system(0), talk(4, mark)), "u0 u1 u2 u3"},
		{"the newest stay", wire.Anthropic{}, with(system(0), talk(6, mark)), "u2 u3 u4 u5"},
		{"those of the system text stay", wire.Anthropic{Cache: true}, with(system(2), talk(6, mark)), "s0 s1 u4 u5"},
		{"and of these the newest", wire.Anthropic{}, with(system(6), talk(6, mark)), "s2 s3 s4 s5"},
		{"one is behind the tools", wire.Anthropic{CacheTools: true}, with(system(1), talk(6, mark)), "s0 u4 u5"},
		{"behind the tools, of the format", wire.Anthropic{CacheTools: true, Cache: true}, with(system(0), talk(1, mark)), "s5 u0 end"},
		{"also before a newer one in a message", wire.Anthropic{Cache: true}, with(system(6), append(talk(0, mark), convo.Assistant("b"), users(convo.Text("last"), mark))), "s2 s3 s4 s5"},
		{"none twice, on messages", wire.Anthropic{Cache: true}, append(talk(0, mark), convo.Assistant("b"), users(convo.Text("last"), mark)), "end last"},
		{"a longer lifetime comes first", wire.Anthropic{Cache: true}, with(system(1), talk(1, hour)), "s0! s5! u0! end"},
		{"no longer one behind tools for 5 minutes", wire.Anthropic{CacheTools: true, Cache: true}, with(system(0), talk(1, hour)), "s5 u0 end"},
		{"behind tools for an hour", wire.Anthropic{CacheTools: true, CacheLifetime: time.Hour}, with(system(1), talk(1, hour)), "s0! u0!"},
		{"the assistant begins", wire.Anthropic{Cache: true}, []convo.Message{convo.Assistant("a"), convo.User("u")}, "earlier u"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := encoded(t, tt.f, tt.msgs...)
			got = strings.ReplaceAll(got, "[The earlier part of this conversation is not shown.]", "earlier")
			assert.Equal(t, tt.want, markedTexts(got, `"text":"`, `","cache_control":{"type":"ephemeral"}`, `","cache_control":{"type":"ephemeral","ttl":"1h"}`))
			f := wire.Converse{Cache: tt.f.Cache, CacheTools: tt.f.CacheTools, CacheLifetime: tt.f.CacheLifetime}
			got = encoded(t, f, tt.msgs...)
			got = strings.ReplaceAll(got, "[The earlier part of this conversation is not shown.]", "earlier")
			assert.Equal(t, tt.want, markedTexts(got, `"text":"`, `"},{"cachePoint":{"type":"default"}}`, `"},{"cachePoint":{"type":"default","ttl":"1h"}}`))
		})
	}
}

// markedTexts returns the texts between before and one of two kinds of marks.
func markedTexts(body, before, short, long string) string {
	var list []string
	for _, piece := range strings.Split(body, before)[1:] {
		text, rest, _ := strings.Cut(piece, `"`)
		switch rest = `"` + rest; {
		case strings.HasPrefix(rest, short):
			list = append(list, text)
		case strings.HasPrefix(rest, long):
			list = append(list, text+"!")
		}
	}
	return strings.Join(list, " ")
}

// With CacheTools, the tools end with a mark, which Check also reads.
func TestTools_EndWithACacheMark(t *testing.T) {
	for _, tt := range []struct {
		f, plain wire.Format
		want     string
	}{
		{wire.Anthropic{CacheTools: true}, wire.Anthropic{}, `[{"name":"a","input_schema":{"type":"object","properties":{}}},{"name":"b","input_schema":{"type":"object","properties":{}},"cache_control":{"type":"ephemeral"}}]`},
		{wire.Anthropic{CacheTools: true, CacheLifetime: time.Hour, StrictTools: true}, wire.Anthropic{StrictTools: true}, `[{"name":"a","input_schema":{"type":"object","properties":{},"required":[],"additionalProperties":false},"strict":true},{"name":"b","input_schema":{"type":"object","properties":{},"required":[],"additionalProperties":false},"strict":true,"cache_control":{"type":"ephemeral","ttl":"1h"}}]`},
		{wire.Converse{CacheTools: true}, wire.Converse{}, `{"tools":[{"toolSpec":{"name":"a","inputSchema":{"json":{"type":"object","properties":{}}}}},{"toolSpec":{"name":"b","inputSchema":{"json":{"type":"object","properties":{}}}}},{"cachePoint":{"type":"default"}}]}`},
		{wire.Converse{CacheTools: true, CacheLifetime: time.Hour}, wire.Converse{}, `{"tools":[{"toolSpec":{"name":"a","inputSchema":{"json":{"type":"object","properties":{}}}}},{"toolSpec":{"name":"b","inputSchema":{"json":{"type":"object","properties":{}}}}},{"cachePoint":{"type":"default","ttl":"1h"}}]}`},
	} {
		assert.Nil(t, toolsOf(t, tt.f))
		tools := toolsOf(t, tt.f, convo.Tool{Name: "a"}, convo.Tool{Name: "b"})
		assert.Equal(t, tt.want, string(tools))
		r := mustEncode(t, tt.f, asSent([]convo.Message{users(convo.Text("u"), wire.CacheMark(time.Hour))}))
		r.Tools = tools
		assert.Empty(t, tt.f.Check(r.Body()))

		// Marks on tools do not count for the prefix.
		plain := r
		plain.Tools = toolsOf(t, tt.plain, convo.Tool{Name: "a"}, convo.Tool{Name: "b"})
		assert.Equal(t, plain.Prefix(), r.Prefix())
		assert.Empty(t, wire.PrefixDiff(plain, r))
		assert.Equal(t, 1.0, wire.PrefixShare(plain, r))
		plain.Tools = toolsOf(t, tt.plain, convo.Tool{Name: "a"})
		assert.NotEqual(t, plain.Prefix(), r.Prefix())
		assert.Equal(t, `the tool "b" is new`, wire.PrefixDiff(plain, r))
	}
}

// The prefix of a request stays the same when marks are added or removed, or change their
// lifetime.
func TestPrefix_MarksDoNotCount(t *testing.T) {
	call := convo.ToolCall{ID: "a", Name: "f", Arguments: `{"cache_control":{"type":"ephemeral"}}`}
	talk := func(mark ...convo.Part) []convo.Message {
		with := func(parts ...convo.Part) []convo.Part { return append(parts, mark...) }
		return []convo.Message{
			{Role: convo.RoleSystem, Parts: append(with(convo.Text("s")), convo.Text("t"))},
			{Role: convo.RoleUser, Parts: append(with(convo.Text("u")), convo.Text("v"))},
			{Role: convo.RoleAssistant, Parts: with(call)},
			results(convo.ToolResult{CallID: "a", Name: "f", Parts: append(with(append(with(convo.Text("r")), convo.Text("s"))...), convo.Text("t"))}),
		}
	}
	for _, f := range []wire.Format{wire.Anthropic{}, wire.Anthropic{Cache: true}, wire.Converse{}} {
		var list []wire.Request
		for _, msgs := range [][]convo.Message{talk(), talk(wire.CacheMark(0)), talk(wire.CacheMark(time.Hour))} {
			list = append(list, mustEncode(t, f, asSent(msgs)))
		}
		assert.NotEqual(t, string(list[0].Body()), string(list[1].Body()))
		assert.NotEqual(t, string(list[1].Body()), string(list[2].Body()))
		for _, a := range list {
			for _, b := range list {
				assert.Equal(t, a.Prefix(), b.Prefix())
				assert.Empty(t, wire.PrefixDiff(a, b))
				assert.Equal(t, 1.0, wire.PrefixShare(a, b))
			}
		}
		other := talk(wire.CacheMark(0))
		other[1].Parts[0] = convo.Text("w")
		r := mustEncode(t, f, asSent(other))
		assert.Equal(t, "block 0 of message 0 has changed", wire.PrefixDiff(list[0], r))
	}
}

// If two marks are in one place, the longer lifetime counts, even if the second mark
// arrives with a later message. Without that message, the first mark is unchanged.
func TestCacheMark_TwoInOnePlace(t *testing.T) {
	short, long := wire.CacheMark(0), wire.CacheMark(time.Hour)
	empty := map[string]convo.Part{"anthropic": block(`{"type":"text","text":" "}`), "converse": convo.Opaque{Format: "converse", JSON: `{"citationsContent":{"citations":[]}}`}}
	for name, f := range map[string]wire.Format{"anthropic": wire.Anthropic{}, "converse": wire.Converse{}} {
		for _, marks := range [][]convo.Part{{short, long}, {long, short}} {
			got := encoded(t, f, users(append([]convo.Part{convo.Text("u")}, marks...)...))
			assert.Equal(t, 1, strings.Count(got, "default")+strings.Count(got, "ephemeral"))
			assert.Contains(t, got, `"ttl":"1h"`)
		}
		h := relaxedOf(t, users(convo.Text("u"), short, convo.Text("v"), short))
		one := h.Snapshot()
		mustAppend(t, h, users(empty[name], long))
		e := &wire.Encoder{Format: f}
		for _, s := range []*convo.Snapshot{one, h.Snapshot(), one} {
			requireSameBytes(t, f, e, s)
			got := mustEncode(t, e, s)
			assert.Equal(t, s != one && name == "anthropic", strings.Contains(string(got.Body()), `"ttl":"1h"`), string(got.Body()))
		}
	}
}

// The same in values that are lists even without marks.
func TestPrefix_BreakpointsDoNotCount(t *testing.T) {
	call, image := convo.ToolCall{ID: "a", Name: "f", Arguments: "{}"}, convo.Media{MIME: "image/png", URL: "https://a"}
	f := wire.OpenAIResponses{Cache: true}
	talk := func(text string, mark ...convo.Part) wire.Request {
		with := func(parts ...convo.Part) []convo.Part { return append(parts, mark...) }
		r, err := f.Encode(asSent([]convo.Message{users(append(with(convo.Text("u")), with(image)...)...), convo.Assistant("", call),
			results(convo.ToolResult{CallID: "a", Name: "f", Parts: append(with(convo.Text(text)), with(image)...)})}))
		require.NoError(t, err)
		return r
	}
	a, b := talk("r"), talk("r", wire.CacheMark(0))
	assert.NotEqual(t, string(a.Body()), string(b.Body()))
	assert.Empty(t, wire.PrefixDiff(a, b))
	assert.Equal(t, 1.0, wire.PrefixShare(b, a))
	assert.Equal(t, "block 0 of message 2 has changed", wire.PrefixDiff(a, talk("s", wire.CacheMark(0))))
}

// The marks in the parameters and those of a request are together no more than the provider
// takes, in an order that it takes.
func TestWithParams_CacheMarks(t *testing.T) {
	mark := func(key string, lifetime time.Duration) string {
		if lifetime > 5*time.Minute {
			return `"` + key + `":{"type":"x","ttl":"1h"}`
		}
		return `"` + key + `":{"type":"x"}`
	}
	lifetimes := [][]time.Duration{nil, {0}, {time.Hour}, {time.Hour, 0}, {0, 0, 0}, {time.Hour, time.Hour, time.Hour, time.Hour}}
	for _, params := range lifetimes {
		for _, end := range [][]time.Duration{nil, {0}, {time.Hour}} { // the cache_control of the request
			for _, own := range lifetimes {
				for _, lifetime := range []time.Duration{0, time.Hour} {
					if len(params)+len(end) > 4 || len(end) > 0 && end[0] > 0 && slices.Contains(params, 0) {
						continue // the parameters alone are wrong
					}
					h, err := convo.New(nil)
					require.NoError(t, err)
					require.NoError(t, h.SetTools(convo.Tool{Name: "read"}))
					_, err = h.Append(convo.System("guide"), convo.User("q"))
					require.NoError(t, err)
					for _, d := range own {
						_, err = h.Append(convo.Assistant("a"), convo.User("q", wire.CacheMark(d)))
						require.NoError(t, err)
					}
					for _, cacheTools := range []bool{false, true} {
						name := fmt.Sprint(params, end, own, lifetime, cacheTools)
						var tools, points []string
						for i, d := range params {
							tools = append(tools, fmt.Sprintf(`{"name":"t%d","input_schema":{"type":"object"},%s}`, i, mark("cache_control", d)))
							points = append(points, "{"+mark("cachePoint", d)+"}")
						}
						all := map[string]any{"tools": json.RawMessage("[" + strings.Join(tools, ",") + "]")}
						if len(end) > 0 {
							all["cache_control"] = json.RawMessage("{" + strings.TrimPrefix(mark("", end[0]), `"":{`))
						}
						f := wire.Anthropic{Cache: true, CacheTools: cacheTools, CacheLifetime: lifetime}.WithParams(all)
						req, err := f.Encode(h.Snapshot())
						require.NoError(t, err)
						own, err := f.Tools(h.Snapshot().Tools()...)
						require.NoError(t, err)
						req.Tools = json.RawMessage("[" + strings.Join(append(tools, string(own[1:len(own)-1])), ",") + "]")
						delete(all, "tools")
						all["model"], all["max_tokens"] = "m", 9
						body, err := req.With(all)
						require.NoError(t, err)
						checkMarks(t, name, f, body)
						if len(end) > 0 && end[0] > 0 {
							assert.Equal(t, strings.Count(string(body), `"cache_control"`), strings.Count(string(body), `"ttl":"1h"`), "%s: %s", name, body)
						}

						if len(end) == 0 {
							c := wire.Converse{Cache: true, CacheTools: cacheTools, CacheLifetime: lifetime}.WithParams(map[string]any{"toolConfig": map[string]any{"tools": json.RawMessage("[" + strings.Join(points, ",") + "]")}})
							req, err = c.Encode(h.Snapshot())
							require.NoError(t, err)
							own, err = c.Tools(h.Snapshot().Tools()...)
							require.NoError(t, err)
							list := strings.TrimSuffix(strings.TrimPrefix(string(own), `{"tools":[`), "]}")
							req.Tools = json.RawMessage(`{"tools":[` + strings.Join(append(points, list), ",") + "]}")
							checkMarks(t, name, c, req.Body())
						}
					}
				}
			}
		}
	}
}

// checkMarks checks that a request has at most four marks, in an order that the provider takes.
func checkMarks(t *testing.T, name string, f wire.Format, body []byte) {
	t.Helper()
	for _, finding := range f.Check(body) {
		if strings.HasPrefix(finding.Rule, "cache-") {
			t.Errorf("%s: %v: %s", name, finding, body)
		}
	}
	if n := strings.Count(string(body), `"cache_control"`); n > 4 {
		t.Errorf("%s: %d marks: %s", name, n, body)
	}
}

// A request says how long the provider keeps its messages, by their marks or as it documents.
func TestRequest_CacheTTL(t *testing.T) {
	const short, long, half, day = 5 * time.Minute, time.Hour, 30 * time.Minute, 24 * time.Hour
	marked := func(lifetime time.Duration) convo.Message { return users(convo.Text("b"), wire.CacheMark(lifetime)) }
	system := convo.Message{Role: convo.RoleSystem, Parts: []convo.Part{convo.Text("s"), wire.CacheMark(time.Hour)}}
	params := func(ttl string) map[string]any {
		return map[string]any{"cache_control": map[string]any{"type": "ephemeral", "ttl": ttl}}
	}
	tools := map[string]any{"tools": []any{map[string]any{"name": "t", "cache_control": map[string]any{"type": "ephemeral", "ttl": "1h"}}}}
	for name, tt := range map[string]struct {
		f    wire.Format
		last convo.Message
		want time.Duration
	}{
		"anthropic, no mark":            {wire.Anthropic{}, convo.User("b"), 0},
		"anthropic":                     {wire.Anthropic{Cache: true}, convo.User("b"), short},
		"anthropic, for an hour":        {wire.Anthropic{Cache: true, CacheLifetime: long}, convo.User("b"), long},
		"anthropic, marked":             {wire.Anthropic{}, marked(0), short},
		"anthropic, marked for an hour": {wire.Anthropic{Cache: true}, marked(long), long},
		"anthropic, the tools alone":    {wire.Anthropic{CacheTools: true}.WithParams(tools), convo.User("b"), 0},
		"anthropic, in the parameters":  {wire.Anthropic{}.WithParams(params("5m")), convo.User("b"), short},
		"anthropic, there for an hour":  {wire.Anthropic{}.WithParams(params("1h")), convo.User("b"), long},
		"converse, no mark":             {wire.Converse{}, convo.User("b"), 0},
		"converse":                      {wire.Converse{Cache: true}, convo.User("b"), short},
		"converse, for an hour":         {wire.Converse{Cache: true, CacheLifetime: long}, convo.User("b"), long},
		"gemini":                        {wire.Gemini{Model: "gemini-3.8-flash"}, convo.User("b"), day},
		"chat":                          {wire.OpenAIChat{Model: "gpt-5.5"}, convo.User("b"), day},
		"chat, since gpt-5.6":           {wire.OpenAIChat{Model: "openai/gpt-6.1-sol"}, convo.User("b"), half},
		"chat, another provider":        {wire.OpenAIChat{Model: "mistral-large", Dialect: wire.Mistral}, convo.User("b"), 0},
		"chat, before there was one":    {wire.OpenAIChat{Model: "gpt-3.5-turbo"}, convo.User("b"), 0},
		"chat, no model":                {wire.OpenAIChat{}, convo.User("b"), 0},
		"responses":                     {wire.OpenAIResponses{Model: "o3"}, convo.User("b"), day},
		"responses, since gpt-5.6":      {wire.OpenAIResponses{Model: "gpt-5.6"}, convo.User("b"), half},
	} {
		t.Run(name, func(t *testing.T) {
			s := asSent([]convo.Message{system, convo.User("a"), convo.Assistant("ok"), tt.last})
			assert.Equal(t, tt.want, mustEncode(t, tt.f, s).CacheTTL)
			assert.Equal(t, tt.want, mustEncode(t, &wire.Encoder{Format: tt.f}, s).CacheTTL)
		})
	}
}

package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// claude is the maker of the assistant messages in most tests.
var claude = convo.Origin{Format: "anthropic", Model: "claude"}

func claudeSays(parts ...convo.Part) convo.Message {
	return convo.Message{Role: convo.RoleAssistant, Origin: claude, Parts: parts}
}

func users(parts ...convo.Part) convo.Message {
	return convo.Message{Role: convo.RoleUser, Parts: parts}
}

func results(results ...convo.Part) convo.Message {
	return convo.Message{Role: convo.RoleTool, Parts: results}
}

// says returns an answer of a model m, in a format.
func says(format string, parts ...convo.Part) convo.Message {
	return convo.Message{Role: convo.RoleAssistant, Origin: convo.Origin{Format: format, Model: "m"}, Parts: parts}
}

func opaque(format, json string) convo.Part { return convo.Opaque{Format: format, JSON: json} }

func block(json string) convo.Part { return convo.Opaque{Format: "anthropic", JSON: json} }

var (
	signed   = convo.Reasoning{Text: "hm", Signature: "sig"}
	redacted = convo.Reasoning{Encrypted: "data"}
	callA    = convo.ToolCall{ID: "a", Name: "look", Arguments: `{ "n": 1.0, "id": 12345678901234567890 }`}
	callB    = convo.ToolCall{ID: "b", Name: "look"}
)

func TestAnthropic_EncodeWritesWhatTheAPIAccepts(t *testing.T) {
	const (
		hi      = `{"role":"user","content":[{"type":"text","text":"hi"}]}`
		earlier = `{"role":"user","content":[{"type":"text","text":"[The earlier part of this conversation is not shown.]"}]}`
		goOn    = `{"role":"user","content":[{"type":"text","text":"[Continue.]"}]}`
		useA    = `{"type":"tool_use","id":"a","name":"look","input":{ "n": 1.0, "id": 12345678901234567890 }}`
		useB    = `{"type":"tool_use","id":"b","name":"look","input":{}}`
		inline  = `{"role":"system","content":"now this"}`
	)
	ofA := func(r convo.ToolResult) []convo.Message {
		r.CallID = "a"
		return []convo.Message{convo.User("hi"), claudeSays(callA), results(r)}
	}
	resultA := func(rest string) string {
		return hi + `,{"role":"assistant","content":[` + useA + `]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"` + rest + `}]}`
	}
	said := func(blocks string) string { return hi + `,{"role":"assistant","content":[` + blocks + `]}` }
	for _, test := range []struct {
		name   string
		format wire.Anthropic
		msgs   []convo.Message
		system string
		want   string
	}{
		{name: "system text is apart", msgs: []convo.Message{convo.System("one"), convo.System("two"), convo.User("hi")},
			system: `[{"type":"text","text":"one"},{"type":"text","text":"two"}]`, want: hi},
		{name: "only system text", msgs: []convo.Message{convo.System("one")}, system: `[{"type":"text","text":"one"}]`, want: goOn},
		{name: "assistant first", msgs: []convo.Message{claudeSays(convo.Text("x"))}, want: earlier + `,{"role":"assistant","content":[{"type":"text","text":"x"}]}`},
		{name: "users are one", msgs: []convo.Message{convo.User("hi"), convo.User("\n"), convo.User("there")},
			want: `{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"there"}]}`},
		{name: "results in call order, then the user", msgs: []convo.Message{convo.User("hi"), claudeSays(callA, callB, convo.Text("look")),
			convo.Result(callB, "2"), convo.Result(callA, "1"), convo.User("and?")},
			want: said(`{"type":"text","text":"look"},`+useA+","+useB) + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b","content":"2"},{"type":"text","text":"and?"}]}`},
		{name: "open call", msgs: []convo.Message{convo.User("hi"), claudeSays(callA)}, want: resultA(`,"content":"no result","is_error":true`)},
		{name: "empty result", msgs: ofA(convo.ToolResult{}), want: resultA("")},
		{name: "empty error", msgs: ofA(convo.ToolResult{IsError: true, Parts: []convo.Part{convo.Text(" ")}}), want: resultA(`,"content":"unknown error","is_error":true`)},
		{name: "image in a result", msgs: ofA(convo.ToolResult{Parts: []convo.Part{convo.Text("it"), convo.NewMedia("image/png", []byte("x"))}}),
			want: resultA(`,"content":[{"type":"text","text":"it"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}}]`)},
		{name: "image in an error", msgs: ofA(convo.ToolResult{IsError: true, Parts: []convo.Part{convo.NewMedia("image/png", []byte("x")), block(`{"type":"tool_reference","tool_name":"x"}`)}}),
			want: resultA(`,"content":"[image/png, not shown]","is_error":true`)},
		{name: "opaque in a result", msgs: ofA(convo.ToolResult{Parts: []convo.Part{block(`{"type":"tool_reference","tool_name":"x"}`)}}),
			want: resultA(`,"content":[{"type":"tool_reference","tool_name":"x"}]`)},
		{name: "media of the user", msgs: []convo.Message{users(convo.Media{URL: "https://x/y"}, convo.Media{MIME: "application/pdf", URL: "https://x/z"}, convo.NewMedia("text/markdown", []byte("# a")),
			convo.NewMedia("audio/wav", []byte("x")), convo.Media{MIME: "image/png", URL: "file:///x"}, convo.NewMedia("image/jpg", []byte("x")), convo.Media{URL: "data:image/gif;base64,eA=="})},
			want: `{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x/y"}},{"type":"document","source":{"type":"url","url":"https://x/z"}},` +
				`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"# a"}},{"type":"text","text":"[audio/wav, not shown]"},{"type":"text","text":"[image/png at file:///x]"},` +
				`{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"eA=="}},{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"eA=="}}]}`},
		{name: "media of the assistant", msgs: []convo.Message{convo.User("hi"), claudeSays(convo.NewMedia("image/png", []byte("x")))}, want: said(`{"type":"text","text":"[image/png, not shown]"}`)},
		{name: "own thinking in place", msgs: []convo.Message{convo.User("hi"), claudeSays(signed, convo.Text("x"), redacted, convo.Text("y"))},
			want: said(`{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"text","text":"x"},{"type":"redacted_thinking","data":"data"},{"type":"text","text":"y"}`)},
		{name: "thinking to its model", format: wire.Anthropic{Model: "claude"}, msgs: []convo.Message{convo.User("hi"), claudeSays(signed, convo.Text("x"))},
			want: said(`{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"text","text":"x"}`) + "," + goOn},
		{name: "thinking to another model", format: wire.Anthropic{Model: "other"}, msgs: []convo.Message{convo.User("hi"), claudeSays(signed, convo.Text("x"))}, want: said(`{"type":"text","text":"x"}`)},
		{name: "thinking without a signature", msgs: []convo.Message{convo.User("hi"), claudeSays(convo.Reasoning{Text: "hm"}, convo.Text("x"))}, want: said(`{"type":"text","text":"x"}`)},
		{name: "thinking that nothing follows", msgs: []convo.Message{convo.User("hi"), claudeSays(convo.Text("x "), signed)}, want: said(`{"type":"text","text":"x"}`)},
		{name: "nothing but thinking", msgs: []convo.Message{convo.User("hi"), claudeSays(signed), convo.User("there")},
			want: `{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"there"}]}`},
		{name: "an answer in pieces", format: wire.Anthropic{Seals: wire.SealsUnchecked}, msgs: []convo.Message{convo.User("hi"), claudeSays(signed), claudeSays(convo.Text("x"))},
			want: said(`{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"text","text":"x"}`)},
		{name: "assistants stay two", msgs: []convo.Message{convo.User("hi"), claudeSays(convo.Text("x")), claudeSays(convo.Text("y"))},
			want: said(`{"type":"text","text":"x"}`) + `,{"role":"assistant","content":[{"type":"text","text":"y"}]}`},
		{name: "space at the end of an answer", msgs: []convo.Message{convo.User("hi"), claudeSays(convo.Text("x\n"), convo.Text(" "), convo.Text("y \n")), convo.User("z ")},
			want: said(`{"type":"text","text":"x\n"},{"type":"text","text":"y"}`) + `,{"role":"user","content":[{"type":"text","text":"z "}]}`},
		{name: "user last", format: wire.Anthropic{UserLast: true}, msgs: []convo.Message{convo.User("hi"), claudeSays(convo.Text("x"))},
			want: said(`{"type":"text","text":"x"}`) + "," + goOn},
		{name: "user last, but the turn is paused", format: wire.Anthropic{UserLast: true}, msgs: []convo.Message{convo.User("hi"), claudeSays(block(`{"type":"server_tool_use","id":"s"}`))},
			want: said(`{"type":"server_tool_use","id":"s"}`)},
		{name: "opaque blocks", msgs: []convo.Message{users(convo.Text("hi")), claudeSays(block(`{"type":"server_tool_use", "id":"s"}`), block(`{"type":"web_search_tool_result","tool_use_id":"s","cache_control":{}}`), convo.Text("x"))},
			want: said(`{"type":"server_tool_use","id":"s"},{"type":"web_search_tool_result","tool_use_id":"s"},{"type":"text","text":"x"}`)},
		{name: "opaque blocks that the API does not take", msgs: []convo.Message{convo.User("hi", block(`[1]`), block(`{"x":1}`), block(`{"type":"tool_result"}`), block(`{"type":"text","text":" "}`), convo.Opaque{Format: "gemini", JSON: `{"type":"x"}`}),
			claudeSays(convo.Text("x"), block(`{"type":"web_search_tool_result","tool_use_id":"gone"}`))}, want: said(`{"type":"text","text":"x"}`)},
		{name: "system message among the others", msgs: []convo.Message{convo.User("hi"), users(block(inline)), claudeSays(convo.Text("x"))},
			want: hi + "," + inline + `,{"role":"assistant","content":[{"type":"text","text":"x"}]}`},
		{name: "system message where it may not be", msgs: []convo.Message{users(block(inline)), claudeSays(convo.Text("x")), users(block(inline)), convo.User("hi")},
			want: earlier + "," + inline + `,{"role":"assistant","content":[{"type":"text","text":"x"}]},` + goOn + "," + inline + `,{"role":"assistant","content":[{"type":"text","text":"[No answer.]"}]},` + hi},
		{name: "names", msgs: []convo.Message{convo.User("hi"), claudeSays(convo.ToolCall{ID: "a", Name: "odd name!"}, convo.ToolCall{ID: "b", Name: strings.Repeat("n", 128)})},
			want: said(`{"type":"tool_use","id":"a","name":"odd_20name_21_xddabd191","input":{}},{"type":"tool_use","id":"b","name":"`+strings.Repeat("n", 128)+`","input":{}}`) +
				`,{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"no result","is_error":true},{"type":"tool_result","tool_use_id":"b","content":"no result","is_error":true}]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := mustEncode(t, test.format, asSent(test.msgs))
			assert.Equal(t, test.system, string(r.System))
			assert.Equal(t, "["+test.want+"]", "["+string(bytes.Join(asBytes(r.Messages), []byte(",")))+"]")
			assert.Empty(t, faults(test.format, r.Body()))
		})
	}
	for _, nothing := range [][]convo.Message{nil, {convo.User(" ")}, {claudeSays(signed)}} {
		_, err := wire.Anthropic{}.Encode(asSent(nothing))
		assert.ErrorIs(t, err, wire.ErrEmpty)
	}
}

func asBytes(list []json.RawMessage) [][]byte {
	var out [][]byte
	for _, raw := range list {
		out = append(out, raw)
	}
	return out
}

// Ids that the API does not accept, or that occurred before, are replaced in
// the call and in its result.
func TestAnthropic_EncodeReplacesInvalidAndRepeatedIDs(t *testing.T) {
	again := convo.ToolCall{ID: "a", Name: "look"}
	odd := convo.ToolCall{ID: "a b", Name: "look"}
	msgs := []convo.Message{convo.User("hi"), claudeSays(again), convo.Result(again, "1"), claudeSays(again, odd), convo.Result(odd, "3"), convo.Result(again, "2")}
	r := mustEncode(t, wire.Anthropic{}, asSent(msgs))
	in := mustDecode(t, wire.Anthropic{}, r.Body())
	calls := append(in.Messages[1].ToolCalls(), in.Messages[3].ToolCalls()...)
	answers := append(in.Messages[2].ToolResults(), in.Messages[4].ToolResults()...)
	require.Len(t, calls, 3)
	assert.Equal(t, "a", calls[0].ID)
	for i, c := range calls {
		assert.Equal(t, c.ID, answers[i].CallID)
		assert.Equal(t, fmt.Sprint(i+1), answers[i].Text())
		assert.Regexp(t, `^[a-zA-Z0-9_-]+$`, c.ID)
	}
	assert.NotEqual(t, calls[0].ID, calls[1].ID)
}

// Thinking is sent before the tag that names the author.
func TestAnthropic_EncodePutsThinkingBeforeTheAuthor(t *testing.T) {
	h := historyOf(t)
	guest := claudeSays(signed, convo.Text("x"), callA)
	guest.Author = "guest"
	h.Append(convo.User("hi"), guest)
	r := mustEncode(t, wire.Anthropic{Seals: wire.SealsUnchecked}, h.Snapshot())
	assert.False(t, r.NoThinking)
	in := mustDecode(t, wire.Anthropic{}, r.Messages[1])
	parts := in.Messages[0].Parts
	require.Len(t, parts, 5)
	assert.Equal(t, signed, parts[0])
	assert.Contains(t, parts[1], "guest")
	assert.Equal(t, convo.Text("x"), parts[2])
}

func TestAnthropic_EncodeReportsLostThinking(t *testing.T) {
	answer := convo.Result(callA, "1")
	thought := claudeSays(signed, callA)
	plain := claudeSays(callA)
	other := convo.Message{Role: convo.RoleAssistant, Origin: convo.Origin{Format: "openai-chat"}, Parts: []convo.Part{callA}}
	unknown := convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{callA}}
	hi := convo.User("hi")
	for _, test := range []struct {
		name   string
		format wire.Anthropic
		msgs   []convo.Message
		drop   []convo.ID
		want   bool
	}{
		{name: "in place", msgs: []convo.Message{hi, thought, answer}},
		{name: "in place, and none later", msgs: []convo.Message{hi, thought, answer, plain, answer}},
		{name: "redacted", msgs: []convo.Message{hi, claudeSays(redacted, callA), answer}},
		{name: "never any", msgs: []convo.Message{hi, plain, answer}},
		{name: "none at first, as the model chose", msgs: []convo.Message{hi, plain, answer, thought, answer}},
		{name: "none in this turn", msgs: []convo.Message{hi, thought, answer, claudeSays(convo.Text("x")), hi, plain, answer}},
		{name: "first exchange dropped", msgs: []convo.Message{hi, thought, answer, plain, answer}, drop: []convo.ID{2, 3}, want: true},
		{name: "first exchange dropped, the next begins with thinking", format: wire.Anthropic{Seals: wire.SealsUnchecked}, msgs: []convo.Message{hi, thought, answer, thought, answer}, drop: []convo.ID{2, 3}},
		{name: "the same with a model that is not known", msgs: []convo.Message{hi, thought, answer, thought, answer}, drop: []convo.ID{2, 3}, want: true},
		{name: "the same with a model that checks", format: wire.Anthropic{Seals: wire.SealsChecked}, msgs: []convo.Message{hi, thought, answer, thought, answer}, drop: []convo.ID{2, 3}},
		{name: "the same behind a system message", format: wire.Anthropic{Seals: wire.SealsUnchecked}, msgs: []convo.Message{hi, users(block(`{"role":"system","content":"now"}`)), thought, answer, thought, answer}, drop: []convo.ID{3, 4}},
		{name: "an earlier turn dropped", msgs: []convo.Message{hi, thought, answer, claudeSays(convo.Text("x")), hi, plain, answer}, drop: []convo.ID{1, 2, 3, 4}},
		{name: "the turn is over", msgs: []convo.Message{hi, thought, answer, claudeSays(convo.Text("x")), hi}, drop: []convo.ID{2, 3}},
		{name: "another model", format: wire.Anthropic{Model: "other"}, msgs: []convo.Message{hi, thought, answer}, want: true},
		{name: "another format", msgs: []convo.Message{hi, other, answer, thought, answer}, want: true},
		{name: "no user message", format: wire.Anthropic{Model: "other"}, msgs: []convo.Message{thought, answer}, want: true},
		{name: "no signature", msgs: []convo.Message{hi, claudeSays(convo.Reasoning{Text: "hm"}, callA), answer}, want: true},
		{name: "nobody knows who, and no reasoning", msgs: []convo.Message{hi, unknown, answer}},
		{name: "nobody knows who, and reasoning elsewhere", msgs: []convo.Message{hi, unknown, answer, thought, answer}, want: true},
		{name: "user after the results", msgs: []convo.Message{hi, thought, answer, plain, answer, hi}, drop: []convo.ID{2, 3}, want: true},
		{name: "system messages after that", format: wire.Anthropic{Model: "other"}, msgs: []convo.Message{hi, thought, answer, hi, users(block(`{"role":"system","content":"now"}`)), users(block(`{"role":"system","content":"and now"}`))}, want: true},
		{name: "assistant last", format: wire.Anthropic{Model: "other"}, msgs: []convo.Message{hi, claudeSays(signed, convo.Text("x"))}, want: true},
		{name: "marker last", format: wire.Anthropic{Model: "other", UserLast: true}, msgs: []convo.Message{hi, claudeSays(signed, convo.Text("x"))}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := relaxedOf(t, test.msgs...)
			if test.drop != nil {
				mustApply(t, h, convo.Edit{Drop: test.drop})
			}
			r := mustEncode(t, test.format, h.Snapshot())
			assert.Equal(t, test.want, r.NoThinking, "%s", r.Body())
			if !test.want {
				return
			}
			// With thinking on, Check refuses the request, except if a user message
			// follows the results, because the behaviour of the API is not known there.
			body := append(bytes.TrimSuffix(r.Body(), []byte("}")), `,"thinking":{"type":"enabled","budget_tokens":1024}}`...)
			if found := test.format.Check(body); h.Snapshot().Messages()[len(h.Snapshot().Messages())-1].Role != convo.RoleUser {
				require.Len(t, found, 1)
				assert.Equal(t, "thinking-first", found[0].Rule)
			}
		})
	}
}

func TestAnthropic_EncodeSetsCacheMarks(t *testing.T) {
	f := wire.Anthropic{Cache: true}
	// encode returns the contents of the blocks with cache marks.
	encode := func(msgs ...convo.Message) (marked []string) {
		cached := mustEncode(t, f, asSent(msgs))
		plain := mustEncode(t, wire.Anthropic{}, asSent(msgs))
		assert.Equal(t, 1.0, wire.PrefixShare(cached, plain), "marks are all that differs")
		assert.Empty(t, f.Check(cached.Body()))
		body := readJSON(t, cached.Body())
		lists := []any{map[string]any{"content": body["system"]}}
		for _, m := range append(lists, body["messages"].([]any)...) {
			for _, b := range contentList(m.(map[string]any)["content"]) {
				if b := b.(map[string]any); b["cache_control"] != nil {
					assert.Equal(t, map[string]any{"type": "ephemeral"}, b["cache_control"])
					marked = append(marked, fmt.Sprint(b["text"], b["content"]))
				}
			}
		}
		return marked
	}
	file := block(`{"type":"container_upload","file_id":"f"}`)
	msgs := []convo.Message{convo.System("one"), convo.System("two"), convo.User("q1"), claudeSays(convo.Text("a1")), convo.User("q2"),
		claudeSays(callA), convo.Result(callA, "r1"), claudeSays(callB), convo.Result(callB, "r2")}
	for _, test := range []struct {
		name string
		msgs []convo.Message
		want []string
	}{
		{"newest two", msgs, []string{"two<nil>", "<nil>r1", "<nil>r2"}},
		{"one less", msgs[:7], []string{"two<nil>", "q2<nil>", "<nil>r1"}},
		{"the answer to an open call will change", msgs[:8], []string{"two<nil>", "q2<nil>", "<nil>r1"}},
		{"a marker at the end will go", msgs[:2], []string{"two<nil>"}},
		{"opaque blocks are not marked", []convo.Message{convo.User("q", file)}, []string{"q<nil>"}},
		{"nothing to mark", []convo.Message{users(file)}, nil},
	} {
		t.Run(test.name, func(t *testing.T) { assert.Equal(t, test.want, encode(test.msgs...)) })
	}
}

func TestAnthropic_DecodeReadsARequest(t *testing.T) {
	const doc = `{"model":"claude","system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}},{"type":"text","text":"t"}],"messages":[
		{"role":"user","content":"hi"},
		{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"redacted_thinking","data":"data"},
			{"type":"text","text":"x","citations":[{"type":"y"}]},{"type":"tool_use","id":"a","name":"look","input":{ "n": 1.0 },"caller":{"type":"direct"}}]},
		{"role":"assistant","content":[{"type":"tool_use","id":"b","name":"look","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},{"type":"tool_result","tool_use_id":"b","is_error":true,"content":[{"type":"text","text":"e"}]},
			{"type":"text","text":"and?"},{"type":"image","source":{"type":"url","url":"https://x/y"}},{"type":"image","source":{"type":"file","file_id":"f"}, "cache_control":{"type":"ephemeral"}}]},
		{"role":"system","content":[{"type":"text","text":"now","cache_control":{"type":"ephemeral"}}]}]}`
	in := mustDecode(t, wire.Anthropic{}, []byte(doc))
	assert.Equal(t, []convo.Message{
		{Role: convo.RoleSystem, Parts: []convo.Part{convo.Text("s"), wire.CacheMark(0), convo.Text("t")}},
		convo.User("hi"),
		claudeSays(signed, redacted, convo.Text("x"), block(`{"citations":[{"type":"y"}]}`), convo.ToolCall{ID: "a", Name: "look", Arguments: `{ "n": 1.0 }`}, convo.ToolCall{ID: "b", Name: "look", Arguments: "{}"}),
		results(convo.ToolResult{CallID: "a", Name: "look"}, convo.ToolResult{CallID: "b", Name: "look", IsError: true, Parts: []convo.Part{convo.Text("e")}}),
		users(convo.Text("and?"), convo.Media{URL: "https://x/y"}, block(`{"type":"image","source":{"type":"file","file_id":"f"}}`), wire.CacheMark(0)),
		{Role: convo.RoleSystem, Parts: []convo.Part{convo.Text("now"), wire.CacheMark(0)}},
	}, in.Messages)
	assert.Empty(t, in.Lost)
	_, err := convo.Restore(asSent(in.Messages), &convo.Options{Roles: convo.Relaxed()})
	assert.NoError(t, err)
}

func TestAnthropic_DecodeReadsAResponse(t *testing.T) {
	in, err := wire.Anthropic{}.Decode([]byte(`{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"text","text":"x"}],
		"stop_reason":"end_turn","stop_sequence":null,"container":{"id":"c"},"usage":{"input_tokens":10,"cache_read_input_tokens":200,"cache_creation_input_tokens":30,"output_tokens":4}}`))
	require.NoError(t, err)
	want := claudeSays(convo.Text("x"))
	want.Origin.Container = "c"
	assert.Equal(t, []convo.Message{want}, in.Messages)
	assert.Equal(t, convo.Usage{Input: 240, CacheRead: 200, CacheWrite: 30, Output: 4}, in.Usage)
	assert.Empty(t, in.Lost)
}

func TestAnthropic_DecodeNamesThePathOfAnError(t *testing.T) {
	for doc, path := range map[string]string{
		``: "", `{`: "", `{"type":"error"}`: "", `null`: "", `[1]`: "[0]", `{"messages":{}}`: "messages",
		`[{"role":"tool","content":"x"}]`:                                                           "[0].role",
		`[{"role":"user"}]`:                                                                         "[0].content",
		`[{"role":"user","content":[{"text":"x"}]}]`:                                                "[0].content[0].type",
		`[{"role":"user","content":[{"type":"text"}]}]`:                                             "[0].content[0].text",
		`[{"role":"user","content":[{"type":"tool_use","id":"a","name":"x"}]}]`:                     "[0].content[0]",
		`[{"role":"assistant","content":[{"type":"tool_result","tool_use_id":"x"}]}]`:               "[0].content[0]",
		`[{"role":"assistant","content":[{"type":"tool_use","id":"a"}]}]`:                           "[0].content[0].name",
		`[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":""}]}]`:                 "[0].content[0]",
		`[{"role":"assistant","content":[{"type":"thinking"}]}]`:                                    "[0].content[0].thinking",
		`[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","is_error":"yes"}]}]`:   "[0].content[0].is_error",
		`[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":{}}]}]`:       "[0].content[0].content",
		`[{"role":"system","content":[]}]`:                                                          "[0].content",
		`{"system":[{"type":"tool_use"}],"messages":[{"role":"user","content":"x"}]}`:               "system[0]",
		`[{"role":"user","content":"x"},{"role":"user","content":[{"type":"tool_result"},"text"]}]`: "[1].content[0].tool_use_id",
	} {
		assert.Equal(t, path, decodeError(t, wire.Anthropic{}, doc).Path, doc)
	}
}

// Decode returns the messages of an encoded conversation unchanged.
func TestAnthropic_DecodeReturnsWhatWasEncoded(t *testing.T) {
	msgs := []convo.Message{
		{Role: convo.RoleSystem, Parts: []convo.Part{convo.Text("one"), convo.Text("two")}},
		convo.User("hi ", convo.NewMedia("image/png", []byte("x")), convo.NewMedia("application/pdf", []byte("x")), convo.NewMedia("text/plain", []byte("x")), convo.Media{URL: "https://x/y"},
			block(`{"type":"container_upload","file_id":"f"}`)),
		claudeSays(signed, redacted, convo.Text("x\n"), block(`{"type":"server_tool_use","id":"s","name":"n","input":{"a":1.0}}`), block(`{"type":"web_search_tool_result","tool_use_id":"s"}`), convo.Text("y"), callA, callB),
		results(convo.ToolResult{CallID: "a", Name: "look"}, convo.ToolResult{CallID: "b", Name: "look", IsError: true, Parts: []convo.Part{convo.Text("e")}}),
		claudeSays(signed, callA),
		results(convo.ToolResult{CallID: "a", Name: "look", Parts: []convo.Part{convo.Text("1"), convo.NewMedia("image/png", []byte("x")), block(`{"type":"tool_reference","tool_name":"n"}`)}}),
		convo.User("and?"),
		users(block(`{"role":"system","content":"now this","clear_at":"next_user_message"}`)),
		claudeSays(convo.Text("done")),
	}
	out := mustEncode(t, wire.Anthropic{Betas: true}, asSent(msgs))
	in := mustDecode(t, wire.Anthropic{}, append([]byte(`{"model":"claude",`), out.Body()[1:]...))
	second := in.Messages[4].ToolCalls()[0].ID // this id replaces an id that occurred before
	msgs[4].Parts[1] = convo.ToolCall{ID: second, Name: callA.Name, Arguments: callA.Arguments}
	r := msgs[5].Parts[0].(convo.ToolResult)
	r.CallID = second
	msgs[5].Parts[0] = r
	msgs[2].Parts[7] = convo.ToolCall{ID: "b", Name: "look", Arguments: "{}"}
	assert.Equal(t, msgs, in.Messages)
	assert.Empty(t, in.Lost)
}

// Encode writes the same bytes again from a decoded request.
func TestAnthropic_CheckTakesAnyJSON(t *testing.T) {
	for doc, rule := range map[string]string{
		"{": "json", "[]": "json", "{}": "shape", `{"messages":[1]}`: "shape",
		`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":5}]}]}`:              "shape",
		`{"messages":[{"role":"user","content":"x"}],"system":5}`:                                                      "shape",
		`{"messages":[{"role":"user","content":"x"}],"system":[{"type":"text","text":""}]}`:                            "blank-text",
		`{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":""},{"role":"user","content":"x"}]}`: "content-empty",
		`{"messages":[{"role":"user","content":"x"},{"role":"system","content":"x"},{"role":"user","content":"x"}]}`:   "system-place",
		`{"messages":[{"role":"user","content":[{"type":"text","text":"","cache_control":{"type":"ephemeral"}}]}]}`:    "cache-place",
		`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"x","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}}]}]}]}`: "error-result",
	} {
		found := wire.Anthropic{}.Check([]byte(doc))
		require.NotEmpty(t, found, doc)
		assert.True(t, slices.ContainsFunc(found, func(f wire.Finding) bool { return f.Rule == rule }), "%s: %v", doc, found)
	}
	assert.Empty(t, wire.Anthropic{}.Check([]byte(`{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":""}]}`)), "the last may be empty")
}

var anthropicSeeds = []string{
	`{"model":"m","system":"s","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"a","name":"x","input":{"a":1.0}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r","is_error":true},{"type":"text","text":"u"}]}]}`,
	`{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"}}]},{"role":"system","content":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]},{"role":"assistant","content":[{"type":"server_tool_use","id":"s","cache_contro\u006c":1},{"type":"web_search_tool_result","tool_use_id":"s"}]}]}`,
	`{"type":"message","role":"assistant","model":"m","content":[{"type":"redacted_thinking","data":"d"},{"type":"text","text":"x "}],"usage":{"input_tokens":1}}`,
	`[{"role":"assistant","content":[{"type":"image","source":{"type":"base64","media_type":"application/pdf","data":"eA=="}}]}]`,
}

func FuzzAnthropic_Decode(f *testing.F) {
	for _, seed := range anthropicSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		checkDecoded(t, wire.Anthropic{}, data)
		checkDecoded(t, wire.Anthropic{Cache: true, UserLast: true}, data)
	})
}

func FuzzAnthropic_Check(f *testing.F) {
	for _, seed := range anthropicSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkFindings(t, wire.Anthropic{UserLast: true}, data) })
}

// Only an opaque part that is a message with the role system is sent as a message.
func TestAnthropic_OpaqueSystemMessages(t *testing.T) {
	for raw, messages := range map[string]int{
		`{"role":"system","content":"x"}`:                 2,
		`{"role":"user","content":"x"}`:                   1,
		`{"role":"assistant","content":"x"}`:              1,
		`{"type":"server","role":"system","content":"x"}`: 1,
		`{"content":"x"}`:                                 1,
		`{"role":"system","content":" "}`:                 1,
	} {
		r := mustEncode(t, wire.Anthropic{}, asSent([]convo.Message{convo.User("q", block(raw))}))
		assert.Len(t, r.Messages, messages, raw)
	}
}

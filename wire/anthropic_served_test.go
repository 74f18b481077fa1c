package wire_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// Blocks of tools that Anthropic runs.
const (
	searchS  = `{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"x"}}`
	foundS   = `{"type":"web_search_tool_result","tool_use_id":"s","content":[]}`
	searchU  = `{"type":"server_tool_use","id":"u","name":"tool_search_tool_bm25","input":{}}`
	foundU   = `{"type":"tool_search_tool_result","tool_use_id":"u","content":[]}`
	echoM    = `{"type":"mcp_tool_use","id":"m","name":"echo","server_name":"e","input":{}}`
	echoedM  = `{"type":"mcp_tool_result","tool_use_id":"m","is_error":false,"content":[]}`
	foundM   = `{"type":"web_search_tool_result","tool_use_id":"m","content":[]}`
	foundX   = `{"type":"web_search_tool_result","tool_use_id":"x","content":[]}`
	thought  = `{"type":"thinking","thinking":"hm","signature":"sig"}`
	callOfA  = `{"type":"tool_use","id":"a","name":"look","input":{ "n": 1.0, "id": 12345678901234567890 }}`
	answerA  = `{"type":"tool_result","tool_use_id":"a","content":"1"}`
	markText = `"cache_control":{"type":"ephemeral"}`
)

// unservedBlocks returns the blocks of tools that the provider runs for which Anthropic's
// documentation says that a request is refused: calls that have no result in their turn,
// and results that have no call there. The messages of one role in a row are one message,
// and a message of the user that holds nothing but results does not end the turn. In the
// turn that the request ends with, calls may wait if nothing but blocks of tools follows
// them.
func unservedBlocks(t testing.TB, request []byte) (bad []string) {
	t.Helper()
	open := map[string]string{}
	made := map[string]bool{}
	last := ""
	end := func() {
		for _, name := range open {
			bad = append(bad, name)
		}
		open, made = map[string]string{}, map[string]bool{}
	}
	for _, m := range readJSON(t, request)["messages"].([]any) {
		m := m.(map[string]any)
		for _, b := range contentList(m["content"]) {
			b := b.(map[string]any)
			kind := b["type"].(string)
			switch last = kind; {
			case m["role"] != "assistant":
				if kind != "tool_result" {
					end()
				}
			case strings.HasSuffix(kind, "_tool_use"):
				id := b["id"].(string)
				open[id], made[id] = kind+" "+id, true
			case strings.HasSuffix(kind, "_tool_result"):
				id := b["tool_use_id"].(string)
				if !made[id] || open[id] != "" && (kind == "mcp_tool_result") != strings.HasPrefix(open[id], "mcp") {
					bad = append(bad, kind+" "+id)
					continue
				}
				delete(open, id)
			}
		}
	}
	if !strings.Contains(last, "tool_") {
		end()
	}
	return bad
}

// A call of a tool that the provider runs is sent with its result, or where the provider
// runs it when it gets the request. Otherwise neither the call nor a result without its
// call is sent, which Lost says.
func TestAnthropic_ServedCallsArePaired(t *testing.T) {
	ask, goOn := convo.User("hi"), convo.User("go on")
	s, found, u, foundLater := block(searchS), block(foundS), block(searchU), block(foundU)
	m, echoed := block(echoM), block(echoedM)
	text := convo.Text("so")
	one := convo.Result(callA, "1")
	model := func(blocks ...string) string {
		return `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`
	}
	user := func(blocks ...string) string {
		return `{"role":"user","content":[` + strings.Join(blocks, ",") + `]}`
	}
	say := func(text string) string { return `{"type":"text","text":"` + text + `"}` }
	hi, so, more := user(say("hi")), say("so"), user(say("go on"))
	for _, tt := range []struct {
		name string
		msgs []convo.Message
		want string
		lost string
	}{
		{"a stream cut inside a search", []convo.Message{ask, claudeSays(text, s), goOn},
			hi + "," + model(so) + "," + more, "entry 2, part 1: block"},
		{"nothing but the search", []convo.Message{ask, claudeSays(s), goOn},
			user(say("hi"), say("go on")), "entry 2, part 0: block"},
		{"thinking before the search", []convo.Message{ask, claudeSays(signed, s), goOn},
			user(say("hi"), say("go on")), "entry 2, part 0: reasoning; entry 2, part 1: block"},
		{"thinking between two searches", []convo.Message{ask, claudeSays(text, s, signed, u), goOn},
			hi + "," + model(so) + "," + more, "entry 2, part 1: block; entry 2, part 2: reasoning; entry 2, part 3: block"},
		{"two searches, the second without a result", []convo.Message{ask, claudeSays(s, u, found), goOn},
			hi + "," + model(searchS, foundS) + "," + more, "entry 2, part 1: block"},
		{"two searches before a text", []convo.Message{ask, claudeSays(s, u, text), goOn},
			hi + "," + model(so) + "," + more, "entry 2, part 0: block; entry 2, part 1: block"},
		{"the first of three blocks", []convo.Message{ask, claudeSays(s, signed, text), goOn},
			hi + "," + model(so) + "," + more, "entry 2, part 0: block; entry 2, part 1: reasoning"},
		{"a call of an MCP server", []convo.Message{ask, claudeSays(text, m), goOn},
			hi + "," + model(so) + "," + more, "entry 2, part 1: block"},
		{"the result of another kind of tool", []convo.Message{ask, claudeSays(text, m, block(foundM)), goOn},
			hi + "," + model(so) + "," + more, "entry 2, part 1: block; entry 2, part 2: block"},
		{"an MCP server that answered", []convo.Message{ask, claudeSays(m, echoed, text), goOn},
			hi + "," + model(echoM, echoedM, so) + "," + more, ""},
		{"text of the user after the results of a mixed turn", []convo.Message{ask, claudeSays(s, callA), one, goOn},
			hi + "," + model(callOfA) + "," + user(answerA, say("go on")), "entry 2, part 0: block"},
		{"a message for the model after the results", []convo.Message{ask, claudeSays(s, callA), one, users(block(`{"role":"system","content":"now"}`))},
			hi + "," + model(callOfA) + "," + user(answerA) + `,{"role":"system","content":"now"}`, "entry 2, part 0: block"},
		{"a mixed turn under way", []convo.Message{ask, claudeSays(s, callA), one},
			hi + "," + model(searchS, callOfA) + "," + user(answerA), ""},
		{"a mixed turn that went on", []convo.Message{ask, claudeSays(s, callA), one, claudeSays(found, text), goOn},
			hi + "," + model(searchS, callOfA) + "," + user(answerA) + "," + model(foundS, so) + "," + more, ""},
		{"a mixed turn that went on without the result", []convo.Message{ask, claudeSays(u, callA), one, claudeSays(text), goOn},
			hi + "," + model(callOfA) + "," + user(answerA) + "," + model(so) + "," + more, "entry 2, part 0: block"},
		{"the result of a turn that the user ended", []convo.Message{ask, claudeSays(s, callA), one, goOn, claudeSays(found, text)},
			hi + "," + model(callOfA) + "," + user(answerA, say("go on")) + "," + model(so), "entry 2, part 0: block; entry 5, part 0: block"},
		{"a paused answer", []convo.Message{ask, claudeSays(text, s)},
			hi + "," + model(so, searchS), ""},
		{"a paused answer that went on", []convo.Message{ask, claudeSays(text, s), claudeSays(found, text), goOn},
			hi + "," + model(so, searchS) + "," + model(foundS, so) + "," + more, ""},
		{"an answer that ends with a search, and another one", []convo.Message{ask, claudeSays(signed, s), claudeSays(u), goOn},
			user(say("hi"), say("go on")), "entry 2, part 0: reasoning; entry 2, part 1: block; entry 3, part 0: block"},
		{"a text after a search that has no result", []convo.Message{ask, claudeSays(s, text)},
			hi + "," + model(so), "entry 2, part 0: block"},
		{"a result before its call", []convo.Message{ask, claudeSays(found, s, text), goOn},
			hi + "," + model(so) + "," + more, "entry 2, part 0: block; entry 2, part 1: block"},
		{"two results, and two calls", []convo.Message{ask, claudeSays(s, found, found, u, u, foundLater), goOn},
			hi + "," + model(searchS, foundS, searchU, foundU) + "," + more, "entry 2, part 2: block; entry 2, part 4: block"},
		{"the id of an earlier turn", []convo.Message{ask, claudeSays(s, found), goOn, claudeSays(s, found), goOn},
			hi + "," + model(searchS, foundS) + "," + more + "," + model(searchS, foundS) + "," + more, ""},
		{"calls of a user", []convo.Message{users(convo.Text("hi"), s, found)}, hi, "entry 1, part 1: block; entry 1, part 2: block"},
		{"a call without an id", []convo.Message{ask, claudeSays(block(`{"type":"server_tool_use","name":"web_search","input":{}}`))},
			hi, "entry 2, part 0: block"},
		{"cache marks after a search that leaves", []convo.Message{ask, claudeSays(text, s, wire.CacheMark(0), callA, wire.CacheMark(0)), one, goOn},
			hi + "," + model(so, strings.TrimSuffix(callOfA, "}")+","+markText+"}") + "," + user(answerA, say("go on")), "entry 2, part 1: block; entry 2, part 2: cache mark"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := wire.Anthropic{}
			h := relaxed(t, convo.Overheads{}, tt.msgs...)
			r := mustEncode(t, f, h.Snapshot())
			assert.Equal(t, tt.want, strings.TrimSuffix(strings.TrimPrefix(string(r.Body()), `{"messages":[`), `]}`))
			lost := listed(r.Lost)
			assert.Equal(t, tt.lost, strings.Join(lost, "; "))
			assert.Empty(t, unservedBlocks(t, r.Body()))
			assert.Empty(t, f.Check(r.Body()))

			// With one message more at a time, an Encoder writes the same.
			e := wire.Encoder{Format: f}
			h = relaxed(t, convo.Overheads{})
			for _, msg := range tt.msgs {
				mustAppend(t, h, msg)
				want := mustEncode(t, f, h.Snapshot())
				for range 2 {
					got := mustEncode(t, &e, h.Snapshot())
					require.Equal(t, string(want.Body()), string(got.Body()))
					require.Equal(t, want.Lost, got.Lost)
				}
				require.Empty(t, unservedBlocks(t, want.Body()), "%s", want.Body())
				require.Empty(t, f.Check(want.Body()), "%s", want.Body())
			}
		})
	}
}

// A model that wants the user last gets a paused answer as it stands. Any other answer at
// the end loses the calls that have no result.
func TestAnthropic_UserLastAndServedCalls(t *testing.T) {
	f := wire.Anthropic{UserLast: true}
	s, text := block(searchS), convo.Text("so")
	for want, parts := range map[string][]convo.Part{
		`[{"type":"text","text":"so"},` + searchS + `]`: {text, s},
		`[` + searchS + `,` + foundS + `]`:              {s, block(foundS)},
		`[` + searchS + `]`:                             {s, signed},
	} {
		r := mustEncode(t, f, relaxed(t, convo.Overheads{}, convo.User("hi"), claudeSays(parts...)).Snapshot())
		require.Len(t, r.Messages, 2)
		assert.Equal(t, `{"role":"assistant","content":`+want+`}`, string(r.Messages[1]))
		assert.Empty(t, f.Check(r.Body()))
	}
	r := mustEncode(t, f, relaxed(t, convo.Overheads{}, convo.User("hi"), claudeSays(s, text)).Snapshot())
	require.Len(t, r.Messages, 3)
	assert.Equal(t, `{"role":"assistant","content":[{"type":"text","text":"so"}]}`, string(r.Messages[1]))
	assert.Contains(t, string(r.Messages[2]), "[Continue.]")
	assert.Empty(t, f.Check(r.Body()))
}

// An answer that ended at max_tokens inside a search does not keep the conversation from
// going on.
func TestAnthropic_MaxTokensInsideASearch(t *testing.T) {
	in, err := wire.Anthropic{}.Decode([]byte(`{"id":"1","role":"assistant","model":"claude","stop_reason":"max_tokens","content":[` +
		`{"type":"text","text":"so"},` + searchS + `,` + foundS + `,` + searchU + `]}`))
	require.NoError(t, err)
	h := relaxed(t, convo.Overheads{}, append(append([]convo.Message{convo.User("hi")}, in.Messages...), convo.User("go on"))...)
	r := mustEncode(t, wire.Anthropic{}, h.Snapshot())
	assert.NotContains(t, string(r.Body()), `"u"`)
	assert.Contains(t, string(r.Body()), foundS)
	assert.Empty(t, wire.Anthropic{}.Check(r.Body()))
}

// Check finds blocks of served tools without their counterpart in any request.
func TestAnthropic_CheckFindsUnpairedServedBlocks(t *testing.T) {
	hi := `{"role":"user","content":"hi"}`
	model := func(blocks string) string { return `{"role":"assistant","content":[` + blocks + `]}` }
	for _, tt := range []struct{ name, msgs, want string }{
		{"without a result", hi + "," + model(searchS) + "," + hi, "unanswered-server-call messages[1].content[0]"},
		{"in the middle of a turn", hi + "," + model(searchS) + "," + model(`{"type":"text","text":"x"}`) + "," + hi, "unanswered-server-call messages[1].content[0]"},
		{"before a text at the end", hi + "," + model(searchS+`,{"type":"text","text":"x"}`), "unanswered-server-call messages[1].content[0]"},
		{"text after the results", hi + "," + model(searchS+","+callOfA) + `,{"role":"user","content":[` + answerA + `,{"type":"text","text":"x"}]}`, "unanswered-server-call messages[1].content[0]"},
		{"system message after the results", hi + "," + model(searchS+","+callOfA) + `,{"role":"user","content":[` + answerA + `]},{"role":"system","content":"x"}`, "unanswered-server-call messages[1].content[0]"},
		{"MCP", hi + "," + model(echoM) + "," + hi, "unanswered-server-call messages[1].content[0]"},
		{"MCP with another result", hi + "," + model(echoM+","+foundM) + "," + hi, "orphan-server-result messages[1].content[1]; unanswered-server-call messages[1].content[0]"},
		{"result without a call", hi + "," + model(foundX+`,{"type":"text","text":"x"}`), "orphan-server-result messages[1].content[0]"},
		{"result in a later turn", hi + "," + model(searchS) + "," + hi + "," + model(foundS) + "," + hi, "unanswered-server-call messages[1].content[0]; orphan-server-result messages[3].content[0]"},
		{"call of a user", `{"role":"user","content":[` + searchS + `]}`, "block-place messages[0].content[0]"},
		{"paused", hi + "," + model(searchS), ""},
		{"under way", hi + "," + model(searchS+","+callOfA) + `,{"role":"user","content":[` + answerA + `]}`, ""},
		{"answered after results", hi + "," + model(searchS+","+callOfA) + `,{"role":"user","content":[` + answerA + `]},` + model(foundS) + "," + hi, ""},
		{"code that a call comes from", hi + "," + model(searchS+","+strings.Replace(callOfA, `"input"`, `"caller":{"type":"code_execution_20250825","tool_id":"s"},"input"`, 1)) + `,{"role":"user","content":[` + answerA + `,{"type":"text","text":"x"}]}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, x := range (wire.Anthropic{}).Check([]byte(`{"messages":[` + tt.msgs + `]}`)) {
				got = append(got, x.Rule+" "+x.Path)
			}
			assert.Equal(t, tt.want, strings.Join(got, "; "))
		})
	}
	found := wire.Anthropic{}.Check([]byte(`{"messages":[` + hi + "," + model(searchU) + "," + hi + `]}`))
	require.Len(t, found, 1)
	assert.Equal(t, "messages.1: `tool_search_tool_bm25` tool use with id `u` was found without a corresponding `tool_search_tool_result` block", found[0].Error)
	assert.Equal(t, "u", found[0].ID)
}

func FuzzAnthropic_ServedCalls(f *testing.F) {
	seed := func(blocks ...string) { f.Add([]byte(`[`+strings.Join(blocks, ",")+`]`), uint64(0x1234567)) }
	seed(searchS)
	seed(searchS, foundS, searchU)
	seed(`{"type":"text","text":"x"}`, searchS, callOfA)
	seed(thought, searchS, thought, searchU, foundS)
	seed(foundS, echoM, foundM, echoedM, searchU)
	seed(codeP, searchP, foundP, callOfP, ranP, codeP, callOfP)
	f.Fuzz(func(t *testing.T, blocks []byte, cuts uint64) { checkServedCalls(t, blocks, cuts) })
}

// checkServedCalls cuts a list of blocks into answers, with results of calls, texts of
// users and messages for the model between them.
func checkServedCalls(t *testing.T, blocks []byte, cuts uint64) {
	var list []json.RawMessage
	if json.Unmarshal(blocks, &list) != nil || len(list) > 16 {
		return
	}
	h := relaxed(t, convo.Overheads{}, convo.User("hi"))
	f := wire.Anthropic{UserLast: cuts%2 == 0}
	e := wire.Encoder{Format: f}
	for cuts /= 2; len(list) > 0; cuts /= 8 {
		n := min(int(cuts%4)+1, len(list))
		raw, err := json.Marshal(map[string]any{"role": "assistant", "content": list[:n]})
		require.NoError(t, err)
		list = list[n:]
		in, err := wire.Anthropic{}.Decode(raw)
		if err != nil {
			continue
		}
		for _, m := range in.Messages {
			if _, err := h.Append(m); err != nil {
				return
			}
			for _, c := range m.ToolCalls() {
				mustAppend(t, h, convo.Result(c, "r"))
			}
		}
		switch cuts / 4 % 4 {
		case 0:
			_, err = h.Append(convo.User("go on"))
		case 1:
			_, err = h.Append(users(block(`{"role":"system","content":"now"}`)))
		}
		require.NoError(t, err)
		want := mustEncode(t, f, h.Snapshot())
		got := mustEncode(t, &e, h.Snapshot())
		require.Equal(t, string(want.Body()), string(got.Body()))
		require.Empty(t, unservedRules(f.Check(want.Body())), "%s", want.Body())
		require.Empty(t, unservedBlocks(t, want.Body()), "%s", want.Body())
	}
}

// unservedRules returns the findings about blocks of tools that the provider runs.
func unservedRules(found []wire.Finding) (out []wire.Finding) {
	for _, x := range found {
		if strings.Contains(x.Rule, "server") || x.Rule == "container-missing" || x.Rule == "thinking-last" {
			out = append(out, x)
		}
	}
	return out
}

// Models that refuse a request which ends with an assistant message are known by name.
func TestAnthropic_ModelsThatWantTheUserLast(t *testing.T) {
	for model, want := range map[string]bool{
		"claude-opus-5": true, "claude-opus-5-20260401": true, "claude-opus-5-5": true, "claude-opus-4-6": true, "claude-opus-4.8": true, "claude-sonnet-4-6": true,
		"claude-sonnet-5-5": true, "claude-haiku-5-5": true, "claude-fable-5-1": true, "claude-mythos-5-2": true,
		"us.anthropic.claude-opus-5-v1:0": true, "anthropic/claude-opus-5": true,
		"claude-haiku-4-5-20251001": false, "claude-sonnet-4-5": false, "claude-opus-4-1": false, "claude-opus-4-20250514": false,
		"claude-3-7-sonnet-latest": false, "claude-2.1": false, "claude-instant-1.2": false, "kimi-k2": false, "": false,
	} {
		f := wire.Anthropic{Model: model}
		h := relaxed(t, convo.Overheads{}, convo.User("hi"), claudeSays(convo.Text("so")))
		r := mustEncode(t, f, h.Snapshot())
		assert.Equal(t, want, strings.Contains(string(r.Body()), "[Continue.]"), model)
		assert.Empty(t, f.Check(r.Body()), model)

		bare := mustEncode(t, wire.Anthropic{}, h.Snapshot())
		named := []byte(`{"model":` + jsonOf(model) + `,` + string(bare.Body())[1:])
		for _, found := range [][]wire.Finding{f.Check(bare.Body()), wire.Anthropic{}.Check(named)} {
			if want {
				require.Len(t, found, 1, model)
				assert.Equal(t, "last-role", found[0].Rule, model)
			} else {
				assert.Empty(t, found, model)
			}
		}

		paused := relaxed(t, convo.Overheads{}, convo.User("hi"), claudeSays(block(searchS)))
		r = mustEncode(t, f, paused.Snapshot())
		assert.Len(t, r.Messages, 2, model)
		assert.Empty(t, f.Check(r.Body()), model)
	}
}

// Do sends a paused answer back as it stands, and goes on with the rest.
func TestAnthropic_DoGoesOnAfterAPause(t *testing.T) {
	f := wire.Anthropic{Model: "claude-opus-5"}
	e := wire.Encoder{Format: f}
	h := historyOf(t, convo.User("hi"))
	answers := []string{
		`{"role":"assistant","model":"claude-opus-5","stop_reason":"pause_turn","usage":{"input_tokens":10,"output_tokens":1},"content":[{"type":"text","text":"so"},` + searchS + `]}`,
		`{"role":"assistant","model":"claude-opus-5","stop_reason":"pause_turn","usage":{"input_tokens":20,"output_tokens":2},"content":[` + foundS + `,` + searchU + `]}`,
		`{"role":"assistant","model":"claude-opus-5","stop_reason":"end_turn","usage":{"input_tokens":30,"output_tokens":3},"content":[` + foundU + `,{"type":"text","text":"done"}]}`,
	}
	var last string
	send := func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
		r := mustEncode(t, &e, s)
		last = string(r.Body())
		assert.NotContains(t, last, "[Continue.]")
		assert.Empty(t, r.Lost)
		assert.Empty(t, f.Check(r.Body()))
		assert.Empty(t, unservedBlocks(t, r.Body()))
		in, err := f.Decode([]byte(answers[0]))
		answers = answers[1:]
		return in.Reply(), err
	}
	reply, err := h.Do(t.Context(), send)
	require.NoError(t, err)
	assert.Equal(t, convo.StopDone, reply.Stop)
	assert.Equal(t, convo.Usage{Input: 60, Output: 6}, reply.Usage)
	assert.Len(t, reply.Messages, 3)
	assert.True(t, strings.HasSuffix(last, `{"role":"assistant","content":[{"type":"text","text":"so"},`+searchS+`]},{"role":"assistant","content":[`+foundS+`,`+searchU+`]}]}`), last)
	mustAppend(t, h, convo.User("and?"))
	r := mustEncode(t, &e, h.Snapshot())
	assert.Empty(t, r.Lost)
	assert.Empty(t, f.Check(r.Body()))
}

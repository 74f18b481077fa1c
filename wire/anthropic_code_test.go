package wire_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// Blocks of code that Anthropic runs, and of what it calls.
const (
	byP     = `"caller":{"type":"code_execution_20260120","tool_id":"p"}`
	codeP   = `{"type":"server_tool_use","id":"p","name":"code_execution","input":{}}`
	ranP    = `{"type":"code_execution_tool_result","tool_use_id":"p","content":{"type":"code_execution_result","stdout":"","stderr":"","return_code":0,"content":[]}}`
	searchP = `{"type":"server_tool_use","id":"sp","name":"web_search","input":{},` + byP + `}`
	foundP  = `{"type":"web_search_tool_result","tool_use_id":"sp","content":[],` + byP + `}`
	callOfP = `{"type":"tool_use","id":"a","name":"look","input":{},` + byP + `}`
)

// answerOf decodes an answer with a container, if it is not empty.
func answerOf(t testing.TB, container string, blocks ...string) convo.Message {
	t.Helper()
	body := `{"type":"message","role":"assistant","model":"claude","stop_reason":"tool_use","content":[` + strings.Join(blocks, ",") + `]`
	if container != "" {
		body += `,"container":{"id":"` + container + `","expires_at":"2026-11-27T12:00:00Z"}`
	}
	in := mustDecode(t, wire.Anthropic{}, []byte(body+"}"))
	require.Empty(t, in.Lost)
	require.Len(t, in.Messages, 1)
	return in.Messages[0]
}

// A request names the container of code that waits, and nothing else of it when the turn has
// ended or the container is not known.
func TestCode_Container(t *testing.T) {
	a := convo.ToolResult{CallID: "a", Name: "look", Parts: []convo.Part{convo.Text("1")}}
	image := a
	image.Parts = []convo.Part{convo.Text("1"), convo.NewMedia("image/png", []byte("x"))}
	other := wire.Anthropic{}.WithParams(map[string]any{"container": map[string]any{"id": "mine", "skills": []any{}}})
	for _, tt := range []struct {
		name      string
		f         wire.Anthropic
		msgs      []convo.Message
		container string // in Fields
		want      string // the blocks of the first answer, without those of the type text
		lost      []string
	}{
		{"an answer that waits", wire.Anthropic{}, []convo.Message{answerOf(t, "c1", codeP, callOfP), results(a)}, `"c1"`, codeP + "," + callOfP, nil},
		{"it has searched, too", wire.Anthropic{}, []convo.Message{answerOf(t, "c1", codeP, searchP, foundP, callOfP), results(a)}, `"c1"`, codeP + "," + searchP + "," + foundP + "," + callOfP, nil},
		{"a paused answer", wire.Anthropic{}, []convo.Message{answerOf(t, "c1", codeP, searchP)}, `"c1"`, codeP + "," + searchP, nil},
		{"code that has called nothing", wire.Anthropic{}, []convo.Message{answerOf(t, "c1", codeP, strings.Replace(callOfP, ","+byP, "", 1)), results(a)}, `"c1"`, codeP + "," + strings.Replace(callOfP, ","+byP, "", 1), nil},
		{"code that has ended", wire.Anthropic{}, []convo.Message{answerOf(t, "c1", codeP, searchP, foundP, ranP, strings.Replace(callOfP, ","+byP, "", 1)), results(a)}, "", codeP + "," + searchP + "," + foundP + "," + ranP + "," + strings.Replace(callOfP, ","+byP, "", 1), nil},
		{"it goes on in a second answer without a container", wire.Anthropic{}, []convo.Message{answerOf(t, "c1", codeP, callOfP), results(a), answerOf(t, "", strings.Replace(callOfP, `"a"`, `"b"`, 1)), results(convo.ToolResult{CallID: "b", Name: "look"})}, `"c1"`, codeP + "," + callOfP, nil},
		{"and in another one", wire.Anthropic{}, []convo.Message{answerOf(t, "c1", codeP, callOfP), results(a), answerOf(t, "c2", strings.Replace(callOfP, `"a"`, `"b"`, 1)), results(convo.ToolResult{CallID: "b", Name: "look"})}, `"c2"`, codeP + "," + callOfP, nil},
		{"it ends in a second answer", wire.Anthropic{}, []convo.Message{answerOf(t, "c1", codeP, callOfP), results(a), answerOf(t, "c1", ranP, `{"type":"text","text":"x"}`), convo.User("and?")}, "", codeP + "," + callOfP, nil},
		{"no container is known", wire.Anthropic{}, []convo.Message{answerOf(t, "", codeP, searchP, foundP, callOfP), results(a)}, "", strings.Replace(callOfP, ","+byP, "", 1),
			[]string{"entry 2, part 0: block", "entry 2, part 1: block", "entry 2, part 2: block", "entry 2, part 3: block"}},
		{"no container is known, and the answer is paused", wire.Anthropic{Model: "claude"}, []convo.Message{answerOf(t, "", `{"type":"text","text":"x"}`, codeP, searchP)}, "", "",
			[]string{"entry 2, part 1: block", "entry 2, part 2: block"}},
		{"the container of another provider", wire.Anthropic{}, []convo.Message{{Role: convo.RoleAssistant, Origin: convo.Origin{Format: "openai-responses", Container: "c1"}, Parts: answerOf(t, "", codeP, callOfP).Parts}, results(a)}, "", strings.Replace(callOfP, ","+byP, "", 1),
			[]string{"entry 2, part 0: block", "entry 2, part 1: block"}},
		{"one in the parameters", other, []convo.Message{answerOf(t, "c1", codeP, callOfP), results(a)}, "", codeP + "," + callOfP, []string{`entry 2, part 0: container, sent as "mine"`}},
		{"the same in the parameters", other, []convo.Message{answerOf(t, "mine", codeP, callOfP), results(a)}, "", codeP + "," + callOfP, nil},
		{"one in the parameters alone", other, []convo.Message{answerOf(t, "", codeP, callOfP), results(a)}, "", codeP + "," + callOfP, nil},
		{"the user goes on", wire.Anthropic{}, []convo.Message{answerOf(t, "c1", `{"type":"text","text":"x"}`, codeP, searchP, foundP, callOfP), results(a), convo.User("stop")}, "", strings.Replace(callOfP, ","+byP, "", 1),
			[]string{"entry 2, part 1: block", "entry 2, part 2: block", "entry 2, part 3: block", "entry 2, part 4: block"}},
		{"the user goes on after a pause", wire.Anthropic{}, []convo.Message{answerOf(t, "c1", `{"type":"text","text":"x"}`, codeP, searchP, foundP, strings.ReplaceAll(searchP, `"sp"`, `"sq"`)), convo.User("stop")}, "", "",
			[]string{"entry 2, part 1: block", "entry 2, part 2: block", "entry 2, part 3: block", "entry 2, part 4: block"}},
		{"called by code that is not there", wire.Anthropic{}, []convo.Message{answerOf(t, "c1", searchP, foundP, callOfP), results(a)}, "", strings.Replace(callOfP, ","+byP, "", 1),
			[]string{"entry 2, part 0: block", "entry 2, part 1: block", "entry 2, part 2: block"}},
		{"fields of nothing", wire.Anthropic{}, []convo.Message{{Role: convo.RoleAssistant, Parts: []convo.Part{block(`{"type":"convo_fields","caller":"code_execution","caller_id":"p"}`), convo.Text("x")}}, convo.User("and?")}, "", "", []string{"entry 2, part 0: block"}},
		{"a result with an image", wire.Anthropic{}, []convo.Message{answerOf(t, "c1", codeP, callOfP), results(image)}, `"c1"`, codeP + "," + callOfP, []string{"entry 3, part 0, part 1 of the result: media"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := relaxed(t, convo.Overheads{}, convo.User("hi"))
			mustAppend(t, h, tt.msgs...)
			r := mustEncode(t, tt.f, h.Snapshot())
			assert.Equal(t, tt.container, string(r.Fields["container"]))
			assert.Equal(t, tt.lost, listed(r.Lost))
			content := strings.TrimSuffix(strings.TrimPrefix(string(r.Messages[1]), `{"role":"assistant","content":[`), "]}")
			assert.Equal(t, tt.want, strings.TrimPrefix(strings.TrimPrefix(content, `{"type":"text","text":"x"}`), ","))
			body := r.Body()
			if tt.f != (wire.Anthropic{}) && tt.f.Model == "" {
				var err error
				body, err = r.With(map[string]any{"container": "mine"})
				require.NoError(t, err)
			}
			assert.Empty(t, tt.f.Check(body), "%s", body)
			assert.NotContains(t, string(body), "convo_fields")
		})
	}
}

// The parameters of a request win.
func TestCode_ContainerInParameters(t *testing.T) {
	h := relaxed(t, convo.Overheads{}, convo.User("hi"), answerOf(t, "c1", codeP, callOfP), results(convo.ToolResult{CallID: "a", Name: "look"}))
	r := mustEncode(t, wire.Anthropic{}, h.Snapshot())
	for params, want := range map[string]string{
		`{}`:                                    `"c1"`,
		`{"container":null}`:                    `"c1"`,
		`{"container":"c2"}`:                    `"c2"`,
		`{"container":{"id":"c2","skills":[]}}`: `{"id":"c2","skills":[]}`,
		`{"container":{"skills":[{"a":1.0}]}}`:  `{"skills":[{"a":1.0}],"id":"c1"}`,
		`{"container":{"id":null}}`:             `{"id":"c1"}`,
		`{"model":"m","container":{}}`:          `{"id":"c1"}`,
	} {
		body, err := r.With(json.RawMessage(params))
		require.NoError(t, err, params)
		var all struct{ Container json.RawMessage }
		require.NoError(t, json.Unmarshal(body, &all), "%s", body)
		assert.Equal(t, want, string(all.Container), params)
		assert.Equal(t, 1, strings.Count(string(body), `"container"`), params)
		assert.Equal(t, `"c1"`, string(r.Fields["container"]), "the request stays as it is")
	}
}

// A stream gives the container of the answer, wherever it comes; a request that is read gives
// that of its newest answer.
func TestCode_ContainerIsRead(t *testing.T) {
	const given = `{"id":"c1","expires_at":"2026-11-27T12:00:00Z","skills":null}`
	for name, tt := range map[string]struct{ start, delta, want string }{
		"at the end":   {"null", given, "c1"},
		"at the start": {given, "null", "c1"},
		"in both":      {strings.Replace(given, "c1", "c0", 1), given, "c1"},
		"never":        {"null", "null", ""},
	} {
		t.Run(name, func(t *testing.T) {
			events := []string{
				`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude","content":[],"container":` + tt.start + `,"usage":{"input_tokens":1,"output_tokens":1}}}`,
				`{"type":"content_block_start","index":0,"content_block":` + codeP + `}`,
				`{"type":"content_block_stop","index":0}`,
				`{"type":"content_block_start","index":1,"content_block":` + callOfP + `}`,
				`{"type":"content_block_stop","index":1}`,
				`{"type":"message_delta","delta":{"stop_reason":"tool_use","container":` + tt.delta + `},"usage":{"output_tokens":5}}`,
				`{"type":"message_stop"}`,
			}
			var body strings.Builder
			for _, e := range events {
				fmt.Fprintf(&body, "data: %s\n\n", e)
			}
			s := wire.Anthropic{}.Stream()
			for _, err := range wire.Read(strings.NewReader(body.String()), s) {
				require.NoError(t, err)
			}
			in, err := s.Transcript()
			require.NoError(t, err)
			assert.Empty(t, in.Lost)
			assert.Equal(t, tt.want, in.Reply().Messages[0].Origin.Container)
			assert.Equal(t, answerOf(t, tt.want, codeP, callOfP).Parts, in.Messages[0].Parts)
		})
	}
	r := mustEncode(t, wire.Anthropic{}, relaxed(t, convo.Overheads{}, convo.User("hi"), answerOf(t, "c1", codeP, callOfP), results(convo.ToolResult{CallID: "a", Name: "look"})).Snapshot())
	for _, body := range []string{string(r.Body()), strings.Replace(string(r.Body()), `"c1"`, `{"id":"c1","skills":[]}`, 1)} {
		in := mustDecode(t, wire.Anthropic{}, []byte(body))
		assert.Equal(t, "c1", in.Messages[1].Origin.Container)
		again := relaxed(t, convo.Overheads{}, in.Messages...)
		assert.Equal(t, string(r.Body()), string(mustEncode(t, wire.Anthropic{}, again.Snapshot()).Body()))
	}
	in := mustDecode(t, wire.Anthropic{}, []byte(`[{"role":"user","content":"hi"},{"type":"message","role":"assistant","content":[`+codeP+`],"container":{"id":"c1"}}]`))
	assert.Equal(t, "c1", in.Messages[1].Origin.Container)
	assert.Empty(t, in.Messages[1].Meta)
	in = mustDecode(t, wire.Anthropic{}, []byte(`{"type":"message","role":"assistant","content":[],"container":{"of":"another kind"}}`))
	assert.Equal(t, []string{"container: no place for this field"}, listed(in.Lost))
}

// Requests of random turns with code are accepted, and an Encoder writes the same.
func TestCode_Random(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	named, stranded, ended := 0, 0, 0
	for range long.Or(400, 20_000) {
		h := relaxed(t, convo.Overheads{}, convo.User("hi"))
		f := wire.Anthropic{UserLast: rng.IntN(2) == 0}
		if rng.IntN(3) == 0 {
			f.Model = "claude-opus-5-5"
		}
		e := wire.Encoder{Format: f}
		var at []*convo.Snapshot
		for i := range 1 + rng.IntN(6) {
			var blocks []string
			for k := range rng.IntN(6) {
				b := []string{codeP, searchP, foundP, callOfP, ranP, searchS, foundS, callOfA, thought, `{"type":"text","text":"x"}`, strings.ReplaceAll(codeP, `"p"`, `"q"`), strings.ReplaceAll(callOfP, `"p"`, `"q"`)}[rng.IntN(12)]
				blocks = append(blocks, strings.Replace(b, `"id":"a"`, fmt.Sprintf(`"id":"a%d_%d"`, i, k), 1))
			}
			if len(blocks) == 0 {
				continue
			}
			m := answerOf(t, []string{"", "c1", "c2"}[rng.IntN(3)], blocks...)
			if _, err := h.Append(m); err != nil {
				continue
			}
			for _, c := range m.ToolCalls() {
				mustAppend(t, h, convo.Result(c, "r"))
			}
			if rng.IntN(3) == 0 {
				mustAppend(t, h, convo.User("go on"))
			}
			if rng.IntN(6) == 0 && len(at) > 0 {
				k := rng.IntN(len(at))
				require.NoError(t, h.Rollback(at[k]))
				at = at[:k]
			}
			at = append(at, h.Snapshot())
			want, got := mustEncode(t, f, h.Snapshot()), mustEncode(t, &e, h.Snapshot())
			require.Equal(t, string(want.Body()), string(got.Body()))
			require.Equal(t, want.Lost, got.Lost)
			body := string(want.Body())
			for _, x := range f.Check(want.Body()) {
				require.NotContains(t, []string{"container-missing", "unanswered-server-call", "orphan-server-result", "last-role", "thinking-last"}, x.Rule, "%s\n%s", x, body)
			}
			require.Empty(t, unservedBlocks(t, want.Body()), body)
			for _, id := range []string{"p", "q"} {
				if strings.Contains(body, `"tool_id":"`+id+`"`) {
					require.Contains(t, body, `"id":"`+id+`"`, body)
				}
			}
			switch {
			case want.Fields["container"] != nil:
				named++
			case strings.Contains(fmt.Sprint(want.Lost), "block"):
				stranded++
			default:
				ended++
			}
		}
	}
	t.Log(named, stranded, ended)
	for _, n := range []int{named, stranded, ended} {
		assert.Greater(t, n, 20)
	}
}

// A reference to a tool that the request does not have is a text.
func TestReferences(t *testing.T) {
	refer := func(name string) string { return `{"type":"tool_reference","tool_name":"` + name + `"}` }
	found := func(names ...string) string {
		for i, n := range names {
			names[i] = refer(n)
		}
		return `{"type":"tool_search_tool_result","tool_use_id":"u","content":{"type":"tool_search_tool_search_result","tool_references":[` + strings.Join(names, ",") + `]}}`
	}
	const gone = `{"type":"text","text":"[Found, but not available now: b]"}`
	history := func(tools ...convo.Tool) *convo.History {
		h := relaxed(t, convo.Overheads{}, convo.User("hi"), claudeSays(block(searchU), block(found("a", "b")), convo.ToolCall{ID: "c", Name: "a", Arguments: "{}"}),
			results(convo.ToolResult{CallID: "c", Name: "a", Parts: []convo.Part{block(refer("b")), block(refer("a"))}}), convo.User("and?"))
		require.NoError(t, h.SetTools(tools...))
		return h
	}
	lost := []string{"entry 2, part 1: reference to a tool", "entry 3, part 0, part 0 of the result: reference to a tool"}
	a, b := convo.Tool{Name: "a"}, convo.Tool{Name: "b"}
	own := func(json string) convo.Tool { return convo.Tool{Opaque: convo.Opaque{Format: "anthropic", JSON: json}} }
	for name, tt := range map[string]struct {
		tools  []convo.Tool
		params string // for WithParams
		with   string // for With
		there  bool   // the tool is in the request, or that is not known
		lost   []string
	}{
		"both are there":                 {[]convo.Tool{a, b}, "null", "{}", true, nil},
		"one is not there":               {[]convo.Tool{a}, "null", "{}", false, lost},
		"nothing is known":               {nil, "null", "{}", true, nil},
		"an opaque tool":                 {[]convo.Tool{a, own(`{"name":"b","input_schema":{"type":"object"},"defer_loading":true}`)}, "null", "{}", true, nil},
		"an opaque tool of another name": {[]convo.Tool{a, own(`{"name":"x","type":"tool_search_tool_bm25_20251119"}`)}, "null", "{}", false, lost},
		"a toolset":                      {[]convo.Tool{a, own(`{"type":"mcp_toolset","mcp_server_name":"m"}`)}, "null", "{}", true, nil},
		"a tool of the parameters":       {[]convo.Tool{a}, `{"tools":[{"name":"b"}]}`, "{}", true, nil},
		"the parameters have both":       {nil, `{"tools":[{"name":"a"},{"name":"b"}]}`, "{}", true, nil},
		"the parameters lack one":        {nil, `{"tools":[{"name":"a"}]}`, "{}", false, lost},
		"With has it":                    {nil, "null", `{"tools":[{"name":"a"},{"name":"b"}]}`, true, nil},
		"With lacks it":                  {nil, "null", `{"tools":[{"name":"a"}]}`, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := wire.Anthropic{}.WithParams(json.RawMessage(tt.params))
			r := mustEncode(t, f, history(tt.tools...).Snapshot())
			assert.Equal(t, tt.lost, listed(r.Lost))
			with := tt.with
			if tt.params != "null" {
				r.Tools, with = nil, tt.params
				for _, tool := range tt.tools {
					with = strings.Replace(with, `[`, `[{"name":"`+tool.Name+`"},`, 1)
				}
			}
			body, err := r.With(json.RawMessage(with))
			require.NoError(t, err)
			assert.Equal(t, tt.there, strings.Contains(string(body), refer("b")), "%s", body)
			if !tt.there {
				assert.Contains(t, string(body), found("a")+","+gone)
				assert.Contains(t, string(body), `"content":[`+gone+`,`+refer("a")+`]`)
			}
			for _, x := range f.Check(body) {
				assert.NotEqual(t, "tool-reference", x.Rule, "%s", x)
			}
		})
	}

	// An Encoder follows the tools.
	h := history(a, b)
	e := wire.Encoder{Format: wire.Anthropic{}}
	for _, tools := range [][]convo.Tool{{a, b}, {a}, {a, b}, {b}, nil, {a}} {
		require.NoError(t, h.SetTools(tools...))
		want, got := mustEncode(t, wire.Anthropic{}, h.Snapshot()), mustEncode(t, &e, h.Snapshot())
		assert.Equal(t, string(want.Body()), string(got.Body()))
		assert.Equal(t, want.Lost, got.Lost)
	}

	// Reasoning after a result that is sent in another form is left out for a model that checks.
	checks := wire.Anthropic{Model: "claude-opus-5-5"}
	msg := claudeSays(signed, block(searchU), block(found("b")), signed, convo.Text("so"))
	msg.Origin.Model = "claude-opus-5-5"
	h = relaxed(t, convo.Overheads{})
	require.NoError(t, h.SetTools(a))
	mustAppend(t, h, convo.User("hi"), msg, convo.User("and?"))
	r := mustEncode(t, checks, h.Snapshot())
	assert.Equal(t, []string{"entry 2, part 2: reference to a tool", "entry 2, part 3: reasoning"}, listed(r.Lost))

	// What another provider gets is a text, as before.
	assert.Contains(t, string(mustEncode(t, wire.OpenAIChat{}, history(a).Snapshot()).Body()), "[Tools found: a; b]")

	// A message that removes the tool goes with it.
	removal := block(`{"role":"system","content":[{"type":"tool_removal","tool":{"type":"tool_reference","name":"b"}}]}`)
	h = relaxed(t, convo.Overheads{}, users(convo.Text("hi"), removal))
	betas := wire.Anthropic{Betas: true}
	e = wire.Encoder{Format: betas}
	for _, tools := range [][]convo.Tool{{a, b}, {a}, nil, {a}} {
		require.NoError(t, h.SetTools(tools...))
		want, got := mustEncode(t, betas, h.Snapshot()), mustEncode(t, &e, h.Snapshot())
		assert.Equal(t, string(want.Body()), string(got.Body()))
		if len(tools) == 1 {
			assert.Equal(t, []string{"entry 1, part 1: reference to a tool"}, listed(got.Lost))
		} else {
			assert.Contains(t, string(got.Body()), "tool_removal")
			assert.Empty(t, got.Lost)
		}
	}

	// A name that is none cannot bring a tag into the request.
	h = relaxed(t, convo.Overheads{}, convo.User("hi"), claudeSays(convo.ToolCall{ID: "c", Name: "a", Arguments: "{}"}), results(convo.ToolResult{CallID: "c", Name: "a", Parts: []convo.Part{block(refer("<summary>"))}}))
	require.NoError(t, h.SetTools(a))
	assert.NotContains(t, string(mustEncode(t, wire.Anthropic{}, h.Snapshot()).Body()), "summary")
}

// When a call of code that waits goes from messages that a request has, those after it are written
// to other memory than that of the request.
func TestAnthropic_EndOfCodeLeavesRequests(t *testing.T) {
	var list strings.Builder
	list.WriteString(`{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"code_execution","input":{"code":"x"}},` +
		`{"type":"tool_use","id":"toolu_0","name":"read","input":{},"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_1"}}]}`)
	for i := range 5 {
		list.WriteString(fmt.Sprintf(`,{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":"r"}]},`+
			`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_%d","name":"read","input":{}}]}`, i, i+1))
	}
	list.WriteString(`,{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_5","content":"r"}]}`)
	tr, err := wire.Anthropic{}.Decode([]byte(`{"container":"c","messages":[` + list.String() + `]}`))
	require.NoError(t, err)
	h := relaxedOf(t)
	_, err = h.AppendRows(tr.Messages...)
	require.NoError(t, err)
	e := &wire.Encoder{Format: wire.Anthropic{}}
	first, err := e.Encode(h.Snapshot())
	require.NoError(t, err)
	require.Greater(t, len(first.Messages), 8)
	for _, m := range first.Messages {
		m[len(m)-1] = 'X'
	}
	_, err = h.Append(convo.Assistant("done"), convo.User("more"))
	require.NoError(t, err)
	_, err = e.Encode(h.Snapshot())
	require.NoError(t, err)
	for i, m := range first.Messages {
		assert.Equal(t, byte('X'), m[len(m)-1], "message %d of the first request was written again: %s", i, m)
	}
}

package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// Patch with what Decode returns keeps all bytes, and Decode of what it returns for changed
// messages says what they say.
func TestPatch_Random(t *testing.T) {
	changes := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(formats)) {
		f := formats[name].(wire.Patcher)
		for seed := range long.Or[uint64](30, 200) {
			rng := rand.New(rand.NewPCG(seed, 21))
			g := &generator{rng: rng, h: relaxedOf(t), origins: origins}
			for range 12 {
				g.step()
			}
			req, err := f.Encode(g.h.Snapshot())
			if err != nil {
				continue
			}
			was := slices.Clone(req.Messages)
			if seed%2 == 0 { // as another program may write it
				for i, raw := range was {
					var b bytes.Buffer
					require.NoError(t, json.Indent(&b, raw, " ", "\t"))
					was[i] = b.Bytes()
				}
			}
			list := func(msgs []json.RawMessage) []byte { return []byte("[" + strings.Join(asTexts(msgs), ",") + "]") }
			before, err := f.Decode(list(was))
			require.NoError(t, err)
			at := fmt.Sprintf("%s, seed %d\n", name, seed)

			out, err := f.Patch(was, before.Messages...)
			require.NoError(t, err, at)
			require.Equal(t, asTexts(was), asTexts(out), at)
			more := convo.User("more")
			if last := before.Messages[len(before.Messages)-1]; last.Role == convo.RoleUser {
				more = convo.Assistant("more")
			}
			out, err = f.Patch(was, append(slices.Clip(before.Messages), more)...)
			require.NoError(t, err, at)
			require.Len(t, out, len(was)+1, at)
			require.Equal(t, strings.Join(asTexts(was), "\n"), strings.Join(asTexts(out[:len(was)]), "\n"), at)
			for i, raw := range was {
				if one, err := f.Decode(list(was[i : i+1])); err == nil {
					out, err := f.Patch(was[i:i+1], one.Messages...)
					require.NoError(t, err, at)
					require.Equal(t, []string{string(raw)}, asTexts(out), at)
				}
			}

			now := disturbed(rng, before.Messages, changes)
			out, err = f.Patch(was, now...)
			require.NoError(t, err, at)
			after, err := f.Decode(list(out))
			require.NoError(t, err, at+string(list(out)))
			require.Equal(t, saying(now), saying(after.Messages), at+strings.Join(asTexts(was), "\n")+"\n"+strings.Join(asTexts(out), "\n"))

			rules := map[string]bool{}
			for _, finding := range f.Check(req.Body()) {
				rules[finding.Rule] = true
			}
			rules["alternation"], rules["order"], rules["last-role"] = true, true, true // the messages around those that are missing
			req.Messages = out
			for _, finding := range f.Check(req.Body()) {
				assert.True(t, rules[finding.Rule], "%s%s\n%s", at, finding, strings.Join(asTexts(out), "\n"))
			}
		}
	}
	for _, what := range []string{"cleared", "cut", "unreasoned", "no media", "arguments", "text", "less", "fewer", "unmarked"} {
		assert.Positive(t, changes[what], what)
	}
}

func asTexts(list []json.RawMessage) []string {
	texts := make([]string, len(list))
	for i, raw := range list {
		texts[i] = string(raw)
	}
	return texts
}

// Messages that a provider refuses are kept like others.
func TestPatch_RuleCases(t *testing.T) {
	checked := 0
	wire.EachRuleCase(func(rule string, f wire.Format, body string) {
		var all map[string]json.RawMessage
		if json.Unmarshal([]byte(body), &all) != nil {
			return
		}
		for _, key := range []string{"messages", "contents", "input"} {
			var was []json.RawMessage
			if json.Unmarshal(all[key], &was) != nil {
				continue
			}
			for i := range was {
				one := was[i : i+1]
				msgs, err := f.Decode([]byte("[" + string(was[i]) + "]"))
				if err != nil {
					continue
				}
				checked++
				out, err := f.(wire.Patcher).Patch(one, msgs.Messages...)
				require.NoError(t, err)
				assert.Equal(t, asTexts(one), asTexts(out), rule)
			}
		}
	})
	assert.Greater(t, checked, 100)
}

// disturbed returns messages after a compaction.
func disturbed(rng *rand.Rand, msgs []convo.Message, did map[string]int) (out []convo.Message) {
	one := func(n int, what string) bool {
		if rng.IntN(n) > 0 {
			return false
		}
		did[what]++
		return true
	}
	unmarked := one(2, "unmarked")
	for i := 0; i < len(msgs); i++ {
		m := msgs[i]
		if i > 0 && m.Role == convo.RoleUser && i+1 < len(msgs) && msgs[i+1].Role == convo.RoleAssistant && one(6, "fewer") { // with its answers
			for i+1 < len(msgs) && msgs[i+1].Role != convo.RoleUser {
				i++
			}
			continue
		}
		unreasoned := one(3, "unreasoned")
		var parts []convo.Part
		for k, p := range m.Parts {
			switch x := p.(type) {
			case convo.Reasoning:
				if unreasoned {
					continue
				}
			case convo.Opaque:
				if unmarked && (x.Format == "cache" || strings.Contains(x.JSON, "cachePoint")) {
					continue
				}
			case convo.Media:
				if one(2, "no media") {
					p = convo.Text("[image]")
				}
			case convo.Text:
				if rest := m.Parts[k+1:]; m.Role != convo.RoleSystem && one(4, "text") {
					p = convo.Text("changed")
				} else if m.Role == convo.RoleUser && len(parts) > 0 && len(rest) == 0 && one(2, "less") {
					continue
				}
			case convo.ToolCall:
				if one(4, "arguments") {
					x.Arguments = `{"a":"[cut]"}`
					p = x
				}
			case convo.ToolResult:
				if one(3, "cleared") {
					x.Parts, x.Cleared = []convo.Part{convo.Text("[cleared]")}, true
				} else if len(x.Parts) > 0 && one(3, "cut") {
					x.Parts = slices.Clone(x.Parts)
					for i, in := range x.Parts {
						switch in.(type) {
						case convo.Text:
							x.Parts[i] = convo.Text("short")
						case convo.Media:
							x.Parts[i] = convo.Text("[media]")
						}
					}
				}
				p = x
			}
			parts = append(parts, p)
		}
		m.Parts = parts
		out = append(out, m)
	}
	return out
}

// saying returns what messages say to the model: roles, and the parts without cache marks, blank texts and IDs.
func saying(msgs []convo.Message) (lines []string) {
	var text string
	var role convo.Role
	flush := func() {
		if text != "" {
			lines = append(lines, string(role)+": "+text)
		}
		text = ""
	}
	for _, m := range msgs {
		for _, p := range m.Parts {
			if m.Role != role {
				flush()
				role = m.Role
			}
			switch p := p.(type) {
			case convo.Text:
				if strings.TrimSpace(string(p)) != "" {
					text = strings.TrimPrefix(text+"\n"+string(p), "\n")
				}
				continue
			case convo.Opaque:
				if isBeside(p) || strings.Contains(p.JSON, "convo_fields") {
					continue
				}
				flush()
				lines = append(lines, p.JSON)
			case convo.ToolCall:
				flush()
				lines = append(lines, "call "+p.Name+" "+p.Arguments)
			case convo.ToolResult:
				flush()
				lines = append(lines, fmt.Sprint("result ", p.IsError, saying([]convo.Message{{Parts: p.Parts}})))
			case convo.Reasoning:
				flush()
				lines = append(lines, fmt.Sprintf("reasoning %q %q", p.Text, p.Encrypted))
			default:
				flush()
				lines = append(lines, fmt.Sprint(p))
			}
		}
	}
	flush()
	return lines
}

// cleared returns messages with results cleared, reasoning removed, and other texts, media and
// arguments.
func cleared(msgs []convo.Message) (out []convo.Message) {
	for _, m := range msgs {
		var parts []convo.Part
		for _, p := range m.Parts {
			switch x := p.(type) {
			case convo.ToolResult:
				x.Parts, x.Cleared = []convo.Part{convo.Text("[cleared]")}, true
				p = x
			case convo.Reasoning:
				continue
			case convo.ToolCall:
				x.Arguments = `{"c":1}`
				p = x
			case convo.Text:
				p = convo.Text("[text]")
			case convo.Media:
				p = convo.Text("[media]")
			case convo.Opaque:
				if x.Format == "cache" {
					continue
				}
			}
			parts = append(parts, p)
		}
		m.Parts = parts
		out = append(out, m)
	}
	return out
}

// Only what changed is written anew.
func TestPatch_KeepsBytes(t *testing.T) {
	mark := `"cache_control":{"type":"ephemeral"}`
	for _, tt := range []struct {
		f        wire.Patcher
		was, out string
	}{
		{wire.Anthropic{}, `{ "role" : "user", "x":1, "content":[{"type":"tool_result", "tool_use_id":"a","y":[ 1],"content":[{"type":"text","text":"A",` + mark + `},{"type":"image","source":{"type":"url","url":"https://a/b.png"}}],` + mark + `},{"type":"tool_result","tool_use_id":"b","content":"B"} , {"type":"text","text":"hi"}]}`,
			`{ "role" : "user", "x":1, "content":[{"type":"tool_result", "tool_use_id":"a","y":[ 1],"content":[{"type":"text","text":"[cleared]",` + mark + `}],` + mark + `},{"type":"tool_result","tool_use_id":"b","content":"[cleared]"} , {"type":"text","text":"[text]"}]}`},
		{wire.Anthropic{}, `{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"c2ln"} ,{"type":"text","text":"x","citations":[{"type":"new"}]},{"type":"tool_use","id":"a","name":"f","input":{ "p" : 1},"z":2}]}`,
			`{"role":"assistant","content":[{"type":"text","text":"[text]"},{"type":"tool_use","id":"a","name":"f","input":{"c":1},"z":2}]}`},
		{wire.Anthropic{}, `{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://a/b.png"},` + mark + `},{"type":"thing"}]}`,
			`{"role":"user","content":[{"type":"text","text":"[media]",` + mark + `},{"type":"thing"}]}`},
		{wire.Anthropic{}, `{"role":"system","content":"note"}`, `{"role":"system","content":"[text]"}`},
		{wire.OpenAIChat{}, `{"role":"tool","tool_call_id":"a","content":"A","x":1 }`, `{"role":"tool","tool_call_id":"a","content":"[cleared]","x":1 }`},
		{wire.OpenAIChat{}, `{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"A"}, {"type":"text","text":"B"}] }`, `{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"[cleared]"}] }`},
		{wire.OpenAIChat{Model: "m"}, `{"role":"assistant","reasoning_content":"t","content":"x","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{ }"},"extra_content":{"google":{"thought_signature":"c2ln"}}}],"u":1}`,
			`{"role":"assistant","content":"[text]","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"c\":1}"}}],"u":1}`},
		{wire.OpenAIChat{Dialect: wire.DeepSeek}, `{"role":"assistant","reasoning_content":"t","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{ }"}}]}`,
			`{"role":"assistant","reasoning_content":"","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"c\":1}"}}]}`},
		{wire.OpenAIChat{Dialect: wire.Ollama}, `{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]}`,
			`{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"c":1}}}]}`},
		{wire.OpenAIChat{Dialect: wire.Ollama}, `{"role":"user","content":"see","images":["iVBORw0KGgo="]}`, `{"role":"user","content":"[text]\n[media]"}`},
		{wire.OpenAIResponses{}, `{"type":"function_call_output","call_id":"a","output":"A", "id":"fco_1"}`, `{"type":"function_call_output","call_id":"a","output":"[cleared]", "id":"fco_1"}`},
		{wire.OpenAIResponses{}, `{"type":"custom_tool_call_output","call_id":"a","output":[{"type":"input_text","text":"A"},{"type":"input_image","image_url":"https://a/b.png"}]}`,
			`{"type":"custom_tool_call_output","call_id":"a","output":[{"type":"input_text","text":"[cleared]"}]}`},
		{wire.OpenAIResponses{}, `{"type":"custom_tool_call","call_id":"a","name":"patch","input":"*** Begin"}`, `{"type":"custom_tool_call","call_id":"a","name":"patch","input":"{\"c\":1}"}`},
		{wire.OpenAIResponses{}, `{"type":"message","role":"user","content":[{"type":"input_text","text":"A","prompt_cache_breakpoint":{"mode":"explicit"}},{"type":"input_image","image_url":"https://a/b.png","detail":"high"}]}`,
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"[text]","prompt_cache_breakpoint":{"mode":"explicit"}},{"type":"input_text","text":"[media]"}]}`},
		{wire.OpenAIResponses{}, `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"ZQ=="},{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"x","annotations":[]}]},{"type":"function_call","id":"fc_1","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"A"}`,
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"[text]","annotations":[]}]},{"type":"function_call","id":"fc_1","call_id":"a","name":"f","arguments":"{\"c\":1}"},{"type":"function_call_output","call_id":"a","output":"[cleared]"}`},
		{wire.Gemini{}, `{"role":"user","parts":[{"text":"q"},{"functionResponse":{"name":"f","response":{"output":"A"}}},{"function_response":{"name":"f","response":{"a":1}, "will_continue":false}}]}`,
			`{"role":"user","parts":[{"text":"[text]"},{"functionResponse":{"name":"f","response":{"output":"[cleared]"}}},{"function_response":{"name":"f","response":{"output":"[cleared]"}, "will_continue":false}}]}`},
		{wire.Gemini{}, `{"role":"model","parts":[{"thought":true,"text":"t"},{"functionCall":{"name":"f","args":{"a":1}},"thoughtSignature":"c2ln"},{"functionCall":{"name":"f","args":{"a":1}}}]}`,
			`{"role":"model","parts":[{"functionCall":{"name":"f","args":{"c":1}},"thoughtSignature":"c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="},{"functionCall":{"name":"f","args":{"c":1}}}]}`},
		{wire.Converse{}, `{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"json":{"a":1}}],"status":"success"}},{"cachePoint":{"type":"default"}},{"toolResult":{"toolUseId":"b","content":[{"text":"x"}]}},{"text":"hi"}]}`,
			`{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"[cleared]"}],"status":"success"}},{"cachePoint":{"type":"default"}},{"toolResult":{"toolUseId":"b","content":[{"text":"[cleared]"}]}},{"text":"[text]"}]}`},
		{wire.Converse{}, `{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"t","signature":"s"}}},{"text":"a"},{"toolUse":{"toolUseId":"s","name":"web","input":{},"type":"server_tool_use"}},{"toolResult":{"toolUseId":"s","content":[{"text":"found"}]}},{"toolUse":{"toolUseId":"a","name":"f","input":{"a":1}}}]}`,
			`{"role":"assistant","content":[{"text":"[text]"},{"toolUse":{"toolUseId":"s","name":"web","input":{},"type":"server_tool_use"}},{"toolResult":{"toolUseId":"s","content":[{"text":"found"}]}},{"toolUse":{"toolUseId":"a","name":"f","input":{"c":1}}}]}`},
	} {
		var was []json.RawMessage
		require.NoError(t, json.Unmarshal([]byte("["+tt.was+"]"), &was))
		before, err := tt.f.Decode([]byte("[" + tt.was + "]"))
		require.NoError(t, err)
		out, err := tt.f.Patch(was, before.Messages...)
		require.NoError(t, err)
		assert.Equal(t, tt.was, strings.Join(asTexts(out), ","))
		out, err = tt.f.Patch(was, cleared(before.Messages)...)
		require.NoError(t, err)
		assert.Equal(t, tt.out, strings.Join(asTexts(out), ","))
		out, err = tt.f.Patch(was)
		require.NoError(t, err)
		assert.Empty(t, out)
	}
}

// A block is removed with its part, and a message with its blocks.
func TestPatch_Removes(t *testing.T) {
	for _, tt := range []struct {
		f    wire.Patcher
		was  string
		left []int // the indices of the parts that are left
		out  string
	}{
		{wire.Anthropic{}, `{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"c2ln"},{"type":"text","text":"a"},{"type":"text","text":"b"}],"x":1}`, []int{0, 2},
			`{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"c2ln"},{"type":"text","text":"b"}],"x":1}`},
		{wire.Anthropic{}, `{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"c2ln"},{"type":"text","text":"a"}]}`, []int{0}, ""},
		{wire.Anthropic{}, `{"role":"assistant","content":[{"type":"text","text":" "},{"type":"text","text":"a"}]}`, []int{0}, `{"role":"assistant","content":[{"type":"text","text":" "}]}`},
		{wire.OpenAIChat{}, `{"role":"assistant","content":"a","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}],"x":1}`, []int{0}, `{"role":"assistant","content":"a","x":1}`},
		{wire.OpenAIChat{}, `{"role":"assistant","content":"a","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}],"x":1}`, []int{1},
			`{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}],"x":1}`},
		{wire.OpenAIChat{Model: "m"}, `{"role":"assistant","reasoning":"t","reasoning_details":[{"type":"reasoning.text","text":"t"}],"content":"a"}`, []int{1}, `{"role":"assistant","content":"a"}`},
		{wire.OpenAIResponses{}, `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"ZQ=="},{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"x","annotations":[]}]}`, []int{0}, ""},
		{wire.Gemini{}, `{"role":"model","parts":[{"text":"a","thoughtSignature":"c2ln"},{"text":"b","thoughtSignature":"c2ln"}]}`, []int{1, 2, 3}, `{"role":"model","parts":[{"text":"a"},{"text":"b","thoughtSignature":"c2ln"}]}`},
		{wire.Converse{}, `{"role":"user","content":[{"text":"a"},{"cachePoint":{"type":"default"}}, {"text":"b"}]}`, []int{2}, `{"role":"user","content":[{"text":"b"}]}`},
	} {
		var was []json.RawMessage
		require.NoError(t, json.Unmarshal([]byte("["+tt.was+"]"), &was))
		before, err := tt.f.Decode([]byte("[" + tt.was + "]"))
		require.NoError(t, err)
		require.Len(t, before.Messages, 1)
		now := before.Messages[0]
		now.Parts = nil
		for _, i := range tt.left {
			now.Parts = append(now.Parts, before.Messages[0].Parts[i])
		}
		out, err := tt.f.Patch(was, now)
		require.NoError(t, err)
		assert.Equal(t, tt.out, strings.Join(asTexts(out), ","), tt.was)
	}
}

// Results are matched by CallID, and by their order without one.
func TestPatch_Results(t *testing.T) {
	result := func(id, text string) convo.Message {
		return convo.Message{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{CallID: id, Parts: []convo.Part{convo.Text(text)}}}}
	}
	was := `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"A"},{"type":"tool_result","tool_use_id":"b","content":"B"},{"type":"tool_result","tool_use_id":"c","content":"C"}]}`
	for _, tt := range []struct {
		now []convo.Message
		out string
	}{
		{[]convo.Message{result("c", "C"), result("b", "x"), result("a", "A")}, strings.Replace(was, `"B"`, `"x"`, 1)},
		{[]convo.Message{result("b", "x")}, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"x"}]}`},
		{[]convo.Message{result("", "A"), result("", "x"), result("", "C")}, strings.Replace(was, `"B"`, `"x"`, 1)},
		{[]convo.Message{result("a", "A"), result("b", "B"), result("c", "C"), convo.User("and"), convo.User(" ")}, strings.Replace(was, `"C"}]}`, `"C"}]}`+"\n"+`{"role":"user","content":[{"type":"text","text":"and"}]}`, 1)},
	} {
		out, err := wire.Anthropic{}.Patch([]json.RawMessage{json.RawMessage(was)}, tt.now...)
		require.NoError(t, err)
		assert.Equal(t, tt.out, strings.Join(asTexts(out), "\n"))
	}
}

func TestPatch_Errors(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(formats)) {
		for _, raw := range []string{"", "{", "7", `{"role":"user","content":tru,"parts":tru}`, `{"role":"nobody"}`, `{},{}`, `{"role":"user","content":7,"parts":7}`} {
			_, err := formats[name].(wire.Patcher).Patch([]json.RawMessage{json.RawMessage(raw)}, convo.User("x"))
			var e *wire.DecodeError
			assert.ErrorAs(t, err, &e, "%s: %s", name, raw)
		}
	}
}

// A message of its own is decoded without loss, whatever its role.
func TestDecode_Lone(t *testing.T) {
	for _, tt := range []struct {
		f         wire.Format
		raw, want string
	}{
		{wire.Anthropic{}, `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`, "[call f {}]"},
		{wire.Anthropic{}, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"A"}]}`, "[result false [: A]]"},
		{wire.OpenAIChat{}, `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}}]}`, "[call f ]"},
		{wire.OpenAIChat{}, `{"role":"tool","tool_call_id":"a","content":"A"}`, "[result false [: A]]"},
		{wire.OpenAIResponses{}, `{"type":"function_call","call_id":"a","name":"f","arguments":"{"}`, "[call f {]"},
		{wire.OpenAIResponses{}, `{"type":"function_call_output","call_id":"a","output":"A"}`, "[result false [: A]]"},
		{wire.OpenAIResponses{}, `[{"type":"function_call_output","call_id":"a","output":"A"},{"type":"custom_tool_call_output","call_id":"b","output":"B"}]`, "[result false [: A] result false [: B]]"},
		{wire.Gemini{}, `{"role":"model","parts":[{"functionCall":{"name":"f"}}]}`, "[call f ]"},
		{wire.Gemini{}, `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"A"}}}]}`, "[result false [: A]]"},
		{wire.Converse{}, `{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"f","input":{}}}]}`, "[call f {}]"},
		{wire.Converse{}, `{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"A"}]}}]}`, "[result false [: A]]"},
	} {
		got, err := tt.f.Decode([]byte(tt.raw))
		require.NoError(t, err)
		assert.Equal(t, tt.want, fmt.Sprint(saying(got.Messages)), tt.raw)
		assert.Empty(t, got.Lost, tt.raw)
		assert.Nil(t, got.CutOff, tt.raw)
		for _, m := range got.Messages {
			for _, r := range m.ToolResults() {
				assert.Contains(t, []string{"a", "b", ""}, r.CallID)
			}
		}
	}
	answer := `{"type":"message","role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`
	got, err := wire.Anthropic{}.Decode([]byte(answer))
	require.NoError(t, err)
	assert.NotNil(t, got.CutOff, "an answer that does not say why it ended")
	got, err = wire.OpenAIResponses{}.Decode([]byte(`{"input":[{"type":"function_call_output","call_id":"a","output":"A"}],"previous_response_id":"r"}`))
	require.NoError(t, err)
	assert.Empty(t, got.Messages)
	assert.NotEmpty(t, got.Lost)
}

func FuzzPatch(f *testing.F) {
	names := slices.Sorted(maps.Keys(formats))
	for i, raw := range []string{
		`[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"A"}]},{"type":"text","text":"q","citations":[]}]}]`,
		`[{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"c2ln"},{"type":"tool_use","id":"a","name":"f","input":{}}]}]`,
		`[{"role":"assistant","reasoning_details":[{"type":"x"}],"content":"x","refusal":"no","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"},"extra_content":{}}]},{"role":"tool","tool_call_id":"a","content":"A"}]`,
		`[{"type":"reasoning","id":"r","summary":[]},{"type":"custom_tool_call","id":"i","call_id":"a","name":"f","input":"x"},{"type":"custom_tool_call_output","call_id":"a","output":[]},{"role":"user","content":[{"type":"input_text","text":"q"}]}]`,
		`[{"role":"model","parts":[{"functionCall":{"name":"f"},"thoughtSignature":"c2ln"}]},{"role":"user","parts":{"functionResponse":{"name":"f","response":{"a":1},"parts":[{"inlineData":{"mimeType":"image/png","data":"eA=="}}]}}}]`,
		`[{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"json":{}},{"cachePoint":{}}]}},{"text":" "}]},{"role":"assistant","content":[{"citationsContent":{"content":[{"text":"x"}],"citations":[{}]}},{"toolUse":{"toolUseId":"a","name":"f"}}]}]`,
	} {
		for name := range names {
			f.Add([]byte(raw), uint8(name), uint64(i))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, name uint8, seed uint64) {
		format := formats[names[int(name)%len(names)]].(wire.Patcher)
		var was []json.RawMessage
		if json.Unmarshal(data, &was) != nil {
			_, err := format.Patch([]json.RawMessage{data}, convo.User("x"))
			require.Error(t, err)
			return
		}
		before, err := format.Decode([]byte("[" + strings.Join(asTexts(was), ",") + "]"))
		_, patchErr := format.Patch(was, convo.User("x"), convo.Assistant("y", convo.ToolCall{ID: "a", Name: "f"}), convo.System("z"))
		if err != nil {
			require.Error(t, patchErr)
			return
		}
		out, err := format.Patch(was, disturbed(rand.New(rand.NewPCG(seed, 1)), before.Messages, map[string]int{})...)
		if err == nil {
			require.True(t, json.Valid([]byte("["+strings.Join(asTexts(out), ",")+"]")), "%s", out)
		}
	})
}

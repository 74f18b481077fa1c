package wire_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// Random conversations with Opaque items of all types give valid requests.
func TestOpenAIResponses_RandomItemsGiveValidRequests(t *testing.T) {
	odd := []string{`{"type":"web_search_call","id":"ws_1"}`, `{"type":"web_search_call","id":"ws_2"}`, `{"type":"custom_tool_call","call_id":"k","id":"ctc_1"}`, `{"type":"custom_tool_call","call_id":"k"}`,
		`{"type":"custom_tool_call","call_id":"k","id":"ctc_2","name":"f","input":"x"}`, `{"type":"custom_tool_call","call_id":"c1","name":"f","input":"x"}`, `{"type":"custom_tool_call_output","call_id":"c1","output":"x"}`,
		`{"type":"custom_tool_call_output","call_id":"k","output":"x"}`, `{"type":"custom_tool_call_output","call_id":"k"}`, `{"type":"convo_fields","call":"custom"}`, `{"type":"function_call","call_id":"c1"}`, `{"type":"function_call_output","call_id":"c1","output":""}`, `{"type":"reasoning"}`,
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}`, `{"type":"reasoning","id":"rs_2","summary":[],"content":[{"type":"reasoning_text","text":"x"}]}`,
		`{"type":"message","role":"user","content":"x"}`, `{"role":"assistant","id":"msg_1","content":"x"}`, `{"role":"tool"}`, `{}`, `[]`, `7`, `{"type":7}`, `{"type":"compaction","id":"cmp_1"}`,
		`{"type":"input_text","text":"x"}`, `{"type":"output_text","text":"x"}`, `{"type":"input_image"}`, `{"type":"refusal","refusal":"x"}`, `{"type":"additional_tools","role":"developer"}`,
		`{"type":"convo_fields","id":"msg_1","phase":"commentary","namespace":"a b"}`, `{"type":"convo_fields","id":"fc_1","namespace":"ns"}`, `{"type":"item_reference","id":"rs_1"}`}
	reasoning := []convo.Reasoning{{ID: "rs_1", Encrypted: "e", Signature: "fc_1"}, {ID: "rs_3", Encrypted: "e", Signature: "msg_1"}, {ID: "rs_3", Encrypted: "e", Signature: "rs_3"}, {ID: "x", Text: "hm"}, {Encrypted: "e"}}
	n := 0
	for seed := range long.Or[uint64](120, 2000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		h := relaxedOf(t)
		g := &generator{rng: rng, h: h, origins: []convo.Origin{{}, {Format: "openai-responses", Model: "m1"}, {Format: "openai-responses", Model: "m2"}}}
		for range 1 + g.n(12) {
			g.step()
		}
		msgs := h.Snapshot().Messages()
		plain := seed%2 == 0
		for i := range msgs {
			for range g.n(4) {
				if plain {
					break
				}
				var p convo.Part = item(odd[g.n(len(odd))])
				if msgs[i].Role == convo.RoleTool {
					r := msgs[i].Parts[0].(convo.ToolResult)
					r.Parts = append(slices.Clone(r.Parts), p)
					msgs[i].Parts = []convo.Part{r}
					continue
				}
				if msgs[i].Role == convo.RoleAssistant && g.n(2) == 0 {
					p = reasoning[g.n(len(reasoning))]
				}
				msgs[i].Parts = slices.Insert(slices.Clone(msgs[i].Parts), g.n(len(msgs[i].Parts)+1), p)
			}
		}
		s := convo.NewSnapshot(msgs)
		for _, f := range []wire.OpenAIResponses{{}, {Model: "m1"}, {Developer: true}, {Plain: true}} {
			r, err := f.Encode(s)
			if err != nil {
				require.ErrorIs(t, err, wire.ErrEmpty)
				continue
			}
			n++
			if found := f.Check(r.Body()); len(found) > 0 {
				t.Fatalf("seed %d, %+v: %v\n%s", seed, f, found, r.Body())
			}
			in := mustDecode(t, f, r.Body())
			restored := restoredOf(t, convo.NewSnapshot(in.Messages), "seed %d: %s", seed, r.Body())
			if f.Model != "" {
				continue // Decode does not know the model
			}
			again := mustEncode(t, f, restored.Snapshot())
			if plain {
				require.Equal(t, string(r.Body()), string(again.Body()), "seed %d %+v", seed, f)
				continue
			}
			// Opaque texts have become texts, and stay texts.
			in = mustDecode(t, f, again.Body())
			third := mustEncode(t, f, convo.NewSnapshot(in.Messages))
			require.Equal(t, string(again.Body()), string(third.Body()), "seed %d %+v", seed, f)
		}
	}
	t.Logf("%d requests", n)
}

// A recorded request in which items were removed, repeated and swapped becomes
// valid when it is decoded, repaired by Restore, and encoded.
func TestOpenAIResponses_DamagedRequestsAreMended(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	torn, wrong := 0, 0
	eachResponses(t, func(t *testing.T, f wire.OpenAIResponses, r recording) {
		for range long.Or(6, 30) {
			var body struct {
				Input []json.RawMessage `json:"input"`
			}
			require.NoError(t, json.Unmarshal(r.Request, &body))
			for range 1 + rng.IntN(4) {
				n := len(body.Input)
				if n == 0 {
					break
				}
				switch i, k := rng.IntN(n), rng.IntN(n); rng.IntN(3) {
				case 0:
					body.Input = slices.Delete(body.Input, i, i+1)
				case 1:
					body.Input = slices.Insert(body.Input, k, body.Input[i])
				default:
					body.Input[i], body.Input[k] = body.Input[k], body.Input[i]
				}
			}
			data, err := json.Marshal(body)
			require.NoError(t, err)
			torn++
			if len(f.Check(data)) > 0 {
				wrong++
			}
			in := mustDecode(t, f, data)
			out, err := f.Encode(restored(t, in))
			if err != nil {
				require.ErrorIs(t, err, wire.ErrEmpty)
				continue
			}
			if r.Status == 200 {
				require.Empty(t, f.Check(out.Body()), "%s: %s\n%s", r.ID, data, out.Body())
			}
		}
	})
	t.Logf("%d requests, %d of them wrong", torn, wrong)
}

var responsesSeeds = []string{
	customResponses,
	`{"instructions":"s","input":"Hi"}`,
	`{"input":[{"role":"user","content":[{"type":"input_text","text":"x"},{"type":"input_image","image_url":"data:image/png;base64,eA=="}]},{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"t"}],"encrypted_content":"e"},{"type":"function_call","id":"fc_1","call_id":"c","name":"f","namespace":"n","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"x"},{"type":"message","id":"msg_1","phase":"p","role":"assistant","content":[{"type":"output_text","text":"y"},{"type":"refusal","refusal":"z"}]}]}`,
	`{"object":"response","model":"m","output":[{"type":"web_search_call","id":"ws_1"},{"type":"custom_tool_call","call_id":"k"}],"usage":{"input_tokens":1}}`,
	`{"input":[{"role":"user","content":"x"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"},{"type":"program","id":"cm_1","call_id":"p","code":"f()"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"1"},{"type":"program_output","id":"cmo_1","call_id":"p","result":"x"},{"role":"user","content":"y"}]}`,
	`{"input":[{"type":"program","call_id":"p"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"1"}]}`,
	`{"input":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"","new":1},{"type":"web_search_call","id":"ws_1"},{"type":"shell_call","call_id":"k","environment":{"type":"container_auto"}},{"type":"shell_call_output","call_id":"k","output":[]}]}`,
	`{"input":[{"type":"custom_tool_call","call_id":"k"},{"type":"custom_tool_call_output","call_id":"k"},{"type":"item_reference","id":"x"},{"role":"user","content":[{"type":"odd"}]}]}`,
}

func FuzzOpenAIResponses_Decode(f *testing.F) {
	for _, seed := range responsesSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		checkDecoded(t, wire.OpenAIResponses{Plain: len(data)%2 == 0, Developer: len(data)%3 == 0}, data)
	})
}

func FuzzOpenAIResponses_Check(f *testing.F) {
	for _, seed := range responsesSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkFindings(t, wire.OpenAIResponses{}, data) })
}

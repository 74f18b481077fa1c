package wire_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/bpetest"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// The names of the formats are saved with conversations, so they never change, and an
// answer has the name of the format that decoded it.
func TestFormatNames(t *testing.T) {
	for _, tt := range []struct {
		format  wire.Format
		name    string
		want    string
		message string
	}{
		{wire.OpenAIChat{}, wire.FormatOpenAIChat, "openai-chat", `{"role":"assistant","content":"a"}`},
		{wire.OpenAIChat{Dialect: wire.StrictAlternation}, wire.FormatOpenAIChat, "openai-chat", `{"role":"assistant","content":"a"}`},
		{wire.OpenAIChat{Dialect: wire.DeepSeek}, wire.FormatDeepSeek, "deepseek", `{"role":"assistant","content":"a"}`},
		{wire.OpenAIChat{Dialect: wire.Mistral}, wire.FormatMistral, "mistral", `{"role":"assistant","content":"a"}`},
		{wire.OpenAIChat{Dialect: wire.Ollama}, wire.FormatOllama, "ollama", `{"role":"assistant","content":"a"}`},
		{wire.OpenAIResponses{}, wire.FormatOpenAIResponses, "openai-responses", `{"role":"assistant","content":"a"}`},
		{wire.Anthropic{}, wire.FormatAnthropic, "anthropic", `{"role":"assistant","content":"a"}`},
		{wire.Gemini{}, wire.FormatGemini, "gemini", `{"role":"model","parts":[{"text":"a"}]}`},
		{wire.Converse{}, wire.FormatConverse, "converse", `{"role":"assistant","content":[{"text":"a"}]}`},
	} {
		assert.Equal(t, tt.want, tt.name)
		in := mustDecode(t, tt.format, []byte(tt.message))
		require.Len(t, in.Messages, 1)
		assert.Equal(t, convo.Origin{Format: tt.want}, in.Messages[0].Origin)
	}
}

func TestRequest_With(t *testing.T) {
	snap := convo.NewSnapshot([]convo.Message{convo.System("s"), convo.User("q")})
	for name, f := range encoderFormats {
		req := mustEncode(t, f, snap)
		plain := req.Body()
		req.Tools = toolsOf(t, f, convo.Tool{Name: "a"})
		for params, want := range map[any]string{
			nil: "", (*struct{ A int })(nil): "", struct{}{}: "",
			struct {
				Model  string `json:"model"`
				Stream bool   `json:"stream"`
			}{"m", true}: `"model":"m","stream":true,`,
		} {
			got, err := req.With(params)
			require.NoError(t, err)
			assert.Equal(t, "{"+want+string(req.Body()[1:]), string(got), name)
			assert.Empty(t, f.Check(got), name)
		}
		for range 8 {
			got, err := req.With(map[string]any{"model": "m", "b": 1, "a": map[string]int{"y": 1, "x": 2}})
			require.NoError(t, err)
			assert.Equal(t, `{"a":{"x":2,"y":1},"b":1,"model":"m",`+string(req.Body()[1:]), string(got), name)
		}
		got, err := req.With(json.RawMessage(" {\n\"model\": \"m\" } "))
		require.NoError(t, err)
		assert.Equal(t, `{"model":"m",`+string(req.Body()[1:]), string(got), name)

		// No field of the request can be repeated, in any spelling of its name.
		all := map[string]json.RawMessage{}
		require.NoError(t, json.Unmarshal(req.Body(), &all))
		for key := range all {
			spelled := fmt.Sprintf(`{"\u%04x%s":1}`, key[0], key[1:])
			for _, params := range []any{map[string]any{key: 1}, map[string]any{key: nil}, json.RawMessage(spelled)} {
				_, err := req.With(params)
				var wrong *convo.ValueError
				require.ErrorAs(t, err, &wrong, "%s: %v", name, params)
				assert.Contains(t, wrong.Error(), key)
			}
		}
		// Params may set tools if the request has none.
		req.Tools = nil
		got, err = req.With(map[string]any{"tools": []any{}})
		require.NoError(t, err)
		assert.Equal(t, `{"tools":[],`+string(plain[1:]), string(got), name)

		for _, params := range []any{7, "a", true, []int{1}, []byte("{}")} {
			_, err := req.With(params)
			var wrong *convo.ValueError
			require.ErrorAs(t, err, &wrong, "%v", params)
			assert.Equal(t, "params", wrong.Name)
		}
		_, err = req.With(func() {})
		assert.ErrorContains(t, err, "wire: the parameters of a request: ")
	}

	none, err := wire.Request{}.With(map[string]any{"model": "m"})
	require.NoError(t, err)
	assert.Equal(t, `{"model":"m","messages":[]}`, string(none))
	none, err = wire.Request{}.With(map[string]any{"system": "s"})
	require.NoError(t, err)
	assert.Equal(t, `{"system":"s","messages":[]}`, string(none))
}

// With refuses params that would not give a JSON object, or that would repeat a field.
func TestRequest_WithRefuses(t *testing.T) {
	snap := convo.NewSnapshot([]convo.Message{convo.User("q")})
	for name, f := range encoderFormats {
		req := mustEncode(t, f, snap)
		for _, params := range []string{`{"a":1,"a":2}`, `{"a":1,"b":[{},"]"],"\u0061":2}`, `{ "a" : {"x":1} , "a" : null }`} {
			buf := []byte("before")
			got, err := req.AppendWith(buf, json.RawMessage(params))
			var wrong *convo.ValueError
			require.ErrorAs(t, err, &wrong, "%s: %s", name, params)
			assert.Equal(t, "params", wrong.Name)
			assert.Contains(t, wrong.Error(), "the field a twice")
			assert.Equal(t, buf, got, "as it was")
		}
		_, err := req.With(json.RawMessage(`{"a":{"b":1},"b":[{"a":1},{"a":2}]}`))
		require.NoError(t, err, "in different objects, a name may come again")
		for _, tools := range []string{"[", "x", " ", `[{"a":1}] [`, `{"a":1}}`} {
			req.Tools = json.RawMessage(tools)
			for _, params := range []any{nil, map[string]any{"model": "m"}} {
				got, err := req.AppendWith([]byte("before"), params)
				var wrong *convo.ValueError
				require.ErrorAs(t, err, &wrong, "%s: %q", name, tools)
				assert.Equal(t, "Request.Tools", wrong.Name)
				assert.Equal(t, "before", string(got))
			}
		}
	}
}

// A request is copied once: With and Body allocate only their result, in the right size,
// and AppendWith allocates nothing if there is room.
func TestRequest_WithAllocations(t *testing.T) {
	if bpetest.RaceDetector {
		t.Skip("under the race detector a sync.Pool drops some of its items, and json.Marshal allocates them again")
	}
	s := conversationOf(long.Or(15, 150)).Snapshot()
	params := json.RawMessage(`{"model":"m"}`)
	marshal := testing.AllocsPerRun(10, func() { _, _ = json.Marshal(params) })
	for name, f := range encoderFormats {
		req := mustEncode(t, f, s)
		for _, tools := range []json.RawMessage{nil, json.RawMessage(`[{"a":1}]`)} {
			req.Tools = tools
			body := req.Body()
			require.True(t, json.Valid(body))
			with, err := req.With(params)
			require.NoError(t, err)
			assert.Equal(t, `{"model":"m",`+string(body[1:]), string(with))
			assert.Contains(t, fmt.Sprint(req), fmt.Sprintf(" %d bytes", len(body)))
			assert.Equal(t, 1.0, testing.AllocsPerRun(5, func() { _ = req.Body() }), name)
			assert.Less(t, cap(body)-len(body), len(body)/8+64, "%s: no more than the allocator rounds up", name)
			assert.Less(t, cap(with)-len(with), len(with)/8+64, name)
			few := testing.AllocsPerRun(5, func() { _, _ = req.With(params) })
			assert.LessOrEqual(t, few, marshal+6, name)
			buf := make([]byte, 0, len(with))
			assert.Equal(t, few-1, testing.AllocsPerRun(5, func() { _, _ = req.AppendWith(buf, params) }), "%s: not the request", name)
			assert.LessOrEqual(t, testing.AllocsPerRun(5, func() { _, _ = req.AppendWith(buf, nil) }), 1.0, name)

			got, err := req.AppendWith([]byte("before "), params)
			require.NoError(t, err)
			assert.Equal(t, "before "+string(with), string(got), name)
		}
	}
}

// Each format has all interfaces that an agent needs.
func TestFormats_AreProviders(t *testing.T) {
	for name, f := range encoderFormats {
		_, ok := f.(provider)
		assert.True(t, ok, name)
	}
}

// The printed forms of a Transcript and of an Encoder are short.
func TestFormats_Print(t *testing.T) {
	long := strings.Repeat("m", 65)
	for _, in := range []wire.Transcript{{Model: long}, {ID: long}, {StopReason: long}} {
		got := fmt.Sprintf("%v %+v", in, in)
		assert.Contains(t, got, long[1:]+"…")
		assert.NotContains(t, got, long)
	}
	assert.Contains(t, fmt.Sprint(wire.Transcript{Model: long[1:]}), long[1:]+" ")
	e := &wire.Encoder{Format: wire.Gemini{}}
	assert.Equal(t, "encoder(wire.Gemini) encoder(wire.Gemini)", fmt.Sprintf("%v %#v", e, e))
}

// Fields are in the body, before the rest, in the order of their names.
func TestRequest_Fields(t *testing.T) {
	r := wire.Request{Messages: []json.RawMessage{[]byte("1")}, Fields: map[string]json.RawMessage{"b": []byte(`{"x":1}`), "a": []byte("2")}}
	assert.Equal(t, `{"a":2,"b":{"x":1},"messages":[1]}`, string(r.Body()))
	got, err := r.With(map[string]any{"model": "m"})
	require.NoError(t, err)
	assert.Equal(t, `{"model":"m","a":2,"b":{"x":1},"messages":[1]}`, string(got))
	for name, params := range map[string]any{"params": map[string]any{"a": 1}, `Request.Fields["b"]`: nil, "Request.Fields": 0} {
		wrong := r
		switch params {
		case nil:
			wrong.Fields = map[string]json.RawMessage{"b": []byte("x")}
		case 0:
			wrong.Fields, params = map[string]json.RawMessage{"messages": []byte("1")}, nil
		}
		_, err := wrong.With(params)
		var value *convo.ValueError
		require.ErrorAs(t, err, &value, name)
		assert.Equal(t, name, value.Name)
	}
}

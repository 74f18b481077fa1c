package wire_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

func TestPrefixShare_ComparesAllContent(t *testing.T) {
	image := func(data string) convo.Message { return convo.User("look", convo.NewMedia("image/png", []byte(data))) }
	thought := func(text string) convo.Message {
		return convo.Message{Role: convo.RoleAssistant, Origin: convo.Origin{Format: "deepseek"}, Parts: []convo.Part{convo.Reasoning{Text: text}, convo.Text("a")}}
	}
	for _, tt := range []struct {
		f    wire.Format
		a, b convo.Message
	}{
		{wire.OpenAIChat{Dialect: wire.Ollama}, image("x"), image("y")},
		{wire.OpenAIChat{}, image("x"), image("y")},
		{wire.OpenAIChat{Dialect: wire.DeepSeek, Reasoning: convo.ReplayAll}, thought("x"), thought("y")},
	} {
		a := mustEncode(t, tt.f, convo.NewSnapshot([]convo.Message{convo.User("q"), tt.a}))
		b := mustEncode(t, tt.f, convo.NewSnapshot([]convo.Message{convo.User("q"), tt.b}))
		assert.Less(t, wire.PrefixShare(a, b), 1.0)
		assert.Equal(t, 1.0, wire.PrefixShare(a, a))
	}
}

func TestPrefixShare_OfNothing(t *testing.T) {
	r := mustEncode(t, wire.Anthropic{}, convo.NewSnapshot([]convo.Message{convo.User("q")}))
	assert.Equal(t, 1.0, wire.PrefixShare(wire.Request{}, r))
	assert.Equal(t, 0.0, wire.PrefixShare(r, wire.Request{}))
}

// A different system text gives a different prefix in every format, wherever it is in the
// request; user messages are not part of the prefix.
func TestPrefix_SystemText(t *testing.T) {
	for name, f := range encoderFormats {
		if chat, ok := f.(wire.OpenAIChat); ok && chat.Dialect == wire.Gemma {
			continue // sends system text in the first user message
		}
		encode := func(msgs ...convo.Message) wire.Request {
			r := mustEncode(t, f, convo.NewSnapshot(msgs))
			return r
		}
		a := encode(convo.System("You are A."), convo.User("q"))
		b := encode(convo.System("You are B."), convo.User("q"))
		two := encode(convo.System("You are A."), convo.System("Be brief."), convo.User("q"))
		assert.NotEqual(t, a.Prefix(), b.Prefix(), name)
		assert.NotEqual(t, a.Prefix(), two.Prefix(), name)
		assert.NotEqual(t, a.Prefix(), encode(convo.User("q")).Prefix(), name)
		assert.Equal(t, "block 0 of the system text has changed", wire.PrefixDiff(a, b), name)
		assert.Contains(t, wire.PrefixDiff(a, two), "of the system text", name)
		assert.Equal(t, "block 0 of the system text is gone", wire.PrefixDiff(a, encode(convo.User("q"))), name)

		other := encode(convo.System("You are A."), convo.User("r"), convo.Assistant("s"), convo.User("t"))
		assert.Equal(t, a.Prefix(), other.Prefix(), name)
		assert.Regexp(t, "block 0 of message [01] has changed", wire.PrefixDiff(a, other), name)
	}

	// Only messages before everything else count.
	list := func(items ...string) (r wire.Request) {
		for _, item := range items {
			r.Messages = append(r.Messages, json.RawMessage(item))
		}
		return r
	}
	user, developer := `{"role":"user","content":"q"}`, `{"type":"message","role":"developer","content":"d"}`
	tools := `{"type":"additional_tools","role":"developer","tools":[]}`
	assert.Equal(t, list(user).Prefix(), list(user, developer).Prefix())
	assert.NotEqual(t, list(user).Prefix(), list(developer, user).Prefix())
	assert.Equal(t, list(user).Prefix(), list(tools, user).Prefix())
	assert.Equal(t, "block 0 of message 1 has changed", wire.PrefixDiff(list(developer, user), list(developer, `{"role":"user","content":"r"}`)))
}

// The first difference is named by its field or block. The fields are those of the API
// references of OpenAI (Responses: phase, id and status of a message, additional_tools;
// Chat: name, refusal, audio), OpenRouter (reasoning_details) and Mistral (prefix).
func TestPrefixDiff_Fields(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{`{"role":"assistant","phase":"commentary","content":"a"}`, `{"role":"assistant","phase":"final_answer","content":"a"}`, `the field "phase" of message 1 has changed`},
		{`{"role":"assistant","content":"a"}`, `{"role":"assistant","phase":"final_answer","content":"a"}`, `the field "phase" of message 1 is new`},
		{`{"role":"assistant","phase":"commentary","content":"a"}`, `{"role":"assistant","content":"a"}`, `the field "phase" of message 1 is gone`},
		{`{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[]}`, `{"type":"message","id":"msg_2","role":"assistant","status":"completed","content":[]}`, `the field "id" of message 1 has changed`},
		{`{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[]}`, `{"type":"message","id":"msg_1","role":"assistant","status":"incomplete","content":[]}`, `the field "status" of message 1 has changed`},
		{`{"type":"additional_tools","role":"developer","tools":[{"name":"f"}]}`, `{"type":"additional_tools","role":"developer","tools":[{"name":"g"}]}`, `block 0 of message 1 has changed`},
		{`{"role":"assistant","content":"a","prefix":true}`, `{"role":"assistant","content":"a","prefix":false}`, `the field "prefix" of message 1 has changed`},
		{`{"role":"user","name":"ann","content":"a"}`, `{"role":"user","name":"bob","content":"a"}`, `the field "name" of message 1 has changed`},
		{`{"role":"assistant","content":"a","reasoning_details":[{"data":"x"}]}`, `{"role":"assistant","content":"a","reasoning_details":[{"data":"y"}]}`, `block 1 of message 1 has changed`},
		{`{"role":"assistant","refusal":"a"}`, `{"role":"assistant","refusal":"b"}`, `the field "refusal" of message 1 has changed`},
		{`{"role":"assistant","audio":{"id":"a"}}`, `{"role":"assistant","audio":{"id":"b"}}`, `the field "audio" of message 1 has changed`},
		{`{"role":"assistant","content":"a"}`, `{"role":"assistant","refusal":"a"}`, `block 0 of message 1 is gone`},
		{`{"role":"user"}`, `{"role":"assistant"}`, `block 0 of message 1 has changed`},
		{`{"role":"user","content":"a"}`, `{"role":"assistant","content":"a"}`, `block 0 of message 1 has changed`},
		{`{"role":"user","content":"a"}`, `{"role":"user","content":["a","b"]}`, `block 0 of message 1 has changed`},
		{`{"role":"user","content":["a"]}`, `{"role":"user","content":["a","b"]}`, `block 1 of message 1 is new`},
		{`{"type":"reasoning","id":"rs_1"}`, `{"type":"reasoning","id":"rs_2"}`, `block 0 of message 1 has changed`},
		{`{"role":"user","content":"a"}`, `{ "role" : "user", "name" : null, "content" : "a" }`, ""},
		{`{"role":"user","content":"a","cache_control":{"type":"ephemeral"}}`, `{"role":"user","content":"a"}`, ""},
		{`{"role":"user","content":[{"type":"text","cache_control":{"ttl":"1h","type":"ephemeral"},"text":"a"}]}`, `{"role":"user","content":[{"type":"text","text":"a"}]}`, ""},
		{`{"role":"user","content":[{"toolResult":{"content":[{"text":"a"},{"cachePoint":{"type":"default"}}]}}]}`, `{"role":"user","content":[{"toolResult":{"content":[{"text":"a"}]}}]}`, ""},
		{`{"role":"user","content":[{"cachePoint":{},"text":"a"}]}`, `{"role":"user","content":[{"cachePoint":{},"text":"b"}]}`, `block 0 of message 1 has changed`},
		{`{"role":"user","content":"a",`, `{"role":"user","content":"a",,`, `block 0 of message 1 has changed`}, // no JSON
		{`{"role":"assistant","content":[{"type":"tool_use","input":{"cache_control":"a"}}]}`, `{"role":"assistant","content":[{"type":"tool_use","input":{"cache_control":"b"}}]}`, `block 0 of message 1 has changed`},
	} {
		q := json.RawMessage(`{"role":"user","content":"q"}`)
		a := wire.Request{Messages: []json.RawMessage{q, json.RawMessage(tt.a), q}}
		b := wire.Request{Messages: []json.RawMessage{q, json.RawMessage(tt.b), q}}
		assert.Equal(t, tt.want, wire.PrefixDiff(a, b), "%s %s", tt.a, tt.b)
		assert.Equal(t, tt.want == "", wire.PrefixShare(a, b) == 1, "%s %s", tt.a, tt.b)
		assert.Equal(t, tt.want == "", wire.PrefixDiff(b, a) == "", "%s %s", tt.b, tt.a)
		assert.Empty(t, wire.PrefixDiff(a, a))
	}
}

// Marks on tools do not count anywhere; values that only look like a mark do.
func TestPrefix_MarksOnTools(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{`[{"name":"f"},{"name":"g"}]`, `[{"name":"f","cache_control":{"type":"ephemeral"}},{"name":"g"}]`, true},
		{`[{"name":"f"},{"name":"g"}]`, `[{"cache_control":{"ttl":"1h","type":"ephemeral"},"name":"f"},{"name":"g"}]`, true},
		{`{"tools":[{"toolSpec":{"name":"f"}},{"toolSpec":{"name":"g"}}]}`, `{"tools":[{"toolSpec":{"name":"f"}},{"cachePoint":{"type":"default","ttl":"1h"}},{"toolSpec":{"name":"g"}}]}`, true},
		{`[{"name":"f","input_schema":{}}]`, `[{"name":"f","input_schema":{"cache_control":{"type":"ephemeral"}}}]`, false},
		{`{"tools":[{"toolSpec":{"name":"f"}}]}`, `{"tools":[{"toolSpec":{"name":"f"},"cachePoint":{}}]}`, false},
	} {
		a, b := wire.Request{Tools: json.RawMessage(tt.a)}, wire.Request{Tools: json.RawMessage(tt.b)}
		assert.Equal(t, tt.same, a.Prefix() == b.Prefix(), tt.b)
		assert.Equal(t, tt.same, wire.PrefixDiff(a, b) == "", tt.b)
		assert.Equal(t, tt.same, wire.PrefixShare(a, b) == 1, tt.b)
	}
}

// markBytes are cache marks, which do not count.
var markBytes = regexp.MustCompile(`"(cache_control|cachePoint|prompt_cache_breakpoint)":\{[^}]*\}`)

// A string or number that differs anywhere in a message, including the name of a field,
// is a difference.
func TestPrefixDiff_SeesAnyChange(t *testing.T) {
	names := slices.Sorted(maps.Keys(encoderFormats))
	changes := 0
	for seed := range long.Or[uint64](15, 60) {
		rng := rand.New(rand.NewPCG(seed, 12))
		h := relaxedOf(t)
		g := &generator{rng: rng, h: h, origins: origins}
		mustAppend(t, h, convo.System("s"))
		for range 6 {
			g.step()
			g.extra()
		}
		for _, name := range some(names, int(seed)) {
			a := mustEncode(t, encoderFormats[name], h.Snapshot())
			require.Empty(t, wire.PrefixDiff(a, a))
			for range 4 {
				b := a
				b.Messages = slices.Clone(a.Messages)
				i := rng.IntN(len(a.Messages))
				var ok bool
				if b.Messages[i], ok = changed(rng, a.Messages[i]); !ok {
					continue
				}
				changes++
				if wire.PrefixDiff(a, b) == "" || wire.PrefixDiff(b, a) == "" || wire.PrefixShare(a, b) == 1 {
					t.Fatalf("seed %d, %s: no difference:\n%s\n%s", seed, name, a.Messages[i], b.Messages[i])
				}
			}
		}
	}
	assert.Greater(t, changes, long.Or(250, 5000))
}

// changed returns a message with another string or number in some place. It returns false
// if the place is in a cache mark, or is the name of a field that is null.
func changed(rng *rand.Rand, message json.RawMessage) (json.RawMessage, bool) {
	var ends []int64
	var tokens []json.Token
	dec := json.NewDecoder(bytes.NewReader(message))
	dec.UseNumber()
	for token, err := dec.Token(); err == nil; token, err = dec.Token() {
		switch token.(type) {
		case string, json.Number:
			ends, tokens = append(ends, dec.InputOffset()), append(tokens, token)
		}
	}
	k := rng.IntN(len(ends))
	end := int(ends[k])
	for _, span := range markBytes.FindAllIndex(message, -1) {
		if span[0] < end && end <= span[1] {
			return nil, false
		}
	}
	if bytes.HasPrefix(message[end:], []byte(":null")) {
		return nil, false
	}
	if _, number := tokens[k].(json.Number); number {
		return slices.Concat(message[:end], []byte("1"), message[end:]), true // more digits
	}
	return slices.Concat(message[:end-1], []byte("x"), message[end-1:]), true
}

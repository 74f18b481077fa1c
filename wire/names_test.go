package wire_test

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// The patterns are those of the providers' error messages and API references:
// https://platform.openai.com/docs/api-reference/chat/create (tools, function name),
// https://docs.claude.com/en/api/messages (tools, name; of 1 to 128 in tool_use blocks),
// https://ai.google.dev/api/caching#FunctionDeclaration (name),
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolUseBlock.html.
var nameFormats = []struct {
	name    string
	format  wire.Format
	pattern *regexp.Regexp
}{
	{"openai chat", wire.OpenAIChat{}, regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)},
	{"mistral", wire.OpenAIChat{Dialect: wire.Mistral}, regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)},
	{"ollama", wire.OpenAIChat{Dialect: wire.Ollama}, regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)},
	{"responses", wire.OpenAIResponses{}, regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)},
	{"anthropic", wire.Anthropic{}, regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)},
	{"gemini", wire.Gemini{}, regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`)},
	{"converse", wire.Converse{}, regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)},
}

// sentAs returns the names in a request: the name of the tool, and the names of the
// calls.
func sentAs(t testing.TB, f wire.Format, body []byte) (names []string) {
	t.Helper()
	key := map[bool]string{true: "tool_name", false: "name"}
	var all any
	require.NoError(t, json.Unmarshal(body, &all))
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for _, k := range []string{key[false], key[true]} {
				if name, ok := v[k].(string); ok {
					names = append(names, name)
				}
			}
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(all)
	return names
}

// checkName checks the documented rules of names for one name, and returns the names that
// are sent.
func checkName(t testing.TB, name string) (sent [7]string) {
	t.Helper()
	call := convo.ToolCall{ID: "abcdefgh1", Name: name, Arguments: "{}"}
	msgs := []convo.Message{convo.User("q"), convo.Assistant("", call), convo.Result(call, "r"), convo.User("and")}
	for i, tt := range nameFormats {
		req := mustEncode(t, tt.format, convo.NewSnapshot(msgs))
		req.Tools = toolsOf(t, tt.format, convo.Tool{Name: name})
		body := req.Body()
		require.Empty(t, tt.format.Check(body), "%s: %q", tt.name, name)
		names := sentAs(t, tt.format, body)
		require.GreaterOrEqual(t, len(names), 2)
		sent[i] = names[0]
		for _, n := range names {
			require.Equal(t, sent[i], n, "%s: %q: one name in all places", tt.name, name)
			require.Regexp(t, tt.pattern, n, "%s: %q", tt.name, name)
		}
		if sent[i] == name {
			require.Empty(t, req.Lost, "%s: %q", tt.name, name)
		} else {
			require.Equal(t, []wire.Omission{{Entry: 2, Part: 0, Inside: -1, What: "name of a tool", Sent: sent[i]}}, req.Lost, "%s: %q", tt.name, name)
		}
		tool, ok := wire.FindTool([]convo.Tool{{Name: "other"}, {Name: name}, {Name: "third"}}, sent[i])
		require.True(t, ok, "%s: %q", tt.name, name)
		require.Equal(t, name, tool.Name)

		in := mustDecode(t, tt.format, body)
		got := in.Messages[1].ToolCalls()[0].Name
		if !isCutName.MatchString(sent[i]) {
			require.Equal(t, name, got, "%s: %q", tt.name, sent[i])
		}
		for _, m := range in.Messages {
			for _, r := range m.ToolResults() {
				require.Equal(t, got, r.Name, "%s: %q", tt.name, sent[i])
			}
		}
		// A decoded name is sent as before, whether it could be restored or not.
		again := mustEncode(t, tt.format, convo.NewSnapshot(in.Messages))
		for _, n := range sentAs(t, tt.format, again.Body()) {
			require.Equal(t, sent[i], n, tt.name)
		}
	}
	return sent
}

var isCutName = regexp.MustCompile(`^.{42}_h[0-9a-f]{20}$`)

var hostileNames = []string{
	"a.b", "a_b", "a b", "a:b", "a/b", "a_2eb", "a_5f2eb", "_", "__", "-", "1a", "_31a", ".a", ":", "a\x00", "a\xff", "日本", "_x", "_x12345678", "a_x12345678",
	"_xe3b0c442", "mcp.server.tool", "mcp__server__tool", "ab_cd", "_ab", "a_ab", "A_AB", "a_", "_a", "a_ .", strings.Repeat("n", 54) + ".", strings.Repeat("n", 51) + ".", strings.Repeat("n", 52) + ".",
	strings.Repeat("n", 64), strings.Repeat("n", 65), strings.Repeat("n", 128), strings.Repeat("n", 129), strings.Repeat(".", 18), strings.Repeat(".", 19), strings.Repeat("日", 100), strings.Repeat("_a", 30),
}

// No two names are sent under the same name, each provider accepts them, and Decode
// restores each unless it had to be cut.
func TestNames_AreMappedBackAndNeverMixedUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	list := append([]string(nil), hostileNames...)
	letters := []string{"a", "b", "_", "-", ".", ":", "2", "e", "_2e", "_5f", "_x", "_h", " ", "日", "\xff", "\x00", "Z"}
	for len(list) < long.Or(60, 700) {
		var b strings.Builder
		for range 1 + rng.IntN(1+rng.IntN(1+rng.IntN(300))) {
			b.WriteString(letters[rng.IntN(len(letters))])
		}
		list = append(list, b.String()[:min(b.Len(), 300)])
	}
	var owner [7]map[string]string
	for i := range owner {
		owner[i] = map[string]string{}
	}
	seen := map[string]bool{}
	cut, again := 0, 0
	for i := 0; i < len(list); i++ {
		name := list[i]
		if name == "" || seen[name] {
			continue
		}
		seen[name] = true
		for k, sent := range checkName(t, name) {
			isCut := isCutName.MatchString(sent)
			if isCut && sent == name {
				continue // a name that was cut is not restored
			}
			if other, ok := owner[k][sent]; ok {
				t.Fatalf("%s: %q and %q are both sent as %q", nameFormats[k].name, other, name, sent)
			}
			owner[k][sent] = name
			if isCut {
				cut++
			}
			if sent != name && i < long.Or(60, 1200) { // names that are the sent forms of others
				again++
				list = append(list, sent, sent[:len(sent)-1]+"0", "x"+sent, sent+"0", sent+".")
			}
		}
	}
	assert.Greater(t, cut, long.Or(20, 100))
	assert.Greater(t, again, long.Or(100, 1000))
}

// A call without a name, which a History refuses, gets a name.
func TestNames_EmptyName(t *testing.T) {
	for _, tt := range nameFormats {
		req := mustEncode(t, tt.format, convo.NewSnapshot([]convo.Message{convo.User("q"), convo.Assistant("", convo.ToolCall{ID: "abcdefgh1"}), convo.User("and")}))
		require.Empty(t, tt.format.Check(req.Body()))
		require.Len(t, req.Lost, 1)
		in := mustDecode(t, tt.format, req.Body())
		assert.Equal(t, req.Lost[0].Sent, in.Messages[1].ToolCalls()[0].Name)
	}
}

func TestFindTool(t *testing.T) {
	long := strings.Repeat("server.", 12) + "tool"
	tools := []convo.Tool{{Name: "a.b", Description: "1"}, {Name: long, Description: "2"}, {Name: "plain", Description: "3"}}
	var req wire.Request
	var err error
	req.Tools, err = wire.OpenAIChat{}.Tools(tools...)
	require.NoError(t, err)
	sent := sentAs(t, wire.OpenAIChat{}, req.Tools)
	require.Len(t, sent, 3)
	for i, name := range sent {
		for _, n := range []string{name, tools[i].Name} {
			tool, ok := wire.FindTool(tools, n)
			assert.True(t, ok, n)
			assert.Equal(t, tools[i], tool)
		}
	}
	for _, name := range []string{"", "a_b", "other", "_xe3b0c442"} {
		_, ok := wire.FindTool(tools, name)
		assert.False(t, ok, name)
	}
	// The tool that has the name itself is found first, wherever it is in the list.
	tools = append(tools, convo.Tool{Name: sent[1], Description: "4"})
	tool, _ := wire.FindTool(tools, sent[1])
	assert.Equal(t, "4", tool.Description)

	// Two tools that would be sent under the same name.
	_, err = wire.OpenAIChat{}.Tools(tools...)
	wrong := new(wire.ToolError)
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, 3, wrong.Index)
	assert.Equal(t, sent[1], wrong.Name)
}

// A stream shows the names that the provider sends, and its Transcript has those of the
// tools.
func TestNames_InStreams(t *testing.T) {
	tools := toolsOf(t, wire.OpenAIChat{}, convo.Tool{Name: "a.b"})
	sent := sentAs(t, wire.OpenAIChat{}, tools)[0]
	body := strings.ReplaceAll(`data: {"choices":[{"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"NAME","arguments":""}}]}}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]},"finish_reason":"tool_calls"}]}

data: [DONE]

`, "NAME", sent)
	s := wire.OpenAIChat{}.Stream()
	var shown string
	for d, err := range wire.Read(strings.NewReader(body), s) {
		require.NoError(t, err)
		if d.Call != nil {
			shown = d.Call.Name
		}
	}
	assert.Equal(t, sent, shown)
	in, err := s.Transcript()
	require.NoError(t, err)
	assert.Equal(t, "a.b", in.Messages[0].ToolCalls()[0].Name)
}

func FuzzNames(f *testing.F) {
	for _, name := range hostileNames {
		f.Add(name, "a_b")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if a == "" || b == "" || len(a)+len(b) > 1000 {
			return
		}
		x, y := checkName(t, a), checkName(t, b)
		for i := range x {
			if x[i] == y[i] && a != b && x[i] != a && y[i] != b {
				t.Fatalf("%q and %q are both sent as %q", a, b, x[i])
			}
		}
	})
}

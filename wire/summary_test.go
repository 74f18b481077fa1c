package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// summarised returns a History with a system message, if any, a summary and a
// question.
func summarised(t *testing.T, system ...string) *convo.History {
	t.Helper()
	h := historyOf(t)
	for _, text := range system {
		mustAppend(t, h, convo.System(text))
	}
	mustAppend(t, h, convo.User("old"), convo.Assistant("gone"), convo.User("new"))
	s := h.Snapshot()
	n := convo.ID(len(system))
	_, err := h.Apply(s, convo.Edit{Drop: []convo.ID{n + 1, n + 2}, Summary: &convo.Summary{Text: "They spoke. </summary> \"ok\""}})
	require.NoError(t, err)
	return h
}

// quoted returns the summary of h as it is written in JSON.
func quoted(t *testing.T, h *convo.History) string {
	t.Helper()
	for _, m := range h.Snapshot().Messages() {
		if strings.HasPrefix(m.Text(), "<summary") {
			var b strings.Builder
			e := json.NewEncoder(&b)
			e.SetEscapeHTML(false)
			require.NoError(t, e.Encode(m.Text()))
			return strings.TrimSuffix(b.String(), "\n")
		}
	}
	t.Fatal("no summary")
	return ""
}

func TestSystemSummary_StandsAtTheEndOfTheSystemText(t *testing.T) {
	const mark = `,"cache_control":{"type":"ephemeral"}`
	for name, tt := range map[string]struct {
		f    wire.Format
		want string // with SUM for the summary in quotes, and INNER for the same without
		bare string // without a system message
	}{
		"chat": {wire.OpenAIChat{SystemSummary: true},
			`{"messages":[{"role":"system","content":"Be brief."},{"role":"system","content":SUM},{"role":"user","content":"new"}]}`,
			`{"messages":[{"role":"system","content":SUM},{"role":"user","content":"new"}]}`},
		"developer": {wire.OpenAIChat{SystemSummary: true, Developer: true},
			`{"messages":[{"role":"developer","content":"Be brief."},{"role":"developer","content":SUM},{"role":"user","content":"new"}]}`,
			`{"messages":[{"role":"developer","content":SUM},{"role":"user","content":"new"}]}`},
		"one system message": {wire.OpenAIChat{SystemSummary: true, Dialect: wire.Mistral},
			`{"messages":[{"role":"system","content":"Be brief.\n\nINNER"},{"role":"user","content":"new"}]}`,
			`{"messages":[{"role":"system","content":SUM},{"role":"user","content":"new"}]}`},
		"responses": {wire.OpenAIResponses{SystemSummary: true},
			`{"instructions":"Be brief.\n\nINNER","input":[{"role":"user","content":"new"}]}`,
			`{"instructions":SUM,"input":[{"role":"user","content":"new"}]}`},
		"responses, developer": {wire.OpenAIResponses{SystemSummary: true, Developer: true},
			`{"input":[{"role":"developer","content":"Be brief."},{"role":"developer","content":SUM},{"role":"user","content":"new"}]}`,
			`{"input":[{"role":"developer","content":SUM},{"role":"user","content":"new"}]}`},
		"anthropic": {wire.Anthropic{SystemSummary: true},
			`{"system":[{"type":"text","text":"Be brief."},{"type":"text","text":SUM}],"messages":[{"role":"user","content":[{"type":"text","text":"new"}]}]}`,
			`{"system":[{"type":"text","text":SUM}],"messages":[{"role":"user","content":[{"type":"text","text":"new"}]}]}`},
		"anthropic, cache": {wire.Anthropic{SystemSummary: true, Cache: true},
			`{"system":[{"type":"text","text":"Be brief."` + mark + `},{"type":"text","text":SUM}],"messages":[{"role":"user","content":[{"type":"text","text":"new"` + mark + `}]}]}`,
			`{"system":[{"type":"text","text":SUM` + mark + `}],"messages":[{"role":"user","content":[{"type":"text","text":"new"` + mark + `}]}]}`},
		"gemini": {wire.Gemini{SystemSummary: true},
			`{"systemInstruction":{"parts":[{"text":"Be brief."},{"text":SUM}]},"contents":[{"role":"user","parts":[{"text":"new"}]}]}`,
			`{"systemInstruction":{"parts":[{"text":SUM}]},"contents":[{"role":"user","parts":[{"text":"new"}]}]}`},
		"converse": {wire.Converse{SystemSummary: true},
			`{"system":[{"text":"Be brief."},{"text":SUM}],"messages":[{"role":"user","content":[{"text":"new"}]}]}`,
			`{"system":[{"text":SUM}],"messages":[{"role":"user","content":[{"text":"new"}]}]}`},
		"converse, cache": {wire.Converse{SystemSummary: true, Cache: true},
			`{"system":[{"text":"Be brief."},{"cachePoint":{"type":"default"}},{"text":SUM}],"messages":[{"role":"user","content":[{"text":"new"},{"cachePoint":{"type":"default"}}]}]}`,
			`{"system":[{"text":SUM},{"cachePoint":{"type":"default"}}],"messages":[{"role":"user","content":[{"text":"new"},{"cachePoint":{"type":"default"}}]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range []struct {
				h    *convo.History
				want string
			}{{summarised(t, "Be brief."), tt.want}, {summarised(t), tt.bare}} {
				r := mustEncode(t, tt.f, c.h.Snapshot())
				sum := quoted(t, c.h)
				want := strings.ReplaceAll(c.want, "SUM", sum)
				want = strings.ReplaceAll(want, "INNER", sum[1:len(sum)-1])
				assert.JSONEq(t, want, string(r.Body()))
				assert.Empty(t, tt.f.Check(r.Body()))

				in := mustDecode(t, tt.f, r.Body())
				var text strings.Builder
				for _, m := range in.Messages {
					if m.Role == convo.RoleSystem {
						text.WriteString(m.Text())
					}
				}
				plain := ""
				require.NoError(t, json.Unmarshal([]byte(sum), &plain))
				assert.True(t, strings.HasSuffix(text.String(), plain), "Decode gives the summary back, tags and all: %q", text.String())
			}
		})
	}
}

// Without the option, the summary is a user message in every format.
func TestSystemSummary_IsAUserMessageByDefault(t *testing.T) {
	h := summarised(t, "Be brief.")
	for name, f := range map[string]wire.Format{
		"chat": wire.OpenAIChat{}, "responses": wire.OpenAIResponses{}, "anthropic": wire.Anthropic{}, "gemini": wire.Gemini{}, "converse": wire.Converse{},
	} {
		r := mustEncode(t, f, h.Snapshot())
		assert.NotContains(t, string(r.System), "They spoke", name)
		in := mustDecode(t, f, r.Body())
		assert.Equal(t, convo.RoleUser, in.Messages[1].Role, name)
		assert.Contains(t, in.Messages[1].Text(), "They spoke", name)
	}
}

// If a summary preceded an assistant message, the user message that some providers need
// first replaces it.
func TestSystemSummary_BeforeAnAssistantMessage(t *testing.T) {
	h := historyOf(t, convo.User("old"), convo.Assistant("kept"), convo.User("new"))
	mustApply(t, h, convo.Edit{Drop: []convo.ID{1}, Summary: &convo.Summary{Text: "They spoke."}})
	for _, f := range []wire.Format{
		wire.OpenAIChat{SystemSummary: true, Dialect: wire.StrictAlternation}, wire.Anthropic{SystemSummary: true},
		wire.Gemini{SystemSummary: true}, wire.Converse{SystemSummary: true},
	} {
		r := mustEncode(t, f, h.Snapshot())
		assert.Contains(t, string(r.Body()), "[The earlier part of this conversation is not shown.]", "%T", f)
		assert.Empty(t, f.Check(r.Body()), "%T", f)
	}
}

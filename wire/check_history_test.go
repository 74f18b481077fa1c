package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// All formats of this package are HistoryCheckers.
var _ = []wire.HistoryChecker{wire.Anthropic{}, wire.Converse{}, wire.OpenAIChat{}, wire.OpenAIResponses{}, wire.Gemini{}}

func TestCheckHistory_Seals(t *testing.T) {
	body := func(system string, messages ...string) string {
		return `{"model":"claude-opus-5-5","system":"` + system + `","messages":[` + strings.Join(messages, ",") + `]}`
	}
	user := func(text string) string { return `{"role":"user","content":"` + text + `"}` }
	thought := func(seal, text string) string {
		return `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"` + seal + `"},{"type":"text","text":"` + text + `"}]}`
	}
	said := func(text string) string { return `{"role":"assistant","content":"` + text + `"}` }
	marked := `{"role":"user","content":[{"type":"text","text":"q1","cache_control":{"type":"ephemeral"}}]}`
	q1, q2, q3 := user("q1"), user("q2"), user("q3")
	a1, a2 := thought("s1", "a1"), thought("s2", "a2")
	one, two := body("x", q1), body("x", q1, a1, q2)
	other := func(s string) string { return strings.Replace(s, "claude-opus-5-5", "claude-opus-4-8", 1) }
	for _, tt := range []struct {
		name     string
		requests []string
		want     []string
	}{
		{"appended", []string{one, two, body("x", q1, a1, q2, a2, q3)}, nil},
		{"a cache mark", []string{one, body("x", marked, a1, q2)}, nil},
		{"thinking removed from the front", []string{one, two, body("x", q1, said("a1"), q2, a2, q3)}, []string{"cache-prefix requests[2].messages[1].content"}},
		{"thinking removed from the middle", []string{one, two, body("x", q1, a1, q2, a2, q3), body("x", q1, a1, q2, a2, q3, thought("s3", "a3"), q1), body("x", q1, a1, q2, said("a2"), q3, thought("s3", "a3"), q1)},
			[]string{"cache-prefix requests[4].messages[3].content", "seal-order requests[4].messages[5].content[0]"}},
		{"system", []string{one, two, body("y", q1, a1, q2)}, []string{"cache-prefix requests[2].system", "seal-prefix requests[2].messages[1].content[0]"}},
		{"system, as the answer comes", []string{one, body("y", q1, a1, q2)}, []string{"cache-prefix requests[1].system", "seal-prefix requests[1].messages[1].content[0]"}},
		{"an earlier message", []string{one, two, body("x", user("other"), a1, q2)}, []string{"cache-prefix requests[2].messages[0].content", "seal-prefix requests[2].messages[1].content[0]"}},
		{"only after the thinking", []string{one, two, body("x", q1, a1, q3)}, []string{"cache-prefix requests[2].messages[2].content"}},
		{"the same prefix again", []string{one, two, body("y", q1, said("a1"), q2), two}, []string{"cache-prefix requests[2].system", "cache-prefix requests[3].system"}},
		{"a model that does not check", []string{other(one), other(two), other(body("y", q1, a1, q2))}, []string{"cache-prefix requests[2].system"}},
		{"reasoning of another model", []string{other(one), other(two), body("y", q1, a1, q2)}, []string{"cache-prefix requests[2].system"}},
		{"after a compaction block", []string{one, two, body("x", `{"role":"assistant","content":[{"type":"compaction","content":"c"}]}`, a1, q2)}, []string{"cache-prefix requests[2].messages[0].content[0]"}},
		{"an answer to the request before last", []string{one, body("y", q1), two}, []string{"cache-prefix requests[1].system", "cache-prefix requests[2].system"}},
		{"not JSON", []string{one, "{", two}, []string{"json requests[1]"}},
		{"an imported conversation", []string{two}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, historyFindings(wire.Anthropic{}, tt.requests...))
		})
	}
}

func historyFindings(f wire.HistoryChecker, requests ...string) (found []string) {
	var all [][]byte
	for _, r := range requests {
		all = append(all, []byte(r))
	}
	for _, f := range f.CheckHistory(all...) {
		found = append(found, f.Rule+" "+f.Path)
	}
	return found
}

// Every format names what a cache misses.
func TestCheckHistory_Cache(t *testing.T) {
	for _, tt := range []struct {
		f          wire.HistoryChecker
		body, want string
	}{
		{wire.Anthropic{}, `{"messages":[{"role":"user","content":[{"type":"text","text":"%s"}]}%s]}`, "messages[0].content[0]"},
		{wire.Converse{}, `{"toolConfig":{"tools":[{"toolSpec":{"name":"%s"}},{"cachePoint":{"type":"default"}}]},"messages":[{"role":"user","content":[{"text":"q"}]}%s]}`, "toolConfig.tools[0]"},
		{wire.OpenAIChat{}, `{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"%s"}]}%s]}`, "messages[0]"},
		{wire.OpenAIResponses{}, `{"instructions":"i","input":[{"type":"reasoning","encrypted_content":"%s"}%s]}`, "input[0]"},
		{wire.Gemini{}, `{"system_instruction":{"parts":[{"text":"%s"}]},"contents":[{"role":"user","parts":[{"text":"q"}]}%s]}`, "system_instruction"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			a, more := fmt.Sprintf(tt.body, "a", ""), fmt.Sprintf(tt.body, "a", `,{"role":"user","content":"x","parts":[]}`)
			assert.Empty(t, historyFindings(tt.f, a, more))
			assert.Equal(t, []string{"cache-prefix requests[1]." + tt.want}, historyFindings(tt.f, a, fmt.Sprintf(tt.body, "b", "")))
		})
	}
}

// What Encode sends has no finding about seals; without the check of Encode it has.
func TestCheckHistory_RandomConversations(t *testing.T) {
	for name, f := range sealedFormats {
		t.Run(name, func(t *testing.T) {
			broken := 0
			for seed := range long.Or[uint64](2, 12) {
				r := newSealRun(t, f, seed)
				r.keep = true
				for range 40 {
					r.step()
				}
				checker := f.make("", wire.SealsByModel).(wire.HistoryChecker)
				for _, found := range checker.CheckHistory(r.history...) {
					assert.Equal(t, "cache-prefix", found.Rule, "seed %d: %s", seed, found)
				}
				for _, found := range checker.CheckHistory(r.unchecked...) {
					if found.Rule == "seal-prefix" {
						broken++
					}
				}
			}
			assert.Positive(t, broken)
		})
	}
}

func FuzzCheckHistory(f *testing.F) {
	f.Add([]byte(`{"model":"m","system":[{"text":"s"},{"cachePoint":{}}],"messages":[{"role":"user","content":"q"}]}`), []byte(`{"messages":[{"role":"assistant","content":[{"type":"thinking","signature":"s"},{"reasoningContent":{"redactedContent":"r"}}]}]}`))
	f.Add([]byte(`{"input":"q","contents":[{"role":"user","parts":[null,1]}],"messages":[1]}`), []byte(`{"messages":{"role":1},"toolConfig":[],"system":7}`))
	f.Add([]byte(`[]`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		for _, format := range []wire.HistoryChecker{wire.Anthropic{}, wire.Converse{}, wire.OpenAIChat{}, wire.OpenAIResponses{}, wire.Gemini{}} {
			for _, found := range format.CheckHistory(a, b, a) {
				assert.NotEmpty(t, found.Path)
			}
		}
	})
}

func ExampleAnthropic_CheckHistory() {
	first := `{"model":"claude-opus-5-5","system":"Be brief.","messages":[{"role":"user","content":"Hi"}]}`
	second := `{"model":"claude-opus-5-5","system":"Be kind.","messages":[{"role":"user","content":"Hi"},` +
		`{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"c2ln"},{"type":"text","text":"Hello"}]},{"role":"user","content":"Bye"}]}`
	for _, f := range (wire.Anthropic{}).CheckHistory([]byte(first), []byte(second)) {
		fmt.Println(f)
	}
	// Output:
	// cache-prefix at requests[1].system: 0 % of the request before, in bytes, precede this difference; a cache misses the rest; append to the conversation, or compact rarely and much at a time
	// seal-prefix at requests[1].messages[1].content[0]: signed reasoning (blocks from here on: 1) is sent after other content than it was made after; the first change: requests[1].system; leave out signed reasoning after a change; keep text and calls
}

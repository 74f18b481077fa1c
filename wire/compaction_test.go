package wire_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
	"github.com/seed-c1b73e60/convo/wire"
)

const compacted = `{"type":"compaction","content":"It was said <that>.","signature":"c2ln",  "x": 1.0}`

// nativeHistory returns a History whose beginning a provider has compacted, and whose
// answers have signed reasoning.
func nativeHistory(t *testing.T, format, model string, items ...string) *convo.History {
	h := historyOf(t)
	require.NoError(t, h.SetSystem(convo.System("guide")))
	for i := range 3 {
		m := thoughts.In(convo.Assistant(fmt.Sprint("a", i)), convo.Reasoning{Text: "hm", Signature: fmt.Sprintf("c2ln%d", i)})
		m.Origin = convo.Origin{Format: wire.FormatAnthropic, Model: "claude-opus-5-5"}
		mustAppend(t, h, convo.User(fmt.Sprint("q", i)), m)
	}
	s := h.Snapshot()
	var drop []convo.ID
	var next convo.ID
	for _, e := range s.All() {
		if e.Message.Text() == "a1" {
			next = e.ID
		}
		if e.Message.Role != convo.RoleSystem && next == 0 {
			drop = append(drop, e.ID)
		}
	}
	_, err := h.Apply(s, convo.Edit{Drop: drop, Summary: &convo.Summary{Text: "in other words", Native: convo.Native{Format: format, Model: model, Items: items, Compacted: s.Before(next)}}})
	require.NoError(t, err)
	mustAppend(t, h, convo.User("q3"))
	return h
}

// The items are sent, byte for byte, to the model that made them. Every other request has
// the text, and no reasoning that was made without it.
func TestNative_Encode(t *testing.T) {
	claude := wire.Anthropic{Model: "claude-opus-5-5", Betas: true}
	other, without := claude, claude
	other.Model, without.Betas = "claude-sonnet-5-5", false
	items := []string{`{"type":"message","role":"user","content":"q0","id":"m1"}`, `{"type":"compaction","id":"cmp_1","encrypted_content":"ZW5j"}`}
	for name, tt := range map[string]struct {
		f      wire.Format
		h      *convo.History
		native bool
		signed int
	}{
		"anthropic":          {claude, nativeHistory(t, wire.FormatAnthropic, "claude-opus-5-5", compacted), true, 2},
		"the same, by date":  {claude, nativeHistory(t, wire.FormatAnthropic, "claude-opus-5-5-20261001", compacted), true, 2},
		"another model":      {other, nativeHistory(t, wire.FormatAnthropic, "claude-opus-5-5", compacted), false, 0},
		"without Betas":      {without, nativeHistory(t, wire.FormatAnthropic, "claude-opus-5-5", compacted), false, 0},
		"two items":          {claude, nativeHistory(t, wire.FormatAnthropic, "claude-opus-5-5", compacted, compacted), false, 0},
		"another's":          {claude, nativeHistory(t, wire.FormatOpenAIResponses, "gpt-5.5", items...), false, 0},
		"responses":          {wire.OpenAIResponses{Model: "gpt-5.5"}, nativeHistory(t, wire.FormatOpenAIResponses, "gpt-5.5", items...), true, 0},
		"responses, plain":   {wire.OpenAIResponses{Model: "gpt-5.5", Plain: true}, nativeHistory(t, wire.FormatOpenAIResponses, "gpt-5.5", items...), false, 0},
		"chat":               {wire.OpenAIChat{}, nativeHistory(t, wire.FormatAnthropic, "claude-opus-5-5", compacted), false, 0},
		"gemini":             {wire.Gemini{}, nativeHistory(t, wire.FormatAnthropic, "claude-opus-5-5", compacted), false, 0},
		"converse":           {wire.Converse{Model: "claude-opus-5-5"}, nativeHistory(t, wire.FormatAnthropic, "claude-opus-5-5", compacted), false, 0},
		"in the system text": {wire.Anthropic{Model: "claude-opus-5-5", SystemSummary: true}, nativeHistory(t, wire.FormatAnthropic, "claude-opus-5-5", compacted), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := tt.h.Snapshot()
			r := mustEncode(t, tt.f, s)
			body := string(r.Body())
			assert.Empty(t, tt.f.Check(r.Body()), body)
			assert.Equal(t, !tt.native, strings.Contains(body, "in other words"), body)
			sum, _ := s.Summary()
			at := 0
			for _, item := range sum.Native.Items {
				i := strings.Index(body[at:], item)
				assert.Equal(t, tt.native, i >= 0, "byte for byte, in order: %s", body)
				at += max(i, 0)
			}
			assert.Equal(t, tt.signed, strings.Count(body, `"signature":"c2ln1"`)+strings.Count(body, `"signature":"c2ln2"`), body)
			if tt.native && strings.Contains(name, "anthropic") {
				assert.Equal(t, `{"role":"assistant","content":[`+compacted+`]}`, string(r.Messages[0]))
				assert.Equal(t, "compact-2026-09-04", r.Headers["anthropic-beta"])
			}
			enc := wire.Encoder{Format: tt.f}
			for _, e := range s.All() {
				if b := s.Before(e.ID); b != nil {
					_, _ = enc.Encode(b)
				}
			}
			again := mustEncode(t, &enc, s)
			assert.Equal(t, body, string(again.Body()))
			mustAppend(t, tt.h, convo.Assistant("a3"))
			again = mustEncode(t, &enc, tt.h.Snapshot())
			r = mustEncode(t, tt.f, tt.h.Snapshot())
			assert.Equal(t, string(r.Body()), string(again.Body()))
		})
	}
}

// A request to compact has what the provider asks for, and an answer that holds no
// compaction, or more than one, is an error.
func TestCompacter(t *testing.T) {
	f := wire.Anthropic{Model: "claude-opus-5-5", Betas: true}
	r, err := f.CompactRequest(wire.Request{Headers: map[string]string{"anthropic-beta": "x"}}, "Keep \"names\".")
	require.NoError(t, err)
	assert.JSONEq(t, `{"type":"summarize","instructions":"Keep \"names\"."}`, string(r.Fields["compaction"]))
	assert.Equal(t, "x,compact-2026-09-04", r.Headers["anthropic-beta"])
	var value *convo.ValueError
	_, err = f.CompactRequest(wire.Request{}, strings.Repeat("é", 16_385))
	require.ErrorAs(t, err, &value)
	_, err = f.CompactRequest(wire.Request{}, strings.Repeat("é", 16_384))
	require.NoError(t, err)
	_, err = wire.Anthropic{}.CompactRequest(wire.Request{}, "")
	require.ErrorAs(t, err, &value)
	_, err = wire.OpenAIResponses{Plain: true}.CompactRequest(wire.Request{}, "")
	require.ErrorAs(t, err, &value)
	r, err = wire.OpenAIResponses{}.CompactRequest(wire.Request{Tools: json.RawMessage("[]"), NeedsTools: true}, "x")
	require.NoError(t, err)
	assert.Empty(t, r.Tools)
	assert.False(t, r.NeedsTools)

	for answer, want := range map[string]string{
		`{"type":"message","model":"claude-opus-5-5","content":[` + compacted + `],"usage":{"input_tokens":0,"output_tokens":0,"iterations":[{"type":"compaction","input_tokens":900,"output_tokens":50}]}}`: "",
		`{"type":"message","content":[` + compacted + `,` + compacted + `]}`:                      "have 2 blocks",
		`{"type":"message","content":[],"stop_reason":"end_turn"}`:                                "have 0 blocks; the answer ended with end_turn",
		`{"type":"message","content":[{"type":"text","text":"no"}]}`:                              "want compaction",
		`{"type":"message","content":[{"type":"compaction","content":null,"signature":"s"}]}`:     "failed",
		`{"type":"message","content":[{"type":"compaction","content":"x"}]}`:                      "no signature",
		`{"type":"error","error":{"type":"overloaded_error","message":"compaction_unavailable"}}`: "compaction_unavailable",
		`{}`:  "not an answer",
		`[1]`: "object",
	} {
		sum, err := f.DecodeCompaction([]byte(answer))
		if want == "" {
			require.NoError(t, err)
			assert.Equal(t, []string{compacted}, sum.Native.Items)
			assert.Equal(t, "It was said <that>.", sum.Text)
			assert.Equal(t, 900, sum.Usage.Input)
			assert.Equal(t, 50, sum.Usage.Output)
			continue
		}
		assert.ErrorContains(t, err, want)
	}
	o := wire.OpenAIResponses{Model: "gpt-5.5"}
	for answer, want := range map[string]string{
		`{"output":[{"type":"message","role":"user","content":"q"},{"type":"compaction","encrypted_content":"ZW5j"}],"usage":{"input_tokens":10,"output_tokens":5}}`: "",
		`{"output":[{"type":"message","role":"user","content":"q"}]}`:                                                    "have 0",
		`{"output":[{"type":"compaction","encrypted_content":"a"},{"type":"compaction","encrypted_content":"b"}]}`:       "have 2",
		`{"output":[{"type":"compaction"}]}`:                                                                             "no content",
		`{"error":{"message":"The server is currently unable to compact.","type":"server_error","code":"server_error"}}`: "unable to compact",
		`{"output":5}`: "not an answer",
		`x`:            "JSON",
	} {
		sum, err := o.DecodeCompaction([]byte(answer))
		if want == "" {
			require.NoError(t, err)
			require.Len(t, sum.Native.Items, 2)
			assert.Empty(t, sum.Text)
			continue
		}
		assert.ErrorContains(t, err, want)
	}
}

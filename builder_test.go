package convo_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

type delta func(b *convo.Builder)

func textDelta(s string) delta { return func(b *convo.Builder) { b.Text(s) } }

func callDelta(index int, id, name, args string) delta {
	return func(b *convo.Builder) { b.ToolCall(index, convo.ToolCall{ID: id, Name: name, Arguments: args}) }
}

func reasoningDelta(text, signature string) delta {
	return func(b *convo.Builder) { b.Reasoning(convo.Reasoning{Text: text, Signature: signature}) }
}

func TestBuilder(t *testing.T) {
	for _, tt := range []struct {
		name   string
		deltas []delta
		want   []convo.Part // nil: no message
	}{
		{"nothing", nil, nil},
		{"empty deltas", []delta{textDelta(""), reasoningDelta("", "")}, nil},
		{"text appends", []delta{textDelta("a"), textDelta("b")}, []convo.Part{convo.Text("ab")}},
		{"arguments append, id and name overwrite", []delta{callDelta(0, "x", "f", `{"a"`), callDelta(0, "y", "g", `:1}`), callDelta(0, "", "", " ")},
			[]convo.Part{convo.ToolCall{ID: "y", Name: "g", Arguments: `{"a":1} `}}},
		{"by index", []delta{callDelta(1, "b", "g", ""), callDelta(0, "a", "f", "{}"), callDelta(1, "", "", "{}")},
			[]convo.Part{convo.ToolCall{ID: "b", Name: "g", Arguments: "{}"}, convo.ToolCall{ID: "a", Name: "f", Arguments: "{}"}}},
		{"a call without a name is dropped", []delta{callDelta(0, "a", "", "{}"), textDelta("t")}, []convo.Part{convo.Text("t")}},
		{"only such a call", []delta{callDelta(0, "a", "", "{}")}, nil},
		{"no arguments", []delta{callDelta(0, "a", "f", "")}, []convo.Part{convo.ToolCall{ID: "a", Name: "f"}}},
		{"interleaved", []delta{reasoningDelta("r", ""), textDelta("a"), callDelta(0, "c", "f", "{}"), textDelta("b")},
			[]convo.Part{convo.Reasoning{Text: "r"}, convo.Text("a"), convo.ToolCall{ID: "c", Name: "f", Arguments: "{}"}, convo.Text("b")}},
		{"a signature ends a block", []delta{reasoningDelta("a", ""), reasoningDelta("b", ""), reasoningDelta("", "s1"), reasoningDelta("c", "s2")},
			[]convo.Part{convo.Reasoning{Text: "ab", Signature: "s1"}, convo.Reasoning{Text: "c", Signature: "s2"}}},
		{"whole parts", []delta{func(b *convo.Builder) {
			b.Part(convo.Text("a"))
			b.Part(convo.Opaque{Format: "f", JSON: "1"})
			b.Part(convo.ToolCall{ID: "c", Name: "f"})
			b.Part(convo.ToolCall{ID: "d", Name: "g"})
		}}, []convo.Part{convo.Text("a"), convo.Opaque{Format: "f", JSON: "1"}, convo.ToolCall{ID: "c", Name: "f"}, convo.ToolCall{ID: "d", Name: "g"}}},
		{"invalid UTF-8 over two deltas", []delta{textDelta("\xe4\xb8"), textDelta("\xad\xff")}, []convo.Part{convo.Text("中\uFFFD")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b convo.Builder
			for _, d := range tt.deltas {
				d(&b)
			}
			msgs := b.Messages()
			if tt.want == nil {
				assert.Empty(t, msgs)
				return
			}
			require.Len(t, msgs, 1)
			assert.Equal(t, convo.Message{Role: convo.RoleAssistant, Parts: tt.want}, msgs[0])
			b.Reset()
			assert.Empty(t, b.Messages())
		})
	}
}

// A call that cannot be run is a valid pair all the same.
func TestBuilder_ArgumentsThatAreNoObject(t *testing.T) {
	for _, raw := range []string{`{"a":`, `[1]`, `null`, "x", strings.Repeat("é", 3000)} {
		var b convo.Builder
		b.Origin(convo.Origin{Model: "m"})
		b.ToolCall(0, convo.ToolCall{ID: "a", Name: "f", Arguments: raw})
		b.ToolCall(1, convo.ToolCall{ID: "b", Name: "g", Arguments: "{}"})
		msgs := b.Messages()
		require.Len(t, msgs, 2)
		assert.Equal(t, "m", msgs[0].Origin.Model)
		assert.Equal(t, "{}", msgs[0].ToolCalls()[0].Arguments)
		r := msgs[1].ToolResults()[0]
		assert.True(t, r.IsError)
		assert.Equal(t, "a", r.CallID)
		_, shown, _ := strings.Cut(r.Text(), ": ")
		if _, begin, cut := strings.Cut(r.Text(), "begin: "); cut {
			shown = begin
		}
		assert.True(t, strings.HasPrefix(raw, shown))
		assert.LessOrEqual(t, len(shown), 1024)
		assert.True(t, utf8.ValidString(r.Text()))

		h, err := convo.New(nil)
		require.NoError(t, err)
		_, err = h.Append(append([]convo.Message{convo.User("u")}, msgs...)...)
		require.NoError(t, err)
		assert.Equal(t, 1, h.Status().OpenCalls)
	}
}

// Ids that are missing or come twice are made unique.
func TestBuilder_NamesCalls(t *testing.T) {
	var b convo.Builder
	for i, id := range []string{"a", "a", ""} {
		b.ToolCall(i, convo.ToolCall{ID: id, Name: "f"})
	}
	calls := b.Messages()[0].ToolCalls()
	assert.Equal(t, "a", calls[0].ID)
	assert.False(t, calls[0].Minted)
	assert.True(t, calls[1].Minted && calls[2].Minted)
	assert.NotEqual(t, calls[1].ID, calls[2].ID)
}

func TestMessage_Constructors(t *testing.T) {
	call := convo.ToolCall{ID: "c", Name: "f"}
	assert.Empty(t, convo.User("").Parts)
	assert.Empty(t, convo.System("").Parts)
	assert.Equal(t, []convo.Part{call}, convo.Assistant("", call).Parts, "no empty text beside calls")
	assert.Equal(t, []convo.Part{convo.ToolResult{CallID: "c", Name: "f"}}, convo.Result(call, "").Parts)
	assert.Equal(t, "unknown error", convo.ResultError(call, nil).Text())
	assert.True(t, convo.ResultError(call, assert.AnError).ToolResults()[0].IsError)
	assert.Equal(t, convo.Media{MIME: "a/b", Data: "AQI="}, convo.NewMedia("a/b", []byte{1, 2}))
}

func TestMessage_Accessors(t *testing.T) {
	call := convo.ToolCall{ID: "c", Name: "f"}
	m := convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{
		convo.Reasoning{Text: "r1"}, convo.Text("a"), call, convo.Reasoning{Signature: "s"}, convo.Text("b"), convo.Reasoning{Text: "r2"},
	}}
	assert.Equal(t, "a\nb", m.Text())
	assert.Equal(t, "r1\nr2", m.Reasoning())
	assert.Equal(t, []convo.ToolCall{call}, m.ToolCalls())
	assert.Empty(t, m.ToolResults())
	two := convo.Message{Role: convo.RoleTool, Parts: []convo.Part{
		convo.ToolResult{Parts: []convo.Part{convo.Text("x"), convo.NewMedia("a/b", nil), convo.Text("y")}}, convo.ToolResult{}, convo.ToolResult{Parts: []convo.Part{convo.Text("z")}},
	}}
	assert.Equal(t, "x\ny\nz", two.Text())
	assert.Len(t, two.ToolResults(), 3)
}

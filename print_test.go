package convo_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// A part of a type that Append refuses prints as that type.
func TestPrinting_ForeignParts(t *testing.T) {
	m := convo.Message{Role: convo.RoleUser, Parts: []convo.Part{foreignPart{}, nil}}
	assert.Equal(t, "user: convo_test.foreignPart <nil>", m.String())
	assert.Contains(t, m.LogValue().String(), "convo_test.foreignPart, <nil>")
}

// The String methods and log values are short, however long the message is.
func TestPrinting_IsShort(t *testing.T) {
	big := strings.Repeat("A", 4<<20)
	parts := []convo.Part{
		convo.Text(big), convo.Reasoning{Text: big, Signature: big}, convo.ToolCall{ID: big, Name: big, Arguments: big},
		convo.ToolResult{Name: big, Parts: []convo.Part{convo.Text(big)}}, convo.Media{MIME: "image/png", Data: big}, convo.Opaque{Format: "f", JSON: big},
	}
	m := convo.Message{Role: convo.RoleAssistant, Author: big, Parts: parts}
	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = h.Append(convo.User(big, convo.Media{MIME: "image/png", Data: big}))
	require.NoError(t, err)
	e, _ := h.Snapshot().At(0)
	values := []any{m, e, h.Snapshot(), h}
	for _, p := range parts[1:] {
		values = append(values, p)
	}
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			if _, ok := v.(*convo.History); ok && verb == "%#v" {
				continue // shows pointers
			}
			if _, ok := v.(*convo.Snapshot); ok && verb == "%#v" {
				continue
			}
			assert.Less(t, len(fmt.Sprintf(verb, v)), 2048, "%T %s", v, verb)
		}
		var out strings.Builder
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", v)
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "v", v)
		assert.Less(t, out.Len(), 4096, "%T", v)
	}
	loop := []convo.Part{nil}
	loop[0] = convo.ToolResult{Parts: loop}
	assert.NotPanics(t, func() { _ = convo.Message{Role: convo.RoleTool, Parts: loop}.String() })
	_, err = json.Marshal(convo.Message{Role: convo.RoleTool, Parts: loop})
	assert.Error(t, err)
}

// Each part prints in short, and shows its size alone in a log.
func TestPrinting_EachPart(t *testing.T) {
	for _, tt := range []struct {
		part       convo.Part
		text, size string
	}{
		{convo.Text("hello"), "hello", "text 5"},
		{convo.Reasoning{Text: "abc", Signature: "de", Encrypted: "f"}, "reasoning(abc)", "reasoning 6"},
		{convo.ToolCall{ID: "1", Name: "run", Arguments: `{"x":1}`}, `call run({"x":1})`, "call run 7"},
		{convo.ToolResult{Name: "run", Parts: []convo.Part{convo.Text("one"), convo.Text("two")}}, "result of run(one two)", "result of run 6"},
		{convo.ToolResult{Name: "run", IsError: true, Parts: []convo.Part{convo.ToolResult{}}}, "error of run()", "result of run 0"},
		{convo.Media{MIME: "image/png", Data: "AAAAAAAA"}, "media(image/png, 6 bytes)", "image/png 6"},
		{convo.Media{MIME: "image/png", URL: "https://x"}, "media(image/png https://x)", "image/png 0"},
		{convo.Opaque{Format: "f", JSON: "{}"}, "opaque(f, 2 bytes)", "opaque 2"},
	} {
		m := convo.Message{Role: convo.RoleUser, Parts: []convo.Part{tt.part, convo.Text("t")}}
		assert.Equal(t, "user: "+tt.text+" t", m.String())
		assert.Equal(t, "[role=user author= parts="+tt.size+", text 1]", m.LogValue().String())
	}
}

// Whatever of the package is printed, however it is nested, shows no essay; and
// %+v shows the IDs of calls.
func TestPrinting_ShowsIDsAndNoEssays(t *testing.T) {
	essay := strings.Repeat("essay ", 20_000)
	call := convo.ToolCall{ID: "call_7", Name: "search", Arguments: `{"q":"` + essay + `"}`}
	result := convo.ToolResult{CallID: "call_7", Name: "search", Parts: []convo.Part{convo.Text(essay)}}
	thought := convo.Reasoning{ID: "rs_7", Text: essay}
	asks := convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{convo.Text(essay), thought, call}}
	answers := convo.Message{Role: convo.RoleTool, Parts: []convo.Part{result}}
	h := historyOf(t, nil, convo.User(essay), asks, answers)
	e, _ := h.Snapshot().Find(2)
	cleared := convo.Clear{ID: 3, CallID: "call_7", Text: essay}
	sum := convo.Summary{Text: essay, Covers: []convo.Range{{First: 1, Last: 9}, {First: 12, Last: 12}}}
	edit := convo.Edit{Drop: []convo.ID{5, 3, 4, 9}, Clear: []convo.Clear{cleared}, Summary: &sum}
	report := convo.Report{Outcome: convo.OutcomeFailed, Cleared: []convo.ID{3, 4, 5}, Cause: errors.New(essay)}
	request := convo.SummaryRequest{Prompt: essay, Instruction: essay, Previous: essay, Messages: []convo.Message{asks}, Pinned: []convo.Message{answers}}
	var many []convo.Part
	for range 500 {
		many = append(many, result)
	}
	for _, tt := range []struct {
		value any
		want  string // what %+v shows
	}{
		{convo.Text(essay), ""},
		{call, `call search[call_7]({"q":"essay`},
		{result, "result of search[call_7](essay"},
		{thought, "reasoning[rs_7](essay"},
		{asks, "reasoning[rs_7]("}, {asks, "call search[call_7]("},
		{answers, "tool: result of search[call_7]("},
		{convo.Message{Role: convo.RoleTool, Parts: many}, "… (484 more)"},
		{e, "2 assistant: essay"}, {e, "[call_7]"},
		{cleared, "3[call_7](essay"},
		{edit, "edit(drop 3-5 9, clear 3[call_7](essay"}, {edit, "summary(essay"},
		{&edit, "clear 3[call_7]("},
		{sum, " of 1-9 12"},
		{report, "3 results cleared [3-5]"},
		{request, "request(1 message to summarise"},
		{h, "3 entries"}, {h.Snapshot(), "3 entries"}, {h.Status(), "3 entries"},
		{convo.Goal{Sent: h.Snapshot(), Unclearable: edit.Clear}, "3[call_7]("},
		{convo.Link{Cause: errors.New("why")}, "why"},
		{[]convo.Message{asks, answers}, "[call_7]"},
		{struct{ A any }{[]convo.Part{convo.Text(essay), call}}, "[call_7]"},
	} {
		assert.Contains(t, fmt.Sprintf("%+v", tt.value), tt.want, "%T", tt.value)
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			if _, text := tt.value.(convo.Text); text && !strings.Contains("%+v %#v", verb) {
				continue // a text alone is printed as it is
			}
			if _, pointer := tt.value.(*convo.Edit); pointer && verb == "%#v" || strings.HasPrefix(fmt.Sprintf("%T", tt.value), "*convo.") && verb == "%#v" {
				continue // shows pointers
			}
			if _, nested := tt.value.(struct{ A any }); nested && verb != "%+v" && verb != "%#v" {
				continue // holds a Text
			}
			printed := fmt.Sprintf(verb, tt.value)
			assert.Less(t, len(printed), 2500, "%T %s", tt.value, verb)
			if verb == "%v" || verb == "%s" {
				if _, isClear := tt.value.(convo.Clear); !isClear {
					assert.NotContains(t, printed, "essay essay essay essay essay essay essay essay essay essay essay essay", "%T", tt.value)
				}
			}
		}
	}
	assert.Equal(t, essay, fmt.Sprint(convo.Text(essay)))
	assert.Equal(t, "x   |", fmt.Sprintf("%-4v|", convo.Text("x")), "flags are kept")
	assert.Equal(t, "edit(drop 4, clear 1, summary(x))", convo.Edit{Drop: edit.Drop, Clear: edit.Clear, Summary: &convo.Summary{Text: "x"}}.String())
}

func TestPrinting_Numbers(t *testing.T) {
	for want, n := range map[string]int{"0": 0, "999": 999, "1,000": 1000, "41,200": 41_200, "1,234,567": 1_234_567} {
		assert.Contains(t, convo.Report{TokensAfter: n}.String(), "at "+want+" tokens")
		assert.Contains(t, convo.Breakdown{Window: 1, Free: -n}.String(), want+" and reserve 0 of 1")
	}
}

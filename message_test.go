package convo_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/logs"
	"github.com/seed-c1b73e60/convo/wire"
)

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

func TestToolCall_Valid(t *testing.T) {
	for arguments, want := range map[string]bool{
		"": true, " \n": true, "{}": true, " {\"a\": 1} ": true, `{"a":{"b":[1.0,null]}}`: true,
		"null": false, "[]": false, "1": false, `"{}"`: false, "{": false, "}": false, `{"a":`: false, `{'a':1}`: false,
		"{}{}": false, "{} and more": false, "\ufeff{}": false, "oops": false,
	} {
		assert.Equal(t, want, convo.ToolCall{Arguments: arguments}.Valid(), "%q", arguments)
	}
}

// Every part has a form in JSON, and what has another form is refused.
func TestMessageJSON_Forms(t *testing.T) {
	for data, want := range map[string]convo.Message{
		`{"role":"user","author":"ann","meta":"m","parts":[{"type":"text","text":""},{"type":"media","mime":"a/b","data":"AAAA","url":"u"}]}`: {
			Role: convo.RoleUser, Author: "ann", Meta: "m", Parts: []convo.Part{convo.Text(""), convo.Media{MIME: "a/b", Data: "AAAA", URL: "u"}}},
		`{"role":"assistant","origin":{"format":"f","model":"m","container":"c"},"parts":[{"type":"reasoning","id":"i","text":"t","signature":"s","encrypted":"e"},{"type":"reasoning"},{"type":"tool_call","id":"c","name":"n","arguments":"{}","minted":true},{"type":"opaque","format":"f","json":"1"}]}`: {
			Role: convo.RoleAssistant, Origin: convo.Origin{Format: "f", Model: "m", Container: "c"}, Parts: []convo.Part{
				convo.Reasoning{ID: "i", Text: "t", Signature: "s", Encrypted: "e"}, convo.Reasoning{}, convo.ToolCall{ID: "c", Name: "n", Arguments: "{}", Minted: true}, convo.Opaque{Format: "f", JSON: "1"}}},
		`{"role":"tool","parts":[{"type":"tool_result","name":"n","call_id":"c","is_error":true,"cleared":true,"parts":[{"type":"text","text":"x"},{"type":"media","mime":"a/b","url":"u"},{"type":"opaque","format":"f","json":"{}"}]}]}`: {
			Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{CallID: "c", Name: "n", IsError: true, Cleared: true, Parts: []convo.Part{
				convo.Text("x"), convo.Media{MIME: "a/b", URL: "u"}, convo.Opaque{Format: "f", JSON: "{}"}}}}},
	} {
		var m convo.Message
		require.NoError(t, json.Unmarshal([]byte(data), &m))
		assert.Equal(t, want, m)
		again, err := json.Marshal(m)
		require.NoError(t, err)
		assert.JSONEq(t, data, string(again))
	}
	for _, data := range []string{
		`{}`, `{"role":""}`, `{"role":"robot"}`, `{"role":"user","extra":1}`, `{"role":"user","parts":[null]}`, `[]`, `"x"`,
		`{"role":"user","parts":[{"type":"text","text":"x","parts":[]}]}`,
		`{"role":"user","parts":[{"type":"text","text":"x","parts":[{"type":"text"}]}]}`,
		`{"role":"user","parts":[{"type":"text","extra":1}]}`,
		`{"role":"user","parts":[{"text":"x"}]}`,
		`{"role":"user","parts":[{"type":"robot"}]}`,
		`{"role":"tool","parts":[{"type":"tool_result","parts":[{"type":"tool_result"}]}]}`,
		`{"role":"tool","parts":[{"type":"tool_result","parts":[{"type":"tool_call"}]}]}`,
		`{"role":"tool","parts":[{"type":"tool_result","parts":[{"type":"reasoning"}]}]}`,
		`{"role":"tool","parts":[{"type":"tool_result","parts":[{"type":"robot"}]}]}`,
		`{"role":"tool","parts":[{"type":"tool_result","parts":[{"type":"text","parts":[]}]}]}`,
		`{"role":"tool","parts":[{"type":"tool_result","parts":[{"type":"text","extra":1}]}]}`,
	} {
		m := convo.User("as it was")
		assert.Error(t, json.Unmarshal([]byte(data), &m), data)
		assert.Equal(t, convo.User("as it was"), m)
	}
	m := convo.User("as it was")
	require.NoError(t, json.Unmarshal([]byte(" null "), &m))
	assert.Equal(t, convo.User("as it was"), m)
	for _, part := range []convo.Part{nil, foreignPart{}, convo.ToolResult{Parts: []convo.Part{convo.ToolResult{}}},
		convo.ToolResult{Parts: []convo.Part{convo.ToolCall{}}}, convo.ToolResult{Parts: []convo.Part{convo.Reasoning{}}}, convo.ToolResult{Parts: []convo.Part{nil}}} {
		_, err := json.Marshal(convo.Message{Role: convo.RoleTool, Parts: []convo.Part{part}})
		assert.ErrorContains(t, err, "is not allowed here", "%#v", part)
	}
}

// Bytes behind a message's JSON are refused, even if UnmarshalJSON is called
// directly.
func TestMessageJSON_TrailingBytes(t *testing.T) {
	data := `{"role":"user","parts":[{"type":"text","text":"u"}]}`
	for _, behind := range []string{"x", " {}", ",", "]", "\v", data} {
		var m convo.Message
		err := m.UnmarshalJSON([]byte(data + behind))
		_, ok := errors.AsType[*convo.MessageError](err)
		assert.True(t, ok, "%q: %v", behind, err)
		assert.Zero(t, m)
	}
	var m convo.Message
	require.NoError(t, m.UnmarshalJSON([]byte(" "+data+" \r\n\t")))
	assert.Equal(t, "u", m.Text())
	require.Error(t, m.UnmarshalJSON([]byte("null\v")))
	require.NoError(t, m.UnmarshalJSON([]byte(" null\n")))
	assert.Equal(t, "u", m.Text())
}

// What can be decoded can be encoded, and decodes to the same message again.
func FuzzMessageJSON(f *testing.F) {
	for _, s := range []string{
		`{"role":"user","parts":[{"type":"text","text":"hi"}]}`,
		`{"role":"assistant","origin":{"format":"f","model":"m","container":"c"},"parts":[{"type":"reasoning","text":"t","signature":"s"},{"type":"tool_call","id":"c","name":"n","arguments":"{\"a\": 1.0}"}]}`,
		`{"role":"tool","parts":[{"type":"tool_result","call_id":"c","is_error":true,"parts":[{"type":"text","text":"r"},{"type":"media","mime":"image/png","data":"AAAA"}]}]}`,
		`{"role":"user","author":"bob","meta":"m","parts":[{"type":"opaque","format":"f","json":"{}"}]}`,
		`{"role":"tool","parts":[{"type":"tool_result","parts":[{"type":"tool_result"}]}]}`,
		`{"role":"robot"}`, `null`, `{"role":"user","parts":[null]}`, `[[[[`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var m convo.Message
		if json.Unmarshal(data, &m) != nil {
			require.Equal(t, convo.Message{}, m, "a failed decode leaves the target alone")
			return
		}
		once, err := json.Marshal(m)
		if err != nil {
			t.Fatalf("decoded %s and cannot encode it: %v", data, err)
		}
		if m.Role == convo.RoleNone {
			return // null
		}
		var again convo.Message
		require.NoError(t, json.Unmarshal(once, &again))
		require.Equal(t, m, again)
	})
}

// A part of a type that Append refuses prints as that type.
func TestPrinting_ForeignParts(t *testing.T) {
	m := convo.Message{Role: convo.RoleUser, Parts: []convo.Part{foreignPart{}, nil}}
	assert.Equal(t, "user: convo_test.foreignPart <nil>", fmt.Sprint(m))
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
	logged := []any{m, e, h.Snapshot(), h}
	values := slices.Clone(logged)
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
			if _, ok := v.(convo.Opaque); ok && verb == "%#v" {
				continue // shows everything
			}
			assert.Less(t, len(fmt.Sprintf(verb, v)), 2048, "%T %s", v, verb)
		}
	}
	for _, v := range logged {
		var out strings.Builder
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", v)
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "v", v)
		assert.Less(t, out.Len(), 4096, "%T", v)
	}
	loop := []convo.Part{nil}
	loop[0] = convo.ToolResult{Parts: loop}
	assert.NotPanics(t, func() { _ = fmt.Sprint(convo.Message{Role: convo.RoleTool, Parts: loop}) })
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
		assert.Equal(t, "user: "+tt.text+" t", fmt.Sprint(m))
		assert.Equal(t, "[role=user author= parts="+tt.size+", text 1]", m.LogValue().String())
	}
}

// Whatever of the package is printed, however it is nested, shows no essay; and
// %+v shows the IDs of calls.
func TestPrinting_ShowsIDsAndNoEssays(t *testing.T) {
	call := convo.ToolCall{ID: "call_7", Name: "search", Arguments: `{"q":"` + essay + `"}`}
	result := convo.ToolResult{CallID: "call_7", Name: "search", Parts: []convo.Part{convo.Text(essay)}}
	thought := convo.Reasoning{ID: "rs_7", Text: essay}
	asks := convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{convo.Text(essay), thought, call}}
	answers := convo.Message{Role: convo.RoleTool, Parts: []convo.Part{result}}
	h := historyOf(t, nil, convo.User(essay), asks, answers)
	e, _ := h.Snapshot().Find(2)

	sum := convo.Summary{Text: essay, Covers: []convo.Range{{First: 1, Last: 9}, {First: 12, Last: 12}}}
	report := convo.Report{Outcome: convo.OutcomeFailed, Cleared: []convo.ID{3, 4, 5}, Rewritten: []convo.ID{6}, Cause: errors.New(essay)}
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
		{report, "1 message rewritten [6]"},
		{sum, " of 1-9 12"},
		{report, "3 results cleared [3-5]"},
		{request, "request(1 message to summarise"},
		{*h.Snapshot(), "3 entries"},
		{convo.Report{Reason: convo.ReasonAppend, Shortened: []convo.ID{5}, TokensBefore: 2850, TokensAfter: 2804, Limit: 2625}, "cut at append: 1 result [5], 2,850 → 2,804 tokens"},
		{&convo.PairError{Err: convo.ErrNoOpenCall, CallID: essay, Name: essay}, "answers no call"},
		{&convo.PairError{Err: convo.ErrAmbiguous, Calls: []string{essay, "b"}, Name: essay}, "could answer the calls"},
		{*new(convo.Decisions), "0 rows, then from"},
		{h, "3 entries"}, {h.Snapshot(), "3 entries"}, {h.Status(), "3 entries"},
		{wire.Delta{Text: essay, Call: &wire.CallDelta{Index: 2, Name: "run", Arguments: "{}"}}, "delta(120000 bytes of text, 2 bytes of call 2)"},
		{wire.Request{System: json.RawMessage(`"s"`), Messages: []json.RawMessage{json.RawMessage(`"` + essay + `"`)}}, "request(1 messages, 120030 bytes)"},
		{wire.Request{Messages: []json.RawMessage{json.RawMessage("1")}, Lost: make([]wire.Omission, 3)}, "request(1 messages, 16 bytes, 3 parts lost)"},
		{[]convo.Message{asks, answers}, "[call_7]"},
		{struct{ A any }{[]convo.Part{convo.Text(essay), call}}, "[call_7]"},
	} {
		assert.Contains(t, fmt.Sprintf("%+v", tt.value), tt.want, "%T", tt.value)
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			if _, text := tt.value.(convo.Text); text && !strings.Contains("%+v %#v", verb) {
				continue // a text alone is printed as it is
			}
			if strings.HasPrefix(fmt.Sprintf("%T", tt.value), "*convo.") && verb == "%#v" {
				continue // shows pointers
			}
			if _, request := tt.value.(convo.SummaryRequest); request && verb == "%#v" {
				continue // shows everything
			}
			if _, nested := tt.value.(struct{ A any }); nested && verb != "%+v" && verb != "%#v" {
				continue // holds a Text
			}
			printed := fmt.Sprintf(verb, tt.value)
			assert.Less(t, len(printed), 2500, "%T %s", tt.value, verb)
			if verb == "%v" || verb == "%s" {
				assert.NotContains(t, printed, "essay essay essay essay essay essay essay essay essay essay essay essay", "%T", tt.value)
			}
		}
	}
	assert.Equal(t, essay, fmt.Sprint(convo.Text(essay)))
	assert.Equal(t, "x   |", fmt.Sprintf("%-4v|", convo.Text("x")), "flags are kept")
}

func TestPrinting_Numbers(t *testing.T) {
	for want, n := range map[string]int{"0": 0, "999": 999, "1,000": 1000, "41,200": 41_200, "1,234,567": 1_234_567} {
		assert.Contains(t, fmt.Sprint(convo.Report{TokensAfter: n}), "at "+want+" tokens")
		assert.Contains(t, convo.Breakdown{Window: 1, Free: -n}.String(), want+" and reserve 0 of 1")
	}
}

// essay is what no text that is printed may hold.
var essay = strings.Repeat("essay ", 20_000)

// filled returns a value of a type, in which each text is an essay.
func filled(t reflect.Type, depth int) reflect.Value {
	v := reflect.New(t).Elem()
	if depth > 5 || t == reflect.TypeFor[wire.Loss]() { // which holds a few words of package wire
		return v
	}
	switch t.Kind() {
	case reflect.String:
		v.SetString(essay)
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(filled(t.Elem(), depth+1))
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(essay))
		} else {
			v.Set(reflect.Append(v, filled(t.Elem(), depth+1)))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(reflect.ValueOf("m"), filled(t.Elem(), depth+1))
	case reflect.Interface:
		for _, held := range []any{convo.Text(essay), errors.New(essay), convo.Truncate{}, convotest.Canned{Text: essay}} {
			if reflect.TypeOf(held).Implements(t) {
				v.Set(reflect.ValueOf(held))
			}
		}
	case reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				v.Field(i).Set(filled(t.Field(i).Type, depth+1))
			}
		}
	}
	return v
}

// printed are the exported structs that print only the beginning of their texts.
var printed = []any{
	convo.ClearMedia{}, convo.ClearThinking{}, convo.ClearToolResults{}, convo.Entry{}, convo.Exchange{}, convo.LogInfo{},
	convo.Salvaged{}, logs.Field{},
	convo.Record{},
	convo.Media{}, convo.Message{}, convo.Opaque{}, convo.Reasoning{}, convo.Report{}, convo.Status{},
	convo.SlidingWindow{}, convo.Summarize{}, convo.Summary{}, convo.SummaryRequest{}, convo.ToolCall{}, convo.ToolResult{},
	wire.Request{}, wire.Omission{}, wire.Transcript{}, wire.Delta{}, wire.CallDelta{}, wire.NativeSummary{},
	convotest.Canned{}, &convotest.Model{}, convotest.Step{}, &convotest.Recorder{}, convotest.Slow{}, &convotest.Deaf{},
}

// Whatever an exported struct holds, it prints no essay.
func TestPrinting_EveryType(t *testing.T) {
	r := &convotest.Recorder{With: convotest.Echo{}}
	_, _ = r.Summarize(t.Context(), convo.SummaryRequest{Prompt: essay, Messages: []convo.Message{convo.User(essay)}})
	stored := new(convotest.MemStore)
	require.NoError(t, stored.Append(t.Context(), convo.Record{LogInfo: convo.LogInfo{Key: strings.Repeat("k", 4096), Seq: 1}, ID: strings.Repeat("a", 26), Full: true, Data: []byte(essay)}))
	encoder := &wire.Encoder{Format: wire.Gemini{}}
	_, err := encoder.Encode(historyOf(t, nil, convo.System(essay), convo.User(essay)).Snapshot())
	require.NoError(t, err)
	values := []any{r, stored, encoder, historyOf(t, nil, convo.User(essay)), historyOf(t, nil, convo.User(essay)).Snapshot()}
	for _, v := range printed {
		values = append(values, filled(reflect.TypeOf(v), 0).Interface())
	}
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%s"} {
			assert.Less(t, len(fmt.Sprintf(verb, v)), 4000, "%T %s", v, verb)
		}
	}
}

// No exported struct is missing above.
func TestPrinting_KnowsEveryType(t *testing.T) {
	const others = " Anthropic Archived Breakdown Budget Clear Converse CutOff Decisions Echo Edit Effort Empty Encoder Estimate Extract Failing Finding Flaky Gemini Goal Growing Handler Heuristic History Limits Link ListOptions Loss Native " +
		"OpenAIChat OpenAIResponses Options Origin Overheads Panicking Prior Range RefusedPart Reply Reservation Rewrite RolePolicy RunOptions Snapshot Tool Truncate Usage Store MemStore " // hold no long text but that of messages or of the caller, or are checked by hand
	known := map[string]bool{}
	for _, v := range printed {
		known[strings.TrimLeft(fmt.Sprintf("%T", v), "*")] = true
	}
	for _, dir := range []string{".", "wire", "convotest", "filestore"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			require.NoError(t, err)
			for _, d := range file.Decls {
				g, ok := d.(*ast.GenDecl)
				if !ok || g.Tok != token.TYPE {
					continue
				}
				for _, spec := range g.Specs {
					s := spec.(*ast.TypeSpec)
					_, isStruct := s.Type.(*ast.StructType)
					if !isStruct || !s.Name.IsExported() || strings.HasSuffix(s.Name.Name, "Error") || strings.Contains(others, " "+s.Name.Name+" ") {
						continue
					}
					assert.True(t, known[file.Name.Name+"."+s.Name.Name], "%s.%s: add it to printed", file.Name.Name, s.Name.Name)
				}
			}
		}
	}
}

// What hosts put into the role of the user counts as a result: the host's mark decides, and
// without one the form of the text.
func TestMessage_IsHosts(t *testing.T) {
	meta := func(text, meta string) convo.Message {
		m := convo.User(text)
		m.Meta = meta
		return m
	}
	anna := convo.User("<system-reminder>I typed this.</system-reminder>")
	anna.Author = "Anna"
	for _, tt := range []struct {
		name string
		m    convo.Message
		want bool
	}{
		{"plain", convo.User("Fix the parser."), false},
		{"marked", meta("Continue.", convo.HostMeta), true},
		{"marked, with a text", meta("Continue.", "host todo hook"), true},
		{"another meta", meta("Continue.", "hostile"), false},
		{"an author decides", anna, false},
		{"a reminder", convo.User("<system-reminder>\nThe file a.go has changed.\n</system-reminder>\n"), true},
		{"several parts", convo.User("<environment_context>\n</environment_context>", convo.Text("<skill>x</skill>")), true},
		{"words in another part", convo.User("<system-reminder>The file has changed.</system-reminder>", convo.Text("Undo that.")), false},
		{"empty", convo.User(""), false},
		{"an image", convo.User("", convo.NewMedia("image/png", []byte("x"))), false},
		{"an image with a tag", convo.User("<shot></shot>", convo.NewMedia("image/png", []byte("x"))), false},
		{"an assistant", convo.Assistant("<system-reminder>x</system-reminder>"), false},
	} {
		assert.Equal(t, tt.want, convo.IsHosts(tt.m), tt.name)
	}
}

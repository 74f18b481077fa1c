package convo_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

type foreignPart struct{ convo.Text }

// Which part stands in a message of which role.
func TestDoor_PartsByRole(t *testing.T) {
	parts := map[string]convo.Part{
		"text": convo.Text("t"), "reasoning": convo.Reasoning{Text: "r"}, "call": convo.ToolCall{ID: "c", Name: "f"},
		"result": convo.ToolResult{CallID: "open"}, "media": convo.Media{MIME: "image/png", URL: "https://x"}, "opaque": convo.Opaque{Format: "f", JSON: "{}"},
	}
	allowed := map[convo.Role]string{
		convo.RoleSystem: "text opaque", convo.RoleUser: "text media opaque",
		convo.RoleAssistant: "text reasoning call media opaque", convo.RoleTool: "result",
	}
	for role, names := range allowed {
		for name, part := range parts {
			h, err := convo.New(&convo.Options{Roles: convo.Relaxed()})
			require.NoError(t, err)
			if role == convo.RoleTool {
				_, err = h.Append(convo.Assistant("", convo.ToolCall{ID: "open", Name: "f"}))
				require.NoError(t, err)
			}
			_, err = h.Append(convo.Message{Role: role, Parts: []convo.Part{part}})
			if strings.Contains(" "+names+" ", " "+name+" ") {
				assert.NoError(t, err, "%s in %s", name, role)
				continue
			}
			wrong, ok := errors.AsType[*convo.MessageError](err)
			require.True(t, ok, "%s in %s: %v", name, role, err)
			assert.Equal(t, 0, wrong.Part)
			assert.Equal(t, role, wrong.Role)
		}
	}
}

func TestDoor_Refuses(t *testing.T) {
	text := convo.Text("t")
	call := func(args string) convo.Part { return convo.ToolCall{ID: "c", Name: "f", Arguments: args} }
	for name, m := range map[string]convo.Message{
		"unknown role":      {Role: "robot", Parts: []convo.Part{text}},
		"no role":           {Parts: []convo.Part{text}},
		"nil part":          {Role: convo.RoleUser, Parts: []convo.Part{nil}},
		"pointer":           {Role: convo.RoleUser, Parts: []convo.Part{&text}},
		"nil pointer":       {Role: convo.RoleUser, Parts: []convo.Part{(*convo.Media)(nil)}},
		"foreign type":      {Role: convo.RoleUser, Parts: []convo.Part{foreignPart{text}}},
		"nested result":     {Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{Parts: []convo.Part{convo.ToolResult{}}}}},
		"no arguments JSON": {Role: convo.RoleAssistant, Parts: []convo.Part{call(`{"a":`)}},
		"arguments a list":  {Role: convo.RoleAssistant, Parts: []convo.Part{call(`[1]`)}},
		"no name":           {Role: convo.RoleAssistant, Parts: []convo.Part{convo.ToolCall{ID: "c"}}},
		"media of nothing":  {Role: convo.RoleUser, Parts: []convo.Part{convo.Media{MIME: "image/png"}}},
		"media, no MIME":    {Role: convo.RoleUser, Parts: []convo.Part{convo.Media{Data: "AAAA"}}},
		"media, no base64":  {Role: convo.RoleUser, Parts: []convo.Part{convo.Media{MIME: "image/png", Data: "A-_="}}},
		"opaque, no format": {Role: convo.RoleUser, Parts: []convo.Part{convo.Opaque{JSON: "{}"}}},
		"opaque, no JSON":   {Role: convo.RoleUser, Parts: []convo.Part{convo.Opaque{Format: "f", JSON: "{"}}},
		"empty":             {Role: convo.RoleUser},
		"empty text":        {Role: convo.RoleUser, Parts: []convo.Part{convo.Text("")}},
		"tool, no result":   {Role: convo.RoleTool},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := convo.New(nil)
			require.NoError(t, err)
			_, err = h.Append(convo.User("first"), m)
			wrong, ok := errors.AsType[*convo.MessageError](err)
			require.True(t, ok, "%v", err)
			assert.Equal(t, 1, wrong.Index)
			assert.NotEmpty(t, wrong.Error())
			assert.Zero(t, h.Len())
			assert.NotPanics(t, func() { _ = m.String(); _ = m.Text(); _, _ = json.Marshal(m); _ = m.LogValue() })
		})
	}
}

func TestDoor_MakesTextValidOnce(t *testing.T) {
	const bad, good = "a\xff\xfeb", "a\uFFFDb"
	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = h.Append(convo.User(bad), convo.Message{Role: convo.RoleAssistant, Author: bad, Meta: bad, Origin: convo.Origin{Format: bad, Model: bad}, Parts: []convo.Part{
		convo.Text(bad), convo.Reasoning{ID: bad, Text: bad, Signature: bad, Encrypted: bad},
		convo.ToolCall{ID: bad, Name: bad, Arguments: `{"x":"` + bad + `"}`}, convo.Opaque{Format: bad, JSON: `"` + bad + `"`},
	}})
	require.NoError(t, err)
	e, _ := h.Snapshot().At(1)
	assert.Equal(t, convo.Message{Role: convo.RoleAssistant, Author: good, Meta: good, Origin: convo.Origin{Format: good, Model: good}, Parts: []convo.Part{
		convo.Text(good), convo.Reasoning{ID: good, Text: good, Signature: good, Encrypted: good},
		convo.ToolCall{ID: good, Name: good, Arguments: `{"x":"` + good + `"}`}, convo.Opaque{Format: good, JSON: `"` + good + `"`},
	}}, e.Message)
}

func TestDoor_KeepsBytes(t *testing.T) {
	args := `{ "z": 1.0, "a": 12345678901234567890,  "m": "\u00e9<>&" }`
	h, err := convo.New(nil)
	require.NoError(t, err)
	want := convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{convo.ToolCall{ID: "c", Name: "f", Arguments: args}, convo.Opaque{Format: "x", JSON: args}}}
	_, err = h.Append(convo.User("u"), want)
	require.NoError(t, err)
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	var s convo.Snapshot
	require.NoError(t, json.Unmarshal(data, &s))
	again, err := convo.Restore(&s, nil)
	require.NoError(t, err)
	e, _ := again.Snapshot().At(1)
	assert.Equal(t, want, e.Message)
}

func TestDoor_MintsIDs(t *testing.T) {
	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = h.Append(convo.User("u"), convo.Assistant("", convo.ToolCall{Name: "a"}, convo.ToolCall{Name: "b"}, convo.ToolCall{ID: "own", Name: "c"}))
	require.NoError(t, err)
	e, _ := h.Snapshot().At(1)
	calls := e.Message.ToolCalls()
	assert.True(t, calls[0].Minted && calls[1].Minted && !calls[2].Minted)
	assert.NotEqual(t, calls[0].ID, calls[1].ID)
	_, err = h.Append(convo.Result(convo.ToolCall{Name: "b"}, "2"), convo.Result(convo.ToolCall{}, "1"), convo.Result(calls[2], "3"))
	require.NoError(t, err)
	first, _ := h.Snapshot().At(2)
	assert.Equal(t, calls[1].ID, first.Message.ToolResults()[0].CallID)
	second, _ := h.Snapshot().At(3)
	assert.Equal(t, "a", second.Message.ToolResults()[0].Name)
}

// Neither side can change what the other has.
func TestDoor_Copies(t *testing.T) {
	inner := []convo.Part{convo.Text("r")}
	m := convo.Message{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{CallID: "c", Parts: inner}}}
	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = h.Append(convo.User("u"), convo.Assistant("", convo.ToolCall{ID: "c", Name: "f"}), m)
	require.NoError(t, err)
	s := h.Snapshot()
	before := printOf(s)
	inner[0], m.Parts[0] = convo.Text("changed"), convo.Text("changed")
	for _, e := range s.All() {
		for i := range e.Message.Parts {
			if r, ok := e.Message.Parts[i].(convo.ToolResult); ok {
				r.Parts[0] = convo.Text("changed")
			}
			e.Message.Parts[i] = convo.Text("changed")
		}
	}
	for _, m := range s.Messages() {
		m.Parts[0] = convo.Text("changed")
	}
	assert.Equal(t, before, printOf(s))
}

// What MaxResult cuts is inside the limit, valid, and cut no further.
func TestMaxResult_CutsOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		limit := 256 + rng.IntN(300)
		var parts []convo.Part
		for range 1 + rng.IntN(4) {
			parts = append(parts, convo.Text(strings.Repeat([]string{"a", "é", "中", "😀"}[rng.IntN(4)], rng.IntN(400))))
			if rng.IntN(3) == 0 {
				parts = append(parts, convo.NewMedia("image/png", []byte("x")))
			}
		}
		size, media := sizeOf(parts)
		cut := throughDoor(t, limit, parts)
		gotSize, gotMedia := sizeOf(cut)
		assert.Equal(t, media, gotMedia)
		if size <= limit {
			assert.Equal(t, parts, cut)
			continue
		}
		assert.LessOrEqual(t, gotSize, limit)
		assert.Greater(t, gotSize, limit-20, "cut no more than it must")
		text := convo.ToolResult{Parts: cut}.Text()
		assert.True(t, utf8.ValidString(text))
		assert.Contains(t, text, fmt.Sprintf("[cut: %d bytes in all]", size))
		assert.Equal(t, cut, throughDoor(t, limit, cut))
	}
}

func sizeOf(parts []convo.Part) (size, media int) {
	for _, p := range parts {
		if t, ok := p.(convo.Text); ok {
			size += len(t)
		} else {
			media++
		}
	}
	return size, media
}

func throughDoor(t *testing.T, limit int, parts []convo.Part) []convo.Part {
	h, err := convo.New(&convo.Options{MaxResult: limit})
	require.NoError(t, err)
	_, err = h.Append(convo.User("u"), convo.Assistant("", convo.ToolCall{ID: "c", Name: "f"}),
		convo.Message{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{CallID: "c", Parts: parts}}})
	require.NoError(t, err)
	e, _ := h.Snapshot().At(2)
	return e.Message.ToolResults()[0].Parts
}

func TestSpill(t *testing.T) {
	refused := errors.New("disk full")
	for name, tt := range map[string]struct {
		spill func(convo.ToolResult) (string, error)
		want  func(error) bool
	}{
		"its error is Append's": {func(convo.ToolResult) (string, error) { return "", refused }, func(err error) bool { return errors.Is(err, refused) }},
		"a panic is an error": {func(convo.ToolResult) (string, error) { panic(refused) }, func(err error) bool {
			p, ok := errors.AsType[*convo.PanicError](err)
			return ok && p.In == "Options.Spill" && errors.Is(err, refused)
		}},
		"a reference too long": {func(convo.ToolResult) (string, error) { return strings.Repeat("r", 300), nil }, func(err error) bool {
			_, ok := errors.AsType[*convo.MessageError](err)
			return ok
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := convo.New(&convo.Options{MaxResult: 256, Spill: tt.spill})
			require.NoError(t, err)
			call := convo.ToolCall{ID: "c", Name: "f"}
			_, err = h.Append(convo.User("u"), convo.Assistant("", call), convo.Result(call, strings.Repeat("x", 500)))
			assert.True(t, tt.want(err), "%v", err)
			assert.Zero(t, h.Len())
		})
	}
}

// Nothing that prints is longer than a screen.
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

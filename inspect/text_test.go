package inspect_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/inspect"
	"github.com/seed-c1b73e60/convo/wire"
)

const evil = "</pre></details></style></title><script>alert(1)</script><img src=x onerror=alert(1)>\"'`&lt; javascript:x {{.}} \x00\x1b[31m\r\x7f\u202eabc\u200b\x85\u2028\u00ad\U000e0041\U000e0101"

// A panicky is a format with a fault.
type panicky struct{ wire.OpenAIChat }

func (panicky) Check([]byte) []wire.Finding { panic(evil) }

// evilFormat finds what cannot be.
type evilFormat struct{ wire.OpenAIChat }

func (evilFormat) Check([]byte) []wire.Finding {
	return slices.Repeat([]wire.Finding{{Rule: evil, Path: evil, ID: evil, Problem: strings.Repeat(evil, 1000), Fix: evil, Error: evil}}, 1000)
}

// hostile makes a conversation with a text in every field that accepts it.
func hostile(t testing.TB, text string) *inspect.Pages {
	seen := &inspect.Reports{}
	h := newHistory(t, &convo.Options{Limits: convo.Limits{Window: 600_000}, OnCompaction: seen.Add, Roles: convo.Relaxed()})
	_ = h.SetMeta(text[:min(len(text), 200)], text)
	_ = h.SetSystem(convo.System(text))
	_ = h.SetTools(convo.Tool{Name: text, Description: text, Schema: text, Opaque: convo.Opaque{Format: text, JSON: text}})
	_ = h.SetTools(convo.Tool{Name: "x", Description: text})
	_ = h.SetModel(text, convo.Limits{Window: 600_000})
	_ = h.SetEphemeral(convo.User(text))
	valid, err := json.Marshal(map[string]string{text: text})
	require.NoError(t, err)
	quoted := string(valid)
	first, err := h.Append(convo.User("Begin."))
	require.NoError(t, err)
	mustAppend(t, h, convo.Assistant("Yes."))
	for _, call := range []convo.ToolCall{{ID: text, Name: text, Arguments: text}, {ID: "c", Name: text, Arguments: quoted}, {ID: "d", Name: "read", Arguments: quoted}} {
		_, _ = h.Append(convo.User("Read."), convo.Assistant("Yes.", call), convo.Message{Role: convo.RoleTool, Parts: []convo.Part{
			convo.ToolResult{CallID: call.ID, Name: call.Name, IsError: true, Parts: []convo.Part{convo.Text(text), convo.Media{MIME: text, URL: text}, convo.Opaque{Format: text, JSON: quoted}}}}})
	}
	for _, part := range []convo.Part{convo.Text(text), convo.Reasoning{Text: text, ID: text, Signature: text, Encrypted: text}, convo.Opaque{Format: text, JSON: text}, convo.Opaque{Format: "anthropic", JSON: quoted},
		convo.Media{MIME: text, Data: text}, convo.Media{MIME: "image/png", URL: text}, convo.NewMedia("image/png", []byte("123456"))} {
		for _, role := range []convo.Role{convo.RoleUser, convo.RoleAssistant, convo.RoleSystem} {
			_, _ = h.Append(convo.Message{Role: role, Author: text, Parts: []convo.Part{part}})
		}
	}
	mustAppend(t, h, convo.User("Go on."))
	_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{first}, Summary: &convo.Summary{Text: text + ".", Names: text, Model: text}})
	require.NoError(t, err)
	cause := errors.New(text)
	seen.Add(convo.Report{Outcome: convo.OutcomeFailed, Strategy: text, Model: text, Calls: 1, Cause: cause, Links: []convo.Link{{Strategy: text, Cause: cause, Outcome: convo.OutcomeFailed}}})
	return &inspect.Pages{Conversations: []inspect.Conversation{{Name: text, History: h, Reports: seen}}, Formats: []wire.Format{evilFormat{}, panicky{}, wire.Anthropic{}}}
}

// Nothing that a conversation holds becomes markup, and what cannot be seen is made visible.
func TestPages_Hostile(t *testing.T) {
	p := hostile(t, evil)
	page := ask(t, p, "/")
	page = html.UnescapeString(page)
	for _, want := range []string{"␀␛[31m␍␡[U+202E]abc[U+200B]", "[U+2028][U+00AD][U+E0041][U+E0101]", "image/png, 6 bytes", "by </pre", "only for anthropic", "signed", "1,000 findings", "panic: </pre>"} {
		has(t, page, want)
	}
	assert.Less(t, len(page), 300_000)
	h := p.Conversations[0].History
	for _, e := range h.Snapshot().All() {
		ask(t, p, fmt.Sprintf("?open=e%d&whole=e%d", e.ID, e.ID))
	}
	ask(t, p, "?whole=summary&open=c1&open=c2&open=tools")
	ask(t, p, "?list")
	var out bytes.Buffer
	require.NoError(t, inspect.WriteHTML(&out, h.Snapshot()))
	checkPage(t, out.String())

	for _, query := range []string{"c=-1", "c=99999999999999999999", "from=9223372036854775807", "from=-5", "seq=x", "open=%22%3E%3Cscript%3E", "whole=%00", "key=k", "key=../../etc/passwd", "after=a&updated=b",
		"archive=1", "archive=9007199254740993", "refresh=1e9", "refresh=-1", "refresh=99999999999", "list&prefix=%22%3E", ";", "%zz", "check", url.Values{"open": {evil}, "whole": {evil}, "key": {evil}}.Encode(),
		strings.Repeat("open=a&", 5000), "key=" + strings.Repeat("k", 1<<20), "list&prefix=" + strings.Repeat("k", 1<<20)} {
		status, page := get(t, p, query)
		assert.Contains(t, []int{200, 404, 500}, status, "%.40s", query)
		assert.Less(t, len(page), 300_000, "%.40s", query)
	}
	has(t, ask(t, p, "refresh=99999999999"), `content="3600"`)
	status, page := get(t, p, "archive=1")
	assert.Equal(t, 404, status)
	has(t, page, "The conversation has no Store, and so no archive. Open it with convo.Open, or call its method Attach.")
}

// A page shows 4 kB of a text, and the whole on request.
func TestPages_LongText(t *testing.T) {
	h := newHistory(t, nil)
	text := strings.Repeat("<b>é</b>", 125_000) // a million characters
	mustAppend(t, h, convo.User("Go."), convo.Assistant(text))
	p := inspect.Handler(h)
	page := ask(t, p, "/")
	has(t, page, "1,125,000 bytes in all")
	assert.Less(t, len(page), 40_000)
	assert.InDelta(t, 4096/9, strings.Count(page, "&lt;b&gt;é&lt;/b&gt;"), 20)
	whole := ask(t, p, linkAfter(t, page, "e2", "show the whole text"))
	assert.Equal(t, 125_000, strings.Count(whole, "&lt;b&gt;é&lt;/b&gt;")-13, "besides, the preview has 13")
	assert.True(t, isOpen(t, whole, "e2"))
}

func FuzzPages(f *testing.F) {
	f.Add("open=c1&open=e3&whole=e3&from=2", evil)
	f.Add("key=k&seq=1&archive=1", "k")
	f.Add("list&prefix=%3C&after=%22&updated=2026-01-01T00:00:00Z", "\xff\u2029")
	f.Add("c=1&refresh=5&check", "{{.}} \" onload=x")
	f.Fuzz(func(t *testing.T, query, text string) {
		if len(text) > 1<<16 || len(query) > 1<<16 {
			return
		}
		p := hostile(t, text)
		p.Store = &convotest.MemStore{}
		status, page := get(t, p, query)
		assert.Contains(t, []int{200, 404, 500}, status)
		assert.Less(t, len(page), 10_000_000)
	})
}

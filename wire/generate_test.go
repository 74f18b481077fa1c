package wire_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// A generator makes random conversations that are difficult for providers: with parallel
// calls, repeated, huge, unusual and missing ids, empty results, open calls, reasoning of
// several makers, media, blank text, unusual names and authors, cache marks, citations
// and results that were received as objects.
type generator struct {
	rng     *rand.Rand
	h       *convo.History
	origins []convo.Origin

	rewrites int // how many entries were rewritten

	marked bool // append gives each part a mark
	marks  int  // how many parts have one
}

// append appends a message. If g.marked is set, each of its parts is unique.
func (g *generator) append(m convo.Message) {
	g.h.Append(g.withMarks(m))
}

// withMarks returns a message with a unique mark in each part: in texts, data, addresses,
// signatures and blocks, unless they are empty.
func (g *generator) withMarks(m convo.Message) convo.Message {
	if g.marked {
		m.Parts = slices.Clone(m.Parts)
		for i, p := range m.Parts {
			m.Parts[i] = g.markPart(p)
		}
	}
	return m
}

// isBeside reports whether a block is a cache mark or describes the part before it.
func isBeside(o convo.Opaque) bool {
	if o.Format == "cache" {
		return true
	}
	for _, begin := range []string{`{"citations`, `{"annotations`, `{"response":{}}`, `{"json":{}}`, `{"cachePoint`} {
		if strings.HasPrefix(o.JSON, begin) {
			return true
		}
	}
	return false
}

func (g *generator) markPart(p convo.Part) convo.Part {
	g.marks++
	mark := fmt.Sprintf("<%07d>", g.marks)
	encoded := base64.StdEncoding.EncodeToString([]byte(mark))
	switch p := p.(type) {
	case convo.Text:
		if strings.TrimSpace(string(p)) != "" {
			return convo.Text(mark) + p
		}
	case convo.Reasoning:
		if strings.TrimSpace(p.Text) != "" {
			p.Text = mark + p.Text
		}
		if strings.Contains(p.Signature, "_") {
			p.Signature += fmt.Sprint(g.marks)
		} else if p.Signature != "" {
			p.Signature = encoded
		}
		if p.ID != "" {
			p.ID += fmt.Sprint("x", g.marks)
		}
		if p.Encrypted != "" {
			p.Encrypted = base64.StdEncoding.EncodeToString([]byte("{" + mark[1:8] + "}"))
		}
		return p
	case convo.ToolResult:
		p.Parts = slices.Clone(p.Parts)
		for i := range p.Parts {
			p.Parts[i] = g.markPart(p.Parts[i])
		}
		return p
	case convo.Media:
		if p.Data != "" {
			p.Data = encoded
		} else {
			p.URL += mark[1:8]
		}
		return p
	case convo.Opaque:
		if isBeside(p) { // citations get the mark in a field that no other format shows
			if old := hasMark(p.JSON); old != "" { // the mark of a copy
				p.JSON = strings.ReplaceAll(p.JSON, old, mark)
				return p
			}
			for _, field := range []string{`"cited_text":"`, `"file_id":"`, `[{"text":"`} {
				p.JSON = strings.Replace(p.JSON, field+"c", field+mark, 1)
			}
			return p
		}
		end := "}"
		if p.Format == "converse" { // its blocks have one field
			end = "}}"
		}
		if before, ok := strings.CutSuffix(p.JSON, end); ok {
			p.JSON = before + `,"mark":"` + mark + `"` + end
		}
		return p
	}
	return p
}

func (g *generator) n(n int) int { return g.rng.IntN(n) }

func (g *generator) pick(list ...string) string { return list[g.n(len(list))] }

func (g *generator) text() string {
	return g.pick("hello", "", " ", "\n\n", "done. ", "a \"quoted\" \\ text\n", "</from> <b>", "日本語", "\x00\x01", "bad \xff utf8",
		strings.Repeat("long ", 20), "null", "{\"a\":1}", "trailing \t\n")
}

func (g *generator) callID(i int) string {
	return g.pick("", "c1", "c2", fmt.Sprint("call_", i), strings.Repeat("x", 70)+fmt.Sprint(i), "a b/c.d:"+fmt.Sprint(i), "日本"+fmt.Sprint(i), fmt.Sprintf("abcdefgh%d", i%10), "toolu_"+fmt.Sprint(i))
}

func (g *generator) name() string {
	return g.pick("search", "get_weather", "odd name!", "odd_20name_21_xddabd191", "日本", strings.Repeat("n", 80), "mcp.server.tool", "-")
}

func (g *generator) arguments() string {
	return g.pick("", "{}", `{"n": 1.0, "big": 12345678901234567890}`, `{ "q" : "a\u0041" }`, `{"nested":{"list":[1,2,{"x":null}]}}`, `{"cut":"o`, "oops", "[1]", `{"invalid_arguments":"x"}`)
}

func (g *generator) media() convo.Part {
	m := convo.Media{
		MIME: g.pick("image/png", "image/jpeg", "application/pdf", "audio/wav", "text/plain", "text/markdown", "application/x-unknown", "video/mp4"),
		Data: "aGVsbG8=",
	}
	switch m.MIME {
	case "image/png":
		m.Data = dot
	case "image/jpeg":
		m.Data = "/9j/4AAQSkZJRgABAQAAAQABAAD/"
	case "application/pdf":
		m.Data = "JVBERi0xLjcK"
	}
	return m
}

func (g *generator) mediaURL() convo.Part {
	return convo.Media{MIME: g.pick("", "image/png", "application/pdf"), URL: g.pick("https://example.com/", "https://example.com/", "s3://bucket/", "gs://bucket/", "HTTP://example.com/") + "a"}
}

func (g *generator) opaque() convo.Part {
	o := g.origins[g.n(len(g.origins))]
	switch o.Format {
	case "anthropic":
		return convo.Opaque{Format: o.Format, JSON: `{"type":"container_upload","file_id":"f1"}`}
	default:
		return convo.Opaque{Format: "elsewhere", JSON: `{"type":"thing"}`}
	}
}

// mark returns a cache mark or, mostly, nothing.
func (g *generator) mark() []convo.Part {
	switch g.n(12) {
	case 0:
		return []convo.Part{wire.CacheMark(0)}
	case 1:
		return []convo.Part{wire.CacheMark(time.Hour)}
	}
	return nil
}

// citations are citations of a text, as each format keeps them.
var citations = []convo.Opaque{
	{Format: "anthropic", JSON: `{"citations":[{"type":"char_location","cited_text":"c","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":1,"file_id":null},{"type":"new"}]}`},
	{Format: "anthropic", JSON: `{"citations":[{"type":"new"}]}`},
	{Format: "openai-responses", JSON: `{"annotations":[{"type":"url_citation","start_index":0,"end_index":4,"url":"https://a","title":"A"}]}`},
	{Format: "openai-responses", JSON: `{"annotations":[{"type":"file_citation","file_id":"c","filename":"f","index":0}]}`},
	{Format: "converse", JSON: `{"citationsContent":{"citations":[{"title":"A","sourceContent":[{"text":"c"}],"location":{"web":{"url":"https://a"}}}]}}`},
}

// cite returns the citations of a text or, mostly, nothing.
func (g *generator) cite() []convo.Part {
	if g.n(4) > 0 {
		return nil
	}
	return []convo.Part{citations[g.n(len(citations))]}
}

// object returns a text that was received as an object, or was one.
func (g *generator) object() []convo.Part {
	return []convo.Part{convo.Text(g.pick(`{"a": 1.0}`, `{"error":{"code":7}}`, "{}", "cut", `{"a":`, " ")), convo.Opaque{Format: g.pick("gemini", "converse"), JSON: g.pick(`{"response":{}}`, `{"json":{}}`)}}
}

func (g *generator) system() convo.Message {
	m := convo.System(g.text())
	m.Parts = append(m.Parts, g.mark()...)
	if g.n(4) == 0 {
		m.Parts = append(append(m.Parts, convo.Text(g.text())), g.mark()...)
	}
	return m
}

func (g *generator) user() convo.Message {
	m := convo.User(g.text())
	m.Parts = append(m.Parts, g.mark()...)
	for range g.n(3) {
		m.Parts = append(append(m.Parts, convo.Text(g.text())), g.mark()...)
	}
	switch g.n(9) {
	case 0:
		m.Parts = append(m.Parts, g.media())
	case 1:
		m.Parts = append(m.Parts, g.mediaURL())
	case 2:
		m.Author = g.pick("Eve", "Bob <x>", "日本")
	case 3:
		m.Parts = append(m.Parts, g.opaque())
	case 4:
		m.Parts = append(m.Parts, g.cite()...)
	}
	m.Parts = append(m.Parts, g.mark()...)
	return m
}

// hosts are reasoning as chat hosts send it, and parts that only look like it.
var hosts = []convo.Reasoning{
	{ID: "reasoning-1", Text: "hm", Signature: `{"format":"anthropic-claude-v1","index":0,"signature":"c2ln","type":"reasoning.text"}`},
	{Text: "hm", Signature: `{"index":0,"type":"reasoning.summary"}`},
	{ID: "rs_1", Encrypted: "ZW5j", Signature: `{"format":"openai-responses-v1","id":null,"type":"reasoning.encrypted"}`},
	{Text: "\xff", Signature: `{"text":"old","type":"reasoning.text"}`},
	{Text: "hm", Signature: `{}`},
	{ID: "extra_content", Signature: `{"google":{"thought_signature":"c2ln"}}`},
	{Signature: `{"extra_content":{"google":{"thought_signature":"c2ln"}}}`},
	{Signature: `{"extra_content":{"google":{"thought_signature":"c2ln"}}}`},
	{Text: "hm", Signature: `{"closed":true,"type":"thinking"}`},
	{Signature: `{"type":"thinking"}`},
	{Text: "hm", Signature: `{"type":"reasoning.text"},"role":"user"`},
	{Text: "hm", Signature: "{\"type\":\"\xff\"}"},
	{ID: "extra_content", Signature: `7`},
	{Signature: `null`},
}

func (g *generator) assistant(calls int) convo.Message {
	m := convo.Message{Role: convo.RoleAssistant, Origin: g.origins[g.n(len(g.origins))]}
	reason := func() {
		r := convo.Reasoning{Text: g.pick("hm", "", "let me think\n")}
		switch g.n(8) {
		case 0, 1:
			r.Signature = "c2lnbmF0dXJl"
		case 2:
			r.Signature, r.Encrypted, r.ID = g.pick("c2ln", "msg_1", "fc_1", "?_1"), g.pick("", "ZW5j"), g.pick("", "rs_1", "?")
		case 3:
			r.ID, r.Encrypted = fmt.Sprint("rs_", g.n(1000)), "ZW5jcnlwdGVk"
		case 4:
			r.ID = g.pick("reasoning_content", "reasoning", "thinking", "extra_content")
		case 5:
			r = hosts[g.n(len(hosts))]
		}
		m.Parts = append(m.Parts, r)
	}
	if g.n(3) == 0 {
		reason()
	}
	if calls == 0 || g.n(2) == 0 {
		m.Parts = append(m.Parts, convo.Text(g.text()))
		m.Parts = append(m.Parts, g.cite()...)
	}
	if g.n(6) == 0 {
		m.Author = g.pick("guest", "the other one")
	}
	m.Parts = append(m.Parts, g.mark()...)
	for i := range calls {
		if g.n(8) == 0 {
			reason()
		}
		if g.n(5) == 0 { // a call of a custom tool
			m.Parts = append(m.Parts, convo.Opaque{Format: g.pick("openai-chat", "openai-responses"), JSON: `{"type":"convo_fields","call":"custom"}`})
		}
		m.Parts = append(m.Parts, convo.ToolCall{ID: g.callID(i), Name: g.name(), Arguments: g.arguments()})
		m.Parts = append(m.Parts, g.mark()...)
		if g.n(8) == 0 {
			m.Parts = append(m.Parts, convo.Text(g.text())) // text after a call
		}
	}
	if g.n(20) == 0 {
		m.Parts = append(m.Parts, g.media())
	}
	if g.n(10) == 0 {
		m.Parts = append(append(m.Parts, g.cite()...), g.mark()...)
	}
	return m
}

func (g *generator) result(c convo.ToolCall) convo.Message {
	r := convo.ToolResult{CallID: c.ID, Name: c.Name, IsError: g.n(4) == 0}
	for range g.n(3) {
		r.Parts = append(append(r.Parts, convo.Text(g.text())), g.mark()...)
	}
	switch g.n(12) {
	case 0, 1:
		r.Parts = append(append(r.Parts, g.media()), g.mark()...)
	case 2:
		r.Parts = append(r.Parts, g.object()...)
	case 3:
		r.Parts = g.object()
	case 4:
		r.Parts = append(r.Parts, convo.Opaque{Format: "anthropic", JSON: `{"type":"search_result","source":"https://a","title":"A","content":[{"type":"text","text":"found"}]}`})
	}
	r.Parts = append(r.Parts, g.mark()...)
	return convo.Message{Role: convo.RoleTool, Parts: []convo.Part{r}}
}

// ephemeral returns messages for SetEphemeral, of any role.
func (g *generator) ephemeral() []convo.Message {
	var msgs []convo.Message
	for range 1 + g.n(3) {
		switch g.n(4) {
		case 0:
			msgs = append(msgs, g.system())
		case 1:
			a := g.assistant(g.n(3))
			msgs = append(msgs, a)
			ids := make(map[string]bool)
			for _, c := range a.ToolCalls() {
				if c.ID == "" || ids[c.ID] {
					return g.ephemeral() // calls without an id, or with the same id
				}
				ids[c.ID] = true
				msgs = append(msgs, g.result(c))
			}
		default:
			msgs = append(msgs, convo.User("it is "+g.text()))
		}
	}
	return msgs
}

// rewritten returns other parts for a message: texts and media are changed or left out,
// and so is reasoning. The calls remain, and at least one part.
func (g *generator) rewritten(m convo.Message) (parts []convo.Part) {
	for _, p := range m.Parts {
		switch p := p.(type) {
		case convo.ToolCall:
			parts = append(parts, p)
		case convo.ToolResult:
			if g.n(2) == 0 {
				p.Parts = []convo.Part{convo.Text(g.text())}
			} else if g.n(3) == 0 {
				p.Parts = nil
			}
			parts = append(parts, p)
		case convo.Text:
			if g.n(3) > 0 {
				parts = append(parts, convo.Text(g.text()))
			}
		default:
			if g.n(2) == 0 {
				parts = append(parts, p)
			}
		}
	}
	if m.Role != convo.RoleTool && len(m.ToolCalls()) == 0 {
		parts = append(parts, convo.Text("rewritten"))
	}
	if m.Role != convo.RoleTool && g.n(4) == 0 {
		parts = slices.Insert(parts, 0, convo.Part(convo.Text(g.text())))
	}
	return parts
}

// step appends one or more messages. If the History refuses them, nothing
// happens.
func (g *generator) step() {
	s := g.h.Snapshot()
	if g.h.Status().OpenCalls > 0 {
		// Answer the open calls in random order, but leave some of them open.
		var calls []convo.ToolCall
		for i := s.Len() - 1; i >= 0; i-- {
			e, _ := s.At(i)
			if calls = e.Message.ToolCalls(); len(calls) > 0 {
				break
			}
		}
		g.rng.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
		for _, c := range calls {
			if g.n(12) > 0 {
				g.append(g.result(c))
			}
		}
		return
	}
	switch g.n(11) {
	case 0:
		g.append(g.system()) // a note, unless it comes first
	case 1, 2, 3:
		g.append(g.user())
	case 4, 5:
		g.append(g.assistant(0))
	default:
		g.append(g.assistant(1 + g.n(3)))
	}
}

package wire

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// A request shows the opaque parts of other formats, where it can, as a text in brackets:
// searches and their results, the code that ran and its output, the sources of a text.
// Content that only the provider can read is never shown.

// native returns the parts of a message or of a result. Each part that the format does not
// write, but that can be shown, is replaced by a text, in a copy of the list. tell is
// called with its index and what is lost of it. The first tag parts are not texts of the
// message, so they have no sources.
func (p *projector) native(parts []convo.Part, tag int, tell func(i int, lost string)) []convo.Part {
	var own []convo.Part
	for i, part := range parts {
		kind := kindOfPart(part)
		if kind.shown == nil {
			continue
		}
		text := kind.shown(p.format, part, i > tag && isSaid(parts[i-1]))
		if text == "" {
			continue
		}
		if own == nil {
			own = slices.Clone(parts)
		}
		own[i] = convo.Text(p.lost.s.Mask(text))
		tell(i, kind.lost(part))
	}
	if own == nil {
		return parts
	}
	return own
}

// shownBlock returns the text that stands for an opaque part in a format, or "" if the
// format writes it or nothing can be shown. follows reports whether it follows a text.
func shownBlock(format string, p convo.Part, follows bool) string {
	o := p.(convo.Opaque)
	list := citationsIn(o)
	switch {
	case o.Format == format || list != nil && !follows:
		return ""
	case list != nil:
		return sourcesText(list)
	}
	return foreignText(o)
}

// isSaid reports whether a part is a text that is not blank.
func isSaid(p convo.Part) bool {
	text, ok := p.(convo.Text)
	return ok && !isBlank(string(text))
}

// The maximum bytes of the text for a block, and of one line such as a title.
const (
	foreignLimit = 32 << 10
	lineLimit    = 400
)

// foreignText returns the text that represents an opaque part in other formats, or "" if
// there is none. The text is in brackets.
func foreignText(o convo.Opaque) string {
	if kindOf(json.RawMessage(o.JSON)) != '{' || !strictjson.Valid([]byte(o.JSON)) {
		return ""
	}
	b := foreignBlock{}
	b.all, _ = fields("-", []byte(o.JSON))
	if b.all == nil {
		return ""
	}
	var kind string
	if formatRules[o.Format].keyed {
		for _, key := range sortedKeys(b.all) {
			if name := snake(key); foreignKinds[name] != nil && kindOf(b.all[key]) == '{' {
				kind = name
				b.all, _ = fields("-", b.all[key])
				break
			}
		}
	} else {
		kind = stringOf(b.all["type"])
	}
	if show := foreignKinds[kind]; show != nil {
		show(&b)
	}
	return b.text()
}

// foreignKinds holds the functions that show blocks. The keys are the types of blocks for
// Anthropic and OpenAI, and the names of their only field, in snake_case, for Gemini and
// Converse.
var foreignKinds = map[string]func(b *foreignBlock){
	// Anthropic
	"server_tool_use": (*foreignBlock).call,
	"mcp_tool_use":    (*foreignBlock).call,
	"mcp_tool_result": (*foreignBlock).output,
	"web_search_tool_result": func(b *foreignBlock) {
		b.found("Web search found", b.list("content", func(b *foreignBlock) string { return b.source("title", "url") }))
		b.failure()
	},
	"web_fetch_tool_result": func(b *foreignBlock) {
		page := b.inner("content")
		document := page.inner("content")
		b.say("Fetched", joinShort(": ", page.line("url"), document.line("title")))
		b.more(document.documentText())
		b.failure()
	},
	"code_execution_tool_result":             (*foreignBlock).execution,
	"bash_code_execution_tool_result":        (*foreignBlock).execution,
	"text_editor_code_execution_tool_result": (*foreignBlock).execution,
	"tool_search_tool_result": func(b *foreignBlock) {
		result := b.inner("content")
		b.found("Tools found", result.list("tool_references", func(b *foreignBlock) string { return b.line("tool_name") }))
		b.failure()
	},
	"compaction": func(b *foreignBlock) { b.long("Summary of what went before", b.string("content")) },

	// Anthropic and Converse
	"search_result": func(b *foreignBlock) {
		b.say("Search result", b.source("title", "source"))
		b.more(b.texts("content"))
	},
	"document": func(b *foreignBlock) {
		text := b.documentText()
		if text == "" {
			return // the content cannot be shown
		}
		b.say("Document", joinShort(": ", b.line("title"), b.line("context")))
		b.more(text)
	},

	// OpenAI
	"refusal": func(b *foreignBlock) { b.long("Refused", b.string("refusal")) },
	"web_search_call": func(b *foreignBlock) {
		action := b.inner("action")
		queries := action.list("queries", nil)
		if len(queries) == 0 {
			queries = []string{action.line("query")}
		}
		switch {
		case action.line("url") == "":
			b.say("Web search", queries...)
		case action.line("pattern") != "":
			b.say("Searched "+action.line("url")+" for", action.line("pattern"))
		default:
			b.say("Opened", action.line("url"))
		}
	},
	"file_search_call": func(b *foreignBlock) {
		b.say("File search", b.list("queries", nil)...)
		for _, found := range b.list("results", func(b *foreignBlock) string { return joinShort(": ", b.line("filename"), b.string("text")) }) {
			b.more(found)
		}
	},
	"code_interpreter_call": func(b *foreignBlock) {
		b.long("Ran code", b.string("code"))
		for _, out := range b.list("outputs", func(b *foreignBlock) string { return joinShort("", b.string("logs"), b.line("url")) }) {
			b.long("Output", out)
		}
	},
	"image_generation_call": func(b *foreignBlock) { b.say("Made an image", b.line("revised_prompt")) },
	"mcp_call": func(b *foreignBlock) {
		b.call()
		b.long("Output", b.string("output"))
		b.long("Error", b.string("error"))
	},
	"custom_tool_call":        (*foreignBlock).call,
	"custom_tool_call_output": (*foreignBlock).output,

	// Gemini
	"executable_code":       func(b *foreignBlock) { b.long("Ran code", b.string("code")) },
	"code_execution_result": func(b *foreignBlock) { b.long("Output", b.string("output")) },

	// Converse
	"citations_content": func(b *foreignBlock) {
		b.out = append(b.out, b.texts("content"))
		if s := sourcesText(b.all["citations"]); s != "" {
			b.out = append(b.out, strings.Trim(s, "[]"))
		}
	},
	"tool_use":    (*foreignBlock).call,
	"tool_result": (*foreignBlock).output,
}

// A foreignBlock is a block of another format, and the lines that show it.
type foreignBlock struct {
	all map[string]json.RawMessage
	out []string
}

// text returns the lines in brackets, cut to foreignLimit.
func (b *foreignBlock) text() string {
	out := strings.TrimSpace(strings.Join(b.out, "\n"))
	if out == "" {
		return ""
	}
	return "[" + shorten(out, foreignLimit) + "]"
}

// shorten cuts a text that is longer than limit.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + " ..."
}

// say adds a line: what happened and, if known, to what.
func (b *foreignBlock) say(what string, to ...string) {
	to = slices.DeleteFunc(to, func(s string) bool { return s == "" })
	b.out = append(b.out, joinShort(": ", what, strings.Join(to, "; ")))
}

// found adds the results of a search.
func (b *foreignBlock) found(what string, list []string) {
	if len(list) == 0 {
		list = []string{"nothing"}
	}
	b.say(what, list...)
}

// more adds a text, unless it is blank.
func (b *foreignBlock) more(text string) {
	if !isBlank(text) {
		b.out = append(b.out, text)
	}
}

// long adds a text with a label, unless the text is blank.
func (b *foreignBlock) long(what, text string) {
	if !isBlank(text) {
		b.out = append(b.out, what+": "+text)
	}
}

// call adds the call of a tool.
func (b *foreignBlock) call() {
	input := b.all["input"]
	if kindOf(input) == 0 {
		input = b.all["arguments"]
	}
	in := stringOf(input)
	if kindOf(input) == '{' && compact(input) != "{}" {
		in = compact(input)
	}
	b.say("Called "+b.line("name"), shorten(in, lineLimit))
}

// output adds the result of a tool.
func (b *foreignBlock) output() {
	what := "Output"
	if string(b.all["is_error"]) == "true" || stringOf(b.all["status"]) == "error" {
		what = "Error"
	}
	b.long(what, b.texts("content"))
	b.long(what, b.texts("output"))
}

// execution adds the result of code that Anthropic ran.
func (b *foreignBlock) execution() {
	result := b.inner("content")
	b.long("Output", result.string("stdout"))
	b.long("Output", result.string("content"))
	b.long("Error", result.string("stderr"))
	b.failure()
}

// failure replaces all lines by the code of an error, if there is one.
func (b *foreignBlock) failure() {
	if code := b.inner("content").line("error_code"); code != "" {
		b.out = nil
		b.say("Error", code)
	}
}

// source returns the fields that name a source, joined.
func (b *foreignBlock) source(keys ...string) string {
	var list []string
	for _, key := range keys {
		list = append(list, b.line(key))
	}
	return joinShort(", ", list...)
}

// documentText returns the text of a document, or "" if it has none.
func (b *foreignBlock) documentText() string {
	source := b.inner("source")
	switch stringOf(source.all["type"]) {
	case "text":
		return source.string("data")
	case "":
		return joinShort("\n", source.string("text"), source.texts("content")) // Converse
	}
	return source.texts("content")
}

// inner returns the object in a field.
func (b *foreignBlock) inner(key string) *foreignBlock {
	all, _ := fields("-", b.all[key])
	return &foreignBlock{all: all}
}

// string returns the text in a field.
func (b *foreignBlock) string(key string) string { return stringOf(b.all[key]) }

// line returns the text in a field as one short line.
func (b *foreignBlock) line(key string) string {
	return shorten(strings.Join(strings.Fields(b.string(key)), " "), lineLimit)
}

// list returns the texts in a field, and the result of calling of for each object in it.
func (b *foreignBlock) list(key string, of func(*foreignBlock) string) (out []string) {
	var list []json.RawMessage
	if json.Unmarshal(b.all[key], &list) != nil {
		return nil
	}
	for _, raw := range list {
		text := stringOf(raw)
		if all, err := fields("-", raw); err == nil && of != nil {
			text = of(&foreignBlock{all: all})
		}
		if text != "" {
			out = append(out, text)
		}
	}
	return out
}

// texts returns the texts in a field: a string, or a list of blocks.
func (b *foreignBlock) texts(key string) string {
	if kindOf(b.all[key]) == '"' {
		return b.string(key)
	}
	return strings.Join(b.list(key, func(b *foreignBlock) string {
		if kindOf(b.all["json"]) == '{' {
			return compact(b.all["json"]) // Converse
		}
		return b.string("text")
	}), "\n")
}

// joinShort joins the texts that are not empty.
func joinShort(sep string, list ...string) string {
	return strings.Join(slices.DeleteFunc(list, func(s string) bool { return s == "" }), sep)
}

// maxSources is the maximum number of sources shown for a text.
const maxSources = 16

// sourcesText returns the text that represents the citations of a text, or "" if they
// name no source.
func sourcesText(list json.RawMessage) string {
	b := foreignBlock{all: map[string]json.RawMessage{"list": list}}
	var sources []string
	for _, s := range b.list("list", citedSource) {
		if !slices.Contains(sources, s) && len(sources) < maxSources {
			sources = append(sources, s)
		}
	}
	if len(sources) == 0 {
		return ""
	}
	return "[Source: " + strings.Join(sources, "; ") + "]"
}

// citedSource returns the name of the source of one citation.
func citedSource(b *foreignBlock) string {
	web := b.inner("location").inner("web") // Converse
	title := joinShort("", b.line("title"), b.line("document_title"), b.line("filename"))
	if s := joinShort(", ", title, joinShort("", b.line("url"), web.line("url"), b.line("source"))); s != "" {
		return s
	}
	if n, err := strconv.Atoi(string(b.all["document_index"])); err == nil {
		return "document " + strconv.Itoa(n+1)
	}
	return ""
}

package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// The results of a search for tools refer to tools by their names. Anthropic refuses a request
// with a reference to a tool that it does not have, such as that of an MCP server that is away.

// toolSearchResult is the type of the result of a search that the provider has made, and
// toolReference that of a block in the result of a search by the application.
const (
	toolSearchResult = "tool_search_tool_result"
	toolReference    = "tool_reference"
)

// isToolset reports whether a tool of a type stands for several, whose names are not known.
func isToolset(kind string) bool { return strings.Contains(kind, "toolset") }

// A toolSet holds the names of the tools of a request. The zero value is not known.
type toolSet struct {
	known bool
	names map[string]bool
}

// add adds the tools in a list of definitions.
func (s *toolSet) add(list json.RawMessage) {
	elements, _ := strictjson.SplitArray(list)
	for _, raw := range elements {
		all, _ := fields("-", raw)
		s.name(stringOf(all["name"]), stringOf(all["type"]))
	}
}

// name adds a tool.
func (s *toolSet) name(name, kind string) {
	if s.names == nil {
		s.known, s.names = true, map[string]bool{}
	}
	s.known = s.known && !isToolset(kind)
	s.names[name] = true
}

// lacks reports whether a tool is known not to be in the request.
func (s *toolSet) lacks(name string) bool { return s.known && !s.names[name] }

// A reference is a block that refers to tools, as it is in the conversation and as it is sent.
type reference struct{ raw, sent string }

// refer returns a block with a text in place of what refers to tools that are not in the
// request. The text follows the result of a search.
func (s *toolSet) refer(raw string) (block, text string) {
	all, err := fields("-", []byte(raw))
	if err != nil {
		return raw, ""
	}
	if stringOf(all["type"]) == toolReference {
		if name := stringOf(all["tool_name"]); s.lacks(name) {
			return "", lackingText(name)
		}
		return raw, ""
	}
	content, _ := fields("-", all["content"])
	list, _ := strictjson.SplitArray(content["tool_references"])
	var gone []string
	left := []byte{'['}
	for _, r := range list {
		if name := inner(r, "tool_name"); inner(r, "type") == toolReference && s.lacks(name) {
			gone = append(gone, name)
		} else {
			left = appendElement(left, string(r))
		}
	}
	if len(gone) == 0 {
		return raw, ""
	}
	found := withFields(string(all["content"]), map[string]json.RawMessage{"tool_references": append(left, ']')})
	return withFields(raw, map[string]json.RawMessage{"content": json.RawMessage(found)}), lackingText(gone...)
}

// lackingText returns the text for tools that a search has found and that are not in the
// request. A name that is none is left out, so that the text holds no tag.
func lackingText(names ...string) string {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !anthropicToolNames(name) })
	return "[Found, but not available now: " + strings.Join(names, ", ") + "]"
}

// asSent returns the bytes of a block from refer.
func asSent(block, text string) string {
	if text == "" {
		return block
	}
	said := string(appendPart([]byte{'['}, `"text"`, "text", text)[1:])
	if block == "" {
		return said
	}
	return block + "," + said
}

// referring returns the messages for a request that also has the tools in params. Encode has
// not seen these, nor tools that the caller has set in r.
func (r Request) referring(params json.RawMessage) []json.RawMessage {
	if len(r.references) == 0 {
		return r.Messages
	}
	var tools toolSet
	tools.add(r.Tools)
	tools.add(params)
	if len(tools.names) == 0 {
		return r.Messages
	}
	messages := slices.Clone(r.Messages)
	for _, x := range r.references {
		sent := asSent(tools.refer(x.raw))
		if sent == x.sent {
			continue
		}
		for i, m := range messages {
			if bytes.Contains(m, []byte(x.sent)) {
				messages[i] = bytes.ReplaceAll(m, []byte(x.sent), []byte(sent))
			}
		}
	}
	return messages
}

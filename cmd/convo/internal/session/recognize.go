package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/wire"
)

// recognize returns the format of an input by its first bytes, and leaves it at the first
// byte of its content.
func (in *input) recognize() (string, error) {
	if in.format != "" && !isFormat(in.format) {
		return "", &UnknownError{in.name, fmt.Sprintf("the format %q is not known: want one of %s", in.format, formatList())}
	}
	head, err := in.r.Peek(headSize)
	if err != nil && err != io.EOF {
		return "", in.readError(err)
	}
	unknown := func(reason string) (string, error) { return "", &UnknownError{in.name, reason} }
	switch {
	case len(head) == 0:
		return unknown("the file is empty")
	case bytes.HasPrefix(head, []byte("SQLite format 3\x00")):
		return "", database(in.name, head)
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")), looksUTF16(head):
		return unknown("the text is UTF-16: convert it to UTF-8, such as with iconv -f UTF-16 -t UTF-8")
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return unknown("the content is compressed: send it through gunzip first")
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		_, _ = in.r.Discard(3)
		head = head[3:]
	}
	rest := trimSpace(head)
	if len(rest) == 0 {
		return unknown("the file holds nothing but white space")
	}
	if in.format != "" {
		return in.format, nil
	}
	if first := rest[0]; first == 0 || first >= 0x80 || first < ' ' {
		return unknown("a binary file: want JSON, or lines of JSON")
	}
	if bytes.HasPrefix(rest, []byte("data:")) || bytes.HasPrefix(rest, []byte("event:")) {
		return unknown("a stream of server-sent events: want requests, answers or sessions as JSON")
	}
	if format := formatOf(rest); format != "" {
		return format, nil
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return unknown("a binary file: want JSON, or lines of JSON")
	}
	return unknown("no session, request or answer that is known: the formats are " + formatList())
}

// looksUTF16 reports whether a text is in UTF-16 without a mark: JSON then has a NUL in
// each of its first pairs of bytes.
func looksUTF16(head []byte) bool {
	if len(head) < 4 || len(head)%2 != 0 && len(head) < 64 {
		return false
	}
	for _, nul := range []int{0, 1} {
		if head[nul] == 0 && head[1-nul] != 0 && head[nul+2] == 0 && head[3-nul] != 0 {
			return true
		}
	}
	return false
}

// formatOf returns the format of the first record that shows it, or "".
func formatOf(head []byte) string {
	const most = 64 // records
	for range most {
		if head = trimSpace(head); len(head) == 0 {
			break
		}
		if head[0] == '[' {
			return wireFormat(head)
		}
		all, end := peekObject(head)
		if format := signOf(all, head); format != "" {
			return format
		}
		if end <= 0 { // damaged, or the head ends here
			end = bytes.IndexByte(head, '\n') + 1
			if end == 0 {
				break
			}
		}
		head = head[end:]
	}
	return ""
}

// claudeKinds are records of Claude Code that have neither uuid nor parentUuid.
var claudeKinds = []string{"queue-operation", "file-history-snapshot", "ai-title", "custom-title", "last-prompt", "permission-mode", "agent-name", "agent-color", "tag", "mode", "pr-link", "worktree-state"}

// signOf returns the format that the fields of a record show, or "".
func signOf(all object, rest []byte) string {
	kind := all.text("type")
	switch {
	case all["sessionId"] != nil && all["projectHash"] != nil, all["$set"] != nil, all["$rewindTo"] != nil:
		return GeminiCLI
	case all["parentUuid"] != nil, all["uuid"] != nil && all["sessionId"] != nil, kind == "summary" && all["leafUuid"] != nil,
		all["sessionId"] != nil && slices.Contains(claudeKinds, kind), kind == "file-history-snapshot":
		return ClaudeCode
	case all["payload"] != nil && slices.Contains(codexKinds, kind), all["record_type"] != nil,
		kind == "" && all["id"] != nil && all["timestamp"] != nil && (all["instructions"] != nil || all["git"] != nil):
		return Codex
	case kind == "session" && (all["parent_session"] != nil || all["parent_session_id"] != nil), all["parent_id"] != nil && kind != "":
		return Kit
	case kind == "session" && (all["cwd"] != nil || all["version"] != nil), all["parentId"] != nil && kind != "":
		return Pi
	case isWire(all):
		return wireFormat(rest)
	}
	return ""
}

// isWire reports whether an object may be a request, an answer or a message, or may hold
// some.
func isWire(all object) bool {
	for _, key := range []string{"messages", "contents", "candidates", "choices", "role", "parts", "request", "response", "output", "input", "instructions", "usageMetadata", "systemInstruction"} {
		if all[key] != nil {
			return true
		}
	}
	return all["message"] != nil && all["type"] == nil || slices.Contains(itemKinds, all.text("type"))
}

// itemKinds are the types of items of the Responses API.
var itemKinds = []string{
	"message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "local_shell_call", "local_shell_call_output",
	"web_search_call", "file_search_call", "image_generation_call", "code_interpreter_call", "computer_call", "computer_call_output", "mcp_call", "mcp_list_tools",
	"mcp_approval_request", "mcp_approval_response", "compaction", "shell_call", "shell_call_output", "apply_patch_call", "apply_patch_call_output", "item_reference",
	"tool_search_call", "tool_search_output", "compaction_summary", "context_compaction",
}

// wireFormat returns the wire format that JSON is in by its words, for messages that are
// the same in several formats. Quotes inside of strings have a backslash, so a quoted word
// is a key or a whole string.
func wireFormat(head []byte) string {
	best, at := wire.FormatOpenAIChat, len(head)
	for _, sign := range []struct{ word, format string }{
		{`"toolUse"`, wire.FormatConverse}, {`"toolResult"`, wire.FormatConverse}, {`"inferenceConfig"`, wire.FormatConverse}, {`"toolConfig"`, wire.FormatConverse},
		{`"reasoningContent"`, wire.FormatConverse}, {`"stopReason"`, wire.FormatConverse}, {`"inputTokens"`, wire.FormatConverse},
		{`"contents"`, wire.FormatGemini}, {`"candidates"`, wire.FormatGemini}, {`"functionCall"`, wire.FormatGemini}, {`"usageMetadata"`, wire.FormatGemini}, {`"parts"`, wire.FormatGemini},
		{`"tool_use"`, wire.FormatAnthropic}, {`"tool_result"`, wire.FormatAnthropic}, {`"input_schema"`, wire.FormatAnthropic}, {`"stop_reason"`, wire.FormatAnthropic}, {`"thinking"`, wire.FormatAnthropic},
		{`"input_text"`, wire.FormatOpenAIResponses}, {`"output_text"`, wire.FormatOpenAIResponses}, {`"function_call_output"`, wire.FormatOpenAIResponses}, {`"input"`, wire.FormatOpenAIResponses}, {`"instructions"`, wire.FormatOpenAIResponses},
		{`"tool_calls"`, wire.FormatOpenAIChat}, {`"tool_call_id"`, wire.FormatOpenAIChat}, {`"choices"`, wire.FormatOpenAIChat}, {`"developer"`, wire.FormatOpenAIChat},
	} {
		if i := bytes.Index(head[:at], []byte(sign.word)); i >= 0 {
			best, at = sign.format, i
		}
	}
	return best
}

// peekObject returns the fields of the object at the beginning of data, of which the end
// may be missing, and the index after it, or 0. A value of which the end is missing is cut
// off, a string whole.
func peekObject(data []byte) (object, int) {
	all := object{}
	if len(data) == 0 || data[0] != '{' {
		return all, 0
	}
	for i := 1; ; i++ {
		i = skipSpace(data, i)
		if i < len(data) && data[i] == '}' {
			return all, i + 1
		}
		end := skipValue(data, i)
		if end < 0 || data[i] != '"' {
			return all, 0
		}
		key := textOf(json.RawMessage(data[i:end]))
		i = skipSpace(data, end)
		if i >= len(data) || data[i] != ':' {
			return all, 0
		}
		i = skipSpace(data, i+1)
		if end = skipValue(data, i); end < 0 {
			if i < len(data) {
				all[key] = json.RawMessage(data[i:])
			}
			return all, 0
		}
		all[key] = json.RawMessage(data[i:end])
		if i = skipSpace(data, end); i < len(data) && data[i] == '}' {
			return all, i + 1
		}
		if i >= len(data) || data[i] != ',' {
			return all, 0
		}
	}
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && isSpace(data[i]) {
		i++
	}
	return i
}

// skipValue returns the index after the value at i, or -1 if its end is missing. It does
// not check the value.
func skipValue(data []byte, i int) int {
	var s valueScanner
	n, done, ok := s.scan(data[min(i, len(data)):])
	if !done || !ok {
		return -1
	}
	return i + n
}

// A databaseSign is a word in the definitions of the tables of a program.
type databaseSign struct{ word, program, hint string }

var databaseSigns = []databaseSign{
	{"summary_message_id", "crush", "use a reader of SQLite, such as sqlite3"},
	{"session_items", "docker-agent", "use a reader of SQLite, such as sqlite3"},
	{"content_json", "goose", "goose session export writes a session as JSON"},
	{"session_message", "opencode", "opencode export <id> writes a session as JSON"},
	{"tokens_cache_read", "opencode", "opencode export <id> writes a session as JSON"},
	{"`part`", "opencode", "opencode export <id> writes a session as JSON"},
	{"\"part\"", "opencode", "opencode export <id> writes a session as JSON"},
}

// database returns the error for a database that begins with head. The definitions of its
// tables are texts in its first pages.
func database(name string, head []byte) error {
	text := strings.ToLower(string(head))
	for _, s := range databaseSigns {
		if strings.Contains(text, s.word) && strings.Contains(text, "create table") {
			return &DatabaseError{name, s.program, s.hint}
		}
	}
	return &DatabaseError{name, "", "use a reader of SQLite, such as sqlite3"}
}

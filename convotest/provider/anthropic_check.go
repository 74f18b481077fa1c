package provider

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

var (
	anthropicIDs   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	anthropicNames = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
)

// anthropicFields are the fields of a request and of the commonest blocks. Others are
// refused.
var anthropicFields = map[string][]string{
	"": {
		"model", "messages", "max_tokens", "system", "tools", "tool_choice", "stream", "thinking", "temperature", "top_p", "top_k", "stop_sequences",
		"metadata", "service_tier", "container", "context_management", "mcp_servers", "output_config", "output_format", "inference_geo", "speed", "cache_control", "compaction", "fallbacks",
	},
	"text":              {"type", "text", "cache_control", "citations"},
	"thinking":          {"type", "thinking", "signature"},
	"redacted_thinking": {"type", "data"},
	"tool_use":          {"type", "id", "name", "input", "cache_control", "caller"},
	"tool_result":       {"type", "tool_use_id", "content", "is_error", "cache_control"},
	"compaction":        {"type", "content", "signature", "encrypted_content", "tool_changes", "cache_control"},
}

// An anthropicCheck collects what is wrong with a request, in the order in which it finds
// it.
type anthropicCheck struct {
	model   claude
	faults  []string
	code    string // of the first fault
	details object // of the first fault
	turns   []turn
}

// A turn is a run of messages of one role, which the API takes for one.
type turn struct {
	role    string
	message int // index of its first message
	blocks  []placed
}

// A placed block is a block and its place.
type placed struct {
	object
	path    string
	message int
}

func (b placed) kind() string { return str(b.object["type"]) }

func (k *anthropicCheck) add(format string, args ...any) {
	k.faults = append(k.faults, fmt.Sprintf(format, args...))
}

func (anthropic) check(c *call) *problem {
	k := anthropicCheck{model: claudeOf(c.req.Model)}
	k.request(c.all)
	if len(k.faults) == 0 {
		k.compact(c)
		k.compactions(c)
	}
	if len(k.faults) == 0 {
		k.pairs()
		k.served(c.all)
		k.references(c.all)
		if c.all["compaction"] == nil {
			k.last()
		}
	}
	if len(k.faults) == 0 {
		k.media()
	}
	if thinking := obj(c.all["thinking"]); len(k.faults) == 0 && thinking["type"] == "enabled" {
		k.thinking()
	}
	if len(k.faults) == 0 && c.s.opts.Checks(c.req.Model) {
		k.seals(c.all)
	}
	if len(k.faults) == 0 {
		return nil
	}
	return &problem{status: 400, kind: "invalid_request_error", code: k.code, details: k.details, text: k.faults[0]}
}

// seals checks signed reasoning.
func (k *anthropicCheck) seals(all object) {
	for _, f := range AnthropicSeals.walkMessages(all, list(all["messages"])).refused {
		text := "The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\". That setting requires the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header."
		k.add("%s", strings.TrimSpace(fmt.Sprintf("%s: Invalid `signature` in `thinking` block. %s %s", f.Path, text, f.Cause)))
	}
}

// request checks the fields, one by one.
func (k *anthropicCheck) request(all object) {
	k.known("", "", all)
	for _, key := range []string{"model", "messages", "max_tokens"} {
		if all[key] == nil {
			k.add("%s: Field required", key)
		}
	}
	messages, ok := all["messages"].([]any)
	if all["messages"] != nil && !ok {
		k.add("messages: Input should be a valid list")
	}
	if ok && len(messages) == 0 && all["compaction"] == nil {
		k.add("messages: at least one message is required")
	}
	k.tools(list(all["tools"]))
	k.system(all["system"])
	for i, m := range messages {
		k.message(i, obj(m), messages)
	}
	if fault := marksFault(all, all["tools"], "cache_control"); fault != "" {
		k.add("%s", fault)
	}
}

// known checks that an object has no fields but those of its kind.
func (k *anthropicCheck) known(path, kind string, o object) {
	for _, key := range sortedKeys(o) {
		if fields, ok := anthropicFields[kind]; ok && !slices.Contains(fields, key) {
			k.add("%s: Extra inputs are not permitted", strings.TrimPrefix(path+"."+key, "."))
		}
	}
}

func (k *anthropicCheck) tools(tools []any) {
	seen := map[string]bool{}
	for i, t := range tools {
		t := obj(t)
		name := str(t["name"])
		if kind := str(t["type"]); kind == "" || kind == "custom" {
			if !anthropicNames.MatchString(name) {
				k.add("tools.%d.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", i)
			}
			switch schema, ok := t["input_schema"].(object); {
			case !ok:
				k.add("tools.%d.custom.input_schema: Field required", i)
			case schema["type"] != "object":
				k.add("tools.%d.custom.input_schema.type: Input should be 'object'", i)
			}
		}
		if name != "" && seen[name] {
			k.add("tools: Tool names must be unique.")
		}
		seen[name] = true
	}
}

func (k *anthropicCheck) system(v any) {
	if _, ok := v.(string); ok || v == nil {
		return
	}
	blocks, ok := v.([]any)
	if !ok {
		k.add("system: Input should be a valid list")
	}
	for i, b := range blocks {
		path := fmt.Sprintf("system.%d", i)
		if kind := obj(b)["type"]; kind != "text" {
			k.add("%s.type: Input should be 'text'", path)
			continue
		}
		k.known(path, "text", obj(b))
		k.text("system", obj(b))
	}
}

func (k *anthropicCheck) message(i int, m object, all []any) {
	for _, key := range sortedKeys(m) {
		if key != "role" && key != "content" && (key != "clear_at" || m["role"] != "system") {
			k.add("messages.%d.%s: Extra inputs are not permitted", i, key)
		}
	}
	role := str(m["role"])
	switch role {
	case "user", "assistant":
	case "system":
		k.systemMessage(i, all)
	default:
		k.add("messages.%d.role: Input should be 'user' or 'assistant'", i)
	}
	if n := len(k.turns); n == 0 || k.turns[n-1].role != role {
		k.turns = append(k.turns, turn{role: role, message: i})
	}
	var blocks []any
	switch content := m["content"].(type) {
	case nil:
		k.add("messages.%d.content: Field required", i)
		return
	case string:
		if content != "" {
			blocks = []any{object{"type": "text", "text": content}}
		}
	case []any:
		blocks = content
	default:
		k.add("messages.%d.content: Input should be a valid list", i)
		return
	}
	if len(blocks) == 0 && (role != "assistant" || i+1 < len(all)) {
		k.add("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
	}
	for j, b := range blocks {
		k.block(placed{obj(b), fmt.Sprintf("messages.%d.content.%d", i, j), i}, role)
	}
}

// systemMessage checks the place of a system message.
func (k *anthropicCheck) systemMessage(i int, all []any) {
	roleAt := func(i int) string {
		if i < 0 || i >= len(all) {
			return ""
		}
		return str(obj(all[i])["role"])
	}
	before := i - 1
	for roleAt(before) == "system" {
		before--
	}
	switch {
	case !k.model.takesSystem():
		k.add("messages: Unexpected role \"system\". The Messages API accepts a top-level `system` parameter, not \"system\" as an input message role.")
	case roleAt(before) != "user" || roleAt(i+1) == "user":
		k.add("messages.%d: a `system` message must follow a `user` message, and must be last or precede an `assistant` message", i)
	}
}

// isServed reports whether a block is a call of a tool that the provider runs, or the
// result of one.
func isServed(kind string) (call, result bool) {
	call = kind == "server_tool_use" || kind == "mcp_tool_use"
	return call, strings.HasSuffix(kind, "_tool_result") && kind != "tool_result"
}

func (k *anthropicCheck) block(b placed, role string) {
	t := &k.turns[len(k.turns)-1]
	t.blocks = append(t.blocks, b)
	kind := b.kind()
	call, result := isServed(kind)
	path := b.path + "." + kind
	k.known(path, kind, b.object)
	place := role
	switch kind {
	case "":
		k.add("%s.type: Field required", b.path)
	case "tool_use", "thinking", "redacted_thinking":
		place = "assistant"
	case "tool_result":
		place = "user"
	}
	if call || result {
		place = "assistant"
	}
	if place != role {
		k.add("messages.%d: `%s` blocks can only be in `%s` messages", b.message, kind, place)
		return
	}
	switch kind {
	case "text":
		if b.object["text"] == "" && b.object["cache_control"] != nil {
			k.add("%s: cache_control cannot be set for empty text blocks", path)
		}
		k.text("messages", b.object)
	case "tool_use":
		k.call(path, b.object)
	case "tool_result":
		k.result(path, b.object)
	case "thinking":
		k.required(path, b.object, "thinking", "signature")
	case "redacted_thinking":
		k.required(path, b.object, "data")
	case "image":
		k.image(path, obj(b.object["source"]))
	}
}

func (k *anthropicCheck) required(path string, o object, keys ...string) {
	for _, key := range keys {
		if _, ok := o[key].(string); !ok {
			k.add("%s.%s: Field required", path, key)
		}
	}
}

func (k *anthropicCheck) text(where string, b object) {
	switch text, ok := b["text"].(string); {
	case !ok:
		k.add("%s: text: Field required", where)
	case text == "":
		k.add("%s: text content blocks must be non-empty", where)
	case strings.TrimSpace(text) == "":
		k.add("%s: text content blocks must contain non-whitespace text", where)
	}
}

func (k *anthropicCheck) call(path string, b object) {
	if !anthropicIDs.MatchString(str(b["id"])) {
		k.add("%s.id: String should match pattern '^[a-zA-Z0-9_-]+$'", path)
	}
	if !anthropicNames.MatchString(str(b["name"])) {
		k.add("%s.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", path)
	}
	if _, ok := b["input"].(object); !ok {
		k.add("%s.input: Input should be a valid dictionary", path)
	}
}

func (k *anthropicCheck) result(path string, b object) {
	k.required(path, b, "tool_use_id")
	content := list(b["content"])
	if text := str(b["content"]); text != "" {
		content = []any{object{"type": "text", "text": text}}
	}
	for _, inner := range content {
		switch kind := obj(inner)["type"]; {
		case kind == "image":
			k.image(path+".content.0.image", obj(obj(inner)["source"]))
		case kind == "tool_use" || kind == "tool_result" || kind == "thinking":
			k.add("%s.content: Input tag '%s' found using 'type' does not match any of the expected tags", path, kind)
		}
		if obj(inner)["type"] != "text" && b["is_error"] == true {
			k.add("%s: all content must be type \"text\" if `is_error` is true", strings.TrimSuffix(path, ".tool_result"))
		}
	}
	if len(content) == 0 && b["is_error"] == true {
		k.add("%s: content cannot be empty if `is_error` is true", strings.TrimSuffix(path, ".tool_result"))
	}
}

func (k *anthropicCheck) image(path string, source object) {
	types := []string{"image/jpeg", "image/png", "image/gif", "image/webp"}
	if source["type"] == "base64" && !slices.Contains(types, str(source["media_type"])) {
		k.add("%s.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'", path)
	}
}

// answering returns the user turn that follows the turn at i; system messages may stand
// between them.
func (k *anthropicCheck) answering(i int) turn {
	for _, t := range k.turns[i+1:] {
		if t.role != "system" {
			return t
		}
	}
	return turn{}
}

// pairs checks the calls of tools of the application and their results.
func (k *anthropicCheck) pairs() {
	var calls map[string]bool // of the assistant turn before
	for i, t := range k.turns {
		switch t.role {
		case "assistant":
			calls = k.calls(t, k.answering(i))
		case "user":
			k.results(t, calls)
			calls = nil
		}
	}
}

func (k *anthropicCheck) calls(t, next turn) map[string]bool {
	results := map[string]bool{} // at the beginning of the next turn
	for _, b := range next.blocks {
		if b.kind() != "tool_result" {
			break
		}
		results[str(b.object["tool_use_id"])] = true
	}
	calls := map[string]bool{}
	var missing []string
	for _, b := range t.blocks {
		id := str(b.object["id"])
		switch {
		case b.kind() == "text" && len(calls) > 0 && len(missing) == 0:
			for id := range calls {
				missing = append(missing, id)
			}
		case b.kind() != "tool_use":
		case calls[id]:
			k.add("%s: `tool_use` ids must be unique", b.path)
		default:
			if calls[id] = true; !results[id] {
				missing = append(missing, id)
			}
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		k.add("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", t.blocks[len(t.blocks)-1].message, strings.Join(missing, ", "))
	}
	return calls
}

func (k *anthropicCheck) results(t turn, calls map[string]bool) {
	seen := map[string]bool{}
	for _, b := range t.blocks {
		id := str(b.object["tool_use_id"])
		switch {
		case b.kind() != "tool_result":
		case !calls[id]:
			k.add("%s: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", b.path, id)
		case seen[id]:
			k.add("%s: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", b.path, id)
		}
		seen[id] = true
	}
}

// served checks the calls of tools that the provider runs. A call may wait for its result
// while the turn goes on: up to the end of the request after a paused answer, and while
// the application answers only its own calls. Code that has called other tools waits in a
// container, which the request names.
func (k *anthropicCheck) served(all object) {
	var waiting []placed
	known, calls := map[string]bool{}, map[string]bool{}
	end := func() {
		for _, b := range waiting {
			name := str(b.object["name"])
			result := name + "_tool_result"
			if b.kind() == "mcp_tool_use" {
				result = "mcp_tool_result"
			}
			k.add("messages.%d: `%s` tool use with id `%s` was found without a corresponding `%s` block", b.message, name, str(b.object["id"]), result)
		}
		waiting = nil
		clear(known)
	}
	var last placed
	for _, t := range k.turns {
		for _, b := range t.blocks {
			last = b
			call, result := isServed(b.kind())
			id := str(b.object["tool_use_id"])
			calls[str(obj(b.object["caller"])["tool_id"])] = true
			switch {
			case t.role == "system", t.role == "user" && b.kind() != "tool_result":
				end()
			case call:
				waiting = append(waiting, b)
				known[str(b.object["id"])] = true
			case result && !known[id]:
				k.add("%s: unexpected `tool_use_id` found in `%s` blocks: %s. Each `%s` block must have a corresponding `server_tool_use` block before it.", b.path, b.kind(), id, b.kind())
			case result:
				waiting = slices.DeleteFunc(waiting, func(w placed) bool { return str(w.object["id"]) == id })
				delete(calls, id)
			}
		}
	}
	call, result := isServed(last.kind())
	if !call && !result && last.kind() != "tool_result" {
		end()
	}
	if containerOf(all) == "" && slices.ContainsFunc(waiting, func(w placed) bool { return calls[str(w.object["id"])] }) {
		k.add("container_id is required when there are pending tool uses generated by code execution with tools.")
	}
}

// references checks that results refer to tools of the request. The tools of a toolset are
// not known.
func (k *anthropicCheck) references(all object) {
	var names []string
	for _, t := range list(all["tools"]) {
		if strings.Contains(str(obj(t)["type"]), "toolset") {
			return
		}
		names = append(names, str(obj(t)["name"]))
	}
	for _, t := range k.turns {
		for _, b := range t.blocks {
			found := list(b.object["content"])
			if b.kind() == "tool_search_tool_result" {
				found = list(obj(b.object["content"])["tool_references"])
			}
			for _, r := range found {
				if name := str(obj(r)["tool_name"]); obj(r)["type"] == "tool_reference" && !slices.Contains(names, name) {
					k.add("Tool reference '%s' not found in available tools", name)
				}
			}
		}
	}
}

// last checks how the request ends.
func (k *anthropicCheck) last() {
	var t turn
	if n := len(k.turns); n > 0 {
		t = k.turns[n-1]
	}
	if t.role != "assistant" {
		return
	}
	var end placed
	if n := len(t.blocks); n > 0 {
		end = t.blocks[n-1]
	}
	call, result := isServed(end.kind())
	text := str(end.object["text"])
	switch {
	case call || result: // a paused answer
	case strings.HasSuffix(end.kind(), "thinking"): // earlier messages may end with it
		k.add("messages.%d: The final block in an assistant message cannot be `thinking`.", end.message)
	case k.model.wantsUser():
		k.add("This model does not support assistant message prefill. The conversation must end with a user message.")
	case text != strings.TrimRightFunc(text, unicode.IsSpace):
		k.add("messages: final assistant content cannot end with trailing whitespace")
	}
}

// thinking checks that the assistant's part of the last turn begins with thinking.
func (k *anthropicCheck) thinking() {
	var first placed
	for _, t := range slices.Backward(k.turns) {
		asks := slices.ContainsFunc(t.blocks, func(b placed) bool { return b.kind() != "tool_result" })
		if t.role == "user" && asks {
			break
		}
		blocks := t.blocks
		if len(blocks) > 0 && blocks[0].kind() == "compaction" {
			blocks = blocks[1:]
		}
		if t.role == "assistant" && len(blocks) > 0 {
			first = blocks[0]
		}
	}
	if kind := first.kind(); kind != "" && !strings.HasSuffix(kind, "thinking") {
		k.add("%s.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks).", first.path, kind)
	}
}

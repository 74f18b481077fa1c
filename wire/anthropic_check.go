package wire

import (
	"fmt"
	"strings"
	"unicode"
)

// Check says why the API would refuse a request. The rules by name: json,
// shape, messages-empty, role, content-empty, blank-text, system-type,
// system-place, block-place, id-missing, id-pattern, name-pattern, input,
// unanswered-call, orphan-result, duplicate-result, duplicate-call,
// result-order, text-after-call, error-result, orphan-server-result,
// media-type, thinking-signature, thinking-last, thinking-first, cache-place,
// cache-count, trailing-space, last-role.
//
// thinking-first and cache-count look at the fields thinking and tools too;
// last-role is for UserLast.
func (f Anthropic) Check(request []byte) []Finding {
	var c checker
	all := c.body(request)
	if all == nil {
		return c.list
	}
	k := anthropicChecker{checker: &c, served: make(map[string]bool)}
	k.system(all["system"])
	msgs := c.objects("messages", all["messages"])
	if msgs == nil {
		return c.list
	}
	if len(msgs) == 0 {
		k.add(Finding{Rule: "messages-empty", Path: "messages", Error: "messages: at least one message is required", Fix: "send a message"})
	}
	for i, m := range msgs {
		k.message(i, m, msgs)
	}
	for i := range k.turns {
		k.turn(i)
	}
	if thinking, _ := all["thinking"].(map[string]any); str(thinking["type"]) == "enabled" {
		k.thinking()
	}
	k.last(f.UserLast, msgs)
	if tools, ok := all["tools"].([]any); ok {
		for _, t := range tools {
			t, _ := t.(map[string]any)
			k.mark("", t)
		}
	}
	if k.marks > 4 {
		k.add(Finding{Rule: "cache-count", Path: k.marked, Error: fmt.Sprintf("A maximum of 4 blocks with cache_control may be provided. Found %d.", k.marks), Fix: "mark at most four blocks of system, tools and messages together"})
	}
	return c.list
}

// An anthropicChecker walks over the messages and collects the turns that the
// API makes of neighbours.
type anthropicChecker struct {
	*checker
	turns  []anthropicTurn
	served map[string]bool // ids of calls of the provider's own tools
	marks  int
	marked string // path of the last of them
}

type anthropicTurn struct {
	role   string
	blocks []anthropicBlock
}

type anthropicBlock struct {
	path   string
	kind   string
	id     string // of a call, or of the call that a result answers
	fields map[string]any
}

func (k *anthropicChecker) system(v any) {
	switch v := v.(type) {
	case nil, string:
	case []any:
		for i, b := range k.objects("system", v) {
			path := atIndex("system", i)
			if kind := str(b["type"]); kind != "text" {
				k.add(Finding{Rule: "system-type", Path: path + ".type", Error: dotted(path) + ".type: Input should be 'text'", Fix: "send system text as blocks of type text"})
				continue
			}
			k.text(path, b)
			k.mark(path, b)
		}
	default:
		k.shape("system", "a string or an array of text blocks")
	}
}

func (k *anthropicChecker) message(i int, m map[string]any, msgs []map[string]any) {
	path := atIndex("messages", i)
	role := str(m["role"])
	switch role {
	case "user", "assistant":
		if n := len(k.turns); n == 0 || k.turns[n-1].role != role {
			k.turns = append(k.turns, anthropicTurn{role: role})
		}
	case "system":
		before, after := "", ""
		if i > 0 {
			before = str(msgs[i-1]["role"])
		}
		if i+1 < len(msgs) {
			after = str(msgs[i+1]["role"])
		}
		if before != "user" && before != "system" || after == "user" {
			k.add(Finding{Rule: "system-place", Path: path, Error: "messages: a system message must directly follow a user turn and directly precede an assistant turn", Fix: "put it after a user message and before an assistant message or at the end, or send it as system"})
		}
	default:
		k.add(Finding{Rule: "role", Path: path + ".role", Error: dotted(path) + ".role: Input should be 'user' or 'assistant'", Fix: "use user or assistant, and system for system text"})
		return
	}
	path += ".content"
	var blocks []map[string]any
	switch v := m["content"].(type) {
	case string:
		if v != "" {
			k.block(path, role, map[string]any{"type": "text", "text": v})
			return
		}
	case []any:
		blocks = k.objects(path, v)
	default:
		k.shape(path, "a string or an array of blocks")
		return
	}
	if len(blocks) == 0 && (role != "assistant" || i+1 < len(msgs)) {
		k.add(Finding{Rule: "content-empty", Path: path, Error: fmt.Sprintf("messages.%d: all messages must have non-empty content except for the optional final assistant message", i), Fix: "leave the message out"})
	}
	for j, b := range blocks {
		k.block(atIndex(path, j), role, b)
	}
	if n := len(blocks); n > 0 && role == "assistant" && isThinking(str(blocks[n-1]["type"])) && (i+1 == len(msgs) || str(msgs[i+1]["role"]) != role) {
		k.add(Finding{Rule: "thinking-last", Path: atIndex(path, n-1), Error: fmt.Sprintf("messages.%d: The final block in an assistant message cannot be `thinking`.", i), Fix: "leave out thinking that nothing follows"})
	}
}

func isThinking(kind string) bool { return kind == "thinking" || kind == "redacted_thinking" }

// block looks at a block by itself.
func (k *anthropicChecker) block(path, role string, b map[string]any) {
	kind := str(b["type"])
	if kind == "" {
		k.shape(path+".type", "the type of the block")
		return
	}
	k.mark(path, b)
	block := anthropicBlock{path: path, kind: kind, fields: b}
	place := role
	switch kind {
	case "tool_use":
		place, block.id = "assistant", str(b["id"])
	case "tool_result":
		place, block.id = "user", str(b["tool_use_id"])
	case "thinking", "redacted_thinking":
		place = "assistant"
	}
	if place != role {
		k.add(Finding{Rule: "block-place", Path: path, ID: block.id, Error: fmt.Sprintf("%s: `%s` blocks can only be in `%s` messages", dotted(path), kind, place), Fix: "move the block into a message of role " + place})
		return
	}
	switch kind {
	case "text":
		k.text(path, b)
	case "tool_use":
		k.call(path, b)
	case "tool_result":
		k.result(path, b)
	case "thinking":
		k.field(path, "thinking", b)
		k.field(path, "signature", b)
	case "redacted_thinking":
		k.field(path, "data", b)
	case "image":
		k.image(path, b)
	}
	if role == "assistant" {
		k.serverBlock(path, kind, b)
	}
	if role != "system" {
		t := &k.turns[len(k.turns)-1]
		t.blocks = append(t.blocks, block)
	}
}

// field asks for a field of a thinking block.
func (k *anthropicChecker) field(path, key string, b map[string]any) {
	if _, ok := b[key].(string); !ok {
		k.add(Finding{Rule: "thinking-signature", Path: path + "." + key, Error: dotted(path) + "." + str(b["type"]) + "." + key + ": Field required", Fix: "send the block as it was received, or leave it out"})
	}
}

func (k *anthropicChecker) text(path string, b map[string]any) {
	switch text, ok := b["text"].(string); {
	case !ok:
		k.shape(path+".text", "a string")
	case text == "":
		k.add(Finding{Rule: "blank-text", Path: path, Error: "messages: text content blocks must be non-empty", Fix: "leave the block out"})
	case isBlank(text):
		k.add(Finding{Rule: "blank-text", Path: path, Error: "messages: text content blocks must contain non-whitespace text", Fix: "leave the block out"})
	}
}

func (k *anthropicChecker) call(path string, b map[string]any) {
	id, name := str(b["id"]), str(b["name"])
	k.id(path, "tool_use.id", id)
	if name == "" || len(name) > 128 || !anthropicIDs.valid(name) {
		k.add(Finding{Rule: "name-pattern", Path: path + ".name", ID: id, Error: dotted(path) + ".tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", Fix: "use letters, digits, _ and - in a tool's name, at most 128"})
	}
	if _, ok := b["input"].(map[string]any); !ok {
		k.add(Finding{Rule: "input", Path: path + ".input", ID: id, Error: dotted(path) + ".tool_use.input: Input should be a valid dictionary", Fix: "send the arguments as an object"})
	}
}

func (k *anthropicChecker) id(path, field, id string) {
	switch _, key, _ := strings.Cut(field, "."); {
	case id == "":
		k.add(Finding{Rule: "id-missing", Path: path + "." + key, Error: dotted(path) + "." + field + ": Field required", Fix: "give the call an id, and its result the same"})
	case !anthropicIDs.valid(id):
		k.add(Finding{Rule: "id-pattern", Path: path + "." + key, ID: id, Error: dotted(path) + "." + field + ": String should match pattern '^[a-zA-Z0-9_-]+$'", Fix: "use letters, digits, _ and - in an id, and the same in its result"})
	}
}

func (k *anthropicChecker) result(path string, b map[string]any) {
	id, isError := str(b["tool_use_id"]), b["is_error"] == true
	if id == "" { // of one that is odd, its call says so
		k.id(path, "tool_result.tool_use_id", id)
	}
	empty, textOnly := false, true
	switch v := b["content"].(type) {
	case nil:
		empty = true
	case string:
		empty = v == ""
	case []any:
		empty = len(v) == 0
		for i, p := range k.objects(path+".content", v) {
			path := atIndex(path+".content", i)
			k.mark(path, p)
			switch kind := str(p["type"]); kind {
			case "":
				k.shape(path+".type", "the type of the block")
			case "text":
			case "image":
				k.image(path, p)
				fallthrough
			default:
				textOnly = false
			}
		}
	default:
		k.shape(path+".content", "a string or an array of blocks")
	}
	switch {
	case isError && empty:
		k.add(Finding{Rule: "error-result", Path: path + ".content", ID: id, Error: dotted(path) + ".tool_result: content cannot be empty if `is_error` is true", Fix: "say what went wrong"})
	case isError && !textOnly:
		k.add(Finding{Rule: "error-result", Path: path + ".content", ID: id, Error: dotted(path) + ".tool_result: all content must be type `text` if `is_error` is true", Fix: "send text alone in an error result"})
	}
}

func (k *anthropicChecker) image(path string, b map[string]any) {
	source, _ := b["source"].(map[string]any)
	if str(source["type"]) == "base64" && !isAnthropicImage(str(source["media_type"])) {
		k.add(Finding{Rule: "media-type", Path: path + ".source.media_type", Error: dotted(path) + ".image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'", Fix: "convert the image, or describe it in text"})
	}
}

// serverBlock looks at calls of the provider's own tools, and their results.
func (k *anthropicChecker) serverBlock(path, kind string, b map[string]any) {
	if strings.HasSuffix(kind, "_tool_result") && !k.served[str(b["tool_use_id"])] {
		id := str(b["tool_use_id"])
		k.add(Finding{Rule: "orphan-server-result", Path: path, ID: id, Error: fmt.Sprintf("%s: unexpected `tool_use_id` found in `%s` blocks: %s. Each `%[2]s` block must have a corresponding `server_tool_use` block before it.", dotted(path), kind, id), Fix: "leave the result out, or send the block with its call before it"})
	}
	if strings.HasSuffix(kind, "tool_use") {
		k.served[str(b["id"])] = true
	}
}

// mark counts cache marks and says where one may not be.
func (k *anthropicChecker) mark(path string, b map[string]any) {
	if b["cache_control"] == nil {
		return
	}
	k.marks++
	k.marked = at(path, "cache_control")
	switch kind := str(b["type"]); {
	case isThinking(kind):
		k.add(Finding{Rule: "cache-place", Path: k.marked, Error: dotted(path) + "." + kind + ".cache_control: Extra inputs are not permitted", Fix: "mark another block than one of thinking"})
	case kind == "text" && str(b["text"]) == "":
		k.add(Finding{Rule: "cache-place", Path: k.marked, Error: dotted(path) + ".text: cache_control cannot be set for empty text blocks", Fix: "leave the block out"})
	}
}

// turn looks at calls and results of a turn and of the one beside it.
func (k *anthropicChecker) turn(i int) {
	t := k.turns[i]
	if t.role == "user" {
		k.results(i)
		return
	}
	answered := map[string]bool{} // by the turn after
	inFront, late := true, map[string]bool{}
	if i+1 < len(k.turns) {
		for _, b := range k.turns[i+1].blocks {
			if b.kind != "tool_result" {
				inFront = false
			} else if answered[b.id] = true; !inFront {
				late[b.id] = true
			}
		}
	}
	calls := map[string]bool{}
	for _, b := range t.blocks {
		switch {
		case b.kind == "text" && len(calls) > 0:
			k.add(Finding{Rule: "text-after-call", Path: b.path, Error: k.unanswered(b.path, b.id), Fix: "put the text before the calls"})
		case b.kind != "tool_use":
		case calls[b.id]:
			k.add(Finding{Rule: "duplicate-call", Path: b.path + ".id", ID: b.id, Error: dotted(b.path) + ": `tool_use` ids must be unique", Fix: "give each call an id of its own"})
		default:
			calls[b.id] = true
			if !answered[b.id] {
				k.add(Finding{Rule: "unanswered-call", Path: b.path, ID: b.id, Error: k.unanswered(b.path, b.id), Fix: "send a result for it at the start of the next user message"})
			} else if late[b.id] {
				k.add(Finding{Rule: "result-order", Path: b.path, ID: b.id, Error: k.unanswered(b.path, b.id), Fix: "put all results in front of what else the user message holds"})
			}
		}
	}
}

func (k *anthropicChecker) unanswered(path, id string) string {
	message, _, _ := strings.Cut(dotted(path), ".content")
	return message + ": `tool_use` ids were found without `tool_result` blocks immediately after: " + id + ". Each `tool_use` block must have a corresponding `tool_result` block in the next message."
}

// results looks at the results of a user turn.
func (k *anthropicChecker) results(i int) {
	calls, seen := map[string]bool{}, map[string]bool{}
	if i > 0 {
		for _, b := range k.turns[i-1].blocks {
			calls[b.id] = calls[b.id] || b.kind == "tool_use"
		}
	}
	for _, b := range k.turns[i].blocks {
		switch {
		case b.kind != "tool_result":
		case seen[b.id]:
			k.add(Finding{Rule: "duplicate-result", Path: b.path, ID: b.id, Error: dotted(b.path) + ": each tool_use must have a single result. Found multiple `tool_result` blocks with id: " + b.id, Fix: "send one result for each call"})
		case !calls[b.id]:
			k.add(Finding{Rule: "orphan-result", Path: b.path, ID: b.id, Error: dotted(b.path) + ": unexpected `tool_use_id` found in `tool_result` blocks: " + b.id + ". Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", Fix: "leave the result out, or send the assistant message with its call directly before it"})
		}
		if b.kind == "tool_result" {
			seen[b.id] = true
		}
	}
}

// thinking looks at how the turn under way begins, when thinking is on.
func (k *anthropicChecker) thinking() {
	var first *anthropicBlock
	for i := len(k.turns) - 1; i >= 0; i-- {
		t := &k.turns[i]
		if t.role == "assistant" {
			if len(t.blocks) > 0 {
				first = &t.blocks[0]
			}
			continue
		}
		asks := false
		for _, b := range t.blocks {
			asks = asks || b.kind != "tool_result"
		}
		if asks {
			break
		}
	}
	if first != nil && !isThinking(first.kind) {
		k.add(Finding{Rule: "thinking-first", Path: first.path, ID: first.id, Error: dotted(first.path) + ".type: Expected `thinking` or `redacted_thinking`, but found `" + first.kind + "`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks).", Fix: "send the thinking block back, or turn thinking off for this request"})
	}
}

// last looks at the end of the request.
func (k *anthropicChecker) last(userLast bool, msgs []map[string]any) {
	n := len(msgs) - 1
	if n < 0 || str(msgs[n]["role"]) != "assistant" {
		return
	}
	path := atIndex("messages", n)
	var end anthropicBlock
	if t := k.turns[len(k.turns)-1]; len(t.blocks) > 0 {
		end = t.blocks[len(t.blocks)-1]
	}
	text := str(end.fields["text"])
	if end.kind == "text" && !isBlank(text) && text != strings.TrimRightFunc(text, unicode.IsSpace) {
		k.add(Finding{Rule: "trailing-space", Path: end.path, Error: "messages: final assistant content cannot end with trailing whitespace", Fix: "cut the space off the end"})
	}
	if userLast && !isServerBlock(end.kind) {
		k.add(Finding{Rule: "last-role", Path: path, Error: "This model does not support assistant message prefill. The conversation must end with a user message.", Fix: "end with a user message"})
	}
}

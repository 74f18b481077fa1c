package wire

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Check returns the reasons why the API would refuse a request. The rules:
//
//   - for the body: json, shape, request-bytes
//   - for messages: messages-empty, role, last-role, content-empty, blank-text,
//     trailing-space, system-type, system-place, block-place
//   - for calls and results: id-missing, id-pattern, name-pattern, input, unanswered-call,
//     duplicate-call, orphan-result, duplicate-result, result-order, text-after-call,
//     error-result, tool-reference
//   - for tools that the API runs: unanswered-server-call, orphan-server-result,
//     container-missing
//   - for reasoning: thinking-signature, thinking-last, thinking-first
//   - for cache marks: cache-place, cache-count, cache-order
//   - for media: media-type, media-count, media-bytes, image-pixels, image-type,
//     image-unreadable, pdf-encrypted, pdf-unreadable
//
// thinking-first depends on the field thinking of the request, and cache-count also counts
// marks on tools. The rule last-role applies only if UserLast is set, or the model of the
// request, or else Model, is known to refuse such a request. tool-reference applies only to
// a request with tools, all of which have a name.
func (f Anthropic) Check(request []byte) []Finding {
	k := anthropicChecker{checker: checker{format: FormatAnthropic}}
	all := k.body(request)
	if all == nil {
		return k.list
	}
	if tools, ok := all["tools"].([]any); ok {
		for i, t := range tools {
			t, _ := t.(map[string]any)
			k.mark(atIndex("tools", i), t)
		}
	}
	k.system(all["system"])
	msgs := k.objects("messages", all["messages"])
	if msgs == nil {
		return k.list
	}
	if len(msgs) == 0 {
		k.add("messages-empty", "messages", "")
	}
	for i, m := range msgs {
		k.message(i, m, msgs)
	}
	for i := range k.turns {
		k.turn(i)
	}
	k.served(all["container"])
	k.references(all["tools"], msgs)
	if thinking, _ := all["thinking"].(map[string]any); str(thinking["type"]) == "enabled" {
		k.thinking()
	}
	k.last(f.UserLast || refusesAssistantLast(cmp.Or(str(all["model"]), f.Model)), msgs)
	k.count(&k.checker)
	model := cmp.Or(str(all["model"]), f.Model)
	k.sizes(request, mediaIn("messages", all["messages"], anthropicMedium), claudeSizes(model))
	return k.list
}

// An anthropicChecker checks the messages one by one, then the turns: the API
// merges adjacent messages of one role into one turn.
type anthropicChecker struct {
	checker
	turns []anthropicTurn
	markChecker
}

type anthropicTurn struct {
	role   string
	blocks []anthropicBlock
	system bool // a system message follows
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
				k.add("system-type", path+".type", "")
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
		if n := len(k.turns); n > 0 {
			k.turns[n-1].system = true
		}
		if before != "user" && before != "system" || after == "user" {
			k.add("system-place", path, "")
		}
	default:
		k.add("role", path+".role", "", "role", role)
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
		k.add("content-empty", path, "", "index", strconv.Itoa(i))
	}
	for j, b := range blocks {
		k.block(atIndex(path, j), role, b)
	}
}

func isThinking(kind string) bool { return kind == "thinking" || kind == "redacted_thinking" }

// block checks a single block.
func (k *anthropicChecker) block(path, role string, b map[string]any) {
	kind := str(b["type"])
	if kind == "" {
		k.shape(path+".type", "a string that names the type of the block")
		return
	}
	if kind != "tool_result" {
		k.mark(path, b)
	} else {
		defer k.mark(path, b) // after the blocks inside
	}
	block := anthropicBlock{path: path, kind: kind, fields: b}
	place := role
	switch kind {
	case "tool_use":
		place, block.id = "assistant", str(b["id"])
	case "tool_result":
		place, block.id = "user", str(b["tool_use_id"])
	case "thinking", "redacted_thinking":
		place = "assistant"
	default:
		if isServedCall(kind) {
			place, block.id = "assistant", str(b["id"])
		} else if isServedResult(kind) {
			place, block.id = "assistant", str(b["tool_use_id"])
		}
	}
	if place != role {
		k.add("block-place", path, block.id, "type", kind, "role", place)
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
	if role != "system" {
		t := &k.turns[len(k.turns)-1]
		t.blocks = append(t.blocks, block)
	}
}

// field checks that a thinking block has a field.
func (k *anthropicChecker) field(path, key string, b map[string]any) {
	if _, ok := b[key].(string); !ok {
		k.add("thinking-signature", path+"."+key, "", "block", dotted(path), "type", str(b["type"]), "key", key)
	}
}

func (k *anthropicChecker) text(path string, b map[string]any) {
	switch text, ok := b["text"].(string); {
	case !ok:
		k.shape(path+".text", "a string")
	case text == "":
		k.add("blank-text/empty", path, "")
	case isBlank(text):
		k.add("blank-text", path, "")
	}
}

func (k *anthropicChecker) call(path string, b map[string]any) {
	id, name := str(b["id"]), str(b["name"])
	k.id(path, "tool_use.id", id)
	if name == "" || len(name) > 128 || !anthropicIDs.valid(name) {
		k.add("name-pattern", path+".name", id, "block", dotted(path))
	}
	if _, ok := b["input"].(map[string]any); !ok {
		k.add("input", path+".input", id, "block", dotted(path))
	}
}

func (k *anthropicChecker) id(path, field, id string) {
	switch _, key, _ := strings.Cut(field, "."); {
	case id == "":
		k.add("id-missing", path+"."+key, "", "field", dotted(path)+"."+field)
	case !anthropicIDs.valid(id):
		k.add("id-pattern", path+"."+key, id, "field", dotted(path)+"."+field)
	}
}

func (k *anthropicChecker) result(path string, b map[string]any) {
	id, isError := str(b["tool_use_id"]), b["is_error"] == true
	if id == "" { // an invalid id is reported at its call
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
				k.shape(path+".type", "a string that names the type of the block")
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
		k.add("error-result/empty", path+".content", id, "block", dotted(path))
	case isError && !textOnly:
		k.add("error-result", path+".content", id, "block", dotted(path))
	}
}

func (k *anthropicChecker) image(path string, b map[string]any) {
	source, _ := b["source"].(map[string]any)
	if str(source["type"]) == "base64" && !isAnthropicImage(str(source["media_type"])) {
		k.add("media-type", path+".source.media_type", "", "block", dotted(path))
	}
}

// mark counts the cache mark of a block, if it has one, and checks its place.
func (k *anthropicChecker) mark(path string, b map[string]any) {
	if b["cache_control"] == nil {
		return
	}
	control, _ := b["cache_control"].(map[string]any)
	k.look(&k.checker, at(path, "cache_control"), control["ttl"])
	switch kind := str(b["type"]); {
	case isThinking(kind):
		k.add("cache-place", k.marked, "", "block", dotted(path), "type", kind)
	case kind == "text" && str(b["text"]) == "":
		k.add("cache-place/empty", k.marked, "", "block", dotted(path))
	}
}

// turn checks the calls of a turn against the results in the next one, or the
// results of a turn against the calls in the previous one.
func (k *anthropicChecker) turn(i int) {
	t := k.turns[i]
	if t.role == "user" {
		k.results(i)
		return
	}
	answered := map[string]bool{} // ids of the results in the next turn
	inFront, late := true, map[string]bool{}
	if i+1 < len(k.turns) {
		for _, b := range k.turns[i+1].blocks {
			if b.kind != "tool_result" {
				inFront = false
				continue
			}
			answered[b.id] = true
			if !inFront {
				late[b.id] = true
			}
		}
	}
	calls := map[string]bool{}
	for _, b := range t.blocks {
		switch {
		case b.kind == "text" && len(calls) > 0:
			k.add("text-after-call", b.path, "", "message", messageOf(b.path))
		case b.kind != "tool_use":
		case calls[b.id]:
			k.add("duplicate-call", b.path+".id", b.id, "block", dotted(b.path))
		default:
			calls[b.id] = true
			if !answered[b.id] {
				k.add("unanswered-call", b.path, b.id, "message", messageOf(b.path))
			} else if late[b.id] {
				k.add("result-order", b.path, b.id, "message", messageOf(b.path))
			}
		}
	}
}

// messageOf returns the message that holds the block at path, in the form of
// the API: messages.3.
func messageOf(path string) string {
	message, _, _ := strings.Cut(dotted(path), ".content")
	return message
}

// results checks the results of a user turn.
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
			k.add("duplicate-result", b.path, b.id)
		case !calls[b.id]:
			k.add("orphan-result", b.path, b.id)
		}
		if b.kind == "tool_result" {
			seen[b.id] = true
		}
	}
}

// served checks the calls and results of tools that the provider runs.
func (k *anthropicChecker) served(container any) {
	var open []anthropicBlock
	var made []anthropicBlock    // of the turn
	running := map[string]bool{} // ids of the calls whose code has called a tool of the application
	busy := map[string]bool{}    // ids of the calls whose code has called any tool
	end := func() {
		for _, b := range open {
			if !running[b.id] {
				name := str(b.fields["name"])
				k.add("unanswered-server-call", b.path, b.id, "message", messageOf(b.path), "name", name, "result", servedResult(b.kind, name))
			}
		}
		open, made = nil, nil
		clear(running)
	}
	last := ""
	for _, t := range k.turns {
		for _, b := range t.blocks {
			same := func(call anthropicBlock) bool { return call.id == b.id && isMCP(call.kind) == isMCP(b.kind) }
			last = b.kind
			caller, _ := b.fields["caller"].(map[string]any)
			busy[str(caller["tool_id"])] = true
			switch {
			case t.role == "user" && b.kind == "tool_result":
			case t.role == "user":
				end()
			case isServedCall(b.kind):
				open, made = append(open, b), append(made, b)
			case isServedResult(b.kind) && !slices.ContainsFunc(made, same):
				k.add("orphan-server-result", b.path, b.id, "type", b.kind)
			case isServedResult(b.kind):
				open = slices.DeleteFunc(open, same)
				delete(busy, b.id)
			case b.kind == "tool_use":
				running[str(caller["tool_id"])] = true
			}
		}
		if t.system {
			end()
		}
	}
	if !isServerBlock(last) && last != "tool_result" {
		end()
	}
	if named, _ := container.(map[string]any); str(container)+str(named["id"]) == "" {
		for _, b := range open {
			if busy[b.id] {
				k.add("container-missing", b.path, b.id)
			}
		}
	}
}

// references checks that results, and messages that add or remove tools, refer to tools of
// the request, or to those that such a message defines.
func (k *anthropicChecker) references(tools any, msgs []map[string]any) {
	list, _ := tools.([]any)
	names := map[string]bool{}
	for _, t := range list {
		t, _ := t.(map[string]any)
		if isToolset(str(t["type"])) {
			return
		}
		names[str(t["name"])] = true
	}
	if len(list) == 0 {
		return
	}
	for i, m := range msgs {
		blocks, _ := m["content"].([]any)
		for j, b := range blocks {
			b, _ := b.(map[string]any)
			if kind := str(b["type"]); str(m["role"]) != "system" || kind != "tool_addition" && kind != "tool_removal" {
				continue
			}
			tool, _ := b["tool"].(map[string]any)
			name, kind := str(tool["name"]), str(tool["type"])
			if kind == toolReference && !names[name] {
				k.add("tool-reference/change", atIndex(atIndex("messages", i)+".content", j), "", "name", name)
			} else if !strings.HasSuffix(kind, "_reference") {
				names[name] = true
			}
		}
	}
	check := func(path string, found any) {
		list, _ := found.([]any)
		for i, r := range list {
			r, _ := r.(map[string]any)
			if name := str(r["tool_name"]); str(r["type"]) == "tool_reference" && !names[name] {
				k.add("tool-reference", atIndex(path, i), "", "name", name)
			}
		}
	}
	for _, t := range k.turns {
		for _, b := range t.blocks {
			switch b.kind {
			case "tool_result":
				check(b.path+".content", b.fields["content"])
			case toolSearchResult:
				content, _ := b.fields["content"].(map[string]any)
				check(b.path+".content.tool_references", content["tool_references"])
			}
		}
	}
}

// thinking checks that the current assistant turn begins with thinking.
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
		k.add("thinking-first", first.path, first.id, "type", first.kind)
	}
}

// last checks how the request ends.
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
	if isThinking(end.kind) {
		k.add("thinking-last", end.path, "", "index", strconv.Itoa(n))
		return
	}
	text := str(end.fields["text"])
	if end.kind == "text" && !isBlank(text) && text != strings.TrimRightFunc(text, unicode.IsSpace) {
		k.add("trailing-space", end.path, "")
	}
	if userLast && !isServerBlock(end.kind) {
		k.add("last-role", path, "")
	}
}

// CheckHistory implements [HistoryChecker].
func (f Anthropic) CheckHistory(requests ...[]byte) []Finding {
	return checkHistory(requests, historyShape{
		format: FormatAnthropic, model: "model", system: "system", messages: "messages", content: "content",
		seal: anthropicSeal, checks: func(model string) bool { return f.Seals.of(cmp.Or(model, f.Model)) != SealsUnchecked },
	})
}

func anthropicSeal(block any) (id string, ok bool) {
	m, _ := block.(map[string]any)
	switch str(m["type"]) {
	case "thinking":
		return str(m["signature"]), true
	case "redacted_thinking":
		return str(m["data"]), true
	}
	return "", false
}

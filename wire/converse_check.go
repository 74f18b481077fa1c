package wire

import (
	"cmp"
	"fmt"
	"strings"
)

// Check returns the reasons why Bedrock would refuse a request. The rules:
//
//   - for the body: json, shape, tool-config
//   - for messages: messages-empty, role, user-first, alternation, last-role, content-empty,
//     blank-text, block-role
//   - for calls and results: id-pattern, name-pattern, input, unanswered-call,
//     unanswered-server-call, duplicate-call, orphan-result, duplicate-result, results-first,
//     results-alone, error-empty, status, result-json
//   - for reasoning: reasoning-unsigned, reasoning-last
//   - for cache marks: cache-count, cache-order
//   - for media and documents: media-count, media-bytes, image-pixels, image-type,
//     image-unreadable, document-name, document-duplicate, document-text, document-count
//
// results-alone applies only if ResultsAlone is set. tool-config applies only if the
// request has fields other than system and messages, such as modelId. The caller must
// still complete the body that [Request.Body] returns. user-first does not apply if Model,
// or the modelId of the request, is a model of Anthropic or Qwen. The other rules are
// those of the strictest models. Some models accept an assistant message as the last
// message, or two consecutive messages of one role.
func (f Converse) Check(request []byte) []Finding {
	k := converseChecker{checker: checker{format: FormatConverse}, f: f, documents: map[string]bool{}}
	all := k.body(request)
	if all == nil {
		return k.list
	}
	if config, _ := all["toolConfig"].(map[string]any); config != nil {
		tools, _ := config["tools"].([]any)
		for i, t := range tools {
			if t, _ := t.(map[string]any); t["cachePoint"] != nil {
				k.point(atIndex("toolConfig.tools", i)+".cachePoint", t["cachePoint"])
			}
		}
	}
	model := cmp.Or(str(all["modelId"]), f.Model)
	k.anyFirst = strings.Contains(model, "anthropic.") || strings.Contains(model, "qwen.")
	if system := all["system"]; system != nil {
		list, ok := system.([]any)
		if !ok {
			k.shape("system", "an array")
		}
		for _, b := range k.blocks("system", "SystemContentBlock", list) {
			k.text(b)
		}
	}
	msgs := k.objects("messages", all["messages"])
	if msgs == nil {
		return k.list
	}
	if len(msgs) == 0 {
		k.add("messages-empty", "messages", "")
	}
	for i, m := range msgs {
		k.message(i, m, i == len(msgs)-1)
	}
	k.reportOpen()
	k.count(&k.checker)
	complete := false
	for key, v := range all {
		complete = complete || key != "system" && key != "messages" && v != nil
	}
	if complete && k.tools && all["toolConfig"] == nil {
		k.add("tool-config", "toolConfig", "")
	}
	k.sizes(request, mediaIn("messages", all["messages"], converseMedium), converseSizes(model))
	return k.list
}

// A converseChecker checks the messages in order.
type converseChecker struct {
	checker
	f         Converse
	prev      string          // role of the previous message
	open      []openCall      // calls of the previous message that have no result yet
	called    int             // index of the previous message
	documents map[string]bool // names of the documents so far
	tools     bool            // there were calls or results
	anyFirst  bool            // the first message may be from the assistant
	markChecker
}

// point checks a cachePoint.
func (k *converseChecker) point(path string, v any) {
	point, _ := v.(map[string]any)
	k.look(&k.checker, path, point["ttl"])
}

// An openCall is a call that has no result yet.
type openCall struct{ id, path string }

// A checkedBlock is one element of a content: an object with one field.
type checkedBlock struct {
	path, kind string
	owner      string // Bedrock's name for this type of block
	value      any
}

func (b *checkedBlock) fields() map[string]any { m, _ := b.value.(map[string]any); return m }
func (b *checkedBlock) valuePath() string      { return b.path + "." + b.kind }

func (k *converseChecker) blocks(path, owner string, list []any) []checkedBlock {
	blocks := make([]checkedBlock, 0, len(list))
	for i, e := range list {
		b := checkedBlock{path: atIndex(path, i), owner: owner}
		all, _ := e.(map[string]any)
		n := 0
		for key, value := range all {
			if value != nil {
				b.kind, b.value = key, value
				n++
			}
		}
		if n != 1 {
			k.shape(b.path, "an object with one field")
			continue
		}
		if b.kind == "cachePoint" {
			k.point(b.valuePath(), b.value)
		}
		blocks = append(blocks, b)
	}
	return blocks
}

func (k *converseChecker) message(i int, m map[string]any, last bool) {
	path := atIndex("messages", i)
	role := str(m["role"])
	if role != "user" && role != "assistant" {
		k.add("role", path+".role", "", "role", role)
	}
	switch {
	case role == "assistant" && i == 0 && !k.anyFirst:
		k.add("user-first", path, "")
	case role != "" && role == k.prev:
		k.add("alternation", path, "")
	}
	k.prev = role

	list, isList := m["content"].([]any)
	switch {
	case len(list) > 0:
	case isList, m["content"] == nil:
		k.add("content-empty", path+".content", "", "message", dotted(path))
	default:
		k.shape(path+".content", "an array")
		k.open = nil // its results are not known
		return
	}
	blocks := k.blocks(path+".content", "ContentBlock", list)
	for _, b := range blocks {
		k.text(b)
		if b.kind == "document" {
			k.document(b)
		}
	}
	if role == "assistant" {
		k.reportOpen()
		k.called = i
		k.assistant(path, blocks)
		if last && len(k.open) == 0 {
			k.add("last-role", path, "")
		}
		return
	}
	k.user(path, blocks)
}

// text checks a text block. Other blocks are accepted.
func (k *converseChecker) text(b checkedBlock) {
	if b.kind != "text" {
		return
	}
	text, ok := b.value.(string)
	switch {
	case !ok:
		k.shape(b.valuePath(), "a string")
	case isBlank(text):
		k.add("blank-text", b.valuePath(), "", "owner", b.owner, "block", dotted(b.path))
	}
}

func (k *converseChecker) document(b checkedBlock) {
	name, ok := b.fields()["name"].(string)
	path := b.valuePath() + ".name"
	switch {
	case b.fields() == nil:
		k.shape(b.valuePath(), "an object")
		return
	case !ok:
		k.shape(path, "a string")
		return
	case !validDocumentName(name):
		k.add("document-name", path, "")
	case k.documents[name]:
		k.add("document-duplicate", path, "")
	}
	k.documents[name] = true
}

func (k *converseChecker) user(path string, blocks []checkedBlock) {
	answered := make(map[string]bool, len(k.open))
	for _, o := range k.open {
		answered[o.id] = false
	}
	results, said, late := 0, -1, -1
	text, document := false, -1
	for i, b := range blocks {
		switch b.kind {
		case "toolResult":
			results++
			if said >= 0 && late < 0 {
				late = i
			}
			k.result(path, b, answered)
			continue
		case "cachePoint":
			continue
		case "toolUse", "reasoningContent":
			k.blockRole(b, "User")
		case "text", "guardContent":
			text = true
		case "document":
			if document < 0 {
				document = i
			}
		}
		if said < 0 {
			said = i
		}
	}
	if document >= 0 && !text {
		k.add("document-text", blocks[document].path, "")
	}
	switch {
	case k.f.ResultsAlone && results > 0 && said >= 0:
		k.add("results-alone", blocks[said].path, "")
	case late >= 0:
		k.add("results-first", blocks[late].path, "")
	}
	open := k.open[:0]
	for _, o := range k.open {
		if !answered[o.id] {
			open = append(open, o)
		}
	}
	k.open = open
	k.reportOpen()
}

// reportOpen reports the calls that have no result.
func (k *converseChecker) reportOpen() {
	for _, o := range k.open {
		k.add("unanswered-call", o.path, o.id, "next", dotted(atIndex("messages", k.called+1)+".content"))
	}
	k.open = nil
}

// blockRole adds the finding that a block is in a message of the wrong
// role.
func (k *converseChecker) blockRole(b checkedBlock, role string) {
	k.add("block-role", b.path, str(b.fields()["toolUseId"]), "role", role, "kind", b.kind)
}

func (k *converseChecker) result(message string, b checkedBlock, answered map[string]bool) {
	k.tools = true
	all := b.fields()
	if all == nil {
		k.shape(b.valuePath(), "an object")
		return
	}
	id := str(all["toolUseId"])
	switch done, known := answered[id]; {
	case known && !done:
		answered[id] = true
	case known:
		k.add("duplicate-result", b.path, id, "content", dotted(message)+".content")
	default:
		k.add("orphan-result", b.path, id, "content", dotted(message)+".content")
	}
	status, hasStatus := all["status"]
	if hasStatus && status != nil && status != "success" && status != "error" {
		k.add("status", b.valuePath()+".status", id, "status", fmt.Sprint(status))
	}
	list, ok := all["content"].([]any)
	if !ok {
		k.shape(b.valuePath()+".content", "an array")
	}
	blocks := k.blocks(b.valuePath()+".content", "ToolResultContentBlock", list)
	if ok && len(list) == 0 && status == "error" {
		k.add("error-empty", b.valuePath()+".content", id, "block", dotted(b.path))
	}
	for _, inner := range blocks {
		_, isString := inner.value.(string)
		switch {
		case inner.kind == "text" && !isString:
			k.shape(inner.valuePath(), "a string")
		case inner.kind == "document":
			k.document(inner)
		case inner.kind == "json" && inner.fields() == nil:
			k.add("result-json", inner.valuePath(), id)
		}
	}
}

func (k *converseChecker) assistant(path string, blocks []checkedBlock) {
	tools := make([]converseTool, len(blocks))
	for i, b := range blocks {
		all := b.fields()
		tools[i] = converseTool{use: b.kind == "toolUse", result: b.kind == "toolResult", id: str(all["toolUseId"]),
			server: b.kind == "toolUse" && all["type"] == serverToolUse}
		k.tools = k.tools || tools[i].use || tools[i].result
	}
	for _, i := range serverTools(tools) {
		if tools[i].result {
			k.blockRole(blocks[i], "Assistant")
		} else {
			k.add("unanswered-server-call", blocks[i].path, tools[i].id)
		}
	}
	seen := map[string]bool{}
	for i, b := range blocks {
		switch {
		case tools[i].use && !tools[i].server:
			k.call(path, b, seen)
		case b.kind == "reasoningContent":
			k.reasoning(path, b, i == len(blocks)-1)
		}
	}
}

func (k *converseChecker) call(message string, b checkedBlock, seen map[string]bool) {
	all := b.fields()
	if all == nil {
		k.shape(b.valuePath(), "an object")
		return
	}
	id := str(all["toolUseId"])
	path := b.valuePath()
	switch {
	case !converseIDs.valid(id):
		k.add("id-pattern", path+".toolUseId", id)
	case seen[id]:
		k.add("duplicate-call", path+".toolUseId", id, "content", dotted(message)+".content")
	}
	if !seen[id] {
		seen[id] = true
		k.open = append(k.open, openCall{id, b.path})
	}
	if name := str(all["name"]); !openAIToolNames(name) {
		k.add("name-pattern", path+".name", id, "name", name)
	}
	if _, ok := all["input"].(map[string]any); !ok {
		k.add("input", path+".input", id)
	}
}

func (k *converseChecker) reasoning(message string, b checkedBlock, last bool) {
	all := b.fields()
	text, hasText := all["reasoningText"].(map[string]any)
	redacted := all["redactedContent"]
	switch {
	case all == nil:
		k.shape(b.valuePath(), "an object")
		return
	case all["reasoningText"] != nil && redacted != nil:
		k.shape(b.valuePath(), "an object with one field")
	case all["reasoningText"] != nil && !hasText:
		k.shape(b.valuePath()+".reasoningText", "an object")
	case hasText && str(text["signature"]) == "":
		k.add("reasoning-unsigned", b.valuePath()+".reasoningText.signature", "")
	}
	if last && (hasText || redacted != nil) {
		k.add("reasoning-last", b.path, "", "message", dotted(message))
	}
}

// CheckHistory implements [HistoryChecker].
func (f Converse) CheckHistory(requests ...[]byte) []Finding {
	return checkHistory(requests, historyShape{
		format: FormatConverse, model: "modelId", system: "system", messages: "messages", content: "content",
		seal: converseSeal, checks: func(model string) bool { return f.Seals.of(cmp.Or(model, f.Model)) != SealsUnchecked },
	})
}

func converseSeal(block any) (id string, ok bool) {
	m, _ := block.(map[string]any)
	reasoning, ok := m["reasoningContent"].(map[string]any)
	text, _ := reasoning["reasoningText"].(map[string]any)
	return cmp.Or(str(text["signature"]), str(reasoning["redactedContent"])), ok
}

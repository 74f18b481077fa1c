package wire

import (
	"fmt"
	"regexp"
	"strings"
)

// Check says why Bedrock would refuse a request. The rules by name: json,
// shape, messages-empty, role, user-first, alternation, last-role,
// content-empty, blank-text, block-role, unanswered-call, orphan-result,
// duplicate-call, duplicate-result, results-first, results-alone, error-empty,
// status, id-pattern, name-pattern, input, result-json, reasoning-unsigned,
// reasoning-last, document-name, document-duplicate, document-text,
// tool-config.
//
// The rule tool-config asks for toolConfig only of a request with other fields
// beside system and messages, such as inferenceConfig or modelId: what
// [Request.Body] returns is not yet whole. Check asks for results-alone only
// where ResultsAlone is set. The other rules hold for every model alike, and
// some models are less strict: they take an assistant message first or last, or
// two messages of one role in a row.
func (f Converse) Check(request []byte) []Finding {
	var c checker
	all := c.body(request)
	if all == nil {
		return c.list
	}
	k := converseChecker{checker: &c, f: f, documents: map[string]bool{}}
	if system := all["system"]; system != nil {
		list, ok := system.([]any)
		if !ok {
			c.shape("system", "an array")
		}
		for _, b := range k.blocks("system", "SystemContentBlock", list) {
			k.text(b)
		}
	}
	msgs := c.objects("messages", all["messages"])
	if msgs == nil {
		return c.list
	}
	if len(msgs) == 0 {
		c.add(Finding{Rule: "messages-empty", Path: "messages", Error: "A conversation must start with a user message. Try again with a conversation that starts with a user message.", Fix: "send a message"})
	}
	for i, m := range msgs {
		k.message(i, m, i == len(msgs)-1)
	}
	k.answered()
	whole := false
	for key, v := range all {
		whole = whole || key != "system" && key != "messages" && v != nil
	}
	if whole && k.tools && all["toolConfig"] == nil {
		c.add(Finding{Rule: "tool-config", Path: "toolConfig", Error: "The toolConfig field must be defined when using toolUse and toolResult content blocks.", Fix: "send the definitions of the tools, also where no more calls are wanted"})
	}
	return c.list
}

// A converseChecker walks over the messages.
type converseChecker struct {
	*checker
	f         Converse
	prev      string          // role of the message before
	open      []openCall      // of the message before, without a result yet
	called    int             // index of that message
	documents map[string]bool // names that came
	tools     bool            // calls or results came
}

// dotted is a path as Bedrock writes it.
func dotted(path string) string { return strings.NewReplacer("[", ".", "]", "").Replace(path) }

// A checkedBlock is one element of a content: an object of one field.
type checkedBlock struct {
	path, kind string
	owner      string // what Bedrock calls the block
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
			k.shape(b.path, "an object of one field")
			continue
		}
		blocks = append(blocks, b)
	}
	return blocks
}

func (k *converseChecker) message(i int, m map[string]any, last bool) {
	path := atIndex("messages", i)
	role := str(m["role"])
	if role != "user" && role != "assistant" {
		k.add(Finding{Rule: "role", Path: path + ".role", Error: fmt.Sprintf("Value '%s' at '%s.role' failed to satisfy constraint: Member must satisfy enum value set: [user, assistant]", role, dotted(path)), Fix: "use user or assistant; system text has a field of its own"})
	}
	switch {
	case role == "assistant" && i == 0:
		k.add(Finding{Rule: "user-first", Path: path, Error: "A conversation must start with a user message. Try again with a conversation that starts with a user message.", Fix: "begin with a user message"})
	case role != "" && role == k.prev:
		k.add(Finding{Rule: "alternation", Path: path, Error: "A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.", Fix: "make neighbours of one role one message"})
	}
	k.prev = role

	list, isList := m["content"].([]any)
	switch {
	case len(list) > 0:
	case isList, m["content"] == nil:
		k.add(Finding{Rule: "content-empty", Path: path + ".content", Error: "The content field in the Message object at " + dotted(path) + " is empty. Add a ContentBlock object to the content field and try again.", Fix: "leave the message out"})
	default:
		k.shape(path+".content", "an array")
		k.open = nil // nobody knows what is in it
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
		k.answered()
		k.called = i
		k.assistant(path, blocks)
		if last && len(k.open) == 0 {
			k.add(Finding{Rule: "last-role", Path: path, Error: "This model does not support assistant message prefill. The conversation must end with a user message.", Fix: "end with a user message or results"})
		}
		return
	}
	k.user(path, blocks)
}

// text looks at a text block.
func (k *converseChecker) text(b checkedBlock) {
	if b.kind != "text" {
		return
	}
	text, ok := b.value.(string)
	switch {
	case !ok:
		k.shape(b.valuePath(), "a string")
	case isBlank(text):
		k.add(Finding{Rule: "blank-text", Path: b.valuePath(), Error: "The text field in the " + b.owner + " object at " + dotted(b.path) + " is blank. Add text to the text field, and try again.", Fix: "leave the block out"})
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
		k.add(Finding{Rule: "document-name", Path: path, Error: "The document file name can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, and square brackets. The name can't contain more than one consecutive whitespace character.", Fix: "give it a neutral name, with no extension"})
	case k.documents[name]:
		k.add(Finding{Rule: "document-duplicate", Path: path, Error: "Messages can't contain duplicate document names. Rename the document and retry your request.", Fix: "give each document of the request another name"})
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
			k.blockRole(b, "User messages cannot contain "+b.kind+" content.")
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
		k.add(Finding{Rule: "document-text", Path: blocks[document].path, Error: "A text block must be included when using documents.", Fix: "put a text block beside it"})
	}
	switch {
	case k.f.ResultsAlone && results > 0 && said >= 0:
		k.add(Finding{Rule: "results-alone", Path: blocks[said].path, Error: "Conversation blocks and tool use blocks cannot be provided in the same turn.", Fix: "send the rest in a user message of its own, behind an assistant message"})
	case late >= 0:
		k.add(Finding{Rule: "results-first", Path: blocks[late].path, Error: "Did not find the toolResult blocks at the beginning of this message. Messages following toolUse blocks must begin with a matching number of toolResult blocks.", Fix: "put results before all else in the message"})
	}
	open := k.open[:0]
	for _, o := range k.open {
		if !answered[o.id] {
			open = append(open, o)
		}
	}
	k.open = open
	k.answered()
}

// answered reports the calls that stay without a result.
func (k *converseChecker) answered() {
	for _, o := range k.open {
		k.add(Finding{Rule: "unanswered-call", Path: o.path, ID: o.id, Error: fmt.Sprintf("Expected toolResult blocks at messages.%d.content for the following Ids: %s", k.called+1, o.id), Fix: "send a result for it in the next message, a user message"})
	}
	k.open = nil
}

func (k *converseChecker) blockRole(b checkedBlock, literal string) {
	k.add(Finding{Rule: "block-role", Path: b.path, ID: str(b.fields()["toolUseId"]), Error: literal, Fix: "calls and reasoning stand in assistant messages, results in user messages"})
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
		k.add(Finding{Rule: "duplicate-result", Path: b.path, ID: id, Error: "The toolResult blocks at " + dotted(message) + ".content contain duplicate Ids: " + id, Fix: "send one result for each call"})
	default:
		k.add(Finding{Rule: "orphan-result", Path: b.path, ID: id, Error: "The number of toolResult blocks at " + dotted(message) + ".content exceeds the number of toolUse blocks of previous turn.", Fix: "leave the result out, or send the assistant message with its call directly before it"})
	}
	status, hasStatus := all["status"]
	if hasStatus && status != nil && status != "success" && status != "error" {
		k.add(Finding{Rule: "status", Path: b.valuePath() + ".status", ID: id, Error: fmt.Sprintf("Value '%v' at '%s.toolResult.status' failed to satisfy constraint: Member must satisfy enum value set: [success, error]", status, dotted(b.path)), Fix: "use success or error"})
	}
	list, ok := all["content"].([]any)
	if !ok {
		k.shape(b.valuePath()+".content", "an array")
	}
	blocks := k.blocks(b.valuePath()+".content", "ToolResultContentBlock", list)
	if ok && len(list) == 0 && status == "error" {
		k.add(Finding{Rule: "error-empty", Path: b.valuePath() + ".content", ID: id, Error: "The content field at " + dotted(b.path) + ".toolResult cannot be empty when status value is error.", Fix: "say what went wrong, in a few words"})
	}
	for _, inner := range blocks {
		_, isString := inner.value.(string)
		switch {
		case inner.kind == "text" && !isString:
			k.shape(inner.valuePath(), "a string")
		case inner.kind == "document":
			k.document(inner)
		case inner.kind == "json" && inner.fields() == nil:
			k.add(Finding{Rule: "result-json", Path: inner.valuePath(), ID: id, Error: "The format of the value at " + dotted(inner.path) + ".json is invalid. Provide a json object for the field and try again.", Fix: "send an object, or text"})
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
	if i := serverTools(tools); i >= 0 {
		k.blockRole(blocks[i], "Assistant messages cannot contain toolResult content.")
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
		k.add(Finding{Rule: "id-pattern", Path: path + ".toolUseId", ID: id, Error: fmt.Sprintf("Value '%s' at '%s.toolUseId' failed to satisfy constraint: Member must have length less than or equal to 64 and satisfy regular expression pattern: [a-zA-Z0-9_.:-]+", id, dotted(path)), Fix: "use letters, digits and _ . : - in an id, at most 64, and the same in its result"})
	case seen[id]:
		k.add(Finding{Rule: "duplicate-call", Path: path + ".toolUseId", ID: id, Error: "The toolUse blocks at " + dotted(message) + ".content contain duplicate Ids: " + id, Fix: "give each call an id of its own"})
	}
	if !seen[id] {
		seen[id] = true
		k.open = append(k.open, openCall{id, b.path})
	}
	if name := str(all["name"]); !converseToolName.MatchString(name) {
		k.add(Finding{Rule: "name-pattern", Path: path + ".name", ID: id, Error: fmt.Sprintf("Value '%s' at '%s.name' failed to satisfy constraint: Member must have length less than or equal to 64 and satisfy regular expression pattern: [a-zA-Z0-9_-]+", name, dotted(path)), Fix: "use letters, digits, _ and - in a tool's name, at most 64"})
	}
	if _, ok := all["input"].(map[string]any); !ok {
		k.add(Finding{Rule: "input", Path: path + ".input", ID: id, Error: "The format of the value at " + dotted(path) + ".input is invalid. Provide a json object for the field and try again.", Fix: "send the arguments as an object; {} for none"})
	}
}

var converseToolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func (k *converseChecker) reasoning(message string, b checkedBlock, last bool) {
	all := b.fields()
	text, hasText := all["reasoningText"].(map[string]any)
	redacted := all["redactedContent"]
	switch {
	case all == nil:
		k.shape(b.valuePath(), "an object")
		return
	case all["reasoningText"] != nil && redacted != nil:
		k.shape(b.valuePath(), "an object of one field")
	case all["reasoningText"] != nil && !hasText:
		k.shape(b.valuePath()+".reasoningText", "an object")
	case hasText && str(text["signature"]) == "":
		k.add(Finding{Rule: "reasoning-unsigned", Path: b.valuePath() + ".reasoningText.signature", Error: "User messages cannot contain reasoning content. Please remove the reasoning content and try again.", Fix: "leave reasoning out that came without a signature"})
	}
	if last && (hasText || redacted != nil) {
		k.add(Finding{Rule: "reasoning-last", Path: b.path, Error: dotted(message) + ": The final block in an assistant message cannot be `thinking`.", Fix: "leave reasoning out that nothing follows"})
	}
}

// An openCall is one that waits for its result.
type openCall struct{ id, path string }

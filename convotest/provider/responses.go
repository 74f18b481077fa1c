package provider

import (
	"fmt"
	"strings"
)

// responses is the Responses API. It keeps no answers: a request holds all items.
type responses struct{ openAI }

func (responses) tooLong(int, int) *problem {
	return &problem{
		status: 400, kind: "invalid_request_error", code: "context_length_exceeded", param: "input",
		text: "Your input exceeds the context window of this model. Please adjust your input and try again.",
	}
}

func (responses) parts(c *call) (parts []part) {
	for _, t := range list(c.all["tools"]) {
		parts = append(parts, newPart("tools", t))
	}
	if text := str(c.all["instructions"]); text != "" {
		parts = append(parts, newPart("instructions", text))
	}
	if text := str(c.all["input"]); text != "" {
		parts = append(parts, newPart("user", text))
	}
	for _, item := range list(c.all["input"]) {
		parts = append(parts, newPart("", item))
	}
	return parts
}

// unverified is the text of the error for encrypted content that cannot be read.
const unverified = "The encrypted content for item %s could not be verified. Reason: Encrypted content could not be decrypted or parsed."

// A responsesCheck checks the items.
type responsesCheck struct {
	openAICheck
	stores bool
	key    int            // of the encrypted content
	made   map[string]int // how many messages came before a call, by type of its result and call_id; answered ones are -1
	order  []string       // the keys of made
	ids    map[string]bool
	think  string // the id or the path of reasoning that waits for its item
	turns  int    // how many messages there were
}

// responsesOutputs are the types of the outputs of other calls than those of functions, by
// the type of the call.
var responsesOutputs = map[string]string{
	"program": "program_output", "shell_call": "shell_call_output", "apply_patch_call": "apply_patch_call_output", "computer_call": "computer_call_output",
}

func (responses) check(c *call) *problem {
	k := responsesCheck{stores: c.all["store"] != false, key: c.s.key(), made: map[string]int{}, ids: map[string]bool{}}
	if str(c.all["model"]) == "" {
		k.missing("model")
	}
	if id := str(c.all["previous_response_id"]); id != "" {
		k.add("previous_response_not_found", "previous_response_id", "Previous response with id '%s' not found.", id)
	}
	k.tools(c.all, func(t object) object { return t }, "")
	input, isList := c.all["input"].([]any)
	if text, isText := c.all["input"].(string); !isList && !isText && c.all["input"] != nil {
		k.add("invalid_type", "input", "Invalid type for 'input': expected one of a string or array of objects, but got %s instead.", kindOf(c.all["input"]))
	} else if len(input) == 0 && text == "" {
		k.add("missing_required_parameter", "", "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided.")
	}
	for i, item := range input {
		k.item(fmt.Sprintf("input[%d]", i), obj(item))
	}
	k.led("")
	for _, key := range k.order {
		kind, id, _ := strings.Cut(key, " ")
		if waits := kind == "program_output" && k.made[key] == k.turns; k.made[key] >= 0 && !waits {
			k.add("", "input", "No tool output found for %s %s.", strings.ReplaceAll(strings.TrimSuffix(kind, "_output"), "_", " "), id)
		}
	}
	return k.first
}

// led checks that reasoning is followed by an item of the model. The kind is that of the
// next item, and empty at the end.
func (k *responsesCheck) led(kind string) {
	if k.think != "" && kind == "" {
		k.add("", "input", "Item '%s' of type 'reasoning' was provided without its required following item.", k.think)
	}
	k.think = ""
}

func (k *responsesCheck) item(path string, item object) {
	kind := str(item["type"])
	if kind == "" && item["role"] != nil {
		kind = "message"
	}
	id := str(item["id"])
	switch {
	case kind == "message":
		k.turns++
		role := str(item["role"])
		if k.message(path, role, item); role == "assistant" {
			k.led(kind)
		} else {
			k.led("")
		}
	case kind == "reasoning":
		k.reasoning(path, id, item)
	case kind == "function_call" || kind == "custom_tool_call":
		k.led(kind)
		k.call(path, kind, item)
	case kind == "function_call_output" || kind == "custom_tool_call_output":
		k.led("")
		k.output(path, kind, item)
	case kind == "compaction":
		k.led("")
		k.compaction(path, id, item)
	case kind == "":
		k.missing(path + ".type")
	case responsesOutputs[kind] != "":
		k.led(kind)
		k.await(responsesOutputs[kind], str(item["call_id"]))
	case isOutput(kind):
		k.led(kind)
		k.answered(kind, str(item["call_id"]))
	default:
		k.led(kind)
	}
	if id != "" && k.ids[id] {
		k.add("", "input", "Duplicate item found with id %s. Remove duplicate items from your input and try again.", id)
	}
	k.ids[id] = true
	prefix := map[string]string{"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc", "compaction": "cmp"}[kind]
	if id != "" && !strings.HasPrefix(id, prefix) {
		k.add("invalid_value", path+".id", "Invalid '%s.id': '%s'. Expected an ID that begins with '%s'.", path, id, prefix)
	}
}

// responsesContent are the types of content by role.
func responsesContent(role string) string {
	if role == "assistant" {
		return "'output_text' and 'refusal'"
	}
	return "'input_text', 'input_image', 'output_text', 'refusal', 'input_file', 'computer_screenshot', and 'summary_text'"
}

func (k *responsesCheck) message(path, role string, item object) {
	switch role {
	case "user", "system", "developer", "assistant":
	default:
		k.value(path+".role", role, "'assistant', 'system', 'developer', and 'user'")
	}
	switch content := item["content"].(type) {
	case string:
	case []any:
		for i, p := range content {
			path, kind := fmt.Sprintf("%s.content[%d]", path, i), str(obj(p)["type"])
			switch {
			case !strings.Contains(responsesContent(role), "'"+kind+"'"):
				k.value(path, kind, responsesContent(role))
			case strings.HasSuffix(kind, "_text"):
				k.text(path+".text", obj(p)["text"])
			default:
				k.picture(obj(p))
			}
		}
	case nil:
		k.missing(path + ".content")
	default:
		k.add("invalid_type", path+".content", "Invalid type for '%s.content': expected one of an array of objects or string, but got %s instead.", path, kindOf(content))
	}
}

// picture checks an image.
func (k *responsesCheck) picture(p object) {
	k.image(str(p["image_url"]), "invalid_value", "input", "The image data you provided does not represent a valid image. Please check your input and try again with one of the supported image formats: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'].")
}

// reasoning checks that reasoning can be read: its text is encrypted in the item, by this
// package, since no answers are kept, and with the key of now; see Fault.
func (k *responsesCheck) reasoning(path, id string, item object) {
	if _, ok := item["summary"].([]any); !ok {
		k.missing(path + ".summary")
	}
	encrypted := str(item["encrypted_content"])
	if s, ok := readSeal(encrypted); encrypted != "" && (!ok || s.tools != keySum(k.key)) {
		k.add("invalid_encrypted_content", "", unverified, id)
	}
	if encrypted == "" {
		text := fmt.Sprintf("Item with id '%s' not found.", id)
		if !k.stores {
			text += " Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."
		}
		k.add("", "input", "%s", text)
	}
	if k.think = id; id == "" {
		k.think = path
	}
}

func (k *responsesCheck) call(path, kind string, item object) {
	id := str(item["call_id"])
	k.text(path+".call_id", item["call_id"])
	k.limit(path+".call_id", id, 64)
	k.name(path+".name", str(item["name"]))
	if kind == "function_call" {
		k.text(path+".arguments", item["arguments"])
		k.limit(path+".arguments", str(item["arguments"]), maxArguments)
	} else {
		k.text(path+".input", item["input"])
		k.limit(path+".input", str(item["input"]), maxArguments)
	}
	k.await(kind+"_output", id)
}

// await records that a call waits for an output. That of a program may come in a later
// answer, as long as the turn goes on.
func (k *responsesCheck) await(output, id string) {
	key := output + " " + id
	k.made[key] = k.turns
	k.order = append(k.order, key)
}

// isOutput reports whether a type is that of the output of a call.
func isOutput(kind string) bool {
	for _, output := range responsesOutputs {
		if kind == output {
			return true
		}
	}
	return false
}

func (k *responsesCheck) output(path, kind string, item object) {
	id := str(item["call_id"])
	k.text(path+".call_id", item["call_id"])
	parts, isList := item["output"].([]any)
	if !isList {
		k.text(path+".output", item["output"])
	}
	for _, p := range parts {
		k.picture(obj(p))
	}
	k.answered(kind, id)
}

// answered records that an output answers a call.
func (k *responsesCheck) answered(kind, id string) {
	key := kind + " " + id
	if _, ok := k.made[key]; !ok {
		k.add("", "input", "No tool call found for %s with call_id %s.", strings.ReplaceAll(kind, "_", " "), id)
		return
	}
	k.made[key] = -1
}

// keySum returns what a key leaves in what it has encrypted.
func keySum(key int) (sum [sealSize]byte) {
	if key > 0 {
		sum = sealOf(key)
	}
	return sum
}

// items returns the items of an answer.
func (responses) items(c *call, a Answer) []any {
	items := []any{}
	for i, b := range a.Blocks {
		switch b := b.(type) {
		case Text:
			content := object{"type": "output_text", "text": string(b), "annotations": []any{}}
			items = append(items, object{"id": c.newID("msg_", i), "type": "message", "status": "completed", "role": "assistant", "content": []any{content}})
		case Thinking:
			item := object{"id": c.newID("rs_", i), "type": "reasoning", "summary": []any{object{"type": "summary_text", "text": string(b)}}}
			for _, include := range list(c.all["include"]) {
				if include == "reasoning.encrypted_content" {
					item["encrypted_content"] = seal{model: sealOf(c.req.Model), tools: keySum(c.s.key()), messages: sealOf(item["id"])}.String()
				}
			}
			items = append(items, item)
		case Call:
			items = append(items, object{"id": c.newID("fc_", i), "type": "function_call", "status": "completed", "call_id": b.ID, "name": b.Name, "arguments": b.Arguments})
		case Served:
			if b.Input != "" {
				items = append(items, object{"id": c.newID("ws_", i), "type": b.Name + "_call", "status": "completed", "action": value(b.Input)})
			}
		case Raw:
			items = append(items, value(string(b)))
		}
	}
	return items
}

func (f responses) write(c *call, a Answer, u Usage) {
	answer := object{
		"id": fmt.Sprintf("resp_%d", c.id), "object": "response", "created_at": c.id, "model": c.req.Model, "status": "completed",
		"error": nil, "incomplete_details": nil, "output": f.items(c, a),
		"usage": object{
			"input_tokens": u.Input, "input_tokens_details": object{"cached_tokens": u.CacheRead},
			"output_tokens": u.Output, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": u.Input + u.Output,
		},
	}
	if a.Stop != "" {
		answer["status"], answer["incomplete_details"] = "incomplete", object{"reason": a.Stop}
	}
	if c.req.Stream {
		f.stream(c, answer)
		return
	}
	c.send(200, answer)
}

func (f responses) stream(c *call, answer object) {
	n := 0
	event := func(kind string, fields object) {
		fields = with(with(fields, "type", kind), "sequence_number", n)
		c.event(kind, fields)
		n++
	}
	begun := with(with(with(answer, "output", []any{}), "status", "in_progress"), "usage", nil)
	event("response.created", object{"response": begun})
	event("response.in_progress", object{"response": begun})
	for i, item := range list(answer["output"]) {
		item := obj(item)
		f.streamItem(i, item, event)
		event("response.output_item.done", object{"output_index": i, "item": item})
	}
	event("response."+str(answer["status"]), object{"response": answer})
}

// streamItem sends an item in pieces, up to its end.
func (responses) streamItem(i int, item object, event func(string, object)) {
	added := func(key string, v any) {
		event("response.output_item.added", object{"output_index": i, "item": with(with(item, key, v), "status", "in_progress")})
	}
	deltas := func(kind, text string, at object) {
		for _, piece := range pieces(text) {
			event("response."+kind+".delta", with(at, "delta", piece))
		}
	}
	at := object{"item_id": item["id"], "output_index": i}
	switch item["type"] {
	case "message":
		content := obj(list(item["content"])[0])
		added("content", []any{})
		at["content_index"] = 0
		event("response.content_part.added", with(at, "part", with(content, "text", "")))
		deltas("output_text", str(content["text"]), at)
		event("response.output_text.done", with(at, "text", content["text"]))
		event("response.content_part.done", with(at, "part", content))
	case "reasoning":
		summary := obj(list(item["summary"])[0])
		added("summary", []any{})
		at["summary_index"] = 0
		event("response.reasoning_summary_part.added", with(at, "part", with(summary, "text", "")))
		deltas("reasoning_summary_text", str(summary["text"]), at)
		event("response.reasoning_summary_text.done", with(at, "text", summary["text"]))
		event("response.reasoning_summary_part.done", with(at, "part", summary))
	case "function_call":
		added("arguments", "")
		deltas("function_call_arguments", str(item["arguments"]), at)
		event("response.function_call_arguments.done", with(at, "arguments", item["arguments"]))
	default:
		if item["status"] != nil {
			item = with(item, "status", "in_progress")
		}
		event("response.output_item.added", with(object{"output_index": i}, "item", item))
	}
}

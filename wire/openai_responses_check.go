package wire

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Check says why the provider would refuse a request. The rules by name: json,
// shape, input-empty, role, content-missing, content-type, media-type, item-id,
// duplicate-item, id-missing, id-length, name-pattern, arguments,
// orphan-result, unanswered-call, duplicate-call, duplicate-result,
// between-calls (where calls and results pair by position), reasoning-alone,
// reasoning-item, not-stored.
func (f OpenAIResponses) Check(request []byte) []Finding {
	var c checker
	all := c.body(request)
	if all == nil {
		return c.list
	}
	k := responsesChecker{checker: &c, f: f, stored: all["store"] != false}
	k.linked = all["previous_response_id"] != nil || all["conversation"] != nil
	k.byPosition = f.Plain || strings.HasPrefix(str(all["model"]), "deepseek")
	if _, ok := all["input"].(string); ok {
		return c.list
	}
	list, _ := all["input"].([]any)
	if len(list) == 0 && (all["input"] == nil || list != nil) {
		if !k.linked && all["prompt"] == nil {
			c.add(Finding{Rule: "input-empty", Path: "input", Error: `One of "input" or "previous_response_id" or 'prompt' or 'conversation_id' must be provided.`, Fix: "send a message"})
		}
		return c.list
	}
	items := c.objects("input", all["input"])
	for i, m := range items {
		k.item(atIndex("input", i), m)
	}
	k.ids(items)
	k.pairs(items)
	k.thoughts(items)
	return c.list
}

// A responsesChecker looks at items.
type responsesChecker struct {
	*checker
	f          OpenAIResponses
	stored     bool // responses are kept by the provider
	linked     bool // to items that are not in the request
	byPosition bool
}

// item looks at one item, whatever stands beside it.
func (k *responsesChecker) item(path string, m map[string]any) {
	kind, isString := m["type"].(string)
	switch {
	case m["type"] != nil && !isString, m["type"] == nil && m["role"] == nil:
		k.shape(path, "an item with a type")
		return
	case kind == "" || kind == "message":
		k.message(path, m)
		return
	}
	switch kind {
	case "function_call":
		k.callID(path, m)
		if name, ok := m["name"].(string); !ok || !responsesName.MatchString(name) {
			k.add(Finding{Rule: "name-pattern", Path: path + ".name", ID: str(m["call_id"]), Error: "Invalid '" + path + ".name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", Fix: "use letters, digits, _ and - in a tool's name"})
		}
		if _, ok := m["arguments"].(string); !ok {
			k.add(Finding{Rule: "arguments", Path: path + ".arguments", ID: str(m["call_id"]), Error: "Invalid type for '" + path + ".arguments': expected a string.", Fix: "send the arguments as a string of JSON"})
		}
		k.itemID(path, m, "fc")
	case "function_call_output":
		k.callID(path, m)
		switch out := m["output"].(type) {
		case string:
		case []any:
			for i, p := range k.objects(path+".output", out) {
				k.part(atIndex(path+".output", i), p, "result")
			}
		default:
			k.shape(path+".output", "a string or an array")
		}
	case "reasoning":
		if _, ok := m["summary"].([]any); !ok {
			k.shape(path+".summary", "an array")
		}
		if e := m["encrypted_content"]; e != nil && str(e) == "" {
			k.shape(path+".encrypted_content", "what the provider sent, or nothing")
		}
		if !isPlainThought(m) {
			k.itemID(path, m, "rs")
		}
	}
	if needsOutput(strings.TrimSuffix(kind, "_output")) && !strings.HasPrefix(kind, "function") {
		k.callID(path, m)
	}
}

var responsesName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)

func (k *responsesChecker) callID(path string, m map[string]any) {
	switch id := str(m["call_id"]); {
	case id == "":
		k.add(Finding{Rule: "id-missing", Path: path + ".call_id", Error: "Missing required parameter: '" + path + ".call_id'.", Fix: "give calls an id, and results that of their call"})
	case !openAIResponsesIDs.valid(id):
		k.add(Finding{Rule: "id-length", Path: path + ".call_id", ID: id, Error: fmt.Sprintf("Invalid '%s.call_id': string too long. Expected a string with maximum length 64, but got a string with length %d instead.", path, len(id)), Fix: "use an id of at most 64 characters, and the same in its result"})
	}
}

// itemID looks at the id of an item itself. No id is fine.
func (k *responsesChecker) itemID(path string, m map[string]any, prefix string) {
	switch id := str(m["id"]); {
	case m["id"] == nil:
	case !strings.HasPrefix(id, prefix):
		k.add(Finding{Rule: "item-id", Path: path + ".id", ID: id, Error: fmt.Sprintf("Invalid '%s.id': '%s'. Expected an ID that begins with '%s'.", path, id, prefix), Fix: "leave the id of the item out; call_id is what pairs"})
	case len(id) > 64:
		k.add(Finding{Rule: "item-id", Path: path + ".id", ID: id, Error: fmt.Sprintf("Invalid '%s.id': string too long. Expected a string with maximum length 64, but got a string with length %d instead.", path, len(id)), Fix: "leave the id of the item out"})
	}
}

func (k *responsesChecker) message(path string, m map[string]any) {
	role := str(m["role"])
	switch role {
	case "user", "system", "developer":
	case "assistant":
		k.itemID(path, m, "msg")
	default:
		k.add(Finding{Rule: "role", Path: path + ".role", Error: fmt.Sprintf("Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user'.", role), Fix: "use a role that the provider knows; results are items of the type function_call_output"})
		return
	}
	switch v := m["content"].(type) {
	case string:
	case nil:
		k.add(Finding{Rule: "content-missing", Path: path + ".content", Error: "Invalid type for '" + path + ".content': expected one of an array of objects or string, but got null instead.", Fix: "give it content, or leave the message out"})
	case []any:
		for i, p := range k.objects(path+".content", v) {
			k.part(atIndex(path+".content", i), p, role)
		}
	default:
		k.shape(path+".content", "a string or an array")
	}
}

var imageTypes = []string{"png", "jpeg", "jpg", "gif", "webp"}

// part looks at a part of the content of a role, or of a "result".
func (k *responsesChecker) part(path string, p map[string]any, role string) {
	kind := str(p["type"])
	good := strings.HasPrefix(kind, "input_") || kind == "computer_screenshot"
	supported := "'input_text', 'input_image' and 'input_file'"
	if role == "assistant" {
		good, supported = kind == "output_text" || kind == "refusal", "'output_text' and 'refusal'"
	}
	if !good {
		k.add(Finding{Rule: "content-type", Path: path + ".type", Error: fmt.Sprintf("Invalid value: '%s'. Supported values are: %s.", kind, supported), Fix: "use output_text for the assistant, input_text and others elsewhere"})
		return
	}
	switch kind {
	case "input_text", "output_text", "refusal":
		key := "text"
		if kind == "refusal" {
			key = kind
		}
		if _, ok := p[key].(string); !ok {
			k.shape(path+"."+key, "a string")
		}
	case "input_image":
		if str(p["image_url"]) == "" && str(p["file_id"]) == "" {
			k.shape(path+".image_url", "an address, a data URL or a file_id")
		}
		if kind, sub, ok := dataType(p["image_url"]); ok && (kind != "image" || !slices.Contains(imageTypes, sub)) {
			k.add(Finding{Rule: "media-type", Path: path + ".image_url", Error: "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].", Fix: "send the image in one of these formats"})
		}
	case "input_file":
		if str(p["file_data"]) == "" && str(p["file_url"]) == "" && str(p["file_id"]) == "" {
			k.shape(path+".file_data", "a data URL, a file_url or a file_id")
		}
		if kind, sub, ok := dataType(p["file_data"]); ok && (kind == "audio" || kind == "video") {
			k.add(Finding{Rule: "media-type", Path: path + ".file_data", Error: fmt.Sprintf("Invalid file data: '%s.file_data'. Expected a base64-encoded data URL with a valid file MIME type (e.g. 'data:text/plain;base64,SGVsbG8sIFdvcmxkIQ=='), but got unsupported MIME type '%s/%s'.", path, kind, sub), Fix: "send what is said in it as text"})
		}
	}
}

// dataType returns the MIME type of a data URL.
func dataType(v any) (kind, sub string, ok bool) {
	rest, ok := strings.CutPrefix(str(v), "data:")
	if !ok {
		return "", "", false
	}
	if i := strings.IndexAny(rest, ";,"); i >= 0 {
		rest = rest[:i]
	}
	kind, sub, _ = strings.Cut(rest, "/")
	return kind, sub, true
}

// ids looks for items that come twice, and for items that nobody has kept.
func (k *responsesChecker) ids(items []map[string]any) {
	seen := map[string]bool{}
	for i, m := range items {
		path, id := atIndex("input", i), str(m["id"])
		if id == "" {
			continue
		}
		if seen[id] {
			k.add(Finding{Rule: "duplicate-item", Path: path + ".id", ID: id, Error: "Duplicate item found with id " + id + ". Remove duplicate items from your input and try again.", Fix: "send the item once"})
		}
		seen[id] = true
		kind := str(m["type"])
		if bare := kind == "reasoning" && str(m["encrypted_content"]) == "" && !isPlainThought(m); !k.stored && (bare || kind == "item_reference") {
			k.add(Finding{Rule: "not-stored", Path: path, ID: id, Error: "Item with id '" + id + "' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", Fix: `ask for reasoning with include: ["reasoning.encrypted_content"] and send that back, or leave the item out`})
		}
	}
}

// pairs looks at calls and their outputs.
func (k *responsesChecker) pairs(items []map[string]any) {
	type key struct{ kind, id string }
	type call struct {
		key
		path    string
		crossed string // by a message
	}
	var open []*call
	byKey := map[key]*call{}
	answered := map[key]bool{}
	others := map[string]bool{} // calls that need no output
	linked := k.linked
	crossed := 0 // of the open calls
	for i, m := range items {
		path, kind, id := atIndex("input", i), str(m["type"]), str(m["call_id"])
		name, isOutput := strings.CutSuffix(kind, "_output")
		key := key{name, id}
		switch {
		case kind == "item_reference":
			linked = true
		case kind == "" || kind == "message":
			for ; crossed < len(open); crossed++ {
				open[crossed].crossed = path
			}
		case !needsOutput(name):
			if strings.HasSuffix(kind, "_call") {
				others[id] = true
			}
		case id == "": // said already
		case !isOutput && byKey[key] != nil:
			k.add(Finding{Rule: "duplicate-call", Path: path + ".call_id", ID: id, Error: "Duplicate call_id " + id, Fix: "give each call an id of its own, and its result the same"})
		case !isOutput:
			c := &call{key: key, path: path}
			byKey[key] = c
			open = append(open, c)
			answered[key] = false
		case byKey[key] != nil:
			if at := byKey[key].crossed; at != "" && k.byPosition && name == "function_call" {
				k.add(Finding{Rule: "between-calls", Path: at, ID: id, Error: "No tool output found for tool call " + id + ".", Fix: "send results directly after the calls, and messages before or after both"})
			}
			delete(byKey, key)
			answered[key] = true
		case answered[key]:
			k.add(Finding{Rule: "duplicate-result", Path: path, ID: id, Error: "Duplicate output for call_id " + id, Fix: "send one result for each call"})
		case linked, name == "function_call" && others[id]:
		default:
			k.add(Finding{Rule: "orphan-result", Path: path, ID: id, Error: "No tool call found for " + strings.ReplaceAll(name, "_", " ") + " output with call_id " + id + ".", Fix: "leave the result out, or send its call before it"})
		}
	}
	for _, c := range open {
		if byKey[c.key] == c {
			k.add(Finding{Rule: "unanswered-call", Path: c.path, ID: c.id, Error: "No tool output found for " + strings.ReplaceAll(c.kind, "_", " ") + " " + c.id + ".", Fix: "send a " + c.kind + "_output for it"})
		}
	}
}

// thoughts looks at what stands after reasoning.
func (k *responsesChecker) thoughts(items []map[string]any) {
	for i, m := range items {
		if str(m["type"]) != "reasoning" || isPlainThought(m) {
			continue
		}
		path, id := atIndex("input", i), str(m["id"])
		next := i + 1
		for next < len(items) && str(items[next]["type"]) == "reasoning" {
			next++
		}
		f := Finding{Path: path, ID: id, Error: "Item '" + id + "' of type 'reasoning' was provided without its required following item."}
		switch {
		case next == len(items) || isInput(items[next]):
			f.Rule, f.Fix = "reasoning-alone", "send the message or call that it led to directly after it, or leave it out"
			k.add(f)
		case id != "" && k.stored && next == i+1 && str(items[next]["id"]) == "":
			f.Rule, f.Fix = "reasoning-item", "send the item that it led to with its own id, or the reasoning without one"
			k.add(f)
		}
	}
}

// isInput reports whether the model has not made an item.
func isInput(m map[string]any) bool {
	kind, role := str(m["type"]), str(m["role"])
	if kind == "" || kind == "message" {
		return role != "assistant"
	}
	return kind == "additional_tools" || kind == "mcp_approval_response" || strings.HasSuffix(kind, "_output")
}

package wire

import (
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Check returns the reasons for which the provider would refuse a request. The rules:
//
//   - for the body: json, shape, request-bytes
//   - for items: input-empty, role, content-missing, content-type, item-id, duplicate-item,
//     not-stored
//   - for calls and results: id-missing, id-length, name-pattern, arguments,
//     arguments-length, unanswered-call, duplicate-call, orphan-result, duplicate-result,
//     between-calls
//   - for reasoning: reasoning-alone, reasoning-item
//   - for media: media-type, media-count, image-unreadable
//
// The rule between-calls applies only to providers that pair calls and results by position.
func (f OpenAIResponses) Check(request []byte) []Finding {
	k := responsesChecker{checker: checker{format: FormatOpenAIResponses}}
	all := k.body(request)
	if all == nil {
		return k.list
	}
	k.stored = all["store"] != false
	k.linked = all["previous_response_id"] != nil || all["conversation"] != nil
	k.byPosition = f.Plain || strings.HasPrefix(str(all["model"]), "deepseek")
	if _, ok := all["input"].(string); ok {
		return k.list
	}
	list, _ := all["input"].([]any)
	if len(list) == 0 && (all["input"] == nil || list != nil) {
		if !k.linked && all["prompt"] == nil {
			k.add("input-empty", "input", "")
		}
		return k.list
	}
	items := k.objects("input", all["input"])
	for i, m := range items {
		k.item(atIndex("input", i), m)
	}
	k.ids(items)
	k.pairs(items)
	k.thoughts(items)
	if !k.byPosition {
		k.sizes(request, mediaIn("input", all["input"], openAIMedium), openAISizes)
	}
	return k.list
}

// A responsesChecker checks the items of a request.
type responsesChecker struct {
	checker
	stored     bool // the provider stores responses
	linked     bool // the request continues a response that the provider has stored
	byPosition bool // the provider pairs calls and results by their positions
}

// item checks one item apart from the others.
func (k *responsesChecker) item(path string, m map[string]any) {
	kind, isString := m["type"].(string)
	switch {
	case m["type"] != nil && !isString, m["type"] == nil && m["role"] == nil:
		k.shape(path, "an item with a type or a role")
		return
	case kind == "" || kind == "message":
		k.message(path, m)
		return
	}
	switch kind {
	case "function_call":
		k.callID(path, m)
		if name, ok := m["name"].(string); !ok || !anthropicToolNames(name) {
			k.add("name-pattern", path+".name", str(m["call_id"]))
		}
		k.args(path+".arguments", str(m["call_id"]), m["arguments"])
		k.itemID(path, m, "fc")
	case "custom_tool_call":
		if name, ok := m["name"].(string); !ok || !anthropicToolNames(name) {
			k.add("name-pattern", path+".name", str(m["call_id"]))
		}
		k.args(path+".input", str(m["call_id"]), m["input"])
		k.itemID(path, m, "ctc")
	case "function_call_output", "custom_tool_call_output":
		if kind == "function_call_output" {
			k.callID(path, m)
		}
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
			k.shape(path+".encrypted_content", "the string that the provider sent, or null")
		}
		if !isPlainThought(m) {
			k.itemID(path, m, "rs")
		}
	}
	if needsOutput(strings.TrimSuffix(kind, "_output")) && !strings.HasPrefix(kind, "function") {
		k.callID(path, m)
	}
}

// args checks the arguments of a call.
func (k *responsesChecker) args(path, id string, v any) {
	text, ok := v.(string)
	switch {
	case !ok:
		k.add("arguments", path, id, "want", "a string")
	case !k.byPosition:
		k.arguments(path, id, text)
	}
}

func (k *responsesChecker) callID(path string, m map[string]any) {
	switch id := str(m["call_id"]); {
	case id == "":
		k.add("id-missing", path+".call_id", "")
	case !openAIResponsesIDs.valid(id):
		k.add("id-length", path+".call_id", id, "limit", "64", "length", strconv.Itoa(len(id)))
	}
}

// itemID checks the id of an item. The id may be missing.
func (k *responsesChecker) itemID(path string, m map[string]any, prefix string) {
	switch id := str(m["id"]); {
	case m["id"] == nil:
	case !strings.HasPrefix(id, prefix):
		k.add("item-id", path+".id", id, "prefix", prefix)
	case len(id) > 64:
		k.add("item-id/length", path+".id", id, "length", strconv.Itoa(len(id)))
	}
}

func (k *responsesChecker) message(path string, m map[string]any) {
	role := str(m["role"])
	switch role {
	case "user", "system", "developer":
	case "assistant":
		k.itemID(path, m, "msg")
	default:
		k.add("role", path+".role", "", "role", role)
		return
	}
	switch v := m["content"].(type) {
	case string:
	case nil:
		k.add("content-missing", path+".content", "")
	case []any:
		for i, p := range k.objects(path+".content", v) {
			k.part(atIndex(path+".content", i), p, role)
		}
	default:
		k.shape(path+".content", "a string or an array")
	}
}

var imageTypes = []string{"png", "jpeg", "jpg", "gif", "webp"}

// part checks a part of a message of the given role, or of a "result".
func (k *responsesChecker) part(path string, p map[string]any, role string) {
	kind := str(p["type"])
	good := strings.HasPrefix(kind, "input_") || kind == "computer_screenshot"
	supported := "'input_text', 'input_image' and 'input_file'"
	if role == "assistant" {
		good, supported = kind == "output_text" || kind == "refusal", "'output_text' and 'refusal'"
	}
	if !good {
		k.add("content-type", path+".type", "", "type", kind, "supported", supported)
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
			k.shape(path+".image_url", "a URL, a data URL or a file_id")
		}
		if kind, sub, ok := dataType(p["image_url"]); ok && (kind != "image" || !slices.Contains(imageTypes, sub)) {
			k.add("media-type/image", path+".image_url", "")
		}
	case "input_file":
		if str(p["file_data"]) == "" && str(p["file_url"]) == "" && str(p["file_id"]) == "" {
			k.shape(path+".file_data", "a data URL, a file_url or a file_id")
		}
		if kind, sub, ok := dataType(p["file_data"]); ok && (kind == "audio" || kind == "video") {
			k.add("media-type/file", path+".file_data", "", "mime", kind+"/"+sub)
		}
	}
}

// dataType returns both halves of the MIME type of a data URL. It returns false
// for other values.
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

// ids checks for items that occur twice, and for items that the provider was
// told not to store.
func (k *responsesChecker) ids(items []map[string]any) {
	seen := map[string]bool{}
	for i, m := range items {
		path, id := atIndex("input", i), str(m["id"])
		if id == "" {
			continue
		}
		if seen[id] {
			k.add("duplicate-item", path+".id", id)
		}
		seen[id] = true
		kind := str(m["type"])
		if bare := kind == "reasoning" && str(m["encrypted_content"]) == "" && !isPlainThought(m); !k.stored && (bare || kind == "item_reference") {
			k.add("not-stored", path, id)
		}
	}
}

// pairs checks that each call has one output, after it.
func (k *responsesChecker) pairs(items []map[string]any) {
	type key struct{ kind, id string }
	type call struct {
		key
		path    string
		index   int    // of the item
		crossed string // path of the first message after the call
	}
	var open []*call
	byKey := map[key]*call{}
	answered := map[key]bool{}
	others := map[string]bool{} // ids of calls that need no output
	linked := k.linked
	crossed := 0 // the open calls before this index have crossed set
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
		case id == "": // item has reported it
		case !isOutput && byKey[key] != nil:
			k.add("duplicate-call", path+".call_id", id)
		case !isOutput:
			c := &call{key: key, path: path, index: i}
			byKey[key] = c
			open = append(open, c)
			answered[key] = false
		case byKey[key] != nil:
			if at := byKey[key].crossed; at != "" && k.byPosition && name == "function_call" {
				k.add("between-calls", at, id)
			}
			delete(byKey, key)
			answered[key] = true
		case answered[key]:
			k.add("duplicate-result", path, id)
		case linked, name == "function_call" && others[id]:
		default:
			k.add("orphan-result", path, id, "kind", strings.ReplaceAll(name, "_", " "))
		}
	}
	for _, c := range open {
		if byKey[c.key] == c && (c.kind != programKind || !waitsFor(typesAfter(items[c.index+1:]))) {
			k.add("unanswered-call", c.path, c.id, "kind", strings.ReplaceAll(c.kind, "_", " "))
		}
	}
}

// typesAfter yields the types of items.
func typesAfter(items []map[string]any) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, m := range items {
			if !yield(str(m["type"])) {
				return
			}
		}
	}
}

// thoughts checks that what each reasoning item led to follows it.
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
		switch {
		case next == len(items) || isInput(items[next]):
			k.add("reasoning-alone", path, id)
		case id != "" && k.stored && next == i+1 && str(items[next]["id"]) == "":
			k.add("reasoning-item", path, id)
		}
	}
}

// isInput reports whether an item comes from the caller and not from the model.
func isInput(m map[string]any) bool {
	kind, role := str(m["type"]), str(m["role"])
	if kind == "" || kind == "message" {
		return role != "assistant"
	}
	return kind == "additional_tools" || kind == "mcp_approval_response" || strings.HasSuffix(kind, "_output")
}

// CheckHistory implements [HistoryChecker].
func (f OpenAIResponses) CheckHistory(requests ...[]byte) []Finding {
	return checkHistory(requests, historyShape{format: FormatOpenAIResponses, system: "instructions", messages: "input", content: "content"})
}

package wire

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo/internal/models"
)

// Check returns the reasons for which the provider would refuse a request. The rules:
//
//   - for the body: json, shape, request-bytes
//   - for messages: messages-empty, role, order, last-role, system-first, system-model,
//     user-first, alternation, author-pattern, content-missing, content-type
//   - for calls and results: calls-empty, id-missing, id-length, id-pattern, name-pattern,
//     arguments, arguments-length, unanswered-call, duplicate-call, orphan-result,
//     duplicate-result, result-content, split-calls, text-calls
//   - for reasoning: reasoning-missing
//   - for media: audio-model, media-count, image-pixels, image-unreadable
//
// The Dialect, the Host, the model and SplitCalls decide which of them apply.
func (f OpenAIChat) Check(request []byte) []Finding {
	k := chatChecker{checker: checker{format: FormatOpenAIChat}, f: f}
	all := k.body(request)
	if all == nil {
		return k.list
	}
	msgs := k.objects("messages", all["messages"])
	if msgs == nil {
		return k.list
	}
	if len(msgs) == 0 {
		k.add("messages-empty", "messages", "")
	}
	k.model = str(all["model"])
	k.routed = strings.Contains(k.model, "/")
	for i, m := range msgs {
		k.message(atIndex("messages", i), m)
	}
	k.reportOpen()
	k.order(msgs)
	k.sizes(request, mediaIn("messages", all["messages"], openAIMedium), k.chatSizes())
	return k.list
}

// A chatChecker checks the messages in order.
type chatChecker struct {
	checker
	f      OpenAIChat
	model  string
	routed bool             // model names another provider's model, such as "google/gemini-2.5-pro"
	open   []chatCall       // the calls of the newest assistant message that has any
	byID   map[string][]int // by id: the indices in open of the calls without a result
	next   int              // for Ollama: the calls before this index have results
	inTurn bool             // the previous message holds the open calls, or is one of their results
}

// chatSizes returns the limits of the host, as far as they are known.
func (k *chatChecker) chatSizes() sizeLimits {
	switch {
	case k.f.Dialect == OpenAI && k.f.Host == "" && !k.routed:
		return openAISizes
	case k.f.Dialect == DeepSeek:
		return sizeLimits{Images: models.ImagesOf("deepseek"), request: 48 << 20, reads: readImages}
	}
	l := models.ImagesOf(k.model) // wherever the model runs
	return sizeLimits{Images: models.Images{Side: l.Side, Few: l.Few, Many: l.Many}}
}

type chatCall struct {
	id, path string
	answered bool
}

func (k *chatChecker) message(path string, m map[string]any) {
	role := str(m["role"])
	if role != "tool" {
		k.reportOpen()
		k.inTurn = false
	}
	if name := m["name"]; name != nil && role != "tool" {
		k.author(path+".name", name)
	}
	if k.f.Dialect == Gemma && role != "user" && role != "assistant" {
		k.role(path, role)
		return
	}
	switch role {
	case "system", "user", "developer":
		if role != "user" && (strings.HasPrefix(k.model, "o1-mini") || strings.HasPrefix(k.model, "o1-preview")) {
			k.add("system-model", path+".role", "", "role", role)
		}
		if role == "developer" && k.f.Dialect >= Mistral {
			k.role(path, role)
			return
		}
		k.content(path, m["content"], role)
		if images := m["images"]; images != nil && k.f.Dialect == Ollama {
			k.strings(path+".images", images)
		}
	case "assistant":
		k.assistant(path, m)
	case "tool":
		k.result(path, m)
	default:
		k.role(path, role)
	}
}

// maxChatName is the maximum length of the name of an author.
const maxChatName = 64

// isChatName reports whether the provider takes a name of an author.
func isChatName(name string) bool {
	return isMadeOfChatName(name) && utf8.RuneCountInString(name) <= maxChatName
}

// isMadeOfChatName reports whether the provider takes all characters of a name.
func isMadeOfChatName(name string) bool {
	return name != "" && !strings.ContainsAny(name, " \t\n\f\r<|\\/>")
}

func (k *chatChecker) role(path, role string) {
	k.add("role", path+".role", "", "role", role)
}

// author checks the name of the author of a message.
func (k *chatChecker) author(path string, v any) {
	switch name, ok := v.(string); {
	case !ok:
		k.shape(path, "a string")
	case !isMadeOfChatName(name):
		k.add("author-pattern", path, "")
	case utf8.RuneCountInString(name) > maxChatName:
		k.add("author-pattern/length", path, "", "length", strconv.Itoa(utf8.RuneCountInString(name)))
	}
}

// strings checks that a value is an array of strings.
func (k *chatChecker) strings(path string, v any) {
	list, ok := v.([]any)
	if !ok {
		k.shape(path, "an array of strings")
	}
	for i, e := range list {
		if _, ok := e.(string); !ok {
			k.shape(atIndex(path, i), "a string")
		}
	}
}

// content checks the content of a message of a role.
func (k *chatChecker) content(message string, v any, role string) {
	path := message + ".content"
	switch v := v.(type) {
	case string:
	case nil:
		k.add("content-missing", path, "")
	case []any:
		if k.f.Dialect == Ollama {
			k.shape(path, "a string")
			return
		}
		for i, p := range k.objects(path, v) {
			k.part(message, i, p, role)
		}
	default:
		k.shape(path, "a string or an array")
	}
}

// part checks part i of the content of a message of a role. For an unknown type, which
// another host may have, it checks only the position.
func (k *chatChecker) part(message string, i int, p map[string]any, role string) {
	path := atIndex(message+".content", i)
	kind := str(p["type"])
	only := k.f.Dialect == OpenAI || k.f.Dialect == DeepSeek // takes media of users only
	switch {
	case only && role == "tool" && kind != "text":
		k.add("result-content", path, "", "content", message+".content")
		return
	case kind == "":
		k.shape(path+".type", "a string that names the type of the part")
		return
	case only && kind == "image_url" && role != "user":
		k.add("content-type/image", path, "", "type", kind, "role", role, "message", message)
		return
	case only && kind != "text" && (role == "system" || role == "developer"), only && kind != "text" && kind != "refusal" && role == "assistant",
		only && (kind == "refusal" || kind == "thinking") && role == "user":
		supported := "'text'"
		switch role {
		case "assistant":
			supported = "'text' and 'refusal'"
		case "user":
			supported = "'text', 'image_url', 'input_audio' and 'file'"
		}
		k.add("content-type", path+".type", "", "type", kind, "supported", supported)
		return
	case kind == "input_audio" && role == "user" && k.f.Dialect == OpenAI && !k.f.Audio && !strings.Contains(k.model, "audio"):
		k.add("audio-model", path, "", "message", message)
	}
	switch kind {
	case "text", "refusal", "document_url":
		k.text(path, p, kind)
	case "image_url":
		k.media(path, p, kind, "url")
	case "input_audio":
		k.media(path, p, kind, "data", "format")
	case "file":
		file, isObject := p[kind].(map[string]any)
		switch {
		case !isObject && (k.f.Dialect == OpenAI || str(p["file_id"]) == ""):
			k.shape(path+".file", "an object with file_data or file_id")
		case isObject && str(file["file_data"]) == "" && str(file["file_id"]) == "":
			k.shape(path+".file.file_data", "a data URL, or a file_id")
		}
	case "thinking": // of Mistral
		switch list := p[kind].(type) {
		case string:
		case []any:
			for i, e := range k.objects(path+".thinking", list) {
				at := atIndex(path+".thinking", i)
				switch str(e["type"]) {
				case "":
					k.shape(at+".type", "a string that names the type of the part")
				case "text":
					k.text(at, e, "text")
				}
			}
		default:
			k.shape(path+".thinking", "an array of texts")
		}
	}
}

// text checks that a field of a part is a string.
func (k *chatChecker) text(path string, p map[string]any, key string) {
	if _, ok := p[key].(string); !ok {
		k.shape(path+"."+key, "a string")
	}
}

// media checks that a field of a part is an object with strings that are not empty. Hosts
// other than OpenAI also take a string for the first of these fields, and do not need the
// others.
func (k *chatChecker) media(path string, p map[string]any, key string, fields ...string) {
	path += "." + key
	if k.f.Dialect != OpenAI {
		if str(p[key]) != "" {
			return
		}
		fields = fields[:1]
	}
	m, ok := p[key].(map[string]any)
	if !ok {
		k.shape(path, "an object with "+strings.Join(fields, " and "))
		return
	}
	for _, field := range fields {
		if str(m[field]) == "" {
			k.shape(path+"."+field, "a non-empty string")
		}
	}
}

func (k *chatChecker) assistant(path string, m map[string]any) {
	if refusal := m["refusal"]; refusal != nil { // it may be empty
		k.text(path, m, "refusal")
	}
	if audio := m["audio"]; audio != nil {
		if o, ok := audio.(map[string]any); !ok || str(o["id"]) == "" {
			k.shape(path+".audio", "an object with an id")
		}
	}
	raw, has := m["tool_calls"]
	calls, isList := raw.([]any)
	switch {
	case has && raw != nil && !isList:
		k.shape(path+".tool_calls", "an array")
	case isList && len(calls) == 0 && k.f.Dialect != Mistral:
		k.add("calls-empty", path+".tool_calls", "")
	}
	if len(calls) == 0 {
		if m["content"] != nil || m["refusal"] == nil && m["audio"] == nil {
			k.content(path, m["content"], "assistant")
		}
		if k.f.Dialect == Mistral && m["content"] == "" && m["prefix"] != true {
			k.add("content-missing/mistral", path+".content", "")
		}
		return
	}
	if m["content"] != nil {
		k.content(path, m["content"], "assistant")
	}
	if k.f.Dialect == Gemma {
		k.add("text-calls", path+".tool_calls", "")
		return
	}
	if v, ok := m["content"]; ok && v != "" && k.f.SplitCalls {
		k.add("split-calls", path+".content", "")
	}
	if k.f.Dialect == DeepSeek {
		if _, ok := m["reasoning_content"].(string); !ok {
			k.add("reasoning-missing", path+".reasoning_content", "")
		}
	}
	k.inTurn = true
	for i, call := range k.objects(path+".tool_calls", calls) {
		k.call(atIndex(path+".tool_calls", i), call)
	}
}

func (k *chatChecker) call(path string, call map[string]any) {
	id := str(call["id"])
	switch {
	case id == "" && k.f.Dialect != Ollama:
		k.add("id-missing", path+".id", "")
	case k.f.Dialect == Mistral && !mistralIDs.valid(id):
		k.add("id-pattern", path+".id", id)
	case k.f.Dialect == OpenAI && !k.routed && !openAIChatIDs.valid(id):
		k.add("id-length", path+".id", id, "limit", "40", "length", strconv.Itoa(len(id)))
	}
	if id != "" && len(k.byID[id]) > 0 {
		k.add("duplicate-call", path+".id", id)
	} else {
		if k.byID == nil {
			k.byID = make(map[string][]int)
		}
		k.byID[id] = append(k.byID[id], len(k.open))
		k.open = append(k.open, chatCall{id: id, path: path})
	}
	kind, argument, want := "function", "arguments", "a string"
	switch t := call["type"]; {
	case t == "custom" && k.f.Dialect == OpenAI:
		kind, argument = "custom", "input"
	case t != nil && str(t) == "", k.f.Dialect == OpenAI && t != nil && t != "function":
		k.shape(path+".type", "function or custom")
		return
	case k.f.Dialect == Ollama:
		want = "an object"
	}
	fn, ok := call[kind].(map[string]any)
	if !ok {
		k.shape(path+"."+kind, "an object with name and "+argument)
		return
	}
	switch name := str(fn["name"]); {
	case name == "":
		k.add("name-pattern/empty", path+"."+kind+".name", id)
	case !geminiNameBytes(name):
		k.add("name-pattern", path+"."+kind+".name", id)
	}
	args, text := fn[argument].(string)
	_, obj := fn[argument].(map[string]any)
	if k.f.Dialect == OpenAI && k.f.Host == "" && !k.routed {
		k.arguments(path+"."+kind+"."+argument, id, args)
	}
	if text == obj || text == (want == "an object") {
		k.add("arguments", path+"."+kind+"."+argument, id, "want", want)
	}
}

func (k *chatChecker) result(path string, m map[string]any) {
	if id := m["tool_call_id"]; id != nil && str(id) == "" && id != "" {
		k.shape(path+".tool_call_id", "a string")
	}
	id := str(m["tool_call_id"])
	mine, known := k.byID[id]
	if k.f.Dialect == Ollama && id == "" {
		for k.next < len(k.open) && k.open[k.next].answered {
			k.next++
		}
		if k.next < len(k.open) {
			mine, known = []int{k.next}, true
		}
	}
	switch {
	case k.inTurn && len(mine) > 0:
		k.open[mine[0]].answered = true
		k.byID[id] = mine[1:]
	case k.inTurn && known:
		k.add("duplicate-result", path+".tool_call_id", id)
	default:
		k.add("orphan-result", path, id)
	}
	k.content(path, m["content"], "tool")
}

// reportOpen reports the calls that have no result.
func (k *chatChecker) reportOpen() {
	for _, o := range k.open {
		if o.answered {
			continue
		}
		k.add("unanswered-call", o.path, o.id)
	}
	k.open, k.byID, k.next = nil, nil, 0
}

// order checks the order of the roles, if the dialect has rules for it.
func (k *chatChecker) order(msgs []map[string]any) {
	switch k.f.Dialect {
	case Mistral:
		k.mistralOrder(msgs)
	case StrictAlternation, Gemma:
		k.alternation(msgs)
	}
}

func (k *chatChecker) mistralOrder(msgs []map[string]any) {
	first := slices.IndexFunc(msgs, func(m map[string]any) bool { return str(m["role"]) != "system" })
	if first >= 0 && str(msgs[first]["role"]) == "assistant" {
		k.add("user-first", atIndex("messages", first), "")
	}
	for i := 1; i < len(msgs); i++ {
		if prev, role := str(msgs[i-1]["role"]), str(msgs[i]["role"]); prev == "tool" && (role == "user" || role == "system") || role == "system" && prev == "assistant" {
			k.add("order", atIndex("messages", i), "", "role", role, "previous", prev)
		}
	}
	if n := len(msgs); n > 0 && str(msgs[n-1]["role"]) == "assistant" && msgs[n-1]["prefix"] != true {
		k.add("last-role", atIndex("messages", n-1), "")
	}
}

func (k *chatChecker) alternation(msgs []map[string]any) {
	prev := ""
	for i, m := range msgs {
		role := str(m["role"])
		path := atIndex("messages", i)
		calls, _ := m["tool_calls"].([]any)
		if k.f.Dialect == Gemma {
			calls = nil // they make no difference
		}
		switch {
		case role == "system" && i > 0:
			k.add("system-first", path, "")
		case role == "user" && prev == "user", role == "assistant" && prev == "assistant" && len(calls) == 0:
			k.add("alternation", path, "")
		case role == "assistant" && prev == "":
			k.add("user-first", path, "")
		}
		if role == "user" || role == "assistant" && len(calls) == 0 {
			prev = role
		} else if role == "assistant" && prev == "" {
			prev = "none"
		}
	}
}

// CheckHistory implements [HistoryChecker].
func (f OpenAIChat) CheckHistory(requests ...[]byte) []Finding {
	return checkHistory(requests, historyShape{format: FormatOpenAIChat, messages: "messages", content: "content"})
}

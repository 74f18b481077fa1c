package wire

import (
	"fmt"
	"regexp"
	"strings"
)

// Check says why the provider of the dialect would refuse a request. The rules
// by name: json, shape, messages-empty, role, orphan-result, unanswered-call,
// duplicate-result, duplicate-call, content-missing, calls-empty, id-missing,
// id-length, id-pattern, name-pattern, author-pattern, arguments, result-content,
// audio-model, system-model, reasoning-missing, order, last-role, system-first, alternation, user-first.
func (f OpenAIChat) Check(request []byte) []Finding {
	var c checker
	all := c.body(request)
	if all == nil {
		return c.list
	}
	msgs := c.objects("messages", all["messages"])
	if msgs == nil {
		return c.list
	}
	if len(msgs) == 0 {
		c.add(Finding{Rule: "messages-empty", Path: "messages", Error: "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.", Fix: "send a message"})
	}
	k := chatChecker{checker: &c, f: f, model: str(all["model"])}
	k.routed = strings.Contains(k.model, "/")
	for i, m := range msgs {
		k.message(atIndex("messages", i), m)
	}
	k.answered()
	k.order(msgs)
	return c.list
}

// A chatChecker walks over the messages.
type chatChecker struct {
	*checker
	f      OpenAIChat
	model  string
	routed bool             // the model is another provider's, as "google/gemini-2.5-pro"
	open   []chatCall       // the calls of the last assistant message that has any
	byID   map[string][]int // where those without a result stand, by id
	next   int              // where those begin that have no result
	in     bool             // right behind it, or behind one of its results
}

type chatCall struct {
	id, path string
	answered bool
}

func (k *chatChecker) message(path string, m map[string]any) {
	role := str(m["role"])
	if role != "tool" {
		k.answered()
		k.in = false
	}
	if name, ok := m["name"].(string); ok && role != "tool" && !chatName.MatchString(name) {
		k.add(Finding{Rule: "author-pattern", Path: path + ".name", Error: "Invalid '" + path + ".name': string does not match pattern. Expected a string that matches the pattern '^[^\\s<|\\\\/>]+$'.", Fix: "use letters, digits, _ and - in a name"})
	}
	switch role {
	case "system", "user", "developer":
		if role != "user" && (strings.HasPrefix(k.model, "o1-mini") || strings.HasPrefix(k.model, "o1-preview")) {
			k.add(Finding{Rule: "system-model", Path: path + ".role", Error: "Unsupported value: '" + path + ".role' does not support '" + role + "' with this model.", Fix: "send it as a user message"})
		}
		if role == "developer" && k.f.Dialect >= Mistral {
			k.role(path, role)
			return
		}
		k.content(path, m["content"], false)
	case "assistant":
		k.assistant(path, m)
	case "tool":
		k.result(path, m)
	default:
		k.role(path, role)
	}
}

var (
	chatName     = regexp.MustCompile(`^[^\s<|\\/>]+$`)
	functionName = regexp.MustCompile(`^[a-zA-Z0-9_.:-]{1,64}$`)
)

func (k *chatChecker) role(path, role string) {
	k.add(Finding{Rule: "role", Path: path + ".role", Error: fmt.Sprintf("Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'tool', and 'developer'.", role), Fix: "use a role that the provider knows"})
}

// content looks at what a message holds; results take text alone.
func (k *chatChecker) content(path string, v any, result bool) {
	path += ".content"
	switch v := v.(type) {
	case string:
	case nil:
		k.add(Finding{Rule: "content-missing", Path: path, Error: "Invalid value for 'content': expected a string, got null.", Fix: "give it content"})
	case []any:
		for i, p := range k.objects(path, v) {
			if str(p["type"]) == "input_audio" && !result && k.f.Dialect == OpenAI && !k.f.Audio && !strings.Contains(k.model, "audio") {
				k.add(Finding{Rule: "audio-model", Path: atIndex(path, i), Error: "Invalid '" + strings.TrimSuffix(path, ".content") + "'. Content blocks are expected to be either text or image_url type.", Fix: "send audio to a model that hears"})
			}
			if kind := str(p["type"]); result && kind != "text" && (k.f.Dialect == OpenAI || k.f.Dialect == DeepSeek) {
				k.add(Finding{Rule: "result-content", Path: atIndex(path, i), Error: "Invalid '" + path + "'. Content blocks are expected to be either text or image_url type.", Fix: "send text in results, and media in a user message after them"})
			} else if kind == "" {
				k.shape(atIndex(path, i)+".type", "the type of the part")
			}
		}
	default:
		k.shape(path, "a string or an array")
	}
}

func (k *chatChecker) assistant(path string, m map[string]any) {
	raw, has := m["tool_calls"]
	calls, isList := raw.([]any)
	switch {
	case has && raw != nil && !isList:
		k.shape(path+".tool_calls", "an array")
	case isList && len(calls) == 0 && k.f.Dialect != Mistral:
		k.add(Finding{Rule: "calls-empty", Path: path + ".tool_calls", Error: "Invalid '" + path + ".tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead.", Fix: "leave tool_calls out"})
	}
	if len(calls) == 0 {
		if m["content"] != nil || m["refusal"] == nil && m["audio"] == nil {
			k.content(path, m["content"], false)
		}
		if k.f.Dialect == Mistral && m["content"] == "" && m["prefix"] != true {
			k.add(Finding{Rule: "content-missing", Path: path + ".content", Error: "Assistant message must have either content or tool_calls, but not both.", Fix: "leave the message out"})
		}
		return
	}
	if m["content"] != nil {
		k.content(path, m["content"], false)
	}
	if k.f.Dialect == DeepSeek {
		if _, ok := m["reasoning_content"].(string); !ok {
			k.add(Finding{Rule: "reasoning-missing", Path: path + ".reasoning_content", Error: "The `reasoning_content` in the thinking mode must be passed back to the API.", Fix: "send the reasoning back, or an empty string"})
		}
	}
	k.in = true
	for i, call := range k.objects(path+".tool_calls", calls) {
		k.call(atIndex(path+".tool_calls", i), call)
	}
}

func (k *chatChecker) call(path string, call map[string]any) {
	id := str(call["id"])
	switch {
	case id == "" && k.f.Dialect != Ollama:
		k.add(Finding{Rule: "id-missing", Path: path + ".id", Error: "Missing required parameter: '" + path + ".id'.", Fix: "give the call an id"})
	case k.f.Dialect == Mistral && !mistralIDs.valid(id):
		k.add(Finding{Rule: "id-pattern", Path: path + ".id", ID: id, Error: "Tool call id was " + id + " but must be a-z, A-Z, 0-9, with a length of 9.", Fix: "use nine letters and digits"})
	case k.f.Dialect == OpenAI && !k.routed && !openAIChatIDs.valid(id):
		k.add(Finding{Rule: "id-length", Path: path + ".id", ID: id, Error: fmt.Sprintf("Invalid '%s.id': string too long. Expected a string with maximum length 40, but got a string with length %d instead.", path, len(id)), Fix: "use an id of at most 40 characters, and the same in its result"})
	}
	if id != "" && len(k.byID[id]) > 0 {
		k.add(Finding{Rule: "duplicate-call", Path: path + ".id", ID: id, Error: "Duplicate tool call id " + id, Fix: "give each call an id of its own"})
	} else {
		if k.byID == nil {
			k.byID = make(map[string][]int)
		}
		k.byID[id] = append(k.byID[id], len(k.open))
		k.open = append(k.open, chatCall{id: id, path: path})
	}
	fn, ok := call["function"].(map[string]any)
	if !ok {
		if str(call["type"]) == "custom" {
			return
		}
		k.shape(path+".function", "an object with name and arguments")
		return
	}
	switch name := str(fn["name"]); {
	case name == "":
		k.add(Finding{Rule: "name-pattern", Path: path + ".function.name", ID: id, Error: "Invalid '" + path + ".function.name': empty string. Expected a string with minimum length 1, but got an empty string instead.", Fix: "name the tool"})
	case !functionName.MatchString(name):
		k.add(Finding{Rule: "name-pattern", Path: path + ".function.name", ID: id, Error: "Invalid '" + path + ".function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", Fix: "use letters, digits, _ and - in a tool's name, at most 64"})
	}
	_, text := fn["arguments"].(string)
	_, obj := fn["arguments"].(map[string]any)
	if text == obj || text == (k.f.Dialect == Ollama) {
		want := "a string"
		if k.f.Dialect == Ollama {
			want = "an object"
		}
		k.add(Finding{Rule: "arguments", Path: path + ".function.arguments", ID: id, Error: "Invalid type for '" + path + ".function.arguments': expected " + want + ".", Fix: "send the arguments as " + want})
	}
}

func (k *chatChecker) result(path string, m map[string]any) {
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
	case k.in && len(mine) > 0:
		k.open[mine[0]].answered = true
		k.byID[id] = mine[1:]
	case k.in && known:
		k.add(Finding{Rule: "duplicate-result", Path: path + ".tool_call_id", ID: id, Error: "Duplicate tool call id " + id + " in tool results", Fix: "send one result for each call"})
	default:
		k.add(Finding{Rule: "orphan-result", Path: path, ID: id, Error: "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.", Fix: "leave the result out, or send the assistant message with its call directly before it"})
	}
	k.content(path, m["content"], true)
}

// answered reports the calls that stay without a result.
func (k *chatChecker) answered() {
	for _, o := range k.open {
		if o.answered {
			continue
		}
		k.add(Finding{Rule: "unanswered-call", Path: o.path, ID: o.id, Error: "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: " + o.id, Fix: "send a result for it directly after the assistant message"})
	}
	k.open, k.byID, k.next = nil, nil, 0
}

// order looks at the order of the roles, where the dialect has one.
func (k *chatChecker) order(msgs []map[string]any) {
	switch k.f.Dialect {
	case Mistral:
		k.mistralOrder(msgs)
	case StrictAlternation:
		k.alternation(msgs)
	}
}

func (k *chatChecker) mistralOrder(msgs []map[string]any) {
	for i := 1; i < len(msgs); i++ {
		if prev, role := str(msgs[i-1]["role"]), str(msgs[i]["role"]); prev == "tool" && (role == "user" || role == "system") || role == "system" && prev == "assistant" {
			k.add(Finding{Rule: "order", Path: atIndex("messages", i), Error: "Unexpected role '" + role + "' after role '" + prev + "'", Fix: "put an assistant message in between"})
		}
	}
	if n := len(msgs); n > 0 && str(msgs[n-1]["role"]) == "assistant" && msgs[n-1]["prefix"] != true {
		k.add(Finding{Rule: "last-role", Path: atIndex("messages", n-1), Error: "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant", Fix: "end with a user message or a result"})
	}
}

func (k *chatChecker) alternation(msgs []map[string]any) {
	prev := ""
	for i, m := range msgs {
		role := str(m["role"])
		path := atIndex("messages", i)
		calls, _ := m["tool_calls"].([]any)
		switch {
		case role == "system" && i > 0:
			k.add(Finding{Rule: "system-first", Path: path, Error: "System message must be at the beginning.", Fix: "send one system message, in front"})
		case role == "user" && prev == "user", role == "assistant" && prev == "assistant" && len(calls) == 0:
			k.add(Finding{Rule: "alternation", Path: path, Error: "After the optional system message, conversation roles must alternate user and assistant roles except for tool calls and results.", Fix: "make neighbours of one role one message"})
		case role == "assistant" && prev == "":
			k.add(Finding{Rule: "user-first", Path: path, Error: "Conversation roles must alternate user/assistant/user/assistant/...", Fix: "begin with a user message"})
		}
		if role == "user" || role == "assistant" && len(calls) == 0 {
			prev = role
		} else if role == "assistant" && prev == "" {
			prev = "none"
		}
	}
}

package wire

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Check returns the reasons for which the provider would refuse a request. The
// rules: json, shape, messages-empty, role, orphan-result, unanswered-call,
// duplicate-result, duplicate-call, content-missing, calls-empty, id-missing,
// id-length, id-pattern, name-pattern, author-pattern, arguments,
// result-content, audio-model, system-model, reasoning-missing, order,
// last-role, system-first, alternation, user-first, split-calls, text-calls. Which of
// them apply depends on the Dialect and on SplitCalls.
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
	if name, ok := m["name"].(string); ok && role != "tool" && !chatName.MatchString(name) {
		k.add("author-pattern", path+".name", "")
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
		k.content(path, m["content"], false)
	case "assistant":
		k.assistant(path, m)
	case "tool":
		if k.f.Dialect == Gemma {
			k.role(path, role)
			return
		}
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
	k.add("role", path+".role", "", "role", role)
}

// content checks the content of a message, or of a result.
func (k *chatChecker) content(path string, v any, result bool) {
	path += ".content"
	switch v := v.(type) {
	case string:
	case nil:
		k.add("content-missing", path, "")
	case []any:
		for i, p := range k.objects(path, v) {
			if str(p["type"]) == "input_audio" && !result && k.f.Dialect == OpenAI && !k.f.Audio && !strings.Contains(k.model, "audio") {
				k.add("audio-model", atIndex(path, i), "", "message", strings.TrimSuffix(path, ".content"))
			}
			if kind := str(p["type"]); result && kind != "text" && (k.f.Dialect == OpenAI || k.f.Dialect == DeepSeek) {
				k.add("result-content", atIndex(path, i), "", "content", path)
			} else if kind == "" {
				k.shape(atIndex(path, i)+".type", "a string that names the type of the part")
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
		k.add("calls-empty", path+".tool_calls", "")
	}
	if len(calls) == 0 {
		if m["content"] != nil || m["refusal"] == nil && m["audio"] == nil {
			k.content(path, m["content"], false)
		}
		if k.f.Dialect == Mistral && m["content"] == "" && m["prefix"] != true {
			k.add("content-missing/mistral", path+".content", "")
		}
		return
	}
	if m["content"] != nil {
		k.content(path, m["content"], false)
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
		k.add("name-pattern/empty", path+".function.name", id)
	case !functionName.MatchString(name):
		k.add("name-pattern", path+".function.name", id)
	}
	_, text := fn["arguments"].(string)
	_, obj := fn["arguments"].(map[string]any)
	if text == obj || text == (k.f.Dialect == Ollama) {
		want := "a string"
		if k.f.Dialect == Ollama {
			want = "an object"
		}
		k.add("arguments", path+".function.arguments", id, "want", want)
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
	case k.inTurn && len(mine) > 0:
		k.open[mine[0]].answered = true
		k.byID[id] = mine[1:]
	case k.inTurn && known:
		k.add("duplicate-result", path+".tool_call_id", id)
	default:
		k.add("orphan-result", path, id)
	}
	k.content(path, m["content"], true)
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

package provider

import "strings"

// A Rule says what a model answers to what it reads.
type Rule struct {
	// If is a text that the end of the request holds: the newest message, or the results
	// since the newest answer. Empty: any.
	If string

	// Then is the answer.
	Then Answer
}

// Rules returns a model for Options.Answer that follows rules. The first rule that applies to a
// request gives the answer; where none does, the text is "ok". The model looks at the request
// alone, and remembers nothing, so that it serves any number of conversations at once, and
// answers a request that is sent again as before.
func Rules(rules ...Rule) func(Request) Answer {
	return func(r Request) Answer {
		text := newest(r)
		for _, rule := range rules {
			if strings.Contains(text, rule.If) {
				return rule.Then
			}
		}
		return Answer{Blocks: []Block{Text("ok")}}
	}
}

// newest returns the texts at the end of a request that are not the model's.
func newest(r Request) string {
	var all object
	if err := decode(r.Body, &all); err != nil {
		return ""
	}
	var messages []any
	for _, key := range []string{"messages", "input", "contents"} {
		if text, ok := all[key].(string); ok {
			return text
		}
		messages = append(messages, list(all[key])...)
	}
	var texts []string
	for i := len(messages) - 1; i >= 0; i-- {
		m := obj(messages[i])
		role, kind := str(m["role"]), str(m["type"])
		isResult := role == "tool" || strings.HasSuffix(kind, "_output")
		if role == "assistant" || role == "model" || !isResult && role == "" && kind != "message" || len(texts) > 0 && !isResult {
			break
		}
		texts = append(texts, strings.Join(textsIn(nil, m), "\n"))
		if !isResult {
			break
		}
	}
	return strings.Join(texts, "\n")
}

// textsIn appends all strings in a value.
func textsIn(texts []string, v any) []string {
	switch v := v.(type) {
	case string:
		texts = append(texts, v)
	case []any:
		for _, e := range v {
			texts = textsIn(texts, e)
		}
	case object:
		for _, key := range sortedKeys(v) {
			texts = textsIn(texts, v[key])
		}
	}
	return texts
}

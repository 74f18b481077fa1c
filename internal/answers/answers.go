// Package answers recognises what a model writes in place of the summary that it was
// asked for, and the texts in the items of a provider.
package answers

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// Kind says what a text is if it is no summary: "a tool call", "nothing but reasoning" or
// "an answer to the conversation". Otherwise it is empty. The text has no space around it
// and is not empty.
//
// An answer is recognised by how it begins, and by a question at its end, in English. A
// text with a heading or a list, that speaks of "the user", or that says at its beginning
// that it is a summary, is never taken for one.
func Kind(s string) string {
	switch rest := WithoutReasoning(s); {
	case rest == "":
		return "nothing but reasoning"
	case isCall(rest):
		return "a tool call"
	case !isStructured(rest) && !isAboutUser(rest) && (hasPrefixFold(rest, openers) || isQuestion(rest)):
		return "an answer to the conversation"
	}
	return ""
}

// reasoning are the tags that models put around reasoning in a text.
var reasoning = [...]string{"think", "thinking", "thought", "reasoning", "analysis", "scratchpad"}

// WithoutReasoning returns a text without the reasoning at its start that stands in tags.
// The opening tag may be missing, since some models get it with the prompt. If the last of
// these tags is not closed, nothing follows it.
func WithoutReasoning(s string) string {
next:
	for {
		s = strings.TrimSpace(s)
		for _, tag := range reasoning {
			if n := opening(s, tag); n > 0 {
				i, end := closing(s[n:], tag)
				if i < 0 {
					return ""
				}
				s = s[n+end:]
				continue next
			}
		}
		for _, tag := range reasoning[:3] {
			if i, end := closing(s, tag); i >= 0 && !strings.Contains(strings.ToLower(s[:i]), "<"+tag) {
				s = s[end:]
				continue next
			}
		}
		return s
	}
}

// opening returns the length of the opening tag that a text begins with, or 0.
func opening(s, tag string) int {
	if !hasPrefixFold(s, []string{"<" + tag}) {
		return 0
	}
	switch rest := s[len(tag)+1:]; {
	case strings.HasPrefix(rest, ">"):
		return len(tag) + 2
	case strings.HasPrefix(rest, " "):
		if i := strings.IndexAny(rest, "<>\n"); i > 0 && rest[i] == '>' {
			return len(tag) + 1 + i + 1
		}
	}
	return 0
}

// closing returns where the first closing tag stands in a text, and where it ends. The
// first is -1 if there is none.
func closing(s, tag string) (at, end int) {
	mark := "</" + tag + ">"
	for i := 0; i+len(mark) <= len(s); i++ {
		n := strings.IndexByte(s[i:], '<')
		if n < 0 || i+n+len(mark) > len(s) {
			break
		}
		if i += n; strings.EqualFold(s[i:i+len(mark)], mark) {
			return i, i + len(mark)
		}
	}
	return -1, 0
}

// callMarks begin a tool call that a model writes as text.
var callMarks = []string{
	"<tool_call", "<tool_use", "<function_call", "<function=", "<function>", "<invoke", "<|tool_call", "<|python_tag|>",
	"[tool_calls]", "[tool_call]", "<|channel|>commentary to=", "```tool_code", "```tool_call", "<use_mcp_tool>",
}

// isCall reports whether a text is a tool call: it begins with a mark of one, or a line
// after a text without structure does, or it is a JSON object, or a list of them, with a
// name and arguments.
func isCall(s string) bool {
	if hasPrefixFold(s, callMarks) {
		return true
	}
	for line := range strings.Lines(s) {
		if hasPrefixFold(strings.TrimLeft(line, " \t"), callMarks) && !isStructured(s) {
			return true
		}
	}
	body := withoutFence(s)
	if !strings.HasPrefix(body, "{") && !strings.HasPrefix(body, "[") {
		return false
	}
	var many []map[string]json.RawMessage
	if json.Unmarshal([]byte(body), &many) != nil {
		var one map[string]json.RawMessage
		if json.Unmarshal([]byte(body), &one) != nil {
			return false
		}
		many = []map[string]json.RawMessage{one}
	}
	for _, call := range many {
		isOne := false
		for _, name := range []string{"name", "tool", "tool_name", "function", "recipient_name"} {
			for _, args := range []string{"arguments", "parameters", "input", "args", "tool_input"} {
				isOne = isOne || call[name] != nil && call[args] != nil
			}
		}
		if !isOne && call["tool_calls"] == nil && call["function_call"] == nil {
			return false
		}
	}
	return len(many) > 0
}

// withoutFence returns a text without the code fence around it.
func withoutFence(s string) string {
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(s, "```json"), "```"), "```"))
}

// IsJSON reports whether a text is one JSON value, which may be in a code fence and after
// reasoning in tags.
func IsJSON(s string) bool { return json.Valid([]byte(withoutFence(WithoutReasoning(s)))) }

// isAboutUser reports whether a text speaks of the user, or calls itself a summary.
func isAboutUser(s string) bool {
	s = strings.ToLower(s)
	return strings.Contains(s, "the user") || strings.Contains(s[:min(len(s), 100)], "summary")
}

// openers begin an answer in which a model does the work, or talks to the user, instead of
// summarising.
var openers = []string{
	"i'll ", "i’ll ", "i will ", "let me ", "let's ", "let’s ", "i'm going to ", "i’m going to ", "i am going to ",
	"sure,", "sure!", "sure.", "certainly,", "certainly!", "of course,", "of course!", "absolutely,", "absolutely!", "you're right", "you’re right", "you are right",
	"thanks for ", "thank you for ", "great question", "good question",
	"i'm sorry", "i’m sorry", "i am sorry", "sorry,", "i apologize", "i apologise",
	"i can't ", "i can’t ", "i cannot ", "i'm unable", "i’m unable", "i am unable", "as an ai",
	"hello,", "hello!", "hi,", "hi!", "hi there",
}

func hasPrefixFold(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if len(s) >= len(p) && strings.EqualFold(s[:len(p)], p) {
			return true
		}
	}
	return false
}

// isQuestion reports whether a text is one paragraph that ends with a question to the
// reader.
func isQuestion(s string) bool {
	if !strings.HasSuffix(s, "?") || strings.Contains(s, "\n") {
		return false
	}
	last := s[:len(s)-1]
	if i := strings.LastIndexAny(last, ".!?"); i >= 0 {
		last = last[i+1:]
	}
	last = " " + strings.ToLower(last) + " "
	return strings.Contains(last, " you ") || strings.Contains(last, " your ") || strings.Contains(last, " should i ") || strings.Contains(last, " shall i ")
}

// isStructured reports whether a line of a text is a heading or an item of a list.
func isStructured(s string) bool {
	for line := range strings.Lines(s) {
		line = strings.TrimLeft(line, " \t")
		rest := strings.TrimLeft(line, "0123456789")
		switch {
		case strings.HasPrefix(line, "#"), strings.HasPrefix(line, "- "), strings.HasPrefix(line, "* "), strings.HasPrefix(line, "• "), strings.HasPrefix(line, "**"):
			return true
		case len(rest) < len(line) && (strings.HasPrefix(rest, ". ") || strings.HasPrefix(rest, ") ")):
			return true
		}
	}
	return false
}

// Texts returns the texts in a JSON value, those in fields named text or content, in no order. It
// reports false if the value is not valid.
func Texts(item string) (texts []string, ok bool) {
	var v any
	if json.Unmarshal([]byte(item), &v) != nil {
		return nil, false
	}
	var in func(v any)
	in = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				if text, ok := inner.(string); !ok {
					in(inner)
				} else if key == "text" || key == "content" {
					texts = append(texts, text)
				}
			}
		case []any:
			for _, inner := range v {
				in(inner)
			}
		}
	}
	in(v)
	return texts, true
}

// Fault returns an error if items can be no compaction that a model has made, in a format of a
// provider. There is none without a format.
func Fault(format, model string, items []string) error {
	switch {
	case format == "" && model == "" && len(items) == 0:
		return nil
	case format == "":
		return errors.New("the summary has native items without a format")
	case len(items) == 0:
		return fmt.Errorf("the summary has no native items of format %.40q", format)
	}
	for i, item := range items {
		if !strictjson.IsObject(item) {
			return fmt.Errorf("native item %d of the summary is not a JSON object", i)
		}
	}
	return nil
}

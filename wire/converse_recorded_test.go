package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/wire"
)

// The requests are also valid with ResultsAlone.
func TestConverse_RecordedRequestsSurviveDecodeAndEncode(t *testing.T) {
	var c replay
	eachConverse(t, func(t *testing.T, f wire.Converse, r recording) {
		if c.refuses(t, f, r, nil) { // many for their model or their media
			return
		}
		in := survives(t, f, r, func(body []byte) []string { return converseCanon(t, body) })
		f = wire.Converse{ResultsAlone: true, Cache: true}
		assert.Empty(t, f.Check(mustEncode(t, f, restored(t, in), r.ID).Body()), r.ID)
	})
	c.report(t)
}

// converseCanon returns what two equivalent requests have in common, with one
// line for each block and its role. They may differ in
//
//   - neighbouring messages of one role, which may be merged;
//   - ids that were replaced one for one;
//   - the names of documents;
//   - the status of results, since success is the default.
func converseCanon(t *testing.T, body []byte) []string {
	t.Helper()
	var all struct {
		System   []map[string]any
		Messages []struct {
			Role    string
			Content []map[string]any
		}
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	require.NoError(t, d.Decode(&all))
	var lines []string
	ids := map[any]string{}
	add := func(role string, block map[string]any) {
		if doc, ok := block["document"].(map[string]any); ok {
			delete(doc, "name")
		}
		if use, ok := block["toolUse"].(map[string]any); ok {
			ids[use["toolUseId"]] = fmt.Sprint("call ", len(ids))
			use["toolUseId"] = ids[use["toolUseId"]]
		}
		if result, ok := block["toolResult"].(map[string]any); ok {
			result["toolUseId"] = ids[result["toolUseId"]]
			if result["status"] == "success" {
				delete(result, "status")
			}
			for _, part := range result["content"].([]any) {
				part := part.(map[string]any)
				if doc, ok := part["document"].(map[string]any); ok {
					delete(doc, "name")
				}
			}
		}
		line, err := json.Marshal(block)
		require.NoError(t, err)
		lines = append(lines, role+" "+string(line))
	}
	for _, block := range all.System {
		add("system", block)
	}
	for _, m := range all.Messages {
		for _, block := range m.Content {
			add(m.Role, block)
		}
	}
	return lines
}

// A converseBody is a request in which a mutant breaks a rule.
type converseBody map[string]any

func (b converseBody) messages() []any { m, _ := b["messages"].([]any); return m }

func converseContent(m any) []any { c, _ := m.(map[string]any)["content"].([]any); return c }

// find returns the first block of a kind in a message of a role: its message,
// its index there and its value.
func (b converseBody) find(role, kind string) (m map[string]any, i int, value map[string]any) {
	for _, msg := range b.messages() {
		msg := msg.(map[string]any)
		for i, block := range converseContent(msg) {
			if value, ok := block.(map[string]any)[kind].(map[string]any); ok && (role == "" || msg["role"] == role) && value["type"] == nil {
				return msg, i, value
			}
		}
	}
	return nil, 0, nil
}

func (b converseBody) insert(m map[string]any, i int, block map[string]any) {
	m["content"] = slices.Insert(slices.Clone(converseContent(m)), i, any(block))
}

func (b converseBody) last() map[string]any {
	return b.messages()[len(b.messages())-1].(map[string]any)
}

// onFound returns a mutant that changes the first block of a kind.
func onFound(role, kind string, change func(b converseBody, m map[string]any, i int, value map[string]any) bool) func(map[string]any) bool {
	return func(body map[string]any) bool {
		m, i, value := converseBody(body).find(role, kind)
		return m != nil && change(body, m, i, value)
	}
}

// setFound returns a mutant that changes a field of the first block of a kind.
func setFound(role, kind, key string, value any) func(map[string]any) bool {
	return onFound(role, kind, func(_ converseBody, _ map[string]any, _ int, block map[string]any) bool {
		return set(block, key, value)
	})
}

// beforeResult returns a mutant that puts a block before the first result. block gets the
// id of the call.
func beforeResult(block func(id any) map[string]any) func(map[string]any) bool {
	return onFound("user", "toolResult", func(b converseBody, m map[string]any, i int, r map[string]any) bool {
		b.insert(m, i, block(r["toolUseId"]))
		return true
	})
}

// ends returns a mutant that appends blocks to the last message.
func ends(blocks ...any) func(map[string]any) bool {
	return func(body map[string]any) bool {
		m := converseBody(body).last()
		return set(m, "content", append(converseContent(m), blocks...))
	}
}

func renameConverse(to string) func(map[string]any) bool {
	return onFound("assistant", "toolUse", func(b converseBody, _ map[string]any, _ int, use map[string]any) bool {
		_, _, result := b.find("user", "toolResult")
		return result["toolUseId"] == use["toolUseId"] && set(use, "toolUseId", to) && set(result, "toolUseId", to)
	})
}

func converseSaid(role string) map[string]any {
	return map[string]any{"role": role, "content": []any{converseText}}
}

// starts returns a mutant that puts a message before the others.
func starts(role string) func(map[string]any) bool {
	return func(body map[string]any) bool {
		return set(body, "messages", append([]any{converseSaid(role)}, converseBody(body).messages()...))
	}
}

var converseText = map[string]any{"text": "x"}

func converseDocument(name string) map[string]any {
	return map[string]any{"document": map[string]any{"name": name, "format": "txt", "source": map[string]any{"bytes": "eA=="}}}
}

const converseMessages = list("messages")

var converseMutants = []mutant{
	{"shape", func(body map[string]any) bool {
		converseBody(body).insert(converseBody(body).last(), 0, map[string]any{})
		return true
	}},
	{"shape", func(body map[string]any) bool { return set(body, "system", "Be brief.") }},
	{"shape", func(body map[string]any) bool { return set(converseBody(body).last(), "content", "Hi") }},
	{"messages-empty", converseMessages.empty()},
	{"role", starts("system")},
	{"user-first", starts("assistant")},
	{"alternation", converseMessages.append(converseSaid("user"))},
	{"last-role", converseMessages.append(converseSaid("assistant"))},
	{"content-empty", converseMessages.set(isRole("user"), "content", []any{})},
	{"blank-text", ends(map[string]any{"text": " \n"})},
	{"blank-text", func(body map[string]any) bool { return set(body, "system", []any{map[string]any{"text": ""}}) }},
	{"block-role", onFound("assistant", "toolUse", func(b converseBody, _ map[string]any, _ int, use map[string]any) bool {
		b.insert(b.messages()[0].(map[string]any), 0, map[string]any{"toolUse": use})
		return true
	})},
	{"block-role", onFound("assistant", "reasoningContent", func(b converseBody, _ map[string]any, _ int, r map[string]any) bool {
		return ends(map[string]any{"reasoningContent": r})(b)
	})},
	{"unanswered-call", onFound("user", "toolResult", func(_ converseBody, m map[string]any, i int, _ map[string]any) bool {
		converseContent(m)[i] = converseText
		return true
	})},
	{"unanswered-call", onFound("assistant", "toolUse", func(_ converseBody, m map[string]any, _ int, use map[string]any) bool {
		more := map[string]any{"toolUseId": "more", "name": use["name"], "input": use["input"]}
		return set(m, "content", append(converseContent(m), map[string]any{"toolUse": more}))
	})},
	{"orphan-result", beforeResult(func(any) map[string]any {
		return map[string]any{"toolResult": map[string]any{"toolUseId": "nobody", "content": []any{}}}
	})},
	{"duplicate-result", beforeResult(func(id any) map[string]any {
		return map[string]any{"toolResult": map[string]any{"toolUseId": id, "content": []any{converseText}}}
	})},
	{"duplicate-call", onFound("assistant", "toolUse", func(b converseBody, m map[string]any, i int, _ map[string]any) bool {
		b.insert(m, i, converseContent(m)[i].(map[string]any))
		return true
	})},
	{"results-first", beforeResult(func(any) map[string]any { return converseText })},
	{"results-alone", onFound("user", "toolResult", func(_ converseBody, m map[string]any, _ int, _ map[string]any) bool {
		return set(m, "content", append(converseContent(m), converseText))
	})},
	{"error-empty", onFound("user", "toolResult", func(_ converseBody, _ map[string]any, _ int, r map[string]any) bool {
		return set(r, "status", "error") && set(r, "content", []any{})
	})},
	{"status", setFound("user", "toolResult", "status", "done")},
	{"id-pattern", renameConverse("a b")},
	{"id-pattern", renameConverse("")},
	{"id-pattern", renameConverse(strings.Repeat("x", 65))},
	{"name-pattern", setFound("assistant", "toolUse", "name", "mcp.tool")},
	{"input", setFound("assistant", "toolUse", "input", "{}")},
	{"result-json", setFound("user", "toolResult", "content", []any{map[string]any{"json": []any{}}})},
	{"reasoning-unsigned", onFound("assistant", "reasoningContent", func(_ converseBody, _ map[string]any, _ int, r map[string]any) bool {
		text, ok := r["reasoningText"].(map[string]any)
		delete(text, "signature")
		return ok
	})},
	{"reasoning-last", onFound("assistant", "reasoningContent", func(_ converseBody, m map[string]any, i int, _ map[string]any) bool {
		_, _, use := (converseBody{"messages": []any{m}}).find("", "toolUse")
		return use == nil && set(m, "content", converseContent(m)[:i+1])
	})},
	{"document-name", setFound("user", "document", "name", "report_1.pdf")},
	{"document-name", ends(converseText, converseDocument("a  b"))},
	{"document-duplicate", onFound("user", "document", func(b converseBody, m map[string]any, i int, _ map[string]any) bool {
		return set(m, "content", append(converseContent(m), converseContent(m)[i]))
	})},
	{"document-text", func(body map[string]any) bool {
		ends(converseDocument("a"))(body)
		content := converseContent(converseBody(body).last())
		_, isText := content[0].(map[string]any)["text"]
		return !isText && len(content) == 2
	}},
	{"document-text", onFound("user", "document", func(_ converseBody, m map[string]any, _ int, _ map[string]any) bool {
		return set(m, "content", slices.DeleteFunc(converseContent(m), func(b any) bool { return b.(map[string]any)["text"] != nil }))
	})},
	{"tool-config", func(body map[string]any) bool {
		_, ok := body["toolConfig"]
		delete(body, "toolConfig")
		_, _, use := converseBody(body).find("", "toolUse")
		return ok && use != nil
	}},
}

// eachConverse calls f with each recorded request of this format.
func eachConverse(t *testing.T, f func(t *testing.T, format wire.Converse, r recording)) {
	eachRecording(t, "bedrock", func(r recording) { f(t, wire.Converse{}, r) })
}

func TestConverse_CheckNamesTheBrokenRule(t *testing.T) {
	checkMutants(t, converseMutants, eachConverse, func(_ wire.Converse, r recording, _ map[string]any, rule string) (wire.Converse, bool) {
		f := wire.Converse{ResultsAlone: rule == "results-alone"}
		return f, len(f.Check(r.Request)) == 0
	})
}

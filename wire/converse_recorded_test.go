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

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// Check finds nothing wrong with recorded requests that Bedrock accepted, and
// Encode writes an equivalent request from what Decode reads of them, also with
// ResultsAlone.
func TestConverse_RecordedRequestsSurviveDecodeAndEncode(t *testing.T) {
	accepted, refused, named := 0, 0, 0
	eachRecording(t, "bedrock", func(r recording) {
		found := wire.Converse{}.Check(r.Request)
		if r.Status != 200 {
			refused++
			if len(found) > 0 {
				named++
			}
			t.Logf("%d %s: %v %.200s", r.Status, r.ID, found, r.Error)
			return
		}
		accepted++
		assert.Empty(t, found, r.ID)
		in := mustDecode(t, wire.Converse{}, r.Request, r.ID)
		h, err := convo.Restore(asSent(in.Messages), &convo.Options{Roles: convo.Relaxed()})
		require.NoError(t, err, r.ID)
		out := mustEncode(t, wire.Converse{}, h.Snapshot(), r.ID)
		assert.Empty(t, wire.Converse{}.Check(out.Body()), r.ID)
		assert.Equal(t, converseCanon(t, r.Request), converseCanon(t, out.Body()), r.ID)

		f := wire.Converse{ResultsAlone: true, Cache: true}
		out = mustEncode(t, f, h.Snapshot(), r.ID)
		assert.Empty(t, f.Check(out.Body()), r.ID)
	})
	t.Logf("%d accepted, %d refused, %d of them for a rule of Check; the others for their model or their media", accepted, refused, named)
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
func onFound(role, kind string, change func(b converseBody, m map[string]any, i int, value map[string]any) bool) func(converseBody) bool {
	return func(b converseBody) bool {
		m, i, value := b.find(role, kind)
		return m != nil && change(b, m, i, value)
	}
}

// always returns a mutant that works for every request.
func always(change func(b converseBody)) func(converseBody) bool {
	return func(b converseBody) bool { change(b); return true }
}

func renameConverse(to string) func(converseBody) bool {
	return onFound("assistant", "toolUse", func(b converseBody, _ map[string]any, _ int, use map[string]any) bool {
		_, _, result := b.find("user", "toolResult")
		if result["toolUseId"] != use["toolUseId"] {
			return false
		}
		use["toolUseId"], result["toolUseId"] = to, to
		return true
	})
}

var converseText = map[string]any{"text": "x"}

func converseDocument(name string) map[string]any {
	return map[string]any{"document": map[string]any{"name": name, "format": "txt", "source": map[string]any{"bytes": "eA=="}}}
}

// converseMutants break one rule each in a valid request. They return false if
// they do not apply to the request.
var converseMutants = []struct {
	rule  string
	f     wire.Converse
	spoil func(b converseBody) bool
}{
	{rule: "shape", spoil: always(func(b converseBody) { b.insert(b.last(), 0, map[string]any{}) })},
	{rule: "shape", spoil: always(func(b converseBody) { b["system"] = "Be brief." })},
	{rule: "shape", spoil: always(func(b converseBody) { b.last()["content"] = "Hi" })},
	{rule: "messages-empty", spoil: always(func(b converseBody) { b["messages"] = []any{} })},
	{rule: "role", spoil: always(func(b converseBody) {
		b["messages"] = append([]any{map[string]any{"role": "system", "content": []any{converseText}}}, b.messages()...)
	})},
	{rule: "user-first", spoil: always(func(b converseBody) {
		b["messages"] = append([]any{map[string]any{"role": "assistant", "content": []any{converseText}}}, b.messages()...)
	})},
	{rule: "alternation", spoil: always(func(b converseBody) {
		b["messages"] = append(b.messages(), map[string]any{"role": "user", "content": []any{converseText}})
	})},
	{rule: "last-role", spoil: always(func(b converseBody) {
		b["messages"] = append(b.messages(), map[string]any{"role": "assistant", "content": []any{converseText}})
	})},
	{rule: "content-empty", spoil: always(func(b converseBody) { b.messages()[0].(map[string]any)["content"] = []any{} })},
	{rule: "blank-text", spoil: always(func(b converseBody) {
		b.last()["content"] = append(converseContent(b.last()), map[string]any{"text": " \n"})
	})},
	{rule: "blank-text", spoil: always(func(b converseBody) { b["system"] = []any{map[string]any{"text": ""}} })},
	{rule: "block-role", spoil: onFound("assistant", "toolUse", func(b converseBody, _ map[string]any, _ int, use map[string]any) bool {
		b.insert(b.messages()[0].(map[string]any), 0, map[string]any{"toolUse": use})
		return true
	})},
	{rule: "block-role", spoil: onFound("assistant", "reasoningContent", func(b converseBody, _ map[string]any, _ int, r map[string]any) bool {
		b.last()["content"] = append(converseContent(b.last()), map[string]any{"reasoningContent": r})
		return true
	})},
	{rule: "unanswered-call", spoil: onFound("user", "toolResult", func(_ converseBody, m map[string]any, i int, _ map[string]any) bool {
		converseContent(m)[i] = converseText
		return true
	})},
	{rule: "unanswered-call", spoil: onFound("assistant", "toolUse", func(_ converseBody, m map[string]any, _ int, use map[string]any) bool {
		more := map[string]any{"toolUseId": "more", "name": use["name"], "input": use["input"]}
		m["content"] = append(converseContent(m), map[string]any{"toolUse": more})
		return true
	})},
	{rule: "orphan-result", spoil: onFound("user", "toolResult", func(b converseBody, m map[string]any, i int, _ map[string]any) bool {
		b.insert(m, i, map[string]any{"toolResult": map[string]any{"toolUseId": "nobody", "content": []any{}}})
		return true
	})},
	{rule: "duplicate-result", spoil: onFound("user", "toolResult", func(b converseBody, m map[string]any, i int, r map[string]any) bool {
		b.insert(m, i, map[string]any{"toolResult": map[string]any{"toolUseId": r["toolUseId"], "content": []any{converseText}}})
		return true
	})},
	{rule: "duplicate-call", spoil: onFound("assistant", "toolUse", func(b converseBody, m map[string]any, i int, _ map[string]any) bool {
		b.insert(m, i, converseContent(m)[i].(map[string]any))
		return true
	})},
	{rule: "results-first", spoil: onFound("user", "toolResult", func(b converseBody, m map[string]any, i int, _ map[string]any) bool {
		b.insert(m, i, converseText)
		return true
	})},
	{rule: "results-alone", f: wire.Converse{ResultsAlone: true}, spoil: onFound("user", "toolResult", func(_ converseBody, m map[string]any, _ int, _ map[string]any) bool {
		m["content"] = append(converseContent(m), converseText)
		return true
	})},
	{rule: "error-empty", spoil: onFound("user", "toolResult", func(_ converseBody, _ map[string]any, _ int, r map[string]any) bool {
		r["status"], r["content"] = "error", []any{}
		return true
	})},
	{rule: "status", spoil: onFound("user", "toolResult", func(_ converseBody, _ map[string]any, _ int, r map[string]any) bool {
		r["status"] = "done"
		return true
	})},
	{rule: "id-pattern", spoil: renameConverse("a b")},
	{rule: "id-pattern", spoil: renameConverse("")},
	{rule: "id-pattern", spoil: renameConverse(strings.Repeat("x", 65))},
	{rule: "name-pattern", spoil: onFound("assistant", "toolUse", func(_ converseBody, _ map[string]any, _ int, use map[string]any) bool {
		use["name"] = "mcp.tool"
		return true
	})},
	{rule: "input", spoil: onFound("assistant", "toolUse", func(_ converseBody, _ map[string]any, _ int, use map[string]any) bool {
		use["input"] = "{}"
		return true
	})},
	{rule: "result-json", spoil: onFound("user", "toolResult", func(_ converseBody, _ map[string]any, _ int, r map[string]any) bool {
		r["content"] = []any{map[string]any{"json": []any{}}}
		return true
	})},
	{rule: "reasoning-unsigned", spoil: onFound("assistant", "reasoningContent", func(_ converseBody, _ map[string]any, _ int, r map[string]any) bool {
		text, ok := r["reasoningText"].(map[string]any)
		delete(text, "signature")
		return ok
	})},
	{rule: "reasoning-last", spoil: onFound("assistant", "reasoningContent", func(_ converseBody, m map[string]any, i int, _ map[string]any) bool {
		if _, _, use := (converseBody{"messages": []any{m}}).find("", "toolUse"); use != nil {
			return false
		}
		m["content"] = converseContent(m)[:i+1]
		return true
	})},
	{rule: "document-name", spoil: onFound("user", "document", func(_ converseBody, _ map[string]any, _ int, doc map[string]any) bool {
		doc["name"] = "report_1.pdf"
		return true
	})},
	{rule: "document-name", spoil: always(func(b converseBody) {
		b.last()["content"] = append(converseContent(b.last()), converseText, converseDocument("a  b"))
	})},
	{rule: "document-duplicate", spoil: onFound("user", "document", func(b converseBody, m map[string]any, i int, _ map[string]any) bool {
		m["content"] = append(converseContent(m), converseContent(m)[i])
		return true
	})},
	{rule: "document-text", spoil: func(b converseBody) bool {
		b.last()["content"] = append(converseContent(b.last()), converseDocument("a"))
		_, isText := converseContent(b.last())[0].(map[string]any)["text"]
		return !isText && len(converseContent(b.last())) == 2
	}},
	{rule: "document-text", spoil: onFound("user", "document", func(_ converseBody, m map[string]any, _ int, _ map[string]any) bool {
		m["content"] = slices.DeleteFunc(converseContent(m), func(b any) bool { return b.(map[string]any)["text"] != nil })
		return true
	})},
	{rule: "tool-config", spoil: func(b converseBody) bool {
		_, ok := b["toolConfig"]
		delete(b, "toolConfig")
		_, _, use := b.find("", "toolUse")
		return ok && use != nil
	}},
}

// If one rule is broken in a recorded request, Check reports that rule, and
// rarely any other.
func TestConverse_CheckNamesTheBrokenRule(t *testing.T) {
	c := tally{}
	eachRecording(t, "bedrock", func(r recording) {
		for _, m := range converseMutants {
			if c.enough(m.rule) {
				continue
			}
			var body converseBody
			require.NoError(t, json.Unmarshal(r.Request, &body))
			if r.Status != 200 || len(m.f.Check(r.Request)) > 0 || !m.spoil(body) {
				continue
			}
			c.look(t, m.f, m.rule, r.ID, body)
		}
	})
	var rules []string
	for _, m := range converseMutants {
		rules = append(rules, m.rule)
	}
	c.verdict(t, rules...)
}

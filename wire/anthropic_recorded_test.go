package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/wire"
)

// notes matches a message with the role system.
var notes = regexp.MustCompile(`"role": ?"system"`)

// Nothing of a recorded request is lost.
func TestAnthropic_RecordedRequestsSurviveDecodeAndEncode(t *testing.T) {
	var c replay
	eachAnthropic(t, func(t *testing.T, _ wire.Anthropic, r recording) {
		if c.refuses(t, wire.Anthropic{}, r, nil) {
			return
		}
		model, _ := readJSON(t, r.Request)["model"].(string)
		bare := wire.Anthropic{Betas: true}
		if notes.Match(r.Request) {
			bare.Model = model // which takes them
		}
		for _, f := range []wire.Anthropic{bare, {Model: model, Betas: true, Cache: true, UserLast: true}} {
			in := survives(t, f, r, func(body []byte) []string { return anthropicCanon(t, body, !f.Cache) })
			assert.Empty(t, in.Lost, r.ID)
		}
	})
	c.report(t)
}

// anthropicCanon returns what two equivalent requests have in common. They may
// differ in ids that were replaced one for one; in neighbouring messages of one
// role, which the API merges; in content and system text as a string or as one
// text block, and the content of a result as null or as an empty array; in
// is_error: false; in cache marks, unless marks is set, and in a ttl of 5m in them; in
// the order of fields; in white space at the end of an assistant message; and in blank
// text.
func anthropicCanon(t *testing.T, request []byte, marks bool) []string {
	t.Helper()
	all := readJSON(t, request)
	ids, n := map[any]string{}, 0
	lines := []string{}
	say := func(role string, b map[string]any) {
		if mark, ok := b["cache_control"].(map[string]any); !marks {
			delete(b, "cache_control")
		} else if ok && mark["ttl"] == "5m" {
			delete(mark, "ttl")
		}
		switch b["type"] {
		case "text":
			if strings.TrimSpace(b["text"].(string)) == "" {
				return
			}
		case "tool_use":
			ids[b["id"]] = fmt.Sprint("id", n)
			n++
			b["id"] = ids[b["id"]]
		case "tool_result":
			b["tool_use_id"] = ids[b["tool_use_id"]]
			if b["is_error"] == false {
				delete(b, "is_error")
			}
			switch list := contentList(b["content"]); len(list) {
			case 0:
				delete(b, "content")
			default:
				b["content"] = list
			}
		}
		raw, err := json.Marshal(b)
		require.NoError(t, err)
		lines = append(lines, role+" "+string(raw))
	}
	for _, b := range contentList(all["system"]) {
		say("system", b.(map[string]any))
	}
	for _, m := range all["messages"].([]any) {
		m := m.(map[string]any)
		list := contentList(m["content"])
		if last := len(list) - 1; m["role"] == "assistant" && last >= 0 {
			if b := list[last].(map[string]any); b["type"] == "text" {
				b["text"] = strings.TrimSpace("." + b["text"].(string))[1:]
			}
		}
		for _, b := range list {
			say(m["role"].(string), b.(map[string]any))
		}
	}
	return lines
}

func contentList(content any) []any {
	switch content := content.(type) {
	case []any:
		return content
	case string:
		return []any{map[string]any{"type": "text", "text": content}}
	}
	return nil
}

func readJSON(t testing.TB, data []byte) map[string]any {
	t.Helper()
	var all map[string]any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	require.NoError(t, dec.Decode(&all))
	return all
}

// anthropicMutants break one rule each in a valid request. They return false if they do
// not apply to the request.
var anthropicMutants = map[string]func(r *mutable) bool{
	"shape":          func(r *mutable) bool { r.msgs[0]["content"] = 5; return true },
	"messages-empty": func(r *mutable) bool { r.msgs = nil; return true },
	"role":           func(r *mutable) bool { return r.append("tool", "x") },
	"content-empty": func(r *mutable) bool {
		r.msgs = slices.Insert(r.msgs, 0, map[string]any{"role": "user", "content": []any{}})
		return true
	},
	"blank-text":  func(r *mutable) bool { return r.userSays(map[string]any{"type": "text", "text": " \n"}) },
	"system-type": func(r *mutable) bool { r.all["system"] = []any{map[string]any{"type": "image"}}; return true },
	"system-place": func(r *mutable) bool {
		r.msgs = slices.Insert(r.msgs, 0, map[string]any{"role": "system", "content": "x"})
		return true
	},
	"block-place": func(r *mutable) bool {
		return r.userSays(map[string]any{"type": "thinking", "thinking": "x", "signature": "x"})
	},
	"id-missing": func(r *mutable) bool { return r.rename("") },
	"id-pattern": func(r *mutable) bool { return r.rename("a b") },
	"name-pattern": func(r *mutable) bool {
		_, _, b := r.find("tool_use")
		return b != nil && set(b, "name", "a b")
	},
	"input": func(r *mutable) bool {
		_, _, b := r.find("tool_use")
		return b != nil && set(b, "input", "x")
	},
	"unanswered-call": func(r *mutable) bool {
		m, i, b := r.find("tool_result")
		if b == nil {
			return false
		}
		list := slices.Delete(slices.Clone(contentList(m["content"])), i, i+1)
		if len(list) == 0 {
			list = contentList("x")
		}
		return set(m, "content", list)
	},
	"orphan-result": func(r *mutable) bool {
		m := r.msgs[0]
		return set(m, "content", slices.Insert(contentList(m["content"]), 0, any(map[string]any{"type": "tool_result", "tool_use_id": "x"})))
	},
	"duplicate-result": func(r *mutable) bool { return r.double("tool_result") },
	"duplicate-call":   func(r *mutable) bool { return r.double("tool_use") },
	"result-order": func(r *mutable) bool {
		m, _, b := r.find("tool_result")
		return b != nil && set(m, "content", append(contentList("x"), contentList(m["content"])...))
	},
	"text-after-call": func(r *mutable) bool {
		m, _, b := r.find("tool_use")
		return b != nil && set(m, "content", append(contentList(m["content"]), contentList("x")...))
	},
	"error-result": func(r *mutable) bool {
		_, _, b := r.find("tool_result")
		return b != nil && set(b, "is_error", true) && set(b, "content", []any{})
	},
	"unanswered-server-call": func(r *mutable) bool {
		for i, m := range r.msgs {
			list := contentList(m["content"])
			if i+1 == len(r.msgs) || contentList(r.msgs[i+1]["content"])[0].(map[string]any)["type"] != "text" {
				continue
			}
			for j, b := range list {
				kind := b.(map[string]any)["type"].(string)
				if m["role"] == "assistant" && strings.HasSuffix(kind, "_tool_result") {
					return set(m, "content", slices.Delete(slices.Clone(list), j, j+1))
				}
			}
		}
		return false
	},
	"orphan-server-result": func(r *mutable) bool {
		for _, m := range r.msgs {
			if list := contentList(m["content"]); m["role"] == "assistant" && len(list) > 0 && list[0].(map[string]any)["type"] == "server_tool_use" {
				return set(m, "content", slices.Insert(slices.Clone(list), 0, any(map[string]any{"type": "web_search_tool_result", "tool_use_id": "x", "content": []any{}})))
			}
		}
		return false
	},
	"media-type": func(r *mutable) bool {
		return r.userSays(map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": "image/tiff", "data": "eA=="}})
	},
	"thinking-signature": func(r *mutable) bool {
		_, _, b := r.find("thinking")
		delete(b, "signature")
		return b != nil
	},
	"thinking-last": func(r *mutable) bool {
		r.msgs = append(r.msgs, map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "redacted_thinking", "data": "x"}}})
		return true
	},
	"thinking-first": func(r *mutable) bool {
		first := -1
		for i := len(r.msgs) - 1; i >= 0; i-- {
			list := contentList(r.msgs[i]["content"])
			if r.msgs[i]["role"] == "assistant" {
				first = i
			} else if slices.ContainsFunc(list, func(b any) bool { return b.(map[string]any)["type"] != "tool_result" }) {
				break
			}
		}
		if first < 0 {
			return false
		}
		r.all["thinking"] = map[string]any{"type": "enabled", "budget_tokens": 1024}
		m := r.msgs[first]
		return set(m, "content", slices.DeleteFunc(contentList(m["content"]), func(b any) bool { return b.(map[string]any)["type"] == "thinking" }))
	},
	"cache-place": func(r *mutable) bool {
		_, _, b := r.find("thinking")
		return b != nil && set(b, "cache_control", map[string]any{"type": "ephemeral"})
	},
	"cache-count": func(r *mutable) bool {
		for range 5 {
			r.userSays(map[string]any{"type": "text", "text": "x", "cache_control": map[string]any{"type": "ephemeral"}})
		}
		return true
	},
	"trailing-space": func(r *mutable) bool {
		r.all["model"] = "claude-haiku-4-5" // which takes an assistant message at the end
		return r.all["thinking"] == nil && r.append("assistant", "x ")
	},
	"last-role": func(r *mutable) bool { return r.all["thinking"] == nil && r.append("assistant", "x") },
}

// A mutable is a request in which a mutant breaks a rule.
type mutable struct {
	all  map[string]any
	msgs []map[string]any
}

func (r *mutable) append(role, text string) bool {
	r.msgs = append(r.msgs, map[string]any{"role": role, "content": text})
	return true
}

// userSays appends a block to the last user message.
func (r *mutable) userSays(b map[string]any) bool {
	for _, m := range slices.Backward(r.msgs) {
		if m["role"] == "user" {
			return set(m, "content", append(contentList(m["content"]), b))
		}
	}
	return false
}

// find returns the first block of a type: its message, its index there, and
// itself.
func (r *mutable) find(kind string) (map[string]any, int, map[string]any) {
	for _, m := range r.msgs {
		for i, b := range contentList(m["content"]) {
			if b := b.(map[string]any); b["type"] == kind {
				return m, i, b
			}
		}
	}
	return nil, 0, nil
}

func (r *mutable) double(kind string) bool {
	m, i, b := r.find(kind)
	return b != nil && set(m, "content", slices.Insert(slices.Clone(contentList(m["content"])), i, any(b)))
}

// rename gives another id to the first call and to all blocks with its id.
func (r *mutable) rename(to string) bool {
	_, _, b := r.find("tool_use")
	if b == nil {
		return false
	}
	from := b["id"]
	for _, m := range r.msgs {
		for _, b := range contentList(m["content"]) {
			b := b.(map[string]any)
			for _, key := range []string{"id", "tool_use_id"} {
				if b[key] == from {
					b[key] = to
				}
			}
		}
	}
	return true
}

// eachAnthropic calls f with each recorded request of this format.
func eachAnthropic(t *testing.T, f func(t *testing.T, format wire.Anthropic, r recording)) {
	eachRecording(t, "anthropic", func(r recording) { f(t, wire.Anthropic{}, r) })
}

func TestAnthropic_CheckNamesTheBrokenRule(t *testing.T) {
	var mutants []mutant
	for rule, spoil := range anthropicMutants {
		mutants = append(mutants, mutant{rule, func(body map[string]any) bool {
			m := &mutable{all: body}
			for _, msg := range body["messages"].([]any) {
				m.msgs = append(m.msgs, msg.(map[string]any))
			}
			return spoil(m) && set(body, "messages", append(make([]map[string]any, 0), m.msgs...))
		}})
	}
	checkMutants(t, mutants, eachAnthropic, func(_ wire.Anthropic, _ recording, _ map[string]any, rule string) (wire.Anthropic, bool) {
		return wire.Anthropic{UserLast: rule == "last-role"}, true
	})
}

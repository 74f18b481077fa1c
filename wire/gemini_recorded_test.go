package wire_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// geminiOf returns the format for the model of a recorded request.
func geminiOf(r recording) wire.Gemini {
	_, model, _ := strings.Cut(r.URL, "/models/")
	model, _, _ = strings.Cut(model, ":")
	return wire.Gemini{Model: model}
}

// Check finds nothing wrong with recorded requests that Gemini accepted, and
// Encode writes an equivalent request from what Decode reads of them, for the
// same model and for an unknown one.
func TestGemini_RecordedRequestsSurviveDecodeAndEncode(t *testing.T) {
	accepted, refused, named := 0, 0, 0
	eachRecording(t, "gemini", func(r recording) {
		f := geminiOf(r)
		require.NotEmpty(t, f.Model)
		found := f.Check(r.Request)
		if r.Status != 200 {
			refused++
			if len(found) > 0 {
				named++
			}
			t.Logf("%d %s: %v %.160s", r.Status, r.ID, found, r.Error)
			return
		}
		accepted++
		assert.Empty(t, found, r.ID)
		for _, f := range []wire.Gemini{f, {}} {
			in := mustDecode(t, f, r.Request, r.ID)
			assert.Empty(t, in.Lost, r.ID)
			h, err := convo.Restore(convo.NewSnapshot(in.Messages), &convo.Options{Roles: convo.Relaxed()})
			require.NoError(t, err, r.ID)
			out := mustEncode(t, f, h.Snapshot(), r.ID)
			assert.Empty(t, geminiOf(r).Check(out.Body()), "%s: %s", r.ID, out.Body())
			want, got := geminiCanon(t, r.Request), geminiCanon(t, out.Body())
			assert.Equal(t, want, got, r.ID)
		}
	})
	t.Logf("%d accepted; %d refused, %d of them for a rule of Check", accepted, refused, named)
	assert.Positive(t, accepted)
}

// geminiCanon returns what two equivalent requests have in common, with one
// line for each run of contents of one role. They may differ in keys in
// camelCase or snake_case; in the role of the system text; in whether contents
// of one role are merged; in blank text; in the field for the text of a
// response; in the alphabet of base64; in media inside a result or after it,
// with a line of text that names the tool; in a first call with or without the
// signature that skips validation; and in a marker instead of a blank first
// text of the user.
func geminiCanon(t testing.TB, body []byte) []string {
	t.Helper()
	all := geminiCamel(body)
	var out []string
	role := ""
	if s, ok := all["systemInstruction"].(map[string]any); ok {
		out = append(out, "system:"+geminiPartsCanon(s))
	}
	for _, c := range all["contents"].([]any) {
		c := c.(map[string]any)
		line := geminiPartsCanon(c)
		if line != "" && c["role"] != role {
			role, _ = c["role"].(string)
			out = append(out, role+":")
		}
		if line != "" {
			out[len(out)-1] += line
		}
	}
	return out
}

func geminiPartsCanon(content map[string]any) string {
	var line strings.Builder
	for _, p := range content["parts"].([]any) {
		p := p.(map[string]any)
		sign, _ := p["thoughtSignature"].(string)
		if sign != "" && sign != geminiSkip {
			sign = " signed " + sign
		} else {
			sign = ""
		}
		delete(p, "thoughtSignature")
		call, _ := p["functionCall"].(map[string]any)
		result, _ := p["functionResponse"].(map[string]any)
		switch {
		case p["text"] != nil:
			text := p["text"].(string)
			if strings.TrimSpace(text) == "" || strings.Contains(text, " of the result of ") || text == geminiEarlier {
				continue
			}
			if p["thought"] == true {
				text = "(thought) " + text
			}
			line.WriteString(" text " + text + sign)
		case call != nil:
			args, _ := json.Marshal(call["args"])
			line.WriteString(fmt.Sprintf(" call %v %v %s%s", call["id"], call["name"], args, sign))
		case result != nil:
			line.WriteString(fmt.Sprintf(" result %v %v %s", result["id"], result["name"], geminiResponseCanon(result["response"].(map[string]any))))
			if inside, ok := result["parts"]; ok {
				line.WriteString(geminiPartsCanon(map[string]any{"parts": inside}))
			}
		default:
			raw, _ := json.Marshal(p)
			line.WriteString(" " + strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(string(raw)) + sign)
		}
	}
	return line.String()
}

func geminiResponseCanon(r map[string]any) string {
	for _, key := range []string{"output", "result", "error"} {
		if text, ok := r[key].(string); ok && len(r) == 1 {
			return "text " + text
		}
	}
	raw, _ := json.Marshal(r)
	return string(raw)
}

const geminiEarlier = "[The earlier part of this conversation is not shown.]"

// geminiSkip is base64 for "skip_thought_signature_validator".
const geminiSkip = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="

// geminiCamel decodes a request, with the keys of parts in camelCase.
func geminiCamel(body []byte) map[string]any {
	var all map[string]any
	if json.Unmarshal(body, &all) != nil {
		return nil
	}
	keys := map[string]string{
		"system_instruction": "systemInstruction", "function_call": "functionCall", "function_response": "functionResponse",
		"thought_signature": "thoughtSignature", "inline_data": "inlineData", "file_data": "fileData", "mime_type": "mimeType", "file_uri": "fileUri",
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for _, key := range slices.Collect(maps.Keys(v)) {
				if to := keys[key]; to != "" {
					v[to] = v[key]
					delete(v, key)
				}
			}
			for key, e := range v {
				if key != "args" && key != "response" {
					walk(e)
				}
			}
		}
	}
	walk(all)
	return all
}

// A geminiMutant is a request with one thing wrong.
type geminiMutant struct {
	rule  string
	spoil func(c []any) ([]any, bool) // changes contents; false: the mutant does not apply to the request
}

func geminiPartsOf(content any) []any { p, _ := content.(map[string]any)["parts"].([]any); return p }

func geminiField(part any, key string) map[string]any {
	m, _ := part.(map[string]any)[key].(map[string]any)
	return m
}

// geminiIndex returns the first content with a part that has the field, -1:
// none.
func geminiIndex(contents []any, key string) int {
	return slices.IndexFunc(contents, func(c any) bool {
		return slices.ContainsFunc(geminiPartsOf(c), func(p any) bool { return geminiField(p, key) != nil })
	})
}

// geminiFirst changes the first content with a part that has the field.
func geminiFirst(key string, change func(content map[string]any, part any) bool) func([]any) ([]any, bool) {
	return func(c []any) ([]any, bool) {
		i := geminiIndex(c, key)
		if i < 0 {
			return nil, false
		}
		parts := geminiPartsOf(c[i])
		k := slices.IndexFunc(parts, func(p any) bool { return geminiField(p, key) != nil })
		return c, change(c[i].(map[string]any), parts[k])
	}
}

func geminiMap(kv ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i].(string)] = kv[i+1]
	}
	return m
}

func geminiSaid(role, text string) any {
	return geminiMap("role", role, "parts", []any{geminiMap("text", text)})
}

var geminiMutants = []geminiMutant{
	{"contents-empty", func([]any) ([]any, bool) { return []any{}, true }},
	{"shape", func(c []any) ([]any, bool) {
		geminiPartsOf(c[0])[0].(map[string]any)["text"] = 7
		return c, true
	}},
	{"role", func(c []any) ([]any, bool) {
		c[0].(map[string]any)["role"] = "tool"
		return c, true
	}},
	{"parts-empty", func(c []any) ([]any, bool) { return append(c, geminiMap("role", "user", "parts", []any{})), true }},
	{"part-empty", func(c []any) ([]any, bool) {
		m := c[0].(map[string]any)
		m["parts"] = append(geminiPartsOf(m), geminiMap())
		return c, true
	}},
	{"part-data", func(c []any) ([]any, bool) {
		geminiPartsOf(c[0])[0].(map[string]any)["inlineData"] = geminiMap("mimeType", "image/png", "data", "eA==")
		return c, true
	}},
	{"part-role", func(c []any) ([]any, bool) {
		return append(c, geminiMap("role", "user", "parts", []any{geminiMap("functionCall", geminiMap("name", "f"))})), true
	}},
	{"name-missing", geminiFirst("functionCall", func(_ map[string]any, p any) bool {
		delete(geminiField(p, "functionCall"), "name")
		return true
	})},
	{"name-missing", geminiFirst("functionResponse", func(_ map[string]any, p any) bool {
		geminiField(p, "functionResponse")["name"] = ""
		return true
	})},
	{"args", geminiFirst("functionCall", func(_ map[string]any, p any) bool {
		geminiField(p, "functionCall")["args"] = "{}"
		return true
	})},
	{"response", geminiFirst("functionResponse", func(_ map[string]any, p any) bool {
		geminiField(p, "functionResponse")["response"] = []any{"text"}
		return true
	})},
	{"unanswered-call", func(c []any) ([]any, bool) { // the whole content is gone
		i := geminiIndex(c, "functionResponse")
		if i < 0 {
			return nil, false
		}
		return slices.Delete(c, i, i+1), true
	}},
	{"unanswered-call", geminiFirst("functionResponse", func(m map[string]any, _ any) bool { // one of several
		parts := geminiPartsOf(m)
		m["parts"] = parts[1:]
		return len(parts) > 1
	})},
	{"duplicate-result", geminiFirst("functionResponse", func(m map[string]any, p any) bool {
		m["parts"] = append(geminiPartsOf(m), p)
		return true
	})},
	{"orphan-result", geminiFirst("functionResponse", func(m map[string]any, _ any) bool {
		m["parts"] = append(geminiPartsOf(m), geminiMap("functionResponse", geminiMap("id", "nobody", "name", "nothing", "response", geminiMap())))
		return true
	})},
	{"orphan-result", func(c []any) ([]any, bool) { // its call is gone
		i := geminiIndex(c, "functionCall")
		if i < 0 || i+1 >= len(c) || geminiIndex(c[i+1:], "functionCall") == 0 {
			return nil, false
		}
		c[i] = geminiSaid("model", "I will.")
		return c, true
	}},
	{"result-id", geminiFirst("functionResponse", func(_ map[string]any, p any) bool {
		geminiField(p, "functionResponse")["id"] = "nobody"
		return true
	})},
	{"split-results", func(c []any) ([]any, bool) {
		i := geminiIndex(c, "functionResponse")
		if i < 0 || len(geminiPartsOf(c[i])) < 2 {
			return nil, false
		}
		parts := geminiPartsOf(c[i])
		c[i].(map[string]any)["parts"] = parts[:1]
		return slices.Insert(c, i+1, any(geminiMap("role", "user", "parts", parts[1:]))), true
	}},
	{"late-result", func(c []any) ([]any, bool) {
		i := geminiIndex(c, "functionResponse")
		if i < 0 {
			return nil, false
		}
		return slices.Insert(c, i, geminiSaid("user", "Well?")), true
	}},
	{"mixed-results", geminiFirst("functionResponse", func(m map[string]any, _ any) bool {
		m["parts"] = append(geminiPartsOf(m), geminiMap("text", "Well?"))
		return true
	})},
	{"call-first", func(c []any) ([]any, bool) {
		i := geminiIndex(c, "functionCall")
		if i < 0 {
			return nil, false
		}
		return c[i:], true
	}},
	{"last-role", func(c []any) ([]any, bool) { return append(c, geminiSaid("model", "Well.")), true }},
	{"signature-missing", func(c []any) ([]any, bool) {
		for i, content := range slices.Backward(c) { // in the current turn
			for _, p := range geminiPartsOf(content) {
				if geminiField(p, "functionCall") != nil {
					signed := p.(map[string]any)["thoughtSignature"] != nil
					delete(p.(map[string]any), "thoughtSignature")
					return c, signed && geminiIndex(c[i-1:i], "functionCall") < 0
				}
				if geminiField(p, "functionResponse") == nil {
					return nil, false
				}
			}
		}
		return nil, false
	}},
}

// If one rule is broken in a recorded request, Check reports that rule, and
// rarely any other.
func TestGemini_CheckNamesTheBrokenRule(t *testing.T) {
	c := tally{}
	eachRecording(t, "gemini", func(r recording) {
		f := geminiOf(r)
		for _, m := range geminiMutants {
			if c.enough(m.rule) {
				continue
			}
			old := strings.HasPrefix(f.Model, "gemini-2")
			if r.Status != 200 || old && (m.rule == "result-id" || m.rule == "signature-missing") {
				continue
			}
			body := geminiCamel(r.Request)
			contents, ok := m.spoil(body["contents"].([]any))
			if !ok {
				continue
			}
			body["contents"] = contents
			g := f
			if m.rule == "mixed-results" { // Gemini 3.0 and older models accept this
				if old {
					continue
				}
				g.Model = "gemini-3.6-flash"
			}
			c.look(t, g, m.rule, r.ID, body)
		}
	})
	var rules []string
	for _, m := range geminiMutants {
		rules = append(rules, m.rule)
	}
	c.verdict(t, rules...)
}

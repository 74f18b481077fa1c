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

	"github.com/seed-c1b73e60/convo/wire"
)

// geminiOf returns the format for the model of a recorded request.
func geminiOf(r recording) wire.Gemini {
	_, model, _ := strings.Cut(r.URL, "/models/")
	model, _, _ = strings.Cut(model, ":")
	return wire.Gemini{Model: model}
}

// Recorded requests are encoded for the same model and for an unknown one.
func TestGemini_RecordedRequestsSurviveDecodeAndEncode(t *testing.T) {
	var c replay
	eachRecording(t, "gemini", func(r recording) {
		f := geminiOf(r)
		require.NotEmpty(t, f.Model)
		if c.refuses(t, f, r, nil) {
			return
		}
		for _, g := range []wire.Gemini{f, {}} {
			in := survives(t, g, r, func(body []byte) []string {
				assert.Empty(t, f.Check(body), r.ID)
				return geminiCanon(t, body)
			})
			assert.Empty(t, in.Lost, r.ID)
		}
	})
	c.report(t)
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
func geminiFirst(key string, change func(content map[string]any, part any) bool) func(map[string]any) bool {
	return geminiContents(key, func(c []any, i int) []any {
		parts := geminiPartsOf(c[i])
		k := slices.IndexFunc(parts, func(p any) bool { return geminiField(p, key) != nil })
		if !change(c[i].(map[string]any), parts[k]) {
			return nil
		}
		return c
	})
}

// geminiContents changes the contents, where the first with a part that has the field is
// at i. If change returns nil, the mutant does not apply.
func geminiContents(key string, change func(c []any, i int) []any) func(map[string]any) bool {
	return func(body map[string]any) bool {
		c := body["contents"].([]any)
		i := geminiIndex(c, key)
		if i < 0 {
			return false
		}
		c = change(c, i)
		return c != nil && set(body, "contents", c)
	}
}

// geminiSet changes a value in the first field of a kind, and removes it if value is nil.
func geminiSet(field, key string, value any) func(map[string]any) bool {
	return geminiFirst(field, func(_ map[string]any, p any) bool {
		if set(geminiField(p, field), key, value); value == nil {
			delete(geminiField(p, field), key)
		}
		return true
	})
}

// geminiAdd adds a part to the first content with a result, or a copy of the result if it
// is nil.
func geminiAdd(part any) func(map[string]any) bool {
	return geminiFirst("functionResponse", func(m map[string]any, p any) bool {
		if part != nil {
			p = part
		}
		return set(m, "parts", append(geminiPartsOf(m), p))
	})
}

func geminiMap(kv ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i].(string)] = kv[i+1]
	}
	return m
}

func geminiSaid(role, text string) map[string]any {
	return geminiMap("role", role, "parts", []any{geminiMap("text", text)})
}

// isContent fits all contents.
func isContent(map[string]any) bool { return true }

// geminiStart returns a mutant that changes a field of the first part.
func geminiStart(key string, value any) func(map[string]any) bool {
	return func(body map[string]any) bool {
		return set(geminiPartsOf(body["contents"].([]any)[0])[0].(map[string]any), key, value)
	}
}

const geminiList = list("contents")

var geminiMutants = []mutant{
	{"contents-empty", geminiList.empty()},
	{"shape", geminiStart("text", 7)},
	{"role", geminiList.set(isContent, "role", "tool")},
	{"parts-empty", geminiList.append(geminiMap("role", "user", "parts", []any{}))},
	{"part-empty", geminiList.item(isContent, func(c []any, _ int, m map[string]any) []any {
		m["parts"] = append(geminiPartsOf(m), geminiMap())
		return c
	})},
	{"part-data", geminiStart("inlineData", geminiMap("mimeType", "image/png", "data", dot))},
	{"part-role", geminiList.append(geminiMap("role", "user", "parts", []any{geminiMap("functionCall", geminiMap("name", "f"))}))},
	{"name-missing", geminiSet("functionCall", "name", nil)},
	{"name-missing", geminiSet("functionResponse", "name", "")},
	{"args", geminiSet("functionCall", "args", "{}")},
	{"response", geminiSet("functionResponse", "response", []any{"text"})},
	{"unanswered-call", geminiContents("functionResponse", func(c []any, i int) []any { return slices.Delete(c, i, i+1) })},
	{"unanswered-call", geminiFirst("functionResponse", func(m map[string]any, _ any) bool { // one of several
		parts := geminiPartsOf(m)
		return set(m, "parts", parts[1:]) && len(parts) > 1
	})},
	{"duplicate-result", geminiAdd(nil)},
	{"orphan-result", geminiAdd(geminiMap("functionResponse", geminiMap("id", "nobody", "name", "nothing", "response", geminiMap())))},
	{"orphan-result", geminiContents("functionCall", func(c []any, i int) []any { // its call is gone
		if i+1 >= len(c) || geminiIndex(c[i+1:], "functionCall") == 0 {
			return nil
		}
		c[i] = geminiSaid("model", "I will.")
		return c
	})},
	{"result-id", geminiSet("functionResponse", "id", "nobody")},
	{"split-results", geminiContents("functionResponse", func(c []any, i int) []any {
		parts := geminiPartsOf(c[i])
		if len(parts) < 2 {
			return nil
		}
		c[i].(map[string]any)["parts"] = parts[:1]
		return slices.Insert(c, i+1, any(geminiMap("role", "user", "parts", parts[1:])))
	})},
	{"late-result", geminiContents("functionResponse", func(c []any, i int) []any { return slices.Insert(c, i, any(geminiSaid("user", "Well?"))) })},
	{"mixed-results", geminiAdd(geminiMap("text", "Well?"))},
	{"call-first", geminiContents("functionCall", func(c []any, i int) []any { return c[i:] })},
	{"last-role", geminiList.append(geminiSaid("model", "Well."))},
	{"signature-missing", func(body map[string]any) bool {
		c := body["contents"].([]any)
		for i, content := range slices.Backward(c) { // in the current turn
			for _, p := range geminiPartsOf(content) {
				if geminiField(p, "functionCall") != nil {
					signed := p.(map[string]any)["thoughtSignature"] != nil
					delete(p.(map[string]any), "thoughtSignature")
					return signed && geminiIndex(c[i-1:i], "functionCall") < 0
				}
				if geminiField(p, "functionResponse") == nil {
					return false
				}
			}
		}
		return false
	}},
}

// eachGemini calls f with each recorded request of this format, with its keys in camelCase.
func eachGemini(t *testing.T, f func(t *testing.T, format wire.Gemini, r recording)) {
	eachRecording(t, "gemini", func(r recording) {
		r.Request = []byte(jsonOf(geminiCamel(r.Request)))
		f(t, geminiOf(r), r)
	})
}

func TestGemini_CheckNamesTheBrokenRule(t *testing.T) {
	checkMutants(t, geminiMutants, eachGemini, func(f wire.Gemini, _ recording, _ map[string]any, rule string) (wire.Gemini, bool) {
		old := strings.HasPrefix(f.Model, "gemini-2")
		if rule == "mixed-results" { // Gemini 3.0 and older models accept this
			f.Model = "gemini-3.6-flash"
		}
		return f, !old || rule != "result-id" && rule != "signature-missing" && rule != "mixed-results"
	})
}

package wire

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A ruleCase is a small request that breaks a rule.
type ruleCase struct {
	rule string // with the case of the error text after a slash, as in the table
	f    Format
	body string
}

// messages makes a request for the formats with a field messages.
func messages(list ...string) string { return `{"messages":[` + strings.Join(list, ",") + `]}` }

// items makes a request of OpenAI's Responses.
func items(list ...string) string { return `{"input":[` + strings.Join(list, ",") + `]}` }

// contents makes a request of Gemini.
func contents(list ...string) string { return `{"contents":[` + strings.Join(list, ",") + `]}` }

func ruleCases() []ruleCase {
	const long = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	chat, mistral, strict := OpenAIChat{}, OpenAIChat{Dialect: Mistral}, OpenAIChat{Dialect: StrictAlternation}
	const (
		hi       = `{"role":"user","content":"hi"}`
		says     = `{"role":"assistant","content":"x"}`
		chatCall = `{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
		chatTool = `{"role":"tool","tool_call_id":"c1","content":"r"}`
	)
	call := func(old, to string) string { return strings.Replace(chatCall, old, to, 1) }
	cases := []ruleCase{
		{"json", chat, `[]`},
		{"shape", chat, messages(`{"role":"user","content":7}`)},
		{"messages-empty", chat, messages()},
		{"role", chat, messages(`{"role":"human","content":"hi"}`)},
		{"user-first", strict, messages(says, hi)},
		{"alternation", strict, messages(hi, hi)},
		{"order", mistral, messages(hi, says, `{"role":"system","content":"s"}`)},
		{"last-role", mistral, messages(hi, says)},
		{"system-first", strict, messages(hi, `{"role":"system","content":"s"}`)},
		{"system-model", chat, `{"model":"o1-mini","messages":[{"role":"system","content":"s"}]}`},
		{"content-missing", chat, messages(`{"role":"user"}`)},
		{"content-missing/mistral", mistral, messages(hi, `{"role":"assistant","content":""}`, hi)},
		{"author-pattern", chat, messages(`{"role":"user","name":"a b","content":"hi"}`)},
		{"author-pattern/length", chat, messages(`{"role":"user","name":"` + long + `","content":"hi"}`)},
		{"content-type", chat, messages(`{"role":"system","content":[{"type":"file","file":{"file_id":"f"}}]}`)},
		{"content-type/image", chat, messages(hi, `{"role":"assistant","content":[{"type":"image_url","image_url":{"url":"https://x/y.png"}}]}`)},
		{"audio-model", chat, messages(`{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"aGk=","format":"mp3"}}]}`)},
		{"calls-empty", chat, messages(hi, `{"role":"assistant","content":"x","tool_calls":[]}`)},
		{"id-missing", chat, messages(hi, call("c1", ""), strings.Replace(chatTool, "c1", "", 1))},
		{"id-length", chat, messages(hi, call("c1", long), strings.Replace(chatTool, "c1", long, 1))},
		{"id-pattern", mistral, messages(hi, chatCall, chatTool)},
		{"name-pattern", chat, messages(hi, call(`"f"`, `"a b"`), chatTool)},
		{"name-pattern/empty", chat, messages(hi, call(`"f"`, `""`), chatTool)},
		{"arguments", chat, messages(hi, call(`"{}"`, `{}`), chatTool)},
		{"result-content", chat, messages(hi, chatCall, strings.Replace(chatTool, `"r"`, `[{"type":"image_url"}]`, 1))},
		{"unanswered-call", chat, messages(hi, chatCall)},
		{"orphan-result", chat, messages(hi, chatTool)},
		{"duplicate-call", chat, messages(hi, strings.Replace(chatCall, "[", `[{"id":"c1","type":"custom","custom":{"name":"f","input":""}},`, 1), chatTool)},
		{"duplicate-result", chat, messages(hi, chatCall, chatTool, chatTool)},
		{"reasoning-missing", OpenAIChat{Dialect: DeepSeek}, messages(hi, chatCall, chatTool)},
		{"split-calls", OpenAIChat{SplitCalls: true}, messages(hi, call(`"tool_calls"`, `"content":"x","tool_calls"`), chatTool)},
		{"text-calls", OpenAIChat{Dialect: Gemma}, messages(hi, chatCall, hi)},
	}

	responses := OpenAIResponses{}
	const (
		fn      = `{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`
		out     = `{"type":"function_call_output","call_id":"c1","output":"r"}`
		thought = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}`
	)
	cases = append(cases, []ruleCase{
		{"json", responses, `{`},
		{"shape", responses, items(`{"text":"x"}`)},
		{"input-empty", responses, items()},
		{"role", responses, items(`{"role":"tool","content":"x"}`)},
		{"content-missing", responses, items(`{"role":"user"}`)},
		{"content-type", responses, items(`{"role":"user","content":[{"type":"output_text","text":"x"}]}`)},
		{"media-type/image", responses, items(`{"role":"user","content":[{"type":"input_image","image_url":"data:image/tiff;base64,eA=="}]}`)},
		{"media-type/file", responses, items(`{"role":"user","content":[{"type":"input_file","file_data":"data:audio/mpeg;base64,eA=="}]}`)},
		{"id-missing", responses, items(`{"type":"function_call","name":"f","arguments":"{}"}`)},
		{"id-length", responses, items(strings.Replace(fn, "c1", long, 1), strings.Replace(out, "c1", long, 1))},
		{"item-id", responses, items(strings.Replace(fn, `"name"`, `"id":"x","name"`, 1), out)},
		{"item-id/length", responses, items(strings.Replace(fn, `"name"`, `"id":"fc_`+long+`","name"`, 1), out)},
		{"duplicate-item", responses, items(`{"role":"assistant","id":"msg_1","content":"x"}`, `{"role":"assistant","id":"msg_1","content":"x"}`)},
		{"not-stored", responses, `{"store":false,` + items(`{"type":"item_reference","id":"msg_1"}`)[1:]},
		{"name-pattern", responses, items(strings.Replace(fn, `"f"`, `"a b"`, 1), out)},
		{"arguments", responses, items(strings.Replace(fn, `"{}"`, `{}`, 1), out)},
		{"unanswered-call", responses, items(fn)},
		{"orphan-result", responses, items(out)},
		{"duplicate-call", responses, items(fn, fn, out)},
		{"duplicate-result", responses, items(fn, out, out)},
		{"between-calls", OpenAIResponses{Plain: true}, items(fn, says, out)},
		{"reasoning-alone", responses, items(thought)},
		{"reasoning-item", responses, items(thought, says)},
	}...)

	claude := Anthropic{}
	user := func(blocks string) string { return `{"role":"user","content":[` + blocks + `]}` }
	model := func(blocks string) string { return `{"role":"assistant","content":[` + blocks + `]}` }
	const (
		use    = `{"type":"tool_use","id":"a","name":"f","input":{}}`
		result = `{"type":"tool_result","tool_use_id":"a"}`
		think  = `{"type":"thinking","thinking":"t","signature":"s"}`
		mark   = `"cache_control":{"type":"ephemeral"}`
		marked = `{"type":"text","text":"x",` + mark + `}`
	)
	cases = append(cases, []ruleCase{
		{"json", claude, `null`},
		{"shape", claude, `{}`},
		{"messages-empty", claude, messages()},
		{"role", claude, messages(`{"role":"tool","content":"x"}`)},
		{"last-role", Anthropic{UserLast: true}, messages(hi, says)},
		{"trailing-space", claude, messages(hi, `{"role":"assistant","content":"x "}`)},
		{"system-type", claude, `{"system":[{"type":"image"}],` + messages(hi)[1:]},
		{"system-place", claude, messages(hi, `{"role":"system","content":"s"}`, hi)},
		{"content-empty", claude, messages(user(""))},
		{"blank-text", claude, messages(user(`{"type":"text","text":" "}`))},
		{"blank-text/empty", claude, messages(user(`{"type":"text","text":""}`))},
		{"block-place", claude, messages(user(think + `,{"type":"text","text":"x"}`))},
		{"media-type", claude, messages(user(`{"type":"image","source":{"type":"base64","media_type":"image/tiff"}}`))},
		{"id-missing", claude, messages(hi, model(`{"type":"tool_use","name":"f","input":{}}`))},
		{"id-pattern", claude, messages(hi, model(strings.Replace(use, `"a"`, `"a b"`, 1)), user(strings.Replace(result, `"a"`, `"a b"`, 1)))},
		{"name-pattern", claude, messages(hi, model(strings.Replace(use, `"f"`, `"a b"`, 1)), user(result))},
		{"input", claude, messages(hi, model(strings.Replace(use, `{}`, `7`, 1)), user(result))},
		{"container-missing", claude, messages(hi, model(`{"type":"server_tool_use","id":"s","name":"code_execution","input":{}},`+strings.Replace(use, `"input"`, `"caller":{"type":"code_execution_20260120","tool_id":"s"},"input"`, 1)), user(result))},
		{"tool-reference", claude, `{"tools":[{"name":"f"}],` + messages(hi, model(use), user(strings.Replace(result, `"a"`, `"a","content":[{"type":"tool_reference","tool_name":"g"}]`, 1)))[1:]},
		{"tool-reference/change", claude, `{"tools":[{"name":"f"}],` + messages(hi, `{"role":"system","content":[{"type":"tool_removal","tool":{"type":"tool_reference","name":"g"}}]}`)[1:]},
		{"error-result", claude, messages(hi, model(use), user(strings.Replace(result, `"a"`, `"a","is_error":true,"content":[{"type":"document"}]`, 1)))},
		{"error-result/empty", claude, messages(hi, model(use), user(strings.Replace(result, `"a"`, `"a","is_error":true`, 1)))},
		{"unanswered-call", claude, messages(hi, model(use))},
		{"orphan-result", claude, messages(user(result))},
		{"duplicate-call", claude, messages(hi, model(use+","+use), user(result))},
		{"duplicate-result", claude, messages(hi, model(use), user(result+","+result))},
		{"text-after-call", claude, messages(hi, model(use+`,{"type":"text","text":"x"}`), user(result))},
		{"result-order", claude, messages(hi, model(use), user(`{"type":"text","text":"x"},`+result))},
		{"unanswered-server-call", claude, messages(hi, model(`{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`), hi)},
		{"orphan-server-result", claude, messages(hi, model(`{"type":"web_search_tool_result","tool_use_id":"s"},{"type":"text","text":"x"}`))},
		{"thinking-signature", claude, messages(hi, model(`{"type":"thinking","thinking":"t"},{"type":"text","text":"x"}`))},
		{"thinking-last", claude, messages(hi, model(think))},
		{"thinking-first", claude, `{"thinking":{"type":"enabled"},` + messages(hi, model(use), user(result))[1:]},
		{"cache-place", claude, messages(hi, model(strings.Replace(think, "{", "{"+mark+",", 1)+`,{"type":"text","text":"x"}`))},
		{"cache-place/empty", claude, messages(user(strings.Replace(marked, `"x"`, `""`, 1)))},
		{"cache-count", claude, messages(user(strings.Repeat(marked+",", 4) + marked))},
		{"cache-order", claude, messages(user(marked + "," + strings.Replace(marked, `"ephemeral"`, `"ephemeral","ttl":"1h"`, 1)))},
	}...)

	gemini := Gemini{Model: "gemini-3-pro"}
	gUser := func(parts string) string { return `{"role":"user","parts":[` + parts + `]}` }
	gModel := func(parts string) string { return `{"role":"model","parts":[` + parts + `]}` }
	const (
		text = `{"text":"x"}`
		fc   = `{"functionCall":{"id":"a","name":"f"},"thoughtSignature":"s"}`
		fr   = `{"functionResponse":{"id":"a","name":"f"}}`
	)
	cases = append(cases, []ruleCase{
		{"json", gemini, `[]`},
		{"shape", gemini, contents(gUser(`{"text":7}`))},
		{"contents-empty", gemini, contents()},
		{"role", gemini, contents(`{"role":"tool","parts":[{"text":"x"}]}`)},
		{"call-first", gemini, contents(gModel(fc), gUser(fr))},
		{"last-role", gemini, contents(gUser(text), gModel(text))},
		{"parts-empty", gemini, contents(gUser(""))},
		{"part-empty", gemini, contents(gUser(`{}`))},
		{"part-data", gemini, contents(gUser(`{"text":"x","fileData":{}}`))},
		{"part-role", gemini, contents(gUser(fc))},
		{"name-missing", gemini, contents(gUser(text), gModel(strings.Replace(fc, `"f"`, `""`, 1)), gUser(fr))},
		{"args", gemini, contents(gUser(text), gModel(strings.Replace(fc, `"f"`, `"f","args":7`, 1)), gUser(fr))},
		{"response", gemini, contents(gUser(text), gModel(fc), gUser(strings.Replace(fr, `"f"`, `"f","response":7`, 1)))},
		{"unanswered-call", gemini, contents(gUser(text), gModel(fc), gUser(text))},
		{"orphan-result", gemini, contents(gUser(fr))},
		{"orphan-result/count", gemini, contents(gUser(text), gModel(fc), gUser(fr+","+strings.ReplaceAll(fr, `"a"`, `"b"`)))},
		{"duplicate-result", gemini, contents(gUser(text), gModel(fc), gUser(fr+","+fr))},
		{"split-results", gemini, contents(gUser(text), gModel(fc+","+fc), gUser(fr), gUser(fr))},
		{"late-result", gemini, contents(gUser(text), gModel(fc), gUser(text), gUser(fr))},
		{"mixed-results", Gemini{Model: "gemini-3.6-flash"}, contents(gUser(text), gModel(fc), gUser(fr+","+text))},
		{"result-id", gemini, contents(gUser(text), gModel(fc), gUser(strings.Replace(fr, `"a"`, `"b"`, 1)))},
		{"signature-missing", gemini, contents(gUser(text), gModel(`{"functionCall":{"id":"a","name":"f"}}`), gUser(fr))},
		{"cached-content", gemini, `{"cachedContent":"c","tool_config":{},` + contents(gUser(text))[1:]},
	}...)

	converse := Converse{}
	const (
		toolUse    = `{"toolUse":{"toolUseId":"a","name":"f","input":{}}}`
		toolResult = `{"toolResult":{"toolUseId":"a","content":[]}}`
		document   = `{"document":{"name":"D"}}`
		point      = `{"cachePoint":{"type":"default"}}`
	)
	cHi := user(text)
	return append(cases, []ruleCase{
		{"unanswered-server-call", converse, messages(cHi, model(`{"toolUse":{"toolUseId":"s","name":"f","input":{},"type":"server_tool_use"}}`), cHi)},
		{"json", converse, `7`},
		{"shape", converse, `{}`},
		{"messages-empty", converse, messages()},
		{"role", converse, messages(`{"role":"tool","content":[{"text":"x"}]}`)},
		{"user-first", converse, messages(model(text), cHi)},
		{"alternation", converse, messages(cHi, cHi)},
		{"last-role", converse, messages(cHi, model(text))},
		{"content-empty", converse, messages(user(""))},
		{"blank-text", converse, messages(user(`{"text":" "}`))},
		{"block-role", converse, messages(user(toolUse))},
		{"document-name", converse, messages(user(text + `,{"document":{"name":"a.pdf"}}`))},
		{"document-duplicate", converse, messages(user(text + "," + document + "," + document))},
		{"document-text", converse, messages(user(document))},
		{"id-pattern", converse, messages(cHi, model(strings.Replace(toolUse, `"a"`, `"a b"`, 1)), user(strings.Replace(toolResult, `"a"`, `"a b"`, 1)))},
		{"name-pattern", converse, messages(cHi, model(strings.Replace(toolUse, `"f"`, `"a b"`, 1)), user(toolResult))},
		{"input", converse, messages(cHi, model(strings.Replace(toolUse, `{}`, `7`, 1)), user(toolResult))},
		{"result-json", converse, messages(cHi, model(toolUse), user(strings.Replace(toolResult, `[]`, `[{"json":7}]`, 1)))},
		{"error-empty", converse, messages(cHi, model(toolUse), user(strings.Replace(toolResult, `[]`, `[],"status":"error"`, 1)))},
		{"status", converse, messages(cHi, model(toolUse), user(strings.Replace(toolResult, `[]`, `[],"status":"done"`, 1)))},
		{"tool-config", converse, `{"modelId":"m",` + messages(cHi, model(toolUse), user(toolResult))[1:]},
		{"unanswered-call", converse, messages(cHi, model(toolUse))},
		{"orphan-result", converse, messages(user(toolResult))},
		{"duplicate-call", converse, messages(cHi, model(toolUse+","+toolUse), user(toolResult))},
		{"duplicate-result", converse, messages(cHi, model(toolUse), user(toolResult+","+toolResult))},
		{"results-first", converse, messages(cHi, model(toolUse), user(text+","+toolResult))},
		{"results-alone", Converse{ResultsAlone: true}, messages(cHi, model(toolUse), user(toolResult+","+text))},
		{"reasoning-unsigned", converse, messages(cHi, model(`{"reasoningContent":{"reasoningText":{"text":"t"}}},`+text), cHi)},
		{"reasoning-last", converse, messages(cHi, model(text+`,{"reasoningContent":{"redactedContent":"x"}}`), cHi)},
		{"cache-count", converse, `{"system":[` + text + "," + point + `],` + messages(user(text + strings.Repeat(","+point, 4)))[1:]},
		{"cache-order", converse, `{"toolConfig":{"tools":[` + point + `]},` + messages(user(text + `,{"cachePoint":{"type":"default","ttl":"1h"}}`))[1:]},
	}...)
}

func formatOf(f Format) string {
	switch f.(type) {
	case OpenAIChat:
		return FormatOpenAIChat
	case OpenAIResponses:
		return FormatOpenAIResponses
	case Anthropic:
		return FormatAnthropic
	case Gemini:
		return FormatGemini
	}
	return FormatConverse
}

// errorText returns the error text of the table for a rule, which may have a
// case after a slash.
func errorText(format, name string) (text string, ok bool) {
	text, ok = textsOf[format].errors[name]
	if !ok {
		text = rules[name].error
	}
	return text, text != ""
}

// rulesIn returns the names of the rules for which a format has an error text, with their
// cases after a slash.
func rulesIn(format string) []string {
	names := slices.Collect(maps.Keys(textsOf[format].errors))
	for name, r := range rules {
		if r.error != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

var placeholder = regexp.MustCompile(`\\\{[a-z]+\\\}`)

// matchesText reports whether text is a template with its placeholders filled.
func matchesText(template, text string) bool {
	pattern := placeholder.ReplaceAllString(regexp.QuoteMeta(template), ".*")
	return regexp.MustCompile(`(?s)^` + pattern + `$`).MatchString(text)
}

var unfilled = regexp.MustCompile(`\{[a-z]+\}`)

func TestRules_EachIsFoundInASmallRequest(t *testing.T) {
	reached := make(map[string]bool)
	for _, c := range ruleCases() {
		name, _, _ := strings.Cut(c.rule, "/")
		format := formatOf(c.f)
		text, ok := errorText(format, c.rule)
		require.True(t, ok, "the table has no %s of %s", c.rule, format)
		reached[format+": "+c.rule] = true
		fix := rules[name].fix
		if own, ok := textsOf[format].fixes[name]; ok {
			fix = own
		}
		found := slices.IndexFunc(c.f.Check([]byte(c.body)), func(f Finding) bool {
			return f.Rule == name && matchesText(text, f.Error) && matchesText(rules[name].problem, f.Problem) && matchesText(fix, f.Fix)
		})
		assert.GreaterOrEqual(t, found, 0, "%s, %s: %s\n%v", format, c.rule, c.body, c.f.Check([]byte(c.body)))
		for _, f := range c.f.Check([]byte(c.body)) {
			assert.NotRegexp(t, unfilled, f.Problem+f.Fix+f.Error, "%s, %s", format, c.rule)
		}
	}
	formats := []string{FormatOpenAIChat, FormatOpenAIResponses, FormatAnthropic, FormatGemini, FormatConverse}
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		if strings.HasPrefix(name, "media-") && name != "media-type" || name == "request-bytes" || name == "document-count" {
			continue // no small request breaks these; see TestCheck_Sizes
		}
		if strings.HasPrefix(name, "image-") || strings.HasPrefix(name, "pdf-") || name == "arguments-length" {
			continue // see TestCheck_Media
		}
		r := rules[name]
		assert.NotEmpty(t, r.problem, name)
		assert.NotEmpty(t, r.fix, name)
		known := r.error != ""
		for _, format := range formats {
			for _, full := range rulesIn(format) {
				if base, _, _ := strings.Cut(full, "/"); base == name {
					known = true
					assert.True(t, reached[format+": "+full], "no case for %s of %s", full, format)
				}
			}
			if _, ok := textsOf[format].fixes[name]; ok {
				_, ok := errorText(format, name)
				assert.True(t, ok, "%s has a fix for %s, which has no such rule", name, format)
			}
		}
		assert.True(t, known, name)
	}
}

// Every rule that the code names is in the table, and all findings are made
// from the table.
func TestRules_FindingsComeFromTheTable(t *testing.T) {
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	made := 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if id, ok := n.Type.(*ast.Ident); ok && id.Name == "Finding" {
					made++
					assert.Equal(t, "rules.go", name)
				}
			case *ast.CallExpr:
				f, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || f.Sel.Name != "add" || !strings.HasSuffix(name, "check.go") || name == "check.go" {
					break
				}
				if on, ok := f.X.(*ast.Ident); !ok || on.Name != "k" { // not a method of a checker
					break
				}
				rule, ok := n.Args[0].(*ast.BasicLit)
				if !assert.True(t, ok, "%s: the name of a rule is not a literal", name) {
					break
				}
				text, err := strconv.Unquote(rule.Value)
				require.NoError(t, err)
				text, _, _ = strings.Cut(text, "/")
				assert.Contains(t, rules, text, name)
			}
			return true
		})
	}
	assert.Equal(t, 1, made)
}

// The doc comment of each Check lists the rules of its format.
func TestRules_AreListedByTheDocOfCheck(t *testing.T) {
	for name, format := range map[string]string{
		"openai_chat_check.go": FormatOpenAIChat, "openai_responses_check.go": FormatOpenAIResponses,
		"anthropic_check.go": FormatAnthropic, "gemini_check.go": FormatGemini, "converse_check.go": FormatConverse,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		doc := ""
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "Check" {
				doc = f.Doc.Text()
			}
		}
		_, list, ok := strings.Cut(doc, "The rules:\n\n")
		require.True(t, ok, name)
		list, _, _ = strings.Cut(list, "\n\n")
		var listed []string
		for _, item := range strings.Split(list, "  - for ")[1:] {
			_, rules, ok := strings.Cut(item, ": ")
			require.True(t, ok, item)
			listed = append(listed, strings.Split(strings.Join(strings.Fields(rules), " "), ", ")...)
		}
		slices.Sort(listed)
		var want []string
		for _, name := range rulesIn(format) {
			rule, _, _ := strings.Cut(name, "/")
			want = append(want, rule)
		}
		slices.Sort(want)
		assert.Equal(t, slices.Compact(want), listed, name)
	}
}

package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// A ToolWriter is a [Format] that writes the definitions of tools. All formats of this
// package are.
type ToolWriter interface {
	// Tools returns the definitions as the provider wants them, for Request.Tools and
	// for ToolTokens. The same tools give the same bytes, so that a prompt cache stays
	// useful; keep their order from request to request. Without tools it returns nil.
	//
	// A tool is sent under its own name or, if the provider refuses that, under another
	// one, which its calls and results in the messages get too. Decode and the Transcript
	// of a stream turn it back, unless it had to be cut, to 64 bytes: FindTool finds the
	// tool of a call in any case.
	//
	// A schema that the provider would refuse is mended where its meaning stays:
	//
	//   - OpenAI gets "properties": {} where the arguments have none, as MCP describes a tool
	//     without arguments; "items": {} for an array without items; and in strict mode,
	//     properties and required for each object.
	//   - Nova 1, if Converse.Model names it, gets no $schema, $id, $comment and title at
	//     the root.
	//
	// Otherwise Tools returns a *ToolError for the first thing that the provider would
	// refuse: no name, two tools of one name, a schema that is no JSON object of type
	// "object" in UTF-8, and keywords and names of properties that the provider, or its
	// strict mode, does not take there. It also refuses schemas that are nested more than
	// 32 levels deep. How many properties and levels a provider takes below that, it does
	// not check.
	Tools(tools ...convo.Tool) (json.RawMessage, error)
}

// A ToolError says why a provider would refuse the definition of a tool.
type ToolError struct {
	Index   int    // of the tool
	Name    string // of the tool
	Path    string // in its schema, such as "properties.city"; empty: not there
	Problem string // what is wrong
	Fix     string // how to mend it
}

func (e *ToolError) Error() string {
	where := ""
	if e.Path != "" {
		where = " at " + e.Path + " of its schema"
	}
	return fmt.Sprintf("wire: tool %d, %s%s: %s; %s", e.Index, quote(e.Name), where, e.Problem, e.Fix)
}

// A toolRule says which definitions of tools a provider takes.
type toolRule struct {
	names  func(string) bool
	refuse map[string]bool   // keywords of schemas
	strict map[string]bool   // those that only strict mode refuses
	root   map[string]bool   // those that are refused at the root
	only   map[string]bool   // the only ones that are taken at the root; nil: all
	drop   map[string]bool   // those that are left out at the root, since they say nothing of the arguments
	keys   func(string) bool // the names that properties of the root can have; nil: all
	mend   bool              // objects at the root need properties, and arrays items
}

var (
	// The keywords at the root, properties and items are from the errors of the API, for
	// which TestTools_SchemasByProvider names sources. The rest is from
	// https://platform.openai.com/docs/guides/structured-outputs, "Supported schemas",
	// where oneOf is not named; the API answers that it is not permitted.
	openAITools = toolRule{
		names:  openAIToolNames,
		strict: map[string]bool{"allOf": true, "oneOf": true, "not": true, "if": true, "then": true, "else": true, "dependentRequired": true, "dependentSchemas": true},
		root:   map[string]bool{"oneOf": true, "anyOf": true, "allOf": true, "enum": true, "const": true, "not": true},
		mend:   true,
	}
	// Hosts that are not OpenAI: what one of them refuses depends on what is there.
	hostTools      = toolRule{names: openAIToolNames, strict: openAITools.strict, mend: true}
	localTools     = toolRule{names: openAIToolNames, strict: openAITools.strict}
	anthropicTools = toolRule{
		names: anthropicToolNames,
		root:  map[string]bool{"oneOf": true, "anyOf": true, "allOf": true},
		keys:  madeOf("_.-", 64),
	}
	geminiTools = toolRule{
		names: geminiToolNames,
		refuse: map[string]bool{"not": true, "if": true, "then": true, "else": true, "patternProperties": true,
			"dependentSchemas": true, "dependentRequired": true, "unevaluatedProperties": true, "unevaluatedItems": true,
			"contains": true, "propertyNames": true},
	}
	converseTools = toolRule{names: openAIToolNames}
	claudeTools   = toolRule{names: openAIToolNames, root: anthropicTools.root, keys: anthropicTools.keys}
	novaTools     = toolRule{
		names: openAIToolNames,
		only:  map[string]bool{"type": true, "properties": true, "required": true},
		drop:  map[string]bool{"$schema": true, "$id": true, "$comment": true, "title": true},
	}
)

// tools returns the rule for the dialect and the host.
func (f OpenAIChat) tools() toolRule {
	switch {
	case f.Dialect != OpenAI:
		return localTools
	case f.Host != "":
		return hostTools
	}
	return openAITools
}

// tools returns the rule for the model.
func (f Converse) tools() toolRule {
	switch model := plainModel(f.Model); {
	case strings.HasPrefix(model, "claude"):
		return claudeTools
	case strings.HasPrefix(model, "nova-micro"), strings.HasPrefix(model, "nova-lite"), strings.HasPrefix(model, "nova-pro"), strings.HasPrefix(model, "nova-premier"):
		return novaTools
	}
	return converseTools
}

// emptySchema is the schema of a tool that takes no arguments.
const emptySchema = `{"type":"object","properties":{}}`

// write writes each tool by appendTool, with its schema, and joins them. In strict mode
// each object must name all its properties, and allow no others.
func (r toolRule) write(tools []convo.Tool, strict bool, appendTool func(b []byte, t convo.Tool, schema string) []byte) (json.RawMessage, error) {
	if len(tools) == 0 {
		return nil, nil
	}
	b := []byte{'['}
	seen := make(map[string]bool, len(tools))
	for i, t := range tools {
		wrong := func(path, problem, fix string) error { return &ToolError{i, tools[i].Name, path, problem, fix} }
		sent := sentName(t.Name, r.names)
		switch {
		case t.Name == "":
			return nil, wrong("", "the tool has no name", "give each tool a name of its own")
		case seen[sent]:
			return nil, wrong("", "another tool has this name", "give each tool a name of its own")
		}
		seen[sent] = true
		schema := emptySchema
		if t.Schema != "" {
			schema = compact(json.RawMessage(t.Schema))
		}
		if strict && t.Schema == "" {
			schema = `{"type":"object","properties":{},"required":[],"additionalProperties":false}`
		}
		if !utf8.ValidString(schema) {
			return nil, wrong("", "the schema is not valid UTF-8", "write it in UTF-8")
		}
		if !strictjson.Valid([]byte(schema)) || kindOf(json.RawMessage(schema)) != '{' {
			return nil, wrong("", "the schema is no JSON object", "write a JSON Schema, or leave it empty")
		}
		all, err := fields("", []byte(schema))
		if err != nil || stringOf(all["type"]) != "object" {
			return nil, wrong("type", "the arguments of a tool are an object", `write "type": "object"`)
		}
		if strict && r.strict != nil && all["anyOf"] != nil {
			return nil, wrong("anyOf", "strict mode takes no anyOf at the root", "put it into a property")
		}
		if path, problem, fix := r.lookAtRoot(all); problem != "" {
			return nil, wrong(path, problem, fix)
		}
		if path, problem, fix := r.look("", json.RawMessage(schema), strict, 0); problem != "" {
			return nil, wrong(path, problem, fix)
		}
		schema = string(r.mended(json.RawMessage(schema), strict, 0))
		if i > 0 {
			b = append(b, ',')
		}
		t.Name = sent
		b = appendTool(append(b, '{'), t, schema)
		b = append(b, '}')
	}
	return append(b, ']'), nil
}

// The keywords of a JSON Schema that hold schemas: one, or a list of them, and some by
// name.
var (
	schemaKeywords = []string{"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains",
		"additionalProperties", "unevaluatedProperties", "propertyNames",
		"anyOf", "oneOf", "allOf", "not", "if", "then", "else"}
	namedSchemas = []string{"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}
)

// lookAtRoot returns the first thing that the provider refuses at the root of a schema.
func (r toolRule) lookAtRoot(all map[string]json.RawMessage) (where, problem, fix string) {
	for _, key := range sortedKeys(all) {
		if r.root[key] || r.only != nil && !r.only[key] && !r.drop[key] {
			return key, "the provider does not take the keyword " + quote(key) + " at the root", "put it into a property, or say in the description of the tool what it says"
		}
	}
	properties, _ := optionalFields("-", all["properties"])
	for _, name := range sortedKeys(properties) {
		if r.keys != nil && !r.keys(name) {
			return at("properties", name), "the provider does not take this name of a property", "use 1 to 64 letters, digits and _.- for it"
		}
	}
	return "", "", ""
}

// mended returns a schema in which look has found nothing, with what the provider wants to
// see in it and what changes nothing of its meaning.
func (r toolRule) mended(raw json.RawMessage, strict bool, depth int) json.RawMessage {
	all, err := fields("-", raw)
	if kindOf(raw) != '{' || err != nil {
		return raw
	}
	object, add := isType(all["type"], "object"), ""
	if r.mend && isNull(all["properties"]) && (depth == 0 || strict && object) {
		add += `,"properties":{}`
	}
	if r.mend && isNull(all["items"]) && isType(all["type"], "array") {
		add += `,"items":{}`
	}
	if r.mend && strict && isNull(all["required"]) && object {
		add += `,"required":[]`
	}
	changed := add != ""
	mend := func(raw json.RawMessage) json.RawMessage {
		to := r.mended(raw, strict, depth+1)
		changed = changed || !bytes.Equal(to, raw)
		return to
	}
	out := editFields(string(raw), func(key string, value json.RawMessage) (json.RawMessage, bool) {
		switch {
		case depth == 0 && r.drop[key] || isNull(value) && notNull[key]:
			changed = true
			return nil, false
		case slices.Contains(namedSchemas, key):
			return json.RawMessage(editFields(string(value), func(_ string, value json.RawMessage) (json.RawMessage, bool) { return mend(value), true })), true
		case !slices.Contains(schemaKeywords, key):
			return value, true
		case kindOf(value) != '[':
			return mend(value), true
		}
		list, _ := strictjson.SplitArray(value)
		b := []byte{'['}
		for _, raw := range list {
			b = appendElement(b, string(mend(raw)))
		}
		return append(b, ']'), true
	})
	switch {
	case !changed:
		return raw
	case out == "{}":
		add = strings.TrimPrefix(add, ",")
	}
	return json.RawMessage(out[:len(out)-1] + add + "}")
}

// notNull are keywords whose value JSON Schema does not let be null. Some programs write it
// for a list or map that is nil.
var notNull = map[string]bool{"properties": true, "items": true, "required": true}

// isType reports whether the type of a schema is the given one, or one of several.
func isType(raw json.RawMessage, want string) bool {
	if kindOf(raw) == '[' {
		list, _ := strictjson.SplitArray(raw)
		return slices.ContainsFunc(list, func(raw json.RawMessage) bool { return stringOf(raw) == want })
	}
	return stringOf(raw) == want
}

// look returns the first thing in a schema that the provider refuses.
func (r toolRule) look(path string, raw json.RawMessage, strict bool, depth int) (where, problem, fix string) {
	if kindOf(raw) != '{' {
		return "", "", ""
	}
	if depth > maxDepth {
		return path, "the schema is nested too deep", fmt.Sprintf("nest schemas at most %d levels deep", maxDepth)
	}
	all, err := fields("-", raw)
	if err != nil {
		return path, "not JSON", "write a JSON Schema"
	}
	for _, key := range sortedKeys(all) {
		if r.refuse[key] {
			return at(path, key), "the provider does not know the keyword " + quote(key), "leave it out, and say in a description what it says"
		}
		if strict && r.strict[key] {
			return at(path, key), "strict mode does not take the keyword " + quote(key), "leave it out, and say in a description what it says"
		}
	}
	properties, err := optionalFields("-", all["properties"])
	if err != nil {
		return at(path, "properties"), "the properties are no object", "name each property and its schema, or leave it out"
	}
	if strict && r.strict != nil && isType(all["type"], "array") && (isNull(all["items"]) || string(all["items"]) == "{}") {
		return at(path, "items"), "strict mode wants to know the type of the items", "say in items what the array holds"
	}
	if strict && (properties != nil || stringOf(all["type"]) == "object") {
		var required []string
		_ = json.Unmarshal(all["required"], &required)
		for _, name := range sortedKeys(properties) {
			if !slices.Contains(required, name) {
				return at(path, "required"), "strict mode wants each property to be required, and " + quote(name) + " is not", `name it in "required", and let its type be ["string", "null"] or the like if it may be missing`
			}
		}
		if string(all["additionalProperties"]) != "false" {
			return at(path, "additionalProperties"), "strict mode allows no further properties", `write "additionalProperties": false`
		}
	}
	for _, key := range namedSchemas {
		schemas, _ := optionalFields("-", all[key])
		for _, name := range sortedKeys(schemas) {
			if where, problem, fix = r.look(at(at(path, key), name), schemas[name], strict, depth+1); problem != "" {
				return where, problem, fix
			}
		}
	}
	for _, key := range schemaKeywords {
		if where, problem, fix = r.look(at(path, key), all[key], strict, depth+1); problem != "" {
			return where, problem, fix
		}
		list, _ := strictjson.SplitArray(all[key])
		for i, raw := range list {
			if where, problem, fix = r.look(atIndex(at(path, key), i), raw, strict, depth+1); problem != "" {
				return where, problem, fix
			}
		}
	}
	return "", "", ""
}

// appendTool appends the fields of a tool, its schema under the given name.
func appendTool(b []byte, t convo.Tool, key, schema string) []byte {
	b = appendStringField(b, "name", t.Name)
	if t.Description != "" {
		b = appendStringField(b, "description", t.Description)
	}
	return appendRawField(b, key, schema)
}

// Tools implements [ToolWriter].
func (f OpenAIChat) Tools(tools ...convo.Tool) (json.RawMessage, error) {
	return f.tools().write(tools, f.StrictTools, func(b []byte, t convo.Tool, schema string) []byte {
		b = append(appendStringField(b, "type", "function"), `,"function":{`...)
		b = appendTool(b, t, "parameters", schema)
		if f.StrictTools {
			b = append(b, `,"strict":true`...)
		}
		return append(b, '}')
	})
}

// Tools implements [ToolWriter]. Without StrictTools it says that a tool is not strict,
// since Responses takes it to be otherwise.
func (f OpenAIResponses) Tools(tools ...convo.Tool) (json.RawMessage, error) {
	return openAITools.write(tools, f.StrictTools, func(b []byte, t convo.Tool, schema string) []byte {
		b = appendTool(appendStringField(b, "type", "function"), t, "parameters", schema)
		return fmt.Appendf(b, `,"strict":%v`, f.StrictTools)
	})
}

// Tools implements [ToolWriter].
func (f Anthropic) Tools(tools ...convo.Tool) (json.RawMessage, error) {
	list, err := anthropicTools.write(tools, f.StrictTools, func(b []byte, t convo.Tool, schema string) []byte {
		b = appendTool(b, t, "input_schema", schema)
		if f.StrictTools {
			b = append(b, `,"strict":true`...)
		}
		return b
	})
	if list != nil && f.CacheTools {
		list = slices.Concat(list[:len(list)-2], []byte(anthropicMark(isLong(f.CacheLifetime))), []byte("}]"))
	}
	return list, err
}

// Tools implements [ToolWriter].
func (f Gemini) Tools(tools ...convo.Tool) (json.RawMessage, error) {
	list, err := geminiTools.write(tools, false, func(b []byte, t convo.Tool, schema string) []byte {
		return appendTool(b, t, "parametersJsonSchema", schema)
	})
	if list == nil {
		return nil, err
	}
	return slices.Concat([]byte(`[{"functionDeclarations":`), list, []byte(`}]`)), nil
}

// Tools implements [ToolWriter].
func (f Converse) Tools(tools ...convo.Tool) (json.RawMessage, error) {
	list, err := f.tools().write(tools, false, func(b []byte, t convo.Tool, schema string) []byte {
		b = appendTool(append(b, `"toolSpec":{`...), t, "inputSchema", `{"json":`+schema+"}")
		return append(b, '}')
	})
	if list == nil {
		return nil, err
	}
	if f.CacheTools {
		list = slices.Concat(list[:len(list)-1], []byte(converseMark(isLong(f.CacheLifetime))), []byte("]"))
	}
	return slices.Concat([]byte(`{"tools":`), list, []byte(`}`)), nil
}

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
// package are ToolWriters.
type ToolWriter interface {
	// Tools returns the definitions in the provider's form, for Request.Tools and for
	// ToolTokens. The same tools give the same bytes, so that a prompt cache stays
	// useful; keep their order from request to request. Without tools it returns nil.
	//
	// A tool is sent under its own name or, if the provider refuses that, under another
	// name, which is also used for its calls and results in the messages. Decode and the
	// Transcript of a stream restore the tool's own name, unless the sent name had to be
	// cut to 64 bytes. FindTool always finds the tool of a call.
	//
	// A schema that the provider would refuse is corrected if its meaning stays the same:
	//
	//   - OpenAI gets "properties": {} if the arguments have none, which is how MCP
	//     describes a tool without arguments. An array without items gets "items": {}, and
	//     in strict mode each object gets properties and required.
	//   - Nova 1, if Converse.Model names it, gets no $schema, $id, $comment or title at
	//     the root.
	//
	// Otherwise Tools returns a *ToolError for the first thing that the provider would
	// refuse. That may be a missing name, two tools with the same name, or a schema that
	// is not a JSON object of type "object" in UTF-8. It may also be keywords and names of
	// properties that the provider, or its strict mode, does not accept there. For all
	// providers it refuses values that JSON Schema itself forbids for a keyword, such as
	// "type": "strin" and "enum": [], and schemas that are nested more than 32 levels
	// deep. It does not check a provider's own limits on properties and levels.
	//
	// A tool with an Opaque is written as it stands, after the others, if it is of this
	// format, and otherwise left out. Its name counts like that of any other tool.
	Tools(tools ...convo.Tool) (json.RawMessage, error)
}

// A ToolError reports why a provider would refuse the definition of a tool.
type ToolError struct {
	Index   int    // of the tool
	Name    string // of the tool
	Path    string // in its schema, such as "properties.city"; empty: outside the schema
	Problem string // what is wrong
	Fix     string // how to fix it
}

func (e *ToolError) Error() string {
	where := ""
	if e.Path != "" {
		where = " at " + e.Path + " of its schema"
	}
	return fmt.Sprintf("wire: tool %d, %s%s: %s; %s", e.Index, quote(e.Name), where, e.Problem, e.Fix)
}

// A toolRule describes the definitions of tools that a provider accepts.
type toolRule struct {
	names  func(string) bool
	refuse map[string]bool   // keywords of schemas
	strict map[string]bool   // keywords that only strict mode refuses
	root   map[string]bool   // keywords that are refused at the root
	only   map[string]bool   // the only keywords that are accepted at the root; nil: all
	drop   map[string]bool   // keywords that are left out at the root, because they do not describe the arguments
	keys   func(string) bool // the names that properties of the root can have; nil: all
	mend   bool              // the root needs properties, and arrays need items
}

var (
	// The keywords at the root, properties and items are from the errors of the API,
	// whose sources are in TestTools_SchemasByProvider. The rest is from
	// https://platform.openai.com/docs/guides/structured-outputs, "Supported schemas",
	// which does not list oneOf; the API answers that it is not permitted.
	openAITools = toolRule{
		names:  openAIToolNames,
		strict: map[string]bool{"allOf": true, "oneOf": true, "not": true, "if": true, "then": true, "else": true, "dependentRequired": true, "dependentSchemas": true},
		root:   map[string]bool{"oneOf": true, "anyOf": true, "allOf": true, "enum": true, "const": true, "not": true},
		mend:   true,
	}
	// Hosts other than OpenAI. Their rules depend on the host.
	hostTools      = toolRule{names: openAIToolNames, strict: openAITools.strict, mend: true}
	localTools     = toolRule{names: openAIToolNames, strict: openAITools.strict}
	anthropicTools = toolRule{
		names: anthropicToolNames,
		root:  map[string]bool{"oneOf": true, "anyOf": true, "allOf": true},
		keys:  madeOf("_.-", 64),
	}
)

// emptySchema is the schema of a tool that takes no arguments.
const emptySchema = `{"type":"object","properties":{}}`

// write writes each tool with appendTool, including its schema, and joins them. In strict
// mode each object must name all its properties, and allow no others.
func (r toolRule) write(tools []convo.Tool, strict bool, appendTool func(b []byte, t convo.Tool, schema string) []byte) (json.RawMessage, error) {
	var b []byte
	seen := make(map[string]bool, len(tools))
	for i, t := range tools {
		if t.Opaque != (convo.Opaque{}) {
			continue // see ownTools
		}
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
		t.Name = sent
		b = append(appendTool(append(b, ",{"...), t, schema), '}')
	}
	return list(b), nil
}

// list returns an array of elements that each begin with a comma, or nil if there are
// none.
func list(elements []byte) json.RawMessage {
	if len(elements) == 0 {
		return nil
	}
	return append(slices.Concat([]byte{'['}, elements[1:]), ']')
}

// ownTools returns the tools of a format, as they stand in a list, each after a comma.
// seen holds the names of the functions.
func ownTools(tools []convo.Tool, format string, seen map[string]bool) (b []byte, err error) {
	for i, t := range tools {
		if t.Opaque == (convo.Opaque{}) || t.Opaque.Format != format {
			continue
		}
		raw := json.RawMessage(t.Opaque.JSON)
		if !strictjson.Valid(raw) || kindOf(raw) != '{' {
			return nil, &ToolError{i, t.Name, "", "the opaque definition is no JSON object", "write it as it stands in the provider's list of tools"}
		}
		for _, name := range namesIn(raw) {
			if seen[name] {
				return nil, &ToolError{i, name, "", "another tool has this name", "give each tool a name of its own"}
			}
			seen[name] = true
		}
		b = append(append(b, ','), compact(raw)...)
	}
	return b, nil
}

// withOwn returns a list of tools, which may be nil, with those of a format after it.
func withOwn(functions json.RawMessage, err error, tools []convo.Tool, format string) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	elements, _ := strictjson.SplitArray(functions)
	for _, raw := range elements {
		for _, name := range namesIn(raw) {
			seen[name] = true
		}
	}
	own, err := ownTools(tools, format, seen)
	switch {
	case err != nil:
		return nil, err
	case len(own) == 0:
		return functions, nil
	case functions == nil:
		return list(own), nil
	}
	return append(slices.Concat(functions[:len(functions)-1], own), ']'), nil
}

// namesIn returns the names that an element of a list of tools defines, in any format.
func namesIn(raw json.RawMessage) (names []string) {
	all, err := fields("", raw)
	if err != nil {
		return nil
	}
	of := []json.RawMessage{raw, all["function"], all["custom"], all["toolSpec"], all["systemTool"]}
	declared, _ := strictjson.SplitArray(all["functionDeclarations"])
	for _, raw := range append(of, declared...) {
		if kindOf(raw) != '{' {
			continue
		}
		if one, err := fields("", raw); err == nil && stringOf(one["name"]) != "" {
			names = append(names, stringOf(one["name"]))
		}
	}
	return names
}

// The keywords of a JSON Schema that hold schemas: one schema, a list of schemas, or
// schemas by name.
var (
	schemaKeywords = []string{"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains",
		"additionalProperties", "unevaluatedProperties", "propertyNames",
		"anyOf", "oneOf", "allOf", "not", "if", "then", "else"}
	namedSchemas = []string{"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}

	schemaLists = []string{"prefixItems", "anyOf", "oneOf", "allOf"} // these are always lists; items may be a list
)

// notNull are keywords whose value must not be null in JSON Schema. Some programs write
// null for a list or map that is nil.
var notNull = map[string]bool{"properties": true, "items": true, "required": true}

// schemaTypes are the types of JSON Schema.
var schemaTypes = []string{"null", "boolean", "object", "array", "number", "integer", "string"}

// plainKeywords are the keywords whose values hold no schemas, with the kind of the
// value.
var plainKeywords = map[string]string{
	"$id": "a string", "$schema": "a string", "$ref": "a string", "$anchor": "a string", "$comment": "a string",
	"title": "a string", "description": "a string", "format": "a string", "pattern": "a string",
	"minimum": "a number", "maximum": "a number", "multipleOf": "a number",
	"minLength": "a number", "maxLength": "a number", "minItems": "a number", "maxItems": "a number",
	"minProperties": "a number", "maxProperties": "a number", "minContains": "a number", "maxContains": "a number",
	"uniqueItems": "true or false", "deprecated": "true or false", "readOnly": "true or false", "writeOnly": "true or false",
}

// wanted returns which value JSON Schema, in all its versions since draft 4, needs for a
// keyword, or "" if value is valid, apart from the schemas in it. Null is accepted if
// mended removes it, or if it can only mean a missing value.
func wanted(key string, value json.RawMessage) string {
	list, isList := strictjson.SplitArray(value)
	switch {
	case isNull(value) && (notNull[key] || plainKeywords[key] != ""):
		return ""
	case key == "type":
		if !isList {
			list = []json.RawMessage{value}
		}
		if !areNames(list) || len(list) == 0 || slices.ContainsFunc(list, func(raw json.RawMessage) bool { return !slices.Contains(schemaTypes, stringOf(raw)) }) {
			return "a type here, or an array of types, each once"
		}
	case key == "required":
		if !isList || !areNames(list) {
			return "an array of names here, each once"
		}
	case key == "enum":
		if len(list) == 0 {
			return "an array of values here, at least one"
		}
	case slices.Contains(namedSchemas, key):
		if kindOf(value) != '{' {
			return "an object here, of schemas by name"
		}
	case slices.Contains(schemaLists, key), key == "items" && isList:
		if len(list) == 0 {
			return "an array of schemas here, at least one"
		}
	case slices.Contains(schemaKeywords, key):
		if !isSchema(value) {
			return wantedSchema
		}
	case plainKeywords[key] != "":
		if plainKind(value) != plainKeywords[key] {
			return plainKeywords[key] + " here"
		}
	}
	return ""
}

// wantedSchema describes a schema in the words of wanted.
const wantedSchema = "a schema here, which is an object, true or false"

// isSchema reports whether a value can be a schema.
func isSchema(raw json.RawMessage) bool {
	kind := kindOf(raw)
	return kind == '{' || kind == 't' || kind == 'f'
}

// areNames reports whether values are strings without duplicates.
func areNames(list []json.RawMessage) bool {
	seen := make(map[string]bool, len(list))
	for _, raw := range list {
		name := stringOf(raw)
		if kindOf(raw) != '"' || seen[name] {
			return false
		}
		seen[name] = true
	}
	return true
}

// plainKind returns the kind of a value, in the words of plainKeywords.
func plainKind(raw json.RawMessage) string {
	switch kind := kindOf(raw); {
	case kind == '"':
		return "a string"
	case kind == 't' || kind == 'f':
		return "true or false"
	case strings.IndexByte("-0123456789", kind) >= 0:
		return "a number"
	}
	return ""
}

// lookAtRoot returns the first fault that the provider refuses at the root of a schema.
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

// mended returns a schema with the changes that the provider needs and that keep its
// meaning. look must have found no fault in the schema.
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

// isType reports whether the type of a schema is the given type, or a list that contains
// it.
func isType(raw json.RawMessage, want string) bool {
	if kindOf(raw) == '[' {
		list, _ := strictjson.SplitArray(raw)
		return slices.ContainsFunc(list, func(raw json.RawMessage) bool { return stringOf(raw) == want })
	}
	return stringOf(raw) == want
}

// look returns the first fault in a schema that the provider refuses, or that JSON Schema
// itself forbids.
func (r toolRule) look(path string, raw json.RawMessage, strict bool, depth int) (where, problem, fix string) {
	const orNot = "write that, or leave it out"
	if !isSchema(raw) {
		return path, "JSON Schema wants " + wantedSchema, orNot
	}
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
		if want := wanted(key, all[key]); want != "" {
			return at(path, key), "JSON Schema wants " + want, orNot
		}
	}
	properties, _ := optionalFields("-", all["properties"])
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
			where, problem, fix = r.look(at(at(path, key), name), schemas[name], strict, depth+1)
			if problem != "" {
				return where, problem, fix
			}
		}
	}
	for _, key := range schemaKeywords {
		list, isList := strictjson.SplitArray(all[key])
		if !isList && !isNull(all[key]) {
			where, problem, fix = r.look(at(path, key), all[key], strict, depth+1)
		}
		if problem != "" {
			return where, problem, fix
		}
		for i, raw := range list {
			where, problem, fix = r.look(atIndex(at(path, key), i), raw, strict, depth+1)
			if problem != "" {
				return where, problem, fix
			}
		}
	}
	return "", "", ""
}

// appendTool appends the fields of a tool, with its schema in the field key.
func appendTool(b []byte, t convo.Tool, key, schema string) []byte {
	b = appendStringField(b, "name", t.Name)
	if t.Description != "" {
		b = appendStringField(b, "description", t.Description)
	}
	return appendRawField(b, key, schema)
}

// writtenTools are tools in the provider's form.
type writtenTools struct {
	by    ToolWriter
	tools []convo.Tool
	json  json.RawMessage
	marks *toolMarks
}

// read writes the tools of a snapshot, unless they are those written last.
func (w *writtenTools) read(s *convo.Snapshot, format string) (err error) {
	tools := s.Tools()
	if slices.Equal(tools, w.tools) {
		return nil
	}
	w.tools = nil
	if w.json, err = w.by.Tools(tools...); err == nil {
		w.tools, w.marks = tools, marksIn(w.json, tools, format)
	}
	return err
}

// lost returns the tools that are of other formats than this one.
func (w *writtenTools) lost(format string) (lost []Omission) {
	for i, t := range w.tools {
		if t.Opaque != (convo.Opaque{}) && t.Opaque.Format != format {
			lost = append(lost, Omission{Part: i, Inside: whole, What: lostTool})
		}
	}
	return lost
}

// maxDepth is the depth to which nested parameters are counted by the recipe. Deeper
// parameters count as JSON, and Tools refuses them. Real schemas are a few levels deep.
const maxDepth = 32

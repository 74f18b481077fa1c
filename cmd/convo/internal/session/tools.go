package session

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// Tools returns the definitions of the tools of a request in a format: as they stand there,
// for wire.Request.Tools of the same format, and as tools for another format. A tool that
// the provider runs, or that is not understood, has an Opaque.
func Tools(format string, request []byte) (json.RawMessage, []convo.Tool) {
	all := objectOf(request)
	key, list := "tools", all.list("tools")
	if format == wire.FormatConverse {
		key, list = "toolConfig", all.object("toolConfig").list("tools")
	}
	var tools []convo.Tool
	for _, raw := range list {
		tools = append(tools, toolsIn(format, raw)...)
	}
	if len(tools) == 0 {
		return nil, nil
	}
	return all[key], tools
}

// toolsOf returns the tools of a request whose format is not known, and the format that
// they show.
func toolsOf(all object) (tools []convo.Tool, shown string) {
	for _, raw := range slices.Concat(all.list("tools"), all.object("toolConfig").list("tools")) {
		o := objectOf(raw)
		if o == nil {
			continue
		}
		format, sure := toolFormat(all, o)
		tools = append(tools, toolsIn(format, raw)...)
		if sure {
			shown = format
		}
	}
	return tools, shown
}

// toolFormat returns the format of an element of the list of tools, and whether no other
// format has such an element.
func toolFormat(all, o object) (format string, sure bool) {
	switch {
	case len(declared(o)) > 0:
		return wire.FormatGemini, true
	case o.kind("toolSpec") == '{':
		return wire.FormatConverse, true
	case o.kind("function") == '{':
		return wire.FormatOpenAIChat, true
	case o.is("type", "function"):
		return wire.FormatOpenAIResponses, true
	case o.kind("input_schema") == '{':
		return wire.FormatAnthropic, true
	case all["contents"] != nil || all["generationConfig"] != nil || !o.has("type"):
		return wire.FormatGemini, false
	case o.has("name"):
		return wire.FormatAnthropic, false
	}
	return wire.FormatOpenAIResponses, false
}

// toolsIn returns the tools that an element of the list of tools defines.
func toolsIn(format string, raw json.RawMessage) (tools []convo.Tool) {
	o := objectOf(raw)
	f, schema := object(nil), json.RawMessage(nil)
	switch format {
	case wire.FormatGemini:
		list := declared(o)
		if len(list) == 0 || len(o) > 1 {
			break
		}
		for _, raw := range list {
			f := objectOf(raw)
			schema := lowerTypes(f["parameters"])
			for _, key := range []string{"parametersJsonSchema", "parameters_json_schema"} {
				if f.kind(key) == '{' {
					schema = f[key]
				}
			}
			if f.text("name") != "" {
				tools = append(tools, functionTool(f, schema))
			}
		}
		return tools
	case wire.FormatConverse:
		f = o.object("toolSpec")
		schema = f.object("inputSchema")["json"]
	case wire.FormatAnthropic:
		if kind := o.text("type"); (kind == "" || kind == "custom") && o.kind("input_schema") == '{' {
			f, schema = o, o["input_schema"]
		}
	case wire.FormatOpenAIResponses:
		if o.is("type", "function") {
			f, schema = o, o["parameters"]
		}
	default:
		f = o.object("function")
		schema = f["parameters"]
	}
	switch {
	case f == nil:
		return []convo.Tool{{Name: o.text("name"), Opaque: convo.Opaque{Format: format, JSON: string(raw)}}}
	case f.text("name") == "":
		return nil
	}
	return []convo.Tool{functionTool(f, schema)}
}

// declared returns the functions of an element of the tools of Gemini.
func declared(o object) []json.RawMessage {
	return slices.Concat(o.list("functionDeclarations"), o.list("function_declarations"))
}

// lowerTypes returns a schema with the types in lower case, as JSON Schema has them: Gemini
// writes STRING.
func lowerTypes(schema json.RawMessage) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(schema))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return schema
	}
	if !lowerIn(v) {
		return schema // byte for byte
	}
	out, err := json.Marshal(v)
	if err != nil {
		return schema
	}
	return out
}

// lowerIn lowers the types in a value, and reports whether there were any.
func lowerIn(v any) (changed bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			if name, ok := inner.(string); ok && key == "type" && name != strings.ToLower(name) {
				v[key], changed = strings.ToLower(name), true
			}
			changed = lowerIn(inner) || changed
		}
	case []any:
		for _, inner := range v {
			changed = lowerIn(inner) || changed
		}
	}
	return changed
}

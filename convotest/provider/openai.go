package provider

import (
	"fmt"
	"regexp"
)

var (
	openAINames   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	openAIAuthors = regexp.MustCompile(`^[^\s<|\\/>]+$`)
)

const openAIMaxTools = 128

// openAI is what the two APIs of OpenAI have in common.
type openAI struct{}

func (openAI) cachesAll() bool { return true }

func (openAI) fault(_ *call, p *problem) any {
	e := object{"message": p.text, "type": p.kind, "param": nil, "code": nil}
	if p.param != "" {
		e["param"] = p.param
	}
	if p.code != "" {
		e["code"] = p.code
	}
	return object{"error": e}
}

// An openAICheck keeps the first thing that is wrong with a request.
type openAICheck struct{ first *problem }

func (k *openAICheck) add(code, param, format string, args ...any) {
	if k.first == nil {
		k.first = &problem{status: 400, kind: "invalid_request_error", code: code, param: param, text: fmt.Sprintf(format, args...)}
	}
}

func (k *openAICheck) missing(path string) {
	k.add("missing_required_parameter", path, "Missing required parameter: '%s'.", path)
}

func (k *openAICheck) empty(path string) {
	k.add("empty_array", path, "Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.", path)
}

// value checks one of some values.
func (k *openAICheck) value(path, v, supported string) {
	k.add("invalid_value", path, "Invalid value: '%s'. Supported values are: %s.", v, supported)
}

func (k *openAICheck) limit(path, text string, most int) {
	if n := runes(text); n > most {
		k.add("string_above_max_length", path, "Invalid '%s': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", path, most, n)
	}
}

// name checks the name of a function.
func (k *openAICheck) name(path, name string) {
	switch {
	case name == "":
		k.add("empty_string", path, "Invalid '%s': empty string. Expected a string with minimum length 1, but got an empty string instead.", path)
	case !openAINames.MatchString(name):
		k.add("invalid_value", path, "Invalid '%s': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", path)
	default:
		k.limit(path, name, 64)
	}
}

// text checks that a field is a string.
func (k *openAICheck) text(path string, v any) {
	switch v.(type) {
	case string:
	case nil:
		k.missing(path)
	default:
		k.add("invalid_type", path, "Invalid type for '%s': expected a string, but got %s instead.", path, kindOf(v))
	}
}

// kindOf names the type of a value.
func kindOf(v any) string {
	switch v.(type) {
	case object:
		return "an object"
	case []any:
		return "an array"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case nil:
		return "null"
	}
	return "a number"
}

// tools checks the definitions of tools; path is that of the fields of a function.
func (k *openAICheck) tools(all object, fields func(object) object, path string) {
	tools := list(all["tools"])
	if n := len(tools); n > openAIMaxTools {
		k.add("array_above_max_length", "tools", "Invalid 'tools': array too long. Expected an array with maximum length %d, but got an array with length %d instead.", openAIMaxTools, n)
	}
	for i, t := range tools {
		if t := obj(t); t["type"] == "function" {
			k.name(fmt.Sprintf("tools[%d]%s.name", i, path), str(fields(t)["name"]))
		} else if str(t["type"]) == "" {
			k.missing(fmt.Sprintf("tools[%d].type", i))
		}
	}
}

package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// Writing. Requests are written as compact JSON with the fields in a fixed
// order, so that the same conversation always gives the same bytes.

// begin starts a JSON object, with room for values of size bytes.
func begin(size int) []byte { return append(make([]byte, 0, size+64), '{') }

// quotedLen estimates the length of s as a JSON string, by the escapes in its beginning.
func quotedLen(s string) int {
	const sample = 256 // bytes
	n := strictjson.QuotedLen(s[:min(len(s), sample)])
	return n + int(int64(max(len(s)-sample, 0))*int64(n)/sample)
}

func appendStringField(b []byte, key, value string) []byte {
	return strictjson.AppendString(strictjson.Key(b, key), value)
}

// appendID appends the id of a call or the name of an author, if there is one to send.
func appendID(b []byte, key, id string) []byte {
	if id == "" {
		return b
	}
	return appendStringField(b, key, id)
}

func appendRawField(b []byte, key, value string) []byte {
	return append(strictjson.Key(b, key), value...)
}

// invalidArguments is the only field of the object that replaces arguments that
// are not an object. The model reads it.
const invalidArguments = "invalid_arguments"

// object returns the arguments of a call as a JSON object, since all providers want one.
// An object is unchanged, blank arguments become {}, and any other text becomes the value
// of the field invalidArguments. [decoder.arguments] restores the text.
func object(arguments string) string {
	if isBlank(arguments) {
		return "{}"
	}
	call := convo.ToolCall{Arguments: arguments}
	if _, wrapped := unwrapArguments(arguments); !wrapped && call.Valid() && utf8.ValidString(arguments) {
		return arguments
	}
	b := appendStringField([]byte{'{'}, invalidArguments, arguments)
	return string(append(b, '}'))
}

// unwrapArguments returns the text that object wrapped in raw, and whether raw is
// such an object.
func unwrapArguments(raw string) (text string, ok bool) {
	if !strings.Contains(raw, `"`+invalidArguments+`"`) {
		return "", false // most arguments need no parsing
	}
	var all map[string]json.RawMessage
	if json.Unmarshal([]byte(raw), &all) != nil || len(all) != 1 || kindOf(all[invalidArguments]) != '"' {
		return "", false
	}
	return stringOf(all[invalidArguments]), true
}

// Reading.

// fields returns the fields of a JSON object by name. The path is that of the
// object in the document. The document itself has the empty path, and its fields
// are copies.
func fields(path string, data []byte) (map[string]json.RawMessage, error) {
	if data := document(path, data); data != nil {
		if m, ok := strictjson.SplitObject(data); ok {
			return m, nil
		}
	}
	if path == "" {
		if first := bytes.TrimSpace(data); bytes.HasPrefix(first, []byte("data:")) || bytes.HasPrefix(first, []byte("event:")) {
			return nil, &DecodeError{Reason: "server-sent events and no JSON; Read gives them to a Stream"}
		}
	}
	if kindOf(data) != '{' && (path != "" || strictjson.Valid(data)) {
		return nil, &DecodeError{Path: path, Reason: "want a JSON object, got " + kindName(data)}
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, decodeError(path, "a JSON object", data, err)
	}
	return m, nil
}

// document returns data if it is a value inside a document, at a path. For an empty path
// it returns a copy, so that no memory of the caller is kept, or nil if data is not JSON.
func document(path string, data []byte) []byte {
	switch {
	case path != "":
		return data
	case strictjson.Valid(data):
		return bytes.Clone(data)
	}
	return nil
}

// optionalFields is fields for an object that may be missing.
func optionalFields(path string, data []byte) (map[string]json.RawMessage, error) {
	if isNull(data) {
		return nil, nil
	}
	return fields(path, data)
}

func sortedKeys(m map[string]json.RawMessage) []string { return slices.Sorted(maps.Keys(m)) }

// appendObject appends an object with the fields in the order of their names.
func appendObject(b []byte, m map[string]json.RawMessage) []byte {
	b = append(b, '{')
	for i, key := range sortedKeys(m) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(strictjson.AppendString(b, key), ':'), m[key]...)
	}
	return append(b, '}')
}

func kindName(data json.RawMessage) string {
	switch kindOf(data) {
	case '"':
		return "a string"
	case '[':
		return "an array"
	case '{':
		return "an object"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	case 0:
		return "nothing"
	}
	return "a number"
}

// read decodes the value at path into to. The error names the path and the
// wanted value.
func read(path, want string, data []byte, to any) error {
	switch to := to.(type) {
	case *string:
		if s, ok := strictjson.Unquote(data); ok {
			*to = s
			return nil
		}
	case *[]json.RawMessage:
		if data := document(path, data); data != nil {
			if list, ok := strictjson.SplitArray(data); ok {
				*to = list
				return nil
			}
		}
	case *[]map[string]json.RawMessage:
		if list, ok := objectsIn(document(path, data)); ok {
			*to = list
			return nil
		}
	case *int:
		if len(data) == 1 && '0' <= data[0] && data[0] <= '9' {
			*to = int(data[0] - '0')
			return nil
		}
	}
	if err := json.Unmarshal(data, to); err != nil {
		return decodeError(path, want, data, err)
	}
	return nil
}

// objectsIn returns the fields of the objects in an array, and whether data is an array of
// objects alone.
func objectsIn(data []byte) ([]map[string]json.RawMessage, bool) {
	values, ok := strictjson.SplitArray(data)
	list := make([]map[string]json.RawMessage, len(values))
	for i := 0; ok && i < len(values); i++ {
		list[i], ok = strictjson.SplitObject(values[i])
	}
	return list, ok
}

// A spot is the place of a value in a document. Its path is only written for errors and
// losses.
type spot struct {
	list  string // the path of an array
	index int    // index in the array
	key   string // field of that element; empty: the element itself
}

func (s spot) String() string {
	path := atIndex(s.list, s.index)
	if s.key != "" {
		path += "." + s.key
	}
	return path
}

// at returns the path of a field of the value.
func (s spot) at(key string) string { return at(s.String(), key) }

// fieldsInto is like fields, but stores the fields in m, which can be reused.
func fieldsInto(m *map[string]json.RawMessage, where spot, data []byte) (map[string]json.RawMessage, error) {
	if *m == nil {
		*m = make(map[string]json.RawMessage)
	}
	if strictjson.SplitInto(*m, data) {
		return *m, nil
	}
	return fields(where.String(), data)
}

// stringField reads a field that is a string, if it is there and not null.
func stringField(where spot, all map[string]json.RawMessage, key string) (string, error) {
	raw := all[key]
	if text, ok := strictjson.Unquote(raw); ok || isNull(raw) {
		return text, nil
	}
	var text string
	err := read(where.at(key), "a string", raw, &text)
	return text, err
}

// stringOf returns the value of a JSON string, or "" for any other value.
func stringOf(raw json.RawMessage) string {
	s, _ := strictjson.Unquote(bytes.Trim(raw, " \t\r\n"))
	return s
}

// inner returns a string in a JSON object, or "" if there is none.
func inner(data json.RawMessage, key string) string {
	all, _ := fields("-", data)
	return stringOf(all[key])
}

// decodeError returns the error for data that is not JSON, or not the wanted value.
func decodeError(path, want string, data []byte, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) && (path == "" || kindOf(data) != 0) {
		return &DecodeError{Path: path, Offset: syntax.Offset, Reason: "not JSON: " + err.Error()}
	}
	reason := "want " + want
	if kind := kindName(data); !strings.HasPrefix(want, kind) { // otherwise a value inside is wrong
		reason += ", got " + kind
	}
	return &DecodeError{Path: path, Reason: reason}
}

// elements calls f with the path and the value of each element of an array. It
// stops at the first error.
func elements(path, want string, data []byte, f func(path string, raw json.RawMessage) error) error {
	var list []json.RawMessage
	if err := read(path, want, data, &list); err != nil {
		return err
	}
	for i, raw := range list {
		if err := f(atIndex(path, i), raw); err != nil {
			return err
		}
	}
	return nil
}

func isNull(data json.RawMessage) bool {
	return len(data) == 0 || kindOf(data) == 'n' && string(bytes.TrimSpace(data)) == "null"
}

// kindOf returns the first byte of a JSON value, which identifies its kind, or 0
// if there is no value.
func kindOf(data json.RawMessage) byte {
	for _, c := range data {
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
	}
	return 0
}

func at(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

func atIndex(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// compact removes the white space between JSON tokens. The bytes of numbers and
// strings stay as they are.
func compact(data json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return string(data)
	}
	return b.String()
}

// editFields calls edit with the key and value of each field of a JSON object,
// in order, and returns the object with the values that edit returned. Fields
// for which edit returned false are left out. Anything but an object is
// returned unchanged.
func editFields(raw string, edit func(string, json.RawMessage) (json.RawMessage, bool)) string {
	dec := json.NewDecoder(strings.NewReader(raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return raw
	}
	b := []byte{'{'}
	for dec.More() {
		token, err := dec.Token()
		key, ok := token.(string)
		var value json.RawMessage
		if err != nil || !ok || dec.Decode(&value) != nil {
			return raw
		}
		if value, ok = edit(key, value); ok {
			if len(b) > 1 {
				b = append(b, ',')
			}
			b = append(append(strictjson.AppendString(b, key), ':'), value...)
		}
	}
	return string(append(b, '}'))
}

// withFields returns an object with the fields of set replaced. Fields that raw does
// not have are added at the end.
func withFields(raw string, set map[string]json.RawMessage) string {
	left := maps.Clone(set)
	out := []byte(strings.TrimSuffix(editFields(raw, func(key string, value json.RawMessage) (json.RawMessage, bool) {
		delete(left, key)
		if v := set[key]; v != nil {
			value = v
		}
		return value, true
	}), "}"))
	for _, key := range sortedKeys(left) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(strictjson.AppendString(out, key), ':'), left[key]...)
	}
	return string(append(out, '}'))
}

// merge copies to *to the fields of from that are not null, except those in but.
func merge(to *map[string]json.RawMessage, from map[string]json.RawMessage, but ...string) {
	if *to == nil {
		*to = map[string]json.RawMessage{}
	}
	for key, value := range from {
		if !isNull(value) && !slices.Contains(but, key) {
			(*to)[key] = value
		}
	}
}

// pickRaw returns the path and the value of a field, like pick. The value is
// nil if the field is missing or null.
func pickRaw(m map[string]json.RawMessage, path, key string) (string, json.RawMessage) {
	key, raw := pick(m, key)
	if isNull(raw) {
		raw = nil
	}
	return at(path, key), raw
}

// pick returns a field and its name, which is key in camelCase or in
// snake_case.
func pick[V any](m map[string]V, key string) (string, V) {
	if v, ok := m[key]; ok {
		return key, v
	}
	other := snake(key)
	if v, ok := m[other]; ok {
		return other, v
	}
	var none V
	return key, none
}

func snake(key string) string {
	b := make([]byte, 0, len(key)+2)
	for i := range len(key) {
		if c := key[i]; 'A' <= c && c <= 'Z' {
			b = append(b, '_', c|0x20)
		} else {
			b = append(b, c)
		}
	}
	return string(b)
}

// appendElement appends raw JSON to an array.
func appendElement(b []byte, raw string) []byte {
	if b[len(b)-1] != '[' {
		b = append(b, ',')
	}
	return append(b, raw...)
}

// appendPart appends {"type": kind, key: value} to an array. The kind must be
// quoted.
func appendPart(b []byte, kind, key, value string) []byte {
	b = appendElement(b, `{"type":`+kind)
	return append(appendStringField(b, key, value), '}')
}

// A DecodeError is returned by Decode for malformed input, and for input that is not an
// answer: the error of a provider, or an event of a stream.
type DecodeError struct {
	Path   string // where the input is malformed; empty: the whole document
	Offset int64  // number of bytes read before the error, if the input is not JSON; else 0
	Reason string // what is wrong

	// Err is the *ProviderError if the input is the error of a provider, otherwise nil.
	// It lets errors.As and [convo.IsOverflow] find the error.
	Err error
}

// Unwrap returns e.Err.
func (e *DecodeError) Unwrap() error { return e.Err }

func (e *DecodeError) Error() string {
	s := "wire: "
	switch {
	case e.Path != "":
		s += e.Path + ": "
	case e.Offset > 0:
		s += fmt.Sprintf("at byte %d: ", e.Offset)
	}
	s += e.Reason
	if e.Err == nil && !strings.Contains(e.Reason, "; ") && !strings.Contains(e.Reason, "want ") {
		s += "; check that the input is complete and in this format"
	}
	return s
}

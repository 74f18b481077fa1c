package strictjson

import "encoding/json"

// The functions below split one level of a document, without parsing or copying the
// values. They return false for data that they cannot read.

// skipValue returns the index after the value that begins at i, or -1.
func skipValue(data []byte, i int) int {
	for depth := 0; i < len(data); {
		switch data[i] {
		case '"':
			if i = PassString(data, i); i < 0 {
				return -1
			}
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			if depth--; depth < 0 {
				return -1
			}
			i++
		case ' ', '\n', '\t', '\r', ',', ':':
			if depth == 0 {
				return -1
			}
			i++
			continue
		default:
			for i++; i < len(data) && data[i] > ' ' && data[i] != ',' && data[i] != ']' && data[i] != '}'; {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
	return -1
}

// SplitObject returns the fields of an object.
func SplitObject(data []byte) (map[string]json.RawMessage, bool) {
	m := map[string]json.RawMessage{}
	return m, SplitInto(m, data)
}

// SplitInto puts the fields of an object into a map that may be reused.
func SplitInto(m map[string]json.RawMessage, data []byte) bool {
	clear(m)
	return EachField(data, func(key string, _, from, to int) { m[key] = data[from:to:to] })
}

// EachField calls f for each field of an object, in order, with the index at which its key
// begins and the range of its value. It returns false if data is not an object.
func EachField(data []byte, f func(key string, at, from, to int)) bool {
	end, ok := splitList(data, '{', func(at int) int {
		i := PassString(data, at)
		if i < 0 {
			return -1
		}
		key := keyText(data[at:i])
		i = skipSpace(data, i)
		if i >= len(data) || data[i] != ':' {
			return -1
		}
		from := skipSpace(data, i+1)
		if i = skipValue(data, from); i >= 0 {
			f(key, at, from, i)
		}
		return i
	})
	return ok && end == len(data)
}

// Repeated returns the name of a field that occurs twice in an object, if there is one.
func Repeated(data []byte) (name string, twice bool) {
	seen := map[string]bool{}
	EachField(data, func(key string, _, _, _ int) {
		if seen[key] {
			name, twice = key, true
		}
		seen[key] = true
	})
	return name, twice
}

// SplitArray returns the elements of an array.
func SplitArray(data []byte) (list []json.RawMessage, ok bool) {
	list = []json.RawMessage{}
	ok = EachElement(data, func(from, to int) { list = append(list, data[from:to:to]) })
	return list, ok
}

// EachElement calls f with the range of each element of an array. It returns false if data
// is not an array.
func EachElement(data []byte, f func(from, to int)) bool {
	end, ok := splitList(data, '[', func(i int) int {
		end := skipValue(data, i)
		if end >= 0 {
			f(i, end)
		}
		return end
	})
	return ok && end == len(data)
}

// splitList calls element with the index of each element between the brackets, and returns
// the index after the brackets and the following white space. element returns the index
// after the element, or -1.
func splitList(data []byte, bracket byte, element func(i int) int) (end int, ok bool) {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != bracket {
		return 0, false
	}
	for first := true; ; first = false {
		i = skipSpace(data, i+1)
		if first && i < len(data) && data[i] == bracket+2 { // ] and } in ASCII
			break
		}
		if i = element(i); i < 0 {
			return 0, false
		}
		i = skipSpace(data, i)
		if i < len(data) && data[i] == bracket+2 {
			break
		}
		if i >= len(data) || data[i] != ',' {
			return 0, false
		}
	}
	return skipSpace(data, i+1), true
}

// commonKeys are field names that are frequent in requests and answers.
var commonKeys = func() map[string]string {
	m := map[string]string{}
	for _, k := range []string{
		"role", "content", "type", "text", "id", "name", "arguments", "function", "tool_calls", "tool_call_id", // chat
		"call_id", "output", "status", "annotations", "summary", "encrypted_content", // Responses
		"input", "tool_use_id", "is_error", "thinking", "signature", // Anthropic
		"parts", "functionCall", "functionResponse", "args", "response", "thought", "thoughtSignature", "result", // Gemini
		"toolUse", "toolResult", "toolUseId", "reasoningContent", "reasoningText", "json", // Converse
	} {
		m[k] = k
	}
	return m
}()

// keyText returns the text of a key, a JSON string, usually without an allocation.
func keyText(quoted []byte) string {
	if key, ok := commonKeys[string(quoted[1:len(quoted)-1])]; ok {
		return key
	}
	key, _ := Unquote(quoted)
	return key
}

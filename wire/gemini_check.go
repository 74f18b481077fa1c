package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Check says why Gemini would refuse a request, or answer nothing. The rules
// by name: json, shape, contents-empty, role, parts-empty, part-empty,
// part-data, part-role, name-missing, args, response, unanswered-call,
// orphan-result, duplicate-result, result-id, split-results, late-result,
// mixed-results, call-first, last-role, signature-missing.
//
// Blank text is fine: the Gemini API takes it. signature-missing is looked for
// when Model, or the model of the request, says Gemini 3 or later; result-id
// unless it says Gemini 1 or 2. mixed-results and last-role are refusals of
// Vertex AI and of newer models.
func (f Gemini) Check(request []byte) []Finding {
	k := geminiChecker{checker: new(checker), last: -1}
	all, err := geminiValue(request)
	if err != nil {
		k.add(Finding{Rule: "json", Error: "Invalid JSON payload received.", Fix: fmt.Sprintf("send a JSON object: %v", err)})
		return k.list
	}
	k.generation = geminiGeneration(f.Model)
	if n := geminiGeneration(str(all["model"])); n > 0 {
		k.generation = n
	}
	if path, v := pick(all, "systemInstruction"); v != nil {
		if m, ok := v.(map[string]any); ok {
			k.parts(path, m, "system")
		} else {
			k.shape(path, "an object with parts")
		}
	}
	path, v := pick(all, "contents")
	list, isList := v.([]any)
	if v == nil || isList && len(list) == 0 {
		k.add(Finding{Rule: "contents-empty", Path: path, Error: "* GenerateContentRequest.contents: contents is not specified", Fix: "send a content"})
		return k.list
	}
	contents := k.oneOrMore(path, v)
	for i, c := range contents {
		k.content(i, atIndex(path, i), c)
	}
	waiting := k.role == "model" && len(k.calls) > 0
	k.answered()
	if k.role == "model" && !waiting {
		k.add(Finding{Rule: "last-role", Path: atIndex(path, len(contents)-1), Error: "Please ensure that multiturn requests ends with a user role or a function response", Fix: "end with a user content"})
	}
	k.signatures()
	return k.list
}

// geminiValue reads a JSON object. Numbers of any size are fine.
func geminiValue(data []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var all map[string]any
	if err := d.Decode(&all); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	if all == nil {
		return nil, errors.New("null")
	}
	return all, nil
}

const (
	geminiNumber  = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
	geminiFollows = "Please ensure that function response turn comes immediately after a function call turn."
)

// A geminiChecker walks over the contents. Neighbours of one role count as one.
type geminiChecker struct {
	*checker
	generation int

	role    string // of the content before
	asked   bool   // there was a user content
	calls   []geminiCall
	results []geminiCall // since then
	after   int          // user contents since then
	steps   []geminiStep
	last    int // index of the last content in which the user says something
}

// A geminiCall is a call or a result.
type geminiCall struct {
	path, id, name string
	signed         bool
}

// A geminiStep is the first call of neighbouring contents of the model.
type geminiStep struct {
	call  geminiCall
	index int
}

// geminiParts are the parts of a content by what they are.
type geminiParts struct {
	calls, results []geminiCall
	others         int
}

// oneOrMore reads an array of objects, or one object in the place of one.
func (k *geminiChecker) oneOrMore(path string, v any) []map[string]any {
	if m, ok := v.(map[string]any); ok {
		return []map[string]any{m}
	}
	return k.objects(path, v)
}

func (k *geminiChecker) content(i int, path string, c map[string]any) {
	role := str(c["role"])
	switch role {
	case "user", "model":
	case "":
		if c["role"] != nil && role != c["role"] {
			k.shape(path+".role", "a string")
		}
		role = "user"
	default:
		k.add(Finding{Rule: "role", Path: path + ".role", Error: "Please use a valid role: user, model.", Fix: "use user or model, and user for results"})
		if role == "assistant" {
			role = "model"
		} else {
			role = "user"
		}
	}
	p := k.parts(path, c, role)
	if role == "model" {
		if k.role != role {
			k.answered()
		}
		k.model(i, p.calls)
	} else {
		k.user(i, path, p)
	}
	k.role = role
}

func (k *geminiChecker) model(i int, calls []geminiCall) {
	if len(calls) > 0 && len(k.calls) == 0 {
		k.steps = append(k.steps, geminiStep{calls[0], i})
		if !k.asked {
			k.add(Finding{Rule: "call-first", Path: calls[0].path, ID: calls[0].id, Error: "Please ensure that function call turn comes immediately after a user turn or after a function response turn.", Fix: "begin with a user content"})
		}
	}
	k.calls = append(k.calls, calls...)
}

func (k *geminiChecker) user(i int, path string, p geminiParts) {
	k.asked = true
	if p.others > 0 {
		k.last = i
	}
	k.after++
	if len(p.results) == 0 {
		return
	}
	first := p.results[0]
	if p.others > 0 {
		k.add(Finding{Rule: "mixed-results", Path: path, ID: first.id, Error: "Requests ending with a model turn are not supported.", Fix: "send what is no functionResponse in a content of its own, after it"})
	}
	switch {
	case len(k.calls) == 0:
		for _, r := range p.results {
			k.add(Finding{Rule: "orphan-result", Path: r.path, ID: r.id, Error: geminiFollows, Fix: "leave the result out, or send the functionCall in the content before"})
		}
		return
	case len(k.results) > 0:
		k.add(Finding{Rule: "split-results", Path: first.path, ID: first.id, Error: geminiNumber, Fix: "send all results of one turn in one content"})
	case k.after > 1:
		k.add(Finding{Rule: "late-result", Path: first.path, ID: first.id, Error: geminiFollows, Fix: "send the results directly after the content with their calls"})
	}
	k.results = append(k.results, p.results...)
}

// answered compares the calls of the model with the results that came.
func (k *geminiChecker) answered() {
	calls, results := k.calls, k.results
	k.calls, k.results, k.after = nil, nil, 0
	if len(calls) == 0 {
		return
	}
	var open geminiOpen
	all := true // have ids
	for _, c := range calls {
		all = all && c.id != ""
		open.add(c.id, c.name)
	}
	var odd []geminiCall // results with no call of their id
	for _, r := range results {
		if open.byID(r.id) < 0 {
			odd = append(odd, r)
		}
	}
	var left []geminiCall
	for _, r := range odd {
		if open.byName(r.name) < 0 {
			left = append(left, r)
		}
	}
	if missing := len(calls) - len(results); missing > 0 {
		for i, c := range calls {
			if !open.answered[i] && missing > 0 {
				missing--
				k.add(Finding{Rule: "unanswered-call", Path: c.path, ID: c.id, Error: geminiNumber, Fix: "send a functionResponse for it in the content directly after"})
			}
		}
		return
	}
	for _, r := range left[len(left)-(len(results)-len(calls)):] {
		rule, fix := "orphan-result", "leave the result out, or send its functionCall in the content before"
		if _, ok := open.ids[r.id]; ok {
			rule, fix = "duplicate-result", "send one result for each call"
		}
		k.add(Finding{Rule: rule, Path: r.path, ID: r.id, Error: geminiNumber, Fix: fix})
	}
	if len(results) == len(calls) && all && (k.generation == 0 || k.generation >= 3) {
		for _, r := range odd {
			if r.id != "" {
				k.add(Finding{Rule: "result-id", Path: r.path, ID: r.id, Error: "(none: the model answers nothing, with finishReason STOP)", Fix: "give the result the id of its call"})
			}
		}
	}
}

// geminiOpen finds the calls that results belong to.
type geminiOpen struct {
	answered   []bool
	ids, names map[string][]int // calls that may be open, in order
}

func (o *geminiOpen) add(id, name string) {
	if o.ids == nil {
		o.ids, o.names = map[string][]int{}, map[string][]int{}
	}
	i := len(o.answered)
	o.answered = append(o.answered, false)
	if id != "" {
		o.ids[id] = append(o.ids[id], i)
	}
	o.names[name] = append(o.names[name], i)
}

// byID answers the first open call with the id and returns its index, -1 where
// there is none; byName the same with the name.
func (o *geminiOpen) byID(id string) int     { return o.answer(o.ids, id) }
func (o *geminiOpen) byName(name string) int { return o.answer(o.names, name) }

func (o *geminiOpen) answer(calls map[string][]int, key string) int {
	for len(calls[key]) > 0 {
		i := calls[key][0]
		calls[key] = calls[key][1:]
		if !o.answered[i] {
			o.answered[i] = true
			return i
		}
	}
	return -1
}

// signatures looks at the calls of the current turn, which is all after what
// the user said last.
func (k *geminiChecker) signatures() {
	if k.generation < 3 {
		return
	}
	for _, s := range k.steps {
		if s.index > k.last && !s.call.signed {
			k.add(Finding{Rule: "signature-missing", Path: s.call.path, ID: s.call.id, Error: fmt.Sprintf("Function call is missing a thought_signature in functionCall parts. Additional data, function call `default_api:%s`, position %d.", s.call.name, s.index+1), Fix: "send the thoughtSignature that came with the call, or " + skipSignature})
		}
	}
}

// parts looks at the parts of a content.
func (k *geminiChecker) parts(path string, c map[string]any, role string) geminiParts {
	var out geminiParts
	path += ".parts"
	list, isList := c["parts"].([]any)
	if c["parts"] == nil || isList && len(list) == 0 {
		k.add(Finding{Rule: "parts-empty", Path: path, Error: "* GenerateContentRequest." + path + ": contents.parts must not be empty.", Fix: "leave the content out"})
		return out
	}
	for i, p := range k.oneOrMore(path, c["parts"]) {
		k.part(atIndex(path, i), p, role, &out)
	}
	return out
}

func (k *geminiChecker) part(path string, p map[string]any, role string, out *geminiParts) {
	kind, field, unknown := "", "", false
	for _, key := range slices.Sorted(maps.Keys(p)) {
		if p[key] == nil {
			continue
		}
		is := func(name string) bool { return key == name || key == snake(name) }
		i := slices.IndexFunc(geminiData, is)
		switch {
		case i >= 0 && kind != "":
			k.add(Finding{Rule: "part-data", Path: path, Error: "Invalid value at '" + path + "' (oneof), oneof field 'data' is already set. Cannot set '" + key + "'", Fix: "make two parts of it"})
			out.others++
			return
		case i >= 0:
			kind, field = geminiData[i], key
		case !slices.ContainsFunc(geminiSide, is), is("thoughtSignature"):
			unknown = true
		}
	}
	v := p[field]
	if field != "" {
		path = at(path, field)
	}
	m, isObject := v.(map[string]any)
	switch kind {
	case "":
		if !unknown {
			k.add(Finding{Rule: "part-empty", Path: path, Error: "* GenerateContentRequest." + path + ".data: required oneof field 'data' must have one initialized field", Fix: "leave the part out"})
		}
	case "text":
		if _, ok := v.(string); !ok {
			k.shape(path, "a string")
		}
	case "functionCall", "functionResponse":
		if !isObject {
			k.shape(path, "an object")
			return
		}
		call := geminiCall{path: path, id: str(m["id"]), name: str(m["name"]), signed: hasSignature(p)}
		if call.name == "" {
			k.add(Finding{Rule: "name-missing", Path: path + ".name", ID: call.id, Error: "* GenerateContentRequest." + path + ".name: Name cannot be empty.", Fix: "name the function"})
		}
		value := "args"
		if kind == "functionResponse" {
			value = "response"
		}
		if _, ok := m[value].(map[string]any); !ok && m[value] != nil {
			path := path + "." + value
			k.add(Finding{Rule: value, Path: path, ID: call.id, Error: "Invalid value at '" + path + "' (type.googleapis.com/google.protobuf.Struct)", Fix: "send a JSON object"})
		}
		if (kind == "functionCall") != (role == "model") {
			k.add(Finding{Rule: "part-role", Path: path, ID: call.id, Error: "Content with role '" + role + "' can't contain '" + kind + "' part", Fix: "send calls in contents of the model, and results in those of the user"})
			return
		}
		if kind == "functionCall" {
			out.calls = append(out.calls, call)
		} else {
			out.results = append(out.results, call)
		}
		return
	case "inlineData", "fileData":
		if !isObject {
			k.shape(path, "an object")
		}
	}
	out.others++
}

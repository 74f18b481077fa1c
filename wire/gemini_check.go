package wire

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Check returns the reasons why Gemini would refuse a request, or answer nothing. The rules:
//
//   - for the body: json, shape, cached-content, request-bytes
//   - for contents: contents-empty, role, last-role, call-first, parts-empty, part-empty,
//     part-data, part-role
//   - for calls and results: name-missing, args, response, unanswered-call, orphan-result,
//     duplicate-result, result-id, split-results, late-result, mixed-results
//   - for reasoning: signature-missing
//   - for media: media-count, image-unreadable
//
// Blank text is not a finding, since the Gemini API accepts it. signature-missing applies
// if Model, or the model of the request, is Gemini 3 or later. The rule result-id applies
// unless it is Gemini 1 or 2. The rule mixed-results applies unless it is a model up to
// Gemini 3.0. These models take one result together with other parts, but not several
// results. Only Vertex AI and newer models refuse last-role.
func (f Gemini) Check(request []byte) []Finding {
	k := geminiChecker{checker: checker{format: FormatGemini}, last: -1}
	all := k.body(request)
	if all == nil {
		return k.list
	}
	k.generation, k.mixes = geminiGeneration(f.Model), geminiMixes(f.Model)
	if model := str(all["model"]); geminiGeneration(model) > 0 {
		k.generation, k.mixes = geminiGeneration(model), geminiMixes(model)
	}
	if path, v := pick(all, "systemInstruction"); v != nil {
		if m, ok := v.(map[string]any); ok {
			k.parts(path, m, "system")
		} else {
			k.shape(path, "an object with parts")
		}
	}
	if path, v := pick(all, "cachedContent"); v != nil {
		for _, key := range []string{"systemInstruction", "tools", "toolConfig"} {
			if _, other := pick(all, key); other != nil {
				k.add("cached-content", path, "")
				break
			}
		}
	}
	path, v := pick(all, "contents")
	list, isList := v.([]any)
	if v == nil || isList && len(list) == 0 {
		k.add("contents-empty", path, "")
		return k.list
	}
	contents := k.oneOrMore(path, v)
	for i, c := range contents {
		k.content(i, atIndex(path, i), c)
	}
	waiting := k.role == "model" && len(k.calls) > 0
	k.match()
	if k.role == "model" && !waiting {
		k.add("last-role", atIndex(path, len(contents)-1), "")
	}
	k.signatures()
	k.sizes(request, mediaIn(path, v, geminiMedium), geminiSizes)
	return k.list
}

// A geminiChecker checks the contents in order. Adjacent contents of one role
// count as one turn.
type geminiChecker struct {
	checker
	generation int  // of the model: 3 for Gemini 3; 0 if it is not known
	mixes      bool // the model takes a result together with other parts

	role    string       // of the previous content
	asked   bool         // a user content came before
	calls   []geminiCall // calls of the newest turn of the model
	results []geminiCall // results since that turn
	after   int          // number of user contents since that turn
	steps   []geminiStep
	last    int // index of the last content in which the user sends more than results
}

// A geminiCall is a function call, or a function response.
type geminiCall struct {
	path, id, name string
	signed         bool
}

// A geminiStep is the first function call of a turn of the model, with the
// index of its content.
type geminiStep struct {
	call  geminiCall
	index int
}

// geminiParts are the parts of one content.
type geminiParts struct {
	calls, results []geminiCall
	others         int // number of all other parts
}

// oneOrMore returns the elements of an array of objects, or the object that
// replaces the array.
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
		k.add("role", path+".role", "", "role", role)
		if role == "assistant" {
			role = "model"
		} else {
			role = "user"
		}
	}
	p := k.parts(path, c, role)
	if role == "model" {
		if k.role != role {
			k.match()
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
			k.add("call-first", calls[0].path, calls[0].id)
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
	if p.others > 0 && (!k.mixes || len(p.results) > 1) {
		k.add("mixed-results", path, first.id)
	}
	switch {
	case len(k.calls) == 0:
		for _, r := range p.results {
			k.add("orphan-result", r.path, r.id)
		}
		return
	case len(k.results) > 0:
		k.add("split-results", first.path, first.id)
	case k.after > 1:
		k.add("late-result", first.path, first.id)
	}
	k.results = append(k.results, p.results...)
}

// match compares the calls of the newest turn of the model with the results
// that followed it.
func (k *geminiChecker) match() {
	calls, results := k.calls, k.results
	k.calls, k.results, k.after = nil, nil, 0
	if len(calls) == 0 {
		return
	}
	var open geminiOpen
	all := true // all calls have ids
	for _, c := range calls {
		all = all && c.id != ""
		open.add(c.id, c.name)
	}
	var odd []geminiCall // results without the id of an open call
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
				k.add("unanswered-call", c.path, c.id)
			}
		}
		return
	}
	for _, r := range left[len(left)-(len(results)-len(calls)):] {
		if _, ok := open.ids[r.id]; ok {
			k.add("duplicate-result", r.path, r.id)
		} else {
			k.add("orphan-result/count", r.path, r.id)
		}
	}
	if len(results) == len(calls) && all && (k.generation == 0 || k.generation >= 3) {
		for _, r := range odd {
			if r.id != "" {
				k.add("result-id", r.path, r.id)
			}
		}
	}
}

// geminiOpen finds the call that a result answers.
type geminiOpen struct {
	answered   []bool
	ids, names map[string][]int // indices of the calls by id and by name, in order
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

// byID marks the first open call with the id as answered and returns its index,
// or -1 if there is none. byName does the same for the name of the function.
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

// signatures checks the function calls after the last user content that holds
// more than results. Gemini 3 wants a signature on the first call of each step.
func (k *geminiChecker) signatures() {
	if k.generation < 3 {
		return
	}
	for _, s := range k.steps {
		if s.index > k.last && !s.call.signed {
			k.add("signature-missing", s.call.path, s.call.id, "name", s.call.name, "position", strconv.Itoa(s.index+1))
		}
	}
}

// parts checks the parts of a content.
func (k *geminiChecker) parts(path string, c map[string]any, role string) geminiParts {
	var out geminiParts
	path += ".parts"
	list, isList := c["parts"].([]any)
	if c["parts"] == nil || isList && len(list) == 0 {
		k.add("parts-empty", path, "")
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
			k.add("part-data", path, "", "field", key)
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
			k.add("part-empty", path, "")
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
			k.add("name-missing", path+".name", call.id)
		}
		if kind == "functionCall" && !isObjectOrNull(m["args"]) {
			k.add("args", path+".args", call.id)
		}
		if kind == "functionResponse" && !isObjectOrNull(m["response"]) {
			k.add("response", path+".response", call.id)
		}
		if (kind == "functionCall") != (role == "model") {
			k.add("part-role", path, call.id, "role", role, "kind", kind)
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

func isObjectOrNull(v any) bool {
	_, ok := v.(map[string]any)
	return ok || v == nil
}

// geminiMedium is for mediaIn.
func geminiMedium(m map[string]any) (medium, bool) {
	_, v := pick(m, "inlineData")
	if v == nil {
		_, v = pick(m, "fileData")
	}
	in, _ := v.(map[string]any)
	_, mime := pick(in, "mimeType")
	out := medium{mime: str(mime), data: str(in["data"])}
	if strings.ContainsAny(out.data[:min(len(out.data), 64)], "-_") {
		out.data = "" // in the other alphabet of base64, which imagesize does not read
	}
	return out, strings.HasPrefix(out.mime, "image/")
}

// CheckHistory implements [HistoryChecker].
func (f Gemini) CheckHistory(requests ...[]byte) []Finding {
	return checkHistory(requests, historyShape{format: FormatGemini, system: "systemInstruction", messages: "contents", content: "parts"})
}

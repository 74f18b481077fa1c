package wire

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// Decode reads a request, a response, a list of items, one item, or the event
// that ends a stream and holds the response. All output of the model between
// two inputs becomes one assistant message, except that texts which directly
// follow each other in a request stay separate messages. Results are moved
// after their calls. A result whose call is in a previous response is named in
// Lost, but a document that holds only results becomes tool messages.
func (f OpenAIResponses) Decode(data []byte) (Transcript, error) {
	d := responsesDecoder{decoder: decoder{format: FormatOpenAIResponses, own: f.Model, names: map[string]string{}}}
	return d.finish(d.decode("", data))
}

// failedResponse returns the error of a response that failed.
func failedResponse(all map[string]json.RawMessage, data []byte) *ProviderError {
	if !isNull(all["error"]) {
		return providerError(all["error"])
	}
	return &ProviderError{Message: "the response failed", JSON: compact(data)}
}

// isErrorItem reports whether an object with a type is the error of a provider, and not
// an item or event. The message of an error is a string, which no item has, and another
// field also marks it as an error.
func isErrorItem(all map[string]json.RawMessage) bool {
	if kindOf(all["message"]) != '"' || !isNull(all["role"]) {
		return false
	}
	kind := strings.ToLower(stringOf(all["type"]))
	return stringOf(all["object"]) == "error" || all["code"] != nil || strings.HasSuffix(kind, "error")
}

// responsesEnds are the types of the events that end a stream and hold the response.
var responsesEnds = []string{"response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done"}

// A responsesDecoder reads items.
type responsesDecoder struct {
	decoder
	items []inputItem
	at    int             // index of the current item
	cur   *convo.Message  // the assistant message being read
	one   bool            // the items are from one response
	lone  bool            // the document is a list of results, or one
	tools json.RawMessage // the tools that the input names

	outputs map[string][]*inputItem // results that are not used yet, by the ids of their calls
	notes   json.RawMessage         // the annotations of the last text that part read
	point   json.RawMessage         // the cache mark of the last part that it read
}

// An inputItem is an item of the input.
type inputItem struct {
	path   string
	raw    json.RawMessage
	all    map[string]json.RawMessage // its fields
	kind   string
	role   string
	id     string
	callID string
	used   bool // a result that was moved after its call
	at     int  // index of a result
}

func (d *responsesDecoder) decode(path string, data []byte) error {
	if kindOf(data) == '[' {
		return d.decodeItems(path, data)
	}
	all, err := fields(path, data)
	if err != nil {
		return err
	}
	name := stringOf(all["type"])
	switch {
	case name == "error" || isErrorItem(all):
		return reported(path, providerError(data))
	case strings.HasPrefix(name, "response.") && (kindOf(all["response"]) != '{' || !slices.Contains(responsesEnds, name)):
		return isEvent(path, name)
	case path == "" && kindOf(all["response"]) == '{':
		path = at(path, "response")
		response, err := fields(path, all["response"])
		if err == nil && name == "response.failed" {
			err = reported(path, failedResponse(response, all["response"]))
		}
		if err != nil {
			return err
		}
		return d.decode(path, all["response"])
	case !isNull(all["type"]):
		return d.decodeItems(path, append(append([]byte{'['}, data...), ']'))
	}
	if raw := all["model"]; kindOf(raw) == '"' {
		if err := read(at(path, "model"), "a string", raw, &d.model); err != nil {
			return err
		}
	}
	d.tools = all["tools"]
	switch {
	case !isNull(all["output"]), (all["output"] != nil || !isNull(all["usage"])) && !isError(all):
		if stringOf(all["status"]) == "failed" && d.minted == nil { // otherwise a Stream made it, and returns the error itself
			return reported(path, failedResponse(all, data))
		}
		d.answer(stringOf(all["id"]), d.model)
		d.out.Usage = d.responsesUsage(at(path, "usage"), all["usage"])
		d.ended(inner(all["incomplete_details"], "reason"))
		d.out.StopReason = cmp.Or(d.out.StopReason, stringOf(all["status"]))
		d.finished = d.finished || stringOf(all["status"]) == "completed"
		if !isNull(all["error"]) {
			d.lose(at(path, "error"), lostField)
		}
		d.one = true
		if isNull(all["output"]) {
			return nil
		}
		return d.decodeItems(at(path, "output"), all["output"])
	case all["input"] != nil, all["instructions"] != nil:
		return d.decodeRequest(path, all)
	case all["role"] != nil:
		return d.decodeItems(path, append(append([]byte{'['}, data...), ']'))
	}
	if isError(all) {
		return reported(path, providerError(data))
	}
	return &DecodeError{Path: path, Reason: "not a request, response or item: want a field input, output, type or role"}
}

func (d *responsesDecoder) decodeRequest(path string, all map[string]json.RawMessage) error {
	for _, key := range []string{"previous_response_id", "conversation"} {
		if !isNull(all[key]) {
			d.lose(at(path, key), "earlier items that the request refers to")
		}
	}
	var text string
	if raw := all["instructions"]; !isNull(raw) {
		if err := read(at(path, "instructions"), "a string", raw, &text); err != nil {
			return err
		}
		if text != "" {
			d.add(convo.System(text))
		}
	}
	switch raw := all["input"]; {
	case isNull(raw):
	case kindOf(raw) == '"':
		if err := read(at(path, "input"), "a string", raw, &text); err != nil {
			return err
		}
		d.add(convo.User(text))
	default:
		return d.decodeItems(at(path, "input"), raw)
	}
	return nil
}

// decodeItems reads a list of items. An item that is the whole document has the
// empty path.
func (d *responsesDecoder) decodeItems(path string, data []byte) error {
	var list []json.RawMessage
	if err := read(path, "an array of items", data, &list); err != nil {
		return err
	}
	for i, raw := range list {
		it := inputItem{path: atIndex(path, i), raw: raw}
		if path == "" && len(list) == 1 {
			it.path = ""
		}
		var err error
		if it.all, err = fields(it.path, raw); err != nil {
			return err
		}
		for _, field := range []struct {
			key string
			to  *string
		}{{"type", &it.kind}, {"role", &it.role}, {"id", &it.id}, {"call_id", &it.callID}} {
			if raw := it.all[field.key]; !isNull(raw) {
				if err := read(at(it.path, field.key), "a string", raw, field.to); err != nil {
					return err
				}
			}
		}
		if it.kind == "" && it.role == "" && saysError(it.all["error"]) {
			return reported(it.path, providerError(raw))
		}
		d.items = append(d.items, it)
	}
	d.outputs = make(map[string][]*inputItem)
	for i := range d.items {
		if it := &d.items[i]; it.isResult() {
			it.at = i
			d.outputs[it.callID] = append(d.outputs[it.callID], it)
		}
	}
	d.lone = path == "" && !d.one && !slices.ContainsFunc(d.items, func(it inputItem) bool { return !it.isResult() })
	for d.at = range d.items {
		if err := d.item(&d.items[d.at]); err != nil {
			return err
		}
	}
	return d.flush()
}

// isResult reports whether an item is the result of a call.
func (it *inputItem) isResult() bool {
	return it.kind == "function_call_output" || it.kind == "custom_tool_call_output"
}

func (d *responsesDecoder) item(it *inputItem) error {
	switch it.kind {
	case "", "message":
		return d.message(it)
	case "function_call":
		return d.call(it, false)
	case "custom_tool_call":
		if !isServed(d.tools, it.all) {
			return d.call(it, true)
		}
	case "function_call_output", "custom_tool_call_output":
		if err := d.flush(); err != nil {
			return err
		}
		switch {
		case it.used:
		case d.lone:
			return d.result(it)
		default:
			d.lose(it.path, "a result without its call")
		}
		return nil
	case "reasoning":
		part, err := d.reasoning(it)
		if err == nil {
			m := d.assistant()
			m.Parts = append(m.Parts, part)
		}
		return err
	}
	part := convo.Opaque{Format: d.format, JSON: compact(it.raw)}
	isOutput := strings.HasSuffix(it.kind, "_output") && !d.isServedOutput(it)
	if !d.one && (it.role != "" && it.role != "assistant" || it.kind == "mcp_approval_response" || isOutput && d.cur == nil) {
		return d.input(convo.Message{Role: convo.RoleUser, Parts: []convo.Part{part}})
	}
	m := d.assistant()
	m.Parts = append(m.Parts, part)
	return nil
}

// isServedOutput reports whether an item is the output of a tool that the provider runs,
// and therefore output of the model. That is the output of a program, of a tool search or
// of a command in a container.
func (d *responsesDecoder) isServedOutput(it *inputItem) bool {
	switch it.kind {
	case "program_output":
		return true
	case "tool_search_output":
		return stringOf(it.all["execution"]) == "server"
	case "shell_call_output":
		return slices.ContainsFunc(d.items[:d.at], func(call inputItem) bool {
			return call.kind == "shell_call" && call.callID == it.callID && strings.HasPrefix(inner(call.all["environment"], "type"), "container")
		})
	}
	return false
}

// input adds a message that does not come from the model.
func (d *responsesDecoder) input(m convo.Message) error {
	if err := d.flush(); err != nil {
		return err
	}
	d.add(m)
	return nil
}

// assistant returns the message to which output of the model is added.
func (d *responsesDecoder) assistant() *convo.Message {
	if d.cur == nil {
		d.cur = &convo.Message{Role: convo.RoleAssistant, Origin: d.origin()}
	}
	return d.cur
}

// flush adds the assistant message that was read, and after it the results of
// its calls, wherever they are in the input.
func (d *responsesDecoder) flush() error {
	if d.cur == nil {
		return nil
	}
	m := d.cur
	d.cur = nil
	d.add(*m)
	if d.calls.of != m {
		return nil
	}
	for _, o := range slices.Clone(d.calls.open) {
		waiting := d.outputs[o.id]
		for len(waiting) > 0 && waiting[0].at < d.at {
			waiting = waiting[1:]
		}
		if len(waiting) > 0 {
			waiting[0].used = true
			if err := d.result(waiting[0]); err != nil {
				return err
			}
			waiting = waiting[1:]
		}
		d.outputs[o.id] = waiting
	}
	return nil
}

func (d *responsesDecoder) message(it *inputItem) error {
	switch it.role {
	case "user", "system", "developer":
		m := convo.Message{Role: convo.RoleUser}
		if it.role != "user" {
			m.Role = convo.RoleSystem
		}
		var err error
		if m.Parts, err = d.content(at(it.path, "content"), it.all["content"], it.role); err != nil {
			return err
		}
		err = d.input(m)
		d.keepRest(len(d.out.Messages)-1, it.path, it.all, "type", "role", "content", "id", "status")
		return err
	case "assistant":
		parts, err := d.content(at(it.path, "content"), it.all["content"], it.role)
		if err != nil {
			return err
		}
		f := partFields{ID: it.id}
		if raw := it.all["phase"]; !isNull(raw) {
			if err := read(at(it.path, "phase"), "a string", raw, &f.Phase); err != nil {
				return err
			}
		}
		if !d.one && f.Phase == "" && d.cur != nil && len(d.cur.Parts) > 0 {
			if last := d.cur.Parts[len(d.cur.Parts)-1]; endsText(last) { // in one message, Encode would join the texts into one item
				if err := d.flush(); err != nil {
					return err
				}
			}
		}
		m := d.assistant()
		if len(parts) > 0 {
			d.follow(m, f)
		}
		m.Parts = append(m.Parts, parts...)
		d.loseRest(it.path, it.all, "type", "role", "content", "id", "status", "phase")
		return nil
	}
	return &DecodeError{Path: at(it.path, "role"), Reason: "unknown role " + quote(it.role)}
}

// endsText reports whether a part is a text, or holds the citations of one.
func endsText(p convo.Part) bool {
	switch p := p.(type) {
	case convo.Text:
		return true
	case convo.Opaque:
		return isCitations(p)
	}
	return false
}

// follow keeps the fields of the next item that parts have no place for. The id
// is kept only if reasoning precedes the item.
func (d *responsesDecoder) follow(m *convo.Message, f partFields) {
	id := f.ID
	f.ID = ""
	if n := len(m.Parts); n > 0 && id != "" {
		switch p := m.Parts[n-1].(type) {
		case convo.Reasoning:
			p.Signature = id
			m.Parts[n-1] = p
		case convo.Opaque:
			if strings.Contains(p.JSON, `"encrypted_content"`) {
				f.ID = id
			}
		}
	}
	if f != (partFields{}) {
		m.Parts = append(m.Parts, d.fieldsBlock(f))
	}
}

// isServed reports whether a custom_tool_call is a call that the provider runs: xAI makes
// such calls for its search. The tools argument holds the tools of the request, which a
// response repeats.
func isServed(tools json.RawMessage, call map[string]json.RawMessage) bool {
	if kindOf(tools) != '[' {
		return false
	}
	var list []struct{ Type, Name string }
	if json.Unmarshal(tools, &list) != nil {
		return false
	}
	searches, name := false, stringOf(call["name"])
	for _, t := range list {
		if t.Type == "custom" && t.Name == name {
			return false
		}
		searches = searches || t.Type == "x_search"
	}
	return searches
}

// call reads a call. The custom argument reports whether it is a call of a custom tool.
func (d *responsesDecoder) call(it *inputItem, custom bool) error {
	call := convo.ToolCall{ID: it.callID}
	f := partFields{ID: it.id}
	argument := "arguments"
	if custom {
		f.Call, argument = customCall, "input"
	}
	for _, field := range []struct {
		key string
		to  *string
	}{{"name", &call.Name}, {"namespace", &f.Namespace}} {
		if raw := it.all[field.key]; !isNull(raw) {
			if err := read(at(it.path, field.key), "a string", raw, field.to); err != nil {
				return err
			}
		}
	}
	if call.Name == "" {
		return &DecodeError{Path: at(it.path, "name"), Reason: "the call has no function name"}
	}
	raw := it.all[argument]
	text := string(raw)
	if kindOf(raw) == '"' {
		if err := read(at(it.path, argument), "a string", raw, &text); err != nil {
			return err
		}
	} else if isNull(raw) {
		text = ""
	}
	call.Arguments = d.callText(text, custom, stringOf(it.all["status"]) == "completed")
	if !d.one && d.cur != nil && call.ID != "" && d.calls.of == d.cur && d.calls.ids[call.ID] {
		if err := d.flush(); err != nil { // a message cannot hold two calls with the same id, and in a request each has its own result
			return err
		}
	}
	var known []string
	if id, ok := programOf(it.all["caller"]); ok {
		known = append(known, "caller")
		if id != "" {
			f.Caller, f.CallerID = programKind, id
		}
	}
	m := d.assistant()
	d.follow(m, f)
	d.addCall(at(it.path, "call_id"), m, call)
	d.loseRest(it.path, it.all, append(known, "type", "id", "call_id", "name", "namespace", argument, "status")...)
	return nil
}

// programOf returns the callID of the program that makes a call, or "" if the model does. It
// returns false for other callers.
func programOf(raw json.RawMessage) (id string, ok bool) {
	all, err := fields("-", raw)
	if err != nil {
		return "", false
	}
	id = stringOf(all["caller_id"])
	switch kind := stringOf(all["type"]); kind {
	case "direct":
		return "", len(all) == 1
	case programKind:
		return id, id != "" && len(all) == 2
	}
	return "", false
}

func (d *responsesDecoder) result(it *inputItem) error {
	r := convo.ToolResult{CallID: it.callID}
	d.nameResult(&r)
	var err error
	if r.Parts, err = d.content(at(it.path, "output"), it.all["output"], "result"); err != nil {
		return err
	}
	known := []string{"type", "id", "call_id", "output", "status"}
	if _, ok := programOf(it.all["caller"]); ok {
		known = append(known, "caller") // as in its call
	}
	d.loseRest(it.path, it.all, known...)
	d.add(convo.Message{Role: convo.RoleTool, Parts: []convo.Part{r}})
	return nil
}

// reasoning reads a reasoning item. It becomes Opaque if it holds more than the
// fields of convo.Reasoning can.
func (d *responsesDecoder) reasoning(it *inputItem) (convo.Part, error) {
	type part struct {
		Type string
		Text *string
	}
	r := convo.Reasoning{ID: it.id}
	var summary, content []part
	for _, field := range []struct {
		key, want string
		to        any
	}{{"summary", "an array of texts", &summary}, {"content", "an array of texts", &content}, {"encrypted_content", "a string", &r.Encrypted}} {
		if raw := it.all[field.key]; !isNull(raw) {
			if err := read(at(it.path, field.key), field.want, raw, field.to); err != nil {
				return nil, err
			}
		}
	}
	exact := true
	for key, raw := range it.all {
		exact = exact && (isNull(raw) || slices.Contains([]string{"type", "id", "summary", "content", "encrypted_content", "status"}, key))
	}
	parts, kind := summary, "summary_text"
	switch {
	case r.Encrypted == "" && len(content) == 1 && len(summary) == 0:
		parts, kind = content, "reasoning_text"
	case len(content) > 0:
		exact = false
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		if p.Type != kind || p.Text == nil || *p.Text == "" {
			exact = false
			continue
		}
		texts[i] = *p.Text
	}
	r.Text = strings.Join(texts, summarySep)
	if kind == "summary_text" && len(texts) > 0 {
		exact = exact && slices.Equal(strings.Split(r.Text, summarySep), texts)
	}
	if !exact {
		return convo.Opaque{Format: d.format, JSON: compact(it.raw)}, nil
	}
	return r, nil
}

// content reads the content of a message with the given role, or the output of
// a tool, for which the role is "result".
func (d *responsesDecoder) content(path string, data json.RawMessage, role string) ([]convo.Part, error) {
	if kindOf(data) != '[' {
		if isNull(data) {
			return nil, nil
		}
		var text string
		if err := read(path, "a string or an array of parts", data, &text); err != nil || text == "" {
			return nil, err
		}
		return []convo.Part{convo.Text(text)}, nil
	}
	var list []json.RawMessage
	if err := read(path, "an array of parts", data, &list); err != nil {
		return nil, err
	}
	var parts []convo.Part
	for i, raw := range list {
		p, err := d.part(atIndex(path, i), raw, role)
		if err != nil {
			return nil, err
		}
		if p == nil {
			continue
		}
		parts = append(parts, p)
		if text, ok := p.(convo.Text); ok && !isNull(d.notes) {
			m := convo.Message{Parts: parts}
			if role == "assistant" {
				m.Role = convo.RoleAssistant
			}
			d.cite(atIndex(path, i), "annotations", d.notes, &m, string(text))
			parts = m.Parts
		}
		if _, opaque := p.(convo.Opaque); !opaque && !isNull(d.point) {
			if role == "assistant" || kindOf(d.point) != '{' {
				d.lose(at(atIndex(path, i), "prompt_cache_breakpoint"), lostMark)
			} else {
				parts = append(parts, CacheMark(0))
			}
		}
	}
	return parts, nil
}

// part reads a part of a content. It returns nil for an empty part.
func (d *responsesDecoder) part(path string, data json.RawMessage, role string) (convo.Part, error) {
	all, err := fields(path, data)
	if err != nil {
		return nil, err
	}
	if isEmptyRefusal(all) {
		return nil, nil
	}
	var p struct {
		Type   string
		Text   *string
		Image  string `json:"image_url"`
		Detail string
		Data   string `json:"file_data"`
		URL    string `json:"file_url"`
	}
	d.point = all["prompt_cache_breakpoint"]
	opaque := convo.Opaque{Format: d.format, JSON: compact(data)}
	known := json.Unmarshal(data, &p) == nil
	media := role == "user" || role == "result"
	switch {
	case known && p.Text != nil && (p.Type == "input_text" || p.Type == "output_text" || p.Type == "text"):
		d.notes = all["annotations"]
		return convo.Text(*p.Text), nil
	case known && media && p.Type == "input_image" && p.Image != "":
		m := mediaOf(p.Image, "")
		if strings.HasPrefix(m.URL, "data:") || responsesMedia(m) != "image" || !text.IsBase64(m.Data) || !isNull(all["file_id"]) {
			return opaque, nil
		}
		if p.Detail != "" && p.Detail != "auto" {
			d.lose(at(path, "detail"), lostField)
		}
		return m, nil
	case known && media && p.Type == "input_file" && (p.Data == "") != (p.URL == "") && isNull(all["file_id"]):
		m := mediaOf(p.Data, "")
		if p.URL != "" {
			m = convo.Media{MIME: "application/octet-stream", URL: p.URL}
			if strings.HasSuffix(strings.ToLower(p.URL), ".pdf") {
				m.MIME = "application/pdf"
			}
		}
		if strings.HasPrefix(m.URL, "data:") || responsesMedia(m) != "file" || !text.IsBase64(m.Data) {
			return opaque, nil
		}
		if !isNull(all["filename"]) {
			d.lose(at(path, "filename"), lostField)
		}
		return m, nil
	case !isContentType(p.Type) && role != "result":
		// Encode could not distinguish a part of this type from an item, so the part is
		// kept as its own message item.
		b := appendStringField([]byte(`{"type":"message"`), "role", role)
		opaque.JSON = string(append(b, `,"content":[`+opaque.JSON+"]}"...))
	}
	return opaque, nil
}

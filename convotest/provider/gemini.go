package provider

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// gemini is the generateContent API. Names of fields may be in camel case or in snake
// case.
type gemini struct {
	sse bool // a stream is one of events, and no array
}

// geminiPath is the path of a request.
var geminiPath = regexp.MustCompile(`/models/([^/:]+):(generateContent|streamGenerateContent)$`)

func (gemini) cachesAll() bool { return true }

func geminiProblem(format string, args ...any) *problem {
	return &problem{status: 400, kind: "INVALID_ARGUMENT", text: fmt.Sprintf(format, args...)}
}

func (gemini) tooLong(tokens, window int) *problem {
	return geminiProblem("The input token count (%d) exceeds the maximum number of tokens allowed (%d).", tokens, window)
}

func (gemini) fault(_ *call, p *problem) any {
	status := p.kind
	if p.status < http.StatusInternalServerError && p.status != http.StatusTooManyRequests {
		status = "INVALID_ARGUMENT"
	}
	return object{"error": object{"code": p.status, "message": p.text, "status": status}}
}

// camel returns v with all names in camel case, apart from the names in data of the
// application.
func camel(v any) any {
	switch v := v.(type) {
	case object:
		out := make(object, len(v))
		for key, x := range v {
			words := strings.Split(key, "_")
			for i, w := range words[1:] {
				if w != "" {
					words[i+1] = strings.ToUpper(w[:1]) + w[1:]
				}
			}
			switch key {
			case "args", "response", "parameters", "parametersJsonSchema", "parameters_json_schema":
			default:
				x = camel(x)
			}
			out[strings.Join(words, "")] = x
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = camel(x)
		}
		return out
	}
	return v
}

func (gemini) parts(c *call) (parts []part) {
	all := obj(camel(c.all))
	for _, t := range list(all["tools"]) {
		parts = append(parts, newPart("tools", t))
	}
	for _, p := range list(obj(all["systemInstruction"])["parts"]) {
		parts = append(parts, newPart("system", p))
	}
	for _, m := range list(all["contents"]) {
		for _, p := range list(obj(m)["parts"]) {
			parts = append(parts, newPart(str(obj(m)["role"]), p))
		}
	}
	return parts
}

// A geminiCheck keeps the first thing that is wrong with a request.
type geminiCheck struct {
	first *problem
	turns []geminiTurn
}

// A geminiTurn is a run of contents of one role.
type geminiTurn struct {
	role             string
	calls, responses int
	others           bool // parts that are neither
	at               int  // index of its first content
	parts            []geminiPart
}

type geminiPart struct {
	object
	path string
	at   int // index of its content
}

func (k *geminiCheck) add(format string, args ...any) {
	if k.first == nil {
		k.first = geminiProblem(format, args...)
	}
}

func (gemini) check(c *call) *problem {
	var k geminiCheck
	all := obj(camel(c.all))
	contents := list(all["contents"])
	if all["cachedContent"] != nil && (all["systemInstruction"] != nil || all["tools"] != nil || all["toolConfig"] != nil) {
		k.add("CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config.\n\nProposed fix: move those values to CachedContent from GenerateContent request.")
	}
	if len(contents) == 0 {
		k.add("* GenerateContentRequest.contents: contents is not specified\n")
	}
	for i, m := range contents {
		k.content(i, obj(m))
	}
	for i := range k.turns {
		k.turn(i)
	}
	if major := geminiVersion(c.req.Model); major >= 3 && k.first == nil {
		k.signatures()
	}
	return k.first
}

// geminiVersion returns the generation of a model. Names that say nothing stand for the
// newest.
func geminiVersion(model string) (major int) {
	if _, err := fmt.Sscanf(model, "gemini-%d", &major); err != nil {
		return 99
	}
	return major
}

// geminiParts are the fields of a part that are known. A part has exactly one of the data.
var (
	geminiData = []string{"text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult", "toolCall", "toolResponse"}
	geminiMore = []string{"thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"}
)

func (k *geminiCheck) content(i int, m object) {
	role := str(m["role"])
	switch role {
	case "user", "model", "":
	default:
		k.add("Please use a valid role: user, model.")
	}
	if role == "" {
		role = "user"
	}
	parts := list(m["parts"])
	if len(parts) == 0 {
		k.add("* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.\n", i)
	}
	if n := len(k.turns); n == 0 || k.turns[n-1].role != role {
		k.turns = append(k.turns, geminiTurn{role: role, at: i})
	}
	t := &k.turns[len(k.turns)-1]
	for j, p := range parts {
		part := geminiPart{obj(p), fmt.Sprintf("contents[%d].parts[%d]", i, j), i}
		k.part(part)
		t.parts = append(t.parts, part)
		switch {
		case part.object["functionCall"] != nil:
			t.calls++
		case part.object["functionResponse"] != nil:
			if t.responses++; t.others {
				k.add("Please ensure that function response turn comes immediately after a function call turn.")
			}
		default:
			t.others = true
		}
	}
}

func (k *geminiCheck) part(p geminiPart) {
	data := 0
	for _, key := range sortedKeys(p.object) {
		known := false
		for _, name := range geminiData {
			if key == name {
				data++
				known = true
			}
		}
		for _, name := range geminiMore {
			known = known || key == name
		}
		if !known {
			k.add("Invalid JSON payload received. Unknown name \"%s\" at '%s': Cannot find field.", key, p.path)
		}
	}
	switch {
	case data == 0:
		k.add("* GenerateContentRequest.%s.data: required oneof field 'data' must have one initialized field\n", p.path)
	case data > 1:
		k.add("Invalid value at '%s' (oneof), oneof field 'data' is already set.", p.path)
	}
	for _, field := range [][3]string{{"functionCall", "args", "function_call"}, {"functionResponse", "response", "function_response"}} {
		f := obj(p.object[field[0]])
		if v := f[field[1]]; v != nil {
			if _, ok := v.(object); !ok {
				k.add("Invalid value at '%s.%s.%s' (type.googleapis.com/google.protobuf.Struct)", p.path, field[2], field[1])
			}
		}
		if f != nil && str(f["name"]) == "" {
			k.add("* GenerateContentRequest.%s.%s.name: Name cannot be empty.\n", p.path, field[2])
		}
	}
	if signature := str(p.object["thoughtSignature"]); signature != "" {
		if _, err := fromBase64(signature); err != nil {
			k.add("Invalid value at '%s.thought_signature' (TYPE_BYTES), Base64 decoding failed for \"%s\"", p.path, signature)
		}
	}
	if in := obj(p.object["inlineData"]); in != nil && geminiImages.MatchString(str(in["mimeType"])) && look(str(in["data"])).mime == "" {
		k.add("Provided image is not valid.")
	}
}

// turn checks calls and responses.
func (k *geminiCheck) turn(i int) {
	t := k.turns[i]
	var before geminiTurn
	if i > 0 {
		before = k.turns[i-1]
	}
	if t.calls > 0 {
		if i == 0 {
			k.add("Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
		}
		if i+1 < len(k.turns) && k.turns[i+1].responses != t.calls || i+1 == len(k.turns) {
			k.add("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
		}
	}
	if t.responses > 0 && before.calls == 0 {
		k.add("Please ensure that function response turn comes immediately after a function call turn.")
	}
}

// geminiImages are the types of images that this package can read.
var geminiImages = regexp.MustCompile(`^image/(png|jpeg|webp)$`)

// anySignatures may be sent in place of the signature of a call that another model made, in
// base64 or as they are, which is base64 of other bytes.
var anySignatures = []string{"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"}

// isAnySignature reports whether a signature is one of anySignatures.
func isAnySignature(signature string) bool {
	b, err := fromBase64(signature)
	return err == nil && (slices.Contains(anySignatures, string(b)) || slices.Contains(anySignatures, strings.TrimRight(signature, "=")))
}

// signatures checks that the first call of each step of the current turn has its
// signature, and that this package made all signatures.
func (k *geminiCheck) signatures() {
	from := 0
	for i, t := range k.turns {
		if t.role == "user" && t.others {
			from = i
		}
	}
	for i, t := range k.turns {
		signed := i < from
		for n, p := range t.parts {
			signature := str(p.object["thoughtSignature"])
			if b, err := fromBase64(signature); err == nil { // in the form that readSeal wants
				signature = base64.StdEncoding.EncodeToString(b)
			}
			if _, ok := readSeal(signature); signature != "" && !ok && !isAnySignature(str(p.object["thoughtSignature"])) {
				k.add("Corrupted thought signature.")
			}
			if f := obj(p.object["functionCall"]); f != nil {
				if !signed && signature == "" {
					k.add("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s` , position %d. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.", str(f["name"]), n+1)
				}
				signed = true
			}
		}
	}
}

// answerParts returns the parts of an answer. The first call, or else the last text, has
// the signature of what was thought before it.
func (gemini) answerParts(c *call, a Answer) (parts []any) {
	signature := seal{model: sealOf(c.req.Model), messages: sealOf(c.id)}.String()
	signed := geminiVersion(c.req.Model) < 3
	for _, b := range a.Blocks {
		switch b := b.(type) {
		case Text:
			parts = append(parts, object{"text": string(b)})
		case Thinking:
			parts = append(parts, object{"text": string(b), "thought": true})
		case Call:
			part := object{"functionCall": object{"id": b.ID, "name": b.Name, "args": value(b.Arguments)}}
			if !signed {
				part["thoughtSignature"], signed = signature, true
			}
			parts = append(parts, part)
		case Raw:
			parts = append(parts, value(string(b)))
		}
	}
	return parts
}

func (f gemini) write(c *call, a Answer, u Usage) {
	stop := a.Stop
	if stop == "" {
		stop = "STOP"
	}
	usage := object{"promptTokenCount": u.Input, "candidatesTokenCount": u.Output, "totalTokenCount": u.Input + u.Output}
	if u.CacheRead > 0 {
		usage["cachedContentTokenCount"] = u.CacheRead
	}
	chunk := func(parts []any, stop any) object {
		candidate := object{"index": 0, "content": object{"role": "model", "parts": parts}}
		if stop != nil {
			candidate["finishReason"] = stop
		}
		return object{"candidates": []any{candidate}, "usageMetadata": usage, "modelVersion": c.req.Model, "responseId": fmt.Sprintf("response-%d", c.id)}
	}
	parts := f.answerParts(c, a)
	if !c.req.Stream {
		c.send(200, chunk(parts, stop))
		return
	}
	var chunks []any
	for _, p := range parts {
		text, isText := obj(p)["text"].(string)
		if !isText {
			chunks = append(chunks, chunk([]any{p}, nil))
		}
		for _, piece := range pieces(text) {
			chunks = append(chunks, chunk([]any{with(obj(p), "text", piece)}, nil))
		}
	}
	chunks = append(chunks, chunk([]any{object{"text": ""}}, stop))
	if !f.sse {
		c.send(200, chunks)
		return
	}
	for _, v := range chunks {
		c.event("", v)
	}
}

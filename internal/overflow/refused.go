package overflow

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// A Kind is what a provider has refused of a request.
type Kind uint8

// Kinds of what was refused.
const (
	NotRefused Kind = iota // the error is about something else
	Image
	Document
	Arguments // of a call
	Reference // to a tool that the request does not have
	Encrypted // reasoning, or another item that only the provider can read
	Seal      // signed reasoning
	Block     // a block that only the provider understands
	Container // in which code of the provider ran, and which has expired
)

// A Refusal is what an error says about a part of the request.
type Refusal struct {
	Kind  Kind
	Paths []string // where, in the words of the provider; none: it does not say
	Name  string   // of the tool, or the ID of the item, call or container; empty: it does not say
	Most  int      // the largest side of an image in pixels, or the longest arguments in characters; 0: it does not say
	Words string   // the beginning of the message
}

// IsSealBroken reports whether err means that a provider refused signed or encrypted reasoning
// in a request, because of what precedes it, its signature or its key.
func IsSealBroken(err error) bool {
	kind := Refused(err).Kind
	return kind == Seal || kind == Encrypted
}

// Refused returns what an error says was refused. It reads the fields of the error and the
// beginning of its message, up to the first quotation of the request, since the rest may
// repeat what a tool has written. Errors that pass by themselves refuse nothing.
func Refused(err error) Refusal {
	for _, e := range read(err) {
		if e.status != 0 && !slices.Contains(refusedStatus[:], e.status) {
			continue
		}
		for _, own := range e.own {
			if r := refusalIn(own, maxNested); r.Kind != NotRefused {
				return r
			}
		}
	}
	return Refusal{}
}

// refusedStatus are the statuses of an error that says what is wrong in a request.
var refusedStatus = [...]int{400, 404, requestTooLarge, 422}

const (
	maxNested = 4    // levels of errors that gateways have put into others
	maxWords  = 200  // bytes of the message that are kept
	maxHead   = 2048 // bytes of the message that are read
)

// A saidError is an error as a provider writes it.
type saidError struct {
	Message, Type, Code, Status, Param string
	Paths                              []string
	Most                               int
	nested                             []string // what another provider has said
}

// refusalIn reads an error of a provider in a text of an error.
func refusalIn(s string, levels int) Refusal {
	said, ok := saidIn(s, levels < maxNested)
	switch {
	case !ok:
		return refusalOf(saidError{Message: s}, levels < maxNested)
	case said.passes():
		return Refusal{}
	}
	if r := refusalOf(said, true); r.Kind != NotRefused || levels == 0 {
		return r
	}
	for _, s := range said.nested {
		if r := refusalIn(s, levels-1); r.Kind != NotRefused {
			return r
		}
	}
	return Refusal{}
}

// saidIn reads the JSON object in a text, which may have what a client writes before it. In a
// message of a provider it must be one of the known clients.
func saidIn(s string, isNested bool) (said saidError, ok bool) {
	before, _, found := strings.Cut(s, "{")
	if !found || len(before) > maxHead {
		return said, false
	}
	rest := withoutClient(before, isNested)
	if words := strings.TrimSpace(rest); words != "" && words != "b'" && (isNested || len(rest) < len(strings.TrimLeft(before, " \n\t")) && !isStatus(words) || !isClientEnd(words)) {
		return said, false // a quotation
	}
	for word := range strings.FieldsSeq(before) {
		if n, err := strconv.Atoi(strings.Trim(word, ":,()")); err == nil && n >= 400 && n < 600 && !slices.Contains(refusedStatus[:], n) {
			return saidError{Status: "unavailable"}, true
		}
	}
	var v map[string]any
	if json.NewDecoder(strings.NewReader(s[len(before):])).Decode(&v) != nil {
		return said, false
	}
	said.read(v, 3)
	return said, true
}

// read reads the fields of an object, and of those in it that describe the same error.
func (e *saidError) read(v map[string]any, levels int) {
	for name, to := range map[string]*string{"message": &e.Message, "type": &e.Type, "code": &e.Code, "status": &e.Status, "param": &e.Param} {
		switch v := v[name].(type) {
		case string:
			*to = v
		case float64:
			*to = strconv.Itoa(int(v))
		}
	}
	if paths, ok := v["paths"].([]any); ok {
		for _, p := range paths[:min(len(paths), 1000)] {
			if p, ok := p.(string); ok {
				e.Paths = append(e.Paths, p)
			}
		}
	}
	if most, ok := v["max_side_length_pixels"].(float64); ok {
		e.Most = int(most)
	}
	if raw, ok := v["raw"].(string); ok {
		e.nested = append(e.nested, raw)
	}
	if strings.Contains(e.Message, "{") {
		e.nested = append(e.nested, e.Message)
	}
	if levels == 0 {
		return
	}
	for _, name := range [...]string{"error", "details", "metadata"} {
		switch in := v[name].(type) {
		case map[string]any:
			e.read(in, levels-1)
		case string:
			if name == "error" {
				e.Message = in
			}
		}
	}
}

// passes reports whether the error may not occur again.
func (e *saidError) passes() bool {
	for _, s := range [...]string{e.Type, e.Code, e.Status} {
		if n, err := strconv.Atoi(s); err == nil {
			if n >= 400 && !slices.Contains(refusedStatus[:], n) {
				return true
			}
			continue
		}
		if containsAny(strings.ToLower(s), passingKinds[:]) {
			return true
		}
	}
	return false
}

// passingKinds are parts of the types and codes of errors that pass by themselves.
var passingKinds = [...]string{
	"rate_limit", "overloaded", "timeout", "api_error", "server_error", "unavailable", "exhausted", "throttl", "internal", "deadline", "authentication", "permission",
}

// withoutClient returns a message without what clients and gateways put before it. In a message
// that a provider has written, only the names of errors of known gateways are.
func withoutClient(m string, isProviders bool) string {
	for {
		m = strings.TrimLeft(m, " \n\t")
		if method, rest, ok := strings.Cut(m, " \"http"); ok && len(method) < 8 && strings.ToUpper(method) == method {
			if _, after, ok := strings.Cut(rest, "\": "); ok {
				m = after
				continue
			}
		}
		if strings.HasPrefix(m, "RequestID: ") || strings.HasPrefix(m, "operation error ") {
			_, m, _ = strings.Cut(m, ", ")
			continue
		}
		head := m[:min(len(m), 100)]
		if status, rest, ok := strings.Cut(head, " (Request-ID: "); ok && isClientEnd(status) {
			if id, _, ok := strings.Cut(rest, ") "); ok {
				m = m[len(status)+len(" (Request-ID: ")+len(id)+len(") "):]
				continue
			}
		}
		end := strings.IndexAny(head, ":,")
		if dash := strings.Index(head, " - "); dash >= 0 && (end < 0 || dash < end) {
			end = dash + 1
		}
		if end < 0 {
			return m
		}
		if words := strings.ToLower(strings.TrimSpace(m[:end])); !slices.Contains(gatewayWords[:], words) && (isProviders || !isClient(words)) {
			return m
		}
		m = m[end+1:]
	}
}

// isClient reports whether words before a colon or a comma, in lower case, are those of a client.
func isClient(words string) bool {
	if slices.Contains(clientWords[:], words) || strings.HasPrefix(words, "the provider reports") {
		return true
	}
	for word := range strings.FieldsSeq(words) {
		if n, err := strconv.Atoi(word); err == nil && slices.Contains(refusedStatus[:], n) {
			return !strings.ContainsAny(words, "'\"`/") && !containsAny(words, requestWords[:])
		}
	}
	return false
}

// isStatus reports whether words begin with a status of a refusal.
func isStatus(words string) bool {
	n, err := strconv.Atoi(words[:min(len(words), 3)])
	return err == nil && slices.Contains(refusedStatus[:], n)
}

// gatewayWords are what gateways put before the message of a provider, in their own messages.
var gatewayWords = [...]string{
	"provider returned error", "upstream error", "error from provider", "the model returned the following errors",
	"validationexception", "badrequesterror", "litellm.badrequesterror", "anthropicexception", "openaiexception", "bedrockexception", "vertexaiexception",
}

// isClientEnd reports whether words may be the end of what a client writes before the body of
// an error: a status, or a few words that are not about the request.
func isClientEnd(words string) bool {
	if isStatus(words) {
		words = words[3:]
		return !strings.ContainsAny(words, "'`\"\n:,")
	}
	words, ok := strings.CutSuffix(strings.ToLower(words), ":")
	return ok && len(words) <= 40 && !strings.ContainsAny(words, "'`\"\n.,[") && !containsAny(words, requestWords[:])
}

// requestWords are words about the content of a request.
var requestWords = [...]string{"unexpected", "payload", "data", "body", "json", "said", "tool", "result", "content", "input", "output", "message", "value", "valid", "argument", "block", "field", "text"}

// clientWords are the words of clients that are known, besides statuses.
var clientWords = [...]string{
	"wire", "send", "request", "call", "error", "message", "status", "status code", "https response error statuscode",
}

// cutPath returns the path at the beginning of a message, which may be quoted after "Invalid",
// and the rest.
func cutPath(m string) (path, rest string, isQuoted, ok bool) {
	rest, isQuoted = strings.CutPrefix(m, "Invalid '")
	n := pathLength(rest)
	if path, rest = rest[:n], rest[n:]; n == 0 {
		return "", m, false, false
	}
	if isQuoted {
		rest = strings.TrimPrefix(rest, "'")
	}
	rest, ok = strings.CutPrefix(rest, ": ")
	return path, rest, isQuoted, ok
}

// pathLength returns the length of the path at the beginning of s, or 0.
func pathLength(s string) (n int) {
	for _, list := range [...]string{"messages", "input", "contents", "system", "tools"} {
		if strings.HasPrefix(s, list) {
			n = len(list)
		}
	}
	for n > 0 && n < len(s) {
		end := n + 1
		for end < len(s) && isWord(s[end]) {
			end++
		}
		switch {
		case end == n+1:
			return n
		case s[n] == '.':
			n = end
		case s[n] == '[' && end < len(s) && s[end] == ']':
			n = end + 1
		default:
			return n
		}
	}
	return n
}

// named returns what stands between before, which s begins with, and after; the names of
// tools, items and calls have no white space or quotation marks.
func named(s, before, after string) (name string, ok bool) {
	if !strings.HasPrefix(lowerASCII(s), before) {
		return "", false
	}
	rest := s[len(before):]
	end := strings.IndexAny(rest, " '\"`\n")
	if end <= 0 || end > 200 || !strings.HasPrefix(strings.TrimLeft(rest[end:], "'\"` "), after) {
		return "", false
	}
	return rest[:end], true
}

// A phrase is the beginning of a message without its path, in lower case and without
// quotation marks around names of fields.
type phrase struct {
	text string
	kind Kind
}

// phrases are the published beginnings of messages.
var phrases = [...]phrase{
	{"could not process image", Image},
	{"unable to process input image", Image},
	{"provided image is not valid", Image},
	{"image exceeds ", Image},
	{"image dimensions exceed ", Image},
	{"at least one of the image dimensions exceed ", Image},
	{"you uploaded an unsupported image", Image},
	{"the image data you provided does not represent a valid image", Image},
	{"the image was specified using the ", Image},
	{"image does not match the provided media type", Image},
	{"image does not match the declared media type", Image},
	{"the pdf specified ", Document},
	{"could not process pdf", Document},
	{"could not process document", Document},
	{"a maximum of 100 pdf pages ", Document},
	{"a maximum of 600 pdf pages ", Document},
	{"the document has no pages", Document},
	{"invalid signature in thinking block", Seal},
	{"invalid data in redacted_thinking block", Seal},
	{"thinking or redacted_thinking blocks in the latest assistant message cannot be modified", Seal},
	{"container is expired", Container},
	{"invalid encrypted_content", Block},
	{"invalid encrypted_index", Block},
	{"invalid encrypted_stdout", Block},
}

// refusalOf returns what an error refuses. isProviders says that a provider has written all of
// its message.
func refusalOf(e saidError, isProviders bool) Refusal {
	m := withoutClient(text.Valid(e.Message[:text.Floor(e.Message, min(len(e.Message), maxHead))]), isProviders)
	r := Refusal{Paths: e.Paths, Most: e.Most, Words: m[:text.Floor(m, min(len(m), maxWords))]}
	path, rest, isQuoted, ok := cutPath(m)
	if ok {
		if m = rest; len(r.Paths) == 0 {
			r.Paths = []string{path}
		}
	} else if n := pathLength(e.Param); len(r.Paths) == 0 && n > 0 && n == len(e.Param) {
		r.Paths = []string{e.Param}
	}
	m = strings.ReplaceAll(m, "`", "")
	lower := lowerASCII(m)
	if isQuoted { // what follows may be a quotation of another part
		const tooLong = "string too long. expected a string with maximum length "
		if len(r.Paths) == 1 && strings.HasSuffix(r.Paths[0], "arguments") && strings.HasPrefix(lower, tooLong) {
			digits, _, _ := strings.Cut(lower[len(tooLong):], ",")
			r.Kind = Arguments
			r.Most, _ = strconv.Atoi(strings.TrimSpace(digits))
		}
		return r
	}
	if name, ok := named(m, "tool reference '", "not found in available tools"); ok {
		r.Kind, r.Name = Reference, name
		return r
	}
	if name, ok := named(m, "the encrypted content for item ", "could not be "); ok {
		r.Kind, r.Name = Encrypted, name
		return r
	}
	if name, ok := named(m+" ", "expected container_id: ", ""); ok {
		r.Kind, r.Name = Container, strings.TrimRight(name, ".,;")
		return r
	}
	_, after, isOfID := strings.Cut(lower, " tool use with id ")
	if name, ok := named(m[len(m)-len(after):], "", "was found without a corresponding "); ok && isOfID && isName(lower[:len(lower)-len(after)-len(" tool use with id ")]) {
		r.Kind, r.Name = Block, name
		return r
	}
	switch {
	case e.Type == "image_dimensions_too_large" || e.Code == "image_dimensions_too_large":
		r.Kind = Image
	case e.Code == "invalid_encrypted_content", strings.HasPrefix(lower, "the encrypted content could not be "), strings.HasPrefix(lower, "encrypted content could not be "):
		r.Kind = Encrypted
	default:
		for _, p := range phrases {
			if strings.HasPrefix(lower, p.text) {
				r.Kind = p.kind
				break
			}
		}
		if rest, ok := strings.CutPrefix(lower, "at least one of the image dimensions exceed max allowed size"); ok {
			r.Most = pixelsIn(rest)
		}
	}
	return r
}

func isName(s string) bool {
	return s != "" && strings.IndexFunc(s, func(c rune) bool { return c >= 128 || !isWord(byte(c)) }) < 0
}

// pixelsIn returns the number in "...: 2000 pixels".
func pixelsIn(s string) int {
	_, s, _ = strings.Cut(s, ": ")
	s, _, _ = strings.Cut(s, " pixels")
	n, _ := strconv.Atoi(s)
	return n
}

// lowerASCII returns s with the capital letters A to Z in lower case, and so of the same length.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return string(b)
}

package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
)

// Options say what a Server accepts and how it answers. The zero value accepts requests of
// any length and answers each with the text "ok".
type Options struct {
	// Window is how many tokens a request may have. 0: any number.
	Window int

	// Quota is how many tokens the account may use in a minute. A request that alone has more
	// is refused with the status 429; what the answer may have counts in OpenAI's APIs. What
	// several requests use together is not limited. 0: any number.
	Quota int

	// Count returns the tokens of a part of a request, given its JSON: a tool, a system
	// text, a block of a message or an item. The tokens of a request are the sum of its
	// parts. Nil: a token for each four bytes begun.
	Count func(part []byte) int

	// Answer answers the requests for which there is no scripted answer. It is called on
	// the goroutine of the request, and may be called several times at once. Nil: the
	// text "ok".
	Answer func(Request) Answer

	// Checks reports whether a model checks where signed reasoning is; see Seals. It is
	// called only for Anthropic's format and for Converse. Nil: all models do but those
	// that are known not to.
	Checks func(model string) bool
}

// A Request is a request that a Server has received.
type Request struct {
	Format string // one of the Format constants; empty if the path is of no format
	Model  string
	Stream bool
	Header http.Header
	Body   []byte

	Status int    // of the answer
	Error  string // the message of the error; empty if the request was accepted
	Usage  Usage  // what the answer reported
}

// The formats of requests, by the path they are sent to.
const (
	FormatAnthropic       = "anthropic"        // .../messages
	FormatOpenAIChat      = "openai-chat"      // .../chat/completions
	FormatOpenAIResponses = "openai-responses" // .../responses and .../responses/compact
	FormatGemini          = "gemini"           // .../models/MODEL:generateContent and :streamGenerateContent
	FormatConverse        = "converse"         // .../model/MODEL/converse and .../converse-stream
)

// A Server is the handler of a provider's API. It is safe for concurrent use.
type Server struct {
	opts Options

	mu       sync.Mutex
	script   []Answer
	requests []Request
	cached   map[prefixKey]bool
	last     int // number of the last request
	keys     int // how often a Fault has changed the key
}

// New returns a Server.
func New(opts Options) *Server {
	if opts.Count == nil {
		opts.Count = func(part []byte) int { return (len(part) + 3) / 4 }
	}
	if opts.Answer == nil {
		opts.Answer = func(Request) Answer { return Answer{Blocks: []Block{Text("ok")}} }
	}
	if opts.Checks == nil {
		opts.Checks = func(model string) bool { return claudeOf(model).checks() }
	}
	return &Server{opts: opts, cached: map[prefixKey]bool{}}
}

// Script adds answers for the next requests that are accepted, one for each.
func (s *Server) Script(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, answers...)
}

// Requests returns all requests so far, in the order in which they were judged. A request
// whose body did not arrive whole is not judged, such as that of a client that went away.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Refused returns the requests that were answered with an error for what they hold, not for
// a Fault.
func (s *Server) Refused() (refused []Request) {
	return slices.DeleteFunc(s.Requests(), func(r Request) bool { return r.Error == "" })
}

// A format is the API of a provider.
type format interface {
	// check returns the first rule that a request breaks.
	check(c *call) *problem
	// parts returns what a request consists of, for counting.
	parts(c *call) []part
	// tooLong returns the error for a request that exceeds the window.
	tooLong(tokens, window int) *problem
	// fault returns the body of an error.
	fault(c *call, p *problem) any
	// write answers a request.
	write(c *call, a Answer, u Usage)
	// cachesAll reports whether each part is cached, without marks.
	cachesAll() bool
}

// A problem is the reason why a request is refused.
type problem struct {
	status            int
	kind, code, param string
	details           object // beside the code; nil: none
	text              string
}

// A call is a request while it is answered.
type call struct {
	s   *Server
	w   http.ResponseWriter
	f   format
	req Request
	all map[string]any // the body
	id  int            // number of the request

	fault   *Fault          // of the answer
	gone    <-chan struct{} // closed when the client goes away; nil without a fault
	events  int             // of a stream, that were sent
	foreign bool            // the event that no client knows was sent
}

// maxBody is how many bytes a request may have.
const maxBody = 32 << 20

// ServeHTTP answers a request: with an error of the provider if it breaks a rule or exceeds
// the window, and else with the next answer.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{s: s, w: w, req: Request{Header: r.Header.Clone()}, id: s.number()}
	c.route(r.URL)
	if c.f == nil {
		c.req.Status, c.req.Error = http.StatusNotFound, "not found: "+r.URL.Path
		s.record(c.req)
		http.Error(w, c.req.Error, http.StatusNotFound)
		return
	}
	p, whole := c.read(r)
	if !whole {
		c.send(p.status, c.f.fault(c, p)) // the client may only have closed its half of the connection
		return
	}
	if p == nil {
		p = c.f.check(c)
	}
	var parts []part
	tokens := 0
	if p == nil {
		parts = c.f.parts(c)
		for i := range parts {
			parts[i].tokens = s.opts.Count(parts[i].data)
			tokens += parts[i].tokens
		}
		if s.opts.Window > 0 && tokens > s.opts.Window {
			p = c.f.tooLong(tokens, s.opts.Window)
		}
		if p == nil && s.opts.Quota > 0 {
			p = c.overQuota(tokens)
		}
	}
	if p != nil {
		c.refuse(p)
		return
	}
	c.answer(r, parts)
}

// refuse answers a request with an error.
func (c *call) refuse(p *problem) {
	c.req.Status, c.req.Error = p.status, p.text
	c.s.record(c.req)
	c.send(p.status, c.f.fault(c, p))
}

// read reads the body, and reports whether it has arrived whole.
func (c *call) read(r *http.Request) (p *problem, whole bool) {
	if r.Method != http.MethodPost {
		return &problem{status: http.StatusMethodNotAllowed, kind: "invalid_request_error", text: "Method Not Allowed"}, true
	}
	var err error
	c.req.Body, err = io.ReadAll(http.MaxBytesReader(c.w, r.Body, maxBody))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return &problem{status: http.StatusRequestEntityTooLarge, kind: "request_too_large", text: "Request exceeds the maximum size"}, true
	}
	if err != nil {
		return &problem{status: http.StatusBadRequest, kind: "invalid_request_error", text: fmt.Sprintf("The request body cannot be read: %v", err)}, false
	}
	if err = decode(c.req.Body, &c.all); err != nil || c.all == nil {
		return &problem{status: http.StatusBadRequest, kind: "invalid_request_error", text: fmt.Sprintf("The request body is not valid JSON: %v", err)}, true
	}
	if c.req.Format != FormatGemini && c.req.Format != FormatConverse { // which have both in their paths
		c.req.Model, c.req.Stream = str(c.all["model"]), c.all["stream"] == true
	}
	return nil, true
}

// answer answers a request that was accepted.
func (c *call) answer(r *http.Request, parts []part) {
	s := c.s
	s.mu.Lock()
	var a Answer
	scripted := len(s.script) > 0
	if scripted {
		a, s.script = s.script[0], s.script[1:]
	}
	s.mu.Unlock()
	if !scripted {
		a = s.opts.Answer(c.req)
	}
	if c.fault = a.Fault; !c.fail(r) {
		return
	}
	s.mu.Lock()
	u := s.usage(c.req.Model, parts, c.f.cachesAll())
	s.mu.Unlock()
	if f, ok := c.f.(compacting); ok {
		if p := f.refuses(c, a); p != nil {
			c.refuse(p)
			return
		}
	}
	a.Blocks = slices.Clone(a.Blocks)
	for i, b := range a.Blocks {
		b = b.withID(c, i)
		a.Blocks[i] = b
		u.Output += s.opts.Count(marshal(b))
	}
	if a.Usage != nil {
		u = *a.Usage
	}
	c.req.Status, c.req.Usage = http.StatusOK, u
	s.record(c.req)
	c.f.write(c, a, u)
}

// number numbers a request.
func (s *Server) number() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	return s.last
}

// key returns the number of the key of encrypted reasoning.
func (s *Server) key() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys
}

func (s *Server) record(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
}

// send sends a JSON body.
func (c *call) send(status int, body any) {
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(status)
	_, _ = c.w.Write(marshal(body)) // the client may be gone
}

// event sends a server-sent event. The name may be empty.
func (c *call) event(name string, data any) {
	c.w.Header().Set("Content-Type", "text/event-stream")
	var b bytes.Buffer
	if name != "" {
		fmt.Fprintf(&b, "event: %s\n", name)
	}
	text, isText := data.(string)
	if !isText {
		text = string(marshal(data))
	}
	fmt.Fprintf(&b, "data: %s\n\n", text)
	c.write(b.Bytes())
	c.afterEvent(func(name string, data json.RawMessage) { c.event(name, string(data)) })
}

// write sends a piece of a stream.
func (c *call) write(data []byte) {
	_, _ = c.w.Write(data) // the client may be gone
	if f, ok := c.w.(http.Flusher); ok {
		f.Flush()
	}
}

// An object is a JSON object.
type object = map[string]any

// with returns a copy of o with a field more.
func with(o object, key string, v any) object {
	if o = maps.Clone(o); o == nil {
		o = object{}
	}
	o[key] = v
	return o
}

func str(v any) string { s, _ := v.(string); return s }

func obj(v any) object { o, _ := v.(object); return o }

func list(v any) []any { l, _ := v.([]any); return l }

func sortedKeys(o object) []string { return slices.Sorted(maps.Keys(o)) }

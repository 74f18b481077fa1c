package clients

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// ErrTransport says that the HTTP client of an SDK does not use [Transport], so that the
// request was not made of the conversation. What the provider answered is left aside. An
// error with which the SDK makes no request, or gets no answer, is returned alone.
var ErrTransport = errors.New("clients: the HTTP client of the SDK lacks the transport; make it with &http.Client{Transport: clients.Transport(nil)}")

// Transport returns a RoundTripper for the HTTP client of an SDK that neither takes a body as
// raw bytes nor gives back those of an answer. [Through] makes requests through it. All other
// requests go to base as they are. A nil base is [http.DefaultTransport].
func Transport(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return transport{base}
}

// Through makes a request with an SDK whose HTTP client has the [Transport]. call calls the
// SDK with the parameters of the application and the ctx that it is given, and reads the
// stream of the SDK to its end; it returns the SDK's error.
//
// The body that the SDK has written is joined with req as [Body] does, and the answer is
// read as [Read] does.
func Through(ctx context.Context, req wire.Request, format wire.Streamer, show func(wire.Delta), call func(context.Context) error) (convo.Reply, error) {
	x := &exchange{req: req, format: format, show: show}
	reply, err := x.through(ctx, call)
	reply.ParamTools, reply.Usage.CacheTTL = x.tools, x.cacheTTL
	return reply, err
}

func (x *exchange) through(ctx context.Context, call func(context.Context) error) (convo.Reply, error) {
	var connects atomic.Bool // a request was made, perhaps without the transport
	err := call(httptrace.WithClientTrace(context.WithValue(ctx, exchangeKey{}, x), &httptrace.ClientTrace{
		GetConn: func(string) { connects.Store(true) },
	}))
	_, unanswered := errors.AsType[*url.Error](err)
	switch {
	case !x.sent && err != nil && (!connects.Load() || unanswered || ctx.Err() != nil):
		return convo.Reply{}, err
	case !x.sent:
		return convo.Reply{}, errors.Join(ErrTransport, err)
	case x.answer != nil: // whatever the SDK makes of it
		return x.reply(ctx)
	}
	return convo.Reply{}, x.refused(cmp.Or(err, io.ErrUnexpectedEOF))
}

// reply returns the answer that was read. If it failed, that is only its usage, unless the
// application has stopped it.
func (x *exchange) reply(ctx context.Context) (convo.Reply, error) {
	in, err := x.answer.Transcript()
	err = cmp.Or(x.err, err)
	switch {
	case err == nil:
		return in.Reply(), nil
	case errors.Is(context.Cause(ctx), ErrStop):
		reply := in.Reply()
		if !x.answer.Done() && (reply.Stop == convo.StopDone || reply.Stop == convo.StopToolCall) {
			reply.Stop = convo.StopCancelled
		}
		return reply, nil
	case x.shown && convo.IsOverflow(err):
		x.show(wire.Delta{Restart: true})
	}
	return convo.Reply{Usage: in.Usage}, err
}

// shows shows a piece of the answer.
func (x *exchange) shows(d wire.Delta) {
	if x.show != nil {
		x.show(d)
		x.shown = true
	}
}

type exchangeKey struct{}

// An exchange is one call of Through or ReadStream. An SDK makes one request of it at a time.
type exchange struct {
	req    wire.Request
	format wire.Streamer
	show   func(wire.Delta)

	sent     bool
	tools    []string      // of the parameters
	cacheTTL time.Duration // of the request
	answer   wire.Stream   // nil until an answer is read
	err      error         // why reading it ended early
	shown    bool          // a piece of it was shown

	body     *body        // of the request; nil: it is not known
	readable bool         // read reads the answer as soon as its first byte is wanted
	kept     bytes.Buffer // bytes of the answer
	status   int          // of a refused request; 0: it was not refused
}

type transport struct{ base http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	x, ok := r.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return t.base.RoundTrip(r)
	}
	x.sent = true
	written, err := readBody(r)
	if err != nil {
		return nil, err
	}
	params, _ := marshal(raw(written)) // appendBody reports an error
	x.tools, x.cacheTTL = namesIn(params), cacheTTL(x.req, params)
	var changes []Change
	if _, ok := x.format.(wire.Gemini); ok {
		changes = []Change{inCamelCase}
	}
	x.body = newBody()
	defer x.body.release()
	if x.body.data, err = appendBody(x.body.data, r.Context(), x.req, raw(written), changes); err != nil {
		return nil, err
	}
	body := x.body.data
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	for name, value := range x.req.Headers {
		r.Header.Add(name, value)
	}
	return x.middleware(r, t.base.RoundTrip)
}

// inCamelCase gives fields of Gemini in snake_case, which it takes too, their usual names. It
// leaves objects whose fields an application names, such as schemas.
func inCamelCase(all map[string]json.RawMessage) {
	for name, value := range all {
		usual := snake.ReplaceAllStringFunc(name, func(s string) string { return s[:1] + strings.ToUpper(s[2:]) })
		if usual == name {
			continue
		}
		delete(all, name)
		if fields := fieldsOf(all[usual]); fields != nil {
			maps.Copy(fields, fieldsOf(value))
			value = encode(fields)
		}
		all[usual] = value
	}
	for _, name := range []string{"generationConfig", "thinkingConfig", "toolConfig", "functionCallingConfig"} {
		if fields := fieldsOf(all[name]); len(fields) > 0 {
			inCamelCase(fields)
			all[name] = encode(fields)
		}
	}
}

var snake = regexp.MustCompile(`[a-z]_[a-z]`)

func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return []byte("{}"), nil
	}
	defer r.Body.Close()
	return io.ReadAll(r.Body)
}

// raw is a JSON value that is marshalled as it is.
type raw []byte

func (r raw) MarshalJSON() ([]byte, error) { return r, nil }

// An answerReader reads an answer when the SDK asks for the first byte of it. The SDK then gets
// the bytes that were kept.
type answerReader struct {
	io.ReadCloser
	x *exchange
}

func (a *answerReader) Read(p []byte) (int, error) {
	if a.x.answer == nil {
		a.x.read(a.ReadCloser)
	}
	return a.x.kept.Read(p)
}

// read reads an answer.
func (x *exchange) read(body io.Reader) {
	x.answer = x.format.Stream()
	s := &untilDone{Stream: x.answer}
	for delta, err := range wire.Read(body, s) {
		if err != nil {
			x.err = err
		}
		if err != nil || s.ended {
			break
		}
		x.shows(delta)
	}
}

// An untilDone stream ends at [DONE] or message_stop, behind which a server may leave the
// connection open.
type untilDone struct {
	wire.Stream
	ended bool
}

func (s *untilDone) Event(name string, data []byte) ([]wire.Delta, error) {
	deltas, err := s.Stream.Event(name, data)
	if s.ended = string(data) == "[DONE]" || name == "message_stop" || isMessageStop(data); s.ended && err == nil {
		deltas = append(deltas, wire.Delta{})
	}
	return deltas, err
}

// isMessageStop reports whether an event is the last of an answer by Anthropic.
func isMessageStop(data []byte) bool {
	var event struct{ Type string }
	return len(data) < 1<<10 && bytes.Contains(data, []byte("message_stop")) && json.Unmarshal(data, &event) == nil && event.Type == "message_stop"
}

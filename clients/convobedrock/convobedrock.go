// Package convobedrock sends the requests of a [convo.History] with the SDK of AWS for Amazon
// Bedrock, by ConverseStream:
//
//	client := bedrockruntime.NewFromConfig(config)
//	params := &bedrockruntime.ConverseStreamInput{ModelId: aws.String("us.anthropic.claude-opus-5-5-v1:0")}
//	send := convobedrock.Send(client, params, func(d wire.Delta) { fmt.Print(d.Text) })
//	reply, err := h.Run(ctx, send, convo.RunOptions{Tools: tools})
//
// The client, its options and the parameters are those of the application. System text, messages
// and the tools of the History are put into the body as raw JSON before it is signed, so
// that their bytes and the provider's cache stay the same. The events of an answer are
// read as they came.
package convobedrock

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/wire"
)

// Send returns a [convo.Send] that streams answers; see [Sender]. show may be nil.
func Send(client *bedrockruntime.Client, params *bedrockruntime.ConverseStreamInput, show func(wire.Delta)) convo.Send {
	return (&Sender{Client: client, Params: params, Show: show}).Send
}

// A Sender makes requests of snapshots. Its fields must not be changed while it is used; then
// it may be used by several goroutines at once.
type Sender struct {
	Client *bedrockruntime.Client

	// Params are the parameters of each request. Messages and System must be empty, since
	// they come from the History; otherwise Send returns a [*clients.ParamsError]. The
	// tools of ToolConfig come before those of the History. If the History has a model of
	// its own, see [convo.History.SetModel], it takes the place of ModelId. Cache points of
	// ToolConfig count among the four that a request may have.
	Params *bedrockruntime.ConverseStreamInput

	// Format is how requests are written. Its Model is that of the request. Nil:
	// Converse{Cache: true}.
	Format *wire.Converse

	// Options are for each request, after those of the client.
	Options []func(*bedrockruntime.Options)

	// Show is called with each piece of an answer as it arrives. Nil: it is not called.
	Show func(wire.Delta)

	// KeepBytes limits the memory for the last requests, which are kept so that the next
	// request of a conversation writes only what is new. Zero is 64 MB, and a negative number
	// keeps nothing. [clients.Encode] says how long a request is kept. A copy of the Sender
	// keeps its own.
	KeepBytes int
}

// Send makes a request of a snapshot and reads the streamed answer. Errors are those of
// Encode, of [clients.Body] and of the SDK, which Do recognises as usual. If ctx is ended
// with the cause [clients.ErrStop], what has come is the answer.
func (s *Sender) Send(ctx context.Context, at *convo.Snapshot) (convo.Reply, error) {
	f := s.format(cmp.Or(at.Model(), s.model()))
	req, err := clients.Encode(s, s.KeepBytes, f, at)
	if err != nil {
		return convo.Reply{}, err
	}
	return s.send(ctx, f, req, s.Show)
}

// Summarizer returns a summarizer that asks a model with the client of s, such as for
// Summarize.With. An empty model is that of Params. [clients.Summarizer] says which of the
// parameters its requests have. Use another Sender for a summarizer with parameters of its
// own.
func (s *Sender) Summarizer(model string) convo.Summarizer {
	f := s.format(cmp.Or(model, s.model()))
	return clients.Summarizer(f, f.Model, s.model(), func(ctx context.Context, req wire.Request) (convo.Reply, error) {
		return s.send(ctx, f, req, nil)
	})
}

func (s *Sender) format(model string) wire.Converse {
	f := wire.Converse{Cache: true}
	if s.Format != nil {
		f = *s.Format
	}
	f.Model = model
	if s.Params == nil {
		return f
	}
	var all map[string]any // what has marks
	if fields := s.Params.AdditionalModelRequestFields; fields != nil {
		if data, err := fields.MarshalSmithyDocument(); err == nil { // the SDK reports an error
			_ = json.Unmarshal(data, &all)
		}
	}
	if all == nil {
		all = map[string]any{}
	}
	if s.Params.ToolConfig != nil {
		var marks []map[string]any
		for _, tool := range s.Params.ToolConfig.Tools {
			if mark, ok := tool.(*types.ToolMemberCachePoint); ok {
				marks = append(marks, map[string]any{"cachePoint": map[string]any{"ttl": mark.Value.Ttl}})
			}
		}
		all["toolConfig"] = map[string]any{"tools": marks}
	}
	return f.WithParams(all)
}

func (s *Sender) model() string {
	if s.Params == nil {
		return ""
	}
	return aws.ToString(s.Params.ModelId)
}

func (s *Sender) send(ctx context.Context, f wire.Converse, req wire.Request, show func(wire.Delta)) (convo.Reply, error) {
	var params bedrockruntime.ConverseStreamInput
	if s.Params != nil {
		params = *s.Params
	}
	params.ModelId = aws.String(f.Model)
	var tools []string // of the parameters
	reply, err := clients.ReadStream(ctx, f, show, func(m clients.Middleware) clients.Stream[event] {
		answer := &events{ReadCloser: http.NoBody, decoder: eventstream.NewDecoder()}
		options := append([]func(*bedrockruntime.Options){func(o *bedrockruntime.Options) {
			o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
				return stack.Build.Add(body(req, &tools), middleware.Before)
			})
		}}, s.Options...)
		options = append(options, func(o *bedrockruntime.Options) {
			o.HTTPClient, o.Protocol = taker{o.HTTPClient, m, answer}, noEvents{o.Protocol}
		})
		out, err := s.Client.ConverseStream(ctx, &params, options...)
		if answer.err = err; err == nil {
			out.GetStream().Close() // it is empty
		}
		return answer
	})
	reply.ParamTools, reply.Usage.CacheTTL = tools, req.CacheTTL
	return reply, err
}

// body puts a conversation into the body that the SDK has written, and sets the names of the
// tools that the body had.
func body(req wire.Request, tools *[]string) middleware.BuildMiddleware {
	return middleware.BuildMiddlewareFunc("convo", func(ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler) (out middleware.BuildOutput, metadata middleware.Metadata, err error) {
		r, ok := in.Request.(*smithyhttp.Request)
		if !ok {
			return out, metadata, fmt.Errorf("convobedrock: the SDK writes a request of type %T", in.Request)
		}
		written := []byte("{}")
		if stream := r.GetStream(); stream != nil {
			if written, err = io.ReadAll(stream); err != nil {
				return out, metadata, err
			}
		}
		*tools = clients.ToolNames(json.RawMessage(written))
		all, err := join(ctx, req, written)
		if err != nil {
			return out, metadata, err
		}
		if r, err = r.SetStream(bytes.NewReader(all)); err != nil {
			return out, metadata, err
		}
		for name, value := range req.Headers {
			r.Header.Add(name, value)
		}
		in.Request = r
		return next.HandleBuild(ctx, in)
	})
}

// join returns the body that the SDK has written with what req holds.
func join(ctx context.Context, req wire.Request, written []byte) ([]byte, error) {
	var params map[string]json.RawMessage
	if err := json.Unmarshal(written, &params); err != nil {
		return nil, fmt.Errorf("convobedrock: the body of the SDK: %w", err)
	}
	if own, ok := params[modelFields]; ok && req.NoThinking {
		fields, err := withoutThinking(own)
		if err != nil {
			return nil, err
		}
		params[modelFields] = fields
	}
	return clients.Body(ctx, req, params)
}

// modelFields is the field of a body for what Converse has no field of its own for.
const modelFields = "additionalModelRequestFields"

// withoutThinking turns off the thinking that the fields of a model ask for, by either name.
func withoutThinking(fields json.RawMessage) (json.RawMessage, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(fields, &all); err != nil {
		return nil, fmt.Errorf("convobedrock: %s: %w", modelFields, err)
	}
	for _, name := range []string{"thinking", "reasoning_config"} {
		if _, ok := all[name]; ok {
			all[name] = json.RawMessage(`{"type":"disabled"}`)
		}
	}
	return json.Marshal(all)
}

// A taker takes the body of an answer that is no error, so that the SDK finds an empty one.
type taker struct {
	bedrockruntime.HTTPClient
	through clients.Middleware
	to      *events
}

func (t taker) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil { // the SDK closes its own as soon as an answer begins, and with it, now and then, the connection
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	}
	resp, err := t.through(r, t.HTTPClient.Do)
	if err == nil && resp.StatusCode < http.StatusMultipleChoices {
		t.to.Close() // of an attempt before
		t.to.ReadCloser, resp.Body = resp.Body, http.NoBody
	}
	return resp, err
}

// noEvents finds no event in a stream, which is empty here. The decoder of smithy-go 1.28.9
// would be shared by all streams of a client, and is not safe for concurrent use.
type noEvents struct{ smithyhttp.ClientProtocol }

func (noEvents) DeserializeEventMessage(*smithy.Schema, *smithy.TypeRegistry, io.Reader) (smithy.Deserializable, error) {
	return nil, io.EOF
}

// events are the events of the body of an answer, which the SDK does not see.
type events struct {
	io.ReadCloser
	decoder *eventstream.Decoder
	event   event
	err     error
}

type event []byte

func (e event) RawJSON() string { return string(e) }

// Next implements [clients.Stream], as the other methods do.
func (e *events) Next() bool {
	if e.err == nil {
		e.event, e.err = e.next()
	}
	return e.err == nil
}

func (e *events) Current() event { return e.event }
func (e *events) Err() error     { return e.err }

// next returns the next event as an object around it, as Converse names it.
func (e *events) next() ([]byte, error) {
	m, err := e.decoder.Decode(e.ReadCloser, nil)
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		return nil, err
	}
	name := ""
	for _, header := range []string{":event-type", ":exception-type"} {
		if v := m.Headers.Get(header); v != nil {
			name = v.String()
		}
	}
	payload := m.Payload
	if !json.Valid(payload) {
		return nil, fmt.Errorf("convobedrock: the event %q is no JSON", name)
	}
	key, err := json.Marshal(name)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "{%s:%s}", key, payload), nil
}

// Package clients contains what the senders for the SDKs of providers have in common.
// Applications use one of the modules in its directory, such as convoanthropic or
// convoopenai. Use this package to write a sender for another SDK:
//
//	func send(ctx context.Context, s *convo.Snapshot) (convo.Reply, error) {
//		req, err := format.Encode(s)
//		if err != nil {
//			return convo.Reply{}, err
//		}
//		body, err := clients.Body(ctx, req, params)
//		if err != nil {
//			return convo.Reply{}, err
//		}
//		stream := client.Stream(ctx, body) // that of the SDK
//		return clients.ReadStream(ctx, format, stream, show)
//	}
//
// It depends on no SDK.
package clients

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// ErrStop is the cause with which an application ends the ctx of an answer that it stops,
// to keep what has come of it:
//
//	ctx, stop := context.WithCancelCause(ctx)
//	button.OnClick(func() { stop(clients.ErrStop) })
//	reply, err := h.Run(ctx, send, options)
//
// What has come is appended, without incomplete calls. With any other cause, nothing is
// kept.
var ErrStop = errors.New("clients: the answer was stopped, and what has come is kept")

// A ParamsError says that the parameters of a request hold what the History decides, such
// as messages. Leave that field empty.
type ParamsError struct {
	Field string // as in the body of the request, such as "messages"
	Use   string // what to use instead
}

func (e *ParamsError) Error() string {
	return fmt.Sprintf("clients: the parameters set %q, which comes from the History; leave it empty, and use %s", e.Field, e.Use)
}

// Body returns the body of a request: the parameters of an application, which are marshalled
// as a JSON object, with what req holds of the conversation. The tools among the
// parameters come first, in their order, and then those of req.
//
// The raw bytes of req stay as they are. Parameters that are null are left out. If the
// parameters hold messages or system text, or name an earlier answer or a conversation that
// the provider has stored, which would come before the messages, Body returns a
// [*ParamsError].
//
// If ctx is that of the request for a summary, the parameters are changed as [Summarizer] says.
func Body(ctx context.Context, req wire.Request, params any) ([]byte, error) {
	data, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("clients: parameters: %w", err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("clients: parameters: %w", err)
	}
	for name, value := range all {
		if isEmpty(value) {
			delete(all, name)
		}
	}
	for _, f := range historyFields {
		if _, ok := all[f.Field]; ok {
			return nil, &f
		}
	}
	if q, ok := ctx.Value(summaryKey{}).(*summary); ok {
		req = q.request(req, all)
	}
	if own, ok := all["tools"]; ok {
		if req.Tools, err = join(own, req.Tools); err != nil {
			return nil, err
		}
		delete(all, "tools")
	}
	return req.With(all)
}

// historyFields are the fields that come from the History.
var historyFields = []ParamsError{
	{"messages", "History.Append"},
	{"input", "History.Append"},
	{"contents", "History.Append"},
	{"system", "History.SetSystem"},
	{"instructions", "History.SetSystem"},
	{"systemInstruction", "History.SetSystem"},
	{"previous_response_id", "the History alone, since each request holds the whole conversation"},
	{"conversation", "the History alone, since each request holds the whole conversation"},
}

// isEmpty reports whether a JSON value is null or an empty list.
func isEmpty(value json.RawMessage) bool {
	s := strings.TrimSpace(string(value))
	return s == "null" || s == "[]"
}

// join joins two lists of tools. Gemini takes function declarations in one tool only: those
// of more go into the tool of own that has some.
func join(own, more json.RawMessage) (json.RawMessage, error) {
	tools, err := listOf(own)
	if err != nil {
		return nil, err
	}
	rest, err := listOf(more)
	if err != nil {
		return nil, err
	}
	for _, tool := range rest {
		i := slices.IndexFunc(tools, declares)
		if i < 0 || !declares(tool) {
			tools = append(tools, tool)
			continue
		}
		if tools[i], err = withDeclarations(tools[i], tool); err != nil {
			return nil, err
		}
	}
	return rawList(tools), nil
}

func listOf(data json.RawMessage) (list []json.RawMessage, err error) {
	if len(data) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("clients: tools: %w", err)
	}
	return list, nil
}

const declarations = "functionDeclarations"

func declares(tool json.RawMessage) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal(tool, &fields) == nil && fields[declarations] != nil
}

// withDeclarations returns a tool with its own function declarations and those of another.
func withDeclarations(tool, other json.RawMessage) (json.RawMessage, error) {
	var fields, more map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(tool, &fields), json.Unmarshal(other, &more)); err != nil {
		return nil, fmt.Errorf("clients: tools: %w", err)
	}
	list, err := listOf(fields[declarations])
	if err != nil {
		return nil, err
	}
	rest, err := listOf(more[declarations])
	if err != nil {
		return nil, err
	}
	joined := fmt.Appendf(nil, "{%q:%s", declarations, rawList(append(list, rest...)))
	delete(fields, declarations)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		joined = fmt.Appendf(joined, ",%q:%s", name, fields[name])
	}
	return append(joined, '}'), nil
}

// rawList returns a JSON list of values, whose bytes stay.
func rawList(values []json.RawMessage) json.RawMessage {
	list := []byte{'['}
	for i, v := range values {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, v...)
	}
	return append(list, ']')
}

// Read reads a streamed answer of a format. next returns the JSON of the next event, or
// io.EOF after the last one, or the error with which the stream broke off. show gets each
// piece of the answer as it comes; it may be nil.
//
// A stream that breaks off or ends too early is an error, which matches io.ErrUnexpectedEOF
// in the latter case. If ctx was ended with [ErrStop], the Reply is what has come.
func Read(ctx context.Context, format wire.Streamer, next func() ([]byte, error), show func(wire.Delta)) (convo.Reply, error) {
	answer := format.Stream()
	for {
		event, err := next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return partOf(ctx, answer, err)
		}
		deltas, err := answer.Event("", event)
		if err != nil {
			return partOf(ctx, answer, err)
		}
		for _, d := range deltas {
			if show != nil {
				show(d)
			}
		}
	}
	in, err := answer.Transcript()
	if err != nil {
		return partOf(ctx, answer, err)
	}
	return in.Reply(), nil
}

// A Stream is a stream of events of type E, as the SDKs of Anthropic and OpenAI have it.
type Stream[E interface{ RawJSON() string }] interface {
	Next() bool
	Current() E
	Err() error
	Close() error
}

// ReadStream is [Read] for the stream of an SDK, which it closes.
func ReadStream[E interface{ RawJSON() string }](ctx context.Context, format wire.Streamer, stream Stream[E], show func(wire.Delta)) (convo.Reply, error) {
	defer stream.Close()
	return Read(ctx, format, func() ([]byte, error) {
		if stream.Next() {
			return []byte(stream.Current().RawJSON()), nil
		}
		return nil, cmp.Or(stream.Err(), io.EOF)
	}, show)
}

// partOf returns what has come of an answer, and err unless the application has stopped it.
func partOf(ctx context.Context, answer wire.Stream, err error) (convo.Reply, error) {
	in, _ := answer.Transcript()
	if errors.Is(context.Cause(ctx), ErrStop) {
		return in.Reply(), nil
	}
	return convo.Reply{Usage: in.Usage}, err
}

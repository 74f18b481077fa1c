// Package clients contains what the senders for the SDKs of providers have in common.
// Applications use one of the modules in its directory, such as convoanthropic or
// convoopenai. Use this package to write a sender for another SDK:
//
//	func send(ctx context.Context, s *convo.Snapshot) (convo.Reply, error) {
//		req, err := clients.Encode(sender, 0, format, s)
//		if err != nil {
//			return convo.Reply{}, err
//		}
//		return clients.SendBody(ctx, req, params, format, show, func(body []byte, m clients.Middleware) clients.Stream[sdk.Event] {
//			return client.Stream(ctx, body, sdk.WithMiddleware(m))
//		})
//	}
//
// It depends on no SDK.
package clients

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/models"
	"github.com/seed-c1b73e60/convo/wire"
)

// ErrStop is the cause with which an application ends the ctx of an answer that it stops,
// to keep what has come of it:
//
//	ctx, stop := context.WithCancelCause(ctx)
//	button.OnClick(func() { stop(clients.ErrStop) })
//	reply, err := h.Run(ctx, send, options)
//
// What has come is appended, without incomplete calls, and the Stop of the Reply is
// [convo.StopCancelled]. With any other cause, nothing is kept. If no answer can be kept,
// the error of Run matches ErrStop.
var ErrStop = errors.New("clients: the user stopped the answer")

// A ParamsError says that the parameters of a request hold what the History decides, such
// as messages, what it also has, or what it cannot take.
type ParamsError struct {
	Field string // as in the body of the request, such as "messages"
	Use   string // what to use instead
	Tool  string // a tool in Field that the History also has; empty: there is none

	fault string // what is wrong with Field, if it does not come from the History
}

func (e *ParamsError) Error() string {
	if e.Tool != "" {
		return fmt.Sprintf("clients: the tool %q is in the parameters and in the History; remove it from one of them", e.Tool)
	}
	if e.fault != "" {
		return fmt.Sprintf("clients: the parameters set %q, but %s; leave it empty, or use %s", e.Field, e.fault, e.Use)
	}
	return fmt.Sprintf("clients: the parameters set %q, which comes from the History; leave it empty, and use %s", e.Field, e.Use)
}

// Body returns the body of a request: the parameters of an application, which are marshalled
// as a JSON object, with what req holds of the conversation. The tools among the
// parameters come first, in their order, and then those of req.
//
// The raw bytes of req stay as they are. Body first makes the changes, in their order.
// Parameters that are null are left out. If the parameters hold messages or system text, or
// name an earlier answer or a conversation that the provider has stored, which would come
// before the messages, Body returns a [*ParamsError]. So it does for a tool that req has as well, for more than one answer, for
// cached content of Gemini next to system text, a tool or a tool choice, and for tools that
// are no list.
//
// If ctx is that of the request for a summary, the parameters are first changed as [Summarizer]
// says.
func Body(ctx context.Context, req wire.Request, params any, changes ...Change) ([]byte, error) {
	return appendBody(nil, ctx, req, params, changes)
}

// appendBody appends the result of Body to b. If there is an error, it returns b.
func appendBody(b []byte, ctx context.Context, req wire.Request, params any, changes []Change) ([]byte, error) {
	all, err := marshal(params)
	if err != nil {
		return b, err
	}
	if all == nil { // there are none
		all = map[string]json.RawMessage{}
	}
	for _, change := range changes {
		change(all)
	}
	for name, value := range all {
		if isEmpty(name, value) {
			delete(all, name)
		}
	}
	for _, f := range historyFields {
		if _, ok := all[f.Field]; ok {
			return b, &f
		}
	}
	if q, ok := ctx.Value(summaryKey{}).(*summary); ok {
		req = q.request(req, all)
	}
	if err := checkTools(all, req.Tools); err != nil {
		return b, err
	}
	if all["cachedContent"] != nil && (len(req.System)+len(req.Tools) > 0 || all["tools"] != nil || all["toolConfig"] != nil) {
		return b, &ParamsError{
			Field: "cachedContent", fault: "Gemini refuses it next to system text, tools and a tool choice",
			Use: "cached content that has them, and a History without them",
		}
	}
	if err := checkChoices(all); err != nil {
		return b, err
	}
	if own, ok := all["tools"]; ok {
		if req.Tools, err = join(own, req.Tools); err != nil {
			return b, err
		}
		delete(all, "tools")
	}
	if own, ok := all["toolConfig"]; ok && isConfig(req.Tools) {
		if req.Tools, err = withList(own, "tools", fieldsOf(req.Tools)["tools"]); err != nil {
			return b, err
		}
		delete(all, "toolConfig")
	}
	return req.AppendWith(b, all)
}

// marshal returns the parameters of an application as a JSON object, or nil if they are null.
func marshal(params any) (all map[string]json.RawMessage, err error) {
	data, err := json.Marshal(params)
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("clients: parameters: %w", err)
	}
	return all, nil
}

// A Change changes the parameters of one request, after they are marshalled. So it also changes
// those for which an SDK has no types.
type Change func(params map[string]json.RawMessage)

// Set returns a Change that sets the field at a path, such as "model" or
// "stream_options.include_usage". An empty string removes it.
func Set(path string, value any) Change {
	if value == "" {
		value = nil
	}
	return func(params map[string]json.RawMessage) { put(params, path, value) }
}

// Default returns a Change that sets the field at a path if it is not set.
func Default(path string, value any) Change {
	return func(params map[string]json.RawMessage) {
		if own, ok := get(params, path); !ok || isEmpty("", own) {
			put(params, path, value)
		}
	}
}

// historyFields are the fields that come from the History.
var historyFields = []ParamsError{
	{Field: "messages", Use: "History.Append"},
	{Field: "input", Use: "History.Append"},
	{Field: "contents", Use: "History.Append"},
	{Field: "system", Use: "History.SetSystem"},
	{Field: "instructions", Use: "History.SetSystem"},
	{Field: "systemInstruction", Use: "History.SetSystem"},
	{Field: "previous_response_id", Use: "the History alone, since each request holds the whole conversation"},
	{Field: "conversation", Use: "the History alone, since each request holds the whole conversation"},
}

// ToolNames returns the names of the tools that the parameters of an application declare, for
// the ParamTools of a Reply. The parameters are marshalled as a JSON object.
func ToolNames(params any) []string {
	all, _ := marshal(params) // Body reports an error
	return namesIn(all)
}

// cacheTTL returns how long the provider keeps a request in its prompt cache: what a parameter of
// OpenAI asks for, and otherwise what req says.
func cacheTTL(req wire.Request, params map[string]json.RawMessage) time.Duration {
	return cmp.Or(models.CacheTTL(params["prompt_cache_options"], params["prompt_cache_retention"]), req.CacheTTL)
}

// ModelOf returns the model that the parameters of an application name, or "". The parameters
// are marshalled as a JSON object.
func ModelOf(params any) (model string) {
	all, _ := marshal(params) // Body reports an error
	_ = json.Unmarshal(all["model"], &model)
	return model
}

// namesIn returns the names of the tools in the body of a request.
func namesIn(all map[string]json.RawMessage) (names []string) {
	for _, path := range []string{"tools", "functions", "toolConfig", "additionalModelRequestFields.tools"} {
		value, _ := get(all, path)
		var v any
		_ = json.Unmarshal(value, &v)
		names = appendNames(names, v)
	}
	return names
}

// appendNames adds the names of a tool, or of a list of tools. A name is next to what it
// declares, or in one of the objects that hold it.
func appendNames(names []string, v any) []string {
	switch v := v.(type) {
	case []any:
		for _, tool := range v {
			names = appendNames(names, tool)
		}
	case map[string]any:
		if name, ok := v["name"].(string); ok {
			names = append(names, name)
		}
		for _, inner := range []string{"function", "custom", "tools", declarations, snakeDeclarations, "toolSpec", "systemTool"} {
			names = appendNames(names, v[inner])
		}
	}
	return names
}

// checkTools returns an error if tools of a request have the name of one in the parameters.
func checkTools(params map[string]json.RawMessage, tools json.RawMessage) error {
	names := namesIn(params)
	if len(names) == 0 || len(tools) == 0 {
		return nil
	}
	field := "tools"
	if isConfig(tools) {
		field = "toolConfig"
	}
	for _, name := range namesIn(map[string]json.RawMessage{field: tools}) {
		if slices.Contains(names, name) {
			return &ParamsError{Field: field, Use: "History.SetTools", Tool: name}
		}
	}
	return nil
}

// checkChoices returns an error if the parameters ask for more than one answer, since the
// others would be paid for and not appended.
func checkChoices(all map[string]json.RawMessage) error {
	var config map[string]json.RawMessage
	_ = json.Unmarshal(all["generationConfig"], &config)
	for name, raw := range map[string]json.RawMessage{"n": all["n"], "candidateCount": config["candidateCount"]} {
		if count, ok := number(raw); ok && count > 1 {
			return &ParamsError{Field: name, fault: "a History takes one answer", Use: "1"}
		}
	}
	return nil
}

// number returns a JSON number, which may be in a string, and whether value is one.
func number(value json.RawMessage) (n float64, ok bool) {
	var s json.Number
	if json.Unmarshal(value, &s) != nil {
		return 0, false
	}
	n, err := s.Float64()
	return n, err == nil
}

// isEmpty reports whether a field is null or an empty list. An empty string or object is also
// empty where it would be refused.
func isEmpty(name string, value json.RawMessage) bool {
	switch string(bytes.TrimSpace(value)) {
	case "null", "[]":
		return true
	case `""`, "{}":
		return name == "cachedContent" || slices.ContainsFunc(historyFields, func(f ParamsError) bool { return f.Field == name })
	}
	return false
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
		i := slices.IndexFunc(tools, func(t json.RawMessage) bool { return declares(t) != "" })
		if i < 0 || declares(tool) == "" {
			tools = append(tools, tool)
			continue
		}
		if tools[i], err = withList(tools[i], declares(tools[i]), fieldsOf(tool)[declarations]); err != nil {
			return nil, err
		}
	}
	return rawList(tools), nil
}

// isConfig reports whether the tools of a request are in an object, the toolConfig of Converse.
func isConfig(tools json.RawMessage) bool { return len(tools) > 0 && tools[0] == '{' }

// listOf returns the elements of a list of tools.
func listOf(data json.RawMessage) (list []json.RawMessage, err error) {
	if len(data) > 0 && json.Unmarshal(data, &list) != nil {
		return nil, &ParamsError{Field: "tools", fault: "they are no list", Use: "a list"}
	}
	return list, nil
}

// Gemini takes both names.
const declarations, snakeDeclarations = "functionDeclarations", "function_declarations"

// declares returns the name under which a tool of Gemini declares functions, or "".
func declares(tool json.RawMessage) string {
	fields := fieldsOf(tool)
	for _, name := range []string{declarations, snakeDeclarations} {
		if fields[name] != nil {
			return name
		}
	}
	return ""
}

// withList returns an object whose list has the elements of more after its own. Fields that
// are null are left out.
func withList(own json.RawMessage, name string, more json.RawMessage) (json.RawMessage, error) {
	fields := fieldsOf(own)
	if fields == nil {
		return nil, &ParamsError{Field: "toolConfig", fault: "it is no object", Use: "an object"}
	}
	list, err := listOf(fields[name])
	if err != nil {
		return nil, err
	}
	rest, err := listOf(more)
	if err != nil {
		return nil, err
	}
	joined := fmt.Appendf(nil, "{%q:%s", name, rawList(append(list, rest...)))
	delete(fields, name)
	for _, other := range slices.Sorted(maps.Keys(fields)) {
		if string(fields[other]) != "null" {
			joined = fmt.Appendf(joined, ",%q:%s", other, fields[other])
		}
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
// in the latter case. If the error says that the request was too long, so that Do sends it
// again, show gets a Delta with Restart if it had got any. If ctx was ended with [ErrStop], the Reply is what has come.
func Read(ctx context.Context, format wire.Streamer, next func() ([]byte, error), show func(wire.Delta)) (convo.Reply, error) {
	x := &exchange{format: format, show: show, answer: format.Stream()}
	for x.err == nil {
		event, err := next()
		if err == io.EOF {
			break
		}
		if err == io.ErrUnexpectedEOF {
			err = fmt.Errorf("clients: the stream broke off before the answer was whole: %w", err)
		}
		var deltas []wire.Delta
		if x.err = err; err == nil {
			deltas, x.err = x.answer.Event("", event)
		}
		for _, d := range deltas {
			x.shows(d)
		}
	}
	return x.reply(ctx)
}

// A Stream is a stream of events of type E, as the SDKs of Anthropic and OpenAI have it. If it is
// also an io.Reader of the body of the answer, the body is read, and the SDK builds no events.
type Stream[E interface{ RawJSON() string }] interface {
	Next() bool
	Current() E
	Err() error
	Close() error
}

// ReadStream is [Read] for the stream of an SDK, which it closes. open makes the request, with
// a middleware that reads the answer as [ReadBody] does, and then gives it to the SDK. Only the
// binary frames of Bedrock are read from the events of the SDK. If the request is refused, what
// the provider said is added to the error of the SDK.
func ReadStream[E interface{ RawJSON() string }](ctx context.Context, format wire.Streamer, show func(wire.Delta), open func(Middleware) Stream[E]) (convo.Reply, error) {
	return readStream(ctx, &exchange{format: format, show: show}, open)
}

func readStream[E interface{ RawJSON() string }](ctx context.Context, x *exchange, open func(Middleware) Stream[E]) (convo.Reply, error) {
	stream := open(x.middleware)
	defer stream.Close()
	reply, err := Read(ctx, x.format, func() ([]byte, error) {
		if body, ok := stream.(io.Reader); ok && x.readable {
			_, err := io.Copy(io.Discard, body)
			return nil, cmp.Or(err, io.EOF)
		}
		for stream.Next() {
			if x.answer == nil {
				return []byte(stream.Current().RawJSON()), nil
			}
		}
		return nil, cmp.Or(stream.Err(), io.EOF)
	}, x.show)
	if x.answer != nil {
		return x.reply(ctx)
	}
	return reply, x.refused(err)
}

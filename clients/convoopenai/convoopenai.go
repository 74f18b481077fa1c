// Package convoopenai sends the requests of a [convo.History] with the SDK of OpenAI, by
// Chat Completions or by Responses:
//
//	client := openai.NewClient()
//	params := openai.ChatCompletionNewParams{Model: "gpt-5.5"}
//	send := convoopenai.Chat(client, params, func(d wire.Delta) { fmt.Print(d.Text) })
//	reply, err := h.Run(ctx, send, convo.RunOptions{Tools: tools})
//
// The client, its options and the parameters are those of the application. System text, messages
// and the tools of the History are sent as raw JSON, so that their bytes and the
// provider's cache stay the same. A client for another server, by option.WithBaseURL,
// also works.
package convoopenai

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/wire"
)

// Chat returns a [convo.Send] that streams answers by Chat Completions; see [ChatSender]. show
// may be nil.
func Chat(client openai.Client, params openai.ChatCompletionNewParams, show func(wire.Delta)) convo.Send {
	return (&ChatSender{Client: client, Params: params, Show: show}).Send
}

// Responses returns a [convo.Send] that streams answers by the Responses API; see
// [ResponsesSender]. show may be nil.
func Responses(client openai.Client, params responses.ResponseNewParams, show func(wire.Delta)) convo.Send {
	return (&ResponsesSender{Client: client, Params: params, Show: show}).Send
}

// A ChatSender makes requests of snapshots by Chat Completions. Its fields must not be
// changed while it is used; then it may be used by several goroutines at once.
type ChatSender struct {
	Client openai.Client

	// Params are the parameters of each request. Messages must be empty, since they come
	// from the History; otherwise Send returns a [*clients.ParamsError]. Tools come before
	// those of the History. If the History has a model of its own, see
	// [convo.History.SetModel], it takes the place of Model. The usage is asked for by
	// stream_options, unless StreamOptions say otherwise.
	Params openai.ChatCompletionNewParams

	// Format is how requests are written. Its Model is that of the request.
	Format wire.OpenAIChat

	// Options are for each request, after those of the client. A field of the body, as by
	// option.WithJSONSet, must be set here and not by the client's own options, which come
	// before the body.
	Options []option.RequestOption

	// Show is called with each piece of an answer as it arrives. Nil: it is not called.
	Show func(wire.Delta)

	// KeepBytes limits the memory for the last requests, which are kept so that the next
	// request of a conversation writes only what is new. Zero is 64 MB, and a negative number
	// keeps nothing. [clients.Encode] says how long a request is kept. A copy of the
	// sender keeps its own.
	KeepBytes int
}

// Send makes a request of a snapshot and reads the streamed answer. Errors are those of
// Encode, of [clients.Body] and of the SDK, which Do recognises as usual. If ctx is ended
// with the cause [clients.ErrStop], what has come is the answer.
func (s *ChatSender) Send(ctx context.Context, at *convo.Snapshot) (convo.Reply, error) {
	f := s.Format
	f.Model = cmp.Or(at.Model(), clients.ModelOf(s.Params))
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
func (s *ChatSender) Summarizer(model string) convo.Summarizer {
	f := s.Format
	usual := clients.ModelOf(s.Params)
	f.Model = cmp.Or(model, usual)
	return clients.Summarizer(f, f.Model, usual, func(ctx context.Context, req wire.Request) (convo.Reply, error) {
		return s.send(ctx, f, req, nil)
	})
}

func (s *ChatSender) send(ctx context.Context, f wire.OpenAIChat, req wire.Request, show func(wire.Delta)) (convo.Reply, error) {
	return clients.SendBody(ctx, req, s.Params, f, show, func(body []byte, m clients.Middleware) clients.Stream[openai.ChatCompletionChunk] {
		return stream[openai.ChatCompletionChunk](ctx, s.Client.Chat.Completions.Options, "chat/completions", options(req, body, m, s.Options))
	}, clients.Set("model", f.Model), clients.Set("stream", true), clients.Default("stream_options.include_usage", true))
}

// A ResponsesSender makes requests of snapshots by the Responses API. Its fields must not be
// changed while it is used; then it may be used by several goroutines at once.
type ResponsesSender struct {
	Client openai.Client

	// Params are the parameters of each request. Input and Instructions must be empty,
	// since they come from the History; otherwise Send returns a [*clients.ParamsError].
	// Tools come before those of the History. If the History has a model of its own, see
	// [convo.History.SetModel], it takes the place of Model. The provider is asked for
	// its reasoning in encrypted form, and to store nothing unless Store says otherwise.
	Params responses.ResponseNewParams

	// Format is how requests are written. Its Model is that of the request.
	Format wire.OpenAIResponses

	// Options are as those of a [ChatSender].
	Options []option.RequestOption

	// Show is called with each piece of an answer as it arrives. Nil: it is not called.
	Show func(wire.Delta)

	KeepBytes int // as that of a [ChatSender]
}

// Send makes a request of a snapshot and reads the streamed answer, as [ChatSender.Send]
// does.
func (s *ResponsesSender) Send(ctx context.Context, at *convo.Snapshot) (convo.Reply, error) {
	f := s.Format
	f.Model = cmp.Or(at.Model(), clients.ModelOf(s.Params))
	req, err := clients.Encode(s, s.KeepBytes, f, at)
	if err != nil {
		return convo.Reply{}, err
	}
	return s.send(ctx, f, req, s.Show)
}

// Summarizer returns a summarizer that asks a model, as [ChatSender.Summarizer] does.
func (s *ResponsesSender) Summarizer(model string) convo.Summarizer {
	f := s.Format
	usual := clients.ModelOf(s.Params)
	f.Model = cmp.Or(model, usual)
	return clients.Summarizer(f, f.Model, usual, func(ctx context.Context, req wire.Request) (convo.Reply, error) {
		return s.send(ctx, f, req, nil)
	})
}

func (s *ResponsesSender) send(ctx context.Context, f wire.OpenAIResponses, req wire.Request, show func(wire.Delta)) (convo.Reply, error) {
	return clients.SendBody(ctx, req, s.Params, f, show, func(body []byte, m clients.Middleware) clients.Stream[responses.ResponseStreamEventUnion] {
		return stream[responses.ResponseStreamEventUnion](ctx, s.Client.Responses.Options, "responses", options(req, body, m, s.Options))
	}, clients.Set("model", f.Model), clients.Set("stream", true), clients.Default("store", false), includeReasoning)
}

// An answer is a stream of the SDK, and the body that it reads.
type answer[E any] struct {
	*ssestream.Stream[E]
	io.Reader
}

// stream makes a request as NewStreaming of the SDK does. NewStreaming would copy the body to
// set the field stream in it, and return no body.
func stream[E interface{ RawJSON() string }](ctx context.Context, client []option.RequestOption, path string, own []option.RequestOption) clients.Stream[E] {
	var resp *http.Response
	err := (&openai.Client{Options: client}).Post(ctx, path, nil, &resp, own...)
	stream := ssestream.NewStream[E](ssestream.NewDecoder(resp), err)
	if err != nil {
		return stream
	}
	return answer[E]{stream, resp.Body}
}

// includeReasoning has the answer include its reasoning in encrypted form.
func includeReasoning(params map[string]json.RawMessage) {
	const encrypted = responses.ResponseIncludableReasoningEncryptedContent
	var include []responses.ResponseIncludable
	if err := json.Unmarshal(params["include"], &include); (err == nil || params["include"] == nil) && !slices.Contains(include, encrypted) {
		clients.Set("include", append(include, encrypted))(params)
	}
}

// options returns the options of a request with a body.
func options(req wire.Request, body []byte, m clients.Middleware, own []option.RequestOption) []option.RequestOption {
	list := slices.Concat([]option.RequestOption{option.WithRequestBody("application/json", body), option.WithMiddleware(m)}, own)
	for _, name := range slices.Sorted(maps.Keys(req.Headers)) {
		list = append(list, option.WithHeaderAdd(name, req.Headers[name]))
	}
	return list
}

// Package convogoopenai sends the requests of a [convo.History] with
// github.com/sashabaranov/go-openai, by Chat Completions:
//
//	config := openai.DefaultConfig(key)
//	config.HTTPClient = &http.Client{Transport: clients.Transport(nil)}
//	client := openai.NewClientWithConfig(config)
//	send := convogoopenai.Send(client, openai.ChatCompletionRequest{Model: "gpt-5.5"}, show)
//	reply, err := h.Run(ctx, send, convo.RunOptions{Tools: tools})
//
// The SDK has only its own types for messages, which lose reasoning and bytes of
// arguments. [clients.Transport] puts the conversation into its requests as raw JSON, and
// reads the answers. The parameters, the keys and the addresses stay those of the SDK.
package convogoopenai

import (
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/wire"
)

// Send returns a [convo.Send] that streams answers; see [Sender]. show may be nil.
func Send(client *openai.Client, params openai.ChatCompletionRequest, show func(wire.Delta)) convo.Send {
	return (&Sender{Client: client, Params: params, Show: show}).Send
}

// A Sender makes requests of snapshots. Its fields must not be changed while it is used; then
// it may be used by several goroutines at once.
type Sender struct {
	// Client has an HTTP client with [clients.Transport]; otherwise Send returns
	// [clients.ErrTransport].
	Client *openai.Client

	// Params are the parameters of each request. Messages must be empty, since they come
	// from the History; otherwise Send returns a [*clients.ParamsError]. Tools come before
	// those of the History. If the History has a model of its own, see
	// [convo.History.SetModel], it takes the place of Model. The usage is asked for, unless
	// StreamOptions say otherwise.
	Params openai.ChatCompletionRequest

	// Format is how requests are written. Its Model is that of the request.
	Format wire.OpenAIChat

	// Show is called with each piece of an answer as it arrives. Nil: it is not called.
	Show func(wire.Delta)

	// KeepBytes limits the memory for the last requests, which are kept so that the next
	// request of a conversation writes only what is new. Zero is 64 MB, and a negative number
	// keeps nothing. [clients.Encode] says how long a request is kept. A copy of the Sender
	// keeps its own.
	KeepBytes int
}

// Send makes a request of a snapshot and reads the streamed answer. Errors are those of
// Encode, of [clients.Through] and of the SDK, which Do recognises as usual. If ctx is ended
// with the cause [clients.ErrStop], what has come is the answer.
func (s *Sender) Send(ctx context.Context, at *convo.Snapshot) (convo.Reply, error) {
	f := s.Format
	f.Model = cmp.Or(at.Model(), s.Params.Model)
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
	f := s.Format
	f.Model = cmp.Or(model, s.Params.Model)
	own := *s
	if p := &own.Params; f.Model != p.Model { // the SDK refuses these for some models, and no request for a summary of another model has them
		p.Temperature, p.TopP, p.N, p.PresencePenalty, p.FrequencyPenalty, p.LogProbs, p.TopLogProbs = 0, 0, 0, 0, 0, false, 0
	}
	return clients.Summarizer(f, f.Model, s.Params.Model, func(ctx context.Context, req wire.Request) (convo.Reply, error) {
		return own.send(ctx, f, req, nil)
	})
}

func (s *Sender) send(ctx context.Context, f wire.OpenAIChat, req wire.Request, show func(wire.Delta)) (convo.Reply, error) {
	params := s.Params
	params.Model = f.Model
	if params.StreamOptions == nil {
		params.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	return clients.Through(ctx, req, f, show, func(ctx context.Context) error {
		stream, err := s.Client.CreateChatCompletionStream(ctx, params)
		if err != nil {
			return err
		}
		defer stream.Close()
		for {
			if _, err := stream.RecvRaw(); err != nil {
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			}
		}
	})
}

// Package convogenai sends the requests of a [convo.History] with the SDK of Google for
// Gemini, by generateContent:
//
//	client, err := genai.NewClient(ctx, &genai.ClientConfig{
//		HTTPClient: &http.Client{Transport: clients.Transport(nil)},
//	})
//	send := convogenai.Send(client, "gemini-3.8-flash", nil, show)
//	reply, err := h.Run(ctx, send, convo.RunOptions{Tools: tools})
//
// The SDK has only its own types for contents, in which numbers in arguments change.
// [clients.Transport] puts the conversation into its requests as raw JSON, and reads
// the answers. The configuration, the keys and the addresses stay those of the SDK, also
// for Vertex AI.
package convogenai

import (
	"cmp"
	"context"
	"reflect"

	"google.golang.org/genai"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/wire"
)

// Send returns a [convo.Send] that streams answers; see [Sender]. config and show may be nil.
func Send(client *genai.Client, model string, config *genai.GenerateContentConfig, show func(wire.Delta)) convo.Send {
	return (&Sender{Client: client, Model: model, Config: config, Show: show}).Send
}

// A Sender makes requests of snapshots. Its fields must not be changed while it is used; then
// it may be used by several goroutines at once.
type Sender struct {
	// Client has an HTTP client with [clients.Transport]; otherwise Send returns
	// [clients.ErrTransport].
	Client *genai.Client

	// Model is the model of each request. If the History has one of its own, see
	// [convo.History.SetModel], it takes the place of Model.
	Model string

	// Config holds the parameters of each request, or is nil. SystemInstruction must be
	// nil, since it comes from the History; otherwise Send returns a
	// [*clients.ParamsError]. Tools come before those of the History. Automatic
	// continuation is off: each request is one of the History. With CachedContent, a
	// request that has system text, tools or a tool choice is a ParamsError.
	Config *genai.GenerateContentConfig

	// Format is how requests are written. Its Model is that of the request.
	Format wire.Gemini

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
	f.Model = cmp.Or(at.Model(), s.Model)
	req, err := clients.Encode(s, s.KeepBytes, f, at)
	if err != nil {
		return convo.Reply{}, err
	}
	return s.send(ctx, f, req, s.Show)
}

// Summarizer returns a summarizer that asks a model with the client of s, such as for
// Summarize.With. An empty model is that of s. [clients.Summarizer] says which of the
// parameters its requests have. Use another Sender for a summarizer with parameters of its
// own.
func (s *Sender) Summarizer(model string) convo.Summarizer {
	f := s.Format
	f.Model = cmp.Or(model, s.Model)
	return clients.Summarizer(f, f.Model, s.Model, func(ctx context.Context, req wire.Request) (convo.Reply, error) {
		return s.send(ctx, f, req, nil)
	})
}

func (s *Sender) send(ctx context.Context, f wire.Gemini, req wire.Request, show func(wire.Delta)) (convo.Reply, error) {
	var config genai.GenerateContentConfig
	if s.Config != nil {
		config = *s.Config
	}
	config.AutomaticContinuation = new(false)
	return clients.Through(ctx, req, f, show, func(ctx context.Context) error {
		for _, err := range s.Client.Models.GenerateContentStream(ctx, f.Model, nil, &config) {
			if err != nil || s.readsAll() {
				return err
			}
		}
		return nil
	})
}

// readsAll reports whether nothing but the SDK sees what [clients.Transport] has read of an
// answer, so that the SDK need not build the rest of it.
func (s *Sender) readsAll() bool {
	return reflect.TypeOf(s.Client.ClientConfig().HTTPClient.Transport) == reflect.TypeOf(clients.Transport(nil))
}

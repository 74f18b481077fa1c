// Package convoanthropic sends the requests of a [convo.History] with the SDK of Anthropic:
//
//	client := anthropic.NewClient()
//	params := anthropic.MessageNewParams{Model: "claude-opus-5-5", MaxTokens: 4096}
//	send := convoanthropic.Send(client, params, func(d wire.Delta) { fmt.Print(d.Text) })
//	reply, err := h.Run(ctx, send, convo.RunOptions{Tools: tools})
//
// The client, its options and the parameters are those of the application. System text, messages
// and the tools of the History are sent as raw JSON, so that their bytes and the
// provider's cache stay the same. Clients for Bedrock and Vertex, which the SDK makes by an
// option, also work.
package convoanthropic

import (
	"cmp"
	"context"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/wire"
)

// Send returns a [convo.Send] that streams answers; see [Sender]. show may be nil.
func Send(client anthropic.Client, params anthropic.MessageNewParams, show func(wire.Delta)) convo.Send {
	return (&Sender{Client: client, Params: params, Show: show}).Send
}

// A Sender makes requests of snapshots. Its fields must not be changed while it is used;
// then it may be used by several goroutines at once.
type Sender struct {
	Client anthropic.Client

	// Params are the parameters of each request. Messages and System must be empty, since
	// they come from the History; otherwise Send returns a [*clients.ParamsError]. Tools
	// come before those of the History. If the History has a model of its own, see
	// [convo.History.SetModel], it takes the place of Model. Cache marks of Params count
	// among the four that a request may have.
	Params anthropic.MessageNewParams

	// Format is how requests are written. Its Model is that of the request. Nil:
	// Anthropic{Cache: true}.
	Format *wire.Anthropic

	// Options are for each request, after those of the client. A field of the body, as by
	// option.WithJSONSet, must be set here and not by the client's own options, which come
	// before the body.
	Options []option.RequestOption

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
	f := s.format(at.Model())
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
	f := s.format(model)
	return clients.Summarizer(f, f.Model, clients.ModelOf(s.Params), func(ctx context.Context, req wire.Request) (convo.Reply, error) {
		return s.send(ctx, f, req, nil)
	})
}

// format returns the format of a request to a model; "" is that of the parameters.
func (s *Sender) format(model string) wire.Anthropic {
	f := wire.Anthropic{Cache: true}
	if s.Format != nil {
		f = *s.Format
	}
	f.Model = cmp.Or(model, clients.ModelOf(s.Params))
	return f.WithParams(s.Params)
}

func (s *Sender) send(ctx context.Context, f wire.Anthropic, req wire.Request, show func(wire.Delta)) (convo.Reply, error) {
	params := s.Params
	params.Model = anthropic.Model(f.Model)
	changes := []clients.Change{clients.Set("model", f.Model), clients.Set("stream", true)} // the SDK finds it at the beginning
	if req.NoThinking {
		changes = append(changes, clients.Set("thinking", anthropic.ThinkingConfigDisabledParam{Type: "disabled"}))
	}
	return clients.SendBody(ctx, req, params, f, show, func(body []byte, m clients.Middleware) clients.Stream[anthropic.MessageStreamEventUnion] {
		var resp *http.Response
		options := slices.Concat([]option.RequestOption{option.WithRequestBody("application/json", body), option.WithMiddleware(m)}, s.Options)
		for _, name := range slices.Sorted(maps.Keys(req.Headers)) {
			options = append(options, option.WithHeaderAdd(name, req.Headers[name]))
		}
		options = append(options, option.WithResponseBodyInto(&resp))
		err := s.Client.Messages.NewStreaming(ctx, params, options...).Err() // all of params: some fields are sent in the header
		stream := ssestream.NewStream[anthropic.MessageStreamEventUnion](ssestream.NewDecoder(resp), err)
		if err != nil || isTraced(resp.Body) {
			return stream
		}
		return answer{stream, resp.Body}
	}, changes...)
}

// An answer is a stream of the SDK, and the body that it reads.
type answer struct {
	*ssestream.Stream[anthropic.MessageStreamEventUnion]
	io.Reader
}

// isTraced reports whether a span of OpenTelemetry takes what it records from the events that
// the SDK builds.
func isTraced(body io.Reader) bool {
	_, ok := body.(interface {
		TraceEvents(ssestream.Decoder) ssestream.Decoder
	})
	return ok
}

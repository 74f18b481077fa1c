package convoanthropic_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients/clienttest"
	"github.com/seed-c1b73e60/convo/clients/convoanthropic"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/wire"
)

func newClient(url string) anthropic.Client {
	return anthropic.NewClient(option.WithBaseURL(url), option.WithAPIKey("none"), option.WithMaxRetries(0))
}

var params = anthropic.MessageNewParams{Model: "claude-opus-5-5", MaxTokens: 500}

func Test(t *testing.T) {
	clienttest.Run(t, clienttest.Client{
		Signs: true, Row: "Anthropic", Small: "claude-haiku-5-5", CacheTTL: 5 * time.Minute,
		New: func(url string, show func(wire.Delta), own string) clienttest.Sender {
			params := params
			if own != "" {
				params.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: own, Description: anthropic.String("of the parameters"), InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]any{}}}}}
			}
			return &convoanthropic.Sender{Client: newClient(url), Params: params, Show: show}
		},
		Marked: func(url string, lifetimes []time.Duration) clienttest.Sender {
			params := params
			for i, d := range lifetimes {
				mark := anthropic.CacheControlEphemeralParam{TTL: anthropic.CacheControlEphemeralTTLTTL5m}
				if d == time.Hour {
					mark.TTL = anthropic.CacheControlEphemeralTTLTTL1h
				}
				params.Tools = append(params.Tools, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{Name: fmt.Sprint("tool", i), InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]any{}}, CacheControl: mark}})
			}
			return &convoanthropic.Sender{Client: newClient(url), Params: params}
		},
		Extra: func(url string, fields map[string]any, override bool) clienttest.Sender {
			params := params
			if override {
				params = param.Override[anthropic.MessageNewParams](fields)
			} else {
				params.SetExtraFields(fields)
			}
			return &convoanthropic.Sender{Client: newClient(url), Params: params}
		},
		Strict: func(url string, schema bool) clienttest.Sender {
			params := params
			params.MaxTokens, params.StopSequences = 1024, []string{clienttest.StopSequence}
			if schema {
				params.OutputConfig.Format = anthropic.JSONOutputFormatParam{Schema: map[string]any{"type": "object"}}
			}
			return &convoanthropic.Sender{Client: newClient(url), Params: params}
		},
		Retrying: func(url string) clienttest.Sender {
			return &convoanthropic.Sender{Client: newClient(url), Params: params, Options: []option.RequestOption{option.WithMaxRetries(1)}}
		},
	})
}

// A request that is given up when its answer begins is an error.
func TestGivenUp(t *testing.T) {
	server := httptest.NewServer(provider.New(provider.Options{}))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(t.Context())
	sender := &convoanthropic.Sender{Client: newClient(server.URL), Params: params, Options: []option.RequestOption{option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		defer cancel()
		return next(r)
	})}}
	err := clienttest.Do(t, func(_ context.Context, at *convo.Snapshot) (convo.Reply, error) { return sender.Send(ctx, at) }, convo.User("q"))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want context.Canceled", err)
	}
}

// The span of a request has the attributes that the SDK records from the events of the answer.
func TestSpan(t *testing.T) {
	p := provider.New(provider.Options{Answer: func(provider.Request) provider.Answer {
		return provider.Answer{Blocks: []provider.Block{provider.Text("Rome.")}}
	}})
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	alone, through := new(span), new(span)
	client := newClient(server.URL)
	stream := client.Messages.NewStreaming(t.Context(), anthropic.MessageNewParams{
		Model: params.Model, MaxTokens: params.MaxTokens, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("q"))},
	}, option.WithTracerProvider(provides{tracer: tracer{span: alone}}))
	for stream.Next() {
	}
	if err := errors.Join(stream.Err(), stream.Close()); err != nil {
		t.Fatal(err)
	}
	sender := &convoanthropic.Sender{Client: newClient(server.URL), Params: params, Options: []option.RequestOption{option.WithTracerProvider(provides{tracer: tracer{span: through}})}}
	if err := clienttest.Do(t, sender.Send, convo.User("q")); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(alone.keys, "gen_ai.usage.output_tokens") || !slices.Equal(through.keys, alone.keys) || through.status != alone.status || through.ended != 1 {
		t.Errorf("through a sender: %v, %v, ended %d times\nthe SDK alone:    %v, %v", through.keys, through.status, through.ended, alone.keys, alone.status)
	}
}

// A tracer makes one span, which keeps what it is given.
type tracer struct {
	noop.Tracer
	span *span
}

type provides struct {
	noop.TracerProvider
	tracer tracer
}

func (p provides) Tracer(string, ...trace.TracerOption) trace.Tracer { return p.tracer }

func (t tracer) Start(ctx context.Context, _ string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	config := trace.NewSpanStartConfig(options...)
	t.span.SetAttributes(config.Attributes()...)
	return trace.ContextWithSpan(ctx, t.span), t.span
}

type span struct {
	noop.Span
	keys   []attribute.Key
	status codes.Code
	ended  int
}

func (s *span) IsRecording() bool { return true }

func (s *span) SetAttributes(list ...attribute.KeyValue) {
	for _, kv := range list {
		s.keys = append(s.keys, kv.Key)
	}
}

func (s *span) SetStatus(code codes.Code, _ string) { s.status = code }

func (s *span) End(...trace.SpanEndOption) { s.ended++ }

// With a key in the environment, the sender talks to the real service.
func TestReal(t *testing.T) {
	clienttest.Real(t, clienttest.Service{Key: "ANTHROPIC_API_KEY", Base: "ANTHROPIC_BASE_URL", Send: func(model string) convo.Send {
		return convoanthropic.Send(anthropic.NewClient(), anthropic.MessageNewParams{Model: anthropic.Model(cmp.Or(model, "claude-haiku-5-5")), MaxTokens: 1024}, nil)
	}})
}

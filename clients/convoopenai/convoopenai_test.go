package convoopenai_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients/clienttest"
	"github.com/seed-c1b73e60/convo/clients/convoopenai"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/wire"
)

func newClient(url string) openai.Client {
	return openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))
}

func TestChat(t *testing.T) {
	clienttest.Run(t, clienttest.Client{
		Row: "Chat Completions", Small: "gpt-5.5-mini", CacheTTL: 24 * time.Hour,
		New: func(url string, show func(wire.Delta), own string) clienttest.Sender {
			params := openai.ChatCompletionNewParams{Model: "gpt-5.5"}
			if own != "" {
				params.ParallelToolCalls = openai.Bool(true)
				params.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: own, Description: openai.String("of the parameters")})}
			}
			return &convoopenai.ChatSender{Client: newClient(url), Params: params, Show: show}
		},
		Extra: func(url string, fields map[string]any, override bool) clienttest.Sender {
			params := openai.ChatCompletionNewParams{Model: "gpt-5.5"}
			if override {
				params = param.Override[openai.ChatCompletionNewParams](fields)
			} else {
				params.SetExtraFields(fields)
			}
			return &convoopenai.ChatSender{Client: newClient(url), Params: params}
		},
		Strict: func(url string, schema bool) clienttest.Sender {
			params := openai.ChatCompletionNewParams{
				Model: "gpt-5.5", MaxCompletionTokens: openai.Int(1024), N: openai.Int(1), Store: openai.Bool(true),
				Stop: openai.ChatCompletionNewParamsStopUnion{OfStringArray: []string{clienttest.StopSequence}},
			}
			if schema {
				params.ResponseFormat.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
			}
			return &convoopenai.ChatSender{Client: newClient(url), Params: params}
		},
		Retrying: func(url string) clienttest.Sender {
			params := openai.ChatCompletionNewParams{Model: "gpt-5.5"}
			return &convoopenai.ChatSender{Client: newClient(url), Params: params, Options: []option.RequestOption{option.WithMaxRetries(1)}}
		},
	})
}

func TestResponses(t *testing.T) {
	clienttest.Run(t, clienttest.Client{
		Signs: true, Row: "Responses", Small: "gpt-5.5-mini", CacheTTL: 24 * time.Hour,
		New: func(url string, show func(wire.Delta), own string) clienttest.Sender {
			params := responses.ResponseNewParams{Model: "gpt-5.5"}
			if own != "" {
				params.ParallelToolCalls = openai.Bool(true)
				params.Tools = []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{Name: own, Description: openai.String("of the parameters"), Parameters: map[string]any{"type": "object"}}}}
			}
			return &convoopenai.ResponsesSender{Client: newClient(url), Params: params, Show: show}
		},
		Extra: func(url string, fields map[string]any, override bool) clienttest.Sender {
			params := responses.ResponseNewParams{Model: "gpt-5.5"}
			if override {
				params = param.Override[responses.ResponseNewParams](fields)
			} else {
				params.SetExtraFields(fields)
			}
			return &convoopenai.ResponsesSender{Client: newClient(url), Params: params}
		},
		Strict: func(url string, schema bool) clienttest.Sender {
			params := responses.ResponseNewParams{Model: "gpt-5.5", MaxOutputTokens: openai.Int(1024), Store: openai.Bool(true)}
			params.SetExtraFields(map[string]any{"stop": clienttest.StopSequence}) // as some servers have it
			if schema {
				params.Text.Format.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
			}
			return &convoopenai.ResponsesSender{Client: newClient(url), Params: params}
		},
		Retrying: func(url string) clienttest.Sender {
			params := responses.ResponseNewParams{Model: "gpt-5.5"}
			return &convoopenai.ResponsesSender{Client: newClient(url), Params: params, Options: []option.RequestOption{option.WithMaxRetries(1)}}
		},
	})
}

// What the provider stores or not, the reasoning of an answer is in the next request.
func TestResponses_Reasoning(t *testing.T) {
	for name, store := range map[string]param.Opt[bool]{"default": {}, "stored": openai.Bool(true), "not stored": openai.Bool(false)} {
		t.Run(name, func(t *testing.T) {
			p := provider.New(provider.Options{Answer: func(provider.Request) provider.Answer {
				return provider.Answer{Blocks: []provider.Block{provider.Thinking("which one?"), provider.Text("This one.")}}
			}})
			server := httptest.NewServer(p)
			t.Cleanup(server.Close)
			send := convoopenai.Responses(newClient(server.URL), responses.ResponseNewParams{Model: "gpt-5.5", Store: store}, nil)
			h, err := convo.New(nil)
			for range 2 {
				if err == nil {
					_, err = h.Append(convo.User("Which one?"))
				}
				if err == nil {
					_, err = h.Do(t.Context(), send)
				}
			}
			if err != nil || len(p.Refused()) > 0 {
				t.Fatal(err, p.Refused())
			}
			if body := string(p.Requests()[1].Body); !strings.Contains(body, `"type":"reasoning"`) || !strings.Contains(body, `"encrypted_content":"`) {
				t.Errorf("the request lacks the reasoning: %s", body)
			}
		})
	}
}

// The status of a refused request counts, whatever the words of the provider, and the error is
// still that of the SDK.
func TestChat_Rate(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"detail":"the prompt is too long: 9 tokens > 5 maximum"}`) // the client may be gone
	}))
	t.Cleanup(server.Close)
	err := clienttest.Do(t, convoopenai.Chat(newClient(server.URL), openai.ChatCompletionNewParams{Model: "gpt-5.5"}, nil), convo.User("q"))
	const want = "OpenAI API error: 429 Too Many Requests: wire: the provider reports 429: the prompt is too long: 9 tokens > 5 maximum; wait, and send the request again"
	if e, ok := errors.AsType[*openai.Error](err); !ok || e.StatusCode != http.StatusTooManyRequests || err.Error() != want || convo.IsOverflow(err) {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

// An account whose quota of a minute is a small part of the window gets an answer to each of
// many questions: the first request that alone exceeds the quota lowers the limit for good.
func TestQuota(t *testing.T) {
	p := provider.New(provider.Options{Quota: 4_000})
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 128_000}, Strategy: convo.Truncate{}})
	if err != nil {
		t.Fatal(err)
	}
	send := convoopenai.Chat(newClient(server.URL), openai.ChatCompletionNewParams{Model: "gpt-5.5", MaxCompletionTokens: openai.Int(500)}, nil)
	for i := range 60 {
		if _, err = h.Append(convo.User(strings.Repeat("What is the next word? ", 30))); err == nil {
			_, err = h.Run(t.Context(), send, convo.RunOptions{})
		}
		if err != nil {
			t.Fatalf("question %d: %v", i, err)
		}
	}
	if n, limit := len(p.Refused()), h.Status().Limit; n != 1 || limit > 3_500 {
		t.Errorf("%d requests were refused, and the limit is %d, want 1, and at most 3,500", n, limit)
	}
}

// What the sender asks for by default is also asked for if the parameters are one JSON object.
func TestOverride(t *testing.T) {
	r := clienttest.Record(t)
	raw := json.RawMessage(`{"model":"m","stream_options":{"include_obfuscation":false},"include":["x"]}`)
	clienttest.Do(t, convoopenai.Chat(newClient(r.URL), param.Override[openai.ChatCompletionNewParams](raw), nil), convo.User("q"))
	r.Check("Chat Completions", []string{`"include_usage":true`, `"include_obfuscation":false`}, nil)
	clienttest.Do(t, convoopenai.Responses(newClient(r.URL), param.Override[responses.ResponseNewParams](raw), nil), convo.User("q"))
	r.Check("Responses", []string{`"store":false`, `"include":["x","reasoning.encrypted_content"]`}, nil)
	raw = json.RawMessage(`{"model":"m","stream_options":{"include_usage":false},"store":true}`)
	clienttest.Do(t, convoopenai.Chat(newClient(r.URL), param.Override[openai.ChatCompletionNewParams](raw), nil), convo.User("q"))
	r.Check("Chat Completions, their own", []string{`"include_usage":false`}, nil)
	clienttest.Do(t, convoopenai.Responses(newClient(r.URL), param.Override[responses.ResponseNewParams](raw), nil), convo.User("q"))
	r.Check("Responses, their own", []string{`"store":true`, `"include":["reasoning.encrypted_content"]`}, nil)
}

// With a key in the environment, the senders talk to the real service.
func TestReal(t *testing.T) {
	service := clienttest.Service{Key: "OPENAI_API_KEY", Base: "OPENAI_BASE_URL", Path: "/v1"}
	service.Send = func(model string) convo.Send {
		return convoopenai.Chat(openai.NewClient(), openai.ChatCompletionNewParams{Model: cmp.Or(model, "gpt-5.5-mini")}, nil)
	}
	t.Run("Chat", func(t *testing.T) { clienttest.Real(t, service) })
	service.Send = func(model string) convo.Send {
		return convoopenai.Responses(openai.NewClient(), responses.ResponseNewParams{Model: cmp.Or(model, "gpt-5.5-mini")}, nil)
	}
	t.Run("Responses", func(t *testing.T) { clienttest.Real(t, service) })
}

// A request that is given up when its answer begins is an error.
func TestGivenUp(t *testing.T) {
	server := httptest.NewServer(provider.New(provider.Options{}))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(t.Context())
	given := []option.RequestOption{option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		defer cancel()
		return next(r)
	})}
	for _, s := range []clienttest.Sender{
		&convoopenai.ChatSender{Client: newClient(server.URL), Params: openai.ChatCompletionNewParams{Model: "gpt-5.5"}, Options: given},
		&convoopenai.ResponsesSender{Client: newClient(server.URL), Params: responses.ResponseNewParams{Model: "gpt-5.5"}, Options: given},
	} {
		send := func(_ context.Context, at *convo.Snapshot) (convo.Reply, error) { return s.Send(ctx, at) }
		if err := clienttest.Do(t, send, convo.User("q")); !errors.Is(err, context.Canceled) {
			t.Errorf("%T: the error is %v, want context.Canceled", s, err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
	}
}

// The parameters of a request say how long the provider keeps its cache.
func TestCacheTTL(t *testing.T) {
	server := httptest.NewServer(provider.New(provider.Options{}))
	t.Cleanup(server.Close)
	for want, fields := range map[time.Duration]map[string]any{
		30 * time.Minute: {"prompt_cache_options": map[string]any{"ttl": "30m"}},
		12 * time.Hour:   {"prompt_cache_options": map[string]any{"ttl": "12h"}, "prompt_cache_retention": "24h"},
		24 * time.Hour:   {"prompt_cache_retention": "24h"},
		time.Hour:        {"prompt_cache_retention": "in_memory"},
	} {
		chat := openai.ChatCompletionNewParams{Model: "gpt-5.5"}
		chat.SetExtraFields(fields)
		resp := responses.ResponseNewParams{Model: "gpt-5.5"}
		resp.SetExtraFields(fields)
		for _, send := range []convo.Send{convoopenai.Chat(newClient(server.URL), chat, nil), convoopenai.Responses(newClient(server.URL), resp, nil)} {
			err := clienttest.Do(t, func(ctx context.Context, at *convo.Snapshot) (convo.Reply, error) {
				reply, err := send(ctx, at)
				if reply.Usage.CacheTTL != want {
					t.Errorf("CacheTTL is %v with %v, want %v", reply.Usage.CacheTTL, fields, want)
				}
				return reply, err
			}, convo.User("q"))
			if err != nil {
				t.Error(err)
			}
		}
	}
}

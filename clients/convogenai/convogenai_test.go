package convogenai_test

import (
	"bytes"
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

	"google.golang.org/genai"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/clients/clienttest"
	"github.com/seed-c1b73e60/convo/clients/convogenai"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/wire"
)

func newClient(url string, client *http.Client) *genai.Client {
	c, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		Backend: genai.BackendGeminiAPI, APIKey: "none", HTTPClient: client, HTTPOptions: genai.HTTPOptions{BaseURL: url},
	})
	if err != nil {
		panic(err)
	}
	return c
}

const model = "gemini-3.8-flash"

func withTransport() *http.Client { return &http.Client{Transport: clients.Transport(nil)} }

func Test(t *testing.T) {
	clienttest.Run(t, clienttest.Client{
		Signs: true, Row: "generateContent", Small: "gemini-3.8-flash-lite", CacheTTL: 24 * time.Hour,
		New: func(url string, show func(wire.Delta), own string) clienttest.Sender {
			s := &convogenai.Sender{Client: newClient(url, withTransport()), Model: model, Show: show}
			if own != "" {
				s.Config = &genai.GenerateContentConfig{Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{Name: own, Description: "of the parameters"}}}}}
			}
			return s
		},
		Strict: func(url string, schema bool) clienttest.Sender {
			config := &genai.GenerateContentConfig{MaxOutputTokens: 1024, StopSequences: []string{clienttest.StopSequence}, CandidateCount: 1, Store: new(true)}
			if schema {
				config.ResponseMIMEType, config.ResponseSchema = "application/json", &genai.Schema{Type: genai.TypeObject}
			}
			return &convogenai.Sender{Client: newClient(url, withTransport()), Model: model, Config: config}
		},
		Retrying: func(url string) clienttest.Sender {
			retries := &genai.HTTPRetryOptions{Attempts: genai.Ptr[int32](2), InitialDelay: new(0.001)}
			return &convogenai.Sender{Client: newClient(url, withTransport()), Model: model, Config: &genai.GenerateContentConfig{HTTPOptions: &genai.HTTPOptions{RetryOptions: retries}}}
		},
	})
}

// The other service of the SDK, Vertex AI, has the same requests at another address.
func TestSend_VertexAI(t *testing.T) {
	p := provider.New(provider.Options{})
	server := httptest.NewServer(p)
	defer server.Close()
	client, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		Backend: genai.BackendVertexAI, Project: "p", Location: "europe-west4", HTTPClient: withTransport(), HTTPOptions: genai.HTTPOptions{BaseURL: server.URL},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := clienttest.Do(t, convogenai.Send(client, model, nil, nil), convo.System("<s>"), convo.User("<q>")); err != nil {
		t.Fatal(err)
	}
	body := string(p.Requests()[0].Body)
	for _, s := range []string{"<s>", "<q>"} {
		if !strings.Contains(body, s) {
			t.Errorf("the request lacks %s: %s", s, body)
		}
	}
}

// What the History decides may not be among the parameters.
func TestParams(t *testing.T) {
	for field, config := range map[string]*genai.GenerateContentConfig{
		"systemInstruction": {SystemInstruction: genai.NewContentFromText("x", "user")},
		"candidateCount":    {HTTPOptions: &genai.HTTPOptions{ExtraBody: map[string]any{"generation_config": map[string]any{"candidate_count": 2}}}},
		"contents":          {HTTPOptions: &genai.HTTPOptions{ExtraBody: map[string]any{"contents": []any{"x"}}}},
	} {
		clienttest.Refuses(t, field, func(url string) convo.Send {
			return convogenai.Send(newClient(url, withTransport()), model, config, nil)
		})
	}
}

// Gemini also takes its fields in snake_case.
func TestSnakeCase(t *testing.T) {
	clienttest.Refuses(t, "systemInstruction", func(url string) convo.Send {
		return convogenai.Send(newClient(url, withTransport()), model, extraBody(`{"system_instruction":{"parts":[{"text":"x"}]}}`), nil)
	})
	r := clienttest.Record(t)
	config := extraBody(`{"safety_settings":[{"category":"c"}],"tools":[{"function_declarations":[{"name":"own"}]}],"tool_config":{"function_calling_config":{"mode":"ANY"}},
		"generation_config":{"max_output_tokens":9,"response_mime_type":"application/json","response_schema":{"properties":{"a_b":{}}},"stop_sequences":["x"],"thinking_config":{"thinking_budget":500},"top_p":1}}`)
	config.StopSequences = []string{"y"}
	s := &convogenai.Sender{Client: newClient(r.URL, withTransport()), Model: "mine", Config: config}
	_ = clienttest.Do(t, s.Send, convo.User("q"))
	r.Check("a request", []string{`"maxOutputTokens":9`, `"thinkingBudget":500`, `"a_b"`, `"function_declarations"`, `"safetySettings"`, `"stopSequences":["x"]`}, []string{`"max_output_tokens"`})
	_, _ = s.Summarizer("").Summarize(t.Context(), convo.SummaryRequest{Prompt: "P", MaxTokens: 1000})
	r.Check("a summary", []string{`{"generationConfig":{"maxOutputTokens":2500,"thinkingConfig":{"thinkingBudget":500}},"safetySettings":[{"category":"c"}],"contents":`}, nil)
}

func extraBody(fields string) *genai.GenerateContentConfig {
	var body map[string]any
	if err := json.Unmarshal([]byte(fields), &body); err != nil {
		panic(err)
	}
	return &genai.GenerateContentConfig{HTTPOptions: &genai.HTTPOptions{ExtraBody: body}}
}

// Cached content holds the system text and the tools, and a request with it may have none.
func TestCachedContent(t *testing.T) {
	tool := convo.Tool{Name: "read", Schema: `{"type":"object"}`}
	for name, tt := range map[string]struct {
		system string
		tools  []convo.Tool
		config genai.GenerateContentConfig
		fails  bool
	}{
		"alone":                   {"", nil, genai.GenerateContentConfig{}, false},
		"system text":             {"Be brief.", nil, genai.GenerateContentConfig{}, true},
		"tools":                   {"", []convo.Tool{tool}, genai.GenerateContentConfig{}, true},
		"tools of the parameters": {"", nil, genai.GenerateContentConfig{Tools: []*genai.Tool{{GoogleSearch: &genai.GoogleSearch{}}}}, true},
		"a tool choice":           {"", nil, genai.GenerateContentConfig{ToolConfig: &genai.ToolConfig{FunctionCallingConfig: &genai.FunctionCallingConfig{Mode: "NONE"}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := provider.New(provider.Options{})
			server := httptest.NewServer(p)
			defer server.Close()
			tt.config.CachedContent = "cachedContents/c"
			h, err := convo.New(nil)
			if err == nil && tt.system != "" {
				err = h.SetSystem(convo.System(tt.system))
			}
			if err == nil {
				err = h.SetTools(tt.tools...)
			}
			if err == nil {
				_, err = h.Append(convo.User("q"))
			}
			if err != nil {
				t.Fatal(err)
			}
			_, err = h.Do(t.Context(), convogenai.Send(newClient(server.URL, withTransport()), model, &tt.config, nil))
			var wrong *clients.ParamsError
			if errors.As(err, &wrong) != tt.fails || tt.fails && wrong.Field != "cachedContent" || len(p.Refused()) > 0 || !tt.fails && err != nil {
				t.Errorf("%v; a ParamsError for cachedContent: want %t; refused: %v", err, tt.fails, p.Refused())
			}
			if sent := len(p.Requests()); tt.fails == (sent > 0) {
				t.Errorf("%d requests", sent)
			}
		})
	}
}

// A client without the transport is an error that says so, and an error of the SDK is not.
func TestTransport(t *testing.T) {
	err := clienttest.Do(t, convogenai.Send(newClient(clienttest.Record(t).URL, http.DefaultClient), model, nil, nil), convo.User("1"))
	if !errors.Is(err, clients.ErrTransport) {
		t.Error(err)
	}
	err = clienttest.Do(t, convogenai.Send(newClient(clienttest.Record(t).URL, withTransport()), "../"+model, nil, nil), convo.User("1"))
	if err == nil || errors.Is(err, clients.ErrTransport) {
		t.Error(err)
	}
}

// A transport around that of package clients sees the whole answer.
func TestOuterTransport(t *testing.T) {
	p := provider.New(provider.Options{Answer: func(provider.Request) provider.Answer {
		return provider.Answer{Blocks: []provider.Block{provider.Text(strings.Repeat("one more word, ", 1_000))}}
	}})
	var wrote, seen bytes.Buffer
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.ServeHTTP(copies{w, &wrote}, r)
	}))
	outer := roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := clients.Transport(nil).RoundTrip(r)
		if err == nil {
			resp.Body = struct {
				io.Reader
				io.Closer
			}{io.TeeReader(resp.Body, &seen), resp.Body}
		}
		return resp, err
	})
	err := clienttest.Do(t, convogenai.Send(newClient(server.URL, &http.Client{Transport: outer}), model, nil, nil), convo.User("q"))
	server.Close()
	if err != nil || wrote.Len() < 15_000 || seen.String() != wrote.String() {
		t.Errorf("%v, and the transport saw %d of %d bytes", err, seen.Len(), wrote.Len())
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A copies writes what it writes to another writer as well.
type copies struct {
	http.ResponseWriter
	to io.Writer
}

func (c copies) Write(b []byte) (int, error) {
	_, _ = c.to.Write(b) // a buffer takes it
	return c.ResponseWriter.Write(b)
}

func (c copies) Flush() { c.ResponseWriter.(http.Flusher).Flush() }

// With a key in the environment, the sender talks to the real service.
func TestReal(t *testing.T) {
	clienttest.Real(t, clienttest.Service{Key: "GEMINI_API_KEY", Base: "GOOGLE_GEMINI_BASE_URL", Send: func(name string) convo.Send {
		client, err := genai.NewClient(t.Context(), &genai.ClientConfig{Backend: genai.BackendGeminiAPI, HTTPClient: withTransport()})
		if err != nil {
			t.Fatal(err)
		}
		return convogenai.Send(client, cmp.Or(name, model), nil, nil)
	}})
}

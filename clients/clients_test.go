package clients_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/wire"
)

func requestOf(t *testing.T, tools ...convo.Tool) wire.Request {
	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = h.Append(convo.System("guide"), convo.User("<hi>"))
	require.NoError(t, err)
	require.NoError(t, h.SetTools(tools...))
	r, err := wire.Anthropic{}.Encode(h.Snapshot())
	require.NoError(t, err)
	return r
}

func TestBody(t *testing.T) {
	read := convo.Tool{Name: "read", Schema: `{"type":"object","properties":{"a":{"const":1.0}}}`}
	for name, tt := range map[string]struct {
		params any
		tools  []convo.Tool
		want   string // in the body
		err    string
	}{
		"parameters":        {map[string]any{"model": "m", "max_tokens": 9}, nil, `"model":"m"`, ""},
		"null":              {map[string]any{"model": "m", "messages": nil, "system": []string{}}, nil, `"messages":[{"role":"user"`, ""},
		"raw bytes stay":    {map[string]any{}, []convo.Tool{read}, `{"a":{"const":1.0}}`, ""},
		"tools of both":     {map[string]any{"tools": []any{map[string]any{"type": "web_search"}}}, []convo.Tool{read}, `"tools":[{"type":"web_search"},{"name":"read"`, ""},
		"tools of one's":    {map[string]any{"tools": []any{map[string]any{"type": "web_search"}}}, nil, `"tools":[{"type":"web_search"}]`, ""},
		"messages":          {map[string]any{"messages": []any{1}}, nil, "", `"messages"`},
		"system":            {map[string]any{"system": "x"}, nil, "", "SetSystem"},
		"instructions":      {map[string]any{"instructions": "x"}, nil, "", "SetSystem"},
		"input":             {map[string]any{"input": "x"}, nil, "", "History.Append"},
		"earlier answer":    {map[string]any{"previous_response_id": "r"}, nil, "", "the History alone"},
		"stored talk":       {map[string]any{"conversation": "c"}, nil, "", "the History alone"},
		"one choice":        {map[string]any{"n": 1, "generationConfig": map[string]any{"candidateCount": 1}}, nil, `"n":1`, ""},
		"two choices":       {map[string]any{"n": 2}, nil, "", `"n", but`},
		"two candidates":    {map[string]any{"generationConfig": map[string]any{"candidateCount": 2}}, nil, "", `"candidateCount", but`},
		"cached content":    {map[string]any{"cachedContent": "c"}, nil, "", `"cachedContent", but`},
		"no cached content": {map[string]any{"cachedContent": ""}, nil, `"messages"`, ""},
		"empty":             {map[string]any{"system": "", "previous_response_id": "", "systemInstruction": map[string]any{}, "user": ""}, nil, `{"user":"","system":[`, ""},
		"two, as text":      {map[string]any{"n": "2"}, nil, "", `"n", but`},
		"an object":         {map[string]any{"tools": map[string]any{}}, nil, "", `clients: the parameters set "tools", but they are no list`},
		"no object":         {[]int{1}, nil, "", "parameters"},
		"not JSON":          {map[string]any{"x": func() {}}, nil, "", "parameters"},
		"tools not a list":  {map[string]any{"tools": "x"}, nil, "", "tools"},
		"nil is no problem": {nil, nil, `"messages"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := clients.Body(t.Context(), requestOf(t, tt.tools...), tt.params)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				var wrong *clients.ParamsError
				assert.Equal(t, tt.err != "parameters", errors.As(err, &wrong))
				return
			}
			require.NoError(t, err)
			assert.True(t, json.Valid(body))
			assert.Contains(t, string(body), tt.want)
			assert.Equal(t, 1, strings.Count(string(body), `"messages"`))
		})
	}
}

// Changes are made before anything else.
func TestBody_Changes(t *testing.T) {
	params := map[string]any{"model": "m", "stream_options": nil, "store": false, "text": map[string]any{"a": 1}, "user": "u"}
	body, err := clients.Body(t.Context(), requestOf(t), params,
		clients.Set("model", "other"), clients.Set("user", ""), clients.Set("text.b", 2), clients.Default("store", true), clients.Default("stream_options.include_usage", true))
	require.NoError(t, err)
	assert.Contains(t, string(body), `{"model":"other","store":false,"stream_options":{"include_usage":true},"text":{"a":1,"b":2},"system":`)
	assert.Equal(t, "m", clients.ModelOf(params))
	assert.Empty(t, clients.ModelOf(nil))
	var wrong *clients.ParamsError
	_, err = clients.Body(t.Context(), requestOf(t), nil, clients.Set("messages", []int{1}))
	require.ErrorAs(t, err, &wrong)
}

// Gemini takes function declarations in one tool only.
func TestBody_FunctionDeclarations(t *testing.T) {
	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = h.Append(convo.User("hi"))
	require.NoError(t, err)
	require.NoError(t, h.SetTools(convo.Tool{Name: "read", Schema: `{"type":"object","properties":{"a":{"const":1.0,"pattern":"<"}}}`}))
	req, err := wire.Gemini{}.Encode(h.Snapshot())
	require.NoError(t, err)
	for own, want := range map[string]string{
		`[{"googleSearch":{}}]`:                       `[{"googleSearch":{}},{"functionDeclarations":[READ]}]`,
		`[{"functionDeclarations":[{"name":"own"}]}]`: `[{"functionDeclarations":[{"name":"own"},READ]}]`,
		`[{"googleSearch":{}},{"codeExecution":{},"functionDeclarations":[{"name":"own"}],"urlContext":{}},{}]`: `[{"googleSearch":{}},{"functionDeclarations":[{"name":"own"},READ],"codeExecution":{},"urlContext":{}},{}]`,
		`[{"functionDeclarations":[]}]`:                `[{"functionDeclarations":[READ]}]`,
		`[{"function_declarations":[{"name":"own"}]}]`: `[{"function_declarations":[{"name":"own"},READ]}]`,
	} {
		body, err := clients.Body(t.Context(), req, map[string]any{"tools": json.RawMessage(own)})
		require.NoError(t, err)
		assert.True(t, json.Valid(body))
		read := strings.TrimSuffix(strings.TrimPrefix(string(req.Tools), `[{"functionDeclarations":[`), `]}]`)
		assert.Contains(t, read, `{"const":1.0,"pattern":"<"}`)
		assert.Contains(t, string(body), `"tools":`+strings.ReplaceAll(want, "READ", read))
	}
	_, err = clients.Body(t.Context(), req, map[string]any{"tools": json.RawMessage(`[{"functionDeclarations":"x"}]`)})
	require.ErrorContains(t, err, `the parameters set "tools", but they are no list`)
}

// What the parameters have besides the tools in the toolConfig of Converse stays.
func TestBody_ToolConfig(t *testing.T) {
	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = h.Append(convo.User("hi"))
	require.NoError(t, err)
	require.NoError(t, h.SetTools(convo.Tool{Name: "read"}))
	req, err := wire.Converse{}.Encode(h.Snapshot())
	require.NoError(t, err)
	read := string(req.Tools[len(`{"tools":[`) : len(req.Tools)-len(`]}`)])
	for own, want := range map[string]string{
		`{"tools":[{"toolSpec":{"name":"own"}}],"toolChoice":{"auto":{}},"more":{"a":1.0}}`: `{"tools":[{"toolSpec":{"name":"own"}},READ],"more":{"a":1.0},"toolChoice":{"auto":{}}}`,
		`{"tools":null,"toolChoice":null}`:                                                  `{"tools":[READ]}`,
		`{}`:                                                                                `{"tools":[READ]}`,
	} {
		body, err := clients.Body(t.Context(), req, json.RawMessage(`{"toolConfig":`+own+`}`))
		require.NoError(t, err)
		assert.Contains(t, string(body), `"toolConfig":`+strings.ReplaceAll(want, "READ", read))
	}
	for _, own := range []string{`"x"`, `{"tools":{}}`} {
		var wrong *clients.ParamsError
		_, err := clients.Body(t.Context(), req, json.RawMessage(`{"toolConfig":`+own+`}`))
		require.ErrorAs(t, err, &wrong)
	}
}

// The names of tools are read from the parameters of all formats.
func TestToolNames(t *testing.T) {
	for params, want := range map[string]string{
		`{"tools":[{"name":"a"},{"type":"web_search"},{"type":"bash_20250124","name":"bash"}]}`:                       "[a bash]",
		`{"tools":[{"type":"function","function":{"name":"a","parameters":{"name":{}}}}],"functions":[{"name":"b"}]}`: "[a b]",
		`{"tools":[{"type":"custom","custom":{"name":"a"}},{"type":"namespace","name":"n","tools":[{"name":"b"}]}]}`:  "[a n b]",
		`{"tools":[{"googleSearch":{}},{"functionDeclarations":[{"name":"a"},{"name":"b"}]}]}`:                        "[a b]",
		`{"tools":[{"function_declarations":[{"name":"a"}]}]}`:                                                        "[a]",
		`{"additionalModelRequestFields":{"tools":[{"type":"bash_20250124","name":"bash"}]}}`:                         "[bash]",
		`{"toolConfig":{"tools":[{"toolSpec":{"name":"a"}},{"cachePoint":{}},{"systemTool":{"name":"b"}}]}}`:          "[a b]",
		`{"tools":"x"}`: "[]", `{}`: "[]", `[1]`: "[]", `null`: "[]",
	} {
		assert.Equal(t, want, fmt.Sprint(clients.ToolNames(json.RawMessage(params))), params)
	}
	var wrong *clients.ParamsError
	_, err := clients.Body(t.Context(), requestOf(t, convo.Tool{Name: "a"}), json.RawMessage(`{"tools":[{"name":"a"}]}`))
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, "a", wrong.Tool)
	require.EqualError(t, err, `clients: the tool "a" is in the parameters and in the History; remove it from one of them`)
}

// eventsOf returns a next that yields events and then err.
func eventsOf(err error, events ...string) func() ([]byte, error) {
	return func() ([]byte, error) {
		if len(events) == 0 {
			return nil, err
		}
		e := events[0]
		events = events[1:]
		return []byte(e), nil
	}
}

func TestRead(t *testing.T) {
	chunk := func(text, reason string) string {
		return `{"id":"a","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"` + text + `"},"finish_reason":` + reason + `}]}`
	}
	broken := errors.New("connection reset")
	stopped, stop := context.WithCancelCause(t.Context())
	stop(clients.ErrStop)
	ended, end := context.WithCancel(t.Context())
	end()
	for name, tt := range map[string]struct {
		ctx    context.Context
		end    error
		events []string
		want   string
		err    error
	}{
		"whole":            {t.Context(), io.EOF, []string{chunk("a", "null"), chunk("b", `"stop"`)}, "ab", nil},
		"broken":           {t.Context(), broken, []string{chunk("a", "null")}, "", broken},
		"too short":        {t.Context(), io.EOF, []string{chunk("a", "null")}, "", io.ErrUnexpectedEOF},
		"nothing":          {t.Context(), io.EOF, nil, "", io.ErrUnexpectedEOF},
		"stopped":          {stopped, context.Canceled, []string{chunk("a", "null"), chunk("b", "null")}, "ab", nil},
		"stopped at once":  {stopped, context.Canceled, nil, "", nil},
		"ended, not saved": {ended, context.Canceled, []string{chunk("a", "null")}, "", context.Canceled},
		"not JSON":         {t.Context(), io.EOF, []string{"x"}, "", errAny},
		"an error":         {t.Context(), io.EOF, []string{`{"error":{"message":"overloaded","type":"server_error"}}`}, "", errAny},
	} {
		t.Run(name, func(t *testing.T) {
			var shown strings.Builder
			reply, err := clients.Read(tt.ctx, wire.OpenAIChat{}, eventsOf(tt.end, tt.events...), func(d wire.Delta) { shown.WriteString(d.Text) })
			switch {
			case tt.err == errAny:
				require.Error(t, err)
			case tt.err != nil:
				require.ErrorIs(t, err, tt.err)
			default:
				require.NoError(t, err)
			}
			assert.Equal(t, tt.want, reply.Text())
			if tt.err == nil {
				assert.Equal(t, tt.want, shown.String())
			}
			assert.Equal(t, strings.HasPrefix(name, "stopped"), reply.Stop == convo.StopCancelled)
			_, again := clients.Read(tt.ctx, wire.OpenAIChat{}, eventsOf(tt.end, tt.events...), nil)
			assert.Equal(t, err == nil, again == nil)
		})
	}
}

// ErrTransport says that the SDK made its request without the transport, and is not the error
// for anything else.
func TestThrough_NoRequest(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	ended, end := context.WithCancel(t.Context())
	end()
	asks := func(ctx context.Context, call func(context.Context) error) error {
		_, err := clients.Through(ctx, requestOf(t), wire.OpenAIChat{}, nil, call)
		return err
	}
	refused := errors.New("the parameters are wrong")
	get := func(url string, end error) func(context.Context) error {
		return func(ctx context.Context) error {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			require.NoError(t, err)
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				return err
			}
			return cmp.Or(resp.Body.Close(), end)
		}
	}
	for name, tt := range map[string]struct {
		ctx       context.Context
		call      func(context.Context) error
		transport bool
		err       error
	}{
		"no request, no error": {t.Context(), func(context.Context) error { return nil }, true, nil},
		"the SDK's own error":  {t.Context(), func(context.Context) error { return refused }, false, refused},
		"answered":             {t.Context(), get(server.URL, nil), true, nil},
		"refused":              {t.Context(), get(server.URL, refused), true, refused},
		"no connection":        {t.Context(), get("http://127.0.0.1:1", nil), false, syscall.ECONNREFUSED},
		"ctx ended":            {ended, get(server.URL, nil), false, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			err := asks(tt.ctx, tt.call)
			assert.Equal(t, tt.transport, errors.Is(err, clients.ErrTransport), err)
			if tt.err != nil {
				require.ErrorIs(t, err, tt.err)
			}
		})
	}
}

var errAny = errors.New("any error")

// A lines is a stream of an SDK: each event is one line with data.
type lines struct {
	*bufio.Scanner
	io.Closer
}

func (l lines) Next() bool {
	for l.Scan() {
		if strings.HasPrefix(l.Text(), "data: {") {
			return true
		}
	}
	return false
}

func (l lines) Current() lines  { return l }
func (l lines) RawJSON() string { return strings.TrimPrefix(l.Text(), "data: ") }

// A byte order mark before an answer hides nothing of it, under any type.
func TestReadStream_ByteOrderMark(t *testing.T) {
	const stream = `data: {"choices":[{"delta":{"content":"Hel"}}]}` + "\n\n" + `data: {"choices":[{"delta":{"content":"lo"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	const whole = `{"choices":[{"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}]}`
	for _, kind := range []string{"text/event-stream", "application/json", ""} {
		for _, answer := range []string{stream, whole} {
			reply, err := clients.ReadStream(t.Context(), wire.OpenAIChat{}, nil, func(through clients.Middleware) clients.Stream[lines] {
				resp, err := through(httptest.NewRequest("POST", "/", nil), func(*http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader("\ufeff" + answer))}, nil
				})
				require.NoError(t, err)
				return lines{bufio.NewScanner(resp.Body), resp.Body}
			})
			require.NoError(t, err, "%s %s", kind, answer)
			assert.Equal(t, "Hello", reply.Text(), "%s %s", kind, answer)
		}
	}
}

// Binary frames are left to the SDK, which gets every byte, and reads their events.
func TestReadStream_Frames(t *testing.T) {
	const frames = "\x00\x00\n" + `data: {"choices":[{"delta":{"content":"Hello"},"finish_reason":"stop"}]}` + "\n"
	var seen strings.Builder
	reply, err := clients.ReadStream(t.Context(), wire.OpenAIChat{}, nil, func(through clients.Middleware) clients.Stream[lines] {
		resp, err := through(httptest.NewRequest("POST", "/", nil), func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(frames))}, nil
		})
		require.NoError(t, err)
		return lines{bufio.NewScanner(io.TeeReader(resp.Body, &seen)), resp.Body}
	})
	require.NoError(t, err)
	assert.Equal(t, "Hello", reply.Text())
	assert.Equal(t, frames, seen.String())
}

// The SDK, and what stands between it and the middleware, gets every byte of an answer and of
// an error. Of a long error only the beginning is shown.
func TestReadStream_Bytes(t *testing.T) {
	for status, answer := range map[int]string{
		200: "data: {\rdata: \"choices\":[{\"delta\":{\"content\":\"Hello\"},\"finish_reason\":\"stop\"}]}\r\r",
		502: "<html>" + strings.Repeat("x", 5000),
	} {
		var seen strings.Builder
		_, err := clients.ReadStream(t.Context(), wire.OpenAIChat{}, nil, func(through clients.Middleware) clients.Stream[lines] {
			resp, err := through(httptest.NewRequest("POST", "/", nil), func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(answer))}, nil
			})
			require.NoError(t, err)
			return lines{bufio.NewScanner(io.TeeReader(resp.Body, &seen)), resp.Body}
		})
		assert.Equal(t, answer, seen.String())
		if status == 200 {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "the provider reports 502: <html>xxx")
		assert.Less(t, len(err.Error()), 1200)
	}
}

// Words before [DONE], and nothing else, are an error.
func TestReadBody_Words(t *testing.T) {
	for _, format := range []wire.Streamer{wire.OpenAIChat{}, wire.Anthropic{}} {
		for _, said := range []string{"SAID\n\n", "data: SAID\n\n", `data: {"code":1305,"msg":"SAID"}` + "\n\n", `data: {"errors":["SAID"]}` + "\n\n"} {
			body := strings.ReplaceAll(said, "SAID", "prompt is too long: 3000 tokens > 2000 maximum") + "data: [DONE]\n\n"
			_, err := clients.ReadBody(t.Context(), format, strings.NewReader(body), nil)
			assert.True(t, convo.IsOverflow(err), "%T, %q: %v", format, said, err)
		}
	}
}

// The reason of a refused request is recognised and shown, however much is before it.
func TestReadStream_FarReason(t *testing.T) {
	const over = "prompt is too long: 3000 tokens > 2000 maximum"
	for _, answer := range []string{
		`{"object":"error","param":"` + strings.Repeat("p", 1100) + `","message":"` + over + `"}`,
		`{"detail":[{"input":"` + strings.Repeat("x", 3000) + `","msg":"` + over + `"}]}`,
		"<html>" + strings.Repeat("<!-- x -->", 300) + over + strings.Repeat(" ", 100_000) + "</html>",
	} {
		_, err := clients.ReadStream(t.Context(), wire.OpenAIChat{}, nil, func(through clients.Middleware) clients.Stream[lines] {
			resp, err := through(httptest.NewRequest("POST", "/", nil), func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 400, Body: io.NopCloser(strings.NewReader(answer))}, nil
			})
			require.NoError(t, err)
			return lines{bufio.NewScanner(resp.Body), resp.Body}
		})
		assert.True(t, convo.IsOverflow(err))
		assert.ErrorContains(t, err, over)
		assert.Less(t, len(err.Error()), 1700)
	}
}

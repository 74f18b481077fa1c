package clients_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
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
		"no object":         {[]int{1}, nil, "", "parameters"},
		"not JSON":          {map[string]any{"x": func() {}}, nil, "", "parameters"},
		"tools not a list":  {map[string]any{"tools": "x"}, nil, "", "tools"},
		"nil is no problem": {nil, nil, `"messages"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := clients.Body(t.Context(), requestOf(t, tt.tools...), tt.params)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			assert.True(t, json.Valid(body))
			assert.Contains(t, string(body), tt.want)
			assert.Equal(t, 1, strings.Count(string(body), `"messages"`))
		})
	}
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
		`[{"functionDeclarations":[]}]`: `[{"functionDeclarations":[READ]}]`,
	} {
		body, err := clients.Body(t.Context(), req, map[string]any{"tools": json.RawMessage(own)})
		require.NoError(t, err)
		assert.True(t, json.Valid(body))
		read := strings.TrimSuffix(strings.TrimPrefix(string(req.Tools), `[{"functionDeclarations":[`), `]}]`)
		assert.Contains(t, read, `{"const":1.0,"pattern":"<"}`)
		assert.Contains(t, string(body), `"tools":`+strings.ReplaceAll(want, "READ", read))
	}
	_, err = clients.Body(t.Context(), req, map[string]any{"tools": json.RawMessage(`[{"functionDeclarations":"x"}]`)})
	require.ErrorContains(t, err, "clients: tools: ")
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
			_, again := clients.Read(tt.ctx, wire.OpenAIChat{}, eventsOf(tt.end, tt.events...), nil)
			assert.Equal(t, err == nil, again == nil)
		})
	}
}

// A request that the SDK has not made is an error of the transport only if ctx has not ended.
func TestThrough_NoRequest(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	asks := func(ctx context.Context, failed error) error {
		_, err := clients.Through(ctx, requestOf(t), wire.OpenAIChat{}, nil, func(context.Context) error { return failed })
		return err
	}
	refused := errors.New("no key")
	require.ErrorIs(t, asks(t.Context(), nil), clients.ErrTransport)
	require.ErrorIs(t, asks(t.Context(), refused), clients.ErrTransport)
	require.ErrorIs(t, asks(t.Context(), refused), refused)
	require.NotErrorIs(t, asks(ended, context.Canceled), clients.ErrTransport)
	require.ErrorIs(t, asks(ended, context.Canceled), context.Canceled)
	require.ErrorIs(t, asks(ended, nil), clients.ErrTransport)
}

var errAny = errors.New("any error")

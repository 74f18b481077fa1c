package transport_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/convotest/provider"
)

type obj = map[string]any

// A program is an agent that knows nothing of convo: it keeps its list and sends all of it.
type program struct {
	t      *testing.T
	client *http.Client
	base   string
	format string
	stream bool
	system string
	model  string
	list   []any
	extra  obj                    // further fields of the body
	change func(list []any) []any // what is sent in place of the list
}

// path returns the path of the API.
func (p *program) path() string {
	switch p.format {
	case provider.FormatAnthropic:
		return "/v1/messages"
	case provider.FormatOpenAIChat:
		return "/v1/chat/completions"
	case provider.FormatOpenAIResponses:
		return "/v1/responses"
	}
	if p.stream {
		return "/v1beta/models/" + p.model + ":streamGenerateContent?alt=sse"
	}
	return "/v1beta/models/" + p.model + ":generateContent"
}

func (p *program) user(text string) {
	switch p.format {
	case provider.FormatGemini:
		p.list = append(p.list, obj{"role": "user", "parts": []any{obj{"text": text}}})
	case provider.FormatAnthropic:
		p.list = append(p.list, obj{"role": "user", "content": []any{obj{"type": "text", "text": text}}})
	default:
		p.list = append(p.list, obj{"role": "user", "content": text})
	}
}

// body returns the request.
func (p *program) body() []byte {
	list := p.list
	if p.change != nil {
		list = p.change(list)
	}
	b := obj{"model": p.model}
	schema := obj{"type": "object", "properties": obj{"path": obj{"type": "string"}}}
	switch p.format {
	case provider.FormatAnthropic:
		b["messages"], b["system"], b["max_tokens"], b["stream"] = list, p.system, 500, p.stream
		b["tools"] = []any{obj{"name": "read", "input_schema": schema}}
	case provider.FormatOpenAIChat:
		b["messages"], b["stream"] = append([]any{obj{"role": "system", "content": p.system}}, list...), p.stream
		b["tools"] = []any{obj{"type": "function", "function": obj{"name": "read", "parameters": schema}}}
		if p.stream {
			b["stream_options"] = obj{"include_usage": true}
		}
	case provider.FormatOpenAIResponses:
		b["input"], b["instructions"], b["stream"], b["store"] = list, p.system, p.stream, false
		b["tools"] = []any{obj{"type": "function", "name": "read", "parameters": schema}}
	case provider.FormatGemini:
		delete(b, "model")
		b["contents"], b["systemInstruction"] = list, obj{"parts": []any{obj{"text": p.system}}}
		b["tools"] = []any{obj{"functionDeclarations": []any{obj{"name": "read", "parameters": schema}}}}
	}
	maps.Copy(b, p.extra)
	data, err := json.Marshal(b)
	require.NoError(p.t, err)
	return data
}

// post sends the list and returns the status and the answer.
func (p *program) post() (int, []byte) {
	resp, err := p.client.Post(p.base+p.path(), "application/json", bytes.NewReader(p.body()))
	require.NoError(p.t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(p.t, err)
	return resp.StatusCode, data
}

// A called is a call of a tool.
type called struct{ id, name, path string }

// step sends the list and appends the answer. It returns the calls in it.
func (p *program) step() (calls []called, err error) {
	status, data := p.post()
	if status != http.StatusOK {
		return nil, fmt.Errorf("status %d: %s", status, data)
	}
	answer := whole(p.t, p.format, p.stream, data)
	path := func(arguments any) string {
		text, ok := arguments.(string)
		if !ok {
			raw, _ := json.Marshal(arguments)
			text = string(raw)
		}
		var args struct{ Path string }
		_ = json.Unmarshal([]byte(text), &args)
		return args.Path
	}
	switch p.format {
	case provider.FormatAnthropic:
		p.list = append(p.list, obj{"role": "assistant", "content": answer["content"]})
		for _, b := range answer["content"].([]any) {
			if b := b.(obj); b["type"] == "tool_use" {
				calls = append(calls, called{b["id"].(string), b["name"].(string), path(b["input"])})
			}
		}
	case provider.FormatOpenAIChat:
		m := answer["choices"].([]any)[0].(obj)["message"].(obj)
		p.list = append(p.list, m)
		list, _ := m["tool_calls"].([]any)
		for _, c := range list {
			f := c.(obj)["function"].(obj)
			calls = append(calls, called{c.(obj)["id"].(string), f["name"].(string), path(f["arguments"])})
		}
	case provider.FormatOpenAIResponses:
		for _, it := range answer["output"].([]any) {
			p.list = append(p.list, it)
			if it := it.(obj); it["type"] == "function_call" {
				calls = append(calls, called{it["call_id"].(string), it["name"].(string), path(it["arguments"])})
			}
		}
	case provider.FormatGemini:
		content := answer["candidates"].([]any)[0].(obj)["content"].(obj)
		p.list = append(p.list, content)
		for _, part := range content["parts"].([]any) {
			if c, ok := part.(obj)["functionCall"].(obj); ok {
				id, _ := c["id"].(string)
				calls = append(calls, called{id, c["name"].(string), path(c["args"])})
			}
		}
	}
	return calls, nil
}

// results appends the results of calls.
func (p *program) results(calls []called, result func(called) string) {
	var blocks []any
	for _, c := range calls {
		text := result(c)
		switch p.format {
		case provider.FormatAnthropic:
			blocks = append(blocks, obj{"type": "tool_result", "tool_use_id": c.id, "content": []any{obj{"type": "text", "text": text}}})
		case provider.FormatOpenAIChat:
			p.list = append(p.list, obj{"role": "tool", "tool_call_id": c.id, "content": text})
		case provider.FormatOpenAIResponses:
			p.list = append(p.list, obj{"type": "function_call_output", "call_id": c.id, "output": text})
		case provider.FormatGemini:
			f := obj{"name": c.name, "response": obj{"output": text}}
			if c.id != "" {
				f["id"] = c.id
			}
			blocks = append(blocks, obj{"functionResponse": f})
		}
	}
	switch {
	case len(blocks) == 0:
	case p.format == provider.FormatGemini:
		p.list = append(p.list, obj{"role": "user", "parts": blocks})
	default:
		p.list = append(p.list, obj{"role": "user", "content": blocks})
	}
}

// whole returns the answer that a stream makes.
func whole(t *testing.T, format string, isStream bool, data []byte) obj {
	if !isStream {
		var answer obj
		require.NoError(t, json.Unmarshal(data, &answer), string(data))
		return answer
	}
	var events []obj
	for line := range strings.Lines(string(data)) {
		if text, ok := strings.CutPrefix(line, "data:"); ok && strings.TrimSpace(text) != "[DONE]" {
			var e obj
			require.NoError(t, json.Unmarshal([]byte(text), &e), line)
			events = append(events, e)
		}
	}
	switch format {
	case provider.FormatAnthropic:
		return anthropicStream(events)
	case provider.FormatOpenAIChat:
		return chatStream(events)
	case provider.FormatOpenAIResponses:
		return events[len(events)-1]["response"].(obj)
	}
	var parts []any
	for _, e := range events {
		c, _ := e["candidates"].([]any)
		if len(c) > 0 {
			if content, ok := c[0].(obj)["content"].(obj); ok {
				more, _ := content["parts"].([]any)
				parts = append(parts, more...)
			}
		}
	}
	return obj{"candidates": []any{obj{"content": obj{"role": "model", "parts": parts}}}}
}

func anthropicStream(events []obj) obj {
	var blocks []any
	var input string
	for _, e := range events {
		switch e["type"] {
		case "content_block_start":
			blocks, input = append(blocks, e["content_block"]), ""
		case "content_block_delta":
			b, d := blocks[len(blocks)-1].(obj), e["delta"].(obj)
			for _, name := range []string{"text", "thinking", "signature"} {
				if s, ok := d[name].(string); ok {
					was, _ := b[name].(string)
					b[name] = was + s
				}
			}
			if s, ok := d["partial_json"].(string); ok {
				input += s
			}
		case "content_block_stop":
			if b := blocks[len(blocks)-1].(obj); b["type"] == "tool_use" && input != "" {
				var v any
				_ = json.Unmarshal([]byte(input), &v)
				b["input"] = v
			}
		}
	}
	return obj{"content": blocks}
}

func chatStream(events []obj) obj {
	m := obj{"role": "assistant", "content": ""}
	calls := map[float64]obj{}
	var list []any
	for _, e := range events {
		choices, _ := e["choices"].([]any)
		if len(choices) == 0 {
			continue
		}
		d := choices[0].(obj)["delta"].(obj)
		if s, ok := d["content"].(string); ok {
			m["content"] = m["content"].(string) + s
		}
		more, _ := d["tool_calls"].([]any)
		for _, c := range more {
			c := c.(obj)
			f := c["function"].(obj)
			i := c["index"].(float64)
			if calls[i] == nil {
				calls[i] = obj{"id": c["id"], "type": "function", "function": obj{"name": f["name"], "arguments": ""}}
				list = append(list, calls[i])
			}
			own := calls[i]["function"].(obj)
			if s, ok := f["arguments"].(string); ok {
				own["arguments"] = own["arguments"].(string) + s
			}
		}
	}
	if len(list) > 0 {
		m["tool_calls"] = list
	}
	return obj{"choices": []any{obj{"message": m}}}
}

// serve starts a provider whose model reads one file after the other, until it has read n.
func serve(t *testing.T, window, n int) (*provider.Server, string) {
	return server(t, provider.Options{Window: window, Answer: func(r provider.Request) provider.Answer {
		return provider.Answer{Blocks: []provider.Block{next(r, n)}}
	}})
}

// next returns the call for the file after the one that was read last, until n are read.
func next(r provider.Request, n int) provider.Block {
	at := bytes.LastIndex(r.Body, []byte("file number "))
	next := 1
	if at >= 0 {
		_, _ = fmt.Sscanf(string(r.Body[at:]), "file number %d", &next)
		next++
	}
	if next > n {
		return provider.Text("done")
	}
	return provider.Call{Name: "read", Arguments: fmt.Sprintf(`{"path":"src/f%d.go"}`, next)}
}

// server starts a provider.
func server(t *testing.T, o provider.Options) (*provider.Server, string) {
	s := provider.New(o)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL
}

func file(c called) string {
	var n int
	_, _ = fmt.Sscanf(c.path, "src/f%d.go", &n)
	return strings.Repeat(fmt.Sprintf("func f%d() { g(%d) }\n", n, n), 60) + fmt.Sprintf("file number %d", n)
}

var formats = []string{provider.FormatAnthropic, provider.FormatOpenAIChat, provider.FormatOpenAIResponses, provider.FormatGemini}

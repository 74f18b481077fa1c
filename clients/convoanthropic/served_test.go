package convoanthropic_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients/convoanthropic"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/wire"
)

// ask returns what Run says to a text of the user.
func ask(t *testing.T, h *convo.History, send convo.Send, text string, tools ...convo.Handler) convo.Reply {
	t.Helper()
	_, err := h.Append(convo.User(text))
	require.NoError(t, err)
	reply, err := h.Run(t.Context(), send, convo.RunOptions{Tools: tools})
	require.NoError(t, err)
	return reply
}

func handler(name, result string) convo.Handler {
	return convo.Handler{
		Tool: convo.Tool{Name: name, Description: "of the application"},
		Run: func(context.Context, convo.ToolCall) ([]convo.Part, error) {
			return []convo.Part{convo.Text(result)}, nil
		},
	}
}

// containers returns the containers that requests name.
func containers(t *testing.T, requests []provider.Request) (list []string) {
	t.Helper()
	for _, r := range requests {
		var body struct{ Container json.RawMessage }
		require.NoError(t, json.Unmarshal(r.Body, &body))
		list = append(list, string(body.Container))
	}
	return list
}

// Code that the provider runs searches the web and calls a tool of the application. The request
// with the result names the container of the code, and later requests do not.
func TestContainer(t *testing.T) {
	const code = "srvtoolu_code"
	waits := provider.Answer{Blocks: []provider.Block{
		provider.Text("I write code."),
		provider.Served{ID: code, Name: "code_execution", Input: `{"code":"weather(search())"}`},
		provider.Served{Name: "web_search", Input: `{"query":"q"}`, Result: `[]`, Caller: code},
		provider.Call{Name: "weather", Arguments: `{"city":"Rome"}`, Caller: code},
	}}
	goesOn := provider.Answer{Blocks: []provider.Block{provider.Call{Name: "weather", Arguments: `{"city":"Oslo"}`, Caller: code}}}
	ends := provider.Answer{Blocks: []provider.Block{
		provider.Served{ID: code, Name: "code_execution", Result: `{"type":"code_execution_result","stdout":"sunny","stderr":"","return_code":0,"content":[]}`},
		provider.Text("It is sunny."),
	}}
	for name, tt := range map[string]struct {
		params anthropic.MessageCreateParamsContainerUnion
		want   []string
	}{
		"none in the parameters": {want: []string{"", `"container_1"`, `"container_1"`, ""}},
		"skills in the parameters": {
			params: anthropic.MessageCreateParamsContainerUnion{OfContainers: &anthropic.ContainerParams{Skills: []anthropic.SkillParams{{Type: "anthropic", SkillID: "pptx"}}}},
			want:   []string{`{"skills":[{"skill_id":"pptx","type":"anthropic"}]}`, `{"skills":[{"skill_id":"pptx","type":"anthropic"}],"id":"container_1"}`, `{"skills":[{"skill_id":"pptx","type":"anthropic"}],"id":"container_1"}`, `{"skills":[{"skill_id":"pptx","type":"anthropic"}]}`},
		},
		"one in the parameters": {
			params: anthropic.MessageCreateParamsContainerUnion{OfString: anthropic.String("mine")},
			want:   []string{`"mine"`, `"mine"`, `"mine"`, `"mine"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := provider.New(provider.Options{})
			server := httptest.NewServer(p)
			defer server.Close()
			p.Script(waits, goesOn, ends)
			params := params
			params.Container = tt.params
			send := convoanthropic.Send(newClient(server.URL), params, nil)
			h, err := convo.New(nil)
			require.NoError(t, err)
			weather := handler("weather", "sunny")
			assert.Equal(t, "It is sunny.", ask(t, h, send, "How is the weather?", weather).Text())
			assert.Equal(t, "ok", ask(t, h, send, "Thanks.", weather).Text())
			assert.Empty(t, p.Refused())
			assert.Equal(t, tt.want, containers(t, p.Requests()))
			assert.Contains(t, string(p.Requests()[1].Body), `"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_code"}}]`)
		})
	}
}

// After the user's next text, nothing of the code that still waits is sent.
func TestContainer_UserGoesOn(t *testing.T) {
	p := provider.New(provider.Options{})
	server := httptest.NewServer(p)
	defer server.Close()
	p.Script(provider.Answer{Blocks: []provider.Block{
		provider.Text("I write code."),
		provider.Served{ID: "srvtoolu_code", Name: "code_execution", Input: `{"code":"weather(search())"}`},
		provider.Served{Name: "web_search", Input: `{"query":"q"}`, Result: `[]`, Caller: "srvtoolu_code"},
		provider.Call{Name: "weather", Arguments: `{"city":"Rome"}`, Caller: "srvtoolu_code"},
	}})
	send := convoanthropic.Send(newClient(server.URL), params, nil)
	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = h.Append(convo.User("How is the weather?"))
	require.NoError(t, err)
	reply, err := h.Do(t.Context(), send)
	require.NoError(t, err)
	_, err = h.Append(convo.Result(reply.OpenCalls()[0], "sunny"))
	require.NoError(t, err)
	assert.Equal(t, "ok", ask(t, h, send, "Never mind.").Text())
	assert.Empty(t, p.Refused())
	last := string(p.Requests()[1].Body)
	assert.Contains(t, last, "I write code.")
	assert.Contains(t, last, `"tool_use"`)
	for _, gone := range []string{"container", "caller", "server_tool_use", "web_search"} {
		assert.NotContains(t, last, gone)
	}
}

// A tool that a search has found leaves, as with an MCP server that is away.
func TestToolReference(t *testing.T) {
	search := provider.Answer{Blocks: []provider.Block{
		provider.Served{ID: "srvtoolu_s", Name: "tool_search_tool_bm25", Input: `{"query":"q"}`},
		provider.Raw(`{"type":"tool_search_tool_result","tool_use_id":"srvtoolu_s","content":{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"weather"},{"type":"tool_reference","tool_name":"news"}]}}`),
		provider.Call{Name: "find"},
	}}
	find := handler("find", "")
	find.Run = func(context.Context, convo.ToolCall) ([]convo.Part, error) {
		return []convo.Part{
			convo.Opaque{Format: wire.FormatAnthropic, JSON: `{"type":"tool_reference","tool_name":"weather"}`},
			convo.Opaque{Format: wire.FormatAnthropic, JSON: `{"type":"tool_reference","tool_name":"stored"}`},
		}, nil
	}
	p := provider.New(provider.Options{})
	server := httptest.NewServer(p)
	defer server.Close()
	own := params
	own.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: "stored", InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]any{}}}}}
	send := convoanthropic.Send(newClient(server.URL), own, nil)
	h, err := convo.New(nil)
	require.NoError(t, err)
	p.Script(search)
	ask(t, h, send, "one", find, handler("weather", "sunny"), handler("news", "none"))
	ask(t, h, send, "two", find, handler("news", "none"))
	assert.Empty(t, p.Refused())
	last := string(p.Requests()[2].Body)
	assert.NotContains(t, last, `"tool_name":"weather"`)
	assert.Contains(t, last, `"tool_references":[{"tool_name":"news","type":"tool_reference"}]`)
	assert.Contains(t, last, `{"type":"tool_reference","tool_name":"stored"}`)

	ask(t, h, send, "three", find, handler("weather", "sunny"), handler("news", "none"))
	assert.Empty(t, p.Refused())
	assert.Contains(t, string(p.Requests()[3].Body), `"tool_references":[{"tool_name":"weather","type":"tool_reference"},{"tool_name":"news","type":"tool_reference"}]`, "the tool is back")
}

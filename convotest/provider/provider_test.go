package provider_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/convotest/provider"
)

// post sends a request and returns the answer.
func post(t *testing.T, s *provider.Server, path, body string) (status int, answer string) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body)))
	data, err := io.ReadAll(w.Result().Body)
	require.NoError(t, err)
	return w.Code, string(data)
}

// A ruleTest is a request and the error that it gets. Without one it is accepted.
type ruleTest struct{ name, body, want string }

func checkRules(t *testing.T, path string, tests []ruleTest) {
	for _, tt := range tests {
		s := provider.New(provider.Options{Window: 1000})
		status, answer := post(t, s, path, tt.body)
		all := s.Requests()
		require.Len(t, all, 1, tt.name)
		assert.Equal(t, tt.want, all[0].Error, tt.name)
		assert.Equal(t, status, all[0].Status, tt.name)
		if tt.want == "" {
			assert.Equal(t, 200, status, tt.name)
			assert.Empty(t, s.Refused(), tt.name)
			continue
		}
		assert.Len(t, s.Refused(), 1, tt.name)
		assert.Equal(t, 400, status, tt.name)
		assert.Contains(t, answer, quoted(tt.want), tt.name)
	}
}

func TestServer_Concurrent(t *testing.T) {
	s := provider.New(provider.Options{Answer: func(r provider.Request) provider.Answer {
		return provider.Answer{Blocks: []provider.Block{provider.Thinking("h"), provider.Text(r.Model)}}
	}})
	server := httptest.NewServer(s)
	defer server.Close()
	s.Script(provider.Answer{Blocks: []provider.Block{provider.Text("scripted")}})
	var wait sync.WaitGroup
	var mu sync.Mutex
	scripted := 0
	for i := range 20 {
		wait.Go(func() {
			stream := []string{"true", "false"}[i%2]
			resp, err := http.Post(server.URL+"/v1/messages", "application/json", strings.NewReader(`{"model":"m","max_tokens":1,"stream":`+stream+`,"messages":[`+question+`]}`))
			if !assert.NoError(t, err) {
				return
			}
			defer resp.Body.Close()
			data, err := io.ReadAll(resp.Body)
			assert.NoError(t, err)
			s.Refused()
			mu.Lock()
			defer mu.Unlock()
			if strings.Contains(string(data), `"script`) {
				scripted++
			}
		})
	}
	wait.Wait()
	assert.Equal(t, 1, scripted)
	assert.Len(t, s.Requests(), 20)
	assert.Empty(t, s.Refused())
}

func TestServer_OtherRequests(t *testing.T) {
	s := provider.New(provider.Options{})
	status, _ := post(t, s, "/v1/models", `{}`)
	assert.Equal(t, 404, status)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/messages", nil))
	assert.Equal(t, 405, w.Code)
	status, _ = post(t, s, "/v1/messages", `{"model":"`+strings.Repeat("m", 33<<20)+`"}`)
	assert.Equal(t, 413, status)
	assert.Len(t, s.Refused(), 3)
}

// A body that is not one JSON value in UTF-8 is refused in the words of each format.
func TestServer_BadJSON(t *testing.T) {
	for _, tt := range []struct{ path, good, want string }{
		{"/v1/messages", `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"q"}]}`, `"type":"invalid_request_error"`},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"q"}]}`, `"type":"invalid_request_error"`},
		{"/v1/responses", `{"model":"m","input":"q"}`, `"type":"invalid_request_error"`},
		{"/v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"q"}]}]}`, `"status":"INVALID_ARGUMENT"`},
	} {
		t.Run(tt.path, func(t *testing.T) {
			s := provider.New(provider.Options{})
			status, _ := post(t, s, tt.path, tt.good+"\n ")
			assert.Equal(t, 200, status)
			for _, bad := range []string{"", "null", "[]", tt.good + "}", tt.good + tt.good, tt.good[:len(tt.good)-1], strings.Replace(tt.good, "q", "\xff", 1), strings.Repeat("[", 100_000)} {
				status, got := post(t, s, tt.path, bad)
				assert.Equal(t, 400, status, "%.80q", bad)
				assert.Contains(t, got, tt.want)
				assert.Contains(t, got, "is not valid JSON")
			}
		})
	}
}

// quoted returns a text as JSON, with no character escaped for HTML.
func quoted(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text)
}

// Checks decides for which models signed reasoning is checked.
func TestOptions_Checks(t *testing.T) {
	const body = `{"model":"claude-opus-5-5","max_tokens":9,"messages":[` + question + `,{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"c2ln"},{"type":"text","text":"a"}]},` + again + `]}`
	for _, checks := range []bool{true, false} {
		s := provider.New(provider.Options{Checks: func(model string) bool { return checks && model == "claude-opus-5-5" }})
		post(t, s, "/v1/messages", body)
		assert.Equal(t, checks, len(s.Refused()) == 1)
	}
}

// Scripted answers come first, then those of Options.Answer.
func TestServer_Script(t *testing.T) {
	s := provider.New(provider.Options{Answer: func(r provider.Request) provider.Answer {
		return provider.Answer{Blocks: []provider.Block{provider.Text(r.Format + " " + r.Model)}}
	}})
	s.Script(provider.Answer{Blocks: []provider.Block{provider.Text("one")}})
	s.Script(provider.Answer{Blocks: []provider.Block{provider.Text("two")}})
	post(t, s, "/v1/chat/completions", `{}`) // refused, and answered by none
	for _, want := range []string{"one", "two", "openai-chat m"} {
		_, got := post(t, s, "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"q"}]}`)
		assert.Contains(t, got, `"content":"`+want+`"`)
	}
}

// A client that goes away while it sends a request is not refused, and takes no scripted answer.
func TestServer_ClientGone(t *testing.T) {
	for _, tt := range formatTests() {
		t.Run(tt.name, func(t *testing.T) {
			body := accepted(t, tt)
			served := make(chan struct{}, 1)
			s := provider.New(provider.Options{})
			s.Script(provider.Answer{Blocks: []provider.Block{provider.Text("for the next")}})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s.ServeHTTP(w, r)
				served <- struct{}{}
			}))
			defer server.Close()
			for _, sent := range []int{0, 1, len(body) - 1} {
				conn, err := net.Dial("tcp", server.Listener.Addr().String())
				require.NoError(t, err)
				_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", tt.path, len(body), body[:sent])
				require.NoError(t, err)
				require.NoError(t, conn.Close())
				<-served
			}
			assert.Empty(t, s.Refused())
			assert.Empty(t, s.Requests())
			status, answer := post(t, s, tt.path, body)
			assert.Equal(t, 200, status)
			assert.Contains(t, answer, "for ")
		})
	}
}

package proxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/wire"
)

// serve serves a Proxy whose upstreams are all one.
func serve(t *testing.T, upstream string, o Options) (p *Proxy, address string) {
	t.Helper()
	u, err := url.Parse(upstream)
	require.NoError(t, err)
	o.Upstreams = Upstreams{wire.FormatAnthropic: u, wire.FormatOpenAIChat: u, wire.FormatOpenAIResponses: u, wire.FormatGemini: u}
	if o.Log == nil {
		o.Log = t.Output()
	}
	p = New(o)
	server := httptest.NewServer(p)
	t.Cleanup(func() {
		server.Close()
		require.NoError(t, p.Close())
	})
	return p, server.URL
}

// send sends a request and returns the status and the body of its answer.
func send(t *testing.T, method, address, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		if req.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(data)
}

// The upstream is chosen by the path, and its own path takes the place of what a variable of a
// program ends in.
func TestUpstreams_Of(t *testing.T) {
	for _, c := range []struct{ path, header, anthropic, openai, gemini string }{
		{"/v1/messages?beta=true", "", "/v1/messages?beta=true", "", ""},
		{"/v1/messages/count_tokens", "", "/v1/messages/count_tokens", "", ""},
		{"/v1/models", "Anthropic-Version", "/v1/models", "", ""},
		{"/v1/projects/p/models/claude:rawPredict", "", "/v1/projects/p/models/claude:rawPredict", "", ""},
		{"/v1/chat/completions", "", "", "/chat/completions", ""},
		{"/chat/completions", "", "", "/chat/completions", ""},
		{"/v1/responses", "", "", "/responses", ""},
		{"/v1/responses/resp_1/input_items", "", "", "/responses/resp_1/input_items", ""},
		{"/v1/threads/t/messages", "", "", "/threads/t/messages", ""},
		{"/v1/models", "", "", "/models", ""},
		{"/v1x/models", "", "", "/v1x/models", ""},
		{"/v1beta/models/gemini-3:streamGenerateContent?alt=sse&key=a%3Bb", "", "", "", "/v1beta/models/gemini-3:streamGenerateContent?alt=sse&key=a%3Bb"},
		{"/v1/models/gemini-3:generateContent", "", "", "", "/v1/models/gemini-3:generateContent"},
		{"/v1/models/a%2Fb", "X-Goog-Api-Key", "", "", "/v1/models/a%2Fb"},
		{"//evil.example/v1", "", "", "//evil.example/v1", ""},
	} {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1"+c.path, nil)
		if c.header != "" {
			r.Header.Set(c.header, "x")
		}
		for _, v := range []struct{ name, base, want string }{
			{"anthropic", "https://a.example/api", c.anthropic}, {"anthropic", "https://a.example/api/v1", strings.TrimPrefix(c.anthropic, "/v1")},
			{"openai", "https://o.example/api/v4/", c.openai}, {"openai", "https://o.example", c.openai}, {"gemini", "https://g.example", c.gemini},
		} {
			all, err := FindUpstreams(func(string) string { return "" }, "", []string{v.name + "=" + v.base})
			require.NoError(t, err)
			if got := all.of(r).String(); v.want != "" {
				assert.Equal(t, strings.TrimSuffix(v.base, "/")+v.want, got)
			} else {
				assert.NotContains(t, got, v.base, c.path)
			}
		}
	}
}

// The variables of the environment say where the upstreams are, unless that is the proxy.
func TestFindUpstreams(t *testing.T) {
	env := map[string]string{"ANTHROPIC_BASE_URL": "http://127.0.0.1:4141", "ANTHROPIC_HOST": "https://a.example", "OPENAI_HOST": "https://o.example/x"}
	all, err := FindUpstreams(func(name string) string { return env[name] }, "127.0.0.1:4141", []string{"openai-responses=https://r.example/v1"})
	require.NoError(t, err)
	text := fmt.Sprint(all[wire.FormatAnthropic], all[wire.FormatOpenAIChat], all[wire.FormatOpenAIResponses], all[wire.FormatGemini])
	assert.Equal(t, "https://a.example https://o.example/x/v1 https://r.example/v1 https://generativelanguage.googleapis.com", text)
	_, err = FindUpstreams(func(string) string { return "https://u:sk-planted@a.example" }, "", nil)
	require.ErrorContains(t, err, "the variable ANTHROPIC_BASE_URL: want an address")
	assert.NotContains(t, err.Error(), "planted")
	_, err = FindUpstreams(func(string) string { return "" }, "127.0.0.1:4141", []string{"gemini=http://127.0.0.1:4141"})
	require.ErrorContains(t, err, "this is the proxy itself")
	assert.Contains(t, Variables("http://127.0.0.1:4141"), "OPENAI_BASE_URL=http://127.0.0.1:4141/v1")
}

// A website cannot use the proxy, nor read the page, and none of its requests is sent on.
func TestProxy_Foreign(t *testing.T) {
	s := provider.New(provider.Options{})
	server := httptest.NewServer(s)
	defer server.Close()
	_, address := serve(t, server.URL, Options{Hosts: []string{"convo.example.com"}})
	const body = `{"model":"m","messages":[{"role":"user","content":"q"}]}`
	for _, header := range [][]string{{"Host", "evil.example"}, {"Host", "evil.example:4141"}, {"Host", "169.254.169.254"}, {"Origin", "https://evil.example"}, {"Origin", "null"}, {"Origin", "%%"},
		{"Origin", "https://evil.example", "Connection", "Upgrade", "Upgrade", "websocket"}} {
		for _, path := range []string{"/v1/messages", "/v1/chat/completions", Page, "/"} {
			status, text := send(t, http.MethodPost, address+path, body, header...)
			assert.Equal(t, http.StatusForbidden, status, "%s %s", path, header)
			assert.Contains(t, text, "is not allowed")
			assert.Contains(t, text, "-host")
		}
	}
	assert.Empty(t, s.Requests())
	for _, header := range [][]string{{"Host", "localhost:4141"}, {"Host", "convo.example.com"}, {"Origin", "http://localhost:3000"}, {"Origin", "http://[::1]:3000"}} {
		status, text := send(t, http.MethodPost, address+"/v1/chat/completions", body, header...)
		assert.Equal(t, http.StatusOK, status, "%s: %s", header, text)
	}

	// A proxy of HTTP is asked for other hosts.
	for _, line := range []string{"GET http://evil.example/v1/models HTTP/1.1", "CONNECT evil.example:443 HTTP/1.1", "CONNECT 127.0.0.1:443 HTTP/1.1"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
		require.NoError(t, err)
		_, err = fmt.Fprintf(conn, "%s\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", line)
		require.NoError(t, err)
		data, err := io.ReadAll(conn)
		require.NoError(t, err)
		assert.Regexp(t, `^HTTP/1\.1 40[35] `, string(data), line)
		require.NoError(t, conn.Close())
	}
	assert.Len(t, s.Requests(), 4)
}

// No key that a program sends is in the log or on the page, also if the provider quotes it.
func TestProxy_Secrets(t *testing.T) {
	const secret = "sk-planted-0123456789"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":{"message":"prompt is too long: %s","type":"invalid_request_error"}}`, secret)
	}))
	defer server.Close()
	var log bytes.Buffer
	p, address := serve(t, server.URL, Options{Log: &log, Compact: true})
	const tools = `"tools":[{"name":"read","input_schema":{"type":"object"}}]`
	for _, header := range [][]string{{"Authorization", "Bearer " + secret}, {"X-Api-Key", secret}, {"X-Goog-Api-Key", secret}, {"Cookie", "a=b; session=" + secret}} {
		status, text := send(t, http.MethodPost, address+"/v1/messages", `{"model":"m",`+tools+`,"messages":[{"role":"user","content":"q"}]}`, header...)
		assert.Equal(t, http.StatusBadRequest, status)
		assert.Contains(t, text, secret, "the answer passes as it is")
		p.secrets.list = nil
	}
	send(t, http.MethodPost, address+"/v1beta/models/gemini-3:generateContent?key="+secret, `{"contents":[{"role":"user","parts":[{"text":"q"}]}],"tools":[{"functionDeclarations":[{"name":"read"}]}]}`)
	status, list := send(t, http.MethodGet, address+Page, "")
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, list, "The provider refused the last request (400 Bad Request): ")
	assert.Contains(t, list, "[key]")
	assert.NotContains(t, list, secret)
	for n := range 2 {
		_, page := send(t, http.MethodGet, fmt.Sprint(address, Page, "?c=", n+1), "")
		assert.Contains(t, page, "[key]")
		assert.NotContains(t, page, secret)
	}
	assert.NotContains(t, strings.Join(p.Summary(), "\n"), secret)
	assert.NotEmpty(t, log.String())
	assert.NotContains(t, log.String(), secret)
}

// The newest keys are hidden, the longest first.
func TestSecrets(t *testing.T) {
	var s secrets
	for i := range mostSecrets + 1 {
		s.addOne("key-planted")
		s.addOne(fmt.Sprint("key-planted-", i))
	}
	s.addOne("short")
	assert.Len(t, s.list, mostSecrets)
	assert.Equal(t, "[key] [key] short key-none", s.hide(fmt.Sprint("key-planted key-planted-", mostSecrets, " short key-none")))
}

// Whatever an upstream does, the program gets it, or an error that says which upstream it was.
func TestProxy_Upstream(t *testing.T) {
	const body = `{"model":"m","tools":[{"name":"read","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"q"}]}`
	garbage := strings.Repeat("\x00\xff{]", 1000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, garbage) }))
	defer server.Close()
	_, address := serve(t, server.URL, Options{Compact: true})
	status, text := send(t, http.MethodPost, address+"/v1/messages", body)
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, garbage, text)

	var log bytes.Buffer
	gone := httptest.NewServer(nil)
	gone.Close()
	p, address := serve(t, gone.URL, Options{Log: &log})
	status, text = send(t, http.MethodPost, address+"/v1/messages", body)
	assert.Equal(t, http.StatusBadGateway, status)
	assert.Contains(t, text, "convo proxy: no answer from "+strings.TrimPrefix(gone.URL, "http://"))
	assert.Contains(t, log.String(), `level=WARN msg="proxy: no answer from the provider" host=`)
	assert.Contains(t, p.Summary()[0], "refused: 1")

	// Its certificate is not that of its name.
	other := httptest.NewTLSServer(http.NotFoundHandler())
	defer other.Close()
	other.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	_, address = serve(t, other.URL, Options{})
	status, text = send(t, http.MethodPost, address+"/v1/messages", body)
	assert.Equal(t, http.StatusBadGateway, status)
	assert.Contains(t, text, "certificate")

	// It hangs, and the program goes away.
	asked, left := make(chan struct{}), make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(asked)
		<-r.Context().Done()
		close(left)
	}))
	defer hanging.Close()
	_, address = serve(t, hanging.URL, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/v1/messages", strings.NewReader(body))
	require.NoError(t, err)
	_, err = http.DefaultTransport.RoundTrip(req)
	require.ErrorIs(t, err, context.Canceled)
	<-left
}

// A body that does not arrive whole is not sent on, and one that is too large to follow passes.
func TestProxy_Bodies(t *testing.T) {
	got := make(chan int64, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		got <- n
	}))
	defer server.Close()
	p, address := serve(t, server.URL, Options{})
	conn, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
	require.NoError(t, err)
	_, err = fmt.Fprint(conn, "POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{\"messages\":[")
	require.NoError(t, err)
	require.NoError(t, conn.Close())

	const size = 65 << 20
	status, _ := send(t, http.MethodPost, address+"/v1/messages", `{"messages":[`+strings.Repeat(" ", size))
	assert.Equal(t, http.StatusOK, status)
	assert.EqualValues(t, size+13, <-got)
	assert.Empty(t, got)
	assert.Empty(t, p.transport.Conversations())
}

// An upgrade passes, in both directions.
func TestProxy_Upgrade(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := rw.ReadString('\n')
		_, _ = fmt.Fprint(conn, "you said "+line)
	}))
	defer server.Close()
	_, address := serve(t, server.URL, Options{})
	conn, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprint(conn, "GET /v1/responses HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	require.NoError(t, err)
	from := bufio.NewReader(conn)
	resp, err := http.ReadResponse(from, nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	_, err = fmt.Fprintln(conn, "hello")
	require.NoError(t, err)
	data, err := io.ReadAll(from)
	require.NoError(t, err)
	assert.Equal(t, "you said hello\n", string(data))
}

// A browser is led to the page, which shows each conversation that is followed; a program is not.
func TestProxy_Page(t *testing.T) {
	s := provider.New(provider.Options{Window: 3000})
	server := httptest.NewServer(s)
	defer server.Close()
	p, address := serve(t, server.URL, Options{Compact: true, Window: 3000})
	status, text := send(t, http.MethodGet, address+"/", "", "Accept", "text/html,*/*")
	assert.Equal(t, http.StatusFound, status)
	assert.True(t, strings.Contains(text, `href="/convo"`))
	_, text = send(t, http.MethodGet, address+Page+"/", "")
	assert.True(t, strings.Contains(text, "There is none."))
	status, _ = send(t, http.MethodGet, address+"/favicon.ico", "")
	assert.Equal(t, http.StatusNotFound, status)
	assert.Empty(t, s.Requests())

	list := []string{`{"role":"user","content":[{"type":"text","text":"<env>Linux</env>"},{"type":"text","text":"Read <b>all</b> files."}]}`}
	for i := range 45 {
		body := fmt.Sprintf(`{"model":"claude-x","max_tokens":100,"tools":[{"name":"read","input_schema":{"type":"object"}}],"messages":[%s]}`, strings.Join(list, ","))
		status, text = send(t, http.MethodPost, address+"/v1/messages", body, "User-Agent", "agent/1.0")
		require.Equal(t, http.StatusOK, status, text)
		list = append(list, fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"read","input":{}}]}`, i),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":%q}]}`, i, strings.Repeat("some words ", 60)))
	}
	_, text = send(t, http.MethodGet, address+Page, "")
	assert.True(t, strings.Contains(text, `<a href="?c=1"><bdi>Read &lt;b&gt;all&lt;/b&gt; files.</bdi></a>`))
	assert.True(t, strings.Contains(text, "agent/1.0 · claude-x · 45 requests · the last at "))
	assert.True(t, strings.Contains(text, " · answered 200<"))
	assert.True(t, strings.Contains(text, `<rect data-kind="results"`))
	_, text = send(t, http.MethodGet, address+Page+"?c=1", "")
	assert.True(t, strings.Contains(text, `<details id="c3"`), "there are three compactions")
	assert.True(t, strings.Contains(text, ">Anthropic<"))
	assert.False(t, strings.Contains(text, ">Gemini<"), "another format is not checked")
	assert.Contains(t, p.Summary()[0], "conversations: 1, requests: 45, compactions: ")

	// What is kept of conversations that are gone goes.
	p.shown["9"] = &shown{number: 9}
	p.forget(9 + mostBeginning)
	assert.Contains(t, p.shown, "9")
	p.forget(10 + mostBeginning)
	assert.NotContains(t, p.shown, "9")
	assert.Contains(t, p.shown, "1")
}

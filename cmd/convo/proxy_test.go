package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/cmd/convo/internal/cli"
	"github.com/seed-c1b73e60/convo/convotest/provider"
)

// key is a key that a program sends, which must be nowhere.
const key = "sk-planted-0123456789"

// agent is the program that the proxy starts: it reads files, one after the other, until the model
// is done, and ends with a code. It has no other way to the model than what its variables say.
func agent(code string) {
	list := []any{map[string]any{"role": "user", "content": "Read all files; never write into the folder vendor."}}
	for {
		body, _ := json.Marshal(map[string]any{"model": "made-up", "messages": list, "tools": []any{map[string]any{"type": "function", "function": map[string]any{"name": "read", "parameters": map[string]any{"type": "object"}}}}})
		req, _ := http.NewRequest(http.MethodPost, os.Getenv("OPENAI_BASE_URL")+"/chat/completions", bytes.NewReader(body))
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			fmt.Println("agent:", err)
			os.Exit(98)
		}
		data, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		var answer struct {
			Choices []struct{ Message json.RawMessage }
		}
		if json.Unmarshal(data, &answer) != nil || len(answer.Choices) == 0 {
			fmt.Printf("agent: %s: %s\n", resp.Status, data)
			os.Exit(99)
		}
		var m struct {
			ToolCalls []struct{ ID string } `json:"tool_calls"`
		}
		_ = json.Unmarshal(answer.Choices[0].Message, &m)
		if list = append(list, answer.Choices[0].Message); len(m.ToolCalls) == 0 {
			fmt.Println("agent: done")
			n, _ := strconv.Atoi(code)
			os.Exit(n)
		}
		for _, c := range m.ToolCalls {
			n := len(list) / 2
			list = append(list, map[string]any{"role": "tool", "tool_call_id": c.ID, "content": strings.Repeat(fmt.Sprintf("func f%d() { g() }\n", n), 60) + fmt.Sprintf("file number %d.", n)})
		}
	}
}

// files returns a provider whose model reads n files.
func files(window, n int) *provider.Server {
	return provider.New(provider.Options{Window: window, Answer: func(r provider.Request) provider.Answer {
		if bytes.Contains(r.Body, fmt.Appendf(nil, "file number %d.", n)) {
			return provider.Answer{Blocks: []provider.Block{provider.Text("done")}}
		}
		return provider.Answer{Blocks: []provider.Block{provider.Call{Name: "read", Arguments: `{}`}}}
	}})
}

// proxyCommand returns the program itself as a proxy, in its own process.
func proxyCommand(t *testing.T, upstream string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"proxy"}, args...)...)
	cmd.Env = append(os.Environ(), isProgram+"=1", "OPENAI_BASE_URL="+upstream+"/v1", "ANTHROPIC_BASE_URL="+upstream, "TMPDIR="+t.TempDir())
	return cmd
}

// A program that knows nothing of convo is refused by the provider, and with -compact it comes to
// its end. Its exit code is that of the command, and its key is nowhere.
func TestProxy_Program(t *testing.T) {
	for _, c := range []struct {
		args  string
		code  int
		after string
	}{
		{"", 99, "conversations: 1, requests: 19, compactions: 0, refused: 1\n"},
		{"-compact -window 6000", 7, "requests: 61, compactions: 6, refused: 0\n"},
		{"-compact", 7, "The window of the model is not known; name it with -window."}, // the refusal says that it is too long
	} {
		s := files(6000, 60)
		server := httptest.NewServer(s)
		defer server.Close()
		dir := t.TempDir()
		args := append(strings.Fields(c.args), "-log", filepath.Join(dir, "log"), "-store", filepath.Join(dir, "store"), "--", os.Args[0], agentName, "7")
		cmd := proxyCommand(t, server.URL, args...)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run()
		require.Equal(t, c.code, cmd.ProcessState.ExitCode(), "%s\n%s", &out, &errs)
		assert.Contains(t, errs.String(), "convo: the conversations are shown at http://127.0.0.1:")
		assert.Contains(t, errs.String(), c.after)
		assert.True(t, strings.HasPrefix(out.String(), "agent: "), "%s", &out)
		if c.code == 7 {
			assert.Equal(t, "agent: done\n", out.String())
			assert.Contains(t, string(s.Requests()[len(s.Requests())-1].Body), "never write into the folder vendor")
		}
		assert.Equal(t, "Bearer "+key, s.Requests()[0].Header.Get("Authorization"))
		assert.NotContains(t, errs.String(), key)
		var names []string
		require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			assert.NotContains(t, string(data), key, path)
			names = append(names, filepath.Base(filepath.Dir(path)))
			return err
		}))
		assert.Equal(t, strings.Contains(c.args, "-compact"), slices.Contains(names, "store"))
	}
}

// The port of the default may be in use if a program is started, and an interrupt is the program's.
func TestProxy_Interrupt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no SIGINT")
	}
	if l, err := net.Listen("tcp", proxyAddress); err == nil {
		defer l.Close() // else another process has it
	}
	asked, release := make(chan struct{}), make(chan struct{})
	s := files(0, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(s.Requests()) == 0 {
			close(asked)
			<-release
		}
		s.ServeHTTP(w, r)
	}))
	defer server.Close()
	cmd := proxyCommand(t, server.URL, "--", os.Args[0], agentName, "5")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Start())
	<-asked
	for range 3 {
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
	}
	close(release)
	_ = cmd.Wait()
	assert.Equal(t, 5, cmd.ProcessState.ExitCode(), "%s\n%s", &out, &errs)
	assert.NotContains(t, errs.String(), proxyAddress+"/")
	assert.Contains(t, errs.String(), "requests: 2, ")
	assert.NotContains(t, errs.String(), "the log is", "it is empty")
}

// Alone, an interrupt ends the proxy with the requests under way.
func TestProxy_Alone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no SIGINT")
	}
	asked, gone := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "data: x\n\n")
		w.(http.Flusher).Flush()
		close(asked)
		<-r.Context().Done()
		close(gone)
	}))
	defer server.Close()
	cmd := proxyCommand(t, server.URL, "-listen", ":0")
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(stderr)
	first, err := lines.ReadString('\n')
	require.NoError(t, err)
	page := regexp.MustCompile(`http://127\.0\.0\.1:\d+/convo`).FindString(first)
	require.NotEmpty(t, page, first)
	resp, err := http.Post(strings.TrimSuffix(page, "/convo")+"/v1/messages", "application/json", strings.NewReader(`{"messages":[{"role":"user","content":"q"}]}`))
	require.NoError(t, err)
	<-asked
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	_, err = io.Copy(io.Discard, resp.Body)
	require.Error(t, err, "the answer is cut off")
	<-gone
	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait(), "%s", rest)
	assert.Contains(t, string(rest), "ANTHROPIC_BASE_URL="+strings.TrimSuffix(page, "/convo")+"\n")
	assert.Contains(t, string(rest), "requests: 1,")
}

// What is wrong with the command line is said, and nothing is started.
func TestProxy_Misused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	for args, want := range map[string]string{
		"qwen":                                 "write -- before the program: convo proxy -- qwen",
		"--":                                   "name the program after --",
		"-window -5":                           "want a number above 0",
		"-listen nowhere":                      "-listen nowhere: want an address such as 127.0.0.1:4141",
		"-listen example.com:80":               "want the number of an interface",
		"-listen " + l.Addr().String():         "address already in use",
		"-listen :0 -upstream gemini":          "-upstream gemini: want an address such as",
		"-listen :0 -upstream x=https://x.com": `-upstream: there is no format "x"; want openai or one of anthropic, gemini, openai-chat, openai-responses`,
		"-listen :0 -upstream openai=https://u:" + key + "@x.com/": "without a user and a query",
	} {
		code, stdout, stderr := runs(strings.NewReader(""), append([]string{"proxy"}, strings.Fields(args)...)...)
		assert.Equal(t, cli.Usage, code, args)
		assert.Empty(t, stdout, args)
		assert.Contains(t, stderr, want, args)
		assert.NotContains(t, stderr, key)
	}
	code, _, stderr := runs(strings.NewReader(""), "proxy", "-listen", ":0", "--", "./no-such-folder/pi")
	assert.Equal(t, notFound, code)
	assert.Contains(t, stderr, "the program cannot be started")
	assert.Regexp(t, `~/\.pi/agent/models\.json\n  \{"providers": \{"anthropic": \{"baseUrl": "http://127\.0\.0\.1:\d+"\},`, stderr)
	assert.NotContains(t, stderr, "everyone")
	_, _, stderr = runs(strings.NewReader(""), "proxy", "-compact", "-listen", "0.0.0.0:0", "--", "./no-such-program")
	assert.Contains(t, stderr, "everyone who reaches ")
	assert.NotContains(t, stderr, "nothing is changed")
}

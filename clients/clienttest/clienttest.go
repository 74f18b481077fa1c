// Package clienttest tests a sender for an SDK against package provider. The module of each
// client runs it.
package clienttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/wire"
)

// A Client is what is tested.
type Client struct {
	// New returns a sender whose requests go to a URL. With own, its parameters have a tool
	// of that name.
	New func(url string, show func(wire.Delta), own string) Sender

	// Strict returns a sender whose parameters limit the output to 1,024 tokens and have stop
	// sequences, and where the format has them, the number of answers, 1, and that these are stored. With
	// schema, they also have the schema of an answer.
	Strict func(url string, schema bool) Sender

	// Retrying returns a sender whose client tries a request again that has failed. Nil: the
	// SDK has no retries.
	Retrying func(url string) Sender

	// Marked returns a sender whose parameters have a tool with a cache mark for each of the
	// lifetimes. Nil: the parameters of the SDK have no cache marks.
	Marked func(url string, lifetimes []time.Duration) Sender

	// Extra returns a sender whose parameters have fields for which the SDK has no types, or
	// with override, are one JSON object of these fields. Nil: the SDK has no such fields.
	Extra func(url string, fields map[string]any, override bool) Sender

	CacheTTL time.Duration // that its replies have

	Small string // another model than that of the parameters

	Signs bool // its answers have signed reasoning

	Row string // the name of its row in the README of clients
}

// A Sender is what each module has.
type Sender interface {
	Send(context.Context, *convo.Snapshot) (convo.Reply, error)
	Summarizer(model string) convo.Summarizer
}

// A Figures says how a run went.
type Figures struct {
	Requests, Compactions, Refusals int
	Input, Cached                   int // tokens

	typed int // messages while a tool worked
}

// String returns the figures in a line.
func (f Figures) String() string {
	return fmt.Sprintf("%d requests, %d compactions, %d refusals, %d tokens, %d of them from the cache", f.Requests, f.Compactions, f.Refusals, f.Input, f.Cached)
}

// window is the window of the long run, for the provider and the History.
const window = 6_000

// Run runs all tests.
func Run(t *testing.T, c Client) {
	t.Run("Stream", func(t *testing.T) { testStream(t, c) })
	t.Run("Stop", func(t *testing.T) { testStop(t, c) })
	t.Run("Broken", func(t *testing.T) { testBroken(t, c) })
	t.Run("Overflow", func(t *testing.T) { testOverflow(t, c) })
	t.Run("Slow", func(t *testing.T) { testSlow(t, c) })
	t.Run("Usage", func(t *testing.T) { testUsage(t, c) })
	t.Run("Agent", func(t *testing.T) { testAgent(t, c) })
	t.Run("Summarizer", func(t *testing.T) { testSummarizer(t, c) })
	t.Run("Strict", func(t *testing.T) { testStrict(t, c) })
	t.Run("Paused", func(t *testing.T) { testPaused(t, c) })
	t.Run("OwnTool", func(t *testing.T) { testOwnTool(t, c) })
	t.Run("Retries", func(t *testing.T) { testRetries(t, c) })
	t.Run("EachEvent", func(t *testing.T) { testEachEvent(t, c) })
	t.Run("OwnToolInRun", func(t *testing.T) { testOwnToolInRun(t, c) })
	t.Run("SameTool", func(t *testing.T) { testSameTool(t, c) })
	t.Run("CacheMarks", func(t *testing.T) { testCacheMarks(t, c) })
	t.Run("CacheTTL", func(t *testing.T) { testCacheTTL(t, c) })
	t.Run("Extra", func(t *testing.T) { testExtra(t, c) })
	t.Run("Plain", func(t *testing.T) { testPlain(t, c) })
	t.Run("Refused", func(t *testing.T) { testRefused(t, c) })
	t.Run("Healed", func(t *testing.T) { testHealed(t, c) })
	t.Run("Framings", func(t *testing.T) { testFramings(t, c) })
	t.Run("Open", func(t *testing.T) { testOpen(t, c) })
	t.Run("ErrorAfterContent", func(t *testing.T) { testErrorAfterContent(t, c) })
	t.Run("StopInRun", func(t *testing.T) { testStopInRun(t, c) })
	t.Run("Encodes", func(t *testing.T) { testEncodes(t, c) })
	t.Run("AtOnce", func(t *testing.T) { testAtOnce(t, c) })
	t.Run("SeveralHistories", func(t *testing.T) { testSeveralHistories(t, c) })
}

// testAgent runs an agent, and compares its figures with those of the README.
func testAgent(t *testing.T, c Client) {
	f := Agent(t, c, 100)
	t.Log(f)
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	row := fmt.Sprintf("| %s | %d | %d | %d | %d | %d %% |", c.Row, f.Requests, f.Compactions, f.Refusals, (f.Input+500)/1000, (100*f.Cached+f.Input/2)/f.Input)
	if !strings.Contains(string(page), row) {
		t.Errorf("the README of clients lacks the row %s", row)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(example), "\nfunc agent(")
	body, _, _ = strings.Cut(body, "\n}\n")
	lines, own, inTool := 0, 0, false
	for line := range strings.Lines(body) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		lines++
		inTool = inTool || strings.HasPrefix(line, "\tweather := ")
		if !inTool && namesConvo.MatchString(line) {
			own++
		}
		inTool = inTool && line != "\t}\n"
	}
	lines++ // the bracket at the end
	if want := fmt.Sprintf("| %d lines, %d of them convo's |", lines, own); !strings.Contains(string(page), want) || lines > 40 {
		t.Errorf("the README of clients lacks %q", want)
	}
	if own == 0 || own > 8 {
		t.Errorf("%d lines of the agent are convo's, want at most 8", own)
	}
}

// namesConvo matches a line of the agent that names convo, the client or the History.
var namesConvo = regexp.MustCompile(`\b(convo\w*|wire|sender|h)\.`)

func serve(t testing.TB, h http.Handler) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func history(t testing.TB, opts convo.Options) *convo.History {
	h, err := convo.New(&opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.SetSystem(convo.System(system)); err != nil {
		t.Fatal(err)
	}
	return h
}

// testStream sends one request and reads the answer.
func testStream(t *testing.T, c Client) {
	p := provider.New(provider.Options{})
	blocks := []provider.Block{provider.Text("I read, and find: \"1 < 2\"."), provider.Call{Name: "read", Arguments: `{"line":1.0,"n":12345678901234567890}`}}
	if c.Signs {
		blocks = append([]provider.Block{provider.Thinking("which file?")}, blocks...)
	}
	p.Script(provider.Answer{Blocks: blocks}, provider.Answer{Blocks: []provider.Block{provider.Text("done")}})
	var shown strings.Builder
	send := c.New(serve(t, p), func(d wire.Delta) { shown.WriteString(d.Text) }, "").Send
	h := history(t, convo.Options{})
	if _, err := h.Append(convo.User("Read <a> & \u2028.")); err != nil {
		t.Fatal(err)
	}
	ran := ""
	reply, err := h.Run(t.Context(), send, convo.RunOptions{Tools: []convo.Handler{{
		Tool: convo.Tool{Name: "read", Schema: `{"type":"object","properties":{"line":{"type":"number","minimum":1.0}}}`},
		Run: func(_ context.Context, call convo.ToolCall) ([]convo.Part, error) {
			ran = call.Arguments
			return []convo.Part{convo.Text("content")}, nil
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := shown.String(); got != "I read, and find: \"1 < 2\".done" || reply.Text() != "done" {
		t.Errorf("shown is %q, and the text of the reply %q", got, reply.Text())
	}
	if want := `{"line":1.0,"n":12345678901234567890}`; ran != want {
		t.Errorf("arguments %s, want %s", ran, want)
	}
	if reply.Usage.Input == 0 || reply.Usage.Output == 0 {
		t.Errorf("the usage of the answer is %+v, want figures for Input and Output", reply.Usage)
	}
	noneRefused(t, p)
	body := string(p.Requests()[1].Body)
	for _, raw := range []string{"<&>", "Read <a> & ", `"minimum":1.0`, "content"} {
		if !strings.Contains(body, raw) {
			t.Errorf("the request lacks %q as raw bytes: %s", raw, excerpt(body))
		}
	}
}

// testStop stops an answer after its first piece, which is kept.
func testStop(t *testing.T, c Client) {
	p := provider.New(provider.Options{Answer: func(provider.Request) provider.Answer {
		return provider.Answer{Blocks: []provider.Block{provider.Text(strings.Repeat("word ", 4000))}}
	}})
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.ServeHTTP(&firstHalf{ResponseWriter: w, wait: r.Context().Done()}, r)
	})
	send := c.New(serve(t, slow), func(d wire.Delta) {
		if d.Text != "" {
			stop(clients.ErrStop)
		}
	}, "").Send
	h := history(t, convo.Options{})
	if _, err := h.Append(convo.User("Count.")); err != nil {
		t.Fatal(err)
	}
	reply, err := h.Do(ctx, send)
	if err != nil || !strings.HasPrefix(reply.Text(), "word") {
		t.Fatalf("the answer that was stopped is %v, want its first words: %v", reply, err)
	}
	if e, _ := h.Snapshot().At(h.Len() - 1); e.Message.Role != convo.RoleAssistant {
		t.Errorf("the newest entry is %v", e)
	}
}

// A firstHalf writes the beginning of an answer, and then waits until the client has gone.
type firstHalf struct {
	http.ResponseWriter
	wait    <-chan struct{}
	written int
}

func (f *firstHalf) Write(b []byte) (int, error) {
	if f.written += len(b); f.written > 9_000 {
		f.Flush()
		<-f.wait
	}
	return f.ResponseWriter.Write(b)
}

func (f *firstHalf) Flush() {
	if w, ok := f.ResponseWriter.(http.Flusher); ok {
		w.Flush()
	}
}

// testBroken cuts a stream off. The answer is an error, and nothing of it is kept.
func testBroken(t *testing.T, c Client) {
	p := provider.New(provider.Options{Answer: func(provider.Request) provider.Answer {
		return provider.Answer{Blocks: []provider.Block{provider.Text(strings.Repeat("word ", 4000))}}
	}})
	cut := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.ServeHTTP(&cutOff{ResponseWriter: w}, r)
	})
	send := c.New(serve(t, cut), nil, "").Send
	h := history(t, convo.Options{})
	if _, err := h.Append(convo.User("Count.")); err != nil {
		t.Fatal(err)
	}
	before := h.Len()
	reply, err := h.Do(t.Context(), send)
	if err == nil {
		t.Fatalf("no error, and %v", reply)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "the stream") {
		t.Errorf("the error is %v, want one that says that the stream broke off", err)
	}
	if h.Len() != before {
		t.Error("a part of a broken answer was kept")
	}
}

// A cutOff ends the connection after some bytes.
type cutOff struct {
	http.ResponseWriter
	written int
}

func (f *cutOff) Write(b []byte) (int, error) {
	if f.written += len(b); f.written > 9_000 {
		panic(http.ErrAbortHandler)
	}
	return f.ResponseWriter.Write(b)
}

func (f *cutOff) Flush() {
	if w, ok := f.ResponseWriter.(http.Flusher); ok {
		w.Flush()
	}
}

// testSlow waits for the first byte. If ctx ends before, by a cancel or by its deadline, the
// error matches ctx's error and its cause, and nothing is kept. Otherwise the answer comes.
func testSlow(t *testing.T, c Client) {
	why := errors.New("the user left")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var never atomic.Bool // the answer
	never.Store(true)
	p := provider.New(provider.Options{Answer: func(provider.Request) provider.Answer {
		a := provider.Answer{Blocks: []provider.Block{provider.Text("at last")}, Fault: &provider.Fault{Wait: 50 * time.Millisecond}}
		if never.Load() {
			a.Fault.Wait = time.Hour
			cancel(why)
		}
		return a
	}})
	send := c.New(serve(t, p), nil, "").Send
	h := history(t, convo.Options{})
	if _, err := h.Append(convo.User("Count.")); err != nil {
		t.Fatal(err)
	}
	before := h.Len()
	if reply, err := h.Do(ctx, send); !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
		t.Errorf("%v, %v, want the error of ctx and its cause", reply, err)
	}
	late, end := context.WithDeadlineCause(t.Context(), time.Now().Add(100*time.Millisecond), why)
	defer end()
	never.Store(true)
	if reply, err := h.Do(late, send); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, why) {
		t.Errorf("%v, %v, want the error of ctx and its cause", reply, err)
	}
	never.Store(false)
	if h.Len() != before {
		t.Error("a part of an answer that never came was kept")
	}
	if reply, err := h.Do(t.Context(), send); err != nil || reply.Text() != "at last" {
		t.Errorf("%v, %v", reply, err)
	}
}

// wrongUsage are figures that no request has.
var wrongUsage = map[string]provider.Usage{
	"zero":                   {},
	"input less than cached": {Input: 5, CacheRead: 4_000, CacheWrite: 3_000, Output: 3},
	"larger than the window": {Input: 100 * window, CacheRead: 50 * window, Output: 90 * window},
	"too large":              {Input: math.MaxInt, CacheRead: math.MaxInt, Output: math.MaxInt},
	"negative":               {Input: -7, CacheRead: -5, CacheWrite: -3, Output: -1},
	"all from the cache":     {Input: 100, CacheRead: 100, Output: 1},
}

// testUsage has the provider report wrong figures from the fifth answer on. The conversation goes
// on, and what is pinned stays.
func testUsage(t *testing.T, c Client) {
	for name, usage := range wrongUsage {
		t.Run(name, func(t *testing.T) {
			asked := 0
			p := provider.New(provider.Options{Window: window, Answer: func(provider.Request) provider.Answer {
				asked++
				a := answer(asked, c.Signs)
				if asked >= 5 {
					a.Usage = &usage
				}
				return a
			}})
			send := c.New(serve(t, p), nil, "").Send
			h := history(t, convo.Options{Limits: convo.Limits{Window: window, Reserve: window / 8}, TagKey: "clienttest", PinFirstUser: true})
			if _, err := h.Append(convo.User(rule)); err != nil {
				t.Fatal(err)
			}
			var reply convo.Reply
			for turn := range 15 {
				var err error
				if reply, err = h.Run(t.Context(), send, convo.RunOptions{Tools: []convo.Handler{readTool()}}); err != nil {
					t.Fatalf("turn %d: %v", turn, err)
				}
				if _, err := h.Append(convo.User(fmt.Sprint("Question ", turn, "."))); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("%d requests, %d refused, %d entries and %d tokens at the end; the newest answer says %+v", len(p.Requests()), len(p.Refused()), h.Len(), h.Status().Tokens, reply.Usage)
			if body := string(p.Requests()[len(p.Requests())-1].Body); !strings.Contains(body, "only window seats") {
				t.Errorf("the rule is not in the last request: %s", excerpt(body))
			}
			if s := h.Status(); s.Tokens <= 0 || s.Tokens > window {
				t.Errorf("the view has %d tokens, want some, and at most the window of %d", s.Tokens, window)
			}
		})
	}
}

// testOverflow has the provider refuse what the History thinks will fit.
func testOverflow(t *testing.T, c Client) {
	p := provider.New(provider.Options{Window: 2_000})
	h := history(t, convo.Options{Limits: convo.Limits{Window: 100_000}})
	for i := range 100 {
		if _, err := h.Append(convo.User(fmt.Sprint("Question ", i, strings.Repeat(" word", 20))), convo.Assistant("Answer.")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Append(convo.User("The newest question.")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Do(t.Context(), c.New(serve(t, p), nil, "").Send); err != nil {
		t.Fatalf("the overflow was not recognised: %v", err)
	}
	if len(p.Refused()) == 0 || !strings.Contains(string(p.Requests()[len(p.Requests())-1].Body), "The newest question.") {
		t.Error("the request was not made smaller, or lost the newest question")
	}
}

// faults are what goes wrong in forty answers: outages, streams that break off, also within the
// call of a tool that the provider runs, and an event of an unknown type.
var faults = map[int]*provider.Fault{
	7: {Status: http.StatusTooManyRequests}, 13: {CutAfter: 4}, 17: {Status: 529}, 20: {CutAfter: 9}, 25: {CutAfter: 5}, 30: {CutAfter: 12},
	31: {Status: http.StatusServiceUnavailable}, 33: {Foreign: `{"type":"surprise"}`}, 36: {Status: http.StatusInternalServerError},
}

// system is the system text of the agents.
const system = "You read files. <&>"

// rule is what the user says first.
const rule = "The rule: only window seats. Begin."

// answer returns an answer of the model.
func answer(asked int, signs bool) provider.Answer {
	blocks := []provider.Block{provider.Text(fmt.Sprint("Answer ", asked, strings.Repeat(" and so on", 10)))}
	for i := range asked % 3 {
		blocks = append(blocks, provider.Call{Name: "read", Arguments: fmt.Sprintf(`{"file":"f%d","line":%d.0}`, asked, i)})
	}
	if asked%5 == 0 {
		blocks = append([]provider.Block{provider.Served{Name: "web_search", Input: `{"query":"q"}`, Result: `[]`}}, blocks...)
	}
	if signs {
		blocks = append([]provider.Block{provider.Thinking(fmt.Sprint("thought ", asked))}, blocks...)
	}
	return provider.Answer{Blocks: blocks}
}

// readTool is a tool with long results.
func readTool() convo.Handler {
	return convo.Handler{
		Tool: convo.Tool{Name: "read", Description: "reads a file", Schema: `{"type":"object","properties":{"file":{"type":"string"}}}`},
		Run: func(_ context.Context, call convo.ToolCall) ([]convo.Part, error) {
			return []convo.Part{convo.Text(result(call))}, nil
		},
	}
}

func result(call convo.ToolCall) string {
	return call.Arguments + strings.Repeat(" line of the file", 20)
}

// other returns a Send for another format of the same server, without an SDK.
func other(url string) convo.Send {
	return func(ctx context.Context, s *convo.Snapshot) (convo.Reply, error) {
		format := wire.OpenAIChat{Model: s.Model()}
		req, err := format.Encode(s)
		if err != nil {
			return convo.Reply{}, err
		}
		body, err := req.With(map[string]any{"model": format.Model})
		if err != nil {
			return convo.Reply{}, err
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", bytes.NewReader(body))
		if err != nil {
			return convo.Reply{}, err
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return convo.Reply{}, err
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			return convo.Reply{}, err
		}
		in, err := format.Decode(answer)
		return in.Reply(), err
	}
}

// Agent runs an agent of many turns in a small window, with parallel calls, a pin, messages
// that the user types while a tool works, a tool of the provider, failed requests, streams that
// break off, restarts from a snapshot and from rows, and another provider now and then. No
// request may be refused, and each must have what is pinned, the newest question, and what
// was typed since.
func Agent(t testing.TB, c Client, turns int) Figures {
	var figures Figures
	asked := 0
	p := provider.New(provider.Options{Window: window, Answer: func(r provider.Request) provider.Answer {
		asked++
		a := answer(asked, c.Signs)
		a.Fault = faults[asked%40]
		return a
	}})
	url := serve(t, p)
	app := &rows{opts: convo.Options{
		Limits: convo.Limits{Window: window, Reserve: window / 8}, TagKey: "clienttest", PinFirstUser: true,
		OnCompaction: func(r convo.Report) {
			if r.Outcome == convo.OutcomeApplied && r.Reason != convo.ReasonAppend {
				figures.Compactions++
			}
		},
	}}
	app.opts.Key = func(convo.Message) string { return app.newKey() }
	h := history(t, app.opts)
	typed, since := "", 0 // what the user types in this turn, and the first request after it
	read := readTool()
	run := read.Run
	var turn int
	var typing sync.Mutex // calls run at the same time
	read.Run = func(ctx context.Context, call convo.ToolCall) ([]convo.Part, error) {
		typing.Lock()
		defer typing.Unlock()
		if turn%7 == 3 && typed == "" {
			typed, since = fmt.Sprint("Typed in turn ", turn, "."), len(p.Requests())
			app.typed = convo.Message{Role: convo.RoleUser, Parts: []convo.Part{convo.Text(typed)}, Key: app.newKey()}
			if err := h.Queue(app.typed); err != nil {
				return nil, err
			}
		}
		return run(ctx, call)
	}
	question := rule
	app.append(t, h, question)
	own := c.New(url, nil, "").Send
	for turn = range turns {
		send, model := own, ""
		if turn%30 >= 25 { // the conversation goes to another provider for a while
			send, model = other(url), "mistral-large"
		}
		if err := h.SetModel(model, app.opts.Limits); err != nil {
			t.Fatal(err)
		}
		before := len(p.Requests())
		typed, since = "", 0
		for try := 0; ; try++ {
			var failed error
			for reply, err := range h.Steps(t.Context(), send, convo.RunOptions{Tools: []convo.Handler{read}, Parallel: 2}) {
				app.add(h, reply)
				figures.Input, figures.Cached = figures.Input+reply.Usage.Input, figures.Cached+reply.Usage.CacheRead
				failed = err
			}
			if failed == nil {
				break
			}
			if try > 3 {
				t.Fatalf("turn %d: %v", turn, failed)
			}
		}
		for i, r := range p.Requests()[before:] {
			wants := []string{rule, question}
			if typed != "" && before+i >= since {
				wants = append(wants, typed)
			}
			for _, text := range wants {
				if !strings.Contains(string(r.Body), text) {
					t.Fatalf("turn %d: a request has lost %q: %s", turn, text, excerpt(string(r.Body)))
				}
			}
		}
		figures.typed += min(since, 1)
		if turn%20 == 19 { // the program starts again
			h = app.restart(t, h, turn%40 == 39)
		}
		question = fmt.Sprint("Question ", turn, ".")
		app.append(t, h, question)
	}
	figures.Requests, figures.Refusals = len(p.Requests()), len(p.Refused())
	noneRefused(t, p)
	if figures.Compactions == 0 || turns >= 40 && figures.typed == 0 {
		t.Errorf("%d compactions, and %d messages typed while a tool worked, want some of each", figures.Compactions, figures.typed)
	}
	return figures
}

// rows stands for an application with a table of its messages.
type rows struct {
	opts  convo.Options
	rows  []convo.Message
	keys  int
	typed convo.Message // is not in the table yet, if it has a key
}

func (a *rows) newKey() string {
	a.keys++
	return fmt.Sprint("row-", a.keys)
}

// append appends a question, which becomes a row.
func (a *rows) append(t testing.TB, h *convo.History, text string) {
	m := convo.User(text)
	m.Key = a.newKey()
	if _, err := h.Append(m); err != nil {
		t.Fatal(err)
	}
	a.rows = append(a.rows, m)
}

// add adds the messages of a step, and what was typed as soon as it is delivered.
func (a *rows) add(h *convo.History, step convo.Reply) {
	a.rows = append(a.rows, step.Messages[:len(step.IDs)]...)
	if a.typed.Key != "" && h.Status().Queued == 0 {
		a.rows = append(a.rows, a.typed)
		a.typed = convo.Message{}
	}
}

// restart returns the History of a new process, made of a snapshot, or of the rows and what
// was decided. The next request is the same.
func (a *rows) restart(t testing.TB, h *convo.History, fromRows bool) *convo.History {
	t.Helper()
	was := h.Snapshot()
	again, err := a.reopen(h, fromRows)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.SetTools(was.Tools()...); err != nil {
		t.Fatal(err)
	}
	now := again.Snapshot()
	if got, want := now.Messages(), was.Messages(); !reflect.DeepEqual(got, want) || now.Tokens() != was.Tokens() {
		t.Fatalf("after a restart, from rows: %t, the view is %v, want %v", fromRows, got, want)
	}
	return again
}

func (a *rows) reopen(h *convo.History, fromRows bool) (*convo.History, error) {
	if !fromRows {
		data, err := h.Snapshot().MarshalJSON()
		if err != nil {
			return nil, err
		}
		var s convo.Snapshot
		if err := s.UnmarshalJSON(data); err != nil {
			return nil, err
		}
		return convo.Restore(&s, &a.opts)
	}
	data, err := h.Decisions()
	if err != nil {
		return nil, err
	}
	d, err := convo.ReadDecisions(data)
	if err != nil {
		return nil, err
	}
	keys, from := d.Needs()
	again, err := convo.Resume(d, func(yield func(convo.Message, error) bool) {
		begun := from == ""
		for _, m := range a.rows {
			begun = begun || m.Key == from
			if (begun || slices.Contains(keys, m.Key)) && !yield(m, nil) {
				return
			}
		}
	}, &a.opts)
	if err != nil {
		return nil, err
	}
	return again, again.SetSystem(convo.System(system))
}

// testRetries has the SDK try again, with the whole request.
func testRetries(t *testing.T, c Client) {
	if c.Retrying == nil {
		t.Skip("the SDK has no retries")
	}
	p := provider.New(provider.Options{})
	failed := provider.Answer{Fault: &provider.Fault{Status: http.StatusServiceUnavailable}}
	p.Script(failed, provider.Answer{Blocks: []provider.Block{provider.Text("at last")}})
	h := history(t, convo.Options{})
	if _, err := h.Append(convo.User("<Count>.")); err != nil {
		t.Fatal(err)
	}
	reply, err := h.Do(t.Context(), c.Retrying(serve(t, p)).Send)
	if err != nil || reply.Text() != "at last" {
		t.Fatalf("%v, %v", reply, err)
	}
	requests := p.Requests()
	if len(requests) != 2 || string(requests[0].Body) != string(requests[1].Body) || !strings.Contains(string(requests[0].Body), "<Count>.") {
		t.Errorf("%d requests, want the same one twice", len(requests))
		for _, r := range requests {
			t.Log(excerpt(string(r.Body)))
		}
	}
}

package clienttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/wire"
)

// testPlain has a server answer with the status 200 and no event stream: with an error, with a
// whole answer, with a page, or with an error in an event without a name. What the provider
// says is read.
func testPlain(t *testing.T, c Client) {
	for _, kind := range []string{"application/json", "text/event-stream", ""} {
		// served serves what edit makes of each answer of p, which is no stream.
		served := func(t *testing.T, p *provider.Server, edit func(body string) string) (url string, asked *int) {
			asked = new(int)
			return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				*asked++
				answer := httptest.NewRecorder()
				p.ServeHTTP(answer, unstreamed(t, r))
				w.Header()["Content-Type"] = []string{kind}
				if kind == "" {
					w.Header()["Content-Type"] = nil
				}
				_, _ = io.WriteString(w, edit(answer.Body.String())) // the client may be gone
			})), asked
		}
		same := func(body string) string { return body }
		spaced := func(body string) string { return "\n\n  " + body + "\n" }
		unnamed := func(body string) string {
			if strings.HasPrefix(body, `{"error"`) || strings.HasPrefix(body, `{"type":"error"`) {
				return "data: " + body + "\n\n"
			}
			return body
		}
		for name, edit := range map[string]func(string) string{"": same, "after space": spaced, "in an event without a name": unnamed} {
			t.Run(fmt.Sprint("overflow ", name, " as ", kind), func(t *testing.T) {
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
				url, _ := served(t, p, edit)
				if reply, err := h.Do(t.Context(), c.New(url, nil, "").Send); err != nil || reply.Text() != "ok" || len(p.Refused()) == 0 {
					t.Errorf("%v, %v after %d refused requests, want the answer after an overflow", reply, err, len(p.Refused()))
				}
			})
		}
		t.Run("whole answer as "+kind, func(t *testing.T) {
			p := provider.New(provider.Options{})
			p.Script(twoCalls(c.Signs))
			h := history(t, convo.Options{})
			if _, err := h.Append(convo.User("Read both files.")); err != nil {
				t.Fatal(err)
			}
			url, _ := served(t, p, spaced)
			reply, err := h.Run(t.Context(), c.New(url, nil, "").Send, convo.RunOptions{Tools: []convo.Handler{readTool()}})
			if err != nil || reply.Text() != "ok" || reply.Usage.Input == 0 || len(p.Requests()) != 2 {
				t.Errorf("%v, %v, usage %v", reply, err, reply.Usage)
			}
			noneRefused(t, p)
		})
		for _, page := range []string{"<!DOCTYPE html><title>Log in</title>", "Bad gateway: no upstream"} {
			t.Run(page[:3]+" as "+kind, func(t *testing.T) {
				url, asked := served(t, provider.New(provider.Options{}), func(string) string { return page })
				h := history(t, convo.Options{})
				if _, err := h.Append(convo.User("q")); err != nil {
					t.Fatal(err)
				}
				_, err := h.Do(t.Context(), c.New(url, nil, "").Send)
				isOpen := kind == "text/event-stream" && page[0] != '<' // the SDK reads a stream of no events
				if err == nil || !isOpen && !strings.Contains(err.Error(), page[:10]) || *asked != 1 {
					t.Errorf("%d requests, and the error is %v, want one that shows %q", *asked, err, page)
				}
			})
		}
	}
}

// testUnnamed takes the names of the events from a stream. It is read as it is with them.
func testUnnamed(t *testing.T, c Client) {
	p := provider.New(provider.Options{})
	p.Script(twoCalls(c.Signs))
	h := history(t, convo.Options{})
	if _, err := h.Append(convo.User("Read both files.")); err != nil {
		t.Fatal(err)
	}
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		p.ServeHTTP(answer, r)
		w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
		for line := range strings.Lines(answer.Body.String()) {
			if !strings.HasPrefix(line, "event: ") {
				_, _ = io.WriteString(w, line) // the client may be gone
			}
		}
	}))
	reply, err := h.Run(t.Context(), c.New(url, nil, "").Send, convo.RunOptions{Tools: []convo.Handler{readTool()}})
	if err != nil || reply.Text() != "ok" || len(p.Requests()) != 2 {
		t.Errorf("%v, %v", reply, err)
	}
	noneRefused(t, p)
}

// testOverflowAfterContent has the provider report an overflow after a piece of the answer. Do
// sends the request again, and Show is told to discard the piece.
func testOverflowAfterContent(t *testing.T, c Client) {
	p := provider.New(provider.Options{})
	first := provider.Answer{Blocks: []provider.Block{provider.Text("Half an answer.")}}
	const overflow = `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 3000 tokens > 2000 maximum"}}`
	p.Script(first, first)
	asked, failed := 0, false
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked > 1 {
			p.ServeHTTP(w, r)
			return
		}
		if failed = !strings.Contains(r.URL.Path, "/converse"); !failed { // whose frames are binary
			p.ServeHTTP(w, r)
			return
		}
		p.ServeHTTP(&failing{ResponseWriter: w, text: "event: error\ndata: " + overflow + "\n\n"}, r)
	}))
	h := history(t, convo.Options{Limits: convo.Limits{Window: 100_000}})
	for i := range 100 {
		if _, err := h.Append(convo.User(fmt.Sprint("Question ", i, strings.Repeat(" word", 20))), convo.Assistant("Answer.")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Append(convo.User("The newest question.")); err != nil {
		t.Fatal(err)
	}
	shown, restarts := "", 0
	reply, err := h.Do(t.Context(), c.New(url, func(d wire.Delta) {
		if d.Restart {
			shown = ""
			restarts++
		}
		shown += d.Text
	}, "").Send)
	if err != nil || shown != "Half an answer." || reply.Text() != shown || failed != (restarts == 1) || failed != (asked == 2) {
		t.Errorf("%v, %v; shown is %q after %d restarts and %d requests", reply, err, shown, restarts, asked)
	}
}

// A failing writes a text after the first piece of an answer, and nothing more.
type failing struct {
	http.ResponseWriter
	text string
	done bool
}

func (f *failing) Write(b []byte) (int, error) {
	if f.done {
		return len(b), nil
	}
	n, err := f.ResponseWriter.Write(b)
	if bytes.Contains(b, []byte("Half")) {
		f.done = true
		_, _ = io.WriteString(f.ResponseWriter, f.text) // the client may be gone
	}
	return n, err
}

func (f *failing) Flush() { f.ResponseWriter.(http.Flusher).Flush() }

// unstreamed returns a request that asks for no stream.
func unstreamed(t *testing.T, r *http.Request) *http.Request {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		t.Error(err)
	}
	delete(all, "stream")
	delete(all, "stream_options")
	if data, err = json.Marshal(all); err != nil {
		t.Error(err)
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(data))
	r.URL.Path = strings.NewReplacer(":streamGenerateContent", ":generateContent", "/converse-stream", "/converse").Replace(r.URL.Path)
	r.URL.RawPath = ""
	r.URL.RawQuery = ""
	return r
}

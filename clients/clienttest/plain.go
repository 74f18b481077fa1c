package clienttest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

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
		inEvent := func(body string) string {
			if strings.HasPrefix(body, `{"error"`) || strings.HasPrefix(body, `{"type":"error"`) {
				return "data: " + body + "\n\n"
			}
			return body
		}
		for name, edit := range map[string]func(string) string{"": same, "after space": spaced, "in an event without a name": inEvent} {
			t.Run(fmt.Sprint("overflow ", name, " as ", kind), func(t *testing.T) {
				p := provider.New(provider.Options{Window: 2_000})
				h := long(t, 100_000)
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

// framings write the events of a stream in other ways that the standard of server-sent events
// allows, or that servers have.
var framings = map[string]func(string) string{
	"unnamed":             unnamed,
	"names that are none": func(s string) string { return strings.ReplaceAll("\n"+unnamed(s), "\ndata: {", "\nevent:\ndata: {") },
	"two lines of data":   func(s string) string { return strings.ReplaceAll("\n"+unnamed(s), "\ndata: {", "\ndata: {\ndata: ") },
	"CR":                  func(s string) string { return strings.ReplaceAll(s, "\n", "\r") },
	"CR and LF":           func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
	"events without data": func(s string) string { return strings.ReplaceAll(s, "\n\n", "\n\ndata:\n\nid: 1\ndata: \n\n") },
}

func unnamed(s string) (out string) {
	for line := range strings.Lines(s) {
		if !strings.HasPrefix(line, "event: ") {
			out += line
		}
	}
	return out
}

// testFramings changes how the events of a stream are written. It is read as it is without.
func testFramings(t *testing.T, c Client) {
	for name, edit := range framings {
		t.Run(name, func(t *testing.T) {
			p := provider.New(provider.Options{})
			p.Script(twoCalls(c.Signs))
			h := history(t, convo.Options{})
			if _, err := h.Append(convo.User("Read both files.")); err != nil {
				t.Fatal(err)
			}
			url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer := httptest.NewRecorder()
				p.ServeHTTP(answer, r)
				kind, body := answer.Header().Get("Content-Type"), answer.Body.String()
				if kind == "text/event-stream" {
					body = edit(body)
				}
				w.Header().Set("Content-Type", kind)
				_, _ = io.WriteString(w, body) // the client may be gone
			}))
			reply, err := h.Run(t.Context(), c.New(url, nil, "").Send, convo.RunOptions{Tools: []convo.Handler{readTool()}})
			if err != nil || reply.Text() != "ok" || reply.Usage.Input == 0 || len(p.Requests()) != 2 {
				t.Errorf("%v, %v, usage %v", reply, err, reply.Usage)
			}
			noneRefused(t, p)
		})
	}
}

// testOpen has a server leave the connection open after [DONE] or message_stop. The answer is whole.
func testOpen(t *testing.T, c Client) {
	p := provider.New(provider.Options{})
	h := history(t, convo.Options{})
	if _, err := h.Append(convo.User("q")); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		p.ServeHTTP(answer, r)
		w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
		_, _ = w.Write(answer.Body.Bytes()) // the client may be gone
		w.(http.Flusher).Flush()
		if strings.Contains(answer.Body.String(), "[DONE]") || strings.Contains(answer.Body.String(), "message_stop") {
			<-r.Context().Done()
		}
	}))
	if reply, err := h.Do(ctx, c.New(url, nil, "").Send); err != nil || reply.Text() != "ok" || ctx.Err() != nil {
		t.Errorf("%v, %v, and %v, want the answer at once", reply, err, ctx.Err())
	}
}

// testErrorAfterContent has the provider report an error after a piece of the answer, in ways
// that servers have. After an overflow, Do sends the request again, and Show is told to discard
// the piece. The error of any other is in the provider's words.
func testErrorAfterContent(t *testing.T, c Client) {
	const overflow, busy = "prompt is too long: 3000 tokens > 2000 maximum", "no room for you"
	for name, text := range map[string]string{
		"an event":       "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"MESSAGE\"}}\n\n",
		"no name":        "data: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"MESSAGE\"}}\n\n",
		"text":           "Error: MESSAGE",
		"a line of text": "Error: MESSAGE\n\n",
		"a line of JSON": "{\"error\":{\"message\":\"MESSAGE\"}}\n",
		"lines of JSON":  "{\n  \"error\": {\n    \"message\": \"MESSAGE\"\n  }\n}\n",
		"a string":       "data: {\"error\":\"MESSAGE\"}\n\n",
		"a msg":          "data: {\"code\":1305,\"msg\":\"MESSAGE\"}\n\n",
		"words as data":  "data: Error: MESSAGE\n\n",
		"a raw reason":   "data: {\"error\":{\"message\":\"Provider returned error\",\"metadata\":{\"raw\":\"MESSAGE\"}}}\n\n",
		"a detail":       "data: {\"detail\":\"MESSAGE\"}\n\n",
	} {
		for _, message := range []string{overflow, busy} {
			t.Run(name+", "+message[:9], func(t *testing.T) {
				p := provider.New(provider.Options{})
				first := provider.Answer{Blocks: []provider.Block{provider.Text("Half an answer.")}}
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
					p.ServeHTTP(&failing{ResponseWriter: w, text: strings.ReplaceAll(text, "MESSAGE", message)}, r)
				}))
				h := long(t, 100_000)
				shown, restarts := "", 0
				reply, err := h.Do(t.Context(), c.New(url, func(d wire.Delta) {
					if d.Restart {
						shown = ""
						restarts++
					}
					shown += d.Text
				}, "").Send)
				if failed && message == busy {
					if err == nil || !strings.Contains(err.Error(), busy) || asked != 1 {
						t.Errorf("%v, %v after %d requests, want an error with %q", reply, err, asked, busy)
					}
					return
				}
				if err != nil || shown != "Half an answer." || reply.Text() != shown || failed != (restarts == 1) || failed != (asked == 2) {
					t.Errorf("%v, %v; shown is %q after %d restarts and %d requests", reply, err, shown, restarts, asked)
				}
			})
		}
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

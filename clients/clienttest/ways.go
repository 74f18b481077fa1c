package clienttest

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/convotest/provider"
)

// A Recorder keeps the body of the newest request, and answers all with an error.
type Recorder struct {
	URL string

	t      testing.TB
	mu     sync.Mutex
	body   string
	path   string
	header http.Header
}

// Record returns a Recorder that serves until the test ends.
func Record(t testing.TB) *Recorder {
	r := &Recorder{t: t}
	r.URL = serve(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		data, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.body, r.path, r.header = string(data), q.URL.RequestURI(), q.Header
		w.WriteHeader(http.StatusTeapot)
	}))
	return r
}

// Body returns the body of the newest request, and forgets it.
func (r *Recorder) Body() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	body := r.body
	r.body = ""
	return body
}

// peek returns the body of the newest request.
func (r *Recorder) peek() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.body
}

// Header returns the header of the newest request.
func (r *Recorder) Header() http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.header
}

// Check checks what the newest request holds, and what it lacks as the README of clients says
// of a way to give a request to the SDK.
func (r *Recorder) Check(way string, holds, lacks []string) {
	r.t.Helper()
	body := r.Body()
	for _, s := range holds {
		if !strings.Contains(body, s) {
			r.t.Errorf("%s: the request lacks %s: %s", way, s, excerpt(body))
		}
	}
	for _, s := range lacks {
		if strings.Contains(body, s) {
			r.t.Errorf("%s: the request holds %s, which should be lost (see the README of clients): %s", way, s, excerpt(body))
		}
	}
	if body == "" {
		r.t.Errorf("%s: no request was made", way)
	}
}

// Do makes a request with messages, and returns the error.
func Do(t testing.TB, send convo.Send, messages ...convo.Message) error {
	t.Helper()
	h, err := convo.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Append(messages...); err != nil {
		t.Fatal(err)
	}
	_, err = h.Do(t.Context(), send)
	return err
}

// Refuses checks that a sender, whose parameters hold a field that the History decides, says
// so and makes no request.
func Refuses(t testing.TB, field string, send func(url string) convo.Send) {
	t.Helper()
	r := Record(t)
	err := Do(t, send(r.URL), convo.User("1"))
	var wrong *clients.ParamsError
	if !errors.As(err, &wrong) || wrong.Field != field {
		t.Errorf("the error is %v, want a *clients.ParamsError for %q", err, field)
	}
	if body := r.Body(); body != "" {
		t.Errorf("a request was made: %s", body)
	}
}

// noneRefused checks that the provider has refused no request.
func noneRefused(t testing.TB, p *provider.Server) {
	t.Helper()
	for _, r := range p.Refused() {
		t.Errorf("refused: %s: %s", r.Error, excerpt(string(r.Body)))
	}
}

// excerpt returns the beginning and the end of a body.
func excerpt(body string) string {
	const most = 1000
	if len(body) <= 2*most {
		return body
	}
	return body[:most] + " [...] " + body[len(body)-most:]
}

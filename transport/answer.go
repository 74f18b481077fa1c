package transport

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

const (
	storing    = 5 * time.Second // how long a Store may take
	mostError  = 1 << 20         // bytes of a refusal that are read
	mostFirst  = 64 << 10        // bytes of a stream that are read to see whether it is an error
	mostAnswer = 16 << 20        // bytes of an answer that are read for its usage
)

// A refusal is what the provider has said in place of an answer.
type refusal struct {
	StatusCode int
	err        error
}

func (e *refusal) Error() string { return e.err.Error() }
func (e *refusal) Unwrap() error { return e.err }

// refusal returns the error that an answer is, or nil. What it reads of the body stays in it.
func (x *exchange) refusal(resp *http.Response) (refused error) {
	var err, failed error
	defer guard(&failed) // a panic is no refusal
	switch {
	case resp.StatusCode >= 400:
		head := peek(resp, mostError, func([]byte) bool { return false })
		if _, err = x.api.format.Decode(expand(head, resp, mostAnswer)); err == nil {
			err = &wire.ProviderError{Message: http.StatusText(resp.StatusCode), JSON: string(head)}
		}
	case resp.StatusCode == http.StatusOK && isStream(resp):
		head := expand(peek(resp, mostFirst, func(b []byte) bool {
			b = expand(b, resp, mostFirst)
			return len(b) == mostFirst || hasEvent(b)
		}), resp, mostFirst)
		if bytes.Contains(head, []byte("error")) {
			for _, readErr := range wire.Read(bytes.NewReader(head), x.api.format.Stream()) {
				if _, ok := errors.AsType[*wire.ProviderError](readErr); ok {
					err = readErr
				}
			}
		}
	}
	if err == nil {
		return nil
	}
	return &refusal{resp.StatusCode, err}
}

// peek reads the body of an answer until enough says that it is, or up to most bytes. The body then
// begins with what was read.
func peek(resp *http.Response, most int, enough func([]byte) bool) []byte {
	head := make([]byte, 0, 4096)
	var err error
	for err == nil && len(head) < most && !enough(head) {
		if len(head) == cap(head) {
			head = append(head, 0)[:len(head)]
		}
		var n int
		n, err = resp.Body.Read(head[len(head):cap(head)])
		head = head[:len(head)+n]
	}
	rest := io.Reader(resp.Body)
	if err != nil {
		rest = failing{err}
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), rest), resp.Body}
	return head
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// expand returns the beginning of a body without its encoding, as far as it goes, but at most
// so many bytes of a compressed one.
func expand(b []byte, resp *http.Response, most int64) []byte {
	if !strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		return b
	}
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil
	}
	out, _ := io.ReadAll(io.LimitReader(r, most)) // it may be cut off
	return out
}

func isStream(resp *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind == "text/event-stream"
}

// hasEvent reports whether the beginning of a stream holds a whole event, or a comment.
func hasEvent(b []byte) bool {
	return bytes.Contains(b, []byte("\n\n")) || bytes.Contains(b, []byte("\r\n\r\n")) || bytes.HasPrefix(b, []byte(":")) && bytes.IndexByte(b, '\n') > 0
}

// A watcher is the body of an answer. It passes the bytes on, and reads the usage from them.
type watcher struct {
	body io.ReadCloser
	x    *exchange
	resp *http.Response

	mu     sync.Mutex
	seen   []byte // that are not read yet; nil: nothing is
	stream wire.Stream
	isDone bool
}

func newWatcher(x *exchange, resp *http.Response, reads bool) *watcher {
	w := &watcher{body: resp.Body, x: x, resp: resp}
	if reads && !x.api.isCount {
		w.seen = []byte{}
		if isStream(resp) && resp.Header.Get("Content-Encoding") == "" {
			w.stream = x.api.format.Stream()
		}
	}
	return w
}

func (w *watcher) Read(b []byte) (int, error) {
	n, err := w.body.Read(b)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen != nil && !w.isDone {
		w.see(b[:n])
	}
	if err != nil {
		w.end()
	}
	return n, err
}

// Close implements [io.Closer].
func (w *watcher) Close() error {
	err := w.body.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end()
	return err
}

// see takes note of bytes of the answer.
func (w *watcher) see(b []byte) {
	var failed error
	defer func() {
		if failed != nil { // the usage is not known then
			w.seen, w.stream = nil, nil
		}
	}()
	defer guard(&failed)
	at := len(w.seen) // no line ends before it
	if w.seen = append(w.seen, b...); len(w.seen) > mostAnswer {
		w.seen = nil
		return
	}
	if w.stream == nil {
		return
	}
	from := 0
	for {
		n := bytes.IndexByte(w.seen[at:], '\n')
		if n < 0 {
			break
		}
		w.event(w.seen[from : at+n])
		from, at = at+n+1, at+n+1
	}
	if from > 0 {
		w.seen = append(w.seen[:0], w.seen[from:]...)
	}
}

// event reads a line of a stream, if it has usage. Other events are not read; those that have
// it need none before them.
func (w *watcher) event(line []byte) {
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	if ok && (bytes.Contains(data, []byte(`"usage"`)) || bytes.Contains(data, []byte(`"usageMetadata"`))) { // a text has \" in their place
		_, _ = w.stream.Event("", bytes.TrimSpace(data)) // what can't be read has no usage
	}
}

// end is called when nothing more comes.
func (w *watcher) end() {
	if w.isDone {
		return
	}
	w.isDone = true
	var err error
	defer w.x.leave()
	defer guard(&err)
	if u := w.usage(); u.Input > 0 && w.x.s != nil {
		u.CacheTTL = w.x.cacheTTL
		_ = w.x.talk.mirror.History().RecordUsage(w.x.s, u) // what makes no sense is logged by the History
		w.x.keepAnswered()
	}
}

// usage returns the usage that the answer has reported.
func (w *watcher) usage() convo.Usage {
	var t wire.Transcript
	switch {
	case w.stream != nil:
		w.event(w.seen)
		t, _ = w.stream.Transcript() // it is not whole
	case w.seen != nil && isStream(w.resp):
		s := w.x.api.format.Stream()
		for range wire.Read(bytes.NewReader(expand(w.seen, w.resp, mostAnswer)), s) {
		}
		t, _ = s.Transcript()
	case w.seen != nil:
		t, _ = w.x.api.format.Decode(expand(w.seen, w.resp, mostAnswer))
	}
	return t.Usage
}

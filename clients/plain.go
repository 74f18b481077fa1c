package clients

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// A Middleware is a function that sees the HTTP requests of an SDK and their answers. next
// makes the request.
type Middleware = func(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error)

// ReadBody is [Read] for the body of an answer, which [wire.Read] reads. It may be a stream, a
// whole answer, or an error of the provider.
func ReadBody(ctx context.Context, format wire.Streamer, body io.Reader, show func(wire.Delta)) (convo.Reply, error) {
	x := &exchange{format: format, show: show}
	x.read(body)
	return x.reply(ctx)
}

// middleware reads answers that are no streams of events. The SDK then finds an empty stream.
func (x *exchange) middleware(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	x.answer, x.err = nil, nil // the SDK may try again
	resp, err := next(r)
	if err != nil || resp.StatusCode >= http.StatusMultipleChoices || resp.Body == nil {
		return resp, err
	}
	body := bufio.NewReader(resp.Body)
	b := readCloser{body, resp.Body}
	stream := isStream(body, resp.Header.Get("Content-Type"))
	if _, ok := x.format.(wire.Anthropic); ok && stream {
		b.Reader = &namer{r: body}
	}
	if resp.Body = b; !stream {
		resp.Body = &answerReader{ReadCloser: b, x: x}
	}
	resp.ContentLength = -1
	return resp, nil
}

type readCloser struct {
	io.Reader
	io.Closer
}

// isStream reports whether a body is a stream of events, by its first bytes after white space,
// or else by its type. It skips the white space, and a byte order mark before it.
func isStream(body *bufio.Reader, kind string) bool {
	if mark, _ := body.Peek(3); string(mark) == "\ufeff" {
		_, _ = body.Discard(len(mark))
	}
	for {
		first, err := body.Peek(1)
		if err != nil {
			return true // the SDK finds the error
		}
		switch first[0] {
		case ' ', '\t', '\r', '\n':
			_, _ = body.Discard(1)
			continue
		case '{', '[', '<':
			return false
		case ':':
			return true
		}
		begin, _ := body.Peek(len("event:"))
		for _, field := range []string{"event:", "data:", "id:", "retry:"} {
			if bytes.HasPrefix(begin, []byte(field)) {
				return true
			}
		}
		return strings.Contains(strings.ReplaceAll(kind, "-", ""), "eventstream") // the frames of Bedrock, too
	}
}

// A namer adds the name to each event of Anthropic's that lacks it, since the SDK skips such
// events.
type namer struct {
	r     *bufio.Reader
	line  []byte // what has not been read yet
	named bool   // the event has a name
	err   error
}

func (n *namer) Read(p []byte) (int, error) {
	for len(n.line) == 0 {
		if n.err != nil {
			return 0, n.err
		}
		n.line, n.err = n.r.ReadBytes('\n')
		data, isData := bytes.CutPrefix(n.line, []byte("data:"))
		switch {
		case len(bytes.TrimSpace(n.line)) == 0:
			n.named = false
		case bytes.HasPrefix(n.line, []byte("event:")):
			n.named = true
		case isData && !n.named:
			if name := eventName(data); name != "" {
				n.line, n.named = append([]byte("event: "+name+"\n"), n.line...), true
			}
		}
	}
	c := copy(p, n.line)
	n.line = n.line[c:]
	return c, nil
}

// eventName returns the name of an event with such data.
func eventName(data []byte) string {
	var event struct {
		Type  string
		Error any
	}
	if json.Unmarshal(data, &event) != nil {
		return ""
	}
	if event.Error != nil {
		return "error"
	}
	return strings.Map(func(c rune) rune {
		if c < ' ' {
			return -1
		}
		return c
	}, event.Type)
}

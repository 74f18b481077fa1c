package clients

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
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

// middleware makes a request, and has its answer read as soon as the SDK reads it. The binary
// frames of Bedrock are left to the SDK.
func (x *exchange) middleware(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	x.answer, x.err, x.status = nil, nil, 0 // the SDK may try again
	x.readable = false
	x.kept.Reset()
	if x.body != nil {
		r = x.body.follow(r)
	}
	resp, err := next(r)
	if err != nil || resp.Body == nil {
		return resp, err
	}
	body := bufio.NewReader(resp.Body)
	kept := readCloser{io.TeeReader(body, &x.kept), resp.Body}
	if resp.StatusCode >= http.StatusMultipleChoices {
		x.status, resp.Body = resp.StatusCode, kept
	} else if first, _ := body.Peek(1); len(first) > 0 && first[0] == 0 { // a frame, since it has less than 16 MB
		resp.Body = readCloser{body, resp.Body}
	} else {
		resp.Body, x.readable = &answerReader{kept, x}, true
	}
	return resp, nil
}

type readCloser struct {
	io.Reader
	io.Closer
}

// readBytes is how much of a refused request's answer is read to find what the provider says.
const readBytes = 64 << 10

// refused returns the error of an SDK with what the provider said, unless it says so itself. It
// wraps only that of the SDK, so that the text and the status are of one error.
func (x *exchange) refused(err error) error {
	body := bytes.TrimSpace(x.kept.Bytes())
	body = body[:min(len(body), readBytes)]
	if err == nil || x.status == 0 || strings.Contains(err.Error(), string(body)) {
		return err
	}
	_, said := x.format.Stream().Event("error", body)
	e, ok := errors.AsType[*wire.ProviderError](said)
	if !ok || strings.Contains(err.Error(), cmp.Or(e.Message, e.JSON)) {
		return err
	}
	e.Code = cmp.Or(e.Code, strconv.Itoa(x.status))
	return fmt.Errorf("%w: %v", err, e)
}

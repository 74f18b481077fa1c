package clients

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// SendBody makes a request with an SDK that takes raw bytes, and reads the answer as
// [ReadStream] does. open gets the result of [Body] and the middleware. The bytes are in
// memory that a later request uses again, so open must not keep them. The names of the tools
// among the parameters are in the Reply, and how long the provider keeps its cache: what req
// says, or a parameter of OpenAI.
func SendBody[E interface{ RawJSON() string }](ctx context.Context, req wire.Request, params any, format wire.Streamer, show func(wire.Delta), open func([]byte, Middleware) Stream[E], changes ...Change) (convo.Reply, error) {
	b := newBody()
	var err error
	if b.data, err = appendBody(b.data, ctx, req, params, changes); err != nil {
		b.release()
		return convo.Reply{}, err
	}
	x := &exchange{format: format, show: show, body: b}
	reply, err := readStream(ctx, x, func(m Middleware) Stream[E] { return open(b.data, m) })
	if err == nil { // the error of an SDK may hold the request, from which an application reads the body
		b.release()
	}
	all, _ := marshal(params) // appendBody has reported an error
	reply.ParamTools, reply.Usage.CacheTTL = namesIn(all), cacheTTL(req, all)
	return reply, err
}

// A body is the body of a request, in memory that is used again when nothing reads it any more.
// A transport may read it after the answer has come, until it closes it.
type body struct {
	data []byte

	mu   sync.Mutex // protects following
	uses int        // the request, readers that are open, and calls of Read; 0: data is another's
}

var bodies sync.Pool

// newBody returns an empty body with one use.
func newBody() *body {
	b, _ := bodies.Get().(*body)
	if b == nil {
		b = new(body)
	}
	return &body{data: b.data[:0], uses: 1}
}

// use adds a use, unless there is none left.
func (b *body) use() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.uses == 0 {
		return false
	}
	b.uses++
	return true
}

// release ends a use.
func (b *body) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.uses--; b.uses == 0 {
		bodies.Put(&body{data: b.data})
		b.data = nil
	}
}

// errReleased says that the body of a request was read after the request had ended.
var errReleased = errors.New("clients: the request has ended, and its body is gone")

// follow returns a request that counts those who read its body.
func (b *body) follow(r *http.Request) *http.Request {
	if r.Body == nil || r.Body == http.NoBody || !b.use() {
		return r
	}
	r = r.WithContext(r.Context())
	r.Body = &bodyReader{ReadCloser: r.Body, body: b}
	if open := r.GetBody; open != nil {
		r.GetBody = func() (io.ReadCloser, error) {
			if !b.use() {
				return nil, errReleased
			}
			inner, err := open()
			if err != nil {
				b.release()
				return nil, err
			}
			return &bodyReader{ReadCloser: inner, body: b}, nil
		}
	}
	return r
}

// A bodyReader reads a body until it is closed, which a transport may do while it reads.
type bodyReader struct {
	io.ReadCloser
	body *body
	once sync.Once
}

func (r *bodyReader) Read(p []byte) (int, error) {
	if !r.body.use() {
		return 0, http.ErrBodyReadAfterClose
	}
	defer r.body.release()
	return r.ReadCloser.Read(p)
}

func (r *bodyReader) Close() error {
	err := r.ReadCloser.Close()
	r.once.Do(r.body.release)
	return err
}

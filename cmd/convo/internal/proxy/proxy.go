// Package proxy is an HTTP handler between programs and the providers of their models. It follows
// their conversations with package transport, and shows them with package inspect.
package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/inspect"
	"github.com/seed-c1b73e60/convo/transport"
)

// Page is the path of the page.
const Page = "/convo"

// Options configure a Proxy.
type Options struct {
	Upstreams Upstreams
	Window    int      // of all models, in tokens; 0: that of each model, as far as it is known
	Compact   bool     // keep requests inside the window; false: change nothing
	Hosts     []string // by which it may be called, besides those of the loopback
	Store     transport.Store
	Log       io.Writer // gets the log; no header and no key is in it
}

// A Proxy is the handler. It is safe for concurrent use.
type Proxy struct {
	opts      Options
	transport *transport.Transport
	reverse   httputil.ReverseProxy
	pages     inspect.Pages
	secrets   secrets
	logger    *slog.Logger

	requests, refused, compactions, made atomic.Int64

	running  sync.RWMutex // held for reading by each request
	isClosed bool

	mu    sync.Mutex
	shown map[string]*shown // by the ID of the conversation
}

// New returns a Proxy.
func New(o Options) *Proxy {
	p := &Proxy{opts: o, shown: map[string]*shown{}}
	p.logger = slog.New(slog.NewTextHandler(p.secrets.writer(o.Log), nil))
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.DisableCompression = true // an answer passes as it comes
	base.MaxIdleConnsPerHost = 100
	p.transport = transport.New(transport.Options{Base: base, History: p.options, Watch: !o.Compact, Store: o.Store, Idle: 24 * time.Hour, Logger: p.logger})
	silent := log.New(io.Discard, "", 0) // net/http may quote what was sent
	p.reverse = httputil.ReverseProxy{Rewrite: p.rewrite, Transport: p.transport, FlushInterval: -1, ErrorLog: silent, ModifyResponse: p.count, ErrorHandler: p.fail}
	p.pages = inspect.Pages{List: p.list, Hosts: o.Hosts}
	return p
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.running.RLock()
	defer p.running.RUnlock()
	switch {
	case p.isClosed:
		refuse(w, http.StatusServiceUnavailable, "it has ended")
	case !p.pages.Allows(r.Host):
		refuse(w, http.StatusForbidden, "the host is not allowed; use localhost, or name it with -host")
	case !p.allowsOrigin(r.Header.Get("Origin")):
		refuse(w, http.StatusForbidden, "the origin is not allowed; to let a website use the proxy, name its host with -host")
	case strings.TrimSuffix(r.URL.Path, "/") == Page:
		p.pages.ServeHTTP(w, r)
	case r.URL.Path == "/" && r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html"):
		http.Redirect(w, r, Page, http.StatusFound)
	case r.URL.Path == "/favicon.ico": // which a browser asks for by itself
		http.NotFound(w, r)
	case r.Method == http.MethodConnect:
		refuse(w, http.StatusMethodNotAllowed, "it is no proxy of HTTPS; its address takes the place of the provider's")
	default:
		p.secrets.add(r)
		p.requests.Add(1)
		p.reverse.ServeHTTP(w, r)
	}
}

// Close waits for the requests under way, which the server must have ended, and forgets the
// conversations.
func (p *Proxy) Close() error {
	p.running.Lock()
	defer p.running.Unlock()
	p.isClosed = true
	return p.transport.Close()
}

func (p *Proxy) allowsOrigin(origin string) bool {
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && p.pages.Allows(u.Host)
}

// refuse answers in the way of the providers, so that programs show the message.
func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "error", "error": map[string]any{"type": "proxy_error", "code": status, "message": "convo proxy: " + message}})
}

// rewrite sends a request to its upstream. Nothing in the request says which host that is.
func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	r.Out.URL = p.opts.Upstreams.of(r.In)
	r.Out.Host = ""
}

// count counts an answer.
func (p *Proxy) count(resp *http.Response) error {
	if resp.StatusCode >= 400 {
		p.refused.Add(1)
	}
	return nil
}

// fail answers a request that has no answer of its upstream.
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() == nil && !errors.Is(err, io.ErrUnexpectedEOF) { // or the client is gone
		p.refused.Add(1)
		p.logger.Warn("proxy: no answer from the provider", "host", r.URL.Host, "cause", err)
	}
	refuse(w, http.StatusBadGateway, p.secrets.hide(fmt.Sprintf("no answer from %s: %v", r.URL.Host, err)))
}

// options returns the options of a conversation that begins.
func (p *Proxy) options(c transport.Conversation) *convo.Options {
	p.made.Add(1)
	s := p.keep(c.ID)
	p.forget(s.number)
	return &convo.Options{Limits: convo.Limits{Window: p.opts.Window}, OnCompaction: func(r convo.Report) {
		if r.Outcome == convo.OutcomeApplied {
			p.compactions.Add(1)
		}
		s.reports.Add(r)
	}}
}

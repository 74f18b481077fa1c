package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/transport"
)

// The ways in which a program is run.
const (
	alone     = "alone"
	watched   = "watched"
	compacted = "compacted"
	restarted = "restarted" // compacted; after two thirds the program and the proxy end, and start again
)

var ways = []string{alone, watched, compacted, restarted}

// A runner runs programs.
type runner struct {
	dir    string // where they are installed
	convo  string // the command; empty: package transport in this process
	files  int    // of the task
	limit  time.Duration
	bodies string // a folder for what was sent, and what the program said; empty: none
}

// run gives a program its task.
func (r runner) run(ctx context.Context, p program, version, way string) (tally, error) {
	home, err := os.MkdirTemp("", "programs-")
	if err != nil {
		return tally{}, err
	}
	defer os.RemoveAll(home)
	parts := []int{r.files}
	if way == restarted {
		parts = []int{r.files * 2 / 3, r.files}
	}
	var until atomic.Int64
	upstream := provider.New(provider.Options{Window: p.window, Answer: p.model(&until)})
	server := httptest.NewServer(upstream)
	defer server.Close()
	d := &door{}
	front := httptest.NewServer(d)
	defer front.Close()
	if err := p.prepare(home, front.URL, r.files); err != nil {
		return tally{}, err
	}
	var said []byte
	args := append(slices.Clone(p.args), fmt.Sprintf(task, fileName(1), fileName(r.files), rule))
	for _, n := range parts {
		until.Store(int64(n))
		done, err := r.open(d, server.URL, p, way, filepath.Join(home, "store"))
		if err != nil {
			return tally{}, err
		}
		more, err := r.start(ctx, p, version, home, front.URL, args)
		done()
		said = append(said, more...)
		if err != nil {
			return tally{}, err
		}
		args = append(slices.Clone(p.again), "Read the other files.")
	}
	t := p.count(d.bodies, upstream.Requests(), upstream.Refused())
	if r.bodies != "" {
		err = r.keep(p.name+"-"+way, said, d, upstream.Requests())
	}
	return t, err
}

// prepare writes the files of the task and of the program.
func (p program) prepare(home, url string, n int) error {
	work := filepath.Join(home, "work")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	for i := 1; i <= n; i++ {
		if err := os.WriteFile(filepath.Join(work, fileName(i)), []byte(contents(i)), 0o644); err != nil {
			return err
		}
	}
	if p.file == "" {
		return nil
	}
	name := filepath.Join(home, p.file)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(strings.ReplaceAll(p.config, "{url}", url)), 0o644)
}

// start runs the program and returns what it said. That it fails is no error: alone it must.
func (r runner) start(ctx context.Context, p program, version, home, url string, args []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(r.dir, p.name+"@"+version, p.binary), args...)
	cmd.Dir = filepath.Join(home, "work")
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=dumb", "NO_COLOR=1", "TMPDIR=" + home}
	for _, v := range p.env {
		cmd.Env = append(cmd.Env, strings.ReplaceAll(v, "{url}", url))
	}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that what it has started ends with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		err = nil
	}
	return said.Bytes(), err
}

// A door stands between a program and its provider. It keeps what the program sends.
type door struct {
	proxy *httputil.ReverseProxy

	mu      sync.Mutex
	bodies  [][]byte
	headers []http.Header
	log     bytes.Buffer
}

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	d.mu.Lock()
	d.bodies, d.headers = append(d.bodies, body), append(d.headers, r.Header.Clone())
	d.mu.Unlock()
	r.Body = io.NopCloser(bytes.NewReader(body))
	d.proxy.ServeHTTP(w, r)
}

// Write appends to the log.
func (d *door) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.Write(b)
}

// open puts what a way needs behind the door, with the provider behind that. It returns a function
// that ends it.
func (r runner) open(d *door, upstream string, p program, way, store string) (done func(), err error) {
	done = func() {}
	transport := http.RoundTripper(http.DefaultTransport)
	switch {
	case way == alone:
	case r.convo == "":
		transport, done = d.inside(p, way, store)
	default:
		if upstream, done, err = d.command(r.convo, upstream, p, way, store); err != nil {
			return nil, err
		}
	}
	target, err := url.Parse(upstream)
	if err != nil {
		return nil, err
	}
	d.proxy = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1,
		Transport:     transport,
	}
	return done, nil
}

// inside returns package transport.
func (d *door) inside(p program, way, store string) (http.RoundTripper, func()) {
	t := transport.New(transport.Options{
		Watch:  way == watched,
		Store:  transport.Dir(store),
		Logger: slog.New(slog.NewTextHandler(d, nil)),
		History: func(transport.Conversation) *convo.Options {
			return &convo.Options{Limits: convo.Limits{Window: p.window}}
		},
	})
	return t, func() {
		for _, c := range t.Conversations() {
			fmt.Fprintf(d, "conversation %s: %d requests, key %q, program %q, %s\n", c.ID, c.Requests, c.Key, c.Program, c.Last.Error)
		}
		_ = t.Close()
	}
}

// command starts convo proxy, and returns its address.
func (d *door) command(convo, upstream string, p program, way, store string) (address string, done func(), err error) {
	if strings.HasPrefix(p.format, "openai-") {
		upstream += "/v1"
	}
	cmd := exec.Command(convo, "proxy", "-listen", "127.0.0.1:0", "-window", strconv.Itoa(p.window), "-upstream", p.format+"="+upstream, "-store", store)
	if way != watched {
		cmd.Args = append(cmd.Args, "-compact")
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	said := bufio.NewReader(stderr)
	for address == "" {
		line, err := said.ReadString('\n')
		_, _ = io.WriteString(d, line)
		if err != nil {
			return "", nil, errors.Join(fmt.Errorf("convo proxy: %s", line), cmd.Wait())
		}
		_, address, _ = strings.Cut(strings.TrimSuffix(line, "/convo\n"), "shown at ")
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(d, said)
	}()
	return address, func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-read
		_ = cmd.Wait()
	}, nil
}

// keep writes what was sent into a folder.
func (r runner) keep(name string, said []byte, d *door, arrived []provider.Request) error {
	dir := filepath.Join(r.bodies, name)
	err := os.RemoveAll(dir)
	err = errors.Join(err, os.MkdirAll(dir, 0o755))
	err = errors.Join(err, os.WriteFile(filepath.Join(dir, "said.txt"), said, 0o644))
	err = errors.Join(err, os.WriteFile(filepath.Join(dir, "log.txt"), d.log.Bytes(), 0o644))
	for i, body := range d.bodies {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d-sent.json", i+1)), body, 0o644))
		var head bytes.Buffer
		_ = d.headers[i].Write(&head)
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d-head.txt", i+1)), head.Bytes(), 0o644))
	}
	for i, a := range arrived {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d-came.json", i+1)), append(a.Body, []byte("\n"+a.Error)...), 0o644))
	}
	return err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/seed-c1b73e60/convo/cmd/convo/internal/cli"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/proxy"
	"github.com/seed-c1b73e60/convo/transport"
)

const (
	proxyAddress = "127.0.0.1:4141"
	proxyGrace   = 500 * time.Millisecond // for requests under way when the proxy ends
	notFound     = 127                    // the exit code for a program that cannot be started, as that of a shell
)

// proxyFlags are the flags of proxy.
type proxyFlags struct {
	*cli.Flags
	listen, store, log string
	upstreams, hosts   texts
	window             int
	compact            bool
}

// texts is a flag that may be given several times.
type texts []string

// String implements flag.Value.
func (t *texts) String() string { return strings.Join(*t, " ") }

// Set implements flag.Value.
func (t *texts) Set(text string) error {
	*t = append(*t, text)
	return nil
}

// Get implements flag.Getter.
func (t *texts) Get() any { return *t }

func newProxyFlags() *proxyFlags {
	f := &proxyFlags{Flags: cli.NewFlags("proxy", "[-- PROGRAM [ARGUMENT...]]", "Stands between a program and the provider of its model, follows its conversations, and shows them as a page. With -compact it keeps requests inside the window; without, it changes nothing.\n\nA PROGRAM is started with the variables that name the address of the provider set to that of the proxy, and its exit code is that of the command. Without a PROGRAM, the proxy runs until it is interrupted. The program sends its own keys, which are written nowhere.")}
	f.StringVar(&f.listen, "listen", proxyAddress, "the `ADDRESS` to listen on; another port if this one is in use and a program is started")
	f.Var(&f.upstreams, "upstream", "send the requests of a format elsewhere: `FORMAT=URL`, where FORMAT is anthropic, openai, openai-chat, openai-responses or gemini, and URL is as in the variable that a program has for it; may be repeated")
	f.IntVar(&f.window, "window", 0, "the context window of the model, in `TOKENS`; that of the model, if it is known, if absent")
	f.BoolVar(&f.compact, "compact", false, "keep requests inside the window")
	f.StringVar(&f.store, "store", "", "keep what was decided about the conversations in a `DIR`, so that they go on after a restart with the same requests")
	f.StringVar(&f.log, "log", "", "append the log to a `FILE`; a new one, or standard error without a program, if absent")
	f.Var(&f.hosts, "host", "another `NAME` by which the proxy may be called, besides localhost; may be repeated")
	f.More = "Examples:\n  convo proxy -- qwen\n  convo proxy -compact -window 200000 -- claude\n\nSome programs read the address from a file. To add there:\n\n" + allLines("http://"+proxyAddress)
	return f
}

func runProxy(ctx context.Context, env *cli.Env, args []string) int {
	var program []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, program = args[:i], args[i+1:]
		if len(program) == 0 {
			return newProxyFlags().Misused(env, "name the program after --")
		}
	}
	f := newProxyFlags()
	rest, code, ok := f.Parse(env, args)
	switch {
	case !ok:
		return code
	case len(rest) > 0:
		return f.Misused(env, "write -- before the program: convo proxy -- %s", strings.Join(rest, " "))
	case f.window < 0:
		return f.Misused(env, "-window %d: want a number above 0", f.window)
	}
	l, err := f.open(len(program) > 0)
	if err != nil {
		return f.Misused(env, "%w", err)
	}
	defer l.Close()
	address := l.Addr().String()
	if ap, err := netip.ParseAddrPort(address); err == nil && ap.Addr().IsUnspecified() {
		address = fmt.Sprintf("127.0.0.1:%d", ap.Port())
	}
	upstreams, err := proxy.FindUpstreams(os.Getenv, address, f.upstreams)
	if err != nil {
		return f.Misused(env, "%w", err)
	}
	out, err := f.openLog(env, len(program) > 0)
	if err != nil {
		return env.Fail(cli.Unreadable, "%w", err)
	}
	o := proxy.Options{Upstreams: upstreams, Window: f.window, Compact: f.compact, Hosts: f.hosts, Log: out}
	if f.store != "" {
		o.Store = transport.Dir(f.store)
	}
	if host, _, _ := net.SplitHostPort(address); !netip.MustParseAddr(host).IsLoopback() {
		o.Hosts = append(o.Hosts, host)
	}
	p := proxy.New(o)
	stop := serveProxy(l, p)
	f.announce(env, l, "http://"+address, program)
	if len(program) > 0 {
		code = start(env, program, "http://"+address)
	} else {
		waitProxy(ctx)
	}
	stop()
	for _, line := range p.Summary() {
		env.Note("convo: %s", line)
	}
	if err := errors.Join(p.Close(), closeLog(env, out)); err != nil {
		env.Note("convo: %w", err)
	}
	return code
}

// open listens on the address of the flag, or, for a program, on another port if that is in use.
func (f *proxyFlags) open(hasProgram bool) (net.Listener, error) {
	host, port, err := net.SplitHostPort(f.listen)
	if err != nil {
		return nil, fmt.Errorf("-listen %s: want an address such as %s", f.listen, proxyAddress)
	}
	if host == "" || host == "localhost" {
		host = "127.0.0.1" // and not all that this machine has
	}
	if _, err := netip.ParseAddr(host); err != nil {
		return nil, fmt.Errorf("-listen %s: want the number of an interface, such as %s", f.listen, proxyAddress)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil && hasProgram && f.listen == proxyAddress {
		l, err = net.Listen("tcp", net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return nil, fmt.Errorf("-listen: %w", err)
	}
	return l, nil
}

// openLog opens the log: that of the flag, a new one, or without a program standard error.
func (f *proxyFlags) openLog(env *cli.Env, hasProgram bool) (io.Writer, error) {
	switch {
	case f.log != "":
		return os.OpenFile(f.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	case hasProgram:
		return os.CreateTemp("", "convo-proxy-*.log") // which only the user may read
	}
	return env.Stderr, nil
}

// closeLog closes the log, says where it is, and removes it if there is nothing in it.
func closeLog(env *cli.Env, out io.Writer) error {
	file, ok := out.(*os.File)
	if !ok || out == env.Stderr {
		return nil
	}
	info, err := file.Stat()
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if info.Size() == 0 {
		return os.Remove(file.Name())
	}
	env.Note("convo: the log is %s", file.Name())
	return nil
}

// serveProxy serves p, and returns a function that ends it: requests under way are ended after a
// moment.
func serveProxy(l net.Listener, p *proxy.Proxy) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	server := &http.Server{
		Handler: p, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog:    log.New(io.Discard, "", 0), // it may quote what was sent
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l) // ends with ErrServerClosed
	}()
	return func() {
		grace, end := context.WithTimeout(context.Background(), proxyGrace)
		defer end()
		_ = server.Shutdown(grace)
		cancel()
		_ = server.Close()
		<-served
	}
}

// announce says where the page is, and what is to be set.
func (f *proxyFlags) announce(env *cli.Env, l net.Listener, address string, program []string) {
	env.Note("convo: the conversations are shown at %s%s", address, proxy.Page)
	if ap, err := netip.ParseAddrPort(l.Addr().String()); err == nil && !ap.Addr().IsLoopback() {
		env.Note("convo: everyone who reaches %s can read them and use the proxy", l.Addr())
	}
	if !f.compact {
		env.Note("convo: nothing is changed; -compact keeps requests inside the window")
	}
	if len(program) == 0 {
		lines := slices.DeleteFunc(proxy.Variables(address), func(line string) bool { return !strings.Contains(line, "_BASE_URL=") })
		env.Note("convo: set one of these for a program, or see convo proxy -h for those that read a file:\n%s", strings.Join(lines, "\n"))
	} else if lines := fileLines(filepath.Base(program[0]), address); lines != "" {
		env.Note("convo: to add once, since the program reads no variable:\n%s", lines)
	}
}

// waitProxy waits for an interrupt.
func waitProxy(ctx context.Context) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	<-ctx.Done()
}

// start runs a program and returns its exit code. An interrupt comes to the program from the
// terminal, so it does not end the proxy before it.
func start(env *cli.Env, program []string, address string) int {
	cmd := exec.Command(program[0], program[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = env.Stdin, env.Direct, env.Stderr
	cmd.Env = append(os.Environ(), proxy.Variables(address)...)
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		cmd.Env = append(cmd.Env, name+"="+strings.TrimPrefix(os.Getenv(name)+",127.0.0.1,localhost", ","))
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return env.Fail(notFound, "the program cannot be started: %w", err)
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case s := <-signals:
				if s != os.Interrupt {
					_ = cmd.Process.Signal(s) // fails if it has ended
				}
			case <-done:
				return
			}
		}
	}()
	_ = cmd.Wait() // the state says it
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

// filePrograms are the programs that read the address of a provider from a file, and what is to
// add there. ADDRESS stands for that of the proxy.
var filePrograms = []struct{ name, lines string }{
	{"pi", `~/.pi/agent/models.json
  {"providers": {"anthropic": {"baseUrl": "ADDRESS"},
                 "openai": {"baseUrl": "ADDRESS/v1"}}}
`},
	{"opencode", `opencode.json
  {"provider": {
    "anthropic": {"options": {"baseURL": "ADDRESS/v1"}},
    "openai": {"options": {"baseURL": "ADDRESS/v1"}}}}
`},
	{"crush", `crush.json
  {"providers": {"anthropic": {"base_url": "ADDRESS"},
                 "openai": {"base_url": "ADDRESS/v1"}}}
`},
	{"codex", `~/.codex/config.toml
  model_provider = "convo"
  [model_providers.convo]
  name = "convo"
  base_url = "ADDRESS/v1"
  env_key = "OPENAI_API_KEY"
  wire_api = "responses"
`},
}

// fileLines returns what is to add to the file of a program, or "".
func fileLines(name, address string) string {
	for _, f := range filePrograms {
		if f.name == name {
			return strings.ReplaceAll(f.lines, "ADDRESS", address)
		}
	}
	return ""
}

// allLines returns what is to add to the files of all programs.
func allLines(address string) string {
	var b strings.Builder
	for _, f := range filePrograms {
		b.WriteString(f.name + ": " + fileLines(f.name, address))
	}
	return b.String()
}

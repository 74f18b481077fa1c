// Command convo shows, checks, counts, shortens and converts conversations with language
// models: requests in the formats of five providers, sessions that other programs keep on
// disk, and logs of package filestore.
//
//	go install github.com/seed-c1b73e60/convo/cmd/convo@latest
//	convo show session.jsonl
//
// It reads files, or the standard input, and recognises what they hold. "convo help" lists the
// subcommands, and the page docs/command.md shows each.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/cmd/convo/internal/cli"
)

// commands are the subcommands, in the order of the help.
var commands = []cli.Command{
	{Name: "show", Help: "what fills the context window", Run: show},
	{Name: "check", Help: "why a provider would refuse a request", Run: check},
	{Name: "count", Help: "how many tokens, by kind and by role", Run: count},
	{Name: "compact", Help: "a smaller request that the provider takes", Run: compact},
	{Name: "convert", Help: "the request of another provider, and what is lost", Run: convert},
	{Name: "store", Help: "what a store in files holds", Run: store},
	{Name: "replay", Help: "what convo would have done with a session", Run: replaySessions},
	{Name: "proxy", Help: "what a running program sends, kept inside the window", Run: runProxy},
	{Name: "version", Help: "print the version", Run: version},
}

// gcPercent takes the place of a GOGC that is not set. Sessions are large, and are read once:
// less memory is worth some time.
const gcPercent = 25

func main() {
	isProxy := len(os.Args) > 1 && os.Args[1] == "proxy"
	if os.Getenv("GOGC") == "" && !isProxy {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	done := make(chan int, 1)
	go func() { done <- run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr) }()
	select {
	case code := <-done:
		os.Exit(code)
	case <-ctx.Done():
		stop() // a second interrupt ends the program at once
		switch {
		case isProxy:
			os.Exit(<-done)
		case writes(os.Args[1:]):
			<-done
		default:
			select {
			case <-done:
			case <-time.After(200 * time.Millisecond): // it may be waiting for its input
			}
		}
		os.Exit(cli.Interrupted)
	}
}

// run runs a subcommand and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return runIn(ctx, cli.NewEnv(stdin, stdout, stderr), args)
}

func runIn(ctx context.Context, env *cli.Env, args []string) int {
	return env.Buffered(func(env *cli.Env) int {
		if len(args) == 0 {
			return env.Fail(cli.Usage, "say what to do\n\n%s", help())
		}
		switch args[0] {
		case "help", "-h", "-help", "--help":
			if len(args) > 1 {
				return runOne(ctx, env, args[1], append(args[2:len(args):len(args)], "-h"))
			}
			fmt.Fprint(env.Stdout, help())
			return cli.OK
		case "-version", "--version":
			return version(ctx, env, args[1:])
		}
		return runOne(ctx, env, args[0], args[1:])
	})
}

func runOne(ctx context.Context, env *cli.Env, name string, args []string) int {
	for _, c := range commands {
		if c.Name == name {
			return c.Run(ctx, env, args)
		}
	}
	return env.Fail(cli.Usage, "there is no subcommand %q\nconvo help lists the subcommands", name)
}

// help returns the help of the whole program.
func help() string {
	var t cli.Table
	t.Left = 2
	for _, c := range commands {
		t.Add("  "+c.Name, c.Help)
	}
	return `convo reads conversations with language models: what fills the window, why a
request is refused, what a shorter one would be.

usage: convo SUBCOMMAND [flags] [FILE...]

` + t.String() + `
"convo SUBCOMMAND -h" prints the flags. Without a FILE, or for the FILE "-", the
standard input is read. What is read is recognised, as JSON or JSONL:
  - a request or an answer in the format of OpenAI (Chat Completions and
    Responses), Anthropic, Gemini or Bedrock (Converse)
  - a session of Claude Code, Codex CLI, pi, kit or Gemini CLI
  - a snapshot of convo

Exit codes: 0 fine, 1 there are findings, 2 wrong usage, 3 unreadable input.
`
}

// writes reports whether the arguments are those of a subcommand that changes files, which is
// not ended in the middle.
func writes(args []string) bool {
	return len(args) > 1 && args[0] == "store" && strings.Contains(" salvage prune ", " "+args[1]+" ")
}

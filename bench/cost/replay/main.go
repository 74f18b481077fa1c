// Command replay tells what your own conversations would have cost under each
// policy.
//
//	go run ./cost/replay -file x.jsonl -limit 20000
//
// The file holds OpenAI chat messages, one conversation a line: a list, or an
// object with a list named messages.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-c1b73e60/convo/bench/cost"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "replay:", err)
		}
		os.Exit(1)
	}
}

func run(args []string, out, messages io.Writer) error {
	flags := flag.NewFlagSet("replay", flag.ContinueOnError)
	flags.SetOutput(messages)
	file := flags.String("file", "", `JSONL of OpenAI chat messages, one conversation a line: [...] or {"messages": [...]}`)
	limit := flags.Int("limit", 100_000, "tokens that a request may weigh")
	chain := flags.Int("chain", 1, "join so many conversations into one")
	anthropic := cost.Profiles()[0]
	p := cost.Prices{Name: "units"}
	flags.Float64Var(&p.Read, "read", anthropic.Read, "price of a token read from the cache")
	flags.Float64Var(&p.Write, "write", anthropic.Write, "price of a token written to the cache")
	flags.Float64Var(&p.Uncached, "uncached", anthropic.Uncached, "price of a token without cache")
	flags.Float64Var(&p.Output, "output", anthropic.Output, "price of a token of output")
	least := flags.Int("min", 1024, "least tokens that are cached")
	ttl := flags.Duration("ttl", 0, "how long the cache lives, 0: for ever")
	step := flags.Duration("step", 0, "time between requests")
	every := flags.Int("every", 0, "a pause before each request of this number, 0: none")
	pause := flags.Duration("pause", 10*time.Minute, "how long it is")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected %q", flags.Arg(0))
	case *file == "":
		return errors.New("-file is missing")
	case *limit < 1000 || *limit > 1<<30:
		return fmt.Errorf("-limit %d: want 1,000 or more", *limit)
	}
	in, err := os.Open(*file)
	if err != nil {
		return err
	}
	defer in.Close()
	msgs, err := cost.ReadMessages(in)
	if err != nil {
		return fmt.Errorf("%s: %w", *file, err)
	}
	cs, err := cost.Chain(filepath.Base(*file), msgs, *chain)
	if err != nil {
		return err
	}
	return cost.WriteOne(out, filepath.Base(*file), cs, cost.Setup{
		Window:  *limit + *limit/7,
		Reserve: *limit / 7,
		Cache:   cost.Cache{Min: *least, TTL: *ttl},
		Clock:   cost.Clock{Step: *step, Every: *every, Pause: *pause},
	}, p)
}

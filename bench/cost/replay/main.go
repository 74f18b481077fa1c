// Command replay computes what your own conversations would have cost with each
// policy of package cost.
//
//	go run ./cost/replay -file x.jsonl -limit 20000
//
// The file holds OpenAI chat messages. Each line is a conversation: a list of
// messages, or an object with such a list named messages.
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
	"github.com/seed-c1b73e60/convo/bench/internal/harness"
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
	file := flags.String("file", "", `file of OpenAI chat messages, one conversation per line: [...] or {"messages": [...]}`)
	limit := flags.Int("limit", 100_000, "the most tokens that a request may have")
	chain := flags.Int("chain", 1, "number of conversations to join into one")
	anthropic := cost.Profiles()[0]
	p := cost.Prices{Name: "units"}
	flags.Float64Var(&p.Read, "read", anthropic.Read, "price of a token read from the cache")
	flags.Float64Var(&p.Write, "write", anthropic.Write, "price of a token written to the cache")
	flags.Float64Var(&p.Uncached, "uncached", anthropic.Uncached, "price of an uncached input token")
	flags.Float64Var(&p.Output, "output", anthropic.Output, "price of an output token")
	least := flags.Int("min", 1024, "number of tokens below which nothing is cached")
	ttl := flags.Duration("ttl", 0, "how long the cache lasts; 0 means for ever")
	step := flags.Duration("step", 0, "time between requests")
	every := flags.Int("every", 0, "number of requests from one pause to the next; 0 means no pauses")
	pause := flags.Duration("pause", 10*time.Minute, "length of a pause")
	folder := flags.String("peers", "peers", "directory of the programs that run other libraries; convo runs alone if empty")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case *file == "":
		return errors.New("-file is missing: name a JSONL file")
	case *limit < 1000 || *limit > 1<<30:
		return fmt.Errorf("-limit %d: want 1,000 to %d", *limit, 1<<30)
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
	fleet, err := harness.Open(*folder, messages)
	if err != nil {
		return err
	}
	err = cost.WriteOne(out, filepath.Base(*file), cs, cost.Setup{
		Window:  *limit + *limit/7,
		Reserve: *limit / 7,
		Cache:   cost.Cache{Min: *least, TTL: *ttl},
		Clock:   cost.Clock{Step: *step, Every: *every, Pause: *pause},
	}, p, fleet)
	return errors.Join(err, fleet.Broken, fleet.Close())
}

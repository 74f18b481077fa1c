// Command programs gives agents that others have written a task that does not fit into their window: to
// read 60 files of 6 kB, one after the other, with a rule in the first message. The provider is that
// of convotest/provider. Each program is run alone, behind convo proxy, which watches, behind
// convo proxy -compact, and so with a restart of both.
//
//	ci/programs.sh                 installs the programs and runs all
//	go run ./programs -dir DIR codex@0.171.0
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/bench/internal/measure"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "programs:", err)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, messages io.Writer) error {
	flags := flag.NewFlagSet("programs", flag.ContinueOnError)
	flags.SetOutput(messages)
	var r runner
	flags.StringVar(&r.dir, "dir", "", "the folder that holds a folder NAME@VERSION for each program")
	flags.StringVar(&r.convo, "convo", "", "the command convo; if absent, package transport is used in its place")
	flags.IntVar(&r.files, "files", 60, "how many files are to be read")
	flags.DurationVar(&r.limit, "limit", 10*time.Minute, "how long a program may run")
	flags.StringVar(&r.bodies, "bodies", "", "a folder for all requests and what the programs say")
	chosen := flags.String("ways", strings.Join(ways, ","), "in which ways the programs are run")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var rows [][]string
	var all error
	for _, arg := range flags.Args() {
		name, version, _ := strings.Cut(arg, "@")
		i := slices.IndexFunc(programs, func(p program) bool { return p.name == name })
		if i < 0 {
			return fmt.Errorf("there is no program %s", name)
		}
		p := programs[i]
		for way := range strings.SplitSeq(*chosen, ",") {
			if way == restarted && p.again == nil {
				continue
			}
			start := time.Now()
			t, err := r.run(ctx, p, version, way)
			if err == nil {
				err = t.check(way, r.files)
			}
			if err != nil {
				all = errors.Join(all, fmt.Errorf("%s %s: %w", name, way, err))
			}
			fmt.Fprintf(messages, "%s %s: %+v %v %.0fs\n", name, way, t, err, time.Since(start).Seconds())
			rows = append(rows, []string{name, version, p.format, strconv.Itoa(p.window), way, strconv.Itoa(t.requests), strconv.Itoa(t.refused),
				strconv.Itoa(t.steps), strconv.Itoa(t.compactions), yes(t.hasRule), fmt.Sprintf("%.1f %%", 100*float64(t.same)/float64(max(t.before, 1)))})
		}
	}
	return errors.Join(all, measure.Table(out, []string{"program", "version", "API", "window", "way", "requests", "refused", "steps done", "compactions", "rule in the last request", "prefix kept"}, rows))
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// check returns what is wrong with a run.
func (t tally) check(way string, files int) error {
	isCompacted := way == compacted || way == restarted
	switch {
	case isCompacted && (t.steps < files || t.refused > 0):
		return fmt.Errorf("%d of %d steps, %d requests refused: %s", t.steps, files, t.refused, t.refusal)
	case isCompacted && !t.hasRule:
		return errors.New("the rule is not in the last request")
	case !isCompacted && t.refused == 0:
		return errors.New("no request was refused: the task is no test")
	case !isCompacted && t.changed > 0:
		return fmt.Errorf("%d bodies were changed", t.changed)
	}
	return nil
}

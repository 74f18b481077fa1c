package judge

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// ErrAbsent is wrapped by the error of a program whose judges cannot be had here.
var ErrAbsent = errors.New("not available here")

// Main is the main function of a module with judges. It prints what they say as JSON.
func Main(judges ...*Judge) {
	flags := flag.NewFlagSet("judge", flag.ExitOnError)
	n := flags.Int("n", 10_000, "how many requests to judge, at least")
	seed := flags.Uint64("seed", 1, "the seed of the random conversations")
	verbose := flags.Bool("v", false, "print text, with the shortest request for each objection")
	_ = flags.Parse(os.Args[1:]) // ends the program if it fails
	counts, err := All(judges, *n, *seed)
	if err == nil && *verbose {
		Explain(os.Stdout, counts)
	} else if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(counts)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(1)
	}
}

// All asks all judges, each for its share of n requests by the number of its formats.
// If the environment variable CONVO_TRANSCRIPTS names directories, see [Recorded], their
// conversations come in addition.
func All(judges []*Judge, n int, seed uint64) ([]Count, error) {
	formats := 0
	for _, j := range judges {
		formats += len(j.Formats)
	}
	more := func(look func(Snapshot) (bool, error)) error {
		for _, dir := range filepath.SplitList(os.Getenv("CONVO_TRANSCRIPTS")) {
			if err := Recorded(dir)(look); err != nil {
				return err
			}
		}
		return nil
	}
	var all []Count
	for _, j := range judges {
		counts, err := j.Count(n*len(j.Formats)/formats, seed, more)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", j.Name, err)
		}
		all = append(all, counts...)
	}
	return all, nil
}

// Explain writes each objection, and the shortest request that it is about.
func Explain(w io.Writer, counts []Count) {
	for _, c := range counts {
		fmt.Fprintf(w, "%s, %s: %d requests, %d refused, %d of them not explained\n", c.Judge, c.Format, c.Requests, c.Refused, c.Unexplained)
		for _, r := range c.Reasons {
			fmt.Fprintf(w, "  %d: %s\n", r.Requests, r.Objection)
			if r.Wrong != "" {
				fmt.Fprintf(w, "    wrong: %s. %s\n", r.Wrong, r.Because)
			}
			fmt.Fprintf(w, "    %s\n", strings.ToValidUTF8(r.Shortest, "?"))
		}
	}
}

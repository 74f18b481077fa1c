// Command run asks all judges, and prints what they say as a table.
//
//	go run ./judge/run -n 100000
//
// It ends with an error if a judge objects to something that is not explained, or if a
// judge does not work. A judge that cannot be had here is named with the reason. It names
// explanations of objections that did not come up, which are also an error if all judges
// have read requestsOfAll requests.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/bench/internal/harness"
	"github.com/seed-c1b73e60/convo/bench/internal/measure"
	"github.com/seed-c1b73e60/convo/bench/judge"
)

// requestsOfAll is how many requests bring up each objection that is explained.
const requestsOfAll = 100_000

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "run:", err)
		}
		os.Exit(1)
	}
}

func run(args []string, out, messages io.Writer) error {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.SetOutput(messages)
	n := flags.Int("n", requestsOfAll, "how many requests to judge, at least, if all judges are there")
	seed := flags.Uint64("seed", 1, "the seed of the random conversations")
	folder := flags.String("judges", "judge", "directory of the programs of the judges")
	if err := flags.Parse(args); err != nil {
		return err
	}
	programs, err := filepath.Glob(filepath.Join(*folder, "*", "judge_test.go"))
	if err != nil {
		return err
	}
	if len(programs) == 0 {
		return fmt.Errorf("no judges in %s", *folder)
	}
	start := time.Now()
	var all []judge.Count
	var missing []string
	var broken error
	for _, p := range programs {
		dir := filepath.Dir(p)
		fmt.Fprintf(messages, "%s ...\n", filepath.Base(dir))
		counts, reason, err := ask(dir, *n/len(programs)+1, *seed)
		switch {
		case err != nil:
			broken = errors.Join(broken, fmt.Errorf("%s: %w", filepath.Base(dir), err))
		case reason != "":
			missing = append(missing, filepath.Base(dir)+": "+reason)
		}
		all = append(all, counts...)
	}
	err = errors.Join(broken, write(out, all, missing, time.Since(start)))
	idle := unused(all, os.Getenv("CONVO_TRANSCRIPTS") != "")
	for _, because := range idle {
		fmt.Fprintf(out, "Explains nothing: %s\n", because)
	}
	if len(idle) > 0 && *n >= requestsOfAll && len(missing) == 0 && broken == nil {
		err = errors.Join(err, fmt.Errorf("%d explanations explain nothing", len(idle)))
	}
	return err
}

// ask runs a judge's program. If it cannot be had here, ask returns the reason.
func ask(dir string, n int, seed uint64) (counts []judge.Count, reason string, err error) {
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		if reason, err := harness.Download(dir); reason != "" || err != nil {
			return nil, reason, err
		}
	}
	var out, messages bytes.Buffer
	c := exec.Command("go", "run", ".", "-n", strconv.Itoa(n), "-seed", strconv.FormatUint(seed, 10))
	c.Dir, c.Stdout, c.Stderr = dir, &out, &messages
	if err := c.Run(); err != nil {
		said := strings.TrimSpace(messages.String())
		if strings.Contains(said, judge.ErrAbsent.Error()) {
			return nil, strings.ReplaceAll(said, "\n", " "), nil
		}
		return nil, "", fmt.Errorf("%w: %s", err, said)
	}
	err = json.Unmarshal(out.Bytes(), &counts)
	return counts, "", err
}

// write writes the tables. It returns an error for objections without an explanation.
func write(w io.Writer, all []judge.Count, missing []string, took time.Duration) error {
	var rows [][]string
	requests, refused, unexplained := 0, 0, 0
	for _, c := range all {
		kind := "module"
		if c.Own {
			kind = "restated rules"
		}
		requests, refused, unexplained = requests+c.Requests, refused+c.Refused, unexplained+c.Unexplained
		rows = append(rows, []string{c.Judge, kind, c.Format, strconv.Itoa(c.Requests), strconv.Itoa(c.Refused), strconv.Itoa(c.Unexplained)})
	}
	rows = append(rows, []string{"all", "", "", strconv.Itoa(requests), strconv.Itoa(refused), strconv.Itoa(unexplained)})
	err := measure.Table(w, []string{"judge", "what it is", "format", "requests", "refused", "not explained"}, rows)
	if err == nil {
		err = measure.Table(w, []string{"requests", "objection, such as", "judges", "who is wrong", "why"}, reasons(all))
	}
	for _, m := range slices.Sorted(slices.Values(missing)) {
		fmt.Fprintf(w, "Not available here: %s\n", m)
	}
	fmt.Fprintf(w, "Took %s.\n", took.Round(time.Second))
	if err == nil && unexplained > 0 {
		err = fmt.Errorf("%d requests are refused for reasons that are not explained", unexplained)
	}
	return err
}

// unused returns the explanations of objections that no judge has had, but for those of
// recorded conversations if there were none.
func unused(all []judge.Count, recorded bool) []string {
	used := map[string]bool{}
	for _, c := range all {
		for _, r := range c.Reasons {
			used[r.Because] = true
		}
	}
	var list []string
	for _, c := range all {
		for _, k := range c.Known {
			if !used[k.Because] && (recorded || !k.Recorded) {
				used[k.Because] = true
				list = append(list, k.Because)
			}
		}
	}
	return list
}

// reasons returns a row for each explanation, and for each objection that has none.
func reasons(all []judge.Count) [][]string {
	var rows [][]string
	requests, judges := map[string]int{}, map[string][]string{}
	for _, c := range all {
		for _, r := range c.Reasons {
			key := r.Because
			if r.Wrong == "" {
				r.Wrong, r.Because, key = "not explained", r.Shortest, r.Objection
			}
			if requests[key] == 0 {
				rows = append(rows, []string{key, r.Objection, "", r.Wrong, r.Because})
			}
			requests[key] += r.Requests
			if !slices.Contains(judges[key], c.Judge) {
				judges[key] = append(judges[key], c.Judge)
			}
		}
	}
	for _, row := range rows {
		key := row[0]
		row[0], row[2] = strconv.Itoa(requests[key]), judges[key][0]
		if n := len(judges[key]); n > 1 {
			row[2] += fmt.Sprintf(" and %d more", n-1)
		}
	}
	return rows
}

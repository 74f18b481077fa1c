// Package keep measures what a conversation still holds after its compactions: the
// user's task and rules, the work on the current file, and the names and figures that are
// needed later.
//
// Most conversations are simulated, so that it is known what matters. An [Agent] reads
// files and edits them, for a user who has set a task and rules. After each compaction
// the view is searched for the literal strings. A [Talk] is a conversation with needles,
// literal strings that are needed later; each [Policy] goes through the same talks, and
// where a needle is needed the view, the summary and an index of package recall are searched
// for it. No model is called: [Mediocre] writes what a model writes that reads little, and
// [Failing] fails every third time.
package keep

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/internal/measure"
)

// Mediocre writes a summary as a model does that reads little: the first half of the
// summary before, then the first words of each message, and every third name in it with the
// words before, at most three. The newest messages have the room.
func Mediocre(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
	var lines []string
	for _, m := range req.Messages {
		lines = append(lines, firstWords(m.Text(), 12))
		text := said(m)
		taken := 0
		for _, f := range identifiers(text) {
			if taken < 3 && crc32.ChecksumIEEE([]byte(f.word))%3 == 0 {
				lines = append(lines, strings.ToValidUTF8(text[max(f.at-60, 0):f.at], "")+f.word)
				taken++
			}
		}
	}
	half := req
	half.MaxTokens = (req.MaxTokens - 10) / 2
	old := strings.TrimPrefix(req.Previous, "## Goal\n")
	for req.Count(old) > half.MaxTokens {
		old = old[:len(old)*7/8]
	}
	return convo.Summary{Text: strings.ToValidUTF8("## Goal\n"+old+" "+newestThat(lines, " ", half), "")}, nil
}

func firstWords(text string, n int) string {
	words := strings.Fields(text)
	return strings.Join(words[:min(len(words), n)], " ")
}

// Failing returns a summarizer that writes as Mediocre, and fails every third time.
func Failing() convo.SummarizerFunc {
	n := 0
	return func(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		if n++; n%3 == 0 {
			return convo.Summary{}, errors.New("503 Service Unavailable")
		}
		return Mediocre(ctx, req)
	}
}

// A Ladder is a strategy by name.
type Ladder struct {
	Name     string
	Strategy func() convo.CompactionStrategy
}

// Ladders returns the strategies of the tables.
func Ladders() []Ladder {
	with := func(s convo.Summarizer) convo.CompactionStrategy {
		return convo.Chain(convo.ClearMedia{}, convo.ClearToolResults{}, convo.Summarize{With: s}, convo.Truncate{})
	}
	return []Ladder{
		{"no summary", func() convo.CompactionStrategy {
			return convo.Chain(convo.ClearMedia{}, convo.ClearToolResults{}, convo.Truncate{})
		}},
		{"default", func() convo.CompactionStrategy { return nil }},
		{"a model", func() convo.CompactionStrategy { return with(convo.SummarizerFunc(Mediocre)) }},
		{"a model that fails", func() convo.CompactionStrategy { return with(Failing()) }},
		{"window of 40", func() convo.CompactionStrategy {
			return convo.Chain(convo.SlidingWindow{KeepLast: 40, TriggerAt: 80}, convo.Truncate{})
		}},
	}
}

// Transcripts is the environment variable that names a directory of conversations.
const Transcripts = "CONVO_TRANSCRIPTS"

// Write writes the tables.
func Write(w io.Writer, quick bool) error {
	if err := writeAgents(w, quick); err != nil {
		return err
	}
	all, err := exams(quick)
	if err != nil {
		return err
	}
	for _, kind := range all {
		if err := writeScores(w, kind); err != nil {
			return err
		}
	}
	dir := os.Getenv(Transcripts)
	if dir == "" || quick {
		return writeNotes(w)
	}
	real, err := RealTalks(dir)
	if err != nil {
		return err
	}
	those, err := Exam("real conversations", windows, Real(real))
	if err != nil {
		return err
	}
	return errors.Join(writeScores(w, those), writeNotes(w))
}

// windows are the windows of generated and of real conversations.
var windows = []int{16_000, 32_000, 64_000}

// exams returns the results with generated conversations, and those with coding agents.
func exams(quick bool) ([][]Result, error) {
	windows, talks, steps := windows, 4, 300
	if quick {
		windows, talks, steps = windows[:1], 1, 60
	}
	generated, err := Exam("generated conversations", windows, Generated(talks))
	if err != nil {
		return nil, err
	}
	agents, err := Exam("the conversations of coding agents", []int{128_000}, Agents(steps))
	return [][]Result{generated, agents}, err
}

// writeAgents writes the tables of the simulated agents.
func writeAgents(w io.Writer, quick bool) error {
	steps := 300
	if quick {
		steps = 100
	}
	for _, factor := range []float64{1.03, 1.5} {
		fmt.Fprintf(w, "### Coding agent, %d steps, a provider that counts %.2f tokens for one\n\n", steps, factor)
		header := []string{"strategy", "calls a step", "user", "task", "rules", "edits", "compactions", "dropped unread", "tokens a request", "cost"}
		var rows [][]string
		for _, l := range Ladders() {
			for calls := 1; calls <= 3; calls++ {
				for _, users := range []int{1, 30, 0} {
					m, err := Agent{Steps: steps, Calls: calls, Users: users, Factor: factor, Window: 128_000, Seed: 1}.Run(convo.Options{Strategy: l.Strategy()})
					if err != nil {
						return fmt.Errorf("%s: %w", l.Name, err)
					}
					rows = append(rows, []string{
						l.Name, fmt.Sprint(calls), every(users), percent(m.Task), percent(m.Rules), percent(m.Edits), fmt.Sprint(m.Compactions),
						fmt.Sprint(m.Unread), fmt.Sprint(m.Input / int64(m.Requests)), fmt.Sprintf("%.1f M", m.Units/1e6),
					})
				}
			}
		}
		if err := measure.Table(w, header, rows); err != nil {
			return err
		}
	}
	return nil
}

func every(users int) string {
	switch users {
	case 0:
		return "in the beginning"
	case 1:
		return "each step"
	}
	return fmt.Sprintf("each %d steps", users)
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

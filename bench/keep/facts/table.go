package facts

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/internal/measure"
	"github.com/seed-c1b73e60/convo/bench/keep"
)

// Policies returns the columns of the tables.
func Policies() []Policy {
	const code = "Claude Code: a summary of everything, and nothing is read again; anthropics/claude-code issue 12004 has the figures of its start"
	const cli = "Codex CLI: the newest user messages of 20,000 tokens, at most a sixth of the window here, and a summary; openai/codex codex-rs/core/src/compact.rs, and pull request 11516 for its start"
	return []Policy{
		{"convo, default", "", ours(0, nil)},
		{"convo, ideal", "", withModel(0, ideal)},
		{"convo, mediocre", "", withModel(0, mediocre)},
		{"Claude Code, ideal", code, claudeCode(ideal)},
		{"Claude Code, mediocre", code, claudeCode(mediocre)},
		{"Codex, ideal", cli, codex(ideal)},
		{"Codex, mediocre", cli, codex(mediocre)},
		{"trim to half", `LangChain: trim_messages with strategy "last", and half of the limit as its bound`, trimHalf},
	}
}

// Write writes the tables: the rows whose names begin with one of a comma-separated list, or
// all if that is empty. The rows of the last two tables are called curves and tokenizers.
func Write(w io.Writer, quick bool, names string) error {
	seeds, runs := 3, 10
	if quick {
		seeds, runs = 1, 2
	}
	chosen := func(name string) bool {
		return slices.ContainsFunc(strings.Split(names, ","), func(begin string) bool { return strings.HasPrefix(name, begin) })
	}
	kinds := slices.DeleteFunc(Kinds(), func(k Kind) bool { return !chosen(k.Name) })
	sets := slices.DeleteFunc(Sets(), func(s Set) bool { return !chosen(s.Name) })
	if len(kinds) > 0 {
		if err := writeKinds(w, kinds, seeds); err != nil {
			return err
		}
	}
	if len(sets) > 0 {
		if err := writeSets(w, sets); err != nil {
			return err
		}
	}
	if chosen("curves") {
		if err := writeCurves(w, 1); err != nil {
			return err
		}
	}
	if chosen("tokenizers") {
		if err := writeFactors(w, runs); err != nil {
			return err
		}
	}
	return writeNotes(w)
}

// writeKinds writes what the requests held, and how often each policy compacted.
func writeKinds(w io.Writer, kinds []Kind, seeds int) error {
	header := []string{"view %/tokens/billed"}
	for _, p := range Policies() {
		header = append(header, p.Name)
	}
	var views, counts [][]string
	for _, k := range kinds {
		view, number := []string{k.Name}, []string{k.Name}
		for _, p := range Policies() {
			s, err := k.score(p, seeds)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", k.Name, p.Name, err)
			}
			view = append(view, fmt.Sprintf("%.0f/%.1f/%.0f", 100*s.View(), s.Mean()/1000, s.Billed()/1000/float64(seeds)))
			number = append(number, fmt.Sprintf("%d/%d/%d", s.Compactions/seeds, s.Calls/seeds, s.Over))
		}
		views, counts = append(views, view), append(counts, number)
	}
	if err := measure.Table(w, header, views); err != nil {
		return err
	}
	header = slices.Clone(header)
	header[0] = "compactions/calls/too large"
	return measure.Table(w, header, counts)
}

// score has a policy go through the talks of some seeds.
func (k Kind) score(p Policy, seeds int) (all Score, err error) {
	for seed := range seeds {
		s, err := p.Sit(k.Talk(uint64(seed)), k.Window)
		if err != nil {
			return all, err
		}
		all = all.plus(s)
	}
	return all, nil
}

// writeSets writes what agents read again.
func writeSets(w io.Writer, sets []Set) error {
	header := []string{"re-reads/compactions/sent/billed"}
	for _, p := range Policies() {
		header = append(header, p.Name)
	}
	var rows [][]string
	for _, set := range sets {
		row := []string{set.Name}
		for _, p := range Policies() {
			s, err := p.Work(set)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", set.Name, p.Name, err)
			}
			row = append(row, fmt.Sprintf("%d/%d/%d/%.0f", s.Rereads, s.Compactions, s.Input/1000, s.Billed()/1000))
		}
		rows = append(rows, row)
	}
	return measure.Table(w, header, rows)
}

// writeFactors writes what is dropped unread by agents whose provider counts more or fewer
// tokens than the estimate. They read three files a step, and their user speaks at each 30th.
func writeFactors(w io.Writer, runs int) error {
	header := []string{"tokens for one", "strategy", "runs", "with losses", "messages dropped unread", "of the user", "summaries dropped", "least task", "least rules", "least edits"}
	var rows [][]string
	ladders := []keep.Ladder{
		{Name: "default", Strategy: func() convo.CompactionStrategy { return nil }},
		{Name: "a model", Strategy: func() convo.CompactionStrategy { return ladder(teller) }},
	}
	for _, factor := range []float64{0.8, 1.03, 1.5, 1.8, 2, 2.2} {
		for _, l := range ladders {
			var all keep.Memory
			bad := 0
			task, rules, edits := 1.0, 1.0, 1.0
			for seed := range runs {
				m, err := keep.Agent{Steps: 300, Calls: 3, Users: 30, Factor: factor, Window: 128_000, Seed: uint64(seed)}.Run(convo.Options{Strategy: l.Strategy()})
				if err != nil {
					return err
				}
				all.Unread, all.Words, all.Summaries = all.Unread+m.Unread, all.Words+m.Words, all.Summaries+m.Summaries
				bad += min(m.Words+m.Summaries, 1)
				task, rules, edits = min(task, m.Task), min(rules, m.Rules), min(edits, m.Edits)
			}
			rows = append(rows, []string{
				fmt.Sprint(factor), l.Name, fmt.Sprint(runs), fmt.Sprint(bad), fmt.Sprint(all.Unread), fmt.Sprint(all.Words), fmt.Sprint(all.Summaries),
				percent(task), percent(rules), percent(edits),
			})
		}
	}
	return measure.Table(w, header, rows)
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// writeNotes writes what the cells mean, and what the policies of others are rebuilt after.
func writeNotes(w io.Writer) error {
	notes := []string{
		"view: the share of facts that the request holds for which they are needed. tokens: of that request, in thousands.",
		"billed, sent: in thousands of tokens for one conversation. What is read from the cache costs 0.1, what is written to it 1.25, output 5. The calls of a summarizer are part of billed.",
		"calls: of the model, for summaries. too large: requests that did not fit.",
		"ideal: the model writes each fact that it is given to read and that is needed later. mediocre: it writes 55 % of the new facts, 5 % of them wrong, and 90 % of the old ones.",
		"with losses: runs in which a message of the user or a summary was dropped unread.",
		"re-reads: of 200 or 300 edits, how often the agent had to read again what it had read.",
	}
	named := map[string]bool{}
	for _, p := range Policies() {
		if p.Source != "" && !named[p.Source] {
			named[p.Source] = true
			notes = append(notes, "Rebuilt after "+p.Source+".")
		}
	}
	for _, note := range notes {
		if _, err := fmt.Fprintf(w, "- %s\n", note); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}

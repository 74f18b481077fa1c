package cost

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo"

	"github.com/seed-c1b73e60/convo/bench/internal/harness"
	"github.com/seed-c1b73e60/convo/bench/internal/measure"
)

// Transcripts is the name of an environment variable. It may name a directory of
// JSONL files with real conversations for the tables.
const Transcripts = "CONVO_TRANSCRIPTS"

// Write replays conversations with all policies and writes the costs. It takes
// generated conversations and those in the directory named by [Transcripts]. If
// quick is set it takes seconds, with a few generated ones.
func Write(w io.Writer, quick bool, fleet *harness.Fleet) error {
	all, err := generated(quick)
	if err != nil {
		return err
	}
	if dir := folder(os.Getenv(Transcripts)); dir != nil && !quick {
		recorded, err := transcripts(dir)
		if err != nil {
			return err
		}
		all = append(recorded, all...)
	}
	studies := make([]*study, len(all))
	for i, sc := range all {
		studies[i] = newStudy(sc, fleet)
	}
	return writeStudies(w, studies)
}

// writeStudies writes the notes and all tables.
func writeStudies(w io.Writer, studies []*study) error {
	if err := measure.Notes(w,
		"A request is made before each assistant message. The part that repeats the beginning of the request before is read from the cache, and the rest is written to it; below 1,024 tokens the cache is not used. A unit is the price of an uncached input token. Prices (read/write/uncached/output): "+priceList()+".",
		"A message has a token for every four bytes of text, and five more. convo compares its limits with its own estimate, which learns from the reported usage.",
		"“Above optimum” compares with the cheapest choice of cuts and clears, made with knowledge of the whole conversation, that retains at least as many tokens. The comparison is with a lower bound, so the true figure is at most the one shown. Figures in brackets are for policies that do something else, such as summaries or gaps in the middle.",
	); err != nil {
		return err
	}
	for _, part := range []func(io.Writer, []*study) error{writeDefaults, writeLimits, writePolicies, writeMarks, writeChains, writePlanners, writeSteps} {
		if err := part(w, studies); err != nil {
			return err
		}
	}
	return nil
}

func priceList() string {
	var list []string
	for _, p := range Profiles() {
		list = append(list, fmt.Sprintf("%s %g/%g/%g/%g", p.Name, p.Read, p.Write, p.Uncached, p.Output))
	}
	return strings.Join(list, "; ")
}

func thousands(units float64) string { return measure.Count(int(units/1000 + 0.5)) }
func percent(share float64) string   { return fmt.Sprintf("%.1f", 100*share) }

// writeDefaults compares convo's defaults with the optimum.
func writeDefaults(w io.Writer, studies []*study) error {
	header := []string{"convo with its defaults", "requests", "limit", "mean retained", "compactions", "prefix reuse %"}
	for _, p := range Profiles() {
		header = append(header, p.Name+": thousand units", "above optimum", "above cuts alone")
	}
	var rows [][]string
	for _, s := range studies {
		t, err := s.run(Default())
		if err != nil {
			return err
		}
		row := []string{
			fmt.Sprintf("%s × %d", s.name, len(s.cs)), measure.Count(t.Requests), measure.Count(s.setup.Limit()),
			measure.Count(int(t.Mean())), fmt.Sprint(t.Rewrites), percent(t.Reuse()),
		}
		for _, p := range Profiles() {
			row = append(row, thousands(t.Units(p)), s.above(Default(), t, p, true), s.above(Default(), t, p, false))
		}
		rows = append(rows, row)
	}
	return measure.Table(w, header, rows)
}

// writeLimits shows convo's defaults with lower and higher limits.
func writeLimits(w io.Writer, studies []*study) error {
	header := []string{"convo with its defaults, by limit: thousand units · mean retained · above optimum"}
	var rows [][]string
	for _, s := range studies {
		header = append(header, s.name)
	}
	for _, times := range []float64{0.5, 1, 2} {
		row := []string{fmt.Sprintf("%g × the limit above", times)}
		for _, s := range studies {
			other := s
			if times != 1 {
				sc := s.scenario
				sc.setup = limited(int(times * float64(s.setup.Limit())))
				other = newStudy(sc, s.fleet)
			}
			t, err := other.run(Default())
			if err != nil {
				return err
			}
			row = append(row, summary(other, Default(), t))
		}
		rows = append(rows, row)
	}
	return measure.Table(w, header, rows)
}

// policies returns the rows of the policy tables.
func policies(cs []*Conversation, fleet *harness.Fleet) []Policy {
	all := []Policy{
		never(),
		trim(100), trim(90), trim(75), trim(50), trim(25),
		rolling(10), batched(10, 0), batched(5, 20),
		Default(),
		with("convo, Truncate alone", 0, convo.Truncate{}),
		with("convo, SlidingWindow{40} and Truncate", 0, convo.Chain(convo.SlidingWindow{KeepLast: 40}, convo.Truncate{})),
		with("convo, SlidingWindow{40, TriggerAt: 80} and Truncate", 0, convo.Chain(convo.SlidingWindow{KeepLast: 40, TriggerAt: 80}, convo.Truncate{})),
		summarized("convo, summaries, separate requests", false),
		summarized("convo, summaries, riding the cached prefix", true),
		summarized("convo, clear, then summaries, separate requests", false, convo.ClearToolResults{}),
		summarized("convo, clear, then summaries, riding the cached prefix", true, convo.ClearToolResults{}),
	}
	return append(all, peers(cs, fleet)...)
}

func writePolicies(w io.Writer, studies []*study) error {
	for _, s := range studies {
		if err := writePolicyTable(w, s, Profiles()); err != nil {
			return err
		}
	}
	return nil
}

func writePolicyTable(w io.Writer, s *study, prices []Prices) error {
	header := []string{fmt.Sprintf("%s × %d, limit %s", s.name, len(s.cs), measure.Count(s.setup.Limit())), "code"}
	for _, p := range prices {
		header = append(header, p.Name+": thousand units")
	}
	header = append(header, "above optimum", "read from cache %", "prefix reuse %", "compactions", "mean retained", "above the limit")
	var rows [][]string
	for _, p := range policies(s.cs, s.fleet) {
		t, err := s.run(p)
		if err != nil {
			return err
		}
		row := []string{p.Name, string(p.Kind)}
		for _, prices := range prices {
			row = append(row, thousands(t.Units(prices)))
		}
		over := ""
		if t.Over > 0 {
			over = fmt.Sprintf("%s of %s", measure.Count(t.Over), measure.Count(t.Requests))
		}
		rows = append(rows, append(row, s.above(p, t, prices[0], true), percent(t.HitRate()), percent(t.Reuse()),
			measure.Count(t.Rewrites), measure.Count(int(t.Mean())), over))
	}
	t, err := s.run(Default())
	if err != nil {
		return err
	}
	b := s.optimum(t, prices[0], true)
	row := []string{"optimum, with as many retained tokens as the defaults", "", fmt.Sprintf("%s to %s", thousands(b.Lower), thousands(b.Upper))}
	for range prices[1:] {
		row = append(row, "")
	}
	rows = append(rows, append(row, "", "", "", measure.Count(b.Rewrites), measure.Count(int(b.Tokens/float64(max(t.Requests, 1)))), ""))
	return measure.Table(w, header, rows)
}

// grid writes a table with a row for each policy and a column for each study.
func grid(w io.Writer, head string, all []Policy, studies []*study, cell func(s *study, p Policy, t Tally) string) error {
	header := []string{head}
	for _, s := range studies {
		header = append(header, s.name)
	}
	var rows [][]string
	for _, p := range all {
		row := []string{p.Name}
		for _, s := range studies {
			t, err := s.run(p)
			if err != nil {
				return err
			}
			row = append(row, cell(s, p, t))
		}
		rows = append(rows, row)
	}
	return measure.Table(w, header, rows)
}

// summary returns units, mean and distance from the optimum, for one cell.
func summary(s *study, p Policy, t Tally) string {
	prices := Profiles()[0]
	text := fmt.Sprintf("%s · %s", thousands(t.Units(prices)), measure.Size(t.Mean()))
	if above := s.above(p, t, prices, true); above != "" {
		text += " · " + above
	}
	if t.Over > 0 {
		text += fmt.Sprintf(" · %d above the limit", t.Over)
	}
	return text
}

const cellHelp = ": thousand units · mean retained · above optimum"

func writeMarks(w io.Writer, studies []*study) error {
	var all []Policy
	for _, n := range []int{25, 33, 40, 50, 60, 67, 75, 90} {
		all = append(all, low(n))
	}
	if err := grid(w, "low water"+cellHelp, all, studies, summary); err != nil {
		return err
	}
	last := map[*study]Tally{}
	return grid(w, "low water: units for each more token retained in a request than in the row above (reading one costs 0.1)", all, studies, func(s *study, _ Policy, t Tally) string {
		before, ok := last[s]
		last[s] = t
		if more := t.Input - before.Input; ok && more*100 > t.Input {
			p := Profiles()[0]
			return fmt.Sprintf("%.2f", (t.Units(p)-before.Units(p))/float64(more))
		}
		return ""
	})
}

func writeChains(w io.Writer, studies []*study) error {
	clearing := func(keep, least int) convo.CompactionStrategy {
		return convo.Chain(convo.ClearToolResults{KeepLast: keep, MinFree: least}, convo.Truncate{})
	}
	return grid(w, "ladder"+cellHelp, []Policy{
		Default(),
		with("convo, Truncate alone", 0, convo.Truncate{}),
		with("convo, keep the results of the newest exchange", 0, clearing(1, 0)),
		with("convo, keep 5", 0, clearing(5, 0)),
		with("convo, keep 10", 0, clearing(10, 0)),
		with("convo, keep 3, however little it frees", 0, clearing(3, -1)),
		either("convo, no dropping if clearing frees 20 % of High", 20),
		either("convo, no dropping if clearing frees 30 % of High", 30),
		either("convo, no dropping if clearing frees 40 % of High", 40),
	}, studies, summary)
}

func writePlanners(w io.Writer, studies []*study) error {
	if err := grid(w, "planner"+cellHelp, []Policy{
		low(33), Default(), low(67), low(75), byGrowth(0.5), byGrowth(0.75), byGrowth(1), byGrowth(1.25), byGrowth(1.5),
	}, studies, summary); err != nil {
		return err
	}
	var away []*study
	for _, s := range studies {
		sc := s.scenario
		sc.setup.Cache.TTL = 5 * time.Minute
		sc.setup.Clock = pauses
		away = append(away, newStudy(sc, s.fleet))
	}
	return grid(w, "a pause longer than the cache's time to live before every 25th request"+cellHelp, []Policy{
		low(25), low(33), low(40), Default(), low(67), whenCold(10), whenCold(25), whenCold(50), whenCold(75),
	}, away, summary)
}

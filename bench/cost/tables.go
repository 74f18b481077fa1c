package cost

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo"

	"github.com/seed-c1b73e60/convo/bench/internal/measure"
)

// Transcripts is the environment variable that names a folder of JSONL files
// with real conversations for the tables.
const Transcripts = "CONVO_TRANSCRIPTS"

// Write replays conversations through policies and writes what they cost:
// generated ones, and those in the folder that [Transcripts] names. Quick takes
// seconds, with a few generated ones.
func Write(w io.Writer, quick bool) error {
	all, err := generated(quick)
	if err != nil {
		return err
	}
	if dir := folder(os.Getenv(Transcripts)); dir != nil && !quick {
		real, err := transcripts(dir)
		if err != nil {
			return err
		}
		all = append(real, all...)
	}
	studies := make([]*study, len(all))
	for i, sc := range all {
		studies[i] = newStudy(sc)
	}
	if err := measure.Notes(w,
		"A request is made before each assistant message. It is billed by prefix: what it begins with as the request before is read from the cache, the rest written to it, below 1,024 tokens neither. Units are input tokens without cache; prices read/write/uncached/output: "+priceList()+".",
		"A token is four bytes of text, and five for each message. Limits of convo go by its own estimate and the usage it is told.",
		"“Above optimum” compares with the least that any choice of cuts and clears costs, made with knowledge of the whole conversation, that retains as many tokens per request on average. The figure is against a lower bound, so the truth is at most that. In brackets where a policy does something else (a summary, a hole in the middle), for comparison.",
	); err != nil {
		return err
	}
	for _, part := range []func(io.Writer, []*study) error{writeDefaults, writeLimits, writePolicies, writeMarks, writeChains, writePlanners} {
		if err := part(w, studies); err != nil {
			return err
		}
	}
	return nil
}

// WriteOne writes the table of policies for conversations of the caller's.
func WriteOne(w io.Writer, name string, cs []*Conversation, s Setup, p Prices) error {
	return writePolicyTable(w, newStudy(scenario{name: name, cs: cs, setup: s}), []Prices{p})
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

// writeDefaults shows the defaults beside the optimum.
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

// writeLimits shows the defaults in smaller and larger windows.
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
				other = newStudy(sc)
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

// policies are the rows of the big tables.
func policies(cs []*Conversation) []Policy {
	all := []Policy{
		never(),
		trim(100), trim(90), trim(75), trim(50), trim(25),
		rolling(10), batched(10, 0), batched(5, 20),
		Default(),
		with("convo, Truncate alone", 0, convo.Truncate{}),
		with("convo, SlidingWindow{40} and Truncate", 0, convo.Chain(convo.SlidingWindow{Keep: 40}, convo.Truncate{})),
		with("convo, SlidingWindow{40, TriggerAt: 80} and Truncate", 0, convo.Chain(convo.SlidingWindow{Keep: 40, TriggerAt: 80}, convo.Truncate{})),
		summarized("convo, summaries, requests of their own", false),
		summarized("convo, summaries, riding the cached prefix", true),
		summarized("convo, clear, then summaries of their own", false, convo.ClearToolResults{}),
		summarized("convo, clear, then summaries riding", true, convo.ClearToolResults{}),
	}
	return append(all, peers(cs)...)
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
	for _, p := range policies(s.cs) {
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
	row := []string{"optimum, as many retained tokens as the defaults", "", fmt.Sprintf("%s to %s", thousands(b.Lower), thousands(b.Upper))}
	for range prices[1:] {
		row = append(row, "")
	}
	rows = append(rows, append(row, "", "", "", measure.Count(b.Rewrites), measure.Count(int(b.Tokens/float64(max(t.Requests, 1)))), ""))
	return measure.Table(w, header, rows)
}

// grid writes a table of policies by studies.
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

// summary is units, mean and distance in one cell.
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
	return grid(w, "low water: units for each further token retained in a request, beside the row above (reading one: 0.1)", all, studies, func(s *study, _ Policy, t Tally) string {
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
	clear := func(keep, least int) convo.CompactionStrategy {
		return convo.Chain(convo.ClearToolResults{KeepLast: keep, MinFreed: least}, convo.Truncate{})
	}
	return grid(w, "ladder"+cellHelp, []Policy{
		Default(),
		with("convo, Truncate alone", 0, convo.Truncate{}),
		with("convo, keep the results of the newest exchange", 0, clear(1, 0)),
		with("convo, keep 5", 0, clear(5, 0)),
		with("convo, keep 10", 0, clear(10, 0)),
		with("convo, keep 3, whatever it frees", 0, clear(3, -1)),
		either("convo, clearing that frees 20 % of High ends it", 20),
		either("convo, clearing that frees 30 % of High ends it", 30),
		either("convo, clearing that frees 40 % of High ends it", 40),
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
		away = append(away, newStudy(sc))
	}
	return grid(w, "a pause longer than the cache lives before every 25th request"+cellHelp, []Policy{
		low(25), low(33), low(40), Default(), low(67), whenCold(10), whenCold(25), whenCold(50), whenCold(75),
	}, away, summary)
}

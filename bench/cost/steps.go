package cost

import (
	"fmt"
	"io"

	"github.com/seed-c1b73e60/convo/bench/internal/measure"
)

// A terms is what a provider asks: its prices, and the shortest prefix that it caches.
type terms struct {
	Prices
	min int
}

// markets returns the terms of the tables about extra steps: reads from the cache at a tenth
// and at a twentieth of the input, writes for five minutes and for an hour, and the shortest
// cached lengths that providers name.
func markets() (all []terms) {
	prices := []Prices{
		{Name: "reads at 0.1", Read: 0.1, Write: 1.25, Uncached: 1, Output: 5},
		{Name: "reads at 0.05", Read: 0.05, Write: 1.25, Uncached: 1, Output: 5},
		{Name: "reads at 0.1, writes for an hour at 2", Read: 0.1, Write: 2, Uncached: 1, Output: 5},
	}
	for _, p := range prices {
		for _, least := range []int{512, 1024, 4096} {
			all = append(all, terms{p, least})
		}
	}
	return all
}

// left returns how many tokens had left the requests of a policy at the end, compared with one
// that removes nothing.
func left(all, t Tally) int64 { return max(all.Last-t.Last, 0) }

// withSteps returns the price of a tally if the agent makes so many extra steps for each 1,000
// tokens that left. An extra step costs as much as the others do on average.
func withSteps(all, t Tally, p Prices, steps float64) float64 {
	units := t.Units(p)
	return units + steps*float64(left(all, t))/1000*units/float64(max(t.Requests, 1))
}

// breakEven returns how many extra steps for each 1,000 tokens that left make a policy as
// expensive as a policy that removes nothing. It is negative if it is more expensive without
// any.
func breakEven(all, t Tally, p Prices) (steps float64, ok bool) {
	each := withSteps(all, t, p, 1) - t.Units(p)
	if each == 0 {
		return 0, false
	}
	return (all.Units(p) - t.Units(p)) / each, true
}

// stepPolicies are the policies of the tables about extra steps.
func stepPolicies() []Policy {
	return []Policy{
		low(25), Default(), low(75),
		trim(50), batched(10, 0),
		summarized("convo, summaries, riding the cached prefix", true),
		summarized("convo, summaries, separate requests", false),
	}
}

// writeSteps says how many extra steps a policy may cause until it does not pay any more.
func writeSteps(w io.Writer, studies []*study) error {
	if err := measure.Notes(w,
		"An agent whose context lost something makes extra steps to find it again. A step costs what the others cost on average, and what it adds to later requests is left out. The first table has the thousand units with 0 to 1 extra steps for each 1,000 tokens that left, where reads cost 0.1.",
		"The next tables have the number of extra steps for each 1,000 tokens that left at which a policy costs as much as never compacting in an unlimited window. With more, it does not pay. Others measured 0.27 for cleared results, between -0.14 and 0.62.",
	); err != nil {
		return err
	}
	if err := writeCurves(w, studies); err != nil {
		return err
	}
	for _, s := range studies {
		if err := writeBreakEven(w, s); err != nil {
			return err
		}
	}
	return nil
}

// writeCurves writes the price of each policy with 0 to 1 extra steps.
func writeCurves(w io.Writer, studies []*study) error {
	return grid(w, "thousand units with 0 · 0.25 · 0.5 · 0.75 · 1 extra steps", append([]Policy{never()}, stepPolicies()...), studies, func(s *study, _ Policy, t Tally) string {
		all, text := s.tallies[never().Name], ""
		for _, steps := range []float64{0, 0.25, 0.5, 0.75, 1} {
			if text != "" {
				text += " · "
			}
			text += thousands(withSteps(all, t, markets()[1].Prices, steps))
		}
		return text
	})
}

// writeBreakEven writes the break-even of each policy for each market.
func writeBreakEven(w io.Writer, s *study) error {
	header := []string{"break-even in steps: " + s.name}
	for _, p := range stepPolicies() {
		header = append(header, p.Name)
	}
	var rows [][]string
	for _, m := range markets() {
		sc := s.scenario
		sc.setup.Cache.Min = m.min
		other := newStudy(sc, s.fleet)
		all, err := other.run(never())
		if err != nil {
			return err
		}
		row := []string{fmt.Sprintf("%s, from %s tokens", m.Name, measure.Count(m.min))}
		for _, p := range stepPolicies() {
			t, err := other.run(p)
			if err != nil {
				return err
			}
			cell := "nothing left"
			if steps, ok := breakEven(all, t, m.Prices); ok {
				cell = fmt.Sprintf("%.2f", steps)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return measure.Table(w, header, rows)
}

package facts

import (
	"fmt"
	"io"

	"github.com/seed-c1b73e60/convo/bench/internal/measure"
	"github.com/seed-c1b73e60/convo/bench/internal/plot"
)

// A Point is what a policy made of all kinds of talks, on average over the kinds, in
// thousandths.
type Point struct {
	Policy string
	Low    int // in percent of the window; 0: the policy has no such size, or its own
	View   int // of the facts that were needed
	Tokens int // of the requests that needed them, of the window
	Billed int // of the bill of the trim to half
}

// lows are the shares of the window, in percent, that a compaction goes down to in the curves.
var lows = []int{10, 20, 30, 40, 50}

// curve returns a policy at each size.
func curve(name string, start func(low int) func(*desk) (keeper, error)) (all []Policy) {
	for _, low := range lows {
		all = append(all, Policy{Name: name, start: start(low)})
	}
	return all
}

// Measure returns the points of the curves, and those of the policies that have no such size.
func Measure() ([]Point, error) { return curves(2) }

func curves(seeds int) ([]Point, error) {
	var all []Policy
	all = append(all, curve("convo, default", func(low int) func(*desk) (keeper, error) { return ours(low, nil) })...)
	all = append(all, curve("convo, ideal", func(low int) func(*desk) (keeper, error) { return withModel(low, ideal) })...)
	all = append(all, curve("convo, mediocre", func(low int) func(*desk) (keeper, error) { return withModel(low, mediocre) })...)
	all = append(all, curve("trim", func(low int) func(*desk) (keeper, error) {
		return func(d *desk) (keeper, error) { return trimTo(d, d.window*low/100) }
	})...)
	sized := len(all)
	all = append(all, Policies()[3:7]...)
	half := make([]float64, len(Kinds())) // the bill of the trim to half
	for i, k := range Kinds() {
		s, err := k.score(Policies()[7], seeds)
		if err != nil {
			return nil, err
		}
		half[i] = s.Billed()
	}
	var points []Point
	for n, p := range all {
		var view, tokens, billed float64
		for i, k := range Kinds() {
			s, err := k.score(p, seeds)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", k.Name, p.Name, err)
			}
			view += s.View()
			tokens += s.Mean() / float64(k.Window)
			billed += s.Billed() / half[i]
		}
		kinds := float64(len(Kinds()))
		point := Point{Policy: p.Name, View: plot.Round(1000 * view / kinds), Tokens: plot.Round(1000 * tokens / kinds), Billed: plot.Round(1000 * billed / kinds)}
		if n < sized {
			point.Low = lows[n%len(lows)]
		}
		points = append(points, point)
	}
	return points, nil
}

// writeCurves writes the points as a table.
func writeCurves(w io.Writer, seeds int) error {
	points, err := curves(seeds)
	if err != nil {
		return err
	}
	var rows [][]string
	for _, p := range points {
		low := ""
		if p.Low > 0 {
			low = fmt.Sprintf("%d %%", p.Low)
		}
		rows = append(rows, []string{p.Policy, low, percentOf(p.View), percentOf(p.Tokens), percentOf(p.Billed)})
	}
	return measure.Table(w, []string{"mean of all kinds", "low, of the window", "view", "tokens, of the window", "billed, of the trim to half"}, rows)
}

func percentOf(thousandths int) string { return fmt.Sprintf("%.1f %%", float64(thousandths)/10) }

// Package measure times the cells of a table: rows in turns, on one processor,
// in CPU time, each cell the median of several rounds.
package measure

import (
	"runtime"
	"slices"
	"time"
)

// A Case is one cell.
type Case struct {
	// New makes what k operations need, and returns the i-th operation. It is
	// not measured.
	New func(k int) (op func(i int) error, err error)

	Units int  // how many results one operation stands for; 0: 1
	Step  int  // k is a multiple of it, so that whole cycles are measured; 0: 1
	Max   int  // greatest k, where New is dear; 0: no bound
	Once  bool // one round is enough: the cell is slow
}

// Figures are one cell's result, each for one unit.
type Figures struct {
	NS     float64 // of CPU time
	Bytes  float64
	Allocs float64
}

// Effort says how long a cell may take.
type Effort struct {
	Rounds int           // the median of so many is shown
	Round  time.Duration // how long one should last
}

// Full is for tables to quote, Quick for a look.
var (
	Full  = Effort{Rounds: 5, Round: 20 * time.Millisecond}
	Quick = Effort{Rounds: 1, Round: 2 * time.Millisecond}
)

// EffortOf is Quick or Full.
func EffortOf(quick bool) Effort {
	if quick {
		return Quick
	}
	return Full
}

// Cells measures the cases in turns, round after round. It sets GOMAXPROCS to
// one meanwhile, so that the time of the garbage collector is in the figures
// and the load of other processes is not.
func Cells(cases []Case, effort Effort) ([]Figures, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	ks := make([]int, len(cases))
	rounds := make([][]Figures, len(cases))
	for i := range cases {
		k, err := cases[i].calibrate(effort)
		if err != nil {
			return nil, err
		}
		ks[i] = k
	}
	for round := range effort.Rounds {
		for i := range cases {
			if cases[i].Once && round > 0 {
				continue
			}
			f, _, err := cases[i].run(ks[i])
			if err != nil {
				return nil, err
			}
			rounds[i] = append(rounds[i], f)
		}
	}
	out := make([]Figures, len(cases))
	for i, list := range rounds {
		out[i] = Figures{
			NS:     median(list, func(f Figures) float64 { return f.NS }),
			Bytes:  median(list, func(f Figures) float64 { return f.Bytes }),
			Allocs: median(list, func(f Figures) float64 { return f.Allocs }),
		}
	}
	return out, nil
}

// calibrate finds how many operations fill a round.
func (c *Case) calibrate(effort Effort) (int, error) {
	step := max(c.Step, 1)
	most := max(c.Max/step, 1) * step
	if c.Once {
		return step, nil
	}
	k := step
	for {
		_, took, err := c.run(k)
		if err != nil {
			return 0, err
		}
		if took >= effort.Round/2 || c.Max > 0 && k >= most || k > 1<<24 {
			return k, nil
		}
		grow := 10.0
		if took > effort.Round/50 {
			grow = float64(effort.Round) / float64(took)
		}
		k = (int(float64(k)*grow)/step + 1) * step
		if c.Max > 0 {
			k = min(k, most)
		}
	}
}

// run does k operations and returns the figures and the time of all.
func (c *Case) run(k int) (Figures, time.Duration, error) {
	op, err := c.New(k)
	if err != nil {
		return Figures{}, 0, err
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := CPU()
	for i := range k {
		if err := op(i); err != nil {
			return Figures{}, 0, err
		}
	}
	took := CPU() - start
	runtime.ReadMemStats(&after)
	n := float64(k) * float64(max(c.Units, 1))
	return Figures{
		NS:     float64(took.Nanoseconds()) / n,
		Bytes:  float64(after.TotalAlloc-before.TotalAlloc) / n,
		Allocs: float64(after.Mallocs-before.Mallocs) / n,
	}, took, nil
}

func median[T any](list []T, value func(T) float64) float64 {
	values := make([]float64, len(list))
	for i, v := range list {
		values[i] = value(v)
	}
	slices.Sort(values)
	if len(values) == 0 {
		return 0
	}
	return values[len(values)/2]
}

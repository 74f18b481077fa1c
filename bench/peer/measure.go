package peer

import (
	"runtime"
	"time"
)

// A Case is something to measure.
type Case struct {
	// New prepares k operations, and returns a function that does the i-th. The
	// time that New takes is not measured.
	New func(k int) (op func(i int) error, err error)

	Units int  // figures are per unit, and one operation does this many units; 0 means 1
	Step  int  // k is a multiple of it, so that whole cycles are measured; 0 means 1
	Max   int  // the highest k, for a New that is expensive; 0 means no limit
	Once  bool // one round is enough, because the case is slow
}

// Figures are the results of a round, per unit.
type Figures struct {
	NS     float64 `json:"ns"` // nanoseconds of CPU time
	Bytes  float64 `json:"bytes"`
	Allocs float64 `json:"allocs"`
}

// Fit finds how many operations a round of about the given length takes. once
// reports whether a single round is enough.
func (c Case) Fit(lasts time.Duration) (k int, once bool, err error) {
	step := max(c.Step, 1)
	most := max(c.Max/step, 1) * step
	if c.Once {
		return step, true, nil
	}
	k = step
	for {
		_, took, err := c.run(k)
		if err != nil {
			return 0, false, err
		}
		if took >= lasts/2 || c.Max > 0 && k >= most || k > 1<<24 {
			return k, false, nil
		}
		grow := 10.0
		if took > lasts/50 {
			grow = float64(lasts) / float64(took)
		}
		k = (int(float64(k)*grow)/step + 1) * step
		if c.Max > 0 {
			k = min(k, most)
		}
	}
}

// Round measures k operations.
func (c Case) Round(k int) (Figures, error) {
	f, _, err := c.run(k)
	return f, err
}

// Do does k operations without measuring them. It is meant for tests.
func (c Case) Do(k int) error {
	op, err := c.New(k)
	for i := 0; err == nil && i < k; i++ {
		err = op(i)
	}
	return err
}

// run does k operations, and returns the figures and the total time. It runs with
// GOMAXPROCS set to 1, so that the figures include the garbage collector's work
// and do not depend on the load of other processors.
func (c Case) run(k int) (Figures, time.Duration, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
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

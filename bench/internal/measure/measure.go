// Package measure measures the cells of a table and writes tables. Each cell is
// the median of several rounds, and the rows take turns.
package measure

import (
	"slices"
	"time"

	"github.com/seed-c1b73e60/convo/bench/peer"
)

// A Cell is measured round by round. It is a [peer.Case] in this process, or
// represents one in another process.
type Cell interface {
	// Fit finds how many operations a round of about the given length takes, and
	// whether one round is enough.
	Fit(lasts time.Duration) (k int, once bool, err error)
	// Round measures k operations.
	Round(k int) (peer.Figures, error)
}

// Effort says how long to measure a cell.
type Effort struct {
	Rounds int           // number of rounds, of which the median is shown
	Round  time.Duration // about how long a round lasts
}

// Full is for figures that are quoted, Quick for a rough look.
var (
	Full  = Effort{Rounds: 5, Round: 20 * time.Millisecond}
	Quick = Effort{Rounds: 1, Round: 2 * time.Millisecond}
)

// EffortOf returns Quick or Full.
func EffortOf(quick bool) Effort {
	if quick {
		return Quick
	}
	return Full
}

// Cells measures the cells, one round of each in turn.
func Cells(cells []Cell, effort Effort) ([]peer.Figures, error) {
	ks, enough := make([]int, len(cells)), make([]bool, len(cells))
	rounds := make([][]peer.Figures, len(cells))
	for i, c := range cells {
		var err error
		if ks[i], enough[i], err = c.Fit(effort.Round); err != nil {
			return nil, err
		}
	}
	for round := range effort.Rounds {
		for i, c := range cells {
			if enough[i] && round > 0 {
				continue
			}
			f, err := c.Round(ks[i])
			if err != nil {
				return nil, err
			}
			rounds[i] = append(rounds[i], f)
		}
	}
	out := make([]peer.Figures, len(cells))
	for i, list := range rounds {
		out[i] = peer.Figures{
			NS:     median(list, func(f peer.Figures) float64 { return f.NS }),
			Bytes:  median(list, func(f peer.Figures) float64 { return f.Bytes }),
			Allocs: median(list, func(f peer.Figures) float64 { return f.Allocs }),
		}
	}
	return out, nil
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

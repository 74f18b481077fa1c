// Command compare prints how much processor time and memory one commit needs for each row
// that another commit needs. The script ci/compare.sh builds the programs of the rows against both:
//
//	go run ./compare [-seconds 6] BASE HEAD ROW...
//
// BASE and HEAD are directories with a program for each row.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-c1b73e60/convo/bench/internal/harness"
	"github.com/seed-c1b73e60/convo/bench/internal/measure"
	"github.com/seed-c1b73e60/convo/bench/peer"
)

func main() {
	seconds := flag.Float64("seconds", 6, "how long to measure a row, on the clock")
	flag.Parse()
	if flag.NArg() < 3 {
		log.Fatal("compare: want two directories, and rows")
	}
	lasts := time.Duration(*seconds * float64(time.Second))
	if err := write(os.Stdout, [2]string{flag.Arg(0), flag.Arg(1)}, flag.Args()[2:], lasts); err != nil {
		log.Fatal("compare: ", err)
	}
}

// round is about how long a round lasts.
const round = 5 * time.Millisecond

// write writes a table of the rows that both sides have.
func write(w io.Writer, sides [2]string, rows []string, lasts time.Duration) error {
	var cells [][]string
	for _, name := range rows {
		line, err := row(sides, name, lasts)
		if err != nil {
			return err
		}
		if line != nil {
			cells = append(cells, line)
		}
	}
	return measure.Table(w, []string{"row", "base", "head", "**head / base**", "allocations", "bytes", "rounds"}, cells)
}

// sessions is how often the programs of a row are started: two processes of one program may
// differ, by where their memory is.
const sessions = 4

// row measures a row. It returns nil if a side does not have it.
func row(sides [2]string, name string, lasts time.Duration) ([]string, error) {
	var title string
	var least [2]peer.Figures
	rounds := 0
	for range sessions {
		var cells [2]measure.Cell
		var programs [2]*harness.Peer
		for i, dir := range sides {
			p, err := harness.Start(filepath.Join(dir, name))
			if errors.Is(err, os.ErrNotExist) {
				return nil, closeAll(programs)
			} else if err != nil {
				return nil, errors.Join(err, closeAll(programs))
			}
			programs[i] = p
			title, cells[i] = p.Cells[0].Name, p.Cell(p.Cells[0], 0)
		}
		err := race(cells, lasts/sessions, func(i int, f peer.Figures) {
			if rounds++; rounds <= 2 {
				least[i] = f
			}
			least[i] = peer.Figures{NS: min(least[i].NS, f.NS), Bytes: min(least[i].Bytes, f.Bytes), Allocs: min(least[i].Allocs, f.Allocs)}
		})
		if err := errors.Join(err, closeAll(programs)); err != nil {
			return nil, err
		}
	}
	base, head := least[0], least[1]
	return []string{title, measure.Time(base.NS), measure.Time(head.NS), measure.Ratio(head.NS, base.NS),
		measure.Size(base.Allocs) + " → " + measure.Size(head.Allocs), measure.Size(base.Bytes) + " → " + measure.Size(head.Bytes), fmt.Sprint(rounds / 2)}, nil
}

// closeAll ends the programs that run.
func closeAll(programs [2]*harness.Peer) (err error) {
	for _, p := range programs {
		if p != nil {
			err = errors.Join(err, p.Close())
		}
	}
	return err
}

// race measures two cells in turns, twice or more, and reports the figures of each round.
func race(cells [2]measure.Cell, lasts time.Duration, report func(i int, f peer.Figures)) (err error) {
	until := time.Now().Add(lasts)
	var ks [2]int
	for range 2 { // a program is slow at its start
		for i, c := range cells {
			if ks[i], _, err = c.Fit(round); err != nil {
				return err
			}
		}
	}
	// The first operations of a round are slower than the next ones, so that both sides make as
	// many, unless one needs far more time.
	most := min(max(ks[0], ks[1]), 8*min(ks[0], ks[1]))
	for i := range ks {
		ks[i] = max(ks[i], most)
	}
	for rounds := 0; rounds < 2 || time.Now().Before(until); rounds++ {
		for i := range cells {
			i ^= rounds & 1 // the first of the two changes
			f, err := cells[i].Round(ks[i])
			if err != nil {
				return err
			}
			report(i, f)
		}
	}
	return nil
}

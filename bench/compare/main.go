// Command compare prints how much processor time and memory one commit needs for each row
// that another commit needs. The script ci/compare.sh builds the programs of the rows against both:
//
//	go run ./compare [-seconds 7] BASE HEAD ROW...
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
	seconds := flag.Float64("seconds", 7, "how long to measure a row, on the clock")
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

// row measures a row. It returns nil if a side does not have it.
func row(sides [2]string, name string, lasts time.Duration) (line []string, err error) {
	var cells [2]measure.Cell
	var title string
	for i, dir := range sides {
		p, e := harness.Start(filepath.Join(dir, name))
		if errors.Is(e, os.ErrNotExist) {
			return nil, err
		} else if e != nil {
			return nil, e
		}
		defer func() { err = errors.Join(err, p.Close()) }()
		title, cells[i] = p.Cells[0].Name, p.Cell(p.Cells[0], 0)
	}
	least, rounds, err := race(cells, lasts)
	if err != nil {
		return nil, err
	}
	base, head := least[0], least[1]
	return []string{title, measure.Time(base.NS), measure.Time(head.NS), measure.Ratio(head.NS, base.NS),
		measure.Size(base.Allocs) + " → " + measure.Size(head.Allocs), measure.Size(base.Bytes) + " → " + measure.Size(head.Bytes), fmt.Sprint(rounds)}, nil
}

// race measures two cells in turns, and returns the least figures of each.
func race(cells [2]measure.Cell, lasts time.Duration) (least [2]peer.Figures, rounds int, err error) {
	until := time.Now().Add(lasts)
	var ks [2]int
	for i, c := range cells {
		if ks[i], _, err = c.Fit(round); err != nil {
			return least, 0, err
		}
	}
	for ; rounds < 5 || time.Now().Before(until); rounds++ {
		for i := range cells {
			i ^= rounds & 1 // the first of the two changes
			f, err := cells[i].Round(ks[i])
			if err != nil {
				return least, 0, err
			}
			if rounds == 0 {
				least[i] = f
			}
			least[i] = peer.Figures{NS: min(least[i].NS, f.NS), Bytes: min(least[i].Bytes, f.Bytes), Allocs: min(least[i].Allocs, f.Allocs)}
		}
	}
	return least, rounds, nil
}

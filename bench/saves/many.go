package saves

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/seed-c1b73e60/convo"

	"github.com/seed-c1b73e60/convo/bench/internal/measure"
	"github.com/seed-c1b73e60/convo/bench/peer"
	"github.com/seed-c1b73e60/convo/bench/turns"
)

// conversations are the columns of the second table.
var conversations = []int{1, 16, 64}

// manyRows are its rows. The first is what the others are compared with.
var manyRows = []struct {
	name string
	cell func(dir string, n int) peer.Case
}{
	{"bare write", func(dir string, n int) peer.Case { return bareWrite(dir, n, false) }},
	{"bare open, write and close", func(dir string, n int) peer.Case { return bareWrite(dir, n, true) }},
	{"**convo** Append and Save", ourMany},
}

// writeMany writes the table of many conversations.
func writeMany(w io.Writer, dir string, effort measure.Effort) error {
	header, cells := []string{"time (× bare write) · bytes · allocs"}, make([][]string, len(manyRows))
	for i, r := range manyRows {
		cells[i] = []string{r.name}
	}
	for _, n := range conversations {
		header = append(header, measure.Count(n))
		column := make([]measure.Cell, len(manyRows))
		for i, r := range manyRows {
			column[i] = r.cell(filepath.Join(dir, fmt.Sprint("many-", i)), n)
		}
		got, err := measure.Cells(column, effort)
		if err != nil {
			return fmt.Errorf("%d conversations: %w", n, err)
		}
		for i, f := range got {
			cells[i] = append(cells[i], fmt.Sprintf("%s (%s) · %s · %s", measure.Time(f.NS), measure.Ratio(f.NS, got[0].NS), measure.Size(f.Bytes), measure.Size(f.Allocs)))
		}
	}
	if _, err := fmt.Fprintf(w, "### A turn of each of many conversations\n\nAs above, for so many conversations that take turns, in one store. The figures are for one turn of one of them. The bare rows write the bytes that convo writes, with one file for each conversation, which stays open or does not.\n\n"); err != nil {
		return err
	}
	return measure.Table(w, header, cells)
}

// saved is how many turns of each conversation are saved before, so that all files are there.
const saved = 10

// ourMany appends and saves turn i of each of n conversations.
func ourMany(dir string, n int) peer.Case {
	return peer.Case{Units: n, Max: 1 + most/n, New: func(int) (func(int) error, error) {
		s, err := fresh(dir)
		if err != nil {
			return nil, err
		}
		all := make([]*convo.History, n)
		for i := range all {
			if all[i], err = turns.Open(s, fmt.Sprint("talk-", i)); err != nil {
				return nil, err
			}
		}
		ctx := context.Background()
		save := func(i int) error {
			for _, h := range all {
				if err := errors.Join(turns.Add(h, i), h.Save(ctx)); err != nil {
					return err
				}
			}
			return nil
		}
		for i := range saved {
			if err := save(i); err != nil {
				return nil, err
			}
		}
		return func(i int) error { return save(saved + i) }, nil
	}}
}

// bareWrite writes the line of turn i of each of n conversations to its file, which is opened
// once, or each time.
func bareWrite(dir string, n int, opens bool) peer.Case {
	return peer.Case{Units: n, Max: 1 + most/n, New: func(k int) (func(int) error, error) {
		lines, err := turns.Lines(min(k, 1000))
		if err == nil {
			err = errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700))
		}
		if err != nil {
			return nil, err
		}
		open := func(i int) (*os.File, error) {
			return os.OpenFile(filepath.Join(dir, fmt.Sprint("talk-", i)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		}
		files := make([]*os.File, n) // closed by the garbage collector
		for i := range files {
			if files[i], err = open(i); err != nil {
				return nil, err
			}
		}
		return func(i int) error {
			for j, f := range files {
				if opens {
					if f, err = open(j); err != nil {
						return err
					}
				}
				if _, err := f.Write(lines[i%len(lines)]); err != nil {
					return err
				}
				if opens {
					if err := f.Close(); err != nil {
						return err
					}
				}
			}
			return nil
		}, nil
	}}
}

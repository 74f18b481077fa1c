package saves

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-c1b73e60/convo"

	"github.com/seed-c1b73e60/convo/bench/internal/harness"
	"github.com/seed-c1b73e60/convo/bench/internal/measure"
	"github.com/seed-c1b73e60/convo/bench/peer"
	"github.com/seed-c1b73e60/convo/bench/turns"
)

// conversations are the columns of the second table.
var conversations = []int{1, 16, 64}

// manyRows returns its rows. Each is compared with the last bare one.
func manyRows(dir string, fleet *harness.Fleet) []row {
	of := func(name string, cell func(dir string, n int) peer.Case) row {
		return row{name, func(n int) measure.Cell { return cell(filepath.Join(dir, "many"), n) }}
	}
	list := []row{
		of("bare write", func(dir string, n int) peer.Case { return bareWrite(dir, n, false) }),
		of("open, write and close", func(dir string, n int) peer.Case { return bareWrite(dir, n, true) }),
		of("**convo** Append and Save", ourMany),
	}
	for _, p := range fleet.Peers {
		for _, c := range p.Cells {
			if c.Table == peer.TableMany {
				list = append(list, row{c.Name, func(n int) measure.Cell { return p.Cell(c, n) }})
			}
		}
	}
	return list
}

// writeMany writes the table of many conversations.
func writeMany(w io.Writer, dir string, effort measure.Effort, fleet *harness.Fleet) error {
	list := manyRows(dir, fleet)
	header, cells := []string{"time (× bare) · bytes · allocs"}, make([][]string, len(list))
	for i, r := range list {
		cells[i] = []string{r.name}
	}
	for _, n := range conversations {
		header = append(header, measure.Count(n))
		column := make([]measure.Cell, len(list))
		for i, r := range list {
			column[i] = r.cell(n)
		}
		got, err := measure.Cells(column, effort)
		if err != nil {
			return fmt.Errorf("%d conversations: %w", n, err)
		}
		var bare float64
		for i, f := range got {
			if strings.HasPrefix(list[i].name, "bare ") {
				bare = f.NS
			}
			cells[i] = append(cells[i], fmt.Sprintf("%s (%s) · %s · %s", measure.Time(f.NS), measure.Ratio(f.NS, bare), measure.Size(f.Bytes), measure.Size(f.Allocs)))
		}
	}
	if _, err := fmt.Fprintf(w, "### %s\n\nAs above, for so many conversations that take turns, in one store. The figures are for one turn of one of them. The bare rows write the bytes that convo writes, with one file for each conversation, which stays open or does not.\n\n", peer.TableMany); err != nil {
		return err
	}
	if err := measure.Table(w, header, cells); err != nil {
		return err
	}
	return measure.Notes(w, fleet.Notes(peer.TableMany)...)
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

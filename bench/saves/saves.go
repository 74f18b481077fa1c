// Package saves measures what it costs to save a turn of a conversation without waiting
// for the disk, beside databases that store the same bytes.
package saves

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/seed-c1b73e60/convo/filestore"

	"github.com/seed-c1b73e60/convo/bench/internal/harness"
	"github.com/seed-c1b73e60/convo/bench/internal/measure"
	"github.com/seed-c1b73e60/convo/bench/peer"
	"github.com/seed-c1b73e60/convo/bench/turns"
)

// The columns are how many turns were saved before.
var (
	sizes      = []int{10, 1_000, 10_000}
	quickSizes = []int{10, 1_000}
)

// full is longer than the rounds of other tables, so that a round holds several of the
// checkpoints of a database.
var full = measure.Effort{Rounds: 5, Round: 200 * time.Millisecond}

// most bounds a round, and with it what is written to the disk.
const most = 20_000

type row struct {
	name string
	cell func(n int) measure.Cell
}

// Write measures and writes the table of the package. If quick is set it gives rough
// figures.
func Write(w io.Writer, quick bool, fleet *harness.Fleet) error {
	dir, err := os.MkdirTemp("", "convo-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	columns, effort := sizes, full
	if quick {
		columns, effort = quickSizes, measure.Quick
	}
	list := rows(dir)
	for _, p := range fleet.Peers {
		for _, c := range p.Cells {
			if c.Table == peer.TableSave {
				list = append(list, row{c.Name, func(n int) measure.Cell { return p.Cell(c, n) }})
			}
		}
	}
	header, cells := []string{"time (× convo) · bytes · allocs"}, make([][]string, len(list))
	for i, r := range list {
		cells[i] = []string{r.name}
	}
	for _, n := range columns {
		header = append(header, "after "+measure.Count(n))
		column := make([]measure.Cell, len(list))
		for i, r := range list {
			column[i] = r.cell(n)
		}
		got, err := measure.Cells(column, effort)
		if err != nil {
			return fmt.Errorf("n = %d: %w", n, err)
		}
		for i, f := range got {
			cells[i] = append(cells[i], fmt.Sprintf("%s (%s) · %s · %s", measure.Time(f.NS), measure.Ratio(f.NS, got[0].NS), measure.Size(f.Bytes), measure.Size(f.Allocs)))
		}
	}
	intro := "One turn, a question and an answer of 400 bytes each, saved by a process that can be killed at any time but does not wait for the disk: after so many turns. The databases get the line that convo writes to its file, and write each in a transaction of its own."
	if _, err := fmt.Fprintf(w, "### %s\n\n%s\n\n", peer.TableSave, intro); err != nil {
		return err
	}
	if err := measure.Table(w, header, cells); err != nil {
		return err
	}
	notes := []string{"convo opens, locks and closes the file for each record, since other processes may write to it and nothing stays open between two turns. Its first row also appends two messages and finds out what is new. The databases keep their file open."}
	if err := measure.Notes(w, append(notes, fleet.Notes(peer.TableSave)...)...); err != nil {
		return err
	}
	return writeMany(w, dir, effort, fleet)
}

// rows returns the rows of convo. Files are made in dir.
func rows(dir string) []row {
	of := func(name string, cell func(dir string, n int) peer.Case) row {
		return row{name, func(n int) measure.Cell { return cell(dir, n) }}
	}
	return []row{of("**convo** Append and Save", ourSave), of("convo filestore, Append of the record", ourAppend)}
}

// fresh returns a store in an empty directory in dir. It removes the one before.
func fresh(dir string) (*filestore.Store, error) {
	err := os.RemoveAll(dir)
	return &filestore.Store{Dir: dir, NoSync: true}, err
}

// ourSave is a turn that is appended and saved.
func ourSave(dir string, n int) peer.Case {
	return peer.Case{Max: most, New: func(k int) (func(int) error, error) {
		s, err := fresh(dir + "/save")
		if err != nil {
			return nil, err
		}
		h, err := turns.Open(s, turns.Key)
		if err != nil {
			return nil, err
		}
		ctx := context.Background()
		save := func(i int) error { return errors.Join(turns.Add(h, i), h.Save(ctx)) }
		for i := range n {
			if err := save(i); err != nil {
				return nil, err
			}
		}
		return func(i int) error {
			if err := save(n + i); err != nil {
				return err
			}
			if _, seq := h.Saved(); seq != uint64(n+i+1) {
				return peer.WrongSize(int(seq))
			}
			return nil
		}, nil
	}}
}

// ourAppend stores a record that was made beforehand.
func ourAppend(dir string, n int) peer.Case {
	return peer.Case{Max: most, New: func(k int) (func(int) error, error) {
		s, err := fresh(dir + "/append")
		if err != nil {
			return nil, err
		}
		list, err := turns.Records(n + k)
		if err != nil {
			return nil, err
		}
		ctx := context.Background()
		for _, r := range list[:n] {
			if err := s.Append(ctx, r); err != nil {
				return nil, err
			}
		}
		return func(i int) error { return s.Append(ctx, list[n+i]) }, nil
	}}
}

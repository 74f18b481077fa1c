// Package clients measures a streamed request with an SDK alone, and through the client of convo
// for it.
package clients

import (
	"fmt"
	"io"

	"github.com/seed-c1b73e60/convo/bench/internal/harness"
	"github.com/seed-c1b73e60/convo/bench/internal/measure"
	"github.com/seed-c1b73e60/convo/bench/peer"
)

// sizes are the columns, numbers of messages.
var sizes = []int{10, 1_000, 4_000}

// full has more and longer rounds than other tables, since a request takes milliseconds.
var full = measure.Effort{Rounds: 9, Round: 3 * measure.Full.Round}

// Write measures and writes the table of the package.
func Write(w io.Writer, quick bool, fleet *harness.Fleet) error {
	columns, effort := sizes, full
	if quick {
		columns, effort = sizes[:2], measure.Quick
	}
	var cells []func(n int) measure.Cell
	var rows [][]string
	for _, p := range fleet.Peers {
		for _, c := range p.Cells {
			if c.Table == peer.TableStream {
				cells = append(cells, func(n int) measure.Cell { return p.Cell(c, n) })
				rows = append(rows, []string{c.Name})
			}
		}
	}
	if len(cells)%2 != 0 {
		return fmt.Errorf("%d rows, want pairs of an SDK and a client", len(cells))
	}
	header := []string{"time (× SDK) · bytes · allocs"}
	for _, n := range columns {
		header = append(header, measure.Count(n))
		column := make([]measure.Cell, len(cells))
		for i, cell := range cells {
			column[i] = cell(n)
		}
		got, err := measure.Cells(column, effort)
		if err != nil {
			return fmt.Errorf("n = %d: %w", n, err)
		}
		for i, f := range got {
			rows[i] = append(rows[i], fmt.Sprintf("%s (%s) · %s · %s", measure.Time(f.NS), measure.Ratio(f.NS, got[i&^1].NS), measure.Size(f.Bytes), measure.Size(f.Allocs)))
		}
	}
	if _, err := fmt.Fprintf(w, "### %s\n\nOne more question of a conversation of n messages, and an answer in 100 pieces. The provider is in the process and answers at once; its part of the time is small.\n\n", peer.TableStream); err != nil {
		return err
	}
	if err := measure.Table(w, header, rows); err != nil {
		return err
	}
	return measure.Notes(w, fleet.Notes(peer.TableStream)...)
}

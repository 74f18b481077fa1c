// Package clients measures a streamed request with an SDK alone, and through the client of convo
// for it, and the turns of a long agent through a client, beside a copy of what they send.
package clients

import (
	"fmt"
	"io"

	"github.com/seed-c1b73e60/convo/bench/internal/harness"
	"github.com/seed-c1b73e60/convo/bench/internal/measure"
	"github.com/seed-c1b73e60/convo/bench/peer"
)

// A table has pairs of rows.
type table struct {
	name         peer.Table
	first, about string
	columns      []int // numbers of messages or turns
}

var tables = []table{
	{
		peer.TableStream, "time (× SDK) · bytes · allocs",
		"One more question of a conversation of n messages, and an answer in 100 pieces. The provider is in the process and answers at once; its part of the time is small.",
		[]int{10, 1_000, 4_000},
	},
	{
		peer.TableAgent, "time (× copy) · bytes · allocs",
		"A turn after n others: a question of 400 bytes, a call of a tool with a result of 1,600, an answer in 100 pieces, so two requests, and a Save in a file with a sync. The window is 200,000 tokens, and the other options are the defaults. The time includes the compactions and what the provider in the process does.",
		[]int{1_000, 2_000},
	},
}

// full has more and longer rounds than other tables, since a request takes milliseconds.
var full = measure.Effort{Rounds: 9, Round: 3 * measure.Full.Round}

// Write measures and writes the tables of the package.
func Write(w io.Writer, quick bool, fleet *harness.Fleet) error {
	for _, t := range tables {
		effort := full
		if quick {
			t.columns, effort = t.columns[:2], measure.Quick
		}
		if err := t.write(w, effort, fleet); err != nil {
			return err
		}
	}
	return nil
}

func (t table) write(w io.Writer, effort measure.Effort, fleet *harness.Fleet) error {
	var cells []func(n int) measure.Cell
	var rows [][]string
	for _, p := range fleet.Peers {
		for _, c := range p.Cells {
			if c.Table == t.name {
				cells = append(cells, func(n int) measure.Cell { return p.Cell(c, n) })
				rows = append(rows, []string{c.Name})
			}
		}
	}
	if len(cells)%2 != 0 {
		return fmt.Errorf("%d rows of %q, want pairs", len(cells), t.name)
	}
	header := []string{t.first}
	for _, n := range t.columns {
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
	if _, err := fmt.Fprintf(w, "### %s\n\n%s\n\n", t.name, t.about); err != nil {
		return err
	}
	if err := measure.Table(w, header, rows); err != nil {
		return err
	}
	return measure.Notes(w, fleet.Notes(t.name)...)
}

// Package ops measures what it costs to keep a conversation: to append, to check
// the limit, to take a turn at the limit, to trim and to read. It compares convo
// with the simplest possible code, called the floor, and with other Go libraries.
// It also checks whether a provider would accept what is left after a trim.
package ops

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/seed-c1b73e60/convo"

	"github.com/seed-c1b73e60/convo/bench/internal/harness"
	"github.com/seed-c1b73e60/convo/bench/internal/measure"
	"github.com/seed-c1b73e60/convo/bench/peer"
)

// The columns of the tables are numbers of messages. Other libraries are measured
// up to peerMax.
var (
	sizes      = []int{10, 100, 1_000, 10_000, 100_000, 1_000_000}
	quickSizes = []int{10, 100, 1_000}
)

const peerMax = 10_000

// Write measures and writes all tables of the package. If quick is set it takes
// seconds and gives rough figures. Without columns it measures 10 to 1,000,000
// messages, or 10 to 1,000 if quick is set. Beyond 10,000 messages it measures
// only the floor and convo.
func Write(w io.Writer, quick bool, columns []int, fleet *harness.Fleet) error {
	if len(columns) == 0 {
		columns = sizes
		if quick {
			columns = quickSizes
		}
	}
	for _, n := range columns {
		if n < 10 || n > 10_000_000 {
			return fmt.Errorf("ops: size %d: want 10 to 10,000,000 messages", n)
		}
	}
	effort := measure.EffortOf(quick)
	for _, t := range tables(fleet) {
		if err := t.write(w, columns, effort, quick); err != nil {
			return fmt.Errorf("%s: %w", t.title, err)
		}
	}
	return writePairs(w, quick, fleet)
}

// A table is for one operation, with a row for each way to do it.
type table struct {
	title peer.Table
	intro string
	rows  []row
	notes []string

	byFloor bool // ratios compare with the first row instead of convo
}

type row struct {
	name     string
	cell     func(n int) measure.Cell
	most     int // the highest n; 0 means peerMax
	quickMax int // the highest n of a quick run; 0 means no limit of its own
}

const unbounded = math.MaxInt

// oursBy returns a row of convo.
func oursBy(name string, t func() (convo.Options, error), cell func(int, convo.Options) peer.Case) row {
	return row{name: name, most: unbounded, cell: func(n int) measure.Cell {
		opts, err := t()
		if err != nil {
			return peer.Case{New: func(int) (func(int) error, error) { return nil, err }}
		}
		return cell(n, opts)
	}}
}

func floorRow(name string, cell func(int) peer.Case) row {
	return row{name: name, most: unbounded, cell: func(n int) measure.Cell { return cell(n) }}
}

const ourName = "**convo**"

func tables(fleet *harness.Fleet) []table {
	all := []table{
		{
			title: peer.TableAppend,
			intro: "Appending n messages one by one to an empty conversation. Figures are per message.",
			rows: []row{
				floorRow("floor", floorAppend),
				oursBy(ourName, defaults, ourAppend),
				oursBy("convo, Tiktoken", exact, ourAppend),
				oursBy("convo, len/4", byLenFour, ourAppend),
			},
			notes: []string{
				"convo copies the message, makes it valid UTF-8, checks roles and pairs, and counts its tokens. The others check and count nothing at this point.",
			},
		},
		{
			title: peer.TableCheck,
			intro: "Checking whether the conversation is over its limit, which it is not.",
			rows: []row{
				floorRow("floor", floorCheck),
				oursBy(ourName+" Prepare", defaults, ourCheck),
				oursBy("convo, Truncate alone", truncating, ourCheck),
			},
		},
		{
			title: peer.TableStep,
			intro: "One turn (a user message and an answer) of a conversation that has reached its limit of n messages, including the reductions that this needs, averaged over whole cycles.",
			rows: []row{
				floorRow("floor, to half", floorStep),
				oursBy(ourName+" Append, Prepare, Append", defaults, ourStep),
				oursBy("convo, Tiktoken", exact, ourStep),
				oursBy("convo, Truncate alone", truncating, ourStep),
				oursBy("convo, len/4, Truncate alone", byLenFour, ourStep),
			},
			notes: []string{
				"convo and the floor reduce to half of the limit and then have room. On average the floor holds three quarters of the messages that fit, and convo two thirds, and an extract of the others.",
			},
		},
		{
			title: peer.TableTrim,
			intro: "One reduction of a conversation of n messages to half of the limit that it fills.",
			rows: []row{
				floorRow("floor", floorTrim),
				oursBy(ourName+" Compact", defaults, ourTrim),
				oursBy("convo Compact, Truncate alone", truncating, ourTrim),
				oursBy("convo Compact, len/4, Truncate alone", byLenFour, ourTrim),
			},
			notes: []string{
				"convo's figures include keeping calls and results together, checking the edit, the report, and a new list. Its default also writes an extract of what leaves. Earlier snapshots do not change.",
			},
		},
		{
			title: peer.TableRead,
			intro: "Reading the messages for a request.",
			rows: []row{
				floorRow("floor, copy of the list", floorRead),
				oursBy(ourName+" Append and Snapshot", defaults, ourSnapshot),
				oursBy("convo Snapshot, unchanged", defaults, ourSame),
				oursBy("convo Snapshot.Messages, a deep copy", defaults, ourMessages),
			},
			notes: []string{
				"convo's first row is an append and the snapshot after it. A snapshot of an unchanged History costs only the lock.",
			},
		},
	}
	for i := range all {
		t := &all[i]
		for _, p := range fleet.Peers {
			for _, c := range p.Cells {
				if c.Table == t.title {
					t.rows = append(t.rows, row{name: c.Name, quickMax: c.QuickMax, cell: func(n int) measure.Cell { return p.Cell(c, n) }})
				}
			}
		}
		t.notes = append(t.notes, fleet.Notes(t.title)...)
	}
	return all
}

// reference returns the index of the row that ratios compare with.
func (t *table) reference() int {
	for i, r := range t.rows {
		if !t.byFloor && strings.HasPrefix(r.name, ourName) {
			return i
		}
	}
	return 0
}

// measure returns the figures for n messages of the rows that are measured for so many, and
// the indices of these rows.
func (t *table) measure(n int, effort measure.Effort, quick bool) (at []int, got []peer.Figures, err error) {
	var cases []measure.Cell
	for i, r := range t.rows {
		if n > max(r.most, peerMax) || quick && r.quickMax > 0 && n > r.quickMax {
			continue
		}
		cases, at = append(cases, r.cell(n)), append(at, i)
	}
	if got, err = measure.Cells(cases, effort); err != nil {
		return nil, nil, fmt.Errorf("n = %d: %w", n, err)
	}
	return at, got, nil
}

// A Timing is the time of an operation.
type Timing struct {
	Table peer.Table
	Name  string
	NS    float64
}

// Times measures each operation with n messages.
func Times(n int, effort measure.Effort, fleet *harness.Fleet) (all []Timing, err error) {
	for _, t := range tables(fleet) {
		at, got, err := t.measure(n, effort, false)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.title, err)
		}
		for k, i := range at {
			all = append(all, Timing{t.title, strings.ReplaceAll(t.rows[i].name, "**", ""), got[k].NS})
		}
	}
	return all, nil
}

func (t *table) write(w io.Writer, columns []int, effort measure.Effort, quick bool) error {
	header := []string{"time (× convo) · bytes · allocs"}
	if t.byFloor {
		header[0] = strings.Replace(header[0], "convo", "floor", 1)
	}
	cells := make([][]string, len(t.rows))
	for i, r := range t.rows {
		cells[i] = []string{r.name}
	}
	for _, n := range columns {
		header = append(header, measure.Count(n))
		at, got, err := t.measure(n, effort, quick)
		if err != nil {
			return err
		}
		filled := make([]string, len(t.rows))
		var unit float64
		for j, i := range at {
			if i == t.reference() {
				unit = got[j].NS
			}
		}
		for j, i := range at {
			f := got[j]
			filled[i] = fmt.Sprintf("%s (%s) · %s · %s", measure.Time(f.NS), measure.Ratio(f.NS, unit), measure.Size(f.Bytes), measure.Size(f.Allocs))
		}
		for i := range cells {
			cells[i] = append(cells[i], filled[i])
		}
	}
	if _, err := fmt.Fprintf(w, "### %s\n\n%s\n\n", t.title, t.intro); err != nil {
		return err
	}
	if err := measure.Table(w, header, cells); err != nil {
		return err
	}
	return measure.Notes(w, t.notes...)
}

// Package speed measures how fast convo is next to other libraries, and draws it. The results
// hold the ratios of one run on one machine.
package speed

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/bench/count"
	"github.com/seed-c1b73e60/convo/bench/internal/harness"
	"github.com/seed-c1b73e60/convo/bench/internal/measure"
	"github.com/seed-c1b73e60/convo/bench/internal/plot"
	"github.com/seed-c1b73e60/convo/bench/ops"
	"github.com/seed-c1b73e60/convo/bench/peer"
)

// Results are what one run measured.
type Results struct {
	Machine, Go, Date string
	Modules           []string // path and version of the other libraries
	Groups            []Group
}

// A Group holds the times of one operation. Those of convo are the first bar.
type Group struct {
	Name string
	Bars []Bar
}

// A Bar is the time of a library, as a share of convo's in thousandths.
type Bar struct {
	Name  string
	Times int
}

// messages is the length of the conversations.
const messages = 1_000

// groups are the operations of the picture, with the row of convo in the tables of package ops.
var groups = []struct {
	table peer.Table
	name  string
	ours  string
}{
	{peer.TableAppend, "append a message", "convo"},
	{peer.TableStep, "a turn at the limit", "convo Append, Prepare, Append"},
	{peer.TableTrim, "reduce to half", "convo Compact"},
	{peer.TableRead, "read the messages", "convo Append and Snapshot"},
}

// Measure runs section ops with 1,000 messages, and the throughput of section count.
func Measure() (r Results, err error) {
	fleet, err := harness.Open("peers", os.Stderr)
	if err != nil {
		return Results{}, err
	}
	defer func() { err = errors.Join(err, fleet.Broken, fleet.Close()) }()
	r = Results{Machine: measure.Machine(), Go: runtime.Version(), Date: time.Now().UTC().Format(time.DateOnly)}
	for _, p := range fleet.Peers {
		for _, m := range p.Modules {
			r.Modules = append(r.Modules, m.Path+" "+m.Version)
		}
	}
	times, err := ops.Times(messages, measure.Full, fleet)
	if err != nil {
		return Results{}, err
	}
	for _, g := range groups {
		group := Group{Name: fmt.Sprintf("%s, of %s", g.name, plot.Thousands(messages))}
		var unit float64
		for _, t := range times {
			if t.Table == g.table && t.Name == g.ours {
				unit = t.NS
			}
		}
		for _, t := range times {
			if t.Table == g.table && (t.Name == g.ours || !strings.HasPrefix(t.Name, "convo") && !strings.HasPrefix(t.Name, "floor")) {
				group.Bars = append(group.Bars, Bar{t.Name, thousandths(t.NS / unit)})
			}
		}
		r.Groups = append(r.Groups, group)
	}
	counts, err := count.Times(fleet)
	if err != nil {
		return Results{}, err
	}
	for i, t := range counts {
		if i == 0 || counts[i-1].Class != t.Class {
			r.Groups = append(r.Groups, Group{Name: "count tokens, " + t.Class})
		}
		g := &r.Groups[len(r.Groups)-1]
		g.Bars = append(g.Bars, Bar{t.Name, 0})
		first := counts[i-len(g.Bars)+1].NS
		g.Bars[len(g.Bars)-1].Times = thousandths(t.NS / first)
	}
	return r, nil
}

func thousandths(f float64) int { return max(plot.Round(1000*f), 1) }

// Sizes of the picture.
const (
	left, top   = 226, 118
	chartWidth  = plot.Width - left - 34
	rowHeight   = 20
	groupGap    = 30
	longest     = 24            // characters of a label in large text
	least, most = 1, 10_000_000 // the ends of the axis, in thousandths
)

// drawn are the groups and bars that the picture shows.
func drawn(all []Group) (some []Group) {
	for _, g := range all {
		switch strings.TrimPrefix(g.Name, "count tokens, ") {
		case "Go source", "Cyrillic", "base64", "markdown":
			continue // between the others
		}
		g.Bars = slices.DeleteFunc(slices.Clone(g.Bars), func(b Bar) bool {
			return strings.Contains(b.Name, "a whole turn") || // more than the operation
				strings.Contains(b.Name, "the summary alone") // not as it is by default
		})
		some = append(some, g)
	}
	return some
}

// Draw returns the picture: the time of each operation in multiples of convo's.
func Draw(r Results) []byte {
	groups := drawn(r.Groups)
	height := top + 80
	for _, g := range groups {
		height += groupGap + rowHeight*len(g.Bars)
	}
	p := plot.New(height, "The time of operations of other libraries, in multiples of convo's")
	p.Heading(16, 26, "Time of an operation, in multiples of convo's")
	p.Text(plot.Faint, plot.Start, 16, 50, "A bar to the left is faster than convo, a bar to the right")
	p.Text(plot.Faint, plot.Start, 16, 68, "slower. Each line is ten times the line to its left. convo")
	p.Text(plot.Faint, plot.Start, 16, 86, "counts what is appended, and extracts from what leaves.")
	bottom := height - 72
	for tick := least; tick <= most; tick *= 10 {
		p.Path(plot.Grid, 1, fmt.Sprintf("M%d %dV%d", across(tick), top-8, bottom))
		if said := map[int]string{1: "1/1,000", 1_000: "1×", 1_000_000: "1,000×"}[tick]; said != "" {
			p.Small(plot.Faint, plot.Middle, across(tick), bottom+16, said)
		}
	}
	y := top
	for _, g := range groups {
		y += groupGap
		p.Bold(plot.Ink, plot.Start, 16, y, g.Name)
		for i, b := range g.Bars {
			colour := plot.Amber
			if i == 0 {
				colour = plot.Blue
			}
			y += rowHeight
			label(p, g, i, y)
			from, to := across(1000), across(b.Times)
			if i == 0 {
				p.Dot(colour, from, y-4, 5)
				continue
			}
			p.Rect(colour, 100, min(from, to), y-10, max(max(from, to)-min(from, to), 1), 11)
			p.Small(plot.Ink, plot.Start, max(from, to)+6, y, said(b.Times))
		}
	}
	p.Path(plot.Blue, 2, fmt.Sprintf("M%d %dV%d", across(1000), top-8, bottom))
	p.Small(plot.Faint, plot.Start, 16, height-28, fmt.Sprintf("One run on %s with %s. Other machines differ.", r.Date, r.Go))
	p.Small(plot.Faint, plot.Start, 16, height-12, r.Machine)
	return p.Bytes()
}

// label names a bar. A library that has one bar in a group is named without its function.
func label(p *plot.Picture, g Group, bar, y int) {
	library := func(b Bar) string { return strings.Fields(b.Name)[0] }
	name, many := library(g.Bars[bar]), 0
	for _, b := range g.Bars {
		if library(b) == name {
			many++
		}
	}
	switch {
	case many > 1:
		name = g.Bars[bar].Name
	case strings.HasSuffix(g.Bars[bar].Name, ")"): // what is different about it
		name += g.Bars[bar].Name[strings.Index(g.Bars[bar].Name, " ("):]
	}
	if len(name) > longest {
		p.Small(plot.Ink, plot.End, left-8, y, name)
	} else {
		p.Text(plot.Ink, plot.End, left-8, y, name)
	}
}

func across(times int) int {
	of := func(n int) float64 { return math.Log(float64(n)) }
	return left + plot.Round(chartWidth*(of(min(max(times, least), most))-of(least))/(of(most)-of(least)))
}

func said(times int) string {
	switch {
	case times < 1000:
		return fmt.Sprintf("1/%d", plot.Round(1000/float64(times)))
	case times < 10_000:
		return fmt.Sprintf("%d.%d×", times/1000, times%1000/100)
	}
	return plot.Thousands((times+500)/1000) + "×"
}

package estimate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/bench/internal/plot"
)

// A Row is what the picture shows of a class of text. The estimates are divided by the
// exact counts, in thousandths.
type Row struct {
	Class    string
	Messages int
	Convo    Spread // of convo's estimator
	Quarter  Spread // of the number of bytes, divided by four
}

// A Spread is how far estimates are from the truth: all together, and the messages at both
// ends when a twentieth is left out at each.
type Spread struct{ All, Low, High int }

// Measure compares estimates with exact counts, on text that is the same on all machines:
// the Declaration of Human Rights, and generated text.
func Measure() ([]Row, error) {
	var rows []Row
	for _, r := range results(append(languages(), generated(256<<10)...)) {
		rows = append(rows, Row{Class: r.class, Messages: r.messages, Convo: spreadOf(r.rules[0]), Quarter: spreadOf(r.rules[1])})
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return a.Quarter.All - b.Quarter.All })
	return rows, nil
}

func spreadOf(e errors) Spread {
	thousandths := func(f float64) int { return plot.Round(1000 * f) }
	return Spread{thousandths(e.ratio), thousandths(quantile(e.ratios, 0.05)), thousandths(quantile(e.ratios, 0.95))}
}

// Sizes of the picture.
const (
	left, top   = 152, 106
	chartWidth  = plot.Width - left - 12
	rowHeight   = 26
	least, most = 200, 3_000 // the ends of the axis, in thousandths
	widest      = 20         // characters of a label of one line
)

// Draw returns the picture: for each class of text the estimates, divided by the truth.
func Draw(rows []Row) []byte {
	bottom := top + len(rows)*rowHeight
	p := plot.New(bottom+34, "Estimates of tokens, divided by exact counts, for scripts and kinds of text")
	p.Heading(16, 26, "Estimated tokens, divided by the exact count")
	p.Dot(plot.Blue, 22, 44, 5)
	p.Text(plot.Blue, plot.Start, 34, 49, "convo")
	p.Dot(plot.Amber, 96, 44, 5)
	p.Text(plot.Amber, plot.Start, 108, 49, "bytes / 4")
	p.Text(plot.Faint, plot.Start, 192, 49, "the exact count is of o200k")
	p.Text(plot.Faint, plot.Start, 16, 70, "Dot: all text. Bar: nine tenths of the messages.")
	for _, tick := range []int{250, 500, 1_000, 2_000} {
		width := 1
		if tick == 1_000 {
			width = 2
		}
		p.Path(plot.Grid, width, fmt.Sprintf("M%d %dV%d", across(tick), top-12, bottom))
		said := map[int]string{250: "a quarter", 500: "half", 1_000: "exact", 2_000: "twice"}[tick]
		p.Text(plot.Faint, plot.Middle, across(tick), bottom+20, said)
	}
	for i, r := range rows {
		y := top + i*rowHeight
		if comma := strings.LastIndex(r.Class, ", "); comma > 0 && len(r.Class) > widest {
			p.Small(plot.Ink, plot.End, left-10, y-2, r.Class[:comma+1])
			p.Small(plot.Ink, plot.End, left-10, y+11, r.Class[comma+2:])
		} else {
			p.Text(plot.Ink, plot.End, left-10, y+5, r.Class)
		}
		spread(p, plot.Amber, r.Quarter, y-4)
		spread(p, plot.Blue, r.Convo, y+4)
	}
	return p.Bytes()
}

// across returns the x of a ratio in thousandths. The axis is logarithmic.
func across(ratio int) int {
	of := func(n int) float64 { return math.Log(float64(n)) }
	ratio = max(min(ratio, most), least)
	return left + plot.Round(chartWidth*(of(ratio)-of(least))/(of(most)-of(least)))
}

func spread(p *plot.Picture, c plot.Colour, s Spread, y int) {
	p.Rect(c, 40, across(s.Low), y-2, max(across(s.High)-across(s.Low), 1), 4)
	p.Dot(c, across(s.All), y, 4)
}

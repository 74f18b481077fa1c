package facts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/bench/internal/plot"
)

// Sizes in the picture.
const (
	panelWidth, panelHeight = 390, 200
	left, top               = 62, 130 // of the first panel
	gap                     = 76      // between panels
	line                    = 20      // of the legend
	dot                     = 4       // radius
)

// colours are those of the policies, by the beginning of their names, in the order of the legend.
var colours = []struct {
	name   string
	colour plot.Colour
}{
	{"convo, default", plot.Blue},
	{"convo, mediocre", plot.Green},
	{"convo, ideal", plot.Purple},
	{"trim", plot.Faint},
	{"Claude Code", plot.Red},
	{"Codex", plot.Amber},
}

// An axis is the horizontal one of a panel, in percent.
type axis struct {
	title       string
	from, until int
	of          func(Point) int // in thousandths
}

// Draw returns the picture: what the requests hold of the facts, over their size and over the
// bill.
func Draw(points []Point) []byte {
	axes := []axis{
		{"size of the request, of the window", 30, 80, func(p Point) int { return p.Tokens }},
		{"bill, of the bill of the trim to half", 70, 120, func(p Point) int { return p.Billed }},
	}
	legend := top + len(axes)*(panelHeight+gap)
	d := plot.New(legend+4*line, "What requests hold of the facts that they need, over their size and over the bill")
	d.Heading(16, 26, "What a request holds of the facts that it needs")
	for i, said := range []string{
		"Up: the share of facts, as the mean of all kinds of talks.",
		"Lines join the sizes that a compaction goes down to, from",
		"10 to 50 % of the window. The upper dot of a program is",
		"with an ideal model, the lower one with a mediocre one.",
	} {
		d.Text(plot.Faint, plot.Start, 16, 50+18*i, said)
	}
	for i, a := range axes {
		panel(d, top+i*(panelHeight+gap), a, points)
	}
	for i, c := range colours {
		x, y := 22+i/3*232, legend+line*(i%3)
		d.Dot(c.colour, x, y-4, dot)
		d.Text(c.colour, plot.Start, x+12, y, c.name)
	}
	return d.Bytes()
}

// panel draws the points over an axis.
func panel(d *plot.Picture, top int, a axis, points []Point) {
	for tick := 0; tick <= 100; tick += 25 {
		y := top + panelHeight*(100-tick)/100
		d.Path(plot.Grid, 1, fmt.Sprintf("M%d %dh%d", left, y, panelWidth))
		d.Text(plot.Faint, plot.End, left-6, y+4, fmt.Sprintf("%d %%", tick))
	}
	for tick := a.from; tick <= a.until; tick += 10 {
		x := left + panelWidth*(tick-a.from)/(a.until-a.from)
		d.Path(plot.Grid, 1, fmt.Sprintf("M%d %dv%d", x, top, panelHeight))
		d.Text(plot.Faint, plot.Middle, x, top+panelHeight+18, fmt.Sprintf("%d %%", tick))
	}
	d.Text(plot.Ink, plot.Middle, left+panelWidth/2, top+panelHeight+38, a.title)
	at := func(p Point) (x, y int) {
		share := min(max(a.of(p), 10*a.from), 10*a.until) - 10*a.from
		return left + panelWidth*share/(10*(a.until-a.from)), top + panelHeight*(1000-p.View)/1000
	}
	for _, c := range colours {
		here := slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return !strings.HasPrefix(p.Policy, c.name) })
		if len(here) > 0 && here[0].Low > 0 {
			d.Path(c.colour, 2, plot.Through(len(here), func(i int) (int, int) { return at(here[i]) }))
		}
		for _, p := range here {
			x, y := at(p)
			d.Dot(c.colour, x, y, dot)
		}
	}
}

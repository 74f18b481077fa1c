package keep

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/bench/internal/plot"
)

// A Point is what the picture shows of a Result.
type Point struct {
	Kind     string // of conversations
	Policy   string
	Window   int
	Kept     int // in view or summary, in thousandths of the needles
	Retained int // tokens of a view after a compaction
	Front    bool
}

// Measure returns the points of the picture: all policies, with generated conversations and
// with those of coding agents.
func Measure() ([]Point, error) {
	all, err := exams(false)
	if err != nil {
		return nil, err
	}
	return pointsOf(slices.Concat(all...)), nil
}

func pointsOf(all []Result) (points []Point) {
	for _, r := range all {
		points = append(points, Point{
			Kind: r.Kind, Policy: r.Policy, Window: r.Window,
			Kept: plot.Round(1000 * r.Kept()), Retained: plot.Round(r.Retained()),
			Front: slices.Contains(Front(all, r.Window), r.Policy),
		})
	}
	return points
}

// Sizes in the picture.
const (
	panelWidth, panelHeight = 390, 170
	left, top               = 62, 154 // of the first panel
	gapY                    = 60      // between panels
	column                  = 232     // of the legend
	line                    = 20      // of the legend
	dot                     = 5       // radius
	digit, letter           = 9, 15   // width and height of a character
)

// Draw returns the picture: for each kind of conversations a panel of the smallest window and
// one of the largest, with what is kept in view or summary over the tokens retained after a
// compaction. Each policy has a number. A broken line joins those that no other one beats.
func Draw(points []Point) []byte {
	var windows []int
	var policies []string
	for _, r := range points {
		if !slices.Contains(windows, r.Window) && atAnEnd(points, r) {
			windows = append(windows, r.Window)
		}
		if !slices.Contains(policies, r.Policy) {
			policies = append(policies, r.Policy)
		}
	}
	half := (len(policies) + 1) / 2
	legendTop := top + len(windows)*(panelHeight+gapY)
	d := &drawing{Picture: plot.New(legendTop+half*line, "What each policy keeps over the tokens it retains"), policies: policies}
	d.Heading(16, 26, "What is still known after a compaction")
	d.Text(plot.Faint, plot.Start, 16, 50, "Up: the share of facts needed later that the view or its")
	d.Text(plot.Faint, plot.Start, 16, 68, "summary has. To the right: the size of the view, as a")
	d.Text(plot.Faint, plot.Start, 16, 86, "share of the window. The broken line joins policies that")
	d.Text(plot.Faint, plot.Start, 16, 104, "no other beats: none keeps as much in fewer tokens.")
	for i, window := range windows {
		here := slices.DeleteFunc(slices.Clone(points), func(r Point) bool { return r.Window != window })
		d.panel(left, top+i*(panelHeight+gapY), here)
	}
	for n, name := range policies {
		x, y := 22+n/half*column, legendTop+line*(n%half)
		d.Dot(colourOf(name), x, y-4, dot)
		d.Text(colourOf(name), plot.End, x+30, y, fmt.Sprint(n+1))
		d.Text(colourOf(name), plot.Start, x+37, y, name)
	}
	return d.Bytes()
}

// atAnEnd reports whether the window of a point is the smallest or the largest of its kind.
func atAnEnd(points []Point, r Point) bool {
	smaller := func(o Point) bool { return o.Kind == r.Kind && o.Window < r.Window }
	larger := func(o Point) bool { return o.Kind == r.Kind && o.Window > r.Window }
	return !slices.ContainsFunc(points, smaller) || !slices.ContainsFunc(points, larger)
}

// colourOf returns the colour of convo's policies, or that of the others.
func colourOf(policy string) plot.Colour {
	if strings.HasPrefix(policy, "convo,") {
		return plot.Blue
	}
	return plot.Amber
}

// A drawing is the picture while it is drawn.
type drawing struct {
	*plot.Picture
	policies []string
	taken    []plot.Box // the dots, lines and labels of a panel, which no other label may cover
}

// A place is where one or more policies stand in a panel.
type place struct {
	x, y  int
	label string
}

// panel draws the panel of a window.
func (d *drawing) panel(left, top int, here []Point) {
	d.taken = nil
	window := here[0].Window
	frame := plot.Box{Left: left, Top: top, Right: left + panelWidth, Bottom: top + panelHeight}
	for tick := 0; tick <= 100; tick += 25 {
		x, y := left+panelWidth*tick/100, top+panelHeight*(100-tick)/100
		d.Path(plot.Grid, 1, fmt.Sprintf("M%d %dh%dM%d %dv%d", left, y, panelWidth, x, top, panelHeight))
		d.Text(plot.Faint, plot.End, left-6, y+4, fmt.Sprintf("%d %%", tick))
		d.Text(plot.Faint, plot.Middle, x, top+panelHeight+18, fmt.Sprintf("%d %%", tick))
	}
	at := func(r Point) (x, y int) {
		return left + panelWidth*min(r.Retained, window)/window, top + panelHeight*(1000-r.Kept)/1000
	}
	d.Bold(plot.Ink, plot.Start, 16, top-14, fmt.Sprintf("%s, window of %s", here[0].Kind, plot.Thousands(window)))
	d.front(here, at)
	var places []place
	for n, name := range d.policies {
		k := slices.IndexFunc(here, func(r Point) bool { return r.Policy == name })
		if k < 0 {
			continue
		}
		x, y := at(here[k])
		d.Dot(colourOf(name), x, y, dot)
		d.taken = append(d.taken, plot.Box{Left: x - dot, Top: y - dot, Right: x + dot, Bottom: y + dot})
		near := slices.IndexFunc(places, func(o place) bool { return (o.x-x)*(o.x-x)+(o.y-y)*(o.y-y) < 4*dot*dot })
		if near < 0 {
			places = append(places, place{x, y, fmt.Sprint(n + 1)})
		} else {
			places[near].label += fmt.Sprintf(", %d", n+1)
		}
	}
	for _, p := range places {
		d.label(p, frame)
	}
}

// front draws the line through the policies that no other one beats.
func (d *drawing) front(here []Point, at func(Point) (x, y int)) {
	on := slices.DeleteFunc(slices.Clone(here), func(r Point) bool { return !r.Front })
	slices.SortFunc(on, func(a, b Point) int { return cmp.Compare(a.Retained, b.Retained) })
	var path strings.Builder
	lastX, lastY := 0, 0
	for i, r := range on {
		x, y := at(r)
		if i == 0 {
			fmt.Fprintf(&path, "M%d %d", x, y)
		} else {
			fmt.Fprintf(&path, "H%dV%d", x, y)
			d.taken = append(d.taken, plot.Box{Left: lastX, Top: lastY - 1, Right: x, Bottom: lastY + 1}, plot.Box{Left: x - 1, Top: y, Right: x + 1, Bottom: lastY})
		}
		lastX, lastY = x, y
	}
	d.Dashed(plot.Faint, path.String())
}

// label writes the numbers of a place next to it, where they cover no dot, no other label and
// not the frame, with a line to the place if they are farther away.
func (d *drawing) label(p place, frame plot.Box) {
	wide := digit * len(p.label)
	for distance := 8; ; distance += 4 {
		for _, side := range [][2]int{{1, 0}, {-1, 0}, {0, -1}, {0, 1}, {1, -1}, {1, 1}, {-1, -1}, {-1, 1}} {
			x, y := p.x+side[0]*(distance+wide/2), p.y+side[1]*(distance+letter/2)
			b := plot.Box{Left: x - wide/2, Top: y - letter/2, Right: x + wide/2, Bottom: y + letter/2}
			if distance < 200 && (!b.Inside(frame, 3) || slices.ContainsFunc(d.taken, b.Covers)) {
				continue
			}
			d.taken = append(d.taken, b)
			if distance > 12 {
				d.Path(plot.Faint, 1, fmt.Sprintf("M%d %dL%d %d", p.x, p.y, p.x+side[0]*distance, p.y+side[1]*distance))
			}
			d.Text(plot.Ink, plot.Middle, x, y+5, p.label)
			return
		}
	}
}

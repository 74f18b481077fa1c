package keep

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
)

// The colours of the picture can be told apart with impaired colour vision, and are read
// on white and on black.
const (
	ourColour   = "#1a7fd0"
	otherColour = "#d55e00"
	textColour  = "#7d7d7d"
)

// Sizes in the picture, in pixels.
const (
	panelWidth, panelHeight = 440.0, 280.0
	left, top               = 60.0, 70.0 // of the first panel
	gap                     = 75.0       // between panels
	line                    = 20.0       // of the legend
	dot                     = 4.5        // radius
	digit, letter           = 7.0, 12.0  // width and height of a character
)

// Draw writes the picture, an SVG: for each window a panel with what is kept in view or
// summary over the tokens retained after a compaction. Each policy has a number. A broken
// line joins those that no other one beats.
func Draw(w io.Writer, all []Result) error {
	d := new(drawing)
	windows, policies := windowsOf(all), Policies()
	rows := (len(windows) + 1) / 2
	legendTop := top + float64(rows)*(panelHeight+gap)
	half := (len(policies) + 1) / 2
	width, height := left+2*panelWidth+gap+30, legendTop+float64(half)*line
	fmt.Fprintf(d, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" font-family="sans-serif" font-size="12" fill="%s" role="img">`+"\n", width, height, width, textColour)
	d.element("title", "", "What each policy keeps over the tokens it retains")
	d.text(left, 20, "start", ` font-size="15"`, "What is still known: needles in view or summary, over the size of the view after a compaction (share of the window)")
	d.text(left, 38, "start", "", "A broken line joins the policies that no other one beats: none keeps as much in fewer tokens.")
	for i, window := range windows {
		d.panel(left+float64(i%2)*(panelWidth+gap), top+float64(i/2)*(panelHeight+gap), all, window)
	}
	for n, p := range policies {
		x, y := left+float64(n/half)*(panelWidth+gap), legendTop+line*float64(n%half)
		d.dot(x, y-4, p)
		d.text(x+26, y, "end", fmt.Sprintf(` fill="%s"`, colourOf(p)), fmt.Sprint(n+1))
		d.text(x+34, y, "start", fmt.Sprintf(` fill="%s"`, colourOf(p)), p.Name)
	}
	d.WriteString("</svg>\n")
	_, err := io.WriteString(w, d.String())
	return err
}

func colourOf(p Policy) string {
	if p.Source == "" {
		return ourColour
	}
	return otherColour
}

// A drawing is an SVG that is being written.
type drawing struct {
	strings.Builder
	taken []box // the dots, lines and labels of a panel, which no other label may cover
}

// A box is a rectangle.
type box struct{ left, top, right, bottom float64 }

func (b box) covers(o box) bool {
	return b.left < o.right && o.left < b.right && b.top < o.bottom && o.top < b.bottom
}

func (d *drawing) element(name, attributes, content string) {
	fmt.Fprintf(d, "<%s%s>", name, attributes)
	_ = xml.EscapeText(d, []byte(content)) // a strings.Builder takes all
	fmt.Fprintf(d, "</%s>\n", name)
}

func (d *drawing) text(x, y float64, anchor, attributes, content string) {
	d.element("text", fmt.Sprintf(` x="%.1f" y="%.1f" text-anchor="%s"%s`, x, y, anchor, attributes), content)
}

func (d *drawing) dot(x, y float64, p Policy) {
	fmt.Fprintf(d, `<circle cx="%.1f" cy="%.1f" r="%.1f" fill="%s"/>`+"\n", x, y, dot, colourOf(p))
}

// A place is where one or more policies stand in a panel.
type place struct {
	x, y  float64
	label string
}

// panel draws the panel of a window.
func (d *drawing) panel(left, top float64, all []Result, window int) {
	d.taken = nil
	fmt.Fprintf(d, `<rect x="%.0f" y="%.0f" width="%.0f" height="%.0f" fill="none" stroke="%s"/>`+"\n", left, top, panelWidth, panelHeight, textColour)
	for tick := 0; tick <= 100; tick += 25 {
		x, y := left+panelWidth*float64(tick)/100, top+panelHeight*(1-float64(tick)/100)
		if tick%100 != 0 {
			fmt.Fprintf(d, `<path d="M%.1f %.1fh%.1fM%.1f %.1fv%.1f" stroke="%s" stroke-opacity="0.2"/>`+"\n", left, y, panelWidth, x, top, panelHeight, textColour)
		}
		d.text(left-6, y+4, "end", "", fmt.Sprintf("%d %%", tick))
		d.text(x, top+panelHeight+16, "middle", "", fmt.Sprintf("%d %%", tick))
	}
	at := func(r Result) (x, y float64) {
		return left + panelWidth*min(r.Retained()/float64(window), 1), top + panelHeight*(1-r.Kept())
	}
	here := slices.DeleteFunc(slices.Clone(all), func(r Result) bool { return r.Window != window })
	d.text(left+panelWidth/2, top-10, "middle", "", fmt.Sprintf("%s, window of %d,000 tokens", here[0].Kind, window/1000))
	d.front(here, at)
	var places []place
	for n, p := range Policies() {
		k := slices.IndexFunc(here, func(r Result) bool { return r.Policy == p.Name })
		if k < 0 {
			continue
		}
		x, y := at(here[k])
		d.dot(x, y, p)
		d.taken = append(d.taken, box{x - dot, y - dot, x + dot, y + dot})
		near := slices.IndexFunc(places, func(o place) bool { return (o.x-x)*(o.x-x)+(o.y-y)*(o.y-y) < 4*dot*dot })
		if near < 0 {
			places = append(places, place{x, y, fmt.Sprint(n + 1)})
		} else {
			places[near].label += fmt.Sprintf(", %d", n+1)
		}
	}
	for _, p := range places {
		d.label(p, box{left, top, left + panelWidth, top + panelHeight})
	}
}

// front draws the line through the results on the front.
func (d *drawing) front(here []Result, at func(Result) (x, y float64)) {
	names := Front(here, here[0].Window)
	on := slices.DeleteFunc(slices.Clone(here), func(r Result) bool { return !slices.Contains(names, r.Policy) })
	slices.SortFunc(on, func(a, b Result) int { return cmp.Compare(a.Retained(), b.Retained()) })
	var path strings.Builder
	lastX, lastY := 0.0, 0.0
	for i, r := range on {
		x, y := at(r)
		if i == 0 {
			fmt.Fprintf(&path, "M%.1f %.1f", x, y)
		} else {
			fmt.Fprintf(&path, "H%.1fV%.1f", x, y)
			d.taken = append(d.taken, box{lastX, lastY - 1, x, lastY + 1}, box{x - 1, y, x + 1, lastY})
		}
		lastX, lastY = x, y
	}
	fmt.Fprintf(d, `<path d="%s" fill="none" stroke="%s" stroke-dasharray="4 3"/>`+"\n", path.String(), textColour)
}

// label writes the numbers of a place beside it, where they cover no dot, no other label and
// not the frame, with a line to the place if they are not next to it.
func (d *drawing) label(p place, frame box) {
	wide := digit * float64(len(p.label))
	for distance := 8.0; ; distance += 4 {
		for _, side := range [][2]float64{{1, 0}, {-1, 0}, {0, -1}, {0, 1}, {1, -1}, {1, 1}, {-1, -1}, {-1, 1}} {
			x, y := p.x+side[0]*(distance+wide/2), p.y+side[1]*(distance+letter/2)
			b := box{x - wide/2, y - letter/2, x + wide/2, y + letter/2}
			inside := b.left > frame.left+2 && b.right < frame.right-2 && b.top > frame.top+2 && b.bottom < frame.bottom-2
			if distance < 200 && (!inside || slices.ContainsFunc(d.taken, b.covers)) {
				continue
			}
			d.taken = append(d.taken, b)
			if distance > 12 {
				fmt.Fprintf(d, `<path d="M%.1f %.1fL%.1f %.1f" stroke="%s" stroke-opacity="0.6"/>`+"\n", p.x, p.y, p.x+side[0]*distance, p.y+side[1]*distance, textColour)
			}
			d.text(x, y+4, "middle", "", p.label)
			return
		}
	}
}

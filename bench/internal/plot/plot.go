// Package plot writes the pictures of the documentation: SVG with an opaque background,
// colours for light and dark that follow the reader's setting also where the picture is
// shown as an image, and whole numbers for all coordinates.
package plot

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// A Colour names a pair of colours, for light and dark.
type Colour string

// The colours. Blue is for convo.
const (
	Ink    Colour = "ink"   // text
	Faint  Colour = "faint" // axes and notes
	Grid   Colour = "grid"  // lines that are hardly seen
	Blue   Colour = "blue"
	Red    Colour = "red"
	Amber  Colour = "amber"
	Green  Colour = "green"
	Purple Colour = "purple"
)

// pairs are the colours for light and dark, and the order in which the style names them.
var pairs = []struct {
	name        Colour
	light, dark string
}{
	{Ink, "#24292f", "#e6edf3"},
	{Faint, "#57606a", "#9198a1"},
	{Grid, "#d0d7de", "#30363d"},
	{Blue, "#0969da", "#58a6ff"},
	{Red, "#cf222e", "#ff7b72"},
	{Amber, "#9a6700", "#d29922"},
	{Green, "#1a7f37", "#3fb950"},
	{Purple, "#8250df", "#bc8cff"},
}

// An Anchor is the place of a text to which its x belongs.
type Anchor string

// The anchors.
const (
	Start  Anchor = ""
	Middle Anchor = "middle"
	End    Anchor = "end"
)

// Width is the width of every picture. A phone shows it about 360 pixels wide, so the smallest
// text, of 12 units, is 9 pixels high there.
const Width = 480

// wide is how many pixels wide a picture is where there is room.
const wide = 560

// A Picture is an SVG that is being drawn. Coordinates are units from the top left corner.
type Picture struct{ b strings.Builder }

// New returns an empty picture. The title is for readers who do not see it.
func New(height int, title string) *Picture {
	p := new(Picture)
	p.f(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" role="img" aria-labelledby="t" font-family="system-ui,sans-serif" font-size="14">`+"\n", Width, height, wide)
	p.f(`<title id="t">%s</title>`+"\n<style>\n.bg{fill:#ffffff}", escaped(title))
	for _, c := range pairs {
		p.f(".%s{color:%s}", c.name, c.light)
	}
	p.f("\n@media(prefers-color-scheme:dark){.bg{fill:#0d1117}")
	for _, c := range pairs {
		p.f(".%s{color:%s}", c.name, c.dark)
	}
	p.f("}\ntext,rect,circle{fill:currentColor}path{fill:none;stroke:currentColor}\n</style>\n")
	p.f(`<rect class="bg" width="%d" height="%d"/>`+"\n", Width, height)
	return p
}

func (p *Picture) f(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder takes all
	return b.String()
}

// Heading writes the title that is seen.
func (p *Picture) Heading(x, y int, text string) {
	p.f(`<text class="%s" x="%d" y="%d" font-size="16" font-weight="600">%s</text>`+"\n", Ink, x, y, escaped(text))
}

// Text writes a line of text on the baseline y.
func (p *Picture) Text(c Colour, a Anchor, x, y int, text string) { p.text(c, a, x, y, "", text) }

// Bold writes a line of bold text.
func (p *Picture) Bold(c Colour, a Anchor, x, y int, text string) {
	p.text(c, a, x, y, ` font-weight="600"`, text)
}

// Small writes a line of small text.
func (p *Picture) Small(c Colour, a Anchor, x, y int, text string) {
	p.text(c, a, x, y, ` font-size="12"`, text)
}

func (p *Picture) text(c Colour, a Anchor, x, y int, attributes, text string) {
	if a != Start {
		attributes += fmt.Sprintf(` text-anchor="%s"`, a)
	}
	p.f(`<text class="%s" x="%d" y="%d"%s>%s</text>`+"\n", c, x, y, attributes, escaped(text))
}

// Path draws a line of a width. d is the attribute of a path.
func (p *Picture) Path(c Colour, width int, d string) {
	p.f(`<path class="%s" stroke-width="%d" d="%s"/>`+"\n", c, width, d)
}

// Dashed draws a broken line.
func (p *Picture) Dashed(c Colour, d string) {
	p.f(`<path class="%s" stroke-dasharray="6 4" d="%s"/>`+"\n", c, d)
}

// Rect draws a filled rectangle. percent is how opaque it is.
func (p *Picture) Rect(c Colour, percent, x, y, width, height int) {
	p.f(`<rect class="%s"%s x="%d" y="%d" width="%d" height="%d"/>`+"\n", c, opacity("opacity", percent), x, y, width, height)
}

// Area draws a filled shape. d is the attribute of a path.
func (p *Picture) Area(c Colour, percent int, d string) {
	p.f(`<path class="%s" style="fill:currentColor;stroke:none"%s d="%s"/>`+"\n", c, opacity("opacity", percent), d)
}

func opacity(name string, percent int) string {
	if percent >= 100 {
		return ""
	}
	return fmt.Sprintf(` %s=".%02d"`, name, percent)
}

// Dot draws a filled circle.
func (p *Picture) Dot(c Colour, x, y, radius int) {
	p.f(`<circle class="%s" cx="%d" cy="%d" r="%d"/>`+"\n", c, x, y, radius)
}

// Bytes returns the SVG. Nothing may be drawn afterwards.
func (p *Picture) Bytes() []byte { return []byte(p.b.String() + "</svg>\n") }

// Through returns the attribute of a path through the points of n values.
func Through(n int, at func(i int) (x, y int)) string {
	var d strings.Builder
	for i := range n {
		x, y := at(i)
		fmt.Fprintf(&d, "%c%d %d", "ML"[min(i, 1)], x, y)
	}
	return d.String()
}

// Round returns a number without its fraction, rounded to the nearest whole one.
func Round(f float64) int {
	if f < 0 {
		return -Round(-f)
	}
	return int(f + 0.5)
}

// Thousands returns a number with commas between groups of three digits.
func Thousands(n int) string {
	if n < 1_000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", Thousands(n/1_000), n%1_000)
}

// Millions returns a number in millions, with two digits after the point.
func Millions(n int) string {
	n = (n + 5_000) / 10_000
	return fmt.Sprintf("%d.%02d million", n/100, n%100)
}

// A Box is a rectangle.
type Box struct{ Left, Top, Right, Bottom int }

// Covers reports whether two boxes share a point inside.
func (b Box) Covers(o Box) bool {
	return b.Left < o.Right && o.Left < b.Right && b.Top < o.Bottom && o.Top < b.Bottom
}

// Inside reports whether b lies in o with a margin.
func (b Box) Inside(o Box, margin int) bool {
	return min(b.Left-o.Left, b.Top-o.Top, o.Right-b.Right, o.Bottom-b.Bottom) >= margin
}

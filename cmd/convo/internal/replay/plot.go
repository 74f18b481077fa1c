package replay

import (
	"fmt"
	"slices"
	"strings"
)

// The sizes of a plot, in pixels of its own.
const (
	plotWidth, plotHeight = 860, 300
	plotLeft, plotRight   = 66, 16
	plotTop, plotBottom   = 52, 40
	inWidth               = plotWidth - plotLeft - plotRight
	inHeight              = plotHeight - plotTop - plotBottom
)

// A curve is the values of one policy, a value for each request.
type curve struct {
	policy Policy
	values []float64
}

// plots writes the two plots of a session: the tokens of each request, and what has been sent
// or paid so far.
func plots(b *strings.Builder, r *Report) {
	var sizes, sums []curve
	isPaid := len(r.Costs) > 0
	for _, p := range Policies {
		size, sum := make([]float64, r.Requests), make([]float64, r.Requests)
		so := 0.0
		for i, n := range r.Sizes[p] {
			size[i] = float64(n)
			if isPaid {
				so += r.Costs[p][i]
			} else {
				so += float64(n)
			}
			sum[i] = so
		}
		sizes, sums = append(sizes, curve{p, size}), append(sums, curve{p, sum})
	}
	top := float64(r.Window)
	for _, c := range sizes {
		if c.policy != Nothing {
			top = max(top, slices.Max(c.values))
		}
	}
	for _, n := range r.MeasuredSizes {
		top = max(top, float64(n))
	}
	for _, c := range sizes {
		top = max(top, min(slices.Max(c.values), 1.5*top))
	}
	draw(b, plot{title: "Tokens of each request, estimated" + measuredKey(r), curves: sizes, most: top, window: float64(r.Window), dots: r.MeasuredSizes, label: short})
	top = 0
	for _, c := range sums {
		top = max(top, slices.Max(c.values))
	}
	title, label := "Input tokens so far, estimated", short
	if isPaid {
		title = strings.TrimSpace("Money so far, estimated, " + visible(r.Currency))
		title = strings.TrimSuffix(title, ",")
		label = func(v float64) string { return fmt.Sprintf("%.4g", v) }
	}
	draw(b, plot{title: title, curves: sums, most: top, label: label})
}

func measuredKey(r *Report) string {
	if r.Measured == nil {
		return ""
	}
	return "; dots are measured"
}

// A plot is what one picture shows.
type plot struct {
	title  string
	curves []curve
	most   float64 // the value at the top; larger ones are cut off
	window float64 // 0: no line
	dots   []int   // values for each request; 0: none
	label  func(float64) string
}

// draw writes a plot as SVG. Its colours are those of the page.
func draw(b *strings.Builder, p plot) {
	n := len(p.curves[0].values)
	step := tick(p.most)
	most := max(p.most, step)
	x := func(i int) float64 {
		if n == 1 {
			return plotLeft + inWidth/2
		}
		return plotLeft + inWidth*float64(i)/float64(n-1)
	}
	y := func(v float64) float64 { return plotTop + inHeight - inHeight*min(v, most)/most }
	fmt.Fprintf(b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n", plotWidth, plotHeight, escape(p.title))
	fmt.Fprintf(b, `<text class="title" x="0" y="16">%s</text>`+"\n", escape(p.title))
	at := 0
	for _, c := range p.curves {
		key := string(c.policy)
		if highest := slices.Max(c.values); highest > most {
			key += ", up to " + p.label(highest)
		}
		fmt.Fprintf(b, `<text class="key %s" x="%d" y="38">%s</text>`, c.policy, plotLeft+at, escape(key))
		at += 30 + 8*len(key)
	}
	if p.window > 0 {
		fmt.Fprintf(b, `<text class="key limit" x="%d" y="38">window</text>`, plotLeft+at)
	}
	b.WriteByte('\n')
	for v := 0.0; v <= most*1.0001; v += step {
		fmt.Fprintf(b, `<path class="grid" d="M%d %.1fh%d"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", plotLeft, y(v), inWidth, plotLeft-8, y(v)+4, escape(p.label(v)))
	}
	by := max(int(tick(float64(n))), 1)
	for i := by; i <= n; i += by {
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, x(i-1), plotHeight-plotBottom+18, commas(int64(i)))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">request</text>`+"\n", plotWidth-plotRight, plotHeight-6)
	if p.window > 0 && p.window <= most {
		fmt.Fprintf(b, `<path class="limit" d="M%d %.1fh%d"/>`+"\n", plotLeft, y(p.window), inWidth)
	}
	each := (n + mostPoints - 1) / mostPoints // requests that share a point
	for i := 0; i < len(p.dots); i += each {
		if v := slices.Max(p.dots[i:min(i+each, len(p.dots))]); v > 0 {
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="1.8"/>`, x(i), y(float64(v)))
		}
	}
	for _, c := range p.curves {
		fmt.Fprintf(b, `<path class="curve %s" d="`, c.policy)
		isOut := true // the pen is not down
		point := func(i int, v float64) {
			switch {
			case isOut && v > most:
				return
			case isOut:
				b.WriteByte('M')
			default:
				b.WriteByte('L')
			}
			fmt.Fprintf(b, "%.1f %.1f", x(i), y(v))
			isOut = v > most
		}
		for i := 0; i < n; i += each {
			part := c.values[i:min(i+each, n)]
			point(i, slices.Max(part))
			if each > 1 { // the lowest shows a compaction
				point(i, slices.Min(part))
			}
		}
		b.WriteString("\"/>\n")
	}
	b.WriteString("</svg>\n")
}

// mostPoints is how many points a curve has. Further requests share points.
const mostPoints = 800

// tick returns the distance between the lines of a scale: 1, 2 or 5 times a power of ten.
func tick(most float64) float64 {
	if !(most > 0) {
		return 1
	}
	step := 1.0
	for step*6 < most {
		step *= 10
	}
	for step > most && step > 1e-9 {
		step /= 10
	}
	for _, part := range []float64{10, 5, 2} {
		if step/part*6 >= most {
			return step / part
		}
	}
	return step
}

// short returns a number of tokens in few characters.
func short(n float64) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%.0fM", n/1e6)
	case n >= 1_000_000:
		return fmt.Sprintf("%.1fM", n/1e6)
	case n >= 10_000:
		return fmt.Sprintf("%.0fk", n/1e3)
	}
	return commas(int64(n))
}

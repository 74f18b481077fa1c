package life

import (
	"fmt"

	"github.com/seed-c1b73e60/convo/bench/internal/plot"
)

// Sizes of the picture.
const (
	height      = 340
	left, right = 64, 20
	top, bottom = 48, 48
	plotWidth   = plot.Width - left - right
	plotHeight  = height - top - bottom
	most        = 10_000 // tokens at the top
	labels      = 3      // the request above which two labels begin
)

// Draw returns the picture: the tokens of each request, a line for each life.
func Draw(lives []Life) []byte {
	p := plot.New(height, "Tokens of each request of an agent: with nothing it ends, with the usual trim it forgets, with convo it does neither")
	p.Heading(left, 26, "Tokens of each request of an agent")
	x := func(request int) int { return left + plotWidth*(request-1)/(requests-1) }
	y := func(tokens int) int { return top + plotHeight - plotHeight*tokens/most }
	for tokens := 0; tokens <= most; tokens += 2_000 {
		p.Path(plot.Grid, 1, fmt.Sprintf("M%d %dh%d", left, y(tokens), plotWidth))
		p.Text(plot.Faint, plot.End, left-8, y(tokens)+4, plot.Thousands(tokens))
	}
	for _, request := range []int{1, 20, 40, 60, 80, 100, 120} {
		p.Text(plot.Faint, plot.Middle, x(request), height-bottom+20, fmt.Sprint(request))
	}
	p.Text(plot.Faint, plot.End, plot.Width-right, height-8, "request")
	p.Dashed(plot.Red, fmt.Sprintf("M%d %dh%d", left, y(window), plotWidth))
	p.Text(plot.Red, plot.End, plot.Width-right, y(window)-6, "the provider refuses more")
	for i, life := range lives {
		colour := [...]plot.Colour{plot.Red, plot.Amber, plot.Blue}[i]
		p.Path(colour, 2, plot.Through(len(life.Tokens), func(n int) (int, int) { return x(n + 1), y(life.Tokens[n]) }))
		end := len(life.Tokens)
		switch {
		case life.Refused != "":
			p.Dot(colour, x(end), y(life.Tokens[end-1]), 4)
			p.Bold(colour, plot.Start, x(labels), y(9_700), fmt.Sprintf("%s removed: request %d is refused", life.Name, end+1))
		case life.Forgotten > 0:
			p.Dot(colour, x(life.Forgotten), y(life.Tokens[life.Forgotten-1]), 4)
			p.Bold(colour, plot.Start, x(labels), y(9_000), fmt.Sprintf("%s: the condition is gone from %d on", life.Name, life.Forgotten))
		default:
			p.Bold(colour, plot.End, x(requests), y(1_300), fmt.Sprintf("%s: all %d requests succeed,", life.Name, end))
			p.Bold(colour, plot.End, x(requests), y(500), "and each has the condition")
		}
	}
	return p.Bytes()
}

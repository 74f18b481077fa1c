package main

import (
	"bytes"
	"fmt"
	"strings"
)

// Sizes of the picture, in pixels.
const (
	width, height = 800, 340
	left, right   = 64, 24
	top, bottom   = 56, 44
	plotWidth     = width - left - right
	plotHeight    = height - top - bottom
	most          = 10_000 // tokens at the top
	labels        = 20     // the request above which two labels begin
)

// draw returns the picture: the tokens of each request, a line for each life.
func draw(lives []Life) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" role="img" aria-labelledby="t" font-family="system-ui, sans-serif" font-size="13">
<title id="t">Tokens of each request of an agent: with nothing it ends, with the usual trim it forgets, with convo it does neither</title>
<style>
.bg{fill:#ffffff}.text{fill:#24292f}.faint{fill:#57606a}.grid{stroke:#d0d7de}.limit{stroke:#cf222e}.limit-text{fill:#cf222e}
.l0{stroke:#cf222e;fill:#cf222e}.l1{stroke:#9a6700;fill:#9a6700}.l2{stroke:#0969da;fill:#0969da}.line{fill:none;stroke-width:2}.name{stroke:none;font-weight:600}
@media (prefers-color-scheme:dark){.bg{fill:#0d1117}.text{fill:#e6edf3}.faint{fill:#8d96a0}.grid{stroke:#30363d}.limit{stroke:#ff7b72}.limit-text{fill:#ff7b72}
.l0{stroke:#ff7b72;fill:#ff7b72}.l1{stroke:#d29922;fill:#d29922}.l2{stroke:#58a6ff;fill:#58a6ff}.line{fill:none}.name{stroke:none}}
</style>
<rect class="bg" width="%d" height="%d"/>
<text class="text" x="%d" y="26" font-size="16" font-weight="600">Tokens of each request, over the life of an agent</text>
`, width, height, width, width, height, left)
	x := func(request int) int { return left + plotWidth*(request-1)/(requests-1) }
	y := func(tokens int) int { return top + plotHeight - plotHeight*tokens/most }
	for tokens := 0; tokens <= most; tokens += 2_000 {
		fmt.Fprintf(&b, `<path class="grid" d="M%d %dh%d"/>`+"\n", left, y(tokens), plotWidth)
		fmt.Fprintf(&b, `<text class="faint" x="%d" y="%d" text-anchor="end">%s</text>`+"\n", left-8, y(tokens)+4, thousands(tokens))
	}
	for _, request := range []int{1, 20, 40, 60, 80, 100, 120} {
		fmt.Fprintf(&b, `<text class="faint" x="%d" y="%d" text-anchor="middle">%d</text>`+"\n", x(request), height-bottom+20, request)
	}
	fmt.Fprintf(&b, `<text class="faint" x="%d" y="%d" text-anchor="end">request</text>`+"\n", width-right, height-8)
	fmt.Fprintf(&b, `<path class="limit" stroke-dasharray="6 4" d="M%d %dh%d"/>`+"\n", left, y(window), plotWidth)
	fmt.Fprintf(&b, `<text class="limit-text" x="%d" y="%d" text-anchor="end">the provider refuses what is above</text>`+"\n", width-right, y(window)-6)
	for i, life := range lives {
		var path strings.Builder
		for n, tokens := range life.Tokens {
			fmt.Fprintf(&path, "%c%d %d", "ML"[min(n, 1)], x(n+1), y(tokens))
		}
		fmt.Fprintf(&b, `<path class="line l%d" d="%s"/>`+"\n", i, path.String())
		end := len(life.Tokens)
		switch {
		case life.Refused != "":
			fmt.Fprintf(&b, `<circle class="l%d" cx="%d" cy="%d" r="4"/>`+"\n", i, x(end), y(life.Tokens[end-1]))
			fmt.Fprintf(&b, `<text class="l%d name" x="%d" y="%d">%s: request %d is refused</text>`+"\n", i, x(labels), y(9_500), life.Name, end+1)
		case life.Forgotten > 0:
			fmt.Fprintf(&b, `<circle class="l%d" cx="%d" cy="%d" r="4"/>`+"\n", i, x(life.Forgotten), y(life.Tokens[life.Forgotten-1]))
			fmt.Fprintf(&b, `<text class="l%d name" x="%d" y="%d">%s: the user's condition is gone from request %d on</text>`+"\n", i, x(labels), y(8_800), life.Name, life.Forgotten)
		default:
			fmt.Fprintf(&b, `<text class="l%d name" x="%d" y="%d" text-anchor="end">%s: all %d requests, and the condition in each</text>`+"\n", i, x(requests), y(1_000), life.Name, end)
		}
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// thousands returns a number with a comma.
func thousands(n int) string {
	if n < 1_000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1_000, n%1_000)
}

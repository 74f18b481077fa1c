package cost

import (
	"fmt"
	"strings"

	"github.com/seed-c1b73e60/convo/bench/internal/plot"
)

// A Course is what the requests of one conversation weigh and cost with a policy.
type Course struct {
	Policy string
	Tokens []int // of each request
	Billed []int // of each request, in uncached tokens, with what summaries before it cost
	Ends   bool  // the next request is above the limit, and nothing makes it smaller
}

// pictured are the policies of the picture.
func pictured() []Policy {
	nothing, first, half, results := never(), trim(100), trim(50), rolling(10)
	nothing.Name = "nothing"
	first.Name = "drop the oldest until it fits"
	half.Name = "drop the oldest down to half"
	results.Name = "keep 10 results, clear the others before each request"
	ours := Default()
	ours.Name = "convo"
	model := summarized("convo, a model's summaries alone", true)
	return []Policy{nothing, first, results, half, ours, model}
}

// Limit and steps of the conversation in the picture.
const (
	pictureLimit = 100_000
	pictureSteps = 150
)

// Measure replays one generated run of an agent with each policy of the picture.
func Measure() ([]Course, error) {
	c, err := NewConversation("agent", AgentRun(1, pictureSteps))
	if err != nil {
		return nil, err
	}
	setup, prices := limited(pictureLimit), Profiles()[0]
	var all []Course
	for _, p := range pictured() {
		course := Course{Policy: p.Name}
		m := &Meter{Cache: setup.Cache, Limit: setup.Limit()}
		var before Tally
		m.sent = func() {
			if course.Ends || p.Free && m.Over > 0 {
				course.Ends = true
				return
			}
			b, side := m.Bill, m.Side
			b.Output = 0
			old := before.Bill
			old.Output = 0
			course.Tokens = append(course.Tokens, int(m.Input-before.Input))
			course.Billed = append(course.Billed, plot.Round(b.Units(prices)+side.Units(prices)-old.Units(prices)-before.Side.Units(prices)))
			before = m.Tally
		}
		run, err := p.Start(c, setup, m)
		if err != nil {
			return nil, err
		}
		if err := replay(c, run, setup, m); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		if err := run.Close(); err != nil {
			return nil, err
		}
		all = append(all, course)
	}
	return all, nil
}

// Sizes of the picture.
const (
	pictureLeft, pictureTop = 44, 96
	chartWidth, chartHeight = 192, 60
	chartGap, chartRow      = 36, 116
	chartMost               = 130_000 // tokens at the top of a chart
)

// Draw returns the picture: a row for each policy, with the tokens of each request on the
// left, and what they are billed as on the right.
func Draw(all []Course) []byte {
	height := pictureTop + len(all)*chartRow
	p := plot.New(height, "Tokens and billed tokens of each request of a long run of an agent, for each policy")
	right := pictureLeft + chartWidth + chartGap
	p.Heading(16, 26, "The size and the cost of each request")
	p.Text(plot.Faint, plot.Start, 16, 48, "Left: tokens of each request in a long run. Right: what")
	p.Text(plot.Faint, plot.Start, 16, 66, "it is billed as with a prompt cache, in uncached tokens.")
	for i, c := range all {
		colour := plot.Amber
		switch {
		case c.Ends:
			colour = plot.Red
		case strings.HasPrefix(c.Policy, "convo"):
			colour = plot.Blue
		}
		y := pictureTop + i*chartRow
		p.Bold(colour, plot.Start, 16, y, c.Policy)
		said := plot.Millions(sumOf(c.Tokens)) + " tokens, billed as " + plot.Millions(sumOf(c.Billed))
		if c.Ends {
			said = fmt.Sprintf("ends: request %d is too long", len(c.Tokens)+1)
		}
		p.Text(plot.Ink, plot.Start, 16, y+18, said)
		grid := ""
		for n, tick := range []int{0, 50_000, 100_000} {
			line := y + 20 + chartHeight - over(tick)
			grid += fmt.Sprintf("M%d %dh%dM%d %dh%d", pictureLeft, line, chartWidth, right, line, chartWidth)
			p.Small(plot.Faint, plot.End, pictureLeft-6, line+4, []string{"0", "50k", "100k"}[n])
		}
		p.Path(plot.Grid, 1, grid)
		chart(p, colour, pictureLeft, y+20+chartHeight, c.Tokens)
		chart(p, colour, right, y+20+chartHeight, c.Billed)
		if c.Ends {
			last := len(c.Tokens) - 1
			p.Dot(colour, pictureLeft+at(last), y+20+chartHeight-over(c.Tokens[last]), 4)
		}
	}
	for _, request := range []int{1, 50, 100, 150} {
		p.Small(plot.Faint, plot.Middle, pictureLeft+at(request-1), height-8, fmt.Sprint(request))
		p.Small(plot.Faint, plot.Middle, right+at(request-1), height-8, fmt.Sprint(request))
	}
	return p.Bytes()
}

// at and over return where a request stands, and how high its tokens are.
func at(request int) int  { return request * chartWidth / (pictureSteps + 1) }
func over(tokens int) int { return min(tokens, chartMost) * chartHeight / chartMost }

// chart draws a line over the requests.
func chart(p *plot.Picture, c plot.Colour, left, bottom int, values []int) {
	x, y := left, bottom-over(values[0])
	d := fmt.Sprintf("M%d %dl", x, y)
	for i, v := range values[1:] {
		nextX, nextY := left+at(i+1), bottom-over(v)
		d += fmt.Sprintf("%d %d ", nextX-x, nextY-y)
		x, y = nextX, nextY
	}
	p.Path(c, 2, d[:len(d)-1])
}

func sumOf(values []int) (sum int) {
	for _, v := range values {
		sum += v
	}
	return sum
}

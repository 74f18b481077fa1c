// Package compaction runs one compaction of a short conversation, and draws what stands in
// the request before and after it.
package compaction

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/internal/plot"
)

// A Shot is a request before and after a compaction.
type Shot struct {
	Limit, Low    int
	Before, After []Segment
	Report        string
}

// A Segment is an entry of a request, or its summary.
type Segment struct {
	ID     uint64 // 0: the summary
	Kind   string
	Tokens int
	Pinned bool
}

// The kinds of segments.
const (
	system  = "system"
	user    = "user"
	answer  = "assistant"
	result  = "tool result"
	cleared = "cleared result"
	summary = "summary"
)

// Measure lets a History fill its window and compact once. It has the default strategy.
func Measure() (Shot, error) {
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 8_000, Reserve: 1_000}, TagKey: "shot"})
	if err != nil {
		return Shot{}, err
	}
	defer h.Close()
	if err := fill(h); err != nil {
		return Shot{}, err
	}
	before := h.Snapshot()
	_, report, err := h.Prepare(context.Background())
	if err != nil {
		return Shot{}, err
	}
	status := h.Status()
	return Shot{
		Limit: status.Limit, Low: status.Low,
		Before: segments(before, report), After: segments(h.Snapshot(), report),
		Report: fmt.Sprint(report),
	}, nil
}

// fill appends turns with tool calls until the next request is above the limit.
func fill(h *convo.History) error {
	if _, err := h.Append(convo.System("You repair Go programs. " + text(1_200))); err != nil {
		return err
	}
	if _, err := h.Append(convo.User("Make the tests pass. Never change the exported API. " + text(500))); err != nil {
		return err
	}
	if err := h.PinLast(); err != nil {
		return err
	}
	for n, size := range []int{2_600, 1_800, 3_000, 1_400, 2_400, 1_800, 2_000, 1_600} {
		if n > 0 && n%2 == 0 {
			if _, err := h.Append(convo.Assistant(text(1_400)), convo.User(fmt.Sprintf("Part %d is right. Now the next one. ", n/2)+text(700))); err != nil {
				return err
			}
		}
		call := convo.ToolCall{ID: fmt.Sprintf("call_%d", n), Name: "read", Arguments: fmt.Sprintf(`{"path":"pkg/file_%d.go"}`, n)}
		if _, err := h.Append(convo.Assistant(text(700), call), convo.Result(call, text(size))); err != nil {
			return err
		}
	}
	return nil
}

// text returns words of about so many bytes.
func text(size int) string {
	const words = "the parser reads one line after the other and keeps what it does not know, so that a later version can write it again. "
	return strings.Repeat(words, size/len(words)+1)[:size]
}

// segments returns what stands in a request that has the given report's results cleared, or
// will have them cleared.
func segments(s *convo.Snapshot, r convo.Report) (all []Segment) {
	_, summarised := s.Summary()
	for _, e := range s.All() {
		kind := map[convo.Role]string{convo.RoleSystem: system, convo.RoleUser: user, convo.RoleAssistant: answer, convo.RoleTool: result}[e.Message.Role]
		if kind == result && e.Missing > 0 && slices.Contains(r.Cleared, e.ID) {
			kind = cleared
		}
		if kind != system && summarised {
			all = append(all, Segment{Kind: summary, Tokens: r.SummaryAfter})
			summarised = false
		}
		all = append(all, Segment{ID: uint64(e.ID), Kind: kind, Tokens: e.Tokens, Pinned: e.Pinned})
	}
	return all
}

// Sizes of the picture.
const (
	height      = 374
	left, right = 80, 16
	barTop      = 100 // of the first bar
	barHeight   = 44
	between     = 56 // the bars
	legend      = 24 // between the lines of the legend
)

var colours = map[string]plot.Colour{system: plot.Faint, user: plot.Blue, answer: plot.Purple, result: plot.Amber, cleared: plot.Amber, summary: plot.Green}

// Draw returns the picture: the request before and after the compaction, and what stayed.
func Draw(shot Shot) []byte {
	p := plot.New(height, "One compaction: the request before and after it")
	p.Heading(16, 26, "One compaction: the request before and after it")
	most := 0
	for _, s := range shot.Before {
		most += s.Tokens
	}
	across := func(tokens int) int { return left + tokens*(plot.Width-left-right)/most }
	second := barTop + barHeight + between
	for _, mark := range []struct {
		name       string
		tokens, up int
	}{{"low, where it aims", shot.Low, 22}, {"high, where it starts", shot.Limit, 42}} {
		p.Dashed(plot.Faint, fmt.Sprintf("M%d %dV%d", across(mark.tokens), barTop-mark.up-12, second+barHeight+8))
		p.Text(plot.Faint, plot.End, across(mark.tokens)-6, barTop-mark.up, fmt.Sprintf("%s: %s", mark.name, plot.Thousands(mark.tokens)))
	}
	for _, label := range []struct {
		top  int
		name string
	}{{barTop, "before"}, {second, "after"}} {
		p.Bold(plot.Ink, plot.Start, 16, label.top+barHeight/2+5, label.name)
	}
	from := bar(p, shot.Before, barTop, across)
	to := bar(p, shot.After, second, across)
	for _, s := range shot.Before {
		a, b := from[s.ID], to[s.ID]
		if b.Right > b.Left {
			p.Area(colours[s.Kind], 20, fmt.Sprintf("M%d %dH%dL%d %dH%dz", a.Left, a.Bottom+1, a.Right, b.Right, b.Top-1, b.Left))
		}
	}
	for i, kind := range []string{system, user, answer, result, cleared, summary} {
		x, y := 16+i%3*150, height-96+i/3*legend
		p.Rect(colours[kind], opacity(kind), x, y-11, 12, 12)
		p.Text(plot.Ink, plot.Start, x+18, y, kind)
	}
	total, removed, _ := strings.Cut(shot.Report, ": ")
	p.Text(plot.Ink, plot.Start, 16, height-40, total+":")
	p.Text(plot.Ink, plot.Start, 16, height-18, removed)
	return p.Bytes()
}

func opacity(kind string) int {
	if kind == cleared {
		return 40
	}
	return 100
}

// bar draws a request, and returns where its entries are.
func bar(p *plot.Picture, all []Segment, top int, across func(int) int) map[uint64]plot.Box {
	boxes := map[uint64]plot.Box{}
	tokens := 0
	for _, s := range all {
		b := plot.Box{Left: across(tokens), Top: top, Right: across(tokens+s.Tokens) - 1, Bottom: top + barHeight}
		p.Rect(colours[s.Kind], opacity(s.Kind), b.Left, b.Top, max(b.Right-b.Left, 1), barHeight)
		tokens += s.Tokens
		boxes[s.ID] = b
		if s.Pinned {
			p.Small(plot.Ink, plot.Middle, (b.Left+b.Right)/2, b.Top-5, "pinned")
		}
	}
	return boxes
}

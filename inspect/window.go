package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// A window shows the size of the next request: in three figures, and as a bar.
type window struct {
	Figures       []figure
	Counted       []segment // what was measured and what is estimated
	Kinds         []segment // in a fixed order
	Legend        []key
	CountedLegend []key
	Marks         []mark
	MarksLabel    string
	MarksHeight   int
	Unknown       string // says which marks are not known
	WordsOpen     bool   // whether the words are explained
	Keep          link
	whole         int // tokens of the whole bar
}

// A figure is what a reader looks at first.
type figure struct {
	Name, Value, Text string
	Bad               bool
}

// A segment is a part of a bar.
type segment struct {
	Kind, Label string
	Tokens      int
	X, Width    string
}

// A key is a line of a legend: a small rectangle, and what it stands for.
type key struct {
	Kind, Class         string
	X, Y, Width, Height string
	Name, Number        string
}

func keyOf(kind, name string) key {
	return key{Kind: kind, X: "0%", Y: "0%", Width: "100%", Height: "100%", Name: name}
}

// legend returns a legend of segments with their tokens.
func legend(segments []segment) (keys []key) {
	for _, s := range segments {
		k := keyOf(s.Kind, s.Kind)
		k.Number = grouped(s.Tokens)
		keys = append(keys, k)
	}
	return keys
}

// segmentOf returns a segment of a bar that stands for a number of tokens.
func segmentOf(kind string, tokens, from, width, whole int) segment {
	return segment{kind, kind + ": " + counted(tokens, "token", "tokens"), tokens, percent(from, whole), percent(width, whole)}
}

// A mark is a limit on the bar.
type mark struct {
	Label         string
	X, Anchor, DX string
	Tokens        int
	Row, Bottom   int // of the label, and of the line to it
}

// kinds returns the kinds of a Breakdown in their order.
func kinds(b *convo.Breakdown) []segment {
	return []segment{
		{Kind: "system", Tokens: b.System}, {Kind: "tools", Tokens: b.Tools}, {Kind: "summary", Tokens: b.Summary},
		{Kind: "user", Tokens: b.User}, {Kind: "assistant", Tokens: b.Assistant}, {Kind: "reasoning", Tokens: b.Reasoning},
		{Kind: "calls", Tokens: b.Calls}, {Kind: "results", Tokens: b.Results}, {Kind: "media", Tokens: b.Media},
		{Kind: "ephemeral", Tokens: b.Ephemeral},
	}
}

// windowOf returns the window at a moment.
func windowOf(m *moment) window {
	b, e := m.breakdown, m.estimate
	var w window
	whole := max(b.Window, e.Tokens, e.Upper, m.status.High, 1)
	w.whole = whole
	add := func(to *[]segment, kind string, tokens, from, end int) {
		if tokens > 0 {
			*to = append(*to, segmentOf(kind, tokens, from, end-from, whole))
		}
	}
	at := 0
	for _, k := range kinds(&b) {
		add(&w.Kinds, k.Kind, k.Tokens, at, at+k.Tokens)
		at += k.Tokens
	}
	if b.Window > 0 {
		end := max(b.Window-b.Reserve, at)
		add(&w.Kinds, "free", end-at, at, end)
		add(&w.Kinds, "reserve", b.Reserve, end, max(b.Window, end)) // what is in use may take all of its place
	}
	add(&w.Counted, "measured", e.Measured, 0, e.Measured)
	add(&w.Counted, "estimated", e.Tokens-e.Measured, e.Measured, e.Tokens)
	add(&w.Counted, "margin", e.Upper-e.Tokens, e.Tokens, e.Upper)
	w.Legend, w.CountedLegend = legend(w.Kinds), legend(w.Counted)
	w.Figures = append(w.Figures, size(m.status))
	if m.limitless != "" && m.status.Limit+m.status.High == 0 {
		w.Figures[0].Text, w.Unknown = "the limit is not known", "The window and the marks low, soft, high and limit are not known: "+m.limitless
	}
	if f, ok := growth(m); ok {
		w.Figures = append(w.Figures, f)
	}
	if e.Tokens > 0 {
		w.Figures = append(w.Figures, certainty(m))
	}
	w.showMarks(m.status, whole)
	return w
}

// size says how large the next request is.
func size(status convo.Status) figure {
	f := figure{Name: "Next request", Value: counted(status.Upper, "token", "tokens"), Text: "no limit is set"}
	if status.Limit > 0 {
		f.Value = fmt.Sprintf("%d %%", int(100*float64(status.Upper)/float64(status.Limit)))
		f.Text = fmt.Sprintf("%s of %s tokens", grouped(status.Upper), grouped(status.Limit))
		if f.Bad = status.Upper > status.Limit; f.Bad {
			f.Text += fmt.Sprintf("; it may be %s tokens too large", grouped(status.Upper-status.Limit))
		}
		if status.Assumed {
			f.Text += "; the window is a guess"
		}
	}
	return f
}

// certainty says how much of an estimate was measured.
func certainty(m *moment) figure {
	e := m.estimate
	f := figure{Name: "Measured", Value: "nothing", Text: "no usage report yet; all is estimated"}
	switch {
	case m.limitless != "":
		f.Value, f.Text = "not known", "without its History; all is shown as estimated"
	case e.Measured > 0:
		f.Value = fmt.Sprintf("%d %%", int(100*float64(e.Measured)/float64(max(e.Tokens, e.Measured))))
		f.Text = "by the provider; the rest is estimated"
	}
	return f
}

// showMarks draws the limits: each has a row of its own, so that no two labels overlap.
func (w *window) showMarks(status convo.Status, whole int) {
	var marks []mark
	for _, m := range []mark{{Label: "low", Tokens: status.Low}, {Label: "soft", Tokens: status.Soft}, {Label: "high", Tokens: status.High}, {Label: "limit", Tokens: status.Limit}} {
		same := slices.IndexFunc(marks, func(o mark) bool { return o.Tokens == m.Tokens })
		switch {
		case m.Tokens <= 0:
		case same >= 0:
			marks[same].Label += ", " + m.Label
		default:
			marks = append(marks, m)
		}
	}
	slices.SortStableFunc(marks, func(a, b mark) int { return cmp.Compare(a.Tokens, b.Tokens) })
	// Labels to the right of their marks go from right to left, so that no line crosses one.
	right := 0
	for right < len(marks) && 100*marks[right].Tokens < 35*whole {
		right++
	}
	slices.Reverse(marks[:right])
	var labels []string
	for i, m := range marks {
		m.Label = fmt.Sprintf("%s %s", m.Label, grouped(m.Tokens))
		m.X, m.Anchor, m.DX = percent(m.Tokens, whole), "end", "-4"
		if i < right {
			m.Anchor, m.DX = "start", "4"
		}
		m.Row, m.Bottom = 4+15*i, 14+15*i
		w.Marks = append(w.Marks, m)
		labels = append(labels, m.Label)
	}
	w.MarksLabel, w.MarksHeight = "Marks: "+strings.Join(labels, ", "), 4+15*len(marks)
}

// growth says how many turns, or in a single turn how many exchanges, fit before a
// compaction, if they are as long as the newest ten. It is false if that is not known.
func growth(m *moment) (f figure, ok bool) {
	const newest = 10
	f.Name = "Before the next compaction"
	all := slices.DeleteFunc(slices.Clone(m.exchanges), func(x convo.Exchange) bool { return x.Turn == 0 })
	if m.status.High == 0 || m.Tokens() == 0 || len(all) == 0 {
		return f, false
	}
	n, tokens, one, many := 0, 0, "turn", "turns"
	turn := 0 // the last that was counted
	if all[0].Turn == all[len(all)-1].Turn {
		one, many = "exchange", "exchanges"
	}
	for _, x := range slices.Backward(all) {
		if x.Turn != turn || one == "exchange" {
			if n == newest {
				break
			}
			turn = x.Turn
			n++
		}
		for _, id := range x.IDs() {
			e, _ := m.Find(id)
			tokens += e.Tokens + e.Missing
		}
	}
	each := float64(tokens) / float64(n) * float64(m.status.Tokens) / float64(m.Tokens())
	if each < 1 {
		return f, false
	}
	f.Text = fmt.Sprintf("at %s tokens per %s, as in the newest %s", grouped(int(each)), one, grouped(n))
	if n == 1 {
		f.Text = fmt.Sprintf("at %s tokens per %s, the size of the newest", grouped(int(each)), one)
	}
	switch left := int(float64(m.status.High-m.status.Upper) / each); {
	case m.status.Upper > m.status.High:
		f.Value, f.Text, f.Bad = "due now", "the request is above high", true
	case left == 0:
		f.Value = "less than 1 " + one
	default:
		f.Value = "about " + counted(left, one, many)
	}
	return f, true
}

package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/cli"
	"github.com/seed-c1b73e60/convo/inspect"
)

// A shown is what show -json writes for each conversation, in one line.
type shown struct {
	At       string         `json:"at"`
	Format   string         `json:"format"`
	Title    string         `json:"title,omitempty"`
	Model    string         `json:"model,omitempty"`
	Messages int            `json:"messages"`
	Turns    int            `json:"turns"`
	Open     int            `json:"open_calls"`
	Repaired int            `json:"repaired"`
	Measured int            `json:"measured,omitempty"` // what the provider counted in the newest request
	Tokens   int            `json:"tokens"`
	Kinds    map[string]int `json:"kinds"`
	Window   int            `json:"window,omitempty"`
	Reserve  int            `json:"reserve,omitempty"`
	Free     int            `json:"free,omitempty"`
}

func show(ctx context.Context, env *cli.Env, args []string) int {
	flags := cli.NewFlags("show", "[FILE...]", `Says what fills the context window: how many tokens the next request takes, by kind. The tokens are estimates from the text. In a snapshot they are corrected by what its provider has counted. "convo count" counts exactly where that is possible.`)
	flags.More = `Examples:
  convo show -window 200000 request.json
  convo show -html page.html session.jsonl`
	var o reader
	o.addFlags(flags, "format", readable())
	window := flags.Int("window", 0, "the context window of the model, in `TOKENS`; the recorded one if absent")
	var page pageFile
	page.addFlag(flags, "a page for a browser that needs no other file")
	asJSON := flags.Bool("json", false, "write an object for each conversation")
	names, code, ok := flags.Parse(env, args)
	if !ok {
		return code
	}
	if err := o.check(); err != nil {
		return flags.Misused(env, "%w", err)
	}
	if *window < 0 {
		return flags.Misused(env, "-window %d: want a number of tokens", *window)
	}
	if err := page.check(); err != nil {
		return flags.Misused(env, "%w", err)
	}
	n, worst := 0, cli.OK
	var first *convo.Snapshot
	for c, err := range o.read(ctx, env, names) {
		if err != nil {
			worst = max(worst, fail(env, "show", err))
			continue
		}
		worst = max(worst, c.tell(env))
		if *window > 0 {
			c.window = *window
		}
		opts := convo.Options{Limits: convo.Limits{Window: c.window}, Overheads: c.overheads()}
		opts.Limits.Tools = c.hidden(opts)
		if opts.Limits.Tools > 0 {
			env.Note("%s: %s not in the file; by what the provider has counted they take about %s tokens, shown as tools", c.at, c.unseen, cli.Number(opts.Limits.Tools))
		} else {
			c.tellUnseen(env)
		}
		h, faults, err := c.history(opts)
		if err != nil {
			worst = max(worst, fail(env, "show", err))
			continue
		}
		if raw, tokens := h.Snapshot().Tokens(), h.Tokens().Tokens; c.snap != nil && raw != tokens {
			env.Note("%s: by what the provider has counted, %s tokens instead of the estimated %s, which \"convo count\" shows", c.at, cli.Number(tokens), cli.Number(raw))
		}
		n++
		if page.name != "" && n == 1 {
			first = titled(c, h)
		}
		if *asJSON {
			writeJSON(env, summary(c, h, faults))
			continue
		}
		if n > 1 {
			fmt.Fprintln(env.Stdout)
		}
		printWindow(env, c, h, faults)
	}
	switch {
	case first == nil:
		return worst
	case n > 1:
		return env.Fail(cli.Usage, "show: -html writes one conversation, and there are several; choose with -only N, counted from 1")
	}
	if err := page.write(func(w io.Writer) error { return inspect.WriteHTML(w, first) }); err != nil {
		return env.Fail(cli.Unreadable, "show: the page cannot be written: %w", err)
	}
	return worst
}

// titled returns the snapshot of a conversation for a page. Its title is that of the page.
func titled(c *conversation, h *convo.History) *convo.Snapshot {
	s := h.Snapshot()
	if title, _ := s.Meta(); title == "" && h.SetMeta(pageTitle(c), "") == nil {
		return h.Snapshot()
	}
	return s
}

// pageTitle returns the title of the page of a conversation.
func pageTitle(c *conversation) string {
	if c.title != "" {
		return c.title
	}
	return c.at
}

func summary(c *conversation, h *convo.History, faults []*convo.SnapshotError) shown {
	st, b := h.Status(), h.Snapshot().Breakdown()
	out := shown{
		At: c.at, Format: c.format, Title: c.title, Model: c.model,
		Messages: st.Entries, Turns: st.Turns, Open: st.OpenCalls, Repaired: len(faults), Measured: c.measured, Kinds: map[string]int{},
		Window: b.Window, Reserve: b.Reserve, Free: b.Free,
	}
	for _, k := range c.kinds(b) {
		out.Tokens += k.tokens
		out.Kinds[k.name] = k.tokens
	}
	return out
}

// A kind is a part of a request.
type kind struct {
	name   string
	tokens int
	color  int // of the terminal, 0 to 7
	letter byte
}

// kindsOf returns all kinds, in the order in which they stand in a request.
func kindsOf(b convo.Breakdown) []kind {
	return []kind{
		{"system", b.System, 5, 's'},
		{"tools", b.Tools, 6, 't'},
		{"summary", b.Summary, 3, 'S'},
		{"user", b.User, 4, 'u'},
		{"assistant", b.Assistant, 2, 'a'},
		{"reasoning", b.Reasoning, 2, 'r'},
		{"calls", b.Calls, 1, 'c'},
		{"results", b.Results, 1, 'R'},
		{"media", b.Media, 7, 'm'},
		{"ephemeral", b.Ephemeral, 7, 'e'},
	}
}

// kinds returns the kinds of a conversation. If it has no tools, what the provider has counted
// in addition to the messages is of the kind "other".
func (c *conversation) kinds(b convo.Breakdown) []kind {
	if len(c.tools)+len(c.rawTool) > 0 || c.unseen != "" {
		return kindsOf(b)
	}
	other := kind{"other", b.Tools, 6, 'o'}
	b.Tools = 0
	return append(kindsOf(b), other)
}

// printWindow prints the bar and the table of a conversation.
func printWindow(env *cli.Env, c *conversation, h *convo.History, faults []*convo.SnapshotError) {
	st, b := h.Status(), h.Snapshot().Breakdown()
	kinds := c.kinds(b)
	total := 0
	for _, k := range kinds {
		total += k.tokens
	}
	head := c.at + ": " + c.format
	if c.model != "" {
		head += ", " + c.model
	}
	if c.title != "" {
		head += ", " + cli.Line(c.title, 60)
	}
	fmt.Fprint(env.Stdout, cli.Wrap(cli.Visible(oneLine(head)), env.Width, ""))
	about := cli.Plural(st.Entries, "message") + " in " + cli.Plural(st.Turns, "turn")
	if st.OpenCalls > 0 {
		about += ", " + cli.Plural(st.OpenCalls, "open call")
	}
	size := "about " + cli.Number(total) + " tokens"
	if b.Window > 0 {
		size += " of " + cli.Number(b.Window) + " (" + percent(total, b.Window) + ")"
		if b.Free < 0 {
			size += ", " + cli.Number(-b.Free) + " over the limit"
		}
	}
	fmt.Fprint(env.Stdout, cli.Wrap(about+"; "+size, env.Width, ""))
	if c.measured > 0 {
		fmt.Fprint(env.Stdout, cli.Wrap("the provider counted "+cli.Number(c.measured)+" tokens in the newest request", env.Width, ""))
	}
	if len(faults) > 0 {
		fmt.Fprint(env.Stdout, cli.Wrap(cli.Plural(len(faults), "fault")+" repaired, the first: "+cli.Line(faultText(faults[0]), 200), env.Width, ""))
	}
	if total == 0 {
		return
	}
	fmt.Fprintf(env.Stdout, "\n%s\n", bar(env, kinds, total, h.Snapshot()))
	printKinds(env, kinds, total, b)
}

// printKinds prints the table of the kinds that there are.
func printKinds(env *cli.Env, kinds []kind, total int, b convo.Breakdown) {
	var t cli.Table
	t.Left = 2
	whole := b.Window
	if whole == 0 {
		whole = total
	}
	row := func(sign, name string, tokens int) {
		t.Add(sign, name, cli.Number(tokens), percent(tokens, whole))
	}
	for _, k := range kinds {
		if k.tokens > 0 {
			row(sign(env, k), k.name, k.tokens)
		}
	}
	if b.Window > 0 {
		if b.Free > 0 {
			row(".", "free", b.Free)
		}
		row("-", "reserve", b.Reserve)
	}
	fmt.Fprint(env.Stdout, t.String())
	if other := kinds[len(kinds)-1]; other.name == "other" && other.tokens > 0 {
		fmt.Fprint(env.Stdout, cli.Wrap("other: what the provider has counted in addition to the messages", env.Width, ""))
	}
	if b.Pinned > 0 {
		fmt.Fprintf(env.Stdout, "pinned, in the above: %s\n", cli.Number(b.Pinned))
	}
	if b.Window == 0 {
		fmt.Fprintln(env.Stdout, "-window TOKENS shows what is free")
	}
}

// sign returns the sign of a kind in the bar.
func sign(env *cli.Env, k kind) string {
	if env.Color {
		return fmt.Sprintf("\x1b[3%dm%c\x1b[0m", k.color, k.letter)
	}
	return string(k.letter)
}

// bar returns the window as a line, each kind with its letter, and below it the limits.
func bar(env *cli.Env, kinds []kind, total int, s *convo.Snapshot) string {
	b := s.Breakdown()
	width := min(env.Width, 80) - 2
	whole := max(b.Window, total)
	column := func(tokens int) int { return int(float64(tokens)/float64(whole)*float64(width) + 0.5) }
	var line strings.Builder
	line.WriteByte('[')
	at, sum := 0, 0
	for _, k := range kinds {
		sum += k.tokens
		if n := column(sum) - at; n > 0 {
			cells := strings.Repeat(string(k.letter), n)
			if env.Color {
				cells = fmt.Sprintf("\x1b[3%d;7m%s\x1b[0m", k.color, cells)
			}
			line.WriteString(cells)
			at += n
		}
	}
	if b.Window > 0 {
		free := max(column(b.Window-b.Reserve)-at, 0)
		line.WriteString(strings.Repeat(".", free))
		at += free
		line.WriteString(strings.Repeat("-", max(width-at, 0)))
	}
	line.WriteString("]\n")
	if b.Window > 0 && b.Reserve > 0 {
		line.WriteString(mark(column(b.Window-b.Reserve), width, "limit "+cli.Number(b.Window-b.Reserve)))
	}
	if b.Window > 0 {
		line.WriteString(mark(column(b.Window), width, "window "+cli.Number(b.Window)))
	}
	return line.String()
}

// mark returns a line that marks a column of the bar.
func mark(column, width int, text string) string {
	if column+1+len(text)+2 <= width+2 {
		return strings.Repeat(" ", column+1) + "^ " + text + "\n"
	}
	return strings.Repeat(" ", max(column-len(text), 0)) + text + " ^\n"
}

// percent returns a share, such as "12 %".
func percent(n, of int) string {
	if of == 0 {
		return "0 %"
	}
	p := 100 * float64(n) / float64(of)
	if n > 0 && p < 1 {
		return "<1 %"
	}
	return fmt.Sprintf("%.0f %%", p)
}

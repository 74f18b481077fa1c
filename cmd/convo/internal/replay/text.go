package replay

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/cmd/convo/internal/cli"
)

// A row is a row of the table: a label and a cell for each policy. A row without cells is a
// heading.
type row struct {
	label string
	cells []string
}

// none is the cell of a figure that a policy does not have.
const none = "–"

// rows returns the table.
func (r *Report) rows() []row {
	each := func(label string, figure func(*Bill) string) row {
		out := row{label: label}
		for _, p := range Policies {
			out.cells = append(out.cells, figure(r.Policies[p]))
		}
		return out
	}
	number := func(label string, figure func(*Bill) int64) row {
		return each(label, func(b *Bill) string { return sum(figure(b)) })
	}
	all := func(label, cell string) row { return each(label, func(*Bill) string { return cell }) }
	measured := func(label string, n int64) row {
		return row{label: label, cells: []string{sum(n), none, none, none}}
	}
	table := []row{all("requests", commas(int64(r.Requests)))}
	if m := r.Measured; m != nil {
		heading := "input, measured"
		if m.Requests < r.Requests {
			heading += ", of " + cli.Plural(m.Requests, "request")
		}
		table = append(table,
			row{label: heading},
			measured("  largest", int64(m.Largest)),
			measured("  total", m.Input),
			measured("  over the window", int64(m.Over)),
			measured("  new", m.New),
			measured("  cached", m.Cached),
			measured("  written", m.Written),
		)
	}
	table = append(table,
		row{label: "input, estimated"},
		number("  largest", func(b *Bill) int64 { return int64(b.Largest) }),
		number("  total", func(b *Bill) int64 { return b.Input }),
		number("  over the window", func(b *Bill) int64 { return int64(b.Over) }),
		number("  new", func(b *Bill) int64 { return b.New }),
		number("  cached", func(b *Bill) int64 { return b.Cached }),
		number("  written", func(b *Bill) int64 { return b.Written }),
		number("compactions", func(b *Bill) int64 { return int64(b.Compactions) }),
		each("prefix kept, estimated", func(b *Bill) string {
			if b.Later == 0 {
				return none
			}
			return strconv.FormatFloat(100*b.Kept(), 'f', 1, 64) + " %"
		}),
	)
	if r.Output.Measured > 0 {
		table = append(table, all("output, measured", sum(r.Output.Measured)))
	}
	if r.Output.Estimated > 0 || r.Output.Measured == 0 {
		table = append(table, all("output, estimated", sum(r.Output.Estimated)))
	}
	if r.Policies[Recorded].Money > 0 || r.Currency != "" {
		unit := strings.TrimSpace(" " + visible(r.Currency))
		amount := func(n float64) string {
			if n == 0 && len(r.Unpriced) > 0 {
				return none // what has no price is not free
			}
			return money(n)
		}
		if r.Measured != nil {
			table = append(table, row{label: "money, measured" + in(unit), cells: []string{amount(r.Measured.Money), none, none, none}})
		}
		table = append(table, each("money, estimated"+in(unit), func(b *Bill) string { return amount(b.Money) }))
	}
	return table
}

func in(unit string) string {
	if unit == "" {
		return ""
	}
	return ", " + unit
}

func money(n float64) string {
	if n >= 100 {
		return commas(int64(n + 0.5))
	}
	return strconv.FormatFloat(n, 'f', 2+2*btoi(n < 1), 64)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// title says what was replayed.
func (r *Report) title() string {
	what := "1 session"
	if r.Sessions != 1 {
		what = commas(int64(r.Sessions)) + " sessions"
	}
	if r.Name != "" {
		what = visible(r.Name) + ": " + what
	}
	if r.Format != "" {
		what += " of " + visible(r.Format)
	}
	window := "window "
	if r.WindowsDiffer {
		window = "windows up to "
	}
	return fmt.Sprintf("%s, %s%s, of which %s for the request", what, window, commas(int64(r.Window)), commas(int64(r.Limit)))
}

// NotUnderstood reports whether more than 1 % of the records were not understood.
func (r *Report) NotUnderstood() bool { return r.Unknown*100 > r.Records }

// Warning says what has to be said before everything else. It may be empty.
func (r *Report) Warning() string {
	var all []string
	if r.NotUnderstood() {
		all = append(all, fmt.Sprintf("%s of %s (%.1f %%) %s in no figure.", commas(int64(r.Unknown)), cli.Plural(r.Records, "record"),
			100*float64(r.Unknown)/float64(max(r.Records, 1)), pick(r.Unknown, "was not understood and is", "were not understood and are")))
	}
	if r.Contradicted > 0 {
		which := "one"
		if r.Worst.Request > 0 {
			which = "request " + commas(int64(r.Worst.Request))
		}
		all = append(all, fmt.Sprintf("%s of %s %s to hold: %s had %s tokens, and is estimated at %s.", commas(int64(r.Contradicted)), cli.Plural(r.Measured.Requests, "measured request"),
			pick(r.Contradicted, "differs by more than 20 % from what the replay takes it", "differ by more than 20 % from what the replay takes them"),
			which, commas(int64(r.Worst.Measured)), commas(int64(r.Worst.Estimated))))
	}
	return strings.Join(all, " ")
}

// Notes are sentences that say what the figures mean.
func (r *Report) Notes() []string {
	var notes []string
	say := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	say("Recorded answers stay as they were: a replay says what each request would have held and cost, not what the model would have done.")
	switch m := r.Measured; {
	case m == nil:
		say("The file holds no usage, so every size is an estimate.")
	default:
		say("Measured figures are what the provider reported for %s of %s requests. All other sizes are estimates; of the measured requests they come to %s of the measured tokens.%s",
			commas(int64(m.Requests)), commas(int64(r.Requests)), percent(r.MeasuredEstimate, m.Input), r.offWindow())
	}
	r.sayOverhead(say)
	expiry := "never expires"
	if r.CacheTTL > 0 {
		expiry = "expires after " + pause(r.CacheTTL)
	}
	say("Estimated requests are billed with a cache that %s and takes nothing shorter than %s tokens. What repeats the beginning of the request before is cached.", expiry, commas(int64(r.CacheMin)))
	say("“nothing” sends everything, “trim” drops the oldest exchanges down to half when a request is too large, and “convo” has its defaults: its summaries are extracts made without a model, and hold nothing of the summaries that were recorded.")
	if r.Unsent > 0 {
		say("%s not fit whatever is removed: the newest exchange and the user's newest message are too large. convo returns an error in place of each; here they are sent and counted.", cli.Plural(r.Unsent, "request")+pick(r.Unsent, " does", " do"))
	}
	if n := len(r.Unpriced); n > 0 {
		names := make([]string, n)
		for i, name := range r.Unpriced {
			names[i] = visible(name)
		}
		say("The file of prices has none for %s; those requests are in no sum of money.", strings.Join(names, ", "))
	}
	r.sayCompactions(say)
	if r.Calls > 0 {
		say("%s %s one made before.", cli.Plural(r.Repeats, "call"), pick(r.Repeats, "repeats", "repeat"))
	}
	if r.Unknown > 0 && !r.NotUnderstood() {
		say("%s of %s %s in no figure.", commas(int64(r.Unknown)), cli.Plural(r.Records, "record"), pick(r.Unknown, "was not understood and is", "were not understood and are"))
	}
	if r.Subagents > 0 {
		say("%s of subagents %s in no figure.", cli.Plural(r.Subagents, "message"), pick(r.Subagents, "is", "are"))
	}
	if r.Dropped > 0 {
		say("%s repeated, empty or on another branch %s in no figure.", cli.Plural(r.Dropped, "message"), pick(r.Dropped, "is", "are"))
	}
	if r.UsagesLost > 0 {
		say("%s of usage %s left out, because of figures that cannot be right or because there is no answer.", cli.Plural(r.UsagesLost, "report"), pick(r.UsagesLost, "is", "are"))
	}
	if r.Unanswered > 0 {
		say("%s no result, and the replay answers %s.", cli.Plural(r.Unanswered, "call")+pick(r.Unanswered, " has", " have"), pick(r.Unanswered, "it", "them"))
	}
	r.sayFaults(say)
	if r.Refused > 0 {
		say("%s left out for every policy, because a History does not take %s.", cli.Plural(r.Refused, "message")+pick(r.Refused, " is", " are"), pick(r.Refused, "it", "them"))
	}
	return notes
}

// pause returns a duration such as 1h, 5m or 90s, rounded to seconds.
func pause(d time.Duration) string {
	if d >= time.Second {
		d = d.Round(time.Second)
	}
	switch {
	case d%time.Hour == 0:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	case d%time.Minute == 0:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	}
	return d.String()
}

// offWindow says at how many measured tokens the replay fills the window, if the estimates
// are far off.
func (r *Report) offWindow() string {
	e, m := r.MeasuredEstimate, r.Measured.Input
	if e == 0 || m == 0 || 100*e > 85*m && 85*e < 100*m {
		return ""
	}
	return fmt.Sprintf(" So the replay fills the window of %s at about %s measured tokens.", commas(int64(r.Window)), cli.Number(int(float64(r.Window)*float64(m)/float64(e)/1000+0.5)*1000))
}

// mostWritten is the most compactions that the notes have one by one. The JSON has all, and
// the page has all of the sessions that it draws.
const mostWritten = 5

func (r *Report) sayFaults(say func(string, ...any)) {
	for _, f := range r.Faults {
		reason := strings.TrimSuffix(cli.Line(f.Problem, 400), ".") + "."
		if f.More > 0 {
			reason += fmt.Sprintf(" And %s.", cli.Plural(f.More, "further reason"))
		}
		if r.Sessions == 1 {
			say("This list, sent again as it is recorded, would be refused by %s: %s", f.Provider, reason)
		} else {
			say("%s of %s, sent again as they are recorded, would be refused by %s. The first: %s", commas(int64(f.Lists)), cli.Plural(r.Sessions, "list"), f.Provider, reason)
		}
	}
	switch {
	case r.TooLong == 0:
	case r.Sessions == 1:
		say("This list has more than %d times the tokens of the window, so the rules of the formats are not checked.", mostWindows)
	default:
		say("%s of %s %s more than %d times the tokens of the window, so the rules of the formats are not checked.", commas(int64(r.TooLong)), cli.Plural(r.Sessions, "list"), pick(r.TooLong, "has", "have"), mostWindows)
	}
}

func (r *Report) sayOverhead(say func(string, ...any)) {
	what := ""
	switch {
	case !r.HasSystem && !r.HasTools:
		what = "System text and tools are"
	case !r.HasTools:
		what = "Tools are"
	case !r.HasSystem:
		what = "System text is"
	case r.Overhead > 0:
		say("Each request is taken to carry %s tokens more than the file holds.", commas(int64(r.Overhead)))
		return
	default:
		return
	}
	where := "not in the file"
	if r.SomeLack {
		where = "not in every session"
	}
	up := ""
	if r.OverheadsDiffer {
		up = "up to "
	}
	switch {
	case r.Derived:
		say("%s %s; taken as %s%s tokens: the first measured request less the estimate of its messages.", what, where, up, commas(int64(r.Overhead)))
	default:
		say("%s %s; taken as %s%s tokens. -overhead sets this figure.", what, where, up, commas(int64(r.Overhead)))
	}
}

func (r *Report) sayCompactions(say func(string, ...any)) {
	if len(r.Compactions) == 0 {
		return
	}
	say("The call that wrote a recorded compaction is not in the file: its tokens and its price are in no figure.")
	var used, chance Strings
	hidden, more, recorded, ours := 0, 0, 0, 0
	for i, c := range r.Compactions {
		used.plus(c.Used)
		chance.plus(c.Chance)
		hidden += btoi(c.Hidden)
		more += c.More
		recorded += c.NextRecorded
		ours += c.NextConvo
		if len(r.Compactions) > mostWritten {
			continue
		}
		say("%s", c.text(i+1))
	}
	if len(r.Compactions) > mostWritten {
		n := len(r.Compactions)
		say("The next request held an estimated %s tokens as recorded, and %s with convo, on average. %s", commas(int64(recorded/n)), commas(int64(ours/n)), stringsText(fmt.Sprintf("%d compactions", n), used, chance))
		say("The page of -html and -json have each compaction.")
	}
	if hidden > 0 {
		say("%s something that only the provider can read. What it holds is in no count, so the recorded views held at least what is said.", cli.Plural(hidden, "compaction")+" left")
	}
	if more > 0 {
		say("%s more were not looked for; those counted are the first after each compaction.", cli.Plural(more, "string"))
	}
	if used.All > 0 {
		say("Strings are paths, ids and quoted values that an answer used after a compaction and that the messages of at least one of the two views had lost. A larger request holds more of them. The counts are biased: a model that forgot a string cannot name it. They say nothing about outcomes.")
	}
}

// text says what the compaction with number n has done.
func (c *Compaction) text(n int) string {
	size := ""
	if c.Before > 0 {
		size = commas(int64(c.Before))
		if c.After > 0 {
			size += " → " + commas(int64(c.After))
		}
		size += " tokens as recorded, "
	}
	how := ""
	if c.Trigger != "" {
		how = ", " + visible(c.Trigger)
	}
	text := fmt.Sprintf("Compaction %d (after request %s%s): %s%s → %s estimated, %s of the prefix lost.", n, commas(int64(c.Request)), how,
		size, commas(int64(c.EstimatedBefore)), commas(int64(c.EstimatedAfter)), commas(int64(c.PrefixLost)))
	if c.NextRecorded > 0 {
		yet := ""
		if c.ConvoCompactions == 0 {
			yet = ", which had compacted nothing yet"
		}
		text += fmt.Sprintf(" The next request held an estimated %s tokens as recorded, and %s with convo%s.", commas(int64(c.NextRecorded)), commas(int64(c.NextConvo)), yet)
	}
	text += " " + stringsText(fmt.Sprintf("compaction %d", n), c.Used, c.Chance)
	if c.Repeats > 0 {
		text += fmt.Sprintf(" %s after it %s one made before it.", cli.Plural(c.Repeats, "call"), pick(c.Repeats, "repeats", "repeat"))
	}
	return text
}

// stringsText says where strings were.
func stringsText(what string, used, chance Strings) string {
	if used.All == 0 {
		return "No string used after " + what + " had been removed."
	}
	text := fmt.Sprintf("Of %s used after %s, the recorded view held %s and ours %s; %s more can be recalled if the host offers it.",
		cli.Plural(used.All, "string"), what, commas(int64(used.Recorded.Held())), commas(int64(used.Convo.Held())), commas(int64(used.Convo.Recall)))
	text += fmt.Sprintf(" Recorded: %s in messages, %s in the summary, %s gone. Ours: %s in messages, %s in the summary, %s only by recall, %s gone.",
		commas(int64(used.Recorded.View)), commas(int64(used.Recorded.Summary)), commas(int64(used.Recorded.Gone)),
		commas(int64(used.Convo.View)), commas(int64(used.Convo.Summary)), commas(int64(used.Convo.Recall)), commas(int64(used.Convo.Gone)))
	if chance.All > 0 {
		text += fmt.Sprintf(" Of %s drawn by chance, the recorded view held %s and ours %s.", cli.Plural(chance.All, "string"),
			commas(int64(chance.Recorded.Held())), commas(int64(chance.Convo.Held())))
	}
	return text
}

func pick(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// percent returns the share of a in b.
func percent(a, b int64) string {
	if b == 0 {
		return "0 %"
	}
	return strconv.FormatFloat(100*float64(a)/float64(b), 'f', 0, 64) + " %"
}

// WriteText writes a report for a terminal of so many columns.
func WriteText(w io.Writer, r *Report, width int) error {
	var b strings.Builder
	if warning := r.Warning(); warning != "" {
		b.WriteString(cli.Wrap(warning, width, "") + "\n")
	}
	b.WriteString(cli.Wrap(r.title(), width, "") + "\n")
	var table cli.Table
	head := []string{""}
	for _, p := range Policies {
		head = append(head, string(p))
	}
	table.Add(head...)
	for _, row := range r.rows() {
		table.Add(append([]string{row.label}, row.cells...)...)
	}
	b.WriteString(table.String())
	for _, note := range r.Notes() {
		b.WriteString("\n" + cli.Wrap(note, width, ""))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// visible returns a text from a file in one short line.
func visible(s string) string { return cli.Line(s, 100) }

// sum returns a number for a cell of the table, one from 1,000,000,000 on in millions, so that
// four columns fit in a terminal.
func sum(n int64) string {
	if n >= 1_000_000_000 {
		return commas((n+500_000)/1_000_000) + " M"
	}
	return commas(n)
}

func commas(n int64) string { return cli.Number(int(n)) }

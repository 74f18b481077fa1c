// Package ops measures what a conversation costs to keep: append, check, a
// step at the limit, a trim, a read, beside a floor and beside other Go
// libraries; and whether what is left after a trim can be sent.
package ops

import (
	"fmt"
	"io"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"trpc.group/trpc-go/trpc-agent-go/model"

	"github.com/seed-c1b73e60/convo/bench/internal/measure"
)

// Sizes are the columns: numbers of messages. The others stop at peerMax.
var (
	sizes      = []int{10, 100, 1_000, 10_000, 100_000, 1_000_000}
	quickSizes = []int{10, 100, 1_000}
)

const peerMax = 10_000

// Write measures and writes all tables of the package. Quick takes seconds
// and is for a look.
func Write(w io.Writer, quick bool) error { return WriteSizes(w, quick, nil) }

// WriteSizes is Write with other columns. Nil: 10 to 1,000,000, quick 10 to
// 1,000. Beyond 10,000 only the floor and convo are measured.
func WriteSizes(w io.Writer, quick bool, columns []int) error {
	defer quietLog()()
	if len(columns) == 0 {
		columns = sizes
		if quick {
			columns = quickSizes
		}
	}
	for _, n := range columns {
		if n < 10 || n > 10_000_000 {
			return fmt.Errorf("ops: size %d: want 10 to 10,000,000", n)
		}
	}
	effort := measure.EffortOf(quick)
	for _, t := range tables() {
		if err := t.write(w, columns, effort, quick); err != nil {
			return fmt.Errorf("%s: %w", t.title, err)
		}
	}
	return writePairs(w, quick)
}

// A table is one operation: a row for each way to do it.
type table struct {
	title string
	intro string
	rows  []row
	notes []string
}

type row struct {
	name     string
	cell     func(n int) measure.Case
	max      int // greatest n; 0: peerMax
	quickMax int // of a quick run; 0: no bound of its own
}

const unbounded = 1 << 40

// oursBy makes a row of ours.
func oursBy(name string, t func() (convo.Options, error), cell func(int, convo.Options) measure.Case) row {
	return row{name: name, max: unbounded, cell: func(n int) measure.Case {
		opts, err := t()
		if err != nil {
			return measure.Case{New: func(int) (func(int) error, error) { return nil, err }}
		}
		return cell(n, opts)
	}}
}

const ourName = "**convo**"

func lenFourTokens() (convo.Options, error) { return byLenFour(), nil }

func heuristic() (convo.Options, error) { return bare(nil), nil }

func exact() (convo.Options, error) {
	t, err := convo.Tiktoken("gpt-4o")
	return bare(t), err
}

func tables() []table {
	return []table{
		{
			title: "Append",
			intro: "n messages one by one into an empty container, for each message.",
			rows: []row{
				{name: "floor", cell: floorAppend, max: unbounded},
				oursBy(ourName, lenFourTokens, ourAppend),
				oursBy("convo, Heuristic", heuristic, ourAppend),
				oursBy("convo, Tiktoken", exact, ourAppend),
				{name: "langchaingo AddUserMessage/AddAIMessage", cell: langchainAppend},
				{name: "trpc-agent-go AppendEvent", cell: trpcAppend},
				{name: "adk-go AppendEvent", cell: adkAppend},
				{name: "eino (the caller's slice)", cell: einoAppend},
			},
			notes: []string{
				"convo copies the message, makes it valid UTF-8, checks roles and pairs, and counts it; the others check nothing and count nothing here.",
				"langchaingo and eino win this row: an append to a slice. What they leave out comes back at every check.",
				"trpc-agent-go and adk-go write to two copies of a session (the caller's and the store's) under locks and merge state. Their events were made beforehand.",
			},
		},
		{
			title: "Check, nothing to do",
			intro: "Is the conversation over its limit? It is not.",
			rows: []row{
				{name: "floor", cell: floorCheck, max: unbounded},
				oursBy(ourName+" CompactIfNeeded", lenFourTokens, ourCheck),
				oursBy("convo CompactIfNeeded, Heuristic", heuristic, ourCheck),
				{name: "langchaingo SaveContext", cell: langchainCheck},
				{name: "trpc-agent-go CheckTokenThreshold", cell: trpcCheckSummary},
				{name: "trpc-agent-go HeadOut under budget", cell: trpcCheckTailoring},
				{name: "eino summarization, no usage", cell: func(n int) measure.Case { return einoCheck(n, false) }},
				{name: "eino summarization, usage on the last answer", cell: func(n int) measure.Case { return einoCheck(n, true) }},
				{name: "eino clearing", cell: einoCheckClearing},
			},
			notes: []string{
				"langchaingo checks only inside SaveContext, which also appends two messages.",
				"eino's clearing wins at 10 messages: a loop over a short list, without a lock. It and the summarization without usage count everything each time. With the provider's usage on the last answer eino counts only what came after that answer, and does not grow either.",
				"trpc-agent-go joins the texts of all events before it counts them; its tailoring checks and copies a request that fits, too.",
				"adk-go v2.2.0 has no check.",
			},
		},
		{
			title: "A step at the limit",
			intro: "One turn, a message of the user and an answer, of a conversation that is as long as its limit of n messages, with the reduction that this takes, averaged over whole cycles.",
			rows: []row{
				{name: "floor, to half", cell: floorStep, max: unbounded},
				oursBy(ourName+" Append, Prepare, Append", lenFourTokens, ourStep),
				oursBy("convo, Heuristic", heuristic, ourStep),
				oursBy("convo, Tiktoken", exact, ourStep),
				{name: "langchaingo SaveContext", cell: langchainStep},
				{name: "trpc-agent-go HeadOut", cell: func(n int) measure.Case { return trpcStep(n, model.NewHeadOutStrategy(trpcCounter{})) }},
				{name: "trpc-agent-go MiddleOut", cell: func(n int) measure.Case { return trpcStep(n, model.NewMiddleOutStrategy(trpcCounter{})) }},
				{name: "eino summarization, model answers at once", cell: einoStep},
			},
			notes: []string{
				"convo and the floor go down to half and then have room: they hold three quarters of the limit on average. langchaingo and trpc-agent-go stay at the limit and reduce in every turn; they keep a third more. eino keeps a summary alone and fills up from there: half of the limit on average.",
				"eino wins this row up to some hundred messages: it reduces least often, because it keeps nothing, and its check of a short list is a loop without a lock. The time of a summarising model is in no row.",
				"adk-go v2.2.0 has no reduction.",
			},
		},
		{
			title: "Trim to half",
			intro: "A conversation of n messages whose limit is halved: one reduction.",
			rows: []row{
				{name: "floor", cell: floorTrim, max: unbounded},
				oursBy(ourName+" Compact, Truncate", lenFourTokens, ourTrim),
				{name: "langchaingo SaveContext", cell: langchainTrim, quickMax: 100},
				{name: "trpc-agent-go HeadOut", cell: func(n int) measure.Case { return trpcTrim(n, model.NewHeadOutStrategy(trpcCounter{})) }},
				{name: "trpc-agent-go MiddleOut", cell: func(n int) measure.Case { return trpcTrim(n, model.NewMiddleOutStrategy(trpcCounter{})) }},
				{name: "eino summarization (replaces all)", cell: einoTrim},
			},
			notes: []string{
				"langchaingo counts all that is left again for each message that goes: quadratic.",
				"trpc-agent-go counts all messages each time and is linear with HeadOut, quadratic with a small constant with MiddleOut. Both win at 10 messages, where convo's fixed work (a plan, its judgement, a report) is most of the figure.",
				"eino has no trimming, and wins this row by keeping nothing: it counts, copies, and replaces everything by one summary. What its default keeps of the user's text is left out, and so is the model's time.",
				"convo's figure contains the pairing of calls, the judgement of the edit and the report, and a new list; earlier snapshots stay as they were.",
			},
		},
		{
			title: "Snapshot and read",
			intro: "What a request is made of.",
			rows: []row{
				{name: "floor, copy of the list", cell: floorRead, max: unbounded},
				oursBy(ourName+" Append and Snapshot", lenFourTokens, ourSnapshot),
				oursBy("convo Snapshot, unchanged", lenFourTokens, ourSame),
				oursBy("convo Snapshot.Messages, a deep copy", lenFourTokens, ourMessages),
				{name: "langchaingo Messages", cell: langchainRead},
				{name: "langchaingo LoadMemoryVariables", cell: langchainPrompt},
				{name: "trpc-agent-go GetSession", cell: trpcRead},
				{name: "adk-go Get", cell: adkRead},
				{name: "adk-go, a whole turn, model answers at once", cell: adkTurn},
			},
			notes: []string{
				"convo's first row is an append and the picture after it; a picture of an unchanged History costs a lock.",
				"langchaingo's Messages wins this row: it hands out its own slice, which a later trim overwrites in the reader's hands.",
				"adk-go's Get copies pointers to events that the store keeps using, and is quicker with ten of them; trpc-agent-go's GetSession copies events.",
				"adk-go makes a request only inside a turn, which also appends two events, traces and starts an invocation.",
				"eino has no container to read from.",
			},
		},
	}
}

// reference is the row that ratios are taken of.
func (t *table) reference() int {
	for i, r := range t.rows {
		if strings.HasPrefix(r.name, ourName) {
			return i
		}
	}
	return 0
}

func (t *table) write(w io.Writer, columns []int, effort measure.Effort, quick bool) error {
	header := []string{"time (× convo) · bytes · allocs"}
	cells := make([][]string, len(t.rows))
	for i, r := range t.rows {
		cells[i] = []string{r.name}
	}
	for _, n := range columns {
		header = append(header, measure.Count(n))
		var cases []measure.Case
		var at []int
		for i, r := range t.rows {
			if n > max(r.max, peerMax) || quick && r.quickMax > 0 && n > r.quickMax {
				continue
			}
			cases, at = append(cases, r.cell(n)), append(at, i)
		}
		got, err := measure.Cells(cases, effort)
		if err != nil {
			return fmt.Errorf("n = %d: %w", n, err)
		}
		filled := make([]string, len(t.rows))
		var unit float64
		for j, i := range at {
			if i == t.reference() {
				unit = got[j].NS
			}
		}
		for j, i := range at {
			f := got[j]
			filled[i] = fmt.Sprintf("%s (%s) · %s · %s", measure.Time(f.NS), measure.Ratio(f.NS, unit), measure.Size(f.Bytes), measure.Size(f.Allocs))
		}
		for i := range cells {
			cells[i] = append(cells[i], filled[i])
		}
	}
	if _, err := fmt.Fprintf(w, "### %s\n\n%s\n\n", t.title, t.intro); err != nil {
		return err
	}
	if err := measure.Table(w, header, cells); err != nil {
		return err
	}
	return measure.Notes(w, t.notes...)
}

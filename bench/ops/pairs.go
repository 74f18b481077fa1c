package ops

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/internal/harness"
	"github.com/seed-c1b73e60/convo/bench/internal/measure"
	"github.com/seed-c1b73e60/convo/bench/peer"
	"github.com/seed-c1b73e60/convo/bench/talks"
)

// A way is a library's way to keep a conversation within a budget.
type way struct {
	name string
	do   func(peer.Job) ([]peer.Request, error)
}

func ways(fleet *harness.Fleet) []way {
	all := []way{{ourName, keeperOf(defaults)}, {"convo, len/4, Truncate alone", keeperOf(byLenFour)}}
	for _, p := range fleet.Peers {
		for _, k := range p.Talks {
			all = append(all, way{k.Name, func(job peer.Job) ([]peer.Request, error) { return p.Keep(false, k.Name, job) }})
		}
	}
	return all
}

func writePairs(w io.Writer, quick bool, fleet *harness.Fleet) error {
	n := 200
	if quick {
		n = 6
	}
	header := []string{"library", "requests", "reduced", "**broken**", "broken, without empty results", "call without result", "result without call", "first not the user's", "newest message missing", "reported as too long", "mean use of the budget when reduced"}
	var rows [][]string
	for _, way := range ways(fleet) {
		t, err := talks.Play(way.do, n, true)
		if err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		full, err := talks.Play(way.do, n, false)
		if err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		mean := ""
		if t.Trimmed > 0 {
			mean = fmt.Sprintf("%d %%", t.Weight*100/t.Trimmed/talks.Budget)
		}
		row := []string{way.name}
		for _, v := range []int{t.Requests, t.Trimmed, t.Broken, full.Broken, t.Unanswered, t.Orphans, t.Headless, t.Stale, t.Refused} {
			row = append(row, measure.Count(v))
		}
		rows = append(rows, append(row, mean))
	}
	_, err := fmt.Fprintf(w, "### %s\n\n%d generated conversations with tool calls (parallel calls, reused ids, empty results) and a budget of %s tokens by len/4. Every request that a model would get is checked. A request is broken if a call has no result directly after it, if a result has no call directly before it (every provider refuses both), or if the first message is not the user's (Anthropic and Gemini refuse it, OpenAI does not).\n\n",
		peer.TablePairs, n, measure.Count(talks.Budget))
	if err != nil {
		return err
	}
	if err := measure.Table(w, header, rows); err != nil {
		return err
	}
	return measure.Notes(w, fleet.Notes(peer.TablePairs)...)
}

// ourKeeper keeps a conversation in a History.
type ourKeeper struct{ h *convo.History }

func keeperOf(options func() (convo.Options, error)) func(peer.Job) ([]peer.Request, error) {
	return peer.Keeper{New: func(job peer.Job) (peer.Keep, error) {
		opts, err := options()
		if err != nil {
			return nil, err
		}
		opts.Limits = convo.Limits{Window: job.Limit, Reserve: -1}
		h, err := convo.New(&opts)
		return ourKeeper{h}, err
	}}.Do
}

func (k ourKeeper) Add(t peer.Message) error {
	var m convo.Message
	switch t.Role {
	case "user":
		m = convo.User(t.Text)
	case "tool":
		m = convo.Result(convo.ToolCall{ID: t.Answers, Name: t.Tool}, t.Text)
	default:
		var calls []convo.ToolCall
		for _, c := range t.Calls {
			calls = append(calls, convo.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Args})
		}
		m = convo.Assistant(t.Text, calls...)
	}
	_, err := k.h.Append(m)
	return err
}

func (k ourKeeper) Request() (peer.Request, error) {
	snap, _, err := k.h.Prepare(context.Background())
	if err != nil {
		return peer.Request{TooLong: true}, nil
	}
	var list []peer.Message
	for _, m := range snap.Messages() {
		t := peer.Message{N: peer.Made, Role: string(m.Role)}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case convo.Text:
				t.Text += string(p)
			case convo.ToolCall:
				t.Calls = append(t.Calls, peer.Call{ID: p.ID, Name: p.Name, Args: p.Arguments})
			case convo.ToolResult:
				if t.Answers != "" { // each result becomes a message of its own
					list = append(list, t)
				}
				t = peer.Message{N: peer.Made, Role: "tool", Answers: p.CallID, Tool: p.Name, Text: resultText(p)}
			}
		}
		list = append(list, t)
	}
	return peer.Request{View: list}, nil
}

func resultText(r convo.ToolResult) string {
	var b strings.Builder
	for _, p := range r.Parts {
		if text, ok := p.(convo.Text); ok {
			b.WriteString(string(text))
		}
	}
	return b.String()
}

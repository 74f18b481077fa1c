package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/cli"
	"github.com/seed-c1b73e60/convo/tiktoken"
)

// A counted is what count -json writes for each conversation, in one line. A figure is
// absent where there is no exact tokenizer.
type counted struct {
	At        string  `json:"at"`
	Format    string  `json:"format"`
	Model     string  `json:"model,omitempty"`
	Exact     bool    `json:"exact"`
	Total     figures `json:"total"`
	Estimated shares  `json:"estimated"`
	Counted   *shares `json:"counted,omitempty"`
}

type figures struct {
	Messages  int  `json:"messages"`
	Estimated int  `json:"estimated"`
	Counted   *int `json:"counted,omitempty"`
}

// shares are tokens by kind and by role.
type shares struct {
	Kinds map[string]int `json:"kinds"`
	Roles map[string]int `json:"roles"`
}

// roles are the roles in the order of the table.
var roles = []convo.Role{convo.RoleSystem, convo.RoleUser, convo.RoleAssistant, convo.RoleTool}

func count(ctx context.Context, env *cli.Env, args []string) int {
	flags := cli.NewFlags("count", "[FILE...]", `Counts the tokens of a conversation by kind and by role: as convo estimates them from the text, before any usage corrects that, and exactly if the tokenizer of the model is public.

Text is counted exactly for the models of OpenAI. What messages, tools and media take besides is counted by the rules that the providers publish, so a total can differ from the bill.`)
	flags.More = `Examples:
  convo count -model gpt-5 request.json
  convo count -json session.jsonl`
	var o reader
	o.addFlags(flags, "format", readable())
	flags.StringVar(&o.model, "model", "", "the `MODEL` to count for, such as gpt-5; the recorded one if absent")
	asJSON := flags.Bool("json", false, "write an object for each conversation")
	names, code, ok := flags.Parse(env, args)
	if !ok {
		return code
	}
	if err := o.check(); err != nil {
		return flags.Misused(env, "%w", err)
	}
	var said map[string]bool
	n, worst := 0, cli.OK
	for c, err := range o.read(ctx, env, names) {
		if err != nil {
			worst = max(worst, fail(env, "count", err))
			continue
		}
		worst = max(worst, c.tell(env))
		c.tellUnseen(env)
		if c.snap != nil {
			c.snap = uncorrected(c.snap)
		}
		exact, noExact := tiktoken.New(c.model)
		if noExact != nil && !said[c.model] {
			if c.model == "" {
				env.Note("the input names no model, so the tokens are estimated; name one with -model to count them")
			} else {
				env.Note("there is no public tokenizer for the model %q, so the tokens are estimated", c.model)
			}
			if said == nil {
				said = map[string]bool{}
			}
			said[c.model] = true
		}
		tokenizers := []convo.Tokenizer{convo.Heuristic{}}
		if noExact == nil {
			tokenizers = append(tokenizers, exact)
		}
		var all []*convo.Snapshot
		msgs := c.msgs
		for _, tokenizer := range tokenizers {
			c.msgs = msgs
			h, _, err := c.history(convo.Options{Tokenizer: tokenizer, Overheads: c.overheads()})
			if err != nil {
				worst = max(worst, fail(env, "count", err))
				break
			}
			all = append(all, h.Snapshot())
		}
		if len(all) < len(tokenizers) {
			continue
		}
		if n++; n > 1 && !*asJSON {
			fmt.Fprintln(env.Stdout)
		}
		if *asJSON {
			writeJSON(env, countJSON(c, all))
		} else {
			printCounts(env, c, all)
		}
	}
	return worst
}

// uncorrected returns a snapshot without what usage reports have shown: its tokens are those
// that the tokenizer counts.
func uncorrected(s *convo.Snapshot) *convo.Snapshot {
	body, err := s.MarshalJSON()
	if err != nil {
		return s
	}
	all := fields(body)
	delete(all, "learned")
	out := &convo.Snapshot{}
	if body, err = json.Marshal(all); err != nil || out.UnmarshalJSON(body) != nil {
		return s
	}
	return out
}

// sharesOf returns the tokens of a snapshot by kind, by role, and in all.
func sharesOf(s *convo.Snapshot) (kinds []kind, byRole map[convo.Role]int, number map[convo.Role]int, total int) {
	kinds = kindsOf(s.Breakdown())
	for _, k := range kinds {
		total += k.tokens
	}
	byRole, number = map[convo.Role]int{}, map[convo.Role]int{}
	for _, e := range s.All() {
		byRole[e.Message.Role] += e.Tokens
		number[e.Message.Role]++
	}
	return kinds, byRole, number, total
}

func countJSON(c *conversation, all []*convo.Snapshot) counted {
	out := counted{At: c.at, Format: c.format, Model: c.model, Exact: len(all) > 1}
	for i, s := range all {
		kinds, byRole, _, total := sharesOf(s)
		sh := shares{Kinds: map[string]int{}, Roles: map[string]int{}}
		for _, k := range kinds {
			sh.Kinds[k.name] = k.tokens
		}
		for role, n := range byRole {
			sh.Roles[string(role)] = n
		}
		if i == 0 {
			out.Estimated, out.Total.Estimated, out.Total.Messages = sh, total, s.Len()
		} else {
			out.Counted, out.Total.Counted = &sh, &total
		}
	}
	return out
}

func printCounts(env *cli.Env, c *conversation, all []*convo.Snapshot) {
	head := c.at + ": " + c.format
	if c.model != "" {
		head += ", " + c.model
	}
	fmt.Fprintf(env.Stdout, "%s\n", cli.Wrap(cli.Visible(oneLine(head)), env.Width, ""))
	columns := []string{"estimated"}
	if len(all) > 1 {
		columns = append(columns, "exact", "off by")
	}
	narrow := env.Width < 50
	if narrow {
		columns = columns[:len(all)]
	}
	var t cli.Table
	row := func(name string, messages int, tokens []int) {
		cells := []string{name, ""}
		if messages > 0 {
			cells[1] = cli.Number(messages)
		}
		for _, n := range tokens {
			cells = append(cells, cli.Number(n))
		}
		if len(tokens) > 1 && !narrow {
			cells = append(cells, offBy(tokens[0], tokens[1]))
		}
		t.Add(cells...)
	}
	tokensOf := func(of func(s *convo.Snapshot) int) (tokens []int, some bool) {
		for _, s := range all {
			n := of(s)
			tokens, some = append(tokens, n), some || n > 0
		}
		return tokens, some
	}
	t.Add(append([]string{"by kind", ""}, columns...)...)
	for i, k := range kindsOf(convo.Breakdown{}) {
		if tokens, some := tokensOf(func(s *convo.Snapshot) int { return kindsOf(s.Breakdown())[i].tokens }); some {
			row("  "+k.name, 0, tokens)
		}
	}
	t.Add("by role", "messages")
	_, _, number, _ := sharesOf(all[0])
	for _, role := range roles {
		if number[role] == 0 {
			continue
		}
		tokens, _ := tokensOf(func(s *convo.Snapshot) int {
			_, byRole, _, _ := sharesOf(s)
			return byRole[role]
		})
		row("  "+string(role), number[role], tokens)
	}
	tokens, _ := tokensOf(func(s *convo.Snapshot) int {
		_, _, _, total := sharesOf(s)
		return total
	})
	row("total", all[0].Len(), tokens)
	fmt.Fprint(env.Stdout, t.String())
}

// offBy returns how far an estimate is from the exact number.
func offBy(estimated, exact int) string {
	if exact == 0 {
		return ""
	}
	p := 100 * float64(estimated-exact) / float64(exact)
	return strings.Replace(fmt.Sprintf("%+.1f %%", p), "+0.0", "0.0", 1)
}

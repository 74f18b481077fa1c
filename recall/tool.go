package recall

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/search"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// ToolName is the name of the tool that Tool describes. It is also for
// [convo.Options].RecallTool: the markers of cut and cleared results then name the tool and
// the ID that it takes.
const ToolName = "recall"

// Hint is for [convo.Options].SummaryHint: a line after each summary that tells the model
// to search with the tool.
const Hint = "What was removed can still be found: search for it with the tool " + ToolName + " before you ask the user for it or guess."

const schema = `{"type":"object","properties":{` +
	`"query":{"type":"string","description":"Words to look for: names, paths, numbers and rare words find most."},` +
	`"id":{"type":"integer","description":"The ID of a message, from an earlier search or a marker such as kept at recall(id=12): to read more of it, or with a query to search in it alone."},` +
	`"from":{"type":"integer","description":"With an id: the number of the first line to read. 1 if left out."},` +
	`"lines":{"type":"integer","description":"With an id: how many lines to read. All that fit if left out."}}}`

// Tool returns the definition of the tool that searches ix. [Index.Answer] answers its
// calls.
func (ix *Index) Tool() convo.Tool {
	return convo.Tool{
		Name:        ToolName,
		Description: "Searches the older messages of this conversation, which were removed from your context. Use it when something was said or read earlier that you need and cannot see. Give a query, or the id of a message that was found, with a range of lines or a query if it is long.",
		Schema:      schema,
	}
}

// Answer returns the result of a call of [Index.Tool], of at most MaxTokens: the messages
// that match the query, each with its ID, role and time, or one message whose ID is given: its
// text, a range of its lines, or with a query its lines that match best, with their numbers. A
// call with arguments that are wrong gets a result that says so.
func (ix *Index) Answer(call convo.ToolCall) convo.Message {
	var args struct {
		Query       string
		ID          convo.ID
		From, Lines int
	}
	if err := json.Unmarshal([]byte(call.Arguments), &args); err != nil {
		return convo.ResultError(call, fmt.Errorf("the arguments are not a JSON object with a query or an id: %w", err))
	}
	switch {
	case args.ID != 0:
		e, ok := ix.Get(args.ID)
		if !ok {
			return convo.ResultError(call, fmt.Errorf("no message with the id %d was removed; search with a query", args.ID))
		}
		text, err := part(search.TextOf(&e.Message), args.From, args.Lines, args.Query)
		if err != nil {
			return convo.ResultError(call, err)
		}
		return convo.Result(call, ix.bounded(Hit{Entry: e, Excerpt: text}.String()))
	case strings.TrimSpace(args.Query) == "":
		return convo.ResultError(call, errors.New("give a query, or the id of a message"))
	}
	hits := ix.Search(args.Query, mostHits)
	if len(hits) == 0 {
		return convo.Result(call, "Nothing was found. Try other words, such as names or numbers that were used then.")
	}
	var b strings.Builder
	for _, h := range hits {
		line := h.String() + "\n"
		if b.Len() > 0 && ix.count(b.String()+line) > ix.most() {
			break
		}
		b.WriteString(line)
	}
	return convo.Result(call, ix.bounded(strings.TrimSuffix(b.String(), "\n")))
}

// part returns the part of a text that is asked for: lines from the number from on, at most n,
// or those that match a query best, with their numbers.
func part(text string, from, n int, query string) (string, error) {
	if from == 0 && n == 0 && strings.TrimSpace(query) == "" {
		return text, nil
	}
	lines := strings.Split(text, "\n")
	from = max(from, 1)
	if from > len(lines) || n < 0 {
		return "", fmt.Errorf("there is no such range: the message has %d lines", len(lines))
	}
	to := len(lines)
	if n > 0 {
		to = min(to, from-1+min(n, to))
	}
	if strings.TrimSpace(query) != "" {
		return matches(lines, from, to, query)
	}
	return fmt.Sprintf("lines %d to %d of %d:\n%s", from, to, len(lines), strings.Join(lines[from-1:to], "\n")), nil
}

// matches returns the lines from one number to another that match a query best, in order, with
// their numbers.
func matches(lines []string, from, to int, query string) (string, error) {
	var words search.Index
	for i := from; i <= to; i++ {
		if t := words.Read(lines[i-1]); !t.IsBlank() {
			words.Add(int64(i), t)
		}
	}
	q := search.Ask(query)
	found := words.Search(q, mostHits)
	if len(found) == 0 {
		return "", errors.New("no line of the message matches; try other words, or read it by a range of lines")
	}
	slices.SortFunc(found, func(a, b search.Match) int { return cmp.Compare(a.ID, b.ID) })
	var b strings.Builder
	fmt.Fprintf(&b, "of %d lines:", len(lines))
	for _, m := range found {
		fmt.Fprintf(&b, "\n%d: %s", m.ID, words.Excerpt(lines[m.ID-1], q))
	}
	return b.String(), nil
}

// mostHits is how many messages an answer shows at most.
const mostHits = 8

func (ix *Index) most() int {
	if ix.MaxTokens > 0 {
		return ix.MaxTokens
	}
	return 1000
}

func (ix *Index) count(s string) (n int) {
	defer func() {
		if recover() != nil {
			n = convo.Heuristic{}.CountTokens(s)
		}
	}()
	if ix.Tokenizer != nil {
		return ix.Tokenizer.CountTokens(s)
	}
	return convo.Heuristic{}.CountTokens(s)
}

// bounded cuts the end off a text that has more than MaxTokens.
func (ix *Index) bounded(s string) string {
	const end = " ... [the rest is left out]"
	if ix.count(s) <= ix.most() {
		return s
	}
	low, high := 0, len(s) // a text of low bytes fits
	for low+1 < high {
		mid := (low + high) / 2
		if ix.count(s[:text.Floor(s, mid)]+end) <= ix.most() {
			low = mid
		} else {
			high = mid
		}
	}
	return s[:text.Floor(s, low)] + end
}

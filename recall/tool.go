package recall

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/search"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// ToolName is the name of the tool that Tool describes.
const ToolName = "recall"

// Hint is for [convo.Options].SummaryHint: a line after each summary that tells the model
// to search with the tool.
const Hint = "What was removed can still be found: search for it with the tool " + ToolName + " before you ask the user for it or guess."

const schema = `{"type":"object","properties":{` +
	`"query":{"type":"string","description":"Words to look for: names, paths, numbers and rare words find most."},` +
	`"id":{"type":"integer","description":"The ID of a message that an earlier search found, to read more of it."}}}`

// Tool returns the definition of the tool that searches ix. [Index.Answer] answers its
// calls.
func (ix *Index) Tool() convo.Tool {
	return convo.Tool{
		Name:        ToolName,
		Description: "Searches the older messages of this conversation, which were removed from your context. Use it when something was said or read earlier that you need and cannot see. Give a query, or the id of a message that was found.",
		Schema:      schema,
	}
}

// Answer returns the result of a call of [Index.Tool], of at most MaxTokens: the messages
// that match the query, each with its ID, role and time, or one message whose ID is
// given. A call with arguments that are wrong gets a result that says so.
func (ix *Index) Answer(call convo.ToolCall) convo.Message {
	var args struct {
		Query string
		ID    convo.ID
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
		hit := Hit{Entry: e, Excerpt: search.TextOf(&e.Message)}
		return convo.Result(call, ix.bounded(hit.String()))
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

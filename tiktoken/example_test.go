package tiktoken_test

import (
	"errors"
	"fmt"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/tiktoken"
)

// Exact counts for OpenAI's models, without a download.
func ExampleNew() {
	tok, err := tiktoken.New("gpt-4o")
	if err != nil {
		fmt.Println(err)
		return
	}
	h, _ := convo.New(&convo.Options{Tokenizer: tok})
	h.Append(convo.User("How far is it from Rome to Naples?"))
	fmt.Println(tok.CountTokens("How far is it from Rome to Naples?"), h.Tokens().Tokens)
	// Output:
	// 9 13
}

// New returns an error for a model whose tokenizer is not public. The
// Heuristic is good enough then, and usage reports correct it.
func ExampleNew_unknown() {
	tok, err := tiktoken.New("claude-sonnet-4")
	if unknown := new(convo.ValueError); errors.As(err, &unknown) {
		fmt.Println("not known:", unknown.Value)
		tok = convo.Heuristic{}
	}
	h, _ := convo.New(&convo.Options{Tokenizer: tok})
	h.Append(convo.User("Hi"))
	fmt.Println(h.Tokens().Tokens > 0)
	// Output:
	// not known: claude-sonnet-4
	// true
}

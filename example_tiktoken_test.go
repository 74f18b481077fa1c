package convo_test

import (
	"errors"
	"fmt"

	"github.com/seed-c1b73e60/convo"
)

// Exact counts for OpenAI's models, without a download.
func ExampleTiktoken() {
	tok, err := convo.Tiktoken("gpt-4o")
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

// A model whose tokenizer is not public is an error; an estimate is good
// enough, and usage reports correct it.
func ExampleTiktoken_unknown() {
	tok, err := convo.Tiktoken("claude-sonnet-4")
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

// Counting shows what an estimate is worth before and after the provider has reported usage.
package main

import (
	"fmt"
	"log"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/tiktoken"
)

func main() {
	exact, err := tiktoken.New("gpt-5") // in the program; nothing is downloaded
	if err != nil {
		log.Fatal(err)
	}
	words := convo.TokenizerFunc(func(text string) int { return len(strings.Fields(text)) }) // your own
	text := "The flight leaves at 09:10 and arrives in Rome at 11:25."
	fmt.Println(convo.Heuristic{}.CountTokens(text), exact.CountTokens(text), words.CountTokens(text))

	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 128_000}})
	if err != nil {
		log.Fatal(err)
	}
	sent := 1_100 // of tool definitions, which h does not know
	for turn := range 3 {
		if _, err := h.Append(convo.User("Read the next page, please.")); err != nil {
			log.Fatal(err)
		}
		sent += 4 + exact.CountTokens("Read the next page, please.") // as the provider counts
		guess := h.Tokens()
		if err := h.RecordUsage(h.Snapshot(), convo.Usage{Input: sent}); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("request %d: estimated %d, at most %d; reported %d\n", turn+1, guess.Tokens, guess.Upper, sent)
		if _, err := h.Append(convo.Assistant(strings.Repeat(text+" ", 10))); err != nil {
			log.Fatal(err)
		}
		sent += 4 + exact.CountTokens(strings.Repeat(text+" ", 10))
	}
}

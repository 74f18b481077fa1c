// Command cohere counts tokens for bench with Cohere's tokenizer, whose vocabulary
// is not one of OpenAI's.
package main

import (
	"github.com/cohere-ai/tokenizer"

	"github.com/seed-c1b73e60/convo/bench/peer"
)

func main() { peer.Main(library) }

const vocabulary = "coheretext-50k"

var library = peer.Peer{
	Modules: []string{"github.com/cohere-ai/tokenizer"},
	Counters: []peer.Counter{{Name: "cohere-ai/tokenizer", Vocabulary: vocabulary, New: func() (func(string) int, error) {
		encoder, err := tokenizer.NewFromPrebuilt(vocabulary)
		return func(s string) int {
			tokens, _ := encoder.Encode(s)
			return len(tokens)
		}, err
	}}},
}

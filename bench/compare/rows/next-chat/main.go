// Command next-chat encodes the request after a turn with an Encoder, in the format OpenAIChat.
package main

import (
	"github.com/seed-c1b73e60/convo/bench/compare/encoder"
	"github.com/seed-c1b73e60/convo/wire"
)

func main() { encoder.Next("Chat", wire.OpenAIChat{}) }

// Command next-chat encodes the request after a turn with an Encoder, in the format OpenAIChat.
package main

import (
	"github.com/seed-c1b73e60/convo/bench/compare/requests"
	"github.com/seed-c1b73e60/convo/wire"
)

func main() { requests.Next("Chat", wire.OpenAIChat{}) }

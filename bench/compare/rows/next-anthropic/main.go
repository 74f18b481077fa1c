// Command next-anthropic encodes the request after a turn with an Encoder, in the format Anthropic.
package main

import (
	"github.com/seed-c1b73e60/convo/bench/compare/encoder"
	"github.com/seed-c1b73e60/convo/wire"
)

func main() { encoder.Next("Anthropic", wire.Anthropic{}) }

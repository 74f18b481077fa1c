// Command encode-responses encodes the first request, in the format OpenAIResponses.
package main

import (
	"github.com/seed-c1b73e60/convo/bench/compare/requests"
	"github.com/seed-c1b73e60/convo/wire"
)

func main() { requests.First("Responses", wire.OpenAIResponses{}) }

// Command compact-2000 is the default's compaction of a full window of 200,000 tokens.
package main

import "github.com/seed-c1b73e60/convo/bench/compare/talk"

func main() { talk.Main("compaction, 2,000 messages in a window of 200k", talk.Compact(2_000, 16)) }

// Command compact-32000 is the default's compaction of a long conversation.
package main

import "github.com/seed-c1b73e60/convo/bench/compare/talk"

func main() { talk.Main("compaction, 32,000 messages", talk.Compact(32_000, 1)) }

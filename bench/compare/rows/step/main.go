// Command step is a turn of a conversation that has filled its window: a question, Prepare,
// the reported usage and an answer, with the compactions that this needs.
package main

import (
	"context"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/compare/talk"
	"github.com/seed-c1b73e60/convo/bench/peer"
)

func main() {
	const cycle = 400 // about so many turns from one compaction to the next
	talk.Main("a step at the limit, window of 200k", peer.Case{Step: 4 * cycle, Max: 16 * cycle, New: func(k int) (func(int) error, error) {
		const n = 1_600
		h, err := talk.History(n, 200_000)
		next := talk.Messages(n, 2*k)
		ctx := context.Background()
		return func(i int) error {
			if _, err := h.Append(next[2*i]); err != nil {
				return err
			}
			snap, _, err := h.Prepare(ctx)
			if err != nil {
				return err
			}
			if got := snap.Len(); got > n+cycle || i == k-1 && got > n {
				return peer.WrongSize(got)
			}
			if err := h.RecordUsage(snap, convo.Usage{Input: 110 * snap.Len(), Output: 110}); err != nil {
				return err
			}
			_, err = h.Append(next[2*i+1])
			return err
		}, err
	}})
}

// Command prepare is the first Prepare of a conversation that has been restored and is much
// longer than its window.
package main

import (
	"context"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/compare/talk"
	"github.com/seed-c1b73e60/convo/bench/peer"
)

const messages = 10_000

func main() {
	var base *convo.Snapshot
	talk.Main("first Prepare, 10,000 restored messages, window of 200k", peer.Case{Max: 4, New: func(k int) (func(int) error, error) {
		if base == nil {
			h, err := talk.History(messages, 0)
			if err != nil {
				return nil, err
			}
			base = h.Snapshot()
		}
		all := make([]*convo.History, k)
		for i := range all {
			h, err := convo.Restore(base, &convo.Options{Limits: convo.Limits{Window: 200_000}})
			if err != nil {
				return nil, err
			}
			all[i] = h
		}
		return func(i int) error {
			snap, _, err := all[i].Prepare(context.Background())
			if err == nil && snap.Len() > messages/4 {
				err = peer.WrongSize(snap.Len())
			}
			return err
		}, nil
	}})
}

// Command check is a Prepare that has nothing to do.
package main

import (
	"context"

	"github.com/seed-c1b73e60/convo/bench/compare/talk"
	"github.com/seed-c1b73e60/convo/bench/peer"
)

func main() {
	talk.Main("check with nothing to do", peer.Case{New: func(int) (func(int) error, error) {
		h, err := talk.History(1_000, 200_000)
		ctx := context.Background()
		return func(int) error {
			snap, _, err := h.Prepare(ctx)
			if err == nil && snap.Len() != 1_000 {
				err = peer.WrongSize(snap.Len())
			}
			return err
		}, err
	}})
}

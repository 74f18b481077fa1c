// Command append appends messages of 400 bytes, one by one, to an empty History.
package main

import (
	"github.com/seed-c1b73e60/convo/bench/compare/talk"
	"github.com/seed-c1b73e60/convo/bench/peer"
)

func main() {
	const n = 1_000
	list := talk.Messages(0, n)
	talk.Main("append of 400 bytes", peer.Case{Units: n, Max: 100, New: func(k int) (func(int) error, error) {
		all, err := talk.Histories(k, 0, 200_000)
		return func(i int) error {
			for _, m := range list {
				if _, err := all[i].Append(m); err != nil {
					return err
				}
			}
			return nil
		}, err
	}})
}

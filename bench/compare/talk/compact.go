package talk

import (
	"context"

	"github.com/seed-c1b73e60/convo/bench/peer"
)

// Compact is one compaction to half of n messages, which fill their window. At most max of
// them are prepared at once.
func Compact(n, max int) peer.Case {
	return peer.Case{Max: max, New: func(k int) (func(int) error, error) {
		all, err := Histories(k, n, 100*n)
		return func(i int) error {
			_, err := all[i].Compact(context.Background(), "")
			if got := all[i].Snapshot().Len(); err == nil && got > n*3/4 {
				err = peer.WrongSize(got)
			}
			return err
		}, err
	}}
}

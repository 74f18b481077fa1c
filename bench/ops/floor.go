package ops

import (
	"math"
	"runtime"

	"github.com/seed-c1b73e60/convo/bench/peer"
)

// A floor is the simplest code that keeps a conversation within a limit: a list,
// the token count of each message, and their sum. It checks nothing, does not
// pair calls with results, is not safe for concurrent use, and gives its callers
// its own memory. It shows what the operations cost at the very least.
type floor struct {
	list         []said
	total, limit int
}

type said struct {
	user   bool
	text   string
	tokens int
}

func (f *floor) append(user bool, text string) {
	m := said{user, text, peer.LenFour(text)}
	f.list = append(f.list, m)
	f.total += m.tokens
}

func (f *floor) isOver() bool { return f.total > f.limit }

// halve drops the oldest messages until half of the limit is left.
func (f *floor) halve() {
	n := 0
	for ; n < len(f.list) && f.total > f.limit/2; n++ {
		f.total -= f.list[n].tokens
	}
	f.list = append(make([]said, 0, cap(f.list)), f.list[n:]...)
}

func floorOf(n, limit int) *floor {
	f := &floor{limit: limit}
	for i := range n {
		f.append(peer.IsUser(i), peer.Text)
	}
	return f
}

func floorAppend(n int) peer.Case {
	return peer.Case{Units: n, Max: 1 + 1_000_000/n, New: func(k int) (func(int) error, error) {
		fresh := make([]floor, k)
		return func(i int) error {
			f := &fresh[i]
			f.limit = math.MaxInt
			for j := range n {
				f.append(peer.IsUser(j), peer.Text)
				if f.isOver() {
					return peer.ErrOver
				}
			}
			return nil
		}, nil
	}}
}

func floorCheck(n int) peer.Case {
	return peer.Case{New: func(int) (func(int) error, error) {
		f := floorOf(n, (n+1)*peer.PerMessage)
		return func(int) error {
			if f.isOver() {
				return peer.ErrOver
			}
			return nil
		}, nil
	}}
}

func floorStep(n int) peer.Case {
	return peer.Case{Step: max(n/4, 1), New: func(int) (func(int) error, error) {
		f := floorOf(n, n*peer.PerMessage)
		return func(int) error {
			f.append(true, peer.Text)
			if f.isOver() {
				f.halve()
			}
			f.append(false, peer.Text)
			return nil
		}, nil
	}}
}

func floorTrim(n int) peer.Case {
	return peer.Case{Max: 1 + 1_000_000/n, New: func(k int) (func(int) error, error) {
		all := make([]floor, k)
		for i := range all {
			all[i] = *floorOf(n, n*peer.PerMessage)
		}
		return func(i int) error {
			all[i].halve()
			if got := len(all[i].list); got != n/2 {
				return peer.WrongSize(got)
			}
			return nil
		}, nil
	}}
}

func floorRead(n int) peer.Case {
	return peer.Case{New: func(int) (func(int) error, error) {
		f := floorOf(n, n*peer.PerMessage)
		return func(int) error {
			runtime.KeepAlive(append(make([]said, 0, len(f.list)), f.list...))
			return nil
		}, nil
	}}
}

package ops

import (
	"runtime"
	"strings"

	"github.com/seed-c1b73e60/convo/bench/internal/measure"
)

// text is what every message holds: 400 bytes, by len/4 100 tokens.
var text = strings.Repeat("The quick brown fox jumps over the lazy dog. ", 9)[:400]

const perMessage = 100 // tokens of text by len/4

func lenFour(s string) int { return len(s) / 4 }

// isUser tells who speaks at place i: users and assistants take turns.
func isUser(i int) bool { return i%2 == 0 }

// A floor is the least that keeps a conversation inside a limit: a list, the
// count of each message, their sum. It checks nothing, pairs nothing, is not
// safe for concurrent use, and hands out its own memory.
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
	m := said{user, text, lenFour(text)}
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
		f.append(isUser(i), text)
	}
	return f
}

func floorAppend(n int) measure.Case {
	return measure.Case{Units: n, Max: 1 + 1_000_000/n, New: func(k int) (func(int) error, error) {
		fresh := make([]floor, k)
		return func(i int) error {
			f := &fresh[i]
			f.limit = 1 << 40
			for j := range n {
				f.append(isUser(j), text)
				if f.isOver() {
					return errOver
				}
			}
			return nil
		}, nil
	}}
}

func floorCheck(n int) measure.Case {
	return measure.Case{New: func(int) (func(int) error, error) {
		f := floorOf(n, (n+1)*perMessage)
		return func(int) error {
			if f.isOver() {
				return errOver
			}
			return nil
		}, nil
	}}
}

func floorStep(n int) measure.Case {
	return measure.Case{Step: max(n/4, 1), New: func(int) (func(int) error, error) {
		f := floorOf(n, n*perMessage)
		return func(int) error {
			f.append(true, text)
			if f.isOver() {
				f.halve()
			}
			f.append(false, text)
			return nil
		}, nil
	}}
}

func floorTrim(n int) measure.Case {
	return measure.Case{Max: 1 + 1_000_000/n, New: func(k int) (func(int) error, error) {
		all := make([]floor, k)
		for i := range all {
			all[i] = *floorOf(n, n*perMessage)
		}
		return func(i int) error {
			all[i].halve()
			if got := len(all[i].list); got != n/2 {
				return wrongSize(got)
			}
			return nil
		}, nil
	}}
}

func floorRead(n int) measure.Case {
	return measure.Case{New: func(int) (func(int) error, error) {
		f := floorOf(n, n*perMessage)
		return func(int) error {
			runtime.KeepAlive(append(make([]said, 0, len(f.list)), f.list...))
			return nil
		}, nil
	}}
}

package wire

import (
	"encoding/json"
	"slices"
)

// A doneMessages holds the first messages of a request, which can no longer change. A writer keeps
// it for the next request, so that it passes over none of them again.
type doneMessages struct {
	list []json.RawMessage // without cache marks of the format
	odd  []int             // the indices of those with marks or betas of the caller
}

// add adds a message, and records if it has marks or betas of the caller.
func (d *doneMessages) add(m json.RawMessage, odd bool) {
	if odd {
		d.odd = append(d.odd, len(d.list))
	}
	d.list = append(d.list, m)
}

// cut removes the messages from an index on, which may be negative. A saved state keeps them.
func (d *doneMessages) cut(from int) {
	from = max(from, 0)
	if from >= len(d.list) {
		return
	}
	d.list = slices.Clip(d.list[:from])
	n, _ := slices.BinarySearch(d.odd, from)
	d.odd = slices.Clip(d.odd[:n])
}

// special yields the indices of the messages that may have marks or betas of the caller: the
// odd ones, and all after d up to n, in order.
func (d *doneMessages) special(n int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for _, i := range d.odd {
			if !yield(i) {
				return
			}
		}
		for i := len(d.list); i < n; i++ {
			if !yield(i) {
				return
			}
		}
	}
}

// appendTo appends n messages with their cache marks to the list of a request. with returns
// a message with marks.
func (d *doneMessages) appendTo(list []json.RawMessage, n int, marks []cacheMark, with func(i int, marks []cacheMark) json.RawMessage) []json.RawMessage {
	first := len(list)
	list = append(list, d.list...)
	for _, m := range marks {
		if m.message >= 0 && m.message < len(d.list) {
			list[first+m.message] = with(m.message, marksOf(marks, m.message))
		}
	}
	for i := len(d.list); i < n; i++ {
		list = append(list, with(i, marksOf(marks, i)))
	}
	return list
}

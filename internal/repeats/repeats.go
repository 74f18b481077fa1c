// Package repeats finds texts that repeat themselves.
package repeats

import (
	"slices"
	"strings"
	"unicode"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// A text repeats itself if it ends in a loop that has a letter or a digit, or if loops
// make up at least four fifths of it. A loop is a part of a text in which the same words
// repeat without a gap, minLoopTimes times or more. White space counts as one space. A
// loop has at least minLoop bytes, about fifty tokens of English, and at least
// 1/loopDepth of the text.
//
// A model in a loop repeats itself until it is cut off. Repetition before other text is
// therefore data, such as equal rows of a table, and a horizontal rule at the end is not
// a loop. Lines that differ in a number are a list.
const (
	minLoop      = 200
	minLoopTimes = 4
	loopDepth    = 16
	loopEnd      = 8 // the maximum number of bytes after a loop at the end of the text
)

// Of returns the words that the longest loop of a text repeats, or "" if the text does
// not repeat itself. It takes time linear in the length of the text.
func Of(s string) string {
	s = strings.Join(strings.Fields(s), " ") + " " // each word is followed by a space
	if len(s) < minLoop {
		return ""
	}
	f := loopFinder{s: s, letters: make([]int32, len(s)+1), change: make([]int32, len(s)+1), least: max(minLoop, len(s)/loopDepth)}
	for i, r := range s {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			f.letters[i+1] = 1
		}
	}
	for i := range len(s) {
		f.letters[i+1] += f.letters[i]
	}
	f.ends = make([]int32, len(s)/minLoopTimes+1)
	f.find(0, len(s))
	looped, depth := 0, int32(0)
	for _, change := range f.change[:len(s)] {
		if depth += change; depth > 0 {
			looped++
		}
	}
	switch {
	case f.last.to > 0:
		return f.last.words(s)
	case looped >= len(s)*4/5:
		return f.longest.words(s)
	}
	return ""
}

// A loopFinder finds the loops of a text.
type loopFinder struct {
	s       string
	letters []int32 // for each byte, the number of letters and digits before it
	change  []int32 // for each byte, the number of loops that begin there minus the number that end there
	least   int     // the minimum number of bytes of a loop
	longest loop
	last    loop // the longest loop at the end of the text; zero: none

	// The following is memory for find and around.
	forward, backward []byte
	own, shared, ends []int32
}

// A loop is a part of a text in which each byte equals the byte one period before.
type loop struct{ from, to, period int }

// words returns the words that l repeats, from the beginning of a word if there is one.
func (l loop) words(s string) string {
	from := l.from
	if space := strings.IndexByte(s[from:from+l.period], ' '); space >= 0 {
		from += space + 1
	}
	from = text.Ceil(s, from)
	return strings.TrimSpace(s[from:max(text.Floor(s, from+l.period), from)])
}

// add records a loop, if it is long enough.
func (f *loopFinder) add(l loop) {
	length := l.to - l.from
	if length < f.least || length < minLoopTimes*l.period {
		return
	}
	f.change[l.from]++
	f.change[l.to]--
	if l.isLonger(f.longest) {
		f.longest = l
	}
	if l.to >= len(f.s)-loopEnd && f.letters[l.from+l.period] > f.letters[l.from] && l.isLonger(f.last) {
		f.last = l
	}
}

// isLonger reports whether l is longer than other, or repeats something shorter.
func (l loop) isLonger(other loop) bool {
	length, best := l.to-l.from, other.to-other.from
	return length > best || length == best && l.period < other.period
}

// find adds the loops in s[from:to]. Each loop is in the first half, in the second half,
// or around the middle.
func (f *loopFinder) find(from, to int) {
	if to-from < f.least {
		return
	}
	middle := from + (to-from)/2
	f.forward, f.backward = append(f.forward[:0], f.s[from:to]...), append(f.backward[:0], f.s[from:to]...)
	slices.Reverse(f.backward)
	f.around(f.forward, f.backward, middle-from, func(l loop) { f.add(loop{from + l.from, from + l.to, l.period}) })
	f.around(f.backward, f.forward, to-middle, func(l loop) { f.add(loop{to - l.to, to - l.from, l.period}) })
	f.find(from, middle)
	f.find(middle, to)
}

// around calls add, for each period, with the longest part of s that has this period and
// contains the middle and at least one period after it. back is s from its end to its
// beginning.
func (f *loopFinder) around(s, back []byte, middle int, add func(loop)) {
	right := s[middle:]
	most := min(len(s)/minLoopTimes, len(right)) // the longest period that is needed
	f.own = own(f.own, right, min(most+1, len(right)))
	for period := 1; period <= most; period++ {
		f.ends[period] = int32(middle + period)
		if period < len(right) {
			f.ends[period] += f.own[period]
		}
	}
	left := back[len(right):]
	f.own = own(f.own, left, len(left))
	first := len(right) - most
	f.shared = shared(f.shared, left, f.own, back, first, len(right))
	for period := 1; period <= most; period++ {
		add(loop{middle - int(f.shared[most-period]), int(f.ends[period]), period})
	}
}

// own returns, for each index of pattern below end, how many bytes from there equal the
// beginning of pattern. It uses the memory of out.
func own(out []int32, pattern []byte, end int) []int32 {
	out = slices.Grow(out[:0], end)[:end]
	if end > 0 {
		out[0] = int32(len(pattern))
		fill(out[1:], pattern, out, pattern, 1)
	}
	return out
}

// shared returns, for each index of s from first up to end, how many bytes from there equal
// the beginning of pattern, of which own is known. It uses the memory of out.
func shared(out []int32, pattern []byte, own []int32, s []byte, first, end int) []int32 {
	out = slices.Grow(out[:0], end-first)[:end-first]
	fill(out, pattern, own, s, first)
	return out
}

// fill sets out[i] to how many bytes of s from first+i equal the beginning of pattern. It is
// the Z-algorithm.
func fill(out []int32, pattern []byte, own []int32, s []byte, first int) {
	from, to := first, first // the last part of s that equals a beginning of pattern
	for i := first; i < first+len(out); i++ {
		n := 0
		if i < to {
			n = min(int(own[i-from]), to-i)
		}
		for n < len(pattern) && i+n < len(s) && pattern[n] == s[i+n] {
			n++
		}
		if out[i-first] = int32(n); i+n > to {
			from, to = i, i+n
		}
	}
}

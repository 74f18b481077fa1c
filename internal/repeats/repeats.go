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
	part := []byte(f.s[from:to])
	around(part, middle-from, func(l loop) { f.add(loop{from + l.from, from + l.to, l.period}) })
	slices.Reverse(part)
	around(part, to-middle, func(l loop) { f.add(loop{to - l.to, to - l.from, l.period}) })
	f.find(from, middle)
	f.find(middle, to)
}

// around calls add, for each period, with the longest part of s that has this period and
// contains the middle and at least one period after it.
func around(s []byte, middle int, add func(loop)) {
	right := s[middle:]
	ahead := sharedWith(right, right)
	left, whole := slices.Clone(s[:middle]), slices.Clone(s)
	slices.Reverse(left)
	slices.Reverse(whole)
	back := sharedWith(left, whole)
	for period := 1; period <= len(s)/minLoopTimes && period <= len(right); period++ {
		end := middle + period
		if period < len(right) {
			end += ahead[period]
		}
		add(loop{middle - back[len(right)-period], end, period})
	}
}

// sharedWith returns, for each index in s, how many bytes from there equal the beginning
// of pattern. It is the Z-algorithm.
func sharedWith(pattern, s []byte) []int {
	own := make([]int, len(pattern)) // the same for pattern itself
	shared := make([]int, len(s))
	fill := func(s []byte, out []int, first int) {
		from, to := first, first // of the parts of s that equal a beginning of pattern, the one that ends last
		for i := first; i < len(s); i++ {
			n := 0
			if i < to {
				n = min(own[i-from], to-i)
			}
			for n < len(pattern) && i+n < len(s) && pattern[n] == s[i+n] {
				n++
			}
			if out[i] = n; i+n > to {
				from, to = i, i+n
			}
		}
	}
	if len(pattern) > 0 {
		fill(pattern, own, 1)
		own[0] = len(pattern)
		fill(s, shared, 0)
	}
	return shared
}

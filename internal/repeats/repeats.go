// Package repeats tells whether a text repeats itself.
package repeats

import (
	"slices"
	"strings"
	"unicode"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// A text repeats itself if it ends in a loop with a letter or a digit, or if loops make
// up at least four fifths of it. A loop is a stretch in which the same stands again and
// again with nothing in between, minLoopTimes times or more. White space counts as one
// space. A loop has at least minLoop bytes, about fifty tokens of English, and at least
// 1/loopDepth of the text.
//
// A model that does not find its end loops until it is cut off. So what stands before
// other text is data, such as rows of a table that are the same, and so is a rule
// across the page at the end. Lines that differ in a number are a list.
const (
	minLoop      = 200
	minLoopTimes = 4
	loopDepth    = 16
	loopEnd      = 8 // at most so many bytes may follow a loop that ends the text
)

// Of returns the words that the longest loop of a text repeats, or nothing if
// the text does not repeat itself. It takes time in proportion to the length of the
// text.
func Of(s string) string {
	s = strings.Join(strings.Fields(s), " ") + " " // a space after the last word as after each other
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
	letters []int32 // how many letters and digits begin before each byte
	change  []int32 // at each byte, how many loops begin less how many end
	least   int     // bytes of a loop
	longest loop
	last    loop // the longest with which the text ends; zero: none
}

// A loop is a part of a text in which each byte is that of one period before.
type loop struct{ from, to, period int }

// words returns what l repeats, from the beginning of a word if there is one.
func (l loop) words(s string) string {
	from := l.from
	if space := strings.IndexByte(s[from:from+l.period], ' '); space >= 0 {
		from += space + 1
	}
	from = text.Ceil(s, from)
	return strings.TrimSpace(s[from:max(text.Floor(s, from+l.period), from)])
}

// add notes that the bytes [from, to) are those of one period before, as far as
// they have one before them.
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

// find adds the loops in s[from:to]. Each of them is in the first half, in the
// second, or around the middle.
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

// around calls add for each period with the longest part of s that has this period
// and holds the middle and at least one period after it.
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

// sharedWith returns for each place in s how many bytes there are the same as those
// at the beginning of pattern. It is the Z-algorithm.
func sharedWith(pattern, s []byte) []int {
	own := make([]int, len(pattern)) // the same for pattern itself
	shared := make([]int, len(s))
	fill := func(s []byte, out []int, first int) {
		from, to := first, first // the part of s known to be the beginning of pattern that ends last
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

package bpe

import (
	"math"
	"math/bits"
	"unicode/utf8"
)

// A scratch is the working space of one Count, and what it remembers of the
// pieces that it has merged: at each place the last one whose hash it is.
type scratch struct {
	ids    []uint32
	missed [1 << missedBits][2]uint64 // by key
	long   [1 << longBits]longKey

	keys       [maxSmall]uint32 // pairs by their left token: what they make, and its index
	next, prev [maxSmall]uint8

	queue
}

// A longKey is a piece of 16 to 31 bytes, and its length less 16 in the highest
// byte.
type longKey [4]uint64

const (
	missedBits = 13
	longBits   = 11
	maxLong    = 31

	// The count of a piece stands in the 4 highest bits of its last word. It is
	// never 0. A higher count is not kept.
	countShift = 60
	maxCount   = 15
	countMask  = maxCount << countShift
)

func (e *Encoding) scratch() *scratch {
	if sc, ok := e.scratches.Get().(*scratch); ok {
		return sc
	}
	return new(scratch)
}

// maxKept is how many ids a scratch may have room for when it is kept.
const maxKept = 1 << 16

func (e *Encoding) release(sc *scratch) {
	if cap(sc.ids) > maxKept {
		sc.ids = nil
		sc.links = nil
	}
	e.scratches.Put(sc)
}

// appendParts appends the tokens that merging s may begin with: characters
// where they are tokens and no token can hold a part of them and of a
// neighbour, bytes elsewhere.
func (e *Encoding) appendParts(ids []uint32, s string) []uint32 {
	whole := true
	for i := 0; i < len(s); {
		r, size := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, size = decode(s, i)
		}
		i += size
		wholeRight := true
		if i < len(s) {
			next := rune(s[i])
			if next >= utf8.RuneSelf {
				next, _ = decode(s, i)
			}
			wholeRight = !e.maySplit(r, next)
		}
		if r < utf8.RuneSelf {
			ids = append(ids, e.bytes[r])
		} else if id := e.chars.get(r); id != 0 && whole && wholeRight {
			ids = append(ids, id)
		} else {
			var b [utf8.UTFMax]byte
			for _, c := range b[:utf8.EncodeRune(b[:], r)] {
				ids = append(ids, e.bytes[c])
			}
		}
		whole = wholeRight
	}
	return ids
}

// merge merges tokens until no two neighbours make one, and returns what is
// left. It works in ids.
func (e *Encoding) merge(sc *scratch, ids []uint32) []uint32 {
	switch {
	case len(ids) < 2:
		return ids
	case len(ids) <= maxSmall:
		return e.mergeSmall(sc, ids)
	}
	return e.mergeLarge(sc, ids)
}

// maxSmall is up to how many tokens looking at all pairs before each merge is
// faster than a queue.
const (
	smallBits = 6
	maxSmall  = 1 << smallBits
)

func (e *Encoding) mergeSmall(sc *scratch, ids []uint32) []uint32 {
	n := len(ids)
	keys := sc.keys[:n]
	for i := range n - 1 {
		keys[i] = e.pairKey(ids[i], ids[i+1], i)
	}
	e.mergeKeys(sc, ids)
	out := ids[:0]
	for _, id := range ids {
		if id != none {
			out = append(out, id)
		}
	}
	return out
}

// mergeASCII returns how many tokens up to maxSmall ASCII bytes have.
func (e *Encoding) mergeASCII(sc *scratch, s string) int {
	if cap(sc.ids) < maxSmall {
		sc.ids = make([]uint32, maxSmall)
	}
	ids := sc.ids[:len(s)]
	keys := sc.keys[:len(s)]
	ids[0] = e.bytes[s[0]]
	for i := 1; i < len(s); i++ {
		ids[i] = e.bytes[s[i]]
		key := none
		if id := e.ascii[uint(s[i-1]&0x7F)<<7|uint(s[i]&0x7F)]; id != 0 {
			key = id<<smallBits | uint32(i-1)
		}
		keys[i-1] = key
	}
	return e.mergeKeys(sc, ids)
}

// mergeKeys merges tokens, of whose pairs sc.keys holds the keys, and returns
// how many are left. The others become none.
func (e *Encoding) mergeKeys(sc *scratch, ids []uint32) int {
	n := len(ids)
	left := n
	keys := sc.keys[:n]
	keys[n-1] = none
	next, prev := &sc.next, &sc.prev
	for i := range n {
		next[i], prev[i] = uint8(i+1), uint8(i-1)
	}
	for {
		best := none
		for _, key := range keys {
			best = min(best, key)
		}
		if best == none {
			return left
		}
		left--
		i, id := int(best&(maxSmall-1)), best>>smallBits
		j := int(next[i])
		ids[i], ids[j] = id, none
		keys[i], keys[j] = none, none
		after := int(next[j])
		next[i] = uint8(after)
		if after < n {
			prev[after] = uint8(i)
			keys[i] = e.pairKey(id, ids[after], i)
		}
		if i > 0 {
			p := int(prev[i])
			keys[p] = e.pairKey(ids[p], id, p)
		}
	}
}

// pairKey is what a pair makes, and where it stands: the least key is the pair
// to merge first.
func (e *Encoding) pairKey(left, right uint32, i int) uint32 {
	if id := e.pair(left, right); id != none {
		return id<<smallBits | uint32(i)
	}
	return none
}

// A queue holds the pairs of a long piece by the token that they make. A merge
// makes only pairs of higher tokens, so that the lowest one never falls.
type queue struct {
	links   []link
	heads   []int32  // by token: the first pair that makes it, as index+1; all 0 between uses
	waiting []uint64 // bits: tokens with a head
}

// A link is a token of a piece, with the pair that it begins.
type link struct {
	prev, next int32  // tokens beside it, -1 at the ends
	makes      uint32 // what the pair makes, none when it makes nothing
	up, down   int32  // pairs that make the same, as index+1
}

func (q *queue) push(i int32, makes uint32) {
	l := &q.links[i]
	l.makes = makes
	if makes == none {
		return
	}
	head := &q.heads[makes]
	l.up, l.down = 0, *head
	if *head != 0 {
		q.links[*head-1].up = i + 1
	} else {
		q.waiting[makes/64] |= 1 << (makes % 64)
	}
	*head = i + 1
}

func (q *queue) remove(i int32) {
	l := &q.links[i]
	if l.makes == none {
		return
	}
	if l.up != 0 {
		q.links[l.up-1].down = l.down
	} else {
		q.heads[l.makes] = l.down
	}
	if l.down != 0 {
		q.links[l.down-1].up = l.up
	}
	l.makes = none
}

func (e *Encoding) mergeLarge(sc *scratch, ids []uint32) []uint32 {
	q := &sc.queue
	if q.heads == nil {
		q.heads = make([]int32, e.Len())
		q.waiting = make([]uint64, e.Len()/64+1)
	}
	if cap(q.links) < len(ids) {
		q.links = make([]link, len(ids))
	}
	n := int32(min(len(ids), math.MaxInt32))
	q.links = q.links[:n]
	for i := range n {
		q.links[i] = link{prev: i - 1, next: i + 1}
	}
	q.links[n-1].next = -1
	q.links[n-1].makes = none
	for i := n - 2; i >= 0; i-- {
		q.push(i, e.pair(ids[i], ids[i+1]))
	}
	for at := range q.waiting {
		for q.waiting[at] != 0 {
			bit := bits.TrailingZeros64(q.waiting[at])
			q.waiting[at] &= q.waiting[at] - 1
			id := uint32(at*64 + bit)
			for q.heads[id] != 0 {
				e.mergeRun(q, ids, q.heads[id]-1, id)
			}
		}
	}
	out := ids[:0]
	for i := int32(0); i >= 0; i = q.links[i].next {
		out = append(out, ids[i])
	}
	return out
}

// mergeRun merges the pair at i. Where it is two of the same token, it may
// stand in a run of them: then the whole run is merged, from its left end.
func (e *Encoding) mergeRun(q *queue, ids []uint32, i int32, id uint32) {
	same := ids[i]
	if ids[q.links[i].next] != same {
		e.mergeAt(q, ids, i, id)
		return
	}
	for p := q.links[i].prev; p >= 0 && ids[p] == same; p = q.links[p].prev {
		i = p
	}
	for i >= 0 && q.links[i].makes == id && ids[i] == same {
		e.mergeAt(q, ids, i, id)
		i = q.links[i].next
	}
}

func (e *Encoding) mergeAt(q *queue, ids []uint32, i int32, id uint32) {
	l := &q.links[i]
	j := l.next
	q.remove(i)
	q.remove(j)
	ids[i] = id
	l.next = q.links[j].next
	if l.next >= 0 {
		q.links[l.next].prev = i
		q.push(i, e.pair(id, ids[l.next]))
	}
	if l.prev >= 0 {
		q.remove(l.prev)
		q.push(l.prev, e.pair(ids[l.prev], id))
	}
}

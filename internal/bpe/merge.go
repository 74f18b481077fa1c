package bpe

import (
	"math"
	"math/bits"
	"unicode/utf8"
)

// A scratch is the working space of one call of Count or Append. It also caches
// the counts of merged pieces: each slot holds the last piece whose hash led to
// it.
type scratch struct {
	ids    []uint32
	missed [1 << missedBits][2]uint64 // by key
	long   [1 << longBits]longKey

	keys       [maxSmall]uint32 // the key of the pair that begins at each token; see pairKey
	next, prev [maxSmall]uint8

	queue
}

// A longKey holds a piece of 16 to 31 bytes, and in its highest byte the length
// of the piece minus 16.
type longKey [4]uint64

const (
	missedBits = 13
	longBits   = 11
	maxLong    = 31

	// The count of a piece is in the 4 highest bits of its last word. It is
	// never 0. Counts above maxCount are not cached.
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

// maxKept is the capacity of ids up to which a scratch goes back to the pool
// with its slices. Larger ones are left to the garbage collector.
const maxKept = 1 << 16

func (e *Encoding) release(sc *scratch) {
	if cap(sc.ids) > maxKept {
		sc.ids = nil
		sc.links = nil
	}
	e.scratches.Put(sc)
}

// appendParts appends the tokens from which the merging of s can start. A
// character is one token if there is a token for it, and no token holds a
// fragment of it together with bytes of a neighbour. Other characters are
// appended byte by byte.
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

// merge merges tokens until no two neighbours form a token, and returns the
// tokens that are left. The result shares its memory with ids.
func (e *Encoding) merge(sc *scratch, ids []uint32) []uint32 {
	switch {
	case len(ids) < 2:
		return ids
	case len(ids) <= maxSmall:
		return e.mergeSmall(sc, ids)
	}
	return e.mergeLarge(sc, ids)
}

// maxSmall is the number of tokens up to which searching all pairs before each
// merge is faster than keeping a queue.
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

// mergeASCII returns the number of tokens of a piece of up to maxSmall ASCII
// bytes.
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

// mergeKeys merges tokens whose pairs have their keys in sc.keys. It returns how
// many tokens are left; the ids of the others are set to none.
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

// pairKey returns the key of the pair that begins at token i: the token that it
// merges to, and i. The pair with the lowest key is merged first. The key is
// none if the two tokens do not merge.
func (e *Encoding) pairKey(left, right uint32, i int) uint32 {
	if id := e.pair(left, right); id != none {
		return id<<smallBits | uint32(i)
	}
	return none
}

// A queue holds the pairs of a long piece, ordered by the token that they merge
// to. A merge only gives rise to pairs with higher tokens, so the lowest token
// of the queue never decreases.
type queue struct {
	links   []link
	heads   []int32  // by token: the first pair that merges to it, as index+1; all 0 between uses
	waiting []uint64 // a bit for each token with a head
}

// A link is a token of a piece, and the pair of this token and the next.
type link struct {
	prev, next int32  // its neighbours, or -1
	makes      uint32 // the token that the pair merges to, or none
	up, down   int32  // other pairs that merge to the same token, as index+1
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

// mergeRun merges the pair at i. If both tokens of the pair are the same, they
// may be in the middle of a run of that token; then the whole run is merged from
// its left end, because the leftmost pair goes first.
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

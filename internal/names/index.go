package names

import (
	"cmp"
	"hash/maphash"
	"iter"
	"math/bits"
	"slices"
	"strings"
)

// An Index holds the names of a conversation, each of whose texts is read once, from the newest
// to the oldest. The zero Index is empty.
type Index struct {
	slots []slot   // a hash table; its length is a power of two
	list  [][]name // in the order of Read, in pieces, so that no name is moved
	n     int      // number of names
	paths int64    // number of values of name.first
}

// A slot is a part of the hash of a name and 1 more than its index in the list, which is below
// mostSeen. It is empty if that is 0.
type slot struct{ tag, at uint16 }

type name struct {
	text   string
	times  int32
	said   int32 // 1 more than the place of the newest text with it that was said; 0: none
	first  int64 // where it came up first among the texts whose paths are wanted; see Read
	hash   uint32
	weight uint8 // the largest weight of a text with it
	path   bool  // there is such a text, and it holds a path
	gone   bool  // see Remove
}

// A Source says where a text is from.
type Source struct {
	Place  int   // of its message; grows from the oldest to the newest
	Weight uint8 // at most MostWeight; names of the texts with the most weight are chosen first
	Said   bool  // by a person or the assistant, and not a tool
	Paths  bool  // whether its paths are wanted
}

// MostWeight is the largest weight of a text.
const MostWeight = 4

// mostSeen bounds the memory of an Index. The names of 1 MB are rarely more.
const mostSeen = 60_000

var seed = maphash.MakeSeed()

// pieceLen is the number of names in a piece of the list.
const pieceLen = 1 << 8

// at returns the i-th name.
func (x *Index) at(i int) *name { return &x.list[i/pieceLen][i%pieceLen] }

// all yields the names in the order of Read.
func (x *Index) all(yield func(*name) bool) {
	for _, piece := range x.list {
		for i := range piece {
			if !yield(&piece[i]) {
				return
			}
		}
	}
}

// find returns the name w. If the index does not have it, find returns nil, or with add a new
// name, unless there are too many.
func (x *Index) find(w string, add bool) *name {
	if 2*x.n >= len(x.slots) {
		x.Grow(x.n + 1)
	}
	hash := uint32(maphash.String(seed, w))
	mask := uint32(len(x.slots) - 1)
	tag := tagOf(hash)
	for i := hash & mask; ; i = (i + 1) & mask {
		s := &x.slots[i]
		switch {
		case s.at == 0 && (!add || x.n >= mostSeen):
			return nil
		case s.at == 0:
			if x.n%pieceLen == 0 {
				x.list = append(x.list, make([]name, 0, pieceLen))
			}
			last := &x.list[len(x.list)-1]
			*last = append(*last, name{text: w, hash: hash})
			x.n++
			*s = slot{tag, uint16(x.n)}
			return x.at(x.n - 1)
		case s.tag == tag && x.at(int(s.at)-1).text == w:
			return x.at(int(s.at) - 1)
		}
	}
}

// tagOf returns the bits of a hash that say least about where the search for it begins.
func tagOf(hash uint32) uint16 { return uint16(hash >> 16) }

// Grow makes room for n names.
func (x *Index) Grow(n int) {
	n = max(min(n, mostSeen), 100)
	if 2*n <= len(x.slots) {
		return
	}
	x.slots = make([]slot, 1<<bits.Len(uint(2*n)))
	mask := uint32(len(x.slots) - 1)
	for at := range x.n {
		hash := x.at(at).hash
		i := hash & mask
		for x.slots[i].at != 0 {
			i = (i + 1) & mask
		}
		x.slots[i] = slot{tagOf(hash), uint16(at + 1)}
	}
}

// Read adds the names of a text. It returns how many names the text has, and how many of them
// a newer message has said.
func (x *Index) Read(text string, from Source) (own, again int) {
	for i := 0; ; own++ {
		var w string
		if w, i = next(text, i); w == "" {
			return own, again
		}
		n := x.find(w, true)
		if n == nil {
			continue
		}
		n.times++
		n.weight = max(n.weight, from.Weight)
		if int(n.said) > from.Place+1 {
			again++
		}
		if from.Said && n.said == 0 {
			n.said = int32(from.Place + 1)
		}
		if from.Paths && (!n.path || int(n.first>>32) > from.Place) {
			x.paths++
			n.path, n.first = pathIn(w) != "", int64(from.Place)<<32|x.paths
		}
	}
}

// Remove removes the names of a text.
func (x *Index) Remove(text string) {
	for w := range Of(text) {
		n := x.find(w, false)
		if n != nil {
			n.gone = true
		}
	}
}

// Paths returns at most so many paths, in the order in which they came up. If there are more,
// it leaves out those that came up again the longest ago.
func (x *Index) Paths(most int) []string {
	var found []*name
	for n := range x.all {
		if n.path && len(found) < most {
			found = append(found, n)
		}
	}
	slices.Reverse(found) // almost in order now
	slices.SortStableFunc(found, func(m, n *name) int { return cmp.Compare(m.first, n.first) })
	paths := make([]string, len(found))
	for i, n := range found {
		paths[i] = pathIn(n.text)
	}
	return paths
}

// pathIn returns the path that a name is or holds, or an empty string.
func pathIn(w string) string {
	if isPath(w) && !strings.Contains(w, "=") {
		return w
	}
	if value := w[strings.LastIndexByte(w, '=')+1:]; isPath(value) {
		return value
	}
	if key, _, _ := strings.Cut(w, "="); isPath(key) {
		return key
	}
	return ""
}

// isPath reports whether a word looks like a path: it has a slash and a dot after the last
// slash, or several slashes.
func isPath(w string) bool {
	last := strings.LastIndexByte(w, '/')
	return last >= 0 && len(w) > 3 && len(w) <= longestPath && (strings.Contains(w[last:], ".") || last < len(w)-1 && strings.Count(w, "/") > 1)
}

// Choose returns the remaining names, the most useful first: by the weight of their texts,
// then by rarity, then the newest first. It returns no more than most of one weight and
// rarity.
func (x *Index) Choose(most int) iter.Seq[string] {
	return func(yield func(string) bool) {
		var by [MostWeight + 1][4][]string
		for n := range x.all {
			if class := &by[MostWeight-n.weight][rarity(n.times)]; !n.gone && len(*class) < most {
				*class = append(*class, n.text)
			}
		}
		for _, classes := range by {
			for _, class := range classes {
				for _, w := range class {
					if !yield(w) {
						return
					}
				}
			}
		}
	}
}

// rarity returns a class of names that occurred about equally often. Names that occurred
// two to five times are more useful than names that occurred once, and those more than
// names that occur everywhere.
func rarity(times int32) int {
	switch {
	case times == 1:
		return 1
	case times <= 5:
		return 0
	case times <= 20:
		return 2
	}
	return 3
}

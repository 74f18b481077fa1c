package names

import (
	"cmp"
	"hash/maphash"
	"iter"
	"slices"
	"strings"
)

// An Index holds the names of a conversation, each of whose texts is read once, from the newest
// to the oldest. The zero Index is empty.
type Index struct {
	slots []slot // a hash table; its length is a power of two
	list  []name // in the order of Read
}

// A slot is the hash of a name and 1 more than its index in the list. It is empty if that is 0.
type slot struct{ hash, at uint32 }

type name struct {
	text   string
	times  int32
	said   int32 // 1 more than the place of the newest text with it that was said; 0: none
	weight uint8 // the largest weight of a text with it
	first  int32 // the place of the oldest text with it whose paths are wanted
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

// mostSeen bounds the memory of an Index.
const mostSeen = 200_000

var seed = maphash.MakeSeed()

// find returns the name w. If the index does not have it, find returns nil, or with add a new
// name, unless there are too many.
func (x *Index) find(w string, add bool) *name {
	if 2*len(x.list) >= len(x.slots) {
		x.grow()
	}
	hash := uint32(maphash.String(seed, w))
	mask := uint32(len(x.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		s := &x.slots[i]
		switch {
		case s.at == 0 && (!add || len(x.list) >= mostSeen):
			return nil
		case s.at == 0:
			x.list = append(x.list, name{text: w})
			*s = slot{hash, uint32(len(x.list))}
			return &x.list[len(x.list)-1]
		case s.hash == hash && x.list[s.at-1].text == w:
			return &x.list[s.at-1]
		}
	}
}

// grow doubles the hash table.
func (x *Index) grow() {
	old := x.slots
	x.slots = make([]slot, max(2*len(old), 256))
	mask := uint32(len(x.slots) - 1)
	for _, s := range old {
		if s.at == 0 {
			continue
		}
		i := s.hash & mask
		for x.slots[i].at != 0 {
			i = (i + 1) & mask
		}
		x.slots[i] = s
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
		if from.Paths {
			n.path, n.first = n.path || pathIn(w) != "", int32(from.Place)
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
	for i := range x.list {
		if n := &x.list[i]; n.path && len(found) < most {
			found = append(found, n)
		}
	}
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
// then by rarity, then the newest first.
func (x *Index) Choose() iter.Seq[string] {
	return func(yield func(string) bool) {
		var by [MostWeight + 1][4][]int32
		for i := range x.list {
			if n := &x.list[i]; !n.gone {
				class := &by[MostWeight-n.weight][rarity(n.times)]
				*class = append(*class, int32(i))
			}
		}
		for _, classes := range by {
			for _, class := range classes {
				for _, i := range class {
					if !yield(x.list[i].text) {
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

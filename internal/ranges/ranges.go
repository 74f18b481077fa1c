// Package ranges computes with ranges of IDs, and with lists that ascend by ID.
package ranges

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
)

// A Range is a type of ranges from First to Last, inclusive.
type Range[N ~int64] interface {
	~struct {
		First N `json:"first"`
		Last  N `json:"last"`
	}
}

// A pair is a Range whose fields can be used.
type pair[N ~int64] struct{ First, Last N }

// Of returns the ranges that hold exactly the given ascending IDs.
func Of[R Range[N], N ~int64](ids []N) (out []R) {
	for _, id := range ids {
		out = Add(out, id)
	}
	return out
}

// Add adds an ID above all others to ascending ranges.
func Add[R Range[N], N ~int64](list []R, id N) []R {
	first := id
	if n := len(list); n > 0 && pair[N](list[n-1]).Last+1 == id {
		first, list = pair[N](list[n-1]).First, list[:n-1]
	}
	return append(list, R(pair[N]{first, id}))
}

// Has reports whether one of the ranges holds an ID.
func Has[R Range[N], N ~int64](list []R, id N) bool {
	return slices.ContainsFunc(list, func(r R) bool { return pair[N](r).First <= id && id <= pair[N](r).Last })
}

// Find returns the range that holds an ID, if there is one. The ranges ascend.
func Find[R Range[N], N ~int64](list []R, id N) (found R, ok bool) {
	i := sort.Search(len(list), func(i int) bool { return pair[N](list[i]).Last >= id })
	if i == len(list) || pair[N](list[i]).First > id {
		return found, false
	}
	return list[i], true
}

// In returns a function that reports whether an ID is in one of the ranges, which are sorted by
// First. The function must be called with ascending IDs.
func In[R Range[N], N ~int64](list []R) func(N) bool {
	last := N(0) // the largest Last of the ranges that begin at or before the ID
	return func(id N) bool {
		for len(list) > 0 && pair[N](list[0]).First <= id {
			last = max(last, pair[N](list[0]).Last)
			list = list[1:]
		}
		return id <= last
	}
}

// Within returns the IDs that are in any of the ranges. ids ascend, and the ranges are sorted by
// First.
func Within[R Range[N], N ~int64](ids []N, list []R) []N {
	in := In(list)
	return slices.DeleteFunc(slices.Clone(ids), func(id N) bool { return !in(id) })
}

// Ascend reports whether the ranges ascend, from 1 to last.
func Ascend[R Range[N], N ~int64](list []R, last N) bool {
	prev := N(0)
	for _, x := range list {
		r := pair[N](x)
		if r.First <= prev || r.Last < r.First {
			return false
		}
		prev = r.Last
	}
	return prev <= last
}

// Sort sorts ranges by First. It does not write to ranges that are in order.
func Sort[R Range[N], N ~int64](list []R) {
	byFirst := func(a, b R) int { return cmp.Compare(pair[N](a).First, pair[N](b).First) }
	if !slices.IsSortedFunc(list, byFirst) {
		slices.SortStableFunc(list, byFirst)
	}
}

// Minus returns the parts of ranges that are in none of the others, which are sorted by First.
func Minus[R Range[N], N ~int64](list, others []R) (left []R) {
	for _, x := range list {
		r := pair[N](x)
		for _, y := range others {
			o := pair[N](y)
			if o.Last < r.First || r.Last < o.First {
				continue
			}
			if r.First < o.First {
				left = append(left, R(pair[N]{r.First, o.First - 1}))
			}
			r.First = o.Last + 1
		}
		if r.First <= r.Last {
			left = append(left, R(r))
		}
	}
	return left
}

// Join joins two ranges, which are sorted by First, if isEmpty reports true for the IDs from the
// end of one to the beginning of the next.
func Join[R Range[N], N ~int64](list []R, isEmpty func(first, last N) bool) (out []R) {
	for _, x := range list {
		r, n := pair[N](x), len(out)
		if n > 0 && isEmpty(pair[N](out[n-1]).Last+1, r.First-1) {
			was := pair[N](out[n-1])
			out[n-1] = R(pair[N]{was.First, max(was.Last, r.Last)})
			continue
		}
		out = append(out, x)
	}
	return out
}

// Texts returns each range as text, such as "3-9", or "3" for one ID.
func Texts[R Range[N], N ~int64](list []R) []string {
	texts := make([]string, len(list))
	for i, x := range list {
		r := pair[N](x)
		texts[i] = fmt.Sprint(r.First)
		if r.Last != r.First {
			texts[i] = fmt.Sprintf("%d-%d", r.First, r.Last)
		}
	}
	return texts
}

// Merge merges two lists that ascend by ID. If both have an ID, it takes the element of b.
func Merge[E any, N ~int64](a, b []E, id func(E) N) []E {
	all := make([]E, 0, len(a)+len(b))
	for _, x := range b {
		for len(a) > 0 && id(a[0]) < id(x) {
			all, a = append(all, a[0]), a[1:]
		}
		if len(a) > 0 && id(a[0]) == id(x) {
			a = a[1:]
		}
		all = append(all, x)
	}
	return append(all, a...)
}

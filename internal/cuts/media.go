package cuts

import "slices"

// A Medium is an image or another file in a list of entries.
type Medium struct {
	Entry, Nth int // the index of the entry in the list, and that of the medium in the entry

	Large bool // an image of which the model takes fewer
	Free  bool // it may be cleared
	Last  bool // it is one of the newest, which stay if they can
}

// Surplus returns the indices of the media to clear so that the model takes the others: the
// large images if that is enough, and else the oldest until half of most are left. It returns
// nothing if that is not possible. large says that the model takes more media if none is large.
func Surplus(all []Medium, most int, large bool) []int {
	need := len(all) - most
	if most == 0 || need <= 0 {
		return nil
	}
	pick := func(which func(m Medium) bool) (at []int) {
		for i, m := range all {
			if which(m) {
				at = append(at, i)
			}
		}
		return at
	}
	of := pick(func(m Medium) bool { return m.Large })
	if large && len(of) == 0 {
		return nil // they have left
	}
	hasLast := slices.ContainsFunc(of, func(i int) bool { return !all[i].Free || all[i].Last })
	hasKept := slices.ContainsFunc(of, func(i int) bool { return !all[i].Free })
	old := pick(func(m Medium) bool { return m.Free && !m.Last })
	free := pick(func(m Medium) bool { return m.Free })
	switch {
	case large && len(of) <= need && !hasLast:
		return of
	case len(old) >= need:
		return old[:min(len(all)-most/2, len(old))]
	case large && !hasKept:
		return of
	case len(free) >= need:
		return free[:need]
	}
	return nil
}

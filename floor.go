package convo

// A floor says which entries of a state's list no compaction may drop or clear.
// System entries and ephemeral messages, which are not in the list, belong to
// the floor too.
type floor struct {
	s                  *state
	usersFrom, usersTo int // the bounds of the newest turn's user messages
	newest             int // where the newest exchange begins
	nextPin            int // how many pins are below the entry last asked about
}

// floor returns the floor of s.
func (s *state) floor() *floor {
	f := &floor{s: s}
	f.usersFrom, f.usersTo = turnUsers(s.list)
	if len(s.list) > 0 {
		f.newest, _ = exchangeAt(s.list, len(s.list)-1)
	}
	return f
}

// has reports whether list[i] belongs to the floor. The methods of a floor must
// be called in ascending order of i.
func (f *floor) has(i int) bool {
	return i >= f.newest || f.usersFrom <= i && i < f.usersTo || f.pinned(i)
}

// pinned reports whether list[i] belongs to a pinned exchange.
func (f *floor) pinned(i int) bool {
	head := f.s.list[i].head
	for f.nextPin < len(f.s.pins) && f.s.pins[f.nextPin] < head {
		f.nextPin++
	}
	return f.nextPin < len(f.s.pins) && f.s.pins[f.nextPin] == head
}

// rule says in words why list[i] belongs to the floor. It is empty if list[i]
// does not.
func (f *floor) rule(i int) string {
	switch {
	case f.pinned(i):
		return "a pinned exchange"
	case i >= f.newest:
		return "the newest exchange"
	case f.usersFrom <= i && i < f.usersTo:
		return "a user message of the newest turn"
	}
	return ""
}

// A floorWeight is the size of the floor in raw tokens, by shares. An entry
// that belongs to several shares counts only in the first.
type floorWeight struct {
	system, newest, users, pinned, ephemeral int64
}

func (w floorWeight) total() int64 {
	return w.system + w.newest + w.users + w.pinned + w.ephemeral
}

// floorWeight returns the size of the floor of s.
func (s *state) floorWeight() floorWeight {
	w := floorWeight{system: s.sysRaw, ephemeral: s.eph.tokens()}
	if len(s.list) == 0 {
		return w
	}
	newest, _ := exchangeAt(s.list, len(s.list)-1)
	w.newest, w.pinned = rawOf(s.list[newest:]), s.pinRaw
	if s.isPinned(s.list[newest].head) {
		w.pinned -= w.newest
	}
	from, to := turnUsers(s.list)
	for _, e := range s.list[from:max(min(to, newest), from)] {
		w.users += e.tokens
		if s.isPinned(e.head) {
			w.pinned -= e.tokens
		}
	}
	return w
}

package convo

// A floor says which entries of a state's list no compaction may drop or change:
// those of pinned exchanges, the user messages of the newest turn, the newest
// exchange, and a round of tool calls that no assistant message has followed yet
// with the user messages of its turn. System entries and ephemeral messages,
// which are not in the list, belong to the floor too.
type floor struct {
	s       *state
	users   bounds // the newest turn's user messages
	newest  int    // where the newest exchange begins
	round   bounds // the round that waits for an answer behind newer user messages; empty: none
	asked   bounds // the user messages of that round's turn
	nextPin int    // how many pins are below the entry last asked about
}

// Bounds are those of a part of a list: from list[from] up to, but not
// including, list[to].
type bounds struct{ from, to int }

func (b bounds) has(i int) bool { return b.from <= i && i < b.to }

// of returns that part of a list.
func (b bounds) of(list []*entry) []*entry { return list[b.from:b.to] }

// floor returns the floor of s.
func (s *state) floor() *floor {
	f := &floor{s: s}
	n := len(s.list)
	if n == 0 {
		return f
	}
	f.users.from, f.users.to = turnUsers(s.list)
	f.newest, _ = exchangeAt(s.list, n-1)
	if from := f.users.from; f.users.to == n && from > 0 && s.list[from-1].msg.Role == RoleTool {
		f.round.from, f.round.to = exchangeAt(s.list, from-1)
		f.asked.from, f.asked.to = turnUsers(s.list[:f.round.to])
	}
	return f
}

// unanswered returns the bounds of the round of tool calls that no assistant
// message has followed yet. They are empty if there is none.
func (f *floor) unanswered() bounds {
	if n := len(f.s.list); n > 0 && f.s.list[n-1].msg.Role == RoleTool {
		return bounds{f.newest, n}
	}
	return f.round
}

// has reports whether list[i] belongs to the floor. The methods of a floor that
// take an index must be called with ascending ones.
func (f *floor) has(i int) bool { return f.hasUnpinned(i) || f.pinned(i) }

// hasUnpinned reports whether list[i] belongs to the floor for another reason
// than a pin.
func (f *floor) hasUnpinned(i int) bool {
	return i >= f.newest || f.users.has(i) || f.round.has(i) || f.asked.has(i)
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
	case f.users.has(i):
		return "a user message of the newest turn"
	case f.round.has(i):
		return "a round of tool calls that no assistant message has followed yet"
	case f.asked.has(i):
		return "a user message of a turn whose tool results no assistant message has followed yet"
	}
	return ""
}

// onlyFloor returns a state that shows the floor of s and nothing else.
func (s *state) onlyFloor() *state {
	only := s.clipped()
	only.summary = nil
	f := s.floor()
	list := make([]*entry, 0, len(s.list)-f.newest)
	for i, e := range s.list {
		if f.has(i) {
			list = append(list, e)
		}
	}
	only.replace(s.sys, list, nil, rawOf(list), countTurns(list), s.turn)
	only.sumMeasured(true)
	return &only
}

// A floorWeight is the size of the floor in raw tokens, by shares. An entry
// that belongs to several shares counts only in one: in pinned, if unpinning it
// would let a compaction drop it or cut it, and otherwise in the first.
type floorWeight struct {
	system, newest, round, users, pinned, ephemeral int64

	newestRole Role // of the first message of the newest exchange
}

func (w floorWeight) total() int64 {
	return w.system + w.newest + w.round + w.users + w.pinned + w.ephemeral
}

// floorWeight returns the size of the floor of s.
func (s *state) floorWeight() floorWeight {
	w := floorWeight{system: s.sysRaw, pinned: s.pinRaw, ephemeral: s.eph.tokens()}
	if len(s.list) == 0 {
		return w
	}
	f := s.floor()
	w.newestRole = s.list[f.newest].msg.Role
	open := f.unanswered()
	count := func(share *int64, part bounds) {
		for _, e := range part.of(s.list) {
			if s.isPinned(e.head) {
				if part == open {
					continue // unpinned, its results could be cut
				}
				w.pinned -= e.tokens
			}
			*share += e.tokens
		}
	}
	count(&w.newest, bounds{f.newest, len(s.list)})
	count(&w.round, f.round)
	count(&w.users, bounds{f.asked.from, max(f.asked.from, min(f.asked.to, f.round.from))})
	count(&w.users, bounds{f.users.from, max(f.users.from, min(f.users.to, f.newest))})
	return w
}

package convo

import "slices"

// A floor says which entries of a state's list no compaction may drop or change. These are
// pinned exchanges, the user messages of the newest turn, and the newest exchange other than
// a note. A round of tool calls that no assistant message has followed yet belongs to it,
// with the user messages of its turn. So do notes that neither an assistant message nor a
// result has followed yet. System entries and ephemeral messages also belong to the
// floor, but are not in the list.
type floor struct {
	s       *state
	users   bounds // the newest turn's user messages
	newest  int    // where the newest exchange begins, notes aside
	tail    int    // start of the user messages and notes at the end of the list
	round   bounds // the round that waits for an answer before newer user messages; empty: none
	asked   bounds // the user messages of that round's turn
	nextPin int    // how many pins are below the entry last asked about
}

// bounds mark a part of a list: from list[from] up to, but not including,
// list[to].
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
	f.newest, _ = exchangeAt(s.list, newestExchange(s.list))
	for f.tail = n; f.tail > 0 && (s.list[f.tail-1].msg.Role == RoleUser || s.list[f.tail-1].note); {
		f.tail--
	}
	from := f.users.from
	for from > 0 && s.list[from-1].note {
		from--
	}
	if f.tail < n && f.tail == from && from > 0 && s.list[f.newest].msg.Role == RoleUser && s.list[from-1].msg.Role == RoleTool {
		f.round.from, f.round.to = exchangeAt(s.list, from-1)
		f.asked.from, f.asked.to = turnUsers(s.list[:f.round.to])
	}
	return f
}

// newestExchange returns the index of an entry of the newest exchange of a list that is
// not empty. It skips notes if there are other entries.
func newestExchange(list []*entry) int {
	for i, e := range slices.Backward(list) {
		if !e.note {
			return i
		}
	}
	return len(list) - 1
}

// unanswered returns the bounds of the round of tool calls that no assistant
// message has followed yet. They are empty if there is none.
func (f *floor) unanswered() bounds {
	if len(f.s.list) > 0 {
		if from, to := exchangeAt(f.s.list, f.newest); f.s.list[to-1].msg.Role == RoleTool {
			return bounds{from, to}
		}
	}
	return f.round
}

// has reports whether list[i] belongs to the floor. The methods of a floor that
// take an index must be called with ascending indices.
func (f *floor) has(i int) bool { return f.hasUnpinned(i) || f.pinned(i) }

// hasUnpinned reports whether list[i] belongs to the floor for another reason
// than a pin.
func (f *floor) hasUnpinned(i int) bool { return f.unpinnedRule(i) != "" }

// unpinned returns the entries that belong to the floor for another reason than a pin.
func (f *floor) unpinned() (list []*entry) {
	from := min(f.newest, f.users.from, f.tail)
	if f.round.from < f.round.to {
		from = min(from, f.asked.from)
	}
	for i := from; i < len(f.s.list); i++ {
		if f.hasUnpinned(i) {
			list = append(list, f.s.list[i])
		}
	}
	return list
}

// pinned reports whether list[i] belongs to a pinned exchange.
func (f *floor) pinned(i int) bool {
	head := f.s.list[i].head
	for f.nextPin < len(f.s.pins) && f.s.pins[f.nextPin] < head {
		f.nextPin++
	}
	return f.nextPin < len(f.s.pins) && f.s.pins[f.nextPin] == head
}

// pinnedRule is what rule returns for a pinned exchange.
const pinnedRule = "a pinned exchange"

// rule says in words why list[i] belongs to the floor. It is empty if list[i]
// does not.
func (f *floor) rule(i int) string {
	if f.pinned(i) {
		return pinnedRule
	}
	return f.unpinnedRule(i)
}

// unpinnedRule is rule without pins.
func (f *floor) unpinnedRule(i int) string {
	switch note := f.s.list[i].note; {
	case note && (i >= f.newest || i >= f.tail):
		return "a note that no assistant message has followed yet"
	case note:
		return ""
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

// A floorWeight is the size of the floor in raw tokens, by shares. An entry
// that belongs to several shares counts only in one: in pinned, if unpinning it
// would let a compaction drop it or cut it, and otherwise in the first.
type floorWeight struct {
	tools, system, newest, round, users, pinned, ephemeral int64

	measured   int64 // the part of the total that the last usage report measured
	newestRole Role  // of the first message of the newest exchange
}

func (w floorWeight) total() int64 {
	return w.tools + w.system + w.newest + w.round + w.users + w.pinned + w.ephemeral
}

// floorWeight returns the size of the floor of s. In the list, it visits only entries
// that are in the floor without a pin.
func (s *state) floorWeight() floorWeight {
	w := floorWeight{tools: s.tools.tokens(), system: s.sysRaw, pinned: s.pinRaw, ephemeral: s.eph.tokens()}
	if cal := s.known().cal; cal != nil {
		w.measured = s.frameShared(cal.at) + s.pinMeasured
	}
	if len(s.list) == 0 {
		return w
	}
	f := s.floor()
	w.newestRole = s.list[f.newest].msg.Role
	open := f.unanswered()
	count := func(share *int64, part bounds) {
		for i, e := range part.of(s.list) {
			if !f.hasUnpinned(part.from + i) {
				continue
			}
			if s.isPinned(e.head) {
				if part == open {
					continue // unpinned, its results could be cut
				}
				w.pinned -= e.tokens
			} else if s.isMeasured(e) {
				w.measured += e.tokens
			}
			*share += e.tokens
		}
	}
	_, end := exchangeAt(s.list, f.newest)
	count(&w.newest, bounds{f.newest, end})
	count(&w.newest, bounds{end, len(s.list)})
	count(&w.round, f.round)
	count(&w.users, bounds{f.asked.from, max(f.asked.from, min(f.asked.to, f.round.from))})
	count(&w.users, bounds{f.users.from, max(f.users.from, min(f.users.to, f.newest))})
	count(&w.users, bounds{f.tail, max(f.tail, min(f.users.from, f.newest))})
	return w
}

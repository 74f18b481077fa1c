package convo

// A cut says which exchanges outside the floor a strategy gives up: all before
// a place in the list, but for the user messages of the turn that it falls
// into.
type cut struct {
	s    *Snapshot
	drop []ID
	kept int64 // raw tokens of the view when drop is gone, the summary included
}

// An atom is an exchange in the list, as the planning of a cut sees it.
type atom struct {
	from, to int // in the list
	tokens   int64
	turn     int
	floor    bool
	user     bool // of the user messages that begin a turn
	last     bool // to be given up last: see signedFirst
}

// A walker goes over the atoms of a list, from the oldest on.
type walker struct {
	list   []*entry
	floor  *floor
	signed *entry
	at     int  // where the next atom begins
	turn   int  // of the one before
	begins bool // only user messages so far in the turn
}

func walk(s *state) *walker {
	return &walker{list: s.list, floor: s.floor(), signed: signedFirst(s.list), turn: -1}
}

// next returns the next atom, and whether there is one.
func (w *walker) next() (a atom, ok bool) {
	if w.at == len(w.list) {
		return a, false
	}
	e := w.list[w.at]
	w.begins = (w.begins || e.turn != w.turn) && e.msg.Role == RoleUser
	w.turn = e.turn
	a = atom{from: w.at, turn: e.turn, floor: w.floor.has(w.at), user: w.begins, last: e == w.signed}
	for w.at < len(w.list) && w.list[w.at].head == e.head {
		a.tokens += w.list[w.at].tokens
		w.at++
	}
	a.to = w.at
	return a, true
}

// cutTo plans a cut after which the view weighs no more than target, summary
// included; where that is not possible, everything outside the floor goes. The
// tail is what is kept beside floor and summary: with a bound, it holds no
// more than that either.
func cutTo(s *Snapshot, target int64, tail int64) cut {
	floor := s.floorWeight().total()
	c := cut{s: s, kept: s.raw()}
	budget := max(target-floor-s.slot.tokens(), 0)
	if tail > 0 {
		budget = min(budget, tail)
	}

	// Walk forward until what is left is small enough. Users of the turn that
	// the place is in are held back until the next turn begins.
	left := c.kept - floor - s.slot.tokens()
	place, held := 0, int64(0)
	w := walk(&s.state)
	for left > budget {
		turn := w.turn
		a, ok := w.next()
		if !ok || a.turn != turn {
			left -= held
			held = 0
			if !ok || left <= budget {
				break
			}
		}
		switch {
		case a.floor || a.last:
		case a.user:
			held += a.tokens
		default:
			left -= a.tokens
		}
		place = a.to
	}
	c.take(forward(s, place, budget/4), left > budget)
	return c
}

// forward moves a cut inside a turn to where the next one begins, when that is
// near: within so many tokens.
func forward(s *Snapshot, place int, near int64) int {
	if !s.isInside(place) {
		return place
	}
	turn := s.list[place].turn
	floor := s.floor()
	var between int64
	for i := place; i < len(s.list); i++ {
		if s.list[i].turn != turn {
			return i
		}
		if !floor.has(i) {
			between += s.list[i].tokens
		}
		if between > near {
			break
		}
	}
	return place
}

// isInside reports whether a place in the list has entries of one turn before
// and behind it.
func (s *state) isInside(place int) bool {
	return place > 0 && place < len(s.list) && s.list[place-1].turn == s.list[place].turn
}

// take collects what goes: all before place, and, when that is everything and
// still too little, what is to be given up last.
func (c *cut) take(place int, tooLittle bool) {
	list := c.s.list
	inside := c.s.isInside(place)
	c.drop = make([]ID, 0, place)
	for w := walk(&c.s.state); w.at < place; {
		a, _ := w.next()
		if a.floor || a.user && inside && a.turn == list[place].turn || a.last && !(tooLittle && place == len(list)) {
			continue
		}
		c.kept -= a.tokens
		for _, e := range list[a.from:a.to] {
			c.drop = append(c.drop, e.id)
		}
	}
}

// signedFirst returns the first assistant message of the newest turn when its
// reasoning is signed and no later one of the turn has any; nil otherwise. A
// provider wants it back as long as the turn goes on.
func signedFirst(list []*entry) *entry {
	from, _ := turnUsers(list)
	var first *entry
	for _, e := range list[from:] {
		if e.msg.Role != RoleAssistant {
			continue
		}
		any, signed := reasoningOf(&e.msg)
		switch {
		case first != nil && any:
			return nil
		case first == nil && !signed:
			return nil
		case first == nil:
			first = e
		}
	}
	return first
}

func reasoningOf(m *Message) (any, signed bool) {
	for _, p := range m.Parts {
		if r, ok := p.(Reasoning); ok {
			any = true
			signed = signed || r.Signature != "" || r.Encrypted != ""
		}
	}
	return any, signed
}

// A floorWeight is what no reduction may take, in raw tokens. An exchange counts
// once, in the first share that it belongs to.
type floorWeight struct {
	system, newest, users, pinned, ephemeral int64
}

func (w floorWeight) total() int64 {
	return w.system + w.newest + w.users + w.pinned + w.ephemeral
}

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

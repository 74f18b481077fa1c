package convo

// A cut says which exchanges outside the floor a strategy gives up: all before
// a place in the list, but for the user messages of the turn that it falls
// into.
type cut struct {
	s     *Snapshot
	drop  []ID
	kept  int64 // raw tokens of the view when drop is gone, the summary included
	floor int64 // raw tokens of the floor
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

// cutTo plans a cut after which the view weighs no more than target, summary
// included; where that is not possible, everything outside the floor goes. The
// tail is what is kept beside floor and summary: with a bound, it holds no
// more than that either.
func cutTo(s *Snapshot, target int64, tail int64) cut {
	atoms, floor := atomsOf(s)
	c := cut{s: s, floor: floor + s.sysRaw + s.eph.tokens()}
	c.kept = s.raw()
	budget := max(target-c.floor-s.slot.tokens(), 0)
	if tail > 0 {
		budget = min(budget, tail)
	}

	// Walk forward until what is left is small enough. Users of the turn that
	// the place is in are held back until the next turn begins.
	left := c.kept - c.floor - s.slot.tokens()
	place, held := 0, int64(0)
	for ; place < len(atoms) && left > budget; place++ {
		a := &atoms[place]
		if place > 0 && a.turn != atoms[place-1].turn {
			left -= held
			held = 0
			if left <= budget {
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
	}
	if place == len(atoms) {
		left -= held
	}
	place = forward(atoms, place, budget/4)
	c.take(atoms, place, left > budget)
	return c
}

// forward moves a cut inside a turn to where the next one begins, when that is
// near: within so many tokens.
func forward(atoms []atom, place int, near int64) int {
	if place == 0 || place >= len(atoms) || atoms[place].turn != atoms[place-1].turn {
		return place
	}
	var between int64
	for i := place; i < len(atoms); i++ {
		if atoms[i].turn != atoms[place].turn {
			return i
		}
		if !atoms[i].floor {
			between += atoms[i].tokens
		}
		if between > near {
			return place
		}
	}
	return place
}

// take collects what goes: all before place, and, when that is everything and
// still too little, what is to be given up last.
func (c *cut) take(atoms []atom, place int, tooLittle bool) {
	inside := 0 // the turn that the place is in the middle of
	if place > 0 && place < len(atoms) && atoms[place].turn == atoms[place-1].turn {
		inside = atoms[place].turn
	}
	n := 0
	for i := range atoms[:place] {
		n += atoms[i].to - atoms[i].from
	}
	c.drop = make([]ID, 0, n)
	for i := range atoms[:place] {
		a := &atoms[i]
		if a.floor || a.user && inside != 0 && a.turn == inside || a.last && !(tooLittle && place == len(atoms)) {
			continue
		}
		c.kept -= a.tokens
		for _, e := range c.s.list[a.from:a.to] {
			c.drop = append(c.drop, e.id)
		}
	}
}

// atomsOf returns the exchanges of the list, and the tokens of those that are
// floor.
func atomsOf(s *Snapshot) (atoms []atom, floorTokens int64) {
	floor := s.floor()
	atoms = make([]atom, 0, len(s.list))
	signed := signedFirst(s.list)
	begins := true // only user messages so far in the turn
	for from := 0; from < len(s.list); {
		e := s.list[from]
		if from > 0 && s.list[from-1].turn != e.turn {
			begins = true
		}
		begins = begins && e.msg.Role == RoleUser
		a := atom{from: from, to: from, turn: e.turn, floor: floor.has(from), user: begins, last: e == signed}
		for a.to < len(s.list) && s.list[a.to].head == e.head {
			a.tokens += s.list[a.to].tokens
			a.to++
		}
		if a.floor {
			floorTokens += a.tokens
		}
		atoms = append(atoms, a)
		from = a.to
	}
	return atoms, floorTokens
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
	w.newest = rawOf(s.list[newest:])
	from, to := turnUsers(s.list)
	w.users = rawOf(s.list[from:min(to, newest)])
	for _, head := range s.pins {
		i, ok := index(s.list, head)
		if !ok || i >= newest || from <= i && i < to {
			continue
		}
		for ; i < newest && s.list[i].head == head; i++ {
			w.pinned += s.list[i].tokens
		}
	}
	return w
}

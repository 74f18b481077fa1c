package convo

// A cut is a place in the list of entries, and the exchanges to drop for it: all
// before that place, except the floor and the user messages of the turn that the
// place falls into.
type cut struct {
	s         *Snapshot
	drop      []ID
	remaining int64 // raw tokens of the view without drop, the summary included
}

// A listExchange is an exchange of the list of entries.
type listExchange struct {
	from, to int // the entries from list[from] up to, but not including, list[to]
	tokens   int64
	turn     int
	floor    bool
	user     bool // one of the user messages that begin a turn, or a note among them
	dropLast bool // every strategy should drop it only if nothing else suffices; see sealedFirst
}

// A walker visits the exchanges of a list, oldest first.
type walker struct {
	list   []*entry
	floor  *floor
	sealed *entry // the exchange with dropLast begins with it; nil: none has
	at     int    // where the next exchange begins
	turn   int    // of the exchange before it
	inHead bool   // the turn has had only user messages so far
}

func walk(s *state) *walker {
	return &walker{list: s.list, floor: s.floor(), sealed: sealedFirst(s.list), turn: -1}
}

// next returns the next exchange. At the end of the list, ok is false.
func (w *walker) next() (a listExchange, ok bool) {
	if w.at == len(w.list) {
		return a, false
	}
	e := w.list[w.at]
	w.inHead = (w.inHead || e.turn != w.turn) && (e.msg.Role == RoleUser || e.note)
	w.turn = e.turn
	a = listExchange{from: w.at, turn: e.turn, floor: w.floor.has(w.at), user: w.inHead, dropLast: e == w.sealed}
	for w.at < len(w.list) && w.list[w.at].head == e.head {
		a.tokens += w.list[w.at].tokens
		w.at++
	}
	a.to = w.at
	return a, true
}

// newest returns where the newest exchanges of a list begin that hold at least so
// many entries and so many turns. Less than 1 asks for none.
func newest(list []*entry, entries, turns int) int {
	place := len(list)
	if entries > 0 && place > 0 {
		place, _ = exchangeAt(list, max(place-entries, 0))
	}
	begin := len(list)
	for ; turns > 0 && begin > 0; turns-- {
		begin, _ = turnUsers(list[:begin])
	}
	return min(place, begin)
}

// cutTo plans a cut after which the view, with its summary, is no larger than
// target raw tokens. If that is impossible, it drops everything outside the
// floor. If maxTail is positive, what is kept in addition to the floor and the
// summary is no larger than maxTail either. The entries from list[keep] on stay
// in any case.
func cutTo(s *Snapshot, target, maxTail int64, keep int) cut {
	floor := s.floorWeight().total()
	c := cut{s: s, remaining: s.raw()}
	budget := max(target-floor-s.summary.tokens(), 0)
	if maxTail > 0 {
		budget = min(budget, maxTail)
	}

	// Walk forward until what is left is small enough. The user messages of a
	// turn are only subtracted when the place has passed the end of the turn,
	// because a cut inside the turn keeps them.
	left := c.remaining - floor - s.summary.tokens()
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
		case a.floor || a.dropLast:
		case a.user:
			held += a.tokens
		default:
			left -= a.tokens
		}
		place = a.to
	}
	c.collect(min(moveToTurn(s, place, budget/4), keep), left > budget)
	return c
}

// room returns how many tokens a new summary may have after the cut if the view
// may have so many raw tokens.
func (c *cut) room(view int64) int64 {
	return view - (c.remaining - c.s.summary.tokens()) - int64(c.s.SummaryTokens(""))
}

// moveToTurn returns where the turn after place begins, if place is inside a turn
// and dropping the entries in between drops at most near tokens. Otherwise it
// returns place.
func moveToTurn(s *Snapshot, place int, near int64) int {
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

// collect fills c.drop with what a cut at place drops. If place is the end of the
// list and the cut still frees too little, that includes the exchange to be
// dropped last.
func (c *cut) collect(place int, tooLittle bool) {
	list := c.s.list
	inside := c.s.isInside(place)
	c.drop = make([]ID, 0, place)
	for w := walk(&c.s.state); w.at < place; {
		a, _ := w.next()
		if a.floor || a.user && inside && a.turn == list[place].turn || a.dropLast && !(tooLittle && place == len(list)) {
			continue
		}
		c.remaining -= a.tokens
		for _, e := range list[a.from:a.to] {
			c.drop = append(c.drop, e.id)
		}
	}
}

// sealedFirst returns the first assistant message of the newest turn if its
// reasoning is sealed and no later message of the turn has reasoning. Otherwise
// it returns nil. Providers expect such a message in every request until the turn
// is over, so it is dropped last.
func sealedFirst(list []*entry) *entry {
	from, _ := turnUsers(list)
	var first *entry
	for _, e := range list[from:] {
		if e.msg.Role != RoleAssistant {
			continue
		}
		reasons, sealed := reasoningOf(&e.msg)
		switch {
		case first != nil && reasons:
			return nil
		case first == nil && !sealed:
			return nil
		case first == nil:
			first = e
		}
	}
	return first
}

// reasoningOf reports whether a message holds reasoning, and whether any of it is
// sealed: signed by its provider, or encrypted.
func reasoningOf(m *Message) (reasons, sealed bool) {
	for _, p := range m.Parts {
		if r, ok := p.(Reasoning); ok {
			reasons = true
			sealed = sealed || r.Signature != "" || r.Encrypted != ""
		}
	}
	return reasons, sealed
}

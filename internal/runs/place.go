package runs

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/seed-c1b73e60/convo/internal/pairs"
	"github.com/seed-c1b73e60/convo/internal/text"
	"github.com/seed-c1b73e60/convo/internal/wording"
)

// A Given is a row that the application has, and what its place depends on.
type Given[N ~int64, M any] struct {
	Key, Role string
	Calls     *pairs.Calls[N] // of an assistant message
	Results   []pairs.Call    // of a tool message: the ID and the name of the call that each part answers
	IsMixed   bool            // a part after them is no result
	Message   M
}

// A Fault says that a row does not fit a list.
type Fault struct {
	Key   string // of the row, or of one nearby; empty: the row has no key
	Fault string
	Err   error // may be nil
}

// The faults of rows.
const (
	Missing    = "missing"
	Changed    = "changed"
	Twice      = "twice"
	Unexpected = "unexpected"
)

// A Placer finds the places of the rows of a list among those that are given in the order in which
// they were appended.
type Placer[N ~int64, M any] struct {
	Places []Given[N, M]   // the rows of the list, in order; without a key: the row is not there yet
	Tail   []M             // the rows after the list
	Seen   map[string]bool // keys of the rows so far
	Queued map[string]bool // keys of rows that were queued: they were given before results

	list     *List[N]
	isTold   bool                                // the newest entry of the view, or else what has left it, has a row
	isOthers func(place int, m Given[N, M]) bool // whether a row is not what stood in a place

	listed map[string]int  // the places of rows whose keys are listed
	place  int             // of the next row
	stop   int             // the place after the run that the row before it is in
	end    string          // the key of the row after which new ones begin, until that was given; "": they follow the last run
	ended  string          // the role of that row
	isLeft bool            // a row was given between the last run and that row
	calls  *pairs.Calls[N] // of the newest answer since; nil: none was given yet
	early  []Given[N, M]   // user rows given before the results of calls
}

// NewPlacer returns a Placer for a list. New rows begin after the row with the key end, which has
// left the view, or if end is empty, after the last run. isTold says that no entry without a row is
// newer than these. isOthers reports whether a row is not what stood in a place.
func NewPlacer[N ~int64, M any](list *List[N], end string, isTold bool, isOthers func(place int, m Given[N, M]) bool) *Placer[N, M] {
	p := &Placer[N, M]{
		Places: make([]Given[N, M], len(list.Rows)), Seen: make(map[string]bool), Queued: make(map[string]bool),
		list: list, isTold: isTold, isOthers: isOthers,
		listed: make(map[string]int), place: list.From, end: end,
	}
	for i, x := range list.Rows[:list.From] {
		p.listed[x.Key] = i
	}
	return p
}

// Take takes the next row. It skips a system message before all other rows, which the application
// sets again. It returns nil if the row fits.
func (p *Placer[N, M]) Take(m Given[N, M]) *Fault {
	place, isListed := p.listed[m.Key]
	begins := p.begins(m.Key)
	switch {
	case m.Role == system && len(p.Seen) == 0 && !isListed && !begins:
		return nil
	case m.Key == "":
		return &Fault{Fault: Unexpected}
	case p.Seen[m.Key]:
		return &Fault{Key: m.Key, Fault: Twice}
	}
	p.Seen[m.Key] = true
	if isListed {
		p.Places[place] = m
		return nil
	}
	isOpen := p.place > p.list.From || len(p.list.Rows) == 0 && p.end == "" // the first row that begins was given
	if !isOpen && !begins {
		return &Fault{Key: m.Key, Fault: Unexpected}
	}
	return p.order(m)
}

// End ends the rows. It returns nil if no row is missing.
func (p *Placer[N, M]) End() *Fault {
	if err := p.putEarly(); err != nil {
		return err
	}
	rows := p.list.Rows
	if p.place < len(rows) {
		last := rows[p.list.Stop(p.place)-1]
		return &Fault{Key: cmp.Or(rows[p.place].Key, last.Key), Fault: Missing}
	}
	if p.end != "" && (p.isLeft || len(rows) == 0) {
		return &Fault{Key: p.end, Fault: Missing, Err: errors.New("it has left the view, and rows after it are new; a Message with its Key alone may stand for it")}
	}
	return nil
}

// begins reports whether the next run begins with the row with the key, or, if there is no
// run, what is new follows it.
func (p *Placer[N, M]) begins(key string) bool {
	if len(p.list.Rows) == 0 {
		return key == p.end && key != ""
	}
	return p.mayBegin() && p.list.Rows[p.place].Key == key
}

// mayBegin reports whether the next row in view is the first of a run.
func (p *Placer[N, M]) mayBegin() bool {
	return p.place < len(p.list.Rows) && p.list.Rows[p.place].Begins
}

// order puts a row in its place. A user message is never between calls and their results. If a
// row is, the message waited in the queue, and was appended after the results.
func (p *Placer[N, M]) order(m Given[N, M]) *Fault {
	switch {
	case m.Role == user && p.calls.Open() > 0:
		p.early = append(p.early, m)
		return nil
	case m.Role == tool && p.isOfEarlier():
		return nil
	case m.Role == tool && p.answers(m):
		for _, e := range p.early {
			p.Queued[e.Key] = true
		}
	default:
		if err := p.putEarly(); err != nil {
			return err
		}
	}
	if m.Role == assistant {
		p.calls = cmp.Or(m.Calls, new(pairs.Calls[N]))
	}
	if err := p.put(m); err != nil || p.calls.Open() > 0 {
		return err
	}
	return p.putEarly()
}

// putEarly puts the user rows that waited for results in their places.
func (p *Placer[N, M]) putEarly() *Fault {
	early := p.early
	p.early = nil
	for _, m := range early {
		if err := p.put(m); err != nil {
			return err
		}
	}
	return nil
}

// isOfEarlier reports whether the next row, if it is a tool message, answers calls before the
// row from which on all are given. Only user messages were given since, which waited in the
// queue for the results. The view does not show it.
func (p *Placer[N, M]) isOfEarlier() bool {
	role := p.ended // of the row before it
	if all := len(p.list.Rows); all > 0 {
		if p.place == p.list.From {
			return false
		}
		role = p.Places[p.place-1].Role
		if p.place < all {
			return p.calls == nil && role == user && !p.mayBegin()
		}
	}
	return p.calls == nil && role == user && len(p.Tail) == 0 && p.isTold
}

// answers reports whether all results of m answer open calls, and marks these as answered.
func (p *Placer[N, M]) answers(m Given[N, M]) bool {
	for _, r := range m.Results {
		i, err := p.calls.Find(r.ID, r.Name)
		if err != nil {
			return false
		}
		p.calls.Answer(i)
	}
	return !m.IsMixed
}

// put puts a row in the next place.
func (p *Placer[N, M]) put(m Given[N, M]) *Fault {
	isDone, begins := p.place == len(p.list.Rows), p.begins(m.Key)
	switch {
	case isDone && p.end == "":
		p.Tail = append(p.Tail, m.Message)
		return nil
	case isDone && m.Key == p.end:
		p.end, p.ended = "", m.Role
		return nil
	case isDone:
		p.isLeft = true
		return nil
	case p.mayBegin() && !begins:
		return nil // the view does not show it
	case begins:
		p.stop = p.list.Stop(p.place)
	}
	more, last := p.stop-1-p.place, p.list.Rows[p.stop-1].Key // rows of the run that must follow
	switch {
	case more == 0 && last != "" && m.Key != last:
		return &Fault{Key: p.firstOther(m.Key), Fault: Unexpected, Err: fmt.Errorf("%q did not come where it stood", wording.Abbreviate(last))}
	case more > 0 && m.Key == last && !begins:
		other := p.firstOther("")
		if other == "" && m.Role == user {
			return &Fault{Key: m.Key, Fault: Unexpected, Err: fmt.Errorf("%s stood before it that were not given before it", text.Counted(more, "row", "rows"))}
		}
		return &Fault{Key: cmp.Or(other, m.Key), Fault: Missing, Err: fmt.Errorf("%s before %q", text.Counted(more, "row", "rows"), wording.Abbreviate(last))}
	}
	p.Places[p.place] = m
	p.place++
	return nil
}

// firstOther returns the key of the first row of the run that the next row is in that is not
// what stood in its place, or the key otherwise.
func (p *Placer[N, M]) firstOther(otherwise string) string {
	for i := p.list.Start(p.place); i < p.place; i++ {
		if p.isOthers(i, p.Places[i]) {
			return p.Places[i].Key
		}
	}
	return otherwise
}

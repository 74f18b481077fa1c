// Package cuts chooses where to cut a list of messages so that the newest ones and the user's
// words stay. It works on the sizes of exchanges alone. All sizes are raw tokens.
package cuts

import (
	"math"
	"sort"
)

// NoMark is a size that does not exist, because there is no bound.
const NoMark = math.MaxInt64

// An Exchange is an exchange of a list of entries.
type Exchange struct {
	From, To   int // the entries with these indices, without the one at To
	Tokens     int64
	Turn       int
	Floor      bool // it must stay
	User       bool // one of the user messages that begin a turn, or a note among them
	Note       bool // a note
	LastResort bool // it is dropped only if all others outside the floor are
	Spared     bool // it stays besides the floor
	Word       bool // one of the user messages that are dropped last; see MarkWords
}

// stays reports whether x is in the floor, or is dropped only as a last resort.
func (x *Exchange) stays() bool { return x.Floor || x.Spared || x.Word }

// A List is a list of entries by their exchanges, oldest first.
type List struct {
	Exchanges []Exchange

	// IsHosts reports whether no person wrote the user message with an index, and Repeats
	// whether it repeats newer ones, for which it was called before.
	IsHosts, Repeats func(entry int) bool
}

// At returns the index of the first exchange that begins at an entry or after it.
func (l *List) At(entry int) int {
	return sort.Search(len(l.Exchanges), func(i int) bool { return l.Exchanges[i].From >= entry })
}

// Spared returns the tokens of the exchanges that are spared besides the floor.
func (l *List) Spared() (tokens int64) {
	for _, x := range l.Exchanges {
		if x.Spared && !x.Floor {
			tokens += x.Tokens
		}
	}
	return tokens
}

// Window returns the index of the first exchange from least on with which at most most of n
// entries are left, and the user messages at the beginning of its turn, which count as well.
func (l *List) Window(least, most, n int) int {
	heads, turn := 0, -1 // user messages at the head of the turn so far
	for i, x := range l.Exchanges {
		if x.Turn != turn {
			heads, turn = 0, x.Turn
		}
		if i >= least && n-x.From+heads <= most {
			return i
		}
		if x.User {
			heads++
		}
	}
	return len(l.Exchanges)
}

// isInside reports whether a place, before the exchange with that index, is inside a turn.
func (l *List) isInside(place int) bool {
	all := l.Exchanges
	return place > 0 && place < len(all) && all[place-1].Turn == all[place].Turn
}

// A Room limits the size of a view after a cut.
type Room struct {
	Target int64 // the size to aim at
	Share  int64 // the base for fractions of the target: the target of the goal, or the view if that is smaller
	Limit  int64 // the size above which only the entries that must stay are kept; NoMark: no limit
	Most   int64 // the size at which the cut frees enough; NoMark: any size
}

// Less returns the room reduced by the given number of tokens. Share does not change.
func (r Room) Less(tokens int64) Room {
	r.Target -= tokens
	for _, mark := range []*int64{&r.Limit, &r.Most} {
		if *mark != NoMark {
			*mark -= tokens
		}
	}
	return r
}

// Tail returns how many tokens a cut keeps in addition to those it must keep. That is the
// rest of the target, but at least a quarter of it. If half the room below the limit is less
// than that quarter, it is at least that. If most is positive, Tail returns at most that, and 0
// if it is negative.
func (r Room) Tail(kept, most int64) int64 {
	least := r.Share / 4
	if r.Limit != NoMark {
		least = min(least, (r.Limit-kept)/2)
	}
	tail := max(r.Target-kept, min(least, r.Most-kept), 0)
	if most == 0 {
		return tail
	}
	return min(tail, max(most, 0))
}

// Large returns the number of tokens from which a message or a result counts as a
// document rather than a remark.
func (r Room) Large() int64 { return r.Share/documentShare/4 + 1 }

// documentShare is what Large and the bound of the first message derive from: a document
// has more than a quarter of 1/documentShare of the target, and the first message may have
// half of it.
const documentShare = 8

// WordsShare bounds the user messages of MarkWords to 1/WordsShare of the target.
const WordsShare = 3

// MarkWords marks the user messages outside the floor that are dropped last, and returns their
// tokens: the first of the list and then the newest before the tail, together at most a
// third of the target. The tail is the newest maxTail tokens besides the floor, as in Cut,
// and all exchanges from keep on. Documents are not included, except that the first message may
// have a sixteenth of the target. kept is the number of tokens that stay in addition; if the
// limit leaves less than a third of the target, that is the bound. What no person wrote is
// not included.
func (l *List) MarkWords(r Room, kept, maxTail int64, keep int) (tokens int64) {
	all, budget := l.Exchanges, r.Share/WordsShare
	if r.Limit != NoMark {
		budget = min(budget, r.Limit-kept)
	}
	// The tail is as long as it is if the words fill their bound. If they do not, all of
	// them are taken, and it does not matter where it begins.
	before := min(keep, l.tailStart(r.Tail(kept+max(budget, 0), maxTail)))
	first, isFirst := len(all), true
	least := int64(NoMark) // tokens of the smallest candidate
	for i := range all[:before] {
		x := &all[i]
		isFound := first < len(all) // then it is asked below, if need be
		if !x.User || x.Note || !isFound && l.IsHosts(x.From) {
			continue
		}
		if !x.Floor && (isFirst && x.Tokens <= r.Share/documentShare/2 || x.Tokens < r.Large()) {
			x.Word = true // a candidate
			first, least = min(first, i), min(least, x.Tokens)
		}
		isFirst = false
	}
	take := func(x *Exchange) {
		x.Word = tokens+x.Tokens <= budget
		if x.Word {
			tokens += x.Tokens
		}
	}
	if first < len(all) {
		take(&all[first])
	}
	for i := len(all) - 1; i > first; i-- {
		x := &all[i]
		fits := tokens+least <= budget // if not, no older one does
		if x.Word && (!fits || l.IsHosts(x.From) || l.Repeats(x.From)) {
			x.Word = false
		}
		if x.Word {
			take(x)
		}
	}
	return tokens
}

// tailStart returns the start of the newest exchanges that have at most the given tokens
// besides the floor.
func (l *List) tailStart(tokens int64) int {
	for i := len(l.Exchanges); i > 0; i-- {
		if x := &l.Exchanges[i-1]; !x.Floor {
			tokens -= x.Tokens
		}
		if tokens < 0 {
			return i
		}
	}
	return 0
}

// Cut plans a cut after which a view of so many tokens is no larger than r.Target, or than kept,
// the spared exchanges and the user's words, which it marks, plus r.Tail. If maxTail is positive,
// the additional exchanges have at most maxTail tokens; if it is negative, there are none. The
// exchanges from keep on always stay. It returns the exchanges to drop.
func (l *List) Cut(r Room, view, kept, maxTail int64, keep int) []Exchange {
	kept += l.Spared()
	kept += l.MarkWords(r, kept, maxTail, keep)
	budget := r.Tail(kept, maxTail)

	// Walk forward until the rest is small enough. The user messages of a turn are only
	// subtracted after the end of the turn, because a cut inside the turn keeps them.
	left := view - kept
	place, held := 0, int64(0)
	turn := -1
	for i := range l.Exchanges {
		x := &l.Exchanges[i]
		if x.Turn != turn {
			left, held, turn = left-held, 0, x.Turn
		}
		if left <= budget {
			break
		}
		switch {
		case x.stays() || x.LastResort:
		case x.User:
			held += x.Tokens
		default:
			left -= x.Tokens
		}
		place = i + 1
	}
	return l.Before(min(l.moveToTurn(place, budget/4), keep), left-held > budget)
}

// moveToTurn returns the start of the next turn if place is inside a turn and the move
// drops at most near more tokens. Otherwise it returns place.
func (l *List) moveToTurn(place int, near int64) int {
	if !l.isInside(place) {
		return place
	}
	turn := l.Exchanges[place].Turn
	var between int64
	for i := place; i < len(l.Exchanges) && between <= near; i++ {
		x := &l.Exchanges[i]
		if x.Turn != turn {
			return i
		}
		if !x.stays() {
			between += x.Tokens
		}
	}
	return place
}

// Before returns the exchanges that a cut at place drops: all those before it, except what stays,
// and the user messages of the turn that contains the place. If place is the end of the list
// and the cut still frees too little, this includes the exchange with LastResort.
func (l *List) Before(place int, tooLittle bool) (drop []Exchange) {
	all, inside := l.Exchanges, l.isInside(place)
	drop = make([]Exchange, 0, place)
	for _, x := range all[:place] {
		if x.stays() || x.User && inside && x.Turn == all[place].Turn || x.LastResort && !(tooLittle && place == len(all)) {
			continue
		}
		drop = append(drop, x)
	}
	return drop
}

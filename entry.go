package convo

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// An ID names an entry of a History for good: it grows with every append and
// is never given twice, not even after a rollback. 0 names none.
type ID int64

// An Entry is a message inside a [History].
type Entry struct {
	ID      ID
	Message Message // a copy; change it as you like
	Tokens  int     // raw: as the tokenizer counts, not calibrated
	Turn    int     // grows; 0 before the first user message
	Pinned  bool
	Time    time.Time // of the append
}

// An entry is what a History keeps of a message. It never changes once the
// History has it, so snapshots share it.
type entry struct {
	msg    Message
	id     ID
	head   ID // the first entry of its exchange
	tokens int64
	at     int64 // Unix nanoseconds
	turn   int
	calls  *calls  // those of an assistant message, never answered here; nil: none
	inline [1]Part // backs msg.Parts where there is only one
}

func (e *entry) export(pins []ID) Entry {
	_, pinned := slices.BinarySearch(pins, e.head)
	return Entry{
		ID:      e.id,
		Message: e.msg.clone(),
		Tokens:  clampInt(e.tokens),
		Turn:    e.turn,
		Pinned:  pinned,
		Time:    time.Unix(0, e.at),
	}
}

// index returns where the entry with the ID stands in an ascending list.
func index(list []*entry, id ID) (int, bool) {
	return slices.BinarySearchFunc(list, id, func(e *entry, id ID) int { return cmp.Compare(e.id, id) })
}

func rawOf(list []*entry) int64 {
	var n int64
	for _, e := range list {
		n += e.tokens
	}
	return n
}

// exchangeAt returns the bounds [from, to) of the exchange that the i-th entry
// of list is in.
func exchangeAt(list []*entry, i int) (from, to int) {
	head := list[i].head
	from, to = i, i+1
	for from > 0 && list[from-1].head == head {
		from--
	}
	for to < len(list) && list[to].head == head {
		to++
	}
	return from, to
}

// turnUsers returns the bounds [from, to) of the user messages of the newest
// turn, an empty range when it has none.
func turnUsers(list []*entry) (from, to int) {
	if len(list) == 0 {
		return 0, 0
	}
	turn := list[len(list)-1].turn
	from = sort.Search(len(list), func(i int) bool { return list[i].turn >= turn })
	to = from
	for to < len(list) && list[to].msg.Role == RoleUser {
		to++
	}
	return from, to
}

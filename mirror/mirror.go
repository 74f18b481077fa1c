// Package mirror keeps a [convo.History] for a list of messages that a framework owns.
//
// A framework has its own type of message and passes its whole list at each step. A [Codec]
// translates its messages. [Mirror.Prepare] appends what is new in the list to the History,
// compacts if needed, and returns the framework's own values, as many as fit; a new value
// stands for each message that a compaction has changed, and for the summary. The list of
// the framework does not change.
//
//	m := mirror.New(h, codec)
//	view, _, err := m.Prepare(ctx, list) // before each request
//
// After a restart, [Resume] continues from the list and from what [Mirror.Decisions] returned.
// The modules in the directory adapters have this ready for several frameworks.
package mirror

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"

	"github.com/seed-c1b73e60/convo"
)

// A Codec translates between the messages of a framework, which are of type M, and those
// of convo. Decode and Encode are required.
//
// Its functions run while the Mirror is locked, and must not call it. A panic in one
// becomes a [*convo.PanicError].
type Codec[M any] struct {
	// Decode returns what m says to the model. Most often that is one message; two, if m
	// holds what convo keeps in two roles, such as results and text; none, if the model
	// does not see m. A message that depends on more than what convo has a field for need
	// not be decoded in full, since View returns m itself as long as nothing in it was
	// changed.
	Decode func(m M) ([]convo.Message, error)

	// Encode returns a value that says what msg does. was is the value that msg was decoded
	// from, for an entry in which something was cleared, cut or rewritten: what is in
	// *was and not in msg, such as options for a provider, belongs in the new value.
	// Encode must not change what was points to. It is nil for a message that the framework
	// has not given: the summary, an ephemeral message, or one that the History made.
	Encode func(msg convo.Message, was *M) (M, error)

	// Key returns the name that the framework gave to m, which is the same at each step and
	// differs from that of every other message. It becomes the Key of the entry. Nil: a
	// message is known by its place in the list.
	Key func(m M) string

	// Once reports whether m is for one request only, such as a line that the framework
	// writes because the list must not end with an answer. Such a message is not appended.
	// Those at the end of the list are at the end of the view; they are not counted. Nil:
	// no message is.
	Once func(m M) bool

	// Seals reports whether a model refuses signed reasoning that is not where it
	// was made. View then leaves such reasoning out; see [convo.Snapshot.Bound]. It gets the
	// name given to SetModel. Nil: no model does, and reasoning stays where it is.
	Seals func(model string) bool
}

// A Mirror keeps a History in step with the list of messages of a framework, and gives
// the framework its own values back. It is safe for concurrent use. Each History, and so
// each agent of a session, has a Mirror of its own; several may read one list.
type Mirror[M any] struct {
	h     *convo.History
	codec Codec[M]

	mu      sync.Mutex
	filled  bool // the History had entries before the first Sync
	seed    maphash.Seed
	system  []*row[M]            // the system messages in front of the list
	rows    []*row[M]            // what came after them, in order
	loose   []*row[M]            // what the list need not hold: messages of Add, and of the History itself
	at      map[convo.ID]*row[M] // rows and loose, by their entries
	tail    []M                  // what stands at the end of the list for one request
	waiting []*item[M]           // given to Add, and not appended yet
}

// A row is what a Mirror knows of one value of the framework.
type row[M any] struct {
	key   string
	first convo.ID // its entries are first, first+1 and so on; 0: it has none in the History
	sums  []uint64 // of each message that it was decoded to
	value M
	held  bool // value is set
	left  bool // its entries have left the view
	place int  // in the newest list, after the system messages; -1: it is not there
}

func (r *row[M]) last() convo.ID { return r.first + convo.ID(len(r.sums)) - 1 }

// New returns a Mirror that fills h. The History may hold entries already, such as one
// that was loaded, if the codec has keys and the entries have those of the framework's
// messages.
func New[M any](h *convo.History, codec Codec[M]) *Mirror[M] {
	m := empty(h, codec)
	s := h.Snapshot()
	m.filled = s.Len() > m.front(s)
	return m
}

func empty[M any](h *convo.History, codec Codec[M]) *Mirror[M] {
	return &Mirror[M]{h: h, codec: codec, seed: maphash.MakeSeed(), at: map[convo.ID]*row[M]{}}
}

// History returns the History that m fills.
func (m *Mirror[M]) History() *convo.History { return m.h }

// A PastError says that a list does not begin with what Sync has seen of it before. Sync
// has changed nothing.
//
// If the framework took something back, as in an edited or repeated turn, let the History
// do the same and call Sync again:
//
//	var past *mirror.PastError
//	if err = m.Sync(list); errors.As(err, &past) {
//		if err = h.RewindTo(past.Last); err == nil {
//			err = m.Sync(list)
//		}
//	}
type PastError struct {
	Index  int      // in the list, of the first message that differs; its length, if the list is too short
	Key    string   // of that message, or of the one that is missing; empty without keys
	Last   convo.ID // the newest entry before it, 0 if there is none
	Reason string   // what differs, in words
}

// Error says where the list differs, and how.
func (e *PastError) Error() string {
	name := ""
	if e.Key != "" {
		name = fmt.Sprintf(" (key %q)", e.Key)
	}
	return fmt.Sprintf("mirror: message %d%s %s, but the list may only grow; RewindTo(%d) takes back what followed, then call Sync again", e.Index, name, e.Reason, e.Last)
}

// Prepare is Sync, Prepare of the History, and View: it returns the messages to send, and
// the snapshot that they show, for RecordUsage and Recover.
func (m *Mirror[M]) Prepare(ctx context.Context, list []M) ([]M, *convo.Snapshot, error) {
	if err := m.Sync(list); err != nil {
		return nil, nil, err
	}
	s, _, err := m.h.Prepare(ctx)
	if err != nil {
		return nil, s, err
	}
	view, err := m.View(s)
	return view, s, err
}

// Send is Prepare and a call of send with the messages and the snapshot that they show. If
// send fails and History.Recover makes the conversation smaller, it is called again, at
// most twice; otherwise the error is that of Recover, which is that of send unless a request
// was too long. send records the usage itself, by RecordUsage.
func Send[M, A any](ctx context.Context, m *Mirror[M], list []M, send func(view []M, s *convo.Snapshot) (A, error)) (answer A, err error) {
	view, s, err := m.Prepare(ctx, list)
	for n := 0; err == nil; n++ {
		if answer, err = send(view, s); err == nil || n == 2 {
			return answer, err
		}
		if _, _, err = m.h.Recover(ctx, s, err); err == nil {
			s = m.h.Snapshot()
			view, err = m.View(s)
		}
	}
	return answer, err
}

// Add appends messages that are not in the framework's list, such as what the user has
// typed while a run is under way. They are in every view from then on. Where a message may
// not stand yet, since a call is open or the RolePolicy forbids it, it waits for the
// next Sync. The list may hold them later: a message with the same key is not appended
// again; without keys, one with the same content, unless an answer that ended a turn stands
// between the two.
func (m *Mirror[M]) Add(msgs ...M) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer catch(&err)
	var items []*item[M]
	for _, v := range msgs {
		it, err := m.decode(v)
		if err != nil {
			return err
		}
		items = append(items, it)
	}
	m.waiting = append(m.waiting, items...)
	return m.deliver()
}

// Sync takes over a list: the system messages in front of it by SetSystem, if it has any
// or had some before, and after them what is new since the last Sync, by Append. All new
// messages are appended, or none; if Sync fails after a user message that interrupts calls,
// it takes back what it has appended by Rollback. It keeps no reference to the list itself.
//
// What Sync has seen before must be in the list still, with the same content, also what
// has left the view since; otherwise the error is a [*PastError]. Entries that the History
// has taken back, as by RewindTo, are forgotten: the list need not hold them, and
// if it does, they are appended again. A key that two messages have is a
// [*convo.RowError]. Other errors are those of Decode, SetSystem and Append. Sync takes
// time linear in the list.
func (m *Mirror[M]) Sync(list []M) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer catch(&err)
	items, tail, err := m.read(list)
	if err != nil {
		return err
	}
	if err := m.meet(); err != nil {
		return err
	}
	front := frontOf(items)
	fresh, err := m.compare(items[front:])
	if err != nil {
		return err
	}
	if front > 0 || len(m.system) > 0 {
		if err := m.setSystem(items[:front]); err != nil {
			return err
		}
	}
	if err := m.append(fresh); err != nil {
		return err
	}
	for _, it := range fresh {
		if i := slices.IndexFunc(m.waiting, func(w *item[M]) bool { return w.same(it) }); i >= 0 {
			m.waiting = slices.Delete(m.waiting, i, i+1)
		}
	}
	m.tail = tail
	if err := m.deliver(); err != nil {
		return err
	}
	m.letGo(m.h.Snapshot())
	return nil
}

// An item is a message of a list that was read. A row does not refer to its item, whose
// messages are not kept.
type item[M any] struct {
	*row[M]
	index int // in the list
	msgs  []convo.Message
}

func (i *item[M]) isSystem() bool {
	return len(i.msgs) == 1 && i.msgs[0].Role == convo.RoleSystem
}

// endsTurn reports whether i is an answer without calls.
func (i *item[M]) endsTurn() bool {
	if len(i.msgs) == 0 {
		return false
	}
	last := i.msgs[len(i.msgs)-1]
	return last.Role == convo.RoleAssistant && len(last.ToolCalls()) == 0
}

// frontOf returns how many system messages items begin with.
func frontOf[M any](items []*item[M]) int {
	n := 0
	for n < len(items) && items[n].isSystem() {
		n++
	}
	return n
}

// read decodes a list, and returns the messages at its end that are for one request.
func (m *Mirror[M]) read(list []M) (items []*item[M], tail []M, err error) {
	isTaken := make(map[string]bool) // keys
	for i, v := range list {
		once, err := m.once(v)
		if once {
			tail = append(tail, v)
			continue
		}
		var it *item[M]
		if err == nil {
			it, err = m.decode(v)
		}
		if err == nil && isTaken[it.key] {
			err = &convo.RowError{Key: it.key, Fault: convo.RowTwice}
		}
		if err != nil {
			return nil, nil, fmt.Errorf("mirror: message %d: %w", i, err)
		}
		if it.key != "" && !it.isSystem() {
			isTaken[it.key] = true
		}
		it.index, tail = i, nil
		items = append(items, it)
	}
	return items, tail, nil
}

func (m *Mirror[M]) once(v M) (is bool, err error) {
	defer catch(&err)
	return m.codec.Once != nil && m.codec.Once(v), nil
}

func (m *Mirror[M]) decode(v M) (it *item[M], err error) {
	defer catch(&err)
	msgs, err := m.codec.Decode(v)
	if err != nil {
		return nil, err
	}
	it = &item[M]{row: &row[M]{value: v, held: true, place: -1}, msgs: msgs}
	if m.codec.Key != nil {
		it.key = m.codec.Key(v)
	}
	for i := range msgs {
		msgs[i].Key = ""
		it.sums = append(it.sums, m.sum(&msgs[i]))
	}
	return it, nil
}

// name gives the messages of an item their keys, which Resume finds them by: those of the
// codec, or the place of the item among the rows. An item of Add has none, since the list
// may hold it at another place later.
func (m *Mirror[M]) name(it *item[M], place int) {
	key := it.key
	if m.codec.Key == nil {
		key = strconv.Itoa(place)
	}
	for i := range it.msgs {
		if key != "" && it.msgs[i].Role != convo.RoleSystem {
			it.msgs[i].Key = keyOf(key, i)
		}
	}
}

// keyOf returns the key of one of the messages that a value with a key was decoded to.
func keyOf(key string, i int) string {
	if i == 0 {
		return key
	}
	return fmt.Sprintf("%s/%d", key, i)
}

// meet forgets what the History has taken back, and takes note of entries that did not
// come from a list. What was in the view last time and is newer than all that is in it now
// was taken back: a compaction never drops the newest entry.
func (m *Mirror[M]) meet() error {
	s := m.h.Snapshot()
	newest := m.newest(s)
	for _, rows := range []*[]*row[M]{&m.rows, &m.loose} {
		n := slices.IndexFunc(*rows, func(r *row[M]) bool { return r.first > 0 && r.last() > newest && !r.left })
		if n < 0 {
			continue
		}
		if r := (*rows)[n]; r.first <= newest { // only a part of the value was taken back
			if err := m.h.RewindBefore(r.first); err != nil {
				return err
			}
			return m.meet()
		}
		m.forget(rows, n)
	}
	for i := m.front(s); i < s.Len(); i++ {
		e, _ := s.At(i)
		if m.at[e.ID] != nil {
			continue
		}
		r := &row[M]{key: e.Message.Key, first: e.ID, sums: []uint64{m.sum(&e.Message)}, place: -1}
		m.loose = append(m.loose, r)
		m.at[e.ID] = r
	}
	return nil
}

// forget cuts off all rows but the first n.
func (m *Mirror[M]) forget(rows *[]*row[M], n int) {
	for _, r := range (*rows)[n:] {
		for i := range r.sums {
			delete(m.at, r.first+convo.ID(i))
		}
	}
	clear((*rows)[n:])
	*rows = (*rows)[:n]
}

// newest returns the newest entry of s that is no system entry, or 0.
func (m *Mirror[M]) newest(s *convo.Snapshot) convo.ID {
	if e, ok := s.At(s.Len() - 1); ok && s.Len() > m.front(s) {
		return e.ID
	}
	return 0
}

// front returns how many system entries s begins with.
func (m *Mirror[M]) front(s *convo.Snapshot) int {
	for i, e := range s.All() {
		if e.Message.Role != convo.RoleSystem || m.at[e.ID] != nil {
			return i
		}
	}
	return s.Len()
}

// compare returns the items that are new. It gives the rows of all others their values.
func (m *Mirror[M]) compare(items []*item[M]) (fresh []*item[M], err error) {
	if m.filled {
		if err := m.adopt(items); err != nil {
			return nil, err
		}
	}
	next, last, newest := 0, convo.ID(0), m.newest(m.h.Snapshot())
	type match struct {
		r  *row[M]
		it *item[M]
	}
	rows := m.rows
	var known []match
	used := map[*row[M]]bool{}
	answered := convo.ID(0) // entries up to this one stand before an answer that ended a turn
	for place, it := range items {
		it.place = place
		if next < len(rows) && rows[next].same(it) {
			r := rows[next]
			known = append(known, match{r, it})
			next++
			if r.first > 0 {
				last = max(last, r.last())
			}
			if it.endsTurn() {
				answered = last
			}
			continue
		}
		// Without a key, what is said again after an answer that ended a turn is another message.
		again := func(r *row[M]) bool {
			return !used[r] && r.same(it) && (r.first > answered || r.key != "" || r.place >= 0)
		}
		if i := slices.IndexFunc(m.loose, again); i >= 0 {
			known = append(known, match{m.loose[i], it})
			used[m.loose[i]] = true
			if it.endsTurn() {
				answered = max(answered, m.loose[i].last())
			}
			continue
		}
		if it.endsTurn() {
			answered = newest
		}
		if next < len(rows) && newest > last {
			reason := "is a different message than before"
			if it.key != "" && it.key == rows[next].key {
				reason = "has different content than before"
			}
			return nil, &PastError{Index: it.index, Key: it.key, Last: last, Reason: reason}
		}
		rows = rows[:next] // nothing of the others is in the view
		fresh = append(fresh, it)
	}
	if next < len(rows) && newest > last {
		at := 0
		if len(items) > 0 {
			at = items[len(items)-1].index + 1
		}
		return nil, &PastError{Index: at, Key: rows[next].key, Last: last, Reason: "is missing"}
	}
	m.forget(&m.rows, next)
	for _, r := range m.loose {
		r.place = -1
	}
	for _, k := range known {
		k.r.value, k.r.held, k.r.place = k.it.value, true, k.it.place
	}
	return fresh, nil
}

// same reports whether it is the value that r stands for.
func (r *row[M]) same(it *item[M]) bool {
	return r.key == it.key && slices.Equal(r.sums, it.sums)
}

// adopt finds the entries of a History that was filled before in the first list, by their
// keys. What stands before the last of them has left the view.
func (m *Mirror[M]) adopt(items []*item[M]) error {
	byKey := map[string]*row[M]{}
	for _, r := range m.loose {
		if r.key != "" {
			byKey[r.key] = r
		}
	}
	n := len(items)
	for n > 0 && (items[n-1].key == "" || byKey[items[n-1].key] == nil) {
		n--
	}
	if n == 0 && len(items) > 0 {
		return &PastError{Index: items[0].index, Key: items[0].key, Reason: "begins a list that has no entry of the History, which is not empty and is found again by the keys of its entries; Resume of this package needs none"}
	}
	taken := map[*row[M]]bool{}
	for _, it := range items[:n] {
		r := it.row
		for i := range it.msgs {
			if old := byKey[keyOf(it.key, i)]; it.key != "" && old != nil {
				r.first = old.first - convo.ID(i)
				m.at[old.first] = r
				taken[old] = true
			}
		}
		m.rows = append(m.rows, r)
	}
	m.loose = slices.DeleteFunc(m.loose, func(r *row[M]) bool { return taken[r] })
	m.filled = m.filled && n == 0
	return nil
}

// setSystem hands the system messages in front of a list to the History.
func (m *Mirror[M]) setSystem(items []*item[M]) error {
	var msgs []convo.Message
	var rows []*row[M]
	for _, it := range items {
		msgs = append(msgs, it.msgs[0])
		rows = append(rows, it.row)
	}
	if err := m.h.SetSystem(msgs...); err != nil {
		return err
	}
	m.system = rows
	return nil
}

// append appends what is new, all of it or nothing.
func (m *Mirror[M]) append(fresh []*item[M]) error {
	before, rows := m.h.Snapshot(), len(m.rows)
	msgs := 0
	for batch := range turns(fresh) {
		n, err := m.appendBatch(batch)
		if err == nil {
			msgs += n
			continue
		}
		if len(m.rows) > rows {
			if undo := m.h.Rollback(before); undo != nil {
				return errors.Join(atIndex(err, msgs), undo)
			}
			m.rows = m.rows[:rows]
			maps.DeleteFunc(m.at, func(_ convo.ID, r *row[M]) bool {
				return slices.ContainsFunc(fresh, func(it *item[M]) bool { return it.row == r })
			})
		}
		return atIndex(err, msgs)
	}
	return nil
}

// turns divides items before each user message that follows a call without a result.
// A RolePolicy that lets a user message interrupt calls does so for the first message of an
// Append.
func turns[M any](items []*item[M]) iter.Seq[[]*item[M]] {
	return func(yield func([]*item[M]) bool) {
		start, open := 0, 0
		for i, it := range items {
			for j, msg := range it.msgs {
				if j == 0 && msg.Role == convo.RoleUser && open > 0 {
					if !yield(items[start:i]) {
						return
					}
					start, open = i, 0
				}
				open += len(msg.ToolCalls()) - len(msg.ToolResults())
			}
		}
		yield(items[start:])
	}
}

// atIndex adds n to the index of the message that err is about.
func atIndex(err error, n int) error {
	switch err := err.(type) {
	case *convo.MessageError:
		err.Index += n
	case *convo.RoleError:
		err.Index += n
	case *convo.PairError:
		err.Index += n
	}
	return err
}

// appendBatch appends items with one Append, and returns the number of their messages.
func (m *Mirror[M]) appendBatch(fresh []*item[M]) (int, error) {
	var msgs []convo.Message
	for i, it := range fresh {
		m.name(it, len(m.rows)+i)
		msgs = append(msgs, it.msgs...)
	}
	last, err := m.h.AppendRows(msgs...)
	if err != nil {
		return 0, err
	}
	next := last - convo.ID(len(msgs)) + 1
	for _, it := range fresh {
		r := it.row
		if len(it.msgs) > 0 {
			r.first = next
		}
		for range it.msgs {
			m.at[next] = r
			next++
		}
		m.rows = append(m.rows, r)
	}
	return len(msgs), nil
}

// deliver appends messages of Add as far as they may stand.
func (m *Mirror[M]) deliver() error {
	for len(m.waiting) > 0 {
		if m.h.Status().OpenCalls > 0 {
			return nil
		}
		it := m.waiting[0]
		last, err := m.h.Append(it.msgs...)
		if errors.As(err, new(*convo.RoleError)) {
			return nil
		}
		if err != nil {
			return err
		}
		r := it.row
		if len(it.msgs) > 0 {
			r.first = last - convo.ID(len(it.msgs)) + 1
		}
		for i := range it.msgs {
			m.at[r.first+convo.ID(i)] = r
		}
		m.loose = append(m.loose, r)
		m.waiting[0] = nil
		m.waiting = m.waiting[1:]
	}
	m.waiting = nil
	return nil
}

// letGo forgets the values whose entries are not in s.
func (m *Mirror[M]) letGo(s *convo.Snapshot) {
	var zero M
	for _, rows := range [][]*row[M]{m.rows, m.loose} {
		for _, r := range rows {
			if r.left = r.first == 0 || !r.isIn(s); r.left {
				r.value, r.held = zero, false
			}
		}
	}
}

func (r *row[M]) isIn(s *convo.Snapshot) bool {
	for i := range r.sums {
		if _, ok := s.Find(r.first + convo.ID(i)); ok {
			return true
		}
	}
	return false
}

// catch makes an error of a panic in the codec.
func catch(err *error) {
	if v := recover(); v != nil {
		*err = &convo.PanicError{In: "mirror.Codec", Value: v, Stack: string(debug.Stack())}
	}
}

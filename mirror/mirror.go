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
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
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
	// does not see m. Each result becomes an entry of its own. A message that depends on more
	// than what convo has a field for need not be decoded in full, since View returns m itself
	// as long as nothing in it was changed.
	Decode func(m M) ([]convo.Message, error)

	// Encode returns a value that says what msg does. was is the value that msg was decoded
	// from, for an entry in which something was cleared, cut or rewritten: what is in
	// *was and not in msg, such as options for a provider, belongs in the new value.
	// Encode must not change what was points to. It is nil for a message that the framework
	// has not given: the summary, an ephemeral message, or a message that the History made.
	Encode func(msg convo.Message, was *M) (M, error)

	// Key returns the name that the framework gave to m, which is the same at each step and
	// differs from that of every other message. It becomes the Key of the entry, with each
	// "#" doubled; the further messages of a value get "#" and a number behind it. Where it is
	// empty, the entry gets "#" and a number as its key, and the message is known by its place
	// among the others. Nil: all are.
	Key func(m M) string

	// Same reports whether now says, byte for byte, what was says, as Decode reads it, so that it
	// need not be decoded. It is called with a value and the value that had the same index in the
	// newest list. Leave it nil if a message may be changed in place: was is the value that Sync
	// got, not a copy, and a change of what it points to would not be noticed. With Same, the
	// Mirror keeps all values of the newest list, also those whose messages have left the view.
	// Nil: each Sync decodes the whole list.
	Same func(was, now M) bool

	// Once reports whether m is for one request only, such as a line that the framework
	// writes because the list must not end with an answer. Such a message is not appended.
	// Those at the end of the list are at the end of the view; they are not counted. Nil:
	// no message is.
	Once func(m M) bool

	// Seals reports whether a model refuses signed reasoning that is not where it
	// was made. View then leaves such reasoning out; see [convo.Snapshot.Unbound]. It gets the
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
	named   int                   // how many keys of its own the Mirror has given
	met     *convo.Snapshot       // that view shows; nil: none yet
	given   []given[M]            // the newest list, if the codec has Same
	system  []*unit[M]            // the system messages in front of the list
	list    []*unit[M]            // what came after them, in order
	seen    []uint64              // what the model reads of each message of the newest list
	loose   []*unit[M]            // what the list does not hold: messages of Add, and of the History itself
	rest    int                   // how many units of list were compacted or are in the view, up to the last that is there or covered
	view    []*unit[M]            // what is in the view, in order; see meet
	ids     []convo.ID            // of the entries of view; an Undo may bring back another entry of a unit
	byKey   map[string]*unit[M]   // of the units that have an entry with a key
	byID    map[convo.ID]*unit[M] // of the others
	tail    []M                   // what stands at the end of the list for one request
	waiting []*row[M]             // given to Add, and not appended yet
	added   uint64                // how often Add was called
}

// New returns a Mirror that fills h. The History may hold entries already, as a loaded
// History does, if the codec has keys and some entries have those of the framework's messages.
// What the first list holds before these, and the view does not show, was compacted.
func New[M any](h *convo.History, codec Codec[M]) *Mirror[M] {
	if h == nil {
		h = new(convo.History) // whose methods return ErrClosed
	}
	m := empty(h, codec)
	s := h.Snapshot()
	m.filled = s.Len() > m.front(s)
	last := convo.ID(0)
	for _, e := range s.All() { // keys that an earlier Mirror has given are not given again
		if n, err := strconv.Atoi(strings.TrimPrefix(e.Message.Key, "#")); err == nil && isOwnKey(e.Message.Key) {
			m.named = max(m.named, n)
		}
		last = max(last, e.ID)
	}
	for s.TakenBack(last + 1) {
		last++
	}
	m.named = max(m.named, int(last))
	return m
}

func empty[M any](h *convo.History, codec Codec[M]) *Mirror[M] {
	return &Mirror[M]{h: h, codec: codec, seed: maphash.MakeSeed(), byKey: map[string]*unit[M]{}, byID: map[convo.ID]*unit[M]{}}
}

// History returns the History that m fills.
func (m *Mirror[M]) History() *convo.History { return m.h }

// version returns what differs when Decisions needs to be stored again.
func (m *Mirror[M]) version() [2]uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return [2]uint64{m.h.Status().Decisions, m.added}
}

// A PastError says that a list does not begin with what Sync has seen of it before. Sync
// has changed nothing. [Mirror.Follow] goes back with the list instead.
type PastError struct {
	Index  int      // in the list, of the first message that differs; its length, if the list is too short
	Key    string   // of that message, or of the missing one; empty without keys
	Last   convo.ID // the newest entry before it, 0 if there is none
	Reason string   // what differs, in words

	isAlone bool // Follow can't go back either
}

// Error says where the list differs, and how.
func (e *PastError) Error() string {
	name := ""
	if e.Key != "" {
		name = fmt.Sprintf(" (key %q)", e.Key)
	}
	if e.isAlone {
		return fmt.Sprintf("mirror: message %d%s %s, and nothing before it is as it was; make a Mirror of a new History, or call ReplaceRows(0) of this one", e.Index, name, e.Reason)
	}
	return fmt.Sprintf("mirror: message %d%s %s, but the list may only grow; Follow goes back with the list", e.Index, name, e.Reason)
}

// past returns a PastError about an item or a known unit.
func (m *Mirror[M]) past(index int, u *unit[M], last convo.ID, reason string) *PastError {
	return &PastError{Index: index, Key: strings.ReplaceAll(u.host, "##", "#"), Last: last, Reason: reason}
}

// Followed is what Follow and Resume have done to go back with a list.
type Followed struct {
	Past    *PastError // what differs; nil: nothing did
	Entries int        // how many entries of the view were taken back
	Anew    bool       // the conversation has begun anew; see Follow
}

// String says in words what was done.
func (f Followed) String() string {
	switch {
	case f.Past == nil:
		return "nothing was taken back"
	case f.Anew:
		return fmt.Sprintf("began anew with the list: message %d %s", f.Past.Index, f.Past.Reason)
	}
	return fmt.Sprintf("took back %d entries: message %d %s", f.Entries, f.Past.Index, f.Past.Reason)
}

// Prepare is Sync, Prepare of the History, and View: it returns the messages to send, and
// the snapshot that they show, for RecordUsage and Recover. If a message for one request only
// would follow a call without a result, the error is a [*convo.PairError].
func (m *Mirror[M]) Prepare(ctx context.Context, list []M) ([]M, *convo.Snapshot, error) {
	if err := m.Sync(list); err != nil {
		return nil, nil, err
	}
	s, _, err := m.h.Prepare(ctx)
	if err != nil {
		return nil, s, err
	}
	view, err := m.View(s)
	if err == nil {
		err = m.checkOpen(s, len(view))
	}
	return view, s, err
}

// checkOpen returns an error if a message follows a call without a result in the view.
func (m *Mirror[M]) checkOpen(s *convo.Snapshot, n int) error {
	open := s.OpenCalls()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(open) == 0 || len(m.tail) == 0 {
		return nil
	}
	return &convo.PairError{Err: convo.ErrOpenCalls, CallID: open[0].ID, Name: open[0].Name, Index: n - len(m.tail)}
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
// not stand yet, since a call is open or the RolePolicy forbids it, it waits for a Sync after
// which it may; the result of an open call does not. The list may hold them later: a message
// with the same key is not appended again; without keys, one with the same content, unless an
// answer that ended a turn stands between the two. Until then, they stand behind what the
// list held when they came.
//
// All messages are taken or none, and each is checked as by Append. Other errors are those of
// Decode; a key that another message has is a [*convo.RowError].
func (m *Mirror[M]) Add(msgs ...M) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer catch(&err)
	m.meet(m.h.Snapshot())
	var rows []*row[M]
	for _, v := range msgs {
		key, err := m.key(v)
		if err != nil {
			return err
		}
		r, err := m.decode(v, key)
		if err != nil {
			return err
		}
		for _, u := range r.units {
			if _, err := m.h.Count(u.message()); err != nil {
				return err
			}
			if u.host != "" && m.isTaken(u.host, rows) {
				return &convo.RowError{Key: key, Fault: "twice"}
			}
			u.isOwn, u.at = true, -1 // meet finds out which call it answers
			own := u.message()
			own.Parts = slices.Clone(own.Parts)
			u.msg = &own
		}
		rows = append(rows, r)
	}
	m.waiting = append(m.waiting, rows...)
	m.added++
	before := len(m.loose)
	if err := m.deliver(); err != nil {
		isNew := func(r *row[M]) bool { return slices.Contains(rows, r) }
		m.waiting = slices.DeleteFunc(m.waiting, isNew)
		if i := slices.IndexFunc(m.loose, func(u *unit[M]) bool { return isNew(u.row) }); i >= 0 {
			err = errors.Join(err, m.h.RewindBefore(m.loose[i].id))
		}
		return err
	}
	for _, u := range m.loose[before:] {
		u.rest = m.rest
	}
	return nil
}

// checkWaiting returns the error for the first message that waits and that can never be appended,
// such as after a restart with other options, and drops it.
func (m *Mirror[M]) checkWaiting() error {
	for i, r := range m.waiting {
		for _, u := range r.units {
			if _, err := m.h.Count(u.message()); err != nil {
				m.waiting = slices.Delete(m.waiting, i, i+1)
				return err
			}
		}
	}
	return nil
}

// isTaken reports whether a message has the key, or one of rows, or one of those that wait.
func (m *Mirror[M]) isTaken(host string, rows []*row[M]) bool {
	has := func(u *unit[M]) bool { return u.host == host }
	return slices.ContainsFunc(m.list, has) || slices.ContainsFunc(m.loose, has) ||
		slices.ContainsFunc(slices.Concat(m.waiting, rows), func(r *row[M]) bool { return slices.ContainsFunc(r.units, has) })
}

// deliver appends what waits, as far as it may stand. What is refused for another reason is
// dropped.
func (m *Mirror[M]) deliver() error {
	for len(m.waiting) > 0 {
		next := 0
		if m.h.Status().OpenCalls > 0 {
			next = slices.IndexFunc(m.waiting, func(r *row[M]) bool { return len(r.units) > 0 && r.units[0].role == convo.RoleTool })
			if next < 0 {
				return nil
			}
		}
		r := m.waiting[next]
		var msgs []convo.Message
		for _, u := range r.units {
			m.name(u)
			msgs = append(msgs, u.message())
		}
		last, err := m.h.Append(msgs...)
		if errors.As(err, new(*convo.RoleError)) {
			return nil
		}
		m.waiting = slices.Delete(m.waiting, next, next+1)
		if err != nil {
			return err
		}
		for i, u := range r.units {
			u.id, u.stand, u.behind = last-convo.ID(len(msgs)-1-i), inView, len(m.seen)
			m.loose = append(m.loose, u)
			m.register(u)
		}
	}
	m.waiting = nil
	return nil
}

// Sync takes over a list: the system messages in front of it by SetSystem, if it has any
// or had some before, and after them what is new since the last Sync, by AppendRows. All of
// it is taken, or nothing. It keeps no reference to the list itself.
//
// The view then has the order of the list. What the list holds and no compaction has removed
// is in it: entries that the History has taken back, as by RewindTo, are appended again. What
// came by Add stands behind what the list held at that time; if something of the list has to
// be put before it, it is appended anew, with another ID.
//
// What Sync has seen before must be in the list still, also what has left the view since;
// otherwise the error is a [*PastError]. What the model reads must be the same, see
// [convo.Message.Sum]: where a value says the same in other words, the view keeps the one
// that was sent, and a message with several results is the same as several messages. A key
// that two messages have is a [*convo.RowError]. Other errors are those of Decode, SetSystem
// and AppendRows. Sync takes time linear in the list, and decodes all of it unless the codec
// has Same.
//
// A result that comes after another message, such as what the user typed while a tool ran,
// is put to the other results of its calls.
func (m *Mirror[M]) Sync(list []M) error {
	_, err := m.sync(list, false)
	return err
}

// Follow is Sync for a list that may have changed, for example because it was read again from
// a database, or because a question was edited. Where Sync returns a PastError, Follow takes
// back what followed the last message that is the same, and goes on with the list. If the
// summary stands for what followed, or the RolePolicy forbids what would be left, the
// conversation begins anew in the same History, with the whole list: what Add gave stays, and
// so do pins, by their keys. The archive keeps what was taken back, and Options.Logger gets a
// warning.
//
// A list whose first message is another is still a [*PastError]. While a Do of the History
// waits for its answer, a list that has changed is an error that matches [convo.ErrStale].
// Then nothing has changed.
func (m *Mirror[M]) Follow(list []M) (Followed, error) { return m.sync(list, true) }

func (m *Mirror[M]) sync(list []M, follow bool) (done Followed, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer catch(&err)
	in, err := m.read(list)
	if err != nil {
		return done, err
	}
	s := m.h.Snapshot()
	m.meet(s)
	if len(m.view) == 0 {
		m.filled = false
	}
	defer m.letGo()
	p, err := m.compare(s, in, follow)
	if err != nil {
		return done, err
	}
	if err := m.checkWaiting(); err != nil {
		return done, err
	}
	for _, u := range in.system {
		if err := m.load(p, u); err != nil {
			return done, err
		}
	}
	was := m.systemOf(s)
	if len(in.system) > 0 || len(m.system) > 0 {
		if err := m.h.SetSystem(messagesOf(in.system)...); err != nil {
			return done, err
		}
	}
	err = m.commit(p)
	if errors.As(err, new(*convo.RoleError)) && p.from > 0 { // as where the view would begin with an answer
		if len(p.wrong) == 0 {
			p.keepOrder()
		} else {
			m.beginAnew(p)
		}
		err = m.commit(p)
	}
	if err != nil {
		if len(in.system) > 0 || len(m.system) > 0 {
			err = errors.Join(err, m.h.SetSystem(was...))
		}
		return done, err
	}
	m.system, m.tail = in.system, in.tail
	if p.past != nil {
		done = Followed{Past: p.past, Entries: len(m.view), Anew: p.from == 0}
		for _, id := range m.ids {
			if !done.Anew && (p.from < 0 || id < p.from) {
				done.Entries--
			}
		}
	}
	for i, it := range p.items[p.shared:] { // what is new in the list need not wait any more
		if p.list[p.shared+i] == it {
			if at := slices.IndexFunc(m.waiting, func(r *row[M]) bool { return len(r.units) > 0 && r.units[0].same(it) }); at >= 0 {
				m.waiting = slices.Delete(m.waiting, at, at+1)
			}
		}
	}
	waited := len(m.waiting)
	if err = m.deliver(); len(p.append) > 0 || p.from >= 0 || len(m.waiting) < waited {
		m.meet(m.h.Snapshot())
	}
	m.warn(done)
	return done, err
}

// warn tells the logger of the History what was taken back.
func (m *Mirror[M]) warn(done Followed) {
	if done.Past != nil {
		m.h.Logger().Warn("mirror: " + done.String())
	}
}

func messagesOf[M any](units []*unit[M]) (msgs []convo.Message) {
	for _, u := range units {
		msgs = append(msgs, u.message())
	}
	return msgs
}

// systemOf returns the system messages in front of s.
func (m *Mirror[M]) systemOf(s *convo.Snapshot) (msgs []convo.Message) {
	for i := range m.front(s) {
		e, _ := s.At(i)
		msgs = append(msgs, e.Message)
	}
	return msgs
}

// letGo forgets the values whose entries are not in view, and the messages that the list has.
func (m *Mirror[M]) letGo() {
	show := func(is bool) {
		for _, u := range m.view {
			if u.row != nil {
				u.row.shown = is
			}
		}
	}
	show(true)
	var zero M
	for _, units := range [][]*unit[M]{m.list, m.loose} {
		for _, u := range units {
			if u.row != nil && !u.row.shown {
				u.row.value, u.row.held = zero, false
			}
			if u.listed {
				u.msg = nil
			}
		}
	}
	show(false)
	for _, u := range m.system {
		if m.codec.Same == nil {
			u.msg = nil
		}
	}
}

// catch makes an error of a panic in the codec.
func catch(err *error) { caught(err, "mirror.Codec", recover()) }

// catchIn makes an error of a panic in other code of the caller.
func catchIn(err *error, in string) { caught(err, in, recover()) }

func caught(err *error, in string, v any) {
	if v != nil {
		*err = &convo.PanicError{In: in, Value: v, Stack: string(debug.Stack())}
	}
}

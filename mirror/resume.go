package mirror

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-c1b73e60/convo"
)

// A saved is what Decisions returns.
type saved struct {
	Version   int               `json:"version"`
	Named     int               `json:"named,omitempty"` // the last key of the Mirror's own
	List      []run             `json:"list,omitempty"`
	Gone      []uint64          `json:"gone,omitempty"` // what is read of units behind these that were taken back
	Loose     []loose           `json:"loose,omitempty"`
	Waiting   [][]convo.Message `json:"waiting,omitempty"` // what Add could not append yet
	Decisions json.RawMessage   `json:"decisions"`         // of the History
}

// A run is a part of the list whose entries have consecutive IDs and keys.
type run struct {
	N     int      `json:"n"`
	ID    convo.ID `json:"id,omitempty"`  // of the first; 0: they have none
	Own   int      `json:"own,omitempty"` // the number in its key; 0: the keys are those of the framework
	Key   string   `json:"key,omitempty"` // of the only entry, if it is neither
	Early bool     `json:"early,omitempty"`
	Gone  bool     `json:"gone,omitempty"` // they were taken back
	Sums  string   `json:"sums,omitempty"` // of those in view, sumLen characters for each
}

// A loose is a message of Add that the list does not hold.
type loose struct {
	ID      convo.ID      `json:"id"`
	Key     string        `json:"key"`
	Host    string        `json:"host,omitempty"`
	Part    bool          `json:"part,omitempty"`
	Behind  int           `json:"behind,omitempty"`
	Rest    int           `json:"rest,omitempty"`
	Read    uint64        `json:"read"`
	At      int           `json:"at,omitempty"`
	End     bool          `json:"end,omitempty"`
	Shown   bool          `json:"shown,omitempty"` // it is in the view
	Message convo.Message `json:"message"`
}

const (
	savedVersion = 2
	sumLen       = 8
)

// shortSum returns a part of what is read of a unit, and of the key that the list names it by.
func (u *unit[M]) shortSum() string {
	key := ""
	if !u.isPart {
		key = u.host
	}
	return fmt.Sprintf("%05x%03x", u.read()>>44, convo.User(key).Sum()>>52)
}

// hasSum reports whether a unit of the list may have had a shortSum. Where results are in other
// messages than before, their keys also differ.
func (u *unit[M]) hasSum(sum string) bool {
	own := u.shortSum()
	return own[:5] == sum[:5] && (own[5:] == sum[5:] || u.isPart || sum[5:] == noKey)
}

// noKey is what shortSum has of a unit without a key.
var noKey = fmt.Sprintf("%03x", convo.User("").Sum()>>52)

// Decisions returns what Resume needs besides the framework's list: what the History has
// decided, a few kilobytes, and which messages of the list it has. It needs to be stored
// when Status.Decisions of the History has changed, and after Add. The messages of Add are
// in it as convo has them, whatever else the framework has put on them.
//
// The History must not name messages itself, by Options.Key. Errors are those of
// History.Decisions.
func (m *Mirror[M]) Decisions() ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, err := m.h.Decisions()
	if err != nil {
		return nil, err
	}
	m.meet(m.h.Snapshot())
	out := saved{Version: savedVersion, Named: m.named, Decisions: d}
	list := m.list
	for len(list) > 0 && list[len(list)-1].stand == isNew {
		list = list[:len(list)-1]
	}
	for _, u := range list {
		own, key := 0, ""
		switch {
		case isOwnKey(u.key):
			_, _ = fmt.Sscanf(u.key, "#%d", &own)
		case u.key != u.host:
			key = u.key
		}
		n := len(out.List)
		continues := n > 0 && key == "" && out.List[n-1].Key == ""
		if continues {
			r := &out.List[n-1]
			next := func(first, n int) bool { return first == 0 && n == 0 || first > 0 && n == first+r.N }
			continues = next(int(r.ID), int(u.id)) && next(r.Own, own) && (r.Sums != "") == (u.stand == inView) && r.Early == u.early && r.Gone == (u.stand == isNew)
		}
		if !continues {
			out.List = append(out.List, run{ID: u.id, Own: own, Key: key, Early: u.early, Gone: u.stand == isNew})
			n++
		}
		r := &out.List[n-1]
		if r.N++; u.stand == inView {
			r.Sums += u.shortSum()
		}
	}
	out.Gone = m.seen[min(len(list), len(m.seen)):]
	for _, u := range m.loose {
		if u.key == "" {
			continue // the History has it whole
		}
		l := loose{ID: u.id, Key: u.key, Host: u.host, Part: u.isPart, Behind: min(u.behind, max(len(list), len(m.seen))), Rest: u.rest, Read: u.sum, At: u.at, End: u.isEnd, Shown: u.stand == inView, Message: u.message()}
		out.Loose = append(out.Loose, l)
	}
	for _, r := range m.waiting {
		msgs := messagesOf(r.units)
		for i := range msgs {
			msgs[i].Key = r.units[i].host
		}
		out.Waiting = append(out.Waiting, msgs)
	}
	return json.Marshal(out)
}

// Resume returns a Mirror and its History as they were when Decisions returned data. list is
// the framework's list, which may have grown since: what is new is appended by the next Sync.
// Tools, ephemeral messages and OnCompaction are the program's to set again, as with
// [convo.Resume]; the system messages of the list are set by Sync.
//
// If messages in view differ from what they were, as [convo.Message.Sum] tells, Resume goes
// back to the last unchanged one, as [Mirror.Follow] does, says what it did, and warns
// by Options.Logger. Look at it before Decisions are stored again: the old ones stay valid for
// the old list. A list that is shorter than the synced list, and otherwise the same,
// is a [*convo.ValueError], since a read that was cut off looks the same; [ResumeShorter]
// takes it. A list that has no message in view in common with the old one is a [*PastError].
//
// Other errors are those of Decode, [convo.ReadDecisions] and [convo.Resume]. With any error,
// the Mirror is nil, and a new History may begin with the whole list.
func Resume[M any](data []byte, list []M, codec Codec[M], opts *convo.Options) (*Mirror[M], Followed, error) {
	return resume(data, list, codec, opts, false)
}

// ResumeShorter is [Resume] for a list from which the newest messages may have been removed.
func ResumeShorter[M any](data []byte, list []M, codec Codec[M], opts *convo.Options) (*Mirror[M], Followed, error) {
	return resume(data, list, codec, opts, true)
}

func resume[M any](data []byte, list []M, codec Codec[M], opts *convo.Options, shorter bool) (m *Mirror[M], done Followed, err error) {
	defer func() {
		if err == nil {
			return
		}
		if m != nil && m.h != nil {
			err = errors.Join(err, m.h.Close())
		}
		m = nil
	}()
	defer catch(&err)
	var in saved
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, done, fmt.Errorf("mirror: not what Decisions has returned: %w", err)
	}
	if in.Version != savedVersion {
		return nil, done, fmt.Errorf("mirror: Decisions of version %d, want %d; use the release of convo that wrote it, or a later one: %w", in.Version, savedVersion, convo.ErrVersion)
	}
	d, err := convo.ReadDecisions(in.Decisions)
	if err != nil {
		return nil, done, err
	}
	m = empty[M](nil, codec)
	read, err := m.read(list)
	if err != nil {
		return nil, done, err
	}
	last, err := m.resumeList(&in, read.items, shorter, &done)
	if err != nil {
		return m, done, err
	}
	var rows []*unit[M] // that the view shows
	if last >= 0 {
		err = d.RewindTo(last)
		done.Anew = err != nil
	}
	if done.Anew {
		if err = m.resumeAnew(&in, opts); err == nil {
			m.warn(done)
		}
		return m, done, err
	}
	for _, u := range m.list {
		if u.stand == inView {
			rows = append(rows, u)
		}
	}
	m.resumeLoose(&in, last)
	for _, u := range m.loose {
		if u.stand == inView {
			rows = append(rows, u)
		}
	}
	slices.SortStableFunc(rows, func(a, b *unit[M]) int { return cmp.Compare(a.id, b.id) })
	_, from := d.Needs()
	m.h, err = convo.Resume(d, func(yield func(convo.Message, error) bool) {
		if len(rows) == 0 && from != "" && !yield(convo.Message{Key: from}, nil) {
			return // it has left the view, and nothing of the list is new
		}
		for _, u := range rows {
			msg := u.message()
			if msg.Key = u.key; !yield(msg, nil) {
				return
			}
		}
	}, opts)
	if err != nil {
		return m, done, err
	}
	m.meet(m.h.Snapshot())
	m.letGo()
	m.warn(done)
	return m, done, nil
}

// resumeList makes the units of the list. If one in view differs from what it was, it leaves
// out that and what follows, and returns the newest entry that stays; otherwise -1.
func (m *Mirror[M]) resumeList(in *saved, items []*unit[M], shorter bool, done *Followed) (last convo.ID, err error) {
	m.named = in.Named
	size, shown := 0, 0 // units of the list; units in view that are the same
	for _, r := range in.List {
		if r.N < 1 || r.ID < 0 || r.Own < 0 || r.Sums != "" && len(r.Sums) != r.N*sumLen || int64(r.N) > 1<<40 {
			return 0, &convo.ValueError{Name: "a run of the list in Decisions", Value: r.N, Want: "what Decisions has returned"}
		}
		size += r.N
	}
	for _, l := range in.Loose {
		if l.ID < 0 || l.Behind < 0 || l.Behind > size+len(in.Gone) || l.Rest < 0 || l.At < -1 {
			return 0, &convo.ValueError{Name: "the place of a message of Add in Decisions", Value: l.Behind, Want: "what Decisions has returned"}
		}
	}
	last = -1
	place := 0
runs:
	for _, r := range in.List {
		for i := range r.N {
			reason := ""
			switch {
			case place == len(items):
				reason = "is missing"
			case r.Sums != "" && !items[place].hasSum(r.Sums[i*sumLen:(i+1)*sumLen]):
				reason = "has different content than before"
			case r.Own == 0 && r.Key == "" && items[place].host == "":
				reason = "has no key"
			}
			if reason != "" {
				if place < len(items) || shorter {
					done.Past = &PastError{Index: len(items), Reason: reason}
					if place < len(items) {
						done.Past = m.past(items[place].row.index, items[place], 0, reason)
					}
				}
				break runs
			}
			u := items[place]
			if u.id, u.key = 0, u.host; r.ID > 0 {
				u.id = r.ID + convo.ID(i)
			}
			switch {
			case r.Own > 0:
				u.key = ownKey(r.Own + i)
			case r.Key != "":
				u.key = r.Key
			}
			u.stand, u.early, u.listed, u.place = hasLeft, r.Early, true, place
			if r.Gone {
				u.stand = isNew
			}
			if r.Sums != "" {
				u.stand = inView
				shown++
			}
			m.list = append(m.list, u)
			m.register(u)
			m.seen = append(m.seen, u.read())
			place++
		}
	}
	if place == size {
		m.seen = append(m.seen, in.Gone...)
		return -1, nil
	}
	if done.Past == nil {
		return 0, &convo.ValueError{Name: "the length of the list, without its system messages,", Value: len(items), Want: fmt.Sprintf("at least %d, as when it was synced; ResumeShorter takes a shorter one", size)}
	}
	if shown == 0 {
		done.Past.isAlone = true
		return 0, done.Past
	}
	for _, r := range in.List {
		if r.Sums != "" {
			done.Entries += r.N
		}
	}
	done.Entries -= shown
	for _, u := range m.list {
		if u.stand == inView {
			last = max(last, u.id)
		}
	}
	done.Past.Last = last
	return last, nil
}

// resumeLoose makes the units that the list does not hold. What stood behind the entry last
// waits again; -1: nothing did.
func (m *Mirror[M]) resumeLoose(in *saved, last convo.ID) {
	for _, l := range in.Loose {
		u := &unit[M]{id: l.ID, key: l.Key, host: l.Host, isPart: l.Part, behind: l.Behind, rest: l.Rest, sum: l.Read, at: l.At, isEnd: l.End, isOwn: true, stand: hasLeft}
		u.msg, u.role, u.calls = &l.Message, l.Message.Role, callsOf(&l.Message)
		if l.Shown {
			u.stand = inView
		}
		if last >= 0 && l.ID > last {
			u.id = 0
			m.waiting = append(m.waiting, &row[M]{units: []*unit[M]{u}})
			continue
		}
		m.loose = append(m.loose, u)
		m.register(u)
	}
	for _, msgs := range in.Waiting {
		r := &row[M]{}
		for i, msg := range msgs {
			u := &unit[M]{host: msg.Key, isPart: i > 0, role: msg.Role, calls: callsOf(&msg), msg: &msg, isOwn: true, at: -1}
			u.isEnd = msg.Role == convo.RoleAssistant && len(u.calls) == 0
			r.units = append(r.units, u)
		}
		m.waiting = append(m.waiting, r)
	}
}

// resumeAnew makes a new History for the whole list, with what Add gave.
func (m *Mirror[M]) resumeAnew(in *saved, opts *convo.Options) (err error) {
	m.list, m.seen = nil, nil
	clear(m.byKey)
	m.resumeLoose(in, 0)
	m.h, err = convo.New(opts)
	return err
}

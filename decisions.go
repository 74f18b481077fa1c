package convo

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/seed-c1b73e60/convo/internal/text"
	"github.com/seed-c1b73e60/convo/internal/wording"
)

// Decisions are what a [History] has decided about messages that the application keeps
// itself, each under its Message.Key. They say what the view shows, the newest message that
// has left it, what was cleared or cut, pins, the summary, the queue, and what usage reports
// have shown. [Resume] makes the History again from them and from the messages.
//
// They take eleven bytes for each row in view, about 45 and the key for each user message whose
// answer has left, and about 2 kB besides, with the text of the summary. Messages of which the
// application has no row are held whole. Those were rewritten, have no key, or were made by the
// History, such as the results of calls that were interrupted.
//
// A Decisions may be used by one goroutine at a time.
type Decisions struct {
	data     []byte
	in       *stateJSON // what data holds; the rows end at last
	accepted map[string]bool
	last     ID // the newest entry that stays; see RewindTo
}

// Decisions returns what h has decided, as JSON for [ReadDecisions]. Store it when
// Status.Decisions has changed, in the same transaction as the rows that came before it
// if there is one. Between two decisions the rows alone are enough: [Resume] appends
// those that came after the Decisions again.
//
// The messages of the view must be in the application's table as they were appended, with
// their keys. Of answers and results of tools, that is as Do, Run and AppendReply return them,
// or as they were given to Append with a key. A [Snapshot] is no source of rows, since results
// are cut and cleared in it. System messages, tools and ephemeral messages are not part of
// Decisions; the application sets them after Resume. Messages without a key are part of
// them.
//
// If two messages of the view have the same key, it returns a [*RowError].
func (h *History) Decisions() ([]byte, error) {
	if h.ident == nil {
		return nil, ErrClosed
	}
	var p *picture
	var sent sentView
	var at time.Time
	h.locked(func() {
		p, sent = h.pictureLocked(), h.nextAnswer(orNil(h.talk.waits()).view)
		at, _ = h.times()
	})

	rows, others, err := newRowList(p.view)
	if err != nil {
		return nil, err
	}
	rows.Pack()
	rows.lastAppend = at.UTC()
	if sent.known {
		rows.sent = &sent
	}
	if cal := p.view.known().cal; cal != nil {
		rows.sysSeen = len(p.view.sys) > 0 && cal.at.sys.len() == len(p.view.sys) && p.view.sysShared(cal.at) == p.view.sysRaw
		rows.toolsSeen = p.view.tools != nil && cal.at.tools == p.view.tools
		rows.ephemeralSeen = p.view.eph != nil && cal.at.eph == p.view.eph
	}
	list := p.view.withoutFrame()
	p.view, p.counted = &Snapshot{state: list}, list.raw()
	out := difference(noPicture, p)
	out.version, out.rows = versions[inDecisions], rows
	out.entries, out.left = others, changed(leftRow{}, rows.left)
	return out.encode(inDecisions)
}

// ReadDecisions reads what [History.Decisions] has returned. If data is not that, it
// returns a [*SnapshotError], which matches [ErrVersion] if a later version of this
// package wrote it, or one whose Decisions are no longer read.
func ReadDecisions(data []byte) (*Decisions, error) {
	in, err := decode(data, inDecisions)
	if err == nil {
		err = asSnapshotError(in.checkDecisions())
	}
	if err != nil {
		return nil, err
	}
	return &Decisions{data: slices.Clone(data), in: in, accepted: make(map[string]bool), last: in.last}, nil
}

// Format prints what d needs, and its size.
func (d Decisions) Format(f fmt.State, verb rune) { wording.Print(f, verb, d.print) }

func (d *Decisions) print(bool) string {
	keys, from := d.Needs()
	return fmt.Sprintf("Decisions(%s, then from %q on, %s bytes)", counted(len(keys), "row", "rows"), abbreviate(from), grouped(len(d.data)))
}

// checkDecisions returns an error if in cannot be Decisions.
func (in *stateJSON) checkDecisions() error {
	if in.rows == nil {
		return errors.New("it has no rows: it is not what History.Decisions has returned")
	}
	if err := in.checkLeft(); err != nil {
		return err
	}
	in.rows.left = orNil(in.left)
	if in.rows.sent != nil {
		in.rows.sent.known = true
	}
	if err := in.rows.check(); err != nil {
		return err
	}
	if newest := in.rows.Newest(); newest > in.last {
		return fmt.Errorf("a row of entry %d, above last, %d", newest, in.last)
	}
	return nil
}

// Needs says which messages [Resume] needs: those with these keys, and then each one from
// the message with the key from on. An empty from means all messages. If the view shows none
// with a key, from is the newest that has left it; if that was deleted, a [Message] with the
// Key alone may stand for it.
func (d *Decisions) Needs() (keys []string, from string) {
	if d == nil || d.in == nil {
		return nil, ""
	}
	rows := d.in.rows
	if len(rows.Rows) == 0 {
		return nil, rows.end()
	}
	for _, x := range rows.Rows[:rows.From] {
		if _, isWhole := index(d.in.entries, x.ID); !isWhole {
			keys = append(keys, x.Key)
		}
	}
	return keys, rows.Rows[rows.From].Key
}

// Accept makes [Resume] take the message with the key as the application has it now, if
// it was changed after it was appended. Signed reasoning that was made after it is then
// no longer bound; see [Snapshot.Unbound]. Resume still finds each other change.
func (d *Decisions) Accept(key string) {
	if d != nil && d.in != nil {
		d.accepted[text.Valid(key)] = true
	}
}

// RewindTo makes [Resume] take back every entry that is newer than id, such as those whose
// rows have changed since. Their rows are not needed any more, and those that [Resume] is
// given in their place are appended. If the summary stands for a newer entry, it returns a
// [*ValueError] and changes nothing.
func (d *Decisions) RewindTo(id ID) error {
	covered := ID(0)
	if d != nil && d.in != nil {
		covered = d.in.summary.newestKept()
	}
	if d == nil || d.in == nil || id < covered {
		return &ValueError{Name: "the ID to rewind to", Value: id, Want: fmt.Sprintf("that of an entry of the Decisions, %d or newer", covered)}
	}
	d.last = min(d.last, id)
	d.in.rows.cut(d.last)
	return nil
}

// rewind makes in what it would be if what is newer than an entry had been taken back.
func (in *stateJSON) rewind(last ID) {
	if last >= in.last {
		return
	}
	in.rows.cut(last)
	in.left = changed(leftRow{}, in.rows.left)
	s := state{last: in.last, takenBack: orNil(in.back)}
	s.tookBack(last)
	in.back = &s.takenBack
	in.entries = slices.DeleteFunc(in.entries, func(e *entry) bool { return e.id > last })
	in.pins = slices.DeleteFunc(in.pins, func(head ID) bool { return head > last })
	for in.summary != nil && in.summary.before != nil && in.summary.newestRead() > last {
		in.summary = &in.summary.before.sum
	}
	if in.summary != nil && in.summary.Text == "" {
		in.summary = nil
	}
	in.cal, in.seen = nil, nil // what was measured is not in the view
}

// Resume returns a [History] as it was when [History.Decisions] returned d. rows are the
// messages that [Decisions.Needs] names, each with its key, in the order in which they
// were appended. Rows that a Rollback took back or that were never appended must not be among
// them, since they look like new ones. Those that came after the decisions are
// appended again, as by [History.Append], with Options.Pin and Options.MaxResult: those after
// the newest row that the History had and did not take back. Of rows that have left the view it
// knows the newest 1,000, and after a restart the newest, so that a rollback to an older one
// brings back those between. A nil rows yields nothing.
//
// The next request is then the same as before, once SetSystem, SetTools and SetEphemeral
// have set again what they had set. These are not part of [Decisions], and a system
// message among the rows that precedes all other messages is skipped. Usage that was
// reported after the decisions is not known.
//
// Rows are compared with what the view shows, by [Message.Sum], and not by the parts of
// results that were cleared or cut. For a row that does not fit, Resume returns a [*RowError].
// Missing rows that the view does not show, such as those that a summary stands for, are not
// noticed, but for the newest that has left if new rows follow it. An error that rows yields is
// wrapped, and a panic of rows becomes a [*PanicError].
// Resume copies rows, so that rows may use the parts of a message again for the next one.
//
// Queued messages stay queued. The row of a queued message stands where the message was
// delivered: after the results or the answer that it waited for. It may also stand where
// it was typed, if that is between a call and its results, or if the message is still
// queued in d.
//
// Options.Repair and Options.IsSummary have no effect. Options.Time gives entries their times;
// without it, Status.LastAppend is at least that of the decisions. Undo reverts nothing that
// was decided before. The originals of results that were cut or cleared are those of the rows.
//
// A nil d, or the zero Decisions, is a [*ValueError]. Other errors are those of New and
// Restore.
func Resume(d *Decisions, rows iter.Seq2[Message, error], opts *Options) (*History, error) {
	if d == nil || d.in == nil {
		return nil, &ValueError{Name: "Decisions", Value: nil, Want: "what ReadDecisions has returned"}
	}
	own, err := ReadDecisions(d.data)
	if err != nil {
		return nil, err
	}
	if rows == nil {
		rows = func(func(Message, error) bool) {}
	}
	r := &resumer{in: own.in, rows: own.in.rows, accepted: d.accepted, isCut: d.last < own.last}
	own.in.rewind(d.last)
	return r.resume(rows, opts)
}

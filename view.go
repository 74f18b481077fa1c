package convo

import (
	"slices"
	"time"
)

// A view is the state of a conversation that a History changes, with what its next change
// needs to know of earlier ones.
type view struct {
	state
	past
	seen       int        // snapshots may share list[:seen], so it must not be written
	calls      *calls     // of the newest exchange
	snap       *Snapshot  // of the current version; nil: not made yet
	answers    sentView   // what the next answer is for, if it was prepared
	prefix     keptPrefix // of the next request
	cutOff     []*entry   // what the change that is under way has taken off the list in its place
	sent       *Snapshot  // of the last usage report; nil: none, or an entry of it has left the view
	weight     int64      // upper bound of the next request
	weighed    uint64     // 1 more than the version that weight is of
	plain      uint64     // versions that are no decisions; see Status.Decisions
	requeued   uint64     // decisions that made no version
	reversals  []reversal // in ascending order
	reloaded   uint64     // the version made by the last Reload with a change; older snapshots are only for reading
	lastAppend int64      // Unix nanoseconds; 0: never
}

// A past is what the compactor has to know of the changes of a view.
type past struct {
	rewritten    uint64        // version of the last edit, or of undoing one
	appendedEver int64         // raw tokens ever appended, including those taken back
	editedAt     int64         // Unix nanoseconds; 0: never
	lastFocus    string        // focus of the compaction that made the last edit; empty: none
	heldSince    uint64        // version made by the newest Undo; 0: there was none, or an edit was applied since
	heldAt       int64         // appendedEver at that time
	answeredAt   time.Time     // when an answer or a usage report was last recorded; zero: not since the load
	answeredFor  uint64        // the version of the snapshot that it was for
	cacheTTL     time.Duration // Usage.CacheTTL of that answer
	forgotten    []forgetting  // since the load or Reload, ascending by version
}

// A forgetting says that the content of an entry was forgotten in the edit that made a version.
type forgetting struct {
	id      ID
	version uint64
}

// newVersion gives the view a new version, so that the next snapshot is a
// new one. Each change calls it once.
func (v *view) newVersion() {
	v.version++
	v.snap = nil
}

// restore puts back a view as it was before a change that a panic has ended.
func (v *view) restore(was *view) {
	was.putTail(len(was.list)-len(v.cutOff), v.cutOff)
	was.seen, was.calls = 0, callsOf(was.list)
	*v = *was
}

// settle ends a change.
func (v *view) settle() { v.cutOff = nil }

// snapshot returns the snapshot of the current version, and whether it is new: it then lacks
// all but the state.
func (v *view) snapshot() (s *Snapshot, isNew bool) {
	isNew = v.snap == nil
	if isNew {
		v.snap = &Snapshot{state: v.state.clipped()}
		v.seen = len(v.list)
	}
	return v.snap, isNew
}

// charge charges an account, which may be nil, the upper bound of the next request.
func (v *view) charge(a *account) {
	if a != nil {
		a.set(v.upper())
	}
}

// fits reports whether the next request is within the limit.
func (v *view) fits(m *marks) bool { return v.upper() <= m.limit }

// isBeforeReload reports whether a state is from before the last Reload with a change.
func (v *view) isBeforeReload(at *state) bool { return at.version < v.reloaded }

// A sentView is the view that the next answer is for.
type sentView struct {
	known   bool
	open    bool // it has an open tool call, so no answer to it is bound
	prefix  prefix
	version uint64 // of the view
	edit    uint64 // the version that the newest edit in it had made
}

// setSent records that the next answer is for the view of a snapshot, unless an answer
// was appended since.
func (v *view) setSent(at *Snapshot) {
	if from, _ := index(v.list, at.newestID()+1); !slices.ContainsFunc(v.list[from:], func(e *entry) bool { return e.msg.Role == RoleAssistant }) {
		v.answers = viewSent(at)
	}
}

// cachedFor records that the provider has answered a request made of a snapshot just now, and
// how long it keeps the request; see Usage.CacheTTL. It leaves aside what came late.
func (v *view) cachedFor(at *Snapshot, ttl time.Duration) {
	if at.version >= v.answeredFor {
		v.answeredAt, v.answeredFor, v.cacheTTL = time.Now(), at.version, ttl
	}
}

// expect makes s the view that the next answer is for, and returns what was.
func (v *view) expect(s sentView) (was sentView) {
	was, v.answers = v.answers, s
	return was
}

// viewSent returns the view that a request is made of.
func viewSent(at *Snapshot) sentView {
	return at.sentWith(callsOf(at.list))
}

// sentView returns the present view as the view that a request is made of.
func (v *view) sentView() sentView { return v.sentWith(v.calls) }

// sentWith returns the view of a request, whose newest exchange has these calls.
func (s *state) sentWith(c *calls) sentView {
	return sentView{known: true, open: c.Open() > 0, prefix: s.whole(), version: s.version, edit: s.lastEdit()}
}

// release ends the bonds of the entries up to last.
func (v *view) release(last ID) {
	for i, bound := range v.signed {
		if bound && v.list[i].id <= last {
			v.request = v.request.Released(v.list, i)
			break
		}
	}
	v.newVersion()
	v.released = last
}

// setMeta sets the title and the data of the application.
func (v *view) setMeta(m meta) {
	v.meta, v.snap = m, nil
	v.requeued++
}

// prepare records that the next answer is for the present view.
func (v *view) prepare() {
	if !v.answers.known || v.answers.version != v.version {
		if v.answers.known {
			v.requeued++ // Decisions may have another view for the next answer
		}
		v.answers, v.asked = v.sentView(), v.asRequest(v.version)
	}
}

// A keptPrefix is what prefixKept has returned.
type keptPrefix struct {
	of      *request
	version uint64 // 1 more than that of the view
	kept    float64
	end     string
	again   int64
}

// keptPrefix is prefixKept, computed once after each change.
func (v *view) keptPrefix() (kept float64, end string, again int64) {
	if v.prefix.of != v.request || v.prefix.version != v.version+1 {
		v.prefix = keptPrefix{of: v.request, version: v.version + 1}
		v.prefix.kept, v.prefix.end, v.prefix.again = v.prefixKept()
	}
	return v.prefix.kept, v.prefix.end, v.prefix.again
}

// openCount returns how many calls have no result.
func (v *view) openCount() int { return v.calls.Open() }

// isNewest reports whether the newest exchange has calls and begins with the entry head.
func (v *view) isNewest(head ID) bool { return v.calls != nil && v.calls.Head == head }

// isOpenCall reports whether a call of the entry head has no result.
func (v *view) isOpenCall(head ID, callID string) bool {
	if !v.isNewest(head) {
		return false
	}
	_, err := v.calls.Find(callID, "")
	return err == nil
}

// moment returns what the compactor is told about the view. It changes with the view.
func (v *view) moment(m *marks) moment {
	return moment{at: &v.state, past: &v.past, upper: v.upper(), marks: m}
}

// swapQueue replaces the queue, and returns the one before.
func (v *view) swapQueue(list []*queued) (was []*queued) {
	was, v.queue, v.snap = v.queue, list, nil
	return was
}

// appendedAt sets the time of the last Append, unless a later one is known.
func (v *view) appendedAt(at int64) { v.lastAppend = max(v.lastAppend, at) }

// picture returns a picture with what a record holds of the view, of which at is a snapshot.
func (v *view) picture(at *Snapshot) *picture {
	p := &picture{view: at, scalars: v.scalars(), rewritten: v.rewritten}
	p.ever, p.edited, p.toolsSet, p.counted = v.appendedEver, timeOf(v.editedAt).UTC(), v.known().toolsSet, at.raw()-at.eph.tokens()
	return p
}

// decisions returns how many decisions were made.
func (v *view) decisions() uint64 { return v.version - v.plain + v.requeued }

// times returns the times of the last Append and of the last edit.
func (v *view) times() (appended, edited time.Time) { return timeOf(v.lastAppend), timeOf(v.editedAt) }

// unrelease takes back a release of the entries up to last, unless there was another since.
// Before it, those up to was were released.
func (v *view) unrelease(last, was ID) {
	if v.released == last {
		v.released = was
		v.newVersion()
	}
}

// without returns the view without list[n:]. It is for checks only.
func (v *view) without(n int) *view {
	rest := &view{state: v.state}
	rest.cutTail(n, true)
	rest.calls = callsOf(rest.list)
	return rest
}

// requeue replaces the queue. The version stays, since the next request is the same.
func (v *view) requeue(list []*queued) {
	v.swapQueue(list)
	v.requeued++
}

// nextAnswer returns what the next answer is for: what was prepared or else sending, which may
// be unknown. It is open if, and only if, the answer may not be bound.
func (v *view) nextAnswer(sending sentView) sentView {
	sent := v.answers
	if !sent.known {
		sent = sending
	}
	sent.open = !v.binds(sent)
	return sent
}

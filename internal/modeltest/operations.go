package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

func (d *driver) append(batch []message) {
	var msgs []convo.Message
	for _, m := range batch {
		msgs = append(msgs, m.build())
	}
	want := d.m.append(batch)
	id, err := d.h.Append(msgs...)
	d.want(fmt.Sprintf("append %v", msgs), err, want)
	if err == nil && len(batch) > 0 {
		if id != d.m.last {
			d.fail("Append returned %d, want %d", id, d.m.last)
		}
		d.adoptCuts(len(batch))
		d.m.deliver()
	}
}

// adoptCuts copies the results of the n newest entries to the model as Append cut them,
// and checks the report of Append.
func (d *driver) adoptCuts(n int) {
	if len(d.reports) == 0 || d.reports[len(d.reports)-1].Reason != convo.ReasonAppend {
		return // compare would find a cut
	}
	rounds, from := d.rounds, max(len(d.m.list)-n, 0)
	for _, x := range d.m.list[from:] { // a message of the same batch may have answered them
		d.rounds = append(slices.Clip(d.rounds), x.head)
	}
	cuts := d.cuts(d.h.Snapshot())
	d.rounds = rounds
	var did change
	for i := from; i < len(d.m.list); i++ {
		x := &d.m.list[i]
		results, ok := cuts[x.id]
		if !ok {
			continue
		}
		did.leave(*x)
		did.cut = append(did.cut, x.id)
		msg := x.msg
		msg.results = results
		d.m.appended -= x.msg.tokens(d.m.count) - msg.tokens(d.m.count)
		*x = d.m.changed(*x, msg, x.msg)
	}
	if len(did.cut) == 0 {
		return
	}
	d.stats.saw.cut = true
	r := d.reports[len(d.reports)-1]
	if r.Outcome != convo.OutcomeApplied {
		d.fail("results were cut, and the report says %+v", r)
	}
	d.checkChange(r, did)
}

// cutText matches a result whose middle was cut out.
var cutText = regexp.MustCompile(`(?s)^(.*)\n\[cut: (\d+) bytes left out\]\n(.*)$`)

// cuts returns the results of entries that are cut in s and not in the model, if no
// assistant message has followed them yet, or none had a short while ago. It checks that
// only the middle is missing.
func (d *driver) cuts(s *convo.Snapshot) map[convo.ID][]result {
	cuts := map[convo.ID][]result{}
	head, _ := d.m.unanswered()
	for _, x := range d.m.list {
		if x.msg.role != convo.RoleTool || x.head != head && !slices.Contains(d.rounds, x.head) {
			continue
		}
		e, ok := s.Find(x.id)
		if !ok {
			continue
		}
		whole := x.before().read
		results := slices.Clone(x.msg.results)
		changed := false
		for i, r := range e.Message.ToolResults() {
			if r.Text() == results[i].text || r.Cleared || strings.HasPrefix(r.Text(), shortened) {
				continue
			}
			m := cutText.FindStringSubmatch(r.Text())
			all := whole.results[i].text
			if m == nil || !strings.HasPrefix(all, m[1]) || !strings.HasSuffix(all, m[3]) || strconv.Itoa(len(all)-len(m[1])-len(m[3])) != m[2] {
				d.fail("%q is no cut of %q", r.Text(), all)
			}
			if d.m.count(r.Text()) >= d.m.count(results[i].text) {
				d.fail("%q was cut to %q", results[i].text, r.Text())
			}
			results[i].text, changed = r.Text(), true
		}
		if changed {
			cuts[x.id] = results
		}
	}
	return cuts
}

// undo reverts the newest edit. Any other report is refused.
func (d *driver) undo() {
	d.say("undo one of %d edits", len(d.m.applied))
	before := d.h.Snapshot()
	refused := func(r convo.Report) {
		if err := d.h.Undo(r); !errors.Is(err, convo.ErrStale) || d.h.Snapshot() != before {
			d.fail("Undo of %+v: %v", r, err)
		}
	}
	for _, r := range d.reports {
		if r.Outcome != convo.OutcomeApplied || r.Reason == convo.ReasonAppend {
			refused(r)
		}
	}
	if d.oldReport != nil {
		refused(*d.oldReport)
	}
	from := 0
	if d.n(4) == 0 {
		from = d.n(len(d.edits)) // try an older one first
	}
	for i := range d.edits {
		k := len(d.edits) - 1 - (from+i)%len(d.edits)
		err := d.h.Undo(d.edits[k])
		if err != nil {
			if !errors.Is(err, convo.ErrStale) || d.h.Snapshot() != before {
				d.fail("Undo: %v", err)
			}
			continue
		}
		if len(d.m.applied) == 0 {
			d.fail("Undo of an edit that is not in place: %+v", d.edits[k])
		}
		after := len(d.m.list) > 0 && d.m.list[len(d.m.list)-1].id > d.m.applied[len(d.m.applied)-1].before.last
		d.stats.saw.undo = true
		d.stats.saw.undoBehind = d.stats.saw.undoBehind || after
		d.edits = slices.Delete(d.edits, k, k+1)
		delivered := d.m.delivered
		d.m.undo()
		d.undoneAt, d.told = d.m.time, false
		d.say("undone")
		if d.strategy.held == nil && !d.inside && d.fits() && d.m.delivered == delivered { // what it delivers may need a compaction
			d.compare()
			calls := d.calls
			if r, err := d.prepare(context.Background()); r.Outcome != convo.OutcomeNotNeeded || err != nil || d.calls != calls {
				d.fail("compacted right behind an Undo: %+v, %v", r, err)
			}
		}
		return
	}
	if len(d.m.applied) > 0 && !d.inside {
		d.fail("no report of an edit is accepted, of %d", len(d.edits))
	}
}

// anyID returns an ID, which may not be in use.
func (d *driver) anyID() convo.ID { return convo.ID(d.n(int(d.m.last)+3) + 1) }

// listID mostly returns the ID of an entry in the view.
func (d *driver) listID() convo.ID {
	if len(d.m.list) == 0 || d.n(8) == 0 {
		return d.anyID()
	}
	return d.m.list[d.n(len(d.m.list))].id
}

func (d *driver) pin() {
	if d.n(4) == 0 {
		want := notFound
		if n := len(d.m.list); n > 0 {
			want = d.m.pin([]convo.ID{d.m.list[n-1].id}, true)
		}
		d.want("pin last", d.h.PinLast(), want)
		return
	}
	ids := []convo.ID{d.listID()}
	if d.n(4) == 0 {
		ids = append(ids, d.listID())
	}
	if d.n(3) == 0 {
		d.want(fmt.Sprintf("unpin %v", ids), d.h.Unpin(ids...), d.m.pin(ids, false))
	} else {
		d.want(fmt.Sprintf("pin %v", ids), d.h.Pin(ids...), d.m.pin(ids, true))
	}
}

// take takes a snapshot.
func (d *driver) take() *snapshot { return d.picture(d.h.Snapshot()) }

// picture returns a snapshot together with the model's current view.
func (d *driver) picture(s *convo.Snapshot) *snapshot {
	head, _ := d.m.unanswered()
	d.rounds = append(d.rounds[max(len(d.rounds)-20, 0):], head)
	return &snapshot{real: s, print: Print(s), view: d.m.view.clone(), time: d.m.time, model: d.m.name, window: d.limits.Window}
}

// keep takes a snapshot for later.
func (d *driver) keep() {
	if len(d.kept) >= 6 {
		d.kept = slices.Delete(d.kept, 0, 1)
	}
	d.kept = append(d.kept, d.take())
	d.say("keep snapshot %d", d.m.time)
	d.m.time++ // later operations of the same step have a later time
}

// snapshot returns an earlier snapshot or a current one.
func (d *driver) snapshot() *snapshot {
	if len(d.kept) == 0 || d.n(3) == 0 {
		d.keep()
		return d.kept[len(d.kept)-1]
	}
	return d.kept[d.n(len(d.kept))]
}

func (d *driver) splice() {
	at := d.snapshot()
	n := d.n(at.view.len()/2 + 3)
	summary := ""
	if d.n(3) > 0 {
		summary = "sum " + strconv.Itoa(d.m.time)
	}
	e := at.splice(n, summary)
	before := d.m.view.clone()
	did, want := d.m.apply(at, e)
	if want == noGain {
		want = success // SplicePrefix reports it by the number it returns
	}
	dropped, err := d.h.SplicePrefix(at.real, n, summary)
	d.want(fmt.Sprintf("splice %d of %d, %q", n, at.time, summary), err, want)
	if want := len(did.gone()); dropped != want {
		d.fail("dropped %d, want %d", dropped, want)
	}
	d.note(before, did, want)
}

func (d *driver) edit() {
	at := d.snapshot()
	var e edit
	if n := len(at.view.list); n > 0 {
		from := d.n(n)
		for _, x := range at.view.list[from:min(from+d.n(8), n)] {
			bad := d.n(40) == 0
			if d.n(4) == 0 {
				e.rewrite = append(e.rewrite, convo.Rewrite{ID: x.id, Parts: d.parts(x.msg), Forget: d.n(4) == 0})
			} else if bad || !at.view.isFloor(x) && !at.view.isPinned(x) {
				if len(x.msg.results) > 0 && d.n(3) == 0 {
					c := convo.Clear{ID: x.id}
					if d.n(2) == 0 {
						c.CallID = x.msg.results[d.n(len(x.msg.results))].id
					}
					if d.n(3) == 0 {
						c.Text = "cleared"
					}
					e.clear = append(e.clear, c)
				} else if d.n(3) > 0 {
					e.drop = append(e.drop, at.view.exchange(x.head)...)
				}
			}
		}
	}
	if d.n(30) == 0 {
		e.drop = append(e.drop, d.anyID())
	}
	if d.n(30) == 0 {
		e.rewrite = append(e.rewrite, convo.Rewrite{ID: d.anyID(), Parts: []convo.Part{convo.Text("new")}})
	}
	if d.n(30) == 0 && len(e.drop) > 0 {
		e.drop = e.drop[1:]
	}
	slices.Sort(e.drop)
	e.drop = slices.Compact(e.drop)
	made := convo.Edit{Drop: slices.Clone(e.drop), Clear: slices.Clone(e.clear), Rewrite: slices.Clone(e.rewrite)}
	switch d.n(4) {
	case 0:
		e.setSummary, e.summary = true, "text "+strconv.Itoa(d.m.time)
		made.Summary = &convo.Summary{Text: e.summary}
		if d.m.time%3 == 0 && len(e.drop) > 0 {
			e.covers = e.drop[1:]
			made.Summary.Covers = rangesOf(e.covers)
		}
		if n := len(at.view.list); n > 0 && d.m.time%2 == 0 {
			e.reads = []convo.ID{at.view.list[d.m.time/2%n].id}
			made.Summary.Read = rangesOf(e.reads)
		}
	case 1:
		if d.n(4) == 0 {
			e.setSummary = true
			made.Summary = &convo.Summary{}
		}
	}
	if d.n(2) == 0 {
		slices.Reverse(made.Drop)
	}
	before := d.m.view.clone()
	did, want := d.m.apply(at, e)
	r, err := d.h.Apply(at.real, made)
	d.want(fmt.Sprintf("apply drop %v clear %v rewrite %v summary %v of %d", e.drop, e.clear, e.rewrite, e.setSummary, at.time), err, want)
	d.checkApplied(r, err, did, want)
	d.note(before, did, want)
}

// rangesOf returns a range for each ID.
func rangesOf(ids []convo.ID) []convo.Range {
	ranges := make([]convo.Range, len(ids))
	for i, id := range ids {
		ranges[i] = convo.Range{First: id, Last: id}
	}
	return ranges
}

// checkApplied checks the report of an edit passed to Apply.
func (d *driver) checkApplied(r convo.Report, err error, did change, want failure) {
	outcome := convo.OutcomeFailed
	switch want {
	case success:
		outcome = convo.OutcomeApplied
	case noGain:
		outcome = convo.OutcomeDeclined
	case stale:
		outcome = convo.OutcomeStale
	}
	if r.Outcome != outcome || r.Cause != err {
		d.fail("%v because of %v, want %v because of %v", r.Outcome, r.Cause, outcome, err)
	}
	d.checkChange(r, did)
}

// checkChange compares the changes in a report with those in the model.
func (d *driver) checkChange(r convo.Report, did change) {
	if !slices.Equal(r.Dropped, did.dropped) || !slices.Equal(r.Summarised, did.summarised) ||
		!slices.Equal(r.Cleared, did.cleared) || !slices.Equal(r.Rewritten, did.rewritten) || !slices.Equal(r.Shortened, did.cut) || !slices.Equal(r.Spared, did.kept) ||
		!slices.Equal(r.Forgotten, did.forgotten) || !slices.Equal(r.Read, did.read) {
		d.fail("report %+v, want %+v", r, did)
	}
	var left []string
	for _, e := range r.Originals() {
		left = append(left, printLeft(e.ID, PrintMessage(e.Message), e.Missing))
	}
	if !slices.Equal(left, did.left) {
		d.fail("left\n%s\nwant\n%s", strings.Join(left, "\n"), strings.Join(did.left, "\n"))
	}
}

// note counts the difficulties of an edit.
func (d *driver) note(before view, did change, want failure) {
	saw := &d.stats.saw
	saw.stale = saw.stale || want == stale
	if !did.applied {
		return
	}
	saw.edits++
	saw.rewrite = saw.rewrite || len(did.rewritten) > 0
	gone := did.gone()
	if len(gone) == 0 {
		return
	}
	first, last := gone[0], gone[len(gone)-1]
	for _, e := range before.list {
		saw.pinInside = saw.pinInside || e.id > first && e.id < last && before.isPinned(e)
	}
	lastGone, _ := before.find(last)
	for _, e := range d.m.list {
		saw.cutInTurn = saw.cutInTurn || e.id > last && e.turn == lastGone.turn
	}
}

func (d *driver) takeBack() {
	if d.n(2) == 0 {
		d.rewind()
	} else {
		d.rollback()
	}
	if d.n(2) == 0 {
		d.dropNewFloor()
	}
}

// dropNewFloor applies an edit to an exchange that was not floor when the edit's snapshot
// was taken and that a rollback has made floor.
func (d *driver) dropNewFloor() {
	for _, at := range d.kept {
		for _, x := range d.m.list {
			old, ok := at.view.find(x.id)
			if !ok || !d.m.isFloor(x) || at.view.isFloor(old) || at.view.isPinned(old) {
				continue
			}
			e := edit{drop: at.view.exchange(x.head)}
			before := d.m.view.clone()
			did, want := d.m.apply(at, e)
			r, err := d.h.Apply(at.real, convo.Edit{Drop: e.drop})
			d.want(fmt.Sprintf("drop new floor %v of %d", e.drop, at.time), err, want)
			d.checkApplied(r, err, did, want)
			d.note(before, did, want)
			return
		}
	}
}

func (d *driver) rollback() {
	at := d.snapshot()
	across := slices.ContainsFunc(d.m.applied, func(e appliedEdit) bool { return e.time > at.time })
	want := d.m.rollback(at)
	d.mayBeTold = d.mayBeTold || d.told
	d.told = false
	d.want(fmt.Sprintf("rollback to %d", at.time), d.h.Rollback(at.real), want)
	d.stats.saw.acrossEdit = d.stats.saw.acrossEdit || across && want == success
}

func (d *driver) rewind() {
	n := d.n(3)
	want := d.m.rewind(n)
	taken, err := d.h.Rewind(n)
	d.want(fmt.Sprintf("rewind %d", n), err, success)
	if taken != want {
		d.fail("rewound %d, want %d", taken, want)
	}
}

func (d *driver) system() {
	var list []message
	if d.n(3) == 0 {
		for _, e := range d.m.sys {
			list = append(list, e.msg)
		}
	} else {
		for range d.n(3) {
			list = append(list, message{role: convo.RoleSystem, text: d.text()})
		}
	}
	same := slices.EqualFunc(d.m.sys, list, func(e entry, m message) bool { return e.msg.print() == m.print() })
	if !same {
		d.m.sys = nil
	}
	var msgs []convo.Message
	for _, m := range list {
		msgs = append(msgs, m.build())
		if !same {
			d.m.last++
			d.m.sys = append(d.m.sys, entry{id: d.m.last, head: d.m.last, uid: d.m.newUID(), msg: m})
		}
	}
	before := d.h.Snapshot()
	d.want(fmt.Sprintf("set system %d, same %v", len(msgs), same), d.h.SetSystem(msgs...), success)
	if (d.h.Snapshot() == before) != same {
		d.fail("SetSystem with the same messages is %v, and the snapshot says otherwise", same)
	}
}

// meta changes the title and the data.
func (d *driver) meta() {
	d.m.title, d.m.meta = d.text(), d.text()
	version := d.h.Snapshot().Version()
	d.want("set meta", d.h.SetMeta(d.m.title, d.m.meta), success)
	if d.h.Snapshot().Version() != version {
		d.fail("SetMeta changed the version")
	}
}

func (d *driver) ephemeral() {
	var list []message
	var msgs []convo.Message
	called := false // a tool was called since the newest user message
	for range d.n(4) {
		m := d.user()
		switch d.n(4) {
		case 0:
			m = message{role: convo.RoleSystem, text: d.text(), note: true}
		case 1:
			m = d.assistant(d.n(3))
		}
		called = (called || len(m.calls) > 0) && m.role != convo.RoleUser
		m.idle = d.m.isIdle(entry{tools: called})
		set := []message{m}
		for _, id := range m.calls {
			r := d.result(id)
			r.noName = false
			set = append(set, message{role: convo.RoleTool, results: []result{r}})
		}
		for _, m := range set {
			msgs = append(msgs, m.build())
		}
		list = append(list, set...)
	}
	same := slices.EqualFunc(d.m.view.ephemeral, list, func(old, m message) bool { return old.print() == m.print() })
	if !same {
		d.m.view.ephemeral, d.m.ephemeralUID = list, d.m.newUID()
	}
	before := d.h.Snapshot()
	d.want(fmt.Sprintf("set ephemeral %d, same %v", len(msgs), same), d.h.SetEphemeral(msgs...), success)
	if (d.h.Snapshot() == before) != same {
		d.fail("SetEphemeral with the same messages is %v, and the snapshot says otherwise", same)
	}
}

func (d *driver) answerOpen() {
	open := d.m.open()
	for _, id := range open {
		if fail := d.m.append([]message{errorResult(id, "gave up")}); fail != success {
			d.fail("the model refuses the answer to %s: %s", id, fail)
		}
	}
	n, err := d.h.AnswerOpenCalls("gave up")
	d.want("answer open calls", err, success)
	if n != len(open) {
		d.fail("answered %d, want %d", n, len(open))
	}
	if n > 0 {
		d.m.deliver()
	}
}

func (d *driver) usage() {
	at := d.snapshot()
	input := d.n(2 * (at.view.raw() + 50))
	d.say("usage %d of %d", input, at.time)
	if err := d.h.RecordUsage(at.real, convo.Usage{Input: input + input%7, Extra: input % 7}); err != nil {
		d.fail("RecordUsage: %v", err)
	}
	if input == 0 || at.real.Version() < d.m.reported[at.model] {
		return
	}
	if d.m.report(at, input, d.limits) {
		d.m.reported[at.model] = at.real.Version()
	}
}

// model changes the limits, or the model that requests go to.
func (d *driver) model() {
	if d.n(2) == 0 {
		d.m.tools = d.n(500)
		d.limits = convo.Limits{Tools: d.m.tools}
		d.told, d.m.toolsSet = false, true
		d.want("set limits", d.h.SetLimits(d.limits), success)
		return
	}
	name := []string{"", "large", "small"}[d.n(3)]
	var limits convo.Limits // zero Limits keep the current ones
	if d.n(3) == 0 {
		limits.Tools = max(d.n(500), 1)
	}
	same := name == d.m.name && (limits == convo.Limits{} || limits == d.limits)
	if limits != (convo.Limits{}) && !same {
		d.limits, d.m.tools = limits, limits.Tools
		d.told, d.m.toolsSet = false, true
	}
	before := d.h.Snapshot()
	d.want(fmt.Sprintf("set model %q %+v, same %v", name, limits, same), d.h.SetModel(name, limits), success)
	if (d.h.Snapshot() == before) != same {
		d.fail("SetModel with the same model and limits is %v, and the snapshot says otherwise", same)
	}
	if name != d.m.name {
		d.m.name, d.m.sent = name, nil
		d.m.anchor(d.limits)
	}
}

// reload continues with a History that is restored from this one: from its JSON, or from
// a snapshot, which makes a fork.
func (d *driver) reload() {
	s := d.h.Snapshot()
	saved := d.n(2) == 0
	if saved {
		data, err := json.Marshal(s)
		if err != nil {
			d.fail("marshal: %v", err)
		}
		s = new(convo.Snapshot)
		if err := json.Unmarshal(data, s); err != nil {
			d.fail("unmarshal: %v\n%s", err, data)
		}
		if d.opts.Tokenizer == nil && d.m.replay <= convo.ReplayAll { // a decoded snapshot counts with Heuristic, and all reasoning
			d.compareExchanges(s)
		}
	}
	d.checkKept()
	opts := d.opts
	learned := d.m.carried(d.limits)
	d.limits = convo.Limits{Tools: d.m.tools}
	opts.Limits, d.made = d.limits, d.limits
	h, err := convo.Restore(s, &opts)
	d.want("reload", err, success)
	if batch := d.sensible(); d.m.accepts(batch[0]) {
		// The old History continues. Neither may see changes of the other.
		if _, err := d.h.Append(batch[0].build()); err != nil {
			d.fail("append to the old History: %v", err)
		}
	}
	d.forked = d.take()
	d.h, d.shelf, d.told = h, nil, false
	d.forget()
	d.m.sent = nil
	d.m.view.ephemeral, d.m.reported, d.m.implausible = nil, map[string]uint64{}, nil
	for _, list := range [][]entry{d.m.sys, d.m.list} {
		for i := range list {
			list[i].uid, list[i].like = d.m.newUID(), 0
			if saved {
				list[i].original = nil
			}
		}
	}
	d.m.summaryUID = d.m.newUID()
	d.m.resume(learned, d.limits)
	d.m.requestFailed(nil)
	d.m.deliver()
	d.stats.saw.load = true
}

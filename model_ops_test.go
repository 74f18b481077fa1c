package convo_test

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/seed-c1b73e60/convo"
)

// Operations.

func (d *driver) append(batch []mMsg) {
	var msgs []convo.Message
	for _, m := range batch {
		msgs = append(msgs, m.real())
	}
	kind := d.m.append(batch)
	id, err := d.h.Append(msgs...)
	d.want(fmt.Sprintf("append %v", msgs), err, kind)
	if err == nil && len(batch) > 0 && id != d.m.last {
		d.fail("Append returned %d, want %d", id, d.m.last)
	}
}

func (d *driver) anyID() convo.ID { return convo.ID(d.n(int(d.m.last)+3) + 1) }

// listID is mostly the ID of an entry in the view.
func (d *driver) listID() convo.ID {
	if len(d.m.list) == 0 || d.n(8) == 0 {
		return d.anyID()
	}
	return d.m.list[d.n(len(d.m.list))].id
}

func (d *driver) pin() {
	if d.n(4) == 0 {
		want := ""
		if len(d.m.list) == 0 {
			want = "not found"
		} else {
			d.m.pin([]convo.ID{d.m.list[len(d.m.list)-1].id}, true)
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

func (d *driver) keep() {
	s := &mSnap{real: d.h.Snapshot(), view: d.m.mView.copy(), seq: d.m.seq, model: d.m.model}
	s.print = printOf(s.real)
	if len(d.snaps) >= 6 {
		d.snaps = slices.Delete(d.snaps, 0, 1)
	}
	d.snaps = append(d.snaps, s)
	d.say("keep snapshot %d", s.seq)
	d.m.seq++ // what comes next is later, also within one step
}

// snapshot is a kept snapshot, or one of now.
func (d *driver) snapshot() *mSnap {
	if len(d.snaps) == 0 || d.n(3) == 0 {
		d.keep()
		return d.snaps[len(d.snaps)-1]
	}
	return d.snaps[d.n(len(d.snaps))]
}

func (d *driver) splice() {
	at := d.snapshot()
	n := d.n(at.view.lenAll()/2 + 3)
	sum := ""
	if d.n(3) > 0 {
		sum = "sum " + itoa(d.m.seq)
	}
	e := at.splice(n, sum)
	before := d.m.mView.copy()
	r, kind := mReport{}, ""
	if len(e.drop) > 0 {
		r, kind = d.m.apply(at, e)
	}
	dropped, err := d.h.SplicePrefix(at.real, n, sum)
	d.want(fmt.Sprintf("splice %d of %d, %q", n, at.seq, sum), err, kind)
	if err == nil && dropped != len(r.gone) {
		d.fail("dropped %d, want %d", dropped, len(r.gone))
	}
	d.note(before, r, kind)
}

func (v mView) lenAll() int { return len(v.sys) + len(v.list) }

func (d *driver) edit() {
	at := d.snapshot()
	var e mEditOf
	if n := len(at.view.list); n > 0 {
		from := d.n(n)
		for _, x := range at.view.list[from:min(from+d.n(8), n)] {
			bad := d.n(40) == 0
			if bad || !at.view.hardFloor(x) && !at.view.pinned(x) {
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
	if d.n(30) == 0 && len(e.drop) > 0 {
		e.drop = e.drop[1:]
	}
	slices.Sort(e.drop)
	e.drop = slices.Compact(e.drop)
	real := convo.Edit{Drop: slices.Clone(e.drop), Clear: slices.Clone(e.clear)}
	switch d.n(4) {
	case 0:
		e.setSum, e.sum = true, "text "+itoa(d.m.seq)
		real.Summary = &convo.Summary{Text: e.sum}
	case 1:
		if d.n(4) == 0 {
			e.setSum = true
			real.Summary = &convo.Summary{}
		}
	}
	if d.n(2) == 0 {
		slices.Reverse(real.Drop)
	}
	before := d.m.mView.copy()
	r, kind := d.m.apply(at, e)
	report, err := d.h.Apply(at.real, real)
	d.want(fmt.Sprintf("apply drop %v clear %v summary %v of %d", e.drop, e.clear, e.setSum, at.seq), err, kind)
	if err == nil {
		gone := slices.Concat(report.Dropped, report.Summarised)
		if report.Outcome != r.outcome || !slices.Equal(gone, r.gone) && report.Outcome == convo.Applied ||
			!slices.Equal(report.Cleared, r.cleared) || !slices.Equal(report.Kept, r.kept) {
			d.fail("report %+v, want %+v", report, r)
		}
	}
	d.note(before, r, kind)
}

// note counts what made an edit hard.
func (d *driver) note(before mView, r mReport, kind string) {
	if kind == "stale" {
		d.hard.sawStale = true
	}
	if r.outcome != convo.Applied || kind != "" {
		return
	}
	d.hard.edits++
	if len(r.gone) == 0 {
		return
	}
	first, last := r.gone[0], r.gone[len(r.gone)-1]
	for _, e := range before.list {
		d.hard.sawPin = d.hard.sawPin || e.id > first && e.id < last && before.pinned(e)
	}
	lastGone, _ := before.find(last)
	for _, e := range d.m.list {
		if e.id > last && e.turn == lastGone.turn {
			d.hard.sawCut = true
		}
	}
}

func (d *driver) rollback() {
	at := d.snapshot()
	across := slices.ContainsFunc(d.m.edits, func(e mEdit) bool { return e.seq > at.seq })
	kind := d.m.rollback(at)
	d.want(fmt.Sprintf("rollback to %d", at.seq), d.h.Rollback(at.real), kind)
	d.hard.sawAcross = d.hard.sawAcross || across && kind == ""
}

func (d *driver) rewind() {
	n := d.n(3)
	want := d.m.rewind(n)
	taken, err := d.h.Rewind(n)
	d.want(fmt.Sprintf("rewind %d", n), err, "")
	if taken != want {
		d.fail("rewound %d, want %d", taken, want)
	}
}

func (d *driver) system() {
	var msgs []convo.Message
	d.m.sys = nil
	for range d.n(3) {
		m := mMsg{role: convo.RoleSystem, text: d.text()}
		msgs = append(msgs, m.real())
		d.m.last++
		d.m.sys = append(d.m.sys, mEntry{id: d.m.last, head: d.m.last, uid: d.m.newUID(), msg: m})
	}
	d.want(fmt.Sprintf("set system %d", len(msgs)), d.h.SetSystem(msgs...), "")
}

func (d *driver) ephemeral() {
	var msgs []convo.Message
	d.m.eph, d.m.ephUID = nil, d.m.newUID()
	for range d.n(3) {
		d.m.eph = append(d.m.eph, d.text())
		msgs = append(msgs, convo.User(d.m.eph[len(d.m.eph)-1]))
	}
	d.want(fmt.Sprintf("set ephemeral %d", len(msgs)), d.h.SetEphemeral(msgs...), "")
}

func (d *driver) answerOpen() {
	open := d.m.open()
	for _, id := range open {
		if kind := d.m.append([]mMsg{{role: convo.RoleTool, results: []mResult{{id: id, text: "gave up", isErr: true}}}}); kind != "" {
			d.fail("model: %s", kind)
		}
	}
	n, err := d.h.AnswerOpenCalls("gave up")
	d.want("answer open calls", err, "")
	if n != len(open) {
		d.fail("answered %d, want %d", n, len(open))
	}
}

func (d *driver) usage() {
	at := d.snapshot()
	input := d.n(2 * (at.view.raw() + 50))
	d.say("usage %d of %d", input, at.seq)
	if err := d.h.RecordUsage(at.real, convo.Usage{Input: input}); err != nil {
		d.fail("RecordUsage: %v", err)
	}
	if input == 0 || at.real.Version() < d.m.reported[at.model] {
		return
	}
	if d.m.report(at, input, d.limits) {
		d.m.reported[at.model] = at.real.Version()
	}
}

func (d *driver) model() {
	if d.n(2) == 0 {
		d.m.guess = d.n(500)
		d.limits = convo.Limits{Overhead: d.m.guess}
		d.want("set limits", d.h.SetLimits(d.limits), "")
		return
	}
	name := []string{"", "large", "small"}[d.n(3)]
	d.want("set model "+name, d.h.SetModel(name), "")
	if name != d.m.model {
		d.m.model, d.m.sent = name, nil
		d.m.anchor(d.limits)
	}
}

// reload goes on with a History made of the JSON of this one, or with a fork.
func (d *driver) reload() {
	s := d.h.Snapshot()
	if d.n(2) == 0 {
		data, err := json.Marshal(s)
		if err != nil {
			d.fail("marshal: %v", err)
		}
		s = new(convo.Snapshot)
		if err := json.Unmarshal(data, s); err != nil {
			d.fail("unmarshal: %v\n%s", err, data)
		}
		if d.opts.Tokenizer == nil { // as a decoded snapshot counts
			d.compareExchanges(s)
		}
	}
	d.oldSnapshots()
	opts := d.opts
	known := d.m.carried(d.limits)
	d.limits = convo.Limits{Overhead: d.m.guess}
	opts.Limits = d.limits
	h, err := convo.Restore(s, &opts)
	d.want("reload", err, "")
	if batch := d.sensible(); d.m.mView.accepts(d.m, batch) {
		// The old one goes on by itself; neither must see the other.
		if _, err := d.h.Append(batch[0].real()); err != nil {
			d.fail("append before a fork went on: %v", err)
		}
	}
	d.other = &mSnap{real: d.h.Snapshot(), print: printOf(d.h.Snapshot())}
	d.snaps = nil
	d.h = h
	d.m.edits, d.m.gone, d.m.sent = nil, map[convo.ID]bool{}, nil
	d.m.eph, d.m.reported, d.m.doubted = nil, map[string]uint64{}, nil
	for _, list := range [][]mEntry{d.m.sys, d.m.list} {
		for i := range list {
			list[i].uid = d.m.newUID()
		}
	}
	d.m.sumUID = d.m.newUID()
	d.m.resume(known, d.limits)
	d.hard.sawReload = true
}

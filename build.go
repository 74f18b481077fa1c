package convo

import "fmt"

// load fills an empty view with the state read. The loader has a picture of what is in the log,
// with the entries of the view unless Repair has changed any.
func (r *reading) load(with *setup, to *view, p *picture) (*loader, error) {
	l := &loader{setup: with, to: to, from: p.view, own: with.opts.Repair == nil, saved: p}
	l.counted = l.own && r.state.counter != "" && r.state.counter == with.ident.name()
	if err := l.fill(); err != nil {
		return nil, err
	}
	r.counted, r.mended = to.raw(), l.mended
	if l.mended && r.state.counter == with.ident.name() {
		r.counted = r.state.counted // what was mended is not counted in another way
	}
	to.appendedEver = p.ever
	if !p.edited.IsZero() {
		to.editedAt = p.edited.UnixNano()
	}
	if n := len(to.list); n > 0 && to.list[n-1].at != noTime {
		to.lastAppend = to.list[n-1].at
	}
	to.newVersion()
	to.rewritten = to.version // the measured view is only known in part
	recounted := to.adoptKnowledge(r, with.opts.prior(r.state.model), p.toolsSet)
	if l.mended {
		saved, err := r.picture(true)
		if err != nil {
			return nil, err
		}
		l.saved = saved
	} else {
		p.view = &Snapshot{state: to.clipped()}
		to.seen, p.rewritten = len(to.list), to.rewritten
	}
	l.saved.view.queue = l.queued // the same messages as in the view
	l.saved.recounted = recounted
	return l, nil
}

// picture returns the combined content of the records. If count is false, the entries
// have no calls and only the tokens that the records give. An error is a
// *SnapshotError.
func (r *reading) picture(count bool) (*picture, error) {
	in := &r.state
	s, err := in.state(count)
	if err != nil {
		return nil, err
	}
	p := &picture{view: &Snapshot{state: s}, scalars: in.scalars}
	counted := in.counted
	if count {
		counted = p.view.raw()
	}
	p.view.knowledge, p.recounted = in.knowledgeOf(&p.view.state, counted, false)
	if k := p.view.known(); k.reported && k.cal == nil {
		return nil, asSnapshotError(fmt.Errorf("usage was reported for the model %.40q, and there is no calibration of it", k.model))
	}
	p.view.sumMeasured(true)
	p.view.loaded = loaded{key: r.newest.Key, log: in.log, seq: r.newest.Seq, id: r.newest.ID}
	return p, nil
}

// state checks in and returns the state that it describes. If count is not set, the
// entries get no calls, and only the tokens that were read.
func (in *stateJSON) state(count bool) (state, error) {
	if err := in.check(); err != nil {
		return state{}, asSnapshotError(err)
	}
	sys, list := orNil(in.system), in.entries
	s := state{
		id:   &identity{counter: newCounter(nil, Overheads{}), key: in.key},
		last: in.last, figures: in.figures, meta: meta{orNil(in.title), orNil(in.meta)}, pins: in.pins,
		knowledge: &knowledge{model: in.model, learned: orNil(in.learned)}, queue: orNil(in.queue), takenBack: orNil(in.back),
	}
	if left := orNil(in.left); left.id > 0 {
		s.left = []leftRow{left}
	}
	if err := in.finish(&s, count); err != nil {
		return s, err
	}
	for _, pin := range s.pins {
		if i, ok := index(list, pin); !ok || list[i].head != pin {
			return s, &SnapshotError{Index: -1, ID: pin, Err: fmt.Errorf("pin %d is not the first entry of an exchange", pin)}
		}
	}
	s.replace(sys, list, nil, in.turn)
	if t := in.tools; t != nil {
		s.tools = s.id.toolset(t.tools, t.key)
	}
	if in.summary != nil && in.summary.Text != "" {
		s.summary = s.id.placed(*in.summary)
	}
	s.request = s.requestOf(in.heads, in.sent)
	return s, nil
}

// loaded returns the view of p, for the limits that were saved with it.
func (p *picture) loaded() *Snapshot {
	p.view.setting, p.view.knowledge = p.limits.setting(), p.view.known().within(p.limits, true)
	return p.view
}

package modeltest

import (
	"context"
	"fmt"

	"github.com/seed-c1b73e60/convo"
)

// enqueue queues one or two user messages.
func (d *driver) enqueue() {
	var msgs []convo.Message
	for range d.n(2) + 1 {
		m := d.user()
		msgs = append(msgs, m.build())
		d.m.queue = append(d.m.queue[:len(d.m.queue):len(d.m.queue)], m)
	}
	d.want(fmt.Sprintf("queue %v", msgs), d.h.Queue(msgs...), success)
	if newest := d.m.newest(); !d.answering && newest != convo.RoleUser && newest != convo.RoleTool || d.m.hasFailed() {
		d.m.deliver()
	}
}

func (d *driver) unqueue() {
	d.say("unqueue")
	msgs := d.h.Unqueue()
	if len(msgs) != len(d.m.queue) {
		d.fail("took %d messages back, want %d", len(msgs), len(d.m.queue))
	}
	for i, m := range msgs {
		if got, want := PrintMessage(m), d.m.queue[i].print(); got != want {
			d.fail("took %s back, want %s", got, want)
		}
	}
	d.m.queue = nil
}

// do makes a request, with limits and a strategy under which no compaction is due. While
// the request runs, messages are queued or appended, or entries are taken back. Some
// answers hold no message, and some hold a user message and are refused.
func (d *driver) do() {
	d.strategy.inner, d.limits = convo.Truncate{}, convo.Limits{Tools: d.m.tools}
	d.told, d.m.toolsSet = false, true
	d.want("set limits", d.h.SetLimits(d.limits), success)
	if n := d.m.deliver(); n > 0 {
		d.m.sending = d.m.list[len(d.m.list)-n].id
	}
	defer func() { d.m.sending = 0 }()
	want := d.m.answerFault()
	if want == success {
		d.m.failed = 0
	}
	asked := d.m.newestMessage()
	answer, sent := []message{d.assistant(max(d.n(5)-2, 0))}, false
	switch d.n(8) {
	case 0:
		answer = nil
	case 1:
		answer = append(answer, d.user())
	}
	var during view
	reply, err := d.h.Do(context.Background(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
		sent = true
		at := d.picture(s)
		during = at.view
		d.m.waiting = newestID(at.view)
		d.answering = true
		for range d.n(3) {
			d.enqueue()
		}
		d.answering = false
		switch d.n(6) {
		case 0:
			d.append([]message{d.user()}) // delivers, if it is appended
		case 1:
			d.rewind()
		case 2:
			d.system()
		}
		var msgs []convo.Message
		for _, m := range answer {
			msgs = append(msgs, m.build())
		}
		return convo.Reply{Messages: msgs}, nil
	})
	if sent != (want == success) {
		d.fail("sent %v, although an answer would be refused: %q (%v)", sent, want, err)
	}
	queued := 0
	d.m.waiting = 0
	if sent {
		switch {
		case len(answer) == 0:
			d.m.requestFailed(nil)
			queued = d.m.deliver()
		case len(answer) > 1:
			want = badRole
		case newestID(d.m.view) != newestID(during):
			want = stale
		default:
			if want = d.m.append(answer); want != success {
				break
			}
			if id := d.m.last; len(reply.IDs) != 1 || reply.IDs[0] != id {
				d.fail("the answer has the IDs %v, want %d", reply.IDs, id)
			}
			queued = d.m.deliver()
			d.stats.Answered++
		}
	}
	if err != nil && d.m.newestMessage() == asked {
		d.m.requestFailed(err)
	}
	d.want("do", err, want)
	if reply.Queued != queued {
		d.fail("delivered %d, want %d", reply.Queued, queued)
	}
}

// newestID returns the ID of the newest entry that is not a system entry.
func newestID(v view) convo.ID {
	if n := len(v.list); n > 0 {
		return v.list[n-1].id
	}
	return 0
}

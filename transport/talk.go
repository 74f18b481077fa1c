package transport

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/mirror"
)

// A talk is a conversation that the Transport follows.
type talk struct {
	api    api
	about  Conversation // without figures
	mirror *mirror.Mirror[*value]
	limits convo.Limits
	cuts   bool // Append may cut results

	isUsual bool // the window is that of the model

	answered atomic.Pointer[answered] // the newest one

	// These belong to the Transport and are guarded by its mutex.
	front  []*value // the system text that the newest list begins with
	values []*value // what follows
	chain  []uint64 // a fingerprint of the list up to each value
	under  int      // requests under way
	used   time.Time
	count  int  // requests
	isGone bool // it was dropped
	last   Answer
	pasts  []past

	busy    chan struct{} // see lock; protects following
	written map[*value]written
	tools   string // see toolsKey; the limits count them
	decided uint64 // Status.Decisions of what pasts have
}

// A past is what a conversation had decided when its list had a length.
type past struct {
	N         int    `json:"n"`
	Chain     uint64 `json:"chain"` // of the list so far
	Decisions []byte `json:"decisions"`
}

const (
	mostPasts  = 8
	mostStored = 64 // pasts under one name of a Store
)

// lock waits until no other list is taken over, or ctx is done.
func (k *talk) lock(ctx context.Context) error {
	select {
	case k.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (k *talk) unlock() { <-k.busy }

// codec returns the codec of the values of an API.
func codec(a api) mirror.Codec[*value] {
	return mirror.Codec[*value]{
		Decode: func(v *value) ([]convo.Message, error) {
			msgs := v.msgs
			if v.msgs = nil; msgs != nil {
				return msgs, nil
			}
			msgs, _, err := v.decode(a)
			return msgs, err
		},
		Encode: func(msg convo.Message, was **value) (*value, error) {
			if was != nil {
				return &value{was: *was, msgs: []convo.Message{msg}}, nil
			}
			raw, err := a.encode(msg)
			return &value{raw: raw, msgs: []convo.Message{msg}}, err
		},
		Same:  func(was, now *value) bool { return was.same(now) },
		Seals: a.checksSeals,
	}
}

// raws returns the raw messages of a view, and whether the list, which has n values, may be sent as
// it is: all of it is in view, unchanged. first is the first value that is no system text: what it
// begins to remind the model of stands in the summary if that stands for it. The lock of k must be held.
func (k *talk) raws(view []*value, n int, first *value) (raw [][]byte, isWhole bool, err error) {
	own := 0
	written := make(map[*value]written)
	var reminders []convo.Part
	if !slices.ContainsFunc(view, func(v *value) bool { return v.same(first) || v.was != nil && v.was.same(first) }) {
		reminders = k.api.reminders(first)
	}
	for i := 0; i < len(view); {
		v := view[i]
		if i++; v.sum != 0 {
			own++
		}
		switch {
		case v.isSystem, v.was != nil && v.was.isSystem: // no compaction changes it
			continue
		case v.was == nil && v.sum == 0 && len(reminders) > 0 && v.msgs[0].Role == convo.RoleUser:
			msg := v.msgs[0]
			msg.Parts, reminders = append(reminders, msg.Parts...), nil
			list, err := k.api.encode(msg)
			if err != nil {
				return nil, false, err
			}
			raw = append(raw, list...)
			continue
		case v.was == nil:
			raw = append(raw, v.raw...)
			continue
		}
		now := slices.Clone(v.msgs)
		for i < len(view) && view[i].was == v.was {
			now = append(now, view[i].msgs...)
			i++
		}
		w, err := k.write(v.was, now)
		if err != nil {
			return nil, false, err
		}
		written[v.was] = w
		raw = append(raw, w.raw...)
	}
	k.written = written
	return raw, own == n, nil
}

// A written is what a compaction has made of the raw messages of a value.
type written struct {
	now uint64 // a fingerprint of what it says now
	raw [][]byte
}

// write returns the raw messages of a value that says something else now.
func (k *talk) write(was *value, now []convo.Message) (written, error) {
	sum := was.sum
	for _, m := range now {
		sum = mix(sum, m.Sum())
		for _, p := range m.Parts { // which Sum leaves out
			switch p := p.(type) {
			case convo.Reasoning:
				sum = mix(sum, keyed(p.Text, p.Signature+p.Encrypted))
			case convo.ToolResult:
				sum = mix(sum, keyed(p.CallID, ""))
			}
		}
	}
	if w, ok := k.written[was]; ok && w.now == sum {
		return w, nil
	}
	now, err := k.api.remind(was, now)
	if err != nil {
		return written{}, err
	}
	raw, err := k.api.format.Patch(rawsOf(was.raw), now...)
	return written{sum, bytesOf(raw)}, err
}

// decide stores what the conversation has decided beside the list that it has decided it for.
// The mutex of the Transport must be held.
func (k *talk) decide(n int, data []byte) {
	if n > len(k.chain) || n == 0 {
		return
	}
	p := past{N: n, Chain: k.chain[n-1], Decisions: data}
	if len(k.pasts) > 0 && k.pasts[len(k.pasts)-1].N == n {
		k.pasts = k.pasts[:len(k.pasts)-1]
	}
	if k.pasts = append(k.pasts, p); len(k.pasts) > mostPasts {
		k.pasts = append([]past(nil), k.pasts[1:]...)
	}
}

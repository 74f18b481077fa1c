// Package server measures how long Prepare takes over the life of a server that holds many
// conversations.
package server

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/internal/measure"
	"github.com/seed-c1b73e60/convo/bench/peer"
)

// A size is the number of conversations, and their window.
type size struct{ conversations, window int }

// atOnce is how many conversations are prepared at the same time.
const atOnce = 2

// A life is what the calls of Prepare took, on the clock, in ascending order.
type life struct {
	compacted, idle []time.Duration
}

// Write writes the table of the package.
func Write(w io.Writer, quick bool) error {
	sizes := []size{{500, 32_000}, {500, 200_000}}
	if quick {
		sizes = []size{{20, 32_000}}
	}
	var rows [][]string
	for _, s := range sizes {
		alone, err := live(s, 1)
		if err != nil {
			return err
		}
		together, err := live(s, atOnce)
		if err != nil {
			return err
		}
		for _, l := range []struct {
			name string
			life
		}{{"one at a time", alone}, {fmt.Sprintf("%d at a time", atOnce), together}} {
			unit := quantile(alone.compacted, 50)
			row := []string{fmt.Sprintf("**convo** %s conversations, window of %s, %s", measure.Count(s.conversations), measure.Count(s.window), l.name),
				measure.Count(len(l.idle)), measure.Time(float64(quantile(l.idle, 50))), measure.Time(float64(quantile(l.idle, 99)))}
			for _, at := range []int{50, 99, 100} {
				d := quantile(l.compacted, at)
				row = append(row, fmt.Sprintf("%s (%s)", measure.Time(float64(d)), measure.Ratio(float64(d), float64(unit))))
			}
			rows = append(rows, row)
		}
	}
	if _, err := fmt.Fprintf(w, "### Prepare over the life of a server\n\nEach conversation has filled most of its window, and makes turns of a question, Prepare and an answer until it has compacted once. The times are on the clock, from the call of Prepare until it returns. The factor compares with the median compaction of one at a time.\n\n"); err != nil {
		return err
	}
	return measure.Table(w, []string{"life", "calls with nothing to do", "p50", "p99", "compactions: p50", "p99", "max"}, rows)
}

// live has so many conversations make turns until each has compacted once.
func live(s size, atOnce int) (life, error) {
	all := make([]*talk, s.conversations)
	for i := range all {
		t, err := newTalk(s.window, i)
		if err != nil {
			return life{}, err
		}
		all[i] = t
	}
	lives, faults := make([]life, atOnce), make([]error, atOnce)
	var next atomic.Int64
	var wait sync.WaitGroup
	for i := range lives {
		wait.Go(func() {
			for at := int(next.Add(1)) - 1; at < len(all) && faults[i] == nil; at = int(next.Add(1)) - 1 {
				faults[i] = all[at].turns(&lives[i])
			}
		})
	}
	wait.Wait()
	var sum life
	for i, l := range lives {
		if faults[i] != nil {
			return life{}, faults[i]
		}
		sum.compacted, sum.idle = append(sum.compacted, l.compacted...), append(sum.idle, l.idle...)
	}
	slices.Sort(sum.compacted)
	slices.Sort(sum.idle)
	return sum, nil
}

// A talk is a conversation, whose texts begin at a number of their own.
type talk struct {
	h    *convo.History
	text func(int) string
	n    int
}

// newTalk returns a conversation that fills nine tenths of its limit.
func newTalk(window, i int) (*talk, error) {
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: window}})
	t := &talk{h: h, text: peer.Next(i)}
	for err == nil && h.Status().Upper < h.Status().Limit*9/10 {
		err = t.add()
	}
	return t, err
}

// add appends the next message.
func (t *talk) add() error {
	m := convo.Assistant(t.text(t.n))
	if peer.IsUser(t.n) {
		m = convo.User(t.text(t.n))
	}
	_, err := t.h.Append(m)
	t.n++
	return err
}

// turns makes turns until the conversation has compacted, and records what Prepare took.
func (t *talk) turns(l *life) error {
	for range 10_000 {
		for { // the answer, if one is due, and a question
			if err := t.add(); err != nil {
				return err
			}
			if peer.IsUser(t.n - 1) {
				break
			}
		}
		start := time.Now()
		_, r, err := t.h.Prepare(context.Background())
		took := time.Since(start)
		if err != nil {
			return err
		}
		if r.Outcome == convo.OutcomeApplied {
			l.compacted = append(l.compacted, took)
			return nil
		}
		l.idle = append(l.idle, took)
	}
	return peer.ErrIdle
}

// quantile returns the value that so many percent of the list do not exceed.
func quantile(list []time.Duration, percent int) time.Duration {
	if len(list) == 0 {
		return 0
	}
	return list[max((len(list)*percent+99)/100-1, 0)]
}

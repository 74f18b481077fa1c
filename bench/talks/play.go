package talks

import (
	"fmt"

	"github.com/seed-c1b73e60/convo/bench/peer"
)

// Budget is the limit of a request in tokens by len/4. It is about a third of a
// conversation.
const Budget = 2000

// A Tally counts the requests of many conversations.
type Tally struct {
	Requests, Trimmed                    int
	Broken                               int
	Unanswered, Orphans, Headless, Stale int // see verdict
	Refused                              int // requests that the library reported as too long
	Weight                               int // tokens of all trimmed requests
}

// Play runs many conversations through do, which does a job as [peer.Keeper.Do]
// does, and judges every request. If empty is set, some tool results are empty.
func Play(do func(peer.Job) ([]peer.Request, error), talks int, empty bool) (t Tally, err error) {
	for seed := range talks {
		list := Make(uint64(seed), empty)
		job := peer.Job{Messages: list, Limit: Budget, Measure: peer.MeasureLenFour, Summary: peer.Text}
		for i, m := range list {
			if m.Role == "user" || m.Role == "tool" && list[i+1].Role != "tool" {
				job.Asks = append(job.Asks, i+1)
			}
		}
		requests, err := do(job)
		if err != nil {
			return t, fmt.Errorf("conversation %d: %w", seed, err)
		}
		if len(requests) != len(job.Asks) {
			return t, fmt.Errorf("conversation %d: %d requests, want %d", seed, len(requests), len(job.Asks))
		}
		for i, r := range requests {
			t.count(r, list[:job.Asks[i]])
		}
	}
	return t, nil
}

// count judges a request that was made after the messages in said.
func (t *Tally) count(r peer.Request, said []peer.Message) {
	t.Requests++
	if r.TooLong {
		t.Refused++
		return
	}
	v := judge(r.View, said[len(said)-1])
	for _, c := range []struct {
		is bool
		n  *int
	}{{v.isBroken(), &t.Broken}, {v.unanswered, &t.Unanswered}, {v.orphan, &t.Orphans}, {v.headless, &t.Headless}, {v.stale, &t.Stale}} {
		if c.is {
			*c.n++
		}
	}
	if weight := peer.MeasureLenFour.WeighAll(r.View); weight < peer.MeasureLenFour.WeighAll(said) {
		t.Trimmed++
		t.Weight += weight
	}
}

package ops

import (
	"context"
	"runtime"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/peer"
)

var (
	ourUser  = convo.User(peer.Text)
	ourReply = convo.Assistant(peer.Text)
)

func ourMessage(i int) convo.Message {
	if peer.IsUser(i) {
		return ourUser
	}
	return ourReply
}

// bare returns options with which convo counts the text of a message and nothing
// else, as the other libraries do. t may be nil.
func bare(t convo.Tokenizer) convo.Options {
	return convo.Options{Tokenizer: t, Overheads: convo.Overheads{Message: -1, Call: -1, Result: -1}}
}

// byLenFour returns bare options with len/4 as the tokenizer. The oldest messages are
// dropped, as by the other libraries, and not summarised.
func byLenFour() convo.Options {
	o := bare(convo.TokenizerFunc(peer.LenFour))
	o.Strategy = convo.Truncate{}
	return o
}

// historyOf returns a History of n messages.
func historyOf(n int, opts convo.Options) (*convo.History, error) {
	h, err := convo.New(&opts)
	if err != nil {
		return nil, err
	}
	batch := make([]convo.Message, n)
	for i := range batch {
		batch[i] = ourMessage(i)
	}
	_, err = h.Append(batch...)
	return h, err
}

// limitsFor returns limits that n messages just fit. convo compares limits with
// Upper, a bound above the estimate, so the limit is read from a History of n
// messages.
func limitsFor(n int, opts convo.Options) (convo.Limits, error) {
	h, err := historyOf(n, opts)
	if err != nil {
		return convo.Limits{}, err
	}
	return convo.Limits{High: h.Status().Upper}, nil
}

func ourAppend(n int, opts convo.Options) peer.Case {
	return peer.Case{Units: n, Max: 1 + 1_000_000/n, New: func(k int) (func(int) error, error) {
		fresh := make([]*convo.History, k)
		for i := range fresh {
			h, err := convo.New(&opts)
			if err != nil {
				return nil, err
			}
			fresh[i] = h
		}
		return func(i int) error {
			h := fresh[i]
			for j := range n {
				if _, err := h.Append(ourMessage(j)); err != nil {
					return err
				}
			}
			return nil
		}, nil
	}}
}

func ourCheck(n int, opts convo.Options) peer.Case {
	return peer.Case{New: func(int) (func(int) error, error) {
		limits, err := limitsFor(n+1, opts)
		if err != nil {
			return nil, err
		}
		opts.Limits = limits
		h, err := historyOf(n, opts)
		ctx := context.Background()
		return func(int) error {
			r, err := h.CompactIfNeeded(ctx)
			if err == nil && r.Outcome != convo.OutcomeNotNeeded {
				err = peer.ErrOver
			}
			return err
		}, err
	}}
}

// ourStep is one turn: the user's message, Prepare, the answer.
func ourStep(n int, opts convo.Options) peer.Case {
	return peer.Case{Step: max(n/4, 1), New: func(k int) (func(int) error, error) {
		limits, err := limitsFor(n, opts)
		if err != nil {
			return nil, err
		}
		opts.Limits = limits
		h, err := historyOf(n, opts)
		ctx := context.Background()
		reductions := 0
		return func(i int) error {
			if _, err := h.Append(ourUser); err != nil {
				return err
			}
			snap, r, err := h.Prepare(ctx)
			if err != nil {
				return err
			}
			runtime.KeepAlive(snap)
			if r.Outcome == convo.OutcomeApplied {
				reductions++
			}
			if got := snap.Len(); got > n || i == k-1 && k > n && reductions == 0 {
				return peer.WrongSize(got)
			}
			_, err = h.Append(ourReply)
			return err
		}, err
	}}
}

func ourTrim(n int, opts convo.Options) peer.Case {
	return peer.Case{Max: 1 + 2_000_000/n, New: func(k int) (func(int) error, error) {
		opts.Strategy = convo.Truncate{}
		h, err := historyOf(n, opts)
		if err != nil {
			return nil, err
		}
		forks := make([]*convo.History, k)
		for i := range forks {
			if forks[i], err = convo.Restore(h.Snapshot(), &opts); err != nil {
				return nil, err
			}
		}
		ctx := context.Background()
		return func(i int) error {
			r, err := forks[i].Compact(ctx, "")
			if err == nil && r.Outcome != convo.OutcomeApplied {
				err = peer.ErrIdle
			}
			if got := forks[i].Len(); err == nil && (got > n/2 || got < n/4) {
				err = peer.WrongSize(got)
			}
			return err
		}, nil
	}}
}

// ourSnapshot takes a snapshot after each append. The time of the append is
// included. No History grows by more than a tenth.
func ourSnapshot(n int, opts convo.Options) peer.Case {
	share := max(n/10, 1)
	return peer.Case{Max: max(share, 2000), New: func(k int) (func(int) error, error) {
		list := make([]*convo.History, (k-1)/share+1)
		for i := range list {
			h, err := historyOf(n, opts)
			if err != nil {
				return nil, err
			}
			list[i] = h
		}
		return func(i int) error {
			h := list[i/share]
			if _, err := h.Append(ourMessage(n + i%share)); err != nil {
				return err
			}
			runtime.KeepAlive(h.Snapshot())
			return nil
		}, nil
	}}
}

func ourSame(n int, opts convo.Options) peer.Case {
	return peer.Case{New: func(int) (func(int) error, error) {
		h, err := historyOf(n, opts)
		return func(int) error { runtime.KeepAlive(h.Snapshot()); return nil }, err
	}}
}

func ourMessages(n int, opts convo.Options) peer.Case {
	return peer.Case{New: func(int) (func(int) error, error) {
		h, err := historyOf(n, opts)
		if err != nil {
			return nil, err
		}
		s := h.Snapshot()
		return func(int) error {
			list := s.Messages()
			if len(list) != n {
				return peer.WrongSize(len(list))
			}
			runtime.KeepAlive(list)
			return nil
		}, nil
	}}
}

package ops

import (
	"context"
	"runtime"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/peer"
	"github.com/seed-c1b73e60/convo/tiktoken"
)

// messages returns n messages, no two of which have the same text.
func messages(n int) []convo.Message {
	list := make([]convo.Message, n)
	for i, text := range peer.Texts(n) {
		if peer.IsUser(i) {
			list[i] = convo.User(text)
		} else {
			list[i] = convo.Assistant(text)
		}
	}
	return list
}

// The options of the rows. Each cell adds Limits. The row convo has nothing else.
func defaults() (convo.Options, error) { return convo.Options{}, nil }

func truncating() (convo.Options, error) {
	return convo.Options{Strategy: convo.Truncate{}}, nil
}

func exact() (convo.Options, error) {
	t, err := tiktoken.New("gpt-4o")
	return convo.Options{Tokenizer: t}, err
}

// byLenFour returns options with which convo counts a token for every four bytes of text, and
// nothing else, and drops the oldest messages without a summary.
func byLenFour() (convo.Options, error) {
	return convo.Options{
		Strategy:  convo.Truncate{},
		Tokenizer: convo.TokenizerFunc(peer.LenFour),
		Overheads: convo.Overheads{Message: -1, Call: -1, Result: -1},
	}, nil
}

// historyOf returns a History of n messages.
func historyOf(n int, opts convo.Options) (*convo.History, error) {
	h, err := convo.New(&opts)
	if err == nil {
		_, err = h.Append(messages(n)...)
	}
	return h, err
}

// fullOf returns a History whose window n messages fill, with more room, in messages.
func fullOf(n, more int, opts convo.Options) (*convo.History, error) {
	limits, err := limitsFor(n+more, opts)
	if err != nil {
		return nil, err
	}
	opts.Limits = limits
	return historyOf(n, opts)
}

// limitsFor returns limits that n messages just fit. convo compares limits with
// Upper, a bound above the estimate, so the limit is read from a History of n
// messages.
func limitsFor(n int, opts convo.Options) (convo.Limits, error) {
	h, err := historyOf(n, opts)
	if err != nil {
		return convo.Limits{}, err
	}
	return convo.Limits{Window: h.Status().Upper, Reserve: -1}, nil
}

func ourAppend(n int, opts convo.Options) peer.Case {
	return peer.Case{Units: n, Max: 1 + 1_000_000/n, New: func(k int) (func(int) error, error) {
		opts.Limits = convo.Limits{Window: 200 * n}
		fresh := make([]*convo.History, k)
		for i := range fresh {
			h, err := convo.New(&opts)
			if err != nil {
				return nil, err
			}
			fresh[i] = h
		}
		list := messages(n)
		return func(i int) error {
			for _, m := range list {
				if _, err := fresh[i].Append(m); err != nil {
					return err
				}
			}
			return nil
		}, nil
	}}
}

func ourCheck(n int, opts convo.Options) peer.Case {
	return peer.Case{New: func(int) (func(int) error, error) {
		h, err := fullOf(n, 1, opts)
		ctx := context.Background()
		return func(int) error {
			_, r, err := h.Prepare(ctx)
			if err == nil && r.Outcome != convo.OutcomeNotNeeded {
				err = peer.ErrOver
			}
			return err
		}, err
	}}
}

// ourStep is one turn: the user's message, Prepare, the answer. The first turn compacts, so
// that a round has whole cycles.
func ourStep(n int, opts convo.Options) peer.Case {
	return peer.Case{Step: max(n/4, 1), New: func(k int) (func(int) error, error) {
		h, err := fullOf(n, 0, opts)
		next := messages(n + 2*k)[n:]
		ctx := context.Background()
		reductions := 0
		return func(i int) error {
			if _, err := h.Append(next[2*i]); err != nil {
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
			if got := snap.Len(); got > n+n/10+2 || i == k-1 && k > n && reductions == 0 {
				return peer.WrongSize(got)
			}
			_, err = h.Append(next[2*i+1])
			return err
		}, err
	}}
}

// ourTrim is one compaction of a full window to half of it.
func ourTrim(n int, opts convo.Options) peer.Case {
	return peer.Case{Once: n > 100_000, Max: 1 + 200_000/n, New: func(k int) (func(int) error, error) {
		limits, err := limitsFor(n, opts)
		if err != nil {
			return nil, err
		}
		opts.Limits = limits
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
			if s := forks[i].Status(); err == nil && (s.Upper > s.Low || s.Upper < s.Low/2) {
				err = peer.WrongSize(forks[i].Len())
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
		next := messages(n + share)[n:]
		return func(i int) error {
			h := list[i/share]
			if _, err := h.Append(next[i%share]); err != nil {
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

package convo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
	"github.com/seed-c1b73e60/convo/logs"
)

// pair returns two Histories of one log that holds msgs.
func pair(t testing.TB, s convo.Store, opts *convo.Options, msgs ...convo.Message) (a, b *convo.History) {
	t.Helper()
	a = open(t, s, "k", opts)
	mustAppend(t, a, msgs...)
	save(t, a)
	return a, open(t, s, "k", opts)
}

func takeOver(t testing.TB, h *convo.History) (map[convo.ID]convo.ID, []convo.Message) {
	t.Helper()
	moved, refused, err := h.Reload(context.Background())
	require.NoError(t, err)
	return moved, refused
}

// linesOf returns the entries of a History as "ID text".
func linesOf(h *convo.History) (lines []string) {
	for _, e := range h.Snapshot().All() {
		lines = append(lines, fmt.Sprint(e.ID, " ", e.Message.Text()))
	}
	return lines
}

func TestReload_NothingNew(t *testing.T) {
	s := new(shelf)
	a, _ := pair(t, s, nil, convo.User("hello"))
	mustAppend(t, a, convo.Assistant("hi"))
	at := a.Snapshot()
	unchanged(t, a, func() {
		moved, refused := takeOver(t, a)
		assert.Empty(t, moved)
		assert.Empty(t, refused)
	})
	require.NoError(t, a.Rollback(at))
	unused := open(t, s, "unused", nil)
	takeOver(t, unused)
}

func TestReload_OwnMessagesGoBehind(t *testing.T) {
	s := new(shelf)
	a, b := pair(t, s, nil, convo.System("guide"), convo.User("1"), convo.Assistant("2"))
	mustAppend(t, a, convo.User("a3"), convo.Assistant("a4"))
	require.NoError(t, a.Pin(4))
	_, err := a.Apply(a.Snapshot(), convo.Edit{Drop: []convo.ID{2, 3}, Summary: &convo.Summary{Text: "before"}})
	require.NoError(t, err)
	save(t, a)

	c := callOf("c")
	mustAppend(t, b, convo.User("b3"), convo.Assistant("", c), convo.Result(c, "b5"), convo.Assistant("b6"))
	require.NoError(t, b.PinLast())
	require.NoError(t, b.Queue(convo.User("b7")))
	times := timesOf(b)
	require.ErrorAs(t, b.Save(t.Context()), new(*convo.ConflictError))
	moved, refused := takeOver(t, b)
	assert.Empty(t, refused)
	assert.Equal(t, map[convo.ID]convo.ID{4: 6, 5: 7, 6: 8, 7: 9, 8: 10}, moved)
	assert.Equal(t, []string{"1 guide", "4 a3", "5 a4", "6 b3", "7 ", "8 b5", "9 b6", "10 b7"}, linesOf(b))
	assert.Equal(t, []convo.ID{4, 9}, b.Snapshot().Pinned())
	for old, id := range moved {
		assert.Equal(t, times[old], timesOf(b)[id])
	}
	sum, _ := b.Snapshot().Summary()
	assert.Equal(t, "before", sum.Text)
	save(t, b)
	checkOpened(t, s, "k", nil, b)
}

func timesOf(h *convo.History) map[convo.ID]string {
	times := make(map[convo.ID]string)
	for _, e := range h.Snapshot().All() {
		times[e.ID] = e.Time.UTC().String()
	}
	return times
}

// Messages that no open call lets pass come back, and nothing of them stays.
func TestReload_Refused(t *testing.T) {
	s := new(shelf)
	a, b := pair(t, s, nil, convo.User("1"), convo.Assistant("2"))
	mustAppend(t, a, convo.User("a3"), convo.Assistant("", callOf("c")))
	save(t, a)
	mustAppend(t, b, convo.User("b3"), convo.Assistant("b4"), convo.User("b5"))
	_, refused := takeOver(t, b)
	var texts []string
	for _, m := range refused {
		texts = append(texts, m.Text())
	}
	assert.Equal(t, []string{"b3", "b4", "b5"}, texts)
	assert.Equal(t, linesOf(a), linesOf(b))
	assert.Zero(t, b.Status().Unsaved)
}

// Both began with the same system message; it is there once, and nothing is refused.
// What was released and came back does not make the log unreadable, and what was released
// and is appended again stays so.
func TestReload_Released(t *testing.T) {
	for _, tt := range []struct {
		name    string
		stored  convo.Message
		refused int
		unbound int
	}{
		{name: "refused", stored: convo.Assistant("", callOf("c")), refused: 3},
		{name: "appended again", stored: convo.Assistant("a2"), unbound: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := new(shelf)
			a, b := pair(t, s, nil, convo.User("1"))
			mustAppend(t, a, tt.stored)
			save(t, a)
			mustAppend(t, b, signed("b2"), convo.User("b3"), signed("b4"))
			convo.Release(b)
			_, refused := takeOver(t, b)
			assert.Len(t, refused, tt.refused)
			assert.Len(t, b.Snapshot().Unbound(), tt.unbound)
			require.NoError(t, b.Note("so that there is something to save"))
			save(t, b)
			checkOpened(t, s, "k", nil, b)
			assert.Len(t, open(t, s, "k", nil).Snapshot().Unbound(), tt.unbound)
		})
	}
}

// The answer to a request that was sent before a Reload is bound to what was sent.
func TestReload_AnswerUnderWay(t *testing.T) {
	for _, tt := range []struct {
		name   string
		theirs []convo.Message
		bound  bool
	}{
		{"behind the same", nil, true},
		{"behind messages of others", []convo.Message{convo.User("a1"), convo.Assistant("a2")}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := new(shelf)
			a, b := pair(t, s, nil, convo.System("guide"))
			require.NoError(t, a.Note("so that there is something to load"))
			mustAppend(t, a, tt.theirs...)
			save(t, a)
			mustAppend(t, b, convo.User("b1"), signed("b2"), convo.User("b3"))
			_, _, err := b.Prepare(t.Context())
			require.NoError(t, err)
			_, refused := takeOver(t, b)
			assert.Empty(t, refused)
			id := mustAppend(t, b, signed("b4"))
			assert.Equal(t, tt.bound, b.Snapshot().Bound(id))
		})
	}
}

// Tags are part of what a request shows, and their key may change with a Reload: what was
// made of a request with the other key is not bound.
func TestReload_AnotherTagKey(t *testing.T) {
	for _, tt := range []struct {
		name    string
		key     string
		unbound int
	}{
		{"the same key", "one", 0},
		{"another key", "two", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := new(shelf)
			a := open(t, s, "k", &convo.Options{TagKey: "one"})
			b := open(t, s, "k", &convo.Options{TagKey: tt.key})
			mustAppend(t, a, convo.System("guide"))
			save(t, a)
			from := func(author, text string) convo.Message {
				m := convo.User(text)
				m.Author = author
				return m
			}
			mustAppend(t, b, convo.System("guide"), from("ann", "b1"), signed("b2"), from("bob", "b3"))
			_, _, err := b.Prepare(t.Context())
			require.NoError(t, err)
			_, refused := takeOver(t, b)
			assert.Empty(t, refused)
			mustAppend(t, b, signed("b4"))
			assert.Len(t, b.Snapshot().Unbound(), tt.unbound)
			save(t, b)
			checkOpened(t, s, "k", nil, b)
		})
	}
}

func TestReload_SystemMessages(t *testing.T) {
	s := new(shelf)
	a, b := open(t, s, "k", nil), open(t, s, "k", nil)
	mustAppend(t, a, convo.System("guide"), convo.User("a"), convo.Assistant("A"))
	mustAppend(t, b, convo.System("guide"), convo.User("b"))
	save(t, a)
	require.ErrorAs(t, b.Save(t.Context()), new(*convo.ConflictError))
	_, refused := takeOver(t, b)
	assert.Empty(t, refused)
	assert.Equal(t, []string{"1 guide", "2 a", "3 A", "4 b"}, linesOf(b))
	save(t, b)
	takeOver(t, a)
	assert.Equal(t, pictureOf(t, b.Snapshot()), pictureOf(t, a.Snapshot()), "the key is that of the log")
}

// What an unsaved edit took comes back; what a rollback took stays away.
func TestReload_EditsAndRollbacks(t *testing.T) {
	s := new(shelf)
	a, b := pair(t, s, convoRelaxed(), convo.User("1"), convo.Assistant("2"))
	mustAppend(t, b, convo.User("b3"), convo.Assistant("b4"))
	at := b.Snapshot()
	mustAppend(t, b, convo.User("gone"))
	require.NoError(t, b.Rollback(at))
	mustAppend(t, b, convo.User("b6"))
	r, err := b.Apply(b.Snapshot(), convo.Edit{Drop: []convo.ID{1, 2, 3, 4}, Summary: &convo.Summary{Text: "all"}})
	require.NoError(t, err)
	mustAppend(t, a, convo.User("a3"))
	save(t, a)
	takeOver(t, b)
	assert.Equal(t, []string{"1 1", "2 2", "3 a3", "6 b3", "7 b4", "8 b6"}, linesOf(b), "5 was taken back")
	_, ok := b.Snapshot().Summary()
	assert.False(t, ok)
	assert.ErrorIs(t, b.Undo(r), convo.ErrStale)
}

// What was forgotten before a Reload need not be remembered: no older edit can be undone.
func TestReload_Forgotten(t *testing.T) {
	s := new(shelf)
	a, b := pair(t, s, convoRelaxed(), convo.User("1"), convo.Assistant("2"), convo.User("3"), convo.Assistant("4"))
	older := apply(t, b, rewriteOf(1, convo.Text("one")))
	apply(t, b, forgetting(2, convo.Text("two")))
	require.Equal(t, 1, convo.Forgettings(b))
	takeOver(t, b)
	require.Equal(t, 1, convo.Forgettings(b), "nothing was new")
	mustAppend(t, a, convo.User("a5"))
	save(t, a)
	takeOver(t, b)
	assert.Zero(t, convo.Forgettings(b))
	assert.ErrorIs(t, b.Undo(older), convo.ErrStale)
}

// The IDs of messages that were taken back before they were saved name nothing else later.
func TestReload_TakenBack(t *testing.T) {
	s := new(shelf)
	a, b := pair(t, s, convoRelaxed(), convo.User("1"), convo.Assistant("2"))
	mustAppend(t, b, convo.User("gone"), convo.Assistant("gone"))
	require.NoError(t, b.RewindTo(2))
	mustAppend(t, a, convo.User("a3"))
	save(t, a)
	takeOver(t, b)
	require.ErrorIs(t, b.RewindTo(4), convo.ErrStale)
	mustAppend(t, b, convo.User("b5"))
	assert.Equal(t, []string{"1 1", "2 2", "3 a3", "5 b5"}, linesOf(b))
	require.ErrorIs(t, b.RewindTo(4), convo.ErrStale)
	save(t, b)
	assert.Equal(t, linesOf(b), linesOf(open(t, s, "k", nil)))
}

func convoRelaxed() *convo.Options { return &convo.Options{Roles: convo.Relaxed()} }

// Snapshots from before a Reload that changed something are only for reading.
func TestReload_Epoch(t *testing.T) {
	s := new(shelf)
	strategy := make(chan convo.Edit)
	planning := make(chan *convo.Snapshot)
	opts := convoRelaxed()
	opts.Strategy = convo.StrategyFunc(func(_ context.Context, at *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
		planning <- at
		return <-strategy, nil
	})
	a, b := pair(t, s, opts, convo.User("1"), convo.Assistant("2"), convo.User("3"), convo.Assistant("4"), convo.User("5"))
	at := b.Snapshot()
	compacted := make(chan error)
	go func() {
		_, err := b.Compact(t.Context(), "")
		compacted <- err
	}()
	<-planning
	answered := make(chan error)
	sent := make(chan struct{})
	proceed := make(chan struct{})
	go func() {
		_, err := b.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
			close(sent)
			<-proceed
			return convo.Reply{Messages: []convo.Message{convo.Assistant("late")}}, nil
		})
		answered <- err
	}()
	<-sent
	mustAppend(t, a, convo.Assistant("6"))
	save(t, a)
	takeOver(t, b)

	_, err := b.Apply(at, convo.Edit{Drop: []convo.ID{1}})
	assert.ErrorIs(t, err, convo.ErrStale)
	assert.ErrorContains(t, err, "Reload")
	_, err = b.SplicePrefix(at, 1, "")
	assert.ErrorIs(t, err, convo.ErrStale)
	assert.ErrorIs(t, b.Rollback(at), convo.ErrStale)
	assert.ErrorIs(t, b.RecordUsage(at, convo.Usage{Input: 10}), convo.ErrStale)
	_, _, err = b.Recover(t.Context(), at, errors.New("prompt is too long: 5000 tokens > 4000 maximum"))
	assert.ErrorIs(t, err, convo.ErrStale)

	strategy <- convo.Edit{Drop: []convo.ID{1, 2}} // made from a stale snapshot: another attempt
	select {
	case next := <-planning:
		assert.Equal(t, 6, next.Len())
		strategy <- convo.Edit{Drop: []convo.ID{1, 2}}
		assert.NoError(t, <-compacted)
	case <-compacted:
		t.Error("an edit from before a Reload was applied")
	}
	close(proceed)
	assert.ErrorIs(t, <-answered, convo.ErrStale)
	assert.Equal(t, []string{"3 3", "4 4", "5 5", "6 6"}, linesOf(b))
	require.NoError(t, b.Rollback(b.Snapshot()))
}

// Where an old backup was put back, what it lacks is appended again.
func TestReload_Backup(t *testing.T) {
	s := new(shelf)
	_, b := pair(t, s, nil, convo.User("1"), convo.Assistant("2"))
	backup := s.log("k")
	mustAppend(t, b, convo.User("3"), convo.Assistant("4"))
	save(t, b)
	s.logs["k"] = backup
	mustAppend(t, b, convo.User("5"))
	require.ErrorAs(t, b.Save(t.Context()), new(*convo.ConflictError))
	_, refused := takeOver(t, b)
	assert.Empty(t, refused)
	assert.Equal(t, []string{"1 1", "2 2", "3 3", "4 4", "5 5"}, linesOf(b))
	save(t, b)
	checkOpened(t, s, "k", nil, b)
}

// An answer does not go behind the message of another, though that has got the ID of
// the message that it is for.
func TestReload_AnswerToAnotherMessage(t *testing.T) {
	s := new(shelf)
	a, b := pair(t, s, nil, convo.User("1"), convo.Assistant("2"))
	mustAppend(t, a, convo.User("a3"))
	mustAppend(t, b, convo.User("b3"))
	save(t, a)
	_, err := b.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		takeOver(t, b)
		return convo.Reply{Messages: []convo.Message{convo.Assistant("to b3")}}, nil
	})
	assert.ErrorIs(t, err, convo.ErrStale)
	assert.Equal(t, []string{"1 1", "2 2", "3 a3", "4 b3"}, linesOf(b), "both questions wait for an answer")

	s, c := new(shelf), callOf("c")
	a, b = pair(t, s, nil, convo.User("1"), convo.Assistant("", c))
	mustAppend(t, a, convo.Result(c, "a3"))
	mustAppend(t, b, convo.Result(c, "b3"))
	save(t, a)
	_, err = b.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		_, refused := takeOver(t, b)
		assert.Len(t, refused, 1)
		return convo.Reply{Messages: []convo.Message{convo.Assistant("to b3")}}, nil
	})
	assert.ErrorIs(t, err, convo.ErrStale)
	assert.Equal(t, 3, b.Len(), "a3 waits for an answer")
}

// The estimate goes on from the last report, for entries that are the same.
func TestReload_KeepsTheCalibration(t *testing.T) {
	s := new(shelf)
	c := callOf("c")
	a, b := pair(t, s, bare(), convo.User("hello there"), convo.Assistant("", c), convo.Result(c, "road"), convo.Assistant("well met"), convo.User("so"), convo.Assistant("no"))
	_, err := b.Apply(b.Snapshot(), convo.Edit{Clear: []convo.Clear{{ID: 3}}})
	require.NoError(t, err)
	save(t, b)
	takeOver(t, a)
	require.NoError(t, b.RecordUsage(b.Snapshot(), convo.Usage{Input: 500}))
	mustAppend(t, a, convo.User("x"))
	save(t, a)
	takeOver(t, b)
	assert.Equal(t, 500, b.Tokens().Measured)
	assert.NotZero(t, b.Status().Unsaved, "the report is in no record yet")
	save(t, b)
	checkOpened(t, s, "k", bare(), b)
}

// A record that was stored although Save failed is recognised, also when others have
// saved since, and when it was pruned away behind a full record.
func TestReload_InDoubt(t *testing.T) {
	for _, prune := range []bool{false, true} {
		for _, how := range []fault{failsBefore, failsAfter} {
			s := new(shelf)
			_, b := pair(t, s, convoRelaxed(), convo.User("1"))
			mustAppend(t, b, convo.User("b2"))
			s.fault = func(convo.Record) fault { return how }
			require.ErrorIs(t, b.Save(t.Context()), errDisk)
			s.fault = nil
			a := open(t, s, "k", convoRelaxed())
			mustAppend(t, a, convo.User("a"))
			save(t, a)
			if prune {
				require.NoError(t, a.Prune(t.Context(), noTime))
			}
			mustAppend(t, b, convo.User("b3"))
			require.ErrorAs(t, b.Save(t.Context()), new(*convo.ConflictError))
			moved, refused := takeOver(t, b)
			assert.Empty(t, refused)
			if how == failsAfter {
				assert.Equal(t, []string{"1 1", "2 b2", "3 a", "4 b3"}, linesOf(b))
				assert.Equal(t, map[convo.ID]convo.ID{3: 4}, moved)
			} else {
				assert.Equal(t, []string{"1 1", "2 a", "3 b2", "4 b3"}, linesOf(b))
			}
			save(t, b)
			checkOpened(t, s, "k", convoRelaxed(), b)
		}
	}
}

// Several Histories on one log, of which some prune it, and a Store that fails and lies:
// each message that was appended is in the archive once, in the order of its writer, or
// was pruned. All see the same conversation in the end.
func TestReload_LosesNothing(t *testing.T) {
	for seed := range uint64(long.Or(15, 60)) {
		rng := rand.New(rand.NewPCG(seed, 7))
		s := new(shelf)
		var appended [3][]string
		var hs [3]*convo.History
		prunes := &unprunable{shelf: s}
		for i := range hs {
			opts := convoRelaxed()
			opts.PruneAbove = []int64{0, 1, 0, 3000}[(int(seed)+i)%4]
			hs[i] = open(t, prunes, "k", opts)
		}
		s.fault = func(convo.Record) fault {
			if rng.IntN(3) > 0 {
				return failsNever
			}
			return fault(1 + rng.IntN(3))
		}
		sync := func(h *convo.History) error {
			err := h.Save(t.Context())
			if errors.As(err, new(*convo.ConflictError)) {
				_, refused := takeOver(t, h)
				require.Empty(t, refused)
			}
			return err
		}
		for n := range 120 {
			i := rng.IntN(len(hs))
			h := hs[i]
			prunes.fails = n%5 == 0
			switch rng.IntN(12) {
			case 0, 1, 2, 3, 4:
				text := fmt.Sprintf("w%d-%d ", i, n)
				appended[i] = append(appended[i], text)
				if h.Len() > 0 && rng.IntN(2) == 0 {
					mustAppend(t, h, convo.Assistant(text))
				} else {
					mustAppend(t, h, convo.User(text))
				}
			case 5, 6, 7, 8:
				_ = sync(h)
			case 9:
				s.land()
			case 10:
				_, err := h.SplicePrefix(h.Snapshot(), h.Len()/2, fmt.Sprint("sum ", n))
				require.NoError(t, err)
			case 11:
				if rng.IntN(4) == 0 && h.Status().Unsaved == 0 && h.Prune(t.Context(), noTime) != nil {
					continue
				}
			}
		}
		s.fault, prunes.fails = nil, false
		s.land()
		for range 3 {
			for _, h := range hs {
				for sync(h) != nil {
				}
			}
		}
		for _, h := range hs {
			takeOver(t, h)
			require.Equal(t, pictureOf(t, hs[0].Snapshot()), pictureOf(t, h.Snapshot()))
		}
		checkOpened(t, s, "k", convoRelaxed(), hs[2])
		var all, gone strings.Builder
		for x, err := range hs[0].Archive(t.Context()) {
			require.NoError(t, err)
			if x.Entry != nil {
				all.WriteString(x.Entry.Message.Text())
			}
			if x.Gone != nil {
				fmt.Fprint(&gone, x.Gone)
			}
		}
		for i := range appended {
			rest := all.String()
			for _, text := range appended[i] {
				if gone.Len() > 0 && !strings.Contains(rest, text) && !strings.Contains(all.String(), text) {
					continue // pruned
				}
				_, after, ok := strings.Cut(rest, text)
				require.True(t, ok, "seed %d: %q is not in %q", seed, text, all.String())
				require.Equal(t, 1, strings.Count(all.String(), text), "seed %d: %q", seed, text)
				rest = after
			}
		}
	}
}

// Save, Reload, Append and compactions may overlap, also if the log is pruned.
func TestReload_Races(t *testing.T) {
	for _, bound := range []int64{0, 2000} {
		t.Run(fmt.Sprint("pruned above ", bound), func(t *testing.T) { racesOf(t, bound) })
	}
}

func racesOf(t *testing.T, bound int64) {
	s, opts := new(shelf), convoRelaxed()
	opts.PruneAbove = bound
	a, b := pair(t, s, opts, convo.User("1"))
	var wg sync.WaitGroup
	for i, h := range []*convo.History{a, b, a, b} {
		wg.Go(func() {
			for n := range 40 {
				_, err := h.Append(convo.User(fmt.Sprintf("m%d-%d ", i, n)))
				assert.NoError(t, err)
				if errors.As(h.Save(context.Background()), new(*convo.ConflictError)) {
					_, refused, err := h.Reload(context.Background())
					assert.NoError(t, err)
					assert.Empty(t, refused)
				}
				_ = h.Status()
				if n%10 == 9 {
					_, _ = h.SplicePrefix(h.Snapshot(), 10, "sum")
				}
			}
		})
	}
	wg.Wait()
	for a.Save(t.Context()) != nil {
		takeOver(t, a)
	}
	for b.Save(t.Context()) != nil {
		takeOver(t, b)
	}
	var all strings.Builder
	for x, err := range b.Archive(t.Context()) {
		require.NoError(t, err)
		if x.Entry != nil {
			all.WriteString(x.Entry.Message.Text())
		}
	}
	for i := range 4 {
		for n := range 40 {
			there := strings.Count(all.String(), fmt.Sprintf("m%d-%d ", i, n))
			if bound == 0 {
				assert.Equal(t, 1, there)
			}
			assert.LessOrEqual(t, there, 1)
		}
	}
	size, opens := logSize(s.log("k"))
	assert.True(t, bound == 0 || size <= max(bound, opens), "%d bytes", size)
}

// After an old backup was put back, a message that was rewritten comes in as it
// stands, and its original is still known.
func TestReload_BackupBeforeARewrite(t *testing.T) {
	ctx := t.Context()
	var s, backup convotest.MemStore
	h := open(t, &s, "k", bare())
	mustAppend(t, h, convo.User("1"), convo.Assistant("2"), convo.User("3"))
	save(t, h)
	require.NoError(t, logs.Copy(ctx, &backup, "k", &s, "k"))
	mustAppend(t, h, convo.Assistant("secret"), convo.User("5"))
	save(t, h)
	apply(t, h, rewriteOf(4, convo.Text("4")))
	save(t, h)
	require.NoError(t, s.Delete(ctx, "k"))
	require.NoError(t, logs.Copy(ctx, &s, "k", &backup, "k"))
	_, refused := takeOver(t, h)
	assert.Empty(t, refused)
	assert.Equal(t, []string{"1 1", "2 2", "3 3", "4 4", "5 5"}, linesOf(h))
	save(t, h)
	assert.Equal(t, linesOf(h), linesOf(open(t, &s, "k", bare())))
}

// A message that comes into another turn weighs what it weighs there: reasoning is
// sent back in a turn with tool calls.
func TestReload_ReasoningInAnotherTurn(t *testing.T) {
	opts := bare()
	opts.Overheads.Reasoning = convo.ReplayTools
	opts.Roles = convo.Relaxed()
	thought := thoughts.In(convo.Assistant("answer"), convo.Reasoning{Text: "one two three four five"})
	call := callOf("c")
	round := []convo.Message{convo.Assistant("", call), convo.Result(call, "r")}
	for _, tt := range []struct {
		name         string
		first        []convo.Message
		theirs, ours []convo.Message
	}{
		{"without calls", append([]convo.Message{convo.User("1")}, round...), []convo.Message{convo.User("theirs")}, []convo.Message{thought}},
		{"with calls", []convo.Message{convo.User("1")}, append([]convo.Message{convo.User("theirs")}, round...), []convo.Message{thought}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s convotest.MemStore
			a, b := pair(t, &s, opts, tt.first...)
			mustAppend(t, b, tt.theirs...)
			save(t, b)
			mustAppend(t, a, tt.ours...)
			takeOver(t, a)
			save(t, a)
			c := open(t, &s, "k", opts)
			require.Equal(t, linesOf(c), linesOf(a))
			for i, e := range c.Snapshot().All() {
				own, _ := a.Snapshot().At(i)
				assert.Equal(t, e.Tokens, own.Tokens, "entry %d", i)
			}
			assert.Equal(t, c.Tokens(), a.Tokens())
		})
	}
}

// What Options.Repair has made of stored entries is not appended again.
func TestReload_Repaired(t *testing.T) {
	strict := &convo.Options{Repair: func(*convo.SnapshotError) {}}
	own := []convo.Message{convo.User("mine"), convo.Assistant("answer")}
	for _, tt := range []struct {
		name  string
		do    func(t *testing.T, h *convo.History)
		lines []string
		moved map[convo.ID]convo.ID
	}{
		{name: "nothing new", moved: map[convo.ID]convo.ID{}},
		{
			name:  "own messages",
			do:    func(t *testing.T, h *convo.History) { mustAppend(t, h, own...) },
			lines: []string{"11 mine", "12 answer"}, moved: map[convo.ID]convo.ID{7: 11, 8: 12},
		},
		{
			name: "an edit that takes repaired entries",
			do: func(t *testing.T, h *convo.History) {
				mustAppend(t, h, own...)
				apply(t, h, convo.Edit{Drop: []convo.ID{2, 5, 6}})
			},
			lines: []string{"11 mine", "12 answer"}, moved: map[convo.ID]convo.ID{7: 11, 8: 12},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := new(shelf)
			a := open(t, s, "k", nil)
			mustAppend(t, a, convo.User("1"), convo.Assistant("", callOf("c")), convo.Result(callOf("c"), "r"), convo.Assistant("3"))
			save(t, a)
			loseResult(s, "k")
			b := open(t, s, "k", strict)
			require.Equal(t, []string{"1 1", "2 ", "5 no result", "6 3"}, linesOf(b))
			if tt.do != nil {
				tt.do(t, b)
			}
			mustAppend(t, a, convo.User("theirs"), convo.Assistant("5"))
			save(t, a)
			moved, refused := takeOver(t, b)
			assert.Empty(t, refused)
			assert.Equal(t, tt.moved, moved)
			assert.Equal(t, append([]string{"1 1", "2 ", "7 no result", "8 3", "9 theirs", "10 5"}, tt.lines...), linesOf(b))
			require.NoError(t, a.SetMeta("title", ""))
			save(t, a)
			takeOver(t, b)
			assert.Equal(t, append([]string{"1 1", "2 ", "7 no result", "8 3", "9 theirs", "10 5"}, tt.lines...), linesOf(b))
			save(t, b)
			checkOpened(t, s, "k", nil, b)
		})
	}
}

// A queued message stays one when the conversation had to be repaired.
func TestReload_RepairedQueue(t *testing.T) {
	deliver := func(t *testing.T, h *convo.History) {
		_, err := h.AnswerOpenCalls("none")
		require.NoError(t, err)
		mustAppend(t, h, convo.Assistant("ok"))
	}
	for _, tt := range []struct {
		name      string
		delivered bool // before Reload
	}{
		{name: "in the queue"},
		{name: "delivered", delivered: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := new(shelf)
			a := open(t, s, "k", nil)
			mustAppend(t, a, convo.User("1"), convo.Assistant("", callOf("d")), convo.Result(callOf("d"), "2"), convo.Assistant("", callOf("c")))
			require.NoError(t, a.Queue(convo.User("q1"), convo.User("q2")))
			save(t, a)
			loseResult(s, "k")
			b := open(t, s, "k", &convo.Options{Repair: func(*convo.SnapshotError) {}})
			require.NoError(t, b.Queue(convo.User("own")))
			if tt.delivered {
				deliver(t, b)
			}
			for _, title := range []string{"one", "two"} {
				require.NoError(t, a.SetMeta(title, ""))
				save(t, a)
				_, refused := takeOver(t, b)
				assert.Empty(t, refused)
			}
			if !tt.delivered {
				assert.Equal(t, 3, b.Status().Queued)
				deliver(t, b)
			}
			assert.Zero(t, b.Status().Queued)
			save(t, b)
			var texts []string
			for _, m := range b.Snapshot().Messages() {
				texts = append(texts, m.Text())
			}
			for _, text := range []string{"q1", "q2", "own"} {
				assert.Equal(t, 1, strings.Count(strings.Join(texts, " "), text), "%q in %q", text, texts)
			}
			checkOpened(t, s, "k", nil, b)
		})
	}
}

// One History repairs what the other saves: no message is there twice, and none of the
// own ones is lost but those that Reload returns.
func TestReload_RepairedLosesNothing(t *testing.T) {
	seeds := long.Or(60, 300)
	var reloads, repairs, refusals int
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 7))
		s := new(shelf)
		a, _ := pair(t, s, convoRelaxed(), convo.User("start"), convo.Assistant("", callOf("z")), convo.Result(callOf("z"), "z"))
		loseResult(s, "k")
		b := open(t, s, "k", &convo.Options{Repair: func(*convo.SnapshotError) { repairs++ }})
		own := make(map[string]bool)
		step := func(h *convo.History, text string) {
			var err error
			switch rng.IntN(8) {
			case 0, 1, 2:
				_, err = h.Append(convo.User(text))
			case 3, 4:
				_, err = h.Append(convo.Assistant(text))
			case 5:
				_, err = h.Append(convo.Assistant(text, callOf(fmt.Sprint("c", rng.IntN(2))), callOf("d")))
			case 6:
				_, err = h.Append(convo.Result(callOf([]string{"c0", "c1", "d"}[rng.IntN(3)]), text))
			case 7:
				err = h.Queue(convo.User(text))
			}
			if h == b && err == nil {
				own[text] = true
			}
		}
		sync := func(h *convo.History) {
			if h.Save(t.Context()) == nil {
				return
			}
			reloads++
			_, refused := takeOver(t, h)
			for _, m := range refused {
				refusals++
				delete(own, m.Text())
			}
			if rng.IntN(2) == 0 {
				save(t, h)
			}
		}
		for n := range 40 {
			h := []*convo.History{a, b}[rng.IntN(2)]
			if rng.IntN(3) == 0 {
				sync(h)
			} else {
				step(h, fmt.Sprintf("message %d.", n))
			}
			var all strings.Builder
			for _, m := range b.Snapshot().Messages() {
				all.WriteString(m.Text())
			}
			data, err := json.Marshal(b.Snapshot())
			require.NoError(t, err)
			_, queue, _ := strings.Cut(string(data), `"queue":`)
			all.WriteString(queue)
			for i := range n + 1 {
				text := fmt.Sprintf("message %d.", i)
				count := strings.Count(all.String(), text)
				require.LessOrEqual(t, count, 1, "seed %d: %q in %s", seed, text, &all)
				require.False(t, own[text] && count == 0, "seed %d: %q is not in %s", seed, text, &all)
			}
		}
	}
	assert.Greater(t, reloads, seeds/3)
	assert.Greater(t, repairs, seeds/3)
	assert.Greater(t, refusals, seeds/3)
}

func TestReload_OldSnapshots(t *testing.T) {
	s := new(shelf)
	a, b := pair(t, s, nil, convo.User("1"), convo.Assistant("2"), convo.User("3"))
	at := b.Snapshot()
	mustAppend(t, a, convo.Assistant("theirs"), convo.User("5"))
	save(t, a)
	takeOver(t, b)
	for name, try := range map[string]func() error{
		"Apply":        func() error { _, err := b.Apply(at, convo.Edit{Drop: []convo.ID{1}}); return err },
		"SplicePrefix": func() error { _, err := b.SplicePrefix(at, 1, "sum"); return err },
		"Rollback":     func() error { return b.Rollback(at) },
		"RecordUsage":  func() error { return b.RecordUsage(at, convo.Usage{Input: 9}) },
	} {
		unchanged(t, b, func() { assert.ErrorIs(t, try(), convo.ErrStale, name) })
	}
}

// Messages that were queued and came in one run go together, although the policy allows
// none of them alone.
func TestReload_QueuedRun(t *testing.T) {
	s := new(shelf)
	a, b := pair(t, s, nil, convo.User("1"), convo.Assistant("2"))
	require.NoError(t, a.SetMeta("title", ""))
	save(t, a)
	mustAppend(t, b, convo.User("3"))
	require.NoError(t, b.Queue(convo.User("4"), convo.User("5"), convo.User("6")))
	mustAppend(t, b, convo.Assistant("answer"))
	_, refused := takeOver(t, b)
	assert.Empty(t, refused)
	texts := textsOf(b.Snapshot())
	assert.Equal(t, []string{"1", "2", "3", "answer", "4", "5", "6"}, texts)
	save(t, b)
	checkOpened(t, s, "k", nil, b)
}

// A result that is refused comes back whole, although it was cut when it was appended.
func TestReload_RefusedWhole(t *testing.T) {
	s := new(shelf)
	opts := bare()
	opts.MaxResult = 64
	c := callOf("c")
	a := open(t, s, "k", opts)
	mustAppend(t, a, convo.User("1"), convo.Assistant("", c))
	save(t, a)
	b := open(t, s, "k", opts)
	mustAppend(t, a, convo.Result(c, "short"))
	save(t, a)
	long := strings.Repeat("long ", 40)
	mustAppend(t, b, convo.Result(c, long))
	_, refused := takeOver(t, b)
	require.Len(t, refused, 1)
	assert.Equal(t, convo.ToolResult{CallID: "c", Name: "tool", Parts: []convo.Part{convo.Text(long)}}, refused[0].Parts[0])
}

// A limit that a provider has named for one model says nothing of the model that Reload
// brings.
func TestReload_AnotherModelThanTheOneWithALimit(t *testing.T) {
	s := new(shelf)
	a, b := pair(t, s, windowOf(10_000, nil), convo.User("1"), convo.Assistant(strings.Repeat("x", 8500)), convo.User("2"))
	whole := b.Status().Limit
	_, _, _ = b.Recover(t.Context(), b.Snapshot(), errors.New("this model's maximum context length is 8000 tokens, however you requested 9000 tokens"))
	require.Less(t, b.Status().Limit, whole)
	require.NoError(t, a.SetModel("another", convo.Limits{}))
	save(t, a)
	takeOver(t, b)
	require.Equal(t, "another", b.Snapshot().Model())
	assert.Equal(t, whole, b.Status().Limit)
}

// A stored limit is not that of another model, and takes no precedence over one that was learned since.
func TestReload_KeepsTheLimit(t *testing.T) {
	learn := func(h *convo.History, limit int) {
		_, _, _ = h.Recover(t.Context(), h.Snapshot(), fmt.Errorf("this model's maximum context length is %d tokens, however you requested 9000 tokens", limit))
	}
	for name, change := range map[string]func(h *convo.History) error{
		"another model": func(h *convo.History) error { return h.SetModel("another", convo.Limits{}) },
		"another limit": func(h *convo.History) error { learn(h, 7500); return nil },
	} {
		s := new(shelf)
		a, b := pair(t, s, windowOf(10_000, nil), convo.User("1"), convo.Assistant(strings.Repeat("x", 8500)), convo.User("2"))
		whole := a.Status().Limit
		learn(a, 8000)
		require.Less(t, a.Status().Limit, whole)
		save(t, a)
		require.NoError(t, change(b))
		want := b.Status().Limit
		takeOver(t, b)
		assert.Equal(t, want, b.Status().Limit, name)
	}
}

// Of two writers, one cannot know for long what was stored of what it saves, and some
// of it comes to be stored late, when it may have been forgotten. The other saves
// without an error. Each message of both is in the log once in the end.
func TestReload_InDoubtForLong(t *testing.T) {
	for seed := range uint64(long.Or(40, 300)) {
		rnd := rand.New(rand.NewPCG(seed, 12))
		s := new(shelf)
		a := &doubter{t: t, rnd: rnd, h: open(t, s, "k", convoRelaxed())}
		b := &doubter{t: t, rnd: rnd, h: open(t, s, "k", convoRelaxed()), n: 1_000_000}
		settle := func(d *doubter) {
			err := d.h.Save(t.Context())
			if errors.As(err, new(*convo.ConflictError)) {
				_, refused := takeOver(t, d.h)
				require.Empty(t, refused)
			} else if err != nil {
				require.ErrorIs(t, err, errDisk)
			}
		}
		for range 4 {
			a.append()
			often := 1 + rnd.IntN(12) // of how many attempts one is stored, now or later
			for range []int{1, 8, 9, 17, 40}[rnd.IntN(5)] {
				s.fault = func(convo.Record) fault {
					if rnd.IntN(often) == 0 {
						return failsAfter + fault(rnd.IntN(2))
					}
					return failsBefore
				}
				a.change(false)
				settle(a)
				s.fault = nil
				switch rnd.IntN(12) {
				case 0:
					s.land()
				case 1, 2:
					b.change(false)
					settle(b)
				}
			}
			s.land()
			for range 3 {
				settle(a)
				settle(b)
			}
			where := fmt.Sprint("seed ", seed)
			takeOver(t, a.h)
			takeOver(t, b.h)
			require.Equal(t, pictureOf(t, a.h.Snapshot()), pictureOf(t, b.h.Snapshot()), where)
			checkOpened(t, s, "k", convoRelaxed(), b.h)
			var all []string
			for x, err := range b.h.Archive(t.Context()) {
				require.NoError(t, err)
				if x.Entry != nil {
					all = append(all, x.Entry.Message.Text())
				}
			}
			var of [2][]string
			for _, text := range all {
				i := 0
				if len(text) > 7 {
					i = 1
				}
				of[i] = append(of[i], text)
			}
			require.Equal(t, fmt.Sprint(a.texts), fmt.Sprint(of[0]), where)
			require.Equal(t, fmt.Sprint(b.texts), fmt.Sprint(of[1]), where)
		}
		checkLog(t, s.log("k"))
	}
}

// A record that comes to be stored after many later attempts is still recognised.
func TestReload_LateAmongMany(t *testing.T) {
	for attempts := range 24 {
		s := new(shelf)
		h := open(t, s, "k", nil)
		mustAppend(t, h, convo.User("hello"), convo.Assistant("", callOf("c")))
		save(t, h)
		require.NoError(t, h.Queue(convo.User("wait")))
		s.fault = func(convo.Record) fault { return failsAndLands }
		require.ErrorIs(t, h.Save(t.Context()), errDisk)
		s.fault = func(convo.Record) fault { return failsBefore }
		for i := range attempts {
			require.NoError(t, h.SetMeta(fmt.Sprint("title ", i), ""))
			require.ErrorIs(t, h.Save(t.Context()), errDisk)
		}
		s.fault = nil
		s.land()
		other := open(t, s, "k", nil)
		require.NoError(t, other.Queue(convo.User("for me")))
		save(t, other)
		require.ErrorAs(t, h.Save(t.Context()), new(*convo.ConflictError), "after %d attempts", attempts)
		takeOver(t, h)
		require.Equal(t, 2, h.Status().Queued, "after %d attempts", attempts)
		save(t, h)
		checkOpened(t, s, "k", nil, h)
	}
}

// A full record names the 16 before it, so that one of them which was in doubt is
// recognised though it was pruned.
func TestReload_PrunedWhileInDoubt(t *testing.T) {
	for more := range 16 {
		s := new(shelf)
		a, b := pair(t, s, nil, convo.User("hello"), convo.Assistant("", callOf("c")))
		require.NoError(t, b.Queue(convo.User("wait")))
		s.fault = func(convo.Record) fault { return failsAfter }
		require.ErrorIs(t, b.Save(t.Context()), errDisk)
		s.fault = nil
		takeOver(t, a)
		for i := range more {
			require.NoError(t, a.SetMeta(fmt.Sprint("title ", i), ""))
			save(t, a)
		}
		before := s.log("k")
		require.NoError(t, a.Prune(t.Context(), noTime))
		log := s.log("k")
		require.Len(t, log, 1)
		for _, r := range before[max(len(before)-16, 0):] {
			require.Contains(t, string(log[0].Data), r.ID)
		}
		require.NoError(t, b.SetMeta("", "theirs"))
		require.ErrorAs(t, b.Save(t.Context()), new(*convo.ConflictError))
		takeOver(t, b)
		require.Equal(t, 1, b.Status().Queued, "after %d more records", more)
		save(t, b)
		checkOpened(t, s, "k", nil, b)
	}
}

// A swapStore is a store whose content can be replaced, as by a backup.
type swapStore struct{ *shelf }

// upTo returns a store with the records of a log up to one.
func upTo(t *testing.T, s convo.Store, key string, seq uint64) *shelf {
	t.Helper()
	out := new(shelf)
	for r, err := range s.Records(t.Context(), key, 1) {
		require.NoError(t, err)
		if r.Seq <= seq {
			require.NoError(t, out.Append(t.Context(), r))
		}
	}
	return out
}

// A log that was deleted is not the log that was begun under its key since.
func TestReload_AnotherLog(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	mustAppend(t, h, convo.User("q1"), convo.Assistant("a1"))
	save(t, h)
	require.NoError(t, s.Delete(t.Context(), "k"))
	other := open(t, s, "k", nil)
	mustAppend(t, other, convo.User("x"), convo.Assistant("y"))
	save(t, other)
	mustAppend(t, h, convo.User("q2"), convo.Assistant("a2"))
	require.ErrorAs(t, h.Save(t.Context()), new(*convo.ConflictError))
	unchanged(t, h, func() {
		_, _, err := h.Reload(t.Context())
		require.ErrorIs(t, err, convo.ErrNotFound)
		require.ErrorContains(t, err, "another was begun")
	})
	assert.Equal(t, []string{"x", "y"}, textsOf(open(t, s, "k", nil).Snapshot()))
}

// A backup is put back, and others save after it: what it lacks is appended again, and
// nothing is there twice.
func TestReload_BackupAndOthers(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 4))
		s := &swapStore{new(shelf)}
		opts := &convo.Options{Roles: convo.Relaxed()}
		h := open(t, s, "k", opts)
		var acknowledged []string
		n := 2 + rng.IntN(6)
		for i := range n {
			text := fmt.Sprint("h", i)
			mustAppend(t, h, convo.User(text), convo.Assistant("re "+text))
			acknowledged = append(acknowledged, text)
			if rng.IntN(5) == 0 {
				require.NoError(t, h.SaveFull(t.Context()))
			} else {
				save(t, h)
			}
		}
		back := 1 + rng.IntN(n-1)
		s.shelf = upTo(t, s.shelf, "k", uint64(back))
		for i := range rng.IntN(8) {
			w := open(t, s, "k", opts)
			text := fmt.Sprint("w", i)
			mustAppend(t, w, convo.User(text), convo.Assistant("re "+text))
			acknowledged = append(acknowledged, text)
			save(t, w)
		}
		mustAppend(t, h, convo.User("last"), convo.Assistant("re last"))
		acknowledged = append(acknowledged, "last")
		err := h.Save(t.Context())
		for rounds := 0; errors.As(err, new(*convo.ConflictError)) && rounds < 3; rounds++ {
			var refused []convo.Message
			_, refused, err = h.Reload(t.Context())
			require.NoError(t, err, "seed %d", seed)
			require.Empty(t, refused)
			err = h.Save(t.Context())
		}
		require.NoError(t, err, "seed %d", seed)
		stored := textsOf(open(t, s, "k", opts).Snapshot())
		assert.Len(t, stored, 2*len(acknowledged), "seed %d: %v", seed, stored)
		for _, text := range acknowledged {
			assert.Contains(t, stored, text, "seed %d", seed)
			assert.Contains(t, stored, "re "+text, "seed %d", seed)
		}
	}
}

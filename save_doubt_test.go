package convo_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// After an error a record may be in the log, or not, or come to be there. The next
// Save finds out and loses nothing.
func TestSave_InDoubt(t *testing.T) {
	for how, name := range map[fault]string{failsBefore: "before", failsAfter: "after", failsAndLands: "later"} {
		t.Run(name, func(t *testing.T) {
			s := new(shelf)
			h := open(t, s, "k", nil)
			for i := range 30 {
				mustAppend(t, h, turnsOf(i, "message "+itoa(i)))
				failing := i%3 != 2
				s.fault = func(convo.Record) fault {
					if failing {
						return how
					}
					return failsNever
				}
				err := h.Save(t.Context())
				if i%5 == 0 {
					s.land()
				}
				if failing {
					require.ErrorIs(t, err, errDisk)
					require.NotZero(t, h.Status().Unsaved)
					continue
				}
				require.NoError(t, err)
				checkOpened(t, s, "k", nil, h)
			}
		})
	}
}

// What was undone again while it was in doubt whether it was saved is not what the
// log holds in the end.
func TestSave_InDoubtAndTakenBack(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	mustAppend(t, h, convo.User("hello"))
	save(t, h)
	require.NoError(t, h.Queue(convo.User("wait")))
	s.fault = func(convo.Record) fault { return failsAfter }
	require.ErrorIs(t, h.Save(t.Context()), errDisk)
	h.Unqueue()
	s.fault = nil
	assert.NotZero(t, h.Status().Unsaved)
	save(t, h)
	checkOpened(t, s, "k", nil, h)
}

// Any number of failures in a row keeps a bounded number of drafts.
func TestSave_ManyDrafts(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	mustAppend(t, h, convo.User("hello"))
	save(t, h)
	s.fault = func(convo.Record) fault { return failsBefore }
	for i := range 80 {
		mustAppend(t, h, turnsOf(i+1, "message"))
		require.ErrorIs(t, h.Save(t.Context()), errDisk)
	}
	assert.Equal(t, 64, convo.Drafts(h))
	s.fault = nil
	save(t, h)
	checkOpened(t, s, "k", nil, h)
}

// With eight records in doubt, a Save looks first which of them was stored. Nothing is
// sent again, so that what was forgotten or taken back meanwhile is written nowhere.
func TestSave_ManyDraftsForgotten(t *testing.T) {
	for _, tt := range []struct {
		name string
		undo func(t *testing.T, h *convo.History, at *convo.Snapshot)
	}{
		{"forgotten", func(t *testing.T, h *convo.History, _ *convo.Snapshot) {
			apply(t, h, forgetting(3, convo.Text("redacted")))
		}},
		{"rolled back", func(t *testing.T, h *convo.History, at *convo.Snapshot) { require.NoError(t, h.Rollback(at)) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := new(shelf)
			h := open(t, s, "k", nil)
			mustAppend(t, h, convo.User("hello"), convo.Assistant("hi"))
			at := h.Snapshot()
			mustAppend(t, h, convo.User("hunter2"))
			s.fault = func(convo.Record) fault { return failsBefore }
			reads := s.reads
			for i := range 20 {
				require.ErrorIs(t, h.Save(t.Context()), errDisk)
				require.Equal(t, i+1, convo.Drafts(h))
				require.Equal(t, max(i-7, 0), s.reads-reads, "eight are in doubt before it looks")
			}
			tt.undo(t, h, at)
			s.fault = nil
			save(t, h)
			require.Len(t, s.log("k"), 1)
			assert.NotContains(t, string(s.log("k")[0].Data), "hunter2")
			assert.Zero(t, convo.Drafts(h))
			checkOpened(t, s, "k", nil, h)
		})
	}
}

// With eight records in doubt of which one was stored, a Save writes what is new since.
func TestSave_ManyDraftsStored(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	mustAppend(t, h, convo.User("hello"))
	save(t, h)
	for i := range 8 {
		mustAppend(t, h, convo.Assistant("a"+itoa(i)), convo.User("u"+itoa(i)))
		s.fault = func(convo.Record) fault {
			if i == 3 {
				return failsAfter
			}
			return failsBefore
		}
		require.ErrorIs(t, h.Save(t.Context()), errDisk)
	}
	s.fault = nil
	save(t, h)
	require.Len(t, s.log("k"), 3)
	assert.NotContains(t, string(s.log("k")[2].Data), "a3")
	checkOpened(t, s, "k", nil, h)
}

// A Store that stores a record and calls it a conflict is believed that it is there.
func TestSave_StoredConflict(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	mustAppend(t, h, convo.User("hello"))
	save(t, h)
	s.fault = func(convo.Record) fault { return conflictsAfter }
	mustAppend(t, h, convo.Assistant("hi"))
	save(t, h)
	require.Len(t, s.log("k"), 2)
	require.NoError(t, h.Prune(t.Context(), noTime))
	checkOpened(t, s, "k", nil, h)
}

// A doubter is a History whose Store fails for long, and what its archive must hold.
type doubter struct {
	t            *testing.T
	rnd          *rand.Rand
	h            *convo.History
	texts, notes []string // what was appended and not rolled back, and what was noted
	n            int

	at   *convo.Snapshot // to roll back to; nil: none
	then int             // how many texts there were
}

// change changes the History. What a Reload undoes or does not take over is changed
// only if alone is set: nobody else writes.
func (d *doubter) change(alone bool) {
	t, h := d.t, d.h
	d.n++
	switch at := h.Snapshot(); d.rnd.IntN(12) {
	case 0:
		require.NoError(t, h.SetMeta(fmt.Sprint("title ", d.n), ""))
	case 1:
		d.notes = append(d.notes, fmt.Sprint("note ", d.n))
		require.NoError(t, h.Note(d.notes[len(d.notes)-1]))
	case 2:
		_, err := h.SplicePrefix(at, at.Len()/2, fmt.Sprint("summary ", d.n))
		require.NoError(t, err)
	case 3:
		if e, ok := at.At(d.rnd.IntN(max(at.Len(), 1))); ok {
			if e.Pinned {
				require.NoError(t, h.Unpin(e.ID))
			} else {
				require.NoError(t, h.Pin(e.ID))
			}
		}
	case 4:
		switch {
		case !alone:
		case d.at == nil:
			d.at, d.then = at, len(d.texts)
		default:
			require.NoError(t, h.Rollback(d.at))
			d.at, d.texts = nil, d.texts[:d.then]
		}
	case 5:
		if !alone {
			return
		}
		require.NoError(t, h.SetModel(fmt.Sprint("model ", d.n%3), convo.Limits{}))
	case 6:
		return // nothing is new
	default:
		d.append()
	}
}

func (d *doubter) append() {
	d.n++
	text := fmt.Sprintf("<%d>", d.n)
	mustAppend(d.t, d.h, convo.User(text))
	d.texts = append(d.texts, text)
}

// archived checks that the archive holds each text and each note once, in order, and
// no others, and no summary twice.
func (d *doubter) archived(where string) {
	d.t.Helper()
	var ids []convo.ID
	var texts, notes []string
	undone := map[convo.ID]bool{}
	summaries := map[string]bool{}
	for x, err := range d.h.Archive(d.t.Context()) {
		require.NoError(d.t, err)
		switch {
		case x.Entry != nil:
			ids, texts = append(ids, x.Entry.ID), append(texts, x.Entry.Message.Text())
		case x.Note != "":
			notes = append(notes, x.Note)
		case x.Summary != nil:
			require.False(d.t, summaries[x.Summary.Text], "%s: %q twice", where, x.Summary.Text)
			summaries[x.Summary.Text] = true
		}
		for _, r := range x.Undone {
			for id := r.First; id <= r.Last; id++ {
				require.False(d.t, undone[id], "%s: %d undone twice", where, id)
				undone[id] = true
			}
		}
	}
	there := texts[:0]
	for i, text := range texts {
		if !undone[ids[i]] {
			there = append(there, text)
		}
	}
	require.Equal(d.t, fmt.Sprint(d.texts), fmt.Sprint(there), where)
	require.Equal(d.t, fmt.Sprint(d.notes), fmt.Sprint(notes), where)
}

// A Store of which it is never known whether it has stored what it failed to store,
// for longer than attempts are remembered: one Save after it works again, the log
// holds the History as it is, each message once. Nobody else writes, so nothing is a
// conflict.
func TestSave_InDoubtForLong(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	for seed := range uint64(rounds) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		s := &nasty{shelf: new(shelf)}
		d := &doubter{t: t, rnd: rnd, h: open(t, s, "k", convoRelaxed())}
		for stretch := range 4 {
			where := fmt.Sprintf("seed %d, stretch %d", seed, stretch)
			d.append()
			stored := rnd.IntN(4) // of how many attempts one is stored
			s.fault = func(convo.Record) fault {
				if stored > 0 && rnd.IntN(8*stored) == 0 {
					return failsAfter
				}
				return failsBefore
			}
			for range []int{1, 7, 8, 9, 16, 17, 40}[rnd.IntN(7)] {
				d.change(true)
				if rnd.IntN(6) == 0 {
					s.fails = errDisk
				}
				err := d.h.Save(t.Context())
				s.fails = nil
				if err != nil {
					require.ErrorIs(t, err, errDisk, where)
				}
				if rnd.IntN(10) == 0 {
					moved, refused := takeOver(t, d.h)
					require.Empty(t, moved, where)
					require.Empty(t, refused, where)
				}
				require.LessOrEqual(t, convo.Drafts(d.h), 64, where)
			}
			s.fault = nil
			save(t, d.h)
			g := checkOpened(t, s, "k", convoRelaxed(), d.h)
			d.archived(where)
			if rnd.IntN(3) == 0 {
				d.h, d.at = g, nil
			}
		}
		checkLog(t, s.log("k"))
	}
}

// checkLog checks that each record names the one before it, and that a full one names
// the 16 before it.
func checkLog(t *testing.T, log []convo.Record) {
	t.Helper()
	for i, r := range log {
		if i == 0 {
			continue
		}
		require.Equal(t, log[i-1].ID, r.Prev)
		require.Equal(t, log[i-1].Seq+1, r.Seq)
		if r.Full {
			for _, before := range log[max(i-16, 0):i] {
				require.Contains(t, string(r.Data), before.ID)
			}
		}
	}
}

// Of two writers, one cannot know for long what was stored of what it saves, and some
// of it comes to be stored late, when it may have been forgotten. The other saves
// without an error. Each message of both is in the log once in the end.
func TestReload_InDoubtForLong(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	for seed := range uint64(rounds) {
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

// If it cannot be found out which record was stored, Save sends nothing and returns the
// reason.
func TestSave_CannotFindOut(t *testing.T) {
	errRead := errors.New("cannot read")
	t.Run("many drafts", func(t *testing.T) {
		s := &unreadable{shelf: new(shelf)}
		h := open(t, s, "k", nil)
		mustAppend(t, h, convo.User("hello"))
		save(t, h)
		s.fault = func(convo.Record) fault { return failsBefore }
		for i := range 8 {
			mustAppend(t, h, turnsOf(i+1, "message"))
			require.Error(t, h.Save(t.Context()))
		}
		s.fault, s.err = nil, errRead
		sent := s.appends
		require.ErrorIs(t, h.Save(t.Context()), errRead)
		assert.Equal(t, sent, s.appends)
		s.err = nil
		save(t, h)
		checkOpened(t, s, "k", nil, h)
	})
	t.Run("a conflict", func(t *testing.T) {
		s := &unreadable{shelf: new(shelf)}
		a, b := pair(t, s, nil, convo.User("hello"))
		require.NoError(t, a.SetMeta("title", ""))
		save(t, a)
		mustAppend(t, b, convo.Assistant("hi"))
		s.err = errRead
		require.ErrorIs(t, b.Save(t.Context()), errRead)
		s.err = nil
		takeOver(t, b)
		save(t, b)
		checkOpened(t, s, "k", nil, b)
	})
}

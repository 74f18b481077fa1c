package filestore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// A testLog is what a log should hold: records, oldest first.
type testLog []convo.Record

func (l testLog) String() string {
	var ids []string
	for _, r := range l {
		ids = append(ids, r.ID)
	}
	return strings.Join(ids, " ")
}

func (l testLog) newest() (r convo.Record) {
	if len(l) > 0 {
		r = l[len(l)-1]
	}
	return r
}

// next returns a record that may stand behind l.
func (l testLog) next(rnd *rand.Rand, key string) convo.Record {
	id := make([]byte, 26)
	for i := range id {
		id[i] = "abcdefghijklmnopqrstuvwxyz"[rnd.IntN(26)]
	}
	data := []byte("{" + strings.Repeat("record ", rnd.IntN(200)) + "}")
	if rnd.IntN(8) == 0 {
		data = append(data, "\n\x00 of two lines"...)
	}
	last := l.newest()
	now := time.Unix(1_800_000_000+int64(last.Seq), 5).UTC()
	return convo.Record{
		LogInfo: convo.LogInfo{Key: key, Title: "a \"title\"\n", Seq: last.Seq + 1, Created: now, Updated: now, Entries: 3, Tokens: -1},
		ID:      string(id), Prev: last.ID, Full: last.ID == "" || rnd.IntN(4) == 0, Format: 1, Upto: 7, Data: data,
	}
}

// pruned returns l from the full record with a Seq on, and whether there is one.
func (l testLog) pruned(before uint64) (testLog, bool) {
	i := slices.IndexFunc(l, func(r convo.Record) bool { return r.Seq == before && r.Full })
	return l[max(i, 0):], i >= 0
}

// stored reads a log and checks that the part which opening reads is the end of it.
func stored(t *testing.T, s convo.Store, key string) (log testLog) {
	t.Helper()
	for r, err := range s.Records(t.Context(), key, 1) {
		require.NoError(t, err)
		r.Torn = 0
		log = append(log, r)
	}
	i := len(log)
	for i--; i > 0 && !log[i].Full; i-- {
	}
	var view testLog
	for r, err := range s.Records(t.Context(), key, 0) {
		require.NoError(t, err)
		view = append(view, r)
	}
	require.Equal(t, log[max(i, 0):].String(), view.String())
	return log
}

// A crasher does random operations on a log, of which some fail or are cut short by
// the end of the process or of the power, and knows what the log may hold.
type crasher struct {
	t      *testing.T
	rnd    *rand.Rand
	disk   *testDisk
	stores [2]*Store // of two processes
	store  *Store    // of the one that works
	seen   testLog
	maybe  []testLog // what a power cut may leave

	killed  bool
	crashes int
}

const crashKey = "trip"

// process begins a process in the place of another, with a store of its own.
func (c *crasher) process(i int) {
	c.killed = false
	c.stores[i] = &Store{Dir: "/var/chats", disk: c.disk}
}

// plan chooses which of the next operations of the disk fail.
func (c *crasher) plan() {
	n, kill, length := c.rnd.IntN(18), c.rnd.IntN(2) == 0, 1+c.rnd.IntN(3)
	if c.rnd.IntN(3) == 0 {
		n = 1000
	}
	c.disk.step = func(op string) error {
		n--
		switch {
		case c.killed || n < 0 && kill:
			c.killed = true
			return errKilled
		case n < 0 && n >= -length:
			return []error{errNoRoom, errBroken}[c.rnd.IntN(2)]
		}
		return nil
	}
}

// done notes the end of an operation after which the log should be l.
func (c *crasher) done(l testLog, err error) {
	if err == nil && !c.killed {
		c.maybe = []testLog{l}
		return
	}
	require.False(c.t, err != nil && isOfLog(err), "%v", err)
	c.maybe = append(c.maybe, l)
}

func (c *crasher) operate() {
	c.plan()
	ctx := c.t.Context()
	switch n := c.rnd.IntN(20); {
	case n < 2:
		c.done(nil, c.store.Delete(ctx, crashKey))
	case n < 5 && len(c.seen) > 0:
		at := c.seen[c.rnd.IntN(len(c.seen))].Seq
		if l, ok := c.seen.pruned(at); ok {
			c.done(l, c.store.Prune(ctx, crashKey, at))
		}
	case n < 7 && len(c.seen) > 0: // an Append whose answer was lost
		c.done(c.seen, c.store.Append(ctx, c.seen.newest()))
	default:
		r := c.seen.next(c.rnd, crashKey)
		c.done(append(slices.Clone(c.seen), r), c.store.Append(ctx, r))
	}
}

// look reads the log, and checks that it is one of those that it may be.
func (c *crasher) look() {
	c.disk.step = func(string) error { return nil }
	c.seen = stored(c.t, &Store{Dir: "/var/chats", disk: c.disk}, crashKey)
	i := slices.IndexFunc(c.maybe, func(l testLog) bool { return l.String() == c.seen.String() })
	require.GreaterOrEqual(c.t, i, 0, "the log is\n%s\nand may be\n%s", c.seen, c.maybe)
	for k, r := range c.seen {
		require.Equal(c.t, c.maybe[i][k], r)
	}
}

func (c *crasher) run(operations int) {
	c.process(0)
	c.process(1)
	c.maybe = []testLog{nil}
	for range operations {
		i := c.rnd.IntN(2)
		c.store = c.stores[i]
		c.operate()
		if !c.killed && c.rnd.IntN(8) > 0 {
			c.look()
			continue
		}
		c.crashes++
		c.process(i)
		c.look() // what others see before the power goes, they may build on
		if c.rnd.IntN(2) == 0 {
			c.process(1 - i)
			c.disk.keep = c.rnd.IntN(2) == 0
			c.disk.powerCut()
			c.look()
			c.maybe = []testLog{c.seen}
		}
	}
}

// Whatever fails and whenever the process or the power ends: a record that was
// acknowledged is there, as it was, and no other but the one that was being saved.
func TestStore_Crashes(t *testing.T) {
	crashes, want := 0, long.Or(1_000, 10_000)
	for seed := uint64(0); crashes < want; seed++ {
		rnd := rand.New(rand.NewPCG(seed, 1))
		c := &crasher{t: t, rnd: rnd, disk: newTestDisk(rnd)}
		ok := t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { c.t = t; c.run(40) })
		require.True(t, ok, "seed %d", seed)
		crashes += c.crashes
	}
	t.Logf("%d crashes", crashes)
}

// crashEverywhere prepares a disk, does something on it, and cuts the power before
// each operation of the disk in turn, many times over. Then it calls check.
func crashEverywhere(t *testing.T, do func(*testing.T, *testDisk, func()), check func(*testing.T, *testDisk)) {
	for n := 0; ; n++ {
		killed := false
		for seed := range long.Or[uint64](45, 90) {
			rnd := rand.New(rand.NewPCG(seed, 3))
			disk := newTestDisk(rnd)
			do(t, disk, func() {
				left := n
				disk.step = func(string) error {
					if left--; left < 0 {
						killed = true
						return errKilled
					}
					return nil
				}
			})
			disk.step = func(string) error { return nil }
			disk.keep = seed%2 == 0
			disk.powerCut()
			check(t, disk)
		}
		if !killed {
			return
		}
	}
}

// What was cut off does not come back beside some of what is written next, though the
// process knows that the record before it lasts.
func TestStore_CutLasts(t *testing.T) {
	for name, fail := range map[string]func(*testing.T, *testDisk, *Store, convo.Record){
		"another process was killed": func(_ *testing.T, disk *testDisk, _ *Store, _ convo.Record) {
			node := disk.dirs["/chats"].names[fileName(crashKey)]
			node.data = append(node.data, strings.Repeat("x", 5*blockSize)...)
		},
		"its own write failed, and the cut": func(t *testing.T, disk *testDisk, s *Store, r convo.Record) {
			disk.step = func(op string) error {
				if op == "sync" {
					return errBroken
				}
				return nil
			}
			require.ErrorIs(t, s.Append(t.Context(), r), errBroken)
		},
	} {
		t.Run(name, func(t *testing.T) {
			own := rand.New(rand.NewPCG(6, 6))
			var log testLog
			for range 4 {
				log = append(log, log.next(own, crashKey))
				log[len(log)-1].Data = []byte("{" + strings.Repeat("data", 500) + "}")
			}
			log[3].Seq, log[3].Prev = log[2].Seq, log[2].Prev
			crashEverywhere(t, func(t *testing.T, disk *testDisk, begin func()) {
				s := &Store{Dir: "/chats", disk: disk}
				require.NoError(t, s.Append(t.Context(), log[0]))
				require.NoError(t, s.Append(t.Context(), log[1]))
				fail(t, disk, s, log[3])
				begin()
				_ = s.Append(t.Context(), log[2])
			}, func(t *testing.T, disk *testDisk) {
				got := stored(t, &Store{Dir: "/chats", disk: disk}, crashKey)
				require.GreaterOrEqual(t, len(got), 2)
			})
		})
	}
}

// No copy that a killed Prune has left outlives the log.
func TestStore_DeleteTakesCopies(t *testing.T) {
	crashEverywhere(t, func(t *testing.T, disk *testDisk, begin func()) {
		s := &Store{Dir: "/chats", disk: disk}
		fill(t, s, crashKey, 3)
		dir, err := disk.open("/chats")
		require.NoError(t, err)
		_, err = dir.openFile(fileName(crashKey)+tmpSuffix, os.O_CREATE)
		require.NoError(t, err)
		require.NoError(t, dir.sync())
		begin()
		_ = s.Delete(t.Context(), crashKey)
	}, func(t *testing.T, disk *testDisk) {
		names := disk.dirs["/chats"].names
		if names[fileName(crashKey)] == nil {
			require.Empty(t, names)
		}
	})
}

// A Delete that finds no log syncs the directory: an earlier Delete may have removed the
// log without a sync.
func TestStore_DeleteAgain(t *testing.T) {
	disk := newTestDisk(rand.New(rand.NewPCG(1, 1)))
	s := &Store{Dir: "/chats", disk: disk}
	fill(t, s, crashKey, 1)
	disk.step = func(op string) error {
		if op == "sync dir" {
			return errBroken
		}
		return nil
	}
	require.ErrorIs(t, s.Delete(t.Context(), crashKey), errBroken)
	disk.step = func(string) error { return nil }
	require.NoError(t, s.Delete(t.Context(), crashKey))
	disk.powerCut()
	require.Empty(t, disk.dirs["/chats"].names)
}

// A gate lets one goroutine at a time do one operation of a disk, in an order that
// a seed decides.
type gate struct {
	mu      sync.Mutex
	waiting []chan struct{}
}

func (g *gate) pass(string) error {
	turn := make(chan struct{})
	g.mu.Lock()
	g.waiting = append(g.waiting, turn)
	g.mu.Unlock()
	<-turn
	return nil
}

// run opens the gate until all is done. When no goroutine is at the gate, all wait for
// time to pass.
func (g *gate) run(rnd *rand.Rand, done <-chan struct{}) {
	for {
		synctest.Wait()
		select {
		case <-done:
			return
		default:
		}
		g.mu.Lock()
		if n := len(g.waiting); n > 0 {
			i := rnd.IntN(n)
			close(g.waiting[i])
			g.waiting = slices.Delete(g.waiting, i, i+1)
			g.mu.Unlock()
			continue
		}
		g.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
}

// Processes whose operations on the disk come in any order never lose a record to
// each other.
func TestStore_Interleaved(t *testing.T) {
	for seed := range long.Or[uint64](50, 200) {
		synctest.Test(t, func(t *testing.T) { interleaved(t, seed) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func interleaved(t *testing.T, seed uint64) {
	const writers, each = 3, 4
	rnd := rand.New(rand.NewPCG(seed, 2))
	disk, g := newTestDisk(rnd), new(gate)
	disk.step = g.pass
	var wg sync.WaitGroup
	var mu sync.Mutex
	saved := map[string]int{} // how often the log had been deleted when the Append began
	deleted := 0
	for w := range writers {
		own := rand.New(rand.NewPCG(seed, uint64(10+w)))
		wg.Go(func() {
			s := &Store{Dir: "/chats", disk: disk}
			var log testLog
			for n := 0; n < each; {
				mu.Lock()
				before := deleted
				mu.Unlock()
				r := log.next(own, crashKey)
				err := s.Append(t.Context(), r)
				if err == nil {
					log = append(log, r)
					mu.Lock()
					saved[r.ID] = before
					mu.Unlock()
					n++
					continue
				}
				conflict, ok := errors.AsType[*convo.ConflictError](err)
				if !assert.True(t, ok, "%v", err) {
					return
				}
				log = testLog{{LogInfo: convo.LogInfo{Seq: conflict.Have}, ID: conflict.ID}}
				if conflict.Have == 0 {
					log = nil
				}
			}
		})
	}
	wg.Go(func() {
		s := &Store{Dir: "/chats", disk: disk}
		for range 3 {
			var full uint64
			for r, err := range s.Records(t.Context(), crashKey, 0) {
				assert.NoError(t, err)
				full = max(full, r.Seq)
				break
			}
			if seed%2 == 0 {
				assert.NoError(t, s.Delete(t.Context(), crashKey))
				mu.Lock()
				deleted++
				mu.Unlock()
			} else if err := s.Prune(t.Context(), crashKey, full); full > 0 {
				_, refused := errors.AsType[*convo.ValueError](err) // another has pruned
				assert.True(t, err == nil || refused, "%v", err)
			}
		}
	})
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	g.run(rnd, done)
	disk.step = func(string) error { return nil }
	log := stored(t, &Store{Dir: "/chats", disk: disk}, crashKey)
	there := map[string]bool{}
	for _, r := range log {
		assert.False(t, there[r.ID], "stored twice")
		there[r.ID] = true
	}
	var first uint64
	if len(log) > 0 {
		first = log[0].Seq
	}
	for id, before := range saved {
		if seed%2 == 0 && before == deleted {
			assert.True(t, there[id], "%s was saved after the last Delete, and is gone", id)
		}
	}
	if seed%2 == 1 && len(log) > 0 {
		assert.Equal(t, writers*each, int(log.newest().Seq), "from %d on", first)
		assert.Len(t, log, writers*each-int(first)+1)
	}
}

// Whenever the power ends while Save shortens the log, Open returns what was saved or what
// was being saved, the log has each message once, and a later Save makes it short.
func TestStore_CrashWhileSavePrunes(t *testing.T) {
	opts := &convo.Options{PruneAbove: 1}
	text := func(i int) string { return fmt.Sprint(i, strings.Repeat(" word", 20)) }
	next := func(t *testing.T, h *convo.History) error {
		n := h.Len()
		msg := convo.User(text(n))
		if n%2 == 1 {
			msg = convo.Assistant(text(n))
		}
		_, err := h.Append(msg)
		require.NoError(t, err)
		if n%2 == 1 {
			return h.Prune(t.Context(), time.Time{})
		}
		return h.Save(t.Context())
	}
	saved, shortened := 0, false
	crashEverywhere(t, func(t *testing.T, disk *testDisk, begin func()) {
		h, err := convo.Open(t.Context(), &Store{Dir: "/chats", disk: disk}, crashKey, opts)
		require.NoError(t, err)
		for range 3 {
			require.NoError(t, next(t, h))
		}
		begin()
		for saved = 3; saved < 5 && next(t, h) == nil; {
			saved++
		}
	}, func(t *testing.T, disk *testDisk) {
		s := &Store{Dir: "/chats", disk: disk}
		log := stored(t, s, crashKey)
		require.True(t, log[0].Full)
		require.Len(t, log, int(log.newest().Seq-log[0].Seq)+1)
		shortened = shortened || log[0].Seq > 2
		h, err := convo.Open(t.Context(), s, crashKey, opts)
		require.NoError(t, err)
		require.Contains(t, []int{saved, saved + 1}, h.Len())
		archived := 0
		for a, err := range h.Archive(t.Context()) {
			require.NoError(t, err)
			require.NotNil(t, a.Entry)
			require.Equal(t, text(archived), a.Entry.Message.Text())
			archived++
		}
		require.Equal(t, h.Len(), archived)
		require.NoError(t, next(t, h))
		log = stored(t, s, crashKey)
		require.False(t, slices.ContainsFunc(log[1:], func(r convo.Record) bool { return r.Full }), "%v", log)
	})
	require.True(t, shortened)
}

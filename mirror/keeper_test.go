package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/mirror"
)

// A cupboard is where a program stores lists and decisions, by session.
type cupboard struct {
	mu        sync.Mutex
	decisions map[string][]byte
	loads     map[string]int
	stores    int
	opened    map[string]*convo.History
	fails     error
}

func (c *cupboard) keeper(most int, idle time.Duration) *mirror.Keeper[*line] {
	return &mirror.Keeper[*line]{
		Most: most, Idle: idle,
		Load: func(_ context.Context, key string) (*mirror.Mirror[*line], error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.loads == nil {
				c.loads, c.decisions, c.opened = map[string]int{}, map[string][]byte{}, map[string]*convo.History{}
			}
			c.loads[key]++
			if c.fails != nil {
				return nil, c.fails
			}
			opts := &convo.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
			if data := c.decisions[key]; data != nil {
				m, _, err := mirror.Resume(data, list(key), byPlace, opts)
				if err == nil {
					c.opened[key] = m.History()
				}
				return m, err
			}
			h, err := convo.New(opts)
			if err != nil {
				return nil, err
			}
			c.opened[key] = h
			return mirror.New(h, byPlace), nil
		},
		Store: func(ctx context.Context, key string, decisions []byte) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.fails != nil {
				return c.fails
			}
			c.stores++
			c.decisions[key] = decisions
			return ctx.Err()
		},
	}
}

func (c *cupboard) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fails = err
}

// list is the list of a session, of which nothing is in the cupboard.
func list(key string) []*line {
	return []*line{{Role: convo.RoleUser, Text: "This is " + key + "."}}
}

func (c *cupboard) isOpen(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.opened[key].Append(convo.User("Are you open?"))
	return !errors.Is(err, convo.ErrClosed)
}

func syncOnce(key string) func(*mirror.Mirror[*line]) error {
	return func(m *mirror.Mirror[*line]) error { return m.Sync(list(key)) }
}

func pinFirst(m *mirror.Mirror[*line]) error {
	e, _ := m.History().Snapshot().At(0)
	return m.History().Pin(e.ID)
}

func TestKeeper_Idle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cupboard{}
		k := c.keeper(0, time.Minute)
		require.NoError(t, k.Use(t.Context(), "a", syncOnce("a")))
		assert.Zero(t, c.stores, "a message is no decision")
		time.Sleep(50 * time.Second)
		require.NoError(t, k.Use(t.Context(), "a", pinFirst))
		assert.Equal(t, 1, c.stores, "when the last Use has returned")
		time.Sleep(50 * time.Second)
		assert.True(t, c.isOpen("a"), "used less than a minute ago")

		require.NoError(t, k.Use(t.Context(), "a", func(*mirror.Mirror[*line]) error {
			time.Sleep(time.Hour)
			assert.True(t, c.isOpen("a"), "in use")
			return nil
		}))
		time.Sleep(59 * time.Second)
		assert.Equal(t, 1, c.loads["a"])
		time.Sleep(2 * time.Second)
		assert.False(t, c.isOpen("a"))
		assert.Equal(t, 1, c.stores, "nothing has changed")

		require.NoError(t, k.Use(t.Context(), "a", func(m *mirror.Mirror[*line]) error {
			assert.Len(t, m.History().Snapshot().Pinned(), 1)
			return m.Add(newLine(convo.RoleUser, "typed"))
		}))
		assert.Equal(t, 2, c.loads["a"])
		assert.Equal(t, 2, c.stores, "what Add gave")
		require.NoError(t, k.Close(t.Context()))
	})
}

// What Store refuses stays open, and is stored later.
func TestKeeper_StoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, failed := &cupboard{}, errors.New("disk full")
		k := c.keeper(0, time.Minute)
		require.NoError(t, k.Use(t.Context(), "a", syncOnce("a")))
		c.fail(failed)
		require.ErrorIs(t, k.Use(t.Context(), "a", pinFirst), failed)
		mine := errors.New("mine")
		err := k.Use(t.Context(), "a", func(*mirror.Mirror[*line]) error { return mine })
		require.ErrorIs(t, err, mine)
		require.ErrorIs(t, err, failed)
		time.Sleep(90 * time.Second)
		assert.True(t, c.isOpen("a"))
		c.fail(nil)
		time.Sleep(time.Minute)
		assert.False(t, c.isOpen("a"))
		assert.Equal(t, 1, c.stores)
	})
}

func TestKeeper_Most(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cupboard{}
		k := c.keeper(2, 0)
		for _, key := range []string{"a", "b", "a", "c"} {
			require.NoError(t, k.Use(t.Context(), key, syncOnce(key)))
			time.Sleep(time.Second)
		}
		assert.True(t, c.isOpen("a"))
		assert.False(t, c.isOpen("b"), "not used for the longest time")
		assert.True(t, c.isOpen("c"))
		require.NoError(t, k.Use(t.Context(), "a", func(*mirror.Mirror[*line]) error {
			return k.Use(t.Context(), "c", func(*mirror.Mirror[*line]) error {
				return k.Use(t.Context(), "d", func(*mirror.Mirror[*line]) error {
					assert.True(t, c.isOpen("a") && c.isOpen("c") && c.isOpen("d"), "in use")
					return nil
				})
			})
		}))
		time.Sleep(time.Hour)
		assert.False(t, c.isOpen("d"))
		assert.True(t, c.isOpen("a") && c.isOpen("c"))
	})
}

func TestKeeper_LoadFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("no such table")
		c := &cupboard{fails: failed}
		k := c.keeper(0, 0)
		load := k.Load
		k.Load = func(ctx context.Context, key string) (*mirror.Mirror[*line], error) {
			time.Sleep(time.Second)
			return load(ctx, key)
		}
		unused := func(*mirror.Mirror[*line]) error { t.Error("used without a Mirror"); return nil }
		waited := make(chan error)
		go func() { waited <- k.Use(context.Background(), "a", syncOnce("a")) }()
		synctest.Wait()
		canceled, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, k.Use(canceled, "a", unused), context.DeadlineExceeded, "waits for the other load")
		require.ErrorIs(t, <-waited, failed)
		c.fail(nil)
		require.NoError(t, k.Use(t.Context(), "a", syncOnce("a")))
		assert.Equal(t, 2, c.loads["a"])

		k.Load = func(context.Context, string) (*mirror.Mirror[*line], error) { panic("oh") }
		require.ErrorAs(t, k.Use(t.Context(), "b", unused), new(*convo.PanicError))
		k.Load = func(context.Context, string) (*mirror.Mirror[*line], error) { return nil, nil }
		require.ErrorAs(t, k.Use(t.Context(), "b", unused), new(*convo.ValueError))
		assert.Panics(t, func() {
			_ = k.Use(t.Context(), "a", func(*mirror.Mirror[*line]) error { panic("oh") })
		})
		require.NoError(t, k.Use(t.Context(), "a", syncOnce("a")))

		store := k.Store
		k.Store = func(context.Context, string, []byte) error { panic("oh") }
		require.ErrorAs(t, k.Use(t.Context(), "a", func(m *mirror.Mirror[*line]) error {
			return m.Add(newLine(convo.RoleUser, "typed"))
		}), new(*convo.PanicError), "what is stored after Use")
		k.Store = store
		require.NoError(t, k.Close(t.Context()))
	})
}

func TestKeeper_Close(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cupboard{}
		k := c.keeper(0, time.Minute)
		require.NoError(t, k.Close(t.Context()), "nothing was open")
		k = c.keeper(0, time.Minute)
		done := make(chan error)
		go func() {
			done <- k.Use(context.Background(), "a", func(m *mirror.Mirror[*line]) error {
				time.Sleep(time.Second)
				if err := m.Sync(list("a")); err != nil {
					return err
				}
				return pinFirst(m)
			})
		}()
		synctest.Wait()
		require.NoError(t, k.Use(t.Context(), "b", syncOnce("b")))
		soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, k.Close(soon), context.DeadlineExceeded)
		assert.True(t, c.isOpen("a"))
		require.ErrorIs(t, k.Use(t.Context(), "b", syncOnce("b")), convo.ErrClosed)
		require.NoError(t, k.Close(t.Context()), "waits for those in use")
		require.NoError(t, <-done)
		assert.False(t, c.isOpen("a") || c.isOpen("b"))
		assert.Equal(t, 1, c.stores)
	})
}

// Many goroutines use few keys, while Mirrors are closed all the time.
func TestKeeper_Race(t *testing.T) {
	c := &cupboard{}
	k := c.keeper(2, time.Millisecond)
	var inUse [4]atomic.Int64
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := range 60 {
				key := (n + i*(n+1)) % 4
				err := k.Use(t.Context(), fmt.Sprint(key), func(m *mirror.Mirror[*line]) error {
					inUse[key].Add(1)
					defer inUse[key].Add(-1)
					if err := m.Sync(list(fmt.Sprint(key))); err != nil {
						return err
					}
					if i%7 == 0 {
						return pinFirst(m)
					}
					if i%11 == 0 {
						time.Sleep(2 * time.Millisecond)
					}
					_, err := m.Decisions()
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, k.Close(t.Context()))
	for key := range inUse {
		assert.False(t, c.isOpen(fmt.Sprint(key)))
		m, _, err := mirror.Resume(c.decisions[fmt.Sprint(key)], list(fmt.Sprint(key)), byPlace, nil)
		require.NoError(t, err)
		assert.Len(t, m.History().Snapshot().Pinned(), 1, "what was decided is stored")
	}
}

// A program has many sessions, and keeps those in memory that were used in the last half hour.
func ExampleKeeper() {
	lists, decisions := map[string][]*note{}, map[string][]byte{} // the tables of the program
	opts := &convo.Options{Limits: convo.Limits{Window: 600}}
	k := mirror.Keeper[*note]{
		Load: func(_ context.Context, session string) (*mirror.Mirror[*note], error) {
			if data := decisions[session]; data != nil {
				m, done, err := mirror.Resume(data, lists[session], codec, opts)
				if done.Past != nil {
					log.Print(session, ": ", done) // the list has changed since
				}
				return m, err
			}
			h, err := convo.New(opts)
			if err != nil {
				return nil, err
			}
			return mirror.New(h, codec), nil
		},
		Store: func(_ context.Context, session string, data []byte) error {
			decisions[session] = data
			return nil
		},
		Most: 100, Idle: 30 * time.Minute,
	}
	ctx := context.Background()
	for day := range 40 {
		session := "alps"
		if day%2 == 1 {
			session = "sea"
		}
		list := append(lists[session], &note{Role: "user", Text: fmt.Sprint("What shall we do on day ", day, "?")})
		err := k.Use(ctx, session, func(m *mirror.Mirror[*note]) error {
			view, _, err := m.Prepare(ctx, list)
			if err == nil {
				_ = view // is sent
				list = append(list, &note{Role: "assistant", Text: "A walk along the river, and a museum if it rains."})
			}
			return err
		})
		if err != nil {
			log.Fatal(err)
		}
		lists[session] = list
	}
	if err := k.Close(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(lists["alps"]), len(lists["sea"]), len(decisions))
	// Output: 40 40 2
}

package mirror

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/seed-c1b73e60/convo"
)

// A Keeper holds the Mirrors of many conversations, each under a key such as the ID of a
// session: it loads a Mirror when it is needed, and stores and closes it when it has not been
// used for a while. The fields must not change after the first Use. A Keeper is safe for
// concurrent use, and must not be copied. Load and Store must not call it.
type Keeper[M any] struct {
	// Load returns the Mirror of a key: from [Resume] if there are decisions, and otherwise
	// from [New]. It is required, and called once at a time for a key.
	Load func(ctx context.Context, key string) (*Mirror[M], error)

	// Store stores what Decisions has returned, and is required. It is called when the last
	// Use of a key returns and before the Mirror is closed, if the decisions of the History
	// have changed or Add was called. ctx is that of Use, but is not canceled with it.
	Store func(ctx context.Context, key string, decisions []byte) error

	Most int           // how many Mirrors stay open; those in use are not closed, so there may be more. 0: no limit
	Idle time.Duration // after which an unused Mirror is closed; 0: it stays open

	mu     sync.Mutex
	open   map[string]*kept[M]
	change chan struct{} // closed by the next change of what open holds
	closed bool
}

type kept[M any] struct {
	m      *Mirror[M]
	busy   bool // it is being loaded or stored
	users  int
	used   time.Time
	timer  *time.Timer
	stored [2]uint64 // the version that Store has
}

// Use calls use with the Mirror of a key, which stays open until use has returned. Several
// calls may run at the same time, also for one key. Use waits while the Mirror is loaded or
// stored. Its error is that of Load, use or Store, ctx.Err(), or [convo.ErrClosed] after
// Close. After an error of Load there is no Mirror, and the next Use calls Load again; after
// one of Store the Mirror stays open.
func (k *Keeper[M]) Use(ctx context.Context, key string, use func(*Mirror[M]) error) (err error) {
	e, err := k.take(ctx, key)
	if err != nil {
		return err
	}
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		ctx := context.WithoutCancel(ctx)
		e.used = time.Now()
		if e.users--; e.users == 0 {
			if failed := k.save(ctx, key, e, false); failed != nil {
				err = errors.Join(err, failed)
			}
			if k.Idle > 0 && e.timer == nil {
				e.timer = time.AfterFunc(k.Idle, func() { k.closeIdle(key, e) })
			} else if k.Idle > 0 {
				e.timer.Reset(k.Idle)
			}
		}
		for k.Most > 0 && len(k.open) > k.Most {
			oldest := ""
			for key, e := range k.open {
				if !e.busy && e.users == 0 && (oldest == "" || e.used.Before(k.open[oldest].used)) {
					oldest = key
				}
			}
			if e := k.open[oldest]; e == nil || e.busy || e.users > 0 || k.save(ctx, oldest, e, true) != nil {
				break
			}
		}
	}()
	return use(e.m)
}

func (k *Keeper[M]) take(ctx context.Context, key string) (*kept[M], error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.open[key] != nil && k.open[key].busy {
		if err := k.wait(ctx); err != nil {
			return nil, err
		}
	}
	if k.closed {
		return nil, convo.ErrClosed
	}
	if k.open == nil {
		k.open, k.change = map[string]*kept[M]{}, make(chan struct{})
	}
	e := k.open[key]
	if e == nil {
		e = &kept[M]{}
		k.open[key] = e
		if err := k.unlocked(key, e, func() (err error) {
			defer catchIn(&err, "mirror.Keeper")
			m, err := k.Load(ctx, key)
			switch {
			case err != nil:
			case m == nil:
				err = &convo.ValueError{Name: "what Load of the Keeper has returned", Value: nil, Want: "a Mirror or an error"}
			default:
				e.m, e.stored = m, m.version()
			}
			return err
		}); err != nil {
			return nil, err
		}
	}
	e.users++
	return e, nil
}

// unlocked calls do while others wait for e.
func (k *Keeper[M]) unlocked(key string, e *kept[M], do func() error) error {
	e.busy = true
	k.mu.Unlock()
	defer func() { // also after a panic
		k.mu.Lock()
		if e.busy = false; e.m == nil {
			delete(k.open, key)
		}
		close(k.change)
		k.change = make(chan struct{})
	}()
	return do()
}

func (k *Keeper[M]) wait(ctx context.Context) error {
	change := k.change
	k.mu.Unlock()
	defer k.mu.Lock()
	select {
	case <-change:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// save stores the decisions of an unused Mirror if they have changed, and closes it then if
// it may. An error is logged also.
func (k *Keeper[M]) save(ctx context.Context, key string, e *kept[M], closes bool) error {
	return k.unlocked(key, e, func() (err error) {
		if now := e.m.version(); now != e.stored {
			var data []byte
			if data, err = e.m.Decisions(); err == nil {
				err = k.store(ctx, key, data)
			}
			if err != nil {
				e.m.h.Logger().Warn("mirror: decisions were not stored", "key", key, "err", err)
				return err
			}
			e.stored = now
		}
		if closes {
			err, e.m = e.m.h.Close(), nil
		}
		return err
	})
}

func (k *Keeper[M]) store(ctx context.Context, key string, data []byte) (err error) {
	defer catchIn(&err, "mirror.Keeper")
	return k.Store(ctx, key, data)
}

// closeIdle closes a Mirror that was not used for Idle. If Store fails, it tries again later.
func (k *Keeper[M]) closeIdle(key string, e *kept[M]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed && k.open[key] == e && !e.busy && e.users == 0 && time.Since(e.used) >= k.Idle && k.save(context.Background(), key, e, true) != nil {
		e.timer.Reset(k.Idle)
	}
}

// Close stores and closes all Mirrors. It waits for those in use until ctx is done, while Use
// returns [convo.ErrClosed]. Those that are still in use then, or for which Store has failed,
// stay open, and Close may be called again for them.
func (k *Keeper[M]) Close(ctx context.Context) (err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
keys:
	for key, e := range maps.Clone(k.open) {
		for e.busy || e.users > 0 {
			if done := k.wait(ctx); done != nil {
				err = errors.Join(err, fmt.Errorf("mirror: %q is in use: %w", key, done))
				continue keys
			}
		}
		if k.open[key] == e {
			err = errors.Join(err, k.save(ctx, key, e, true))
		}
	}
	return err
}

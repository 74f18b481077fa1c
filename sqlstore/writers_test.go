package sqlstore_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/sqlstore"
)

// recordAfter returns a record that follows prev.
func recordAfter(key string, prev *convo.Record, data string) convo.Record {
	now := time.Now()
	r := convo.Record{LogInfo: convo.LogInfo{Key: key, Seq: 1, Created: now, Updated: now}, ID: strings.ToLower(rand.Text()), Full: true, Format: 1, Data: []byte(data)}
	if prev != nil {
		r.Seq, r.Prev, r.Full, r.Created = prev.Seq+1, prev.ID, prev.Seq%7 == 0, prev.Created
	}
	return r
}

func appendTo(t *testing.T, s convo.Store, key string, prev *convo.Record) *convo.Record {
	t.Helper()
	r := recordAfter(key, prev, "x")
	require.NoError(t, s.Append(t.Context(), r))
	return &r
}

// readLog returns all records of a key.
func readLog(ctx context.Context, s convo.Store, key string) (log []convo.Record, err error) {
	for r, err := range s.Records(ctx, key, 1) {
		if err != nil {
			return nil, err
		}
		log = append(log, r)
	}
	return log, nil
}

// writeAll appends so many records, as a History does: after an error it looks
// whether the record is there, and tries the same again while it still may be. It
// returns the IDs of what Append has acknowledged.
func writeAll(ctx context.Context, s convo.Store, key string, writer, each int, written *atomic.Int64) (acked []string) {
	for i := range each {
		var r convo.Record
		for done := false; !done && ctx.Err() == nil; {
			log, err := readLog(ctx, s, key)
			if err != nil {
				time.Sleep(5 * time.Millisecond)
				continue
			}
			var newest *convo.Record
			if len(log) > 0 {
				newest = &log[len(log)-1]
			}
			switch {
			case r.ID != "" && slices.ContainsFunc(log, func(l convo.Record) bool { return l.ID == r.ID }):
				done = true
				continue
			case r.ID != "" && newest == nil && r.Prev == "", r.ID != "" && newest != nil && newest.ID == r.Prev:
				// it may still come to be there: no other record in its place
			default:
				r = recordAfter(key, newest, fmt.Sprintf("%d/%d", writer, i))
			}
			if err = s.Append(ctx, r); err == nil {
				acked = append(acked, r.ID)
				done = true
			} else if errors.As(err, new(*convo.ValueError)) {
				panic(err)
			}
		}
		written.Add(1)
	}
	return acked
}

// checkWritten checks that each record of each writer is there once and in order.
// Writer w writes to the key w%4.
func checkWritten(t *testing.T, s convo.Store, acked [][]string, each int) {
	t.Helper()
	for key := range 4 {
		log, err := readLog(t.Context(), s, fmt.Sprintf("key %d", key))
		require.NoError(t, err)
		ids := map[string]bool{}
		next := map[int]int{}
		for i, r := range log {
			if i > 0 {
				require.Equal(t, log[i-1].ID, r.Prev)
				require.Equal(t, log[i-1].Seq+1, r.Seq)
			}
			var w, n int
			_, err := fmt.Fscanf(bytes.NewReader(r.Data), "%d/%d", &w, &n)
			require.NoError(t, err)
			require.Equal(t, next[w], n, "writer %d: a record is there twice, or out of order", w)
			next[w]++
			ids[r.ID] = true
		}
		for w := key; w < len(acked); w += 4 {
			require.Equal(t, each, next[w], "writer %d", w)
			for _, id := range acked[w] {
				require.True(t, ids[id], "an acknowledged record of writer %d is lost", w)
			}
		}
		require.Len(t, log, each*len(acked)/4)
	}
}

var _ convo.Store = (*sqlstore.Store)(nil)

// A keeper is a Store that keeps records that are to be pruned: Prune only writes a full one.
type keeper struct{ convo.Store }

func (keeper) Prune(context.Context, string, uint64) error { return nil }

// Save prunes the log of one writer while another also saves: nothing that is in the view
// is lost or doubled, and the log stays short.
func TestSave_PruneAbove(t *testing.T) {
	const bound, each = 20_000, 40
	path := filepath.Join(t.TempDir(), "chats.db")
	s, _ := openSQLite(t, path)
	var wg sync.WaitGroup
	for w := range 3 {
		db, _ := openSQLite(t, path)
		var own convo.Store = keeper{db}
		opts := &convo.Options{Roles: convo.Relaxed()}
		if w < 2 {
			own, opts.PruneAbove = db, bound
		}
		wg.Go(func() {
			ctx := t.Context()
			h, err := convo.Open(ctx, own, "chat", opts)
			if !assert.NoError(t, err) {
				return
			}
			for i := range each {
				_, err := h.Append(convo.User(fmt.Sprintf("%d/%d%s", w, i, strings.Repeat(" word", 10))))
				assert.NoError(t, err)
				save := h.Save
				if i%8 == 7 {
					save = func(ctx context.Context) error { return h.Prune(ctx, time.Time{}) }
				}
				for err = save(ctx); errors.As(err, new(*convo.ConflictError)); err = save(ctx) {
					_, refused, err := h.Reload(ctx)
					assert.NoError(t, err)
					assert.Empty(t, refused)
				}
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
	opts := &convo.Options{Roles: convo.Relaxed(), PruneAbove: bound}
	h, err := convo.Open(t.Context(), s, "chat", opts)
	require.NoError(t, err)
	next := [3]int{}
	for _, e := range h.Snapshot().All() {
		var w, i int
		_, err := fmt.Sscanf(e.Message.Text(), "%d/%d", &w, &i)
		require.NoError(t, err)
		require.Equal(t, next[w], i)
		next[w]++
	}
	require.Equal(t, [3]int{each, each, each}, next)
	_, err = h.Append(convo.User("the end"))
	require.NoError(t, err)
	require.NoError(t, h.Save(t.Context()))
	log, err := readLog(t.Context(), s, "chat")
	require.NoError(t, err)
	require.Greater(t, log[0].Seq, uint64(1))
	size := 0
	for _, r := range log {
		size += len(r.Data) + 300
	}
	require.True(t, size <= bound || !slices.ContainsFunc(log[1:], func(r convo.Record) bool { return r.Full }), "%d bytes", size)
}

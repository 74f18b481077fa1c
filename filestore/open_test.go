package filestore

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What waits for a lock tries again every 5 milliseconds at most, until ctx ends.
func TestStore_WaitsForTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newTestDisk(nil)
		s := &Store{Dir: "/chats", disk: disk}
		log := fill(t, s, "k", 2)
		node := disk.dirs["/chats"].names[fileName("k")]
		node.excl = true
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		clear(disk.ops)
		_, err := func() (testLog, error) {
			for _, err := range s.Records(ctx, "k", 0) {
				return nil, err
			}
			return nil, nil
		}()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.InDelta(t, 205, disk.ops["lock"], 5)
		start := time.Now()
		disk.step = func(string) error {
			node.excl = node.excl && time.Since(start) < 12*time.Millisecond
			return nil
		}
		require.NoError(t, s.Append(t.Context(), log.next(rand.New(rand.NewPCG(2, 2)), "k")))
		assert.GreaterOrEqual(t, time.Since(start), 12*time.Millisecond)
		assert.LessOrEqual(t, time.Since(start), 17*time.Millisecond)
	})
}

// What is being read is not locked: the goroutine that reads it can append.
func TestStore_AppendWhileReading(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	log := fill(t, s, "k", 2)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // for a lock that is never given up
	defer cancel()
	n := 0
	for _, err := range s.Records(ctx, "k", 0) {
		require.NoError(t, err)
		if n++; n == 1 {
			require.NoError(t, s.Append(ctx, log.next(rand.New(rand.NewPCG(2, 2)), "k")))
		}
	}
	assert.Positive(t, n)
}

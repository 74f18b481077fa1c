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

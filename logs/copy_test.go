package logs_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/filestore"
	"github.com/seed-c1b73e60/convo/logs"
)

// logOf appends a log to s, of which the records that a letter F stands for are full.
func logOf(t *testing.T, s convo.Store, key, kinds string) []convo.Record {
	t.Helper()
	return moreOf(t, s, key, nil, kinds)
}

// moreOf appends records after those of log, and returns them all.
func moreOf(t *testing.T, s convo.Store, key string, log []convo.Record, kinds string) []convo.Record {
	t.Helper()
	for _, kind := range kinds {
		n := len(log) + 1
		at := time.Date(2026, 5, 6, 7, 8, n, 0, time.UTC)
		r := convo.Record{
			LogInfo: convo.LogInfo{Key: key, Title: key, Seq: uint64(n), Created: at, Updated: at, Entries: n},
			ID:      fmt.Sprintf("%s%026d", key, n), Full: kind == 'F', Format: 1, Upto: convo.ID(n), Data: fmt.Appendf(nil, `{"n":%d}`, n),
		}
		r.ID = r.ID[:len(key)] + r.ID[2*len(key):]
		if n > 1 {
			r.Prev = log[n-2].ID
		}
		require.NoError(t, s.Append(t.Context(), r))
		log = append(log, r)
	}
	return log
}

// recordsOf returns what is stored under a key.
func recordsOf(t *testing.T, s convo.Store, key string) (log []convo.Record) {
	t.Helper()
	for r, err := range s.Records(t.Context(), key, 1) {
		require.NoError(t, err)
		log = append(log, r)
	}
	return log
}

// moved returns a log as it is under another key.
func moved(log []convo.Record, key string) []convo.Record {
	log = slices.Clone(log)
	for i := range log {
		log[i].Key = key
	}
	return log
}

func TestCopy_CopiesAndGoesOn(t *testing.T) {
	ctx := t.Context()
	var from, to convotest.MemStore
	log := logOf(t, &from, "a", "FPPFP")
	require.NoError(t, logs.Copy(ctx, &to, "b", &from, "a"))
	require.Equal(t, moved(log, "b"), recordsOf(t, &to, "b"))
	require.NoError(t, logs.Copy(ctx, &to, "b", &from, "a"), "nothing to do")
	log = moreOf(t, &from, "a", log, "PF")
	require.NoError(t, logs.Copy(ctx, &to, "b", &from, "a"))
	require.Equal(t, moved(log, "b"), recordsOf(t, &to, "b"))
	require.NoError(t, logs.Copy(ctx, &from, "b", &from, "a"), "within one store")
	require.Equal(t, moved(log, "b"), recordsOf(t, &from, "b"))
	require.NoError(t, logs.Copy(ctx, &from, "a", &from, "a"), "onto itself")
	require.Equal(t, log, recordsOf(t, &from, "a"))
}

func TestCopy_OfAPrunedLog(t *testing.T) {
	ctx := t.Context()
	var from, to, late, far convotest.MemStore
	log := logOf(t, &from, "a", "FPF")
	require.NoError(t, logs.Copy(ctx, &late, "b", &from, "a"))
	log = moreOf(t, &from, "a", log, "F")
	require.NoError(t, from.Prune(ctx, "a", 4))
	require.NoError(t, logs.Copy(ctx, &to, "b", &from, "a"))
	want := moved(log[3:], "b")
	want[0].Prev = ""
	require.Equal(t, want, recordsOf(t, &to, "b"), "begins with the full record")
	log = moreOf(t, &from, "a", log, "P")
	require.NoError(t, logs.Copy(ctx, &to, "b", &from, "a"), "and goes on")
	require.Len(t, recordsOf(t, &to, "b"), 2)
	require.NoError(t, logs.Copy(ctx, &late, "b", &from, "a"), "the first record that is left follows the copy's newest")
	require.Equal(t, moved(log, "b"), recordsOf(t, &late, "b"))
	logOf(t, &far, "a", "FP")
	err := logs.Copy(ctx, &far, "a", &from, "a")
	conflict, _ := errors.AsType[*convo.ConflictError](err)
	require.Equal(t, &convo.ConflictError{Key: "a", Have: 2, Want: 4, ID: log[1].ID}, conflict, "record 3 is gone")
}

func TestCopy_Refuses(t *testing.T) {
	ctx := t.Context()
	var from, to convotest.MemStore
	require.ErrorIs(t, logs.Copy(ctx, &to, "b", &from, "a"), convo.ErrNotFound)
	log := logOf(t, &from, "a", "FPP")

	other := logOf(t, &to, "b", "FP")
	err := logs.Copy(ctx, &to, "b", &from, "a")
	conflict, _ := errors.AsType[*convo.ConflictError](err)
	require.Equal(t, &convo.ConflictError{Key: "b", Have: 2, Want: 2, ID: other[1].ID}, conflict, "another conversation")
	const remedy = `logs: copy to "b": the log there holds other records, the newest of which is record 2; copy to another key, or delete that log and copy again`
	require.EqualError(t, err, remedy)
	require.Equal(t, other, recordsOf(t, &to, "b"))
	other = logOf(t, &to, "c", "FPPPP")
	err = logs.Copy(ctx, &to, "c", &from, "a")
	conflict, _ = errors.AsType[*convo.ConflictError](err)
	require.Equal(t, &convo.ConflictError{Key: "c", Have: 5, Want: 6, ID: other[4].ID}, conflict, "a longer one")

	require.NoError(t, logs.Copy(ctx, &to, "d", &from, "a"))
	moreOf(t, &to, "d", moved(log, "d"), "P")
	require.ErrorAs(t, logs.Copy(ctx, &to, "d", &from, "a"), new(*convo.ConflictError), "the copy went on by itself")
	moreOf(t, &from, "a", log, "PP")
	moreOf(t, &to, "e", nil, "F")
	require.ErrorAs(t, logs.Copy(ctx, &to, "e", &from, "a"), new(*convo.ConflictError))

	for _, err := range []error{
		logs.Copy(ctx, nil, "b", &from, "a"), logs.Copy(ctx, &to, "b", nil, "a"),
		logs.Copy(ctx, &to, "", &from, "a"), logs.Copy(ctx, &to, "b", &from, ""),
	} {
		require.ErrorAs(t, err, new(*convo.ValueError))
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, logs.Copy(ended, &to, "f", &from, "a"), context.Canceled)
	var p *convotest.MemStore
	require.ErrorAs(t, logs.Copy(ctx, p, "f", &from, "a"), new(*convo.PanicError))
}

// While the log is copied, another deletes the copy, or adds to it.
func TestCopy_AnotherChangesTheCopy(t *testing.T) {
	for want, change := range map[string]func(*convotest.MemStore) error{
		`logs: copy to "b": the log there was deleted during the copy; copy again`: func(s *convotest.MemStore) error { return s.Delete(t.Context(), "b") },
		`logs: copy to "b": the log there holds other records, the newest of which is record 2; copy to another key, or delete that log and copy again`: func(s *convotest.MemStore) error {
			moreOf(t, s, "b", recordsOf(t, s, "b"), "P")
			return nil
		},
	} {
		var from, to convotest.MemStore
		logOf(t, &from, "a", "FPP")
		err := logs.Copy(t.Context(), &to, "b", &disturbedStore{&from, func(r convo.Record) error {
			if r.Seq == 2 {
				return change(&to)
			}
			return nil
		}}, "a")
		require.EqualError(t, err, want)
		require.ErrorAs(t, err, new(*convo.ConflictError))
	}
}

// A disturbedStore calls a function before it yields a record.
type disturbedStore struct {
	*convotest.MemStore
	before func(convo.Record) error
}

func (s *disturbedStore) Records(ctx context.Context, key string, from uint64) iter.Seq2[convo.Record, error] {
	return func(yield func(convo.Record, error) bool) {
		for r, err := range s.MemStore.Records(ctx, key, from) {
			if err == nil {
				err = s.before(r)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

func TestCopy_NilContextNeverEnds(t *testing.T) {
	from := &filestore.Store{Dir: t.TempDir(), NoSync: true}
	log := logOf(t, from, "a", "FP")
	to := &filestore.Store{Dir: t.TempDir(), NoSync: true}
	//lint:ignore SA1012 a nil ctx never ends
	require.NoError(t, logs.Copy(nil, to, "b", from, "a"))
	require.Equal(t, moved(log, "b"), recordsOf(t, to, "b"))
}

// A holedStore leaves out the second record of each log.
type holedStore struct{ convotest.MemStore }

func (s *holedStore) Records(ctx context.Context, key string, from uint64) iter.Seq2[convo.Record, error] {
	return func(yield func(convo.Record, error) bool) {
		for r, err := range s.MemStore.Records(ctx, key, from) {
			if r.Seq != 2 && !yield(r, err) {
				return
			}
		}
	}
}

// What is wrong with the source is not blamed on the copy.
func TestCopy_OfADamagedLog(t *testing.T) {
	var from holedStore
	logOf(t, &from, "a", "FPP")
	err := logs.Copy(t.Context(), new(convotest.MemStore), "b", &from, "a")
	damage, ok := errors.AsType[*convo.DamageError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, "a", damage.Key)
	require.EqualValues(t, 1, damage.Seq)
}

// A copy goes on in another way than the conversation that it was made of. Rollback to
// what Load returns of the copy begins it at an earlier state.
func ExampleCopy() {
	ctx := context.Background()
	store := new(convotest.MemStore)
	h, _ := convo.Open(ctx, store, "42", nil)
	h.Append(convo.User("Flights to Rome?"), convo.Assistant("Two."))
	h.Save(ctx)

	fmt.Println(logs.Copy(ctx, store, "42 by train", store, "42"))
	fork, _ := convo.Open(ctx, store, "42 by train", nil)
	fork.Append(convo.User("And trains?"), convo.Assistant("One, at night."))
	fmt.Println(fork.Save(ctx))
	h.Append(convo.User("Book the first."), convo.Assistant("Done."))
	fmt.Println(h.Save(ctx))
	for _, h := range []*convo.History{h, fork} {
		key, seq := h.Saved()
		newest, _ := h.Snapshot().At(2)
		fmt.Println(key, seq, newest)
	}
	// Output:
	// <nil>
	// <nil>
	// <nil>
	// 42 2 3 user: Book the first.
	// 42 by train 2 3 user: And trains?
}

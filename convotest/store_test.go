package convotest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/logs"
)

func TestCheckStore_AcceptsStoresThatFollowTheRules(t *testing.T) {
	var s, inner convotest.MemStore
	convotest.TestStore(t, func() convo.Store { return &s })
	same := func(_ logs.Field, data []byte) ([]byte, error) { return data, nil }
	convotest.TestStore(t, func() convo.Store { return logs.Sealed(&inner, same, same) })
	convotest.TestStore(t, func() convo.Store { return &plainStore{Store: &s} })
	require.Empty(t, slices.Collect(maps.Keys(maps.Collect(s.List(t.Context(), convo.ListOptions{})))), "the place is not empty again")
}

// A plainStore is no Pruner.
type plainStore struct{ convo.Store }

// A bentStore is a MemStore of which some methods are bent.
type bentStore struct {
	convotest.MemStore
	append  func(ctx context.Context, r convo.Record) error
	records func(ctx context.Context, key string, from uint64) iter.Seq2[convo.Record, error]
	list    func(ctx context.Context, opts convo.ListOptions) iter.Seq2[convo.LogInfo, error]
	delete  func(ctx context.Context, key string) error
	prune   func(ctx context.Context, key string, before uint64) error

	marks sync.Map // what seen was asked for
}

// seen reports whether it was asked for s before.
func (b *bentStore) seen(s string) bool {
	_, seen := b.marks.LoadOrStore(s, true)
	return seen
}

// bendKeys returns a change that maps all keys.
func bendKeys(f func(string) string) func(*bentStore) {
	return func(s *bentStore) {
		s.append = func(ctx context.Context, r convo.Record) error {
			if r.Key != "" && len(r.Key) <= 4096 {
				r.Key = f(r.Key)
			}
			return s.MemStore.Append(ctx, r)
		}
		s.records = func(ctx context.Context, key string, from uint64) iter.Seq2[convo.Record, error] {
			return changed(s.MemStore.Records(ctx, f(key), from), func(r *convo.Record) { r.Key = key })
		}
		s.delete = func(ctx context.Context, key string) error { return s.MemStore.Delete(ctx, f(key)) }
	}
}

// bendRecords returns a change to what Records yields.
func bendRecords(change func(*convo.Record)) func(*bentStore) {
	return onRecords(func(ctx context.Context, s *bentStore, key string, from uint64) iter.Seq2[convo.Record, error] {
		return changed(s.MemStore.Records(ctx, key, from), change)
	})
}

// bendAppend returns a change to what Append stores.
func bendAppend(change func(*convo.Record)) func(*bentStore) {
	return onAppend(func(ctx context.Context, s *bentStore, r convo.Record) error {
		change(&r)
		return s.MemStore.Append(ctx, r)
	})
}

// bendList returns a change to what List yields.
func bendList(change func([]convo.LogInfo) []convo.LogInfo) func(*bentStore) {
	return onList(func(ctx context.Context, s *bentStore, opts convo.ListOptions) iter.Seq2[convo.LogInfo, error] {
		return reordered(s.MemStore.List(ctx, opts), change)
	})
}

// bendOptions returns a change to the options of List.
func bendOptions(change func(*convo.ListOptions)) func(*bentStore) {
	return onList(func(ctx context.Context, s *bentStore, opts convo.ListOptions) iter.Seq2[convo.LogInfo, error] {
		change(&opts)
		return s.MemStore.List(ctx, opts)
	})
}

// bendPrefix returns a change that lists keys by another rule.
func bendPrefix(is func(prefix, key string) bool) func(*bentStore) {
	return onList(func(ctx context.Context, s *bentStore, opts convo.ListOptions) iter.Seq2[convo.LogInfo, error] {
		return reordered(s.MemStore.List(ctx, convo.ListOptions{}), func(h []convo.LogInfo) []convo.LogInfo {
			return slices.DeleteFunc(h, func(h convo.LogInfo) bool { return !is(opts.Prefix, h.Key) })
		})
	})
}

// newBent returns a bentStore of which no method is bent.
func newBent() *bentStore {
	s := new(bentStore)
	s.append, s.records, s.list = s.MemStore.Append, s.MemStore.Records, s.MemStore.List
	s.delete, s.prune = s.MemStore.Delete, s.MemStore.Prune
	return s
}

func (s *bentStore) Append(ctx context.Context, r convo.Record) error { return s.append(ctx, r) }

func (s *bentStore) Records(ctx context.Context, key string, from uint64) iter.Seq2[convo.Record, error] {
	return s.records(ctx, key, from)
}

func (s *bentStore) List(ctx context.Context, opts convo.ListOptions) iter.Seq2[convo.LogInfo, error] {
	return s.list(ctx, opts)
}

func (s *bentStore) Delete(ctx context.Context, key string) error { return s.delete(ctx, key) }

func (s *bentStore) Prune(ctx context.Context, key string, before uint64) error {
	return s.prune(ctx, key, before)
}

// changed yields what seq does, with each value changed.
func changed[T any](seq iter.Seq2[T, error], change func(*T)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range seq {
			change(&v)
			if !yield(v, err) {
				return
			}
		}
	}
}

// reordered yields what seq does in another order, or part of it.
func reordered[T any](seq iter.Seq2[T, error], f func([]T) []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var all []T
		for v, err := range seq {
			if err != nil {
				yield(v, err)
				return
			}
			all = append(all, v)
		}
		for _, v := range f(all) {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// onAppend returns a change that replaces Append, and the others replace the other methods.
func onAppend(f func(ctx context.Context, s *bentStore, r convo.Record) error) func(*bentStore) {
	return func(s *bentStore) {
		s.append = func(ctx context.Context, r convo.Record) error { return f(ctx, s, r) }
	}
}

// onConflict returns a change to what Append returns for a conflict.
func onConflict(f func(s *bentStore, r convo.Record, conflict *convo.ConflictError) error) func(*bentStore) {
	return onAppend(func(ctx context.Context, s *bentStore, r convo.Record) error {
		err := s.MemStore.Append(ctx, r)
		if conflict, ok := errors.AsType[*convo.ConflictError](err); ok {
			return f(s, r, conflict)
		}
		return err
	})
}

func onRecords(f func(ctx context.Context, s *bentStore, key string, from uint64) iter.Seq2[convo.Record, error]) func(*bentStore) {
	return func(s *bentStore) {
		s.records = func(ctx context.Context, key string, from uint64) iter.Seq2[convo.Record, error] {
			return f(ctx, s, key, from)
		}
	}
}

func onList(f func(ctx context.Context, s *bentStore, opts convo.ListOptions) iter.Seq2[convo.LogInfo, error]) func(*bentStore) {
	return func(s *bentStore) {
		s.list = func(ctx context.Context, opts convo.ListOptions) iter.Seq2[convo.LogInfo, error] {
			return f(ctx, s, opts)
		}
	}
}

func onDelete(f func(ctx context.Context, s *bentStore, key string) error) func(*bentStore) {
	return func(s *bentStore) {
		s.delete = func(ctx context.Context, key string) error { return f(ctx, s, key) }
	}
}

func onPrune(f func(ctx context.Context, s *bentStore, key string, before uint64) error) func(*bentStore) {
	return func(s *bentStore) {
		s.prune = func(ctx context.Context, key string, before uint64) error { return f(ctx, s, key, before) }
	}
}

// newest returns the newest record of a key.
func newest(s convo.Store, key string) (last convo.Record) {
	for r := range s.Records(context.Background(), key, 0) {
		last = r
	}
	return last
}

func TestCheckStore_NamesTheBrokenRule(t *testing.T) {
	type record = convo.Record
	type head = convo.LogInfo
	tests := []struct {
		name string
		bend func(s *bentStore)
		want string // how the text behind "store: " begins
	}{
		{"not empty", func(s *bentStore) {
			s.list = func(context.Context, convo.ListOptions) iter.Seq2[head, error] {
				return func(yield func(head, error) bool) { yield(head{Key: "old"}, nil) }
			}
		}, `is not empty at first (key "old"); open it in a place of its own`},
		{"loses Prev", bendRecords(func(r *record) { r.Prev = "" }), `does not yield what Append has taken (record 2 of a log that begins with Seq 1, record 2 of 2: Prev is "", want "convotest`},
		{"loses Upto", bendRecords(func(r *record) { r.Upto = convo.ID(int32(r.Upto)) }), `does not yield what Append has taken (record 5 of a log that begins with Seq 1, record 5 of 5: Upto is 0, want 1099511627776`},
		{"loses milliseconds", bendAppend(func(r *record) { r.Updated = r.Updated.Truncate(time.Microsecond) }), `does not yield what Append has taken (record 1 of a log that begins with Seq 1, record 1 of 1: Updated is `},
		{"makes titles valid UTF-8", bendAppend(func(r *record) { r.Title = strings.ToValidUTF8(r.Title, "?") }), `does not yield what Append has taken (record 3 of a log that begins with Seq 1, record 3 of 3: Title is `},
		{"ends titles at a NUL", bendAppend(func(r *record) { r.Title, _, _ = strings.Cut(r.Title, "\x00") }), `does not yield what Append has taken (record 3 of `},
		{"keeps too little of a title", bendAppend(func(r *record) { r.Title = r.Title[:min(len(r.Title), 127)] }), `does not yield what Append has taken (record 3 of `},
		{"keeps Seq in 32 bits", bendAppend(func(r *record) { r.Seq = uint64(uint32(r.Seq-1)) + 1 }), `does not yield what Append has taken (record 1 of a log that begins with Seq 1099511627776`},
		{"yields the newest instead of the newest full one", onRecords(func(ctx context.Context, s *bentStore, key string, from uint64) iter.Seq2[record, error] {
			if from == 0 {
				from = newest(&s.MemStore, key).Seq
			}
			return s.MemStore.Records(ctx, key, from)
		}), `does not begin with the newest full record when Records is asked from 0 (record 2 of a log that begins with Seq 1, record 1 of 2: ID is `},
		{"yields all from 0", onRecords(func(ctx context.Context, s *bentStore, key string, from uint64) iter.Seq2[record, error] {
			return s.MemStore.Records(ctx, key, max(from, 1))
		}), `does not begin with the newest full record when Records is asked from 0 (record 4 of`},
		{"yields from behind a Seq", onRecords(func(ctx context.Context, s *bentStore, key string, from uint64) iter.Seq2[record, error] {
			if from > 1 {
				from++
			}
			return s.MemStore.Records(ctx, key, from)
		}), `does not yield the records with a Seq of at least that asked for (from 2`},
		{"ranges once", onRecords(func(ctx context.Context, s *bentStore, key string, from uint64) iter.Seq2[record, error] {
			next, _ := iter.Pull2(s.MemStore.Records(ctx, key, from))
			return func(yield func(record, error) bool) {
				for r, err, ok := next(); ok && yield(r, err); {
					r, err, ok = next()
				}
			}
		}), `yields something else when Records is ranged over again (`},
		{"keeps the caller's Data", func(s *bentStore) {
			kept := map[string][]byte{}
			var mu sync.Mutex
			s.append = func(ctx context.Context, r record) error {
				mu.Lock()
				kept[r.ID] = r.Data
				mu.Unlock()
				return s.MemStore.Append(ctx, r)
			}
			s.records = func(ctx context.Context, key string, from uint64) iter.Seq2[record, error] {
				return changed(s.MemStore.Records(ctx, key, from), func(r *record) {
					mu.Lock()
					r.Data = slices.Clone(kept[r.ID])
					mu.Unlock()
				})
			}
		}, `shares Data with its caller (the Data that Append was given is changed afterwards`},
		{"yields its own Data", func(s *bentStore) {
			kept := map[string][]byte{}
			s.records = func(ctx context.Context, key string, from uint64) iter.Seq2[record, error] {
				return changed(s.MemStore.Records(ctx, key, from), func(r *record) {
					if kept[r.ID] == nil {
						kept[r.ID] = r.Data
					}
					r.Data = kept[r.ID]
				})
			}
		}, `shares Data with its caller (the Data that Records has yielded is changed`},
		{"not idempotent", onAppend(func(ctx context.Context, s *bentStore, r record) error {
			if last := newest(s, r.Key); last.ID == r.ID {
				return &convo.ConflictError{Key: r.Key, Have: last.Seq, Want: r.Seq, ID: last.ID}
			}
			return s.MemStore.Append(ctx, r)
		}), `does not return nil when the newest record is appended again (record 1 of 1`},
		{"twice", onAppend(func(ctx context.Context, s *bentStore, r record) error {
			err := s.MemStore.Append(ctx, r)
			r.Prev, r.Seq = r.ID, r.Seq+1
			if last := newest(s, r.Key); last.ID == r.ID && last.Seq+1 == r.Seq && strings.HasPrefix(r.Key, "again") && err == nil && s.seen(r.ID) {
				r.ID = strings.ToUpper(r.ID)
				return s.MemStore.Append(ctx, r)
			}
			return err
		}), `writes a record twice when it is appended again (record 1 of 1`},
		{"swallows a conflict", onConflict(func(*bentStore, record, *convo.ConflictError) error { return nil }), `takes a record that does not follow the newest one (a record for an unused key that names one before it)`},
		{"a conflict without a type", onConflict(func(*bentStore, record, *convo.ConflictError) error { return errors.New("conflict") }), `does not return a *ConflictError that names the newest record when another follows (a record for an unused key that names one before it, "conflict"`},
		{"a conflict that names itself", onConflict(func(_ *bentStore, r record, conflict *convo.ConflictError) error {
			if conflict.ID != "" {
				conflict.ID = r.ID
			}
			return conflict
		}), `does not return a *ConflictError that names the newest record when another follows (record 1 of 3 once more, Key "again 2", Have 3, Want 1, ID `},
		{"overwrites", onAppend(func(ctx context.Context, s *bentStore, r record) error {
			if r.Prev == "" && r.Check() == nil && newest(s, r.Key).ID != r.ID {
				if err := s.MemStore.Delete(ctx, r.Key); err != nil {
					return err
				}
			}
			return s.MemStore.Append(ctx, r)
		}), `takes a record that does not follow the newest one (record 1 of 3 once more)`},
		{"judges by Seq", onAppend(func(ctx context.Context, s *bentStore, r record) error {
			if last := newest(s, r.Key); r.Prev != "" && last.ID != "" && r.Seq == last.Seq+1 {
				r.Prev = last.ID
			}
			return s.MemStore.Append(ctx, r)
		}), `takes a record that does not follow the newest one (a record that follows an unknown one with the Seq of the newest)`},
		{"ignores case of IDs", bendAppend(func(r *record) { r.Prev = strings.ToLower(r.Prev) }), `takes a record that does not follow the newest one (a record whose Prev is the newest ID in capitals)`},
		{"writes in a conflict", onConflict(func(s *bentStore, r record, conflict *convo.ConflictError) error {
			if conflict.Key == "conflicts" {
				_ = s.MemStore.Delete(context.Background(), r.Key)
			}
			return conflict
		}), `changes the log though it returns an error (a first record for a key in use, `},
		{"allows a gap", onAppend(func(ctx context.Context, s *bentStore, r record) error {
			if r.Prev != "" && newest(s, r.Key).ID == r.Prev {
				r.Seq = newest(s, r.Key).Seq + 1
			}
			return s.MemStore.Append(ctx, r)
		}), `takes a record that is not valid (a Seq that leaves a gap)`},
		{"no Check", bendAppend(func(r *record) { r.Title = r.Title[:min(len(r.Title), 256)] }), `takes a record that is not valid (a title of 257 bytes)`},
		{"no ValueError", onAppend(func(ctx context.Context, s *bentStore, r record) error {
			if err := s.MemStore.Append(ctx, r); errors.As(err, new(*convo.ValueError)) {
				return fmt.Errorf("bad: %v", err)
			}
			return s.MemStore.Append(ctx, r)
		}), `does not return a *ValueError (a Seq that leaves a gap, `},
		{"keys of any case", bendKeys(strings.ToLower), `refuses a record that follows the newest one (key 2 of `},
		{"keys without trailing spaces", bendKeys(func(k string) string { return cmp.Or(strings.TrimRight(k, " "), " ") }), `refuses a record that follows the newest one (key 4 of `},
		{"keys up to a NUL", bendKeys(func(k string) string { k, _, _ = strings.Cut(k, "\x00"); return cmp.Or(k, "\x00") }), `refuses a record that follows the newest one (key 6 of `},
		{"keys in valid UTF-8", bendKeys(func(k string) string { return strings.ToValidUTF8(k, "\ufffd") }), `refuses a record that follows the newest one (`},
		{"keys up to 255 bytes", bendKeys(func(k string) string { return k[:min(len(k), 255)] }), `refuses a record that follows the newest one (`},
		{"paths", bendKeys(func(k string) string { return strings.ReplaceAll(k, "a/../b", "a/b") }), `refuses a record that follows the newest one (key `},
		{"a prefix as a pattern", bendPrefix(func(prefix, key string) bool { // as of LIKE
			return len(prefix) > 0 && prefix[0] == '%' && strings.Contains(key, prefix[1:]) || strings.HasPrefix(key, prefix)
		}), `lists other keys than those that begin with the prefix (prefix "%", `},
		{"a prefix with a backslash", bendPrefix(func(prefix, key string) bool {
			return strings.HasPrefix(key, strings.ReplaceAll(prefix, "\\", ""))
		}), `lists other keys than those that begin with the prefix (prefix "\\", key "key")`},
		{"a prefix of any case", bendPrefix(func(prefix, key string) bool {
			return len(prefix) <= len(key) && strings.EqualFold(prefix, key[:len(prefix)])
		}), `lists other keys than those that begin with the prefix (prefix "key", key "K`},
		{"a prefix anywhere", bendPrefix(func(prefix, key string) bool { return strings.Contains(key, prefix) }), `lists other keys than those that begin with the prefix (prefix "key", key " key")`},
		{"oldest first", bendList(func(h []head) []head { slices.Reverse(h); return h }), `does not list the most recently updated first (`},
		{"a first page only", bendList(func(h []head) []head { return h[:min(len(h), 100)] }), `lists other keys than those that begin with the prefix (100 keys of 250 with the prefix "heads/")`},
		{"the time is not looked at", bendOptions(func(o *convo.ListOptions) { o.UpdatedBefore = time.Time{} }), `does not list the conversations updated before ListOptions.UpdatedBefore, and no others (UpdatedBefore 20`},
		{"the time itself", bendOptions(func(o *convo.ListOptions) {
			if !o.UpdatedBefore.IsZero() {
				o.UpdatedBefore = o.UpdatedBefore.Add(1)
			}
		}), `does not list the conversations updated before ListOptions.UpdatedBefore, and no others (UpdatedBefore 20`},
		{"always the first page", bendOptions(func(o *convo.ListOptions) { o.After = convo.LogInfo{} }), `does not go on after ListOptions.After (pages of 21 heads and more, `},
		{"after the time alone", bendOptions(func(o *convo.ListOptions) {
			if o.After.Key != "" {
				o.After.Key = "\xff"
			}
		}), `does not go on after ListOptions.After (pages of 21 heads and more, `},
		{"after the place of a key", onList(func(ctx context.Context, s *bentStore, opts convo.ListOptions) iter.Seq2[head, error] {
			key := opts.After.Key
			opts.After = convo.LogInfo{}
			return reordered(s.MemStore.List(ctx, opts), func(h []head) []head {
				return h[slices.IndexFunc(h, func(h head) bool { return h.Key == key })+1:]
			})
		}), `does not go on after ListOptions.After (after a head that was updated since, `},
		{"a page twice", bendList(func(h []head) []head { return slices.Insert(h, len(h)/2, h[len(h)/2:min(len(h), len(h)/2+1)]...) }), `lists a key twice (`},
		{"the first head", onList(func(ctx context.Context, s *bentStore, opts convo.ListOptions) iter.Seq2[head, error] {
			return changed(s.MemStore.List(ctx, opts), func(h *head) {
				for r := range s.MemStore.Records(ctx, h.Key, 1) {
					h.Title = r.Title
					break
				}
			})
		}), `lists another head than that of the newest record (`},
		{"Delete leaves records", func(s *bentStore) {
			s.list = func(ctx context.Context, opts convo.ListOptions) iter.Seq2[head, error] {
				return reordered(s.MemStore.List(ctx, opts), func(h []head) []head {
					return slices.DeleteFunc(h, func(h head) bool { return h.Key == "deleted" })
				})
			}
			s.delete = func(ctx context.Context, key string) error {
				if key == "deleted" {
					return nil
				}
				return s.MemStore.Delete(ctx, key)
			}
		}, `keeps something of a log that was deleted (Records from 0, `},
		{"Delete leaves a head", onList(func(ctx context.Context, s *bentStore, opts convo.ListOptions) iter.Seq2[head, error] {
			return reordered(s.MemStore.List(ctx, opts), func(h []head) []head {
				if opts.Prefix == "deleted" && len(h) == 1 {
					h = append(h, head{Key: "deleted"})
				}
				return h
			})
		}), `keeps something of a log that was deleted (List)`},
		{"a tombstone", func(s *bentStore) {
			gone := map[string]bool{}
			s.delete = func(ctx context.Context, key string) error {
				gone[key] = true
				return s.MemStore.Delete(ctx, key)
			}
			s.append = func(ctx context.Context, r record) error {
				if r.Key == "deleted" && gone[r.Key] && r.Prev == "" && newest(s, r.Key).ID == "" {
					return errors.New("deleted")
				}
				return s.MemStore.Append(ctx, r)
			}
		}, `does not begin a log under the key of one that was deleted (Seq 3, which was in use, "deleted"`},
		{"an unused key", onDelete(func(ctx context.Context, s *bentStore, key string) error {
			if newest(s, key).ID == "" {
				return convo.ErrNotFound
			}
			return s.MemStore.Delete(ctx, key)
		}), `fails for a key without a log (in Delete, "convo: not found")`},
		{"no records", onRecords(func(ctx context.Context, s *bentStore, key string, from uint64) iter.Seq2[record, error] {
			if newest(&s.MemStore, key).ID == "" {
				return func(yield func(record, error) bool) { yield(record{}, convo.ErrNotFound) }
			}
			return s.MemStore.Records(ctx, key, from)
		}), `fails in Records (an unused key, "convo: not found")`},
		{"ignores ctx in Append", func(s *bentStore) {
			s.append = func(ctx context.Context, r record) error { return s.MemStore.Append(context.WithoutCancel(ctx), r) }
		}, `goes on though ctx has ended (in Append)`},
		{"ignores ctx in Records", onRecords(func(ctx context.Context, s *bentStore, key string, from uint64) iter.Seq2[record, error] {
			return s.MemStore.Records(context.WithoutCancel(ctx), key, from)
		}), `goes on though ctx has ended (in Records)`},
		{"ignores ctx in a loop", onRecords(func(ctx context.Context, s *bentStore, key string, from uint64) iter.Seq2[record, error] {
			if ctx.Err() == nil {
				ctx = context.WithoutCancel(ctx)
			}
			return s.MemStore.Records(ctx, key, from)
		}), `goes on though ctx has ended (in a loop over 20 records whose body cancels ctx)`},
		{"ignores ctx in List", onList(func(ctx context.Context, s *bentStore, opts convo.ListOptions) iter.Seq2[head, error] {
			return s.MemStore.List(context.WithoutCancel(ctx), opts)
		}), `goes on though ctx has ended (in List)`},
		{"ignores ctx in Delete", onDelete(func(ctx context.Context, s *bentStore, key string) error {
			return s.MemStore.Delete(context.WithoutCancel(ctx), key)
		}), `goes on though ctx has ended (in Delete)`},
		{"waits for ever", func(s *bentStore) {
			s.append = func(ctx context.Context, r record) error { <-ctx.Done(); return ctx.Err() }
		}, `does not return within a minute (in Append)`},
		{"panics", func(s *bentStore) {
			s.append = func(ctx context.Context, r record) error { panic("out of order") }
		}, `panics (in Append, "out of order")`},
		{"a lock held in a loop", func(s *bentStore) {
			lock := make(chan struct{}, 1)
			s.append = func(ctx context.Context, r record) error {
				select {
				case lock <- struct{}{}:
					defer func() { <-lock }()
					return s.MemStore.Append(ctx, r)
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			s.records = func(ctx context.Context, key string, from uint64) iter.Seq2[record, error] {
				return func(yield func(record, error) bool) {
					select {
					case lock <- struct{}{}:
						defer func() { <-lock }()
						s.MemStore.Records(ctx, key, from)(yield)
					case <-ctx.Done():
						yield(record{}, ctx.Err())
					}
				}
			}
		}, `does not return within a minute (in Append, Delete, Records or List inside a loop over Records)`},
		{"prunes nothing", onPrune(func(ctx context.Context, s *bentStore, key string, before uint64) error {
			if before == 3 {
				return nil
			}
			return s.MemStore.Prune(ctx, key, before)
		}), `does not remove the records before a full one, and no others, in Prune (before record 3 of 9, `},
		{"prunes too much", onPrune(func(ctx context.Context, s *bentStore, key string, before uint64) error {
			if before == 3 {
				before = 5
			}
			return s.MemStore.Prune(ctx, key, before)
		}), `does not remove the records before a full one, and no others, in Prune (before record 3 of 9, `},
		{"prunes before any", onPrune(func(ctx context.Context, s *bentStore, key string, before uint64) error {
			err := s.MemStore.Prune(ctx, key, before)
			if before == 2 {
				return nil
			}
			return err
		}), `does not remove the records before a full one, and no others, in Prune (Prune before a record that is not full)`},
		{"a Prune that comes late", onPrune(func(ctx context.Context, s *bentStore, key string, before uint64) error {
			for r := range s.MemStore.Records(ctx, key, 1) {
				if r.Seq > before {
					return &convo.ValueError{Name: "before", Value: before, Want: "the Seq of a full record"}
				}
				break
			}
			return s.MemStore.Prune(ctx, key, before)
		}), `does not return nil from Prune when the records are gone already (Prune before a record that was removed, `},
		{"loses what is written at once", onAppend(func(ctx context.Context, s *bentStore, r record) error {
			if strings.HasPrefix(r.Key, "at once") && r.Seq == 3 && !s.seen(r.Key) {
				return nil
			}
			return s.MemStore.Append(ctx, r)
		}), `loses a record that Append has taken, when several goroutines write (record `},
		{"not for several", func(s *bentStore) {
			var inside atomic.Int32
			s.append = func(ctx context.Context, r record) error {
				defer inside.Add(-1)
				if inside.Add(1) > 1 {
					return errors.New("two at once")
				}
				if strings.HasPrefix(r.Key, "at once") {
					time.Sleep(time.Second)
				}
				return s.MemStore.Append(ctx, r)
			}
		}, `fails when several goroutines write ("two at once")`},
		{"a refused record that is written", onAppend(func(ctx context.Context, s *bentStore, r record) error {
			err := s.MemStore.Append(ctx, r)
			if strings.HasPrefix(r.Key, "at once") && err == nil && r.Seq == 3 && !s.seen(r.Key) {
				return &convo.ConflictError{Key: r.Key, Have: 2, Want: 3, ID: r.Prev}
			}
			return err
		}), `yields a record that Append has refused, when several goroutines write (record `},
	}
	rules := namedRules{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rules.another(t, tt.want)
			synctest.Test(t, func(t *testing.T) {
				s := newBent()
				tt.bend(s)
				err := convotest.CheckStore(func() convo.Store { return s })
				require.Error(t, err)
				require.Regexp(t, `(?m)^store: `+regexp.QuoteMeta(tt.want), err.Error())
			})
		})
	}
}

// What one Store has written, another on the same place must see.
func TestCheckStore_ComparesTwoStores(t *testing.T) {
	err := convotest.CheckStore(func() convo.Store { return new(convotest.MemStore) })
	require.ErrorContains(t, err, "seen by the second Store on the same place")
	require.ErrorContains(t, convotest.CheckStore(func() convo.Store { return nil }), "store: is nil; return a Store from open")
	require.ErrorContains(t, convotest.CheckStore(func() convo.Store { panic("no disk") }), `store: panics (in open, "no disk")`)
}

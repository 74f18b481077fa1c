package convotest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/stores"
)

// A MemStore is a [convo.Store] and a [convo.Pruner] that keeps all logs in memory, for
// tests and for conversations that need not outlive the process. Its contents are lost
// when the process ends, so an Append that returns nil promises less than the interface
// requires. The zero value is empty and ready to use. A MemStore must not be copied after
// first use.
//
// A MemStore keeps every record, about 7 kB for a turn with long messages, until Prune
// removes old records. With Options.PruneAbove, Save does so.
//
// Records are copied when they are appended and when they are yielded. A loop over
// Records or List sees the logs as they were when the loop began.
type MemStore struct {
	mu   sync.Mutex                // protects the following
	logs map[string][]convo.Record // records do not change; no slice element is written twice
}

var _ convo.Pruner = (*MemStore)(nil)

// String returns the number of logs.
func (s *MemStore) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.logs) == 1 {
		return "memory store(1 log)"
	}
	return fmt.Sprintf("memory store(%d logs)", len(s.logs))
}

// Append implements [convo.Store].
func (s *MemStore) Append(ctx context.Context, r convo.Record) error {
	if err := r.Check(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return stores.Ended(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.logs[r.Key]
	var newest convo.Record
	if len(log) > 0 {
		newest = log[len(log)-1]
	}
	switch {
	case newest.ID == r.ID:
		return nil
	case newest.ID != r.Prev:
		return &convo.ConflictError{Key: r.Key, Have: newest.Seq, Want: r.Seq, ID: newest.ID}
	case len(log) > 0 && r.Seq != newest.Seq+1:
		return stores.GapError(r.Seq, newest.Seq)
	}
	r.Data, r.Torn = bytes.Clone(r.Data), 0
	if s.logs == nil {
		s.logs = make(map[string][]convo.Record)
	}
	s.logs[r.Key] = append(log, r)
	return nil
}

// Records implements [convo.Store].
func (s *MemStore) Records(ctx context.Context, key string, from uint64) iter.Seq2[convo.Record, error] {
	return func(yield func(convo.Record, error) bool) {
		err := convo.CheckKey(key)
		var log []convo.Record
		if err == nil {
			log = s.log(key)
		}
		for i := firstOf(log, from); i < len(log) && err == nil; i++ {
			if ctx.Err() != nil {
				break
			}
			r := log[i]
			r.Data = bytes.Clone(r.Data)
			if !yield(r, nil) {
				return
			}
		}
		if err == nil && ctx.Err() != nil {
			err = stores.Ended(ctx)
		}
		if err != nil {
			yield(convo.Record{}, err)
		}
	}
}

func (s *MemStore) log(key string) []convo.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logs[key]
}

// firstOf returns the index of the first record that Records yields.
func firstOf(log []convo.Record, from uint64) int {
	if from > 0 {
		i, _ := slices.BinarySearchFunc(log, from, func(r convo.Record, seq uint64) int { return cmp.Compare(r.Seq, seq) })
		return i
	}
	i := len(log) - 1
	for i > 0 && !log[i].Full {
		i--
	}
	return max(i, 0)
}

// List implements [convo.Store].
func (s *MemStore) List(ctx context.Context, opts convo.ListOptions) iter.Seq2[convo.LogInfo, error] {
	return func(yield func(convo.LogInfo, error) bool) {
		for _, head := range s.heads(&opts) {
			if ctx.Err() != nil {
				break
			}
			if !yield(head, nil) {
				return
			}
		}
		if ctx.Err() != nil {
			yield(convo.LogInfo{}, stores.Ended(ctx))
		}
	}
}

// heads returns the heads that opts selects, the most recently updated first.
func (s *MemStore) heads(opts *convo.ListOptions) []convo.LogInfo {
	s.mu.Lock()
	var heads []convo.LogInfo
	for key, log := range s.logs {
		if head := &log[len(log)-1].LogInfo; strings.HasPrefix(key, opts.Prefix) && stores.Wants(opts, head) {
			heads = append(heads, *head)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(heads, func(a, b convo.LogInfo) int { return stores.Compare(&a, &b) })
	return heads
}

// Delete implements [convo.Store].
func (s *MemStore) Delete(ctx context.Context, key string) error {
	if err := convo.CheckKey(key); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return stores.Ended(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.logs, key)
	return nil
}

// Prune implements [convo.Pruner].
func (s *MemStore) Prune(ctx context.Context, key string, before uint64) error {
	if err := convo.CheckKey(key); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return stores.Ended(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.logs[key]
	if before > 0 && (len(log) == 0 || before < log[0].Seq) {
		return nil
	}
	i := slices.IndexFunc(log, func(r convo.Record) bool { return r.Full && r.Seq == before })
	if i < 0 {
		return &convo.ValueError{Name: "before", Value: before, Want: "the Seq of a full record"}
	}
	s.logs[key] = slices.Clone(log[i:]) // a new array, so that removed records are freed
	return nil
}

package convo_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/seed-c1b73e60/convo"
)

// A shelf is a Store in memory for tests. Its faults decide how each Append goes
// wrong.
type shelf struct {
	mu    sync.Mutex
	logs  map[string][]convo.Record
	fault func(convo.Record) fault // nil: nothing goes wrong
	late  []convo.Record           // those that Append is to write later

	appends, reads int
}

// A fault says how an Append goes wrong.
type fault int

const (
	failsNever     fault = iota
	failsBefore          // fails, and nothing is written
	failsAfter           // fails, and the record is written
	failsAndLands        // fails, and the record is written when land is called
	conflictsAfter       // says that another record is there, and this one is written
)

var errDisk = errors.New("disk on fire")

func (s *shelf) Append(ctx context.Context, r convo.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.appends++
	if err := r.Check(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	how := failsNever
	if s.fault != nil {
		how = s.fault(r)
	}
	switch how {
	case failsBefore:
		return errDisk
	case failsAndLands:
		s.late = append(s.late, r)
		return errDisk
	}
	err := s.add(r)
	switch {
	case err == nil && how == failsAfter:
		return errDisk
	case err == nil && how == conflictsAfter:
		return &convo.ConflictError{Key: r.Key, Have: r.Seq, Want: r.Seq, ID: r.ID}
	}
	return err
}

func (s *shelf) add(r convo.Record) error {
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
	}
	if s.logs == nil {
		s.logs = make(map[string][]convo.Record)
	}
	r.Data = slices.Clone(r.Data)
	s.logs[r.Key] = append(log, r)
	return nil
}

// land writes the records that were to be written later, as far as nothing else
// stands in their place.
func (s *shelf) land() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.late {
		_ = s.add(r)
	}
	s.late = nil
}

func (s *shelf) log(key string) []convo.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.logs[key])
}

func (s *shelf) Records(ctx context.Context, key string, from uint64) iter.Seq2[convo.Record, error] {
	return func(yield func(convo.Record, error) bool) {
		s.mu.Lock()
		s.reads++
		s.mu.Unlock()
		log := s.log(key)
		if from == 0 {
			for i, r := range log {
				if r.Full {
					from = log[i].Seq
				}
			}
		}
		for _, r := range log {
			if err := ctx.Err(); err != nil {
				yield(convo.Record{}, err)
				return
			}
			if r.Data = slices.Clone(r.Data); r.Seq >= from && !yield(r, nil) {
				return
			}
		}
	}
}

func (s *shelf) List(_ context.Context, opts convo.ListOptions) iter.Seq2[convo.LogInfo, error] {
	return func(yield func(convo.LogInfo, error) bool) {
		s.mu.Lock()
		logs := maps.Clone(s.logs)
		s.mu.Unlock()
		heads := make([]convo.LogInfo, 0, len(logs))
		for key, log := range logs {
			if strings.HasPrefix(key, opts.Prefix) {
				heads = append(heads, log[len(log)-1].LogInfo)
			}
		}
		slices.SortFunc(heads, func(a, b convo.LogInfo) int { return b.Updated.Compare(a.Updated) })
		for _, head := range heads {
			if !yield(head, nil) {
				return
			}
		}
	}
}

func (s *shelf) Delete(_ context.Context, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.logs, key)
	return nil
}

func (s *shelf) Prune(_ context.Context, key string, before uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if log := s.logs[key]; before > 0 && (len(log) == 0 || before < log[0].Seq) {
		return nil
	}
	i := slices.IndexFunc(s.logs[key], func(r convo.Record) bool { return r.Full && r.Seq == before })
	if i < 0 {
		return &convo.ValueError{Name: "before", Value: before, Want: "the Seq of a full record"}
	}
	s.logs[key] = slices.Clone(s.logs[key][i:])
	return nil
}

// An unreadable store is a shelf whose records cannot be read while err is set.
type unreadable struct {
	*shelf
	err error
}

func (s *unreadable) Records(ctx context.Context, key string, from uint64) iter.Seq2[convo.Record, error] {
	if s.err == nil {
		return s.shelf.Records(ctx, key, from)
	}
	return func(yield func(convo.Record, error) bool) { yield(convo.Record{}, s.err) }
}

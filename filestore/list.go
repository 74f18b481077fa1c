package filestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/stores"
)

// List implements [convo.Store]. It reads the end of each log that it yields, and of the
// logs that were updated since UpdatedBefore or are ordered before After. For a log that
// cannot be read, List yields an error instead of the LogInfo, ordered by the
// modification time of the file, and the loop may continue. If the log is damaged, the
// error is a [*convo.DamageError] whose Key is the name of the file.
func (s *Store) List(ctx context.Context, opts convo.ListOptions) iter.Seq2[convo.LogInfo, error] {
	return func(yield func(convo.LogInfo, error) bool) {
		err := s.check(ctx, "any")
		if err == nil {
			err = s.list(ctx, &opts, yield)
		}
		if err != nil && err != errStopped {
			yield(convo.LogInfo{}, inLog("list logs", "", err))
		}
	}
}

// list yields heads in order. Append sets the modification time of a file to Updated, so in
// most directories the files and the heads have the same order. Copied files may have later
// times, so a head is held back until none of the remaining files can have a later head.
func (s *Store) list(ctx context.Context, opts *convo.ListOptions, yield func(convo.LogInfo, error) bool) error {
	dir, err := s.files().open(s.Dir)
	if err != nil {
		return unlessNotExist(err)
	}
	defer func() { _ = dir.Close() }()
	files, err := dir.list()
	if err != nil {
		return err
	}
	begins := readable(opts.Prefix)
	files = slices.DeleteFunc(files, func(f fs.FileInfo) bool {
		return !isFileName(f.Name()) || !strings.HasPrefix(f.Name(), begins)
	})
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), strings.Compare(a.Name(), b.Name()))
	})
	var held []listed // in order
	for i := 0; i < len(files) || len(held) > 0; {
		if ctx.Err() != nil {
			return stores.Ended(ctx)
		}
		if len(held) > 0 && (i == len(files) || held[0].head.Updated.After(latest(files[i]))) {
			l := held[0]
			held = held[1:]
			if l.err != nil {
				l.head = convo.LogInfo{}
			}
			if !yield(l.head, l.err) {
				return errStopped
			}
			continue
		}
		l, err := s.listOne(ctx, dir, files[i], opts)
		if err != nil {
			return err
		}
		i++
		if l == nil {
			continue
		}
		at, _ := slices.BinarySearchFunc(held, l, func(a listed, b *listed) int { return stores.Compare(&a.head, &b.head) })
		held = slices.Insert(held, at, *l)
	}
	return nil
}

// A listed is the head of a log, or an error. With an error, only Updated is set in head.
type listed struct {
	head convo.LogInfo
	err  error
}

// listOne reads the head of the log in a file, or returns nil if opts excludes it.
func (s *Store) listOne(ctx context.Context, dir folder, info fs.FileInfo, opts *convo.ListOptions) (*listed, error) {
	file, tail, err := openTail(ctx, dir, info.Name(), "")
	if file != nil {
		_ = file.Close()
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err == nil && tail.ID == "", err == nil && !strings.HasPrefix(tail.Key, opts.Prefix):
		return nil, nil
	case err == nil && fileName(tail.Key) != info.Name():
		err = &convo.DamageError{Key: tail.Key, Offset: tail.at, Err: fmt.Errorf("it is in the file %q, which belongs to another key", info.Name())}
	}
	l := &listed{head: tail.LogInfo}
	if err != nil {
		l.head = convo.LogInfo{Updated: info.ModTime()}
		if damage, ok := errors.AsType[*convo.DamageError](err); ok && damage.Key == "" {
			damage.Key = info.Name()
		}
		l.err = inLog("list", info.Name(), err)
	}
	if !stores.Wants(opts, &l.head) {
		return nil, nil
	}
	return l, nil
}

// latest returns the latest time that Append may have set for a file. File systems truncate
// times to their resolution, which can be as coarse as two seconds.
func latest(f fs.FileInfo) time.Time {
	at := f.ModTime()
	unit := time.Nanosecond
	for unit < time.Second && at.Nanosecond()%int(10*unit) == 0 {
		unit *= 10
	}
	if unit == time.Second {
		unit *= 2
	}
	return at.Add(unit)
}

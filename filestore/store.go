package filestore

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/stores"
)

// A Store is a [convo.Store] and a [convo.Pruner] that keeps each log in its own file in
// one directory. Only Dir is required. The fields must not be changed while the Store is in
// use, and a Store must not be copied. It is safe for concurrent use. Between calls it holds no
// file open, so there is nothing to close.
type Store struct {
	// Dir is the directory. The first Append creates it, with the mode 0700, if it
	// does not exist.
	Dir string

	// NoSync leaves it to the operating system when to write to the disk. This makes
	// Append much faster. Nothing is lost if a process is killed. A power failure may
	// lose any number of the newest records, and may leave a damaged log.
	NoSync bool

	// Logger receives a warning when Append has cut off an incomplete record:
	// "convo: unfinished record cut off", with key, offset and length in bytes. If nil,
	// nothing is logged.
	Logger *slog.Logger

	disk fileSystem // nil: the file system of the operating system

	mu      sync.Mutex         // protects the following
	settled map[string]settled // by file name; at most maxSettled
}

// settled is the state of a file that this store has synced.
type settled struct {
	file fs.FileInfo // identifies the file
	tail logTail     // only the fields that Append needs
}

// maxSettled bounds the memory of a Store. A forgotten file costs a sync.
const maxSettled = 4096

var _ convo.Pruner = (*Store)(nil)

// Append implements [convo.Store]. The times of r must be in the years 0 to 9999.
func (s *Store) Append(ctx context.Context, r convo.Record) (err error) {
	defer func() { err = inLog("append to", r.Key, err) }()
	if err := r.Check(); err != nil {
		return err
	}
	for _, t := range []time.Time{r.Created, r.Updated} {
		if y := t.UTC().Year(); y < 0 || y > 9999 {
			return &convo.ValueError{Name: "time of a Record", Value: t, Want: "one in the years 0 to 9999"}
		}
	}
	l, err := s.open(ctx, r.Key, r.Prev == "")
	if err != nil {
		return err
	}
	if l == nil {
		return &convo.ConflictError{Key: r.Key, Want: r.Seq}
	}
	var cut logTail
	defer func() {
		l.close()
		if cut.torn > 0 {
			s.warn(r.Key, cut)
		}
	}()
	tail, err := s.tailOf(l, r.Key)
	if err != nil {
		return err
	}
	switch {
	case tail.ID == r.ID:
		return s.settle(l, &tail)
	case tail.ID != r.Prev:
		return &convo.ConflictError{Key: r.Key, Have: tail.Seq, Want: r.Seq, ID: tail.ID}
	case tail.ID != "" && r.Seq != tail.Seq+1:
		return stores.GapError(r.Seq, tail.Seq)
	}
	if tail.torn > 0 {
		s.forget(l.name) // so that settle also syncs the cut
		if err := l.file.Truncate(tail.end); err != nil {
			return err
		}
		cut = tail
	}
	if err := s.settle(l, &tail); err != nil {
		return err
	}
	back := tail.end - tail.at
	if !tail.Full {
		back += tail.back
	}
	line := newLine(&r, back)
	if err := s.write(l, line, tail.end, r.Updated); err != nil {
		// If Truncate fails, the file ends with a whole record, or with a part of
		// one, which the next Append cuts off.
		s.forget(l.name)
		if l.file.Truncate(tail.end) == nil {
			_ = s.sync(l.file)
		}
		return err
	}
	s.remember(l, logTail{logLine: logLine{Record: r, at: tail.end, back: back}, end: tail.end + int64(len(line))}, line)
	return nil
}

// tailOf returns the tail of a log. It parses the newest line only if this store remembers
// another one.
func (s *Store) tailOf(l *lockedLog, key string) (logTail, error) {
	was, size := s.recall(l), l.info.Size()
	if was.ID != "" && was.end == size {
		text := make([]byte, was.end-was.at)
		if _, err := l.file.ReadAt(text, was.at); err != nil {
			return logTail{}, err
		}
		if sumOf(text) == was.sum {
			return was, nil
		}
	}
	return readTail(l.file, key, size)
}

// write writes a line to the end of a log, and syncs it.
func (s *Store) write(l *lockedLog, line []byte, at int64, updated time.Time) error {
	if _, err := l.file.WriteAt(line, at); err != nil {
		return err
	}
	l.date(updated)
	return s.sync(l.file)
}

// settle syncs a log and its name, unless this store has already synced both. The
// process that wrote the newest record may have been killed before it could sync, or
// its sync may have failed. After a failed sync, operating systems may treat unwritten
// data as written, so the line is written again. A torn tail that was cut off must also
// stay cut off: a part of it might be mixed with the next line. Every Append calls settle
// before it writes, so older lines are synced.
func (s *Store) settle(l *lockedLog, t *logTail) error {
	if s.NoSync {
		return nil
	}
	if was := s.recall(l); was.ID == t.ID && was.ID != "" {
		return nil
	}
	if err := l.dir.sync(); err != nil {
		return err
	}
	if !l.made || t.ID != "" {
		if _, err := l.file.WriteAt(t.text, t.at); err != nil {
			return err
		}
		if err := l.file.Sync(); err != nil {
			return err
		}
	}
	s.remember(l, *t, t.text)
	return nil
}

// Records implements [convo.Store]. If from is 0 and the log is damaged between the newest
// full record and its end, Records yields only a [*convo.DamageError].
func (s *Store) Records(ctx context.Context, key string, from uint64) iter.Seq2[convo.Record, error] {
	return func(yield func(convo.Record, error) bool) {
		err := s.read(ctx, key, func(f logFile, tail logTail, err error) error {
			if err == nil && from > tail.Seq || err != nil && from == 0 {
				return err
			}
			if err == nil && tail.Full && (from == 0 || from == tail.Seq) && ctx.Err() == nil {
				tail.Torn = tail.torn
				yield(tail.Record, nil) // its Data is not shared
				return nil
			}
			start, err := startOf(f, key, &tail, err, from)
			if err != nil {
				return err
			}
			scan := newScan(f, key, start, tail.end)
			var passed error // the last damage, until the next record shows whether it is before from
			for {
				if ctx.Err() != nil {
					return stores.Ended(ctx)
				}
				l, err := scan.next()
				if _, ok := errors.AsType[*convo.DamageError](err); ok {
					passed = err
					continue
				}
				if passed != nil && (err != nil || l.Seq > from) && !yield(convo.Record{}, inLog("read", key, passed)) {
					return errStopped
				}
				passed = nil
				if l.at == tail.at {
					l.Torn = tail.torn
				}
				switch {
				case err == io.EOF:
					return nil
				case err != nil:
					return err
				case l.Seq >= from && !yield(l.Record, nil):
					return errStopped
				}
			}
		})
		if err != nil && err != errStopped {
			yield(convo.Record{}, inLog("read", key, err))
		}
	}
}

// startOf returns the offset at which Records begins to read. If the newest record is
// damaged, or the log between it and the full record, this is the start of the file, so
// that the records before and after the damage are found.
func startOf(f logFile, key string, tail *logTail, damaged error, from uint64) (int64, error) {
	if damaged != nil {
		return 0, nil
	}
	most := from
	if from == 0 {
		most = math.MaxUint64
	}
	at, err := findFull(f, tail, most)
	switch {
	case !errors.Is(err, errLine):
		return at, err
	case from > 0:
		return 0, nil
	}
	return 0, lastDamage(f, key, tail.end) // not nil: without damage, the newest record leads to a full one
}

// errStopped is returned when the body of the loop has ended it.
var errStopped = errors.New("stopped")

// read calls f with the log of a key and its tail, or with the error from reading the
// tail. It does not call f when there is no log.
func (s *Store) read(ctx context.Context, key string, f func(logFile, logTail, error) error) error {
	if err := s.check(ctx, key); err != nil {
		return err
	}
	dir, err := s.files().open(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	file, tail, err := openTail(ctx, dir, fileName(key), key)
	if file == nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return f(file, tail, err)
}

// check returns an error if the store or the key is not valid, or if ctx has ended.
func (s *Store) check(ctx context.Context, key string) error {
	if s == nil || s.Dir == "" {
		return &convo.ValueError{Name: "filestore.Store.Dir", Value: "", Want: "the name of a directory"}
	}
	if ctx.Err() != nil {
		return stores.Ended(ctx)
	}
	return convo.CheckKey(key)
}

func (s *Store) files() fileSystem {
	if s.disk != nil {
		return s.disk
	}
	return osFiles{}
}

func (s *Store) sync(f logFile) error {
	if s.NoSync {
		return nil
	}
	return f.Sync()
}

func (s *Store) syncNames(dir folder) error {
	if s.NoSync {
		return nil
	}
	return dir.sync()
}

// recall returns the tail of a log if this store has synced it, or the zero logTail.
func (s *Store) recall(l *lockedLog) logTail {
	s.mu.Lock()
	was := s.settled[l.name]
	s.mu.Unlock()
	if was.file == nil || !s.files().same(was.file, l.info) {
		return logTail{}
	}
	return was.tail
}

// remember stores the tail of a log, whose newest line is line.
func (s *Store) remember(l *lockedLog, t logTail, line []byte) {
	t.Record = convo.Record{LogInfo: convo.LogInfo{Seq: t.Seq}, ID: t.ID, Full: t.Full}
	t.text, t.torn, t.sum = nil, 0, sumOf(line)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settled == nil || len(s.settled) >= maxSettled {
		s.settled = map[string]settled{}
	}
	s.settled[l.name] = settled{l.info, t}
}

// lineSeed is the seed of the sums that stores remember.
var lineSeed = maphash.MakeSeed()

func sumOf(line []byte) uint64 { return maphash.Bytes(lineSeed, line) }

func (s *Store) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.settled, name)
}

// warn logs that Append has cut off cut.torn bytes. A panic of the logger is ignored.
func (s *Store) warn(key string, cut logTail) {
	defer func() { _ = recover() }()
	if s.Logger != nil {
		s.Logger.Warn("convo: unfinished record cut off", "key", key, "offset", cut.end, "length", cut.torn)
	}
}

// inLog adds the verb and the key to an error, unless it has the prefix "convo: ". If key
// is empty, only the verb is added.
func inLog(verb, key string, err error) error {
	if err == nil || strings.HasPrefix(err.Error(), "convo: ") {
		return err
	}
	if key == "" {
		return fmt.Errorf("convo: %s: %w", verb, err)
	}
	return fmt.Errorf("convo: %s the log of %.40q: %w", verb, key, err)
}

// unlessNotExist returns err, or nil if err matches [fs.ErrNotExist].
func unlessNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

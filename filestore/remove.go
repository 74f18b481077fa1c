package filestore

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/stores"
)

// Delete implements [convo.Store]. It does not read the log, so it can also remove a damaged
// log.
func (s *Store) Delete(ctx context.Context, key string) (err error) {
	defer func() { err = inLog("delete", key, err) }()
	l, err := s.open(ctx, key, false)
	if err != nil {
		return err
	}
	if l == nil { // another process may have been killed before it synced its Delete
		dir, err := s.files().open(s.Dir)
		if err != nil {
			return unlessNotExist(err)
		}
		defer func() { _ = dir.Close() }()
		return s.syncNames(dir)
	}
	defer l.close()
	if err := s.removeTmp(l); err != nil {
		return err
	}
	if err := l.dir.remove(l.name); err != nil {
		return err
	}
	return s.syncNames(l.dir)
}

// tmpSuffix is the end of the name of the file that Prune writes.
const tmpSuffix = ".tmp"

// removeTmp removes the file left by a killed Prune. It syncs the removal right away:
// otherwise the file might reappear without its log, and would never be removed.
func (s *Store) removeTmp(l *lockedLog) error {
	err := l.dir.remove(l.name + tmpSuffix)
	if err == nil {
		return s.syncNames(l.dir)
	}
	return unlessNotExist(err)
}

// Prune implements [convo.Pruner]. Damage between the given record and the newest full
// record is kept. If the newest state is damaged, Prune returns a [*convo.DamageError] and
// removes nothing, because the newest intact state is then an earlier one.
func (s *Store) Prune(ctx context.Context, key string, before uint64) (err error) {
	defer func() { err = inLog("prune", key, err) }()
	none := &convo.ValueError{Name: "before", Value: before, Want: "the Seq of a full record"}
	l, err := s.open(ctx, key, false)
	if err != nil {
		return err
	}
	if l == nil && before > 0 {
		return nil
	}
	if l == nil {
		return none
	}
	defer l.close()
	tmp := l.name + tmpSuffix
	if err := s.removeTmp(l); err != nil {
		return err
	}
	tail, err := readTail(l.file, key, l.info.Size())
	if err != nil {
		return err
	}
	if before == 0 || before > tail.Seq {
		return none
	}
	start, err := startOf(l.file, key, &tail, nil, before)
	if err != nil {
		return err
	}
	scan := newScan(l.file, key, start, tail.end)
	first, err := scan.find(ctx, before)
	if err != nil {
		return err
	}
	if first == nil || !first.Full || first.Seq > before && first.at > 0 {
		return none
	}
	if first.at == 0 { // perhaps by a Prune that was killed before it could sync
		return s.settle(l, &tail)
	}
	file, err := l.dir.openFile(tmp, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	pruned := lockedLog{dir: l.dir, file: file, name: tmp}
	err = s.copyLines(ctx, &pruned, newScan(l.file, key, first.at, tail.end), tail.Updated)
	if err == nil {
		err = l.dir.rename(tmp, l.name)
	}
	if err != nil {
		_ = l.dir.remove(tmp)
		return err
	}
	return s.syncNames(l.dir) // a writer in between also syncs the name
}

// find reads up to the first undamaged record with a Seq of at least seq. It returns nil if
// there is none.
func (s *logScan) find(ctx context.Context, seq uint64) (*logLine, error) {
	for {
		if ctx.Err() != nil {
			return nil, stores.Ended(ctx)
		}
		l, err := s.next()
		_, damaged := errors.AsType[*convo.DamageError](err)
		switch {
		case damaged:
		case err == io.EOF:
			return nil, nil
		case err != nil:
			return nil, err
		case l.Seq >= seq:
			return &l, nil
		}
	}
}

// copyLines copies the lines from the offset of a scan on to an empty file, byte for byte,
// and syncs the file. It returns a *DamageError if the newest state is damaged.
func (s *Store) copyLines(ctx context.Context, to *lockedLog, scan *logScan, updated time.Time) error {
	var damage error // since the newest full record
	start, at := scan.off, scan.off
	buf := make([]byte, 64<<10)
	for {
		if ctx.Err() != nil {
			return stores.Ended(ctx)
		}
		l, err := scan.next()
		_, damaged := errors.AsType[*convo.DamageError](err)
		switch {
		case damaged:
			damage = err
		case err == nil && l.Full:
			damage = nil
		case err != nil && err != io.EOF:
			return err
		}
		for at < scan.off {
			n, readErr := scan.f.ReadAt(buf[:min(int64(len(buf)), scan.off-at)], at)
			if n == 0 {
				return readErr
			}
			if _, err := to.file.WriteAt(buf[:n], at-start); err != nil {
				return err
			}
			at += int64(n)
		}
		if err == io.EOF {
			break
		}
	}
	if damage != nil {
		return damage
	}
	to.date(updated)
	return s.sync(to.file)
}

package convo

import (
	"context"
	"errors"
	"os"
	"time"
)

// Delete implements [Store]. It does not read the log, so it can remove one that is
// damaged.
func (s *FileStore) Delete(ctx context.Context, key string) (err error) {
	defer func() { err = inLog("delete", key, err) }()
	if err := CheckKey(key); err != nil {
		return err
	}
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

// removeTmp removes what a Prune that was killed has left. It is synced by itself:
// else it might come back without its log, and nobody would remove it.
func (s *FileStore) removeTmp(l *lockedLog) error {
	err := l.dir.remove(l.name + tmpSuffix)
	if err == nil {
		return s.syncNames(l.dir)
	}
	return unlessNotExist(err)
}

// Prune implements [Pruner].
func (s *FileStore) Prune(ctx context.Context, key string, before uint64) (err error) {
	defer func() { err = inLog("prune", key, err) }()
	if err := CheckKey(key); err != nil {
		return err
	}
	none := &ValueError{Name: "before", Value: before, Want: "the Seq of a full record"}
	l, err := s.open(ctx, key, false)
	if err != nil {
		return err
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
	start, err := findFull(l.file, &tail, before)
	if err != nil {
		if errors.Is(err, errLine) {
			return damageOr(l.file, key, start, withoutMark(err))
		}
		return err
	}
	var first logLine
	if first, err = newScan(l.file, key, start, tail.end).next(); err != nil {
		return err
	}
	if first.Seq != before {
		return none
	}
	if start == 0 { // perhaps by a Prune that was killed before it could sync
		return s.settle(l, &tail)
	}
	file, err := l.dir.openFile(tmp, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	pruned := lockedLog{dir: l.dir, file: file, name: tmp}
	err = s.copyLines(ctx, &pruned, newScan(l.file, key, start, tail.end), tail.Updated)
	if err == nil {
		err = l.dir.rename(tmp, l.name)
	}
	if err != nil {
		_ = l.dir.remove(tmp)
		return err
	}
	return s.syncNames(l.dir) // whoever writes to the file before that syncs the name, too
}

// copyLines copies lines to an empty file, and syncs them. It stops at damage: then
// what is before the damage must stay.
func (s *FileStore) copyLines(ctx context.Context, to *lockedLog, scan *logScan, updated time.Time) error {
	for at := int64(0); scan.off < scan.end; {
		if ctx.Err() != nil {
			return causeOf(ctx)
		}
		l, err := scan.next()
		if err != nil {
			return err
		}
		n, err := to.file.WriteAt(l.text, at)
		if err != nil {
			return err
		}
		at += int64(n)
	}
	to.date(updated)
	return s.sync(to.file)
}

package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/stores"
)

// A lockedLog is the log of a key, locked by this process.
type lockedLog struct {
	dir  folder
	file logFile
	name string
	info fs.FileInfo
	made bool // whether this process created the file
}

// open opens and locks the log of a key, or returns nil if there is none. If make is set,
// it creates an empty log instead.
func (s *Store) open(ctx context.Context, key string, make bool) (*lockedLog, error) {
	if err := s.check(ctx, key); err != nil {
		return nil, err
	}
	const most = 50 // if Dir is a dangling link, each try fails
	var err error
	for range most {
		var l *lockedLog
		l, err = s.try(ctx, fileName(key), make)
		if err != errMoved && err != errNoDir {
			return l, err
		}
		if ctx.Err() != nil {
			return nil, stores.Ended(ctx)
		}
	}
	return nil, err
}

// Errors after which open tries again.
var (
	// errMoved says that another process has removed, replaced or created the file.
	errMoved = errors.New("others keep making, replacing or removing the file")

	// errNoDir says that Dir did not exist and was created.
	errNoDir = errors.New("the directory is not there after it was made: its name is that of a link that leads nowhere, or others keep removing it")
)

func (s *Store) try(ctx context.Context, name string, make bool) (_ *lockedLog, err error) {
	dir, err := s.files().open(s.Dir)
	if errors.Is(err, fs.ErrNotExist) && make {
		if err = s.makeDir(); err == nil {
			err = errNoDir
		}
	}
	if err != nil {
		return nil, unlessNotExist(err)
	}
	l := &lockedLog{dir: dir, name: name}
	defer func() {
		if err != nil || l.file == nil {
			l.close()
		}
	}()
	flag := os.O_RDWR
	if _, err := plain(dir, name); errors.Is(err, fs.ErrNotExist) && make {
		// A file is only created in a directory whose own name is synced.
		if err := s.makeDir(); err != nil {
			return nil, err
		}
		flag |= os.O_CREATE | os.O_EXCL
		l.made = true
	} else if err != nil {
		return nil, unlessNotExist(err)
	}
	file, err := dir.openFile(name, flag)
	if err != nil {
		if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
			err = errMoved
		}
		return nil, err
	}
	l.file = file
	if err := lock(ctx, file, true); err != nil {
		return nil, err
	}
	// Another process may have removed or replaced the file before it was locked.
	named, err := plain(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errMoved
	}
	if err != nil {
		return nil, err
	}
	if l.info, err = file.Stat(); err != nil {
		return nil, err
	}
	if !s.files().same(named, l.info) {
		return nil, errMoved
	}
	return l, nil
}

// close releases the lock and closes the file and the directory.
func (l *lockedLog) close() {
	if l.file != nil {
		_ = l.file.unlock()
		_ = l.file.Close()
	}
	_ = l.dir.Close()
}

// date sets the modification time of a log, which List orders by. If that fails, or if
// file systems may not support the time, the file keeps the time of the write.
func (l *lockedLog) date(updated time.Time) {
	if y := updated.Year(); 1970 < y && y < 2200 {
		_ = l.dir.chtimes(l.name, updated)
	}
}

// openTail opens a log and reads its end. The part before the end no longer changes. The
// file is nil if there is none.
func openTail(ctx context.Context, dir folder, name, key string) (file logFile, tail logTail, err error) {
	if _, err := plain(dir, name); err != nil {
		return nil, tail, unlessNotExist(err)
	}
	file, err = dir.openFile(name, os.O_RDONLY)
	if err != nil {
		return nil, tail, unlessNotExist(err)
	}
	if err = lock(ctx, file, false); err == nil {
		var info fs.FileInfo
		if info, err = file.Stat(); err == nil {
			tail, err = readTail(file, key, info.Size())
		}
		_ = file.unlock()
	}
	if err != nil && !isOfLog(err) {
		_ = file.Close()
		return nil, tail, err
	}
	return file, tail, err
}

// isOfLog reports whether err is an error in a log, as opposed to an error in reading it.
func isOfLog(err error) bool {
	_, damaged := errors.AsType[*convo.DamageError](err)
	return damaged || errors.Is(err, convo.ErrVersion)
}

// plain returns the lstat result for a file. It returns an error if that is not a regular
// file.
func plain(dir folder, name string) (fs.FileInfo, error) {
	info, err := dir.lstat(name)
	if err != nil {
		return nil, err
	}
	what, remedy := "special file", "move it out of the directory"
	switch info.Mode().Type() {
	case 0:
		return info, nil
	case fs.ModeSymlink:
		what, remedy = "symbolic link", "put the file that it leads to in its place"
	case fs.ModeDir:
		what = "directory"
	case fs.ModeNamedPipe:
		what = "named pipe"
	}
	return nil, fmt.Errorf("%q is a %s, and a log must be a regular file; %s", name, what, remedy)
}

// lock locks a file. It waits until the lock is free or ctx ends.
func lock(ctx context.Context, f logFile, exclusive bool) error {
	const most = 5 * time.Millisecond
	for wait := most / 64; ; wait = min(2*wait, most) {
		ok, err := f.lock(exclusive)
		if ok || err != nil {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return stores.Ended(ctx)
		case <-timer.C:
		}
	}
}

// makeDir creates Dir and any missing parents, and syncs the name of Dir.
func (s *Store) makeDir() error {
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return err
	}
	return s.makeDirs(dir)
}

func (s *Store) makeDirs(dir string) error {
	err := s.files().mkdir(dir)
	parent := filepath.Dir(dir)
	if errors.Is(err, fs.ErrNotExist) && parent != dir {
		if err := s.makeDirs(parent); err != nil {
			return err
		}
		err = s.files().mkdir(dir)
	}
	made := err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if s.NoSync {
		return nil
	}
	if made { // another process may have created the parent and been killed before its sync
		if err := s.keep(filepath.Dir(parent)); err != nil {
			return err
		}
	}
	return s.keep(parent)
}

// keep syncs the names in a directory. It ignores a directory that this process may not
// read, because this process did not create the names in it.
func (s *Store) keep(dir string) error {
	if err := s.files().syncDir(dir); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

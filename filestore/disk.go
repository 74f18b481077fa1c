package filestore

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"time"
)

// fileSystem is the file system of a [Store]. Errors are like those of package os.
type fileSystem interface {
	open(dir string) (folder, error)
	mkdir(dir string) error
	syncDir(dir string) error // syncs the names in it
	same(a, b fs.FileInfo) bool
}

// A folder is an open directory. It remains the same directory when its name is given
// to another.
type folder interface {
	openFile(name string, flag int) (logFile, error)
	lstat(name string) (fs.FileInfo, error)
	list() ([]fs.FileInfo, error)
	chtimes(name string, updated time.Time) error
	rename(from, to string) error
	remove(name string) error
	sync() error
	Close() error
}

// A logFile is an open file.
type logFile interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Stat() (fs.FileInfo, error)
	Close() error

	// lock does not wait. It returns false if another lock on the file excludes this
	// one, even if this process holds that lock through another open file.
	lock(exclusive bool) (bool, error)
	unlock() error
}

// osFiles is the file system of the operating system.
type osFiles struct{}

func (osFiles) open(dir string) (folder, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() { // OpenRoot would block on a pipe
		return nil, &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return osFolder{root}, nil
}

func (osFiles) mkdir(dir string) error     { return os.Mkdir(dir, 0o700) }
func (osFiles) same(a, b fs.FileInfo) bool { return os.SameFile(a, b) }

func (osFiles) syncDir(dir string) error {
	f, err := os.Open(dir)
	return syncFolder(f, err)
}

// An osFolder is a folder of the operating system. No name leads out of it, and on
// Windows a file in it can be renamed or removed while other processes have it open.
type osFolder struct{ *os.Root }

func (d osFolder) openFile(name string, flag int) (logFile, error) {
	f, err := d.OpenFile(name, flag, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d osFolder) lstat(name string) (fs.FileInfo, error) { return d.Lstat(name) }
func (d osFolder) chtimes(name string, updated time.Time) error {
	return d.Chtimes(name, time.Time{}, updated)
}
func (d osFolder) rename(from, to string) error { return d.Rename(from, to) }
func (d osFolder) remove(name string) error     { return d.Remove(name) }

func (d osFolder) list() ([]fs.FileInfo, error) {
	f, err := d.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return f.Readdir(-1)
}

func (d osFolder) sync() error {
	f, err := d.Open(".")
	return syncFolder(f, err)
}

// syncFolder syncs the names in a folder, and closes it. The sync is not needed on Windows,
// nor on file systems that do not support it.
func syncFolder(f *os.File, err error) error {
	if err != nil {
		return err
	}
	if runtime.GOOS != "windows" {
		err = f.Sync()
	}
	_ = f.Close()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// An osFile is a file of the operating system.
type osFile struct{ *os.File }

func (f osFile) lock(exclusive bool) (bool, error) { return lockFile(f.File, exclusive) }
func (f osFile) unlock() error                     { return unlockFile(f.File) }

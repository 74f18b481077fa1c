package convo

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// A FileStore is a [Store] and a [Pruner] that keeps each log in a file of its own
// in one directory. Set Dir; the other fields may stay as they are. Fields must not
// change while the FileStore is in use, and it must not be copied.
//
// Many processes may use one directory, on one machine, each with a FileStore of its
// own. Locks on the files keep them apart. A process that is killed leaves no lock.
// A method that has to wait for a lock tries again at least every 5
// milliseconds, until its ctx ends. Where the system has no such locks, methods
// return an error that matches [errors.ErrUnsupported]: they work on Linux, macOS,
// Windows, the BSDs and illumos.
//
// When Append returns nil, the record and the name of its file have been synced to
// the disk. What a crash leaves of a record that was being written is passed over by
// readers, and cut off by the next Append. Any other damage is a [*DamageError]: for
// Records, from the damaged place on; for Append, when it is the newest record that
// is damaged. Damage before the newest full record does not keep a conversation from
// being opened. The error for records that a later release of this package has
// written matches [ErrVersion].
//
// Files have the mode 0600 and names such as
// trip-to-rome-1b2cf5f1a1d1b0a2a2b8b7be6b2ad0a1.convo: the beginning of the key, for
// people, and a hash of all of it. The key itself stands in the file. Other files in
// the directory are left alone.
//
// Delete and Prune do not wipe: what they have removed can still be in free blocks
// of the disk, in snapshots of the file system and in backups. When a process is
// killed in Prune, a copy of the log can remain in a file whose name ends in .tmp;
// the next Prune or Delete of the key removes it.
type FileStore struct {
	// Dir is the directory. The first Append makes it, with the mode 0700, if it
	// does not exist.
	Dir string

	// NoSync leaves it to the operating system when to write to the disk. Append is
	// much faster then. If a process is killed, nothing is lost. A power cut may
	// take any number of the newest records, and may leave a log that is damaged.
	NoSync bool

	// Logger gets a warning when Append has cut off what was not written whole:
	// "convo: unfinished record cut off", with key, offset and length in bytes. Nil:
	// nothing is logged.
	Logger *slog.Logger

	disk fileSystem // nil: that of the operating system

	mu      sync.Mutex         // protects the following
	settled map[string]settled // by the name of a file; at most maxSettled
}

// settled is the state of a file that this store knows to be synced.
type settled struct {
	file fs.FileInfo // the one that has the name
	tail logTail     // without what Append does not need
}

// maxSettled keeps the memory of a FileStore small. What is forgotten costs a sync.
const maxSettled = 4096

// A lockedLog is the log of a key, locked by this process.
type lockedLog struct {
	dir  folder
	file logFile
	name string
	info fs.FileInfo
	made bool // the file did not exist
}

var _ Pruner = (*FileStore)(nil)

// Append implements [Store]. The times of r must be in the years 0 to 9999.
func (s *FileStore) Append(ctx context.Context, r Record) (err error) {
	defer func() { err = inLog("append to", r.Key, err) }()
	if err := r.Check(); err != nil {
		return err
	}
	for _, t := range []time.Time{r.Created, r.Updated} {
		if y := t.UTC().Year(); y < 0 || y > 9999 {
			return &ValueError{Name: "time of a Record", Value: t, Want: "one in the years 0 to 9999"}
		}
	}
	l, err := s.open(ctx, r.Key, r.Prev == "")
	if err != nil {
		return err
	}
	if l == nil {
		return &ConflictError{Key: r.Key, Want: r.Seq}
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
		return &ConflictError{Key: r.Key, Have: tail.Seq, Want: r.Seq, ID: tail.ID}
	case tail.ID != "" && r.Seq != tail.Seq+1:
		return &ValueError{Name: "Record.Seq", Value: r.Seq, Want: fmt.Sprintf("%d, one more than that of the record before", tail.Seq+1)}
	}
	if tail.torn > 0 {
		s.forget(l.name) // so that settle syncs the cut, too
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
		// What cannot be cut off is a whole record, or the next Append cuts it off.
		s.forget(l.name)
		if l.file.Truncate(tail.end) == nil {
			_ = s.sync(l.file)
		}
		return err
	}
	s.remember(l, logTail{logLine: logLine{Record: r, at: tail.end, back: back}, end: tail.end + int64(len(line))})
	return nil
}

// tailOf returns what is at the end of a log. Where it is what this store has
// left there, as the random ID tells, a look at the ID is enough.
func (s *FileStore) tailOf(l *lockedLog, key string) (logTail, error) {
	was, size := s.recall(l), l.info.Size()
	end := was.ID + "\"}\n"
	if was.ID != "" && was.end == size {
		text := make([]byte, len(end))
		if _, err := l.file.ReadAt(text, size-int64(len(end))); err != nil {
			return logTail{}, err
		}
		if string(text) == end {
			return was, nil
		}
	}
	return readTail(l.file, key, size)
}

// write writes a line to the end of a log, and syncs it.
func (s *FileStore) write(l *lockedLog, line []byte, at int64, updated time.Time) error {
	if _, err := l.file.WriteAt(line, at); err != nil {
		return err
	}
	l.date(updated)
	return s.sync(l.file)
}

// settle syncs a log and its name, unless this store knows that both are synced. The
// process that wrote the newest record may have been killed before it could sync, or
// its sync may have failed. After a sync that failed, systems count as written what is
// not, so the line is written once more. A torn tail that was cut off must not come
// back either: a part of it might be mixed with what is written next. As every Append
// does this before it writes, older lines are synced.
func (s *FileStore) settle(l *lockedLog, t *logTail) error {
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
	s.remember(l, *t)
	return nil
}

// Records implements [Store].
func (s *FileStore) Records(ctx context.Context, key string, from uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		err := s.read(ctx, key, func(f logFile, tail logTail, err error) error {
			if err != nil && from == 0 {
				return err
			}
			var start int64
			if err == nil {
				if from > tail.Seq {
					return nil
				}
				most := from
				if from == 0 {
					most = math.MaxUint64
				}
				at, err := findFull(f, &tail, most)
				switch {
				case err == nil:
					start = at
				case !errors.Is(err, errLine):
					return err
				case from == 0:
					return damageOr(f, key, at, withoutMark(err))
				}
			}
			// Where the way to the full record is damaged, reading from the start
			// yields what is before the damage.
			for scan := newScan(f, key, start, tail.end); scan.off < scan.end; {
				if ctx.Err() != nil {
					return causeOf(ctx)
				}
				l, err := scan.next()
				if err != nil {
					return err
				}
				if l.Seq >= from && !yield(l.Record, nil) {
					return errStopped
				}
			}
			return nil
		})
		if err != nil && err != errStopped {
			yield(Record{}, inLog("read", key, err))
		}
	}
}

// errStopped is the error of a loop whose body has ended it.
var errStopped = errors.New("stopped")

// read calls f with the log of a key and what is at its end, or with the error
// of reading that. It does not call f when there is no log.
func (s *FileStore) read(ctx context.Context, key string, f func(logFile, logTail, error) error) error {
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

// openTail opens a log and reads its end. What is before the end cannot change
// then. The file is nil if there is none.
func openTail(ctx context.Context, dir folder, name, key string) (file logFile, tail logTail, err error) {
	if _, err := plain(dir, name, key); err != nil {
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

// isOfLog reports whether an error says what is wrong with a log, rather than with
// reading it.
func isOfLog(err error) bool {
	_, damaged := errors.AsType[*DamageError](err)
	return damaged || errors.Is(err, ErrVersion)
}

// List implements [Store]. The times at which files were last changed order the
// heads; Append sets them to Updated. A log that is damaged is a [*DamageError] in
// the place of its head, whose Key is the name of the file, and the loop may go on.
func (s *FileStore) List(ctx context.Context, prefix string) iter.Seq2[Head, error] {
	return func(yield func(Head, error) bool) {
		err := s.check(ctx, "any")
		if err == nil {
			err = s.list(ctx, prefix, yield)
		}
		if err != nil && err != errStopped {
			yield(Head{}, inLog("list", prefix, err))
		}
	}
}

func (s *FileStore) list(ctx context.Context, prefix string, yield func(Head, error) bool) error {
	dir, err := s.files().open(s.Dir)
	if err != nil {
		return unlessNotExist(err)
	}
	defer func() { _ = dir.Close() }()
	files, err := dir.list()
	if err != nil {
		return err
	}
	begins := readable(prefix)
	files = slices.DeleteFunc(files, func(f fs.FileInfo) bool {
		return !logName.MatchString(f.Name()) || !strings.HasPrefix(f.Name(), begins)
	})
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		if c := b.ModTime().Compare(a.ModTime()); c != 0 {
			return c
		}
		return strings.Compare(a.Name(), b.Name())
	})
	for _, info := range files {
		if ctx.Err() != nil {
			return causeOf(ctx)
		}
		file, tail, err := openTail(ctx, dir, info.Name(), "")
		if file != nil {
			_ = file.Close()
		}
		switch {
		case err != nil && !isOfLog(err):
			return err
		case err == nil && tail.ID == "", err == nil && !strings.HasPrefix(tail.Key, prefix):
			continue
		case err == nil && fileName(tail.Key) != info.Name():
			err = &DamageError{Key: tail.Key, Offset: tail.at, Err: fmt.Errorf("it is in the file %q, which belongs to another key", info.Name())}
		}
		head := tail.Head
		if err != nil {
			head = Head{}
			if damage, ok := errors.AsType[*DamageError](err); ok && damage.Key == "" {
				damage.Key = info.Name()
			}
		}
		if !yield(head, err) {
			return errStopped
		}
	}
	return nil
}

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

// open opens and locks the log of a key, or returns nil if there is none. With make
// it makes one, which is empty.
func (s *FileStore) open(ctx context.Context, key string, make bool) (*lockedLog, error) {
	if err := s.check(ctx, key); err != nil {
		return nil, err
	}
	const most = 50 // a link that leads nowhere, in place of Dir, is never there
	for range most {
		l, err := s.try(ctx, fileName(key), key, make)
		if err != errMoved {
			return l, err
		}
		if ctx.Err() != nil {
			return nil, causeOf(ctx)
		}
	}
	return nil, errMoved
}

// errMoved says that another process has removed, replaced or made a file meanwhile.
var errMoved = errors.New("others keep making, replacing or removing the file or its directory")

func (s *FileStore) try(ctx context.Context, name, key string, make bool) (_ *lockedLog, err error) {
	dir, err := s.files().open(s.Dir)
	if errors.Is(err, fs.ErrNotExist) && make {
		if err = s.makeDir(); err == nil {
			err = errMoved
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
	if _, err := plain(dir, name, key); errors.Is(err, fs.ErrNotExist) && make {
		// A file is only made in a directory whose own name is synced.
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
	// Another may have removed or replaced the file before it was locked.
	named, err := plain(dir, name, key)
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

// close gives up the lock and closes what is open.
func (l *lockedLog) close() {
	if l.file != nil {
		_ = l.file.unlock()
		_ = l.file.Close()
	}
	_ = l.dir.Close()
}

// date sets the time at which a log was changed, by which List orders. Where that
// fails or the time is one that file systems do not know, it is the present time.
func (l *lockedLog) date(updated time.Time) {
	if y := updated.Year(); 1970 < y && y < 2200 {
		_ = l.dir.chtimes(l.name, updated)
	}
}

// plain returns what lstat says of the file of a key, which must be no link and no
// folder.
func plain(dir folder, name, key string) (fs.FileInfo, error) {
	info, err := dir.lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &DamageError{Key: key, Err: fmt.Errorf("%q is not a plain file", name)}
	}
	return info, nil
}

// lock waits for a lock.
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
			return causeOf(ctx)
		case <-timer.C:
		}
	}
}

// makeDir makes Dir and the directories above it, as far as they are missing, and
// syncs the name of Dir.
func (s *FileStore) makeDir() error {
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return err
	}
	return s.makeDirs(dir)
}

func (s *FileStore) makeDirs(dir string) error {
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
	if made { // another may have made the parent, and been killed
		if err := s.keep(filepath.Dir(parent)); err != nil {
			return err
		}
	}
	return s.keep(parent)
}

// keep syncs the names in a directory. One that this process may not read is left
// alone: somebody else has made what is in it.
func (s *FileStore) keep(dir string) error {
	if err := s.files().syncDir(dir); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// check returns an error for a store or a key that cannot be used, or if ctx has
// ended.
func (s *FileStore) check(ctx context.Context, key string) error {
	if s == nil || s.Dir == "" {
		return &ValueError{Name: "FileStore.Dir", Value: "", Want: "the name of a directory"}
	}
	if ctx.Err() != nil {
		return causeOf(ctx)
	}
	return CheckKey(key)
}

func (s *FileStore) files() fileSystem {
	if s.disk != nil {
		return s.disk
	}
	return osFiles{}
}

func (s *FileStore) sync(f logFile) error {
	if s.NoSync {
		return nil
	}
	return f.Sync()
}

func (s *FileStore) syncNames(dir folder) error {
	if s.NoSync {
		return nil
	}
	return dir.sync()
}

// recall returns the end of a log as far as this store knows it to be synced, or
// nothing.
func (s *FileStore) recall(l *lockedLog) logTail {
	s.mu.Lock()
	was := s.settled[l.name]
	s.mu.Unlock()
	if was.file == nil || !s.files().same(was.file, l.info) {
		return logTail{}
	}
	return was.tail
}

func (s *FileStore) remember(l *lockedLog, t logTail) {
	t.Record = Record{Head: Head{Seq: t.Seq}, ID: t.ID, Full: t.Full}
	t.text, t.torn = nil, 0
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settled == nil || len(s.settled) >= maxSettled {
		s.settled = map[string]settled{}
	}
	s.settled[l.name] = settled{l.info, t}
}

func (s *FileStore) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.settled, name)
}

// warn logs what Append has cut off. A panic is ignored.
func (s *FileStore) warn(key string, cut logTail) {
	if s.Logger != nil {
		guarded(func() {
			s.Logger.Warn("convo: unfinished record cut off", "key", key, "offset", cut.end, "length", cut.torn)
		})
	}
}

// maxReadable is how many bytes of a key its file shows.
const maxReadable = 24

var logName = regexp.MustCompile(`^[a-z0-9-]{1,24}-[0-9a-f]{32}\.convo$`)

// fileName returns the name of the file of a key.
func fileName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return fmt.Sprintf("%s-%x.convo", readable(key), sum[:16])
}

// readable returns the beginning of a key as names of files show it.
func readable(key string) string {
	b := []byte(key[:min(len(key), maxReadable)])
	for i, c := range b {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			b[i] = '-'
		}
	}
	return string(b)
}

// inLog says which log an error is about, unless the error does.
func inLog(verb, key string, err error) error {
	if err == nil || strings.HasPrefix(err.Error(), "convo: ") {
		return err
	}
	return fmt.Errorf("convo: %s the log of %.40q: %w", verb, key, err)
}

// unlessNotExist returns err, or nil if it says that there is no such file.
func unlessNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

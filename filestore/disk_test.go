package filestore

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// A testDisk is a file system in memory that forgets what was not synced. Of each
// block of 512 bytes it knows all contents that a power cut may leave, of each file
// all lengths, of each name all files. After a sync that failed, the system takes for
// written what is not, as Linux does.
type testDisk struct {
	dirs map[string]*testDir   // by path
	step func(op string) error // is asked before each operation
	ops  map[string]int        // how often each was done
	now  int64
	keep bool // of what was not synced, a crash keeps a part chosen at random; else nothing
	rnd  *rand.Rand
}

const blockSize = 512

type testDir struct {
	path  string
	names map[string]*testInode
	maybe map[string][]*testInode // what else a crash may leave of a name; nil: nothing
	lasts bool                    // its own name does
}

type testInode struct {
	number   int
	data     []byte
	dirty    map[int]bool
	blocks   map[int][][]byte // what a crash may leave of a block, if more than data
	sizes    []int            // what else a crash may leave as the length
	modified time.Time
	shared   int // locks
	excl     bool
}

func newTestDisk(rnd *rand.Rand) *testDisk {
	d := &testDisk{dirs: map[string]*testDir{}, ops: map[string]int{}, rnd: rnd, step: func(string) error { return nil }}
	d.dirs["/"] = &testDir{path: "/", names: map[string]*testInode{}, maybe: map[string][]*testInode{}, lasts: true}
	return d
}

func (d *testDisk) do(op string) error {
	err := d.step(op)
	d.ops[op]++
	return err
}

func (d *testDisk) pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

func (d *testDisk) open(dir string) (folder, error) {
	if err := d.do("open dir"); err != nil {
		return nil, err
	}
	if f := d.dirs[dir]; f != nil {
		return testFolder{d, f}, nil
	}
	return nil, d.pathError("open", dir, fs.ErrNotExist)
}

func (d *testDisk) mkdir(dir string) error {
	if err := d.do("mkdir"); err != nil {
		return err
	}
	switch {
	case d.dirs[dir] != nil:
		return d.pathError("mkdir", dir, fs.ErrExist)
	case d.dirs[filepath.Dir(dir)] == nil:
		return d.pathError("mkdir", dir, fs.ErrNotExist)
	}
	d.dirs[dir] = &testDir{path: dir, names: map[string]*testInode{}, maybe: map[string][]*testInode{}}
	return nil
}

func (d *testDisk) syncDir(dir string) error {
	f := d.dirs[dir]
	if f == nil {
		return d.pathError("open", dir, fs.ErrNotExist)
	}
	return testFolder{d, f}.syncAs("sync parent")
}

func (d *testDisk) same(a, b fs.FileInfo) bool {
	return a.(testInfo).inode == b.(testInfo).inode
}

type testFolder struct {
	d *testDisk
	*testDir
}

func (f testFolder) set(name string, to *testInode) {
	f.maybe[name] = append(f.maybe[name], f.names[name])
	if to == nil {
		delete(f.names, name)
		return
	}
	f.names[name] = to
}

func (f testFolder) openFile(name string, flag int) (logFile, error) {
	op := "open"
	if flag&os.O_CREATE != 0 {
		op = "create"
	}
	if err := f.d.do(op); err != nil {
		return nil, err
	}
	n := f.names[name]
	switch {
	case n == nil && flag&os.O_CREATE == 0:
		return nil, f.d.pathError("open", name, fs.ErrNotExist)
	case n != nil && flag&os.O_EXCL != 0:
		return nil, f.d.pathError("open", name, fs.ErrExist)
	case n == nil:
		f.d.now++
		n = &testInode{number: int(f.d.now), dirty: map[int]bool{}, blocks: map[int][][]byte{}, modified: time.Unix(f.d.now, 0)}
		f.set(name, n)
	}
	return &testFile{d: f.d, n: n, name: name}, nil
}

func (f testFolder) lstat(name string) (fs.FileInfo, error) {
	if err := f.d.do("lstat"); err != nil {
		return nil, err
	}
	if n := f.names[name]; n != nil {
		return testInfo{n, name, int64(len(n.data))}, nil
	}
	return nil, f.d.pathError("lstat", name, fs.ErrNotExist)
}

func (f testFolder) list() ([]fs.FileInfo, error) {
	if err := f.d.do("list"); err != nil {
		return nil, err
	}
	var all []fs.FileInfo
	for _, name := range slices.Sorted(maps.Keys(f.names)) {
		all = append(all, testInfo{f.names[name], name, int64(len(f.names[name].data))})
	}
	return all, nil
}

func (f testFolder) chtimes(name string, updated time.Time) error {
	if err := f.d.do("chtimes"); err != nil {
		return err
	}
	f.names[name].modified = updated
	return nil
}

func (f testFolder) rename(from, to string) error {
	if err := f.d.do("rename"); err != nil {
		return err
	}
	n := f.names[from]
	f.set(from, nil)
	f.set(to, n)
	return nil
}

func (f testFolder) remove(name string) error {
	if err := f.d.do("remove"); err != nil {
		return err
	}
	if f.names[name] == nil {
		return f.d.pathError("remove", name, fs.ErrNotExist)
	}
	f.set(name, nil)
	return nil
}

func (f testFolder) sync() error { return f.syncAs("sync dir") }

func (f testFolder) syncAs(op string) error {
	if err := f.d.do(op); err != nil {
		return err
	}
	clear(f.maybe)
	for path, dir := range f.d.dirs {
		if filepath.Dir(path) == f.path {
			dir.lasts = true
		}
	}
	return nil
}

func (f testFolder) Close() error { return f.d.do("close dir") }

type testFile struct {
	d            *testDisk
	n            *testInode
	name         string
	shared, excl bool
}

func (f *testFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.d.do("read"); err != nil {
		return 0, err
	}
	if off >= int64(len(f.n.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.n.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// block returns the i-th block of a file as it is in memory, filled up with zeros.
func (n *testInode) block(i int) []byte {
	b := make([]byte, blockSize)
	if at := i * blockSize; at < len(n.data) {
		copy(b, n.data[at:])
	}
	return b
}

// change changes the bytes of a file between two places, and its length.
func (n *testInode) change(from, to int, f func()) {
	first, last := from/blockSize, (to+blockSize-1)/blockSize
	for i := first; i < last; i++ {
		n.blocks[i] = append(n.blocks[i], n.block(i))
	}
	size := len(n.data)
	f()
	if len(n.data) != size {
		n.sizes = append(n.sizes, size)
	}
	for i := first; i < last; i++ {
		n.dirty[i] = true
	}
}

func (f *testFile) WriteAt(p []byte, off int64) (int, error) {
	err := f.d.do("write")
	if err != nil { // a part is written
		p = p[:f.d.rnd.IntN(len(p)+1)]
	}
	if len(p) > 0 {
		end := int(off) + len(p)
		f.n.change(min(int(off), len(f.n.data)), end, func() {
			if end > len(f.n.data) {
				f.n.data = append(slices.Clone(f.n.data), make([]byte, end-len(f.n.data))...)
			}
			copy(f.n.data[off:], p)
		})
	}
	return len(p), err
}

func (f *testFile) Truncate(size int64) error {
	if err := f.d.do("truncate"); err != nil {
		return err
	}
	n := int(size)
	f.n.change(min(n, len(f.n.data)), max(n, len(f.n.data)), func() {
		f.n.data = append(slices.Clone(f.n.data[:min(n, len(f.n.data))]), make([]byte, max(0, n-len(f.n.data)))...)
	})
	return nil
}

func (f *testFile) Sync() error {
	if err := f.d.do("sync"); err != nil {
		clear(f.n.dirty) // what a crash may leave stays open
		return err
	}
	for i := range f.n.dirty {
		delete(f.n.blocks, i)
	}
	for i := range f.n.blocks {
		if i*blockSize >= len(f.n.data) { // blocks behind the end were freed
			delete(f.n.blocks, i)
		}
	}
	clear(f.n.dirty)
	f.n.sizes = nil
	return nil
}

func (f *testFile) Stat() (fs.FileInfo, error) {
	if err := f.d.do("stat"); err != nil {
		return nil, err
	}
	return testInfo{f.n, f.name, int64(len(f.n.data))}, nil
}

func (f *testFile) lock(exclusive bool) (bool, error) {
	if err := f.d.do("lock"); err != nil {
		return false, err
	}
	if f.n.excl || exclusive && f.n.shared > 0 {
		return false, nil
	}
	if exclusive {
		f.n.excl, f.excl = true, true
	} else {
		f.n.shared, f.shared = f.n.shared+1, true
	}
	return true, nil
}

func (f *testFile) release() {
	if f.excl {
		f.n.excl = false
	}
	if f.shared {
		f.n.shared--
	}
	f.excl, f.shared = false, false
}

func (f *testFile) unlock() error {
	f.release() // a process that is killed gives its locks up
	return f.d.do("unlock")
}

func (f *testFile) Close() error {
	f.release()
	return f.d.do("close")
}

type testInfo struct {
	inode *testInode
	name  string
	size  int64
}

func (i testInfo) Name() string       { return i.name }
func (i testInfo) Size() int64        { return i.size }
func (i testInfo) Mode() fs.FileMode  { return 0o600 }
func (i testInfo) ModTime() time.Time { return i.inode.modified }
func (i testInfo) IsDir() bool        { return false }
func (i testInfo) Sys() any           { return nil }

// powerCut leaves on the disk what a power cut may leave.
func (d *testDisk) powerCut() {
	for _, path := range slices.Sorted(maps.Keys(d.dirs)) {
		dir := d.dirs[path]
		for up := dir; up != nil; up = d.dirs[filepath.Dir(up.path)] {
			if !up.lasts && !d.keepsIt() {
				delete(d.dirs, path)
				break
			}
			if up.path == "/" {
				break
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(d.dirs)) {
		dir := d.dirs[path]
		if d.dirs[filepath.Dir(path)] == nil {
			delete(d.dirs, path)
			continue
		}
		dir.lasts = true
		for _, name := range slices.Sorted(maps.Keys(dir.maybe)) {
			others := dir.maybe[name]
			if d.keepsIt() {
				continue
			}
			if n := others[d.rnd.IntN(len(others))]; n != nil {
				dir.names[name] = n
			} else {
				delete(dir.names, name)
			}
		}
		clear(dir.maybe)
		inodes := map[*testInode]bool{}
		for _, n := range dir.names {
			inodes[n] = true
		}
		for _, n := range slices.SortedFunc(maps.Keys(inodes), func(a, b *testInode) int { return a.number - b.number }) {
			n.powerCut(d)
		}
	}
}

// keepsIt decides whether what was not synced is on the disk all the same.
func (d *testDisk) keepsIt() bool { return d.keep && d.rnd.IntN(2) == 0 }

func (n *testInode) powerCut(d *testDisk) {
	size := len(n.data)
	if len(n.sizes) > 0 && !d.keepsIt() {
		size = n.sizes[d.rnd.IntN(len(n.sizes))]
	}
	image := make([]byte, (size+blockSize-1)/blockSize*blockSize)
	for i := range len(image) / blockSize {
		b := n.block(i)
		if others := n.blocks[i]; len(others) > 0 && !d.keepsIt() {
			b = others[d.rnd.IntN(len(others))]
		}
		copy(image[i*blockSize:], b)
	}
	n.data, n.sizes, n.shared, n.excl = image[:size], nil, 0, false
	clear(n.blocks)
	clear(n.dirty)
}

// Faults of a disk.
var (
	errKilled = errors.New("the process was killed")
	errNoRoom = &fs.PathError{Op: "write", Path: "log", Err: errors.New("no space left on device")}
	errBroken = &fs.PathError{Op: "sync", Path: "log", Err: errors.New("input/output error")}
)

package filestore

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

var (
	kernel32     = syscall.NewLazyDLL("kernel32.dll")
	lockFileEx   = kernel32.NewProc("LockFileEx")
	unlockFileEx = kernel32.NewProc("UnlockFileEx")
)

const (
	lockFailImmediately = 1
	lockExclusive       = 2

	errorLockViolation = syscall.Errno(33)
)

// lockedByte returns the offset of the byte to lock. It is far beyond the end of any
// log, because Windows prevents other processes from reading a locked byte.
func lockedByte() *syscall.Overlapped {
	return &syscall.Overlapped{OffsetHigh: 1 << (62 - 32)}
}

// lockFile tries to lock a file, and reports whether it succeeded.
func lockFile(f *os.File, exclusive bool) (bool, error) {
	how := uintptr(lockFailImmediately)
	if exclusive {
		how |= lockExclusive
	}
	ok, _, err := lockFileEx.Call(f.Fd(), how, 0, 1, 0, uintptr(unsafe.Pointer(lockedByte())))
	switch {
	case ok != 0:
		return true, nil
	case errors.Is(err, errorLockViolation), errors.Is(err, syscall.ERROR_IO_PENDING):
		return false, nil
	}
	return false, os.NewSyscallError("LockFileEx", err)
}

// unlockFile unlocks a file.
func unlockFile(f *os.File) error {
	if ok, _, err := unlockFileEx.Call(f.Fd(), 0, 1, 0, uintptr(unsafe.Pointer(lockedByte()))); ok == 0 {
		return os.NewSyscallError("UnlockFileEx", err)
	}
	return nil
}

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package cli

import (
	"os"
	"syscall"
	"unsafe"
)

// terminal reports whether a stream is a terminal, and how many columns it has.
func terminal(stream any) (is bool, columns int) {
	f, ok := stream.(*os.File)
	if !ok || f == nil {
		return false, 0
	}
	var size struct{ rows, columns, x, y uint16 }
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	return errno == 0, int(size.columns)
}

// colors reports whether a terminal takes escape sequences.
func colors(any) bool { return true }

var brokenPipe = []error{syscall.EPIPE}

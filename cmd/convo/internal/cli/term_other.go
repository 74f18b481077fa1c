//go:build !darwin && !dragonfly && !freebsd && !linux && !netbsd && !openbsd && !windows

package cli

import "os"

// terminal reports whether a stream is a character device. Its width is not asked for.
func terminal(stream any) (is bool, columns int) {
	f, ok := stream.(*os.File)
	if !ok || f == nil {
		return false, 0
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0, 0
}

// colors reports whether a terminal takes escape sequences.
func colors(any) bool { return true }

var brokenPipe []error

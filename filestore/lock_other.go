//go:build !darwin && !dragonfly && !freebsd && !illumos && !linux && !netbsd && !openbsd && !windows

package filestore

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// lockFile returns an error: file locks are not supported on this system.
func lockFile(*os.File, bool) (bool, error) {
	return false, fmt.Errorf("locks of files on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// unlockFile does nothing.
func unlockFile(*os.File) error { return nil }

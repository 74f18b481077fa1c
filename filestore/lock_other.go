//go:build !darwin && !dragonfly && !freebsd && !illumos && !linux && !netbsd && !openbsd && !windows

package filestore

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// lockFile fails: this system has no locks that could keep two writers apart.
func lockFile(*os.File, bool) (bool, error) {
	return false, fmt.Errorf("locks of files on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// unlockFile does nothing.
func unlockFile(*os.File) error { return nil }

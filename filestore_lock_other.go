//go:build !darwin && !dragonfly && !freebsd && !illumos && !linux && !netbsd && !openbsd && !windows

package convo

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// lockFile fails: nothing keeps two writers apart here.
func lockFile(*os.File, bool) (bool, error) {
	return false, fmt.Errorf("locks of files on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// unlockFile has nothing to give up.
func unlockFile(*os.File) error { return nil }

package cli

import (
	"os"
	"syscall"
)

// mode returns the mode of a console, and whether the stream is one.
func mode(stream any) (mode uint32, is bool) {
	f, ok := stream.(*os.File)
	if !ok || f == nil {
		return 0, false
	}
	err := syscall.GetConsoleMode(syscall.Handle(f.Fd()), &mode)
	return mode, err == nil
}

// terminal reports whether a stream is a console. Its width is not asked for.
func terminal(stream any) (is bool, columns int) {
	_, is = mode(stream)
	return is, 0
}

// colors reports whether a console takes escape sequences: ENABLE_VIRTUAL_TERMINAL_PROCESSING.
func colors(stream any) bool {
	m, _ := mode(stream)
	return m&4 != 0
}

var brokenPipe = []error{syscall.ERROR_BROKEN_PIPE, syscall.Errno(232)} // 232 is ERROR_NO_DATA

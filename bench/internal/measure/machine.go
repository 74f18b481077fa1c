package measure

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine returns a description of this machine.
func Machine() string {
	return fmt.Sprintf("%s, %d cores, %s/%s", cpuModel("/proc/cpuinfo"), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
}

// cpuModel returns the name of the processor from a file in the format of
// /proc/cpuinfo on Linux.
func cpuModel(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "unknown processor"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, value, ok := strings.Cut(lines.Text(), ":")
		if ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

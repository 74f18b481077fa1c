//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// endGroup makes cmd run in a process group of its own. The caller calls end when cmd has run,
// to kill what it has left: children that a test has started and not ended.
func endGroup(cmd *exec.Cmd) (end func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return func() {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}
}

package convotest_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// The checks allocate much and keep little, so a larger heap takes less time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}

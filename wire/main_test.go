package wire_test

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

// A quarter of the time of the tests is garbage collection: they allocate much and keep
// little. Benchmarks run as usual.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}

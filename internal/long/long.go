// Package long says whether tests run in their long form: they do if the
// environment variable CONVO_LONG is 1. No other code reads the variable.
//
// Call its functions while a test runs. go test does not see what a package
// variable reads from the environment, and would return the cached result of
// the other form.
package long

import (
	"os"
	"testing"
)

// On reports whether tests run in their long form.
func On() bool { return os.Getenv("CONVO_LONG") == "1" }

// Or returns the second value in the long form, and the first otherwise. It is
// for the size of a test that runs in both.
func Or[T any](short, long T) T {
	if On() {
		return long
	}
	return short
}

// Only skips a test, or a case of one, that runs in the long form only. why
// says what it does that takes long, as in "builds two programs".
func Only(t testing.TB, why string) {
	t.Helper()
	if !On() {
		t.Skipf("set CONVO_LONG=1 to run this test, which %s", why)
	}
}

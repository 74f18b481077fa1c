package convotest_test

import (
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo/internal/long"
)

// The checks allocate much and keep little, so a larger heap takes less time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}

// namedRules holds the rules that the cases of a test have named so far.
type namedRules map[string]bool

// another lets the short form skip a case that names a rule again. The rule is
// what a report says before the place in parentheses.
func (n namedRules) another(t *testing.T, report string) {
	t.Helper()
	rule, _, _ := strings.Cut(report, " (")
	if rule = strings.TrimRight(rule, ","); n[rule] {
		long.Only(t, "breaks a rule in another way")
	}
	n[rule] = true
}

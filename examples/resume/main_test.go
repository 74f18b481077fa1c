package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/filestore"
)

// The second run continues after the first, and everything that was saved is shown,
// once and in order, though the view holds little of it.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	say := func(lines string) string {
		t.Helper()
		var out strings.Builder
		require.NoError(t, run(t.Context(), &filestore.Store{Dir: dir}, strings.NewReader(lines), &out))
		return out.String()
	}
	shown, err := os.ReadFile("main.go")
	require.NoError(t, err)
	for _, line := range []string{"Flights to Rome?", "And a hotel."} {
		session := fmt.Sprintf("$ echo %q | go run ./examples/resume\n%s", line, say(line+"\n"))
		assert.Contains(t, string(shown), "//\t"+strings.ReplaceAll(strings.TrimSpace(session), "\n", "\n//\t")+"\n")
	}

	var lines, want strings.Builder
	want.WriteString("user: Flights to Rome?\nassistant: You said: Flights to Rome?\nuser: And a hotel.\nassistant: You said: And a hotel.\n")
	for i := range 100 {
		fmt.Fprintln(&lines, "Question", i)
		fmt.Fprintf(&want, "user: Question %d\nassistant: You said: Question %[1]d\n", i)
	}
	say(lines.String())
	h, err := open(t.Context(), &filestore.Store{Dir: dir})
	require.NoError(t, err)
	assert.Less(t, h.Len(), 100, "old turns have left the view")
	var all strings.Builder
	require.NoError(t, show(t.Context(), &filestore.Store{Dir: dir}, &all))
	assert.Equal(t, want.String(), all.String())
}

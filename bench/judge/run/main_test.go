package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/judge"
)

func TestWrite(t *testing.T) {
	explained := judge.Reason{Objection: "a.b: gone", Requests: 3, Shortest: "{}", Wrong: "judge", Because: "It forgets b."}
	all := []judge.Count{
		{Judge: "one", Format: "f", Requests: 10, Refused: 3, Reasons: []judge.Reason{explained}},
		{Judge: "two", Format: "f", Own: true, Requests: 5, Refused: 3, Reasons: []judge.Reason{explained}},
	}
	var out strings.Builder
	require.NoError(t, write(&out, all, []string{"three: gone"}, 0))
	for _, want := range []string{
		"| one | module | f | 10 | 3 | 0 |", "| two | restated rules | f | 5 | 3 | 0 |", "| all | – | – | 15 | 6 | 0 |",
		"| 6 | a.b: gone | one and 1 more | judge | It forgets b. |", "Not available here: three: gone\n",
	} {
		assert.Contains(t, out.String(), want)
	}

	all[0].Unexplained = 1
	all[0].Reasons[0] = judge.Reason{Objection: "c: missing", Requests: 1, Shortest: `{"x":1}`}
	assert.Error(t, write(&out, all, nil, 0))
	assert.Contains(t, out.String(), `| 1 | c: missing | one | not explained | {"x":1} |`)
}

// An explanation is used if it explains something for any judge.
func TestUnused(t *testing.T) {
	known := []judge.Known{{Because: "a"}, {Because: "b"}, {Because: "c", Recorded: true}}
	all := []judge.Count{{Known: known}, {Known: known, Reasons: []judge.Reason{{Because: "a"}}}}
	assert.Equal(t, []string{"b"}, unused(all, false))
	assert.Equal(t, []string{"b", "c"}, unused(all, true))
}

// A judge that cannot be had is no error, and one that does not work is.
func TestAsk(t *testing.T) {
	for name, tt := range map[string]struct {
		source, reason, err string
	}{
		"absent": {`package main; import ("fmt"; "os"); func main() { fmt.Fprintln(os.Stderr, "no node: ` + judge.ErrAbsent.Error() + `"); os.Exit(1) }`, "no node", ""},
		"broken": {`package main; import "os"; func main() { os.Exit(3) }`, "", "exit status"},
		"says":   {`package main; func main() { println(); print(); }`, "", "JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/judge\n\ngo 1.26\n"), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(tt.source), 0o600))
			_, reason, err := ask(dir, 1, 1)
			assert.Contains(t, reason, tt.reason)
			assert.Equal(t, tt.err != "", err != nil, "%v", err)
		})
	}
}

func TestRun_NoJudges(t *testing.T) {
	assert.Error(t, run([]string{"-judges", t.TempDir()}, io.Discard, io.Discard))
	assert.Error(t, run([]string{"-bogus"}, io.Discard, io.Discard))
}

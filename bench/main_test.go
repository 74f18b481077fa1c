package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/internal/harness"
	"github.com/seed-c1b73e60/convo/bench/peer"
	"github.com/seed-c1b73e60/convo/internal/long"
)

func TestRun(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run([]string{"-quick", "-only", "ops", "-sizes", "10", "-peers", ""}, &out, io.Discard))
	for _, want := range []string{"# convo beside others\n", "| date |", "| machine |", "| Go | go1", "## Keeping a conversation\n", "### Append\n", "Took "} {
		assert.Contains(t, out.String(), want)
	}
	assert.NotContains(t, out.String(), "## Counting")
}

func TestRun_Faults(t *testing.T) {
	for _, args := range [][]string{{"-only", "nothing"}, {"-sizes", "ten"}, {"more"}, {"-unknown"}, {"-quick", "-peers", "", "-only", "ops", "-sizes", "1"}, {"-peers", "testdata"}} {
		assert.Error(t, run(args, io.Discard, io.Discard), "%v", args)
	}
}

func TestChoose(t *testing.T) {
	names := []string{"a", "b"}
	got, err := choose("", names)
	require.NoError(t, err)
	assert.Equal(t, names, got)
	got, err = choose("b", names)
	require.NoError(t, err)
	assert.Equal(t, []string{"b"}, got)
}

// Each section has a name of its own, a title and a function.
func TestSections(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sections {
		assert.False(t, seen[s.name], s.name)
		seen[s.name] = true
		assert.NotNil(t, s.write)
		assert.NotEmpty(t, s.title)
	}
}

const smallPeer = `package main

import "github.com/seed-c1b73e60/convo/bench/peer"

func main() {
	peer.Main(peer.Peer{
		Cells: []peer.Cell{{Table: peer.TableAppend, Name: "small append", New: func(int) peer.Case {
			return peer.Case{New: func(int) (func(int) error, error) { return func(int) error { return nil }, nil }}
		}}, {Table: peer.TableStream, Name: "small SDK", New: func(int) peer.Case {
			return peer.Case{New: func(int) (func(int) error, error) { return func(int) error { return nil }, nil }}
		}}, {Table: peer.TableStream, Name: "small client", New: func(int) peer.Case {
			return peer.Case{New: func(int) (func(int) error, error) { return func(int) error { return nil }, nil }}
		}}, {Table: peer.TableSave, Name: "small save", New: func(int) peer.Case {
			return peer.Case{New: func(int) (func(int) error, error) { return func(int) error { return nil }, nil }}
		}}},
		Counters: []peer.Counter{{Name: "small counter", Vocabulary: "o200k_base", New: func() (func(string) int, error) {
			return func(s string) int { return len(s) }, nil
		}}},
		Programs: []peer.Program{{Name: "small program", Load: "count := func(s string) int { return len(s) }"}},
		Talks:    []peer.Keeper{{Name: "small talk", New: func(peer.Job) (peer.Keep, error) { return new(all), nil }}},
		Notes: []peer.Note{
			{Table: peer.TableAppend, Text: "small note on append"}, {Table: peer.TablePairs, Text: "small note on pairs"},
			{Table: peer.TableSpeed, Text: "small note on speed"}, {Table: peer.TableCalls, Text: "small note on calls"},
			{Table: peer.TableLong, Text: "small note on long"}, {Table: peer.TableSame, Text: "small note on same"},
			{Table: peer.TableLoad, Text: "small note on load"}, {Table: peer.TableSave, Text: "small note on save"},
		},
	})
}

type all []peer.Message

func (a *all) Add(m peer.Message) error       { *a = append(*a, m); return nil }
func (a *all) Request() (peer.Request, error) { return peer.Request{View: *a}, nil }
`

// The tables have the rows and notes of a peer. A broken peer is left out, and
// is an error after the rest was printed.
func TestRun_Peers(t *testing.T) {
	long.Only(t, "builds peers and the programs that they load")
	here, err := filepath.Abs(".")
	require.NoError(t, err)
	folder := t.TempDir()
	for name, source := range map[string]string{"small": smallPeer, "wrong": "package main\n\nfunc main() { wrong }\n"} {
		dir := filepath.Join(folder, name)
		require.NoError(t, os.Mkdir(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module peers/"+name+"\n\ngo 1.26\n\nrequire github.com/seed-c1b73e60/convo/bench v0.0.0\n\nreplace github.com/seed-c1b73e60/convo/bench => "+here+"\n"), 0o600))
	}
	var out strings.Builder
	err = run([]string{"-quick", "-only", "ops,count,clients,saves", "-sizes", "10", "-peers", folder}, &out, io.Discard)
	assert.ErrorContains(t, err, "peer wrong is broken: go build")
	for _, want := range []string{
		"| broken and left out | peer wrong is broken", "| small append | ", " | small counter |", "| small program | ", "| small talk | ", "| small client | ", "- small note on append\n",
		"- small note on pairs\n", "- small note on speed\n", "- small note on calls\n", "- small note on long\n", "- small note on same\n", "- small note on load\n", "| small save | ", "- small note on save\n", "Took ",
	} {
		assert.Contains(t, out.String(), want)
	}
}

// The head lists the peers that are not available.
func TestWriteHead(t *testing.T) {
	var out strings.Builder
	fleet := &harness.Fleet{
		Peers:   []*harness.Peer{{About: peer.About{Modules: []peer.Module{{Path: "example.com/main", Version: "v1.2.3"}}, Others: []peer.Module{{Path: "example.com/other", Version: "v4.5.6"}}}}},
		Missing: []harness.Missing{{Name: "gone", Reason: "example.com/gone@v1.0.0: 403 Forbidden"}},
	}
	require.NoError(t, writeHead(&out, options{fleet: fleet}))
	assert.Contains(t, out.String(), "| gone | not available here: example.com/gone@v1.0.0: 403 Forbidden |\n")
	assert.Contains(t, out.String(), "| example.com/main | v1.2.3 |\n")
	assert.Contains(t, out.String(), "1 other modules in the programs of the peers</summary>\n\nexample.com/other v4.5.6\n")
	assert.NotContains(t, out.String(), "broken")
}

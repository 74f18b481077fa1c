package wire_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// recordings is where recorded requests lie beside the repository. They are
// other people's and not part of it.
const recordings = "../../shared/data/recorded"

type recording struct {
	ID      string
	Status  int
	URL     string
	Request json.RawMessage
	Error   json.RawMessage
}

func eachRecording(t *testing.T, name string, f func(recording)) {
	t.Helper()
	file, err := os.Open(filepath.Join(recordings, name+".jsonl"))
	if err != nil {
		t.Skipf("no recorded requests: %v", err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var r recording
		require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
		f(r)
	}
	require.NoError(t, lines.Err())
}

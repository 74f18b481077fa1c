package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.jsonl")
	turn := `{"role":"user","content":"` + strings.Repeat("where is it ", 40) + `"},{"role":"assistant","content":"` + strings.Repeat("it is there ", 60) + `"}`
	require.NoError(t, os.WriteFile(file, []byte("["+strings.Repeat(turn+",", 20)+turn+"]\n"), 0o600))
	var out bytes.Buffer
	require.NoError(t, run([]string{"-peers", "", "-file", file, "-limit", "2000", "-read", "0.25", "-write", "1"}, &out, &out))
	assert.Contains(t, out.String(), "x.jsonl × 1, limit 2,000")
	assert.Contains(t, out.String(), "convo, defaults")

	wrong, empty := filepath.Join(t.TempDir(), "wrong"), filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(wrong, []byte(`{"role":"user","content":"x"}`), 0o600))
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for _, bad := range []struct {
		args []string
		want string
	}{
		{nil, "-file is missing"},
		{[]string{"-file", file, "-limit", "10"}, "-limit 10"},
		{[]string{"-file", file, "more"}, `unexpected argument "more"`},
		{[]string{"-file", file + "x"}, "x.jsonlx"},
		{[]string{"-nothing"}, "not defined"},
		{[]string{"-file", wrong}, "no messages"},
		{[]string{"-file", empty}, "no conversation"},
	} {
		assert.ErrorContains(t, run(bad.args, &out, &out), bad.want)
	}
}

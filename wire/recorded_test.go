package wire_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// recordings is the directory of recorded requests. They are owned by others
// and are not part of the repository; without them the tests are skipped.
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
		t.Skipf("no recorded requests, which are not part of the repository: %v", err)
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

// A tally counts, for each rule, the mutants that break it, those for which
// Check names the rule, and those for which it names no other.
type tally map[string]*struct{ made, named, alone int }

// enough reports whether a rule was broken often enough for the short form.
func (c tally) enough(rule string) bool { return !long.On() && c[rule] != nil && c[rule].made >= 15 }

// look checks a recorded request in which one rule was broken.
func (c tally) look(t *testing.T, f wire.Format, rule, id string, body any) {
	t.Helper()
	data, err := json.Marshal(body)
	require.NoError(t, err)
	if c[rule] == nil {
		c[rule] = new(struct{ made, named, alone int })
	}
	c[rule].made++
	found := f.Check(data)
	rules := map[string]bool{}
	for _, x := range found {
		rules[x.Rule] = true
		assert.NotEmpty(t, x.Path, x)
		assert.NotEmpty(t, x.Error, x)
		assert.NotEmpty(t, x.Fix, x)
	}
	if rules[rule] {
		c[rule].named++
	} else {
		t.Errorf("%s: %s is not named: %v", id, rule, found)
	}
	if len(rules) == 1 {
		c[rule].alone++
	} else {
		t.Logf("%s: %s: %v", id, rule, found)
	}
}

// verdict fails the test if a rule was never broken, or if Check often named
// another rule with it.
func (c tally) verdict(t *testing.T, rules ...string) {
	t.Helper()
	if _, err := os.Stat(recordings); err != nil {
		t.Skipf("no recorded requests, which are not part of the repository: %v", err)
	}
	made, alone := 0, 0
	for _, rule := range slices.Compact(slices.Sorted(slices.Values(rules))) {
		n := c[rule]
		if n == nil {
			t.Errorf("%s was never broken", rule)
			continue
		}
		t.Logf("%-20s %3d made, %3d named, %3d alone", rule, n.made, n.named, n.alone)
		assert.GreaterOrEqual(t, float64(n.alone), 0.95*float64(n.made), rule)
		made, alone = made+n.made, alone+n.alone
	}
	t.Logf("%d of %d with nothing else named", alone, made)
}

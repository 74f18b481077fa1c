package wire_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
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

func skipWithoutRecordings(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(recordings); err != nil {
		t.Skipf("no recorded requests, which are not part of the repository: %v", err)
	}
}

func eachRecording(t *testing.T, name string, f func(recording)) {
	t.Helper()
	skipWithoutRecordings(t)
	file, err := os.Open(filepath.Join(recordings, name+".jsonl"))
	require.NoError(t, err)
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

// A replay counts recorded requests.
type replay struct{ accepted, refused, named int }

// refuses reports whether the provider refused a recorded request. If its error has one of
// these texts, the request breaks the rule of the text, which Check names.
func (c *replay) refuses(t *testing.T, f wire.Format, r recording, rules map[string]string) bool {
	if r.Status == 200 {
		c.accepted++
		return false
	}
	c.refused++
	found := f.Check(r.Request)
	t.Logf("%d %s: %v %.160s", r.Status, r.ID, found, r.Error)
	if rules == nil && len(found) > 0 {
		c.named++
	}
	for text, rule := range rules {
		if strings.Contains(string(r.Error), text) {
			c.named++
			require.Len(t, found, 1, r.ID)
			assert.Equal(t, rule, found[0].Rule)
			assert.Contains(t, string(r.Error), found[0].Error)
			return true
		}
	}
	assert.True(t, rules == nil || len(found) == 0, r.ID)
	return true
}

// survives checks that Check finds nothing wrong with a recorded request that the provider
// accepted, and that Encode writes an equivalent request from what Decode reads of it,
// which it returns.
func survives(t *testing.T, f wire.Format, r recording, canon func(body []byte) []string) wire.Transcript {
	assert.Empty(t, f.Check(r.Request), r.ID)
	in := mustDecode(t, f, r.Request, r.ID)
	_, err := convo.Restore(asSent(in.Messages), &convo.Options{Roles: convo.Relaxed()})
	if late := new(convo.RoleError); !errors.As(err, &late) || late.Attempted != convo.RoleSystem {
		require.NoError(t, err, r.ID) // later system messages are refused without Repair
	}
	out := mustEncode(t, f, restored(t, in), r.ID)
	assert.Empty(t, f.Check(out.Body()), "%s: %s", r.ID, out.Body())
	assert.False(t, out.NoThinking, r.ID)
	assert.Equal(t, canon(r.Request), canon(out.Body()), r.ID)
	return in
}

func (c *replay) report(t *testing.T) {
	skipWithoutRecordings(t)
	t.Logf("%d accepted; %d refused, %d of them for a rule of Check", c.accepted, c.refused, c.named)
	assert.Positive(t, c.accepted)
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

// A mutant breaks one rule in a recorded request.
type mutant struct {
	rule  string
	spoil func(body map[string]any) bool // false: the mutant does not apply to the request
}

// checkMutants breaks each rule in recorded requests that the provider accepted. Check
// reports that rule, and rarely any other. format returns the format that checks a request
// of f in which a rule is broken, and false if no mutant of the rule applies to it.
func checkMutants[F wire.Format](t *testing.T, mutants []mutant, each func(*testing.T, func(t *testing.T, f F, r recording)), format func(f F, r recording, body map[string]any, rule string) (F, bool)) {
	c := tally{}
	each(t, func(t *testing.T, f F, r recording) {
		for _, m := range mutants {
			if r.Status != 200 || c.enough(m.rule) {
				continue
			}
			body := readJSON(t, r.Request)
			if f, ok := format(f, r, body, m.rule); ok && m.spoil(body) {
				c.look(t, f, m.rule, r.ID, body)
			}
		}
	})
	var rules []string
	for _, m := range mutants {
		rules = append(rules, m.rule)
	}
	c.verdict(t, rules...)
}

// A list names a field of a request that holds a list of objects, for mutants.
type list string

// item returns a mutant that changes the list. i is the index of the first object in it
// that fits, and m is this object. If change returns nil, the mutant does not apply.
func (l list) item(fits func(m map[string]any) bool, change func(items []any, i int, m map[string]any) []any) func(map[string]any) bool {
	return func(body map[string]any) bool {
		items, _ := body[string(l)].([]any)
		i := slices.IndexFunc(items, func(it any) bool { return fits(it.(map[string]any)) })
		if i < 0 {
			return false
		}
		items = change(items, i, items[i].(map[string]any))
		return items != nil && set(body, string(l), items)
	}
}

// set returns a mutant that changes one field of the first object that fits.
func (l list) set(fits func(m map[string]any) bool, key string, value any) func(map[string]any) bool {
	return l.item(fits, func(items []any, _ int, m map[string]any) []any {
		m[key] = value
		return items
	})
}

// insert returns a mutant that puts an object after the first one that fits, or a copy of
// this if it is nil.
func (l list) insert(fits func(m map[string]any) bool, object map[string]any) func(map[string]any) bool {
	return l.item(fits, func(items []any, i int, m map[string]any) []any {
		if object != nil {
			m = object
		}
		return slices.Insert(items, i+1, any(m))
	})
}

// remove returns a mutant that removes the first object that fits.
func (l list) remove(fits func(m map[string]any) bool) func(map[string]any) bool {
	return l.item(fits, func(items []any, i int, _ map[string]any) []any { return slices.Delete(items, i, i+1) })
}

// append returns a mutant that appends an object.
func (l list) append(object map[string]any) func(map[string]any) bool {
	return func(body map[string]any) bool { return set(body, string(l), append(body[string(l)].([]any), object)) }
}

// empty returns a mutant that empties the list.
func (l list) empty() func(map[string]any) bool {
	return func(body map[string]any) bool { return set(body, string(l), []any{}) }
}

func set(m map[string]any, key string, value any) bool { m[key] = value; return true }

func isRole(role string) func(m map[string]any) bool {
	return func(m map[string]any) bool { return m["role"] == role }
}

// verdict fails the test if a rule was never broken, or if Check often named
// another rule with it.
func (c tally) verdict(t *testing.T, rules ...string) {
	t.Helper()
	skipWithoutRecordings(t)
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

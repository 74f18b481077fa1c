package convo_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var runMutants = flag.Bool("convo.mutants", false, "break the code on purpose and see the model test fail")

// Each mutant breaks one rule. The test that it names, or else the model test,
// must see it.
var mutants = []struct {
	name, file, old, new string
	test                 string
}{
	{
		name: "pairing by id over the whole list", file: "calls.go",
		old: "	return 0, notFound(id != \"\" && answered)\n}\n\nfunc (c *calls) lookUp",
		new: "	if id != \"\" && c.open > 0 {\n\t\treturn c.first, nil\n\t}\n\treturn 0, notFound(id != \"\" && answered)\n}\n\nfunc (c *calls) lookUp",
	},
	{name: "no clip in Rollback", file: "rollback.go", old: "	h.list = h.list[:n:n]\n", new: "	h.list = h.list[:n]\n"},
	{name: "no clip in Restore", file: "snapshot.go", old: "c.sys, c.list, c.pins = slices.Clip(s.sys), slices.Clip(s.list), slices.Clip(s.pins)", new: "c.pins = slices.Clip(s.pins)"},
	{name: "apply without the floor of now", file: "edit.go", old: "			case floor.has(i):\n				return ErrStale\n", new: ""},
	{name: "apply without the pins of now", file: "edit.go", old: "			case floor.pinned(i):\n				done.kept = append(done.kept, e.id)\n", new: "			case floor.pinned(i) && false:\n"},
	{name: "a pin of one entry only", file: "pin.go", old: "			heads = append(heads, e.head)", new: "			heads = append(heads, e.id)"},
	{name: "usage stamped on the present list", file: "usage.go", old: "h.known().cap, at, shared, tokens", new: "h.known().cap, h.snapshot(), shared, tokens"},
	{name: "what went with a document stays", file: "usage.go", old: "	return max(min(int64(l.Overhead), maxTotal), l.most()/2)\n", new: "	return maxTotal\n"},
	{name: "an older figure applied", file: "usage.go", old: "at.version < h.known().learned.version(at.known().model)", new: "false"},
	{
		name: "splice by count", file: "apply.go",
		old: "	r, err := h.Apply(at, e)\n	if err != nil {\n		return 0, err\n	}\n	return len(r.Dropped)",
		new: "	now := h.Snapshot()\n	for i := range e.Drop {\n		e.Drop[i] = now.list[min(i, len(now.list)-1)].id\n	}\n	r, err := h.Apply(now, e)\n	if err != nil {\n		return 0, err\n	}\n	return len(r.Dropped)",
	},
	{name: "next ID from the largest present", file: "history.go", old: "	open, id, turn := h.calls, h.last, h.turn\n", new: "	open, id, turn := h.calls, h.last, h.turn\n	if n := len(h.list); n > 0 {\n		id = h.list[n-1].id\n	}\n"},
	{name: "a batch append not atomic", file: "history.go", old: "			h.calls.reopen(answered)\n", new: ""},
	{name: "ephemeral counted twice", file: "snapshot.go", old: "s.slot.tokens() + s.eph.tokens()\n", new: "s.slot.tokens() + 2*s.eph.tokens()\n"},
	{name: "Restore without pairs", file: "restore.go", old: "	h.calls = callsOf(h.list)\n", new: ""},
	{name: "edits always stay", file: "rollback.go", old: "		if !at.holdsAll(h.edits[i].touched) {\n			return false\n		}\n", new: ""},
	{name: "a rollback forgets what it took", file: "rollback.go", old: "	h.rollbacks = append(h.rollbacks, rollbackMark{h.version, last})\n", new: ""},
	{name: "a second summary", file: "edit.go", old: "	if j.sum != nil && s.slot != j.slot {\n		return done, ErrStale\n	}\n", new: ""},
	{name: "pins outlive their entries", file: "rollback.go", old: "	h.pins = h.pins[:n:n]\n", new: "	_ = n\n"},
	{name: "too little above the limit is applied", file: "attempt.go", old: "	case a.total > a.limit && weight > limit:\n", new: "	case a.total > a.limit && weight > 1<<60:\n"},
	{name: "compacting twice", file: "compact.go", old: "	case h.compacted == h.version && total <= m.limit:\n", new: "	case h.compacted == h.version && total < 0:\n"},
	{name: "the floor is not looked at first", file: "attempt.go", old: "	if a.scale.weigh(w.total()) <= a.limit {\n", new: "	if a.scale.weigh(w.total()) >= 0 {\n"},
	{name: "half a turn without its user", file: "cut.go", old: "a.user && inside && a.turn == list[place].turn", new: "a.user && inside && a.turn < 0", test: "TestTruncate"},
	{name: "a waiter that frees the slot", file: "flight.go", old: "		case <-ctx.Done():\n			r, err := h.ungone", new: "		case <-ctx.Done():\n			<-h.seat\n			r, err := h.ungone", test: "TestFlight_WaitsUnderItsOwnContext"},
	{name: "a late result is applied", file: "flight.go", old: "	if !f.stop() {\n", new: "	if !f.stop() && false {\n", test: "TestFlight_DeafStrategy"},
	{name: "what ignores its context keeps the slot", file: "flight.go", old: "context.AfterFunc(f.ctx, f.leave)", new: "context.AfterFunc(f.ctx, func() {})", test: "TestFlight_DeafStrategy"},
	{name: "the background tries again", file: "attempt.go", old: "r.Outcome == Stale && !f.unattended", new: "r.Outcome == Stale", test: "TestFlight_Stale"},
	{name: "no second try", file: "attempt.go", old: "r.Outcome == Stale && !f.unattended", new: "false", test: "TestFlight_Stale"},
	{name: "no second look", file: "compact.go", old: "r.Outcome != Applied || r.Fits {\n", new: "true {\n", test: "TestFlight_LooksAgain"},
	{name: "no breaker", file: "attempt.go", old: "	if b.failures == 0 {\n", new: "	if b.failures >= 0 {\n", test: "TestBreaker$|TestAttempts"},
	{name: "a breaker that never closes", file: "attempt.go", old: "		h.breaker = breaker{}\n", new: "", test: "TestBreaker_Resets"},
	{name: "a summary that frees too little", file: "attempt.go", old: "a.summary.fit(freed, int64(a.goal.MinFree))", new: "a.summary.fit(freed, 0)", test: "TestSummarize_FreesTooLittle"},
	{name: "a summarizer that reads placeholders", file: "summarize.go", old: "	w.prepare(entriesOf(base, c.drop))\n", new: "	_ = base\n	w.prepare(entriesOf(s, c.drop))\n", test: "TestChain"},
	{name: "tags of a conversation stay tags", file: "prompt.go", old: "		if s[i] != '<' || !beginsTag(s[i+1:]) {\n", new: "		if s[i] != '<' || !beginsTag(s[i+1:]) || true {\n", test: "TestSummarize_Injection"},
	{name: "a snapshot in a strategy's hands", file: "attempt.go", old: "a.f.h.opts.Strategy, &own, a.goal)", new: "a.f.h.opts.Strategy, a.at, a.goal)\n	_ = own", test: "TestHostile_KeepsAndChanges"},
	{name: "rewind past a reduction", file: "rollback.go", old: "h.list[n-1].turn > h.touched {", new: "h.list[n-1].turn > 0 {"},
}

func TestMutants(t *testing.T) {
	if !*runMutants {
		t.Skip("builds and runs the tests once for each mutant; run with -convo.mutants, as .ci/run does")
	}
	caught := regexp.MustCompile(`seed \d+|--- FAIL: \S+|panic: .*`)
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			copyPackage(t, dir)
			path := filepath.Join(dir, m.file)
			source, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(string(source), m.old), "the mutant must find its place in %s", m.file)
			require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600))

			run := m.test
			if run == "" {
				run = "TestHistory_Model$"
			}
			cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-timeout=60s", "-run", run, "-convo.ops=20000", ".")
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			require.Error(t, err, "no test saw it")
			seen := caught.FindString(string(out))
			require.NotEmpty(t, seen, "nothing ran: %s", out)
			t.Logf("caught: %s", seen)
		})
	}
}

// copyPackage copies the root package and what it and its tests import.
func copyPackage(t *testing.T, dir string) {
	t.Helper()
	for _, sub := range []string{"convotest", "internal/bpe", "internal/udhr"} {
		require.NoError(t, os.CopyFS(filepath.Join(dir, sub), os.DirFS(sub)))
	}
	for _, pattern := range []string{"*.go", "*.bin", "go.mod", "go.sum"} {
		names, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, name := range names {
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		}
	}
}

package repotest_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// transcripts is a directory beside the repository with recorded conversations,
// one in a line, as OpenAI chat messages. They belong to others and are not part
// of the repository; without them the tests are skipped.
const transcripts = "../shared/data/transcripts"

type chatMessage struct {
	Role       string `json:"role"`
	Content    string `json:"content"`
	ToolCallID string `json:"tool_call_id"`
	Name       string `json:"name"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

func (c chatMessage) message() convo.Message {
	switch c.Role {
	case "system":
		return convo.System(c.Content)
	case "user":
		return convo.User(c.Content)
	case "tool":
		return convo.Result(convo.ToolCall{ID: c.ToolCallID, Name: c.Name}, c.Content)
	}
	var calls []convo.ToolCall
	for _, t := range c.ToolCalls {
		calls = append(calls, convo.ToolCall{ID: t.ID, Name: t.Function.Name, Arguments: t.Function.Arguments})
	}
	return convo.Assistant(c.Content, calls...)
}

func eachTranscript(t *testing.T, f func(t *testing.T, msgs []convo.Message)) {
	t.Helper()
	inRoot(t)
	names, _ := filepath.Glob(filepath.Join(transcripts, "*.jsonl"))
	if len(names) == 0 {
		t.Skipf("no recorded conversations in %s: they are not part of the repository", transcripts)
	}
	for _, name := range names {
		file, err := os.Open(name)
		require.NoError(t, err)
		defer file.Close()
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			var line struct{ Messages []chatMessage }
			require.NoError(t, json.Unmarshal(lines.Bytes(), &line), name)
			var msgs []convo.Message
			for _, m := range line.Messages {
				msgs = append(msgs, m.message())
			}
			f(t, msgs)
		}
		require.NoError(t, lines.Err())
	}
}

// Recorded conversations can be appended message by message, with reused ids and
// empty results, and every prefix is valid. Only those that were aborted need
// Repair.
func TestTranscripts(t *testing.T) {
	var whole, relaxed, repaired, reused, empty, cut int
	eachTranscript(t, func(t *testing.T, msgs []convo.Message) {
		seen := map[string]bool{}
		for _, m := range msgs {
			for _, c := range m.ToolCalls() {
				if seen[c.ID] {
					reused++
				}
				seen[c.ID] = true
			}
			for _, r := range m.ToolResults() {
				if r.Text() == "" {
					empty++
				}
			}
		}
		policy := convo.RolePolicy{}
		if err := appendAll(policy, msgs); err != nil {
			policy = convo.Relaxed()
			if err := appendAll(policy, msgs); err != nil {
				repaired++
			} else {
				relaxed++
			}
		} else {
			whole++
		}

		h, err := convo.Restore(convo.NewSnapshot(msgs), &convo.Options{Roles: policy, Repair: func(*convo.SnapshotError) {}})
		require.NoError(t, err)
		checkPairs(t, h.Snapshot())
		text := 0
		for _, e := range h.Snapshot().All() {
			text += len(e.Message.Text())
		}
		assert.Positive(t, text)

		// Give up the older half, again and again.
		for {
			at := h.Snapshot()
			dropped, err := h.SplicePrefix(at, at.Len()/2, "what went before")
			require.NoError(t, err)
			if dropped == 0 {
				break
			}
			cut += dropped
			checkPairs(t, h.Snapshot())
			last, _ := at.At(at.Len() - 1)
			_, there := h.Snapshot().Find(last.ID)
			assert.True(t, there, "the newest entry stays")
		}
	})
	t.Logf("%d conversations under Strict, %d under Relaxed, %d mended; %d reused ids, %d empty results, %d entries given up",
		whole, relaxed, repaired, reused, empty, cut)
	assert.Positive(t, whole)
	assert.Positive(t, reused)
	assert.Positive(t, empty)
}

func appendAll(policy convo.RolePolicy, msgs []convo.Message) error {
	h, err := convo.New(&convo.Options{Roles: policy})
	if err != nil {
		return err
	}
	for m := range slices.Values(msgs) {
		if _, err := h.Append(m); err != nil {
			return err
		}
	}
	return nil
}

// plainStrategies returns strategies that need no model, by name.
func plainStrategies() map[string]convo.CompactionStrategy {
	return map[string]convo.CompactionStrategy{
		"truncate":     convo.Truncate{},
		"window":       convo.SlidingWindow{KeepLast: 10},
		"turns":        convo.Chain(convo.SlidingWindow{KeepTurns: 2}, convo.Truncate{}),
		"keep last":    convo.Summarize{KeepLast: 8},
		"keep turns":   convo.Chain(convo.Summarize{KeepTurns: 4, KeepTokens: 300}, convo.Truncate{}),
		"clear":        convo.ClearToolResults{MinFree: -1},
		"extract":      convo.Summarize{},
		"clear, drop":  convo.Chain(convo.ClearToolResults{}, convo.Truncate{}),
		"when":         convo.When(func(convo.Status) bool { return true }, convo.Truncate{}),
		"when, drop":   convo.Chain(convo.When(nil, convo.ClearToolResults{}), convo.Truncate{}),
		"clear, sum":   convo.Chain(convo.ClearToolResults{}, convo.Summarize{}),
		"all of them":  convo.Chain(convo.ClearToolResults{KeepLast: 1}, convo.Summarize{KeepTokens: 400}, convo.Truncate{}),
		"summary only": convo.Summarize{KeepTokens: -1},
	}
}

// Recorded conversations are compacted into small windows: what is left is in
// order and holds the floor, and the target is reached or a typed error says why
// not.
func TestTranscripts_Compact(t *testing.T) {
	strategies := plainStrategies()
	strategies["echo"] = convo.Summarize{With: convotest.Echo{}, Window: -1}
	strategies["fails"] = convo.Chain(convo.Summarize{With: convotest.Failing{}, Window: -1}, convo.Truncate{})
	names := slices.Sorted(maps.Keys(strategies))
	outcomes := map[string]map[string]int{}
	prefixes, cases, count := 0, 0, 0
	every := long.Or(1201, 97) // it looks at each so-manyth prefix
	eachTranscript(t, func(t *testing.T, msgs []convo.Message) {
		policy := convo.RolePolicy{}
		if appendAll(policy, msgs) != nil {
			policy = convo.Relaxed()
		}
		h := historyOf(t, &convo.Options{Roles: policy, PinFirstUser: true})
		for _, m := range msgs {
			if _, err := h.Append(m); err != nil {
				return // only Repair takes what follows
			}
			if count++; count%every != 0 {
				continue
			}
			prefixes++
			for _, name := range names {
				for _, percent := range []int{60, 25} {
					cases++
					got := squeeze(t, h.Snapshot(), strategies[name], policy, percent)
					if outcomes[name] == nil {
						outcomes[name] = map[string]int{}
					}
					outcomes[name][got]++
				}
			}
		}
	})
	t.Logf("%d prefixes, %d compactions", prefixes, cases)
	for _, name := range names {
		t.Logf("%-14s %v", name, outcomes[name])
	}
	assert.Positive(t, outcomes["truncate"]["applied"])
	assert.Positive(t, outcomes["truncate"]["floor too large"])
	assert.Positive(t, outcomes["clear"]["not enough"])
}

// squeeze compacts a fork to a percentage of its weight, and says how that
// ended.
func squeeze(t *testing.T, s *convo.Snapshot, c convo.CompactionStrategy, policy convo.RolePolicy, percent int) string {
	weight := s.Tokens() + s.Tokens()/8 + 1
	h, err := convo.Restore(s, &convo.Options{
		Roles:    policy,
		Strategy: c,
		Limits:   convo.Limits{Window: max(weight*percent/100, 8), Reserve: -1},
	})
	require.NoError(t, err)
	defer h.Close()
	_, r, err := h.Prepare(t.Context())
	after := h.Snapshot()
	checkPairs(t, after)
	left := map[convo.ID]convo.Entry{}
	for _, e := range after.All() {
		left[e.ID] = e
	}
	gone := 0
	for x := range s.Exchanges() {
		for _, id := range x.IDs() {
			was, _ := s.Find(id)
			e, there := left[id]
			if x.Floor {
				require.True(t, there, "entry %d of the floor is gone", id)
				if !slices.Contains(r.Shortened, id) {
					require.Equal(t, was.Message, e.Message, "entry %d of the floor has changed", id)
				}
			} else if !there {
				gone++
			}
		}
	}
	if err != nil {
		require.Equal(t, convo.OutcomeFailed, r.Outcome)
		require.Zero(t, gone, "an error, and entries are gone")
		require.Equal(t, s.Tokens(), after.Tokens())
		floor, _ := errors.AsType[*convo.FloorError](err)
		limit, _ := errors.AsType[*convo.LimitError](err)
		refused, _ := errors.AsType[*convo.RefusedError](err)
		switch {
		case floor != nil:
			require.Greater(t, floor.Floor, floor.Limit)
			return "floor too large"
		case limit != nil:
			require.Greater(t, limit.Need, limit.Limit)
			return "not enough"
		case refused != nil:
			return "refused"
		}
		t.Fatalf("an error of no known type: %v", err)
	}
	require.True(t, r.Fits)
	if r.TokensBefore <= h.Status().Limit {
		return "fits" // of a few tokens
	}
	require.Equal(t, convo.OutcomeApplied, r.Outcome)
	if low := h.Status().Low; r.TokensAfter > low {
		// What may stay above low: the floor, the user's words, and a quarter of low.
		rest := 0
		for x := range after.Exchanges() {
			if first, _ := after.Find(x.First); !x.Floor && first.Message.Role != convo.RoleUser {
				rest += x.Tokens
			}
		}
		switch c := c.(type) {
		case convo.Truncate:
			require.LessOrEqual(t, rest, low/4, "above low water, and more could have gone")
		case convo.Summarize:
			if c.KeepLast == 0 {
				require.LessOrEqual(t, rest, low/4, "above low water, and more could have gone")
			}
		}
	}
	return "applied"
}

package convo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

// A result is cut between lines where there are lines, and between words where
// there are words.
func TestMaxResult_CutsAtBorders(t *testing.T) {
	lines, words := strings.Repeat("a line of the log\n", 300), strings.Repeat("word ", 1000)
	cut := throughAppend(t, 400, []convo.Part{convo.Text(lines)})
	head, tail, ok := strings.Cut(string(cut[0].(convo.Text)), "\n[cut: ")
	require.True(t, ok)
	assert.Zero(t, len(head)%len("a line of the log\n"), "%q", head)
	_, tail, _ = strings.Cut(tail, "]\n")
	assert.Zero(t, len(tail)%len("a line of the log\n"), "%q", tail)
	assert.Greater(t, len(head), 2*len(tail), "more from the beginning")

	cut = throughAppend(t, 400, []convo.Part{convo.Text(words)})
	head, tail, _ = strings.Cut(string(cut[0].(convo.Text)), "\n[cut: ")
	_, tail, _ = strings.Cut(tail, "]\n")
	assert.True(t, strings.HasSuffix(head, " ") && strings.HasPrefix(tail, "word"), "%q and %q", head, tail)
}

// Without MaxResult, the bound is a quarter of the limit in force.
func TestMaxResult_FollowsTheWindow(t *testing.T) {
	c := callOf("c")
	for _, tt := range []struct {
		name   string
		opts   convo.Options
		limits convo.Limits // set later; zero: none
		want   int
	}{
		{"no window", convo.Options{}, convo.Limits{}, 100_000},
		{"only High", convo.Options{Limits: convo.Limits{High: 1000}}, convo.Limits{}, 100_000},
		{"a window", convo.Options{Limits: convo.Limits{Window: 8000, Reserve: 2000}}, convo.Limits{}, 1500},
		{"a small window", convo.Options{Limits: convo.Limits{Window: 200}}, convo.Limits{}, 64},
		{"set later", convo.Options{Limits: convo.Limits{Window: 8000}}, convo.Limits{Window: 4000, Reserve: -1}, 1000},
		{"none", convo.Options{MaxResult: -1, Limits: convo.Limits{Window: 8000}}, convo.Limits{}, 100_000},
		{"set", convo.Options{MaxResult: 300, Limits: convo.Limits{Window: 8000}}, convo.Limits{}, 300},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.opts.Tokenizer = byBytes
			h := historyOf(t, &tt.opts, convo.User("u"), convo.Assistant("", c))
			if tt.limits != (convo.Limits{}) {
				require.NoError(t, h.SetLimits(tt.limits))
			}
			id := mustAppend(t, h, convo.Result(c, strings.Repeat("x", 100_000)))
			e, _ := h.Snapshot().Find(id)
			assert.InDelta(t, tt.want, len(e.Message.Text()), 2)
			assert.LessOrEqual(t, len(e.Message.Text()), tt.want)
			assert.Equal(t, 100_000-len(e.Message.Text()), e.Missing)
		})
	}
}

// What Append cuts is reported, and logged as a warning.
func TestAppend_ReportsCuts(t *testing.T) {
	var reports []convo.Report
	var log strings.Builder
	opts := bare()
	opts.Limits.Window, opts.Limits.Reserve = 4000, -1
	opts.OnCompaction = func(r convo.Report) { reports = append(reports, r) }
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	c, d := callOf("c"), callOf("d")
	long := strings.Repeat("x", 3000)
	h := historyOf(t, opts, convo.User("u"), convo.Assistant("", c, d))
	require.Empty(t, reports)
	mustAppend(t, h, convo.Result(c, "short"), convo.Message{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{Parts: []convo.Part{convo.Text(long)}}}})
	require.Len(t, reports, 1)
	r := reports[0]
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, convo.ReasonAppend, r.Reason)
	assert.Equal(t, []convo.ID{4}, r.Shortened)
	assert.Equal(t, h.Status().Upper, r.TokensAfter)
	assert.InDelta(t, 3400, r.TokensBefore, 50, "what it would be without the cut")
	assert.True(t, r.Fits)
	left := r.Originals()
	require.Len(t, left, 1)
	assert.Equal(t, convo.ID(4), left[0].ID)
	assert.Equal(t, long, left[0].Message.Text())
	assert.Equal(t, "d", left[0].Message.ToolResults()[0].CallID, "paired")
	assert.Zero(t, left[0].Missing)
	assert.Contains(t, log.String(), "level=WARN")
	assert.Contains(t, log.String(), "reason=append")
	assert.Contains(t, log.String(), "shortened=1")

	// A refused append reports nothing.
	_, err := h.Append(convo.Result(c, long))
	require.Error(t, err)
	assert.Len(t, reports, 1)
	assert.ErrorIs(t, h.Undo(r), convo.ErrStale)
}

// checkCut appends a result with a bound in bytes: what stays is the beginning and
// the end of it around a marker, within the bound, and is not cut again.
func checkCut(t *testing.T, whole string, limit int) {
	t.Helper()
	limit = 64 + limit%1000
	whole = strings.ToValidUTF8(whole, "\uFFFD")
	parts := throughAppend(t, limit, []convo.Part{convo.Text(whole)})
	got := string(parts[0].(convo.Text))
	if len(whole) <= limit {
		require.Equal(t, whole, got)
		return
	}
	require.LessOrEqual(t, len(got), limit)
	require.True(t, utf8.ValidString(got))
	ok := false
	for _, m := range regexp.MustCompile(`\n\[cut: (\d+) bytes left out\]\n`).FindAllStringSubmatchIndex(got, -1) {
		head, tail := got[:m[0]], got[m[1]:]
		ok = ok || strings.HasPrefix(whole, head) && strings.HasSuffix(whole, tail) && got[m[2]:m[3]] == itoa(len(whole)-len(head)-len(tail))
	}
	require.True(t, ok, "%q is no cut of %q", got, whole)
	require.Equal(t, parts, throughAppend(t, limit, parts))
}

func TestMaxResult_Property(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 300 {
		var whole strings.Builder
		for range rng.IntN(200) {
			whole.WriteString([]string{"a", "\n", " ", "é", "😀", "\n[cut: 5 bytes left out]\n", "word ", "\xff"}[rng.IntN(8)])
		}
		checkCut(t, whole.String(), rng.IntN(1000))
	}
}

func FuzzMaxResult(f *testing.F) {
	f.Add(strings.Repeat("line\n", 100), 100)
	f.Add(strings.Repeat("😀 ", 100)+"\n[cut: 1 bytes left out]\n", 0)
	f.Fuzz(func(t *testing.T, whole string, limit int) {
		if limit >= 0 {
			checkCut(t, whole[:min(len(whole), 10_000)], limit)
		}
	})
}

// blockOf returns a block with n bytes of text that only one format understands.
func blockOf(n int) convo.Opaque {
	return convo.Opaque{Format: "anthropic", JSON: `{"type":"search_result","text":"` + strings.Repeat("word ", n/5) + `"}`}
}

// answer returns the message with a result for each list of parts, for the calls c0, c1 and so on.
func answer(results ...[]convo.Part) convo.Message {
	m := keyed("answer", convo.Message{Role: convo.RoleTool})
	for i, parts := range results {
		m.Parts = append(m.Parts, convo.ToolResult{CallID: fmt.Sprint("c", i), Name: "tool", Parts: parts})
	}
	return m
}

// askedFor returns the messages before an answer of n results.
func askedFor(n int) []convo.Message {
	var calls []convo.ToolCall
	for i := range n {
		calls = append(calls, callOf(fmt.Sprint("c", i)))
	}
	return []convo.Message{keyed("ask", convo.User("u")), keyed("call", convo.Assistant("", calls...))}
}

// A result whose bulk is no text is cut like a long text: by Append, or if that cuts nothing,
// by the compaction whose floor it is. The original is stored and reported, Undo brings it
// back, and Decisions, archives and Snapshots hold the cut.
func TestCut_Opaque(t *testing.T) {
	media := convo.NewMedia("image/png", []byte("hi"))
	big, small := blockOf(300_000), blockOf(200)
	for _, tt := range []struct {
		name    string
		results [][]convo.Part
		want    []int // how many blocks are left of each; nil: not compared
	}{
		{"one block", [][]convo.Part{{blockOf(700_000)}}, []int{0}},
		{"beside a text, an image and a small block", [][]convo.Part{{convo.Text("found"), small, big, media}}, []int{1}},
		{"beside a long text", [][]convo.Part{{convo.Text(strings.Repeat("line\n", 15_000)), big, small}}, []int{1}},
		{"several results", [][]convo.Part{{big}, {convo.Text("short")}, {small, big}, {convo.Text(strings.Repeat("line\n", 15_000))}}, []int{0, 0, 1, 0}},
		{"the same block twice", [][]convo.Part{{blockOf(20_000), convo.Text("and"), blockOf(20_000), blockOf(20_000), blockOf(20_000), blockOf(20_000), blockOf(20_000)}}, nil},
		{"many small ones", [][]convo.Part{manyBlocks(2000)}, nil},
	} {
		for _, way := range []string{"Append", "Prepare", "Recover"} {
			for _, spills := range []bool{false, true} {
				t.Run(fmt.Sprint(tt.name, "/", way, "/spills=", spills), func(t *testing.T) {
					store, stored := new(convotest.MemStore), map[string]convo.ToolResult{}
					opts := &convo.Options{Limits: convo.Limits{Window: 20_000, Reserve: 2500}}
					if spills {
						opts.Spill = func(_ context.Context, r convo.ToolResult) (string, error) {
							assert.NotContains(t, stored, r.CallID)
							stored[r.CallID] = r
							return "file-" + r.CallID, nil
						}
					}
					var reports []convo.Report
					opts.OnCompaction = func(r convo.Report) { reports = append(reports, r) }
					if way != "Append" {
						opts.MaxResult = -1
					}
					if way == "Recover" {
						opts.Limits.Window = 2_000_000
					}
					h, err := convo.Open(t.Context(), store, "k", opts)
					require.NoError(t, err)
					mustAppend(t, h, askedFor(len(tt.results))...)
					given := answer(tt.results...)
					id := mustAppend(t, h, given)
					whole := h.Snapshot()
					var s *convo.Snapshot
					if way == "Recover" {
						require.NoError(t, h.SetLimits(convo.Limits{Window: 400_000}))
						retry, _, err := h.Recover(t.Context(), h.Snapshot(), errors.New("prompt is too long: 500000 tokens > 20000 maximum"))
						require.NoError(t, err)
						require.True(t, retry)
						s = h.Snapshot()
					} else {
						var r convo.Report
						s, r, err = h.Prepare(t.Context())
						require.NoError(t, err)
						require.True(t, r.Fits)
					}
					require.Len(t, reports, 1)
					assert.Equal(t, []convo.ID{id}, reports[0].Shortened)
					left := reports[0].Originals()
					require.Len(t, left, 1)
					assert.Equal(t, given.Parts, left[0].Message.Parts)

					e, _ := s.Find(id)
					require.Len(t, e.Message.Parts, len(given.Parts), "pairs stay")
					assert.Positive(t, e.Missing)
					for i, r := range e.Message.ToolResults() {
						was := given.Parts[i].(convo.ToolResult)
						if assert.Equal(t, was.CallID, r.CallID); assert.ObjectsAreEqual(was, r) {
							continue
						}
						assert.NotContains(t, r.Parts, big)
						if spills {
							assert.Equal(t, was, stored[r.CallID])
							assert.Contains(t, r.Text(), ", kept at file-"+r.CallID+"]\n")
						} else {
							assert.Contains(t, r.Text(), " bytes left out]\n")
						}
						blocks := 0
						for _, p := range r.Parts {
							if _, ok := p.(convo.Opaque); ok {
								blocks++
							}
						}
						if tt.want != nil {
							assert.Equal(t, tt.want[i], blocks)
							if slices.Contains(was.Parts, convo.Part(big)) {
								assert.Contains(t, r.Text(), fmt.Sprintf("[block search_result]\n[cut: %d bytes left out", len(big.JSON)))
							}
						}
						assert.Equal(t, slices.Contains(was.Parts, convo.Part(media)), slices.Contains(r.Parts, convo.Part(media)), "media stay")
					}

					// What is saved makes the same view again.
					bare := *opts
					bare.OnCompaction = nil
					data, err := h.Decisions()
					require.NoError(t, err)
					assert.Less(t, len(data), 4000+200*strings.Count(string(data), `"inside"`), "the message is not in it")
					d, err := convo.ReadDecisions(data)
					require.NoError(t, err)
					again, err := convo.Resume(d, rowsOf(append(askedFor(len(tt.results)), given)...), &bare)
					require.NoError(t, err)
					assert.Equal(t, s.Messages(), again.Snapshot().Messages())
					assert.Equal(t, string(data), string(mustDecisions(t, again)))
					require.NoError(t, h.Save(t.Context()))
					opened, err := convo.Open(t.Context(), store, "k", &bare)
					require.NoError(t, err)
					assert.Equal(t, s.Messages(), opened.Snapshot().Messages())
					assert.Equal(t, given.Parts, mustRewind(t, again).Parts, "the original is the row")

					if way == "Append" {
						return
					}
					require.NoError(t, h.Undo(reports[0]))
					assert.Equal(t, whole.Messages(), h.Snapshot().Messages())
					assert.Zero(t, h.Status().Originals)
				})
			}
		}
	}
}

func manyBlocks(n int) (parts []convo.Part) {
	for i := range n {
		parts = append(parts, convo.Opaque{Format: "anthropic", JSON: fmt.Sprintf(`{"type":"search_result","text":"what number %d has found here"}`, i)})
	}
	return parts
}

func mustDecisions(t *testing.T, h *convo.History) []byte {
	t.Helper()
	data, err := h.Decisions()
	require.NoError(t, err)
	return data
}

// If Spill fails, Append appends nothing, and a compaction cuts nothing.
func TestCut_OpaqueSpillFails(t *testing.T) {
	opts := &convo.Options{Limits: convo.Limits{Window: 20_000}}
	opts.Spill = func(context.Context, convo.ToolResult) (string, error) { return "", errors.New("disk full") }
	h := historyOf(t, opts, askedFor(1)...)
	unchanged(t, h, func() {
		_, err := h.Append(answer([]convo.Part{blockOf(700_000)}))
		require.ErrorContains(t, err, "disk full")
	})

	opts.MaxResult = -1
	h = historyOf(t, opts, append(askedFor(1), answer([]convo.Part{blockOf(700_000)}))...)
	unchanged(t, h, func() {
		_, _, err := h.Prepare(t.Context())
		var floor *convo.FloorError
		require.ErrorAs(t, err, &floor)
		require.ErrorContains(t, err, "disk full")
	})
}

// What was cut by Append is cut again from its original, and not stored again; without the
// original, the reference in its marker is used.
func TestCut_OpaqueAgain(t *testing.T) {
	for _, keep := range []int{0, -1} {
		calls := 0
		opts := &convo.Options{Limits: convo.Limits{Window: 20_000, Reserve: -1}, KeepOriginals: keep}
		opts.Spill = func(_ context.Context, r convo.ToolResult) (string, error) {
			calls++
			return "file", nil
		}
		h := historyOf(t, opts, append(askedFor(1), answer([]convo.Part{blockOf(16_000), blockOf(700_000)}))...)
		require.Equal(t, 1, calls)
		require.Len(t, find(t, h, 3).Message.ToolResults()[0].Parts, 2)
		require.NoError(t, h.SetLimits(convo.Limits{Window: 1000, Reserve: -1}))
		_, _, err := h.Prepare(t.Context())
		require.NoError(t, err)
		parts := find(t, h, 3).Message.ToolResults()[0].Parts
		assert.Contains(t, parts[0], ", kept at file]")
		mustAppend(t, h, convo.Assistant("so"), convo.User("v"))
		apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 3}}})
		assert.Contains(t, find(t, h, 3).Message.Text(), ", kept at file]")
		assert.Equal(t, 1, calls)
	}
}

// However a result is made, a cut of it has at most the bound besides its media, is not cut
// again, and is made again from its row.
func TestMaxResult_OpaqueProperty(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 300 {
		var parts []convo.Part
		for range 1 + rng.IntN(6) {
			switch n := rng.IntN(1 << rng.IntN(12)); rng.IntN(3) {
			case 0:
				parts = append(parts, convo.Text(strings.Repeat("a line\n", n/7)))
			case 1:
				parts = append(parts, blockOf(n))
			default:
				data, _ := json.Marshal(strings.Repeat("x", n%50))
				parts = append(parts, convo.Opaque{Format: "f", JSON: string(data)})
			}
		}
		bound := 64 + rng.IntN(1000)
		opts := bare()
		opts.MaxResult = bound
		h := historyOf(t, opts, append(askedFor(1), answer(parts))...)
		short := find(t, h, 3).Message.ToolResults()[0]
		size := 0
		for _, p := range short.Parts {
			switch p := p.(type) {
			case convo.Text:
				size += len(p)
			case convo.Opaque:
				size += len(p.JSON)
			}
		}
		require.LessOrEqual(t, size, bound, "%v", parts)
		d := decisionsOf(t, h)
		again, err := convo.Resume(d, rowsOf(append(askedFor(1), answer(parts))...), opts)
		require.NoError(t, err)
		require.Equal(t, h.Snapshot().Messages(), again.Snapshot().Messages())
		twice := historyOf(t, opts, append(askedFor(1), answer(short.Parts))...)
		require.Equal(t, short, find(t, twice, 3).Message.ToolResults()[0])
	}
}

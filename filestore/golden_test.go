package filestore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/filestore"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
	"github.com/seed-c1b73e60/convo/logs"
)

// The logs in testdata/logs were written by earlier releases, one folder for each, and
// must open for ever. A log that is checked in never changes, with one exception:
// before the first release format 1 may still grow. To write its logs anew, delete
// their folder and run
//
//	go test -run TestGolden ./filestore -convo.golden
//
// This writes the logs of the newest folder, if they are not there, and for each log of
// each folder the text of what is read from it. In sqlstore it does the same for a
// database.
var writeGolden = flag.Bool("convo.golden", false, "write the logs in testdata/logs that are missing, and what is read from each")

const (
	goldenLogs  = "testdata/logs"
	newestLogs  = "format1"
	wholeKey    = "whole"
	prunedKey   = "pruned"
	goldenTexts = ".txt" // ends the name of the text of a log
)

// goldenOptions are those with which golden logs are written and opened. Tokens are
// counted in a way that no later release changes.
func goldenOptions() *convo.Options {
	return &convo.Options{
		Tokenizer: convo.TokenizerFunc(func(s string) int { return len(s) }),
		Overheads: convo.Overheads{Message: -1, Call: -1, Result: -1, Media: func(convo.Media) int { return 50 }},
		Limits:    convo.Limits{Window: 20_000},
		MaxResult: 64, KeepOriginals: -1,
	}
}

func open(t testing.TB, s convo.Store, key string, opts *convo.Options) *convo.History {
	t.Helper()
	h, err := convo.Open(context.Background(), s, key, opts)
	require.NoError(t, err)
	return h
}

func save(t testing.TB, h *convo.History) {
	t.Helper()
	require.NoError(t, h.Save(context.Background()))
	require.Zero(t, h.Status().Unsaved)
}

func mustAppend(t testing.TB, h *convo.History, msgs ...convo.Message) {
	t.Helper()
	_, err := h.Append(msgs...)
	require.NoError(t, err)
}

// checkOpened checks that a History opens as it was saved.
func checkOpened(t testing.TB, s convo.Store, key string, h *convo.History) {
	t.Helper()
	state := func(h *convo.History) string {
		data, err := h.Snapshot().MarshalJSON()
		require.NoError(t, err)
		status := h.Status()
		status.Decisions, status.Unsaved, status.Originals, status.LastAppend, status.LastEdit = 0, 0, 0, time.Time{}, status.LastEdit.UTC()
		return fmt.Sprintf("%s\n%#v\n%+v", data, status, h.Tokens())
	}
	g := open(t, s, key, goldenOptions())
	require.Equal(t, state(h), state(g))
	require.Zero(t, g.Status().Unsaved)
}

// sayNext appends what the next one who has a turn says.
func sayNext(t testing.TB, h *convo.History, text string) {
	t.Helper()
	s := h.Snapshot()
	if last, ok := s.At(s.Len() - 1); ok && last.Message.Role == convo.RoleUser {
		mustAppend(t, h, convo.Assistant(text))
		return
	}
	mustAppend(t, h, convo.User(text))
}

// goldenStore returns the store of a folder with golden logs.
func goldenStore(t testing.TB, folder string) *filestore.Store {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join(goldenLogs, folder))
	require.NoError(t, err)
	return &filestore.Store{Dir: dir, NoSync: true}
}

// writeLogs writes a log that has all that a record may hold, and a copy of it that is
// pruned. It writes the same bytes each time.
func writeLogs(t *testing.T, s *filestore.Store) {
	cryptotest.SetGlobalRandom(t, 15)
	synctest.Test(t, func(t *testing.T) {
		var summarize func(convo.SummaryRequest) (convo.Summary, error)
		opts := goldenOptions()
		opts.Strategy = convo.Summarize{Window: -1, With: convo.SummarizerFunc(func(_ context.Context, r convo.SummaryRequest) (convo.Summary, error) {
			return summarize(r)
		})}
		h := open(t, s, wholeKey, opts)
		keep := func() {
			time.Sleep(time.Second + time.Nanosecond)
			save(t, h)
		}
		apply := func(e convo.Edit) {
			_, err := h.Apply(h.Snapshot(), e)
			require.NoError(t, err)
		}
		say := func(texts ...string) {
			for _, text := range texts {
				time.Sleep(time.Second)
				sayNext(t, h, text)
			}
		}

		// Messages of every kind, with every field.
		where := convo.User("Where to? \"Rome\"\n\u2028 \U0001F3DB\uFE0F", convo.NewMedia("image/png", []byte{0, 1, 254}), convo.Media{MIME: "image/jpeg", URL: "https://example.com/a.jpg"}, convo.Opaque{Format: "openai", JSON: `{"type":"file","n":1.0}`})
		where.Author, where.Key, where.Meta = "Ann", "row 1", `{"seat":7}`
		mustAppend(t, h, convo.System("You are a guide."), convo.System("Be brief."), where)
		keep()
		walk := convo.ToolCall{ID: "c1", Name: "route", Arguments: `{"to": "Rome", "km": 1.0}`}
		plan := thoughts.In(convo.Assistant("Let me look.", walk, convo.ToolCall{Name: "weather"}), convo.Reasoning{ID: "r1", Text: "By foot?", Signature: "c2ln", Encrypted: "ZW5j"})
		plan.Origin = convo.Origin{Format: "anthropic", Model: "large-1"}
		mustAppend(t, h, plan)
		keep()
		mustAppend(t, h, convo.Result(walk, strings.Repeat("turn left\n", 9)))
		keep()
		require.NoError(t, h.Queue(convo.User("And by train?"), convo.User("I have time.")))
		keep()
		rain := convo.ResultError(convo.ToolCall{Name: "weather"}, errors.New("no forecast"))
		result := rain.Parts[0].(convo.ToolResult)
		result.Parts = append(result.Parts, convo.NewMedia("text/plain", []byte("?")), convo.Opaque{Format: "anthropic", JSON: `{"x":[]}`})
		rain.Parts[0] = result
		mustAppend(t, h, rain) // and the queue
		mustAppend(t, h, convo.Assistant("On foot it is far."))
		keep()

		// Pins, models, limits and usage.
		require.NoError(t, h.Pin(3))
		require.NoError(t, h.SetModel("large", convo.Limits{Window: 30_000, Reserve: -1, Tools: 7, High: 4000, Low: 1500, Soft: 2000, MinFree: 50, Assumed: true}))
		require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: h.Tokens().Tokens, CacheRead: 10}))
		keep()
		say("There is a train at nine.", "Take it.")
		require.NoError(t, h.Pin(10))
		require.NoError(t, h.SetMeta("A trip to \"Rome\"", "user 7\n"))
		require.NoError(t, h.SetTools(convo.Tool{Name: "book", Description: "books \"it\"", Schema: `{"type":"object"}`}, convo.Tool{Opaque: convo.Opaque{Format: "anthropic", JSON: `{"type":"web_search_20250305"}`}}))
		require.NoError(t, h.Note("trace 1"))
		require.NoError(t, h.Note("trace \u20ac"))
		keep()

		// Edits: a result cleared, one forgotten, an entry rewritten, two summaries, an
		// undone edit.
		apply(convo.Edit{Clear: []convo.Clear{{ID: 5}}, Rewrite: []convo.Rewrite{{ID: 9, Parts: []convo.Part{convo.Text("Far.")}}}})
		keep()
		book := convo.ToolCall{ID: "c2", Name: "book", Arguments: `{"seat":`}
		mustAppend(t, h, convo.User("Book it."), convo.Assistant("", book), convo.Result(book, "secret"), convo.Assistant("Booked."), convo.User("Thanks."))
		apply(convo.Edit{Clear: []convo.Clear{{ID: 14, Forget: true}}})
		apply(convo.Edit{Drop: []convo.ID{4, 5, 6}, Summary: &convo.Summary{Text: "Ann walks to Rome.", Model: "small", Usage: convo.Usage{Input: 70, CacheRead: 5, CacheWrite: 6, Output: 8}}})
		time.Sleep(time.Second)
		apply(convo.Edit{Drop: []convo.ID{7, 8, 9}, Summary: &convo.Summary{Text: "Ann takes the train to Rome."}})
		keep()
		r, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{13, 14}})
		require.NoError(t, err)
		require.NoError(t, h.Undo(r))
		say("You are welcome.")
		keep()

		// Rollbacks, other system messages, calibrations of three models.
		at := h.Snapshot()
		say("One more thing.", "Yes?")
		keep()
		say("Never saved.")
		require.NoError(t, h.Rollback(at))
		say("What does it cost?", "40 euros.")
		require.NoError(t, h.Unpin(10))
		keep()
		require.NoError(t, h.SetSystem(convo.System("You are a guide, and brief.")))
		for _, model := range []string{"small", "third"} {
			require.NoError(t, h.SetModel(model, convo.Limits{}))
			say("Hm.", "Well.")
			require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: h.Tokens().Tokens + 90}))
			keep()
		}
		require.NoError(t, h.SetLimits(convo.Limits{Window: 1000, Reserve: -1}))
		keep()
		size := h.Tokens().Tokens
		_, r, _ = h.Recover(t.Context(), h.Snapshot(), fmt.Errorf("400: This model's maximum context length is %d tokens. However, you requested %d tokens (%[2]d in the messages, 0 in the completion).", size-10, size))
		require.Equal(t, size-10, r.NamedLimit)
		if len(r.Dropped) > 0 {
			require.NoError(t, h.Undo(r))
		}
		keep()
		require.NoError(t, h.SetModel("large", convo.Limits{Window: 30_000, High: 2500}))
		keep()
		require.NoError(t, h.SetEphemeral(convo.User("It rains.")))
		require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: h.Tokens().Tokens + 20}))
		require.NoError(t, h.SetEphemeral())
		keep()

		// A compaction, a summarizer that fails, and one whose work a rollback makes stale.
		require.NoError(t, h.Unpin(3))
		long := slices.Repeat([]string{strings.Repeat("a way ", 30), strings.Repeat("a mile ", 25)}, 6)
		say(long...)
		keep()
		summarize = func(convo.SummaryRequest) (convo.Summary, error) { return convo.Summary{Text: "It was long."}, nil }
		compact := func(want convo.Outcome) {
			_, r, err := h.Prepare(t.Context())
			require.Equal(t, want, r.Outcome, "%v: %v", r, err)
			keep()
		}
		compact(convo.OutcomeApplied)
		say("Go on.", "It is not far.")
		keep()
		start, calls := h.Snapshot(), 0
		say(long...)
		summarize = func(convo.SummaryRequest) (convo.Summary, error) {
			if calls++; calls > 1 {
				return convo.Summary{}, errors.New("down")
			}
			err := h.Rollback(start)
			say(long...)
			return convo.Summary{Text: "late"}, err
		}
		compact(convo.OutcomeFailed)
		require.Equal(t, 3, calls)

		// Somebody who counts by default, so that the record says by what.
		h.Close()
		counted := goldenOptions()
		counted.Tokenizer, counted.Overheads = nil, convo.Overheads{}
		h = open(t, s, wholeKey, counted)
		say("How far?", "Far.")
		keep()
		h.Close()
		h = open(t, s, wholeKey, opts)

		// A provider has refused a signature.
		require.NoError(t, thoughts.Refuse(t.Context(), h))

		// What waits at the end.
		mustAppend(t, h, convo.User("Book a bed."), convo.Assistant("", convo.ToolCall{ID: "c3", Name: "book"}))
		require.NoError(t, h.Queue(convo.User("And now?"), convo.User("Hello?")))
		keep()
		h.Close()

		require.NoError(t, logs.Copy(t.Context(), s, prunedKey, s, wholeKey))
		h = open(t, s, prunedKey, opts)
		require.NoError(t, h.Prune(t.Context(), time.Time{}))
		mustAppend(t, h, convo.Result(convo.ToolCall{ID: "c3", Name: "book"}, "done"))
		keep()
		h.Close()
	})
}

// printedUsage prints the figures that logs had from the first, and the others where
// they are set.
func printedUsage(u convo.Usage) string {
	s := fmt.Sprintf("{Input:%d CacheRead:%d CacheWrite:%d Output:%d}", u.Input, u.CacheRead, u.CacheWrite, u.Output)
	u.Input, u.CacheRead, u.CacheWrite, u.Output = 0, 0, 0, 0
	if u != (convo.Usage{}) {
		s += fmt.Sprintf(" and %+v", u)
	}
	return s
}

// readText returns as a text what is read from a log.
func readText(t testing.TB, s convo.Store, key string) string {
	t.Helper()
	h := open(t, s, key, goldenOptions())
	defer h.Close()
	require.Zero(t, h.Status().Unsaved)
	var b strings.Builder
	written := func(v any) string {
		data, err := json.Marshal(v)
		require.NoError(t, err)
		return string(data)
	}
	data, err := h.Snapshot().MarshalJSON()
	require.NoError(t, err)
	var lines bytes.Buffer
	require.NoError(t, json.Indent(&lines, data, "", " "))
	title, meta := h.Snapshot().Meta()
	status := h.Status()
	fmt.Fprintf(&b, "%s\n\ntitle %q, data %q\n%v\nestimate %+v\nlast append %v, last edit %v\n\n", lines.String(), title, meta, status,
		h.Tokens(), status.LastAppend.UTC(), status.LastEdit.UTC())
	var first uint64
	for r, err := range s.Records(t.Context(), key, 1) {
		require.NoError(t, err)
		if first == 0 {
			first = r.Seq
		}
		p, err := convo.Load(t.Context(), s, key, r.Seq)
		require.NoError(t, err)
		sum, _ := p.Summary()
		title, meta := p.Meta()
		ids := make([]convo.ID, 0, p.Len())
		for _, e := range p.All() {
			ids = append(ids, e.ID)
		}
		fmt.Fprintf(&b, "record %d, full %t, of %v: %v, %d tokens, pinned %v, summary %q, title %q, data %q\n", r.Seq, r.Full, r.Updated, ids, p.Tokens(), p.Pinned(), sum.Text, title, meta)
	}
	b.WriteByte('\n')
	for x, err := range h.Archive(t.Context()) {
		require.NoError(t, err)
		switch {
		case x.Entry != nil:
			fmt.Fprintf(&b, "%d: entry %d of turn %d at %v, %d missing: %s\n", x.Seq, x.Entry.ID, x.Entry.Turn, x.Entry.Time.UTC(), x.Entry.Missing, written(x.Entry.Message))
		case x.Summary != nil:
			sum := *x.Summary
			fmt.Fprintf(&b, "%d: summary %q of %v, update %d at %v, by %q for %s\n", x.Seq, sum.Text, sum.Covers, sum.Updates, sum.Time.UTC(), sum.Model, printedUsage(sum.Usage))
		case x.Undone != nil:
			fmt.Fprintf(&b, "%d: undone %v\n", x.Seq, x.Undone)
		case x.Gone != nil:
			fmt.Fprintf(&b, "%d: gone %v\n", x.Seq, x.Gone)
		default:
			fmt.Fprintf(&b, "%d: note %q\n", x.Seq, x.Note)
		}
	}
	return b.String()
}

// What earlier releases have written opens as it was, and can be continued.
func TestGolden_Opens(t *testing.T) {
	if *writeGolden {
		if _, err := os.Stat(goldenStore(t, newestLogs).Dir); errors.Is(err, os.ErrNotExist) {
			s := &filestore.Store{Dir: t.TempDir(), NoSync: true}
			writeLogs(t, s)
			require.NoError(t, os.CopyFS(goldenStore(t, newestLogs).Dir, os.DirFS(s.Dir)))
		}
	}
	folders, err := os.ReadDir(goldenLogs)
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, folder := range folders {
		s := goldenStore(t, folder.Name())
		logs := 0
		for head, err := range s.List(t.Context(), convo.ListOptions{}) {
			require.NoError(t, err)
			logs++
			t.Run(folder.Name()+"/"+head.Key, func(t *testing.T) {
				text := readText(t, s, head.Key)
				name := filepath.Join(s.Dir, head.Key+goldenTexts)
				if *writeGolden {
					require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
				}
				want, err := os.ReadFile(name)
				require.NoError(t, err)
				require.Equal(t, string(want), text)

				own := &filestore.Store{Dir: t.TempDir(), NoSync: true}
				require.NoError(t, os.CopyFS(own.Dir, os.DirFS(s.Dir)))
				h := open(t, own, head.Key, goldenOptions())
				_, err = h.AnswerOpenCalls("")
				require.NoError(t, err)
				sayNext(t, h, "More.")
				save(t, h)
				checkOpened(t, own, head.Key, h)
				require.NoError(t, h.Prune(t.Context(), time.Time{}))
				checkOpened(t, own, head.Key, h)
			})
		}
		assert.Equal(t, 2, logs, folder.Name())
	}
}

// The newest golden logs hold every field that a record has, and every kind of part.
func TestGolden_HoldsEverything(t *testing.T) {
	s := goldenStore(t, newestLogs)
	kinds := map[string]int{}
	have := map[string]bool{}
	for r, err := range s.Records(t.Context(), wholeKey, 1) {
		require.NoError(t, err)
		var fields map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(r.Data, &fields))
		for name := range fields {
			have[name] = true
		}
		kinds[map[bool]string{true: "full", false: "patch"}[r.Full]]++
		for _, part := range []string{`"author"`, `"origin"`, `"meta":"{\"`, `"type":"text"`, `"type":"reasoning"`, `"signature"`, `"encrypted"`,
			`"type":"tool_call"`, `"minted"`, `"type":"tool_result"`, `"is_error"`, `"cleared"`, `"type":"media"`, `"url"`, `"type":"opaque"`,
			`"missing"`, `"tools":true`, `"updates"`, `"cache_read"`, `"cache_write"`, `"assumed"`, `"chosen":true`, `"made"`} {
			kinds[part] += bytes.Count(r.Data, []byte(part))
		}
	}
	for name, n := range kinds {
		assert.Positive(t, n, name)
	}
	assert.Greater(t, kinds["full"], 1)
	assert.Greater(t, len(pageFields()), 30)
	for _, f := range pageFields() {
		if f.name == "lost" {
			continue // Salvage alone writes it, and damage is no golden log
		}
		assert.True(t, have[f.name], "no record has the field %q", f.name)
	}
	gone := false
	for x, err := range open(t, s, prunedKey, goldenOptions()).Archive(t.Context()) {
		require.NoError(t, err)
		gone = gone || x.Gone != nil
	}
	assert.True(t, gone)
}

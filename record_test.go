package convo_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/callid"
	"github.com/seed-c1b73e60/convo/tiktoken"
)

// threeRecords returns a log of three records.
func threeRecords(t testing.TB) *shelf {
	t.Helper()
	s := new(shelf)
	h := open(t, s, "k", nil)
	mustAppend(t, h, convo.System("guide"), convo.User("one"))
	require.NoError(t, h.Pin(2))
	save(t, h)
	mustAppend(t, h, convo.Assistant("two"), convo.User("three"))
	save(t, h)
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 99}))
	_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{3}, Summary: &convo.Summary{Text: "sum"}})
	require.NoError(t, err)
	save(t, h)
	return s
}

// What is wrong in a log is told with the last record that is good, which can be
// loaded.
func TestOpen_Damage(t *testing.T) {
	user := `{"role":"user","parts":[{"type":"text","text":"u"}]}`
	data := func(i int, old, with string) func(*testing.T, []convo.Record) []convo.Record {
		return func(t *testing.T, log []convo.Record) []convo.Record {
			require.Contains(t, string(log[i].Data), old)
			log[i].Data = []byte(strings.Replace(string(log[i].Data), old, with, 1))
			return log
		}
	}
	add := func(i int, field string) func(*testing.T, []convo.Record) []convo.Record {
		return data(i, "{", "{"+field+",")
	}
	change := func(f func(log []convo.Record)) func(*testing.T, []convo.Record) []convo.Record {
		return func(_ *testing.T, log []convo.Record) []convo.Record { f(log); return log }
	}
	for _, tt := range []struct {
		name   string
		change func(*testing.T, []convo.Record) []convo.Record
		seq    uint64 // of the last good record
		plain  bool   // no SnapshotError
	}{
		{name: "first record not full", seq: 0, plain: true, change: func(_ *testing.T, log []convo.Record) []convo.Record { return log[1:] }},
		{name: "gap", seq: 1, plain: true, change: func(_ *testing.T, log []convo.Record) []convo.Record { return slices.Delete(log, 1, 2) }},
		{name: "wrong Prev", seq: 1, plain: true, change: change(func(log []convo.Record) { log[1].Prev = log[2].ID })},
		{name: "another key", seq: 2, plain: true, change: change(func(log []convo.Record) { log[2].Key = "other" })},
		{name: "no ID", seq: 1, plain: true, change: change(func(log []convo.Record) { log[1].ID = "" })},
		{name: "another Upto", seq: 1, change: change(func(log []convo.Record) { log[1].Upto++ })},
		{name: "no JSON", seq: 1, change: change(func(log []convo.Record) { log[1].Data = []byte("x") })},
		{name: "null", seq: 1, change: change(func(log []convo.Record) { log[1].Data = []byte("null") })},
		{name: "two values", seq: 1, change: change(func(log []convo.Record) { log[1].Data = append(log[1].Data, '1') })},
		{name: "unknown field", seq: 1, change: add(1, `"extra":1`)},
		{name: "key twice", seq: 1, change: add(1, `"last":4`)},
		{name: "last descends", seq: 1, change: data(1, `"last":4`, `"last":1`)},
		{name: "ID above last", seq: 1, change: data(1, `"id":4`, `"id":5`)},
		{name: "ID twice", seq: 1, change: data(1, `"id":4`, `"id":3`)},
		{name: "ID twice in system", seq: 0, change: data(0, `"id":2`, `"id":1`)},
		{name: "pin of nothing", seq: 1, change: add(1, `"pins":[1]`)},
		{name: "unpin unsorted", seq: 1, change: add(1, `"unpin":[3,2]`)},
		{name: "out descends", seq: 1, change: add(1, `"out":[{"first":3,"last":3},{"first":2,"last":2}]`)},
		{name: "out of nothing", seq: 1, change: add(1, `"out":[{"first":0,"last":2}]`)},
		{name: "undone", seq: 1, change: add(1, `"undone":[{"first":3,"last":2}]`)},
		{name: "past above last", seq: 1, change: add(1, `"past":[{"id":9,"turn":1,"message":`+user+`}]`)},
		{name: "time", seq: 1, change: add(1, `"past":[{"id":3,"turn":1,"time":"1600-01-01T00:00:00Z","message":`+user+`}]`)},
		{name: "edited", seq: 2, change: add(1, `"edited":"3000-01-01T00:00:00Z"`)},
		{name: "failures", seq: 2, change: add(2, `"failures":-1`)},
		{name: "heard without a calibration", seq: 2, change: change(func(log []convo.Record) {
			log[2].Data = regexp.MustCompile(`"learned":\[[^]]*\],`).ReplaceAll(log[2].Data, nil)
		})},
		{name: "ever beyond all bounds", seq: 2, change: add(2, `"ever":9000000000000000`)},
		{name: "a failure that is still to come", seq: 2, change: add(2, `"failures":1,"failed_at":900000000`)},
		{name: "calibration", seq: 2, change: data(2, `"ratio":1`, `"ratio":9`)},
		{name: "cal without seen", seq: 2, change: data(2, `"seen":{`, `"cal":{"model":"","ratio":9},"seen":{`)},
		{name: "tokens without a counter", seq: 1, change: data(1, `"counter":`, `"title":`)},
		{name: "negative tokens", seq: 1, change: data(1, `"tokens":`, `"tokens":-`)},
		{name: "tokens beyond all bounds", seq: 1, change: data(1, `"tokens":`, `"tokens":900000000000000`)},
		{name: "limits", seq: 2, change: add(2, `"limits":{"window":-1}`)},
		{name: "usage of the summary", seq: 2, change: data(2, `"summary":{`, `"summary":{"usage":{"input":-1},`)},
		{name: "covers", seq: 2, change: data(2, `"covers":[{"first":3,"last":3}]`, `"covers":[{"first":3,"last":9}]`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := threeRecords(t)
			h := open(t, s, "k", nil)
			s.logs["k"] = tt.change(t, s.logs["k"])
			if tt.name == "edited" { // a later one takes its place, so that it must be the newest
				s.logs["k"] = s.logs["k"][:2]
				tt.seq = 1
			}
			_, err := convo.Open(t.Context(), s, "k", nil)
			damage, ok := errors.AsType[*convo.DamageError](err)
			require.True(t, ok, "%v", err)
			assert.Equal(t, tt.seq, damage.Seq, "%v", err)
			assert.Equal(t, "k", damage.Key)
			assert.Equal(t, int64(-1), damage.Offset)
			_, isSnapshot := errors.AsType[*convo.SnapshotError](err)
			assert.Equal(t, !tt.plain, isSnapshot, "%v", err)
			if damage.Seq > 0 {
				_, err = convo.Load(t.Context(), s, "k", damage.Seq)
				assert.NoError(t, err)
			}
			kept, err := convo.Salvage(t.Context(), s, "whole", s, "k")
			require.NoError(t, err)
			assert.Equal(t, tt.seq, kept.Newest, "%v", kept)
			assert.NotEmpty(t, kept.Damage)
			checkOpened(t, s, "whole", nil, open(t, s, "whole", nil))
			if len(s.logs["k"]) == 3 {
				unchanged(t, h, func() { _, _, _ = h.Reload(t.Context()) })
			}
		})
	}
}

// Whatever stands in a record, Open returns a typed error or a History that can be
// saved and opened again.
func FuzzOpen_Data(f *testing.F) {
	for _, r := range threeRecords(f).log("k") {
		f.Add(r.Data, int64(r.Upto))
	}
	f.Add([]byte(`{"key":"@bcdefgh","log":"x","last":2,"turn":1,"entries":[{"id":2,"turn":1,"message":{"role":"user","parts":[{"type":"text","text":"u"}]}}],"pins":[2]}`), int64(2))
	f.Fuzz(func(t *testing.T, data []byte, upto int64) {
		s := new(shelf)
		first := threeRecords(t).log("k")[0]
		first.Data, first.Upto = data, convo.ID(upto)
		s.logs = map[string][]convo.Record{"k": {first}}
		h, err := convo.Open(t.Context(), s, "k", nil)
		if err != nil {
			var damage *convo.DamageError
			var snapshot *convo.SnapshotError
			if !errors.As(err, &damage) && !errors.As(err, &snapshot) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		for _, err := range h.Archive(t.Context()) {
			if err != nil {
				break
			}
		}
		if err := h.Note("x"); err != nil {
			t.Fatal(err)
		}
		if err := h.Prune(t.Context(), noTime); err != nil {
			t.Fatal(err)
		}
		checkOpened(t, s, "k", nil, h)
	})
}

// Who counts in another way than who saved gets an estimate of about the same size.
func TestOpen_AnotherTokenizer(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", bare())
	for i := range 20 {
		mustAppend(t, h, turnsOf(i, strings.Repeat("some words ", 20)))
	}
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 2000}))
	mustAppend(t, h, convo.User(strings.Repeat("some words ", 20)))
	save(t, h)
	g := open(t, s, "k", nil)
	assert.InDelta(t, h.Tokens().Tokens, g.Tokens().Tokens, 30)
	assert.InDelta(t, 2000, g.Tokens().Measured, 30)
	none := open(t, s, "k", &convo.Options{Tokenizer: convo.TokenizerFunc(func(string) int { return 0 }), Overheads: convo.Overheads{Message: -1}})
	assert.Equal(t, 2000, none.Tokens().Measured, "also if it counts nothing")
}

// What a record says of the tokens of its entries is believed if the counter has the
// same name, and only if that holds for all records that are read.
func TestOpen_CountsOnlyWhatItMust(t *testing.T) {
	said := regexp.MustCompile(`"tokens":(\d+)`)
	exact, err := tiktoken.New("gpt-5")
	require.NoError(t, err)
	tiktoken := &convo.Options{Tokenizer: exact}
	frame := &convo.Options{Overheads: convo.Overheads{Message: 9}}
	media := &convo.Options{Overheads: convo.Overheads{Media: func(convo.Media) int { return 1 }}}
	own := &convo.Options{Tokenizer: convo.TokenizerFunc(func(s string) int { return len(s) })}
	tools := &convo.Options{Overheads: convo.Overheads{Reasoning: convo.ReplayTools}}
	for _, tt := range []struct {
		name          string
		first, second *convo.Options // of who saves
		open          *convo.Options
		named         bool // the records name what counted
		believed      bool
	}{
		{name: "default", named: true, believed: true},
		{name: "exact", first: tiktoken, second: tiktoken, open: tiktoken, named: true, believed: true},
		{name: "another tokenizer", open: tiktoken, named: true},
		{name: "other overheads", open: frame, named: true},
		{name: "a second record by another", second: tiktoken, named: true},
		{name: "a first record by another", first: frame, named: true},
		{name: "repaired", open: &convo.Options{Repair: func(*convo.SnapshotError) {}}, named: true},
		{name: "media of the caller's", first: media, second: media, open: media},
		{name: "tokenizer of the caller's", first: own, second: own, open: own},
		{name: "reasoning that depends on tools", first: tools, second: tools, open: tools},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := new(shelf)
			h := open(t, s, "k", tt.first)
			mustAppend(t, h, convo.User("one"), convo.Assistant("two"))
			save(t, h)
			h = open(t, s, "k", tt.second)
			mustAppend(t, h, convo.User("three"))
			save(t, h)
			want := open(t, s, "k", tt.open).Tokens().Tokens
			for i, r := range s.logs["k"] {
				match := said.FindSubmatch(r.Data)
				require.Equal(t, tt.named, match != nil, "%s", r.Data)
				if tt.named {
					s.logs["k"][i].Data = bytes.Replace(r.Data, match[0], fmt.Appendf(nil, `"tokens":1%03s`, match[1]), 1)
				}
			}
			if tt.believed {
				want += 2000 // in each record, for its first entry
			}
			assert.Equal(t, want, open(t, s, "k", tt.open).Tokens().Tokens)
		})
	}
}

// Opening makes 5 allocations for each message, of which 3 hold the entry, its part and
// its text.
func TestOpen_Allocations(t *testing.T) {
	if info, _ := debug.ReadBuildInfo(); info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector drops a part of what a sync.Pool holds")
	}
	s := new(convotest.MemStore)
	h := open(t, s, "k", convoRelaxed())
	const n = 250
	for range n {
		c := convo.ToolCall{ID: callid.New(), Name: "read", Arguments: `{"path": "main.go"}`}
		mustAppend(t, h, convo.User("question"), convo.Assistant("", c), convo.Result(c, "result"), convo.Assistant("answer"))
	}
	save(t, h)
	allocs := testing.AllocsPerRun(5, func() { open(t, s, "k", convoRelaxed()) })
	t.Logf("%.2f allocations a message", allocs/(4*n))
	assert.LessOrEqual(t, allocs/(4*n), 5.0)
}

// Stored tokens are believed as long as counters with the same name count alike: if
// this test fails because one counts in another way now, raise counterVersion.
func TestCounter_Name(t *testing.T) {
	for _, tt := range []struct {
		model string
		want  int
	}{{"", 1703}, {"gpt-4", 1703}, {"gpt-5", 1701}} {
		opts := convoRelaxed()
		if tt.model != "" {
			exact, err := tiktoken.New(tt.model)
			require.NoError(t, err)
			opts.Tokenizer = exact
		}
		h := historyOf(t, opts)
		c := convo.ToolCall{ID: "call_1", Name: "read", Arguments: `{"path": "main.go"}`}
		picture := convo.Media{MIME: "image/png", URL: "https://example.com/a.png"}
		mustAppend(t, h, convo.User("The quick brown fox: 今日は、ÄÖÜ 12345"), convo.Message{Role: convo.RoleUser, Author: "Ann", Parts: []convo.Part{picture}},
			convo.Assistant("Well\n\n    x := 1", c), convo.Result(c, strings.Repeat("-", 99)),
			convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{convo.Reasoning{Text: "hm"}, convo.Text("yes"), convo.Opaque{Format: "f", JSON: `{"a":1}`}}})
		assert.Equal(t, tt.want, h.Tokens().Tokens, tt.model)
	}
}

// loseResult changes the call ID of the first result in a log, so that the call has no result.
func loseResult(s *shelf, key string) {
	for i, r := range s.logs[key] {
		if at := bytes.Index(r.Data, []byte(`"call_id":"`)); at >= 0 {
			s.logs[key][i].Data = slices.Concat(r.Data[:at], []byte(`"call_id":"x`), r.Data[at+len(`"call_id":"`):])
			return
		}
	}
	panic("the log has no result")
}

// What Repair mends is not saved yet.
func TestOpen_Repair(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	mustAppend(t, h, convo.User("one"), convo.Assistant("", callOf("c")), convo.Result(callOf("c"), "r"), convo.Assistant("two"))
	save(t, h)
	loseResult(s, "k")
	_, err := convo.Open(t.Context(), s, "k", nil)
	var fault *convo.SnapshotError
	require.ErrorAs(t, err, &fault)
	g := open(t, s, "k", &convo.Options{Repair: func(*convo.SnapshotError) {}})
	assert.NotZero(t, g.Status().Unsaved)
	save(t, g)
	checkOpened(t, s, "k", nil, g)
}

// A field that this version does not know may change what a record means, wherever it is.
func TestOpen_UnknownFields(t *testing.T) {
	for _, place := range []string{`{"`, `"limits":{"`, `"seen":{"`, `"learned":[{"`, `"entries":[{"`, `"message":{"`, `"parts":[{"`, `"summary":{"`, `"covers":[{"`} {
		t.Run(place, func(t *testing.T) {
			s := new(shelf)
			h := open(t, s, "k", nil)
			mustAppend(t, h, convo.User("1"), convo.Assistant("2"), convo.User("3"))
			require.NoError(t, h.SetModel("m", convo.Limits{Window: 9000}))
			require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 99}))
			_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2}, Summary: &convo.Summary{Text: "sum"}})
			require.NoError(t, err)
			save(t, h)
			log := s.logs["k"]
			data := string(log[0].Data)
			require.Contains(t, data, place)
			log[0].Data = []byte(strings.Replace(data, place, place[:len(place)-1]+`"later":{"a":[1,"x"]},"`, 1))
			_, err = convo.Open(t.Context(), s, "k", nil)
			damage, ok := errors.AsType[*convo.DamageError](err)
			require.True(t, ok, "%v", err)
			assert.ErrorContains(t, damage, `unknown field "later"`)
		})
	}
}

// The last ID of a log never falls, even where all entries with higher ones have left.
func TestOpen_LastDescends(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	mustAppend(t, h, convo.User("1"), convo.Assistant("2"))
	save(t, h)
	mustAppend(t, h, convo.User("3"), convo.Assistant("4"))
	save(t, h)
	log := s.logs["k"]
	log[1].Data, log[1].Upto = []byte(`{"last":1,"out":[{"first":2,"last":2}]}`), 1
	_, err := convo.Open(t.Context(), s, "k", nil)
	damage, ok := errors.AsType[*convo.DamageError](err)
	require.True(t, ok, "%v", err)
	assert.EqualValues(t, 1, damage.Seq)
	assert.ErrorContains(t, damage, "last is 1")
}

// The tables of docs/format.md name every field of the data of a record, and mark those that a
// snapshot and Decisions also have.
func TestPages_FormatNamesEveryField(t *testing.T) {
	page, err := os.ReadFile("docs/format.md")
	require.NoError(t, err)
	fields := convo.SavedFields()
	assert.LessOrEqual(t, len(fields), 64, "stateJSON.has has a bit for each")
	for name, marks := range fields {
		if name != "version" && name != "rows" {
			assert.Regexp(t, "\n\\| [^|]*`"+name+"`[^|]* \\| [^|]+ \\| "+marks+" \\| ", string(page))
		}
	}
}

// A record holds only the pins that were set or taken away.
func TestSave_PinsThatChanged(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	mustAppend(t, h, convo.User("1"), convo.Assistant("2"), convo.User("3"), convo.Assistant("4"))
	require.NoError(t, h.Pin(1, 2, 3))
	save(t, h)
	require.NoError(t, h.Pin(4))
	require.NoError(t, h.Unpin(2))
	save(t, h)
	log := s.log("k")
	newest := string(log[len(log)-1].Data)
	require.False(t, log[len(log)-1].Full)
	assert.Contains(t, newest, `"pins":[4]`)
	assert.Contains(t, newest, `"unpin":[2]`)
}

// The JSON that docs/format.md shows has the names of a snapshot's fields, and no others.
func TestPages_FormatShowsASnapshot(t *testing.T) {
	page, err := os.ReadFile("docs/format.md")
	require.NoError(t, err)
	blocks := strings.Split(string(page), "```json\n")
	require.Len(t, blocks, 3)
	snapshot, _, _ := strings.Cut(blocks[1], "```")
	message, _, _ := strings.Cut(blocks[2], "```")
	require.Contains(t, snapshot, `"message": {}`)
	// The values are such as would be left out, and the reader refuses some of them.
	values := strings.NewReplacer(`"message": {}`, `"message": `+message, `"time": ""`, `"time": "2026-01-02T03:04:05Z"`, `"name": ""`, `"name": "x"`,
		`"schema": ""`, `"schema": "{}"`, `"json": ""`, `"json": "{}"`, `: ""`, `: "x"`)
	var s convo.Snapshot
	require.NoError(t, json.Unmarshal([]byte(values.Replace(snapshot)), &s))
}

package convo_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// checkSaved checks that the JSON of h is read by Restore without Repair, and
// that what comes of it writes the same JSON.
func checkSaved(t testing.TB, h *convo.History, opts *convo.Options) {
	t.Helper()
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	s := new(convo.Snapshot)
	require.NoError(t, json.Unmarshal(data, s), "%s", data)
	read, err := json.Marshal(s)
	require.NoError(t, err)
	require.Equal(t, string(data), string(read), "as it was read")
	var o convo.Options
	if opts != nil {
		o = *opts
	}
	o.Repair = nil
	again, err := convo.Restore(s, &o)
	require.NoError(t, err, "%s", data)
	if again.Status().Queued < h.Status().Queued {
		return // Restore has delivered the queue
	}
	restored, err := json.Marshal(again.Snapshot())
	require.NoError(t, err)
	require.Equal(t, string(data), string(restored), "as it was restored")
}

// There is a case for each check of the format, and a snapshot that cannot be
// decoded stays empty.
func TestSnapshotJSON_Refuses(t *testing.T) {
	user := `{"role":"user","parts":[{"type":"text","text":"u"}]}`
	call := `{"role":"assistant","parts":[{"type":"tool_call","id":"c","name":"f"}]}`
	result := `{"role":"tool","parts":[{"type":"tool_result","call_id":"c","name":"f"}]}`
	with := func(rest string) string {
		return `{"version":1,"key":"@bcdefgh","last":9,"turn":3,` + rest + `}`
	}
	one := with(`"entries":[{"id":2,"turn":1,"message":` + user + `}]`)
	require.NoError(t, json.Unmarshal([]byte(one), new(convo.Snapshot)))
	for name, data := range map[string]string{
		"key":                        `{"version":1,"key":"<\"quote","last":9}`,
		"short key":                  `{"version":1,"key":"abc","last":9}`,
		"last":                       `{"version":1,"key":"@bcdefgh","last":-1}`,
		"last too large":             `{"version":1,"key":"@bcdefgh","last":9007199254740993}`,
		"turn after last":            `{"version":1,"key":"@bcdefgh","last":2,"turn":3}`,
		"turn too large":             `{"version":1,"key":"@bcdefgh","last":9007199254740992,"turn":1073741825}`,
		"updates too large":          with(`"summary":{"text":"s","updates":2147483648}`),
		"touched after turn":         with(`"touched":4`),
		"appended":                   with(`"appended":-1`),
		"unknown field":              with(`"extra":1`),
		"ID beyond last":             with(`"entries":[{"id":10,"turn":1,"message":` + user + `}]`),
		"ID 0":                       with(`"entries":[{"id":0,"turn":1,"message":` + user + `}]`),
		"no message":                 with(`"entries":[{"id":1,"turn":1}]`),
		"IDs twice":                  with(`"entries":[{"id":2,"turn":1,"message":` + user + `},{"id":2,"turn":1,"message":` + user + `}]`),
		"other among system":         with(`"system":[{"id":2,"message":` + user + `}]`),
		"one ID in both":             with(`"system":[{"id":2,"message":{"role":"system"}}],"entries":[{"id":2,"turn":1,"message":` + user + `}]`),
		"turn beyond":                with(`"entries":[{"id":2,"turn":4,"message":` + user + `}]`),
		"user without a turn":        with(`"entries":[{"id":2,"message":` + user + `}]`),
		"second user without a turn": with(`"entries":[{"id":2,"turn":1,"message":` + user + `},{"id":3,"message":` + user + `}]`),
		"turns descend":              with(`"entries":[{"id":2,"turn":2,"message":` + user + `},{"id":3,"turn":1,"message":` + user + `}]`),
		"pin of nothing":             with(`"pins":[1],"entries":[{"id":2,"turn":1,"message":` + user + `}]`),
		"pins unsorted":              with(`"pins":[2,1]`),
		"empty summary":              with(`"summary":{"text":""}`),
		"summary of 2300":            with(`"summary":{"text":"s","time":"2300-01-01T00:00:00Z"}`),
		"summary of 1600":            with(`"summary":{"text":"s","time":"1600-01-01T00:00:00Z"}`),
		"figure of a record":         with(`"ever":1`),
		"limits":                     with(`"limits":{"window":1000}`),
		"field of a record":          with(`"log":"l"`),
		"archive of a record":        with(`"notes":["n"]`),
		"title too long":             `{"version":1,"key":"@bcdefgh","last":9,"title":"` + strings.Repeat("t", 257) + `"}`,
		"meta too long":              `{"version":1,"key":"@bcdefgh","last":9,"meta":"` + strings.Repeat("m", 65537) + `"}`,
		"summary in 10000":           with(`"summary":{"text":"s","time":"9999-12-31T23:59:59-12:00"}`),
		"summary before 0":           with(`"summary":{"text":"s","time":"0000-01-01T00:00:00+12:00"}`),
		"time too late":              with(`"entries":[{"id":2,"turn":1,"time":"2262-04-11T23:47:16.854775808Z","message":` + user + `}]`),
		"time too early":             with(`"entries":[{"id":2,"turn":1,"time":"1677-09-21T00:12:43.145224192Z","message":` + user + `}]`),
		"time of 2300":               with(`"entries":[{"id":2,"turn":1,"time":"2300-01-01T00:00:00Z","message":` + user + `}]`),
		"time of 1600":               with(`"entries":[{"id":2,"turn":1,"time":"1600-01-01T00:00:00Z","message":` + user + `}]`),
		"result in a turn":           with(`"entries":[{"id":2,"turn":1,"message":` + call + `},{"id":3,"turn":2,"message":` + result + `}]`),
		"covers the future":          with(`"summary":{"text":"s","covers":[{"first":1,"last":10}]}`),
		"covers backwards":           with(`"summary":{"text":"s","covers":[{"first":3,"last":2}]}`),
		"calibration":                with(`"learned":[{"model":"m","overhead":-1,"ratio":1}]`),
		"ratio":                      with(`"learned":[{"model":"m","overhead":0,"ratio":7}]`),
		"deep":                       strings.Repeat("[", 100_000),
		"deep inside":                with(`"entries":` + strings.Repeat(`[`, 100_000)),
		"a long list of {}":          with(`"entries":[` + strings.Repeat(`{},`, 1_000_000) + `{}]`),
		"covers from 0":              with(`"summary":{"text":"s","covers":[{"first":0,"last":2}]}`),
		"covers overlap":             with(`"summary":{"text":"s","covers":[{"first":1,"last":3},{"first":3,"last":4}]}`),
		"covers descend":             with(`"summary":{"text":"s","covers":[{"first":4,"last":5},{"first":1,"last":2}]}`),
		"negative updates":           with(`"summary":{"text":"s","updates":-1}`),
		"negative turn":              `{"version":1,"key":"@bcdefgh","last":9,"turn":-1}`,
		"negative touched":           with(`"touched":-1`),
		"pins twice":                 with(`"pins":[2,2],"entries":[{"id":2,"turn":1,"message":` + user + `}]`),
		"no JSON":                    `{`,
	} {
		var s convo.Snapshot
		err := json.Unmarshal([]byte(data), &s)
		if assert.Error(t, err, name) && json.Valid([]byte(data)) {
			_, ok := errors.AsType[*convo.SnapshotError](err)
			assert.True(t, ok, "%s: %T %v", name, err, err)
		}
		assert.Zero(t, s.Len(), name)
	}
	err := json.Unmarshal([]byte(`{"version":2,"entries":"of another shape"}`), new(convo.Snapshot))
	assert.ErrorIs(t, err, convo.ErrVersion, "the version is read first")
}

// snapshotOf decodes a snapshot.
func snapshotOf(t testing.TB, data string) *convo.Snapshot {
	t.Helper()
	s := new(convo.Snapshot)
	require.NoError(t, json.Unmarshal([]byte(data), s), "%s", data)
	return s
}

// The zero Snapshot and the zero History can be saved and loaded too.
func TestSnapshotJSON_Zero(t *testing.T) {
	data, err := json.Marshal(new(convo.Snapshot))
	require.NoError(t, err)
	assert.Equal(t, `{"version":1}`, string(data))
	s := snapshotOf(t, string(data))
	assert.Equal(t, new(convo.Snapshot), s)
	zero, err := json.Marshal(new(convo.History).Snapshot())
	require.NoError(t, err)
	assert.Equal(t, string(data), string(zero))

	h, err := convo.Restore(s, nil)
	require.NoError(t, err)
	checkSaved(t, h, nil)
	for _, member := range []string{
		`"last":1`, `"turn":1`, `"touched":1`, `"appended":1`, `"model":"m"`, `"released":1`, `"title":"t"`, `"meta":"m"`, `"learned":[]`,
		`"tools":{}`, `"summary":{}`, `"pins":[1]`, `"system":[]`, `"queue":[]`,
		`"entries":[{"id":1,"turn":1,"message":{"role":"user","parts":[]}}]`,
	} {
		assert.Error(t, json.Unmarshal([]byte(`{"version":1,`+member+`}`), new(convo.Snapshot)), "%s: what holds something has a key", member)
	}
}

// A key that is repeated, or in other case, is refused in every object.
func TestJSON_DoubledKeys(t *testing.T) {
	message := `{"role":"assistant","author":"a","origin":{"format":"f","model":"m"},"parts":[{"type":"text","text":"t"},` +
		`{"type":"tool_call","id":"c","name":"f","arguments":"{\"a\":1,\"a\":2}"}]}`
	results := `{"role":"tool","parts":[{"type":"tool_result","call_id":"c","parts":[{"type":"text","text":"\\"}]}]}`
	snapshot := `{"version":1,"key":"@bcdefgh","last":9,"turn":0,` +
		`"model":"m","learned":[{"model":"m","ratio":1,"weight":0,"spread":0,"seen":0,"tokens":0,"raw":0,"small_tokens":0,"small_raw":0}],` +
		`"summary":{"text":"s","covers":[{"first":1,"last":1}]},"entries":[{"id":2,"message":` + message + `},{"id":3,"message":` + results + `}]}`
	key := regexp.MustCompile(`"[a-z_]+":`)
	for _, data := range []string{message, results, snapshot} {
		read := func(data string) error { return json.Unmarshal([]byte(data), new(convo.Message)) }
		if data == snapshot {
			read = func(data string) error { return json.Unmarshal([]byte(data), new(convo.Snapshot)) }
		}
		require.NoError(t, read(data))
		for _, at := range key.FindAllStringIndex(data, -1) {
			key, value := data[at[0]:at[1]], json.RawMessage{}
			require.NoError(t, json.NewDecoder(strings.NewReader(data[at[1]:])).Decode(&value))
			again := data[:at[0]] + key + string(value) + ","
			assert.Error(t, read(again+data[at[0]:]), "%s twice", key)
			escaped := `"\u00` + hex.EncodeToString([]byte(key[1:2])) + key[2:]
			assert.Error(t, read(again+escaped+data[at[1]:]), "%s twice, escaped", key)
			assert.NoError(t, read(data[:at[0]]+escaped+data[at[1]:]), "%s, escaped", key)
			assert.Error(t, read(data[:at[0]]+strings.ToUpper(key)+data[at[1]:]), "%s in capitals", key)
		}
	}
	err := json.Unmarshal([]byte(`{"role":"user","role":"tool"}`), new(convo.Message))
	require.EqualError(t, err, `convo: message 0 ("tool"): duplicate key "role"`)
}

// Times keep their instant, and a missing one stays missing.
func TestSnapshotJSON_Times(t *testing.T) {
	for _, tt := range []struct{ written, want string }{
		{"", ""},
		{"0001-01-01T00:00:00Z", ""},
		{"1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"},
		{"1677-09-21T00:12:43.145224193Z", "1677-09-21T00:12:43.145224193Z"},
		{"2262-04-11T23:47:16.854775807Z", "2262-04-11T23:47:16.854775807Z"},
		{"2025-06-01T12:00:00.5+02:00", "2025-06-01T10:00:00.5Z"},
	} {
		field := func(s string) string {
			if s == "" {
				return ""
			}
			return `"time":"` + s + `",`
		}
		data := func(time string) string {
			return `{"version":1,"key":"@bcdefgh","last":1,"turn":1,"entries":[{"id":1,"turn":1,` + field(time) +
				`"message":{"role":"user","parts":[{"type":"text","text":"u"}]}}]}`
		}
		s := snapshotOf(t, data(tt.written))
		e, _ := s.At(0)
		assert.Equal(t, tt.want == "", e.Time.IsZero(), tt.written)
		h, err := convo.Restore(s, nil)
		require.NoError(t, err)
		got, err := json.Marshal(h.Snapshot())
		require.NoError(t, err)
		assert.Equal(t, data(tt.want), string(got))
		checkSaved(t, h, nil)
	}
	latest := `{"version":1,"key":"@bcdefgh","last":1,"summary":{"text":"s","time":"2262-04-11T23:47:16.854775807Z"}}`
	again, err := json.Marshal(snapshotOf(t, latest))
	require.NoError(t, err)
	assert.Equal(t, latest, string(again))
}

// Version 1 is read for ever, and written as it was.
func TestSnapshotJSON_Version1(t *testing.T) {
	data, err := os.ReadFile("testdata/snapshot_v1.json")
	require.NoError(t, err)
	h, err := convo.Restore(snapshotOf(t, string(data)), nil)
	require.NoError(t, err)
	s := h.Snapshot()
	assert.Equal(t, []convo.ID{1, 5, 6, 7, 8, 9, 10, 11, 12}, idsOf(s))
	assert.Equal(t, []convo.ID{5}, h.Snapshot().Pinned())
	sum, _ := s.Summary()
	assert.Equal(t, "what was", sum.Text)
	assert.Equal(t, []convo.Range{{First: 2, Last: 4}}, sum.Covers)
	assert.False(t, sum.Time.IsZero())
	assert.Equal(t, convo.Usage{Input: 300, CacheRead: 200, Output: 20}, sum.Usage)
	assert.Equal(t, "small", sum.Model)
	assert.Equal(t, 1, h.Status().Queued)
	assertMeta(t, s, "A talk", "{}")
	checkSaved(t, h, nil)
	again, err := json.Marshal(s)
	require.NoError(t, err)
	assert.JSONEq(t, string(data), string(again))
}

// The order of the fields is free. Where the version does not come first, it is still
// what decides.
func TestSnapshotJSON_AnyOrder(t *testing.T) {
	s := snapshotOf(t, `{"title":"t{","entries":[{"message":{"parts":[{"text":"u","type":"text"}],"role":"user"},"turn":1,"id":2}],"turn":1,"last":2,"key":"@bcdefgh","version":1}`)
	assert.Equal(t, []string{"u"}, textsOf(s))
	assertMeta(t, s, "t{", "")
	err := new(convo.Snapshot).UnmarshalJSON([]byte(`{"entries":[{"of":"another shape"}],"version":2}`))
	assert.ErrorIs(t, err, convo.ErrVersion)
	assert.EqualError(t, err, "convo: snapshot: unknown format version 2, want 1; use the release of convo that wrote it, or a later one")
}

// An error names the entry that cannot be read.
func TestSnapshotJSON_NamesTheEntry(t *testing.T) {
	with := func(entry string) string {
		return `{"version":1,"key":"@bcdefgh","last":9,"turn":1,"system":[{"id":1,"message":{"role":"system"}}],` +
			`"entries":[{"id":2,"turn":1,"message":{"role":"user","parts":[{"type":"text","text":"u"}]}},` + entry + `]}`
	}
	for entry, want := range map[string]string{
		`{"id":3,"extra":1}`:                                     `unknown field "extra"`,
		`{"id":3,"turn":1,"message":{"role":"robot"}}`:           `unknown role "robot"`,
		`{"id":3,"time":"3000-01-01T00:00:00Z"}`:                 "time is 3000-01-01 00:00:00 +0000 UTC, want a year from 1678 to 2261",
		`{"id":3,"message":{"role":"user","parts":[{}]}}`:        "part without a type",
		`{"id":3,"message":{"role":"user","parts":["x"]}}`:       `byte 230 is "\"", want an object, in or after the field "parts"`,
		`{"id":3,"turn":2,"message":{"role":"assistant"}}`:       "turn is 2, want at least that of the entry before and at most 1, and 0 for a system entry",
		`{"id":3,"turn":1,"message":{"role":"assistant"}},{"id"`: "",
	} {
		err := new(convo.Snapshot).UnmarshalJSON([]byte(with(entry)))
		fault, ok := errors.AsType[*convo.SnapshotError](err)
		require.True(t, ok, "%s: %v", entry, err)
		if want == "" {
			assert.Equal(t, 3, fault.Index)
			continue
		}
		assert.Equal(t, 2, fault.Index, entry)
		assert.EqualValues(t, 3, fault.ID, entry)
		assert.EqualError(t, err, "convo: snapshot entry 2 (ID 3): "+want+"; pass the data as it was written")
	}
	for _, data := range []string{with(strings.Repeat("[", 100_000)), strings.Repeat("[", 100_000), `{"x":` + strings.Repeat("[", 100_000), `{"x":` + strings.Repeat(`{"x":`, 100_000)} {
		err := new(convo.Snapshot).UnmarshalJSON([]byte(data))
		assert.ErrorAs(t, err, new(*convo.SnapshotError))
	}
}

// What is known about the writing of a summary is saved with it.
func TestSnapshotJSON_SummaryUsage(t *testing.T) {
	h := tour(t, nil)
	want := convo.Summary{Text: "s", Usage: fullUsage, Model: "small\xff"}
	_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2}, Summary: &want})
	require.NoError(t, err)
	checkSaved(t, h, nil)
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	got, _ := snapshotOf(t, string(data)).Summary()
	assert.Equal(t, want.Usage, got.Usage)
	assert.Equal(t, "small\uFFFD", got.Model)
	placed, _ := h.Snapshot().Summary()
	assert.True(t, placed.Time.Equal(got.Time))
}

// The largest numbers that can be read can be saved and read again after one
// more change.
func TestSnapshotJSON_LargestNumbers(t *testing.T) {
	entries := `"entries":[{"id":1,"turn":1,"message":{"role":"user","parts":[{"type":"text","text":"u"}]}},` +
		`{"id":2,"turn":1,"message":{"role":"assistant","parts":[{"type":"tool_call","id":"c","name":"f"},{"type":"tool_call","id":"d","name":"f"}]}}]}`
	for _, tt := range []struct {
		name, numbers string
	}{
		{"no ID left", `"last":9007199254740992,"turn":1`},
		{"one ID left", `"last":9007199254740991,"turn":1`},
		{"no turn left", `"last":9007199254740000,"turn":1073741824`},
		{"one turn left", `"last":9007199254740000,"turn":1073741823`},
		{"a turn that left", `"last":9,"turn":5,"touched":5`},
		{"appended", `"last":2,"turn":1,"appended":4503599627370496`},
		{"updates", `"last":2,"turn":1,"summary":{"text":"s","updates":2147483647}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := snapshotOf(t, `{"version":1,"key":"@bcdefgh",`+tt.numbers+`,`+entries)
			for name, step := range map[string]func(*convo.History) error{
				"results": func(h *convo.History) error {
					_, err := h.Append(convo.Result(convo.ToolCall{ID: "c"}, "r"))
					return err
				},
				"answered":  func(h *convo.History) error { _, err := h.AnswerOpenCalls(""); return err },
				"interrupt": func(h *convo.History) error { _, err := h.Append(convo.User("v")); return err },
				"system":    func(h *convo.History) error { return h.SetSystem(convo.System("s")) },
				"rewind":    func(h *convo.History) error { _, err := h.Rewind(1); return err },
				"batch": func(h *convo.History) error {
					_, err := h.Append(convo.Result(convo.ToolCall{ID: "c"}, "r"), convo.Result(convo.ToolCall{ID: "d"}, "r"), convo.Assistant("a"))
					return err
				},
				"summary": func(h *convo.History) error {
					_, err := h.Apply(h.Snapshot(), convo.Edit{Summary: &convo.Summary{Text: "new"}})
					return err
				},
			} {
				h, err := convo.Restore(s, &convo.Options{Roles: convo.Relaxed()})
				require.NoError(t, err)
				before := stateOf(t, h)
				if err := step(h); err != nil {
					value, ok := errors.AsType[*convo.ValueError](err)
					require.True(t, ok, "%s: %v", name, err)
					assert.Contains(t, []string{"ID", "turn"}, value.Name)
					assert.Equal(t, before, stateOf(t, h), name)
				}
				checkSaved(t, h, &convo.Options{Roles: convo.Relaxed()})
			}
		})
	}
}

func TestSnapshotJSON_DecodesOnlyIntoEmpty(t *testing.T) {
	h, err := convo.New(nil)
	require.NoError(t, err)
	s := h.Snapshot()
	data, err := json.Marshal(s)
	require.NoError(t, err)
	_, ok := errors.AsType[*convo.SnapshotError](json.Unmarshal(data, s))
	assert.True(t, ok)
}

func seedSnapshot(t testing.TB) []byte {
	h, err := convo.New(&convo.Options{Roles: convo.Relaxed()})
	require.NoError(t, err)
	call := convo.ToolCall{ID: "c1", Name: "run", Arguments: `{"x": 1.0}`}
	_, err = h.Append(convo.System("s"), convo.User("u"), convo.Assistant("a", call), convo.Result(call, "r"),
		convo.Assistant("b"), convo.User("v"), convo.Assistant("", call))
	require.NoError(t, err)
	require.NoError(t, h.Pin(2))
	_, err = h.SplicePrefix(h.Snapshot(), 4, "summary")
	require.NoError(t, err)
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 500}))
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	return data
}

// A snapshot that can be decoded is safe to read and encodes to the same JSON.
// Restore accepts it or refuses it with a typed error. With Repair it loads, and
// then again without.
func FuzzSnapshotJSON(f *testing.F) {
	f.Add(seedSnapshot(f))
	f.Add([]byte(`{"version":1,"key":"@bcdefgh","last":3,"turn":1,"entries":[{"id":1,"turn":1,"message":{"role":"user"}},{"id":3,"turn":1,"message":{"role":"tool","parts":[{"type":"tool_result"}]}}]}`))
	f.Add([]byte(`{"version":1,"key":"@bcdefgh","last":9007199254730000,"turn":2,"touched":2}`))
	f.Add([]byte(`{"version":1,"key":"@bcdefgh","last":9,"turn":5,"touched":4,"pins":[2],"entries":[{"id":2,"turn":1,"message":{"role":"assistant","parts":[{"type":"tool_call","id":"c","name":"n"}]}}]}`))
	f.Add([]byte(`{"version":1,"last":0,"turn":0}`))
	f.Add([]byte(`{"version":2,"entries":"other"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := new(convo.Snapshot)
		if json.Unmarshal(data, s) != nil {
			require.Zero(t, s.Len())
			return
		}
		before := printOf(s)
		once, err := json.Marshal(s)
		require.NoError(t, err)
		again := new(convo.Snapshot)
		require.NoError(t, json.Unmarshal(once, again), "%s", once)
		require.Equal(t, before, printOf(again))

		var numbers struct {
			Last, Turn int64
		}
		require.NoError(t, json.Unmarshal([]byte(strings.Replace(string(once), "last", "last", 1)), &numbers))
		if numbers.Last > 1<<53-10_000 || numbers.Turn > 1<<30-10_000 {
			return // what follows would need more than there are
		}
		for _, roles := range []convo.RolePolicy{convo.RolePolicy{}, convo.Relaxed()} {
			opts := &convo.Options{Roles: roles}
			if h, err := convo.Restore(s, opts); err == nil {
				checkRestored(t, h)
			}
			opts.Repair = func(*convo.SnapshotError) {}
			h, err := convo.Restore(s, opts)
			require.NoError(t, err, "everything is mended")
			checkSaved(t, h, opts)
			checkRestored(t, h)
			checkSaved(t, h, opts)
		}
		require.Equal(t, before, printOf(s), "nothing has changed the snapshot")
	})
}

// Numbers at the bounds of their ranges can be read.
func TestSnapshotJSON_AtTheBounds(t *testing.T) {
	for _, calibration := range []string{
		`{"model":"m","ratio":0.25,"weight":0,"spread":0,"seen":0,"tokens":0,"raw":0,"small_tokens":0,"small_raw":0}`,
		`{"model":"m","ratio":4,"weight":4503599627370496,"spread":1,"seen":1000,"tokens":4503599627370496,"raw":4503599627370496,"doubt":4503599627370496,"small_tokens":4503599627370496,"small_raw":4503599627370496}`,
	} {
		data := `{"version":1,"key":"@zazazaz","last":9,"turn":3,"touched":3,"learned":[` + calibration + `],
			"summary":{"text":"s","covers":[{"first":1,"last":1},{"first":2,"last":9}]}}`
		assert.NoError(t, json.Unmarshal([]byte(data), new(convo.Snapshot)))
	}
	for _, calibration := range []string{
		`null`, `{"ratio":0.2499}`, `{"ratio":4.001}`, `{"ratio":1,"weight":-1}`, `{"ratio":1,"spread":1.01}`, `{"ratio":1,"spread":-0.01}`, `{"ratio":1,"seen":1001}`, `{"ratio":1,"seen":-1}`,
		`{"ratio":1,"tokens":-1}`, `{"ratio":1,"raw":-1}`, `{"ratio":1,"doubt":-1}`, `{"ratio":1,"small_tokens":-1}`, `{"ratio":1,"small_raw":-1}`, `{"ratio":1,"tokens":4503599627370497}`,
	} {
		data := `{"version":1,"key":"@zazazaz","learned":[` + calibration + `]}`
		assert.Error(t, json.Unmarshal([]byte(data), new(convo.Snapshot)), calibration)
	}
}

// A null changes nothing, as encoding/json wants it, and what follows it is an error.
func TestSnapshotJSON_Null(t *testing.T) {
	s := tour(t, nil).Snapshot()
	before := printOf(s)
	require.NoError(t, s.UnmarshalJSON([]byte(" null ")))
	assert.Equal(t, before, printOf(s))
	var fault *convo.SnapshotError
	require.ErrorAs(t, s.UnmarshalJSON([]byte("null 1")), &fault)
	require.ErrorAs(t, new(convo.Snapshot).UnmarshalJSON([]byte("null 1")), &fault)
	assert.Equal(t, before, printOf(s))
}

package convo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/callid"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// These structs have the shape of the JSON of messages and snapshots.
// encoding/json reads and writes them, slowly and with rules of its own.
type (
	plainMessage struct {
		Role   string       `json:"role"`
		Author string       `json:"author,omitempty"`
		Origin Origin       `json:"origin,omitzero"`
		Meta   string       `json:"meta,omitempty"`
		Parts  []*plainPart `json:"parts,omitempty"`
	}
	plainPart struct {
		plainFields
		Parts *[]*plainResultPart `json:"parts,omitempty"`
	}
	plainResultPart struct{ plainFields }
	plainFields     struct {
		Type      string  `json:"type"`
		ID        string  `json:"id,omitempty"`
		CallID    string  `json:"call_id,omitempty"`
		Name      string  `json:"name,omitempty"`
		Text      *string `json:"text,omitempty"`
		Signature string  `json:"signature,omitempty"`
		Encrypted string  `json:"encrypted,omitempty"`
		Arguments string  `json:"arguments,omitempty"`
		Minted    bool    `json:"minted,omitempty"`
		IsError   bool    `json:"is_error,omitempty"`
		Cleared   bool    `json:"cleared,omitempty"`
		MIME      string  `json:"mime,omitempty"`
		Data      string  `json:"data,omitempty"`
		URL       string  `json:"url,omitempty"`
		Format    string  `json:"format,omitempty"`
		JSON      string  `json:"json,omitempty"`
	}
	plainEntry struct {
		ID      ID           `json:"id"`
		Turn    int          `json:"turn,omitempty"`
		Time    time.Time    `json:"time,omitzero"`
		Missing int64        `json:"missing,omitempty"`
		Tools   bool         `json:"tools,omitempty"`
		Message plainMessage `json:"message"`
	}
	plainSnapshot struct {
		Version  int                  `json:"version"`
		Key      string               `json:"key,omitempty"`
		Last     ID                   `json:"last,omitempty"`
		Turn     int                  `json:"turn,omitempty"`
		Touched  int                  `json:"touched,omitempty"`
		Appended int64                `json:"appended,omitempty"`
		Title    string               `json:"title,omitempty"`
		Meta     string               `json:"meta,omitempty"`
		Model    string               `json:"model,omitempty"`
		Learned  *[]*plainCalibration `json:"learned,omitempty"`
		Summary  *struct {
			Text    string    `json:"text"`
			Covers  []Range   `json:"covers,omitempty"`
			Updates int       `json:"updates,omitempty"`
			Time    time.Time `json:"time,omitzero"`
			Usage   struct {
				Input          int `json:"input,omitempty"`
				CacheRead      int `json:"cache_read,omitempty"`
				CacheWrite     int `json:"cache_write,omitempty"`
				CacheWriteLong int `json:"cache_write_long,omitempty"`
				InputAudio     int `json:"input_audio,omitempty"`
				Extra          int `json:"extra,omitempty"`
				Output         int `json:"output,omitempty"`
				Reasoning      int `json:"reasoning,omitempty"`
				OutputAudio    int `json:"output_audio,omitempty"`
			} `json:"usage,omitzero"`
			Model string `json:"model,omitempty"`
		} `json:"summary,omitempty"`
		Pins    []ID           `json:"pins,omitempty"`
		System  []plainEntry   `json:"system,omitempty"`
		Entries []plainEntry   `json:"entries,omitempty"`
		Queued  []plainMessage `json:"queue,omitempty"`
	}
	plainCalibration struct {
		Model       string  `json:"model"`
		Ratio       float64 `json:"ratio"`
		Weight      float64 `json:"weight"`
		Spread      float64 `json:"spread"`
		Seen        float64 `json:"seen"`
		Tokens      int64   `json:"tokens"`
		Raw         int64   `json:"raw"`
		Doubt       int64   `json:"doubt,omitempty"`
		SmallTokens int64   `json:"small_tokens"`
		SmallRaw    int64   `json:"small_raw"`
	}
)

// plainKeys are the keys of a part besides the type, by its type.
var plainKeys = map[string][]string{
	"text":        {"text"},
	"reasoning":   {"id", "text", "signature", "encrypted"},
	"tool_call":   {"id", "name", "arguments", "minted"},
	"tool_result": {"call_id", "name", "is_error", "cleared", "parts"},
	"media":       {"mime", "data", "url"},
	"opaque":      {"format", "json"},
}

// checkPlainParts returns an error if a part within v has a key of another type of part.
func checkPlainParts(v any) (err error) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			err = errors.Join(err, checkPlainParts(e))
		}
	case map[string]any:
		for key, e := range v {
			keys, isPart := plainKeys[fmt.Sprint(v["type"])]
			if isPart && key != "type" && !slices.Contains(keys, key) {
				err = fmt.Errorf("key %q in a part of type %v", key, v["type"])
			}
			err = errors.Join(err, checkPlainParts(e))
		}
	}
	return err
}

// readPlain reads data into v. Like the reader of the package it refuses unknown
// fields, keys in other case, keys that come twice, and what follows the value.
func readPlain(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more follows")
	}
	var all any
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	if err := checkPlainParts(all); err != nil {
		return err
	}
	return checkPlainKeys(json.NewDecoder(bytes.NewReader(data)))
}

func checkPlainKeys(d *json.Decoder) error {
	open, err := d.Token()
	if err != nil || open != json.Delim('{') && open != json.Delim('[') {
		return err
	}
	seen := map[string]bool{}
	for d.More() {
		if open == json.Delim('{') {
			token, err := d.Token()
			if err != nil {
				return err
			}
			key := token.(string)
			for _, c := range []byte(key) {
				if c != '_' && (c < 'a' || c > 'z') {
					return fmt.Errorf("key %q", key)
				}
			}
			if seen[key] {
				return fmt.Errorf("key %q twice", key)
			}
			seen[key] = true
		}
		if err := checkPlainKeys(d); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// mutate returns data with a few random changes.
func mutate(rng *rand.Rand, data []byte) []byte {
	pieces := []string{
		"null", "true", "false", "{}", "[]", `""`, `"`, "\\", `\u00e9`, `\ud83d\ude00`, `\ud83d`, `\udc00\ud800`, `\u`, `\u12G4`, `\/`, `\x`, `\n`, "\n", "\x01", "\x7f",
		"\xff", "\xe4\xb8", "今", "<&>", ",", ":", "{", "}", "[", "]", "0", "-0", "01", "1.0", "1e2", "-", "-1", "9223372036854775807", "9223372036854775808", "1e400", "0.25", ".5", "1.", "2E+3",
		" ", "\t\r\n", "\v", "\x00", `"role":"user",`, `"id":3,`, `"ID":3,`, `"text":"x",`, `"parts":[],`, `"parts":null,`, `"extra":1,`, `"time":"1600-01-01T00:00:00Z",`,
		`"time":"2025-06-01T10:00:00+02:00",`, `"time":"2025-06-01t10:00:00z",`, `"time":null,`, `"name":null,`, `"\u0069d":3,`,
	}
	data = bytes.Clone(data)
	for range 1 + rng.IntN(2)*rng.IntN(3) {
		at := rng.IntN(len(data) + 1)
		if rng.IntN(2) == 0 { // where a value or a member begins
			if i := bytes.IndexAny(data[at:], `:,{[`); i >= 0 {
				at += i + 1
			}
		}
		to := at
		switch rng.IntN(4) {
		case 0:
			to = min(at+rng.IntN(4), len(data))
		case 1: // up to the next member
			if i := bytes.IndexAny(data[at:], `,}]`); i >= 0 {
				to = at + i
			}
		}
		piece := pieces[rng.IntN(len(pieces))]
		switch rng.IntN(5) {
		case 0:
			piece = ""
		case 1: // a piece of itself
			from := rng.IntN(len(data) + 1)
			piece = string(data[from:min(from+rng.IntN(40), len(data))])
		}
		data = append(data[:at:at], append([]byte(piece), data[to:]...)...)
	}
	return data
}

// message returns the message that m stands for, or nil if m stands for none.
func (m *plainMessage) message() *Message {
	out := &Message{Role: Role(m.Role), Author: m.Author, Origin: m.Origin, Meta: m.Meta}
	switch out.Role {
	case RoleSystem, RoleUser, RoleAssistant, RoleTool:
	default:
		return nil
	}
	for _, p := range m.Parts {
		if p == nil || p.Type != "tool_result" && p.Parts != nil {
			return nil
		}
		part := p.part()
		if r, ok := part.(ToolResult); ok && p.Parts != nil {
			for _, q := range *p.Parts {
				if q == nil || q.Type != "text" && q.Type != "media" && q.Type != "opaque" {
					return nil
				}
				r.Parts = append(r.Parts, q.part())
			}
			part = r
		}
		if part == nil {
			return nil
		}
		out.Parts = append(out.Parts, part)
	}
	return out
}

func (p *plainFields) part() Part {
	text := ""
	if p.Text != nil {
		text = *p.Text
	}
	return map[string]Part{
		"text":        Text(text),
		"reasoning":   Reasoning{ID: p.ID, Text: text, Signature: p.Signature, Encrypted: p.Encrypted},
		"tool_call":   ToolCall{ID: p.ID, Name: p.Name, Arguments: p.Arguments, Minted: p.Minted},
		"tool_result": ToolResult{CallID: p.CallID, Name: p.Name, IsError: p.IsError, Cleared: p.Cleared},
		"media":       Media{MIME: p.MIME, Data: p.Data, URL: p.URL},
		"opaque":      Opaque{Format: p.Format, JSON: p.JSON},
	}[p.Type]
}

// A message is read as encoding/json reads it into plain structs, and refused when
// that refuses it or the structs hold no message. And what is written is read so too.
func TestMessageJSON_AsPlainStructs(t *testing.T) {
	seeds := []string{
		`{"role":"user","author":"ann","meta":"m","parts":[{"type":"text","text":""},{"type":"media","mime":"a/b","data":"AAAA","url":"u"}]}`,
		`{"role":"assistant","origin":{"format":"f","model":"m","container":"c"},"parts":[{"type":"reasoning","id":"i","text":"t","signature":"s","encrypted":"e"},{"type":"reasoning"},{"type":"tool_call","id":"c","name":"n","arguments":"{\"a\": [1.0]}","minted":true},{"type":"opaque","format":"f","json":"1"}]}`,
		` { "role" : "tool" , "parts" : [ { "type" : "tool_result" , "name":"n\n","call_id":"c","is_error":true,"cleared":false,"parts":[{"type":"text","text":"x\ud83d\ude00 今"},{"type":"media","mime":"a/b","url":"u"},{"type":"opaque","format":"f","json":"{}"}]}]} `,
	}
	rng := rand.New(rand.NewPCG(1, 1))
	accepted, n := 0, long.Or(8000, 200_000)
	for range n {
		data := mutate(rng, []byte(seeds[rng.IntN(len(seeds))]))
		var plain plainMessage
		var want *Message
		fault := readPlain(data, &plain)
		if string(bytes.TrimSpace(data)) == "null" {
			want = new(Message)
		} else if fault == nil {
			want = plain.message()
		}
		var got Message
		err := got.UnmarshalJSON(data)
		require.Equal(t, want != nil, err == nil, "%q: %v; read into plain structs: %v %v", data, err, fault, want)
		if err != nil {
			require.IsType(t, &MessageError{}, err)
			continue
		}
		accepted++
		require.Equal(t, *want, got, "%q", data)
		if want.Role == RoleNone {
			continue
		}
		written, err := got.MarshalJSON()
		require.NoError(t, err)
		plain = plainMessage{}
		require.NoError(t, readPlain(written, &plain), "%q", written)
		require.Equal(t, want, plain.message(), "%q", written)
	}
	t.Logf("%d of %d accepted", accepted, n)
	assert.Greater(t, accepted, n/20)
	assert.Less(t, accepted, n*19/20)
}

// A snapshot is read if, and only if, encoding/json reads it into plain structs, and
// what these are written as is a snapshot; both are the same one.
func TestSnapshotJSON_AsPlainStructs(t *testing.T) {
	golden, err := os.ReadFile("testdata/snapshot_v1.json")
	require.NoError(t, err)
	var small bytes.Buffer
	require.NoError(t, json.Compact(&small, golden))
	next := bytes.Replace(small.Bytes(), []byte(`{"version":1,`), []byte(`{"version":1,"title":"t\u00e9","meta":"{}",`), 1)
	next = bytes.Replace(next, []byte(`"summary":{`), []byte(`"summary":{"model":"m","usage":{"input":9,"cache_read":1,"cache_write":2,"cache_write_long":1,"input_audio":3,"extra":4,"output":3,"reasoning":1,"output_audio":1},`), 1)
	seeds := [][]byte{golden, small.Bytes(), next, []byte(`{"version":1,"last":0,"turn":0}`), []byte(`{"pins":[],"entries":[],"last":1,"turn":0,"key":"@bcdefgh","version":1}`)}
	rng := rand.New(rand.NewPCG(2, 2))
	accepted, n := 0, long.Or(2000, 40_000)
	for range n {
		data := mutate(rng, seeds[rng.IntN(len(seeds))])
		var got, want Snapshot
		gotErr := got.UnmarshalJSON(data)
		var plain plainSnapshot
		wantErr := readPlain(data, &plain)
		if wantErr == nil {
			canonical, err := json.Marshal(plain)
			require.NoError(t, err)
			wantErr = want.UnmarshalJSON(canonical)
		}
		if errors.Is(gotErr, ErrVersion) {
			continue // the rest was not read
		}
		require.Equal(t, wantErr == nil, gotErr == nil, "%v, and as plain structs %v: %q", gotErr, wantErr, data)
		if gotErr != nil {
			require.IsType(t, &SnapshotError{}, gotErr)
			continue
		}
		accepted++
		once, err := want.MarshalJSON()
		require.NoError(t, err)
		twice, err := got.MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice), "%q", data)
	}
	t.Logf("%d of %d accepted", accepted, n)
	assert.Greater(t, accepted, n/20)
}

// longHistory returns a History of 10,000 messages, a quarter of them results.
func longHistory(b *testing.B) *History {
	b.Helper()
	h, err := New(&Options{Roles: Relaxed()})
	if err != nil {
		b.Fatal(err)
	}
	say := strings.Repeat("The quick brown fox jumps over the \"lazy\" dog.\n", 9)[:400]
	for range 2500 {
		call := ToolCall{ID: callid.New(), Name: "read", Arguments: `{"path": "main.go", "lines": [1, 200]}`}
		if _, err := h.Append(User(say), Assistant("", call), Result(call, say), Assistant(say)); err != nil {
			b.Fatal(err)
		}
	}
	return h
}

// BenchmarkSnapshotJSON writes and reads a snapshot of 10,000 messages, directly and
// through encoding/json, beside encoding/json with a plain struct of the same shape,
// in turns in one run. It reports the median of each, and how many times as long as the
// plain struct it takes.
func BenchmarkSnapshotJSON(b *testing.B) {
	s := longHistory(b).Snapshot()
	data, err := s.MarshalJSON()
	if err != nil {
		b.Fatal(err)
	}
	var plain plainSnapshot
	if err := json.Unmarshal(data, &plain); err != nil {
		b.Fatal(err)
	}
	took := map[string][]float64{}
	run := func(name string, f func() error) {
		start := time.Now()
		if err := f(); err != nil {
			b.Fatal(name, err)
		}
		took[name] = append(took[name], time.Since(start).Seconds())
	}
	median := func(name string) float64 { slices.Sort(took[name]); return took[name][len(took[name])/2] }
	for b.Loop() {
		run("plain-write", func() error { _, err := json.Marshal(&plain); return err })
		run("write", func() error { _, err := s.MarshalJSON(); return err })
		run("json-write", func() error { _, err := json.Marshal(s); return err })
		run("plain-read", func() error { return json.Unmarshal(data, new(plainSnapshot)) })
		run("read", func() error { return new(Snapshot).UnmarshalJSON(data) })
		run("json-read", func() error { return json.Unmarshal(data, new(Snapshot)) })
	}
	for _, name := range []string{"write", "json-write", "read", "json-read"} {
		_, how, through := strings.Cut(name, "-")
		if !through {
			how = name
		}
		b.ReportMetric(1000*median(name), name+"-ms")
		b.ReportMetric(median(name)/median("plain-"+how), name+"/plain")
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(testing.AllocsPerRun(1, func() { new(Snapshot).UnmarshalJSON(data) }), "read-allocs")
	b.ReportMetric(testing.AllocsPerRun(1, func() { json.Unmarshal(data, new(plainSnapshot)) }), "plain-allocs")
}

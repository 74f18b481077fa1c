package filestore_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// A readState is the state after a record, as the reader of docs/format.md has it.
type readState struct {
	fields  map[string]any
	entries map[float64]any // by ID
	pins    map[float64]bool
}

type object = map[string]any

// readFormat reads a log as docs/format.md says, without code of convo, and returns the
// state after each record, by Seq.
func readFormat(data []byte, key string) (map[int]readState, error) {
	states, s := map[int]readState{}, readState{}
	at, full, before, prev := 0, -1, 0, ""
	for line := range bytes.Lines(data) {
		text, whole := bytes.CutSuffix(line, []byte("\n"))
		last := len(text) - 1
		changed := !whole && last > 9 && text[last] != 0 && string(text[:8]) == sumOf(text[9:last])
		if changed {
			text, whole = text[:last], true
		}
		if at+len(line) == len(data) && (!whole || bytes.IndexByte(text, 0) >= 0) {
			break // a torn tail
		}
		fields := strings.SplitN(string(text), " ", 5)
		if len(fields) != 5 || fields[0] != sumOf(text[9:]) {
			return states, fmt.Errorf("damage at byte %d", at)
		}
		var seq, back int
		if _, err := fmt.Sscan(fields[1]+" "+fields[3], &seq, &back); err != nil {
			return states, err
		}
		var record struct {
			Format, Entries int
			Upto            float64
			Key, Prev, ID   string
			Data            object
		}
		if err := json.Unmarshal([]byte(fields[4]), &record); err != nil {
			return states, err
		}
		if fields[2] == "F" {
			s = readState{object{}, map[float64]any{}, map[float64]bool{}}
		}
		switch {
		case fields[2] != "F" && fields[2] != "P", record.Format != 1, record.Key != key, at == 0 && fields[2] != "F":
			return states, fmt.Errorf("record %d is none of this log", seq)
		case at > 0 && (seq != before+1 || record.Prev != prev || at-back != full):
			return states, fmt.Errorf("record %d does not follow record %d", seq, before)
		}
		s = s.with(record.Data)
		if system, _ := s.fields["system"].([]any); s.fields["last"] != record.Upto || len(system)+len(s.entries) != record.Entries {
			return states, fmt.Errorf("record %d has %d entries up to %v", seq, len(system)+len(s.entries), s.fields["last"])
		}
		if fields[2] == "F" {
			full = at
		}
		states[seq] = s
		at, before, prev = at+len(line), seq, record.ID
		if changed {
			return states, fmt.Errorf("damage at byte %d", at-1)
		}
	}
	return states, nil
}

func sumOf(text []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)))
}

// with returns the state after a record with this data.
func (s readState) with(data object) readState {
	next := readState{object{}, maps.Clone(s.entries), maps.Clone(s.pins)}
	list := func(name string) []any { l, _ := data[name].([]any); return l }
	for name, value := range s.fields {
		if tableOf(name) == "State" {
			next.fields[name] = value
		}
	}
	for name, value := range data {
		if table := tableOf(name); table == "Figures" || table == "State" {
			next.fields[name] = value
		}
	}
	for _, r := range list("out") {
		r := r.(object)
		maps.DeleteFunc(next.entries, func(id float64, _ any) bool { return r["first"].(float64) <= id && id <= r["last"].(float64) })
	}
	for _, e := range list("entries") {
		delete(e.(object), "tokens") // no part of a snapshot
		next.entries[e.(object)["id"].(float64)] = e
	}
	for _, id := range list("unpin") {
		delete(next.pins, id.(float64))
	}
	for _, id := range list("pins") {
		next.pins[id.(float64)] = true
	}
	return next
}

// snapshot returns the state as the JSON of a snapshot has it, apart from what was learned.
func (s readState) snapshot() object {
	out := object{"version": 1.0}
	for _, f := range pageFields() {
		name := f.name
		if !f.inSnapshot || name == "learned" {
			continue
		}
		switch value := s.fields[name].(type) {
		case []any:
			if len(value) > 0 {
				out[name] = value
			}
		case object:
			if value["text"] != "" && len(value) > 0 {
				out[name] = value
			}
		default:
			if value != nil && value != "" {
				out[name] = value
			}
		}
	}
	if ids := slices.Sorted(maps.Keys(s.pins)); len(ids) > 0 {
		var pins []any
		for _, id := range ids {
			pins = append(pins, id)
		}
		out["pins"] = pins
	}
	if len(s.entries) > 0 {
		out["entries"] = slices.SortedFunc(maps.Values(s.entries), func(a, b any) int {
			return cmp.Compare(a.(object)["id"].(float64), b.(object)["id"].(float64))
		})
	}
	return out
}

// A reader that was written from docs/format.md alone finds in the golden logs the states
// that Load finds.
func TestFormat_PageIsEnough(t *testing.T) {
	folders, err := os.ReadDir(goldenLogs)
	require.NoError(t, err)
	for _, folder := range folders {
		for _, key := range []string{wholeKey, prunedKey} {
			t.Run(folder.Name()+"/"+key, func(t *testing.T) {
				s := goldenStore(t, folder.Name())
				sum := sha256.Sum256([]byte(key))
				data, err := os.ReadFile(filepath.Join(s.Dir, fmt.Sprintf("%s-%x.convo", key, sum[:16])))
				require.NoError(t, err)
				states, err := readFormat(data, key)
				require.NoError(t, err)
				_, newest := open(t, s, key, goldenOptions()).Saved()
				require.Contains(t, states, int(newest))
				for seq, state := range states {
					p, err := convo.Load(t.Context(), s, key, uint64(seq))
					require.NoError(t, err)
					data, err := p.MarshalJSON()
					require.NoError(t, err)
					var want object
					require.NoError(t, json.Unmarshal(data, &want))
					delete(want, "learned")
					require.Equal(t, want, state.snapshot(), "record %d", seq)
				}

				torn, err := readFormat(data[:len(data)-1], key)
				require.NoError(t, err)
				require.Len(t, torn, len(states)-1)
				data[len(data)-1] ^= 1
				damaged, err := readFormat(data, key)
				require.EqualError(t, err, fmt.Sprintf("damage at byte %d", len(data)-1))
				require.Len(t, damaged, len(states))
				data[len(data)/2] ^= 1
				damaged, err = readFormat(data, key)
				require.Error(t, err)
				require.Less(t, len(damaged), len(states))
			})
		}
	}
}

// The line that docs/format.md shows is a line of a golden log.
func TestFormat_PageShowsALine(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "format.md"))
	require.NoError(t, err)
	_, line, ok := strings.Cut(string(page), "\n```text\n")
	require.True(t, ok)
	line, _, _ = strings.Cut(line, "```")
	logs, err := filepath.Glob(filepath.Join(goldenLogs, "*", "whole-*.convo"))
	require.NoError(t, err)
	require.NotEmpty(t, logs)
	log, err := os.ReadFile(logs[0])
	require.NoError(t, err)
	require.Contains(t, string(log), "\n"+line)
}

// A pageField is a field of the data of a record, as docs/format.md has it.
type pageField struct {
	name, table string
	inSnapshot  bool
}

// pageFields returns the fields in the tables of docs/format.md.
var pageFields = sync.OnceValue(func() (fields []pageField) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "format.md"))
	if err != nil {
		panic(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## The data of a record\n")
	section, _, _ = strings.Cut(section, "\n### ")
	table := ""
	for line := range strings.Lines(section) {
		if title, ok := strings.CutSuffix(line, ":\n"); ok {
			table = title
		}
		if row := strings.Split(line, " | "); strings.HasPrefix(line, "| `") {
			for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[0], -1) {
				fields = append(fields, pageField{name[1], table, strings.Contains(row[2], "S")})
			}
		}
	}
	return fields
})

// tableOf returns the title of the table that a field is in.
func tableOf(name string) string {
	for _, f := range pageFields() {
		if f.name == name {
			return f.table
		}
	}
	return ""
}

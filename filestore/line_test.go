package filestore

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// The line of a record, byte for byte.
func TestStore_Line(t *testing.T) {
	at := time.Date(2026, 11, 22, 8, 0, 0, 5, time.UTC)
	r := convo.Record{
		LogInfo: convo.LogInfo{Key: "42", Title: "\"Rome\"\n", Seq: 12, Created: at, Updated: at, Entries: 12, Tokens: 3456},
		ID:      strings.Repeat("b", 26), Prev: strings.Repeat("a", 26), Format: 1, Upto: 41, Data: []byte(`{"x":1}`),
	}
	const details = `,"upto":41,"entries":12,"tokens":3456,"title":"\"Rome\"\n","created":"2026-11-22T08:00:00.000000005Z","updated":"2026-11-22T08:00:00.000000005Z","prev":"aaaaaaaaaaaaaaaaaaaaaaaaaa","id":"bbbbbbbbbbbbbbbbbbbbbbbbbb"}` + "\n"
	line := newLine(&r, 20480)
	assert.Equal(t, `e5a9a67f 12 P 20480 {"format":1,"data":{"x":1},"key":"42"`+details, string(line))
	r.Key, r.Data, r.Full = "\xff", []byte("two\nlines"), true
	assert.Equal(t, ` 12 F 0 {"format":1,"data":"dHdvCmxpbmVz","key64":"/w=="`+details, string(newLine(&r, 0)[sumSize:]))
	r.Key, r.Title = strings.Repeat("\x01", 4096), strings.Repeat("\x01", 256)
	r.Data = []byte(`{,"key":"42"` + details[:len(details)-1])
	l, err := parseLine(newLine(&r, 0))
	require.NoError(t, err)
	assert.Equal(t, r, l.Record)
	assert.Less(t, len(newLine(&r, 0))-len(r.Data), 32<<10)
}

// A line whose JSON ends early is refused, wherever that is.
func TestLine_EndsEarly(t *testing.T) {
	r := testLog(nil).next(rand.New(rand.NewPCG(1, 1)), "k")
	line := newLine(&r, 0)
	whole := line[bytes.IndexByte(line, '{') : len(line)-1]
	require.NoError(t, new(logLine).parseJSON(whole))
	for n := range whole {
		require.Error(t, new(logLine).parseJSON(slices.Clip(bytes.Clone(whole[:n]))), "%s", whole[:n])
	}
}

// The line of any bytes is read or refused, and what is read is written so.
func FuzzStore_Line(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 1))
	var log testLog
	for range 12 {
		log = append(log, log.next(rnd, "k"))
		f.Add(newLine(&log[len(log)-1], 7), true)
	}
	f.Add([]byte("00000000 1 F 0 {}"), false)
	f.Fuzz(func(t *testing.T, line []byte, sum bool) {
		if sum && len(line) > sumSize { // else hardly any line gets past the checksum
			line = append(bytes.Clone(bytes.TrimSuffix(line, []byte("\n"))), '\n')
			b := line[:len(line)-1]
			if len(b) > sumSize {
				b[sumSize] = ' '
				putSum(b)
			}
		}
		l, err := parseLine(line)
		if err != nil {
			return
		}
		require.NoError(t, l.Check())
		again, err := parseLine(newLine(&l.Record, l.back))
		require.NoError(t, err)
		again.text, l.text = nil, nil
		require.Equal(t, l, again)
	})
}

// A line may be as long as that of the longest record that Check accepts.
func TestStore_LongestLine(t *testing.T) {
	long.Only(t, "takes 256 MiB of addresses")
	r := testLog(nil).next(rand.New(rand.NewPCG(1, 1)), "k")
	r.Data = make([]byte, maxData)
	require.NoError(t, r.Check())
	r.Data = make([]byte, maxData+1)
	require.Error(t, r.Check())
}

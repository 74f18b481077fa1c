package filestore

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// The environment of a child process: its directory, the seed of its records, and how many
// it saves; 0: until it is killed.
const childDir, childSeed, childRecords = "CONVO_TEST_DIR", "CONVO_TEST_SEED", "CONVO_TEST_RECORDS"

// TestStore_Child is what a child process does. It prints "try ID" before a record
// is appended, "ok ID" behind it, and "prune SEQ" before a Prune.
func TestStore_Child(t *testing.T) {
	dir := os.Getenv(childDir)
	if dir == "" {
		t.Skip("runs in the processes that other tests start")
	}
	var want int
	var seed uint64
	_, err := fmt.Sscan(os.Getenv(childRecords)+" "+os.Getenv(childSeed), &want, &seed)
	require.NoError(t, err)
	s := &Store{Dir: dir}
	rnd := rand.New(rand.NewPCG(seed, 4))
	log, err := readAll(t, s, crashKey, 0)
	require.NoError(t, err)
	for n := 0; want == 0 || n < want; {
		r := log.next(rnd, crashKey)
		fmt.Println("try", r.ID)
		err := s.Append(t.Context(), r)
		if conflict, ok := errors.AsType[*convo.ConflictError](err); ok && want > 0 {
			log = testLog{{LogInfo: convo.LogInfo{Seq: conflict.Have}, ID: conflict.ID}}
			if conflict.ID == "" {
				log = nil
			}
			continue
		}
		require.NoError(t, err)
		fmt.Println("ok", r.ID)
		n++
		log = testLog{r}
		if want == 0 && r.Full && rnd.IntN(3) == 0 {
			fmt.Println("prune", r.Seq)
			require.NoError(t, s.Prune(t.Context(), crashKey, r.Seq))
		}
	}
}

// child starts a child process, and returns the reader of what it prints.
func child(t *testing.T, dir string, seed, records int) (*exec.Cmd, io.Reader) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStore_Child$")
	cmd.Env = append(os.Environ(), childDir+"="+dir, fmt.Sprintf("%s=%d", childSeed, seed), fmt.Sprintf("%s=%d", childRecords, records))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return cmd, out
}

// A process that is killed at any moment loses no record that was acknowledged, and
// leaves none but the one that it was saving.
func TestStore_Kill(t *testing.T) {
	kills := long.Or(15, 1000)
	dir := t.TempDir()
	s := &Store{Dir: dir}
	var want []string // IDs
	rnd := rand.New(rand.NewPCG(1, 2))
	records := 0
	for n := range kills {
		cmd, out := child(t, dir, n, 0)
		tries, last := 1+rnd.IntN(6), ""
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			verb, id, _ := strings.Cut(lines.Text(), " ")
			switch verb {
			case "try":
				last = id
				if tries--; tries == 0 {
					time.Sleep(time.Duration(rnd.IntN(1500)) * time.Microsecond) // anywhere in an Append
					require.NoError(t, cmd.Process.Kill())
				}
			case "ok":
				require.Equal(t, last, id)
				want, last = append(want, id), ""
			case "prune":
			default:
				t.Fatalf("%s", lines.Text())
			}
		}
		require.Error(t, cmd.Wait())
		got := strings.Fields(stored(t, s, crashKey).String())
		if last != "" && len(got) > 0 && got[len(got)-1] == last {
			want = append(want, last)
		}
		if len(want) == 0 {
			require.Empty(t, got)
			continue
		}
		require.NotEmpty(t, got)
		from := slices.Index(want, got[0])
		require.GreaterOrEqual(t, from, 0, "a record that nobody has saved")
		require.Equal(t, want[from:], got)
		records += from
		want = got
	}
	t.Logf("%d kills, %d records", kills, records+len(want))
}

// Many processes save to one log, each record once, and those of one process in its
// order.
func TestStore_Processes(t *testing.T) {
	const each = 20
	processes := long.Or(4, 8)
	dir := t.TempDir()
	saved := make([][]string, processes)
	var wg sync.WaitGroup
	for i := range processes {
		cmd, out := child(t, dir, i, each)
		wg.Go(func() {
			for lines := bufio.NewScanner(out); lines.Scan(); {
				if id, ok := strings.CutPrefix(lines.Text(), "ok "); ok {
					saved[i] = append(saved[i], id)
				}
			}
			assert.NoError(t, cmd.Wait())
		})
	}
	wg.Wait()
	got := strings.Fields(stored(t, &Store{Dir: dir}, crashKey).String())
	assert.Len(t, got, processes*each)
	for _, ids := range saved {
		assert.Len(t, ids, each)
		at := -1
		for _, id := range ids {
			next := slices.Index(got, id)
			assert.Greater(t, next, at)
			at = next
		}
	}
}

// BenchmarkStore_Append measures an append of one record beside a write and a
// sync of the same bytes to an open file, in turns, and reports the ratio of the
// medians. It means something where the write takes more than 100 µs.
func BenchmarkStore_Append(b *testing.B) {
	s := &Store{Dir: b.TempDir()}
	f, err := os.Create(b.TempDir() + "/bare")
	require.NoError(b, err)
	defer func() { _ = f.Close() }()
	rnd := rand.New(rand.NewPCG(1, 1))
	log := fill(b, s, crashKey, 3)
	var ours, bare []time.Duration
	for b.Loop() {
		r := log.next(rnd, crashKey)
		r.Data, r.Full = []byte("{"+strings.Repeat("x", 800)+"}"), false
		log = testLog{r}
		line := newLine(&r, 12345)
		start := time.Now()
		_, err := f.Write(line)
		require.NoError(b, err)
		require.NoError(b, f.Sync())
		bare = append(bare, time.Since(start))
		start = time.Now()
		require.NoError(b, s.Append(b.Context(), r))
		ours = append(ours, time.Since(start))
	}
	slices.Sort(ours)
	slices.Sort(bare)
	own, least := ours[len(ours)/2], bare[len(bare)/2]
	b.ReportMetric(float64(own.Microseconds()), "µs/append")
	b.ReportMetric(float64(least.Microseconds()), "µs/bare")
	if least > 100*time.Microsecond {
		b.ReportMetric(float64(own)/float64(least), "x-bare")
	} else {
		b.Log("a bare write and sync takes less than 100 µs here; the ratio means nothing")
	}
	b.ReportMetric(0, "ns/op")
}

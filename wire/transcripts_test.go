package wire_test

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
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// transcripts is the directory of real conversations, with one in each line, as
// OpenAI chat messages. They are owned by others and are not part of the
// repository; without them the tests are skipped.
const transcripts = "../../shared/data/transcripts"

// eachTranscript calls f with each real conversation, or with every fourth in the short
// form. An aborted conversation is repaired.
func eachTranscript(t testing.TB, f func(h *convo.History)) {
	names, _ := filepath.Glob(filepath.Join(transcripts, "*.jsonl"))
	if len(names) == 0 {
		t.Skipf("no recorded conversations in %s: they are not part of the repository", transcripts)
	}
	n := 0
	for _, name := range names {
		file, err := os.Open(name)
		require.NoError(t, err)
		defer file.Close()
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			if n++; n%long.Or(8, 1) != 0 {
				continue
			}
			var line struct{ Messages json.RawMessage }
			require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
			in := mustDecode(t, wire.OpenAIChat{}, line.Messages, name)
			h, err := convo.Restore(convo.NewSnapshot(in.Messages), &convo.Options{Roles: convo.Relaxed(), Repair: func(*convo.SnapshotError) {}})
			require.NoError(t, err, name)
			f(h)
		}
		require.NoError(t, lines.Err())
	}
}

// Real conversations give valid requests in every format, in full and after
// every strategy, and also after one format has read what another wrote.
func TestFormats_TranscriptsAreValidInEveryFormat(t *testing.T) {
	names := slices.Sorted(maps.Keys(formats))
	conversations, total, switched := 0, 0, 0
	eachTranscript(t, func(h *convo.History) {
		conversations++
		snaps := []*convo.Snapshot{h.Snapshot()}
		for i, c := range strategies {
			if !long.On() && i != conversations%len(strategies) {
				continue // each conversation has another one
			}
			f, err := convo.Restore(h.Snapshot(), &convo.Options{Roles: convo.Relaxed(), Strategy: c})
			require.NoError(t, err)
			if r, _ := f.Compact(t.Context(), ""); r.Outcome == convo.OutcomeApplied {
				snaps = append(snaps, f.Snapshot())
			}
		}
		for k, s := range snaps {
			for i, name := range names {
				if !long.On() && (i+conversations)%10 > 0 {
					continue // each conversation has other formats
				}
				r := mustEncode(t, formats[name], s)
				total++
				if found := formats[name].Check(r.Body()); len(found) > 0 {
					t.Fatalf("conversation %d, %s: %v", conversations, name, found[0])
				}
				if k > 0 {
					continue
				}
				// Continue with another provider from the request to this one.
				in := mustDecode(t, formats[name], r.Body(), name)
				other := names[(i+conversations)%len(names)]
				g, err := convo.Restore(convo.NewSnapshot(in.Messages), &convo.Options{Roles: convo.Relaxed(), Repair: func(*convo.SnapshotError) {}})
				require.NoError(t, err, name)
				r = mustEncode(t, formats[other], g.Snapshot())
				switched++
				if found := formats[other].Check(r.Body()); len(found) > 0 {
					t.Fatalf("conversation %d, %s to %s: %v", conversations, name, other, found[0])
				}
			}
		}
	})
	t.Logf("%d conversations, %d requests, %d of them read and written for another format: none refused", conversations, total, switched)
	assert.Positive(t, switched)
}

// Each format writes the same bytes again from what it reads of its own
// request.
func TestFormats_TranscriptsEncodeTheSameAfterDecode(t *testing.T) {
	names := slices.Sorted(maps.Keys(formats))
	n := 0
	eachTranscript(t, func(h *convo.History) {
		if n++; n%long.Or(20, 5) != 0 {
			return
		}
		for _, name := range names {
			r, err := formats[name].Encode(h.Snapshot())
			if errors.Is(err, wire.ErrEmpty) {
				continue
			}
			require.NoError(t, err)
			in := mustDecode(t, formats[name], r.Body())
			again := mustEncode(t, formats[name], convo.NewSnapshot(in.Messages))
			require.Equal(t, string(r.Body()), string(again.Body()), name)
		}
	})
}

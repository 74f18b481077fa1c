package bpe_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/bpe"
)

// The golden files are made with OpenAI's own code: see internal/gen/golden.

type goldenHead struct {
	Tiktoken  string
	Encodings map[string]struct{ Pattern, Ranks string }
}

// A goldenCount is how many ids there are and the hash of them.
type goldenCount struct {
	N    int
	Hash string
}

func (c *goldenCount) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&c.N, &c.Hash})
}

type goldenString struct {
	Text          string
	Times         int // 0 is 1
	Cl100k, O200k goldenCount
}

func readGolden(t testing.TB) (goldenHead, []goldenString) {
	data, err := os.ReadFile("testdata/golden.jsonl")
	require.NoError(t, err)
	dec := json.NewDecoder(bytes.NewReader(data))
	var head goldenHead
	require.NoError(t, dec.Decode(&head))
	var all []goldenString
	for dec.More() {
		var s goldenString
		require.NoError(t, dec.Decode(&s))
		all = append(all, s)
	}
	return head, all
}

// mix folds ids into h as make.js does.
func mix(h uint32, ids []uint32) uint32 {
	for _, id := range ids {
		h = (h ^ id) * 16777619
	}
	return (h ^ uint32(len(ids))) * 16777619
}

const mixStart = 2166136261

// The oracle's patterns and vocabularies are the ones of OpenAI's package.
func TestGolden_Head(t *testing.T) {
	head, all := readGolden(t)
	for _, o := range oracles {
		assert.Equal(t, head.Encodings[o.name].Pattern, o.pattern)
		assert.Equal(t, head.Encodings[o.name].Ranks, o.ranks)
	}
	assert.GreaterOrEqual(t, len(all), 3000)
	t.Logf("%d strings by tiktoken %s", len(all), head.Tiktoken)
}

func TestGolden(t *testing.T) {
	_, all := readGolden(t)
	for _, s := range all {
		text := strings.Repeat(s.Text, max(s.Times, 1))
		for _, e := range []struct {
			name string
			enc  *bpe.Encoding
			want goldenCount
		}{{"cl100k", bpe.Cl100k(), s.Cl100k}, {"o200k", bpe.O200k(), s.O200k}} {
			ids := e.enc.Append(nil, text)
			got := goldenCount{len(ids), fmt.Sprintf("%08x", mix(mixStart, ids))}
			assert.Equal(t, e.want, got, "%s: ids of %s", e.name, quoted(text))
			assert.Equal(t, e.want.N, e.enc.Count(text), "%s: Count of %s", e.name, quoted(text))
			assert.Equal(t, text, decode(e.enc, ids), "%s: decoded", e.name)
		}
	}
}

// Any number of goroutines may count at once.
func TestGolden_Concurrent(t *testing.T) {
	_, all := readGolden(t)
	var wg sync.WaitGroup
	for first := range 8 {
		wg.Go(func() {
			for i := range all {
				s := all[(i*7+first*431)%len(all)]
				text := strings.Repeat(s.Text, max(s.Times, 1))
				if n := bpe.Cl100k().Count(text); n != s.Cl100k.N {
					t.Errorf("cl100k: want %d, got %d of %s", s.Cl100k.N, n, quoted(text))
				}
				if n := bpe.O200k().Count(text); n != s.O200k.N {
					t.Errorf("o200k: want %d, got %d of %s", s.O200k.N, n, quoted(text))
				}
			}
		})
	}
	wg.Wait()
}

// Ids are appended to what is there.
func TestGolden_Append(t *testing.T) {
	_, all := readGolden(t)
	for _, enc := range []*bpe.Encoding{bpe.Cl100k(), bpe.O200k()} {
		var ids []uint32
		var text strings.Builder
		count := 0
		for _, s := range all[:200] {
			ids = enc.Append(ids, s.Text)
			text.WriteString(s.Text)
			count += enc.Count(s.Text)
			require.Len(t, ids, count)
		}
		assert.Equal(t, text.String(), decode(enc, ids))
	}
}

func decode(enc *bpe.Encoding, ids []uint32) string {
	var b strings.Builder
	for _, id := range ids {
		token, _ := enc.Token(id)
		b.WriteString(token)
	}
	return b.String()
}

// quoted shows a string, also a long one.
func quoted(s string) string {
	const most = 400
	if len(s) > most {
		return fmt.Sprintf("%+q and %d bytes more", s[:most], len(s)-most)
	}
	return fmt.Sprintf("%+q", s)
}

// inContexts is a code point in the contexts of make.js.
func inContexts(dst [5]string, r rune) [5]string {
	c := string(r)
	dst[0] = c + "'s"
	dst[1] = "1" + c + "23 " + c
	dst[2] = "  .." + c + "'ll"
	dst[3] = "aA" + c + "Aa " + c + "A"
	dst[4] = c + " " + c + "\n " + c + "/\n\n" + c
	return dst
}

// Every code point is what OpenAI's code takes it for. Of the planes that hold
// only private and unassigned ones, one block in sixteen is checked; with
// -bpe.mb all are. Under the race detector it is one in 128 of all.
func TestGolden_CodePoints(t *testing.T) {
	want := readCodePoints(t)
	forEachOracle(t, func(t *testing.T, o *oracle) {
		require.Len(t, want[o.name], (unicode.MaxRune+1)/256)
		enc := o.ours()
		var ids []uint32
		var texts [5]string
		blocks, bad := 0, 0
		for block, hash := range want[o.name] {
			rare := block >= 0x400 && block>>8 != 0xe
			if rare && *oracleMB == 0 && block%16 != 0 || raceDetector && block%128 != 0 {
				continue
			}
			blocks++
			h := uint32(mixStart)
			for r := rune(block * 256); r < rune(block*256+256); r++ {
				if !utf8.ValidRune(r) {
					continue // a surrogate
				}
				texts = inContexts(texts, r)
				for _, text := range texts {
					ids = enc.Append(ids[:0], text)
					h = mix(h, ids)
					if n := enc.Count(text); n != len(ids) {
						t.Errorf("U+%04X: Count of %+q is %d, ids are %d", r, text, n, len(ids))
					}
				}
			}
			if h != hash {
				if bad++; bad <= 20 {
					t.Errorf("U+%04X to U+%04X: want %08x, got %08x", block*256, block*256+255, hash, h)
				}
			}
		}
		t.Logf("%d blocks of 256 code points, %d mismatches", blocks, bad)
		assert.Zero(t, bad)
	})
}

func readCodePoints(t testing.TB) map[string][]uint32 {
	data, err := os.ReadFile("testdata/codepoints.txt")
	require.NoError(t, err)
	all := map[string][]uint32{}
	name := ""
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case fields[0] == "#":
		case len(fields) == 1:
			name = fields[0]
		default:
			for _, field := range fields {
				h, err := strconv.ParseUint(field, 16, 32)
				require.NoError(t, err)
				all[name] = append(all[name], uint32(h))
			}
		}
	}
	return all
}

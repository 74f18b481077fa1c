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
	"github.com/seed-c1b73e60/convo/internal/bpetest"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// OpenAI's own code made the golden files; see internal/gen/golden.

type goldenHead struct {
	Tiktoken  string
	Encodings map[string]struct{ Pattern, Ranks string }
}

// A goldenCount is the number of ids of a text, and their hash.
type goldenCount struct {
	N    int
	Hash string
}

func (c *goldenCount) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&c.N, &c.Hash})
}

type goldenString struct {
	Text          string
	Times         int // how often Text is repeated; 0 means once
	Cl100k, O200k goldenCount
}

func (s goldenString) of(encoding string) goldenCount {
	if encoding == "cl100k_base" {
		return s.Cl100k
	}
	return s.O200k
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

// mix adds ids to the hash h as make.js does.
func mix(h uint32, ids []uint32) uint32 {
	for _, id := range ids {
		h = (h ^ id) * 16777619
	}
	return (h ^ uint32(len(ids))) * 16777619
}

const mixStart = 2166136261

func TestGolden(t *testing.T) {
	head, all := readGolden(t)
	assert.GreaterOrEqual(t, len(all), 3000)
	t.Logf("%d strings, counted by tiktoken %s", len(all), head.Tiktoken)
	forEachEncoding(t, func(t *testing.T, e encoding) {
		for _, s := range all {
			text, want := strings.Repeat(s.Text, max(s.Times, 1)), s.of(e.slow.Name)
			ids := e.fast.Append(nil, text)
			assert.Equal(t, want, goldenCount{len(ids), fmt.Sprintf("%08x", mix(mixStart, ids))}, "ids of %s", bpetest.Quoted(text))
			assert.Equal(t, want.N, e.fast.Count(text), "Count of %s", bpetest.Quoted(text))
			assert.Equal(t, text, decode(e.fast, ids), "decoded")
		}
	})
}

// Several goroutines may use an encoding at once, of which there is one.
func TestGolden_Concurrent(t *testing.T) {
	_, all := readGolden(t)
	var wg sync.WaitGroup
	for first := range 8 {
		wg.Go(func() {
			for i := range len(all) / long.Or(8, 1) {
				s := all[(i*7+first*431)%len(all)]
				text := strings.Repeat(s.Text, max(s.Times, 1))
				if n := bpe.Cl100k().Count(text); n != s.Cl100k.N {
					t.Errorf("cl100k: want %d, got %d of %s", s.Cl100k.N, n, bpetest.Quoted(text))
				}
				if n := len(bpe.O200k().Append(nil, text)); n != s.O200k.N {
					t.Errorf("o200k: want %d ids, got %d of %s", s.O200k.N, n, bpetest.Quoted(text))
				}
				if n := bpe.O200k().Count(text); n != s.O200k.N {
					t.Errorf("o200k: want %d, got %d of %s", s.O200k.N, n, bpetest.Quoted(text))
				}
			}
		})
	}
	wg.Wait()
	assert.Same(t, bpe.Cl100k(), bpe.Cl100k())
	assert.Same(t, bpe.O200k(), bpe.O200k())
}

// Append keeps the ids that dst already holds.
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

// inContexts returns a code point in the five contexts that make.js uses.
func inContexts(dst [5]string, r rune) [5]string {
	c := string(r)
	dst[0] = c + "'s"
	dst[1] = "1" + c + "23 " + c
	dst[2] = "  .." + c + "'ll"
	dst[3] = "aA" + c + "Aa " + c + "A"
	dst[4] = c + " " + c + "\n " + c + "/\n\n" + c
	return dst
}

// Every code point counts as in OpenAI's code. The short form checks a quarter
// of the two planes that hold most characters, and little of the others.
func TestGolden_CodePoints(t *testing.T) {
	want := readCodePoints(t)
	forEachEncoding(t, func(t *testing.T, e encoding) {
		require.Len(t, want[e.slow.Name], (unicode.MaxRune+1)/256)
		enc := e.fast
		var ids []uint32
		var texts [5]string
		blocks, bad := 0, 0
		for block, hash := range want[e.slow.Name] {
			if block%long.Or(4, 1) != 0 || block >= 0x200 && block%long.Or(64, 1) != 0 {
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

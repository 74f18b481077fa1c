package bpe_test

import (
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-c1b73e60/convo/internal/bpe"
	"github.com/seed-c1b73e60/convo/internal/bpetest"
)

func TestEncoding_DoesNotAllocate(t *testing.T) {
	if bpetest.RaceDetector {
		t.Skip("under the race detector a sync.Pool drops some of its items, which are then allocated again")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a garbage collection would empty the pool
	for name, e := range map[string]*bpe.Encoding{"cl100k": bpe.Cl100k(), "o200k": bpe.O200k()} {
		for _, text := range []string{
			"Hello, world",
			strings.Repeat("Unrecognisabilities: ünïcödé, 中文字符, слово \xff\xfe\n", 50),
			strings.Repeat("z", 10_000),
			strings.Repeat("\xff", 10_000),
		} {
			e.Count(text)
			allocs := testing.AllocsPerRun(50, func() { e.Count(text) })
			assert.Zero(t, allocs, "%s: %.20q", name, text)
		}
	}
}

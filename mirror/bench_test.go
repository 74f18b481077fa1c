package mirror_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/mirror"
)

// Sync of a list of 2,001 values, unchanged and with two new ones.
func BenchmarkSync(b *testing.B) {
	for name, codec := range codecs {
		start := func() (*mirror.Mirror[*line], []*line) {
			_, m := newMirror(b, nil, codec)
			list := talk(1_000)
			list[0].Text = strings.Repeat("Be brief, and do not say what was said before.\n", 450)
			require.NoError(b, m.Sync(list))
			require.NoError(b, m.Sync(list))
			return m, list
		}
		b.Run("unchanged, "+name, func(b *testing.B) {
			m, list := start()
			b.ReportAllocs()
			for b.Loop() {
				if err := m.Sync(list); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("two new, "+name, func(b *testing.B) {
			m, list := start()
			more := talk(20)[1:]
			b.ReportAllocs()
			for n := 0; b.Loop(); n += 2 {
				if n == len(more) {
					b.StopTimer()
					m, list = start()
					n = 0
					b.StartTimer()
				}
				list = append(list, more[n:n+2]...)
				if err := m.Sync(list); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

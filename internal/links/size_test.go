package links_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-c1b73e60/convo/internal/links"
)

func TestSize_Bytes(t *testing.T) {
	s := links.NewSize()
	assert.Zero(t, s.Bytes())
	s.Add(1000, true)
	s.Add(50, false)
	assert.Equal(t, int64(1050+2*links.AroundData), s.Bytes())
	s.Add(2000, true)
	assert.Equal(t, int64(1650+2000+links.AroundData), s.Bytes(), "what is before the full record stays")
	assert.Equal(t, int64(1650), s.Before)
	assert.Equal(t, 1, s.Count)
}

// Reading is at most three times as much as the newest full record.
func TestSize_MayBeFull(t *testing.T) {
	s := links.NewSize()
	s.Measure(10_800, 1000) // ten bytes for each token
	s.Add(10_800, true)
	may, must := s.MayBeFull(21_600, 1000)
	assert.False(t, may, "three times as much")
	assert.False(t, must)
	may, must = s.MayBeFull(21_601, 1000)
	assert.True(t, may)
	assert.False(t, must)
	may, _ = s.MayBeFull(21_601, 2000)
	assert.False(t, may, "the view has grown")

	assert.True(t, s.IsTooMuch(21_601, 10_800))
	assert.False(t, s.IsTooMuch(21_601, 11_000))
	s.Add(21_601, false)
	may, _ = s.MayBeFull(8100, 1000)
	assert.False(t, may, "it was tried at %d, so not before a quarter more", s.Read)
	may, _ = s.MayBeFull(8101, 1000)
	assert.True(t, may)

	next := links.NewSize()
	next.Add(100, true)
	next.Learn(s)
	may, _ = next.MayBeFull(32_400-100, 1000)
	assert.False(t, may, "what was learned")
	s.Add(10_800, true)
	may, _ = s.MayBeFull(21_601, 1000)
	assert.True(t, may, "a full record ends the wait")
}

// Records are few, unless the full record is long.
func TestSize_MayBeFull_Count(t *testing.T) {
	for _, tt := range []struct {
		raw  int64
		most int
	}{{0, 256}, {30_000, 256}, {1 << 20, 8193}} {
		s := links.NewSize()
		s.Add(1, true)
		for n := 1; ; n++ {
			if _, must := s.MayBeFull(1, tt.raw); must {
				assert.InDelta(t, tt.most, n, 1, "%d tokens", tt.raw)
				break
			}
			s.Add(1, false)
		}
	}
}

func TestSize_Open(t *testing.T) {
	s := links.NewSize()
	s.Add(7, true)
	s.Open(500, 2000, 3, 1000)
	assert.Equal(t, int64(500+2000+3*links.AroundData), s.Bytes())
	may, _ := s.MayBeFull(6400, 1000)
	assert.False(t, may, "two bytes for each token, and a frame of 800")
	may, _ = s.MayBeFull(6401, 1000)
	assert.True(t, may)
	s.Open(500, 2000, 3, 0)
	may, _ = s.MayBeFull(6401, 1000)
	assert.True(t, may, "a view without tokens tells nothing")
	s.Open(0, 100_000, 1, 1000)
	may, _ = s.MayBeFull(1, 1000)
	assert.True(t, may, "at most four bytes for each token")
}

func TestSize_Measure(t *testing.T) {
	s := links.NewSize()
	s.Measure(1_000_000, 199)
	may, _ := s.MayBeFull(14_401, 1000)
	assert.True(t, may, "a short view tells nothing: four bytes for each token")
	s.Measure(800, 1000)
	may, _ = s.MayBeFull(3901, 1000)
	assert.True(t, may, "at least half a byte for each token")
	may, _ = s.MayBeFull(3900, 1000)
	assert.False(t, may)
}

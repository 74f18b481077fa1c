package convo

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// What limits are compared with grows with the view, and holds and frees are
// its exact inverses: whatever was learned, of whatever view.
func TestScale(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	upTo := func(n int64) int64 { return r.Int64N(r.Int64N(n) + 1) }
	for range 500 {
		w := scale{prior: Prior{Ratio: []int{0, 25, 100, 400}[r.IntN(4)], Margin: r.IntN(102) - 1}, overhead: upTo(50_000), fresh: upTo(100_000)}
		if r.IntN(4) > 0 {
			k := &calibration{Ratio: 0.25 + 3.75*r.Float64(), Spread: r.Float64() * r.Float64() * r.Float64(), Raw: upTo(200_000), Tokens: upTo(300_000), Doubt: upTo(5000)}
			k.SmallRaw, k.SmallTokens = upTo(k.Raw+1), upTo(k.Tokens+1)
			w.known, w.overhead, w.old = k, k.overhead(0), upTo(k.Raw+1)
			w.gone = k.Raw - w.old
		}
		raw := w.old + w.fresh
		require.GreaterOrEqual(t, w.upper(), w.tokens(), "%+v", w)
		require.GreaterOrEqual(t, w.tokens(), w.overhead, "%+v", w)
		require.Equal(t, w.upper(), w.weigh(raw), "%+v", w)
		last := w.weigh(0)
		for at := int64(0); at < raw+50_000; at += 1 + r.Int64N(500) {
			now := w.weigh(at)
			require.GreaterOrEqual(t, now, last, "%d raw tokens of %+v", at, w)
			last = now

			held := w.holds(now)
			require.GreaterOrEqual(t, held, at)
			require.LessOrEqual(t, w.weigh(held), now)
			require.Greater(t, w.weigh(held+1), now)
		}
		free := upTo(w.upper() - w.weigh(0) + 1)
		went := w.frees(free)
		require.LessOrEqual(t, w.weigh(raw-went), w.upper()-free)
		if went > 0 {
			require.Greater(t, w.weigh(raw-went+1), w.upper()-free, "%d are too many", went)
		}
	}
}

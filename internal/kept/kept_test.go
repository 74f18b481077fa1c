package kept_test

import (
	"math/rand/v2"
	"testing"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
	"github.com/seed-c1b73e60/convo/internal/kept"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An item is an entry whose fingerprints are its number.
type item struct{ sum, raw int64 }

func (e *item) Sum() fingerprint.Sum  { return fingerprint.Sum(e.sum) }
func (e *item) Sent() fingerprint.Sum { return fingerprint.Sum(e.sum) }
func (e *item) Raw() int64            { return e.raw }

type request = kept.Request[*item, int]

// A view is what the next request is made of.
type view struct {
	kept.Heads
	system, list []*item
	place        int64
}

// items returns entries with these numbers, each of ten times as many raw tokens.
func items(sums ...int64) (list []*item) {
	for _, sum := range sums {
		list = append(list, &item{sum, 10 * sum})
	}
	return list
}

// of returns a request with these entries.
func of(list []*item) *request {
	r := &request{Figures: kept.Figures{Kept: int64(len(list))}}
	for _, e := range list {
		r.Raw += e.raw
	}
	return r
}

func TestRequest_CutAndJoined(t *testing.T) {
	list := items(1, 2, 3, 4)
	r := of(list)
	assert.Same(t, r, r.Cut(list, 4))
	cut := r.Cut(list, 1)
	assert.Equal(t, kept.Figures{Kept: 1, Raw: 10, Gone: 3, GoneRaw: 90}, cut.Figures)
	assert.Equal(t, []fingerprint.Sum{2, 3, 4}, cut.Lost)
	assert.Equal(t, kept.Figures{Kept: 4, Raw: 100}, r.Figures, "r itself does not change")

	back := cut.Back()
	assert.EqualValues(t, 1, back.RolledBack)
	joined := back.Joined(items(1, 2, 3, 9))
	assert.Equal(t, kept.Figures{Kept: 3, Raw: 60, Gone: 1, GoneRaw: 40, RolledBack: 1}, joined.Figures)
	assert.Equal(t, []fingerprint.Sum{4}, joined.Lost)
	assert.Equal(t, r.Figures, back.Joined(items(1, 2, 3, 4)).Figures, "all is there again")
	assert.Same(t, back, back.Joined(items(1, 9)))

	assert.Nil(t, r.Released(list, 2).Lost, "the entries are there, but are not sent as they were")
	assert.Same(t, r, r.Released(list, 4))
	assert.Same(t, r, r.Back(), "nothing is gone")

	var none *request
	assert.Nil(t, none.Cut(list, 0))
	assert.Nil(t, none.Joined(list))
	assert.Nil(t, none.Moved(list, list))
	assert.Nil(t, none.Counted(list, list))
	assert.Nil(t, none.Back())
}

// However a list changes, a request knows how much of it the list begins with.
func TestRequest_Moved(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func() (list []*item) {
		for range r.IntN(6) {
			list = append(list, items(1+r.Int64N(2))...)
		}
		return list
	}
	for range 2000 {
		was := random()
		sent, total := of(was), of(was).Raw
		list := was
		for range 4 {
			next := random()
			sent, list = sent.Moved(list, next), next
			n := kept.SameStart(was, list, func(a, b *item) bool { return a.sum == b.sum })
			require.EqualValues(t, n, sent.Kept, "%v of %v", list, was)
			require.EqualValues(t, len(was)-n, sent.Gone)
			require.Len(t, sent.Lost, len(was)-n)
			require.Equal(t, total, sent.Raw+sent.GoneRaw)
		}
	}
}

func TestRequest_Counted(t *testing.T) {
	r := of(items(1, 2))
	r.SysRaw, r.After = 7, 5
	now := items(1, 2)
	for _, e := range now {
		e.raw *= 2
	}
	own := r.Counted(items(1, 2), now)
	assert.EqualValues(t, 60, own.Raw)
	assert.EqualValues(t, 14, own.SysRaw)
	assert.Zero(t, own.After)
	assert.EqualValues(t, 30, r.Raw)
}

func TestRequest_Shortened(t *testing.T) {
	r := &request{Figures: kept.Figures{Kept: 4, Raw: 100, Gone: 1, GoneRaw: 5}}
	assert.Same(t, r, r.Shortened(4))
	assert.Equal(t, kept.Figures{Kept: 1, Raw: 25, Gone: 4, GoneRaw: 80, RolledBack: 1}, r.Shortened(1).Figures)
}

func TestRequest_Same(t *testing.T) {
	list, sys := items(1, 2, 3), items(5, 6)
	heads := kept.Heads{Frame: kept.Frame{Sys: 1, Tools: 2, Eph: 3}, Model: 4, Summary: 5}
	sent := of(list)
	sent.Heads, sent.System = heads, sys
	sent.ToolsRaw, sent.SysRaw, sent.SummaryRaw, sent.EphRaw, sent.Place, sent.PlaceRaw = 1000, 2000, 3000, 4000, 2, 30
	gone := func(n int, back bool) *request {
		r := sent.Cut(list, n)
		if back {
			r = r.Back()
		}
		return r
	}
	for name, c := range map[string]struct {
		sent *request
		now  func(v *view)
		same int64
		end  string
	}{
		"all":                       {sent, nil, 10_060, ""},
		"more":                      {sent, func(v *view) { v.list = items(1, 2, 3, 4) }, 10_060, ""},
		"another model":             {sent, func(v *view) { v.Model++ }, 0, kept.EndModel},
		"other tools":               {sent, func(v *view) { v.Tools++ }, 0, kept.EndTools},
		"a system message":          {sent, func(v *view) { v.Sys, v.system = 9, items(5, 7) }, 1050, kept.EndSystem},
		"a summary":                 {sent, func(v *view) { v.Summary++ }, 3000, kept.EndEdit},
		"an edit":                   {gone(2, false), func(v *view) { v.list = list[:2] }, 10_030, kept.EndEdit},
		"a rollback":                {gone(2, true), func(v *view) { v.list = list[:2] }, 10_030, kept.EndRollback},
		"an edit before ephemeral":  {gone(1, false), func(v *view) { v.list = list[:1] }, 6010, kept.EndEdit},
		"other ephemeral messages":  {sent, func(v *view) { v.Eph++ }, 6030, kept.EndEphemeral},
		"no ephemeral messages":     {sent, func(v *view) { v.Eph, v.place = 0, 3 }, 6030, kept.EndEphemeral},
		"ephemeral messages before": {sent, func(v *view) { v.place = 1 }, 6010, kept.EndEphemeral},
	} {
		v := view{heads, sys, list, 2}
		if c.now != nil {
			c.now(&v)
		}
		same, end := c.sent.Same(v.Heads, v.system, v.list, v.place)
		assert.Equal(t, c.end, end, name)
		assert.Equal(t, c.same, same, name)
	}
}

func TestEnds(t *testing.T) {
	var e kept.Ends
	for _, end := range []string{"", kept.EndEdit, kept.EndRollback} {
		assert.Equal(t, e, e.With(end), "it is not logged")
	}
	for _, end := range []string{kept.EndModel, kept.EndEphemeral, kept.EndSystem, kept.EndTools} {
		next := e.With(end)
		assert.NotEqual(t, e, next, end)
		assert.Equal(t, next, next.With(end), "once")
		e = next
	}
	r := of(items(1)).WithLogged(e)
	assert.Equal(t, e, r.Logged)
}

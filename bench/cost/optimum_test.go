package cost

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// small returns a short conversation with all kinds of exchanges.
func small(t *testing.T, r *rand.Rand, turns int) *Conversation {
	text := func(most int) string { return fmt.Sprintf("%0*d", 1+r.IntN(most), 7) }
	msgs := []convo.Message{convo.System(text(100))}
	if r.IntN(4) == 0 {
		msgs = append(msgs, convo.Assistant(text(120)))
	}
	for range turns {
		msgs = append(msgs, convo.User(text(60)))
		if r.IntN(3) == 0 {
			msgs = append(msgs, convo.User(text(40)))
		}
		for range r.IntN(3) {
			call := convo.ToolCall{ID: "id", Name: "f", Arguments: "{}"}
			msgs = append(msgs, convo.Assistant(text(30), call), convo.Result(call, text(400)))
			if r.IntN(4) == 0 { // the user writes before the assistant has read the result
				msgs = append(msgs, convo.User(text(60)))
			}
		}
		msgs = append(msgs, convo.Assistant(text(120)))
	}
	c, err := NewConversation("small", msgs)
	require.NoError(t, err)
	return c
}

func TestLayout(t *testing.T) {
	call := convo.ToolCall{ID: "1", Name: "f", Arguments: "{}"}
	long := strings.Repeat("x", 400)
	l := conversation(t, []convo.Message{
		convo.System("s"),
		convo.User("a"), convo.User("b"), convo.Assistant("", call), convo.Result(call, long), // request 0
		convo.Assistant("", call), convo.Result(call, "short"), // request 1
		convo.User("c"), convo.Assistant("d"), // request 2
	}).plan
	assert.Equal(t, []request{
		{atoms: 2, newest: 0, clears: 0, output: l.full[3].Tokens},
		{atoms: 3, newest: 2, clears: 0, output: l.full[5].Tokens},
		{atoms: 5, newest: 4, clears: 1, output: l.full[8].Tokens},
	}, l.requests)
	assert.Equal(t, []int{2}, l.at, "a result that is shorter than the marker is not cleared")
	var cuts []bool
	for _, a := range l.atoms {
		cuts = append(cuts, a.canCut)
	}
	assert.Equal(t, []bool{true, false, true, true, true, true}, cuts)

	full, cleared := l.full, l.cleared
	assert.Equal(t, full[:8], l.view(5, 0, 0))
	assert.Equal(t, []Item{full[0], full[1], full[2], full[3], cleared[4], full[5], full[6], full[7]}, l.view(5, 0, 1))
	assert.Equal(t, []Item{full[0], full[1], full[2], full[5], full[6], full[7]}, l.view(5, 3, 1), "if the cut is inside a turn, its user messages stay")
	assert.Equal(t, []Item{full[0], full[7]}, l.view(5, 4, 1))
	for _, v := range []struct{ cut, cleared int }{{0, 0}, {0, 1}, {2, 0}, {2, 1}, {3, 1}, {4, 1}} {
		assert.Equal(t, sum(l.view(5, v.cut, v.cleared)), l.tokens(5, v.cut, v.cleared), "%v", v)
	}
}

// brute tries every plan and bills it with a Meter. It returns the lowest value,
// and the lowest cost of the plans with enough tokens.
func brute(c *Conversation, s Setup, p Prices, clears bool, earns, tokens float64) (value, cost float64) {
	l := c.plan
	value, cost = math.Inf(1), math.Inf(1)
	var try func(i, cut, cleared int, plan [][]Item)
	try = func(i, cut, cleared int, plan [][]Item) {
		if i == len(l.requests) {
			m := &Meter{Cache: s.Cache, Limit: s.Limit()}
			for j, view := range plan {
				m.Wait(s.Clock.before(j))
				m.Request(view, l.requests[j].output)
			}
			units := m.Units(p)
			value = min(value, units-earns*float64(m.Input))
			if float64(m.Input) >= tokens {
				cost = min(cost, units)
			}
			return
		}
		r := l.requests[i]
		if r.atoms == 0 {
			try(i+1, 0, 0, append(plan[:i:i], l.view(0, 0, 0)))
			return
		}
		for to := cut; to <= r.newest; to++ {
			if !l.atoms[to].canCut {
				continue
			}
			from := max(cleared, l.clear[to])
			most := max(r.clears, from)
			if !clears {
				from, most = l.clear[to], l.clear[to]
			}
			for k := from; k <= most; k++ {
				view := l.view(r.atoms, to, k)
				if sum(view) > s.Limit() && !(to == r.newest && k == most) {
					continue
				}
				try(i+1, to, k, append(plan[:i:i], view))
			}
		}
	}
	try(0, 0, 0, nil)
	return value, cost
}

func TestOptimumAgainstAllPlans(t *testing.T) {
	moved, cleared, cold := 0, 0, 0
	for n := range uint64(300) {
		r := rand.New(rand.NewPCG(n, 2))
		c := small(t, r, 1+r.IntN(2))
		if len(c.plan.requests) > 6 {
			continue
		}
		s := Setup{Window: 60 + r.IntN(200), Cache: Cache{Min: r.IntN(60)}}
		if n%4 == 0 {
			s.Cache.TTL = time.Minute
			s.Clock = Clock{Every: 2, Pause: time.Hour}
			cold++
		}
		p := Prices{Read: 0.1, Write: 1 + float64(n%3)/4, Uncached: 1, Output: float64(n % 2 * 5)}
		clears := n%2 == 0
		for _, earns := range []float64{0, 0.05, 0.3, 1, 3} {
			want, _ := brute(c, s, p, clears, earns, 0)
			problem := &problem{cs: []*Conversation{c}, setup: s, prices: p, clears: clears}
			got := problem.solve(earns)
			require.InDelta(t, want, got.value, 1e-6, "case %d earning %g", n, earns)
			if got.rewrite > 0 {
				moved++
				if clears && len(c.plan.at) > 0 {
					cleared++
				}
			}
		}
		most := 0.0
		for i := range c.plan.requests {
			most += float64(s.Limit()) * float64(i%2)
		}
		for _, tokens := range []float64{0, most / 2, most} {
			_, want := brute(c, s, p, clears, 0, tokens)
			b := (&problem{cs: []*Conversation{c}, setup: s, prices: p, clears: clears}).least(tokens)
			if math.IsInf(want, 1) {
				assert.True(t, math.IsNaN(b.Lower), "case %d", n)
				continue
			}
			assert.LessOrEqual(t, b.Lower, want+1e-6, "case %d", n)
			assert.GreaterOrEqual(t, b.Upper, want-1e-6, "case %d", n)
			assert.GreaterOrEqual(t, b.Tokens, tokens, "case %d", n)
		}
	}
	assert.Greater(t, moved, 200)
	assert.Greater(t, cleared, 50)
	assert.Greater(t, cold, 20)
}

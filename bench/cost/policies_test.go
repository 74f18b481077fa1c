package cost

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/internal/harness"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// alone is a fleet without peers.
var alone = new(harness.Fleet)

func conversation(t *testing.T, msgs []convo.Message) *Conversation {
	c, err := NewConversation("test", msgs)
	require.NoError(t, err)
	return c
}

// mixed returns a conversation of each kind, with a limit that it reaches often.
func mixed(t *testing.T) map[*Conversation]Setup {
	return map[*Conversation]Setup{
		conversation(t, Chat(7, 120)):    limited(5_000),
		conversation(t, React(7, 20)):    limited(16_000),
		conversation(t, AgentRun(7, 60)): limited(40_000),
	}
}

// A spy records the requests of a run.
type spy struct {
	Run
	views [][]Item
}

func (s *spy) Request() ([]Item, error) {
	view, err := s.Run.Request()
	s.views = append(s.views, view)
	return view, err
}

// watch replays with a spy.
func watch(t *testing.T, c *Conversation, p Policy, s Setup) (Tally, [][]Item) {
	var seen *spy
	start := p.Start
	p.Start = func(c *Conversation, s Setup, m *Meter) (Run, error) {
		run, err := start(c, s, m)
		seen = &spy{Run: run}
		return seen, err
	}
	tally, err := Replay(c, p, s)
	require.NoError(t, err, p.Name)
	return tally, seen.views
}

// Every request of a policy in the class is the view of some (cut, cleared), and
// neither number ever decreases. The size of a view is what tokens returns.
func TestClass(t *testing.T) {
	for c, s := range mixed(t) {
		l := c.plan
		for _, p := range append(policies([]*Conversation{c}, alone), either("either", 30), byGrowth(1), low(75)) {
			if !p.Cuts {
				continue
			}
			tally, views := watch(t, c, p, s)
			assert.Zero(t, tally.Over, p.Name)
			assert.Positive(t, tally.Rewrites, p.Name)
			require.Len(t, views, len(l.requests), p.Name)
			cut, cleared := 0, 0
			for i, view := range views {
				cut, cleared = find(l, l.requests[i], view, cut, cleared)
				require.NotEqual(t, -1, cut, "%s: %s: request %d", p.Name, c.Name, i)
			}
		}
	}
}

// find returns the cut and the number of cleared results that give the view, both
// at least as high as the given ones, or -1 if there are none.
func find(l *layout, r request, view []Item, cut, cleared int) (int, int) {
	for to := cut; to <= r.newest; to++ {
		for k := max(cleared, l.clear[to]); k <= r.clears; k++ {
			if l.atoms[to].canCut && l.tokens(r.atoms, to, k) == sum(view) && same(l.view(r.atoms, to, k), view) {
				return to, k
			}
		}
	}
	return -1, -1
}

func same(a, b []Item) bool {
	n, _, _ := compare(a, b)
	return n == len(a) && n == len(b)
}

// No policy in the class costs less than the lower bound for what it retains, and
// the plan of the upper bound retains enough.
func TestNobodyIsBelowTheBound(t *testing.T) {
	tried := 0
	for c, s := range mixed(t) {
		for _, cached := range []Clock{{}, pauses} {
			s.Clock, s.Cache.TTL = cached, 5*time.Minute
			study := newStudy(scenario{name: "mixed", cs: []*Conversation{c}, setup: s}, alone)
			for n := range uint64(40) {
				r := rand.New(rand.NewPCG(n, 3))
				p := ruled(fmt.Sprint("random ", n), func(l *layout, now request, limit, cut, cleared int) (int, int) {
					if r.IntN(10) == 0 {
						cleared = max(cleared, r.IntN(now.clears+1))
					}
					target := limit
					if r.IntN(15) == 0 {
						target = r.IntN(limit)
					}
					if l.tokens(now.atoms, cut, max(cleared, l.clear[cut])) > limit {
						target = limit * (2 + r.IntN(8)) / 10
					}
					return cutTo(l, now, target, cut, cleared)
				})
				tally, err := study.run(p)
				require.NoError(t, err)
				if tally.Over > 0 {
					continue
				}
				tried++
				b := study.optimum(tally, Profiles()[0], true)
				assert.GreaterOrEqual(t, tally.Units(Profiles()[0]), b.Lower)
				assert.GreaterOrEqual(t, b.Upper, b.Lower)
				assert.GreaterOrEqual(t, b.Tokens, float64(tally.Input))
			}
		}
	}
	assert.Greater(t, tried, 200)
}

// A tally agrees with the requests that were sent.
func TestTally(t *testing.T) {
	for c, s := range mixed(t) {
		output := 0
		for _, r := range c.plan.requests {
			output += r.output
		}
		for _, p := range policies([]*Conversation{c}, alone) {
			tally, views := watch(t, c, p, s)
			all, rewrites, shared, over := 0, 0, 0, 0
			for i, view := range views {
				n := sum(view)
				all += n
				if n > s.Limit() {
					over++
				}
				if i == 0 {
					continue
				}
				alike := 0
				for j, it := range view {
					if j == len(views[i-1]) || views[i-1][j].Key != it.Key {
						break
					}
					shared += it.Tokens
					alike++
				}
				if alike < len(views[i-1]) {
					rewrites++
				}
			}
			assert.Equal(t, int64(all), tally.Input, p.Name)
			assert.Equal(t, tally.Input, tally.Read+tally.Write+tally.Uncached, p.Name)
			assert.Equal(t, int64(output), tally.Output, p.Name)
			assert.Equal(t, int64(shared), tally.Shared, p.Name)
			assert.Equal(t, rewrites, tally.Rewrites, p.Name)
			assert.Equal(t, over, tally.Over, p.Name)
			assert.Equal(t, len(views), tally.Requests, p.Name)
			assert.InDelta(t, float64(all)/float64(len(views)), tally.Mean(), 1e-6, p.Name)
			if p.Kind == Real && !p.Cuts {
				continue
			}
			assert.Zero(t, tally.Side, p.Name)
		}
	}
}

func TestWhatMustBe(t *testing.T) {
	anthropic, openai := Profiles()[0], Profiles()[1]
	for c, s := range mixed(t) {
		units := func(p Policy) float64 {
			tally, err := Replay(c, p, s)
			require.NoError(t, err)
			assert.GreaterOrEqual(t, tally.Units(anthropic), tally.Units(openai), p.Name)
			return tally.Units(anthropic)
		}
		all, err := Replay(c, never(), s)
		require.NoError(t, err)
		assert.Zero(t, all.Rewrites)
		assert.InDelta(t, 1, float64(all.Shared+int64(sum(c.plan.full)))/float64(all.Later), 0.05)
		assert.Positive(t, all.Over)

		assert.Greater(t, units(trim(100)), 2*units(trim(50)), "a lower target saves most")
		assert.Greater(t, units(trim(90)), units(trim(50)))
		assert.Greater(t, units(rolling(10)), units(Default()))
		apart := units(summarized("apart", false))
		// The instruction does not fit behind the last request in a small window.
		assert.GreaterOrEqual(t, apart, units(summarized("riding", true)))
		if s.Window > 20_000 {
			assert.Greater(t, apart, units(summarized("riding", true)))
		}

		p := &problem{cs: []*Conversation{c}, setup: s, prices: anthropic, clears: true}
		before := p.solve(0)
		for _, earns := range []float64{0.05, 0.1, 0.2, 0.5, 2} {
			now := p.solve(earns)
			assert.GreaterOrEqual(t, now.tokens, before.tokens)
			assert.GreaterOrEqual(t, now.cost, before.cost-1e-6)
			before = now
		}
		fewer := &problem{cs: []*Conversation{c}, setup: s, prices: anthropic}
		tally, err := Replay(c, Default(), s)
		require.NoError(t, err)
		both, cuts := p.least(float64(tally.Input)), fewer.least(float64(tally.Input))
		assert.LessOrEqual(t, both.Lower, cuts.Upper+1e-6)
		assert.LessOrEqual(t, both.Lower, tally.Units(anthropic))
		assert.LessOrEqual(t, cuts.Lower, cuts.Upper)
	}
}

// TestTargets holds the promised costs on generated conversations. They are token
// counts and do not depend on the machine.
func TestTargets(t *testing.T) {
	all, err := generated(false)
	require.NoError(t, err)
	require.Len(t, all, 4)
	for _, sc := range all {
		t.Run(sc.name, func(t *testing.T) {
			if sc.setup.Limit() > 20_000 {
				long.Only(t, "replays a long session of an agent")
			}
			sc.cs = sc.cs[:1]
			s := newStudy(sc, alone)
			tally, err := s.run(Default())
			require.NoError(t, err)
			assert.Zero(t, tally.Over)
			assert.Greater(t, tally.Rewrites, 2)
			least := s.optimum(tally, Profiles()[0], true).Lower
			assert.LessOrEqual(t, tally.Units(Profiles()[0]), 1.1*least)
			if sc.setup.Limit() == 20_000 {
				assert.Equal(t, 400, tally.Requests)
				assert.GreaterOrEqual(t, tally.Reuse(), 0.97)
			}
		})
	}
}

// folderOfTranscripts is a directory beside the repository with real
// conversations. They belong to other people and are not part of the repository.
const folderOfTranscripts = "../../../shared/data/transcripts"

func TestTargetsOnTranscripts(t *testing.T) {
	long.Only(t, "replays recorded conversations")
	all, err := transcripts(folder(folderOfTranscripts))
	require.NoError(t, err)
	if len(all) == 0 {
		t.Skipf("no recorded conversations in %s: they are not part of the repository", folderOfTranscripts)
	}
	for _, sc := range all {
		t.Run(sc.name, func(t *testing.T) {
			s := newStudy(sc, alone)
			tally, err := s.run(Default())
			require.NoError(t, err)
			assert.Zero(t, tally.Over)
			least := s.optimum(tally, Profiles()[0], true).Lower
			assert.LessOrEqual(t, tally.Units(Profiles()[0]), 1.1*least)
		})
	}
}

// A History that is told how long the provider keeps its cache compacts while it is empty, and
// pays less for the same number of tokens.
func TestWhenCold(t *testing.T) {
	for _, tt := range []struct {
		name string
		msgs []convo.Message
	}{
		{"chat", Chat(1, 400)},
		{"agent", AgentRun(1, 400)},
		{"react", React(1, 60)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := limited(20_000)
			s.Cache.TTL, s.Clock = 5*time.Minute, pauses
			study := newStudy(scenario{name: tt.name, cs: []*Conversation{conversation(t, tt.msgs)}, setup: s}, alone)
			p := Profiles()[0]
			above := func(policy Policy) (share, units float64) {
				tally, err := study.run(policy)
				require.NoError(t, err)
				assert.Zero(t, tally.Over)
				units, least := tally.Units(p), study.optimum(tally, p, true).Lower
				t.Logf("%s: %.0f units, %.1f %% above the optimum", policy.Name, units, 100*(units/least-1))
				return units / least, units
			}
			fixed, whole := above(Default())
			for _, share := range []int{25, 50, 75} {
				told, units := above(whenCold(share))
				assert.Less(t, told, fixed)
				assert.Less(t, units, whole)
			}
		})
	}

	c := conversation(t, Chat(1, 400))
	warm, err := Replay(c, Default(), limited(20_000))
	require.NoError(t, err)
	unpaused := limited(20_000)
	unpaused.Cache.TTL = time.Hour
	same, err := Replay(c, whenCold(50), unpaused)
	require.NoError(t, err)
	assert.Equal(t, warm, same)
}

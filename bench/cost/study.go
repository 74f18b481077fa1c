package cost

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/internal/harness"
)

// A scenario is a set of conversations with a setup.
type scenario struct {
	name  string
	cs    []*Conversation
	setup Setup
}

// limited returns a setup with a limit, and an eighth of the window reserved for
// the answer.
func limited(limit int) Setup {
	return Setup{Window: limit + limit/7, Reserve: limit / 7, Cache: defaultCache}
}

// generated returns the scenarios of generated conversations.
func generated(quick bool) ([]scenario, error) {
	var all []scenario
	for _, s := range []struct {
		name           string
		generate       func(seed uint64, size int) []convo.Message
		size, n, limit int
		quick          bool
	}{
		{"chat, 400 turns", Chat, 400, 3, 20_000, true},
		{"react, 60 turns", React, 60, 3, 32_000, false},
		{"agent, 150 steps", AgentRun, 150, 4, 100_000, true},
		{"agent, 400 steps", AgentRun, 400, 2, 100_000, false},
	} {
		if quick && !s.quick {
			continue
		}
		if quick {
			s.n = 1
		}
		sc := scenario{name: s.name, setup: limited(s.limit)}
		for seed := range uint64(s.n) {
			c, err := NewConversation(fmt.Sprint(s.name, " ", seed), s.generate(seed+1, s.size))
			if err != nil {
				return nil, err
			}
			sc.cs = append(sc.cs, c)
		}
		all = append(all, sc)
	}
	return all, nil
}

// chained says how many conversations of a file are joined into one, and their
// limit, by the prefix of the file's name.
var chained = []struct {
	prefix   string
	n, limit int
}{
	{"tau", 20, 16_000},
	{"swe", 19, 32_000},
	{"pi", 1, 100_000},
	{"crosswoz_zh_tools", 60, 8_000},
	{"crosswoz", 140, 8_000},
	{"", 20, 16_000},
}

// transcripts returns a scenario for each .jsonl file in a directory, with its
// conversations joined into long ones.
func transcripts(folder fs.FS) ([]scenario, error) {
	names, err := fs.Glob(folder, "*.jsonl")
	if err != nil {
		return nil, err
	}
	var all []scenario
	for _, name := range names {
		file, err := folder.Open(name)
		if err != nil {
			return nil, err
		}
		msgs, err := ReadMessages(file)
		_ = file.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, how := range chained {
			if !strings.HasPrefix(name, how.prefix) {
				continue
			}
			short := strings.TrimSuffix(path.Base(name), ".jsonl")
			cs, err := Chain(short, msgs, how.n)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			all = append(all, scenario{name: short, cs: cs, setup: limited(how.limit)})
			break
		}
	}
	return all, nil
}

// A study is a scenario with the results so far.
type study struct {
	scenario
	fleet   *harness.Fleet // its policies are compared with ours
	tallies map[string]Tally
	optima  map[string]*problem
}

func newStudy(sc scenario, fleet *harness.Fleet) *study {
	return &study{scenario: sc, fleet: fleet, tallies: map[string]Tally{}, optima: map[string]*problem{}}
}

// run replays a policy, or returns the result of an earlier run.
func (s *study) run(p Policy) (Tally, error) {
	if t, ok := s.tallies[p.Name]; ok {
		return t, nil
	}
	t, err := ReplayAll(s.cs, p, s.setup)
	if err == nil {
		s.tallies[p.Name] = t
	}
	return t, err
}

// optimum returns the bound for plans that retain at least as many tokens as t.
func (s *study) optimum(t Tally, p Prices, clears bool) bound {
	key := fmt.Sprint(p.Name, clears)
	if s.optima[key] == nil {
		s.optima[key] = &problem{cs: s.cs, setup: s.setup, prices: p, clears: clears}
	}
	return s.optima[key].least(float64(t.Input))
}

// above returns by how many percent a policy costs more than the lower bound of
// the optimum. The result is in brackets if the policy is outside the class of the
// optimum.
func (s *study) above(pol Policy, t Tally, p Prices, clears bool) string {
	if pol.Free || t.Over > 0 {
		return ""
	}
	b := s.optimum(t, p, clears)
	if math.IsNaN(b.Lower) {
		return ""
	}
	more := 100 * (t.Units(p)/b.Lower - 1)
	if math.Abs(more) < 0.05 {
		more = 0
	}
	text := fmt.Sprintf("%+.1f %%", more)
	if !pol.Cuts {
		text = "(" + text + ")"
	}
	return text
}

// folder returns a directory as a file system, or nil if path is empty.
func folder(path string) fs.FS {
	if path == "" {
		return nil
	}
	return os.DirFS(path)
}

// pauses is a user who goes away before every 25th request, for longer than the
// cache's time to live.
var pauses = Clock{Step: 20 * time.Second, Every: 25, Pause: 10 * time.Minute}

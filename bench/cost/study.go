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
)

// A scenario is conversations and what they run in.
type scenario struct {
	name  string
	cs    []*Conversation
	setup Setup
}

// limited is a window whose last eighth is kept for the answer.
func limited(limit int) Setup {
	return Setup{Window: limit + limit/7, Reserve: limit / 7, Cache: defaultCache}
}

// generated makes the scenarios that need no files.
func generated(quick bool) ([]scenario, error) {
	var all []scenario
	for _, s := range []struct {
		name           string
		make           func(seed uint64, size int) []convo.Message
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
			c, err := NewConversation(fmt.Sprint(s.name, " ", seed), s.make(seed+1, s.size))
			if err != nil {
				return nil, err
			}
			sc.cs = append(sc.cs, c)
		}
		all = append(all, sc)
	}
	return all, nil
}

// chained says how the conversations of a file are joined, and in what limit
// they run, by how the file's name begins.
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

// transcripts makes scenarios of the files in a folder whose name ends in
// .jsonl, each joined into long conversations.
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

// A study is a scenario with what was found out about it.
type study struct {
	scenario
	tallies map[string]Tally
	optima  map[string]*problem
}

func newStudy(sc scenario) *study {
	return &study{scenario: sc, tallies: map[string]Tally{}, optima: map[string]*problem{}}
}

// run replays a policy, once.
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

// optimum is the bound for as many retained tokens as a tally has.
func (s *study) optimum(t Tally, p Prices, clears bool) bound {
	key := fmt.Sprint(p.Name, clears)
	if s.optima[key] == nil {
		s.optima[key] = &problem{cs: s.cs, setup: s.setup, prices: p, clears: clears}
	}
	return s.optima[key].least(float64(t.Input))
}

// above is by how much a policy costs more than the optimum: a lower bound of
// it, so at most so much. In brackets where the optimum does not bound it.
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

// folder returns where transcripts are, nil when nobody said.
func folder(path string) fs.FS {
	if path == "" {
		return nil
	}
	return os.DirFS(path)
}

// pauses are a person who is away for longer than the cache lives, before
// every request of that number.
var pauses = Clock{Step: 20 * time.Second, Every: 25, Pause: 10 * time.Minute}

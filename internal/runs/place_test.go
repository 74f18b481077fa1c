package runs_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/pairs"
	"github.com/seed-c1b73e60/convo/internal/runs"
)

type given = runs.Given[int64, string]

// row returns a row with a key. Its role is told by the first letter: u, a, c for an answer with a
// call, r for the result of that call, s.
func row(key string) given {
	m := given{Key: key, Role: map[byte]string{'u': "user", 'a': "assistant", 'c': "assistant", 'r': "tool", 's': "system"}[key[0]], Message: "m " + key}
	switch key[0] {
	case 'c':
		m.Calls = pairs.Of[int64]([]pairs.Call{{ID: "call " + key[1:], Name: "t"}})
	case 'r':
		m.Results = []pairs.Call{{ID: "call " + key[1:], Name: "t"}}
	}
	return m
}

// listed returns a list with these runs. From is the first row of the run with the index from.
func listed(from int, all ...[]string) *runs.List[int64] {
	l, id := new(runs.List[int64]), int64(1)
	var turns runs.Turns
	for i, keys := range all {
		if i == from {
			l.From = len(l.Rows)
		}
		for _, key := range keys {
			turn := turns.Next(false, 0, row(key).Role)
			l.Rows = append(l.Rows, runs.Row[int64]{ID: id, Turn: turn, Key: key, Begins: key == keys[0]})
			id++
		}
		id++
	}
	return l
}

// place gives rows to a Placer, and returns it.
func place(l *runs.List[int64], end string, isTold bool, keys ...string) (*runs.Placer[int64, string], *runs.Fault) {
	p := runs.NewPlacer(l, end, isTold, func(place int, m given) bool { return l.Rows[place].Key != m.Key })
	for _, key := range keys {
		if err := p.Take(row(key)); err != nil {
			return p, err
		}
	}
	return p, p.End()
}

func TestPlacer(t *testing.T) {
	one := [][]string{{"u1", "a1", "u2", "c2", "r2", "a2"}}
	for name, tt := range map[string]struct {
		from   int
		runs   [][]string
		end    string
		rows   []string
		tail   []string
		queued []string
		fault  string // of the row with the key
		key    string
	}{
		"nothing":                      {},
		"no list":                      {rows: []string{"u1", "a1"}, tail: []string{"u1", "a1"}},
		"all":                          {runs: one, rows: one[0]},
		"rows after the list":          {runs: one, rows: append(one[0][:6:6], "u3", "a3"), tail: []string{"u3", "a3"}},
		"what the view does not show":  {from: 1, runs: [][]string{{"u1"}, {"u5", "a5"}, {"u9"}}, rows: []string{"u1", "u5", "a5", "u7", "a7", "u9"}},
		"system messages in front":     {runs: one, rows: append([]string{"s1"}, one[0]...)},
		"a system message later":       {from: 1, runs: [][]string{{"u1"}, {"u2"}}, rows: []string{"u1", "s1", "u2"}, fault: runs.Unexpected, key: "s1"},
		"before the list":              {from: 1, runs: [][]string{{"u1"}, {"u2"}}, rows: []string{"u1", "a1", "u2"}, fault: runs.Unexpected, key: "a1"},
		"twice":                        {runs: one, rows: []string{"u1", "u1"}, fault: runs.Twice, key: "u1"},
		"a row is missing":             {runs: one, rows: []string{"u1", "a1", "u2", "c2", "r2"}, fault: runs.Missing, key: "a2"},
		"a row in the middle":          {runs: one, rows: []string{"u1", "u2", "c2", "r2", "a2"}, fault: runs.Missing, key: "u2"},
		"the last row of another run":  {runs: [][]string{{"u1"}, {"u2"}}, rows: []string{"u1"}, fault: runs.Missing, key: "u2"},
		"another row at the end":       {runs: one, rows: []string{"u1", "a1", "u2", "c2", "r2", "a9"}, fault: runs.Unexpected, key: "a9"},
		"one that was queued":          {runs: [][]string{{"u1", "c1", "r1", "u2", "a2"}}, rows: []string{"u1", "c1", "u2", "r1", "a2"}, queued: []string{"u2"}},
		"several that were queued":     {runs: [][]string{{"u1", "c1", "r1", "u2", "u3", "a2"}}, rows: []string{"u1", "c1", "u2", "u3", "r1", "a2"}, queued: []string{"u2", "u3"}},
		"without the results":          {runs: [][]string{{"u1", "c1", "u2", "a2"}}, rows: []string{"u1", "c1", "u2", "a2"}},
		"queued after the list":        {runs: [][]string{{"u1", "c1"}}, rows: []string{"u1", "c1", "u2", "r1", "a2"}, tail: []string{"r1", "u2", "a2"}, queued: []string{"u2"}},
		"results of an earlier call":   {runs: [][]string{{"u2", "a2"}}, rows: []string{"u2", "r1", "a2"}},
		"but not after an answer":      {runs: [][]string{{"u2", "a2", "a3"}}, rows: []string{"u2", "a2", "r1"}, fault: runs.Unexpected, key: "r1"},
		"of one before the last row":   {runs: [][]string{{"u2"}}, rows: []string{"u2", "r1", "a2"}, tail: []string{"a2"}},
		"of one, between runs":         {runs: [][]string{{"u2"}, {"u3"}}, rows: []string{"u2", "r1", "u3"}},
		"new rows after what has left": {end: "a1", rows: []string{"a1", "u2"}, tail: []string{"u2"}},
		"which is not given":           {end: "a1", rows: []string{"u2"}, fault: runs.Unexpected, key: "u2"},
		"and nothing else is":          {end: "a1", fault: runs.Missing, key: "a1"},
		"left after the last run":      {runs: [][]string{{"u1"}}, end: "a3", rows: []string{"u1", "a1", "u3", "a3", "u4"}, tail: []string{"u4"}},
		"the end of these is missing":  {runs: [][]string{{"u1"}}, end: "a3", rows: []string{"u1", "a1", "u3", "u4"}, fault: runs.Missing, key: "a3"},
		"none of these is given":       {runs: [][]string{{"u1"}}, end: "a3", rows: []string{"u1"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := listed(tt.from, tt.runs...)
			p, fault := place(l, tt.end, true, tt.rows...)
			if tt.fault != "" {
				require.NotNil(t, fault)
				assert.Equal(t, tt.fault, fault.Fault, "%+v", fault)
				assert.Equal(t, tt.key, fault.Key, "%+v", fault)
				return
			}
			require.Nil(t, fault)
			for i, x := range l.Rows {
				assert.Equal(t, x.Key, p.Places[i].Key)
				assert.Equal(t, "m "+x.Key, p.Places[i].Message)
			}
			var tail []string
			for _, key := range tt.tail {
				tail = append(tail, "m "+key)
			}
			assert.Equal(t, tail, p.Tail)
			assert.Len(t, p.Queued, len(tt.queued))
			for _, key := range tt.queued {
				assert.True(t, p.Queued[key], key)
			}
		})
	}
}

// A result that no row of the list can be before is of an entry that no row tells.
func TestPlacer_Untold(t *testing.T) {
	p, fault := place(listed(0, []string{"u2"}), "", false, "u2", "r1")
	require.Nil(t, fault)
	assert.Equal(t, []string{"m r1"}, p.Tail)
}

func TestPlacer_NoKey(t *testing.T) {
	p := runs.NewPlacer(new(runs.List[int64]), "", true, func(int, given) bool { return false })
	require.Nil(t, p.Take(given{Role: "system"}), "the application sets it again")
	assert.Equal(t, &runs.Fault{Fault: runs.Unexpected}, p.Take(given{Role: "user"}))
}

// However the view was cut, the rows of the conversation stand where they stood.
func TestPlacer_Random(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var all []string // the conversation
		for n := range 1 + rng.IntN(8) {
			all = append(all, fmt.Sprint("u", n))
			if rng.IntN(2) == 0 {
				all = append(all, fmt.Sprint("c", n), fmt.Sprint("r", n))
			}
			all = append(all, fmt.Sprint("a", n))
		}
		var turns, own runs.Turns
		l := new(runs.List[int64])
		keep := 0
		for i, key := range all {
			turn := turns.Next(false, 0, row(key).Role)
			if keep == 0 && rng.IntN(3) > 0 {
				keep = 1 + rng.IntN(4)
			}
			if keep > 0 && !(key[0] == 'r' && (len(l.Rows) == 0 || l.Newest() != int64(i))) {
				l.Add(runs.Row[int64]{ID: int64(i + 1), Turn: turn, Key: key}, row(key).Role, &own)
				keep--
			}
		}
		head := func(id int64) int64 {
			if all[id-1][0] == 'r' {
				return id - 1
			}
			return id
		}
		l.SetFrom(2, head)
		l.Pack()
		got, err := read(l)
		require.NoError(t, err, "seed %d", seed)

		var rows []string
		first := len(all)
		if len(got.Rows) > 0 {
			first = int(got.Rows[got.From].ID) - 1
			for _, x := range got.Rows[:got.From] {
				rows = append(rows, x.Key)
			}
		}
		rows = append(append(rows, all[first:]...), "u99")
		if l.Newest() < int64(len(all)) { // what has left after the last row
			rows = rows[:len(rows)-1]
		}
		end := ""
		if l.Newest() < int64(len(all)) && len(all) > 0 {
			end = all[len(all)-1]
			if len(got.Rows) == 0 {
				rows = []string{end}
			}
			rows = append(rows, "u99")
		}
		p, fault := place(got, end, true, rows...)
		require.Nil(t, fault, "seed %d: %q of %q", seed, rows, all)
		var turn runs.Turns
		for i, x := range got.Rows {
			want := all[x.ID-1]
			require.Equal(t, want, p.Places[i].Key, "seed %d", seed)
			require.Equal(t, l.Rows[i].Turn, turn.Next(x.Begins, x.Turn, row(want).Role), "seed %d", seed)
		}
		require.Equal(t, []string{"m u99"}, p.Tail, "seed %d", seed)
	}
}

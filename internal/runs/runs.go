// Package runs has lists of rows in runs. The rows of a run have consecutive IDs, so that few
// numbers say where they stand.
package runs

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
)

// The roles of messages.
const (
	system    = "system"
	user      = "user"
	assistant = "assistant"
	tool      = "tool"
)

// A Row is the place of a row in a view.
type Row[N ~int64] struct {
	ID     N
	Turn   int             // of the first row of the run
	Key    string          // empty: it is not known, since the row is neither listed nor at an end of its run
	Sum    fingerprint.Sum // what the row is compared by
	Begins bool            // it is the first row of its run
}

// A List has rows in ascending order of their IDs.
type List[N ~int64] struct {
	Rows []Row[N]
	From int // the index of the first row of the run from which on every row is needed

	// The rows as they are written; see Pack.
	Keys   []string          // by runs: of all rows before From, and else of the first and the last row of each run
	Places []int64           // for each run what is to be added to the last ID and to the turn of the run before, and the number of rows
	Run    int               // the index of the run that From is in
	Sums   []fingerprint.Sum // of all rows
}

// Turns follow from the roles of the messages of a run: a turn begins with a user message after
// another message.
type Turns struct {
	turn int
	role string // of the newest message that is not a system message, or that begins a run
}

// after returns the turn of the next message, if no run begins with it.
func (t *Turns) after(role string) int {
	if role == user && t.role != user {
		return t.turn + 1
	}
	return t.turn
}

// Next returns the turn of the next message, which is first if a run begins with it.
func (t *Turns) Next(begins bool, first int, role string) int {
	t.turn = t.after(role)
	if begins {
		t.turn = first
	}
	if begins || role != system {
		t.role = role
	}
	return t.turn
}

// Add adds the row of a message. It begins a run if its ID or its turn does not follow from the row
// before.
func (l *List[N]) Add(x Row[N], role string, turns *Turns) {
	x.Begins = len(l.Rows) == 0 || x.ID != l.Newest()+1 || x.Turn != turns.after(role)
	turns.Next(x.Begins, x.Turn, role)
	l.Rows = append(l.Rows, x)
}

// SetFrom sets from which run on every row is needed: the first with more than most rows, or the
// last. head returns the first entry of the exchange of a row.
func (l *List[N]) SetFrom(most int, head func(N) N) {
	for i := 0; i < len(l.Rows); i = l.Stop(i) {
		l.From = i
		if l.Stop(i)-i > most {
			break
		}
	}
	for l.From > 0 {
		first := l.Rows[l.From].ID
		i, ok := l.Find(head(first))
		if !ok || l.Rows[i].ID == first { // its calls have no row, or it begins its exchange
			break
		}
		l.From = l.Start(i) // the row of a message that was queued during the calls may stand after them
	}
}

// Newest returns the ID of the last row, or 0.
func (l *List[N]) Newest() N {
	if n := len(l.Rows); n > 0 {
		return l.Rows[n-1].ID
	}
	return 0
}

// Find returns the index of the row with an ID, or where it would be, and whether there is one.
func (l *List[N]) Find(id N) (i int, ok bool) {
	return slices.BinarySearchFunc(l.Rows, id, func(x Row[N], id N) int { return cmp.Compare(x.ID, id) })
}

// Start returns the index of the first row of the run that a row is in.
func (l *List[N]) Start(i int) int {
	for !l.Rows[i].Begins {
		i--
	}
	return i
}

// Stop returns the index after the last row of the run that a row is in.
func (l *List[N]) Stop(i int) int {
	for !l.ends(i) {
		i++
	}
	return i + 1
}

// ends reports whether a row is the last of its run.
func (l *List[N]) ends(i int) bool { return i+1 == len(l.Rows) || l.Rows[i+1].Begins }

// Cut removes the rows with IDs above last.
func (l *List[N]) Cut(last N) {
	n, _ := l.Find(last + 1)
	l.Rows, l.Sums = l.Rows[:n], l.Sums[:n]
	if l.From < n {
		return
	}
	l.From = 0
	if n > 0 {
		l.From = l.Start(n - 1)
	}
}

// Pack sets what is written of the rows.
func (l *List[N]) Pack() {
	last, turn := N(0), 0
	for i, x := range l.Rows {
		if x.Begins {
			l.Places = append(l.Places, int64(x.ID-last), int64(x.Turn-turn), 0)
			turn = x.Turn
		}
		if i == l.From {
			l.Run = len(l.Places)/3 - 1
		}
		if i < l.From || x.Begins || l.ends(i) {
			l.Keys = append(l.Keys, x.Key)
		}
		l.Places[len(l.Places)-1]++
		l.Sums, last = append(l.Sums, x.Sum), x.ID
	}
}

// Unpack makes the rows of what was read of them, with IDs up to maxID and turns up to maxTurn.
// It returns an error if that contradicts itself.
func (l *List[N]) Unpack(maxID, maxTurn int64) error {
	if l.Run < 0 || l.Run > max(len(l.Places)/3-1, 0) {
		return fmt.Errorf("from is %d, want the index of a run", l.Run)
	}
	last, turn, keys, run := int64(0), int64(0), l.Keys, l.Run
	for p := range slices.Chunk(l.Places, 3) {
		if len(p) < 3 {
			return fmt.Errorf("places has %d numbers, want three for each run", len(l.Places))
		}
		first, n := last+p[0], p[2]
		if p[0] < 1 || p[0] > maxID || p[1] < 0 || p[1] > maxTurn-turn || n < 1 || n > int64(len(l.Sums)-len(l.Rows)) || first+n > maxID+1 {
			return fmt.Errorf("the place %v of a run does not ascend, or it has no sums", p)
		}
		if run == 0 {
			l.From = len(l.Rows)
		}
		last, turn = first+n-1, turn+p[1]
		for id := first; id <= last; id++ {
			x := Row[N]{N(id), int(turn), "", l.Sums[len(l.Rows)], id == first}
			if run > 0 || x.Begins || id == last {
				if len(keys) == 0 {
					return fmt.Errorf("the run with the place %v has no keys", p)
				}
				x.Key, keys = keys[0], keys[1:]
			}
			l.Rows = append(l.Rows, x)
		}
		run--
	}
	if len(l.Rows) < len(l.Sums) || len(keys) > 0 {
		return fmt.Errorf("%d sums and %d keys are of no run", len(l.Sums)-len(l.Rows), len(keys))
	}
	return nil
}

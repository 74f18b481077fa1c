package modeltest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed-c1b73e60/convo"
)

// Options configure Run and Replay.
type Options struct {
	// Operations is the number of operations that Run performs.
	Operations int

	// Seed is the seed of the first History; each later History has the next
	// seed. A failure names its seed.
	Seed uint64

	// CheckSaved fails the test unless h can be saved and restored without
	// loss. opts are the options that h was made with. It is called
	// occasionally.
	CheckSaved func(t testing.TB, h *convo.History, opts *convo.Options)
}

// perHistory is the number of operations that Run performs on one History. The
// conversations are then long enough to be difficult, and short enough to be
// compared completely after each operation.
const perHistory = 220

// Run performs random operations on histories and on the model, and compares
// both after each. It fails the test when they differ, or when the random
// conversations were too easy for the result to be meaningful.
func Run(t *testing.T, opts Options) {
	var stats Stats
	for seed := opts.Seed; stats.Operations < opts.Operations; seed++ {
		func() {
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			run(t, choices{rng: rand.New(rand.NewPCG(seed, 2)), left: perHistory}, opts, &stats)
		}()
	}
	t.Log(&stats)
	stats.check(t)
}

// Replay performs the operations that data encodes. Fuzz targets use it.
func Replay(t testing.TB, data []byte, opts Options) {
	run(t, choices{data: data}, opts, new(Stats))
}

// choices chooses the next operation, at random or from data.
type choices struct {
	rng  *rand.Rand // nil: choices come from data
	left int        // operations to perform at random
	data []byte
}

// n returns a number from 0 to limit-1.
func (c *choices) n(limit int) int {
	switch {
	case limit <= 1:
		return 0
	case c.rng != nil:
		return c.rng.IntN(limit)
	case len(c.data) == 0:
		return 0
	}
	b := int(c.data[0])
	c.data = c.data[1:]
	return b % limit
}

// more reports whether there is another operation to perform.
func (c *choices) more() bool {
	if c.rng == nil {
		return len(c.data) > 0
	}
	c.left--
	return c.left >= 0
}

// Stats describe how difficult the conversations of a run were. The fields
// after Histories and Lengths count the histories in which the case occurred.
type Stats struct {
	Operations int
	Histories  int
	Lengths    []int // entries at the end

	EditedOften int // three edits or more
	PinInside   int // a pinned entry among dropped ones
	CutInTurn   int // an edit that dropped the first part of a turn
	AcrossEdit  int // a rollback to a snapshot from before an edit
	Stale       int // a stale edit
	Cut         int // a result that was cut
	Rewritten   int // an entry that was rewritten
	Refused     int // a part that a provider has refused
	Undone      int // an edit that Undo reverted
	UndoBehind  int // an edit that Undo reverted, with messages appended after it
	Untold      int // a trigger that repeatedly found nothing to do
	Reloaded    int // restored from JSON, or forked
	Saved       int // saved in a log, opened, and continued
	Rivals      int // reloaded after another History was saved

	Answered  int // requests of Do whose answer was appended
	Delivered int // queued messages that were appended

	saw seen
}

// seen records which cases occurred in the current History.
type seen struct {
	edits                                           int
	pinInside, cutInTurn, acrossEdit, stale, load   bool
	cut, rewrite, refused, undo, undoBehind, untold bool
	saved, rival                                    bool
}

func (s *Stats) begin() {
	s.Histories++
	s.saw = seen{}
}

func (s *Stats) end(length int) {
	s.Lengths = append(s.Lengths, length)
	for _, c := range []struct {
		saw bool
		n   *int
	}{
		{s.saw.edits >= 3, &s.EditedOften},
		{s.saw.pinInside, &s.PinInside},
		{s.saw.cutInTurn, &s.CutInTurn},
		{s.saw.acrossEdit, &s.AcrossEdit},
		{s.saw.stale, &s.Stale},
		{s.saw.cut, &s.Cut},
		{s.saw.rewrite, &s.Rewritten},
		{s.saw.refused, &s.Refused},
		{s.saw.undo, &s.Undone},
		{s.saw.undoBehind, &s.UndoBehind},
		{s.saw.untold, &s.Untold},
		{s.saw.load, &s.Reloaded},
		{s.saw.saved, &s.Saved},
		{s.saw.rival, &s.Rivals},
	} {
		if c.saw {
			*c.n++
		}
	}
}

// median returns the median length of a conversation.
func (s *Stats) median() int {
	lengths := slices.Sorted(slices.Values(s.Lengths))
	return lengths[len(lengths)/2]
}

// percent returns n as a percentage of the histories.
func (s *Stats) percent(n int) float64 { return 100 * float64(n) / float64(s.Histories) }

// String returns all counts in one line.
func (s *Stats) String() string {
	return fmt.Sprintf("%d operations in %d histories, median length %d; %.0f %% edited three times or more, %.0f %% with a pin among dropped entries, "+
		"%.0f %% cut inside a turn, %.0f %% rolled back across an edit, %.0f %% with a stale edit, %.0f %% with a cut, %.0f %% rewritten, %.0f %% with a refused part, %.0f %% undone, "+
		"%.0f %% with something behind that, %.0f %% with a decline not told again, %.0f %% restored, %.0f %% opened, %.0f %% with a rival; %d answers, %d queued messages delivered",
		s.Operations, s.Histories, s.median(), s.percent(s.EditedOften), s.percent(s.PinInside), s.percent(s.CutInTurn),
		s.percent(s.AcrossEdit), s.percent(s.Stale), s.percent(s.Cut), s.percent(s.Rewritten), s.percent(s.Refused), s.percent(s.Undone), s.percent(s.UndoBehind), s.percent(s.Untold),
		s.percent(s.Reloaded), s.percent(s.Saved), s.percent(s.Rivals),
		s.Answered, s.Delivered)
}

// check fails the test if the conversations were too easy.
func (s *Stats) check(t *testing.T) {
	if s.median() < 60 {
		t.Errorf("the median conversation has %d entries, want at least 60", s.median())
	}
	if s.Answered < s.Operations/200 || s.Delivered < s.Operations/200 {
		t.Errorf("%d answers and %d queued messages delivered in %d operations, want a two-hundredth each", s.Answered, s.Delivered, s.Operations)
	}
	for _, c := range []struct {
		name    string
		n, want int // want is the minimum percentage
	}{
		{"edited three times or more", s.EditedOften, 10},
		{"a pin among dropped entries", s.PinInside, 5},
		{"cut inside a turn", s.CutInTurn, 5},
		{"rolled back across an edit", s.AcrossEdit, 5},
		{"a stale edit", s.Stale, 1},
		{"a cut", s.Cut, 10},
		{"an entry rewritten", s.Rewritten, 10},
		{"a refused part", s.Refused, 10},
		{"an edit undone", s.Undone, 10},
		{"an edit undone with something behind it", s.UndoBehind, 5},
		{"a decline not told again", s.Untold, 5},
		{"restored", s.Reloaded, 5},
		{"opened", s.Saved, 20},
		{"reloaded after a rival", s.Rivals, 20},
	} {
		if got := s.percent(c.n); got < float64(c.want) {
			t.Errorf("%s: %.1f %% of the histories, want at least %d %%", c.name, got, c.want)
		}
	}
}

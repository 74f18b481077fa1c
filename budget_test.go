package convo_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

func TestBudget_ReserveAndRelease(t *testing.T) {
	b := convo.NewBudget(100)
	assert.Equal(t, []int{100, 0, 100}, []int{b.Total(), b.Used(), b.Free()})
	r, err := b.Reserve(60)
	require.NoError(t, err)
	assert.Equal(t, 60, r.Tokens())
	assert.Equal(t, []int{60, 40}, []int{b.Used(), b.Free()})
	rest, err := b.Reserve(40)
	require.NoError(t, err, "the exact total")
	assert.Zero(t, b.Free())

	for range 3 {
		r.Release()
		assert.Equal(t, 40, b.Used(), "once, however often it is called")
	}
	rest.Release()
	assert.Zero(t, b.Used())
}

func TestBudget_Amounts(t *testing.T) {
	for _, tt := range []struct {
		name        string
		total, held int
		n           int
		want        any // nil: reserved
	}{
		{"zero", 100, 0, 0, nil},
		{"zero of nothing left", 100, 100, 0, nil},
		{"exact", 100, 40, 60, nil},
		{"one too many", 100, 40, 61, &convo.BudgetError{Need: 61, Free: 60}},
		{"largest", 100, 40, math.MaxInt, &convo.BudgetError{Need: math.MaxInt, Free: 60}},
		{"largest of the largest", math.MaxInt, 1, math.MaxInt, &convo.BudgetError{Need: math.MaxInt, Free: math.MaxInt - 1}},
		{"all of the largest", math.MaxInt, 0, math.MaxInt, nil},
		{"negative", 100, 0, -1, &convo.ValueError{}},
		{"smallest", 100, 0, math.MinInt, &convo.ValueError{}},
		{"empty pool", 0, 0, 1, &convo.BudgetError{Need: 1}},
		{"negative pool", -5, 0, 1, &convo.BudgetError{Need: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := convo.NewBudget(tt.total)
			_, err := b.Reserve(tt.held)
			require.NoError(t, err)
			r, err := b.Reserve(tt.n)
			switch want := tt.want.(type) {
			case nil:
				require.NoError(t, err)
				assert.Equal(t, tt.held+tt.n, b.Used())
				r.Release()
			case *convo.BudgetError:
				assert.Equal(t, want, err)
				assert.ErrorIs(t, err, convo.ErrBudget)
				assert.Nil(t, r)
			case *convo.ValueError:
				require.ErrorAs(t, err, &want)
				assert.Equal(t, tt.n, want.Value)
			}
			assert.Equal(t, tt.held, b.Used(), "what was refused or released leaves no trace")
		})
	}
}

func TestReservation_ZeroReleasesNothing(t *testing.T) {
	var r convo.Reservation
	r.Release()
	assert.Zero(t, r.Tokens())
}

// The charge is the estimate's upper bound after each change.
func TestBudget_ChargeFollowsTheHistory(t *testing.T) {
	b := convo.NewBudget(10_000)
	held, err := b.Reserve(500)
	require.NoError(t, err)
	h, err := convo.New(&convo.Options{Budget: b, Tokenizer: byBytes, Limits: convo.Limits{Tools: 80}})
	require.NoError(t, err)
	follows := func(what string) {
		t.Helper()
		assert.Equal(t, 500+h.Tokens().Upper, b.Used(), what)
	}
	follows("New")
	assert.Equal(t, 590, b.Used())
	_, err = convo.New(&convo.Options{Budget: b, MaxResult: 1})
	require.Error(t, err)
	follows("a New that failed")

	c := callOf("c")
	mustAppend(t, h, convo.System("s"), convo.User("u"), convo.Assistant("", c))
	follows("Append")
	_, err = h.AnswerOpenCalls("no")
	require.NoError(t, err)
	follows("AnswerOpenCalls")
	mustAppend(t, h, convo.Assistant("a"))
	at := h.Snapshot()
	mustAppend(t, h, convo.User("v"), convo.Assistant("b"), convo.User("w"))
	_, err = h.Append(convo.User("refused"))
	require.Error(t, err)
	follows("a refused Append")
	require.NoError(t, h.SetSystem(convo.System("longer")))
	follows("SetSystem")
	require.NoError(t, h.SetEphemeral(convo.User("rain")))
	follows("SetEphemeral")
	require.NoError(t, h.RecordUsage(at, convo.Usage{Input: 2000}))
	follows("RecordUsage")
	assert.Greater(t, b.Used(), 2500)
	require.NoError(t, h.SetModel("other"))
	follows("SetModel")
	require.NoError(t, h.SetLimits(convo.Limits{Tools: 7}))
	follows("SetLimits")
	_, err = h.SplicePrefix(h.Snapshot(), 5, "sum")
	require.NoError(t, err)
	follows("SplicePrefix")
	require.NoError(t, h.Rollback(at))
	follows("Rollback")
	_, err = h.Rewind(1)
	require.NoError(t, err)
	follows("Rewind")

	fork, err := convo.Restore(h.Snapshot(), &convo.Options{Budget: b, Tokenizer: byBytes})
	require.NoError(t, err)
	assert.Equal(t, 500+h.Tokens().Upper+fork.Tokens().Upper, b.Used(), "Restore")
	require.NoError(t, fork.Close())
	follows("Close of another")
	require.NoError(t, h.Close())
	require.NoError(t, h.Close())
	assert.Equal(t, 500, b.Used(), "Close")
	held.Release()
	assert.Zero(t, b.Used())
}

func TestBudget_MayBeOverdrawnByAHistory(t *testing.T) {
	b := convo.NewBudget(100)
	opts := bare()
	opts.Budget = b
	h := historyOf(t, opts)
	at := h.Snapshot()
	mustAppend(t, h, convo.User(string(make([]byte, 800))))
	assert.Equal(t, 900, b.Used())
	assert.Zero(t, b.Free())
	_, err := b.Reserve(1)
	assert.Equal(t, &convo.BudgetError{Need: 1}, err)
	_, err = b.Reserve(0)
	require.NoError(t, err)
	require.NoError(t, h.Rollback(at))
	assert.Equal(t, 100, b.Free())
}

// Several goroutines reserve and release at once, and no token is reserved
// twice.
func TestBudget_ConcurrentReserversNeverOvercommit(t *testing.T) {
	const total, owners = 1000, 8
	b := convo.NewBudget(total)
	var mu sync.Mutex
	live := 0
	var wg sync.WaitGroup
	for owner := range owners {
		wg.Go(func() {
			for i := range 500 {
				n := (i*7+owner*13)%300 + 1
				r, err := b.Reserve(n)
				if err != nil {
					continue
				}
				mu.Lock()
				live += n
				over := live > total
				mu.Unlock()
				if over {
					t.Error("more is reserved than there is")
				}
				mu.Lock()
				live -= n
				mu.Unlock()
				var twice sync.WaitGroup
				twice.Go(r.Release)
				twice.Go(r.Release)
				twice.Wait()
			}
		})
	}
	wg.Wait()
	assert.Zero(t, b.Used())
}

func TestBudget_ConcurrentHistories(t *testing.T) {
	b := convo.NewBudget(1_000_000)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			h, err := convo.New(&convo.Options{Budget: b})
			if err != nil {
				t.Error(err)
				return
			}
			for range 200 {
				_, _ = h.Append(convo.User("u"), convo.Assistant("a"))
				_, _ = h.SplicePrefix(h.Snapshot(), 1, "s")
				_, _ = h.Rewind(1)
			}
			_ = h.Close()
		})
	}
	wg.Wait()
	assert.Zero(t, b.Used())
}

// valueErrors returns the names in the ValueErrors that err joins.
func valueErrors(t *testing.T, err error) []string {
	t.Helper()
	require.Error(t, err)
	list := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		list = joined.Unwrap()
	}
	var names []string
	for _, err := range list {
		var value *convo.ValueError
		require.True(t, errors.As(err, &value), "%T: %v", err, err)
		assert.NotEmpty(t, value.Want)
		assert.Contains(t, err.Error(), value.Name)
		names = append(names, value.Name)
	}
	return names
}

func TestLimits_Defaults(t *testing.T) {
	type want struct{ limit, high, low, soft, minFree int }
	for _, tt := range []struct {
		name   string
		limits convo.Limits
		want   want
	}{
		{"zero", convo.Limits{}, want{minFree: 1000}},
		{"no window, MinFree", convo.Limits{MinFree: 7}, want{minFree: 7}},
		{"no window, reserve means nothing", convo.Limits{Reserve: 500}, want{minFree: 1000}},
		{"small window", convo.Limits{Window: 8000}, want{7000, 7000, 3500, 5250, 875}},
		{"large window", convo.Limits{Window: 200_000}, want{184_000, 184_000, 92_000, 138_000, 23_000}},
		{"reserve", convo.Limits{Window: 128_000, Reserve: 28_000}, want{100_000, 100_000, 50_000, 75_000, 12_500}},
		{"no reserve", convo.Limits{Window: 1000, Reserve: -1}, want{1000, 1000, 500, 750, 125}},
		{"high", convo.Limits{Window: 1000, Reserve: -1, High: 800}, want{1000, 800, 400, 600, 100}},
		{"high without a window", convo.Limits{High: 800}, want{0, 800, 400, 600, 100}},
		{"low", convo.Limits{High: 800, Low: 200}, want{0, 800, 200, 500, 150}},
		{"soft", convo.Limits{High: 800, Soft: 700}, want{0, 800, 400, 700, 100}},
		{"soft at high", convo.Limits{High: 800, Soft: 800}, want{0, 800, 400, 800, 100}},
		{"all", convo.Limits{Window: 1000, Reserve: 100, High: 900, Low: 100, Soft: 200, MinFree: 100}, want{900, 900, 100, 200, 100}},
		{"least window", convo.Limits{Window: 1}, want{1, 1, 0, 1, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := historyOf(t, &convo.Options{Limits: tt.limits})
			s := h.Status()
			assert.Equal(t, tt.want, want{s.Limit, s.High, s.Low, s.Soft, s.MinFree})
			assert.Equal(t, tt.limits.Window, s.Window)

			other := historyOf(t, nil)
			require.NoError(t, other.SetLimits(tt.limits))
			assert.Equal(t, s, other.Status())
		})
	}
}

func TestLimits_Faults(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits convo.Limits
		want   []string // fields; "": the limits as a whole
	}{
		{"negative", convo.Limits{Window: -1, Tools: -1, High: -1, Low: -1, Soft: -1, MinFree: -1}, []string{"Window", "Tools", "High", "Low", "Soft", "MinFree"}},
		{"reserve takes all", convo.Limits{Window: 100, Reserve: 100}, []string{"Reserve"}},
		{"reserve beyond", convo.Limits{Window: 100, Reserve: 101}, []string{"Reserve"}},
		{"high over the limit", convo.Limits{Window: 100, Reserve: 10, High: 91}, []string{""}},
		{"low at high", convo.Limits{High: 100, Low: 100}, []string{""}},
		{"soft at low", convo.Limits{High: 100, Low: 50, Soft: 50}, []string{""}},
		{"soft over high", convo.Limits{High: 100, Soft: 101}, []string{""}},
		{"MinFree too large", convo.Limits{High: 100, Low: 50, Soft: 60, MinFree: 11}, []string{""}},
		{"marks without a measure", convo.Limits{Low: 1, Soft: 2}, []string{""}},
		{"several", convo.Limits{Window: 100, Reserve: 10, High: 95, Low: 50, Soft: 40}, []string{""}},
		{"of both kinds", convo.Limits{Window: 100, Reserve: 100, Low: -1}, []string{"Reserve", "Low"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var want []string
			for _, name := range tt.want {
				want = append(want, strings.TrimSuffix("Limits."+name, "."))
			}
			_, err := convo.New(&convo.Options{Limits: tt.limits})
			assert.ElementsMatch(t, want, valueErrors(t, err))

			h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 5000}})
			unchanged(t, h, func() {
				assert.ElementsMatch(t, want, valueErrors(t, h.SetLimits(tt.limits)))
			})
		})
	}
}

func TestLimits_SmallWindowsAreAccepted(t *testing.T) {
	for window := 1; window <= 200; window++ {
		t.Run(fmt.Sprint(window), func(t *testing.T) {
			s := historyOf(t, &convo.Options{Limits: convo.Limits{Window: window}}).Status()
			assert.Less(t, s.Low, s.Soft)
			assert.LessOrEqual(t, s.Soft, s.High)
			assert.LessOrEqual(t, s.High, s.Limit)
			assert.LessOrEqual(t, s.MinFree, s.Soft-s.Low)

			high := historyOf(t, &convo.Options{Limits: convo.Limits{High: window}}).Status()
			assert.Equal(t, window, high.High)
		})
	}
}

func TestBudget_NoSumOverflows(t *testing.T) {
	pool := convo.NewBudget(math.MaxInt)
	var owners []*convo.History
	for range 2100 {
		h := historyOf(t, &convo.Options{Budget: pool, Limits: convo.Limits{Tools: math.MaxInt}}, convo.User("u"))
		owners = append(owners, h)
	}
	assert.Equal(t, math.MaxInt, pool.Used())
	assert.Zero(t, pool.Free())
	_, _, err := owners[0].Fit(t.Context(), math.MaxInt)
	require.ErrorIs(t, err, convo.ErrBudget)
	for _, h := range owners {
		require.NoError(t, h.Close())
	}
	assert.Zero(t, pool.Used())
	assert.Equal(t, math.MaxInt, pool.Free())
}

// Limits that clash are one error, which names only the limits that were set.
func TestLimits_ClashesNameWhatWasSet(t *testing.T) {
	for _, tt := range []struct {
		limits convo.Limits
		want   string
	}{
		{convo.Limits{Window: 1000, High: 900},
			"convo: Limits is {Window: 1000, High: 900}, want High <= Window - Reserve, which is 875 with the default Reserve of 125"},
		{convo.Limits{Window: 100, Reserve: 10, Low: 90},
			"convo: Limits is {Window: 100, Reserve: 10, Low: 90}, want Low < Window - Reserve, which is 90"},
		{convo.Limits{Window: 1000, Reserve: -1, High: 100, Low: 100},
			"convo: Limits is {High: 100, Low: 100}, want Low < High"},
		{convo.Limits{High: 100, Soft: 40},
			"convo: Limits is {Soft: 40}, want Low < Soft, with the default Low of 50"},
		{convo.Limits{Window: 100, Reserve: 10, High: 95, Low: 50, Soft: 40},
			"convo: Limits is {Window: 100, Reserve: 10, High: 95, Low: 50, Soft: 40}, want Low < Soft; High <= Window - Reserve, which is 90"},
		{convo.Limits{High: 100, MinFree: 60},
			"convo: Limits is {MinFree: 60}, want MinFree <= Soft - Low, which is 25 with the default Soft of 75 and Low of 50"},
		{convo.Limits{Low: 1, Soft: 2},
			"convo: Limits is {Low: 1, Soft: 2}, want Window or High set too"},
	} {
		_, err := convo.New(&convo.Options{Limits: tt.limits})
		assert.EqualError(t, err, tt.want)
	}
}

package convo_test

import (
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

func TestBudget_ReserveAndRelease(t *testing.T) {
	b := convo.NewBudget(100)
	assert.Equal(t, []int{0, 100}, []int{b.Used(), b.Free()})
	r, err := b.Reserve(60)
	require.NoError(t, err)
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
	require.NoError(t, h.SetModel("other", convo.Limits{}))
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

func TestBudget_NoSumOverflows(t *testing.T) {
	pool := convo.NewBudget(math.MaxInt)
	var owners []*convo.History
	for range 2100 {
		h := historyOf(t, &convo.Options{Budget: pool, Limits: convo.Limits{Tools: math.MaxInt}}, convo.User("u"))
		owners = append(owners, h)
	}
	assert.Equal(t, math.MaxInt, pool.Used())
	assert.Zero(t, pool.Free())
	_, _, err := owners[0].MakeRoom(t.Context(), math.MaxInt)
	require.ErrorIs(t, err, convo.ErrBudget)
	for _, h := range owners {
		require.NoError(t, h.Close())
	}
	assert.Zero(t, pool.Used())
	assert.Equal(t, math.MaxInt, pool.Free())
}

// A negative number makes a pool of 0.
func TestNewBudget_Negative(t *testing.T) {
	for _, tokens := range []int{-1, -5, math.MinInt} {
		b := convo.NewBudget(tokens)
		assert.Equal(t, []int{0, 0}, []int{b.Used(), b.Free()}, "%d tokens", tokens)
		r, err := b.Reserve(0)
		require.NoError(t, err)
		r.Release()
	}
}

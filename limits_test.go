package convo_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

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
		{"largest window", convo.Limits{Window: math.MaxInt, Reserve: -1}, want{math.MaxInt, math.MaxInt, math.MaxInt / 2, math.MaxInt/4*3 + 2, math.MaxInt/8 + 1}},
		{"largest high", convo.Limits{High: math.MaxInt, Low: math.MaxInt - 1, Soft: math.MaxInt}, want{0, math.MaxInt, math.MaxInt - 1, math.MaxInt, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := historyOf(t, &convo.Options{Limits: tt.limits})
			s := h.Status()
			assert.Equal(t, tt.want, want{s.Limit, s.High, s.Low, s.Soft, s.MinFree})
			assert.Equal(t, tt.limits.Window, s.Window)

			other := historyOf(t, nil)
			require.NoError(t, other.SetLimits(tt.limits))
			set := other.Status()
			set.Decisions = s.Decisions
			assert.Equal(t, s, set)
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
		{"the largest low", convo.Limits{Window: 1000, Low: math.MaxInt}, []string{""}},
		{"the largest low and window", convo.Limits{Window: math.MaxInt, Low: math.MaxInt}, []string{""}},
		{"the largest low and high", convo.Limits{High: math.MaxInt, Low: math.MaxInt}, []string{""}},
		{"the largest soft", convo.Limits{High: 10, Soft: math.MaxInt}, []string{""}},
		{"the largest MinFree", convo.Limits{High: 10, MinFree: math.MaxInt}, []string{""}},
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

// Limits that clash are one error, which has the limits that were set, and all of them with the
// defaults.
func TestLimits_Clashes(t *testing.T) {
	for _, tt := range []struct {
		limits convo.Limits
		want   string
	}{
		{convo.Limits{Window: 128_000, Reserve: 128_000},
			"convo: Limits.Reserve is 128,000, want less than Window, which is 128,000; leave it 0 if max_tokens is that large"},
		{convo.Limits{Window: 1000, High: 900},
			"convo: Limits is {Window: 1,000, High: 900}, want High <= Window - Reserve; with its defaults it is {Window: 1,000, Reserve: 125, High: 900, Low: 450, Soft: 675, MinFree: 112}"},
		{convo.Limits{Window: 100, Reserve: 10, Low: 90},
			"convo: Limits is {Window: 100, Reserve: 10, Low: 90}, want Low < High; with its defaults it is {Window: 100, Reserve: 10, High: 90, Low: 90, Soft: 90}"},
		{convo.Limits{Window: 1000, Reserve: -1, High: 100, Low: 100},
			"convo: Limits is {Window: 1,000, Reserve: -1, High: 100, Low: 100}, want Low < High; with its defaults it is {Window: 1,000, High: 100, Low: 100, Soft: 100}"},
		{convo.Limits{High: 100, Soft: 40},
			"convo: Limits is {High: 100, Soft: 40}, want Low < Soft; with its defaults it is {High: 100, Low: 50, Soft: 40}"},
		{convo.Limits{Window: 100, Reserve: 10, High: 95, Low: 50, Soft: 40},
			"convo: Limits is {Window: 100, Reserve: 10, High: 95, Low: 50, Soft: 40}, want Low < Soft; High <= Window - Reserve; with its defaults it is {Window: 100, Reserve: 10, High: 95, Low: 50, Soft: 40}"},
		{convo.Limits{High: 100, MinFree: 60},
			"convo: Limits is {High: 100, MinFree: 60}, want MinFree <= Soft - Low; with its defaults it is {High: 100, Low: 50, Soft: 75, MinFree: 60}"},
		{convo.Limits{Window: 1000, Soft: 100},
			"convo: Limits is {Window: 1,000, Soft: 100}, want Low < Soft; with its defaults it is {Window: 1,000, Reserve: 125, High: 875, Low: 437, Soft: 100}"},
		{convo.Limits{Low: 1, Soft: 2},
			"convo: Limits is {Low: 1, Soft: 2}, want Window or High set too"},
	} {
		_, err := convo.New(&convo.Options{Limits: tt.limits})
		assert.EqualError(t, err, tt.want)
	}
}

func TestRatios(t *testing.T) {
	for _, tt := range []struct {
		window     int
		soft, high float64
		want       convo.Status // of the marks
	}{
		{200_000, 0, 0, convo.Status{Window: 200_000, Limit: 184_000, High: 170_000, Low: 85_000, Soft: 140_000, MinFree: 21_250}},
		{100_000, 0.5, 0.8, convo.Status{Window: 100_000, Limit: 87_500, High: 80_000, Low: 40_000, Soft: 50_000, MinFree: 10_000}},
		{100_000, 0.3, 0.9, convo.Status{Window: 100_000, Limit: 90_000, High: 90_000, Low: 15_000, Soft: 30_000, MinFree: 15_000}},
		{100_000, 0.9, 1, convo.Status{Window: 100_000, Limit: 100_000, High: 100_000, Low: 50_000, Soft: 90_000, MinFree: 12_500}},
		{0, 0, 0, convo.Status{Window: 128_000, Assumed: true, Limit: 112_000, High: 108_800, Low: 54_400, Soft: 89_600, MinFree: 13_600}},
		{-5, 0.5, 0, convo.Status{Window: 128_000, Assumed: true, Limit: 112_000, High: 108_800, Low: 54_400, Soft: 64_000, MinFree: 9_600}},
	} {
		s := historyOf(t, &convo.Options{Limits: convo.Ratios(tt.window, tt.soft, tt.high)}).Status()
		tt.want.Upper, tt.want.Tokens = s.Upper, s.Tokens
		assert.Equal(t, tt.want, s, "%+v", tt)
	}
	l := convo.Ratios(math.MaxInt, 0.5, 1)
	assert.Equal(t, math.MaxInt, l.High)
}

func TestRatios_OutOfRange(t *testing.T) {
	const soft, high = "soft of Ratios", "high of Ratios"
	h := historyOf(t, nil)
	before := h.Status()
	for _, tt := range []struct {
		soft, high float64
		names      []string
		text       string
	}{
		{0.9, 0.85, []string{soft}, "convo: soft of Ratios is 0.9, want less than high, which is 0.85"},
		{0.9, 0, []string{soft}, "convo: soft of Ratios is 0.9, want less than high, which is 0.85"},
		{0.5, 0.5, []string{soft}, ""},
		{-0.1, 0.5, []string{soft}, ""},
		{0.5, 70, []string{high}, "convo: high of Ratios is 70, want more than 0 and at most 1, a share of the window"},
		{0.5, -1, []string{high}, ""},
		{math.NaN(), math.NaN(), []string{soft, high}, ""},
		{0.5, math.NaN(), []string{high}, ""},
		{math.Inf(1), math.Inf(1), []string{soft, high}, ""},
	} {
		l := convo.Ratios(100_000, tt.soft, tt.high)
		_, err := convo.New(&convo.Options{Limits: l})
		assert.ElementsMatch(t, tt.names, valueErrors(t, err))
		if tt.text != "" {
			assert.EqualError(t, err, tt.text)
		}
		for _, err := range []error{h.SetLimits(l), h.SetModel("m", l)} {
			assert.ElementsMatch(t, tt.names, valueErrors(t, err))
		}
	}
	assert.Equal(t, before, h.Status())
}

// Limits that Reload takes over are not set by the caller. The next call that sets limits says
// that the window is a guess.
func TestRatios_AssumedByReload(t *testing.T) {
	var log strings.Builder
	store := new(convotest.MemStore)
	h, err := convo.Open(t.Context(), store, "key", &convo.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	other, err := convo.Open(t.Context(), store, "key", nil)
	require.NoError(t, err)
	require.NoError(t, other.SetLimits(convo.Ratios(0, 0, 0)))
	mustAppend(t, other, convo.User("hi"))
	require.NoError(t, other.Save(t.Context()))
	_, _, err = h.Reload(t.Context())
	require.NoError(t, err)
	assert.True(t, h.Status().Assumed)
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 5}))
	assert.NotContains(t, log.String(), "window of the model")
	require.NoError(t, h.SetModel("", convo.Limits{}))
	assert.Contains(t, log.String(), "window of the model")
}

func TestRatios_AssumedIsSaidOnce(t *testing.T) {
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	said := func() int {
		defer log.Reset()
		return strings.Count(log.String(), "level=WARN msg=\"convo: the window of the model is not known")
	}
	assumed := convo.Ratios(0, 0, 0)
	h := historyOf(t, &convo.Options{Limits: assumed, Logger: logger})
	assert.Contains(t, log.String(), "window=128000 model=\"\"")
	assert.Equal(t, 1, said())
	require.NoError(t, h.SetModel("other", assumed))
	require.NoError(t, h.SetLimits(assumed))
	assert.Zero(t, said())

	h = historyOf(t, &convo.Options{Limits: convo.Ratios(10_000, 0, 0), Logger: logger})
	assert.Zero(t, said())
	assert.False(t, h.Status().Assumed)
	require.NoError(t, h.SetModel("m", assumed))
	assert.True(t, h.Status().Assumed)
	require.NoError(t, h.SetModel("m", assumed), "changes nothing")
	assert.Contains(t, log.String(), "model=m")
	assert.Equal(t, 1, said())

	_, err := convo.Restore(h.Snapshot(), &convo.Options{Limits: assumed, Logger: logger})
	require.NoError(t, err)
	assert.Equal(t, 1, said())
	require.NoError(t, h.Close())
	assert.ErrorIs(t, h.SetLimits(assumed), convo.ErrClosed)
}

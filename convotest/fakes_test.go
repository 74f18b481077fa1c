package convotest_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

// ask calls a summarizer and returns the text of the summary.
func ask(t *testing.T, s convo.Summarizer, req convo.SummaryRequest) (string, error) {
	t.Helper()
	sum, err := s.Summarize(t.Context(), req)
	return sum.Text, err
}

func TestCanned_ReturnsTheSameSummary(t *testing.T) {
	text, err := ask(t, convotest.Canned{}, convo.SummaryRequest{})
	require.NoError(t, err)
	require.NotEmpty(t, text)

	want := convo.Summary{Text: "short", Stop: convo.StopRefused, Usage: convo.Usage{Input: 3}}
	got, err := convotest.Canned{Text: want.Text, Stop: want.Stop, Usage: want.Usage}.Summarize(t.Context(), convo.SummaryRequest{})
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestEcho_RepeatsTheRequestWithinMaxTokens(t *testing.T) {
	req := convo.SummaryRequest{
		Previous: "before",
		Messages: []convo.Message{convo.User("where"), convo.Assistant("there")},
	}
	text, err := ask(t, convotest.Echo{}, req)
	require.NoError(t, err)
	require.Equal(t, "before\nwhere\nthere", text)

	req.Count = func(s string) int { return len(s) }
	for most := 1; most < 20; most++ {
		req.MaxTokens = most
		text, err := ask(t, convotest.Echo{}, req)
		require.NoError(t, err)
		require.LessOrEqual(t, len(text), most)
		require.NotEmpty(t, text)
	}

	text, err = ask(t, convotest.Echo{}, convo.SummaryRequest{})
	require.NoError(t, err)
	require.NotEmpty(t, text)
}

// Answer finds in a prompt what a summary should hold, and nothing else.
func TestAnswer_RepeatsWhatThePromptHolds(t *testing.T) {
	all, err := convotest.Requests()
	require.NoError(t, err)
	for name, r := range all {
		got := convotest.Answer(r.Prompt)
		require.NotEmpty(t, got, name)
		require.LessOrEqual(t, r.Count(got), r.MaxTokens, name)
		require.NotRegexp(t, `key="@[a-z]{7}">|<message|<call|Write at most|^"`, strings.ReplaceAll(got, `key="abcdefgh"`, ""), name)
		if r.Previous != "" {
			require.Contains(t, got, "Bob Zimmerwald is in room 2957.", name)
		}
	}
	require.Equal(t, "I am Ada Ravenholt. Where am I?\n\n\nBy the river, in room 4719.", convotest.Answer(all["short"].Prompt))
	for _, prompt := range []string{"", "Hello.", "\n<transcript key=", "Write at most 99999999999999999999 tokens."} {
		require.Equal(t, "Nothing was said.", convotest.Answer(prompt))
	}
}

func TestSlow_WaitsOrReturnsTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		text, err := ask(t, convotest.Slow{For: time.Hour, With: convotest.Canned{Text: "late"}}, convo.SummaryRequest{})
		require.NoError(t, err)
		require.Equal(t, "late", text)
		require.Equal(t, time.Hour, time.Since(start))

		for _, s := range []convotest.Slow{{}, {For: time.Hour}} {
			cause := errors.New("enough")
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, cause)
			_, err := s.Summarize(ctx, convo.SummaryRequest{})
			cancel()
			require.ErrorIs(t, err, cause)
		}
	})
}

func TestFailing_ReturnsTheError(t *testing.T) {
	_, err := ask(t, convotest.Failing{}, convo.SummaryRequest{})
	require.ErrorIs(t, err, convotest.ErrFake)
	_, err = ask(t, convotest.Failing{Err: context.DeadlineExceeded}, convo.SummaryRequest{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestFlaky_FailsTheGivenCalls(t *testing.T) {
	for _, tt := range []struct {
		name string
		f    *convotest.Flaky
		want string // + is a summary, - an error
	}{
		{"zero", &convotest.Flaky{}, "+-+-+-"},
		{"first", &convotest.Flaky{First: 2}, "--++++"},
		{"every third", &convotest.Flaky{Every: 3}, "++-++-"},
		{"first, then every second", &convotest.Flaky{First: 1, Every: 2}, "-+-+-+"},
		{"every one", &convotest.Flaky{Every: 1}, "------"},
	} {
		var got strings.Builder
		for range tt.want {
			if _, err := ask(t, tt.f, convo.SummaryRequest{}); err != nil {
				require.ErrorIs(t, err, convotest.ErrFake)
				got.WriteByte('-')
			} else {
				got.WriteByte('+')
			}
		}
		require.Equal(t, tt.want, got.String(), tt.name)
	}
}

func TestPanicking_Panics(t *testing.T) {
	require.Panics(t, func() { _, _ = ask(t, convotest.Panicking{}, convo.SummaryRequest{}) })
	require.PanicsWithValue(t, 7, func() { _, _ = ask(t, convotest.Panicking{Value: 7}, convo.SummaryRequest{}) })
}

func TestEmptyAndCutOff_ReturnUnusableSummaries(t *testing.T) {
	text, err := ask(t, convotest.Empty{}, convo.SummaryRequest{})
	require.NoError(t, err)
	require.Empty(t, text)

	sum, err := convotest.CutOff{}.Summarize(t.Context(), convo.SummaryRequest{})
	require.NoError(t, err)
	require.NotEmpty(t, sum.Text)
	require.Equal(t, convo.StopLength, sum.Stop)
}

func TestGrowing_ReturnsLongerSummaries(t *testing.T) {
	var g convotest.Growing
	last := 0
	for range 20 {
		text, err := ask(t, &g, convo.SummaryRequest{MaxTokens: 500})
		require.NoError(t, err)
		n := convo.Heuristic{}.CountTokens(text)
		require.Greater(t, n, last)
		last = n
	}
	require.Greater(t, last, 500)
}

func TestDeaf_IgnoresTheEndOfCtx(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d convotest.Deaf
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		returned := make(chan string)
		go func() {
			sum, _ := d.Summarize(ctx, convo.SummaryRequest{})
			returned <- sum.Text
		}()
		synctest.Wait()
		select {
		case <-returned:
			require.Fail(t, "it listens")
		default:
		}
		d.Release()
		d.Release()
		require.NotEmpty(t, <-returned)

		late := &convotest.Deaf{With: convotest.Slow{For: time.Second}}
		late.Release()
		_, err := late.Summarize(ctx, convo.SummaryRequest{})
		require.NoError(t, err)
	})
}

func TestRecorder_KeepsCopiesOfRequests(t *testing.T) {
	changing := convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		req.Messages[0].Parts[0] = convo.Text("changed")
		return convo.Summary{Text: "done"}, nil
	})
	r := &convotest.Recorder{With: changing}
	require.Zero(t, r.Calls())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, _ = r.Summarize(t.Context(), convo.SummaryRequest{Focus: "f", Messages: []convo.Message{convo.User("said")}})
		})
	}
	wg.Wait()
	require.Equal(t, 8, r.Calls())
	for range 2 {
		for _, req := range r.Requests() {
			require.Equal(t, "f", req.Focus)
			require.Equal(t, "said", req.Messages[0].Text())
			req.Messages[0].Parts[0] = convo.Text("changed")
		}
	}
}

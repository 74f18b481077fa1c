package convo_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A bringer is a conversation whose Options.AfterCompaction returns back.
type bringer struct {
	*convo.History
	t     *testing.T
	back  func(convo.Report) []convo.Message
	asked []convo.Report // what AfterCompaction was given
	told  []convo.Report // what OnCompaction was given
	log   strings.Builder
}

func newBringer(t *testing.T, back ...convo.Message) *bringer {
	b := &bringer{t: t, back: func(convo.Report) []convo.Message { return back }}
	opts := windowOf(4000, convo.Truncate{})
	opts.AfterCompaction = func(r convo.Report) []convo.Message {
		b.asked = append(b.asked, r)
		return b.back(r)
	}
	opts.OnCompaction = func(r convo.Report) { b.told = append(b.told, r) }
	opts.Logger = slog.New(slog.NewTextHandler(&b.log, nil))
	b.History = toolTurn(t, opts, 10)
	return b
}

// returns makes AfterCompaction return messages of the user from now on.
func (b *bringer) returns(texts ...string) {
	b.back = func(convo.Report) (msgs []convo.Message) {
		for _, s := range texts {
			msgs = append(msgs, convo.User(s))
		}
		return msgs
	}
}

// grow appends until a compaction is due.
func (b *bringer) grow() {
	for b.Status().Upper <= b.Status().High {
		c := callOf(fmt.Sprint("g", b.Len()))
		mustAppend(b.t, b.History, convo.User("go on"), convo.Assistant("", c), convo.Result(c, strings.Repeat("x", 200)), convo.Assistant("done"))
	}
}

// compacted grows and returns what Prepare returns.
func (b *bringer) compacted() (text string, r convo.Report) {
	b.t.Helper()
	b.grow()
	s, r, err := b.Prepare(b.t.Context())
	require.NoError(b.t, err)
	require.Equal(b.t, convo.OutcomeApplied, r.Outcome)
	return b.text(s), r
}

func (b *bringer) text(s *convo.Snapshot) string { return strings.Join(textsOf(s), "\n") }

// The messages are in the snapshot that Prepare returns, before those of SetEphemeral, and
// in the figures of the report.
func TestAfterCompaction(t *testing.T) {
	b := newBringer(t)
	b.returns("open file: main.go", "to do: tests")
	require.NoError(t, b.SetEphemeral(convo.User("it is noon")))
	text, r := b.compacted()
	assert.Contains(t, text, "go on\nopen file: main.go\nto do: tests\nit is noon")
	require.Len(t, b.asked, 1)
	assert.Equal(t, convo.ReasonHigh, b.asked[0].Reason)
	assert.NotEmpty(t, b.asked[0].Dropped)
	assert.Equal(t, b.asked[0].MessagesAfter+2, r.MessagesAfter)
	assert.Equal(t, b.Status().Upper, r.TokensAfter)
	assert.Greater(t, r.TokensAfter, b.asked[0].TokensAfter)
	require.Len(t, b.told, 1)
	assert.Equal(t, r.TokensAfter, b.told[0].TokensAfter, "OnCompaction is told the same")
	assert.NoError(t, r.Cause)

	version := b.Snapshot().Version()
	_, r, err := b.Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
	assert.Equal(t, version, b.Snapshot().Version())
	assert.Len(t, b.asked, 1, "no compaction, no call")
}

// The next call replaces them, and SetEphemeral does not.
func TestAfterCompaction_Replaces(t *testing.T) {
	b := newBringer(t)
	b.returns("first")
	b.compacted()
	require.NoError(t, b.SetEphemeral(convo.User("it is noon")))
	assert.Contains(t, b.text(b.Snapshot()), "first\nit is noon")
	require.NoError(t, b.SetEphemeral())
	assert.Contains(t, b.text(b.Snapshot()), "first")
	assert.NotContains(t, b.text(b.Snapshot()), "noon")

	tokens := b.Snapshot().Tokens()
	require.NoError(t, b.SetEphemeral(convo.User("it is noon")))
	assert.Equal(t, tokens+len("it is noon"), b.Snapshot().Tokens())
	assert.Equal(t, len("first")+len("it is noon"), b.Snapshot().Breakdown().Ephemeral)

	b.returns("second")
	text, r := b.compacted()
	assert.Contains(t, text, "second\nit is noon")
	assert.NotContains(t, text, "first")
	assert.Equal(t, b.asked[1].MessagesAfter, r.MessagesAfter, "one took the place of one")
	b.returns()
	text, _ = b.compacted()
	assert.NotContains(t, text, "second")
	assert.Contains(t, text, "it is noon")
}

// What the view cannot take is left aside, those of the call before stay, and the report
// and the log say why.
func TestAfterCompaction_LeftAside(t *testing.T) {
	is := func(target any) func(error) bool {
		return func(err error) bool { return errors.As(err, target) }
	}
	for name, c := range map[string]struct {
		back func(convo.Report) []convo.Message
		is   func(error) bool
	}{
		"an invalid message": {func(convo.Report) []convo.Message { return []convo.Message{{Role: "x"}} }, is(new(*convo.MessageError))},
		"an open call":       {func(convo.Report) []convo.Message { return []convo.Message{convo.Assistant("", callOf("c"))} }, is(new(*convo.PairError))},
		"a panic":            {func(convo.Report) []convo.Message { panic("x") }, is(new(*convo.PanicError))},
		"too much":           {func(convo.Report) []convo.Message { return []convo.Message{convo.User(strings.Repeat("x", 3000))} }, is(new(*convo.LimitError))},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBringer(t)
			b.returns("before")
			b.compacted()
			b.back = c.back
			b.log.Reset()
			text, r := b.compacted()
			assert.Contains(t, text, "before")
			assert.True(t, r.Fits)
			assert.True(t, c.is(r.Cause), "%v", r.Cause)
			assert.Contains(t, fmt.Sprint(r), "; messages of AfterCompaction left aside: ")
			assert.True(t, strings.HasSuffix(fmt.Sprint(r), strings.TrimPrefix(r.Cause.Error(), "convo: ")), "%v", r.Cause)
			assert.NotContains(t, fmt.Sprint(r), "not all results cleared")
			assert.Contains(t, b.log.String(), "level=WARN")
			assert.Contains(t, b.log.String(), "messages of AfterCompaction left aside")
			_, r, err := b.Prepare(t.Context())
			require.NoError(t, err)
			assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
		})
	}
}

// The messages never make a request too large: where the floor does not fit with them,
// they leave, and come back if there is room.
func TestAfterCompaction_Yields(t *testing.T) {
	b := newBringer(t)
	b.returns(strings.Repeat("f", 1000))
	text, _ := b.compacted()
	require.Contains(t, text, "ffff")

	b.returns("shorter")
	mustAppend(t, b.History, convo.User(strings.Repeat("u", 2900)))
	s, r, err := b.Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.NotContains(t, b.text(s), "ffff")
	assert.Contains(t, b.text(s), "shorter")
	assert.LessOrEqual(t, r.TokensAfter, b.Status().Limit)

	// Where nothing else can leave, that alone is the edit.
	b = newBringer(t)
	b.returns(strings.Repeat("f", 1000))
	b.compacted()
	require.NoError(t, b.Pin(idsOf(b.Snapshot())...))
	room := b.Status().Limit - b.Status().Upper
	mustAppend(t, b.History, convo.User(strings.Repeat("u", room)))
	b.back = func(r convo.Report) []convo.Message {
		assert.Equal(t, "messages of AfterCompaction removed", fmt.Sprint(r)[strings.Index(fmt.Sprint(r), ": ")+2:])
		return nil
	}
	s, r, err = b.Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.NotContains(t, b.text(s), "ffff")

	// What cannot fit without them stays as it was, and the error names the other shares.
	b = newBringer(t)
	b.returns(strings.Repeat("f", 1000))
	b.compacted()
	mustAppend(t, b.History, convo.User(strings.Repeat("u", 4000)))
	_, _, err = b.Prepare(t.Context())
	floor, ok := errors.AsType[*convo.FloorError](err)
	require.True(t, ok, "%v", err)
	assert.Zero(t, floor.Ephemeral)
	assert.Contains(t, b.text(b.Snapshot()), "ffff")
}

// Each compaction asks for them, and no edit of the caller's own does. They are not saved.
func TestAfterCompaction_When(t *testing.T) {
	b := newBringer(t, convo.User("rules"))
	_, err := b.Compact(t.Context(), "")
	require.NoError(t, err)
	assert.Len(t, b.asked, 1)
	assert.Contains(t, b.text(b.Snapshot()), "rules")
	_, err = b.Apply(b.Snapshot(), convo.Edit{Summary: &convo.Summary{Text: "s"}})
	require.NoError(t, err)
	assert.Len(t, b.asked, 1)

	b.grow()
	require.True(t, b.CompactInBackground(t.Context()))
	_, err = b.Wait(t.Context())
	require.NoError(t, err)
	assert.Len(t, b.asked, 2)

	b.grow()
	_, _, err = b.Recover(t.Context(), b.Snapshot(), errors.New("prompt is too long: 5000 tokens > 4000 maximum"))
	require.NoError(t, err)
	assert.Len(t, b.asked, 3)

	var s convo.Snapshot
	data, err := json.Marshal(b.Snapshot())
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &s))
	for _, from := range []*convo.Snapshot{&s, b.Snapshot()} {
		h, err := convo.Restore(from, windowOf(4000, convo.Truncate{}))
		require.NoError(t, err)
		assert.NotContains(t, b.text(h.Snapshot()), "rules")
		assert.Equal(t, b.Snapshot().Tokens()-len("rules"), h.Snapshot().Tokens())
	}
}

// The report is delivered and the messages before stay, even if the function ends its
// goroutine or closes the History. It may append.
func TestAfterCompaction_Hostile(t *testing.T) {
	b := newBringer(t)
	b.returns("before")
	b.compacted()
	b.back = func(convo.Report) []convo.Message {
		runtime.Goexit()
		return nil
	}
	b.grow()
	require.True(t, b.CompactInBackground(t.Context()))
	r, err := b.Wait(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Len(t, b.told, 2)
	assert.Contains(t, b.text(b.Snapshot()), "before")

	b.back = func(convo.Report) []convo.Message {
		mustAppend(t, b.History, convo.User("one more"), convo.Assistant("yes"))
		return []convo.Message{convo.User("after")}
	}
	text, _ := b.compacted()
	assert.Contains(t, text, "one more\nafter")
	assert.Contains(t, text, "one more")

	b.back = func(convo.Report) []convo.Message {
		require.NoError(t, b.Close())
		return []convo.Message{convo.User("after")}
	}
	b.grow()
	_, r, err = b.Prepare(t.Context())
	require.ErrorIs(t, err, convo.ErrClosed)
	assert.NoError(t, r.Cause)
}

package wording_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/seed-c1b73e60/convo/internal/wording"
	"github.com/stretchr/testify/assert"
)

// The text names the largest share first, leaves out what would not help, and
// says how to take back what is in the way.
func TestFloor(t *testing.T) {
	for want, e := range map[string]*wording.Floor[string]{
		// Of the shares under 2 %, none is shown, unless there is no other.
		"system messages hold 1,040: SetSystem replaces them; the newest user message holds 20: Rewind takes it back; or raise Limits.Window": {
			System: 1040, Newest: 20, Ephemeral: 19, Tools: 1, NewestRole: "user"},
		"ephemeral messages hold 3: SetEphemeral replaces them; or raise Limits.Window": {Ephemeral: 3},

		// Followed in this order, the remedies take back no more than they say.
		"the newest user message holds 900: Rewind takes it back; " +
			"unanswered tool results hold 90: Rewind again takes them back; " +
			"other user messages of the two newest turns hold 80: that takes them back too; or raise Limits.Window": {
			Round: 90, Users: 80, Newest: 900, NewestRole: "user", RewindRound: 2, RewindUsers: 2},
		"unanswered tool results hold 900: Rewind(1), called 2 times, takes them back; " +
			"the newest user message holds 80: that takes it back too; " +
			"other user messages of the two newest turns hold 70: Rewind(1), called 3 times more, takes them back; or raise Limits.Window": {
			Round: 900, Users: 70, Newest: 80, NewestRole: "user", RewindRound: 2, RewindUsers: 5},
		"the arguments of unanswered calls hold 1,000: Rewind(1), called 2 times, takes them back; " +
			"unanswered tool results hold 80: that takes them back too; or raise Limits.Window": {
			Calls: 1000, Round: 80, NewestRole: "user", RewindRound: 2},
		"the arguments of the newest calls hold 1,000: Rewind takes them back; or raise Limits.Window": {
			Calls: 1000, NewestRole: "assistant"},
		"the newest assistant message holds 1,000: Rewind takes it back; or raise Limits.Window": {
			Newest: 1000, NewestRole: "assistant"},

		// What is queued would be appended by Rewind.
		"the newest assistant message and its results hold 1,000: call Unqueue, then Rewind takes it back; " +
			"the arguments of the newest calls hold 90: that takes them back too; " +
			"other user messages of the newest turn hold 80: Rewind again takes them back; or raise Limits.Window": {
			Newest: 1000, Calls: 90, Users: 80, NewestRole: "assistant", RewindUsers: 2, Queued: 1},

		// Limits.Tools does not make less what reports have shown.
		"tool definitions and the like hold 900: define fewer tools, and lower Limits.Tools; pinned exchanges hold 180: Unpin them; or use a larger Budget": {
			Tools: 900, Pinned: 180, Pool: true},
		"pinned exchanges hold 580: Unpin them; tool definitions and the like hold, by usage reports, 500: define fewer tools; or raise Limits.Window": {
			Tools: 500, Pinned: 580, ToolsReported: true},
	} {
		e.Floor, e.Limit = 1080, 1000
		assert.Equal(t, "cannot fit: 1,080 protected tokens exceed limit 1,000: "+want, e.String())
	}
}

func TestUsage(t *testing.T) {
	u := wording.Usage{Input: 12400, CacheRead: 11000, Output: 310}
	assert.Equal(t, "12,400 read (11,000 from the cache), 310 written", u.String())
	name, _, _ := u.Fault()
	assert.Empty(t, name)
	for _, tt := range []struct {
		u          wording.Usage
		name, want string
	}{
		{wording.Usage{Output: -1}, "Output", "0 or more"},
		{wording.Usage{Input: 3, CacheRead: 2, CacheWrite: 2}, "Input", "at least 4, CacheRead + CacheWrite, because Input includes cached tokens"},
		{wording.Usage{Input: 3, CacheRead: math.MaxInt, CacheWrite: 2}, "Input", "at least 9,223,372,036,854,775,807, CacheRead + CacheWrite, because Input includes cached tokens"},
		{wording.Usage{Output: 1, Reasoning: 2}, "Reasoning", "at most 1, Usage.Output, of which it is a part"},
	} {
		name, _, want := tt.u.Fault()
		assert.Equal(t, tt.name, name)
		assert.Equal(t, tt.want, want)
	}
}

func TestLargest(t *testing.T) {
	a, b, c := 5, 0, 1000
	assert.Equal(t, "c 1,000, a 5", wording.Largest([]string{"a", "b", "c"}, []*int{&a, &b, &c}))
}

func TestRoleError(t *testing.T) {
	for want, e := range map[string]wording.RoleError[string]{
		`message 2: role "user" may not be in an answer; give user messages to Queue, or append them when Do has returned; SetSystem takes system messages`: {Attempted: "user", Index: 2, Answer: true},
		`message 0: role "tool" may not come first; set Options.Roles to allow it`:                                                                          {Attempted: "tool"},
		`message 0: role no role may not follow "user"; set Options.Roles to allow it`:                                                                      {Previous: "user"},
	} {
		assert.Equal(t, want, e.String())
	}
}

type stop uint8

func (stop) String() string { return "odd" }

func TestUnfinished(t *testing.T) {
	assert.Equal(t, "the summary was cut off; raise the output limit of its model", wording.Unfinished(stop(1)))
	assert.Contains(t, wording.Unfinished(stop(5)), "was stopped")
	assert.Equal(t, "the summary has an unknown Stop: odd; want StopDone for one that is whole", wording.Unfinished(stop(6)))
}

func TestValue(t *testing.T) {
	assert.Equal(t, `Name is "a", want b`, wording.Value("Name", "a", "b"))
	assert.Equal(t, "Limits.High is -1,000, want 0 or more", wording.Value("Limits.High", -1000, "0 or more"))
	assert.Equal(t, "soft is 1.5, want less", wording.Value("soft", 1.5, "less"))
}

func TestOfLimit(t *testing.T) {
	assert.Equal(t, "1,200 tokens", wording.OfLimit(1200, 0))
	assert.Equal(t, "1,200 of 5,000 tokens", wording.OfLimit(1200, 5000))
}

func TestWritten(t *testing.T) {
	assert.Equal(t, " in 1,200 tokens", wording.Written(1200, "", 0, time.Second))
	assert.Equal(t, " in 9 tokens (1.5 s)", wording.Written(9, "", 1, 1500*time.Millisecond))
	assert.Equal(t, " in 9 tokens (haiku, 3 calls, 2.0 s)", wording.Written(9, "haiku", 3, 2*time.Second))
}

func TestLeftAside(t *testing.T) {
	full, down := errors.New("convo: it is full"), errors.New("convo: it is down")
	e := &wording.LeftAside{Err: full}
	assert.EqualError(t, e, "convo: messages of AfterCompaction left aside: it is full")
	assert.Equal(t, []error{full}, e.Unwrap())
	e.Cause = down
	assert.EqualError(t, e, "convo: messages of AfterCompaction left aside: it is full; it is down")
	assert.ErrorIs(t, e, down)
	assert.Equal(t, "messages of AfterCompaction left aside: it is full", e.Text())
}

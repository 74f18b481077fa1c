package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-c1b73e60/convo/recall"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/heaptest"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/session"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// words counts a token for each word, so that figures can be computed by hand. A message has
// four more.
var words = convo.TokenizerFunc(func(text string) int { return len(strings.Fields(text)) })

// of returns a message of so many tokens.
func of(role convo.Role, tokens int) convo.Message {
	return convo.Message{Role: role, Parts: []convo.Part{convo.Text(strings.Repeat("w ", tokens-4))}}
}

func event(msgs ...convo.Message) session.Event { return session.Event{Messages: msgs} }

func user(tokens int) session.Event { return event(of(convo.RoleUser, tokens)) }

func answer(tokens int) session.Event { return event(of(convo.RoleAssistant, tokens)) }

// mustRun replays a session, which must not fail.
func mustRun(t testing.TB, s *session.Session, o Options) *Report {
	t.Helper()
	r, err := Run(t.Context(), s, o)
	require.NoError(t, err)
	return r
}

// asText returns what the command prints for a report.
func asText(t testing.TB, r *Report) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, WriteText(&b, r, 80))
	return b.String()
}

// asPage returns the page for reports.
func asPage(t testing.TB, r *Report, all ...*Report) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, WriteHTML(&b, r, all))
	return b.String()
}

// notesOf returns the notes of a report, one in each line.
func notesOf(r *Report) string { return strings.Join(r.Notes(), "\n") }

func TestRun_ByHand(t *testing.T) {
	same := func(b Bill) map[Policy]Bill {
		return map[Policy]Bill{Recorded: b, Nothing: b, Trim: b, Convo: b}
	}
	grows := Bill{Largest: 410, Input: 780, Later: 670, Shared: 370, Cached: 370, Written: 410}
	for _, c := range []struct {
		name    string
		session session.Session
		options Options
		want    map[Policy]Bill
	}{
		{
			// requests of 10 + 100, 10 + 100 + 50 + 100 and 10 + 250 + 50 + 100
			"grows", session.Session{Events: []session.Event{user(100), answer(50), user(100), answer(50), user(100), answer(50)}},
			Options{Window: 1000, Overhead: 10}, same(grows),
		},
		{
			// the last recorded request is 10 + 30 + 100, of which 10 were in the one before
			"recorded compaction", session.Session{Events: []session.Event{
				user(100), answer(50), user(100), answer(50),
				{Compaction: &session.Compaction{View: []convo.Message{of(convo.RoleUser, 30)}}},
				user(100), answer(50),
			}},
			Options{Window: 1000, Overhead: 10}, map[Policy]Bill{
				Recorded: {Largest: 260, Input: 510, Compactions: 1, Rewrites: 1, Later: 400, Shared: 120, Cached: 120, Written: 390},
				Nothing:  grows, Trim: grows, Convo: grows,
			},
		},
		{
			// The window leaves 350 for a request. The third would be 420: system 20, the first
			// user message 100 and the newest 100 stay.
			"trim", session.Session{
				System: []convo.Message{of(convo.RoleSystem, 20)},
				Events: []session.Event{user(100), answer(50), user(100), answer(50), user(100), answer(50)},
			},
			Options{Window: 400}, map[Policy]Bill{
				Nothing: {Largest: 420, Input: 810, Over: 1, OverLimit: 1, Later: 690, Shared: 390, Cached: 390, Written: 420},
				Trim:    {Largest: 270, Input: 610, Compactions: 1, Rewrites: 1, Later: 490, Shared: 240, Cached: 240, Written: 370},
			},
		},
		{
			// nothing below 200 tokens is read or written
			"least cached", session.Session{
				System: []convo.Message{of(convo.RoleSystem, 20)},
				Events: []session.Event{user(100), answer(50), user(100), answer(50), user(100), answer(50)},
			},
			Options{Window: 400, CacheMin: 200}, map[Policy]Bill{
				Nothing: {Largest: 420, Input: 810, Over: 1, OverLimit: 1, Later: 690, Shared: 390, New: 120, Cached: 270, Written: 420},
				Trim:    {Largest: 270, Input: 610, Compactions: 1, Rewrites: 1, Later: 490, Shared: 240, New: 120, Written: 490},
			},
		},
		{
			"answers in a row are one answer within an event, and two in two events",
			session.Session{Events: []session.Event{user(100), event(of(convo.RoleAssistant, 10), of(convo.RoleAssistant, 20)), answer(30)}},
			Options{Window: 1000}, same(Bill{Largest: 130, Input: 230, Later: 130, Shared: 100, Cached: 100, Written: 130}),
		},
		{"no answer", session.Session{Events: []session.Event{user(100)}}, Options{Window: 1000}, same(Bill{})},
		{
			"the window of the file", session.Session{Window: 400, Events: []session.Event{user(300), answer(50), user(100), answer(9)}},
			Options{}, map[Policy]Bill{Nothing: {Largest: 450, Input: 750, Over: 1, OverLimit: 1, Later: 450, Shared: 300, Cached: 300, Written: 450}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.options.Tokenizer = words
			r := mustRun(t, &c.session, c.options)
			for p, want := range c.want {
				assert.Equal(t, want, *r.Policies[p], p)
			}
			consistent(t, r)
		})
	}
}

func TestRun_CompactionSizes(t *testing.T) {
	s := &session.Session{Events: []session.Event{
		user(100), answer(50), user(100), answer(50),
		{Compaction: &session.Compaction{Trigger: "auto", Before: 7000, After: 900, View: []convo.Message{of(convo.RoleUser, 30)}}},
		user(100), answer(50),
	}}
	r := mustRun(t, s, Options{Window: 1000, Overhead: 10, Tokenizer: words})
	assert.Equal(t, []Compaction{{Request: 2, Trigger: "auto", Before: 7000, After: 900, EstimatedBefore: 310, EstimatedAfter: 40, PrefixLost: 300, NextRecorded: 140, NextConvo: 410}}, r.Compactions)
}

func TestRun_Measured(t *testing.T) {
	first, second := answer(50), answer(50)
	first.Usage = &convo.Usage{Input: 500, CacheRead: 300, CacheWrite: 50, Output: 70}
	first.Model, second.Model = "known-1", "other"
	s := &session.Session{Events: []session.Event{user(100), first, user(100), second}}
	prices := &Prices{Currency: "EUR", Per: 1000, Models: map[string]Price{"known": {New: 1, Cached: 0.1, Written: 2, Output: 10}}}
	r := mustRun(t, s, Options{Window: 1000, Overhead: -1, Tokenizer: words, Prices: prices})
	// 150 × 1 + 300 × 0.1 + 50 × 2 + 70 × 10 for a thousand
	assert.InDelta(t, 0.98, r.Measured.Money, 1e-9)
	r.Measured.Money = 0
	assert.Equal(t, Measured{Requests: 1, Largest: 500, Input: 500, New: 150, Cached: 300, Written: 50, Output: 70}, *r.Measured)
	assert.Equal(t, Output{Measured: 70, Estimated: 50}, r.Output)
	assert.Equal(t, 400, r.Overhead, "500 measured, 100 estimated")
	assert.True(t, r.Derived)
	assert.EqualValues(t, 500, r.MeasuredEstimate)
	assert.Equal(t, []int{500, 0}, r.MeasuredSizes)
	assert.Equal(t, []string{"other"}, r.Unpriced)
	// the first request alone has prices: 500 written × 2 + 70 × 10
	assert.InDelta(t, 1.7, r.Policies[Nothing].Money, 1e-9)
}

func TestRun_Pause(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := &session.Session{Events: []session.Event{user(100), answer(50), answer(50), answer(50)}}
	for i, minutes := range []int{0, 0, 4, 10} {
		s.Events[i].Time = at.Add(time.Duration(minutes) * time.Minute)
	}
	r := mustRun(t, s, Options{Window: 1000, Tokenizer: words, CacheTTL: 5 * time.Minute})
	// requests of 100, 150 and 200; the last request finds an empty cache, and its beginning is the same
	assert.Equal(t, Bill{Largest: 200, Input: 450, Later: 350, Shared: 250, Cached: 100, Written: 350}, *r.Policies[Nothing])
}

func TestRun_Repeats(t *testing.T) {
	call := func(id, arguments string) session.Event {
		c := convo.ToolCall{ID: id, Name: "read", Arguments: arguments}
		return event(convo.Assistant("", c), convo.Result(c, "ok"))
	}
	s := &session.Session{Events: []session.Event{
		event(convo.User("go")), call("1", `{"path":"a","n":1}`), call("2", `{"n":1, "path":"a"}`), call("3", `{"path":"b"}`), call("4", "not JSON"),
		{Compaction: &session.Compaction{View: []convo.Message{convo.User("so far")}}},
		call("5", `{"path":"b"}`), call("6", `{"path":"c"}`), call("7", `{"path":"c"}`), call("8", "not JSON"),
	}}
	r := mustRun(t, s, Options{Window: 10_000})
	assert.Equal(t, 8, r.Calls)
	assert.Equal(t, 4, r.Repeats)
	assert.Equal(t, 2, r.Compactions[0].Repeats, "c was not called before the compaction")
}

func TestRun_Strings(t *testing.T) {
	read := convo.ToolCall{ID: "r", Name: "read", Arguments: `{}`}
	s := &session.Session{
		System: []convo.Message{convo.System("Work in /srv/checkout/main.")},
		Events: []session.Event{
			event(convo.User("See ORD-1001, ORD-1002, ORD-1003, ORD-1004 and /srv/checkout/main.")), event(convo.Assistant("Seen.")),
			{Compaction: &session.Compaction{
				Summary: "ORD-1001 is open.",
				View:    []convo.Message{convo.User("Summary: ORD-1001 is open."), convo.User("ORD-1002 stays.")},
			}},
			event(convo.Assistant("Again.", read)), event(convo.Result(read, "ORD-1004")),
			// 1001 is in the recorded summary, 1002 in both views, 1003 gone, 1004 brought back
			// by the result, 2000 new, and the path in the system text
			event(convo.Assistant("ORD-1001 ORD-1002 ORD-1003 ORD-1004 ORD-2000 /srv/checkout/main")),
			event(convo.Assistant("ORD-1001 ORD-1003")), // each string counts once
		},
	}
	r := mustRun(t, s, Options{Window: 10_000})
	assert.Equal(t, Strings{All: 2, Recorded: Where{Summary: 1, Gone: 1}, Convo: Where{View: 2}}, r.Compactions[0].Used)
	chance := r.Compactions[0].Chance
	assert.Equal(t, 2, chance.All)
	assert.Equal(t, Where{View: 2}, chance.Convo)
}

// At most so many strings of a session are looked for, however many compactions it has.
func TestRun_StringsOfManyCompactions(t *testing.T) {
	for _, compactions := range []int{120, 1200} {
		s := &session.Session{}
		all := 0
		for i := range compactions {
			var text strings.Builder
			for k := range 10 {
				fmt.Fprintf(&text, "ORD-%d ", 10_000+10*i+k)
			}
			s.Events = append(s.Events, event(convo.User(text.String())), answer(9),
				session.Event{Compaction: &session.Compaction{View: []convo.Message{convo.User("so far")}}},
				event(convo.Assistant(text.String())))
			all += 10
		}
		r := mustRun(t, s, Options{Window: 1 << 20})
		sought, more := 0, 0
		for _, c := range r.Compactions {
			sought += c.Used.All
			more += c.More
		}
		assert.LessOrEqual(t, sought, mostSought)
		assert.Greater(t, sought, mostSought*9/10)
		assert.Equal(t, all, sought+more)
	}
}

// TestRun_Recall has a window so small that convo also has to remove the result.
func TestRun_Recall(t *testing.T) {
	c := convo.ToolCall{ID: "r", Name: "read", Arguments: `{}`}
	var list strings.Builder
	for i := range 120 {
		fmt.Fprintf(&list, "the ledger of shop %d is kept at /srv/ledgers/%d/book_%d.db by clerk%dx\n", i, i, i, i)
	}
	s := &session.Session{Events: []session.Event{event(convo.User("List the ledgers.")), event(convo.Assistant("", c)), event(convo.Result(c, list.String())), event(convo.Assistant("Listed."))}}
	for range 30 {
		s.Events = append(s.Events, event(convo.User(strings.Repeat("and now for something else entirely ", 12))), event(convo.Assistant("yes")))
	}
	s.Events = append(s.Events,
		session.Event{Compaction: &session.Compaction{View: []convo.Message{convo.User("The ledgers were listed.")}}},
		event(convo.User("Where is that of shop 55?")), event(convo.Assistant("The ledger of shop 55 is kept at /srv/ledgers/55/book_55.db by a clerk.")))
	r := mustRun(t, s, Options{Window: 4000})
	require.Positive(t, r.Policies[Convo].Compactions)
	assert.Equal(t, Strings{All: 1, Recorded: Where{Gone: 1}, Convo: Where{Recall: 1}}, r.Compactions[0].Used)
	assert.Zero(t, r.Compactions[0].Used.Convo.Held(), "what can be recalled is not held")
}

// TestArchive_Answers compares the searches at the end with those of package recall at the time.
func TestArchive_Answers(t *testing.T) {
	for seed := range long.Or[uint64](1, 3) {
		r := rand.New(rand.NewPCG(seed, 1))
		var ix recall.Index
		var a archive
		h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 3000}, Roles: convo.Relaxed(), OnCompaction: func(report convo.Report) {
			ix.Observe(report)
			a.observe(report)
		}})
		require.NoError(t, err)
		say := func(words int) string {
			var b strings.Builder
			for range words {
				fmt.Fprintf(&b, "word%d ", r.IntN(30)*r.IntN(30))
			}
			return b.String()
		}
		var want, got []bool
		ask := func() {
			q := question{query: say(5), want: fmt.Sprintf("word%d ", r.IntN(900))}
			a.ask(q)
			want = append(want, slices.ContainsFunc(ix.Search(q.query, mostHits), func(hit recall.Hit) bool {
				return strings.Contains(said(&hit.Entry.Message), q.want)
			}))
		}
		ask() // before anything has left
		for i := range 150 {
			m := convo.User(say(1 + r.IntN(60)))
			if i%3 == 1 {
				c := convo.ToolCall{ID: "c", Name: "read", Arguments: `{"a":"` + say(3) + `\\n"}`}
				_, err = h.Append(convo.Assistant("", c))
				require.NoError(t, err)
				m = convo.Result(c, say(1+r.IntN(900))) // which may be cut
			}
			id, err := h.Append(m)
			require.NoError(t, err)
			if i%2 == 0 {
				a.appended(id, &m)
			}
			_, _, err = h.Prepare(t.Context())
			require.NoError(t, err)
			ask()
		}
		require.NoError(t, h.Close())
		require.NoError(t, a.answer(t.Context(), func(_ question, isFound bool) { got = append(got, isFound) }))
		assert.Equal(t, want, got)
		assert.Contains(t, got, true)
	}
}

// TestRun_Faults checks lists as they are recorded by the rules of each format.
func TestRun_Faults(t *testing.T) {
	const anthropic, chat, responses, gemini, bedrock = "Anthropic", "OpenAI (Chat Completions)", "OpenAI (Responses)", "Gemini", "Bedrock"
	call := func(id, name, arguments string) convo.ToolCall {
		return convo.ToolCall{ID: id, Name: name, Arguments: arguments}
	}
	c, c2, dotted, broken := call("c", "read", "{}"), call("c2", "read", "{}"), call("c", "fs.read", "{}"), call("c", "read", `{"a":`)
	image := convo.Media{MIME: "image/png", Data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"}
	many := convo.User("")
	many.Parts = slices.Repeat([]convo.Part{image}, 1600)
	for name, list := range map[string]struct {
		msgs []convo.Message
		want map[string]string // the rule by provider
	}{
		"nothing wrong": {[]convo.Message{convo.User("a", image), convo.Assistant("b", c, c2), convo.Result(c, "d"), convo.Result(c2, ""), convo.User("e"), convo.User("f"), convo.Assistant("g"), convo.User("h")}, nil},
		"a tool name": {[]convo.Message{convo.User("a"), convo.Assistant("", dotted), convo.Result(dotted, "b")}, map[string]string{
			anthropic: "name-pattern", responses: "name-pattern", bedrock: "name-pattern"}},
		"arguments": {[]convo.Message{convo.User("a"), convo.Assistant("", broken), convo.Result(broken, "b")}, map[string]string{
			anthropic: "input", gemini: "args", bedrock: "input"}},
		"a note": {[]convo.Message{convo.User("a"), convo.Assistant("b"), convo.System("c"), convo.User("d")}, map[string]string{
			anthropic: "system-place", gemini: "role", bedrock: "role"}},
		"a blank text":    {[]convo.Message{convo.User(" "), convo.Assistant("b"), convo.User("c")}, map[string]string{anthropic: "blank-text", bedrock: "blank-text"}},
		"no user message": {[]convo.Message{convo.Assistant("b"), convo.User("c")}, map[string]string{bedrock: "user-first"}},
		"many images":     {[]convo.Message{many}, map[string]string{anthropic: "media-count", chat: "media-count", responses: "media-count"}},
	} {
		s := &session.Session{}
		for _, m := range list.msgs {
			s.Events = append(s.Events, event(m))
		}
		s.Events = append(s.Events, answer(9))
		r := mustRun(t, s, Options{Window: 1 << 20})
		got := map[string]string(nil)
		for _, f := range r.Faults {
			if got == nil {
				got = map[string]string{}
			}
			got[f.Provider], _, _ = strings.Cut(f.Problem, " ")
			assert.Contains(t, notesOf(r), "This list, sent again as it is recorded, would be refused by "+f.Provider+": "+got[f.Provider]+" at ")
		}
		assert.Equal(t, list.want, got, name)
	}
}

// A call without a recorded result is open in the recorded list, though the replay answers it.
func TestRun_FaultsOfOpenCalls(t *testing.T) {
	const file = `[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"b"},{"role":"assistant","content":"d"}]`
	for s, err := range session.Read(strings.NewReader(file), "file", session.Options{}) {
		require.NoError(t, err)
		r := mustRun(t, s, Options{Window: 1000})
		assert.Len(t, r.Faults, len(plainFormats))
		for _, f := range r.Faults {
			assert.Contains(t, f.Problem, "unanswered-call", f.Provider)
		}
		assert.Contains(t, r.Notes(), "1 call has no result, and the replay answers it.")
	}

	// The replay also answers a call that is open in the events.
	s := &session.Session{Events: []session.Event{user(9), event(convo.Assistant("", convo.ToolCall{ID: "c", Name: "f", Arguments: "{}"})), user(9), answer(9)}}
	r := mustRun(t, s, Options{Window: 1000})
	assert.Len(t, r.Faults, len(plainFormats))
}

// A list that no provider takes for its length is not written out to be checked.
func TestRun_FaultsOfLongLists(t *testing.T) {
	s := &session.Session{Events: []session.Event{answer(9), user(30_000), answer(9)}}
	r := mustRun(t, s, Options{Window: 1000})
	assert.Empty(t, r.Faults)
	assert.Equal(t, 1, r.TooLong)
	assert.Contains(t, r.Notes(), "This list has more than 4 times the tokens of the window, so the rules of the formats are not checked.")

	view := []convo.Message{convo.Assistant("so far")}
	s.Events = append(s.Events, session.Event{Compaction: &session.Compaction{View: view}}, answer(9))
	r = mustRun(t, s, Options{Window: 1000})
	assert.Zero(t, r.TooLong)
	assert.NotEmpty(t, r.Faults, "what the compaction left is checked")
}

func TestTotal_Faults(t *testing.T) {
	fault := Fault{Provider: "Gemini", Lists: 1, Problem: "role at contents[0]: no"}
	one := &Report{Sessions: 1, Policies: emptyBills(), Faults: []Fault{fault}}
	total := Total([]*Report{one, {Sessions: 1, Policies: emptyBills(), TooLong: 1}, one})
	assert.Equal(t, []Fault{{Provider: "Gemini", Lists: 2, Problem: fault.Problem}}, total.Faults)
	assert.Equal(t, 1, one.Faults[0].Lists)
	assert.Contains(t, total.Notes(), "2 of 3 lists, sent again as they are recorded, would be refused by Gemini. The first: role at contents[0]: no.")
	assert.Contains(t, total.Notes(), "1 of 3 lists has more than 4 times the tokens of the window, so the rules of the formats are not checked.")
}

func TestRun_Errors(t *testing.T) {
	s := &session.Session{ID: "abc", Events: []session.Event{user(9), answer(9)}}
	_, err := Run(t.Context(), s, Options{})
	var missing *WindowError
	require.ErrorAs(t, err, &missing)
	assert.EqualError(t, err, "replay: abc: the context window is not in the file; set it with -window")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Run(ctx, s, Options{Window: 1000})
	assert.ErrorIs(t, err, context.Canceled)
}

func TestRun_Refused(t *testing.T) {
	orphan := convo.Result(convo.ToolCall{ID: "none", Name: "x"}, "lost")
	open := convo.ToolCall{ID: "open", Name: "x", Arguments: "{}"}
	s := &session.Session{Events: []session.Event{
		user(9), event(orphan), answer(9), event(convo.Assistant("", open)), answer(9), event(convo.Message{Role: "narrator"}), answer(9),
	}}
	r := mustRun(t, s, Options{Window: 1000})
	assert.Equal(t, 2, r.Refused)
	assert.Equal(t, 4, r.Requests)
	assert.Equal(t, r.Policies[Nothing].Input, r.Policies[Convo].Input, "the open call is answered for every policy")
	assert.Contains(t, notesOf(r), "2 messages are left out for every policy")
}

// A model without prices is not said to be free.
func TestNotes_NoPrices(t *testing.T) {
	s := &session.Session{Events: []session.Event{user(9), answer(9)}}
	prices, err := ReadPrices(strings.NewReader(`{"currency":"USD","models":{"known":{"new":1000}}}`))
	require.NoError(t, err)
	for model, want := range map[string]string{"known": `USD +0\.\d+ +0\.`, "other": "USD +– +– +– +–\n"} {
		s.Events[1].Model = model
		r := mustRun(t, s, Options{Window: 4000, Prices: prices})
		assert.Regexp(t, want, asText(t, r), model)
	}
}

// What a reader left out is said, since it may have cost money.
func TestNotes_LeftOut(t *testing.T) {
	s := &session.Session{Events: []session.Event{user(9), answer(9)}, Counts: session.Counts{Records: 9, Sidechains: 2, Dropped: 1, Usages: 1}}
	r := mustRun(t, s, Options{Window: 4000})
	notes := notesOf(r)
	assert.Contains(t, notes, "2 messages of subagents are in no figure.\n")
	assert.Contains(t, notes, "1 message repeated, empty or on another branch is in no figure.\n")
	assert.Contains(t, notes, "1 report of usage is left out,")
	notes = notesOf(Total([]*Report{r, r}))
	assert.Contains(t, notes, "4 messages of subagents are in no figure.\n")
	assert.Contains(t, notes, "2 messages repeated, empty or on another branch are in no figure.\n")
	assert.Contains(t, notes, "2 reports of usage are left out,")
}

// The output hides none of these things.
func TestNotes_Caveats(t *testing.T) {
	s := randomSession(rand.New(rand.NewPCG(5, 3)), 300)
	s.Events = append(s.Events, session.Event{Compaction: &session.Compaction{Hidden: true}}, user(9), answer(9))
	for i := range s.Events {
		if len(s.Events[i].Messages) > 0 && s.Events[i].Messages[0].Role == convo.RoleAssistant && i%2 == 0 {
			s.Events[i].Usage = &convo.Usage{Input: 5000, Output: 10}
		}
	}
	r := mustRun(t, s, Options{Window: 4000, Overhead: 800})
	require.Positive(t, r.Policies[Convo].Compactions)
	text := asText(t, r)
	for name, out := range map[string]string{"text": text, "html": asPage(t, r, r)} {
		out = strings.Join(strings.Fields(out), " ")
		for _, caveat := range []string{
			"Recorded answers stay as they were",
			"not what the model would have done",
			"All other sizes are estimates",
			"Tools are not in the file; taken as 800 tokens.",
			"its summaries are extracts made without a model, and hold nothing of the summaries that were recorded",
			"The call that wrote a recorded compaction is not in the file: its tokens and its price are in no figure.",
			"more can be recalled if the host offers it",
			"drawn by chance",
			"A larger request holds more of them.",
			"The next request held",
			"The counts are biased: a model that forgot a string cannot name it. They say nothing about outcomes.",
			"1 compaction left something that only the provider can read",
			"one made before.",
		} {
			assert.True(t, strings.Contains(out, caveat), "%s: %s", name, caveat)
		}
		for _, claim := range []string{"saved", "saves", "better", "would have answered", "fewer steps"} {
			assert.False(t, strings.Contains(out, claim), "%s: %s", name, claim)
		}
	}
	// sizes that are not measured are never called so
	for line := range strings.Lines(text) {
		if strings.Contains(line, "measured") && strings.Contains(line, none) {
			assert.Equal(t, 3, strings.Count(line, none), line)
		}
	}
}

func TestWriteText_Width(t *testing.T) {
	s := &session.Session{Format: "codex", Events: []session.Event{user(9)}}
	for range 20 {
		s.Events = append(s.Events, event(convo.User(strings.Repeat("word ", 1000))), event(convo.Assistant("yes")))
	}
	r := mustRun(t, s, Options{Window: 200_000})
	r.Name = strings.Repeat("name-", 40)
	r.Policies[Nothing].Input += 2_000_000_000
	text := asText(t, r)
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "name-") {
			assert.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), 80, line)
		}
	}
	assert.Contains(t, text, " M ", "the total of nothing")
}

func TestWarning(t *testing.T) {
	bills := Total(nil).Policies
	r := Total([]*Report{{Records: 100, Unknown: 1, Policies: bills}})
	assert.False(t, r.NotUnderstood())
	assert.Empty(t, r.Warning())
	assert.Contains(t, notesOf(r), "1 of 100 records was not understood and is in no figure.")
	r = Total([]*Report{{Records: 200, Unknown: 2, Policies: bills}})
	assert.Contains(t, notesOf(r), "2 of 200 records were not understood and are in no figure.")
	r = Total([]*Report{{Records: 1, Unknown: 1, Policies: bills}})
	assert.Contains(t, r.Warning(), "1 of 1 record (100.0 %) was not")
	r = Total([]*Report{{Records: 99, Unknown: 1, Policies: bills}})
	assert.True(t, r.NotUnderstood())
	assert.Regexp(t, `^1 of 99 records \(1\.0 %\) was not understood and is`, asText(t, r))
}

// Where what was measured differs by more than 20 % from what the replay takes a request to hold,
// that is said first, with the request that differs most.
func TestWarning_Contradicted(t *testing.T) {
	measured := func(sizes ...int) *Report {
		s := &session.Session{Window: 100_000}
		for _, size := range sizes {
			a := answer(10)
			a.Usage = &convo.Usage{Input: size, Output: 10}
			s.Events = append(s.Events, user(1000), a)
		}
		return mustRun(t, s, Options{Overhead: -1, Tokenizer: words})
	}
	fits := measured(1000, 2100, 3600)
	assert.Empty(t, fits.Warning())
	one := measured(1000, 2100, 1500)
	assert.Equal(t, 1, one.Contradicted)
	assert.Contains(t, one.Warning(), "1 of 3 measured requests differs by more than 20 % from what the replay takes it to hold: request 3 had 1,500 tokens, and is estimated at 3,020.")
	assert.True(t, strings.HasPrefix(asText(t, one), one.Warning()[:40]))
	two := measured(1000, 9000, 30_000)
	total := Total([]*Report{fits, one, two})
	assert.Equal(t, 3, total.Contradicted)
	assert.Contains(t, total.Warning(), "3 of 9 measured requests differ by more than 20 % from what the replay takes them to hold: one had 30,000 tokens, and is estimated at 3,020.")
	total.Unknown, total.Records = 1, 1
	assert.Regexp(t, `^1 of 1 record .*\. 3 of 9 measured`, total.Warning())
	assert.Empty(t, measured().Warning())
}

// Sessions with other overheads have one window.
func TestTotal_Overheads(t *testing.T) {
	total := Total([]*Report{{Window: 9, Overhead: 1, Policies: emptyBills()}, {Window: 9, Overhead: 2, Policies: emptyBills()}})
	assert.True(t, total.OverheadsDiffer)
	assert.Contains(t, total.title(), ", window 9,")
	assert.Contains(t, notesOf(total), "up to 2 tokens")
}

// Tools that some sessions hold are not said to be in none.
func TestTotal_SomeLack(t *testing.T) {
	with, without := &Report{HasSystem: true, HasTools: true, Policies: emptyBills()}, &Report{HasSystem: true, Policies: emptyBills()}
	for _, reports := range [][]*Report{{with, without, without}, {without, without, with}} {
		assert.Contains(t, notesOf(Total(reports)), "Tools are not in every session; taken as")
	}
	assert.Contains(t, notesOf(Total([]*Report{without, without})), "Tools are not in the file; taken as")
}

func emptyBills() map[Policy]*Bill {
	bills := map[Policy]*Bill{}
	for _, p := range Policies {
		bills[p] = &Bill{}
	}
	return bills
}

func TestTotal(t *testing.T) {
	var reports []*Report
	for seed := range uint64(3) {
		r := mustRun(t, randomSession(rand.New(rand.NewPCG(seed, 8)), 120), Options{Window: 3000 + 1000*int(seed)})
		reports = append(reports, r)
	}
	total := Total(reports)
	consistent(t, total)
	assert.Equal(t, 3, total.Sessions)
	assert.True(t, total.WindowsDiffer)
	assert.Contains(t, total.title(), "windows up to 5,000")
	assert.Equal(t, 5000, total.Window)
	for _, p := range Policies {
		var want Bill
		for _, r := range reports {
			b := *r.Policies[p]
			want.plus(&b)
		}
		assert.Equal(t, want, *total.Policies[p])
		assert.Equal(t, reports[0].Policies[p].Input+reports[1].Policies[p].Input+reports[2].Policies[p].Input, total.Policies[p].Input)
	}
	assert.Len(t, total.Compactions, len(reports[0].Compactions)+len(reports[1].Compactions)+len(reports[2].Compactions))
}

func TestRun_Deterministic(t *testing.T) {
	var first string
	for range 3 {
		r := mustRun(t, randomSession(rand.New(rand.NewPCG(5, 3)), 300), Options{Window: 4000, Overhead: -1})
		data, err := json.Marshal(r)
		require.NoError(t, err)
		all := string(data) + asPage(t, r, r)
		if first == "" {
			first = all
		}
		require.Equal(t, first, all)
	}
}

func TestOutput_Hostile(t *testing.T) {
	evil := "\x1b[2J\x07</title><script>alert(1)</script>\u202e\" onload=\"x"
	s := &session.Session{ID: evil, Format: evil, Events: []session.Event{
		event(convo.User(evil)), {Messages: []convo.Message{convo.Assistant(evil)}, Model: evil},
		{Compaction: &session.Compaction{Trigger: evil, Summary: evil, View: []convo.Message{convo.User(evil)}}},
		event(convo.User(evil)), {Messages: []convo.Message{convo.Assistant(evil)}, Model: evil},
	}}
	r := mustRun(t, s, Options{Window: 1000, Prices: &Prices{Currency: "<b>\x1b", Per: 1, Models: map[string]Price{"x": {}}}})
	r.Name = evil
	r.Faults = []Fault{{Provider: "X", Lists: 1, Problem: evil}}
	page := asPage(t, Total([]*Report{r, r}), r, r)
	for _, out := range []string{asText(t, r), page} {
		assert.NotRegexp(t, "[\x1b\x07\u202e]", out)
	}
	assert.NotRegexp(t, `(?i)<script|<b>|" onload|http:`, page, "the page loads nothing")
	assert.Contains(t, page, "default-src 'none'")
}

// A scale has a few lines, at round numbers.
func TestTick(t *testing.T) {
	for most, want := range map[float64]float64{0: 1, -3: 1, 0.05: 0.01, 0.7: 0.1, 1: 0.2, 4: 1, 9: 1, 100: 20, 240: 50, 4719: 1000, 700_000: 100_000} {
		assert.InDelta(t, want, tick(most), want/1000, most)
	}
}

func TestPause(t *testing.T) {
	for d, want := range map[time.Duration]string{time.Hour: "1h", 5 * time.Minute: "5m", 30 * time.Second: "30s", 90 * time.Second: "1m30s", 70 * time.Minute: "70m", time.Millisecond: "1ms", 1500 * time.Millisecond: "2s"} {
		assert.Equal(t, want, pause(d))
	}
}

func TestReadPrices(t *testing.T) {
	p, err := ReadPrices(strings.NewReader(`{"currency":"USD","per":1000,"models":{"a":{"new":1},"ab":{"new":2},"":{"new":3}}}`))
	require.NoError(t, err)
	for model, want := range map[string]float64{"a": 0.001, "abc": 0.002, "z": 0.003, "": 0.003} {
		got, ok := p.For(model)
		assert.True(t, ok)
		assert.InDelta(t, want, got.New, 1e-12, model)
	}
	p, err = ReadPrices(strings.NewReader(`{"models":{"a":{"new":1}}}`))
	require.NoError(t, err)
	assert.InDelta(t, 1e6, p.Per, 0)
	_, ok := p.For("b")
	assert.False(t, ok)
	for text, want := range map[string]string{
		``:                            "the file is empty",
		`[]`:                          "the file is of the type array; want an object",
		`{"models":[]}`:               "models is of the type array; want an object",
		`{"currency":1}`:              "currency is of the type number; want a string",
		`{"per":"1"}`:                 "per is of the type string; want a number",
		`{"per":1e999}`:               "per is of the type number 1e999; want a number",
		`{"models":{}}`:               "models is empty",
		`{"models":{"a":{"in":1}}}`:   "unknown field",
		`{"models":{"a":{"new":-1}}}`: "want 0 or more",
		`{"per":1e-300,"models":{"a":{"output":1e300}}}`: "want at most 1e+06 for one token",
		`{"per":0,"models":{"a":{}}}`:                    "per is 0",
		`{"models":{"a":{}}} {}`:                         "nothing after it",
		`{"currency":"dollars!!","models":{"":{}}}`:      "currency has 9 bytes",
	} {
		_, err := ReadPrices(strings.NewReader(text))
		assert.ErrorContains(t, err, want, text)
	}
}

// FuzzRun replays sessions of all shapes. Figures must stay consistent.
func FuzzRun(f *testing.F) {
	f.Add([]byte("uauauauac uaua"))
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 200, 201, 202, 255, 254, 3, 1, 4, 1, 5, 9})
	f.Add(bytes.Repeat([]byte{1, 2, 80, 3, 90, 0, 100, 7, 1, 9}, 40))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4000 {
			data = data[:4000]
		}
		s, o := shaped(data)
		r, err := Run(t.Context(), s, o)
		if err != nil {
			var missing *WindowError
			require.True(t, errors.As(err, &missing) && o.Window == 0 && s.Window == 0, err)
			return
		}
		consistent(t, r)
		asText(t, r)
		asPage(t, Total([]*Report{r, r}), r, r)
	})
}

// shaped makes a session of bytes.
func shaped(data []byte) (*session.Session, Options) {
	next := func() int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b)
	}
	text := func() string {
		n := next()
		return strings.Repeat(fmt.Sprintf("say \"two words\" a/b/c%d.go \xff\x1b ", n%17), n%40)
	}
	s := &session.Session{ID: text(), Window: next() % 3 * 400, Format: []string{"claude-code", "codex", "pi"}[next()%3]}
	o := Options{Window: next() % 4 * 600, Overhead: next()%5*100 - 100, CacheMin: next() * 8, CacheTTL: time.Duration(next()) * time.Second}
	if next()%2 == 0 {
		s.System = []convo.Message{convo.System("be brief " + text())}
	}
	at := time.Unix(0, 0)
	msg := func() convo.Message {
		call := convo.ToolCall{ID: fmt.Sprint(next() % 4), Name: "read", Arguments: []string{"{}", `{"p":"a/b/c1.go"}`, "no", ""}[next()%4]}
		switch next() % 9 {
		case 0, 1:
			return convo.User(text())
		case 2, 3:
			return convo.Assistant(text())
		case 4:
			return convo.Assistant(text(), call)
		case 5, 6:
			return convo.Result(call, text())
		case 7:
			return convo.System(text())
		}
		return convo.Message{Role: convo.Role(text())}
	}
	for len(data) > 0 {
		e := session.Event{Model: text()}
		if next()%3 > 0 {
			at = at.Add(time.Duration(next()) * time.Second)
			e.Time = at
		}
		if next()%8 == 0 {
			c := &session.Compaction{Summary: text(), Hidden: next()%2 == 0, Before: next()}
			for range next() % 5 {
				c.View = append(c.View, msg())
			}
			e.Compaction = c
		} else {
			for range 1 + next()%3 {
				e.Messages = append(e.Messages, msg())
			}
			if next()%2 == 0 {
				e.Usage = &convo.Usage{Input: next()*20 - 100, CacheRead: next() * 10, CacheWrite: next() * 5, Output: next() - 20}
			}
		}
		s.Events = append(s.Events, e)
	}
	return s, o
}

// longSession returns a session with n exchanges, and a compaction after each so many of them,
// if that is not 0.
func longSession(n, compaction int) (s *session.Session, size int) {
	r := rand.New(rand.NewPCG(1, 1))
	s = &session.Session{Events: []session.Event{event(convo.User("go"))}}
	for i := range n {
		c := convo.ToolCall{ID: fmt.Sprint(i), Name: "read", Arguments: fmt.Sprintf(`{"path":"src/dir/file_%d.go"}`, r.IntN(n))}
		says := fmt.Sprintf("I look at src/dir/file_%d.go", r.IntN(n))
		result := strings.Repeat(fmt.Sprintf("line of src/dir/file_%d.go with some words\n", r.IntN(n)), 20)
		size += len(c.Arguments) + len(says) + len(result)
		s.Events = append(s.Events, event(convo.Assistant(says, c)), event(convo.Result(c, result)))
		if compaction > 0 && i%compaction == compaction-1 {
			s.Events = append(s.Events, session.Event{Compaction: &session.Compaction{Summary: "so far", View: []convo.Message{convo.User("so far")}}})
		}
	}
	return s, size
}

// TestRun_Memory bounds the memory that a replay takes besides the session to two thirds of the
// text and 5 MB. Garbage is not counted, which depends on the load of the machine.
func TestRun_Memory(t *testing.T) {
	if !heaptest.Alone(t) {
		return
	}
	for _, compaction := range []int{0, 250} {
		s, size := longSession(long.Or(2500, 10_000), compaction)
		peak := heaptest.Live(func() {
			_ = mustRun(t, s, Options{Window: 100_000})
		})
		t.Logf("a compaction after each %d exchanges: %.1f MB of text, peak %.2f times that", compaction, float64(size)/1e6, float64(peak)/float64(size))
		assert.Less(t, peak, uint64(size*2/3+5<<20), "a compaction after each %d exchanges", compaction)
	}
}

// BenchmarkRun shows that the time for an exchange does not grow with their number.
func BenchmarkRun(b *testing.B) {
	for _, n := range []int{1000, 2000, 4000, 8000} {
		for _, compactions := range []int{0, 1} {
			b.Run(fmt.Sprintf("%d exchanges, compactions %t", n, compactions > 0), func(b *testing.B) {
				s, _ := longSession(n, compactions*250)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Run(b.Context(), s, Options{Window: 100_000, CacheMin: 1024}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/exchange")
			})
		}
	}
}

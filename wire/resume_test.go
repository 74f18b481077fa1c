package wire_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
	"github.com/seed-c1b73e60/convo/wire"
)

// resumeFormats are formats for which everything that is bound is sent.
var resumeFormats = map[string]wire.Format{
	"anthropic": wire.Anthropic{Model: sealModels[0], Cache: true},
	"chat":      wire.OpenAIChat{},
	"responses": wire.OpenAIResponses{},
	"gemini":    wire.Gemini{},
	"converse":  wire.Converse{Model: sealModels[0]},
}

// A rowHost is a program that keeps the messages itself, and of a History only what it has
// decided.
type rowHost struct {
	t    *testing.T
	rnd  *rand.Rand
	opts convo.Options
	h    *convo.History

	rows   []convo.Message
	ids    map[string]convo.ID // of the entries of rows, by their keys
	left   convo.ID            // the newest entry that had left the view when the program started
	n      int                 // rows made so far
	stored []byte              // Decisions
	when   uint64              // Status.Decisions when they were stored
	plain  bool                // nothing but rows since
	report convo.Report        // of the last edit

	system, tools, ephemeral int

	far int // rollbacks to what had left the view
}

func newRowHost(t *testing.T, seed uint64) *rowHost {
	r := &rowHost{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), ids: make(map[string]convo.ID)}
	spills := 0
	r.opts = convo.Options{
		Limits: convo.Limits{Window: 3000 + 500*r.rnd.IntN(8)}, Roles: convo.Relaxed(), TagKey: "k",
		Key: func(m convo.Message) string { return r.newKey() },
	}
	if r.rnd.IntN(2) == 0 {
		r.opts.Spill = func(context.Context, convo.ToolResult) (string, error) {
			spills++
			return fmt.Sprintf("file-%d", spills), nil
		}
	}
	var err error
	r.h, err = convo.New(&r.opts)
	require.NoError(t, err)
	r.surround(r.h)
	r.decide()
	return r
}

func (r *rowHost) newKey() string {
	r.n++
	return fmt.Sprintf("m%d", r.n)
}

// surround sets what is not part of Decisions.
func (r *rowHost) surround(h *convo.History) {
	require.NoError(r.t, h.SetSystem(convo.System(fmt.Sprintf("guide %d", r.system))))
	require.NoError(r.t, h.SetTools(convo.Tool{Name: "read", Description: fmt.Sprint("version ", r.tools), Schema: `{"type":"object"}`}))
	var msgs []convo.Message
	if r.ephemeral > 0 {
		msgs = append(msgs, convo.User(fmt.Sprint("it is ", r.ephemeral)))
	}
	require.NoError(r.t, h.SetEphemeral(msgs...))
}

// decide stores the decisions if there are new ones.
func (r *rowHost) decide() {
	now := r.h.Status().Decisions
	if r.stored != nil && now == r.when {
		return
	}
	var err error
	r.stored, err = r.h.Decisions()
	require.NoError(r.t, err)
	r.when, r.plain = now, true
}

// say appends a message, and the row of it.
func (r *rowHost) say(m convo.Message) {
	m.Key = r.newKey()
	mustAppend(r.t, r.h, m)
	r.rows = append(r.rows, m)
}

func (r *rowHost) text(n int) string {
	return strings.TrimSpace(strings.Repeat(fmt.Sprintf("word%d ", r.rnd.IntN(50)), 1+r.rnd.IntN(n)))
}

func (r *rowHost) answer(calls int) {
	if r.rnd.IntN(2) == 0 {
		at, _, err := r.h.Prepare(r.t.Context())
		if err != nil {
			return
		}
		if r.rnd.IntN(2) == 0 {
			require.NoError(r.t, r.h.RecordUsage(at, convo.Usage{Input: at.Tokens() + 40 + r.rnd.IntN(30), Output: 9}))
			r.plain = false
		}
		r.decide()
	}
	m := convo.Assistant(r.text(30))
	m.Origin = convo.Origin{Format: wire.FormatAnthropic, Model: sealModels[0]}
	if r.rnd.IntN(3) > 0 {
		m = thoughts.In(m, convo.Reasoning{Text: "hm", Signature: fmt.Sprintf("c2ln%04d", r.rnd.IntN(10000))})
	}
	for range calls {
		m.Parts = append(m.Parts, convo.ToolCall{ID: fmt.Sprintf("toolu_%d_%d", r.n, len(m.Parts)), Name: "read", Arguments: `{"n":1.0}`})
	}
	r.say(m)
}

func (r *rowHost) results() {
	for _, c := range openCalls(r.h.Snapshot()) {
		if r.rnd.IntN(5) == 0 {
			continue
		}
		n := 40
		if r.rnd.IntN(4) == 0 {
			n = 1200
		}
		r.say(convo.Result(c, r.text(n)))
	}
}

// act does something at random.
func (r *rowHost) act() {
	t, h := r.t, r.h
	open := h.Status().OpenCalls > 0
	exchanges := slices.Collect(h.Snapshot().Exchanges())
	switch k := r.rnd.IntN(31); {
	case k == 26:
		m := convo.User(r.text(9))
		if m.Key = r.newKey(); open && h.Status().Queued == 0 && r.rnd.IntN(2) == 0 {
			r.rows = append(r.rows, m) // when it is typed, and not when it is delivered
		}
		require.NoError(t, h.Queue(m))
	case k == 27:
		r.drop(h.Unqueue())
	case k == 28:
		require.NoError(t, h.SetModel(fmt.Sprint("model ", r.rnd.IntN(2)), convo.Limits{Window: 3000 + 500*r.rnd.IntN(8)}))
	case k == 29 && r.rnd.IntN(4) == 0:
		_ = thoughts.Refuse(r.t.Context(), h)
	case k == 30 && !open:
		r.request()
	case open && k < 18:
		r.results()
	case open && k == 18:
		_, err := h.AnswerOpenCalls("stopped")
		require.NoError(t, err)
	case k < 5 && !open:
		r.say(convo.User(r.text(60)))
	case k < 9 && !open:
		r.answer(0)
	case k < 15 && !open:
		r.answer(1 + r.rnd.IntN(3))
	case k == 15 && !open && h.Status().Entries > h.Status().System:
		r.say(convo.System("note " + r.text(5)))
	case k == 16 && len(exchanges) > 0:
		_ = h.Pin(exchanges[r.rnd.IntN(len(exchanges))].IDs()[0])
	case k == 17 && len(h.Snapshot().Pinned()) > 0:
		require.NoError(t, h.Unpin(h.Snapshot().Pinned()[0]))
	case k == 18:
		r.system = r.rnd.IntN(2)
		r.surround(h)
	case k == 19:
		r.tools, r.ephemeral = r.rnd.IntN(2), r.rnd.IntN(3)
		r.surround(h)
	case k < 23:
		r.compact()
	case k == 23:
		r.takeBack()
	case k == 24 && len(exchanges) > 2:
		e, _ := h.Snapshot().Find(exchanges[r.rnd.IntN(len(exchanges)-1)].IDs()[0])
		if e.Message.Role == convo.RoleUser {
			_, _ = h.Apply(h.Snapshot(), convo.Edit{Rewrite: []convo.Rewrite{{ID: e.ID, Parts: []convo.Part{convo.Text("rewritten")}}}})
		}
	case k == 25 && !open:
		_ = h.Undo(r.report)
	}
	r.sync()
	r.decide()
}

// request has Do make a request. Its answer may be for a view that has changed since.
func (r *rowHost) request() {
	if s := r.h.Snapshot(); s.Len() == 0 {
		return
	}
	_, _ = r.h.Do(r.t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		if r.rnd.IntN(3) == 0 {
			r.compact()
			r.sync()
			r.decide()
			r.same(r.resume(), false)
		}
		m := thoughts.In(convo.Assistant(r.text(9)), convo.Reasoning{Text: "hm", Signature: "c2lnZG8x"})
		m.Origin = convo.Origin{Format: wire.FormatAnthropic, Model: sealModels[0]}
		return convo.Reply{Messages: []convo.Message{m}}, nil
	})
	r.plain = false
}

// sync makes rows of messages that came into the view by themselves.
func (r *rowHost) sync() {
	known := make(map[string]bool)
	for _, m := range r.rows {
		known[m.Key] = true
	}
	for _, e := range r.h.Snapshot().All() {
		key := e.Message.Key
		if key != "" && !known[key] {
			r.rows = append(r.rows, e.Message)
		}
		r.ids[key] = e.ID
	}
}

func (r *rowHost) compact() {
	all := []convo.CompactionStrategy{
		convo.Truncate{}, convo.ClearToolResults{KeepLast: 1, MinFree: -1}, convo.Summarize{With: convo.Extract{}}, convo.ClearThinking{}, convo.SlidingWindow{KeepLast: 2},
		convo.Chain(convo.ClearToolResults{}, convo.Summarize{With: convo.Extract{}}, convo.Truncate{}),
	}
	s := r.h.Snapshot()
	e, err := all[r.rnd.IntN(len(all))].Compact(r.t.Context(), s, convo.Goal{Target: s.Tokens() * (1 + r.rnd.IntN(3)) / 4})
	if err == nil {
		r.report, _ = r.h.Apply(s, e)
	}
}

// takeBack rolls back to an earlier entry, which may have left the view since the program
// started, and deletes the rows of what was taken back.
func (r *rowHost) takeBack() {
	s := r.h.Snapshot()
	if s.Len() < 3 {
		return
	}
	e, _ := s.At(s.Len() - 1 - r.rnd.IntN(min(3, s.Len()-1)))
	if ids := r.idsLeft(r.left); len(ids) > 0 && r.rnd.IntN(2) == 0 {
		e.ID = ids[r.rnd.IntN(len(ids))]
		r.far++
	}
	if r.h.RewindTo(e.ID) != nil {
		return
	}
	r.sync()
	s = r.h.Snapshot()
	r.rows = slices.DeleteFunc(r.rows, func(row convo.Message) bool { return s.TakenBack(r.ids[row.Key]) })
}

// idsLeft returns the entries of rows, from one on, that have left the view.
func (r *rowHost) idsLeft(from convo.ID) (ids []convo.ID) {
	s := r.h.Snapshot()
	for _, row := range r.rows {
		id := r.ids[row.Key]
		if _, shown := s.Find(id); id >= max(from, 1) && !shown {
			ids = append(ids, id)
		}
	}
	return ids
}

// rowsOf returns the rows up to the newest that a view holds.
func rowsOf(rows []convo.Message, s *convo.Snapshot) []convo.Message {
	last := -1
	for _, e := range s.All() {
		last = max(last, slices.IndexFunc(rows, func(m convo.Message) bool { return m.Key == e.Message.Key }))
	}
	return rows[:last+1]
}

// difference shows where two requests differ first.
func difference(want, got string) string {
	i := 0
	for i < min(len(want), len(got)) && want[i] == got[i] {
		i++
	}
	i = max(i-100, 0)
	return fmt.Sprintf("want\n%.400s\nhave\n%.400s", want[i:], got[i:])
}

// drop deletes the rows of messages.
func (r *rowHost) drop(msgs []convo.Message) {
	r.rows = slices.DeleteFunc(r.rows, func(row convo.Message) bool {
		return slices.ContainsFunc(msgs, func(m convo.Message) bool { return m.Key == row.Key })
	})
}

// needed yields what d needs of rows.
func needed(d *convo.Decisions, rows []convo.Message) iter.Seq2[convo.Message, error] {
	keys, from := d.Needs()
	return func(yield func(convo.Message, error) bool) {
		begun := from == ""
		for _, m := range rows {
			if begun = begun || m.Key == from; begun || slices.Contains(keys, m.Key) {
				if !yield(m, nil) {
					return
				}
			}
		}
	}
}

// resume resumes from the stored decisions.
func (r *rowHost) resume() *convo.History {
	d, err := convo.ReadDecisions(r.stored)
	require.NoError(r.t, err)
	h, err := convo.Resume(d, needed(d, r.rows), &r.opts)
	if wrong := new(convo.RowError); errors.As(err, &wrong) {
		for _, m := range r.rows {
			if m.Key == wrong.Key {
				r.t.Logf("row %+v", m)
			}
		}
		for _, e := range r.h.Snapshot().All() {
			if e.Message.Key == wrong.Key {
				r.t.Logf("entry %+v", e)
			}
		}
	}
	require.NoError(r.t, err, "%.4000s", r.stored)
	r.surround(h)
	return h
}

// same fails the test unless both make the same requests.
func (r *rowHost) same(h *convo.History, measured bool) {
	for name, f := range resumeFormats {
		want := mustEncode(r.t, f, r.h.Snapshot())
		got := mustEncode(r.t, f, h.Snapshot())
		if string(want.Body()) != string(got.Body()) {
			r.t.Fatalf("%s: %s\n%.4000s", name, difference(string(want.Body()), string(got.Body())), r.stored)
		}
		require.Equal(r.t, fmt.Sprint(want.Lost), fmt.Sprint(got.Lost), name)
	}
	require.Equal(r.t, r.h.Snapshot().Unbound(), h.Snapshot().Unbound())
	require.Equal(r.t, r.h.Snapshot().Pinned(), h.Snapshot().Pinned())
	require.Equal(r.t, r.h.Status().Turns, h.Status().Turns)
	require.Equal(r.t, r.h.Status().Queued, h.Status().Queued)
	require.Equal(r.t, r.h.Status().OpenCalls, h.Status().OpenCalls)
	if measured {
		require.Equal(r.t, r.h.Tokens(), h.Tokens())
	}
}

// Whatever has happened to a conversation, Resume makes one of the host's rows and of the
// decisions that goes on with the same requests.
func TestResume_Random(t *testing.T) {
	resumed, open, far := 0, 0, 0
	for seed := range long.Or(6, 150) {
		r := newRowHost(t, uint64(seed))
		for step := range 120 {
			r.act()
			if step%3 == 0 {
				r.same(r.resume(), r.plain)
				resumed++
				if r.h.Status().OpenCalls > 0 {
					open++
				}
			}
			if r.rnd.IntN(15) == 0 { // the program starts again
				r.h, r.stored = r.resume(), nil
				r.decide()
				r.sync()
				r.left = slices.Max(append(r.idsLeft(0), 0))
			}
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
		far += r.far
	}
	assert.Positive(t, open)
	assert.Positive(t, far)
	t.Logf("%d histories resumed, %d of them between a call and its result", resumed, open)
}

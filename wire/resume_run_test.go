package wire_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
	"github.com/seed-c1b73e60/convo/wire"
)

// A runHost is a program that has a scripted model and its tools run, and keeps the
// messages itself. What the script does depends on the seed, the turn, the request and the
// view alone, so that two hosts with the same requests go on in the same way.
type runHost struct {
	t    *testing.T
	seed uint64
	name string
	h    *convo.History
	opts convo.Options

	rows          []convo.Message
	keys          int
	turn, request int
	sent          []map[string]string // the requests by format, from where it was resumed on
	turns         []int               // the turn of each
	want          *runHost            // compares its requests with these

	moments []string // where it was when it could be resumed
	restart int      // the moment of these at which it is
	again   *runHost
	where   string
}

func newRunHost(t *testing.T, seed uint64) *runHost {
	r := &runHost{t: t, seed: seed, name: "original", restart: -1}
	r.setOptions()
	var err error
	r.h, err = convo.New(&r.opts)
	require.NoError(t, err)
	r.surround()
	return r
}

// random returns what is decided at random about the n-th of a kind.
func (r *runHost) random(kind string, n int) *rand.Rand {
	return rand.New(rand.NewPCG(r.seed, uint64(len(kind))<<32|uint64(n)))
}

func (r *runHost) setOptions() {
	x := r.random("options", 0)
	strategies := []convo.CompactionStrategy{
		nil, convo.Truncate{}, convo.ClearToolResults{KeepLast: 1}, convo.SlidingWindow{KeepLast: 6}, convo.Summarize{With: convo.Extract{}},
		convo.Chain(convo.ClearThinking{}, convo.ClearToolResults{}, convo.Summarize{With: convo.Extract{}, KeepTurns: 1}, convo.Truncate{}),
	}
	r.opts = convo.Options{
		Limits: convo.Limits{Window: 2500 + 500*x.IntN(6)}, Roles: convo.Relaxed(), TagKey: "k", Strategy: strategies[x.IntN(len(strategies))],
		Key: func(convo.Message) string { r.keys++; return fmt.Sprintf("%s %d", r.name, r.keys) },
	}
	if x.IntN(2) == 0 {
		r.opts.MaxResult = 300
	}
	if x.IntN(2) == 0 {
		r.opts.Spill = func(_ context.Context, result convo.ToolResult) (string, error) { return "file-" + result.CallID, nil }
	}
	if x.IntN(3) == 0 {
		r.opts.Pin = func(m convo.Message) bool { return strings.Contains(m.Text(), "word7 word7") }
	}
}

// surround sets what is not part of Decisions.
func (r *runHost) surround() {
	require.NoError(r.t, r.h.SetSystem(convo.System(fmt.Sprint("guide ", r.turn/4))))
	var msgs []convo.Message
	if r.turn%3 == 1 {
		msgs = append(msgs, convo.User(fmt.Sprint("it is ", r.turn)))
	}
	require.NoError(r.t, r.h.SetEphemeral(msgs...))
	require.NoError(r.t, r.h.SetTools(r.tools(nil).tools()...))
}

func textOf(x *rand.Rand, n int) string {
	return strings.TrimSpace(strings.Repeat(fmt.Sprintf("word%d ", x.IntN(50)), 1+x.IntN(n)))
}

// moment is a moment at which the program may end and start again.
func (r *runHost) moment(where string) {
	r.sync()
	if r.moments = append(r.moments, where); len(r.moments)-1 == r.restart {
		r.again, r.where = r.resumed(), where
		r.sent, r.turns = nil, nil
	}
}

// sync makes rows of messages that came into the view.
func (r *runHost) sync() {
	for _, e := range r.h.Snapshot().All() {
		r.row(e.Message)
	}
}

func (r *runHost) row(m convo.Message) {
	if m.Key != "" && !slices.ContainsFunc(r.rows, func(row convo.Message) bool { return row.Key == m.Key }) {
		r.rows = append(r.rows, m)
	}
}

// resumed returns a host that was started again with the decisions and the rows of r.
func (r *runHost) resumed() *runHost {
	again := &runHost{t: r.t, seed: r.seed, name: "resumed", turn: r.turn, request: r.request, restart: -1, want: r}
	again.setOptions()
	data, err := r.h.Decisions()
	require.NoError(r.t, err)
	d, err := convo.ReadDecisions(data)
	require.NoError(r.t, err)
	again.h, err = convo.Resume(d, needed(d, r.rows), &again.opts)
	require.NoError(r.t, err, "seed %d: %.3000s", r.seed, data)
	again.surround()
	return again
}

type handlers []convo.Handler

func (list handlers) tools() (tools []convo.Tool) {
	for _, h := range list {
		tools = append(tools, h.Tool)
	}
	return tools
}

// tools returns the tools. The host has no code for ask, and interrupts the turn in stop.
func (r *runHost) tools(interrupt func()) handlers {
	read := func(_ context.Context, c convo.ToolCall) ([]convo.Part, error) {
		x := rand.New(rand.NewPCG(r.seed, uint64(len(c.Arguments))+uint64(c.ID[len(c.ID)-1])<<8))
		if strings.HasSuffix(c.ID, "_0") { // one call of an answer
			r.moment("in a tool")
			if c.Name == "stop" && r.parallel() == 1 { // otherwise it is not certain which calls still run
				interrupt()
			}
		}
		switch x.IntN(6) {
		case 0:
			return nil, errors.New("no such file")
		case 1:
			return []convo.Part{convo.Text(textOf(x, 1500))}, nil
		}
		return []convo.Part{convo.Text(c.ID + " " + textOf(x, 80))}, nil
	}
	return handlers{
		{Tool: convo.Tool{Name: "read", Schema: `{"type":"object"}`}, Run: read},
		{Tool: convo.Tool{Name: "stop", Schema: `{"type":"object"}`}, Run: read},
		{Tool: convo.Tool{Name: "ask", Schema: `{"type":"object"}`}},
	}
}

func (r *runHost) parallel() int { return 1 + r.turn%2 }

// send is the scripted model.
func (r *runHost) send(_ context.Context, at *convo.Snapshot) (convo.Reply, error) {
	if r.h.Status().Queued == 0 { // otherwise Resume delivers what waits for this answer
		r.moment("in send")
	}
	bodies := make(map[string]string)
	for name, f := range resumeFormats {
		req := mustEncode(r.t, f, at)
		bodies[name] = string(req.Body())
	}
	r.sent, r.turns = append(r.sent, bodies), append(r.turns, r.turn)
	if r.want != nil {
		r.compare(len(r.sent) - 1)
	}
	x := r.random("request", r.request)
	r.request++
	if x.IntN(6) == 0 {
		require.NoError(r.t, r.h.Queue(convo.User("by the way "+textOf(x, 20))))
	}
	switch x.IntN(14) {
	case 0:
		return convo.Reply{}, errors.New("no connection")
	case 1:
		return convo.Reply{}, fmt.Errorf("prompt is too long: %d tokens > %d maximum", at.Tokens()+60, at.Tokens()-10)
	}
	m := convo.Assistant(textOf(x, 30))
	m.Origin = convo.Origin{Format: wire.FormatAnthropic, Model: sealModels[0]}
	if x.IntN(3) > 0 {
		m = thoughts.In(m, convo.Reasoning{Text: "hm", Signature: fmt.Sprintf("c2ln%04d", x.IntN(10000))})
	}
	for i := range max(x.IntN(6)-2, 0) {
		name := "read"
		if k := x.IntN(12); k < 2 {
			name = []string{"ask", "stop"}[k]
		}
		m.Parts = append(m.Parts, convo.ToolCall{ID: fmt.Sprintf("toolu_%d_%d", r.request, i), Name: name, Arguments: "{" + strings.Repeat(" ", r.request) + "}"})
	}
	reply := convo.Reply{Messages: []convo.Message{m}}
	if x.IntN(3) > 0 {
		reply.Usage = convo.Usage{Input: at.Tokens() + 40 + x.IntN(30), Output: 9}
	}
	return reply, nil
}

// compare compares the i-th request with that of the program that did not end.
func (r *runHost) compare(i int) {
	if i >= len(r.want.sent) {
		r.t.Fatalf("seed %d, resumed %s: the original made only %d more requests", r.seed, r.want.where, len(r.want.sent))
	}
	for name, want := range r.want.sent[i] {
		if got := r.sent[i][name]; want != got {
			r.t.Fatalf("seed %d, resumed %s in turn %d: request %d in turn %d, %s: %s", r.seed, r.want.where, r.want.again.turn, i, r.turn, name, difference(want, got))
		}
	}
}

// run has the model answer.
func (r *runHost) run() {
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	tools := r.tools(cancel)
	for reply, err := range r.h.Steps(ctx, r.send, convo.RunOptions{Tools: tools, Parallel: r.parallel()}) {
		for _, m := range reply.Messages {
			r.row(m)
		}
		r.moment("after a step")
		if err != nil {
			return
		}
	}
}

// begin does what the user does before the model answers.
func (r *runHost) begin() {
	x, h := r.random("turn", r.turn), r.h
	r.surround()
	if open := openCalls(h.Snapshot()); len(open) > 0 {
		if x.IntN(2) == 0 {
			_, err := h.AnswerOpenCalls("stopped")
			require.NoError(r.t, err)
		}
		for _, c := range openCalls(h.Snapshot()) {
			r.say(convo.Result(c, "approved"))
		}
	}
	exchanges := slices.Collect(h.Snapshot().Exchanges())[h.Status().System:] // without system entries, which Resume gives other IDs
	switch k := x.IntN(10); {
	case k == 0 && len(exchanges) > 0:
		_ = h.Pin(exchanges[x.IntN(len(exchanges))].IDs()[0])
	case k == 1 && len(h.Snapshot().Pinned()) > 0:
		require.NoError(r.t, h.Unpin(h.Snapshot().Pinned()[0]))
	case k == 2:
		// Always another one: what a model that is not in use has measured is stored without the view that
		// it measured, so that after Resume the bound for it is higher until its next report.
		require.NoError(r.t, h.SetModel(fmt.Sprint("model ", r.turn), convo.Limits{Window: 2500 + 500*x.IntN(6)}))
	case k == 3:
		_, _ = h.Compact(r.t.Context(), "")
	case k == 4 && len(exchanges) > 0 && x.IntN(3) == 0:
		r.takeBack(exchanges[x.IntN(len(exchanges))].Last)
	case k == 5 && h.Status().Entries > h.Status().System:
		r.say(convo.System("note " + textOf(x, 5)))
	case k == 6:
		require.NoError(r.t, h.Queue(convo.User("first "+textOf(x, 9))))
	}
	r.say(convo.User(textOf(x, 60)))
	if x.IntN(8) == 0 {
		require.NoError(r.t, h.PinLast())
	}
	r.moment("before a turn")
}

// takeBack goes back to an entry, and deletes the rows of what was taken back.
func (r *runHost) takeBack(id convo.ID) {
	r.sync()
	if r.h.RewindTo(id) != nil {
		return
	}
	r.rows = rowsOf(r.rows, r.h.Snapshot())
}

func (r *runHost) say(m convo.Message) {
	r.sync()
	r.keys++
	m.Key = fmt.Sprintf("%s %d", r.name, r.keys)
	_, err := r.h.Append(m)
	require.NoError(r.t, err, "seed %d", r.seed)
	r.row(m)
}

// openCalls returns the calls that have no result.
func openCalls(s *convo.Snapshot) (open []convo.ToolCall) {
	for _, e := range s.All() {
		open = append(open, e.Message.ToolCalls()...)
		for _, result := range e.Message.ToolResults() {
			open = slices.DeleteFunc(open, func(c convo.ToolCall) bool { return c.ID == result.CallID })
		}
	}
	return open
}

// play goes on until the given turn.
func (r *runHost) play(until int) {
	for ; r.turn < until; r.turn++ {
		r.begin()
		r.run()
	}
}

// Wherever a program that has the model answer ends, the requests after Resume are those
// that it would have made.
func TestResume_DuringRun(t *testing.T) {
	const turns = 12
	places, requests := []string{"in send", "in a tool", "after a step", "before a turn"}, 0
	for seed := range long.Or[uint64](8, 40) {
		trial := newRunHost(t, seed)
		trial.play(turns)
		r := newRunHost(t, seed)
		var at []int // the moments of one kind
		for i, where := range trial.moments {
			if where == places[seed%4] {
				at = append(at, i)
			}
		}
		require.NotEmpty(t, at, places[seed%4])
		r.restart = at[trial.random("restart", 0).IntN(len(at))]
		r.play(turns)
		again := r.again
		require.Equal(t, places[seed%4], r.where)
		// The turn in which the program ended goes on, unless it had ended itself.
		if r.where == "in a tool" || slices.Contains(r.turns, again.turn) {
			again.run()
		}
		again.turn++
		again.play(turns)
		require.Equal(t, len(r.sent), len(again.sent), "requests of seed %d, resumed %s", seed, r.where)
		require.Equal(t, len(r.h.Snapshot().Pinned()), len(again.h.Snapshot().Pinned()), "pins of seed %d", seed)
		require.Equal(t, r.h.Status().Queued, again.h.Status().Queued, "seed %d", seed)
		requests += len(r.sent)
	}
	t.Logf("%d requests after Resume", requests)
}

package wire_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	judge "github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
	"github.com/seed-c1b73e60/convo/wire"
)

// A sealedFormat is a format of models that check where signed reasoning stands.
type sealedFormat struct {
	make   func(model string, check wire.SealCheck) wire.Format
	judge  judge.Seals
	model  string                                  // the name of the field with the model
	call   string                                  // a block with a call, for fmt
	think  string                                  // a block of reasoning, for fmt
	text   string                                  // a block of text, for fmt
	search string                                  // a block that begins a search of the provider's, for fmt; empty: there is none
	found  string                                  // its result
	answer func(blocks, model, stop string) string // of blocks
}

var sealedFormats = map[string]sealedFormat{
	"anthropic": {
		make: func(model string, check wire.SealCheck) wire.Format {
			return wire.Anthropic{Model: model, Seals: check, Cache: true}
		},
		judge: judge.AnthropicSeals, model: "model",
		call: `{"type":"tool_use","id":"toolu_%d","name":"read","input":{"n":1.0}}`, think: `{"type":"thinking","thinking":"hm"}`, text: `{"type":"text","text":%q,"citations":null}`,
		search: `{"type":"server_tool_use","id":%q,"name":"web_search","input":{"query":"q"}}`, found: `{"type":"web_search_tool_result","tool_use_id":%q,"content":[]}`,
		answer: func(blocks, model, stop string) string {
			return `{"type":"message","role":"assistant","model":"` + model + `","stop_reason":"` + stop + `","content":[` + blocks + `],"usage":{"input_tokens":9,"output_tokens":9}}`
		},
	},
	"converse": {
		make: func(model string, check wire.SealCheck) wire.Format {
			return wire.Converse{Model: model, Seals: check, Cache: true}
		},
		judge: judge.ConverseSeals, model: "modelId",
		call: `{"toolUse":{"toolUseId":"tooluse_%d","name":"read","input":{"n":1.0}}}`, think: `{"reasoningContent":{"reasoningText":{"text":"hm"}}}`, text: `{"text":%q}`,
		answer: func(blocks, _, _ string) string {
			return `{"output":{"message":{"role":"assistant","content":[` + blocks + `]}},"stopReason":"end_turn","usage":{"inputTokens":9,"outputTokens":9,"totalTokens":18}}`
		},
	},
}

// The last of these does not check.
var sealModels = []string{"claude-opus-5-5", "claude-sonnet-5-5", "claude-opus-4-8"}

// A sealRun is a random conversation with a provider that checks.
type sealRun struct {
	t       *testing.T
	rng     *rand.Rand
	f       sealedFormat
	model   string
	encoder map[string]*wire.Encoder // by model
	store   convo.Store
	opts    *convo.Options
	h       *convo.History
	marks   []*convo.Snapshot
	report  convo.Report
	n       int

	history, unchecked [][]byte // the requests as they were sent, and without the check; if keep is set
	keep               bool

	rows      []convo.Message // those that were appended and not taken back
	ids       map[string]convo.ID
	system    []convo.Message // as they were set last
	ephemeral []convo.Message
	tools     []convo.Tool

	requests, sent, would int // would: requests that are refused without the check
	resumed, undone       int
}

func newSealRun(t *testing.T, f sealedFormat, seed uint64) *sealRun {
	r := &sealRun{t: t, rng: rand.New(rand.NewPCG(seed, 7)), f: f, model: sealModels[0], encoder: map[string]*wire.Encoder{}, store: new(convotest.MemStore), ids: map[string]convo.ID{}}
	for _, m := range sealModels {
		r.encoder[m] = &wire.Encoder{Format: f.make(m, wire.SealsByModel)}
	}
	strategies := []convo.CompactionStrategy{nil, convo.Truncate{}, convo.ClearToolResults{}, convo.SlidingWindow{KeepTurns: 2}, convo.Summarize{With: convotest.Echo{}},
		convo.ClearThinking{}, convo.Chain(convo.ClearThinking{}, convo.Truncate{})}
	r.opts = &convo.Options{Limits: convo.Limits{Window: 1000 + r.rng.IntN(4000), Reserve: -1, MinFree: 1}, Strategy: strategies[r.rng.IntN(len(strategies))]}
	if r.rng.IntN(3) == 0 {
		r.opts.Roles = convo.Relaxed()
	}
	keys := 0
	r.opts.Key = func(convo.Message) string { keys++; return fmt.Sprint("row ", keys) }
	h, err := convo.Open(t.Context(), r.store, "k", r.opts)
	require.NoError(t, err)
	r.h = h
	r.setSystem("rules")
	return r
}

func (r *sealRun) setSystem(text string) {
	r.system = []convo.Message{convo.System(text)}
	require.NoError(r.t, r.h.SetSystem(r.system...))
}

func (r *sealRun) setEphemeral(msgs ...convo.Message) {
	if r.h.SetEphemeral(msgs...) == nil {
		r.ephemeral = msgs
	}
}

func (r *sealRun) words() string {
	r.n++
	return fmt.Sprint("t", r.n, strings.Repeat(" word", r.rng.IntN(20)))
}

// entry returns a random entry of the view.
func (r *sealRun) entry() (convo.Entry, bool) {
	s := r.h.Snapshot()
	if s.Len() == 0 {
		return convo.Entry{}, false
	}
	return s.At(r.rng.IntN(s.Len()))
}

// change does something to the conversation, which may fail.
func (r *sealRun) change() {
	r.sync()
	ctx := r.t.Context()
	switch h := r.h; r.rng.IntN(26) {
	case 0, 20:
		r.report, _ = h.Compact(ctx, "")
	case 1, 21, 22, 23:
		if h.Undo(r.report) == nil {
			r.undone++
		}
	case 2:
		r.setSystem(fmt.Sprint("rules ", r.rng.IntN(2)))
	case 3:
		r.setEphemeral(convo.User(fmt.Sprint("now ", r.rng.IntN(2))))
	case 4:
		r.setEphemeral(convo.System(fmt.Sprint("now ", r.rng.IntN(2))), convo.User("then"))
	case 5, 6:
		r.setEphemeral()
	case 7, 8:
		r.marks = append(r.marks, h.Snapshot())
	case 9:
		if len(r.marks) > 0 {
			_ = h.Rollback(r.marks[r.rng.IntN(len(r.marks))])
		}
	case 10, 11:
		r.rewrite()
	case 24, 25:
		r.clearThinking()
	case 12:
		r.report, _ = h.Apply(h.Snapshot(), convo.Edit{Summary: &convo.Summary{Text: r.words()}})
	case 13:
		r.tools = []convo.Tool{{Name: "read", Description: fmt.Sprint(r.rng.IntN(2))}}
		require.NoError(r.t, h.SetTools(r.tools...))
	case 14:
		r.model = sealModels[r.rng.IntN(len(sealModels))]
	case 15:
		r.fork()
	case 16:
		if e, ok := r.entry(); ok {
			_ = h.Pin(e.ID)
		}
	case 17:
		_, _ = h.Append(convo.System(r.words()))
	case 18:
		_, _ = h.Rewind(1)
	case 19:
		if r.rng.IntN(8) == 0 {
			_ = thoughts.Refuse(r.t.Context(), h)
		}
	}
}

// rewrite changes an entry, or leaves its reasoning out.
func (r *sealRun) rewrite() {
	e, ok := r.entry()
	if !ok {
		return
	}
	parts := []convo.Part{convo.Text(r.words())}
	if r.rng.IntN(2) == 0 {
		parts = nil
		for _, p := range e.Message.Parts {
			if _, ok := p.(convo.Reasoning); !ok {
				parts = append(parts, p)
			}
		}
	}
	r.report, _ = r.h.Apply(r.h.Snapshot(), convo.Edit{Rewrite: []convo.Rewrite{{ID: e.ID, Parts: parts}}})
}

// clearThinking takes the reasoning out of older answers, and perhaps the oldest exchange
// out of the view.
func (r *sealRun) clearThinking() {
	s := r.h.Snapshot()
	e, err := convo.ClearThinking{}.Compact(r.t.Context(), s, convo.Goal{})
	if err != nil {
		return
	}
	for x := range s.Exchanges() {
		if !x.Floor {
			if r.rng.IntN(3) == 0 {
				e.Drop = x.IDs()
				e.Rewrite = slices.DeleteFunc(e.Rewrite, func(w convo.Rewrite) bool { return slices.Contains(e.Drop, w.ID) })
			}
			break
		}
	}
	r.report, _ = r.h.Apply(s, e)
}

// sync makes rows of messages that came into the view, and removes those that were taken
// back.
func (r *sealRun) sync() {
	s := r.h.Snapshot()
	r.rows = slices.DeleteFunc(r.rows, func(m convo.Message) bool { return s.TakenBack(r.ids[m.Key]) })
	for _, e := range s.All() {
		if key := e.Message.Key; key != "" && e.Message.Role != convo.RoleSystem && !slices.ContainsFunc(r.rows, func(m convo.Message) bool { return m.Key == key }) {
			r.rows, r.ids[key] = append(r.rows, e.Message), e.ID
		}
	}
}

// resume goes on from the decisions and the rows, if they are enough.
func (r *sealRun) resume() {
	r.sync()
	data, err := r.h.Decisions()
	require.NoError(r.t, err)
	d, err := convo.ReadDecisions(data)
	require.NoError(r.t, err)
	h, err := convo.Resume(d, needed(d, rowsOf(r.rows, r.h.Snapshot())), r.opts)
	if err != nil {
		return // a message was rewritten before it had a row
	}
	r.resumed++
	r.n++
	require.NoError(r.t, h.Attach(r.t.Context(), r.store, fmt.Sprint("resumed", r.n)))
	require.NoError(r.t, r.h.Close())
	r.h, r.marks, r.report = h, nil, convo.Report{}
	require.NoError(r.t, h.SetSystem(r.system...))
	require.NoError(r.t, h.SetTools(r.tools...))
	require.NoError(r.t, h.SetEphemeral(r.ephemeral...))
}

// fork goes on with a copy of the conversation, perhaps by way of its JSON.
func (r *sealRun) fork() {
	s := r.h.Snapshot()
	if r.rng.IntN(2) == 0 {
		data, err := json.Marshal(s)
		require.NoError(r.t, err)
		s = new(convo.Snapshot)
		require.NoError(r.t, json.Unmarshal(data, s))
	}
	h, err := convo.Restore(s, r.opts)
	require.NoError(r.t, err)
	r.n++
	require.NoError(r.t, h.Attach(r.t.Context(), r.store, fmt.Sprint("fork", r.n)))
	require.NoError(r.t, r.h.Close())
	r.h, r.marks, r.report = h, nil, convo.Report{}
}

// restart saves the conversation and opens it again.
func (r *sealRun) restart() {
	require.NoError(r.t, r.h.Save(r.t.Context()))
	key, _ := r.h.Saved()
	require.NoError(r.t, r.h.Close())
	h, err := convo.Open(r.t.Context(), r.store, key, r.opts)
	require.NoError(r.t, err)
	r.h, r.marks, r.report = h, nil, convo.Report{}
}

// body returns a request as it is sent.
func (r *sealRun) body(req wire.Request) []byte {
	body, err := req.With(map[string]string{r.f.model: r.model})
	require.NoError(r.t, err)
	return body
}

// checks reports whether the model checks.
func (r *sealRun) checks() bool { return r.model != sealModels[len(sealModels)-1] }

// request is the provider: it judges the request and answers it.
func (r *sealRun) request(s *convo.Snapshot) convo.Reply {
	t := r.t
	req := mustEncode(t, r.encoder[r.model], s)
	body := r.body(req)
	if r.keep {
		off := mustEncode(t, r.f.make(r.model, wire.SealsUnchecked), s)
		r.history, r.unchecked = append(r.history, body), append(r.unchecked, r.body(off))
	}
	sent, refused, err := r.f.judge.Check(body)
	require.NoError(t, err)
	if r.checks() {
		assert.False(t, req.NoThinking)
		require.Empty(t, refused, "request %d: %s", r.requests, body)
		r.requests, r.sent = r.requests+1, r.sent+sent
	}
	if r.requests%4 == 0 { // the rule switched off, and what an Encoder keeps
		plain := mustEncode(t, r.encoder[r.model].Format, s)
		require.Equal(t, string(body), string(r.body(plain)))
		off := mustEncode(t, r.f.make(r.model, wire.SealsUnchecked), s)
		if _, refused, err = r.f.judge.Check(r.body(off)); len(refused) > 0 && r.checks() {
			r.would++
		}
		require.NoError(t, err)
	}
	blocks, stop := r.answer(req.Messages[len(req.Messages)-1])
	signed, err := r.f.judge.Sign(body, []byte(r.f.answer(blocks, r.model, stop)))
	require.NoError(t, err)
	in := mustDecode(t, r.encoder[r.model].Format, signed)
	for i := range in.Messages {
		in.Messages[i].Origin.Model = r.model // Converse does not say it
		if r.rng.IntN(20) == 0 {
			in.Messages[i].Author = "bot"
		}
	}
	return in.Reply()
}

// answer returns the content of an answer to a request that ends with a message, and why
// the answer ends.
func (r *sealRun) answer(last json.RawMessage) (blocks, stop string) {
	var list []string
	var m struct{ Content []struct{ Type, ID string } }
	if err := json.Unmarshal(last, &m); err == nil && m.Content[len(m.Content)-1].Type == "server_tool_use" {
		list = append(list, fmt.Sprintf(r.f.found, m.Content[len(m.Content)-1].ID))
	}
	for range 1 + r.rng.IntN(2) {
		if r.rng.IntN(5) > 0 {
			list = append(list, r.f.think)
		}
		if r.rng.IntN(2) == 0 {
			list = append(list, fmt.Sprintf(r.f.text, r.words()))
		}
	}
	switch r.rng.IntN(12) {
	case 0: // what providers ought not to send, and do
		list = append(list, fmt.Sprintf(r.f.text, "\n\n"), r.f.think)
	case 1:
		list = append(list, fmt.Sprintf(r.f.call, r.n), r.f.think, fmt.Sprintf(r.f.text, r.words()))
	case 2:
		if r.f.search != "" {
			r.n++
			return strings.Join(append(list, fmt.Sprintf(r.f.search, fmt.Sprint("srvtoolu_", r.n))), ","), "pause_turn"
		}
		fallthrough
	case 3, 4, 5:
		list = append(list, fmt.Sprintf(r.f.text, r.words()))
	default:
		for range 1 + r.rng.IntN(2) {
			r.n++
			list = append(list, fmt.Sprintf(r.f.call, r.n))
		}
	}
	return strings.Join(list, ","), "end_turn"
}

// step appends a message, makes a request and appends the answer.
func (r *sealRun) step() {
	r.change()
	switch r.rng.IntN(24) {
	case 0, 1:
		r.restart()
	case 2, 3:
		r.resume()
	}
	for _, c := range openCalls(r.h.Snapshot()) {
		if r.rng.IntN(4) > 0 {
			_, _ = r.h.Append(convo.Result(c, r.words()))
		}
	}
	if _, err := r.h.AnswerOpenCalls("no"); r.rng.IntN(2) == 0 {
		require.NoError(r.t, err)
		_, _ = r.h.Append(convo.User(r.words()))
	}
	s := r.h.Snapshot()
	if s.Len() == 0 {
		return
	}
	if r.rng.IntN(3) > 0 {
		_, _ = r.h.Do(r.t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
			reply := r.request(s)
			if r.rng.IntN(3) == 0 {
				r.change()
			}
			if r.rng.IntN(20) == 0 {
				return convo.Reply{}, errors.New("broken off")
			}
			return reply, nil
		})
		return
	}
	r.byHand()
}

// byHand makes a request without Do.
func (r *sealRun) byHand() {
	h := r.h
	s, _, err := h.Prepare(r.t.Context())
	if err != nil || len(openCalls(r.h.Snapshot())) > 0 {
		return
	}
	reply := r.request(s)
	if r.rng.IntN(3) == 0 {
		r.change()
	}
	if h != r.h || r.rng.IntN(2) == 0 { // a fork knows nothing of the request
		_, _ = r.h.AppendReply(s, reply)
	} else {
		_, _ = r.h.Append(reply.Messages...)
	}
}

var sealRequests = flag.Int("convo.seals", 0, "the least number of requests that TestSeals_Random makes in each format")

// No request to a model that checks holds signed reasoning after another prefix, whatever
// happens to the conversation, also while a request is under way. With the check switched
// off, many do.
func TestSeals_Random(t *testing.T) {
	least := max(long.Or(120, 4000), *sealRequests)
	for name, f := range sealedFormats {
		t.Run(name, func(t *testing.T) {
			requests, sent, would, resumed, undone := 0, 0, 0, 0, 0
			for seed := uint64(87); requests < least; seed++ { // this one undoes a compaction that ran while an answer was under way
				r := newSealRun(t, f, seed)
				for range 60 {
					r.step()
				}
				require.NoError(t, r.h.Close())
				requests, sent, would = requests+r.requests, sent+r.sent, would+r.would
				resumed, undone = resumed+r.resumed, undone+r.undone
			}
			t.Logf("%d requests with %d blocks of reasoning, none refused; without the check, %d of about %d are refused; resumed %d times, and %d edits undone", requests, sent, would, requests/4, resumed, undone)
			assert.Greater(t, sent, requests/2)
			assert.Greater(t, would, requests/40)
		})
	}
}

// Release ends all bonds, also for an Encoder that has written the same messages before.
func TestSeals_Release(t *testing.T) {
	for name, f := range sealedFormats {
		t.Run(name, func(t *testing.T) {
			format := f.make(sealModels[0], wire.SealsByModel)
			h := historyOf(t)
			for _, text := range []string{"one1", "two2"} {
				m := thoughts.In(convo.Assistant(text), convo.Reasoning{Text: "hm", Signature: "c2ln" + text})
				m.Origin = convo.Origin{Format: name, Model: sealModels[0]}
				mustAppend(t, h, convo.User("q"), m)
			}
			mustAppend(t, h, convo.User("q"))
			enc := wire.Encoder{Format: format}
			count := func() int {
				r := mustEncode(t, &enc, h.Snapshot())
				require.Equal(t, string(mustEncode(t, format, h.Snapshot()).Body()), string(r.Body()))
				sent := strings.Count(string(r.Body()), "c2ln")
				assert.NotContains(t, fmt.Sprint(h.Snapshot().Messages()), "c2ln")
				assert.Contains(t, string(r.Body()), "one1")
				assert.Equal(t, 2-sent, strings.Count(fmt.Sprint(r.Lost), "reasoning"))
				return sent
			}
			assert.Equal(t, 2, count())
			require.NoError(t, thoughts.Refuse(t.Context(), h))
			assert.Zero(t, count())
		})
	}
}

func TestSealCheck(t *testing.T) {
	sends := func(f wire.Format, format, model string) bool {
		m := thoughts.In(convo.Assistant("a"), convo.Reasoning{Text: "hm", Signature: "c2ln"})
		m.Origin = convo.Origin{Format: format, Model: model}
		h := historyOf(t, convo.User("q"), m, convo.User("q"))
		require.NoError(t, h.SetSystem(convo.System("another")))
		return strings.Contains(string(mustEncode(t, f, h.Snapshot()).Body()), "c2ln")
	}
	for _, list := range []struct {
		checks, reported bool // whether a request is made for a model that checks, and what Checks reports
		models           []string
	}{
		{true, true, []string{
			"claude-opus-5-5", "claude-opus-5.5", "anthropic/claude-sonnet-5.5", "claude-haiku-5-5-20261001", "us.anthropic.claude-opus-5-5-20261001-v1:0", "us.anthropic.claude-opus-5-5-v1:0",
			"claude-fable-5-1", "claude-mythos-5-2", "claude-opus-5-6", "claude-opus-6", "claude-sonnet-6-1", "claude-opus-6@20270101", "claude-next-7",
		}},
		{false, false, []string{
			"claude-opus-5", "claude-opus-5-20260701", "claude-opus-5@20260701", "claude-fable-5", "claude-mythos-5-0", "claude-3-5-sonnet-20241022", "claude-3-opus", "claude-opus-4-8",
			"claude-sonnet-4-5-20250929", "claude-2.1", "claude-instant-1.2",
		}},
		{true, false, []string{"", "gpt-5.5", "claude", "claude-", "claude-opus", "claude-opus-latest", "kimi-k2"}}, // not known
	} {
		for _, model := range list.models {
			assert.Equal(t, !list.checks, sends(wire.Anthropic{Model: model}, "anthropic", model), model)
			assert.Equal(t, list.reported, wire.SealsByModel.Checks(model), model)
		}
	}
	assert.True(t, wire.SealsChecked.Checks("gpt-5.5"))
	assert.False(t, wire.SealsUnchecked.Checks("claude-opus-5-5"))
	assert.False(t, sends(wire.Anthropic{Seals: wire.SealsChecked}, "anthropic", "claude-opus-6"))
	assert.False(t, sends(wire.Converse{Seals: wire.SealsChecked}, "converse", "claude-opus-6"))
	assert.True(t, sends(wire.Anthropic{Model: "claude-opus-6", Seals: wire.SealsUnchecked}, "anthropic", "claude-opus-6"))
}

// What a provider has refused is not sent again, also for a model that is known not to check, and
// an Encoder sends what Encode does.
func TestReleased(t *testing.T) {
	for name, f := range map[string]wire.Format{
		wire.FormatAnthropic:       wire.Anthropic{Model: "claude-opus-4-8"},
		wire.FormatOpenAIResponses: wire.OpenAIResponses{Model: "gpt-6"},
	} {
		answer := func(text string) convo.Message {
			m := thoughts.In(convo.Assistant(text), convo.Reasoning{ID: "rs_" + text, Text: "hm", Signature: "msg_" + text, Encrypted: "ZW5j" + text})
			m.Origin = convo.Origin{Format: name, Model: "claude-opus-4-8"}
			if name == wire.FormatOpenAIResponses {
				m.Origin.Model = "gpt-6"
			}
			return m
		}
		h := historyOf(t, convo.User("q"), answer("one1"), convo.User("q"))
		e := &wire.Encoder{Format: f}
		body := func() string {
			r, err := e.Encode(h.Snapshot())
			require.NoError(t, err)
			got := string(r.Body())
			require.Equal(t, string(mustEncode(t, f, h.Snapshot()).Body()), got)
			return got
		}
		require.Regexp(t, "rs_one1|ZW5j|msg_one1", body())
		require.NoError(t, thoughts.Refuse(t.Context(), h))
		require.NotRegexp(t, "rs_one1|ZW5j|msg_one1", body())
		mustAppend(t, h, answer("two2"), convo.User("q"))
		require.Regexp(t, "rs_two2|ZW5j|msg_two2", body())
		require.NotRegexp(t, "rs_one1|msg_one1", body())
	}
}

// A sealTalk is a conversation with a provider that checks.
type sealTalk struct {
	t      *testing.T
	f      sealedFormat
	format wire.Format
	h      *convo.History
}

func newSealTalk(t *testing.T, name string, h *convo.History) sealTalk {
	f := sealedFormats[name]
	return sealTalk{t, f, f.make(sealModels[0], wire.SealsByModel), h}
}

func (c sealTalk) body() []byte {
	body, err := mustEncode(c.t, c.format, c.h.Snapshot()).With(map[string]string{c.f.model: sealModels[0]})
	require.NoError(c.t, err)
	return body
}

// answer appends an answer, and returns it.
func (c sealTalk) answer(blocks ...string) convo.Message {
	signed, err := c.f.judge.Sign(c.body(), []byte(c.f.answer(strings.Join(blocks, ","), sealModels[0], "end_turn")))
	require.NoError(c.t, err)
	in := mustDecode(c.t, c.format, signed)
	mustAppend(c.t, c.h, in.Messages...)
	return in.Messages[0]
}

// sent returns how many blocks of reasoning the next request has, none of which is refused.
func (c sealTalk) sent() int {
	sent, refused, err := c.f.judge.Check(c.body())
	require.NoError(c.t, err)
	assert.Empty(c.t, refused)
	return sent
}

// Signed reasoning that would stand after something else than in the answer is left out,
// and what comes after it stays valid. What is left out of one answer never comes back
// before the next.
func TestSeals_NotWhereItWasMade(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers []string // their blocks
		apart   bool     // a user message stands between the answers
		edit    bool     // the reasoning of the first is left out by a rewrite
		sent    int      // blocks of reasoning of all answers that are sent
		texts   int      // of the first answer, if it is tested for both formats
	}{
		{"as it was", []string{"think say think say", "think say"}, true, false, 3, 0},
		{"after a call", []string{"think call think say", "think say"}, true, false, 2, 0},
		{"after a blank text", []string{"think blank think say", "think say"}, true, false, 2, 0},
		{"after a text that is masked", []string{"think masked think say", "think say"}, true, false, 2, 0},
		{"at the end", []string{"think say think", "think say"}, true, false, 2, 0},
		{"after a result without its call", []string{"think found think say", "think say"}, true, false, 2, 0},
		{"after a call with the id of another one", []string{"search search found think say", "think say"}, true, false, 1, 0},
		{"after a text with citations", []string{"cited think say", "think say"}, true, false, 2, 0},
		{"left out by a rewrite", []string{"think say", "think say"}, true, true, 1, 0},

		{"two answers, the first nothing but reasoning", []string{"think", "think say think say"}, false, false, 2, 0},
		{"two answers, the first a round", []string{"think call", "think say think say"}, false, false, 3, 0},
		{"two answers, the first a search that gets no result", []string{"think search call", "think say think say"}, false, false, 1, 0}, // the user's message removes the search

		// An empty text cannot be sent back.
		{"after an empty text", []string{"think empty think say"}, false, false, 1, 2},
		{"after an empty text at the start", []string{"empty think say"}, false, false, 0, 2},
		{"an empty text at the end", []string{"think say empty"}, false, false, 1, 1},
		{"an empty text between", []string{"think empty say"}, false, false, 1, 1},
	} {
		for _, name := range []string{"anthropic", "converse"} {
			if name == "converse" && tt.texts == 0 {
				continue
			}
			t.Run(tt.name+", "+name, func(t *testing.T) {
				h := historyOf(t)
				if !tt.apart {
					h = relaxedOf(t, convo.User("q"))
				}
				c := newSealTalk(t, name, h)
				text := func(s string) string { return fmt.Sprintf(c.f.text, s) }
				named := map[string]string{
					"think": c.f.think, "say": text("a"), "empty": text(""), "blank": text("\n"), "masked": text("ask @"), "call": fmt.Sprintf(c.f.call, 1),
					"cited":  `{"type":"text","text":"a","citations":[{"type":"web_search_result_location","url":"u","title":"t","encrypted_index":"x","cited_text":"a"}]}`,
					"search": `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`, "found": `{"type":"web_search_tool_result","tool_use_id":"s","content":[]}`,
				}
				for _, answer := range tt.answers {
					if tt.apart {
						mustAppend(t, h, convo.User("q"))
					}
					var blocks []string
					for word := range strings.FieldsSeq(answer) {
						require.Contains(t, named, word)
						blocks = append(blocks, named[word])
					}
					m := c.answer(blocks...)
					if tt.texts > 0 {
						assert.Len(t, slices.DeleteFunc(slices.Clone(m.Parts), func(p convo.Part) bool { _, ok := p.(convo.Text); return !ok }), tt.texts)
						assert.Equal(t, "a", m.Text())
					}
					_, err := h.AnswerOpenCalls("no")
					require.NoError(t, err)
				}
				if tt.edit {
					s := h.Snapshot()
					e, _ := s.At(1)
					_, err := h.Apply(s, convo.Edit{Rewrite: []convo.Rewrite{{ID: e.ID, Parts: []convo.Part{convo.Text("a")}}}})
					require.NoError(t, err)
				}
				mustAppend(t, h, convo.User("q"))
				assert.Equal(t, tt.sent, c.sent())
			})
		}
	}
}

// An answer to a request that ended with a marker is not bound: later requests have no
// marker there.
func TestSeals_AfterAMarker(t *testing.T) {
	c := newSealTalk(t, "anthropic", relaxedOf(t))
	require.NoError(t, c.h.SetSystem(convo.System("rules")))
	for range 2 {
		assert.Contains(t, string(c.body()), "[Continue.]")
		c.answer(c.f.think, fmt.Sprintf(c.f.text, "a"))
	}
	assert.Zero(t, c.sent())
	assert.Len(t, mustEncode(t, c.format, c.h.Snapshot()).Lost, 2)
}

// asSent returns a snapshot of a conversation that stands as it was sent.
func asSent(msgs []convo.Message, _ ...*convo.Options) *convo.Snapshot {
	return convo.NewSnapshot(msgs, &convo.Options{AsSent: true})
}

// A host of Chat Completions gets back the signed reasoning of a model that checks only
// where it is bound, and that of other models as before.
func TestSeals_ReasoningDetails(t *testing.T) {
	for model, want := range map[string]bool{"anthropic/claude-opus-5.5": false, "anthropic/claude-opus-4.5": true, "openai/gpt-5.5": true} {
		f := wire.OpenAIChat{Host: "openrouter", Model: model}
		in := mustDecode(t, f, []byte(`{"model":"`+model+`","choices":[{"message":{"role":"assistant","content":"an answer","reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"c2lnbmVk","format":"anthropic-claude-v1","index":0}]},"finish_reason":"stop"}]}`))
		h := historyOf(t, convo.User("q"), in.Messages[0], convo.User("r"))
		sent := func() bool {
			r := mustEncode(t, f, h.Snapshot())
			assert.Contains(t, string(r.Body()), "an answer")
			return strings.Contains(string(r.Body()), "c2lnbmVk")
		}
		assert.True(t, sent(), model)
		require.NoError(t, h.SetSystem(convo.System("other rules")))
		assert.Equal(t, want, sent(), model)
	}
}

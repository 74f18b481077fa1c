package wire_test

import (
	"context"
	"encoding/json"
	"errors"
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

	requests, sent, would int // would: requests that are refused without the check
}

func newSealRun(t *testing.T, f sealedFormat, seed uint64) *sealRun {
	r := &sealRun{t: t, rng: rand.New(rand.NewPCG(seed, 7)), f: f, model: sealModels[0], encoder: map[string]*wire.Encoder{}, store: new(convotest.MemStore)}
	for _, m := range sealModels {
		r.encoder[m] = &wire.Encoder{Format: f.make(m, wire.SealsByModel)}
	}
	strategies := []convo.CompactionStrategy{nil, convo.Truncate{}, convo.ClearToolResults{}, convo.SlidingWindow{KeepTurns: 2}, convo.Summarize{With: convotest.Echo{}}}
	r.opts = &convo.Options{Limits: convo.Limits{Window: 1000 + r.rng.IntN(4000), Reserve: -1}, Strategy: strategies[r.rng.IntN(len(strategies))]}
	if r.rng.IntN(3) == 0 {
		r.opts.Roles = convo.Relaxed()
	}
	h, err := convo.Open(t.Context(), r.store, "k", r.opts)
	require.NoError(t, err)
	r.h = h
	require.NoError(t, h.SetSystem(convo.System("rules")))
	return r
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
	ctx := r.t.Context()
	switch h := r.h; r.rng.IntN(22) {
	case 0:
		r.report, _ = h.Compact(ctx, "")
	case 1:
		_ = h.Undo(r.report)
	case 2:
		_ = h.SetSystem(convo.System(fmt.Sprint("rules ", r.rng.IntN(2))))
	case 3:
		_ = h.SetEphemeral(convo.User(fmt.Sprint("now ", r.rng.IntN(2))))
	case 4:
		_ = h.SetEphemeral(convo.System(fmt.Sprint("now ", r.rng.IntN(2))), convo.User("then"))
	case 5, 6:
		_ = h.SetEphemeral()
	case 7, 8:
		r.marks = append(r.marks, h.Snapshot())
	case 9:
		if len(r.marks) > 0 {
			_ = h.Rollback(r.marks[r.rng.IntN(len(r.marks))])
		}
	case 10, 11:
		r.rewrite()
	case 12:
		r.report, _ = h.Apply(h.Snapshot(), convo.Edit{Summary: &convo.Summary{Text: r.words()}})
	case 13:
		_ = h.SetTools(convo.Tool{Name: "read", Description: fmt.Sprint(r.rng.IntN(2))})
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
			h.Release()
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

// openCalls returns the calls that have no result.
func (r *sealRun) openCalls() (open []convo.ToolCall) {
	for _, e := range r.h.Snapshot().All() {
		open = append(open, e.Message.ToolCalls()...)
		for _, result := range e.Message.ToolResults() {
			open = slices.DeleteFunc(open, func(c convo.ToolCall) bool { return c.ID == result.CallID })
		}
	}
	return open
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
	if r.rng.IntN(12) == 0 {
		r.restart()
	}
	for _, c := range r.openCalls() {
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
	if err != nil || len(r.openCalls()) > 0 {
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

// No request to a model that checks holds signed reasoning after another prefix, whatever
// happens to the conversation, also while a request is under way. With the check switched
// off, many do.
func TestSeals_Random(t *testing.T) {
	least := long.Or(120, 4000)
	for name, f := range sealedFormats {
		t.Run(name, func(t *testing.T) {
			requests, sent, would := 0, 0, 0
			for seed := uint64(0); requests < least; seed++ {
				r := newSealRun(t, f, seed)
				for range 60 {
					r.step()
				}
				require.NoError(t, r.h.Close())
				requests, sent, would = requests+r.requests, sent+r.sent, would+r.would
			}
			t.Logf("%d requests with %d blocks of reasoning, none refused; without the check, %d of about %d are refused", requests, sent, would, requests/4)
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
			answer := func(text string) {
				m := convo.Assistant(text).WithReasoning(convo.Reasoning{Text: "hm", Signature: "c2ln" + text})
				m.Origin = convo.Origin{Format: name, Model: sealModels[0]}
				mustAppend(t, h, convo.User("q"), m)
			}
			answer("one1")
			answer("two2")
			mustAppend(t, h, convo.User("q"))
			enc := wire.Encoder{Format: format}
			count := func() int {
				r := mustEncode(t, &enc, h.Snapshot())
				plain := mustEncode(t, format, h.Snapshot())
				require.Equal(t, string(plain.Body()), string(r.Body()))
				lost := 0
				for _, l := range r.Lost {
					if strings.Contains(fmt.Sprint(l), "reasoning") {
						lost++
					}
				}
				sent := strings.Count(string(r.Body()), "c2ln")
				assert.Equal(t, strings.Count(fmt.Sprint(h.Snapshot().Messages()), "c2ln"), 0)
				assert.Contains(t, string(r.Body()), "one1")
				if sent == 0 {
					assert.Equal(t, 2, lost)
				}
				return sent
			}
			assert.Equal(t, 2, count())
			assert.Equal(t, 2, h.Release())
			assert.Zero(t, count())
		})
	}
}

func TestSealCheck_Models(t *testing.T) {
	checks := func(model string) bool {
		h := historyOf(t)
		m := convo.Assistant("a").WithReasoning(convo.Reasoning{Text: "hm", Signature: "c2ln"})
		m.Origin = convo.Origin{Format: wire.FormatAnthropic, Model: model}
		mustAppend(t, h, convo.User("q"), m, convo.User("q"))
		h.Release()
		r := mustEncode(t, wire.Anthropic{Model: model}, h.Snapshot())
		return !strings.Contains(string(r.Body()), "c2ln")
	}
	for _, model := range []string{
		"claude-opus-5-5", "claude-opus-5.5", "anthropic/claude-sonnet-5.5", "claude-haiku-5-5-20261001", "us.anthropic.claude-opus-5-5-20261001-v1:0",
		"claude-fable-5-1", "claude-mythos-5-2", "claude-opus-5-6", "claude-opus-6", "claude-sonnet-6-1", "claude-opus-6@20270101", "claude-next-7",
	} {
		assert.True(t, checks(model), model)
	}
	for _, model := range []string{
		"claude-opus-5", "claude-opus-5-20260701", "claude-opus-5@20260701", "claude-fable-5", "claude-mythos-5-0", "claude-3-5-sonnet-20241022", "claude-3-opus", "claude-opus-4-8",
		"claude-sonnet-4-5-20250929", "claude-2.1", "claude-instant-1.2",
	} {
		assert.False(t, checks(model), model)
	}
	for _, model := range []string{"", "gpt-5.5", "claude", "claude-", "claude-opus", "claude-opus-latest", "kimi-k2"} { // not known
		assert.True(t, checks(model), model)
	}
}

func TestSealCheck_Override(t *testing.T) {
	all := slices.Collect(func(yield func(int) bool) {
		for _, f := range []wire.Format{wire.Anthropic{Seals: wire.SealsChecked}, wire.Converse{Seals: wire.SealsChecked}, wire.Anthropic{Model: "claude-opus-6", Seals: wire.SealsUnchecked}} {
			h, _ := convo.New(nil)
			m := convo.Assistant("a").WithReasoning(convo.Reasoning{Text: "hm", Signature: "c2ln"})
			m.Origin = convo.Origin{Format: wire.FormatAnthropic, Model: "claude-opus-6"}
			if _, ok := f.(wire.Converse); ok {
				m.Origin.Format = wire.FormatConverse
			}
			mustAppend(t, h, convo.User("q"), m, convo.User("q"))
			h.Release()
			r := mustEncode(t, f, h.Snapshot())
			if !yield(strings.Count(string(r.Body()), "c2ln")) {
				return
			}
		}
	})
	assert.Equal(t, []int{0, 0, 1}, all)
}

// Reasoning in two answers to one message of a user: what is left out of the first never
// comes back before the second.
func TestSeals_TwoAnswers(t *testing.T) {
	f := sealedFormats["anthropic"]
	format := f.make(sealModels[0], wire.SealsByModel)
	const say, call = `{"type":"text","text":"a"}`, `{"type":"tool_use","id":"toolu_1","name":"read","input":{}}`
	search := fmt.Sprintf(f.search, "srvtoolu_1")
	for _, tt := range []struct {
		name, first string
		sent        int
	}{
		{"nothing but reasoning", f.think, 2},
		{"a round", f.think + "," + call, 3},
		{"a search that gets no result", f.think + "," + search + "," + call, 1}, // the user's message removes the search
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := relaxedOf(t, convo.User("q"))
			for _, blocks := range []string{tt.first, f.think + "," + say + "," + f.think + "," + say} {
				r := mustEncode(t, format, h.Snapshot())
				signed, err := f.judge.Sign(r.Body(), []byte(f.answer(blocks, sealModels[0], "end_turn")))
				require.NoError(t, err)
				in := mustDecode(t, format, signed)
				mustAppend(t, h, in.Messages...)
				_, err = h.AnswerOpenCalls("no")
				require.NoError(t, err)
			}
			mustAppend(t, h, convo.User("q"))
			r := mustEncode(t, format, h.Snapshot())
			sent, refused, err := f.judge.Check(r.Body())
			require.NoError(t, err)
			assert.Empty(t, refused)
			assert.Equal(t, tt.sent, sent)
		})
	}
}

// An empty text cannot be sent back, and reasoning that was made after it is left out.
func TestSeals_AfterAnEmptyText(t *testing.T) {
	for name, f := range sealedFormats {
		format := f.make(sealModels[0], wire.SealsByModel)
		say, empty := fmt.Sprintf(f.text, "a"), fmt.Sprintf(f.text, "")
		for _, tt := range []struct {
			blocks []string
			sent   int
			texts  int // of the message
		}{
			{[]string{f.think, empty, f.think, say}, 1, 2},
			{[]string{empty, f.think, say}, 0, 2},
			{[]string{f.think, say, empty}, 1, 1},
			{[]string{f.think, empty, say}, 1, 1},
		} {
			t.Run(fmt.Sprint(name, tt.blocks), func(t *testing.T) {
				h := historyOf(t, convo.User("q"))
				r := mustEncode(t, format, h.Snapshot())
				body, err := r.With(map[string]string{f.model: sealModels[0]})
				require.NoError(t, err)
				signed, err := f.judge.Sign(body, []byte(f.answer(strings.Join(tt.blocks, ","), sealModels[0], "end_turn")))
				require.NoError(t, err)
				in := mustDecode(t, format, signed)
				texts := 0
				for _, p := range in.Messages[0].Parts {
					if _, ok := p.(convo.Text); ok {
						texts++
					}
				}
				assert.Equal(t, tt.texts, texts)
				assert.Equal(t, "a", in.Messages[0].Text())
				mustAppend(t, h, append(in.Messages, convo.User("q"))...)
				r = mustEncode(t, format, h.Snapshot())
				body, err = r.With(map[string]string{f.model: sealModels[0]})
				require.NoError(t, err)
				sent, refused, err := f.judge.Check(body)
				require.NoError(t, err)
				assert.Empty(t, refused)
				assert.Equal(t, tt.sent, sent)
			})
		}
	}
}

// Signed reasoning that would stand after something else than in the answer is left out,
// and what comes after it stays valid.
func TestSeals_NotWhereItWasMade(t *testing.T) {
	f := sealedFormats["anthropic"]
	format := f.make(sealModels[0], wire.SealsByModel)
	const think, say, call = `{"type":"thinking","thinking":"hm"}`, `{"type":"text","text":"a"}`, `{"type":"tool_use","id":"toolu_1","name":"read","input":{}}`
	for _, tt := range []struct {
		name, first string // the blocks of the first answer
		edit        func(*testing.T, *convo.History)
		sent        int // blocks of reasoning of both answers that are sent
	}{
		{"as it was", think + "," + say + "," + think + "," + say, nil, 3},
		{"after a call", think + "," + call + "," + think + "," + say, nil, 2},
		{"after a blank text", think + `,{"type":"text","text":"\n"},` + think + "," + say, nil, 2},
		{"after a text that is masked", think + `,{"type":"text","text":"ask @"},` + think + "," + say, nil, 2},
		{"at the end", think + "," + say + "," + think, nil, 2},
		{"after a result without its call", think + `,{"type":"web_search_tool_result","tool_use_id":"s","content":[]},` + think + "," + say, nil, 2},
		{"after a call with the id of another one", `{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s","content":[]},` + think + "," + say, nil, 1},
		{"after a text with citations", `{"type":"text","text":"a","citations":[{"type":"web_search_result_location","url":"u","title":"t","encrypted_index":"x","cited_text":"a"}]},` + think + "," + say, nil, 2},
		{"left out by a rewrite", think + "," + say, func(t *testing.T, h *convo.History) {
			s := h.Snapshot()
			e, _ := s.At(1)
			_, err := h.Apply(s, convo.Edit{Rewrite: []convo.Rewrite{{ID: e.ID, Parts: []convo.Part{convo.Text("a")}}}})
			require.NoError(t, err)
		}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := historyOf(t)
			body := func() []byte {
				r := mustEncode(t, format, h.Snapshot())
				b, err := r.With(map[string]string{f.model: sealModels[0]})
				require.NoError(t, err)
				return b
			}
			for _, blocks := range []string{tt.first, think + "," + say} {
				mustAppend(t, h, convo.User("q"))
				signed, err := f.judge.Sign(body(), []byte(f.answer(blocks, sealModels[0], "end_turn")))
				require.NoError(t, err)
				in := mustDecode(t, format, signed)
				mustAppend(t, h, in.Messages...)
				_, err = h.AnswerOpenCalls("no")
				require.NoError(t, err)
			}
			if tt.edit != nil {
				tt.edit(t, h)
			}
			mustAppend(t, h, convo.User("q"))
			sent, refused, err := f.judge.Check(body())
			require.NoError(t, err)
			assert.Empty(t, refused)
			assert.Equal(t, tt.sent, sent)
		})
	}
}

// An answer to a request that ended with a marker is not bound: later requests have no
// marker there.
func TestSeals_AfterAMarker(t *testing.T) {
	f := sealedFormats["anthropic"]
	format := f.make(sealModels[0], wire.SealsByModel)
	h := relaxedOf(t)
	require.NoError(t, h.SetSystem(convo.System("rules")))
	for range 2 {
		r := mustEncode(t, format, h.Snapshot())
		assert.Contains(t, string(r.Body()), "[Continue.]")
		signed, err := f.judge.Sign(r.Body(), []byte(f.answer(f.think+`,{"type":"text","text":"a"}`, sealModels[0], "end_turn")))
		require.NoError(t, err)
		in := mustDecode(t, format, signed)
		mustAppend(t, h, in.Messages...)
	}
	r := mustEncode(t, format, h.Snapshot())
	sent, refused, err := f.judge.Check(r.Body())
	require.NoError(t, err)
	assert.Empty(t, refused)
	assert.Zero(t, sent)
	assert.Len(t, r.Lost, 2)
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
		h := historyOf(t, convo.User("q"))
		mustAppend(t, h, in.Messages...)
		mustAppend(t, h, convo.User("r"))
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

func TestSealCheck_Checks(t *testing.T) {
	for model, want := range map[string]bool{"claude-opus-5-5": true, "us.anthropic.claude-opus-5-5-v1:0": true, "claude-opus-4-8": false, "gpt-5.5": false, "": false} {
		assert.Equal(t, want, wire.SealsByModel.Checks(model), model)
	}
	assert.True(t, wire.SealsChecked.Checks("gpt-5.5"))
	assert.False(t, wire.SealsUnchecked.Checks("claude-opus-5-5"))
}

// Package convofantasy keeps the conversations of agents made with charm.land/fantasy inside
// the context window of a model.
//
//	a := convofantasy.New(mirror.New(h, convofantasy.Codec()))
//	agent := fantasy.NewAgent(model, fantasy.WithPrepareStep(a.PrepareStep))
//
// The list of the framework does not change. Store what Decisions of the Mirror returns along
// with it, and call mirror.Resume after a restart.
package convofantasy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"charm.land/fantasy"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/mirror"
)

// An Agent keeps the conversation of an agent of fantasy inside the window of its History.
// It is safe for concurrent use, but the conversation has one run at a time.
type Agent struct {
	// Next is the host's own PrepareStep; nil: none. It is called first, with the
	// messages of fantasy. What it inserts, replaces or removes among these is part of the
	// list; it must do the same at each step, since the list of fantasy does not change.
	// Messages that it adds after all of them are given to Add, and so stay in every later
	// request; the ProviderOptions of these, such as a cache mark, are for this request only.
	// Its System replaces the system message.
	Next fantasy.PrepareStepFunction

	// OnFollow is called by PrepareStep when the messages do not continue those of the last
	// step, such as after an edit, and entries were taken back; nil: not called.
	OnFollow func(mirror.Followed)

	// Logger gets one line, at level Warn, if two finished steps in a row were not recorded,
	// since the host called another model than Model returns. Nil: nothing is logged. Set it
	// before the first step.
	Logger *slog.Logger

	mirror *mirror.Mirror[fantasy.Message]

	mu   sync.Mutex
	sent *convo.Snapshot // what the request under way shows
	name string          // that the History has got from a step

	typed []fantasy.Message // what Next has added in this step

	isRecorded bool // the usage of the step under way was
	unrecorded int  // finished steps in a row whose usage was not; negative: Logger got its line
}

// New returns an Agent for the History of m, whose limits are those of the model. m has
// [Codec], and comes from mirror.New, or from mirror.Resume after a restart. What the user
// types while a run is under way goes to its Add. Set Next, if there is one, before the first
// step.
//
// The History gets the name of the model of each step, unless it has another one by SetModel.
func New(m *mirror.Mirror[fantasy.Message]) *Agent { return &Agent{mirror: m} }

// PrepareStep is for fantasy.WithPrepareStep, or the field of that name in a call. It
// returns the messages that fit, and Model of the model. It follows a list that has changed,
// as Follow of the Mirror does, and calls OnFollow. Its error is that of Follow, which is a
// [*mirror.PastError] if the list is that of another conversation, or that of
// History.Prepare.
func (a *Agent) PrepareStep(ctx context.Context, o fantasy.PrepareStepFunctionOptions) (context.Context, fantasy.PrepareStepResult, error) {
	r := fantasy.PrepareStepResult{Messages: o.Messages, Model: o.Model}
	list := o.Messages
	var typed []fantasy.Message
	a.begin(o)
	if a.Next != nil {
		next, own, err := a.Next(ctx, o)
		if err != nil {
			return next, own, err
		}
		ctx, r = next, own
		if r.Model == nil {
			r.Model = o.Model
		}
		if r.Messages != nil {
			list, typed = split(o.Messages, r.Messages)
		}
	}
	list = withSystem(list, r.System)
	done, err := a.mirror.Follow(list)
	if err != nil {
		return ctx, r, err
	}
	if done.Past != nil && a.OnFollow != nil {
		a.OnFollow(done)
	}
	plain := slices.Clone(typed)
	for i := range plain {
		plain[i].ProviderOptions = nil
	}
	if err := a.mirror.Add(plain...); err != nil {
		return ctx, r, err
	}
	a.add(typed)
	a.uses(r.Model)
	view, s, err := a.mirror.Prepare(ctx, list)
	if err != nil {
		return ctx, r, err
	}
	a.send(s)
	// fantasy would overwrite the first message with another System, whatever it is.
	r.Messages, r.System, r.Model = a.request(view), nil, a.Model(r.Model)
	return ctx, r, nil
}

// split returns the part of list that has the messages that fantasy has given, as Next has
// changed them, and what Next has put after all of them.
func split(given, list []fantasy.Message) (kept, typed []fantasy.Message) {
	was, now := signsOf(given), signsOf(list)
	for len(was) > 0 && len(now) > 0 && was[0] == now[0] {
		was, now = was[1:], now[1:]
	}
	best := make([]int, len(now)+1) // how well the messages of was so far and now[:i] can be aligned
	for _, w := range was {
		before := 0 // best[i] without w
		for i, n := range now {
			without := best[i+1]
			best[i+1] = max(without, best[i], before+w.likeness(n))
			before = without
		}
	}
	end := len(list) - len(now) + slices.Index(best, best[len(now)])
	return list[:end], list[end:]
}

// A sign is what split compares of a message.
type sign struct {
	role  fantasy.MessageRole
	calls string // IDs of its calls, or of those that it answers
	sum   uint64 // of what the model reads
}

// signsOf returns the signs of list after its system messages.
func signsOf(list []fantasy.Message) (signs []sign) {
	for _, m := range list[front(list):] {
		s := sign{role: m.Role}
		msgs, _ := decode(m)
		for _, msg := range msgs {
			s.sum = s.sum*31 + msg.Sum()
			for _, c := range msg.ToolCalls() {
				s.calls += c.ID + " "
			}
			for _, r := range msg.ToolResults() {
				s.calls += r.CallID + " "
			}
		}
		signs = append(signs, s)
	}
	return signs
}

// likeness returns how likely it is that a message is b, or b was put in its place.
func (a sign) likeness(b sign) int {
	switch {
	case a == b:
		return 4
	case a.role != b.role || a.calls != b.calls:
		return 0
	case a.calls != "":
		return 3
	}
	return 1
}

func front(list []fantasy.Message) int {
	if n := slices.IndexFunc(list, func(m fantasy.Message) bool { return m.Role != fantasy.MessageRoleSystem }); n >= 0 {
		return n
	}
	return len(list)
}

// withSystem returns list with another system message in the place of the first one.
func withSystem(list []fantasy.Message, text *string) []fantasy.Message {
	if text == nil {
		return list
	}
	rest := list[min(1, front(list)):]
	if *text == "" {
		return rest
	}
	return slices.Insert(slices.Clone(rest), 0, fantasy.NewSystemMessage(*text))
}

// uses names the model of a step to the History.
func (a *Agent) uses(m fantasy.LanguageModel) {
	if m == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.mirror.History().Snapshot().Model()
	if now == "" || now == a.name {
		_ = a.mirror.History().SetModel(m.Model(), convo.Limits{}) // the limits stay as they are
		now = m.Model()
	}
	if now == m.Model() {
		a.name = now
	}
}

func (a *Agent) send(s *convo.Snapshot) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent = s
}

// begin counts finished steps whose usage was not recorded. Each step but the first of a run
// follows a finished step.
func (a *Agent) begin(o fantasy.PrepareStepFunctionOptions) {
	a.mu.Lock()
	if o.StepNumber > 0 && !a.isRecorded && a.unrecorded >= 0 {
		a.unrecorded++
	}
	a.isRecorded = false
	logs := a.unrecorded == 2 && a.Logger != nil
	if logs {
		a.unrecorded = -1
	}
	a.mu.Unlock()
	if logs {
		a.Logger.Warn("convo: two steps in a row were not recorded: let ModelProvider return what Agent.Model returns")
	}
}

func (a *Agent) recorded() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.isRecorded, a.unrecorded = true, min(a.unrecorded, 0)
}

func (a *Agent) add(typed []fantasy.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.typed = typed
}

// request returns view as a provider takes it. Where it ends with what Next has added in this
// step, these messages have the options that Next gave them.
func (a *Agent) request(view []fantasy.Message) []fantasy.Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	view = ordered(view)
	if n := len(view) - len(a.typed); n >= 0 && slices.Equal(signsOf(view[n:]), signsOf(a.typed)) {
		for i, m := range a.typed {
			view[n+i].ProviderOptions = m.ProviderOptions
		}
	}
	return view
}

func (a *Agent) snapshot() *convo.Snapshot {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sent
}

// Model returns m with the calls that PrepareStep has prepared watched over: it counts
// their tools, records their usage, and when the provider says that a request is too
// long, it makes the conversation smaller and calls m again, at most twice. fantasy's own
// retries do not get there, since they send the same messages. PrepareStep returns such a
// model; a ModelProvider has to return one itself.
//
// Calls that generate objects go to m as they are.
func (a *Agent) Model(m fantasy.LanguageModel) fantasy.LanguageModel {
	if w, ok := m.(*model); ok && w.a == a {
		return m
	}
	return &model{LanguageModel: m, a: a}
}

type model struct {
	fantasy.LanguageModel
	a *Agent
}

const attempts = 3

// Generate implements fantasy.LanguageModel.
func (m *model) Generate(ctx context.Context, call fantasy.Call) (*fantasy.Response, error) {
	call, err := m.a.fit(ctx, call)
	for n := 1; err == nil; n++ {
		r, failed := m.LanguageModel.Generate(ctx, call)
		if failed == nil {
			m.a.record(m.Provider(), r.Usage)
			return r, nil
		}
		call, err = m.a.recover(ctx, call, failed, n)
	}
	return nil, err
}

// Stream implements fantasy.LanguageModel.
func (m *model) Stream(ctx context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	call, err := m.a.fit(ctx, call)
	if err != nil {
		return nil, err
	}
	n := 1
	open := func() (fantasy.StreamResponse, error) {
		for ; ; n++ {
			stream, failed := m.LanguageModel.Stream(ctx, call)
			if failed == nil {
				return stream, nil
			}
			if call, err = m.a.recover(ctx, call, failed, n); err != nil {
				return nil, err
			}
		}
	}
	stream, err := open()
	if err != nil {
		return nil, err
	}
	return func(yield func(fantasy.StreamPart) bool) {
		for again := true; again; {
			again = false
			shown := false // a part of the answer was
			for p := range stream {
				if p.Type == fantasy.StreamPartTypeError && !shown {
					if call, err = m.a.recover(ctx, call, p.Error, n); err == nil {
						n++
						stream, err = open()
					}
					if again = err == nil; again {
						break
					}
					p.Error = err
				}
				shown = shown || p.Type != fantasy.StreamPartTypeWarnings
				if p.Type == fantasy.StreamPartTypeFinish {
					m.a.record(m.Provider(), p.Usage)
				}
				if !yield(p) {
					return
				}
			}
		}
	}, nil
}

// fit tells the History the tools of a call, which PrepareStep has not seen. If they are
// others than before, it prepares the request again.
func (a *Agent) fit(ctx context.Context, call fantasy.Call) (fantasy.Call, error) {
	s := a.snapshot()
	tools := toolsOf(call.Tools)
	if s == nil || slices.Equal(tools, s.Tools()) {
		return call, nil
	}
	if err := a.mirror.History().SetTools(tools...); err != nil {
		return call, err
	}
	s, _, err := a.mirror.History().Prepare(ctx)
	if err != nil {
		return call, err
	}
	return a.show(call, s)
}

func (a *Agent) show(call fantasy.Call, s *convo.Snapshot) (fantasy.Call, error) {
	view, err := a.mirror.View(s)
	if err != nil {
		return call, err
	}
	a.send(s)
	call.Prompt = a.request(view)
	return call, nil
}

func toolsOf(list []fantasy.Tool) (tools []convo.Tool) {
	for _, t := range list {
		tool := convo.Tool{Name: t.GetName()}
		if f, ok := t.(fantasy.FunctionTool); ok {
			tool.Description = f.Description
			if schema, err := json.Marshal(f.InputSchema); err == nil {
				tool.Schema = string(schema)
			}
		} else if data, err := json.Marshal(t); err == nil {
			tool.Opaque = convo.Opaque{Format: "fantasy", JSON: string(data)}
		}
		tools = append(tools, tool)
	}
	return tools
}

func (a *Agent) record(provider string, u fantasy.Usage) {
	a.recorded()
	if s := a.snapshot(); s != nil {
		_ = a.mirror.History().RecordUsage(s, Usage(provider, u)) // figures that cannot be true change nothing
	}
}

// recover makes the conversation smaller after the n-th attempt failed, and returns the
// call to make then, or the error that fantasy should see.
func (a *Agent) recover(ctx context.Context, call fantasy.Call, failed error, n int) (fantasy.Call, error) {
	s := a.snapshot()
	if s == nil || n >= attempts {
		return call, failed
	}
	cause := failed
	var p *fantasy.ProviderError
	if errors.As(failed, &p) && p.IsContextTooLarge() {
		cause = &tooLong{p, failed}
	}
	retry, _, err := a.mirror.History().Recover(ctx, s, cause)
	if !retry {
		return call, err
	}
	return a.show(call, a.mirror.History().Snapshot())
}

// tooLong says in words what a ProviderError has in fields only.
type tooLong struct {
	p   *fantasy.ProviderError
	err error
}

func (e *tooLong) Error() string {
	text := "prompt is too long"
	if e.p.ContextUsedTokens > 0 && e.p.ContextMaxTokens > 0 {
		text = fmt.Sprintf("prompt is too long: %d tokens > %d maximum", e.p.ContextUsedTokens, e.p.ContextMaxTokens)
	}
	return fmt.Sprintf("%v: %s", e.err, text)
}

func (e *tooLong) Unwrap() error { return e.err }

// Usage returns what one call of a provider's model has used. Only for the provider
// "google" does fantasy count what was read from a cache as input also.
func Usage(provider string, u fantasy.Usage) convo.Usage {
	input := u.InputTokens + u.CacheCreationTokens
	if provider != "google" {
		input += u.CacheReadTokens
	}
	return convo.Usage{
		Input: int(input), CacheRead: int(u.CacheReadTokens), CacheWrite: int(u.CacheCreationTokens),
		Output: int(u.OutputTokens), Reasoning: int(min(u.ReasoningTokens, u.OutputTokens)),
	}
}

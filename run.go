package convo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/seed-c1b73e60/convo/internal/causes"
	"github.com/seed-c1b73e60/convo/internal/prompt"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// A Handler is a tool that [History.Run] offers, and the code that runs its calls.
type Handler struct {
	Tool

	// Run runs a call, and returns the content of its result: Text, Media and Opaque. If it
	// returns an error, the result is an error, with the text of that error after the parts. If
	// Run panics, ends its goroutine or returns parts that a result cannot hold, the result is
	// an error that says so, and Options.Logger gets a line for the first two.
	//
	// Run is called on a goroutine of its own. ctx ends when that of History.Run ends, and when
	// the History is closed. Run should then return soon, since History.Run waits for it. It
	// must not call Run of the same History. It is not called for arguments that are not a JSON
	// object, unless the tool has an Opaque, since such a tool may take any text.
	//
	// Nil: the call stays open, and History.Run returns, such as for a user to approve it.
	Run func(ctx context.Context, call ToolCall) ([]Part, error)

	Alone bool // a call never runs at the same time as another, but after all before it and before all after it
}

// RunOptions are the options of [History.Run]. The zero value works.
type RunOptions struct {
	// Tools are given to SetTools. Their names must differ, but tools of the provider's own
	// need none. Nil: the tools of the History stay as they are, and calls of those that it has
	// when they are answered stay open.
	Tools []Handler

	Parallel    int // how many calls of one answer run at the same time; 0: 1
	MaxRequests int // how often send may be called; 0: 50
}

// defaultMaxRequests is the default of RunOptions.MaxRequests.
const defaultMaxRequests = 50

// Run makes requests with [History.Do], and runs the calls of each answer, until no call is
// open and no message waits for an answer:
//
//	reply, err := h.Run(ctx, send, convo.RunOptions{Tools: []convo.Handler{{
//		Tool: convo.Tool{Name: "weather", Description: "Tells the weather in a city.", Schema: schema},
//		Run: func(ctx context.Context, call convo.ToolCall) ([]convo.Part, error) {
//			...
//			return []convo.Part{convo.Text(report)}, nil
//		},
//	}}})
//
// Calls that are open at the start, such as those of an earlier process, are run first. The
// results of an answer are appended together, in the order of the calls, even if ctx has ended
// since. A call gets an error result, which the model reads, if there is no tool of its name,
// its arguments are not a JSON object, or ctx had ended before it was run. [Handler] has the
// other cases. A call that another goroutine has answered keeps that answer. If the calls were
// taken back, or another message follows them, the error matches [ErrStale].
//
// Run returns the last answer, or with an error what the failed step has. The results of its
// calls follow in Messages; those that could not be appended come last and have no IDs.
//
// The error is also nil when calls stay open because their tools have no Run or are in
// [Reply.ParamTools]; see [Reply.OpenCalls]. To approve them, append their results, or call Run
// again with tools that run them; to refuse, call [History.AnswerOpenCalls]. If such calls are
// open at the start, no request is made, and the Reply holds their message.
//
// Text that stopped for length is kept, and is not an error; see Reply.Stop. If an answer was
// cut off in a call or is empty, the error is an [*AnswerError]. After MaxRequests it matches
// [ErrMaxRequests]. A [*ValueError] says that o is out of range, and any other error is as for
// Do. With each of these errors the conversation is valid, and no call is open but those above.
// The exception is results that could not be appended, because Append returned the error, such
// as that of Options.Spill, or h was closed.
//
// Messages given to [History.Queue] are delivered after the results of an answer, or after it
// if it has none, and answered. All methods of h may be called while Run works. Several Runs on
// h take turns: one step, a request and its calls, is made at a time. Run must not be called
// from where Do must not, nor from a tool; see [ErrReentrant].
//
// Run saves nothing: call Save in the loop of Steps, and in a tool to keep its call before it
// acts. After a restart, calls that were saved open are run again.
func (h *History) Run(ctx context.Context, send Send, o RunOptions) (last Reply, err error) {
	for last, err = range h.Steps(ctx, send, o) { // an error is that of the last one
	}
	return last, err
}

// Steps is [History.Run] one step at a time. It yields each answer after the results of its
// calls were appended, so the loop may be left at any step: the conversation is valid, and
// another Run goes on with it. Nothing happens until the result is ranged over. An error ends
// the steps.
//
// The body of the loop may change the conversation: the steps go on as long as a message waits
// for an answer and no call is open. So it may answer calls that stayed open, or append a user
// message after the last answer.
func (h *History) Steps(ctx context.Context, send Send, o RunOptions) iter.Seq2[Reply, error] {
	return func(yield func(Reply, error) bool) {
		r := &runner{h: h, send: send, tools: slices.Clone(o.Tools)}
		if err := r.start(ctx, o); err != nil {
			h.failed(err)
			yield(Reply{}, err)
			return
		}
		for {
			reply, done, err := r.step()
			h.failed(err)
			if done || !yield(reply, err) || err != nil {
				return
			}
		}
	}
}

// A runner is one range over Steps.
type runner struct {
	h        *History
	ctx      context.Context
	send     Send
	tools    []Handler // nil: those of the History
	parallel int
	max      int
	made     int  // how many requests
	started  bool // the first step was made
	paused   bool // the newest answer is paused
}

// start checks the arguments of Steps, and sets the tools.
func (r *runner) start(ctx context.Context, o RunOptions) (err error) {
	switch {
	case r.send == nil:
		return &ValueError{Name: "the send given to Run", Want: "a function that calls a model"}
	case o.Parallel < 0:
		return &ValueError{Name: "RunOptions.Parallel", Value: o.Parallel, Want: "0 or more"}
	case o.MaxRequests < 0:
		return &ValueError{Name: "RunOptions.MaxRequests", Value: o.MaxRequests, Want: "0 or more"}
	}
	r.parallel, r.max = max(o.Parallel, 1), cmp.Or(o.MaxRequests, defaultMaxRequests)
	if r.ctx, err = r.h.compacting.enter(ctx); err == nil {
		r.ctx, err = r.h.running.enter(r.ctx)
	}
	if err == nil {
		_, err = r.h.answering.enter(r.ctx)
	}
	if err != nil || o.Tools == nil {
		return err
	}
	tools, isTaken := make([]Tool, len(r.tools)), make(map[string]bool)
	for i := range r.tools {
		tools[i] = r.tools[i].Tool
		name := text.Valid(tools[i].Name) // as the History has it
		if name != "" && isTaken[name] {
			return &ValueError{Name: fmt.Sprintf("RunOptions.Tools[%d].Name", i), Value: name, Want: "a name that no other tool has"}
		}
		r.tools[i].Name, isTaken[name] = name, true
	}
	return r.h.SetTools(tools...)
}

// step makes a request and runs the calls of the answer. The first step first runs the
// calls that are open; if some stay open, it makes no request. A later one reports done,
// and does nothing, unless an answer is due.
func (r *runner) step() (reply Reply, done bool, err error) {
	h := r.h
	if err := h.running.take(r.ctx, h.done, notSent); err != nil {
		return Reply{}, false, err
	}
	defer h.running.release()
	ctx := h.running.mark(r.ctx)
	if r.started {
		due := false
		h.locked(func() { due = h.awaitsNext(r.paused) })
		if !due {
			return Reply{}, true, nil
		}
		reply, err = r.request(ctx)
		return reply, false, err
	}
	if h.isClosed() {
		return Reply{}, false, ErrClosed
	}
	r.started = true
	before, open, err := r.resume(ctx)
	if open || err != nil {
		return before, false, err
	}
	reply, err = r.request(ctx)
	reply.Reports = slices.Concat(before.Reports, reply.Reports)
	return reply, false, err
}

// resume runs the calls that are open. It returns the message that holds them and all
// their results, and reports whether some stay open.
func (r *runner) resume(ctx context.Context) (reply Reply, open bool, err error) {
	at := r.h.Snapshot()
	calls := at.OpenCalls()
	if len(calls) == 0 {
		return Reply{}, false, nil
	}
	head := at.list[len(at.list)-1].head
	reply = Reply{Messages: []Message{at.find(head).msg.clone()}, IDs: []ID{head}}
	at.addResults(&reply, nil)
	if ctx.Err() != nil {
		return reply, true, errorf("%s: %w", notSent, causeOf(ctx))
	}
	reply.Stop = StopToolCall
	err = r.answer(ctx, head, calls, &reply)
	return reply, len(reply.OpenCalls()) > 0, err
}

// request makes one request with Do, and runs the calls of the answer.
func (r *runner) request(ctx context.Context) (Reply, error) {
	reply, err := r.do(ctx)
	if err != nil {
		return reply, err
	}
	r.paused = reply.Stop == StopPause
	if calls := reply.OpenCalls(); len(calls) > 0 {
		last := len(reply.Messages) - 1
		for reply.Messages[last].Role != RoleAssistant {
			last--
		}
		if err := r.answer(ctx, reply.IDs[last], calls, &reply); err != nil {
			return reply, err
		}
	}
	return reply, reply.fault(ctx, r.h.Snapshot)
}

// do calls Do, unless no more requests are allowed.
func (r *runner) do(ctx context.Context) (Reply, error) {
	spent := &maxRequestsError{Max: r.max}
	if r.made >= r.max {
		return Reply{}, spent
	}
	return r.h.Do(ctx, func(ctx context.Context, s *Snapshot) (Reply, error) {
		if r.made >= r.max {
			return Reply{}, spent
		}
		r.made++
		return r.send(ctx, s)
	})
}

// addResults adds the results that follow the newest entry of reply, which belongs to the
// newest exchange. Those in batch, which was just appended, are whole.
func (s *state) addResults(reply *Reply, batch []pendingEntry) {
	for _, e := range s.list[firstAfter(s.list, reply.IDs[len(reply.IDs)-1]):] {
		m := pendingEntry{entry: e}
		if i := slices.IndexFunc(batch, func(a pendingEntry) bool { return a.id == e.id }); i >= 0 {
			m = batch[i]
		}
		reply.Messages, reply.IDs = append(reply.Messages, m.given()), append(reply.IDs, e.id)
	}
}

// answer runs calls of the entry head, appends their results, and adds them to reply.
func (r *runner) answer(ctx context.Context, head ID, calls []ToolCall, reply *Reply) error {
	results := r.results(ctx, head, calls)
	if len(results) == 0 {
		return nil
	}
	err := r.append(head, results, reply)
	if err != nil {
		reply.Messages = append(reply.Messages, results...)
	}
	return err
}

// append appends the results of calls of the entry head, without those of calls that were
// answered in the meantime, and adds to reply what it has appended.
func (r *runner) append(head ID, msgs []Message, reply *Reply) error {
	h := r.h
	batch, err := h.newMessages(nil, msgs)
	if err != nil {
		return err
	}
	err = h.ifOpen(func() (err error) {
		batch, err = h.onlyOpen(head, batch)
		for i := range batch {
			batch[i].id = h.last + ID(i) + 1 // for the markers
		}
		return err
	})
	if err == nil {
		err = h.cutResults(batch)
	}
	if err != nil {
		return err
	}
	var cut *Report
	err = h.ifOpen(func() (err error) {
		if batch, err = h.onlyOpen(head, batch); err != nil {
			return err
		}
		if cut, err = h.appendLocked(batch); err != nil {
			return err
		}
		h.addResults(reply, batch)
		reply.Queued += h.deliverLocked()
		return nil
	})
	if cut != nil {
		reply.Reports = append(reply.Reports, cut.clone())
		h.deliver(*cut)
	}
	return err
}

// results runs calls of the entry head, and returns their results in order. There is none
// for a call whose tool has no Run, or that is no longer open when its turn comes.
func (r *runner) results(ctx context.Context, head ID, calls []ToolCall) []Message {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() {
		select {
		case <-r.h.done:
			end(ErrClosed)
		case <-ctx.Done():
		}
	}()
	results := make([]Message, len(calls))
	free := make(chan struct{}, r.parallel)
	var running sync.WaitGroup
	for i, call := range calls {
		tool, err := r.toolOf(call)
		if err != nil {
			results[i] = ResultError(call, err)
			continue
		}
		if tool.Run == nil {
			continue
		}
		if tool.Alone {
			running.Wait()
		}
		free <- struct{}{}
		switch {
		case ctx.Err() != nil:
			results[i] = ResultError(call, errors.New("the call was not run: "+forModel(causeOf(ctx))))
			<-free
		case !r.isOpen(head, call.ID):
			<-free
		default:
			running.Go(func() {
				defer func() { <-free }()
				r.run(ctx, tool, call, &results[i])
			})
		}
		if tool.Alone {
			running.Wait()
		}
	}
	running.Wait()
	return slices.DeleteFunc(results, func(m Message) bool { return m.Role == RoleNone })
}

// isOpen reports whether a call of the entry head is open.
func (r *runner) isOpen(head ID, callID string) (open bool) {
	r.h.locked(func() { open = r.h.isOpenCall(head, callID) })
	return open
}

// toolOf returns the tool of a call, or an error if the call cannot be run.
func (r *runner) toolOf(call ToolCall) (*Handler, error) {
	tools := r.tools
	if tools == nil {
		for _, t := range r.h.Snapshot().Tools() {
			tools = append(tools, Handler{Tool: t})
		}
	}
	var tool *Handler
	var names []string
	for i := range tools {
		if tools[i].Name == call.Name {
			tool = &tools[i]
		}
		if tools[i].Name != "" {
			names = append(names, tools[i].Name)
		}
	}
	switch {
	case tool == nil && r.isParamTool(call.Name):
		return &Handler{}, nil
	case tool == nil && len(names) == 0:
		return nil, fmt.Errorf("there is no tool %q", abbreviate(call.Name))
	case tool == nil:
		return nil, fmt.Errorf("there is no tool %q; the tools are %s", abbreviate(call.Name), strings.Join(names, ", "))
	case tool.Opaque == (Opaque{}) && !call.Valid():
		return nil, errors.New("the arguments are not a JSON object; call the tool again with one")
	}
	return tool, nil
}

// isParamTool reports whether the parameters of the newest request declare a tool.
func (r *runner) isParamTool(name string) (is bool) {
	r.h.locked(func() { is = r.h.talk.isParamTool(name) })
	return is
}

// run runs a call and sets its result, whatever the tool does.
func (r *runner) run(ctx context.Context, tool *Handler, call ToolCall, result *Message) {
	var parts []Part
	err := errors.New("the tool ended its goroutine with runtime.Goexit") // unless it returns
	broken := true
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{In: fmt.Sprintf("the tool %q", abbreviate(call.Name)), Value: v}
		}
		if broken {
			r.h.warn("convo: a tool panicked", "tool", call.Name, "cause", err, "stack", string(debug.Stack()))
		}
		*result = resultOf(call, parts, err)
	}()
	parts, err = tool.Run(ctx, call)
	broken = false
}

// resultOf returns the result of a call for what its tool has returned.
func resultOf(call ToolCall, parts []Part, err error) Message {
	r := ToolResult{CallID: call.ID, Name: call.Name, Parts: parts, IsError: err != nil}
	if _, reason := r.check(false); reason != "" {
		return ResultError(call, fmt.Errorf("the tool returned what no result can hold: %s", reason))
	}
	if err != nil {
		r.Parts = append(slices.Clip(r.Parts), Text(forModel(err)))
	}
	return Message{Role: RoleTool, Parts: []Part{r}}
}

// forModel returns the text of an error for the result of a call. What ErrClosed and a
// PanicError tell a programmer to do is not in it.
func forModel(err error) string {
	return causes.Reworded(withoutPrefix(err), err, func(e error) string {
		if e == ErrClosed {
			return "the conversation was closed"
		}
		if e, ok := e.(*PanicError); ok {
			return e.fault()
		}
		return ""
	})
}

// CompactTool returns a tool, named "compact", with which the model asks for a compaction. The
// call and its result stay in the view, after the summary, at least until the model has
// answered them, so it reads there what it wanted to do next. This is also the focus of the
// summary.
//
// It works down to the size of [History.Compact], while the call is open. Unlike Compact, it
// must free Limits.MinFree, as much must be new since the last edit, no summarizer is called
// for a while after failures, and nothing is dropped if the summarizer fails: there is time.
// The reason is ReasonTool, or ReasonHigh if the request is larger than Limits.High. The result
// says how it ended in words for the model, without the texts of errors, which are in the
// report.
func (h *History) CompactTool() Handler {
	return Handler{
		Tool: Tool{
			Name:        "compact",
			Description: prompt.CompactTool,
			Schema:      prompt.CompactSchema,
		},
		Run: h.answerCompact,
	}
}

// answerCompact compacts, as a call of CompactTool asks for, and returns what its result says.
func (h *History) answerCompact(ctx context.Context, call ToolCall) ([]Part, error) {
	var args struct{ Next string }
	if err := json.Unmarshal([]byte(call.Arguments), &args); err != nil {
		return nil, fmt.Errorf("the arguments are not a JSON object: %w", err)
	}
	next := strings.TrimSpace(text.Valid(args.Next))
	if next == "" {
		return nil, errors.New("say what you do next")
	}
	focus := next[:text.Floor(next, mostFocus)]
	r, _ := h.withSlot(ctx, ReasonTool, 1, ifDue(ReasonTool, focus))
	switch r.Outcome {
	case OutcomeApplied:
		return textParts("Done: older messages were removed. Go on with what you wanted to do next."), nil
	case OutcomeNotNeeded, OutcomeDeclined:
		return textParts("Nothing was removed, because it would make too little room. Go on with what you wanted to do next."), nil
	}
	return nil, errors.New("nothing was removed, because the compaction failed; go on with what you wanted to do next")
}

// mostFocus is how many bytes of what the model does next the summarizer is told.
const mostFocus = 2000

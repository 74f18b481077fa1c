package convo

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// Summarize is a [CompactionStrategy] that replaces the oldest exchanges by a
// summary. It cuts where [Truncate] does, deep enough for the edit to free
// Goal.MinFree. If there is a summary already, the summarizer updates it.
//
// A summary that is empty, cut off or too long is refused, and so is one by a model
// that repeats itself; see [RefusedError].
//
// If the messages to summarise do not fit the summarizer's window, they are
// summarised in several calls, each of which updates the summary that the call
// before it wrote. Long tool results are cut in the middle; see MaxResult.
type Summarize struct {
	// With writes the summary. Nil means Extract{}, which calls no model.
	With Summarizer

	// KeepTokens is how many raw tokens of the newest messages to keep at most, in
	// addition to the floor. 0 means as many as the goal allows, or if KeepLast or
	// KeepTurns is set, none; a negative value means none.
	KeepTokens int

	// KeepLast is how many of the newest entries to keep, and KeepTurns how many
	// of the newest turns. Less than 1 means none. An exchange that the first of
	// them falls into stays whole. If several of KeepTokens, KeepLast and KeepTurns
	// are set, what any of them keeps stays. System entries do not count.
	//
	// The entries that KeepLast and KeepTurns keep stay even if the view is larger
	// than Goal.Target then. Only if the request would not be within the limit
	// otherwise, the oldest of them are summarised as well; Report.NotKept says
	// how many. A later strategy in a Chain does not take them into account: it
	// runs if the target is not reached, and may drop them.
	KeepLast, KeepTurns int

	// MaxTokens is how long a summary may be, in raw tokens. A longer one is
	// refused.
	//
	//   - 0 or less means an eighth of Limits.Low, but at least 500.
	//   - If MaxTokens is 0 or less, or not below the summarizer's window, the
	//     bound is at most an eighth of that window.
	//   - The bound is at most half of Goal.Target, or 500 if that is more.
	//   - It is at most what the edit leaves room for.
	MaxTokens int

	// Window is the context window of the summarizer's model, in tokens. 0 means
	// Limits.Window of the History. With a negative value, or where neither is
	// set, everything is summarised in one call.
	Window int

	// MaxResult is how many tokens of one tool result the prompt for a summarizer
	// that calls a model shows, but at least 64. Of a longer result the middle is
	// left out, and Report.Unread says how much; SummaryRequest.Messages holds all
	// of it. 0 means an eighth of the summarizer's window, a negative value the
	// whole result, and so does 0 if the window has no bound.
	MaxResult int

	// Prompt is the instruction for the model. Empty means DefaultPrompt.
	Prompt string

	// Timeout is how long one call of a summarizer that calls a model may take.
	// 0 means a minute; a negative value means no bound. If ctx has a deadline,
	// all calls together also end after three quarters of the time that is left
	// until then, so that a later strategy in a Chain has the rest.
	// A call that takes longer has failed, whether it returns or not.
	Timeout time.Duration
}

// defaultTimeout is long enough for a summary of some thousand tokens by a slow
// model.
const defaultTimeout = time.Minute

// Name returns "summarize".
func (Summarize) Name() string { return "summarize" }

// maxSummary returns the default bound of a summary: an eighth of low, at least
// 500 tokens.
func maxSummary(low int) int { return max(low/8, 500) }

// leastSummary is the room, in tokens, below which no summary is requested: the
// answer would be refused, or say nothing.
const leastSummary = 64

// String names the summarizer, and not the prompt.
func (s Summarize) String() string { return fmt.Sprintf("summarize(with %T)", s.With) }

// Compact returns an edit that drops the oldest exchanges and puts a summary in
// their place, which it requests from the summarizer. It returns [ErrNoGain] if that
// would free too little, and g.NoModel if it is set and the summarizer calls a
// model. It returns a [*RefusedError] for a summary that it does not accept, a
// [*ValueError] if the summarizer's window is too small for the prompt, and
// otherwise the error of the summarizer. The Effort of the edit is set even if
// there is an error.
func (z Summarize) Compact(ctx context.Context, s *Snapshot, g Goal) (e Edit, err error) {
	w := writer{
		with: z.With, prompt: z.Prompt, window: z.Window, windowName: "Summarize.Window", maxTokens: z.MaxTokens, focus: g.Focus,
		timeout: cmp.Or(z.Timeout, defaultTimeout), maxResult: z.MaxResult, inTurn: true,
		s: s, sent: g.Sent, sentTokens: g.SentTokens, count: g.count(s),
	}
	e.Effort = &w.work // also returned with every error
	defer catch(&err, "Options.Tokenizer")
	if g.NoModel != nil && callsModel(z.With) {
		return e, g.NoModel
	}
	target := g.target(s)
	if w.maxTokens <= 0 {
		w.maxTokens = maxSummary(cmp.Or(g.Low, int(target)))
	}
	switch {
	case !callsModel(z.With):
		w.window = -1
	case w.window == 0:
		w.window, w.windowName = g.Window, "Limits.Window"
	}
	if w.window > 0 && (z.MaxTokens <= 0 || z.MaxTokens >= w.window) {
		w.maxTokens = min(w.maxTokens, max(w.window/8, leastChunk))
	}
	w.maxTokens = min(w.maxTokens, max(clampInt(target/2), maxSummary(0))) // so that the cut leaves something besides the summary
	keep := newest(s.list, z.KeepLast, z.KeepTurns)
	keeps := keep < len(s.list)
	if s.raw() <= target && !(keeps && g.Reason == ReasonTrigger && g.Target <= 0) {
		return e, ErrNoGain
	}
	fits := s.raw() - min(int64(max(g.MinFree, 1)), s.raw()+1) // how large the view may be after the edit
	least := int64(min(w.maxTokens, leastSummary))
	c, notKept := z.planCut(s, min(target, fits), w.maxTokens, keep), 0
	if limit := int64(g.Limit); keeps && limit > 0 && s.raw() > limit {
		if fits = min(fits, limit); c.room(fits) < least {
			c = Summarize{}.planCut(s, fits, w.maxTokens, len(s.list))
			for _, id := range c.drop {
				if id >= s.list[keep].id {
					notKept++
				}
			}
		}
	}
	room := c.room(fits)
	if len(c.drop) == 0 || room < least {
		return e, ErrNoGain
	}
	w.maxTokens = min(w.maxTokens, clampInt(room))
	for _, id := range c.drop {
		read := g.original(ctx, s, id)
		w.sources = append(w.sources, source{id, read.Message})
		w.unread = addClamped(w.unread, read.Missing)
	}
	w.collectPinned()
	summary, err := w.write(ctx)
	if err != nil {
		return e, err
	}
	w.work.NotKept = notKept
	e.Drop, e.Summary = c.drop, &Summary{Text: summary.Text, Usage: summary.Usage, Model: summary.Model}
	return e, nil
}

// planCut plans a cut as cutTo does, but leaves room for a new summary of
// maxTokens instead of the present one.
func (z Summarize) planCut(s *Snapshot, target int64, maxTokens, keep int) cut {
	target += s.summary.tokens() - int64(s.SummaryTokens("")) - int64(maxTokens)
	if z.KeepTokens < 0 || z.KeepTokens == 0 && keep < len(s.list) {
		target = 0
	}
	return cutTo(s, target, int64(max(z.KeepTokens, 0)), keep)
}

// callsModel reports whether a summarizer may call a model, which is so for all
// but Extract.
func callsModel(with Summarizer) bool {
	switch with.(type) {
	case nil, Extract, *Extract:
		return false
	}
	return true
}

// A writer gets one summary from a summarizer, in as many calls as that takes.
type writer struct {
	with       Summarizer
	prompt     string
	focus      string
	window     int           // 0 or less: no bound
	windowName string        // the option that window comes from
	maxTokens  int           // of the summary
	timeout    time.Duration // of each call; 0 or less: no bound
	maxResult  int           // tokens of one result in a transcript; 0: by the window; negative: all
	inTurn     bool          // others may follow: all calls end while there is time left until ctx's deadline
	until      time.Time     // when they end; zero: no bound
	s          *Snapshot
	count      func(string) int

	sources    []source
	system     []Message // they stay in the view in addition to the summary
	pinned     []Message // and so do these
	sent       *Snapshot // see Goal.Sent
	sentTokens int
	unread     int // tokens that were cut out of results, here or earlier

	work Effort
}

// A source is a message that a summary is to stand for.
type source struct {
	id  ID
	msg Message
}

// collectPinned fills in w.pinned.
func (w *writer) collectPinned() {
	for _, id := range w.s.pinned() {
		w.pinned = append(w.pinned, w.s.find(id).msg.clone())
	}
}

// reusableSent returns a copy of the snapshot last sent, if it shows the present
// summary and all sources, and the window has room for an instruction and a
// summary after it. Otherwise it returns nil.
func (w *writer) reusableSent(instruction string) *Snapshot {
	if w.sent == nil || w.sent.summary != w.s.summary {
		return nil
	}
	if w.window > 0 && w.sentTokens+w.count(instruction)+w.maxTokens > w.window {
		return nil
	}
	for _, src := range w.sources {
		if e := w.sent.find(src.id); e == nil || !reflect.DeepEqual(e.msg, src.msg) {
			return nil
		}
	}
	own := *w.sent
	return &own
}

// write calls the summarizer, and returns a summary that was accepted, with the
// usage of all calls.
func (w *writer) write(ctx context.Context) (Summary, error) {
	if w.with == nil {
		w.with = Extract{}
	}
	if deadline, ok := ctx.Deadline(); ok && w.inTurn {
		left := time.Until(deadline)
		w.until = deadline.Add(-left / 4)
	}
	for _, e := range w.s.sys {
		w.system = append(w.system, e.msg.clone())
	}
	p := newPrompter(w)
	previous := ""
	if w.s.summary != nil {
		previous = w.s.summary.sum.Text
	}
	chunks, err := p.chunks(previous)
	if err != nil {
		return Summary{}, err
	}
	var summary Summary
	for _, chunk := range chunks {
		req := SummaryRequest{
			Prompt:      p.prompt(previous, chunk.text),
			Previous:    previous,
			Messages:    chunk.messages(),
			System:      cloneAll(w.system),
			Pinned:      cloneAll(w.pinned),
			Focus:       w.focus,
			MaxTokens:   w.maxTokens,
			Instruction: p.instruction(),
			Count:       w.count,
		}
		if len(chunks) == 1 {
			req.Sent = w.reusableSent(req.Instruction)
		}
		summary, err = w.summarize(ctx, req)
		if err != nil {
			return Summary{}, err
		}
		previous = summary.Text
	}
	w.work.Unread = w.unread
	summary.Usage = w.work.Usage
	return summary, nil
}

// summarize makes one call of the summarizer, and checks what it returns.
func (w *writer) summarize(ctx context.Context, req SummaryRequest) (summary Summary, err error) {
	if ctx.Err() != nil {
		return summary, causeOf(ctx)
	}
	if callsModel(w.with) {
		w.work.Calls++
	}
	summary, err = w.call(ctx, req)
	if summary.Usage.fault() != nil {
		summary.Usage = Usage{}
	}
	w.work.Usage = w.work.Usage.plus(summary.Usage)
	if err != nil {
		return summary, &wordedError{"summarizer: " + withoutPrefix(err), err}
	}
	summary.Text = strings.TrimSpace(text.Valid(summary.Text))
	if err := summary.fault(); err != nil {
		return summary, err
	}
	if n := w.count(summary.Text); n > w.maxTokens {
		return summary, &RefusedError{Reason: fmt.Sprintf("the summary has %s tokens, but at most %s were asked for", grouped(int(n)), grouped(int(w.maxTokens)))}
	}
	if callsModel(w.with) {
		if err := summary.repeats(); err != nil {
			return summary, err
		}
	}
	return summary, nil
}

// call calls the summarizer, and turns a panic into an error. If the summarizer
// calls a model, call waits for it until ctx ends or its time is up, and no longer.
func (w *writer) call(ctx context.Context, req SummaryRequest) (summary Summary, err error) {
	const in = "Summarizer"
	if !callsModel(w.with) {
		defer catch(&err, in)
		return w.with.Summarize(ctx, req)
	}
	bounded, cancel := w.bound(ctx)
	defer cancel()
	summary, err = await(bounded, in, func() (Summary, error) { return w.with.Summarize(bounded, req) })
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		err = context.Cause(bounded)
	}
	return summary, err
}

// bound returns ctx with the time that a call of the summarizer may take.
func (w *writer) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ends := time.Now().Add(w.timeout)
	switch {
	case w.timeout > 0 && (w.until.IsZero() || ends.Before(w.until)):
		return context.WithDeadlineCause(ctx, ends, fmt.Errorf("no answer within %v; raise Summarize.Timeout, or use a faster model: %w", w.timeout, context.DeadlineExceeded))
	case !w.until.IsZero():
		return context.WithDeadlineCause(ctx, w.until, fmt.Errorf("no answer within three quarters of the time until the deadline of ctx; give ctx more time, or use a faster model: %w", context.DeadlineExceeded))
	}
	return ctx, func() {}
}

func cloneAll(msgs []Message) []Message {
	out := make([]Message, len(msgs))
	for i := range msgs {
		out[i] = msgs[i].clone()
	}
	return out
}

// Handoff returns a summary of the whole view, for another agent that continues
// the work. It does not change h, does not wait for a running compaction, and
// works after Close too.
//
// The summary is written by the summarizer with; nil means [Extract]. The focus
// says what it should concentrate on, and may be empty. A nil ctx never ends. A
// model is shown no more of a tool result than an eighth of Limits.Window.
//
// The error matches [ErrNoGain] if there is nothing to summarise, a [*RefusedError] if
// the summary is empty, cut off, longer than an eighth of Limits.Low (at least
// 500 tokens), or by a model and repeats itself, and a [*ValueError] if
// Limits.Window is too small for the prompt. Otherwise it is the error of the
// summarizer or of ctx. The zero History returns [ErrClosed].
func (h *History) Handoff(ctx context.Context, with Summarizer, focus string) (_ Summary, err error) {
	defer catch(&err, "Options.Tokenizer")
	if h.ident == nil {
		return Summary{}, ErrClosed
	}
	if ctx == nil {
		ctx = context.Background()
	}
	s := h.Snapshot()
	h.mu.Lock()
	limits := h.limits
	sent, tokens := h.lastSentLocked()
	h.mu.Unlock()
	if len(s.list) == 0 && s.summary == nil {
		return Summary{}, &wordedError{"the conversation is empty, so there is nothing to summarise; append to it first", ErrNoGain}
	}
	w := writer{
		with:       with,
		window:     limits.Window,
		windowName: "Limits.Window",
		maxTokens:  maxSummary(limits.Low),
		focus:      focus,
		s:          s,
		sent:       sent,
		sentTokens: tokens,
		count:      func(text string) int { return clampInt(h.ident.text(text)) },
	}
	for _, e := range s.list {
		read, _ := s.toRead(ctx, e.id)
		w.sources = append(w.sources, source{e.id, read.Message})
	}
	summary, err := w.write(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = errorf("handoff stopped: %w", causeOf(ctx))
		}
		return Summary{}, err
	}
	summary.Covers = rangesOf(idsOf(s.list))
	if s.summary != nil {
		summary.Covers = slices.Concat(s.summary.sum.Covers, summary.Covers)
		summary.Updates = min(s.summary.sum.Updates, maxUpdates-1) + 1
	}
	var notCovered state // the view without what the summary stands for
	notCovered.load(s.sys, nil, nil, 0)
	summary.Covers = notCovered.covering(summary.Covers)
	return summary, nil
}

func idsOf(list []*entry) []ID {
	ids := make([]ID, len(list))
	for i, e := range list {
		ids[i] = e.id
	}
	return ids
}

package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/prompt"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// NativeSummary is a [convo.CompactionStrategy] that lets the provider of the model compact
// the conversation. Use it in front of a [convo.Summarize] in a [convo.Chain]:
//
//	convo.Chain(
//		wire.NativeSummary{Format: format, Post: post},
//		convo.Summarize{With: s},
//		convo.Truncate{},
//	)
//
// The summary covers everything up to the user messages of an older turn, and these and
// the notes after them. The answer to them is the first thing that stays, so it follows
// exactly what the model was asked, and signed reasoning in it and after it stays bound;
// see [convo.Snapshot.Unbound]. Unlike for other strategies, user messages of a turn that is cut
// leave with the rest, because the provider has read them. A pinned exchange stays and is
// sent again after the items, which ends the bonds after it.
//
// NativeSummary declines where there is no such place, where signed reasoning of more
// than a quarter of what the edit frees would be lost, and with Options.Redact, since a
// provider compacts what it was sent. Summary.Text is what can be read in the items.
// Where nothing can, [convo.Extract] writes it from what left, for any other model.
type NativeSummary struct {
	Format Compacter // that of the other requests, with its model

	// Post adds the model and the other parameters to a request, sends it with
	// Request.Headers, and returns the body of the answer:
	//
	//	post := func(ctx context.Context, r wire.Request) ([]byte, error) {
	//		body, err := r.With(map[string]any{"model": model, "max_tokens": 8000})
	//		...
	//	}
	//
	// The path is that of other requests for Anthropic, and /responses/compact for OpenAI.
	// max_tokens bounds the summary and the reasoning before it.
	Post func(ctx context.Context, r Request) ([]byte, error)

	// KeepTurns is the least number of newest turns that stay. Less than 1 means 1. Turns
	// before them stay while Goal.Target is reached without them.
	KeepTurns int

	// Timeout bounds the call. 0: a minute; negative: no bound. If ctx has a deadline, the call
	// also ends after three quarters of the remaining time. A call that takes longer fails.
	Timeout time.Duration
}

// Name returns "native".
func (NativeSummary) Name() string { return "native" }

// String names the type of the format.
func (n NativeSummary) String() string { return fmt.Sprintf("native(with %T)", n.Format) }

// ByProvider tells a [convo.Chain] that a provider writes the summary. It does nothing.
func (NativeSummary) ByProvider() {}

// Compact returns an edit that drops everything up to the answer to an older turn's user
// messages and puts the provider's items in its place. It returns [convo.ErrNoGain] if there is
// no such answer, or if that would free too little, and g.NoModel if it is set. A summary without
// items, or with an item that is not a JSON object, is a [*convo.RefusedError]. Other errors are
// those of Post and of Format. The call is not repeated. The Effort of the edit is set even with
// an error.
func (n NativeSummary) Compact(ctx context.Context, s *convo.Snapshot, g convo.Goal) (e convo.Edit, err error) {
	e.Effort = new(convo.Effort)
	defer caught(&err, "Options.Tokenizer")
	switch {
	case n.Format == nil:
		return e, &convo.ValueError{Name: "NativeSummary.Format", Want: "a format whose provider compacts, such as Anthropic"}
	case n.Post == nil:
		return e, &convo.ValueError{Name: "NativeSummary.Post", Want: "a function that sends a request"}
	case g.NoModel != nil:
		return e, g.NoModel
	case g.Redact != nil:
		return e, convo.ErrNoGain
	}
	c := newNativeCut(s, &g)
	most := c.maxTokens()
	place := c.place(max(n.KeepTurns, 1), most)
	if place == 0 {
		return e, convo.ErrNoGain
	}
	instruction := ""
	if g.Focus != "" {
		instruction = prompt.Task{Focus: g.Focus, MaxTokens: most, Updates: c.hasSummary}.After()
	}
	summary, err := n.ask(ctx, s.Before(c.list[place].First), instruction, e.Effort)
	if err != nil {
		return e, err
	}
	drop, unread := c.leaving(place)
	summary.Text = strings.TrimSpace(text.Valid(summary.Text))
	if summary.Text == "" {
		if summary.Text, err = c.extract(ctx, drop, most); err != nil {
			return e, err
		}
	}
	e.Drop, e.Effort.Unread = drop, unread
	e.Summary = &convo.Summary{Text: summary.Text, Native: summary.Native, Usage: summary.Usage, Model: summary.Model, Stop: summary.Stop}
	return e, nil
}

// ask returns what the provider makes of a snapshot. It waits until ctx or the time for the call
// ends, and no longer. It counts the call and its usage.
func (n NativeSummary) ask(ctx context.Context, sent *convo.Snapshot, instruction string, work *convo.Effort) (convo.Summary, error) {
	type answer struct {
		summary convo.Summary
		err     error
	}
	bounded, cancel := n.bound(ctx)
	defer cancel()
	work.Calls++
	done := make(chan answer, 1)
	go func() {
		a := answer{err: errors.New("wire: NativeSummary.Post ended its goroutine with runtime.Goexit; return an error instead")}
		defer func() { done <- a }()
		defer caught(&a.err, "NativeSummary")
		a.summary, a.err = n.compaction(bounded, sent, instruction)
	}()
	var a answer
	select {
	case a = <-done:
	case <-bounded.Done():
		a.err = bounded.Err()
	}
	work.Usage = a.summary.Usage
	switch {
	case a.err != nil && bounded.Err() != nil:
		return a.summary, context.Cause(bounded)
	case a.err != nil:
		return a.summary, a.err
	case a.summary.Native.Format == "" || len(a.summary.Native.Items) == 0:
		return a.summary, &convo.RefusedError{Reason: "the answer of the provider has no native items; set NativeSummary.Format to one that decodes them"}
	case slices.ContainsFunc(a.summary.Native.Items, func(item string) bool { return !strictjson.IsObject(item) }):
		return a.summary, &convo.RefusedError{Reason: "a native item in the answer of the provider is not a JSON object; if that happens again, compact without NativeSummary"}
	}
	a.summary.Native.Compacted = sent
	return a.summary, nil
}

// compaction asks the provider, without a bound.
func (n NativeSummary) compaction(ctx context.Context, sent *convo.Snapshot, instruction string) (convo.Summary, error) {
	r, err := n.Format.Encode(sent)
	if err == nil {
		r, err = n.Format.CompactRequest(r, instruction)
	}
	if err != nil {
		return convo.Summary{}, err
	}
	data, err := n.Post(ctx, r)
	if err != nil {
		return convo.Summary{}, err
	}
	return n.Format.DecodeCompaction(data)
}

// bound returns ctx with the deadline of the call.
func (n NativeSummary) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	most := cmp.Or(n.Timeout, time.Minute)
	cause := fmt.Errorf("no answer within %v; raise NativeSummary.Timeout, or use a faster model: %w", most, context.DeadlineExceeded)
	if deadline, ok := ctx.Deadline(); ok {
		rest := time.Until(deadline)
		if part := rest - rest/4; most < 0 || part < most {
			most = max(part, 0)
			cause = fmt.Errorf("no answer within three quarters of the time until the deadline of ctx; give ctx more time, or use a faster model: %w", context.DeadlineExceeded)
		}
	}
	if most < 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, most, cause)
}

// caught, when deferred, turns a panic in the caller's code into an error.
func caught(err *error, in string) {
	if v := recover(); v != nil {
		*err = &convo.PanicError{In: in, Value: v, Stack: string(debug.Stack())}
	}
}

// A nativeCut is a snapshot that is cut before the answer to the user messages of a turn.
type nativeCut struct {
	*convo.Snapshot
	goal       *convo.Goal
	count      func(string) int // returns the raw tokens of a text
	list       []convo.Exchange // without the system entries
	summary    convo.Summary    // of the snapshot
	hasSummary bool
}

func newNativeCut(s *convo.Snapshot, g *convo.Goal) *nativeCut {
	c := &nativeCut{Snapshot: s, goal: g, count: g.Count}
	if c.count == nil {
		c.count = func(text string) int { return s.SummaryTokens(text) - s.SummaryTokens("") }
	}
	for x := range s.Exchanges() {
		if len(c.list) > 0 || s.Before(x.First) != nil {
			c.list = append(c.list, x)
		}
	}
	c.summary, c.hasSummary = s.Summary()
	return c
}

// target returns the size to aim at: half of the view if the goal has none.
func (c *nativeCut) target() int {
	switch {
	case c.goal.Target > 0 || c.goal.Reason != convo.ReasonTrigger:
		return max(c.goal.Target, 0)
	case c.goal.Low > 0:
		return c.goal.Low
	}
	return c.Tokens() / 2
}

// maxTokens returns how many raw tokens to expect of the summary: an eighth of Low, but at least
// 500. It is at most the present summary and a quarter of what may leave, or 128 if that is more.
func (c *nativeCut) maxTokens() int {
	material := 0
	for _, x := range c.list {
		if !x.Floor {
			material += x.Tokens
		}
	}
	return min(max(cmp.Or(c.goal.Low, c.target())/8, 500), max(c.summary.Tokens+material/4, 128))
}

// place returns the index in list of the first exchange to keep, or 0 if there is no place to
// cut. It is the first place at which the target is reached with a summary of so many tokens, or
// else the last one that frees enough.
func (c *nativeCut) place(keepTurns, tokens int) (place int) {
	raw, target := c.Tokens(), c.target()
	if raw <= target {
		return 0
	}
	left := raw - c.summary.Tokens + tokens + c.SummaryTokens("")
	most := raw - max(c.goal.MinFree, 1)
	kept := c.newestTurns(keepTurns)
	asked := false // the exchange before is one of the user messages of a turn, or a note after them
	pinned := false
	for i, x := range c.list[:kept] {
		first, _ := c.Find(x.First)
		role := first.Message.Role
		if asked && role == convo.RoleAssistant && left <= most && !(pinned && c.signedFrom(x.First) > (raw-left)/4) {
			place = i
			if left <= target {
				break
			}
		}
		asked = (asked || i == 0 || c.list[i-1].Turn != x.Turn) && (role == convo.RoleUser || role == convo.RoleSystem)
		switch {
		case first.Pinned:
			pinned = true
		case x.Floor:
			return place
		default:
			left -= x.Tokens
		}
	}
	return place
}

// newestTurns returns the index in list at which the newest turns begin.
func (c *nativeCut) newestTurns(n int) int {
	for i := len(c.list) - 1; i > 0; i-- {
		if c.list[i].Turn == c.list[i-1].Turn {
			continue
		}
		n--
		if n == 0 {
			return i
		}
	}
	return 0
}

// signedFrom returns the raw tokens of the reasoning in bound entries from one on.
func (c *nativeCut) signedFrom(from convo.ID) (tokens int) {
	if c.Breakdown().Reasoning == 0 {
		return 0 // reasoning is not sent back
	}
	unbound := c.Unbound()
	for _, e := range c.All() {
		if e.ID < from || !isSigned(&e.Message) || slices.Contains(unbound, e.ID) {
			continue
		}
		for _, p := range e.Message.Parts {
			if r, ok := p.(convo.Reasoning); ok {
				tokens += c.count(r.Text) + c.count(r.Signature) + c.count(r.Encrypted)
			}
		}
	}
	return tokens
}

// isSigned reports whether m has reasoning that its provider has signed.
func isSigned(m *convo.Message) bool {
	return m.Role == convo.RoleAssistant && slices.ContainsFunc(m.Parts, func(p convo.Part) bool {
		r, ok := p.(convo.Reasoning)
		return ok && (r.Signature != "" || r.Encrypted != "")
	})
}

// leaving returns the entries before a place that are not pinned, and how many raw tokens of
// these no summary has read.
func (c *nativeCut) leaving(place int) (drop []convo.ID, unread int) {
	for _, x := range c.list[:place] {
		for _, id := range x.IDs() {
			e, _ := c.Find(id)
			if e.Pinned {
				break
			}
			drop = append(drop, id)
			if !slices.ContainsFunc(c.summary.Read, func(r convo.Range) bool { return r.First <= id && id <= r.Last }) {
				unread += e.Missing
			}
		}
	}
	return drop, unread
}

// extract returns what Extract makes of the originals of entries.
func (c *nativeCut) extract(ctx context.Context, ids []convo.ID, most int) (string, error) {
	req := convo.SummaryRequest{Previous: c.summary.Text, MaxTokens: most, Count: c.count}
	for _, id := range ids {
		e, ok := convo.Entry{}, false
		if c.goal.Original != nil {
			e, ok = c.goal.Original(ctx, id)
		}
		if !ok {
			e, _ = c.Find(id)
		}
		req.Messages = append(req.Messages, e.Message)
	}
	summary, err := convo.Extract{}.Summarize(ctx, req)
	return strings.TrimSpace(text.Valid(summary.Text)), err
}

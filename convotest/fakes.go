package convotest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/stores"
)

// ErrFake is the error that [Failing] and [Flaky] return by default.
var ErrFake = errors.New("convotest: the fake summarizer failed, as it was told to; set its Err to return another error")

const cannedText = "This is what was said before."

// Canned returns the same summary each time, at once. It ignores the request
// and ctx.
type Canned struct {
	Text  string // if empty, a short sentence
	Stop  convo.Stop
	Usage convo.Usage
}

// String describes the fake by the length of its text.
func (c Canned) String() string { return fmt.Sprintf("canned(%d bytes)", len(c.Text)) }

// Summarize returns the summary.
func (c Canned) Summarize(ctx context.Context, _ convo.SummaryRequest) (convo.Summary, error) {
	noteCall(ctx)
	if c.Text == "" {
		c.Text = cannedText
	}
	return convo.Summary{Text: c.Text, Stop: c.Stop, Usage: c.Usage}, nil
}

// Echo returns the previous summary and the texts of the messages, one per
// line, cut to the MaxTokens of the request. The same request gives the same
// text.
type Echo struct{}

// Summarize returns the texts of the request.
func (Echo) Summarize(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
	noteCall(ctx)
	said := []string{req.Previous}
	for _, m := range req.Messages {
		said = append(said, m.Text())
	}
	text := strings.TrimSpace(strings.Join(said, "\n"))
	if text == "" {
		text = "Nothing was said."
	}
	count := req.Count
	if count == nil {
		count = convo.Heuristic{}.CountTokens
	}
	for req.MaxTokens > 0 && count(text) > req.MaxTokens {
		n := len(text) * 7 / 8
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		text = strings.TrimSpace(text[:n])
	}
	return convo.Summary{Text: text}, nil
}

// Answer replaces a model: it answers the prompt of a [convo.SummaryRequest] by copying
// from it. The answer is the previous summary and the transcript in the prompt, without
// their tags, cut to the tokens that the prompt allows. If the prompt contains neither,
// the answer is a fixed sentence.
func Answer(prompt string) string {
	var said []string
	for _, name := range []string{"previous-summary", "transcript"} {
		_, rest, found := strings.Cut(prompt, "\n<"+name+" key=")
		body, _, closed := strings.Cut(rest, "\n</"+name+" key=")
		if found && closed {
			said = append(said, promptTag.ReplaceAllString(body, ""))
		}
	}
	req := convo.SummaryRequest{Previous: strings.Join(said, "\n")}
	if most := promptBound.FindAllStringSubmatch(prompt, 1); most != nil {
		req.MaxTokens, _ = strconv.Atoi(most[0][1]) // a number that is out of range sets no bound
	}
	sum, _ := Echo{}.Summarize(context.Background(), req)
	return sum.Text
}

// The patterns that Answer looks for in a prompt: tags, with the rest of the line that
// opens the previous summary or the transcript, and the number of tokens allowed.
var (
	promptTag   = regexp.MustCompile(`(?m)^"@[a-z]+">\n|</?(message|call|result|reasoning|media|block)\b[^>]*>`)
	promptBound = regexp.MustCompile(`(?m)^Write at most (\d+) tokens\.$`)
)

// Slow waits before it calls another summarizer. If ctx ends while it waits, it
// returns ctx's error and its cause.
type Slow struct {
	For  time.Duration // how long to wait; if 0, until ctx ends
	With convo.Summarizer
}

// Summarize waits, and calls the other summarizer.
func (s Slow) Summarize(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
	noteCall(ctx)
	var over <-chan time.Time
	if s.For > 0 {
		timer := time.NewTimer(s.For)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
		return or(s.With).Summarize(ctx, req)
	case <-ctx.Done():
		return convo.Summary{}, stores.Ended(ctx)
	}
}

// Failing returns an error each time.
type Failing struct {
	Err error // if nil, ErrFake
}

// Summarize returns the error.
func (f Failing) Summarize(ctx context.Context, _ convo.SummaryRequest) (convo.Summary, error) {
	noteCall(ctx)
	if f.Err == nil {
		f.Err = ErrFake
	}
	return convo.Summary{}, f.Err
}

// Flaky fails some of its calls, and passes the others to another
// summarizer. If First and Every are 0, every second call fails.
type Flaky struct {
	First int   // the first First calls fail
	Every int   // after those, every Every-th call fails; if 0, none
	Err   error // if nil, ErrFake
	With  convo.Summarizer

	calls atomic.Int64
}

// Summarize fails, or calls the other summarizer.
func (f *Flaky) Summarize(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
	n, first, every := f.calls.Add(1), int64(f.First), int64(f.Every)
	if first <= 0 && every <= 0 {
		every = 2
	}
	if n <= first || every > 0 && (n-max(first, 0))%every == 0 {
		return Failing{f.Err}.Summarize(ctx, req)
	}
	return or(f.With).Summarize(ctx, req)
}

// Panicking panics each time.
type Panicking struct {
	Value any // the panic value; if nil, a string
}

// Summarize panics.
func (p Panicking) Summarize(ctx context.Context, _ convo.SummaryRequest) (convo.Summary, error) {
	noteCall(ctx)
	if p.Value == nil {
		p.Value = "convotest: fake summarizer panicked"
	}
	panic(p.Value)
}

// Empty returns a summary without text, and no error.
type Empty struct{}

// Summarize returns the empty summary.
func (Empty) Summarize(ctx context.Context, _ convo.SummaryRequest) (convo.Summary, error) {
	noteCall(ctx)
	return convo.Summary{}, nil
}

// CutOff returns a summary that was cut off, with StopLength.
type CutOff struct{}

// Summarize returns the beginning of a summary.
func (CutOff) Summarize(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
	return Canned{Text: "This is what was", Stop: convo.StopLength}.Summarize(ctx, req)
}

// growing returns a text of n different words.
func growing(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "more%d ", i)
	}
	return strings.TrimSpace(b.String())
}

// Growing returns a summary that is fifty words longer each time, up to five thousand
// words, no matter how much the request allows.
type Growing struct{ calls atomic.Int64 }

// Summarize returns the next summary.
func (g *Growing) Summarize(ctx context.Context, _ convo.SummaryRequest) (convo.Summary, error) {
	noteCall(ctx)
	return convo.Summary{Text: growing(50 * int(min(g.calls.Add(1), 100)))}, nil
}

// Deaf blocks until Release is called, even if ctx ends, and then calls another
// summarizer. It breaks the rule that Summarize returns soon after ctx has
// ended.
type Deaf struct {
	With convo.Summarizer // called with a ctx that does not end

	made, closed sync.Once
	released     chan struct{}
}

// Release lets all current and future calls continue. It may be called more
// than once.
func (d *Deaf) Release() { d.closed.Do(func() { close(d.gate()) }) }

// Summarize blocks, and calls the other summarizer.
func (d *Deaf) Summarize(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
	noteCall(ctx)
	<-d.gate()
	return or(d.With).Summarize(context.WithoutCancel(ctx), req)
}

func (d *Deaf) gate() chan struct{} {
	d.made.Do(func() { d.released = make(chan struct{}) })
	return d.released
}

// Recorder records a copy of each request, and passes the request to another
// summarizer.
type Recorder struct {
	With convo.Summarizer

	mu       sync.Mutex
	requests []convo.SummaryRequest // protected by mu
}

// String describes the Recorder by the number of recorded requests.
func (r *Recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("recorder(%d requests)", len(r.requests))
}

// Summarize records the request, and calls the other summarizer.
func (r *Recorder) Summarize(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
	noteCall(ctx)
	own := cloneRequest(req)
	r.mu.Lock()
	r.requests = append(r.requests, own)
	r.mu.Unlock()
	return or(r.With).Summarize(ctx, req)
}

// Requests returns copies of all requests so far, in order. They include those
// of calls that have not returned yet.
func (r *Recorder) Requests() []convo.SummaryRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]convo.SummaryRequest, len(r.requests))
	for i, req := range r.requests {
		all[i] = cloneRequest(req)
	}
	return all
}

// Calls returns the number of requests so far.
func (r *Recorder) Calls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.requests)
}

// or returns s, or Canned if it is nil.
func or(s convo.Summarizer) convo.Summarizer {
	if s == nil {
		return Canned{}
	}
	return s
}

func cloneRequest(req convo.SummaryRequest) convo.SummaryRequest {
	req.Messages, req.Pinned = cloneMessages(req.Messages), cloneMessages(req.Pinned)
	return req
}

func cloneMessages(msgs []convo.Message) []convo.Message {
	msgs = slices.Clone(msgs)
	for i := range msgs {
		parts := slices.Clone(msgs[i].Parts)
		for k, p := range parts {
			if r, ok := p.(convo.ToolResult); ok {
				r.Parts = slices.Clone(r.Parts)
				parts[k] = r
			}
		}
		msgs[i].Parts = parts
	}
	return msgs
}

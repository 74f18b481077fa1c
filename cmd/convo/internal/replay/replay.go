// Package replay computes what each request of a recorded session would have held and cost
// under four policies: as it was recorded, with nothing removed, with a plain trim, and with
// convo.
//
// The recorded answers stay as they were, so a replay says what requests would have held,
// and not what the model would have done. Sizes are estimates of convo.Heuristic unless they
// are called measured: those are what the provider reported at the time.
package replay

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/session"
)

// Options are the assumptions of a replay. The zero value has no window.
type Options struct {
	Window   int           // of the model; 0: the one of the session
	Overhead int           // tokens of what requests carry and the file does not hold; negative: from the first measured request
	CacheMin int           // a shorter prefix is not read from the cache, and a shorter request not written to it
	CacheTTL time.Duration // the cache is empty after a longer pause; 0: never
	Prices   *Prices       // nil: no money

	Tokenizer convo.Tokenizer // nil: convo.Heuristic
}

// A WindowError says that neither the options nor the session have a window.
type WindowError struct{ Session string }

func (e *WindowError) Error() string {
	return fmt.Sprintf("replay: %s: the context window is not in the file; set it with -window", cmp.Or(e.Session, "session"))
}

// A Policy names a way to decide what each request holds.
type Policy string

// The policies, in the order of the tables.
const (
	Recorded Policy = "recorded" // what the other program sent, as far as the file says
	Nothing  Policy = "nothing"  // everything
	Trim     Policy = "trim"     // drops the oldest exchanges down to half of the limit
	Convo    Policy = "convo"    // a convo.History with its defaults
)

// Policies are all policies, in the order of the tables.
var Policies = [...]Policy{Recorded, Nothing, Trim, Convo}

// A Report is the replay of one session, or the sum of several.
type Report struct {
	Name     string `json:"name,omitempty"` // of the file
	Session  string `json:"session,omitempty"`
	Format   string `json:"format,omitempty"`
	Sessions int    `json:"sessions"` // how many the report is the sum of

	Window          int      `json:"window"`
	Limit           int      `json:"limit"`                      // the window without the reserve for the answer
	Overhead        int      `json:"overhead"`                   // tokens added to each request for what the file does not hold
	Derived         bool     `json:"derived"`                    // Overhead is the first measured request less the estimate of its messages
	HasSystem       bool     `json:"has_system"`                 // the file holds system text
	HasTools        bool     `json:"has_tools"`                  // the file holds tools
	SomeLack        bool     `json:"some_lack,omitempty"`        // of the sessions, some hold system text or tools, and some do not
	WindowsDiffer   bool     `json:"windows_differ,omitempty"`   // the sessions have other windows; Window is the largest
	OverheadsDiffer bool     `json:"overheads_differ,omitempty"` // the sessions have other overheads; Overhead is the largest
	Currency        string   `json:"currency,omitempty"`
	Unpriced        []string `json:"unpriced,omitempty"` // models without prices
	Requests        int      `json:"requests"`
	Refused         int      `json:"refused,omitempty"` // messages that a History does not accept, left out for every policy
	Unsent          int      `json:"unsent,omitempty"`  // requests for which convo returns an error, since they fit only without what the model needs
	Records         int      `json:"records"`
	Unknown         int      `json:"unknown"`
	Unanswered      int      `json:"unanswered,omitempty"`  // calls without a recorded result
	Subagents       int      `json:"subagents,omitempty"`   // messages of subagents, left out
	Dropped         int      `json:"dropped,omitempty"`     // messages left out: repeated, empty or on another branch
	UsagesLost      int      `json:"usages_lost,omitempty"` // reports of usage left out

	// MeasuredEstimate is the estimate of the requests that were measured.
	MeasuredEstimate int64 `json:"measured_estimate,omitempty"`

	// Contradicted is how many of them differ by more than 20 % from what was measured, and Worst
	// is the request that differs most. Its number is 0 in a sum.
	Contradicted int            `json:"contradicted,omitempty"`
	Worst        *Contradiction `json:"worst,omitempty"`

	Output        Output               `json:"output"`
	Measured      *Measured            `json:"measured,omitempty"` // nil: the file has no usage
	Policies      map[Policy]*Bill     `json:"policies"`
	Sizes         map[Policy][]int     `json:"sizes,omitempty"`          // the estimated tokens of each request
	MeasuredSizes []int                `json:"measured_sizes,omitempty"` // the measured tokens of each request; 0: not measured
	Costs         map[Policy][]float64 `json:"-"`                        // the money of each request, if there are prices
	CacheMin      int                  `json:"cache_min"`
	CacheTTL      time.Duration        `json:"cache_ttl"`

	Calls       int          `json:"calls"`
	Repeats     int          `json:"repeats"` // calls with the tool and the arguments of an earlier one
	Compactions []Compaction `json:"compactions,omitempty"`

	// What would happen to the messages of the last recorded request, sent again as they are
	// recorded.
	Faults  []Fault `json:"faults,omitempty"`   // one for each provider that would refuse them
	TooLong int     `json:"too_long,omitempty"` // 1 if they are too long to be checked; of a sum: how many sessions
}

// A Contradiction is a request whose measured size is not what the replay takes it to hold.
type Contradiction struct {
	Request   int `json:"request,omitempty"` // from 1
	Measured  int `json:"measured"`
	Estimated int `json:"estimated"`
}

// off returns by how many times the two sizes differ: at least 1.
func (c *Contradiction) off() float64 {
	a, b := float64(max(c.Measured, 1)), float64(max(c.Estimated, 1))
	return max(a/b, b/a)
}

// contradict counts a measured request as contradicted if it is.
func (r *Report) contradict(c Contradiction) {
	if c.Measured == 0 || 5*max(c.Measured-c.Estimated, c.Estimated-c.Measured) <= c.Measured {
		return
	}
	r.Contradicted++
	r.worse(&c)
}

// worse makes c the worst contradiction if it is.
func (r *Report) worse(c *Contradiction) {
	if c != nil && (r.Worst == nil || c.off() > r.Worst.off()) {
		r.Worst = c
	}
}

// Output is what the model wrote, the same under each policy. Each answer is in one of the
// two figures.
type Output struct {
	Measured  int64 `json:"measured"`
	Estimated int64 `json:"estimated"`
}

// Run replays a session.
func Run(ctx context.Context, s *session.Session, o Options) (*Report, error) {
	window := cmp.Or(o.Window, s.Window)
	if window <= 0 {
		return nil, &WindowError{Session: cmp.Or(s.ID, s.Title)}
	}
	r, err := newRun(s, window, o)
	if err != nil {
		return nil, err
	}
	err = r.all(ctx)
	report, a := r.report, r.convo.archive
	r.convo.close() // from here on, r takes no memory
	if err == nil && a != nil {
		err = a.answer(ctx, func(q question, isFound bool) {
			if isFound {
				report.Compactions[q.compaction].Used.Convo.Recall++
			} else {
				report.Compactions[q.compaction].Used.Convo.Gone++
			}
		})
	}
	if err != nil {
		return nil, err
	}
	return report, nil
}

// A run is a replay at work.
type run struct {
	s      *session.Session
	o      Options
	report *Report

	count    func(convo.Message) int // the estimate of a message
	recorded *recordedPolicy
	nothing  *line
	trim     *trimPolicy
	convo    *convoPolicy
	lines    map[Policy]*line

	calls   map[uint64]int // by the hash of tool and arguments: the number of recorded compactions before the first such call
	last    time.Time      // of the newest answer
	tracker *tracker       // nil without a compaction
}

func newRun(s *session.Session, window int, o Options) (*run, error) {
	r := &run{s: s, o: o, calls: map[uint64]int{}}
	p, err := newConvo(window, s, o.Tokenizer)
	if err != nil {
		return nil, err
	}
	r.convo = p
	r.count = p.count
	limit := p.h.Status().Limit
	r.report = &Report{
		Session: s.ID, Format: s.Format, Sessions: 1,
		Window: window, Limit: limit,
		HasSystem: len(s.System) > 0, HasTools: len(s.Tools) > 0,
		Records: s.Counts.Records, Unknown: s.Counts.Unknown, Unanswered: s.Counts.Answered,
		Subagents: s.Counts.Sidechains, Dropped: s.Counts.Dropped, UsagesLost: s.Counts.Usages,
		Policies: map[Policy]*Bill{}, Sizes: map[Policy][]int{}, Costs: map[Policy][]float64{},
		CacheMin: o.CacheMin, CacheTTL: o.CacheTTL,
	}
	if o.Prices != nil {
		r.report.Currency = o.Prices.Currency
	}
	return r, nil
}

// all replays every event.
func (r *run) all(ctx context.Context) error {
	r.overhead()
	head := r.head()
	limit := r.report.Limit
	r.recorded = &recordedPolicy{line: newLine(head, !r.hasCompaction()), heads: len(head), window: r.report.Window}
	r.nothing = newLine(head, true)
	r.trim = &trimPolicy{line: newLine(head, false), limit: limit, head: len(head), first: -1}
	if err := r.convo.start(head, r.report.Overhead); err != nil {
		return err
	}
	r.lines = map[Policy]*line{Recorded: r.recorded.line, Nothing: r.nothing, Trim: r.trim.line, Convo: r.convo.line}
	for _, p := range Policies {
		r.report.Policies[p] = &Bill{}
	}
	if r.hasCompaction() {
		r.tracker = newTracker(r.s, r.convo)
	}
	at := 0 // number of messages so far
	for i := range r.s.Events {
		if err := ctx.Err(); err != nil {
			return err
		}
		e := &r.s.Events[i]
		if e.Compaction != nil {
			r.compacted(e, at)
			continue
		}
		usage := e.Usage
		isAnswer := false
		for j := range e.Messages {
			m := &e.Messages[j]
			if m.Role != convo.RoleAssistant {
				isAnswer = false
			} else if !isAnswer {
				isAnswer = true
				if err := r.request(ctx, e, usage, e.Messages[j:]); err != nil {
					return err
				}
				usage = nil
			}
			r.append(m, at)
			at++
		}
	}
	r.finish()
	return nil
}

func (r *run) hasCompaction() bool {
	for i := range r.s.Events {
		if r.s.Events[i].Compaction != nil {
			return true
		}
	}
	return false
}

// head returns what stands at the front of each request: what the file does not hold, the
// tools, and the system messages.
func (r *run) head() []item {
	var head []item
	if r.report.Overhead > 0 {
		head = append(head, item{key: headKey, tokens: r.report.Overhead})
	}
	if r.convo.tools > 0 {
		head = append(head, item{key: headKey + 1, tokens: r.convo.tools})
	}
	for i, m := range r.s.System {
		head = append(head, item{key: headKey + 2 + uint64(i), tokens: r.count(m)})
	}
	return head
}

// overhead decides what each request is taken to carry beyond what the file holds.
func (r *run) overhead() {
	if r.o.Overhead >= 0 {
		r.report.Overhead = r.o.Overhead
		return
	}
	if r.report.HasSystem && r.report.HasTools {
		return
	}
	estimate := r.convo.tools
	for _, m := range r.s.System {
		estimate += r.count(m)
	}
	for i := range r.s.Events {
		e := &r.s.Events[i]
		if e.Compaction != nil {
			estimate = r.convo.tools
			for _, m := range r.s.System {
				estimate += r.count(m)
			}
			for _, m := range e.Compaction.View {
				estimate += r.count(m)
			}
		}
		for _, m := range e.Messages {
			if m.Role == convo.RoleAssistant && e.Usage != nil {
				r.report.Overhead = max(sizeOf(e.Usage)-estimate, 0)
				r.report.Derived = true
				return
			}
			estimate += r.count(m)
		}
	}
}

// sizeOf returns the size of the request that a usage was reported for.
func sizeOf(u *convo.Usage) int { return max(u.Input-u.Extra, 0) }

// request makes the request that the answer of an event was given to.
func (r *run) request(ctx context.Context, e *session.Event, usage *convo.Usage, answer []convo.Message) error {
	output := 0
	for _, m := range answer {
		if m.Role != convo.RoleAssistant {
			break
		}
		output += r.count(m)
	}
	if usage != nil {
		output = max(usage.Output, 0)
		r.report.Output.Measured += int64(output)
	} else {
		r.report.Output.Estimated += int64(output)
	}
	r.trim.request()
	if err := r.convo.request(ctx); err != nil {
		return err
	}
	isCold := r.o.CacheTTL > 0 && !r.last.IsZero() && !e.Time.IsZero() && e.Time.Sub(r.last) > r.o.CacheTTL
	if !e.Time.IsZero() {
		r.last = e.Time
	}
	price, isPriced := r.price(e.Model)
	for _, p := range Policies {
		l := r.lines[p]
		b := r.report.Policies[p]
		c := l.request(isCold, r.o.CacheMin)
		b.add(c, r.report.Window, r.report.Limit, r.report.Requests == 0)
		if r.o.Prices != nil {
			money := 0.0
			if isPriced {
				money = price.of(int64(c.fresh), int64(c.cached), int64(c.written), int64(output))
			}
			b.Money += money
			r.report.Costs[p] = append(r.report.Costs[p], money)
		}
		r.report.Sizes[p] = append(r.report.Sizes[p], c.total)
	}
	if err := r.convo.sentAs(r.convo.line.sum); err != nil {
		return err
	}
	if n := len(r.report.Compactions); n > 0 {
		if c := &r.report.Compactions[n-1]; c.NextRecorded == 0 {
			c.NextRecorded, c.NextConvo, c.ConvoCompactions = r.recorded.line.sum, r.convo.line.sum, r.convo.compactions
		}
	}
	size := 0
	if usage != nil {
		size = sizeOf(usage)
		r.report.MeasuredEstimate += int64(r.recorded.line.sum)
		r.report.contradict(Contradiction{Request: r.report.Requests + 1, Measured: size, Estimated: r.recorded.line.sum})
		if r.report.Measured == nil {
			r.report.Measured = &Measured{}
		}
		r.report.Measured.add(usage, r.report.Window, price, isPriced)
	}
	r.report.MeasuredSizes = append(r.report.MeasuredSizes, size)
	r.report.Requests++
	r.recorded.asked()
	return nil
}

// price returns the prices of a model, and whether there are any.
func (r *run) price(model string) (Price, bool) {
	if r.o.Prices == nil {
		return Price{}, false
	}
	p, ok := r.o.Prices.For(model)
	if !ok {
		r.report.unpriced(cmp.Or(model, "(no name)"))
	}
	return p, ok
}

// append adds a message to each policy, and leaves it out of all if a History refuses it.
func (r *run) append(m *convo.Message, at int) {
	added, ok := r.convo.append(m)
	for i := range added {
		r.recorded.append(&added[i])
		r.nothing.grow(item{tokens: added[i].tokens})
		r.trim.append(&added[i])
	}
	if !ok {
		r.report.Refused++
		return
	}
	for _, c := range m.ToolCalls() {
		r.called(c)
	}
	if r.tracker != nil {
		r.tracker.append(m, at, hashOf(r.convo.last, m))
	}
}

// called counts a call that repeats an earlier one.
func (r *run) called(c convo.ToolCall) {
	r.report.Calls++
	same := convo.SameCall(c)
	if same == "" { // the arguments are not a JSON object
		same = c.Name + "\x00" + c.Arguments
	}
	key := maphash.String(seed, same)
	before, known := r.calls[key]
	if !known {
		r.calls[key] = len(r.report.Compactions)
		return
	}
	r.report.Repeats++
	if n := len(r.report.Compactions); n > 0 && before < n {
		r.report.Compactions[n-1].Repeats++
	}
}

// compacted carries out a compaction of the other program. Only the recorded policy follows
// it.
func (r *run) compacted(e *session.Event, at int) {
	before := r.recorded.line.sum
	kept := r.recorded.compact(e.Compaction, r.count)
	r.report.Policies[Recorded].Compactions++
	r.report.Compactions = append(r.report.Compactions, Compaction{
		Request: r.report.Requests,
		Trigger: e.Compaction.Trigger,
		Hidden:  e.Compaction.Hidden,
		Before:  e.Compaction.Before, After: e.Compaction.After,
		EstimatedBefore: before, EstimatedAfter: r.recorded.line.sum,
		PrefixLost: before - kept,
	})
	r.tracker.compacted(e.Compaction, &r.report.Compactions[len(r.report.Compactions)-1], at)
}

func (r *run) finish() {
	r.report.Policies[Trim].Compactions = r.trim.compactions
	r.report.Policies[Convo].Compactions = r.convo.compactions
	r.report.Unsent = r.convo.unsent
	if r.recorded.tooLong {
		r.report.TooLong = 1
	} else {
		r.report.Faults = faults(r.recorded.msgs[:r.recorded.sent])
	}
}

// Total returns the sum of reports, without what belongs to single requests. The largest
// requests, windows and overheads are the largest of any.
func Total(reports []*Report) *Report {
	t := &Report{HasSystem: true, HasTools: true, Derived: true, Policies: map[Policy]*Bill{}}
	for _, p := range Policies {
		t.Policies[p] = &Bill{}
	}
	for i, r := range reports {
		t.WindowsDiffer = t.WindowsDiffer || i > 0 && r.Window != t.Window
		t.OverheadsDiffer = t.OverheadsDiffer || i > 0 && r.Overhead != t.Overhead
		if i == 0 {
			t.Name, t.Format = r.Name, r.Format
		} else {
			if t.Name != r.Name {
				t.Name = ""
			}
			if t.Format != r.Format {
				t.Format = ""
			}
		}
		t.Sessions += r.Sessions
		t.Window = max(t.Window, r.Window)
		t.Limit = max(t.Limit, r.Limit)
		t.Overhead = max(t.Overhead, r.Overhead)
		t.Derived = t.Derived && r.Derived
		t.SomeLack = t.SomeLack || i > 0 && (t.HasSystem != r.HasSystem || t.HasTools != r.HasTools)
		t.HasSystem = t.HasSystem && r.HasSystem
		t.HasTools = t.HasTools && r.HasTools
		t.Currency, t.CacheMin, t.CacheTTL = r.Currency, r.CacheMin, r.CacheTTL
		for _, model := range r.Unpriced {
			t.unpriced(model)
		}
		t.Requests += r.Requests
		t.Refused += r.Refused
		t.Unsent += r.Unsent
		t.Records += r.Records
		t.Unknown += r.Unknown
		t.Unanswered += r.Unanswered
		t.Subagents += r.Subagents
		t.Dropped += r.Dropped
		t.UsagesLost += r.UsagesLost
		t.MeasuredEstimate += r.MeasuredEstimate
		t.Contradicted += r.Contradicted
		t.worse(r.Worst)
		t.Output.Measured += r.Output.Measured
		t.Output.Estimated += r.Output.Estimated
		if r.Measured != nil {
			if t.Measured == nil {
				t.Measured = &Measured{}
			}
			t.Measured.plus(r.Measured)
		}
		for _, p := range Policies {
			t.Policies[p].plus(r.Policies[p])
		}
		t.Calls += r.Calls
		t.Repeats += r.Repeats
		t.Compactions = append(t.Compactions, r.Compactions...)
		t.TooLong += r.TooLong
		for _, f := range r.Faults {
			t.addFault(f)
		}
	}
	if t.Worst != nil && t.Sessions > 1 {
		t.Worst = &Contradiction{Measured: t.Worst.Measured, Estimated: t.Worst.Estimated}
	}
	return t
}

// addFault adds a fault to those of the same provider.
func (r *Report) addFault(f Fault) {
	for i := range r.Faults {
		if r.Faults[i].Provider == f.Provider {
			r.Faults[i].Lists += f.Lists
			return
		}
	}
	r.Faults = append(r.Faults, f)
}

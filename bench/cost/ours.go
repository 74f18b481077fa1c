package cost

import (
	"context"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// A variant is a History with options that differ from the defaults.
type variant struct {
	name  string
	cuts  bool
	set   func(o *convo.Options, r *oursRun)
	start func(r *oursRun) error // called before each request, if not nil
}

// ours returns a policy that runs convo. Only what the variant sets differs from
// the defaults, and the role rules, which do not affect the cost.
func ours(v variant) Policy {
	return Policy{Name: v.name, Kind: Real, Cuts: v.cuts, Start: func(c *Conversation, s Setup, m *Meter) (Run, error) {
		r := &oursRun{c: c, m: m, v: v}
		o := &convo.Options{
			Limits: convo.Limits{Window: s.Window, Reserve: s.Reserve},
			Roles:  convo.Relaxed(),
			TagKey: "bench", // a random one makes each run cost a little more or less
		}
		if s.Reserve == 0 {
			o.Limits.Reserve = -1
		}
		if v.set != nil {
			v.set(o, r)
		}
		var err error
		r.h, err = convo.New(o)
		r.limits = o.Limits
		return r, err
	}}
}

type oursRun struct {
	c      *Conversation
	m      *Meter
	v      variant
	h      *convo.History
	snap   *convo.Snapshot
	limits convo.Limits

	planner planner
	used    int // tokens of the last request
}

func (r *oursRun) Append(m convo.Message) error {
	_, err := r.h.Append(m)
	return err
}

func (r *oursRun) Request() ([]Item, error) {
	if r.v.start != nil {
		if err := r.v.start(r); err != nil {
			return nil, err
		}
	}
	var err error
	r.snap, _, err = r.h.Prepare(context.Background())
	if err != nil && r.snap == nil {
		return nil, err
	}
	return r.c.items(r.snap.Messages()), nil // a request above the limit is sent too, and counted
}

func (r *oursRun) Sent(u convo.Usage) error {
	r.used = u.Input
	return r.h.RecordUsage(r.snap, u)
}

func (r *oursRun) Close() error { return r.h.Close() }

// Default is convo with its defaults: only Window and Reserve are set.
func Default() Policy { return ours(variant{name: "convo, defaults"}) }

// low is convo with its defaults, except for Low, in percent of High.
func low(percent int) Policy {
	return ours(variant{
		name: "convo, Low " + percentOf(percent),
		set: func(o *convo.Options, _ *oursRun) {
			o.Limits.Low = (o.Limits.Window - max(o.Limits.Reserve, 0)) * percent / 100
		},
	})
}

// with is convo with a strategy, and with Low in percent of High; 0 means the
// default.
func with(name string, percent int, s convo.CompactionStrategy) Policy {
	return ours(variant{
		name: name,
		set: func(o *convo.Options, _ *oursRun) {
			o.Strategy = s
			o.Limits.Low = (o.Limits.Window - max(o.Limits.Reserve, 0)) * percent / 100
		},
	})
}

// summaryTokens is the length of the fake model's summaries.
const summaryTokens = 800

// summarized is convo with a model that writes summaries. The request for a
// summary begins with the last request if ride is set. Otherwise it is a separate
// request.
func summarized(name string, ride bool, before ...convo.CompactionStrategy) Policy {
	return ours(variant{name: name, set: func(o *convo.Options, r *oursRun) {
		write := func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
			text := summaryText(min(summaryTokens, req.MaxTokens), req.Count)
			output := CountBytes(convo.Assistant(text))
			if ride && req.Sent != nil {
				view := r.c.items(req.Sent.Messages())
				r.m.Ride(append(view, r.c.item(convo.User(req.Instruction))), output)
			} else {
				r.m.Apart(CountBytes(convo.User(req.Prompt)), output)
			}
			return convo.Summary{Text: text}, nil
		}
		sum := convo.Summarize{With: convo.SummarizerFunc(write)}
		links := append(before[:len(before):len(before)], sum, convo.Truncate{})
		o.Strategy = convo.Chain(links...)
	}})
}

// summaryText returns a text of at most the given number of tokens, and almost as
// many.
func summaryText(most int, count func(string) int) string {
	text := strings.Repeat("what was asked, found and decided so far, with names and figures; ", most/8)
	for count(text) > most {
		text = text[:len(text)*7/8]
	}
	return text
}

// either is convo with its defaults, except that nothing is dropped if clearing
// alone frees the given percentage of High, even if the request is still above
// Low.
func either(name string, percent int) Policy {
	return ours(variant{
		name: name,
		set: func(o *convo.Options, _ *oursRun) {
			alone := convo.ClearToolResults{MinFree: (o.Limits.Window - max(o.Limits.Reserve, 0)) * percent / 100}
			both := convo.Chain(convo.ClearToolResults{}, convo.Truncate{})
			o.Strategy = convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
				if e, err := alone.Compact(ctx, s, g); err == nil {
					return e, nil
				}
				return both.Compact(ctx, s, g)
			})
		},
	})
}

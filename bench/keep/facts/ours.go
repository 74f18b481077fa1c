package facts

import (
	"context"
	"errors"

	"github.com/seed-c1b73e60/convo"
)

// A history is convo as a keeper.
type history struct {
	*desk
	h    *convo.History
	last *convo.Snapshot
}

// ours starts a History with a strategy; nil is the default. Low is in percent of the window; 0
// is the default.
func ours(low int, strategy func(*desk) convo.CompactionStrategy) func(*desk) (keeper, error) {
	return func(d *desk) (keeper, error) {
		o := &convo.Options{Limits: convo.Limits{Window: d.window, Low: d.window * low / 100}, TagKey: "facts"} // a random key makes the bill differ a little
		if strategy != nil {
			o.Strategy = strategy(d)
		}
		o.OnCompaction = func(r convo.Report) {
			if r.Outcome == convo.OutcomeApplied && r.Reason != convo.ReasonAppend {
				d.score.Compactions++
				d.score.Cleared += len(r.Cleared)
			}
		}
		h, err := convo.New(o)
		return &history{desk: d, h: h}, err
	}
}

// ladder is the chain that docs/strategies.md recommends.
func ladder(with convo.SummarizerFunc) convo.CompactionStrategy {
	return convo.Chain(convo.ClearMedia{}, convo.ClearToolResults{}, convo.Summarize{With: with}, convo.Truncate{})
}

// teller writes summaries that list no facts.
func teller(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
	return convo.Summary{Text: new(reader).write(req.Previous, "", 0, req.MaxTokens, req.Count)}, nil
}

// withModel is that chain with a model of a skill.
func withModel(low int, s skill) func(*desk) (keeper, error) {
	return ours(low, func(d *desk) convo.CompactionStrategy {
		d.reader.skill = s
		return ladder(d.summarize)
	})
}

// summarize writes a summary for convo. If the last request can be sent again, it is, and the
// model reads the messages to summarise there. Otherwise it reads the prompt.
func (d *desk) summarize(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
	read := req.Prompt
	if req.Sent != nil {
		read = shownAll(append(req.Messages, req.Pinned...))
	}
	d.reader.later = shownAll(req.Pinned)
	text := d.reader.write(req.Previous, read, d.at, req.MaxTokens, req.Count)
	if req.Sent != nil {
		view := d.items(req.Sent.Messages())
		d.meter.Ride(append(view, d.item(convo.User(req.Instruction))), count(text))
	} else {
		d.meter.Apart(count(req.Prompt), count(text))
	}
	return convo.Summary{Text: text}, nil
}

func (h *history) add(m convo.Message) error {
	_, err := h.h.Append(m)
	return err
}

func (h *history) request() ([]convo.Message, error) {
	s, _, err := h.h.Prepare(context.Background())
	_, isFloor := errors.AsType[*convo.FloorError](err)
	if _, isLimit := errors.AsType[*convo.LimitError](err); isFloor || isLimit {
		return nil, errOver
	}
	h.last = s
	if err != nil {
		return nil, err
	}
	return s.Messages(), nil
}

func (h *history) sent(tokens int) error {
	return h.h.RecordUsage(h.last, convo.Usage{Input: tokens, Output: 100})
}

func (h *history) close() error { return h.h.Close() }

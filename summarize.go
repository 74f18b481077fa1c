package convo

import (
	"context"
	"fmt"
	"strings"
)

// Summarize is a [CompactionStrategy] that puts a summary in the place of the
// oldest exchanges. It cuts as [Truncate] does, and so deep that the edit frees
// Goal.MinFree. The summary that stands is updated, never summarised by itself.
//
// What does not fit the summarizer's window is summarised in several calls,
// one after the other, each updating what the one before wrote; long tool
// results are cut first, and the report says how much went unread.
type Summarize struct {
	With       Summarizer // nil: Extract{}
	KeepTokens int        // how much of the newest messages stays, beside the floor; 0: as much as the goal allows, negative: nothing
	MaxTokens  int        // a longer summary is refused; 0 and less: an eighth of low water, at least 500, and at most an eighth of the summarizer's window
	Window     int        // of the summarizer's model; 0: the History's, negative: no bound
	Prompt     string     // what to ask for; empty: DefaultPrompt
}

// Name returns "summarize".
func (Summarize) Name() string { return "summarize" }

// leastSummary is the room below which no summary is asked for: whatever came
// would be refused or say nothing.
const leastSummary = 64

// Compact plans what to drop, and has the summary written.
func (z Summarize) Compact(ctx context.Context, s *Snapshot, g Goal) (Edit, error) {
	if g.NoModel && z.callsModel() {
		return Edit{}, g.run.without()
	}
	w := writer{with: z.With, prompt: z.Prompt, window: z.Window, max: z.MaxTokens, focus: g.Focus, s: s, run: g.run, count: g.count(s)}
	target := g.target(s)
	if w.max <= 0 {
		w.max = maxSummary(int(target))
		if g.run != nil && g.run.low > 0 {
			w.max = maxSummary(clampInt(g.run.low))
		}
	}
	switch {
	case !z.callsModel():
		w.window = -1
	case w.window == 0 && g.run != nil:
		w.window = g.run.window
	}
	if w.window > 0 && z.MaxTokens <= 0 {
		w.max = min(w.max, max(w.window/8, leastChunk))
	}
	frame := s.frameTokens()
	if s.raw() <= target {
		return Edit{}, ErrNoGain
	}
	free := int64(max(g.MinFree, 1))
	c := z.cut(s, min(target, s.raw()-free), int64(w.max)+frame)
	if len(c.drop) == 0 {
		return Edit{}, ErrNoGain
	}
	folded := s.raw() - c.kept
	room := folded + s.slot.tokens() - frame - free
	if room < int64(min(w.max, leastSummary)) {
		return Edit{}, ErrNoGain
	}
	w.max = min(w.max, clampInt(room))

	base := s
	if g.run != nil {
		base, w.sent = g.run.base, g.run.sent
	}
	w.prepare(entriesOf(base, c.drop))
	sum, err := w.write(ctx)
	if err != nil {
		return Edit{}, err
	}
	return Edit{Drop: c.drop, Summary: &Summary{Text: sum.Text, Usage: sum.Usage}}, nil
}

// cut plans as cutTo does, with room for a summary of so many tokens in the
// place of the one that stands.
func (z Summarize) cut(s *Snapshot, target, room int64) cut {
	target += s.slot.tokens() - room // the slot will weigh something else
	if z.KeepTokens < 0 {
		target = 0
	}
	return cutTo(s, target, int64(max(z.KeepTokens, 0)))
}

func (z Summarize) callsModel() bool {
	switch z.With.(type) {
	case nil, Extract, *Extract:
		return false
	}
	return true
}

// entriesOf returns the entries with the ascending IDs, as s has them.
func entriesOf(s *Snapshot, ids []ID) []*entry {
	list := make([]*entry, 0, len(ids))
	for _, e := range s.list {
		if len(ids) > 0 && e.id == ids[0] {
			list = append(list, e)
			ids = ids[1:]
		}
	}
	return list
}

// A writer has one summary written, in as many calls as it takes.
type writer struct {
	with   Summarizer
	prompt string
	focus  string
	window int // 0 and less: no bound
	max    int // tokens of the summary
	s      *Snapshot
	run    *run
	count  func(string) int

	handoff bool // nothing stays beside the summary

	entries []*entry
	pinned  []Message
	sent    sent
	unread  int // tokens that were cut out of results
}

// prepare says what to fold.
func (w *writer) prepare(entries []*entry) {
	w.entries = entries
	for _, id := range w.s.pinned() {
		if !w.handoff {
			w.pinned = append(w.pinned, w.s.find(id).msg.clone())
		}
	}
}

// A sent is the snapshot last given to RecordUsage, nil when there is none, and
// what its request weighed.
type sent struct {
	at     *Snapshot
	tokens int64
}

func (h *History) lastSent() sent {
	if h.sent == nil {
		return sent{}
	}
	return sent{h.sent, h.known().cal.Tokens}
}

// rides returns what was last sent, when it shows all that is to be folded and
// the window has room for an instruction and a summary behind it.
func (w *writer) rides(instruction string) *Snapshot {
	last := w.sent.at
	if last == nil || last.slot != w.s.slot {
		return nil
	}
	if w.window > 0 && w.sent.tokens+int64(w.count(instruction))+int64(w.max) > int64(w.window) {
		return nil
	}
	shown := 0
	for _, e := range last.list {
		if shown < len(w.entries) && w.entries[shown] == e {
			shown++
		}
	}
	if shown < len(w.entries) {
		return nil
	}
	own := *last
	return &own
}

// write calls the summarizer, and returns a summary that is fit, with the
// usage of all calls.
func (w *writer) write(ctx context.Context) (Summary, error) {
	if w.with == nil {
		w.with = Extract{}
	}
	p := newPrompter(w)
	previous := ""
	if w.s.slot != nil {
		previous = w.s.slot.sum.Text
	}
	chunks, err := p.chunks(previous)
	if err != nil {
		return Summary{}, err
	}
	var sum Summary
	var used Usage
	for _, chunk := range chunks {
		req := SummaryRequest{
			Prompt:      p.prompt(previous, chunk.text),
			Previous:    previous,
			Messages:    chunk.messages(),
			Pinned:      cloneAll(w.pinned),
			Focus:       w.focus,
			MaxTokens:   w.max,
			Instruction: p.instruction(),
			Count:       w.count,
		}
		if len(chunks) == 1 {
			req.Sent = w.rides(req.Instruction)
		}
		sum, err = w.ask(ctx, req)
		used = used.plus(sum.Usage)
		if err != nil {
			return Summary{}, err
		}
		previous = sum.Text
	}
	w.run.skipped(int64(w.unread))
	sum.Usage = used
	return sum, nil
}

// ask makes one call, and looks at what comes back.
func (w *writer) ask(ctx context.Context, req SummaryRequest) (sum Summary, err error) {
	if ctx.Err() != nil {
		return sum, context.Cause(ctx)
	}
	defer func() { w.run.summarized(sum.Usage, err) }()
	if sum, err = w.call(ctx, req); err != nil {
		return sum, fmt.Errorf("convo: summarizer: %w", err)
	}
	sum.Text = strings.TrimSpace(validText(sum.Text))
	if sum.Usage.fault() != nil {
		sum.Usage = Usage{}
	}
	if err := sum.fault(); err != nil {
		return sum, err
	}
	if n := w.count(sum.Text); n > w.max {
		return sum, &RefusedError{Reason: fmt.Sprintf("it has %d tokens of at most %d", n, w.max)}
	}
	return sum, nil
}

func (w *writer) call(ctx context.Context, req SummaryRequest) (sum Summary, err error) {
	defer catch(&err, "Summarizer")
	return w.with.Summarize(ctx, req)
}

func cloneAll(msgs []Message) []Message {
	out := make([]Message, len(msgs))
	for i := range msgs {
		out[i] = msgs[i].clone()
	}
	return out
}

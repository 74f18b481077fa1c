package convo

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-c1b73e60/convo/internal/cuts"
	"github.com/seed-c1b73e60/convo/internal/sums"
)

// ClearToolResults is a [CompactionStrategy] that clears old tool results: a marker that
// names the tool and the size replaces the content; the call and the error flag stay. It
// also works inside a long turn, and calls no model.
//
// Results superseded under Same are cleared first, and then, while the view is larger
// than Goal.Target, the other results of old exchanges. If that is not enough, results of
// the newest exchanges with more than a 32nd of the target are cleared, the oldest first,
// because a later strategy would drop messages.
//
// Results that were read again after they had left are cleared last, as long as the calls of
// their tool are seldom made again while the result before can be seen. In a [Chain] they
// stay even above Goal.Target, and the links after it leave them, if the compaction still
// frees Goal.MinFree and ends a twentieth of the limit below the mark at which it began.
//
// Each edit invalidates a part of the provider's prompt cache, so ClearToolResults clears
// as many results as it can at once, and none if that would free too little. With
// Options.Spill, it stores the originals first, and the markers name their location.
type ClearToolResults struct {
	// KeepLast is the number of newest exchanges with tool calls that keep their results while
	// the target can be reached without them. 0 means 3; a negative value means none.
	KeepLast int

	MinFree   int // the least to free, in raw tokens; 0 means Goal.MinFree, a negative value anything
	MinResult int // the least size of a result to clear, in raw tokens of its content; less than 1 means any

	// Unread says that a [Chain] does not let a later [Summarize] read the results first. That
	// saves a call of the model where clearing is enough; what is in them is then found only in
	// the originals.
	Unread bool

	// Same returns a key for a call, such as the path of a file that it reads. Of the results
	// whose calls have the same key, only the newest stays. A call with an empty key matches no
	// other. Nil means that no result is superseded. [SameCall] is ready to use. Same must be
	// quick and must not keep c.
	Same func(c ToolCall) string
}

// Name returns "clear-tool-results".
func (ClearToolResults) Name() string { return "clear-tool-results" }

// Compact returns an edit that clears old results. It returns [ErrNoGain] if that
// would free too little, and g.NoClear if it is set.
func (c ClearToolResults) Compact(_ context.Context, s *Snapshot, g Goal) (Edit, error) {
	if g.NoClear != nil {
		return Edit{}, g.NoClear
	}
	x := &toolClearing{s: s, id: s.identity(), done: make(map[Clear]bool, len(g.Unclearable))}
	for _, u := range g.Unclearable {
		x.done[Clear{ID: u.ID, CallID: u.CallID}] = true
	}
	var toolExchanges []cuts.Exchange // those with tool calls
	for a := range walk(&s.state) {
		if hasCalls(&s.list[a.From].msg) {
			toolExchanges = append(toolExchanges, a)
		}
	}
	old := max(len(toolExchanges)-max(cmp.Or(c.KeepLast, 3), 0), 0)
	least, r := int64(max(cmp.Or(c.MinFree, g.MinFree), 1)), g.room(s)
	reached := func() bool { return s.raw()-x.freed <= r.Target && x.freed >= least }
	hot := c.hot(s, &g)
	x.hot = hot.results
	maps.DeleteFunc(x.hot, func(k Clear, _ bool) bool { return x.done[k] })

	for i, ids := range c.superseded(s, toolExchanges) {
		x.clear(toolExchanges[i:i+1], int64(c.MinResult), func(id string) bool { return slices.Contains(ids, id) })
	}
	if x.freed == 0 || !reached() {
		x.clear(toolExchanges[:old], int64(c.MinResult), nil)
	}
	if len(x.hot) > 0 && !reached() {
		x.e.Effort = &Effort{spare: g.spare(s, hot)}
		if p := x.e.Effort.spare; p != nil {
			r.Target = max(r.Target, p.most)
		} else {
			x.hot = nil
			x.clear(toolExchanges[:old], int64(c.MinResult), nil)
		}
	}
	for i := old; i < len(toolExchanges) && !g.isOwn() && s.raw()-x.freed > r.Target; i++ {
		x.clear(toolExchanges[i:i+1], max(int64(c.MinResult), r.Large()), nil)
	}
	if x.freed < least {
		return Edit{Effort: x.e.Effort}, ErrNoGain
	}
	return x.e, nil
}

// A toolClearing is an edit that clears results.
type toolClearing struct {
	s     *Snapshot
	id    *identity
	e     Edit
	freed int64          // raw tokens
	done  map[Clear]bool // cleared, or cannot be cleared
	hot   map[Clear]bool // not to be cleared
}

// clear clears the results of exchanges that are longer than their markers, have at least least
// raw tokens and are in neither x.done nor x.hot. If only is not nil, those for which it returns
// true are cleared.
func (x *toolClearing) clear(exchanges []cuts.Exchange, least int64, only func(callID string) bool) {
	for _, a := range exchanges {
		if a.Floor {
			continue
		}
		for _, in := range x.s.list[a.From+1 : a.To] {
			for r := range eachOf[ToolResult](in.msg.Parts) {
				key := Clear{ID: in.id, CallID: r.CallID}
				if r.Cleared || x.done[key] || x.hot[key] || only != nil && !only(r.CallID) {
					continue
				}
				size := x.id.parts(r.Parts)
				gain := size - x.id.text(x.id.marker(&r, "", in.id, size))
				if gain <= 0 || size < least {
					continue
				}
				x.freed += gain
				x.e.Clear = append(x.e.Clear, key)
				x.done[key] = true
			}
		}
	}
}

// superseded returns the IDs of the calls with superseded results, for each exchange.
func (c ClearToolResults) superseded(s *Snapshot, exchanges []cuts.Exchange) [][]string {
	if c.Same == nil {
		return nil
	}
	old := make([][]string, len(exchanges))
	newer := make(map[string]bool)
	for i, a := range slices.Backward(exchanges) {
		answered := make(map[string]bool)
		for _, e := range s.list[a.From+1 : a.To] {
			for _, r := range e.msg.ToolResults() {
				answered[r.CallID] = true
			}
		}
		for _, call := range slices.Backward(s.list[a.From].msg.ToolCalls()) {
			key := c.Same(call)
			if key == "" || !answered[call.ID] {
				continue
			}
			if newer[key] {
				old[i] = append(old[i], call.ID)
			}
			newer[key] = true
		}
	}
	return old
}

// ClearMedia is a [CompactionStrategy] that replaces older media in user messages and in tool
// results with a line that describes them, such as "image/png cleared: 48,213 bytes" in
// brackets. In place of the size, it has their address if they have one.
//
// It calls no model. It is a [Trigger] by the number of media, since providers refuse too many
// of them; see the Check methods of package wire. Where the model of the History is known to
// take fewer, see Status.MostMedia, it clears the large images, or the oldest media until half
// as many are left.
type ClearMedia struct {
	// KeepLast is the number of newest media that stay while the target can be reached without
	// them. 0 means 3; a negative value means none.
	KeepLast int

	// TriggerAt is the number of media in the view at which a compaction is due. 0 means 90,
	// since providers allow about 100 images; a negative value means never.
	TriggerAt int
}

// Name returns "clear-media".
func (ClearMedia) Name() string { return "clear-media" }

// Due reports whether the view has at least TriggerAt media, or more than Status.MostMedia.
func (c ClearMedia) Due(s Status) bool { return c.reached(s.Media, s.MostMedia) }

func (c ClearMedia) isReached(s *state) bool {
	most, _ := s.mediaLimit()
	return c.reached(s.media, most)
}

func (c ClearMedia) reached(media, most int) bool {
	return c.TriggerAt >= 0 && (media >= c.triggerAt() || most > 0 && media > most)
}

func (c ClearMedia) triggerAt() int { return cmp.Or(c.TriggerAt, 90) }

// Compact returns an edit that clears older media. It returns [ErrNoGain] if that would
// free less than Goal.MinFree, unless the model takes fewer media.
func (c ClearMedia) Compact(_ context.Context, s *Snapshot, g Goal) (Edit, error) {
	if s.media == 0 {
		return Edit{}, ErrNoGain
	}
	keep := max(cmp.Or(c.KeepLast, 3), 0)
	counter, target := s.counter(), g.target(s)
	floor := s.floor()
	var e Edit
	var freed int64
	var left []cuts.Medium // what is not cleared
	most, side := s.mediaLimit()
	onlyMost := most > 0 && s.media > most && g.isOwn() && s.media < c.triggerAt()
	newer := s.media // number of media from the current entry on
	for i, entry := range s.list {
		n := entry.msg.media()
		newer -= n
		free := n > 0 && !floor.has(i) && entry.msg.Role != RoleAssistant
		if free && !onlyMost && (newer >= keep || !g.isOwn() && s.raw()-freed > target) {
			parts := clearMedia(entry.msg.Parts, nil)
			if gain := counter.parts(entry.msg.Parts) - counter.parts(parts); gain > 0 {
				freed += gain
				e.Rewrite = append(e.Rewrite, Rewrite{ID: entry.id, Parts: parts})
				continue
			}
		}
		nth := 0
		for m := range entry.msg.allMedia {
			left = append(left, cuts.Medium{Entry: i, Nth: nth, Large: side > 0 && m.side() > side, Free: free, Last: newer < keep})
			nth++
		}
	}
	more := cuts.Surplus(left, most, side > 0)
	for len(more) > 0 {
		at, picked := left[more[0]].Entry, make(map[int]bool)
		for len(more) > 0 && left[more[0]].Entry == at {
			picked[left[more[0]].Nth] = true
			more = more[1:]
		}
		e.Rewrite = append(e.Rewrite, Rewrite{ID: s.list[at].id, Parts: clearMedia(s.list[at].msg.Parts, picked)})
		freed = max(freed, int64(g.MinFree), 1)
	}
	return orNoGain(e, freed >= int64(max(g.MinFree, 1)))
}

// clearMedia returns parts with their media replaced by lines: those whose number is in
// picked, or all if picked is nil.
func clearMedia(parts []Part, picked map[int]bool) []Part {
	nth := 0
	var in func(parts []Part) []Part
	in = func(parts []Part) []Part {
		parts = slices.Clone(parts)
		for i, p := range parts {
			switch p := p.(type) {
			case Media:
				if picked == nil || picked[nth] {
					parts[i] = Text(p.marker())
				}
				nth++
			case ToolResult:
				p.Parts = in(p.Parts)
				parts[i] = p
			}
		}
		return parts
	}
	return in(parts)
}

// marker returns the line that replaces m.
func (m Media) marker() string {
	return fmt.Sprintf("[%s cleared: %s]", m.label(), m.place())
}

// ClearThinking is a [CompactionStrategy] that takes the reasoning out of older answers.
// Their texts and calls stay. It calls no model, and declines where reasoning is not sent
// back and so does not count; see Overheads.Reasoning.
//
// It begins with the oldest answer and leaves none out, because a provider that signs
// reasoning accepts that the first blocks are missing, and no others. So signed reasoning
// of the turns that it keeps stays bound; see [Snapshot.Unbound]. It stops before an answer
// with signed reasoning that is pinned. The provider's cache ends at the first answer
// that it changes.
type ClearThinking struct {
	KeepTurns int // the number of newest turns whose reasoning stays; less than 1 means 1
}

// Name returns "clear-thinking".
func (ClearThinking) Name() string { return "clear-thinking" }

// Compact returns an edit that takes out the reasoning of all turns but the newest ones. It
// returns [ErrNoGain] if that would free less than Goal.MinFree.
func (c ClearThinking) Compact(_ context.Context, s *Snapshot, g Goal) (e Edit, err error) {
	defer catch(&err, "Options.Tokenizer")
	id, floor, freed := s.identity(), s.floor(), int64(0)
	for i, entry := range s.list[:newest(s.list, 0, max(c.KeepTurns, 1))] {
		m := &entry.msg
		if m.Role != RoleAssistant || !slices.ContainsFunc(m.Parts, isA[Reasoning]) {
			continue
		}
		parts := withoutReasoning(m.Parts)
		if floor.has(i) || len(parts) == 0 {
			if m.isSigned() {
				break
			}
			continue
		}
		bare := *m
		bare.Parts = parts
		tokens, _ := id.entry(entry, &bare)
		freed += entry.tokens - tokens
		e.Rewrite = append(e.Rewrite, Rewrite{ID: entry.id, Parts: parts})
	}
	return orNoGain(e, freed >= int64(max(g.MinFree, 1)))
}

// hotReads are results that the model has shown to need.
type hotReads struct {
	results map[Clear]bool // those that are not cleared
	heads   map[ID]bool    // of their exchanges, and of those with the cleared results before them
	away    int64          // raw tokens of the others, which are cleared
}

// leases is for how many times as many messages a result is spared as lay between its call
// and the one before.
const leases = 16

// hot returns the results that the model has shown to need: those of calls that were made
// again after their results had been cleared, and not much later. It also returns the heads
// of their exchanges, and of those with the cleared results, which show it to the next
// compaction. The calls of a tool do not count if they are often made again although their
// results can be seen.
func (c ClearToolResults) hot(s *Snapshot, g *Goal) (h hotReads) {
	if !g.before.HasDropped() && !s.hasCleared() {
		return h
	}
	same := c.Same
	if same == nil {
		same = SameCall
	}
	found := readsOf(s, same, &g.before, leastReread(max(g.Limit, g.Low)))
	past := g.before.With(found)
	reach := 2 * int64(max(g.Limit, g.Low, g.Target)) // a result that lies farther back could not have stayed
	h.results, h.heads = make(map[Clear]bool), make(map[ID]bool)
	for _, r := range found.Newest {
		if r.Gone == 0 || r.Apart > reach || int64(s.last)-r.ID > leases*(r.ID-r.Gone) || past.IsCareless(r.Tool) {
			continue
		}
		if r.Cleared {
			h.away += r.Size
			continue
		}
		h.results[Clear{ID: ID(r.ID), CallID: r.CallID}] = true
		for _, id := range []int64{r.ID, r.Gone} {
			if e := s.find(ID(id)); e != nil {
				h.heads[e.head] = true
			}
		}
	}
	return h
}

// spare returns what stays if the exchanges with the given heads do. It returns nil if the
// compaction would then free less than Goal.MinFree, or leave less than a twentieth of the
// limit below the mark that it began at.
func (g *Goal) spare(s *Snapshot, h hotReads) *spare {
	if g.Limit <= 0 || !g.maySpare || g.Reason != ReasonHigh && !g.hasTime() {
		return nil
	}
	mark := g.Status.High
	if g.Reason == ReasonSoft {
		mark = g.Status.Soft
	}
	p := &spare{heads: h.heads, most: int64(g.Limit)}
	if mark > 0 && mark < g.Status.Limit {
		p.most = sums.Portion(p.most, int64(mark), int64(g.Status.Limit)) // in raw tokens
	}
	p.most = min(p.most-int64(g.Limit)/20, s.raw()-int64(max(g.allFree, 1)))
	kept := s.floorWeight().total() + s.exchanges(p).Spared()
	words := g.room(s).words(&s.state, kept, 0)
	if kept+h.away+words+max(s.summary.tokens(), int64(maxSummary(g.Low))) > p.most {
		return nil
	}
	return p
}

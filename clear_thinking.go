package convo

import (
	"context"
	"slices"
)

// ClearThinking is a [CompactionStrategy] that takes the reasoning out of older answers.
// Their texts and calls stay. It calls no model, and declines where reasoning is not sent
// back and so does not count; see Overheads.Reasoning.
//
// It begins with the oldest answer and leaves none out, because a provider that signs
// reasoning accepts that the first blocks are missing, and no others. So signed reasoning
// of the turns that it keeps stays bound; see [Snapshot.Bound]. It stops before an answer
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
	if freed < int64(max(g.MinFree, 1)) {
		return Edit{}, ErrNoGain
	}
	return e, nil
}

package convo

import (
	"cmp"
	"context"
	"maps"
	"slices"
)

// An original is what an entry held before it was rewritten, or results in it were
// cut or cleared. It never changes. A state keeps it until the entry leaves the
// view, or until it is the oldest and there is no room for all.
type original struct {
	id  ID
	msg Message // as it was appended

	// read is what a summarizer reads: msg, but with the texts that an edit has
	// put in the place of results, or the message that it was rewritten to.
	read Message

	tokens, readTokens int64 // raw, of msg and of read

	// missing is how many raw tokens msg lacks: it was cut or cleared, and the
	// original of that was not kept.
	missing int64

	refs map[int]string // what Options.Spill returned for results in read, by the index of the part
}

// newOriginal returns the original of an entry that has none.
func newOriginal(e *entry) *original {
	return &original{id: e.id, msg: e.msg, read: e.msg, tokens: e.tokens, readTokens: e.tokens, missing: e.missing}
}

// setRef sets the reference to the result in the i-th part. o must not be in use
// yet.
func (o *original) setRef(i int, ref string) {
	o.refs = maps.Clone(o.refs)
	if o.refs == nil {
		o.refs = make(map[int]string)
	}
	o.refs[i] = ref
}

// setMissing sets how many raw tokens e lacks, of which o is the original.
func (e *entry) setMissing(o *original) {
	e.missing = o.missing + max(o.readTokens-e.tokens, 0)
}

// withOriginals returns originals in ascending order and their raw tokens, without
// the oldest where they have more than keep. If it leaves any out, it leaves out
// an eighth more than it must, so that the rest need not be copied each time.
func withOriginals(all []*original, keep int64) ([]*original, int64) {
	raw := int64(0)
	for _, o := range all {
		raw += o.tokens
	}
	return trimOriginals(all, raw, keep)
}

// trimOriginals is withOriginals where the raw tokens are known.
func trimOriginals(all []*original, raw, keep int64) ([]*original, int64) {
	if raw <= keep {
		return all, raw
	}
	n := 0
	for ; raw > keep-keep/8 && n < len(all); n++ {
		raw -= all[n].tokens
	}
	return slices.Clone(all[n:]), raw
}

// original returns the original of the entry with the ID, or nil if none is kept.
func (s *state) original(id ID) *original {
	if i, ok := s.originalAt(id); ok {
		return s.originals[i]
	}
	return nil
}

// originalAt returns the index of the original of the entry with the ID, or where
// it would be, and whether it is there.
func (s *state) originalAt(id ID) (int, bool) {
	return slices.BinarySearchFunc(s.originals, id, func(o *original, id ID) int { return cmp.Compare(o.id, id) })
}

// defaultOriginals is Options.KeepOriginals without a window.
const defaultOriginals = 1_000_000

// keepOriginals returns how many raw tokens of originals a state keeps.
func keepOriginals(option, window int) int64 {
	switch {
	case option != 0:
		return min(max(int64(option), 0), maxTotal)
	case window > 0:
		return min(int64(window), maxTotal/8) * 8
	}
	return defaultOriginals
}

// toRead returns an entry of the view as a summarizer should read it: with the
// originals of its results, as far as they are kept. It is the Goal.Original of a
// strategy that is given s.
func (s *Snapshot) toRead(_ context.Context, id ID) (Entry, bool) {
	e := s.find(id)
	if e == nil {
		return Entry{}, false
	}
	out := e.export(s.pins, new(partRoom))
	if o := s.original(id); o != nil {
		out.Message, out.Tokens, out.Missing = o.read.clone(), clampInt(o.readTokens), clampInt(o.missing)
	}
	return out, true
}

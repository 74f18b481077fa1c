package convo

import (
	"cmp"
	"context"
	"maps"
	"slices"
)

// An original is the content of an entry before it was rewritten or its results were
// cut or cleared. It is immutable. A state keeps it until the entry leaves the view,
// and drops the oldest originals when there is no room for all.
type original struct {
	id  ID
	msg Message // as it was appended

	// read is the message that a summarizer reads: the rewritten message, or msg with
	// the texts that an edit substituted for results.
	read Message

	tokens, readTokens int64 // raw, of msg and of read

	// missing is how many raw tokens msg lacks because it was cut or cleared and its
	// own original was not kept.
	missing int64

	refs map[int]string // what Options.Spill returned for results in read, by the index of the part
}

// newOriginal returns an original with the present content of e.
func newOriginal(e *entry) *original {
	return &original{id: e.id, msg: e.msg, read: e.msg, tokens: e.tokens, readTokens: e.tokens, missing: e.missing()}
}

// setRef sets the reference to the result in the i-th part. o must not be shared yet.
func (o *original) setRef(i int, ref string) {
	o.refs = maps.Clone(o.refs)
	if o.refs == nil {
		o.refs = make(map[int]string)
	}
	o.refs[i] = ref
}

// setMissing sets how many raw tokens e lacks. o is the original of e.
func (e *entry) setMissing(o *original) {
	r := e.own()
	r.missing = o.missing + max(o.readTokens-e.tokens, 0)
	e.setOwn(r)
}

// A keeping says how many raw tokens of originals a state keeps.
type keeping struct {
	most   int64
	unread int64 // also that many of originals which the summary has not read; 0: these are as others
}

// rawOriginals returns the raw tokens of originals.
func rawOriginals(all []*original) (raw int64) {
	for _, o := range all {
		raw += o.tokens
	}
	return raw
}

// trim returns the originals to keep of all, which are in ascending order and have so many raw
// tokens, and the raw tokens of these. If there are too many, it drops the oldest until an
// eighth of the room is free, so that the rest need not be copied each time.
func (k keeping) trim(all []*original, raw int64, summary *placedSummary) ([]*original, int64) {
	drop := func(most int64, may func(o *original) bool) {
		if raw <= most {
			return
		}
		all = slices.DeleteFunc(slices.Clone(all), func(o *original) bool {
			if raw <= most-most/8 || !may(o) {
				return false
			}
			raw -= o.tokens
			return true
		})
	}
	drop(k.most, func(o *original) bool { return k.unread == 0 || summary.hasRead(o.id) })
	drop(max(k.most, k.unread), func(*original) bool { return true })
	return all, raw
}

// original returns the original of the entry with the ID, or nil if none is kept.
func (s *state) original(id ID) *original {
	if i, ok := s.originalAt(id); ok {
		return s.originals[i]
	}
	return nil
}

// originalAt returns the index of the original of the entry with the ID, or the index
// where it would be inserted, and whether it was found.
func (s *state) originalAt(id ID) (int, bool) {
	return slices.BinarySearchFunc(s.originals, id, func(o *original, id ID) int { return cmp.Compare(o.id, id) })
}

// defaultOriginals is the default of Options.KeepOriginals without a window.
const defaultOriginals = 1_000_000

// keepOriginals returns how many raw tokens of originals a state keeps. reads says that a
// summarizer reads results that were cleared.
func keepOriginals(option, window int, reads bool) (k keeping) {
	switch {
	case option != 0:
		k.most = min(max(int64(option), 0), maxTotal)
	case window > 0:
		k.most = min(int64(window), maxTotal/8) * 8
	default:
		k.most = defaultOriginals
	}
	if reads {
		k.unread = cmp.Or(min(max(int64(window), 0), maxTotal), defaultOriginals/8)
	}
	return k
}

// toRead returns an entry of the view as a summarizer should read it, with the
// originals of its results if they are kept.
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

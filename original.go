package convo

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/markers"
	"github.com/seed-c1b73e60/convo/internal/sums"
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
	most     int64
	unread   int64 // also that many of originals which the summary has not read; 0: these are as others
	archived bool  // a summarizer reads those that are not kept from the log
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
	out, ok := s.Find(id)
	if o := s.original(id); ok && o != nil {
		out.Message, out.Tokens, out.Missing = o.read.clone(), clampInt(o.readTokens), clampInt(o.missing)
	}
	return out, ok
}

// minMaxResult is the smallest Options.MaxResult. It leaves room for the marker.
const minMaxResult = 64

// cutMarker returns the text that replaces o in a result that is cut.
func (o Opaque) cutMarker(ref string) string { return markers.Opaque(o.label(), o.JSON, ref) }

// markerText returns the text that replaces a cleared result.
func markerText(r *ToolResult, ref string) string {
	size := 0
	for _, p := range r.Parts {
		size += len(known(p).body())
	}
	return markers.Cleared(r.Name, size, ref)
}

// recallOf returns the call of Options.RecallTool for an entry, as markers show it.
func (id *identity) recallOf(in ID) string { return fmt.Sprintf("%s(id=%d)", id.tool, in) }

// placeOf returns where a marker says that a result in an entry is kept: at the reference that
// Options.Spill returned, and with Options.RecallTool.
func (id *identity) placeOf(ref string, in ID) string {
	own := id.recallOf(in)
	switch {
	case id.tool == "" || strings.HasSuffix(", "+ref, ", "+own):
		return ref
	case ref == "":
		return own
	}
	return ref + ", " + own
}

// cutPlace is placeOf for a result that is cut to limit, and ref if it leaves no room.
func (id *identity) cutPlace(r *ToolResult, ref string, in ID, limit int64) string {
	place := id.placeOf(ref, in)
	if place != ref && id.leastCut(r, place) > limit {
		return ref
	}
	return place
}

// marker returns the text that replaces a cleared result of size raw tokens in an entry.
func (id *identity) marker(r *ToolResult, ref string, in ID, size int64) string {
	if place := id.placeOf(ref, in); place != ref {
		if text := markerText(r, place); id.text(text) < size {
			return text
		}
	}
	return markerText(r, ref)
}

// renumber makes the markers in e, whose ID was another, name its ID. The tokens are not
// counted again, since the lock is held.
func (id *identity) renumber(e *entry, was ID) {
	if id.tool == "" || was == 0 || was == e.id || e.msg.Role != RoleTool || e.missing() == 0 {
		return
	}
	e.content = 0
	old, now := " "+id.recallOf(was)+"]", " "+id.recallOf(e.id)+"]"
	for i, p := range e.msg.Parts {
		r, ok := p.(ToolResult)
		if !ok {
			continue
		}
		r.Parts = slices.Clone(r.Parts)
		for k, q := range r.Parts {
			if t, ok := q.(Text); ok {
				r.Parts[k] = Text(markers.Replace(string(t), old, now))
			}
		}
		e.msg.Parts[i] = r
	}
}

// cutRef returns the reference in the markers of a result that was cut, and whether there is a
// marker. If markers have different references, a tool wrote some of them, and none is believed.
func cutRef(r *ToolResult) (ref string, cut bool) { return markers.Ref(eachOf[Text](r.Parts)) }

// content returns the tokens of the parts of a result that can be cut: all but media.
func (c *counter) content(parts []Part) int64 {
	return sums.Over(parts, func(p Part) int64 { return c.text(known(p).body()) })
}

// cutter returns what cuts results.
func (c *counter) cutter() markers.Cutter[Text, Part] {
	return markers.Cutter[Text, Part]{Count: c.text, Opaque: func(p Part) (json string, label func() string) {
		o, ok := p.(Opaque)
		if !ok {
			return "", nil
		}
		return o.JSON, o.label
	}}
}

// leastCut returns the tokens of the content of r if only the marker is left.
func (c *counter) leastCut(r *ToolResult, ref string) int64 { return c.cutter().Least(r.Parts, ref) }

// cutResult cuts r until its content has at most limit tokens with the markers: first
// opaque parts, and then the middle of its text. Media stay. It reports false if the
// marker alone is above the limit.
func (c *counter) cutResult(r ToolResult, limit int64, ref string) (_ ToolResult, ok bool) {
	r.Parts, ok = c.cutter().Cut(r.Parts, limit, ref)
	return r, ok
}

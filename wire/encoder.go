package wire

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/overflow"
)

// An Encoder encodes successive snapshots of a conversation. Encode returns the same
// request as the Encode of Format. It remembers the previous request, and writes only the
// entries after those that both snapshots begin with (see [convo.Snapshot.Same]). At the
// end of a long conversation, they are a small part of it.
//
// The requests share the bytes of their common messages. An Encoder never writes to these
// bytes, and the caller must not overwrite them. The caller may change the list of
// messages, append to a message, and change everything else.
//
// Use one Encoder for each conversation. It keeps in memory, also while idle, the last
// snapshot and two to three times the bytes of its request: some 60 kB after a request of
// 21 kB. Drop it while the conversation is idle; a new Encoder writes the whole next
// request, with the same bytes.
//
// A format of this package may be a value or a pointer. Any other format encodes every
// snapshot as a whole. An Encoder is safe for concurrent use, but Format must not be
// changed during a call of Encode. An Encoder must not be copied.
type Encoder struct {
	Format Format // writes the requests; required

	mu     sync.Mutex // protects following
	format builtin    // the format of the last request
	last   *convo.Snapshot
	at     *projector // has read all of last
	points []point    // places in last that at can go back to, in order
	sparse int        // number of points, from the first, that are far apart
}

// builtins are the formats of this package.
var builtins = []builtin{Anthropic{}, Converse{}, Gemini{}, OpenAIChat{}, OpenAIResponses{}}

// builtinOf returns the format of this package that f is or points to, or nil. It compares
// exact types, since a type that embeds such a format may have its own Encode. The error
// is a *convo.ValueError if f is a nil pointer to a format of this package.
func builtinOf(f Format) (builtin, error) {
	own, ok := f.(builtin)
	if !ok {
		return nil, nil
	}
	v := reflect.ValueOf(f)
	isPointer, t := v.Kind() == reflect.Pointer, v.Type()
	if isPointer {
		t = t.Elem()
	}
	switch {
	case !slices.ContainsFunc(builtins, func(b builtin) bool { return reflect.TypeOf(b) == t }):
		return nil, nil
	case !isPointer:
		return own, nil
	case v.IsNil():
		return nil, &convo.ValueError{Name: "Encoder.Format", Value: fmt.Sprintf("%T(nil)", f), Want: "a format such as Anthropic{}"}
	}
	return v.Elem().Interface().(builtin), nil
}

// Encode returns the result of Format.Encode. If Format is nil, or a nil pointer to a
// format of this package, the error is a [*convo.ValueError].
func (e *Encoder) Encode(s *convo.Snapshot) (Request, error) {
	if e.Format == nil {
		return Request{}, &convo.ValueError{Name: "Encoder.Format", Want: "a format such as Anthropic{}"}
	}
	f, err := builtinOf(e.Format)
	if err != nil {
		return Request{}, err
	}
	if f == nil || s == nil {
		return e.Format.Encode(s)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.format != f {
		e.format, e.last, e.points, e.sparse = f, nil, nil, 0
	}
	e.back(s)
	e.last = nil // until all of s has been read
	e.at.read(s, e.from(), func(at int) {
		e.points = append(e.points, e.at.point(at))
		e.thin()
	})
	e.last = s
	overflow.Encoded(s, f)
	end := e.at.point(s.Len())
	r, err := e.at.request(s)
	e.at.back(&end)
	if err != nil {
		return Request{}, err
	}
	r.System = slices.Clip(r.System)
	for i, m := range r.Messages {
		if len(m) < cap(m) {
			r.Messages[i] = slices.Clip(m)
		}
	}
	return r, nil
}

// String returns the type of the format, without the state of e.
func (e *Encoder) String() string { return fmt.Sprintf("encoder(%T)", e.Format) }

// GoString returns the same as String.
func (e *Encoder) GoString() string { return e.String() }

// back goes back to the newest place where s and the last snapshot have the same exchanges
// before it.
func (e *Encoder) back(s *convo.Snapshot) {
	same, n := s.Same(e.last), len(e.points)
	if e.at != nil {
		same = e.at.sameBonds(s, same)
		if !e.at.defines(s) {
			n = 0
		}
	}
	for n > 0 && (e.points[n-1].at > same || isResult(s, e.points[n-1].at)) {
		n--
	}
	clear(e.points[n:])
	e.sparse = min(e.sparse, n)
	e.points = e.points[:n]
	if n == 0 {
		e.at = newProjector(s, e.format)
		return
	}
	e.at.back(&e.points[n-1])
}

// thin removes most of the places far from the end. They are seldom needed, and each takes
// as much memory as a short message.
func (e *Encoder) thin() {
	const near, apart = 16, 16 // places, and entries
	if len(e.points) < e.sparse+2*near {
		return
	}
	dense := len(e.points) - near
	kept := e.points[:e.sparse]
	for _, p := range e.points[e.sparse:dense] {
		if n := len(kept); n == 0 || p.at >= kept[n-1].at+apart {
			kept = append(kept, p)
		}
	}
	e.sparse = len(kept)
	kept = append(kept, e.points[dense:]...)
	clear(e.points[len(kept):])
	e.points = kept
}

// from returns the index of the first entry that e.at has not read.
func (e *Encoder) from() int {
	if n := len(e.points); n > 0 {
		return e.points[n-1].at
	}
	return 0
}

// isResult reports whether entry i is a tool message. A tool message belongs to the
// exchange before it.
func isResult(s *convo.Snapshot, i int) bool {
	m, ok := s.At(i)
	return ok && m.Message.Role == convo.RoleTool
}

// Package kept computes how much of a request that a model has answered is also the start of the
// next one, so that a provider may find it in its prompt cache.
package kept

import (
	"github.com/seed-c1b73e60/convo/internal/calibrate"
	"github.com/seed-c1b73e60/convo/internal/fingerprint"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
	"github.com/seed-c1b73e60/convo/internal/sums"
)

// An Entry is a message of a request.
type Entry interface {
	comparable

	Sum() fingerprint.Sum  // of its content
	Sent() fingerprint.Sum // of all that is sent of it
	Raw() int64            // raw tokens
}

// A Request is what a view knows of a request that was made of an earlier view. It never changes.
// T is what holds its tools.
type Request[E Entry, T any] struct {
	Heads
	Figures
	Lost   []fingerprint.Sum // of the entries that are gone; nil: none, or they are not known
	System []E               // nil: none, or they are not known
	Set    T                 // the tools; zero: none, or they are not known
	After  uint64            // 1 more than the version of its view; 0: another History made that
	Logged Ends
}

// A Frame identifies what stands around the list of a view, besides the summary.
type Frame struct {
	Sys   fingerprint.List // of the system entries
	Tools fingerprint.Sum  // 0: none
	Eph   fingerprint.Sum  // of the ephemeral messages; 0: none
}

// Front returns the fingerprint of the system entries and the tools.
func (f Frame) Front() fingerprint.Sum {
	sum := fingerprint.Sum(f.Sys)
	if f.Tools != 0 {
		sum = sum.Uint64(uint64(f.Tools))
	}
	return sum
}

// Heads are fingerprints of what stands around the list of a request; 0: there is none.
type Heads struct {
	Frame
	Model, Summary fingerprint.Sum
}

// Figures say what became of the entries of a request.
type Figures struct {
	Kept, Raw, Gone, GoneRaw             int64 // entries at the start of the list that are the same, those after them that are others now, and the raw tokens of both
	ToolsRaw, SysRaw, SummaryRaw, EphRaw int64 // raw tokens
	Place, PlaceRaw                      int64 // index in the list of the entry after the ephemeral messages, and raw tokens of those before it
	RolledBack                           int64 // 1: entries are gone because of a rollback
}

// Value returns the value of the JSON.
func (h *Heads) Value() strictjson.Value {
	return fingerprint.Values{&h.Model, &h.Tools, (*fingerprint.Sum)(&h.Sys), &h.Summary, &h.Eph}
}

// Value returns the value of the JSON.
func (f *Figures) Value() strictjson.Value {
	return strictjson.Numbers(calibrate.MaxTotal, &f.Kept, &f.Raw, &f.SysRaw, &f.ToolsRaw, &f.SummaryRaw, &f.Gone, &f.GoneRaw, &f.EphRaw, &f.Place, &f.PlaceRaw, &f.RolledBack)
}

// Moved returns r for a view with the list now in place of was. r may be nil.
func (r *Request[E, T]) Moved(was, now []E) *Request[E, T] {
	if r == nil {
		return nil
	}
	most := min(int(r.Kept), len(was), len(now))
	n := min(SamePart(was, now), most)
	n += SameStart(was[n:most], now[n:most], func(a, b E) bool { return a.Sent() == b.Sent() })
	return r.Cut(was, n).Joined(now)
}

// Counted returns r for another History, which may count tokens in another way. Its list is now
// in place of was. r may be nil.
func (r *Request[E, T]) Counted(was, now []E) *Request[E, T] {
	if r == nil {
		return nil
	}
	own := *r
	own.After = 0
	if raw := RawOf(now[:min(int(r.Kept), len(now))]); raw != r.Raw && r.Raw > 0 && raw > 0 {
		for _, n := range [...]*int64{&own.Raw, &own.GoneRaw, &own.ToolsRaw, &own.SysRaw, &own.SummaryRaw, &own.EphRaw, &own.PlaceRaw} {
			*n = int64(min(float64(*n)*float64(raw)/float64(r.Raw), calibrate.MaxTotal))
		}
	}
	return own.Moved(was, now)
}

// Cut returns r for a view with the first n entries of a list. r may be nil.
func (r *Request[E, T]) Cut(list []E, n int) *Request[E, T] {
	if r == nil || n >= int(r.Kept) {
		return r
	}
	gone := list[n:r.Kept]
	var lost []fingerprint.Sum
	if int64(len(r.Lost)) == r.Gone {
		lost = make([]fingerprint.Sum, 0, len(gone)+len(r.Lost))
		for _, e := range gone {
			lost = append(lost, e.Sent())
		}
		lost = append(lost, r.Lost...)
	}
	return r.shifted(-int64(len(gone)), -RawOf(gone), lost)
}

// Joined returns r for a list that begins with the kept entries, and may go on as the request
// did. r may be nil.
func (r *Request[E, T]) Joined(list []E) *Request[E, T] {
	if r == nil || len(r.Lost) == 0 {
		return r
	}
	more := list[r.Kept:]
	n := SameStart(more, r.Lost, func(e E, sum fingerprint.Sum) bool { return e.Sent() == sum })
	if n == 0 {
		return r
	}
	return r.shifted(int64(n), RawOf(more[:n]), r.Lost[n:])
}

// shifted returns r with n more entries at the start of the list, of so many raw tokens, or with
// fewer. lost are those that are gone then.
func (r *Request[E, T]) shifted(n, raw int64, lost []fingerprint.Sum) *Request[E, T] {
	within := func(n int64) int64 { return min(max(n, 0), calibrate.MaxTotal) }
	own := *r
	own.Kept, own.Gone, own.Lost = r.Kept+n, within(r.Gone-n), lost
	own.Raw, own.GoneRaw = within(r.Raw+raw), within(r.GoneRaw-raw)
	if n < 0 || own.Gone == 0 {
		own.RolledBack = 0
	}
	return &own
}

// Released returns r for a view in which the reasoning of list[n:] is no longer sent. r may be
// nil.
func (r *Request[E, T]) Released(list []E, n int) *Request[E, T] {
	own := r.Cut(list, n)
	if own != r {
		own.Lost = nil // the entries are there, and not sent as they were
	}
	return own
}

// Back returns r after a rollback has changed the list. r may be nil.
func (r *Request[E, T]) Back() *Request[E, T] {
	if r == nil || r.Gone == 0 {
		return r
	}
	own := *r
	own.RolledBack = 1
	return &own
}

// Shortened returns r for a list of n entries, which may not be counted yet. If what was kept is
// longer, entries that are not known were taken back.
func (r *Request[E, T]) Shortened(n int64) *Request[E, T] {
	if r.Kept <= n {
		return r
	}
	return r.shifted(n-r.Kept, sums.Portion(r.Raw, n, r.Kept)-r.Raw, nil).Back()
}

// What may end the part of the last request that the next one begins with.
const (
	EndModel     = "model"
	EndTools     = "tools"
	EndSystem    = "system"
	EndEdit      = "edit"
	EndRollback  = "rollback"
	EndEphemeral = "ephemeral"
)

// Same returns how many raw tokens at the start of r the next request begins with, and what ends
// them; empty: it begins with all of r. The entries of the next request are those of system and
// list; its ephemeral messages come before the entry of list with the index place, which is the
// length of list without any. After EndTools, some of the tools may be the same.
func (r *Request[E, T]) Same(now Heads, system, list []E, place int64) (same int64, end string) {
	edited := EndEdit
	if r.RolledBack != 0 {
		edited = EndRollback
	}
	heads := r.ToolsRaw + r.SysRaw
	switch {
	case now.Model != r.Model:
		return 0, EndModel
	case now.Tools != r.Tools:
		return 0, EndTools
	case now.Sys != r.Sys:
		n := SameStart(r.System, system, func(a, b E) bool { return a.Sum() == b.Sum() })
		return r.ToolsRaw + RawOf(r.System[:n]), EndSystem
	case now.Summary != r.Summary:
		return heads, edited
	}
	heads += r.SummaryRaw
	switch {
	case now.Eph == r.Eph && (r.Eph == 0 || place == r.Place):
		if r.Place <= r.Kept {
			heads += r.EphRaw
		}
	case r.Eph != 0 && r.Place <= min(place, r.Kept):
		return heads + r.PlaceRaw, EndEphemeral
	case now.Eph != 0 && (place < r.Kept || place == r.Kept && r.Gone > 0):
		return heads + r.Raw - RawOf(list[place:r.Kept]), EndEphemeral
	}
	if r.Gone > 0 {
		return heads + r.Raw, edited
	}
	return heads + r.Raw, ""
}

// SamePart returns the length of the common start of two lists. It does not compare memory that
// they share.
func SamePart[E comparable](a, b []E) int {
	if n := min(len(a), len(b)); n == 0 || &a[0] == &b[0] {
		return n
	}
	return SameStart(a, b, func(x, y E) bool { return x == y })
}

// SameStart returns how many elements at the start of two lists are the same.
func SameStart[A, B any](a []A, b []B, same func(A, B) bool) int {
	n := 0
	for n < len(a) && n < len(b) && same(a[n], b[n]) {
		n++
	}
	return n
}

// RawOf returns the raw tokens of a list.
func RawOf[E Entry](list []E) (n int64) {
	for _, e := range list {
		n += e.Raw()
	}
	return n
}

// Ends are the ends of the prefix that were logged: the last one since an answer, and what is
// logged once.
type Ends struct {
	End              string
	Model, Ephemeral bool
}

// With returns t once an end of the prefix was logged, which is t if that is not to be logged.
// Edits and rollbacks are not; models that change and ephemeral messages that move are once.
func (t Ends) With(end string) Ends {
	switch end {
	case "", EndEdit, EndRollback:
	case EndModel:
		t.Model = true
	case EndEphemeral:
		t.Ephemeral = true
	default:
		t.End = end
	}
	return t
}

// WithLogged returns r with t.
func (r *Request[E, T]) WithLogged(t Ends) *Request[E, T] {
	own := *r
	own.Logged = t
	return &own
}

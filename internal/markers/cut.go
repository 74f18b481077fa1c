package markers

import (
	"cmp"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/sums"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// A Cutter cuts results with parts of type P, of which those of type T are texts.
type Cutter[T ~string, P any] struct {
	Count func(string) int64 // returns the tokens of a text, and 0 if it is empty

	// Opaque returns the JSON of a part that is kept or left out as a whole, and what kind it is,
	// or nil for another part.
	Opaque func(P) (json string, label func() string)
}

// Least returns the tokens of a result, media aside, if only the marker is left.
func (c Cutter[T, P]) Least(parts []P, ref string) int64 {
	size := textSize[T](parts)
	for _, p := range parts {
		if json, label := c.Opaque(p); label != nil {
			size += len(Opaque(label(), json, ref))
		}
	}
	return c.Count(Cut(size, ref))
}

// Cut cuts the parts of a result until they have at most limit tokens with the markers: first the
// opaque ones, and then the middle of the texts. Others stay, and do not count. It reports false
// if the marker alone is above the limit.
func (c Cutter[T, P]) Cut(parts []P, limit int64, ref string) (_ []P, ok bool) {
	least := c.Least(parts, ref)
	if least > limit {
		return parts, false
	}
	parts, opaque := c.withoutOpaque(parts, limit, min(limit/2, limit-least), ref)
	weight := c.texts(parts)
	if weight+opaque <= limit {
		return parts, true
	}
	limit -= opaque
	size := textSize[T](parts)
	room := max(limit-c.Count(Cut(size, ref)), 0)
	for keep := int(float64(size) * float64(room) / float64(weight)); ; keep = keep * 7 / 8 {
		short := WithoutMiddle[T](parts, keep, ref)
		if keep == 0 || c.texts(short) <= limit {
			return short, true
		}
	}
}

// withoutOpaque replaces opaque parts by markers, the largest first. It stops when there are at
// most limit tokens, or when the opaque parts that are left have at most most, so that cutting
// the texts is enough. left is the tokens of those.
func (c Cutter[T, P]) withoutOpaque(parts []P, limit, most int64, ref string) (_ []P, left int64) {
	var order []int // their indices
	sizes := make([]int64, len(parts))
	for i, p := range parts {
		if json, label := c.Opaque(p); label != nil {
			order, sizes[i] = append(order, i), c.Count(json)
			left += sizes[i]
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	texts := c.texts(parts)
	parts = slices.Clone(parts)
	for _, i := range order {
		if left <= most || left <= limit-texts {
			break
		}
		json, label := c.Opaque(parts[i])
		marker := Opaque(label(), json, ref)
		parts[i] = any(T(marker)).(P)
		left, texts = left-sizes[i], texts+c.Count(marker)
	}
	return parts, left
}

// texts returns the tokens of the texts among parts.
func (c Cutter[T, P]) texts(parts []P) int64 {
	return sums.Over(parts, func(p P) int64 { return c.Count(textOf[T](p)) })
}

// textOf returns the text in p, or none if it is another part.
func textOf[T ~string, P any](p P) string {
	t, _ := any(p).(T)
	return string(t)
}

// textSize returns the bytes of the texts among parts.
func textSize[T ~string, P any](parts []P) int {
	return int(sums.Over(parts, func(p P) int64 { return int64(len(textOf[T](p))) }))
}

// WithoutMiddle returns the parts of a result with at most keep bytes of its texts, which are
// the parts of type T: the first three quarters of them from the beginning, then the marker,
// then the rest from the end. It cuts between lines or words if there is a border nearby. Parts
// that are cut do not share memory with the original.
func WithoutMiddle[T ~string, P any](parts []P, keep int, ref string) []P {
	size := textSize[T](parts)
	head, tail := keep-keep/4, size-keep/4 // more from the beginning, which tells what the result is
	from, to, at := 0, 0, 0                // the bytes to leave out, and those that were read
	for _, p := range parts {
		t, ok := any(p).(T)
		if !ok {
			continue
		}
		if at+len(t) > head {
			from += text.BorderBefore(string(t), head-at)
			to += text.BorderAfter(string(t), tail-at)
		} else {
			from, to = from+len(t), to+len(t)
		}
		at += len(t)
	}
	return WithoutBytes[T](parts, from, to, ref)
}

// WithoutBytes returns the parts of a result with a marker in place of the bytes of its texts
// from from up to, but not including, to. Parts that are cut do not share memory with the
// original.
func WithoutBytes[T ~string, P any](all []P, from, to int, ref string) (parts []P) {
	marker := T(Cut(to-from, ref))
	add := func(t T) { parts = append(parts, any(t).(P)) }
	markerAt, at := -1, 0
	for _, p := range all {
		t, ok := any(p).(T)
		head, tail := min(max(from-at, 0), len(t)), min(max(to-at, 0), len(t)) // what stays of it is before head, and from tail on
		at += len(t)
		switch {
		case !ok:
			parts = append(parts, p)
		case head == len(t) && markerAt < 0: // the cut starts after it
			add(t)
		case markerAt < 0: // the cut starts in this part
			markerAt = len(parts)
			add(t[:head] + marker + t[tail:])
		case tail == len(t): // nothing is left of it
		case tail == 0: // all of it is
			add(t)
		case markerAt == len(parts)-1: // the cut ends in this part
			start := any(parts[markerAt]).(T)
			parts = parts[:markerAt]
			add(start + t[tail:])
		default:
			add(T(strings.Clone(string(t[tail:]))))
		}
	}
	return parts
}

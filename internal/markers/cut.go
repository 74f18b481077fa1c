package markers

import (
	"strings"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// WithoutMiddle returns the parts of a result with at most keep bytes of its texts, which are
// the parts of type T: the first three quarters of them from the beginning, then the marker,
// then the rest from the end. It cuts between lines or words if there is a border nearby. Parts
// that are cut do not share memory with the original.
func WithoutMiddle[T ~string, P any](parts []P, keep int, ref string) []P {
	size := 0
	for _, p := range parts {
		t, _ := any(p).(T)
		size += len(t)
	}
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

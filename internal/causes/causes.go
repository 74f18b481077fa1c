// Package causes reads errors that other code returns. Their methods may panic, and they may wrap each
// other in a circle.
package causes

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// most is how many errors Each looks at.
const most = 64

// Each calls f with an error and those that it wraps.
func Each(err error, f func(error)) {
	left := most
	each(err, &left, f)
}

func each(err error, left *int, f func(error)) {
	defer func() { _ = recover() }() // of Unwrap
	*left--
	if *left < 0 || err == nil {
		return
	}
	f(err)
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		each(e.Unwrap(), left, f)
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			each(err, left, f)
		}
	}
}

// Only reports whether judge accepts err. An error that judge does not know is accepted if it
// wraps others, and all of these are accepted. Only is false if a method panics.
func Only(err error, judge func(error) (accepted, known bool)) (only bool) {
	defer func() {
		if recover() != nil {
			only = false
		}
	}()
	left := most
	return onlyOf(err, &left, judge)
}

func onlyOf(err error, left *int, judge func(error) (accepted, known bool)) bool {
	*left--
	if *left < 0 || err == nil {
		return false
	}
	if accepted, known := judge(err); known {
		return accepted
	}
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(all.Unwrap(), func(err error) bool { return !onlyOf(err, left, judge) })
	}
	return onlyOf(errors.Unwrap(err), left, judge)
}

// Is is errors.Is, and false if a method panics.
func Is(err, target error) (is bool) {
	defer func() { _ = recover() }()
	return errors.Is(err, target)
}

// Reworded returns s, the text of err, with other texts for errors that err wraps. other
// returns the other text, or "" for an error whose text stays. An equal text that is not
// of such an error also stays.
func Reworded(s string, err error, other func(error) string) string {
	Each(err, func(e error) {
		if text := other(e); text != "" {
			s = strings.ReplaceAll(s, strings.TrimPrefix(fmt.Sprint(e), "convo: "), text)
		}
	})
	return s
}

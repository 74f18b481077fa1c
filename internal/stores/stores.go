// Package stores contains code shared by the stores of this module.
package stores

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// Ended returns an error that wraps both the error and the cause of ctx, which has ended.
func Ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w (%w)", cause, err)
}

// Compare compares two heads by the order of a list: the most recently updated first.
func Compare(a, b *convo.LogInfo) int {
	return cmp.Or(b.Updated.Compare(a.Updated), strings.Compare(a.Key, b.Key))
}

// Wants reports whether opts selects h, ignoring the prefix of the key.
func Wants(opts *convo.ListOptions, h *convo.LogInfo) bool {
	return (opts.UpdatedBefore.IsZero() || h.Updated.Before(opts.UpdatedBefore)) && (opts.After.Key == "" || Compare(&opts.After, h) < 0)
}

// GapError returns the error for a record whose Seq is not one more than the Seq of the
// newest record.
func GapError(seq, newest uint64) error {
	return &convo.ValueError{Name: "Record.Seq", Value: seq, Want: fmt.Sprintf("%d, one more than that of the record before", newest+1)}
}

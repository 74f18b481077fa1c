package convo

import (
	"context"
	"errors"
)

// await calls f on a goroutine of its own and returns what f returns. It waits
// no longer than until ctx ends: then it returns why ctx ended, and whatever f
// returns later is thrown away. So f must not write to anything that its caller
// reads. If f panics or ends the goroutine, that is an error; in names f as
// PanicError.In does.
func await[T any](ctx context.Context, in string, f func() (T, error)) (T, error) {
	type outcome struct {
		got T
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		out := outcome{err: errGoexit} // unless f returns
		defer func() { done <- out }()
		defer catch(&out.err, in)
		out.got, out.err = f()
	}()
	select {
	case out := <-done:
		return out.got, out.err
	case <-ctx.Done():
	}
	select {
	case out := <-done: // both happened at once
		return out.got, out.err
	default:
		var none T
		return none, causeOf(ctx)
	}
}

// errGoexit is the error of an operation during which the caller's code ended the
// goroutine that it was called on.
var errGoexit = errors.New("convo: code called by the compaction ended the goroutine with runtime.Goexit; return an error instead")

// causeOf returns why ctx ended: an error that wraps both ctx's error and its
// cause.
func causeOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if matches(cause, err) {
		return cause
	}
	return errorf("%w (%w)", cause, err)
}

// endOf returns the error of a compaction whose ctx has ended.
func endOf(ctx context.Context) error {
	return errorf("compaction stopped: %w", causeOf(ctx))
}

package logs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// Copy copies the log of a conversation, its archive included, from one Store to
// another, or to another key of the same. Open then returns the same state for toKey as
// for fromKey; afterwards each is saved separately.
//
// If toKey holds the beginning of the log already, Copy adds the rest, so another Copy
// completes a copy that ended with an error. If toKey holds other records, such as those of
// another conversation or records saved under it since, the error wraps a
// [*convo.ConflictError]. So it does if the records after those under toKey were pruned
// from the source; then delete the log of toKey and copy again. If there is nothing under
// fromKey, the error matches [convo.ErrNotFound]. Copy stops with a [*convo.DamageError] at
// damage; [convo.Salvage] continues after it.
//
// The copy of a pruned log begins with the full record that was kept, under the same Seq.
// Copy holds one record in memory, and reads one Store while it writes to the other. A
// nil ctx never ends. If ctx has ended, the error matches ctx.Err and [context.Cause].
func Copy(ctx context.Context, to convo.Store, toKey string, from convo.Store, fromKey string) (err error) {
	if ctx == nil {
		ctx = context.Background()
	}
	defer func() {
		if conflict, ok := errors.AsType[*convo.ConflictError](err); ok {
			err = &wordedError{conflictText(conflict), err}
		}
		err = withBothEnds(ctx, err)
	}()
	defer catch(&err, "Store")
	if err := checkBoth(to, toKey, from, fromKey); err != nil {
		return err
	}
	var have convo.Record // the newest one of toKey
	for r, err := range to.Records(ctx, toKey, 0) {
		if err != nil {
			return err
		}
		have = r
	}
	have.Data = nil
	var last convo.Record // of the source
	for r, err := range from.Records(ctx, fromKey, max(have.Seq, 1)) {
		if err != nil {
			return err
		}
		switch {
		case last.ID != "":
			if r.Prev != last.ID || r.Seq != last.Seq+1 {
				return &convo.DamageError{Key: fromKey, Offset: -1, Seq: last.Seq, Err: fmt.Errorf("record %d does not follow record %d", r.Seq, last.Seq)}
			}
		case have.ID == "":
			r.Prev = "" // the record that it named may have been pruned
		case r.ID != have.ID && r.Prev != have.ID:
			return &convo.ConflictError{Key: toKey, Have: have.Seq, Want: r.Seq, ID: have.ID}
		}
		last = r
		last.Data = nil
		if r.ID == have.ID {
			continue
		}
		r.Key = toKey
		if err := to.Append(ctx, r); err != nil {
			return err
		}
	}
	switch {
	case last.ID != "":
		return nil
	case have.ID == "":
		return &wordedError{fmt.Sprintf("copy %q: %s; List shows the keys of the Store", fromKey, plain(convo.ErrNotFound)), convo.ErrNotFound}
	}
	return &convo.ConflictError{Key: toKey, Have: have.Seq, Want: have.Seq + 1, ID: have.ID}
}

// checkBoth returns a *ValueError unless there are two Stores, with valid keys.
func checkBoth(to convo.Store, toKey string, from convo.Store, fromKey string) error {
	if to == nil || from == nil {
		return &convo.ValueError{Name: "Store", Value: nil, Want: "two Stores to copy between"}
	}
	return cmp.Or(convo.CheckKey(toKey), convo.CheckKey(fromKey))
}

// conflictText returns the text of a conflict for a Copy.
func conflictText(e *convo.ConflictError) string {
	if e.Have == 0 {
		return fmt.Sprintf("copy to %q: the log there was deleted during the copy; copy again", e.Key)
	}
	return fmt.Sprintf("copy to %q: the log there holds other records, the newest of which is record %d; copy to another key, or delete that log and copy again", e.Key, e.Have)
}

// withBothEnds returns an error of a Store. If it is ctx's error or its cause, it matches
// both.
func withBothEnds(ctx context.Context, err error) error {
	end, cause := ctx.Err(), context.Cause(ctx)
	switch {
	case err == nil || end == nil:
		return err
	case errors.Is(err, end) && !errors.Is(err, cause):
		return fmt.Errorf("%w (%w)", err, cause)
	case errors.Is(err, cause) && !errors.Is(err, end):
		return fmt.Errorf("%w (%w)", err, end)
	}
	return err
}

// A wordedError is an error with another text.
type wordedError struct {
	text string // without "logs: "
	err  error
}

func (e *wordedError) Error() string { return "logs: " + e.text }

func (e *wordedError) Unwrap() error { return e.err }

// plain returns the text of err for use in the text of another.
func plain(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "convo: "), "logs: ")
}

// catch, when deferred, turns a panic in the caller's code into a [*convo.PanicError].
func catch(err *error, in string) {
	if v := recover(); v != nil {
		*err = &convo.PanicError{In: in, Value: v, Stack: string(debug.Stack())}
	}
}

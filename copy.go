package convo

import (
	"context"
	"errors"
	"fmt"
)

// Copy copies the log of a conversation, its archive included, from one [Store] to
// another, or to another key. Then Open finds under toKey what it finds under fromKey;
// from then on each is saved on its own. The Stores may be the same.
//
// When it is called again, Copy goes on after what is there already. The error wraps a
// [*ConflictError] if toKey holds other records: those of another conversation, or
// some that were saved under it since. It does so too if the records after those
// under toKey have been pruned from the source: delete the log of toKey and copy all
// again. If there is nothing under fromKey, the error matches [ErrNotFound]. After an
// error the copy may be a part of the source, which Copy can go on with. At damage in what
// is still to be copied it stops with a [*DamageError]: [Salvage] goes on after it. A nil ctx never
// ends.
//
// The copy of a log that was pruned begins with the full record that was kept, whose
// Seq stays what it was. Copy holds one record in memory, beside what the Stores do,
// and reads one Store while it writes to the other.
func Copy(ctx context.Context, to Store, toKey string, from Store, fromKey string) (err error) {
	defer func() {
		if conflict, ok := errors.AsType[*ConflictError](err); ok {
			err = &wordedError{conflict.ofCopy(), err}
		}
	}()
	defer catch(&err, "Store")
	if ctx == nil {
		ctx = context.Background()
	}
	if to == nil || from == nil {
		return &ValueError{Name: "Store", Value: nil, Want: "two Stores to copy between"}
	}
	for _, key := range []string{toKey, fromKey} {
		if err := CheckKey(key); err != nil {
			return err
		}
	}
	var have Record // the newest one of toKey
	for r, err := range to.Records(ctx, toKey, 0) {
		if err != nil {
			return err
		}
		have = r
	}
	have.Data = nil
	var last Record // of the source
	for r, err := range from.Records(ctx, fromKey, max(have.Seq, 1)) {
		if err != nil {
			return err
		}
		switch {
		case last.ID != "":
			if r.Prev != last.ID || r.Seq != last.Seq+1 {
				return &DamageError{Key: fromKey, Offset: -1, Seq: last.Seq, Err: fmt.Errorf("record %d does not follow record %d", r.Seq, last.Seq)}
			}
		case have.ID == "":
			r.Prev = "" // what it named may have been pruned
		case r.ID != have.ID && r.Prev != have.ID:
			return &ConflictError{Key: toKey, Have: have.Seq, Want: r.Seq, ID: have.ID}
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
		return errorf("copy %q: %w", fromKey, ErrNotFound)
	}
	return &ConflictError{Key: toKey, Have: have.Seq, Want: have.Seq + 1, ID: have.ID}
}

// ofCopy says what a conflict means to a Copy.
func (e *ConflictError) ofCopy() string {
	if e.Have == 0 {
		return fmt.Sprintf("copy to %q: the log there was deleted meanwhile; copy again", e.Key)
	}
	return fmt.Sprintf("copy to %q: the log there holds other records, the newest of which is record %d; copy to another key, or delete that log and copy again", e.Key, e.Have)
}

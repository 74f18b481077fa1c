package convo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Prune removes records that were saved before a time and that Open does not need.
// [History.Archive] no longer yields their contents. With the zero time.Time, it first
// saves everything in a full record, and then removes all others. That record includes
// entries that were appended and have left the view since the last Save; to remove them
// as well, call Save before Prune.
//
// Prune does not erase data from the disk: free blocks, journals of a database and
// backups may still hold what it removed. If the [Store] is not a [Pruner], the error
// matches [errors.ErrUnsupported]. Other errors are those of [History.Save] and of the
// Store.
func (h *History) Prune(ctx context.Context, before time.Time) error {
	ctx, l, err := h.takeOpenLog(ctx)
	if err != nil {
		return err
	}
	defer h.recorder.saving.release()
	pruner, err := prunerOf(l.store)
	if err != nil {
		return err
	}
	if before.IsZero() {
		if err := h.save(ctx, l, true); err != nil {
			return err
		}
		return h.prune(ctx, pruner, l, l.seq)
	}
	keep, first := uint64(0), true
	for rec, err := range records(ctx, l.store, l.key, 1) {
		if _, damaged := errors.AsType[*DamageError](err); damaged {
			continue
		}
		switch {
		case err != nil:
			return err
		case rec.Full && !first:
			keep = rec.Seq
		}
		if first = false; !rec.Updated.Before(before) {
			break
		}
	}
	if keep == 0 {
		return nil
	}
	return h.prune(ctx, pruner, l, keep)
}

// prune removes the records of h that are older than before.
func (h *History) prune(ctx context.Context, p Pruner, l *logbook, before uint64) error {
	err := prune(ctx, p, l.key, before)
	if err == nil {
		h.mu.Lock()
		l.marks = slices.DeleteFunc(l.marks, func(m summaryMark) bool { return m.seq < before })
		h.mu.Unlock()
	}
	return err
}

// prunerOf returns s as a Pruner, or an error if it is not one.
func prunerOf(s Store) (Pruner, error) {
	p, ok := s.(Pruner)
	if !ok {
		return nil, fmt.Errorf("convo: the Store %T cannot remove records: %w", s, errors.ErrUnsupported)
	}
	return p, nil
}

// prune calls Prune of the Store with a full record that was there. If it is missing
// and the records before it are not, the log is a different one. A panic becomes an
// error.
func prune(ctx context.Context, p Pruner, key string, before uint64) (err error) {
	defer catch(&err, "Store.Prune")
	err = withBothEnds(ctx, p.Prune(ctx, key, before))
	if _, ok := errors.AsType[*ValueError](err); ok {
		text := fmt.Sprintf("prune %q: the log was deleted, and another was begun; Open that", key)
		return &wordedError{text, &ConflictError{Key: key, Want: before}}
	}
	return err
}

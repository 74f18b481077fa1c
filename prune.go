package convo

import (
	"context"
	"errors"
	"fmt"
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
	ctx, b, err := h.takeOpenLog(ctx)
	if err != nil {
		return err
	}
	defer h.saving.release()
	if _, err := prunerOf(b.store); err != nil {
		return err
	}
	if before.IsZero() {
		if err := h.write(ctx, true); err != nil {
			return err
		}
		b, _ = h.openLog()
		return h.prune(ctx, b, b.seq, b.before)
	}
	keep, freed, err := b.neededAt(ctx, before)
	if err != nil || keep == 0 {
		return err
	}
	return h.prune(ctx, b, keep, freed)
}

// neededAt returns the Seq of the oldest record that Open needs or that was saved at a time
// or later, or 0 if these are all of them. The records before it have freed bytes.
func (b *logbook) neededAt(ctx context.Context, at time.Time) (keep uint64, freed int64, err error) {
	sum := int64(0)
	for rec, err := range records(ctx, b.store, b.key, 1) {
		if _, damaged := errors.AsType[*DamageError](err); damaged {
			continue
		}
		switch {
		case err != nil:
			return 0, 0, err
		case rec.Full && sum > 0:
			keep, freed = rec.Seq, sum
		}
		sum += int64(len(rec.Data)) + aroundData
		if !rec.Updated.Before(at) {
			break
		}
	}
	return keep, freed, nil
}

// prune removes the records of h that are older than before, which have freed bytes.
func (h *History) prune(ctx context.Context, b logbook, before uint64, freed int64) error {
	p, err := prunerOf(b.store)
	if err == nil {
		err = prune(ctx, p, b.key, before)
	}
	if err == nil {
		h.wrote(outcome{pruned: before, freed: freed})
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

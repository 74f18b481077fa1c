package convo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-c1b73e60/convo/internal/links"
	"github.com/seed-c1b73e60/convo/internal/ranges"
	"github.com/seed-c1b73e60/convo/internal/tags"
)

// A Salvaged says what [Salvage] has kept of a log.
type Salvaged struct {
	Newest  uint64   // the newest record whose state is whole, which Open returns; 0: none
	Whole   int      // records that were kept as they are
	Partial []uint64 // records whose state is lost, and whose content for Archive was kept
	Lost    []uint64 // records of which nothing was kept
	Gone    []Range  // IDs up to those of the newest record that no entry has: they were lost, pruned, or never saved
	Damage  []error  // what is wrong with the log, one error for each place
}

// String says in one line what was kept:
//
//	117 records whole up to record 117, 2 in part (119 to 120), 1 lost (118), entries 234 to 235 gone
func (s Salvaged) String() string {
	out := counted(s.Whole, "record", "records") + " whole"
	if s.Newest > 0 {
		out += fmt.Sprintf(" up to record %d", s.Newest)
	}
	for i, seqs := range [...][]uint64{s.Partial, s.Lost} {
		var list []Range
		for _, seq := range seqs {
			list = ranges.Add(list, ID(seq))
		}
		if len(seqs) > 0 {
			out += fmt.Sprintf(", %d %s (%s)", len(seqs), [...]string{"in part", "lost"}[i], printRanges(list))
		}
	}
	if len(s.Gone) > 0 {
		out += fmt.Sprintf(", entries %s gone", printRanges(s.Gone))
	}
	return out
}

// Salvage copies the readable part of a damaged log to a new log that is whole, under an
// unused key of the same [Store] or another. It does not change the damaged log. A log
// without damage is copied.
//
// A record is whole if it is full, or follows a whole one; it keeps its Seq and its ID.
// Records after damage, up to the next full one, lose their state; their messages,
// summaries and notes are kept for [History.Archive]. A lost record is replaced by an
// empty one. Unreadable records at the end of the log have no known Seq; they are only in
// Salvaged.Damage. Open returns the newest whole state, and Load any whole state; for
// other records its error matches [ErrNotFound]. Archive of the new log also shows what
// is missing, as Gone.
//
// If toKey is in use, the error is a [*ConflictError]; if nothing can be read under
// fromKey, it matches ErrNotFound. Other errors are those of the Stores, and
// [ErrVersion]. After an error, delete the log of toKey and call Salvage again. A nil ctx
// never ends.
func Salvage(ctx context.Context, to Store, toKey string, from Store, fromKey string) (Salvaged, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	if err := cmp.Or(checkStore(to, toKey, false), checkStore(from, fromKey, false)); err != nil {
		return Salvaged{}, err
	}
	if err := isFree(ctx, to, toKey); err != nil {
		return Salvaged{}, err
	}
	s := salvage{ctx: ctx, to: to, key: toKey, copied: archive{yield: func(Archived, error) bool { return true }}}
	for rec, err := range records(ctx, from, fromKey, 1) {
		if err == nil {
			err = s.add(&rec)
		}
		if _, ok := errors.AsType[*DamageError](err); ok {
			s.out.Damage = append(s.out.Damage, err)
		} else if err != nil {
			return s.out, err
		}
	}
	if s.copied.prev.ID == "" {
		return s.out, errorf("salvage %q: nothing in it can be read: %w; restore a backup, or check the key", fromKey, ErrNotFound)
	}
	s.out.Gone = s.copied.missing
	return s.out, nil
}

// A salvage copies the readable records of a damaged log, and replaces the others.
type salvage struct {
	ctx    context.Context
	to     Store
	key    string
	out    Salvaged
	copied archive  // of the records written so far
	read   *reading // of the records since the newest full one; nil: one of them is lost
	was    scalars  // of the newest record that is whole
}

// add writes the next record that was read. A *DamageError says that it can be read
// but is not whole.
func (s *salvage) add(rec *Record) error {
	read, fault := s.read.next(rec)
	if read != nil {
		_, fault = read.picture(false)
	}
	if errors.Is(fault, ErrVersion) {
		return fault
	}
	if fault != nil {
		read = nil
	}
	s.read = read
	if err := s.fill(rec); err != nil {
		return err
	}
	if read == nil {
		if err := s.keepPart(rec); err != nil || fault == nil {
			return err
		}
		return damageIn(rec.Key, s.out.Newest, fault)
	}
	s.out.Whole++
	s.was = read.state.scalars
	if !read.state.lost {
		s.out.Newest = rec.Seq
	}
	return s.write(*rec)
}

// fill writes an empty record for each one missing before rec.
func (s *salvage) fill(rec *Record) error {
	for s.copied.prev.ID != "" && s.copied.prev.Seq+1 < rec.Seq {
		r := s.copied.prev
		r.Seq, r.ID, r.Full = s.copied.prev.Seq+1, links.NewID(), false
		if err := s.writeLost(r, new(stateJSON)); err != nil {
			return err
		}
		s.out.Lost = append(s.out.Lost, r.Seq)
	}
	return nil
}

// keepPart writes the part that Archive shows of a record whose state is lost.
func (s *salvage) keepPart(rec *Record) error {
	r, part := *rec, new(stateJSON)
	r.ID = links.NewID()
	from, err := rec.decode()
	switch {
	case errors.Is(err, ErrVersion):
		return err
	case err != nil || rec.Upto < s.copied.prev.Upto:
		s.out.Lost = append(s.out.Lost, rec.Seq)
		r.Upto = s.copied.prev.Upto
	default:
		s.out.Partial = append(s.out.Partial, rec.Seq)
		part.undone, part.summaries, part.notes = from.undone, from.summaries, from.notes
		if sum := orNil(from.summary); sum.Text != "" {
			part.summaries = append(slices.Clip(part.summaries), sum)
		}
		part.past = merge(from.past, merge(orNil(from.system), from.entries))
	}
	r.Full = s.copied.prev.ID == ""
	if r.Full {
		part.key, part.log = tags.NewKey(), links.NewID()
	}
	r.Entries, r.Tokens = s.copied.prev.Entries, s.copied.prev.Tokens
	return s.writeLost(r, part)
}

func (s *salvage) writeLost(r Record, part *stateJSON) error {
	part.scalars, part.lost = s.was, true
	part.last = r.Upto
	data, err := part.encode(inRecord)
	if err != nil {
		return err
	}
	r.Data, r.Format = data, recordFormat
	return s.write(r)
}

// write appends a record after the last one.
func (s *salvage) write(r Record) error {
	r.Key, r.Prev = s.key, s.copied.prev.ID
	if r.Created.IsZero() {
		r.Created = time.Now().UTC().Round(0)
	}
	if err := appendTo(s.ctx, s.to, r); err != nil {
		return err
	}
	return s.copied.add(&r)
}

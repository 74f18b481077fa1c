package convo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"time"

	"github.com/seed-c1b73e60/convo/internal/links"
	"github.com/seed-c1b73e60/convo/internal/wording"
)

// A Store keeps conversations as logs, one for each key. Records are only ever added to
// the end of a log. Package filestore has a Store in files, module sqlstore one in SQL
// databases, and package convotest one in memory, for tests.
//
// Methods may be called from many goroutines and processes at once. A [History] calls
// them without holding a lock, and makes one call of Append at a time.
// convotest.TestStore checks a Store.
type Store interface {
	// Append adds r after the record with the ID r.Prev, atomically. When it returns nil, r
	// survives a power cut. If Prev is empty, r begins the log of a key without one; then r is
	// Full, and its Seq may be any number from 1 on.
	//
	// If r.ID is already the ID of the newest record, Append returns nil. If the newest record
	// is neither r nor r.Prev, or if there is none and r.Prev is not empty, it returns a
	// [*ConflictError] and writes nothing. If r.Check fails, or r.Seq is not one more than the
	// Seq of the record r.Prev, it returns a [*ValueError] and writes nothing. After any other
	// error, r may have been stored or may still be stored later, but never a part of it.
	Append(ctx context.Context, r Record) error

	// Records yields the records of a key in order, with a few in memory at a time. It yields
	// the records with a Seq of at least from, or if from is 0, the newest full record and the
	// records after it. A key without a log yields nothing; this is not an error.
	//
	// In place of records that are damaged or missing, it yields a [*DamageError]. If the
	// caller continues, it yields the intact records that follow; if from is 0, it may also end
	// there. It never yields an older full record in place of the newest one. After any other
	// error nothing more is yielded.
	Records(ctx context.Context, key string, from uint64) iter.Seq2[Record, error]

	// List yields the LogInfo of the newest record of each log that opts selects, the most
	// recently updated first. The order of equal Updated times never changes. List continues to
	// read while the caller ranges over it.
	List(ctx context.Context, opts ListOptions) iter.Seq2[LogInfo, error]

	// Delete removes the log of a key. It is not an error if there is none.
	Delete(ctx context.Context, key string) error
}

// ListOptions select what [Store].List yields. The zero value selects everything.
type ListOptions struct {
	Prefix string // of the keys to list

	// UpdatedBefore, unless it is zero, leaves out the conversations updated at this time or
	// later. What remains is due to expire.
	UpdatedBefore time.Time

	// After is the last LogInfo of an earlier List of the same Store: List yields what follows
	// it. Only its Key and Updated are read, so these two can be the cursor of a page. The
	// conversation may have changed or gone since. Without a Key, List begins at the front.
	//
	// A conversation that is updated between two pages moves to the front. So no conversation
	// is on two pages, as long as the clocks of the writers agree, but a conversation that moved
	// may be on no page. To find it, List again from the front, up to the Updated of the first
	// LogInfo of the first page.
	After LogInfo
}

// A Pruner is a [Store] that can remove old records.
type Pruner interface {
	// Prune atomically removes the records of a key whose Seq is less than before, the Seq of
	// a full record. If a Prune or a Delete has removed all of them, it returns nil, even if
	// the record with that Seq is gone. If before is 0, greater than the Seq of the newest
	// record, or the Seq of a record that is not full, Prune returns a [*ValueError] and
	// removes nothing.
	Prune(ctx context.Context, key string, before uint64) error
}

// A Record is one entry in the log of a conversation. It holds the changes since the
// previous record or, if it is Full, the whole state. A stored record never changes. A
// [Store] reads all fields but Data.
type Record struct {
	LogInfo
	ID     string // random: 26 lower-case letters and digits
	Prev   string // ID of the previous record; empty: this is the first one
	Full   bool   // holds everything, independently of earlier records
	Format int    // of Data
	Upto   ID     // last ID that the History has assigned
	Data   []byte // at most 256 MiB; a Store keeps a copy, and returns copies
	Torn   int64  // not stored: Records sets it in the newest record, to the number of bytes after it that are not a whole record; see Status
}

// A LogInfo describes a conversation in a list.
type LogInfo struct {
	Key     string    // any string of 1 to 4,096 bytes
	Title   string    // see History.SetMeta; a Store keeps at least the first 128 bytes
	Seq     uint64    // one more than that of the previous record
	Created time.Time // when the first record was made
	Updated time.Time // when this record was made
	Entries int       // of the view
	Tokens  int       // the estimate of the next request
}

// Limits of what a Store accepts.
const (
	maxKey    = 4096
	maxRecord = 256 << 20
)

// Check returns a [*ValueError] for a record that no [Store] may accept. Its Key, ID, Prev,
// Seq, Title or the length of its Data is out of range, or it begins a log and is not Full.
// Append must call it first.
func (r *Record) Check() error {
	if err := CheckKey(r.Key); err != nil {
		return err
	}
	switch {
	case !links.IsID(r.ID):
		return &ValueError{Name: "Record.ID", Value: r.ID, Want: fmt.Sprintf("%d letters and digits", links.IDLen)}
	case r.Prev != "" && !links.IsID(r.Prev) || r.Prev == r.ID:
		return &ValueError{Name: "Record.Prev", Value: r.Prev, Want: "empty, or the ID of another record"}
	case r.Seq == 0:
		return &ValueError{Name: "Record.Seq", Value: r.Seq, Want: "at least 1"}
	case r.Prev == "" && !r.Full:
		return &ValueError{Name: "Record.Full", Value: r.Full, Want: "true in the first record of a log"}
	case len(r.Title) > maxTitle:
		return &ValueError{Name: "Record.Title", Value: fmt.Sprintf("%d bytes long", len(r.Title)), Want: fmt.Sprintf("at most %d bytes", maxTitle)}
	case len(r.Data) > maxRecord:
		return &ValueError{Name: "Record.Data", Value: fmt.Sprintf("%d bytes long", len(r.Data)), Want: fmt.Sprintf("at most %d bytes", maxRecord)}
	}
	return nil
}

// CheckKey returns a [*ValueError] for a key that is empty or too long.
func CheckKey(key string) error {
	if key == "" || len(key) > maxKey {
		return &ValueError{Name: "key", Value: fmt.Sprintf("%d bytes long", len(key)), Want: fmt.Sprintf("1 to %d bytes", maxKey)}
	}
	return nil
}

// follows returns a fault if rec cannot follow prev, as [links.Follows] does.
func follows(key string, prev, rec *Record, first bool) (usable bool, fault error) {
	link := func(r *Record) links.Record {
		return links.Record{Key: r.Key, ID: r.ID, Prev: r.Prev, Seq: r.Seq, Full: r.Full}
	}
	return links.Follows(key, link(prev), link(rec), first, rec.Check)
}

// String returns the key, the title and the sizes of the conversation.
func (i LogInfo) String() string {
	return fmt.Sprintf("%q %q: record %d, %s, %s tokens", abbreviate(i.Key), abbreviate(i.Title), i.Seq, counted(i.Entries, "entry", "entries"), grouped(i.Tokens))
}

// records yields the records of a key, and checks that each follows the previous one. If
// one does not, it yields a *DamageError and then that record, if it is newer. A panic of
// the Store becomes an error. Any error but a *DamageError is the last.
func records(ctx context.Context, s Store, key string, from uint64) iter.Seq2[Record, error] {
	if ctx == nil {
		ctx = context.Background()
	}
	list := links.Guard(func() iter.Seq2[Record, error] { return s.Records(ctx, key, from) }, func(v any) error {
		return &PanicError{In: "Store.Records", Value: v, Stack: string(debug.Stack())}
	})
	return func(yield func(Record, error) bool) {
		var prev Record
		damaged := false // there was damage after prev
		for rec, err := range list {
			if err != nil {
				err = wording.WithBothEnds(ctx, err)
				_, damaged = errors.AsType[*DamageError](err)
				if !yield(Record{}, err) || !damaged {
					return
				}
				continue
			}
			usable, fault := follows(key, &prev, &rec, from <= 1)
			isNew := fault != nil && (!damaged || !usable)
			if isNew && !yield(Record{}, &DamageError{Key: key, Offset: -1, Seq: prev.Seq, Err: fault}) {
				return
			}
			if !usable {
				continue
			}
			if !yield(rec, nil) {
				return
			}
			prev, damaged = rec, false
			prev.Data = nil
		}
	}
}

// damageIn returns the error for a record that cannot be read, after the one with the Seq, or
// nil if err is nil.
func damageIn(key string, seq uint64, err error) error {
	if err == nil || errors.Is(err, ErrVersion) {
		return err
	}
	return &DamageError{Key: key, Offset: -1, Seq: seq, Err: err}
}

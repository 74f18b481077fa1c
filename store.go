package convo

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// A Store keeps conversations: for each key a log of records, to which records are
// only ever added. Package filestore has a Store for files, the module sqlstore
// one for SQL databases, and package convotest one in memory, for tests.
//
// Methods may be called from many goroutines and processes at once. A [History]
// calls them without holding a lock, and makes one call of Append at a time.
// convotest.TestStore checks a Store.
type Store interface {
	// Append adds r after the record with the ID r.Prev, in one step. When it
	// returns nil, r survives a power cut. With an empty Prev, r begins the log
	// of a key that has none; then r is Full, and its Seq may be any from 1 on.
	//
	// If r.ID is the ID of the newest record already, Append returns nil. If the
	// newest record is neither r nor r.Prev, or if there is none and r.Prev is not
	// empty, it returns a [*ConflictError] and writes nothing. If r.Check fails, or
	// r.Seq is not one more than that of the record r.Prev, it returns a
	// [*ValueError] and writes nothing. After any other error r may have been
	// stored, or may still be, but never a part of it.
	Append(ctx context.Context, r Record) error

	// Records yields the records of a key in order, a few in memory at a time:
	// those with a Seq of at least from, or, if from is 0, the newest full
	// record and those after it. A key without a log yields nothing, which is
	// no error.
	//
	// In the place of records that are damaged or missing it yields a
	// [*DamageError]. If the caller goes on, it yields those after them that are
	// whole; from 0 it may also end there. It never yields an older full record in
	// the place of the newest one. After any other error nothing more is yielded.
	Records(ctx context.Context, key string, from uint64) iter.Seq2[Record, error]

	// List yields the head of the newest record of each log that opts asks for, the
	// most recently updated first. Heads with the same Updated come in an order that
	// never changes. List reads on while the caller ranges over it.
	List(ctx context.Context, opts ListOptions) iter.Seq2[LogInfo, error]

	// Delete removes the log of a key. It is no error if there is none.
	Delete(ctx context.Context, key string) error
}

// ListOptions say which conversations [Store].List yields. The zero value stands for
// all.
type ListOptions struct {
	// Prefix is what the keys begin with.
	Prefix string

	// UpdatedBefore, unless it is zero, leaves out the conversations that were
	// updated at this time or later: what is left is due to expire.
	UpdatedBefore time.Time

	// After is the last LogInfo of an earlier List of the same Store: List yields what
	// comes after it. Only its Key and Updated are read, so a program can send these
	// two to a client as the cursor of a page. The conversation may have been updated
	// or deleted since. Without a Key, List begins with the first one.
	//
	// A conversation that is updated between two pages moves to the front. So no
	// conversation is on two pages, as long as the clocks of the writers agree, and
	// one that moved may be on none: to find it, List again from the front, up to the
	// Updated of the first LogInfo of the first page.
	After LogInfo
}

// A Pruner is a [Store] that can remove old records.
type Pruner interface {
	// Prune removes the records of a key whose Seq is less than before, which
	// is that of a full record, in one step. If all of them have been removed already,
	// by another Prune or by Delete, it returns nil: the record with that Seq may be
	// gone as well. If before is 0 or more than the Seq of the newest record, or the
	// Seq of one that is not full, Prune returns a [*ValueError] and removes nothing.
	Prune(ctx context.Context, key string, before uint64) error
}

// A Record is one entry in the log of a conversation: what has changed since the
// record before it, or, if it is Full, everything. It never changes once it is
// stored. A [Store] reads all fields but Data.
type Record struct {
	LogInfo
	ID     string // random: 26 lower-case letters and digits
	Prev   string // ID of the record before; empty: this is the first one
	Full   bool   // rests on no record before it, and holds everything
	Format int    // of Data
	Upto   ID     // the last ID that the History has given
	Data   []byte // at most 256 MiB; a Store keeps a copy, and hands out copies
	Torn   int64  // not stored: Records sets it in the newest record, to the bytes after it that are no whole record; see Status
}

// A LogInfo is what a list of conversations shows of one of them.
type LogInfo struct {
	Key     string    // any string of 1 to 4,096 bytes
	Title   string    // see History.SetMeta; a Store keeps at least the first 128 bytes
	Seq     uint64    // one more than that of the record before
	Created time.Time // when the first record was made
	Updated time.Time // when this record was made
	Entries int       // of the view
	Tokens  int       // the estimate of the next request
}

// What a Store accepts.
const (
	maxKey    = 4096
	maxRecord = 256 << 20
	recordID  = 26 // length of Record.ID
)

// Check returns a [*ValueError] for a record that no [Store] may accept: its key,
// its ID, Prev, Seq, Title or the length of its Data is out of range, or it begins
// a log and is not Full. A Store calls it first in Append.
func (r *Record) Check() error {
	if err := CheckKey(r.Key); err != nil {
		return err
	}
	switch {
	case !isRecordID(r.ID):
		return &ValueError{Name: "Record.ID", Value: r.ID, Want: fmt.Sprintf("%d letters and digits", recordID)}
	case r.Prev != "" && !isRecordID(r.Prev) || r.Prev == r.ID:
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

// isRecordID reports whether s can be the ID of a record.
func isRecordID(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c|0x20 < 'a' || 'z' < c|0x20) && (c < '0' || '9' < c) {
			return false
		}
	}
	return len(s) == recordID
}

// follows returns what is wrong with rec after prev, which is zero for the first one, and
// whether rec can be read all the same, as what comes after a gap.
func follows(key string, prev, rec *Record, first bool) (usable bool, fault error) {
	switch {
	case rec.Key != key:
		return false, fmt.Errorf("record %d is of key %q", rec.Seq, rec.Key)
	case prev.ID != "" && rec.Seq <= prev.Seq:
		return false, fmt.Errorf("record %d follows record %d", rec.Seq, prev.Seq)
	}
	if err := rec.Check(); err != nil {
		return false, err
	}
	switch {
	case prev.ID == "" && first && !rec.Full:
		fault = fmt.Errorf("its first record, %d, is not a full one", rec.Seq)
	case prev.ID != "" && rec.Seq != prev.Seq+1:
		fault = fmt.Errorf("record %d follows record %d", rec.Seq, prev.Seq)
	case prev.ID != "" && rec.Prev != prev.ID:
		fault = fmt.Errorf("record %d names %q as the one before it, which is %q", rec.Seq, rec.Prev, prev.ID)
	}
	return true, fault
}

// String returns the number, the kind, the length and the key of r.
func (r Record) String() string {
	kind := "patch"
	if r.Full {
		kind = "full"
	}
	return fmt.Sprintf("record %d of %q (%s, %s bytes)", r.Seq, abbreviate(r.Key), kind, grouped(len(r.Data)))
}

// String returns the key, the title and the sizes of the conversation.
func (h LogInfo) String() string {
	return fmt.Sprintf("%q %q: record %d, %s, %s tokens", abbreviate(h.Key), abbreviate(h.Title), h.Seq, counted(h.Entries, "entry", "entries"), grouped(h.Tokens))
}

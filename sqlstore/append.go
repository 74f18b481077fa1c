package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"

	"github.com/seed-c1b73e60/convo"
)

// Append implements [convo.Store].
func (s *Store) Append(ctx context.Context, r convo.Record) error {
	err := r.Check()
	if err == nil {
		err = s.check(ctx, r.Key)
	}
	var w *row
	if err == nil {
		w, err = newRow(&r)
	}
	switch {
	case err != nil:
	case s.dialect == SQLite:
		err = s.share(ctx, w)
	default:
		err = s.run(ctx, func(q querier) error { return s.append(ctx, q, w) })
	}
	return wrapped(ctx, "append to", r.Key, err)
}

// A row is a record in the form of the database.
type row struct {
	record *convo.Record
	ckey   []byte
	seq    int64
	full   int64

	created, updated  int64
	title, head, data []byte

	crc, logCRC, firstCRC int64
}

func newRow(r *convo.Record) (*row, error) {
	if r.Seq > math.MaxInt64 {
		return nil, &convo.ValueError{Name: "Record.Seq", Value: r.Seq, Want: "less than 1 << 63"}
	}
	w := &row{record: r, ckey: columnOf(r.Key), seq: int64(r.Seq), title: []byte(r.Title), data: r.Data}
	if r.Full {
		w.full = 1
	}
	if w.data == nil {
		w.data = []byte{} // not NULL
	}
	var err error
	if w.created, err = nanoOf(r.Created); err != nil {
		return nil, err
	}
	if w.updated, err = nanoOf(r.Updated); err != nil {
		return nil, err
	}
	h := headJSON{Title: w.title, Created: w.created, Updated: w.updated, Entries: r.Entries, Tokens: r.Tokens}
	if len(r.Key) > maxColumn {
		h.Key = []byte(r.Key)
	}
	w.head, err = json.Marshal(h)
	w.crc = crcOfRecord(w.ckey, r, w.head, w.data)
	w.logCRC = crcOfLog(&logRow{
		ckey: w.ckey, newest: r.ID, seq: w.seq, created: w.created, updated: w.updated,
		entries: int64(r.Entries), tokens: int64(r.Tokens), title: w.title,
	})
	w.firstCRC = crcOfFirst(w.ckey, w.seq)
	return w, err
}

// The statements of an Append. The first changes the row of the log, if the record
// follows the newest one, and the second adds the record. No new log begins if records
// are left of a log whose row is missing.
const (
	beginLog = `INSERT INTO convo_logs (ckey, newest, seq, created, updated, entries, tokens, title, crc, first_seq, first_crc)
		SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $3, $10
		WHERE NOT EXISTS (SELECT 1 FROM convo_records WHERE ckey = $1) ON CONFLICT (ckey) DO NOTHING`
	moveLog = `UPDATE convo_logs SET newest = $2, seq = $3, created = $4, updated = $5, entries = $6, tokens = $7, title = $8, crc = $9
		WHERE ckey = $1 AND newest = $10 AND seq = $3 - 1`
	addRecord = `INSERT INTO convo_records (ckey, seq, id, prev, is_full, format, upto, head, data, crc)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`

	// Both statements in one, for PostgreSQL.
	beginBoth = `WITH log AS (INSERT INTO convo_logs (ckey, newest, seq, created, updated, entries, tokens, title, crc, first_seq, first_crc)
		SELECT $1::bytea, $2::text, $3::bigint, $4::bigint, $5::bigint, $6::bigint, $7::bigint, $8::bytea, $9::bigint, $3::bigint, $17::bigint
		WHERE NOT EXISTS (SELECT 1 FROM convo_records WHERE ckey = $1::bytea) ON CONFLICT (ckey) DO NOTHING RETURNING ckey)` + addBoth
	moveBoth = `WITH log AS (UPDATE convo_logs SET newest = $2::text, seq = $3::bigint,
		created = $4, updated = $5, entries = $6, tokens = $7, title = $8, crc = $9
		WHERE ckey = $1 AND newest = $10::text AND seq = $3::bigint - 1 RETURNING ckey)` + addBoth
	addBoth = ` INSERT INTO convo_records (ckey, seq, id, prev, is_full, format, upto, head, data, crc)
		SELECT ckey, $3::bigint, $2::text, $10::text, $11::bigint, $12::bigint, $13::bigint, $14::bytea, $15::bytea, $16::bigint FROM log`
)

// logArgs returns the first nine arguments, which beginLog and moveLog have in common.
func (w *row) logArgs() []any {
	r := w.record
	return []any{w.ckey, r.ID, w.seq, w.created, w.updated, int64(r.Entries), int64(r.Tokens), w.title, w.logCRC}
}

// append adds a record in one statement, for PostgreSQL.
func (s *Store) append(ctx context.Context, q querier, w *row) error {
	query := moveBoth
	args := append(w.logArgs(), w.record.Prev, w.full, int64(w.record.Format), int64(w.record.Upto), w.head, w.data, w.crc)
	if w.record.Prev == "" {
		query, args = beginBoth, append(args, w.firstCRC)
	}
	const most = 10
	for tries := 1; ; tries++ {
		done, err := q.ExecContext(ctx, query, args...)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 1 {
			return err
		}
		err = s.judge(ctx, q, w)
		conflict, ok := errors.AsType[*convo.ConflictError](err)
		if !ok || conflict.ID != "" || w.record.Prev != "" || tries == most {
			return err
		}
		// The conflicting log has been deleted since.
	}
}

// judge returns the reason why a record could not be added, or nil if it is already the
// newest record.
func (s *Store) judge(ctx context.Context, q querier, w *row) error {
	r := w.record
	l, err := s.logOf(ctx, q, r.Key)
	switch {
	case err != nil:
		return err
	case l == nil:
		return &convo.ConflictError{Key: r.Key, Want: r.Seq}
	case l.newest == r.ID:
		return nil
	case l.newest == r.Prev && l.seq+1 != w.seq:
		return &convo.ValueError{Name: "Record.Seq", Value: r.Seq, Want: fmt.Sprintf("%d, one more than that of the record before", l.seq+1)}
	}
	return &convo.ConflictError{Key: r.Key, Have: uint64(l.seq), Want: r.Seq, ID: l.newest}
}

// A waiter is an Append to SQLite that waits for its transaction.
type waiter struct {
	ctx  context.Context
	row  *row
	done chan error // with a buffer of one

	batch *batch // the batch that contains it; nil if there is none yet
}

// A batch is a list of Appends that share a transaction.
type batch struct {
	list   []*waiter
	left   int // number of Appends that still wait
	cancel context.CancelFunc
}

// The limits of a batch. Larger batches would save little.
const (
	maxBatch = 64
	maxBytes = 16 << 20 // of Data
)

// share adds a record in a transaction that it may share with others.
func (s *Store) share(ctx context.Context, r *row) error {
	w := &waiter{ctx: ctx, row: r, done: make(chan error, 1)}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	if !s.writing {
		s.writing = true
		go s.write()
	}
	s.mu.Unlock()
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.batch == nil {
		s.waiting = slices.DeleteFunc(s.waiting, func(o *waiter) bool { return o == w })
	} else if w.batch.left--; w.batch.left == 0 {
		w.batch.cancel()
	}
	return ctx.Err()
}

// write writes batches until no Append waits.
func (s *Store) write() {
	for {
		ctx, b := s.take()
		if b == nil {
			return
		}
		for i, err := range s.writeBatch(ctx, b.list) {
			b.list[i].done <- err
		}
		b.cancel()
	}
}

// take returns the next batch, and a ctx that ends when no Append waits for the batch.
func (s *Store) take() (context.Context, *batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, size := 0, 0
	for n < min(len(s.waiting), maxBatch) && (n == 0 || size+len(s.waiting[n].row.data) <= maxBytes) {
		size += len(s.waiting[n].row.data)
		n++
	}
	if n == 0 {
		s.writing = false
		return nil, nil
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.waiting[0].ctx))
	b := &batch{list: s.waiting[:n:n], left: n, cancel: cancel}
	s.waiting = slices.Clone(s.waiting[n:])
	for _, w := range b.list {
		w.batch = b
	}
	return ctx, b
}

// writeBatch writes a batch and returns the error of each Append. If a statement fails,
// each Append is retried in its own transaction, so that it does not affect the others.
func (s *Store) writeBatch(ctx context.Context, list []*waiter) []error {
	errs := make([]error, len(list))
	ours, err := s.writeTx(ctx, list, errs)
	if err == nil {
		return errs
	}
	for i := range list {
		errs[i] = err
		if ours && len(list) > 1 {
			if _, err := s.writeTx(ctx, list[i:i+1], errs[i:i+1]); err != nil {
				errs[i] = err
			}
		}
	}
	return errs
}

// writeTx runs a transaction. If it succeeds, writeTx sets the error of each Append. If it
// fails, ours reports whether one of the records may be the cause.
func (s *Store) writeTx(ctx context.Context, list []*waiter, errs []error) (ours bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &convo.PanicError{In: "the driver of the database", Value: v, Stack: string(debug.Stack())}
		}
	}()
	tx, err := s.begin(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }()
	wrote := false
	for i, w := range list {
		added, err := s.put(ctx, tx, w.row)
		if err != nil {
			return true, err
		}
		wrote = wrote || added
		if errs[i] = nil; !added {
			errs[i] = s.judge(ctx, tx, w.row)
		}
	}
	if !wrote {
		return false, nil
	}
	return false, tx.Commit()
}

// put adds a record in a transaction if it follows the newest record.
func (s *Store) put(ctx context.Context, tx *sql.Tx, w *row) (added bool, err error) {
	query, args := moveLog, append(w.logArgs(), w.record.Prev)
	if w.record.Prev == "" {
		query, args = beginLog, append(w.logArgs(), w.firstCRC)
	}
	done, err := tx.ExecContext(ctx, s.query(query), args...)
	if err != nil {
		return false, err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return false, err
	}
	r := w.record
	_, err = tx.ExecContext(ctx, s.query(addRecord), w.ckey, w.seq, r.ID, r.Prev, w.full, int64(r.Format), int64(r.Upto), w.head, w.data, w.crc)
	return err == nil, err
}

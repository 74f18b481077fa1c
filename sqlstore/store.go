package sqlstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/seed-c1b73e60/convo"
)

// A Store is a [convo.Store] and a [convo.Pruner] in a SQL database. Make one with
// [New]. It may be used by several goroutines at once, and any number of processes
// may use one database.
type Store struct {
	db      *sql.DB
	dialect Dialect

	mu      sync.Mutex // protects the following; for SQLite
	waiting []*waiter  // Appends that no transaction has taken yet
	writing bool       // a goroutine writes them
}

var _ convo.Pruner = (*Store)(nil)

// wrapped returns err as the error of a method, unless it is one of convo's.
func wrapped(verb, key string, err error) error {
	if err == nil || strings.HasPrefix(err.Error(), "convo: ") {
		return err
	}
	if key == "" {
		return fmt.Errorf("convo: %s: %w", verb, err)
	}
	return fmt.Errorf("convo: %s the log of %.40q: %w", verb, key, err)
}

// check is called first by all methods.
func (s *Store) check(ctx context.Context, key string) error {
	if s == nil || s.db == nil {
		return &convo.ValueError{Name: "Store", Value: "", Want: "one that New has made"}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return convo.CheckKey(key)
}

// query returns a query in the form that the database takes.
func (s *Store) query(q string) string {
	if s.dialect == SQLite {
		return strings.ReplaceAll(q, "$", "?")
	}
	return q
}

// maxColumn is how long a key may be to stand in ckey as it is. PostgreSQL has no
// index for rows of more than 2,704 bytes.
const maxColumn = 2000

// columnOf returns what stands in ckey for a key. What it returns for a longer key is
// longer than any that stands for itself.
func columnOf(key string) []byte {
	if len(key) <= maxColumn {
		return []byte(key)
	}
	sum := sha256.Sum256([]byte(key))
	return append([]byte(key[:maxColumn]), sum[:]...)
}

// A headJSON is what stands in the column head.
type headJSON struct {
	Key     []byte `json:"key,omitempty"` // if it does not stand in ckey
	Title   []byte `json:"title,omitempty"`
	Created int64  `json:"created"`
	Updated int64  `json:"updated"`
	Entries int    `json:"entries"`
	Tokens  int    `json:"tokens"`
}

// noTime stands for the zero time. It is not in the range that timeOf takes.
const noTime = math.MinInt64

// nanoOf returns a time as it is stored.
func nanoOf(t time.Time) (int64, error) {
	if t.IsZero() {
		return noTime, nil
	}
	if y := t.UTC().Year(); y < 1678 || y > 2261 {
		return 0, &convo.ValueError{Name: "time of a Record", Value: t, Want: "one in the years 1678 to 2261, or zero"}
	}
	return t.UnixNano(), nil
}

func timeOf(n int64) time.Time {
	if n == noTime {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// A querier is a pool or a transaction.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// run calls f with the pool. Where a PostgreSQL database has a stricter isolation than
// read committed as its default, a statement can fail because of what others commit
// meanwhile. Then nothing was written, and run calls f once more, in a transaction that
// is read committed, where that does not happen.
func (s *Store) run(ctx context.Context, f func(querier) error) error {
	err := f(s.db)
	if !isSerialization(err) {
		return err
	}
	tx, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// isSerialization reports whether an error is a serialization_failure of PostgreSQL.
// Its drivers have errors with a method SQLState.
func isSerialization(err error) bool {
	state, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err)
	return ok && state.SQLState() == "40001"
}

// Records implements [convo.Store], with one exception: it ends at the first damage.
// What is after it can be read from its Seq on.
func (s *Store) Records(ctx context.Context, key string, from uint64) iter.Seq2[convo.Record, error] {
	return func(yield func(convo.Record, error) bool) {
		if err := s.read(ctx, key, from, yield); err != nil && err != errLeft {
			yield(convo.Record{}, wrapped("read", key, err))
		}
	}
}

// errLeft is the error of a loop whose body has left it.
var errLeft = errors.New("left")

// read yields records in pages, and holds no connection while it yields. It ends with
// the record that was the newest one when it began.
func (s *Store) read(ctx context.Context, key string, from uint64, yield func(convo.Record, error) bool) error {
	if err := s.check(ctx, key); err != nil {
		return err
	}
	if from > math.MaxInt64 {
		return nil
	}
	page, err := s.firstPage(ctx, key, int64(from))
	if err != nil || len(page) == 0 {
		return err
	}
	begin := page[0] // with what the log said of itself when the loop began
	begin.head, begin.Data = nil, nil
	ckey := columnOf(key)
	var prev *convo.Record
	for {
		for i := range page {
			r := &page[i]
			fault := r.fault(ckey, prev)
			if fault == nil && prev == nil && from == 0 && !r.Full {
				fault = fmt.Errorf("the first record, %d, is not a full one", r.Seq)
			}
			switch {
			case fault != nil && i == 0 && prev != nil:
				return s.lost(ctx, key, prev, fault)
			case fault != nil && prev == nil:
				return s.damageAt(ctx, key, r, fault)
			case fault != nil:
				return s.damage(ctx, s.db, key, prev, fault)
			}
			yielded := r.Record
			r.Data = nil
			prev = &r.Record
			if !yield(yielded, nil) {
				return errLeft
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if int64(r.Seq) == begin.last {
				return s.checkEnds(ctx, key, from, &begin, prev)
			}
		}
		if err := s.check(ctx, key); err != nil {
			return err
		}
		if page, err = s.page(ctx, key, int64(prev.Seq)+1); err != nil {
			return err
		}
		if len(page) == 0 {
			return s.lost(ctx, key, prev, fmt.Errorf("record %d is missing", prev.Seq+1))
		}
	}
}

// firstPage returns the first page of a loop. It is empty if there is nothing to yield.
func (s *Store) firstPage(ctx context.Context, key string, from int64) ([]recordRow, error) {
	for was := ""; ; {
		page, err := s.page(ctx, key, from)
		if err != nil || len(page) > 0 {
			return page, err
		}
		var l *logRow
		err = s.run(ctx, func(q querier) (err error) {
			l, err = s.logOf(ctx, q, key)
			return err
		})
		switch {
		case err != nil || l == nil || from > l.seq:
			return nil, err
		case l.newest == was: // it was there before the page was read
			return nil, s.damage(ctx, s.db, key, nil, fmt.Errorf("it has none of the records from %d to %d, or no full one", max(from, l.firstSeq), l.seq))
		}
		was = l.newest
	}
}

// damageAt returns the error for a fault in the first row that was read.
func (s *Store) damageAt(ctx context.Context, key string, r *recordRow, fault error) error {
	e := &convo.DamageError{Key: key, Offset: -1, Err: fault}
	var err error
	if e.Seq, err = s.goodBefore(ctx, s.db, key, r.Seq); err != nil {
		return err
	}
	return e
}

// lost returns the error for records after prev that are not there, or not as they
// should be, in a page after that of prev. If prev is gone as well, others have removed
// them.
func (s *Store) lost(ctx context.Context, key string, prev *convo.Record, fault error) error {
	var id string
	err := s.run(ctx, func(q querier) error {
		return q.QueryRowContext(ctx, s.query(`SELECT id FROM convo_records WHERE ckey = $1 AND seq = $2`), columnOf(key), int64(prev.Seq)).Scan(&id)
	})
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && id != prev.ID:
		return fmt.Errorf("record %d is gone; the log was pruned or deleted while it was read; read it again", prev.Seq+1)
	case err != nil:
		return err
	}
	return s.damage(ctx, s.db, key, prev, fault)
}

// checkEnds returns an error if the records that were yielded do not begin and end as
// the row of the log says.
func (s *Store) checkEnds(ctx context.Context, key string, from uint64, begin *recordRow, last *convo.Record) error {
	var fault error
	switch l := &begin.log; {
	case !l.newest.Valid:
		fault = errNoLog
	case l.newest.String != last.ID || l.seq.Int64 != int64(last.Seq):
		fault = fmt.Errorf("its newest record is %d, %q, and its row in convo_logs says %d, %q", last.Seq, last.ID, l.seq.Int64, l.newest.String)
	case l.firstCRC.Int64 != crcOfFirst(columnOf(key), l.first.Int64):
		fault = errors.New("the checksum of first_seq in convo_logs is wrong")
	case from > 0 && int64(begin.Seq) > max(int64(from), l.first.Int64):
		fault = fmt.Errorf("records before record %d are missing", begin.Seq)
	default:
		return nil
	}
	return s.damage(ctx, s.db, key, last, fault)
}

// A recordRow is a row of convo_records.
type recordRow struct {
	convo.Record
	full int64
	head []byte
	crc  int64
	bad  error // the row cannot be read; nothing else is set
	last int64 // the Seq of the last record
	log  struct {
		newest               sql.NullString
		seq, first, firstCRC sql.NullInt64
	}
}

// A page of records ends when it has this much, but not before its first record.
const (
	pageRecords = 1000
	pageBytes   = 1 << 20
)

// page calls recordsFrom with the pool.
func (s *Store) page(ctx context.Context, key string, from int64) (page []recordRow, err error) {
	err = s.run(ctx, func(q querier) (err error) {
		page, err = s.recordsFrom(ctx, q, key, from, pageRecords)
		return err
	})
	return page, err
}

// recordsFrom returns the page that begins with a Seq, or, if from is 0, with the
// newest full record.
func (s *Store) recordsFrom(ctx context.Context, q querier, key string, from int64, most int) (page []recordRow, err error) {
	begin, args := `$2`, []any{columnOf(key), from}
	if from == 0 {
		begin, args = `(SELECT max(seq) FROM convo_records WHERE ckey = $1 AND is_full = 1)`, args[:1]
	}
	query := s.query(fmt.Sprintf(`SELECT seq, id, prev, is_full, format, upto, head, data, crc,
		(SELECT max(seq) FROM convo_records WHERE ckey = $1) AS last_seq,
		(SELECT newest FROM convo_logs WHERE ckey = $1) AS log_newest, (SELECT seq FROM convo_logs WHERE ckey = $1) AS log_seq,
		(SELECT first_seq FROM convo_logs WHERE ckey = $1) AS log_first, (SELECT first_crc FROM convo_logs WHERE ckey = $1) AS log_first_crc
		FROM convo_records WHERE ckey = $1 AND seq >= %[1]s AND seq <= (SELECT max(seq) FROM (
			SELECT seq, sum(size) OVER (ORDER BY seq) - size AS ahead FROM (
				SELECT seq, length(head) + length(data) AS size FROM convo_records
				WHERE ckey = $1 AND seq >= %[1]s ORDER BY seq LIMIT %[2]d) AS sizes) AS sums
			WHERE ahead < %[3]d) ORDER BY seq`, begin, most, pageBytes))
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		r := recordRow{Record: convo.Record{Head: convo.Head{Key: key}}}
		var seq, format, upto int64
		err := rows.Scan(&seq, &r.ID, &r.Prev, &r.full, &format, &upto, &r.head, &r.Data, &r.crc,
			&r.last, &r.log.newest, &r.log.seq, &r.log.first, &r.log.firstCRC)
		r.Seq, r.Format, r.Upto, r.Full = uint64(seq), int(format), convo.ID(upto), r.full == 1
		if err != nil {
			return append(page, recordRow{Record: convo.Record{Head: convo.Head{Key: key, Seq: uint64(seq)}}, bad: err}), nil
		}
		page = append(page, r)
	}
	return page, rows.Err()
}

// setHead sets h by what stands in the column head. The Key that is set must be the
// one inside.
func setHead(h *convo.Head, data []byte) error {
	var j headJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return fmt.Errorf("the head of record %d: %w", h.Seq, err)
	}
	if len(h.Key) > maxColumn && h.Key != string(j.Key) {
		return fmt.Errorf("record %d is of key %.60q", h.Seq, j.Key)
	}
	h.Title, h.Created, h.Updated, h.Entries, h.Tokens = string(j.Title), timeOf(j.Created), timeOf(j.Updated), j.Entries, j.Tokens
	return nil
}

// pageSize is how many heads List reads at once.
const pageSize = 100

// List implements [convo.Store]. For a log whose row is damaged there is a
// [*convo.DamageError] in the place of its head, and the loop may go on.
// The order comes from an index of the database, which no checksum covers: a damaged one
// may hide a log from List without an error. PRAGMA integrity_check finds that in SQLite,
// and REINDEX mends it.
func (s *Store) List(ctx context.Context, opts convo.ListOptions) iter.Seq2[convo.Head, error] {
	return func(yield func(convo.Head, error) bool) {
		updated, after := boundsOf(&opts)
		for {
			page, err := s.heads(ctx, opts.Prefix, updated, after)
			if err != nil {
				yield(convo.Head{}, wrapped("list logs", "", err))
				return
			}
			for _, row := range page {
				h, err := s.head(ctx, opts.Prefix, &row)
				if err == errLeft {
					continue
				}
				_, damaged := errors.AsType[*convo.DamageError](err)
				if !yield(h, wrapped("list logs", "", err)) || err != nil && !damaged {
					return
				}
			}
			if len(page) < pageSize {
				return
			}
			last := &page[len(page)-1]
			updated, after = last.updated, last.ckey
		}
	}
}

// boundsOf returns where a list begins: after the ckey that was updated at a time.
func boundsOf(opts *convo.ListOptions) (updated int64, after []byte) {
	updated, after = math.MaxInt64, []byte{}
	if opts.After.Key != "" {
		updated, after = boundOf(opts.After.Updated), columnOf(opts.After.Key)
	}
	if opts.UpdatedBefore.IsZero() {
		return updated, after
	}
	if before := max(boundOf(opts.UpdatedBefore), math.MinInt64+1) - 1; before < updated {
		updated, after = before, []byte{}
	}
	return updated, after
}

// boundOf returns a time as it would be stored, or the bound that is next to it.
func boundOf(t time.Time) int64 {
	n, err := nanoOf(t)
	switch {
	case err == nil:
		return n
	case t.Year() < 1970:
		return math.MinInt64 + 1
	}
	return math.MaxInt64
}

// heads returns the rows after one in the order of List.
func (s *Store) heads(ctx context.Context, prefix string, updated int64, after []byte) (page []logRow, err error) {
	if err := s.check(ctx, "any"); err != nil {
		return nil, err
	}
	low := []byte(prefix[:min(len(prefix), maxColumn)])
	args := []any{low, updated, after}
	query := `SELECT ` + logColumns + ` FROM convo_logs
		WHERE ckey >= $1 AND updated <= $2 AND (updated < $2 OR ckey > $3)`
	if high := bytes.TrimRight(low, "\xff"); len(high) > 0 {
		high = bytes.Clone(high)
		high[len(high)-1]++
		query += ` AND ckey < $4`
		args = append(args, high)
	}
	query = s.query(fmt.Sprintf("%s ORDER BY updated DESC, ckey LIMIT %d", query, pageSize))
	err = s.run(ctx, func(q querier) error {
		page = nil
		rows, err := q.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var l logRow
			if err := l.scan(rows.Scan); err != nil {
				return err
			}
			if n := len(page); n > 0 && (l.updated > page[n-1].updated || l.updated == page[n-1].updated && bytes.Compare(l.ckey, page[n-1].ckey) <= 0) {
				return errors.New("the index convo_logs_updated is damaged; make it anew by REINDEX")
			}
			page = append(page, l)
		}
		return rows.Err()
	})
	return page, err
}

// head returns the head that a row stands for, or errLeft if it is not to be listed.
// A key that does not stand in ckey is read from the newest record.
func (s *Store) head(ctx context.Context, prefix string, l *logRow) (convo.Head, error) {
	if ctx.Err() != nil {
		return convo.Head{}, context.Cause(ctx)
	}
	h := convo.Head{
		Key: string(l.ckey), Title: string(l.title), Seq: uint64(l.seq), Created: timeOf(l.created), Updated: timeOf(l.updated),
		Entries: int(l.entries), Tokens: int(l.tokens),
	}
	damaged := func(fault error) (convo.Head, error) {
		return convo.Head{}, &convo.DamageError{Key: h.Key, Offset: -1, Err: fault}
	}
	if fault := l.fault(); fault != nil {
		return damaged(fault)
	}
	if len(l.ckey) > maxColumn {
		var data []byte
		err := s.run(ctx, func(q querier) error {
			return q.QueryRowContext(ctx, s.query(`SELECT head FROM convo_records WHERE ckey = $1 AND seq = $2`), l.ckey, l.seq).Scan(&data)
		})
		if errors.Is(err, sql.ErrNoRows) {
			return h, errLeft // it was deleted since
		}
		if err != nil {
			return convo.Head{}, err
		}
		var j headJSON
		if err := json.Unmarshal(data, &j); err != nil || !bytes.Equal(columnOf(string(j.Key)), l.ckey) {
			return damaged(fmt.Errorf("record %d does not hold its key", l.seq))
		}
		h.Key = string(j.Key)
	}
	if !strings.HasPrefix(h.Key, prefix) {
		return h, errLeft
	}
	return h, nil
}

// Delete implements [convo.Store].
func (s *Store) Delete(ctx context.Context, key string) error {
	err := s.check(ctx, key)
	if err == nil {
		err = s.remove(ctx, columnOf(key))
	}
	return wrapped("delete", key, err)
}

func (s *Store) remove(ctx context.Context, ckey []byte) error {
	// The row of convo_logs first: it is what an Append waits for. In PostgreSQL the
	// second statement then sees what an Append has written that Delete waited for.
	tx, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for _, table := range []string{"convo_logs", "convo_records"} {
		if _, err := tx.ExecContext(ctx, s.query(`DELETE FROM `+table+` WHERE ckey = $1`), ckey); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// begin begins a transaction in which each statement sees what was committed before.
func (s *Store) begin(ctx context.Context) (*sql.Tx, error) {
	if s.dialect == PostgreSQL {
		return s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	}
	return s.db.BeginTx(ctx, nil)
}

// Prune implements [convo.Pruner]. It reads the full record that is to be the first one,
// and removes nothing if that is damaged.
func (s *Store) Prune(ctx context.Context, key string, before uint64) error {
	err := s.check(ctx, key)
	if err == nil {
		err = s.prune(ctx, key, before)
	}
	return wrapped("prune", key, err)
}

func (s *Store) prune(ctx context.Context, key string, before uint64) error {
	none := &convo.ValueError{Name: "before", Value: before, Want: "the Seq of a full record"}
	if before == 0 || before > math.MaxInt64 {
		return none
	}
	ckey, first := columnOf(key), int64(before)
	tx, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	// This takes the row, for which an Append waits.
	if _, err := tx.ExecContext(ctx, s.query(`UPDATE convo_logs SET seq = seq WHERE ckey = $1`), ckey); err != nil {
		return err
	}
	l, err := s.logOf(ctx, tx, key)
	switch {
	case err != nil:
		return err
	case l == nil, first <= l.firstSeq:
		return nil
	case first > l.seq:
		return none
	}
	page, err := s.recordsFrom(ctx, tx, key, first, 1)
	if err != nil {
		return err
	}
	var fault error
	if len(page) == 0 || page[0].bad == nil && page[0].Seq != before {
		fault = fmt.Errorf("record %d is missing", before)
	} else {
		fault = page[0].fault(ckey, nil)
	}
	switch {
	case fault != nil:
		return s.damage(ctx, tx, key, nil, fault)
	case !page[0].Full:
		return none
	}
	const query = `UPDATE convo_logs SET first_seq = $2, first_crc = $3 WHERE ckey = $1`
	if _, err := tx.ExecContext(ctx, s.query(query), ckey, first, crcOfFirst(ckey, first)); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, s.query(`DELETE FROM convo_records WHERE ckey = $1 AND seq < $2`), ckey, first); err != nil {
		return err
	}
	return tx.Commit()
}

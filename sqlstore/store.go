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
	"github.com/seed-c1b73e60/convo/internal/stores"
)

// A Store is a [convo.Store] and a [convo.Pruner] in a SQL database. Use [New] to create
// a Store. It is safe for concurrent use, and any number of processes may use the same
// database.
type Store struct {
	db      *sql.DB
	dialect Dialect

	mu      sync.Mutex // protects the following; for SQLite
	waiting []*waiter  // Appends that are not in a batch yet
	writing bool       // whether a goroutine runs write
}

var _ convo.Pruner = (*Store)(nil)

// wrapped returns err as the error of a method, unless it is an error of package convo. If
// err is that of ctx, the result also matches the cause.
func wrapped(ctx context.Context, verb, key string, err error) error {
	switch end := ctx.Err(); {
	case err == nil, end == nil:
	case err == end:
		err = stores.Ended(ctx)
	case errors.Is(err, end) && !errors.Is(err, context.Cause(ctx)):
		err = fmt.Errorf("%w (%w)", err, context.Cause(ctx))
	}
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
		return ctx.Err()
	}
	return convo.CheckKey(key)
}

// query returns a query in the form that the database accepts.
func (s *Store) query(q string) string {
	if s.dialect == SQLite {
		return strings.ReplaceAll(q, "$", "?")
	}
	return q
}

// maxColumn is the maximum length of a key that ckey contains unchanged. PostgreSQL cannot
// index rows of more than 2,704 bytes.
const maxColumn = 2000

// columnOf returns the value of ckey for a key. For a key that is longer than maxColumn,
// the value is longer than maxColumn.
func columnOf(key string) []byte {
	if len(key) <= maxColumn {
		return []byte(key)
	}
	sum := sha256.Sum256([]byte(key))
	return append([]byte(key[:maxColumn]), sum[:]...)
}

// A headJSON is the content of the column head.
type headJSON struct {
	Key     []byte `json:"key,omitempty"` // if ckey does not contain the whole key
	Title   []byte `json:"title,omitempty"`
	Created int64  `json:"created"`
	Updated int64  `json:"updated"`
	Entries int    `json:"entries"`
	Tokens  int    `json:"tokens"`
}

// noTime represents the zero time. It is outside the range of timeOf.
const noTime = math.MinInt64

// nanoOf returns the stored form of a time.
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

// run calls f with the pool. If the default isolation of a PostgreSQL database is stricter
// than read committed, a statement can fail because of a concurrent commit. In this case
// nothing was written, and run calls f again in a read committed transaction, which does
// not fail this way.
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

// Records implements [convo.Store].
func (s *Store) Records(ctx context.Context, key string, from uint64) iter.Seq2[convo.Record, error] {
	return func(yield func(convo.Record, error) bool) {
		l := &loop{s: s, key: key, from: from, yield: yield}
		if err := l.run(ctx); err != nil && err != errLeft {
			yield(convo.Record{}, wrapped(ctx, "read", key, err))
		}
	}
}

// errLeft is returned when the body of a loop has left it.
var errLeft = errors.New("left")

// A loop reads records in pages, and holds no connection while it yields. It ends with
// the record that was the newest one when the loop began.
type loop struct {
	s     *Store
	key   string
	from  uint64
	yield func(convo.Record, error) bool

	begin   recordRow     // the first row that can be read, with the row of the log at that time
	prev    *convo.Record // the previous record, without an ID if it is damaged; nil if there is none
	whole   *convo.Record // the last record that was yielded; nil if there is none
	damaged bool          // the loop has yielded an error
}

func (l *loop) run(ctx context.Context) error {
	if err := l.s.check(ctx, l.key); err != nil {
		return err
	}
	if l.from > math.MaxInt64 {
		return nil
	}
	page, err := l.s.firstPage(ctx, l.key, int64(l.from))
	for err == nil && len(page) > 0 {
		for i := range page {
			if end, err := l.row(ctx, &page[i], i == 0); end || err != nil {
				return err
			}
		}
		if err := l.s.check(ctx, l.key); err != nil {
			return err
		}
		page, err = l.s.page(ctx, l.key, int64(l.prev.Seq)+1)
	}
	if err != nil || l.prev == nil || l.begin.last == 0 {
		return err
	}
	if err := l.isThere(ctx); err != nil {
		return err
	}
	return l.tell(ctx, math.MaxInt64, fmt.Errorf("record %d is missing", l.prev.Seq+1))
}

// row yields the next record, or an error for a fault in its row or before it. It reports
// whether the loop ends with this row. first is true for the first row of a page.
func (l *loop) row(ctx context.Context, r *recordRow, first bool) (end bool, err error) {
	ckey := columnOf(l.key)
	fault := r.fault(ckey, l.prev)
	if l.begin.last == 0 && r.bad == nil {
		l.begin = *r
		l.begin.head, l.begin.Data = nil, nil
	}
	switch {
	case fault == nil && l.prev == nil && l.from == 0 && !r.Full:
		fault = fmt.Errorf("the first record, %d, is not a full one", r.Seq)
	case fault == nil && l.prev == nil && l.from == 0 && r.rest != r.last-int64(r.Seq)+1: // a missing record may be the newest full one
		fault = fmt.Errorf("%d records after record %d are missing", r.last-int64(r.Seq)+1-r.rest, r.Seq)
	case fault == nil && l.prev == nil && l.from > 0 && l.misses(r):
		fault = fmt.Errorf("records before record %d are missing", r.Seq)
	}
	if fault != nil {
		if first && l.whole != nil {
			if err := l.isThere(ctx); err != nil {
				return true, err
			}
		}
		if err := l.tell(ctx, r.Seq, fault); err != nil {
			return true, err
		}
		if r.Seq == 0 || l.prev != nil && r.Seq <= l.prev.Seq {
			return true, nil // its Seq cannot be read
		}
	}
	if r.bad != nil || fault != nil && r.fault(ckey, nil) != nil {
		l.prev = &convo.Record{LogInfo: convo.LogInfo{Seq: r.Seq}}
		return int64(r.Seq) == l.begin.last, nil
	}
	yielded := r.Record
	r.Data = nil
	l.prev, l.whole = &r.Record, &r.Record
	if !l.yield(yielded, nil) {
		return true, errLeft
	}
	if ctx.Err() != nil {
		return true, ctx.Err()
	}
	if int64(r.Seq) != l.begin.last {
		return false, nil
	}
	if fault := l.endFault(); fault != nil {
		return true, l.tell(ctx, r.Seq+1, fault)
	}
	return true, nil
}

// tell yields the error for a fault before the Seq below. The error contains the Seq of the
// newest earlier record that can be loaded. If the loop is from 0, it ends here.
func (l *loop) tell(ctx context.Context, below uint64, fault error) error {
	e := &convo.DamageError{Key: l.key, Offset: -1, Err: fault}
	var err error
	if l.damaged || l.whole == nil {
		e.Seq, err = l.s.goodBefore(ctx, l.s.db, l.key, below)
	} else {
		e.Seq = l.whole.Seq
	}
	if err != nil {
		return err
	}
	l.damaged = true
	if !l.yield(convo.Record{}, wrapped(ctx, "read", l.key, e)) || l.from == 0 {
		return errLeft
	}
	return nil
}

// isThere returns an error if the last record that was yielded has been removed, because
// the records after it may then also have been removed.
func (l *loop) isThere(ctx context.Context) error {
	if l.whole == nil {
		return nil
	}
	var id string
	err := l.s.run(ctx, func(q querier) error {
		return q.QueryRowContext(ctx, l.s.query(`SELECT id FROM convo_records WHERE ckey = $1 AND seq = $2`), columnOf(l.key), int64(l.whole.Seq)).Scan(&id)
	})
	if errors.Is(err, sql.ErrNoRows) || err == nil && id != l.whole.ID {
		return fmt.Errorf("record %d is gone; the log was pruned or deleted while it was read; read it again", l.prev.Seq+1)
	}
	return err
}

// misses reports whether, according to the row of the log, records to be read are missing
// before r, the first row.
func (l *loop) misses(r *recordRow) bool {
	return r.log.first.Valid && r.log.firstCRC.Int64 == crcOfFirst(columnOf(l.key), r.log.first.Int64) &&
		int64(r.Seq) > max(int64(l.from), r.log.first.Int64)
}

// endFault returns an error if the last record that was yielded is not the newest one
// according to the row of the log, or if that row is damaged.
func (l *loop) endFault() error {
	switch log := &l.begin.log; {
	case !log.newest.Valid:
		return errNoLog
	case log.newest.String != l.whole.ID || log.seq.Int64 != int64(l.whole.Seq):
		return fmt.Errorf("its newest record is %d, %q, and its row in convo_logs says %d, %q", l.whole.Seq, l.whole.ID, log.seq.Int64, log.newest.String)
	case log.firstCRC.Int64 != crcOfFirst(columnOf(l.key), log.first.Int64):
		return errors.New("the checksum of first_seq in convo_logs is wrong")
	}
	return nil
}

// firstPage returns the first page of a loop. The page is empty if there is nothing to yield.
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
		case l.newest == was: // the log existed before the page was read
			return nil, s.damage(ctx, s.db, key, fmt.Errorf("it has none of the records from %d to %d, or no full one", max(from, l.firstSeq), l.seq))
		}
		was = l.newest
	}
}

// A recordRow is a row of convo_records.
type recordRow struct {
	convo.Record
	full int64
	head []byte
	crc  int64
	bad  error // why the row cannot be read; then only Key and Seq are set
	last int64 // the Seq of the last record
	rest int64 // the number of records from the newest full record on
	log  struct {
		newest               sql.NullString
		seq, first, firstCRC sql.NullInt64
	}
}

// The limits of a page of records. A page has at least one record.
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

// recordsFrom returns the page that begins with the Seq from, or, if from is 0, with the
// newest full record.
func (s *Store) recordsFrom(ctx context.Context, q querier, key string, from int64, most int) (page []recordRow, err error) {
	begin, rest, args := `$2`, `0`, []any{columnOf(key), from}
	if from == 0 {
		begin, args = `(SELECT max(seq) FROM convo_records WHERE ckey = $1 AND is_full = 1)`, args[:1]
		rest = `(SELECT count(*) FROM convo_records WHERE ckey = $1 AND seq >= ` + begin + `)`
	}
	query := s.query(fmt.Sprintf(`SELECT seq, id, prev, is_full, format, upto, head, data, crc,
		(SELECT max(seq) FROM convo_records WHERE ckey = $1) AS last_seq, %[4]s AS rest,
		(SELECT newest FROM convo_logs WHERE ckey = $1) AS log_newest, (SELECT seq FROM convo_logs WHERE ckey = $1) AS log_seq,
		(SELECT first_seq FROM convo_logs WHERE ckey = $1) AS log_first, (SELECT first_crc FROM convo_logs WHERE ckey = $1) AS log_first_crc
		FROM convo_records WHERE ckey = $1 AND seq >= %[1]s AND seq <= (SELECT max(seq) FROM (
			SELECT seq, sum(size) OVER (ORDER BY seq) - size AS ahead FROM (
				SELECT seq, length(head) + length(data) AS size FROM convo_records
				WHERE ckey = $1 AND seq >= %[1]s ORDER BY seq LIMIT %[2]d) AS sizes) AS sums
			WHERE ahead < %[3]d) ORDER BY seq`, begin, most, pageBytes, rest))
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		r := recordRow{Record: convo.Record{LogInfo: convo.LogInfo{Key: key}}}
		var seq, format, upto int64
		err := rows.Scan(&seq, &r.ID, &r.Prev, &r.full, &format, &upto, &r.head, &r.Data, &r.crc,
			&r.last, &r.rest, &r.log.newest, &r.log.seq, &r.log.first, &r.log.firstCRC)
		r.Seq, r.Format, r.Upto, r.Full = uint64(seq), int(format), convo.ID(upto), r.full == 1
		if err != nil {
			return append(page, recordRow{Record: convo.Record{LogInfo: convo.LogInfo{Key: key, Seq: uint64(seq)}}, bad: err}), nil
		}
		page = append(page, r)
	}
	return page, rows.Err()
}

// setHead sets h from the column head. If h.Key is longer than maxColumn, the column must
// contain the same key; for other keys, its key is ignored.
func setHead(h *convo.LogInfo, data []byte) error {
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

// pageSize is the number of heads that List reads at once.
const pageSize = 100

// List implements [convo.Store]. For a log whose row is damaged, it yields a
// [*convo.DamageError] instead of the LogInfo, and the loop may continue.
//
// The order comes from an index, which has no checksum in SQLite: a damaged index may
// hide logs. A List of all logs therefore counts them, and yields an error at the end if
// the index is damaged; REINDEX repairs it. A List with options does not check the index.
func (s *Store) List(ctx context.Context, opts convo.ListOptions) iter.Seq2[convo.LogInfo, error] {
	return func(yield func(convo.LogInfo, error) bool) {
		updated, after := boundsOf(&opts)
		for n := 0; ; {
			page, err := s.heads(ctx, opts.Prefix, updated, after)
			if err != nil {
				yield(convo.LogInfo{}, wrapped(ctx, "list logs", "", err))
				return
			}
			for _, row := range page {
				h, err := s.head(ctx, opts.Prefix, &row)
				if err == errLeft {
					continue
				}
				_, damaged := errors.AsType[*convo.DamageError](err)
				if !yield(h, wrapped(ctx, "list logs", "", err)) || err != nil && !damaged {
					return
				}
			}
			n += len(page)
			if len(page) < pageSize {
				if opts == (convo.ListOptions{}) && s.dialect == SQLite {
					if err := s.checkIndex(ctx, n); err != nil {
						yield(convo.LogInfo{}, wrapped(ctx, "list logs", "", err))
					}
				}
				return
			}
			last := &page[len(page)-1]
			updated, after = last.updated, last.ckey
		}
	}
}

var errIndex = errors.New("the index convo_logs_updated is damaged; make it anew by REINDEX")

// checkIndex returns an error if a List of all logs found n of them because the index is
// damaged, and not because of writes in the meantime.
func (s *Store) checkIndex(ctx context.Context, n int) error {
	return s.run(ctx, func(q querier) error {
		var all int
		if err := q.QueryRowContext(ctx, `SELECT count(*) FROM convo_logs NOT INDEXED`).Scan(&all); err != nil || all == n {
			return err
		}
		var said string
		if err := q.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&said); err != nil || said == "ok" {
			return err
		}
		return fmt.Errorf("%w: %s", errIndex, said)
	})
}

// boundsOf returns the time and the ckey after which a list begins.
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

// boundOf returns the stored form of a time, or the nearest value if the time is out of
// range.
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

// heads returns the rows after the given bounds, in the order of List.
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
				return errIndex
			}
			page = append(page, l)
		}
		return rows.Err()
	})
	return page, err
}

// head returns the head of a row, or errLeft if it is not to be listed. If ckey does not
// contain the whole key, the key is read from the newest record.
func (s *Store) head(ctx context.Context, prefix string, l *logRow) (convo.LogInfo, error) {
	if ctx.Err() != nil {
		return convo.LogInfo{}, ctx.Err()
	}
	h := convo.LogInfo{
		Key: string(l.ckey), Title: string(l.title), Seq: uint64(l.seq), Created: timeOf(l.created), Updated: timeOf(l.updated),
		Entries: int(l.entries), Tokens: int(l.tokens),
	}
	damaged := func(fault error) (convo.LogInfo, error) {
		return convo.LogInfo{}, &convo.DamageError{Key: h.Key, Offset: -1, Err: fault}
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
			return h, errLeft // the log was deleted since
		}
		if err != nil {
			return convo.LogInfo{}, err
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
	return wrapped(ctx, "delete", key, err)
}

func (s *Store) remove(ctx context.Context, ckey []byte) error {
	// Delete the row of convo_logs first, because an Append waits for it. In PostgreSQL
	// the second statement then sees the record of an Append that Delete waited for.
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

// Prune implements [convo.Pruner]. It reads the full record that will be the first one,
// and removes nothing if that record is damaged.
func (s *Store) Prune(ctx context.Context, key string, before uint64) error {
	err := s.check(ctx, key)
	if err == nil {
		err = s.prune(ctx, key, before)
	}
	return wrapped(ctx, "prune", key, err)
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
	// This locks the row, so that an Append waits.
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
		return s.damage(ctx, tx, key, fault)
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

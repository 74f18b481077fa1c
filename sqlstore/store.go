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

// Records implements [convo.Store].
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
	var last, newest uint64
	var id string // of the last one
	for {
		if err := s.check(ctx, key); err != nil {
			return err
		}
		if from > math.MaxInt64 {
			return nil
		}
		page, err := s.recordsFrom(ctx, key, int64(from))
		switch {
		case id != "" && err == nil && len(page) == 0, id != "" && len(page) > 0 && page[0].Prev != id:
			return fmt.Errorf("record %d is gone; the log was pruned or deleted while it was read; read it again", from)
		case newest == 0 && len(page) > 0:
			newest = page[0].newest
		}
		for i := range page {
			r := page[i].Record
			if err := setHead(&r.Head, page[i].head); err != nil {
				return &convo.DamageError{Key: key, Offset: -1, Seq: r.Seq - 1, Err: err}
			}
			page[i].Data = nil
			if !yield(r, nil) {
				return errLeft
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if last, id = r.Seq, r.ID; last == newest {
				return nil
			}
		}
		if err != nil || len(page) == 0 {
			return err
		}
		from = last + 1
	}
}

// A recordRow is a row of convo_records.
type recordRow struct {
	convo.Record
	head   []byte
	newest uint64 // the Seq of the newest record
}

// A page of records ends when it has this much, but not before its first record.
const (
	pageRecords = 1000
	pageBytes   = 1 << 20
)

// recordsFrom returns the page that begins with a Seq, or, if from is 0, with the
// newest full record. After an error it holds the rows before it.
func (s *Store) recordsFrom(ctx context.Context, key string, from int64) (page []recordRow, err error) {
	begin, args := `$2`, []any{columnOf(key), from}
	if from == 0 {
		begin, args = `(SELECT full_seq FROM convo_logs WHERE ckey = $1)`, args[:1]
	}
	query := s.query(fmt.Sprintf(`SELECT seq, id, prev, is_full, format, upto, head, data,
		(SELECT max(seq) FROM convo_records WHERE ckey = $1)
		FROM convo_records WHERE ckey = $1 AND seq >= %[1]s AND seq <= (SELECT max(seq) FROM (
			SELECT seq, sum(size) OVER (ORDER BY seq) - size AS ahead FROM (
				SELECT seq, length(head) + length(data) AS size FROM convo_records
				WHERE ckey = $1 AND seq >= %[1]s ORDER BY seq LIMIT %[2]d) AS sizes) AS sums
			WHERE ahead < %[3]d) ORDER BY seq`, begin, pageRecords, pageBytes))
	err = s.run(ctx, func(q querier) error {
		page = nil
		rows, err := q.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			r := recordRow{Record: convo.Record{Head: convo.Head{Key: key}}}
			if err := rows.Scan(&r.Seq, &r.ID, &r.Prev, &r.Full, &r.Format, &r.Upto, &r.head, &r.Data, &r.newest); err != nil {
				return err
			}
			page = append(page, r)
		}
		return rows.Err()
	})
	return page, err
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

// List implements [convo.Store].
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[convo.Head, error] {
	return func(yield func(convo.Head, error) bool) {
		updated, behind := int64(math.MaxInt64), []byte{}
		for {
			page, err := s.page(ctx, prefix, updated, behind)
			if err != nil {
				yield(convo.Head{}, wrapped("list logs", "", err))
				return
			}
			for _, row := range page {
				h, err := s.head(ctx, prefix, &row)
				if err == errLeft {
					continue
				}
				if !yield(h, wrapped("list logs", "", err)) || err != nil {
					return
				}
			}
			if len(page) < pageSize {
				return
			}
			last := &page[len(page)-1]
			updated, behind = last.updated, last.ckey
		}
	}
}

// A logRow is a row of convo_logs.
type logRow struct {
	ckey, title      []byte
	seq              uint64
	created, updated int64
	entries, tokens  int
}

// page returns the rows behind one in the order of List.
func (s *Store) page(ctx context.Context, prefix string, updated int64, behind []byte) (page []logRow, err error) {
	if err := s.check(ctx, "any"); err != nil {
		return nil, err
	}
	low := []byte(prefix[:min(len(prefix), maxColumn)])
	args := []any{low, updated, behind}
	query := `SELECT ckey, seq, created, updated, entries, tokens, title FROM convo_logs
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
			var r logRow
			if err := rows.Scan(&r.ckey, &r.seq, &r.created, &r.updated, &r.entries, &r.tokens, &r.title); err != nil {
				return err
			}
			page = append(page, r)
		}
		return rows.Err()
	})
	return page, err
}

// head returns the head that a row stands for, or errLeft if it is not to be listed.
// A key that does not stand in ckey is read from the newest record.
func (s *Store) head(ctx context.Context, prefix string, r *logRow) (convo.Head, error) {
	if ctx.Err() != nil {
		return convo.Head{}, context.Cause(ctx)
	}
	h := convo.Head{
		Key: string(r.ckey), Title: string(r.title), Seq: r.seq, Created: timeOf(r.created), Updated: timeOf(r.updated),
		Entries: r.entries, Tokens: r.tokens,
	}
	if len(r.ckey) > maxColumn {
		var data []byte
		err := s.run(ctx, func(q querier) error {
			return q.QueryRowContext(ctx, s.query(`SELECT head FROM convo_records WHERE ckey = $1 AND seq = $2`), r.ckey, int64(r.seq)).Scan(&data)
		})
		if errors.Is(err, sql.ErrNoRows) {
			return h, errLeft // it was deleted since
		}
		var j headJSON
		if err == nil {
			err = json.Unmarshal(data, &j)
		}
		if err != nil {
			return convo.Head{}, err
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

// Prune implements [convo.Pruner].
func (s *Store) Prune(ctx context.Context, key string, before uint64) error {
	err := s.check(ctx, key)
	if err == nil {
		err = s.run(ctx, func(q querier) error { return s.prune(ctx, q, columnOf(key), before) })
	}
	return wrapped("prune", key, err)
}

func (s *Store) prune(ctx context.Context, q querier, ckey []byte, before uint64) error {
	const full = `SELECT count(*) FROM convo_records WHERE ckey = $1 AND seq = $2 AND is_full = 1`
	none := &convo.ValueError{Name: "before", Value: before, Want: "the Seq of a full record"}
	if before > math.MaxInt64 {
		return none
	}
	const query = `DELETE FROM convo_records WHERE ckey = $1 AND seq < $2 AND EXISTS (` +
		`SELECT 1 FROM convo_records WHERE ckey = $1 AND seq = $2 AND is_full = 1)`
	done, err := q.ExecContext(ctx, s.query(query), ckey, int64(before))
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n > 0 {
		return err
	}
	var n int
	if err := q.QueryRowContext(ctx, s.query(full), ckey, int64(before)).Scan(&n); err != nil {
		return err
	}
	if n == 0 {
		return none
	}
	return nil
}

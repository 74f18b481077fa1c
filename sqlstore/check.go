package sqlstore

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/seed-c1b73e60/convo"
)

// Each row has a CRC-32C of its contents. The Seq of the first record has its own checksum,
// because it is changed by Prune but not by Append.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// crcOf returns the checksum of numbers and texts.
func crcOf(kind string, numbers []int64, texts ...[]byte) int64 {
	var eight [8]byte
	number := func(crc uint32, n int64) uint32 {
		binary.BigEndian.PutUint64(eight[:], uint64(n))
		return crc32.Update(crc, castagnoli, eight[:])
	}
	crc := crc32.Checksum([]byte(kind), castagnoli)
	for _, n := range numbers {
		crc = number(crc, n)
	}
	for _, t := range texts {
		crc = number(crc, int64(len(t)))
		crc = crc32.Update(crc, castagnoli, t)
	}
	return int64(crc)
}

// crcOfRecord returns the checksum of a row of convo_records.
func crcOfRecord(ckey []byte, r *convo.Record, head, data []byte) int64 {
	full := int64(0)
	if r.Full {
		full = 1
	}
	return crcOf("record", []int64{int64(r.Seq), full, int64(r.Format), int64(r.Upto)}, ckey, []byte(r.ID), []byte(r.Prev), head, data)
}

// crcOfLog returns the checksum of a row of convo_logs, apart from its first record.
func crcOfLog(l *logRow) int64 {
	return crcOf("log", []int64{l.seq, l.created, l.updated, l.entries, l.tokens}, l.ckey, []byte(l.newest), l.title)
}

// crcOfFirst returns the checksum of the Seq of the first record of a log.
func crcOfFirst(ckey []byte, seq int64) int64 { return crcOf("first", []int64{seq}, ckey) }

// A logRow is a row of convo_logs.
type logRow struct {
	ckey, title             []byte
	newest                  string
	seq, created, updated   int64
	entries, tokens         int64
	crc, firstSeq, firstCRC int64
}

const logColumns = `ckey, newest, seq, created, updated, entries, tokens, title, crc, first_seq, first_crc`

// scan reads the columns logColumns.
func (l *logRow) scan(scan func(...any) error) error {
	return scan(&l.ckey, &l.newest, &l.seq, &l.created, &l.updated, &l.entries, &l.tokens, &l.title, &l.crc, &l.firstSeq, &l.firstCRC)
}

// fault returns an error if the row is damaged.
func (l *logRow) fault() error {
	if l.crc != crcOfLog(l) || l.firstCRC != crcOfFirst(l.ckey, l.firstSeq) {
		return errors.New("the checksum of its row in convo_logs is wrong")
	}
	return nil
}

// logOf returns the row of a log, or nil if there is none.
func (s *Store) logOf(ctx context.Context, q querier, key string) (*logRow, error) {
	ckey := columnOf(key)
	l := new(logRow)
	err := l.scan(q.QueryRowContext(ctx, s.query(`SELECT `+logColumns+` FROM convo_logs WHERE ckey = $1`), ckey).Scan)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		var n int
		const query = `SELECT count(*) FROM convo_records WHERE ckey = $1 AND NOT EXISTS (SELECT 1 FROM convo_logs WHERE ckey = $1)`
		if err := q.QueryRowContext(ctx, s.query(query), ckey).Scan(&n); err != nil {
			return nil, fmt.Errorf("look for records: %w", err)
		}
		if n > 0 {
			return nil, s.damage(ctx, q, key, errNoLog)
		}
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("find the newest record: %w", err)
	}
	if fault := l.fault(); fault != nil {
		return nil, s.damage(ctx, q, key, fault)
	}
	return l, nil
}

var errNoLog = errors.New("its row in convo_logs is missing")

// fault returns an error if the row is damaged or does not follow prev. If prev is nil, the
// row is the first one. A prev without an ID is damaged.
func (r *recordRow) fault(ckey []byte, prev *convo.Record) error {
	switch {
	case r.bad != nil:
		return r.bad
	case r.full != 0 && r.full != 1, r.crc != crcOfRecord(ckey, &r.Record, r.head, r.Data):
		return fmt.Errorf("the checksum of record %d is wrong", r.Seq)
	case prev != nil && r.Seq != prev.Seq+1:
		return fmt.Errorf("record %d follows record %d", r.Seq, prev.Seq)
	case prev != nil && prev.ID != "" && r.Prev != prev.ID:
		return fmt.Errorf("record %d does not name the one before it", r.Seq)
	}
	return setHead(&r.LogInfo, r.head)
}

// damage returns the error for a fault, with the Seq of the newest valid record.
func (s *Store) damage(ctx context.Context, q querier, key string, fault error) error {
	good, err := s.goodBefore(ctx, q, key, 1<<63-1)
	if err != nil {
		return err
	}
	return &convo.DamageError{Key: key, Seq: good, Offset: -1, Err: fault}
}

// goodBefore returns the Seq of the newest record before below that can be loaded, because
// there is no damage between it and the full record that it depends on.
func (s *Store) goodBefore(ctx context.Context, q querier, key string, below uint64) (good uint64, err error) {
	ckey := columnOf(key)
	var prev *convo.Record
	for from := int64(1); ; {
		page, err := s.recordsFrom(ctx, q, key, from, pageRecords)
		if err != nil || len(page) == 0 {
			return good, err
		}
		for i := range page {
			r := &page[i]
			if r.bad != nil || r.Seq >= below {
				return good, nil
			}
			from = int64(r.Seq) + 1
			if r.fault(ckey, prev) != nil {
				if prev = nil; !r.Full || r.fault(ckey, nil) != nil {
					continue
				}
			} else if prev == nil && !r.Full {
				continue
			}
			r.Data = nil
			prev, good = &r.Record, r.Seq
		}
	}
}

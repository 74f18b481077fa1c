package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A tap sits between database/sql and a driver. It counts what is sent, and may cut
// a connection around a statement.
type tap struct {
	driver.Connector
	fault func(query string) (before, after error) // nil: none

	mu   sync.Mutex
	sent []string // the first word of each statement
}

func (t *tap) note(query string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent = append(t.sent, strings.Fields(query)[0])
}

// take returns what was sent since the last call.
func (t *tap) take() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	sent := t.sent
	t.sent = nil
	return sent
}

// sentNow returns what was sent since the last call of take.
func (t *tap) sentNow() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sent
}

// openTap opens a database through a tap.
func openTap(t *testing.T, name, dsn string) (*tap, *sql.DB) {
	t.Helper()
	db, err := sql.Open(name, dsn)
	require.NoError(t, err)
	d := db.Driver()
	require.NoError(t, db.Close())
	tapped := &tap{Connector: plainConnector{d, dsn}}
	if dc, ok := d.(driver.DriverContext); ok {
		tapped.Connector, err = dc.OpenConnector(dsn)
		require.NoError(t, err)
	}
	db = sql.OpenDB(tapped)
	t.Cleanup(func() { _ = db.Close() })
	return tapped, db
}

type plainConnector struct {
	d   driver.Driver
	dsn string
}

func (c plainConnector) Connect(context.Context) (driver.Conn, error) { return c.d.Open(c.dsn) }
func (c plainConnector) Driver() driver.Driver                        { return c.d }

func (t *tap) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := t.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &tapConn{conn, t}, nil
}

type tapConn struct {
	driver.Conn
	tap *tap
}

func (c *tapConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.tap.note(query)
	var before, after error
	if c.tap.fault != nil {
		before, after = c.tap.fault(query)
	}
	if before != nil {
		_ = c.Close()
		return nil, before
	}
	res, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	if err == nil && after != nil {
		_ = c.Close()
		return nil, after
	}
	return res, err
}

func (c *tapConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.tap.note(query)
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c *tapConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	c.tap.note("BEGIN")
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	return &tapTx{tx, c.tap}, err
}

func (c *tapConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

func (c *tapConn) ResetSession(ctx context.Context) error {
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

type tapTx struct {
	driver.Tx
	tap *tap
}

func (t *tapTx) Commit() error {
	t.tap.note("COMMIT")
	return t.Tx.Commit()
}

// Package sqlstore stores conversations in a SQL database: SQLite or PostgreSQL. A
// [Store] is a [convo.Store] and a [convo.Pruner]. The package depends only on
// database/sql; the caller imports the driver:
//
//	import _ "modernc.org/sqlite"
//
//	dsn, err := sqlstore.SQLiteFile("chats.db")
//	db, err := sql.Open("sqlite", dsn)
//	store, err := sqlstore.New(ctx, db, sqlstore.SQLite)
//	h, err := convo.Open(ctx, store, "42", opts)
//
// or
//
//	import _ "github.com/jackc/pgx/v5/stdlib"
//
//	db, err := sql.Open("pgx", "postgres://...")
//	store, err := sqlstore.New(ctx, db, sqlstore.PostgreSQL)
//
// # Tables
//
// [New] creates the tables convo_schema, convo_logs and convo_records if they do not
// exist, and updates older tables, in one transaction. [Schema] returns the statements,
// to run them by other means; New then changes nothing. Keys and titles are stored as
// bytes. For a key of more than 2,000 bytes, the column ckey contains its first 2,000
// bytes and the SHA-256 hash of the whole key, and the column head contains the whole key.
// Times are stored as nanoseconds since 1970, so they must be in the years 1678 to 2261,
// or zero.
//
// # Durability
//
// When Append returns nil, the record survives a power failure, if the database works as
// configured. New refuses SQLite without a write-ahead log or with less than
// synchronous=FULL, and PostgreSQL with fsync or synchronous_commit switched off. It
// checks the settings of one connection: set them for all connections, in the DSN or on
// the server.
//
// # Damage
//
// Each row has a checksum of its contents. If a value was not written by a [Store], or a
// row is missing, Records ends with a [*convo.DamageError] after the records before the
// damage, and List yields a [*convo.DamageError] instead of the LogInfo. Append returns
// one if the row of the log is damaged; it does not read the records. Delete also removes
// damaged logs. Errors found by the database itself, such as an invalid page of a SQLite
// file, are returned unchanged.
//
// # Erasing
//
// Neither Delete nor Prune erases data from the disk. The removed data can remain in
// free pages of the file, in the write-ahead log, in dead rows and in backups.
//
// In SQLite, run these statements after a Delete or Prune, while there are no other readers
// or writers; they rewrite the whole database:
//
//	VACUUM;
//	PRAGMA wal_checkpoint(TRUNCATE);
//
// If a reader blocks the second statement, it returns a row that begins with 1, and erases
// nothing: then run it again. With PRAGMA secure_delete=ON on each connection, SQLite
// overwrites removed data, and the checkpoint alone is enough.
//
// In PostgreSQL, run these statements as a superuser, with wal_recycle=off in the
// configuration; they lock the tables while they rewrite them:
//
//	VACUUM FULL convo_logs;
//	VACUUM FULL convo_records;
//	ANALYZE convo_logs;
//	ANALYZE convo_records;
//	VACUUM FULL pg_catalog.pg_statistic;
//	SELECT pg_switch_wal();
//	CHECKPOINT;
//	SELECT pg_switch_wal();
//	CHECKPOINT;
//
// The statistics contain keys, titles and short records. The last four statements remove
// old segments of the write-ahead log, unless an archive, a replica or wal_keep_size still
// needs them.
//
// The statements do not reach backups, replicas, snapshots of the file system or the free
// blocks of the disk. To erase data there as well, encrypt with [logs.Sealed], with a key
// for each conversation or user, and destroy that key.
//
// # Costs
//
// In PostgreSQL, an Append is one statement. If a statement fails because the default
// isolation of the database is stricter than read committed, it is sent again in a read
// committed transaction. In SQLite, an Append is two statements in one transaction.
// Appends that wait while another is written share the next transaction; each succeeds
// or fails on its own. They run on a goroutine that ends with them; it can outlive an
// Append whose ctx has ended until the driver returns.
//
// No loop holds a connection while its body runs, so a pool of one connection is
// enough. Records reads pages of up to 1 MiB or 1,000 records, but at least one record,
// and yields the log as it was when the loop began. If records are pruned or deleted
// before it has read them, it ends with an error. List reads pages of 100 logs. A log
// that is saved during a loop over List may move to the front and be missed by that loop.
package sqlstore

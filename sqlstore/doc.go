// Package sqlstore keeps conversations in a SQL database: SQLite or PostgreSQL. A
// [Store] is a [convo.Store] and a [convo.Pruner]. The package needs database/sql
// alone; the driver is the caller's:
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
// [New] makes the tables convo_schema, convo_logs and convo_records if they are not
// there, and brings older ones up to date, in one transaction. [Schema] returns the
// statements, for those who run them by other means; then New changes nothing. Keys
// and titles are bytes. A key of more than 2,000 bytes stands in the column ckey as
// its first 2,000 bytes and the SHA-256 hash of all of it, and whole in head. Times are
// nanoseconds since 1970, so they must be in the years 1678 to 2261, or zero.
//
// # Durability
//
// When Append returns nil, the record survives a power cut, if the database does as
// it is told. New refuses SQLite without a write-ahead log or with less than
// synchronous=FULL, and PostgreSQL with fsync or synchronous_commit switched off. It
// sees the settings of one connection: set them for all, in the DSN or on the server.
//
// # Damage
//
// Each row has a checksum of all that it means. Where a value has changed in any other
// way than by a [Store], or a row is missing, Records ends with a [*convo.DamageError]
// after the records before it, and List yields one in the place of the head. So does
// Append when it finds the row of the log damaged; it does not read the records. Delete
// removes damaged logs also. Errors that the database finds itself, such as a page of a
// SQLite file that makes no sense, are passed on.
//
// # Erasing
//
// Neither Delete nor Prune erases data from the disk. What they have removed can stay in
// free pages of the file, in the write-ahead log, in dead rows and in backups.
//
// In SQLite, run these statements after them, while no one else reads or writes; they
// write the whole database anew:
//
//	VACUUM;
//	PRAGMA wal_checkpoint(TRUNCATE);
//
// The second one returns a row that begins with 1, and has erased nothing, if a reader
// was in the way: then run it again. With PRAGMA secure_delete=ON on each connection,
// SQLite overwrites what is removed, and the checkpoint alone is enough.
//
// In PostgreSQL, run these statements as a superuser, with wal_recycle=off in the
// configuration; they lock the tables while they write them anew:
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
// The statistics hold keys, titles and short records. The last four remove old segments
// of the write-ahead log, unless an archive, a replica or wal_keep_size still needs them.
//
// Backups, replicas, snapshots of the file system and the free blocks of the disk are out
// of reach of both. To erase there as well, encrypt with [convo.Sealed], with a key for
// each conversation or user, and destroy that key.
//
// # Costs
//
// In PostgreSQL, an Append is one statement. If the default isolation of the database
// is stricter than read committed and a statement fails because of that, it is sent
// once more in a transaction that is read committed. In SQLite it is two in one transaction.
// Appends that wait while another is written share the next transaction; each is
// judged for itself. They run on a goroutine that ends with them; it can outlive an
// Append whose ctx has ended by as long as the driver takes to notice.
//
// No loop holds a connection while its body runs, so a pool of one connection is
// enough. Records reads pages of up to 1 MiB or 1,000 records, but at least one record,
// and yields the log as it was when the loop began. If records that it still has to
// read are pruned or deleted meanwhile, it ends with an error. List reads pages of 100.
// A log that is saved while a loop over List runs may move to the front, and be missed
// by that loop.
package sqlstore

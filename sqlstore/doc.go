// Package sqlstore keeps conversations in a SQL database: SQLite or PostgreSQL. A
// [Store] is a [convo.Store] and a [convo.Pruner]. The package needs database/sql
// alone; the driver is the caller's:
//
//	import _ "modernc.org/sqlite"
//
//	db, err := sql.Open("sqlite", sqlstore.SQLiteDSN("chats.db"))
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
// Neither Delete nor Prune erases data from the disk. What they have removed can stay
// in free pages of the file, in the write-ahead log, in dead rows and in backups.
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

// Package filestore stores the conversations of package convo in files of one directory.
//
//	store := &filestore.Store{Dir: "/var/lib/chats"}
//	h, err := convo.Open(ctx, store, "trip to Rome", nil)
//
// Each key has an append-only file with one line for each record. The format is described
// in docs/format.md, in enough detail to read it from another language.
//
// # Crashes
//
// When Append returns nil, the record and the name of its file have been synced to the
// disk: they survive a power failure. A crash during Append can leave part of a record.
// Readers skip that part and report its length as Status.Torn; the next Append cuts it off.
// If the log has no whole record, the log is empty and Torn is not reported, but Append
// still logs to Store.Logger when it cuts the part off.
//
// Any other damage is a [*convo.DamageError], also if only the last newline has become
// another byte. Records yields the error instead of the damaged records; Append returns it if
// the newest record is damaged. A conversation can be opened in spite of damage before the
// newest full record. The error for records written by a later release matches
// [convo.ErrVersion].
//
// A log must be a regular file. The error for a link, a directory or a pipe in its place is no
// DamageError, and says what to do.
//
// # Processes
//
// Several processes of one machine may use the same directory, each with its own Store.
// They are synchronized by locks on the files, and a process that is killed leaves no lock.
// A method that waits for a lock tries again at least every 5 milliseconds, until its ctx
// ends. The locks work on Linux, macOS, Windows, the BSDs and illumos. On other systems
// methods return an error that matches [errors.ErrUnsupported].
//
// When several processes write to one key in turn, each Append that follows an Append of
// another process syncs three times instead of once: the name of the file, the record of
// the other process, in case it was killed before its own sync, and the new record.
//
// # Files
//
// Files have the mode 0600 and names such as
// trip-to-rome-1b2cf5f1a1d1b0a2a2b8b7be6b2ad0a1.convo: the beginning of the key, for human
// readers, and a hash of the whole key. The key itself is in the file. Other files in the
// directory are left alone.
//
// Neither Delete nor Prune erases data from the disk: the removed data can still be in free
// blocks, in snapshots of the file system and in backups. If a process is killed during
// Prune, a copy of the log can remain in a file whose name ends in .tmp; the next Prune or
// Delete of the key removes it.
package filestore

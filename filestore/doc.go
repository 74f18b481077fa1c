// Package filestore keeps the conversations of package convo in files of one directory.
//
//	store := &filestore.Store{Dir: "/var/lib/chats"}
//	h, err := convo.Open(ctx, store, "trip to Rome", nil)
//
// Each key has a file with one line for each record, to which lines are only added.
// docs/format.md describes it, well enough to read it in another language.
//
// # Crashes
//
// When Append returns nil, the record and the name of its file have been synced to the
// disk: they survive a power cut. Readers skip what a crash has left of a record that was
// being written, and report its length as Status.Torn; the next Append cuts it off.
//
// Any other damage is a [*convo.DamageError]: for Records, in the place of the damaged
// records; for Append, when the newest record is damaged. Damage before the newest full
// record does not keep a conversation from being opened. The error for records that a
// later release has written matches [convo.ErrVersion].
//
// # Processes
//
// Many processes of one machine may use one directory, each with its own Store. Locks on
// the files keep them apart, and a process that is killed leaves no lock. A method that has
// to wait for a lock tries again at least every 5 milliseconds, until its ctx ends. The
// locks work on Linux, macOS, Windows, the BSDs and illumos. On other systems methods
// return an error that matches [errors.ErrUnsupported].
//
// When several processes write to one key in turn, each Append that follows an Append of
// another process syncs three times instead of once: the name of the file, the record of
// the other process, which may have been killed before its own sync, and the new record.
//
// # Files
//
// Files have the mode 0600 and names such as
// trip-to-rome-1b2cf5f1a1d1b0a2a2b8b7be6b2ad0a1.convo: the beginning of the key, for
// people, and a hash of all of it. The key itself is in the file. Other files in the
// directory are left alone.
//
// Neither Delete nor Prune erases data from the disk: what they have removed can still be
// in free blocks, in snapshots of the file system and in backups. When a process is killed
// in Prune, a copy of the log can remain in a file whose name ends in .tmp; the next Prune
// or Delete of the key removes it.
package filestore

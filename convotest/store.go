package convotest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-c1b73e60/convo"
)

// TestStore runs [CheckStore] and calls t.Error for each broken rule.
func TestStore(t testing.TB, open func() convo.Store) {
	t.Helper()
	report(t, CheckStore(open))
}

// CheckStore checks a Store against the rules of its interface, and returns the
// broken rules as joined errors. The function open returns a Store on a place, such as a
// directory or a database, which must be empty at first. CheckStore calls open twice, and
// uses both Stores as two processes would: each Store must see the records that the other
// has written. If the Store itself is the place, as for a [MemStore], open returns the
// same Store both times. At the end, the place is empty again, unless a rule was broken.
//
// The rules:
//
//   - Records returns all fields of a record unchanged, with times exact to the
//     nanosecond, in any zone. Only the first 128 bytes of a title must be kept.
//
//   - Records yields all records from a Seq on, or, from 0, the newest full record and
//     the records after it. It may be ranged over again, and a loop may be left early.
//
//   - Append accepts only a record that follows the newest record. It refuses any other
//     with a [convo.ConflictError] that names the newest record, and a record that
//     [convo.Record.Check] or its Seq rules out with a [convo.ValueError]. A refused
//     record is not written. Append returns nil for the newest record itself, and does
//     not write it again.
//
//   - Data belongs to the caller, before and after.
//
//   - A key is any string of 1 to 4,096 bytes. Keys and prefixes are compared byte for
//     byte.
//
//   - List yields the LogInfo of the newest record of each key that begins with the
//     prefix, once, the most recently updated first, even for several hundred keys. It
//     leaves out logs that were not updated before a given time, and continues after a
//     given LogInfo, even if that conversation or others have been updated or deleted.
//
//   - After Delete nothing of the log remains, and a new log may begin under its key.
//
//   - All methods may be called inside a loop over Records or List.
//
//   - A call fails if its ctx has ended, and a loop fails when its ctx ends. A call
//     returns within a minute, and soon after its ctx has ended. No call panics.
//
//   - A Store is safe for concurrent use. No record that Append has accepted is lost or
//     yielded twice. If two records follow the same record, one of them is refused.
//
//   - A [convo.Pruner] removes the records before a full record, returns nil if they
//     have already been removed, and refuses any other Seq with a [convo.ValueError]. A
//     Store whose Prune returns [errors.ErrUnsupported] is not treated as a Pruner.
//
//   - The Store may have a method Damage(key string, seq uint64) error, for tests, that
//     makes a record unreadable. Records then yields a [convo.DamageError] instead of that
//     record, and the records after it if the loop continues; from 0 it yields no older
//     full record.
//
// CheckStore does not check the effects of a power failure. If a call does not return or
// panics, CheckStore stops. It makes about two thousand calls.
func CheckStore(open func() convo.Store) error {
	c := storeCheck{}
	c.of = "store"
	if c.open(open) {
		c.all()
	}
	return c.err()
}

// How a Store can break a rule.
var (
	ruleNil        = rule{"is nil", "return a Store from open"}
	ruleNotEmpty   = rule{"is not empty at first", "open it in a place of its own"}
	ruleRefuses    = rule{"refuses a record that follows the newest one", "return nil once the record is stored"}
	ruleComesBack  = rule{"does not yield what Append has taken", "store every field, byte for byte, and yield the records in order of Seq"}
	ruleFromFull   = rule{"does not begin with the newest full record when Records is asked from 0", "begin with the newest record whose Full is true"}
	ruleFrom       = rule{"does not yield the records with a Seq of at least that asked for", "leave out the records with a smaller Seq, and no others"}
	ruleRange      = rule{"yields something else when Records is ranged over again", "read anew each time the sequence is ranged over"}
	ruleData       = rule{"shares Data with its caller", "copy Data on the way in and on the way out"}
	ruleAgain      = rule{"does not return nil when the newest record is appended again", "return nil when Record.ID is that of the newest record"}
	ruleTwice      = rule{"writes a record twice when it is appended again", "compare Record.ID with that of the newest record first"}
	ruleTakes      = rule{"takes a record that does not follow the newest one", "compare Record.Prev with the ID of the newest record, in the same step that writes"}
	ruleTakesBad   = rule{"takes a record that is not valid", "call Record.Check first, and check that Seq is one more than before"}
	ruleConflict   = rule{"does not return a *ConflictError that names the newest record when another follows", "fill in Key, Have, Want and ID"}
	ruleValue      = rule{"does not return a *ValueError", "call Record.Check first"}
	ruleWrites     = rule{"changes the log though it returns an error", "write all of a record in one step, or nothing"}
	ruleKeys       = rule{"takes two keys for the same, or one for another", "compare keys byte for byte"}
	rulePrefix     = rule{"lists other keys than those that begin with the prefix", "compare the bytes of the prefix, without wildcards"}
	ruleHead       = rule{"lists another head than that of the newest record", "keep the LogInfo of the newest record as it came"}
	ruleOrder      = rule{"does not list the most recently updated first", "sort by LogInfo.Updated, newest first"}
	ruleBefore     = rule{"does not list the conversations updated before ListOptions.UpdatedBefore, and no others", "leave out heads whose Updated is that time or later, unless it is zero"}
	ruleAfter      = rule{"does not go on after ListOptions.After", "yield the heads that come after its Updated and Key in the order of the list, wherever that conversation is by then"}
	ruleListTwice  = rule{"lists a key twice", "yield each key once"}
	ruleDelete     = rule{"keeps something of a log that was deleted", "remove all records and the head"}
	ruleBegin      = rule{"does not begin a log under the key of one that was deleted", "take a first record with any Seq once the log is gone"}
	ruleUnused     = rule{"fails for a key without a log", "yield nothing, and return nil from Delete"}
	ruleIgnoresCtx = rule{"goes on though ctx has ended", "look at ctx before each step that waits, and return its error"}
	ruleLost       = rule{"loses a record that Append has taken, when several goroutines write", "compare and write in one step, such as a transaction or under a lock"}
	rulePhantom    = rule{"yields a record that Append has refused, when several goroutines write", "write nothing of a record for which an error is returned"}
	ruleTorn       = rule{"yields a log that is not in order while several goroutines write", "read a state that no Append is in the middle of"}
	ruleDamage     = rule{"does not yield what is around a damaged record", "yield a *DamageError in the place of the record, and go on after it"}
	rulePrune      = rule{"does not remove the records before a full one, and no others, in Prune", "remove the records whose Seq is less than that of the full one"}
	ruleGone       = rule{"does not return nil from Prune when the records are gone already", "return nil if there is no log, or if its first record has a Seq of more than before"}
)

type storeCheck struct {
	findings
	stores [2]convo.Store // both on the same place
	ids    int            // number of IDs given so far
}

// A stopped is the panic with which a check ends early.
type stopped struct{}

// open opens the Stores.
func (c *storeCheck) open(open func() convo.Store) bool {
	for i := range c.stores {
		s, end := finish(func(context.Context) convo.Store { return open() })
		switch {
		case end.isBad():
			c.add(end.rule, end.where("in open")...)
			return false
		case s == nil:
			c.add(ruleNil)
			return false
		}
		c.stores[i] = s
	}
	return true
}

// all runs all checks. If simple rules are broken, it skips the checks that would then
// mean little.
func (c *storeCheck) all() {
	defer func() {
		if v := recover(); v != nil && v != (stopped{}) {
			panic(v)
		}
	}()
	if heads, _ := c.listed(0, "", "empty"); len(heads) > 0 {
		c.add(ruleNotEmpty, fmt.Sprintf("key %.60q", heads[0].Key))
		return
	}
	c.unused()
	c.log()
	if len(c.findings.list) > 0 {
		return
	}
	for _, check := range []func(){c.data, c.again, c.conflicts, c.invalid, c.keys, c.heads, c.deleted, c.loops, c.ctx, c.prune, c.damaged} {
		check()
	}
	if len(c.findings.list) == 0 {
		c.atOnce()
	}
	if len(c.findings.list) == 0 {
		c.clean()
	}
}

// record returns a record that follows prev, or the first record of a log if prev is nil.
func (c *storeCheck) record(key string, prev *convo.Record, full bool) convo.Record {
	c.ids++
	at := time.Date(2026, 3, 29, 1, 59, 59, 678_901_234, time.FixedZone("", 2*60*60)).Add(time.Duration(c.ids) * time.Minute)
	r := convo.Record{
		LogInfo: convo.LogInfo{Key: key, Title: fmt.Sprintf("title %d", c.ids), Seq: 1, Created: at, Updated: at, Entries: c.ids, Tokens: 100 * c.ids},
		ID:      fmt.Sprintf("convotest%017d", c.ids), Full: full, Format: 1, Upto: convo.ID(c.ids), Data: fmt.Appendf(nil, `{"n":%d}`, c.ids),
	}
	if prev != nil {
		r.Seq, r.Prev, r.Created = prev.Seq+1, prev.ID, prev.Created
	}
	return r
}

// chain appends a log with one record for each letter of kinds. F stands for a full record.
func (c *storeCheck) chain(key, kinds, where string) []convo.Record {
	var log []convo.Record
	for i, kind := range kinds {
		var prev *convo.Record
		if i > 0 {
			prev = &log[i-1]
		}
		r := c.record(key, prev, kind == 'F')
		c.must(c.append(i%2, r), ruleRefuses, where)
		log = append(log, r)
	}
	return log
}

// fails returns the rule for a call that returns an error without a reason.
func fails(where string) rule {
	return rule{"fails " + where, "return an error only if the store cannot be read or written"}
}

// must adds a rule and ends the check if err is not nil.
func (c *storeCheck) must(err error, broken rule, where ...string) {
	if err != nil {
		c.add(broken, append(where, fmt.Sprintf("%.300q", err.Error()))...)
		panic(stopped{})
	}
}

// do calls a method. If it does not return or panics, the check ends.
func do[T any](c *storeCheck, in string, f func(context.Context) T) T {
	got, end := finish(f)
	if end.isBad() {
		c.add(end.rule, end.where("in "+in)...)
		panic(stopped{})
	}
	return got
}

func (c *storeCheck) append(store int, r convo.Record) error {
	r.Data = bytes.Clone(r.Data)
	return do(c, "Append", func(ctx context.Context) error { return c.stores[store].Append(ctx, r) })
}

func (c *storeCheck) remove(key string) error {
	return do(c, "Delete", func(ctx context.Context) error { return c.stores[0].Delete(ctx, key) })
}

// A loop is the result of a loop over Records or List.
type loop[T any] struct {
	all []T
	err error
}

// collect ranges over seq. It does not keep values yielded with or after an error.
func collect[T any](seq iter.Seq2[T, error]) (l loop[T]) {
	for v, err := range seq {
		if l.err != nil {
			continue
		}
		if l.err = err; err == nil {
			l.all = append(l.all, v)
		}
	}
	return l
}

// records returns the records that Records yields. If it fails, the check ends.
func (c *storeCheck) records(store int, key string, from uint64, where string) []convo.Record {
	l := do(c, "Records", func(ctx context.Context) loop[convo.Record] { return collect(c.stores[store].Records(ctx, key, from)) })
	c.must(l.err, fails("in Records"), where)
	return l.all
}

// listed returns the heads that List yields, in order and by key. If it fails, the check
// ends.
func (c *storeCheck) listed(store int, prefix, where string) ([]convo.LogInfo, map[string]convo.LogInfo) {
	l := do(c, "List", func(ctx context.Context) loop[convo.LogInfo] {
		return collect(c.stores[store].List(ctx, convo.ListOptions{Prefix: prefix}))
	})
	c.must(l.err, fails("in List"), where)
	heads := make(map[string]convo.LogInfo)
	for _, h := range l.all {
		if _, ok := heads[h.Key]; ok {
			c.add(ruleListTwice, where, fmt.Sprintf("prefix %.60q, key %.60q", prefix, h.Key))
		}
		heads[h.Key] = h
	}
	return l.all, heads
}

// has checks that both Stores yield exactly these records.
func (c *storeCheck) has(key string, from uint64, want []convo.Record, broken rule, where string) {
	for i := range c.stores {
		if d := differ(c.records(i, key, from, where), want); d != "" {
			c.add(broken, append([]string{where, d}, c.whose(i)...)...)
		}
	}
}

// whose returns a detail that names the second Store, or nil for the first Store.
func (c *storeCheck) whose(store int) []string {
	if store == 0 {
		return nil
	}
	return []string{"seen by the second Store on the same place"}
}

// differ describes the first difference between two lists of records.
func differ(got, want []convo.Record) string {
	for i := range min(len(got), len(want)) {
		if d := differRecord(got[i], want[i]); d != "" {
			return fmt.Sprintf("record %d of %d: %s", i+1, len(want), d)
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d records, want %d", len(got), len(want))
	}
	return ""
}

func differRecord(got, want convo.Record) string {
	switch {
	case got.ID != want.ID:
		return fmt.Sprintf("ID is %.60q, want %q", got.ID, want.ID)
	case got.Prev != want.Prev:
		return fmt.Sprintf("Prev is %.60q, want %q", got.Prev, want.Prev)
	case got.Full != want.Full:
		return fmt.Sprintf("Full is %t, want %t", got.Full, want.Full)
	case got.Format != want.Format:
		return fmt.Sprintf("Format is %d, want %d", got.Format, want.Format)
	case got.Upto != want.Upto:
		return fmt.Sprintf("Upto is %d, want %d", got.Upto, want.Upto)
	case !bytes.Equal(got.Data, want.Data):
		return fmt.Sprintf("Data is %.60q (%d bytes), want %.60q (%d bytes)", got.Data, len(got.Data), want.Data, len(want.Data))
	}
	return differHead(got.LogInfo, want.LogInfo)
}

// leastTitle is the number of bytes of a title that a Store must keep.
const leastTitle = 128

func differHead(got, want convo.LogInfo) string {
	title := got.Title == want.Title || len(got.Title) >= leastTitle && strings.HasPrefix(want.Title, got.Title)
	switch {
	case got.Key != want.Key:
		return fmt.Sprintf("Key is %.60q, want %.60q", got.Key, want.Key)
	case !title:
		return fmt.Sprintf("Title is %.60q, want %.60q", got.Title, want.Title)
	case got.Seq != want.Seq:
		return fmt.Sprintf("Seq is %d, want %d", got.Seq, want.Seq)
	case !got.Created.Equal(want.Created):
		return fmt.Sprintf("Created is %v, want %v", got.Created, want.Created)
	case !got.Updated.Equal(want.Updated):
		return fmt.Sprintf("Updated is %v, want %v", got.Updated, want.Updated)
	case got.Entries != want.Entries:
		return fmt.Sprintf("Entries is %d, want %d", got.Entries, want.Entries)
	case got.Tokens != want.Tokens:
		return fmt.Sprintf("Tokens is %d, want %d", got.Tokens, want.Tokens)
	}
	return ""
}

// unused checks the methods of a Store with a key that has no log.
func (c *storeCheck) unused() {
	const where = "an unused key"
	for _, from := range []uint64{0, 1, 9} {
		if got := c.records(0, "unused", from, where); len(got) > 0 {
			c.add(ruleKeys, where, fmt.Sprintf("record %q", got[0].ID))
		}
	}
	c.must(c.remove("unused"), ruleUnused, "in Delete")
	first := c.record("unused", nil, true)
	r := c.record("unused", &first, false)
	c.refused(r, convo.Record{}, "a record for an unused key that names one before it")
	c.has("unused", 1, nil, ruleWrites, where)
}

// refused appends a record that does not follow the newest one.
func (c *storeCheck) refused(r, newest convo.Record, where string) {
	err := c.append(0, r)
	conflict, ok := errors.AsType[*convo.ConflictError](err)
	switch {
	case err == nil:
		c.add(ruleTakes, where)
	case !ok:
		c.add(ruleConflict, where, fmt.Sprintf("%.300q", err.Error()))
	case *conflict != convo.ConflictError{Key: r.Key, Have: newest.Seq, Want: r.Seq, ID: newest.ID}:
		c.add(ruleConflict, where, fmt.Sprintf("Key %.60q, Have %d, Want %d, ID %.60q; want %q, %d, %d, %q",
			conflict.Key, conflict.Have, conflict.Want, conflict.ID, r.Key, newest.Seq, r.Seq, newest.ID))
	}
}

// log checks that a log grows, and that Records yields it.
func (c *storeCheck) log() {
	for _, first := range []uint64{1, 1 << 40} {
		key := fmt.Sprintf("log from %d", first)
		var log []convo.Record
		full := 0
		for i, kind := range "FPPFPPF" {
			r := c.record(key, nil, kind == 'F')
			r.Seq = first
			if i > 0 {
				r = c.record(key, &log[i-1], kind == 'F')
			}
			switch i {
			case 1:
				r.Data = nil
			case 2:
				r.Data = everyByte()
				r.Title = string(r.Data)
			case 4:
				r.Data = bytes.Repeat([]byte("a large record \x00\n"), 1<<16)
				r.Title = ""
				r.Entries, r.Tokens, r.Upto = 0, 0, 1<<40
			case 5:
				r.Title = "\x00\xff'\"\\%_\n é 漢 �"
				r.Updated = r.Updated.Add(-365 * 24 * time.Hour)
			}
			where := fmt.Sprintf("record %d of a log that begins with Seq %d", i+1, first)
			c.must(c.append(i%2, r), ruleRefuses, where)
			log = append(log, r)
			if kind == 'F' {
				full = i
			}
			c.has(key, 1, log, ruleComesBack, where)
			c.has(key, 0, log[full:], ruleFromFull, where)
		}
		for i := range len(log) + 1 {
			c.has(key, first+uint64(i), log[i:], ruleFrom, fmt.Sprintf("from %d", first+uint64(i)))
		}
		c.range2(key, log)
	}
}

// range2 ranges twice over the same sequence, and leaves a loop early in between.
func (c *storeCheck) range2(key string, want []convo.Record) {
	const where = "the same sequence a second time, after a loop that was left"
	do(c, "Records", func(ctx context.Context) any {
		seq := c.stores[0].Records(ctx, key, 1)
		for range seq {
			break
		}
		for range 2 {
			if d := differ(collect(seq).all, want); d != "" {
				c.add(ruleRange, where, d)
			}
		}
		return nil
	})
}

func everyByte() []byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return all
}

// data checks that Data is copied where it must be.
func (c *storeCheck) data() {
	r := c.record("data", nil, true)
	given := r
	given.Data = bytes.Clone(r.Data)
	err := do(c, "Append", func(ctx context.Context) error { return c.stores[0].Append(ctx, given) })
	c.must(err, ruleRefuses, "data")
	clear(given.Data)
	c.has("data", 0, []convo.Record{r}, ruleData, "the Data that Append was given is changed afterwards")
	for _, got := range c.records(0, "data", 0, "data") {
		clear(got.Data)
	}
	c.has("data", 0, []convo.Record{r}, ruleData, "the Data that Records has yielded is changed")
}

// again appends newest records again, and an older record.
func (c *storeCheck) again() {
	var log []convo.Record
	for i := range 3 {
		log = c.chain("again "+fmt.Sprint(i), "FPF"[:i+1], "again")
		newest := log[i]
		for store := range c.stores {
			where := fmt.Sprintf("record %d of %d", i+1, i+1)
			if err := c.append(store, newest); err != nil {
				c.add(ruleAgain, where, fmt.Sprintf("%.300q", err.Error()))
			}
			c.has(newest.Key, 1, log, ruleTwice, where)
		}
	}
	for i := range 2 {
		c.refused(log[i], log[2], fmt.Sprintf("record %d of 3 once more", i+1))
	}
	c.has(log[0].Key, 1, log, ruleWrites, "older records once more")
}

// conflicts appends records that do not follow the newest one.
func (c *storeCheck) conflicts() {
	log := c.chain("conflicts", "FPP", "conflicts")
	newest := log[2]
	try := func(where string, r convo.Record) {
		c.refused(r, newest, where)
		c.has(r.Key, 1, log, ruleWrites, where)
	}
	try("a first record for a key in use", c.record("conflicts", nil, true))
	try("a record that follows an older one", c.record("conflicts", &log[1], false))
	other := c.record("conflicts", nil, true)
	other.Seq = newest.Seq
	r := c.record("conflicts", &other, true)
	try("a record that follows an unknown one with the Seq of the newest", r)
	r.Prev = strings.ToUpper(newest.ID)
	try("a record whose Prev is the newest ID in capitals", r)
	c.has("conflicts", 0, log, ruleWrites, "conflicts")
}

// invalid appends records that are not valid.
func (c *storeCheck) invalid() {
	log := c.chain("invalid", "FP", "invalid")
	faults := []struct {
		name   string
		change func(*convo.Record)
	}{
		{"a Seq that leaves a gap", func(r *convo.Record) { r.Seq += 1 }},
		{"the Seq of the record before", func(r *convo.Record) { r.Seq -= 1 }},
		{"a full record with Seq 1", func(r *convo.Record) { r.Seq, r.Full = 1, true }},
		{"Seq 0", func(r *convo.Record) { r.Seq = 0 }},
		{"no ID", func(r *convo.Record) { r.ID = "" }},
		{"an ID of other bytes", func(r *convo.Record) { r.ID = strings.Repeat("'", len(r.ID)) }},
		{"a Prev that is too long", func(r *convo.Record) { r.Prev += "x" }},
		{"no key", func(r *convo.Record) { r.Key = "" }},
		{"a key of 4,097 bytes", func(r *convo.Record) { r.Key = strings.Repeat("k", 4097) }},
		{"a first record that is not full", func(r *convo.Record) { r.Key, r.Seq, r.Prev = "invalid too", 1, "" }},
		{"a title of 257 bytes", func(r *convo.Record) { r.Title = strings.Repeat("t", 257) }},
	}
	for _, f := range faults {
		r := c.record("invalid", &log[1], false)
		f.change(&r)
		err := c.append(0, r)
		switch _, ok := errors.AsType[*convo.ValueError](err); {
		case err == nil:
			c.add(ruleTakesBad, f.name)
		case !ok:
			c.add(ruleValue, f.name, fmt.Sprintf("%.300q", err.Error()))
		}
		c.has("invalid", 1, log, ruleWrites, f.name)
		c.has("invalid too", 1, nil, ruleWrites, f.name)
	}
}

// oddKeys returns keys that a Store might mix up.
func oddKeys() []string {
	long := strings.Repeat("0123456789abcdef", 256) // 4,096 bytes
	keys := []string{
		"key", "KEY", "Key", "key ", " key", "key\x00", "\x00key", "\x00", "key\n", "key\t", " ", "  ",
		"%", "_", "\\", "%%", "ke%", "k_y", "k\\%", "*", "?", "[a-z]", "k*", "'", "\"", "`", "''", "; DROP TABLE", "$1", ":key", "@key",
		".", "..", "/", "//", "a/b", "a/../b", "../key", "a\\b", "C:", "con", "nul", ".key", "key.", "key.convo", "a-b", "a--b", "a b",
		"\xff", "\xff\xff", "\xfe", "key\xff", "key\xc3", "key\ufffd", "é", "e\u0301", "ß", "ss", "İ", "i", "I", "ı", "漢", "🙂",
		"0", "00", "1", "1.0", "1e0", "-1", "NULL", "null", "true", "{}", "\\x00", "%00", "\\000",
		long, long[:4095], long[:4095] + "F", long[:4094] + "\x00", strings.Repeat("0123456789abcdef", 128), strings.Repeat("\xff", 4096),
		"X" + long[1:], long[:2048] + "X" + long[2049:],
	}
	for n := 100; n < 4096; n += 333 {
		keys = append(keys, strings.Repeat("\x01\xfe漢", n/5+1)[:n])
	}
	return keys
}

// keys writes a log for each odd key, and reads and removes each.
func (c *storeCheck) keys() {
	const where = "odd keys"
	keys := oddKeys()
	logs := make(map[string][]convo.Record)
	for i, key := range keys {
		logs[key] = c.chain(key, "FP", fmt.Sprintf("key %d of %d, %.60q", i+1, len(keys), key))
	}
	for _, key := range keys {
		c.has(key, 1, logs[key], ruleKeys, fmt.Sprintf("key %.60q", key))
	}
	prefixes := append(slices.Clone(keys), "ke", "k", "a", "\xff\xff\xff", "none", "e", strings.Repeat("0123456789abcdef", 20))
	for _, prefix := range prefixes {
		_, heads := c.listed(1, prefix, where)
		for _, key := range keys {
			if _, ok := heads[key]; ok != strings.HasPrefix(key, prefix) {
				c.add(rulePrefix, fmt.Sprintf("prefix %.60q, key %.60q", prefix, key))
			}
		}
		for key := range heads {
			if !strings.HasPrefix(key, prefix) {
				c.add(rulePrefix, fmt.Sprintf("prefix %.60q, key %.60q", prefix, key))
			}
		}
	}
	for i, key := range keys {
		if i%2 == 0 {
			c.must(c.remove(key), fails("in Delete"), fmt.Sprintf("key %.60q", key))
			delete(logs, key)
		}
	}
	for _, key := range keys {
		c.has(key, 1, logs[key], ruleKeys, fmt.Sprintf("key %.60q, after others were deleted", key))
		c.must(c.remove(key), fails("in Delete"), fmt.Sprintf("key %.60q", key))
	}
}

// heads writes several hundred logs, some of them with the same time, and lists them.
func (c *storeCheck) heads() {
	const n = 250
	want := make(map[string]convo.LogInfo)
	first := c.record("heads/", nil, true).Updated
	for i := range n {
		key := fmt.Sprintf("heads/%d", i)
		r := c.record(key, nil, true)
		r.Updated = first.Add(time.Duration(i*7919%n/5) * time.Hour) // not in order, five with each time
		c.must(c.append(0, r), ruleRefuses, key)
		if i%10 == 0 {
			r = c.record(key, &r, i%20 == 0)
			r.Updated = r.Updated.Add(time.Duration(i*7919%n/5)*time.Hour - 24*time.Hour)
			c.must(c.append(1, r), ruleRefuses, key)
		}
		want[key] = r.LogInfo
	}
	for store := range c.stores {
		all, heads := c.listed(store, "heads/", "250 logs")
		for i, h := range all {
			if i > 0 && h.Updated.After(all[i-1].Updated) {
				c.add(ruleOrder, fmt.Sprintf("%v comes before %v", all[i-1].Updated, h.Updated))
			}
			if d := differHead(h, want[h.Key]); d != "" {
				c.add(ruleHead, append([]string{fmt.Sprintf("key %q", h.Key), d}, c.whose(store)...)...)
			}
		}
		if len(heads) != n {
			c.add(rulePrefix, fmt.Sprintf("%d keys of %d with the prefix %q", len(heads), n, "heads/"))
		}
	}
	some := do(c, "List", func(ctx context.Context) (some int) {
		for range c.stores[0].List(ctx, convo.ListOptions{Prefix: "heads/"}) {
			if some++; some == 120 {
				break
			}
		}
		return some
	})
	if some != 120 {
		c.add(rulePrefix, fmt.Sprintf("%d keys in a loop that is left after 120", some))
	}
	c.bounds()
	c.pages()
	for key := range want {
		c.must(c.remove(key), fails("in Delete"), key)
	}
}

// page returns up to most heads.
func (c *storeCheck) page(store int, opts convo.ListOptions, most int, where string) []convo.LogInfo {
	opts.Prefix = "heads/"
	l := do(c, "List", func(ctx context.Context) (l loop[convo.LogInfo]) {
		for h, err := range c.stores[store].List(ctx, opts) {
			if l.err = err; err != nil {
				return l
			}
			if l.all = append(l.all, h); len(l.all) == most {
				return l
			}
		}
		return l
	})
	c.must(l.err, fails("in List"), where)
	return l.all
}

// differKeys describes the first difference between the keys of two lists of heads.
func differKeys(got, want []convo.LogInfo) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return fmt.Sprintf("%d heads, want %d", len(got), len(want))
		case i >= len(want):
			return fmt.Sprintf("%d heads, want %d", len(got), len(want))
		case got[i].Key != want[i].Key:
			return fmt.Sprintf("head %d of %d is that of %.60q, want %.60q", i+1, len(want), got[i].Key, want[i].Key)
		}
	}
	return ""
}

// bounds lists the heads that were updated before a time.
func (c *storeCheck) bounds() {
	for store := range c.stores {
		all := c.page(store, convo.ListOptions{}, -1, "bounds")
		for i := 0; i < len(all); i += 31 {
			at := all[i].Updated
			for _, bound := range []time.Time{at, at.Add(1), at.UTC()} {
				want := slices.DeleteFunc(slices.Clone(all), func(h convo.LogInfo) bool { return !h.Updated.Before(bound) })
				where := fmt.Sprintf("UpdatedBefore %v", bound)
				if d := differKeys(c.page(store, convo.ListOptions{UpdatedBefore: bound}, -1, where), want); d != "" {
					c.add(ruleBefore, append([]string{where, d}, c.whose(store)...)...)
				}
			}
		}
		for _, year := range []int{1, 9999} {
			bound := time.Date(year, 2, 1, 0, 0, 0, 0, time.UTC)
			want := all
			if year == 1 {
				want = nil
			}
			if d := differKeys(c.page(store, convo.ListOptions{UpdatedBefore: bound}, -1, "bounds"), want); d != "" {
				c.add(ruleBefore, fmt.Sprintf("UpdatedBefore in the year %d", year), d)
			}
		}
	}
}

// pages lists in pages, first alone, then with updates and deletions in between.
func (c *storeCheck) pages() {
	all := c.page(0, convo.ListOptions{}, -1, "pages")
	var got []convo.LogInfo
	var after convo.LogInfo
	for n := 1; ; n++ {
		page := c.page(n%2, convo.ListOptions{After: after}, 20+n, fmt.Sprintf("page %d", n))
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
		if len(got) > len(all) {
			break
		}
		last := page[len(page)-1]
		after = convo.LogInfo{Key: last.Key, Updated: last.Updated} // no other field is needed
	}
	if d := differKeys(got, all); d != "" {
		c.add(ruleAfter, "pages of 21 heads and more", d)
	}
	// A cursor between heads with the same time, along with UpdatedBefore.
	for i := 1; i < len(all); i += 49 {
		opts := convo.ListOptions{After: all[i-1], UpdatedBefore: all[len(all)/2].Updated}
		want := slices.DeleteFunc(slices.Clone(all[i:]), func(h convo.LogInfo) bool { return !h.Updated.Before(opts.UpdatedBefore) })
		if d := differKeys(c.page(0, opts, -1, "pages"), want); d != "" {
			c.add(ruleAfter, fmt.Sprintf("after head %d of %d, with UpdatedBefore", i, len(all)), d)
		}
	}
	// Move the head at the cursor and a later one to the front, and delete a third.
	const n = 60
	for _, i := range []int{n, n + 5} {
		newest := c.records(0, all[i].Key, 0, "pages")
		r := c.record(all[i].Key, &newest[len(newest)-1], false)
		r.Updated = all[0].Updated.Add(time.Hour)
		c.must(c.append(1, r), ruleRefuses, "pages")
	}
	c.must(c.remove(all[n+10].Key), fails("in Delete"), "pages")
	want := slices.DeleteFunc(slices.Clone(all[n+1:]), func(h convo.LogInfo) bool { return h.Key == all[n+5].Key || h.Key == all[n+10].Key })
	if d := differKeys(c.page(0, convo.ListOptions{After: all[n]}, -1, "pages"), want); d != "" {
		c.add(ruleAfter, "after a head that was updated since", d)
	}
	if d := differKeys(c.page(0, convo.ListOptions{After: all[n+10]}, -1, "pages"), all[n+11:]); d != "" {
		c.add(ruleAfter, "after a head that was deleted since", d)
	}
}

// deleted removes a log and begins a new one under its key.
func (c *storeCheck) deleted() {
	log := c.chain("deleted", "FPFP", "deleted")
	keep := c.chain("deleted too", "FP", "deleted")
	for range 2 {
		c.must(c.remove("deleted"), fails("in Delete"), "a log of four records")
	}
	c.has("deleted", 0, nil, ruleDelete, "Records from 0")
	c.has("deleted", 1, nil, ruleDelete, "Records from 1")
	if _, heads := c.listed(1, "deleted", "deleted"); len(heads) != 1 {
		c.add(ruleDelete, "List")
	}
	c.refused(c.record("deleted", &log[3], true), convo.Record{}, "a record that follows one of a log that was deleted")
	c.has("deleted", 1, nil, ruleDelete, "a record that follows one of it was appended")
	first := c.record("deleted", nil, true)
	first.Seq = 3
	c.must(c.append(1, first), ruleBegin, "Seq 3, which was in use")
	second := c.record("deleted", &first, false)
	c.must(c.append(0, second), ruleBegin, "its second record")
	c.has("deleted", 1, []convo.Record{first, second}, ruleDelete, "a new log under the key")
	c.has("deleted too", 1, keep, ruleKeys, "a log whose key begins like one that was deleted")
}

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/cli"
	"github.com/seed-c1b73e60/convo/filestore"
	"github.com/seed-c1b73e60/convo/inspect"
)

// storeCommands are the subcommands of store, in the order of the help.
var storeCommands []cli.Command

func init() {
	storeCommands = []cli.Command{
		{Name: "ls", Help: "list the conversations", Run: storeList},
		{Name: "show", Help: "what fills the window of one, and its records", Run: storeShow},
		{Name: "export", Help: "write one as JSON, or as a request", Run: storeExport},
		{Name: "salvage", Help: "copy what is whole of a damaged log to a new key (writes)", Run: storeSalvage},
		{Name: "prune", Help: "remove old records (writes)", Run: storePrune},
	}
}

func store(ctx context.Context, env *cli.Env, args []string) int {
	if len(args) == 0 {
		return env.Fail(cli.Usage, "store: say what to do\n\n%s", storeHelp())
	}
	for _, c := range storeCommands {
		if c.Name == args[0] {
			return c.Run(ctx, env, args[1:])
		}
	}
	if slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]) {
		fmt.Fprint(env.Stdout, storeHelp())
		return cli.OK
	}
	return env.Fail(cli.Usage, "store: there is no subcommand %q\nconvo store -h lists them", args[0])
}

func storeHelp() string {
	var t cli.Table
	t.Left = 2
	for _, c := range storeCommands {
		t.Add("  "+c.Name, c.Help)
	}
	return `usage: convo store SUBCOMMAND -dir DIR [flags] [KEY]

Shows and mends the directory of a filestore.Store of package convo/filestore.

` + t.String() + `
"convo store SUBCOMMAND -h" prints the flags. Only salvage and prune write.
`
}

// storeFlags are the flags of a subcommand of store.
type storeFlags struct {
	*cli.Flags
	dir string
}

func newStoreFlags(name, args, help string) *storeFlags {
	f := &storeFlags{Flags: cli.NewFlags("store "+name, args, help)}
	f.StringVar(&f.dir, "dir", "", "the `DIR` of the store")
	return f
}

// open parses the arguments, and opens the store. It wants that many keys.
func (f *storeFlags) open(env *cli.Env, args []string, keys int) (s *filestore.Store, key string, code int, ok bool) {
	rest, code, ok := f.Parse(env, args)
	if !ok {
		return nil, "", code, false
	}
	switch {
	case f.dir == "":
		return nil, "", f.Misused(env, "name the directory of the store with -dir"), false
	case len(rest) < keys:
		return nil, "", f.Misused(env, "name the KEY of a conversation; convo store ls lists them"), false
	case len(rest) > keys:
		return nil, "", f.Misused(env, "there is one argument too many: %q", rest[keys]), false
	}
	info, err := os.Stat(f.dir)
	if err == nil && !info.IsDir() {
		err = errors.New("this is not a directory")
	}
	if err != nil {
		return nil, "", env.Fail(cli.Unreadable, "%s: %s", f.dir, cause(err)), false
	}
	if keys > 0 {
		key = rest[0]
		if err := convo.CheckKey(key); err != nil {
			return nil, "", f.Misused(env, "%s", strings.TrimPrefix(err.Error(), "convo: ")), false
		}
	}
	return &filestore.Store{Dir: f.dir}, key, cli.OK, true
}

// storeFail prints an error of a store and returns the exit code.
func storeFail(env *cli.Env, dir, key string, err error) int {
	damage, damaged := errors.AsType[*convo.DamageError](err)
	switch {
	case errors.Is(err, context.Canceled):
		return cli.Interrupted
	case errors.Is(err, convo.ErrNotFound):
		return env.Fail(cli.Unreadable, "%s: there is no conversation %q; convo store ls lists them", dir, key)
	case damaged:
		return env.Fail(cli.Unreadable, "%s: the log of %q is damaged: %w\nconvo store salvage copies what is whole to a new key", dir, key, damage.Err)
	}
	return env.Fail(cli.Unreadable, "%s: %s", dir, strings.TrimPrefix(err.Error(), "convo: "))
}

// A listed is what store ls -json writes for each conversation, in one line.
type listed struct {
	Key     string    `json:"key,omitempty"`
	Title   string    `json:"title,omitempty"`
	Seq     uint64    `json:"seq,omitempty"`
	Created time.Time `json:"created,omitzero"`
	Updated time.Time `json:"updated,omitzero"`
	Entries int       `json:"entries"`
	Tokens  int       `json:"tokens"`
	Error   string    `json:"error,omitempty"`
}

func storeList(ctx context.Context, env *cli.Env, args []string) int {
	flags := newStoreFlags("ls", "", "Lists the conversations of a store, the newest first: when each was saved, how many records, entries and tokens it has, its key and its title. The exit code is 1 if the end of a log is damaged, and with it the conversation.")
	prefix := flags.String("prefix", "", "list the keys that begin with `TEXT`")
	asJSON := flags.Bool("json", false, "write an object for each conversation")
	s, _, code, ok := flags.open(env, args, 0)
	if !ok {
		return code
	}
	var t cli.Table
	row := func(updated, record, entries, tokens string) {
		if env.Width < 60 {
			t.Add(updated[:min(len(updated), 10)], tokens)
		} else {
			t.Add(updated, record, entries, tokens)
		}
	}
	row("updated", "record", "entries", "tokens")
	var names []string
	code = cli.OK
	for head, err := range s.List(ctx, convo.ListOptions{Prefix: *prefix}) {
		if err != nil {
			if errors.Is(err, context.Canceled) {
				return cli.Interrupted
			}
			text := strings.TrimPrefix(err.Error(), "convo: ")
			if code = cli.Findings; *asJSON {
				writeJSON(env, listed{Error: text})
			} else {
				env.Note("%s: %s", flags.dir, text)
			}
			continue
		}
		if *asJSON {
			writeJSON(env, listed{head.Key, head.Title, head.Seq, head.Created, head.Updated, head.Entries, head.Tokens, ""})
			continue
		}
		row(when(head.Updated), cli.Number(int(head.Seq)), cli.Number(head.Entries), cli.Number(head.Tokens))
		name := cli.Line(head.Key, 60)
		if head.Title != "" {
			name += "  " + cli.Line(head.Title, 60)
		}
		names = append(names, name)
	}
	if len(names) > 0 {
		lines := strings.Split(t.String(), "\n")
		fmt.Fprintln(env.Stdout, lines[0]+"  key and title")
		for i, name := range names {
			if env.StdoutTerminal {
				name = cli.Line(name, max(env.Width-cli.Columns(lines[i+1])-2, 10))
			}
			fmt.Fprintln(env.Stdout, lines[i+1]+"  "+name)
		}
	}
	if len(names) == 0 && !*asJSON && code == cli.OK {
		env.Note("%s: there are no conversations in it", flags.dir)
	}
	return code
}

// damageText returns what is wrong with a log, without the name of the function that helps,
// which follows the last semicolon.
func damageText(err error) string {
	text := strings.TrimPrefix(err.Error(), "convo: ")
	if i := strings.LastIndex(text, "; "); i > 0 {
		text = text[:i]
	}
	return text
}

// when returns a time for a person.
func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// load returns the conversation under a key as of a record.
func load(ctx context.Context, s convo.Store, key string, seq uint64) (*conversation, error) {
	snap, err := convo.Load(ctx, s, key, seq)
	if err != nil {
		return nil, err
	}
	c := &conversation{at: key, format: ownFormat, snap: snap}
	c.fromSnapshot("")
	return c, nil
}

func storeShow(ctx context.Context, env *cli.Env, args []string) int {
	flags := newStoreFlags("show", "KEY", "Shows a conversation of a store: what fills its window, its messages in short, and its newest records.")
	all := flags.Bool("all", false, "show all messages and records, and not the newest alone")
	seq := flags.Uint64("seq", 0, "show it as of the record with the number `N`; the newest if absent")
	window := flags.Int("window", 0, "the context window of the model, in `TOKENS`")
	html := flags.Bool("html", false, "write a page for a browser instead")
	s, key, code, ok := flags.open(env, args, 1)
	if !ok {
		return code
	}
	if *window < 0 {
		return flags.Misused(env, "-window %d: want a number of tokens", *window)
	}
	if *html && env.StdoutTerminal {
		return flags.Misused(env, "-html writes a page; send it to a file with > page.html")
	}
	c, err := load(ctx, s, key, *seq)
	if errors.Is(err, convo.ErrNotFound) && *seq > 0 {
		return env.Fail(cli.Unreadable, "%s: there is no record %d of %q", flags.dir, *seq, key)
	}
	if err != nil {
		return storeFail(env, flags.dir, key, err)
	}
	h, faults, err := c.history(convo.Options{Limits: convo.Limits{Window: *window}, Overheads: c.overheads()})
	if err != nil {
		return fail(env, "store show", err)
	}
	if *html {
		if err := inspect.WriteHTML(env.Stdout, h.Snapshot()); err != nil {
			return env.Fail(cli.Unreadable, "the page cannot be written: %w", err)
		}
		return cli.OK
	}
	printWindow(env, c, h, faults)
	printMessages(env, c.snap, *all)
	return printRecords(ctx, env, s, flags.dir, key, *all)
}

// printMessages prints the newest messages of a snapshot, or all, each in a line.
func printMessages(env *cli.Env, snap *convo.Snapshot, all bool) {
	const most = 20
	fmt.Fprintln(env.Stdout)
	var t cli.Table
	t.Left = 3
	line := func(text string) string { return cli.Line(text, max(env.Width-32, 20)) }
	summary, summarised := snap.Summary()
	for i, e := range snap.All() {
		if summarised && (i == 0 && e.Message.Role != convo.RoleSystem || i > 0 && isFirst(snap, i)) {
			t.Add("", "summary", line(summary.Text), "")
			summarised = false
		}
		role := string(e.Message.Role)
		if e.Pinned {
			role += " (pinned)"
		}
		text := strings.TrimPrefix(strings.TrimPrefix(fmt.Sprint(e.Message), string(e.Message.Role)), ": ")
		t.Add(fmt.Sprint(e.ID), role, line(text), cli.Number(e.Tokens))
	}
	if summarised {
		t.Add("", "summary", line(summary.Text), "")
	}
	if n := len(t.Rows) - most; n > 0 && !all {
		t.Rows = t.Rows[n:]
		fmt.Fprintf(env.Stdout, "the newest %d messages; -all also shows the %s before\n", most, cli.Number(n))
	}
	fmt.Fprint(env.Stdout, t.String())
}

// isFirst reports whether the entry with index i is the first after the system entries.
func isFirst(snap *convo.Snapshot, i int) bool {
	e, _ := snap.At(i)
	before, _ := snap.At(i - 1)
	return e.Message.Role != convo.RoleSystem && before.Message.Role == convo.RoleSystem && before.Turn == 0
}

// printRecords prints the newest records of a log, or all.
func printRecords(ctx context.Context, env *cli.Env, s *filestore.Store, dir, key string, all bool) int {
	most := 10
	if all {
		most = math.MaxInt
	}
	var rows [][]string
	var full []string
	var torn int64
	n := 0
	code := cli.OK
	for r, err := range s.Records(ctx, key, 1) {
		if err != nil {
			if errors.Is(err, context.Canceled) {
				return cli.Interrupted
			}
			code = cli.Findings
			env.Note("%s: %s", dir, damageText(err))
			continue
		}
		n++
		kind := ""
		if r.Full {
			kind = "full"
			full = append(full, fmt.Sprint(r.Seq))
		}
		rows = append(rows, []string{fmt.Sprint(r.Seq), when(r.Updated), cli.Number(r.Entries), cli.Number(r.Tokens), cli.Number(len(r.Data)), kind})
		rows = rows[max(0, len(rows)-most):]
		torn = r.Torn
	}
	if n == 0 {
		return code
	}
	about := "full"
	if left := len(full) - most; left > 0 {
		about, full = fmt.Sprintf("the newest %d of %d full", most, len(full)), full[left:]
	}
	fmt.Fprintf(env.Stdout, "\n%s; %s: %s\n", cli.Plural(n, "record"), about, strings.Join(full, ", "))
	if n > len(rows) {
		fmt.Fprintf(env.Stdout, "the newest %d records; -all also shows the %s before\n", len(rows), cli.Number(n-len(rows)))
	}
	var t cli.Table
	t.Add("record", "updated", "entries", "tokens", "bytes", "")
	for _, row := range rows {
		t.Add(row...)
	}
	fmt.Fprint(env.Stdout, t.String())
	if torn > 0 {
		fmt.Fprintf(env.Stdout, "%s after the newest record are not a whole record: a writer was interrupted\n", cli.Plural(int(torn), "byte"))
	}
	return code
}

func storeExport(ctx context.Context, env *cli.Env, args []string) int {
	flags := newStoreFlags("export", "KEY", "Writes a conversation of a store: as the JSON of a snapshot, which the other subcommands of convo and convo.Restore read, or with -to as the request of a provider.")
	seq := flags.Uint64("seq", 0, "write it as of the record with the number `N`; the newest if absent")
	to := flags.String("to", "", "the `FORMAT` to write instead: "+strings.Join(formatNames, ", "))
	s, key, code, ok := flags.open(env, args, 1)
	if !ok {
		return code
	}
	if *to != "" {
		if _, err := newFormat(*to, ""); err != nil {
			return flags.Misused(env, "%w", err)
		}
	}
	c, err := load(ctx, s, key, *seq)
	if errors.Is(err, convo.ErrNotFound) && *seq > 0 {
		return env.Fail(cli.Unreadable, "%s: there is no record %d of %q", flags.dir, *seq, key)
	}
	if err != nil {
		return storeFail(env, flags.dir, key, err)
	}
	if *to == "" {
		body, err := c.snap.MarshalJSON()
		if err != nil {
			return storeFail(env, flags.dir, key, err)
		}
		env.WriteJSON(body)
		return cli.OK
	}
	e, code := c.encode(env, "store export", *to, c.snap)
	if e == nil {
		return code
	}
	e.tellLost(env, c)
	return e.write(env, c, *to, nil)
}

// A salvaged is what store salvage -json writes.
type salvaged struct {
	Key     string        `json:"key"`
	To      string        `json:"to"`
	Newest  uint64        `json:"newest"`
	Whole   int           `json:"whole"`
	Partial []uint64      `json:"partial"`
	Lost    []uint64      `json:"lost"`
	Gone    []convo.Range `json:"gone"`
	Damage  []string      `json:"damage"`
}

func storeSalvage(ctx context.Context, env *cli.Env, args []string) int {
	flags := newStoreFlags("salvage", "KEY", "Copies what is whole of a damaged log to a new log, under a key that is not in use, and says what was kept. The damaged log stays as it is. The exit code is 1 if something is lost.")
	to := flags.String("to", "", "the new `KEY`")
	toDir := flags.String("to-dir", "", "the `DIR` of another store to write to; that of -dir if absent")
	asJSON := flags.Bool("json", false, "write an object that says what was kept")
	s, key, code, ok := flags.open(env, args, 1)
	if !ok {
		return code
	}
	if *to == "" {
		return flags.Misused(env, "salvage writes a new log; name its key with -to")
	}
	if err := convo.CheckKey(*to); err != nil {
		return flags.Misused(env, "%s", strings.TrimPrefix(err.Error(), "convo: "))
	}
	target, dir := s, flags.dir
	if *toDir != "" {
		target, dir = &filestore.Store{Dir: *toDir}, *toDir
	}
	if *to == key && target == s {
		return flags.Misused(env, "-to %q is the damaged log; name another key", *to)
	}
	kept, err := convo.Salvage(ctx, target, *to, s, key)
	if _, taken := errors.AsType[*convo.ConflictError](err); taken {
		return env.Fail(cli.Usage, "%s: the key %q is in use; name another one with -to", dir, *to)
	}
	if err != nil {
		return storeFail(env, flags.dir, key, err)
	}
	code = cli.OK
	if len(kept.Damage) > 0 || len(kept.Partial) > 0 || len(kept.Lost) > 0 {
		code = cli.Findings
	}
	if *asJSON {
		out := salvaged{key, *to, kept.Newest, kept.Whole, append([]uint64{}, kept.Partial...), append([]uint64{}, kept.Lost...), append([]convo.Range{}, kept.Gone...), []string{}}
		for _, err := range kept.Damage {
			out.Damage = append(out.Damage, err.Error())
		}
		writeJSON(env, out)
		return code
	}
	fmt.Fprintln(env.Stdout, cli.Visible(fmt.Sprintf("wrote the log %q of %s: %s", *to, dir, kept)))
	for _, err := range kept.Damage {
		fmt.Fprintln(env.Stdout, cli.Visible("damage: "+damageText(err)))
	}
	if kept.Newest == 0 {
		fmt.Fprintln(env.Stdout, "no record has a whole state, so the new log does not open; its archive has what was kept")
	}
	return code
}

func storePrune(ctx context.Context, env *cli.Env, args []string) int {
	flags := newStoreFlags("prune", "KEY", "Removes the records of a conversation that are older than a full record, for good. What they alone hold, such as messages that have left the view, can no longer be read. Nothing is removed unless -before names the record.")
	before := flags.Uint64("before", 0, "the number `N` of the oldest record to keep, which must be a full one; convo store show lists them")
	s, key, code, ok := flags.open(env, args, 1)
	if !ok {
		return code
	}
	if *before == 0 {
		return flags.Misused(env, "prune removes records for good; name the oldest one to keep with -before")
	}
	count := func() (n int, full []string, err error) {
		for r, err := range s.Records(ctx, key, 1) {
			if err != nil {
				if _, damaged := errors.AsType[*convo.DamageError](err); damaged {
					continue
				}
				return 0, nil, err
			}
			n++
			if r.Full {
				full = append(full, fmt.Sprint(r.Seq))
			}
		}
		return n, full, nil
	}
	had, full, err := count()
	if err == nil && had == 0 {
		err = convo.ErrNotFound
	}
	if err != nil {
		return storeFail(env, flags.dir, key, err)
	}
	if err := s.Prune(ctx, key, *before); err != nil {
		if _, bad := errors.AsType[*convo.ValueError](err); bad {
			return env.Fail(cli.Usage, "store prune: record %d is not a full record of %q; the full records are %s", *before, key, strings.Join(full, ", "))
		}
		return storeFail(env, flags.dir, key, err)
	}
	left, _, err := count()
	if err != nil {
		return storeFail(env, flags.dir, key, err)
	}
	fmt.Fprintln(env.Stdout, cli.Visible(fmt.Sprintf("removed %s of %q that were older than record %d; %s are left", cli.Plural(had-left, "record"), key, *before, cli.Number(left))))
	return cli.OK
}

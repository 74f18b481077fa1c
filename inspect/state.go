package inspect

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo"
)

// A state is what an address says: which conversation, which messages, and what is open.
type state struct {
	number  int // of the conversation, from 1; 0: the only one
	list    bool
	key     string // of a conversation in the Store
	seq     uint64 // of its record; 0: the newest
	prefix  string // of the keys in the list
	after   convo.LogInfo
	from    convo.ID // the first entry to show; 0: the newest entries
	archive convo.ID // the first entry of the archive to show; 0: not the archive
	check   bool     // whether to check a long conversation
	open    []string // IDs of what is open
	whole   string   // ID of the element whose texts are shown whole
	refresh int      // seconds; 0: never
}

const (
	mostOpen    = 20
	mostSeconds = 3600
	mostKey     = 4096 // bytes; no Store has a longer key
)

// element matches the IDs of what can be opened: an entry, a compaction, an entry that it
// removed, the summary, the tools, and what the words mean.
var element = regexp.MustCompile(`^(e\d{1,16}|c\d{1,9}(e\d{1,16})?|summary|tools|words)$`)

// readState reads an address. What it does not understand it leaves out.
func readState(q url.Values) state {
	number := func(name string) int { n, _ := strconv.Atoi(q.Get(name)); return max(n, 0) }
	id := func(name string) convo.ID { return convo.ID(min(int64(number(name)), 1<<53)) }
	at := state{number: number("c"), list: q.Has("list"), from: id("from"), archive: id("archive"), check: q.Has("check")}
	at.key = first(q.Get("key"), mostKey+1) // one more, so that a longer key is refused
	at.prefix = first(q.Get("prefix"), mostKey)
	at.seq, _ = strconv.ParseUint(q.Get("seq"), 10, 64)
	at.refresh = min(number("refresh"), mostSeconds)
	for _, id := range q["open"] {
		if len(at.open) < mostOpen && element.MatchString(id) && !at.isOpen(id) {
			at.open = append(at.open, id)
		}
	}
	if whole := q.Get("whole"); element.MatchString(whole) {
		at.whole = whole
	}
	if at.after.Key = first(q.Get("after"), mostKey); at.after.Key != "" {
		at.after.Updated, _ = time.Parse(time.RFC3339Nano, q.Get("updated"))
	}
	return at
}

// href returns the address of at.
func (at state) href(fragment string) string {
	q := url.Values{}
	set := func(name, value string) {
		if value != "" && value != "0" {
			q.Set(name, value)
		}
	}
	set("c", strconv.Itoa(at.number))
	set("key", at.key)
	set("seq", strconv.FormatUint(at.seq, 10))
	set("prefix", at.prefix)
	set("from", strconv.FormatInt(int64(at.from), 10))
	set("archive", strconv.FormatInt(int64(at.archive), 10))
	set("whole", at.whole)
	set("refresh", strconv.Itoa(at.refresh))
	if at.list {
		q.Set("list", "")
	}
	if at.check {
		q.Set("check", "")
	}
	if at.after.Key != "" {
		q.Set("after", at.after.Key)
		q.Set("updated", at.after.Updated.Format(time.RFC3339Nano))
	}
	if len(at.open) > 0 {
		q["open"] = at.open
	}
	if fragment != "" {
		fragment = "#" + fragment
	}
	return "?" + q.Encode() + fragment
}

// isOpen reports whether the address opens the element with the id.
func (at state) isOpen(id string) bool {
	return slices.Contains(at.open, id) || at.whole == id && id != ""
}

// isOpenIn reports whether the address opens an entry of a compaction.
func (at state) isOpenIn(id string) bool {
	return strings.HasPrefix(at.whole, id+"e") || slices.ContainsFunc(at.open, func(x string) bool { return strings.HasPrefix(x, id+"e") })
}

// opened returns the address at which id is open in addition. At most mostOpen elements are
// open: the element that was opened first is closed.
func (at state) opened(id string) string {
	if !slices.Contains(at.open, id) {
		at.open = append(slices.Clone(at.open[max(len(at.open)-mostOpen+1, 0):]), id)
	}
	return at.href(id)
}

// closed returns the address at which id is closed, with all in it.
func (at state) closed(id string) string {
	gone := func(x string) bool { return x == id || strings.HasPrefix(x, id+"e") }
	at.open = slices.DeleteFunc(slices.Clone(at.open), gone)
	if gone(at.whole) {
		at.whole = ""
	}
	return at.href(id)
}

// wholly returns the address at which the texts of id are shown whole.
func (at state) wholly(id string) string {
	at.whole = id
	return at.opened(id)
}

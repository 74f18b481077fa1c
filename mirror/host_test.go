package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/mirror"
)

// A host is a random framework over a Mirror. It knows what its list holds, what it gave to Add
// and what reports said has left, and nothing else.
type host struct {
	*testing.T
	seed  uint64
	step  int
	trace []string
	log   []string // what the Mirror shows and has decided
	r     *rand.Rand
	codec mirror.Codec[*line]
	opts  convo.Options
	store *convotest.MemStore
	h     *convo.History
	m     *mirror.Mirror[*line]
	list  []*line
	added []*line         // given to Add, and not in the list
	own   map[string]bool // texts that another process has appended

	texts   map[string]string     // of entries, by their keys, or IDs without one
	ids     map[string][]convo.ID // of each text
	dropped map[convo.ID]bool
	reports []convo.Report
	count   map[string]int
	stored  map[string]bool // what the list holds after it came by Add
	since   map[*line]*line // the end of the list when a message was given to Add
}

func (o *host) note(what string, args ...any) {
	o.trace = append(o.trace, fmt.Sprintf(what, args...))
	o.count[strings.Fields(what)[0]]++
}

func (o *host) ok(err error) {
	o.Helper()
	require.NoError(o, err, "seed %d, step %d: %v", o.seed, o.step, o.trace)
}

func (o *host) true(is bool, what string, args ...any) {
	o.Helper()
	if !is {
		require.Fail(o, fmt.Sprintf(what, args...), "seed %d, step %d: %v\nlist %q\nview %q", o.seed, o.step, o.trace, short(texts(o.list)), short(o.shown()))
	}
}

// short returns the beginnings of texts.
func short(all []string) (out []string) {
	for _, t := range all {
		out = append(out, strings.Join(strings.Fields(t)[:min(2, len(strings.Fields(t)))], " "))
	}
	return out
}

// units returns what a value is decoded to: the texts of its results, and its own.
func units(l *line) (all []string) {
	all = append(all, l.Results...)
	if l.Text != "" {
		all = append(all, l.Text)
	}
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

func textOf(e convo.Entry) string {
	text := e.Message.Text()
	for _, r := range e.Message.ToolResults() {
		text = r.Text()
	}
	return strings.TrimSpace(text)
}

// scan notes the texts of entries that were not seen before, while they are whole.
func (o *host) scan() {
	for _, e := range o.entries() {
		key := e.Message.Key
		if key == "" {
			key = fmt.Sprint("entry ", e.ID)
		}
		text, known := o.texts[key]
		if t := textOf(e); !known && !strings.HasPrefix(t, "[result of") {
			o.texts[key], text, known = t, t, true
		}
		if ids := o.ids[text]; known && !slices.Contains(ids, e.ID) {
			for other, ids := range o.ids { // a Reload has given the ID to another entry
				o.ids[other] = slices.DeleteFunc(ids, func(id convo.ID) bool { return id == e.ID })
			}
			o.ids[text] = append(ids, e.ID)
		}
	}
}

func (o *host) entries() (list []convo.Entry) {
	s := o.h.Snapshot()
	for i := s.Len() - 1; i >= 0; i-- {
		e, _ := s.At(i)
		if e.Message.Role == convo.RoleSystem && e.Message.Key == "" {
			break
		}
		list = append(list, e)
	}
	slices.Reverse(list)
	return list
}

func (o *host) shown() (all []string) {
	for _, e := range o.entries() {
		key := e.Message.Key
		if key == "" {
			key = fmt.Sprint("entry ", e.ID)
		}
		all = append(all, o.texts[key])
	}
	return all
}

// check compares the view with what the list says less what reports say has left.
func (o *host) check() {
	o.Helper()
	o.scan()
	shown := o.shown()
	place := map[string]int{}
	for i, t := range shown {
		_, twice := place[t]
		o.true(!twice, "%q is in the view twice", t)
		place[t] = i
	}
	sum, _ := o.h.Snapshot().Summary()
	isCovered := func(text string) bool {
		return slices.ContainsFunc(o.ids[text], func(id convo.ID) bool {
			return !o.h.Snapshot().TakenBack(id) && slices.ContainsFunc(sum.Covers, func(r convo.Range) bool { return r.First <= id && id <= r.Last })
		})
	}
	hasLeft := func(text string) bool {
		return slices.ContainsFunc(o.ids[text], func(id convo.ID) bool { return o.dropped[id] })
	}
	listed := map[string]bool{}
	last, behind := len(shown), false // of the unit behind; whether one is in the view or covered
	for _, l := range o.added {
		for _, text := range units(l) {
			_, isShown := place[text]
			behind = behind || isShown
		}
	}
	for text := range o.own {
		_, isShown := place[text]
		behind = behind || isShown
	}
	var order []int // places in the view, from the end of the list on
	system := true
	front := 0
	for _, l := range o.list {
		if system = system && l.Role == convo.RoleSystem; system {
			front++
		}
	}
	for _, l := range slices.Backward(o.list[front:]) {
		for _, text := range slices.Backward(units(l)) {
			listed[text] = true
			i, isShown := place[text]
			switch {
			case isShown:
				o.true(!isCovered(text), "%q is in the view and in the summary", text)
				behind = true
				order = append(order, i)
				if !o.stored[text] {
					o.true(i < last, "%q is not where the list has it", text)
					last = i
				}
			case isCovered(text):
				behind = true
			default:
				o.true(behind && hasLeft(text), "%q of the list is in no request", text)
			}
		}
	}
	if !slices.IsSortedFunc(order, func(a, b int) int { return b - a }) {
		o.count["kept"]++ // what was stored elsewhere stays, since the view would begin with an answer
	}
	for _, l := range o.added {
		for _, text := range units(l) {
			_, isShown := place[text]
			waits := o.h.Snapshot().OpenCalls() != nil || o.ids[text] == nil
			o.true(isShown || isCovered(text) || hasLeft(text) || waits, "%q of Add is in no request", text)
			listed[text] = true
		}
	}
	for _, text := range shown {
		o.true(listed[text] || o.own[text] || strings.Contains(text, "interrupted"), "%q is in the view, and nobody has it", text)
	}
	o.values()
}

// values checks that what is whole in the view is the framework's own value.
func (o *host) values() {
	o.Helper()
	view, err := o.m.View(o.h.Snapshot())
	o.ok(err)
	o.logged(view)
	whole := map[string]bool{}
	for _, e := range o.entries() {
		whole[textOf(e)] = true
	}
	for _, l := range o.list {
		all := units(l)
		if l.from != nil || len(all) == 0 || o.stored[all[0]] || l.Role == convo.RoleSystem || slices.ContainsFunc(all, func(t string) bool { return !whole[t] }) {
			continue
		}
		o.true(slices.Contains(view, l), "%q is not the value of the list", all)
	}
}

func (o *host) sync() {
	o.Helper()
	o.ok(o.m.Sync(o.list))
	o.adopt()
	o.check()
	data, err := o.m.Decisions()
	o.log = append(o.log, fmt.Sprintf("step %d: %s %v", o.step, times.ReplaceAll(data, nil), err))
}

// adopt moves what the list holds by now out of added.
func (o *host) adopt() {
	o.added = slices.DeleteFunc(o.added, func(l *line) bool {
		return slices.ContainsFunc(o.list, func(k *line) bool { return slices.Equal(units(k), units(l)) })
	})
}

func (o *host) line(role convo.Role, what string) *line {
	l := newLine(role, "")
	l.Text = l.ID + " " + what + " " + strings.Repeat("word ", o.r.IntN(30)) + "."
	return l
}

// isOpen reports whether the list ends with a call.
func (o *host) isOpen() bool { return len(o.list) > 0 && len(o.list[len(o.list)-1].Calls) > 0 }

func (o *host) report(r convo.Report) {
	for _, id := range r.Dropped {
		o.dropped[id] = true
	}
	if r.Outcome == convo.OutcomeApplied {
		o.reports = append(o.reports, r)
	}
}

func (o *host) act() {
	o.list = slices.Clone(o.list)
	op := o.r.IntN(30)
	if o.isOpen() {
		if op < 2 {
			l := o.line(convo.RoleUser, "typed")
			o.note("add %s", l.ID)
			if o.r.IntN(2) == 0 {
				l.ID = ""
			}
			o.ok(o.m.Add(l))
			o.added = append(o.added, l)
			o.since[l] = o.list[len(o.list)-1]
		}
		call := o.list[len(o.list)-1]
		l := newLine(convo.RoleTool, "")
		for i := range call.Calls {
			l.Results = append(l.Results, fmt.Sprint(l.ID, " ", i, " ", strings.Repeat("found ", o.r.IntN(80)), "."))
		}
		o.note("results %s", l.ID)
		o.list = append(o.list, l)
		o.sync()
		return
	}
	said := slices.DeleteFunc(slices.Clone(o.list), func(l *line) bool { return l.Role == convo.RoleSystem })
	ends := len(said) == 0 || said[len(said)-1].Role == convo.RoleAssistant
	switch {
	case op < 10 && !ends:
		l := o.line(convo.RoleAssistant, "looks")
		for i := range 1 + o.r.IntN(3) {
			l.Calls = append(l.Calls, fmt.Sprint("c", i))
		}
		o.note("call %s", l.ID)
		o.list = append(o.list, l)
		o.sync()
	case op < 12 && !ends:
		o.list = append(o.list, o.line(convo.RoleAssistant, "answers"))
		o.note("answer")
		o.sync()
	case op < 14 || op < 12 && ends:
		l := o.line(convo.RoleUser, "asks")
		o.note("ask %s", l.ID)
		o.list = append(o.list, l)
		o.sync()
	case op == 14:
		l := o.line(convo.RoleSystem, "notes")
		o.note("note %s", l.ID)
		o.list = append(o.list, l)
		o.sync()
	case op < 17:
		l := o.line(convo.RoleUser, "typed")
		o.note("add %s", l.ID)
		if o.r.IntN(2) == 0 {
			l.ID = "" // it has no row yet
		}
		o.ok(o.m.Add(l))
		o.added = append(o.added, l)
		o.since[l] = o.list[len(o.list)-1]
		o.scan()
		o.check()
	case op == 17 && len(o.added) > 0: // the host has stored what was typed, at the end or before it
		l := o.added[0].clone()
		if sum, ok := o.h.Snapshot().Summary(); ok && slices.ContainsFunc(o.ids[units(l)[0]], func(id convo.ID) bool { return id < sum.Covers[len(sum.Covers)-1].Last }) {
			return // nothing can be put before what the summary stands for
		}
		if l.ID == "" {
			l.ID = newLine(convo.RoleUser, "").ID
		}
		if o.codec.Key == nil || l.ID != o.added[0].ID { // what is said again after a turn has ended is another message
			from := slices.Index(o.list, o.since[o.added[0]])
			if from < 0 || slices.ContainsFunc(o.list[from+1:], func(l *line) bool { return l.Role == convo.RoleAssistant && len(l.Calls) == 0 }) {
				return
			}
		}
		at := len(o.list)
		if o.list[at-1].Role == convo.RoleUser && o.r.IntN(2) == 0 {
			at--
		}
		o.note("store %s at %d", l.ID, at)
		o.stored[units(l)[0]] = true
		o.list = slices.Insert(o.list, at, l)
		if err := o.m.Sync(o.list); err != nil {
			o.true(errors.As(err, new(*mirror.PastError)), "%v", err)
			o.log = append(o.log, err.Error())
			o.list = slices.Delete(o.list, at, at+1)
		}
		o.sync()
	case op == 18:
		o.note("compact")
		if r, err := o.h.Compact(context.Background(), ""); err == nil {
			o.report(r)
		}
		o.check()
	case op == 19 && len(o.reports) > 0:
		r := o.reports[len(o.reports)-1]
		o.reports = o.reports[:len(o.reports)-1]
		if o.h.Undo(r) == nil {
			o.note("undo")
			for _, e := range o.entries() {
				delete(o.dropped, e.ID)
			}
		}
		o.sync()
	case op < 22:
		o.rewind()
	case op < 24:
		o.edit()
	case op == 24:
		o.reword()
	case op < 27:
		o.restart()
	case op == 27:
		o.list[0] = newLine(convo.RoleSystem, fmt.Sprint("Be brief, ", o.step))
		o.note("system")
		o.sync()
	case op == 28:
		o.reload()
	default:
		o.note("prepare")
		if _, _, err := o.m.Prepare(context.Background(), o.list); err != nil {
			o.true(errors.As(err, new(*convo.FloorError)), "%v", err)
		}
		o.check()
	}
}

// rewind takes back a part of the History, and syncs the same list, a shorter one, or one with
// another end.
func (o *host) rewind() {
	s := o.h.Snapshot()
	list := o.entries()
	if len(list) == 0 {
		return
	}
	e := list[o.r.IntN(len(list))]
	if o.h.RewindTo(e.ID) != nil {
		return
	}
	o.note("rewind to %d", e.ID)
	o.added = slices.DeleteFunc(o.added, func(l *line) bool {
		return slices.ContainsFunc(s.OpenCalls(), func(convo.ToolCall) bool { return false }) || slices.ContainsFunc(o.ids[units(l)[0]], func(id convo.ID) bool { return id > e.ID && o.h.Snapshot().TakenBack(id) })
	})
	if o.r.IntN(2) == 0 && len(o.h.Snapshot().OpenCalls()) == 0 {
		l := o.line(convo.RoleUser, "typed")
		o.note("add %s", l.ID)
		if o.r.IntN(2) == 0 {
			l.ID = "" // it has no row yet
		}
		o.ok(o.m.Add(l))
		o.added = append(o.added, l)
		o.since[l] = o.list[len(o.list)-1]
	}
	o.sync()
}

// edit replaces the end of the list from a place on.
func (o *host) edit() {
	at := 1 + o.r.IntN(len(o.list)-1)
	for len(o.list[at-1].Calls) > 0 || o.list[at].Role == convo.RoleTool {
		at++
		if at == len(o.list) {
			return
		}
	}
	next := append(o.list[:at:at], o.line(convo.RoleUser, "edits"))
	done, err := o.m.Follow(next)
	if err != nil {
		o.true(errors.As(err, new(*mirror.PastError)), "%v", err)
		o.log = append(o.log, err.Error())
		o.note("refused edit")
		o.check()
		return
	}
	o.note("edit %d of %d: %v", at, len(o.list), done)
	o.list = next
	if done.Anew {
		clear(o.dropped)
	}
	o.adopt()
	o.sync()
}

// reword makes the list anew, with other white space and results in other messages.
func (o *host) reword() {
	var next []*line
	for _, l := range o.list {
		own := l.clone()
		if own.Text != "" && l.Role != convo.RoleSystem {
			own.Text, own.from = " "+strings.TrimSpace(own.Text)+"\n", l
		}
		if len(l.Results) < 2 || l.Text != "" {
			next = append(next, own)
			continue
		}
		for i, text := range l.Results {
			one := l.clone()
			if one.Results, one.from = []string{text}, l; i > 0 {
				one.ID = fmt.Sprint(l.ID, " row ", i)
			}
			next = append(next, one)
		}
	}
	o.list = next
	o.note("reword")
	o.sync()
}

func (o *host) restart() {
	opts := o.opts
	shown := o.shown() // New finds a list by what of it is in the view
	isFound := slices.ContainsFunc(o.list, func(l *line) bool { return l.Role != convo.RoleSystem && slices.Contains(shown, units(l)[0]) })
	if o.r.IntN(3) > 0 || o.codec.Key == nil || !isFound {
		data, err := o.m.Decisions()
		o.ok(err)
		o.h.Close()
		for i, l := range o.list {
			o.list[i] = l.clone()
			o.list[i].from = nil
		}
		m, done, err := mirror.Resume(data, o.list, o.codec, &opts)
		o.ok(err)
		o.true(done.Past == nil, "%v", done)
		o.note("resume")
		o.h, o.m, o.store = m.History(), m, &convotest.MemStore{}
		o.ok(o.h.Attach(context.Background(), o.store, "s"))
	} else {
		o.ok(o.h.Save(context.Background()))
		o.h.Close()
		h, err := convo.Open(context.Background(), o.store, "s", &opts)
		o.ok(err)
		o.note("open")
		o.h, o.m = h, mirror.New(h, o.codec)
		shown := o.shown() // a new Mirror knows nothing else of what Add gave
		o.added = slices.DeleteFunc(o.added, func(l *line) bool { return !slices.Contains(shown, units(l)[0]) })
	}
	o.reports = nil
	o.sync()
}

// reload takes over what another process has appended.
func (o *host) reload() {
	ctx := context.Background()
	if o.h.Status().OpenCalls > 0 || o.h.Save(ctx) != nil {
		return
	}
	other, err := convo.Open(ctx, o.store, "s", &convo.Options{Roles: o.opts.Roles})
	if err != nil {
		return
	}
	defer other.Close()
	l := o.line(convo.RoleUser, "is another's")
	m := convo.User(l.Text)
	m.Key = l.ID
	if _, err := other.AppendRows(m); err != nil {
		return
	}
	o.own[units(l)[0]] = true
	o.ok(other.Save(ctx))
	o.list = append(o.list, o.line(convo.RoleUser, "asks"))
	o.sync()
	_, _, err = o.h.Reload(ctx)
	o.ok(err)
	o.note("reload")
	o.sync()
}

// A Mirror that compares values instead of decoding them shows and decides the same.
func TestMirror_Host(t *testing.T) {
	count := map[string]int{}
	for seed := range long.Or[uint64](100, 5_000) {
		decodes, compares := live(t, seed, count, false), live(t, seed, count, true)
		require.Equal(t, len(decodes.log), len(compares.log), "seed %d", seed)
		for i, line := range decodes.log {
			require.Equal(t, line, compares.log[i], "seed %d: %v", seed, compares.trace)
		}
	}
	t.Log(count)
	require.Less(t, count["kept"], count["store"])
	for _, what := range []string{"add", "results", "note", "store", "compact", "undo", "rewind", "edit", "reword", "resume", "open", "reload"} {
		require.Positive(t, count[what], what)
	}
}

// live returns a host after 60 steps, which are the same for the same seed.
func live(t *testing.T, seed uint64, count map[string]int, compares bool) *host {
	names = 0
	r := rand.New(rand.NewPCG(seed, 47))
	o := &host{
		T: t, seed: seed, r: r, codec: byPlace, store: &convotest.MemStore{}, own: map[string]bool{},
		texts: map[string]string{}, ids: map[string][]convo.ID{}, dropped: map[convo.ID]bool{}, count: count, since: map[*line]*line{}, stored: map[string]bool{},
	}
	if seed%2 == 0 {
		o.codec = byKey
	}
	if compares {
		o.codec.Same = sameLine
	}
	o.opts = convo.Options{Limits: convo.Limits{Window: 1_500 + 500*r.IntN(3), Reserve: 200}, TagKey: "restart"}
	o.opts.OnCompaction = o.report
	if seed%4 > 1 {
		o.opts.Roles = convo.Relaxed()
	}
	switch seed % 3 {
	case 0:
		o.opts.Strategy = convo.Truncate{}
	case 1:
		o.opts.Strategy = convo.Summarize{With: convotest.Canned{Text: "What was said."}}
	}
	h, err := convo.Open(context.Background(), o.store, "s", &o.opts)
	o.ok(err)
	defer func() { o.h.Close() }()
	o.h, o.m = h, mirror.New(h, o.codec)
	o.list = []*line{newLine(convo.RoleSystem, "Be brief."), o.line(convo.RoleUser, "asks")}
	o.sync()
	for o.step = range 60 {
		o.act()
	}
	return o
}

// times are those in Decisions.
var times = regexp.MustCompile(`"20\d\d-[^"]*Z"`)

// logged writes down what the Mirror shows.
func (o *host) logged(view []*line) {
	place := func(l *line) int { return slices.Index(o.list, l) }
	for _, l := range view {
		o.log = append(o.log, fmt.Sprintf("%d of the list, made of %d: %s %q %q", place(l), place(l.from), l.ID, l.Text, l.Results))
	}
}

package modeltest

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// An entry is an entry of the model. Its uid identifies this version of it: rewriting it
// or clearing a result makes an entry with the same ID and another uid.
type entry struct {
	id, head convo.ID // head is the first entry of its exchange
	uid      int
	like     int // the uid of an entry that shows the same; 0: its own
	reads    int // differs between entries with the same ID if a summarizer reads different text
	msg      message
	turn     int
	tools    bool // this entry, or an earlier one in its turn, called a tool

	// The rest of the message as it was appended, after it was rewritten or results in it
	// were cut or cleared.
	original *original // nil: none is kept
	missing  int       // tokens that msg lacks
}

// An original is the message of an entry before it was changed.
type original struct {
	msg, read message // read is for a summarizer
	missing   int     // tokens that msg already lacks
}

// looks returns a number that is the same for entries with the same message in the same
// place.
func (x entry) looks() int { return cmp.Or(x.like, x.uid) }

// isSystem reports whether x is a system entry.
func (x entry) isSystem() bool { return x.msg.role == convo.RoleSystem && !x.msg.note }

// changed returns x with another message. The read argument is the message that a
// summarizer reads then.
func (m *model) changed(x entry, msg, read message) entry {
	o := x.before()
	o.read = read
	x.uid, x.like, x.msg = m.newUID(), 0, msg
	x.missing = o.missing + max(read.tokens(m.count)-msg.tokens(m.count), 0)
	x.original = nil
	if m.keepOriginals {
		x.original = &o
	}
	return x
}

// before returns a copy of the original of x, or x itself as one.
func (x entry) before() original {
	if x.original == nil {
		return original{x.msg, x.msg, x.missing}
	}
	return *x.original
}

// A message is a message of the model: a text, or calls and perhaps a text, or
// results.
type message struct {
	role    convo.Role
	thought string // the reasoning before the text
	idle    bool   // the thought is not sent
	text    string
	calls   []string // the ids; the tool of each is toolName(id)
	removed []string // what stands in place of the arguments of each call; empty: they are callArguments
	results []result
	goesOn  bool // continues a run of queued user messages
	again   bool // appended again by a Reload, which is not subject to the role policy
	pinned  bool // it was pinned before Rewind put it back into the queue
	note    bool // a system message after other messages
}

type result struct {
	id, text       string
	noName, noID   bool // appended without a name, or without an id
	isErr, cleared bool
}

// The weight of messages in addition to their texts when Options.Overheads is zero.
const (
	messageTokens = 4
	callTokens    = 8
	resultTokens  = 4
)

// callArguments are the arguments of every call as it is appended.
const callArguments = `{"n": 1.0}`

// arguments returns the arguments of the i-th call.
func (m message) arguments(i int) string {
	if i < len(m.removed) && m.removed[i] != "" {
		return m.removed[i]
	}
	return callArguments
}

// toolName returns the name of the tool of a call. There are two tools.
func toolName(id string) string { return "tool_" + string('a'+id[len(id)-1]%2) }

// A counter counts the tokens of a text in the same way as the History under test.
type counter func(string) int

// tokens returns the sum over the texts of m, each counted alone, and the
// overheads.
func (m message) tokens(count counter) int {
	n := messageTokens + count(m.text)
	if m.note {
		n += count(noteTags[0]) + count(noteTags[1])
	}
	if !m.idle {
		n += count(m.thought)
	}
	for i, id := range m.calls {
		n += callTokens + count(id) + count(toolName(id)) + count(m.arguments(i))
	}
	for _, r := range m.results {
		n += resultTokens + count(r.id) + count(toolName(r.id)) + count(r.text)
	}
	return n
}

// noteTags holds the texts that Snapshot.AsUser puts before and after a note, with the
// key that tokens are counted with.
var noteTags = func() (texts [2]string) {
	parts := convo.NewSnapshot(nil).AsUser(convo.System("x")).Parts
	for i, p := range []convo.Part{parts[0], parts[2]} {
		texts[i] = regexp.MustCompile(`key="@\w+"`).ReplaceAllString(string(p.(convo.Text)), `key="qmzvkrtx"`)
	}
	return texts
}()

// wrapper holds the texts that Snapshot.Messages puts before and after a
// summary. The key in it is the one that tokens are counted with, whichever key
// the History has.
var wrapper = func() (texts [2]string) {
	s, err := convo.NewSnapshot(nil).With(convo.Edit{Summary: &convo.Summary{Text: "x"}})
	if err != nil {
		panic(err)
	}
	text := regexp.MustCompile(`key="@\w+"`).ReplaceAllString(s.Messages()[0].Text(), `key="qmzvkrtx"`)
	before, behind, _ := strings.Cut(text, "\nx\n")
	return [2]string{before + "\n", "\n" + behind}
}()

// A view is everything that a snapshot shows.
type view struct {
	count        counter
	sys, list    []entry    // the system entries, and the others
	placed                  // the summary
	pins         []convo.ID // the first entries of pinned exchanges
	ephemeral    []message
	ephemeralUID int
	touched      int      // the newest turn in which an edit dropped or cleared anything
	appended     int      // tokens since the newest edit
	last         convo.ID // the newest ID given
	edits        []int    // the uids of the edits in the view
}

// A placed is a summary in a view. Its slices are never written to.
type placed struct {
	summary    string // empty: there is none
	summaryUID int
	covers     []convo.ID // the IDs that the summary stands for
	reads      []convo.ID // the IDs of what it has read besides
	updates    int
	goesOn     bool     // in older: the text is only the beginning, until compare has seen the rest
	older      []placed // what was there before each of the last readings, as far as that is known; the newest first
}

// mostOlder is how many readings can be taken back.
const mostOlder = 2

// back returns the newest of p and those before it for whose reads passes is false, or the oldest
// that is known.
func (p placed) back(passes func(reads []convo.ID) bool) placed {
	for len(p.older) > 0 && passes(p.reads) {
		rest := p.older[1:]
		p = p.older[0]
		p.older = rest
	}
	return p
}

// newest returns the last of ascending IDs, or 0.
func newest(ids []convo.ID) convo.ID {
	if len(ids) == 0 {
		return 0
	}
	return ids[len(ids)-1]
}

// without is back for entries whose content is forgotten.
func (p placed) without(forgotten []convo.ID) placed {
	isForgotten := func(id convo.ID) bool { return slices.Contains(forgotten, id) }
	return p.back(func(reads []convo.ID) bool { return slices.ContainsFunc(reads, isForgotten) })
}

// upTo returns the summary after all that is newer than last was taken back.
func (p placed) upTo(last convo.ID) placed {
	if len(p.covers) > 0 && p.covers[0] > last {
		return placed{} // nothing is left that it stands for
	}
	return p.back(func(reads []convo.ID) bool { return newest(reads) > last })
}

// before returns p and what was before it, as what is before another summary.
func (m *model) before(p placed) []placed {
	older := p.older
	p.older = nil
	all := append([]placed{p}, older...)
	if len(all) <= mostOlder {
		return all
	}
	all = all[:mostOlder]
	for i := range all {
		all[i].summaryUID = m.newUID() // they are copies
	}
	return all
}

// clone returns a copy of the view with its own slices.
func (v view) clone() view {
	v.sys, v.list = slices.Clone(v.sys), slices.Clone(v.list)
	v.pins, v.ephemeral = slices.Clone(v.pins), slices.Clone(v.ephemeral)
	v.edits = slices.Clone(v.edits)
	return v
}

func (v view) len() int { return len(v.sys) + len(v.list) }

// raw returns the raw tokens of the view.
func (v view) raw() int {
	n := 0
	for _, e := range slices.Concat(v.sys, v.list) {
		n += e.msg.tokens(v.count)
	}
	return n + v.summaryTokens() + v.ephemeralTokens()
}

func (v view) summaryTokens() int {
	if v.summary == "" {
		return 0
	}
	return messageTokens + v.count(wrapper[0]) + v.count(v.summary) + v.count(wrapper[1])
}

func (v view) ephemeralTokens() int {
	n := 0
	for _, m := range v.ephemeral {
		n += m.tokens(v.count)
	}
	return n
}

// floor returns the view with only the entries that no compaction may remove.
func (v view) floor() view {
	only := v.clone()
	only.placed = placed{}
	only.list = slices.DeleteFunc(only.list, func(e entry) bool { return !v.isFloor(e) && !v.isPinned(e) })
	return only
}

func (v view) find(id convo.ID) (entry, bool) {
	for _, e := range slices.Concat(v.sys, v.list) {
		if e.id == id {
			return e, true
		}
	}
	return entry{}, false
}

// exchange returns the IDs of the exchange that begins with head.
func (v view) exchange(head convo.ID) []convo.ID {
	var ids []convo.ID
	for _, e := range v.list {
		if e.head == head {
			ids = append(ids, e.id)
		}
	}
	return ids
}

func (v view) turns() int {
	seen := map[int]bool{}
	for _, e := range v.list {
		if e.turn > 0 {
			seen[e.turn] = true
		}
	}
	return len(seen)
}

// isFloor reports whether an entry is floor for another reason than a pin.
func (v view) isFloor(e entry) bool {
	if len(v.list) == 0 {
		return false
	}
	newest := v.list[len(v.list)-1]
	if e.msg.role == convo.RoleUser && e.turn == newest.turn {
		return true
	}
	if e.msg.note { // until an assistant message or a result follows
		return !slices.ContainsFunc(v.list, func(x entry) bool {
			return x.id > e.id && (x.msg.role == convo.RoleAssistant || x.msg.role == convo.RoleTool)
		})
	}
	for i := len(v.list) - 1; i >= 0; i-- {
		if !v.list[i].msg.note {
			if v.list[i].head == e.head {
				return true
			}
			break
		}
	}
	// A round of calls is floor until an assistant message follows, and so are
	// the user messages of its turn.
	head, turn := v.unanswered()
	return head != 0 && (e.head == head || e.msg.role == convo.RoleUser && e.turn == turn)
}

// unanswered returns the head and the turn of the round of calls that no assistant
// message has followed yet, 0 if there is none.
func (v view) unanswered() (head convo.ID, turn int) {
	for i := len(v.list) - 1; i >= 0; i-- {
		switch e := &v.list[i]; e.msg.role {
		case convo.RoleTool:
			return e.head, e.turn
		case convo.RoleAssistant:
			return 0, 0
		case convo.RoleUser:
			if e.turn != v.list[len(v.list)-1].turn {
				return 0, 0 // an assistant message between two turns was dropped
			}
		}
	}
	return 0, 0
}

// unansweredResults returns the entries with the results of that round.
func (v view) unansweredResults() []entry {
	head, _ := v.unanswered()
	return slices.DeleteFunc(slices.Clone(v.list), func(e entry) bool { return e.msg.role != convo.RoleTool || e.head != head })
}

func (v view) isPinned(e entry) bool { return slices.Contains(v.pins, e.head) }

// newestExchange returns the entries of the newest exchange.
func (v view) newestExchange() []entry {
	n := len(v.list)
	for n > 0 && v.list[n-1].head == v.list[len(v.list)-1].head {
		n--
	}
	return v.list[n:]
}

// open returns the ids of the calls without a result, in order.
func (v view) open() []string {
	var open []string
	for _, e := range v.newestExchange() {
		open = append(open, e.msg.calls...)
		for _, r := range e.msg.results {
			if i := slices.Index(open, r.id); i >= 0 {
				open = slices.Delete(open, i, i+1)
			}
		}
	}
	return open
}

// answered returns the ids of the results in the newest exchange.
func (v view) answered() []string {
	var ids []string
	for _, e := range v.newestExchange() {
		for _, r := range e.msg.results {
			ids = append(ids, r.id)
		}
	}
	return ids
}

// A snapshot is a snapshot of the History, together with the model's view at
// the same moment.
type snapshot struct {
	real  *convo.Snapshot
	print string // Print(real) when it was taken
	view  view
	time  int // when it was taken

	// The destination of the request.
	model  string
	window int
}

// An appliedEdit is an edit that was applied and not undone since.
type appliedEdit struct {
	uid     int
	time    int
	touched []convo.ID       // the entries that the edit dropped, cut, cleared or rewrote
	gone    []convo.ID       // the entries that the edit dropped
	before  view             // the view before it, without the entries that the edit forgot
	after   map[convo.ID]int // the uid of each entry that stayed
}

// A model is a History of plain slices. Every change copies them, so that the
// code is slow and easy to check.
type model struct {
	view
	relaxed   bool     // the roles are those of convo.Relaxed
	pinFirst  bool     // Options.PinFirstUser
	failed    convo.ID // the newest message when a request failed
	waiting   convo.ID // the newest entry of the request that is under way, or 0
	sending   convo.ID // the first message that a running request has taken out of the queue, or 0
	replay    convo.Replay
	queue     []message
	title     string // the last values of SetMeta
	meta      string
	delivered int // the total number of messages of the queue that were appended
	time      int // grows with each step
	uids      int // the number of uids so far
	turn      int // the newest turn
	applied   []appliedEdit
	takenBack map[convo.ID]bool // entries that rollbacks took back
	forgotten map[convo.ID]int  // when the content of entries was last forgotten
	undone    map[int]bool      // uids of edits that rollbacks undid

	keepOriginals bool // keeps all originals, or none

	// Fields for the estimate.
	name        string                  // of the model that requests go to, as set by SetModel
	learned     map[string]*calibration // by name
	current     *calibration            // of the model in use
	order       []string                // the names, by their newest report
	implausible *snapshot               // the newest report was for this snapshot, and was ignored
	reported    map[string]uint64       // the version of the newest snapshot with a report, by name
	tools       int                     // Limits.Tools
	toolsSet    bool                    // they were set after the last report
	sent        *snapshot               // the newest one with a report
}

func newModel(count counter, relaxed, pinFirst bool) *model {
	return &model{
		view:      view{count: count},
		relaxed:   relaxed,
		pinFirst:  pinFirst,
		takenBack: map[convo.ID]bool{},
		undone:    map[int]bool{},
		forgotten: map[convo.ID]int{},
		learned:   map[string]*calibration{},
		reported:  map[string]uint64{},
	}
}

func (m *model) newUID() int { m.uids++; return m.uids }

// A failure is a kind of error that the model predicts.
type failure string

const (
	success    failure = ""
	badRole    failure = "role"
	noOpenCall failure = "no open call"
	answered   failure = "answered"
	ambiguous  failure = "ambiguous"
	openCalls  failure = "open calls"
	badEdit    failure = "bad edit"
	stale      failure = "stale"
	noGain     failure = "no gain"
	notFound   failure = "not found"
)

// append appends a whole batch. If the batch cannot be appended, it returns the failure
// and leaves m unchanged.
func (m *model) append(batch []message) failure {
	next := m.view.clone()
	turn, pinned := m.turn, m.turn > 0
	add := func(msg message) {
		next.last++
		e := entry{id: next.last, head: next.last, uid: m.newUID(), msg: msg}
		if e.msg.note = msg.role == convo.RoleSystem && len(next.list) > 0; msg.role == convo.RoleSystem && !e.msg.note {
			next.sys = append(next.sys, e)
		} else {
			if msg.role == convo.RoleTool {
				e.head = next.list[len(next.list)-1].head
			}
			e.turn = turn
			e.tools = calledTool(next.list, e)
			e.msg.idle = m.isIdle(e)
			next.list = append(next.list, e)
		}
		next.appended += e.msg.tokens(m.count)
	}
	if len(batch) == 0 {
		return success
	}
	if batch[0].role == convo.RoleUser && m.relaxed {
		for _, id := range next.open() {
			add(errorResult(id, "interrupted by the user"))
		}
	}
	var run []message // the rest of a run of tool messages, with paired results
	for i, msg := range batch {
		prev := next.newest()
		open := next.open()
		switch msg.role {
		case convo.RoleTool:
			if len(run) == 0 {
				end := i
				for end < len(batch) && batch[end].role == convo.RoleTool {
					end++
				}
				var fail failure
				if run, fail = next.pair(batch[i:end]); fail != success {
					return fail
				}
			}
			msg, run = run[0], run[1:]
		case convo.RoleSystem:
			if len(open) > 0 {
				return openCalls
			}
		default:
			if len(open) > 0 {
				return openCalls
			}
			strict := msg.role == convo.RoleUser && prev != convo.RoleUser ||
				msg.role == convo.RoleAssistant && (prev == convo.RoleUser || prev == convo.RoleTool)
			failed := msg.role == convo.RoleUser && m.hasFailed() && next.newestMessage() == m.failed
			if !m.relaxed && !strict && !failed && !msg.goesOn && !msg.again {
				return badRole
			}
			if msg.role == convo.RoleUser && (prev != convo.RoleUser || next.list[len(next.list)-1].turn <= next.touched) {
				turn++
			}
		}
		add(msg)
		if msg.pinned || m.pinFirst && msg.role == convo.RoleUser && turn == 1 && !pinned {
			next.pins = append(next.pins, next.last)
			pinned = true
		}
	}
	m.view, m.turn = next, turn
	if m.newestMessage() != m.failed {
		m.failed = 0
	}
	return success
}

// calledTool reports whether e, or an entry of list in its turn, called a tool.
func calledTool(list []entry, e entry) bool {
	n := len(list)
	return len(e.msg.calls)+len(e.msg.results) > 0 || n > 0 && list[n-1].turn == e.turn && list[n-1].tools
}

// isIdle reports whether the thought of e is not sent.
func (m *model) isIdle(e entry) bool {
	return m.replay == convo.ReplayNone || m.replay == convo.ReplayTools && !e.tools
}

// newestMessage returns the ID of the newest entry that is neither a system entry nor a note,
// or 0.
func (v view) newestMessage() convo.ID {
	for n := len(v.list); n > 0; n-- {
		if !v.list[n-1].msg.note {
			return v.list[n-1].id
		}
	}
	return 0
}

// hasFailed reports whether the newest message is one of a user or a tool whose request has failed.
func (m *model) hasFailed() bool {
	return m.failed != 0 && m.failed == m.newestMessage() && m.newest() != convo.RoleAssistant && m.waiting == 0
}

// requestFailed takes note of a request that ended with err and without an answer.
func (m *model) requestFailed(err error) {
	if n := m.newestMessage(); n != 0 && !errors.As(err, new(*convo.FloorError)) && !errors.As(err, new(*convo.LimitError)) {
		m.failed = n
	}
}

// newest returns the role of the newest entry that is not a note.
func (v view) newest() convo.Role {
	for n := len(v.list); n > 0; n-- {
		if !v.list[n-1].msg.note {
			return v.list[n-1].msg.role
		}
	}
	if v.len() > 0 {
		return convo.RoleSystem
	}
	return convo.RoleNone
}

// deliver appends the queue if it can, and returns how many messages it
// appended.
func (m *model) deliver() int {
	n := len(m.queue)
	if n == 0 || len(m.open()) > 0 || !m.relaxed && m.newest() == convo.RoleUser && !m.hasFailed() {
		return 0
	}
	for i := range m.queue {
		m.queue[i].goesOn = i > 0
	}
	if fail := m.append(m.queue); fail != success {
		panic("the model refuses the queue: " + fail)
	}
	m.queue = nil
	m.delivered += n
	return n
}

// answerFault returns the failure of an assistant message that is appended now.
func (m *model) answerFault() failure {
	c := *m
	c.view = m.view.clone()
	return c.append([]message{{role: convo.RoleAssistant, text: "x"}})
}

// pair returns a run of tool messages with the id of the call that each result answers:
// first those with an id, then those of a tool that has no more open calls than results.
// The other results must be as many as the remaining calls, and in the same order.
func (v view) pair(run []message) ([]message, failure) {
	open, ids := v.open(), v.answered()
	var paired []message
	var without []*result // an id
	take := func(r *result, i int) {
		r.id = open[i]
		ids = append(ids, r.id)
		open = slices.Delete(open, i, i+1)
	}
	for _, msg := range run {
		msg.results = slices.Clone(msg.results)
		paired = append(paired, msg)
		for k := range msg.results {
			r := &msg.results[k]
			i := slices.Index(open, r.id)
			switch {
			case r.noID:
				without = append(without, r)
			case i >= 0:
				take(r, i)
			case slices.Contains(ids, r.id):
				return nil, answered
			default:
				return nil, noOpenCall
			}
		}
	}
	few := len(without) < len(open)
	var others []*result
	before := slices.Clone(open)
	for _, r := range without {
		tool := toolName(r.id)
		spare := 0
		for _, id := range before {
			if toolName(id) == tool {
				spare++
			}
		}
		for _, like := range without {
			if !like.noName && toolName(like.id) == tool {
				spare--
			}
		}
		if r.noName || spare > 0 {
			others = append(others, r)
			continue
		}
		i := slices.IndexFunc(open, func(id string) bool { return toolName(id) == tool })
		if i < 0 {
			return nil, noOpenCall
		}
		take(r, i) // a call of the same tool, so that the count stays right
	}
	for _, r := range others {
		switch {
		case len(open) == 0:
			return nil, noOpenCall
		case few, !r.noName && toolName(open[0]) != toolName(r.id):
			return nil, ambiguous
		}
		take(r, 0)
	}
	return paired, success
}

func errorResult(id, text string) message {
	return message{role: convo.RoleTool, results: []result{{id: id, text: text, isErr: true}}}
}

// accepts reports whether a message could be appended.
func (m *model) accepts(msg message) bool {
	c := *m
	c.view = m.view.clone()
	return c.append([]message{msg}) == success
}

// pin pins the exchanges of the entries with these IDs, or unpins them.
func (m *model) pin(ids []convo.ID, on bool) failure {
	pins := slices.Clone(m.pins)
	for _, id := range ids {
		e, ok := m.find(id)
		if !ok {
			return notFound
		}
		if e.isSystem() {
			continue
		}
		i := slices.Index(pins, e.head)
		if on && i < 0 {
			pins = append(pins, e.head)
		} else if !on && i >= 0 {
			pins = slices.Delete(pins, i, i+1)
		}
	}
	slices.Sort(pins)
	m.pins = pins
	return success
}

func (m *model) rollback(at *snapshot) failure {
	for _, e := range at.view.list {
		if m.takenBack[e.id] {
			return stale
		}
	}
	for _, uid := range at.view.edits {
		if m.undone[uid] {
			return stale
		}
	}
	// The edits applied since then stay if they touched only entries that the snapshot
	// holds and left its floor, apart from pins, unchanged.
	stay := true
	for _, e := range m.applied {
		if e.time <= at.time {
			continue
		}
		for _, id := range e.touched {
			if _, ok := at.view.find(id); !ok {
				stay = false
			}
		}
		for _, x := range at.view.list {
			if at.view.isFloor(x) && !slices.ContainsFunc(m.list, func(y entry) bool { return y.uid == x.uid }) {
				stay = false
			}
		}
	}
	var kept []entry
	for _, e := range m.list {
		if e.id > at.view.last {
			m.takenBack[e.id] = true
			if stay {
				m.appended -= e.msg.tokens(m.count)
			}
		} else {
			kept = append(kept, e)
		}
	}
	m.appended = max(m.appended, 0)
	// Newer entries that were dropped since then are also taken back.
	for id := at.view.last + 1; id <= m.last; id++ {
		m.takenBack[id] = true
	}
	changed := !stay || len(kept) < len(m.list)
	if stay {
		if len(kept) < len(m.list) {
			m.placed = m.upTo(at.view.last)
		}
		m.list = kept
	} else {
		v := at.view.clone()
		m.list, m.placed = v.list, v.placed
		m.touched, m.appended = v.touched, v.appended
		m.edits = v.edits
		m.applied = slices.DeleteFunc(m.applied, func(e appliedEdit) bool {
			m.undone[e.uid] = m.undone[e.uid] || e.time > at.time
			return e.time > at.time
		})
	}
	m.afterRollback()
	if changed {
		m.deliver()
	}
	return success
}

// afterRollback drops the pins of entries that have left the view, and sets the
// newest turn.
func (m *model) afterRollback() {
	m.pins = slices.DeleteFunc(slices.Clone(m.pins), func(head convo.ID) bool {
		_, ok := m.find(head)
		return !ok
	})
	m.turn = m.touched
	if n := len(m.list); n > 0 {
		m.turn = max(m.turn, m.list[n-1].turn)
	}
}

// rewind takes back up to most of the newest turns, or of the newest exchanges if an edit
// has touched the newest turn, and returns how many. Messages that a running request has
// taken out of the queue return to it.
func (m *model) rewind(most int) (taken int) {
	whole, kept := m.list, 0
	for n := len(m.list); m.sending > 0 && n > 0 && m.list[n-1].id >= m.sending; n-- {
		if kept++; m.list[n-1].msg.role != convo.RoleUser {
			kept = 0
			break
		}
	}
	m.list = whole[: len(whole)-kept : len(whole)-kept]
	newest := 0
	if n := len(m.list); n > 0 {
		newest = m.list[n-1].turn
	}
	for taken < most && len(m.list) > 0 {
		last := m.list[len(m.list)-1]
		if last.turn != newest && min(last.turn, newest) <= m.touched {
			break
		}
		for n := len(m.list); n > 0 && m.list[n-1].turn == last.turn; n-- {
			e := m.list[n-1]
			if last.turn <= m.touched && e.head != last.head {
				break
			}
			m.takenBack[e.id] = true
			m.appended -= e.msg.tokens(m.count)
			m.list = m.list[: n-1 : n-1]
		}
		m.appended = max(m.appended, 0)
		taken++
	}
	if taken == 0 {
		m.list = whole
		return 0
	}
	for id := whole[len(m.list)].id; id <= m.last; id++ {
		m.takenBack[id] = true // also what an edit has dropped
	}
	m.placed = m.upTo(whole[len(m.list)].id - 1)
	var back []message
	for _, e := range whole[len(whole)-kept:] {
		m.takenBack[e.id] = true
		m.appended = max(m.appended-e.msg.tokens(m.count), 0)
		e.msg.pinned = slices.Contains(m.pins, e.head)
		back = append(back, e.msg)
	}
	m.queue = append(back, m.queue...)
	m.afterRollback()
	m.deliver()
	return taken
}

// undo reverts the newest edit.
func (m *model) undo() {
	e := m.applied[len(m.applied)-1]
	m.applied = m.applied[: len(m.applied)-1 : len(m.applied)-1]
	m.undone[e.uid] = true
	var list []entry
	for _, x := range m.list {
		if slices.Contains(e.touched, x.id) && x.uid == e.after[x.id] {
			x, _ = e.before.find(x.id)
		}
		list = append(list, x)
	}
	gone := map[convo.ID]bool{} // heads of exchanges that were taken back
	for _, id := range e.touched {
		x, _ := e.before.find(id)
		gone[x.head] = gone[x.head] || m.takenBack[id]
	}
	for _, id := range e.touched {
		x, _ := e.before.find(id)
		if e.dropped(id) && !gone[x.head] {
			list = append(list, x)
		}
	}
	slices.SortFunc(list, func(x, y entry) int { return int(x.id - y.id) })
	for i := range list {
		list[i].tools = list[i].tools || calledTool(list[:i], list[i])
		list[i].msg.idle = m.isIdle(list[i])
	}
	v := e.before.clone()
	isForgotten := func(id convo.ID) bool { at, ok := m.forgotten[id]; return ok && at >= e.time }
	m.list, m.placed = list, v.back(func(reads []convo.ID) bool {
		return m.takenBack[newest(reads)] || slices.ContainsFunc(reads, isForgotten)
	})
	m.touched, m.edits = v.touched, v.edits
	m.appended += v.appended
	m.turn = m.touched
	if n := len(m.list); n > 0 {
		m.turn = max(m.turn, m.list[n-1].turn)
	}
	m.deliver()
}

// dropped reports whether the edit dropped the entry.
func (e appliedEdit) dropped(id convo.ID) bool { return slices.Contains(e.gone, id) }

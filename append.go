package convo

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seed-c1b73e60/convo/internal/tags"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// interruptReason is the text of the results that answer open calls when a user
// message interrupts them; see RolePolicy.Interrupt.
const interruptReason = "interrupted by the user"

// noResult is the text of the results that answer open calls for no other reason.
const noResult = "no result"

// Append adds messages at the end, all of them or none, and returns the ID of the
// last one, or 0 without messages. The IDs of a batch are consecutive, so the first of n
// messages has the ID last-n+1.
//
// Append copies the messages, replaces invalid UTF-8, gives an ID to a tool call
// without one (see [Snapshot.Find]), and cuts tool results that are longer than
// Options.MaxResult. It returns a [*MessageError] for an invalid message, a [*RoleError] for
// a role that may not follow the previous one (see [RolePolicy]), and a [*PairError] for
// calls and results that do not pair. It also returns the error of Options.Spill.
func (h *History) Append(msgs ...Message) (ID, error) {
	if slices.ContainsFunc(msgs, func(m Message) bool { return m.Role == RoleAssistant }) { // it is an answer
		h.prove(newestVersion)
	}
	return h.appendMessages(msgs, false)
}

// AppendRows is [History.Append] for messages that the application has stored already, such
// as those in a list that a framework owns. Among them, a user message may follow a user
// message under every [RolePolicy]. Where the policy lets one interrupt open calls, it may
// do so anywhere in the batch. A system message is a note, even before all others.
func (h *History) AppendRows(msgs ...Message) (ID, error) {
	return h.appendMessages(msgs, true)
}

// appendMessages appends messages. rows says that they are rows of the application.
func (h *History) appendMessages(msgs []Message, rows bool) (ID, error) {
	var few [2]pendingEntry // room for most batches
	batch, err := h.newMessages(few[:0], msgs)
	if err != nil {
		return 0, err
	}
	for i := range batch {
		batch[i].row = rows
	}
	if err := h.cutLong(batch); err != nil {
		return 0, err
	}
	var last ID
	var cut *Report
	err = h.ifOpen(func() (err error) {
		if len(batch) == 0 {
			return nil
		}
		if cut, err = h.appendLocked(batch); err == nil {
			last = h.last
			h.deliverLocked()
		}
		return err
	})
	if cut != nil {
		h.deliver(*cut)
	}
	return last, err
}

// A pendingEntry is an entry that has not been appended yet.
type pendingEntry struct {
	*entry
	original *original // nil: no result was cut
	pin      bool      // whether to pin it
	before   []*entry  // results that answer the calls that it interrupts
	goesOn   bool      // an answer that may follow a paused one, whatever the policy
	row      bool      // the application had it already; see AppendRows
	bound    bool      // it was decided before what its reasoning is bound to, if anything
	again    bool      // it was appended before: it keeps its time, and the policy does not apply
}

// given returns a copy of the message as it was appended: its results are whole.
func (a pendingEntry) given() Message {
	if a.original != nil {
		return a.original.msg.clone()
	}
	return a.msg.clone()
}

// isDecision reports whether a has more to it than a row holds.
func (a pendingEntry) isDecision() bool {
	return a.msg.Key == "" || a.original != nil || len(a.before) > 0
}

// Count returns the raw tokens that a message would have in the view, by
// Options.Tokenizer and Options.Overheads and with the tags that name its author. It
// appends nothing. Reasoning that would not be sent counts as 0; see Overheads.Reasoning.
// A result is counted as given, although Append may cut it, and fills in an empty ID or
// name. The only error is that of an invalid message, as for [History.Append].
func (h *History) Count(m Message) (tokens int, err error) {
	defer catch(&err, "Options.Tokenizer")
	e, err := h.newEntry(&m)
	if err != nil {
		return 0, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.list)
	e.setTools(n > 0 && h.list[n-1].tools)
	return clampInt(e.tokens), nil
}

// cutLong cuts the results of a batch that are longer than Options.MaxResult. It runs
// the caller's code, so no lock may be held. Before it calls Options.Spill, it makes
// sure that the batch can be appended, and pairs results with calls.
func (h *History) cutLong(batch []pendingEntry) error {
	if h.joinsFirst(batch) {
		err := h.ifOpen(func() error { return h.view.check(&h.setup, batch, h.talk.hasFailed(h.newestMessage())) })
		if err != nil {
			return err
		}
	}
	return h.cutResults(batch)
}

// paired copies the ID of e, and the call IDs, names and tokens that pairing has
// set, to o, its original. o must not be in use yet.
func (o *original) paired(e *entry) {
	o.id = e.id
	for i, p := range e.msg.Parts {
		r := o.msg.Parts[i].(ToolResult)
		r.CallID, r.Name = p.(ToolResult).CallID, p.(ToolResult).Name
		o.msg.Parts[i] = r
	}
	o.tokens = e.tokens + e.missing()
	o.readTokens = o.tokens
}

// appendLocked appends a batch, or returns an error and changes nothing. It returns a report about
// the results that were cut, or nil if there are none.
func (h *History) appendLocked(batch []pendingEntry) (cut *Report, err error) {
	if len(batch) == 0 {
		return nil, nil
	}
	if err := h.view.extend(&h.setup, batch, h.talk.hasFailed(h.newestMessage())); err != nil {
		return nil, err
	}
	h.talk.note(h.newestMessage(), false)
	missing := int64(0)
	for _, a := range batch {
		if a.original == nil {
			continue
		}
		h.recorder.left(nil, departed{was: a.entry, original: a.original})
		if cut == nil {
			cut = &Report{Outcome: OutcomeApplied, Reason: ReasonAppend, left: &departure{was: state{pins: h.state.clipped().pins}}}
		}
		cut.Shortened = append(cut.Shortened, a.id)
		cut.left.gone = append(cut.left.gone, departed{a.entry, a.entry, a.original})
		missing += a.missing()
	}
	if cut != nil {
		h.measureBeforeLocked(cut)
		cut.TokensBefore = clampInt(h.scale().Weigh(h.raw() + missing))
	}
	return cut, nil
}

// check returns an error if a batch cannot be appended. Otherwise it pairs the results of
// the batch with calls. failed says that the request of the newest message has failed.
func (v *view) check(s *setup, batch []pendingEntry, failed bool) error {
	j, err := v.join(s, batch, failed)
	v.calls.Reopen(j.answered)
	return err
}

// extend appends a batch, or returns an error and changes nothing. failed is as for check.
func (v *view) extend(s *setup, batch []pendingEntry, failed bool) error {
	j, err := v.join(s, batch, failed)
	if err != nil {
		return err
	}
	v.newVersion()
	if !slices.ContainsFunc(batch, pendingEntry.isDecision) {
		v.plain++
	}
	v.bind(batch)
	for i := range batch {
		a := &batch[i]
		for _, e := range a.before {
			v.push(e, nil)
		}
		switch {
		case a.original == nil:
		case a.again:
			a.original.id = a.id
		default:
			a.original.paired(a.entry)
		}
		v.push(a.entry, a.original)
		if a.pin && !a.isSystem() {
			v.pin(a.head)
		}
	}
	v.calls, v.last, v.lastAppend = j.open, j.last, batch[len(batch)-1].at
	return nil
}

// push appends an entry that was checked.
func (v *view) push(e *entry, o *original) {
	v.state.append(e, o)
	v.appendedEver = min(v.appendedEver+e.tokens, maxTotal)
}

// bind sets what the entries of a batch are bound to, right before they are appended.
func (v *view) bind(batch []pendingEntry) {
	sent := v.answers
	isNext, alone := sent.known, true // the first answer is for what was sent, before anything of the batch
	for i := range batch {
		a := &batch[i]
		if a.isSystem() {
			continue
		}
		a.setContent()
		for _, r := range a.before {
			r.setContent()
			if sent.known && !isNext {
				sent.prefix.add(r)
			}
		}
		if a.msg.Role == RoleAssistant {
			v.endAnswers()
			if !a.bound {
				if !sent.known {
					sent = v.sentAfter(batch[:i])
				}
				v.bindTo(a, sent)
				if isNext && !alone {
					sent = sentView{} // what the next one was made of is not known
				}
				isNext = false
			}
		}
		alone = false
		if sent.known && !isNext {
			sent.prefix.add(a.entry)
		}
	}
}

// endAnswers notes that an answer is appended, so that what was prepared is not the view that
// the next answer is for.
func (v *view) endAnswers() {
	if v.asked != nil { // what Prepare returned
		v.setAnswered(v.asked)
	}
	v.answers = sentView{}
}

// sentAfter returns the view with the first entries of a batch, as what a request is made of.
func (v *view) sentAfter(batch []pendingEntry) sentView {
	sent, f := v.sentView(), v.frame()
	sent.open = false
	for _, a := range batch {
		for _, r := range a.before {
			sent.prefix.add(r)
		}
		if a.isSystem() {
			a.setContent()
			f.Sys = f.Sys.Add(a.content)
		} else {
			sent.prefix.add(a.entry)
		}
	}
	sent.prefix.heads = v.headsIn(f)
	return sent
}

// bindTo binds an answer to the view that it was made of, if it is signed and may be bound.
func (v *view) bindTo(a *pendingEntry, sent sentView) {
	if a.again || !a.msg.isSigned() || !v.binds(sent) {
		return
	}
	a.bindTo(sent.prefix.sum(), sent.edit)
}

// join checks whether a batch can be appended. It gives the entries their IDs
// and turns, pairs their results with calls and marks these as answered. After an
// error, no call is marked. failed is as for check.
func (v *view) join(s *setup, batch []pendingEntry, failed bool) (joining, error) {
	j := v.joining(s, failed)
	now := time.Now().UnixNano()
	var at int
	var err error
	for i := range batch {
		if a := &batch[i]; !a.again && a.at == 0 {
			a.at = now
		}
		if at, err = j.admit(batch, i); err != nil {
			err = atIndex(err, at)
			break
		}
		j.place(&batch[i])
	}
	if err == nil {
		err = inRange(j.last, j.turn)
	}
	if err != nil {
		v.calls.Reopen(j.answered)
		return joining{}, err
	}
	return j, nil
}

// A joining is a batch being checked: the conversation as it would be with the messages
// that were checked so far.
type joining struct {
	by           *setup
	calls        *calls // of the newest exchange before the batch
	answered     []int  // indices of those that the batch answers
	open         *calls // of the newest exchange now
	last         ID
	touched      int // see state
	newest       Role
	turn         int
	exchangeTurn int  // of the newest exchange
	hasList      bool // whether it has an entry that is not a system entry
	tools        bool // whether the newest exchange has tool calls
	run          int  // start of a run of tool messages with results without an ID, or -1
	failed       bool // the request of the newest message has failed
}

// joining returns the conversation before a batch.
func (v *view) joining(s *setup, failed bool) joining {
	j := joining{
		by:           s,
		calls:        v.calls,
		open:         v.calls,
		last:         v.last,
		touched:      v.touched,
		newest:       v.newestRole(),
		turn:         v.turn,
		exchangeTurn: newestTurn(v.list),
		hasList:      len(v.list) > 0,
		run:          -1,
		failed:       failed,
	}
	j.tools = j.hasList && v.list[len(v.list)-1].tools
	return j
}

// interrupt answers the open calls for the user message with index i of a batch.
func (j *joining) interrupt(batch []pendingEntry, i int) {
	results, answered := j.by.answerOpen(j.open, j.last, j.exchangeTurn, interruptReason, j.by.interruptTokens)
	if j.open == j.calls { // and not those of the batch, which a refusal drops
		j.answered = append(j.answered, answered...)
	}
	j.last += ID(len(results))
	batch[i].before, j.newest = results, RoleTool
}

// admit gives the message with index i an ID, checks whether it may come next, and pairs
// its results. An error is that of the message with index at.
func (j *joining) admit(batch []pendingEntry, i int) (at int, err error) {
	a := &batch[i]
	role := a.msg.Role
	a.before = nil
	if role == RoleUser && j.by.opts.Roles.Interrupt && (i == 0 || a.row) && j.open.Open() > 0 {
		j.interrupt(batch, i)
	}
	allowed := a.again || a.goesOn || j.by.opts.Roles.allows(j.newest, role) || role == RoleUser && (j.failed || a.row && j.newest == RoleUser)
	j.last++
	was := a.id
	a.id, a.head = j.last, j.last
	j.by.ident.renumber(a.entry, was)
	switch {
	case role == RoleTool:
		return j.pair(batch, i)
	case j.open.Open() > 0:
		return i, openError(j.open)
	case role == RoleSystem && a.again && !a.note && j.hasList, // a system entry that Reload appends again
		!allowed:
		return i, &RoleError{Attempted: role, Previous: j.newest}
	}
	return i, nil
}

// pair pairs the results of the tool message with index i that have an ID. Those without
// wait for the end of the run of tool messages.
func (j *joining) pair(batch []pendingEntry, i int) (at int, err error) {
	answered := &j.answered
	if j.open != j.calls {
		answered = new([]int) // calls of the batch, which a refusal drops
	}
	all, err := batch[i].pairByID(j.open, answered)
	if err != nil {
		return i, err
	}
	if !all && j.run < 0 {
		j.run = i
	}
	if j.run < 0 || i+1 < len(batch) && batch[i+1].msg.Role == RoleTool {
		return i, nil
	}
	var run []*entry
	for _, a := range batch[j.run : i+1] {
		run = append(run, a.entry)
	}
	rest, at, err := pairRest(j.open, run)
	*answered = append(*answered, rest...)
	at += j.run
	j.run = -1
	return at, err
}

// place puts an admitted message into its turn and exchange.
func (j *joining) place(a *pendingEntry) {
	role := a.msg.Role
	// An edit may have removed what followed the previous user message. Undo
	// would put it back between the two.
	if role == RoleUser && (j.newest != RoleUser || j.exchangeTurn <= j.touched) {
		j.turn++
		a.pin = a.pin || j.turn == 1 && j.by.opts.PinFirstUser
	}
	if role != RoleTool {
		j.open = a.begin()
	}
	if role == RoleSystem {
		a.setNote(j.hasList || a.row, j.by.noteTokens)
	}
	switch {
	case role == RoleTool:
		a.turn = j.exchangeTurn
		a.setTools(true)
	case !a.isSystem():
		j.tools = j.tools && j.turn == j.exchangeTurn || a.calls != nil
		a.setTools(j.tools)
		a.turn, j.exchangeTurn, j.hasList = j.turn, j.turn, true
	}
	if !a.note { // what follows a note is as if it were not there
		j.newest, j.failed = role, false
	}
}

// AnswerOpenCalls appends an error result with the given reason for every open tool call,
// and returns how many there were. An empty reason means "no result". Use it when the
// tools will not be run, since a message other than a result is refused while calls are
// open.
func (h *History) AnswerOpenCalls(reason string) (answered int, err error) {
	if h.ident == nil {
		return 0, ErrClosed
	}
	reason = cmp.Or(text.Valid(reason), noResult)
	tokens, err := safely("Options.Tokenizer", func() int64 { return h.ident.text(tags.MaskPart(h.ident.key, reason)) }) // as it is shown
	if err != nil {
		return 0, err
	}
	err = h.ifOpen(func() error {
		n := h.openCount()
		if err := inRange(h.last+ID(n), h.turn); err != nil || n == 0 {
			return err
		}
		h.closeCalls(&h.setup, reason, tokens)
		h.deliverLocked()
		answered = n
		return nil
	})
	return answered, err
}

// closeCalls appends an error result with the reason for each open call. tokens is the count
// of the reason.
func (v *view) closeCalls(s *setup, reason string, tokens int64) {
	v.newVersion()
	results, _ := s.answerOpen(v.calls, v.last, newestTurn(v.list), reason, tokens)
	for _, e := range results {
		v.push(e, nil)
		v.last, v.lastAppend = e.id, e.at
	}
}

// atIndex sets the index of the message in an error about it.
func atIndex(err error, i int) error {
	switch err := err.(type) {
	case *MessageError:
		err.Index = i
	case *RoleError:
		err.Index = i
	case *PairError:
		err.Index = i
	}
	return err
}

// checkShared is check for a message that shares its parts: it copies them. inline holds
// them if there is just one.
func (m *Message) checkShared(inline *[1]Part) error {
	switch len(m.Parts) {
	case 0:
		m.Parts = nil
	case 1:
		inline[0] = m.Parts[0]
		m.Parts = inline[:]
	default:
		m.Parts = slices.Clone(m.Parts)
	}
	return m.check(false)
}

// check gives m, which shares no parts, valid UTF-8 and an ID for each call, or returns an
// error if it is invalid. The caller sets the Index of that error. If deep is set, the parts
// of results are not shared either.
func (m *Message) check(deep bool) error {
	if !slices.Contains(roles, m.Role) {
		return &MessageError{Role: m.Role, Part: -1, Reason: "unknown role; want RoleSystem, RoleUser, RoleAssistant or RoleTool"}
	}
	for _, s := range [...]*string{&m.Author, &m.Origin.Format, &m.Origin.Model, &m.Origin.Container, &m.Meta} {
		*s = text.Valid(*s)
	}
	if err := m.checkKey(); err != nil {
		return err
	}
	m.nameCalls()
	for i, p := range m.Parts {
		p, reason := checkPart(p, m.Role, deep)
		if reason != "" {
			return &MessageError{Role: m.Role, Part: i, Reason: reason}
		}
		m.Parts[i] = p
	}
	if m.Role == RoleTool && len(m.Parts) == 0 {
		return &MessageError{Role: m.Role, Part: -1, Reason: "tool message without a result; make it with Result"}
	}
	return checkCallIDs(m.Parts)
}

// checkKey replaces invalid UTF-8 in the key of m, and returns an error if it is too long.
func (m *Message) checkKey() error {
	m.Key = text.Valid(m.Key)
	if len(m.Key) > maxMessageKey {
		return &MessageError{Role: m.Role, Part: -1, Reason: fmt.Sprintf("Key of %s bytes; want at most %d, such as the key of a row", grouped(len(m.Key)), maxMessageKey)}
	}
	return nil
}

// checkCallIDs returns an error if two calls have the same ID.
func checkCallIDs(parts []Part) error {
	if len(parts) < 2 {
		return nil
	}
	seen := make(map[string]bool)
	for c := range eachOf[ToolCall](parts) {
		if seen[c.ID] {
			return &PairError{Err: errDuplicateCall, CallID: c.ID, Name: c.Name}
		}
		seen[c.ID] = true
	}
	return nil
}

// checkPart returns p with valid UTF-8, or the reason why a message of that role
// cannot hold it. If deep is set, the parts of a result are changed in place, otherwise
// copied.
func checkPart(p Part, role Role, deep bool) (_ Part, reason string) {
	p = known(p)
	if k := p.kind(); k != nil && !slices.Contains(k.roles, role) {
		return nil, k.misplace
	}
	q, reason := p.check(deep)
	if q == nil {
		q = p
	}
	return q, reason
}

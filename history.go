package convo

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// Options configure a [History]. Nil and the zero value work.
type Options struct {
	// Limits say how large a request may be. Zero: no limit.
	Limits Limits

	// Roles says which role may follow which. Zero: as Strict.
	Roles RolePolicy

	// Tokenizer counts texts. Nil: Heuristic.
	Tokenizer Tokenizer

	// Overheads are what messages weigh beside their texts.
	Overheads Overheads

	// Priors say what is assumed of models until usage is reported, by the
	// beginning of the name given to SetModel; the longest that fits counts,
	// and "" fits all. None: tokens are as the Tokenizer counts them.
	Priors map[string]Prior

	// Strategy decides what a compaction gives up. Nil:
	// Chain(ClearToolResults{}, Truncate{}).
	Strategy CompactionStrategy

	// IsOverflow tells Recover whether a provider's error means that the
	// request was too long. It runs without a lock. Nil: the function IsOverflow.
	IsOverflow func(error) bool

	// Budget is charged what the next request weighs at most, all the time
	// until Close. Nil: none.
	Budget *Budget

	// MaxResult is how many bytes of text a tool result may hold; Append cuts
	// the middle out of a longer one and puts a marker there. 0: no bound;
	// otherwise at least 256.
	MaxResult int

	// Spill keeps the original of a tool result that is about to be cut or
	// cleared and returns where, for the marker. Its error is Append's; a
	// result that could not be kept is not cleared. It must not wait, and runs
	// without a lock on the goroutine of the caller.
	Spill func(ToolResult) (ref string, err error)

	// Pin says of an appended message whether its exchange is pinned. It must
	// not wait, and runs without a lock on the goroutine of the caller, before
	// the message is known to be accepted.
	Pin func(Message) bool

	// PinFirstUser pins the first user message: the task, most of the time.
	PinFirstUser bool

	// OnLoad says what Restore does with tool calls that are open.
	OnLoad OnLoad

	// Repair lets Restore mend a faulty conversation, and is told of each
	// fault. Nil: a fault is an error.
	Repair func(Fault)

	// OnCompaction is told of every compaction and edit that was applied,
	// declined or failed. It runs afterwards, without a lock, on the goroutine
	// that made the edit; calls may overlap. A panic is dropped. It must not
	// call Wait.
	OnCompaction func(Report)

	// Logger is told the same. Nil: silence.
	Logger *slog.Logger
}

// A History is a conversation that keeps inside its context window. It holds
// system entries, at most one summary, and the other entries in ascending ID
// order; tool calls and their results always pair.
//
// All methods may be called by several goroutines at once. No lock is held
// while code of the caller runs: it may call back. An operation that returns
// an error has changed nothing that a [Snapshot] shows. Make one with [New]
// or [Restore]; the zero History is empty and closed.
type History struct {
	// Fixed at creation.
	opts            Options
	ident           *identity     // state.id, to read without the lock
	interruptTokens int64         // of interruptReason
	trigger         Trigger       // of opts.Strategy; nil: never due early
	seat            chan struct{} // holds one token while a flight is under way
	done            chan struct{} // closed by Close

	mu sync.Mutex
	// Protects following.
	state
	calls  *calls    // of the newest exchange
	snap   *Snapshot // of the state as it is; nil after a change
	limits Limits    // with defaults
	marks  marks     // as the limits and fitted say
	closed bool
	charge int64 // to opts.Budget
	fitted int64 // reserved out of the window by Fit

	// What the last usage report said.
	sent    *Snapshot // it was measured on this; nil: no report for the model
	prior   Prior     // of the model
	doubted *doubted  // the last figure, when it cannot be; nil: it could

	weight  int64  // what the next request weighs at most,
	weighed uint64 // as of the version before this one

	// What was done to entries other than appending.
	edits     []editMark
	rollbacks []rollbackMark
	rewritten uint64 // version of the last change of entries that sent may hold

	lastAppend int64 // Unix nanoseconds, 0: never
	lastEdit   int64

	// What compactions left behind.
	appendedEver int64   // raw tokens, those taken back included
	compacted    uint64  // version that the last one made; noVersion: none did
	breaker      breaker // after a summarizer failed
	focused      focused // by Compact
	current      *flight // the newest one that has not landed; nil: none
	background   *background
	warned       bool // that nothing will ever be compacted
	spilled      map[spilled]string
}

// interruptReason answers the calls that a user message interrupts.
const interruptReason = "interrupted by the user"

// New makes an empty History. Every fault of the options is reported at once,
// each as a [*ValueError].
func New(opts *Options) (*History, error) {
	h, err := newHistory(opts, nil)
	if err != nil {
		return nil, err
	}
	h.settle()
	return h, nil
}

// newHistory makes an empty History, with the key of another identity.
func newHistory(opts *Options, from *identity) (h *History, err error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	limits, faults := o.Limits.withDefaults()
	faults = append(faults, o.Roles.faults()...)
	faults = append(faults, priorFaults(o.Priors)...)
	if o.MaxResult != 0 && o.MaxResult < minMaxResult {
		faults = append(faults, &ValueError{Name: "Options.MaxResult", Value: o.MaxResult, Want: "0, or at least 256 bytes"})
	}
	if o.OnLoad < OnLoadKeep || o.OnLoad > OnLoadDrop {
		faults = append(faults, &ValueError{Name: "Options.OnLoad", Value: int(o.OnLoad), Want: "a known way"})
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	o.Roles = o.Roles.withDefaults()
	o.Priors = maps.Clone(o.Priors)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Strategy == nil {
		o.Strategy = Chain(ClearToolResults{}, Truncate{})
	}
	h = &History{
		opts:      o,
		trigger:   triggerOf(o.Strategy),
		limits:    limits,
		seat:      make(chan struct{}, 1),
		done:      make(chan struct{}),
		compacted: noVersion,
	}
	h.ident = newIdentity(newCounter(o.Tokenizer, o.Overheads), from)
	h.id = h.ident
	h.prior = o.prior("")
	h.mark()
	h.knowledge = &knowledge{cap: overheadCap(limits)}
	defer catch(&err, "Options.Tokenizer")
	h.interruptTokens = h.ident.text(interruptReason)
	return h, nil
}

// Append adds messages at the end, all or none, with consecutive IDs, and
// returns the last one; of no messages it returns 0. The messages are copied,
// made valid UTF-8, and checked: each for itself ([*MessageError]), their roles
// against what comes before ([*RoleError]), results against calls
// ([*PairError]).
func (h *History) Append(msgs ...Message) (ID, error) {
	if h.ident == nil {
		return 0, ErrClosed
	}
	if h.opts.Spill != nil && h.isClosed() {
		return 0, ErrClosed // and nothing is spilled
	}
	var few [2]arrival // room for most batches
	batch, err := h.admit(few[:0], msgs)
	if err != nil {
		return 0, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended() {
		return 0, ErrClosed
	}
	if len(batch) == 0 {
		return 0, nil
	}
	return h.place(batch)
}

// An arrival is a message that was checked and counted, on its way into the
// list.
type arrival struct {
	*entry
	pin bool
}

// admit checks, copies and counts messages. It runs code of the caller, so no
// lock is held.
func (h *History) admit(batch []arrival, msgs []Message) (_ []arrival, err error) {
	defer catch(&err, "Options.Tokenizer")
	for i, m := range msgs {
		e := new(entry)
		if e.msg, err = m.admit(&e.inline); err == nil && !h.opts.Roles.KeepEmpty && m.isEmpty() {
			err = &MessageError{Role: m.Role, Part: -1, Reason: "empty message"}
		}
		if err == nil && h.opts.MaxResult > 0 && m.Role == RoleTool {
			err = h.cutResults(e.msg.Parts)
		}
		if err != nil {
			return nil, atIndex(err, i)
		}
		e.tokens = h.ident.message(&e.msg)
		a := arrival{entry: e}
		if m.Role == RoleAssistant {
			e.calls = newCalls(&e.msg, h.ident.counter)
		}
		if h.opts.Pin != nil {
			if a.pin, err = h.wantsPin(e.msg.clone()); err != nil {
				return nil, err
			}
		}
		batch = append(batch, a)
	}
	return batch, nil
}

func (h *History) wantsPin(m Message) (pin bool, err error) {
	defer catch(&err, "Options.Pin")
	return h.opts.Pin(m), nil
}

// cutResults cuts the results that are longer than Options.MaxResult.
func (h *History) cutResults(parts []Part) error {
	for i, p := range parts {
		r := p.(ToolResult)
		size := textSize(r.Parts)
		if size <= h.opts.MaxResult {
			continue
		}
		ref, err := h.spill(r)
		if err != nil {
			return err
		}
		marker := cutMarker(size, ref)
		if len(marker) > h.opts.MaxResult {
			return &MessageError{Role: RoleTool, Part: i, Reason: "the reference that Spill returned is longer than MaxResult"}
		}
		parts[i] = cutResult(r, h.opts.MaxResult, marker)
	}
	return nil
}

// spill hands the original of a result to Options.Spill.
func (h *History) spill(r ToolResult) (ref string, err error) {
	if h.opts.Spill == nil {
		return "", nil
	}
	defer catch(&err, "Options.Spill")
	r.Parts = slices.Clone(r.Parts)
	ref, err = h.opts.Spill(r)
	if err != nil {
		return "", fmt.Errorf("convo: spill result of call %q: %w", r.CallID, err)
	}
	return validText(ref), nil
}

// place puts a batch behind what is there, or says why it may not stand there
// and leaves everything as it was. The lock is held.
func (h *History) place(batch []arrival) (ID, error) {
	var answered []int // calls of h.calls that this batch answers
	open, id, turn := h.calls, h.last, h.turn
	now := time.Now().UnixNano()

	var interrupted []*entry
	if batch[0].msg.Role == RoleUser && h.opts.Roles.Interrupt {
		interrupted, answered = h.answers(interruptReason, h.interruptTokens)
		id += ID(len(interrupted))
	}
	prev := h.newestRole()
	if len(interrupted) > 0 {
		prev = RoleTool
	}
	others := len(h.list) > 0
	for i := range batch {
		a := &batch[i]
		id++
		a.id, a.head, a.at = id, id, now
		role := a.msg.Role
		var err error
		switch {
		case role == RoleTool && open == h.calls:
			err = open.pair(a.entry, &answered)
		case role == RoleTool:
			err = open.pair(a.entry, new([]int))
		case open.openCalls() > 0:
			k := open.firstOpen()
			err = &PairError{Err: ErrOpenCalls, CallID: k.id, Name: k.name}
		case role == RoleSystem && others, role != RoleSystem && !h.opts.Roles.allows(prev, role):
			err = &RoleError{Attempted: role, Previous: prev, HasPrevious: prev != RoleNone}
		}
		if err != nil {
			h.calls.reopen(answered)
			return 0, atIndex(err, i)
		}
		if role == RoleUser && prev != RoleUser {
			turn++
			a.pin = a.pin || turn == 1 && h.opts.PinFirstUser
		}
		if role != RoleTool {
			open = a.begin()
		}
		if role != RoleSystem {
			a.turn, others = turn, true
		}
		prev = role
	}

	h.change()
	for _, e := range interrupted {
		h.push(e)
	}
	for i := range batch {
		h.push(batch[i].entry)
		if batch[i].pin {
			h.pin(batch[i].head)
		}
	}
	h.calls, h.last = open, id
	h.lastAppend = now
	h.settle()
	return id, nil
}

// push adds one entry that was found to be in order.
func (h *History) push(e *entry) {
	if e.msg.Role == RoleSystem {
		h.sys = append(h.sys, e)
		h.sysRaw += e.tokens
	} else {
		if n := len(h.list); e.turn > 0 && (n == 0 || h.list[n-1].turn < e.turn) {
			h.turns++
		}
		h.turn = e.turn
		h.list = append(h.list, e)
		h.listRaw += e.tokens
		if h.isPinned(e.head) {
			h.pinRaw += e.tokens
		}
	}
	h.appended += e.tokens
	h.appendedEver += e.tokens
}

// answers makes error results for all open calls, marks the calls answered,
// and returns their positions. IDs follow the last one given; the lock is
// held, so the reason comes counted.
func (h *History) answers(reason string, tokens int64) (made []*entry, answered []int) {
	c := h.calls
	if c.openCalls() == 0 {
		return nil, nil
	}
	now := time.Now().UnixNano()
	for i := range c.list {
		k := &c.list[i]
		if k.answered {
			continue
		}
		e := &entry{
			id:     h.last + ID(len(made)+1),
			head:   c.head,
			at:     now,
			turn:   h.turn,
			tokens: int64(h.ident.over.Message+h.ident.over.Result) + k.idTokens + k.nameTokens + tokens,
		}
		e.inline[0] = ToolResult{CallID: k.id, Name: k.name, Parts: []Part{Text(reason)}, IsError: true}
		e.msg = Message{Role: RoleTool, Parts: e.inline[:]}
		made, answered = append(made, e), append(answered, i)
	}
	for _, i := range answered {
		c.answer(i)
	}
	return made, answered
}

// AnswerOpenCalls answers every open call with an error result that gives the
// reason ("no result" when it is empty), and returns how many there were. Use
// it when a tool round was given up.
func (h *History) AnswerOpenCalls(reason string) (answered int, err error) {
	if h.ident == nil {
		return 0, ErrClosed
	}
	if reason = validText(reason); reason == "" {
		reason = "no result"
	}
	tokens, err := h.countText(reason)
	if err != nil {
		return 0, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended() {
		return 0, ErrClosed
	}
	made, _ := h.answers(reason, tokens)
	if len(made) == 0 {
		return 0, nil
	}
	h.change()
	for _, e := range made {
		h.push(e)
		h.last, h.lastAppend = e.id, e.at
	}
	h.settle()
	return len(made), nil
}

// countText counts one text; no lock is held.
func (h *History) countText(s string) (n int64, err error) {
	defer catch(&err, "Options.Tokenizer")
	return h.ident.text(s), nil
}

// newestRole is the role of what a new message would follow.
func (h *History) newestRole() Role {
	switch {
	case len(h.list) > 0:
		return h.list[len(h.list)-1].msg.Role
	case len(h.sys) > 0:
		return RoleSystem
	}
	return RoleNone
}

// change begins a change: what was handed out stays as it was.
func (h *History) change() {
	h.version++
	h.snap = nil
}

// settle ends a change: the charge follows the estimate.
func (h *History) settle() {
	if h.opts.Budget != nil {
		h.opts.Budget.follow(&h.charge, h.upper())
	}
}

func (h *History) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended()
}

// ended reports whether changes are refused. The zero History is ended.
func (h *History) ended() bool { return h.closed || h.ident == nil }

// owns says why a snapshot may not be used for a change; nil when it may.
func (h *History) owns(at *Snapshot) error {
	switch {
	case h.ended():
		return ErrClosed
	case at == nil || at.owner != h:
		return ErrStale
	}
	return nil
}

// Snapshot returns a picture of the view as it is. It costs nothing when
// nothing has changed since the last one, and one small allocation otherwise.
func (h *History) Snapshot() *Snapshot {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.snapshot()
}

func (h *History) snapshot() *Snapshot {
	if h.snap == nil {
		h.snap = &Snapshot{owner: h, state: h.state.clipped()}
	}
	return h.snap
}

// Len returns how many entries are in the view, system entries included.
func (h *History) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state.len()
}

// String says what h is, in a few words.
func (h *History) String() string {
	s := h.Status()
	return fmt.Sprintf("History(%d entries, %d turns, %d tokens)", s.Entries, s.Turns, s.Tokens)
}

// SetLimits puts other limits in force. A fault is a [*ValueError], and all of
// them are reported at once.
func (h *History) SetLimits(l Limits) error {
	limits, faults := l.withDefaults()
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended() {
		return ErrClosed
	}
	h.change()
	h.limits = limits
	h.mark()
	k := *h.known()
	k.cap = overheadCap(limits)
	h.knowledge = &k
	h.settle()
	return nil
}

// atIndex puts the position in the batch into an error.
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

package replay

import (
	"context"
	"hash/maphash"
	"strconv"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/session"
)

// An addition is a message that was appended.
type addition struct {
	msg    *convo.Message
	tokens int
	isMade bool // it is not recorded: it answers open calls
}

// mostWindows is how many times the window the last recorded list may have for a check of its
// form. No provider takes a longer one, whatever its form.
const mostWindows = 4

// recordedPolicy sends what the other program sent.
type recordedPolicy struct {
	*line
	heads   int
	msgs    []*convo.Message // the recorded messages of the view
	sent    int              // how many of them the last request held
	window  int
	tooLong bool // the list has more
}

func (p *recordedPolicy) append(a *addition) {
	it := item{tokens: a.tokens}
	if !p.onlySum { // a compaction will compare the messages
		it.key = hashOf(0, a.msg)
	}
	p.grow(it)
	if !a.isMade && !p.tooLong {
		p.msgs = append(p.msgs, a.msg)
	}
}

// asked notes that the view was sent.
func (p *recordedPolicy) asked() {
	if p.sum/mostWindows > p.window {
		p.tooLong, p.msgs = true, nil
	}
	p.sent = len(p.msgs)
}

// compact puts the view of a compaction in the place of all but the head. It returns the
// tokens at the beginning that stay.
func (p *recordedPolicy) compact(c *session.Compaction, count func(convo.Message) int) (kept int) {
	items := append([]item(nil), p.items[:p.heads]...)
	p.msgs, p.sent, p.tooLong = nil, 0, false
	for i := range c.View {
		m := &c.View[i]
		items = append(items, item{key: hashOf(0, m), tokens: count(*m)})
		p.msgs = append(p.msgs, m)
	}
	return p.replace(items)
}

// trimPolicy drops the oldest exchanges when a request is above the limit, until it is at
// most half of the limit. System messages at the front, the first user message and the
// newest exchange stay.
type trimPolicy struct {
	*line
	limit       int
	next        uint64 // key of the next item
	head        int    // number of items at the front that stay
	first       int    // index of the first user message; -1: none yet
	exchanges   []int  // the index at which each exchange after the head begins
	compactions int
}

func (p *trimPolicy) append(a *addition) {
	at := len(p.items)
	p.grow(item{key: p.next, tokens: a.tokens})
	p.next++
	switch {
	case a.msg.Role == convo.RoleSystem && at == p.head:
		p.head++
	case a.msg.Role == convo.RoleTool && len(p.exchanges) > 0:
	default:
		p.exchanges = append(p.exchanges, at)
	}
	if a.msg.Role == convo.RoleUser && p.first < 0 {
		p.first = at
	}
}

// request drops what has to be dropped for the next request.
func (p *trimPolicy) request() {
	if p.sum <= p.limit || len(p.exchanges) < 2 {
		return
	}
	sum, n := p.sum, 0
	for ; n < len(p.exchanges)-1 && sum > p.limit/2; n++ {
		if p.exchanges[n] == p.first {
			continue
		}
		for i := p.exchanges[n]; i < p.exchanges[n+1]; i++ {
			sum -= p.items[i].tokens
		}
	}
	if sum == p.sum {
		return
	}
	from := p.exchanges[n]
	items := append([]item(nil), p.items[:p.head]...)
	exchanges := p.exchanges[:0:0]
	if p.first >= 0 && p.first < from {
		exchanges = append(exchanges, len(items))
		items = append(items, p.items[p.first])
	}
	shift := len(items) - from
	for _, at := range p.exchanges[n:] {
		exchanges = append(exchanges, at+shift)
	}
	if p.first >= from {
		p.first += shift
	} else if p.first >= 0 {
		p.first = p.head
	}
	p.exchanges = exchanges
	p.replace(append(items, p.items[from:]...))
	p.compactions++
}

// convoPolicy sends what a History with the defaults of convo has in its view.
type convoPolicy struct {
	*line
	h       *convo.History
	counter *convo.History // counts messages as a request shows them; h would mask its own key in them
	archive *archive       // of what left the view; nil: nothing will be asked
	tools   int            // tokens of the tools

	heads       int // number of items at the front, system messages of the session included
	given       int // number of these system messages
	system      int // number of system entries in snap
	snap        *convo.Snapshot
	last        convo.ID
	compactions int
	unsent      int // requests that Prepare refused

	// They follow the view, if they are not nil.
	rebuilt func(s *convo.Snapshot)            // called when the view is not only longer, before grown for all it holds
	grown   func(key uint64, m *convo.Message) // called for each entry
}

func newConvo(window int, s *session.Session, t convo.Tokenizer) (*convoPolicy, error) {
	counter, err := convo.New(&convo.Options{Tokenizer: t})
	if err != nil {
		return nil, err
	}
	p := &convoPolicy{counter: counter}
	p.h, err = convo.New(&convo.Options{
		Limits:    convo.Limits{Window: window},
		Roles:     convo.Relaxed(),
		Tokenizer: t,
		TagKey:    "convo replay", // a random one would make each replay come out a little different
		OnCompaction: func(r convo.Report) {
			if p.archive != nil {
				p.archive.observe(r)
			}
			if r.Outcome == convo.OutcomeApplied && r.Reason != convo.ReasonAppend {
				p.compactions++
			}
		},
	})
	if err != nil {
		p.close()
		return nil, err
	}
	if err := p.h.SetSystem(s.System...); err != nil {
		p.close()
		return nil, err
	}
	if len(s.Tools) > 0 {
		before := p.h.Snapshot().Tokens()
		if err := p.h.SetTools(s.Tools...); err != nil {
			p.close()
			return nil, err
		}
		p.tools = p.h.Snapshot().Tokens() - before
	}
	return p, nil
}

func (p *convoPolicy) close() {
	_ = p.counter.Close()
	if p.h != nil {
		_ = p.h.Close()
	}
}

// start says what stands at the front of each request, and how much of it the History
// cannot see.
func (p *convoPolicy) start(head []item, overhead int) error {
	p.line = newLine(head, false)
	p.heads = len(head)
	snap := p.h.Snapshot()
	p.given = snap.Len()
	if p.given > 0 {
		e, _ := snap.At(p.given - 1)
		p.last = e.ID
	}
	return p.h.SetLimits(convo.Limits{Window: p.h.Status().Window, Tools: overhead})
}

// count returns the estimate of a message, or 0 if a History does not accept it.
func (p *convoPolicy) count(m convo.Message) int {
	n, err := p.counter.Count(m)
	if err != nil {
		return 0
	}
	return n
}

// append adds a message. It returns what was added, and false if the message was refused.
// What was added may be more than the message: open calls are answered first.
func (p *convoPolicy) append(m *convo.Message) (added []addition, ok bool) {
	last, err := p.h.Append(*m)
	if err != nil {
		if _, err := p.h.AnswerOpenCalls(""); err != nil {
			return nil, false
		}
		last, err = p.h.Append(*m)
	}
	ok = err == nil
	if ok && p.archive != nil {
		p.archive.appended(last, m)
	}
	if !ok {
		snap := p.h.Snapshot()
		e, _ := snap.At(snap.Len() - 1)
		last = e.ID
	}
	for id := p.last + 1; id <= last; id++ {
		e, found := p.h.Snapshot().Find(id)
		switch {
		case !found:
		case id < last || !ok:
			added = append(added, addition{msg: &e.Message, tokens: e.Tokens, isMade: true})
		case e.Missing > 0:
			added = append(added, addition{msg: m, tokens: p.count(*m)})
		default:
			added = append(added, addition{msg: m, tokens: e.Tokens})
		}
	}
	p.last = max(p.last, last)
	return added, ok
}

// request brings the items up to the view of the next request. A request above the limit is
// also made.
func (p *convoPolicy) request(ctx context.Context) error {
	snap, _, err := p.h.Prepare(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		p.unsent++
	}
	was, wasSystem := p.snap, p.system
	p.snap, p.system = snap, p.h.Status().System
	if was != nil && p.system == wasSystem && was.Len() > p.system && snap.Same(was) == was.Len() {
		for i := was.Len(); i < snap.Len(); i++ {
			p.grow(p.shown(snap, i))
		}
		return nil
	}
	if p.rebuilt != nil {
		p.rebuilt(snap)
	}
	items := append([]item(nil), p.items[:p.heads]...)
	for i := p.given; i < snap.Len(); i++ {
		if i == p.system {
			items = p.summary(items)
		}
		items = append(items, p.shown(snap, i))
	}
	if snap.Len() == p.system {
		items = p.summary(items)
	}
	p.replace(items)
	return nil
}

// shown returns the item of an entry of the view.
func (p *convoPolicy) shown(snap *convo.Snapshot, i int) item {
	e, _ := snap.At(i)
	it := item{key: hashOf(e.ID, &e.Message), tokens: e.Tokens}
	if p.grown != nil {
		p.grown(it.key, &e.Message)
	}
	return it
}

// summary adds the summary of the view, if there is one.
func (p *convoPolicy) summary(items []item) []item {
	if _, ok := p.snap.Summary(); !ok {
		return items
	}
	for _, m := range p.snap.MessagesFrom(p.system, nil) {
		return append(items, item{key: hashOf(-1, &m), tokens: p.count(m)})
	}
	return items
}

// sentAs reports the size of the last request as its usage.
func (p *convoPolicy) sentAs(tokens int) error {
	return p.h.RecordUsage(p.snap, convo.Usage{Input: tokens})
}

var seed = maphash.MakeSeed()

// hashOf returns a key for a message at a place.
func hashOf(id convo.ID, m *convo.Message) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	write := func(kind byte, texts ...string) {
		_ = h.WriteByte(kind)
		for _, s := range texts {
			_, _ = h.WriteString(s)
			_ = h.WriteByte(0xff) // in no valid text
		}
	}
	write('i', strconv.FormatInt(int64(id), 10), string(m.Role), m.Author)
	hashParts(write, m.Parts)
	return h.Sum64() | 1<<63 // so that it is no key of the head, nor of a place
}

func hashParts(write func(kind byte, texts ...string), parts []convo.Part) {
	for _, p := range parts {
		switch p := p.(type) {
		case convo.Text:
			write('t', string(p))
		case convo.Reasoning:
			write('r', p.Text)
		case convo.ToolCall:
			write('c', p.ID, p.Name, p.Arguments)
		case convo.ToolResult:
			write('a', p.CallID, p.Name)
			hashParts(write, p.Parts)
		case convo.Media:
			write('m', p.MIME, p.URL, p.Data)
		case convo.Opaque:
			write('o', p.JSON)
		}
	}
}

package convo

import (
	"iter"
	"slices"
)

// calls holds the tool calls of an exchange, and which of them are answered.
// Calls and results pair by occurrence: a result answers the first open call
// with its ID.
type calls struct {
	head ID // of the exchange
	list []call
	open int // how many have no result yet

	keyed map[callKey]*keyedCalls // nil unless there are more than manyCalls
}

type call struct {
	id, name             string
	idTokens, nameTokens int64
	answered             bool
}

// A callKey is the ID or the name of calls, or empty for all calls.
type callKey struct{ id, name string }

// keyedCalls are the calls with a key, as indices in ascending order. None of those before
// first is open.
type keyedCalls struct {
	all   []int
	first int
}

// Up to this many calls, find searches the list. With more, keyed keeps the time to answer all
// calls linear.
const manyCalls = 32

// newCalls returns the calls of a message, all of them open, or nil if it has
// none. by counts the tokens of their IDs and names.
func newCalls(m *Message, by *counter) *calls {
	var list []call
	for _, p := range m.Parts {
		if p, ok := p.(ToolCall); ok {
			list = append(list, call{id: p.ID, name: p.Name, idTokens: by.text(p.ID), nameTokens: by.text(p.Name)})
		}
	}
	if list == nil {
		return nil
	}
	return &calls{list: list, open: len(list)}
}

// begin returns a copy of the calls of e, all of them open, for results to
// answer. It returns nil if e has none.
func (e *entry) begin() *calls {
	if e.calls == nil {
		return nil
	}
	return e.beginIn(new(calls))
}

// beginIn is begin for an entry that has calls. It makes the copy in c, and reuses
// its memory.
func (e *entry) beginIn(c *calls) *calls {
	*c = calls{head: e.id, list: append(c.list[:0], e.calls.list...), open: len(e.calls.list)}
	if len(c.list) > manyCalls {
		c.keyed = make(map[callKey]*keyedCalls)
		for i := range c.list {
			for _, key := range c.list[i].keys() {
				if c.keyed[key] == nil {
					c.keyed[key] = new(keyedCalls)
				}
				c.keyed[key].all = append(c.keyed[key].all, i)
			}
		}
	}
	return c
}

// keys returns the keys of a call.
func (k *call) keys() [3]callKey { return [...]callKey{{}, {id: k.id}, {name: k.name}} }

// openCalls returns how many calls are open. c may be nil.
func (c *calls) openCalls() int {
	if c == nil {
		return 0
	}
	return c.open
}

// find returns the index of the first open call with this ID or, if id is empty,
// of this tool. Both may be empty. c may be nil.
func (c *calls) find(id, name string) (int, error) {
	if c == nil {
		return 0, ErrNoOpenCall
	}
	if c.keyed != nil {
		return c.lookUp(id, name)
	}
	answered := false
	for i := range c.list {
		k := &c.list[i]
		if id != "" && k.id != id || id == "" && name != "" && k.name != name {
			continue
		}
		if !k.answered {
			return i, nil
		}
		answered = true
	}
	return 0, notFound(id != "" && answered)
}

// lookUp is find with c.keyed.
func (c *calls) lookUp(id, name string) (int, error) {
	key := callKey{id: id}
	if id == "" {
		key.name = name
	}
	k := c.keyed[key]
	if k == nil {
		return 0, notFound(false)
	}
	for k.first < len(k.all) && c.list[k.all[k.first]].answered {
		k.first++
	}
	if k.first == len(k.all) {
		return 0, notFound(id != "")
	}
	return k.all[k.first], nil
}

// notFound returns the error for a result without an open call. answered says
// whether a call with its ID has a result already.
func notFound(answered bool) error {
	if answered {
		return errAnswered
	}
	return ErrNoOpenCall
}

// answer marks a call as answered.
func (c *calls) answer(i int) {
	c.list[i].answered = true
	c.open--
}

// reopen marks calls as open again.
func (c *calls) reopen(answered []int) {
	for _, i := range answered {
		k := &c.list[i]
		k.answered = false
		c.open++
		if c.keyed == nil {
			continue
		}
		for _, key := range k.keys() {
			n, _ := slices.BinarySearch(c.keyed[key].all, i)
			c.keyed[key].first = min(c.keyed[key].first, n)
		}
	}
}

// openError returns the error of a message that may not come before the result of the first
// open call. There must be one.
func (c *calls) openError() *PairError {
	i, _ := c.find("", "")
	return &PairError{Err: ErrOpenCalls, CallID: c.list[i].id, Name: c.list[i].name}
}

// pairByID finds the call that each result with an ID in e answers, marks it as
// answered, and fills in the name. It appends the calls to answered, for reopen. It
// reports whether all results of e have an ID. After an error, the calls of the
// results before the faulty one remain answered. c may be nil.
func (c *calls) pairByID(e *entry, answered *[]int) (all bool, err error) {
	all = true
	for i, p := range e.msg.Parts {
		r := p.(ToolResult)
		if r.CallID == "" {
			all = false
			continue
		}
		k, err := c.find(r.CallID, "")
		if err != nil {
			return false, &PairError{Err: err, CallID: r.CallID, Name: r.Name}
		}
		c.take(k, e, i)
		*answered = append(*answered, k)
	}
	if c != nil {
		e.head = c.head
	}
	return all, nil
}

// pairRest pairs the results without an ID in a run of tool messages, after
// pairByID. If a tool has as many of these results as open calls, they answer its
// calls in order. All other results must be as many as the other open calls, with
// their names in the order of the calls. It returns the calls that were answered
// and, on an error, the index of the faulty message in the run. c may be nil.
func (c *calls) pairRest(run iter.Seq2[int, *entry]) (answered []int, at int, err error) {
	unsure, few := c.unsure(run)
	for _, inOrder := range []bool{false, true} {
		sure := len(answered)
		for at, e := range run {
			for i, p := range e.msg.Parts {
				r := p.(ToolResult)
				if r.CallID != "" || unsure[r.Name] != inOrder {
					continue
				}
				name := r.Name
				if inOrder {
					name = "" // the next call, whatever its name
				}
				k, err := c.find("", name)
				if err != nil {
					return answered, at, &PairError{Err: err, Name: r.Name}
				}
				if inOrder && (few || r.Name != "" && r.Name != c.list[k].name) {
					c.reopen(answered[sure:])
					return answered[:sure], at, &PairError{Err: errAmbiguous, Name: r.Name, Calls: c.named(r.Name)}
				}
				c.take(k, e, i)
				answered = append(answered, k)
			}
		}
	}
	return answered, 0, nil
}

// unsure returns the names of tools with fewer results without an ID in a run of tool messages
// than open calls, and the empty name. It also reports whether all these results are fewer than
// the open calls. c may be nil.
func (c *calls) unsure(run iter.Seq2[int, *entry]) (names map[string]bool, few bool) {
	results := make(map[string]int) // how many there are, by name
	sum := 0
	for _, e := range run {
		for _, p := range e.msg.Parts {
			if r := p.(ToolResult); r.CallID == "" {
				results[r.Name]++
				sum++
			}
		}
	}
	names = make(map[string]bool)
	for name, n := range results {
		names[name] = name == "" || c.hasOpen(name, n+1)
	}
	return names, sum < c.openCalls()
}

// take marks a call as answered by the i-th part of e, a result, and fills in the
// ID and name of the result if they are empty.
func (c *calls) take(k int, e *entry, i int) {
	c.answer(k)
	call, r := &c.list[k], e.msg.Parts[i].(ToolResult)
	if r.CallID == "" {
		r.CallID, e.tokens = call.id, e.tokens+call.idTokens
	}
	if r.Name == "" {
		r.Name, e.tokens = call.name, e.tokens+call.nameTokens
	}
	e.msg.Parts[i] = r
}

// hasOpen reports whether a tool has at least n open calls. c may be nil.
func (c *calls) hasOpen(name string, n int) bool {
	if c == nil {
		return false
	}
	if c.keyed == nil {
		return len(c.named(name)) >= n
	}
	k := orNil(c.keyed[callKey{name: name}])
	for i := k.first; i < len(k.all) && n > 0; i++ {
		if !c.list[k.all[i]].answered {
			n--
		}
	}
	return n <= 0
}

// named returns the IDs of the open calls of a tool, in order, or of all open
// calls if name is empty.
func (c *calls) named(name string) (ids []string) {
	for i := range c.list {
		if k := &c.list[i]; !k.answered && (name == "" || k.name == name) {
			ids = append(ids, k.id)
		}
	}
	return ids
}

// callsOf returns the calls of the newest exchange of a list, those with a
// result marked as answered. It returns nil if the exchange has no calls.
func callsOf(list []*entry) *calls {
	if len(list) == 0 {
		return nil
	}
	from, to := exchangeAt(list, len(list)-1)
	c := list[from].begin()
	for _, e := range list[from+1 : to] {
		for r := range eachOf[ToolResult](e.msg.Parts) {
			if i, err := c.find(r.CallID, r.Name); err == nil {
				c.answer(i)
			}
		}
	}
	return c
}

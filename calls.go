package convo

import (
	"github.com/seed-c1b73e60/convo/internal/pairs"
)

// calls are the tool calls of an exchange, and which of them are answered.
type calls = pairs.Calls[ID]

// newCalls returns the calls of a message, all of them open, or nil if it has
// none. by counts the tokens of their IDs and names.
func newCalls(m *Message, by *counter) *calls {
	var list []pairs.Call
	for c := range eachOf[ToolCall](m.Parts) {
		list = append(list, pairs.Call{ID: c.ID, Name: c.Name, IDTokens: by.text(c.ID), NameTokens: by.text(c.Name)})
	}
	return pairs.Of[ID](list)
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
	c.Begin(e.id, e.calls)
	return c
}

// openError returns the error of a message that may not come before the result of the first
// open call of c. There must be one.
func openError(c *calls) *PairError {
	i, _ := c.Find("", "")
	return &PairError{Err: ErrOpenCalls, CallID: c.List[i].ID, Name: c.List[i].Name}
}

// pairByID finds the call of c that each result with an ID in e answers, marks it as
// answered, and fills in the name. It appends the calls to answered, for Reopen. It
// reports whether all results of e have an ID. After an error, the calls of the
// results before the faulty one remain answered. c may be nil.
func (e *entry) pairByID(c *calls, answered *[]int) (all bool, err error) {
	all = true
	for i, p := range e.msg.Parts {
		r := p.(ToolResult)
		if r.CallID == "" {
			all = false
			continue
		}
		k, err := c.Find(r.CallID, "")
		if err != nil {
			return false, &PairError{Err: err, CallID: r.CallID, Name: r.Name}
		}
		c.Answer(k)
		e.take(&c.List[k], i)
		*answered = append(*answered, k)
	}
	if c != nil {
		e.head = c.Head
	}
	return all, nil
}

// pairRest pairs the results without an ID in a run of tool messages, after pairByID, as
// Pair of c does. It returns the calls that were answered and, on an error, the index of the
// faulty message in the run. c may be nil.
func pairRest(c *calls, run []*entry) (answered []int, at int, err error) {
	var names []string // of the results
	var of []*entry    // their entries
	var message, part []int
	for at, e := range run {
		for i, p := range e.msg.Parts {
			if r := p.(ToolResult); r.CallID == "" {
				names, of, message, part = append(names, r.Name), append(of, e), append(message, at), append(part, i)
			}
		}
	}
	answered, i, err := c.Pair(names, func(i, k int) { of[i].take(&c.List[k], part[i]) })
	if err == nil {
		return answered, 0, nil
	}
	wrong := &PairError{Err: err, Name: names[i]}
	if err == errAmbiguous {
		wrong.Calls = c.Named(names[i])
	}
	return answered, message[i], wrong
}

// take fills in the ID and name of the i-th part of e, the result of a call, if they are empty.
func (e *entry) take(call *pairs.Call, i int) {
	r := e.msg.Parts[i].(ToolResult)
	if r.CallID == "" {
		r.CallID, e.tokens = call.ID, e.tokens+call.IDTokens
	}
	if r.Name == "" {
		r.Name, e.tokens = call.Name, e.tokens+call.NameTokens
	}
	e.msg.Parts[i] = r
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
			if i, err := c.Find(r.CallID, r.Name); err == nil {
				c.Answer(i)
			}
		}
	}
	return c
}

package convo

import "slices"

// calls are the tool calls of the newest exchange and which of them are
// answered. Pairing is by occurrence: a result answers the first unanswered
// call with its id.
type calls struct {
	head  ID
	list  []call
	open  int // how many are not answered
	first int // none before it is open

	// Positions by id and by name, for messages with many calls; what is
	// answered is taken from the front as it is met.
	byID, byName map[string][]int
}

type call struct {
	id, name             string
	idTokens, nameTokens int64
	answered             bool
}

// manyCalls is where looking through the list would begin to cost.
const manyCalls = 32

// newCalls returns the calls of an assistant message, all open and counted, nil
// when it has none.
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

// begin returns the calls of the entry, all open, to be answered: e keeps its
// own as they are.
func (e *entry) begin() *calls {
	if e.calls == nil {
		return nil
	}
	return &calls{head: e.id, list: slices.Clone(e.calls.list), open: len(e.calls.list)}
}

// openCalls returns how many calls are open; none for nil.
func (c *calls) openCalls() int {
	if c == nil {
		return 0
	}
	return c.open
}

// find returns the call that a result with this id and name answers.
func (c *calls) find(id, name string) (int, error) {
	if c == nil {
		return 0, ErrNoOpenCall
	}
	for c.first < len(c.list) && c.list[c.first].answered {
		c.first++
	}
	if id == "" && name == "" {
		if c.first == len(c.list) {
			return 0, ErrNoOpenCall
		}
		return c.first, nil
	}
	if len(c.list) > manyCalls {
		return c.lookUp(id, name)
	}
	answered := false
	for i := range c.list {
		if k := &c.list[i]; id != "" && k.id == id || id == "" && k.name == name {
			if !k.answered {
				return i, nil
			}
			answered = true
		}
	}
	return 0, notFound(id != "" && answered)
}

func (c *calls) lookUp(id, name string) (int, error) {
	if c.byID == nil {
		c.byID, c.byName = make(map[string][]int), make(map[string][]int)
		for i := range c.list {
			k := &c.list[i]
			c.byID[k.id] = append(c.byID[k.id], i)
			c.byName[k.name] = append(c.byName[k.name], i)
		}
	}
	positions, key := c.byID, id
	if id == "" {
		positions, key = c.byName, name
	}
	list, known := positions[key]
	for len(list) > 0 && c.list[list[0]].answered {
		list = list[1:]
	}
	if known {
		positions[key] = list
	}
	if len(list) == 0 {
		return 0, notFound(id != "" && known)
	}
	return list[0], nil
}

func notFound(answered bool) error {
	if answered {
		return ErrAnswered
	}
	return ErrNoOpenCall
}

func (c *calls) answer(i int) {
	c.list[i].answered = true
	c.open--
}

// reopen takes answers back.
func (c *calls) reopen(answered []int) {
	if len(answered) == 0 {
		return
	}
	for _, i := range answered {
		c.list[i].answered = false
		c.first = min(c.first, i)
	}
	c.open += len(answered)
	c.byID, c.byName = nil, nil
}

// firstOpen returns the first open call; there must be one.
func (c *calls) firstOpen() *call {
	i := slices.IndexFunc(c.list[c.first:], func(k call) bool { return !k.answered })
	return &c.list[c.first+i]
}

// pair finds the call that each result in e answers, marks it answered, and
// fills in the id and name that a result came without. answered collects the
// positions for reopen. On an error the results before it stay marked.
func (c *calls) pair(e *entry, answered *[]int) error {
	for i, p := range e.msg.Parts {
		r := p.(ToolResult)
		k, err := c.find(r.CallID, r.Name)
		if err != nil {
			return &PairError{Err: err, CallID: r.CallID, Name: r.Name}
		}
		c.answer(k)
		*answered = append(*answered, k)
		call := &c.list[k]
		if r.CallID == "" {
			r.CallID, e.tokens = call.id, e.tokens+call.idTokens
		}
		if r.Name == "" {
			r.Name, e.tokens = call.name, e.tokens+call.nameTokens
		}
		e.msg.Parts[i] = r
	}
	e.head = c.head
	return nil
}

// callsOf finds the calls of the newest exchange of a list and marks those
// that its results answer.
func callsOf(list []*entry) *calls {
	if len(list) == 0 {
		return nil
	}
	from, to := exchangeAt(list, len(list)-1)
	c := list[from].begin()
	for _, e := range list[from+1 : to] {
		for _, p := range e.msg.Parts {
			if r, ok := p.(ToolResult); ok {
				if i, err := c.find(r.CallID, r.Name); err == nil {
					c.answer(i)
				}
			}
		}
	}
	return c
}

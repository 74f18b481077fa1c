// Package pairs pairs the results of tools with the calls of an exchange. They pair by
// occurrence: a result answers the first open call with its ID.
package pairs

import (
	"errors"
	"slices"

	"github.com/seed-c1b73e60/convo/internal/wording"
)

// Errors for results that cannot be paired.
var (
	ErrNoOpenCall = errors.New("convo: result answers no call of the newest exchange")
	ErrAnswered   = error(&wording.Error{Text: "call already has a result", Err: ErrNoOpenCall})
	ErrAmbiguous  = errors.New("convo: result without an ID could answer several calls")
)

// Calls are the tool calls of an exchange, and which of them are answered. A nil *Calls has no
// calls.
type Calls[H any] struct {
	Head H // of the exchange
	List []Call
	open int // how many have no result yet

	keyed map[key]*keyedCalls // nil unless there are more than manyCalls
}

// A Call is the call of a tool.
type Call struct {
	ID, Name             string
	IDTokens, NameTokens int64
	Answered             bool
}

// A key is the ID or the name of calls, or empty for all calls.
type key struct{ id, name string }

// keyedCalls are the calls with a key, as indices in ascending order. None of those before
// first is open.
type keyedCalls struct {
	all   []int
	first int
}

// Up to this many calls, Find searches the list. With more, keyed keeps the time to answer all
// calls linear.
const manyCalls = 32

// Of returns calls, all of them open, or nil if there are none. They may be given to Begin.
func Of[H any](list []Call) *Calls[H] {
	if len(list) == 0 {
		return nil
	}
	return &Calls[H]{List: list, open: len(list)}
}

// Begin makes c a copy of the calls of the exchange head, none of which is answered. It reuses
// the memory of c.
func (c *Calls[H]) Begin(head H, from *Calls[H]) {
	*c = Calls[H]{Head: head, List: append(c.List[:0], from.List...), open: len(from.List)}
	if len(c.List) <= manyCalls {
		return
	}
	c.keyed = make(map[key]*keyedCalls)
	for i := range c.List {
		for _, k := range c.List[i].keys() {
			if c.keyed[k] == nil {
				c.keyed[k] = new(keyedCalls)
			}
			c.keyed[k].all = append(c.keyed[k].all, i)
		}
	}
}

// keys returns the keys of a call.
func (k *Call) keys() [3]key { return [...]key{{}, {id: k.ID}, {name: k.Name}} }

// Open returns how many calls are open.
func (c *Calls[H]) Open() int {
	if c == nil {
		return 0
	}
	return c.open
}

// Find returns the index of the first open call with this ID or, if id is empty, of this tool.
// Both may be empty. The error is ErrNoOpenCall, or ErrAnswered if a call has the ID.
func (c *Calls[H]) Find(id, name string) (int, error) {
	if c == nil {
		return 0, ErrNoOpenCall
	}
	if c.keyed != nil {
		return c.lookUp(id, name)
	}
	answered := false
	for i := range c.List {
		k := &c.List[i]
		if id != "" && k.ID != id || id == "" && name != "" && k.Name != name {
			continue
		}
		if !k.Answered {
			return i, nil
		}
		answered = true
	}
	return 0, notFound(id != "" && answered)
}

// lookUp is Find with c.keyed.
func (c *Calls[H]) lookUp(id, name string) (int, error) {
	if id != "" {
		name = ""
	}
	k := c.keyed[key{id, name}]
	if k == nil {
		return 0, ErrNoOpenCall
	}
	for k.first < len(k.all) && c.List[k.all[k.first]].Answered {
		k.first++
	}
	if k.first == len(k.all) {
		return 0, notFound(id != "")
	}
	return k.all[k.first], nil
}

// notFound returns the error for a result without an open call. answered says whether a call
// with its ID has a result already.
func notFound(answered bool) error {
	if answered {
		return ErrAnswered
	}
	return ErrNoOpenCall
}

// Answer marks a call as answered.
func (c *Calls[H]) Answer(i int) {
	c.List[i].Answered = true
	c.open--
}

// Reopen marks calls as open again.
func (c *Calls[H]) Reopen(answered []int) {
	for _, i := range answered {
		k := &c.List[i]
		k.Answered = false
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

// Pair finds the calls that results without an ID answer, of tools with these names, and marks
// them as answered. If a tool has as many of these results as open calls, they answer its calls
// in order. All other results must be as many as the other open calls, with their names in the
// order of the calls. It calls take for each result that it has paired. On an error, it returns
// the index of the faulty result. For ErrAmbiguous, the calls that the results without a name
// of their own answer are open again.
func (c *Calls[H]) Pair(names []string, take func(result, call int)) (answered []int, at int, err error) {
	count := make(map[string]int)
	for _, name := range names {
		count[name]++
	}
	unsure := make(map[string]bool) // whether there are more open calls than results
	for name, n := range count {
		unsure[name] = name == "" || c.hasOpen(name, n+1)
	}
	few := len(names) < c.Open()
	for _, inOrder := range []bool{false, true} {
		sure := len(answered)
		for at, name := range names {
			if unsure[name] != inOrder {
				continue
			}
			tool := name
			if inOrder {
				tool = "" // the next call, whatever its name
			}
			k, err := c.Find("", tool)
			if err != nil {
				return answered, at, err
			}
			if inOrder && (few || name != "" && name != c.List[k].Name) {
				c.Reopen(answered[sure:])
				return answered[:sure], at, ErrAmbiguous
			}
			c.Answer(k)
			take(at, k)
			answered = append(answered, k)
		}
	}
	return answered, 0, nil
}

// hasOpen reports whether a tool has at least n open calls.
func (c *Calls[H]) hasOpen(name string, n int) bool {
	if c == nil || c.keyed == nil {
		return len(c.Named(name)) >= n
	}
	k := c.keyed[key{name: name}]
	if k == nil {
		return n <= 0
	}
	for i := k.first; i < len(k.all) && n > 0; i++ {
		if !c.List[k.all[i]].Answered {
			n--
		}
	}
	return n <= 0
}

// Named returns the IDs of the open calls of a tool, in order, or of all open calls if name is
// empty.
func (c *Calls[H]) Named(name string) (ids []string) {
	if c == nil {
		return nil
	}
	for i := range c.List {
		if k := &c.List[i]; !k.Answered && (name == "" || k.Name == name) {
			ids = append(ids, k.ID)
		}
	}
	return ids
}

// Command work makes one operation on a number of items. TestWork_IsLinear counts how often
// that runs each statement of package convo.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/seed-c1b73e60/convo"
)

// operations are the operations on n items.
var operations = map[string]func(n int){
	"OpenCalls": func(n int) {
		calls, results := round(n)
		reply := convo.Reply{Messages: []convo.Message{calls, results}}
		if open := reply.OpenCalls(); len(open) != 1 {
			panic(open)
		}
	},
	"Append": func(n int) {
		calls, results := round(n)
		_, err := history().Append(convo.User("q"), calls, results)
		check(err)
	},
	"Prepare": func(n int) {
		h := chat(n)
		check(h.SetLimits(convo.Limits{Window: 2 * n}))
		_, r, err := h.Prepare(context.Background())
		check(err)
		if len(r.Dropped) == 0 {
			panic(r)
		}
	},
	"Apply": func(n int) { // the edit drops one exchange of many messages
		h := history()
		calls, _ := round(n)
		msgs := []convo.Message{convo.User("q"), calls}
		drop := []convo.ID{1, 2}
		for i := range n {
			msgs = append(msgs, convo.Result(convo.ToolCall{ID: fmt.Sprint("call", i), Name: "tool"}, "ok"))
			drop = append(drop, convo.ID(i+3))
		}
		_, err := h.Append(append(msgs, convo.Assistant("a"), convo.User("next"))...)
		check(err)
		_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: drop})
		check(err)
	},
	"Restore": func(n int) {
		data, err := json.Marshal(chat(n).Snapshot())
		check(err)
		s := new(convo.Snapshot)
		check(json.Unmarshal(data, s))
		_, err = convo.Restore(s, nil)
		check(err)
	},
	"Rewind": func(n int) {
		h := chat(n)
		for range n / 2 {
			_, err := h.Rewind(1)
			check(err)
		}
	},
}

func main() {
	n, err := strconv.Atoi(os.Args[2])
	check(err)
	operations[os.Args[1]](n)
}

// round returns n calls, and the results of all but the first, from the last to the second.
func round(n int) (calls, results convo.Message) {
	calls.Role, results.Role = convo.RoleAssistant, convo.RoleTool
	for i := range n {
		id := fmt.Sprint("call", i)
		calls.Parts = append(calls.Parts, convo.ToolCall{ID: id, Name: "tool"})
		results.Parts = append(results.Parts, convo.ToolResult{CallID: id})
	}
	results.Parts = results.Parts[1:]
	slices.Reverse(results.Parts)
	return calls, results
}

// history returns a History whose strategy drops the oldest messages. Its key is not random, so
// that the counts are the same each time.
func history() *convo.History {
	h, err := convo.New(&convo.Options{Strategy: convo.Truncate{}, TagKey: "work"})
	check(err)
	return h
}

// chat returns a conversation of n messages.
func chat(n int) *convo.History {
	h := history()
	for i := range n / 2 {
		_, err := h.Append(convo.User(fmt.Sprint("question ", i)), convo.Assistant("answer"))
		check(err)
	}
	return h
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// Package requests has the rows of the formats of package wire.
package requests

import (
	"fmt"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/compare/talk"
	"github.com/seed-c1b73e60/convo/bench/peer"
	"github.com/seed-c1b73e60/convo/wire"
)

// First is the main function of a program that encodes the first request of an agent with
// 1,000 messages.
func First(name string, f wire.Format) {
	talk.Main("first request, "+name, peer.Case{Max: 8, New: func(k int) (func(int) error, error) {
		all := make([]*convo.Snapshot, k)
		for i := range all {
			h, err := convo.New(nil)
			if err != nil {
				return nil, err
			}
			if _, err := h.Append(Agent(1_000)...); err != nil {
				return nil, err
			}
			all[i] = h.Snapshot()
		}
		return func(i int) error {
			_, err := f.Encode(all[i])
			return err
		}, nil
	}})
}

// Agent returns n messages: questions, calls of a tool, their results and answers in turns.
func Agent(n int) []convo.Message {
	list := make([]convo.Message, n)
	var call convo.ToolCall
	for i, text := range peer.Texts(n) {
		switch i % 4 {
		case 0:
			list[i] = convo.User(text)
		case 1:
			call = convo.ToolCall{ID: fmt.Sprintf("call_%06d", i), Name: "read_file", Arguments: fmt.Sprintf(`{"path":"/src/pkg%d/main.go","line":%d}`, i, i)}
			list[i] = convo.Assistant(text, call)
		case 2:
			list[i] = convo.Result(call, text)
		case 3:
			list[i] = convo.Assistant(text)
		}
	}
	return list
}

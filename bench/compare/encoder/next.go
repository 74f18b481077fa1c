// Package encoder has the rows of the Encoder of package wire, which not all commits have.
package encoder

import (
	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/compare/requests"
	"github.com/seed-c1b73e60/convo/bench/compare/talk"
	"github.com/seed-c1b73e60/convo/bench/peer"
	"github.com/seed-c1b73e60/convo/wire"
)

// Next is the main function of a program that encodes the request after a turn, with an
// Encoder, in a conversation of 10,000 messages.
func Next(name string, f wire.Format) {
	const messages, most = 10_000, 200
	turns := talk.Messages(messages, 2*most)
	var h *convo.History
	var e *wire.Encoder
	talk.Main("next request with Encoder, "+name+", 10,000 messages", peer.Case{Max: most, New: func(k int) (func(int) error, error) {
		if h == nil || h.Snapshot().Len()+2*k > messages+2*most { // the rounds go on with a conversation as long as that is right
			var err error
			if h, err = convo.New(nil); err != nil {
				return nil, err
			}
			if _, err := h.Append(requests.Agent(messages)...); err != nil {
				return nil, err
			}
			e = &wire.Encoder{Format: f}
			if _, err := e.Encode(h.Snapshot()); err != nil {
				return nil, err
			}
		}
		return func(i int) error {
			if _, err := h.Append(turns[2*i], turns[2*i+1]); err != nil {
				return err
			}
			_, err := e.Encode(h.Snapshot())
			return err
		}, nil
	}})
}

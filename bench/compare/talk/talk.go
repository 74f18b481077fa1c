// Package talk makes the conversations of the programs below compare. It uses of convo only
// what commits of long ago have.
package talk

import (
	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/peer"
)

// Main is the main function of a row's program.
func Main(name string, c peer.Case) {
	peer.Main(peer.Peer{Cells: []peer.Cell{{Table: peer.TableCommits, Name: name, New: func(int) peer.Case { return c }}}})
}

// Messages returns the messages from number first on. No two have the same text.
func Messages(first, n int) []convo.Message {
	list := make([]convo.Message, n)
	for i, text := range peer.Texts(first + n)[first:] {
		if peer.IsUser(i) {
			list[i] = convo.User(text)
		} else {
			list[i] = convo.Assistant(text)
		}
	}
	return list
}

// History returns a History of n messages that has the default options, and a window unless
// it is 0.
func History(n, window int) (*convo.History, error) {
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: window}})
	if err == nil {
		_, err = h.Append(Messages(0, n)...)
	}
	return h, err
}

// Histories returns k of them.
func Histories(k, n, window int) ([]*convo.History, error) {
	list := make([]*convo.History, k)
	for i := range list {
		h, err := History(n, window)
		if err != nil {
			return nil, err
		}
		list[i] = h
	}
	return list, nil
}

// Command main is a peer without a library. The tests of package harness use it.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/seed-c1b73e60/convo/bench/peer"
)

func main() {
	peer.Main(peer.Peer{
		Cells: []peer.Cell{
			{Table: peer.TableAppend, Name: "fake", QuickMax: 7, New: allocates},
			{Table: peer.TableAppend, Name: "fails", New: func(int) peer.Case {
				return peer.Case{New: func(int) (func(int) error, error) { return nil, errors.New("it fails") }}
			}},
			{Table: peer.TableAppend, Name: "dies", New: func(int) peer.Case {
				fmt.Fprintln(os.Stderr, "its last words")
				os.Exit(3)
				return peer.Case{}
			}},
			{Table: peer.TableTrim, Name: "slow", New: func(int) peer.Case {
				c := allocates(1)
				c.Once = true
				return c
			}},
		},
		Counters: []peer.Counter{
			{Name: "bytes", Vocabulary: "o200k_base", New: func() (func(string) int, error) { return func(s string) int { return len(s) }, nil }},
			{Name: "none", Vocabulary: "other", New: func() (func(string) int, error) { return nil, errors.New("no vocabulary") }},
		},
		Programs: []peer.Program{{Name: "nothing at all", Load: `count := func(s string) int { return len(s) }`}},
		Talks:    []peer.Keeper{{Name: "newest", New: func(job peer.Job) (peer.Keep, error) { return &newest{}, nil }}},
		Costs:    []peer.Keeper{{Name: "newest and a summary", New: func(job peer.Job) (peer.Keep, error) { return &newest{summary: job.Summary}, nil }}},
		Notes:    []peer.Note{{Table: peer.TableAppend, Text: "a note of the fake"}},
	})
}

var sink []byte

// allocates allocates n bytes in each operation. It also prints something, which
// must not be taken for an answer.
func allocates(n int) peer.Case {
	fmt.Println("printed by the library")
	return peer.Case{New: func(int) (func(int) error, error) {
		return func(int) error { sink = make([]byte, n); return nil }, nil
	}}
}

// newest sends only the newest message, after a summary if it has one.
type newest struct {
	summary string
	last    peer.Message
}

func (k *newest) Add(m peer.Message) error {
	k.last = m
	return nil
}

func (k *newest) Request() (peer.Request, error) {
	if k.summary == "" {
		return peer.Request{View: []peer.Message{k.last}, TooLong: k.last.N == 0}, nil
	}
	return peer.Request{
		View:  []peer.Message{{N: peer.Made, Role: "user", Text: k.summary}, k.last},
		Apart: []peer.Apart{{Input: 5, Output: 1}},
	}, nil
}

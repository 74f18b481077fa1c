// Package turns holds what convo saves of a conversation, turn by turn: the records,
// and the lines of a file in which they are kept. The databases among the peers store
// the same bytes.
package turns

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/peer"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/filestore"
)

// Key is the key of the conversation.
const Key = "talk"

// Open opens the conversation that is saved in a store under a key, or an empty one. It has
// the default options.
func Open(s convo.Store, key string) (*convo.History, error) {
	return convo.Open(context.Background(), s, key, &convo.Options{Limits: convo.Limits{Window: 200_000}})
}

// Add appends turn i: a question and an answer.
func Add(h *convo.History, i int) error {
	_, err := h.Append(convo.User(text(2*i)), convo.Assistant(text(2*i+1)))
	return err
}

var text = peer.Next(0)

// Records returns the records of a conversation that was saved after each of n turns.
func Records(n int) ([]convo.Record, error) {
	s := new(convotest.MemStore)
	h, err := Open(s, Key)
	if err != nil {
		return nil, err
	}
	for i := range n {
		if err := errors.Join(Add(h, i), h.Save(context.Background())); err != nil {
			return nil, err
		}
	}
	list := make([]convo.Record, 0, n)
	for r, err := range s.Records(context.Background(), Key, 1) {
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

// Lines returns the lines of the file in which a filestore.Store keeps n records.
func Lines(n int) ([][]byte, error) {
	list, err := Records(n)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "convo-bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s := &filestore.Store{Dir: dir, NoSync: true}
	for _, r := range list {
		if err := s.Append(context.Background(), r); err != nil {
			return nil, err
		}
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.convo"))
	if err != nil || len(names) != 1 {
		return nil, errors.Join(err, errors.New("turns: there is not one file"))
	}
	data, err := os.ReadFile(names[0])
	if err != nil {
		return nil, err
	}
	return bytes.SplitAfter(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")), nil
}

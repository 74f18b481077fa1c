package main

import (
	"context"
	"errors"

	"github.com/seed-c1b73e60/convo"
)

// edit takes back a question and all that followed it, and asks another in its place.
func edit(ctx context.Context, h *convo.History, store convo.Store, question convo.ID, text string) error {
	err := h.RewindBefore(question)
	if errors.As(err, new(*convo.ValueError)) { // it is older than the last compaction
		err = rewindFar(ctx, h, store, question)
	}
	if err != nil {
		return err
	}
	_, err = h.Append(convo.User(text))
	return err
}

// rewindFar is RewindBefore for a question that the summary stands for.
func rewindFar(ctx context.Context, h *convo.History, store convo.Store, question convo.ID) error {
	if err := h.Save(ctx); err != nil { // what is taken back stays in the archive
		return err
	}
	var record uint64
	for a, err := range h.Archive(ctx, convo.Range{First: question, Last: question}) {
		if err != nil {
			return err
		}
		if a.Entry != nil {
			record = a.Seq
		}
	}
	if record == 0 {
		return errors.New("the record with the question was removed")
	}
	key, _ := h.Saved()
	then, err := convo.Load(ctx, store, key, record)
	if err != nil {
		return err
	}
	if err := h.Rollback(then); err != nil {
		return err
	}
	return h.RewindBefore(question)
}

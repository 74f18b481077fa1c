// Command save appends and saves turns of 16 conversations in one store of files, without
// waiting for the disk.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/compare/talk"
	"github.com/seed-c1b73e60/convo/bench/peer"
)

func main() {
	dir, err := os.MkdirTemp("", "convo-compare")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	const conversations, most = 16, 50
	list := talk.Messages(0, 2*most)
	talk.Main("a turn saved, FileStore, 16 conversations", peer.Case{Units: conversations, Max: most, New: func(int) (func(int) error, error) {
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
		ctx, s := context.Background(), newStore(dir)
		all := make([]*convo.History, conversations)
		for i := range all {
			h, err := convo.Open(ctx, s, fmt.Sprint("talk-", i), &convo.Options{Limits: convo.Limits{Window: 200_000}})
			if err != nil {
				return nil, err
			}
			all[i] = h
		}
		return func(i int) error {
			for _, h := range all {
				if _, err := h.Append(list[2*i], list[2*i+1]); err != nil {
					return err
				}
				if err := h.Save(ctx); err != nil {
					return err
				}
			}
			return nil
		}, nil
	}})
}

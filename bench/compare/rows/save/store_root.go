//go:build rootstore

package main

import "github.com/seed-c1b73e60/convo"

// newStore is for commits that have the store of files in the root.
func newStore(dir string) convo.Store { return &convo.FileStore{Dir: dir, NoSync: true} }

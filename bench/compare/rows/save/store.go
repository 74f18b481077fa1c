//go:build !rootstore

package main

import (
	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/filestore"
)

func newStore(dir string) convo.Store { return &filestore.Store{Dir: dir, NoSync: true} }

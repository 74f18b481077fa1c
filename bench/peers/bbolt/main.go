// Command bbolt stores the records of convo for bench with bbolt.
package main

import (
	"encoding/binary"
	"log"
	"os"

	"go.etcd.io/bbolt"

	"github.com/seed-c1b73e60/convo/bench/peer"
	"github.com/seed-c1b73e60/convo/bench/turns"
)

func main() {
	dir, err := os.MkdirTemp("", "convo-bench")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	peer.Main(library(dir))
}

func library(dir string) peer.Peer {
	return peer.Peer{
		Modules: []string{"go.etcd.io/bbolt"},
		Cells: []peer.Cell{
			{Table: peer.TableSave, Name: "bbolt Update, NoSync", New: func(n int) peer.Case { return put(dir, n) }},
		},
		Notes: []peer.Note{
			{Table: peer.TableSave, Text: "bbolt writes whole pages: all on the way to the one that changes. One process at a time can have its file open. It does not sync, nor write its list of free pages, and its keys are the numbers of the records, in order. It is ahead of convo's first row, whose record is made while it is measured, and behind the second."},
		},
	}
}

const lines = 1000 // that are stored over and over

var opened *bbolt.DB // by the last case

// put stores the line of a record, behind n others.
func put(dir string, n int) peer.Case {
	return peer.Case{Max: 20_000, New: func(int) (func(int) error, error) {
		if opened != nil {
			if err := opened.Close(); err != nil {
				return nil, err
			}
		}
		path := dir + "/bbolt.db"
		if err := os.RemoveAll(path); err != nil {
			return nil, err
		}
		data, err := turns.Lines(lines)
		if err != nil {
			return nil, err
		}
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, FreelistType: bbolt.FreelistMapType, NoFreelistSync: true})
		if err != nil {
			return nil, err
		}
		opened = db
		add := func(tx *bbolt.Tx, i int) error {
			b, err := tx.CreateBucketIfNotExists([]byte(turns.Key))
			if err != nil {
				return err
			}
			b.FillPercent = 1 // keys only grow
			return b.Put(binary.BigEndian.AppendUint64(nil, uint64(i+1)), data[i%lines])
		}
		err = db.Update(func(tx *bbolt.Tx) error {
			for i := range n {
				if err := add(tx, i); err != nil {
					return err
				}
			}
			return nil
		})
		return func(i int) error {
			return db.Update(func(tx *bbolt.Tx) error { return add(tx, n+i) })
		}, err
	}}
}

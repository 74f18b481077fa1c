// Package links names the records of a log, and says whether they follow each other.
package links

import (
	"crypto/rand"
	"fmt"
	"iter"
	"strings"
)

// IDLen is the length of the ID of a record.
const IDLen = 26

// NewID returns a random ID for a record.
func NewID() string { return strings.ToLower(rand.Text()) }

// IsID reports whether s can be the ID of a record: IDLen letters and digits.
func IsID(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c|0x20 < 'a' || 'z' < c|0x20) && (c < '0' || '9' < c) {
			return false
		}
	}
	return len(s) == IDLen
}

// A Record is what links a record to the one before it.
type Record struct {
	Key, ID, Prev string
	Seq           uint64
	Full          bool
}

// Follows returns a fault if rec cannot follow prev in the log of key. prev is zero for the
// first record. usable reports whether rec can be read even so, as a record after a gap.
// check says whether rec is valid by itself.
func Follows(key string, prev, rec Record, first bool, check func() error) (usable bool, fault error) {
	switch {
	case rec.Key != key:
		return false, fmt.Errorf("record %d is of key %q", rec.Seq, rec.Key)
	case prev.ID != "" && rec.Seq <= prev.Seq:
		return false, fmt.Errorf("record %d follows record %d", rec.Seq, prev.Seq)
	}
	if err := check(); err != nil {
		return false, err
	}
	switch {
	case prev.ID == "" && first && !rec.Full:
		fault = fmt.Errorf("its first record, %d, is not a full one", rec.Seq)
	case prev.ID != "" && rec.Seq != prev.Seq+1:
		fault = fmt.Errorf("record %d follows record %d", rec.Seq, prev.Seq)
	case prev.ID != "" && rec.Prev != prev.ID:
		fault = fmt.Errorf("record %d names %q as the one before it, which is %q", rec.Seq, rec.Prev, prev.ID)
	}
	return true, fault
}

// Guard yields what a list yields and, if it panics, what panicked returns at the end. A panic of
// the caller's loop passes through.
func Guard[R any](list func() iter.Seq2[R, error], panicked func(v any) error) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		inLoop, ended := false, false
		defer func() {
			if inLoop {
				return
			}
			if v := recover(); v != nil && !ended {
				var none R
				yield(none, panicked(v))
			}
		}()
		for rec, err := range list() {
			inLoop = true
			ended = !yield(rec, err)
			inLoop = false
			if ended {
				return
			}
		}
	}
}

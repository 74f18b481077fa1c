package links_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-c1b73e60/convo/internal/links"
)

func TestIsID(t *testing.T) {
	assert.True(t, links.IsID(links.NewID()))
	assert.NotEqual(t, links.NewID(), links.NewID())
	a := strings.Repeat("a", links.IDLen-1)
	for last, want := range map[string]bool{"a": true, "Z": true, "0": true, "9": true, "": false, "aa": false, "-": false, "@": false, "[": false, "`": false, "{": false, "/": false, ":": false, "\x10": false} {
		assert.Equal(t, want, links.IsID(a+last), "%q", last)
	}
}

func TestFollows(t *testing.T) {
	valid := func() error { return nil }
	a := links.Record{Key: "k", ID: "a", Seq: 3, Full: true}
	for name, c := range map[string]struct {
		prev, rec links.Record
		first     bool
		check     func() error
		usable    bool
		fault     string
	}{
		"the first":          {links.Record{}, a, true, valid, true, ""},
		"the next":           {a, links.Record{Key: "k", ID: "b", Prev: "a", Seq: 4}, true, valid, true, ""},
		"another key":        {a, links.Record{Key: "other", ID: "b", Prev: "a", Seq: 4}, true, valid, false, `record 4 is of key "other"`},
		"an older one":       {a, links.Record{Key: "k", ID: "b", Prev: "a", Seq: 3}, true, valid, false, "record 3 follows record 3"},
		"not valid":          {a, links.Record{Key: "k", ID: "b", Prev: "a", Seq: 4}, true, func() error { return errors.New("bad") }, false, "bad"},
		"a first, not full":  {links.Record{}, links.Record{Key: "k", ID: "b", Prev: "a", Seq: 4}, true, valid, true, "its first record, 4, is not a full one"},
		"from a later one":   {links.Record{}, links.Record{Key: "k", ID: "b", Prev: "a", Seq: 4}, false, valid, true, ""},
		"after a gap":        {a, links.Record{Key: "k", ID: "b", Prev: "a", Seq: 5}, true, valid, true, "record 5 follows record 3"},
		"after another":      {a, links.Record{Key: "k", ID: "b", Prev: "c", Seq: 4}, true, valid, true, `record 4 names "c" as the one before it, which is "a"`},
		"two faults, in one": {a, links.Record{Key: "other", ID: "b", Prev: "c", Seq: 9}, true, valid, false, "is of key"},
	} {
		usable, fault := links.Follows("k", c.prev, c.rec, c.first, c.check)
		assert.Equal(t, c.usable, usable, name)
		if c.fault == "" {
			assert.NoError(t, fault, name)
		} else {
			assert.ErrorContains(t, fault, c.fault, name)
		}
	}
}

// A panic of the list becomes an error at the end. One of the loop passes through, also when the
// list has ended.
func TestGuard(t *testing.T) {
	fault := errors.New("fault")
	list := func(n int, panics bool) iter.Seq2[int, error] {
		return links.Guard(func() iter.Seq2[int, error] {
			return func(yield func(int, error) bool) {
				for i := range n {
					if !yield(i, nil) {
						panic("after the loop has ended")
					}
				}
				if panics {
					panic("boom")
				}
			}
		}, func(v any) error { return fmt.Errorf("%w: %v", fault, v) })
	}
	n := 0
	for _, err := range list(3, false) {
		assert.NoError(t, err)
		n++
	}
	assert.Equal(t, 3, n)
	var faults []error
	for _, err := range list(2, true) {
		faults = append(faults, err)
	}
	assert.Len(t, faults, 3)
	assert.EqualError(t, faults[2], "fault: boom")
	for range list(2, true) {
		break
	}
	assert.PanicsWithValue(t, "loop", func() {
		for range list(2, true) {
			panic("loop")
		}
	})
}

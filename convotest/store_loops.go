package convotest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/seed-c1b73e60/convo"
)

// loops calls the methods of a Store inside loops over its records and heads.
func (c *storeCheck) loops() {
	log := c.chain("loops", "FPFP", "loops")
	side := c.record("loops too", nil, true)
	for _, from := range []uint64{0, 1} {
		got := do(c, "Append, Delete, Records or List inside a loop over Records", func(ctx context.Context) loop[convo.Record] {
			var l loop[convo.Record]
			for r, err := range c.stores[0].Records(ctx, "loops", from) {
				if err == nil {
					err = c.busy(ctx, side)
				}
				if l.err = err; err != nil {
					return l
				}
				l.all = append(l.all, r)
			}
			return l
		})
		c.must(got.err, fails("inside a loop over Records"))
		want := log
		if from == 0 {
			want = log[2:]
		}
		if d := differ(got.all, want); d != "" {
			c.add(ruleFrom, "a loop in which other methods are called", d)
		}
	}
	seen := do(c, "Append, Delete, Records or List inside a loop over List", func(ctx context.Context) loop[convo.LogInfo] {
		var l loop[convo.LogInfo]
		for h, err := range c.stores[0].List(ctx, convo.ListOptions{Prefix: "loops"}) {
			if err == nil {
				err = c.busy(ctx, side)
			}
			if l.err = err; err != nil {
				return l
			}
			l.all = append(l.all, h)
		}
		return l
	})
	c.must(seen.err, fails("inside a loop over List"))
	if !slices.ContainsFunc(seen.all, func(h convo.LogInfo) bool { return h.Key == "loops" }) {
		c.add(rulePrefix, "a loop in which other methods are called", `key "loops"`)
	}
}

// busy calls each method once, with another log.
func (c *storeCheck) busy(ctx context.Context, r convo.Record) error {
	s := c.stores[0]
	return errors.Join(s.Append(ctx, r), collect(s.Records(ctx, r.Key, 0)).err, collect(s.List(ctx, convo.ListOptions{Prefix: r.Key})).err, s.Delete(ctx, r.Key))
}

// ctx checks that calls and loops end when their ctx ends.
func (c *storeCheck) ctx() {
	log := c.chain("ctx", "FPPPPPPPPPPPPPPPPPPP", "ctx")
	r := c.record("ctx", &log[len(log)-1], false)
	s := c.stores[0]
	calls := []struct {
		name string
		call func(ctx context.Context) error
	}{
		{"Append", func(ctx context.Context) error { return s.Append(ctx, r) }},
		{"Records", func(ctx context.Context) error { return collect(s.Records(ctx, "ctx", 0)).err }},
		{"List", func(ctx context.Context) error { return collect(s.List(ctx, convo.ListOptions{Prefix: "ctx"})).err }},
		{"Delete", func(ctx context.Context) error { return s.Delete(ctx, "ctx") }},
	}
	for _, m := range calls {
		// First, a ctx that has already ended, which takes little time.
		err := do(c, m.name, func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return m.call(ctx)
		})
		if err == nil {
			c.add(ruleIgnoresCtx, "in "+m.name)
		}
	}
	for _, m := range calls[:3] { // not Delete, which would remove the log that the others read
		if end := stop(m.call); end.isBad() {
			c.add(end.rule, end.where("in "+m.name)...)
			panic(stopped{})
		}
	}
	err := do(c, "Records", func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for _, err := range s.Records(ctx, "ctx", 1) {
			if cancel(); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		c.add(ruleIgnoresCtx, "in a loop over 20 records whose body cancels ctx")
	}
}

// prune prunes a log, if the Store is a Pruner.
func (c *storeCheck) prune() {
	p, ok := c.stores[0].(convo.Pruner)
	if !ok {
		return
	}
	call := func(key string, before uint64) error {
		return do(c, "Prune", func(ctx context.Context) error { return p.Prune(ctx, key, before) })
	}
	log := c.chain("prune", "FPFPFPPFP", "prune")
	other := c.chain("prune too", "FPF", "prune")
	if err := call("prune", 1); errors.Is(err, errors.ErrUnsupported) {
		return
	} else if err != nil {
		c.add(rulePrune, "before the first record", fmt.Sprintf("%.300q", err.Error()))
	}
	c.has("prune", 1, log, rulePrune, "before the first record")
	refused := func(key string, before uint64, where string) {
		err := call(key, before)
		switch _, ok := errors.AsType[*convo.ValueError](err); {
		case err == nil:
			c.add(rulePrune, where)
		case !ok:
			c.add(ruleValue, where, fmt.Sprintf("%.300q", err.Error()))
		}
	}
	refused("prune", 0, "Prune before Seq 0")
	refused("prune", 2, "Prune before a record that is not full")
	refused("prune", 10, "Prune before a record that does not exist")
	c.has("prune", 1, log, ruleWrites, "a Prune that was refused")
	gone := func(key string, before uint64, where string) {
		if err := call(key, before); err != nil {
			c.add(ruleGone, where, fmt.Sprintf("%.300q", err.Error()))
		}
	}
	gone("prune none", 1, "Prune of a key without a log")
	for _, before := range []uint64{3, 5, 8} {
		where := fmt.Sprintf("before record %d of 9", before)
		c.must(call("prune", before), rulePrune, where)
		log = log[slices.IndexFunc(log, func(r convo.Record) bool { return r.Seq == before }):]
		c.has("prune", 1, log, rulePrune, where)
		c.has("prune", 0, log[max(len(log)-2, 0):], rulePrune, where)
		gone("prune", before-2, "Prune before a record that was removed")
		c.has("prune", 1, log, ruleWrites, "Prune before a record that was removed")
	}
	c.has("prune too", 1, other, rulePrune, "another log")
	next := c.record("prune", &log[1], false)
	c.must(c.append(1, next), ruleRefuses, "a log that was pruned")
	c.has("prune", 1, append(slices.Clip(log), next), ruleComesBack, "a log that was pruned")
	_, heads := c.listed(0, "prune", "prune")
	if d := differHead(heads["prune"], next.LogInfo); d != "" {
		c.add(ruleHead, "a log that was pruned", d)
	}
}

// damaged damages records of a log, if the Store has a method for that.
func (c *storeCheck) damaged() {
	s, ok := c.stores[0].(interface {
		Damage(key string, seq uint64) error
	})
	if !ok {
		return
	}
	for _, seq := range []uint64{1, 2, 3, 4, 5, 6, 7} {
		where := fmt.Sprintf("record %d of 7 is damaged", seq)
		log := c.chain("damaged", "FPFPFPP", where)
		c.must(s.Damage("damaged", seq), fails("in Damage"), where)
		for _, from := range []uint64{0, 1, seq, 6} {
			var got []convo.Record
			damage := 0
			end := do(c, "Records", func(ctx context.Context) error {
				for r, err := range c.stores[1].Records(ctx, "damaged", from) {
					if _, ok := errors.AsType[*convo.DamageError](err); ok {
						damage++
						continue
					}
					if err != nil {
						return err
					}
					got = append(got, r)
				}
				return nil
			})
			c.must(end, fails("in Records"), where)
			first := max(from, 1)
			if from == 0 {
				first = 5
			}
			want := slices.DeleteFunc(slices.Clone(log[first-1:]), func(r convo.Record) bool { return r.Seq == seq })
			if from == 0 && seq >= first { // Records may end at the damage
				want = want[:min(len(got), len(want))]
			}
			if d := differ(got, want); d != "" {
				c.add(ruleDamage, where, fmt.Sprintf("Records from %d", from), d)
			}
			if (damage > 0) != (seq >= first) {
				c.add(ruleDamage, where, fmt.Sprintf("Records from %d yields %d errors", from, damage))
			}
		}
		c.must(c.remove("damaged"), fails("in Delete"), where)
	}
}

// clean removes all logs.
func (c *storeCheck) clean() {
	all, _ := c.listed(0, "", "clean")
	for _, h := range all {
		c.must(c.remove(h.Key), fails("in Delete"), fmt.Sprintf("key %.60q", h.Key))
	}
	for store := range c.stores {
		if all, _ := c.listed(store, "", "clean"); len(all) > 0 {
			c.add(ruleDelete, append([]string{fmt.Sprintf("List, key %.60q", all[0].Key)}, c.whose(store)...)...)
		}
	}
}

// The work of atOnce: each of the writers appends writtenTimes records to one of
// writtenKeys logs.
const (
	writers      = 16
	writtenKeys  = 4
	writtenTimes = 6
)

// atOnce writes the same logs from several goroutines, while other goroutines read them.
func (c *storeCheck) atOnce() {
	keys := make([]string, writtenKeys)
	for i := range keys {
		keys[i] = fmt.Sprintf("at once %d", i)
	}
	var made [writers][]convo.Record // the records that each writer may append, with their IDs
	for w := range made {
		for range 100 * writtenTimes {
			made[w] = append(made[w], c.record(keys[w%writtenKeys], nil, true))
		}
	}
	var taken, refused [writers][]convo.Record
	errs := do(c, "Append or Records, called by several goroutines", func(ctx context.Context) []error {
		var wg sync.WaitGroup
		errs := make([]error, 2*writers)
		guard := func(i int, f func() error) func() {
			return func() {
				defer func() {
					if v := recover(); v != nil {
						errs[i] = fmt.Errorf("panic: %v", v)
					}
				}()
				errs[i] = f()
			}
		}
		for w := range writers {
			s := c.stores[w%len(c.stores)]
			wg.Go(guard(w, func() error {
				for _, r := range made[w] {
					log := collect(s.Records(ctx, r.Key, 0))
					if log.err != nil {
						return log.err
					}
					if n := len(log.all); n > 0 {
						r.Seq, r.Prev = log.all[n-1].Seq+1, log.all[n-1].ID
						r.Full = r.Seq%5 == 0
					}
					err := s.Append(ctx, r)
					if _, ok := errors.AsType[*convo.ConflictError](err); ok {
						refused[w] = append(refused[w], r)
						continue
					}
					if err != nil {
						return err
					}
					if taken[w] = append(taken[w], r); len(taken[w]) == writtenTimes {
						return nil
					}
				}
				return nil
			}))
		}
		for i := range writtenKeys {
			s := c.stores[i%len(c.stores)]
			wg.Go(guard(writers+i, func() error {
				for range 8 * writtenTimes {
					if err := inOrder(collect(s.Records(ctx, keys[i], uint64(i%2)))); err != nil {
						return err
					}
					if l := collect(s.List(ctx, convo.ListOptions{Prefix: "at once"})); l.err != nil {
						return l.err
					}
				}
				return nil
			}))
		}
		wg.Wait()
		return errs
	})
	for i, err := range errs {
		switch {
		case errors.Is(err, errOrder):
			c.add(ruleTorn, err.Error())
		case err != nil && i < writers:
			c.must(err, fails("when several goroutines write"))
		case err != nil:
			c.must(err, fails("when several goroutines read"))
		}
	}
	for i, key := range keys {
		for store := range c.stores {
			c.judge(i, c.records(store, key, 1, "at once"), &taken, &refused)
		}
	}
}

var errOrder = errors.New("not in order")

// inOrder returns an error if records do not follow each other.
func inOrder(l loop[convo.Record]) error {
	for i, r := range l.all {
		if i > 0 && (r.Seq != l.all[i-1].Seq+1 || r.Prev != l.all[i-1].ID) {
			return fmt.Errorf("%w: record %d with Prev %q stands behind record %d with the ID %q", errOrder, r.Seq, r.Prev, l.all[i-1].Seq, l.all[i-1].ID)
		}
	}
	return l.err
}

// judge compares a log with the results of Append that its writers received.
func (c *storeCheck) judge(key int, log []convo.Record, taken, refused *[writers][]convo.Record) {
	if err := inOrder(loop[convo.Record]{all: log}); err != nil {
		c.add(ruleTorn, err.Error())
	}
	at := make(map[string]int)
	for i, r := range log {
		if _, twice := at[r.ID]; twice {
			c.add(ruleTwice, fmt.Sprintf("record %q, when several goroutines write", r.ID))
		}
		at[r.ID] = i
	}
	for w := key; w < writers; w += writtenKeys {
		last := -1
		for _, r := range taken[w] {
			i, ok := at[r.ID]
			switch {
			case !ok:
				c.add(ruleLost, fmt.Sprintf("record %q with Seq %d", r.ID, r.Seq))
			case i < last:
				c.add(ruleTorn, fmt.Sprintf("record %q stands before one that was taken earlier", r.ID))
			default:
				if d := differRecord(log[i], r); d != "" {
					c.add(ruleLost, d)
				}
				last = i
			}
		}
		for _, r := range refused[w] {
			if _, ok := at[r.ID]; ok {
				c.add(rulePhantom, fmt.Sprintf("record %q with Seq %d", r.ID, r.Seq))
			}
		}
	}
}

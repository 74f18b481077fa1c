package transport

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/mirror"
	"github.com/seed-c1b73e60/convo/wire"
)

// A choice says which conversation a list belongs to.
type choice struct {
	talk *talk
	list []*value
}

// find returns the conversation that a list belongs to, and begins one if there is none. The talk
// has a request under way then, until it is left. It is nil if the list is not worth it.
func (t *Transport) find(ctx context.Context, x *exchange, values []*value) (choice, error) {
	front := 0
	for front < len(values) && (values[front].isSystem || values[front].isFront) {
		front++
	}
	rest := values[front:]
	chain := make([]uint64, len(rest))
	at := keyed(x.api.name, x.about.Key)
	for i, v := range rest {
		at = mix(at, v.read)
		chain[i] = at
	}
	if len(rest) == 0 {
		return choice{}, nil
	}
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return choice{}, nil
	}
	t.sweep()
	k, n := t.longest(rest, chain)
	if k != nil && n < len(k.chain) {
		if own := t.begun(rest, chain, n); own != nil {
			k, n = own, len(own.chain)
		}
	}
	if k != nil && n < len(k.chain) && !k.canGoBack(n) || k == nil && x.isWorthIt(rest) {
		t.mu.Unlock()
		own, err := t.open(ctx, x, k, n, front, values, chain)
		if err != nil {
			return choice{}, err
		}
		t.mu.Lock()
		if t.closed {
			t.mu.Unlock()
			return choice{}, own.mirror.History().Close()
		}
		t.makeRoom()
		t.talks = append(t.talks, own)
		k, n = own, 0
	} else if k == nil {
		t.mu.Unlock()
		return choice{}, nil
	}
	defer t.mu.Unlock()
	t.extend(k, n, rest, chain)
	k.front = merge(k.front, values[:front])
	x.first = k.values[0]
	c := choice{talk: k, list: slices.Concat(k.front, k.values)}
	k.under++
	k.count++
	k.used = time.Now()
	k.about.Model, k.about.Program = x.about.Model, x.about.Program
	return c, nil
}

// keyed returns what the fingerprints of a conversation begin with.
func keyed(format, key string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(format + "\x00" + key))
	return h.Sum64()
}

// isWorthIt reports whether a list that belongs to no known conversation begins one. A question or
// two without tools, such as those for a title, are not kept.
func (x *exchange) isWorthIt(rest []*value) bool {
	return !x.api.isCount && (len(rest) > 2 || !isNull(x.tools) || len(x.came) > 64<<10)
}

// longest returns the conversation that has the longest beginning in common with a list, and how
// many values they have in common.
func (t *Transport) longest(values []*value, chain []uint64) (*talk, int) {
	for n := len(chain); n > 0; n-- {
		if k := t.index[chain[n-1]]; k != nil && n <= len(k.chain) && k.chain[n-1] == chain[n-1] {
			return k, k.agree(values[:n])
		}
	}
	return nil, 0
}

// agree returns how many values, of which the model reads the same as of those of k, are of the same
// conversation: answers with other signed reasoning are not.
func (k *talk) agree(values []*value) int {
	for i, v := range values {
		if v.read&answerMark == 0 || v.same(k.values[i]) {
			continue
		}
		was, now := k.api.seals(k.values[i]), k.api.seals(v)
		if len(was) > 0 && len(now) > 0 && !slices.ContainsFunc(was, func(s string) bool { return slices.Contains(now, s) }) {
			return i
		}
	}
	return len(values)
}

// begun returns the conversation with the longest list that a list goes on with, if that is at least
// half of the n values that are known, or nil.
func (t *Transport) begun(values []*value, chain []uint64, n int) (own *talk) {
	least := max(n/2, 1)
	for _, k := range t.talks {
		if m := len(k.chain); m >= least && m <= len(chain) && k.chain[m-1] == chain[m-1] && k.agree(values[:m]) == m {
			own, least = k, m
		}
	}
	return own
}

// canGoBack reports whether the conversation itself may go back to the first n values: no answer
// to what would go is awaited, no summary stands for it, it is the smaller part, and what stays
// has an answer, without which it may be how many conversations begin. Otherwise another
// conversation goes on from there.
func (k *talk) canGoBack(n int) bool {
	isOwn := slices.ContainsFunc(k.values[:n], func(v *value) bool { return v.read&answerMark != 0 })
	return k.under == 0 && isOwn && n >= len(k.chain)/2 && (len(k.pasts) == 0 || n >= k.pasts[len(k.pasts)-1].N)
}

// extend makes values the list of k, of which the first n are known.
func (t *Transport) extend(k *talk, n int, values []*value, chain []uint64) {
	for _, sum := range k.chain[n:] {
		if t.index[sum] == k {
			delete(t.index, sum)
		}
	}
	k.values, k.chain = merge(k.values, values), chain
	for _, sum := range chain[n:] {
		t.index[sum] = k
	}
}

// merge returns now with the values of was where these are the same. The others get memory of their
// own, so that the body that they are in does not stay.
func merge(was, now []*value) []*value {
	all, size := slices.Clone(now), 0
	for i, v := range now {
		if i < len(was) && was[i].same(v) {
			all[i] = was[i]
		} else {
			size += v.size()
		}
	}
	own := make([]byte, 0, size)
	for i, v := range now {
		if all[i] != v {
			continue
		}
		for k, raw := range v.raw {
			from := len(own)
			own = append(own, raw...)
			v.raw[k] = own[from:len(own):len(own)]
		}
	}
	return all
}

// sweep forgets the conversations that were not used for a while.
func (t *Transport) sweep() {
	now := time.Now()
	if now.Sub(t.swept) < time.Minute {
		return
	}
	t.swept = now
	for _, k := range t.talks {
		k.isGone = k.under == 0 && t.o.Idle > 0 && now.Sub(k.used) > t.o.Idle
	}
	t.removeGone()
}

// makeRoom forgets the conversations that were not used for the longest time, so that there is room
// for another one.
func (t *Transport) makeRoom() {
	for len(t.talks) >= t.o.Most {
		var oldest *talk
		for _, k := range t.talks {
			if k.under == 0 && (oldest == nil || k.used.Before(oldest.used)) {
				oldest = k
			}
		}
		if oldest == nil {
			return
		}
		oldest.isGone = true
		t.removeGone()
	}
}

// removeGone closes the conversations that are gone.
func (t *Transport) removeGone() {
	t.talks = slices.DeleteFunc(t.talks, func(k *talk) bool {
		if k.isGone {
			for _, sum := range k.chain {
				if t.index[sum] == k {
					delete(t.index, sum)
				}
			}
			_ = k.mirror.History().Close() // no function of the caller runs in it
		}
		return k.isGone
	})
}

// drop forgets a conversation that cannot be followed.
func (t *Transport) drop(k *talk) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k.isGone = true
	t.removeGone()
}

// open returns a new conversation for a list. It begins with what was decided about its beginning
// by the conversation from, with which it has n values in common, or before a restart.
func (t *Transport) open(ctx context.Context, x *exchange, from *talk, n, front int, values []*value, chain []uint64) (k *talk, err error) {
	defer guard(&err)
	k = &talk{api: x.api, about: x.about, busy: make(chan struct{}, 1)}
	var pasts []past
	t.mu.Lock()
	t.made++
	k.about.ID = fmt.Sprint(t.made)
	if from != nil {
		pasts = slices.DeleteFunc(slices.Clone(from.pasts), func(p past) bool { return p.N > n })
	}
	t.mu.Unlock()
	if from == nil && t.o.Store != nil {
		if pasts = t.load(ctx, storeName(k.api, chain)); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	pasts = slices.DeleteFunc(pasts, func(p past) bool { return p.N < 1 || p.N > len(chain) || chain[p.N-1] != p.Chain })
	slices.SortFunc(pasts, func(a, b past) int { return a.N - b.N })
	for _, v := range values[:min(front+1, len(values))] {
		msgs, _, err := v.decode(k.api)
		if err != nil {
			return nil, err
		}
		k.about.First = append(k.about.First, msgs...)
	}
	opts := t.options(k.api, k.about)
	if t.o.SummaryModel != "" && opts.Strategy == nil {
		opts.Strategy = t.strategy(k)
	}
	k.limits, k.cuts = opts.Limits, opts.MaxResult > 0
	k.isUsual = opts.Limits.Window == Window(k.about.Model)
	for i := len(pasts) - 1; i >= 0; i-- {
		m, _, err := mirror.Resume(pasts[i].Decisions, values, codec(k.api), opts)
		if err == nil {
			k.mirror, k.pasts = m, pasts[:i+1]
			return k, nil
		}
		t.lose(err)
	}
	h, err := convo.New(opts)
	if err != nil {
		return nil, err
	}
	k.mirror = mirror.New(h, codec(k.api))
	return k, nil
}

// options returns the options of a conversation.
func (t *Transport) options(a api, about Conversation) *convo.Options {
	var opts convo.Options
	if t.o.History != nil {
		if own := t.o.History(about); own != nil {
			opts = *own
		}
	}
	if opts.Limits.Window == 0 && opts.Limits.High == 0 {
		opts.Limits.Window = Window(about.Model)
	}
	if reflect.ValueOf(opts.Overheads).IsZero() {
		opts.Overheads = wire.OverheadsFor(a.format, about.Model)
	}
	if opts.Logger == nil {
		opts.Logger = t.o.Logger
	}
	if opts.MaxResult == 0 {
		opts.MaxResult = -1 // what a program has written is only changed by a compaction
	}
	opts.Roles = convo.Relaxed()
	return &opts
}

// storeName returns the name under which the decisions about a list are stored, which is that of all
// lists that begin with the same messages.
func storeName(a api, chain []uint64) string {
	return fmt.Sprintf("%s-%016x", a.name, chain[min(3, len(chain))-1])
}

// load reads what the Store has of conversations with a name.
func (t *Transport) load(ctx context.Context, name string) (pasts []past) {
	var stored []past
	err := t.useStore(ctx, func(ctx context.Context) (err error) {
		stored, err = t.stored(ctx, name)
		return err
	})
	if err != nil {
		t.lose(err)
		return nil
	}
	return stored
}

// stored returns what the Store has under a name.
func (t *Transport) stored(ctx context.Context, name string) (pasts []past, err error) {
	data, err := t.o.Store.Load(ctx, name)
	if err == nil && len(data) > 0 {
		err = json.Unmarshal(data, &pasts)
	}
	return pasts, err
}

// save stores what the conversations with the name of k have decided, beside what is stored of others.
func (t *Transport) save(ctx context.Context, k *talk) {
	if t.o.Store == nil {
		return
	}
	t.mu.Lock()
	name := storeName(k.api, k.chain)
	var pasts []past
	add := func(p past) {
		if !slices.ContainsFunc(pasts, func(q past) bool { return q.N == p.N && q.Chain == p.Chain }) {
			pasts = append(pasts, p)
		}
	}
	for _, other := range append([]*talk{k}, t.talks...) {
		if len(other.chain) > 0 && storeName(other.api, other.chain) == name {
			for _, p := range slices.Backward(other.pasts) {
				add(p)
			}
		}
	}
	t.mu.Unlock()
	err := t.useStore(context.WithoutCancel(ctx), func(ctx context.Context) error {
		old, err := t.stored(ctx, name)
		if err != nil {
			t.lose(err)
		}
		for _, p := range old {
			add(p)
		}
		data, err := json.Marshal(pasts[:min(len(pasts), mostStored)])
		if err == nil {
			err = t.o.Store.Save(ctx, name, data)
		}
		return err
	})
	if err != nil {
		t.lose(err)
	}
}

// useStore calls f, which uses the Store: one at a time, and it does not wait longer than a Store
// may take.
func (t *Transport) useStore(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, storing)
	defer cancel()
	select {
	case t.store <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-t.store }()
		done <- func() (err error) {
			defer guard(&err)
			return f(ctx)
		}()
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// toolsKey returns a name for definitions of tools, the same in every process.
func toolsKey(tools []byte) string {
	sum := sha256.Sum256(tools)
	return hex.EncodeToString(sum[:16])
}

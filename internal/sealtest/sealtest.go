// Package sealtest attacks a Store that keeps what logs.Sealed has encrypted. The attacker
// has no key, but can put other records in it.
package sealtest

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/logs"
)

// GCM returns the two functions of the example of Sealed, with AES-GCM.
func GCM(key []byte) (seal, open func(f logs.Field, data []byte) ([]byte, error)) {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	seal = func(f logs.Field, data []byte) ([]byte, error) {
		return aead.Seal(nil, nil, data, f.AdditionalData()), nil
	}
	open = func(f logs.Field, data []byte) ([]byte, error) {
		return aead.Open(nil, nil, data, f.AdditionalData())
	}
	return seal, open
}

// A log is what one conversation has saved.
type log struct {
	sealed, plain []convo.Record
	states        []string // after each record
}

// An attack holds the logs that an attacker has to work with: of two keys, and of a
// conversation that was under the first one earlier.
type attack struct {
	t          testing.TB
	own        log // of the key "a"
	old, other log // of "a" earlier, and of "b"
	seal, open func(logs.Field, []byte) ([]byte, error)
}

// keeps is a Pruner that removes nothing, so that a Prune leaves full records.
type keeps struct{ convo.Store }

func (keeps) Prune(context.Context, string, uint64) error { return nil }

const records = 14

var noTime time.Time

// Check attacks the Stores that make returns, each of which is empty and a place of
// its own, with so many random attacks.
func Check(t testing.TB, make func() convo.Store, random int) {
	seal, open := GCM([]byte(strings.Repeat("k", 32)))
	a := &attack{t: t, seal: seal, open: open}
	a.old, a.own, a.other = a.record(make(), "a", "old"), a.record(make(), "a", "own"), a.record(make(), "b", "other")
	a.named(make)
	if random > 0 {
		a.random(make, random)
	}
}

// record saves a conversation and returns its log.
func (a *attack) record(inner convo.Store, key, text string) (l log) {
	t, ctx := a.t, a.t.Context()
	s := logs.Sealed(inner, a.seal, a.open)
	h, err := convo.Open(ctx, keeps{s}, key, nil)
	require.NoError(t, err)
	for n := range records {
		_, err := h.Append(convo.User(fmt.Sprintf("%s question %d", text, n)), convo.Assistant(fmt.Sprintf("%s answer %d", text, n)))
		require.NoError(t, err)
		require.NoError(t, h.SetMeta(fmt.Sprintf("%s title %d", text, n), ""))
		if n%5 == 4 {
			require.NoError(t, h.Prune(ctx, noTime)) // in a full record
		} else {
			require.NoError(t, h.Save(ctx))
		}
	}
	l.sealed, err = read(ctx, inner, key, 1)
	require.NoError(t, err)
	l.plain, err = read(ctx, s, key, 1)
	require.NoError(t, err)
	require.Len(t, l.plain, records)
	for _, r := range l.plain {
		at, err := convo.Load(ctx, s, key, r.Seq)
		require.NoError(t, err)
		l.states = append(l.states, stateOf(t, at))
	}
	return l
}

// stateOf returns a state as a text.
func stateOf(t testing.TB, s *convo.Snapshot) string {
	data, err := s.MarshalJSON()
	require.NoError(t, err)
	return string(data)
}

func read(ctx context.Context, s convo.Store, key string, from uint64) (all []convo.Record, err error) {
	for r, err := range s.Records(ctx, key, from) {
		if err != nil {
			return all, err
		}
		all = append(all, r)
	}
	return all, nil
}

// relinked returns records as a log under the key "a" that a Store accepts: each
// follows the one before it. The first keeps its Seq.
func relinked(list []convo.Record) []convo.Record {
	list = slices.Clone(list)
	for i := range list {
		r := &list[i]
		r.Key = "a"
		if i == 0 {
			r.Prev, r.Full = "", true
			continue
		}
		r.Prev, r.Seq = list[i-1].ID, list[i-1].Seq+1
	}
	return list
}

// stored returns a Store that holds the records.
func (a *attack) stored(s convo.Store, list []convo.Record) convo.Store {
	for i, r := range list {
		if i == 0 && r.Prev != "" { // the Store is made to hold it, as after a Prune
			first := r
			first.ID, first.Prev, first.Seq, first.Full = r.Prev, "", r.Seq-1, true
			require.NoError(a.t, s.Append(a.t.Context(), first))
		}
		require.NoError(a.t, s.Append(a.t.Context(), r))
	}
	if len(list) > 0 && list[0].Prev != "" {
		require.NoError(a.t, s.(convo.Pruner).Prune(a.t.Context(), "a", list[0].Seq))
	}
	return s
}

// judge reads what an attacker has left under the key "a". It fails unless that is a
// state of the conversation, or of the earlier one, or a *DamageError. It reports
// whether Records found damage from Seq 1 on, and Open.
func (a *attack) judge(inner convo.Store, what string) (inAll, inOpen bool) {
	t, ctx := a.t, a.t.Context()
	s := logs.Sealed(inner, a.seal, a.open)
	var last *convo.Record
	for _, from := range []uint64{0, 1} {
		all, err := read(ctx, s, "a", from)
		damage(t, err, what)
		if len(all) > 0 {
			require.True(t, a.isRun(all), "%s: Records from %d yields what was never saved", what, from)
			last = &all[len(all)-1]
		}
		inAll = err != nil
	}
	h, err := convo.Open(ctx, s, "a", nil)
	damage(t, err, what)
	if inOpen = err != nil; !inOpen && last != nil {
		require.True(t, a.isState(stateOf(t, h.Snapshot())), "%s: Open returns what was never saved", what)
	}
	for _, err := range s.List(ctx, convo.ListOptions{}) {
		damage(t, err, what)
	}
	return inAll, inOpen
}

// damage fails if err is an error and no *DamageError.
func damage(t testing.TB, err error, what string) {
	if err != nil {
		require.ErrorAs(t, err, new(*convo.DamageError), "%s", what)
	}
}

// isRun reports whether records were saved in this order, one after the other, under
// their key.
func (a *attack) isRun(list []convo.Record) bool {
	for _, l := range []log{a.own, a.old} {
		i := slices.IndexFunc(l.plain, func(r convo.Record) bool { return r.ID == list[0].ID })
		if i >= 0 && len(list) <= len(l.plain)-i && slices.EqualFunc(list, l.plain[i:i+len(list)], same) {
			return true
		}
	}
	return false
}

// same compares all that is bound.
func same(a, b convo.Record) bool {
	title := a.Title == b.Title || a.Title == "" // may have been removed
	return a.Key == b.Key && title && a.Seq == b.Seq && a.ID == b.ID && a.Prev == b.Prev && a.Full == b.Full && a.Format == b.Format && a.Upto == b.Upto && string(a.Data) == string(b.Data)
}

func (a *attack) isState(state string) bool {
	return slices.Contains(a.own.states, state) || slices.Contains(a.old.states, state)
}

// without returns a list without the record at i.
func without(list []convo.Record, i int) []convo.Record {
	return slices.Delete(slices.Clone(list), i, i+1)
}

// swapped returns a list in which two records have changed places.
func swapped(list []convo.Record, i, j int) []convo.Record {
	list = slices.Clone(list)
	list[i], list[j] = list[j], list[i]
	return list
}

// changed returns a list in which one record is changed.
func changed(list []convo.Record, i int, change func(*convo.Record)) []convo.Record {
	list = slices.Clone(list)
	change(&list[i])
	return list
}

// named carries out each kind of attack once.
func (a *attack) named(make func() convo.Store) {
	own, old, other := a.own.sealed, a.old.sealed, a.other.sealed
	data := func(from convo.Record) func(*convo.Record) { return func(r *convo.Record) { r.Data = from.Data } }
	last := records - 1 // the newest full record is that at 9
	attacks := map[string][]convo.Record{
		"the log of another key":                         other,
		"another key's full record":                      append(slices.Clone(own[:last]), other[9]),
		"a mix of two logs":                              append(slices.Clone(own[:11]), other[11:]...),
		"a mix of two logs of the key":                   append(slices.Clone(own[:11]), old[11:]...),
		"the patches of the earlier log":                 append(slices.Clone(own[:10]), old[10:]...),
		"a record left out":                              without(own, 11),
		"the newest full record left out":                without(own, 9),
		"two swapped":                                    swapped(own, 11, 12),
		"one twice":                                      append(slices.Clone(own), own[11]),
		"Data of another record":                         changed(own, 12, data(own[11])),
		"Data of two records swapped":                    changed(changed(own, 12, data(own[11])), 11, data(own[12])),
		"Data of the same record of another key":         changed(own, 12, data(other[12])),
		"Data of the same record of the earlier log":     changed(own, 12, data(old[12])),
		"the title as Data":                              changed(own, 12, func(r *convo.Record) { r.Data = []byte(r.Title) }),
		"a patch that is said to be full":                changed(own, 12, func(r *convo.Record) { r.Full = true }),
		"a full record that is said to be a patch":       changed(own, 9, func(r *convo.Record) { r.Full = false }),
		"another ID":                                     changed(own, last, func(r *convo.Record) { r.ID = strings.Repeat("x", 26) }),
		"another ID, and no title":                       changed(own, last, func(r *convo.Record) { r.ID, r.Title = strings.Repeat("x", 26), "" }),
		"another Upto":                                   changed(own, 12, func(r *convo.Record) { r.Upto++ }),
		"another Format":                                 changed(own, 12, func(r *convo.Record) { r.Format-- }),
		"a title of another record":                      changed(own, 12, func(r *convo.Record) { r.Title = own[11].Title }),
		"a title of another record, with this one's ID":  changed(own, 12, func(r *convo.Record) { r.Title = r.ID + own[11].Title[26:] }),
		"a title of the same record of another key":      changed(own, 12, func(r *convo.Record) { r.Title = r.ID + other[12].Title[26:] }),
		"a plain title":                                  changed(own, 12, func(r *convo.Record) { r.Title = "Rome" }),
		"a plain title that is long and not in base64":   changed(own, 12, func(r *convo.Record) { r.Title = strings.Repeat("é", 40) }),
		"one bit of Data":                                changed(own, 12, func(r *convo.Record) { r.Data = slices.Clone(r.Data); r.Data[20] ^= 1 }),
		"no Data":                                        changed(own, 12, func(r *convo.Record) { r.Data = nil }),
		"a full record that is moved to the end":         append(slices.Clone(own[:10]), own[4]),
		"a log that begins with a patch":                 own[11:],
		"a log that begins with a patch said to be full": changed(own[11:], 0, func(r *convo.Record) { r.Full = true }),
	}
	for _, name := range slices.Sorted(maps.Keys(attacks)) {
		inAll, inOpen := a.judge(a.stored(make(), relinked(attacks[name])), name)
		require.True(a.t, inAll && inOpen, "%s: no DamageError (Records from 1: %t, Open: %t)", name, inAll, inOpen)
		if list := attacks[name]; name != "the log of another key" {
			inAll, _ := a.judge(listed(list), name+", not relinked")
			require.True(a.t, inAll, "%s, not relinked: no DamageError", name)
		}
	}
	// What nothing shows.
	for name, list := range map[string][]convo.Record{
		"all": own, "a log that ends early": own[:12], "a log that ends at a full record": own[:10], "the earlier log": old,
		"a log without its beginning": own[4:], "nothing": nil,
		"a title removed": changed(own, 12, func(r *convo.Record) { r.Title = "" }),
		"other figures":   changed(own, 12, func(r *convo.Record) { r.Entries, r.Tokens, r.Updated = 7, 7, r.Updated.Add(7) }),
	} {
		inAll, inOpen := a.judge(a.stored(make(), list), name)
		require.False(a.t, inAll || inOpen, name)
	}
	// A head that List shows holds the title of its own record.
	for name, change := range map[string]func(h *convo.LogInfo){
		"another key": func(h *convo.LogInfo) { h.Key = "b" }, "another Seq": func(h *convo.LogInfo) { h.Seq++ },
		"another record's title": func(h *convo.LogInfo) { h.Title = own[3].Title }, "not sealed": func(h *convo.LogInfo) { h.Title = "Rome" },
	} {
		n := 0
		s := logs.Sealed(listed(changed(own, last, func(r *convo.Record) { change(&r.LogInfo) })), a.seal, a.open)
		for _, err := range s.List(a.t.Context(), convo.ListOptions{}) {
			require.ErrorAs(a.t, err, new(*convo.DamageError), name)
			n++
		}
		require.Equal(a.t, 1, n)
	}
}

// random splices the logs at random.
func (a *attack) random(make func() convo.Store, n int) {
	rng := rand.New(rand.NewPCG(21, 3))
	logs := [][]convo.Record{a.own.sealed, a.own.sealed, a.old.sealed, a.other.sealed}
	found, passed := 0, 0
	for i := range n {
		var list []convo.Record
		for range 1 + rng.IntN(3) {
			l := logs[rng.IntN(len(logs))]
			from := rng.IntN(len(l))
			if rng.IntN(2) == 0 {
				from = min(len(list), len(l)-1) // where the list has got to
			}
			list = append(list, l[from:from+1+rng.IntN(len(l)-from)]...)
		}
		for range rng.IntN(3) {
			k, j := rng.IntN(len(list)), rng.IntN(len(list))
			switch rng.IntN(8) {
			case 0:
				if len(list) > 1 {
					list = without(list, k)
				}
			case 1, 2:
				list = swapped(list, k%len(list), j%len(list))
			case 3:
				list = changed(list, k, func(r *convo.Record) { r.Data = list[j].Data })
			case 4:
				list = changed(list, k, func(r *convo.Record) { r.Title = list[j].Title })
			case 5:
				list = changed(list, k, func(r *convo.Record) { r.Full = !r.Full })
			case 6:
				list = changed(list, k, func(r *convo.Record) { r.ID, r.Prev, r.Seq = list[j].ID, list[j].Prev, list[j].Seq })
			case 7:
				list = changed(list, k, func(r *convo.Record) { r.Key, r.Upto = list[j].Key, list[j].Upto })
			}
		}
		what := fmt.Sprintf("random attack %d", i)
		ids := map[string]bool{}
		for _, r := range list {
			ids[r.ID] = true
		}
		var inAll bool
		if rng.IntN(2) == 0 && len(ids) == len(list) { // a Store takes no record twice in a row
			inAll, _ = a.judge(a.stored(make(), relinked(list)), what)
		} else {
			for k := range list {
				if list[k].Key = "a"; rng.IntN(4) > 0 && k > 0 {
					list[k].Prev, list[k].Seq = list[k-1].ID, list[k-1].Seq+1
				}
			}
			inAll, _ = a.judge(listed(list), what)
		}
		if inAll {
			found++
		} else {
			passed++
		}
	}
	require.Greater(a.t, found, n/4)
	require.GreaterOrEqual(a.t, passed, n/100)
	a.t.Logf("%d random attacks: %d were found, and %d left a state of the conversation", n, found, passed)
}

// listed is a Store that yields any records, whether they follow each other or not.
type listed []convo.Record

func (l listed) Append(context.Context, convo.Record) error  { panic("not used") }
func (l listed) Delete(context.Context, string) error        { panic("not used") }
func (l listed) Prune(context.Context, string, uint64) error { panic("not used") }
func (l listed) Records(_ context.Context, _ string, from uint64) iter.Seq2[convo.Record, error] {
	return func(yield func(convo.Record, error) bool) {
		begin := 0
		for i, r := range l {
			if from == 0 && r.Full {
				begin = i
			}
		}
		for _, r := range l[begin:] {
			r.Data = slices.Clone(r.Data)
			if r.Seq >= from && !yield(r, nil) {
				return
			}
		}
	}
}

func (l listed) List(context.Context, convo.ListOptions) iter.Seq2[convo.LogInfo, error] {
	return func(yield func(convo.LogInfo, error) bool) {
		if len(l) > 0 {
			yield(l[len(l)-1].LogInfo, nil)
		}
	}
}

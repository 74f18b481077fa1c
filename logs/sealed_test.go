package logs_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	rand2 "math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/filestore"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/internal/sealtest"
	"github.com/seed-c1b73e60/convo/logs"
)

// A Store encrypted with AES-GCM. The nonce comes first in what is sealed, and
// AdditionalData binds each field to its place.
func ExampleSealed() {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil { // keep it where the store is not
		panic(err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	var inner convotest.MemStore
	seal := func(f logs.Field, data []byte) ([]byte, error) {
		return aead.Seal(nil, nil, data, f.AdditionalData()), nil
	}
	open := func(f logs.Field, data []byte) ([]byte, error) {
		return aead.Open(nil, nil, data, f.AdditionalData())
	}
	store := logs.Sealed(&inner, seal, open)

	ctx := context.Background()
	r := convo.Record{LogInfo: convo.LogInfo{Key: "42", Title: "Rome", Seq: 1}, ID: strings.ToLower(rand.Text()), Full: true, Format: 1, Data: []byte(`{"n":1}`)}
	if err := store.Append(ctx, r); err != nil {
		panic(err)
	}
	for r := range store.Records(ctx, "42", 0) {
		fmt.Printf("%s %s\n", r.Title, r.Data)
	}
	for r := range inner.Records(ctx, "42", 0) {
		fmt.Println(r.Key, strings.Contains(r.Title, "Rome"), bytes.Contains(r.Data, []byte(`{"n":1}`)), len(r.Data))
	}
	// Output:
	// Rome {"n":1}
	// 42 false false 35
}

func TestSealed_IsAStore(t *testing.T) {
	seal, open := sealtest.GCM(make([]byte, 32))
	var inner convotest.MemStore
	convotest.TestStore(t, func() convo.Store { return logs.Sealed(&inner, seal, open) })
	inPlace := func(_ logs.Field, data []byte) ([]byte, error) {
		for i := range data {
			data[i] ^= 0x5a
		}
		return data, nil
	}
	convotest.TestStore(t, func() convo.Store { return logs.Sealed(&inner, inPlace, inPlace) })
	require.ErrorIs(t, logs.Sealed(struct{ convo.Store }{&inner}, seal, open).(convo.Pruner).Prune(t.Context(), "a", 1), errors.ErrUnsupported)
}

// Whoever can write to the Store and has no key can only go back to an earlier state.
func TestSealed_Attacks(t *testing.T) {
	random := long.Or(100, 1000)
	t.Run("memory", func(t *testing.T) {
		sealtest.Check(t, func() convo.Store { return new(convotest.MemStore) }, random)
	})
	t.Run("files", func(t *testing.T) {
		sealtest.Check(t, func() convo.Store { return &filestore.Store{Dir: t.TempDir(), NoSync: true} }, random)
	})
}

// AdditionalData is the same for ever, as what was sealed with it could not be opened
// otherwise, and no two fields have the same.
func TestField_AdditionalData(t *testing.T) {
	f := logs.Field{Name: "Data", Key: "key", Seq: 258, ID: "id", Prev: "prev", Full: true, Format: 1, Upto: 515}
	const want = "convo sealed 1\n" +
		"\x00\x00\x00\x00\x00\x00\x00\x04Data" + "\x00\x00\x00\x00\x00\x00\x00\x03key" +
		"\x00\x00\x00\x00\x00\x00\x00\x02id" + "\x00\x00\x00\x00\x00\x00\x00\x04prev" +
		"\x00\x00\x00\x00\x00\x00\x01\x02" + "\x00\x00\x00\x00\x00\x00\x00\x01" +
		"\x00\x00\x00\x00\x00\x00\x00\x01" + "\x00\x00\x00\x00\x00\x00\x02\x03"
	require.Equal(t, want, string(f.AdditionalData()))

	rng := rand2.New(rand2.NewPCG(7, 7))
	text := func() string { return strings.Repeat("\x00", rng.IntN(3)) + strings.Repeat("a", rng.IntN(3)) }
	seen := map[string]logs.Field{}
	for range 20_000 {
		f := logs.Field{
			Name: text(), Key: text(), Seq: rng.Uint64N(3), ID: text(), Prev: text(),
			Full: rng.IntN(2) == 0, Format: rng.IntN(3), Upto: convo.ID(rng.IntN(3)),
		}
		data := string(f.AdditionalData())
		if other, ok := seen[data]; ok {
			require.Equal(t, other, f)
		}
		seen[data] = f
	}
}

// Copy seals the log anew: for another key, with another encryption, after a Prune.
func TestSealed_Copy(t *testing.T) {
	ctx := t.Context()
	seal, open := sealtest.GCM(make([]byte, 32))
	seal2, open2 := sealtest.GCM(bytes.Repeat([]byte{1}, 32))
	var inner, far convotest.MemStore
	from, to := logs.Sealed(&inner, seal, open), logs.Sealed(&far, seal2, open2)
	log := logOf(t, from, "a", "FPFPP")
	for _, pruned := range []bool{false, true} {
		if pruned {
			require.NoError(t, from.(convo.Pruner).Prune(ctx, "a", 3))
			log = log[2:]
		}
		for _, key := range []string{"a", "b"} {
			key += fmt.Sprint(pruned)
			require.NoError(t, logs.Copy(ctx, to, key, from, "a"))
			require.NoError(t, logs.Copy(ctx, from, key, from, "a"), "within one store")
			want := moved(log, key)
			want[0].Prev = ""
			require.Equal(t, want, recordsOf(t, to, key))
			require.Equal(t, want, recordsOf(t, from, key))
		}
	}
	log = moreOf(t, from, "a", recordsOf(t, from, "a"), "")
	require.Len(t, log, 3)

	// What is copied without being opened opens under its own key alone.
	var plain convotest.MemStore
	logOf(t, from, "c", "FP")
	require.NoError(t, logs.Copy(ctx, &plain, "c", &inner, "c"))
	require.Len(t, recordsOf(t, logs.Sealed(&plain, seal, open), "c"), 2)
	require.NoError(t, logs.Copy(ctx, &plain, "d", &inner, "c"))
	for _, err := range logs.Sealed(&plain, seal, open).Records(ctx, "d", 1) {
		require.ErrorAs(t, err, new(*convo.DamageError))
		require.EqualError(t, err, `convo: the log of "d" is damaged: open Title of record 1 of "d": cipher: message authentication failed; no state before that is whole; Salvage copies what can be read to another key`)
	}
	// A copy that goes on finds the records that were left out.
	require.NoError(t, logs.Copy(ctx, to, "e", from, "c"))
	all := recordsOf(t, from, "c")
	all = moreOf(t, from, "c", all, "PFP")
	raw := recordsOf(t, &inner, "c")
	var holed convotest.MemStore
	for i, r := range append(raw[:2:2], raw[3:]...) {
		if i == 2 {
			r.Prev, r.Seq = raw[1].ID, 3
		}
		if i > 2 {
			r.Seq--
		}
		require.NoError(t, holed.Append(ctx, r))
	}
	require.ErrorAs(t, logs.Copy(ctx, to, "e", logs.Sealed(&holed, seal, open), "c"), new(*convo.DamageError))
	require.Equal(t, moved(all[:2], "e"), recordsOf(t, to, "e"))
}

// What cannot be opened is damaged, and what may be opened at another time is not.
func TestSealed_WhatIsDamage(t *testing.T) {
	ctx := t.Context()
	seal, open := sealtest.GCM(make([]byte, 32))
	var inner convotest.MemStore
	s := logs.Sealed(&inner, seal, open)
	logOf(t, s, "a", "FPFP")
	bad := errors.New("bad")
	tests := []struct {
		err    error
		damage bool
	}{
		{bad, true},
		{fmt.Errorf("vault: %w: %w", logs.ErrNoKey, bad), false},
		{context.Canceled, false},
		{fmt.Errorf("vault: %w", context.DeadlineExceeded), false},
	}
	for _, tt := range tests {
		for _, name := range []string{"Data", "Title"} {
			for seq := range uint64(5) {
				fails := func(f logs.Field, data []byte) ([]byte, error) {
					if f.Seq == seq && f.Name == name {
						return nil, tt.err
					}
					return open(f, data)
				}
				for from := range uint64(5) {
					var err error
					for _, e := range logs.Sealed(&inner, seal, fails).Records(ctx, "a", from) {
						err = cmp.Or(err, e)
					}
					if seq < from || seq == 0 || from == 0 && seq < 3 {
						require.NoError(t, err)
						continue
					}
					require.ErrorIs(t, err, tt.err)
					damage, ok := errors.AsType[*convo.DamageError](err)
					require.Equal(t, tt.damage, ok, "%v", err)
					if ok {
						require.Equal(t, seq-1, damage.Seq, "the last good record, from %d", from)
						require.Equal(t, "a", damage.Key)
					}
				}
			}
		}
	}
}

func TestSealed_TitlesFit(t *testing.T) {
	seal, open := sealtest.GCM(make([]byte, 32))
	tests := []struct{ title, want string }{
		{"", ""},
		{strings.Repeat("a", 144), strings.Repeat("a", 144)},
		{strings.Repeat("a", 145), strings.Repeat("a", 144)},
		{strings.Repeat("漢", 85), strings.Repeat("漢", 48)},
		{strings.Repeat("é", 73), strings.Repeat("é", 72)},
		{"a" + strings.Repeat("é", 72), "a" + strings.Repeat("é", 71)},
		{strings.Repeat("\x80", 200), strings.Repeat("\x80", 144)},
	}
	at := func(s convo.Store, title string) string {
		r := convo.Record{LogInfo: convo.LogInfo{Key: "a", Title: title, Seq: 1}, ID: strings.Repeat("a", 26), Full: true, Format: 1}
		require.NoError(t, s.Append(t.Context(), r))
		for head, err := range s.List(t.Context(), convo.ListOptions{}) {
			require.NoError(t, err)
			return head.Title
		}
		return "not listed"
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, at(logs.Sealed(new(convotest.MemStore), seal, open), tt.title), "%q", tt.title)
	}
	wide := func(_ logs.Field, data []byte) ([]byte, error) { return append(make([]byte, 172), data...), nil }
	require.Empty(t, at(logs.Sealed(new(convotest.MemStore), wide, open), "Rome"))
}

func TestSealed_Errors(t *testing.T) {
	ctx := t.Context()
	seal, open := sealtest.GCM(make([]byte, 32))
	var inner convotest.MemStore
	log := logOf(t, logs.Sealed(&inner, seal, open), "a", "FP")
	logOf(t, logs.Sealed(&inner, seal, open), "b", "F")
	other, wrong := sealtest.GCM(bytes.Repeat([]byte{1}, 32))
	bad := errors.New("no key")
	fails := func(logs.Field, []byte) ([]byte, error) { return nil, bad }
	panics := func(logs.Field, []byte) ([]byte, error) { panic("no key") }
	r := log[1]
	r.Prev, r.ID, r.Seq = r.ID, strings.Repeat("c", 26), 3

	require.ErrorIs(t, logs.Sealed(&inner, fails, open).Append(ctx, r), bad)
	require.ErrorAs(t, logs.Sealed(&inner, panics, open).Append(ctx, r), new(*convo.PanicError))
	require.Len(t, recordsOf(t, &inner, "a"), 2)
	for name, open := range map[string]func(logs.Field, []byte) ([]byte, error){"wrong": wrong, "fails": fails, "panics": panics} {
		s := logs.Sealed(&inner, other, open)
		n := 0
		for _, err := range s.Records(ctx, "a", 1) {
			require.ErrorContains(t, err, "open Title of record ", name)
			n++
		}
		require.Equal(t, 1, n, name)
		n = 0
		for _, err := range s.List(ctx, convo.ListOptions{}) {
			require.ErrorContains(t, err, "open Title of record ", name)
			n++
		}
		require.Equal(t, 2, n, "%s: List goes on", name)
	}
	for _, s := range []convo.Store{logs.Sealed(nil, seal, open), logs.Sealed(&inner, nil, open), logs.Sealed(&inner, seal, nil)} {
		var errs []error
		for _, err := range s.Records(ctx, "a", 0) {
			errs = append(errs, err)
		}
		for _, err := range s.List(ctx, convo.ListOptions{Prefix: "a"}) {
			errs = append(errs, err)
		}
		errs = append(errs, s.Append(ctx, r), s.Delete(ctx, "a"), s.(convo.Pruner).Prune(ctx, "a", 1))
		require.Len(t, errs, 5)
		for _, err := range errs {
			require.ErrorAs(t, err, new(*convo.ValueError))
		}
	}
}

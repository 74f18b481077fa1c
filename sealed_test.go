package convo_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

// gcm returns two functions for Sealed that encrypt with AES-GCM.
func gcm(key []byte) (seal, open func(id string, data []byte) ([]byte, error)) {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	seal = func(id string, data []byte) ([]byte, error) { return aead.Seal(nil, nil, data, []byte(id)), nil }
	open = func(id string, data []byte) ([]byte, error) { return aead.Open(nil, nil, data, []byte(id)) }
	return seal, open
}

// A Store encrypted with AES-GCM. The nonce stands in front of what was sealed, and
// the ID of the record is bound in.
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
	var inner convo.MemStore
	store := convo.Sealed(&inner,
		func(id string, data []byte) ([]byte, error) { return aead.Seal(nil, nil, data, []byte(id)), nil },
		func(id string, data []byte) ([]byte, error) { return aead.Open(nil, nil, data, []byte(id)) })

	ctx := context.Background()
	r := convo.Record{Head: convo.Head{Key: "42", Title: "Rome", Seq: 1}, ID: strings.ToLower(rand.Text()), Full: true, Format: 1, Data: []byte(`{"n":1}`)}
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
	seal, open := gcm(make([]byte, 32))
	var inner convo.MemStore
	convotest.TestStore(t, func() convo.Store { return convo.Sealed(&inner, seal, open) })
	inPlace := func(_ string, data []byte) ([]byte, error) {
		for i := range data {
			data[i] ^= 0x5a
		}
		return data, nil
	}
	convotest.TestStore(t, func() convo.Store { return convo.Sealed(&inner, inPlace, inPlace) })
	require.ErrorIs(t, convo.Sealed(struct{ convo.Store }{&inner}, seal, open).(convo.Pruner).Prune(t.Context(), "a", 1), errors.ErrUnsupported)
}

// Neither Data nor titles can be moved to another record.
func TestSealed_BindsTheID(t *testing.T) {
	ctx := t.Context()
	seal, open := gcm(make([]byte, 32))
	for name, move := range map[string]func(a, b *convo.Record){
		"data":                    func(a, b *convo.Record) { b.Data = a.Data },
		"title":                   func(a, b *convo.Record) { b.Title = a.Title },
		"title with the ID":       func(a, b *convo.Record) { b.Title = b.Title[:26] + a.Title[26:] },
		"a plain title":           func(a, b *convo.Record) { b.Title = "Rome" },
		"a long title, not coded": func(a, b *convo.Record) { b.Title = strings.Repeat("é", 40) },
	} {
		var first, inner convo.MemStore
		logOf(t, convo.Sealed(&first, seal, open), "a", "FP")
		log := recordsOf(t, &first, "a")
		move(&log[0], &log[1])
		for _, r := range log {
			require.NoError(t, inner.Append(ctx, r))
		}
		n := 0
		var failed error
		for _, err := range convo.Sealed(&inner, seal, open).Records(ctx, "a", 1) {
			require.NoError(t, failed, "%s: something comes behind an error", name)
			if failed = err; err == nil {
				n++
			}
		}
		require.Error(t, failed, name)
		require.Equal(t, 1, n, name)
	}
}

func TestSealed_TitlesFit(t *testing.T) {
	seal, open := gcm(make([]byte, 32))
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
		r := convo.Record{Head: convo.Head{Key: "a", Title: title, Seq: 1}, ID: strings.Repeat("a", 26), Full: true, Format: 1}
		require.NoError(t, s.Append(t.Context(), r))
		for head, err := range s.List(t.Context(), "") {
			require.NoError(t, err)
			return head.Title
		}
		return "not listed"
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, at(convo.Sealed(new(convo.MemStore), seal, open), tt.title), "%q", tt.title)
	}
	wide := func(_ string, data []byte) ([]byte, error) { return append(make([]byte, 172), data...), nil }
	require.Empty(t, at(convo.Sealed(new(convo.MemStore), wide, open), "Rome"))
}

func TestSealed_Errors(t *testing.T) {
	ctx := t.Context()
	seal, open := gcm(make([]byte, 32))
	var inner convo.MemStore
	log := logOf(t, convo.Sealed(&inner, seal, open), "a", "FP")
	logOf(t, convo.Sealed(&inner, seal, open), "b", "F")
	other, wrong := gcm(bytes.Repeat([]byte{1}, 32))
	bad := errors.New("no key")
	fails := func(string, []byte) ([]byte, error) { return nil, bad }
	panics := func(string, []byte) ([]byte, error) { panic("no key") }
	r := log[1]
	r.Prev, r.ID, r.Seq = r.ID, strings.Repeat("c", 26), 3

	require.ErrorIs(t, convo.Sealed(&inner, fails, open).Append(ctx, r), bad)
	require.ErrorAs(t, convo.Sealed(&inner, panics, open).Append(ctx, r), new(*convo.PanicError))
	require.Len(t, recordsOf(t, &inner, "a"), 2)
	for name, open := range map[string]func(string, []byte) ([]byte, error){"wrong": wrong, "fails": fails, "panics": panics} {
		s := convo.Sealed(&inner, other, open)
		n := 0
		for _, err := range s.Records(ctx, "a", 1) {
			require.ErrorContains(t, err, "convo: open record ", name)
			n++
		}
		require.Equal(t, 1, n, name)
		n = 0
		for _, err := range s.List(ctx, "") {
			require.ErrorContains(t, err, "convo: open record ", name)
			n++
		}
		require.Equal(t, 2, n, "%s: List goes on", name)
	}
	for _, s := range []convo.Store{convo.Sealed(nil, seal, open), convo.Sealed(&inner, nil, open), convo.Sealed(&inner, seal, nil)} {
		var errs []error
		for _, err := range s.Records(ctx, "a", 0) {
			errs = append(errs, err)
		}
		for _, err := range s.List(ctx, "a") {
			errs = append(errs, err)
		}
		errs = append(errs, s.Append(ctx, r), s.Delete(ctx, "a"), s.(convo.Pruner).Prune(ctx, "a", 1))
		require.Len(t, errs, 5)
		for _, err := range errs {
			require.ErrorAs(t, err, new(*convo.ValueError))
		}
	}
}

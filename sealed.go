package convo

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// Sealed returns a [Store] that keeps its records in s with Data and Title sealed:
// encrypted, say, or redacted. All else of a record is stored as it is, its key too.
//
// The function seal makes of data what is to be stored, and open makes data of that.
// Data and Title of a record are sealed separately; an empty Title is not sealed.
// The id is that of the record. With encryption, bind it in as additional data:
// then nobody who can write to s can put the Data of one record in the place of
// another. Both functions may be called by several goroutines at once. They may
// change data, and return it. What goes wrong in them is the error of the call, and
// so is a panic. A loop over List may go on after the error of a title.
//
// A sealed title is stored as the ID of its record and base64, within the 256 bytes of
// a title. Of a title that does not fit, as much is kept as does: with 28 bytes for a
// nonce and a tag, 144 bytes. If seal adds more than 170 bytes to a text, none is kept.
//
// The Store is a [Pruner]. Its Prune returns [errors.ErrUnsupported] if s is none.
func Sealed(s Store, seal, open func(id string, data []byte) ([]byte, error)) Store {
	return &sealedStore{s, seal, open}
}

type sealedStore struct {
	store      Store
	seal, open func(id string, data []byte) ([]byte, error)
}

var _ Pruner = (*sealedStore)(nil)

func (s *sealedStore) check() error {
	const want = "a Store and two functions"
	switch {
	case s.store == nil:
		return &ValueError{Name: "Sealed: s", Value: nil, Want: want}
	case s.seal == nil:
		return &ValueError{Name: "Sealed: seal", Value: nil, Want: want}
	case s.open == nil:
		return &ValueError{Name: "Sealed: open", Value: nil, Want: want}
	}
	return nil
}

// Append implements [Store].
func (s *sealedStore) Append(ctx context.Context, r Record) error {
	err := s.check()
	if err == nil {
		err = r.Check()
	}
	if err == nil {
		r.Title, err = s.sealTitle(r.ID, r.Title)
	}
	if err == nil {
		r.Data, err = translate(s.seal, "seal", r.ID, bytes.Clone(r.Data))
	}
	if err != nil {
		return err
	}
	return s.store.Append(ctx, r)
}

// translate calls one of the two functions.
func translate(f func(string, []byte) ([]byte, error), name, id string, data []byte) (out []byte, err error) {
	defer func() {
		if err != nil {
			err = errorf("%s record %s: %w", name, id, err)
		}
	}()
	defer catch(&err, name+" of Sealed")
	return f(id, data)
}

// sealedTitle is how many bytes of a sealed title there is room for.
var sealedTitle = base64.RawStdEncoding.DecodedLen(maxTitle - recordID)

// sealTitle seals the longest beginning of a title that fits.
func (s *sealedStore) sealTitle(id, title string) (string, error) {
	for title != "" {
		sealed, err := translate(s.seal, "seal", id, []byte(title))
		if err != nil {
			return "", err
		}
		excess := len(sealed) - sealedTitle
		if excess <= 0 {
			return id + base64.RawStdEncoding.EncodeToString(sealed), nil
		}
		cut := max(len(title)-excess, 0)
		if rune := text.Floor(title, cut); cut-rune < utf8.UTFMax { // else it is no UTF-8
			cut = rune
		}
		title = title[:cut]
	}
	return "", nil
}

// openTitle opens what sealTitle has made.
func (s *sealedStore) openTitle(h *Head) error {
	if h.Title == "" {
		return nil
	}
	if len(h.Title) >= recordID {
		if sealed, err := base64.RawStdEncoding.DecodeString(h.Title[recordID:]); err == nil {
			title, err := translate(s.open, "open", h.Title[:recordID], sealed)
			h.Title = string(title)
			return err
		}
	}
	return &DamageError{Key: h.Key, Offset: -1, Seq: h.Seq - 1, Err: fmt.Errorf("the title of record %d is not sealed", h.Seq)}
}

// Records implements [Store].
func (s *sealedStore) Records(ctx context.Context, key string, from uint64) iter.Seq2[Record, error] {
	if err := s.check(); err != nil {
		return func(yield func(Record, error) bool) { yield(Record{}, err) }
	}
	return opened(s.store.Records(ctx, key, from), true, func(r *Record) (err error) {
		if r.Title != "" && (len(r.Title) < recordID || r.Title[:recordID] != r.ID) {
			return &DamageError{Key: key, Offset: -1, Seq: r.Seq - 1, Err: fmt.Errorf("the title of record %d is that of another, or is not sealed", r.Seq)}
		}
		if err := s.openTitle(&r.Head); err != nil {
			return err
		}
		r.Data, err = translate(s.open, "open", r.ID, r.Data)
		return err
	})
}

// List implements [Store]. A title that cannot be opened hides no other.
func (s *sealedStore) List(ctx context.Context, prefix string) iter.Seq2[Head, error] {
	if err := s.check(); err != nil {
		return func(yield func(Head, error) bool) { yield(Head{}, err) }
	}
	return opened(s.store.List(ctx, prefix), false, s.openTitle)
}

// opened yields what seq does, opened. An error may be the last that is yielded.
func opened[T any](seq iter.Seq2[T, error], last bool, open func(*T) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range seq {
			if err == nil {
				err = open(&v)
			}
			if err != nil {
				var none T
				v = none
			}
			if !yield(v, err) || err != nil && last {
				return
			}
		}
	}
}

// Delete implements [Store].
func (s *sealedStore) Delete(ctx context.Context, key string) error {
	if err := s.check(); err != nil {
		return err
	}
	return s.store.Delete(ctx, key)
}

// Prune implements [Pruner].
func (s *sealedStore) Prune(ctx context.Context, key string, before uint64) error {
	if err := s.check(); err != nil {
		return err
	}
	p, ok := s.store.(Pruner)
	if !ok {
		return fmt.Errorf("convo: prune %q: the Store that Sealed was given is no Pruner: %w", key, errors.ErrUnsupported)
	}
	return p.Prune(ctx, key, before)
}

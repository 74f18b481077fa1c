package logs

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/links"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// Sealed returns a [convo.Store] that keeps its records in s with Data and Title sealed, for
// example encrypted or redacted. The rest of a record, including its key, is stored as
// is.
//
// seal converts data to its stored form, and open converts it back. Data and Title are
// sealed separately, and [Field] identifies the field and its record. An empty
// Title is not sealed. Both functions may be called by several goroutines at once. They
// may modify and return data. An error or a panic of seal becomes the error of the call.
// The Store is a [convo.Pruner]; its Prune returns [errors.ErrUnsupported] if s is not.
//
// # Tampering
//
// If an encryption binds [Field.AdditionalData], each record only opens as the
// record that was saved. Records checks that the records it yields follow each other. So
// it yields a [*convo.DamageError] if others who can write to s have changed Data, inserted all
// or part of the log of another key, left out a record, or swapped two. An error of open
// is wrapped in a DamageError, unless it matches [ErrNoKey] or is the error of a ctx.
// List reports a title that does not open in the same way, and continues.
//
// Some changes are not detected. The newest records may be missing, so that the log ends
// early or is an earlier version, or the oldest up to a full one, as after a Prune. The
// whole log may be gone, Created, Updated, Entries and Tokens may be others, and a title may
// have been removed. To detect a log that ends early, keep the result of [convo.History.Saved]
// elsewhere.
//
// A log opens only under its own key. To copy it, pass the sealed Stores to [Copy], so
// that it is sealed again.
//
// # Titles
//
// A sealed title is stored as the ID of its record and base64, within the 256 bytes of a
// title. A longer title is cut to fit: to 144 bytes if seal adds 28 bytes for a nonce and
// a tag. If seal adds more than 170 bytes, no title is kept.
func Sealed(s convo.Store, seal, open func(f Field, data []byte) ([]byte, error)) convo.Store {
	return &sealedStore{s, seal, open}
}

// ErrNoKey is for the function open of [Sealed]: an error that matches it says that the data
// cannot be opened here or now, but is not damaged.
var ErrNoKey = errors.New("logs: no key; give the function open of Sealed the key that the data was sealed with")

// A Field identifies the field and the record for a function of [Sealed].
type Field struct {
	Name string // "Data" or "Title"
	Key  string
	Seq  uint64
	ID   string // of the record

	// The other fields of the record that determine the meaning of Data. They are not set for a
	// Title, since a Title may be opened without the rest of its record.
	Prev   string
	Full   bool
	Format int
	Upto   convo.ID
}

// AdditionalData returns the fields as bytes, for use as the additional data of an
// authenticated encryption. It returns the same bytes for the same fields in all
// releases, and different bytes for different fields.
func (f Field) AdditionalData() []byte {
	b := make([]byte, 0, 128+len(f.Key))
	b = append(b, "convo sealed 1\n"...)
	for _, s := range []string{f.Name, f.Key, f.ID, f.Prev} {
		b = binary.BigEndian.AppendUint64(b, uint64(len(s)))
		b = append(b, s...)
	}
	full := uint64(0)
	if f.Full {
		full = 1
	}
	for _, n := range []uint64{f.Seq, full, uint64(f.Format), uint64(f.Upto)} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

// String returns the field, the number of the record and the key.
func (f Field) String() string {
	return fmt.Sprintf("%.100s of record %d of %.100q", f.Name, f.Seq, f.Key)
}

// dataField returns the field for the Data of a record.
func dataField(r *convo.Record) Field {
	return Field{Name: "Data", Key: r.Key, Seq: r.Seq, ID: r.ID, Prev: r.Prev, Full: r.Full, Format: r.Format, Upto: r.Upto}
}

// titleField returns the field for the Title of the record with an ID.
func titleField(h *convo.LogInfo, id string) Field {
	return Field{Name: "Title", Key: h.Key, Seq: h.Seq, ID: id}
}

type sealedStore struct {
	store      convo.Store
	seal, open func(f Field, data []byte) ([]byte, error)
}

var _ convo.Pruner = (*sealedStore)(nil)

func (s *sealedStore) check() error {
	const want = "a Store and two functions"
	switch {
	case s.store == nil:
		return &convo.ValueError{Name: "Sealed: s", Value: nil, Want: want}
	case s.seal == nil:
		return &convo.ValueError{Name: "Sealed: seal", Value: nil, Want: want}
	case s.open == nil:
		return &convo.ValueError{Name: "Sealed: open", Value: nil, Want: want}
	}
	return nil
}

// Append implements [convo.Store].
func (s *sealedStore) Append(ctx context.Context, r convo.Record) error {
	err := s.check()
	if err == nil {
		err = r.Check()
	}
	if err == nil {
		r.Title, err = s.sealTitle(titleField(&r.LogInfo, r.ID), r.Title)
	}
	if err == nil {
		r.Data, err = translate(s.seal, "seal", dataField(&r), bytes.Clone(r.Data))
	}
	if err != nil {
		return err
	}
	return s.store.Append(ctx, r)
}

// translate calls seal or open.
func translate(f func(Field, []byte) ([]byte, error), name string, field Field, data []byte) (out []byte, err error) {
	defer func() {
		if err != nil {
			err = &wordedError{fmt.Sprintf("%s %v: %s", name, field, plain(err)), err}
		}
	}()
	defer catch(&err, name+" of Sealed")
	return f(field, data)
}

// openField opens a field. A field that does not open is damaged, unless the error means
// that this is not known.
func (s *sealedStore) openField(f Field, data []byte) ([]byte, error) {
	out, err := translate(s.open, "open", f, data)
	if err == nil {
		return out, nil
	}
	if _, panicked := errors.AsType[*convo.PanicError](err); panicked || errors.Is(err, ErrNoKey) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	return nil, &convo.DamageError{Key: f.Key, Offset: -1, Seq: f.Seq - 1, Err: fault{err}}
}

// A fault is an error for the text of a [*convo.DamageError].
type fault struct{ error }

func (f fault) Error() string { return plain(f.error) }

func (f fault) Unwrap() error { return f.error }

const (
	recordID = 26  // length of Record.ID
	maxTitle = 256 // bytes
)

// sealedTitle is the number of bytes available for a sealed title.
var sealedTitle = base64.RawStdEncoding.DecodedLen(maxTitle - recordID)

// sealTitle seals the longest prefix of a title that fits.
func (s *sealedStore) sealTitle(f Field, title string) (string, error) {
	for title != "" {
		sealed, err := translate(s.seal, "seal", f, []byte(title))
		if err != nil {
			return "", err
		}
		excess := len(sealed) - sealedTitle
		if excess <= 0 {
			return f.ID + base64.RawStdEncoding.EncodeToString(sealed), nil
		}
		cut := max(len(title)-excess, 0)
		if rune := text.Floor(title, cut); cut-rune < utf8.UTFMax { // otherwise it is not valid UTF-8
			cut = rune
		}
		title = title[:cut]
	}
	return "", nil
}

// openTitle opens a title sealed by sealTitle.
func (s *sealedStore) openTitle(h *convo.LogInfo) error {
	if h.Title == "" {
		return nil
	}
	if len(h.Title) >= recordID {
		if sealed, err := base64.RawStdEncoding.DecodeString(h.Title[recordID:]); err == nil {
			title, err := s.openField(titleField(h, h.Title[:recordID]), sealed)
			h.Title = string(title)
			return err
		}
	}
	return &convo.DamageError{Key: h.Key, Offset: -1, Seq: h.Seq - 1, Err: fmt.Errorf("the title of record %d is not sealed", h.Seq)}
}

// Records implements [convo.Store].
func (s *sealedStore) Records(ctx context.Context, key string, from uint64) iter.Seq2[convo.Record, error] {
	if err := s.check(); err != nil {
		return func(yield func(convo.Record, error) bool) { yield(convo.Record{}, err) }
	}
	return func(yield func(convo.Record, error) bool) {
		var prev convo.Record // the last record yielded
		damaged := false      // there was damage after prev
		tell := func(seq uint64, err error) (goOn bool) {
			damage, ok := errors.AsType[*convo.DamageError](err)
			if ok && damaged {
				return true // one error for a run of damaged records
			}
			if ok && damage.Offset < 0 {
				damage.Seq = prev.Seq
				if prev.ID == "" && from != 1 {
					damage.Seq = s.goodBefore(ctx, key, seq)
				}
			}
			damaged = true
			return yield(convo.Record{}, err) && ok
		}
		for r, err := range s.store.Records(ctx, key, from) {
			usable := err == nil
			if usable {
				var fault error
				usable, fault = links.Follows(key, linkOf(&prev), linkOf(&r), from <= 1 || r.Seq != from, r.Check)
				if fault != nil && (!damaged || !usable) {
					err = &convo.DamageError{Key: key, Offset: -1, Err: fault}
				}
			}
			if err != nil && !tell(r.Seq, err) {
				return
			}
			if !usable {
				continue
			}
			if err := s.openRecord(&r); err != nil {
				if !tell(r.Seq, err) {
					return
				}
				continue
			}
			prev, damaged = r, false
			prev.Data = nil
			if !yield(r, nil) {
				return
			}
		}
	}
}

// linkOf returns what links r to its neighbours.
func linkOf(r *convo.Record) links.Record {
	return links.Record{Key: r.Key, ID: r.ID, Prev: r.Prev, Seq: r.Seq, Full: r.Full}
}

// openRecord opens the fields of a record.
func (s *sealedStore) openRecord(r *convo.Record) error {
	if r.Title != "" && (len(r.Title) < recordID || r.Title[:recordID] != r.ID) {
		return &convo.DamageError{Key: r.Key, Offset: -1, Err: fmt.Errorf("the title of record %d is that of another, or is not sealed", r.Seq)}
	}
	field := dataField(r)
	err := s.openTitle(&r.LogInfo)
	if err == nil {
		r.Data, err = s.openField(field, r.Data)
	}
	return err
}

// goodBefore returns the Seq of the newest record before seq such that it and all records
// before it open.
func (s *sealedStore) goodBefore(ctx context.Context, key string, seq uint64) (good uint64) {
	for r, err := range s.Records(ctx, key, 1) {
		if err != nil || r.Seq >= seq {
			break
		}
		good = r.Seq
	}
	return good
}

// List implements [convo.Store]. It continues after a title that cannot be opened.
func (s *sealedStore) List(ctx context.Context, opts convo.ListOptions) iter.Seq2[convo.LogInfo, error] {
	if err := s.check(); err != nil {
		return func(yield func(convo.LogInfo, error) bool) { yield(convo.LogInfo{}, err) }
	}
	return func(yield func(convo.LogInfo, error) bool) {
		for h, err := range s.store.List(ctx, opts) {
			if err == nil {
				err = s.openTitle(&h)
			}
			if err != nil {
				h = convo.LogInfo{}
			}
			if !yield(h, err) {
				return
			}
		}
	}
}

// Delete implements [convo.Store].
func (s *sealedStore) Delete(ctx context.Context, key string) error {
	if err := s.check(); err != nil {
		return err
	}
	return s.store.Delete(ctx, key)
}

// Prune implements [convo.Pruner].
func (s *sealedStore) Prune(ctx context.Context, key string, before uint64) error {
	if err := s.check(); err != nil {
		return err
	}
	p, ok := s.store.(convo.Pruner)
	if !ok {
		return fmt.Errorf("logs: prune %q: the Store that Sealed was given is no Pruner: %w", key, errors.ErrUnsupported)
	}
	return p.Prune(ctx, key, before)
}
